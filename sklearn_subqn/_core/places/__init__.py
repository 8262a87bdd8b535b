"""Rows in several places, which are processes: their parts, and messages to them.

Row-wise data stay in the process of their rows.

This subpackage may import rows, types of losses, and kernels.
"""

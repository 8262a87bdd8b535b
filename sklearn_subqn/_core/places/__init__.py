"""Rows in several places: parts, messages to them, and row-wise data that stays there.

This subpackage may import rows, types of losses, and kernels.
"""

"""Rows in several places: parts, messages to them, and numbers of rows that stay there.

Dual coordinate ascent by rows, here or elsewhere, belongs to it. This room may import
rows, types of losses, and kernels.
"""

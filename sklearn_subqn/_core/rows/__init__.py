"""Rows of data as linear maps: formats, columns, products with each other, samples.

This subpackage may import kernels and the types of losses, but no objective.
"""

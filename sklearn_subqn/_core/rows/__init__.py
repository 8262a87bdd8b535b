"""Rows of data as linear maps: formats, columns, products with each other, samples.

This room may import types of losses and kernels, and knows no objective.
"""

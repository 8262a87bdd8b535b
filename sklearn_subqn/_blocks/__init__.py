"""Data in blocks of rows: in memory, read for each use, or on workers of Dask.

This room makes a risk of parts from blocks and runs fits on it. It may import problems,
solving, features, checks and the core.
"""

"""Data in blocks of rows: in this process, read for each use, or on workers of Dask.

This room makes risks of parts out of blocks and runs fits on them. It may import
problems, solving, features, checks and the core.
"""

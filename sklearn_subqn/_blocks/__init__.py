"""Data in blocks of rows: in memory, read for each use, or on workers of Dask.

This subpackage builds a risk from blocks of rows and runs fits on the blocks. Problems,
solving, features, checks and the core may be imported here.
"""

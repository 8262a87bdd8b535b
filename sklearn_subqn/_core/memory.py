"""The size of temporary arrays: one policy for all files."""

from __future__ import annotations

#: Temporary arrays have at most 131,072 float64 numbers, or one megabyte, which fits
#: into a core's second-level cache. docs/constants.md has the figures.
BLOCK_SIZE = 1 << 17

#: Copies of rows or columns for matrix products have about two million numbers.
COPY_SIZE = 16 * BLOCK_SIZE

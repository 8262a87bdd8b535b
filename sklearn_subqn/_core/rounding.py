"""Bounds of rounding errors: one policy for all files.

The error of a sum of n terms is at most ``rounding(n)`` times the sum of the absolute
terms, and bounds are lowered by this error. Results of several steps, such as solutions
of systems or of searches, count as equal if they differ by less than ``ROUNDED`` times
the size of their input. Results of users or of iterative methods count as equal up to
``CLOSE``.
"""

from __future__ import annotations

import math
import sys

#: The machine epsilon of float64: rounding changes a number by less than EPS times it.
EPS = sys.float_info.epsilon

#: The smallest normal number, a lower limit of divisors.
TINY = sys.float_info.min

#: Rounding to float32 changes coefficients by about this fraction.
ROUNDED_32 = 2.0**-21

#: A relative difference below 1e-12 of the input counts as a rounding error.
ROUNDED = 1e-12

#: Numbers with a relative difference below 1e-9 of their input count as equal.
CLOSE = 1e-9

#: A loop that halves an interval, or converges faster, ends after at most 60 steps: an
#: interval between numbers of similar size has 2**52 floating-point numbers.
MOST_STEPS = 60


def rounding(n_terms: float) -> float:
    """Return a bound of a sum's rounding error, relative to the sum of absolute terms.

    The errors of n terms sum to about sqrt(n) rounding errors (Higham and Mary 2019),
    and to at most n. For up to 16 terms the result covers this worst case.
    """
    return 2.0 * EPS * (1.0 + math.sqrt(n_terms))


def running_rounding(n_terms: float) -> float:
    """Return ``rounding`` for a running sum of terms that may be equal.

    Equal terms have equal rounding errors, so the error is proportional to the number
    of terms.
    """
    return rounding(n_terms) + EPS * n_terms

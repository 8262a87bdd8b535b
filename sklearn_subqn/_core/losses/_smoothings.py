"""Smoothings h of dual variables: quadratics and entropies.

With the entropy of dual variables v >= 0 of one score the maximum over v of v t - h(v)
is attained at its derivative with regard to t. Arguments t are overwritten: new arrays
take time.
"""

from __future__ import annotations

import numpy as np

from ..rounding import TINY
from ._base import Floats, Rows
from ._composition import Smoothing

# The exponential function goes on as its tangent beyond this number: nothing overflows
# on the way. Being below it, it proves the same bounds. Minimizers that lie there, as
# of counts beyond its exponential, are refused.
_STEEPEST = 50.0


class Quadratic(Smoothing):
    """h(b) = ridge / 2 ||b - center||², positive.

    Around a center of dual variables the loss is the Moreau envelope of that without
    smoothing: its gradients are feasible dual points of that.

    Parameters
    ----------
    ridge : float
    center : ndarray, optional
        Of the shape of the dual variables, default zero.
    """

    def __init__(self, ridge: float, center: Floats | None = None) -> None:
        self.ridge, self.center = ridge, center

    def of_rows(self, rows: Rows) -> Quadratic:
        if self.center is None:
            return self
        return Quadratic(self.ridge, self.center[rows])


class Entropy(Smoothing):
    """h(v) = v ln v - v for v >= 0, with the maximum exp(t)."""

    analytic = True

    #: Beyond which arguments the maximum is another, and no longer exact.
    largest_argument: float = _STEEPEST

    def maximum(self, t: Floats) -> Floats:
        """Return the maximum for each argument."""
        beyond = t - _STEEPEST
        np.maximum(beyond, 0.0, out=beyond)
        beyond += 1.0
        beyond *= self.maximizer(t)
        return beyond

    def maximizer(self, t: Floats) -> Floats:
        """Return v."""
        np.minimum(t, _STEEPEST, out=t)
        return np.exp(t, out=t)

    def penalty(self, v: Floats) -> Floats:
        """Return h(v) of v in the box."""
        return entropy(v) - v

    def penalty_size(self, v: Floats) -> Floats:
        """Return what rounding errors of h(v) are in proportion to, beside |h(v)|."""
        return np.abs(entropy(v)) + v


class BinaryEntropy(Smoothing):
    """h(v) = v ln v + (1 - v) ln(1 - v) for 0 <= v <= 1, with ln(1 + exp(t))."""

    analytic = True


class SimplexEntropy(Smoothing):
    """h(b) = sum_k b_k ln b_k on the simplex, with the maximum ln sum_k exp(m_k)."""

    analytic = True


def entropy(p: Floats) -> Floats:
    """Return p ln(p), zero at zero."""
    # The smallest number keeps the product exact, and is faster than a mask.
    h = np.maximum(p, TINY)
    np.log(h, out=h)
    h *= p
    return h

"""Smoothings h of dual variables: quadratics and entropies."""

from __future__ import annotations

import numpy as np

from ._base import Floats, Rows
from ._composition import Smoothing


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

    kind = 0

    def __init__(self, ridge: float, center: Floats | None = None) -> None:
        self.ridge, self.center = ridge, center

    def of_rows(self, rows: Rows) -> Quadratic:
        if self.center is None:
            return self
        return Quadratic(self.ridge, self.center[rows])


class RowEntropy(Smoothing):
    """An h of one dual variable that makes a loss with all derivatives.

    Attributes
    ----------
    kind : int
        Its branch in ``kernels/row_losses.pxd``.
    interval : tuple of float
        Where h is finite.
    """

    kind: int
    interval: tuple[float, float]


class BinaryEntropy(RowEntropy):
    """h(v) = v ln v + (1 - v) ln(1 - v) for 0 <= v <= 1, with ln(1 + exp(t))."""

    kind, interval = 1, (0.0, 1.0)


class Entropy(RowEntropy):
    """h(v) = v ln v - v for v >= 0, with the maximum exp(t)."""

    kind, interval = 2, (0.0, np.inf)

    #: The exponential function goes on as its tangent beyond this number: nothing
    #: overflows on the way. Being below it, it proves the same bounds. Minimizers that
    #: lie there, as of counts beyond its exponential, are refused.
    largest_argument: float = 50.0


class SimplexEntropy(Smoothing):
    """h(b) = sum_k b_k ln b_k on the simplex, with the maximum ln sum_k exp(m_k)."""

"""Smoothings h of dual variables: quadratics and entropies."""

from __future__ import annotations

import numpy as np

from ._base import Floats, Rows
from ._composition import Smoothing


class Quadratic(Smoothing):
    """h(b) = ridge / 2 ||b - center||², positive.

    With a center of dual variables the loss is the Moreau envelope of the loss without
    smoothing, and its gradients are feasible dual points of that loss.

    Parameters
    ----------
    ridge : float
    center : ndarray, optional
        Center, of the shape of the dual variables; default zero.
    """

    kind = 0

    def __init__(self, ridge: float, center: Floats | None = None) -> None:
        self.ridge, self.center = ridge, center

    def of_rows(self, rows: Rows) -> Quadratic:
        if self.center is None:
            return self
        return Quadratic(self.ridge, self.center[rows])


class RowEntropy(Smoothing):
    """A function h of one dual variable whose loss has derivatives of all orders.

    Attributes
    ----------
    kind : int
        Its branch in ``kernels/row_losses.pxd``.
    interval : tuple of float
        The domain of h.
    """

    kind: int
    interval: tuple[float, float]


class BinaryEntropy(RowEntropy):
    """The entropy h(v) = v ln v + (1 - v) ln(1 - v), with the loss ln(1 + exp(t))."""

    kind, interval = 1, (0.0, 1.0)


class Entropy(RowEntropy):
    """The entropy h(v) = v ln v - v for v >= 0, with the loss exp(t)."""

    kind, interval = 2, (0.0, np.inf)

    #: Beyond this argument the exponential function is continued by its tangent, so
    #: that nothing overflows. The tangent is below it and so proves valid bounds.
    #: Minimizers beyond it are rejected.
    largest_argument: float = 50.0


class SimplexEntropy(Smoothing):
    """The entropy h(b) = sum_k b_k ln b_k, with the loss ln sum_k exp(m_k)."""

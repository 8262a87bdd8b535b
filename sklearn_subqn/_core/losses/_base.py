"""Types of losses, and the piecewise quadratic functions of a step size.

A loss R is a convex function of scores z and targets; it depends on neither the
parameters w nor the data X. Scores have shape (r,) for losses of one score per row and
(r, k) for losses of k scores per row. Weights are normalized by the caller: they are
non-negative and sum to one, so that R is a weighted mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..arrays import Floats as Floats
from ..arrays import Indices
from ..arrays import Mask as Mask
from ..rounding import TINY

Rows = Indices

#: A function of a step size that returns its slope and curvature.
Derivatives = Callable[[float], tuple[float, float]]

#: Half-width, relative to max(1, |score|), of the band around a kink in which a row
#: counts as lying on it. Values, line searches and subgradients all use this width.
#: It must exceed the rounding error of scores that are updated along steps.
TIE_TOLERANCE = 1e-10

# Sums over rows are split into blocks of at least 256 rows.
_SUMMED_ROWS = 256


def norm_by_weights(sizes: Floats, weights: Floats) -> float:
    """Return the root of sum_i d_i² / s_i; rows of zero weight contribute zero."""
    squares = np.square(sizes) / np.maximum(weights, TINY)
    return float(np.sqrt(squares.sum()))


def total_of_rows(x: Floats) -> Any:
    """Return the sum of x over its first axis, a number or an array.

    NumPy adds rows one after the other, so rounding errors increase with the number of
    equal rows. Here blocks of rows are summed first, as products with a vector of ones:
    for few columns, BLAS is much faster than sums by NumPy.
    """
    if x.ndim == 1:
        return x.sum()
    size = max(_SUMMED_ROWS, int(np.sqrt(len(x))))
    whole = len(x) - len(x) % size
    shape = whole // size, size, math.prod(x.shape[1:])
    parts = np.ones(size) @ x[:whole].reshape(shape)
    total = parts.sum(axis=0).reshape(x.shape[1:])
    return total + x[whole:].sum(axis=0)


_NO_KINKS = np.empty(0)


@dataclass(frozen=True)
class PiecewiseQuadratic:
    """A convex piecewise quadratic function f of a step size eta >= 0, by its slope.

    Between kinks the slope is affine: f'(eta) = a + c * eta. At ``kinks[i]``, a changes
    by ``slope_jumps[i]`` and c by ``curvature_jumps[i]``. In piecewise linear functions
    (hinge) only a jumps. In differentiable functions (squared hinge) both jumps cancel
    at the kink: slope_jumps + curvature_jumps * kinks = 0.

    Parameters
    ----------
    slope, curvature : float
        The numbers a and c immediately to the right of eta = 0, so that ``slope`` is
        the directional derivative at the starting point, sup of the subdifferential.
    kinks : ndarray of shape (m,)
        Positive step sizes at which a or c change, in no particular order.
    slope_jumps, curvature_jumps : ndarray of shape (m,)
        Changes of a and c there.

    See Also
    --------
    Loss : Its method ``restrict`` returns such functions.

    Examples
    --------
    The absolute value of 1 - eta:

    >>> import numpy as np
    >>> from sklearn_subqn.losses import PiecewiseQuadratic
    >>> at, by, zero = np.array([1.0]), np.array([2.0]), np.array([0.0])
    >>> function = PiecewiseQuadratic(-1.0, 0.0, at, by, zero)
    >>> function.slope_at(0.5), function.slope_at(1.5)
    (-1.0, 1.0)
    """

    slope: float
    curvature: float
    kinks: Floats
    slope_jumps: Floats
    curvature_jumps: Floats

    @classmethod
    def smooth(cls, slope: float, curvature: float) -> PiecewiseQuadratic:
        """Return a quadratic function, which has no kinks."""
        return cls(slope, curvature, _NO_KINKS, _NO_KINKS, _NO_KINKS)

    def __add__(self, other: PiecewiseQuadratic) -> PiecewiseQuadratic:
        if not other.kinks.size:
            mine = self
        elif not self.kinks.size:
            mine = other
        else:
            mine = PiecewiseQuadratic(
                0.0,
                0.0,
                np.concatenate([self.kinks, other.kinks]),
                np.concatenate([self.slope_jumps, other.slope_jumps]),
                np.concatenate([self.curvature_jumps, other.curvature_jumps]),
            )
        return PiecewiseQuadratic(
            self.slope + other.slope,
            self.curvature + other.curvature,
            mine.kinks,
            mine.slope_jumps,
            mine.curvature_jumps,
        )

    def scaled(self, factor: float) -> PiecewiseQuadratic:
        """Return factor * f for a non-negative factor."""
        return PiecewiseQuadratic(
            factor * self.slope,
            factor * self.curvature,
            self.kinks,
            factor * self.slope_jumps,
            factor * self.curvature_jumps,
        )

    def plus(self, smooth: Derivatives) -> Derivatives:
        """Return the sum with a smooth function, valid up to the first kink."""

        def at(step: float) -> tuple[float, float]:
            slope, curvature = smooth(step)
            return self.slope_at(step) + slope, self.curvature + curvature

        return at

    def slope_at(self, step: float) -> float:
        """Return sup of the subdifferential at ``step`` (the right-hand slope)."""
        passed = self.kinks <= step
        return float(
            self.slope
            + self.slope_jumps[passed].sum()
            + (self.curvature + self.curvature_jumps[passed].sum()) * step
        )


class RowForm(NamedTuple):
    """Parameters by which compiled loops compute a loss of one score per row.

    Attributes
    ----------
    kind : int
        0 for a box of dual variables, with or without a quadratic; 1 for the logistic
        loss; 2 for exponential functions; 3 for the multinomial logistic loss, which
        has a separate loop; 4 for a box whose ridge is half of a scale, where the loss
        is minimized over scales of at least twice the given ridge.
    labels : bool
        Whether targets are labels of -1 or +1, which multiply scores.
    low, high, tube, ridge, width : float
        The ends of the box, and the coefficients of |v|, v² / 2 and (v - center)² / 2
        that are subtracted.
    a : float
        For exponential functions, the power of the deviance minus one.
    """

    kind: int
    labels: bool
    low: float
    high: float
    tube: float = 0.0
    ridge: float = 0.0
    width: float = 0.0
    a: float = 0.0


class Intervals(NamedTuple):
    """loss_i(z) = max over v in [low_i, high_i] of v (targets_i - z) - ridge / 2 v²."""

    targets: Floats
    low: Floats
    high: Floats
    ridge: float


class Simplices(NamedTuple):
    """loss_i(z) = max over b in the unit simplex of <b, offsets[targets_i] + z - z_y>.

    z_y is the score of the label y = targets_i.
    """

    targets: npt.NDArray[np.intp]
    offsets: Floats


class LabelSets(NamedTuple):
    """loss_i(z) = max over b >= 0 of <b, m>, with sums over both kinds of labels <= 1.

    The violations m are costs[0, j] + z_j of irrelevant and costs[1, j] - z_j of
    relevant labels. Without a threshold, the last score, the sums have to be equal.
    """

    targets: npt.NDArray[np.uint8]
    costs: Floats


#: Losses as maxima over dual variables that are separable by rows.
RowwiseDual = Intervals | Simplices | LabelSets

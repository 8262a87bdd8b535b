"""Types of losses, and the piecewise quadratic functions of a step size.

A loss R is a convex function of scores z and targets; it never sees the parameters w
or the data X. Scores have shape (r,) for losses of one score per row and (r, k) for
losses of k scores per row. Weights are normalized by the caller: they are non-negative
and sum to one, so that R is a weighted mean.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import blas

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]

#: Slope and curvature of a function of a step size.
Derivatives = Callable[[float], tuple[float, float]]

#: Half-width, relative to max(1, |score|), of the band around a kink in which a row
#: counts as lying on it. Oracle, line search and subgradient all use this one number.
#: It must exceed the rounding error of scores that are updated along steps.
TIE_TOLERANCE = 1e-10

# Each number is rounded by this share of itself.
#: The rounding unit of float64, and its smallest normal number.
EPS, TINY = float(np.finfo(float).eps), float(np.finfo(float).tiny)

# So many rows, at least, are summed by themselves.
_SUMMED_ROWS = 256

# So many entries of second derivatives are collected at a time, of 24 bytes each.
_N_ENTRIES = 1 << 16


def rounding(n_terms: float) -> float:
    """Return by what share of its terms' absolute sum a computed sum is off.

    Rounding errors of n terms add up to about the root of n of them (Higham and Mary
    2019), to n at most; up to 16 terms this is the worst case.
    """
    return 2.0 * EPS * (1.0 + float(np.sqrt(n_terms)))


def running_rounding(n_terms: float) -> float:
    """Return the like of a sum that goes from term to term, of terms that may be alike.

    Equal terms are rounded alike, so that errors add up to as many as there are terms.
    """
    return rounding(n_terms) + EPS * n_terms


def norm_by_weights(sizes: Floats, weights: Floats) -> float:
    """Return the root of sum_i d_i² / s_i, in which rows without weight are zero."""
    squares = np.square(sizes) / np.maximum(weights, TINY)
    return float(np.sqrt(squares.sum()))


def total_of_rows(x: Floats) -> Any:
    """Return the sum of x over its first axis, a number or an array.

    NumPy adds rows of several numbers one after the other; errors of that grow with the
    number of rows where these are alike. Here some are summed by themselves at a time,
    by products with ones, which BLAS makes much faster than NumPy sums few columns.
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

    Between kinks the slope is affine: f'(eta) = a + c * eta. Passing ``kinks[i]`` adds
    ``slope_jumps[i]`` to a and ``curvature_jumps[i]`` to c. Piecewise linear functions
    (hinge) have jumps of a only; differentiable ones (squared hinge) have jumps that
    cancel at the kink, slope_jumps + curvature_jumps * kinks = 0.

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
        """Return a quadratic function: no kinks."""
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

    def slope_at(self, step: float) -> float:
        """Return sup of the subdifferential at ``step`` (the right-hand slope)."""
        passed = self.kinks <= step
        return float(
            self.slope
            + self.slope_jumps[passed].sum()
            + (self.curvature + self.curvature_jumps[passed].sum()) * step
        )


class Curvature(ABC):
    """Second derivatives R''(z): for each row a symmetric k x k matrix over its scores.

    Their shape is that of the scores, (n,) for one score per row. All offer ``take``,
    ``apply``, ``diagonal`` and ``total``. Those of several scores per row may offer
    more: ``add_gram`` for Newton directions by factorization, ``rank_one`` for
    quadratic models.

    Attributes
    ----------
    by_rows : bool
        Whether each row has a matrix of its own. Elsewhere R'' is diag(a) - C - Cᵀ for
        its ``diagonal`` a, and ``crossed`` is C.
    """

    by_rows: bool = True

    def rows(self) -> Rows:
        """Return the rows whose matrix is not zero."""
        nonzero = self.diagonal() != 0.0
        return np.flatnonzero(nonzero.any(axis=1) if nonzero.ndim == 2 else nonzero)

    @abstractmethod
    def take(self, rows: Rows) -> Curvature:
        """Return the matrices of some of the rows."""

    @abstractmethod
    def apply(self, dscores: Floats) -> Floats:
        """Return R''(z) dz for dz = ``dscores``, which may be overwritten."""

    @abstractmethod
    def diagonal(self) -> Floats:
        """Return the diagonals, of the shape of the scores."""

    @abstractmethod
    def total(self) -> Floats:
        """Return the sum of the matrices, of shape (k, k)."""

    def centered(self) -> Floats | None:
        """Return a of shape (n, k) if the matrices are diag(a) - a aᵀ / sum(a)."""
        return None

    def add_gram(self, X: Floats, rows: slice, out: Floats) -> None:
        """Add the Kronecker products M_i (x) x_i x_iᵀ over a slice of the rows.

        X of shape (m, d) holds these rows only; ``out`` has shape (k, k, d, d), of
        which the blocks j <= l are added to.
        """
        raise TypeError(f"{type(self).__name__} makes no Gram matrices.")

    def crossed(self, design: Any) -> Floats:
        """Return Xᵀ C X for the X of a design."""
        raise TypeError(f"{type(self).__name__} couples no rows.")

    def rank_one(self) -> tuple[Floats, Floats, Floats]:
        """Return a, s and p of matrices diag(a_i) - s_i p_i p_iᵀ.

        Their shapes are (n, k), (n,) and (n, k); the rows of p sum to one, and
        a = s p.
        """
        raise TypeError(f"{type(self).__name__} is not of this form.")


class DiagonalCurvature(Curvature):
    """Second derivatives h of the shape of the scores, which count each by itself."""

    def __init__(self, h: Floats) -> None:
        self._h = h

    def take(self, rows: Rows) -> DiagonalCurvature:
        return DiagonalCurvature(self._h[rows])

    def apply(self, dscores: Floats) -> Floats:
        return self._h * dscores

    def diagonal(self) -> Floats:
        return self._h

    def total(self) -> Floats:
        return np.diag(np.atleast_1d(self._h.sum(axis=0)))


class MatrixCurvature(Curvature):
    """Second derivatives by their matrices, of shape (n, k, k)."""

    def __init__(self, matrices: Floats) -> None:
        self._matrices = matrices

    def take(self, rows: Rows) -> MatrixCurvature:
        return MatrixCurvature(self._matrices[rows])

    def apply(self, dscores: Floats) -> Floats:
        product: Floats = np.einsum("ijl,il->ij", self._matrices, dscores)
        return product

    def diagonal(self) -> Floats:
        return np.einsum("ijj->ij", self._matrices)

    def total(self) -> Floats:
        return np.asarray(total_of_rows(self._matrices))

    def add_gram(self, X: Floats, rows: slice, out: Floats) -> None:
        matrices = self._matrices[rows]
        for j in range(len(out)):
            for k in range(j, len(out)):
                out[j, k] += X.T @ (matrices[:, j, k, np.newaxis] * X)


class Entries(NamedTuple):
    """Entries of matrices of rows, of shape (k, k): those on and above the diagonal."""

    rows: Rows
    pairs: Rows
    """j * k + l, for j <= l."""
    values: Floats


class CurvatureByEntries(Curvature):
    """Second derivatives whose matrices have entries for few pairs of scores each."""

    @abstractmethod
    def take(self, rows: Rows | slice) -> CurvatureByEntries:
        """Return the matrices of some of the rows."""

    @abstractmethod
    def entries(self, first: int, out: Entries) -> tuple[int, int]:
        """Write the entries of the matrices from row ``first`` on, while there is room.

        Returns
        -------
        row, count : int
            The first row left, and the number of entries.
        """

    def _pieces(self, n: int, k: int) -> Iterator[Entries]:
        size = max(_N_ENTRIES, k * (k + 1) // 2)
        room = Entries(
            np.empty(size, dtype=np.intp), np.empty(size, dtype=np.intp), np.empty(size)
        )
        first = 0
        while first < n:
            first, count = self.entries(first, room)
            rows, pairs, values = room
            yield Entries(rows[:count], pairs[:count], values[:count])

    def total(self) -> Floats:
        n, k = self.diagonal().shape
        total = np.zeros(k * k)
        for entries in self._pieces(n, k):
            total += np.bincount(entries.pairs, entries.values, minlength=k * k)
        upper = total.reshape(k, k)
        return upper + np.triu(upper, 1).T

    def add_gram(self, X: Floats, rows: slice, out: Floats) -> None:
        k = len(out)
        for entries in self.take(rows)._pieces(len(X), k):
            order = np.argsort(entries.pairs, kind="stable")
            pairs, first = np.unique(entries.pairs[order], return_index=True)
            bounds = pairwise([*first, len(order)])
            for pair, (start, stop) in zip(pairs, bounds, strict=True):
                part = order[start:stop]
                x = X[entries.rows[part]]
                scaled = entries.values[part, np.newaxis] * x
                block = out[pair // k, pair % k].T
                blas.dgemm(1.0, x.T, scaled.T, 1.0, block, 0, 1, overwrite_c=1)


def as_curvature(given: Any, scores: Floats, name: str) -> Curvature:
    """Return second derivatives that may be given by an array.

    Parameters
    ----------
    given : Curvature or array-like
        Of the shape of the scores, (n,) or (n, k), where scores count each by itself,
        or of shape (n, k, k).
    scores : ndarray of shape (n,) or (n, k)
    name : str
        Of the loss, for messages.

    Raises
    ------
    TypeError, ValueError
        If it is no array of real and finite numbers of such a shape, or if diagonals
        have negative entries: then the loss is not convex.
    """
    if isinstance(given, Curvature):
        return given
    h = np.asarray(given)
    if h.dtype.kind not in "fiu":
        raise TypeError(
            f"{name}.curvature must return an array of real numbers, got "
            f"{type(given).__name__}."
        )
    several = (*scores.shape, scores.shape[-1]) if scores.ndim == 2 else None
    if h.shape not in (scores.shape, several):
        shapes = str(scores.shape) + (f" or {several}" if several else "")
        raise ValueError(
            f"{name}.curvature must return second derivatives of shape {shapes}, got "
            f"shape {h.shape}."
        )
    h = h.astype(np.float64)
    found = DiagonalCurvature(h) if h.ndim == scores.ndim else MatrixCurvature(h)
    diagonal = found.diagonal()
    if not np.isfinite(h).all() or diagonal.min(initial=0.0) < 0.0:
        raise ValueError(
            f"{name}.curvature must return finite second derivatives that are not "
            f"negative, got {np.nanmin(diagonal):g} as the smallest"
            + ("." if np.isfinite(h).all() else ", and some that are not finite.")
        )
    return found


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


#: The forms of a loss whose dual variables are separable by rows.
RowwiseDual = Intervals | Simplices | LabelSets

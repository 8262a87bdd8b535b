"""Dual coordinate ascent over the rows, for several sets of dual variables.

The losses are maxima over separate dual variables for each row (``rowwise_dual``). A
sweep maximizes the dual objective over the variables of one row after the other, and
updates the corresponding parameters. A round is several sweeps between two evaluations
of the gap.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ..kernels import ascent, multiclass, multilabel
from ..losses._base import Floats, Intervals, LabelSets, Rows, RowwiseDual
from ..memory import BLOCK_SIZE
from ..rounding import TINY
from ..rows.second_moments import SecondMoments

# The intercept is represented by a constant column. For sparse rows, its squared value
# is a tenth of the mean squared norm of rows. With a larger value the intercept changes
# too much at each row. With a smaller value the intercept remains too close to its
# center. docs/constants.md has the figures.
INTERCEPT_SHARE = 0.1

# For dense rows, the squared value of the constant column is a fifth of the mean
# squared norm, since dense rows are correlated in any case.
_INTERCEPT_SHARE_DENSE = 0.2

# The first round of ascent on intervals has two sweeps, after which scores indicate the
# dual variables that stay at a bound. docs/constants.md has the figures.
FIRST_SWEEPS = 2

# Each later round of ascent on intervals has five sweeps.
MORE_SWEEPS = 5

# The first round of ascent on simplices ends after about three visits of each row.
_FIRST_VISITS = 3.0

# Each later round ends after about five visits of each of its initial rows.
_MORE_VISITS = 5.0

# Each round ends after at most ten sweeps, even if they visit few rows.
_MOST_SWEEPS_OF_ROUND = 10

# A round starts with the rows whose contribution to the gap is more than 0.3 times the
# mean contribution. docs/constants.md has the figures.
_GAP_SHARE = 0.3

# A round continues with the rows whose last update increased the dual objective by more
# than 0.2 times the mean increase. docs/constants.md has the figures.
_GAIN_SHARE = 0.2


def row_sweeps(
    design: SecondMoments,
    loss: RowwiseDual,
    weights: Floats,
    alpha: float,
    dual: Floats | None = None,
    proximity: float = 0.0,
) -> RowSweeps:
    """Return sweeps for the dual variables of a loss; intervals need sparse data.

    Sweeps start near ``dual``, a subgradient of the same or a similar risk, and with
    intercepts of zero. They may penalize the distance of the coefficients from a center
    by ``proximity / 2`` times its square.
    """
    if isinstance(loss, Intervals):
        return IntervalSweeps(design, loss, weights, alpha, dual, proximity)
    if isinstance(loss, LabelSets):
        return LabelSweeps(design, loss, weights, alpha, dual, proximity)
    return SimplexSweeps(design, loss, weights, alpha, dual, proximity)


class RowSweeps(ABC):
    """Dual coordinate ascent over the rows, with an unpenalized intercept.

    With the penalty proximity / 2 * ||w - c||² of the distance from a center c, the
    parameters of the dual variables are w = (proximity * c - Xᵀu) / (alpha +
    proximity). The distance of the intercept from its center has a separate penalty,
    since the intercept is the coefficient of a small constant column.

    Attributes
    ----------
    w : ndarray of shape (q,)
        The parameters that correspond to the dual variables.
    dual : ndarray of the shape of scores
        The subgradient u of the risk that corresponds to the dual variables.
    conjugate_point : ndarray of shape (d k,)
        -Xᵀu / alpha without intercepts, up to accumulated rounding errors.
    n_rounded : int
        Number of roundings of the parameters other than in updates of rows.
    """

    n_rounded = 0
    _coef: Floats
    _center: Floats

    def __init__(
        self,
        design: SecondMoments,
        loss: Any,
        weights: Floats,
        alpha: float,
        proximity: float,
    ) -> None:
        self._design = design
        self._loss = loss
        self._weights = weights
        self._alpha, self._proximity = alpha, proximity
        self._curvature = alpha + proximity
        self._steps = weights / self._curvature
        self._squares = design.squares
        self._intercept_step = 0.0
        if design.fit_intercept:
            share = INTERCEPT_SHARE if design.is_sparse else _INTERCEPT_SHARE_DENSE
            self._intercept_step = share * float(self._squares.mean())
        self._seed = 1

    @property
    def _X(self) -> Any:
        return self._design.matrix

    @abstractmethod
    def run(self, scores: Floats | None = None) -> None:
        """Make a round of sweeps; known ``scores`` select the first rows."""

    @abstractmethod
    def recenter(self, w: Floats) -> None:
        """Continue with the intercept of ``w``, and penalize the distance from w."""

    @property
    @abstractmethod
    def w(self) -> Floats: ...

    @property
    @abstractmethod
    def dual(self) -> Floats: ...

    @property
    def conjugate_point(self) -> Floats:
        if not self._proximity:
            return self._coef.ravel()
        point = self._coef - self._center
        point *= self._proximity / self._alpha
        point += self._coef
        return point.ravel()


class IntervalSweeps(RowSweeps):
    """Sweeps over dual variables in intervals, for sparse data.

    Parameters
    ----------
    design : SecondMoments
    loss : Intervals
    weights : ndarray of shape (n,)
    alpha : float
    dual : ndarray of shape (n,) or None
    proximity : float
    """

    _loss: Intervals

    def __init__(
        self,
        design: SecondMoments,
        loss: Intervals,
        weights: Floats,
        alpha: float,
        dual: Floats | None,
        proximity: float = 0.0,
    ) -> None:
        super().__init__(design, loss, weights, alpha, proximity)
        self._order = np.arange(len(weights), dtype=self._X.indptr.dtype)
        self._n_sweeps = FIRST_SWEEPS
        self._v = np.zeros_like(weights)
        self._coef = np.zeros(design.n_features)
        self._center = np.broadcast_to(0.0, self._coef.shape)
        self._intercept = 0.0
        if dual is not None:
            np.divide(-dual, weights, out=self._v, where=weights > 0.0)
            np.clip(self._v, loss.low, loss.high, out=self._v)
            w = design.adjoint(self._steps * self._v)
            self._coef = np.ascontiguousarray(design.split(w)[0])

    def run(self, scores: Floats | None = None) -> None:
        """Make several sweeps, each as costly as two passes over the visited rows.

        The first sweep visits all rows, except rows whose dual variable stays at an end
        of its interval according to ``scores``. Each later sweep visits the rows whose
        dual variables changed in the previous sweep.
        """
        self._begin(scores)
        n_sweeps = self._n_sweeps
        self._n_sweeps = MORE_SWEEPS
        for _ in range(n_sweeps):
            self._intercept = self._sweep(self._coef, self._intercept)

    def _begin(self, scores: Floats | None) -> None:
        """Select the rows to visit."""
        n = len(self._order)
        resting = np.zeros(n, dtype=bool) if scores is None else self._resting(scores)
        self._n_active = n - int(np.count_nonzero(resting))
        # Rows are visited in the order of memory, for fast access.
        self._order[: self._n_active] = np.flatnonzero(~resting)
        self._order[self._n_active :] = np.flatnonzero(resting)

    def _sweep(self, coef: Floats, intercept: float) -> float:
        """Visit active rows; change coefficients in place, return the intercept."""
        X = self._X
        self._design.passes += 2.0 * self._n_active / max(len(self._order), 1)
        self._seed += 1
        intercept, self._n_active = ascent.sweep(
            X.data,
            X.indices,
            X.indptr,
            *self._loss,
            self._steps,
            self._squares,
            intercept,
            self._intercept_step,
            _hash(self._seed),
            self._n_active,
            self._order,
            self._v,
            coef,
        )
        return intercept

    def _resting(self, scores: Floats) -> npt.NDArray[np.bool_]:
        """Return the mask of dual variables at a bound that a step would violate."""
        targets, low, high, ridge = self._loss
        slope = targets - scores - ridge * self._v
        at_low, at_high = self._v <= low, self._v >= high
        return (at_low & (slope < 0.0)) | (at_high & (slope > 0.0))

    def recenter(self, w: Floats) -> None:
        """Penalize the distance from w; the sum of the dual moves the intercept."""
        center, intercept = self._design.split(w)
        excess = float(self._steps @ self._v)
        self._intercept = float(intercept) + self._intercept_step * excess
        if self._proximity:
            self._coef += self._proximity / self._curvature * (center - self._center)
            self._center = center

    @property
    def w(self) -> Floats:
        """The parameters."""
        if not self._design.fit_intercept:
            return self._coef.copy()
        return np.append(self._coef, self._intercept)

    @property
    def dual(self) -> Floats:
        """The subgradient, whose sum converges to zero."""
        return -self._weights * self._v


class JointSweeps(RowSweeps):
    """Sweeps over dual variables of several scores, for sparse or dense data.

    Within a round, rows with a large gain are visited again.

    Parameters
    ----------
    design : SecondMoments
    loss : Simplices or LabelSets
    weights : ndarray of shape (n,)
    alpha : float
    dual : ndarray of shape (n, k) or None
    proximity : float
    """

    #: The module of compiled sweeps, and its representation of the rows.
    _kernel: Any
    _rows: Any

    def __init__(
        self,
        design: SecondMoments,
        loss: Any,
        weights: Floats,
        alpha: float,
        dual: Floats | None,
        proximity: float = 0.0,
    ) -> None:
        super().__init__(design, loss, weights, alpha, proximity)
        k = design.n_outputs or 1
        self._gains = np.zeros(len(weights))
        self._coef = np.zeros((design.n_features, k))
        # Without a proximal term the center takes no memory.
        self._center = np.broadcast_to(0.0, self._coef.shape)
        self._intercept = np.zeros(k)
        self._b = self._variables(dual)
        if dual is not None:
            w = design.adjoint(self.dual)
            w /= -self._curvature
            self._coef = np.ascontiguousarray(design.split(w)[0])

    @abstractmethod
    def _variables(self, dual: Floats | None) -> Floats:
        """Return feasible dual variables b, in one array, near ``dual`` if given."""

    def run(self, scores: Floats | None = None) -> None:
        """Visit rows that contribute much to the gap, then rows with a large gain."""
        rows, visits = np.arange(len(self._gains)), _FIRST_VISITS
        if scores is not None:
            rows, visits = self._unsolved(scores), _MORE_VISITS
        n_visits, enough = 0, visits * len(rows)
        for _ in range(_MOST_SWEEPS_OF_ROUND):
            self._sweep(rows)
            n_visits += len(rows)
            mean = self._gains[rows].mean()
            rows = np.flatnonzero(self._gains > _GAIN_SHARE * mean)
            if not len(rows) or n_visits >= enough:
                break
        self._design.passes += 2.0 * n_visits / max(len(self._gains), 1)

    def _unsolved(self, scores: Floats) -> Rows:
        """Return the rows that contribute much to the gap, or all rows if none does."""
        gaps = np.empty(len(self._gains))
        self._kernel.gaps(self._rows, scores, self._weights, self._b, gaps)
        rows = np.flatnonzero(gaps > _GAP_SHARE * gaps.mean())
        return rows if len(rows) else np.arange(len(gaps))

    def _sweep(self, rows: Rows) -> None:
        X = self._X
        self._seed += 1
        arguments = (
            self._steps,
            self._squares,
            self._intercept_step,
            _hash(self._seed),
            rows,
            self._gains,
            self._b,
            self._coef,
            self._intercept,
        )
        if sparse.issparse(X):
            arrays = X.data, X.indices, X.indptr
            self._kernel.sweep_sparse(self._rows, *arrays, *arguments)
        else:
            self._kernel.sweep_dense(self._rows, X, *arguments)

    def recenter(self, w: Floats) -> None:
        """Penalize the distance from w; the sums of the dual move the intercepts."""
        center, intercept = self._design.split(w)
        self._intercept = intercept - self._intercept_step * self._excess
        if self._proximity:
            share = self._proximity / self._curvature
            size = max(BLOCK_SIZE // center.shape[1], 1)
            for a in range(0, len(center), size):
                some = slice(a, a + size)
                self._coef[some] += share * (center[some] - self._center[some])
            self._center = center

    @property
    @abstractmethod
    def _excess(self) -> Floats:
        """Column sums of the dual, divided by the curvature, of shape (k,)."""

    @property
    def w(self) -> Floats:
        """The parameters."""
        w = self._coef.ravel()
        return np.append(w, self._intercept) if self._design.fit_intercept else w.copy()


class SimplexSweeps(JointSweeps):
    """Sweeps over dual variables in simplices, one simplex for each row."""

    _kernel = multiclass

    def _variables(self, dual: Floats | None) -> Floats:
        n, offsets = len(self._weights), self._loss.offsets
        self._rows = multiclass.Rows(self._loss.targets, offsets, np.ones_like(offsets))
        self._own = np.arange(n), self._loss.targets
        b = np.zeros((n, len(offsets)))
        if dual is not None:
            scale = self._weights[:, np.newaxis]
            np.divide(dual, scale, out=b, where=scale > 0.0)
            b[self._own] = 0.0
            np.maximum(b, 0.0, out=b)
            b /= np.maximum(b.sum(axis=1, keepdims=True), 1.0)
        b[self._own] = 1.0 - b.sum(axis=1)
        return b

    @property
    def _excess(self) -> Floats:
        sums: Floats = self._steps @ self._b
        return sums - np.bincount(self._loss.targets, self._steps, len(sums))

    @property
    def dual(self) -> Floats:
        """The subgradient, whose column sums converge to zero."""
        dual = self._b.copy()
        dual[self._own] -= 1.0
        dual *= self._weights[:, np.newaxis]
        return dual


class LabelSweeps(JointSweeps):
    """Sweeps over dual variables of relevant and irrelevant labels."""

    _kernel = multilabel

    def _variables(self, dual: Floats | None) -> Floats:
        targets = self._loss.targets
        self._rows = multilabel.Rows(targets, self._loss.costs, len(self._intercept))
        b = np.zeros(targets.shape)
        if dual is not None:
            scale = self._weights[:, np.newaxis]
            np.divide(dual[:, : b.shape[1]], scale, out=b, where=scale > 0.0)
            np.negative(b, out=b, where=targets > 0)
            np.maximum(b, 0.0, out=b)
            kinds = np.stack([targets == 0, targets > 0])
            sums = (kinds * b).sum(axis=2)
            most = np.ones_like(sums)
            if dual.shape[1] == b.shape[1]:
                np.minimum(most, sums.min(axis=0), out=most)
            shares = np.minimum(1.0, most / np.maximum(sums, TINY))
            b *= (kinds * shares[:, :, np.newaxis]).sum(axis=0)
        return b

    @property
    def _excess(self) -> Floats:
        return self.dual.sum(axis=0) / self._curvature

    @property
    def dual(self) -> Floats:
        """The subgradient, whose column sums converge to zero."""
        n, n_labels = self._b.shape
        dual = np.zeros((n, self._design.n_outputs or n_labels))
        labels = dual[:, :n_labels]
        np.multiply(self._b, self._weights[:, np.newaxis], out=labels)
        np.negative(labels, out=labels, where=self._loss.targets > 0)
        if dual.shape[1] > n_labels:
            dual[:, n_labels] = -labels.sum(axis=1)
        return dual


def _hash(seed: int) -> int:
    return seed * 0x9E3779B97F4A7C15 % 2**64

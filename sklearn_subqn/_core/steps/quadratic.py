"""L1-penalized quadratic models of an objective, minimized by coordinate descent.

The model at w is <g, v - w> + <v - w, H (v - w)> / 2 + alpha * Omega(v) with the
gradient g and the Hessian H of the risk, over some coordinates of v; the others are
fixed.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy import linalg

from ..losses._base import Floats, Mask, Rows
from ..objectives.objective import Line, Objective, Point
from ..rounding import TINY
from ..rows.columns import MatrixColumns
from .column_descent import ByColumns
from .column_step import BlockStep, ColumnStep
from .gram_step import GramStep, Step, damping
from .group_step import GroupStep

# Largest number of features of sparse data for which H is formed, and of dense data in
# groups for which it is formed at once. docs/constants.md has the figures.
_MAX_GRAM = 1000

# Cost of forming H, in units of sweeps over the columns, for each entry of a row.
# docs/constants.md has the figures.
_SWEEPS_PER_ENTRY = 0.5

# Cost of forming H, in the same units, if later models may have too many features for
# H, so that columns are needed in any case. docs/constants.md has the figures.
_SWEEPS_PER_ENTRY_MANY = 2.0

# H of a multinomial model is always formed for at most 600 coordinates.
_MAX_JOINT = 600

# Memory limits the coordinates for which H of a multinomial model is formed.
# docs/constants.md has the figures.
_MAX_FORMED = 5000

# H of more than ``_MAX_JOINT`` coordinates is formed if this costs at most as much as
# 400 products with X. docs/constants.md has the figures.
_MAX_PRODUCTS = 400.0


def by_columns_at_last(objective: Objective) -> bool:
    """Whether later models of one score per row may be too large for H."""
    design = objective.design
    return design.is_sparse and design.n_features > _MAX_GRAM


def forms_matrix(objective: Objective, n_coordinates: int) -> bool:
    """Whether models of several scores per row form H."""
    if n_coordinates <= _MAX_JOINT:
        return True
    design = objective.design
    if n_coordinates > _MAX_FORMED or design.is_text_like:
        return False
    return design.joint_gram_cost(n_coordinates) <= _MAX_PRODUCTS


class QuadraticModel:
    """The quadratic model of one iteration, on some features.

    Parameters
    ----------
    point : Point
        The point w, of the objective or, for an approximate Hessian, of a sample of the
        rows. Its regularizer is an ``ElasticNet`` or has groups; with groups H is
        always formed.
    coordinates : ndarray of shape (m,)
        Penalized coordinates of w that may change, in ascending order. Without H, all
        coordinates of the same features may change.
    needed : ndarray of int
        Coordinates that are likely to change.
    n_sweeps : int
        Expected number of sweeps, which decides whether H is formed.
    longest : float
        As in ``damping``.
    negligible : float
        As in ``ColumnStep``.

    Attributes
    ----------
    by_columns : bool
        Whether columns are used instead of H.
    accurate : bool
        Whether H is formed for so few coordinates that accuracy is cheap.
    """

    def __init__(
        self,
        point: Point,
        coordinates: Rows,
        needed: Rows,
        n_sweeps: int,
        longest: float,
        negligible: float,
    ) -> None:
        objective = point.objective
        self._design = objective.design
        self._invariant = objective.loss.invariant
        self._curvature = point.curvature
        self._added = damping(point, longest)
        self._h = self._curvature.diagonal() + self._added
        self._coordinates = coordinates
        self._n_outputs = K = self._design.n_outputs or 1
        features = coordinates if K == 1 else np.unique(coordinates // K)
        self._features = features
        self._columns = columns = MatrixColumns(self._design, features)
        self._n_free = int(self._design.fit_intercept)
        groups = objective.groups
        l1, l2 = (0.0, 0.0) if groups else objective.penalties
        self._center = np.zeros(len(features))
        at_last = by_columns_at_last(objective)
        sweeps_per_entry = _SWEEPS_PER_ENTRY_MANY if at_last else _SWEEPS_PER_ENTRY
        worth_it = sweeps_per_entry * columns.row_size <= n_sweeps
        small = len(features) <= _MAX_GRAM
        rowwise = self._h.ndim == 1
        product = (self._h, np.ones((1, 1))) if rowwise else self._curvature.product()
        if groups:
            by_gram = True
        elif K > 1:
            by_gram = forms_matrix(objective, len(coordinates))
        else:
            by_gram = not columns.sparse or (small and worth_it)
        self.by_columns = not by_gram
        few = product is not None or len(coordinates) <= _MAX_JOINT
        self.accurate = by_gram and few
        self._step: Step
        if by_gram:
            inside = self._inside(whole=groups is not None)
            if self._n_free:
                h = self._h if rowwise else self._h.sum(axis=1)
                self._center = columns.adjoint(h) / max(h.sum(), TINY)
            h, metric = product or (None, np.ones((1, 1)))
            rents = groups is not None and h is not None and not columns.sparse
            rents = rents and len(features) > _MAX_GRAM
            if h is None:
                gram = self._joint_gram(inside)
            else:
                gram = self._scaled_rows(h) if rents else self._gram(h)
            places = np.full(inside.shape, -1)
            places[: len(features)] = features[:, np.newaxis] * K + np.arange(K)
            places = places.T[inside.T]
            if groups:
                penalty = groups.restricted(places, objective.alpha)
                self._step = GroupStep(metric, gram, penalty, is_formed=not rents)
            else:
                penalized = (places >= 0).astype(np.float64)
                rank = int(np.count_nonzero(self._h))
                factors = l1 * penalized, l2 * penalized
                self._step = GramStep(gram, *factors, inside, rank)
        elif K > 1:
            self._step = BlockStep(
                columns,
                self._curvature,
                self._added,
                l1,
                l2,
                self._n_free,
            )
        else:
            likely = np.zeros(self._design.n_features, dtype=bool)
            likely[needed] = True
            self._step = ColumnStep(
                columns,
                self._h,
                likely[features],
                negligible,
                l1,
                l2,
                self._n_free,
            )

    def covers(self, coordinates: Rows) -> bool:
        """Whether all given coordinates may change in the model."""
        return bool(np.isin(coordinates, self._coordinates).all())

    def _inside(self, whole: bool) -> Mask:
        """Return a mask of the entries of ``start`` in ``minimize`` that may change."""
        m, K = len(self._features), self._n_outputs
        inside = np.full((m + self._n_free, K), whole)
        features = np.searchsorted(self._features, self._coordinates // K)
        inside[features, self._coordinates % K] = True
        inside[m:] = True
        return inside

    def _joint_gram(self, inside: Mask) -> Floats:
        """Return H for several classes, ordered by classes, then features."""
        a, s, p = self._curvature.rank_one()
        a = a + self._added
        p = np.sqrt(s)[:, np.newaxis] * p
        columns = [np.flatnonzero(one) for one in inside.T]
        ends = np.cumsum([0] + [len(one) for one in columns])
        places = [slice(*pair) for pair in pairwise(ends)]
        size = int(ends[-1])

        def multiply(part: slice) -> Floats:
            total = np.zeros((size, size))
            for rows, block in self._columns.dense_blocks(part, size):
                A = np.ones((len(inside), len(block)))
                A[: len(self._features)] = (block - self._center).T
                Z = np.empty((size, len(block)))
                for k, (place, which) in enumerate(zip(places, columns, strict=True)):
                    own = A[which]
                    np.multiply(own, p[rows, k], out=Z[place])
                    own *= np.sqrt(a[rows, k])
                    total[place, place] += own @ own.T
                total -= Z @ Z.T
            return total

        return sum(self._design.each(multiply, self._design.row_slices))

    def _gram(self, h: Floats) -> Floats:
        """Return H of the features, and of the intercept if there is one."""
        gram = self._columns.gram(h, self._center)
        if not self._n_free:
            return gram
        # Centered columns are orthogonal to the column of the intercept.
        return linalg.block_diag(gram, h.sum())

    def _scaled_rows(self, h: Floats) -> Floats:
        """Return A with H = A Aᵀ, of the features and the intercept."""
        m, roots = len(self._features), np.sqrt(h)
        rows = np.empty((m + self._n_free, len(h)))
        rows[m:] = roots
        self._columns.write_transpose(roots, self._center, rows[:m])
        return rows

    def along(self, point: Point, p: Floats) -> Line:
        """Return the line from a point along p, by the model's columns if copied."""
        design = point.objective.design
        if design is not self._design or not self._columns.are_copied:
            return point.along(p)
        coef, intercept = design.split(p)
        return Line(point, p, self._columns.forward(coef[self._features]) + intercept)

    def change_of_dual(self, dscores: Floats) -> Floats:
        """Return the model's prediction of the change of the dual point by a step.

        If the model uses columns, the step has to be the last step.
        """
        if isinstance(self._step, ByColumns):
            return self._step.change_of_dual()
        if dscores.ndim == 1:
            return self._h * dscores
        return self._added * dscores + self._curvature.apply(dscores.copy())

    def minimize(
        self, w: Floats, gradient: Floats, tol: float, max_sweeps: int
    ) -> Floats:
        """Return v - w of shape (q,) for an approximate minimizer v.

        Parameters
        ----------
        w, gradient : ndarray of shape (q,)
            The point of the model and the gradient of the risk there.
        tol : float
            Largest violation of the conditions of optimality that is accepted.
        max_sweeps : int
            Limit on the sweeps over the coordinates.
        """
        K, d, m = self._n_outputs, self._design.n_features, len(self._features)
        start, slopes = self._take(w), self._take(gradient)
        # Centering the model's columns shifts the intercepts.
        start[m:] += self._center @ start[:m]
        slopes[:m] -= np.outer(self._center, slopes[m:].sum(axis=0))
        change = self._step.minimize(slopes, start, tol, max_sweeps) - start
        change[m:] -= self._center @ change[:m]
        p = np.zeros_like(w)
        p[: d * K].reshape(d, K)[self._features] = change[:m]
        p[d * K :] = change[m:].ravel()
        if K > 1 and self._invariant and self._n_free:
            # A common shift of all intercepts has no effect.
            p[d * K :] -= p[d * K :].mean()
        return p

    def _take(self, w: Floats) -> Floats:
        """Return the entries of the model's features, intercepts in the last row."""
        K, d = self._n_outputs, self._design.n_features
        rows = [w[: d * K].reshape(d, K)[self._features]]
        if self._n_free:
            rows.append(w[np.newaxis, d * K :])
        return np.ascontiguousarray(np.vstack(rows))

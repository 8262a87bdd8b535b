"""L1-penalized quadratic models of an objective, minimized by coordinate descent.

The model at w is <g, v - w> + <v - w, H (v - w)> / 2 + alpha * Omega(v) with the
gradient g and the Hessian H of the risk, over some coordinates of v; the others stay.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Protocol

import numpy as np
from scipy import linalg

from .column_descent import SHARES, ByColumns
from .column_step import BlockStep, ColumnStep
from .columns import Columns
from .kernels import coordinate_descent
from .losses._base import Floats, Mask, Rows
from .objective import Line, Objective, Point
from .rounding import EPS, ROUNDED, TINY

# H is formed for so many features of sparse data at most.
_MAX_GRAM = 1000

# Forming H takes the time of this many sweeps over the columns for each entry of a row:
# of more, where features may be too many for H later, and columns are needed anyway.
_SWEEPS_PER_ENTRY, _SWEEPS_PER_ENTRY_MANY = 0.5, 2.0

# H of a multinomial model is formed for so many coordinates in any case, and in single
# precision for more, of which memory holds so many, where it takes the time of so many
# products with X at most: in double precision up to so many multiplications.
_MAX_JOINT, _MAX_SINGLE = 600, 5000
_MAX_DOUBLE = 1e10
_MAX_PRODUCTS = 400.0

# After so many sweeps over a matrix, the system of the nonzero coordinates is solved,
# and again while some of them vanish, which takes one after the other where columns are
# nearly collinear: so many times over the number of all, since many take long.
_SWEEPS, _FACES = 30, 10_000

# For this share of all sweeps, systems of more coordinates than the rank are left to
# them.
_PATIENCE = 0.9


def by_columns_at_last(objective: Objective) -> bool:
    """Whether models of one score per row may outgrow their matrix."""
    design = objective.design
    return design.is_sparse and design.n_features > _MAX_GRAM


def forms_matrix(objective: Objective, n_coordinates: int) -> bool:
    """Whether models of several scores per row form their matrix."""
    if n_coordinates <= _MAX_JOINT:
        return True
    design = objective.design
    if n_coordinates > _MAX_SINGLE or design.is_text_like:
        return False
    return design.joint_gram_cost(n_coordinates) <= _MAX_PRODUCTS


class Step(Protocol):
    """What minimizes a model."""

    def minimize(
        self, gradient: Floats, start: Floats, tol: float, limit: int
    ) -> Floats:
        """Return the minimizer v, of the shape (m, k) of ``start``.

        ``gradient`` is that of the smooth part of the model at ``start``; the
        intercepts of the k scores, if there are any, are in the last row.
        """
        ...


class GramStep:
    """Coordinate descent on the matrix H.

    Where sweeps are slow to converge they alternate with the solution of the linear
    system of the coordinates that are not zero.

    Parameters
    ----------
    gram : ndarray of shape (q, q)
        H of the coordinates that may change, ordered by scores, then features.
    l1, l2 : ndarray of shape (q,)
        Factors of their penalties.
    inside : ndarray of bool of shape (m, k)
        Which those are.
    rank : int
        Of H, at most. While more coordinates are not zero their system, without the
        penalty ``l2``, has many solutions, and is left to the last sweeps.
    """

    def __init__(
        self, gram: Floats, l1: Floats, l2: Floats, inside: Mask, rank: int
    ) -> None:
        self._gram = np.ascontiguousarray(gram)
        # By rounding H may bend downwards along changes that all scores have in common:
        # features in large units lead out of bounds there. Classes of covtype as it is,
        # alpha 1e-6, ended 10 % above J.
        self._gram[np.diag_indices(len(gram))] *= 1.0 + ROUNDED
        self._l1, self._l2 = l1, l2
        self._inside = inside
        self._most = rank if l2.max(initial=0.0) == 0.0 else len(gram)
        # A common change of all intercepts changes nothing: systems are without the
        # last one, where there are several.
        self._solved = np.ones(len(gram), dtype=bool)
        free = np.flatnonzero((l1 == 0.0) & (l2 == 0.0))
        if len(free) > 1:
            self._solved[free[-1]] = False

    def minimize(
        self, gradient: Floats, start: Floats, tol: float, limit: int
    ) -> Floats:
        v, inside = start.T.copy(), self._inside.T
        v[inside] = self._descend(gradient.T[inside], v[inside], tol, limit)
        return v.T

    def _descend(
        self, gradient: Floats, start: Floats, tol: float, limit: int
    ) -> Floats:
        v, slopes = start.copy(), gradient.copy()
        n_rounds = max(1, limit // _SWEEPS)
        for n in range(n_rounds):
            violation, _ = coordinate_descent.sweep_gram(
                self._gram, slopes, v, self._l1, self._l2, tol, _SWEEPS
            )
            if violation <= max(tol, self._rounding(v)):
                break
            if n + 1 <= _PATIENCE * n_rounds and np.count_nonzero(v) > self._most:
                continue
            for _ in range(max(1, _FACES // max(len(v), 1))):
                if not self._solve_face(slopes, v):
                    break
        return v

    def _rounding(self, v: Floats) -> float:
        """Return about the rounding errors of slopes, by a bound of the size of H v."""
        roots = np.sqrt(np.maximum(self._gram.diagonal(), 0.0))
        return float(EPS * roots.max() * (roots @ np.abs(v)))

    def _solve_face(self, slopes: Floats, v: Floats) -> bool:
        """Move v towards the minimizer with its zeros and signs; update the slopes.

        Returns whether coordinates vanished on the way.
        """
        face = np.flatnonzero(self._solved & ((v != 0.0) | (self._l1 == 0.0)))
        face = face[self._gram[face, face] > 0.0]
        matrix = self._gram[np.ix_(face, face)]
        diagonal = np.einsum("ii->i", matrix)
        diagonal += self._l2[face]
        right = -slopes[face] - self._l2[face] * v[face]
        right -= self._l1[face] * np.sign(v[face])
        try:
            factor = linalg.cho_factor(matrix, check_finite=False)
        except linalg.LinAlgError:
            return False
        p = linalg.cho_solve(factor, right, check_finite=False)
        w, l1, l2 = v[face], self._l1[face], self._l2[face]
        crossing = (w * p < 0.0) & (l1 > 0.0)
        first = float((-w[crossing] / p[crossing]).min(initial=1.0))
        for length in (*SHARES, first):
            step = length * p
            vanishing = (w * (w + step) <= 4.0 * EPS * w * w) & (w != 0.0) & (l1 > 0.0)
            step = np.where(vanishing, -w, step)
            change = self._gram[:, face] @ step
            slope = float(
                (slopes[face] + l2 * w + 0.5 * (change[face] + l2 * step)) @ step
            )
            if slope + float(l1 @ (np.abs(w + step) - np.abs(w))) < 0.0:
                v[face] = w + step
                slopes += change
                return bool(vanishing.any())
        return False


def damping(point: Point, longest: float) -> Floats:
    """Return what models add to second derivatives, of the shape of the scores.

    Far on its wrong side a loss is linear, with a slope but hardly any curvature, and
    Newton's method would take steps of any size. A model's curvature is at least the
    slope over ``longest``, the longest step of a score on account of its own row, or
    over what the loss says is within reach.
    """
    o = point.objective
    limits = np.maximum(
        o.risk.oracle.curvature_radius(point.scores, o.targets), longest
    )
    slopes = np.abs(point.dual).T / limits
    slopes = np.ascontiguousarray(slopes.T)
    return np.maximum(slopes - point.curvature.diagonal(), 0.0)


class QuadraticModel:
    """The model of one iteration, on some features.

    Parameters
    ----------
    point : Point
        w, as a point of the objective of all rows, or of a sample of them for an
        approximate Hessian. Its regularizer is an ``ElasticNet``.
    coordinates : ndarray of shape (m,)
        Those of w that may change, of the penalized ones, in ascending order. Without
        H, all those of the same features may.
    needed : ndarray of int
        Those that are likely to change.
    n_sweeps : int
        About how many sweeps will be needed, which decides whether H is formed.
    longest : float
        As of ``damping``.
    negligible : float
        As of ``ColumnStep``.

    Attributes
    ----------
    by_columns : bool
        Whether H is not formed.
    accurate : bool
        Whether it is, in double precision, so that accuracy is cheap.
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
        self._curvature = point.curvature
        self._added = damping(point, longest)
        self._h = self._curvature.diagonal() + self._added
        self._coordinates = coordinates
        self._n_outputs = K = self._design.n_outputs or 1
        features = coordinates if K == 1 else np.unique(coordinates // K)
        self._features = features
        self._columns = columns = Columns(self._design, features)
        self._n_free = int(self._design.fit_intercept)
        self._l1, self._l2 = objective.penalties
        self._center = np.zeros(len(features))
        at_last = by_columns_at_last(objective)
        sweeps_per_entry = _SWEEPS_PER_ENTRY_MANY if at_last else _SWEEPS_PER_ENTRY
        worth_it = sweeps_per_entry * columns.row_size <= n_sweeps
        small = len(features) <= _MAX_GRAM
        if K > 1:
            by_gram = forms_matrix(objective, len(coordinates))
        else:
            by_gram = not columns.sparse or (small and worth_it)
        self.by_columns = not by_gram
        self.accurate = by_gram and (K == 1 or len(coordinates) <= _MAX_JOINT)
        self._step: Step
        if by_gram:
            inside = self._inside()
            if self._n_free:
                h = self._h if K == 1 else self._h.sum(axis=1)
                self._center = columns.adjoint(h) / max(h.sum(), TINY)
            gram = self._joint_gram(inside) if K > 1 else self._gram()
            penalized = np.ones(inside.shape)
            penalized[len(features) :] = 0.0
            penalized = penalized.T[inside.T]
            l1, l2 = self._l1 * penalized, self._l2 * penalized
            rank = int(np.count_nonzero(self._h))
            self._step = GramStep(gram, l1, l2, inside, rank)
        elif K > 1:
            self._step = BlockStep(
                columns,
                self._curvature,
                self._added,
                self._l1,
                self._l2,
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
                self._l1,
                self._l2,
                self._n_free,
            )

    def covers(self, coordinates: Rows) -> bool:
        """Whether all of these coordinates may change."""
        if self.by_columns:
            features = coordinates // self._n_outputs
            return bool(np.isin(features, self._features).all())
        return bool(np.isin(coordinates, self._coordinates).all())

    def _inside(self) -> Mask:
        """Return which entries of ``start`` in ``minimize`` may change."""
        m, K = len(self._features), self._n_outputs
        inside = np.zeros((m + self._n_free, K), dtype=bool)
        features = np.searchsorted(self._features, self._coordinates // K)
        inside[features, self._coordinates % K] = True
        inside[m:] = True
        return inside

    def _joint_gram(self, inside: Mask) -> Floats:
        """Return H for several classes, ordered by classes, then features.

        Large matrices of many rows are computed in single precision, which does for a
        model unless classes can be separated: that leaves little curvature to lose.
        """
        a, s, p = self._curvature.rank_one()
        a = a + self._added
        p = np.sqrt(s)[:, np.newaxis] * p
        columns = [np.flatnonzero(one) for one in inside.T]
        ends = np.cumsum([0] + [len(one) for one in columns])
        places = [slice(*pair) for pair in pairwise(ends)]
        is_cheap = self._design.n_rows * ends[-1] ** 2 <= _MAX_DOUBLE
        dtype = np.float64 if self.accurate or is_cheap else np.float32
        size = int(ends[-1])

        def multiply(part: slice) -> Floats:
            total = np.zeros((size, size))
            for rows, block in self._columns.dense_blocks(part, size):
                A = np.ones((len(inside), len(block)), dtype=dtype)
                A[: len(self._features)] = (block - self._center).T
                Z = np.empty((size, len(block)), dtype=dtype)
                for k, (place, which) in enumerate(zip(places, columns, strict=True)):
                    own = A[which]
                    np.multiply(own, p[rows, k].astype(dtype), out=Z[place])
                    own *= np.sqrt(a[rows, k]).astype(dtype)
                    total[place, place] += own @ own.T
                total -= Z @ Z.T
            return total

        return sum(self._design.each(multiply, self._design.row_slices))

    def _gram(self) -> Floats:
        """Return H of the features, and of the intercept if there is one."""
        gram = self._columns.gram(self._h, self._center)
        if not self._n_free:
            return gram
        # Columns less their means are orthogonal to that of the intercept.
        return linalg.block_diag(gram, self._h.sum())

    def along(self, point: Point, p: Floats) -> Line:
        """Return the line from a point, by the columns of the model if it has them."""
        design = point.objective.design
        if design is not self._design or not self._columns.are_copied:
            return point.along(p)
        coef, intercept = design.split(p)
        return Line(point, p, self._columns.forward(coef[self._features]) + intercept)

    def change_of_dual(self, dscores: Floats) -> Floats:
        """Return the change of the dual point that the model predicts for a step.

        That is the last one, where the model is given by columns.
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
            Largest violation of the conditions of optimality that will do.
        max_sweeps : int
            Limit on the sweeps over the coordinates.
        """
        K, d, m = self._n_outputs, self._design.n_features, len(self._features)
        start, slopes = self._take(w), self._take(gradient)
        # In terms of columns less their center the intercepts are other ones.
        start[m:] += self._center @ start[:m]
        slopes[:m] -= np.outer(self._center, slopes[m:].sum(axis=0))
        change = self._step.minimize(slopes, start, tol, max_sweeps) - start
        change[m:] -= self._center @ change[:m]
        p = np.zeros_like(w)
        p[: d * K].reshape(d, K)[self._features] = change[:m]
        p[d * K :] = change[m:].ravel()
        if K > 1 and self._n_free:
            # A common shift of all intercepts changes nothing.
            p[d * K :] -= p[d * K :].mean()
        return p

    def _take(self, w: Floats) -> Floats:
        """Return the entries of the features, intercepts in the last row."""
        K, d = self._n_outputs, self._design.n_features
        rows = [w[: d * K].reshape(d, K)[self._features]]
        if self._n_free:
            rows.append(w[np.newaxis, d * K :])
        return np.ascontiguousarray(np.vstack(rows))

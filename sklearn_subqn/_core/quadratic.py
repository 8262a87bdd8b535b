"""L1-penalized quadratic models of an objective, minimized by coordinate descent.

The model at w is <g, v - w> + <v - w, H (v - w)> / 2 + alpha * Omega(v) with the
gradient g and the Hessian H of the risk, over some coordinates of v; the others stay.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from scipy import linalg

from .kernels import coordinate_descent
from .losses._base import Floats, Rows
from .objective import Point

# H is formed for so many features of sparse data at most.
_MAX_GRAM = 1000

# Forming H takes the time of this many sweeps over the columns for each entry of a row.
_SWEEPS_PER_ENTRY = 0.4

# Multinomial models of so many coefficients at most are minimized over all classes at
# once.
_MAX_JOINT = 600

# The longest step that a model takes in a score on account of its own row.
_LONGEST = 50.0

# After so many sweeps over a matrix, the system of the nonzero coordinates is solved.
_SWEEPS = 30

# Sweeps over columns are followed by an extrapolation after so many blocks of so many.
_MEMORY, _BLOCK = 5, 5

# Rounds over the classes of a multinomial model.
_MAX_ROUNDS = 10


class Step(Protocol):
    """What minimizes a model over the coefficients of one score."""

    def minimize(
        self, gradient: Floats, coef: Floats, free: Floats, tol: float, limit: int
    ) -> tuple[Floats, Floats]:
        """Return coefficients of shape (m,) and the intercept, of shape (0,) or (1,).

        ``gradient``, of shape (m,) or (m + 1,) with the intercept last, is that of the
        smooth part of the model at ``coef`` and ``free``.
        """
        ...


class GramStep:
    """Coordinate descent on the matrix H, of the columns' own size.

    Where sweeps are slow to converge they alternate with the solution of the linear
    system of the coordinates that are not zero, up to the first change of a sign.
    """

    def __init__(self, gram: Floats, l1: Floats, l2: Floats) -> None:
        self._gram = np.ascontiguousarray(gram)
        self._l1, self._l2 = l1, l2

    def minimize(
        self, gradient: Floats, coef: Floats, free: Floats, tol: float, limit: int
    ) -> tuple[Floats, Floats]:
        m = len(coef)
        v = self.descend(gradient, np.concatenate([coef, free]), tol, limit)
        return v[:m], v[m:]

    def descend(
        self, gradient: Floats, start: Floats, tol: float, limit: int
    ) -> Floats:
        """Return the minimizer, from v = ``start`` and the gradient there."""
        v, slopes = start.copy(), gradient.copy()
        for _ in range(max(1, limit // _SWEEPS)):
            violation, _ = coordinate_descent.sweep_gram(
                self._gram, slopes, v, self._l1, self._l2, tol, _SWEEPS
            )
            if violation <= tol:
                break
            self._solve_face(slopes, v)
        return v

    def _solve_face(self, slopes: Floats, v: Floats) -> None:
        """Move v towards the minimizer with its signs, and update the slopes."""
        face = np.flatnonzero((v != 0.0) | (self._l1 == 0.0))
        face = face[self._gram[face, face] > 0.0]
        matrix = self._gram[np.ix_(face, face)]
        diagonal = np.einsum("ii->i", matrix)
        diagonal += self._l2[face] + 1e-14 * diagonal
        right = -slopes[face] - self._l2[face] * v[face]
        right -= self._l1[face] * np.sign(v[face])
        try:
            factor = linalg.cho_factor(matrix, check_finite=False)
        except linalg.LinAlgError:
            return
        p = linalg.cho_solve(factor, right, check_finite=False)
        crossing = (v[face] * p < 0.0) & (self._l1[face] > 0.0)
        ratios = np.full(len(face), np.inf)
        ratios[crossing] = -v[face][crossing] / p[crossing]
        first = float(ratios.min(initial=np.inf))
        step = min(1.0, first)
        v[face] += step * p
        if first <= 1.0:
            v[face[ratios == first]] = 0.0
        slopes += self._gram[:, face] @ (step * p)


class ColumnStep:
    """Coordinate descent on the columns themselves (CSC).

    Every few sweeps the point is extrapolated from those before, and kept if the model
    is smaller there (Anderson acceleration; Bertrand and Massias 2021, Alg. 2).
    """

    def __init__(self, columns: Any, h: Floats, l1: float, l2: float) -> None:
        self._columns = columns
        self._h = h
        self._diagonal = columns.squared_adjoint(h)
        self._l1, self._l2 = l1, l2

    def minimize(
        self, gradient: Floats, coef: Floats, free: Floats, tol: float, limit: int
    ) -> tuple[Floats, Floats]:
        m, X = len(coef), self._columns.block
        start = np.concatenate([coef, free])
        gradient = np.ascontiguousarray(gradient)
        v, product = start.copy(), np.zeros_like(self._h)
        points = [start]
        for done in range(0, limit, _BLOCK):
            violation, _ = coordinate_descent.sweep_columns(
                X.indptr,
                X.indices,
                X.data,
                np.arange(m),
                self._h,
                product,
                gradient[:m],
                self._diagonal,
                v[:m],
                self._l1,
                self._l2,
                float(gradient[m:].sum()),
                v[m:],
                tol,
                min(_BLOCK, limit - done),
            )
            if violation <= tol:
                break
            points.append(v.copy())
            if len(points) > _MEMORY:
                guess = _extrapolate(np.array(points))
                products = self._product(guess - start)
                if self._value(guess, start, gradient, products) < self._value(
                    v, start, gradient, product
                ):
                    v, product = guess, products
                points = [v.copy()]
        return v[:m], v[m:]

    def _product(self, change: Floats) -> Floats:
        m = len(self._diagonal)
        product = self._columns.forward(change[:m]) + change[m:].sum()
        product *= self._h
        return product

    def _value(
        self, v: Floats, start: Floats, gradient: Floats, product: Floats
    ) -> float:
        """Return the model at v, given h X (v - w)."""
        m = len(self._diagonal)
        change = v - start
        moved = self._columns.adjoint(product)
        value = float(gradient @ change)
        value += 0.5 * float(moved @ change[:m] + product.sum() * change[m:].sum())
        value += self._l1 * float(np.abs(v[:m]).sum())
        return value + 0.5 * self._l2 * float(v[:m] @ v[:m])


def _extrapolate(points: Floats) -> Floats:
    """Return the affine combination of points of shape (k, m) that changes the least.

    Coordinates that are zero in the last point stay so.
    """
    changes = np.diff(points, axis=0)
    matrix = changes @ changes.T
    matrix[np.diag_indices_from(matrix)] += 1e-10 * float(np.trace(matrix))
    weights = np.linalg.solve(matrix, np.ones(len(matrix)))
    guess: Floats = (weights / weights.sum()) @ points[1:]
    guess[points[-1] == 0.0] = 0.0
    return guess


def damping(point: Point) -> Floats:
    """Return what models add to second derivatives, of the shape of the scores.

    Far on its wrong side a loss is linear, with a slope but hardly any curvature, and
    Newton's method would take steps of any size. A model's curvature is at least the
    slope over ``_LONGEST``.
    """
    slopes = np.abs(point.dual) / _LONGEST
    return np.maximum(slopes - point.curvature.diagonal(), 0.0)


class QuadraticModel:
    """The model of one iteration, on some features.

    Parameters
    ----------
    point : Point
        w, as a point of the objective of all rows, or of a sample of them for an
        approximate Hessian. Its regularizer is an ``ElasticNet``.
    features : ndarray of shape (m,)
        Those that may change.
    n_sweeps : int
        About how many sweeps will be needed, which decides whether H is formed.
    """

    def __init__(self, point: Point, features: Rows, n_sweeps: int) -> None:
        objective = point.objective
        self._design = objective.design
        self._curvature = point.curvature
        diagonal = self._curvature.diagonal() + damping(point)
        self._diagonals = list(np.ascontiguousarray(np.atleast_2d(diagonal.T)))
        self._features = features
        self._columns = columns = self._design.columns(features)
        self._n_outputs = len(self._diagonals)
        self._n_free = int(self._design.fit_intercept)
        self._l1, self._l2 = objective.penalties
        worth_it = _SWEEPS_PER_ENTRY * columns.row_size <= n_sweeps
        small = len(features) <= _MAX_GRAM
        self._joint: GramStep | None = None
        self._steps: list[Step] = []
        if 1 < self._n_outputs <= _MAX_JOINT / max(len(features), 1):
            self._joint = self._joint_step()
        elif columns.sparse and not (small and worth_it):
            self._steps = [
                ColumnStep(columns, self._diagonals[k], self._l1, self._l2)
                for k in range(self._n_outputs)
            ]
        else:
            self._steps = [
                GramStep(self._gram(self._diagonals[k]), *self._penalties(1))
                for k in range(self._n_outputs)
            ]

    def _joint_step(self) -> GramStep:
        """Return the step for all classes together."""
        K = self._n_outputs
        blocks = [[np.empty(0)] * K for _ in range(K)]
        for k in range(K):
            blocks[k][k] = self._gram(self._diagonals[k])
            for j in range(k):
                blocks[k][j] = blocks[j][k] = -self._gram(
                    self._curvature.coupling(k, j)
                )
        return GramStep(np.block(blocks), *self._penalties(K))

    def _gram(self, h: Floats) -> Floats:
        """Return Xᵀ diag(h) X of the features, and of the intercept if there is one."""
        gram = self._columns.gram(h)
        if not self._n_free:
            return gram
        border = self._columns.adjoint(h)[:, np.newaxis]
        return np.block([[gram, border], [border.T, np.array([[h.sum()]])]])

    def _penalties(self, n_outputs: int) -> tuple[Floats, Floats]:
        """Return the factors of |v| and of v² / 2 for each coordinate of a step."""
        penalized = np.ones(len(self._features) + self._n_free)
        penalized[len(self._features) :] = 0.0
        penalized = np.tile(penalized, n_outputs)
        return self._l1 * penalized, self._l2 * penalized

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
        start = self._take(w)
        v, slopes = start.copy(), self._take(gradient)
        if self._joint is not None:
            flat = self._joint.descend(slopes.ravel(), v.ravel(), tol, max_sweeps)
            v = flat.reshape(v.shape)
        elif K == 1:
            self._minimize_one(0, v, slopes[0], tol, max_sweeps)
        else:
            self._minimize_all(v, slopes, tol, max_sweeps)
        change = v - start
        p = np.zeros_like(w)
        p[: d * K].reshape(d, K)[self._features] = change[:, :m].T
        p[d * K :] = change[:, m:].ravel()
        if K > 1 and self._n_free:
            # A common shift of all intercepts changes nothing.
            p[d * K :] -= p[d * K :].mean()
        return p

    def _minimize_one(
        self, k: int, v: Floats, gradient: Floats, tol: float, max_sweeps: int
    ) -> None:
        m = len(self._features)
        v[k, :m], v[k, m:] = self._steps[k].minimize(
            gradient, v[k, :m], v[k, m:], tol, max_sweeps
        )

    def _minimize_all(
        self, v: Floats, gradient: Floats, tol: float, max_sweeps: int
    ) -> None:
        """Go through the classes, each given the others, until all are at rest."""
        m = len(self._features)
        dscores = np.zeros((self._design.n_rows, self._n_outputs))
        for _ in range(_MAX_ROUNDS):
            at_rest = True
            for k in range(self._n_outputs):
                dual = self._curvature.apply_one(k, dscores)
                slopes = gradient[k].copy()
                slopes[:m] += self._columns.adjoint(dual)
                slopes[m:] += dual.sum()
                if self._violation(v[k], slopes) <= tol:
                    continue
                at_rest = False
                before = v[k].copy()
                self._minimize_one(k, v, slopes, tol, max_sweeps)
                change = v[k] - before
                dscores[:, k] += self._columns.forward(change[:m]) + change[m:].sum()
            if at_rest:
                return

    def _violation(self, v: Floats, slopes: Floats) -> float:
        m = len(self._features)
        g = slopes[:m] + self._l2 * v[:m] + self._l1 * np.sign(v[:m])
        inside = np.maximum(np.abs(g) - self._l1, 0.0)
        violations = np.where(v[:m] == 0.0, inside, np.abs(g))
        return float(np.abs(np.append(violations, slopes[m:])).max())

    def _take(self, w: Floats) -> Floats:
        """Return the entries of the features, and intercepts, of shape (k, m or so)."""
        K, d = self._n_outputs, self._design.n_features
        rows = [w[: d * K].reshape(d, K)[self._features].T]
        if self._n_free:
            rows.append(w[d * K :, np.newaxis])
        return np.ascontiguousarray(np.hstack(rows))

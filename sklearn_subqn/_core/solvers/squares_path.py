"""Least squares for a path of penalty strengths, by rows of one Gram matrix.

With H = Xᵀ S X the risk is R(w) = R(0) + <g, w> + ½ wᵀ H w, so that coordinate descent
for any other strength needs no product with X, but only the rows of H of the nonzero
coordinates (the "covariance updates" of Friedman, Hastie and Tibshirani 2010, section
2.2). Of many features, those whose slopes are large at the previous strength are
included, and then those that violate the conditions of optimality (the sequential
strong rule, Tibshirani et al. 2012, section 7). With several scores per row H is the
Kronecker product of a diagonal metric and such a matrix. R is half a weighted sum of
squared residuals, whose derivatives u are a dual point with Xᵀu = v = ∇R(w). For 0 <= c
<= 1 the dual point c u proves the gap

    (1 - c)² R(w) + alpha (Omega(w) + Omega*(-c v / alpha)) + c <w, v>.   (1)

Beside an elastic net, coefficients without a penalty such as the intercept are
eliminated from H and g by a Schur complement, which is least squares on the residuals
of the other columns (Frisch and Waugh 1933, Lovell 1963).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from .. import lapack
from ..driver.stopping import sizes_of
from ..kernels import coordinate_descent
from ..losses._base import Floats, Mask, Rows
from ..memory import COPY_SIZE
from ..objectives.objective import Objective
from ..regularizers import L2, ElasticNet, GroupPenalty
from ..rounding import MOST_STEPS, ROUNDED, rounding
from ..rows.columns import MatrixColumns
from ..steps.gram_step import GramStep
from ..steps.group_step import GroupStep


def is_least_squares(objective: Objective) -> bool:
    """Whether the problem is least squares with an elastic net, on undivided rows."""
    return (
        objective.loss.quadratic
        and isinstance(objective.regularizer, (L2, ElasticNet))
        and objective.design.in_one_place
        and not objective.design.several_scores
        and objective.n_free <= 1
    )


def has_squares_path(objective: Objective) -> bool:
    """Whether rows of a Gram matrix determine the risk up to a constant."""
    if objective.groups is None:
        q = objective.n_params
        few = q <= objective.design.n_rows and q * q <= COPY_SIZE
        return few and is_least_squares(objective)
    if not (objective.loss.oracle.quadratic and objective.design.in_one_place):
        return False
    metric = _metric(objective)
    return metric is not None and not np.any(metric - np.diag(metric.diagonal()))


def _metric(objective: Objective) -> Floats | None:
    """Return the metric of the scores of a row, if all rows have the same one."""
    if objective.loss.quadratic:
        return np.ones((1, 1))
    product = objective.origin().curvature.product()
    return None if product is None else product[1]


class GramRows:
    """Rows of H = Aᵀ S A for some columns of A, which is X and a column of ones.

    Parameters
    ----------
    objective : Objective
        Objective with the rows and weights.

    Attributes
    ----------
    rows : ndarray of shape (m, q)
        The rows for the m columns that are included.
    places : ndarray of int of shape (q,)
        The row of each column, -1 for columns that are not included.
    """

    def __init__(self, objective: Objective) -> None:
        self.design, self.weights = objective.design, objective.weights
        self._q = self.design.n_features + int(self.design.fit_intercept)
        self.rows, self.places = np.empty((0, self._q)), np.full(self._q, -1)
        # More rows than that of the intercept and these would need more than a copy, or
        # than half the memory of a dense X.
        self._most = 1 + max(COPY_SIZE, self.design.n_entries // 2) // self._q

    @classmethod
    def whole(cls, objective: Objective) -> GramRows:
        """Return all rows, for one score per row."""
        gram = cls(objective)
        matrix = objective.risk.hessian(objective.origin().curvature).matrix()
        gram.rows, gram.places = np.ascontiguousarray(matrix), np.arange(gram._q)
        return gram

    def include(self, columns: Rows) -> bool:
        """Include columns and return True, or return False if there are too many."""
        new = columns[self.places[columns] < 0]
        if len(self.rows) + len(new) > self._most:
            return False
        if not len(new):
            return True
        d, s = self.design.n_features, self.weights[:, np.newaxis]
        found = [self.rows]
        # With many rows a copy has an eighth of the size of X, so that X is read at
        # most nine times.
        step = max(1, COPY_SIZE // len(s), int(self.design.row_size) // 8)
        for start in range(0, len(new), step):
            part = new[start : start + step]
            weighted = np.repeat(s, len(part), axis=1)
            inside = part < d
            block = MatrixColumns(self.design, part[inside]).block
            weighted[:, inside] *= block.toarray() if sparse.issparse(block) else block
            products = np.empty((len(part), self._q))
            products[:, :d] = self.design.products_of_columns(weighted).T
            products[:, d:] = weighted.sum(axis=0)[:, np.newaxis]
            found.append(products)
        self.places[new] = len(self.rows) + np.arange(len(new))
        self.rows = np.concatenate(found)
        return True

    def among(self, columns: Rows) -> Floats:
        """Return the entries of H for pairs of the given columns."""
        return self.rows[np.ix_(self.places[columns], columns)]

    def apply(self, W: Floats) -> Floats:
        """Return H W for W of shape (q, k), whose nonzero rows are included."""
        used = np.flatnonzero(W.any(axis=1))
        return self.rows[self.places[used]].T @ W[used]


class SquaresPath:
    """Minimizers of squared errors plus a penalty, for any strength.

    Parameters
    ----------
    objective : Objective
        Objective of any strength for which ``has_squares_path`` is True.
    free : ndarray of bool, of shape (n_coef,), optional
        Mask of the coefficients whose elastic net is left out.
    other : SquaresPath, optional
        A path of other targets for the same rows.
    """

    def __init__(
        self,
        objective: Objective,
        free: Mask | None = None,
        other: SquaresPath | None = None,
    ) -> None:
        origin = objective.origin()
        metric: Any = _metric(objective)
        self._metric: Floats = metric
        self._value = origin.risk
        self._gradient = origin.risk_gradient.reshape(-1, len(self._metric))
        self._gram: GramRows
        if other is not None and other._gram.weights is objective.weights:
            self._gram = other._gram
        elif objective.groups is None:
            self._gram = GramRows.whole(objective)
        else:
            self._gram = GramRows(objective)
        sizes = objective.risk.column_sizes.reshape(self._gradient.shape)
        # The root of the diagonal of H.
        self._norms = sizes * np.sqrt(self._metric.diagonal())
        others = np.ones(len(sizes), dtype=bool)
        others[: self._gram.design.n_features] = False if free is None else free
        self._others, self._penalized = np.flatnonzero(others), np.flatnonzero(~others)
        self._gram.include(self._others)
        self._eliminate(sizes[self._others, 0])
        # The slopes where the penalized coefficients are zero.
        self._start = self._gradient.copy()
        self._balance(np.zeros((1, *sizes.shape)), self._start[np.newaxis])
        # Sweeps stop when no slope changes by more than this tolerance.
        self._tol = ROUNDED * float(np.abs(self._start).max(initial=0.0))

    def _eliminate(self, norms: Floats) -> None:
        """Invert the matrix of the other coefficients, without a penalty.

        ``norms`` are the norms of their columns. In units in which the diagonal is one,
        eigenvalues that vanish up to rounding belong to linearly dependent columns.
        Nothing is proven about these.
        """
        norms = np.where(norms > 0.0, norms, 1.0)
        matrix = self._gram.among(self._others) / np.outer(norms, norms)
        values, vectors = lapack.eigh(matrix)
        vectors = vectors / norms[:, np.newaxis]
        kept, self._least = values > ROUNDED * len(values), 0.0
        if kept.all():
            error = len(values) * rounding(self._gram.design.n_rows)
            self._least = max(float(values.min(initial=1.0)) - error, 0.0)
        self._inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T

    def minimize(
        self,
        objective: Objective,
        alphas: Floats,
        start: Floats,
        stored: Callable[[Floats], Floats],
        tol: float,
    ) -> tuple[Floats, Floats]:
        """Return minimizers in stored precision, and bounds of relative gaps.

        Parameters
        ----------
        objective : Objective
            The objective of the path with another strength and share of the L1 norm.
        alphas : ndarray of shape (n_alphas,)
            Strengths in descending order. The minimization for a strength starts at the
            previous minimizer.
        start : ndarray of shape (q,)
        stored : callable
            Rounds parameters to the stored precision.
        tol : float
            Relative gap that is needed for norms of groups.

        Returns
        -------
        minimizers : ndarray of shape (m, q)
        gaps : ndarray of shape (m,)
            Relative gaps, not finite where objectives vanish. m is smaller than
            n_alphas if too many features are nonzero for the last strengths.
        """
        alphas = alphas[: max(1, COPY_SIZE // len(start))]
        if groups := objective.groups:
            found = self._descend_groups(groups, alphas, start, tol)
        else:
            found = self._descend(objective, alphas, start)
        if not len(found):
            return np.empty((0, len(start))), np.empty(0)
        alphas = alphas[: len(found)]
        slopes = self._slopes(found)
        self._balance(found, slopes)
        w = np.array([stored(W.ravel()) for W in found], dtype=np.float64)
        rounded = w.reshape(found.shape)
        p = rounded - found
        excess = np.sum(p * (slopes + 0.5 * self._product(p)), axis=(1, 2))
        penalties = self._penalties(objective, alphas, found)
        excess += self._penalties(objective, alphas, rounded) - penalties
        gaps, values = self._gaps(objective, alphas, penalties, found, slopes)
        sizes = sizes_of(values + excess, objective.risk.infimum)
        return w, (gaps + np.abs(excess)) / sizes

    def _product(self, W: Floats) -> Floats:
        """Return H W for each of several W of shape (q, k)."""
        n, q, K = W.shape
        columns = W.transpose(1, 0, 2).reshape(q, n * K)
        product = self._gram.apply(columns).reshape(q, n, K).transpose(1, 0, 2)
        return product @ self._metric

    def _slopes(self, W: Floats) -> Floats:
        """Return the gradient of R at each of several W of shape (q, k)."""
        return self._gradient + self._product(W)

    def _balance(self, W: Floats, slopes: Floats) -> None:
        """Minimize over other coefficients, in place; then their slopes vanish."""
        metric = self._metric.diagonal()
        border = self._gram.rows[self._gram.places[self._others]]
        change = -(self._inverse @ slopes[:, self._others]) / metric
        W[:, self._others] += change
        slopes += border.T @ (metric * change)

    def _descend(self, objective: Objective, alphas: Floats, start: Floats) -> Floats:
        """Return the penalized coefficients for each alpha with an elastic net."""
        others, penalized = self._others, self._penalized
        border = self._gram.rows[np.ix_(others, penalized)]
        gram = self._gram.rows[np.ix_(penalized, penalized)]
        gram -= border.T @ self._inverse @ border
        ratio, w = objective.elastic_net.l1_ratio, start[penalized]
        first, found = self._start[penalized, 0], np.zeros((len(alphas), len(start), 1))
        l1, l2 = np.empty_like(w), np.empty_like(w)
        for i, alpha in enumerate(alphas):
            l1[:], l2[:] = alpha * ratio, alpha * (1.0 - ratio)
            slopes = first + gram @ w
            violation, _ = coordinate_descent.sweep_gram(
                gram, slopes, w, l1, l2, self._tol, MOST_STEPS
            )
            if not violation <= self._tol:
                # With strongly correlated features sweeps alone converge slowly.
                inside, rank = np.ones((len(w), 1), dtype=bool), objective.design.n_rows
                step = GramStep(gram.copy(), l1, l2, inside, rank)
                columns = slopes[:, np.newaxis], w[:, np.newaxis]
                w[:] = step.minimize(*columns, self._tol, MOST_STEPS)[:, 0]
            found[i, penalized, 0] = w
        return found

    def _descend_groups(
        self, groups: GroupPenalty, alphas: Floats, start: Floats, tol: float
    ) -> Floats:
        """Return minimizers with norms of groups, for fewer alphas if rows run out.

        Groups that are nonzero, or whose slopes are large, are included first.
        """
        W, K = start.reshape(self._gradient.shape).copy(), len(self._metric)
        labels, d = groups.labels[::K], self._gram.design.n_features
        free, last = self._others, float(alphas[0])
        found: list[Floats] = []
        if not self._gram.include(np.append(np.flatnonzero(W[:d].any(axis=1)), free)):
            return np.array(found)
        slopes = self._slopes(W[np.newaxis])[0]
        self._balance(W[np.newaxis], slopes[np.newaxis])
        for alpha in map(float, alphas):
            accuracy, near = max(self._tol, tol * alpha), max(0.0, 2.0 * alpha - last)
            more = groups.nearness(slopes.ravel(), near) > accuracy
            more |= groups.used(W.ravel())
            inside = np.zeros_like(more)
            while True:
                inside |= more
                columns = np.append(np.flatnonzero(inside[labels]), free)
                if not self._gram.include(columns):
                    return np.array(found)
                if len(columns):
                    places = columns * K + np.arange(K)[:, np.newaxis]
                    places[:, columns >= d] = -1
                    step = GroupStep(
                        self._metric,
                        self._gram.among(columns),
                        groups.restricted(places.ravel(), alpha),
                        is_formed=True,
                    )
                    own = slopes[columns], W[columns]
                    W[columns] = step.minimize(*own, accuracy, MOST_STEPS)
                slopes = self._slopes(W[np.newaxis])[0]
                excess = groups.nearness(slopes.ravel(), alpha)
                more = ~inside & (excess > accuracy)
                if not more.any():
                    break
            found.append(W.copy())
            last = alpha
        return np.array(found)

    def _gaps(
        self,
        objective: Objective,
        alphas: Floats,
        penalties: Floats,
        W: Floats,
        slopes: Floats,
    ) -> tuple[Floats, Floats]:
        """Return the gaps (1) with bounds of their rounding errors, and J(w)."""
        n, norms, others = len(W), self._norms, self._others
        risk = self._value + 0.5 * np.sum(W * (self._gradient + slopes), axis=(1, 2))
        # Rounding errors of entries of H, g and R(0) are relative to the norms of
        # columns and targets.
        size = math.sqrt(2.0 * self._value) + np.sum(np.abs(W) * norms, axis=(1, 2))
        error = 2.0 * rounding(objective.design.n_rows + norms.size) * size
        # The dual point with vanishing other slopes that is nearest to u.
        own = np.where(norms > 0.0, norms, 1.0)[others]
        left = np.abs(slopes[:, others]) / own + error[:, np.newaxis, np.newaxis]
        error += np.sqrt(np.sum(left * left, axis=(1, 2)) / self._least)
        radius = error[:, np.newaxis] * norms[self._penalized].ravel()
        v, w = (each[:, self._penalized].reshape(n, -1) for each in (slopes, W))
        c, conjugates = _dual_points(objective, alphas, v, radius)
        gap = (1.0 - c) ** 2 * risk + penalties + c * np.sum(v * w, axis=1)
        gap += conjugates
        m = v.shape[1]
        return np.abs(gap) + error * size + rounding(m) * penalties, risk + penalties

    def _penalties(self, objective: Objective, alphas: Floats, W: Floats) -> Floats:
        """Return alpha * Omega(w) of the penalized coefficients for each W."""
        w = W[:, self._penalized].reshape(len(W), -1)
        if groups := objective.groups:
            return alphas * np.array([groups.value(each) for each in w])
        ratio = objective.elastic_net.l1_ratio
        squares = 0.5 * (1.0 - ratio) * np.sum(w * w, axis=1)
        return alphas * (ratio * np.abs(w).sum(axis=1) + squares)


def _dual_points(
    objective: Objective, alphas: Floats, v: Floats, radius: Floats
) -> tuple[Floats, Floats]:
    """Return c, and alpha * Omega*(-c u / alpha) for u within the radius of each v.

    The dual point is shrunk only if the conjugate would be infinite.
    """
    if groups := objective.groups:
        each = zip(v, radius, alphas, strict=True)
        pairs = [(-slopes / alpha, r / alpha) for slopes, r, alpha in each]
        if not groups.bends:
            c = np.array([groups.scaling_within(*pair) for pair in pairs])
            return c, np.zeros(len(v))
        conjugates = np.array([groups.conjugate_within(*pair) for pair in pairs])
        return np.ones(len(v)), alphas * conjugates
    ratio = objective.elastic_net.l1_ratio
    l1, l2 = alphas * ratio, alphas * (1.0 - ratio)
    steepest = np.abs(v) + radius
    largest = steepest.max(axis=1, initial=0.0)
    shrunk = (l2 == 0.0) & (largest > 0.0)
    c = np.where(shrunk, np.minimum(1.0, l1 / np.where(shrunk, largest, 1.0)), 1.0)
    squares = np.sum(np.maximum(steepest - l1[:, np.newaxis], 0.0) ** 2, axis=1)
    return c, np.where(l2 > 0.0, 0.5 * squares / np.where(l2 > 0.0, l2, 1.0), 0.0)

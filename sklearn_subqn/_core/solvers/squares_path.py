"""Least squares for a path of penalty strengths, with data shared by all strengths.

With H = Xᵀ S X the risk is R(w) = R(0) + <g, w> + ½ wᵀ H w, so that coordinate descent
for any other strength needs no product with X if H is formed (the "covariance updates"
of Friedman, Hastie and Tibshirani 2010, section 2.2). Norms of groups of many features
need only columns of X instead. They are copied once, for groups whose slopes are large
at the previous strength, and then for those that violate the conditions of optimality
(the sequential strong rule, Tibshirani et al. 2012, section 7). With several scores per
row H is the Kronecker product of a diagonal metric and such a matrix. R is half a
weighted sum of squared residuals, whose derivatives u are a dual point with Xᵀu = v =
∇R(w). For 0 <= c <= 1 the dual point c u proves the gap

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
        return _has_small_matrix(objective) and is_least_squares(objective)
    if not (objective.loss.oracle.quadratic and objective.design.in_one_place):
        return False
    metric = _metric(objective)
    return metric is not None and not np.any(metric - np.diag(metric.diagonal()))


def _has_small_matrix(objective: Objective) -> bool:
    """Whether the Gram matrix of all columns is small, with at least as many rows."""
    design = objective.design
    q = design.n_features + int(design.fit_intercept)
    return q <= design.n_rows and q * q <= COPY_SIZE


def _metric(objective: Objective) -> Floats | None:
    """Return the metric of the scores of a row, if all rows have the same one."""
    if objective.loss.quadratic:
        return np.ones((1, 1))
    product = objective.origin().curvature.product()
    return None if product is None else product[1]


class GroupSet:
    """A working set of groups, and A with H = A Aᵀ for its features.

    The rows of A are columns of X times the roots of the weights, centered if there is
    an intercept. All groups are in the set from the start, with H instead of A, if H is
    small and there are at least as many rows as features.

    Parameters
    ----------
    objective : Objective
        Objective with the rows and weights.
    groups : GroupPenalty
    metric : ndarray of shape (k, k)

    Attributes
    ----------
    features : ndarray of int of shape (m,)
        The features of the groups, in the order of the rows of A or H.
    inside : ndarray of bool of shape (n_groups,)
        Mask of the groups.
    """

    def __init__(
        self, objective: Objective, groups: GroupPenalty, metric: Floats
    ) -> None:
        self.design, self.weights = objective.design, objective.weights
        self._metric, self._roots = metric, np.sqrt(self.weights)
        d, n = self.design.n_features, len(self.weights)
        self._labels = groups.labels[:: len(metric)]
        self.center = np.zeros(d)
        if self.design.fit_intercept:
            self.center = self.design.products_of_columns(self.weights)
        self._is_formed = _has_small_matrix(objective)
        self.inside = np.full(len(groups.norm), self._is_formed)
        self.features = np.arange(d if self._is_formed else 0)
        if self._is_formed:
            columns = MatrixColumns(self.design, self.features)
            self._rows = columns.gram(self.weights, self.center)
        else:
            self._rows = np.empty((0, n))
        # The rows of A may take as much memory as a float64 copy of the entries of X.
        self._most = min(d, max(COPY_SIZE, self.design.n_entries) // n)
        self._step: GroupStep | None = None

    def include(self, groups: Mask) -> bool:
        """Include groups and return True, or return False if there are too many."""
        new = np.flatnonzero((groups & ~self.inside)[self._labels])
        start, stop = len(self.features), len(self.features) + len(new)
        if not len(new):
            return True
        if stop > self._most:
            return False
        if stop > len(self._rows):
            # Doubling copies each row about once.
            rows = np.empty((min(self._most, 2 * stop), len(self.weights)))
            rows[:start], self._rows = self._rows[:start], rows
        out, center = self._rows[start:stop], self.center[new]
        MatrixColumns(self.design, new).write_transpose(self._roots, center, out)
        self.features = np.append(self.features, new)
        self.inside |= groups
        return True

    def step(self, groups: GroupPenalty, alpha: float) -> GroupStep:
        """Return the step for the groups in the set and a strength."""
        places = self.features * len(self._metric)
        places = places + np.arange(len(self._metric))[:, np.newaxis]
        penalty = groups.restricted(places.ravel(), alpha)
        rows = self._rows[: len(self.features)]
        if self._step is None:
            formed = self._is_formed
            self._step = GroupStep(self._metric, rows, penalty, is_formed=formed)
        else:
            self._step.extend(rows, penalty)
        return self._step

    def apply(self, W: Floats) -> Floats:
        """Return H W for W of shape (d, k), which is zero for other groups."""
        if self._is_formed:
            return self._rows @ W
        image = W[self.features].T @ self._rows[: len(self.features)]
        return self.design.products_of_columns((self._roots * image).T)


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
        self._objective, self._eliminates = objective, objective.groups is None
        self._penalized = np.arange(objective.regularizer.n_penalized)
        same = other is not None and other._objective.weights is objective.weights
        if groups := objective.groups:
            made = other._set if other and same else None
            self._set: GroupSet = made or GroupSet(objective, groups, metric)
            squares = objective.risk.mean_squares().reshape(self._gradient.shape)
            self._squares = (squares * self._metric.diagonal()).ravel()
            # Sweeps stop when no slope changes by more than this tolerance.
            self._tol = ROUNDED * float(np.abs(self._gradient).max())
            return
        if other and same:
            self._gram: Floats = other._gram
        else:
            hessian = objective.risk.hessian(origin.curvature)
            self._gram = np.ascontiguousarray(hessian.matrix())
        self._squares = self._gram.diagonal()
        others = np.ones(len(self._squares), dtype=bool)
        others[self._penalized] = False if free is None else free
        self._eliminate(others)

    def _eliminate(self, others: Mask) -> None:
        """Form the Schur complement of the other coefficients, without a penalty."""
        self._penalized, self._others = np.flatnonzero(~others), np.flatnonzero(others)
        gram, penalized = self._gram, self._penalized
        # In units in which the diagonal is one, eigenvalues that vanish up to rounding
        # belong to linearly dependent columns. Nothing is proven about these.
        norms = np.sqrt(self._squares[self._others])
        norms[norms == 0.0] = 1.0
        border = gram[self._others]
        matrix = border[:, self._others] / np.outer(norms, norms)
        # Without free features this is one number, for which LAPACK is slow.
        alone = len(norms) == 1
        values, vectors = (matrix[0], np.eye(1)) if alone else lapack.eigh(matrix)
        vectors = vectors / norms[:, np.newaxis]
        kept, self._least = values > ROUNDED * len(values), 0.0
        if kept.all():
            error = len(values) * rounding(self._objective.design.n_rows)
            self._least = max(float(values.min(initial=1.0)) - error, 0.0)
        self._inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
        border = border[:, penalized]
        self._reduced = gram[penalized[:, np.newaxis], penalized]
        self._reduced -= border.T @ self._inverse @ border
        gradient = self._gradient[:, 0]
        self._start = gradient[penalized]
        self._start -= self._inverse @ gradient[self._others] @ border
        self._tol = ROUNDED * float(np.abs(self._start).max(initial=0.0))

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
        if objective.groups:
            found, slopes = self._descend_groups(objective, alphas, start, tol)
        else:
            found, slopes = self._descend(objective, alphas, start)
        if not len(found):
            return np.empty((0, len(start))), np.empty(0)
        alphas = alphas[: len(found)]
        rounded = np.array([stored(w) for w in found], dtype=np.float64)
        p = rounded - found
        excess = np.sum(p * slopes, axis=1) + 0.5 * self._curvatures(p)
        excess += _penalties(objective, alphas, rounded, self._penalized)
        excess -= _penalties(objective, alphas, found, self._penalized)
        gaps, values = self._gaps(objective, alphas, found, slopes)
        sizes = sizes_of(values + excess, objective.risk.infimum)
        return rounded, (gaps + np.abs(excess)) / sizes

    def _curvatures(self, p: Floats) -> Floats:
        """Return <p, H p> for each of several p of shape (q,)."""
        if self._eliminates:
            return np.sum(p * (p @ self._gram), axis=1)
        curvatures = np.zeros(len(p))
        design, weights = self._objective.design, self._objective.weights
        for i in np.flatnonzero(p.any(axis=1)):
            scores = design.forward(p[i]).reshape(len(weights), -1)
            curvatures[i] = weights @ scores**2 @ self._metric.diagonal()
        return curvatures

    def _descend(
        self, objective: Objective, alphas: Floats, start: Floats
    ) -> tuple[Floats, Floats]:
        """Return minimizers for each alpha with an elastic net, and slopes there."""
        gram, penalized = self._reduced, self._penalized
        ratio, w = objective.elastic_net.l1_ratio, start[penalized]
        found = np.zeros((len(alphas), len(start)))
        l1, l2 = np.empty_like(w), np.empty_like(w)
        for i, alpha in enumerate(alphas):
            l1[:], l2[:] = alpha * ratio, alpha * (1.0 - ratio)
            slopes = self._start + gram @ w
            violation, _ = coordinate_descent.sweep_gram(
                gram, slopes, w, l1, l2, self._tol, MOST_STEPS
            )
            if not violation <= self._tol:
                # With strongly correlated features sweeps alone converge slowly.
                inside, rank = np.ones((len(w), 1), dtype=bool), objective.design.n_rows
                step = GramStep(gram.copy(), l1, l2, inside, rank)
                columns = slopes[:, np.newaxis], w[:, np.newaxis]
                w[:] = step.minimize(*columns, self._tol, MOST_STEPS)[:, 0]
            found[i, penalized] = w
        slopes = self._gradient[:, 0] + found @ self._gram
        # Then the slopes of the other coefficients vanish.
        change = -slopes[:, self._others] @ self._inverse
        found[:, self._others] += change
        slopes += change @ self._gram[self._others]
        return found, slopes

    def _descend_groups(
        self, objective: Objective, alphas: Floats, start: Floats, tol: float
    ) -> tuple[Floats, Floats]:
        """Return minimizers with norms of groups, and slopes there, of shape (m, q).

        m is smaller than the number of alphas if a working set is too large, or if a
        gap is too large. Groups whose slopes are large are included first.
        """
        groups: Any = objective.groups
        some, metric = self._set, self._metric
        d, last = len(some.center), float(alphas[0])
        center, gradient = some.center[:, np.newaxis], self._gradient
        # With the best intercept, slopes are those of centered columns.
        first = gradient[:d] - center * gradient[d:].sum(axis=0)
        others = np.zeros_like(gradient[d:])
        intercept = -gradient[d:] / metric.diagonal()
        # Errors of slopes up to share * alpha change the scale of the dual point by at
        # most the tolerance.
        limits = groups.l1 + groups.norm
        limits = limits[limits > 0.0]
        share = tol * (float(limits.min()) if len(limits) else 1.0)
        W = start.reshape(gradient.shape)[:d].copy()
        found: list[Floats] = []
        gradients: list[Floats] = []
        if not some.include(groups.used(W.ravel())):
            return np.array(found), np.array(gradients)
        slopes = first + some.apply(W) @ metric
        for alpha in map(float, alphas):
            accuracy, near = max(self._tol, share * alpha), max(0.0, 2.0 * alpha - last)
            more = groups.nearness(slopes.ravel(), near) > accuracy
            while True:
                if not some.include(more):
                    return np.array(found), np.array(gradients)
                if len(own := some.features):
                    step, given = some.step(groups, alpha), (slopes[own], W[own])
                    W[own] = step.minimize(*given, accuracy, MOST_STEPS)
                slopes = first + some.apply(W) @ metric
                more = groups.nearness(slopes.ravel(), alpha) > accuracy
                if not np.any(more & ~some.inside):
                    break
            last = alpha
            found.append(np.vstack([W, intercept - center.T @ W]).ravel())
            gradients.append(np.vstack([slopes, others]).ravel())
            one = np.array([alpha]), found[-1][np.newaxis], gradients[-1][np.newaxis]
            gaps, values = self._gaps(objective, *one)
            if not gaps <= tol * sizes_of(values, objective.risk.infimum):
                break
        return np.array(found), np.array(gradients)

    def _gaps(
        self,
        objective: Objective,
        alphas: Floats,
        w: Floats,
        slopes: Floats,
    ) -> tuple[Floats, Floats]:
        """Return the gaps (1) with bounds of their rounding errors, and J(w)."""
        m = len(self._penalized)
        penalties = _penalties(objective, alphas, w, self._penalized)
        risk = self._value + 0.5 * np.sum(w * (self._gradient.ravel() + slopes), axis=1)
        # Rounding errors of entries of H, g and R(0) are relative to the norms of
        # columns and targets.
        norms = np.sqrt(self._squares)
        size = math.sqrt(2.0 * self._value) + np.abs(w) @ norms
        error = 2.0 * rounding(objective.design.n_rows + w.shape[1]) * size
        if self._eliminates:
            # The dual point with vanishing other slopes that is nearest to u.
            own = np.where(norms, norms, 1.0)[self._others]
            left = np.abs(slopes[:, self._others]) / own + error[:, np.newaxis]
            error += np.sqrt(np.sum(left * left, axis=1) / self._least)
        radius = error[:, np.newaxis] * norms[self._penalized]
        v, w = slopes[:, self._penalized], w[:, self._penalized]
        c, conjugates = _dual_points(objective, alphas, v, radius)
        gap = (1.0 - c) ** 2 * risk + penalties + c * np.sum(v * w, axis=1)
        gap += conjugates
        return np.abs(gap) + error * size + rounding(m) * penalties, risk + penalties


def _penalties(
    objective: Objective, alphas: Floats, w: Floats, penalized: Rows
) -> Floats:
    """Return alpha * Omega(w) for each w, of the penalized coefficients."""
    if groups := objective.groups:
        return alphas * np.array([groups.value(each) for each in w])
    ratio, w = objective.elastic_net.l1_ratio, w[:, penalized]
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

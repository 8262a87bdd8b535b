"""Sums over rows from which covariances are computed, block by block."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._core.arrays import Floats
from .._core.losses import DualLoss
from .._core.memory import COPY_SIZE
from .._core.rows.second_moments import SecondMoments
from . import terms

# Lower limit of one minus the leverage. A row with a leverage of one is fitted exactly
# and has a residual of zero, so the limit avoids 0 / 0.
_FREE = 1e-12


@dataclass(frozen=True)
class Spec:
    """A model, and the definition of its sums over rows.

    Attributes
    ----------
    coef : ndarray of shape (k, d)
    intercept : ndarray of shape (k,)
    loss : DualLoss or None
        The loss of one score per row, or for ordered classes of one score minus each of
        k thresholds; None for the multinomial log loss of k scores.
    fit_intercept : bool
    power : float or None
        Variances are proportional to this power of the mean, see ``terms.one_score``.
    levels : tuple of float
        Levels of quantiles, one for each row of ``coef``; empty for other losses.
    widths : tuple of float
        Half-widths of the kernels for each level, see ``terms.bandwidth``.
    common_density : bool
        Whether residuals of a quantile have the same density in all rows.
    expected : bool
        Whether second derivatives are replaced by their expectations.
    counts : bool
        Whether weights are frequencies of equal rows.
    shift : ndarray of shape (d,)
        Numbers that are subtracted from the features, to avoid cancellation in
        products; zeros without an intercept.
    inverses : tuple of ndarray of shape (q, q)
        Inverse second derivatives for each problem, from which leverages h of the rows
        follow; empty without leverages.
    leverage_power : float
        Products of first derivatives are divided by 1 - h to this power.
    """

    coef: Floats
    intercept: Floats
    loss: DualLoss | None
    fit_intercept: bool
    power: float | None
    levels: tuple[float, ...]
    widths: tuple[float, ...]
    common_density: bool
    expected: bool
    counts: bool
    shift: Floats
    inverses: tuple[Floats, ...] = ()
    leverage_power: float = 0.0

    @property
    def joint(self) -> bool:
        """Whether one problem has all scores of a row."""
        return self.loss is None

    @property
    def ordinal(self) -> bool:
        """Whether intercepts are the negative thresholds of one score."""
        return self.loss is not None and self.loss.joint

    @property
    def n_intercepts(self) -> int:
        """Number of intercepts beside a row of coefficients."""
        return len(self.intercept) if self.ordinal else int(self.fit_intercept)

    @property
    def n_problems(self) -> int:
        return 1 if self.joint else len(self.coef)


class TargetedRows(NamedTuple):
    """Rows with targets, weights, offsets and groups.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n, d)
    targets : ndarray of shape (n, number of problems)
        Signs of classes, numbers, or one column of class numbers.
    weights : ndarray of shape (n,)
    offset : ndarray of shape (n,) or None
    groups : ndarray of shape (n, 1) or (n, 3), or None
        Numbers of the clusters of rows; with two-way clusters also the numbers of
        pairs.
    """

    X: Any
    targets: Floats
    weights: Floats
    offset: Floats | None = None
    groups: Any = None

    def scores(self, spec: Spec) -> Floats:
        """Return the scores of the rows, of shape (n, k)."""
        scores: Floats = np.asarray(self.X @ spec.coef.T, dtype=np.float64)
        scores = scores + spec.intercept
        return scores if self.offset is None else scores + self.offset[:, None]


class RowMoments(NamedTuple):
    """Sums over rows for one problem; q is the number of parameters of a score.

    Attributes
    ----------
    hessian, squares : ndarray of shape (m * q, m * q)
        Sums of second derivatives, and of products of first derivatives. The latter are
        zero if rows have clusters, or if second derivatives are replaced by their
        expectations.
    gram : ndarray of shape (q, q)
        Gram matrix of the features; for ordered classes of all parameters.
    gradient : ndarray of shape (m * q,)
    chi_square, total, n : float
        The sum of squared Pearson residuals, the sum of weights, and the number of
        rows.
    clusters : dict
        Sums of first derivatives over the rows of each cluster, by the column of the
        groups and the number.
    """

    hessian: Floats
    squares: Floats
    gram: Floats
    gradient: Floats
    chi_square: float
    total: float
    n: float
    clusters: dict[tuple[int, int], Floats]

    def __add__(self, other: Any) -> RowMoments:
        clusters = dict(self.clusters)
        for group, total in other.clusters.items():
            clusters[group] = clusters.get(group, 0.0) + total
        return RowMoments(
            self.hessian + other.hessian,
            self.squares + other.squares,
            self.gram + other.gram,
            self.gradient + other.gradient,
            self.chi_square + other.chi_square,
            self.total + other.total,
            self.n + other.n,
            clusters,
        )


def summed(parts: Iterable[list[RowMoments]]) -> list[RowMoments]:
    """Return the moments of all blocks, for each problem."""
    totals: list[RowMoments] = []
    for part in parts:
        pairs = zip(totals, part, strict=True)
        totals = [a + b for a, b in pairs] if totals else list(part)
    return totals


def block_moments(block: TargetedRows, spec: Spec) -> list[RowMoments]:
    """Return the moments of the rows of a block, for each problem."""
    scores = block.scores(spec)
    totals: list[RowMoments] = []
    n_rows, d = block.X.shape
    dense = not sparse.issparse(block.X)
    size = max(1, COPY_SIZE // max(d, 1)) if dense else max(n_rows, 1)
    for first in range(0, max(n_rows, 1), size):
        rows = slice(first, first + size)
        X = block.X[rows]
        if dense:
            X = np.asarray(X, dtype=np.float64) - spec.shift
        design = SecondMoments(X, fit_intercept=spec.fit_intercept)
        weights, groups = block.weights[rows], block.groups
        groups = None if groups is None else groups[rows]
        args = design, design.gram(weights), weights, groups, spec
        targets = block.targets[rows].T.copy()
        part = [
            moments_of(
                row_terms(spec, problem, scores[rows], targets[problem]), *args, problem
            )
            for problem in range(spec.n_problems)
        ]
        totals = summed([totals, part]) if totals else part
    return totals


def row_terms(spec: Spec, problem: int, scores: Floats, targets: Floats) -> Any:
    """Return the derivatives of the loss of each row for a problem."""
    if spec.loss is None:
        return terms.softmax(scores, targets)
    if spec.ordinal:
        return terms.thresholds(spec.loss, scores, targets)
    scores = np.ascontiguousarray(scores[:, problem])
    if not spec.levels:
        return terms.one_score(spec.loss, spec.power, scores, targets, spec.expected)
    level, width = spec.levels[problem], spec.widths[problem]
    found = terms.quantile(targets - scores, level, width)
    if not spec.common_density:
        return found
    # If the residuals have a common density, second derivatives are multiplied by it
    # later, after it has been computed from all rows.
    return found._replace(
        curvatures=np.ones_like(found.curvatures),
        chi_squares=found.curvatures[:, 0, 0],
    )


def moments_of(
    found: terms.RowTerms,
    design: SecondMoments,
    gram: Floats,
    weights: Floats,
    groups: Any,
    spec: Spec,
    problem: int = 0,
) -> RowMoments:
    """Return the moments of a problem, from the derivatives of each row.

    Parameters
    ----------
    found : RowTerms
    design : SecondMoments
    gram : ndarray of shape (q, q)
    weights : ndarray of shape (n,)
    groups : ndarray of shape (n, 1) or (n, 3), or None
        See ``TargetedRows``.
    spec : Spec
    problem : int
    """
    slopes = found.slopes
    m, q = slopes.shape[1], design.n_params
    # With frequencies, a weight of two means two rows; otherwise it halves the
    # variance.
    squared = weights if spec.counts else weights**2
    if spec.inverses:
        curvatures = found.curvatures[:, 0, 0]
        if not spec.counts:
            curvatures = weights * curvatures
        free = 1.0 - curvatures * quadratic_forms(design, spec.inverses[problem])
        squared = squared / np.maximum(free, _FREE) ** spec.leverage_power
    hessian, squares = np.zeros((m, q, m, q)), np.zeros((m, q, m, q))
    gradient = np.zeros((m, q))
    for a in range(m):
        gradient[a] = design.adjoint(weights * slopes[:, a])
        for b in range(a + 1):
            product = _gram(design, weights * found.curvatures[:, a, b])
            hessian[a, :, b], hessian[b, :, a] = product, product.T
            if groups is None and not spec.expected:
                product = _gram(design, squared * slopes[:, a] * slopes[:, b])
                squares[a, :, b], squares[b, :, a] = product, product.T
    n = float(weights.sum()) if spec.counts else float(len(weights))
    clusters: dict[tuple[int, int], Floats] = {}
    for way in range(0 if groups is None else groups.shape[1]):
        names, codes = np.unique(groups[:, way], return_inverse=True)
        members = sparse.csr_array(
            (np.ones(len(codes)), (codes, np.arange(len(codes)))),
            shape=(len(names), len(codes)),
        )
        sums = [_of_clusters(design, members, weights * slopes[:, a]) for a in range(m)]
        keys = ((way, name) for name in names.tolist())
        clusters.update(zip(keys, np.hstack(sums), strict=True))
    moments = RowMoments(
        hessian.reshape(m * q, m * q),
        squares.reshape(m * q, m * q),
        gram,
        gradient.ravel(),
        float(weights @ found.chi_squares),
        float(weights.sum()),
        n,
        clusters,
    )
    return _shared(moments, m) if spec.ordinal else moments


def _shared(moments: RowMoments, m: int) -> RowMoments:
    """Return the moments of m scores with the same coefficients and own intercepts."""
    q = len(moments.gram)
    maps = np.tile(np.eye(q, q - 1 + m), (m, 1, 1))
    for score, each in enumerate(maps):
        each[-1] = np.roll(each[-1], score)
    to_all = maps.reshape(m * q, -1)
    hessian, squares, gram = (
        to_all.T @ each @ to_all
        for each in (*moments[:2], np.kron(np.eye(m), moments.gram))
    )
    return moments._replace(
        hessian=hessian,
        squares=squares,
        gram=gram,
        gradient=moments.gradient @ to_all,
        clusters={key: sums @ to_all for key, sums in moments.clusters.items()},
    )


def quadratic_forms(design: SecondMoments, matrix: Floats) -> Floats:
    """Return xᵀ M x for each row x, with the intercept last, of shape (n,)."""
    n, size = design.X.shape[0], max(1, COPY_SIZE // max(design.n_params, 1))
    forms = np.empty(n)
    for first in range(0, n, size):
        rows = design.X[first : first + size]
        rows = rows.toarray() if sparse.issparse(rows) else rows
        if design.fit_intercept:
            rows = np.column_stack([rows, np.ones(len(rows))])
        forms[first : first + size] = ((rows @ matrix) * rows).sum(axis=1)
    return forms


def _gram(design: SecondMoments, weights: Floats) -> Floats:
    """Return Xᵀ diag(weights) X for weights of either sign."""
    if weights.min(initial=0.0) >= 0.0:
        return design.gram(weights)
    return design.gram(np.maximum(weights, 0.0)) - design.gram(np.maximum(-weights, 0))


def _of_clusters(design: SecondMoments, members: Any, slopes: Floats) -> Floats:
    """Return the sum of slopes times rows over each cluster, of shape (G, q)."""
    sums = members.multiply(slopes).tocsr() @ design.X
    sums = sums.toarray() if sparse.issparse(sums) else np.asarray(sums)
    if design.fit_intercept:
        sums = np.column_stack([sums, members @ slopes])
    return sums

"""The risk of rows, R(w) = sum_i s_i loss_i(z_i) of scores z = Xw.

``Risk`` is the one object that knows rows. Where they are in one place, numbers of each
row, such as scores and dual variables, are arrays. Elsewhere these stay where the rows
are: others hand them from one method to the next, and marks of the methods say how what
the parts return makes a whole, for ``RiskOfParts``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .design import Design
from .kinks import Kinks
from .lazy import cached_property
from .losses._base import (
    TINY,
    Curvature,
    Derivatives,
    Floats,
    Mask,
    PiecewiseQuadratic,
    Rows,
    as_curvature,
    rounding,
    total_of_rows,
)
from .losses._loss import AnyLoss, Loss
from .parts import (
    Parts,
    maximal,
    root_of_squares,
    rowwise,
    summed,
    summed_function,
)

# Second derivatives that vanish in more than the rest of the rows are kept by copying
# the rows in which they do not.
_COPY_SHARE = 0.6

#: Duals, targets and weights of some rows.
OfRows = tuple[Floats, Any, Floats]


class Risk:
    """The risk of a loss on a design: all sums over rows, and numbers of each row.

    Parameters
    ----------
    design : Design
        The map w -> Xw.
    loss : Loss
        The convex function of scores.
    targets : ndarray of shape (n,) or as the loss asks
    weights : ndarray of shape (n,)
        Non-negative row weights s that sum to one, those of all parts together.

    Attributes
    ----------
    parts : Parts or None
        The risks of the parts, where the rows are in several.
    """

    parts: Parts | None = None

    def __init__(
        self, design: Design, loss: AnyLoss, targets: Any, weights: Floats
    ) -> None:
        self.design = design
        self.loss = Loss.of(loss)
        self.oracle = self.loss.oracle
        self.targets = targets
        self.weights = weights
        # Shared by the risks of other losses on the same data, once they are known.
        self._sizes: dict[str, Any] = {}

    @property
    def in_one_place(self) -> bool:
        """Whether methods may look at any rows of X, or go through them in order."""
        return self.design.in_one_place

    def with_loss(self, loss: Loss) -> Risk:
        """Return the risk of another loss on the same data."""
        other = Risk(self.design, loss, self.targets, self.weights)
        other._sizes = self._sizes
        return other

    def with_weights(self, weights: Floats) -> Risk:
        """Return the risk of the same rows, in one place, with other weights."""
        return Risk(self.design, self.loss, self.targets, weights)

    def gathered(self, rows: Rows) -> Risk:
        """Return the risk of some of the rows, ascending, in one place."""
        return self.of_rows(rows)

    def of_rows(self, rows: Rows) -> Risk:
        """Return the risk of some of the rows, where they are; weights remain."""
        return Risk(
            self.design.rows(rows),
            self.loss.of_rows(rows),
            self.targets[rows],
            self.weights[rows],
        )

    def count(self, other: Risk, products: float) -> None:
        """Count products with X made for the risk of some of the rows."""
        self.design.count(other.design, products)

    # Numbers of each row.

    @rowwise
    def zero_scores(self) -> Floats:
        """Return the scores of w = 0."""
        return self.design.zero_scores()

    @rowwise
    def forward(self, w: Floats) -> Floats:
        """Return the scores Xw."""
        return self.design.forward(w)

    @rowwise
    def shifted(self, scores: Floats, shifts: Floats) -> Floats:
        """Return the scores of parameters with other intercepts."""
        return scores + shifts

    @rowwise
    def moved(self, x: Floats, step: float, y: Floats) -> Floats:
        """Return x + step * y."""
        return x + step * y

    @rowwise
    def scaled(self, factor: float, x: Floats) -> Floats:
        """Return a multiple of x."""
        return factor * x

    @rowwise
    def difference(self, x: Floats, y: Floats) -> Floats:
        """Return x - y."""
        return x - y

    @rowwise
    def products(self, x: Floats, y: Floats) -> Floats:
        """Return the products of the entries of x and y."""
        return x * y

    @rowwise
    def centered(self, scores: Floats) -> Floats:
        """Return the scores of each row less their mean."""
        return scores - scores.mean(axis=1, keepdims=True)

    @rowwise
    def take(self, x: Floats, rows: Rows) -> Floats:
        """Return the numbers of some of the rows."""
        return x[rows]

    @rowwise
    def replaced(self, x: Floats, rows: Rows, values: Floats | float) -> Floats:
        """Return x with other numbers for some of the rows."""
        x = x.copy()
        x[rows] = values
        return x

    @rowwise
    def subgradient(self, scores: Floats) -> Floats:
        """Return the loss' own choice of a dual u in the subdifferential."""
        return self.oracle.subgradient(scores, self.targets, self.weights)

    @rowwise
    def kinks(self, scores: Floats) -> Rows:
        """Return the rows in which the loss is not differentiable."""
        return self.oracle.kink_rows(scores, self.targets)

    @rowwise
    def argsup(self, scores: Floats, dscores: Floats, rows: Rows) -> Floats:
        """Return the steepest dual along changes of the scores of some of the rows."""
        args = self.targets[rows], self.weights[rows]
        return self.oracle.argsup(scores, dscores, *args)

    @rowwise
    def curvature(self, scores: Floats) -> Curvature:
        """Return the second derivatives of the loss."""
        found = self.oracle.curvature(scores, self.targets, self.weights)
        return as_curvature(found, scores, type(self.oracle).__name__)

    @rowwise
    def side(self, products: Floats, sign: float, curvature: Curvature | None) -> Mask:
        """Return where products have a sign, perhaps of entries with curvature only."""
        side = products * sign > 0.0
        return side if curvature is None else side & (curvature.diagonal() > 0.0)

    @rowwise
    def shrunk(self, dual: Floats, entries: Mask, factor: float) -> Floats:
        """Return the dual with some of its entries multiplied by a factor."""
        dual = dual.copy()
        dual[entries] *= factor
        return dual

    @rowwise
    def center(self, dual: Floats) -> Floats:
        """Return the variables that stand for a dual, for ``envelope``."""
        return self.oracle.dual_variables(dual, self.targets, self.weights)

    @rowwise
    def leeway(self, dual: Floats) -> Floats:
        """Return by how much each u_i may change either way in the domain of R*."""
        return self.oracle.leeway(dual, self.targets, self.weights)

    @rowwise
    def mean(self, *xs: Floats) -> Floats:
        """Return the mean of several numbers of each row."""
        mean: Floats = np.mean(xs, axis=0)
        return mean

    # Sums over rows.

    @summed
    def length(self, x: Any) -> int:
        """Return how many rows x has numbers of."""
        return len(x)

    def has_fewer(self, x: Floats, y: Floats) -> bool:
        """Whether x has fewer entries than y that are not zero."""
        return self.surplus(x, y) < 0

    @summed
    def surplus(self, x: Floats, y: Floats) -> int:
        """Return how many entries more than those of y are not zero of x."""
        return int(np.count_nonzero(x)) - int(np.count_nonzero(y))

    @summed
    def n_curved(self, curvature: Curvature) -> int:
        """Return for how many scores second derivatives do not vanish."""
        return int(np.count_nonzero(curvature.diagonal()))

    @summed
    def value(self, scores: Floats) -> float:
        """Return R."""
        return self.oracle.value(scores, self.targets, self.weights)

    def evaluate(self, scores: Floats) -> tuple[float, Floats]:
        """Return R and a dual, of losses that compute them together."""
        return self.oracle.evaluate(scores, self.targets, self.weights)

    @summed
    def adjoint(self, dual: Floats) -> Floats:
        """Return Xᵀu."""
        return self.design.adjoint(dual)

    @summed
    def inner(self, x: Floats, y: Floats) -> float:
        """Return <x, y>."""
        return float(np.vdot(x, y))

    @summed
    def inner_size(self, x: Floats, y: Floats) -> float:
        """Return the sum of the absolute values of the terms of <x, y>."""
        return float(np.vdot(np.abs(x), np.abs(y)))

    @summed
    def total(self, x: Floats, entries: Mask) -> float:
        """Return the sum of some entries of x."""
        return float(x[entries].sum())

    @summed
    def size(self, x: Floats) -> float:
        """Return the sum of the absolute values of x."""
        return float(np.abs(x).sum())

    @summed
    def total_and_size(self, x: Floats) -> Floats:
        """Return the sum of x and that of its absolute values, in an array."""
        return np.array([x.sum(), np.abs(x).sum()])

    @summed
    def column_sums(self, dual: Floats) -> Floats:
        """Return the sum of the columns, as of free intercepts."""
        return np.atleast_1d(total_of_rows(dual))

    @summed
    def mean_size(self, scores: Floats) -> float:
        """Return the weighted mean of the largest absolute score of each row."""
        sizes = np.abs(scores)
        return float(self.weights @ (sizes if sizes.ndim == 1 else sizes.max(axis=1)))

    @summed
    def conjugate_and_size(self, dual: Floats) -> Floats:
        """Return R*(u), and about what the sizes of its terms sum to, in an array."""
        args = dual, self.targets, self.weights
        conjugate = self.oracle.conjugate(*args)
        return np.array([conjugate, self.oracle.conjugate_size(*args, conjugate)])

    @summed
    def conjugate_rest(self, dual: Floats) -> float:
        """Return what these sizes sum to where the terms' sum is known to be R*(u)."""
        return self.oracle.conjugate_size(dual, self.targets, self.weights, 0.0)

    @summed
    def conjugate_at(self, dual: Floats, scores: Floats) -> float:
        """Return R*(u) of a subgradient u at known scores."""
        args = self.targets, self.weights
        return self.oracle.conjugate_at(dual, scores, *args)

    @summed
    def slack(self, dual: Floats, scores: Floats, rows: Rows) -> float:
        """Return R(z) + R*(u) - <u, z> for some rows, zero for a subgradient u."""
        args = self.targets[rows], self.weights[rows]
        height = self.oracle.value(scores, *args)
        height += self.oracle.conjugate_at(dual, scores, *args)
        return height - float(np.vdot(dual, scores))

    @summed
    def rounding(self, scores: Floats) -> float:
        """Return by how much values may be off, of losses without a conjugate."""
        return self.oracle.rounding(scores, self.weights)

    def restriction(
        self, scores: Floats, dscores: Floats, penalty: PiecewiseQuadratic
    ) -> PiecewiseQuadratic:
        """Return R on a line, of losses with kinks, and a penalty there."""
        return penalty + self.restrict(scores, dscores)

    def restrict(self, scores: Floats, dscores: Floats) -> PiecewiseQuadratic:
        """Return R on a line, of losses with kinks."""
        if not len(scores):
            return PiecewiseQuadratic.smooth(0.0, 0.0)
        args = scores, dscores, self.targets, self.weights
        return self.oracle.restrict(*args)

    @rowwise
    def kinks_along(self, scores: Floats, dscores: Floats) -> Kinks:
        """Return the kinks of R on a line."""
        return Kinks(self.restrict(scores, dscores))

    @summed_function
    def derivatives(self, scores: Floats, dscores: Floats) -> Derivatives:
        """Return slope and curvature of R on a line, of smooth losses."""
        args = scores, dscores, self.targets, self.weights
        return self.oracle.derivatives(*args)

    @summed
    def total_curvature(self, curvature: Curvature) -> Floats:
        """Return the sum of the second derivatives of all rows."""
        return curvature.total()

    @summed
    def mean_squares(self) -> Floats:
        """Return weighted mean squares of the columns."""
        return self.design.mean_squares(self.weights)

    @summed
    def squared_size(self) -> float:
        """Return the sum of these, but for intercepts, at less cost."""
        return self.design.squared_size(self.weights)

    # Norms and largest numbers.

    @root_of_squares
    def dual_norm(self, dual: Floats, rows: Rows | None = None) -> float:
        """Return the root of sum_i u_i² / s_i, perhaps of some of the rows.

        By the inequality of Cauchy and Schwarz it bounds the absolute sums of the terms
        of Xᵀu, in units of ``column_sizes``.
        """
        inverse = self._inverse_weights
        shares = (dual.T * (inverse if rows is None else inverse[rows])).T
        return float(np.sqrt(np.vdot(dual, shares)))

    @root_of_squares
    def distance(self, dual: Floats) -> float:
        """Return how far u is from the point at which R* is evaluated."""
        return self.oracle.distance(dual, self.targets, self.weights)

    @root_of_squares
    def distance_at(self, dual: Floats, scores: Floats) -> float:
        """Return the like for a subgradient u at known scores."""
        args = self.targets, self.weights
        return self.oracle.distance_at(dual, scores, *args)

    @maximal
    def largest(self, x: Floats) -> float:
        """Return the largest absolute value of an entry."""
        return max(float(x.max(initial=0.0)), -float(x.min(initial=0.0)))

    @maximal
    def overflows(self, scores: Floats) -> bool:
        """Whether scores are beyond those up to which R is that of the loss."""
        return self.oracle.overflows(scores, self.targets, self.weights)

    @maximal
    def curvature_radius(self, scores: Floats) -> float:
        """Return how far second derivatives describe the loss of some row at least."""
        return float(
            self.oracle.curvature_radius(scores, self.targets).max(initial=0.0)
        )

    # What is no sum over parts.

    def imbalance(self, dual: Floats, sums: Floats) -> float:
        """Return a share of u, changed by which it makes up for column sums."""
        return self.oracle.imbalance(dual, sums, self.targets, self.weights)

    def balance(self, dual: Floats) -> Floats:
        """Return a dual near by, of the domain, whose columns sum to zero."""
        return self.oracle.balance(dual, self.targets, self.weights)

    def condensed(self, dual: Floats) -> OfRows:
        """Return a few rows that stand for these in ``imbalance``, ``balance``, or all.

        Of one score per row only sums over either sign count, and that of the targets;
        of several, where only differences count, the flows from one label to another,
        and the weights of classes.
        """
        if dual.ndim == 1:
            up, down = float(dual[dual > 0.0].sum()), float(dual[dual < 0.0].sum())
            total = self.weights @ self.targets
            targets = np.stack([total, np.zeros_like(total)])
            return np.array([up, down]), targets, np.array([1.0, 0.0])
        if not self.loss.invariant:
            return dual, self.targets, self.weights
        p, q, k = np.maximum(dual, 0.0), np.maximum(-dual, 0.0), dual.shape[1]
        totals = p.sum(axis=1)
        flows = (q.T / np.where(totals > 0.0, totals, 1.0)) @ p
        sources, sinks = np.nonzero(flows)
        rows, n = k + np.arange(len(sources)), k + len(sources)
        few, weights = np.zeros((n, k)), np.zeros(n)
        few[rows, sinks] = flows[sources, sinks]
        few[rows, sources] = -flows[sources, sinks]
        targets = np.zeros((n, *self.targets.shape[1:]), self.targets.dtype)
        if targets.ndim == 1:
            targets[:k] = np.arange(k)
            classes = self.targets.astype(np.intp)
            weights[:k] = np.bincount(classes, self.weights, k)
        return few, targets, weights

    def balance_with(self, dual: Floats, others: OfRows) -> Floats:
        """Return the dual of these rows, balanced with others."""
        both = joined([(dual, self.targets, self.weights), others])
        return self.oracle.balance(*both)[: len(dual)]

    def score_scale(self, scores: Floats) -> float:
        """Return a length of scores to which widths of envelopes are relative."""
        return self.oracle.score_scale(scores, self.targets, self.weights)

    @cached_property
    def dual_scale(self) -> float:
        """About what the absolute dual variables sum to at most."""
        return self.oracle.dual_scale(self.targets, self.weights) or 1.0

    def every(self, x: Any, step: int) -> Any:
        """Return the numbers of every so many rows."""
        return x[::step]

    def has_equal_targets(self) -> bool:
        """Whether all targets with a weight are the same."""
        targets = self.targets_that_differ()
        return len(targets) < 2 or bool(np.all(targets == targets[0]))

    def targets_that_differ(self) -> Any:
        """Return a target with a weight, and one that differs from it if any does."""
        targets = self.targets[self.weights > 0.0]
        if not len(targets):
            return targets
        differ = np.reshape(targets != targets[0], (len(targets), -1)).any(axis=1)
        return targets[[0, int(differ.argmax())]]

    # Related risks, and what they are made of.

    def envelope(self, center: Floats, width: float) -> Risk:
        """Return the risk of the Moreau envelope around a center."""
        return self.with_loss(self.loss.envelope(center, width))

    @rowwise
    def neutral_center(self) -> Floats:
        """Return the center in the middle of the sets of dual variables."""
        return self.oracle.neutral_variables(self.targets)

    def hessian(self, curvature: Curvature) -> RiskHessian:
        """Return the second derivatives of w -> R(Xw)."""
        return RiskHessian(self.design, curvature)

    def makes_matrix(self, curvature: Curvature) -> bool:
        """Whether the matrix of the Hessian can be formed."""
        if not self.design.several_scores or self.design.shares_coef:
            return True
        return type(curvature).add_gram is not Curvature.add_gram

    def has_rows_apart(self, curvature: Curvature) -> bool:
        """Whether second derivatives are those of each row by itself."""
        return curvature.by_rows

    # For the risk of all parts.

    def own_design(self) -> Design:
        """Return ``design``."""
        return self.design

    def loss_of_no_rows(self) -> Loss:
        """Return the loss without what it knows of each row."""
        return self.loss.of_rows(np.empty(0, dtype=np.intp))

    def row_data(self, what: str) -> Any:
        """Return ``targets`` or ``weights``."""
        return getattr(self, what)

    # Facts.

    @cached_property
    def infimum(self) -> float:
        """The infimum of R over all scores, -R*(0), or a little less."""
        zero = self.zero_scores()
        height, size = self.conjugate_and_size(zero)
        return -float(height) - rounding(self.n_scored) * float(size) if height else 0.0

    @property
    def n_scored(self) -> int:
        """Number of rows of scores."""
        if "scored" not in self._sizes:
            self._sizes["scored"] = self.length(self.zero_scores())
        return int(self._sizes["scored"])

    @property
    def knows_subgradients_only(self) -> bool:
        """Whether R* is known at subgradients and their scores only."""
        return not self.loss.tells_conjugate

    @property
    def column_sizes(self) -> Floats:
        """Weighted root mean squares of the columns, of shape (q,)."""
        if "columns" not in self._sizes:
            self._sizes["columns"] = np.sqrt(self.mean_squares())
        sizes: Floats = self._sizes["columns"]
        return sizes

    @property
    def row_size(self) -> float:
        """Root of the sum of the squares of these, but for intercepts."""
        if "rows" not in self._sizes:
            self._sizes["rows"] = np.sqrt(self.squared_size())
        return float(self._sizes["rows"])

    @property
    def at_zero(self) -> float:
        """R at w = 0 of one of the losses on the same data, a scale of bounds."""
        if "risk" not in self._sizes:
            self._sizes["risk"] = self.value(self.zero_scores())
        return float(self._sizes["risk"])

    @property
    def _inverse_weights(self) -> Floats:
        if "weights" not in self._sizes:
            # Rows without weight have no dual, so that any divisor will do.
            weights = self.design.row_weights(self.weights)
            self._sizes["weights"] = 1.0 / np.maximum(weights, TINY)
        inverse: Floats = self._sizes["weights"]
        return inverse


class RiskHessian:
    """Xᵀ H X for second derivatives H, by the rows in which they do not vanish.

    Parameters
    ----------
    design : Design
    curvature : Curvature

    Attributes
    ----------
    n_rows : int
        Number of those rows.
    has_rows : bool
        Whether ``row_system`` is known: each row has second derivatives of its own, and
        are in one place.
    """

    def __init__(self, design: Design, curvature: Curvature) -> None:
        rows = curvature.rows()
        self.n_rows = rows.size
        self.has_rows = by_rows = curvature.by_rows
        self._whole, self._of_all = design, curvature
        # A copy of most rows would gain nothing.
        self._rows = None
        if by_rows and rows.size <= _COPY_SHARE * design.n_rows:
            curvature = curvature.take(rows)
            self._rows = rows
        self._curvature = curvature

    def number_of_rows(self) -> int:
        """Return ``n_rows``."""
        return self.n_rows

    @cached_property
    def _subset(self) -> Design:
        return self._whole if self._rows is None else self._whole.rows(self._rows)

    @summed
    def apply(self, v: Floats) -> Floats:
        """Return the product with v of shape (q,)."""
        subset = self._subset
        product = subset.adjoint(self._curvature.apply(subset.forward(v)))
        self._count(subset, 2.0)
        return product

    @summed
    def diagonal(self) -> Floats:
        """Return the diagonal, of shape (q,)."""
        diagonal = self._subset.squared_adjoint(self._curvature.diagonal())
        self._count(self._subset, 1.0)
        return diagonal

    @summed
    def matrix(self) -> Floats:
        """Return the whole matrix, of shape (q, q)."""
        subset, curvature = self._whole, self._of_all
        if self._rows is not None and not subset.multiplies_pairs:
            subset, curvature = subset.rows(self._rows, copy=False), self._curvature
        if not curvature.by_rows:
            matrix = subset.coupled_gram(curvature)
        elif not subset.several_scores or subset.shares_coef:
            matrix = subset.gram(curvature.diagonal())
        else:
            matrix = subset.block_gram(curvature.add_gram)
        self._count(subset, 1.0)
        return matrix

    @summed
    def class_sums(self) -> Floats:
        """Return the sums over rows of the diagonals of H, one for each score."""
        sums: Floats = self._curvature.diagonal().sum(axis=0)
        return sums

    @cached_property
    def _own(self) -> Rows:
        """Which rows of the subset have curvature."""
        return np.flatnonzero(self._curvature.diagonal())

    def row_system(self) -> tuple[Floats, Floats]:
        """Return D and A Aᵀ for the rows A of curvature D, with one score each."""
        rows = self._own if self._rows is None else self._rows[self._own]
        return self._curvature.diagonal()[self._own], self._whole.row_gram(rows)

    def forward(self, v: Floats) -> Floats:
        """Return the scores of these rows for v of shape (q,)."""
        self._count(self._subset, 1.0)
        return self._subset.forward(v)[self._own]

    def adjoint(self, t: Floats) -> Floats:
        """Return the products of the columns with a number for each of these rows."""
        dual = self._subset.zero_scores()
        dual[self._own] = t
        self._count(self._subset, 1.0)
        return self._subset.adjoint(dual)

    def _count(self, subset: Design, products: float) -> None:
        if subset is not self._whole:
            self._whole.count(subset, products)


def joined(rows: Sequence[OfRows]) -> OfRows:
    """Return duals, targets and weights of several in one array each."""
    dual, targets, weights = map(np.concatenate, zip(*rows, strict=True))
    return dual, targets, weights

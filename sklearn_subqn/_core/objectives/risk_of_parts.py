"""The risk of rows in several parts, local or remote, as a sum of risks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..lazy import cached_property
from ..losses._base import Floats, Intervals, PiecewiseQuadratic, Rows, RowwiseDual
from ..losses._curvature import Curvature
from ..losses._dual_loss import DualLoss
from ..places.condensed import joined
from ..places.kinks import SumOfParts
from ..places.parts import DesignOfParts, OfParts, Parts, by_parts
from .risk import Risk
from .risk_hessian import RiskHessian

# Scales of scores and duals are estimated from about 10,000 rows, which are collected
# in this process.
_MOST_COLLECTED = 10_000


@by_parts
class RiskOfParts(Risk):
    """The sum of the risks of parts, for a loss that compares rows within parts only.

    Losses that compare rows of different parts need all scores in one array, on a
    ``DesignOfParts``.

    Parameters
    ----------
    parts : Parts or iterable of Risk
        Risks of the same loss.
    loss : DualLoss, optional
        The loss without its row-wise data; by default the parts return it.
    """

    parts: Parts
    design: DesignOfParts
    _makes_matrix: bool | None = None

    def __init__(
        self, parts: Parts | Iterable[Risk], loss: DualLoss | None = None
    ) -> None:
        self.parts = parts = parts if isinstance(parts, Parts) else Parts(parts)
        design = DesignOfParts(parts.of(parts.each("own_design")))
        loss = loss or parts.results("loss_of_no_rows")[0]
        targets, weights = (
            parts.each("row_data", what) for what in ("targets", "weights")
        )
        super().__init__(design, loss, targets, weights)

    def with_loss(self, loss: DualLoss) -> RiskOfParts:
        return self._with_risks(self.parts.each("with_loss", loss), loss)

    def envelope(self, center: Floats, width: float) -> RiskOfParts:
        risks = self.parts.each("envelope", center, width)
        loss = self.parts.of(risks).results("loss_of_no_rows")[0]
        return self._with_risks(risks, loss)

    def narrowed(self, width: float) -> RiskOfParts:
        # Each part has a loss with its own groups of rows.
        return self._with_risks(
            self.parts.each("narrowed", width), self.loss.narrowed(width)
        )

    def _with_risks(self, risks: Any, loss: DualLoss) -> RiskOfParts:
        """Return the sum of the risks of another loss on the same data."""
        other = RiskOfParts.__new__(RiskOfParts)
        Risk.__init__(other, self.design, loss, self.targets, self.weights)
        other.parts = self.parts.of(risks)
        other._sizes = self._sizes
        return other

    @cached_property
    def together(self) -> Risk:
        """The same risk, whose scores and dual variables are arrays over all rows."""
        targets, weights = map(self.collected, (self.targets, self.weights))
        risk = Risk(self.design, self.loss, targets, weights)
        risk._sizes = self._sizes
        return risk

    def collected(self, x: Any) -> Any:
        """Return a row-wise quantity as an array over all rows."""
        return self.parts.collect("every", x, 1)

    def gathered(self, rows: Rows) -> Risk:
        risks = self.parts.results("gathered", self.design.own_rows(rows))
        design = risks[0].design.above([risk.design for risk in risks[1:]])
        targets = np.concatenate([risk.targets for risk in risks])
        weights = np.concatenate([risk.weights for risk in risks])
        return Risk(design, self.loss, targets, weights)

    def evaluate(self, scores: Floats) -> tuple[float, Floats]:
        found = self.parts.of(self.parts.each("evaluated", scores))
        dual: Any = found.each("dual")
        return float(found.total("value")), dual

    def of_rows(self, rows: Any) -> RiskOfParts:
        return RiskOfParts(self.parts.of(self.parts.each("of_rows", rows)))

    def imbalance(self, dual: Floats, sums: Floats) -> float:
        dual, targets, weights = joined(self.parts.results("condensed", dual))
        return self.oracle.imbalance(dual, sums, targets, weights)

    def balance(self, dual: Floats) -> Floats:
        few = self.parts.results("condensed", dual)
        if len(few) == 1:
            balanced: Any = self.parts.each("balance", dual)
            return balanced
        others = OfParts(joined(few[:i] + few[i + 1 :]) for i in range(len(few)))
        balanced = self.parts.each("balance_with", dual, others)
        return balanced

    def balance_near_optimum(self, dual: Floats) -> Floats:
        return self.balance(dual)

    def rowwise_dual(self) -> RowwiseDual | None:
        # Sweeps over one part ignore changes of dual variables in the other parts,
        # which requires nearly orthogonal rows. Rows that are not in memory are
        # excluded, since sweeps would read them too often.
        design = self.design
        if not (design.is_text_like and design.holds_rows) or design.several_scores:
            return None
        form = self.loss.rowwise_dual(np.empty(0))
        return form if isinstance(form, Intervals) else None

    def score_scale(self, scores: Floats) -> float:
        scores, targets, weights = self._some(scores, self.targets, self.weights)
        return self.oracle.score_scale(scores, targets, weights)

    @cached_property
    def dual_scale(self) -> float:
        targets, weights = self._some(self.targets, self.weights)
        return self.oracle.dual_scale(targets, weights) or 1.0

    def _some(self, *xs: Any) -> list[Any]:
        """Return row-wise quantities, weights last, of a sample of limited size."""
        if self.loss.ranks:
            # Scales of losses that compare rows do not depend on the rows.
            return [np.empty(0) for _ in xs]
        step = -(-self.n_scored // _MOST_COLLECTED)
        *others, weights = (self.parts.collect("every", x, step) for x in xs)
        total = float(weights.sum())
        return [*others, weights / total if step > 1 and total else weights]

    def restriction(
        self, scores: Floats, dscores: Floats, penalty: PiecewiseQuadratic
    ) -> PiecewiseQuadratic:
        kinks = self.parts.of(self.parts.each("kinks_along", scores, dscores))
        return SumOfParts(kinks, self.design.n_parts, penalty)

    def targets_that_differ(self) -> Any:
        return self.parts.collect("targets_that_differ")

    def hessian(self, curvature: Curvature) -> RiskHessian:
        return HessianOfParts(self.parts.of(self.parts.each("hessian", curvature)))

    def makes_matrix(self, curvature: Curvature) -> bool:
        # The result depends on the loss alone, not on the scores.
        if self._makes_matrix is None:
            self._makes_matrix = all(self.parts.results("makes_matrix", curvature))
        return self._makes_matrix

    def has_rows_apart(self, curvature: Curvature) -> bool:
        return not self.loss.ranks


@by_parts
class HessianOfParts(RiskHessian):
    """The sum of the second derivatives of the parts.

    Parameters
    ----------
    parts : Parts
        Objects like ``RiskHessian``.
    """

    def __init__(self, parts: Parts) -> None:
        self.parts, self.has_rows = parts, False

    def matrix(self, features: Rows | None = None) -> Floats:
        # Only the lower half of the matrix is sent.
        triangle = self.parts.total("triangle", features)
        q = int(np.sqrt(2.0 * len(triangle)))
        matrix = np.empty((q, q))
        lower = np.tril_indices(q)
        matrix[lower] = triangle
        matrix.T[lower] = triangle
        return matrix

    @cached_property
    def n_rows(self) -> int:
        """Number of rows with second derivatives."""
        return sum(self.parts.results("number_of_rows"))

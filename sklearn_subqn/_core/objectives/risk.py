"""The risk of rows, R(w) = sum_i s_i loss_i(z_i) of scores z = Xw.

``Risk`` is the only class that works on rows. If the rows are not divided into parts,
row-wise quantities such as scores and dual variables are arrays. Otherwise they stay in
the processes of the parts, and callers only pass them from one method to the next; the
decorators of the methods define how ``RiskOfParts`` combines the results of the parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..lazy import cached_property
from ..losses._base import Derivatives, Floats, PiecewiseQuadratic, Rows, RowwiseDual
from ..losses._curvature import Curvature, DiagonalCurvature, as_curvature
from ..losses._dual_loss import AnyLoss, DualLoss
from ..places.kinks import Kinks
from ..places.parts import Parts, maximal, rowwise, summed, summed_function
from ..rows.design import Design
from .risk_duals import DualsOfRisk
from .risk_hessian import RiskHessian


class Evaluated:
    """The risk and dual variables of some rows, in the process of these rows.

    Parameters
    ----------
    value : float
    dual : ndarray
    """

    def __init__(self, value: float, dual: Floats) -> None:
        self._value, self._dual = value, dual

    def value(self) -> float:
        """Return R."""
        return self._value

    def dual(self) -> Floats:
        """Return the dual."""
        return self._dual


class Risk(DualsOfRisk):
    """The risk of a loss on a design: all sums over rows, and row-wise quantities.

    Parameters
    ----------
    design : Design
        The map w -> Xw.
    loss : DualLoss
        The convex function of scores.
    targets : ndarray of shape (n,) or as the loss asks
    weights : ndarray of shape (n,)
        Non-negative row weights s, which sum to one over all parts together.

    Attributes
    ----------
    parts : Parts or None
        The risks of the parts, if the rows are divided into parts.
    """

    parts: Parts | None = None

    def __init__(
        self, design: Design, loss: AnyLoss, targets: Any, weights: Floats
    ) -> None:
        self.design = design
        self.loss = loss if isinstance(loss, DualLoss) else DualLoss.of(loss)
        self.oracle = self.loss.oracle
        self.targets = targets
        self.weights = weights
        # Sizes do not depend on losses and targets, and are shared by other risks.
        self._sizes: dict[str, Any] = {}

    def with_loss(self, loss: DualLoss) -> Risk:
        """Return the risk of another loss on the same data."""
        return self.with_targets(loss, self.targets)

    def with_targets(self, loss: DualLoss, targets: Any) -> Risk:
        """Return the risk of other targets of the same rows and weights."""
        other = Risk(self.design, loss, targets, self.weights)
        other._sizes = self._sizes
        return other

    def with_weights(self, weights: Floats) -> Risk:
        """Return the risk of the same rows, not in parts, with other weights."""
        return Risk(self.design, self.loss, self.targets, weights)

    def gathered(self, rows: Rows) -> Risk:
        """Return the risk of a subset of the rows, ascending, in this process."""
        return self._of_rows(self.design.kept_rows(rows), rows)

    def of_rows(self, rows: Rows) -> Risk:
        """Return the risk of a subset of the rows, in their processes, same weights."""
        return self._of_rows(self.design.rows(rows), rows)

    def _of_rows(self, design: Design, rows: Rows) -> Risk:
        return Risk(
            design,
            self.loss.of_rows(rows),
            self.targets[rows],
            self.weights[rows],
        )

    def count(self, other: Risk, products: float) -> None:
        """Count products with X made for the risk of a subset of the rows."""
        self.design.count(other.design, products)

    # Row-wise quantities.

    @rowwise
    def forward(self, w: Floats) -> Floats:
        """Return the scores Xw."""
        return self.design.forward(w)

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
        """Return the dual that is steepest along changes of the scores of some rows."""
        args = self.targets[rows], self.weights[rows]
        return self.oracle.argsup(scores, dscores, *args)

    @rowwise
    def curvature(self, scores: Floats) -> Curvature:
        """Return the second derivatives of the loss."""
        found = self.oracle.curvature(scores, self.targets, self.weights)
        return as_curvature(found, scores, type(self.oracle).__name__)

    @rowwise
    def damped(
        self, curvature: Curvature, scores: Floats, dual: Floats, longest: float
    ) -> Curvature:
        """Return second derivatives of one score per row, raised to limit the step.

        The raised second derivatives are at least |u| / r, where r is the maximum of
        ``longest`` and the radius in which second derivatives describe the loss.
        """
        limits = np.maximum(self.oracle.curvature_radius(scores, self.targets), longest)
        least = np.abs(dual) / limits
        return DiagonalCurvature(np.maximum(curvature.diagonal(), least))

    @rowwise
    def center(self, dual: Floats) -> Floats:
        """Return the dual variables that form u, as a center for ``envelope``."""
        return self.oracle.dual_variables(dual, self.targets, self.weights)

    # Sums over rows.

    @summed
    def value(self, scores: Floats) -> float:
        """Return R."""
        return self.oracle.value(scores, self.targets, self.weights)

    def evaluate(self, scores: Floats) -> tuple[float, Floats]:
        """Return R and a dual, in one evaluation of the loss."""
        return self.oracle.evaluate(scores, self.targets, self.weights)

    def evaluated(self, scores: Floats) -> Evaluated:
        """Return the result of ``evaluate`` in the processes of the rows."""
        return Evaluated(*self.evaluate(scores))

    @summed
    def adjoint(self, dual: Floats) -> Floats:
        """Return Xᵀu."""
        return self.design.adjoint(dual)

    @summed
    def adjoints(self, *duals: Floats) -> Floats:
        """Return Xᵀu for each of several u, of shape (len(duals), q).

        Rows that are read for each use are read once for all u.
        """
        return np.stack([self.adjoint(dual) for dual in duals])

    @summed
    def sizes_of_sums(self, dual: Floats) -> Floats:
        """Return the sum of |u|, then the sum of |u| x² for each column: (1 + q,)."""
        sizes = np.abs(dual)
        return np.append(sizes.sum(), self.design.squared_adjoint(sizes))

    @summed
    def mean_size(self, scores: Floats) -> float:
        """Return the weighted mean of the largest absolute score of each row."""
        sizes = np.abs(scores)
        return float(self.weights @ (sizes if sizes.ndim == 1 else sizes.max(axis=1)))

    @summed
    def sums_of(
        self, function: Callable[[Floats, Any, Floats], Floats], scores: Floats
    ) -> Floats:
        """Return the sums over rows that a function computes from its arguments."""
        return function(scores, self.targets, self.weights)

    def restriction(
        self, scores: Floats, dscores: Floats, penalty: PiecewiseQuadratic
    ) -> PiecewiseQuadratic:
        """Return R plus a penalty on a line, for losses with kinks."""
        return penalty + self.restrict(scores, dscores)

    def restrict(self, scores: Floats, dscores: Floats) -> PiecewiseQuadratic:
        """Return R on a line, for losses with kinks."""
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
        """Return slope and curvature of R on a line, for smooth losses."""
        args = scores, dscores, self.targets, self.weights
        return self.oracle.derivatives(*args)

    @summed
    def mean_squares(self) -> Floats:
        """Return weighted mean squares of the columns."""
        return self.design.mean_squares(self.weights)

    @summed
    def squared_size(self) -> float:
        """Return the sum of ``mean_squares`` without intercepts, at less cost."""
        return self.design.squared_size(self.weights)

    # Norms and maxima.

    @maximal
    def overflows(self, scores: Floats) -> bool:
        """Return whether scores are too large to compute R exactly."""
        return self.oracle.overflows(scores, self.targets, self.weights)

    @maximal
    def curvature_radius(self, scores: Floats) -> float:
        """Return the largest radius in which H describes the loss of a row."""
        return float(
            self.oracle.curvature_radius(scores, self.targets).max(initial=0.0)
        )

    # Quantities that are not sums over parts.

    def score_scale(self, scores: Floats) -> float:
        """Return a typical size of scores, to which envelope widths are relative."""
        return self.oracle.score_scale(scores, self.targets, self.weights)

    @cached_property
    def dual_scale(self) -> float:
        """Approximately the largest sum of absolute dual variables."""
        return self.oracle.dual_scale(self.targets, self.weights) or 1.0

    def has_equal_targets(self) -> bool:
        """Whether all targets with a weight are the same."""
        targets = self.targets_that_differ()
        return len(targets) < 2 or bool(np.all(targets == targets[0]))

    def targets_that_differ(self) -> Any:
        """Return a target with positive weight, and a different one if there is any."""
        # Rows of scores without a target, such as transitions, come last.
        weights = self.design.row_weights(self.weights)[: len(self.targets)]
        targets = self.targets[weights > 0.0]
        if not len(targets):
            return targets
        differ = np.reshape(targets != targets[0], (len(targets), -1)).any(axis=1)
        return targets[[0, int(differ.argmax())]]

    # Related risks, and the quantities that define them.

    def envelope(self, center: Floats, width: float) -> Risk:
        """Return the risk of the Moreau envelope around a center."""
        return self.with_loss(self.loss.envelope(center, width))

    def narrowed(self, width: float) -> Risk:
        """Return the risk of a nearby smooth loss, for losses of pairs of rows."""
        return self.with_loss(self.loss.narrowed(width))

    @summed
    def proof(self, scores: Floats) -> Floats:
        """Return the offset -R*(u) and the error of the cut that a smooth loss proves.

        The cut is a lower bound of the loss with kinks that the smooth loss
        approximates.
        """
        return np.array(self.oracle.proof(scores, self.targets, self.weights))

    @rowwise
    def neutral_center(self) -> Floats:
        """Return the center in the middle of the sets of dual variables."""
        return self.oracle.neutral_variables(self.targets)

    def hessian(self, curvature: Curvature) -> RiskHessian:
        """Return the second derivatives of w -> R(Xw)."""
        return RiskHessian(self.design, curvature)

    def makes_matrix(self, curvature: Curvature) -> bool:
        """Whether the matrix of the Hessian can be formed."""
        if not curvature.has_entries:
            return False
        if not self.design.several_scores or self.design.shares_coef:
            return True
        return type(curvature).add_gram is not Curvature.add_gram

    def has_rows_apart(self, curvature: Curvature) -> bool:
        """Return whether the second derivatives couple no two rows."""
        return curvature.by_rows

    def rowwise_dual(self) -> RowwiseDual | None:
        """Return the row-wise dual form of the loss, None if the loss has none."""
        return self.loss.rowwise_dual(self.targets)

    # Methods for the risk of all parts.

    def made(self, kind: Callable[..., Any], *args: Any) -> Any:
        """Return an object of a class made from these rows as one of several parts."""
        return kind(self, *args)

    def own_design(self) -> Design:
        """Return ``design``."""
        return self.design

    def loss_of_no_rows(self) -> DualLoss:
        """Return the loss without its row-wise data."""
        return self.loss.of_rows(np.empty(0, dtype=np.intp))

    def row_data(self, what: str) -> Any:
        """Return ``targets`` or ``weights``."""
        return getattr(self, what)

    # Cached quantities.

    @property
    def column_sizes(self) -> Floats:
        """Weighted root mean squares of the columns, of shape (q,)."""
        if "columns" not in self._sizes:
            squares = self.mean_squares()
            self._sizes["columns"] = np.sqrt(squares, out=squares)
        sizes: Floats = self._sizes["columns"]
        return sizes

    @property
    def row_size(self) -> float:
        """Root of the sum of ``mean_squares`` without intercepts."""
        if "rows" not in self._sizes:
            self._sizes["rows"] = np.sqrt(self.squared_size())
        return float(self._sizes["rows"])

    @cached_property
    def at_zero(self) -> float:
        """R at w = 0, a typical size of bounds."""
        return float(self.value(self.zero_scores()))

"""Losses: a set of dual variables, a smoothing, and a linear map of the scores.

Losses R are convex functions of scores z and targets; they depend on neither the
parameters w nor the data X. Scores have shape (n,) for losses of one score per row and
(n, k) for losses of k scores per row. Weights are normalized by the caller: they are
non-negative and sum to one, so that R is a weighted mean. Losses of this form are
Fenchel-Young losses (Blondel, Martins and Niculae 2020): set, smoothing and map
determine all that solvers need.
"""

from __future__ import annotations

from typing import Any, final

from ._base import Floats, Rows, RowwiseDual
from ._composition import DualSet, ScoreMap, Smoothing
from ._loss import Loss, offers
from ._mapped import Mapped
from ._offset import OffsetLoss, Offsets

_PACKAGE = __name__.partition(".")[0] + "."


class Composed(Loss):
    """A loss under the name by which it is known in the literature.

    Attributes
    ----------
    loss : DualLoss
    """

    loss: DualLoss

    def value(self, scores: Floats, targets: Any, weights: Floats) -> float:
        return self.loss.oracle.value(scores, targets, weights)

    def subgradient(self, scores: Floats, targets: Any, weights: Floats) -> Floats:
        return self.loss.oracle.subgradient(scores, targets, weights)


@final
class DualLoss:
    """R(z) = sum_i weights_i max over b in a set of <b, (A z)_i + o_i> - h(b).

    Parameters
    ----------
    dual_set : DualSet or Loss
        The set and the offsets o, or the oracle of a loss that has no such form.
    smoothing : Smoothing, optional
        The function h, default zero.
    score_map : ScoreMap, optional
        The map A, default the identity.

    Attributes
    ----------
    oracle : Loss
        Value, subgradient and further functions of scores, targets and weights.
    smooth : bool
        Whether R is differentiable everywhere.
    has_lines : bool
        Whether the oracle has ``restrict`` or ``derivatives``. Otherwise line searches
        use values and subgradients.
    has_conjugate : bool
        Whether ``conjugate`` is defined at dual points other than zero. Otherwise R* is
        known at subgradients and, by convexity, between subgradients and zero.
    has_rounding : bool
        Whether ``rounding`` is an error bound of the conjugate at subgradients.
    has_leeway : bool
        Whether ``leeway`` returns the distances of dual variables from the ends of
        intervals.
    has_envelope : bool
        Whether the loss has kinks and the oracle an ``envelope``.
    sharpens : bool
        Whether the loss is smooth, and the width of its curved parts is
        ``score_scale``, which may be zero. Then the oracle has ``kinked`` and
        ``envelope``.
    narrows : bool
        Whether the loss has kinks and the oracle ``narrowed``.
    by_columns : bool
        Whether second derivatives of R give quadratic models along single columns of X.
    quadratic : bool
        Whether R is a quadratic function of one score for each row.
    analytic, invariant, ranks, counts_rows, steep, joint, has_margin : bool
        As of ``Loss``.
    rows_each : float
        As of ``Loss``.
    is_ours : bool
        Whether the oracle is defined in this package, not by a user.
    """

    def __init__(
        self,
        dual_set: DualSet | Loss,
        smoothing: Smoothing | None = None,
        score_map: ScoreMap = ScoreMap(),  # noqa: B008
    ) -> None:
        self.set, self.smoothing, self.map = dual_set, smoothing, score_map
        if isinstance(dual_set, DualSet):
            oracle = dual_set.oracle(smoothing)
        elif smoothing is None:
            oracle = dual_set
        else:
            raise TypeError(f"{type(dual_set).__name__} takes no smoothing.")
        known = score_map.is_injective
        self.has_leeway = offers(oracle, "leeway")
        self.smooth = offers(oracle, "curvature")
        if score_map.joint and not self.smooth:
            raise TypeError(f"{type(score_map).__name__} are of smooth losses.")
        self.has_lines = offers(oracle, "restrict") or offers(oracle, "derivatives")
        self.has_rounding = not known or offers(oracle, "rounding")
        has_variables = offers(oracle, "dual_variables", "neutral_variables")
        enveloped = oracle is not dual_set or offers(oracle, "envelope")
        self.has_envelope = known and has_variables and enveloped and not self.smooth
        self.sharpens = self.smooth and offers(oracle, "kinked")
        self.narrows = not self.smooth and offers(oracle, "narrowed")
        quadratic = oracle.quadratic
        if not score_map.is_identity:
            mapped = OffsetLoss if isinstance(score_map, Offsets) else Mapped
            oracle = mapped(oracle, score_map)
        self.is_ours = type(oracle).__module__.startswith(_PACKAGE)
        alike = quadratic and self.is_ours
        apart = not (oracle.ranks or (oracle.joint and not alike))
        self.by_columns = self.smooth and apart and oracle.by_columns
        self.quadratic = quadratic and not oracle.joint
        self.oracle: Loss = oracle
        self.has_conjugate = oracle.has_conjugate
        self.analytic, self.invariant = oracle.analytic, oracle.invariant
        self.ranks, self.counts_rows = oracle.ranks, oracle.counts_rows
        self.steep, self.joint = oracle.steep, oracle.joint
        self.has_margin = oracle.has_margin
        self.rows_each = oracle.rows_each

    @classmethod
    def of(cls, loss: DualLoss | Loss) -> DualLoss:
        """Return a ``DualLoss`` unchanged, or an oracle as a ``DualLoss``."""
        if isinstance(loss, Composed):
            return loss.loss
        return loss if isinstance(loss, DualLoss) else cls(loss)

    def envelope(self, center: Floats, width: float) -> DualLoss:
        """Return the Moreau envelope around dual variables."""
        if isinstance(self.set, Loss):
            return DualLoss.of(self.set.envelope(center, width))
        return DualLoss(self.set, self.set.envelope(center, width), self.map)

    def kinked(self) -> DualLoss:
        """Return the loss with kinks in place of narrow curved parts, or itself."""
        return DualLoss.of(self.oracle.kinked())

    def narrowed(self, width: float) -> DualLoss:
        """Return a smooth lower bound of this loss, close to it for small widths."""
        return DualLoss.of(self.oracle.narrowed(width))

    def with_offsets(self) -> DualLoss:
        """Return the loss R(z + o), whose targets (n, 2) are the targets of R, and o.

        Only for losses of one score per row without a score map.
        """
        return DualLoss(self.set, self.smoothing, Offsets())

    def of_rows(self, rows: Rows) -> DualLoss:
        """Return the loss of the given rows, if it has row-wise data."""
        smoothing = self.smoothing and self.smoothing.of_rows(rows)
        if smoothing is self.smoothing:
            return self
        return DualLoss(self.set, smoothing, self.map)

    def rowwise_dual(self, targets: Any) -> RowwiseDual | None:
        """Return the loss as a maximum separable by rows, None if it is not."""
        if isinstance(self.set, Loss) or not self.map.is_identity:
            return None
        return self.set.rowwise(targets, self.smoothing)

    def asymptote(self) -> tuple[DualLoss, float] | None:
        """Return a loss with an envelope that approximates this loss for large scores.

        The second result is an upper bound of their difference, for weights that sum to
        one.
        """
        if isinstance(self.set, Loss) or self.smoothing is None:
            return None
        largest = self.set.largest_penalty(self.smoothing)
        return (
            None if largest is None else (DualLoss(self.set, None, self.map), largest)
        )


#: The types that estimators accept as a loss.
AnyLoss = DualLoss | Loss

"""Losses: a set of dual variables, a smoothing, and a linear map in front.

Losses R are convex functions of scores z and targets; they never see the parameters w
or the data X. Scores have shape (n,) for losses of one score per row and (n, k) for
losses of k scores per row. Weights are normalized by the caller: they are non-negative
and sum to one, so that R is a weighted mean. Losses of this form are Fenchel-Young
losses (Blondel, Martins and Niculae 2020): all that solvers ask for follows from the
three.
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
    """A loss under a name of its own, by which it is known in the literature.

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
        The set, and the offsets o; or what is known of a loss by an oracle only.
    smoothing : Smoothing, optional
        h; default none.
    score_map : ScoreMap, optional
        A; default the identity.

    Attributes
    ----------
    oracle : Loss
        What the three make of scores, targets and weights.
    smooth : bool
        Whether R is differentiable everywhere.
    has_lines : bool
        Whether the oracle has ``restrict`` or ``derivatives``. The minimizer on a
        line is found by values and subgradients elsewhere.
    has_conjugate : bool
        Whether ``conjugate`` knows more duals than zero. Elsewhere it is known at
        subgradients, and by convexity between these and zero.
    has_rounding : bool
        Whether ``rounding`` says how far that is off.
    has_leeway : bool
        Whether ``leeway`` says how far dual variables are from the ends of intervals.
    has_envelope : bool
        Whether it has kinks, and ``envelope``.
    sharpens : bool
        Whether it is smooth, but with bends of ``score_scale``, which may vanish: it
        has ``kinked`` and ``envelope``.
    narrows : bool
        Whether it has kinks, and ``narrowed``.
    by_columns : bool
        Whether second derivatives of R make quadratic models by columns of X.
    quadratic : bool
        Whether R is a quadratic function of one score for each row.
    analytic, invariant, ranks, counts_rows, steep, joint, has_margin : bool
        As of ``Loss``.
    rows_each : float
        As of ``Loss``.
    is_ours : bool
        Whether the oracle is one of the package's, not of a user.
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
        apart = not (oracle.ranks or oracle.joint)
        self.by_columns = self.smooth and apart and oracle.by_columns
        self.quadratic = quadratic and not oracle.joint
        self.oracle: Loss = oracle
        self.has_conjugate = oracle.has_conjugate
        self.analytic, self.invariant = oracle.analytic, oracle.invariant
        self.ranks, self.counts_rows = oracle.ranks, oracle.counts_rows
        self.steep, self.joint = oracle.steep, oracle.joint
        self.has_margin = oracle.has_margin
        self.rows_each = oracle.rows_each
        self.is_ours = type(oracle).__module__.startswith(_PACKAGE)

    @classmethod
    def of(cls, loss: DualLoss | Loss) -> DualLoss:
        """Return a loss as it is, or the loss of an oracle."""
        if isinstance(loss, Composed):
            return loss.loss
        return loss if isinstance(loss, DualLoss) else cls(loss)

    def envelope(self, center: Floats, width: float) -> DualLoss:
        """Return the Moreau envelope around dual variables."""
        if isinstance(self.set, Loss):
            return DualLoss.of(self.set.envelope(center, width))
        return DualLoss(self.set, self.set.envelope(center, width), self.map)

    def kinked(self) -> DualLoss:
        """Return the loss with kinks in place of bends, where there are any."""
        return DualLoss.of(self.oracle.kinked())

    def narrowed(self, width: float) -> DualLoss:
        """Return a smooth loss below this one, close to it for a small width."""
        return DualLoss.of(self.oracle.narrowed(width))

    def with_offsets(self) -> DualLoss:
        """Return R(z + o), for targets of shape (n, 2): this loss's targets, and o.

        Of losses of one score per row that have no other map in front.
        """
        return DualLoss(self.set, self.smoothing, Offsets())

    def of_rows(self, rows: Rows) -> DualLoss:
        """Return the loss of some of the rows, for one that knows more of each."""
        smoothing = self.smoothing and self.smoothing.of_rows(rows)
        if smoothing is self.smoothing:
            return self
        return DualLoss(self.set, smoothing, self.map)

    def rowwise_dual(self, targets: Any) -> RowwiseDual | None:
        """Return the loss as a maximum over dual variables separable by rows."""
        if isinstance(self.set, Loss) or not self.map.is_identity:
            return None
        return self.set.rowwise(targets, self.smoothing)

    def asymptote(self) -> tuple[DualLoss, float] | None:
        """Return a loss with an envelope that this one resembles in large units.

        And by how much it is larger, at most, of rows whose weights sum to one.
        """
        if isinstance(self.set, Loss) or self.smoothing is None:
            return None
        largest = self.set.largest_penalty(self.smoothing)
        return (
            None if largest is None else (DualLoss(self.set, None, self.map), largest)
        )


#: What estimators take for a loss.
AnyLoss = DualLoss | Loss

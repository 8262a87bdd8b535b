"""Losses: a set of dual variables, a smoothing, and a linear map in front.

Losses R are convex functions of scores z and targets; they never see the parameters w
or the data X. Scores have shape (n,) for losses of one score per row and (n, k) for
losses of k scores per row. Weights are normalized by the caller: they are non-negative
and sum to one, so that R is a weighted mean. Losses of this form are Fenchel-Young
losses (Blondel, Martins and Niculae 2020): all that solvers ask for follows from the
three.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np

from ._base import (
    TIE_TOLERANCE,
    TINY,
    Chains,
    Curvature,
    Derivatives,
    Floats,
    Mask,
    PiecewiseQuadratic,
    Rows,
    RowwiseDual,
    rounding,
)
from ._oracle import DualSet, Oracle, ScoreMap, Smoothing, offers


class Composed(Oracle):
    """A loss by a name of its own, for those who know it by that.

    Attributes
    ----------
    loss : Loss
    """

    loss: Loss

    def value(self, scores: Floats, targets: Any, weights: Floats) -> float:
        return self.loss.value(scores, targets, weights)

    def subgradient(self, scores: Floats, targets: Any, weights: Floats) -> Floats:
        return self.loss.subgradient(scores, targets, weights)


@final
class Loss:
    """R(z) = sum_i weights_i max over b in a set of <b, (A z)_i + o_i> - h(b).

    Parameters
    ----------
    dual_set : DualSet or Oracle
        The set, and the offsets o; or what is known of a loss by an oracle only.
    smoothing : Smoothing, optional
        h; default none.
    score_map : ScoreMap, optional
        A; default the identity.

    Attributes
    ----------
    smooth : bool
        Whether R is differentiable everywhere.
    has_lines : bool
        Whether it tells ``restrict`` or ``derivatives``. The minimizer on a line is
        found by values and subgradients elsewhere.
    tells_conjugate : bool
        Whether ``conjugate`` knows more duals than zero. Elsewhere it is known at
        subgradients, and by convexity between these and zero.
    tells_rounding : bool
        Whether ``rounding`` says how far that is off.
    has_envelope : bool
        Whether it has kinks, and tells ``envelope``.
    narrows : bool
        Whether it has kinks, and tells ``narrowed``.
    invariant : bool
        Whether adding a constant to all scores of a row changes nothing.
    analytic, ranks, counts_rows, steep, joint, has_margin : bool
        As of ``Oracle``.
    """

    def __init__(
        self,
        dual_set: DualSet | Oracle,
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
        self.oracle = oracle
        self.smooth = offers(oracle, "curvature")
        if score_map.joint and not self.smooth:
            raise TypeError(f"{type(score_map).__name__} are of smooth losses.")
        lines = offers(oracle, "restrict") or offers(oracle, "derivatives")
        self.has_lines = lines
        known = score_map.is_injective
        self.tells_conjugate = offers(oracle, "conjugate") and known
        self.tells_rounding = offers(oracle, "rounding") or not known
        self.has_envelope = (
            not self.smooth
            and known
            and (offers(oracle, "dual_variables", "neutral_variables"))
        )
        self.narrows = not self.smooth and offers(oracle, "narrowed")
        self.invariant = oracle.invariant and score_map.is_identity
        self.analytic, self.ranks = oracle.analytic, oracle.ranks
        self.counts_rows, self.steep = oracle.counts_rows, oracle.steep
        self.joint = oracle.joint or score_map.joint
        self.has_margin = oracle.has_margin and known

    @classmethod
    def of(cls, loss: Loss | Oracle) -> Loss:
        """Return a loss as it is, and that of an oracle."""
        if isinstance(loss, Composed):
            return loss.loss
        return loss if isinstance(loss, Loss) else cls(loss)

    @property
    def name(self) -> str:
        """What errors call it."""
        return type(self.set).__name__

    def value(self, scores: Floats, targets: Any, weights: Floats) -> float:
        """Return R(scores)."""
        return self.oracle.value(*self.map.inputs(scores, targets, weights))

    def subgradient(self, scores: Floats, targets: Any, weights: Floats) -> Floats:
        """Return one u in the subdifferential of R at ``scores``, of their shape."""
        inputs = self.map.inputs(scores, targets, weights)
        return self.map.adjoint(self.oracle.subgradient(*inputs), scores)

    def evaluate(
        self, scores: Floats, targets: Any, weights: Floats
    ) -> tuple[float, Floats]:
        """Return value and subgradient."""
        value, dual = self.oracle.evaluate(*self.map.inputs(scores, targets, weights))
        return value, self.map.adjoint(dual, scores)

    def shifted(
        self, scores: Floats, targets: Any, weights: Floats
    ) -> Callable[[float], tuple[float, Floats]]:
        """Return both as a function of a number added to all scores, of shape (n,)."""
        return self.oracle.shifted(scores, targets, weights)

    def kink_rows(self, scores: Floats, targets: Any) -> Rows:
        """Return the indices of rows on a kink, within ``TIE_TOLERANCE``."""
        return self.oracle.kink_rows(self.map.forward(scores), targets)

    def argsup(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> Floats:
        """Return the subgradient u at rows with kinks that maximizes <u, dscores>."""
        ends = self.map.forward(scores), self.map.forward(dscores)
        dual = self.oracle.argsup(*ends, targets, weights)
        return self.map.adjoint(dual, scores)

    def restrict(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> PiecewiseQuadratic:
        """Return R(scores + eta * dscores) as a function of the step size eta."""
        ends = self.map.forward(scores), self.map.forward(dscores)
        return self.oracle.restrict(*ends, targets, weights)

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> Derivatives:
        """Return eta -> (slope, curvature) of R(scores + eta * dscores)."""
        z, *others = self.map.inputs(scores, targets, weights)
        return self.oracle.derivatives(z, self.map.forward(dscores), *others)

    def curvature(self, scores: Floats, targets: Any, weights: Floats) -> Curvature:
        """Return generalized second derivatives."""
        curvature = self.oracle.curvature(*self.map.inputs(scores, targets, weights))
        return self.map.curvature(curvature, scores)

    def conjugate(self, dual: Floats, targets: Any, weights: Floats) -> float:
        """Return R*(u), finite for u in its domain."""
        if self.map.is_injective:
            return self.oracle.conjugate(*self._duals(dual, targets, weights))
        if dual.any():
            raise TypeError(f"{self.name} knows no conjugate but at zero.")
        return 0.0

    def conjugate_at(
        self, dual: Floats, scores: Floats, targets: Any, weights: Floats
    ) -> float:
        """Return R*(u) for a subgradient u = ``dual`` at ``scores``."""
        if self.tells_conjugate:
            return self.conjugate(dual, targets, weights)
        return self.oracle.conjugate_at(dual, scores, targets, weights)

    def conjugate_size(
        self, dual: Floats, targets: Any, weights: Floats, conjugate: float
    ) -> float:
        """Return about what the absolute values of the terms of R*(u) sum to."""
        u, y, s = self._duals(dual, targets, weights)
        return self.oracle.conjugate_size(u, y, s, conjugate)

    def rounding(self, scores: Floats, weights: Floats) -> float:
        """Return by how much the value and products with a dual may be off."""
        if self.map.is_injective:
            return self.oracle.rounding(scores, weights)
        # Of rows near a kink, too.
        largest = np.abs(self.map.forward(scores)).max(axis=1)
        share = 2.0 * TIE_TOLERANCE + 4.0 * rounding(scores.size)
        return share * float(weights @ np.maximum(largest, 1.0))

    def distance(self, dual: Floats, targets: Any, weights: Floats) -> float:
        """Return the norm of what u lacks of the point at which R* is evaluated."""
        if self.map.is_identity:
            return self.oracle.distance(dual, targets, weights)
        if not self.map.is_injective:
            return 0.0
        used = self._duals(dual, targets, weights)[0]
        left = dual - self.map.adjoint(used, dual)
        positive = np.maximum(weights, TINY)[:, np.newaxis]
        return float(np.sqrt(np.sum(left * (left / positive))))

    def imbalance(
        self, dual: Floats, sums: Floats, targets: Any, weights: Floats
    ) -> float:
        """Return a share of u, changed by which it makes up for column sums."""
        if not self.map.joint:
            used = self._duals(dual, targets, weights)
            return self.oracle.imbalance(used[0], self.map.lifted(sums), *used[1:])
        columns = zip(dual.T, sums, strict=True)
        args = targets, weights
        return max(
            self.oracle.imbalance(u, np.atleast_1d(s), *args) for u, s in columns
        )

    def determined(self, free: Floats) -> Floats:
        """Return intercepts of all scores without the part that changes nothing."""
        if not self.oracle.invariant:
            return free
        outputs = self.map.forward(free)
        return self.map.least(outputs - outputs.mean())

    def balance(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        """Return u changed, in the domain of R*, so that its columns sum to zero."""
        if not self.map.joint:
            balanced = self.oracle.balance(*self._duals(dual, targets, weights))
            return self.map.adjoint(balanced, dual)
        columns = [self.oracle.balance(u, targets, weights) for u in dual.T]
        return np.stack(columns, axis=1)

    def balance_near_optimum(
        self, dual: Floats, targets: Any, weights: Floats
    ) -> Floats:
        """Return the same at the least cost where u is nearly optimal."""
        used = self._duals(dual, targets, weights)
        return self.map.adjoint(self.oracle.balance_near_optimum(*used), dual)

    def feasible(self, dual: Floats, targets: Any, weights: Floats) -> Mask:
        """Return for each row, of shape (n,), whether its part of R*(u) is finite."""
        feasible = self.oracle.feasible(*self._duals(dual, targets, weights))
        if self.map.joint:
            feasible = np.asarray(feasible.reshape(dual.shape).all(axis=1))
        return feasible

    def dual_variables(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        """Return the variables b, free of weights and signs, that stand for a dual."""
        return self.oracle.dual_variables(*self._duals(dual, targets, weights))

    def neutral_variables(self, targets: Any) -> Floats:
        """Return such variables in the middle of their set, one row like another."""
        return self.oracle.neutral_variables(targets)

    def envelope(self, center: Floats, width: float) -> Loss:
        """Return the Moreau envelope around dual variables."""
        if isinstance(self.set, Oracle):
            return Loss.of(self.set.envelope(center, width))
        return Loss(self.set, self.set.envelope(center, width), self.map)

    def chains(self, targets: Any) -> Chains | None:
        """Return the loss as a maximum over mixtures of labelings of sequences."""
        return self.oracle.chains(targets)

    def narrowed(self, width: float) -> Loss:
        """Return a smooth loss below this one, close to it for a small width."""
        return Loss.of(self.oracle.narrowed(width))

    def of_rows(self, rows: Rows) -> Loss:
        """Return the loss of some of the rows, for one that knows more of each."""
        smoothing = self.smoothing and self.smoothing.of_rows(rows)
        if smoothing is self.smoothing:
            return self
        return Loss(self.set, smoothing, self.map)

    def rowwise_dual(self, targets: Any) -> RowwiseDual | None:
        """Return the loss as a maximum over dual variables separable by rows."""
        if isinstance(self.set, Oracle) or not self.map.is_identity:
            return None
        return self.set.rowwise(targets, self.smoothing)

    def _duals(self, dual: Floats, targets: Any, weights: Floats) -> Any:
        """Return dual, targets and weights of the set for a dual of scores."""
        if self.map.is_identity:
            return dual, targets, weights
        u, *others = self.map.duals(dual, targets, weights)
        return self.oracle.projected(u, *others), *others

    def asymptote(self) -> tuple[Loss, float] | None:
        """Return a loss with an envelope that this one resembles in large units.

        And by how much it is larger, at most, of rows whose weights sum to one.
        """
        if isinstance(self.set, Oracle) or self.smoothing is None:
            return None
        largest = self.set.largest_penalty(self.smoothing)
        return None if largest is None else (Loss(self.set, None, self.map), largest)

    def overflows(self, scores: Floats, targets: Any, weights: Floats) -> bool:
        """Whether scores are beyond those up to which ``value`` is that of the loss."""
        return self.oracle.overflows(*self.map.inputs(scores, targets, weights))

    def curvature_radius(self, scores: Floats, targets: Any) -> Floats:
        """Return how far second derivatives tell each row's loss at least, shape (n,).

        In units of scores; zero where the loss says nothing about that.
        """
        if not self.map.is_identity:
            return np.zeros(len(scores))
        return self.oracle.curvature_radius(scores, targets)

    def score_scale(self, scores: Floats, targets: Any, weights: Floats) -> float:
        """Return a length of scores to which widths of envelopes are relative."""
        return self.oracle.score_scale(*self.map.inputs(scores, targets, weights))

    def dual_scale(self, targets: Any, weights: Floats) -> float:
        """Return about what the absolute values of u sum to at most.

        At scores that are all the same, the best one.
        """
        return self.oracle.dual_scale(targets, weights)


#: What estimators take for a loss.
AnyLoss = Loss | Oracle

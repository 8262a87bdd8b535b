"""Smooth losses that are computed from sums over several rows."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from ._base import Derivatives, Floats, norm_by_weights
from ._curvature import Curvature
from ._loss import WholeLoss


class OfSums(WholeLoss):
    """Base of smooth losses that are computed from sums over several rows.

    The sums at some scores are an object with the attributes ``value``, ``gradient``
    and ``curvature``; ``conjugate``, a pair of R*(u) for the gradient u and of the sum
    of the absolute values of its terms; ``slope_sizes``, sums of the absolute terms of
    the gradient; and ``rounding``, a bound of the relative rounding errors of sums of
    positive numbers.
    """

    @abstractmethod
    def sums_at(self, scores: Floats, targets: Any, weights: Floats) -> Any:
        """Return the sums at some scores."""

    def value(self, scores: Floats, targets: Any, weights: Floats) -> float:
        value: float = self.sums_at(scores, targets, weights).value
        return value

    def evaluate(
        self, scores: Floats, targets: Any, weights: Floats
    ) -> tuple[float, Floats]:
        sums = self.sums_at(scores, targets, weights)
        return sums.value, sums.gradient

    def conjugate_at(
        self, dual: Floats, scores: Floats, targets: Any, weights: Floats
    ) -> float:
        """Return <u, z> - R(z), by Fenchel-Young equality, or an upper bound."""
        sums = self.sums_at(scores, targets, weights)
        conjugate, size = sums.conjugate
        return float(conjugate + sums.rounding * size)

    def distance_at(
        self, dual: Floats, scores: Floats, targets: Any, weights: Floats
    ) -> float:
        """Return a bound of rounding errors of u, a difference of sums."""
        sums = self.sums_at(scores, targets, weights)
        return float(sums.rounding * norm_by_weights(sums.slope_sizes, weights))

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> Derivatives:
        def at(step: float) -> tuple[float, float]:
            sums = self.sums_at(scores + step * dscores, targets, weights)
            product = sums.curvature.apply(dscores)
            return float(sums.gradient @ dscores), max(float(product @ dscores), 0.0)

        return at

    def curvature(self, scores: Floats, targets: Any, weights: Floats) -> Curvature:
        curvature: Curvature = self.sums_at(scores, targets, weights).curvature
        return curvature

"""What bounds ask of a loss: conjugates of dual points, and what rounding leaves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ..kernels import row_loss
from ..rounding import CLOSE, rounding, running_rounding
from ._base import Floats, Mask


class OfDuals(ABC):
    """A convex function R of scores, as bounds by its dual points u see it."""

    infimum: float
    slope_size: float
    invariant: bool
    ranks: bool

    @property
    def has_conjugate(self) -> bool:
        """Whether ``conjugate`` knows more duals than zero."""
        return type(self).conjugate is not OfDuals.conjugate

    @abstractmethod
    def value(self, scores: Floats, targets: Any, weights: Floats) -> float:
        """Return R(scores)."""

    def conjugate(self, dual: Floats, targets: Any, weights: Floats) -> float:
        """Return R*(u) = sup_z <u, z> - R(z) for u = ``dual``.

        Any u for which R*(u) is finite gives the cut R(z) >= <u, z> - R*(u). By default
        R*(0) <= -inf R only; other duals need the scores they belong to.

        Parameters
        ----------
        dual : ndarray of the shape of scores
            The dual u, in the units of subgradients, weights included.
        targets : ndarray of shape (n,) or (n, k)
            Targets, as ``fit`` hands them over.
        weights : ndarray of shape (n,)
            Weights of the rows, which are not negative and sum to one.

        Returns
        -------
        conjugate : float
            R*(u) or more, infinity outside of its domain.
        """
        if dual.any():
            raise TypeError(f"{type(self).__name__} knows no conjugate except at zero.")
        return -self.infimum

    def conjugate_at(
        self, dual: Floats, scores: Floats, targets: Any, weights: Floats
    ) -> float:
        """Return R*(u) for a subgradient u = ``dual`` at ``scores``.

        Without ``conjugate``, <u, z> - R(z) and what rounding may have left out. Both
        may be much larger than the bounds that are made of it. Nor is what R(z) has
        summed known from u, in which terms may cancel: it is accounted for as if each
        row's score counted by its weight. Classes that know R*(u) from what they have
        chosen, whatever the scores, write this method.
        """
        if self.has_conjugate:
            return self.conjugate(dual, targets, weights)
        value = self.value(scores, targets, weights)
        terms = float(np.vdot(np.abs(dual), np.abs(scores))) + abs(value)
        largest = float(np.abs(scores).max(initial=0.0))
        scale = largest + abs(self.infimum)
        if value < self.infimum - CLOSE * scale:
            raise ValueError(
                f"The value {value:g} of {type(self).__name__} is below its infimum "
                f"{self.infimum:g}; set infimum to a lower bound of all values."
            )
        # The loss may have subtracted any score from the others.
        slopes = max(float(np.abs(dual).sum()), float(weights.sum()))
        terms += (slopes + self.slope_size) * largest
        return float(np.vdot(dual, scores)) - value + rounding(dual.size) * terms

    def conjugate_size(
        self, dual: Floats, targets: Any, weights: Floats, conjugate: float
    ) -> float:
        """Return about what the absolute values of the terms of R*(u) sum to.

        Rounding errors of R*(u) are in proportion to that, and so is what R* gains at
        most where entries of u shrink by some share; ``conjugate`` is R*(u). The
        default suits sums of <u, y> and of terms of one sign.
        """
        size = abs(conjugate)
        if targets.shape == dual.shape:
            size += 2.0 * float(np.vdot(np.abs(dual), np.abs(targets)))
        return size

    def conjugate_and_size(
        self, dual: Floats, targets: Any, weights: Floats
    ) -> tuple[float, float]:
        """Return ``conjugate`` and ``conjugate_size``.

        For losses that compute them together.
        """
        conjugate = self.conjugate(dual, targets, weights)
        return conjugate, self.conjugate_size(dual, targets, weights, conjugate)

    def distance(self, dual: Floats, targets: Any, weights: Floats) -> float:
        """Return how far u is from the point at which R* is evaluated.

        By rounding; the root of sum_i d_i² / s_i of differences d.
        """
        return 0.0

    def distance_at(
        self, dual: Floats, scores: Floats, targets: Any, weights: Floats
    ) -> float:
        """Return ``distance`` of a subgradient at known scores without ``conjugate``.

        Where u is a difference of sums that are larger, so are their rounding errors.
        """
        return 0.0

    def imbalance(
        self, dual: Floats, sums: Floats, targets: Any, weights: Floats
    ) -> float:
        """Return a share of u, changed by which it makes up for column sums.

        There is a point of the domain that differs from another one of these column
        sums by no more than this share of u, and whose columns sum to zero. Of losses
        of one score per row the entries of one sign shrink. Subgradients of losses that
        do not have a conjugate do not, so that their sums have to be rounding; they
        are where only differences of scores count.
        """
        total = float(np.abs(dual).sum())
        if not sums.any() or self.ranks:
            return 0.0
        if not self.has_conjugate:
            share = float(np.abs(sums).sum()) / (total or 1.0)
            return share if share <= running_rounding(len(dual)) else np.inf
        if dual.ndim > 1:
            return np.inf
        lighter = 0.5 * (total - abs(float(dual.sum())))
        return abs(float(sums[0])) / lighter if lighter > 0.0 else np.inf

    def dual_scale(self, targets: Any, weights: Floats) -> float:
        """Return about what the absolute values of u sum to at most.

        At scores that are all the same, the best one.
        """
        return 1.0

    def determined(self, free: Floats) -> Floats:
        """Return intercepts of all scores without the part that changes nothing."""
        return free - free.mean() if self.invariant else free

    def balance(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        """Return u changed, within the domain of R*, so that its columns sum to zero.

        Lower bounds of objectives with free intercepts need such duals. Of losses of
        one score per row the entries of the heavier sign shrink: zero is in the domain.
        """
        if dual.ndim > 1:
            raise TypeError(f"{type(self).__name__} does not balance its duals.")
        balanced = np.empty(dual.shape)
        changed = row_loss.balance(np.ascontiguousarray(dual), balanced)
        return balanced if changed else dual

    def balance_near_optimum(
        self, dual: Floats, targets: Any, weights: Floats
    ) -> Floats:
        """Return the same at the least cost where u is nearly optimal."""
        return self.balance(dual, targets, weights)

    def feasible(self, dual: Floats, targets: Any, weights: Floats) -> Mask:
        """Return for each row, of shape (n,), whether its part of R*(u) is finite.

        Exact except for rounding, and False where the loss does not know.
        """
        return np.zeros(len(dual), dtype=bool)

    def leeway(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        """Return by how much each u_i may change either way in the domain of R*.

        Of losses of one score per row; where there is no end about as much as it is.
        """
        raise self._lacks("leeway of duals")

    def inward(
        self, dual: Floats, targets: Any, weights: Floats, share: float
    ) -> Floats:
        """Return u of which a share has gone from the ends of the domain of R*.

        Of losses with a leeway that have ends where their subgradients are.
        """
        return dual

    def projected(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        """Return u as it is in the domain of R*, outside of which it is by rounding."""
        return dual

    def proof(
        self, scores: Floats, targets: Any, weights: Floats
    ) -> tuple[float, float]:
        """Return -R*(u) or less, and an error, of what this one is narrowed from.

        At the gradient u of this one; the root of sum_i d_i² / s_i of what rounding
        leaves out of u.
        """
        raise self._lacks("other function")

    def rounding(self, scores: Floats, weights: Floats) -> float:
        """Return by how much the value and products with a dual may be off.

        For losses that do not have a conjugate, in place of ``conjugate_at``, and for
        losses whose values are rounding errors below a number of their own.
        """
        raise self._lacks("rounding errors")

    def _lacks(self, what: str) -> TypeError:
        return TypeError(f"{type(self).__name__} has no {what}.")

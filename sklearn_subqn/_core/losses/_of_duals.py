"""The interface of losses for lower bounds: conjugates and rounding errors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ..kernels import row_loss
from ..rounding import CLOSE, rounding, running_rounding
from ._base import Floats, Mask


class OfDuals(ABC):
    """A convex function R of scores, with methods for bounds by dual points."""

    infimum: float
    slope_size: float
    invariant: bool
    ranks: bool

    @property
    def has_conjugate(self) -> bool:
        """Whether ``conjugate`` is defined at dual points other than zero."""
        return type(self).conjugate is not OfDuals.conjugate

    @abstractmethod
    def value(self, scores: Floats, targets: Any, weights: Floats) -> float:
        """Return R(scores)."""

    def conjugate(self, dual: Floats, targets: Any, weights: Floats) -> float:
        """Return R*(u) = sup_z <u, z> - R(z) for u = ``dual``.

        Any u for which R*(u) is finite gives the cut R(z) >= <u, z> - R*(u). By default
        only R*(0) <= -inf R is known; R* at other dual points needs their scores.

        Parameters
        ----------
        dual : ndarray of the shape of scores
            The dual u, in the units of subgradients, weights included.
        targets : ndarray of shape (n,) or (n, k)
            Targets, as passed by ``fit``.
        weights : ndarray of shape (n,)
            Non-negative weights of the rows, which sum to one.

        Returns
        -------
        conjugate : float
            R*(u) or an upper bound, infinity outside of the domain.
        """
        if dual.any():
            raise TypeError(f"{type(self).__name__} knows no conjugate except at zero.")
        return -self.infimum

    def conjugate_at(
        self, dual: Floats, scores: Floats, targets: Any, weights: Floats
    ) -> float:
        """Return R*(u) for a subgradient u = ``dual`` at ``scores``.

        Without ``conjugate`` it is <u, z> - R(z) plus a bound of rounding errors. Both
        terms may be much larger than the lower bounds that use them. The terms of R(z)
        may cancel in u, so they are estimated as each row's score times its weight.
        Classes that compute R*(u) without the scores override this method.
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
        # The loss may contain differences of any two scores.
        slopes = max(float(np.abs(dual).sum()), float(weights.sum()))
        terms += (slopes + self.slope_size) * largest
        return float(np.vdot(dual, scores)) - value + rounding(dual.size) * terms

    def conjugate_size(
        self, dual: Floats, targets: Any, weights: Floats, conjugate: float
    ) -> float:
        """Return an estimate of the sum of the absolute values of the terms of R*(u).

        Two numbers are proportional to this sum: rounding errors of R*(u), and the
        largest increase of R* if entries of u shrink by some fraction. The parameter
        ``conjugate`` is R*(u). The default is correct for sums of <u, y> and of terms
        of one sign.
        """
        size = abs(conjugate)
        if targets.shape == dual.shape:
            size += 2.0 * float(np.vdot(np.abs(dual), np.abs(targets)))
        return size

    def conjugate_and_size(
        self, dual: Floats, targets: Any, weights: Floats
    ) -> tuple[float, float]:
        """Return ``conjugate`` and ``conjugate_size``."""
        conjugate = self.conjugate(dual, targets, weights)
        return conjugate, self.conjugate_size(dual, targets, weights, conjugate)

    def distance(self, dual: Floats, targets: Any, weights: Floats) -> float:
        """Return the distance of u from the feasible point at which R* is evaluated.

        The distance is the root of sum_i d_i² / s_i for the difference d caused by
        rounding.
        """
        return 0.0

    def distance_at(
        self, dual: Floats, scores: Floats, targets: Any, weights: Floats
    ) -> float:
        """Return ``distance`` of a subgradient at known scores, without ``conjugate``.

        If u is a difference of larger sums, the distance includes their rounding
        errors.
        """
        return 0.0

    def imbalance(
        self, dual: Floats, sums: Floats, targets: Any, weights: Floats
    ) -> float:
        """Return the fraction of u that has to change for its columns to sum to zero.

        A point of the domain whose columns sum to zero differs from u by this fraction
        of u. For losses of one score per row the entries of one sign shrink. Without a
        conjugate, subgradients must not be changed, so their sums have to be rounding
        errors. This is the case for losses that depend only on differences of scores.
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
        """Return an estimate of the largest sum of absolute values of u.

        It is the sum at the best constant score.
        """
        return 1.0

    def determined(self, free: Floats) -> Floats:
        """Return intercepts of all scores without the component that has no effect."""
        return free - free.mean() if self.invariant else free

    def balance(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        """Return u changed, within the domain of R*, so that its columns sum to zero.

        Lower bounds of objectives with free intercepts need such dual points. For
        losses of one score per row the entries of the sign with the larger sum shrink,
        since zero is in the domain.
        """
        if dual.ndim > 1:
            raise TypeError(f"{type(self).__name__} does not balance its duals.")
        balanced = np.empty(dual.shape)
        changed = row_loss.balance(np.ascontiguousarray(dual), balanced)
        return balanced if changed else dual

    def balance_near_optimum(
        self, dual: Floats, targets: Any, weights: Floats
    ) -> Floats:
        """Balance u at a smaller cost than ``balance``, if u is nearly optimal."""
        return self.balance(dual, targets, weights)

    def feasible(self, dual: Floats, targets: Any, weights: Floats) -> Mask:
        """Return for each row, of shape (n,), whether its part of R*(u) is finite.

        The result is exact up to rounding, and False where finiteness is unknown.
        """
        return np.zeros(len(dual), dtype=bool)

    def leeway(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        """Return how far each u_i may move in both directions in the domain of R*.

        For losses of one score per row. Without a bound the leeway is about
        the size of u_i.
        """
        raise self._lacks("leeway of duals")

    def inward(
        self, dual: Floats, targets: Any, weights: Floats, share: float
    ) -> Floats:
        """Return u after moving entries away from the ends of the domain.

        For losses with ``leeway`` whose subgradients reach the ends of the domain.
        """
        return dual

    def projected(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        """Return the projection onto the domain of R* of a point near it."""
        return dual

    def proof(
        self, scores: Floats, targets: Any, weights: Floats
    ) -> tuple[float, float]:
        """Return a lower bound of -R*(u) of the original loss, and an error.

        u is the gradient of the narrowed loss. The error is the root of sum_i d_i² /
        s_i for the rounding errors d of u.
        """
        raise self._lacks("other function")

    def rounding(self, scores: Floats, weights: Floats) -> float:
        """Return a bound of rounding errors of the value and of products <u, z>.

        Losses without a conjugate need it in place of ``conjugate_at``. Other losses
        define it if values below a threshold are only rounding errors.
        """
        raise self._lacks("rounding errors")

    def _lacks(self, what: str) -> TypeError:
        return TypeError(f"{type(self).__name__} has no {what}.")


class ConjugateWithSize:
    """Base of losses whose conjugate is computed together with its size."""

    @abstractmethod
    def conjugate_and_rest(
        self, dual: Floats, targets: Any, weights: Floats
    ) -> tuple[float, float]:
        """Return ``conjugate``, and ``conjugate_size`` minus its absolute value."""

    def conjugate(self, dual: Floats, targets: Any, weights: Floats) -> float:
        """Return R*(u), infinite outside of the domain."""
        return self.conjugate_and_rest(dual, targets, weights)[0]

    def conjugate_size(
        self, dual: Floats, targets: Any, weights: Floats, conjugate: float
    ) -> float:
        return abs(conjugate) + self.conjugate_and_rest(dual, targets, weights)[1]

    def conjugate_and_size(
        self, dual: Floats, targets: Any, weights: Floats
    ) -> tuple[float, float]:
        conjugate, rest = self.conjugate_and_rest(dual, targets, weights)
        return conjugate, abs(conjugate) + rest

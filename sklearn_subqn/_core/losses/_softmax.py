"""Multinomial logistic loss: the maximum over the simplex, smoothed by its entropy.

Arguments of exponentials are at most zero, so that no exponential overflows.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..kernels import softmax as kernel
from ..rounding import ROUNDED, rounding
from ._balance import FlowOracle
from ._base import Derivatives, Floats, Mask, RowForm, Rows
from ._curvature import Curvature
from ._of_duals import ConjugateWithSize


class Softmax(ConjugateWithSize, FlowOracle):
    """Multinomial logistic loss ln sum_k exp(z_k) - z_y (Teo et al. 2010, Table 6).

    Targets are the indices of the classes, as floats; scores have shape (n, k).
    """

    analytic = True
    by_columns = True

    @property
    def looped(self) -> RowForm:
        return RowForm(3, True, 0.0, 1.0)

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        total: float = kernel.value(*map(_plain, (scores, targets, weights)))
        return total

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return the gradient u = s (P - Y), with probabilities P and one-hot Y."""
        u = np.empty(scores.shape)
        kernel.subgradient(*map(_plain, (scores, targets, weights)), u)
        return u

    def curvature_radius(self, scores: Floats, targets: Floats) -> Floats:
        """Return twice the distance of the own class's score below the largest.

        For a misclassified row, the loss is nearly linear, and this number is about the
        distance to the minimizer of a parabola above the loss.
        """
        return 2.0 * (scores.max(axis=1) - scores[_own(targets)])

    def conjugate_and_rest(
        self, dual: Floats, targets: Floats, weights: Floats
    ) -> tuple[float, float]:
        """Return the negative weighted entropy of u / s + Y, rows on the simplex.

        The probability of the true class is one minus the other probabilities. The
        second number is the change of R* if other classes are more probable.
        """
        total, change = kernel.conjugate(*map(_plain, (dual, targets, weights)))
        return total, change

    def conjugate_near(
        self,
        dual: Floats,
        scores: Floats,
        dscores: Floats,
        targets: Floats,
        weights: Floats,
    ) -> float:
        """Return R*(u) - <R'' dz, z> + <dz, R'' dz>, an upper bound of R*(u - R'' dz).

        As for ``Cox``, if no two entries of a row of dz differ by more than one.
        """
        spread = np.ptp(dscores, axis=1, keepdims=True)
        if not spread.max() <= 1.0:
            return np.inf
        # Adding a constant to the scores of a row has no effect. If a class is nearly
        # certain, all terms are small for scores relative to its score.
        likely = scores.argmax(axis=1)[:, np.newaxis]
        step = dscores - np.take_along_axis(dscores, likely, axis=1)
        far = step - (scores - np.take_along_axis(scores, likely, axis=1))
        curvature = self.curvature(scores, targets, weights)
        height, size = self.conjugate_and_size(dual, targets, weights)
        # The product is a difference of two terms of this size.
        size += 4.0 * float(np.vdot(spread * curvature.centered(), np.abs(far)))
        product = float(np.vdot(curvature.apply(step), far))
        return height + product + rounding(dual.size) * size

    def distance(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return the norm of the row sums and of negative probabilities."""
        norm: float = kernel.distance(*map(_plain, (dual, targets, weights)))
        return norm

    def derivatives_of_shift(
        self, scores: Floats, shift: Floats, targets: Floats, weights: Floats
    ) -> tuple[Floats, Floats]:
        slopes, curvature = np.empty(len(shift)), np.empty((len(shift), len(shift)))
        given = map(_plain, (scores, shift, targets, weights))
        kernel.derivatives_of_shift(*given, slopes, curvature)
        return slopes, curvature

    def feasible(self, dual: Floats, targets: Floats, weights: Floats) -> Mask:
        others = dual.copy()
        own = _own(targets)
        others[own] = 0.0
        total = others.sum(axis=1)
        inside = (others.min(axis=1) >= 0.0) & (total <= weights)
        return inside & (np.abs(total + dual[own]) <= ROUNDED * total)

    def balance(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        """Move probability from classes with too much to classes with too little.

        Classes with more than their share of the weights are scaled down. The freed
        probability of a row is distributed to the other classes in proportion to their
        deficits.
        """
        excess = dual.sum(axis=0)
        if not excess.any():
            return dual
        shares = np.bincount(targets.astype(np.intp), weights, dual.shape[1])
        heavy, light = np.maximum(excess, 0.0), np.maximum(-excess, 0.0)
        if not heavy.any() or not light.any():
            return dual
        ratios = np.zeros_like(heavy)
        np.divide(heavy, shares + heavy, out=ratios, where=heavy > 0.0)
        freed = dual.copy()
        freed[_own(targets)] += weights
        freed *= ratios
        sums = freed.sum(axis=1)
        # At most two arrays of the shape of the scores are in memory at once.
        balanced = np.subtract(dual, freed, out=freed)
        for k in np.flatnonzero(light):
            balanced[:, k] += sums * (light[k] / light.sum())
        return balanced

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> SoftmaxCurvature:
        return SoftmaxCurvature(softmax(scores), weights)

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        return partial(
            kernel.on_line, *map(_plain, (scores, dscores, targets, weights))
        )


class SoftmaxCurvature(Curvature):
    """The k x k matrices s_i (diag(P_i) - P_i P_iᵀ) of rows.

    Parameters
    ----------
    probabilities : ndarray of shape (n, k)
    weights : ndarray of shape (n,)
    """

    def __init__(self, probabilities: Floats, weights: Floats) -> None:
        self._p = probabilities
        self._weights = weights
        self._weighted = weights[:, np.newaxis] * probabilities

    def take(self, rows: Rows | slice) -> SoftmaxCurvature:
        return SoftmaxCurvature(self._p[rows], self._weights[rows])

    def apply(self, dscores: Floats) -> Floats:
        mean = np.einsum("ik,ik->i", self._p, dscores)
        return self._weighted * (dscores - mean[:, np.newaxis])

    def diagonal(self) -> Floats:
        return self._weighted * (1.0 - self._p)

    def total(self) -> Floats:
        return np.diag(self._weighted.sum(axis=0)) - self._weighted.T @ self._p

    def add_gram(self, X: Floats, rows: slice, out: Floats) -> None:
        p, weights = self._p[rows], self._weights[rows]
        kernel.add_gram(*map(_plain, (X, p, weights)), out)

    def centered(self) -> Floats:
        return self._weighted

    def rank_one(self) -> tuple[Floats, Floats, Floats]:
        return self._weighted, self._weights, self._p


def softmax(scores: Floats) -> Floats:
    """Return probabilities exp(z_k) / sum_l exp(z_l) of shape (n, k)."""
    p = np.empty(scores.shape)
    kernel.probabilities(_plain(scores), p)
    return p


def _own(targets: Floats) -> tuple[np.ndarray, np.ndarray]:
    """Return the index of each row's own class."""
    return np.arange(len(targets)), targets.astype(np.intp)


def _plain(values: Any) -> Floats:
    """Return an array in the form of kernels; targets may be integers."""
    return np.ascontiguousarray(values, dtype=np.float64)

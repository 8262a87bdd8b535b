"""Problems whose loss leaves intercepts open, or has thresholds in their place."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._core.lazy import cached_property
from .._core.losses import BINARY_LOSSES
from .._core.objectives.risk import Risk
from .._core.rows.design import Design
from .._core.rows.threshold_design import ThresholdDesign
from .._core.steps.intercepts import best_intercept
from .._solving.solution import Floats
from .linear import LinearProblems
from .several_scores import JointProblem


class OpenIntercepts(LinearProblems):
    """Problems of losses that leave intercepts open: least mean hinges set them."""

    def _hinge_intercept(self, signs: Floats, coef: Floats) -> float:
        """Return the intercept of the smallest mean hinge for given coefficients."""
        hinge = BINARY_LOSSES["hinge"]
        risk = Risk(self._with_intercept, hinge, signs, self.weights)
        return best_intercept(risk, coef)

    @cached_property
    def _with_intercept(self) -> Design:
        return Design(self.design.X, n_threads=self._n_threads)


class RankedClasses(OpenIntercepts):
    """Problems of losses of rankings, which leave the intercepts open."""

    def _decoded(self, parameters: list[Floats]) -> tuple[Any, Any]:
        coef, _ = super()._decoded(parameters)
        pairs = zip(self._targets, parameters, strict=True)
        return coef, np.array([self._intercept(signs, w) for signs, w in pairs])

    def _intercept(self, signs: Floats, w: Floats) -> float:
        """Return the intercept by the rule of the measure, or else the best one."""
        threshold = self.loss.oracle.threshold(self.design.forward(w))
        return self._hinge_intercept(signs, w) if threshold is None else -threshold


class OrdinalProblem(OpenIntercepts):
    """Ordinal regression: one score, and thresholds between the classes in order.

    A class predicts by its number times the score minus the sum of the thresholds below
    it, so that the largest of these is that of the class between whose thresholds the
    score lies. Each threshold is that of the smallest mean hinge. Of two classes the
    difference is stored.

    Parameters
    ----------
    order : ndarray of shape (k,)
        Numbers of the sorted classes from the lowest one to the highest, in which order
        targets count them. Coefficients are stored by sorted classes.
    *args, **kwargs
        As for ``LinearProblems``.
    """

    _stores_scores = False

    def __init__(self, *args: Any, order: npt.NDArray[np.intp], **kwargs: Any) -> None:
        self._order = order
        opposite = len(order) == 2 and order[0] == 1
        super().__init__(*args, opposite=opposite, **kwargs)

    def _ordered(self, coef: Any, intercept: Any) -> tuple[Any, Any]:
        """Return rows of sorted classes in the order of classes."""
        if len(coef) != len(self._order):
            return coef, intercept
        return coef[self._order], intercept[self._order]

    def _encoded(self, coef: Any, intercept: Any) -> list[Floats]:
        coef, _ = self._ordered(coef, intercept)
        return [coef[min(1, len(coef) - 1)].astype(np.float64) * self._units()]

    def _sums(self, coef: Floats) -> Floats:
        (w,) = OrdinalProblem._encoded(self, coef, np.zeros(len(coef)))
        return np.full((len(coef), 1), w.sum())

    def _decoded(self, parameters: list[Floats]) -> tuple[Any, Any]:
        w, thresholds = self._score_and_thresholds(*parameters)
        below = np.cumsum(np.append(0.0, thresholds))
        first = 1 if self._n_thresholds == 1 else 0
        numbers = np.arange(len(below), dtype=self._dtype)
        w = self._divisible(w / self._units())
        coef = np.multiply.outer(numbers, w.astype(self._dtype))
        if first:
            return coef[first:], -below[first:]
        sorted_classes = np.argsort(self._order)
        return coef[sorted_classes], -below[sorted_classes]

    def _stored(self, w: Floats) -> Floats:
        return self._divisible(w / self._units()) * self._units()

    def _divisible(self, w: Floats) -> Floats:
        """Return w with so few digits that its multiples are stored without rounding.

        Differences of classes next to each other then are the same for all of them.
        """
        most = self._n_thresholds
        digits = (
            np.finfo(self._dtype).nmant + 1 - (most.bit_length() if most > 2 else 0)
        )
        fraction, exponent = np.frexp(w)
        rounded: Floats = np.ldexp(
            np.rint(np.ldexp(fraction, digits)), exponent - digits
        )
        return rounded

    @property
    def _n_thresholds(self) -> int:
        return len(self._known["classes_"]) - 1

    def _score_and_thresholds(self, w: Floats) -> tuple[Floats, Floats]:
        """Return the coefficients of the score, and the thresholds."""
        (levels,) = self._targets
        above = [np.where(levels > k, 1.0, -1.0) for k in range(self._n_thresholds)]
        thresholds = [-self._hinge_intercept(signs, w) for signs in above]
        return w, np.maximum.accumulate(thresholds)


class ThresholdProblem(OrdinalProblem, JointProblem):
    """Ordinal regression with thresholds that are part of the problem."""

    def _map(self, X: Any, fit_intercept: bool, n_scores: int | None) -> Design:
        return ThresholdDesign(X, self._n_thresholds, n_threads=self._n_threads)

    def _encoded(self, coef: Any, intercept: Any) -> list[Floats]:
        (w,) = super()._encoded(coef, intercept)
        _, intercept = self._ordered(coef, intercept)
        free = np.diff(intercept, prepend=0.0)[-self._n_thresholds :]
        return [np.append(w, free)]

    def _stored(self, w: Floats) -> Floats:
        # Sums of thresholds that are rounded may bring these out of order again.
        for _ in range(self._n_thresholds):
            w = JointProblem._stored(self, w)
        return w

    def _score_and_thresholds(self, w: Floats) -> tuple[Floats, Floats]:
        coef, free = np.split(w, [self.design.n_coef])
        return coef, -free

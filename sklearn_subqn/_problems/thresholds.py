"""Intercepts and thresholds for losses that do not depend on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._core.arrays import Floats
from .._core.lazy import cached_property
from .._core.losses import BINARY_LOSSES, DualLoss
from .._core.objectives.risk import Risk
from .._core.rows.design import Design
from .._core.steps.intercepts import best_intercept


@dataclass
class OpenIntercepts:
    """Intercepts for a loss of differences of scores, which does not depend on them.

    If the performance measure has a rule for intercepts, this rule determines them.
    Otherwise intercepts minimize the mean hinge: of one class against the rest, or of
    the classes above each threshold.

    Parameters
    ----------
    design : Design
        A design without intercepts.
    loss : DualLoss
    weights : ndarray of shape (n,)
    n_threads : int
    n_thresholds : int, optional
        Number of thresholds between classes; the targets are class numbers.
    """

    design: Design
    loss: DualLoss
    weights: Floats
    n_threads: int
    n_thresholds: int | None = None

    def __call__(self, targets: Floats, coef: Floats) -> Floats:
        """Return the intercepts of a problem; thresholds get descending intercepts."""
        if self.n_thresholds is not None:
            above = (targets > k for k in range(self.n_thresholds))
            hinges = [self._of_hinge(np.where(each, 1.0, -1.0), coef) for each in above]
            return np.minimum.accumulate(hinges)
        threshold = self.loss.oracle.threshold(self.design.forward(coef))
        return np.array(
            [self._of_hinge(targets, coef) if threshold is None else -threshold]
        )

    def _of_hinge(self, signs: Floats, coef: Floats) -> float:
        """Return the intercept with the smallest mean hinge for given coefficients."""
        hinge = BINARY_LOSSES["hinge"]
        risk = Risk(self._with_intercept, hinge, signs, self.weights)
        return best_intercept(risk, coef)

    @cached_property
    def _with_intercept(self) -> Design:
        return Design(self.design.X, n_threads=self.n_threads)

"""A convergence test robust to sampling noise (Yu 2009, section 5.3.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..losses._base import Floats


@dataclass(frozen=True)
class GradientAverage:
    """State of the convergence test between batches.

    Attributes
    ----------
    total : ndarray of shape (q,)
        Weighted sum of the gradients so far.
    n_steps : int
        Number of gradients.
    n_below : int
        Number of consecutive batches, up to the last, with a norm of the average below
        ``tol``.
    """

    total: Floats
    n_steps: int = 0
    n_below: int = 0


@dataclass(frozen=True)
class ConvergenceTest:
    """Test whether the norm of the averaged gradient stays below ``tol``.

    Attributes
    ----------
    tol : float
        Threshold of the norm.
    patience : int
        Number k of consecutive batches.
    window : float
        The weight of a gradient decreases by the factor 1 - 1 / window per batch, so
        the average covers about ``window`` batches. The source does not specify its
        average.
    """

    tol: float
    patience: int = 10
    window: float = 10.0

    def start(self) -> GradientAverage:
        """Return the state before the first batch."""
        return GradientAverage(np.zeros(1))

    def step(self, state: GradientAverage, gradient: Floats) -> GradientAverage:
        """Return the state after the gradient of one more batch."""
        forget = 1.0 - 1.0 / self.window
        total = (1.0 - forget) * gradient
        total += forget * state.total
        n_steps = state.n_steps + 1
        # Divide by the sum of the weights, which is less than one at first.
        norm = float(np.linalg.norm(total)) / (1.0 - forget**n_steps)
        n_below = state.n_below + 1 if norm < self.tol else 0
        return GradientAverage(total, n_steps, n_below)

    def passed(self, state: GradientAverage) -> bool:
        """Whether the gradients have stayed below ``tol`` long enough to stop."""
        return state.n_below >= self.patience

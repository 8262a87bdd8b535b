"""A test of convergence that sampling noise does not upset (Yu 2009, section 5.3.3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..losses._base import Floats


@dataclass(frozen=True)
class GradientAverage:
    """The state that the test of convergence keeps between batches.

    Attributes
    ----------
    total : ndarray of shape (q,)
        Weighted sum of the gradients so far.
    n_steps : int
        Their number.
    n_below : int
        For how many of the last batches the norm of the average was below ``tol``.
    """

    total: Floats
    n_steps: int = 0
    n_below: int = 0


@dataclass(frozen=True)
class ConvergenceTest:
    """Whether the norm of averaged gradients stayed below ``tol`` for some batches.

    Attributes
    ----------
    tol : float
        Threshold of the norm.
    patience : int
        Number k of batches in a row.
    window : float
        Gradients count with weights that fall by the factor 1 - 1 / window per batch;
        their average is over about ``window`` batches. The source leaves open which
        average.
    """

    tol: float
    patience: int = 10
    window: float = 10.0

    def start(self, n_params: int) -> GradientAverage:
        """Return the state before the first batch."""
        return GradientAverage(np.zeros(n_params))

    def step(self, state: GradientAverage, gradient: Floats) -> GradientAverage:
        """Return the state after the gradient of one more batch."""
        forget = 1.0 - 1.0 / self.window
        total = forget * state.total + (1.0 - forget) * gradient
        n_steps = state.n_steps + 1
        # The weights so far sum to less than one.
        norm = float(np.linalg.norm(total)) / (1.0 - forget**n_steps)
        n_below = state.n_below + 1 if norm < self.tol else 0
        return GradientAverage(total, n_steps, n_below)

    def passed(self, state: GradientAverage) -> bool:
        """Whether to stop."""
        return state.n_below >= self.patience

"""Online BFGS with inconsistent gradients (Yu 2009, eq. 5.17), for demonstration only.

The two gradients of a difference are of different batches, so that the noise of
sampling enters the curvature. In small batches that undoes what the curvature gains.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sklearn_subqn._core.losses._base import Floats
from sklearn_subqn._core.online.method import Batch, State, step_size
from sklearn_subqn._core.quasi_newton import Pair, bfgs_change


@dataclass(frozen=True)
class InconsistentState(State):
    """B of shape (q, q) and the last step dw, of shape (q,)."""

    B: Floats
    dw: Floats


@dataclass(frozen=True)
class InconsistentBFGS:
    """As ``OBFGS``, but with (5.17) in place of line 10 of the algorithm.

    The update of B waits for the gradient of the next batch. Products <dw, dg> need not
    be positive, and B need not stay so.
    """

    eta0: float = 1.0
    tau: float = np.inf
    epsilon: float = 1e-10
    lambda_: float = 0.0
    c: float = 0.1

    def start(self, w0: Floats) -> InconsistentState:
        B = self.epsilon * np.eye(len(w0))
        zero = np.zeros_like(w0)
        return InconsistentState(w0, 0, np.nan, zero, B, zero)

    def step(self, batch: Batch, state: InconsistentState) -> InconsistentState:
        value, gradient = batch.value_and_gradient(state.w)
        B, dw = state.B, state.dw
        dg = gradient - state.gradient + self.lambda_ * dw
        curvature = float(dw @ dg)
        if curvature != 0.0:
            pair = Pair(dw, dg, curvature)
            if state.n_steps == 1:
                B = pair.scale * np.eye(len(dw))
            B = B + bfgs_change(B, pair, self.c)
        eta = step_size(self.eta0, self.tau, state.n_steps)
        w = state.w - eta / self.c * (B @ gradient)
        return InconsistentState(w, state.n_steps + 1, value, gradient, B, w - state.w)

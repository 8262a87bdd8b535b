"""Stochastic gradient descent (Yu 2009, eq. 5.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..losses._base import Floats
from ..records import stored
from .method import Batch, State, first_step, step_size, steps_fall_after


@stored
@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent.

    Attributes
    ----------
    eta0, tau : float
        Step sizes eta0 tau / (tau + t) (5.4).
    """

    eta0: float = first_step(0.1)
    tau: float = steps_fall_after(np.inf)

    def start(self, w0: Floats) -> State:
        return State(w0, 0, np.nan, np.zeros_like(w0))

    def step(self, batch: Batch, state: State) -> State:
        value, gradient = batch.value_and_gradient(state.w)
        w = state.w - step_size(self.eta0, self.tau, state.n_steps) * gradient
        return State(w, state.n_steps + 1, value, gradient)

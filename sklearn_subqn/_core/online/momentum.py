"""Gradient descent with momentum (Aggarwal 2020, section 5.3.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..losses._base import Floats
from ..options import option
from ..records import stored
from .method import Batch, State, first_step, step_size, steps_fall_after


@stored
@dataclass(frozen=True)
class MomentumState(State):
    """State of momentum: the velocity, of shape (q,)."""

    velocity: Floats


@stored
@dataclass(frozen=True)
class Momentum:
    """Gradient descent with momentum: v <- beta v - eta_t gradient, w <- w + v.

    Attributes
    ----------
    eta0, tau : float
        Step sizes eta0 tau / (tau + t).
    beta : float
        Friction, in [0, 1); 0 is gradient descent.
    nesterov : bool
        Whether to take the gradient, and ``value``, at w + beta v (Nesterov 1983, in
        the form of Sutskever et al. 2013), not at w (Polyak's heavy ball).
    """

    eta0: float = first_step(0.1)
    tau: float = steps_fall_after(np.inf)
    beta: float = option(
        "friction β (Aggarwal 2020, section 5.3.1)",
        0.9,
        low=0.0,
        high=1.0,
        high_included=False,
    )
    nesterov: bool = False

    def start(self, w0: Floats) -> MomentumState:
        zero = np.zeros_like(w0)
        return MomentumState(w0, 0, np.nan, zero, zero)

    def step(self, batch: Batch, state: MomentumState) -> MomentumState:
        carried = self.beta * state.velocity
        at = state.w + carried if self.nesterov else state.w
        value, gradient = batch.value_and_gradient(at)
        carried -= step_size(self.eta0, self.tau, state.n_steps) * gradient
        return MomentumState(
            state.w + carried, state.n_steps + 1, value, gradient, carried
        )

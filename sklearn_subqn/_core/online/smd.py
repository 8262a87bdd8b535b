"""Stochastic meta-descent (Yu 2009, eq. 5.5 to 5.8)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..losses._base import Floats
from ..options import option
from ..records import stored
from .method import Batch, State, first_step


@stored
@dataclass(frozen=True)
class SMDState(State):
    """State of SMD: the step sizes eta and the vector v, both of shape (q,)."""

    eta: Floats
    v: Floats


@stored
@dataclass(frozen=True)
class SMD:
    """Stochastic meta-descent: gradient descent on the logarithm of each step size.

    Attributes
    ----------
    eta0 : float
        Initial step size of every parameter.
    mu : float
        Meta step size, non-negative; 0 is gradient descent with constant step sizes.
    lambda_ : float
        The decay factor lambda in [0, 1] of v.

    Notes
    -----
    Batch t first adapts eta by its gradient and v_t (5.7, where the source writes t +
    1), then updates w (5.5) and v (5.8). The Hessian in (5.8) is the Hessian of the
    same batch, at w before the step.
    """

    eta0: float = first_step(0.1)
    mu: float = option("meta step size μ (Yu 2009, eq. 5.7)", 0.1, low=0.0)
    lambda_: float = option(
        "decay factor λ (Yu 2009, eq. 5.8)", 0.99, low=0.0, high=1.0
    )

    def start(self, w0: Floats) -> SMDState:
        eta = np.full_like(w0, self.eta0)
        return SMDState(w0, 0, np.nan, np.zeros_like(w0), eta, np.zeros_like(w0))

    def step(self, batch: Batch, state: SMDState) -> SMDState:
        value, gradient = batch.value_and_gradient(state.w)
        eta = state.eta * np.maximum(0.5, 1.0 - self.mu * gradient * state.v)
        w = state.w - eta * gradient
        v = self.lambda_ * state.v - eta * gradient
        if self.lambda_ and state.n_steps:
            v -= eta * (self.lambda_ * batch.hessian_product(state.w, state.v))
        return SMDState(w, state.n_steps + 1, value, gradient, eta, v)

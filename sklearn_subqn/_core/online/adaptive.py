"""AdaGrad, RMSProp and Adam: adaptive step sizes (Aggarwal 2020, section 5.3).

In all three methods ``squares`` is A, of shape (q,): a sum or average of squared
partial derivatives. (Section 5.3.4 writes squared parameters, a misprint.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from ..losses._base import Floats
from ..options import option
from ..records import stored
from .method import Batch, State, first_step, step_size, steps_fall_after


@stored
@dataclass(frozen=True)
class AdaptiveState(State):
    """State of AdaGrad and RMSProp: the squares A, of shape (q,)."""

    squares: Floats


class OfSquares(ABC):
    """Base class of methods that divide gradients by the square root of A."""

    eta0: float
    tau: float
    epsilon: float

    @abstractmethod
    def squares(self, old: Floats, gradient: Floats) -> Floats:
        """Return A updated by the squares of a gradient."""

    def start(self, w0: Floats) -> AdaptiveState:
        """Return the state before the first batch."""
        zero = np.zeros_like(w0)
        return AdaptiveState(w0, 0, np.nan, zero, zero)

    def step(self, batch: Batch, state: AdaptiveState) -> AdaptiveState:
        """Return the state after one batch."""
        value, gradient = batch.value_and_gradient(state.w)
        squares = self.squares(state.squares, gradient)
        eta = step_size(self.eta0, self.tau, state.n_steps)
        w = state.w - eta * gradient / np.sqrt(squares + self.epsilon)
        return AdaptiveState(w, state.n_steps + 1, value, gradient, squares)


@stored
@dataclass(frozen=True)
class AdaGrad(OfSquares):
    """AdaGrad: division by the root of the sum of all past squares (eq. 5.1).

    Attributes
    ----------
    eta0, tau : float
        Step sizes eta0 tau / (tau + t).
    epsilon : float
        Added to A under the root. Without epsilon, the step of a parameter whose
        derivatives have all been zero would be 0 / 0.
    """

    eta0: float = first_step(0.3)
    tau: float = steps_fall_after(np.inf)
    epsilon: float = option("ε, added to the squares under the root", 1e-8, low=0.0)

    def squares(self, old: Floats, gradient: Floats) -> Floats:
        return old + gradient * gradient


@stored
@dataclass(frozen=True)
class RMSProp(OfSquares):
    """RMSProp: division by the root of a moving average of squares (eq. 5.2).

    Attributes
    ----------
    eta0, tau : float
        Step sizes eta0 tau / (tau + t).
    rho : float
        Weight of the previous average, in (0, 1). The average starts at 0, and so is
        biased toward zero at first; RMSProp does not correct this.
    epsilon : float
        Added to A under the root.
    """

    eta0: float = first_step(0.1)
    tau: float = steps_fall_after(np.inf)
    rho: float = option(
        "weight ρ of the past of squares (Aggarwal 2020, eq. 5.2)",
        0.9,
        low=0.0,
        low_included=False,
        high=1.0,
        high_included=False,
    )
    epsilon: float = option("ε, added to the squares under the root", 1e-8, low=0.0)

    def squares(self, old: Floats, gradient: Floats) -> Floats:
        return self.rho * old + (1.0 - self.rho) * gradient * gradient


@stored
@dataclass(frozen=True)
class AdamState(State):
    """State of Adam: the squares A and the smoothed gradient F, both of shape (q,)."""

    squares: Floats
    smoothed: Floats


@stored
@dataclass(frozen=True)
class Adam:
    """Adam: RMSProp with a smoothed gradient and bias correction (5.3 to 5.5).

    Attributes
    ----------
    eta0, tau : float
        Step sizes eta0 tau / (tau + t), before the correction of bias.
    rho, rho_f : float
        Weights of the previous averages A and F, in (0, 1).
    epsilon : float
        Added to the root of A, with the bias correction in the step size, as in the
        source. Kingma and Ba (2015, section 2) write epsilon with a hat in this form.
    """

    eta0: float = first_step(0.1)
    tau: float = steps_fall_after(np.inf)
    rho: float = option(
        "weight ρ of the past of squares (Aggarwal 2020, section 5.3.4)",
        0.999,
        low=0.0,
        low_included=False,
        high=1.0,
        high_included=False,
    )
    rho_f: float = option(
        "weight ρ_f of the past of gradients (Aggarwal 2020, section 5.3.4)",
        0.9,
        low=0.0,
        low_included=False,
        high=1.0,
        high_included=False,
    )
    epsilon: float = option("ε, added to the root of the squares", 1e-8, low=0.0)

    def start(self, w0: Floats) -> AdamState:
        zero = np.zeros_like(w0)
        return AdamState(w0, 0, np.nan, zero, zero, zero)

    def step(self, batch: Batch, state: AdamState) -> AdamState:
        value, gradient = batch.value_and_gradient(state.w)
        squares = self.rho * state.squares + (1.0 - self.rho) * gradient * gradient
        smoothed = self.rho_f * state.smoothed + (1.0 - self.rho_f) * gradient
        t = state.n_steps + 1
        eta = step_size(self.eta0, self.tau, state.n_steps)
        eta *= (1.0 - self.rho**t) ** 0.5 / (1.0 - self.rho_f**t)
        w = state.w - eta * smoothed / (np.sqrt(squares) + self.epsilon)
        return AdamState(w, t, value, gradient, squares, smoothed)

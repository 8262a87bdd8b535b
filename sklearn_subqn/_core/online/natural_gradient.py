"""Natural gradient descent (Yu 2009, eq. 5.9 to 5.11)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..losses._base import Floats
from ..options import option
from ..records import stored
from .method import Batch, State, first_step, step_size, steps_fall_after


@stored
@dataclass(frozen=True)
class NaturalGradientState(State):
    """The inverse of the metric, of shape (q, q)."""

    inverse: Floats


@stored
@dataclass(frozen=True)
class NaturalGradient:
    """Descent along gradients in the metric of their second moments.

    Attributes
    ----------
    eta0, tau : float
        Step sizes eta0 tau / (tau + t) (5.4).
    epsilon : float
        The first metric is epsilon I; the source does not state its own.

    Notes
    -----
    The source counts t from 1. At t = 1 its running average (5.10) gives the first
    metric no weight: what remains is a product of one gradient with itself, singular
    except for q = 1, and (5.11) divides by zero. That update is left out; by the next
    ones the first metric counts as one observation among t. From then on the
    denominator in (5.11) is at least t - 1, and no metric is singular.
    """

    eta0: float = first_step(0.1)
    tau: float = steps_fall_after(10.0)
    epsilon: float = option(
        "ε of the first metric ε I (Yu 2009, eq. 5.10)",
        1.0,
        low=0.0,
        low_included=False,
    )

    def start(self, w0: Floats) -> NaturalGradientState:
        inverse = np.eye(len(w0)) / self.epsilon
        return NaturalGradientState(w0, 0, np.nan, np.zeros_like(w0), inverse)

    def step(self, batch: Batch, state: NaturalGradientState) -> NaturalGradientState:
        value, gradient = batch.value_and_gradient(state.w)
        natural = state.inverse @ gradient
        w = state.w - step_size(self.eta0, self.tau, state.n_steps) * natural
        t = state.n_steps + 1
        inverse = state.inverse
        if t > 1:
            # This is the update of Sherman and Morrison (5.11).
            inverse = inverse - np.outer(natural, natural) / (
                t - 1 + float(gradient @ natural)
            )
            inverse *= t / (t - 1)
        return NaturalGradientState(w, t, value, gradient, inverse)

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
    """State of natural gradient descent: the inverse of the metric, (q, q)."""

    inverse: Floats


@stored
@dataclass(frozen=True)
class NaturalGradient:
    """Gradient descent preconditioned by the inverse second moments of gradients.

    Attributes
    ----------
    eta0, tau : float
        Step sizes eta0 tau / (tau + t) (5.4).
    epsilon : float
        The initial metric is epsilon I; the source does not specify its initial metric.

    Notes
    -----
    The source counts t from 1. At t = 1 its running average (5.10) gives the first
    metric weight zero. The new metric is the outer product of one gradient, singular
    unless q = 1, and (5.11) divides by zero. The update at t = 1 is therefore left out,
    and the first metric counts as one observation among t. For t > 1 the denominator in
    (5.11) is at least t - 1, and every metric is nonsingular.
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
            # Sherman-Morrison update of the inverse (5.11).
            inverse = inverse - np.outer(natural, natural) / (
                t - 1 + float(gradient @ natural)
            )
            inverse *= t / (t - 1)
        return NaturalGradientState(w, t, value, gradient, inverse)

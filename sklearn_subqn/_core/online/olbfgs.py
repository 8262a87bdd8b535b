"""Online limited-memory BFGS (Yu 2009, section 5.4)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ..losses._base import Floats
from ..options import option
from ..records import stored
from ..steps.quasi_newton import Pair, two_loop
from .curvature_pairs import damped_pair, damping_of_pairs
from .method import (
    Batch,
    State,
    first_step,
    number_of_pairs,
    step_size,
    steps_fall_after,
)


@stored
@dataclass(frozen=True)
class OLBFGSState(State):
    """The last curvature pairs, oldest first."""

    pairs: tuple[Pair, ...]


@stored
@dataclass(frozen=True)
class OLBFGS:
    """Online L-BFGS.

    Attributes
    ----------
    eta0, tau : float
        Step sizes eta0 tau / (tau + t) (5.4).
    memory : int
        Number m of pairs.
    epsilon : float
        The direction is -epsilon times the gradient while there is no pair.
    lambda_ : float
        The model-trust region parameter lambda >= 0 (5.14).
    damping : float
        See ``OBFGS``.

    Notes
    -----
    Equation (5.18) assumes min(t, m) pairs; there can be fewer, because a batch without
    positive curvature adds no pair.
    """

    eta0: float = first_step(1.0)
    tau: float = steps_fall_after(np.inf)
    memory: int = number_of_pairs()
    epsilon: float = option(
        "ε, the first direction is -ε g (Yu 2009, eq. 5.18)",
        1e-10,
        low=0.0,
        low_included=False,
    )
    lambda_: float = option(
        "model-trust region parameter λ (Yu 2009, eq. 5.14)", 0.0, low=0.0
    )
    damping: float = damping_of_pairs()

    def start(self, w0: Floats) -> OLBFGSState:
        return OLBFGSState(w0, 0, np.nan, np.zeros_like(w0), ())

    def step(self, batch: Batch, state: OLBFGSState) -> OLBFGSState:
        value, gradient = batch.value_and_gradient(state.w)
        scale = mean_scale(state.pairs, self.epsilon)
        p = two_loop(-gradient, state.pairs, partial(np.multiply, scale))
        length = step_size(self.eta0, self.tau, state.n_steps)
        w = state.w + length * p
        pair = damped_pair(
            batch, state.w, gradient, w, self.lambda_, self.damping, length
        )
        pairs = state.pairs
        if pair is not None:
            pairs = (*pairs, pair)[-self.memory :]
        return OLBFGSState(w, state.n_steps + 1, value, gradient, pairs)


def mean_scale(pairs: tuple[Pair, ...], epsilon: float) -> float:
    """Return the initial scale of B: the mean scale of the pairs (5.18)."""
    if not pairs:
        return epsilon
    return sum(pair.scale for pair in pairs) / len(pairs)

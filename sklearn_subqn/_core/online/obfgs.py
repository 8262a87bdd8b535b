"""Online BFGS with the full inverse Hessian (Yu 2009, Alg. 5.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..losses._base import Floats
from ..options import option
from ..records import stored
from ..steps.quasi_newton import bfgs_change
from .curvature_pairs import damped_pair, damping_of_pairs
from .method import Batch, State, first_step, step_size, steps_fall_after


@stored
@dataclass(frozen=True)
class OBFGSState(State):
    """The inverse Hessian estimate B, (q, q), and whether B is still epsilon I."""

    B: Floats
    pristine: bool


@stored
@dataclass(frozen=True)
class OBFGS:
    """Online BFGS.

    Attributes
    ----------
    eta0, tau : float
        Step sizes eta0 tau / (tau + t) (5.4).
    epsilon : float
        B_0 = epsilon I. The first step only determines the scale of B, so epsilon is
        small to keep this step harmless (section 5.3.1).
    lambda_ : float
        The model-trust region parameter lambda >= 0 (5.14): B estimates the inverse of
        the Hessian plus lambda I.
    damping : float
        The weight alpha in (0, 1] of the change of gradients in a damped pair (5.15);
        B⁻¹ dw has the weight 1 - alpha. 1 is no damping.
    c : float
        B estimates c times the inverse, 0 < c <= 1, and steps are divided by c (section
        5.3.2). Smaller values retain the curvature of earlier batches longer; the
        source uses 0.1.

    Notes
    -----
    Line 12 scales B to the first pair without the factor c, but line 8 divides steps by
    c. Steps in unexplored directions are therefore 1 / c times as long as Newton steps.
    The code follows the source. On objectives far from quadratic such steps can
    diverge, so the default is c = 1.
    """

    eta0: float = first_step(1.0)
    tau: float = steps_fall_after(np.inf)
    epsilon: float = option(
        "ε, the first direction is -ε g (Yu 2009, Alg. 5.1, line 4)",
        1e-10,
        low=0.0,
        low_included=False,
    )
    lambda_: float = option(
        "model-trust region parameter λ (Yu 2009, eq. 5.14)", 0.0, low=0.0
    )
    damping: float = damping_of_pairs()
    c: float = option(
        "factor c on the curvature update (Yu 2009, Alg. 5.1, lines 8 and 15)",
        1.0,
        low=0.0,
        low_included=False,
        high=1.0,
    )

    def start(self, w0: Floats) -> OBFGSState:
        B = self.epsilon * np.eye(len(w0))
        return OBFGSState(w0, 0, np.nan, np.zeros_like(w0), B, True)

    def step(self, batch: Batch, state: OBFGSState) -> OBFGSState:
        value, gradient = batch.value_and_gradient(state.w)
        p = state.B @ -gradient
        length = step_size(self.eta0, self.tau, state.n_steps) / self.c
        w = state.w + length * p
        pair = damped_pair(
            batch, state.w, gradient, w, self.lambda_, self.damping, length
        )
        B, pristine = state.B, state.pristine
        if pair is not None:
            if pristine:
                B = pair.scale * np.eye(len(w))
                pristine = False
            B = B + bfgs_change(B, pair, self.c)
        return OBFGSState(w, state.n_steps + 1, value, gradient, B, pristine)

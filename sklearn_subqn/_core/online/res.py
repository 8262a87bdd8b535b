"""RES, regularized stochastic BFGS (Mokhtari and Ribeiro 2014, Alg. 1).

As in the source, B estimates the Hessian, not its inverse.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from scipy import linalg

from ..losses._base import Floats
from ..options import option
from ..records import stored
from ..rounding import ROUNDED
from ..steps.quasi_newton import Pair
from .curvature_pairs import consistent_pair
from .method import (
    Batch,
    State,
    first_step,
    number_of_pairs,
    step_size,
    steps_fall_after,
)


def least_eigenvalue() -> Any:
    """Return the dataclass field of ``delta``."""
    return option(
        "least eigenvalue δ of the estimate (Mokhtari and Ribeiro 2014, eq. 7)",
        1e-3,
        low=0.0,
        below="b0",
    )


def least_progress() -> Any:
    """Return the dataclass field of ``gamma``."""
    return option(
        "progress Γ at least (Mokhtari and Ribeiro 2014, eq. 4)", 1e-4, low=0.0
    )


@stored
@dataclass(frozen=True)
class RESState(State):
    """State of RES: the estimate B of the Hessian, of shape (q, q)."""

    B: Floats


@stored
@dataclass(frozen=True)
class RES:
    """RES with the full estimate of the Hessian.

    Attributes
    ----------
    eta0, tau : float
        Step sizes eta0 tau / (tau + t).
    delta : float
        Lower bound of the eigenvalues of B. The source requires delta below the
        smallest eigenvalue of every batch's Hessian (assumption 3), such as alpha.
    gamma : float
        Steps are (B⁻¹ + gamma I) times the gradient (4), so progress is at least the
        progress of gradient descent with gamma times the step size.
    b0 : float
        B_0 = b0 I, b0 > delta.

    Notes
    -----
    With delta = gamma = 0, RES is stochastic BFGS without regularization.

    The source sets delta equal to the strength of the L2 penalty, which violates its
    own strict inequality: a batch whose loss has no curvature then has a corrected
    variation of zero, for which (9) is undefined. Here, batches without positive
    corrected variation leave B unchanged, so (9) is valid for any delta. A delta below
    the strength of the penalty satisfies the assumption, but batches without curvature
    then reduce B along their steps to the order of delta, and steps grow to the order
    of 1 / delta. The squared hinge diverges this way on standardized data.

    Each update increases all eigenvalues except one by delta (9), so steps in
    unexplored directions become shorter and shorter.
    """

    eta0: float = first_step(0.3)
    tau: float = steps_fall_after(np.inf)
    delta: float = least_eigenvalue()
    gamma: float = least_progress()
    b0: float = option(
        "first estimate B₀ = b0 I (Mokhtari and Ribeiro 2014, Alg. 1)",
        1.0,
        low=0.0,
        low_included=False,
    )

    def start(self, w0: Floats) -> RESState:
        B = self.b0 * np.eye(len(w0))
        return RESState(w0, 0, np.nan, np.zeros_like(w0), B)

    def step(self, batch: Batch, state: RESState) -> RESState:
        """Return the state after one batch, at the cost of a factorization of B.

        Raises
        ------
        FloatingPointError
            If a value is not finite, or B is no longer positive definite, which can
            happen without regularization.
        """
        value, gradient = batch.value_and_gradient(state.w)
        try:
            factor = linalg.cho_factor(state.B, lower=True, check_finite=False)
        except linalg.LinAlgError:
            raise FloatingPointError(
                "the estimate of the Hessian is not positive definite"
            ) from None
        p = linalg.cho_solve(factor, gradient, check_finite=False)
        p += self.gamma * gradient
        w = state.w - step_size(self.eta0, self.tau, state.n_steps) * p
        pair = corrected_pair(batch, state.w, gradient, w, self.delta)
        B = state.B
        if pair is not None:
            dw, dg, curvature = pair
            b_dw = B @ dw
            B = B + np.outer(dg, dg) / curvature
            B -= np.outer(b_dw, b_dw) / float(dw @ b_dw)
            B[np.diag_indices_from(B)] += self.delta
        return RESState(w, state.n_steps + 1, value, gradient, B)


@stored
@dataclass(frozen=True)
class LimitedRESState(State):
    """State of LimitedRES: the last pairs of step and corrected variation."""

    pairs: tuple[Pair, ...]


@stored
@dataclass(frozen=True)
class LimitedRES:
    """RES with the last ``memory`` pairs.

    Attributes
    ----------
    eta0, tau, delta, gamma : float
        See ``RES``.
    memory : int
        Number m of pairs.
    b0 : float or None
        B before the oldest pair is b0 I. None: the mean of <dg, dg> / <dw, dg> over the
        pairs, or 1 while there is no pair.

    Notes
    -----
    The source has no limited-memory form. Here (9) is applied to the last m pairs, so B
    is as in ``RES`` without the contributions of older pairs, and its eigenvalues are
    still at least delta. B is a multiple of the identity plus a matrix of rank 2 m. Its
    inverse is applied by the Woodbury formula at the cost O(m² q).
    """

    eta0: float = first_step(0.3)
    tau: float = steps_fall_after(np.inf)
    delta: float = least_eigenvalue()
    gamma: float = least_progress()
    memory: int = number_of_pairs()
    b0: float | None = option(
        "estimate before the oldest pair, b0 I; None: the mean of its scales",
        None,
        low=0.0,
        low_included=False,
        optional=True,
    )

    def start(self, w0: Floats) -> LimitedRESState:
        return LimitedRESState(w0, 0, np.nan, np.zeros_like(w0), ())

    def step(self, batch: Batch, state: LimitedRESState) -> LimitedRESState:
        value, gradient = batch.value_and_gradient(state.w)
        p = self.solve(state.pairs, gradient)
        p += self.gamma * gradient
        w = state.w - step_size(self.eta0, self.tau, state.n_steps) * p
        pair = corrected_pair(batch, state.w, gradient, w, self.delta)
        pairs = state.pairs
        if pair is not None:
            pairs = (*pairs, pair)[-self.memory :]
        return LimitedRESState(w, state.n_steps + 1, value, gradient, pairs)

    def solve(self, pairs: tuple[Pair, ...], v: Floats) -> Floats:
        """Return the inverse of B times v, of shape (q,)."""
        sigma = self._first_scale(pairs)
        if not pairs:
            return v / sigma
        # B = sigma I + plusᵀ plus - minusᵀ minus, rows of shape (q,).
        plus = np.array([pair.dg / sqrt(pair.curvature) for pair in pairs])
        minus = np.empty_like(plus)
        for k, (dw, _, _) in enumerate(pairs):
            b_dw = sigma * dw
            b_dw += (plus[:k] @ dw) @ plus[:k]
            b_dw -= (minus[:k] @ dw) @ minus[:k]
            minus[k] = b_dw / sqrt(float(dw @ b_dw))
            sigma += self.delta
        rows = np.concatenate([plus, minus])
        signs = np.repeat([sigma, -sigma], len(pairs))
        core = rows @ rows.T + np.diag(signs)
        try:
            inner = np.linalg.solve(core, rows @ v)
        except np.linalg.LinAlgError:
            raise FloatingPointError(
                "the estimate of the Hessian has no inverse"
            ) from None
        solution: Floats = (v - inner @ rows) / sigma
        return solution

    def _first_scale(self, pairs: tuple[Pair, ...]) -> float:
        if self.b0 is not None:
            return self.b0
        if not pairs:
            return 1.0
        return sum(1.0 / pair.scale for pair in pairs) / len(pairs)


def corrected_pair(
    batch: Batch, w: Floats, gradient: Floats, new_w: Floats, delta: float
) -> Pair | None:
    """Return the pair of dw and the corrected variation (8); None if <dw, dg> <= 0."""
    pair = consistent_pair(batch, w, gradient, new_w, -delta)
    if pair is None:
        return None
    dw, dg, curvature = pair
    norms = np.linalg.norm(dw) * np.linalg.norm(dg + delta * dw)
    return pair if curvature > ROUNDED * norms else None

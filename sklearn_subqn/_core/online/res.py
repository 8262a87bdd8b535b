"""RES, regularized stochastic BFGS (Mokhtari and Ribeiro 2014, Alg. 1).

Here B estimates the Hessian, not its inverse, as in the source.
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
    """Return the field of ``delta``."""
    return option(
        "least eigenvalue δ of the estimate (Mokhtari and Ribeiro 2014, eq. 7)",
        1e-3,
        low=0.0,
        below="b0",
    )


def least_progress() -> Any:
    """Return the field of ``gamma``."""
    return option(
        "progress Γ at least (Mokhtari and Ribeiro 2014, eq. 4)", 1e-4, low=0.0
    )


@stored
@dataclass(frozen=True)
class RESState(State):
    """The estimate B of the Hessian, of shape (q, q)."""

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
        Lower bound of the eigenvalues of B. The source asks for less than the smallest
        eigenvalue of the Hessian of every batch (assumption 3), such as alpha.
    gamma : float
        The inverse of B plus gamma I multiplies gradients (4), so that progress is at
        least that of gradient descent with gamma times the step.
    b0 : float
        B_0 = b0 I, b0 > delta.

    Notes
    -----
    With delta = gamma = 0 it is stochastic BFGS without regularization.

    The source sets delta equal to the constant of an L2 penalty, against its own strict
    inequality; then batches without other curvature have a corrected variation of zero,
    for which (9) is not defined. They leave B as it is, as do all whose corrected
    variation is not positive, so that (9) holds for any delta. One below the constant
    of the penalty satisfies the assumption, but then rows without other curvature teach
    B that there is none, and steps become 1 / delta as long: on standardized data
    the squared hinge does not survive that.

    An update moves all eigenvalues but one up by delta (9): directions that no step
    explores get ever shorter steps.
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
            If anything would not be finite, or without regularization B has lost
            positive definiteness.
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
    """The last pairs of steps and corrected variations, oldest first."""

    pairs: tuple[Pair, ...]


@stored
@dataclass(frozen=True)
class LimitedRES:
    """RES with the last ``memory`` pairs.

    Attributes
    ----------
    eta0, tau, delta, gamma : float
        As for ``RES``.
    memory : int
        Number m of pairs.
    b0 : float or None
        B before the oldest pair is b0 I. None: the mean of <dg, dg> / <dw, dg> over
        the pairs, or 1 while there is none.

    Notes
    -----
    The source has no form of limited memory. Here (9) is applied to the kept pairs, so
    that B is as before, its eigenvalues at least delta included, except for what older
    pairs given. B is a multiple of the identity plus a matrix of rank 2 m; its inverse
    is applied by the formula of Woodbury, at the cost of O(m² q).
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
    """Return dw and the change of the gradient minus delta dw (8), if convex."""
    pair = consistent_pair(batch, w, gradient, new_w, -delta)
    if pair is None:
        return None
    dw, dg, curvature = pair
    norms = np.linalg.norm(dw) * np.linalg.norm(dg + delta * dw)
    return pair if curvature > ROUNDED * norms else None

"""Convex penalties Omega(w) of the parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from .losses._base import Floats, PiecewiseQuadratic


class Regularizer(ABC):
    """A convex penalty on the first ``n_penalized`` parameters.

    The rest, the intercepts, are free: a linear function of them has no finite
    conjugate unless it vanishes.
    """

    def __init__(self, n_penalized: int) -> None:
        self.n_penalized = n_penalized

    @abstractmethod
    def value(self, w: Floats) -> float:
        """Return Omega(w) for w of shape (q,)."""

    @abstractmethod
    def gradient(self, w: Floats) -> Floats:
        """Return one subgradient of Omega at w, of shape (q,)."""

    @abstractmethod
    def conjugate(self, v: Floats) -> float:
        """Return Omega*(v) = sup_w <v, w> - Omega(w), over penalized parameters.

        The entries of v for free parameters are taken to be zero.
        """

    @abstractmethod
    def curvature(self, w: Floats) -> Floats:
        """Return the diagonal of the Hessian of Omega, zero for free parameters."""

    @abstractmethod
    def restrict(self, w: Floats, p: Floats) -> PiecewiseQuadratic:
        """Return Omega(w + eta * p) as a function of the step size eta."""


class L2(Regularizer):
    """Omega(w) = ||w||^2 / 2."""

    def value(self, w: Floats) -> float:
        w = w[: self.n_penalized]
        return 0.5 * float(w @ w)

    def gradient(self, w: Floats) -> Floats:
        gradient = w.copy()
        gradient[self.n_penalized :] = 0.0
        return gradient

    def conjugate(self, v: Floats) -> float:
        return self.value(v)

    def curvature(self, w: Floats) -> Floats:
        return (np.arange(len(w)) < self.n_penalized).astype(np.float64)

    def restrict(self, w: Floats, p: Floats) -> PiecewiseQuadratic:
        n = self.n_penalized
        return PiecewiseQuadratic.smooth(float(w[:n] @ p[:n]), float(p[:n] @ p[:n]))

"""The questions that a penalty answers: its interface."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from ..losses._base import Floats, PiecewiseQuadratic


class Regularizer(ABC):
    """A convex penalty on the first ``n_penalized`` parameters.

    The rest, the intercepts, are free: a linear function of them has no finite
    conjugate unless it vanishes.

    Attributes
    ----------
    smooth : bool
        Whether Omega is differentiable everywhere.
    has_lines : bool
        Whether it offers ``restrict``, being quadratic between kinks.
    """

    smooth: bool
    has_lines: bool = True

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

    def conjugate_within(self, v: Floats, radius: Floats) -> float:
        """Return the largest Omega* where entry i is within radius_i of v_i, or more.

        Of shape (n_penalized,). The default is for norms and the like, which grow with
        the absolute values of entries.
        """
        return self.conjugate(np.abs(v) + radius)

    def center(self, n_params: int) -> Floats:
        """Return a point w of shape (n_params,) to start from, in the domain."""
        return np.zeros(n_params)

    def conjugate_gradient(self, v: Floats) -> Floats:
        """Return the w that attains Omega*(v), zero in free parameters."""
        raise TypeError(f"{type(self).__name__} has no differentiable conjugate.")

    def conjugate_gram(self, v: Floats, normals: Floats) -> Floats:
        """Return A H Aᵀ for H = Omega*''(v) and A = ``normals`` of shape (t, q)."""
        raise TypeError(f"{type(self).__name__} has no differentiable conjugate.")

    def scaling(self, v: Floats) -> float:
        """Return a factor c <= 1 for which Omega*(c v) is finite."""
        return 1.0

    def contains(self, w: Floats) -> bool:
        """Whether w of shape (q,) is in the domain of Omega."""
        return True

    def nearest(self, w: Floats) -> Floats:
        """Return w of the domain, of which rounding has left the w given."""
        return w

    def longest_step(self, w: Floats, p: Floats) -> float:
        """Return the largest step from w along p within the domain of Omega."""
        return np.inf

    def curvature(self, w: Floats) -> Floats:
        """Return the diagonal of the Hessian of Omega, zero for free parameters."""
        raise TypeError(f"{type(self).__name__} has no diagonal Hessian.")

    def prox(self, v: Floats, step: float) -> Floats:
        """Return argmin_w step * Omega(w) + ||w - v||² / 2, of shape (q,)."""
        raise TypeError(f"{type(self).__name__} has no proximity operator here.")

    def restrict(self, w: Floats, p: Floats) -> PiecewiseQuadratic:
        """Return Omega(w + eta * p) as a function of the step size eta."""
        raise TypeError(f"{type(self).__name__} is not piecewise quadratic.")

    def _padded(self, penalized: Floats, length: int) -> Floats:
        """Return the entries of penalized parameters, followed by zeros."""
        w = np.zeros(length)
        w[: self.n_penalized] = penalized
        return w

"""The interface of penalties; the L2 penalty and the elastic net."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from ..losses._base import Floats, Mask, PiecewiseQuadratic
from ..rounding import EPS


class Regularizer(ABC):
    """A convex penalty on the first ``n_penalized`` parameters.

    The remaining parameters, the intercepts, are free: the conjugate is finite only
    where their entries of v are zero.

    Attributes
    ----------
    smooth : bool
        Whether Omega is differentiable everywhere.
    has_lines : bool
        Whether Omega is piecewise quadratic on lines, so that ``restrict`` is
        available.
    coupled : bool
        Whether the Hessian of Omega is not diagonal.
    """

    smooth: bool
    has_lines: bool = True
    coupled: bool = False

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
        """Return Omega*(v) = sup_w <v, w> - Omega(w) over the penalized parameters.

        Entries of v for free parameters are treated as zero.
        """

    def conjugate_within(self, v: Floats, radius: Floats) -> float:
        """Return an upper bound of Omega* over all u with |u_i - v_i| <= radius_i.

        Both arrays have shape (n_penalized,). The default is valid for conjugates that
        increase with the absolute values of the entries, such as norms.
        """
        return self.conjugate(np.abs(v) + radius)

    def center(self, n_params: int) -> Floats:
        """Return a starting point w in the domain, of shape (n_params,)."""
        return np.zeros(n_params)

    def conjugate_gradient(self, v: Floats) -> Floats:
        """Return the maximizer w of Omega*(v), with zeros for free parameters."""
        raise TypeError(f"{type(self).__name__} has no differentiable conjugate.")

    def conjugate_gram(self, v: Floats, normals: Floats) -> Floats:
        """Return A H Aᵀ for H = Omega*''(v) and A = ``normals`` of shape (t, q)."""
        raise TypeError(f"{type(self).__name__} has no differentiable conjugate.")

    def scaling(self, v: Floats) -> float:
        """Return a factor c <= 1 for which Omega*(c v) is finite."""
        return 1.0

    def scaling_within(self, v: Floats, radius: Floats) -> float:
        """Return the factor of ``scaling`` for all u with |u_i - v_i| <= radius_i.

        Both arrays have shape (n_penalized,).
        """
        return self.scaling(np.abs(v) + radius)

    def limits(self) -> Floats:
        """Return the largest |v_i| with finite Omega*(v), infinite if there is none."""
        return np.full(self.n_penalized, np.inf)

    def contains(self, w: Floats) -> bool:
        """Whether w of shape (q,) is in the domain of Omega."""
        return True

    def support(self, v: Floats) -> Floats:
        """Return the largest v_j w_j over the domain, for each v_j of v (n_penalized,).

        The value is finite where the domain bounds w_j in the direction of v_j; the
        default has no bounds.
        """
        return np.where(v == 0.0, 0.0, np.inf)

    def nearest(self, w: Floats) -> Floats:
        """Return the nearest point of the domain, for w outside by rounding only."""
        return w

    def longest_step(self, w: Floats, p: Floats) -> float:
        """Return the largest step from w along p within the domain of Omega."""
        return np.inf

    def curvature(self, w: Floats) -> Floats:
        """Return the diagonal of the Hessian of Omega, zero for free parameters.

        If the Hessian is not diagonal, return the whole matrix, of shape (q, q).
        """
        raise TypeError(f"{type(self).__name__} has no diagonal Hessian.")

    def prox(self, v: Floats, step: float) -> Floats:
        """Return argmin_w step * Omega(w) + ||w - v||² / 2, of shape (q,)."""
        raise TypeError(f"{type(self).__name__} has no proximity operator here.")

    def restrict(self, w: Floats, p: Floats) -> PiecewiseQuadratic:
        """Return Omega(w + eta * p) as a function of the step size eta."""
        raise TypeError(f"{type(self).__name__} is not piecewise quadratic.")

    def _padded(self, penalized: Floats, length: int) -> Floats:
        """Return the entries of the penalized parameters, padded with zeros."""
        w = np.zeros(length)
        w[: self.n_penalized] = penalized
        return w


class L2(Regularizer):
    """Omega(w) = ||w||² / 2 over the first ``n_penalized`` parameters."""

    smooth = True

    def value(self, w: Floats) -> float:
        w = w[: self.n_penalized]
        return 0.5 * float(w @ w)

    def gradient(self, w: Floats) -> Floats:
        gradient = w.copy()
        gradient[self.n_penalized :] = 0.0
        return gradient

    def conjugate(self, v: Floats) -> float:
        # The value may overflow to infinity for tiny alpha; the lower bound is then
        # minus infinity.
        with np.errstate(over="ignore"):
            return self.value(v)

    def conjugate_gradient(self, v: Floats) -> Floats:
        return self.gradient(v)

    def conjugate_gram(self, v: Floats, normals: Floats) -> Floats:
        A = normals[:, : self.n_penalized]
        return A @ A.T

    def curvature(self, w: Floats) -> Floats:
        return (np.arange(len(w)) < self.n_penalized).astype(np.float64)

    def prox(self, v: Floats, step: float) -> Floats:
        w = v.copy()
        w[: self.n_penalized] /= 1.0 + step
        return w

    def restrict(self, w: Floats, p: Floats) -> PiecewiseQuadratic:
        n = self.n_penalized
        return PiecewiseQuadratic.smooth(float(w[:n] @ p[:n]), float(p[:n] @ p[:n]))


class ElasticNet(Regularizer):
    """Omega(w) = rho ||w||_1 + (1 - rho) / 2 ||w||²; the L1 norm for rho = 1.

    For rho = 0 use ``L2``; coordinate methods treat ``L2`` as the case rho = 0.

    Parameters
    ----------
    n_penalized : int
    l1_ratio : float
        rho, in [0, 1].
    """

    smooth = False

    def __init__(self, n_penalized: int, l1_ratio: float = 1.0) -> None:
        super().__init__(n_penalized)
        self.l1_ratio = l1_ratio

    def value(self, w: Floats) -> float:
        w = w[: self.n_penalized]
        norm = self.l1_ratio * float(np.abs(w).sum())
        return norm + 0.5 * self._quadratic(w, w)

    def _quadratic(self, w: Floats, p: Floats) -> float:
        """Return (1 - rho) <w, p>, zero for rho = 1 even where <w, p> overflows."""
        share = 1.0 - self.l1_ratio
        return share * float(w @ p) if share else 0.0

    def smooth_gradient(self, w: Floats) -> Floats:
        """Return the gradient of the quadratic part."""
        gradient = (1.0 - self.l1_ratio) * w
        gradient[self.n_penalized :] = 0.0
        return gradient

    def gradient(self, w: Floats) -> Floats:
        """Return the subgradient whose L1 part is zero where w is zero."""
        gradient = self.smooth_gradient(w)
        gradient[: self.n_penalized] += self.l1_ratio * np.sign(w[: self.n_penalized])
        return gradient

    def steepest(self, w: Floats, p: Floats) -> Floats:
        """Return argsup <g, p> over the subdifferential (Yu 2009, section 4.1.4)."""
        gradient = self.gradient(w)
        at_zero = np.flatnonzero(w[: self.n_penalized] == 0.0)
        gradient[at_zero] = self.l1_ratio * np.sign(p[at_zero])
        return gradient

    def random(self, w: Floats, generator: np.random.Generator) -> Floats:
        """Return a random subgradient: entries at zero are uniform in [-rho, rho]."""
        gradient = self.gradient(w)
        at_zero = np.flatnonzero(w[: self.n_penalized] == 0.0)
        gradient[at_zero] = generator.uniform(
            -self.l1_ratio, self.l1_ratio, at_zero.size
        )
        return gradient

    def conjugate(self, v: Floats) -> float:
        """Return sum_i max(|v_i| - rho, 0)² / (2 (1 - rho)).

        For rho = 1 the conjugate is zero if no |v_i| exceeds one, else infinite.
        """
        v, most = v[: self.n_penalized], self.l1_ratio
        excess = np.abs(v[(v > most) | (v < -most)]) - most
        if self.l1_ratio == 1.0:
            return np.inf if excess.size else 0.0
        return 0.5 * float(excess @ excess) / (1.0 - self.l1_ratio)

    def conjugate_gradient(self, v: Floats) -> Floats:
        """Return the soft threshold of v at rho, divided by 1 - rho, for rho < 1."""
        if self.l1_ratio == 1.0:
            return super().conjugate_gradient(v)
        u = v[: self.n_penalized]
        shrunk = np.maximum(np.abs(u) - self.l1_ratio, 0.0)
        return self._padded(np.sign(u) * shrunk / (1.0 - self.l1_ratio), len(v))

    def conjugate_gram(self, v: Floats, normals: Floats) -> Floats:
        if self.l1_ratio == 1.0:
            return super().conjugate_gram(v, normals)
        bent = np.flatnonzero(np.abs(v[: self.n_penalized]) > self.l1_ratio)
        A = normals[:, bent]
        return A @ A.T / (1.0 - self.l1_ratio)

    def scaling(self, v: Floats) -> float:
        """Return the largest c <= 1 with Omega*(c v) = 0."""
        v = v[: self.n_penalized]
        largest = float(max(v.max(initial=0.0), -v.min(initial=0.0)))
        if largest <= self.l1_ratio:
            return 1.0
        # The margin of 4 EPS keeps rounded products c |v_i| below rho.
        return self.l1_ratio * (1.0 - 4.0 * EPS) / largest

    def limits(self) -> Floats:
        """Return ones for the L1 norm, infinity for rho < 1."""
        return np.full(self.n_penalized, 1.0 if self.l1_ratio == 1.0 else np.inf)

    def curvature(self, w: Floats) -> Floats:
        penalized = np.arange(len(w)) < self.n_penalized
        return (1.0 - self.l1_ratio) * penalized.astype(np.float64)

    def restrict(self, w: Floats, p: Floats) -> PiecewiseQuadratic:
        """Return Omega on the line; its slope jumps where an entry changes sign."""
        w, p = w[: self.n_penalized], p[: self.n_penalized]
        signs = np.where(w == 0.0, np.sign(p), np.sign(w))
        ahead = np.sign(w) * np.sign(p) < 0.0
        return PiecewiseQuadratic(
            slope=self.l1_ratio * float(signs @ p) + self._quadratic(w, p),
            curvature=self._quadratic(p, p),
            kinks=-w[ahead] / p[ahead],
            slope_jumps=2.0 * self.l1_ratio * np.abs(p[ahead]),
            curvature_jumps=np.zeros(np.count_nonzero(ahead)),
        )

    def prox(self, v: Floats, step: float) -> Floats:
        """Return argmin_w step * Omega(w) + ||w - v||² / 2, by soft thresholding."""
        n = self.n_penalized
        w = v.copy()
        shrunk = np.maximum(np.abs(v[:n]) - step * self.l1_ratio, 0.0)
        w[:n] = np.sign(v[:n]) * shrunk / (1.0 + step * (1.0 - self.l1_ratio))
        return w

    def is_held(self, w: Floats, g: Floats) -> Mask:
        """Return a mask of parameters that stay zero for the smallest subgradient g."""
        fixed = np.zeros(len(w), dtype=bool)
        if self.l1_ratio:
            n = self.n_penalized
            fixed[:n] = (w[:n] == 0.0) & (g[:n] == 0.0)
        return fixed

    def smallest_subgradient(self, w: Floats, gradient: Floats, alpha: float) -> Floats:
        """Return the minimum norm element of gradient + alpha * dOmega(w).

        This is the pseudo-gradient of Andrew and Gao (2007, eq. 4). For a convex f with
        this gradient, the result is zero exactly at the minimizers of f + alpha *
        Omega.
        """
        g = self.gradient(w)
        g *= alpha
        g += gradient
        threshold = alpha * self.l1_ratio
        at_zero = w == 0.0
        at_zero[self.n_penalized :] = False
        np.subtract(g, np.clip(g, -threshold, threshold), out=g, where=at_zero)
        return g


def elastic_net(n_penalized: int, l1_ratio: float) -> L2 | ElasticNet:
    """Return the elastic net penalty with an L1 share in [0, 1]."""
    return ElasticNet(n_penalized, l1_ratio) if l1_ratio else L2(n_penalized)

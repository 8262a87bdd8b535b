"""The questions that a penalty answers; squares, the L1 norm, and mixtures of both."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from ..losses._base import Floats, Mask, PiecewiseQuadratic
from ..rounding import EPS


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

    def limits(self) -> Floats:
        """Return the largest |v_i| for which Omega*(v) is finite, infinite without."""
        return np.full(self.n_penalized, np.inf)

    def contains(self, w: Floats) -> bool:
        """Whether w of shape (q,) is in the domain of Omega."""
        return True

    def support(self, v: Floats) -> Floats:
        """Return the largest v_j w_j in the domain, for each v_j of v (n_penalized,).

        Where parameters have bounds these are finite, or infinite; by default there are
        none.
        """
        return np.where(v == 0.0, 0.0, np.inf)

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
        # Where it overflows, as for tiny alpha, it bounds nothing.
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

    For rho = 0 there is ``L2``, which methods of coordinates read as this.

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
        """Return the subgradient that vanishes where w does."""
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

        For rho = 1 that is zero if no |v_i| exceeds one, else infinite.
        """
        excess = np.abs(v[: self.n_penalized]) - self.l1_ratio
        excess = excess[excess > 0.0]
        if self.l1_ratio == 1.0:
            return np.inf if excess.size else 0.0
        return 0.5 * float(excess @ excess) / (1.0 - self.l1_ratio)

    def conjugate_gradient(self, v: Floats) -> Floats:
        """Return soft thresholds, for rho < 1."""
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
        largest = float(np.abs(v[: self.n_penalized]).max(initial=0.0))
        if largest <= self.l1_ratio:
            return 1.0
        # A little smaller, so that no product exceeds rho by rounding.
        return self.l1_ratio * (1.0 - 4.0 * EPS) / largest

    def limits(self) -> Floats:
        """Return ones for the L1 norm, whose conjugate is zero within and else none."""
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
        """Return argmin_w step * Omega(w) + ||w - v||² / 2, by soft thresholds."""
        n = self.n_penalized
        w = v.copy()
        shrunk = np.maximum(np.abs(v[:n]) - step * self.l1_ratio, 0.0)
        w[:n] = np.sign(v[:n]) * shrunk / (1.0 + step * (1.0 - self.l1_ratio))
        return w

    def is_held(self, w: Floats, g: Floats) -> Mask:
        """Return which parameters stay zero, for the subgradient g of least norm."""
        held = np.zeros(len(w), dtype=bool)
        if self.l1_ratio:
            n = self.n_penalized
            held[:n] = (w[:n] == 0.0) & (g[:n] == 0.0)
        return held

    def smallest_subgradient(self, w: Floats, gradient: Floats, alpha: float) -> Floats:
        """Return the element of least norm of gradient + alpha * dOmega(w).

        It is the pseudo-gradient of Andrew and Gao (2007, eq. 4), zero exactly at the
        minimizers of a convex function with this gradient plus alpha * Omega.
        """
        g = gradient + alpha * self.gradient(w)
        threshold = alpha * self.l1_ratio
        at_zero = w == 0.0
        at_zero[self.n_penalized :] = False
        return np.where(at_zero, g - np.clip(g, -threshold, threshold), g)


def elastic_net(n_penalized: int, l1_ratio: float) -> L2 | ElasticNet:
    """Return the penalty of which the L1 norm has a share in [0, 1]."""
    return ElasticNet(n_penalized, l1_ratio) if l1_ratio else L2(n_penalized)

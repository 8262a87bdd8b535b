"""Convex penalties Omega(w) of the parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy import linalg

from .losses._base import EPS, TINY, Floats, Mask, PiecewiseQuadratic

# Points of the unit simplex sum to one up to this, in float32, too; and a step changes
# the sum by no more than this.
_ROUNDING_OF_SUM, _DRIFT_OF_SUM = 1e-5, 1e-14


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

    def restrict(self, w: Floats, p: Floats) -> PiecewiseQuadratic:
        """Return Omega(w + eta * p) as a function of the step size eta."""
        raise TypeError(f"{type(self).__name__} is not piecewise quadratic.")

    def _padded(self, penalized: Floats, length: int) -> Floats:
        """Return the entries of penalized parameters, followed by zeros."""
        w = np.zeros(length)
        w[: self.n_penalized] = penalized
        return w


class L2(Regularizer):
    """Omega(w) = ||w||^2 / 2."""

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

    def restrict(self, w: Floats, p: Floats) -> PiecewiseQuadratic:
        n = self.n_penalized
        return PiecewiseQuadratic.smooth(float(w[:n] @ p[:n]), float(p[:n] @ p[:n]))


class ElasticNet(Regularizer):
    """Omega(w) = rho ||w||_1 + (1 - rho) / 2 ||w||²; the L1 norm for rho = 1.

    For rho = 0 there is ``L2``.

    Parameters
    ----------
    n_penalized : int
    l1_ratio : float
        rho, in (0, 1].
    """

    smooth = False

    def __init__(self, n_penalized: int, l1_ratio: float = 1.0) -> None:
        super().__init__(n_penalized)
        self.l1_ratio = l1_ratio

    def value(self, w: Floats) -> float:
        w = w[: self.n_penalized]
        norm = float(np.abs(w).sum())
        return self.l1_ratio * norm + 0.5 * (1.0 - self.l1_ratio) * float(w @ w)

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

    def curvature(self, w: Floats) -> Floats:
        penalized = np.arange(len(w)) < self.n_penalized
        return (1.0 - self.l1_ratio) * penalized.astype(np.float64)

    def restrict(self, w: Floats, p: Floats) -> PiecewiseQuadratic:
        """Return Omega on the line; its slope jumps where an entry changes sign."""
        w, p = w[: self.n_penalized], p[: self.n_penalized]
        signs = np.where(w == 0.0, np.sign(p), np.sign(w))
        ahead = w * p < 0.0
        quadratic = 1.0 - self.l1_ratio
        return PiecewiseQuadratic(
            slope=self.l1_ratio * float(signs @ p) + quadratic * float(w @ p),
            curvature=quadratic * float(p @ p),
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


class PartlyFree(Regularizer):
    """Another penalty with zeros in place of some of the parameters.

    Its conjugate is that of the other one, and takes v to be zero there.

    Parameters
    ----------
    penalty : Regularizer
    free : ndarray of bool, shape (n_penalized,)
    """

    def __init__(self, penalty: Regularizer, free: Mask) -> None:
        super().__init__(penalty.n_penalized)
        self.smooth, self.has_lines = penalty.smooth, penalty.has_lines
        self.free = free
        self._penalty = penalty

    def _without(self, w: Floats) -> Floats:
        w = w.copy()
        w[: self.n_penalized][self.free] = 0.0
        return w

    def value(self, w: Floats) -> float:
        return self._penalty.value(self._without(w))

    def gradient(self, w: Floats) -> Floats:
        return self._without(self._penalty.gradient(self._without(w)))

    def conjugate(self, v: Floats) -> float:
        return self._penalty.conjugate(self._without(v))

    def conjugate_within(self, v: Floats, radius: Floats) -> float:
        others = self._without(v), self._without(radius)
        return self._penalty.conjugate_within(*others)

    def scaling(self, v: Floats) -> float:
        return self._penalty.scaling(self._without(v))


class Bounded(Regularizer):
    """rho ||w||_1 + (1 - rho) / 2 ||w||² for w between bounds, infinite elsewhere.

    Parameters
    ----------
    l1_ratio : float
        rho, in [0, 1).
    low, high : ndarray of shape (n_penalized,)
        With low <= 0 <= high, perhaps infinite.
    """

    smooth = True
    has_lines = False

    def __init__(self, l1_ratio: float, low: Floats, high: Floats) -> None:
        super().__init__(len(low))
        self.l1_ratio, self._low, self._high = l1_ratio, low, high
        self._penalty = elastic_net(len(low), l1_ratio)

    def value(self, w: Floats) -> float:
        return self._penalty.value(w) if self.contains(w) else np.inf

    def gradient(self, w: Floats) -> Floats:
        return self._penalty.gradient(w)

    def _attained(self, v: Floats) -> Floats:
        """Return the penalized w that attains Omega*(v): clipped soft thresholds."""
        shrunk = np.sign(v) * np.maximum(np.abs(v) - self.l1_ratio, 0.0)
        return np.clip(shrunk / (1.0 - self.l1_ratio), self._low, self._high)

    def _conjugates(self, v: Floats) -> Floats:
        w = self._attained(v)
        quadratic = 0.5 * (1.0 - self.l1_ratio) * w
        return np.asarray(w * (v - quadratic) - self.l1_ratio * np.abs(w))

    def conjugate(self, v: Floats) -> float:
        with np.errstate(over="ignore"):
            return float(self._conjugates(v[: self.n_penalized]).sum())

    def conjugate_within(self, v: Floats, radius: Floats) -> float:
        with np.errstate(over="ignore"):
            ends = self._conjugates(v - radius), self._conjugates(v + radius)
        return float(np.maximum(*ends).sum())

    def conjugate_gradient(self, v: Floats) -> Floats:
        return self._padded(self._attained(v[: self.n_penalized]), len(v))

    def conjugate_gram(self, v: Floats, normals: Floats) -> Floats:
        w = self._attained(v[: self.n_penalized])
        inside = np.flatnonzero((w > self._low) & (w < self._high) & (w != 0.0))
        A = normals[:, inside]
        return A @ A.T / (1.0 - self.l1_ratio)

    def contains(self, w: Floats) -> bool:
        n = self.n_penalized
        return bool(np.all((w[:n] >= self._low) & (w[:n] <= self._high)))

    def nearest(self, w: Floats) -> Floats:
        inside = w.copy()
        inside[: self.n_penalized] = np.clip(
            w[: self.n_penalized], self._low, self._high
        )
        return inside

    def longest_step(self, w: Floats, p: Floats) -> float:
        w, p = w[: self.n_penalized], p[: self.n_penalized]
        ends = np.where(p > 0.0, self._high, self._low) - w
        moving = p != 0.0
        return float(np.min(ends[moving] / p[moving], initial=np.inf))


class SquaredNorm(Regularizer):
    """Omega(w) = ||w||_p² / 2 for 1 < p <= 2 (Teo et al. 2010, section 2.3).

    For larger p the conjugate is not twice differentiable.

    Parameters
    ----------
    n_penalized : int
    p : float
    """

    smooth = True
    has_lines = False

    def __init__(self, n_penalized: int, p: float) -> None:
        super().__init__(n_penalized)
        self.p = p
        self._q = p / (p - 1.0)

    def value(self, w: Floats) -> float:
        return 0.5 * _norm(w[: self.n_penalized], self.p) ** 2

    def gradient(self, w: Floats) -> Floats:
        u = w[: self.n_penalized]
        return self._padded(_squared_norm_gradient(u, self.p), len(w))

    def conjugate(self, v: Floats) -> float:
        """Return ||v||_q² / 2 with 1/p + 1/q = 1."""
        return 0.5 * _norm(v[: self.n_penalized], self._q) ** 2

    def conjugate_gradient(self, v: Floats) -> Floats:
        u = v[: self.n_penalized]
        return self._padded(_squared_norm_gradient(u, self._q), len(v))

    def conjugate_gram(self, v: Floats, normals: Floats) -> Floats:
        A, q = normals[:, : self.n_penalized], self._q
        norm = _norm(v[: self.n_penalized], q)
        if norm == 0.0:
            return A @ A.T
        u = v[: self.n_penalized] / norm
        size = np.abs(u)
        bend = (q - 1.0) * size ** (q - 2.0)
        turn = A @ (np.sign(u) * size ** (q - 1.0))
        return (A * bend) @ A.T + (2.0 - q) * np.multiply.outer(turn, turn)


def _norm(u: Floats, p: float) -> float:
    largest = float(np.abs(u).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    return largest * float(np.sum(np.abs(u / largest) ** p)) ** (1.0 / p)


def _squared_norm_gradient(u: Floats, p: float) -> Floats:
    """Return the gradient of ||u||_p² / 2."""
    norm = _norm(u, p)
    if norm == 0.0:
        return np.zeros_like(u)
    return np.sign(u) * np.abs(u / norm) ** (p - 1.0) * norm


class QuadraticForm(Regularizer):
    """Omega(w) = wᵀ B w / 2 for a positive definite B (section 2.3).

    Parameters
    ----------
    matrix : ndarray of shape (n_penalized, n_penalized)
        B, symmetric.
    """

    smooth = True

    def __init__(self, matrix: Floats) -> None:
        super().__init__(len(matrix))
        self._B = matrix
        self._factor = linalg.cho_factor(matrix)
        values = np.linalg.eigvalsh(matrix)
        self._least, self._condition = float(values[0]), float(values[-1] / values[0])

    def value(self, w: Floats) -> float:
        w = w[: self.n_penalized]
        return 0.5 * float(w @ (self._B @ w))

    def gradient(self, w: Floats) -> Floats:
        return self._padded(self._B @ w[: self.n_penalized], len(w))

    def conjugate(self, v: Floats) -> float:
        """Return vᵀ B⁻¹ v / 2."""
        return 0.5 * float(v @ self.conjugate_gradient(v))

    def conjugate_within(self, v: Floats, radius: Floats) -> float:
        """Return that by the triangle inequality, and what solving leaves out."""
        root = np.sqrt(max(2.0 * self.conjugate(v), 0.0))
        root += float(np.linalg.norm(radius)) / np.sqrt(self._least)
        left_out = 8.0 * len(v) * EPS * self._condition
        return 0.5 * float(root * root) * (1.0 + left_out)

    def conjugate_gradient(self, v: Floats) -> Floats:
        u = v[: self.n_penalized]
        return self._padded(linalg.cho_solve(self._factor, u), len(v))

    def conjugate_gram(self, v: Floats, normals: Floats) -> Floats:
        A = normals[:, : self.n_penalized]
        return A @ linalg.cho_solve(self._factor, A.T)

    def restrict(self, w: Floats, p: Floats) -> PiecewiseQuadratic:
        w, p = w[: self.n_penalized], p[: self.n_penalized]
        product = self._B @ p
        return PiecewiseQuadratic.smooth(float(w @ product), float(p @ product))


class Entropy(Regularizer):
    """Omega(w) = sum_i w_i ln w_i - w_i for w >= 0, unnormalized negative entropy.

    The source (section 2.3) writes it without the linear term, which its conjugate
    sum_i exp(v_i) belongs to.
    """

    smooth = True
    has_lines = False

    def value(self, w: Floats) -> float:
        w = w[: self.n_penalized]
        return float(np.sum(_times_log(w) - w)) if np.all(w >= 0.0) else np.inf

    def gradient(self, w: Floats) -> Floats:
        return self._padded(_log(w[: self.n_penalized]), len(w))

    def conjugate(self, v: Floats) -> float:
        with np.errstate(over="ignore"):
            return float(np.exp(v[: self.n_penalized]).sum())

    def conjugate_within(self, v: Floats, radius: Floats) -> float:
        return self.conjugate(v + radius)

    def conjugate_gradient(self, v: Floats) -> Floats:
        return self._padded(np.exp(v[: self.n_penalized]), len(v))

    def conjugate_gram(self, v: Floats, normals: Floats) -> Floats:
        A = normals[:, : self.n_penalized]
        return (A * np.exp(v[: self.n_penalized])) @ A.T

    def center(self, n_params: int) -> Floats:
        """Return the minimizer of Omega."""
        return self.conjugate_gradient(np.zeros(n_params))

    def contains(self, w: Floats) -> bool:
        return bool(np.all(w[: self.n_penalized] >= 0.0))

    def longest_step(self, w: Floats, p: Floats) -> float:
        w, p = w[: self.n_penalized], p[: self.n_penalized]
        falling = p < 0.0
        return float(np.min(w[falling] / -p[falling], initial=np.inf))


class NormalizedEntropy(Entropy):
    """Omega(w) = sum_i w_i ln w_i for w on the unit simplex (section 2.3)."""

    def value(self, w: Floats) -> float:
        w = w[: self.n_penalized]
        return float(np.sum(_times_log(w))) if np.all(w >= 0.0) else np.inf

    def contains(self, w: Floats) -> bool:
        off = abs(float(w[: self.n_penalized].sum()) - 1.0)
        return super().contains(w) and off <= _ROUNDING_OF_SUM

    def nearest(self, w: Floats) -> Floats:
        """Return w with shares that sum to one."""
        inside = w.copy()
        inside[: self.n_penalized] /= w[: self.n_penalized].sum()
        return inside

    def longest_step(self, w: Floats, p: Floats) -> float:
        # Steps along a direction that is mere rounding can be of any length.
        drift = abs(float(p[: self.n_penalized].sum()))
        longest = super().longest_step(w, p)
        return min(longest, max(_DRIFT_OF_SUM / drift, 1.0)) if drift else longest

    def conjugate(self, v: Floats) -> float:
        """Return ln sum_i exp(v_i)."""
        u = v[: self.n_penalized]
        largest = float(u.max())
        return largest + float(np.log(np.sum(np.exp(u - largest))))

    def conjugate_gradient(self, v: Floats) -> Floats:
        w = np.exp(v[: self.n_penalized] - v[: self.n_penalized].max())
        return self._padded(w / w.sum(), len(v))

    def conjugate_gram(self, v: Floats, normals: Floats) -> Floats:
        A, w = normals[:, : self.n_penalized], self.conjugate_gradient(v)
        w = w[: self.n_penalized]
        mean = A @ w
        return (A * w) @ A.T - np.multiply.outer(mean, mean)


def _log(w: Floats) -> Floats:
    """Return ln w, finite at zero."""
    return np.log(np.maximum(w, TINY))


def _times_log(w: Floats) -> Floats:
    return w * _log(w)

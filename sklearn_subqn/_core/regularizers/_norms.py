"""Squared Lp norms and quadratic forms."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from .. import lapack
from ..losses._base import Floats, PiecewiseQuadratic
from ..rounding import EPS
from ._regularizer import Regularizer


class SquaredNorm(Regularizer):
    """Omega(w) = ||w||_p² / 2 for p > 1 (Teo et al. 2010, section 2.3).

    For p > 2 the second derivatives of the conjugate are infinite where an entry of v
    is zero; ``conjugate_gram`` has large numbers there. The entries of the maximizer of
    the conjugate are |v_i|^(1 / (p - 1)) up to a factor, so for large p it is sensitive
    to rounding errors of v.

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
        return 0.5 * _square(_norm(w[: self.n_penalized], self.p))

    def gradient(self, w: Floats) -> Floats:
        u = w[: self.n_penalized]
        return self._padded(_squared_norm_gradient(u, self.p), len(w))

    def conjugate(self, v: Floats) -> float:
        """Return ||v||_q² / 2 with 1/p + 1/q = 1."""
        return 0.5 * _square(_norm(v[: self.n_penalized], self._q))

    def conjugate_gradient(self, v: Floats) -> Floats:
        u = v[: self.n_penalized]
        return self._padded(_squared_norm_gradient(u, self._q), len(v))

    def conjugate_gram(self, v: Floats, normals: Floats) -> Floats:
        A, q = normals[:, : self.n_penalized], self._q
        norm = _norm(v[: self.n_penalized], q)
        if norm == 0.0:
            return A @ A.T
        u = v[: self.n_penalized] / norm
        size = np.maximum(np.abs(u), EPS)
        bend = (q - 1.0) * size ** (q - 2.0)
        turn = A @ (np.sign(u) * size ** (q - 1.0))
        return (A * bend) @ A.T + (2.0 - q) * np.multiply.outer(turn, turn)


def _norm(u: Floats, p: float) -> float:
    largest = float(np.abs(u).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    return largest * float(np.sum(np.abs(u / largest) ** p)) ** (1.0 / p)


def _square(norm: float) -> float:
    """Return norm², infinite on overflow, where the operator ** raises an error."""
    return norm * norm


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

    smooth, coupled = True, True

    def __init__(self, matrix: Floats) -> None:
        super().__init__(len(matrix))
        self._B = matrix
        self._factor = linalg.cho_factor(matrix)
        values = lapack.eigvalsh(matrix)
        self._least, self._condition = float(values[0]), float(values[-1] / values[0])

    def value(self, w: Floats) -> float:
        w = w[: self.n_penalized]
        return 0.5 * float(w @ (self._B @ w))

    def gradient(self, w: Floats) -> Floats:
        return self._padded(self._B @ w[: self.n_penalized], len(w))

    def curvature(self, w: Floats) -> Floats:
        """Return B, with zeros for free parameters, of shape (q, q)."""
        n_free = len(w) - self.n_penalized
        return np.pad(self._B, (0, n_free))

    def conjugate(self, v: Floats) -> float:
        """Return vᵀ B⁻¹ v / 2."""
        return 0.5 * float(v @ self.conjugate_gradient(v))

    def conjugate_within(self, v: Floats, radius: Floats) -> float:
        """Return an upper bound by the triangle inequality, with rounding errors."""
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

"""The L2 penalty under linear inequalities, by exact projections."""

from __future__ import annotations

import numpy as np
from scipy import optimize

from .. import lapack
from ..losses._base import Floats
from ..rounding import rounding
from ._domains import Confined
from ._regularizer import L2

# Tolerance of A w <= b for coefficients stored in single precision.
_STORED = 4.0 * float(np.finfo(np.float32).eps)


class Polyhedron(Confined):
    """||w||² / 2 for A w <= b, infinite elsewhere.

    The conjugate is min ||v - Aᵀm||² / 2 + <b, m> over multipliers m >= 0; any m >= 0
    gives an upper bound. The maximizer w is the projection of v onto A w <= b.

    Parameters
    ----------
    A : ndarray of shape (m, n_penalized)
    b : ndarray of shape (m,)
        Non-negative right-hand sides.
    """

    def __init__(self, A: Floats, b: Floats) -> None:
        super().__init__(L2(A.shape[1]))
        self.A, self.b = A, b

    def conjugate(self, v: Floats) -> float:
        return self.conjugate_within(v, np.zeros(self.n_penalized))

    def conjugate_within(self, v: Floats, radius: Floats) -> float:
        v = v[: self.n_penalized]
        _, m = projected(self.A, self.b, v)
        w = np.abs(v - m @ self.A) + radius
        w += rounding(len(m)) * (np.abs(v) + m @ np.abs(self.A))
        with np.errstate(over="ignore"):
            return 0.5 * float(w @ w) + (1.0 + rounding(len(m))) * float(self.b @ m)

    def conjugate_gradient(self, v: Floats) -> Floats:
        w, _ = projected(self.A, self.b, v[: self.n_penalized])
        return self._padded(w, len(v))

    def conjugate_gram(self, v: Floats, normals: Floats) -> Floats:
        _, m = projected(self.A, self.b, v[: self.n_penalized])
        normals = normals[:, : self.n_penalized]
        # The Hessian of the conjugate is the projector onto the active face.
        Q, _ = np.linalg.qr(self.A[m > 0.0].T)
        across = normals @ Q
        return normals @ normals.T - across @ across.T

    def contains(self, w: Floats) -> bool:
        w = w[: self.n_penalized]
        size = np.abs(self.A) @ np.abs(w) + self.b
        return bool(np.all(self.A @ w - self.b <= _STORED * size))

    def nearest(self, w: Floats) -> Floats:
        near = w.copy()
        near[: self.n_penalized], _ = projected(self.A, self.b, w[: self.n_penalized])
        return near

    def longest_step(self, w: Floats, p: Floats) -> float:
        n = self.n_penalized
        slacks, slopes = self.b - self.A @ w[:n], self.A @ p[:n]
        ahead = slopes > 0.0
        steps = np.maximum(slacks[ahead], 0.0) / slopes[ahead]
        return float(np.min(steps, initial=np.inf))


def projected(A: Floats, b: Floats, v: Floats) -> tuple[Floats, Floats]:
    """Return the projection w = v - Aᵀm of v onto A w <= b, and multipliers m >= 0.

    Computed by nonnegative least squares (C. L. Lawson and R. J. Hanson 1974, Solving
    Least Squares Problems, chapter 23). The distance is minimal at the minimizer u of

        || (-Aᵀ; h) u - (0; 1) ||,    h = (A v - b) / s,    u >= 0

    with the rows of A normalized to length one, and s the largest entry of A v - b.

    Parameters
    ----------
    A : ndarray of shape (m, d)
    b : ndarray of shape (m,)
    v : ndarray of shape (d,)

    Returns
    -------
    w : ndarray of shape (d,)
    m : ndarray of shape (m,)
    """
    multipliers = np.zeros(len(b))
    sizes = np.linalg.norm(A, axis=1)
    rows = np.flatnonzero(sizes)
    sizes, G = sizes[rows], A[rows] / sizes[rows, np.newaxis]
    excess = G @ v - b[rows] / sizes
    size = float(excess.max(initial=0.0))
    if size <= rounding(len(v)) * float(np.abs(v).max(initial=0.0)):
        return v, multipliers
    columns = np.vstack([-G.T, excess / size])
    u, _ = optimize.nnls(columns, np.append(np.zeros(len(v)), 1.0))
    active = np.flatnonzero(u)
    # Solve for the multipliers of the active rows, which hold with equality.
    G, sizes = G[active], sizes[active]
    dual, *_ = lapack.lstsq(G @ G.T, excess[active], rcond=None)
    multipliers[rows[active]] = np.maximum(dual, 0.0) / sizes
    w = v - multipliers @ A
    # If v is much larger than w, so is the rounding error of the difference. A
    # correction reduces the residual of the active rows.
    residual = G @ w - b[rows[active]] / sizes
    return w - lapack.lstsq(G, residual, rcond=None)[0], multipliers

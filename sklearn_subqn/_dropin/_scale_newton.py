"""Newton's method for coefficients and scale of Huber regression together."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from .._core.rounding import EPS, MOST_STEPS, ROUNDED
from .._solving.solution import Floats

# A step keeps at least a tenth of the scale.
_KEPT = 0.1


def newton(
    X: Floats,
    y: Floats,
    weights: Floats,
    w: Floats,
    scale: float,
    epsilon: float,
    alpha: float,
) -> tuple[Floats, float]:
    """Return parameters and scale near the minimum, at least as good as the start.

    The function is that of ``_scale.py``, per unit of weight. With z the residuals over
    the scale, cut off at the edges, its Hessian is 2 / sigma times that of the squares
    of X dw + z dsigma over the rows within the edges, and the generalized Hessian of a
    semismooth Newton method (Qi and Sun 1993). Where rows beyond the edges are fewer,
    theirs is subtracted from that of all.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    y, weights : ndarray of shape (n,)
        Weights sum to one.
    w : ndarray of shape (q,)
        With q = d + 1 the last is an intercept.
    scale, epsilon, alpha : float
    """
    n, d = X.shape
    q = len(w)
    A = np.ones((n, q))
    A[:, :d] = X
    all_rows = (A.T * weights) @ A
    penalty = np.append(np.full(d, 2.0 * alpha), np.zeros(q + 1 - d))
    x = np.append(w, scale)

    def value(x: Floats, residuals: Floats) -> float:
        sizes = np.abs(residuals)
        inner = np.minimum(sizes, epsilon * x[q])
        losses = inner * (2.0 * sizes - inner) / x[q]
        return float(x[q] + weights @ losses + 0.5 * (penalty * x) @ x)

    residuals = y - A @ w
    least = value(x, residuals)
    gradient, H = np.empty(q + 1), np.empty((q + 1, q + 1))
    for _ in range(MOST_STEPS):
        edge = epsilon * x[q]
        z = np.minimum(np.maximum(residuals, -edge), edge) / x[q]
        outer = np.abs(residuals) > edge
        clipped = weights * z
        inner = np.where(outer, 0.0, clipped)
        gradient[:q], H[q, :q] = np.stack([clipped, inner]) @ A
        gradient[:q] *= -2.0
        gradient[q] = 1.0 - float(clipped @ z)
        gradient += penalty * x
        # Either sum is over the fewer rows.
        few = 2 * np.count_nonzero(outer) < n
        rows = np.flatnonzero(outer if few else ~outer)
        some = A[rows]
        of_rows = (some.T * weights[rows]) @ some
        H[:q, :q] = all_rows - of_rows if few else of_rows
        H[:q, q], H[q, q] = H[q, :q], float(inner @ z)
        H *= 2.0 / x[q]
        # Rows within the edges may be too few for a matrix that is definite.
        H.flat[:: q + 2] += penalty + ROUNDED * H.diagonal() + EPS
        _, p, fault = lapack.dposv(H, -gradient)
        if fault:
            break
        slope = float(gradient @ p)
        if not -slope > EPS * least:
            # Values say no more; a last step leaves next to nothing of the gradient.
            x = x + p if p[q] > (_KEPT - 1.0) * x[q] else x
            break
        eta, change = 1.0, A @ p[:q]
        if x[q] + p[q] < _KEPT * x[q]:
            eta = (_KEPT - 1.0) * x[q] / p[q]
        while (
            new := value(x + eta * p, residuals - eta * change)
        ) > least + ROUNDED * eta * slope:
            eta *= 0.5
            if eta < ROUNDED:
                return x[:q], float(x[q])
        x, residuals, least = x + eta * p, residuals - eta * change, new
    return x[:q], float(x[q])

"""Newton's method for coefficients and scale of Huber regression together."""

from __future__ import annotations

import numpy as np
from scipy import linalg

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
    semismooth Newton method (Qi and Sun 1993).

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
    A = np.ones((n, q + 1))
    A[:, :d] = X
    penalty = np.append(np.full(d, 2.0 * alpha), np.zeros(q + 1 - d))
    x = np.append(w, scale)

    def value(x: Floats) -> float:
        sizes = np.abs(y - A[:, :q] @ x[:q])
        inner = np.minimum(sizes, epsilon * x[q])
        losses = inner * (2.0 * sizes - inner) / x[q]
        return float(x[q] + weights @ losses + 0.5 * (penalty * x) @ x)

    least = value(x)
    for _ in range(MOST_STEPS):
        z = (y - A[:, :q] @ x[:q]) / x[q]
        inner = np.abs(z) <= epsilon
        z = np.clip(z, -epsilon, epsilon)
        A[:, q] = z
        gradient = penalty * x - 2.0 * (weights * z) @ A
        gradient[q] = 1.0 - float(weights @ (z * z))
        rows = A if inner.all() else A[inner]
        of_rows = weights if inner.all() else weights[inner]
        H = (2.0 / x[q]) * ((rows.T * of_rows) @ rows)
        # Rows within the edges may be too few for a matrix that is definite.
        H.flat[:: q + 2] += penalty + ROUNDED * H.diagonal() + EPS
        try:
            factor = linalg.cho_factor(H, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            break
        p = linalg.cho_solve(factor, -gradient, check_finite=False)
        slope = float(gradient @ p)
        if not -slope > EPS * least:
            # Values say no more; a last step leaves next to nothing of the gradient.
            x = x + p if p[q] > (_KEPT - 1.0) * x[q] else x
            break
        eta = 1.0
        if x[q] + p[q] < _KEPT * x[q]:
            eta = (_KEPT - 1.0) * x[q] / p[q]
        while (new := value(x + eta * p)) > least + ROUNDED * eta * slope:
            eta *= 0.5
            if eta < ROUNDED:
                return x[:q], float(x[q])
        x, least = x + eta * p, new
    return x[:q], float(x[q])

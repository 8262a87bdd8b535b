"""Ridge regression with each row left out, for any strength, by one factorization.

For rows of weights s that sum to one, let U diag(sigma) Vᵀ be the singular value
decomposition of diag(sqrt(s)) X, with y and the columns of X centered if there is an
intercept, and r = diag(sqrt(s)) y. The weights of a fit without row i sum to 1 - sᵢ, so
its strength alpha corresponds to lambda = (1 - sᵢ) alpha for the weights of all rows.
With f = lambda / (sigma² + lambda), the error at the row that is left out is

    (p + U f Uᵀr)ᵢ / (q + U² f)ᵢ / sqrt(sᵢ),   p = r - U Uᵀr,   q = 1 - s - U² 1,   (1)

the residual over one minus the leverage (Allen 1974, "The relationship between variable
selection and data augmentation and a method for prediction"; Golub, Heath and Wahba
1979, section 1). Without an intercept q = 1 - U² 1. All sums in (1) except p and q have
factors in [0, 1]. If U spans all residuals, p and q are zero.

The computed factors are exact for features that differ by at most c sigma_max, with c
a rounding error. The gradients of the fits then have norms of at most
c sigma_max (1 + sigma_max / sqrt(lambda)) sqrt(2 J), and the relative gap is at most

    c² k (1 + sqrt(k))²,   k = sigma_max² / lambda.                                  (2)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from .. import lapack
from ..losses._base import Floats, Rows
from ..objectives.objective import Objective
from ..rounding import EPS, rounding
from ..rows.row_views import dense_rows
from .squares_path import is_least_squares

# Sparse features become dense for the decomposition if they then have at most 2^26
# entries, or half a gigabyte. docs/constants.md has the figures.
_MOST_ENTRIES = 1 << 26


def leaves_rows_out(objectives: Sequence[Objective]) -> bool:
    """Whether the fits without each row are ridge regressions with formula (1)."""
    X = objectives[0].design.X
    fits = not sparse.issparse(X) or np.prod(X.shape) <= _MOST_ENTRIES
    return fits and all(
        is_least_squares(each)
        and not each.elastic_net.l1_ratio
        and each.weights is objectives[0].weights
        for each in objectives
    )


def errors_left_out(
    objectives: Sequence[Objective], alphas: Floats, rows: Rows
) -> tuple[Floats, Floats]:
    """Return the error at each row of the fit without it, and bounds of gaps.

    Parameters
    ----------
    objectives : sequence of Objective
        One for each column of targets, with any strength; ``leaves_rows_out`` holds.
    alphas : ndarray of shape (n_alphas,)
    rows : ndarray of shape (n,)
        The rows of positive weight, which are left out one after the other.

    Returns
    -------
    errors : ndarray of shape (n_targets, n, n_alphas)
        Targets minus predictions, for each row in turn.
    gaps : ndarray of shape (n_alphas,)
        Upper bounds of the relative gaps of all fits.
    """
    objective = objectives[0]
    centered, weights = objective.n_free == 1, objective.weights[rows]
    targets = [-each.origin().dual[rows] / weights for each in objectives]
    X = dense_rows(objective.design.X)[rows]
    roots, y = np.sqrt(weights), np.column_stack(targets)
    # The second mean is the rounding error of the first one.
    for _ in range(2 * centered):
        X, y = X - weights @ X, y - weights @ y
    scaled, n = roots[:, np.newaxis] * X, len(rows)
    if n < X.shape[1]:
        # The right singular vectors are not needed.
        scaled = np.asarray(np.linalg.qr(scaled.T, mode="r")).T
    left, sizes, _ = lapack.svd(scaled, full_matrices=False)
    largest = sizes.max(initial=0.0)
    left = left[:, sizes > EPS * max(X.shape) * largest]
    ratios = sizes[: left.shape[1], np.newaxis] ** 2 / alphas
    y, squares = roots[:, np.newaxis] * y, left**2
    along = left.T @ y
    if left.shape[1] == n - centered:
        rest, across = np.zeros(n), np.zeros_like(y)
    else:
        rest = np.maximum(1.0 - centered * weights - squares.sum(axis=1), 0.0)
        across = y - left @ along
    errors = np.empty((y.shape[1], n, len(alphas)))
    shares, places = np.unique(1.0 - weights, return_inverse=True)
    for k, share in enumerate(shares):
        some = np.flatnonzero(places == k)
        damped = 1.0 / (1.0 + ratios / share)
        sums = rest[some, np.newaxis] + squares[some] @ damped
        sums *= roots[some, np.newaxis]
        for j, error in enumerate(errors):
            found = left[some] @ (along[:, j, np.newaxis] * damped)
            error[some] = (across[some, j, np.newaxis] + found) / sums
    condition = largest / np.sqrt(shares[0] * alphas)
    gaps = (rounding(X.size) * condition * (1.0 + condition)) ** 2
    return errors, np.where(np.isfinite(errors).all(axis=(0, 1)), gaps, np.inf)

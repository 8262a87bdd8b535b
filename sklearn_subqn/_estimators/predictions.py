"""Scores of samples from coefficients, and probabilities from scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse, special
from sklearn.utils.extmath import safe_sparse_dot

from .._core.arrays import Array, Floats
from .._core.kernels import products
from .._core.memory import BLOCK_SIZE
from .._core.rounding import ROUNDED
from .._core.rows.row_views import absolute

# For sparse rows with more than 16 times as many columns as entries, scores use only
# the columns with entries. docs/constants.md has the figures.
_NARROW = 16

# For dense rows, scores use only the columns with nonzero coefficients if these are
# fewer than one in eight. docs/constants.md has the figures.
_FEW = 8


def variance_power(estimator: Any) -> float | None:
    """Return the power of the mean to which variances are proportional.

    None unless predictions are exp(f(x)).
    """
    powers = {"poisson": 1.0, "gamma": 2.0, "tweedie": getattr(estimator, "power", 1.5)}
    loss = getattr(estimator, "loss", None)
    return powers.get(loss) if isinstance(loss, str) else None


def is_narrow(X: Any) -> bool:
    """Whether X is sparse, with entries in few of its columns."""
    return sparse.issparse(X) and X.shape[1] > _NARROW * max(X.nnz, 1)


def rounded_scores(X: Any, coef: Any, intercept: Any) -> Array:
    """Return X @ coef.T + intercept, in float64 without the last digits.

    At exact solutions, the scores of several classes may be tied. Rounding keeps such
    ties, which would otherwise depend on the order of summation in BLAS. The rounding
    is small relative to the terms of the scores, for any scales of features.
    """
    if isinstance(X, np.ndarray) and isinstance(coef, np.ndarray):
        X, coef = _used_columns(X, coef)
    n, d = X.shape
    dtype = np.result_type(X.dtype, coef.dtype)
    if dtype != np.float64:
        return np.asarray(unrounded_scores(X, coef, intercept))
    # The size of a score is bounded by |X| times the largest |coef| of each feature.
    dense = np.atleast_2d(coef.toarray() if sparse.issparse(coef) else coef)
    dense = np.ascontiguousarray(dense, np.float64)
    largest = np.abs(dense).max(axis=0)
    least = float(np.max(np.abs(intercept), initial=0.0))
    several, is_sparse = len(dense) > 1, sparse.issparse(X)
    scores, step = np.empty((n, len(dense))), max(n, 1)
    if not is_sparse:
        # Each block of rows, or of scores, is small enough for the cache, since it is
        # read twice.
        copied = not X.flags.c_contiguous or X.dtype != np.float64
        step = max(1, BLOCK_SIZE // (max(d, 1) if several or copied else 16))
    for i in range(0, n, step):
        found = scores[i : i + step]
        if is_sparse:
            plain = safe_sparse_dot(X, coef.T, dense_output=True)
            found[:] = plain.reshape(found.shape)
            sizes = np.asarray(absolute(X) @ largest)
        else:
            rows = np.ascontiguousarray(X[i : i + step], np.float64)
            plain, sizes = np.empty((2, len(rows)))
            factors = largest if several else dense[0]
            products.multiply_with_sizes(rows, factors, plain, sizes)
            if several:
                np.matmul(rows, dense.T, out=found)
            else:
                found[:, 0] = plain
        found += intercept
        products.round_rows(sizes, least, 2.0 * ROUNDED, found)
    return scores.reshape(n, *coef.shape[:-1])


def unrounded_scores(X: Any, coef: Any, intercept: Any) -> Any:
    """Return X @ coef.T + intercept."""
    scores = safe_sparse_dot(X, coef.T, dense_output=True)
    scores += intercept
    return scores


def _used_columns(X: Any, coef: Any) -> tuple[Any, Any]:
    """Return the columns with nonzero coefficients, if they are few."""
    used = np.flatnonzero(np.atleast_2d(coef).any(axis=0))
    if _FEW * len(used) > X.shape[1]:
        return X, coef
    return X.take(used, axis=1), coef[..., used]


def log_probabilities(scores: Array) -> Array:
    """Return the logarithm of the softmax of scores, of shape (n_samples, n_classes).

    A single column has the scores of the second of two classes, and the first class has
    scores of zero. Several columns are overwritten.
    """
    if scores.shape[1] == 1:
        return _of_both(special.log_expit, scores[:, 0])
    scores -= scores.max(axis=1, keepdims=True)
    scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return scores


def probabilities(scores: Array) -> Array:
    """Return the softmax of scores, which are as in ``log_probabilities``."""
    if scores.shape[1] == 1:
        return _of_both(special.expit, scores[:, 0])
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return scores


def _of_both(function: Any, scores: Array) -> Array:
    """Return two columns: a function of the negated scores, and of the scores."""
    found = np.empty((len(scores), 2), scores.dtype)
    function(-scores, out=found[:, 0])
    function(scores, out=found[:, 1])
    return found


def log_of_differences(above: Floats) -> Floats:
    """Return log probabilities of classes, of shape (n, K), from cumulative log odds.

    Parameters
    ----------
    above : ndarray of shape (n, K - 1)
        Log odds that the class is above each threshold. They decrease, except for
        rounding and for fits that ended early, where the lower one is used.
    """
    above = np.minimum.accumulate(above, axis=1)
    ends = np.full((len(above), 1), np.inf, above.dtype)
    high, low = np.hstack([ends, above]), np.hstack([above, -ends])
    # With the logistic function p: p(a) - p(b) = p(a) p(-b) (1 - exp(b - a)).
    with np.errstate(divide="ignore"):
        between = np.log(-np.expm1(low - high))
    return np.asarray(special.log_expit(high) + special.log_expit(-low) + between)

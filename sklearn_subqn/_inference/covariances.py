"""Covariances of estimates from sums over rows.

Let H be the second derivatives of the summed loss, P the second derivatives of the
penalty, and G the sum of the products of first derivatives. The covariance of the
estimates is (H + P)^-1 G (H + P)^-1 (Huber 1967, White 1980). If the model is true, G
is the dispersion times H (Fisher).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse

from .._core import lapack
from .._core.arrays import Array, Floats, Indices, Mask
from .moments import RowMoments

# A column is treated as linearly dependent if its distance from the span of other
# columns is below 1e-5 of its size. From products of columns in float64, this distance
# has an error of about 1e-7.
_DEPENDENT = 1e-10


class Covariance(NamedTuple):
    """The covariance of the estimates of a problem; p is their number.

    Attributes
    ----------
    covariance : ndarray of shape (p, p)
        NaN for estimates that are not determined, or fixed. The covariance of all other
        estimates is conditional on the fixed estimates.
    recombine : ndarray of shape (p, p)
        Matrix that maps coefficients to equivalent coefficients, with the same scores
        and zeros for dropped columns.
    determined : ndarray of bool of shape (p,)
        Mask of the columns that are not linear combinations of earlier columns.
    fixed : ndarray of bool of shape (p,)
        Mask of the determined estimates without a variance, along which the loss is
        flat.
    dispersion : float
    df_resid : float
        Number of rows minus the number of estimates with a variance.
    newton : ndarray of shape (p,)
        Newton's step to the optimum, from the same derivatives.
    inverse : ndarray of shape (p, p)
        (H + P)^-1 of the estimates with a variance, otherwise zeros.
    df : float
        Degrees of freedom of the model: the trace of (H + P)^-1 H, without a penalty
        the number of estimates with a variance.
    chi_square : float
        Sum of squared Pearson residuals.
    """

    covariance: Floats
    recombine: Floats
    determined: Mask
    fixed: Mask
    dispersion: float
    df_resid: float
    newton: Floats
    inverse: Floats
    df: float
    chi_square: float


class DualTerms(NamedTuple):
    """Leverages of rows, degrees of freedom, and squared Pearson residuals."""

    leverages: Floats
    df: float
    chi_square: float


def dual_leverages(
    X: Any, curvatures: Floats, penalty: Floats, between: Floats
) -> tuple[Floats, float]:
    """Return leverages of n rows by products of these, for many features.

    The second result is their sum, the trace of (H + P)^-1 H. With the square root S of
    curvatures and the projection Q from the scores of features without a penalty, the
    leverages are the diagonal of I - Q + A (I + A)^-1, where A = Q S X P^-1 Xᵀ S Q (the
    dual form of ridge regression).

    Parameters
    ----------
    X : {ndarray, sparse matrix} of shape (n, d)
        Features; an intercept is a column of ones.
    curvatures : ndarray of shape (n, m, m)
        Second derivatives of each row by its m scores.
    penalty : ndarray of shape (d,)
        Second derivatives of the penalty, zero for features without one.
    between : ndarray of shape (m, m)
        Their factor for pairs of scores.
    """
    values, vectors = lapack.eigh(curvatures)
    roots = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors
    roots = roots @ vectors.transpose(0, 2, 1)
    free, size = penalty == 0.0, curvatures.shape[0] * curvatures.shape[1]
    scaled = X[:, ~free] / np.sqrt(penalty[~free])
    products, others = scaled @ scaled.T, X[:, free]
    if sparse.issparse(X):
        products, others = products.toarray(), others.toarray()
    inner = np.einsum(
        "iab,ij,bc,jcd->iajd",
        roots,
        products,
        linalg.inv(between),
        roots,
        optimize=True,
    ).reshape(size, size)
    design = np.einsum("iab,if->iafb", roots, others).reshape(size, -1)
    sizes = np.linalg.norm(design, axis=0)
    basis = linalg.orth(design / np.where(sizes > 0.0, sizes, 1.0))
    inner -= basis @ (basis.T @ inner)
    inner -= (inner @ basis) @ basis.T
    values, vectors = lapack.eigh(inner)
    values = np.maximum(values, 0.0)
    shares = values / (1.0 + values)
    found = (basis**2).sum(axis=1) + vectors**2 @ shares
    df = basis.shape[1] + float(shares.sum())
    return np.asarray(found.reshape(roots.shape[:2]).sum(axis=1)), df


def covariances(
    moments: RowMoments,
    penalty: Floats,
    gradient: Floats,
    kind: str,
    order: Array,
    dispersion: float | None,
    fixed: Mask,
) -> Covariance:
    """Return the covariance of the estimates of one problem.

    Parameters
    ----------
    moments : RowMoments
    penalty : ndarray of shape (p, p)
        Second derivatives of the penalty.
    gradient : ndarray of shape (p,)
        First derivatives of loss and penalty.
    kind : str
        "fisher", "HC0", "HC1", "HC2", "HC3" or "cluster".
    order : ndarray of shape (p,)
        The order in which columns are tested for linear dependence on earlier columns.
    dispersion : float or None
        Dispersion; None to estimate it from Pearson's residuals.
    fixed : ndarray of bool of shape (p,)
        Mask of estimates without a variance. Directions in which the loss is flat are
        added.

    Raises
    ------
    ValueError
        If there are at most as many rows as estimates.
    """
    whole = moments.hessian + penalty
    p = len(whole)
    # Linear dependence is determined from the features alone, without the loss.
    m = p // len(moments.gram)
    values, sizes = _in_units(np.kron(np.eye(m), moments.gram) + penalty)
    determined = np.zeros(p, dtype=bool)
    determined[order[independent(values[np.ix_(order, order)])]] = True
    scaled, units = _in_units(whole)
    used = np.flatnonzero(determined & ~fixed)
    used = used[independent(scaled[np.ix_(used, used)])]
    fixed = determined.copy()
    fixed[used] = False
    inner = np.ix_(used, used)
    factor = linalg.cho_factor(scaled[inner])
    n, rank = moments.n, np.count_nonzero(determined)
    if n <= rank:
        raise ValueError(
            "Standard errors need more samples than coefficients: there are "
            f"{n:g} samples with positive weight, and {rank} coefficients."
        )
    df_resid = n - float(len(used))
    scale = moments.chi_square / df_resid if dispersion is None else dispersion
    middle = _middle(moments, kind, scale, df_resid)[inner]
    middle = middle / units[used] / units[used][:, None]
    solved = linalg.cho_solve(factor, middle)
    found = linalg.cho_solve(factor, solved.T)
    found = 0.5 * (found + found.T) / units[used] / units[used][:, None]
    covariance = np.full((p, p), np.nan)
    covariance[inner] = found
    newton = np.full(p, np.nan)
    newton[used] = -linalg.cho_solve(factor, gradient[used] / units[used]) / units[used]
    recombine = np.diag(determined.astype(np.float64))
    others, kept = np.flatnonzero(~determined), np.flatnonzero(determined)
    if others.size:
        # Each dependent column is a linear combination of the kept columns. Its
        # coefficients are computed by least squares, from the Gram matrix.
        of_kept = linalg.cho_factor(values[np.ix_(kept, kept)])
        shares = linalg.cho_solve(of_kept, values[np.ix_(kept, others)])
        recombine[np.ix_(kept, others)] = shares * sizes[others] / sizes[kept][:, None]
    inverse = np.zeros((p, p))
    inverse[inner] = linalg.cho_solve(factor, np.eye(len(used)))
    inverse = inverse / units / units[:, None]
    df = len(used) - float((inverse * penalty).sum())
    known = determined, fixed, scale, df_resid, newton, inverse, df
    return Covariance(covariance, recombine, *known, moments.chi_square)


def _in_units(matrix: Floats) -> tuple[Floats, Floats]:
    """Return a matrix scaled to a diagonal of ones or zeros, and the scales."""
    sizes = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    units = np.where(sizes > 0.0, sizes, 1.0)
    return matrix / units / units[:, None], units


def _middle(moments: RowMoments, kind: str, scale: float, df_resid: float) -> Floats:
    """Return the covariance of the first derivatives."""
    n = moments.n
    if kind == "fisher":
        return scale * moments.hessian
    if kind == "cluster":
        total = np.zeros_like(moments.hessian)
        # With two-way clusters, sums over pairs of clusters are subtracted once.
        for way, sign in enumerate((1.0, 1.0, -1.0)):
            members = [v for key, v in moments.clusters.items() if key[0] == way]
            sums, g = np.array(members), len(members)
            if g:
                factor = sign * g / (g - 1.0) * (n - 1.0) / df_resid
                total += factor * (sums.T @ sums)
        return total
    return moments.squares * (n / df_resid if kind == "HC1" else 1.0)


def independent(matrix: Floats) -> Indices:
    """Return the columns that are linearly independent of earlier columns.

    Parameters
    ----------
    matrix : ndarray of shape (p, p)
        Gram matrix of the columns, scaled to a diagonal of ones or zeros.
    """
    p = len(matrix)
    rows = np.empty((p, p))
    used: list[int] = []
    left = np.diag(matrix).copy()
    for j in range(p):
        if left[j] <= _DEPENDENT:
            continue
        k = len(used)
        row = matrix[j, j:] - rows[:k, j] @ rows[:k, j:]
        rows[k, j:] = row / np.sqrt(row[0]) if row[0] > 0.0 else 0.0
        if row[0] <= _DEPENDENT:
            continue
        left[j:] -= rows[k, j:] ** 2
        used.append(j)
    return np.array(used, dtype=np.intp)

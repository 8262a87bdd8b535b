"""The objective of one batch of rows of a linear model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels import products
from ..losses._base import Floats, Rows
from ..losses._curvature import Curvature
from ..records import stored
from ..rows.columns import distinct_columns
from .losses_with_curvature import OnlineLoss


@stored
@dataclass(frozen=True)
class Penalty:
    """alpha (l1_ratio ||w||_1 + (1 - l1_ratio) / 2 ||w||²), without intercepts.

    Attributes
    ----------
    alpha : float
    l1_ratio : float
    """

    alpha: float
    l1_ratio: float = 0.0

    @property
    def l1(self) -> float:
        """The factor of the L1 norm."""
        return self.alpha * self.l1_ratio

    @property
    def l2(self) -> float:
        """The factor of half the squared norm."""
        return self.alpha * (1.0 - self.l1_ratio)

    def value(self, coef: Floats) -> float:
        """Return the penalty of coefficients of shape (c,)."""
        absolute = float(np.abs(coef).sum()) if self.l1 else 0.0
        return self.of_sums(float(coef @ coef), absolute)

    def of_sums(self, square: float, absolute: float) -> float:
        """Return the penalty from sums of squares and of absolute values."""
        value = 0.5 * self.l2 * square
        return value + self.l1 * absolute if self.l1 else value

    def gradient(self, coef: Floats) -> Floats:
        """Return a subgradient, of shape (c,), which is zero for |w_j| at zero."""
        gradient = self.l2 * coef
        return gradient + self.l1 * np.sign(coef) if self.l1 else gradient


class SparseRows:
    """Rows of a CSR matrix, with only the products that online steps need.

    SciPy validates the arrays of every new matrix, which takes longer than the products
    of a small batch.

    Parameters
    ----------
    data, indices, indptr : ndarray
        Arrays of a CSR matrix in canonical format.
    n_columns : int
    """

    def __init__(self, data: Any, indices: Any, indptr: Any, n_columns: int) -> None:
        self._data, self._indices, self._indptr = data, indices, indptr
        self.shape = len(indptr) - 1, n_columns
        self.size = len(data)

    @classmethod
    def of(cls, X: Any) -> SparseRows:
        """Return the rows of a CSR matrix of SciPy."""
        return cls(X.data, X.indices, X.indptr, X.shape[1])

    def __getitem__(self, rows: slice) -> SparseRows:
        """Return consecutive rows."""
        indptr = self._indptr[rows.start : rows.stop + 1]
        entries = slice(indptr[0], indptr[-1])
        return SparseRows(
            self._data[entries],
            self._indices[entries],
            indptr - indptr[0],
            self.shape[1],
        )

    def __matmul__(self, coef: Floats) -> Floats:
        """Return the product with coefficients of shape (d,) or (d, k)."""
        out = np.empty((self.shape[0], *coef.shape[1:]))
        multiply = products.multiply if coef.ndim == 1 else products.multiply_several
        multiply(self._indptr, self._indices, self._data, coef, out)
        return out

    def add_adjoint(self, u: Floats, power: int, total: Floats) -> None:
        """Add Xᵀ u, with the entries of X raised to ``power``, to ``total`` (c,)."""
        u = u.reshape(self.shape[0], -1)
        arrays = self._indptr, self._indices, self._data
        products.add_adjoint(*arrays, power, u, total.reshape(-1, u.shape[1]))

    def on_own_columns(self, others: Rows) -> tuple[Rows, SparseRows]:
        """Return columns with entries or in ``others``, and the rows on them."""
        columns, places = distinct_columns(self._indices, self.shape[1], others)
        places = places.astype(self._indptr.dtype, copy=False)
        return columns, SparseRows(self._data, places, self._indptr, len(columns))


class LinearBatch:
    """J(w, X_t): the penalty plus the weighted loss of some rows (Yu 2009, eq. 5.1).

    Parameters of shape (q,) have the layout of ``Design``: the coefficients, with the k
    scores' coefficients of a feature side by side, then one intercept for each score.

    Parameters
    ----------
    X : ndarray, SparseRows, or sparse CSR array of shape (b, d)
    targets : ndarray of shape (b,) or (b, k)
    weights : ndarray of shape (b,)
    loss : OnlineLoss
    penalty : Penalty
    fit_intercept : bool
    n_outputs : int or None
        Number k of scores per row; None for scores of shape (b,).

    Attributes
    ----------
    n_rows, n_coef, n_scores : int
        Numbers of rows, of coefficients, and of scores per row.
    shape : tuple of int
        The shape of scores, (b,) or (b, k).
    n_entries : int
        Number of stored entries of X.
    is_sparse : bool
    """

    def __init__(
        self,
        X: Any,
        targets: Floats,
        weights: Floats,
        loss: OnlineLoss,
        penalty: Penalty,
        fit_intercept: bool,
        n_outputs: int | None = None,
    ) -> None:
        self.is_sparse = not isinstance(X, np.ndarray)
        if self.is_sparse and not isinstance(X, SparseRows):
            X = SparseRows.of(X)
        self.n_rows = X.shape[0]
        self.n_entries = int(X.size)
        self.fit_intercept = fit_intercept
        self.penalty = penalty
        self._X = X
        self._targets = targets
        self._weights = weights
        self._loss = loss
        self._n_outputs = n_outputs
        self.n_scores = n_outputs or 1
        self.shape = (self.n_rows,) if n_outputs is None else (self.n_rows, n_outputs)
        self.n_coef = X.shape[1] * self.n_scores

    def value(self, w: Floats) -> float:
        """Return J(w, X_t)."""
        return self.risk(self.scores(w)) + self.penalty.value(w[: self.n_coef])

    def value_and_gradient(self, w: Floats) -> tuple[float, Floats]:
        """Return J(w, X_t) and its gradient of shape (q,)."""
        z = self.scores(w)
        value = self.risk(z) + self.penalty.value(w[: self.n_coef])
        return value, self._gradient(w, z)

    def gradient(self, w: Floats) -> Floats:
        """Return the gradient at w, of shape (q,)."""
        return self._gradient(w, self.scores(w))

    def hessian_product(self, w: Floats, v: Floats) -> Floats:
        """Return the Hessian at w times v, of shape (q,).

        For a loss with kinks, the Hessian of a majorizer.
        """
        args = self.scores(w), self._targets, self._weights
        return self.curvature_product(self._loss.hessian(*args), v)

    def curvature_product(self, curvature: Curvature, v: Floats) -> Floats:
        """Return the Hessian times v, given the curvature of the loss at the scores."""
        product = self.adjoint(curvature.apply(self.scores(v)))
        product[: self.n_coef] += self.penalty.l2 * v[: self.n_coef]
        return product

    def scores(self, w: Floats) -> Floats:
        """Return the scores, of shape (b,) or (b, k)."""
        coef = w[: self.n_coef]
        if self._n_outputs is not None:
            coef = coef.reshape(-1, self._n_outputs)
        z: Floats = self._X @ coef
        if self.fit_intercept:
            z += w[self.n_coef :]
        return z

    def adjoint(self, u: Floats, total: Floats | None = None, power: int = 1) -> Floats:
        """Add Xᵀ u, and the sums of u for intercepts, to ``total`` and return it.

        Parameters
        ----------
        u : ndarray of shape (b,) or (b, k)
        total : ndarray of shape (q,), or (c,) without intercepts; None for zeros (q,)
        power : int
            Non-zero entries of X are raised to this power, 0, 1 or 2.
        """
        X, c = self._X, self.n_coef
        if total is None:
            total = np.zeros(c + self.n_scores * self.fit_intercept)
        if self.is_sparse:
            X.add_adjoint(u, power, total[:c])
        else:
            if power == 2:
                X = np.square(X, dtype=np.float64)
            elif power == 0:
                X = (X != 0.0).astype(np.float64)
            total[:c] += (X.T @ u).ravel()
        if len(total) > c:
            total[c:] += u.sum(axis=0)
        return total

    def on_own_columns(self, others: Rows) -> tuple[Rows, LinearBatch]:
        """Return the columns of a sparse batch, as ``SparseRows``, and its batch."""
        columns, X = self._X.on_own_columns(others)
        args = self._targets, self._weights, self._loss, self.penalty
        return columns, LinearBatch(X, *args, self.fit_intercept, self._n_outputs)

    def risk(self, scores: Floats) -> float:
        """Return the weighted loss at scores."""
        return self._loss.value(scores, self._targets, self._weights)

    def dual(self, scores: Floats) -> Floats:
        """Return a subgradient of the loss at scores, of the shape of scores."""
        return self._loss.subgradient(scores, self._targets, self._weights)

    def curvature(self, scores: Floats) -> Curvature:
        """Return the second derivatives of the loss at scores, or of a majorizer."""
        return self._loss.curvature(scores, self._targets, self._weights)

    def _gradient(self, w: Floats, scores: Floats) -> Floats:
        gradient = self.adjoint(self.dual(scores))
        gradient[: self.n_coef] += self.penalty.gradient(w[: self.n_coef])
        return gradient

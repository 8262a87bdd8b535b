"""Second derivatives of an objective at a point."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..lazy import cached_property
from ..losses._base import Floats
from ..losses._curvature import Curvature
from ..rows.bordered import Bordered
from .bounds import Bounds


class Hessian:
    """alpha * Omega'' + R'' at a point.

    Parameters
    ----------
    objective : Bounds
    w : ndarray of shape (q,)
    curvature : Curvature
        Second derivatives of the loss there.

    Attributes
    ----------
    risk : RiskHessian
        R''.
    n_free : int
        Number of intercepts.
    """

    def __init__(self, objective: Bounds, w: Floats, curvature: Curvature) -> None:
        o = objective
        self.risk = o.risk.hessian(curvature)
        self.n_free = o.n_free
        self._design = o.design
        self._penalty = o.alpha * o.regularizer.curvature(w)
        self._form: Floats | None = None
        if self._penalty.ndim > 1:
            self._form, self._penalty = self._penalty, np.diag(self._penalty)

    @property
    def n_rows(self) -> int:
        """Number of rows with curvature."""
        return self.risk.n_rows

    def apply(self, v: Floats) -> Floats:
        """Return the product with v of shape (q,)."""
        own = self._penalty * v if self._form is None else self._form @ v
        return own + self.risk.apply(v)

    def diagonal(self) -> Floats:
        """Return the diagonal, of shape (q,)."""
        return self._penalty + self.risk.diagonal()

    def gap(self, gradient: Floats) -> float:
        """Return the gap ||g||² / (2 alpha) that a gradient g of J proves.

        With penalty factors f_j it is sum_j g_j² / (2 alpha f_j), without intercepts.
        No gap is known for a penalty whose Hessian is not diagonal.
        """
        if self._form is not None:
            return np.inf
        n = len(gradient) - self.n_free
        squares = np.square(gradient[:n])
        with np.errstate(divide="ignore", invalid="ignore"):
            squares /= self._penalty[:n]
        return 0.5 * float(np.nansum(squares))

    def without_intercept(self, gradient: Floats) -> Floats:
        """Return a gradient after a Newton step in a single intercept."""
        if self.n_free != 1 or self._design.several_scores:
            return gradient
        column = self._column
        return gradient - gradient[-1] / (column[-1] or 1.0) * column

    @cached_property
    def _column(self) -> Floats:
        return self.risk.column_of_intercept()

    def spectral_solve(self) -> Callable[[Floats], Floats]:
        """Return the solver of an approximate system, for several scores per row.

        It assumes that rows with curvature have the same features in every class: with
        the mean C of x xᵀ and the sum h_j of the second derivatives of class j, the
        block of the class is alpha I + h_j C, and blocks of two classes are zero.
        """
        values, vectors = self._design.spectrum
        h = self.risk.class_sums()
        scale = np.multiply.outer(values, h) + float(self._penalty.max())

        def solve(v: Floats) -> Floats:
            rotated = vectors.T @ v.reshape(scale.shape)
            rotated /= scale
            solution: Floats = (vectors @ rotated).ravel()
            return solution

        return solve

    def matrix(self) -> Floats:
        """Return the whole matrix, of shape (q, q)."""
        matrix = self.risk.matrix()
        if self._form is not None:
            return matrix + self._form
        matrix[np.diag_indices_from(matrix)] += self._penalty
        return matrix

    def bordered(self) -> Bordered:
        """Return the whole matrix, with the block of a category as its diagonal."""
        return self.risk.bordered().plus(self._penalty)

    @property
    def penalty(self) -> float:
        """The common penalty of all coefficients, NaN if they differ."""
        penalty = self._penalty[: self._design.n_coef]
        alike = self._form is None and penalty.size and np.ptp(penalty) == 0.0
        return float(penalty[0]) if alike else np.nan

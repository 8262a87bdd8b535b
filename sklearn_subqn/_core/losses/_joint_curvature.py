"""Second derivatives of losses of several scores per row."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ._base import Floats, Rows
from ._curvature import CurvatureByEntries, Entries

Codes = npt.NDArray[np.uint8]


class RowsOfCodes(Protocol):
    """The interface of a set of dual variables that second derivatives need.

    Attributes
    ----------
    kernel : module
        Compiled loops over rows.
    is_simplex : bool
        Whether b is in the unit simplex of the labels.
    """

    kernel: Any
    is_simplex: bool

    def rows(self, targets: Any, k: int) -> Any:
        """Return targets as rows of the kernel, with k scores each."""

    def take(self, codes: Codes, targets: Any, rows: Rows | slice) -> Codes:
        """Return the codes of the given rows, one code for each dual variable."""

    def positive_rows(self, codes: Codes, targets: Any) -> Rows:
        """Return the rows that have positive codes."""


class JointCurvature(CurvatureByEntries):
    """Second derivatives, a k x k matrix a row: factor Dᵀ (I - sum_g c_g c_gᵀ) D.

    D maps changes of a row's scores to changes of its violations in the support of b.
    The product with I - c_g c_gᵀ centers the violations of a group g whose sum of b is
    fixed.

    Parameters
    ----------
    dual_set : RowsOfCodes
    targets : ndarray of shape (n, ...)
    codes : ndarray of uint8
        Groups of variables in the support, 0 for the others (``support`` in
        ``joint_curvature.pxi``).
    factors : ndarray of shape (n,)
    n_labels : int
        Number of scores of labels, threshold included.
    """

    def __init__(
        self,
        dual_set: RowsOfCodes,
        targets: Any,
        codes: Codes,
        factors: Floats,
        n_labels: int,
    ) -> None:
        self._set, self._kernel = dual_set, dual_set.kernel
        self._targets = targets
        self._codes = codes
        self._factors = factors
        self._n_labels = n_labels

    def rows(self) -> Rows:
        return self._set.positive_rows(self._codes, self._targets)

    def take(self, rows: Rows | slice) -> JointCurvature:
        codes = self._set.take(self._codes, self._targets, rows)
        return JointCurvature(
            self._set, self._targets[rows], codes, self._factors[rows], self._n_labels
        )

    def _arguments(self) -> tuple[Any, Codes, Floats]:
        rows = self._set.rows(self._targets, self._n_labels)
        return rows, self._codes.ravel(), self._factors

    def apply(self, dscores: Floats) -> Floats:
        self._kernel.apply_curvature(*self._arguments(), dscores)
        return dscores

    def diagonal(self) -> Floats:
        diagonal = np.empty((len(self._factors), self._n_labels))
        self._kernel.curvature_diagonal(*self._arguments(), diagonal)
        return diagonal

    def centered(self) -> Floats | None:
        if not self._set.is_simplex:
            return None
        return self._factors[:, np.newaxis] * (self._codes != 0)

    def entries(self, first: int, out: Entries) -> tuple[int, int]:
        found: tuple[int, int] = self._kernel.entries(*self._arguments(), first, *out)
        return found

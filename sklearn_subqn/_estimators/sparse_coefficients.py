"""Methods of estimators with sparse coefficients."""

from __future__ import annotations

from typing import Any, TypeVar

from scipy import sparse
from sklearn.utils.validation import check_is_fitted

Model = TypeVar("Model", bound=Any)


def sparsify(self: Model) -> Model:
    """Convert ``coef_`` to a CSR matrix, which saves memory if most entries are zero.

    Returns
    -------
    self : estimator
        The estimator, changed in place.
    """
    check_is_fitted(self)
    self.coef_ = sparse.csr_matrix(self.coef_)
    return self


def densify(self: Model) -> Model:
    """Convert ``coef_`` back to an array, as after ``fit``.

    Returns
    -------
    self : estimator
        The estimator, changed in place.
    """
    check_is_fitted(self)
    if sparse.issparse(self.coef_):
        self.coef_ = self.coef_.toarray()
    return self

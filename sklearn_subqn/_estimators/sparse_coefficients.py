"""Methods of estimators whose coefficients may be a sparse matrix."""

from __future__ import annotations

from typing import Any, TypeVar

from scipy import sparse
from sklearn.utils.validation import check_is_fitted

Model = TypeVar("Model", bound=Any)


def sparsify(self: Model) -> Model:
    """Make ``coef_`` a CSR matrix, which saves memory where most are zero.

    Returns
    -------
    self : estimator
        The estimator, changed in place.
    """
    check_is_fitted(self)
    self.coef_ = sparse.csr_matrix(self.coef_)
    return self


def densify(self: Model) -> Model:
    """Make ``coef_`` an array again, as it is after ``fit``.

    Returns
    -------
    self : estimator
        The estimator, changed in place.
    """
    check_is_fitted(self)
    if sparse.issparse(self.coef_):
        self.coef_ = self.coef_.toarray()
    return self

"""Decompositions by LAPACK that reject infinite entries and NaN.

LAPACK writes messages about such entries directly to the terminal, not to Python's
streams. The whole package calls the routines of this file.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from scipy import linalg

_Routine = TypeVar("_Routine", bound=Callable[..., Any])


def _of_finite(routine: _Routine) -> _Routine:
    """Return the routine, raising FloatingPointError if an array is not finite."""

    @wraps(routine)
    def checked(*arrays: Any, **options: Any) -> Any:
        if not all(np.isfinite(array).all() for array in arrays):
            raise FloatingPointError("a matrix has an infinite entry or NaN")
        return routine(*arrays, **options)

    return checked  # type: ignore[return-value]


lstsq = _of_finite(np.linalg.lstsq)
eigh = _of_finite(np.linalg.eigh)
eigvalsh = _of_finite(np.linalg.eigvalsh)
matrix_rank = _of_finite(np.linalg.matrix_rank)
pinv = _of_finite(np.linalg.pinv)
svd = _of_finite(np.linalg.svd)


@_of_finite
def is_definite(matrix: Any, share: float = 0.0) -> bool:
    """Whether a Cholesky factor proves that a symmetric matrix is positive definite.

    True means that its least eigenvalue is above ``share`` times the largest one. The
    Cholesky factor takes a fifth of the time of eigenvalues.
    """
    # The largest column sum is an upper bound of the largest eigenvalue.
    shift = share * float(np.abs(matrix).sum(axis=0).max(initial=0.0))
    try:
        np.linalg.cholesky(matrix - shift * np.eye(len(matrix)))
    except np.linalg.LinAlgError:
        return False
    return True


@_of_finite
def eigh_divide_and_conquer(matrix: Any) -> Any:
    """Return eigenvalues and eigenvectors by the divide-and-conquer method."""
    return linalg.eigh(matrix, check_finite=False, driver="evd")

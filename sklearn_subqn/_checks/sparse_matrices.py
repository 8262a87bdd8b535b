"""Checks of X: its format, its range, and index arrays, which kernels trust."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import assert_all_finite

from .._core.arrays import Array
from .._core.kernels import products
from .._core.names import listed
from .arrays import LARGEST_VALUE, check_unmasked
from .weights import NUMERIC


def check_sparse_structure(X: Any, name: str = "X") -> None:
    """Raise ValueError if a sparse X is not two-dimensional or is inconsistent.

    SciPy's compiled routines do not check index arrays: converting or multiplying a
    corrupted matrix can crash the interpreter, so this check comes first. Unlike
    SciPy's own ``check_format``, it does not change X, and rejects every matrix that
    would crash later.
    """
    if not sparse.issparse(X):
        return
    if X.ndim != 2:
        raise ValueError(f"Expected 2D input, got a sparse array of shape {X.shape}.")
    try:
        fault = _FAULTS[X.format](X) if X.format in _FAULTS else None
    except Exception as error:  # a corrupted attribute can be anything
        fault = f"{type(error).__name__}: {error}"
    if fault:
        raise ValueError(
            f"{name} is a corrupted sparse matrix of format {X.format!r}: {fault}. "
            "Build it anew from valid values and index arrays."
        )


def canonical_csr(X: Any, name: str = "X") -> Any:
    """Return a sparse X as a canonical CSR matrix, everything else unchanged.

    In a canonical matrix each entry is stored once, and columns ascend in each row.
    Arrays are contiguous, index arrays have one type, and the class is SciPy's own, not
    a subclass that may override methods. X is never changed: the result shares its
    arrays if they are canonical, and is a copy otherwise. The indices are read to
    determine this, since flags stored in X are wrong if its arrays were edited later.

    Raises
    ------
    ValueError
        As in ``check_sparse_structure``, or if entries are masked.
    """
    if not sparse.issparse(X):
        return X
    if _is_canonical(X):
        # The constructor would take longer than this check.
        own = object.__new__(type(X))
        vars(own).update(vars(X))
        own.has_canonical_format = True
        return own
    check_sparse_structure(X, name)
    check_unmasked(name, X)
    kind = sparse.csr_array if isinstance(X, sparse.sparray) else sparse.csr_matrix
    rows = X if X.format == "csr" else X.tocsr()
    arrays = map(np.ascontiguousarray, (rows.data, rows.indices, rows.indptr))
    own = kind(tuple(arrays), shape=X.shape)
    if not own.has_canonical_format:
        # SciPy cannot add numbers in half precision.
        dtype = np.float32 if own.dtype == np.float16 else own.dtype
        data = own.data.astype(dtype, copy=True)
        own = kind((data, own.indices.copy(), own.indptr.copy()), shape=X.shape)
        own.sum_duplicates()
    return own


def _is_canonical(X: Any) -> bool:
    """Whether the result of ``canonical_csr`` is X, read in one pass."""
    if type(X) not in (sparse.csr_array, sparse.csr_matrix) or X.ndim != 2:
        return False
    arrays = [vars(X).get(name) for name in ("data", "indices", "indptr")]
    for array in arrays:
        if type(array) is not np.ndarray or array.ndim != 1:
            return False
        if not (array.flags.c_contiguous and array.flags.aligned):
            return False
    data, indices, indptr = arrays
    # SciPy converts the indices of small matrices, but not of arrays, to 32 bits.
    types = (np.int32, np.int64) if type(X) is sparse.csr_array else (np.int32,)
    return (
        data.dtype.kind in NUMERIC
        and len(data) == len(indices)
        and len(indptr) == X.shape[0] + 1
        and indices.dtype == indptr.dtype
        and indices.dtype in types
        and bool(products.is_canonical(indptr, indices, X.shape[1]))
    )


def is_plain(X: Any, y: Any, dtypes: tuple[type, ...]) -> bool:
    """Whether scikit-learn's validation would return the arrays unchanged.

    This holds for matrices of floats, dense or CSR, and for vectors of equally many
    finite numbers. scikit-learn's tests for other containers take a fifth of the time
    of a small fit.

    Parameters
    ----------
    X : object
        A sparse X is a result of ``canonical_csr``.
    y : object
        None if there are no targets.
    dtypes : tuple of types
        Accepted types of the entries of X.
    """
    is_csr = sparse.issparse(X) and X.format == "csr"
    if type(X) is not np.ndarray and not is_csr:
        return False
    if X.ndim != 2 or 0 in X.shape or X.dtype not in dtypes:
        return False
    if y is None:
        return True
    return (
        type(y) is np.ndarray
        and y.shape == X.shape[:1]
        and y.dtype.kind in "biuf"
        and bool(np.isfinite(y).all())
    )


def check_range(X: Any, estimator_name: str, names: Any = None) -> None:
    """Raise ValueError if X is not finite, or if products of its values can overflow.

    Parameters
    ----------
    X : array or sparse matrix of floats
    estimator_name : str
        Name of the estimator, for scikit-learn's advice on missing values.
    names : ndarray of shape (d,) or None
        Names of the columns.
    """
    values = (X.data if sparse.issparse(X) else X).ravel(order="K")
    # A small sum of squares proves in one pass that all entries are in the range.
    with np.errstate(over="ignore", invalid="ignore"):
        if float(values @ values) <= LARGEST_VALUE:
            return
    try:
        assert_all_finite(X, estimator_name=estimator_name, input_name="X")
    except ValueError as error:
        wrong = ~np.isfinite(X.data if sparse.issparse(X) else X)
        found = np.unique(
            X.indices[wrong] if sparse.issparse(X) else wrong.nonzero()[1]
        )
        found = found if names is None else names[found]
        raise ValueError(f"{error}\nColumns: {listed(found)}.") from error
    if max(float(values.max()), -float(values.min())) > LARGEST_VALUE:
        raise ValueError(
            f"X contains values beyond {LARGEST_VALUE:g} in magnitude, whose products "
            "overflow. Scale the features, for example by "
            "sklearn.preprocessing.MaxAbsScaler."
        )


def _fault_of_indices(name: str, indices: Any, length: int, bound: int) -> str | None:
    """Return a description of invalid entries of index arrays, valid in [0, bound)."""
    if fault := _fault_of_integers(name, indices):
        return fault
    if len(indices) != length:
        return f"{name} has {len(indices)} entries where {length} are needed"
    if length and not 0 <= indices.min() <= indices.max() < bound:
        return (
            f"{name} must lie between 0 and {bound - 1}, got values from "
            f"{indices.min()} to {indices.max()}"
        )
    return None


def _fault_of_integers(name: str, array: Any) -> str | None:
    if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind != "i":
        return f"{name} must be a one-dimensional array of signed integers"
    return None


def _fault_of_values(values: Any, ndim: int) -> str | None:
    if not isinstance(values, np.ndarray) or values.ndim != ndim:
        return f"data must be an array of {ndim} dimension{'s' if ndim > 1 else ''}"
    if values.dtype.kind not in NUMERIC:
        return f"data must be numeric, got values of type {values.dtype}"
    return None


def _fault_of_compressed(X: Any, n_major: int, n_minor: int) -> str | None:
    """Return a description of invalid index arrays of CSR, CSC and BSR."""
    indices, indptr = X.indices, X.indptr
    fault = _fault_of_indices("indices", indices, len(X.data), n_minor)
    fault = fault or _fault_of_integers("indptr", indptr)
    if fault:
        return fault
    if len(indptr) != n_major + 1:
        return f"indptr has {len(indptr)} entries where {n_major + 1} are needed"
    if indptr[0] != 0 or indptr[-1] > len(indices) or np.any(indptr[1:] < indptr[:-1]):
        return f"indptr must rise from 0 to at most the number {len(indices)} of values"
    return None


def _fault_of_csr(X: Any) -> str | None:
    return _fault_of_values(X.data, 1) or _fault_of_compressed(X, *X.shape)


def _fault_of_csc(X: Any) -> str | None:
    return _fault_of_values(X.data, 1) or _fault_of_compressed(X, *X.shape[::-1])


def _fault_of_bsr(X: Any) -> str | None:
    if fault := _fault_of_values(X.data, 3):
        return fault
    n_blocks = []
    for size, block in zip(X.shape, X.data.shape[1:], strict=True):
        if block == 0 or size % block:
            return f"blocks of shape {X.data.shape[1:]} do not tile shape {X.shape}"
        n_blocks.append(size // block)
    return _fault_of_compressed(X, *n_blocks)


def _fault_of_coo(X: Any) -> str | None:
    if fault := _fault_of_values(X.data, 1):
        return fault
    coords = X.coords if hasattr(X, "coords") else (X.row, X.col)
    if len(coords) != 2:
        return f"there must be coordinates of 2 axes, got {len(coords)}"
    for axis, (name, indices) in enumerate(zip(("row", "col"), coords, strict=True)):
        if fault := _fault_of_indices(name, indices, len(X.data), X.shape[axis]):
            return fault
    return None


def _fault_of_dia(X: Any) -> str | None:
    offsets = X.offsets
    if fault := _fault_of_values(X.data, 2) or _fault_of_integers("offsets", offsets):
        return fault
    if len(offsets) != len(X.data):
        return f"there are {len(X.data)} diagonals, but {len(offsets)} offsets"
    n, d = X.shape
    if len(offsets) and not -n < offsets.min() <= offsets.max() < d:
        return f"offsets must lie between {1 - n} and {d - 1}"
    if len(np.unique(offsets)) < len(offsets):
        return "offsets must differ"
    return None


def _fault_of_lil(X: Any) -> str | None:
    n, d = X.shape
    for name, lists in (("rows", X.rows), ("data", X.data)):
        if not isinstance(lists, np.ndarray) or lists.shape != (n,):
            return f"{name} must be an array of {n} lists"
    for row, (columns, values) in enumerate(zip(X.rows, X.data, strict=True)):
        if not isinstance(columns, list) or not isinstance(values, list):
            return f"rows[{row}] and data[{row}] must be lists"
        # An empty list would become an array of floats.
        indices = np.array(columns) if columns else np.empty(0, dtype=int)
        if fault := _fault_of_indices(f"rows[{row}]", indices, len(values), d):
            return fault
        if values and not _can_hold(X, np.array(values)):
            return f"data[{row}] must be numeric"
    return None


def _fault_of_dok(X: Any) -> str | None:
    stored = list(X.keys())
    if not stored:
        return None
    pairs = all(isinstance(key, tuple) and len(key) == 2 for key in stored)
    keys = np.array(stored if pairs else [])
    if keys.ndim != 2 or keys.dtype.kind != "i":
        return "keys must be pairs of integers"
    if np.any(keys < 0) or np.any(keys >= np.array(X.shape)):
        return f"keys must lie within shape {X.shape}"
    if not _can_hold(X, np.array(list(X.values()))):
        return "values must be numeric"
    return None


def _can_hold(X: Any, values: Array) -> bool:
    """Return whether the dtype of X can hold the values."""
    kind = values.dtype.kind
    return kind in NUMERIC and (kind != "c" or X.dtype.kind == "c")


_FAULTS: dict[str, Callable[[Any], str | None]] = {
    "csr": _fault_of_csr,
    "csc": _fault_of_csc,
    "bsr": _fault_of_bsr,
    "coo": _fault_of_coo,
    "dia": _fault_of_dia,
    "lil": _fault_of_lil,
    "dok": _fault_of_dok,
}

"""Legal sparse matrices that few programs make: entries in parts, unsorted, as zeros.

``messy`` stores a matrix in such a way, in any format that compresses rows, columns or
blocks, or lists entries. Parts of an entry sum to it exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse


def messy(X: Any, kind: Any, seed: int = 0, *, wide: bool = False) -> Any:
    """Return X as a matrix of a class of SciPy, with entries stored in an odd way.

    Some entries are stored as two halves, some zeros are stored, and all are shuffled
    within their row, column or the whole; ``wide`` makes indices of 64 bits.
    """
    rng = np.random.default_rng(seed)
    of_format = kind((1, 1)).format
    if of_format == "bsr":
        return _messy_blocks(X, kind, rng, np.int64 if wide else np.int32)
    stored = (X != 0.0) | (rng.random(X.shape) < 0.2)
    row, column = np.nonzero(stored)
    halved = np.flatnonzero(rng.random(len(row)) < 0.3)
    data = X[row, column].copy()
    data[halved] /= 2
    order = rng.permutation(len(row) + len(halved))
    row, column, data = (
        np.concatenate([a, a[halved]])[order] for a in (row, column, data)
    )
    dtype = np.int64 if wide else np.int32
    if of_format == "coo":
        found = kind((data, (row.astype(dtype), column.astype(dtype))), shape=X.shape)
        for axis, index in zip(("row", "col"), (row, column), strict=True):
            if getattr(found, axis).dtype != dtype:
                setattr(found, axis, index.astype(dtype))
        return found
    major, minor, n = row, column, X.shape[0]
    if of_format == "csc":
        major, minor, n = column, row, X.shape[1]
    order = np.argsort(major, kind="stable")
    indptr = np.searchsorted(major[order], np.arange(n + 1))
    return _compressed(kind, data[order], minor[order], indptr, X.shape, dtype)


def _messy_blocks(X: Any, kind: Any, rng: Any, dtype: Any) -> Any:
    """Return X in blocks of a row, each stored as two halves in no order."""
    blocks = kind(sparse.csr_array(X), blocksize=(1, 1 + (X.shape[1] % 2 == 0)))
    order = np.concatenate(
        [
            np.repeat(rng.permutation(np.arange(start, stop)), 2)
            for start, stop in zip(blocks.indptr[:-1], blocks.indptr[1:], strict=True)
        ]
    )
    data, indices = blocks.data[order] / 2, blocks.indices[order]
    return _compressed(kind, data, indices, 2 * blocks.indptr, X.shape, dtype)


def _compressed(
    kind: Any, data: Any, indices: Any, indptr: Any, shape: Any, dtype: Any
) -> Any:
    found = kind((data, indices, indptr), shape=shape)
    # SciPy makes indices as narrow as they can be.
    found.indices, found.indptr = indices.astype(dtype), indptr.astype(dtype)
    return found


def arrays_of(X: Any) -> list[Any]:
    """Return the arrays that a matrix is made of."""
    if not sparse.issparse(X):
        return [X]
    if X.format == "coo":
        return [X.data, X.row, X.col]
    return [X.data, X.indices, X.indptr]


def read_only(X: Any) -> Any:
    for array in arrays_of(X):
        array.flags.writeable = False
    return X


def claimed(X: Any) -> Any:
    """Return X with flags of SciPy that are wrong, as after changes of its arrays."""
    X.has_sorted_indices = X.has_canonical_format = True
    return X


#: Matrices of the numbers of an array, each stored in another way. In all, the zeros
#: that ``messy`` stores are the same, except for blocks.
FORMATS: dict[str, Callable[[Any], Any]] = {
    "csr_matrix": lambda X: messy(X, sparse.csr_matrix),
    "csr_array wide read-only": lambda X: read_only(
        messy(X, sparse.csr_array, wide=True)
    ),
    "csr_array claimed": lambda X: claimed(messy(X, sparse.csr_array)),
    "csc_matrix wide": lambda X: messy(X, sparse.csc_matrix, wide=True),
    "csc_array read-only": lambda X: read_only(messy(X, sparse.csc_array)),
    "coo_matrix read-only": lambda X: read_only(messy(X, sparse.coo_matrix)),
    "coo_array wide": lambda X: messy(X, sparse.coo_array, wide=True),
    "bsr_matrix wide": lambda X: messy(X, sparse.bsr_matrix, wide=True),
    "bsr_array read-only": lambda X: read_only(messy(X, sparse.bsr_array)),
    "C order": lambda X: read_only(np.array(X, order="C")),
    "Fortran order": lambda X: np.array(X, order="F"),
}


def canonical(X: Any, title: str) -> Any:
    """Return an array as the canonical matrix of one of the formats, by SciPy."""
    if title.endswith("order"):
        return np.array(X, order=title[0])  # type: ignore[call-overload]
    rows = messy(X, sparse.bsr_array if title.startswith("bsr") else sparse.coo_array)
    rows = sparse.csr_array(rows.tocsr())
    rows.sum_duplicates()
    return rows


def snapshot(data: Any) -> Any:
    """Return types, shapes and bytes of all arrays in data of any structure."""
    if isinstance(data, dict):
        return {key: snapshot(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [snapshot(each) for each in data]
    if sparse.issparse(data):
        return data.shape, snapshot(arrays_of(data))
    if isinstance(data, np.ndarray):
        return data.dtype, data.shape, data.strides, data.tobytes()
    return repr(data)

"""Sequences whose tokens are rows of matrices or of pandas and polars tables."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy import sparse

from .._checks import check_sparse_structure, check_unmasked
from .._core.arrays import Indices


def is_table(X: Any) -> bool:
    """Whether X is a data frame of pandas or polars, not a series."""
    of_pandas = hasattr(X, "iloc")
    return (of_pandas and X.ndim == 2) or (
        not of_pandas and hasattr(X, "collect_schema") and hasattr(X, "shape")
    )


def has_words(table: Any) -> bool:
    """Whether a table has a column with strings, so its rows are named tokens."""
    columns = (
        [table.iloc[:, j] for j in range(table.shape[1])]
        if hasattr(table, "iloc")
        else table.iter_columns()
    )
    return any(
        not _is_of_numbers(column.dtype) and any(isinstance(x, str) for x in column)
        for column in columns
    )


def _is_of_numbers(dtype: Any) -> bool:
    """Whether a pandas or polars column type is numeric."""
    kind = getattr(dtype, "kind", None)
    return bool(kind in tuple("biuf") if kind else dtype.is_numeric())


def rows_of_table(table: Any) -> list[dict[Any, Any]]:
    """Return the rows of a table as dicts from column names to values.

    Raises
    ------
    ValueError
        If two columns have the same name.
    """
    names = list(table.columns)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"X has two columns of the name {twice!r}.")
    rows: list[dict[Any, Any]]
    rows = table.to_dict("records") if hasattr(table, "iloc") else table.to_dicts()
    return rows


def is_matrix(X: Any) -> bool:
    """Whether X is a numeric matrix, dense or sparse, or a data frame."""
    return (
        sparse.issparse(X)
        or (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype != object)
        or is_table(X)
    )


def is_empty(sequence: Any) -> bool:
    """Whether a sequence has a length, and the length is zero."""
    if hasattr(sequence, "shape"):
        return len(sequence.shape) > 0 and sequence.shape[0] == 0
    return hasattr(sequence, "__len__") and len(sequence) == 0


def stack_matrices(sequences: list[Any], may_be_empty: bool) -> tuple[Any, Indices]:
    """Return the stacked matrices of sequences, and the first row of each.

    The result is a table for tables, and otherwise an array or a CSR array. At least
    one sequence must not be empty.

    Raises
    ------
    TypeError, ValueError
        If a sequence is empty although ``may_be_empty`` is False, is not numeric, or
        has columns that differ from the first one's.
    """
    lengths: list[int] = []
    parts: list[Any] = []
    first = 0
    for i, matrix in enumerate(sequences):
        if is_empty(matrix):
            if not may_be_empty:
                raise ValueError(f"Sequence {i} is empty; leave it out.")
            lengths.append(0)
            continue
        first = first if parts else i
        _check_alike(i, matrix, first, sequences[first])
        parts.append(matrix)
        lengths.append(matrix.shape[0])
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp)
    if is_table(parts[0]):
        return _joined(parts), starts
    if any(map(sparse.issparse, parts)):
        return sparse.vstack(list(map(sparse.csr_array, parts)), "csr"), starts
    return np.concatenate(parts), starts


def _check_alike(i: int, matrix: Any, first: int, other: Any) -> None:
    """Raise unless sequence i is a matrix with the columns of the first one."""
    kind = "table" if is_table(other) else "matrix"
    if not is_matrix(matrix) or is_table(matrix) != is_table(other):
        raise TypeError(
            f"Sequence {i} must be a {kind} as sequence {first} is, got an object of "
            f"type {type(matrix).__name__}."
        )
    if len(matrix.shape) != 2 or matrix.shape[1] != other.shape[1]:
        raise ValueError(
            f"Sequence {i} must have shape (n_tokens, {other.shape[1]}) as sequence "
            f"{first} has, got {matrix.shape}."
        )
    check_sparse_structure(matrix, f"Sequence {i}")
    check_unmasked(f"Sequence {i}", matrix)
    if kind == "table" and matrix is not other:
        names = zip(matrix.columns, other.columns, strict=True)
        for name, expected in names:
            if name != expected:
                raise ValueError(
                    f"Sequence {i} must have the columns of sequence {first} in the "
                    f"same order, got {name!r} where that has {expected!r}."
                )


def _joined(tables: list[Any]) -> Any:
    """Return the concatenation of tables with the same columns."""
    for kind in type(tables[0]).__mro__:
        module: Any = sys.modules.get(kind.__module__.partition(".")[0])
        if hasattr(module, "concat"):
            options = {} if hasattr(kind, "iloc") else {"how": "vertical_relaxed"}
            return module.concat(tables, **options)
    raise TypeError(
        f"Tables of type {type(tables[0]).__name__} cannot be joined; give arrays."
    )

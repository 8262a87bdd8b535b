from typing import Any

from numpy import float64, intp
from numpy.typing import NDArray

Floats = NDArray[float64]
Positions = NDArray[intp]

def multiply(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    values: NDArray[Any],
    coef: Floats,
    out: Floats,
) -> None: ...
def add_columns(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    values: NDArray[Any],
    columns: Positions,
    coef: Floats,
    out: Floats,
) -> None: ...
def multiply_columns(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    values: NDArray[Any],
    columns: Positions,
    vector: Floats,
    out: Floats,
) -> None: ...
def count(indices: NDArray[Any], out: NDArray[Any]) -> None: ...
def to_columns(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    values: NDArray[Any],
    first: int,
    ends: NDArray[Any],
    out_indices: NDArray[Any],
    out_values: NDArray[Any],
) -> None: ...
def squares(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    values: NDArray[Any],
    columns: Positions,
    weights: Floats,
    out: Floats,
) -> None: ...
def scale_columns(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    values: NDArray[Any],
    columns: Positions,
    scales: Floats,
    positions: NDArray[Any],
    n_rows: int,
    out_indptr: NDArray[Any],
    out_indices: NDArray[Any],
    out_values: NDArray[Any],
    squares: Floats,
) -> None: ...

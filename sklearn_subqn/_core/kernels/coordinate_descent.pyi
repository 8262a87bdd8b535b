from typing import Any

from numpy import float64, intp
from numpy.typing import NDArray

Floats = NDArray[float64]
Positions = NDArray[intp]

def sweep_gram(
    gram: Floats,
    gradient: Floats,
    coef: Floats,
    l1: Floats,
    l2: Floats,
    tol: float,
    max_sweeps: int,
) -> tuple[float, int]: ...
def sweep_columns(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    values: NDArray[Any],
    columns: Positions,
    image: Floats,
    gradient: Floats,
    squares: Floats,
    coef: Floats,
    l1: float,
    l2: float,
) -> float: ...
def sweep_blocks(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    values: NDArray[Any],
    columns: Positions,
    a: Floats,
    s: Floats,
    p: Floats,
    product: Floats,
    gradient: Floats,
    bounds: Floats,
    coef: Floats,
    l1: float,
    l2: float,
    free_gradient: Floats,
    free_bounds: Floats,
    free: Floats,
) -> float: ...

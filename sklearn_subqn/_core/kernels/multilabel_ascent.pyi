from typing import Any

from numpy import float64, intp, uint8
from numpy.typing import NDArray

Floats = NDArray[float64]

def sweep_sparse(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    targets: NDArray[uint8],
    costs: Floats,
    steps: Floats,
    squares: Floats,
    intercept_step: float,
    seed: int,
    order: NDArray[intp],
    gains: Floats,
    b: Floats,
    w: Floats,
    intercept: Floats,
) -> None: ...
def sweep_dense(
    X: NDArray[Any],
    targets: NDArray[uint8],
    costs: Floats,
    steps: Floats,
    squares: Floats,
    intercept_step: float,
    seed: int,
    order: NDArray[intp],
    gains: Floats,
    b: Floats,
    w: Floats,
    intercept: Floats,
) -> None: ...
def gaps(
    scores: Floats,
    targets: NDArray[uint8],
    costs: Floats,
    weights: Floats,
    b: Floats,
    out: Floats,
) -> None: ...

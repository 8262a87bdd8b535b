from typing import Any

from numpy import float64
from numpy.typing import NDArray

Floats = NDArray[float64]

def sweep(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    targets: Floats,
    low: Floats,
    high: Floats,
    ridge: float,
    steps: Floats,
    squares: Floats,
    intercept: float,
    intercept_step: float,
    seed: int,
    n_active: int,
    order: NDArray[Any],
    v: Floats,
    w: Floats,
) -> tuple[float, int]: ...

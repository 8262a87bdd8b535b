from typing import Any

from numpy import float64
from numpy.typing import NDArray

Floats = NDArray[float64]

def add_half(
    data: NDArray[Any],
    indices: NDArray[Any],
    indptr: NDArray[Any],
    weights: Floats,
    position: NDArray[Any],
    out: Floats,
) -> None: ...

from typing import Any

import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float64]

def forward(
    data: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    indptr: npt.NDArray[Any],
    ptr: npt.NDArray[np.intc],
    labels: npt.NDArray[np.uint16],
    stride: int,
    w: _Floats,
    first: int,
    stop: int,
    out: _Floats,
) -> None: ...
def adjoint(
    data: npt.NDArray[Any],
    indices: npt.NDArray[Any],
    indptr: npt.NDArray[Any],
    ptr: npt.NDArray[np.intc],
    labels: npt.NDArray[np.uint16],
    stride: int,
    u: _Floats,
    first: int,
    stop: int,
    out: _Floats,
) -> None: ...

from typing import Any

import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float64]
_Ints = npt.NDArray[np.intp]

def localize(
    indices: npt.NDArray[Any],
    indptr: npt.NDArray[Any],
    starts: _Ints,
    last: npt.NDArray[np.intc],
    local: npt.NDArray[np.intc],
    own: npt.NDArray[np.intc],
    own_ptr: _Ints,
) -> None: ...
def sweep(
    data: _Floats,
    local: npt.NDArray[np.intc],
    indptr: _Ints,
    starts: _Ints,
    own: npt.NDArray[np.intc],
    own_ptr: _Ints,
    ptr: npt.NDArray[np.intc],
    labels: npt.NDArray[np.uint16],
    mask: npt.NDArray[np.uint8],
    stride: int,
    free: npt.NDArray[np.uint8],
    ends: _Floats,
    threshold: float,
    steps: _Floats,
    targets: _Ints | None,
    slack: bool,
    order: _Ints,
    nodes: _Floats,
    edges: _Floats,
    values: _Floats,
    w: _Floats,
    transitions: _Floats,
) -> None: ...

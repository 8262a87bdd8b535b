import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float64]

def minimize(
    Q: _Floats,
    c: _Floats,
    x: _Floats,
    border: float,
    ridge: float,
    tolerance: float,
    max_iter: int,
    factor: _Floats,
    work: _Floats,
    support: npt.NDArray[np.intp],
) -> int: ...

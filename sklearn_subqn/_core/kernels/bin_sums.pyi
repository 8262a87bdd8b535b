from numpy import float64, intp
from numpy.typing import NDArray

Floats = NDArray[float64]
Indices = NDArray[intp]

def derivatives(
    positions: Indices,
    starts: Indices,
    sources: Floats,
    table: Floats,
    width: float,
    line: bool,
    out: Floats,
) -> None: ...
def polynomials(
    coefficients: Floats, cells: Indices, offsets: Floats, out: Floats
) -> None: ...

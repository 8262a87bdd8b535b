from numpy import float64, intp, uint8
from numpy.typing import NDArray

Floats = NDArray[float64]
Indices = NDArray[intp]

def gather(rows: Indices, codes: Indices, starts: Indices, out: Indices) -> None: ...
def first_hit(
    scores: Floats,
    order: Indices,
    starts: Indices,
    relevant: NDArray[uint8],
    positions: Floats,
    out: Floats,
    heights: Floats,
) -> None: ...
def interleave(
    scores: Floats,
    order: Indices,
    starts: Indices,
    relevant: NDArray[uint8],
    discounts: Floats,
    first_only: bool,
    margins: Floats,
    gains: Floats,
    room: Floats,
    choices: Indices,
    out: Floats,
    heights: Floats,
) -> None: ...

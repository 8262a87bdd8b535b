from numpy import float64, int32, intp
from numpy.typing import NDArray

Floats = NDArray[float64]
Indices = NDArray[intp]

def shares(
    order: Indices,
    starts: Indices,
    levels: Indices,
    weights: Floats,
    sums: Floats,
    out: Floats,
) -> None: ...
def moments(
    scores: Floats,
    order: Indices,
    starts: Indices,
    levels: Indices,
    values: Floats,
    costs: Floats,
    weights: Floats,
    margin: float,
    higher: bool,
    sums: Floats,
    out: Floats,
) -> None: ...
def slope(
    scores: Floats,
    dscores: Floats,
    order: Indices,
    starts: Indices,
    levels: Indices,
    values: Floats,
    costs: Floats,
    weights: Floats,
    factors: Floats,
    margin: float,
    sums: Floats,
) -> tuple[float, float]: ...
def products(
    scores: Floats,
    order: Indices,
    starts: Indices,
    levels: Indices,
    values: Floats,
    costs: Floats,
    terms: Floats,
    weights: Floats,
    margin: float,
    width: float,
    higher: bool,
    places: Indices,
    factor: float,
    sums: Floats,
    out: Floats,
) -> None: ...
def crossed(
    scores: Floats,
    order: Indices,
    starts: Indices,
    levels: Indices,
    values: Floats,
    costs: Floats,
    weights: Floats,
    factors: Floats,
    margin: float,
    width: float,
    higher: bool,
    indptr: NDArray[int32],
    indices: NDArray[int32],
    data: Floats,
    sums: Floats,
    out: Floats,
) -> None: ...

from numpy import float64, uint8
from numpy.typing import NDArray

Floats = NDArray[float64]
Flags = NDArray[uint8]

class Rows:
    def __init__(self, targets: Flags, costs: Floats) -> None: ...

def value(rows: Rows, scores: Floats, weights: Floats) -> float: ...
def subgradient(
    rows: Rows,
    scores: Floats,
    dscores: Floats | None,
    weights: Floats,
    tolerance: float,
    out: Floats,
) -> None: ...
def kinks(rows: Rows, scores: Floats, tolerance: float, out: Flags) -> None: ...
def restrict(
    rows: Rows,
    scores: Floats,
    dscores: Floats,
    weights: Floats,
    tolerance: float,
    first: int,
    kinks: Floats,
    jumps: Floats,
) -> tuple[int, int, float]: ...
def envelope(
    rows: Rows,
    scores: Floats,
    center: Floats,
    weights: Floats,
    width: float,
    out: Floats,
) -> float: ...
def envelope_slope(
    rows: Rows,
    scores: Floats,
    dscores: Floats,
    center: Floats,
    weights: Floats,
    width: float,
    step: float,
) -> tuple[float, float]: ...
def support(
    rows: Rows,
    scores: Floats,
    center: Floats,
    weights: Floats,
    width: float,
    edge: float,
    out: Flags,
) -> None: ...
def apply_curvature(rows: Rows, support: Flags, factors: Floats, v: Floats) -> None: ...
def curvature_diagonal(
    rows: Rows, support: Flags, factors: Floats, out: Floats
) -> None: ...
def gram(
    rows: Rows, X: Floats, support: Flags, factors: Floats, out: Floats
) -> None: ...
def transport(rows: Rows, dual: Floats, out: Floats) -> float: ...

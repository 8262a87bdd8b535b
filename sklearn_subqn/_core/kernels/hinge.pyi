from numpy import float64
from numpy.typing import NDArray

Floats = NDArray[float64]

def value(scores: Floats, targets: Floats, weights: Floats) -> float: ...
def subgradient(
    scores: Floats, targets: Floats, weights: Floats, tolerance: float, out: Floats
) -> None: ...
def kinks_ahead(
    scores: Floats,
    dscores: Floats,
    targets: Floats,
    weights: Floats,
    tolerance: float,
    kinks: Floats,
    jumps: Floats,
) -> tuple[float, int]: ...
def squared_line(
    scores: Floats, dscores: Floats, targets: Floats, m: Floats, dm: Floats
) -> None: ...
def squared_slope(
    m: Floats, dm: Floats, weights: Floats, step: float
) -> tuple[float, float]: ...
def envelope_dual(
    scores: Floats,
    targets: Floats,
    weights: Floats,
    center: Floats,
    width: float,
    out: Floats,
) -> None: ...
def envelope_curvature(
    scores: Floats,
    targets: Floats,
    weights: Floats,
    center: Floats,
    width: float,
    edge: float,
    out: Floats,
) -> None: ...
def envelope_line(
    scores: Floats,
    dscores: Floats,
    targets: Floats,
    center: Floats,
    width: float,
    t: Floats,
    dt: Floats,
) -> None: ...
def envelope_slope(
    t: Floats, dt: Floats, weights: Floats, width: float, step: float
) -> tuple[float, float]: ...

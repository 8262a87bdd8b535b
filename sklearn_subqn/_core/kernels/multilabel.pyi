from numpy import float64, uint8
from numpy.typing import NDArray

Floats = NDArray[float64]
Flags = NDArray[uint8]

def value(scores: Floats, targets: Flags, costs: Floats, weights: Floats) -> float: ...
def subgradient(
    scores: Floats,
    targets: Flags,
    costs: Floats,
    weights: Floats,
    tolerance: float,
    out: Floats,
) -> None: ...
def kinks(
    scores: Floats, targets: Flags, costs: Floats, tolerance: float, out: Flags
) -> None: ...
def steepest(
    scores: Floats,
    dscores: Floats,
    targets: Flags,
    costs: Floats,
    weights: Floats,
    tolerance: float,
    out: Floats,
) -> None: ...
def restrict(
    scores: Floats,
    dscores: Floats,
    targets: Flags,
    costs: Floats,
    weights: Floats,
    tolerance: float,
    first: int,
    kinks: Floats,
    jumps: Floats,
) -> tuple[int, int, float]: ...
def envelope_gradient(
    scores: Floats,
    center: Floats,
    targets: Flags,
    costs: Floats,
    weights: Floats,
    width: float,
    out: Floats,
) -> float: ...
def envelope_slope(
    scores: Floats,
    dscores: Floats,
    center: Floats,
    targets: Flags,
    costs: Floats,
    weights: Floats,
    width: float,
    step: float,
) -> tuple[float, float]: ...
def support(
    scores: Floats,
    center: Floats,
    targets: Flags,
    costs: Floats,
    weights: Floats,
    width: float,
    edge: float,
    out: Flags,
) -> None: ...
def apply_curvature(groups: Flags, factors: Floats, v: Floats) -> None: ...
def curvature_diagonal(groups: Flags, factors: Floats, out: Floats) -> None: ...
def gram(X: Floats, groups: Flags, factors: Floats, out: Floats) -> None: ...

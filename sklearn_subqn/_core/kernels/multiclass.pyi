from numpy import float64, intp, uint8
from numpy.typing import NDArray

Floats = NDArray[float64]
Labels = NDArray[intp]
Flags = NDArray[uint8]

def value(
    scores: Floats, targets: Labels, offsets: Floats, rates: Floats, weights: Floats
) -> float: ...
def subgradient(
    scores: Floats,
    targets: Labels,
    offsets: Floats,
    rates: Floats,
    weights: Floats,
    tolerance: float,
    out: Floats,
) -> None: ...
def count_ties(
    scores: Floats,
    targets: Labels,
    offsets: Floats,
    rates: Floats,
    tolerance: float,
    out: Labels,
) -> None: ...
def steepest(
    scores: Floats,
    dscores: Floats,
    targets: Labels,
    offsets: Floats,
    rates: Floats,
    weights: Floats,
    tolerance: float,
    out: Floats,
) -> None: ...
def restrict(
    scores: Floats,
    dscores: Floats,
    targets: Labels,
    offsets: Floats,
    rates: Floats,
    weights: Floats,
    tolerance: float,
    first: int,
    kinks: Floats,
    jumps: Floats,
) -> tuple[int, int, float]: ...
def conjugate(dual: Floats, targets: Labels, ratios: Floats) -> float: ...
def envelope_value(
    scores: Floats,
    center: Floats,
    targets: Labels,
    offsets: Floats,
    rates: Floats,
    weights: Floats,
    width: float,
) -> float: ...
def envelope_gradient(
    scores: Floats,
    center: Floats,
    targets: Labels,
    offsets: Floats,
    rates: Floats,
    weights: Floats,
    width: float,
    out: Floats,
) -> None: ...
def envelope_slope(
    scores: Floats,
    dscores: Floats,
    center: Floats,
    targets: Labels,
    offsets: Floats,
    rates: Floats,
    weights: Floats,
    width: float,
    step: float,
) -> tuple[float, float]: ...
def support(
    scores: Floats,
    center: Floats,
    targets: Labels,
    offsets: Floats,
    rates: Floats,
    weights: Floats,
    width: float,
    edge: float,
    out: Flags,
) -> None: ...
def apply_curvature(
    active: Flags, targets: Labels, rates: Floats, factors: Floats, v: Floats
) -> None: ...
def curvature_diagonal(
    active: Flags, targets: Labels, rates: Floats, factors: Floats, out: Floats
) -> None: ...
def gram(
    X: Floats,
    active: Flags,
    targets: Labels,
    rates: Floats,
    factors: Floats,
    out: Floats,
) -> None: ...

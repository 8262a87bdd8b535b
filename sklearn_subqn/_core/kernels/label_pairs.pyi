from numpy import float64, intc, intp, uint8
from numpy.typing import NDArray

Floats = NDArray[float64]
Labels = NDArray[uint8]
Sizes = NDArray[intp]

def value(scores: Floats, targets: Labels, costs: Floats, weights: Floats) -> float: ...
def subgradient(
    scores: Floats,
    dscores: Floats,
    targets: Labels,
    costs: Floats,
    weights: Floats,
    tolerance: float,
    out: Floats,
) -> None: ...
def kinks(
    scores: Floats, targets: Labels, costs: Floats, tolerance: float, out: Labels
) -> None: ...
def restrict(
    scores: Floats,
    dscores: Floats,
    targets: Labels,
    costs: Floats,
    weights: Floats,
    tolerance: float,
    first: int,
    kinks: Floats,
    jumps: Floats,
) -> tuple[int, int, float]: ...
def transport(
    dual: Floats, targets: Labels, costs: Floats, starts: Sizes, out: Floats
) -> float: ...
def envelope_gradient(
    scores: Floats,
    center: Floats,
    starts: Sizes,
    targets: Labels,
    costs: Floats,
    weights: Floats,
    width: float,
    out: Floats,
) -> float: ...
def envelope_slope(
    scores: Floats,
    dscores: Floats,
    center: Floats,
    starts: Sizes,
    targets: Labels,
    costs: Floats,
    weights: Floats,
    width: float,
    step: float,
) -> tuple[float, float]: ...
def support(
    scores: Floats,
    center: Floats,
    starts: Sizes,
    targets: Labels,
    costs: Floats,
    width: float,
    edge: float,
    out: NDArray[intc],
    sizes: Sizes,
) -> int: ...

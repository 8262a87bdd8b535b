from numpy import float64, intc, uint8
from numpy.typing import NDArray

Floats = NDArray[float64]
Targets = NDArray[uint8]
Ints = NDArray[intc]

def evaluate(
    targets: Targets, costs: Floats, scores: Floats, weights: Floats, out: Floats
) -> float: ...
def slope(
    targets: Targets,
    costs: Floats,
    scores: Floats,
    dscores: Floats,
    weights: Floats,
    step: float,
) -> tuple[float, float]: ...
def violated(
    targets: Targets,
    costs: Floats,
    scores: Floats,
    weights: Floats,
    order: Ints,
    sizes: Ints,
) -> None: ...
def apply(
    targets: Targets,
    order: Ints,
    sizes: Ints,
    weights: Floats,
    vectors: Floats,
    out: Floats,
) -> None: ...
def diagonal(
    targets: Targets, order: Ints, sizes: Ints, weights: Floats, out: Floats
) -> None: ...
def gram(
    targets: Targets,
    order: Ints,
    sizes: Ints,
    weights: Floats,
    X: Floats,
    out: Floats,
) -> None: ...

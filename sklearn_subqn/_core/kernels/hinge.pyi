from numpy import float64
from numpy.typing import NDArray

Floats = NDArray[float64]

def value(scores: Floats, targets: Floats, weights: Floats) -> float: ...

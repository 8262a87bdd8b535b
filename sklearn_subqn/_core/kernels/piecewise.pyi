from numpy import float64
from numpy.typing import NDArray

Floats = NDArray[float64]

def minimize(
    slope: float,
    curvature: float,
    kinks: Floats,
    slope_jumps: Floats,
    curvature_jumps: Floats,
) -> tuple[float, float, float]: ...

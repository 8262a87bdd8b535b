from numpy import float64
from numpy.typing import NDArray

Floats = NDArray[float64]

def survey(dual: Floats, laplacian: Floats, sums: Floats, excess: Floats) -> None: ...
def weaken(dual: Floats, potentials: Floats, factor: float, out: Floats) -> None: ...

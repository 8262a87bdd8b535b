from numpy import float64
from numpy.typing import NDArray

Floats = NDArray[float64]

def value(
    scores: Floats,
    targets: Floats,
    weights: Floats,
    labels: bool,
    low: float,
    high: float,
    tube: float,
) -> float: ...
def subgradient(
    scores: Floats,
    targets: Floats,
    weights: Floats,
    labels: bool,
    low: float,
    high: float,
    tube: float,
    tolerance: float,
    least: float,
    out: Floats,
) -> None: ...
def kinks_ahead(
    scores: Floats,
    dscores: Floats,
    targets: Floats,
    weights: Floats,
    labels: bool,
    low: float,
    high: float,
    shift: float,
    tolerance: float,
    least: float,
    kinks: Floats,
    jumps: Floats,
) -> tuple[float, int]: ...
def smooth_value(
    scores: Floats,
    targets: Floats,
    weights: Floats,
    labels: bool,
    low: float,
    high: float,
    tube: float,
    ridge: float,
    center: Floats | None,
) -> float: ...
def smooth_gradient(
    scores: Floats,
    targets: Floats,
    weights: Floats,
    labels: bool,
    low: float,
    high: float,
    tube: float,
    ridge: float,
    center: Floats | None,
    out: Floats,
) -> None: ...
def smooth_curvature(
    scores: Floats,
    targets: Floats,
    weights: Floats,
    labels: bool,
    low: float,
    high: float,
    tube: float,
    ridge: float,
    center: Floats | None,
    tolerance: float,
    out: Floats,
) -> None: ...
def smooth_line(
    scores: Floats,
    dscores: Floats,
    targets: Floats,
    labels: bool,
    ridge: float,
    center: Floats | None,
    q: Floats,
    dq: Floats,
) -> None: ...
def smooth_slope(
    q: Floats,
    dq: Floats,
    weights: Floats,
    low: float,
    high: float,
    tube: float,
    ridge: float,
    step: float,
) -> tuple[float, float]: ...

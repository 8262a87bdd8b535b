"""Checks of sample weights in streams."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks import as_sample_weights, check_sample_weight
from .._core.arrays import Floats

# Smallest positive weight; the largest is the reciprocal. Sums over batches of more
# extreme weights could overflow or underflow.
_SMALLEST_WEIGHT = 1e-100


def unit_of(*factors: Any) -> float:
    """Return the mean of the positive products of weights, clipped to the limits."""
    weights = np.ones(1)
    for factor in factors:
        factor = np.asarray(1.0 if factor is None else factor, dtype=np.float64)
        sizes = factor.clip(_SMALLEST_WEIGHT, 1.0 / _SMALLEST_WEIGHT)
        weights = weights * np.where(factor > 0.0, sizes, 0.0)
    mean = float(weights[weights > 0.0].mean())
    return min(max(mean, _SMALLEST_WEIGHT), 1.0 / _SMALLEST_WEIGHT)


def stream_weights(sample_weight: Any, n: int) -> Floats | None:
    """Return the checked weights unscaled, or None for equal weights."""
    if sample_weight is None:
        return None
    weights = as_sample_weights(sample_weight, n)
    if not weights.any():
        return weights
    check_sample_weight(weights, n)
    check_sizes("sample_weight", weights)
    return weights


def check_sizes(name: str, weights: Floats) -> None:
    """Raise ValueError if sums of the weights might overflow or underflow."""
    sizes = weights[weights > 0.0]
    if not sizes.size:
        return
    if sizes.min() < _SMALLEST_WEIGHT or sizes.max() > 1.0 / _SMALLEST_WEIGHT:
        raise ValueError(
            f"{name} must be zero or between {_SMALLEST_WEIGHT:g} and "
            f"{1.0 / _SMALLEST_WEIGHT:g}, so that weights of batches can be added; got "
            f"weights from {sizes.min():g} to {sizes.max():g}."
        )

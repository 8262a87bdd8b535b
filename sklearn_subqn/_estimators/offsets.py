"""Warnings for models fitted with offsets, numbers that are added to scores."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .._checks.callers import user_level
from ..exceptions import MissingOffsetWarning


def remember_offset(model: Any, offset: Any) -> None:
    """Record whether a model was fitted with an offset."""
    model._fitted_with_offset = offset is not None and bool(np.asarray(offset).any())


def warn_of_missing_offset(model: Any, offset: Any) -> Any:
    """Return the offset; warn and return 0 if only the fit had one."""
    if offset is None and getattr(model, "_fitted_with_offset", False):
        name = type(model).__name__
        warnings.warn(
            f"{name} was fitted with an offset and is used here without one, as if it "
            "were 0: with exposures, for one unit of them. Give offset, or offset=0 if "
            "this is meant. Pipelines and cross-validation hand it on by metadata "
            "routing, to methods that ask for it by set_predict_request(offset=True) "
            "or set_score_request(offset=True).",
            MissingOffsetWarning,
            stacklevel=user_level(),
        )
        return 0.0
    return offset

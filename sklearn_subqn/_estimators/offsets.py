"""Warnings for models fitted with offsets, numbers that are added to scores."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .._checks.callers import user_level
from ..exceptions import MissingOffsetWarning
from .block_methods import is_collection


def remember_offset(model: Any, X: Any, offset: Any) -> None:
    """Record whether a model was fitted with an offset, unless X is in blocks."""
    if not is_collection(X):
        given = offset is not None
        model._fitted_with_offset = given and bool(np.asarray(offset).any())


def warn_of_missing_offset(model: Any, offset: Any) -> None:
    """Warn if a model that was fitted with an offset is used without one."""
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

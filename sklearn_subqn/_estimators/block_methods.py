"""Decorators for methods of estimators that take data in blocks as well as arrays."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from sklearn.base import is_regressor
from sklearn.utils import metaestimators
from sklearn.utils.validation import check_is_fitted

from .._blocks.row_blocks import ChosenRows, RowBlocks
from .offsets import warn_of_missing_offset
from .predictions import variance_power

_Method = TypeVar("_Method", bound=Callable[..., Any])


def is_collection(X: Any) -> bool:
    """Whether X is data in blocks: RowBlocks, or collections of Dask, if installed."""
    if isinstance(X, RowBlocks):
        return True
    if isinstance(X, (list, tuple)):
        return bool(X) and all(map(_is_of_dask, X))
    return _is_of_dask(X)


def _is_of_dask(X: Any) -> bool:
    package = type(X).__module__.partition(".")[0]
    return package in ("dask", "dask_expr") and hasattr(X, "__dask_graph__")


def refuse_collections(estimator: Any, X: Any) -> None:
    """Raise TypeError if X is data in blocks, before any block is read."""
    if is_collection(X):
        raise refusal(estimator, X)


def refusal(estimator: Any, X: Any) -> TypeError:
    """Return the error for an estimator that does not take data in blocks."""
    others = ""
    if hasattr(estimator, "partial_fit"):
        others = ", or the blocks, one after the other, to partial_fit"
    return TypeError(
        f"{type(estimator).__name__} does not take Dask collections and RowBlocks; got "
        f"X of type {type(X).__name__}. Give arrays, as of X.compute(), if the data "
        f"fit into memory{others}."
    )


def available_if(check: Callable[[Any], bool]) -> Callable[[_Method], _Method]:
    """Return scikit-learn's decorator, with types that keep the method's signature."""
    return cast(Callable[[_Method], _Method], metaestimators.available_if(check))


def blockwise(method: _Method) -> _Method:
    """Let a method of rows also take data in blocks; results for Dask are lazy."""

    @functools.wraps(method)
    def of_any(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(X, ChosenRows) and not is_collection(X):
            return method(self, X, *args, **kwargs)
        given = inspect.signature(method).bind(self, X, *args, **kwargs).arguments
        check_is_fitted(self)
        # Workers do not show their warnings.
        offset = warn_of_missing_offset(self, given.get("offset"))
        offsets = [] if offset is None else [offset]
        if isinstance(X, (RowBlocks, ChosenRows)):
            return X._mapped(method, self, *offsets)
        # Needs Dask.
        from .._blocks.dask_predictions import mapped

        return mapped(self, method.__name__, X, *offsets)

    return cast(_Method, of_any)


def scored(method: _Method) -> _Method:
    """Let a method that scores predictions also take data in blocks."""

    @functools.wraps(method)
    def of_any(self: Any, X: Any, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        if not is_collection(X):
            return method(self, X, y, *args, **kwargs)
        given = inspect.signature(method).bind(self, X, y, *args, **kwargs).arguments
        weights, offset = given.get("sample_weight"), given.get("offset")
        if isinstance(X, RowBlocks):
            y, weights = X._all("y", y), X._all("sample_weight", weights)
            offset = X._all("offset", offset)
            X = X._without_targets()
        if y is None:
            raise ValueError(
                "score compares predictions with y, which the blocks do not have: give "
                "y to score, as in score(X, y)."
            )
        if isinstance(X, RowBlocks):
            return method(self, X, y, weights, *([] if offset is None else [offset]))
        # Needs Dask.
        from .._blocks.dask_predictions import score

        check_is_fitted(self)
        offset = warn_of_missing_offset(self, offset)
        power = variance_power(self) or 0.0 if is_regressor(self) else None
        return score(self, X, y, weights, power, offset)

    return cast(_Method, of_any)

"""Predictions and scores of Dask collections, and functions of their blocks."""

from __future__ import annotations

from typing import Any

import dask
import numpy as np

from .._checks import check_offset
from .._solving.deviances import deviance_explained, mean_deviances

# If a package is missing, this import says what to install.
from . import dask_collections
from .blocks import without_callbacks
from .dask_client import computed


def mapped(estimator: Any, method: str, X: Any, *offset: Any) -> Any:
    """Return the lazy results of a method for the rows of a collection.

    Parameters
    ----------
    estimator : estimator instance
        Fitted estimator.
    method : str
    X : dask.array.Array, dask.dataframe.DataFrame or list of Delayed
    *offset : as y of ``opened``, or a number
    """
    X = dask_collections.joined("X", X)
    copied = without_callbacks(estimator)
    like = getattr(copied, method)(dask_collections.row_like(X), *(0.0 for _ in offset))

    def block(rows: Any, *own: Any) -> Any:
        if not rows.shape[0]:
            return np.empty((0, *like.shape[1:]), like.dtype)
        own = tuple(np.ravel(each) if np.ndim(each) else each for each in own)
        return getattr(copied, method)(rows, *own)

    meta = np.empty((0, *like.shape[1:]), like.dtype)
    if not hasattr(X, "columns") and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    offset = tuple(_beside(X, each) for each in offset)
    if hasattr(X, "columns"):
        return X.map_partitions(block, *offset, meta=meta)
    if like.ndim == 1:
        args = (block, *offset)
        return X.map_blocks(*args, dtype=like.dtype, drop_axis=1, meta=meta)
    chunks = X.chunks[0], (like.shape[1],)
    return X.map_blocks(block, *offset, dtype=like.dtype, chunks=chunks, meta=meta)


def _beside(X: Any, offset: Any) -> Any:
    """Return offsets in the blocks of X, of two axes for an array; or the number."""
    if not np.ndim(offset):
        return offset
    offset = dask_collections.aligned(
        "offset", dask_collections.joined("offset", offset), X
    )
    dask_collections.blocks_by_name({"X": X, "offset": offset})
    if hasattr(X, "columns"):
        return offset
    return getattr(offset, "values", offset)[:, np.newaxis]


def score(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    power: float | None,
    offset: Any = None,
) -> float:
    """Return the accuracy, or the explained share of the deviance.

    Parameters
    ----------
    estimator : estimator instance
        Fitted estimator.
    X, y, sample_weight, offset
        See ``opened``.
    power : float or None
        Power of the deviance, zero for squares; None for classes.
    """
    blocks = _rows_of_blocks(X, y, sample_weight, offset)
    # The estimator is sent in one message for all blocks.
    model = dask.delayed(without_callbacks(estimator), pure=False, traverse=False)

    def total(function: Any, *args: Any) -> Any:
        parts = [dask.delayed(function)(model, *args, *block) for block in blocks]
        return sum(computed(parts))

    if power is None:
        correct, weight = total(_correct)
        return float(correct / weight)
    if offset is not None:
        largest = max(computed(dask.delayed(_largest)(*each) for each in blocks))
        change = dask.delayed(_without_offset, nout=2)
        blocks = [(X, *change(model, *own, largest), 0.0) for X, *own in blocks]
    sums = total(_sums)
    means = sums[1:] / sums[0]
    unexplained, all_of_it = total(_deviances, means, power)
    if power:
        return deviance_explained(unexplained, all_of_it, means)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = 1.0 - unexplained / all_of_it
    scores = np.where(all_of_it > 0.0, scores, np.where(unexplained > 0.0, 0.0, 1.0))
    return float(scores.mean())


def rows_mapped(
    X: Any, y: Any, sample_weight: Any, offset: Any, function: Any
) -> list[Any]:
    """Return the results of a function of rows and row data for each block.

    Parameters
    ----------
    X, y, sample_weight, offset
        See ``opened``.
    function : callable
    """
    blocks = _rows_of_blocks(X, y, sample_weight, offset)
    # The function is sent in one message for all blocks.
    shared = dask.delayed(function, pure=False, traverse=False)
    return computed([shared(*block) for block in blocks])


def _rows_of_blocks(
    X: Any, y: Any, sample_weight: Any, offset: Any
) -> list[tuple[Any, ...]]:
    """Return the delayed rows, targets, weights and offsets of each block."""
    X, y = dask_collections.joined("X", X), dask_collections.joined("y", y)
    rows = {"sample_weight": sample_weight, "offset": offset}
    blocks = dask_collections.blocks_by_name(
        dask_collections.collections_of(X, y, **rows)
    )
    return list(zip(*blocks, strict=True))


def _weights(X: Any, sample_weight: Any) -> Any:
    if not np.ndim(sample_weight):
        return np.full(X.shape[0], 1.0 if sample_weight is None else sample_weight)
    return np.asarray(sample_weight, dtype=np.float64).ravel()


def _largest(X: Any, y: Any, sample_weight: Any, offset: Any) -> float:
    return float(check_offset(offset, X.shape[0]).max(initial=-np.inf))


def _without_offset(model: Any, y: Any, *given: Any) -> Any:
    if not len(y):
        return y, given[0]
    return model._without_offset(np.asarray(y), *given)


def _predicted(model: Any, X: Any, offset: Any) -> Any:
    return model.predict(X) if offset is None else model.predict(X, offset)


def _correct(model: Any, X: Any, y: Any, sample_weight: Any, offset: Any) -> Any:
    weights = _weights(X, sample_weight)
    if not len(weights):
        return np.zeros(2)
    predicted = _predicted(model, X, offset)
    correct = np.asarray(y).reshape(predicted.shape) == predicted
    correct = correct.reshape(len(weights), -1).all(axis=1)
    return np.array([weights @ correct, weights.sum()])


def _sums(model: Any, X: Any, y: Any, sample_weight: Any, offset: Any) -> Any:
    """Return the sum of the weights, and the weighted sums of the columns of y."""
    weights = _weights(X, sample_weight)
    if not len(weights):
        return np.zeros(1)
    y = np.asarray(y, dtype=np.float64).reshape(len(weights), -1)
    return np.append(weights.sum(), weights @ y)


def _deviances(
    model: Any,
    mean: Any,
    power: float,
    X: Any,
    y: Any,
    sample_weight: Any,
    offset: Any,
) -> Any:
    """Return deviances from predictions and from means, summed for each column."""
    weights = _weights(X, sample_weight)
    if not weights.sum() > 0.0:
        return np.zeros((2, len(mean)))
    y = np.asarray(y, dtype=np.float64).reshape(len(weights), -1)
    predicted = _predicted(model, X, offset).reshape(y.shape)
    means = np.broadcast_to(mean, y.shape)
    return weights.sum() * np.array(
        [mean_deviances(y, each, weights, power) for each in (predicted, means)]
    )

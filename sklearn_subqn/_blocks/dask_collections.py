"""Dask collections: fits on the workers that hold them.

Only this file and the other files named after Dask import Dask. They are imported when
the user passes a Dask collection.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import Any

import numpy as np

try:
    import dask
    import dask.array
    import dask.dataframe
    import distributed
    from dask.delayed import Delayed
except ImportError as error:
    raise ImportError(
        "Dask collections need Dask's arrays, dataframes and scheduler: "
        "pip install 'sklearn-subqn[dask]'."
    ) from error

from .._checks import exact_names
from .._core.arrays import Floats
from .._core.names import column_names
from .._core.places.places import Place
from .blocks import Collection, Source, without_callbacks
from .dask_blocks import BlocksOnWorkers, rows_together
from .dask_client import computed, current_client, waiting_for
from .folds import SplitRows
from .queries import QueriesInBlocks, sizes_between_queries
from .row_blocks import rows_at


def opened(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    offset: Any = None,
    **queries: Any,
) -> Collection:
    """Return the rows of Dask collections for a fit.

    Parameters
    ----------
    estimator : LinearEstimator
    X : dask.array.Array, dask.dataframe.DataFrame or list of Delayed
    y : dask.array.Array, dask.dataframe.Series or .DataFrame, or list of Delayed
        Arrays in memory are accepted as well, if X is an array of known size.
    sample_weight, offset : as y, a number, or None
    **queries : array-like or None
        ``qid``, ``group`` and ``query_weight`` of rankers.
    """
    if queries:
        return _with_queries(estimator, X, y, sample_weight, **queries)
    with ExitStack() as stack:
        rows = {"sample_weight": sample_weight, "offset": offset}
        client, given, names = _given(estimator, stack, X, y, **rows)
        source = _source(client, given, stack)
    return Collection(estimator, source, names)


def _with_queries(
    estimator: Any, X: Any, y: Any, sample_weight: Any, qid: Any, **others: Any
) -> QueriesInBlocks:
    """Return the rows of Dask collections for a fit of a ranker.

    Relevances, weights, queries and scores are collected in this process.

    Parameters
    ----------
    estimator : BaseRanker
    X, y, sample_weight : as of ``opened``
    qid : as y, or None
    **others : array-like or None
        ``group`` and ``query_weight``, in memory.
    """
    with ExitStack() as stack:
        client, given, _ = _given(estimator, stack, X, y)
        X = given.pop("X")
        rows = {"sample_weight": sample_weight, "qid": qid}
        for name, each in rows.items():
            rows[name] = joined(name, each)
            if hasattr(rows[name], "__dask_graph__"):
                given[name] = aligned(name, rows[name], X)
        blocks = list(map(blocks_of, given.values()))
        flat = computed([block for each in blocks for block in each])
        n = len(blocks[0])
        parts = [flat[i : i + n] for i in range(0, len(flat), n)]
        rows |= {
            name: np.concatenate(list(map(np.asarray, each)))
            for name, each in zip(given, parts, strict=True)
        }
        ranking = estimator._ranking_of(rows.pop("y"), *rows.values(), **others)
        sizes = list(map(len, parts[0]))
        wanted = sizes_between_queries(ranking[1].codes, sizes)
        of_x = _cut_anew(blocks_of(X), sizes, wanted)
        if client is not None:
            of_x = list(client.persist(of_x))
        ends = np.cumsum([0, *wanted]).tolist()
        numbers = [dask.delayed(np.arange)(a, b) for a, b in pairwise(ends)]
        cut = _in_same_blocks({"X": of_x, "y": numbers})
        source = BlocksOnWorkers(cut, of_x, client, stack.pop_all())
    return QueriesInBlocks(estimator, source, *ranking)


def _cut_anew(blocks: list[Any], sizes: list[int], wanted: list[int]) -> list[Any]:
    """Return the rows in as many delayed blocks, with other block sizes."""
    firsts, ends = (np.cumsum([0, *each]).tolist() for each in (sizes, wanted))
    cut = []
    for first, end in pairwise(ends):
        # Each part is a tuple: number of a block, first row and end of a slice of the
        # block.
        parts = [
            (i, max(first - a, 0), min(end, b) - a)
            for i, (a, b) in enumerate(pairwise(firsts))
            if max(a, first) < min(b, end)
        ] or [(0, 0, 0)]
        i, start, stop = parts[0]
        if len(parts) == 1 and stop - start == sizes[i]:
            cut.append(blocks[i])
        else:
            given = [(blocks[i], start, stop) for i, start, stop in parts]
            cut.append(dask.delayed(_rows_between)(given))
    return cut


def _rows_between(parts: list[tuple[Any, int, int]]) -> Any:
    """Return slices of several blocks, concatenated."""
    rows = [rows_at(block, slice(a, b)) for block, a, b in parts]
    return rows[0] if len(rows) == 1 else rows_together(rows)


def _like_rows(X: Any, sizes: tuple[int, ...], numbers: Any) -> Any:
    """Return an array over all rows as a collection of the kind of X."""
    if not hasattr(X, "columns"):
        return dask.array.from_array(numbers, chunks=(sizes,))
    parts = np.split(numbers, np.cumsum(sizes)[:-1])
    return dask.dataframe.from_map(_as_series, parts)


def _as_series(numbers: Any) -> Any:
    # Needs pandas, as dataframes do.
    import pandas

    return pandas.Series(numbers)


def _given(
    estimator: Any, stack: ExitStack, X: Any, y: Any, **rows: Any
) -> tuple[Any, dict[str, Any], Any]:
    """Return the client, the collections and the names of y."""
    client = current_client()
    stack.enter_context(waiting_for(client))
    X, y = joined("X", X), joined("y", y)
    estimator._check_X(row_like(X), reset=True)
    return client, collections_of(X, y, **rows), column_names(y)


def _source(client: Any, given: dict[str, Any], stack: ExitStack) -> BlocksOnWorkers:
    """Return the source of the collections' blocks, with the resources to close."""
    collections = [each for each in given.values() if np.ndim(each)]
    if client is not None:
        collections = list(client.persist(collections))
    names = (name for name, each in given.items() if np.ndim(each))
    blocks = blocks_by_name(given | dict(zip(names, collections, strict=True)))
    return BlocksOnWorkers(blocks, collections, client, stack.pop_all())


class SplitCollection(SplitRows):
    """The rows of Dask collections for a search; blocks are computed once.

    Parameters
    ----------
    X, y, sample_weight, offset : as of ``opened``
    """

    def __init__(self, X: Any, y: Any, sample_weight: Any, offset: Any) -> None:
        client = current_client()
        with waiting_for(client):
            X, y = joined("X", X), joined("y", y)
            given = list(collections_of(X, y).values())
            X, y = dask.persist(*given) if client is None else client.persist(given)
            self._blocks = blocks_of(X)
            parts = list(map(np.asarray, computed(blocks_of(y))))
            blocks_by_name({"X": X, "y": y})
            self._numbers = list(map(len, parts))
            rows = {"sample_weight": sample_weight, "offset": offset}
            for name, given in rows.items():
                each = joined(name, given)
                if hasattr(each, "__dask_graph__"):
                    parts_of = computed(blocks_of(aligned(name, each, X)))
                    each = np.concatenate(list(map(np.asarray, parts_of)))
                rows[name] = each
        super().__init__(X, y, np.concatenate(parts), *rows.values())

    def close(self) -> None:
        # Other objects of the search may still have references to the futures.
        for future in distributed.futures_of([self._X, self._given]):
            future.release()

    def _as_collection(self, numbers: Floats) -> Any:
        return _like_rows(self._X, tuple(self._numbers), numbers)

    def _sizes(self) -> Sequence[int]:
        return self._numbers

    def _results(
        self, method: Callable[..., Any], estimator: Any, *rows: list[Any]
    ) -> list[Any]:
        # The estimator is sent in one message for all blocks.
        model = dask.delayed(without_callbacks(estimator), pure=False, traverse=False)
        applied = dask.delayed(_applied_to_some)
        return computed(
            applied(model, method.__name__, *each)
            for each in zip(self._blocks, *rows, strict=True)
            if len(each[1])
        )


def _applied_to_some(model: Any, name: str, block: Any, rows: Any, *offset: Any) -> Any:
    """Return the result of a method for some rows of a block."""
    return getattr(model, name)(rows_at(block, rows), *offset)


def sequences_opened(X: Any, y: Any, sample_weight: Any, kind: type[Place]) -> Source:
    """Return the source of sequences in Dask, for a fit.

    Parameters
    ----------
    X, y : dask.bag.Bag or list of Delayed
        Sequences, and their labels; a delayed object is a list of sequences.
    sample_weight : as y, dask.array.Array or None
        One number for each sequence.
    kind : type
        Class of the actors that hold the sequences.

    Raises
    ------
    TypeError, ValueError
        If the data have other types, or other blocks.
    """
    client = current_client()
    with ExitStack() as stack:
        stack.enter_context(waiting_for(client))
        given = {"X": X, "y": y}
        if sample_weight is not None:
            given["sample_weight"] = sample_weight
        parts = [_lists(name, each) for name, each in given.items()]
        every: list[Any] = [part for of_one in parts for part in of_one]
        if client is not None:
            every = list(client.persist(every))
        ends = np.cumsum([0, *map(len, parts)]).tolist()
        own = [every[first:end] for first, end in pairwise(ends)]
        blocks = _in_same_blocks(dict(zip(given, own, strict=True)))[:3]
        return BlocksOnWorkers(blocks, every, client, stack.pop_all(), kind)


def _lists(name: str, x: Any) -> list[Any]:
    """Return delayed lists of sequences, of labels or of weights."""
    if isinstance(x, (list, tuple)):
        parts = list(x)
    elif type(x).__module__.startswith("dask.bag") or (
        name == "sample_weight" and hasattr(x, "to_delayed")
    ):
        parts = blocks_of(x)
    else:
        parts = []
    if not parts or not all(isinstance(part, Delayed) for part in parts):
        raise TypeError(
            f"{name} of sequences must be a bag of Dask, or a list of delayed lists of "
            f"sequences, got {type(x).__name__}."
        )
    return [dask.delayed(list)(part) for part in parts]


def blocks_by_name(given: dict[str, Any]) -> tuple[list[Any], ...]:
    """Return the blocks of X, y, weights and offsets, which may be numbers."""
    return _in_same_blocks(
        {k: blocks_of(x) if np.ndim(x) else x for k, x in given.items()}
    )


def _in_same_blocks(blocks: dict[str, Any]) -> tuple[list[Any], ...]:
    """Return the blocks of X, y, weights and offsets; raise if their numbers differ."""
    n = len(blocks["X"])
    found = []
    for name in ("X", "y", "sample_weight", "offset"):
        each = blocks.get(name)
        # A number is the same in all blocks.
        found.append(each if isinstance(each, list) else [each] * n)
        if len(found[-1]) != n:
            raise ValueError(
                f"X and {name} must have the same blocks of rows; X has {n} blocks, "
                f"and {name} {len(found[-1])}."
            )
    return tuple(found)


def joined(name: str, x: Any) -> Any:
    """Return a list of delayed blocks as a collection, other data unchanged.

    The first block is computed where all blocks will be, to find its type and columns.
    """
    if not isinstance(x, (list, tuple)) or not x:
        return x
    if not all(isinstance(each, Delayed) for each in x):
        if any(hasattr(each, "__dask_graph__") for each in x):
            raise TypeError(
                f"A list given as {name} must have delayed blocks, made by "
                "dask.delayed, and nothing else."
            )
        return x
    (like,) = computed([dask.delayed(_no_rows, pure=False)(x[0])])
    if hasattr(like, "index"):
        return dask.dataframe.from_delayed(list(x), meta=like)
    shape = np.nan, *like.shape[1:]
    arrays = [
        dask.array.from_delayed(each, shape, dtype=like.dtype, meta=like) for each in x
    ]
    return dask.array.concatenate(arrays, allow_unknown_chunksizes=True)


def _no_rows(block: Any) -> Any:
    return block[:0] if hasattr(block, "shape") else np.asarray(block)[:0]


def collections_of(X: Any, y: Any, **rows: Any) -> dict[str, Any]:
    """Return the collections by name, with the same blocks of complete rows.

    Weights and offsets may be numbers.
    """
    if isinstance(X, dask.array.Array) and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    given = {"X": X, "y": aligned("y", y, X)}
    if isinstance(given["y"], dask.array.Array) and given["y"].ndim > 1:
        given["y"] = given["y"].rechunk({1: -1})
    for name, each in rows.items():
        each = joined(name, each)
        given[name] = aligned(name, each, X) if np.ndim(each) else each
    return given


def row_like(X: Any) -> Any:
    """Return a row in memory with the columns of a collection."""
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim}.")
    if hasattr(X, "columns"):
        return X._meta_nonempty.iloc[:1]
    return np.zeros((1, X.shape[1]), X.dtype)


def aligned(name: str, y: Any, X: Any) -> Any:
    """Return a collection with the same blocks as X, if block sizes are known."""
    if isinstance(X, dask.array.Array):
        known = not np.isnan(X.shape[0])
        if not hasattr(y, "__dask_graph__") and known:
            y = dask.array.from_array(np.asarray(exact_names(y)), chunks=-1)
        if isinstance(y, dask.array.Array) and known and not np.isnan(y.shape[0]):
            if y.shape[0] != X.shape[0]:
                raise ValueError(
                    f"X and {name} must have the same number of rows; X has "
                    f"{X.shape[0]}, and {name} {y.shape[0]}."
                )
            return y.rechunk({0: X.chunks[0]})
    if not hasattr(y, "__dask_graph__"):
        raise TypeError(
            f"{name} must be a Dask collection in the same blocks of rows as X; got "
            f"{type(y).__name__}."
        )
    return y


def blocks_of(x: Any) -> list[Any]:
    blocks = x.to_delayed()
    return list(np.ravel(blocks)) if isinstance(blocks, np.ndarray) else list(blocks)

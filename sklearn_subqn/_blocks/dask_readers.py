"""Blocks that Dask actors read again for each use."""

from __future__ import annotations

import ctypes
import gc
import sys
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np

from .._core.places.places import Place, PlaceLost
from .._core.rows.read_design import Shelf
from .blocks import Collection, ReadBlock
from .dask_blocks import BlocksOnWorkers
from .dask_client import waiting_for
from .dask_workers import Worker, import_there, last_seen, without_workers
from .row_blocks import WITHOUT_TARGETS, Reader, RowBlocks


class PlaceOfReaders(Place):
    """Actor with the readers of the non-empty blocks of a worker.

    Parameters
    ----------
    given : tuple of list
        Readers, targets, weights and offsets; weights and offsets may be numbers.
        Targets and weights are None for blocks that return their own.
    names : list or None
        Column names of data frames.
    """

    def __init__(self, given: tuple[list[Any], ...], names: Any) -> None:
        shelf = Shelf()
        blocks = []
        for reader, of_y, of_weights, *offset in zip(*given, strict=True):
            read = partial(_rows, reader, names)
            if reader.n_rows is None:
                read()
            targets = reader.y if of_y is None else of_y
            own = reader.sample_weight
            weights = of_weights if own is None else own
            if targets is None:
                raise ValueError(WITHOUT_TARGETS)
            if reader.n_rows:
                blocks.append(ReadBlock(read, shelf, targets, weights, *offset))
        super().__init__(blocks)

    def __del__(self) -> None:
        # glibc does not return the freed memory of small vectors to the system. Dask
        # would then count the worker as almost full, and never start another task on
        # it.
        vars(self).clear()
        gc.collect()
        if sys.platform == "linux":
            trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
            if trim is not None:
                trim(0)


def _rows(reader: Reader, names: Any) -> Any:
    """Return the rows of a block."""
    try:
        return reader.read(names)
    except OSError as error:
        # An OSError would be mistaken for a lost connection to the worker.
        kind = type(error).__name__
        raise RuntimeError(f"A worker cannot read a block: {kind}: {error}") from error


class ReadersOnWorkers(BlocksOnWorkers):
    """A source of blocks that workers read for each use, each worker a share.

    Parameters
    ----------
    blocks : tuple of list
        Readers, targets, weights and offsets, one entry for each block; targets and
        weights are None where a block returns its own.
    names : list or None
    client : distributed.Client
    stack : ExitStack
        Context managers that are closed with the blocks.
    """

    holds_rows = False

    def __init__(
        self,
        blocks: tuple[list[Any], ...],
        names: Any,
        client: Any,
        stack: ExitStack,
    ) -> None:
        super().__init__(blocks, [], client, stack)
        self._names = names

    def _place(self) -> None:
        """Start actors on all workers."""
        alive = sorted(last_seen(self._client).keys() - self._lost)
        if not alive:
            raise without_workers("read")
        import_there(self._client, alive, __name__, self._lost)
        for future in self._futures:
            future.release()
        self._futures.clear()
        n = len(self._blocks[0])
        ends = np.linspace(0, n, min(len(alive), n) + 1).round().astype(int).tolist()
        for address, a, b in zip(alive, ends, ends[1:], strict=False):
            own = tuple(each[a:b] for each in self._blocks)
            to = {"workers": [address], "hash": False}
            try:
                self._futures += self._client.scatter([own], **to)
            except TimeoutError:
                raise PlaceLost(
                    f"The worker {address} takes no data. It may have paused since its "
                    "memory is full: take smaller blocks, or more workers."
                ) from None
            place = self._client.submit(
                PlaceOfReaders,
                self._futures[-1],
                self._names,
                actor=True,
                workers=[address],
                allow_other_workers=False,
                pure=False,
            )
            self._workers.append(Worker(self._client, place, address, self._lost))


def opened_by_workers(
    estimator: Any, X: RowBlocks, y: Any, sample_weight: Any, **others: Any
) -> Collection:
    """Return the rows of blocks that workers read, for a fit.

    Parameters
    ----------
    estimator : LinearEstimator
    X : RowBlocks
        Blocks with a client.
    y, sample_weight : array-like, or a number, or None
    **others : array-like or None
        ``offset``, or ``qid``, ``group`` and ``query_weight`` of rankers.
    """
    with ExitStack() as stack:
        stack.enter_context(waiting_for(X._client))
        blocks, made = X._made(estimator, y, sample_weight, **others)
        source = ReadersOnWorkers(blocks, X._names, X._client, stack.pop_all())
    return made(source)

"""Blocks of Dask collections, as actors on the workers that hold the blocks."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any

import dask
import distributed
import numpy as np
from dask.dataframe.dispatch import concat
from dask.delayed import Delayed
from scipy import sparse

from .._core.places.places import Here, Place, PlaceLost, Session
from .blocks import RowBlock
from .dask_workers import (
    CANCELLED,
    GLANCE,
    Worker,
    check_scheduler,
    import_there,
    is_silent,
    last_seen,
    place_lost,
    without_workers,
)

# A fit waits at most 30 seconds until blocks of lost workers are recomputed.
_REPLACEMENT = 30.0

# A waiting fit checks every 0.2 seconds whether blocks are available again.
_INTERVAL = 0.2

# All blocks are moved to one worker only if X takes at most an eighth of its memory,
# since the worker also needs a contiguous copy, and perhaps a copy with other units.
_SHARE_OF_MEMORY = 0.125

# Dense blocks of over 128 MiB are not moved to one worker, since products with them
# take longer than messages to two workers. docs/constants.md has the figures.
_FEW_BYTES = 2**27


class PlaceOfBlocks(Place):
    """Actor with the non-empty blocks of a worker.

    Parameters
    ----------
    *given : list
        X, y, weights and offsets, one entry for each block, which may be a number or
        None for the last two.
    is_all : bool
        Whether these are all blocks; they are then concatenated.
    """

    def __init__(self, *given: list[Any], is_all: bool = False) -> None:
        blocks = [each for each in zip(*given, strict=True) if each[0].shape[0]]
        if is_all and len(blocks) > 1 and _fit_together(blocks):
            blocks = [_together(*zip(*blocks, strict=True))]
        super().__init__(RowBlock(*each) for each in blocks)


def _fit_together(blocks: list[Any]) -> bool:
    """Whether blocks can be concatenated; errors are detected in each block."""
    kinds = {
        (tuple(getattr(X, "columns", range(X.shape[1]))), sparse.issparse(X))
        for X, *_ in blocks
        if X.ndim == 2
    }
    return len(kinds) == 1 and all(
        not np.ndim(each) or len(each) == X.shape[0]
        for X, *others in blocks
        for each in others
    )


def _together(X: Any, *others: Any) -> tuple[Any, ...]:
    """Return the rows of several blocks, concatenated."""
    return rows_together(X), *(
        np.concatenate(list(map(np.asarray, each))) if np.ndim(each[0]) else each[0]
        for each in others
    )


def rows_together(X: Any) -> Any:
    """Return several arrays, sparse matrices or data frames, concatenated."""
    if sparse.issparse(X[0]):
        return sparse.vstack(X, format="csr")
    return concat(X) if hasattr(X[0], "columns") else np.concatenate(X)


def _sizes(keys: list[Any], address: str, dask_scheduler: Any) -> tuple[int, int]:
    """Return the bytes of results, and a worker's memory limit, zero if unlimited."""
    worker = dask_scheduler.workers.get(address)
    tasks = dask_scheduler.tasks
    sizes = [tasks[key].nbytes for key in keys if key in tasks]
    return sum(sizes), (worker.memory_limit or 0) if worker else 0


class BlocksOnWorkers:
    """The blocks of collections, as a source.

    Parameters
    ----------
    blocks : tuple of list
        Blocks of X, y, weights and perhaps offsets, one entry for each block; the last
        two may be numbers or None.
    collections : list
        The collections of the blocks, kept while the blocks are needed.
    client : distributed.Client or None
        Client of the workers; without one the blocks are computed in this process, one
        after the other.
    stack : ExitStack
        Context managers that are closed with the blocks.
    kind : type
        Class of the actors, constructed from lists of these blocks.
    """

    holds_rows = True

    def __init__(
        self,
        blocks: tuple[list[Any], ...],
        collections: list[Any],
        client: Any,
        stack: ExitStack,
        kind: type[Place] = PlaceOfBlocks,
    ) -> None:
        self._kind: Any = kind
        self._blocks, self._collections = blocks, collections
        self._client, self._stack = client, stack
        self._workers: list[Worker] = []
        self._lost: set[str] = set()
        self._futures: list[Any] = []

    def open(self) -> Session:
        """Return a session whose parts are the non-empty blocks."""
        if self._client is None:
            blocks = [dask.compute(*each) for each in zip(*self._blocks, strict=True)]
            place = self._kind(*map(list, zip(*blocks, strict=True)))
            return _session([Here(place)], [place.n_parts()])
        end = time.monotonic() + _REPLACEMENT
        while True:
            try:
                return self._opened()
            except PlaceLost:
                self._release()
                # Dask does not recompute blocks of a silent worker that it still
                # expects to answer. If the worker has ended, Dask detects that a moment
                # later.
                seen = last_seen(self._client)
                known = self._lost & seen.keys()
                silent = any(is_silent(seen, address) for address in known)
                if silent or time.monotonic() > end:
                    raise
                time.sleep(_INTERVAL)

    def close(self) -> None:
        """Release all resources on workers."""
        with self._stack:
            self._release()
            # Tracebacks of errors may keep references to futures and lists.
            if self._client is not None:
                held = distributed.futures_of(self._collections)
                for future in (*self._futures, *held):
                    future.release()
            for each in (*self._blocks, self._futures, self._collections):
                each.clear()

    def _release(self) -> None:
        for worker in self._workers:
            worker.close()
        self._workers = []

    def _opened(self) -> Session:
        self._release()
        self._place()
        numbers = [worker.open() for worker in self._workers]
        used = [(w, n) for w, n in zip(self._workers, numbers, strict=True) if n]
        return _session([w for w, _ in used], [n for _, n in used])

    def _place(self) -> None:
        """Start actors on the workers that hold the blocks of X."""
        n, futures = len(self._blocks[0]), self._computed()
        computed = iter(futures)
        blocks = [
            [next(computed) if isinstance(each, Delayed) else each for each in some]
            for some in self._blocks
        ]
        where = self._client.who_has(futures[:n])
        alive = last_seen(self._client).keys() - self._lost
        own: dict[str, list[int]] = {}
        for i, future in enumerate(futures[:n]):
            holders = where.get(future.key, ())
            answering = [address for address in holders if address in alive]
            if not answering:
                raise place_lost(", ".join(holders or sorted(self._lost)))
            address = min(answering, key=lambda a: len(own.get(a, ())))
            own.setdefault(address, []).append(i)
        most = max(own, key=lambda address: len(own[address]))
        is_all = self._fits(futures[:n], most)
        if is_all:
            own = {most: list(range(n))}
        import_there(self._client, own, self._kind.__module__, self._lost)
        for address, numbers in own.items():
            place = self._client.submit(
                self._kind,
                *([some[i] for i in numbers] for some in blocks),
                is_all=is_all,
                actor=True,
                workers=[address],
                allow_other_workers=False,
                pure=False,
            )
            self._workers.append(Worker(self._client, place, address, self._lost))

    def _fits(self, X: list[Any], address: str) -> bool:
        """Whether all blocks of X should be moved to one worker."""
        keys = [future.key for future in X]
        n_bytes, memory = self._client.run_on_scheduler(_sizes, keys, address)
        if n_bytes <= _FEW_BYTES:
            return bool(n_bytes <= _SHARE_OF_MEMORY * (memory or np.inf))
        if n_bytes > _SHARE_OF_MEMORY * memory:
            return False
        kind = self._client.submit(sparse.issparse, X[0], pure=False)
        try:
            return bool(kind.result())
        except (OSError, *CANCELLED):
            # The error is ignored, since starting the actors detects lost blocks as
            # well.
            return False

    def _computed(self) -> list[Any]:
        """Return futures of the blocks after they are computed; raise their errors."""
        check_scheduler(self._client)
        before = list(self._futures)
        self._futures[:] = self._client.compute(
            [x for some in self._blocks for x in some if isinstance(x, Delayed)]
        )
        # Tracebacks of errors may keep references to the lost futures.
        for future in before:
            future.release()
        futures = self._futures
        end = time.monotonic() + _REPLACEMENT
        while True:
            try:
                distributed.wait(futures, timeout=GLANCE)
                break
            except TimeoutError:
                if last_seen(self._client):
                    end = time.monotonic() + _REPLACEMENT
                elif time.monotonic() > end:
                    raise without_workers("compute") from None
            except distributed.CancelledError:
                # If the scheduler itself has ended, this call raises a clearer error.
                last_seen(self._client)
                raise
        failed = [i for i, future in enumerate(futures) if future.status == "error"]
        if failed:
            futures[failed[0]].result()
        return futures


def _session(connections: list[Any], numbers: list[int]) -> Session:
    if not connections or not sum(numbers):
        raise ValueError("X has no rows: all of its blocks are empty.")
    return Session(connections, numbers)

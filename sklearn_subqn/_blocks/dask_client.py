"""The client of Dask that computes blocks, and waits for its results."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import dask
import distributed

from .dask_workers import check_scheduler

# A client that is being connected is looked at in such intervals of seconds.
_INTERVAL = 0.02


def current_client() -> Any:
    """Return the current client, which is the worker's in a task, or None."""
    try:
        return distributed.get_client()
    except ValueError:
        return None


@contextmanager
def waiting_for(client: Any) -> Iterator[None]:
    """Let this thread wait for results of a client, if there is one.

    In a task of a worker the thread leaves the worker's pool meanwhile, in which
    results may need its place.

    Raises
    ------
    RuntimeError
        In the event loop of the client, which has to go on.
    ConnectionError
        If the client has lost its scheduler, or does not reach it in time.
    """
    if client is None:
        yield
        return
    if client.asynchronous:
        raise RuntimeError(
            "Blocks of Dask are waited for, which is not possible in the event loop of "
            "their client. Wait in another thread, as in "
            "`await asyncio.to_thread(model.fit, X, y)`."
        )
    _connect(client)
    try:
        distributed.get_worker()
    except ValueError:
        yield
        return
    with distributed.worker_client():
        yield


def _connect(client: Any) -> None:
    """Wait for the connection of a client, which another thread may have begun."""
    limit = dask.config.get("distributed.comm.timeouts.connect")
    end = time.monotonic() + dask.utils.parse_timedelta(limit)
    while client.status in ("newly-created", "connecting") and time.monotonic() < end:
        time.sleep(_INTERVAL)
    check_scheduler(client)


def gathered(client: Any, futures: list[Any]) -> list[Any]:
    """Return the results of futures, and release the futures."""
    try:
        results: list[Any] = client.gather(futures)
        return results
    finally:
        # Tracebacks of errors may refer to these for long.
        for future in futures:
            future.release()


def computed(delayed: Iterable[Any]) -> list[Any]:
    """Return what delayed objects are, by the current client if there is one."""
    client = current_client()
    with waiting_for(client):
        if client is None:
            return list(dask.compute(*delayed))
        return gathered(client, client.compute(list(delayed)))

"""The Dask client that computes blocks, and waiting for its results."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import dask
import distributed

from .dask_workers import check_scheduler

# The state of a connecting client is checked every 0.02 seconds.
_INTERVAL = 0.02


def current_client() -> Any:
    """Return the current client (in a task the worker's client), or None."""
    try:
        return distributed.get_client()
    except ValueError:
        return None


@contextmanager
def waiting_for(client: Any) -> Iterator[None]:
    """Let this thread wait for results of a client, if there is one.

    A worker's thread leaves the thread pool while it waits, since the computation of
    the results may need its slot.

    Raises
    ------
    RuntimeError
        In the client's event loop, which must not be blocked.
    ConnectionError
        If the client has lost its scheduler, or cannot connect in time.
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
    """Wait for the connection of a client, perhaps started in another thread."""
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
        # Tracebacks of errors may keep references to the futures.
        for future in futures:
            future.release()


def computed(delayed: Iterable[Any]) -> list[Any]:
    """Return the results of delayed objects, computed by the current client if any."""
    client = current_client()
    with waiting_for(client):
        if client is None:
            return list(dask.compute(*delayed))
        return gathered(client, client.compute(list(delayed)))

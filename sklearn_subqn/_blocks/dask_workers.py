"""Messages to workers of Dask, and the limits on waiting for answers."""

from __future__ import annotations

import importlib
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import distributed

from .._core.places.places import Answer, Message, PlaceLost

# Futures raise these errors if their workers or their scheduler are gone.
CANCELLED = (
    distributed.CancelledError,
    distributed.client.FutureCancelledError,
    distributed.scheduler.KilledWorker,
)

# Waiting for an answer is interrupted every half second to check the scheduler.
GLANCE = 0.5

# After 5 seconds without an answer, the worker's last heartbeat is checked.
_PATIENCE = 5.0

# States of workers that Dask is retiring or closing.
_LEAVING = (
    distributed.Status.closing_gracefully,
    distributed.Status.closing,
    distributed.Status.closed,
)

# A worker is lost if its last heartbeat is 20 seconds old.
_SILENCE = 20.0


class Worker:
    """The connection to an actor on a Dask worker, which holds rows.

    Dask considers a worker that only has actors as idle, and adaptive clusters close
    idle workers. A task therefore runs on the worker as long as the actor exists.

    Parameters
    ----------
    client : distributed.Client
    future : distributed.Future
        Future of the actor.
    address : str
    lost : set of str
        Addresses of lost workers, extended if this worker is lost.
    """

    def __init__(self, client: Any, future: Any, address: str, lost: set[str]) -> None:
        self._client, self._future, self._address = client, future, address
        self._lost = lost
        self._place: Any = None
        self._stay = client.submit(
            _stay, future, workers=[address], allow_other_workers=False, pure=False
        )

    def open(self) -> int:
        """Wait for the actor, and return its number of blocks."""
        # Handles of actors use the current client, which may be another one.
        with self._client.as_current():
            self._place = self._awaited(self._opened)
        return int(self._awaited(self._call("n_parts")))

    def _opened(self, timeout: float) -> Any:
        try:
            return self._future.result(timeout=timeout)
        except UnboundLocalError:
            if self._future.status == "error":
                raise
            # Dask has cancelled the request at its timeout.
            raise TimeoutError from None

    def close(self) -> None:
        """Release the actor."""
        # Handles of actors are in reference cycles, which would keep the actor alive.
        if self._client.status == "running":
            self._client.cancel([self._stay, self._future])
        self._place = None

    def send(self, message: Message) -> Callable[[], Answer]:
        """Send a message, and return a function that waits for the answer."""
        call = self._call("answer", message)
        return lambda: self._awaited(call)

    def _call(self, name: str, *args: Any) -> Callable[..., Any]:
        try:
            method = getattr(self._place, name)
        except RuntimeError as error:
            # Dask raises this for actors of workers that it considers lost.
            raise _loss(self._address, self._lost) from error
        result: Callable[..., Any] = method(*args).result
        return result

    def _awaited(self, result: Callable[..., Any]) -> Any:
        return _awaited(self._client, self._address, self._lost, result)


def _loss(address: str, lost: set[str]) -> PlaceLost:
    lost.add(address)
    return place_lost(address)


def _awaited(
    client: Any, address: str, lost: set[str], result: Callable[..., Any]
) -> Any:
    """Return the answer of a worker; raise PlaceLost if it is gone or silent."""
    asked = time.monotonic()
    while True:
        try:
            return result(timeout=GLANCE)
        except TimeoutError:
            check_scheduler(client)
            if time.monotonic() - asked < _PATIENCE:
                continue
            asked = time.monotonic()
            if is_silent(last_seen(client), address):
                raise _loss(address, lost) from None
        except (OSError, *CANCELLED) as error:
            raise _loss(address, lost) from error


def import_there(
    client: Any, addresses: Iterable[str], module: str, lost: set[str]
) -> None:
    """Import a module on workers, in a thread of each worker, and wait.

    A worker that receives an object imports its module in the event loop, and sends no
    heartbeat meanwhile. On a busy machine this may take half a minute, and the worker
    would be treated as lost. Paused workers start no tasks, and are skipped.

    Raises
    ------
    PlaceLost
        If a worker is gone or silent.
    """
    paused = client.run_on_scheduler(_paused)
    imports = {
        address: client.submit(
            importlib.import_module,
            module,
            workers=[address],
            allow_other_workers=False,
            pure=False,
        )
        for address in addresses
        if address not in paused
    }
    try:
        with client.as_current():
            for address, future in imports.items():
                _awaited(client, address, lost, partial(distributed.wait, future))
    finally:
        # After a timeout coroutines of the client keep futures until the next garbage
        # collection.
        for future in imports.values():
            future.release()


def _stay(place: Any) -> None:
    """Run until the actor is released, without occupying a thread of the pool."""
    released = threading.Event()
    actor = distributed.get_worker().state.actors[place.key]
    weakref.finalize(actor, released.set)
    del actor, place
    distributed.secede()
    released.wait()


def place_lost(address: str) -> PlaceLost:
    return PlaceLost(
        f"The worker {address} was lost or does not answer. See its log. Where the "
        "cluster has closed it, as adaptive ones do with workers without tasks, keep "
        "workers by Cluster.adapt(minimum=...); where its memory was too small for its "
        "blocks, take more workers, or smaller blocks."
    )


def without_workers(use: str) -> PlaceLost:
    return PlaceLost(
        f"Dask has no worker to {use} blocks. See the logs of those that it had. Where "
        "the cluster has closed them, keep some by Cluster.adapt(minimum=...); where "
        "their memory was too small, take more workers, or smaller blocks."
    )


def last_seen(client: Any) -> dict[str, float]:
    """Return the time of the last heartbeat of each worker that is not closing.

    A worker that is being retired takes no new tasks, but still sends heartbeats.
    """
    check_scheduler(client)
    try:
        seen: dict[str, float] = client.run_on_scheduler(_times_seen)
    except Exception as error:
        raise _without_scheduler() from error
    return seen


def is_silent(seen: dict[str, float], address: str) -> bool:
    return time.time() - seen.get(address, 0.0) > _SILENCE


def check_scheduler(client: Any) -> None:
    """Raise ConnectionError if a client has lost its scheduler and all results."""
    if client.status != "running":
        raise _without_scheduler()


def _without_scheduler() -> ConnectionError:
    return ConnectionError("Dask's scheduler cannot be reached.")


def _paused(dask_scheduler: Any) -> set[str]:
    return {
        name
        for name, each in dask_scheduler.workers.items()
        if each.status == distributed.Status.paused
    }


def _times_seen(dask_scheduler: Any) -> dict[str, float]:
    return {
        name: each.last_seen
        for name, each in dask_scheduler.workers.items()
        if each.status not in _LEAVING
    }

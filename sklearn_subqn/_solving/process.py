"""Settings of a thread or process during a fit, restored however the fit ends."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import joblib
import numpy as np
from threadpoolctl import LibController, ThreadpoolController

_Function = TypeVar("_Function", bound=Callable[..., Any])


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads, from joblib's context where ``n_jobs`` is None."""
    # More threads could exhaust the system.
    return min(int(joblib.effective_n_jobs(n_jobs)), 256)


class OneBlasThread:
    """Limits BLAS to one thread while any run needs this limit.

    Parallelism comes from blocks of rows. Additional BLAS threads would compete for the
    cores, and vectors are too short for them. The limit applies to the whole process:
    the first run sets the limit, and the last run removes it. Where BLAS uses OpenMP,
    the limit applies to each thread.

    The state is a dictionary of the runs with this limit. Each action depends on the
    dictionary only, so it may be interrupted and repeated.

    Parameters
    ----------
    libraries : list of LibController, optional
        The BLAS libraries, by default all of the process.
    """

    def __init__(self, libraries: list[LibController] | None = None) -> None:
        self._libraries = libraries
        # Whether the thread count of each library applies to the calling thread only.
        self._of_threads = list(map(_is_of_thread, libraries or ()))
        self._lock = threading.RLock()
        # The thread of each run.
        self._runs: dict[object, int] = {}
        # Number of threads before the limit, by library and by thread (None: process).
        self._before: dict[tuple[LibController, int | None], int] = {}

    def begin(self, run: object) -> None:
        """Request the limit for a run, which is identified by an object."""
        self._runs[run] = threading.get_ident()
        self._apply()

    def end(self, run: object) -> None:
        """Withdraw the run's request, if there is one."""
        self._runs.pop(run, None)
        self._apply()

    def _apply(self) -> None:
        """Set or remove the limit."""
        if not (self._runs or self._before):
            return
        own = threading.get_ident()
        with self._lock:
            if self._libraries is None:
                # Libraries are searched only once, since that takes milliseconds.
                found = ThreadpoolController().select(user_api="blas")
                self._of_threads = list(map(_is_of_thread, found.lib_controllers))
                self._libraries = found.lib_controllers
            threads = list(self._runs.values())
            for blas, of_thread in zip(self._libraries, self._of_threads, strict=True):
                scope = own if of_thread else None
                limited = own in threads if scope else bool(threads)
                before = self._before.get((blas, scope))
                if limited and before is None:
                    # The old number is stored before it is changed.
                    self._before[blas, scope] = before = blas.num_threads
                    if before != 1:
                        _set_threads(blas, 1)
                elif before is not None and not limited:
                    if before != 1:
                        _set_threads(blas, before)
                    del self._before[blas, scope]

    def before_fork(self) -> None:
        """Wait until no thread searches libraries under the lock of the dynamic linker.

        A forked child would inherit the lock without the thread that releases it.
        """
        self._lock.acquire()

    def after_fork_in_parent(self) -> None:
        """Let other threads continue."""
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Remove, in the child of a fork, the runs of threads that the child lacks.

        If no runs remain, the child's next run that ends removes the limit: BLAS may
        not be called here, since another thread may have been inside BLAS at the fork.
        """
        self._lock = threading.RLock()
        own = threading.get_ident()
        self._runs = {run: of for run, of in self._runs.items() if of == own}


def _is_of_thread(blas: LibController) -> bool:
    """Whether the number of threads applies to the calling thread only.

    For OpenBLAS, threadpoolctl sets the number for the calling thread from 3.8 on, and
    earlier for the process.
    """
    layer = getattr(blas, "threading_layer", None)
    return layer == "openmp" and hasattr(blas, "clear_controlling_thread")


def _set_threads(blas: LibController, n_threads: int) -> None:
    """Set the number of threads from any thread.

    From 3.8 on, threadpoolctl otherwise accepts further changes only from the first
    thread.
    """
    clear = getattr(blas, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)
    blas.set_num_threads(n_threads)
    if clear is not None:
        clear()


_ONE_BLAS_THREAD = OneBlasThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_ONE_BLAS_THREAD.before_fork,
        after_in_parent=_ONE_BLAS_THREAD.after_fork_in_parent,
        after_in_child=_ONE_BLAS_THREAD.after_fork_in_child,
    )


def with_one_blas_thread(
    function: _Function, *, limits: bool = True, **errors: Any
) -> _Function:
    """Return the function with one BLAS thread and with NumPy's error handling set.

    Both settings are restored at the end, even after a KeyboardInterrupt, after which
    ``numpy.errstate`` may fail to restore them. With ``limits=False`` threads are not
    limited.
    """

    @functools.wraps(function)
    def isolated_function(*args: Any, **kwargs: Any) -> Any:
        run, before = object(), np.geterr()
        try:
            np.seterr(**errors)
            if limits:
                _ONE_BLAS_THREAD.begin(run)
            result = function(*args, **kwargs)
        finally:
            # The calls are repeated, since a KeyboardInterrupt may end the first
            # attempt.
            try:
                _ONE_BLAS_THREAD.end(run)
                np.seterr(**before)
            finally:
                _ONE_BLAS_THREAD.end(run)
                np.seterr(**before)
        return result

    return isolated_function  # type: ignore[return-value]


def isolated(function: _Function) -> _Function:
    """Return the function with one BLAS thread; NumPy raises FloatingPointError."""
    errors: Any = dict.fromkeys(("over", "invalid", "divide"), "raise")
    return with_one_blas_thread(function, **errors)


def ignoring_errors(function: _Function) -> _Function:
    """Return the function with NumPy's floating-point warnings off."""
    return with_one_blas_thread(function, limits=False, all="ignore")

"""What a fit sets for its thread or for the whole process, and puts back at any end."""

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
    # More threads than this are surely a mistake, and could exhaust the system.
    return min(int(joblib.effective_n_jobs(n_jobs)), 256)


class OneBlasThread:
    """BLAS uses one thread as long as any run asks for that.

    Parallelism comes from row blocks. Threads of BLAS on top of them would contend for
    the cores, and their vectors are too short to gain anything. The limit is one of
    the process: the first run to begin sets it and the last to end lifts it; but of
    each thread where BLAS uses OpenMP.

    Which runs ask for it is a dictionary, and what is done follows from that alone, so
    that all may be interrupted anywhere and done again.

    Parameters
    ----------
    libraries : list of LibController, optional
        By default all BLAS of the process.
    """

    def __init__(self, libraries: list[LibController] | None = None) -> None:
        self._libraries = libraries
        # Whether the number of threads of each is that of the calling thread.
        self._of_threads = list(map(_is_of_thread, libraries or ()))
        self._lock = threading.RLock()
        # The thread of each run.
        self._runs: dict[object, int] = {}
        # Numbers of threads before the limit, by library and by whose they are.
        self._before: dict[tuple[LibController, int | None], int] = {}

    def begin(self, run: object) -> None:
        """Ask for one thread, for a run that is known by its identity."""
        self._runs[run] = threading.get_ident()
        self._apply()

    def end(self, run: object) -> None:
        """Ask for it no longer, if the run still does."""
        self._runs.pop(run, None)
        self._apply()

    def _apply(self) -> None:
        """Set the limit or lift it."""
        if not (self._runs or self._before):
            return
        own = threading.get_ident()
        with self._lock:
            if self._libraries is None:
                # Finding them takes milliseconds, hence only once.
                found = ThreadpoolController().select(user_api="blas")
                self._of_threads = list(map(_is_of_thread, found.lib_controllers))
                self._libraries = found.lib_controllers
            threads = list(self._runs.values())
            for blas, of_thread in zip(self._libraries, self._of_threads, strict=True):
                scope = own if of_thread else None
                limited = own in threads if scope else bool(threads)
                before = self._before.get((blas, scope))
                if limited and before is None:
                    # Kept before it is changed.
                    self._before[blas, scope] = before = blas.num_threads
                    if before != 1:
                        _set_threads(blas, 1)
                elif before is not None and not limited:
                    if before != 1:
                        _set_threads(blas, before)
                    del self._before[blas, scope]

    def before_fork(self) -> None:
        """Wait until no thread looks for libraries, which the dynamic linker locks.

        A child would have the lock of a thread that it does not have.
        """
        self._lock.acquire()

    def after_fork_in_parent(self) -> None:
        """Let threads go on."""
        self._lock.release()

    def after_fork_in_child(self) -> None:
        """Forget, in the child of a fork, the runs of threads that it does not have.

        If these were all, its next run to end lifts the limit: BLAS may not be called
        here, since other threads may have been in it.
        """
        self._lock = threading.RLock()
        own = threading.get_ident()
        self._runs = {run: of for run, of in self._runs.items() if of == own}


def _is_of_thread(blas: LibController) -> bool:
    """Whether the number of threads is that of the calling thread.

    Of OpenBLAS, threadpoolctl from 3.8 on sets that, and earlier the one of all.
    """
    layer = getattr(blas, "threading_layer", None)
    return layer == "openmp" and hasattr(blas, "clear_controlling_thread")


def _set_threads(blas: LibController, n_threads: int) -> None:
    """Set the number of threads from any thread.

    threadpoolctl from 3.8 on lets only the first one that did so do it again.
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


def with_one_blas_thread(function: _Function, **errors: Any) -> _Function:
    """Make a function run with one thread of BLAS, and reactions of NumPy to errors.

    Both are restored at its end, even by a KeyboardInterrupt at any place.
    """

    @functools.wraps(function)
    def isolated_function(*args: Any, **kwargs: Any) -> Any:
        run, before = object(), np.geterr()
        try:
            np.seterr(**errors)
            _ONE_BLAS_THREAD.begin(run)
            result = function(*args, **kwargs)
        finally:
            # Twice, since an interrupt may end the first one anywhere.
            try:
                _ONE_BLAS_THREAD.end(run)
                np.seterr(**before)
            finally:
                _ONE_BLAS_THREAD.end(run)
                np.seterr(**before)
        return result

    return isolated_function  # type: ignore[return-value]


def isolated(function: _Function) -> _Function:
    """Make a function run with one thread of BLAS, and NumPy raise FloatingPointError.

    Both are restored at its end, even by a KeyboardInterrupt at any place.
    """
    errors = dict.fromkeys(("over", "invalid", "divide"), "raise")
    return with_one_blas_thread(function, **errors)


def ignoring_errors(function: _Function) -> _Function:
    """Make a function run without warnings of NumPy about overflows and the like.

    They are restored at its end, even by a KeyboardInterrupt at any place, where
    ``numpy.errstate`` may leave its own.
    """

    @functools.wraps(function)
    def without_warnings(*args: Any, **kwargs: Any) -> Any:
        before = np.geterr()
        try:
            np.seterr(all="ignore")
            result = function(*args, **kwargs)
        finally:
            try:
                np.seterr(**before)
            finally:
                np.seterr(**before)
        return result

    return without_warnings  # type: ignore[return-value]

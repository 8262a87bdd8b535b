"""What a fit shares with the rest of its process: locks, threads of BLAS, forks."""

import dis
import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from sklearn_subqn._core.lazy import cached_property
from sklearn_subqn._solving.process import OneBlasThread, ignoring_errors, isolated

_FIT = """
import os, threading, time
import numpy as np
from sklearn_subqn import BMRMClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 10))
y = np.where(X[:, 0] + rng.normal(size=3000) > 0, 1, -1)

def fit():
    return BMRMClassifier(1e-3).fit(X, y)
"""

_FORKS = (
    _FIT
    + """
ended = False

def work():
    while not ended:
        fit()

threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for _ in range(20):
    time.sleep(0.05)
    child = os.fork()
    if not child:
        fit()
        os._exit(0)
    # The threads compute all the time, however busy the machine is. A child that has
    # not fitted while they took as long as for hundreds of fits waits for a lock.
    limit = time.process_time() + 10
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.process_time() > limit:
            os.kill(child, 9)
            print("deadlock", flush=True)
            os._exit(1)
        time.sleep(0.01)
ended = True
for thread in threads:
    thread.join()
print("all children fitted")
"""
)

_SCAN = """
import os, threading, time
from sklearn_subqn._solving import process as _process

linker = threading.Lock()

class Scan:
    lib_controllers = []
    def __init__(self):
        with linker:
            time.sleep(0.5)
    def select(self, user_api):
        return self

_process.ThreadpoolController = Scan
one_thread = _process._ONE_BLAS_THREAD
one_thread._libraries = None
thread = threading.Thread(target=one_thread.begin, args=(object(),))
thread.start()
while not linker.locked():
    time.sleep(0.001)
child = os.fork()
if not child:
    one_thread.begin(object())
    os._exit(0)
limit = time.monotonic() + 120
while os.waitpid(child, os.WNOHANG) == (0, 0):
    if time.monotonic() > limit:
        os.kill(child, 9)
        print("deadlock", flush=True)
        os._exit(1)
    time.sleep(0.01)
thread.join()
print("found")
"""


def run(code):
    """Return what a program prints that runs in a process of its own."""
    # With -P it takes the installed package, not the sources of a checkout. The limit
    # is for what hangs: a minute is not enough to import it on a busy machine.
    command = [sys.executable, "-P", "-W", "ignore::DeprecationWarning", "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert not result.returncode, result.stderr + result.stdout
    return result.stdout.strip()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no forks")
def test_a_fork_waits_for_the_search_for_libraries():
    assert run(_SCAN) == "found"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no forks")
def test_a_forked_child_fits_while_threads_of_its_parent_did():
    assert run(_FORKS) == "all children fitted"


class _Slow:
    """Something whose property ends only when that of another instance has begun."""

    def __init__(self, own, others):
        self.own, self.others = own, others

    @cached_property
    def answer(self):
        """Of life."""
        self.own.set()
        return self.others.wait(timeout=60)


def test_threads_do_not_wait_for_properties_of_other_instances():
    first, second = threading.Event(), threading.Event()
    one, other = _Slow(first, second), _Slow(second, first)
    thread = threading.Thread(target=lambda: one.answer)
    thread.start()
    assert other.answer
    thread.join()
    assert one.answer


def test_cached_properties_are_computed_once_and_may_be_set():
    thing = _Slow(threading.Event(), threading.Event())
    thing.others.set()
    assert thing.answer
    thing.others.clear()
    assert thing.answer
    other = _Slow(None, None)
    other.answer = 42
    assert other.answer == 42
    assert isinstance(_Slow.answer, cached_property)
    assert _Slow.answer.__doc__ == "Of life."


def _nothing():
    pass


def _state():
    """Return the threads of each BLAS, and how NumPy takes errors."""
    blas = ThreadpoolController().select(user_api="blas").info()
    return [library["num_threads"] for library in blas], np.geterr()


class _InterruptAt:
    """A tracer that interrupts at one of the places where Python sees to signals.

    These are the beginnings of functions, what comes after a call, and jumps back.
    """

    def __init__(self, place):
        self.place = place
        self.n_places = 0
        self._last = {}

    def __call__(self, frame, event, _):
        if frame.f_code is _nothing.__code__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            last = self._last.get(frame, "")
            self._last[frame] = name
            if last.startswith("CALL") or name in ("RESUME", "JUMP_BACKWARD"):
                self.n_places += 1
                if self.n_places == self.place:
                    raise KeyboardInterrupt
        return self


@pytest.fixture
def two_blas_threads():
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        yield


def interrupted(function, place):
    """Run a function with an interrupt; return the number of places."""
    tracer, before = _InterruptAt(place), sys.gettrace()
    # Callbacks of the garbage collector have places of their own.
    gc.disable()
    sys.settrace(tracer)
    try:
        function()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
        gc.enable()
    return tracer.n_places


@pytest.mark.usefixtures("two_blas_threads")
def test_an_interrupt_anywhere_leaves_threads_of_blas_and_errors_as_they_were():
    before = _state()
    n_threads, errors = isolated(_state)()
    assert set(n_threads) <= {1}
    assert errors["over"] == "raise"
    assert ignoring_errors(_state)()[1]["over"] == "ignore"
    for function, least in ((isolated(_nothing), 20), (ignoring_errors(_nothing), 8)):
        n_places = interrupted(function, None)
        assert n_places > least
        for place in range(1, n_places + 1):
            assert interrupted(function, place) == place
            assert _state() == before


class _OpenMP(threading.local):
    """A library with a number of threads for each thread."""

    threading_layer = "openmp"
    num_threads = 2

    def clear_controlling_thread(self, *, force=False):
        pass

    def set_num_threads(self, n_threads):
        self.num_threads = n_threads


@pytest.mark.parametrize("first_to_end", [0, 1])
@pytest.mark.parametrize("libraries", [None, [_OpenMP()]], ids=["real", "OpenMP"])
@pytest.mark.usefixtures("two_blas_threads")
def test_blas_is_free_again_when_the_last_of_several_fits_ends(libraries, first_to_end):
    limit, both, seen = OneBlasThread(libraries), threading.Barrier(2), []
    if libraries is None:
        libraries = ThreadpoolController().select(user_api="blas").lib_controllers

    def work(index):
        limit.begin(index)
        both.wait(timeout=60)
        seen.append([blas.num_threads for blas in libraries])
        both.wait(timeout=60)
        if index != first_to_end:
            both.wait(timeout=60)
            seen.append([blas.num_threads for blas in libraries])
        limit.end(index)
        if index == first_to_end:
            both.wait(timeout=60)
        both.wait(timeout=60)
        assert [blas.num_threads for blas in libraries] == before

    before = [blas.num_threads for blas in libraries]
    thread = threading.Thread(target=work, args=[1])
    thread.start()
    work(0)
    thread.join()
    assert len(seen) == 3
    assert {n for numbers in seen for n in numbers} <= {1}


_INTERRUPTED = (
    _FIT
    + """
import random, signal
from sklearn.datasets import load_iris
from threadpoolctl import ThreadpoolController

X, y = X[:100], y[:100]  # so that the beginning and the end of a fit are hit
blas = ThreadpoolController().select(user_api="blas")
blas.limit(limits=2)

def state():
    return [library["num_threads"] for library in blas.info()], np.geterr()

def interrupt(*_):
    raise KeyboardInterrupt

before, source, n_interrupts = state(), random.Random(0), 0
signal.signal(signal.SIGALRM, interrupt)

def seconds():
    started = time.perf_counter()
    fit()
    return time.perf_counter() - started

# Some of them stand still while others compute.
duration = np.median([seconds() for _ in range(25)])
for _ in range(600):
    try:
        signal.setitimer(signal.ITIMER_REAL, duration * source.uniform(0.02, 1.0))
        fit()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        n_interrupts += 1
    assert state() == before, state()
print(n_interrupts)
"""
)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs alarms of POSIX")
def test_random_interrupts_leave_nothing_behind():
    assert int(run(_INTERRUPTED)) > 200

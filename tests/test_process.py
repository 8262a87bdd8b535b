"""What a fit shares with the rest of its process: locks, threads of BLAS, forks."""

import os
import subprocess
import sys
import threading

import pytest

from sklearn_subqn._core.lazy import cached_property

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
for _ in range(5):
    time.sleep(0.05)
    child = os.fork()
    if not child:
        fit()
        os._exit(0)
    limit = time.monotonic() + 15
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > limit:
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


def run(code):
    """Return what a program prints that runs in a process of its own."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code]
    result = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert not result.returncode, result.stderr + result.stdout
    return result.stdout.strip()


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
        return self.others.wait(timeout=10)


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

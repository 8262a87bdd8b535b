"""Fits that wait for a client of Dask: in tasks, at its start, in its event loop."""

import asyncio
import sys
import threading
import time
import traceback
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from sklearn_subqn import BMRMClassifier, RowBlocks, SubLBFGSLinearSVC, dual_gap

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

from sklearn_subqn._blocks import dask_client, dask_workers  # noqa: E402

N, LIMIT = 200, 60.0

pytestmark = pytest.mark.xdist_group("dask clients")


def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4))
    return X, (X[:, 0] + rng.normal(size=N) > 0.0).astype(int)


def collections():
    return tuple(da.from_array(x, chunks=50) for x in data())


def delayed():
    return tuple([dask.delayed(x[:50]), dask.delayed(x[50:])] for x in data())


def rows_of(client):
    parts = [[x[i : i + 50] for x in data()] for i in range(0, N, 50)]
    return RowBlocks([partial(tuple, part) for part in parts], client=client)


def fitted():
    return SubLBFGSLinearSVC(0.01, tol=1e-6).fit(*data())


def fit(given):
    return SubLBFGSLinearSVC(0.01, tol=1e-6).fit(*given).objective_


def fit_to_collections():
    return fit(collections())


def fit_to_delayed():
    return fit(delayed())


def fit_to_rows_read_by_workers():
    return fit([rows_of(distributed.get_client())])


def bound_of_a_model():
    return dual_gap(fitted(), *collections(), tol=None)


def score_of_a_model():
    return fitted().score(*delayed())


def predictions_of_a_model():
    return fitted().predict(rows_of(distributed.get_client()))


IN_MEMORY = {
    fit_to_collections: lambda: fitted().objective_,
    fit_to_delayed: lambda: fitted().objective_,
    fit_to_rows_read_by_workers: lambda: fitted().objective_,
    bound_of_a_model: lambda: dual_gap(fitted(), *data(), tol=None),
    score_of_a_model: lambda: fitted().score(*data()),
    predictions_of_a_model: lambda: fitted().predict(data()[0]),
}


def fails():
    X, y = collections()
    return fit([X, y[:-1]])


def fails_later():
    X, y = collections()
    BMRMClassifier(0.1, callback=lambda progress: 1 / 0).fit(X, y)


@pytest.fixture
def client(request):
    """Return a client of one worker in this process, with some threads."""
    threads = getattr(request, "param", 1)
    settings = {"dashboard_address": ":0", "processes": False}
    with (
        distributed.LocalCluster(1, threads_per_worker=threads, **settings) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


SLOW_IMPORTS = """
import sys, time

class Slow:
    def find_spec(self, name, path, target=None):
        if name == "sklearn_subqn":
            sys.meta_path.remove(self)
            time.sleep(6.0)

sys.meta_path.insert(0, Slow())
"""


def test_fresh_workers_import_longer_than_they_may_be_silent(monkeypatch, tmp_path):
    monkeypatch.setattr(dask_workers, "_PATIENCE", 0.5)
    monkeypatch.setattr(dask_workers, "_SILENCE", 3.0)
    preload = tmp_path / "slow_imports.py"
    preload.write_text(SLOW_IMPORTS)
    settings = {"dashboard_address": ":0", "preload": [str(preload)]}
    with (
        distributed.LocalCluster(1, threads_per_worker=1, **settings) as cluster,
        distributed.Client(cluster),
    ):
        assert fit_to_collections() == pytest.approx(fitted().objective_, rel=1e-5)


def test_a_task_fits_on_the_worker_that_it_occupies(client):
    (worker,) = client.cluster.workers.values()
    for task, in_memory in IN_MEMORY.items():
        result = client.submit(task, pure=False).result(timeout=LIMIT)
        assert result == pytest.approx(in_memory(), rel=1e-5)
    for task, error in ((fails, ValueError), (fails_later, ZeroDivisionError)):
        future = client.submit(task, pure=False)
        with pytest.raises(error):
            future.result(timeout=LIMIT)
    # Each thread that left the pool has come back.
    client.submit(int, pure=False).result(timeout=LIMIT)
    assert len(worker.executor._threads) == 1


@pytest.mark.parametrize("client", [3], indirect=True)
def test_first_fits_of_a_worker_begin_while_its_client_connects(client, monkeypatch):
    connected = distributed.Client._ensure_connected

    async def connected_late(self, timeout=None):
        await asyncio.sleep(0.5)
        return await connected(self, timeout)

    monkeypatch.setattr(distributed.Client, "_ensure_connected", connected_late)
    tasks = [client.submit(fit_to_collections, pure=False) for _ in range(3)]
    for task in tasks:
        assert task.result(timeout=LIMIT) == pytest.approx(fitted().objective_)


def to_close(dask_scheduler):
    """Return the workers that an adaptive cluster would close, and all results."""
    return dask_scheduler.workers_to_close(n=1), list(dask_scheduler.tasks)


def threads_that_stay():
    """Return the threads of this process that are in such a task."""
    frames = sys._current_frames()
    return [
        thread
        for thread in threading.enumerate()
        for frame, _ in traceback.walk_stack(frames.get(thread.ident))
        if frame.f_code is dask_workers._stay.__code__
    ]


@pytest.mark.parametrize("of_files", [False, True])
def test_clusters_keep_workers_with_places(client, of_files):
    (worker,) = client.cluster.workers.values()
    closed, stays = [], set()

    def look(progress):
        end = time.monotonic() + LIMIT / 4
        # The scheduler hears a moment later what the worker does.
        while (would := client.run_on_scheduler(to_close)[0]) and not closed:
            if time.monotonic() > end:
                closed.extend(would)
        stays.update(threads_that_stay())

    model = SubLBFGSLinearSVC(0.01, tol=1e-6, callback=look)
    with client.as_current():
        model.fit(*([rows_of(client)] if of_files else collections()))
    assert not closed
    assert model.objective_ == pytest.approx(fitted().objective_)
    end = time.monotonic() + LIMIT
    while client.run_on_scheduler(to_close) != ([worker.address], []):
        assert time.monotonic() < end, "tasks of the fit are left"
    # The thread of the task that stayed ends, too.
    (stay,) = stays
    stay.join(timeout=LIMIT)
    assert not stay.is_alive()


def test_a_client_that_does_not_connect_is_waited_for_with_a_limit():
    client = SimpleNamespace(asynchronous=False, status="connecting")
    begin = time.monotonic()
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "200 ms"}),
        pytest.raises(ConnectionError, match="scheduler cannot be reached"),
        dask_client.waiting_for(client),
    ):
        raise AssertionError("the client is not connected")
    assert 0.2 <= time.monotonic() - begin < LIMIT


def test_an_event_loop_is_told_to_wait_in_a_thread():
    async def all_ways():
        settings = {"asynchronous": True, "dashboard_address": ":0"}
        async with (
            distributed.LocalCluster(1, processes=False, **settings) as cluster,
            distributed.Client(cluster, asynchronous=True) as client,
        ):
            for way, in_memory in IN_MEMORY.items():
                with pytest.raises(RuntimeError, match=r"await asyncio\.to_thread"):
                    way()
                result = await asyncio.to_thread(way)
                assert result == pytest.approx(in_memory(), rel=1e-5)
            # What is lazy needs no thread.
            lazy = fitted().predict(collections()[0])
            predicted = await client.compute(lazy)
            assert (predicted == fitted().predict(data()[0])).all()

    asyncio.run(asyncio.wait_for(all_ways(), LIMIT))

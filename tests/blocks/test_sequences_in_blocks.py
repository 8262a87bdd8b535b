"""Sequences of Dask in ``fit``, here and on two workers."""

from __future__ import annotations

import os
import pickle
import signal
from itertools import cycle, pairwise

import numpy as np
import pytest
from _door import share_among_workers
from _sequences import random_sequences

from sklearn_subqn import LinearChainCRF
from sklearn_subqn._core.places import places

dask = pytest.importorskip("dask")
bag = pytest.importorskip("dask.bag")
distributed = pytest.importorskip("distributed")

# One cluster serves them all.
pytestmark = pytest.mark.xdist_group("dask")

TOL = 1e-9

# What has not happened after this many seconds never does, however busy the machine is.
LIMIT = 300.0

# Two parts are empty, and one has a single sequence.
ENDS = [0, 7, 7, 50, 51, 80, 80]


def data():
    X, y = random_sequences(np.random.default_rng(0), n=80)
    weights = np.random.default_rng(1).integers(0, 3, size=80).astype(float)
    # A part without any weight.
    weights[50] = 0.0
    return X, y, weights


def part(content, pid):
    """Return some of the sequences, but not in the process of the test."""
    assert os.getpid() != pid
    return pickle.loads(content)


def parts(*given, client=None):
    """Return lists of delayed parts, which both workers of a client are to hold."""
    pid = None if client is None else os.getpid()
    workers = [None] if client is None else list(client.scheduler_info()["workers"])
    lists = []
    for x in given:
        lists.append([])
        for (first, end), worker in zip(pairwise(ENDS), cycle(workers), strict=False):
            # Others take the parts of a worker that is lost.
            where = {"workers": [worker], "allow_other_workers": True} if worker else {}
            with dask.annotate(**where):
                delayed = dask.delayed(part)(pickle.dumps(x[first:end]), pid)
            lists[-1].append(delayed)
    return lists


def sorted_by_labels(X, y, weights):
    order = sorted(range(len(X)), key=lambda i: y[i])
    return [X[i] for i in order], [y[i] for i in order], weights[order]


def assert_same_fit(model, other, X):
    assert model.objective_ == pytest.approx(other.objective_, rel=1e-8)
    assert model.dual_gap_ <= TOL * model.objective_
    assert model.alpha_ == pytest.approx(other.alpha_, rel=1e-12)
    assert model.classes_.tolist() == other.classes_.tolist()
    assert set(model.attributes_) >= {name for name, _ in other.state_features_}
    assert model.predict(X) == other.predict(X)


@pytest.mark.parametrize("solver", ["auto", "lbfgs"])
@pytest.mark.parametrize("order", [lambda *x: x, sorted_by_labels])
def test_parts_here_agree_with_fits_in_memory(solver, order):
    X, y, weights = order(*data())
    for given in ([X, y], [X, y, weights]):
        whole = LinearChainCRF(tol=TOL).fit(*given)
        model = LinearChainCRF(tol=TOL, solver=solver).fit(*parts(*given))
        assert_same_fit(model, whole, X)
        # The stream goes on as after a fit in memory.
        model.partial_fit(X[:20], y[:20])
        whole.partial_fit(X[:20], y[:20])
        for one, other in zip(
            model.predict_marginals(X), whole.predict_marginals(X), strict=True
        ):
            for token, expected in zip(one, other, strict=True):
                # Weights of a gap of 1e-9 differ by up to 1e-3.
                assert token == pytest.approx(expected, abs=1e-4)


def test_bags_and_matrices():
    X, y, _ = data()
    whole = LinearChainCRF(tol=TOL).fit(X, y)
    bags = (bag.from_sequence(x, npartitions=5).map(lambda one: one) for x in (X, y))
    assert_same_fit(LinearChainCRF(tol=TOL).fit(*bags), whole, X)
    rng = np.random.default_rng(2)
    X = [rng.normal(size=(len(labels), 3)) for labels in y]
    for x, labels in zip(X, y, strict=True):
        x[:, 0] += [label == "a" for label in labels]
    whole = LinearChainCRF(0.01, tol=TOL).fit(X, y)
    bags = (bag.from_sequence(x, npartitions=4) for x in (X, y))
    model = LinearChainCRF(0.01, tol=TOL).fit(*bags)
    assert model.objective_ == pytest.approx(whole.objective_, rel=1e-8)
    assert model.predict(X) == whole.predict(X)


def test_warm_starts_know_attributes_by_name():
    X, y, _ = data()
    cold = LinearChainCRF(tol=1e-6).fit(*parts(X, y))
    model = LinearChainCRF(tol=1e-6, warm_start=True).fit(X[::-1], y[::-1])
    model.fit(*parts(X, y))
    assert model.n_iter_ < 0.5 * cold.n_iter_


def never(*args):
    raise AssertionError("data have been computed")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"solver": "dual-ascent"}, "solver='dual-ascent' is not supported"),
        ({"loss": "hinge"}, "loss='hinge' is not supported"),
        ({"l1_ratio": 0.5}, "l1_ratio=0.5 is not supported"),
        ({"min_freq": 2}, "min_freq=2 is not supported"),
        ({"class_weight": "balanced"}, "class_weight='balanced' is not supported"),
    ],
)
def test_what_parts_do_not_have_is_refused_before_data_move(options, match):
    given = [[dask.delayed(never)(i) for i in range(2)] for _ in range(2)]
    with pytest.raises(ValueError, match=match):
        LinearChainCRF(**options).fit(*given)
    with pytest.raises(ValueError, match="lengths"):
        LinearChainCRF().fit(*given, lengths=[3])
    with pytest.raises(TypeError, match="y of sequences must be a bag"):
        LinearChainCRF().fit(given[0], [["a"], ["b"]])
    with pytest.raises(ValueError, match="must have the same blocks"):
        LinearChainCRF().fit(given[0], given[1][:1])
    X, y, _ = data()
    model = LinearChainCRF().fit(X, y)
    for predict in (model.predict, model.predict_marginals):
        with pytest.raises(TypeError, match="does not take Dask collections"):
            predict(given[0])
    with pytest.raises(TypeError, match="to partial_fit"):
        model.partial_fit(*given)


def test_parts_that_do_not_fit_together():
    X, y, weights = data()
    with pytest.raises(ValueError, match="same numbers of sequences"):
        LinearChainCRF().fit(*parts(X, y), [dask.delayed([1.0])] * 6)
    with pytest.raises(ValueError, match="all are zero"):
        LinearChainCRF().fit(*parts(X, y, 0.0 * weights))
    one = [["a"] * len(labels) for labels in y]
    with pytest.raises(ValueError, match="only one class: 'a'"):
        LinearChainCRF().fit(*parts(X, one))
    matrices = [np.ones((len(labels), 2)) for labels in y]
    with pytest.raises(ValueError, match="same kind of tokens"):
        LinearChainCRF().fit(*parts([*X[:50], *matrices[50:]], y))
    with pytest.raises(ValueError, match="no rows"):
        LinearChainCRF().fit([dask.delayed([])], [dask.delayed([])])


@pytest.fixture(scope="module")
def client():
    settings = {"dashboard_address": ":0", "threads_per_worker": 1}
    lost = {"distributed.deploy.lost-worker-timeout": LIMIT}
    with (
        dask.config.set(lost),
        distributed.LocalCluster(n_workers=2, **settings) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def spread(monkeypatch):
    """Let parts stay on their workers, however small they are."""
    share_among_workers(monkeypatch)


def test_workers_agree_with_fits_in_memory(client, spread, monkeypatch):
    sessions = []
    init = places.Session.__init__

    def remembered(self, *args, **kwargs):
        init(self, *args, **kwargs)
        sessions.append(self)

    monkeypatch.setattr(places.Session, "__init__", remembered)
    X, y, weights = sorted_by_labels(*data())
    whole = LinearChainCRF(0.1, tol=TOL).fit(X, y, weights)
    with client.as_current():
        model = LinearChainCRF(0.1, tol=TOL).fit(*parts(X, y, weights, client=client))
    assert_same_fit(model, whole, X)
    (session,) = sessions
    assert session.n_places == 2
    # A trial step takes a message for its value, and perhaps some for its gradient. By
    # the rounding of some kernels there are two of them in many iterations.
    assert session.n_messages <= 16 * model.n_iter_ + 20


@pytest.mark.parametrize("at", [1, pytest.param(6, marks=pytest.mark.slow)])
def test_a_killed_worker_is_replaced(client, spread, at):
    X, y, _ = data()
    killed = []
    whole = LinearChainCRF(0.1, tol=TOL).fit(X, y)

    def kill(progress):
        if progress.n_iter == at and not killed:
            address = next(
                address
                for address, keys in client.has_what().items()
                if any("PlaceOf" in str(key) for key in keys)
            )
            killed.append(client.run(os.getpid, workers=[address])[address])
            os.kill(killed[0], signal.SIGKILL)

    client.cluster.scale(2)
    client.wait_for_workers(2, timeout=LIMIT)
    model = LinearChainCRF(0.1, tol=TOL, callback=kill)
    with client.as_current():
        model.fit(*parts(X, y, client=client))
    assert killed
    assert_same_fit(model, whole, X)

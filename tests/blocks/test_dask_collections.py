"""Dask collections in ``fit``, predictions and scores, here and on two workers."""

from __future__ import annotations

import os
import pickle
import re
import signal
import sys
import threading
import time
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from _door import Design, share_among_workers
from _same import assert_same_predictions
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import KFold

from sklearn_subqn import (
    BMRMClassifier,
    BMRMRanker,
    BMRMRankerCV,
    BMRMRegressor,
    BMRMRegressorCV,
    L1LogisticOWLQN,
    LinearChainCRF,
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
    OnlineLBFGSClassifier,
    OnlineLBFGSRegressor,
    RowBlocks,
    SubLBFGSLinearSVC,
    SubLBFGSLinearSVCCV,
    dual_gap,
)
from sklearn_subqn._blocks.blocks import Collection
from sklearn_subqn._blocks.run_there import Abandoned, RunHere
from sklearn_subqn._core.places import places
from sklearn_subqn.exceptions import MissingOffsetWarning

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")
_dask_blocks = pytest.importorskip("sklearn_subqn._blocks.dask_blocks")
_dask_workers = pytest.importorskip("sklearn_subqn._blocks.dask_workers")

# One cluster serves them all.
pytestmark = pytest.mark.xdist_group("dask")

N, D = 260, 5
TOL = 1e-9

# What has not happened after this many seconds never does, however busy the machine is.
LIMIT = 300.0

CLASSIFIERS = {
    "hinge": SubLBFGSLinearSVC(0.01, tol=TOL),
    "squared hinge": SubLBFGSLinearSVC(0.01, loss="squared_hinge", tol=TOL),
    "balanced": SubLBFGSLinearSVC(0.01, tol=TOL, class_weight="balanced"),
    "dict": SubLBFGSLinearSVC(
        0.01, tol=TOL, class_weight={"a": 1.0, "b": 2.0, "c": 0.0}
    ),
    "no intercept": SubLBFGSLinearSVC(0.01, tol=TOL, fit_intercept=False),
    "factors": SubLBFGSLinearSVC(0.1, tol=TOL, penalty_factor=np.arange(1.0, 6.0)),
    "L1 logistic": L1LogisticOWLQN(1e-3, tol=TOL),
    "OWL-QN": L1LogisticOWLQN(0.01, solver="owlqn", tol=1e-5),
    "multiclass": MulticlassHingeClassifier(0.01, tol=TOL),
    "log loss": BMRMClassifier(1e-3, tol=TOL),
    "modified Huber": BMRMClassifier(
        0.01, loss="modified_huber", penalty="l1", tol=TOL
    ),
    "L1 hinge": BMRMClassifier(0.02, loss="hinge", penalty="l1", tol=1e-4),
}
REGRESSORS = {
    "squares": BMRMRegressor(tol=TOL),
    "absolute": BMRMRegressor(loss="absolute_error", tol=TOL),
    "quantile": BMRMRegressor(loss="quantile", quantile=0.8, tol=TOL),
    "huber": BMRMRegressor(loss="huber", tol=TOL),
    "tube": BMRMRegressor(0.01, loss="epsilon_insensitive", epsilon=0.3, tol=TOL),
    "poisson": BMRMRegressor(loss="poisson", tol=TOL),
    "two columns": BMRMRegressor(loss="absolute_error", tol=TOL),
}


def data(n_classes=2, n=N):
    """Return samples, string labels and weights; a column is far from zero."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, D)) * [1.0, 1.0, 1.0, 3.0, 0.1]
    scores = X[:, :n_classes] + 0.7 * rng.normal(size=(n, n_classes))
    X[:, 2] += 1000.0
    y = np.array(list("abc"))[scores.argmax(axis=1)]
    return X, y, rng.random(n) * (rng.random(n) < 0.9)


def numbers(name, n=N):
    X, _, weights = data(n=n)
    rng = np.random.default_rng(8)
    y = X[:, 0] - X[:, 1] + rng.standard_t(3, size=n)
    if name == "poisson":
        y = np.floor(np.exp(np.clip(y, -2.0, 2.0)))
    if name == "two columns":
        y = np.column_stack([y, X[:, 3] + rng.normal(size=n)])
    return X, y, weights


def cuts(n_blocks, n=N):
    """Return sizes of uneven blocks, among them an empty one if they are several."""
    if n_blocks == 1:
        return (n,)
    ends = np.sort(np.random.default_rng(n_blocks).integers(0, n, n_blocks - 1))
    ends[1] = ends[0]
    return tuple(np.diff([0, *ends, n]).tolist())


def blocks(n_blocks, *arrays):
    """Return Dask arrays in blocks of such sizes."""
    sizes = cuts(n_blocks, len(arrays[0]))
    return [
        da.from_array(x, chunks=(sizes, *((size,) for size in x.shape[1:])))
        for x in arrays
    ]


@contextmanager
def sessions(monkeypatch):
    """Yield a list of the sessions that are opened, as those of workers are."""
    seen = []
    init = places.Session.__init__

    def remembered(self, *args):
        init(self, *args)
        seen.append(self)

    monkeypatch.setattr(places.Session, "__init__", remembered)
    yield seen


def attributes(model):
    names = ("coef_", "intercept_", "alpha_", "penalty_factor_", "objective_")
    return {name: np.array(getattr(model, name)) for name in names}


def assert_same_optimum(model, X, y, weights, dask_data, tol=None):
    """Fit to data in memory and in blocks, which must have the same optimum."""
    one = attributes(model.fit(X, y, weights))
    gap = np.array(model.dual_gap_)
    model.fit(*dask_data)
    other = attributes(model)
    tol = max(10.0 * model.tol, 1e-8)
    assert_allclose(other["alpha_"], one["alpha_"], rtol=1e-12)
    assert_allclose(other["penalty_factor_"], one["penalty_factor_"], rtol=1e-9)
    assert_allclose(other["objective_"], one["objective_"], rtol=tol)
    # Each lower bound holds for the other value.
    rounding = 1e-13 * np.abs(one["objective_"])
    assert np.all(other["objective_"] - model.dual_gap_ <= one["objective_"] + rounding)
    assert np.all(one["objective_"] - gap <= other["objective_"] + rounding)
    assert np.all(model.dual_gap_ <= model.tol * np.abs(other["objective_"]))
    assert other["coef_"].shape == one["coef_"].shape


@pytest.mark.parametrize(
    ("name", "n_blocks"),
    [
        *((name, 7) for name in CLASSIFIERS),
        *((name, n) for name in ("hinge", "L1 logistic") for n in (1, 64)),
    ],
)
def test_classifiers_agree_with_fits_in_memory(name, n_blocks):
    X, y, weights = data(3 if name in ("dict", "multiclass") else 2)
    if n_blocks == 7:
        # Blocks of one class, and others without it.
        order = np.argsort(y, kind="stable")
        X, y, weights = X[order], y[order], weights[order]
    given = blocks(n_blocks, X, y, weights)
    assert_same_optimum(CLASSIFIERS[name], X, y, weights, given)


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors_agree_with_fits_in_memory(name):
    X, y, weights = numbers(name)
    given = blocks(7, X, y, weights)
    assert_same_optimum(REGRESSORS[name], X, y, weights, given)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sparse_blocks(dtype):
    X, y, _ = data(n=400)
    X[:, 2] -= 1000.0
    X = (X * (np.abs(X) > 0.5)).astype(dtype)
    dX, dy = blocks(7, X, y)
    model = SubLBFGSLinearSVC(0.01, tol=1e-6).fit(sparse.csr_array(X), y)
    expected, gap = model.objective_, model.dual_gap_
    model.fit(dX.map_blocks(sparse.csr_matrix), dy)
    assert model.coef_.dtype == dtype
    assert abs(model.objective_ - expected) <= gap + model.dual_gap_ + 1e-6 * expected
    scores = model.decision_function(dX.map_blocks(sparse.csr_matrix)).compute()
    assert_allclose(scores, model.decision_function(sparse.csr_array(X)), rtol=1e-5)


def test_dataframes():
    X, y, weights = data()
    frame = pd.DataFrame(X, columns=list("vwxyz"))
    frame["label"], frame["weight"] = y, weights
    collection = dd.from_pandas(frame, npartitions=3)
    dX = collection[list("vwxyz")]
    model = L1LogisticOWLQN(1e-3, tol=TOL)
    dask_data = dX, collection["label"], collection["weight"]
    assert_same_optimum(model, frame[list("vwxyz")], y, weights, dask_data)
    assert_array_equal(model.feature_names_in_, list("vwxyz"))
    model.fit(dX, collection[["label"]].label)
    expected = model.predict_proba(frame[list("vwxyz")])
    assert_same_predictions(model.predict_proba(dX).compute(), expected)
    assert_same_predictions(
        model.predict(dX).compute(), model.predict(frame[dX.columns])
    )
    score = model.score(frame[list("vwxyz")], y)
    assert model.score(dX, collection["label"]) == pytest.approx(score)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, pd.DataFrame])
def test_lists_of_delayed_blocks(kind):
    X, y, weights = data()
    X[:, 2] -= 1000.0
    ends = np.cumsum([0, *cuts(7)])
    rows = [
        [dask.delayed(make)(x[a:b]) for a, b in pairwise(ends)]
        for make, x in ((kind, X), (np.asarray, y), (pd.Series, weights))
    ]
    model = BMRMClassifier(1e-3, tol=TOL)
    assert_same_optimum(model, kind(X), y, weights, rows)
    result = model.predict_proba(rows[0])
    assert isinstance(result, da.Array)
    assert_allclose(result.compute(), model.predict_proba(kind(X)), rtol=1e-12)
    score = model.score(kind(X), y, weights)
    assert model.score(*rows) == pytest.approx(score)
    with pytest.raises(TypeError, match="sample_weight must have delayed blocks"):
        model.fit(*rows[:2], [*rows[2][:-1], da.ones(3)])


def test_samples_of_tall_data_come_in_limited_size():
    X, y, _ = data(n=20_000)
    model = SubLBFGSLinearSVC(1e-3)
    expected = model.fit(X, y).objective_
    model.fit(*blocks(7, X, y))
    assert "sample" in model.plan_
    assert abs(model.objective_ - expected) <= 1e-3 * expected
    # Not with the rows that it is of.
    design = Design(np.zeros((10_000, 20)))
    assert len(pickle.dumps(design.rows(np.arange(3)))) < 4000


def test_predictions_are_lazy_and_keep_blocks():
    X, y, weights = data()
    model = BMRMClassifier(0.01).fit(X, y)
    (dX,) = blocks(7, X)
    for method in ("predict", "decision_function", "predict_proba"):
        result = getattr(model, method)(dX)
        assert isinstance(result, da.Array)
        assert result.chunks[0] == dX.chunks[0]
        expected = getattr(model, method)(X)
        assert result.dtype == expected.dtype
        assert result.shape == expected.shape
        assert_same_predictions(result.compute(), expected)
        assert_same_predictions(getattr(model, method)(dX.rechunk({1: 2})), expected)
    given = blocks(7, X, y, weights)
    assert model.score(*given) == pytest.approx(model.score(X, y, weights))


@pytest.mark.parametrize("name", REGRESSORS)
def test_scores_of_regressors(name):
    X, y, weights = numbers(name)
    model = REGRESSORS[name].fit(X, y)
    dX, dy, dweights = blocks(7, X, y, weights)
    assert_same_predictions(model.predict(dX).compute(), model.predict(X))
    assert model.score(dX, dy) == pytest.approx(model.score(X, y))
    expected = model.score(X, y, weights)
    assert model.score(dX, dy, dweights) == pytest.approx(expected)


def streams():
    """Return estimators that have learned from the blocks of streams, with targets."""
    X, y, _ = data()
    model = OnlineLBFGSClassifier()
    for rows in np.array_split(np.arange(N), 4):
        model.partial_fit(X[rows], y[rows], classes=np.unique(y))
    # Of columns that few rows of a batch have, coefficients are lazy.
    lazy = OnlineLBFGSRegressor(loss="poisson", fit_intercept=False)
    wide = sparse.random(N, 5000, 2e-3, format="csr", random_state=0)
    counts = np.random.default_rng(0).poisson(2.0, N)
    for rows in np.array_split(np.arange(N), 4):
        lazy.partial_fit(wide[rows], counts[rows])
    return [(model, X, y), (lazy, wide, counts)]


@pytest.mark.parametrize("number", [0, 1])
def test_streams_predict_on_blocks(number):
    model, X, y = streams()[number]
    dense = X.toarray() if sparse.issparse(X) else X
    dX, dy = blocks(7, dense, y)
    for method in ("predict", "decision_function", "predict_proba"):
        if hasattr(model, method):
            result = getattr(model, method)(dX)
            assert isinstance(result, da.Array)
            expected = getattr(model, method)(dense)
            assert_same_predictions(result.compute(), expected)
    assert model.score(dX, dy) == pytest.approx(model.score(X, y))


def test_bounds_of_models_of_any_trainer():
    X, y, weights = data()
    X[:, 2] -= 1000.0
    dX, dy, dweights = blocks(7, X, y, weights)
    sgd = SGDClassifier(alpha=0.01, max_iter=5, tol=None, random_state=0).fit(X, y)
    for tol in (1e-9, None):
        expected, objective = dual_gap(sgd, X, y, tol=tol, return_objective=True)
        assert dual_gap(sgd, dX, dy, tol=tol) == pytest.approx(
            expected, abs=2e-9 * objective
        )
    with pytest.raises(TypeError, match="Give an estimator of this package"):
        dual_gap(sgd, dX, dy, dweights)
    own = BMRMClassifier(0.01, loss="hinge")
    found = dual_gap(sgd, dX, dy, dweights, estimator=own, tol=1e-9)
    expected = dual_gap(sgd, X, y, weights, estimator=own, tol=1e-9)
    assert found == pytest.approx(expected, abs=2e-9 * objective)


def test_fitted_models_beside_collections():
    # Dask copies data classes by their fields, and so without fitted attributes.
    X, y = np.arange(6.0)[:, None], np.arange(6) % 2
    model = L1LogisticOWLQN(callback=lambda progress: False).fit(X, y)
    found, total = dask.compute({"model": model}, dask.delayed(sum)([1, 2]))
    assert found["model"] is model
    assert total == 3
    score = dask.delayed(lambda own: own.score(X, y), pure=True)
    assert score(model).compute() == model.score(X, y)


def test_starts_callbacks_and_reports(capsys):
    X, y, _ = data()
    given = blocks(7, X, y)
    seen = []
    model = SubLBFGSLinearSVC(
        0.01, solver="sublbfgs", warm_start=True, verbose=1, callback=seen.append
    )
    model.fit(*given)
    assert "SubLBFGSLinearSVC: iteration    0" in capsys.readouterr().out
    n_first, objective = len(seen), model.objective_
    assert n_first > 2
    model.fit(*given)
    assert seen[n_first].objective == pytest.approx(objective, rel=1e-12)
    # A dual point of data in memory is of no use for blocks.
    model.fit(X, y).fit(*given)
    start = model.coef_, model.intercept_
    cold = SubLBFGSLinearSVC(0.01, solver="sublbfgs", callback=seen.append)
    del seen[:]
    cold.fit(*given, coef_init=start[0], intercept_init=start[1])
    assert seen[0].objective == pytest.approx(model.objective_, rel=1e-12)
    stopped = SubLBFGSLinearSVC(0.01, solver="sublbfgs", callback=lambda progress: True)
    assert stopped.fit(*given).n_iter_ == 1


@pytest.mark.parametrize(
    ("model", "most"),
    [
        (SubLBFGSLinearSVC(0.01, solver="alm", tol=1e-7), 25),
        (BMRMClassifier(0.01, solver="lbfgs", tol=1e-7), 25),
        (L1LogisticOWLQN(0.01, solver="owlqn", tol=1e-5), 20),
        (BMRMClassifier(0.01, solver="newton-cg", tol=1e-8), 20),
        (SubLBFGSLinearSVC(0.01, solver="sublbfgs", tol=1e-4), 35),
    ],
)
def test_messages_and_bytes_of_iterations(monkeypatch, model, most):
    """Messages of an iteration are few, and no more bytes where rows are more."""
    # Of searches by kinks, and of all else.
    n_bytes = [0, 0]
    send = places.Here.send

    def counted(self, message):
        wait = send(self, message)
        search = {"some", "passed"} & {call.name for call in message.calls}
        n_sent = len(pickle.dumps(message)) + len(pickle.dumps(wait()))
        n_bytes[0 if search else 1] += n_sent
        return wait

    monkeypatch.setattr(places.Here, "send", counted)
    sizes = []
    for n in (N, 4 * N):
        X, y, _ = data(n=n)
        counts = []
        with sessions(monkeypatch) as seen:
            copied = clone(model).set_params(
                callback=lambda progress, counts=counts, seen=seen: counts.append(
                    (seen[-1].n_messages, *n_bytes)
                )
            )
            copied.fit(*blocks(7, X, y))
        n_messages, searched, sent = np.diff(counts, axis=0).T
        assert len(n_messages) >= 3
        assert np.median(n_messages) <= most
        assert searched.max() <= 100_000
        assert searched.any() == (model.solver == "sublbfgs")
        sizes.append(np.median(sent))
    assert sizes[1] <= 1.2 * sizes[0]


@pytest.mark.parametrize(
    "model",
    [
        SubLBFGSLinearSVC(0.001, solver="alm", tol=1e-7),
        BMRMClassifier(0.001, solver="lbfgs", tol=1e-8),
        BMRMClassifier(0.001, solver="newton-cg", tol=1e-9),
        BMRMClassifier(0.01, loss="hinge", solver="bmrm", tol=1e-3),
    ],
)
def test_bytes_of_iterations(monkeypatch, model):
    """A place sends and gets half a matrix and four vectors of parameters at most."""
    d = 100
    n_bytes = []
    send = places.Here.send

    def counted(self, message):
        wait = send(self, message)
        # Numbers; names and types of calls take about 1 kB of a message.
        arrays = []
        for each in (message, wait()):
            pickle.dumps(each, 5, buffer_callback=arrays.append)
        n_bytes.append(sum(array.raw().nbytes for array in arrays))
        return wait

    monkeypatch.setattr(places.Here, "send", counted)
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2000, d))
    y = np.where(X[:, :9].sum(axis=1) + 2.0 * rng.normal(size=2000) > 0.0, 1, -1)
    ends = []
    with sessions(monkeypatch):
        copied = clone(model).set_params(
            callback=lambda progress: ends.append((len(n_bytes), sum(n_bytes)))
        )
        copied.fit(*blocks(7, X, y))
    n_messages, sent = np.diff(ends, axis=0).T
    q = d + 1
    assert len(sent) >= 3
    # A few of them are of each of the 7 parts.
    assert np.median(sent) <= 4 * q * (q + 1) + 8 * q * 4 + 7 * 200
    assert np.median(n_messages) <= 25


def test_results_that_nobody_needs_leave_nothing_in_places():
    place = places.Place([_Numbers([1.0, 2.0]), _Numbers([3.0, 4.0])])
    session = places.Session([places.Here(place)], [2])
    for _ in range(40):
        doubled = session.parts.each("doubled")
        assert session.parts.total("sum_of", doubled) == 20.0
        assert session.parts.largest("largest_of", doubled) == 8.0
        assert len(place._held) <= 3


class _Numbers:
    """A part with two numbers."""

    def __init__(self, numbers):
        self.numbers = np.array(numbers)

    def doubled(self):
        return 2.0 * self.numbers

    def sum_of(self, numbers):
        return float(numbers.sum())

    def largest_of(self, numbers):
        return float(numbers.max())


def test_weights_may_be_a_number_or_in_memory():
    X, y, weights = data()
    dX, dy = blocks(7, X, y)
    model = SubLBFGSLinearSVC().fit(X, y, 3.0)
    alpha = model.alpha_
    assert model.fit(dX, dy, 3.0).alpha_ == pytest.approx(alpha, rel=1e-12)
    alpha = model.fit(X, y, weights).alpha_
    assert model.fit(dX, y, weights).alpha_ == pytest.approx(alpha, rel=1e-12)


def never(*args):
    raise AssertionError("data have been computed")


@pytest.mark.parametrize(
    ("model", "error", "match"),
    [
        (BMRMClassifier(loss="roc_area"), ValueError, "sums over samples: 'hinge'"),
        (BMRMClassifier(loss="f_beta"), ValueError, "sums over samples"),
        (BMRMClassifier(loss="ordinal"), ValueError, "sums over samples"),
        (BMRMRegressor(loss="quantile", quantile=[0.1, 0.9]), ValueError, "a single"),
        *(
            (model, TypeError, r"does not take Dask collections .* X\.compute\(\)")
            for model in (
                BMRMRankerCV(),
                OnlineLBFGSClassifier(),
                OnlineLBFGSRegressor(),
                LinearChainCRF(),
            )
        ),
        (
            SubLBFGSLinearSVCCV((1e-3, 1.0), search_tol=0.1),
            ValueError,
            "search_tol is not supported for data in blocks",
        ),
    ],
)
def test_what_needs_all_samples_is_refused_before_data_move(model, error, match):
    X = da.map_blocks(never, chunks=((5, 5), (D,)), dtype=float, meta=np.zeros((0, 0)))
    y = da.map_blocks(never, chunks=((5, 5),), dtype=float, meta=np.zeros(0))
    frame = dd.from_dask_array(X, columns=list("abcde")), dd.from_dask_array(y)
    parts = [dask.delayed(never)(i) for i in range(2)]
    given = [(X, y), frame]
    # Delayed lists may be sequences.
    if error is TypeError and not isinstance(model, LinearChainCRF):
        given.append((parts, parts))
    classes = {} if isinstance(model, OnlineLBFGSRegressor) else {"classes": [0, 1]}
    for data_ in given:
        with pytest.raises(error, match=match):
            model.fit(*data_)
        if hasattr(model, "partial_fit") and error is TypeError:
            with pytest.raises(error, match=match):
                model.partial_fit(*data_, **classes)


def test_scores_need_targets():
    X, y, _ = data()
    y = (y == y[0]).astype(int)
    dX, dy = blocks(3, X, y)
    for model in (SubLBFGSLinearSVC(0.01), BMRMClassifier(0.01), BMRMRegressor(0.01)):
        model.fit(X, y)
        for rows in (dX, RowBlocks(X, block_size=70)):
            with pytest.raises(ValueError, match=r"give y to score"):
                model.score(rows)
        for score in (model.score(dX, dy), model.score(RowBlocks(X, y, np.ones(N)))):
            assert score == pytest.approx(model.score(X, y))


def test_errors_of_shapes_and_values():
    X, y, weights = data()
    dX, dy, dweights = blocks(7, X, y, weights)
    model = SubLBFGSLinearSVC(0.01)
    with pytest.raises(ValueError, match="X has 260, and y 259"):
        model.fit(dX, dy[1:])
    with pytest.raises(ValueError, match="only one class with positive weight"):
        model.fit(dX, da.where(dy == "b", "a", dy))
    with pytest.raises(ValueError, match="contains NaN"):
        model.fit(da.where(dX > 1.5, np.nan, dX), dy)
    with pytest.raises(ValueError, match="Negative values"):
        model.fit(dX, dy, dweights - 0.5)
    with pytest.raises(TypeError, match="must be a Dask collection"):
        model.fit(dd.from_dask_array(dX), y)
    with pytest.raises(ValueError, match="all are zero"):
        BMRMRegressor(0.1).fit(dX, dX[:, 0], 0.0 * dweights)
    with pytest.raises(ValueError, match="X has no rows"):
        model.fit(dX[:0], dy[:0])
    with pytest.raises(ValueError, match="X has 260, and offset 259"):
        BMRMClassifier(0.1).fit(dX, dy, offset=weights[1:])
    assert not hasattr(model, "coef_")


def test_without_dask_the_error_says_what_to_install(monkeypatch):
    X, y, _ = data()
    given = blocks(1, X, y)
    monkeypatch.delitem(
        sys.modules, "sklearn_subqn._blocks.dask_collections", raising=False
    )
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match=r"sklearn-subqn\[dask\]"):
        SubLBFGSLinearSVC().fit(*given)


@pytest.fixture(scope="module")
def client():
    settings = {"dashboard_address": ":0", "threads_per_worker": 1}
    # A lost worker is given up where its replacement has not begun by then.
    lost = {"distributed.deploy.lost-worker-timeout": LIMIT}
    with (
        dask.config.set(lost),
        distributed.LocalCluster(n_workers=2, **settings) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def set_status(address, status, dask_scheduler):
    dask_scheduler.workers[address].status = status


def test_a_worker_that_is_retired_takes_no_places(client):
    """It would take no task, and the fit would wait for it as long as it reports."""
    first, *others = sorted(_dask_workers.last_seen(client))
    status = partial(client.run_on_scheduler, set_status, first)
    status(distributed.Status.closing_gracefully)
    try:
        assert set(_dask_workers.last_seen(client)) == set(others)
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
        blocks = da.from_array(X, (20, 3)), da.from_array(y, 20)
        with client.as_current():
            model = BMRMClassifier(0.1, loss="log_loss").fit(*blocks)
    finally:
        status(distributed.Status.running)
    expected = BMRMClassifier(0.1, loss="log_loss").fit(X, y)
    assert model.objective_ == pytest.approx(expected.objective_, rel=2e-3)


def elsewhere(x, pid):
    """Return a block, but not in the process of the test."""
    assert os.getpid() != pid
    return x


def on_workers(*collections):
    pid = os.getpid()
    return [x.map_blocks(elsewhere, pid, dtype=x.dtype) for x in collections]


def assert_nothing_is_left(client):
    def keys(dask_scheduler):
        return [str(key) for key in dask_scheduler.tasks]

    end = time.monotonic() + LIMIT
    while left := client.run_on_scheduler(keys):
        assert time.monotonic() < end, left
        time.sleep(0.05)


def spread(monkeypatch):
    """Let blocks stay on their workers, however small they are."""
    share_among_workers(monkeypatch)


@pytest.mark.parametrize("name", ["log loss", "L1 logistic", "squares"])
def test_workers_agree_with_fits_in_memory(client, monkeypatch, name):
    spread(monkeypatch)
    X, y, weights = numbers(name) if name in REGRESSORS else data()
    given = on_workers(*blocks(4, X, y, weights))
    model = clone({**CLASSIFIERS, **REGRESSORS}[name])
    with client.as_current():
        assert_same_optimum(model, X, y, weights, given)
        assert_predictions(model, X, y, weights, given)
    del given
    assert_nothing_is_left(client)


def assert_predictions(model, X, y, weights, given):
    """Predict on workers, whose blocks cannot be computed elsewhere."""
    for method in ("predict", "decision_function", "predict_proba"):
        if hasattr(model, method):
            result = getattr(model, method)(given[0])
            assert result.chunks[0] == given[0].chunks[0]
            assert_same_predictions(result.compute(), getattr(model, method)(X))
    assert model.score(*given) == pytest.approx(model.score(X, y, weights))


@pytest.mark.parametrize("is_spread", [True, False])
def test_offsets_and_free_features_on_workers(client, monkeypatch, tmp_path, is_spread):
    if is_spread:
        spread(monkeypatch)
    X, y, weights = numbers("poisson")
    offset = np.random.default_rng(4).normal(size=N)
    options = {"loss": "poisson", "penalty": "group", "groups": [0, 0, 1, 1, 2]}
    model = BMRMRegressor(0.05, penalty_factor=[1.0, 0.0, 1.0], tol=1e-6, **options)
    whole = clone(model).fit(X, y, weights, offset=offset)
    allowed = max(1.01 * whole.dual_gap_, 1e-6 * abs(whole.objective_))
    *given, offsets = on_workers(*blocks(4, X, y, weights, offset))
    np.save(tmp_path / "X.npy", X)
    rows = RowBlocks(tmp_path / "X.npy", y, weights, block_size=90, client=client)
    with client.as_current():
        model.fit(*given, offset=offsets)
        assert_allclose(model.objective_, whole.objective_, rtol=1e-7)
        assert model.dual_gap_ <= allowed
        assert_allclose(model.predict(given[0], offsets), model.predict(X, offset))
        assert model.score(*given, offsets) == pytest.approx(
            model.score(X, y, weights, offset)
        )
        with pytest.warns(MissingOffsetWarning):
            model.score(*given)
        with pytest.warns(MissingOffsetWarning):
            model.predict(rows)
        model.fit(rows, offset=offset)
    assert_allclose(model.objective_, whole.objective_, rtol=1e-7)
    assert model.dual_gap_ <= allowed
    assert_allclose(model.predict(rows, offset), model.predict(X, offset))
    del given, offsets
    assert_nothing_is_left(client)


def test_small_data_come_to_one_worker(client):
    for name in ("hinge", "multiclass"):
        X, y, weights = data(3 if name == "multiclass" else 2)
        given = on_workers(*blocks(3, X, y, weights))
        model = clone(CLASSIFIERS[name]).set_params(tol=1e-4)
        plan = model.fit(X, y, weights).plan_
        with client.as_current():
            assert_same_optimum(model, X, y, weights, given)
            assert_predictions(model, X, y, weights, given)
        # As fast as in memory.
        assert model.plan_ == plan
    del given
    assert_nothing_is_left(client)


def test_hinge_on_workers(client, monkeypatch):
    spread(monkeypatch)
    X, y, _ = data()
    model = SubLBFGSLinearSVC(0.01, solver="alm").fit(X, y)
    expected = model.objective_
    with client.as_current():
        model.fit(*on_workers(*blocks(7, X, y)))
    assert abs(model.objective_ - expected) <= 1e-3 * expected
    assert_nothing_is_left(client)


def test_blocks_that_come_to_one_worker():
    PlaceOfBlocks = _dask_blocks.PlaceOfBlocks
    X, y, _ = data()
    halves = [X[:100], X[100:]], [y[:100], y[100:]], [None, None]
    for kind in (np.asarray, sparse.csr_matrix, pd.DataFrame):
        rows = list(map(kind, halves[0]))
        assert PlaceOfBlocks(rows, *halves[1:], is_all=True).n_parts() == 1
        assert PlaceOfBlocks(rows, *halves[1:]).n_parts() == 2
    # What does not fit together is found in the blocks.
    other = [X[:100], X[100:, :3]]
    assert PlaceOfBlocks(other, *halves[1:], is_all=True).n_parts() == 2
    other = [[y[:99], y[99:]], halves[2]]
    assert PlaceOfBlocks(halves[0], *other, is_all=True).n_parts() == 2


def test_a_run_in_one_place_reports_to_the_user(capsys):
    X, y, _ = data()
    given = blocks(1, X, y)
    for alike in (True, False):
        seen = [[], []]
        for data_, own in zip(((X, y), given), seen, strict=True):
            model = SubLBFGSLinearSVC(
                0.01,
                solver="sublbfgs",
                verbose=2,
                max_iter=4,
                callback=lambda progress, own=own, alike=alike: (
                    own.append(progress._replace(seconds=0.0))
                    or (not alike and len(own) == 3)
                ),
            )
            if alike:
                with pytest.warns(ConvergenceWarning, match="reached max_iter=4"):
                    model.fit(*data_)
            else:
                assert model.fit(*data_).n_iter_ == 2
        assert_allclose(*seen, rtol=1e-9)
        lines = re.sub(r"[0-9.]+ s\n", "\n", capsys.readouterr().out).splitlines()
        assert len(lines) > 4
        assert lines[: len(lines) // 2] == lines[len(lines) // 2 :]


def test_a_run_ends_where_nobody_asks(monkeypatch):
    X, y, _ = data()
    model = SubLBFGSLinearSVC(0.01, callback=lambda progress: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.fit(*blocks(1, X, y))
    assert_no_run_is_left()
    monkeypatch.setattr("sklearn_subqn._blocks.run_there._SILENCE", 0.1)
    # That begins with the first report, and this is waited for.
    clock = SimpleNamespace(monotonic=lambda: 0.0)
    monkeypatch.setattr("sklearn_subqn._blocks.run_there.time", clock)
    monkeypatch.setattr("sklearn_subqn._blocks.run_there._WAIT", LIMIT)
    problems = SubLBFGSLinearSVC(0.01, tol=0.0)._encode(X, y, None)
    run = RunHere(problems)
    run.begin(0, problems.starts[0], 0.01, listened=True)
    assert run.news(None).progress.n_iter == 0
    assert_no_run_is_left()
    with pytest.raises(Abandoned):
        run.news(None)


def assert_no_run_is_left():
    end = time.monotonic() + LIMIT
    while any("(_run)" in thread.name for thread in threading.enumerate()):
        assert time.monotonic() < end
        time.sleep(0.01)


def fails(x):
    if len(x) == N - 200:
        raise ZeroDivisionError("of a block")
    return x


def test_errors_of_blocks_are_their_own(client):
    X, y, _ = data()
    dX, dy = (da.from_array(x, chunks=200) for x in (X, y))
    with client.as_current(), pytest.raises(ZeroDivisionError, match="of a block"):
        SubLBFGSLinearSVC().fit(dX.map_blocks(fails, dtype=float), dy)
    with client.as_current(), pytest.raises(KeyboardInterrupt):
        SubLBFGSLinearSVC(0.01, callback=interrupt).fit(dX, dy)
    assert_nothing_is_left(client)


def interrupt(progress):
    raise KeyboardInterrupt


def wait_for_two_workers(client):
    """Wait for the replacement of a worker, and ask for it if that has not begun."""
    client.cluster.scale(2)
    client.wait_for_workers(2, timeout=LIMIT)


def pid_of_a_place(client):
    """Return the address of a worker that holds blocks of a fit, and its process."""
    for address, keys in client.has_what().items():
        if any("PlaceOf" in str(key) for key in keys):
            return address, client.run(os.getpid, workers=[address])[address]
    raise AssertionError("no worker holds blocks")


@pytest.mark.parametrize(
    ("share", "is_spread"),
    [(0.3, True), (0.6, False), pytest.param(0.9, True, marks=pytest.mark.slow)],
)
def test_a_killed_worker_is_replaced(client, monkeypatch, share, is_spread):
    if is_spread:
        spread(monkeypatch)
    X, y, _ = data()
    killed = []
    model = SubLBFGSLinearSVC(0.01, solver="alm", tol=1e-6).fit(X, y)
    expected, at = model.objective_, max(1, int(share * model.n_iter_))

    def kill(progress):
        if progress.n_iter == at and not killed:
            killed.append(pid_of_a_place(client)[1])
            os.kill(killed[0], signal.SIGKILL)

    model.callback = kill
    wait_for_two_workers(client)
    with client.as_current():
        model.fit(*on_workers(*blocks(7, X, y)))
    assert killed
    assert abs(model.objective_ - expected) <= 1e-6 * expected
    assert model.dual_gap_ <= 1e-6 * model.objective_
    assert_nothing_is_left(client)


def ranked():
    """Rows of 60 queries, and the cuts of uneven and empty blocks within queries."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(900, 5)) * np.geomspace(0.1, 5.0, 5)
    y = np.digitize(X @ rng.normal(size=5) + 3.0 * rng.normal(size=900), [-3.0, 4.0])
    X[:, 0] += 40.0
    return X, y.astype(float), np.sort(rng.integers(0, 60, 900)), (305, 0, 95, 400, 100)


def test_rankings_on_workers_agree_with_fits_in_memory(client, monkeypatch, tmp_path):
    spread(monkeypatch)
    X, y, qid, chunks = ranked()
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    ranker = BMRMRanker(0.1, loss="pairwise-squared", tol=1e-9)
    plain, weighted = (clone(ranker).fit(X, y, w, qid=qid) for w in (None, weights))
    dX, *numbers = (
        da.from_array(x, chunks=(chunks, *x.shape[1:])) for x in (X, y, weights, qid)
    )
    (dX,) = on_workers(dX)
    names = list("abcde")
    frame = dd.from_pandas(pd.DataFrame(X, columns=names).assign(y=y, q=qid), 3)
    np.save(tmp_path / "X.npy", X)
    rows = RowBlocks(tmp_path / "X.npy", y, qid=qid, block_size=170, client=client)
    with client.as_current():
        for given, queries, expected in (
            ((dX, *numbers[:2]), numbers[2], weighted),
            ((frame[names], frame["y"]), frame["q"], plain),
            ((rows,), None, plain),
        ):
            found = clone(ranker).fit(*given, qid=queries)
            assert_allclose(found.objective_, expected.objective_, rtol=1e-8)
            assert found.dual_gap_ <= 1e-9 * found.objective_
        assert_same_predictions(
            ranker.fit(X, y, qid=qid).predict(dX), ranker.predict(X)
        )
        with pytest.raises(ValueError, match="qid has 899 entries for 900 rows"):
            ranker.fit(dX, y, qid=qid[1:])
    del dX, numbers, given, queries, frame
    assert_nothing_is_left(client)


@pytest.mark.parametrize(
    ("loss", "kind"),
    [
        ("pairwise", np.asarray),
        ("pairwise-squared", sparse.csr_matrix),
        ("ndcg", pd.DataFrame),
    ],
)
def test_iterations_of_rankings_send_no_numbers_of_rows(monkeypatch, loss, kind):
    """Rows of cut queries move to one block, and scores stay where they are."""
    n_bytes = [0]
    send = places.Here.send

    def counted(self, message):
        wait = send(self, message)
        n_bytes[0] += len(pickle.dumps(message)) + len(pickle.dumps(wait()))
        return wait

    monkeypatch.setattr(places.Here, "send", counted)
    X, y, qid, chunks = ranked()
    X, y = np.tile(X, (8, 1)), np.tile(y, 8)
    qid = np.concatenate([qid + 100 * i for i in range(8)])
    cuts = [0, *np.cumsum(chunks[:-1]), len(y)]
    of_x = [dask.delayed(kind)(X[a:b]) for a, b in pairwise(cuts)]
    of_y = [dask.delayed(y[a:b]) for a, b in pairwise(cuts)]
    counts = []
    ranker = BMRMRanker(
        0.1, loss=loss, tol=1e-6, callback=lambda progress: counts.append(n_bytes[0])
    )
    with sessions(monkeypatch):
        found = ranker.fit(of_x, of_y, qid=qid).objective_
    expected = ranker.set_params(callback=None).fit(X, y, qid=qid)
    assert_allclose(found, expected.objective_, rtol=2e-6)
    # That is less than a number in single precision for each row.
    assert np.median(np.diff(counts)) <= 20_000 < 4 * len(y)


def test_a_killed_worker_is_replaced_in_a_ranking(client, monkeypatch):
    """Blocks may then be in another order than the relevances."""
    spread(monkeypatch)
    X, y, qid, chunks = ranked()
    ranker = BMRMRanker(1e-3, tol=1e-9).fit(X, y, qid=qid)
    expected, killed = ranker.objective_, []

    def kill(progress):
        if progress.n_iter == 3 and not killed:
            killed.append(pid_of_a_place(client)[1])
            os.kill(killed[0], signal.SIGKILL)

    ranker.callback = kill
    wait_for_two_workers(client)
    with client.as_current():
        ranker.fit(*on_workers(da.from_array(X, chunks=(chunks, 5))), y, qid=qid)
    assert killed
    assert_allclose(ranker.objective_, expected, rtol=1e-8)
    assert_nothing_is_left(client)


class Killing:
    """Kills a worker after a fit on a fold of a search."""

    def __init__(self, client):
        self._client, self.killed = client, []

    def __call__(self, progress):
        return False

    def fold(self, progress):
        if progress.n_done == 3:
            self.killed.append(pid_of_a_place(self._client)[1])
            os.kill(self.killed[0], signal.SIGKILL)


def test_searches_on_workers_agree_with_those_in_memory(client, monkeypatch, tmp_path):
    """Blocks are sorted by y, uneven, and one is empty; a worker is killed."""
    spread(monkeypatch)
    X, y, weights = numbers("squares", n=120)
    order = np.argsort(y)
    X, y, weights = X[order], y[order], weights[order]
    folds = KFold(2, shuffle=True, random_state=0)
    search = BMRMRegressorCV([1.0, 0.1], cv=folds, tol=TOL)
    expected = clone(search).fit(X, y, weights)
    np.save(tmp_path / "X.npy", X)
    rows = RowBlocks(tmp_path / "X.npy", y, weights, block_size=50, client=client)
    given = on_workers(*blocks(4, X, y, weights))
    killing = Killing(client)
    wait_for_two_workers(client)
    with client.as_current():
        for data_, callback in (((rows,), None), (given, killing)):
            found = clone(search).set_params(callback=callback).fit(*data_)
            assert_allclose(found.scores_path_, expected.scores_path_, rtol=1e-8)
            assert found.alpha_ == expected.alpha_
            assert_allclose(found.coef_, expected.coef_, rtol=1e-6, atol=1e-7)
            assert_allclose(found.objective_, expected.objective_, rtol=1e-8)
    assert killing.killed
    del given, data_
    assert_nothing_is_left(client)


@pytest.mark.parametrize("reduction", ["mean", "max"])
def test_labels_on_workers_agree_with_fits_in_memory(client, monkeypatch, reduction):
    """Blocks are sorted by labels, uneven, and one is empty; a worker is killed."""
    spread(monkeypatch)
    X, _, weights = data(n=120)
    X[:, 2] -= 1000.0
    y = (X[:, :3] + np.random.default_rng(4).normal(size=(120, 3)) > 0.3).astype(int)
    order = np.argsort(y @ [4, 2, 1], kind="stable")
    X, y, weights = X[order], y[order], weights[order]
    given = on_workers(*blocks(4, X, y, weights))
    model = MultilabelHingeClassifier(1.0, reduction=reduction, tol=TOL)
    killed = []

    def kill(progress):
        # The first fit is the one in memory.
        if progress.n_iter == 2 and hasattr(model, "coef_") and not killed:
            killed.append(pid_of_a_place(client)[1])
            os.kill(killed[0], signal.SIGKILL)

    model.callback = kill if reduction == "max" else None
    wait_for_two_workers(client)
    with client.as_current():
        assert_same_optimum(model, X, y, weights, given)
        assert_predictions(model, X, y, weights, given)
    assert len(killed) == (reduction == "max")
    del given
    assert_nothing_is_left(client)


@pytest.mark.parametrize(
    ("name", "number"),
    [("_weigh", 1), pytest.param("_encode", 2, marks=pytest.mark.slow)],
    ids=["at the beginning", "after another loss"],
)
def test_a_worker_killed_between_iterations_is_replaced(
    client, monkeypatch, name, number
):
    # The first rows are prepared before the first iteration, and again after a loss.
    spread(monkeypatch)
    X, y, _ = data()
    model = SubLBFGSLinearSVC(0.01, solver="alm", tol=1e-6).fit(X, y)
    expected = model.objective_
    killed, prepared = [], []
    whole = getattr(Collection, name)

    def kill():
        killed.append(pid_of_a_place(client)[1])
        os.kill(killed[-1], signal.SIGKILL)

    def killing(self, *args):
        prepared.append(name)
        if len(prepared) == number:
            kill()
        return whole(self, *args)

    def callback(progress):
        if number == 2 and progress.n_iter == 2 and not killed:
            kill()

    monkeypatch.setattr(Collection, name, killing)
    model.callback = callback
    wait_for_two_workers(client)
    with client.as_current():
        model.fit(*on_workers(*blocks(7, X, y)))
    assert len(killed) == number
    assert abs(model.objective_ - expected) <= 1e-6 * expected
    assert_nothing_is_left(client)


def functions(*arrays):
    """Return functions that return blocks of arrays, but not in this process."""
    pid = os.getpid()

    def read(*block):
        assert os.getpid() != pid
        return block

    ends = np.cumsum([0, *cuts(7)]).tolist()
    return [partial(read, *(x[a:b] for x in arrays)) for a, b in pairwise(ends)]


@pytest.mark.parametrize("name", ["log loss", "squares"])
def test_workers_read_blocks_for_each_use(client, tmp_path, name):
    X, y, weights = numbers(name) if name in REGRESSORS else data()
    wait_for_two_workers(client)
    rows = RowBlocks(functions(X, y, weights), client=client)
    model = clone({**CLASSIFIERS, **REGRESSORS}[name])
    assert_same_optimum(model, X, y, weights, [rows])
    assert_same_predictions(model.predict(rows), model.predict(X))
    assert model.score(rows) == pytest.approx(model.score(X, y, weights))
    gap = dual_gap(model, X, y, weights, tol=None)
    assert dual_gap(model, rows, tol=None) == pytest.approx(gap, abs=1e-12)
    # Targets may be here.
    np.save(tmp_path / "X.npy", X)
    rows = RowBlocks(tmp_path / "X.npy", y, block_size=70, client=client)
    assert_same_optimum(model, X, y, weights, [rows, None, weights])
    assert_nothing_is_left(client)
    (tmp_path / "X.npy").unlink()
    with pytest.raises((RuntimeError, OSError), match=r"X\.npy"):
        model.fit(rows)
    assert_nothing_is_left(client)


def test_blocks_that_a_worker_has_read_are_read_by_others(client):
    X, y, _ = data()
    killed = []

    def kill(progress):
        if progress.n_iter == 2 and not killed:
            killed.append(pid_of_a_place(client)[1])
            os.kill(killed[0], signal.SIGKILL)

    model = SubLBFGSLinearSVC(0.01, solver="alm", tol=1e-6).fit(X, y)
    expected = model.objective_
    model.callback = kill
    wait_for_two_workers(client)
    model.fit(RowBlocks(functions(X, y), client=client))
    assert killed
    assert abs(model.objective_ - expected) <= 1e-6 * expected
    assert_nothing_is_left(client)


def test_what_workers_cannot_read_is_refused(client, monkeypatch):
    X, y, _ = data()
    with pytest.raises(TypeError, match="array in memory, or a memory map"):
        RowBlocks(X, y, client=client)
    with pytest.raises(TypeError, match="client of Dask"):
        RowBlocks("X.npy", client="tcp://scheduler")
    with pytest.raises(ValueError, match="blocks have no y"):
        SubLBFGSLinearSVC().fit(RowBlocks(functions(X), client=client))
    frames = [pd.DataFrame(X), pd.DataFrame(X[:, ::-1], columns=list("edcba"))]
    rows = RowBlocks([partial(tuple, (X, y)) for X in frames], client=client)
    with pytest.raises(ValueError, match="same columns in the same order"):
        SubLBFGSLinearSVC().fit(rows)
    assert_nothing_is_left(client)
    monkeypatch.setattr(
        "sklearn_subqn._blocks.dask_readers.last_seen", lambda client: {}
    )
    monkeypatch.setattr("sklearn_subqn._blocks.dask_blocks._REPLACEMENT", 0.0)
    rows = RowBlocks(functions(X, y), client=client)
    with pytest.raises(RuntimeError, match=r"no worker to read .* smaller blocks"):
        SubLBFGSLinearSVC().fit(rows)


class _Unbound:
    """A future whose result Dask cannot return, at the first time or ever."""

    def __init__(self, status, place):
        self.status, self._place, self.n_asked = status, place, 0

    def result(self, timeout):
        self.n_asked += 1
        if self.n_asked == 1 or self.status == "error":
            raise UnboundLocalError
        return self._place


def test_a_question_that_dask_cancelled_is_asked_again():
    client = SimpleNamespace(
        as_current=nullcontext, status="running", submit=lambda *args, **kwargs: None
    )
    n_parts = SimpleNamespace(result=lambda timeout: 3)
    place = SimpleNamespace(n_parts=lambda: n_parts)
    future = _Unbound("finished", place)
    assert _dask_workers.Worker(client, future, "address", set()).open() == 3
    assert future.n_asked == 2
    future = _Unbound("error", place)
    with pytest.raises(UnboundLocalError):
        _dask_workers.Worker(client, future, "address", set()).open()


def test_a_frozen_worker_is_named(client, monkeypatch):
    spread(monkeypatch)
    X, y, _ = data()
    frozen, last_seen = {}, _dask_workers.last_seen

    def last_seen_or_now(client):
        seen = last_seen(client)
        return {name: seen[name] if name in frozen else time.time() for name in seen}

    def freeze(progress):
        if progress.n_iter == at:
            frozen.update([pid_of_a_place(client)])
            os.kill(*frozen.values(), signal.SIGSTOP)

    model = SubLBFGSLinearSVC(0.01, solver="alm", tol=1e-6)
    wait_for_two_workers(client)
    with client.as_current():
        # Workers import the package at first, which takes its time.
        model.fit(*on_workers(*blocks(7, X, y)))
    at = model.n_iter_ // 2
    monkeypatch.setattr("sklearn_subqn._blocks.dask_workers._PATIENCE", 0.5)
    monkeypatch.setattr("sklearn_subqn._blocks.dask_workers._SILENCE", 3.0)
    for module in (_dask_workers, _dask_blocks):
        # Others may stand still, too, where the machine is busy.
        monkeypatch.setattr(module, "last_seen", last_seen_or_now)
    model.callback = freeze
    try:
        with client.as_current(), pytest.raises(RuntimeError, match="lost or") as info:
            model.fit(*on_workers(*blocks(7, X, y)))
    finally:
        os.kill(*frozen.values(), signal.SIGCONT)
    assert next(iter(frozen)) in str(info.value)
    assert_nothing_is_left(client)


def test_without_a_scheduler_there_is_an_error_at_once(client, monkeypatch):
    # The last test: the cluster is closed by it.
    spread(monkeypatch)
    # Nothing else ends it.
    monkeypatch.setattr("sklearn_subqn._blocks.dask_workers._PATIENCE", np.inf)
    monkeypatch.setattr("sklearn_subqn._blocks.dask_blocks._REPLACEMENT", np.inf)
    X, y, _ = data()
    checks = []

    def counted(client):
        checks.append(client.status)
        check_scheduler(client)

    check_scheduler = _dask_workers.check_scheduler
    for module in (_dask_workers, _dask_blocks):
        monkeypatch.setattr(module, "check_scheduler", counted)

    def close(progress):
        if progress.n_iter == 2:
            client.cluster.close()
            del checks[:]

    model = SubLBFGSLinearSVC(0.01, solver="alm", tol=1e-6, callback=close)
    client.wait_for_workers(1, timeout=LIMIT)
    with (
        client.as_current(),
        pytest.raises(ConnectionError, match="scheduler cannot be reached"),
    ):
        model.fit(*on_workers(*blocks(7, X, y)))
    # As soon as the client knows it, which it is asked twice a second.
    assert _dask_workers.GLANCE <= 0.5
    assert 1 <= len(checks) <= 4
    assert not hasattr(model, "coef_")

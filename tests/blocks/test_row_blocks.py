"""Data in blocks of rows that are read for each use, in ``fit`` and predictions."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from _door import Design, DesignOfParts, copy_no_rows
from _same import assert_same_predictions
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier
from sklearn.svm import LinearSVC

import sklearn_subqn
from sklearn_subqn import (
    BMRMClassifier,
    BMRMRanker,
    BMRMRankerCV,
    BMRMRegressor,
    L1LogisticOWLQN,
    LinearChainCRF,
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
    RowBlocks,
    StructuredSVM,
    SubLBFGSLinearSVC,
    dual_gap,
    linear_model,
    ranking,
    svm,
)
from sklearn_subqn._core.rows.read_design import ReadDesign, Shelf
from sklearn_subqn._estimators.linear_estimator import LinearEstimator
from sklearn_subqn.losses import Ndcg

N, D = 300, 5
TOL = 1e-9

CLASSIFIERS = {
    "hinge": SubLBFGSLinearSVC(0.01, tol=TOL),
    "squared hinge": SubLBFGSLinearSVC(0.01, loss="squared_hinge", tol=TOL),
    "balanced": SubLBFGSLinearSVC(0.01, tol=TOL, class_weight="balanced"),
    "factors": SubLBFGSLinearSVC(0.1, tol=TOL, penalty_factor=np.arange(1.0, 6.0)),
    "no intercept": SubLBFGSLinearSVC(0.01, tol=TOL, fit_intercept=False),
    "L1 logistic": L1LogisticOWLQN(1e-3, tol=TOL),
    "multiclass": MulticlassHingeClassifier(0.01, tol=TOL),
    "log loss": BMRMClassifier(1e-3, tol=TOL),
    "L1 hinge": BMRMClassifier(0.02, loss="hinge", penalty="l1", tol=1e-4),
}


def linear_estimators():
    """Return all estimators whose scores are linear in numbers of the rows."""
    modules = sklearn_subqn, linear_model, svm, ranking
    found = {getattr(module, name) for module in modules for name in module.__all__}
    others = LinearChainCRF, StructuredSVM
    kinds = (k for k in found if isinstance(k, type) and issubclass(k, LinearEstimator))
    return [kind() for kind in sorted(kinds, key=str) if kind not in others]


def data(n_classes=2, n=N):
    """Return samples, string labels and weights; a column is far from zero."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, D)) * [1.0, 1.0, 1.0, 3.0, 0.1]
    scores = X[:, :n_classes] + 0.7 * rng.normal(size=(n, n_classes))
    X[:, 2] += 1000.0
    y = np.array(list("abc"))[scores.argmax(axis=1)]
    return X, y, rng.random(n) * (rng.random(n) < 0.9)


def assert_same_optimum(model, X, y, weights, *given):
    """Fit to data in memory and in blocks, which must have the same optimum."""
    one = clone(model).fit(X, y, weights)
    other = clone(model).fit(*given)
    tol = max(10.0 * model.tol, 1e-8)
    assert_allclose(other.alpha_, one.alpha_, rtol=1e-12)
    assert_allclose(other.penalty_factor_, one.penalty_factor_, rtol=1e-9)
    assert_allclose(other.objective_, one.objective_, rtol=tol)
    # Each lower bound holds for the other value.
    rounding = 1e-13 * np.abs(one.objective_)
    assert np.all(other.objective_ - other.dual_gap_ <= one.objective_ + rounding)
    assert np.all(one.objective_ - one.dual_gap_ <= other.objective_ + rounding)
    assert np.all(other.dual_gap_ <= model.tol * np.abs(other.objective_))
    return other


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers_agree_with_fits_in_memory(name):
    X, y, weights = data(3 if name == "multiclass" else 2)
    # Blocks of one class, and others without it.
    order = np.argsort(y, kind="stable")
    X, y, weights = X[order], y[order], weights[order]
    rows = RowBlocks(X, y, weights, block_size=70)
    model = assert_same_optimum(CLASSIFIERS[name], X, y, weights, rows)
    assert_same_predictions(model.predict(rows), model.predict(X))
    assert_same_predictions(model.decision_function(rows), model.decision_function(X))
    assert model.score(rows) == pytest.approx(model.score(X, y, weights))


def labeled(n=N):
    """Return samples sorted by their four labels, indicators of these, and weights."""
    X, _, weights = data(n=n)
    rng = np.random.default_rng(4)
    scores = (X - [0.0, 0.0, 1000.0, 0.0, 0.0])[:, :4] @ rng.normal(size=(4, 4))
    y = (scores + rng.normal(size=(n, 4)) > 0.3).astype(int)
    order = np.argsort(y @ [8, 4, 2, 1], kind="stable")
    return X[order], y[order], weights[order]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"reduction": "max"},
        {"threshold": False},
        {"reduction": "max", "threshold": False, "label_cost": 2.0 - 2.0 * np.eye(4)},
    ],
    ids=["mean", "max", "mean of pairs", "costs of pairs"],
)
def test_labels_in_blocks_agree_with_fits_in_memory(given, tmp_path):
    X, y, weights = labeled()
    model = MultilabelHingeClassifier(tol=TOL, **given)
    # One block has no rows, and several have rows without or with some labels only.
    cuts = [slice(0, 90), slice(90, 90), slice(90, 100), slice(100, N)]
    rows = RowBlocks([lambda r=r: (X[r], y[r], weights[r]) for r in cuts])
    model = assert_same_optimum(model, X, y, weights, rows)
    assert_same_predictions(model.decision_function(rows), model.decision_function(X))
    assert model.multilabel_
    assert_array_equal(model.classes_, range(4))
    if model.threshold:
        assert_same_predictions(model.predict(rows), model.predict(X))
        assert model.score(rows) == pytest.approx(model.score(X, y, weights))


def test_labels_in_columns_of_parquet(tmp_path):
    pytest.importorskip("pyarrow")
    X, y, weights = labeled()
    frame = pd.DataFrame(X, columns=list("vwxyz")).assign(weight=weights)
    frame[list("abcd")] = y
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=70)
    rows = RowBlocks.from_parquet(tmp_path / "rows.parquet", list("abcd"), "weight")
    model = MultilabelHingeClassifier(tol=TOL)
    assert_same_optimum(model, frame[list("vwxyz")], y, weights, rows)


def test_one_class_per_sample_in_blocks_of_a_multilabel_model():
    X, y, weights = data(3)
    order = np.argsort(y, kind="stable")
    X, y, weights = X[order], y[order], weights[order]
    rows = RowBlocks(X, y, weights, block_size=70)
    model = MultilabelHingeClassifier(tol=TOL)
    model = assert_same_optimum(model, X, y, weights, rows)
    assert not model.multilabel_
    assert_same_predictions(model.predict(rows), model.predict(X))


def test_blocks_of_other_labels_are_refused():
    X, y, _ = labeled()
    parts = (X[:100], y[:100]), (X[100:], y[100:, :3])
    rows = RowBlocks([lambda part=part: part for part in parts])
    with pytest.raises(ValueError, match=r"same number of columns; .* with 3, 4"):
        MultilabelHingeClassifier().fit(rows)


@pytest.mark.parametrize("loss", ["absolute_error", "huber", "poisson"])
def test_regressors_agree_with_fits_in_memory(loss):
    X, _, weights = data()
    y = np.floor(np.abs(X[:, [0, 3]] - X[:, [1]]))
    rows = RowBlocks(X, y, block_size=70)
    model = BMRMRegressor(loss=loss, tol=TOL)
    model = assert_same_optimum(model, X, y, weights, rows, None, weights)
    assert_same_predictions(model.predict(rows), model.predict(X))
    assert model.score(rows) == pytest.approx(model.score(X, y))


def test_blocks_of_defaults_are_divided_by_sizes_once(monkeypatch):
    """Also those that would not be copied if they were in memory."""
    copy_no_rows(monkeypatch)
    X, _, weights = data()
    X = X * [1e-2, 1.0, 30.0, 0.2, 5.0]
    y = X @ [20.0, 0.0, 0.1, 2.0, 0.5] + np.sin(np.arange(N))
    rows = RowBlocks(lambda: X, y)
    model = BMRMRegressor(loss="huber", tol=TOL)
    assert_same_optimum(model, X, y, weights, rows, None, weights)


def sources(kind, X, y, weights, folder):
    """Return the same rows from sources of a kind, in uneven blocks."""
    cuts = [slice(0, 90), slice(90, 90), slice(90, 100), slice(100, len(X))]
    if kind == "files":
        for i, rows in enumerate(cuts):
            np.save(folder / f"X{i}.npy", X[rows])
            np.save(folder / f"y{i}.npy", y[rows])
        names = [[folder / f"{x}{i}.npy" for i in range(len(cuts))] for x in "Xy"]
        return RowBlocks(*names, weights, block_size=70)
    if kind == "map":
        np.save(folder / "X.npy", X)
        return RowBlocks(np.load(folder / "X.npy", mmap_mode="r"), y, weights)
    if kind == "functions":
        return RowBlocks([lambda r=r: (X[r], y[r], weights[r]) for r in cuts])
    if kind == "functions of X":
        return RowBlocks([lambda r=r: X[r] for r in cuts], y, weights)
    if kind == "one function":
        return RowBlocks(lambda: (X, y), None, weights)
    if kind == "hdf5":
        h5py = pytest.importorskip("h5py")
        with h5py.File(folder / "rows.h5", "w") as file:
            file["X"] = X
        file = h5py.File(folder / "rows.h5")
        return RowBlocks(file["X"], y, weights, block_size=70)
    frame = pd.DataFrame(X, columns=list("vwxyz"))
    if kind == "frames":
        return RowBlocks([lambda r=r: frame[r] for r in cuts], y, weights)
    pytest.importorskip("pyarrow")
    frame["label"], frame["weight"] = y, weights
    frame.to_parquet(folder / "rows.parquet", row_group_size=70)
    return RowBlocks.from_parquet(folder / "rows.parquet", "label", "weight")


@pytest.mark.parametrize(
    "kind",
    [
        "files",
        "map",
        "functions",
        "functions of X",
        "one function",
        "hdf5",
        "frames",
        "parquet",
    ],
)
def test_sources(kind, tmp_path):
    X, y, weights = data()
    rows = sources(kind, X, y, weights, tmp_path)
    model = SubLBFGSLinearSVC(0.01, loss="squared_hinge", tol=TOL)
    model = assert_same_optimum(model, X, y, weights, rows)
    named = kind in ("frames", "parquet")
    X = pd.DataFrame(X, columns=list("vwxyz")) if named else X
    assert_same_predictions(model.predict(rows), model.predict(X))
    assert model.score(rows) == pytest.approx(model.score(X, y, weights))
    assert list(getattr(model, "feature_names_in_", [])) == list(
        "vwxyz" if named else ""
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("alpha", [0.01, "auto"])
def test_sparse_blocks(dtype, alpha):
    # With 200 samples and more in memory, held-out ones would choose the strength.
    X, y, _ = data(n=190)
    X[:, 2] -= 1000.0
    X = sparse.csr_array((X * (np.abs(X) > 0.5)).astype(dtype))
    model = SubLBFGSLinearSVC(alpha, tol=1e-6)
    for rows in (
        RowBlocks(X, y, block_size=90),
        RowBlocks([lambda: sparse.csc_matrix(X[:90]), lambda: X[90:]], y),
    ):
        fitted = assert_same_optimum(model, X, y, None, rows)
        assert fitted.coef_.dtype == dtype
        assert_allclose(
            fitted.decision_function(rows), fitted.decision_function(X), rtol=1e-5
        )


class Counting:
    """An array that counts the rows that are taken."""

    def __init__(self, X):
        self._X, self.shape, self.n_taken = X, X.shape, 0

    def __getitem__(self, rows):
        self.n_taken += rows.stop - rows.start
        return self._X[rows].copy()


@pytest.mark.parametrize(
    ("model", "n_more"),
    [
        # Products with a few of the rows read whole blocks of such an array.
        (SubLBFGSLinearSVC(solver="alm"), 15),
        (SubLBFGSLinearSVC(), 15),
        (L1LogisticOWLQN(), 4),
        (BMRMClassifier(), 4),
        (BMRMClassifier(solver="lbfgs"), 4),
    ],
)
def test_memory_and_reads_are_limited(model, n_more):
    n, d, size = 40_000, 120, 2000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + X[:, 1] + rng.normal(size=n) > 0.0, 1, -1)
    SubLBFGSLinearSVC().fit(RowBlocks(X[:100], y[:100]))
    source = Counting(X)
    tracemalloc.start()
    try:
        model.fit(RowBlocks(source, y, block_size=size))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    fixed = 4_500_000  # A sample of the rows, and code that is loaded at first.
    assert peak <= 25 * 8 * n + 3 * 8 * d * size + fixed < 0.5 * X.nbytes
    n_passes = model.history_[0].passes[-1]
    assert source.n_taken / n <= n_passes + n_more


@pytest.mark.parametrize(("n", "at_each_pass"), [(60, False), (30_000, True)])
def test_small_blocks_are_not_read_at_each_pass(n, at_each_pass):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    y = np.where(X[:, 0] + rng.normal(size=n) > 0.0, 1, -1)
    n_reads, n_passes = [], []
    for tol in (0.1, 1e-9):
        source = Counting(X)
        model = SubLBFGSLinearSVC(1e-4, solver="alm", tol=tol)
        model.fit(RowBlocks(source, y, block_size=n // 3))
        n_reads.append(source.n_taken / n)
        n_passes.append(model.history_[0].passes[-1])
    assert n_passes[1] > n_passes[0] + 5
    assert (n_reads[1] > n_reads[0] + 5) == at_each_pass


class Mapped:
    """A memory map that counts the rows that are looked at."""

    def __init__(self, X, counts):
        self._X, self._counts = X, counts
        self.shape, self.dtype = X.shape, X.dtype

    def __getitem__(self, rows):
        self._counts.append(len(self._X[rows]))
        return self._X[rows]

    def take(self, rows, **kwargs):
        self._counts.append(len(rows))
        return self._X.take(rows, **kwargs)


@pytest.mark.parametrize("factor", [None, 2.0])
def test_products_with_some_rows_look_at_no_others(factor):
    n, d = 1000, 40
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, d))
    counts = []
    change = None if factor is None else lambda X: X / factor
    like = Design(X if factor is None else X / factor)
    read = ReadDesign(like, lambda: Mapped(X, counts), change, Shelf())
    dual = np.zeros(n)
    some = np.sort(rng.permutation(n)[:100])
    dual[some] = rng.normal(size=100)
    for use in (
        lambda design: design.adjoint(dual),
        lambda design: design.rows(some, copy=False).gram(dual[some] ** 2),
        lambda design: design.rows(some).forward(np.ones(d + 1)),
        lambda design: design.rows(some[:20]).forward(np.ones(d + 1)),
    ):
        del counts[:]
        assert_array_equal(use(read), use(like))
        assert sum(counts) <= 100
    # A few rows are kept.
    few = read.rows(some[:20])
    del counts[:]
    few.forward(np.ones(d + 1))
    assert not counts


@pytest.mark.parametrize(
    "model",
    [
        SGDClassifier(alpha=0.01, max_iter=5, tol=None, random_state=0),
        SGDClassifier("log_loss", class_weight="balanced", random_state=0),
        SubLBFGSLinearSVC(tol=0.1),
        LinearSVC(C=0.1, class_weight="balanced"),
        linear_model.LogisticRegression(C=0.1, class_weight="balanced"),
    ],
)
def test_bounds_of_models_of_any_trainer(model):
    X, y, weights = data(2, 600)
    X[:, 2] -= 1000.0
    model.fit(X, y, sample_weight=weights)
    source = Counting(X)
    rows = RowBlocks(source, y, weights, block_size=70)
    known = dual_gap(model, X, y, weights, tol=1e-9, return_objective=True)
    found = dual_gap(model, rows, tol=1e-9, return_objective=True)
    assert found[1] == pytest.approx(known[1], rel=1e-12)
    assert found[0] == pytest.approx(known[0], abs=2e-9 * known[1])
    source.n_taken = 0
    gap = dual_gap(model, rows, tol=None)
    assert gap == pytest.approx(dual_gap(model, X, y, weights, tol=None), rel=1e-9)
    assert source.n_taken <= 9 * len(X)


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        (svm.LinearSVC("l1", C=0.1), 3),
        (svm.LinearSVC(C=0.1, multi_class="crammer_singer"), 3),
        (svm.LinearSVC(C=0.1, multi_class="crammer_singer"), 2),
        (linear_model.LogisticRegression(C=0.1, penalty="elasticnet", l1_ratio=0.3), 3),
        (svm.LinearSVR(C=0.1, epsilon=0.2), "numbers"),
        (linear_model.QuantileRegressor(quantile=0.8, alpha=0.1), "numbers"),
    ],
)
def test_bounds_of_drop_ins_are_in_their_units(model, kind):
    X, y, weights = data(kind if kind == 3 else 2, 300)
    y = X[:, 0] + 0.3 * X[:, 1] ** 2 if kind == "numbers" else y
    model.fit(X, y, weights)
    rows = RowBlocks(X, y, weights, block_size=70)
    far = 1.1 * model.coef_, model.intercept_
    known = dual_gap(far, X, y, weights, estimator=model, tol=1e-9)
    found, value = dual_gap(far, rows, estimator=model, tol=1e-9, return_objective=True)
    assert np.all(found > 1e-4 * value)
    assert_allclose(found, known, atol=2e-9 * np.max(value))


def test_drop_ins_that_no_blocks_are_for():
    X, y, _ = data(3)
    rows = RowBlocks(X, y)
    given = np.zeros((3, 5)), np.zeros(3)
    for model in (
        svm.LinearSVC(class_weight="balanced"),
        linear_model.LogisticRegression(C=np.inf),
    ):
        with pytest.raises(TypeError, match="does not take Dask collections"):
            dual_gap(given, rows, estimator=model)


def test_starts_callbacks_and_reports(capsys):
    X, y, _ = data()
    rows = RowBlocks(X, y, block_size=70)
    seen = []
    model = SubLBFGSLinearSVC(
        0.01, solver="sublbfgs", warm_start=True, verbose=1, callback=seen.append
    )
    model.fit(rows)
    assert "SubLBFGSLinearSVC: iteration    0" in capsys.readouterr().out
    n_first, objective = len(seen), model.objective_
    assert n_first > 2
    model.fit(rows)
    assert seen[n_first].objective == pytest.approx(objective, rel=1e-12)


def test_fits_of_l1_that_begin_where_losses_have_no_curvature():
    X, y, weights = data(3)
    rows = RowBlocks(X, y, weights, block_size=70)
    model = L1LogisticOWLQN(0.01, l1_ratio=0.3).fit(rows)
    expected = model.objective_
    model.fit(rows, coef_init=1.1 * model.coef_, intercept_init=model.intercept_)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert model.objective_ == pytest.approx(expected, rel=1e-3)


def queries():
    """Rows of 60 queries, whose columns differ in size and place."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(900, 5)) * np.geomspace(0.1, 5.0, 5)
    y = np.digitize(X @ rng.normal(size=5) + 3.0 * rng.normal(size=900), [-3.0, 4.0])
    X[:, 0] += 40.0
    return X, y.astype(float), np.sort(rng.integers(0, 60, 900))


RANKINGS = [
    {"loss": loss}
    for loss in ("pairwise", "pairwise-linear-squared", "pairwise-log", "ndcg", "mrr")
]
RANKINGS += [{"alpha": "auto"}, {"penalty": "l1", "alpha": 0.01}, {"solver": "bmrm"}]


@pytest.mark.parametrize(
    "given", RANKINGS, ids=lambda given: " ".join(map(str, given.values()))
)
def test_rankings_agree_with_fits_in_memory(given):
    """Queries are in several blocks, and the blocks in several queries."""
    X, y, qid = queries()
    ranker = BMRMRanker(**{"alpha": 1e-3, "tol": 1e-9, "max_iter": 3000, **given})
    if given.get("loss") in ("ndcg", "mrr"):
        ranker.set_params(tol=1e-3, solver="ls-bmrm")
    fitted = clone(ranker).fit(X, y, qid=qid)
    rows = RowBlocks(X, y, qid=qid, block_size=70)
    other = ranker.fit(rows)
    assert_allclose(other.objective_, fitted.objective_, rtol=max(1e-8, ranker.tol))
    assert other.dual_gap_ <= ranker.tol * other.objective_
    assert other.alpha_ == pytest.approx(fitted.alpha_)
    assert other.n_queries_ == fitted.n_queries_
    assert_same_predictions(other.predict(rows), other.predict(X))
    assert other.score(rows) == pytest.approx(other.score(X, y, qid=qid))


@pytest.mark.parametrize(
    "loss", ["pairwise", "pairwise-squared", "pairwise-log", "mrr"]
)
def test_sums_of_whole_queries_are_those_of_all_scores(loss, monkeypatch):
    """Blocks with whole queries, or cut between them, never bring scores together."""
    X, y, qid = queries()
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    weights = None if loss == "mrr" else weights
    ranker = BMRMRanker(1e-2, loss=loss, tol=1e-3 if loss == "mrr" else 1e-9)
    fitted = clone(ranker).fit(X, y, weights, qid=qid)
    monkeypatch.setattr(DesignOfParts, "forward", None)
    ends = np.searchsorted(qid, [0, 4, 4, 5, qid.max() + 1])
    parts = [slice(a, b) for a, b in pairwise(ends)]
    of_functions = RowBlocks([lambda r=r: X[r] for r in parts], y, weights, qid=qid)
    for rows in (of_functions, RowBlocks(X, y, weights, qid=qid, block_size=70)):
        other = clone(ranker).fit(rows)
        assert_allclose(other.objective_, fitted.objective_, rtol=max(1e-8, ranker.tol))
        assert other.dual_gap_ <= ranker.tol * other.objective_
        assert_same_predictions(other.predict(rows), other.predict(X))


def test_weights_and_orders_of_queries_in_blocks():
    """Rows of a query need not follow one another; weights are as in memory."""
    X, y, qid = queries()
    rng = np.random.default_rng(4)
    order = rng.permutation(len(y))
    X, y, qid = X[order], y[order], qid[order]
    weights, of_queries = rng.uniform(0.5, 2.0, (2, len(y)))
    given = {"qid": qid, "query_weight": of_queries[qid]}
    ranker = BMRMRanker(tol=1e-9)
    fitted = clone(ranker).fit(X, y, weights, **given)
    cuts = [slice(0, 90), slice(90, 90), slice(90, 100), slice(100, len(X))]
    for rows, others in (
        (RowBlocks(X, block_size=70), (y, weights)),
        (RowBlocks([lambda r=r: (X[r], y[r], weights[r]) for r in cuts]), ()),
    ):
        other = clone(ranker).fit(rows, *others, **given)
        assert_allclose(other.objective_, fitted.objective_, rtol=1e-8)
        assert other.alpha_ == pytest.approx(fitted.alpha_)
    with pytest.raises(ValueError, match="Rows of weight zero"):
        ranker.fit(RowBlocks(X), y, np.arange(len(y)), qid=qid)
    with pytest.raises(ValueError, match="have qid of their own"):
        ranker.fit(RowBlocks(X, y, qid=qid), qid=qid)
    with pytest.raises(ValueError, match="eval_set is not supported"):
        ranker.fit(RowBlocks(X, y), qid=qid, eval_set=[(X, y)], eval_qid=[qid])
    with pytest.raises(ValueError, match="score needs the relevances"):
        ranker.fit(X, y, qid=qid).score(RowBlocks(X), qid=qid)


def test_queries_are_a_column_of_parquet_files(tmp_path):
    pytest.importorskip("pyarrow")
    X, y, qid = queries()
    frame = pd.DataFrame(X, columns=list("abcde")).assign(grade=y, query=qid)
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=70)
    rows = RowBlocks.from_parquet(tmp_path / "rows.parquet", "grade", qid="query")
    squares = BMRMRanker(1e-3, loss="pairwise-squared", tol=1e-9)
    ranker = clone(squares).fit(rows)
    assert list(ranker.feature_names_in_) == list("abcde")
    fitted = clone(squares).fit(X, y, qid=qid)
    assert_allclose(ranker.objective_, fitted.objective_, rtol=1e-8)
    # A weight without a target is a weight.
    frame["weight"] = 1.0 + qid % 2
    frame.to_parquet(tmp_path / "rows.parquet", row_group_size=70)
    rows = RowBlocks.from_parquet(
        tmp_path / "rows.parquet",
        sample_weight="weight",
        qid="query",
        columns=list("abcde"),
    )
    ranker.fit(rows, y)
    fitted.fit(X, y, frame["weight"], qid=qid)
    assert_allclose(ranker.objective_, fitted.objective_, rtol=1e-8)


def test_what_needs_all_samples_is_refused():
    def never():
        raise AssertionError("a block has been read")

    rows = RowBlocks(never)
    for model, error, match in (
        (BMRMClassifier(loss="roc_area"), ValueError, "sums over samples: 'hinge'"),
        (BMRMRankerCV(), TypeError, "does not take"),
        (BMRMRanker(loss=Ndcg), ValueError, "need a loss by name"),
    ):
        with pytest.raises(error, match=match):
            model.fit(rows, None)
    with pytest.raises(AssertionError, match="has been read"):
        SubLBFGSLinearSVC().fit(rows)


def test_errors_say_what_was_given():
    X, y, weights = data()
    model = SubLBFGSLinearSVC(0.01)
    with pytest.raises(TypeError, match=r"an array with slices .* of type int"):
        RowBlocks(3)
    with pytest.raises(ValueError, match="two dimensions, got 1"):
        RowBlocks(y)
    with pytest.raises(ValueError, match="block_size must be"):
        RowBlocks(X, block_size=0)
    with pytest.raises(ValueError, match="The blocks have no y"):
        model.fit(RowBlocks(X))
    with pytest.raises(ValueError, match="X has 300, and y 299"):
        model.fit(RowBlocks(X, y[1:]))
    with pytest.raises(ValueError, match="X has 100, and y 99"):
        model.fit(RowBlocks([X[:100], X[100:]], [y[:99], y[99:]]))
    with pytest.raises(ValueError, match="have y of their own"):
        model.fit(RowBlocks(X, y), y)
    with pytest.raises(ValueError, match="have y of their own"):
        model.fit(RowBlocks([lambda: (X, y)]), y)
    with pytest.raises(ValueError, match="a tuple of 5"):
        model.fit(RowBlocks(lambda: (X, y, weights, weights, y)))
    with pytest.raises(ValueError, match=r"same number of columns, 5; .* 4, 5"):
        model.fit(RowBlocks([X[:100], X[100:, :4]], y))
    with pytest.raises(ValueError, match=r"contains NaN"):
        model.fit(RowBlocks(np.where(X[-1] == X, np.nan, X), y))
    with pytest.raises(ValueError, match="Negative values"):
        model.fit(RowBlocks(X, y, weights - 0.5))
    with pytest.raises(ValueError, match="X has no rows"):
        model.fit(RowBlocks(X[:0], y[:0]))
    with pytest.raises(ValueError, match="only one class"):
        model.fit(RowBlocks(X, np.full(N, "a")))
    frame = pd.DataFrame(X, columns=list("vwxyz"))
    with pytest.raises(ValueError, match="same columns in the same order"):
        model.fit(RowBlocks([lambda: frame, lambda: frame[list("vwxzy")]], [*y, *y]))
    sizes = iter([N, N - 1])
    with pytest.raises(ValueError, match="has returned 300 rows, and then 299"):
        model.fit(RowBlocks(lambda: X[: next(sizes)], y))
    assert not hasattr(model, "coef_")


BLOCKWISE = ("predict", "decision_function", "predict_proba", "score_samples")


@pytest.mark.parametrize(
    "estimator", linear_estimators(), ids=lambda e: type(e).__name__
)
def test_models_of_data_in_memory_predict_on_blocks(estimator):
    X, y, _ = data(n=60)
    X[:, 2] -= 1000.0
    number = np.searchsorted(np.unique(y), y)
    if type(estimator) is MultilabelHingeClassifier:
        estimator.fit(X, np.eye(2, dtype=int)[number])
    elif isinstance(estimator, (BMRMRanker, ranking.Ranker)):
        estimator.fit(X, number, group=[30, 30])
    elif type(estimator) is BMRMRankerCV:
        estimator.fit(X, number, group=[12] * 5)
    elif type(estimator) is linear_model.GammaRegressor:
        estimator.fit(X, number + 1.0)
    else:
        estimator.fit(X, number)
    rows = RowBlocks([lambda i=i: X[i : i + 25] for i in range(0, 60, 25)])
    n = 0
    for name in BLOCKWISE:
        if hasattr(estimator, name):
            n += 1
            result = getattr(estimator, name)(rows)
            assert_allclose(result, getattr(estimator, name)(X), rtol=1e-12, atol=1e-12)
    assert n


def test_files_of_other_kinds_are_named(tmp_path):
    X = np.ones((4, 2))
    np.savetxt(tmp_path / "X.csv", X)
    np.savez(tmp_path / "X.npz", X)
    (tmp_path / "empty.npy").touch()
    np.save(tmp_path / "objects.npy", X.astype(object))
    for name in ("X.csv", "X.npz", "empty.npy", "objects.npy"):
        for given in ((tmp_path / name,), (X, str(tmp_path / name))):
            with pytest.raises(ValueError, match=rf"{name}' is not an .npy file .* pa"):
                RowBlocks(*given)


@pytest.mark.parametrize("n_times", [0, 1, 4, 5])
def test_iterators_are_no_functions_of_blocks(n_times):
    """They end at one read of many, of which some are inside of generators."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] > 0.0, 1, 0)
    blocks = iter([(X, y)] * n_times)
    with pytest.raises(ValueError, match="Blocks are read several times"):
        SubLBFGSLinearSVC().fit(RowBlocks(lambda: next(blocks)))
    fitted = SubLBFGSLinearSVC().fit(X, y)
    with pytest.raises(ValueError, match="raised StopIteration"):
        fitted.predict(RowBlocks(lambda: next(blocks)))

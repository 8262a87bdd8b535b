"""The untuned online method on the columns of sparse batches alone."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from _door import (
    BINARY_LOSSES,
    AdaptiveLBFGS,
    DampedSoftmax,
    LinearBatch,
    OfScores,
    Penalty,
)
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from sklearn_subqn import (
    L1LogisticOWLQN,
    OnlineLBFGSClassifier,
    OnlineLBFGSRegressor,
)
from sklearn_subqn._core.online import sparse_columns as module
from sklearn_subqn._core.online.auto_metric import make_metric
from sklearn_subqn._core.online.batch import SparseRows
from sklearn_subqn._core.online.sparse_columns import (
    Columns,
    ColumnState,
    ColumnwiseLBFGS,
    FittedByColumns,
)


@pytest.fixture
def always(monkeypatch):
    """Let all sparse batches count as wide."""
    monkeypatch.setattr(module, "_WIDE", -1)
    monkeypatch.setattr(module, "_WIDE_SHARE", -1)


class AsColumnwise(AdaptiveLBFGS):
    """The method for all columns, which centers those that the other one does."""

    least_share = module._FREQUENT


def batch_of(
    rng,
    n=20,
    d=12,
    density=0.2,
    k=None,
    alpha=0.01,
    intercept=True,
    offset=0.0,
    l1_ratio=0.0,
):
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < density) + 0.0
    if offset:
        X[:, 0] = offset + rng.standard_normal(n)
    X = sparse.csr_array(X)
    targets = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    if k:
        targets = rng.integers(k, size=n).astype(float)
    loss = DampedSoftmax() if k else OfScores(BINARY_LOSSES["log_loss"])
    weights = np.full(n, 1.0 / n)
    return LinearBatch(
        X, targets, weights, loss, Penalty(alpha, l1_ratio), intercept, k
    )


def texts(n=6000, d=40_000, n_words=300, n_classes=2, seed=0, length=10):
    """Return sparse rows over few of many columns, the first ones most frequent."""
    rng = np.random.default_rng(seed)
    p = 1.0 / np.arange(1, n_words + 1)
    words = rng.choice(n_words, size=(n, length), p=p / p.sum())
    places = rng.choice(d, n_words, replace=False)
    rows = np.repeat(np.arange(n), length)
    X = sparse.csr_array((np.ones(length * n), (rows, places[words.ravel()])), (n, d))
    X.sum_duplicates()
    W = np.zeros((d, n_classes))
    W[places] = rng.standard_normal((n_words, n_classes))
    return X, np.argmax(X @ W + rng.gumbel(size=(n, n_classes)), axis=1)


@pytest.mark.parametrize("seed", range(5))
def test_tables_are_arrays_with_some_rows_changed(seed):
    rng = np.random.default_rng(seed)
    plain = rng.standard_normal((100, 3))
    table = Columns(plain.copy())
    kept = []
    for i in range(60):
        rows = np.flatnonzero(rng.random(100) < 0.05)
        values, clock = rng.standard_normal(len(rows)), (float(i), 2.0 * i)
        if i % 7 == seed:
            kept.append((table, plain.copy()))
        table, sums = table.put(rows, [values.copy()], clock)
        size = np.abs(values)
        expected = np.sum(size**2), size.sum(), size.max(initial=0.0)
        assert_allclose(sums, expected)
        plain[rows, 0], plain[rows, 1:] = values, clock
        asked = np.flatnonzero(rng.random(100) < 0.5)
        assert_array_equal(table.whole()[asked], plain[asked])
        assert_array_equal(table.whole(), plain)
    for earlier, content in kept[::-1]:
        assert_array_equal(earlier.whole(), content)
        rows = np.array([3, 5])
        other, _ = earlier.put(rows, [np.zeros(2)], (0.0, 0.0))
        assert_array_equal(earlier.whole(), content)
        content[rows] = 0.0
        assert_array_equal(other.whole(), content)
    assert_array_equal(table.whole(), plain)


def test_earlier_tables_note_no_more_than_a_table_has():
    table = first = Columns(np.zeros((100, 3)))
    rows = np.arange(10)
    for _ in range(30):
        table, _ = table.put(rows, [np.ones(10)], (1.0, 1.0))
    noted, later = 0, first
    while later._next is not None:
        later, changed, *_ = later._next
        noted += len(changed)
    assert 0 < noted <= 100


def test_entries_of_own_columns_make_the_batch():
    rng = np.random.default_rng(0)
    X = sparse.random_array((5, 12), density=0.2, format="csr", rng=rng)
    others = np.array([2, 7])
    columns, own = SparseRows.of(X).on_own_columns(others)
    assert_array_equal(columns, np.union1d(X.indices, others))
    assert_allclose(own @ np.eye(len(columns)), X.toarray()[:, columns])


@pytest.mark.parametrize("k", [None, 3])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.usefixtures("always")
def test_with_all_columns_steps_are_those_of_the_whole(k, intercept):
    rng = np.random.default_rng(0)
    one, other = AsColumnwise(memory=0), ColumnwiseLBFGS()
    w0 = np.zeros(12 * (k or 1) + (k or 1) * intercept)
    state, by_columns = one.start(w0), other.start(w0)
    # From then on the metric of the whole is no longer made anew for each batch.
    for _ in range(4):
        batch = batch_of(rng, density=1.0, k=k, intercept=intercept)
        state, by_columns = one.step(batch, state), other.step(batch, by_columns)
        assert isinstance(by_columns, ColumnState)
        whole = by_columns.whole()
        assert_allclose(by_columns.value, state.value)
        assert_allclose(whole.iterate, state.iterate)
        assert_allclose(whole.w, state.w)
        assert_allclose(whole.moments.hxx, state.moments.hxx)


@pytest.mark.parametrize("k", [None, 3])
@pytest.mark.usefixtures("always")
def test_columns_without_entries_miss_nothing_of_a_step(k):
    rng = np.random.default_rng(0)
    one, other = AsColumnwise(memory=0), ColumnwiseLBFGS()
    w0 = np.zeros(13 * (k or 1))
    state, by_columns = one.start(w0), other.start(w0)
    for t in range(40):
        batch = batch_of(rng, 4, density=0.15, k=k, alpha=0.0, offset=5.0)
        # The metric of the whole is made anew for each batch, too.
        state = replace(one.step(batch, state), metric=None)
        by_columns = other.step(batch, by_columns)
        if t > 1:
            # The column with an offset, and no other.
            assert_array_equal(by_columns.frequent, [0])
        assert_allclose(by_columns.whole().iterate, state.iterate, atol=1e-9)


@pytest.mark.parametrize("size", [1, 3, 10])
def test_small_batches_of_wide_rows_do_about_as_well_as_larger_ones(size):
    X, y = texts(4000, n_words=5000, length=60)
    # A column with an entry in each row, far from zero.
    offset = 100.0 + np.random.default_rng(1).normal(size=(4000, 1))
    X = sparse.csr_array(sparse.hstack([X / 8.0, offset]))
    scores = []
    for rows in (size, 200):
        model = OnlineLBFGSClassifier(batch_size=rows)
        model.partial_fit(X[:3000], y[:3000], [0, 1])
        scores.append(model.score(X[3000:], y[3000:]))
    assert scores[0] > scores[1] - 0.04


@pytest.mark.parametrize("k", [None, 3])
@pytest.mark.parametrize("l1_ratio", [0.5, 1.0])
@pytest.mark.usefixtures("always")
def test_thresholds_of_columns_without_entries_are_made_up_for(k, l1_ratio):
    rng = np.random.default_rng(0)
    one, other = AsColumnwise(memory=0), ColumnwiseLBFGS()
    w0 = np.zeros(13 * (k or 1))
    state, by_columns = one.start(w0), other.start(w0)
    n_zero = 0
    for t in range(60):
        options = {"k": k, "alpha": 0.02, "offset": 5.0, "l1_ratio": l1_ratio}
        batch = batch_of(rng, 8, density=0.4, **options)
        state = replace(one.step(batch, state), metric=None)
        by_columns = other.step(batch, by_columns)
        whole = by_columns.whole()
        # Absent columns take the way of all steps at once, with the metric of its end.
        assert_allclose(whole.iterate, state.iterate, atol=0.02 if t > 5 else 0.2)
        n_zero += np.count_nonzero(whole.w == 0.0)
        coef = by_columns.coefficients(np.arange(12)).ravel()
        assert_array_equal(coef, whole.w[: len(coef)])
        assert_array_equal(by_columns.w, whole.w)
    assert n_zero > 60


def test_rare_columns_take_steps_of_batches_that_have_them():
    # Many rare columns, of which few matter.
    X, y = texts(6000, n_words=3000, length=30)
    used = np.unique(X.indices)
    exact = L1LogisticOWLQN(1e-4, tol=1e-2).fit(X[:, used], y)
    for rows in (100, 300):
        model = OnlineLBFGSClassifier(alpha=1e-4, l1_ratio=1.0, batch_size=rows)
        for _ in range(3):
            model.partial_fit(X, y, [0, 1])
        log_p = model.predict_log_proba(X)[np.arange(6000), y]
        objective = -log_p.mean() + 1e-4 * np.abs(model.coef_).sum()
        assert objective < 1.5 * exact.objective_
        assert np.count_nonzero(model.coef_) < 5 * np.count_nonzero(exact.coef_)


@pytest.mark.usefixtures("always")
def test_columns_make_up_for_batches_that_they_missed():
    rng = np.random.default_rng(0)
    method = ColumnwiseLBFGS()
    state, iterates = method.start(np.zeros(13)), []
    for _ in range(30):
        state = method.step(batch_of(rng, 6, density=0.05, alpha=0.0), state)
        whole = state.whole()
        iterates.append(whole.iterate)
        again = ColumnState.of(whole, 12, Penalty(0.0)).whole()
        assert_array_equal(again.iterate, whole.iterate)
        assert_array_equal(again.w, whole.w)
        if state.last.average.n == 1:
            iterates = iterates[-1:]
    t = np.arange(1.0, len(iterates) + 1.0)
    average = np.average(iterates, axis=0, weights=t * (t + 1) * (t + 2))
    assert_allclose(whole.w, average, atol=1e-12)


@pytest.mark.usefixtures("always")
def test_untouched_coefficients_shrink_like_those_of_the_whole():
    method = ColumnwiseLBFGS()
    rng = np.random.default_rng(0)
    state = method.step(batch_of(rng, density=1.0), method.start(np.zeros(13)))
    before = state.whole()
    empty = LinearBatch(
        sparse.csr_array((20, 12)),
        np.where(rng.random(20) < 0.3, 1.0, -1.0),
        np.full(20, 0.05),
        OfScores(BINARY_LOSSES["log_loss"]),
        Penalty(0.01),
        True,
    )
    after = method.step(empty, state)
    assert after.last.length > 0.0
    whole = after.whole()
    scale = make_metric(whole.moments, True, 0.01, module._FREQUENT).scale
    shrink = np.exp(-0.01 * after.last.length * scale)
    assert_allclose(whole.iterate[:12], shrink * before.iterate[:12])


@pytest.mark.usefixtures("always")
def test_steps_leave_the_old_state_as_it_was():
    rng = np.random.default_rng(0)
    method = ColumnwiseLBFGS()
    state = method.start(np.zeros(13))
    for _ in range(25):
        before = copy.deepcopy(state)
        after = method.step(batch_of(rng), state)
        assert pickle.dumps(before) == pickle.dumps(state)
        state = after


@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_pass_over_wide_data_comes_near_the_optimum(n_classes):
    X, y = texts(20_000, n_classes=n_classes)
    used = np.unique(X.indices)
    exact = L1LogisticOWLQN(1e-3, l1_ratio=1e-3, tol=1e-3).fit(X[:, used], y)
    model = OnlineLBFGSClassifier(alpha=1e-3)
    for start in range(0, 20_000, 100):
        rows = slice(start, start + 100)
        model.partial_fit(X[rows], y[rows], classes=np.arange(n_classes))
    assert isinstance(model._state, ColumnState)
    assert model.coef_.shape == (1 if n_classes == 2 else 3, 40_000)
    assert np.count_nonzero(model.coef_) <= len(used) * len(model.coef_)
    log_p = model.predict_log_proba(X)[np.arange(20_000), y]
    objective = -log_p.mean() + 0.5e-3 * np.square(model.coef_).sum()
    assert objective < 1.02 * exact.objective_
    assert model.score(X, y) > exact.score(X[:, used], y) - 0.005


def test_fit_and_warm_starts_of_wide_data():
    X, y = texts()
    used = np.unique(X.indices)
    exact = L1LogisticOWLQN(1e-3, l1_ratio=1e-3).fit(X[:, used], y)
    model = OnlineLBFGSClassifier(alpha=1e-3, batch_size=100, warm_start=True)
    model.partial_fit(X, y, [0, 1])
    assert isinstance(model._state, ColumnState)
    before = model.coef_
    # The first gradient is but noise here.
    model.set_params(tol=1.0).fit(X, y)
    assert model.objective_ < 1.05 * exact.objective_
    assert np.abs(model.coef_ - before).max() < 0.5 * np.abs(before).max()
    numbers = OnlineLBFGSRegressor(alpha=1e-3, batch_size=100)
    numbers.partial_fit(X, y)
    assert numbers.coef_.shape == (40_000,)
    assert numbers.score(X, y) > 0.1


@pytest.mark.parametrize("k", [None, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_projected_gradients_have_the_same_norm(k, intercept):
    rng = np.random.default_rng(0)
    one, other = AsColumnwise(memory=0), FittedByColumns()
    w0 = np.zeros(12 * (k or 1) + (k or 1) * intercept)
    state, by_columns = one.start(w0), other.start(w0)
    options = {"k": k, "alpha": 0.1, "intercept": intercept}
    for _ in range(4):
        batch = batch_of(rng, density=1.0, **options)
        state, by_columns = one.step(batch, state), other.step(batch, by_columns)
        norm = np.linalg.norm(one.residual(state, 0.0))
        assert np.linalg.norm(by_columns.residual) == pytest.approx(norm)
    # The penalty's gradients in two batches without a column are added later.
    for _ in range(2):
        by_columns = other.step(batch_of(rng, density=0.0, **options), by_columns)
    batch, whole = batch_of(rng, density=1.0, **options), by_columns.whole()
    state, by_columns = one.step(batch, whole), other.step(batch, by_columns)
    gradient, c = state.gradient.copy(), batch.n_coef
    gradient[:c] += 2.0 * batch.penalty.l2 * whole.iterate[:c]
    norm = np.linalg.norm(state.metric.root(state.metric.diagonal(gradient)))
    assert np.linalg.norm(by_columns.residual) == pytest.approx(norm)


def test_projections_have_room_for_all_intercepts(monkeypatch):
    monkeypatch.setattr(FittedByColumns, "projected", 2)
    method, rng = FittedByColumns(), np.random.default_rng(0)
    state = method.step(batch_of(rng, k=5), method.start(np.zeros(65)))
    assert len(state.residual) == 8
    assert np.linalg.norm(state.residual) > 0.0


def test_coefficients_of_earlier_batches_beyond_single_precision():
    rows = np.arange(400)
    first = rows < 200
    entries = np.where(first, 1e-30, 1.0), (rows, np.where(first, 0, rows))
    X = sparse.csr_array(entries, (400, 40_000), dtype=np.float32)
    model = OnlineLBFGSRegressor(alpha=0.0, batch_size=10, fit_intercept=False)
    with pytest.raises(ValueError, match="not finite as float32"):
        model.partial_fit(X, np.where(first, 1e10, 1.0))


@pytest.mark.parametrize(("d", "n_words"), [(12_000, 8000), (80_000, 40_000)])
def test_fits_on_own_columns_come_near_the_optimum(d, n_words):
    X, y = texts(3000, d, n_words, n_classes=4)
    used = np.unique(X.indices)
    exact = L1LogisticOWLQN(1e-3, l1_ratio=1e-3, tol=1e-2).fit(X[:, used], y)
    model = OnlineLBFGSClassifier(alpha=1e-3, batch_size=100, tol=0.1).fit(X, y)
    assert isinstance(model._state, ColumnState)
    assert model.objective_ < 1.05 * exact.objective_
    # The fit leaves out columns without entries where most columns have none.
    assert (model._columns is None) == (4 * len(used) > d)
    few, scores = X[:20], model.decision_function(X[:20])
    assert_allclose(scores, few @ model.coef_.T + model.intercept_, rtol=1e-6)
    before = model.coef_.copy()
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.coef_, before)
    model.partial_fit(X[:100], y[:100])
    assert 0.0 < np.abs(model.coef_ - before).max() < 0.5 * np.abs(before).max()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("l1_ratio", [0.0, 0.3, 1.0])
def test_streams_of_changing_batches_can_be_pickled(dtype, fit_intercept, l1_ratio):
    X, y = texts(2500)
    X = X.astype(dtype)
    one = OnlineLBFGSClassifier(fit_intercept=fit_intercept, l1_ratio=l1_ratio)
    other = OnlineLBFGSClassifier(fit_intercept=fit_intercept, l1_ratio=l1_ratio)
    forms = set()
    for start in range(0, 2500, 50):
        rows = slice(start, start + 50)
        # Sometimes rows that touch all columns, or none.
        data = X[rows] * (0.0 if start % 600 == 300 else 1.0)
        data.eliminate_zeros()
        if start % 500 == 250:
            data = data.toarray()
        one.partial_fit(data, y[rows], classes=[0, 1])
        other.partial_fit(data, y[rows], classes=[0, 1])
        other = pickle.loads(pickle.dumps(other))
        forms.add(type(one._state))
    assert len(forms) == 2
    assert_array_equal(one.coef_, other.coef_)
    assert_array_equal(one.intercept_, other.intercept_)
    assert one.coef_.dtype == one.intercept_.dtype == dtype
    assert one.score(X, y) > 0.7


@pytest.mark.parametrize("n_classes", [2, 3])
def test_wide_models_predict_few_rows_without_all_coefficients(n_classes):
    X, y = texts(600, d=2**17, n_classes=n_classes)
    model = OnlineLBFGSClassifier(batch_size=100)
    model.partial_fit(X, y, np.arange(n_classes))
    few = X[:3]
    scores, plain = model.decision_function(few), model.decision_function(X)[:3]
    assert "_coef" not in vars(model)
    assert_allclose(scores, plain, rtol=1e-12)
    assert_allclose(scores, np.squeeze(few @ model.coef_.T + model.intercept_))
    assert model.coef_ is model.coef_
    before = model.coef_.copy()
    model.partial_fit(X[:100], y[:100])
    assert np.any(model.coef_ != before)


def test_pickles_hold_the_columns_that_had_entries():
    X, y = texts(600, d=2**20, n_words=300)
    model = OnlineLBFGSClassifier(batch_size=100).partial_fit(X, y, [0, 1])
    assert model.coef_.nbytes == 2**23
    pickled = pickle.dumps(model)
    # Six numbers and an index for each.
    assert len(pickled) < 300 * 52 + 20_000
    assert_array_equal(pickle.loads(pickled).coef_, model.coef_)


def test_wide_streams_that_change_are_learned_anew():
    X, y = texts(8000, length=30)
    y = np.where(np.arange(8000) < 5000, y, 1 - y)
    model = OnlineLBFGSClassifier(batch_size=50).partial_fit(X, y, [0, 1])
    other = OnlineLBFGSClassifier(batch_size=50).partial_fit(X[:5000], y[:5000], [0, 1])
    other = pickle.loads(pickle.dumps(other)).partial_fit(X[5000:], y[5000:])
    assert isinstance(model._state, ColumnState)
    assert model._state.last.began > 100
    assert_array_equal(model.coef_, other.coef_)
    fresh = OnlineLBFGSClassifier(batch_size=50)
    fresh.partial_fit(X[5000:], y[5000:], [0, 1])
    assert model.score(X[5000:], y[5000:]) > fresh.score(X[5000:], y[5000:]) - 0.02
    # Another penalty in mid-stream.
    n_nonzero = np.count_nonzero(model.coef_)
    model.set_params(alpha=1e-3, l1_ratio=1.0).partial_fit(X[5000:], y[5000:])
    assert np.count_nonzero(model.coef_) < 0.9 * n_nonzero
    assert model.score(X[5000:], y[5000:]) > 0.7


def test_failures_leave_wide_models_as_they_were(monkeypatch):
    X, y = texts(600)
    model = OnlineLBFGSClassifier(batch_size=100).partial_fit(X, y, [0, 1])
    coef, t = model.coef_, model.t_
    step = ColumnwiseLBFGS.step

    def fails(method, batch, state):
        # The first five batches succeed.
        if state.n_steps == t + 5:
            raise FloatingPointError("so it is")
        return step(method, batch, state)

    monkeypatch.setattr(ColumnwiseLBFGS, "step", fails)
    with pytest.raises(ValueError, match=r"diverged at batch 12: so it is"):
        model.partial_fit(X, y)
    assert model.t_ == t
    assert_array_equal(model.coef_, coef)


def test_an_unfitted_model_has_no_coefficients():
    assert not hasattr(OnlineLBFGSClassifier(), "coef_")

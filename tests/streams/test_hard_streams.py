"""Streams as they come: row by row, sorted by class, of one class or count at first."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss

from sklearn_subqn import OnlineLBFGSClassifier, OnlineLBFGSRegressor
from sklearn_subqn._core.online import res
from sklearn_subqn._core.steps.quasi_newton import Pair

LOSSES = ["log_loss", "hinge", "squared_hinge", "modified_huber"]


def noisy(seed, n=4000, d=10):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ rng.normal(size=d) + rng.normal(size=n)


@pytest.mark.parametrize("edges", [[0.0], [-1.0, 1.0]], ids=["two", "three"])
@pytest.mark.parametrize("seed", range(3))
def test_batches_of_one_row_do_about_as_well_as_larger_ones(edges, seed):
    X, s = noisy(seed)
    y = np.digitize(s, edges)
    losses = []
    for batch_size in (1, 100):
        model = OnlineLBFGSClassifier(batch_size=batch_size)
        model.partial_fit(X, y, classes=range(len(edges) + 1))
        losses.append(log_loss(y, model.predict_proba(X)))
    assert losses[0] < losses[1] + 0.03


@pytest.mark.parametrize("sizes", [(5,), (20,), (20, 20), (60,) * 12], ids=str)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", LOSSES)
def test_first_batches_of_one_class_do_not_make_rounding_count(loss, n_classes, sizes):
    """All of their rows are at a kink, or have no slope, but for rounding errors."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        w, batches = rng.normal(size=(8, n_classes)), []
        for n in (*sizes, 200, 30):
            X = rng.normal(size=(n, 8)) * (rng.random((n, 8)) < 0.5)
            s = X @ w + 0.3 * rng.normal(size=(n, n_classes))
            one_class = len(batches) < len(sizes)
            batches.append((X, np.ones(n) if one_class else np.argmax(s, axis=1)))
        assert_same_streams(
            OnlineLBFGSClassifier(loss=loss), batches, classes=range(n_classes)
        )


@pytest.mark.parametrize("loss", ["squared_error", "huber", "quantile"])
def test_first_batches_of_one_number_do_not_make_rounding_count(loss):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        batches = [(rng.normal(size=(20, 8)), np.full(20, 0.1)) for _ in range(2)]
        X = rng.normal(size=(200, 8))
        batches.append((X, X @ rng.normal(size=8)))
        assert_same_streams(OnlineLBFGSRegressor(loss=loss), batches)


def assert_same_streams(model, batches, **options):
    """Rounding X, and its format, change the model by no more than rounding."""
    coefs = []
    for change in (
        lambda X: X,
        lambda X: X * (1.0 + 1e-15),
        lambda X: X * (1.0 - 4e-14),
        sparse.csr_array,
    ):
        learned = clone(model)
        for X, y in batches:
            learned.partial_fit(change(X), y, **options)
        coefs.append(np.append(learned.coef_, learned.intercept_))
    for other in coefs[1:]:
        assert_allclose(other, coefs[0], rtol=0.0, atol=1e-8 * np.abs(coefs[0]).max())


@pytest.mark.parametrize("loss", LOSSES)
def test_batches_of_one_class_do_not_carry_the_intercept_away(loss):
    rng = np.random.default_rng(0)
    w = rng.normal(size=10)
    model = OnlineLBFGSClassifier(loss=loss)

    def rows(n):
        X = rng.normal(size=(n, 10))
        return X, X @ w + 0.3 * rng.normal(size=n) > 0.0

    for k in range(4):
        for _ in range(50):
            X, y = rows(300)
            own = y == (k % 2 == 1)
            model.partial_fit(X[own], y[own], classes=[False, True])
        assert abs(model.intercept_[0]) < 20.0
    model.partial_fit(*rows(15_000))
    assert model.score(*rows(5000)) > 0.95


@pytest.mark.parametrize("loss", LOSSES)
def test_a_stream_may_begin_with_one_class(loss):
    rng = np.random.default_rng(1)
    model = OnlineLBFGSClassifier(loss=loss)
    for t in range(130):
        X = rng.normal(size=(100, 3))
        y = X[:, 0] > 0.0 if t >= 50 else np.zeros(100, dtype=bool)
        model.partial_fit(X, y, classes=[False, True])
    assert model.score(X, y) > 0.9


def test_a_stream_of_counts_may_begin_with_zeros():
    rng = np.random.default_rng(2)
    model = OnlineLBFGSRegressor(loss="poisson")
    for t in range(160):
        X = rng.normal(size=(100, 3))
        y = rng.poisson(np.exp(X[:, 0])) if t >= 60 else np.zeros(100)
        model.partial_fit(X, y)
    X = rng.normal(size=(5000, 3))
    assert np.corrcoef(np.log(model.predict(X)), X[:, 0])[0, 1] > 0.95


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("scale", [1e20, 1e-25])
def test_squares_of_float32_neither_overflow_nor_vanish(container, scale):
    X, s = noisy(3)
    X = np.asarray(X * scale, dtype=np.float32)
    y = (s > 0.0).astype(int)
    model = OnlineLBFGSClassifier(alpha=0.0, max_iter=5, tol=0.1).fit(container(X), y)
    assert model.score(X, y) > 0.85


def test_batches_with_entries_in_parts_stay_as_they_are():
    # The entries of a row are added up: each of them is 2.
    parts = sparse.csr_array(
        (np.ones(6), [0, 0, 1, 1, 0, 0], [0, 2, 4, 6]), shape=(3, 2)
    )
    for array in (parts.data, parts.indices, parts.indptr):
        array.flags.writeable = False
    y = [0, 1, 1]
    model = OnlineLBFGSClassifier().partial_fit(parts, y, classes=[0, 1])
    assert parts.nnz == 6
    dense = OnlineLBFGSClassifier().partial_fit(parts.toarray(), y, classes=[0, 1])
    assert_allclose(model.coef_, dense.coef_)


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_weights_of_a_fit_and_of_batches_after_it_have_one_unit(unit):
    rng = np.random.default_rng(4)
    X, later = rng.normal(size=(512, 5)), rng.normal(size=(256, 5))
    w = rng.normal(size=5)
    coefs = []
    for factor in (1.0, unit):
        model = OnlineLBFGSRegressor(random_state=0)
        model.fit(X, X @ w, sample_weight=np.full(512, factor))
        model.partial_fit(later, -later @ w, sample_weight=np.full(256, factor))
        coefs.append(model.coef_)
    assert_allclose(coefs[1], coefs[0], rtol=1e-6)


def test_class_weights_count_in_batches_after_a_fit():
    X, s = noisy(5, n=600)
    y = (s > 0.0).astype(int)
    coefs = []
    # The same weights, by class or by row.
    for class_weight, weights in (({0: 3.0}, None), (None, np.where(y == 0, 3.0, 1.0))):
        model = OnlineLBFGSClassifier(class_weight=class_weight, random_state=0)
        first, rest = (
            (None, None) if weights is None else (weights[:400], weights[400:])
        )
        model.fit(X[:400], y[:400], sample_weight=first)
        model.partial_fit(X[400:], y[400:], sample_weight=rest)
        coefs.append(model.coef_)
    assert_allclose(coefs[1], coefs[0], rtol=1e-9)


def test_rows_of_weight_zero_count_as_missing_in_batches():
    X, s = noisy(6, n=300)
    y = (s > 0.0).astype(int)
    weights = np.concatenate([np.zeros(100), np.ones(200)])
    with_zeros = OnlineLBFGSClassifier().partial_fit(X, y, [0, 1], weights)
    without = OnlineLBFGSClassifier().partial_fit(X[100:], y[100:], [0, 1])
    assert with_zeros.t_ == without.t_ == 1
    assert_array_equal(with_zeros.coef_, without.coef_)


def test_a_stream_begins_with_the_first_rows_of_positive_weight():
    X, s = noisy(7, n=200)
    late = OnlineLBFGSRegressor()
    late.partial_fit(X[:50], np.full(50, 1e6), sample_weight=np.zeros(50))
    assert_array_equal(late.predict(X), np.zeros(200))
    assert late.t_ == 0
    late.partial_fit(X, s)
    assert_array_equal(late.coef_, OnlineLBFGSRegressor().partial_fit(X, s).coef_)


def test_warm_starts_are_of_the_same_columns():
    rng = np.random.default_rng(8)
    X = pd.DataFrame(rng.normal(size=(500, 2)), columns=["a", "b"])
    target = 5.0 * X["a"]
    model = OnlineLBFGSRegressor(warm_start=True, random_state=0).fit(X, target)
    model.fit(X[["b", "a"]], target)
    fresh = OnlineLBFGSRegressor(random_state=0).fit(X[["b", "a"]], target)
    assert model.loss_curve_ == fresh.loss_curve_


@pytest.mark.parametrize("Estimator", [OnlineLBFGSClassifier, OnlineLBFGSRegressor])
def test_too_few_rows_to_stop_early_are_an_error(Estimator):
    X = np.random.default_rng(9).normal(size=(10, 5))
    with pytest.raises(ValueError, match=r"holds out validation_fraction=0\.1 of 10"):
        Estimator(early_stopping=True).fit(X, np.arange(10) % 2)


def test_numbers_for_labels_are_told_apart_from_new_labels():
    X, s = noisy(10)
    model = OnlineLBFGSClassifier()
    with pytest.raises(ValueError, match="continuous"):
        model.partial_fit(X, s, classes=[0, 1])
    with pytest.raises(ValueError, match=r"classes 2, 3, 4, 5, 6 and 1993 more that"):
        model.partial_fit(X, np.arange(4000) // 2, classes=[0, 1])
    model.partial_fit(X, s > 0.0, classes=[False, True])
    with pytest.raises(ValueError, match="not the same as on last call"):
        model.partial_fit(X, s > 0.0, classes=[False])


@pytest.mark.parametrize("classes", [2, "ab", [[0, 1]]])
def test_classes_that_are_no_sequence(classes):
    X, s = noisy(10)
    with pytest.raises(ValueError, match="must be a sequence of labels"):
        OnlineLBFGSClassifier().partial_fit(X, s > 0.0, classes=classes)


@pytest.mark.parametrize("classes", [[0, 1, np.nan], ["a", "b", None]])
def test_classes_with_missing_entries(classes):
    X, s = noisy(10)
    with pytest.raises(ValueError, match="classes must not contain NaN, None or NA"):
        OnlineLBFGSClassifier().partial_fit(X, s > 0.0, classes=classes)


def test_a_set_of_classes():
    X, s = noisy(10)
    model = OnlineLBFGSClassifier().partial_fit(X, s > 0.0, classes={True, False})
    assert model.classes_.tolist() == [False, True]


@pytest.mark.parametrize("size", [1e90, 1e-90])
def test_products_of_weights_out_of_bounds(size):
    X, s = noisy(10)
    model = OnlineLBFGSClassifier(class_weight=dict.fromkeys([0, 1], size**2))
    with pytest.raises(ValueError, match="class_weight must be zero or between"):
        model.partial_fit(X, s > 0.0, classes=[0, 1])
    model.set_params(class_weight=dict.fromkeys([0, 1], size))
    with pytest.raises(ValueError, match="sample_weight times class_weight must be"):
        model.partial_fit(X, s > 0.0, classes=[0, 1], sample_weight=size)
    fitted = model.fit(X, s > 0.0, sample_weight=size)
    expected = OnlineLBFGSClassifier().fit(X, s > 0.0)
    np.testing.assert_allclose(fitted.coef_, expected.coef_)


def test_a_singular_estimate_of_the_hessian_is_a_divergence(monkeypatch):
    """Where steps hardly change the gradient, by rounding, delta does not help."""

    def nearly_orthogonal(batch, w, *args):
        dw, dg = np.zeros((2, w.size))
        dw[0] = dg[1] = 1.0
        return Pair(dw, dg, 2.0**-70)

    monkeypatch.setattr(res, "corrected_pair", nearly_orthogonal)
    X, y = noisy(0, n=2)
    model = OnlineLBFGSRegressor(solver="res-lbfgs")
    model.partial_fit(X[:1], y[:1])
    with pytest.raises(ValueError, match=r"diverged at batch 2: .*has no inverse"):
        model.partial_fit(X[1:2], y[1:2])


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("loss", ["squared_error", "huber", "quantile"])
def test_targets_beyond_single_precision(method, loss):
    X, y = noisy(0, n=200)
    model = OnlineLBFGSRegressor(loss=loss)
    with pytest.raises(ValueError, match="not finite as float32"):
        getattr(model, method)(X.astype(np.float32), 1e39 + y)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_targets_whose_mean_overflows(method, loss):
    X, _ = noisy(0, n=200)
    with pytest.raises(ValueError, match=r"(cannot begin|up to 1e).*Scale the targets"):
        getattr(OnlineLBFGSRegressor(loss=loss), method)(X, np.full(200, 1e307))


@pytest.mark.filterwarnings("ignore:.*reached max_iter")
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_counts_without_an_optimum(method):
    X, y = noisy(0, n=200)
    model = OnlineLBFGSRegressor("poisson", batch_size=20)
    with pytest.raises(ValueError, match=r"needs y <= 1e\+20, got .* up to 1e\+300"):
        getattr(model, method)(X, 1e300 * (y > 0.0))
    getattr(model, method)(X, np.full(200, 1e20))
    assert_allclose(model.predict(X), 1e20, rtol=1e-6)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_infinite_targets_among_objects(method):
    X, y = noisy(0, n=50)
    y = y.astype(object)
    y[3] = np.inf
    with pytest.raises(ValueError, match="y contains infinity"):
        getattr(OnlineLBFGSRegressor(), method)(X, y)


@pytest.mark.parametrize(
    ("weights", "error"),
    [(["a"] * 50, ValueError), ({1: 2.0}, TypeError), (np.full(50, 1j), ValueError)],
)
def test_weights_of_batches_that_are_no_numbers(weights, error):
    X, y = noisy(0, n=50)
    with pytest.raises(error, match=r"sample_weight|Complex data"):
        OnlineLBFGSRegressor().partial_fit(X, y, sample_weight=weights)


def test_a_stream_forgets_the_objective_of_fit():
    X, y = noisy(0, n=200)
    model = OnlineLBFGSRegressor().fit(X, y)
    assert np.isfinite(model.objective_)
    model.partial_fit(X, -y)
    for name in ("objective_", "loss_curve_", "validation_scores_"):
        assert not hasattr(model, name)


def test_early_stopping_that_reaches_the_limit_warns():
    X, y = noisy(0, n=500)
    model = OnlineLBFGSRegressor(early_stopping=True, max_iter=1)
    with pytest.warns(ConvergenceWarning, match="held out"):
        model.fit(X, y)


def test_tags_tell_of_targets():
    for loss, expected in (("poisson", True), ("squared_error", False)):
        tags = OnlineLBFGSRegressor(loss=loss).__sklearn_tags__()
        assert tags.target_tags.positive_only == expected

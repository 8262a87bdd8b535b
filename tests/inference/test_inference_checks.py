"""Standard errors refuse what a fit refuses, and what says nothing of coefficients."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from sklearn_subqn import (
    BMRMClassifier,
    BMRMRegressor,
    BMRMRegressorCV,
    L1LogisticOWLQNCV,
    RowBlocks,
    SubLBFGSLinearSVCCV,
    dual_gap,
    standard_errors,
)
from sklearn_subqn.linear_model import (
    LogisticRegression,
    LogisticRegressionCV,
    PoissonRegressor,
)

RNG = np.random.default_rng(0)
N = 120
X = RNG.normal(size=(N, 3))
SCORES = X @ [0.6, -0.4, 0.0]
NUMBERS = SCORES + RNG.normal(size=N)
COUNTS = RNG.poisson(np.exp(SCORES))
LABELS = (SCORES + RNG.logistic(size=N) > 0.0).astype(int)
GRADES = np.digitize(SCORES + RNG.logistic(size=N), [-1.0, 1.0])
GROUPS = np.arange(N) % 10

FITTED = {
    "squared_error": (BMRMRegressor(0, loss="squared_error", tol=1e-10), NUMBERS),
    "poisson": (BMRMRegressor(0, loss="poisson", tol=1e-10), COUNTS),
    "gamma": (BMRMRegressor(0, loss="gamma", tol=1e-10), COUNTS + 0.5),
    "quantile": (BMRMRegressor(0, loss="quantile", tol=1e-8), NUMBERS),
    "log_loss": (BMRMClassifier(0, loss="log_loss", tol=1e-10), LABELS),
    "one against the rest": (BMRMClassifier(0, loss="log_loss", tol=1e-10), GRADES),
    "multinomial": (LogisticRegression(C=np.inf, tol=1e-10), GRADES),
    "PoissonRegressor": (PoissonRegressor(alpha=0, tol=1e-10), COUNTS),
}
MODELS = {name: model.fit(X, y) for name, (model, y) in FITTED.items()}


def changed(values, value, at=slice(0, 9)):
    """Return an array with some entries replaced."""
    values = np.array(values, dtype=np.result_type(values, type(value)))
    values[at] = value
    return values


def message_of(function, *args, **given):
    with pytest.raises((TypeError, ValueError)) as caught:
        function(*args, **given)
    return str(caught.value)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", ["auto", "HC1", "bootstrap"])
@pytest.mark.parametrize(
    "weights",
    [
        -np.ones(N),
        changed(np.ones(N), -50.0, [3]),
        np.zeros(N),
        0,
        changed(np.ones(N), np.nan, [3]),
        changed(np.ones(N), np.inf, [3]),
        np.ones(N - 1),
        ["a"] * N,
    ],
)
def test_weights_that_a_fit_refuses(name, kind, weights):
    model, y = MODELS[name], FITTED[name][1]
    expected = message_of(type(model)(**model.get_params()).fit, X, y, weights)
    assert message_of(standard_errors, model, X, y, weights, kind=kind) == expected
    assert message_of(model.coef_table, X, y, weights, kind=kind) == expected


@pytest.mark.parametrize(
    ("name", "y"),
    [
        ("poisson", changed(COUNTS, -3)),
        ("PoissonRegressor", changed(COUNTS, -3)),
        ("gamma", changed(COUNTS + 0.5, 0.0)),
        ("gamma", changed(COUNTS + 0.5, -1.0)),
        ("squared_error", changed(NUMBERS, np.nan)),
        ("squared_error", NUMBERS[1:]),
        ("quantile", None),
        ("log_loss", NUMBERS),
        ("multinomial", NUMBERS),
    ],
)
def test_targets_that_a_fit_refuses(name, y):
    model = MODELS[name]
    expected = message_of(type(model)(**model.get_params()).fit, X, y)
    assert message_of(standard_errors, model, X, y) == expected
    if y is not None and len(y) == N:
        assert message_of(standard_errors, model, RowBlocks(X, y)) == expected


@pytest.mark.parametrize("name", ["log_loss", "one against the rest", "multinomial"])
def test_classes_are_those_of_the_model(name):
    model, y = MODELS[name], FITTED[name][1]
    for other in (y + 5, y.astype(str), changed(y, 7)):
        with pytest.raises(ValueError, match="does not know"):
            standard_errors(model, X, other)
    for data in ((X, np.ones(N, int)), (X, y, np.where(y == 0, 0.0, 1.0))):
        with pytest.raises(ValueError, match=r"there are none of \[0"):
            standard_errors(model, *data)
        blocks = RowBlocks(*data)
        with pytest.raises(ValueError, match=r"there are none of \[0"):
            standard_errors(model, blocks)


@pytest.mark.parametrize("kind", ["cluster", "bootstrap"])
@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (changed(GROUPS, np.nan), "NaN"),
        (pd.Series(GROUPS).astype("Int64").where(GROUPS != 3), "NaN"),
        (np.where(GROUPS == 3, None, "a"), "NaN"),
        (pl.Series([None, *GROUPS[1:]]), "NaN"),
        (np.zeros(N), "at least two clusters"),
        (np.column_stack([GROUPS, GROUPS, GROUPS]), "1d array"),
        (pd.DataFrame({"a": GROUPS, "b": GROUPS, "c": GROUPS}), "1d array"),
        (np.array([1, "a"] * (N // 2), dtype=object), "one type"),
        (GROUPS[1:], "entries for"),
        ("cluster", "1d array"),
    ],
)
def test_groups_that_are_refused(kind, groups, message):
    with pytest.raises(ValueError, match=f"groups.*{message}"):
        standard_errors(
            MODELS["squared_error"], X, NUMBERS, kind=kind, groups=groups, n_resamples=2
        )


def test_weights_of_zero_are_told_before_clusters():
    with pytest.raises(ValueError, match="must contain at least one non-zero"):
        standard_errors(MODELS["squared_error"], X, NUMBERS, np.zeros(N), groups=GROUPS)


@pytest.mark.parametrize("name", ["squared_error", "log_loss", "multinomial"])
@pytest.mark.parametrize("weights", ["precision", "frequency"])
def test_rows_of_weight_zero_are_none(name, weights):
    """Nor are clusters of them, in any kind of variance."""
    model, y = FITTED[name]
    weight = np.where(GROUPS < 3, 0.0, 2.0)
    kept = weight > 0.0
    model = type(model)(**model.get_params()).fit(X, y, weight)
    for given in ({"kind": "HC1"}, {}, {"groups": GROUPS}):
        some = {key: v[kept] if key == "groups" else v for key, v in given.items()}
        found = standard_errors(model, X, y, weight, weights=weights, **given)
        expected = standard_errors(
            model, X[kept], y[kept], weight[kept], weights=weights, **some
        )
        assert_allclose(found.covariance, expected.covariance, rtol=1e-9)


@pytest.mark.parametrize(
    "value", [-1.0, 0, np.nan, np.inf, "2", "x2", [1.0], np.ones(2), True]
)
def test_dispersions_that_are_refused(value):
    with pytest.raises((TypeError, ValueError), match="dispersion must be"):
        standard_errors(MODELS["poisson"], X, COUNTS, dispersion=value)


def test_dispersion_by_pearson():
    model = MODELS["poisson"]
    means = model.predict(X)
    expected = np.sum((COUNTS - means) ** 2 / means) / (N - 4)
    found = standard_errors(model, X, COUNTS, dispersion="X2")
    assert found.dispersion == pytest.approx(expected)
    once = standard_errors(model, X, COUNTS).covariance
    assert_allclose(found.covariance, expected * once)
    for name, kind in (("poisson", "HC1"), ("quantile", "fisher")):
        with pytest.raises(ValueError, match="dispersion is for"):
            standard_errors(MODELS[name], X, FITTED[name][1], kind=kind, dispersion=2.0)
    with pytest.raises(ValueError, match="one score"):
        standard_errors(MODELS["multinomial"], X, GRADES, dispersion="X2")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", ["auto", "HC0", "HC1", "cluster", "bootstrap"])
@pytest.mark.filterwarnings("ignore:About 2 of")
def test_no_more_samples_than_coefficients(name, kind):
    rows = np.arange(N)[np.argsort(GROUPS, kind="stable")][:4]
    y = FITTED[name][1].copy()
    y[rows] = np.unique(y)[[0, -1, -2, -1]]
    groups = [0, 0, 1, 1] if kind == "cluster" else None
    message = "more samples than coefficients|too few|Too few|density"
    with pytest.raises(ValueError, match=message):
        standard_errors(MODELS[name], X[rows], y[rows], kind=kind, groups=groups)


def test_wald_tests_check_what_they_are_given():
    errors = standard_errors(MODELS["squared_error"], X, NUMBERS)
    for hypotheses, values, message in (
        ([], 0.0, "at least one"),
        (np.empty((0, 4)), 0.0, "hypotheses"),
        ({}, 0.0, "at least one"),
        ("x0", np.nan, "values"),
        ("x0", "a", "values"),
        (["x0", "x1"], [1.0, 2.0, 3.0], "one for each of 2"),
        ({"x0": np.nan}, 0.0, "The factor of 'x0'"),
        ({"x0": "a"}, 0.0, "The factor of 'x0'"),
        (np.full((1, 4), np.nan), 0.0, "hypotheses"),
        ([[1.0, 2.0]], 0.0, "must have shape"),
        (["x0", "x0"], 0.0, "1 are independent"),
        ("x7", 0.0, "no coefficient 'x7'"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            errors.wald_test(hypotheses, values)
    twice = standard_errors(
        MODELS["squared_error"], X, NUMBERS, feature_names=["a", "a", "b"]
    )
    with pytest.raises(ValueError, match="more than one coefficient 'a'"):
        twice.wald_test("a")
    expected = errors.wald_test(["x0", "x1"], [0.5, 0.0])
    both = np.eye(4)[1:3]
    for same in (both, both.tolist(), np.array(["x0", "x1"]), pd.Index(["x0", "x1"])):
        assert_allclose(errors.wald_test(same, [0.5, 0.0]), expected)
    for level in (np.nan, 0.0, 1.0, -1.0):
        with pytest.raises(ValueError, match="level must be"):
            errors.intervals(level)


def test_wald_tests_do_not_depend_on_units():
    units = np.array([1e9, 1.0, 1e-9])
    model = BMRMRegressor(0, loss="squared_error", tol=1e-10).fit(X * units, NUMBERS)
    found = standard_errors(model, X * units, NUMBERS).wald_test(["x0", "x1", "x2"])
    expected = standard_errors(MODELS["squared_error"], X, NUMBERS)
    assert found == pytest.approx(expected.wald_test(["x0", "x1", "x2"]), rel=1e-5)


@pytest.mark.parametrize("base", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("kind", ["auto", "fisher", "HC0", "HC1", "cluster"])
def test_quantiles_without_a_density(base, kind):
    """Most residuals are zero, or what rounding leaves of it."""
    y = np.where(RNG.uniform(size=N) < 0.8, base, base + 1.0 + RNG.poisson(3.0, N))
    exact = X @ [1.0, 2.0, 0.0] + np.where(np.arange(N) % 5 == 0, NUMBERS, 0.0)
    groups = GROUPS if kind == "cluster" else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        models = [
            BMRMRegressor(0, loss="absolute_error", tol=1e-9).fit(X, t)
            for t in (y, exact)
        ]
    for model, targets in zip(models, (y, exact), strict=True):
        with pytest.raises(ValueError, match="Most residuals of the quantile"):
            standard_errors(model, X, targets, kind=kind, groups=groups)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        standard_errors(models[1], X, exact, kind="bootstrap", n_resamples=2)
    assert "Most residuals" in str(caught[0].message)


def test_equal_residuals_away_from_the_quantile():
    """The spread is then that of the targets."""
    y = np.where(np.arange(N) % 5 == 0, -1.0 - np.abs(NUMBERS), 0.0)
    model = BMRMRegressor(0, loss="quantile", quantile=0.05, tol=1e-9).fit(X, y)
    with pytest.warns(UserWarning, match="samples are beyond the quantile 0.05"):
        found = standard_errors(model, X, y)
    assert np.all(found.std_errors > 1e-3)


@pytest.mark.parametrize("level", [0.001, 0.01, 0.99, 0.999])
@pytest.mark.parametrize("kind", ["powell", "fisher", "bootstrap"])
@pytest.mark.parametrize("n", [10, 50])
def test_quantiles_beyond_all_samples(level, kind, n):
    model = BMRMRegressor(0, loss="quantile", quantile=level, tol=1e-8)
    model.fit(X[:n], NUMBERS[:n])
    given = {"kind": kind, "n_resamples": 10, "random_state": 0}
    if kind == "bootstrap":
        with pytest.warns(UserWarning, match="beyond all of them"):
            found = standard_errors(model, X[:n], NUMBERS[:n], **given)
        assert np.isfinite(found.std_errors).all()
        return
    with pytest.raises(ValueError, match="beyond all of them"):
        standard_errors(model, X[:n], NUMBERS[:n], **given)


def test_bootstraps_of_clusters_do_not_warn():
    found = standard_errors(
        MODELS["squared_error"],
        X,
        NUMBERS,
        kind="bootstrap",
        groups=GROUPS,
        n_resamples=100,
        random_state=0,
    )
    expected = standard_errors(MODELS["squared_error"], X, NUMBERS, groups=GROUPS)
    assert_allclose(found.std_errors, expected.std_errors, rtol=0.5)


@pytest.mark.parametrize(
    ("search", "y"),
    [
        (BMRMRegressorCV([1e-3, 1e-2]), NUMBERS),
        (BMRMRegressorCV([1e-2], loss="poisson", penalty_factor=[1, 2, 3]), COUNTS),
        (BMRMRegressorCV([1e-2], penalty="elasticnet", l1_ratio=[0.0]), NUMBERS),
        (L1LogisticOWLQNCV([1e-3, 1e-2], l1_ratio=0, tol=1e-9), LABELS),
        (SubLBFGSLinearSVCCV([1e-2], loss="squared_hinge", tol=1e-9), LABELS),
        (SubLBFGSLinearSVCCV([1e-2]), LABELS),
        (LogisticRegressionCV(Cs=[1.0], tol=1e-9), LABELS),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_searches_have_the_objective_that_they_chose(search, y):
    search.fit(X, y)
    gap, objective = dual_gap(search, X, y, return_objective=True)
    assert objective == pytest.approx(search.objective_)
    assert 0.0 <= gap <= 1e-3 * objective
    if getattr(search, "loss", None) == "hinge":
        with pytest.raises(ValueError, match="no standard errors"):
            search.coef_table(X, y)
        return
    single = search._of_chosen().fit(X, y)
    expected = standard_errors(single, X, y)
    found = standard_errors(search, X, y)
    assert_allclose(found.covariance, expected.covariance, rtol=1e-3, atol=1e-6)
    pd.testing.assert_frame_equal(search.coef_table(X, y), found.table())


def test_targets_have_the_columns_of_the_fit():
    both = np.column_stack([NUMBERS, SCORES + NUMBERS])
    model = BMRMRegressor(0, loss="squared_error").fit(X, both)
    for y in (NUMBERS, np.column_stack([both, NUMBERS])):
        with pytest.raises(ValueError, match="The model has 2 outputs"):
            standard_errors(model, X, y)
    with pytest.raises(ValueError, match="The model has 1 outputs"):
        standard_errors(MODELS["squared_error"], X, both)


@pytest.mark.parametrize("kind", ["HC1", "bootstrap"])
def test_lists(kind):
    given = {"kind": kind, "n_resamples": 3, "random_state": 0}
    model = MODELS["poisson"]
    found = standard_errors(model, X.tolist(), COUNTS.tolist(), [2.0] * N, **given)
    expected = standard_errors(model, X, COUNTS, 2.0, **given)
    assert_allclose(found.covariance, expected.covariance, rtol=1e-6)


def test_offsets_and_groups_of_polars():
    offset = 0.1 * X[:, 2]
    model = BMRMRegressor(0, loss="poisson", tol=1e-10)
    frame, y = pl.DataFrame(X, schema=["a", "b", "c"]), pl.Series(COUNTS)
    model.fit(frame, y, offset=pl.Series(offset))
    found = standard_errors(
        model, frame, y, offset=pl.Series(offset), groups=pl.Series(GROUPS)
    )
    expected = standard_errors(model, frame, COUNTS, offset=offset, groups=GROUPS)
    assert_allclose(found.covariance, expected.covariance)
    BMRMRegressorCV([1e-2], loss="poisson").fit(frame, y, offset=pl.Series(offset))
    with pytest.raises(ValueError, match="offset needs two classes"):
        standard_errors(MODELS["one against the rest"], X, GRADES, offset=offset)


MARK = (LABELS == 1) & (np.arange(N) % 3 == 0)
EMPTY = (COUNTS == 0) & (np.arange(N) % 3 == 0)
MARK_OF_ONE = (GRADES == 2) & (np.arange(N) % 3 > 0)
SEPARATED = {
    "log_loss": (MARK, LABELS),
    "one against the rest": (MARK_OF_ONE, GRADES),
    "multinomial": (MARK_OF_ONE, GRADES),
    "poisson": (EMPTY, COUNTS),
    "PoissonRegressor": (EMPTY, COUNTS),
}


@pytest.mark.filterwarnings("ignore:.*did not prove")
@pytest.mark.parametrize("name", SEPARATED)
@pytest.mark.parametrize("matrix", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("kind", ["fisher", "HC0"])
def test_features_that_separate_are_named(name, matrix, kind):
    """Standard errors of the others are those without the samples."""
    mark, y = SEPARATED[name]
    data = matrix(np.column_stack([X, mark.astype(float)]))
    model = MODELS[name]
    model = type(model)(**{**model.get_params(), "tol": 1e-8})
    with pytest.warns(ConvergenceWarning, match="no optimal coefficients of x3:"):
        model.fit(data, y)
    with pytest.warns(UserWarning, match="do not say how large the coefficients of x3"):
        found = standard_errors(model, data, y, kind=kind)
    others = found.features != "x3"
    assert np.isfinite(found.std_errors[others]).all()
    assert np.isnan(found.std_errors[~others]).any()
    last = "x3" if found.outputs is None else ("x3", found.outputs[-1])
    with pytest.raises(ValueError, match="no standard errors"):
        found.wald_test(last)
    if name in ("log_loss", "poisson"):
        kept = ~mark
        without = type(model)(**model.get_params()).fit(X[kept], y[kept])
        expected = standard_errors(without, X[kept], y[kept], kind=kind)
        assert_allclose(found.std_errors[others], expected.std_errors, rtol=1e-4)


@pytest.mark.filterwarnings("ignore:.*did not prove")
@pytest.mark.parametrize("loss", ["log_loss", "exponential"])
def test_combinations_that_separate(loss):
    y = SCORES > 0.0
    model = BMRMClassifier(0, loss=loss, tol=1e-8)
    with pytest.warns(
        ConvergenceWarning, match="a combination of these features separates"
    ):
        model.fit(X, y)
    with pytest.warns(UserWarning, match="coefficients of x0, x1, x2"):
        found = standard_errors(model, X, y)
    assert np.isnan(found.std_errors[1:]).all()


def test_numbers_below_and_above_a_threshold_separate():
    """An intercept moves the threshold; without one it has to be zero."""
    for shift in (0.0, 0.5):
        y = X[:, 0] > shift
        for intercept in (True, False):
            model = BMRMClassifier(0, loss="log_loss", fit_intercept=intercept)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model.fit(X[:, :1], y)
            told = any("optimal coefficients of x0:" in str(w.message) for w in caught)
            assert told == (intercept or shift == 0.0)


@pytest.mark.parametrize(
    "model",
    [
        BMRMClassifier(1e-3, loss="log_loss"),
        BMRMClassifier(0, loss="squared_hinge"),
        BMRMClassifier(1e-2, loss="log_loss", penalty_factor=[0, 0, 0, 1]),
        BMRMClassifier(0, loss="log_loss", coef_bounds=(-5.0, 5.0)),
    ],
)
def test_penalties_and_bounds_leave_an_optimum(model):
    model.fit(np.column_stack([X, MARK.astype(float)]), LABELS)


def test_rounding_ends_proofs():
    """Bounds that do not get better are not asked for again."""
    rows = np.random.default_rng(0).normal(size=(60_000, 4))
    y = np.random.default_rng(1).poisson(np.exp(rows[:, 0] - 1.0))
    model = BMRMRegressor(0, loss="poisson", tol=1e-11)
    with pytest.warns(ConvergenceWarning, match="increase tol"):
        model.fit(rows, y)
    loose = BMRMRegressor(0, loss="poisson", tol=1e-3).fit(rows, y)
    assert model.objective_ <= loose.objective_
    assert model.dual_gap_ <= 1e-7 * abs(model.objective_)
    standard_errors(model, rows, y)


def test_offsets_and_penalties_are_no_separation():
    """Offsets or penalized features tell the classes, but no free feature does."""
    offset = np.where(LABELS == 1, 9.0, -9.0)
    model = BMRMClassifier(0, loss="log_loss", tol=1e-10).fit(X, LABELS, offset=offset)
    assert np.all((model.decision_function(X, offset) > 0.0) == (LABELS == 1))
    found = standard_errors(model, X, LABELS, offset=offset)
    assert np.isfinite(found.std_errors).all()
    y = X[:, 0] > 0.0
    model = BMRMClassifier(1e-6, loss="log_loss", penalty_factor=[1, 0, 0], tol=1e-9)
    model.fit(X, y)
    assert model.score(X, y) == 1.0
    with pytest.warns(UserWarning, match="penalty") as caught:
        found = standard_errors(model, X, y)
    assert len(caught) == 1
    assert np.isfinite(found.std_errors).all()

"""Standard errors by formulas, and by other packages."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse, special, stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.linear_model import LogisticRegression as TheirLogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sklearn_subqn import (
    BMRMClassifier,
    BMRMRegressor,
    L1LogisticOWLQN,
    MulticlassHingeClassifier,
    RowBlocks,
    SubLBFGSLinearSVC,
    dual_gap,
    standard_errors,
)
from sklearn_subqn.linear_model import (
    HuberRegressor,
    LogisticRegression,
    PoissonRegressor,
)

RNG = np.random.default_rng(0)
N = 300
X = RNG.normal(size=(N, 4))
X[:, 1] += 50.0
ONES = np.column_stack([np.ones(N), X])
SCORES = X @ [0.3, 0.1, -0.2, 0.0] - 5.0
WEIGHTS = RNG.uniform(0.5, 2.0, N)
COUNTS = RNG.integers(0, 4, N)
GROUPS = RNG.integers(0, 40, N)
OFFSET = 0.2 * RNG.normal(size=N)
MEANS = np.exp(SCORES)
NUMBERS = SCORES + RNG.normal(size=N)
GAMMA = RNG.gamma(2.0, MEANS / 2.0)
ZEROS = np.where(RNG.uniform(size=N) < 0.3, 0.0, GAMMA)
EVENTS = RNG.poisson(MEANS).astype(float)
LABELS = (RNG.uniform(size=N) < special.expit(SCORES)).astype(int)
CLASSES = np.array([*"cab"])[np.where(LABELS, RNG.integers(0, 3, N), 2)]

TARGETS = {
    "squared_error": NUMBERS,
    "poisson": EVENTS,
    "gamma": GAMMA,
    "tweedie": ZEROS,
    "huber": NUMBERS,
    "squared_epsilon_insensitive": NUMBERS,
}
POWERS = {"poisson": 1.0, "gamma": 2.0, "tweedie": 1.5}


def fitted(loss, tol=1e-12, **data):
    """A model of a loss of numbers, to rounding."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = BMRMRegressor(0, loss=loss, tol=tol)
        return model.fit(X, TARGETS[loss], **data)


def row_loss(loss, z, y):
    """The loss of rows, by its definition."""
    if loss == "squared_error":
        return 0.5 * (z - y) ** 2
    if loss == "huber":
        return 1.35**2 * special.huber(1.0, (z - y) / 1.35)
    if loss == "squared_epsilon_insensitive":
        return np.maximum(np.abs(z - y) - 0.1, 0.0) ** 2
    if loss == "log_loss":
        return np.logaddexp(0.0, -y * z)
    if loss == "squared_hinge":
        return np.maximum(1.0 - y * z, 0.0) ** 2
    a, b = POWERS[loss] - 1.0, 2.0 - POWERS[loss]
    falling = np.exp(-a * z) / a if a else -z
    return y * falling + (np.exp(b * z) / b if b else z)


def derivatives(loss, z, y):
    """First and second derivatives by differences."""
    step = 1e-4
    low, mid, high = (row_loss(loss, z + s, y) for s in (-step, 0.0, step))
    return (high - low) / (2.0 * step), (high - 2.0 * mid + low) / step**2


def sandwich(loss, theta, y, weights, kind="HC0", groups=None, offset=0.0):
    """The covariance of estimates by the formula."""
    slopes, curvatures = derivatives(loss, ONES @ theta + offset, y)
    hessian = ONES.T @ (ONES * (weights * curvatures)[:, None])
    rows = ONES * (weights * slopes)[:, None]
    n, p = np.count_nonzero(weights), ONES.shape[1]
    if groups is not None:
        rows = np.array([rows[groups == g].sum(axis=0) for g in np.unique(groups)])
        rows = rows * np.sqrt(len(rows) / (len(rows) - 1.0) * (n - 1.0) / (n - p))
    inverse = np.linalg.inv(hessian)
    covariance = inverse @ (rows.T @ rows) @ inverse
    return covariance * (n / (n - p) if kind == "HC1" else 1.0)


@pytest.mark.parametrize("loss", TARGETS)
@pytest.mark.parametrize("kind", ["HC0", "HC1", "cluster"])
def test_sandwiches_are_those_of_the_formula(loss, kind):
    model = fitted(loss, sample_weight=WEIGHTS, offset=OFFSET)
    groups = GROUPS if kind == "cluster" else None
    found = standard_errors(
        model, X, TARGETS[loss], WEIGHTS, kind=kind, groups=groups, offset=OFFSET
    )
    theta = np.append(model.intercept_, model.coef_)
    expected = sandwich(loss, theta, TARGETS[loss], WEIGHTS, kind, groups, OFFSET)
    assert_allclose(found.estimates, theta, rtol=1e-9)
    # Second derivatives by differences have errors at the kinks of these two.
    rtol = 2e-2 if loss in ("huber", "squared_epsilon_insensitive") else 1e-4
    assert_allclose(found.covariance, expected, rtol=rtol, atol=1e-6 * expected.max())


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "gamma", "tweedie"])
def test_fisher_is_the_inverse_of_the_information(loss):
    model = fitted(loss, sample_weight=WEIGHTS)
    found = standard_errors(model, X, TARGETS[loss], WEIGHTS)
    power = POWERS.get(loss, 0.0)
    z = ONES @ np.append(model.intercept_, model.coef_)
    mean = z if not power else np.exp(z)
    information = WEIGHTS * (mean ** (2.0 - power) if power else 1.0)
    expected = np.linalg.inv(ONES.T @ (ONES * information[:, None]))
    if loss != "poisson":
        residuals = (TARGETS[loss] - mean) ** 2 / np.abs(mean) ** power
        dispersion = WEIGHTS @ residuals / (N - 5)
        assert found.dispersion == pytest.approx(dispersion, rel=1e-9)
        expected *= dispersion
    assert_allclose(found.covariance, expected, rtol=1e-6, atol=1e-9 * expected.max())
    assert found.uses_t == (loss == "squared_error")
    assert found.df_resid == N - 5


def test_classes():
    """Two classes by formula, more by the whole matrix of second derivatives."""
    model = LogisticRegression(C=np.inf, tol=1e-11).fit(X, LABELS)
    theta = np.append(model.intercept_, model.coef_)
    found = standard_errors(model, X, LABELS, kind="HC0")
    expected = sandwich("log_loss", theta, 2.0 * LABELS - 1.0, np.ones(N))
    assert_allclose(found.covariance, expected, rtol=1e-3, atol=1e-6 * expected.max())

    model = LogisticRegression(C=np.inf, tol=1e-10).fit(X, CLASSES)
    found = standard_errors(model, X, CLASSES, WEIGHTS * 0 + 1, reference="a")
    p = special.softmax(X @ model.coef_.T + model.intercept_, axis=1)[:, 1:]
    q = ONES.shape[1]
    hessian = np.zeros((2 * q, 2 * q))
    for a in range(2):
        for b in range(2):
            w = p[:, a] * ((a == b) - p[:, b])
            hessian[a * q : a * q + q, b * q : b * q + q] = ONES.T @ (ONES * w[:, None])
    expected = np.linalg.inv(hessian)
    assert_allclose(found.covariance, expected, rtol=1e-6, atol=1e-9 * expected.max())
    assert found.outputs.tolist() == ["b"] * 5 + ["c"] * 5
    whole = np.column_stack([model.intercept_, model.coef_])
    assert_allclose(found.estimates, (whole[1:] - whole[0]).ravel(), rtol=1e-9)
    # Coefficients that sum to zero: the same tests of differences.
    centered = standard_errors(model, X, CLASSES)
    assert_allclose(centered.estimates.reshape(3, -1).sum(axis=0), 0.0, atol=1e-9)
    test = centered.wald_test({("x0", "b"): 1.0, ("x0", "a"): -1.0})
    assert test.statistic == pytest.approx(found.wald_test(("x0", "b")).statistic)


def test_one_class_against_the_rest():
    model = BMRMClassifier(1e-3, loss="squared_hinge", tol=1e-10).fit(X, CLASSES)
    with pytest.warns(UserWarning, match="has a penalty"):
        found = standard_errors(model, X, CLASSES)
    for k, name in enumerate("abc"):
        one = BMRMClassifier(1e-3, loss="squared_hinge", tol=1e-10)
        one.fit(X, name == CLASSES)
        with pytest.warns(UserWarning, match="has a penalty"):
            alone = standard_errors(one, X, name == CLASSES)
        places = slice(5 * k, 5 * k + 5)
        assert_allclose(found.std_errors[places], alone.std_errors, rtol=1e-4)
    with pytest.raises(ValueError, match="separate problems"):
        found.wald_test([("x0", "a"), ("x0", "b")])


def test_penalties_are_part_of_the_second_derivatives():
    """As of ridge regression (Hoerl and Kennard 1970), for any trainer."""
    model = Ridge(alpha=20.0).fit(X, NUMBERS)
    with pytest.warns(UserWarning, match="has a penalty"):
        found = standard_errors(model, X, NUMBERS)
    hessian = ONES.T @ ONES
    inverse = np.linalg.inv(hessian + np.diag([0.0] + [20.0] * 4))
    residuals = NUMBERS - model.predict(X)
    expected = residuals @ residuals / (N - 5) * inverse @ hessian @ inverse
    assert_allclose(found.covariance, expected, rtol=1e-8)


@pytest.mark.parametrize("kind", [LogisticRegression, TheirLogisticRegression])
def test_logistic_regressions_with_and_without_a_penalty(kind):
    """By default C is 1: the second derivatives of the penalty are ones."""
    model = kind(tol=1e-9, max_iter=1000).fit(X, LABELS)
    p = special.expit(ONES @ np.append(model.intercept_, model.coef_))
    hessian = ONES.T @ (ONES * (p * (1.0 - p))[:, None])
    inverse = np.linalg.inv(hessian + np.diag([0.0] + [1.0] * 4))
    with pytest.warns(UserWarning, match="has a penalty"):
        found = standard_errors(model, X, LABELS)
    expected = inverse @ hessian @ inverse
    assert_allclose(found.covariance, expected, rtol=1e-3, atol=1e-6 * expected.max())


def test_factors_of_an_elastic_net_without_l1():
    factors = np.array([0.5, 1.0, 2.0, 3.0])
    models = [
        BMRMRegressor(
            0.1,
            loss="squared_error",
            penalty=penalty,
            penalty_factor=given,
            tol=1e-10,
            **ratio,
        ).fit(X, NUMBERS)
        for penalty, given, ratio in (
            ("elasticnet", factors, {"l1_ratio": 0.0}),
            ("l2", factors**2, {}),
        )
    ]
    assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-5, atol=1e-8)
    found = []
    for model in models:
        with pytest.warns(UserWarning, match="has a penalty"):
            found.append(standard_errors(model, X, NUMBERS).covariance)
    assert_allclose(*found, rtol=1e-5, atol=1e-9)


def test_least_squares_of_scikit_learn():
    model = LinearRegression().fit(X, NUMBERS)
    found = standard_errors(model, X, NUMBERS)
    expected = standard_errors(fitted("squared_error"), X, NUMBERS)
    assert_allclose(found.covariance, expected.covariance, rtol=1e-8)
    gap, value = dual_gap(model, X, NUMBERS, return_objective=True)
    assert 0.0 <= gap <= 1e-3 * value


def test_frequencies_are_repetitions():
    rows = np.repeat(np.arange(N), COUNTS)
    for loss, y in TARGETS.items():
        model = fitted(loss, sample_weight=COUNTS)
        for kind in ("HC1", "auto"):
            weighted = standard_errors(
                model, X, y, COUNTS, kind=kind, weights="frequency"
            )
            repeated = standard_errors(model, X[rows], y[rows], kind=kind)
            assert_allclose(weighted.covariance, repeated.covariance, rtol=1e-8)


def test_units_and_formats():
    """Other units change errors accordingly; sparse and float32 data change nothing."""
    scales = np.array([1e6, 1e-3, 1.0, 7.0])
    expected = standard_errors(fitted("gamma"), X, GAMMA)
    model = BMRMRegressor(0, loss="gamma", tol=1e-9).fit(X * scales, GAMMA)
    found = standard_errors(model, X * scales, GAMMA)
    assert_allclose(found.std_errors[1:] * scales, expected.std_errors[1:], rtol=1e-6)
    model = fitted("gamma")
    found = standard_errors(model, sparse.csr_array(X), GAMMA)
    assert_allclose(found.covariance, expected.covariance, rtol=1e-8)
    narrow = X.astype(np.float32)
    found = standard_errors(fitted("gamma"), narrow, GAMMA)
    assert_allclose(found.std_errors, expected.std_errors, rtol=1e-4)


def test_far_columns_do_not_cancel():
    """Seconds since 1970 leave nothing in products of float64 unless centered."""
    times = np.column_stack([1.7e9 + X[:, 0], X[:, 2:]])
    model = BMRMRegressor(0, loss="squared_error", tol=1e-9).fit(times, NUMBERS)
    found = standard_errors(model, times, NUMBERS)
    near = np.column_stack([times[:, 0] - 1.7e9, X[:, 2:]])
    other = BMRMRegressor(0, loss="squared_error", tol=1e-9).fit(near, NUMBERS)
    expected = standard_errors(other, near, NUMBERS)
    assert_allclose(found.std_errors[1:], expected.std_errors[1:], rtol=1e-6)


def test_combinations_of_others_are_left_out():
    """Dummies of all categories beside an intercept: the last one, as in R."""
    frame = pd.DataFrame({"city": RNG.choice([*"pqr"], N), "size": X[:, 0]})
    dummies = pd.get_dummies(frame, dtype=float)
    dummies["copy"] = 2.0 * dummies["size"]
    dummies["zero"] = 0.0
    model = BMRMRegressor(0, loss="squared_error", tol=1e-10).fit(dummies, NUMBERS)
    with pytest.warns(UserWarning, match="city_r, copy, zero"):
        found = standard_errors(model, dummies, NUMBERS)
    assert found.dropped == ["city_r", "copy", "zero"]
    kept = dummies[["size", "city_p", "city_q"]]
    smaller = BMRMRegressor(0, loss="squared_error", tol=1e-9).fit(kept, NUMBERS)
    expected = standard_errors(smaller, kept, NUMBERS)
    known = ~np.isnan(found.estimates)
    assert found.features[known].tolist() == expected.features.tolist()
    assert_allclose(found.estimates[known], expected.estimates, rtol=1e-4, atol=1e-6)
    assert_allclose(found.std_errors[known], expected.std_errors, rtol=1e-8)
    with pytest.raises(ValueError, match="depend on other features"):
        found.wald_test("copy")


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "gamma"])
def test_sandwiches_are_those_of_glum(loss):
    """Its factors for few samples are those of "HC1"."""
    glum = pytest.importorskip("glum")
    family = "normal" if loss == "squared_error" else loss
    link = "identity" if loss == "squared_error" else "log"
    theirs = glum.GeneralizedLinearRegressor(
        alpha=0, family=family, link=link, gradient_tol=1e-9
    ).fit(X, TARGETS[loss])
    for kind, options in (
        ({"kind": "HC1"}, {"robust": True}),
        ({"groups": GROUPS}, {"clusters": GROUPS}),
    ):
        found = standard_errors(fitted(loss), X, TARGETS[loss], **kind)
        expected = theirs.std_errors(X, TARGETS[loss], **options)
        assert_allclose(found.std_errors, expected, rtol=1e-5)


@pytest.mark.parametrize("level", [0.5, 0.8])
def test_quantiles(level):
    noise = RNG.normal(size=N) * (1.0 + 0.3 * np.abs(X[:, 0]))
    y = SCORES + noise
    model = BMRMRegressor(0, loss="quantile", quantile=level, tol=1e-7).fit(X, y)
    r = y - model.predict(X)
    z = stats.norm.ppf(level)
    share = 1.5 * stats.norm.pdf(z) ** 2 / (2.0 * z * z + 1.0)
    share = N ** (-1 / 3) * stats.norm.ppf(0.975) ** (2 / 3) * share ** (1 / 3)
    spread = min(y.std(), np.subtract(*np.percentile(r, [75, 25])) / 1.34)
    width = spread * (stats.norm.ppf(level + share) - stats.norm.ppf(level - share))
    kernel = 0.75 * np.maximum(1.0 - (r / width) ** 2, 0.0) / width
    gram = ONES.T @ ONES
    iid = level * (1.0 - level) / kernel.mean() ** 2 * np.linalg.inv(gram)
    found = standard_errors(model, X, y, kind="fisher")
    assert_allclose(found.covariance, iid, rtol=1e-6, atol=1e-8 * iid.max())
    squares = np.where(np.abs(r) <= 1e-6, level * (1 - level), (level - (r < 0)) ** 2)
    middle = ONES.T @ (ONES * squares[:, None])
    inverse = np.linalg.inv(ONES.T @ (ONES * kernel[:, None]))
    powell = inverse @ middle @ inverse
    found = standard_errors(model, X, y)
    assert_allclose(found.covariance, powell, rtol=1e-5, atol=1e-7 * powell.max())


def test_the_bootstrap_agrees_with_formulas():
    """Its standard errors have an error of 5 % by 200 refits."""
    model = fitted("poisson", tol=1e-6)
    formula = standard_errors(model, X, EVENTS, kind="HC0")
    found = standard_errors(model, X, EVENTS, kind="bootstrap", random_state=0)
    assert found.resamples.shape == (200, 5)
    assert_allclose(found.std_errors, formula.std_errors, rtol=0.25)
    again = standard_errors(
        model, X, EVENTS, kind="bootstrap", random_state=0, n_jobs=2
    )
    assert_allclose(again.covariance, found.covariance, rtol=1e-12)


def test_intervals_hold_the_truth_as_often_as_they_say():
    """In 1,000 samples, within three standard errors of that share."""
    rng = np.random.default_rng(1)
    truth, held = np.array([0.5, -0.3]), 0
    rows = rng.normal(size=(60, 2))
    for _ in range(1000):
        y = 1.0 + rows @ truth + rng.normal(size=60)
        model = BMRMRegressor(0, loss="squared_error", tol=1e-9).fit(rows, y)
        low, high = standard_errors(model, rows, y).intervals()[1:].T
        held += int(low[0] <= truth[0] <= high[0])
    assert abs(held / 1000 - 0.95) < 3.0 * np.sqrt(0.95 * 0.05 / 1000)


def draw(loss, z, rng):
    """Targets around means or medians."""
    if loss == "poisson":
        return rng.poisson(np.exp(z))
    if loss == "gamma":
        return rng.gamma(2.0, np.exp(z) / 2.0)
    return z + (rng.normal(size=400) if loss == "quantile" else rng.standard_t(3, 400))


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["log_loss", "poisson", "gamma", "quantile", "huber"])
def test_intervals_of_other_losses_hold_the_truth(loss):
    rng = np.random.default_rng(2)
    truth, held = np.array([0.5, -0.3]), np.zeros(2)
    for _ in range(1000):
        rows = rng.normal(size=(400, 2))
        z = 0.2 + rows @ truth
        if loss == "log_loss":
            y = rng.uniform(size=400) < special.expit(z)
            model = LogisticRegression(C=np.inf, tol=1e-9).fit(rows, y)
        else:
            y = draw(loss, z, rng)
            model = BMRMRegressor(0, loss=loss, tol=1e-7).fit(rows, y)
        low, high = standard_errors(model, rows, y).intervals()[1:].T
        held += (low <= truth) & (truth <= high)
    assert np.all((held >= 930) & (held <= 970))


def test_wald_tests():
    model = fitted("squared_error")
    found = standard_errors(model, X, NUMBERS)
    t = found.estimates[1] / found.std_errors[1]
    test = found.wald_test("x0")
    assert test.statistic == pytest.approx(t * t)
    table = found.table().set_index("feature")
    assert test.p_value == pytest.approx(table.p_value["x0"])
    # The F test of all coefficients compares sums of squares.
    test = found.wald_test(["x0", "x1", "x2", "x3"])
    total = np.sum((NUMBERS - NUMBERS.mean()) ** 2)
    left = np.sum((NUMBERS - model.predict(X)) ** 2)
    assert test.statistic == pytest.approx((total - left) / 4 / (left / (N - 5)))
    assert test.p_value == pytest.approx(stats.f.sf(test.statistic, 4, N - 5))
    matrix = np.array([[0.0, 1.0, 1.0, 0.0, 0.0]])
    one = found.wald_test({"x0": 1.0, "x1": 1.0}, 0.4)
    assert one == found.wald_test(matrix, [0.4])
    with pytest.raises(ValueError, match="no coefficient 'x9'"):
        found.wald_test("x9")
    with pytest.raises(ValueError, match="1 are independent"):
        found.wald_test(["x0", {"x0": 2.0}])
    with pytest.raises(ValueError, match="must have shape"):
        found.wald_test(np.ones((1, 3)))


def test_tables():
    frame = pd.DataFrame(X, columns=[*"wxyz"])
    model = BMRMRegressor(0, loss="squared_error", tol=1e-9).fit(frame, NUMBERS)
    table = model.coef_table(frame, NUMBERS, level=0.9, kind="HC1")
    expected = standard_errors(model, frame, NUMBERS, kind="HC1").table(0.9)
    pd.testing.assert_frame_equal(table, expected)
    columns = ["feature", "estimate", "std_error", "z", "p_value", "lower", "upper"]
    assert list(table.columns) == columns
    assert table.feature.tolist() == ["(intercept)", *"wxyz"]
    with pytest.raises(ValueError, match="need X"):
        model.coef_table(kind="HC1")
    with pytest.raises(ValueError, match="feature names"):
        model.coef_table(frame[[*"zyxw"]], NUMBERS)
    several = BMRMRegressor(0, loss="quantile", quantile=[0.2, 0.8], tol=1e-5)
    table = several.fit(frame, NUMBERS).coef_table(frame, NUMBERS)
    assert table["quantile"].unique().tolist() == [0.2, 0.8]


def test_pipelines_and_other_trainers():
    frame = pd.DataFrame(
        {"city": RNG.choice([*"pqr"], N), "plan": RNG.choice([*"st"], N)}
    )
    encoder = OneHotEncoder(drop="first")
    model = make_pipeline(encoder, PoissonRegressor(alpha=0, tol=1e-11))
    model.fit(frame, EVENTS)
    found = standard_errors(model, frame, EVENTS)
    assert found.features.tolist() == ["(intercept)", "city_q", "city_r", "plan_t"]
    theirs = make_pipeline(
        StandardScaler(), TheirLogisticRegression(C=np.inf, tol=1e-9)
    )
    ours = make_pipeline(StandardScaler(), LogisticRegression(C=np.inf, tol=1e-9))
    a, b = (standard_errors(m.fit(X, LABELS), X, LABELS) for m in (theirs, ours))
    assert_allclose(a.covariance, b.covariance, rtol=1e-4)
    assert pickle.loads(pickle.dumps(a)).table().equals(a.table())


def test_blocks_of_rows():
    model = fitted("tweedie")
    expected = standard_errors(model, X, ZEROS, kind="HC1")
    found = standard_errors(model, RowBlocks(X, ZEROS, block_size=70), kind="HC1")
    assert_allclose(found.covariance, expected.covariance, rtol=1e-8)
    y = SCORES + RNG.normal(size=N)
    model = BMRMRegressor(0, loss="quantile", tol=1e-6).fit(X, y)
    found = standard_errors(model, RowBlocks(X, y, block_size=70))
    assert_allclose(
        found.covariance, standard_errors(model, X, y).covariance, rtol=1e-8
    )
    with pytest.raises(ValueError, match="groups is not supported"):
        standard_errors(model, RowBlocks(X, y), groups=GROUPS)


def test_collections_of_dask():
    array = pytest.importorskip("dask.array")
    model = LogisticRegression(C=np.inf, tol=1e-9).fit(X, CLASSES)
    expected = standard_errors(model, X, CLASSES, WEIGHTS * 0 + 1)
    rows = array.from_array(X, chunks=(90, 2))
    found = standard_errors(model, rows, array.from_array(CLASSES, chunks=90))
    assert_allclose(found.covariance, expected.covariance, rtol=1e-8)


def test_models_far_from_the_optimum_are_told():
    rough = fitted("poisson")
    rough.coef_ = rough.coef_ + 0.02
    with pytest.warns(ConvergenceWarning, match="standard errors from its optimum"):
        standard_errors(rough, X, EVENTS)
    with pytest.warns(ConvergenceWarning, match="standard errors from its optimum"):
        standard_errors(fitted("poisson"), X[:200], EVENTS[:200] + 1.0)


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (L1LogisticOWLQN(1e-2), {}, "no standard errors"),
        (SubLBFGSLinearSVC(), {}, "no standard errors"),
        (MulticlassHingeClassifier(), {}, "no standard errors"),
        (BMRMClassifier(1e-2, loss="roc_area"), {}, "no standard errors"),
        (BMRMClassifier(1e-2, loss="squared_hinge"), {"kind": "fisher"}, "likelihood"),
        (BMRMClassifier(1e-2, loss="log_loss"), {"kind": "powell"}, "quantiles"),
        (BMRMClassifier(1e-2, loss="log_loss"), {"kind": "HC9"}, "kind"),
        (BMRMClassifier(1e-2, loss="log_loss"), {"kind": "cluster"}, "groups"),
        (BMRMClassifier(1e-2, loss="log_loss"), {"reference": 1}, "reference"),
        (BMRMClassifier(1e-2, loss="log_loss"), {"weights": "w"}, "weights"),
    ],
)
@pytest.mark.filterwarnings("ignore:The model has a penalty")
def test_refusals(model, options, message):
    model.fit(X, LABELS)
    with pytest.raises(ValueError, match=message):
        standard_errors(model, X, LABELS, **options)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (BMRMRegressor(1e-3, loss="squared_error", positive=True), "bounds"),
        (BMRMRegressor(1e-3, loss="epsilon_insensitive"), "no standard errors"),
        (HuberRegressor(alpha=0), "epsilon=1.35 times scale_"),
    ],
)
def test_refusals_of_regressors(model, message):
    with pytest.raises(ValueError, match=message):
        standard_errors(model.fit(X, NUMBERS), X, NUMBERS)


@pytest.mark.parametrize("kind", ["OLS", "Logit", "Poisson", "Gamma", "Quantile"])
def test_equal_to_statsmodels(kind):
    sm = pytest.importorskip("statsmodels.api")
    if kind == "OLS":
        theirs, ours = sm.OLS(NUMBERS, ONES).fit(), fitted("squared_error")
        y = NUMBERS
    elif kind == "Logit":
        theirs, y = sm.Logit(LABELS, ONES).fit(disp=0), LABELS
        ours = LogisticRegression(C=np.inf, tol=1e-11).fit(X, LABELS)
    elif kind == "Quantile":
        y = NUMBERS
        theirs = sm.QuantReg(y, ONES).fit(0.5, vcov="iid", p_tol=1e-9, max_iter=9999)
        ours = BMRMRegressor(0, loss="quantile", tol=1e-7).fit(X, y)
    else:
        link = sm.families.links.Log()
        family = getattr(sm.families, kind)(link)
        y = {"Poisson": EVENTS, "Gamma": GAMMA}[kind]
        theirs, ours = sm.GLM(y, ONES, family=family).fit(), fitted(kind.lower())
    method = "fisher" if kind == "Quantile" else "auto"
    found = standard_errors(ours, X, y, kind=method)
    assert_allclose(found.std_errors, theirs.bse, rtol=1e-6)
    if kind != "Quantile":
        # Their quantiles end before the last digits.
        assert_allclose(found.columns()["p_value"], theirs.pvalues, atol=1e-6)

"""Known numbers that are added to scores, such as logarithms of exposures."""

import warnings

import numpy as np
import pytest
from _door import BINARY_LOSSES, Box, Design, Risk, RiskOfParts, regression_losses
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn import config_context
from sklearn.linear_model import PoissonRegressor
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_subqn import (
    BMRMClassifier,
    BMRMRegressor,
    BMRMRegressorCV,
    dual_gap,
    linear_model,
    standard_errors,
)
from sklearn_subqn.exceptions import MissingOffsetWarning
from sklearn_subqn.losses import FirstOrderLoss

RESIDUALS = [
    "squared_error",
    "absolute_error",
    "quantile",
    "epsilon_insensitive",
    "squared_epsilon_insensitive",
    "huber",
]
POWERS = {"poisson": 1.0, "gamma": 2.0, "tweedie": 1.5}
each_residual = pytest.mark.parametrize("loss", RESIDUALS)
each_mean = pytest.mark.parametrize("loss", POWERS)


def data(loss, seed=0, n=150, d=4):
    """X, y, weights and offsets."""
    rng = np.random.default_rng(seed)
    X, offset = rng.normal(size=(n, d)), rng.normal(size=n)
    scores = 0.5 + X @ np.linspace(0.5, -0.5, d) + offset
    if loss == "poisson":
        y = rng.poisson(np.exp(scores)).astype(float)
    elif loss in POWERS:
        y = rng.gamma(2.0, np.exp(scores))
        y *= (loss == "gamma") | (rng.random(n) < 0.7)
    else:
        y = scores + rng.standard_t(3, size=n)
    return X, y, rng.uniform(0.5, 2.0, size=n), offset


def half_deviance(z, y, loss):
    """Of means exp(z), but for a constant."""
    p = POWERS[loss]
    rising = z if p == 2.0 else np.exp((2.0 - p) * z) / (2.0 - p)
    falling = -y * z if p == 1.0 else y * np.exp((1.0 - p) * z) / (p - 1.0)
    return rising + falling


@each_residual
def test_offsets_are_subtracted_from_numbers(loss):
    X, y, weights, offset = data(loss)
    model = BMRMRegressor(0.02, loss=loss).fit(X, y, weights, offset=offset)
    other = BMRMRegressor(0.02, loss=loss).fit(X, y - offset, weights)
    assert_allclose(model.coef_, other.coef_, rtol=1e-12)
    assert model.objective_ == pytest.approx(other.objective_, rel=1e-12)
    assert_allclose(model.predict(X, offset), other.predict(X) + offset, rtol=1e-12)
    score = other.score(X, y - offset, weights)
    assert model.score(X, y, weights, offset=offset) == pytest.approx(score, rel=1e-12)


@each_mean
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_objective_is_that_of_means_with_offsets(loss, fit_intercept):
    """Against SciPy, and the value by its formula; the bound is that of the same."""
    X, y, weights, offset = data(loss)
    shares = weights / weights.sum()

    def J(w):
        z = X @ w[:4] + w[4] * fit_intercept + offset
        return 0.05 * w[:4] @ w[:4] + shares @ half_deviance(z, y, loss)

    model = BMRMRegressor(0.1, loss=loss, fit_intercept=fit_intercept)
    model.fit(X, y, weights, offset=offset)
    w = np.append(model.coef_, model.intercept_)
    assert model.objective_ == pytest.approx(J(w), rel=1e-13)
    assert model.dual_gap_ <= 1e-11 * abs(model.objective_)
    best = minimize(J, np.zeros(5), method="BFGS", options={"gtol": 1e-9})
    assert model.objective_ == pytest.approx(best.fun, rel=1e-9)
    assert model.objective_ - model.dual_gap_ <= best.fun + 1e-13 * abs(best.fun)
    assert_allclose(model.predict(X, offset), np.exp(X @ w[:4] + w[4] + offset))
    assert_allclose(model.predict(X, 0), np.exp(X @ w[:4] + w[4]))


@each_mean
@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_solvers_agree_and_prove_it(loss, penalty):
    X, y, weights, offset = data(loss)
    options = {"alpha": 0.05, "loss": loss, "penalty": penalty}
    best = BMRMRegressor(**options, tol=1e-9).fit(X, y, weights, offset)
    solvers = ["ls-bmrm"]
    if penalty == "l2":
        solvers += ["lbfgs", "bfgs", "newton-cg", "trust-region", "cg"]
    for solver in solvers:
        model = BMRMRegressor(**options, solver=solver, tol=1e-4)
        model.fit(X, y, weights, offset)
        slack = 1e-9 * abs(best.objective_)
        assert model.objective_ >= best.objective_ - best.dual_gap_ - slack
        assert model.objective_ - model.dual_gap_ <= best.objective_ + slack


def test_exposures_are_those_of_rates():
    """As users of scikit-learn write them: rates, weighted by exposures."""
    X, y, weights, offset = data("poisson")
    exposure = np.exp(offset)
    total = weights @ exposure / weights.sum()
    model = BMRMRegressor(0.1, loss="poisson").fit(X, y, weights, offset=offset)
    peer = PoissonRegressor(alpha=0.1 / total, tol=1e-10, max_iter=1000)
    peer.fit(X, y / exposure, weights * exposure)
    assert_allclose(model.coef_, peer.coef_, atol=1e-6)
    assert_allclose(model.predict(X, 0), peer.predict(X), rtol=1e-5)
    score = peer.score(X, y / exposure, weights * exposure)
    found = model.score(X, y, weights, offset=offset)
    assert found == pytest.approx(score, abs=1e-8)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (BMRMRegressor(loss="poisson"), r"offset=np\.log\(exposure\), in fit"),
        (BMRMRegressorCV(loss="poisson"), r"offset=np\.log\(exposure\), in fit"),
        (linear_model.PoissonRegressor(), r"fit\(X, y / exposure, sample_weight"),
    ],
)
def test_errors_say_how_to_give_exposures(model, message):
    X, y = np.eye(3), np.arange(3.0)
    name = type(model).__name__
    with pytest.raises(
        TypeError, match=rf"{name}\.fit\(\) takes no exposure.*{message}"
    ):
        model.fit(X, y, exposure=np.ones(3))
    with pytest.raises(TypeError, match="unexpected keyword argument 'exposures'"):
        model.fit(X, y, exposures=np.ones(3))
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("loss", [*RESIDUALS, *POWERS])
def test_the_same_offset_everywhere_is_part_of_the_intercept(loss):
    X, y, weights, _ = data(loss)
    plain = BMRMRegressor(0.02, loss=loss).fit(X, y, weights)
    model = BMRMRegressor(0.02, loss=loss).fit(X, y, weights, np.full(len(y), 2.5))
    assert_allclose(model.coef_, plain.coef_, atol=1e-7)
    assert model.intercept_ + 2.5 == pytest.approx(plain.intercept_, abs=1e-7)
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-10)


@pytest.mark.parametrize("loss", ["squared_error", *POWERS])
def test_scores_are_zero_for_the_best_constant_beside_offsets(loss):
    X, y, weights, offset = data(loss)
    with pytest.warns(UserWarning, match="makes no use of the features"):
        model = BMRMRegressor(1e9, loss=loss).fit(X, y, weights, offset)
    assert model.score(X, y, weights, offset) == pytest.approx(0.0, abs=1e-6)


def test_tolerances_are_relative_to_deviances():
    """Large offsets are no part of what a gap is relative to."""
    X, y, weights, offset = data("poisson", n=6000, d=8)
    for shift in (0.0, 12.0):
        model = BMRMRegressor(1e-3, loss="poisson", tol=1e-3)
        counts = y * np.exp(shift)
        model.fit(X, counts, weights, offset=offset + shift)
        half = half_deviance(
            np.log(model.predict(X, offset + shift)), counts, "poisson"
        )
        saturated = np.where(counts > 0.0, counts - counts * np.log(counts + 1e-300), 0)
        deviance = weights @ (half - saturated) / weights.sum()
        assert model.dual_gap_ <= 1e-3 * (deviance + model.coef_ @ model.coef_)


def test_several_columns_have_the_same_offsets():
    X, y, _, offset = data("poisson")
    Y = np.column_stack([y, y[::-1]])
    both = BMRMRegressor(0.1, loss="poisson").fit(X, Y, offset=offset)
    each = [
        BMRMRegressor(0.1, loss="poisson").fit(X, column, offset=offset)
        for column in Y.T
    ]
    assert_allclose(both.coef_, [model.coef_ for model in each], rtol=1e-10)
    expected = np.column_stack([model.predict(X, offset) for model in each])
    assert_allclose(both.predict(X, offset), expected, rtol=1e-10)
    mean = np.mean(
        [m.score(X, t, offset=offset) for m, t in zip(each, Y.T, strict=True)]
    )
    assert both.score(X, Y, offset=offset) == pytest.approx(mean)
    squares = BMRMRegressor(0.1, metric=np.eye(2)).fit(X, Y, offset=offset)
    other = BMRMRegressor(0.1, metric=np.eye(2)).fit(X, Y - offset[:, None])
    assert_allclose(squares.coef_, other.coef_, rtol=1e-12)
    quantiles = BMRMRegressor(0.1, loss="quantile", quantile=[0.9, 0.1])
    quantiles.fit(X, y, offset=offset)
    plain = BMRMRegressor(0.1, loss="quantile", quantile=[0.9, 0.1]).fit(X, y - offset)
    predictions = plain.predict(X) + offset[:, None]
    assert_allclose(quantiles.predict(X, offset), predictions, rtol=1e-12)
    score = plain.score(X, y - offset)
    assert quantiles.score(X, y, offset=offset) == pytest.approx(score)


def test_offsets_are_routed():
    X, y, weights, offset = data("poisson", n=90)
    with config_context(enable_metadata_routing=True):
        model = BMRMRegressor(0.1, loss="poisson")
        model.set_fit_request(offset=True, sample_weight=True)
        model.set_score_request(offset=True, sample_weight=True)
        model.set_predict_request(offset=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, model)
        params = {"offset": offset, "sample_weight": weights}
        pipeline.fit(X, y, **params)
        scaled = StandardScaler().fit_transform(X)
        expected = BMRMRegressor(0.1, loss="poisson").fit(scaled, y, weights, offset)
        assert_allclose(pipeline[-1].coef_, expected.coef_)
        predictions = pipeline.predict(X, offset=offset)
        assert_allclose(predictions, expected.predict(scaled, offset))
        scores = cross_val_score(model, X, y, cv=3, params=params)
    for k, score in enumerate(scores):
        test = np.arange(30 * k, 30 * (k + 1))
        train = np.setdiff1d(np.arange(90), test)
        parts = X[train], y[train], weights[train], offset[train]
        part = BMRMRegressor(0.1, loss="poisson").fit(*parts)
        found = part.score(X[test], y[test], weights[test], offset[test])
        assert score == pytest.approx(found)


def test_offsets_are_checked():
    X, y, _, offset = data("poisson")
    model = BMRMRegressor(0.1, loss="poisson").fit(X, y, offset=offset)
    coef = model.coef_.copy()
    for wrong, message in (
        (offset[1:], r"each of the 150 samples, shape \(150,\); got shape \(149,\)"),
        (offset[:, None], r"got shape \(150, 1\)"),
        (np.where(offset > 0.0, -np.inf, offset), "offset must be finite. Logarithms"),
        (["a"] * 150, "offset must be an array of numbers: got an array of type <U1"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y, offset=wrong)
        with pytest.raises(ValueError, match=message):
            model.predict(X, offset=wrong)
        with pytest.raises(ValueError, match=message):
            model.score(X, y, offset=wrong)
    assert_array_equal(model.coef_, coef)

    class Own(FirstOrderLoss):
        def value(self, scores, targets, weights):
            return float(weights @ np.abs(scores - targets))

        def subgradient(self, scores, targets, weights):
            return weights * np.sign(scores - targets)

    with pytest.raises(ValueError, match="offset is for losses by name; got loss=Own"):
        BMRMRegressor(loss=Own()).fit(X, y, offset=offset)
    with pytest.raises(TypeError, match=r"It is given to fit: fit\(X, y, offset=off"):
        BMRMRegressor(offset=offset)


def test_rows_without_weight_and_single_precision():
    X, y, weights, offset = data("poisson")
    weights[::3] = 0.0
    used = weights > 0.0
    few = BMRMRegressor(0.1, loss="poisson")
    few.fit(X[used], y[used], weights[used], offset[used])
    far = np.where(used, offset, 100.0)
    model = BMRMRegressor(0.1, loss="poisson").fit(X, y, weights, far)
    assert_allclose(model.coef_, few.coef_, rtol=1e-7)
    narrow = BMRMRegressor(0.1, loss="poisson").fit(X.astype("f4"), y, weights, offset)
    assert narrow.coef_.dtype == narrow.predict(X.astype("f4"), offset).dtype == "f4"
    assert_allclose(narrow.coef_, few.coef_, rtol=1e-5)


def test_warm_starts_with_other_offsets():
    X, y, weights, offset = data("tweedie")
    model = BMRMRegressor(0.1, loss="tweedie", warm_start=True).fit(X, y, weights)
    model.fit(X, y, weights, offset)
    cold = BMRMRegressor(0.1, loss="tweedie").fit(X, y, weights, offset)
    assert_allclose(model.coef_, cold.coef_, atol=1e-6)


# --- classifiers ---------------------------------------------------------------------


def labels(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X, offset = rng.normal(size=(n, 4)), 2.0 * rng.normal(size=n)
    odds = X @ np.linspace(0.5, -0.5, 4) + offset
    y = np.where(rng.random(n) < 1.0 / (1.0 + np.exp(-odds)), "yes", "no")
    return X, y, rng.uniform(0.5, 2.0, size=n), offset


LABEL_LOSSES = {
    "log_loss": lambda m: np.logaddexp(0.0, -m),
    "squared_hinge": lambda m: np.maximum(1.0 - m, 0.0) ** 2,
    "modified_huber": lambda m: np.where(
        m >= -1.0, np.maximum(1.0 - m, 0.0) ** 2, -4.0 * m
    ),
    "exponential": lambda m: np.exp(-m),
}


@pytest.mark.parametrize("loss", LABEL_LOSSES)
@pytest.mark.parametrize("solver", ["auto", "lbfgs", "trust-region"])
def test_objectives_of_classes_with_offsets(loss, solver):
    X, y, weights, offset = labels()
    shares, signs = weights / weights.sum(), np.where(y == "yes", 1.0, -1.0)

    def J(w):
        margins = signs * (X @ w[:4] + w[4] + offset)
        return 0.05 * w[:4] @ w[:4] + shares @ LABEL_LOSSES[loss](margins)

    model = BMRMClassifier(0.1, loss=loss, solver=solver, tol=1e-8)
    model.fit(X, y, weights, offset)
    w = np.append(model.coef_[0], model.intercept_)
    assert model.objective_ == pytest.approx(J(w), rel=1e-13)
    assert model.dual_gap_ <= 1e-8 * model.objective_
    best = minimize(J, np.zeros(5), method="BFGS", options={"gtol": 1e-8})
    assert model.objective_ == pytest.approx(best.fun, rel=2e-8)
    assert model.objective_ - model.dual_gap_ <= best.fun * (1.0 + 1e-13)
    scores = X @ w[:4] + w[4] + offset
    assert_allclose(model.decision_function(X, offset), scores, atol=1e-10)
    assert_array_equal(model.predict(X, offset), np.where(scores > 0.0, "yes", "no"))
    right = model.predict(X, offset) == y
    assert model.score(X, y, weights, offset) == pytest.approx(shares @ right)
    assert model.score(X, y, offset=0) == np.mean(model.predict(X, 0) == y)
    if loss == "log_loss":
        odds = 1.0 / (1.0 + np.exp(-scores))
        assert_allclose(model.predict_proba(X, offset)[:, 1], odds, atol=1e-12)
        logs = model.predict_log_proba(X, offset)
        assert_allclose(np.exp(logs).sum(axis=1), 1.0)


def test_offsets_of_classes_are_checked():
    X, y, _, offset = labels()
    with pytest.raises(
        ValueError, match=r"offset needs loss='squared_hinge' or .*'hinge'"
    ):
        BMRMClassifier(loss="hinge").fit(X, y, offset=offset)
    three = np.arange(150) % 3
    with pytest.raises(ValueError, match="offset needs two classes; got 3"):
        BMRMClassifier(loss="log_loss").fit(X, three, offset=offset)
    model = BMRMClassifier(0.1, loss="log_loss").fit(X, three)
    for method in (model.predict, model.predict_proba, model.decision_function):
        with pytest.raises(ValueError, match="offset needs two classes; got 3"):
            method(X, offset=offset)
    with pytest.raises(ValueError, match=r"got shape \(149,\)"):
        BMRMClassifier(loss="log_loss").fit(X, y, offset=offset[1:])


# --- the loss itself -----------------------------------------------------------------

OF_ONE_SCORE = {
    **BINARY_LOSSES,
    **regression_losses(quantile=0.3, epsilon=0.4),
}


def rows(name, n=40, seed=1):
    rng = np.random.default_rng(seed)
    targets = rng.choice([-1.0, 1.0], n)
    if name not in BINARY_LOSSES:
        targets = rng.gamma(2.0, size=n)
    z, o, dz = rng.normal(size=(3, n))
    return z, o, dz, targets, rng.dirichlet(np.ones(n))


@pytest.mark.parametrize("name", OF_ONE_SCORE)
def test_oracles_are_those_of_other_scores(name):
    plain, (z, o, dz, y, s) = OF_ONE_SCORE[name], rows(name)
    loss, both = plain.with_offsets(), np.column_stack([y, o])
    R, Q = plain.oracle, loss.oracle
    assert Q.value(z, both, s) == R.value(z + o, y, s)
    u = Q.subgradient(z, both, s)
    assert_array_equal(u, R.subgradient(z + o, y, s))
    expected = R.conjugate(u, y, s) - u @ o
    assert Q.conjugate(u, both, s) == pytest.approx(expected, rel=1e-14)
    equal = u @ z - Q.value(z, both, s)
    assert Q.conjugate(u, both, s) == pytest.approx(equal, abs=1e-13)
    assert Q.feasible(u, both, s).all()
    assert (loss.smooth, loss.steep) == (plain.smooth, plain.steep)
    assert (loss.has_lines, loss.has_envelope) == (plain.has_lines, plain.has_envelope)
    if loss.smooth:
        at, of = Q.derivatives(z, dz, both, s), R.derivatives(z + o, dz, y, s)
        assert at(0.7) == of(0.7)
        curvature = Q.curvature(z, both, s).diagonal()
        assert_array_equal(curvature, R.curvature(z + o, y, s).diagonal())
    else:
        f, g = Q.restrict(z, dz, both, s), R.restrict(z + o, dz, y, s)
        assert f.slope == g.slope
        assert_array_equal(f.kinks, g.kinks)
        at_kink = y - o if name not in BINARY_LOSSES else y * 1.0 - o
        found = Q.kink_rows(at_kink, both)
        assert_array_equal(found, R.kink_rows(at_kink + o, y))
        chosen = Q.argsup(at_kink, dz, both, s)
        assert_array_equal(chosen, R.argsup(at_kink + o, dz, y, s))


@pytest.mark.parametrize("name", [k for k, v in OF_ONE_SCORE.items() if v.has_envelope])
def test_envelopes_and_subsets_of_rows_carry_offsets(name):
    plain, (z, o, _, y, s) = OF_ONE_SCORE[name], rows(name)
    assert isinstance(plain.set, Box)
    both, few = np.column_stack([y, o]), np.arange(0, 40, 3)
    X = np.random.default_rng(2).normal(size=(40, 3))
    risk = Risk(Design(X), plain.with_offsets(), both, s)
    center = risk.center(risk.subgradient(z))
    part = risk.envelope(center, 0.3).of_rows(few)
    expected = plain.envelope(center[few], 0.3).oracle.value(
        (z + o)[few], y[few], s[few]
    )
    assert part.value(z[few]) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("name", ["log_loss", "poisson", "gamma", "quantile"])
def test_parts_of_the_rows_carry_offsets(name):
    plain, (_, o, _, y, s) = OF_ONE_SCORE[name], rows(name)
    both, X = np.column_stack([y, o]), np.random.default_rng(2).normal(size=(40, 3))
    cuts = [slice(0, 11), slice(11, 25), slice(25, 40)]
    loss = plain.with_offsets()
    whole = Risk(Design(X), loss, both, s)
    parts = RiskOfParts([Risk(Design(X[c]), loss, both[c], s[c]) for c in cuts])
    w = np.array([0.3, -0.2, 0.5, 0.1])
    ours, theirs = whole.forward(w), parts.forward(w)
    assert parts.value(theirs) == pytest.approx(whole.value(ours), rel=1e-14)
    u, v = whole.subgradient(ours), parts.subgradient(theirs)
    balanced = whole.balance(u), parts.balance(v)
    assert abs(balanced[0].sum()) <= 1e-15
    assert_allclose(np.concatenate(list(balanced[1])), balanced[0], atol=1e-15)
    found = parts.conjugate_and_size(balanced[1])
    assert_allclose(found, whole.conjugate_and_size(balanced[0]), rtol=1e-13)


def _uses_without_offset():
    """Fitted models, and calls of them without an offset."""
    X, y, _, offset = data("poisson")
    regressors = [
        BMRMRegressor(0.1, loss="poisson"),
        BMRMRegressor(0.1, loss="quantile", quantile=[0.3, 0.7]),
        BMRMRegressorCV([0.1, 1.0], loss="poisson", cv=2),
    ]
    for model in regressors:
        model.fit(X, y, offset=offset)
        yield model, lambda model: model.predict(X)
        yield model, lambda model: model.score(X, y)
    yield regressors[0], lambda model: dual_gap(model, X, y)
    model = BMRMRegressor(0.0, loss="poisson").fit(X, y, offset=offset)
    yield model, lambda model: standard_errors(model, X, y)
    yield model, lambda model: model.coef_table(X, y)
    signs = y > np.median(y)
    model = BMRMClassifier(0.1, loss="log_loss").fit(X, signs, offset=offset)
    for name in ("predict", "decision_function", "predict_proba", "predict_log_proba"):
        yield model, lambda model, name=name: getattr(model, name)(X)
    yield model, lambda model: model.score(X, signs)
    step = make_pipeline(StandardScaler(), BMRMRegressor(0.1, loss="poisson"))
    step.fit(X, y, bmrmregressor__offset=offset)
    yield step, lambda model: model.predict(X)
    yield step, lambda model: model.score(X, y)


def test_use_without_the_offset_of_the_fit_is_told():
    for model, use in _uses_without_offset():
        # Standard errors say as well that this is not the optimum.
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            use(model)
        told = [str(each.message) for each in caught]
        assert sum("fitted with an offset" in each for each in told) == 1


def test_folds_scored_without_the_offset_of_their_fits_are_told():
    X, y, _, offset = data("poisson")
    with config_context(enable_metadata_routing=True):
        model = BMRMRegressor(0.1, loss="poisson").set_fit_request(offset=True)
        model.set_score_request(offset=False)
        with pytest.warns(MissingOffsetWarning):
            cross_val_score(model, X, y, cv=2, params={"offset": offset})


def test_zero_is_an_offset_and_no_offset_is_needed_after_zeros():
    X, y, _, offset = data("poisson")
    model = BMRMRegressor(0.1, loss="poisson").fit(X, y, offset=offset)
    rates = model.predict(X, offset=0)
    assert_allclose(rates * np.exp(offset), model.predict(X, offset), rtol=1e-12)
    assert_array_equal(rates, model.predict(X, np.zeros(len(X))))
    expected = model.score(X, y, offset=np.zeros(len(X)))
    assert model.score(X, y, offset=0) == expected
    # Warnings are errors here.
    model.fit(X, y, offset=np.zeros(len(X))).predict(X)
    model.fit(X, y).score(X, y)

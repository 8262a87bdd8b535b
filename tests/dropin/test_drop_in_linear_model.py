"""Linear models with scikit-learn's parameters, against scikit-learn."""

import warnings

import numpy as np
import pytest
import sklearn
from _door import without_compiled_loop
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from sklearn import linear_model as originals
from sklearn.datasets import make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning, UnsetMetadataPassedError
from sklearn.metrics import (
    accuracy_score,
    log_loss,
    make_scorer,
    mean_pinball_loss,
    mean_poisson_deviance,
    mean_tweedie_deviance,
)
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn_subqn._core.kernels.scale import scale_of

from sklearn_subqn import L1LogisticOWLQN, linear_model

NAMES = linear_model.__all__


def classes(n_classes):
    X, y = make_classification(
        150, 5, n_informative=4, n_redundant=0, n_classes=n_classes, random_state=0
    )
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
    return X * [1.0, 10.0, 1.0, 0.1, 1.0], np.array(["a", "b", "c"])[y], weights


def numbers(counts=False):
    X, y = make_regression(120, 5, noise=20.0, random_state=0)
    rng = np.random.default_rng(0)
    y = rng.poisson(np.exp(y / 150.0)) if counts else y / 20.0 + 3.0
    y = y.astype(float)
    if not counts:
        y[:10] += 50.0
    return X, y, rng.uniform(0.2, 3.0, len(y))


def pair(name, **params):
    """Return both estimators, the original as exact as it can be."""
    exact = {} if name == "QuantileRegressor" else {"tol": 1e-10, "max_iter": 10**5}
    ours = getattr(linear_model, name)(**params)
    return ours, getattr(originals, name)(**{**exact, **params})


def huber_objective(model, X, y, weights):
    z, e = np.abs(y - model.predict(X)) / model.scale_, model.epsilon
    losses = np.where(z <= e, z * z, 2.0 * e * z - e * e)
    total = weights @ (model.scale_ + model.scale_ * losses)
    return total + model.alpha * model.coef_ @ model.coef_


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_those_of_scikit_learn(name):
    ours, theirs = getattr(linear_model, name), getattr(originals, name)
    assert ours().get_params() == theirs().get_params()
    assert ours.__name__ == name


# --- logistic regression -------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "params",
    [
        {"C": 0.1},
        {"C": 0.1, "class_weight": "balanced"},
        {"C": 0.1, "class_weight": {"a": 3.0, "b": 0.5}},
        {"C": 0.1, "fit_intercept": False},
        {"C": 0.05, "l1_ratio": 1.0, "solver": "saga"},
        {"C": 0.05, "l1_ratio": 0.5, "solver": "saga"},
        {"C": np.inf, "solver": "newton-cholesky"},
        {"penalty": None},
        {"penalty": "l1", "solver": "saga", "C": 0.1},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:.*has no effect:UserWarning")
@pytest.mark.filterwarnings("ignore:'penalty' was deprecated:FutureWarning")
@pytest.mark.filterwarnings("ignore:Inconsistent values:UserWarning")
def test_logistic_regression_is_that_of_scikit_learn(params, n_classes):
    X, y, weights = classes(n_classes)
    if params.get("solver") == "saga":
        X = X / X.std(axis=0)
    ours, theirs = pair("LogisticRegression", **params)
    for each in (ours, theirs):
        each.fit(X, y, weights)
    sizes = X.std(axis=0)
    assert ours.coef_.shape == theirs.coef_.shape
    assert_allclose(sizes * ours.coef_, sizes * theirs.coef_, atol=2e-5)
    assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-5)
    assert ours.n_iter_.shape == theirs.n_iter_.shape
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=2e-5)
    # The objective as it is documented.
    per_class = {"a": 1.0, "b": 1.0, "c": 1.0}
    if params.get("class_weight") == "balanced":
        totals = {label: weights[y == label].sum() for label in ours.classes_}
        mean = np.mean(list(totals.values()))
        per_class = {label: mean / totals[label] for label in totals}
    elif "class_weight" in params:
        per_class |= params["class_weight"]
    counted = weights * [per_class[label] for label in y]
    losses = log_loss(y, ours.predict_proba(X), sample_weight=counted, normalize=False)
    free = params.get("penalty", 1) is None or np.isinf(params["C"])
    l1 = {"l1": 1.0}.get(params.get("penalty"), params.get("l1_ratio", 0.0))
    penalty = l1 * np.abs(ours.coef_).sum() + (1.0 - l1) / 2.0 * np.sum(ours.coef_**2)
    value = losses if free else params["C"] * losses + penalty
    assert ours.objective_ == pytest.approx(value, rel=1e-10)
    assert ours.dual_gap_ == np.inf if free else 0.0 <= ours.dual_gap_ <= 1e-9 * value


def test_the_relation_to_alpha():
    X, y, weights = classes(3)
    ours = linear_model.LogisticRegression(C=0.2).fit(X, y, weights)
    alpha = 1.0 / (0.2 * weights.sum())
    model = L1LogisticOWLQN(alpha, l1_ratio=0.0).fit(X, y, weights)
    assert_allclose(ours.coef_, model.coef_, rtol=1e-9)
    assert ours.objective_ == pytest.approx(model.objective_ / alpha, rel=1e-9)
    (history,) = ours.history_
    assert history.objective[-1] == pytest.approx(ours.objective_, rel=1e-9)
    assert history.lower_bound[-1] <= ours.objective_


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "params",
    [
        {"Cs": 4},
        {"Cs": [1.0, 0.01], "class_weight": "balanced", "scoring": "neg_log_loss"},
        {"Cs": [0.1, 1.0], "l1_ratios": [0.0, 0.5], "solver": "saga"},
        {"Cs": [0.1, 1.0], "refit": False},
        {"Cs": [0.1, 1.0], "use_legacy_attributes": False},
        {"Cs": [0.1], "l1_ratios": [0.2, 0.5], "use_legacy_attributes": False},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore:.*has no effect:UserWarning")
def test_cross_validation_is_that_of_scikit_learn(params, n_classes):
    X, y, weights = classes(n_classes)
    X = X / X.std(axis=0)
    ours, theirs = pair("LogisticRegressionCV", cv=3, **params)
    if "l1_ratios" in params:
        theirs.set_params(solver="saga")
    for each in (ours, theirs):
        each.fit(X, y, sample_weight=weights)
    for name in ("coef_", "intercept_", "scores_", "coefs_paths_", "Cs_", "C_"):
        one, other = getattr(ours, name), getattr(theirs, name)
        assert isinstance(one, dict) == isinstance(other, dict)
        if isinstance(other, dict):
            assert one.keys() == other.keys()
            one, other = list(one.values()), list(other.values())
        assert np.shape(one) == np.shape(other)
        assert_allclose(one, other, atol=1e-4)
    assert_array_equal(ours.l1_ratio_, theirs.l1_ratio_)
    assert_array_equal(ours.l1_ratios_, theirs.l1_ratios_)
    assert ours.n_iter_.shape == theirs.n_iter_.shape
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-4)
    if params.get("refit", True):
        assert 0.0 <= ours.dual_gap_ <= 1e-9 * ours.objective_
    else:
        assert not hasattr(ours, "dual_gap_")


@pytest.mark.parametrize("routing", [False, True])
def test_one_weight_of_all_samples_is_that_of_each(routing):
    X, y, _ = classes(2)
    with sklearn.config_context(enable_metadata_routing=routing):
        scoring = make_scorer(accuracy_score)
        if routing:
            scoring.set_score_request(sample_weight=True)
        search = linear_model.LogisticRegressionCV(
            cv=3, Cs=3, l1_ratios=(0.0,), use_legacy_attributes=False, scoring=scoring
        )
        scalar, each = (
            sklearn.clone(search).fit(X, y, sample_weight=weights)
            for weights in (2.0, np.full(len(y), 2.0))
        )
    np.testing.assert_array_equal(scalar.scores_, each.scores_)
    np.testing.assert_array_equal(scalar.coef_, each.coef_)


def test_folds_without_some_of_the_classes_have_scores_by_probabilities():
    X, y = np.arange(6.0)[:, None], np.repeat(["a", "b", "c"], 2)
    clf = linear_model.LogisticRegressionCV(
        cv=KFold(3), scoring="neg_log_loss", Cs=[1e-6, 1.0], use_legacy_attributes=False
    ).fit(X, y)
    assert np.isfinite(clf.scores_).all()
    assert clf.C_ == 1e-6


# --- regression ----------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "params",
    [
        {"alpha": 0.1},
        {"alpha": 0.01, "quantile": 0.9},
        {"alpha": 0.0},
        {"alpha": 0.0, "quantile": 0.1, "fit_intercept": False},
    ],
    ids=str,
)
def test_quantile_regression_is_that_of_scikit_learn(params, weighted):
    X, y, weights = numbers()
    weights = weights if weighted else None
    ours, theirs = pair("QuantileRegressor", **params)
    values = []
    for each in (ours, theirs):
        each.fit(X, y, weights)
        values.append(
            params["alpha"] * np.abs(each.coef_).sum()
            + mean_pinball_loss(
                y, each.predict(X), sample_weight=weights, alpha=each.quantile
            )
        )
    assert ours.objective_ == pytest.approx(values[0], rel=1e-12)
    assert values[0] == pytest.approx(values[1], rel=1e-9)
    if params["alpha"]:
        assert 0.0 <= ours.dual_gap_ <= 1e-6 * values[0]
        assert ours.objective_ - ours.dual_gap_ <= values[1] * (1 + 1e-12)
    else:
        assert ours.dual_gap_ == np.inf
    # The linear program has one solution only, with random weights.
    if weighted:
        assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)
        assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-7)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-6)


@pytest.mark.parametrize("alpha", [1.0, 1e-3, 0.0])
def test_poisson_regression_is_that_of_scikit_learn(alpha):
    X, y, weights = numbers(counts=True)
    ours, theirs = pair("PoissonRegressor", alpha=alpha)
    for each in (ours, theirs):
        each.fit(X, y, weights)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-7)
    assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-6)
    deviance = mean_poisson_deviance(y, ours.predict(X), sample_weight=weights)
    value = 0.5 * deviance + 0.5 * alpha * ours.coef_ @ ours.coef_
    assert ours.objective_ == pytest.approx(value, rel=1e-12)
    assert ours.history_[0].objective[-1] == pytest.approx(value, rel=1e-9)
    assert ours.dual_gap_ <= 1e-9 * value if alpha else ours.dual_gap_ == np.inf
    assert ours.score(X, y, weights) == pytest.approx(theirs.score(X, y, weights))


@pytest.mark.parametrize("alpha", [1.0, 1e-3, 0.0])
@pytest.mark.parametrize(
    ("name", "params", "power"),
    [
        ("GammaRegressor", {}, 2.0),
        ("TweedieRegressor", {}, 0.0),
        ("TweedieRegressor", {"power": 0, "link": "identity"}, 0.0),
        ("TweedieRegressor", {"power": 1, "link": "log"}, 1.0),
        ("TweedieRegressor", {"power": 1.3, "fit_intercept": False}, 1.3),
        ("TweedieRegressor", {"power": 2.0}, 2.0),
    ],
)
def test_regression_of_means_is_that_of_scikit_learn(name, params, power, alpha):
    X, y, weights = numbers(counts=power > 0.0)
    y += 0.1 * (power == 2.0)
    ours, theirs = pair(name, alpha=alpha, **params)
    for each in (ours, theirs):
        each.fit(X, y, weights)
    assert_allclose(ours.coef_, theirs.coef_, atol=2e-6)
    assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-5)
    deviance = mean_tweedie_deviance(
        y, ours.predict(X), sample_weight=weights, power=power
    )
    value = 0.5 * deviance + 0.5 * alpha * ours.coef_ @ ours.coef_
    assert ours.objective_ == pytest.approx(value, rel=1e-10)
    assert ours.dual_gap_ <= 1e-9 * value if alpha else ours.dual_gap_ == np.inf
    assert ours.score(X, y, weights) == pytest.approx(theirs.score(X, y, weights))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"power": 3.0}, "power must be 0, or from 1 to 2.*got 3.0"),
        ({"power": -1}, "power must be 0, or from 1 to 2.*got -1"),
        ({"power": 1.5, "link": "identity"}, "power=1.5 needs link='log'"),
        ({"link": "log"}, "power=0.0 needs link='identity'"),
    ],
)
def test_objectives_of_means_that_are_not_convex_are_refused(params, message):
    X, y, _ = numbers(counts=True)
    with pytest.raises(ValueError, match=message):
        linear_model.TweedieRegressor(**params).fit(X, y)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"alpha": 1.0},
        {"alpha": 0.0},
        {"epsilon": 1.0, "alpha": 0.1},
        {"fit_intercept": False, "alpha": 0.1},
    ],
    ids=str,
)
def test_huber_regression_is_that_of_scikit_learn(params, weighted):
    X, y, weights = numbers()
    weights = weights if weighted else np.ones(len(y))
    ours, theirs = pair("HuberRegressor", **params)
    for each in (ours, theirs):
        each.fit(X, y, weights)
    value, other = (huber_objective(each, X, y, weights) for each in (ours, theirs))
    assert ours.objective_ == pytest.approx(value, rel=1e-12)
    assert value <= other * (1 + 1e-12)
    # Near a scale of zero, scikit-learn ends early.
    assert other == pytest.approx(value, rel=1e-6 if theirs.scale_ > 1e-6 else 1e-3)
    if params.get("alpha") == 0.0:
        assert ours.dual_gap_ == np.inf
    else:
        assert 0.0 <= ours.dual_gap_ <= 1e-11 * value
    if theirs.scale_ > 1e-6:
        assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
        assert ours.scale_ == pytest.approx(theirs.scale_, rel=1e-4)
        assert_array_equal(ours.outliers_, theirs.outliers_)
    history = ours.history_[0]
    assert np.all(np.diff(history.objective) <= 0.0)
    assert history.objective[-1] == pytest.approx(value, rel=1e-9)
    assert np.all(np.array(history.lower_bound) <= value * (1 + 1e-12))


@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_bounds_of_huber_regression_hold_before_the_end(max_iter, monkeypatch):
    # As for more rows, which are not for one compiled loop.
    without_compiled_loop(monkeypatch)
    X, y, weights = numbers()
    best = linear_model.HuberRegressor(epsilon=2.0).fit(X, y, weights)
    model = linear_model.HuberRegressor(epsilon=2.0, max_iter=max_iter)
    with pytest.warns(ConvergenceWarning, match="a relative gap of"):
        model.fit(X, y, weights)
    assert model.dual_gap_ > 1e-5 * model.objective_
    assert model.objective_ - model.dual_gap_ <= best.objective_ * (1 + 1e-12)
    assert model.objective_ == pytest.approx(huber_objective(model, X, y, weights))
    assert model.objective_ >= best.objective_ * (1 - 1e-12)


def test_a_scale_of_zero_is_proven_by_least_absolute_errors():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 40))
    y = X[:, 0] + rng.normal(size=50)
    model = linear_model.HuberRegressor(alpha=0.1).fit(X, y)
    assert 0.0 < model.scale_ < 1e-9
    assert model.dual_gap_ <= 1e-9 * model.objective_
    theirs = originals.HuberRegressor(alpha=0.1, max_iter=10**4).fit(X, y)
    assert model.objective_ <= huber_objective(theirs, X, y, np.ones(50))
    assert model.outliers_.sum() < 25


def test_more_features_than_rows_end_at_a_scale_of_zero_at_once():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 20))
    X[5:] = X[[1, 1, 3]]
    model = linear_model.HuberRegressor().fit(X, X @ np.ones(20))
    assert model.dual_gap_ <= 1e-5 * model.objective_
    assert model.n_iter_ < 200


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("dtype", "alpha", "share"),
    [(np.float64, 1e-4, 4e-13), (np.float64, 1e-12, 4e-13), (np.float32, 1e-4, 5e-7)],
)
def test_huber_regression_of_exact_targets_ends_where_all_is_rounding(
    dtype, alpha, share
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 30)).astype(dtype)
    y = X @ rng.normal(size=30) + 3.0
    model = linear_model.HuberRegressor(alpha=alpha).fit(X, y)
    assert model.dual_gap_ <= max(1e-5 * model.objective_, share * 200 * y.std())
    assert_allclose(model.predict(X), y, atol=np.finfo(dtype).eps * 100)
    assert model.n_iter_ < 200
    assert type(model.scale_) is type(originals.HuberRegressor().fit(X, y).scale_)


def test_huber_regression_does_not_depend_on_the_unit_of_y():
    X, y, _ = numbers()
    model = linear_model.HuberRegressor(alpha=0.1).fit(X, y)
    for unit in (1e-6, 1e6):
        other = linear_model.HuberRegressor(alpha=0.1 / unit).fit(X, unit * y)
        assert_allclose(other.coef_, unit * model.coef_, rtol=1e-6)
        assert other.scale_ == pytest.approx(unit * model.scale_, rel=1e-6)


def test_no_penalty_in_any_units_of_features():
    """The maximum likelihood, by a general solver on features of one size."""
    X, y, _ = classes(2)
    signs = np.where(y == "b", 1.0, -1.0)

    def value(w):
        scores = X @ (w[:-1] / X.std(axis=0)) + w[-1]
        return np.logaddexp(0.0, -signs * scores).sum()

    best = minimize(value, np.zeros(6), method="BFGS", options={"gtol": 1e-7})
    units = 10.0 ** np.array([-6.0, 0.0, 3.0, 6.0, -3.0])
    model = linear_model.LogisticRegression(C=np.inf).fit(X * units, y)
    assert_allclose(
        model.coef_[0] * units * X.std(axis=0), best.x[:-1], rtol=1e-4, atol=1e-5
    )
    assert model.objective_ == pytest.approx(best.fun, rel=1e-9)


@pytest.mark.parametrize("name", [name for name in NAMES if "CV" not in name])
def test_no_penalty_with_features_far_from_zero(name):
    X, y, weights = numbers(counts=True)
    y += name == "GammaRegressor"
    if name == "LogisticRegression":
        X, y, weights = classes(3)
    params = {"C": np.inf} if name == "LogisticRegression" else {"alpha": 0.0}
    model = getattr(linear_model, name)(**params)
    near = model.fit(X, y, weights).objective_, model.coef_, model.predict(X)
    far = X + 1e5 * np.array([1.0, 0.0, -3.0, 20.0, 0.0])
    assert model.fit(far, y, weights).objective_ == pytest.approx(near[0], rel=1e-9)
    assert_allclose(model.coef_, near[1], rtol=1e-5, atol=1e-6)
    if name != "LogisticRegression":
        assert_allclose(model.predict(far), near[2], rtol=1e-5, atol=1e-5)


# --- what all share ------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_sparse_input(name):
    X, y, weights = numbers(counts=True)
    y += name == "GammaRegressor"
    if name.startswith("Logistic"):
        X, y, weights = classes(3)
    params = {"alpha": 0.01} if "Regressor" in name else {}
    model = getattr(linear_model, name)(**params)
    dense = model.fit(X, y, sample_weight=weights)
    coef = dense.coef_
    model.fit(sparse.csr_array(X), y, sample_weight=weights)
    assert_allclose(model.coef_, coef, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (linear_model.LogisticRegression(solver="saga"), "solver='saga' has no effect"),
        (linear_model.LogisticRegression(dual=True), "dual=True has no effect"),
        (
            linear_model.LogisticRegression(penalty="l2", l1_ratio=0.5),
            "l1_ratio=0.5 has no effect with penalty='l2'",
        ),
        (
            linear_model.LogisticRegression(penalty=None, C=2.0),
            r"C=2.0 has no effect with penalty=None",
        ),
        (
            linear_model.PoissonRegressor(solver="newton-cholesky"),
            "solver='newton-cholesky' has no effect",
        ),
        (
            linear_model.QuantileRegressor(alpha=0.1, solver_options={"a": 1}),
            r"solver_options=\{'a': 1\} has no effect",
        ),
    ],
    ids=str,
)
def test_what_has_no_effect_is_named(model, message):
    X, y, _ = numbers(counts=True)
    with pytest.warns(UserWarning, match=message) as caught:
        model.fit(X, np.minimum(y, 2))
    assert caught[0].filename == __file__


@pytest.mark.filterwarnings("always")
def test_what_has_no_effect_is_named_once_for_each_line():
    X, y, _ = classes(3)
    search = GridSearchCV(
        linear_model.LogisticRegression(solver="saga"), {"C": [0.1, 1.0]}
    )
    with pytest.warns(UserWarning, match="solver='saga' has no effect") as caught:
        search.fit(X, y)
    assert len(caught) == 1


@pytest.mark.filterwarnings("error")
def test_repeated_warnings_are_errors_where_warnings_are():
    X, y, _ = classes(3)
    for _ in range(2):
        with pytest.raises(UserWarning, match="dual=True"):
            linear_model.LogisticRegression(dual=True).fit(X, y)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("LogisticRegression", {"C": -1.0}),
        ("LogisticRegression", {"solver": "newton"}),
        ("LogisticRegressionCV", {"Cs": 0}),
        ("QuantileRegressor", {"quantile": 1.0}),
        ("PoissonRegressor", {"alpha": -1.0}),
        ("GammaRegressor", {"alpha": -1.0}),
        ("TweedieRegressor", {"link": "logit"}),
        ("HuberRegressor", {"epsilon": 0.5}),
    ],
)
def test_values_are_checked_as_by_scikit_learn(name, params):
    X, y, _ = numbers(counts=True)
    messages = []
    for models in (linear_model, originals):
        with pytest.raises(ValueError, match=next(iter(params))) as caught:
            getattr(models, name)(**params).fit(X, y)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("name", ["LogisticRegression", "PoissonRegressor"])
def test_few_iterations_give_a_warning_with_the_gap(name, monkeypatch):
    # As for more rows, which are not for one compiled loop.
    without_compiled_loop(monkeypatch)
    X, y, _ = numbers(counts=True)
    model = getattr(linear_model, name)(max_iter=1, tol=1e-12)
    with pytest.warns(
        ConvergenceWarning, match=f"{name}.* reached max_iter=1 .*proven"
    ):
        model.fit(X, np.minimum(y, 1))


# --- scripts written for scikit-learn, with one import changed ------------------------


def classify(LogisticRegression):
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y, _ = classes(3)
    pipe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000, C=0.5))
    probabilities = cross_val_predict(pipe, X, y, cv=3, method="predict_proba")
    calibrated = CalibratedClassifierCV(LogisticRegression(), cv=2).fit(X, y)
    return probabilities, calibrated.predict_proba(X), pipe.fit(X, y)[-1].coef_


def search_over_penalties(LogisticRegressionCV):
    X, y, _ = classes(2)
    clf = LogisticRegressionCV(
        Cs=[0.01, 0.1, 1.0],
        cv=3,
        l1_ratios=(0,),
        scoring="neg_log_loss",
        use_legacy_attributes=False,
        tol=1e-8,
        max_iter=10**4,
    ).fit(X, y)
    return clf.C_, clf.scores_.mean(axis=0), clf.predict_proba(X)


def quantiles(QuantileRegressor):
    X, y, weights = numbers()
    models = [
        QuantileRegressor(quantile=q, alpha=0.05, solver="highs")
        for q in (0.1, 0.5, 0.9)
    ]
    return np.column_stack([m.fit(X, y, weights).predict(X) for m in models])


def count(PoissonRegressor):
    from sklearn.model_selection import GridSearchCV

    X, y, weights = numbers(counts=True)
    search = GridSearchCV(
        PoissonRegressor(max_iter=300, tol=1e-8), {"alpha": [0.0, 0.1, 1.0]}, cv=3
    ).fit(X, y, sample_weight=weights)
    return search.cv_results_["mean_test_score"], search.predict(X)


def robust(HuberRegressor):
    X, y, _ = numbers()
    model = HuberRegressor(epsilon=1.35, alpha=0.1, max_iter=10**4, tol=1e-9).fit(X, y)
    return model.coef_, model.intercept_, model.scale_, model.outliers_.astype(float)


@pytest.mark.parametrize(
    ("script", "name"),
    [
        (classify, "LogisticRegression"),
        (search_over_penalties, "LogisticRegressionCV"),
        (quantiles, "QuantileRegressor"),
        (count, "PoissonRegressor"),
        (robust, "HuberRegressor"),
    ],
)
def test_a_script_with_one_import_changed(script, name):
    ours, theirs = (script(getattr(m, name)) for m in (linear_model, originals))
    for one, other in zip(ours, theirs, strict=True):
        assert_allclose(one, other, atol=2e-3)


@pytest.mark.parametrize("weighted", [True, False])
def test_searches_route_metadata_as_the_original(weighted):
    X, y = make_classification(150, 5, random_state=0)
    weights = np.random.default_rng(0).random(150)
    groups = np.arange(150) % 7
    scorer = make_scorer(accuracy_score)
    with sklearn.config_context(enable_metadata_routing=True):
        scorer.set_score_request(sample_weight=weighted)
        ours, theirs = pair(
            "LogisticRegressionCV",
            Cs=4,
            cv=GroupKFold(3),
            l1_ratios=(0.0,),
            scoring=scorer,
            use_legacy_attributes=False,
        )
        for clf in (ours, theirs):
            clf.fit(X, y, sample_weight=weights, groups=groups)
        assert_allclose(ours.scores_, theirs.scores_, atol=1e-12)
        asked = linear_model.LogisticRegressionCV(scoring="accuracy")
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            asked.fit(X, y, sample_weight=weights)
        with pytest.raises(TypeError, match="not routed"):
            asked.fit(X, y, costs=weights)
    with pytest.raises(TypeError, match="enable_metadata_routing"):
        asked.fit(X, y, costs=weights)


def test_huber_where_all_residuals_have_one_size():
    """The slope by the scale is zero there, up to the rounding of the weights' sum."""
    for n in range(3, 60):
        X = np.zeros((n, 1), dtype=np.float32)
        y = np.full(n, 3.0)
        model = linear_model.HuberRegressor(epsilon=5.0, fit_intercept=False).fit(X, y)
        assert model.scale_ == pytest.approx(3.0, rel=1e-9)
        assert model.objective_ == pytest.approx(6.0 * n, rel=1e-9)


def test_no_penalty_said_twice():
    """Guides to the deprecation of ``penalty=None`` say to give both."""
    X, y = make_classification(80, flip_y=0.3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", FutureWarning)
        both = linear_model.LogisticRegression(penalty=None, C=np.inf).fit(X, y)
        one = linear_model.LogisticRegression(C=np.inf).fit(X, y)
    assert_allclose(both.coef_, one.coef_, rtol=1e-6)
    with pytest.warns(UserWarning, match=r"C=2\.25 has no effect"):
        linear_model.LogisticRegression(penalty=None, C=2.25).fit(X, y)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_huber_proves_more_than_float32_coefficients_show(fit_intercept):
    """Bound and scale come from duals, not from residuals of rounded coefficients."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(20, 4)) * [300, 100, 2, 1]).astype(np.float32)
    y = X @ [0.01, 0.01, 1.0, 1.0] + rng.standard_t(2, size=20)
    model = linear_model.HuberRegressor(alpha=0.25, fit_intercept=fit_intercept)
    model.set_params(tol=1e-9, max_iter=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, sample_weight=rng.uniform(1, 1e5, 20))
    assert model.dual_gap_ <= 1e-6 * model.objective_


def test_huber_without_an_intercept_begins_at_the_level_of_y():
    """The scale of equal targets is that of the targets where nothing takes them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 4)) * [300, 100, 2, 1]
    weights = rng.uniform(1, 1e5, 20)
    y = np.full(20, 1000.0)
    model = linear_model.HuberRegressor(
        alpha=0.25, fit_intercept=False, tol=1e-9, max_iter=1000
    )
    model.fit(X, y, sample_weight=weights)
    assert model.dual_gap_ <= 1e-9 * model.objective_
    assert model.n_iter_ <= 100


@pytest.mark.parametrize("level", [1e4, 1e6, 1e8])
def test_huber_takes_no_more_iterations_far_from_zero(level):
    """The level of y, which the intercept takes, is not the solver's affair."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = X @ rng.normal(size=5) + 0.1 * rng.normal(size=200)
    near = linear_model.HuberRegressor().fit(X, y)
    far = linear_model.HuberRegressor().fit(X, y + level)
    assert far.n_iter_ <= 4 * near.n_iter_
    assert_allclose(far.coef_, near.coef_, rtol=1e-5)
    assert far.intercept_ - level == pytest.approx(near.intercept_, abs=1e-5)
    assert far.scale_ == pytest.approx(near.scale_, rel=1e-5)
    again = linear_model.HuberRegressor(warm_start=True).fit(X, y + level)
    assert again.fit(X, y + level).n_iter_ <= 2


def test_huber_in_single_precision_is_evaluated_as_its_intercept_is_stored():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3)).astype(np.float32)
    y = 1e7 + 0.01 * rng.normal(size=60)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = linear_model.HuberRegressor().fit(X, y)
    assert model.intercept_.dtype == np.float32
    expected = huber_objective(model, X.astype(np.float64), y, np.ones(60))
    assert model.objective_ == pytest.approx(expected, rel=1e-6)


def test_huber_finds_a_scale_where_its_slope_jumps():
    """An outlier with a large feature is reached at one scale, and not below it."""
    x = 4696.0 * np.array([0.0, 0.0, -1.0, 0.0, -8.0, 957.0])
    X, y = x[:, np.newaxis], np.array([1e3] * 5 + [10702.7])
    model = linear_model.HuberRegressor(alpha=1.86e-7, tol=1e-9, max_iter=1000)
    model.fit(X, y)
    assert model.dual_gap_ <= 1e-9 * model.objective_
    assert model.n_iter_ <= 1000


def test_huber_ends_where_the_scale_is_rounding():
    """Of equal targets without an intercept, with features of unlike units."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(28, 4)) * np.exp(3.0 * rng.normal(size=(28, 4)))
    X = X * [1e-1, 1e2, 1e6, 1e9]
    weights = 10.0 ** rng.uniform(-6, 6, size=28)
    model = linear_model.HuberRegressor(alpha=1e-8, fit_intercept=False)
    model.set_params(tol=1e-9, max_iter=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, np.full(28, 1e3), sample_weight=weights)
    assert model.n_iter_ <= 500


@pytest.mark.parametrize("outliers", [0, 1, 30, 85])
@pytest.mark.parametrize("epsilon", [1.0, 1.35, 5.0])
def test_the_scale_of_residuals_is_the_root_of_its_equation(outliers, epsilon):
    """sum_i s_i min(r_i² / sigma², epsilon²) = 1, or zero where there is no root."""
    rng = np.random.default_rng(outliers)
    r = rng.normal(size=100)
    r[:outliers] *= 1e6
    r[90:] = 0.0
    weights = rng.uniform(0.1, 1.0, 100)
    weights /= weights.sum()
    scale = scale_of(r, weights, epsilon, 0.0)
    if epsilon**2 * weights[r != 0.0].sum() <= 1.0:
        assert scale == 0.0
        return
    squares = np.minimum((r / scale) ** 2, epsilon**2)
    assert weights @ squares == pytest.approx(1.0, rel=1e-12)
    for start in (1e-3 * scale, 0.9 * scale, scale, 1e3 * scale):
        again = scale_of(r, weights, epsilon, start)
        assert again == pytest.approx(scale, rel=1e-12)
    one = np.where(np.arange(100) < 1, r, 0.0)
    assert scale_of(one, weights, epsilon, 0.0) == 0.0 or epsilon**2 * weights[0] > 1.0


def test_huber_has_fewer_or_more_rows_beyond_the_edges():
    """Its Hessian is the sum over either side."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    y = X @ [1.0, -2.0, 0.0, 3.0] + rng.standard_t(1.1, size=200)
    for epsilon in (1.0, 1.1, 3.0):
        model = linear_model.HuberRegressor(epsilon=epsilon, tol=1e-9).fit(X, y)
        assert model.dual_gap_ <= 1e-9 * model.objective_


@pytest.mark.parametrize("loop", [True, False])
@pytest.mark.parametrize("epsilon", [1.0, 1.35, 3.0])
@pytest.mark.parametrize("alpha", [1e-8, 1e-2, 10.0])
def test_huber_with_repeated_rows_or_weights_dense_or_sparse(
    alpha, epsilon, loop, monkeypatch
):
    """The same optimum by the compiled loop and without it, and none is better."""
    if not loop:
        without_compiled_loop(monkeypatch)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 6)) * [1.0, 10.0, 0.1, 1.0, 1.0, 1.0]
    X[rng.random(X.shape) < 0.5] = 0.0
    y = X @ rng.normal(size=6) + rng.standard_t(2, size=150) + 5.0
    weights = rng.integers(1, 4, 150)
    model = linear_model.HuberRegressor(alpha=alpha, epsilon=epsilon, max_iter=1000)
    fits = []
    for data in (
        (X, y, weights),
        (np.repeat(X, weights, axis=0), np.repeat(y, weights)),
        (sparse.csr_array(X), y, weights),
        (X.astype(np.float32), y, weights),
    ):
        model.fit(*data)
        fits.append((model.objective_, model.objective_ - model.dual_gap_))
    value, bound = fits[0]
    assert value - bound <= 1e-9 * value
    for other, lower in fits[1:3]:
        assert other == pytest.approx(value, rel=1e-9)
        assert lower <= value * (1.0 + 1e-12)
    assert fits[3][0] == pytest.approx(value, rel=1e-5)
    theirs = originals.HuberRegressor(alpha=alpha, epsilon=epsilon, max_iter=10**4)
    theirs.fit(X, y, weights)
    assert bound <= huber_objective(theirs, X, y, weights) * (1.0 + 1e-12)


@pytest.mark.parametrize("n", [50, 65, 90])
@pytest.mark.parametrize("alpha", [1e-4, 1.0])
def test_huber_between_a_scale_of_zero_and_others(n, alpha):
    """With 40 features residuals of half the rows or so vanish."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 40))
    y = X @ rng.normal(size=40) + rng.standard_t(2, size=n)
    for data in ((X, y), (sparse.csr_array(X), y)):
        model = linear_model.HuberRegressor(alpha=alpha, max_iter=500).fit(*data)
        assert model.dual_gap_ <= 1e-9 * model.objective_

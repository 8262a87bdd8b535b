"""Ordinal regression with thresholds learned jointly: optima, bounds, probabilities."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, sparse
from scipy.special import expit

from sklearn_subqn import BMRMClassifier, BMRMRegressor
from sklearn_subqn.losses import OrdinalLogistic

ALL, IMMEDIATE = "ordinal_all_threshold", "ordinal_immediate_threshold"
LOGIT = "ordinal_logit"
each_loss = pytest.mark.parametrize("loss", [ALL, IMMEDIATE, LOGIT])


def grades(n=150, d=4, n_classes=4, seed=0):
    """Noisy grades, the second one rare, and weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    z = X @ np.linspace(-1.0, 1.5, d) + rng.logistic(size=n)
    y = np.digitize(z, [-1.0, -0.8, 1.0][: n_classes - 1])
    return X, y, rng.integers(0, 4, n).astype(float)


def objective(params, X, y, s, alpha, loss, penalty=None):
    """The formula of the documentation, by thresholds."""
    d = X.shape[1]
    w, thresholds = params[:d], params[d:]
    z, total = X @ w, 0.0
    if loss == LOGIT:
        ends = np.concatenate([[-np.inf], thresholds, [np.inf]])
        if np.any(np.diff(thresholds) <= 0.0):
            return 1e10
        total = -s @ np.log(expit(ends[y + 1] - z) - expit(ends[y] - z))
        thresholds = []
    for k, threshold in enumerate(thresholds):
        sign = np.where(y > k, 1.0, -1.0)
        counts = (y == k) | (y == k + 1) if loss == IMMEDIATE else True
        total += np.sum(s * counts * np.logaddexp(0.0, -sign * (z - threshold)))
    omega = w @ w / 2.0 if penalty is None else penalty(w)
    return alpha * omega + total / s.sum()


def params_of(model):
    return np.append(model.coef_[1], -np.diff(model.intercept_))


@each_loss
@pytest.mark.parametrize("alpha", [1e-4, 1e-2, 1.0])
def test_optimum_is_that_of_scipy(loss, alpha):
    X, y, s = grades()
    args = X, y, s, alpha, loss
    start = np.append(np.zeros(4), [-1.0, 0.0, 1.0])
    found = optimize.minimize(objective, start, args=args, options={"gtol": 1e-8})
    model = BMRMClassifier(alpha, loss=loss, tol=1e-9).fit(X, y, s)
    assert model.objective_ == pytest.approx(found.fun, rel=1e-10)
    assert model.objective_ == pytest.approx(objective(params_of(model), *args))
    assert model.objective_ - model.dual_gap_ <= found.fun
    assert model.dual_gap_ <= 1e-9 * model.objective_
    assert_allclose(params_of(model), found.x, atol=1e-5)
    assert_allclose(model.coef_, np.outer(np.arange(4), model.coef_[1]))


@pytest.mark.parametrize("rare", [(0,), (3,), (0, 1)])
@pytest.mark.parametrize("weight", [1e-12, 1e-50])
def test_rare_classes_at_an_end_hardly_change_the_objective(rare, weight):
    X, y, s = grades()
    few = np.isin(y, rare)
    s[few] *= weight
    model = BMRMClassifier(1e-2, loss=LOGIT, tol=1e-6).fit(X, y, s)
    others = BMRMClassifier(1e-2, loss=LOGIT, tol=1e-9).fit(X[~few], y[~few], s[~few])
    added = s[few].sum() / s.sum() * (1.0 - np.log(weight)) * 10.0
    assert model.objective_ >= others.objective_ - others.dual_gap_ - added
    assert model.objective_ <= others.objective_ * (1.0 + 1e-6) + added
    assert model.objective_ - model.dual_gap_ <= others.objective_ + added
    assert model.dual_gap_ <= 1e-6 * model.objective_


@pytest.mark.parametrize("weight", [1e-9, 1e-13, 1e-300])
def test_rare_classes_between_others_are_fitted_or_named(weight):
    X, y, s = grades()
    s[y == 2] *= weight
    model = BMRMClassifier(1e-2, loss=LOGIT, tol=1e-6)
    if weight == 1e-9:
        assert model.fit(X, y, s).dual_gap_ <= 1e-6 * model.objective_
        return
    with pytest.raises(ValueError, match=r"class 2 have so little.* equal up to round"):
        model.fit(X, y, s)


@each_loss
@pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
def test_sparse_penalties(loss, penalty):
    X, y, s = grades()

    def omega(w):
        if penalty == "l1":
            return np.abs(w).sum()
        return np.abs(w).sum() / 2.0 + w @ w / 4.0

    args = X, y, s, 0.3, loss, omega

    def split(v):
        return objective(np.append(v[:4] - v[4:8], v[8:]), *args)

    # Both signs apart, where the L1 norm is their sum or, at worst, smaller.
    bounds = [(0.0, None)] * 8 + [(None, None)] * 3
    start = np.append(np.full(8, 0.1), [0.0, 0.1, 0.2])
    found = optimize.minimize(split, start, bounds=bounds, options={"ftol": 1e-14})
    model = BMRMClassifier(0.3, loss=loss, penalty=penalty, tol=1e-7).fit(X, y, s)
    assert (model.coef_ == 0.0).all(axis=0).any()
    assert model.objective_ == pytest.approx(objective(params_of(model), *args))
    assert model.objective_ <= found.fun * (1.0 + 1e-6)
    assert model.objective_ - model.dual_gap_ <= found.fun
    assert model.dual_gap_ <= 1e-7 * model.objective_


@each_loss
def test_two_classes_are_logistic_regression(loss):
    X, y, s = grades(n_classes=2)
    model = BMRMClassifier(1e-2, loss=loss, tol=1e-9).fit(X, y, s)
    binary = BMRMClassifier(1e-2, loss="log_loss", tol=1e-9).fit(X, y, s)
    assert model.objective_ == pytest.approx(binary.objective_, rel=1e-8)
    assert_allclose(model.coef_, binary.coef_, atol=1e-6)
    assert_allclose(model.intercept_, binary.intercept_, atol=1e-6)
    assert_allclose(model.predict_proba(X), binary.predict_proba(X), atol=1e-6)


@each_loss
def test_weights_are_repetitions_and_sparse_is_dense(loss):
    X, y, s = grades()
    model = BMRMClassifier(1e-2, loss=loss, tol=1e-10).fit(X, y, s)
    rows = np.repeat(np.arange(len(y)), s.astype(int))
    repeated = BMRMClassifier(1e-2, loss=loss, tol=1e-10).fit(X[rows], y[rows])
    assert_allclose(repeated.coef_, model.coef_, atol=1e-6)
    assert_allclose(repeated.intercept_, model.intercept_, atol=1e-6)
    same = BMRMClassifier(1e-2, loss=loss, tol=1e-10).fit(sparse.csr_array(X), y, s)
    assert_allclose(same.decision_function(X), model.decision_function(X), atol=1e-6)


def test_wide_data():
    """More features than rows: conjugate gradients."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 300)), np.arange(40) % 4
    for convert, loss in product((np.asarray, sparse.csr_array), (ALL, LOGIT)):
        model = BMRMClassifier(1e-2, loss=loss, tol=1e-8).fit(convert(X), y)
        assert model.dual_gap_ <= 1e-8 * model.objective_
        assert model.score(X, y) == 1.0


@pytest.mark.parametrize("loss", [ALL, LOGIT])
def test_thresholds_ascend_and_probabilities_are_cumulative(loss):
    X, y, s = grades()
    model = BMRMClassifier(1e-3, loss=loss).fit(X, y, s)
    w, thresholds = model.coef_[1], -np.diff(model.intercept_)
    assert np.all(np.diff(thresholds) > 0.0)
    below = expit(thresholds - (X @ w)[:, None])
    expected = np.diff(below, prepend=0.0, append=1.0)
    assert_allclose(model.predict_proba(X), expected, atol=1e-12)
    assert_allclose(model.predict_log_proba(X), np.log(expected), rtol=1e-9)
    # Predictions are medians of these probabilities.
    medians = (np.cumsum(expected, axis=1) < 0.5).sum(axis=1)
    assert_array_equal(model.predict(X), medians)


def test_immediate_thresholds_may_descend_and_probabilities_are_of_neighbors():
    X, y, s = grades()
    model = BMRMClassifier(1e-3, loss=IMMEDIATE).fit(X, y, s)
    w, thresholds = model.coef_[1], -np.diff(model.intercept_)
    # The second class is rare, so that its neighbors meet within it.
    assert thresholds[0] > thresholds[1]
    P = model.predict_proba(X)
    assert_allclose(P.sum(axis=1), 1.0)
    assert P.min() > 0.0
    odds = P[:, 1:] / P[:, :-1]
    assert_allclose(odds, np.exp((X @ w)[:, None] - thresholds))
    assert_array_equal(model.predict(X), P.argmax(axis=1))


@each_loss
def test_probabilities_far_away(loss):
    X, y, s = grades()
    model = BMRMClassifier(1e-3, loss=loss).fit(X, y, s)
    far = np.vstack([1e3 * X, 1e100 * X[:3]])
    P, logs = model.predict_proba(far), model.predict_log_proba(far)
    assert_allclose(P.sum(axis=1), 1.0)
    assert P.min() >= 0.0
    assert not np.isnan(logs).any()
    assert np.isfinite(logs[: len(X)]).all()


def test_probabilities_of_fits_cut_short_are_none_below_zero():
    X, y, s = grades()
    model = BMRMClassifier(1e-3, loss=ALL).fit(X, y, s)
    model.intercept_[2] -= 5.0
    P = model.predict_proba(X)
    assert_allclose(P.sum(axis=1), 1.0)
    assert P.min() == 0.0


@each_loss
def test_warm_starts(loss):
    X, y, s = grades()
    model = BMRMClassifier(1e-2, loss=loss, tol=1e-7, warm_start=True).fit(X, y, s)
    best = model.objective_
    assert model.fit(X, y, s).history_[0].objective[0] == pytest.approx(best)
    # A start whose thresholds do not ascend is no obstacle.
    model.set_params(loss=IMMEDIATE).fit(X, y, s)
    again = model.set_params(loss=loss).fit(X, y, s)
    assert again.objective_ == pytest.approx(best)
    names = np.array(["a", "b", "c", "d"])[y]
    cold = BMRMClassifier(1e-2, loss=loss, tol=1e-7, classes=list("abcd"))
    cold.fit(X, names, s)
    assert cold.objective_ == pytest.approx(best)
    assert_array_equal(cold.classes_, ["a", "b", "c", "d"])


def test_refusals_and_objects():
    X, y, _ = grades()
    with pytest.raises(ValueError, match="needs fit_intercept=True"):
        BMRMClassifier(loss=ALL, fit_intercept=False).fit(X, y)
    with pytest.raises(ValueError, match="OrdinalLogistic is a loss of classes"):
        BMRMRegressor(loss=OrdinalLogistic()).fit(X, y)
    named = BMRMClassifier(1e-2, loss=IMMEDIATE).fit(X, y)
    given = BMRMClassifier(1e-2, loss=OrdinalLogistic(immediate=True)).fit(X, y)
    assert_array_equal(given.coef_, named.coef_)

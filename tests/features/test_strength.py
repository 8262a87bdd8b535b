"""Automatic strengths of targets of all kinds: counts, amounts, sets of labels."""

from __future__ import annotations

import numpy as np
import pytest
from _door import regression_losses
from scipy import sparse

from sklearn_subqn import (
    BMRMClassifier,
    BMRMRegressor,
    MultilabelHingeClassifier,
)
from sklearn_subqn._features.strength import rule_of_numbers

_RNG = np.random.default_rng(0)
X = _RNG.normal(size=(80, 4)) * [1e-6, 1.0, 1e3, 1e8]
SCORES = X @ [4e5, -0.3, 2e-4, 0.0]
AMOUNTS = np.exp(SCORES) * _RNG.gamma(5.0, 0.2, 80)
LABELS = (np.column_stack([SCORES, -SCORES]) + _RNG.normal(size=(80, 2)) > 0).astype(
    int
)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "quantile"])
def test_parameters_of_other_losses_are_not_read(loss):
    expected = BMRMRegressor(loss=loss).fit(X, SCORES).alpha_
    with pytest.warns(UserWarning, match="epsilon"):
        model = BMRMRegressor(loss=loss, epsilon="unused").fit(X, SCORES)
    assert model.alpha_ == expected


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_quantiles_have_the_strength_of_the_median(quantile):
    median = BMRMRegressor(loss="absolute_error").fit(X, SCORES)
    model = BMRMRegressor(loss="quantile", quantile=quantile).fit(X, SCORES)
    assert model.alpha_ == median.alpha_


def test_own_losses_of_several_targets_have_the_rule_of_squares():
    losses, weights = regression_losses(), np.full(80, 1.0 / 80.0)
    args = np.column_stack([SCORES, AMOUNTS]), weights
    squares = rule_of_numbers(losses["squared_error"], *args)
    assert rule_of_numbers(losses["huber"], *args) == squares
    assert rule_of_numbers(losses["huber"], *args, has_name=True) != squares


@pytest.mark.parametrize("reduction", ["mean", "max"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, np.ndarray.tolist])
def test_sets_of_labels(reduction, kind):
    weights = np.repeat([1.0, 2.0], 40)
    twice = np.repeat(np.arange(80), weights.astype(int))
    model = MultilabelHingeClassifier(reduction=reduction)
    model.fit(X, kind(LABELS), sample_weight=weights)
    alpha, objective = model.alpha_, model.objective_
    model.fit(X[twice], kind(LABELS[twice]))
    assert model.alpha_ == pytest.approx(alpha, rel=1e-12)
    assert model.objective_ == pytest.approx(objective, rel=1e-8)


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie"])
@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_offset_of_zero(loss, penalty):
    model = BMRMRegressor(loss=loss, penalty=penalty).fit(X, AMOUNTS)
    alpha, scores = model.alpha_, model.predict(X)
    model.fit(X, AMOUNTS, offset=np.zeros(80))
    assert model.alpha_ == pytest.approx(alpha, rel=1e-12)
    np.testing.assert_allclose(model.predict(X), scores, rtol=1e-4)


@pytest.mark.parametrize("loss", ["gamma", "tweedie"])
@pytest.mark.parametrize("penalty", ["l2", "l1"])
@pytest.mark.parametrize("unit", [1e-4, 1e4])
def test_units_of_amounts(loss, penalty, unit):
    model = BMRMRegressor(loss=loss, penalty=penalty)
    expected = model.fit(X, AMOUNTS).coef_ * X.std(axis=0)
    assert np.abs(expected).max() > 0.1
    model.fit(X, unit * AMOUNTS)
    np.testing.assert_allclose(model.coef_ * X.std(axis=0), expected, atol=1e-4)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber"])
@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e4])
def test_elastic_net_is_of_use_in_any_unit(loss, unit):
    y = unit * (SCORES + 0.1 * _RNG.normal(size=80))
    model = BMRMRegressor(loss=loss, penalty="elasticnet")
    if loss == "huber":
        model.set_params(epsilon=1.35 * unit)
    assert model.fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("penalty", ["l2", "lp", "elasticnet"])
def test_objective_by_the_factors(penalty, ratio):
    y = np.where(SCORES > 0, 1, -1)
    model = BMRMClassifier(penalty=penalty)
    if penalty == "elasticnet":
        model.set_params(l1_ratio=ratio)
    model.fit(X, y)
    w, f = model.coef_[0], model.penalty_factor_
    omega = {
        "l2": f @ w**2 / 2,
        "lp": np.sum(np.abs(f * w) ** 1.5) ** (2 / 1.5) / 2,
        "elasticnet": ratio * f @ np.abs(w) + (1 - ratio) / 2 * np.sum((f * w) ** 2),
    }
    loss = np.logaddexp(0.0, -y * model.decision_function(X)).mean()
    J = model.alpha_ * omega[penalty] + loss
    assert model.objective_ == pytest.approx(J, rel=1e-12)


@pytest.mark.parametrize("loss", ["f_beta_bound", "hinge"])
def test_rows_without_weights_do_not_count(loss):
    y = (SCORES > 0).astype(int)
    weights = np.repeat([0.0, 1.0], [20, 60])
    alpha = BMRMClassifier(loss=loss).fit(X[20:], y[20:]).alpha_
    model = BMRMClassifier(loss=loss).fit(X, y, sample_weight=weights)
    assert model.alpha_ == pytest.approx(alpha, rel=1e-12)


@pytest.mark.parametrize("penalty", ["l2", "l1"])
@pytest.mark.parametrize("loss", ["absolute_error", "squared_error"])
def test_equal_targets_have_no_spread(loss, penalty):
    weights = np.append(0.0, np.arange(1.0, 80.0))
    y = np.append(7.0, np.full(79, 0.1))
    model = BMRMRegressor(loss=loss, penalty=penalty).fit(X, y, sample_weight=weights)
    assert 1e-6 < model.alpha_ < 1.0


def test_entries_stored_twice_are_their_sum():
    full = sparse.csr_matrix(X)
    twice = sparse.csr_matrix(
        (np.repeat(full.data / 2, 2), np.repeat(full.indices, 2), 2 * full.indptr),
        shape=X.shape,
    )
    y = (SCORES > 0).astype(int)
    once = BMRMClassifier().fit(full, y)
    model = BMRMClassifier().fit(twice, y)
    assert model.alpha_ == pytest.approx(once.alpha_, rel=1e-12)
    np.testing.assert_allclose(model.penalty_factor_, once.penalty_factor_, rtol=1e-12)


@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet"])
@pytest.mark.parametrize("weight", [1e307, 5e-324])
def test_weights_whose_sum_is_out_of_range(penalty, weight):
    y = (SCORES > 0).astype(int)
    with pytest.raises(ValueError, match="alpha='auto' is out of range"):
        BMRMClassifier(penalty=penalty).fit(X, y, sample_weight=np.full(80, weight))


@pytest.mark.parametrize("model", [BMRMRegressor(), BMRMClassifier()])
def test_weights_that_sum_to_one_are_named(model):
    y = np.where(SCORES > 0, 1, -1)
    shares = np.full(80, 1 / 80)
    with pytest.warns(UserWarning, match="those of 80 rows sum to 1, the") as found:
        model.fit(X, y, sample_weight=shares)
    assert found[0].filename == __file__
    strong = model.alpha_
    # As numbers of rows, as few rows, and with a number for alpha they are accepted.
    model.fit(X, y, sample_weight=80 * shares)
    assert model.alpha_ == pytest.approx(strong / 80)
    few = np.where(np.arange(80) % 10, 0.0, 0.125)
    model.fit(X, y, sample_weight=few)
    model.set_params(alpha=1e-2).fit(X, y, sample_weight=shares)


@pytest.mark.parametrize("penalty", ["l2", "l1"])
@pytest.mark.parametrize("name", ["absolute_error", "huber", "squared_error"])
def test_objects_have_the_strength_of_their_names(name, penalty):
    y = 1e3 * SCORES + 100.0 * _RNG.standard_t(2, 80)
    loss = regression_losses(epsilon=1.35)[name]
    named = BMRMRegressor(loss=name, penalty=penalty).fit(X, y)
    own = BMRMRegressor(loss=loss, penalty=penalty).fit(X, y)
    assert own.alpha_ == pytest.approx(named.alpha_, rel=1e-12)
    assert own.score(X, y) == pytest.approx(named.score(X, y), abs=1e-2)

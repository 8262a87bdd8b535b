"""Points beyond a domain: off the simplex, negative, or where exponentials overflow."""

from __future__ import annotations

import numpy as np
import pytest
from _door import EntropyPenalty, NormalizedEntropy
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris

from sklearn_subqn import BMRMClassifier, BMRMOutlierDetector, BMRMRegressor
from sklearn_subqn.losses import Ontology, OrderedPairs, PrecisionAtK, RecallAtK

IRIS, SPECIES = load_iris(return_X_y=True)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber"])
@pytest.mark.parametrize("solver", ["auto", "bmrm"])
def test_coefficients_stay_on_the_simplex(loss, solver):
    y = IRIS @ [1.0, 2.0, 3.0, 0.5]
    model = BMRMRegressor(
        0.1, loss=loss, penalty="normalized_entropy", solver=solver, max_iter=300
    ).fit(IRIS, y)
    assert_allclose(model.coef_.sum(), 1.0, atol=1e-12)
    assert model.coef_.min() >= 0.0


def test_steps_off_the_simplex_are_short():
    omega = NormalizedEntropy(3)
    w = np.full(3, 1.0 / 3.0)
    along = np.array([0.1, -0.05, -0.05])
    assert omega.longest_step(w, along) == pytest.approx(20.0 / 3.0)
    # Rounding, which has no direction.
    assert omega.longest_step(w, np.array([1e-18, 1e-18, 0.0])) <= 1e4
    assert EntropyPenalty(3).longest_step(w, np.array([1e-18, 1e-18, 0.0])) == np.inf


def test_domains_of_entropies():
    assert EntropyPenalty(2).contains(np.array([0.0, 3.0, -1.0]))
    assert not EntropyPenalty(2).contains(np.array([-0.1, 1.1]))
    assert NormalizedEntropy(2).contains(np.array([0.25, 0.75, -1.0]))
    assert not NormalizedEntropy(2).contains(np.array([0.25, 0.5]))


@pytest.mark.parametrize("penalty", ["entropy", "normalized_entropy"])
def test_warm_starts_with_coefficients_that_the_penalty_forbids(penalty):
    rng = np.random.default_rng(0)
    X = rng.normal(2.0, 1.0, (50, 4))
    model = BMRMOutlierDetector(warm_start=True).fit(-X)
    assert model.coef_.min() < 0.0
    model.set_params(penalty=penalty).fit(X)
    cold = BMRMOutlierDetector(penalty=penalty).fit(X)
    assert_allclose(model.objective_, cold.objective_, rtol=2e-3)


@pytest.mark.parametrize(
    ("Estimator", "before", "after"),
    [
        (BMRMClassifier, {"loss": "ordinal"}, {"loss": "hinge"}),
        (BMRMClassifier, {"loss": "hinge"}, {"loss": "ordinal"}),
        (BMRMRegressor, {"metric": np.eye(2)}, {"metric": None}),
    ],
)
def test_warm_starts_after_another_number_of_problems(Estimator, before, after):
    y = SPECIES if Estimator is BMRMClassifier else IRIS[:, 2:]
    model = Estimator(0.1, warm_start=True, **before).fit(IRIS[:, :2], y)
    model.set_params(**after).fit(IRIS[:, :2], y)
    cold = Estimator(0.1, **after).fit(IRIS[:, :2], y)
    assert_allclose(model.objective_, cold.objective_, rtol=2e-3)


def test_exponentials_that_overflow_are_refused():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    counts = 6e23 * rng.uniform(0.5, 1.5, 50)
    with pytest.raises(ValueError, match="exponentials of scores overflow"):
        BMRMRegressor(1e20, loss="poisson").fit(X, counts)
    model = BMRMRegressor(1e16, loss="poisson").fit(X, 1e-4 * counts)
    assert_allclose(np.log(model.predict(X).mean()), np.log(6e19), atol=0.1)
    far = 100.0 + rng.normal(size=(60, 2))
    model = BMRMClassifier(
        0.01, loss="exponential", penalty="normalized_entropy", fit_intercept=False
    )
    with pytest.raises(ValueError, match="exponentials of scores overflow"):
        model.fit(far, np.arange(60) % 2)


def test_losses_as_objects_are_treated_as_those_by_name():
    named = BMRMClassifier(0.01, loss="ordinal").fit(IRIS, SPECIES)
    given = BMRMClassifier(0.01, loss=OrderedPairs("constant")).fit(IRIS, SPECIES)
    assert_allclose(given.decision_function(IRIS), named.decision_function(IRIS))
    for loss in (PrecisionAtK(150), RecallAtK(500)):
        with pytest.raises(ValueError, match=r"k must be less than the number 150"):
            BMRMClassifier(0.01, loss=loss).fit(IRIS, SPECIES)


def test_joint_losses_are_refused_where_they_cannot_work():
    tree = Ontology.from_parents([[-1], [-1], [0], [0], [1]])
    with pytest.raises(ValueError, match="BMRMRegressor needs a loss of numbers"):
        BMRMRegressor(loss=tree, fit_intercept=False).fit(IRIS, SPECIES)


def test_thresholds_of_outliers_count_weights_as_repetitions():
    X = np.random.default_rng(1).normal(3.0, 1.0, (100, 2))
    X[:5] = 0.1
    weights = np.ones(100, dtype=int)
    weights[:5] = 20
    weighted = BMRMOutlierDetector(contamination=0.1).fit(X, sample_weight=weights)
    rows = np.repeat(np.arange(100), weights)
    repeated = BMRMOutlierDetector(contamination=0.1).fit(X[rows])
    assert_allclose(weighted.offset_, repeated.offset_, rtol=1e-6)
    plain = BMRMOutlierDetector(contamination=0.07).fit(X)
    assert np.count_nonzero(plain.predict(X) == -1) == 7

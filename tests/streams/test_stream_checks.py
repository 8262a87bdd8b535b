"""scikit-learn's own checks of the online estimators, those of partial_fit included."""

from __future__ import annotations

import warnings

import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_subqn import OnlineLBFGSClassifier, OnlineLBFGSRegressor

DEFAULT = [OnlineLBFGSClassifier(), OnlineLBFGSRegressor()]
OTHERS = [
    OnlineLBFGSClassifier(loss="hinge"),
    OnlineLBFGSClassifier(loss="squared_hinge"),
    OnlineLBFGSClassifier(loss="modified_huber"),
    OnlineLBFGSClassifier(l1_ratio=0.5),
    OnlineLBFGSClassifier(solver="olbfgs"),
    OnlineLBFGSRegressor(loss="huber"),
    OnlineLBFGSRegressor(loss="quantile"),
    OnlineLBFGSRegressor(l1_ratio=0.5),
]


def expected_failures(estimator):
    """Return the checks that an estimator cannot pass, with the reasons."""
    if estimator.solver == "auto":
        return {}
    reason = (
        "Compares coefficients to seven digits; repeated rows and weights round "
        "differently, which pairs from single batches amplify."
    )
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }


def check_quietly(estimator, check):
    # Some of the data there are too few or too random for the test of convergence.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@parametrize_with_checks(DEFAULT)
def test_checks_of_scikit_learn(estimator, check):
    check_quietly(estimator, check)


@pytest.mark.slow
@parametrize_with_checks(OTHERS, expected_failed_checks=expected_failures)
def test_checks_of_scikit_learn_with_other_losses(estimator, check):
    check_quietly(estimator, check)

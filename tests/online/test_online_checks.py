"""scikit-learn's own checks of the online estimators, those of partial_fit included."""

from __future__ import annotations

import warnings

from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_subqn import OnlineLBFGSClassifier, OnlineLBFGSRegressor

ESTIMATORS = [
    OnlineLBFGSClassifier(),
    OnlineLBFGSClassifier(loss="hinge"),
    OnlineLBFGSClassifier(loss="squared_hinge"),
    OnlineLBFGSClassifier(loss="modified_huber"),
    OnlineLBFGSClassifier(l1_ratio=0.5),
    OnlineLBFGSClassifier(solver="olbfgs"),
    OnlineLBFGSRegressor(),
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


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_checks_of_scikit_learn(estimator, check):
    # Some of the data there are too few or too random for the test of convergence.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)

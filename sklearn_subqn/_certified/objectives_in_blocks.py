"""Objectives of drop-ins over data in blocks, as estimators that take blocks.

Both objectives are equal up to a factor: ``Omega(w) + C * sum_i s_i loss_i`` is C * S
times ``alpha * Omega(w)`` plus the mean loss for ``alpha = 1 / (C * S)``. S is the sum
of the weights, which is known after one pass over the blocks.
"""

from __future__ import annotations

from typing import Any

from .._dropin._shared import DropIn
from ..bundle_classification import BMRMClassifier
from ..bundle_regression import BMRMRegressor
from ..linear_model import LogisticRegression, QuantileRegressor
from ..logistic import L1LogisticOWLQN
from ..multiclass import MulticlassHingeClassifier
from ..svm import LinearSVC, LinearSVR


def for_blocks(estimator: Any, *, several: bool) -> tuple[Any, float | None]:
    """Return an estimator that takes data in blocks and has the same objective, and C.

    Parameters
    ----------
    estimator : LinearEstimator
    several : bool
        Whether there are more than two classes.

    Returns
    -------
    estimator : LinearEstimator
        An estimator with the same objective. If C is returned, ``alpha`` has to be set
        to 1 / (C * S), and the objective is then divided by C * S, with the sum S of
        the weights.
    C : float or None
        The drop-in's C, None where the objectives are equal.
    """
    if not isinstance(estimator, DropIn):
        return estimator, None
    given = {"tol": estimator.tol, "fit_intercept": estimator.fit_intercept}
    if hasattr(estimator, "class_weight"):
        given["class_weight"] = estimator.class_weight
    if isinstance(estimator, LogisticRegression) and not estimator._is_free:
        share = estimator._l1_share()
        return L1LogisticOWLQN(1.0, l1_ratio=share, **given), estimator.C
    if isinstance(estimator, LinearSVC):
        if estimator.multi_class == "crammer_singer":
            return MulticlassHingeClassifier(1.0, **given), estimator.C
        # For several classes, class weights differ between the binary problems.
        if estimator.class_weight is None or not several:
            given |= {"loss": estimator.loss, "penalty": estimator.penalty}
            return BMRMClassifier(1.0, **given), estimator.C
    if isinstance(estimator, LinearSVR):
        given |= {"loss": estimator.loss, "epsilon": estimator.epsilon}
        return BMRMRegressor(1.0, **given), estimator.C
    if isinstance(estimator, QuantileRegressor) and estimator.alpha:
        given |= {"quantile": estimator.quantile, "penalty": "l1"}
        return BMRMRegressor(estimator.alpha, loss="quantile", **given), None
    return estimator, None

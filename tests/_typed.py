"""What type checkers see of public results; CI runs mypy and pyright on it."""

from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

from sklearn_subqn import (
    BMRMClassifier,
    BMRMOutlierDetector,
    BMRMRanker,
    BMRMRegressor,
    CoxRegression,
    CoxRegressionCV,
    L1LogisticOWLQNCV,
    LinearChainCRF,
    MultilabelHingeClassifier,
    OnlineLBFGSRegressor,
    SubLBFGSLinearSVC,
    minimize,
)
from sklearn_subqn.crf import CRF
from sklearn_subqn.linear_model import LogisticRegression, PoissonRegressor

Floats = npt.NDArray[np.float64]
AnyArray = npt.NDArray[Any]


def classified(X: Floats, y: npt.NDArray[np.int64]) -> None:
    """Predictions, and what fits say of themselves."""
    svm = SubLBFGSLinearSVC().fit(X, y)
    assert_type(svm, SubLBFGSLinearSVC)
    assert_type(svm.objective_, float | Floats)
    assert_type(svm.dual_gap_, float | Floats)
    assert_type(svm.history_[0].objective, list[float])
    assert_type(svm.n_iter_, int)
    assert_type(svm.coef_, AnyArray)
    assert_type(svm.predict(X), AnyArray)
    assert_type(BMRMClassifier().fit(X, y).decision_function(X), AnyArray)
    assert_type(L1LogisticOWLQNCV().fit(X, y).predict_proba(X), AnyArray)
    assert_type(LogisticRegression().fit(X, y).predict_log_proba(X), AnyArray)
    assert_type(MultilabelHingeClassifier().fit(X, y).predict(X), AnyArray)
    assert_type(BMRMOutlierDetector().fit(X), BMRMOutlierDetector)
    assert_type(BMRMOutlierDetector().fit(X).score_samples(X), AnyArray)


def predicted(X: Floats, y: Floats) -> None:
    """Numbers, ranks and tags."""
    assert_type(BMRMRegressor().fit(X, y).predict(X), AnyArray)
    assert_type(PoissonRegressor().fit(X, y).predict(X), AnyArray)
    assert_type(OnlineLBFGSRegressor().partial_fit(X, y).predict(X), AnyArray)
    cox = CoxRegression().fit(X, (y, y > 0.0))
    assert_type(cox, CoxRegression)
    assert_type(cox.predict(X), AnyArray)
    assert_type(cox.predict_survival_function(X), Floats)
    assert_type(cox.score(X, y), float)
    assert_type(CoxRegressionCV().fit(X, y), CoxRegressionCV)
    ranker = BMRMRanker().fit(X, y, qid=y)
    assert_type(ranker.predict(X), AnyArray)
    assert_type(ranker.dual_gap_, float)
    crf = LinearChainCRF().fit([[{"a": "b"}]], [["x"]])
    assert_type(crf.objective_, float)
    assert_type(crf.predict([[{"a": "b"}]]), list[list[Any]])
    assert_type(crf.predict(X, lengths=[len(X)]), AnyArray)
    assert_type(CRF().fit([[{"a": "b"}]], [["x"]]).predict([[]]), AnyArray)


def minimized(w: Floats) -> None:
    """The result of ``minimize``."""
    result = minimize(lambda w: (float(w @ w), 2 * w), w)
    assert_type(result.x, Floats)
    assert_type(result.fun, float)
    assert_type(result.success, bool)

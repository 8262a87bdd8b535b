"""Attributes that say what a fit has found: they mean the same in all estimators."""

import inspect

import numpy as np
import pytest
from _public import public_estimators
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning

from sklearn_subqn import ConvergenceDisplay

ESTIMATORS = public_estimators()
X, y = make_classification(80, 6, n_informative=4, n_classes=3, random_state=0)
X_REGRESSION, Y_REGRESSION = make_regression(80, 4, noise=2.0, random_state=0)
SETS = np.column_stack([y == 0, y > 0]).astype(int)
GROUPS = {
    "BMRMRanker": {"qid": np.repeat(np.arange(10), 8)},
    "BMRMRankerCV": {"qid": np.repeat(np.arange(10), 8)},
    "ranking.Ranker": {"group": np.full(10, 8)},
}
TOKENS = [[{"x": float(X[8 * i + t, 0])} for t in range(8)] for i in range(10)]
TAGS = [["ABC"[label] for label in y[8 * i : 8 * i + 8]] for i in range(10)]


def joint_feature(x, label):
    return np.outer(np.arange(3) == label, x).ravel()


def loss_augmented_argmax(x, label, w):
    scores = w.reshape(3, -1) @ x
    if label is not None:
        scores = scores + (np.arange(3) != label)
    return int(scores.argmax())


def log_partition(x, w):
    scores = w.reshape(3, -1) @ x
    value = np.logaddexp.reduce(scores)
    return value, np.outer(np.exp(scores - value), x).ravel()


OTHER_TARGETS = {
    "MultilabelHingeClassifier": (X, SETS),
    "BMRMOutlierDetector": (X + 3.0, None),
    "linear_model.PoissonRegressor": (X, y.astype(float)),
    "linear_model.GammaRegressor": (X, y + 1.0),
    "crf.LinearChainCRF": (TOKENS, TAGS),
    "crf.CRF": (TOKENS, TAGS),
    "LinearChainCRF": (TOKENS, TAGS),
}
PARAMETERS = {
    "ConditionalRandomField": {
        "joint_feature": joint_feature,
        "log_partition": log_partition,
    },
    "StructuredSVM": {
        "joint_feature": joint_feature,
        "loss_augmented_argmax": loss_augmented_argmax,
    },
    "BMRMOutlierDetector": {"nu": 0.2},
}


def fit(name, **more):
    """Return an estimator of a public name, fitted to few rows that suit it."""
    kind = ESTIMATORS[name]
    known = inspect.signature(kind).parameters
    small = {"alphas": 3, "Cs": 3, "cv": 2, "use_legacy_attributes": False}
    given = {key: value for key, value in small.items() if key in known}
    model = kind(**{**given, **PARAMETERS.get(name, {}), **more})
    data = (X, y)
    if "Regressor" in name or name.endswith("SVR"):
        data = X_REGRESSION, Y_REGRESSION
    data = OTHER_TARGETS.get(name, data)
    return model.fit(*data, **GROUPS.get(name, {}))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_what_was_found_means_the_same_in_all_estimators(name):
    model = fit(name)
    # Searches of scikit-learn's kind have the numbers of iterations of their folds.
    searched = name == "linear_model.LogisticRegressionCV"
    histories = model.history_
    assert isinstance(histories, list)
    objectives = np.atleast_1d(model.objective_)
    gaps = np.atleast_1d(model.dual_gap_)
    assert np.shape(model.dual_gap_) == np.shape(model.objective_)
    assert len(objectives) == len(histories)
    most = max(len(history) - 1 for history in histories)
    assert most >= 0
    if not searched:
        assert np.max(model.n_iter_) == max(1, most)
    plan = getattr(model, "model_", model).plan_
    for one in plan if np.ndim(model.objective_) else [plan]:
        assert isinstance(one, str)
        assert one
    for objective, gap, history in zip(objectives, gaps, histories, strict=True):
        bound, value = history.lower_bound[-1], history.objective[-1]
        assert gap >= 0.0
        if np.isfinite(gap):
            # The bound is a proven one: the difference exceeds it by rounding at most.
            assert objective - gap <= bound + 4.0 * np.spacing(abs(objective))
            assert_allclose(objective - gap, bound, rtol=1e-12, atol=1e-14)
            assert_allclose(objective, value, rtol=1e-9, atol=1e-12)
        else:
            assert bound == -np.inf
        assert np.all(np.diff(history.objective) <= 0.0)
        assert np.all(np.asarray(history.lower_bound[1:]) >= history.lower_bound[:-1])
        assert np.all(np.diff(history.passes) >= 0.0)
        assert np.all(np.diff(history.seconds) >= 0.0)
        columns = history.lower_bound, history.passes, history.seconds, history.phase
        assert [len(column) for column in columns] == [len(history)] * 4


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_fit_that_ends_early_warns_by_one_rule(name):
    known = inspect.signature(ESTIMATORS[name]).parameters
    limits = [key for key in ("max_iter", "max_iterations") if key in known]
    others = "linear_model.HuberRegressor", "BMRMOutlierDetector"
    if not limits or "refit" in known or name in others:
        pytest.skip("It has no limit, or one for each of several fits.")
    tol = "tol" if "tol" in known else "epsilon"
    label = "LinearChainCRF" if name == "crf.CRF" else name.rpartition(".")[2]
    said = rf"Fitting {label}.* after \d+ iteration.* objective \S+ is .* was asked for"
    with pytest.warns(ConvergenceWarning, match=said):
        fit(name, **{limits[0]: 1, tol: 1e-15})


def test_records_of_streams_tell_of_epochs(capsys):
    with pytest.warns(ConvergenceWarning, match="max_iter=20 .* not proven to be near"):
        model = fit(
            "OnlineLBFGSClassifier", max_iter=20, tol=0.0, verbose=2, batch_size=20
        )
    (history,) = model.history_
    # Scores are zero at the start.
    means = [np.log(3.0), *model.loss_curve_]
    assert_allclose(history.objective, np.minimum.accumulate(means), rtol=1e-12)
    assert_array_equal(history.passes, np.arange(21))
    assert model.n_iter_ == len(model.loss_curve_) == 20
    assert model.dual_gap_ == np.inf
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 21
    assert "iteration    3 " in lines[2]
    pytest.importorskip("matplotlib").use("Agg")
    display = ConvergenceDisplay.from_estimator(model, kind="objective")
    assert_array_equal(display.ax_.lines[0].get_ydata(), history.objective)


def test_what_a_fit_left_does_not_outlive_its_model():
    found = {"objective_", "dual_gap_", "history_", "plan_"}
    for name in ("OnlineLBFGSClassifier", "LinearChainCRF"):
        model = fit(name if name in ESTIMATORS else f"crf.{name}")
        data = OTHER_TARGETS.get(name, (X, y))
        assert found <= set(vars(model))
        model.partial_fit(*data)
        assert not found & set(vars(model))
        assert model.n_iter_ == 1

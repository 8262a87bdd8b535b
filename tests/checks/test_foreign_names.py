"""Errors propose the right one where people type a name of another package."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_subqn import (
    BMRMClassifier,
    BMRMRanker,
    BMRMRegressor,
    L1LogisticOWLQN,
    L1LogisticOWLQNCV,
    LinearChainCRF,
    OnlineLBFGSClassifier,
    OnlineLBFGSRegressor,
    SubLBFGSLinearSVC,
)
from sklearn_subqn._checks.foreign_names import _PAGES
from sklearn_subqn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn_subqn.svm import LinearSVC

MIGRATION = Path(__file__).parents[2] / "docs" / "migration"


@pytest.mark.parametrize(
    ("Estimator", "name", "message"),
    [
        (SubLBFGSLinearSVC, "C", r"alpha = 1 / \(C \* n_samples\)"),
        (SubLBFGSLinearSVC, "penalty", "penalty is L2. BMRMClassifier"),
        (SubLBFGSLinearSVC, "dual", "migration/linear_svc.html says"),
        (SubLBFGSLinearSVC, "random_state", "migration/linear_svc.html"),
        (SubLBFGSLinearSVC, "lambda_", "regularization is alpha"),
        (SubLBFGSLinearSVC, "sample_weight", r"fit\(X, y, sample_weight=sample_weight"),
        (L1LogisticOWLQN, "penalty", "l1_ratio=1 means L1"),
        (L1LogisticOWLQN, "Cs", "It takes one strength"),
        (L1LogisticOWLQNCV, "Cs", "Its grid is alphas"),
        (L1LogisticOWLQNCV, "C", "alphas, against the mean"),
        (L1LogisticOWLQNCV, "positive", "BMRMRegressor and BMRMClassifier take"),
        (BMRMRegressor, "q", "migration/statsmodels_quantreg.html"),
        (BMRMRanker, "group", r"It is given to fit: fit\(X, y, group=group\)"),
        (BMRMRanker, "qid", "It is given to fit"),
        (BMRMRanker, "objective", "migration/lightgbm_ranker.html"),
        (LinearChainCRF, "c1", "migration/crfsuite.html"),
        (LinearChainCRF, "c2", "migration/crfsuite.html"),
        (LinearChainCRF, "algorithm", "migration/crfsuite.html"),
        (LinearChainCRF, "max_iterations", "migration/crfsuite.html"),
        (OnlineLBFGSClassifier, "learning_rate", "migration/sgd.html"),
        (SubLBFGSLinearSVC, "kernel", "The model is linear"),
        (L1LogisticOWLQN, "loss", "Its loss is fixed"),
        (L1LogisticOWLQN, "multi_class", "migration/linear_svc.html"),
        (LinearSVC, "alpha", r"C = 1 / \(alpha \* n_samples\)"),
        (LogisticRegression, "Cs", "It takes one C"),
        (LogisticRegressionCV, "alphas", "Its grid is Cs"),
    ],
)
def test_parameters_of_other_packages(Estimator, name, message):
    with pytest.raises(TypeError, match=f"argument '{name}'. .*{message}"):
        Estimator(**{name: 1})


@pytest.mark.parametrize(("name", "page"), _PAGES.items())
def test_pages_that_errors_name_translate_the_parameter(name, page):
    text = (MIGRATION / f"{page}.md").read_text(encoding="utf-8")
    assert re.search(rf"`[^`\n]*\b{name}\b", text)


@pytest.mark.parametrize(
    ("model", "loss", "proposed"),
    [
        (BMRMRegressor, "mae", "absolute_error"),
        (BMRMRegressor, "MSE", "squared_error"),
        (BMRMRegressor, "pinball", "quantile"),
        (BMRMClassifier, "logistic", "log_loss"),
        (BMRMClassifier, "auc", "roc_area"),
        (BMRMClassifier, "f1", "f_beta"),
        (BMRMRanker, "lambdarank", "ndcg"),
        (BMRMRanker, "map", "ndcg"),
        (BMRMRanker, "logistic", "pairwise-log"),
        (OnlineLBFGSRegressor, "mae", "absolute_error"),
        (LinearChainCRF, "logistic", "log_loss"),
        (LinearChainCRF, "svm", "hinge"),
    ],
)
def test_losses_of_other_packages(model, loss, proposed):
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    with pytest.raises(ValueError, match=rf"Did you mean '{proposed}'\?$"):
        model(loss=loss).fit(X, y)


@pytest.mark.parametrize(
    ("model", "params", "message"),
    [
        (SubLBFGSLinearSVC, {"loss": "logistic"}, "BMRMClassifier has loss='log_loss'"),
        (BMRMClassifier, {"loss": "mae"}, "BMRMRegressor has loss='absolute_error'"),
        (BMRMRegressor, {"loss": "hinge"}, "BMRMClassifier has loss='hinge'"),
        (BMRMRegressor, {"penalty": "lasso"}, "Did you mean 'l1'"),
        (BMRMClassifier, {"penalty": "ridge"}, "Did you mean 'l2'"),
        (BMRMClassifier, {"alpha": [0.1, 1.0]}, r"'auto', got \[.* names end in CV"),
    ],
    ids=str,
)
def test_values_that_are_another_estimators(model, params, message):
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    with pytest.raises((TypeError, ValueError), match=message):
        model(**params).fit(X, y)


@pytest.mark.parametrize("library", ["pandas", "polars", "numpy"])
@pytest.mark.parametrize(
    "Model", [BMRMClassifier, BMRMRegressor, OnlineLBFGSClassifier]
)
def test_text_in_features_is_found(Model, library):
    columns = {"size": [1.0, 2.0, 3.0, 4.0], "color": ["red", "blue", "red", "red"]}
    if library == "numpy":
        X = np.array(list(columns.values()), dtype=object).T
    else:
        X = pytest.importorskip(library).DataFrame(columns)
    found = "" if library == "numpy" else "There is text in 'color'. "
    message = f"X must be numbers: .*'red'. {found}Encode .* OneHotEncoder"
    with pytest.raises(ValueError, match=message):
        Model().fit(X, [0, 1, 0, 1])
    if Model is BMRMRegressor:
        with pytest.raises(ValueError, match=r"y must be numbers: .*'a'"):
            Model().fit(np.eye(4), list("abab"))


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_dates_in_features_are_found(zone):
    pandas = pytest.importorskip("pandas")
    days = pandas.Series(pandas.date_range("2024-01-01", periods=4, tz=zone))
    X = pandas.DataFrame({"size": [1.0, 2.0, 3.0, 4.0], "opened": days})
    with pytest.raises(TypeError, match=r"dates or times in 'opened'\. Turn"):
        SubLBFGSLinearSVC().fit(X, [0, 1, 0, 1])


def test_clones_and_parameters_are_as_ever():
    model = LinearSVC(C=0.3)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(ValueError, match="Invalid parameter 'alpha'"):
        model.set_params(alpha=1.0)

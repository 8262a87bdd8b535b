"""Bounds for coefficients that other trainers found."""

import numpy as np
import pytest
from scipy import sparse
from sklearn import linear_model, svm
from sklearn.datasets import make_classification, make_regression
from sklearn.tree import DecisionTreeClassifier

import sklearn_subqn
from sklearn_subqn import dual_gap

X, Y = make_classification(400, 12, n_informative=6, random_state=0)
CLASSES = make_classification(400, 12, n_informative=6, n_classes=3, random_state=1)
ROWS, NUMBERS = make_regression(200, 8, noise=20.0, random_state=0)
NUMBERS = NUMBERS / 50.0
WEIGHTS = np.random.default_rng(0).integers(1, 4, 400).astype(float)


def mean_loss(loss, margins):
    return {
        "hinge": np.maximum(0.0, 1.0 - margins),
        "squared_hinge": np.maximum(0.0, 1.0 - margins) ** 2,
        "log_loss": np.logaddexp(0.0, -margins),
    }[loss]


MODELS = [
    (linear_model.LogisticRegression(C=0.1), (X, Y)),
    (linear_model.LogisticRegression(C=0.1), CLASSES),
    (linear_model.LogisticRegression(C=0.1, l1_ratio=1.0, solver="saga"), (X, Y)),
    (svm.LinearSVC(C=0.1), (X, Y)),
    (svm.LinearSVC(C=0.1), CLASSES),
    (svm.LinearSVC(C=0.1, multi_class="crammer_singer"), CLASSES),
    (svm.LinearSVR(C=0.1), (ROWS, NUMBERS)),
    (linear_model.SGDClassifier(alpha=0.01, random_state=0), (X, Y)),
    (
        linear_model.SGDClassifier("log_loss", penalty="elasticnet", random_state=0),
        CLASSES,
    ),
    (linear_model.SGDRegressor("huber", random_state=0), (ROWS, NUMBERS)),
    (linear_model.Ridge(2.0), (ROWS, NUMBERS)),
    (linear_model.Lasso(0.1), (ROWS, NUMBERS)),
    (linear_model.ElasticNet(0.1), (ROWS, NUMBERS)),
    (linear_model.QuantileRegressor(quantile=0.8, alpha=0.1), (ROWS, NUMBERS)),
    (linear_model.PoissonRegressor(), (ROWS, np.abs(NUMBERS))),
    (sklearn_subqn.SubLBFGSLinearSVC(), (X, Y)),
    (sklearn_subqn.MulticlassHingeClassifier(), CLASSES),
    (sklearn_subqn.BMRMClassifier(penalty="l1"), CLASSES),
    (sklearn_subqn.BMRMRegressor(loss="absolute_error"), (ROWS, NUMBERS)),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("model", "data"), MODELS)
def test_bounds_come_near_the_true_distance(model, data):
    model.fit(*data)
    gap, value = dual_gap(model, *data, return_objective=True)
    exact = dual_gap(model, *data, tol=1e-9)
    own, same = dual_gap(model, *data, tol=None, return_objective=True)
    assert np.array_equal(value, same)
    # The distance is within these of the exact bound.
    assert np.all(exact <= own + 1e-9 * value)
    assert np.all(np.abs(gap - exact) <= 1e-3 * value)


def test_of_a_model_of_this_package_it_is_what_that_says():
    clf = sklearn_subqn.SubLBFGSLinearSVC(1e-2, tol=1e-8).fit(X, Y)
    gap, value = dual_gap(clf, X, Y, tol=1e-8, return_objective=True)
    assert value == clf.objective_
    assert abs(gap - clf.dual_gap_) <= 1e-8 * value


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "log_loss"])
@pytest.mark.parametrize("class_weight", [None, {0: 1.0, 1: 3.0}])
def test_objectives_of_sgd_by_their_formula(loss, class_weight):
    sgd = linear_model.SGDClassifier(
        loss, alpha=0.01, class_weight=class_weight, random_state=0
    )
    sgd.fit(X, Y, sample_weight=WEIGHTS)
    weights = WEIGHTS * (1.0 if class_weight is None else np.where(Y == 1, 3.0, 1.0))
    _, value = dual_gap(sgd, X, Y, WEIGHTS, return_objective=True)
    margins = np.where(Y == 1, 1.0, -1.0) * sgd.decision_function(X)
    penalty = 0.005 * float(np.sum(sgd.coef_**2))
    expected = penalty + weights @ mean_loss(loss, margins) / len(Y)
    assert value * weights.mean() == pytest.approx(expected, rel=1e-12)


def test_coefficients_alone_with_an_objective():
    objective = sklearn_subqn.BMRMClassifier(1e-2, loss="hinge")
    coef, intercept = np.random.default_rng(1).normal(size=12), 0.3
    gap, value = dual_gap(
        (coef, intercept), X, Y, estimator=objective, return_objective=True
    )
    margins = np.where(Y == 1, 1.0, -1.0) * (X @ coef + intercept)
    expected = 0.005 * coef @ coef + np.maximum(0.0, 1.0 - margins).mean()
    assert value == pytest.approx(expected, rel=1e-12)
    best = objective.set_params(tol=1e-10).fit(X, Y).objective_
    assert value - best <= gap + 1e-12 <= value - best + 2e-3 * best
    again = dual_gap(
        (coef[None], [intercept]), sparse.csr_array(X), Y, estimator=objective
    )
    assert again == pytest.approx(gap, rel=1e-3)


def test_the_objective_of_another_loss_may_be_asked_for():
    hinge = svm.LinearSVC(C=0.01, loss="hinge", max_iter=10**5, random_state=0).fit(
        X, Y
    )
    gap = dual_gap(hinge, X, Y, estimator=sklearn_subqn.svm.LinearSVC(C=0.01))
    assert gap > dual_gap(hinge, X, Y)


def test_the_model_is_left_as_it_was():
    clf = sklearn_subqn.SubLBFGSLinearSVC().fit(X, Y)
    before = {name: id(value) for name, value in vars(clf).items()}
    dual_gap(clf, X, Y)
    assert {name: id(value) for name, value in vars(clf).items()} == before


def test_columns_far_from_zero():
    far = X + 1e6
    clf = linear_model.LogisticRegression(C=0.1).fit(X, Y)
    moved = clf.coef_, clf.intercept_ - 1e6 * clf.coef_.sum()
    objective = sklearn_subqn.linear_model.LogisticRegression(C=0.1)
    gap = dual_gap(moved, far, Y, estimator=objective)
    assert gap == pytest.approx(dual_gap(clf, X, Y), abs=1e-3 * len(Y))


def test_nothing_is_proven_without_a_penalty():
    clf = linear_model.LogisticRegression(C=np.inf).fit(X, Y)
    assert dual_gap(clf, X, Y) == np.inf == dual_gap(clf, X, Y, tol=None)


OURS = sklearn_subqn.BMRMClassifier(1e-2)
COEF = np.ones(12)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: dual_gap(COEF, X, Y), TypeError, r"tuple \(coef, intercept\)"),
        (lambda: dual_gap((COEF, 0.0), X, Y), TypeError, "is not known"),
        (
            lambda: dual_gap(linear_model.Perceptron().fit(X, Y), X, Y),
            TypeError,
            "is not known",
        ),
        (
            lambda: dual_gap(DecisionTreeClassifier().fit(X, Y), X, Y),
            TypeError,
            "must be linear",
        ),
        (
            lambda: dual_gap((COEF, 0.0), X, Y, estimator=svm.LinearSVC()),
            TypeError,
            "one of this package",
        ),
        (
            lambda: dual_gap((COEF[:3], 0.0), X, Y, estimator=OURS),
            ValueError,
            "shape",
        ),
        (
            lambda: dual_gap((COEF * np.nan, 0.0), X, Y, estimator=OURS),
            ValueError,
            "NaN",
        ),
        (
            lambda: dual_gap((COEF, np.inf), X, Y, estimator=OURS),
            ValueError,
            "finite",
        ),
        (
            lambda: dual_gap(
                (COEF, 1.0),
                X,
                Y,
                estimator=sklearn_subqn.BMRMClassifier(1e-2, fit_intercept=False),
            ),
            ValueError,
            "fit_intercept is False",
        ),
        (
            lambda: dual_gap(linear_model.LogisticRegression().fit(X, Y), X, Y + 1),
            ValueError,
            "classes_",
        ),
        (
            lambda: dual_gap(
                (-np.ones(8), 0.0),
                ROWS,
                NUMBERS,
                estimator=sklearn_subqn.BMRMRegressor(1e-2, penalty="entropy"),
            ),
            ValueError,
            "not among those",
        ),
        (
            lambda: dual_gap(
                linear_model.HuberRegressor().fit(ROWS, NUMBERS),
                ROWS,
                NUMBERS,
                estimator=sklearn_subqn.linear_model.HuberRegressor(),
            ),
            ValueError,
            "more than coefficients",
        ),
    ],
)
def test_what_has_no_bound_is_refused(call, error, match):
    with pytest.raises(error, match=match):
        call()

"""Linear support vector machines with scikit-learn's parameters, against scikit-learn.

liblinear penalizes the intercept. Coefficients are compared without one, or with one
that is a penalized constant column in both.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import make_classification, make_regression

from sklearn_subqn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn_subqn.svm import LinearSVC, LinearSVR, SubLBFGSLinearSVC

EXACT = {"tol": 1e-8, "max_iter": 10**6, "random_state": 0, "fit_intercept": False}


def classes(n_classes, seed=0):
    X, y = make_classification(
        150, 6, n_informative=4, n_classes=n_classes, random_state=seed
    )
    weights = np.random.default_rng(seed).uniform(0.2, 3.0, len(y))
    return X, np.array(["a", "b", "c"])[y], weights


def objective(model, X, y, weights, C, loss, penalty="l2"):
    """Return C times the sum of losses and the penalty, for two classes."""
    margins = np.where(y == model.classes_[1], 1, -1) * model.decision_function(X)
    losses = np.maximum(0.0, 1.0 - margins)
    if loss == "squared_hinge":
        losses **= 2
    coef = model.coef_.ravel()
    omega = np.abs(coef).sum() if penalty == "l1" else 0.5 * coef @ coef
    return omega + C * weights @ losses


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"loss": "hinge"},
        {"penalty": "l1", "dual": False},
        {"class_weight": "balanced"},
        {"class_weight": {"a": 3.0, "b": 0.5}},
        {"multi_class": "crammer_singer"},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:.*has no effect:UserWarning")
def test_coefficients_are_those_of_liblinear(params, weighted, n_classes):
    X, y, weights = classes(n_classes)
    if not weighted or "multi_class" in params:
        weights = None
    params = {"C": 0.1, **params}
    ours = LinearSVC(**EXACT, **params).fit(X, y, weights)
    theirs = svm.LinearSVC(**EXACT, **params).fit(X, y, weights)
    assert ours.coef_.shape == theirs.coef_.shape
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("epsilon", [0.0, 0.7])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_regression_is_that_of_liblinear(loss, epsilon, weighted):
    X, y = make_regression(150, 6, noise=5.0, random_state=0)
    y /= 10.0
    weights = np.random.default_rng(0).uniform(0.2, 3.0, 150) if weighted else None
    params = {"C": 0.02, "loss": loss, "epsilon": epsilon}
    ours = LinearSVR(**EXACT, **params).fit(X, y, weights)
    theirs = svm.LinearSVR(**EXACT, **params).fit(X, y, weights)
    assert ours.coef_.shape == theirs.coef_.shape
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    # The objective as scikit-learn states it, and a bound of it that others respect.
    residuals = np.maximum(np.abs(y - ours.predict(X)) - epsilon, 0.0)
    losses = residuals**2 if loss.startswith("squared") else residuals
    losses = losses if weights is None else weights * losses
    expected = 0.5 * ours.coef_ @ ours.coef_ + 0.02 * losses.sum()
    assert ours.objective_ == pytest.approx(expected, rel=1e-12)
    assert 0.0 <= ours.dual_gap_ <= 1e-9 * expected
    assert len(ours.history_) == 1
    assert ours.history_[0].objective[-1] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_objectives_and_bounds_in_units_of_scikit_learn(penalty, loss):
    X, y, weights = classes(2)
    C = 0.3
    ours = LinearSVC(penalty, loss, C=C).fit(X, y, weights)
    value = objective(ours, X, y, weights, C, loss, penalty)
    assert ours.objective_ == pytest.approx(value, rel=1e-12)
    assert 0.0 <= ours.dual_gap_ <= 1e-4 * value
    # The bound holds for anybody's coefficients, and is tight.
    theirs = svm.LinearSVC(C=C, intercept_scaling=10.0, dual=False)
    theirs.fit(X, y, weights)
    other = objective(theirs, X, y, weights, C, loss, penalty)
    assert ours.objective_ - ours.dual_gap_ <= other
    assert np.all(np.diff(ours.history_[0].objective) <= 1e-12 * value)
    assert ours.history_[0].lower_bound[-1] <= value * (1 + 1e-12)


def test_a_large_intercept_scaling_comes_near_to_no_penalty():
    X, y, _ = classes(2)
    ours = LinearSVC(C=0.1).fit(X + 1.0, y)
    theirs = svm.LinearSVC(
        C=0.1, intercept_scaling=1e4, dual=False, tol=1e-12, max_iter=10**6
    ).fit(X + 1.0, y)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)


def test_the_relation_to_alpha():
    X, y, weights = classes(2)
    ours = LinearSVC(loss="hinge", C=0.2).fit(X, y, weights)
    alpha = 1.0 / (0.2 * weights.sum())
    model = SubLBFGSLinearSVC(alpha).fit(X, y, weights)
    assert_allclose(ours.coef_, model.coef_, rtol=1e-9)
    assert ours.objective_ == pytest.approx(model.objective_ / alpha, rel=1e-9)


def test_sparse_and_float32():
    X, y, _ = classes(3)
    dense = LinearSVC().fit(X, y)
    assert_allclose(
        LinearSVC().fit(sparse.csr_matrix(X), y).coef_, dense.coef_, rtol=1e-8
    )
    single = LinearSVC().fit(X.astype(np.float32), y)
    assert single.coef_.dtype == np.float32
    assert_allclose(single.coef_, dense.coef_, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LinearSVC(dual=True), "dual=True has no effect: primal and dual"),
        (LinearSVC(intercept_scaling=2.0), "the intercept is not penalized"),
        (
            LinearSVC(penalty="l1", multi_class="crammer_singer"),
            "penalty='l1' has no effect with multi_class='crammer_singer'",
        ),
    ],
    ids=str,
)
def test_what_has_no_effect_is_named(model, message):
    X, y, _ = classes(2)
    with pytest.warns(UserWarning, match=message) as caught:
        model.fit(X, y)
    assert caught[0].filename == __file__


def test_values_are_checked_as_by_scikit_learn():
    X, y, _ = classes(2)
    for params in ({"C": 0.0}, {"loss": "squared"}, {"dual": "yes"}, {"tol": "1"}):
        messages = []
        for kind in (LinearSVC, svm.LinearSVC):
            with pytest.raises(ValueError, match=next(iter(params))) as caught:
                kind(**params).fit(X, y)
            messages.append(str(caught.value))
        assert messages[0] == messages[1]


def test_parameters_are_those_of_scikit_learn():
    for ours, theirs in ((LinearSVC, svm.LinearSVC), (LinearSVR, svm.LinearSVR)):
        assert ours().get_params() == theirs().get_params()
        assert ours.__name__ == theirs.__name__


def script(LinearSVC):
    """Do what a script does that was written for scikit-learn."""
    from sklearn.feature_selection import SelectFromModel
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y, _ = classes(3)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), LinearSVC(random_state=0, max_iter=10000)),
        {"linearsvc__C": [0.01, 0.1, 1.0]},
        cv=3,
    ).fit(X, y)
    best = search.best_estimator_[-1]
    clf = clone(best).set_params(penalty="l1", C=0.05).fit(X, y)
    kept = SelectFromModel(clf, prefit=True).transform(X)
    return search.best_score_, best.decision_function(X).shape, kept.shape, clf.classes_


def test_a_script_with_one_import_changed():
    ours, theirs = script(LinearSVC), script(svm.LinearSVC)
    assert ours[0] == pytest.approx(theirs[0], abs=0.02)
    assert ours[1] == theirs[1]
    assert ours[2] == theirs[2]
    assert_array_equal(ours[3], theirs[3])


@pytest.mark.parametrize("parameters", [{}, {"multi_class": "crammer_singer"}])
def test_sparsify_and_densify(parameters):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = LinearSVC(**parameters).fit(X, y)
    coef, scores = model.coef_, model.decision_function(X)
    assert model.sparsify() is model
    assert sparse.issparse(model.coef_)
    assert_allclose(model.decision_function(X), scores)
    assert_array_equal(model.densify().coef_, coef)
    assert_array_equal(model.sparsify().fit(X, y).coef_, coef)


@pytest.mark.parametrize("C", [1e308, 1.7e308, 5e-324])
@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(),
        LinearSVC(loss="hinge"),
        LinearSVC(penalty="l1"),
        LinearSVC(multi_class="crammer_singer"),
        LinearSVR(),
        LogisticRegression(),
        LogisticRegression(l1_ratio=1.0),
        LogisticRegressionCV(cv=2),
    ],
)
def test_factors_of_the_losses_that_overflow_are_refused(model, C):
    X = np.random.default_rng(0).normal(size=(30, 3))
    name, value = ("Cs", [C]) if isinstance(model, LogisticRegressionCV) else ("C", C)
    with pytest.raises(ValueError, match=r"C=.* is too extreme: times"):
        clone(model).set_params(**{name: value}).fit(X, X[:, 0] > 0.0)


@pytest.mark.parametrize("model", [LinearSVC(), LogisticRegression()])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_weights_that_overflow_in_sums(model, class_weight):
    X, y = np.arange(6.0)[:, None], np.repeat([0, 1, 2], 2)
    with pytest.raises(ValueError, match="too extreme: times inf"):
        clone(model).set_params(class_weight=class_weight).fit(X, y, np.full(6, 1e308))

"""Bounds for coefficients that other trainers found."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import linear_model, svm
from sklearn.base import clone
from sklearn.datasets import make_classification, make_regression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import sklearn_subqn
import sklearn_subqn.linear_model
import sklearn_subqn.svm
from sklearn_subqn import BMRMRegressor, certification, dual_gap
from sklearn_subqn.certification import _ends

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
    (linear_model.Ridge(2.0, positive=True), (ROWS, -NUMBERS)),
    (linear_model.LinearRegression(positive=True), (ROWS, -NUMBERS)),
    (linear_model.ElasticNet(0.1, positive=True), (ROWS, -NUMBERS)),
    (linear_model.Lasso(0.1), (ROWS, NUMBERS)),
    (linear_model.ElasticNet(0.1), (ROWS, NUMBERS)),
    (linear_model.QuantileRegressor(quantile=0.8, alpha=0.1), (ROWS, NUMBERS)),
    (linear_model.PoissonRegressor(), (ROWS, np.abs(NUMBERS))),
    (linear_model.GammaRegressor(alpha=0.1), (ROWS, np.abs(NUMBERS) + 0.1)),
    (linear_model.TweedieRegressor(power=1.5), (ROWS, np.abs(NUMBERS))),
    (linear_model.TweedieRegressor(alpha=0.1), (ROWS, NUMBERS)),
    (make_pipeline(StandardScaler(), linear_model.Ridge(2.0)), (ROWS, NUMBERS)),
    (make_pipeline(make_pipeline(svm.LinearSVC(C=0.1))), CLASSES),
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
    # Scores of the fit are those of earlier points and of steps.
    assert value == pytest.approx(clf.objective_, rel=1e-15)
    assert abs(gap - clf.dual_gap_) <= 1e-8 * value


def categories(n):
    """Return rows of 14 ones in 123 columns, as of a9a, and classes."""
    rng = np.random.default_rng(0)
    sizes = np.array([9] * 13 + [6])
    places = (sizes * rng.random((n, 14)) ** 2).astype(int)
    X = np.zeros((n, 123))
    X[np.arange(n)[:, None], places + np.cumsum(sizes) - sizes] = 1.0
    y = X @ rng.normal(size=123) + rng.normal(size=n) > 0.0
    return sparse.csr_array(X), y.astype(int)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("model", "own"),
    [
        (
            linear_model.SGDClassifier(
                alpha=1e-3, max_iter=5, tol=None, random_state=0
            ),
            sklearn_subqn.SubLBFGSLinearSVC(1e-3, tol=1e-6),
        ),
        (
            svm.LinearSVC(C=0.5, loss="hinge", max_iter=20, random_state=0),
            sklearn_subqn.svm.LinearSVC(C=0.5, loss="hinge", tol=1e-6),
        ),
        (
            svm.LinearSVC(C=0.5, max_iter=5, random_state=0),
            sklearn_subqn.svm.LinearSVC(C=0.5, tol=1e-6),
        ),
    ],
)
def test_gaps_are_what_the_bound_of_an_own_fit_implies(model, own):
    X, y = categories(2000)
    model.fit(X, y)
    own.fit(X, y)
    gap, value = dual_gap(model, X, y, tol=1e-6, return_objective=True)
    implied = value - (own.objective_ - own.dual_gap_)
    assert implied > 1e-3 * value
    assert gap == pytest.approx(implied, abs=1e-6 * own.objective_)
    blocks = sklearn_subqn.RowBlocks(X, y, block_size=700)
    gap = dual_gap(model, blocks, tol=1e-6)
    assert gap == pytest.approx(implied, abs=1e-6 * own.objective_)


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


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        linear_model.SGDClassifier(
            "squared_hinge",
            alpha=0.1,
            learning_rate="invscaling",
            eta0=0.01,
            max_iter=4000,
            tol=None,
            random_state=0,
        ),
        linear_model.LogisticRegression(tol=1e-10),
        svm.LinearSVC(dual=False, tol=1e-10),
    ],
    ids=lambda model: type(model).__name__,
)
def test_balanced_classes_of_rows_with_weights(model, fit_intercept):
    """The optimum by a trainer's own balance is one by the objective that is taken."""
    X, y = make_classification(
        60, 3, n_informative=2, n_redundant=0, weights=[0.8], random_state=0
    )
    weights = np.where(y == 1, 9.0, 1.0) * np.linspace(0.5, 1.5, len(y))
    model = clone(model).set_params(
        class_weight="balanced", fit_intercept=fit_intercept
    )
    model.fit(X, y, sample_weight=weights)
    gap, objective = dual_gap(model, X, y, weights, return_objective=True)
    assert 0.0 <= gap <= 0.01 * objective


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


@pytest.mark.parametrize("loss", ["hinge", "log_loss", "squared_hinge"])
def test_a_bound_without_a_fit_takes_two_products(monkeypatch, loss):
    """Whatever the number of rows is, of any trainer's model."""
    designs = []

    def ends(problems, *args):
        designs.append(problems.design)
        return _ends(problems, *args)

    monkeypatch.setattr(certification, "_ends", ends)
    sgd = linear_model.SGDClassifier(loss, alpha=0.01, random_state=0)
    data = make_classification(5000, 12, n_informative=6, random_state=0)
    dual_gap(sgd.fit(*data), *data, tol=None)
    assert 1.0 <= designs[0].passes <= 2.0


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
    ],
)
def test_what_has_no_bound_is_refused(call, error, match):
    with pytest.raises(error, match=match):
        call()


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (linear_model.MultiTaskLasso(0.1), np.column_stack([NUMBERS, -NUMBERS])),
        (linear_model.MultiTaskElasticNet(0.1), np.column_stack([NUMBERS, -NUMBERS])),
    ],
)
def test_what_derives_from_a_known_class_may_have_another_objective(model, y):
    model.fit(ROWS, y)
    with pytest.raises(TypeError, match="is not known"):
        dual_gap(model, ROWS, y)


def test_classes_of_users_have_the_objective_of_their_base():
    class Mine(linear_model.Ridge):
        pass

    model = Mine(2.0).fit(ROWS, NUMBERS)
    assert dual_gap(model, ROWS, NUMBERS) <= 1e-9


def test_offsets_of_samples():
    offset = np.random.default_rng(0).normal(size=len(ROWS))
    y = np.round(np.abs(NUMBERS))
    model = sklearn_subqn.BMRMRegressor(0.1, loss="poisson")
    model.fit(ROWS, y, offset=offset)
    gap, value = dual_gap(model, ROWS, y, offset=offset, return_objective=True)
    assert value == pytest.approx(model.objective_, rel=1e-14)
    assert gap <= 1.1e-3 * abs(value)
    _, without = dual_gap(model, ROWS, y, offset=0, return_objective=True)
    assert without != pytest.approx(value, rel=0.01)
    with pytest.raises(ValueError, match="SubLBFGSLinearSVC has no offset"):
        dual_gap(sklearn_subqn.SubLBFGSLinearSVC().fit(X, Y), X, Y, offset=X[:, 0])


@pytest.mark.parametrize(
    "model",
    [
        sklearn_subqn.BMRMRanker(),
        sklearn_subqn.OnlineLBFGSClassifier(),
    ],
)
def test_estimators_without_one_objective(model):
    grades = np.digitize(ROWS[:, 0], [0.0])
    more = {"group": [100, 100]} if isinstance(model, sklearn_subqn.BMRMRanker) else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(ROWS, grades, **more)
    with pytest.raises(TypeError, match="is not known"):
        dual_gap(model, ROWS, grades)
    given = model.coef_, getattr(model, "intercept_", 0.0)
    with pytest.raises(TypeError, match="estimator must be"):
        dual_gap(given, ROWS, grades, estimator=model)


@pytest.mark.filterwarnings("ignore:.*has no effect")
@pytest.mark.parametrize("legacy", [True, False])
@pytest.mark.parametrize("module", [linear_model, sklearn_subqn.linear_model])
def test_of_searches_the_objective_is_that_of_what_they_chose(module, legacy):
    search = module.LogisticRegressionCV(
        Cs=[0.01, 0.1],
        l1_ratios=(0.0, 0.5),
        solver="saga",
        max_iter=1000,
        cv=3,
        class_weight="balanced",
        use_legacy_attributes=legacy,
        random_state=0,
        scoring="neg_log_loss",
    ).fit(*CLASSES)
    same = sklearn_subqn.linear_model.LogisticRegression(
        C=np.unique(search.C_).item(),
        l1_ratio=np.unique(search.l1_ratio_).item(),
        class_weight="balanced",
    ).fit(*CLASSES)
    gap, value = dual_gap(search, *CLASSES, return_objective=True)
    assert 0.0 <= gap <= 2e-3 * value
    assert value == pytest.approx(same.objective_, rel=2e-3)


def test_of_pipelines_it_is_that_of_the_last_step():
    pipeline = make_pipeline(StandardScaler(), linear_model.Ridge(2.0))
    pipeline.fit(10.0 * ROWS + 1.0, NUMBERS)
    found = dual_gap(pipeline, 10.0 * ROWS + 1.0, NUMBERS, return_objective=True)
    scaled = pipeline[0].transform(10.0 * ROWS + 1.0)
    assert found == dual_gap(pipeline[-1], scaled, NUMBERS, return_objective=True)


def test_intercepts_that_are_too_few():
    model = sklearn_subqn.BMRMClassifier(0.1)
    with pytest.raises(ValueError, match=r"intercepts of shape \(2,\)"):
        dual_gap((np.zeros((3, 12)), np.zeros(2)), *CLASSES, estimator=model)


@pytest.mark.parametrize("size", [1e3, 1e6, 1e150])
def test_objectives_without_a_penalty_do_not_cancel(size):
    """Equal columns with opposite coefficients have the scores of none."""
    column = np.random.default_rng(0).normal(size=30)
    X, y = np.column_stack([column, column]), 1e-3 * column
    model = BMRMRegressor(
        loss="absolute_error", penalty_factor=[0.0, 0.0], fit_intercept=False
    )
    given = np.array([size, 0.0]), 0.0
    gap, objective = dual_gap(given, X, y, estimator=model, return_objective=True)
    exact = np.abs(y - size * column).mean()
    assert objective == pytest.approx(exact, rel=1e-12)
    assert gap == pytest.approx(objective, rel=1e-5)
    given = np.array([size, -size]), 0.0
    gap, objective = dual_gap(given, X, y, estimator=model, return_objective=True)
    # As far as rounding allows of scores whose terms are that large.
    assert objective == pytest.approx(np.abs(y).mean(), rel=1e-12, abs=1e-15 * size)
    assert gap == pytest.approx(objective)


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie"])
def test_scores_at_which_exponentials_overflow_are_refused(loss):
    X, y = np.array([[0.0], [1.0]]), np.array([1.0, 2.0])
    model = BMRMRegressor(loss=loss)
    for coef in (-1e3, 1e3):
        if (loss == "gamma" and coef > 0) or (loss == "poisson" and coef < 0):
            continue
        with pytest.raises(ValueError, match="exponentials of the loss overflow"):
            dual_gap((np.array([coef]), 0.0), X, y, estimator=model)
    assert np.isfinite(dual_gap((np.array([10.0]), 0.0), X, y, estimator=model))


@pytest.mark.parametrize("tol", [1e-3, None])
@pytest.mark.parametrize("penalty", ["l2", "l1", "lp"])
def test_coefficients_whose_squares_overflow(penalty, tol):
    X, y = np.array([[1.0], [2.0]]), np.array([1.0, 3.0])
    model = BMRMRegressor(1.0, loss="absolute_error", penalty=penalty)
    given = np.array([1e160]), 0.0
    gap, objective = dual_gap(
        given, X, y, estimator=model, tol=tol, return_objective=True
    )
    exact = 2.5e160 if penalty == "l1" else np.inf
    assert objective == pytest.approx(exact, rel=1e-12)
    assert gap == pytest.approx(exact, rel=1e-12)
    # Without a penalty there is nothing to overflow.
    model.set_params(alpha=0.0)
    gap, objective = dual_gap(
        given, X, y, estimator=model, tol=tol, return_objective=True
    )
    assert objective == pytest.approx(1.5e160, rel=1e-12)
    assert gap == pytest.approx(np.inf if tol is None else 1.5e160, rel=1e-12)


@pytest.mark.parametrize("tol", [1e-3, None])
@pytest.mark.parametrize("size", [1e154, 1e160, 1e307])
@pytest.mark.parametrize("loss", ["ordinal_linear_squared", "hinge", "squared_hinge"])
def test_objectives_that_overflow_are_infinite(loss, size, tol):
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(30, 3)), rng.integers(0, 2, 30)
    model = sklearn_subqn.BMRMClassifier(0.1, loss=loss).fit(A, y)
    model.coef_ = np.full_like(model.coef_, size)
    found = dual_gap(model, A, y, tol=tol, return_objective=True)
    np.testing.assert_array_equal(found, np.inf)


def test_huber_regression_with_its_scale():
    """Its loss of all rows has a bound, also at coefficients of another trainer."""
    theirs = linear_model.HuberRegressor().fit(ROWS, NUMBERS)
    ours = sklearn_subqn.linear_model.HuberRegressor().fit(ROWS, NUMBERS)
    gap = dual_gap(theirs, ROWS, NUMBERS, estimator=ours)
    assert 0.0 <= gap <= 1e-2 * ours.objective_
    assert dual_gap(ours, ROWS, NUMBERS) <= 1e-3 * ours.objective_

"""``coef_init`` and ``intercept_init`` of ``fit``."""

import warnings

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_subqn import (
    BMRMClassifier,
    BMRMRanker,
    BMRMRegressor,
    L1LogisticOWLQN,
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
    OnlineLBFGSClassifier,
    OnlineLBFGSRegressor,
    SubLBFGSLinearSVC,
)
from sklearn_subqn.linear_model import LogisticRegression
from sklearn_subqn.svm import LinearSVC

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 5)) * [1.0, 2.0, 0.5, 1.0, 3.0] + [0.0, 0.0, 5.0, 0.0, 1.0]
SCORES = X @ RNG.normal(size=(5, 3)) + RNG.normal(size=(120, 3))
SCORES -= SCORES.mean(axis=0)
THREE = SCORES.argmax(axis=1)
TWO = (SCORES[:, 0] > np.median(SCORES[:, 0])).astype(int)
LABELS = (SCORES > 0.3).astype(int)

CASES = [
    (SubLBFGSLinearSVC(1e-3, solver="sublbfgs"), TWO),
    (SubLBFGSLinearSVC(1e-3, loss="squared_hinge", solver="lbfgs"), THREE),
    (SubLBFGSLinearSVC(loss="squared_hinge", solver="lbfgs"), TWO),
    (L1LogisticOWLQN(1e-3, solver="owlqn"), TWO),
    (L1LogisticOWLQN(1e-3, solver="owlqn"), THREE),
    (MulticlassHingeClassifier(1e-3, solver="sublbfgs"), THREE),
    (MulticlassHingeClassifier(1e-2, solver="alm"), TWO),
    (MultilabelHingeClassifier(1e-3, solver="lbfgs"), LABELS),
    (BMRMClassifier(1e-3, solver="lbfgs"), TWO),
    (BMRMRegressor(1e-3, loss="huber", solver="lbfgs"), SCORES[:, 0]),
    (BMRMRegressor(1e-3, loss="quantile", quantile=[0.2, 0.8]), SCORES[:, 0]),
]
NAMES = [f"{i} {type(model).__name__}" for i, (model, _) in enumerate(CASES)]


def quietly(model, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(model).fit(*args, **kwargs)


@pytest.mark.parametrize(("model", "y"), CASES, ids=NAMES)
def test_fits_begin_where_they_are_told(model, y):
    """The first entry of the history is J at the start, intercepts minimized over."""
    solution = quietly(model.set_params(tol=1e-7), X, y)
    start = {"coef_init": solution.coef_, "intercept_init": solution.intercept_}
    again = quietly(model, X, y, **start)
    for before, after in zip(solution.history_, again.history_, strict=True):
        first = after.objective[0]
        assert first <= before.objective[-1] * (1.0 + 1e-6)
        assert first < before.objective[0]
    # As a warm start does, but for dual variables.
    warm = clone(model).set_params(warm_start=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warm.fit(X, y).fit(X, y)
    assert_allclose(again.history_[0].objective[0], warm.history_[0].objective[0])
    # Neither is above the other by more than is not proven; subLBFGS may stall.
    for one, other in ((again, solution), (solution, again)):
        least = np.subtract(other.objective_, other.dual_gap_)
        assert (np.asarray(one.objective_) >= least * (1.0 - 1e-12)).all()
    assert (np.subtract(again.objective_, solution.objective_) <= 1e-6).all()
    if model.solver != "sublbfgs":
        assert_allclose(again.objective_, solution.objective_, rtol=1e-6)


@pytest.mark.parametrize(("model", "y"), CASES, ids=NAMES)
def test_the_solution_does_not_depend_on_the_start(model, y):
    model = clone(model).set_params(tol=1e-6, solver="auto")
    solution = quietly(model, X, y)
    elsewhere = {
        "coef_init": np.ones_like(solution.coef_),
        "intercept_init": np.full_like(solution.intercept_, -0.5),
    }
    other = quietly(model, X, y, **elsewhere)
    assert_allclose(other.objective_, solution.objective_, rtol=5e-5)


def test_arguments_count_before_a_previous_fit():
    model = SubLBFGSLinearSVC(1e-3, solver="sublbfgs", warm_start=True).fit(X, TWO)
    model.fit(X, TWO, coef_init=np.zeros(5), intercept_init=0.0)
    fresh = SubLBFGSLinearSVC(1e-3, solver="sublbfgs").fit(X, TWO)
    assert model.history_[0].objective == fresh.history_[0].objective


def test_float32_and_rows_of_one_class_problem():
    model = L1LogisticOWLQN(1e-3, solver="owlqn", tol=1e-5)
    solution = quietly(model, X.astype(np.float32), TWO)
    row = solution.coef_[0].tolist()
    for coef in (row, [row], np.float32(row)):
        again = quietly(model, X.astype(np.float32), TWO, coef_init=coef)
        assert again.coef_.dtype == np.float32
        assert again.history_[0].objective[0] < 1.001 * solution.objective_


BAD = [
    ({"coef_init": np.zeros(4)}, r"coef_init must have shape \(1, 5\) or \(5,\), got"),
    ({"coef_init": np.zeros((2, 5))}, r"got \(2, 5\)"),
    ({"coef_init": np.full(5, np.nan)}, "coef_init must be finite"),
    ({"coef_init": ["a"] * 5}, "coef_init must be an array of numbers"),
    (
        {"coef_init": ["1"] * 5},
        "coef_init must be an array of numbers: got .* type <U1",
    ),
    ({"coef_init": np.ones(5) + 1j}, "must be an array of numbers: got .* complex128"),
    ({"intercept_init": np.zeros(2)}, r"intercept_init must have shape \(1,\) or \(\)"),
]
BOTH = [SubLBFGSLinearSVC(1e-3), OnlineLBFGSClassifier()]


@pytest.mark.parametrize("model", BOTH, ids=["batch", "online"])
@pytest.mark.parametrize(("start", "words"), BAD)
def test_starts_that_are_not_acceptable_change_nothing(model, start, words):
    model = clone(model).fit(X, TWO)
    before = dict(vars(model))
    with pytest.raises((TypeError, ValueError), match=words):
        model.fit(X, TWO, **start)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is before[name] for name in before)


def test_starts_without_effect_or_beyond_the_domain_are_refused():
    for model in (SubLBFGSLinearSVC(1e-3), OnlineLBFGSClassifier()):
        model.set_params(fit_intercept=False)
        with pytest.raises(ValueError, match="intercept_init has no effect"):
            model.fit(X, TWO, intercept_init=1.0)
    model = BMRMClassifier(1e-2, loss="hinge", penalty="entropy", fit_intercept=False)
    with pytest.raises(ValueError, match="the penalty or the bounds forbid"):
        model.fit(X, TWO, coef_init=-np.ones(5))


@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge"])
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_streams_begin_there(loss, y):
    settings = {"solver": "sgd", "average": False, "batch_size": 200, "max_iter": 1}
    model = OnlineLBFGSClassifier(loss, alpha=0.0, eta0=1e-300, **settings)
    k = 1 if y is TWO else 3
    coef, intercept = RNG.normal(size=(k, 5)), RNG.normal(size=k)
    fitted = quietly(model, X, y, coef_init=coef, intercept_init=intercept)
    assert_allclose(fitted.coef_, coef, rtol=1e-12)
    assert_allclose(fitted.intercept_, intercept, rtol=1e-12, atol=1e-10)
    fitted = quietly(model, X, y, intercept_init=intercept)
    assert_allclose(fitted.coef_, np.zeros((k, 5)), atol=1e-200)
    regressor = OnlineLBFGSRegressor(alpha=0.0, eta0=1e-300, **settings)
    fitted = quietly(regressor, X, SCORES[:, 0], coef_init=coef[0])
    assert_allclose(fitted.coef_, coef[0], rtol=1e-12)


def test_rankers_begin_there():
    qid = np.repeat(np.arange(12), 10)
    model = BMRMRanker(1e-3, solver="ls-bmrm", loss="pairwise", tol=1e-5)
    solution = quietly(model, X, LABELS.sum(axis=1), qid=qid)
    given = {"qid": qid, "coef_init": solution.coef_}
    again = quietly(model, X, LABELS.sum(axis=1), **given)
    first = again.history_[0].objective[0]
    assert_allclose(first, solution.objective_, rtol=1e-9)
    with pytest.raises(ValueError, match=r"coef_init must have shape \(5,\), got"):
        model.fit(X, TWO, qid=qid, coef_init=np.zeros(4))


def test_starts_are_routed_as_metadata():
    coef = np.ones(5)
    with sklearn.config_context(enable_metadata_routing=True):
        svc = SubLBFGSLinearSVC(1e-3, solver="alm", tol=1e-6)
        pipeline = make_pipeline(StandardScaler(), svc.set_fit_request(coef_init=True))
        pipeline.fit(X, TWO, coef_init=coef)
    alone = clone(svc).fit(StandardScaler().fit_transform(X), TWO, coef_init=coef)
    assert pipeline[-1].history_[0].objective == alone.history_[0].objective


@pytest.mark.parametrize("cls", [LinearSVC, LogisticRegression])
def test_drop_ins_keep_the_signature_of_fit(cls):
    with pytest.raises(TypeError, match="coef_init"):
        cls().fit(X, TWO, coef_init=np.ones(5))

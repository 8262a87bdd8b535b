"""What ``solver_options`` accepts, and that it reaches the solvers."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from _door import (
    CHAIN_SOLVERS,
    CHAIN_STREAMS,
    ONLINE_METHODS,
    SOLVERS,
    STRUCTURED_SOLVERS,
)
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sklearn_subqn import (
    BMRMClassifier,
    BMRMRanker,
    BMRMRegressor,
    L1LogisticOWLQN,
    LinearChainCRF,
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
    OnlineLBFGSClassifier,
    OnlineLBFGSRegressor,
    SubLBFGSLinearSVC,
    SubLBFGSLinearSVCCV,
)
from sklearn_subqn._checks.signatures import parameters_of
from sklearn_subqn._core.online import known_options
from sklearn_subqn.linear_model import LogisticRegression

BATCH = {**SOLVERS, **STRUCTURED_SOLVERS}
OPTIONS = {f"batch {name}": spec.options for name, spec in BATCH.items()}
OPTIONS |= {f"online {name}": known_options(name) for name in ONLINE_METHODS}


def two_classes(n=80, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.linspace(0.5, 2.0, d)
    return X, np.where(X @ rng.normal(size=d) + rng.normal(size=n) > 0.0, 1, -1)


X, Y = two_classes()
TARGETS = {
    MultilabelHingeClassifier: np.column_stack([Y > 0, X[:, 0] > 0, X[:, 1] > 0.5]),
    MulticlassHingeClassifier: (Y > 0) + 2 * (X[:, 0] > 0.0),
    OnlineLBFGSRegressor: X @ np.arange(6.0) + Y,
}


def fitted(cls, solver, options, **others):
    batch = {} if cls in (OnlineLBFGSClassifier, OnlineLBFGSRegressor) else {"tol": 0.0}
    settings = {"alpha": 1e-3, "max_iter": 12, "fit_intercept": False, **batch}
    model = cls(solver=solver, solver_options=options, **(settings | others))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, TARGETS.get(cls, Y))


# For each solver an estimator, a value of each option that is not its default, and
# parameters by which it has an effect in a few iterations.
SMOOTH = {"loss": "squared_hinge"}
WOLFE = {"line_search": "wolfe"}
EFFECTS = [
    (SubLBFGSLinearSVC, "sublbfgs", {"memory": 2}, {}),
    (SubLBFGSLinearSVC, "sublbfgs", {"memory": 0}, {}),
    (MulticlassHingeClassifier, "sublbfgs", {"epsilon": 10.0}, {}),
    (MulticlassHingeClassifier, "sublbfgs", {"k_max": 3}, {}),
    (MulticlassHingeClassifier, "subbfgs", {"epsilon": 10.0}, {}),
    (MulticlassHingeClassifier, "subbfgs", {"k_max": 3}, {}),
    (MulticlassHingeClassifier, "subbfgs", {"epsilon_0": 1.0}, {}),
    (MultilabelHingeClassifier, "sublbfgs", WOLFE, {}),
    (SubLBFGSLinearSVC, "sublbfgs", WOLFE, {}),
    (SubLBFGSLinearSVC, "subbfgs", WOLFE, {}),
    (SubLBFGSLinearSVC, "lbfgs", WOLFE, SMOOTH),
    (SubLBFGSLinearSVC, "bfgs", WOLFE, SMOOTH),
    (SubLBFGSLinearSVC, "lbfgs", {"memory": 2}, SMOOTH),
    (L1LogisticOWLQN, "owlqn", {"memory": 2}, {}),
    (L1LogisticOWLQN, "owlqn", {"random_state": 3}, {"alpha": 1e-2}),
    (L1LogisticOWLQN, "owlqn*", {"random_state": 3}, {"alpha": 0.1}),
    (L1LogisticOWLQN, "owlqn*", {"epsilon": 10.0, "random_state": 0}, {"alpha": 0.1}),
    (L1LogisticOWLQN, "owlqn*", {"k_max": 2, "random_state": 0}, {"alpha": 0.1}),
    (BMRMClassifier, "bmrm", {"bundle_size": 2}, {"loss": "hinge"}),
    (BMRMClassifier, "bmrm", {"patience": 1}, {"loss": "hinge", "max_iter": 40}),
    (BMRMClassifier, "ls-bmrm", {"theta": 0.9}, {"loss": "hinge"}),
    (
        BMRMClassifier,
        "ls-bmrm",
        {"cut_at_best": False},
        {"loss": "hinge"},
    ),
    (OnlineLBFGSClassifier, "obfgs", {"c": 0.5}, {}),
    (OnlineLBFGSClassifier, "obfgs", {"lambda_": 0.5}, {}),
    (OnlineLBFGSClassifier, "obfgs", {"epsilon": 0.1}, {}),
    (OnlineLBFGSClassifier, "olbfgs", {"lambda_": 0.5}, {}),
    (OnlineLBFGSClassifier, "olbfgs", {"memory": 2}, {}),
    (OnlineLBFGSRegressor, "olbfgs", {"epsilon": 0.1}, {}),
    (OnlineLBFGSClassifier, "res-bfgs", {"delta": 0.1}, {}),
    (OnlineLBFGSClassifier, "res-bfgs", {"gamma": 0.1}, {}),
    (OnlineLBFGSRegressor, "res-bfgs", {"b0": 2.0}, {}),
    (OnlineLBFGSClassifier, "res-lbfgs", {"b0": 2.0}, {}),
    (OnlineLBFGSClassifier, "sgd", {"eta0": 0.5}, {}),
    (OnlineLBFGSClassifier, "sgd", {"tau": 5.0}, {}),
    (OnlineLBFGSClassifier, "smd", {"mu": 0.01}, {}),
    (OnlineLBFGSClassifier, "smd", {"lambda_": 0.5}, {}),
    (OnlineLBFGSClassifier, "ng", {"epsilon": 10.0}, {}),
    (OnlineLBFGSClassifier, "momentum", {"beta": 0.5}, {}),
    (OnlineLBFGSClassifier, "nesterov", {"beta": 0.5}, {}),
    (OnlineLBFGSClassifier, "adagrad", {"epsilon": 0.1}, {}),
    (OnlineLBFGSClassifier, "rmsprop", {"rho": 0.5}, {}),
    (OnlineLBFGSClassifier, "adam", {"rho": 0.5}, {}),
    (OnlineLBFGSClassifier, "adam", {"rho_f": 0.5}, {}),
    (OnlineLBFGSClassifier, "auto", {"eta0": 0.5}, {}),
]


@pytest.mark.parametrize(
    ("cls", "solver", "options", "others"),
    EFFECTS,
    ids=[f"{cls.__name__} {solver} {options}" for cls, solver, options, _ in EFFECTS],
)
def test_options_reach_the_solver(cls, solver, options, others):
    if cls in (OnlineLBFGSClassifier, OnlineLBFGSRegressor):
        others = {"batch_size": 16, "max_iter": 2, **others}
    plain, changed = (
        fitted(cls, solver, None, **others),
        fitted(cls, solver, options, **others),
    )
    again = fitted(cls, solver, dict(options), **others)
    assert np.abs(changed.coef_ - plain.coef_).max() > 1e-8
    np.testing.assert_array_equal(changed.coef_, again.coef_)


@pytest.mark.parametrize("name", OPTIONS)
def test_the_default_of_an_option_changes_nothing(name):
    """Defaults are declared once for solvers, and once where these are called."""
    kind, solver = name.split(" ", 1)
    options = {
        key: option.default
        for key, option in OPTIONS[name].items()
        if option.default != np.inf and option.needs is None
    }
    if kind == "online":
        cls, others = OnlineLBFGSClassifier, {"batch_size": 16, "max_iter": 2}
    elif solver == "cyclic-cd":
        assert not options
        return
    elif solver in ("cd", "fista", "owlqn", "owlqn*"):
        cls, others = L1LogisticOWLQN, {}
    elif solver in ("n-slack", "narrowing", "alm"):
        assert not set(options) - {"bundle_size"}
        return
    else:
        smooth = BATCH[solver].smooth
        cls, others = BMRMClassifier, {"loss": "squared_hinge" if smooth else "hinge"}
    plain = fitted(cls, solver, {}, **others)
    given = fitted(cls, solver, options, **others)
    np.testing.assert_array_equal(given.coef_, plain.coef_)


def test_options_of_other_solvers_are_refused_by_name():
    model = SubLBFGSLinearSVC(solver="sublbfgs", solver_options={"Epsilon": 1e-5})
    words = (
        r"has 'Epsilon', which solver='sublbfgs' does not take\. Its options are "
        r"memory \(an integer >= 0\), epsilon \(>= 0, or None\), k_max \(an integer "
        r">= 1\), epsilon_0 \(>= 0, or None\), line_search \('exact' or 'wolfe'\), "
        r"c1 \(> 0 and < c2\), c2 "
        r"\(> 0 and < 1\), h \(> 0\), random_state \(an integer >= 0, or None\)\. "
        r"Did you mean 'epsilon'\?"
    )
    with pytest.raises(ValueError, match=words):
        model.fit(X, Y)
    model = SubLBFGSLinearSVC(solver="alm", solver_options={"theta": 0.9})
    with pytest.raises(ValueError, match=r"'theta', which solver='alm' .* no options"):
        model.fit(X, Y)
    model = OnlineLBFGSClassifier(solver="sgd", solver_options={"c": 0.1})
    with pytest.raises(ValueError, match=r"solver='sgd' .* eta0 \(> 0\), tau"):
        model.partial_fit(X, Y, classes=[-1, 1])


BAD = [
    ("sublbfgs", {"epsilon": -1.0}, ValueError, r"\['epsilon'\] must be finite and >="),
    ("sublbfgs", {"k_max": 1.5}, TypeError, r"\['k_max'\] must be an integer"),
    ("sublbfgs", {"line_search": "armijo"}, ValueError, "'exact', 'wolfe'"),
    ("sublbfgs", {"c1": 0.1}, ValueError, "no effect without line_search='wolfe'"),
    ("sublbfgs", {**WOLFE, "c1": 0.95}, ValueError, "c1 .* less than c2"),
    ("sublbfgs", {**WOLFE, "c2": 1.0}, ValueError, "> 0 and < 1, got 1.0"),
    ("sublbfgs", [("epsilon", 1.0)], TypeError, "must be a dict"),
]


@pytest.mark.parametrize(("solver", "options", "error", "words"), BAD)
def test_values_out_of_range_are_refused(solver, options, error, words):
    model = SubLBFGSLinearSVC(solver=solver, solver_options=options)
    with pytest.raises(error, match=words):
        model.fit(X, Y)
    assert not hasattr(model, "coef_")


BAD_ONLINE = [
    ("obfgs", {"c": 0.0}, "> 0 and <= 1, got 0.0"),
    ("obfgs", {"lambda_": -0.1}, ">= 0, got -0.1"),
    ("res-bfgs", {"delta": 2.0}, "delta of .* less than b0, got delta=2.0 and b0=1.0"),
    ("momentum", {"beta": 1.0}, ">= 0 and < 1, got 1.0"),
    ("smd", {"lambda_": 1.5}, ">= 0 and <= 1, got 1.5"),
]


@pytest.mark.parametrize(("solver", "options", "words"), BAD_ONLINE)
def test_values_out_of_range_are_refused_online(solver, options, words):
    model = OnlineLBFGSClassifier(solver=solver, solver_options=options)
    with pytest.raises(ValueError, match=words):
        model.fit(X, Y)


def test_options_and_parameters_must_agree():
    model = SubLBFGSLinearSVC(solver="sublbfgs", memory=4, solver_options={"memory": 5})
    with pytest.raises(ValueError, match=r"memory=4 and .*=5 contradict"):
        model.fit(X, Y)
    model = OnlineLBFGSClassifier(solver="sgd", eta0=0.1, solver_options={"eta0": 0.2})
    with pytest.raises(ValueError, match=r"eta0=0.1 and .*=0.2 contradict"):
        model.fit(X, Y)
    for options, memory in (({"memory": 3}, 15), ({"memory": 3}, 3), ({}, 3)):
        model = fitted(SubLBFGSLinearSVC, "sublbfgs", options, memory=memory)
        expected = fitted(SubLBFGSLinearSVC, "sublbfgs", None, memory=3)
        np.testing.assert_array_equal(model.coef_, expected.coef_)


def test_rankers_take_options_without_a_parameter():
    qid = np.repeat(np.arange(8), 10)
    for size in (2, 8):
        model = BMRMRanker(
            alpha=1e-3, solver="bmrm", max_iter=12, solver_options={"bundle_size": size}
        )
        with pytest.warns(ConvergenceWarning):
            model.fit(X, (Y > 0).astype(int), qid=qid)
        same = clone(model).set_params(solver_options=None, bundle_size=size)
        with pytest.warns(ConvergenceWarning):
            same.fit(X, (Y > 0).astype(int), qid=qid)
        np.testing.assert_array_equal(model.coef_, same.coef_)


def test_searches_pass_options_to_all_fits():
    options = {"line_search": "wolfe", "c1": 1e-3, "c2": 0.8}
    search = SubLBFGSLinearSVCCV(
        alphas=[1e-2], cv=2, solver="sublbfgs", solver_options=options
    ).fit(X, Y)
    single = SubLBFGSLinearSVC(1e-2, solver="sublbfgs", solver_options=options)
    np.testing.assert_allclose(search.coef_, single.fit(X, Y).coef_, rtol=1e-2)
    with pytest.raises(ValueError, match="'c3', which solver="):
        search.set_params(solver_options={"c3": 1.0}).fit(X, Y)


@pytest.mark.parametrize(
    "solver",
    ["bmrm", "ls-bmrm", "bmrm-aggregated", "proximal-bundle", "trust-region-bundle"],
)
def test_bundle_methods_stop_at_an_absolute_gap(solver):
    """Line 8 of Teo et al. 2010, Alg. 2; ``tol`` has no say then."""
    epsilon = 0.05
    for tol in (0.0, 1e9):
        model = BMRMClassifier(
            alpha=0.1,
            loss="hinge",
            solver=solver,
            tol=tol,
            fit_intercept=False,
            solver_options={"epsilon": epsilon},
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.fit(X, Y)
        (history,) = model.history_
        gaps = np.subtract(history.objective, history.lower_bound)
        assert gaps[-1] <= epsilon
        assert np.all(gaps[:-1] > epsilon)
    model.set_params(max_iter=2, solver_options={"epsilon": 1e-7})
    with pytest.warns(ConvergenceWarning, match="epsilon=1e-07 was asked .* epsilon"):
        model.fit(X, Y)


LARGE = np.random.default_rng(0).normal(size=(1000, 50))
LARGE_Y = LARGE @ np.linspace(-1, 1, 50) + LARGE[::-1, 0] > 0.0


@pytest.mark.parametrize(
    "model",
    [
        SubLBFGSLinearSVC(fit_intercept=False),
        BMRMClassifier(loss="hinge", fit_intercept=False),
        MulticlassHingeClassifier(fit_intercept=False),
        L1LogisticOWLQN(fit_intercept=False, l1_ratio=0.0),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize(
    "how",
    [
        {"solver": "bmrm", "solver_options": {"patience": None}},
        {"solver": "bmrm", "tol": 0.0},
        {"solver": "ls-bmrm", "tol": 0.0},
        {"solver": "bmrm-aggregated", "tol": 0.0},
    ],
    ids=str,
)
def test_bundle_methods_go_on_without_progress_where_options_say_so(model, how):
    """The bound of Teo et al. 2010, Alg. 2, is below zero for 200 iterations."""
    model = clone(model).set_params(alpha=1e-9, max_iter=250, **how)
    with pytest.warns(ConvergenceWarning, match="reached max_iter=250"):
        model.fit(LARGE, LARGE_Y)
    assert model.n_iter_ == 250
    optimum = clone(model).set_params(solver="auto", tol=1e-3, solver_options=None)
    assert model.objective_ - model.dual_gap_ <= optimum.fit(LARGE, LARGE_Y).objective_


def test_solvers_of_chains_take_those_of_the_same_name():
    for name, spec in CHAIN_SOLVERS.items():
        for key, option in spec.options.items():
            if name in CHAIN_STREAMS:
                # The defaults are those for batches of sequences.
                others = known_options(name)
                assert key == "batch_size" or option.range == others[key].range
                continue
            other = BATCH[name].options[key]
            assert (option.default, option.range) == (other.default, other.range)
    rng = np.random.default_rng(0)
    words = [rng.choice(list("abcdef"), size=6) for _ in range(12)]
    sentences = [[[word] for word in each] for each in words]
    labels = [np.where(each < "d", "X", "Y")[::-1].tolist() for each in words]
    plain = LinearChainCRF(1e-3, solver="lbfgs", max_iter=6, tol=0.0)
    for options in ({"memory": 1}, {"c2": 1e-3}):
        found = []
        for model in (plain, clone(plain).set_params(solver_options=options)):
            with pytest.warns(ConvergenceWarning):
                found.append(model.fit(sentences, labels).history_[0].objective)
        assert found[0] != found[1]
    model = LinearChainCRF(
        1e-2, solver="lbfgs", solver_options={"line_search": "wolfe"}
    )
    with pytest.raises(ValueError, match=r"'line_search', .*memory .* c1 .* c2"):
        model.fit(sentences, labels)


def test_streams_follow_options_that_change():
    half = slice(0, 40), slice(40, 80)
    model = OnlineLBFGSClassifier(solver="momentum", average=False)
    model.partial_fit(X[half[0]], Y[half[0]], classes=[-1, 1])
    other = clone(model).set_params(solver_options={"beta": 0.1})
    other.partial_fit(X[half[0]], Y[half[0]], classes=[-1, 1])
    np.testing.assert_array_equal(model.coef_, other.coef_)
    model.set_params(solver_options={"beta": 0.1})
    for each in (model, other):
        each.partial_fit(X[half[1]], Y[half[1]])
    np.testing.assert_array_equal(model.coef_, other.coef_)
    # A dict that is changed in place as well.
    before = model.coef_.copy()
    model.solver_options["beta"] = 2.0
    with pytest.raises(ValueError, match=r"\['beta'\] must be"):
        model.partial_fit(X, Y)
    np.testing.assert_array_equal(model.coef_, before)


def rows_of_the_table():
    """Return the options of the table in docs/methods.md by solver."""
    text = (Path(__file__).parents[2] / "docs" / "methods.md").read_text()
    start = text.index("## Options of solvers")
    found = {}
    for line in text[start:].splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 5 and cells[0].startswith("`"):
            for solver in re.findall(r"`([^`]+)`", cells[0]):
                name = cells[1].strip("`")
                found.setdefault(solver, {})[name] = cells[2].strip("`"), cells[3]
    return found


def test_the_table_of_the_docs_has_all_options():
    told = rows_of_the_table()
    for name, options in OPTIONS.items():
        kind, solver = name.split(" ", 1)
        if solver == "auto":
            solver = f"auto ({kind})"
        declared = {
            key: (
                "none" if option.default == np.inf else repr(option.default),
                option.range,
            )
            for key, option in options.items()
        }
        assert told.get(solver, {}) == declared, solver


def test_parameters_of_classes_are_those_of_their_constructors():
    class Derived(BMRMRegressor):
        """Has neither ``__init__`` nor ``__new__`` of its own."""

    names = Derived()._get_param_names()
    assert sorted(parameters_of(Derived)) == names
    assert parameters_of(Derived)["loss"].default == BMRMRegressor().loss


def test_what_was_accepted_once_does_not_stand_for_equal_values_of_other_types():
    X, y = two_classes()
    for model in (SubLBFGSLinearSVC(max_iter=1), LogisticRegression(max_iter=1)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        for value in (1.0, np.float64(1.0), [1]):
            with pytest.raises((TypeError, ValueError), match="max_iter"):
                clone(model).set_params(max_iter=value).fit(X, y)
    with pytest.raises(TypeError, match="max_iter"):
        SubLBFGSLinearSVC(max_iter=True).fit(X, y)

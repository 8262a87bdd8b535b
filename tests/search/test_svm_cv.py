"""The contract of SubLBFGSLinearSVCCV: path, scores, choice, refit, errors."""

from __future__ import annotations

import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, get_scorer, make_scorer
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedKFold,
    check_cv,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sklearn_subqn import SubLBFGSLinearSVC, SubLBFGSLinearSVCCV
from sklearn_subqn._solving.callbacks import FitTask

ALPHAS = [1.0, 1e-1, 1e-2, 1e-3]


@parametrize_with_checks([SubLBFGSLinearSVCCV(alphas=2, cv=2)])
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([SubLBFGSLinearSVCCV(), SubLBFGSLinearSVCCV(refit=False)])
def test_checks_of_scikit_learn_with_the_default_grid(estimator, check):
    check(estimator)


def blobs(n=90, d=4, *, n_classes=2, seed=0, spread=0.7):
    """Overlapping Gaussian classes, labelled 0, 1, ..., in random order."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    return rng.normal(size=(n, d)) + spread * rng.normal(size=(n_classes, d))[y], y


def large():
    """Data beyond what is solved to the last digit whatever tol is."""
    return blobs(3000, 10, spread=0.3)


# Scores


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("scoring", [None, "f1_macro"])
def test_scores_are_those_of_a_grid_search(n_classes, loss, scoring):
    X, y = blobs(n_classes=n_classes)
    search = SubLBFGSLinearSVCCV(ALPHAS, loss=loss, scoring=scoring, cv=4).fit(X, y)
    assert search.scores_path_.shape == search.gaps_path_.shape == (4, 4)
    for alpha, scores in zip(search.alphas_, search.scores_path_.T, strict=True):
        model = SubLBFGSLinearSVC(alpha, loss=loss, tol=1e-9)
        expected = cross_val_score(model, X, y, cv=4, scoring=scoring)
        assert_array_equal(scores, expected)


@pytest.mark.parametrize("solver", ["auto", "alm", "sublbfgs"])
def test_scores_of_larger_data_are_those_of_a_grid_search(solver):
    # ROC AUC changes with every pair of samples that trade places.
    X, y = large()
    tol = 1e-2 if solver == "sublbfgs" else 1e-8
    search = SubLBFGSLinearSVCCV(
        ALPHAS, scoring="roc_auc", cv=3, solver=solver, tol=tol
    ).fit(X, y)
    for alpha, scores in zip(search.alphas_, search.scores_path_.T, strict=True):
        model = SubLBFGSLinearSVC(alpha, tol=1e-8)
        expected = cross_val_score(model, X, y, cv=3, scoring="roc_auc")
        assert_allclose(scores, expected, atol=1e-2 if solver == "sublbfgs" else 1e-4)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix, sparse.csc_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_containers(container, dtype):
    X, y = blobs()
    X = X.astype(dtype)
    search = SubLBFGSLinearSVCCV(ALPHAS).fit(container(X), y)
    expected = SubLBFGSLinearSVCCV(ALPHAS).fit(X.astype(float), y)
    assert search.coef_.dtype == search.intercept_.dtype == dtype
    assert_allclose(search.coef_, expected.coef_, rtol=1e-4)
    assert_array_equal(search.scores_path_, expected.scores_path_)


def test_callable_scoring_sees_a_fitted_model():
    X, y = blobs()
    seen = []

    def scorer(model, X, y):
        seen.append((model.coef_.copy(), model.predict(X)))
        assert model.decision_function(X).shape == y.shape
        return float(len(seen))

    search = SubLBFGSLinearSVCCV(ALPHAS, scoring=scorer, cv=2).fit(X, y)
    assert_array_equal(search.scores_path_, [[1, 2, 3, 4], [5, 6, 7, 8]])
    assert search.alpha_ == 1e-3
    train = next(StratifiedKFold(2).split(X, y))[0]
    direct = SubLBFGSLinearSVC(1.0).fit(X[train], y[train])
    assert_allclose(seen[0][0], direct.coef_, rtol=1e-6)


# Choice


def test_the_best_mean_score_is_chosen():
    X, y = blobs()
    search = SubLBFGSLinearSVCCV([1e-3, 10.0, 1e-1]).fit(X, y)
    assert_array_equal(search.alphas_, [10.0, 1e-1, 1e-3])
    means = search.scores_path_.mean(axis=0)
    assert search.alpha_ == search.alphas_[means.argmax()]


def test_of_equal_scores_the_largest_alpha_is_chosen():
    X, y = blobs()
    constant = SubLBFGSLinearSVCCV(ALPHAS, scoring=lambda model, X, y: 0.5)
    assert constant.fit(X, y).alpha_ == 1.0
    table = {1.0: 0.1, 1e-1: 0.7, 1e-2: 0.7, 1e-3: 0.2}
    order = list(table) * 2

    def scorer(model, X, y):
        return table[order.pop(0)]

    assert SubLBFGSLinearSVCCV(ALPHAS, scoring=scorer, cv=2).fit(X, y).alpha_ == 1e-1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_refit_is_a_fit_of_all_samples(n_classes):
    X, y = blobs(n_classes=n_classes)
    search = SubLBFGSLinearSVCCV(ALPHAS).fit(X, y)
    direct = SubLBFGSLinearSVC(search.alpha_).fit(X, y)
    assert_array_equal(search.coef_, direct.coef_)
    assert_array_equal(search.intercept_, direct.intercept_)
    assert_array_equal(search.objective_, direct.objective_)
    assert_array_equal(search.dual_gap_, direct.dual_gap_)
    assert len(search.history_) == len(direct.history_)
    assert_array_equal(search.predict(X), direct.predict(X))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_without_refit_coefficients_are_means_over_folds(n_classes, fit_intercept):
    X, y = blobs(n_classes=n_classes)
    search = SubLBFGSLinearSVCCV(
        ALPHAS, refit=False, cv=3, fit_intercept=fit_intercept
    ).fit(X, y)
    models = [
        SubLBFGSLinearSVC(search.alpha_, fit_intercept=fit_intercept).fit(
            X[train], y[train]
        )
        for train, _ in StratifiedKFold(3).split(X, y)
    ]
    # Folds are solved to rounding in the objective, coefficients to its root.
    coef = np.mean([model.coef_ for model in models], axis=0)
    intercept = np.mean([model.intercept_ for model in models], axis=0)
    assert_allclose(search.coef_, coef, atol=1e-5)
    assert_allclose(search.intercept_, intercept, atol=1e-5)
    assert search.coef_.shape == ((1 if n_classes == 2 else 3), 4)
    for name in ("objective_", "dual_gap_", "history_"):
        assert not hasattr(search, name)
    assert search.score(X, y) > 1.2 / n_classes


def test_without_refit_the_type_of_the_data_stays():
    X, y = blobs()
    search = SubLBFGSLinearSVCCV(ALPHAS, refit=False).fit(X.astype(np.float32), y)
    assert search.coef_.dtype == search.intercept_.dtype == np.float32


# Splits, groups, weights


def test_splitters_and_iterables():
    X, y = blobs()
    cv = KFold(3, shuffle=True, random_state=0)
    by_splitter = SubLBFGSLinearSVCCV(ALPHAS, cv=cv).fit(X, y)
    by_list = SubLBFGSLinearSVCCV(ALPHAS, cv=list(cv.split(X))).fit(X, y)
    assert by_splitter.scores_path_.shape == (3, 4)
    assert_array_equal(by_splitter.scores_path_, by_list.scores_path_)
    assert SubLBFGSLinearSVCCV(ALPHAS).fit(X, y).scores_path_.shape == (5, 4)


def test_groups():
    X, y = blobs()
    groups = np.arange(90) // 9
    search = SubLBFGSLinearSVCCV(ALPHAS, cv=GroupKFold(3)).fit(X, y, groups=groups)
    for k, (train, test) in enumerate(GroupKFold(3).split(X, y, groups)):
        model = SubLBFGSLinearSVC(1e-2).fit(X[train], y[train])
        assert search.scores_path_[k, 2] == model.score(X[test], y[test])
    with pytest.raises(ValueError, match="groups"):
        SubLBFGSLinearSVCCV(ALPHAS, cv=GroupKFold(3)).fit(X, y)


@pytest.mark.parametrize("scoring", [None, "balanced_accuracy"])
def test_weights_count_in_fits_and_in_scores(scoring):
    X, y = blobs()
    rng = np.random.default_rng(1)
    weights = rng.choice([0.0, 0.1, 1.0, 10.0], size=len(y))
    cv = KFold(3)
    search = SubLBFGSLinearSVCCV(ALPHAS, cv=cv, scoring=scoring)
    search.fit(X, y, sample_weight=weights)
    scorer = sklearn.metrics.get_scorer(scoring or "accuracy")
    for k, (train, test) in enumerate(cv.split(X)):
        for j, alpha in enumerate(search.alphas_):
            model = SubLBFGSLinearSVC(alpha).fit(X[train], y[train], weights[train])
            score = scorer(model, X[test], y[test], sample_weight=weights[test])
            assert search.scores_path_[k, j] == pytest.approx(score)
    direct = SubLBFGSLinearSVC(search.alpha_).fit(X, y, weights)
    assert_array_equal(search.coef_, direct.coef_)


def test_scalar_weights_are_no_weights():
    X, y = blobs()
    plain = SubLBFGSLinearSVCCV(ALPHAS).fit(X, y)
    scalar = SubLBFGSLinearSVCCV(ALPHAS).fit(X, y, sample_weight=3.0)
    assert_array_equal(plain.scores_path_, scalar.scores_path_)
    assert_allclose(plain.coef_, scalar.coef_, rtol=1e-6)


def test_class_weight_of_all_samples():
    X, y = blobs()
    search = SubLBFGSLinearSVCCV(ALPHAS, class_weight={0: 3.0}, cv=KFold(3)).fit(X, y)
    for k, (train, test) in enumerate(KFold(3).split(X)):
        model = SubLBFGSLinearSVC(1e-2, class_weight={0: 3.0}).fit(X[train], y[train])
        assert search.scores_path_[k, 2] == model.score(X[test], y[test])


def test_a_fold_without_a_class():
    # That class' problem has one label only there; the others go on.
    X, y = blobs(n_classes=3)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    search = SubLBFGSLinearSVCCV(ALPHAS, cv=KFold(3)).fit(X, y)
    assert_array_equal(search.scores_path_, np.zeros((3, 4)))
    assert search.coef_.shape == (3, 4)
    assert search.score(X, y) > 0.4


def test_alphas_without_a_score_are_not_chosen():
    X, y = blobs()
    limit = np.abs(SubLBFGSLinearSVC(0.3).fit(X, y).coef_).max()

    def small(coef):
        return np.abs(coef).max() < limit

    def score(estimator, X, y):
        return np.nan if small(estimator.coef_) else estimator.score(X, y)

    def of_nothing(estimator, X, y):
        return np.nan

    model = SubLBFGSLinearSVCCV(alphas=ALPHAS, cv=2, scoring=score)
    with pytest.warns(UserWarning, match=r"not finite for alpha = \[1\.0\]"):
        model.fit(X, y)
    assert np.isnan(model.scores_path_[:, 0]).all()
    assert model.alpha_ < 1.0
    with pytest.raises(ValueError, match="No mean of the scores"):
        model.set_params(scoring=of_nothing).fit(X, y)
    assert model.alpha_ < 1.0


@pytest.mark.parametrize("cv", [[], iter([])])
def test_no_folds(cv):
    with pytest.raises(ValueError, match="gives no folds"):
        SubLBFGSLinearSVCCV(alphas=ALPHAS, cv=cv).fit(*blobs())


@pytest.mark.parametrize("scoring", [["f1", "roc_auc"], {"a": "f1"}, ("f1",)])
def test_several_metrics_are_refused(scoring):
    with pytest.raises(ValueError, match="scoring must be a single metric"):
        SubLBFGSLinearSVCCV(alphas=ALPHAS, scoring=scoring).fit(*blobs())


def test_refit_is_a_flag():
    with pytest.raises((TypeError, ValueError), match="refit"):
        SubLBFGSLinearSVCCV(alphas=ALPHAS, refit="no").fit(*blobs())


def test_a_test_part_without_weight():
    X, y = blobs()
    weights = np.ones(len(y))
    test = np.arange(0, len(y), 3)
    weights[test] = 0.0
    train = np.setdiff1d(np.arange(len(y)), test)
    model = SubLBFGSLinearSVCCV(alphas=ALPHAS, cv=[(train, test)])
    with pytest.raises(ValueError, match="A test part of cv has no samples of pos"):
        model.fit(X, y, sample_weight=weights)


def test_a_training_part_without_weight():
    X, y = blobs(20)
    weights = np.where(np.arange(20) < 10, 1.0, 0.0)
    with pytest.raises(ValueError, match="no samples of positive weight"):
        SubLBFGSLinearSVCCV(ALPHAS, cv=KFold(2)).fit(X, y, weights)


# The path


def test_gaps_are_proven_to_be_within_tol():
    X, y = large()
    search = SubLBFGSLinearSVCCV(ALPHAS, tol=1e-4, cv=3).fit(X, y)
    assert np.all(search.gaps_path_ <= 1e-4)
    assert np.all(search.gaps_path_ >= 0.0)
    assert search.dual_gap_ <= 1e-4 * search.objective_


def test_gaps_of_several_classes_are_the_largest():
    X, y = blobs(1500, 10, n_classes=3, spread=0.3)
    search = SubLBFGSLinearSVCCV([1e-1], tol=1e-2, cv=KFold(3)).fit(X, y)
    for gap, (train, _) in zip(search.gaps_path_[:, 0], KFold(3).split(X), strict=True):
        model = SubLBFGSLinearSVC(1e-1, tol=1e-2).fit(X[train], y[train])
        assert gap == pytest.approx(max(model.dual_gap_ / model.objective_), rel=1e-6)


def test_path_begins_anew_at_every_fit():
    X, y = large()
    search = SubLBFGSLinearSVCCV(ALPHAS, cv=3).fit(X, y)
    coef, gaps = search.coef_, search.gaps_path_
    search.fit(X, y)
    assert_array_equal(search.coef_, coef)
    assert_array_equal(search.gaps_path_, gaps)


def test_a_path_goes_on_from_known_scores():
    X = sparse.random_array((300, 2000), density=0.005, rng=0, format="csr")
    y = np.random.default_rng(1).integers(0, 2, 300)
    weights = np.full(300, 1.0 / 300)
    model = SubLBFGSLinearSVC(1e-4, fit_intercept=False)
    model.n_features_in_ = 2000
    problems = model._problems(X, y, weights, np.unique(y))
    problems.solve(1e-2, FitTask.silent())
    (start,) = problems.starts
    error = np.abs(start.scores - X @ start.w).max()
    assert error <= 10.0 * np.finfo(float).eps * start.drift
    assert start.drift <= 32.0 * np.abs(start.scores).max()
    (solution,) = problems.solve(1e-3, FitTask.silent())
    assert solution.history.passes[0] == 0.0
    problems.starts = [start._replace(scores=None)]
    (without,) = problems.solve(1e-3, FitTask.silent())
    assert without.history.passes[0] == 1.0
    assert_array_equal(solution.w, without.w)


@pytest.mark.parametrize("refit", [True, False])
def test_n_jobs(refit):
    X, y = large()
    one, two = (
        SubLBFGSLinearSVCCV(ALPHAS, n_jobs=n_jobs, cv=3, refit=refit).fit(X, y)
        for n_jobs in (None, 2)
    )
    # A fold is solved by one thread in any case.
    assert_array_equal(one.scores_path_, two.scores_path_)
    assert_allclose(one.gaps_path_, two.gaps_path_, atol=1e-12)
    assert_allclose(one.coef_, two.coef_, rtol=1e-6, atol=1e-9)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        context = SubLBFGSLinearSVCCV(ALPHAS, cv=3, refit=refit).fit(X, y)
    assert_array_equal(two.coef_, context.coef_)


def test_warnings_of_folds_state_the_gap():
    X, y = large()
    search = SubLBFGSLinearSVCCV([1e-3, 1e-4], solver="alm", max_iter=2, cv=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(X, y)
    # One for all folds, one for the refit.
    assert [w.category for w in caught] == [ConvergenceWarning] * 2
    gaps = search.gaps_path_
    place = search.alphas_[np.argmax(gaps.max(axis=0))]
    message = str(caught[0].message)
    assert f"{np.count_nonzero(gaps > 1e-3)} of 4 fits on folds" in message
    assert f"gap is {gaps.max():.1e}, at alpha={place:g} on fold" in message
    assert "reached max_iter=2" in str(caught[1].message)
    assert search.n_iter_ == 2


# Parameters


def test_default_grid():
    X, y = blobs()
    search = SubLBFGSLinearSVCCV(cv=2).fit(X, y)
    # The mean squared norm of the scaled rows is the number of features.
    size = X.shape[1]
    assert_allclose(search.penalty_factor_, X.var(axis=0))
    assert_allclose(search.alphas_, size * np.geomspace(1e-2, 1e-6, 20))
    few, one = (SubLBFGSLinearSVCCV(n, cv=2).fit(X, y).alphas_ for n in (3, 1))
    assert_allclose(few, size * np.array([1e-2, 1e-4, 1e-6]))
    assert_allclose(one, [size * 1e-2])


@pytest.mark.parametrize(
    "alphas",
    [(1e-3, 1.0), [1.0, 1e-3], np.array([1e-3, 1.0]), pd.Series([1.0, 1e-3])],
    ids=["tuple", "list", "array", "Series"],
)
def test_grids_are_sorted(alphas):
    X, y = blobs()
    assert_array_equal(SubLBFGSLinearSVCCV(alphas).fit(X, y).alphas_, [1.0, 1e-3])


def test_values_that_occur_twice_are_kept():
    X, y = blobs()
    search = SubLBFGSLinearSVCCV([1.0, 1e-2, 1.0]).fit(X, y)
    assert_array_equal(search.alphas_, [1.0, 1.0, 1e-2])
    assert_array_equal(search.scores_path_[:, 0], search.scores_path_[:, 1])


@pytest.mark.parametrize(
    ("alphas", "error", "match"),
    [
        (0, ValueError, "alphas"),
        (-3, ValueError, "alphas"),
        (2.5, TypeError, "alphas"),
        ("many", TypeError, "alphas"),
        (None, TypeError, "alphas"),
        (True, TypeError, "alphas"),
        ([], ValueError, "non-empty"),
        ([[1.0, 2.0]], ValueError, "non-empty"),
        ([1.0, 0.0], ValueError, "alphas"),
        ([1.0, -1.0], ValueError, "alphas"),
        ([1.0, np.nan], ValueError, "alphas"),
        ([1.0, np.inf], ValueError, "alphas"),
        (["a", "b"], ValueError, "alphas must be"),
        ({1.0, 0.1}, ValueError, "non-empty list"),
        ((a for a in [1.0]), TypeError, "non-empty list"),
    ],
)
def test_bad_grids(alphas, error, match):
    X, y = blobs()
    with pytest.raises(error, match=match):
        SubLBFGSLinearSVCCV(alphas).fit(X, y)


@pytest.mark.parametrize(
    "params",
    [
        {"solver": "newton"},
        {"loss": "logistic"},
        {"solver": "alm", "loss": "squared_hinge"},
        {"scoring": "accuraci"},
        {"cv": 1},
        {"tol": -1.0},
        {"max_iter": 0},
        {"alphas": [0.0]},
    ],
)
def test_a_failed_fit_leaves_the_estimator_as_it_was(params):
    X, y = blobs()
    search = SubLBFGSLinearSVCCV(ALPHAS).fit(X, y)
    before = {k: v for k, v in vars(search).items() if k.endswith("_")}
    search.set_params(**params)
    with pytest.raises(ValueError, match=r"."):
        search.fit(X[:, :2], y)
    after = {k: v for k, v in vars(search).items() if k.endswith("_")}
    assert before.keys() == after.keys()
    assert all(after[name] is value for name, value in before.items())
    assert search.predict(X).shape == y.shape


def test_an_error_of_the_scorer_is_passed_on():
    X, y = blobs()

    def broken(model, X, y):
        raise RuntimeError("no score today")

    search = SubLBFGSLinearSVCCV(ALPHAS, scoring=broken)
    with pytest.raises(RuntimeError, match="no score today"):
        search.fit(X, y)
    assert not any(name.endswith("_") for name in vars(search))


def test_callback_is_called_by_the_refit_only():
    X, y = large()
    seen = []
    search = SubLBFGSLinearSVCCV(ALPHAS, cv=2, callback=seen.append).fit(X, y)
    assert [progress.n_iter for progress in seen] == list(range(search.n_iter_ + 1))
    seen.clear()
    search.set_params(refit=False).fit(X, y)
    assert seen == []


def test_silent_folds(capfd):
    """Fits on folds are reported as a whole, without their iterations."""
    X, y = blobs()
    SubLBFGSLinearSVCCV(ALPHAS).fit(X, y)
    assert capfd.readouterr() == ("", "")
    SubLBFGSLinearSVCCV(ALPHAS, refit=False, cv=3, verbose=2).fit(X, y)
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == 3 * len(ALPHAS)
    assert all("fits on folds" in line for line in lines)
    SubLBFGSLinearSVCCV(ALPHAS, verbose=1).fit(X, y)
    lines = capfd.readouterr().out.splitlines()
    assert all(line.startswith("SubLBFGSLinearSVCCV: ") for line in lines)
    assert sum("iteration    0" in line for line in lines) == 1


# scikit-learn


def test_feature_names():
    X, y = blobs()
    frame = pd.DataFrame(X, columns=list("abcd"))
    for scoring in (None, "roc_auc"):
        search = SubLBFGSLinearSVCCV(ALPHAS, scoring=scoring, n_jobs=2)
        search.fit(frame, pd.Series(y))
        assert_array_equal(search.feature_names_in_, list("abcd"))
        search.predict(frame)
        with pytest.raises(ValueError, match="feature names"):
            search.predict(frame[list("dcba")])
    plain = SubLBFGSLinearSVCCV(ALPHAS, scoring="roc_auc").fit(X, y)
    assert_array_equal(search.scores_path_, plain.scores_path_)
    assert search.fit(X, y) is search
    assert not hasattr(search, "feature_names_in_")


def test_labels_that_are_strings():
    X, y = blobs()
    names = np.array(["no", "yes"])[y]
    search = SubLBFGSLinearSVCCV(ALPHAS).fit(X, names)
    plain = SubLBFGSLinearSVCCV(ALPHAS).fit(X, y)
    assert_array_equal(search.classes_, ["no", "yes"])
    assert_array_equal(search.scores_path_, plain.scores_path_)
    assert set(search.predict(X)) <= {"no", "yes"}


def test_pickle_and_clone():
    X, y = blobs()
    search = SubLBFGSLinearSVCCV(ALPHAS, cv=3, scoring="roc_auc").fit(X, y)
    copy = pickle.loads(pickle.dumps(search))
    assert_array_equal(copy.decision_function(X), search.decision_function(X))
    assert_array_equal(copy.scores_path_, search.scores_path_)
    again = clone(search).fit(X, y)
    assert_array_equal(again.coef_, search.coef_)


def test_pipeline_and_nested_cross_validation():
    X, y = blobs()
    pipeline = make_pipeline(StandardScaler(), SubLBFGSLinearSVCCV(ALPHAS, cv=3))
    result = cross_validate(pipeline, X, y, cv=3, return_estimator=True)
    assert result["test_score"].mean() > 0.6
    assert {model[-1].alpha_ for model in result["estimator"]} <= set(ALPHAS)


def test_metadata_is_routed():
    X, y = blobs()
    weights = np.random.default_rng(0).choice([0.1, 1.0, 10.0], size=len(y))
    groups = np.arange(90) // 9
    with sklearn.config_context(enable_metadata_routing=True):
        search = SubLBFGSLinearSVCCV(ALPHAS, cv=GroupKFold(3))
        search.set_fit_request(sample_weight=True, groups=True)
        search.set_score_request(sample_weight=True)
        pipeline = make_pipeline(
            StandardScaler().set_fit_request(sample_weight=False), search
        )
        pipeline.fit(X, y, sample_weight=weights, groups=groups)
    scaled = StandardScaler().fit_transform(X)
    direct = SubLBFGSLinearSVCCV(ALPHAS, cv=GroupKFold(3))
    direct.fit(scaled, y, sample_weight=weights, groups=groups)
    assert_array_equal(pipeline[-1].coef_, direct.coef_)
    assert_array_equal(pipeline[-1].scores_path_, direct.scores_path_)


def test_scorers_that_take_no_weights():
    X, y = blobs()

    def plain(y_true, y_pred):
        return accuracy_score(y_true, y_pred)

    search = SubLBFGSLinearSVCCV(ALPHAS, scoring=make_scorer(plain))
    search.fit(X, y)
    with pytest.raises(TypeError, match="sample_weight"):
        search.fit(X, y, np.ones(len(y)))


@pytest.mark.parametrize("scoring", ["f1_macro", None])
def test_classes_without_weight_count_as_missing_in_scores(scoring):
    X, y = blobs(90, n_classes=3)
    weights = np.where(y == y[0], 0.0, 1.0)
    some = weights > 0.0
    rows = np.arange(len(y))
    folds = [(rows[rows % 3 != k], rows[rows % 3 == k]) for k in range(3)]
    place = np.cumsum(some) - 1
    own = [tuple(place[part[some[part]]] for part in fold) for fold in folds]
    model = SubLBFGSLinearSVCCV(alphas=3, cv=folds, scoring=scoring)
    weighted = model.fit(X, y, sample_weight=weights).scores_path_
    without = SubLBFGSLinearSVCCV(alphas=3, cv=own, scoring=scoring).fit(
        X[some], y[some]
    )
    assert_allclose(weighted, without.scores_path_)


def test_scorers_may_refuse_weights():
    X, y = blobs(90)
    weights = np.random.default_rng(0).integers(1, 5, len(y)).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        scorers = [
            get_scorer("accuracy").set_score_request(sample_weight=wanted)
            for wanted in (True, False)
        ]
        paths = [
            SubLBFGSLinearSVCCV(alphas=3, scoring=scorer)
            .fit(X, y, sample_weight=weights)
            .scores_path_
            for scorer in scorers
        ]
    counts = np.array(
        [len(test) for _, test in check_cv(5, y, classifier=True).split(X, y)]
    )
    whole = paths[1] * counts[:, np.newaxis]
    assert_allclose(whole, np.round(whole), atol=1e-9)
    assert not np.allclose(paths[0], paths[1])


def test_a_refit_without_refit_forgets_the_objective():
    X, y = blobs(200, 5)
    search = SubLBFGSLinearSVCCV(ALPHAS, cv=2).fit(X, y)
    fresh = SubLBFGSLinearSVCCV(ALPHAS, cv=2, refit=False).fit(-X, y)
    search.set_params(refit=False).fit(-X, y)
    assert set(vars(search)) == set(vars(fresh))
    assert not hasattr(search, "objective_")


@pytest.mark.parametrize("score", [{"a": 1.0}, None, "high"])
def test_scores_that_are_no_numbers(score):
    X, y = blobs(200, 5)
    with pytest.raises(ValueError, match="scoring must return a number"):
        SubLBFGSLinearSVCCV(ALPHAS, scoring=lambda model, X, y: score).fit(X, y)

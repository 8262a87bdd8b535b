"""Searches over an interval of alpha: bounds hold for every value between two."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import (
    balanced_accuracy_score,
    get_scorer,
    hinge_loss,
    log_loss,
    mean_pinball_loss,
)
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from sklearn_subqn import (
    BMRMRanker,
    BMRMRankerCV,
    BMRMRegressor,
    BMRMRegressorCV,
    L1LogisticOWLQN,
    L1LogisticOWLQNCV,
    PathScoreDisplay,
    SubLBFGSLinearSVC,
    SubLBFGSLinearSVCCV,
)

X, Y = make_classification(160, 5, n_informative=3, flip_y=0.2, random_state=0)
INTERVAL = 1e-3, 1.0
WEIGHTS = np.random.default_rng(0).uniform(0.0, 2.0, len(Y)).round(1)


def scored(search, model, X, y, weights=None):
    """The mean score of a model of one alpha over the folds."""
    name, scores = search.scoring, []
    for train, test in search.cv.split(X, y):
        of_train = None if weights is None else weights[train]
        of_test = None if weights is None else weights[test]
        model.fit(X[train], y[train], sample_weight=of_train)
        if name == "neg_log_loss":
            p = model.predict_proba(X[test])
            scores.append(-log_loss(y[test], p, sample_weight=of_test, labels=[0, 1]))
        elif name == "neg_hinge_loss":
            z = model.decision_function(X[test])
            scores.append(-hinge_loss(y[test], z, sample_weight=of_test))
        elif name == "balanced_accuracy":
            found = model.predict(X[test])
            scores.append(
                balanced_accuracy_score(y[test], found, sample_weight=of_test)
            )
        elif name == "neg_mean_pinball_loss":
            found = model.predict(X[test])
            scores.append(-mean_pinball_loss(y[test], found, alpha=model.quantile))
        elif name in ("r2", "neg_mean_poisson_deviance", "neg_mean_gamma_deviance"):
            scores.append(
                get_scorer(name)(model, X[test], y[test], sample_weight=of_test)
            )
        else:
            scores.append(model.score(X[test], y[test], sample_weight=of_test))
    return np.mean(scores)


def check(search, model, X, y, weights=None, n_alphas=25):
    """Bounds hold at values between the ends, and so does the gap."""
    search.fit(X, y, sample_weight=weights)
    bounds = search.score_bounds_
    assert_allclose(bounds[1:, 0], bounds[:-1, 1])
    low, high = sorted(search.alphas)
    assert_allclose([bounds[0, 0], bounds[-1, 1]], [low, high])
    assert search.best_score_ == search.scores_path_.mean(axis=0).max()
    assert bounds[:, 3].max() <= search.best_score_ + search.search_gap_ + 1e-15
    for alpha in np.geomspace(low, high, n_alphas):
        score = scored(search, model.set_params(alpha=alpha), X, y, weights)
        assert score <= search.best_score_ + search.search_gap_ + 1e-9
        held = (bounds[:, 0] <= alpha * (1 + 1e-12)) & (bounds[:, 1] >= alpha)
        assert score >= bounds[held, 2].min(initial=np.inf) - 1e-9
        assert score <= bounds[held, 3].max(initial=-np.inf) + 1e-9
    return search


@pytest.mark.parametrize("scoring", [None, "balanced_accuracy", "neg_log_loss"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_log_loss(scoring, fit_intercept):
    tol = 0.05 if scoring == "neg_log_loss" else 0.02
    search = L1LogisticOWLQNCV(
        INTERVAL,
        l1_ratio=0,
        search_tol=tol,
        scoring=scoring,
        cv=StratifiedKFold(3),
        fit_intercept=fit_intercept,
    )
    model = L1LogisticOWLQN(l1_ratio=0, tol=1e-12, fit_intercept=fit_intercept)
    assert check(search, model, X, Y).search_gap_ <= tol


def test_probabilities_next_to_zero_count_as_in_scikit_learn():
    """Far rows on the wrong side count as rows of the least probability."""
    rows = X.copy()
    rows[-8:, 0] = np.where(Y[-8:] > 0, -1.0, 1.0) * 1e4
    cv, interval = KFold(2), (1e-2, 1.0)
    options = {"l1_ratio": 0, "fit_intercept": False}
    search = L1LogisticOWLQNCV(
        interval, search_tol=0.1, scoring="neg_log_loss", cv=cv, **options
    )
    model = L1LogisticOWLQN(tol=1e-9, **options)
    check(search, model, rows, Y)
    train, test = list(cv.split(rows))[1]
    z = model.set_params(alpha=1.0).fit(rows[train], Y[train])
    z = z.decision_function(rows[test]) * (2 * Y[test] - 1)
    assert z.min() < 2.0 * np.log(np.finfo(float).eps), "else the case shows nothing"


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("scoring", [None, "neg_hinge_loss"])
def test_hinges(loss, scoring):
    search = SubLBFGSLinearSVCCV(
        INTERVAL, search_tol=0.03, scoring=scoring, cv=StratifiedKFold(3), loss=loss
    )
    model = SubLBFGSLinearSVC(loss=loss, tol=1e-11)
    assert check(search, model, X, Y).search_gap_ <= 0.03


@pytest.mark.parametrize("loss", ["squared_error", "huber", "quantile"])
def test_regressions(loss):
    rows, y = make_regression(120, 4, noise=30.0, random_state=0)
    scoring = "neg_mean_pinball_loss" if loss == "quantile" else None
    tol = 1.0 if loss == "quantile" else 0.02
    search = BMRMRegressorCV(
        (1e-2, 10.0), loss=loss, search_tol=tol, scoring=scoring, cv=KFold(3)
    )
    model = BMRMRegressor(loss=loss, tol=1e-11)
    assert check(search, model, rows, y).search_gap_ <= tol


@pytest.mark.parametrize(
    ("loss", "scoring"),
    [
        ("poisson", None),
        ("poisson", "neg_mean_poisson_deviance"),
        ("poisson", "r2"),
        ("gamma", "neg_mean_gamma_deviance"),
        ("gamma", "neg_mean_poisson_deviance"),
        ("tweedie", None),
    ],
)
def test_deviances(loss, scoring):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(90, 3))
    means = np.exp(rows @ [0.5, -0.3, 0.0])
    y = rng.gamma(2.0, means / 2.0) if loss == "gamma" else rng.poisson(means) * 1.0
    options = {"loss": loss, "penalty_factor": [1.0, 2.0, 0.5]}
    search = BMRMRegressorCV(
        (0.1, 10.0), scoring=scoring, search_tol=0.1, cv=KFold(2), **options
    )
    weights = rng.integers(0, 3, 90)
    found = check(
        search, BMRMRegressor(tol=1e-11, **options), rows, y, weights, n_alphas=12
    )
    assert found.search_gap_ <= 0.1


@pytest.mark.parametrize(("loss", "low"), [("gamma", 0.1), ("poisson", 0.0)])
def test_deviances_explained_of_equal_targets_are_undefined(loss, low):
    # The weighted mean of equal numbers differs from them by rounding.
    y = np.repeat([low, 2.0], 80)
    y[0] = 1.0
    search = BMRMRegressorCV(INTERVAL, loss=loss, search_tol=0.1)
    search.set_params(cv=[(np.arange(81), np.arange(1, 80)), (X[:, 0] < 9, [0, 80])])
    with pytest.raises(ValueError, match="same y"):
        search.fit(X, y)


@pytest.mark.parametrize("kind", ["weights", "factors", "sparse", "float32", "far"])
def test_kinds_of_data(kind):
    rows, weights, factors = X, None, None
    if kind == "weights":
        weights = WEIGHTS
    elif kind == "factors":
        factors = np.array([0.1, 1.0, 3.0, 10.0, 1.0])
    elif kind == "sparse":
        rows = sparse.csr_array(np.where(np.abs(X) > 1.0, X, 0.0))
    elif kind == "float32":
        rows = X.astype(np.float32)
    else:
        rows = X + 100.0
    search = L1LogisticOWLQNCV(
        INTERVAL,
        l1_ratio=0,
        search_tol=0.02,
        cv=StratifiedKFold(3),
        penalty_factor=factors,
    )
    # Rounding coefficients to float32 moves rows on the boundary.
    exact = np.asarray(rows, np.float64) if kind == "float32" else rows
    model = L1LogisticOWLQN(l1_ratio=0, tol=1e-9, penalty_factor=factors)
    search.fit(rows, Y, sample_weight=weights)
    assert search.search_gap_ <= 0.02
    for alpha in np.geomspace(*INTERVAL, 12):
        score = scored(search, model.set_params(alpha=alpha), exact, Y, weights)
        assert score <= search.best_score_ + search.search_gap_ + 1e-9


@pytest.mark.parametrize("scoring", [None, "balanced_accuracy", "neg_hinge_loss"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_several_classes(loss, scoring):
    rng = np.random.default_rng(0)
    y = np.digitize(X @ rng.normal(size=5) + rng.normal(size=len(X)), [-1.0, 2.0])
    search = SubLBFGSLinearSVCCV(
        INTERVAL, search_tol=0.05, scoring=scoring, cv=StratifiedKFold(3), loss=loss
    )
    model = SubLBFGSLinearSVC(loss=loss, tol=1e-11)
    assert check(search, model, X, y, WEIGHTS, 12).search_gap_ <= 0.05


def test_a_fold_without_one_of_three_classes():
    y = np.digitize(X[:, 0], [-0.5, 1.0])
    y[-40:] = np.minimum(y[-40:], 1)
    last = np.arange(len(y) - 40, len(y))
    first = np.flatnonzero(y == 2)
    folds = [(np.setdiff1d(np.arange(len(y)), part), part) for part in (first, last)]
    search = SubLBFGSLinearSVCCV(INTERVAL, search_tol=0.05, cv=folds).fit(X, y)
    grid = SubLBFGSLinearSVCCV(np.geomspace(*INTERVAL, 40), cv=folds, tol=1e-11)
    best = grid.fit(X, y).scores_path_.mean(axis=0).max()
    assert best <= search.best_score_ + search.search_gap_ + 1e-9


def test_equal_scores_are_those_of_the_first_class():
    search = SubLBFGSLinearSVCCV((1e3, 1e4), search_tol=0.01, cv=StratifiedKFold(3))
    search.fit(np.zeros((30, 2)), np.arange(30) % 3)
    assert search.best_score_ == pytest.approx(1.0 / 3.0)


def test_separable_data_and_rare_classes():
    separable = np.sign(X[:, 0] + 0.01) > 0
    rare = np.zeros(len(X), dtype=int)
    rare[[3, 70, 120]] = 1
    for y in (separable.astype(int), rare):
        search = SubLBFGSLinearSVCCV(INTERVAL, search_tol=0.02, cv=StratifiedKFold(3))
        check(search, SubLBFGSLinearSVC(tol=1e-11), X, y, n_alphas=12)


@pytest.mark.filterwarnings("ignore:Fitting .* stopped")
@pytest.mark.filterwarnings("ignore:The search has proven")
@pytest.mark.parametrize("seed", range(30))
def test_random_searches(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(20, 80)), int(rng.integers(1, 6))
    rows = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-2, 2, d) + rng.normal(size=d)
    y = (rng.uniform(size=n) < rng.uniform(0.2, 0.8)).astype(int)
    y[:6] = [0, 1] * 3
    cv, tol = StratifiedKFold(2), float(rng.choice([0.02, 0.1]))
    interval = tuple(10.0 ** np.sort(rng.uniform(-4, 1, 2)))
    if seed % 2:
        search = L1LogisticOWLQNCV(interval, l1_ratio=0, search_tol=tol, cv=cv)
        model = L1LogisticOWLQN(l1_ratio=0, tol=1e-12)
    else:
        search = SubLBFGSLinearSVCCV(interval, search_tol=tol, cv=cv)
        model = SubLBFGSLinearSVC(tol=1e-12)
    check(search, model, rows, y)


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (SubLBFGSLinearSVCCV(20, search_tol=0.01), "alphas=\\(low, high\\)"),
        (SubLBFGSLinearSVCCV([1, 2, 3], search_tol=0.01), "alphas=\\(low, high\\)"),
        (SubLBFGSLinearSVCCV((1, 1), search_tol=0.01), "must differ"),
        (SubLBFGSLinearSVCCV(INTERVAL, search_tol=0.0), "search_tol"),
        (SubLBFGSLinearSVCCV(INTERVAL, search_tol="a"), "search_tol"),
        (
            SubLBFGSLinearSVCCV(INTERVAL, search_tol=0.1, search_max_fits=0),
            "search_max_fits",
        ),
        (
            L1LogisticOWLQNCV(INTERVAL, search_tol=0.1, search_max_fits=2.5),
            "search_max_fits",
        ),
        (SubLBFGSLinearSVCCV(INTERVAL, search_tol=0.1, scoring="f1"), "'accuracy'"),
        (SubLBFGSLinearSVCCV(INTERVAL, search_tol=0.1, refit=False), "refit"),
        (
            SubLBFGSLinearSVCCV(INTERVAL, search_tol=0.1, scoring="neg_log_loss"),
            "neg_hinge_loss",
        ),
        (L1LogisticOWLQNCV(INTERVAL, search_tol=0.1), "squares"),
        (
            SubLBFGSLinearSVCCV(
                INTERVAL, search_tol=0.1, penalty_factor=[0, 1, 1, 1, 1]
            ),
            "positive",
        ),
    ],
)
def test_refusals(search, message):
    with pytest.raises((TypeError, ValueError), match=message):
        search.fit(X, Y)


def test_refusals_by_data():
    three = np.arange(len(Y)) % 3
    with pytest.raises(ValueError, match="two classes"):
        L1LogisticOWLQNCV(INTERVAL, l1_ratio=0, search_tol=0.1).fit(X, three)
    search = BMRMRegressorCV(INTERVAL, loss="poisson", search_tol=0.1)
    search.set_params(scoring="neg_mean_gamma_deviance")
    with pytest.raises(ValueError, match=r"'neg_mean_poisson_deviance', None;"):
        search.fit(X, Y)
    search = BMRMRegressorCV(INTERVAL, loss="squared_error", search_tol=0.1)
    with pytest.raises(ValueError, match="offset"):
        search.fit(X, Y, offset=np.ones(len(Y)))
    with pytest.raises(ValueError, match="one column"):
        search.fit(X, np.column_stack([Y, Y]))


@pytest.mark.parametrize(
    ("loss", "kind"),
    [
        ("pairwise", "sparse"),
        ("pairwise-linear-squared", "weights"),
        ("pairwise-linear-log", "dense"),
        ("ndcg", "dense"),
    ],
)
def test_rankings(loss, kind):
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(16), rng.integers(3, 9, 16))
    rows = rng.normal(size=(len(qid), 3)) + rng.normal(size=(16, 3))[qid]
    y = np.digitize(rows @ [1.0, -1.0, 0.5] + rng.normal(size=len(qid)), [0.0, 1.5])
    y[qid == 3] = 0
    weights = rng.integers(1, 3, len(qid)) if kind == "weights" else None
    rows = sparse.csr_array(rows * (rows > -0.5)) if kind == "sparse" else rows
    of_queries = rng.uniform(0.5, 2.0, 16)[qid]
    known = {"qid": qid, "query_weight": of_queries, "sample_weight": weights}
    cv, tol = list(GroupKFold(3).split(rows, y, qid)), 0.04
    search = BMRMRankerCV((0.05, 20.0), loss=loss, k=4, search_tol=tol, cv=cv)
    search.fit(rows, y, **known)
    assert search.search_gap_ <= tol
    for alpha in np.geomspace(0.05, 20.0, 15):
        scores = []
        for train, test in cv:
            parts = (
                {n: None if x is None else x[part] for n, x in known.items()}
                for part in (train, test)
            )
            of_train, of_test = parts
            model = BMRMRanker(alpha, loss=loss, k=4, tol=1e-10)
            model.fit(rows[train], y[train], **of_train)
            scores.append(model.score(rows[test], y[test], **of_test))
        score, bounds = np.mean(scores), search.score_bounds_
        held = (bounds[:, 0] <= alpha * (1 + 1e-12)) & (bounds[:, 1] >= alpha)
        assert score <= search.best_score_ + search.search_gap_ + 1e-9
        assert bounds[held, 2].min() - 1e-9 <= score <= bounds[held, 3].max() + 1e-9


def test_bounds_of_many_entries_are_little_work():
    """The more entries rows have, the less bounds of intervals are beside fits."""
    rng, most = np.random.default_rng(0), 20
    rows = rng.normal(size=(2000, 200))
    y = rows[:, 0] + rng.normal(size=2000) > 0.0
    search = L1LogisticOWLQNCV((1e-4, 10.0), l1_ratio=0, cv=KFold(2))
    search.set_params(search_tol=1e-5, search_max_fits=most)
    with pytest.warns(ConvergenceWarning, match=f"search_max_fits={most} "):
        search.fit(rows, y)
    # Each of the first twelve intervals is bounded, and two for each other.
    n_bounded = 2 * len(search.score_bounds_) - 12
    assert len(search.alphas_) < most < len(search.alphas_) + 0.1 * n_bounded


@pytest.mark.parametrize(
    "search",
    [
        L1LogisticOWLQNCV(l1_ratio=0),
        SubLBFGSLinearSVCCV(),
        SubLBFGSLinearSVCCV(loss="squared_hinge", scoring="neg_hinge_loss"),
        BMRMRegressorCV(loss="quantile"),
    ],
    ids=["log loss", "hinge", "squared hinge", "quantile"],
)
def test_work_is_bounded(search):
    """Features that differ in scale would take many thousands of intervals."""
    interval, rows = (1e-4, 10.0), X * 10.0 ** np.linspace(-2.0, 2.0, X.shape[1])
    search = clone(search).set_params(alphas=interval, search_tol=1e-3)
    gaps = []
    for most in (15, 60):
        search.set_params(search_max_fits=most)
        told = f"no alpha is better by more than.*search_max_fits={most} .*Scale"
        with pytest.warns(ConvergenceWarning, match=told):
            search.fit(rows, Y)
        # The last step solves one alpha at most. Each interval was bounded, and for few
        # rows that counts as a tenth of a fit at least.
        assert len(search.alphas_) + 0.1 * len(search.score_bounds_) <= most + 2
        assert search.scores_path_.shape == (5, len(search.alphas_))
        gaps.append(search.search_gap_)
    assert 1e-3 < gaps[1] <= gaps[0]
    # The model is that of the best alpha, and what is proven is true.
    best = search.best_score_ + search.search_gap_
    grid = search.set_params(search_tol=None, alphas=np.geomspace(*interval, 40))
    assert grid.fit(rows, Y).best_score_ <= best + 1e-4
    assert not hasattr(search, "search_gap_")


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("search_tol", [None, 10.0])
@pytest.mark.parametrize(
    "search", [SubLBFGSLinearSVCCV(tol=1e-9), L1LogisticOWLQNCV(l1_ratio=0, tol=1e-9)]
)
def test_hinge_losses_are_scores_of_all_searches(search, search_tol, n_classes):
    """With and without proof, by labels of any kind; a fold may lack a class."""
    if search_tol is not None and n_classes == 3 and hasattr(search, "l1_ratio"):
        pytest.skip("The multinomial log loss has no bounds.")
    names = np.array(["c", "a", "b"])[:n_classes]
    codes = np.digitize(X[:, 0], [-0.5, 1.0][: n_classes - 1])
    codes[-30:] = np.minimum(codes[-30:], n_classes - 2)
    y, cv = names[codes], KFold(4)
    search = clone(search).set_params(
        alphas=INTERVAL, scoring="neg_hinge_loss", search_tol=search_tol, cv=cv
    )
    search.fit(X, y, sample_weight=WEIGHTS)
    for alpha in INTERVAL:
        scores = []
        for train, test in cv.split(X):
            fold = clone(search).set_params(
                search_tol=None,
                scoring=None,
                alphas=[alpha],
                cv=[(train, test)],
                refit=False,
            )
            z = fold.fit(X, y, sample_weight=WEIGHTS).decision_function(X[test])
            weights = WEIGHTS[test]
            scores.append(
                -hinge_loss(y[test], z, sample_weight=weights, labels=np.sort(names))
            )
        place = np.flatnonzero(np.isclose(search.alphas_, alpha))
        assert_allclose(search.scores_path_[:, place[0]], scores, rtol=1e-3)


@pytest.mark.parametrize("search_tol", [None, 1e3])
def test_pinball_losses_are_scores_of_all_searches(search_tol):
    rng, cv = np.random.default_rng(0), KFold(3)
    y = X @ np.arange(5.0) + rng.normal(size=len(X))
    options = {"loss": "quantile", "quantile": 0.8, "tol": 1e-9}
    search = BMRMRegressorCV(
        (1e-2, 1.0),
        scoring="neg_mean_pinball_loss",
        search_tol=search_tol,
        cv=cv,
        **options,
    ).fit(X, y)
    for alpha in (1e-2, 1.0):
        model = BMRMRegressor(alpha, **options)
        expected = [
            -mean_pinball_loss(
                y[test], model.fit(X[train], y[train]).predict(X[test]), alpha=0.8
            )
            for train, test in cv.split(X)
        ]
        place = np.flatnonzero(np.isclose(search.alphas_, alpha))
        assert_allclose(search.scores_path_[:, place[0]], expected, rtol=1e-3)


def test_scores_of_the_other_kind_of_targets_are_refused():
    for search, name in (
        (BMRMRegressorCV([0.1]), "neg_hinge_loss"),
        (SubLBFGSLinearSVCCV([0.1]), "neg_mean_pinball_loss"),
    ):
        with pytest.raises(ValueError, match=name):
            search.set_params(scoring=name).fit(X, Y)


@pytest.mark.parametrize("interval", [(1.0, 10.0), (1e-3, 10.0)])
def test_searches_end_where_many_intercepts_are_optimal(interval):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(24, 2)), np.tile([0, 1], 12)
    cv = StratifiedKFold(2)
    search = SubLBFGSLinearSVCCV(interval, search_tol=0.01, cv=cv)
    with pytest.warns(ConvergenceWarning, match="no alpha is better by more than"):
        search.fit(X, y)
    # At large alphas all rows are within the margin wherever the intercept is.
    assert 0.2 < search.search_gap_ <= 1.0 - search.best_score_ + 1e-12
    # Each of 13 intervals at first may have been halved twenty times.
    assert len(search.score_bounds_) <= 13 + 20 * 13
    grid = clone(search).set_params(search_tol=None, alphas=np.geomspace(*interval, 40))
    scores = grid.fit(X, y).scores_path_.mean(axis=0)
    assert scores.max() <= search.best_score_ + search.search_gap_ + 1e-9


def test_bounds_are_drawn():
    search = SubLBFGSLinearSVCCV(INTERVAL, search_tol=0.05).fit(X, Y)
    display = PathScoreDisplay.from_estimator(search)
    (path,) = display.area_.get_paths()
    assert path.vertices[:, 1].max() == pytest.approx(search.score_bounds_[:, 3].max())
    assert path.vertices[:, 0].min() == pytest.approx(min(INTERVAL))


def test_threads_find_the_same():
    searches = [
        L1LogisticOWLQNCV(INTERVAL, l1_ratio=0, search_tol=0.2, n_jobs=n).fit(X, Y)
        for n in (1, 2)
    ]
    assert_allclose(searches[0].score_bounds_, searches[1].score_bounds_, rtol=1e-12)

"""Folds that lack a class, and scorers that raise: the choice of alpha goes on."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning
from sklearn.metrics import get_scorer, log_loss, make_scorer
from sklearn.model_selection import KFold

from sklearn_subqn import (
    L1LogisticOWLQN,
    L1LogisticOWLQNCV,
    PathScoreDisplay,
    SubLBFGSLinearSVCCV,
)
from sklearn_subqn._search.scoring import FoldScore

ALPHAS = [1e-1, 1e-2, 1e-3]
each_search = pytest.mark.parametrize(
    "Search", [L1LogisticOWLQNCV, SubLBFGSLinearSVCCV]
)


def without_a_class(n_classes=3):
    """Samples of which the first and the second of three parts lack the last class."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] + rng.normal(size=60) > 0.0).astype(int) % (n_classes - 1)
    y[40:46] = n_classes - 1
    return X, np.array(list("abc"))[y]


@pytest.mark.parametrize("scoring", ["neg_log_loss", "neg_brier_score"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_metrics_of_probabilities_know_all_classes(scoring, n_classes):
    X, y = without_a_class(n_classes)
    search = L1LogisticOWLQNCV(ALPHAS, cv=KFold(3), scoring=scoring).fit(X, y)
    assert np.isfinite(search.scores_path_).all()
    # The last fold has the class only in its test part: fits go without it. Of the
    # first, they are those of separate fits.
    classes = list(search.classes_)
    for place, alpha in enumerate(ALPHAS):
        model = L1LogisticOWLQN(alpha).fit(X[20:], y[20:])
        P = model.predict_proba(X[:20])
        if scoring == "neg_log_loss":
            expected = -log_loss(y[:20], P, labels=classes)
        else:
            hits = y[:20, np.newaxis] == np.array(classes)
            # scikit-learn takes half of it for two classes.
            scale = 2.0 if n_classes == 2 else 1.0
            expected = -np.mean(np.sum((P - hits) ** 2, axis=1)) / scale
        assert search.scores_path_[0, place] == pytest.approx(expected, rel=2e-2)


def test_labels_that_a_scorer_has_are_kept():
    X, y = without_a_class()
    seen = []

    def metric(y_true, y_proba, labels=None):
        seen.append(list(labels))
        return 0.0

    scorer = make_scorer(metric, response_method="predict_proba")
    L1LogisticOWLQNCV(ALPHAS, cv=KFold(3), scoring=scorer).fit(X, y)
    own = make_scorer(metric, response_method="predict_proba", labels=["x"])
    L1LogisticOWLQNCV(ALPHAS, cv=KFold(3), scoring=own).fit(X, y)
    assert seen == [["a", "b", "c"]] * 9 + [["x"]] * 9
    assert scorer._kwargs == {}


def test_folds_without_a_score_are_left_out():
    X, y = without_a_class()
    search = L1LogisticOWLQNCV(ALPHAS, cv=KFold(3), scoring="roc_auc_ovr")
    with (
        pytest.warns(UndefinedMetricWarning),
        pytest.warns(UserWarning, match=r"^Each of folds \[0, 1\], without any finite"),
    ):
        search.fit(X, y)
    assert np.isnan(search.scores_path_[:2]).all()
    assert search.alpha_ == ALPHAS[np.argmax(search.scores_path_[2])]
    pytest.importorskip("matplotlib")
    drawn = PathScoreDisplay.from_estimator(search).line_.get_ydata()
    assert_array_equal(drawn, search.scores_path_[2])


def needs_all(model, X, y):
    """A score that raises where a class is missing."""
    if "c" not in y:
        raise RuntimeError("no sample of class c")
    return model.score(X, y)


@each_search
def test_errors_of_scorers(Search):
    X, y = without_a_class()
    search = Search(ALPHAS, cv=KFold(3), scoring=needs_all)
    with (
        pytest.warns(
            UserWarning, match="RuntimeError: no sample of class c.*error_score"
        ),
        pytest.warns(UserWarning, match="without any finite score"),
    ):
        search.fit(X, y)
    scores = search.scores_path_
    assert np.isnan(scores[:2]).all()
    assert search.alpha_ == ALPHAS[np.argmax(scores[2])]
    search.set_params(error_score=0.25)
    with pytest.warns(UserWarning, match=r"Scoring failed on each of folds \[0, 1\]"):
        search.fit(X, y)
    assert_array_equal(search.scores_path_[:2], np.full((2, 3), 0.25))
    assert_array_equal(search.scores_path_[2], scores[2])
    with pytest.raises(RuntimeError, match="no sample of class c"):
        search.set_params(error_score="raise").fit(X, y)
    # Where nothing is scored, there is nothing to go on with.
    search.set_params(error_score=np.nan, cv=[(range(30), range(30, 40))] * 2)
    with pytest.raises(RuntimeError, match="no sample of class c"):
        search.fit(X, y)


@each_search
@pytest.mark.parametrize("value", ["nan", None, True, [0.0]])
def test_error_scores_that_are_none(Search, value):
    X, y = without_a_class()
    with pytest.raises(ValueError, match="error_score must be 'raise' or a number"):
        Search(ALPHAS, error_score=value).fit(X, y)


@each_search
def test_other_metrics_are_as_they_were(Search):
    X, y = without_a_class()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        search = Search(ALPHAS, cv=KFold(3), scoring="f1_macro").fit(X, y)
        for fold, part in enumerate(KFold(3).split(X)):
            one = Search(ALPHAS, cv=[part], scoring="f1_macro").fit(X, y)
            assert_allclose(one.scores_path_[0], search.scores_path_[fold])
    assert "labels" not in get_scorer("f1_macro")._kwargs


def test_errors_of_copying_test_rows_are_not_those_of_the_scorer():
    def held_out():
        raise MemoryError

    scorer = get_scorer("accuracy")
    score = FoldScore(scorer, L1LogisticOWLQN, held_out, None, np.nan)
    with pytest.raises(MemoryError):
        score()
    assert not score.failures

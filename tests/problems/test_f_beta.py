"""BMRMClassifier with thresholds and weights for large F-beta scores."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from _door import Design
from _problems import EXPLORE
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.metrics import f1_score

from sklearn_subqn import BMRMClassifier
from sklearn_subqn._problems.f_beta import best_threshold, folds_of_rows

WEIGHTS = (1.0, 0.5, 2.0, 5.0, 10.0, 20.0)


def skewed(n=800, seed=0):
    """Few positive samples, amid the others but for a shift."""
    return make_classification(
        n, 6, weights=[0.93], class_sep=0.6, flip_y=0.01, random_state=seed
    )


def shifted(model):
    """Return the attributes that depend on the threshold."""
    return model.intercept_, model.threshold_, model.f_beta_


def f_beta(positive, predicted, weights, beta):
    hits = weights[positive & predicted].sum()
    if not hits:
        return 0.0
    precision, recall = hits / weights[predicted].sum(), hits / weights[positive].sum()
    return (1.0 + beta**2) * precision * recall / (beta**2 * precision + recall)


# --- thresholds and folds ------------------------------------------------------------


@EXPLORE
@given(
    st.lists(
        st.tuples(st.integers(-3, 3), st.booleans(), st.sampled_from([0.5, 1.0, 3.0])),
        min_size=1,
        max_size=12,
    ).filter(lambda rows: any(positive for _, positive, _ in rows)),
    st.sampled_from([0.5, 1.0, 2.0]),
)
def test_the_best_threshold_by_trying_all(rows, beta):
    scores, positive, weights = (np.array(column) for column in zip(*rows, strict=True))
    scores = scores.astype(float)
    threshold, value = best_threshold(scores, positive, weights, beta)
    values = np.unique(scores)
    tried = {
        t: f_beta(positive, scores > t, weights, beta)
        for t in [values[0] - 1.0, *(0.5 * (values[1:] + values[:-1]))]
    }
    assert value == pytest.approx(max(tried.values()))
    found = f_beta(positive, scores > threshold, weights, beta)
    assert found == pytest.approx(value)
    # The largest of those that do as well, midway between two scores.
    best = max(t for t, of in tried.items() if of >= value - 1e-9)
    assert threshold == (
        best if best > values[0] else values[0] - (np.ptp(scores) or 1)
    )


def test_folds_go_by_the_rows_whatever_their_order_and_number():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(300, 3)).astype(float)
    positive = rng.random(300) < 0.2
    folds = folds_of_rows(Design(X), positive, 5)
    for y in (False, True):
        rows, of = X[positive == y], folds[positive == y]
        counts = [len(np.unique(rows[of == k], axis=0)) for k in range(5)]
        assert min(counts) > 0
        assert np.ptp(counts) <= 1
    order = rng.permutation(np.tile(np.arange(300), 2))
    again = folds_of_rows(Design(X[order]), positive[order], 5)
    np.testing.assert_array_equal(again, folds[order])
    np.testing.assert_array_equal(
        folds_of_rows(Design(sparse.csr_array(X)), positive, 5), folds
    )


def test_a_class_of_few_distinct_rows_has_fewer_folds():
    X = np.arange(40.0)[:, np.newaxis]
    positive = np.arange(40) % 20 == 0
    assert folds_of_rows(Design(X), positive, 5).max() == 1
    X[positive] = 0.0
    assert folds_of_rows(Design(X), positive, 5).max() == 0
    assert folds_of_rows(Design(X), ~positive, 5).max() == 0


# --- fits ----------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [0.5, 1.0, 3.0])
def test_the_model_is_the_squared_hinge_of_the_best_weight(beta):
    X, y = skewed()
    rng = np.random.default_rng(1)
    sample_weight = rng.choice([0.0, 1.0, 2.0], size=len(y))
    model = BMRMClassifier(1e-3, loss="f_beta", beta=beta)
    model.fit(X, y, sample_weight=sample_weight)
    fits, values = [], []
    for weight in WEIGHTS:
        fit = BMRMClassifier(1e-3, loss="squared_hinge", class_weight={1: weight})
        scores = fit.fit(X, y, sample_weight=sample_weight).decision_function(X)
        ends = [-np.inf, *scores]
        tried = [f_beta(y > 0, scores > end, sample_weight, beta) for end in ends]
        values.append(max(tried))
        fits.append(fit)
    best = int(np.argmax(values))
    assert model.positive_weight_ == WEIGHTS[best]
    np.testing.assert_allclose(model.coef_, fits[best].coef_, rtol=1e-6)
    assert model.objective_ == pytest.approx(fits[best].objective_, rel=1e-9)
    assert model.objective_ - model.dual_gap_ <= fits[best].objective_
    np.testing.assert_allclose(
        model.intercept_ + model.threshold_, fits[best].intercept_, rtol=1e-6
    )


def test_the_threshold_is_that_of_scores_of_samples_held_out():
    X, y = skewed()
    model = BMRMClassifier(1e-3, loss="f_beta").fit(X, y)
    folds = folds_of_rows(Design(X), y > 0, 5)
    scores = np.empty(len(y))
    for k in range(5):
        fit = BMRMClassifier(
            1e-3, loss="squared_hinge", class_weight={1: model.positive_weight_}
        ).fit(X[folds != k], y[folds != k])
        scores[folds == k] = fit.decision_function(X[folds == k])
    threshold, value = best_threshold(scores, y > 0, np.ones(len(y)), 1.0)
    assert model.threshold_ == pytest.approx(threshold, rel=1e-6)
    assert model.f_beta_ == pytest.approx(value, rel=1e-9)


def test_rare_classes_are_found():
    X, y = make_classification(
        6000, 20, weights=[0.97], class_sep=0.5, flip_y=0.01, random_state=0
    )
    ours, plain = (
        BMRMClassifier(1e-4, loss=loss).fit(X[:4000], y[:4000])
        for loss in ("f_beta", "squared_hinge")
    )
    found = f1_score(y[4000:], ours.predict(X[4000:]))
    assert found > f1_score(y[4000:], plain.predict(X[4000:])) + 0.1
    assert found == pytest.approx(ours.f_beta_, abs=0.1)


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_weights_are_repetitions_in_any_order_and_format(penalty):
    X, y = skewed(400)
    X[:, :3] = np.round(X[:, :3])
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 4, size=len(y))
    rows = rng.permutation(np.repeat(np.arange(len(y)), weights))
    params = {"loss": "f_beta", "penalty": penalty}
    model = BMRMClassifier(1e-2, **params).fit(X, y, sample_weight=weights)
    for data in (X[rows], sparse.csr_array(X[rows])):
        other = BMRMClassifier(1e-2, **params).fit(data, y[rows])
        assert other.positive_weight_ == model.positive_weight_
        np.testing.assert_allclose(other.coef_, model.coef_, rtol=1e-5, atol=1e-9)
        np.testing.assert_allclose(shifted(other)[1:], shifted(model)[1:], rtol=1e-6)


def test_fits_are_the_same_again_and_when_stored():
    X, y = skewed()
    model = BMRMClassifier(1e-3, loss="f_beta").fit(X, y)
    stored = pickle.loads(pickle.dumps(model))
    again = BMRMClassifier(1e-3, loss="f_beta").fit(X, y)
    for other in (stored, again):
        np.testing.assert_array_equal(other.coef_, model.coef_)
        assert shifted(other) == shifted(model)
    warm = BMRMClassifier(1e-3, loss="f_beta", warm_start=True).fit(X, y).fit(X, y)
    assert warm.f_beta_ == pytest.approx(model.f_beta_, abs=1e-9)


def test_each_class_has_a_weight_and_a_threshold():
    X, y = make_classification(
        900, 8, n_informative=5, n_classes=3, weights=[0.8, 0.15], random_state=0
    )
    model = BMRMClassifier(1e-3, loss="f_beta").fit(X, y)
    for k in range(3):
        single = BMRMClassifier(1e-3, loss="f_beta").fit(X, y == k)
        np.testing.assert_allclose(model.coef_[k], single.coef_[0])
        np.testing.assert_allclose(model.intercept_[k], single.intercept_[0])
        for name in ("positive_weight_", "threshold_", "f_beta_"):
            assert getattr(model, name)[k] == pytest.approx(getattr(single, name))
    # Those of other losses have none.
    model.set_params(loss="hinge").fit(X, y)
    assert not hasattr(model, "f_beta_")
    assert not hasattr(model, "threshold_")


@pytest.mark.parametrize("n_positive", [1, 2, 3])
def test_few_samples_of_a_class(n_positive):
    X, _ = skewed(60)
    y = np.arange(60) < n_positive
    X[y, 0] += 3.0
    model = BMRMClassifier(1e-3, loss="f_beta")
    if n_positive > 1:
        model.fit(X, y)
    else:
        with pytest.warns(UserWarning, match="fewer than two distinct samples"):
            model.fit(X, y)
    assert 0.0 < model.f_beta_ <= 1.0
    assert model.predict(X)[y].any()


def test_only_the_fit_of_the_chosen_weight_is_reported(capsys):
    X, y = skewed()
    seen = []
    model = BMRMClassifier(
        1e-3, loss="f_beta", solver="lbfgs", callback=seen.append, verbose=2
    ).fit(X, y)
    assert len(seen) == len(model.history_[0]) == model.n_iter_ + 1 > 1
    assert capsys.readouterr().out.count("iteration ") == len(seen)


def test_the_threshold_needs_an_intercept():
    X, y = skewed()
    model = BMRMClassifier(loss="f_beta", fit_intercept=False)
    with pytest.raises(ValueError, match="needs fit_intercept=True"):
        model.fit(X, y)
    assert not hasattr(model, "coef_")

"""Displays of residuals, and of observed against predicted means."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import auc, roc_auc_score

from sklearn_subqn import (
    BMRMClassifier,
    BMRMRegressor,
    LiftDisplay,
    ResidualsDisplay,
    SubLBFGSLinearSVC,
    leverages,
    residuals,
)

pytest.importorskip("matplotlib").use("Agg")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
EXPOSURE = RNG.uniform(0.2, 2.0, 200)
COUNTS = RNG.poisson(EXPOSURE * np.exp(X[:, 0])).astype(float)
MODEL = BMRMRegressor(0, loss="poisson", tol=1e-9)
MODEL.fit(X, COUNTS / EXPOSURE, sample_weight=EXPOSURE)
DATA = X, COUNTS / EXPOSURE, EXPOSURE


@pytest.fixture(autouse=True)
def plt():
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def test_plots_of_residuals(plt):
    display = ResidualsDisplay.from_estimator(MODEL, *DATA, scatter_kw={"s": 3.0})
    fitted, level, scale, far = (each.get_offsets().data for each in display.points_)
    z = residuals(MODEL, *DATA, kind="quantile", random_state=0)
    h = leverages(MODEL, *DATA)
    standardized = residuals(MODEL, *DATA) / np.sqrt(1.0 - h)
    assert_allclose(fitted, np.column_stack([MODEL.predict(X), z]))
    assert_allclose(scale[:, 1], np.sqrt(np.abs(standardized)))
    assert_allclose(far, np.column_stack([h, standardized]))
    assert_allclose(level[:, 1], np.sort(z))
    assert_allclose(level[:, 0], stats.norm.ppf((np.arange(200) + 0.5) / 200.0))
    assert display.points_[0].get_sizes() == [3.0]
    assert len(display.axes_) == 4
    _, ax = plt.subplots()
    display.plot("leverage", ax=ax)
    assert display.axes_ == [ax]
    assert display.figure_ is ax.figure


@pytest.mark.parametrize("loss", ["squared_error", "gamma", "log_loss"])
def test_residuals_of_other_likelihoods(loss):
    y = X[:, 0] + RNG.normal(size=200)
    kind = BMRMRegressor
    if loss == "gamma":
        y = np.exp(y)
    elif loss == "log_loss":
        y, kind = y > 0.0, BMRMClassifier
    model = kind(0, loss=loss, tol=1e-9).fit(X, y)
    display = ResidualsDisplay.from_estimator(model, X, y)
    # If the model is true, standardized residuals have a variance of about one.
    assert 0.6 < np.std(display.standardized) < 1.4
    if loss == "log_loss":
        assert_allclose(display.fitted, model.predict_proba(X)[:, 1])


def test_leverages_of_one_have_no_standardized_residuals():
    rows, y = np.column_stack([X, np.arange(200) == 7]), X[:, 0] + RNG.normal(size=200)
    model = BMRMRegressor(0, loss="squared_error", tol=1e-9).fit(rows, y)
    display = ResidualsDisplay.from_estimator(model, rows, y)
    assert np.flatnonzero(np.isnan(display.standardized)).tolist() == [7]
    assert np.isfinite(np.delete(display.standardized, 7)).all()


def by_hand(observed, predicted, weights, n_bins):
    """Means of bins and Gini by loops over samples with different predictions."""
    order = np.argsort(predicted)
    total, below, bins = weights.sum(), 0.0, {}
    for i in order:
        place = int((below + 0.5 * weights[i]) / total * n_bins)
        bins.setdefault(place, []).append(i)
        below += weights[i]
    means = [
        [np.average(each[rows], weights=weights[rows]) for rows in bins.values()]
        for each in (observed, predicted)
    ]
    shares = np.cumsum(weights[order]) / total
    claims = np.cumsum((observed * weights)[order])
    gini = 1.0 - 2.0 * auc(np.append(0, shares), np.append(0, claims / claims[-1]))
    return *means, gini


@pytest.mark.parametrize("n_bins", [1, 7, 10])
def test_lifts(plt, n_bins):
    display = LiftDisplay.from_estimator(MODEL, *DATA, n_bins=n_bins, name="counts")
    observed, predicted, gini = by_hand(DATA[1], MODEL.predict(X), EXPOSURE, n_bins)
    assert_allclose(display.observed_means_, observed)
    assert_allclose(display.predicted_means_, predicted)
    assert display.gini_ == pytest.approx(gini, rel=1e-12)
    line, curve = display.lines_
    assert_allclose(line.get_xydata(), np.column_stack([predicted, observed]))
    assert curve.get_ydata()[0] == 0.0
    assert curve.get_ydata()[-1] == pytest.approx(1.0)
    assert curve.get_label() == f"counts, Gini {gini:.3f}"
    _, ax = plt.subplots()
    assert display.plot("lorenz", ax=ax, line_kw={"c": "r"}).axes_ == [ax]


def test_lifts_of_two_classes_and_ties():
    y = np.array([*"no"])[(X[:, 0] + RNG.normal(size=200) > 0.5).astype(int)]
    model = LogisticRegression().fit(X, y)
    display = LiftDisplay.from_estimator(model, X, y)
    p, share = model.predict_proba(X)[:, 1], np.mean(y == "o")
    expected = (2.0 * roc_auc_score(y == "o", p) - 1.0) * (1.0 - share)
    assert display.gini_ == pytest.approx(expected, rel=1e-9)
    # Rows with equal predictions are one, in any order.
    tied = p.round(1)
    one = LiftDisplay.from_predictions(y == "o", tied)
    other = LiftDisplay.from_predictions((y == "o")[::-1], tied[::-1])
    expected = (2.0 * roc_auc_score(y == "o", tied) - 1.0) * (1.0 - share)
    assert one.gini_ == pytest.approx(expected, rel=1e-9)
    assert_allclose(one.observed_means_, other.observed_means_)
    # Weights are repetitions.
    counts = RNG.integers(0, 3, 200)
    repeated = np.repeat(np.arange(200), counts)
    weighted = LiftDisplay.from_predictions(y == "o", tied, counts)
    every = LiftDisplay.from_predictions((y == "o")[repeated], tied[repeated])
    assert weighted.gini_ == pytest.approx(every.gini_, rel=1e-12)
    assert_allclose(weighted.observed_means_, every.observed_means_)


def test_offsets_of_lifts():
    offset = np.log(EXPOSURE)
    model = BMRMRegressor(0, loss="poisson", tol=1e-9).fit(X, COUNTS, offset=offset)
    display = LiftDisplay.from_estimator(model, X, COUNTS, offset=offset)
    assert_allclose(display.predicted, model.predict(X, offset))


def test_what_is_refused(monkeypatch, plt):
    y = np.arange(200) % 3
    several = BMRMClassifier(1e-3, loss="log_loss").fit(X, y)
    with pytest.raises(ValueError, match="one score"):
        ResidualsDisplay.from_estimator(several, X, y)
    with pytest.raises(ValueError, match="two classes"):
        LiftDisplay.from_estimator(several, X, y)
    machine = SubLBFGSLinearSVC(1e-3).fit(X, y > 0)
    with pytest.raises(TypeError, match="LinearSVC has no predict_proba: calibrate"):
        LiftDisplay.from_estimator(machine, X, y > 0)
    with pytest.raises(NotFittedError):
        LiftDisplay.from_estimator(BMRMRegressor(), *DATA)
    with pytest.raises(ValueError, match="finite"):
        LiftDisplay.from_predictions([1.0, np.nan], [1.0, 2.0])
    with pytest.raises(ValueError, match=r"got shapes \(2,\) and \(2, 1\)"):
        LiftDisplay.from_predictions([1.0, 2.0], [[1.0], [2.0]])
    with pytest.raises(ValueError, match="positive length"):
        LiftDisplay.from_predictions([], [])
    two = BMRMClassifier(1e-3, loss="log_loss").fit(X, np.array([*"no"])[y % 2])
    with pytest.raises(ValueError, match=r"\['n', 'o'\]; it has \[0, 1\]"):
        LiftDisplay.from_estimator(two, X, y % 2)
    with pytest.raises(ValueError, match="n_bins"):
        LiftDisplay.from_predictions([1.0, 2.0], [1.0, 2.0], n_bins=0)
    with pytest.raises(ValueError, match="needs 2 axes in ax; got 1"):
        LiftDisplay.from_predictions([1.0, 2.0], [1.0, 2.0], ax=plt.subplots()[1])
    with pytest.raises(ValueError, match="'calibration'"):
        LiftDisplay.from_predictions([1.0, 2.0], [1.0, 2.0], kind="roc")
    negative = LiftDisplay.from_predictions([-1.0, 2.0], [1.0, 2.0])
    assert np.isnan(negative.gini_)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    for display in (LiftDisplay, ResidualsDisplay):
        with pytest.raises(ImportError, match=f"{display.__name__} needs matplotlib"):
            display.from_estimator(MODEL, *DATA)

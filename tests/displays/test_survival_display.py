import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from sklearn_subqn import CoxRegression, CoxRegressionCV, SurvivalCurvesDisplay

pytest.importorskip("matplotlib").use("Agg")


@pytest.fixture(autouse=True)
def plt():
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.ceil(5.0 * rng.exponential(np.exp(-X[:, 0]))), rng.random(60) < 0.7
    return CoxRegression().fit(X, y), X, y


def test_curves_are_steps_from_one(fitted, plt):
    model, X, _ = fitted
    _, ax = plt.subplots()
    display = SurvivalCurvesDisplay.from_estimator(
        model, X[:2], names=["a", "b"], ax=ax, line_kw={"lw": 3.0}
    )
    assert display.ax_ is ax
    for i, line in enumerate(display.lines_):
        assert line.get_drawstyle() == "steps-post"
        assert line.get_linewidth() == 3.0
        assert (line.get_xdata()[0], line.get_ydata()[0]) == (0.0, 1.0)
        np.testing.assert_array_equal(line.get_xdata()[1:], model.event_times_)
        curve = model.predict_survival_function(X[[i]])[0]
        np.testing.assert_allclose(line.get_ydata()[1:], curve)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]
    bare = SurvivalCurvesDisplay(times=[1.0, 2.0], probabilities=[0.5, 0.2]).plot()
    assert len(bare.lines_) == 1
    assert bare.ax_.get_legend() is None


def test_what_is_refused(fitted, monkeypatch):
    model, X, y = fitted
    with pytest.raises(NotFittedError):
        SurvivalCurvesDisplay.from_estimator(CoxRegression(), X)
    averaged = CoxRegressionCV([0.1, 1.0], cv=2, refit=False).fit(X, y)
    with pytest.raises(ValueError, match="no baseline_cumulative_hazard_"):
        SurvivalCurvesDisplay.from_estimator(averaged, X)
    with pytest.raises(ValueError, match="one name for each of 3 samples; got 1"):
        SurvivalCurvesDisplay.from_estimator(model, X[:3], names=["a"])
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="SurvivalCurvesDisplay needs matplotlib"):
        SurvivalCurvesDisplay.from_estimator(model, X)

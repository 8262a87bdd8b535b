import sys

import numpy as np
import pytest
from _door import History
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from sklearn_subqn import (
    BMRMRegressor,
    ConvergenceDisplay,
    OnlineLBFGSClassifier,
    SubLBFGSLinearSVC,
)

pytest.importorskip("matplotlib").use("Agg")


@pytest.fixture
def plt():
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def fitted(n_classes):
    X, y = make_classification(
        n_samples=200, n_informative=6, n_classes=n_classes, random_state=0
    )
    return SubLBFGSLinearSVC(alpha=0.1, solver="sublbfgs", tol=1e-2).fit(X, y)


@pytest.fixture(scope="module")
def binary():
    return fitted(2)


@pytest.fixture(scope="module")
def multiclass():
    return fitted(3)


@pytest.fixture
def two_phases():
    return History(
        objective=[2.0, 1.5, 1.25, 1.0],
        lower_bound=[-np.inf, 0.5, 0.75, 1.0],
        passes=[1.0, 3.0, 4.5, 6.0],
        seconds=[0.1, 0.2, 0.3, 0.4],
        phase=["first", "first", "second", "second"],
    )


@pytest.mark.parametrize(
    ("x", "label"),
    [
        ("passes", "Passes over the data"),
        ("seconds", "Seconds"),
        ("iterations", "Iterations"),
    ],
)
def test_objective_and_bound_against_each_x(plt, binary, x, label):
    display = ConvergenceDisplay.from_estimator(binary, x=x, kind="objective")
    (history,) = binary.history_
    (line,), (bound,), (_,) = display.lines_, display.bound_lines_, display.gap_areas_
    positions = range(len(history)) if x == "iterations" else getattr(history, x)
    np.testing.assert_allclose(line.get_xdata(), positions)
    np.testing.assert_allclose(line.get_ydata(), history.objective)
    finite = np.isfinite(history.lower_bound)
    np.testing.assert_allclose(
        bound.get_ydata()[finite], np.array(history.lower_bound)[finite]
    )
    assert display.ax_.get_xlabel() == label
    assert display.ax_.get_ylabel() == "Objective"
    assert display.figure_ is display.ax_.figure
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    name = "SubLBFGSLinearSVC(alpha=0.1, solver='sublbfgs')"
    assert texts == [name, f"{name}, lower bound"]


def test_gap_is_relative_and_on_a_logarithmic_scale(plt, two_phases):
    display = ConvergenceDisplay(histories=[two_phases]).plot()
    assert display.ax_.get_yscale() == "log"
    (line,) = display.lines_
    # Infinite and zero gaps have no place on the scale.
    np.testing.assert_allclose(line.get_ydata(), [np.nan, 2 / 3, 0.4, np.nan])
    assert display.bound_lines_ == display.gap_areas_ == []
    assert display.ax_.get_legend() is None


def test_last_gap_is_the_estimators(plt, binary):
    display = ConvergenceDisplay.from_estimator(binary, kind="gap")
    expected = binary.dual_gap_ / binary.objective_
    np.testing.assert_allclose(display.lines_[0].get_ydata()[-1], expected, rtol=1e-6)


def test_gap_is_relative_to_what_tol_is(plt):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = rng.poisson(np.exp(5.0 + X[:, 0]))
    model = BMRMRegressor(loss="poisson", alpha=1e-2, solver="lbfgs", tol=1e-3)
    display = ConvergenceDisplay.from_estimator(model.fit(X, y))
    means = model.predict(X)
    half_deviance = np.mean(y * np.log(np.maximum(y, 1) / means) - y + means)
    size = half_deviance + 1e-2 / 2.0 * model.coef_ @ model.coef_
    last = display.lines_[0].get_ydata()[-1]
    np.testing.assert_allclose(last, model.dual_gap_ / size, rtol=1e-6)
    # Without its constant the objective is much larger than that.
    assert abs(model.objective_) > 10.0 * size


def test_reference_takes_the_place_of_the_bound(plt, two_phases):
    display = ConvergenceDisplay(histories=[two_phases]).plot(reference=1.0)
    gaps = display.lines_[0].get_ydata()
    np.testing.assert_allclose(gaps, [1.0, 0.5, 0.25, np.nan])
    assert display.ax_.get_ylabel() == "Objective less reference"


@pytest.mark.parametrize("reference", [[1.0, 2.0], [[1.0]]])
def test_reference_has_a_number_for_each_problem(two_phases, reference):
    with pytest.raises(ValueError, match=r"of shape \(1,\)"):
        ConvergenceDisplay(histories=[two_phases]).plot(reference=reference)


def test_several_fits_are_told_apart_by_their_parameters(plt):
    X, y = make_classification(n_samples=200, random_state=0)
    _, ax = plt.subplots()
    for alpha in ("auto", 0.01):
        model = SubLBFGSLinearSVC(alpha, tol=1e-2, max_iter=500).fit(X, y)
        ConvergenceDisplay.from_estimator(model, ax=ax)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["SubLBFGSLinearSVC", "SubLBFGSLinearSVC(alpha=0.01)"]


def test_marks_of_phases_are_those_of_the_first_fit(plt, two_phases):
    display = ConvergenceDisplay(histories=[two_phases]).plot()
    n_texts = len(display.ax_.texts)
    other = ConvergenceDisplay(histories=[two_phases]).plot(ax=display.ax_)
    assert other.phase_lines_ == []
    assert len(display.ax_.texts) == n_texts


@pytest.mark.parametrize("solver", ["auto", "subbfgs"])
def test_phases_bear_the_names_of_solvers(plt, two_phases, solver):
    two_phases.phase = ["sample", "subbfgs", "subbfgs", "alm"]
    display = ConvergenceDisplay(histories=[two_phases], solver=solver).plot()
    name = "subbfgs" if solver == "subbfgs" else "sublbfgs"
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts == ["sample", name, "alm"]


def test_phase_is_marked_where_the_next_method_sets_out(plt, two_phases):
    display = ConvergenceDisplay(histories=[two_phases]).plot("seconds")
    (line,) = display.phase_lines_
    np.testing.assert_allclose(line.get_xdata(), 0.2)
    assert [text.get_text() for text in display.ax_.texts] == ["first", "second"]


def test_many_phases_are_marked_but_named_once(plt, two_phases):
    two_phases.phase = ["a", "b"] * 10
    for name in ("objective", "lower_bound", "passes", "seconds"):
        setattr(two_phases, name, np.linspace(1.0, 2.0, 20))
    display = ConvergenceDisplay(histories=[two_phases]).plot()
    assert len(display.phase_lines_) == 19
    assert [text.get_text() for text in display.ax_.texts] == ["a", "b"]


def test_one_line_per_class(plt, multiclass):
    display = ConvergenceDisplay.from_estimator(multiclass, kind="gap", name="SVM")
    assert [line.get_label() for line in display.lines_] == [
        "SVM, class 0",
        "SVM, class 1",
        "SVM, class 2",
    ]
    display.plot(kind="objective")
    assert len(display.lines_) == len(display.bound_lines_) == 3
    assert len({line.get_color() for line in display.lines_}) == 3


def test_uses_the_axes_and_styles_given(plt, binary):
    _, ax = plt.subplots()
    display = ConvergenceDisplay.from_estimator(
        binary,
        kind="objective",
        ax=ax,
        name="mine",
        line_kw={"color": "red", "label": "objective"},
        bound_kw={"linestyle": ":"},
        fill_kw={"alpha": 0.5},
    )
    assert display.ax_ is ax
    assert display.lines_[0].get_color() == "red"
    assert display.lines_[0].get_label() == "objective"
    assert display.bound_lines_[0].get_linestyle() == ":"
    assert display.gap_areas_[0].get_alpha() == 0.5


@pytest.mark.parametrize("option", ["x", "kind"])
def test_unknown_options_name_the_accepted_ones(binary, option):
    with pytest.raises(ValueError, match=f"{option} must be one of '"):
        ConvergenceDisplay.from_estimator(binary, **{option: "time"})


def test_unfitted_estimator_is_refused():
    with pytest.raises(NotFittedError):
        ConvergenceDisplay.from_estimator(SubLBFGSLinearSVC())


def test_fitted_estimators_without_a_history_are_refused(binary):
    X, y = make_classification(random_state=0)
    streamed = OnlineLBFGSClassifier().partial_fit(X, y, classes=[0, 1])
    for other in (make_pipeline(binary).fit(X, y), streamed):
        with pytest.raises(ValueError, match="has no history_"):
            ConvergenceDisplay.from_estimator(other)


def test_missing_matplotlib_is_named(binary, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="needs matplotlib"):
        ConvergenceDisplay.from_estimator(binary)


def test_short_names_of_styles(plt, binary):
    display = ConvergenceDisplay.from_estimator(
        binary,
        kind="objective",
        line_kw={"c": "r", "ds": "default"},
        bound_kw={"ls": ":"},
    )
    assert display.lines_[0].get_color() == "r"
    assert display.bound_lines_[0].get_linestyle() == ":"


def test_what_follows_a_colon_is_no_other_method(plt, two_phases):
    two_phases.phase = ["first: 0", "first: 3", "second: 1", "second: 0"]
    display = ConvergenceDisplay(histories=[two_phases]).plot()
    assert len(display.phase_lines_) == 1
    assert [text.get_text() for text in display.ax_.texts] == ["first", "second"]

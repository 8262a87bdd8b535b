"""scikit-learn's callbacks (1.9 and later)."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from _optimum import objective
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from sklearn_subqn import (
    BMRMClassifier,
    BMRMOutlierDetector,
    BMRMRegressor,
    OnlineLBFGSClassifier,
    OnlineLBFGSRegressor,
    SubLBFGSLinearSVC,
)

callback_module = pytest.importorskip("sklearn.callback")


def data(n_classes=2):
    rng = np.random.default_rng(0)
    y = np.arange(60) % n_classes
    X = rng.normal(size=(60, 4)) + 2.0 * rng.normal(size=(n_classes, 4))[y]
    return X, y


class Recorder:
    """Keeps what it is told: a list of (event, task name, keywords)."""

    def __init__(self, stop_after=None, fail_at=None):
        self.events = []
        self.stop_after = stop_after
        self.fail_at = fail_at

    def setup(self, estimator, context):
        self._note("setup", context)

    def teardown(self, estimator, context):
        self._note("teardown", context)

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None, metadata=None):
        self._note("begin", context, X=X, y=y, metadata=metadata)

    def on_fit_task_end(
        self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator
    ):
        self._note("end", context, X=X, y=y, metadata=metadata, fitted=fitted_estimator)
        is_iteration = context.task_name == "iteration"
        return is_iteration and context.task_id == self.stop_after

    def _note(self, event, context, **keywords):
        self.events.append((event, context.task_name, keywords))
        if (event, context.task_name) == self.fail_at:
            raise RuntimeError("the callback failed")

    def told(self, event, task_name):
        return [
            keywords
            for e, name, keywords in self.events
            if (e, name) == (event, task_name)
        ]


def test_tasks_of_a_fit():
    X, y = data()
    recorder = Recorder()
    model = SubLBFGSLinearSVC().set_callbacks(recorder).fit(X, y)
    names = [(event, name) for event, name, _ in recorder.events]
    names = [(event, name) for event, name in names if "gap" not in name]
    iteration = [("begin", "iteration"), ("end", "iteration")]
    assert names == [
        ("setup", "fit"),
        ("begin", "fit"),
        ("begin", "optimization"),
        *(iteration * len(model.history_[0])),
        ("end", "optimization"),
        ("end", "fit"),
        ("teardown", "fit"),
    ]


def test_tasks_of_more_classes():
    X, y = data(n_classes=3)
    recorder = Recorder()
    model = SubLBFGSLinearSVC().set_callbacks(recorder).fit(X, y)
    problems = [name for event, name, _ in recorder.events if event == "begin"]
    problems = [name for name in problems if name.startswith("class")]
    assert problems == [f"class {k}" for k in range(3)]
    n_iterates = sum(len(history) for history in model.history_)
    assert len(recorder.told("end", "iteration")) == n_iterates


def test_tasks_of_several_quantiles():
    X, y = data()
    recorder = Recorder()
    model = BMRMRegressor(loss="quantile", quantile=[0.75, 0.1])
    model.set_callbacks(recorder).fit(X, X[:, 0] + y)
    problems = [name for event, name, _ in recorder.events if event == "begin"]
    problems = [name for name in problems if name.startswith("quantile")]
    assert problems == ["quantile 0.1", "quantile 0.75"]
    for told in recorder.told("end", "iteration"):
        assert told["fitted"].predict(X).shape == (len(X), 2)


@pytest.mark.parametrize("tol", [0.5, 1e-3])
def test_iterations_are_in_tasks_by_the_power_of_ten_of_their_gap(tol):
    X, y = data()
    recorder = Recorder()
    model = SubLBFGSLinearSVC(1e-3, tol=tol, solver="alm").set_callbacks(recorder)
    model.fit(X, y)
    (history,) = model.history_
    bounds = np.array(history.lower_bound)
    gaps = 1.0 - bounds / np.array(history.objective)
    most, inside = None, []
    for event, name, _ in recorder.events:
        if event == "begin" and name.startswith("relative gap"):
            most = np.inf if "above" in name else float(name.rpartition(" ")[2])
        elif (event, name) == ("begin", "iteration"):
            inside.append(most)
    assert len(inside) == len(gaps)
    for number, (most, gap) in enumerate(zip(inside, gaps, strict=True)):
        assert gap <= most, number
    # A run whose gap never fell below a tenth is in one task.
    assert len(set(inside)) > 1 or gaps.min() > 0.1
    assert gaps.min() <= tol


def test_tasks_get_the_data_as_passed():
    X, y = data()
    weights = np.arange(60.0)
    recorder = Recorder()
    labels = np.array(["no", "yes"])[y].tolist()
    model = SubLBFGSLinearSVC().set_callbacks(recorder)
    model.fit(X.tolist(), labels, sample_weight=weights)
    for event, _, keywords in recorder.events:
        if event in ("begin", "end"):
            assert keywords["X"] == X.tolist()
            assert keywords["y"] is labels
            assert keywords["metadata"]["sample_weight"] is weights
    recorder.events.clear()
    model.fit(X, y)
    assert {keywords["metadata"] for keywords in recorder.told("end", "fit")} == {None}


def test_tasks_get_an_estimator_as_fitted_so_far():
    X, y = data()
    recorder = Recorder()
    model = SubLBFGSLinearSVC(0.1, solver="sublbfgs").set_callbacks(recorder).fit(X, y)
    target = np.where(y == 1, 1.0, -1.0)
    seen = recorder.told("end", "iteration")
    assert len(seen) == model.n_iter_ + 1
    for keywords, expected in zip(seen, model.history_[0].objective, strict=True):
        fitted = keywords["fitted"]
        assert fitted is not model
        value = objective(X, target, fitted.coef_[0], fitted.intercept_[0], model.alpha)
        assert value == pytest.approx(expected)
        scores = X @ fitted.coef_[0] + fitted.intercept_[0]
        np.testing.assert_array_equal(fitted.predict(X), scores > 0.0)
    for fitted in (seen[-1]["fitted"], recorder.told("end", "fit")[0]["fitted"]):
        np.testing.assert_array_equal(fitted.coef_, model.coef_)
        np.testing.assert_array_equal(fitted.intercept_, model.intercept_)


@pytest.mark.parametrize("warm_start", [False, True])
def test_problems_to_come_do_not_disturb_the_estimator_so_far(warm_start):
    X, y = data(n_classes=3)
    recorder = Recorder()
    model = SubLBFGSLinearSVC(warm_start=warm_start, alpha=1e-2).fit(X, y)
    previous = model.coef_ if warm_start else np.zeros((3, 4))
    model.set_params(alpha=1.0).set_callbacks(recorder).fit(X, y)
    first, second, _ = np.cumsum([len(history) for history in model.history_])
    seen = [keywords["fitted"] for keywords in recorder.told("end", "iteration")]
    for fitted in seen:
        assert fitted.predict(X).shape == (60,)
    np.testing.assert_array_equal(seen[0].coef_[1:], previous[1:])
    np.testing.assert_array_equal(seen[first].coef_[0], model.coef_[0])
    np.testing.assert_array_equal(seen[first].coef_[2], previous[2])
    np.testing.assert_array_equal(seen[second].coef_[:2], model.coef_[:2])
    np.testing.assert_array_equal(seen[-1].coef_, model.coef_)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_callback_can_stop(n_classes):
    X, y = data(n_classes)
    model = SubLBFGSLinearSVC(solver="alm").set_callbacks(Recorder(stop_after=2))
    model.fit(X, y)  # no warning: the user asked for it
    assert model.n_iter_ == 2
    assert [len(history) for history in model.history_] == len(model.history_) * [3]
    assert np.all(np.asarray(model.dual_gap_) >= 0.0)


def test_both_kinds_of_callback_are_called():
    X, y = data()
    recorder, seen = Recorder(), []
    model = SubLBFGSLinearSVC(callback=seen.append).set_callbacks(recorder).fit(X, y)
    assert len(seen) == len(recorder.told("end", "iteration")) == len(model.history_[0])
    recorder = Recorder(stop_after=1)
    model.set_callbacks(recorder)
    for callback in (lambda progress: False, lambda progress: progress.n_iter == 4):
        assert model.set_params(callback=callback).fit(X, y).n_iter_ == 1
    model.set_params(callback=lambda progress: progress.n_iter == 0).fit(X, y)
    assert len(model.history_[0]) == 1


@pytest.mark.parametrize("event", ["begin", "end"])
@pytest.mark.parametrize("task", ["fit", "optimization", "iteration"])
def test_a_failing_callback_leaves_the_estimator_as_it_was(event, task):
    X, y = data()
    model = SubLBFGSLinearSVC().fit(X, y)
    before = dict(vars(model))
    recorder = Recorder(fail_at=(event, task))
    with pytest.raises(RuntimeError, match="the callback failed"):
        model.set_callbacks(recorder).fit(X, y)
    assert recorder.events[-1][0] == "teardown"
    model.set_callbacks()
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is before[name] for name in before)


def test_bad_input_with_a_callback_leaves_the_estimator_as_it_was():
    X, y = data()
    recorder = Recorder()
    model = SubLBFGSLinearSVC().set_callbacks(recorder)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full_like(X, np.nan), y)
    assert set(vars(model)) - set(vars(SubLBFGSLinearSVC())) == {"_skl_callbacks"}
    assert recorder.events == []
    model.fit(X, y)
    assert recorder.told("end", "fit")


def test_reaching_max_iter_uses_all_subtasks():
    X, y = data()
    recorder = Recorder()
    model = SubLBFGSLinearSVC(solver="alm", max_iter=2).set_callbacks(recorder)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert len(recorder.told("end", "iteration")) == 3


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scoring_monitor(n_classes):
    X, y = data(n_classes)
    monitor = callback_module.ScoringMonitor(scoring=["accuracy", "balanced_accuracy"])
    model = SubLBFGSLinearSVC().set_callbacks(monitor).fit(X, y)
    rows = monitor.get_logs().data
    iterations = [row for row in rows if row["task_name"] == "iteration"]
    assert len(iterations) == sum(len(history) for history in model.history_)
    assert all(0.0 <= row["accuracy"] <= 1.0 for row in rows)
    (whole,) = (row for row in rows if row["task_name"] == "fit")
    assert whole["accuracy"] == iterations[-1]["accuracy"] == model.score(X, y)
    assert whole["accuracy"] > iterations[0]["accuracy"]


@pytest.mark.parametrize(
    "parameters",
    [
        {"loss": "roc_area"},
        {"loss": "ordinal"},
        {"loss": "precision_at_k", "k": 20},
        {"loss": "recall_at_k", "k": 20},
        {"loss": "hinge"},
    ],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_scoring_monitor_of_losses_without_intercepts(parameters, n_classes):
    X, y = data(n_classes)
    monitor = callback_module.ScoringMonitor(scoring="accuracy")
    model = BMRMClassifier(1e-2, **parameters).set_callbacks(monitor).fit(X + 3.0, y)
    rows = monitor.get_logs().data
    iterations = [row["accuracy"] for row in rows if row["task_name"] == "iteration"]
    assert iterations[-1] == model.score(X + 3.0, y)


@pytest.mark.parametrize(
    "model",
    [
        BMRMRegressor(),
        BMRMRegressor(loss="poisson"),
        BMRMOutlierDetector(),
        BMRMOutlierDetector(contamination=0.1),
    ],
    ids=repr,
)
@pytest.mark.parametrize("several", [False, True])
def test_estimators_as_fitted_so_far_predict_as_the_last_one(model, several):
    X, y = data()
    y = np.abs(X[:, :2]) if several else np.abs(X[:, 0])
    recorder = Recorder()
    model.set_callbacks(recorder).fit(X, y)
    last = recorder.told("end", "iteration")[-1]["fitted"]
    assert last.predict(X).shape == model.predict(X).shape
    np.testing.assert_allclose(last.predict(X), model.predict(X))


def test_scoring_monitor_with_weights():
    X, y = data()
    weights = np.where(y == 1, 1.0, 0.1)
    monitor = callback_module.ScoringMonitor(scoring="accuracy")
    model = SubLBFGSLinearSVC(max_iter=2).set_callbacks(monitor)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, sample_weight=weights)
    (whole,) = (row for row in monitor.get_logs().data if row["task_name"] == "fit")
    assert whole["accuracy"] == model.score(X, y, sample_weight=weights)


def test_scoring_monitor_in_a_grid_search():
    X, y = data()
    monitor = callback_module.ScoringMonitor(scoring="accuracy")
    model = SubLBFGSLinearSVC().set_callbacks(monitor)
    grid = GridSearchCV(model, {"alpha": [1e-2, 1.0]}, cv=2).fit(X, y)
    logs = monitor.get_logs(select="all")
    # Two parameters, two splits, and the refit.
    rows = [row for log in logs for row in log.data]
    whole = [row for row in rows if row["task_name"] == "fit"]
    assert len(whole) == 5
    assert grid.best_estimator_.score(X, y) in [row["accuracy"] for row in whole]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_progress_bar(n_classes, capsys):
    pytest.importorskip("rich")
    X, y = data(n_classes)
    bar = callback_module.ProgressBar(max_propagation_depth=None)
    SubLBFGSLinearSVC().set_callbacks(bar).fit(X, y)
    out = capsys.readouterr().out
    assert out.count("SubLBFGSLinearSVC - fit") >= 1
    assert "SubLBFGSLinearSVC - SubLBFGSLinearSVC" not in out
    assert "relative gap up to" in out
    for k in range(n_classes if n_classes > 2 else 0):
        assert f"class {k}" in out
    assert "100%" in out


def test_progress_bar_of_a_grid_search(capsys):
    pytest.importorskip("rich")
    X, y = data()
    grid = GridSearchCV(SubLBFGSLinearSVC(), {"alpha": [1e-2, 1.0]}, cv=2)
    grid.set_callbacks(callback_module.ProgressBar()).fit(X, y)
    out = capsys.readouterr().out
    assert "GridSearchCV" in out
    assert "SubLBFGSLinearSVC" in out
    assert "100%" in out
    assert not hasattr(grid.best_estimator_, "_parent_callback_ctx")


def test_callbacks_do_not_change_the_result():
    X, y = data(n_classes=3)
    plain = SubLBFGSLinearSVC().fit(X, y)
    watched = SubLBFGSLinearSVC().set_callbacks(Recorder()).fit(X, y)
    np.testing.assert_array_equal(watched.coef_, plain.coef_)
    np.testing.assert_array_equal(watched.intercept_, plain.intercept_)


@pytest.mark.parametrize("Estimator", [OnlineLBFGSClassifier, OnlineLBFGSRegressor])
def test_tasks_of_epochs(Estimator):
    X, y = data()
    recorder = Recorder()
    model = Estimator(max_iter=5, tol=0.0, random_state=0).set_callbacks(recorder)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    seen = recorder.told("end", "iteration")
    assert len(seen) == 5
    fitted = [keywords["fitted"].predict(X) for keywords in seen]
    np.testing.assert_array_equal(fitted[-1], model.predict(X))
    short = Estimator(max_iter=1, tol=0.0, random_state=0)
    with pytest.warns(ConvergenceWarning):
        short.fit(X, y)
    np.testing.assert_array_equal(seen[0]["fitted"].coef_, short.coef_)


def test_epochs_stop_when_a_callback_asks():
    X, y = data()
    recorder = Recorder(stop_after=2)
    model = OnlineLBFGSClassifier(tol=0.0).set_callbacks(recorder).fit(X, y)
    assert model.n_iter_ == 3

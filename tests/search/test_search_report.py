"""What searches report of their fits on folds."""

import io

import numpy as np
import pytest
from _door import print_at_once
from sklearn.datasets import make_classification

from sklearn_subqn import (
    BMRMRankerCV,
    BMRMRegressorCV,
    L1LogisticOWLQNCV,
    SubLBFGSLinearSVCCV,
)
from sklearn_subqn.linear_model import LogisticRegressionCV
from sklearn_subqn.progress import ProgressBar

X, Y = make_classification(60, 4, random_state=0)
ALPHAS = [1e-1, 1e-2]


class Collected(list):
    """A callback that keeps what its method ``fold`` gets."""

    def __call__(self, progress):
        assert self, "iterations of the refit come after the folds"

    def fold(self, progress):
        self.append(progress)


def searches(**parameters):
    common = {"alphas": ALPHAS, "cv": 3, **parameters}
    return [
        SubLBFGSLinearSVCCV(**common),
        L1LogisticOWLQNCV(**common),
        BMRMRegressorCV(loss="absolute_error", **common),
        BMRMRankerCV(**common),
    ]


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("i", range(4))
def test_each_fit_on_a_fold_is_reported_once(i, n_jobs):
    seen = Collected()
    model = searches(callback=seen, n_jobs=n_jobs)[i]
    rows = {"qid": np.arange(60) // 5} if isinstance(model, BMRMRankerCV) else {}
    model.fit(X, Y, **rows)
    assert [each.n_done for each in seen] == list(range(1, 7))
    assert {each.n_fits for each in seen} == {6}
    for each in seen:
        place = each.fold, list(model.alphas_).index(each.alpha)
        assert each.score == model.scores_path_[place]
        assert each.relative_gap == model.gaps_path_[place]
    assert len({(each.fold, each.alpha) for each in seen}) == 6
    assert np.all(np.diff([each.seconds for each in seen]) >= 0.0)


def test_lines_of_folds(monkeypatch, capsys):
    print_at_once(monkeypatch)
    SubLBFGSLinearSVCCV(alphas=ALPHAS, cv=3, refit=False, verbose=2).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    starts = [f"SubLBFGSLinearSVCCV: {i} of 6 fits on folds  fold" for i in range(1, 7)]
    assert all(map(str.startswith, lines, starts))
    SubLBFGSLinearSVCCV(alphas=ALPHAS, cv=3, refit=False, verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == ["1", "2", "4", "6"]
    SubLBFGSLinearSVCCV(alphas=ALPHAS, cv=3).fit(X, Y)
    assert capsys.readouterr().out == ""


def test_lines_of_the_drop_in_name_its_parameter(capsys):
    model = LogisticRegressionCV(
        Cs=[0.1, 1.0],
        l1_ratios=[0.0, 1.0],
        cv=3,
        verbose=2,
        use_legacy_attributes=False,
    )
    model.fit(X, Y)
    lines = [s for s in capsys.readouterr().out.splitlines() if "on folds" in s]
    assert len(lines) == 12
    assert "fold 0  C 0.1  score" in lines[0]


def test_the_bar_of_a_search_comes_before_that_of_the_refit():
    file = io.StringIO()
    bar = ProgressBar(tol=1e-3, file=file)
    model = SubLBFGSLinearSVCCV(alphas=ALPHAS, cv=3, callback=bar).fit(X, Y)
    folds, *refit = file.getvalue().split("\n")
    full = f"[{'#' * 20}]"
    *partly, last = folds.split("\r")[1:]
    assert last.startswith(f"{full} fit 6 of 6 on folds  alpha 0.01  score")
    assert [each.count("#") for each in partly] == [3, 7, 10, 13, 17]
    assert all("left" in each for each in partly)
    assert "fit" not in "".join(refit)
    assert f"{full} iteration {model.n_iter_} " in "".join(refit)


@pytest.mark.parametrize("refit", [True, False])
def test_tasks_of_a_search(refit):
    pytest.importorskip("sklearn.callback")
    events = []

    class Recorder:
        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context, **more):
            events.append(("begin", context.task_name, context.max_subtasks))

        def on_fit_task_end(self, estimator, context, **more):
            events.append(("end", context.task_name, context.max_subtasks))

    model = L1LogisticOWLQNCV(
        alphas=ALPHAS, l1_ratio=[0.5, 1.0], cv=2, refit=refit
    ).set_callbacks(Recorder())
    model.fit(X, Y)
    assert events[0] == ("begin", "fit", 4 + refit)
    assert events[-1] == ("end", "fit", 4 + refit)
    ended = [name for event, name, _ in events if event == "end"]
    first = ["alpha 0.1", "alpha 0.01", "l1_ratio 0.5, fold 0"]
    assert ended[:3] == first
    folds = [f"l1_ratio {r:g}, fold {i}" for r in (0.5, 1.0) for i in (0, 1)]
    assert [name for name in ended if "fold" in name] == folds
    assert ended.count("optimization") == int(refit)

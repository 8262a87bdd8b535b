"""The progress bar for the parameter ``callback``."""

import copy
import io

import pytest
from sklearn.datasets import make_classification

from sklearn_subqn import SubLBFGSLinearSVC
from sklearn_subqn._solving.solution import Progress
from sklearn_subqn.progress import ProgressBar


def lines(file):
    return file.getvalue().replace("\n", "\r").split("\r")


def test_bar_is_as_full_as_the_logarithm_of_the_gap():
    file = io.StringIO()
    bar = ProgressBar(tol=1e-4, file=file)
    bar(Progress(0, 2.0, float("inf"), 1.0, 0.5))
    bar(Progress(1, 2.0, 2e-2, 2.0, 1.0))
    bar(Progress(2, 2.0, 2e-4, 3.0, 1.5))
    _, first, half, full, end = lines(file)
    assert first.startswith(f"[{'-' * 20}] iteration 0  objective 2  proven gap inf")
    assert half.startswith(f"[{'#' * 10}{'-' * 10}] iteration 1")
    assert half.rstrip().endswith("1.0 s, about 1.0 s left")
    assert full.startswith(f"[{'#' * 20}] iteration 2")
    assert "left" not in full
    assert end == ""


def test_bar_of_a_fit_ends_full_and_does_not_change_it():
    X, y = make_classification(random_state=0)
    file = io.StringIO()
    bar = ProgressBar(tol=1e-3, file=file)
    model = SubLBFGSLinearSVC(1e-2, callback=bar).fit(X, y)
    plain = SubLBFGSLinearSVC(1e-2).fit(X, y)
    assert model.objective_ == plain.objective_
    assert f"iteration {model.n_iter_}" in lines(file)[-2]


def test_each_problem_has_a_line_of_its_own():
    X, y = make_classification(n_informative=4, n_classes=3, random_state=0)
    file = io.StringIO()
    bar = ProgressBar(tol=1e-9, file=file)
    SubLBFGSLinearSVC(1e-2, tol=1e-2, solver="sublbfgs", callback=bar).fit(X, y)
    assert file.getvalue().count("\n") == 2


def test_bar_can_be_copied_with_its_estimator():
    bar = copy.deepcopy(ProgressBar(tol=1e-2))
    assert (bar.tol, bar.file) == (1e-2, None)


def test_tolerances_below_zero_are_refused():
    with pytest.raises(ValueError, match="tol"):
        ProgressBar(tol=-1.0)

"""The harness of the benchmarks, and the cases of the papers, without any data."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

FOLDER = Path(__file__).parents[1] / "benchmarks"
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="there are no benchmarks beside the tests"
)


@pytest.fixture(scope="module")
def modules():
    """The modules of the folder, which import each other by their names."""
    sys.path.insert(0, str(FOLDER))
    try:
        names = ("_case", "accuracy", "curves", "quadratics")
        found = {name: import_module(f"papers.{name}") for name in names}
        found |= {
            "harness": import_module("_harness"),
            "papers": import_module("papers"),
        }
    finally:
        sys.path.remove(str(FOLDER))
    return SimpleNamespace(**found)


def test_options_follow_from_defaults(modules):
    p = ArgumentParser()
    options = {
        "repeats": 5,
        "regret": False,
        "alphas": [float],
        "rows": {"default": int, "help": "rows"},
        "threads": [1, 2],
        "parts": ("race", "l1"),
    }
    modules.harness.add_options(p, options)
    defaults = vars(p.parse_args([]))
    assert defaults == {
        **{"repeats": 5, "regret": False, "alphas": None, "rows": None},
        **{"threads": [1, 2], "parts": ("race", "l1")},
    }
    given = "--repeats 2 --regret --alphas 1e-3 2 --rows 7 --threads 4 --parts l1"
    assert vars(p.parse_args(given.split())) == {
        **{"repeats": 2, "regret": True, "alphas": [1e-3, 2.0], "rows": 7},
        **{"threads": [4], "parts": ["l1"]},
    }
    with pytest.raises(SystemExit):
        p.parse_args(["--parts", "others"])


def test_nothing_is_written_unless_asked(modules, tmp_path, monkeypatch, capsys):
    def measure(name, args, results):
        results.add(name, data=name, seconds=args.limit)

    def render(results):
        columns = {"data": "data", "the_seconds": "seconds:.1f", "other": "missing"}
        return modules.harness.table(results["rows"], **columns)

    benchmark = modules.harness.Benchmark(
        "name", "What it is.", measure, render, ["a", "b"], each=True, limit=2.0
    )
    monkeypatch.chdir(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in FOLDER.rglob("*.json")}
    benchmark.run([])
    assert "| a | 2.0 | – |\n| b | 2.0 | – |" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
    assert before == {p: p.stat().st_mtime_ns for p in FOLDER.rglob("*.json")}
    # Rows of other problems are kept, unless they are to be dropped.
    benchmark.run(["--save", "there"])
    benchmark.run(["--save", "there", "--data", "b", "--limit", "3"])
    path = tmp_path / "there" / "name.json"
    rows = json.loads(path.read_text())["rows"]
    assert [row["seconds"] for row in rows] == [2.0, 3.0]
    benchmark.run(["--save", "there", "--data", "b", "--fresh"])
    assert [row["key"] for row in json.loads(path.read_text())["rows"]] == ["b"]


def test_papers_have_names_and_titles(modules):
    names = [
        case.name
        for module in (modules.curves, modules.quadratics, modules.accuracy)
        for case in module.CASES
    ]
    assert len(set(names)) == len(names)
    assert set(names) <= set(modules.papers.CASES)
    assert all(name == case.name for name, case in modules.papers.CASES.items())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_trace_counts_until_its_end(modules, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = np.where(X[:, 0] + rng.normal(size=60) > 0.0, 1.0, -1.0)
    monkeypatch.setattr(modules._case, "_load", lambda *args: (X, y))
    problem = modules._case.Problem("data", "hinge", 1e-2)
    settings = modules._case.Settings()
    best = modules._case.optimum(problem, settings, 1e-9, 10.0)
    run = modules._case.trace(
        problem, modules.curves.SUBLBFGS, settings, limit=10.0, goal=1.02 * best
    )
    assert run.objective[0] == 1.0
    assert run.end == ""
    assert run.first(0.02, best) == len(run.objective) - 1 > 0
    assert run.first(0.0, 0.5 * best) is None
    assert run.k is not None
    short = modules._case.trace(
        problem, modules.curves.BMRM, settings, limit=10.0, max_iter=2
    )
    assert short.end == "limit of iterations"
    assert len(short.objective) == 3
    assert short.k is None
    w = rng.normal(size=4)
    model = modules._case.estimator(problem, max_iter=1, tol=1.0).fit(X, y)
    value = modules._case.value(problem, X, y, model.coef_[0])
    assert_allclose(value, model.objective_, rtol=1e-12)
    log_loss = problem._replace(loss="log_loss")
    model = modules._case.estimator(log_loss, tol=1e-9).fit(X, y)
    at_optimum = modules._case.value(log_loss, X, y, model.coef_[0])
    assert_allclose(at_optimum, model.objective_, rtol=1e-12)
    assert at_optimum <= modules._case.value(log_loss, X, y, w)


def test_steps_from_zero_are_subgradients(modules):
    """The mean loss at the end of a small step falls by no more than its slope."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3))
    y = rng.integers(0, 4, 40)
    step = modules._case.unit_step(modules._case.Problem("", "multiclass", 1.0), X, y)
    margins = X @ (1e-6 * step).T
    margins += 1.0 - np.eye(4)[y]
    loss = np.mean(margins.max(axis=1) - margins[np.arange(40), y])
    assert loss >= 1.0 - 1e-6 * np.sum(step**2) - 1e-15
    labels = rng.random((40, 3)) < 0.5
    problem = modules._case.Problem("", "multilabel", 1.0)
    step = modules._case.unit_step(problem, X, labels)
    z = X @ (1e-6 * step).T
    best = np.where(labels, np.inf, z).min(axis=1), np.where(labels, z, np.inf)
    worst = np.where(labels, -np.inf, z).max(axis=1)
    some = labels.any(axis=1) & ~labels.all(axis=1)
    loss = np.maximum(0.0, 1.0 + worst - best[1].min(axis=1))[some].sum() / 40
    assert loss >= some.mean() - 1e-6 * np.sum(step**2) - 1e-15


def test_gaps_after_which_accuracy_is_settled(modules):
    scores = [0.5, 0.9, 0.8, 0.801, 0.8005, 0.8]
    gaps = [1.0, 0.5, 0.3, 0.1, 0.02, 0.01]
    found = np.column_stack([scores, gaps])
    assert modules.accuracy.effective(found, 1, 5e-3) == 0.3
    assert modules.accuracy.effective(found, 1, 7e-4) == 0.02
    assert modules.accuracy.effective(found, 1, 1.0) == 1.0


def test_quadratics_are_those_of_the_source(modules):
    """Condition number 4.9e3 (Yu 2009, section 5.5.4); oBFGS arrives."""
    J = modules.quadratics.jacobian()
    assert_allclose(np.linalg.cond(J @ J.T), 4.9e3, rtol=0.02)
    experiment = modules.quadratics.Experiment(
        0.0, 1e-10, modules.quadratics.REALIZABLE
    )
    points, curve = modules.quadratics.trial(
        modules.quadratics.make("obfgs", 64, {"c": 0.1, "b": 1.0}),
        64,
        experiment,
        0,
        2**16,
        2**10,
    )
    assert points == curve[-1][0] < 2**15
    assert curve[-1][1] <= 1e-10 < curve[-2][1]


@pytest.mark.parametrize("seed", range(3))
def test_inconsistent_gradients_need_large_batches(modules, seed):
    """Section 5.6.1: batches of about a thousand, and several times the data points."""
    q = modules.quadratics
    experiment = q.Experiment(0.0, 1e-15, q.REALIZABLE)

    def needed(b):
        method = q.make("inconsistent", b, {"b": 1.0, "epsilon": 1e-2})
        with np.errstate(all="ignore"):
            return q.trial(method, b, experiment, seed, 2**16, 2**17)[0]

    assert 20_000 < needed(1024) < np.inf
    assert np.isnan(needed(16))

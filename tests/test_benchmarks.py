"""The harness of the benchmarks, and the cases of the papers on generated data."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from argparse import ArgumentParser
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import sklearn_subqn

FOLDER = Path(__file__).parents[1] / "benchmarks"
PAGES = FOLDER.parent / "docs" / "papers"
pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="there are no benchmarks beside the tests"
)


@pytest.fixture(scope="module")
def modules():
    """The modules of the folder, which import each other by their names."""
    sys.path.insert(0, str(FOLDER))
    try:
        names = ("_case", "accuracy", "chains", "curves", "quadratics", "res")
        found = {name: import_module(f"papers.{name}") for name in names}
        found |= {
            "harness": import_module("_harness"),
            "papers": import_module("papers"),
            "sequences": import_module("sequences"),
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


def test_benchmarks_run_by_the_installed_package(tmp_path):
    """Sources beside the benchmarks, without kernels, do not hide it."""
    for name in ("benchmarks", "sklearn_subqn"):
        (tmp_path / name).mkdir()
    shutil.copy(FOLDER / "__main__.py", tmp_path / "benchmarks")
    (tmp_path / "sklearn_subqn" / "__init__.py").touch()
    finds = "import importlib.util as u; print(u.find_spec('sklearn_subqn').origin)"
    (tmp_path / "benchmarks" / "script.py").write_text(finds)
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "script"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(sklearn_subqn.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(done.stdout.strip()) == Path(sklearn_subqn.__file__)


@pytest.mark.parametrize("path", sorted(PAGES.glob("*.md")), ids=lambda p: p.stem)
def test_pages_of_papers_state_the_commit(modules, path):
    text = path.read_text(encoding="utf-8")
    assert path.stem in modules.papers.CASES
    assert f"`python -m benchmarks papers {path.stem}" in text
    assert re.search(r"sklearn-subqn \S+ \(commit [0-9a-f]{7,}( with changes)?\)", text)


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


def generated(data, loss, *_):
    """Small data for a problem of a paper: ten columns of different scales, or text."""
    rng = np.random.default_rng(sum(map(ord, data)))
    X = rng.normal(size=(200, 10)) * np.geomspace(0.3, 3.0, 10)
    if data == "rcv1_ccat":
        X = sparse.random_array((120, 300), density=0.03, rng=rng, format="csr")
    elif data == "leukemia":
        X = rng.normal(size=(38, 300))
    scores = X @ rng.normal(size=(X.shape[1], 5))
    scores = scores / scores.std() + 0.7 * rng.gumbel(size=scores.shape)
    if loss == "multiclass":
        return X, scores.argmax(axis=1)
    if loss == "multilabel":
        return X, (scores > 0.5).astype(np.uint8)
    return X, np.where(scores[:, 0] > np.median(scores[:, 0]), 1.0, -1.0)


SHOWN: set[str] = set()


def cases(*names):
    """Parametrize a test by cases of the papers, and note that they are run."""
    SHOWN.update(names)
    return pytest.mark.parametrize("case", names, indirect=True)


@pytest.fixture
def case(request, modules, monkeypatch):
    monkeypatch.setattr(modules._case, "_load", generated)
    modules._case.optimum.cache_clear()
    return modules.papers.CASES[request.param]


class Small:
    """A figure by iterations, on generated data for the first problem of a data set."""

    def __init__(self, case, data, names=None, max_iter=100, limit=np.inf):
        (problem, *_) = [p for p in case.run.problems if p.data == data]
        names = names or [*case.run.methods]
        given = {name: case.run.methods[name] for name in names}
        how = {"x": "iterations", "limit": limit, "max_iter": max_iter}
        self._figure = replace(
            case.run, problems=[problem], methods=given, precision=1e-7, **how
        )
        settings = sys.modules["papers"].Settings()
        self.best, self.runs = self._figure.measure(settings)[problem]

    def first(self, name, level):
        """Return the iteration after which a level is reached, infinity for none."""
        found = self._figure.first(self.runs[name], level, self.best)
        return np.inf if found is None else found

    def excess(self, name):
        return self.runs[name].objective[-1] / self.best - 1.0


def by_strength(case, data, alphas, max_iter=200):
    """Return iterations by alpha for each method, infinity where it does not arrive."""
    problem = next(pair for pair in case.run.data if pair[0] == data)
    small = replace(
        case.run,
        **{"data": [problem], "alphas": alphas, "x": "iterations", "limit": np.inf},
        max_iter=max_iter,
    )
    found = small.measure(sys.modules["papers"].Settings())
    return {
        name: [np.inf if n is None else n for n in costs]
        for (_, name), costs in found.items()
    }


def conclusion(test):
    """Mark a test of what a figure shows."""
    ignored = "ignore::sklearn.exceptions.ConvergenceWarning"
    return pytest.mark.filterwarnings(ignored)(test)


@conclusion
@cases("yu-3.2-left")
def test_exact_steps_of_lbfgs_end_far_from_the_optimum(case):
    small = Small(case, "leukemia", ["subLBFGS", "L-BFGS, exact"], 150)
    assert small.runs["L-BFGS, exact"].end == "no progress"
    assert small.excess("L-BFGS, exact") > 2.0 * small.excess("subLBFGS")


@conclusion
@cases("yu-3.2-right")
def test_lbfgs_loses_iterations_by_its_unit_step(case):
    small = Small(case, "letter", max_iter=20)
    others = [name for name in small.runs if name != "subLBFGS"]
    assert all(small.first(n, 0.1) > small.first("subLBFGS", 0.1) for n in others)


@conclusion
@cases("yu-3.3")
def test_subgradient_descent_is_far_behind(case):
    small = Small(case, "usps", max_iter=50)
    assert 2 * small.first("subLBFGS", 0.02) < small.first("subGD", 0.02)
    assert 2 * small.first("subLBFGS", 0.02) < small.first("GD", 0.02)


@conclusion
@cases("yu-3.7")
def test_convergence_does_not_become_quicker_near_the_optimum(case):
    small = Small(case, "usps", max_iter=150)
    early, late = (small.first("subLBFGS", level) for level in (1e-2, 1e-3))
    assert late > 2 * early


@conclusion
@cases("yu-4.1")
def test_fine_directions_take_many_searches_and_save_few_iterations(case):
    small = Small(case, "usps", max_iter=60)
    coarse, usual, fine = (small.runs[f"ε = {e:g}"] for e in (1.0, 1e-5, 1e-10))
    assert coarse.k <= usual.k
    assert 5 * usual.k < fine.k
    firsts = [small.first(name, 0.02) for name in small.runs]
    assert max(firsts) <= 1.5 * min(firsts)


@conclusion
@cases("yu-4.2")
def test_numbers_of_pairs_are_alike(case):
    small = Small(case, "usps", max_iter=40)
    firsts = [small.first(name, 0.02) for name in small.runs]
    assert max(firsts) <= 1.5 * min(firsts)


@conclusion
@cases("yu-table-4.2")
def test_first_guesses_of_directions_mostly_descend(case, modules, monkeypatch):
    """A row on a kink is one of many then, and changes little."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 10))
    y = np.where(X.sum(axis=1) + 3.0 * rng.normal(size=5000) > 0.0, 1.0, -1.0)
    monkeypatch.setattr(modules._case, "_load", lambda *_: (X, y))
    assert Small(case, "covtype", max_iter=30).runs["subLBFGS"].k <= 3


@conclusion
@cases("yu-table-4.3")
def test_searches_for_directions_are_early(case):
    early, late = (Small(case, "letter", max_iter=n).runs for n in (40, 120))
    assert 0 < late["subLBFGS"].k <= 1.5 * early["subLBFGS"].k


@conclusion
@cases("yu-4.3", "yu-4.7", "yu-4.9")
def test_sublbfgs_is_far_ahead_of_bmrm_and_early_of_its_line_search(case):
    data = {"yu-4.3": "covtype", "yu-4.7": "mnist", "yu-4.9": "scene"}[case.name]
    small = Small(case, data)
    assert 2 * small.first("subLBFGS", 0.02) < small.first("BMRM", 0.02)
    assert small.first("subLBFGS", 0.1) <= small.first("ls-BMRM", 0.1)
    # Late, the line search of BMRM goes on.
    assert small.excess("ls-BMRM") < small.excess("subLBFGS")


@conclusion
@cases("yu-4.4", "yu-4.8", "yu-4.10")
def test_weak_strengths_are_hard_for_bmrm_alone(case):
    data = {"yu-4.4": "covtype", "yu-4.8": "letter", "yu-4.10": "scene"}[case.name]
    costs = by_strength(case, data, (1e-1, 1e-3), 60)
    assert 3 * costs["BMRM"][0] < costs["BMRM"][1]
    for method in ("subLBFGS", "ls-BMRM"):
        assert costs[method][0] < costs["BMRM"][0]
        assert costs[method][1] < costs["BMRM"][1] / 1.5


@conclusion
@cases("yu-4.5")
def test_random_subgradients_leave_better_directions_on_their_curve(case):
    small = Small(case, "rcv1_ccat", max_iter=200)
    assert abs(small.excess("OWL-QN*r") - small.excess("OWL-QN*")) < 5e-3
    assert small.excess("OWL-QNr") > small.excess("OWL-QN") + 0.01


@conclusion
@cases("yu-4.6")
def test_better_directions_are_as_quick_but_on_text(case):
    costs = by_strength(case, "covtype", (1e-2, 1e-4))
    assert np.max(np.abs(np.subtract(costs["OWL-QN*"], costs["OWL-QN"]))) <= 1
    costs = by_strength(case, "rcv1_ccat", (1e-3, 1e-6))
    assert costs["OWL-QN*"][0] <= 1.2 * costs["OWL-QN"][0]
    assert costs["OWL-QN*"][1] > 1.2 * costs["OWL-QN"][1]


@conclusion
@cases("teo-4")
def test_gaps_fall_faster_than_the_bound(case):
    small = Small(case, "a9a", max_iter=150)
    tenth, thousandth = (small.first("BMRM", level) for level in (0.1, 1e-3))
    assert thousandth < 4 * tenth
    text = [p for p in case.run.problems if p.data == "rcv1_ccat"]
    strong, weak = (
        case._replace(run=replace(case.run, problems=[p])) for p in text[:2]
    )
    first = Small(strong, "rcv1_ccat").first("BMRM", 0.1)
    assert first < Small(weak, "rcv1_ccat").first("BMRM", 0.1)


@conclusion
@cases("teo-5")
def test_fifty_cuts_are_as_good_as_all(case):
    small = Small(case, "a9a", max_iter=80)
    all_cuts = small.first("BMRM, k unlimited", 0.02)
    assert small.first("BMRM, k = 50", 0.02) <= 1.2 * all_cuts
    assert small.first("BMRM, k = 10", 0.02) > all_cuts


@conclusion
@cases("teo-8")
def test_line_search_takes_a_fraction_of_the_iterations(case):
    costs = by_strength(case, "covtype", (1e-3,), 100)
    assert 3 * costs["LSBMRM"][0] < costs["BMRM"][0]
    assert costs["BT"][0] < costs["BMRM"][0]


@conclusion
@cases("teo-9", "teo-10")
def test_liblinear_arrives_where_steps_of_bmrm_stall(case):
    peer = Small(case, "rcv1_ccat", ["LIBLINEAR"], limit=0.1)
    assert peer.first("LIBLINEAR", 1e-3) < np.inf
    ours = [name for name in case.run.methods if name != "LIBLINEAR"]
    small = Small(case, "covtype", ours)
    assert small.first("BMRM", 1e-3) > 40
    if case.name == "teo-9":
        assert 3 * small.first("LSBMRM", 0.02) < small.first("BMRM", 0.02)


@conclusion
@cases("teo-7", "teo-table-2")
def test_accuracy_is_settled_before_the_gap_is_closed(case, modules):
    """It changes by less than half a point below gaps far above the last one."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=10)
    X = rng.normal(size=(1200, 10))
    y = np.where(X @ w + rng.normal(size=1200) > 0.0, 1.0, -1.0)
    parts = [(X[part], y[part]) for part in np.split(np.arange(1200), [300, 500])]
    alpha = modules.accuracy.best_alpha(*parts[:2])
    assert alpha in modules.accuracy.ALPHAS
    found = modules.accuracy.watch("ls-bmrm", alpha, parts[0], parts[2], 10.0)
    settled = modules.accuracy.effective(found, 1, 5e-3)
    assert found[-1, 1] <= 1e-4 < settled / 3.0


@cases("yu-5.2", "yu-5.3", "schraudolph-2")
def test_online_bfgs_is_far_ahead_of_gradient_descent(case, modules):
    q = modules.quadratics
    experiment = case.run.args[0]

    def points(label, b=4):
        name, given = experiment.methods[label]
        with np.errstate(all="ignore"):
            trial = q.trial(q.make(name, b, given), b, experiment, 0, 2**14, 2**12)
        return np.nan_to_num(trial[0], nan=np.inf)

    assert 8 * points("oBFGS") < points("SGD")
    assert points("oBFGS") < points("NG")
    ratio = points("oLBFGS, m = 10") / points("oBFGS")
    assert 0.5 < ratio < 2.0 < points("oLBFGS, m = 4") / points("oLBFGS, m = 10")


@cases("yu-3.1", "yu-a.1", "yu-a.2", "yu-a.3")
def test_subbfgs_goes_on_where_others_stop(case, modules):
    t, experiment = modules.papers.trajectories, case.run.args[0]
    given = experiment.method, experiment.knows, experiment.options
    others, _ = t.steps(experiment, *given)
    ours, result = t.steps(experiment, "subbfgs", True, t.EXACT)
    if case.name == "yu-3.1":
        # Inexact steps cross the hinge many times.
        assert np.sum(np.abs(others[:8, 0]) > 1e-6) >= 6
        np.testing.assert_allclose(ours[1], [0.0, 0.9], atol=1e-12)
        np.testing.assert_allclose(ours[2], 0.0, atol=1e-11)
        assert result.success
    elif case.name == "yu-a.1":
        assert np.all(others[:, 0] > 0.0)
        np.testing.assert_allclose(others[-1], 0.0, atol=1e-3)
        assert "falls without end" in result.message
    elif case.name == "yu-a.2":
        expected = (-1.0 / 3.0) ** np.arange(len(others))
        np.testing.assert_allclose(others[:, 0], expected, rtol=1e-3)
        np.testing.assert_allclose(ours[2], [100.0, -300.0], rtol=1e-9)
        assert result.fun == pytest.approx(-100.0, abs=1e-9)
    else:
        # BFGS stays where its first step ends.
        np.testing.assert_allclose(others[1:], others[1:2] + 0.0 * others[1:])
        assert "falls without end" in result.message
    text, draw = case.run(sys.modules["papers"].Settings())
    assert "subBFGS" in text
    assert len(draw().axes) == 2


@pytest.mark.slow
@conclusion
@cases("teo-6")
def test_workers_take_the_same_iterations(case, modules):
    """BMRM needs sums over rows alone, wherever these are."""
    pytest.importorskip("distributed")
    one, two = (modules.papers.workers.fit(k, 3, 5, 200, 8) for k in (1, 2))
    assert one.iterations == two.iterations == 8
    assert two.objective == pytest.approx(one.objective, rel=1e-9)


@conclusion
@cases("yu-6.1", "yu-6.2", "yu-6.3", "schraudolph-3")
def test_online_lbfgs_is_lowest_after_three_passes(case, modules, monkeypatch):
    monkeypatch.setattr(modules.sequences, "load", lambda *_: noisy_chains(modules))
    experiment = case.run.args[0]._replace(passes=3, batch_passes=3)
    curves, _ = modules.chains.measure(experiment, modules._case.Settings())
    ends = {method: values[-1] for method, (_, values, _) in curves.items()}
    assert all(ends["oLBFGS"] <= 1.005 * end for end in ends.values())
    assert 1.2 * ends["oLBFGS"] < ends["L-BFGS"]
    scores = {method: max(f.values()) for method, (_, _, f) in curves.items()}
    assert scores["oLBFGS"] > 50.0


def noisy_chains(modules):
    """Sentences of chunks, whose tokens name their tags two times of three."""
    rng = np.random.default_rng(0)

    def sentence():
        tags = ["O"]
        for _ in range(9):
            inside = tags[-1] != "O"
            tags.append(rng.choice(["O", "B-X", "I-X" if inside else "O"]))
        heard = [tag if rng.random() < 2 / 3 else "O" for tag in tags]
        words = [f"w{rng.integers(30)}" for _ in tags]
        return [{"tag": h, "word": w} for h, w in zip(heard, words, strict=True)], tags

    parts = [[sentence() for _ in range(n)] for n in (80, 40)]
    pairs = [list(map(list, zip(*part, strict=True))) for part in parts]
    return modules.sequences.Task(*pairs[0], *pairs[1])


@conclusion
@cases("mokhtari-1", "mokhtari-2")
def test_regularized_bfgs_is_ahead_of_gradient_descent(case, modules):
    res, n = modules.res, case.run.args[0]
    data = res.sample(n, 2000, np.random.default_rng(n))
    until, start = (1740, np.zeros(n)) if n == 4 else (3500, np.ones(n))

    def reached(method, beta):
        model, rng = res.model(method, 0.5, beta=beta), np.random.default_rng(0)
        return res.curve(model, data, start, 0.5, [until], rng)[-1]

    best = res.optimum(data, 0.5)
    assert best < reached("RES", 2e-3)
    assert reached("RES", 2e-3) - best < 0.5 * (reached("SGD", 1.0) - best)


@cases("mokhtari-3")
def test_accuracies_are_far_above_the_published_ones(case, modules):
    res, rng = modules.res, np.random.default_rng(2)
    train, (X, y) = res.sample(4, 2500, rng), res.sample(4, 4000, rng)
    shares = {}
    for method, beta in (("RES", 2e-3), ("SGD", 1.0)):
        fitted = res.model(method, 0.5, beta=beta)
        fitted.partial_fit(*train, classes=[-1, 1])
        margins = y * (X @ fitted.coef_[0])
        assert np.mean(margins > 0) > 0.97
        shares[method] = np.mean(margins >= 1)
    assert shares["SGD"] < 0.6 < 0.8 < shares["RES"]


@conclusion
@cases("mokhtari-4")
def test_regularization_limits_jumps(case, modules):
    res = modules.res
    data = res.sample(10, 2000, np.random.default_rng(1))
    grid = [*range(25, 3001, 25)]

    def largest(method):
        model, rng = (
            res.model(method, 0.5, eta0=0.1, tau=None),
            np.random.default_rng(0),
        )
        return max(res.curve(model, data, np.zeros(10), 0.5, grid, rng)[40:])

    assert 10 * largest("RES") < largest("BFGS")


def test_every_case_of_the_papers_is_run(modules):
    assert set(modules.papers.CASES) == SHOWN

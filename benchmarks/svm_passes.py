"""Passes over the data that each solver of ours needs to reach relative gaps.

    python benchmarks/svm_passes.py --data-dir DIR

A pass is one product with X or its transpose; products with some of the rows count by
their share. The figures do not depend on the machine. The objective's gap is measured
against reference_optima.json, the certified one is what the fit itself proves.
"""

from __future__ import annotations

import warnings
from typing import Any

import common
import datasets
import numpy as np
from _harness import Benchmark
from common import Problem

GAPS = (2e-2, 1e-2, 1e-3, 1e-4)
GRID = [("hinge", b, (1e-4, 1e-5, 1e-6)) for b in (False, True)]
GRID += [("squared_hinge", b, (1e-5,)) for b in (False, True)]
DEFAULT_DATA = ["a9a", "covtype", "rcv1_ccat", "mnist", "dense", "text"]
NAME = "svm_passes"


def fit(
    data: datasets.Dataset,
    problem: Problem,
    solver: str,
    tol: float,
    max_passes: float,
) -> Any:
    """Return an estimator of ours, fitted."""
    from sklearn_subqn import SubLBFGSLinearSVC

    estimator = SubLBFGSLinearSVC(
        problem.alpha,
        loss=problem.loss,
        solver=solver,
        fit_intercept=problem.intercept,
        tol=tol,
        max_iter=10**7,
        callback=lambda progress: progress.passes > max_passes,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(data.X, data.y)


def run(
    data: datasets.Dataset, problem: Problem, solver: str, max_passes: float
) -> dict[str, Any]:
    """Return the passes at which gaps of the objective and proven gaps are reached."""
    # What "auto" does depends on the gap that is asked for.
    fits = [
        fit(data, problem, solver, gap, max_passes)
        for gap in (GAPS if solver == "auto" else GAPS[-1:])
    ]
    estimator = fits[-1]
    history = estimator.history_[0]
    objective = history.objective
    best = min(common.reference(problem), objective[-1])

    def first(gap: float, certified: bool) -> float | None:
        passes = []
        for h in (one.history_[0] for one in fits):
            reference = np.array(h.lower_bound) if certified else best
            reached = np.array(h.objective) - reference <= gap * (
                np.array(h.objective) if certified else best
            )
            if reached.any():
                passes.append(h.passes[int(np.argmax(reached))])
        return round(min(passes), 1) if passes else None

    return {
        "objective": [first(gap, certified=False) for gap in GAPS],
        "certified": [first(gap, certified=True) for gap in GAPS],
        "final_passes": history.passes[-1],
        "final_gap": common.gap(float(objective[-1]), best),
        "final_certified_gap": estimator.dual_gap_ / estimator.objective_,
        "n_iter": estimator.n_iter_,
        "seconds": history.seconds[-1],
    }


def render(results: dict[str, Any]) -> str:
    """Return the Markdown tables of the results."""
    parts = []
    rows = results["rows"]
    groups = sorted({(row["loss"], row["intercept"]) for row in rows})
    for loss, intercept in groups:
        group = [r for r in rows if (r["loss"], r["intercept"]) == (loss, intercept)]
        title = f"{loss.replace('_', ' ')}, {'with' if intercept else 'no'} intercept"
        header = ["data", "alpha", "solver", *(f"{gap:g}" for gap in GAPS)]
        group.sort(key=lambda r: (r["data"], -r["alpha"], r["solver"]))
        lines = [
            [
                row["data"],
                f"{row['alpha']:g}",
                row["solver"],
                *map(_cell, row["objective"], row["certified"]),
            ]
            for row in group
        ]
        parts.append(f"**{title}**\n\n{common.markdown_table(header, lines)}")
    return "\n\n".join(parts)


def _cell(objective: float | None, certified: float | None) -> str:
    def number(passes: float | None) -> str:
        return "–" if passes is None else f"{passes:.0f}"

    return f"{number(objective)} ({number(certified)})"


def measure(name: str, args: Any, results: common.Results) -> None:
    data = datasets.load(name, args.data_dir, args.cache_dir)
    for problem in common.problems(args, name, GRID):
        for solver in common.solvers_for(problem.loss, data.X.shape[1], args.solvers):
            row = run(data, problem, solver, args.max_passes)
            key = f"{problem.key} | {solver}"
            results.add(key, **problem._asdict(), solver=solver, **row)
            cells = map(_cell, row["objective"], row["certified"])
            print(f"{key}:", "  ".join(cells), flush=True)


BENCHMARK = Benchmark(
    NAME,
    __doc__,
    measure,
    render,
    DEFAULT_DATA,
    each=True,
    **common.PROBLEM_OPTIONS,
    solvers={"default": [str], "help": "default: all that suit the loss"},
    max_passes=1000.0,
)

if __name__ == "__main__":
    BENCHMARK.run()

"""Passes over the data that each solver of ours needs to reach relative gaps.

    python -m benchmarks svm_passes

A pass is one product with X or its transpose; products with some of the rows count by
their share. The figures do not depend on the machine. The objective's gap is measured
against what the default solver proves to 1e-6, the certified one is what the fit itself
proves.
"""

from __future__ import annotations

from typing import Any

import common
import datasets
import numpy as np
from _harness import Benchmark
from svm import ours

GAPS = (2e-2, 1e-2, 1e-3, 1e-4)
HINGE = [("hinge", b, (1e-4, 1e-5, 1e-6)) for b in (False, True)]
SQUARED = [("squared_hinge", b, (1e-5,)) for b in (False, True)]
DATA = ["a9a", "covtype", "rcv1_ccat", "mnist", "dense", "text"]
SOLVERS = {
    "hinge": ("auto", "sublbfgs", "subbfgs", "alm"),
    "squared_hinge": (
        *("auto", "sublbfgs", "subbfgs", "lbfgs", "bfgs"),
        *("newton-cg", "trust-region", "cg"),
    ),
}


def solvers_for(loss: str, n_features: int, chosen: Any) -> list[str]:
    """Return our solvers for a loss, or the chosen ones among them."""
    # Full matrices of n_features² entries only where they are small.
    dense = {"bfgs", "subbfgs"} if n_features > 2000 else set()
    able = [name for name in SOLVERS[loss] if name not in dense]
    return able if chosen is None else [name for name in chosen if name in able]


def run(
    data: Any, problem: common.Problem, solver: str, best: float, most: float
) -> dict[str, Any]:
    """Return the passes at which gaps of the objective and proven gaps are reached."""
    # What "auto" does depends on the gap that is asked for.
    fits = [
        ours(
            data.X,
            data.y,
            problem,
            gap,
            solver=solver,
            max_iter=10**7,
            callback=lambda progress: progress.passes > most,
        )
        for gap in (GAPS if solver == "auto" else GAPS[-1:])
    ]
    last = fits[-1].history_[0]

    def first(gap: float, certified: bool) -> float | None:
        passes = []
        for history in (fit.history_[0] for fit in fits):
            objective = np.array(history.objective)
            bound = np.array(history.lower_bound) if certified else best
            reached = objective - bound <= gap * (objective if certified else best)
            if reached.any():
                passes.append(history.passes[int(np.argmax(reached))])
        return round(min(passes), 1) if passes else None

    return {
        "objective": [first(gap, certified=False) for gap in GAPS],
        "certified": [first(gap, certified=True) for gap in GAPS],
        "final_passes": last.passes[-1],
        "final_certified_gap": fits[-1].dual_gap_ / fits[-1].objective_,
        "n_iter": fits[-1].n_iter_,
    }


def render(results: dict[str, Any]) -> str:
    """Return the Markdown tables of the results."""
    parts = []
    rows = results["rows"]
    for loss, intercept in sorted({(row["loss"], row["intercept"]) for row in rows}):
        group = [r for r in rows if (r["loss"], r["intercept"]) == (loss, intercept)]
        title = f"{loss.replace('_', ' ')}, {'with' if intercept else 'no'} intercept"
        header = ["data", "alpha", "solver", *(f"{gap:g}" for gap in GAPS)]
        group.sort(key=lambda r: (r["data"], -r["alpha"], r["solver"]))
        lines = [
            [row["data"], f"{row['alpha']:g}", row["solver"], *cells_of(row)]
            for row in group
        ]
        parts.append(f"**{title}**\n\n{common.markdown_table(header, lines)}")
    return "\n\n".join(parts)


def cells_of(row: dict[str, Any]) -> list[str]:
    def number(passes: float | None) -> str:
        return "–" if passes is None else f"{passes:.0f}"

    pairs = zip(row["objective"], row["certified"], strict=True)
    return [f"{number(objective)} ({number(proven)})" for objective, proven in pairs]


def measure(name: str, args: Any, results: common.Results) -> None:
    data = datasets.load(name, args.data_dir, args.cache_dir)
    for loss, intercept, alphas in [*HINGE, *SQUARED]:
        for alpha in args.alphas or alphas:
            problem = common.Problem(name, loss, alpha, intercept)
            exact = ours(data.X, data.y, problem, 1e-6)
            best = exact.objective_ - exact.dual_gap_
            for solver in solvers_for(loss, data.X.shape[1], args.solvers):
                row = run(data, problem, solver, best, args.max_passes)
                key = f"{problem.key} | {solver}"
                results.add(key, **problem._asdict(), solver=solver, **row)
                print(f"{key}:", "  ".join(cells_of(row)), flush=True)


BENCHMARK = Benchmark(
    "svm_passes",
    __doc__,
    measure,
    render,
    DATA,
    each=True,
    alphas=[float],
    solvers={"default": [str], "help": "default: all that suit the loss"},
    max_passes=1000.0,
)

if __name__ == "__main__":
    BENCHMARK.run()

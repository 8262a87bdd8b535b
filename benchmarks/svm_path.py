"""CPU seconds of a path of alphas: warm, by separate fits, and by LinearSVC.

    python benchmarks/svm_path.py --data-dir DIR

Twenty alphas from 1e-2 to 1e-6, hinge loss, no intercept, one thread. The path is that
of SubLBFGSLinearSVCCV on one split that trains on all rows; like the separate fits it
proves a gap of 1e-3 for each alpha. LinearSVC is given the loosest of a ladder of
tolerances whose objective is within 1e-3 of the optimum, and the time of the last one
where none is; finding it is not counted.
"""

from __future__ import annotations

import statistics
from functools import partial
from typing import Any

import common
import datasets
import numpy as np
from _harness import Benchmark
from _race import climb, timed
from svm import TOLERANCES, excess_over, linear_svc, ours

from sklearn_subqn import SubLBFGSLinearSVCCV

NAME = "svm_path"
GAP = 1e-3
ALPHAS = np.geomspace(1e-2, 1e-6, 20)


def path(X: Any, y: Any) -> SubLBFGSLinearSVCCV:
    rows = np.arange(len(y))
    return SubLBFGSLinearSVCCV(
        ALPHAS, cv=[(rows, rows[:2])], fit_intercept=False, tol=GAP, refit=False
    ).fit(X, y)


def render(results: dict[str, Any]) -> str:
    rows = []
    for row in results["rows"]:
        warm = statistics.median(row["warm"])
        separate = statistics.median(map(sum, row["separate"]))
        ratios = [a / sum(b) for a, b in zip(row["warm"], row["separate"], strict=True)]
        cells = [f"{warm:.2f}", f"{separate:.2f}", f"{statistics.median(ratios):.2f}"]
        peer = f"{sum(row['linear_svc']):.1f} ({row['n_reached']} of {len(ALPHAS)})"
        rows.append([row["data"], *cells, f"{row['largest_gap']:.0e}", peer])
    header = ["data", "path", "separate fits", "ratio", "largest gap proven"]
    return (
        "Twenty alphas from 1e-2 to 1e-6, each proven to 1e-3; seconds of processor "
        "time, one thread. LinearSVC: in brackets how many of its fits come within "
        "1e-3 of the optimum.\n\n"
        + common.markdown_table([*header, "LinearSVC"], rows)
        + "\n"
    )


def measure(name: str, args: Any, results: common.Results) -> None:
    data = datasets.load(name, args.data_dir, args.cache_dir)
    X, y = data.X, data.y
    problems = [common.Problem(name, "hinge", float(a), False) for a in ALPHAS]
    warm, separate = [], []
    for _ in range(args.repeats):
        model, seconds = timed(lambda: path(X, y))
        warm.append(seconds)
        fits = [timed(partial(ours, X, y, problem, GAP)) for problem in problems]
        separate.append([seconds for _, seconds in fits])
    peer = []
    for problem, (fit, _) in zip(problems, fits, strict=True):
        bound = fit.objective_ - fit.dual_gap_
        fit_peer = partial(linear_svc, X, y, problem, True)
        excess = partial(excess_over, X, y, problem, bound)
        end = climb(TOLERANCES, fit_peer, excess, [GAP], args.limit)
        peer.append((end.seconds.get(f"{GAP:g}", end.closest[1]), bool(end.seconds)))
    results.add(
        name,
        data=name,
        warm=warm,
        separate=separate,
        largest_gap=float(model.gaps_path_.max()),
        linear_svc=[seconds for seconds, _ in peer],
        n_reached=sum(reached for _, reached in peer),
    )


BENCHMARK = Benchmark(
    NAME,
    __doc__,
    measure,
    render,
    ["rcv1_ccat", "a9a", "covtype"],
    each=True,
    repeats=5,
    limit={"default": 2.0, "help": "seconds for a ladder of LinearSVC"},
)

if __name__ == "__main__":
    BENCHMARK.run()

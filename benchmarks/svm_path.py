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
from typing import Any

import common
import datasets
import numpy as np
from _harness import Benchmark
from sklearn.svm import LinearSVC
from svm_quick import GAP, LADDER, cpu_seconds

from sklearn_subqn import SubLBFGSLinearSVC, SubLBFGSLinearSVCCV

NAME = "svm_path"
ALPHAS = np.geomspace(1e-2, 1e-6, 20)


def path(X: Any, y: Any) -> SubLBFGSLinearSVCCV:
    rows = np.arange(len(y))
    return SubLBFGSLinearSVCCV(
        ALPHAS, cv=[(rows, rows[:2])], fit_intercept=False, tol=GAP, refit=False
    ).fit(X, y)


def linear_svc(
    data: datasets.Dataset, alpha: float, bound: float, limit: float
) -> tuple[float, bool]:
    """Return the seconds of a LinearSVC, and whether it came within the gap."""
    problem = common.Problem(data.name, "hinge", alpha, False)
    seconds = 0.0
    for tol in LADDER:
        C = 1.0 / (len(data.y) * alpha)
        model = LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=tol)
        seconds, model = cpu_seconds(lambda model=model: model.fit(data.X, data.y), 1)
        value = common.objective(data.X, data.y, model.coef_.ravel(), 0.0, problem)
        if value - bound <= GAP * value:
            return seconds, True
        if seconds > limit:
            break
    return seconds, False


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
    warm, separate = [], []
    for _ in range(args.repeats):
        seconds, model = cpu_seconds(lambda: path(X, y), 1)
        warm.append(seconds)
        fits = [
            cpu_seconds(
                lambda alpha=alpha: SubLBFGSLinearSVC(
                    alpha, fit_intercept=False, tol=GAP
                ).fit(X, y),
                1,
            )
            for alpha in ALPHAS
        ]
        separate.append([seconds for seconds, _ in fits])
    bounds = [fit.objective_ - fit.dual_gap_ for _, fit in fits]
    peer = [
        linear_svc(data, float(alpha), bound, args.limit)
        for alpha, bound in zip(ALPHAS, bounds, strict=True)
    ]
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
    limit={"default": 2.0, "help": "seconds per LinearSVC"},
)

if __name__ == "__main__":
    BENCHMARK.run()

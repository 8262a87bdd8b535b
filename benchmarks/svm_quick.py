"""CPU seconds of one thread to a relative gap of 1e-3: ours, proven, and LinearSVC.

python benchmarks/svm_quick.py --data-dir DIR

A few minutes, and little disturbed by other work on the machine: it measures processor
time, not time on the clock. Hinge loss, no intercept. LinearSVC is given the loosest of
a ladder of tolerances that reaches the gap; finding it is not counted.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import common
import datasets
from _harness import Benchmark
from sklearn.svm import LinearSVC

from sklearn_subqn import SubLBFGSLinearSVC

GAP = 1e-3
LADDER = (0.3, 0.1, 0.03, 0.01, 1e-3)
ALPHAS = (1e-4, 1e-5, 1e-6)


def cpu_seconds(fit: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the median and the last result."""
    seconds = []
    for _ in range(repeats):
        begin = time.process_time()
        model = fit()
        seconds.append(time.process_time() - begin)
    return statistics.median(seconds), model


def row(data: datasets.Dataset, alpha: float, args: Any) -> list[str]:
    """Measure one problem."""
    X, y = data.X, data.y
    problem = common.Problem(data.name, "hinge", alpha, False)
    exact = SubLBFGSLinearSVC(alpha, fit_intercept=False, tol=1e-5).fit(X, y)
    bound = exact.objective_ - exact.dual_gap_
    ours, model = cpu_seconds(
        lambda: SubLBFGSLinearSVC(alpha, fit_intercept=False, tol=GAP).fit(X, y),
        args.repeats,
    )
    cell = "–"
    for tol in LADDER:
        peer = LinearSVC(
            loss="hinge", C=1 / (len(y) * alpha), fit_intercept=False, tol=tol
        )
        seconds, peer = cpu_seconds(lambda peer=peer: peer.fit(X, y), 1)
        value = common.objective(X, y, peer.coef_.ravel(), 0.0, problem)
        distance = (value - bound) / bound
        if distance <= GAP:
            seconds, _ = cpu_seconds(lambda peer=peer: peer.fit(X, y), args.repeats)
            cell = f"{seconds:.2f}"
            break
        cell = f"– (at {distance:.0e} after {seconds:.1f})"
        if seconds > args.limit:
            break
    gap = model.dual_gap_ / model.objective_
    passes = model.history_[0].passes[-1]
    return [data.name, f"{alpha:g}", f"{ours:.2f}", f"{gap:.0e}", f"{passes:.0f}", cell]


def measure(name: str, args: Any, results: common.Results) -> None:
    data = datasets.load(name, args.data_dir, args.cache_dir)
    for alpha in ALPHAS:
        cells = row(data, alpha, args)
        results.add(f"{name} | {alpha:g}", cells=cells)
        print(*cells, sep="  ", flush=True)


def render(results: dict[str, Any]) -> str:
    header = ["data", "alpha", "ours, proven", "gap proven", "passes", "LinearSVC"]
    return common.markdown_table(header, [row["cells"] for row in results["rows"]])


BENCHMARK = Benchmark(
    "svm_quick",
    __doc__,
    measure,
    render,
    ["a9a", "covtype", "rcv1_ccat", "mnist"],
    each=True,
    repeats=5,
    limit={"default": 5.0, "help": "seconds per LinearSVC"},
)

if __name__ == "__main__":
    BENCHMARK.run()

"""CPU seconds on wide data, with more features than rows, beside LinearSVC.

    python benchmarks/svm_wide.py --data-dir DIR

Leukemia (38 rows of gene expressions) and generated data, no intercept, one thread.
Ours proves gaps of 1e-3 and 1e-6. LinearSVC (dual) is given the loosest of a ladder of
tolerances with which its objective is within 1e-3 of the optimum, or the last one if
there is none; finding it is not counted.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

import common
import datasets
import numpy as np
from _harness import Benchmark
from sklearn.datasets import make_classification
from sklearn.svm import LinearSVC
from svm_quick import cpu_seconds

from sklearn_subqn import SubLBFGSLinearSVC

NAME = "svm_wide"
LOSSES = ["hinge", "squared_hinge"]
ALPHAS = [1e-1, 1e-3, 1e-5]
GAPS = [1e-3, 1e-6]
LADDER = [0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5, 1e-6]
SHAPES = [(200, 20000), (500, 2000), (1000, 5000), (1000, 1200)]


def correlated(n: int, d: int) -> tuple[Any, Any]:
    """Return rows of twenty common factors and noise, and noisy labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 20)) @ rng.normal(size=(20, d))
    X += 0.5 * rng.normal(size=(n, d))
    return X, np.where(X[:, :10].sum(axis=1) + 3.0 * rng.normal(size=n) > 0.0, 1, -1)


def problems(args: Any) -> Iterator[tuple[str, Any, Any]]:
    leukemia = datasets.load("leukemia", args.data_dir, args.cache_dir)
    yield "leukemia, 38 x 7129", leukemia.X, leukemia.y
    for n, d in SHAPES:
        X, y = make_classification(
            n, d, n_informative=50, flip_y=0.05, random_state=0, n_redundant=0
        )
        yield f"independent, {n} x {d}", X, np.where(y, 1, -1)
    yield "correlated, 400 x 10000", *correlated(400, 10000)


def linear_svc(X: Any, y: Any, loss: str, alpha: float, bound: float) -> Any:
    """Return the tolerance of a LinearSVC, and whether it comes within the gap."""
    for tol in LADDER:
        model = peer(loss, alpha, len(y), tol).fit(X, y)
        problem = common.Problem("", loss, alpha, False)
        value = common.objective(X, y, model.coef_.ravel(), 0.0, problem)
        if value - bound <= GAPS[0] * value:
            return tol, True
    return tol, False


def peer(loss: str, alpha: float, n: int, tol: float) -> LinearSVC:
    C = 1.0 / (n * alpha)
    return LinearSVC(
        loss=loss, C=C, fit_intercept=False, tol=tol, dual=True, max_iter=10**5
    )


def measure(
    results: common.Results,
    name: str,
    X: Any,
    y: Any,
    loss: str,
    alpha: float,
    repeats: int,
) -> None:
    ours = [
        SubLBFGSLinearSVC(alpha, loss=loss, fit_intercept=False, tol=gap)
        for gap in GAPS
    ]
    best = ours[-1].fit(X, y)
    tol, reached = linear_svc(X, y, loss, alpha, best.objective_ - best.dual_gap_)
    other = peer(loss, alpha, len(y), tol)
    models = [*ours, other]
    seconds: list[list[float]] = [[] for _ in models]
    for _ in range(repeats):
        for times, model in zip(seconds, models, strict=True):
            times.append(cpu_seconds(lambda model=model: model.fit(X, y), 1)[0])
    results.add(
        f"{name} | {loss} | {alpha:g}",
        data=name,
        loss=loss,
        alpha=alpha,
        seconds=seconds[:-1],
        n_iter=[model.n_iter_ for model in ours],
        gaps=[model.dual_gap_ / model.objective_ for model in ours],
        linear_svc=seconds[-1],
        reached=reached,
    )


def render(results: dict[str, Any]) -> str:
    rows = []
    for row in results["rows"]:
        cells = []
        for gap, times, reached, n_iter in zip(
            GAPS, row["seconds"], row["gaps"], row["n_iter"], strict=True
        ):
            mark = "" if reached <= gap else f", gap {reached:.0e}"
            cells.append(f"{statistics.median(times):.3f} ({n_iter}{mark})")
        other = f"{statistics.median(row['linear_svc']):.3f}"
        other += "" if row["reached"] else ", not reached"
        rows.append([row["data"], row["loss"], f"{row['alpha']:g}", *cells, other])
    header = ["data", "loss", "alpha", "proven 1e-3 (iterations)", "proven 1e-6"]
    return (
        "No intercept; seconds of processor time, one thread. LinearSVC: to 1e-3 of "
        "the optimum, with its best tolerance.\n\n"
        + common.markdown_table([*header, "LinearSVC"], rows)
        + "\n"
    )


def measure_all(args: Any, results: common.Results) -> None:
    for name, X, y in problems(args):
        for loss in LOSSES:
            for alpha in ALPHAS:
                measure(results, name, X, y, loss, alpha, args.repeats)


BENCHMARK = Benchmark(NAME, __doc__, measure_all, render, repeats=5)

if __name__ == "__main__":
    BENCHMARK.run()

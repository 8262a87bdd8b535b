"""Joint multiclass hinge: seconds of one thread to relative gaps.

python benchmarks/multiclass.py --data-dir DIR

Ours to gaps that it proves itself, no intercept. Scikit-learn's LinearSVC with
``crammer_singer``, which is liblinear's ``-s 4``, by the loosest of a ladder of
tolerances whose objective is that close to our lower bound; finding it is not counted.
Processor time; of ours the least of some repeats counts. One-vs-rest LinearSVC of the
same alpha shows its accuracy only.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import common
import datasets
import numpy as np
from _harness import Benchmark
from _race import climb
from sklearn.svm import LinearSVC

from sklearn_subqn import MulticlassHingeClassifier

NAME = "multiclass"
GAPS = (1e-2, 1e-3)
LADDER = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
ALPHAS = {
    "letter": 1e-6,
    "usps": 1e-3,
    "mnist": 1e-3,
    "news20": 1e-2,
}


def ours(X: Any, y: Any, alpha: float, limit: float) -> tuple[Any, dict[str, float]]:
    """Fit to the smallest gap; return the model and the seconds to each."""
    seconds: dict[str, float] = {}
    begin = time.process_time()

    def note(progress: Any) -> bool:
        now = time.process_time() - begin
        for gap in GAPS:
            if progress.dual_gap <= gap * progress.objective:
                seconds.setdefault(f"{gap:g}", now)
        return now > limit

    model = MulticlassHingeClassifier(
        alpha, fit_intercept=False, tol=min(GAPS), max_iter=10000, callback=note
    )
    return model.fit(X, y), seconds


def value_of(W: Any, X: Any, y: Any, alpha: float) -> float:
    scores = X @ W.T
    rows = np.arange(len(y))
    own = scores[rows, y].copy()
    scores += 1.0
    scores[rows, y] -= 1.0
    return float(0.5 * alpha * np.sum(W * W) + np.mean(scores.max(axis=1) - own))


def excess_over(X: Any, y: Any, alpha: float, bound: float, W: Any) -> float:
    """Return how far an objective is above a lower bound, as a share."""
    return value_of(W, X, y, alpha) / bound - 1.0


def crammer_singer(X: Any, y: Any, alpha: float, tol: float) -> Any:
    """Return coefficients of liblinear's -s 4."""
    model = LinearSVC(
        multi_class="crammer_singer",
        C=1.0 / (len(y) * alpha),
        fit_intercept=False,
        tol=tol,
        max_iter=100_000,
        random_state=0,
    )
    return model.fit(X, y).coef_


def one_vs_rest(X: Any, y: Any, alpha: float, test: tuple[Any, Any]) -> float:
    """Return the accuracy of one binary hinge for each class."""
    model = LinearSVC(
        loss="hinge", C=1.0 / (len(y) * alpha), fit_intercept=False, random_state=0
    )
    return float(model.fit(X, y).score(*test))


def measure(name: str, args: Any, results: common.Results) -> None:
    X, y = datasets.load_joint(name, args.data_dir)
    test = datasets.load_joint(name, args.data_dir, test=True)
    for alpha in args.alphas or (10 * ALPHAS[name], ALPHAS[name], ALPHAS[name] / 10):
        runs = [ours(X, y, alpha, args.limit) for _ in range(args.repeats)]
        model, seconds = runs[0]
        bound = model.objective_ - model.dual_gap_
        row: dict[str, Any] = {
            "data": name,
            "alpha": alpha,
            "objective": model.objective_,
            "gap": model.dual_gap_ / model.objective_,
            "passes": model.history_[0].passes[-1],
            "ours": {g: min(run.get(g, np.inf) for _, run in runs) for g in seconds},
            "quality": {
                "accuracy": float(model.score(*test)),
                "one-vs-rest": one_vs_rest(X, y, alpha, test),
            },
        }
        end = climb(
            LADDER,
            partial(crammer_singer, X, y, alpha),
            partial(excess_over, X, y, alpha, bound),
            GAPS,
            args.limit,
        )
        row["crammer_singer"] = end.seconds
        results.add(f"{name} | {alpha:g}", **row)
        print(row, flush=True)


def render(results: dict[str, Any]) -> str:
    methods = ("ours", "crammer_singer")
    header = ["data", "alpha", "gap proven", "passes"]
    header += [f"{m} to {gap:g}" for gap in GAPS for m in methods] + ["test"]
    rows = []
    for row in results["rows"]:
        cells = [row["data"], f"{row['alpha']:g}"]
        cells += [f"{row['gap']:.1e}", f"{row['passes']:.0f}"]
        for gap in GAPS:
            for method in methods:
                seconds = row.get(method, {}).get(f"{gap:g}")
                cells.append("–" if seconds is None else f"{seconds:.2f}")
        cells.append(", ".join(f"{k} {v:.3f}" for k, v in row["quality"].items()))
        rows.append(cells)
    return common.markdown_table(header, rows) + "\n"


BENCHMARK = Benchmark(
    NAME,
    __doc__,
    measure,
    render,
    ALPHAS,
    each=True,
    alphas=[float],
    repeats=1,
    limit={"default": 60.0, "help": "seconds for each fit"},
)

if __name__ == "__main__":
    BENCHMARK.run()

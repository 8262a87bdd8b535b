"""Multilabel hinge: seconds of one thread to a proven gap, and quality on test data.

python benchmarks/multilabel.py --data-dir DIR

Both losses, that of rankings and the one with a threshold, without intercepts, to a gap
of 1e-2 that is proven; processor time. No peer has these objectives. One-vs-rest
LinearSVC with the hinge of the same alpha shows what the joint losses are worth: its
ranking loss and F1 on the test part beside ours.
"""

from __future__ import annotations

import time
from typing import Any

import common
import datasets
import numpy as np
from _harness import Benchmark
from sklearn.metrics import f1_score, label_ranking_loss
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from sklearn_subqn import MultilabelHingeClassifier

NAME = "multilabel"
GAP = 1e-2
ALPHAS = {"scene": 1e-1, "tmc2007": 1e-5, "rcv1_topics": 1e-5}


def ours(X: Any, y: Any, alpha: float, threshold: bool, limit: float) -> Any:
    """Return the fitted model and the seconds it took."""
    begin = time.process_time()
    model = MultilabelHingeClassifier(
        alpha,
        reduction="max",
        threshold=threshold,
        fit_intercept=False,
        tol=GAP,
        max_iter=10000,
        callback=lambda progress: time.process_time() - begin > limit,
    )
    model.fit(X, y)
    return model, time.process_time() - begin


def one_vs_rest(X: Any, y: Any, alpha: float) -> Any:
    """Return binary hinges of each label, and the seconds they took."""
    begin = time.process_time()
    svm = LinearSVC(
        loss="hinge", C=1.0 / (len(y) * alpha), fit_intercept=False, random_state=0
    )
    return OneVsRestClassifier(svm).fit(X, y), time.process_time() - begin


def quality(model: Any, X: Any, y: Any, *, sets: bool = True) -> dict[str, float]:
    found = {"ranking loss": float(label_ranking_loss(y, model.decision_function(X)))}
    if sets:
        predicted = model.predict(X)
        for average in ("micro", "macro"):
            score = f1_score(y, predicted, average=average, zero_division=0.0)
            found[f"{average} F1"] = float(score)
    return found


def measure(name: str, args: Any, results: common.Results) -> None:
    X, y = datasets.load_joint(name, args.data_dir)
    test = datasets.load_joint(name, args.data_dir, test=True)
    # Labels of no training row have no binary problem.
    seen = y.any(axis=0)
    for alpha in args.alphas or (10 * ALPHAS[name], ALPHAS[name], ALPHAS[name] / 10):
        for threshold in (False, True):
            model, seconds = ours(X, y, alpha, threshold, args.limit)
            history = model.history_[0]
            method = "with threshold" if threshold else "ranking"
            row = {
                "objective": model.objective_,
                "gap": model.dual_gap_ / model.objective_,
                "seconds": seconds,
                "passes": history.passes[-1],
                "phases": list(dict.fromkeys(history.phase)),
                "quality": quality(model, *test, sets=threshold),
            }
            add(results, name, alpha, method, row)
        peer, seconds = one_vs_rest(X, y[:, seen], alpha)
        row = {
            "seconds": seconds,
            "quality": quality(peer, test[0], test[1][:, seen]),
        }
        add(results, name, alpha, "one-vs-rest LinearSVC", row)


def add(
    results: common.Results, name: str, alpha: float, method: str, row: dict[str, Any]
) -> None:
    key = f"{name} | {alpha:g} | {method}"
    results.add(key, data=name, alpha=alpha, method=method, **row)
    print(key, row, flush=True)


def render(results: dict[str, Any]) -> str:
    header = ["data", "alpha", "loss", "objective", "gap proven", "seconds", "passes"]
    measures = ("ranking loss", "micro F1", "macro F1")
    rows = []
    for row in results["rows"]:
        cells = [row["data"], f"{row['alpha']:g}", row["method"]]
        if "gap" in row:
            cells += [f"{row['objective']:.4f}", f"{row['gap']:.1e}"]
        else:
            cells += ["–", "–"]
        cells.append(f"{row['seconds']:.2f}")
        cells.append(f"{row['passes']:.0f}" if "passes" in row else "–")
        found = (row["quality"].get(m, np.nan) for m in measures)
        cells += ["–" if np.isnan(v) else f"{v:.3f}" for v in found]
        rows.append(cells)
    return common.markdown_table([*header, *measures], rows) + "\n"


BENCHMARK = Benchmark(
    NAME,
    __doc__,
    measure,
    render,
    ALPHAS,
    each=True,
    alphas=[float],
    limit={"default": 60.0, "help": "seconds for each fit"},
)

if __name__ == "__main__":
    BENCHMARK.run()

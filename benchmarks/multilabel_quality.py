"""What multilabel losses are worth: quality on test data over random splits.

python benchmarks/multilabel_quality.py --data-dir DIR

Three fifths of the rows are for training, a fifth each for the choice of alpha, by
micro F1, and for the test. Of LinearSVC, one for each label, and of both reductions of
MultilabelHingeClassifier: means over the splits and their standard errors, and the
processor time of the five fits, ours to a proven gap of 1e-2.
"""

from __future__ import annotations

import time
from typing import Any

import common
import datasets
import numpy as np
from _harness import Benchmark
from scipy import sparse
from sklearn.metrics import f1_score, label_ranking_loss
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from sklearn_subqn import MultilabelHingeClassifier

NAME = "multilabel_quality"
# Multiples of 1 / n, the alpha of LinearSVC's default.
STRENGTHS = {
    "scene": (100.0, 30.0, 10.0, 3.0, 1.0),
    "tmc2007": (100.0, 30.0, 10.0, 3.0, 1.0),
    "rcv1_topics": (3.0, 1.0, 0.3, 0.1, 0.03),
}
MEASURES = ("ranking loss", "micro F1", "macro F1", "empty rows", "seconds")


def peer(alpha: float, n: int) -> Any:
    return OneVsRestClassifier(LinearSVC(C=1.0 / (n * alpha), random_state=0))


METHODS = {
    "one-vs-rest LinearSVC": peer,
    'reduction="max"': lambda alpha, n: ours("max", alpha),
    'reduction="mean"': lambda alpha, n: ours("mean", alpha),
}


def ours(reduction: str, alpha: float) -> Any:
    return MultilabelHingeClassifier(alpha, reduction=reduction, tol=1e-2)


def quality(model: Any, X: Any, y: Any) -> dict[str, float]:
    predicted = model.predict(X)
    return {
        "ranking loss": float(label_ranking_loss(y, model.decision_function(X))),
        "micro F1": f1_score(y, predicted, average="micro", zero_division=0.0),
        "macro F1": f1_score(y, predicted, average="macro", zero_division=0.0),
        "empty rows": float(np.mean(predicted.sum(axis=1) == 0)),
    }


def measure(name: str, args: Any, results: common.Results) -> None:
    parts = [datasets.load_joint(name, args.data_dir, test=test) for test in (0, 1)]
    stack = sparse.vstack if sparse.issparse(parts[0][0]) else np.vstack
    X, y = stack([X for X, _ in parts]), np.vstack([y for _, y in parts])
    X = X.tocsr() if sparse.issparse(X) else X
    for split in range(args.splits):
        order = np.random.default_rng(split).permutation(len(y))[: args.rows]
        n = 3 * len(order) // 5
        train, chosen, test = np.split(order, [n, 4 * len(order) // 5])
        seen = y[train].any(axis=0)
        labels = y[:, seen]
        for method, make in METHODS.items():
            seconds, best = 0.0, None
            for strength in STRENGTHS[name]:
                model = make(strength / n, n)
                begin = time.process_time()
                model.fit(X[train], labels[train])
                seconds += time.process_time() - begin
                score = quality(model, X[chosen], labels[chosen])["micro F1"]
                if best is None or score > best[0]:
                    best = score, strength, model
            assert best is not None
            row = quality(best[2], X[test], labels[test])
            row.update(seconds=seconds, strength=best[1])
            results.add(f"{name} | {method} | {split}", data=name, method=method, **row)
            print(name, split, method, row, flush=True)


def render(results: dict[str, Any]) -> str:
    found: dict[tuple[str, str], list[Any]] = {}
    for row in results["rows"]:
        found.setdefault((row["data"], row["method"]), []).append(row)
    rows = []
    for (name, method), splits in found.items():
        cells = [name, method]
        for measure in MEASURES:
            values = np.array([split[measure] for split in splits])
            error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0
            cells.append(f"{values.mean():.3f} ± {error:.3f}")
        rows.append(cells)
    return common.markdown_table(["data", "method", *MEASURES], rows) + "\n"


BENCHMARK = Benchmark(
    NAME,
    __doc__,
    measure,
    render,
    STRENGTHS,
    each=True,
    splits=5,
    rows={"default": int, "help": "of each data set; default all"},
)

if __name__ == "__main__":
    BENCHMARK.run()

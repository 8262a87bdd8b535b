"""Growth of the exact line search of joint losses, and the memory of a large fit.

python benchmarks/joint_scaling.py

Line search: processor seconds to form a line's segments (Yu 2009, Alg. 3.4) and to
minimize over all kinks, the least of some repeats, on random scores of n rows and k
labels. The last column, nanoseconds over n k log2 k, does not grow if the cost is
O(n k log k). Costs of pairs of labels form all lines of the pairs in a row, of which
there are a few times k where a row has few labels.

Memory: a whole fit of a multiclass hinge on generated dense data, in a process of its
own: its seconds, and the peak of its resident set, data included (Linux).
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from typing import Any

import common
import numpy as np

from sklearn_subqn import MulticlassHingeClassifier
from sklearn_subqn._core.line_search import minimize_piecewise
from sklearn_subqn._core.losses import LabelPairHinge, MulticlassHinge, MultilabelHinge
from sklearn_subqn._core.losses._base import PiecewiseQuadratic

NAME = "joint_scaling"
LOSSES = ("multiclass", "multilabel", "multilabel with threshold", "label pairs")
SIZES = [(2000, 10), (20000, 10), (2000, 100), (20000, 100), (2000, 1000)]
FITS = [(500_000, 50, 100, 1e-4)]

# Relevant labels of a row, which has few whatever the number of labels.
_N_RELEVANT = 3


def problem(kind: str, n: int, k: int, rng: Any) -> tuple[Any, Any, int]:
    """Return a loss, targets and the number of scores of a row."""
    if kind == "multiclass":
        return MulticlassHinge(1.0 - np.eye(k)), rng.integers(0, k, n), k
    targets = np.zeros((n, k), np.uint8)
    targets[np.arange(n)[:, np.newaxis], rng.integers(0, k, (n, _N_RELEVANT))] = 1
    if kind == "label pairs":
        return LabelPairHinge(rng.random((k, k))), targets, k
    threshold = kind.endswith("threshold")
    return MultilabelHinge(np.full((2, k), 0.5)), targets, k + threshold


def line_search(kind: str, n: int, k: int, repeats: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    loss, targets, n_scores = problem(kind, n, k, rng)
    scores, dscores = rng.standard_normal((2, n, n_scores))
    weights = np.full(n, 1.0 / n)
    # The slope of a regularizer that makes the direction one of descent.
    descent = PiecewiseQuadratic.smooth(-1e3, 1e2)
    spent = math.inf
    for _ in range(repeats):
        begin = time.process_time()
        line = loss.restrict(scores, dscores, targets, weights)
        minimize_piecewise(line + descent)
        spent = min(spent, time.process_time() - begin)
    return {
        "seconds": spent,
        "kinks": len(line.kinks),
        "per unit": 1e9 * spent / (n * k * math.log2(k)),
    }


def fit(n: int, d: int, k: int, alpha: float) -> dict[str, Any]:
    """Fit to overlapping classes in this process; return seconds, gap and memory."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, k, n)
    X = rng.standard_normal((n, d))
    X += 0.5 * rng.standard_normal((k, d))[y]
    data = _peak()
    begin = time.process_time()
    model = MulticlassHingeClassifier(alpha, tol=1e-2).fit(X, y)
    return {
        "seconds": time.process_time() - begin,
        "gap": model.dual_gap_ / model.objective_,
        "passes": model.history_[0].passes[-1],
        "GB with data alone": data,
        "GB": _peak(),
    }


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def render(results: dict[str, Any]) -> str:
    """Return the Markdown tables of the results."""
    lines, fits = [], []
    for row in results["rows"]:
        size = [f"{row['rows']:,}", f"{row['labels']:,}"]
        if row["part"] == "memory":
            numbers = [row["seconds"], row["GB with data alone"], row["GB"]]
            cells = [f"{row['alpha']:g}", f"{row['gap']:.1e}"]
            cells += [f"{number:.2f}" for number in numbers]
            fits.append([*size, f"{row['features']}", *cells])
        else:
            seconds = f"{1e3 * row['seconds']:.2f}"
            cells = [seconds, f"{row['kinks']:,}", f"{row['per unit']:.2f}"]
            lines.append([row["loss"], *size, *cells])
    header = ["loss", "rows n", "labels k", "ms", "kinks", "ns / (n k log2 k)"]
    parts = ["Exact line search:", common.markdown_table(header, lines)]
    if fits:
        header = ["rows", "classes", "features", "alpha", "gap proven", "seconds"]
        header += ["GB with data alone", "GB at the peak of the fit"]
        parts += ["Multiclass fits:", common.markdown_table(header, fits)]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--parts", nargs="+", default=["lines", "memory"])
    p.add_argument("--repeats", type=int, default=5)
    p.add_argument("--fit", nargs=4, type=float, help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.fit:
        *sizes, alpha = args.fit
        print(json.dumps(fit(*map(int, sizes), alpha)))
        return
    results = common.Results(NAME)
    for kind in LOSSES if "lines" in args.parts else ():
        for n, k in SIZES:
            row = line_search(kind, n, k, args.repeats)
            key = f"line | {kind} | {n} | {k}"
            results.add(key, part="lines", loss=kind, rows=n, labels=k, **row)
            print(key, row, flush=True)
    for n, d, k, alpha in FITS if "memory" in args.parts else ():
        command = [sys.executable, __file__, "--fit", *map(str, (n, d, k, alpha))]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        row = json.loads(done.stdout)
        size = {"rows": n, "labels": k, "features": d, "alpha": alpha}
        results.add(
            f"memory | {n} | {d} | {k} | {alpha:g}", part="memory", **size, **row
        )
        print(row, flush=True)
    common.write_markdown(NAME, render)


if __name__ == "__main__":
    main()

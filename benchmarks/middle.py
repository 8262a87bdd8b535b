"""Fits of ten thousand rows and more beside scikit-learn's, at the defaults of both.

python benchmarks/middle.py [--sizes 10000x50] [--features independent correlated]

Features are standard normal, or the same multiplied by two random square matrices,
which leaves them strongly correlated. Targets follow linear scores of standard
deviation two: labels with logistic noise, counts and positive numbers whose mean has a
logarithm of a quarter of the score, numbers with noise of Student's distribution of two
degrees, and classes by the largest of several scores. Fits take turns in one process,
and the fastest counts: a ratio above one says that ours is faster.
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any

import common
import numpy as np
from _harness import Benchmark, table
from _race import timed
from sklearn import linear_model, svm
from sklearn.exceptions import ConvergenceWarning
from small import OUR_SVM, OURS, Model, logistic, squares

SIZES = [f"{n}x{d}" for n in (10_000, 50_000) for d in (50, 100, 300, 1000)]
FEATURES = ["independent", "correlated"]


def models() -> Iterator[Model]:
    """Yield the models, with the loss and penalty that both have by default."""
    glm = {"max_iter": 2000}
    yield Model("log loss", "binary", OURS.LogisticRegression(), [logistic()])
    l1 = {"l1_ratio": 1.0, "solver": "liblinear"}
    ours = OURS.LogisticRegression(**l1)
    yield Model("log loss, L1", "binary", ours, [logistic(**l1)])
    yield Model("softmax, 5", "5", OURS.LogisticRegression(), [logistic()])
    yield Model("softmax, 20", "20", OURS.LogisticRegression(), [logistic()])
    peer: Any = linear_model.PoissonRegressor(**glm)
    yield Model("Poisson", "count", OURS.PoissonRegressor(), [peer])
    peer = linear_model.GammaRegressor(**glm)
    yield Model("gamma", "positive", OURS.GammaRegressor(), [peer])
    peer = linear_model.HuberRegressor(**glm)
    yield Model("Huber", "number", OURS.HuberRegressor(), [peer])
    ours, peer = squares(alpha=0.1, penalty="l1"), linear_model.Lasso(alpha=0.1)
    yield Model("squared error, L1", "number", ours, [peer])
    yield Model("squared hinge", "binary", OUR_SVM.LinearSVC(), [svm.LinearSVC()])
    peer = svm.LinearSVC(loss="hinge", max_iter=10_000)
    yield Model("hinge", "binary", OUR_SVM.LinearSVC(loss="hinge"), [peer])


def data(n: int, d: int, features: str, seed: int) -> Iterator[tuple[Any, Any]]:
    """Return X of shape (n, d) and what makes targets of a kind."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    if features == "correlated":
        for _ in range(2):
            X = X @ (rng.standard_normal((d, d)) / np.sqrt(d))
    scores = X @ rng.standard_normal(d)
    scores *= 2.0 / scores.std()

    def targets(kind: str) -> Any:
        noise = np.random.default_rng(seed + 1)
        if kind == "binary":
            return (scores + noise.logistic(size=n) > 0).astype(int)
        if kind == "count":
            return noise.poisson(np.exp(scores / 4)).astype(float)
        if kind == "positive":
            return noise.gamma(2.0, np.exp(scores / 4) / 2.0)
        if kind == "number":
            return scores + noise.standard_t(2, size=n)
        several = X @ noise.standard_normal((d, int(kind)))
        several *= 2.0 / several.std()
        return np.argmax(several + noise.gumbel(size=several.shape), axis=1)

    return X, targets


def measure(args: Any, results: common.Results) -> None:
    warnings.simplefilter("ignore", UserWarning)
    warnings.simplefilter("ignore", ConvergenceWarning)
    for size in args.sizes:
        n, d = map(int, size.split("x"))
        for features in args.features:
            X, targets = data(n, d, features, args.seed)
            for model in models():
                if model.name not in args.models:
                    continue
                y = targets(model.kind)
                ours, peer = model.ours, model.peers[0]
                seconds = {ours: np.inf, peer: np.inf}
                turns, spent = 0, 0.0
                while turns < args.turns and (turns < 1 or spent < args.budget):
                    for each in seconds if spent < args.patience else [ours]:
                        _, taken = timed(partial(each.fit, X, y))
                        seconds[each], spent = min(seconds[each], taken), spent + taken
                    turns += 1
                row = {
                    "ours": seconds[ours] * 1e3,
                    "peer": seconds[peer] * 1e3,
                    "ratio": seconds[peer] / seconds[ours],
                    "gap": float(np.max(ours.dual_gap_ / ours.objective_)),
                    "n_iter": int(np.max(ours.n_iter_)),
                }
                key = f"{size} {features} | {model.name}"
                results.add(key, size=size, features=features, name=model.name, **row)
                print(key, {k: float(f"{v:.3g}") for k, v in row.items()}, flush=True)


def render(results: dict[str, Any]) -> str:
    rows = results["rows"]
    columns = {
        "size": "size",
        "features": "features",
        "model": "name",
        "ours_(ms)": "ours:.1f",
        "scikit_learn_(ms)": "peer:.1f",
        "ratio": "ratio:.2f",
        "proven_gap": "gap:.0e",
    }
    ratios = [row["ratio"] for row in rows]
    ends = f"Median ratio: {statistics.median(ratios):.2f}, least {min(ratios):.2f}"
    return f"{table(rows, **columns)}\n\n{ends}"


BENCHMARK = Benchmark(
    "middle",
    __doc__,
    measure,
    render,
    sizes=SIZES,
    features=FEATURES,
    models=[model.name for model in models()],
    budget={"default": 2.0, "help": "seconds for each row, about"},
    patience={"default": 60.0, "help": "seconds after which scikit-learn has no turn"},
    turns={"default": 3, "help": "most fits of each"},
    seed=0,
)

if __name__ == "__main__":
    BENCHMARK.run()

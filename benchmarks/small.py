"""Fits of milliseconds beside scikit-learn's, with the parameters that both have.

python benchmarks/small.py [--parts fits classes predictions searches] [--sizes 100x5]

Features are standard normal, and targets are linear scores with as much noise: labels,
numbers, counts and three classes. Our estimators and scikit-learn's have their
defaults; of its solvers for the same model the fastest counts. All take turns in one
process, and medians of processor seconds are compared: a ratio above one says that ours
are faster.
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import common
import numpy as np
from _harness import Benchmark, table
from _race import timed
from sklearn import linear_model, svm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import RFE
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier

import sklearn_subqn as subqn
import sklearn_subqn.linear_model
import sklearn_subqn.svm

OURS, OUR_SVM = subqn.linear_model, subqn.svm
SIZES = ["100x5", "300x20", "1000x20", "3000x50"]


class Model(NamedTuple):
    """An estimator of ours, and those of scikit-learn of the same model."""

    name: str
    kind: str
    ours: Any
    peers: list[Any]


def logistic(**options: Any) -> Any:
    return linear_model.LogisticRegression(max_iter=1000, **options)


def squares(**options: Any) -> Any:
    return subqn.BMRMRegressor(loss="squared_error", **options)


def models() -> Iterator[Model]:
    """Yield models of one score a row, and of three classes."""
    solvers = ("lbfgs", "newton-cholesky")
    smooth = [logistic(solver=solver) for solver in solvers]
    yield Model("log loss", "binary", OURS.LogisticRegression(), smooth)
    yield Model("squared hinge", "binary", OUR_SVM.LinearSVC(), [svm.LinearSVC()])
    yield Model(
        "hinge",
        "binary",
        OUR_SVM.LinearSVC(loss="hinge"),
        [svm.LinearSVC(loss="hinge", max_iter=10_000)],
    )
    yield Model(
        "epsilon-insensitive",
        "number",
        OUR_SVM.LinearSVR(epsilon=0.1),
        [svm.LinearSVR(epsilon=0.1, max_iter=10_000)],
    )
    yield Model(
        "Huber",
        "number",
        OURS.HuberRegressor(),
        [linear_model.HuberRegressor(max_iter=1000)],
    )
    peers = [linear_model.PoissonRegressor(solver=solver) for solver in solvers]
    yield Model("Poisson", "count", OURS.PoissonRegressor(), peers)
    yield Model(
        "quantile, L1",
        "number",
        OURS.QuantileRegressor(alpha=0.1),
        [linear_model.QuantileRegressor(alpha=0.1)],
    )
    yield Model(
        "log loss, L1",
        "binary",
        OURS.LogisticRegression(l1_ratio=1.0, solver="liblinear"),
        [logistic(l1_ratio=1.0, solver="liblinear")],
    )
    # BMRMRegressor's squared error is halved, as scikit-learn's.
    yield Model(
        "squared error, L1",
        "number",
        squares(alpha=0.1, penalty="l1"),
        [linear_model.Lasso(alpha=0.1)],
    )
    yield Model(
        "squared error, elastic net",
        "number",
        squares(alpha=0.1, penalty="elasticnet", l1_ratio=0.5),
        [linear_model.ElasticNet(alpha=0.1, l1_ratio=0.5)],
    )
    yield Model("softmax", "classes", OURS.LogisticRegression(), smooth)


def data(n: int, d: int, kind: str, seed: int) -> tuple[Any, Any]:
    """Return X of shape (n, d) and y."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    scores = X @ rng.normal(size=d)
    noisy = scores + scores.std() * rng.standard_normal(n)
    if kind == "binary":
        return X, (noisy > 0).astype(int)
    if kind == "count":
        return X, rng.poisson(np.exp(scores / scores.std() / 2)).astype(float)
    if kind == "classes":
        return X, np.argsort(np.argsort(noisy)) * 3 // n
    return X, noisy


def many_classes(n: int, d: int, k: int, seed: int) -> tuple[Any, Any]:
    """Return X and y of k overlapping classes."""
    rng = np.random.default_rng(seed)
    centers, y = rng.normal(size=(k, d)), rng.integers(0, k, n)
    return 0.6 * centers[y] + rng.normal(size=(n, d)), y


def race(runs: Sequence[Callable[[], Any]], budget: float, most: int) -> list[float]:
    """Return the median seconds of each, which take turns after one run of each."""
    first = [timed(run)[1] for run in runs]
    turns = int(np.clip(budget / max(sum(first), 1e-9), 3, most))
    taken = [[timed(run)[1] for run in runs] for _ in range(turns)]
    return [statistics.median(each) for each in zip(*taken, strict=True)]


def add(
    results: common.Results, size: str, name: str, seconds: list[float], **more: Any
) -> None:
    """Store and print a row: the seconds of ours come first."""
    ours, peer = seconds[0], min(seconds[1:])
    row = {"ours": ours * 1e3, "peer": peer * 1e3, "ratio": peer / ours, **more}
    results.add(f"{size} | {name}", size=size, name=name, **row)
    print(f"{size}  {name}  {row['ratio']:.2f}", flush=True)


def fits(args: Any, results: common.Results) -> None:
    """Fit all models to data of all sizes."""
    for size in args.sizes:
        n, d = map(int, size.split("x"))
        for model in models():
            X, y = data(n, d, model.kind, args.seed)
            runs = [partial(m.fit, X, y) for m in (model.ours, *model.peers)]
            seconds = race(runs, args.budget, args.turns)
            model.ours.fit(X, y)
            gap = float(np.max(model.ours.dual_gap_ / model.ours.objective_))
            add(results, size, model.name, seconds, gap=gap)


def classes(args: Any, results: common.Results) -> None:
    """Fit many classes at once."""
    X, y = many_classes(4000, 50, 200, args.seed)
    smooth = [logistic(), logistic(solver="newton-cholesky")]
    one_vs_rest = [OneVsRestClassifier(svm.LinearSVC())]
    for name, ours, peers in (
        ("softmax", OURS.LogisticRegression(), smooth[:1]),
        ("squared hinge, one vs rest", OUR_SVM.LinearSVC(), one_vs_rest),
    ):
        runs = [partial(m.fit, X, y) for m in (ours, *peers)]
        add(results, "4000x50, 200 classes", name, race(runs, args.budget, args.turns))


def predict_often(model: Any, X: Any) -> None:
    """Predict 20 times, since a prediction is shorter than what clocks resolve."""
    for _ in range(20):
        model.predict(X)


def predictions(args: Any, results: common.Results) -> None:
    """Predict one row."""
    for model in models():
        X, y = data(300, 20, model.kind, args.seed)
        fitted = [each.fit(X, y) for each in (model.ours, model.peers[0])]
        runs = [partial(predict_often, each, X[:1]) for each in fitted]
        seconds = [taken / 20 for taken in race(runs, args.budget / 4, args.turns)]
        add(results, "predict a row", model.name, seconds)


def searches(args: Any, results: common.Results) -> None:
    """Fit what fits many times."""
    for size in args.sizes[:3]:
        n, d = map(int, size.split("x"))
        X, y = data(n, d, "binary", args.seed)
        for name, search in {
            "RFE": lambda model: RFE(model, n_features_to_select=1),
            "calibration": lambda model: CalibratedClassifierCV(model, cv=5),
            "bagging": lambda model: BaggingClassifier(model, 50, random_state=0),
            "grid search": lambda model: GridSearchCV(
                model, {"C": np.logspace(-3, 2, 10)}, cv=5
            ),
        }.items():
            for kind, ours, peer in (
                ("log loss", OURS.LogisticRegression(), logistic()),
                ("squared hinge", OUR_SVM.LinearSVC(), svm.LinearSVC()),
            ):
                runs = [partial(search(m).fit, X, y) for m in (ours, peer)]
                seconds = race(runs, 2.0 * args.budget, args.turns)
                add(results, size, f"{name}, {kind}", seconds)


PARTS = {
    "fits": fits,
    "classes": classes,
    "predictions": predictions,
    "searches": searches,
}


def measure(args: Any, results: common.Results) -> None:
    warnings.simplefilter("ignore", UserWarning)
    warnings.simplefilter("ignore", ConvergenceWarning)
    for part in args.parts:
        PARTS[part](args, results)


def render(results: dict[str, Any]) -> str:
    rows = results["rows"]
    columns = {
        "size": "size",
        "model": "name",
        "ours_(ms)": "ours:.2f",
        "scikit_learn_(ms)": "peer:.2f",
        "ratio": "ratio:.2f",
        "proven_gap": "gap:.0e",
    }
    median = statistics.median(row["ratio"] for row in rows)
    return f"{table(rows, **columns)}\n\nMedian ratio: {median:.2f}"


BENCHMARK = Benchmark(
    "small",
    __doc__,
    measure,
    render,
    parts=tuple(PARTS),
    sizes=SIZES,
    budget={"default": 1.0, "help": "seconds for each row, about"},
    turns={"default": 60, "help": "most fits of each"},
    seed=0,
)

if __name__ == "__main__":
    BENCHMARK.run()

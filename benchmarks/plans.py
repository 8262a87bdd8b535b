"""What each row of the table of plans gains: fits with it and without it.

python benchmarks/plans.py --data-dir DIR [name ...]

Every row of ``_core/solvers/plans.py`` has a class of data on which fits take at least
1.5 times as long without it, in processor time; the default of a kind of problem, to
which nothing else would be left but a bundle method, has none. Names are those of rows,
or parts of them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import common
import datasets
import numpy as np
from _harness import Benchmark
from scipy import sparse

from sklearn_subqn import (
    BMRMClassifier,
    BMRMRegressor,
    L1LogisticOWLQN,
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
    SubLBFGSLinearSVC,
)
from sklearn_subqn._core.solvers import plans


class Case(NamedTuple):
    """A problem for which a row of the table, the plan, is chosen."""

    plan: str
    data: str
    load: Callable[[], tuple[Any, Any]]
    model: Any


def normal(n: int, d: int, k: int, noise: float = 1.0) -> tuple[Any, Any]:
    """Return Gaussian features and, by linear scores with noise, k classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    scores = X @ rng.normal(size=(d, k)) / np.sqrt(d) + noise * rng.normal(size=(n, k))
    return X, scores.argmax(axis=1)


def collinear(n: int, d: int, k: int) -> tuple[Any, Any]:
    """Return Gaussian features with much in common, and k ordered classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) + 5.0 * rng.normal(size=(n, 2)) @ rng.normal(
        size=(2, d)
    )
    scores = X @ rng.normal(size=d) / np.sqrt(d) + rng.logistic(size=n)
    return X, np.digitize(scores, np.quantile(scores, np.arange(1, k) / k))


def labels(n: int, d: int, k: int) -> tuple[Any, Any]:
    """Return Gaussian features, and sets of labels by linear scores with noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    scores = X @ rng.normal(size=(d, k)) / np.sqrt(d) + 0.3 * rng.normal(size=(n, k))
    return X, (scores > 0.5).astype(int)


def targets(n: int, d: int, df: int) -> tuple[Any, Any]:
    """Return Gaussian features and targets with noise of a t distribution."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(n, d)), rng.normal(size=d)
    return X, X @ (w / np.sqrt(d) if df == 1 else w) + rng.standard_t(df, size=n)


def outliers(n: int, d: int) -> tuple[Any, Any]:
    """Return Gaussian features and targets in large units with Cauchy noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, 1e4 * (X[:, 0] + rng.standard_cauchy(n))


def words(n: int, d: int, k: int, density: float = 0.005) -> tuple[Any, Any]:
    """Return sparse features of random signs and k classes by linear scores."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((n, d), density=density, format="csr", rng=rng)
    X.data = rng.lognormal(size=X.nnz)
    weights = rng.normal(size=(d, k)) * (rng.random((d, k)) < 0.05)
    return X, (X @ weights).argmax(axis=1)


def repeated(n: int, d: int) -> tuple[Any, Any]:
    """Return repeated rows, perturbed, with heavy tails in large units."""
    rng = np.random.default_rng(0)
    rows = rng.random((400, d))
    rows[:, :6] = 1e3 * rng.lognormal(sigma=4.0, size=(400, 6))
    rows[:, :6][rng.random((400, 6)) < 0.6] = 0.0
    scores = rows @ (rng.normal(size=d) / rows.std(axis=0))
    chosen = rng.integers(0, 400, n)
    X = rows[chosen]
    X[::3, :6] *= rng.lognormal(sigma=0.5, size=X[::3, :6].shape)
    y = (scores > np.median(scores))[chosen]
    return X, y ^ (rng.random(n) < 5e-4)


def times(n: int) -> tuple[Any, Any]:
    """Return two features, times in seconds, missing as zero, and three classes."""
    rng = np.random.default_rng(0)
    time = (1.0 + 0.02 * rng.random(n)) * (rng.random(n) < 0.8)
    X = np.column_stack([rng.normal(size=(n, 2)), 1.7e9 * time])
    scores = X[:, 0] - X[:, 1] + (time > 0) + rng.logistic(size=n)
    return X, np.digitize(scores, [-0.5, 0.8])


def large_units(n: int, d: int, n_large: int) -> tuple[Any, Any]:
    """Return features of which some are in large units, and two classes."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, d))
    y = X @ rng.normal(size=d) + rng.normal(size=n) > 0.0
    X[:, :n_large] *= 1e11
    return X, y


def cases(data_dir: str | None) -> Iterator[Case]:
    """Yield the problems."""

    @cache
    def real(name: str) -> tuple[Any, Any]:
        return datasets.load(name, data_dir)[1:]

    @cache
    def joint(name: str) -> tuple[Any, Any]:
        return datasets.load_joint(name, data_dir)

    for n, d in ((100, 5), (3000, 50)):
        yield Case(
            "one compiled loop",
            f"{n} x {d}, quantile regression",
            lambda n=n, d=d: targets(n, d, 3),
            BMRMRegressor(1e-2, loss="quantile"),
        )
        yield Case(
            "one compiled loop",
            f"{n} x {d}, 3 classes",
            lambda n=n, d=d: normal(n, d, 3),
            L1LogisticOWLQN(1e-2, l1_ratio=0),
        )
    yield Case(
        "smaller units",
        "6000 x 3, times in seconds",
        lambda: times(6000),
        MulticlassHingeClassifier(1e-2),
    )
    yield Case(
        "smaller units",
        "400 x 60, 40 of them of size 1e11",
        lambda: large_units(400, 60, 40),
        SubLBFGSLinearSVC(1e-3),
    )
    yield Case(
        "smaller units",
        "8000 x 120, a tiny alpha",
        lambda: targets(8000, 120, 3),
        BMRMRegressor(1e-12, loss="quantile", penalty="l1"),
    )
    yield Case(
        "span of the rows",
        "200 x 8000, 5 classes",
        lambda: normal(200, 8000, 5),
        MulticlassHingeClassifier(1e-2),
    )
    yield Case(
        "sample, proximal method of multipliers",
        "100000 x 28, repeated rows in large units",
        lambda: repeated(100_000, 28),
        SubLBFGSLinearSVC(1e-5, tol=1e-2),
    )
    for k in (2, 5):
        yield Case(
            "larger alphas",
            f"600 x 100, {k} classes",
            lambda k=k: normal(600, 100, k, 0.0),
            MulticlassHingeClassifier(1e-7) if k > 2 else SubLBFGSLinearSVC(1e-8),
        )
    yield Case(
        "larger alphas",
        "text, 1500 x 4000",
        lambda: words(1500, 4000, 2),
        SubLBFGSLinearSVC(1e-7),
    )
    yield Case(
        "larger alphas",
        "text, 8000 x 12000, squared hinge",
        lambda: words(8000, 12_000, 2),
        SubLBFGSLinearSVC(1e-7, loss="squared_hinge", max_iter=300),
    )
    for alpha in (1e-4, 1e-5):
        yield Case(
            "dual ascent",
            f"rcv1_ccat, alpha {alpha:g}",
            lambda: real("rcv1_ccat"),
            SubLBFGSLinearSVC(alpha),
        )
    yield Case(
        "dual ascent",
        "rcv1_ccat, squared hinge",
        lambda: real("rcv1_ccat"),
        SubLBFGSLinearSVC(1e-4, loss="squared_hinge"),
    )
    yield Case(
        "sample, proximal method of multipliers",
        "letter",
        lambda: joint("letter"),
        MulticlassHingeClassifier(1e-6, tol=1e-2),
    )
    yield Case(
        "sample, proximal method of multipliers",
        "20000 x 20, 5 labels",
        lambda: labels(20_000, 20, 5),
        MultilabelHingeClassifier(1e-4, reduction="max"),
    )
    for alpha in (1e-4, 1e-6):
        yield Case(
            "sample, proximal method of multipliers",
            f"covtype, alpha {alpha:g}",
            lambda: real("covtype"),
            SubLBFGSLinearSVC(alpha),
        )
    yield Case(
        "proximal method of multipliers",
        "300 x 8000",
        lambda: normal(300, 8000, 2),
        SubLBFGSLinearSVC(2e-3),
    )
    yield Case(
        "proximal method of multipliers",
        "500 x 500, 5 labels",
        lambda: labels(500, 500, 5),
        MultilabelHingeClassifier(1e-4, reduction="max"),
    )
    yield Case(
        "dual ascent",
        "usps",
        lambda: joint("usps"),
        MulticlassHingeClassifier(1e-3, tol=1e-2),
    )
    yield Case(
        "proximal method of multipliers",
        "20000 x 500, quantile regression",
        lambda: targets(20_000, 500, 3),
        BMRMRegressor(1e-4, loss="quantile"),
    )
    yield Case(
        "larger alphas",
        "1500 x 800, squared hinge",
        lambda: normal(1500, 800, 2),
        SubLBFGSLinearSVC(1e-7, loss="squared_hinge"),
    )
    yield Case(
        "coordinate descent",
        "200 x 10, Huber, Cauchy noise in large units",
        lambda: outliers(200, 10),
        BMRMRegressor(1e-8, loss="huber", epsilon=1e-6, penalty="l1", tol=1e-6),
    )
    yield Case(
        "larger alphas",
        "150 x 800, squared hinge",
        lambda: normal(150, 800, 2),
        BMRMClassifier(1e-5, loss="squared_hinge", penalty="l1"),
    )
    yield Case(
        "proximal Newton method",
        "a9a, squared hinge",
        lambda: real("a9a"),
        BMRMClassifier(1e-6, loss="squared_hinge", penalty="l1"),
    )
    yield Case(
        "coordinate descent",
        "letter, multinomial",
        lambda: joint("letter"),
        L1LogisticOWLQN(1e-4),
    )
    yield Case(
        "proximal Newton method",
        "10000 x 30, nearly collinear, ordinal",
        lambda: collinear(10_000, 30, 4),
        BMRMClassifier(1e-3, loss="ordinal_all_threshold", penalty="l1"),
    )
    yield Case(
        "proximal Newton method",
        "400 x 5000, squared pairs",
        lambda: normal(400, 5000, 2),
        BMRMClassifier(0.1, loss="roc_area_squared", penalty="l1"),
    )
    yield Case(
        "OWL-QN",
        "1000 x 2500, 5 classes, ordinal",
        lambda: normal(1000, 2500, 5),
        BMRMClassifier(1e-2, loss="ordinal_all_threshold", penalty="l1"),
    )
    yield Case(
        "larger alphas",
        "150 x 800, hinge",
        lambda: normal(150, 800, 2),
        BMRMClassifier(1e-5, loss="hinge", penalty="l1"),
    )


def seconds(case: Case, X: Any, y: Any) -> tuple[float, str]:
    """Return the processor time of a fit, and the plan it took."""
    begin = time.process_time()
    case.model.fit(X, y)
    taken = time.process_time() - begin
    gap = case.model.dual_gap_ / case.model.objective_
    return taken, "" if gap <= case.model.tol else f" (gap {gap:.0e})"


def measure(case: Case, repeats: int) -> list[str]:
    """Return a row of the table of results."""
    X, y = case.load()
    rows = plans.PLANS
    without = tuple(plan for plan in rows if plan.name != case.plan)
    taken: dict[str, list[float]] = {"with": [], "without": []}
    ends = {}
    chosen = []
    choose = plans.choose
    try:
        plans.choose = lambda *args: chosen.append(choose(*args)) or chosen[-1]
        for _ in range(repeats):
            for kind, table in (("with", rows), ("without", without)):
                plans.PLANS = table
                time_taken, ends[kind] = seconds(case, X, y)
                taken[kind].append(time_taken)
    finally:
        plans.PLANS, plans.choose = rows, choose
    assert chosen[0].name == case.plan, f"{chosen[0].name} was chosen"
    least = {kind: min(taken[kind]) for kind in taken}
    each = statistics.median(b / a for a, b in zip(*taken.values(), strict=True))
    cells = [f"{least[kind]:.3f}{ends[kind]}" for kind in least]
    return [case.plan, case.data, *cells, f"{each:.2f}"]


def measure_all(args: Any, results: common.Results) -> None:
    for case in cases(args.data_dir):
        if any(name in case.plan for name in args.plans):
            cells = measure(case, args.repeats)
            results.add(f"{case.plan} | {case.data}", cells=cells)
            print(*cells, sep="  ", flush=True)


def render(results: dict[str, Any]) -> str:
    header = ["plan", "data", "seconds", "without it", "ratio"]
    return common.markdown_table(header, [row["cells"] for row in results["rows"]])


BENCHMARK = Benchmark(
    "plans",
    __doc__,
    measure_all,
    render,
    plans={"default": [""], "help": "parts of names of plans; default: all"},
    repeats=3,
)

if __name__ == "__main__":
    BENCHMARK.run()

"""Linear SVMs: processor seconds of one thread to relative gaps.

    python -m benchmarks svm [--data a9a covtype] [--save DIR]

Ours to gaps that the fit itself proves. Peers by the quickest of a ladder of tolerances
or iterations whose objective is that close to our best lower bound; finding it is not
counted, and a dash says how near they came, and in what time. LinearSVC and Snap ML
penalize their intercepts, the former here by a hundredth of the usual, and are judged
without that. Data with more features than rows have gaps and strengths of their own.
"""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import common
import datasets
import numpy as np
from _harness import Benchmark
from _race import Climb, climb, in_copy
from common import Problem
from sklearn.linear_model import SGDClassifier
from sklearn.svm import LinearSVC

from sklearn_subqn import SubLBFGSLinearSVC


class Grid(NamedTuple):
    """Problems on a data set: (loss, intercept, alphas), and gaps."""

    problems: tuple[tuple[str, bool, tuple[float, ...]], ...]
    gaps: tuple[float, ...]


TALL = Grid(
    (
        ("hinge", False, (1e-4, 1e-5, 1e-6)),
        ("hinge", True, (1e-5,)),
        ("squared_hinge", False, (1e-5,)),
        ("squared_hinge", True, (1e-5,)),
    ),
    (1e-2, 1e-3, 1e-4),
)
WIDE = Grid(
    tuple((loss, False, (1e-1, 1e-3, 1e-5)) for loss in common.LOSSES), (1e-3, 1e-6)
)
DATA = dict.fromkeys(("a9a", "covtype", "rcv1_ccat", "mnist", "dense", "text"), TALL)
DATA |= dict.fromkeys(
    (
        *("leukemia", "independent:200x20000", "independent:500x2000"),
        *("independent:1000x5000", "independent:1000x1200", "correlated:400x10000"),
    ),
    WIDE,
)
TOLERANCES = (0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5, 1e-6)
EPOCHS = (1, 2, 5, 10, 20, 50, 100, 200, 500)


def ours(X: Any, y: Any, problem: Problem, tol: float, **more: Any) -> Any:
    """Return our estimator, fitted."""
    more |= {"loss": problem.loss, "fit_intercept": problem.intercept}
    return SubLBFGSLinearSVC(problem.alpha, tol=tol, **more).fit(X, y)


def linear_svc(X: Any, y: Any, problem: Problem, dual: bool, tol: float) -> Any:
    return LinearSVC(
        loss=problem.loss,
        C=1.0 / (len(y) * problem.alpha),
        fit_intercept=problem.intercept,
        intercept_scaling=10.0 if problem.intercept else 1.0,
        dual=dual,
        tol=tol,
        max_iter=10**6,
        random_state=0,
    ).fit(X, y)


def sgd(X: Any, y: Any, problem: Problem, epochs: int) -> Any:
    options = {"loss": problem.loss, "fit_intercept": problem.intercept}
    return SGDClassifier(
        alpha=problem.alpha, tol=None, max_iter=epochs, random_state=0, **options
    ).fit(X, y)


def snap_ml(X: Any, y: Any, problem: Problem, tol: float) -> Any:
    from snapml import SupportVectorMachine

    return SupportVectorMachine(
        loss=problem.loss,
        regularizer=len(y) * problem.alpha,
        fit_intercept=problem.intercept,
        n_jobs=1,
        tol=tol,
        max_iter=10**6,
        random_state=0,
    ).fit(X, y)


def cyanure(X: Any, y: Any, problem: Problem, tol: float) -> Any:
    """Return its model; its squared hinge has a factor 1/2."""
    from cyanure.estimators import Classifier

    return Classifier(
        loss="sqhinge",
        penalty="l2",
        lambda_1=0.5 * problem.alpha,
        fit_intercept=problem.intercept,
        tol=tol,
        max_iter=10**5,
        n_threads=1,
        verbose=False,
    ).fit(X, y)


def excess_over(X: Any, y: Any, problem: Problem, bound: float, model: Any) -> float:
    """Return how far the objective of a peer is above a lower bound, as a share."""
    b = float(np.ravel(getattr(model, "intercept_", 0.0))[0])
    return float(common.objective(X, y, model.coef_, b, problem) / bound - 1.0)


def peers(
    X: Any, y: Any, problem: Problem, bound: float, gaps: Any, limit: float
) -> dict[str, Climb]:
    """Return how far the ladders of the peers lead."""
    excess = partial(excess_over, X, y, problem, bound)
    squared = problem.loss == "squared_hinge"
    ladders: dict[str, tuple[Any, Any]] = {
        "LinearSVC": (TOLERANCES, partial(linear_svc, X, y, problem, True)),
        "SGDClassifier": (EPOCHS, partial(sgd, X, y, problem)),
    }
    if squared:
        fit = partial(linear_svc, X, y, problem, False)
        ladders["LinearSVC, primal"] = TOLERANCES, fit
    if find_spec("snapml"):
        ladders["Snap ML"] = TOLERANCES, partial(snap_ml, X, y, problem)
    if squared and find_spec("cyanure"):
        ladders["Cyanure"] = TOLERANCES, partial(cyanure, X, y, problem)
    return {
        name: climb(settings, fit, excess, gaps, limit)
        for name, (settings, fit) in ladders.items()
    }


def measure(name: str, args: Any, results: common.Results) -> None:
    data = datasets.load(name, args.data_dir, args.cache_dir)
    X, y = data.X, data.y
    grid = DATA.get(name, TALL)
    problems = [
        Problem(name, loss, alpha, intercept)
        for loss, intercept, alphas in grid.problems
        for alpha in args.alphas or alphas
    ]
    for problem in problems:
        fits = [partial(ours, X, y, problem, gap) for gap in grid.gaps]
        exact = ours(X, y, problem, min(1e-5, *grid.gaps))
        bound = exact.objective_ - exact.dual_gap_
        theirs = peers(X, y, problem, bound, grid.gaps, args.limit)
        found = {}
        for gap, fit in zip(grid.gaps, fits, strict=True):
            model, seconds = in_copy(fit)
            proven = model.dual_gap_ / model.objective_
            own = [seconds, model.history_[0].passes[-1], proven]
            cells = {peer: end.cell(gap) for peer, end in theirs.items()}
            found[f"{gap:g}"] = {"ours": own, **cells}
        facts = {**problem._asdict(), "shape": X.shape, "limit": args.limit}
        results.add(problem.key, **facts, found=found)
        print(problem.key, found, flush=True)


def render(results: dict[str, Any]) -> str:
    names = ("LinearSVC", "LinearSVC, primal", "SGDClassifier", "Snap ML", "Cyanure")
    lines = []
    for row in results["rows"]:
        n, d = row["shape"]
        intercept = ", intercept" if row["intercept"] else ""
        title = f"{row['data'].partition(':')[0]}, {n} x {d}"
        model = f"{row['loss'].replace('_', ' ')}{intercept}"
        for gap, cells in row["found"].items():
            seconds, passes, proven = cells["ours"]
            mark = "" if proven <= float(gap) else f" (gap {proven:.0e})"
            own = [f"{seconds:.2g}{mark}", f"{passes:.0f}"]
            others = [cells.get(name, "") for name in names]
            lines.append([title, model, f"{row['alpha']:g}", gap, *own, *others])
    header = ["data", "loss", "alpha", "gap", "ours, proven", "passes", *names]
    limits = " to ".join(sorted({f"{row['limit']:g}" for row in results["rows"]}))
    return (
        f"Processor seconds, one thread. A dash: not in {limits} seconds for all fits "
        "of a ladder, of which the last may take three times as long; in brackets how "
        "far above our bound the nearest was, and its seconds.\n\n"
    ) + common.markdown_table(header, lines)


BENCHMARK = Benchmark(
    "svm",
    __doc__,
    measure,
    render,
    list(DATA),
    each=True,
    alphas=[float],
    limit={"default": 5.0, "help": "seconds for a ladder of a peer"},
)

if __name__ == "__main__":
    BENCHMARK.run()

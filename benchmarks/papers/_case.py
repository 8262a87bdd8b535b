"""What a figure is: problems, methods, and how to run them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import datasets
import numpy as np

from sklearn_subqn import (
    BMRMClassifier,
    L1LogisticOWLQN,
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
)

#: From nothing to a figure of Matplotlib.
Draw = Callable[[], Any] | None


class Settings(NamedTuple):
    """Where data are, and whether to run at full size."""

    data_dir: str | None = None
    cache_dir: str | None = None
    full: bool = False

    def seconds(self, limit: float) -> float:
        return 20.0 * limit if self.full else limit

    def load(self, problem: Problem) -> tuple[Any, Any]:
        """Return the data of a problem, of its first rows only unless at full size."""
        X, y = _load(problem.data, problem.loss, self.data_dir, self.cache_dir)
        rows = None if self.full else problem.rows
        return X[:rows], y[:rows]


class Case(NamedTuple):
    """A figure or table of a source.

    ``run`` returns tables in Markdown and what draws the figure, if there is any.
    """

    name: str
    title: str
    run: Callable[[Settings], tuple[str, Draw]]


class Problem(NamedTuple):
    """A loss on the first rows of a data set; None for all."""

    data: str
    loss: str
    alpha: float
    rows: int | None = None

    @property
    def title(self) -> str:
        return f"{self.data}, α = {self.alpha:g}"


class Method(NamedTuple):
    """A solver with its options.

    ``unit_step`` starts from the end of a step of length one from zero, as the source
    does where zero is a kink. ``ladder`` is of a peer without iterates: an estimator
    for each limit of iterations. ``stop`` says after which objectives to end.
    """

    solver: str
    options: Mapping[str, Any] = {}
    style: str = "-"
    unit_step: bool = False
    ladder: Callable[[Problem, int, int], Any] | None = None
    stop: Callable[[list[float]], bool] | None = None


class Trace(NamedTuple):
    """What a run has reached after each iteration, beginning with the start."""

    objective: Any
    gap: Any
    seconds: Any
    phases: list[str]
    end: str

    @property
    def k(self) -> int | None:
        """Iterations of direction searches (Yu 2009, Alg. 3.2), where there are any."""
        names, counts = zip(*(p.partition(":")[::2] for p in self.phases), strict=True)
        if not {"subbfgs", "owlqn*"} & set(names):
            return None
        return sum(int(count.partition(",")[0]) for count in counts if count)

    def first(self, level: float, best: float) -> int | None:
        """Return the first iteration with an objective up to (1 + level) best."""
        reached = self.objective <= (1.0 + level) * best
        return int(np.argmax(reached)) if reached.any() else None


class Watch:
    """Calls ``watch`` with the model of each iteration; a callback of scikit-learn.

    It returns whether to stop.
    """

    def __init__(self, watch: Callable[[Any], bool | None]) -> None:
        self._watch = watch

    def setup(self, estimator: Any, context: Any) -> None: ...

    def teardown(self, estimator: Any, context: Any) -> None: ...

    def on_fit_task_begin(self, estimator: Any, context: Any, **given: Any) -> None: ...

    def on_fit_task_end(
        self, estimator: Any, context: Any, *, fitted_estimator: Any, **given: Any
    ) -> bool | None:
        of_iteration = context.task_name == "iteration"
        return self._watch(fitted_estimator) if of_iteration else False


@cache
def _load(data: str, loss: str, data_dir: str | None, cache_dir: str | None) -> Any:
    if loss in ("multiclass", "multilabel"):
        return datasets.load_joint(data, data_dir)
    return datasets.load(data, data_dir, cache_dir)[1:]


def estimator(problem: Problem, **params: Any) -> Any:
    """Return our estimator of a problem."""
    params |= {"alpha": problem.alpha, "fit_intercept": False}
    if problem.loss == "multiclass":
        return MulticlassHingeClassifier(**params)
    if problem.loss == "multilabel":
        return MultilabelHingeClassifier(reduction="max", threshold=False, **params)
    if problem.loss == "l1":
        return L1LogisticOWLQN(**params)
    return BMRMClassifier(loss=problem.loss, **params)


def trace(
    problem: Problem,
    method: Method,
    settings: Settings,
    *,
    limit: float,
    max_iter: int = 10_000,
    tol: float = 0.0,
    goal: float = -np.inf,
) -> Trace:
    """Run a method until a gap, an objective, or a limit of seconds or iterations."""
    X, y = settings.load(problem)
    limit = settings.seconds(limit)
    if method.ladder is not None:
        return _climb(X, y, problem, method.ladder, limit, goal)
    values: list[float] = []
    gaps: list[float] = []
    seconds: list[float] = []

    def watch(progress: Any) -> bool:
        seconds.append(time.process_time() - begin)
        values.append(progress.objective)
        gaps.append(progress.dual_gap)
        return (
            seconds[-1] > limit
            or values[-1] <= goal
            or (method.stop is not None and method.stop(values))
        )

    model = estimator(
        problem,
        solver=method.solver,
        solver_options=dict(method.options),
        tol=tol,
        max_iter=max_iter,
        callback=watch,
    )
    start = {"coef_init": unit_step(problem, X, y)} if method.unit_step else {}
    begin = time.process_time()
    model.fit(X, y, **start)
    ends = {
        "": gaps[-1] <= tol * values[-1] or values[-1] <= goal,
        "limit of seconds": seconds[-1] > limit,
        "limit of iterations": model.n_iter_ >= max_iter,
        "its criterion": method.stop is not None and method.stop(values),
    }
    end = next((name for name, holds in ends.items() if holds), "no progress")
    history = model.history_[0]
    return Trace(*map(np.array, (values, gaps, seconds)), history.phase, end)


def _climb(
    X: Any, y: Any, problem: Problem, ladder: Any, limit: float, goal: float
) -> Trace:
    """Return what a peer reaches with limits of 1, 2, 4 and more iterations."""
    seconds, values = [0.0], [value(problem, X, y, np.zeros(X.shape[1]))]
    steps, end = 1, "limit of seconds"
    while seconds[-1] < limit:
        model = ladder(problem, len(y), steps)
        begin = time.process_time()
        model.fit(X, y)
        seconds.append(time.process_time() - begin)
        values.append(value(problem, X, y, model.coef_.ravel()))
        if values[-1] <= goal or np.max(model.n_iter_) < steps:
            end = ""
            break
        steps *= 2
    best = np.minimum.accumulate(values)
    none = np.full(len(best), np.inf)
    return Trace(best, none, np.array(seconds), len(best) * [""], end)


def value(problem: Problem, X: Any, y: Any, w: Any) -> float:
    """Return the objective of a binary problem."""
    margins = y * (X @ w)
    losses = np.logaddexp(0.0, -margins)
    if problem.loss == "hinge":
        losses = np.maximum(0.0, 1.0 - margins)
    return 0.5 * problem.alpha * float(w @ w) + float(losses.mean())


def unit_step(problem: Problem, X: Any, y: Any) -> Any:
    """Return minus a subgradient at zero: the first of the labels that tie is taken."""
    if problem.loss == "multiclass":
        u = np.zeros((len(y), int(y.max()) + 1))
        u[np.arange(len(y)), y] = -1.0
        u[np.arange(len(y)), np.where(y == 0, 1, 0)] = 1.0
    elif problem.loss == "multilabel":
        counts = (y.any(axis=1) & ~y.all(axis=1)).astype(float)
        u = np.zeros(y.shape)
        rows = np.arange(len(y))
        u[rows, y.argmax(axis=1)] -= counts
        u[rows, y.argmin(axis=1)] += counts
    else:
        u = -y[:, np.newaxis]
    return -(X.T @ u).T / len(y)


@cache
def optimum(problem: Problem, settings: Settings, tol: float, limit: float) -> float:
    """Return the objective of our default solver at a gap of ``tol``."""
    goal = trace(problem, Method("auto"), settings, limit=limit, tol=tol)
    return float(goal.objective[-1])

"""One-class support vector machines by the share of outliers, nu.

J(w, rho) = alpha / 2 ||w||² - nu rho + sum_i s_i max(0, rho - <w, x_i>) (Schölkopf et
al. 2001, eq. 3, times nu) is minimal over w for fixed rho > 0 at w = rho v, where v
minimizes the problem with margin one and strength beta = alpha rho. The mean of the
dual variables 0 <= b_i <= 1 of the latter increases with beta up to one. If the mean is
nu, the dual variables are optimal for J as well: the dual of J maximizes -||sum_i s_i
b_i x_i||² / (2 alpha) over b with mean nu. Larger means are feasible too, since no
optimum has rho < 0.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy import optimize

from .._core.arrays import Floats
from .._core.losses import NOVELTY_LOSS
from .._core.objectives.objective import Cut, Dual
from .._core.rounding import CLOSE, MOST_STEPS, ROUNDED, rounding, running_rounding
from .._core.solvers import History, Start, Status, Stopping
from .._solving.callbacks import FitTask
from .._solving.report import Report
from .._solving.solution import Progress, Solution
from .._solving.tolerance import NEARLY_EXACT, gap_between
from . import LinearModel, LinearProblems


def weighted_quantile(scores: Floats, weights: Floats, share: float) -> float:
    """Return a quantile of the scores, with the given share of the weights below.

    The weights sum to one. If the weights up to a score sum exactly to the share, the
    quantile is midway between this score and the next.
    """
    order = np.argsort(scores)
    order = order[weights[order] > 0.0]
    total = np.cumsum(weights[order])
    slack = running_rounding(len(total))
    ends = np.searchsorted(total, [share - slack, share + slack])
    ends = np.minimum(ends, len(order) - 1)
    return float(scores[order[ends]].mean())


class NuProblem(LinearProblems):
    """The problem with a given share of outliers, nu.

    Parameters
    ----------
    model : LinearModel
        A model with an L2 penalty.
    X : {ndarray, CSR matrix} of shape (n, d)
    weights : ndarray of shape (n,)
        Weights that sum to one.
    nu : float
    """

    def __init__(self, model: LinearModel, X: Any, weights: Floats, nu: float) -> None:
        super().__init__(model, X, [np.ones(X.shape[0])], NOVELTY_LOSS, weights)
        self.name, self.nu = model.name, nu

    def solve(self, alpha: Any, task: FitTask, **_: Any) -> list[Solution]:
        """Find the strength at which the mean of the dual variables is nu."""
        search = _Search(self, alpha)
        report = Report(self.name, search.fitted, None, self.settings, task)
        search.run(report)
        solution = search.solution()
        self.starts[0] = solution.start
        report.end(solution)
        return [solution]

    def fit_margin_of_one(self, strength: float) -> Solution:
        """Return the solution for rho = 1, starting at the last solution."""
        tol = 0.1 * self.settings.tol
        quiet = self.settings._replace(tol=tol, callback=None, verbose=0)
        objective = self.objective(0, strength)
        return self._solve(0, objective, quiet, FitTask.silent())

    def best_margin(self, scores: Floats) -> tuple[float, float]:
        """Return the best rho for given scores, and nu rho minus the mean loss."""
        margin = weighted_quantile(scores, self.weights, self.nu)
        loss = self.weights @ np.maximum(margin - scores, 0.0)
        return margin, self.nu * margin - float(loss)

    def attributes(self) -> dict[str, Any]:
        """Return the attributes for predictions."""
        offset, _ = self.best_margin(self.design.forward(self.starts[0].w))
        return {**super().attributes(), "offset_": offset}

    def start_from(self, previous: dict[str, Any]) -> None:
        """Start from a previous solution, scaled to a margin of one."""
        super().start_from(previous)
        w, dual, *_ = self.starts[0]
        margin, _ = self.best_margin(self.design.forward(w))
        self.starts[0] = Start(w / margin, dual) if margin > 0.0 else Start(0.0 * w)


class _Search:
    """Fits with margin one, and the primal and dual points of J from these fits.

    Parameters
    ----------
    problem : NuProblem
    alpha : float
    """

    def __init__(self, problem: NuProblem, alpha: float) -> None:
        self._problem, self._alpha = problem, alpha
        self._objective = problem.objective(0, alpha)
        weights = self._objective.weights
        # Two dual points, each stored as the mean of its dual variables, and its cut.
        # One mean is below nu, the other at least nu. Initially all dual variables are
        # zero at the first point and one at the second.
        self._below = 0.0, self._objective.cut(Dual(np.zeros_like(weights)))
        self._above = 1.0, self._objective.cut(Dual(-weights))
        least = problem.nu * (1.0 + 4.0 * rounding(len(weights)))
        self._least_mean = min(least, 1.0)
        self._largest = 0.5 * (problem.nu * self._objective.risk.row_size) ** 2 / alpha
        self._best, self._value = np.zeros(self._objective.n_params), 0.0
        self._bound = -np.inf
        self._history, self._begin = History(), time.perf_counter()
        self._known: dict[float, float] = {}
        self._stopped = self._proven = False

    def run(self, report: Report) -> None:
        """Bracket the strength at which the mean is nu, then find the root."""
        self._report = report
        center, start = self._above[1].normal, self._problem.starts[0]
        strength = self._problem.nu * float(center @ center) or 1.0
        if start.w.any():
            # At rho = 1, <w, strength w> = sum_i s_i b_i <w, x_i> is about nu.
            strength = self._problem.nu / float(start.w @ start.w)
        x, step = float(np.log(strength)), float(np.log(2.0))
        ends: dict[bool, float] = {}
        while len(ends) < 2 and len(self._known) < MOST_STEPS:
            excess = self._excess(x)
            if excess == 0.0:
                return
            ends[excess > 0.0] = x
            x += -step if excess > 0.0 else step
            step *= 2.0
        if len(ends) == 2:
            options = {"xtol": ROUNDED, "maxiter": MOST_STEPS, "disp": False}
            optimize.brentq(self._excess, *ends.values(), **options)

    def _excess(self, x: float) -> float:
        """Return the mean of the dual variables at the strength exp(x), minus nu.

        Zero ends the search.
        """
        if x not in self._known:
            fit = self._problem.fit_margin_of_one(float(np.exp(x)))
            self._known[x] = self._learn(fit)
        return self._known[x]

    def _learn(self, fit: Solution) -> float:
        """Improve the primal and the dual point; return the excess."""
        size = self._alpha * float(fit.w @ fit.w)
        _, gain = self._problem.best_margin(fit.scores)
        if gain > 0.0 and -0.5 * gain**2 / size < self._value:
            self._value = -0.5 * gain**2 / size
            self._best = fit.w * (gain / size)
        dual = fit.dual
        if dual is None:
            raise TypeError("The solver returns no dual point.")
        found = -float(dual.sum()), self._objective.cut(Dual(dual))
        if found[0] >= self._least_mean:
            self._above = found
        else:
            self._below = found
        self._bound = max(self._bound, self._dual_value())
        gap = self._value - self._bound
        # Small problems continue until the strength is accurate up to rounding.
        exact = fit.relative_gap <= NEARLY_EXACT
        nothing = gap <= CLOSE * self._largest
        rule = Stopping(self._problem.settings.tol)
        self._proven = rule.is_reached(gap, self._value) or nothing
        self._record(fit, gap)
        over = self._proven and (not exact or nothing)
        return 0.0 if over or self._stopped else found[0] - self._problem.nu

    def _dual_value(self) -> float:
        """Return the dual value of the combination of both dual points with mean nu."""
        (low, below), (high, above) = self._below, self._above
        share = (self._least_mean - low) / (high - low)
        shares = np.array([1.0 - share, share])
        others = np.array([cut[1:] for cut in (below, above)])
        mixed = Cut.mixed(shares, np.array([below.normal, above.normal]), others)
        # The mean of the dual variables is at least nu, so the infimum over rho >= 0 is
        # attained at rho = 0.
        return self._objective.dual_value(mixed._replace(offset=0.0))

    def _record(self, fit: Solution, gap: float) -> None:
        """Record a fit, and report the progress."""
        self._last, history = fit, self._history
        history.objective.append(self._value)
        history.lower_bound.append(self._bound)
        history.passes.append(self._objective.passes)
        history.seconds.append(time.perf_counter() - self._begin)
        history.phase.append(fit.history.phase[-1])
        progress = Progress(
            len(history) - 1,
            self._value,
            gap,
            history.passes[-1],
            history.seconds[-1],
        )
        self._stopped = self._report.iteration(progress, self._best)

    def fitted(self, w: Floats) -> dict[str, Any]:
        """Return the attributes of an estimator with parameters w, during the fit."""
        starts = self._problem.starts
        self._problem.starts = [Start(w)]
        attributes = self._problem.attributes()
        self._problem.starts = starts
        return attributes

    def solution(self) -> Solution:
        """Return the best primal point, with the best bound."""
        problem = self._problem
        w = self._best.astype(self._objective.design.dtype).astype(np.float64)
        scores = self._objective.design.forward(w)
        value = 0.5 * self._alpha * float(w @ w) - problem.best_margin(scores)[1]
        status = Status.CALLBACK if self._stopped else Status.CONVERGED
        if not (self._proven or self._stopped):
            # The accuracy of the search is limited by the accuracy of its fits.
            within = self._last.proven
            status = Status.STALLED if within else self._last.status
        return Solution(
            Start(w, problem.starts[0].dual, scores),
            value,
            gap_between(value, self._bound),
            len(self._history) - 1,
            self._history,
            self._proven or self._stopped,
            not w.any(),
            abs(value),
            plan=self._last.plan,
            status=status,
            asked=f"tol={problem.settings.tol:g}",
        )

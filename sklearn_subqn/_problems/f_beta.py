"""Maximization of F-beta by a search over class weights and thresholds of the scores.

Some cost-sensitive classifier with a threshold attains the largest F-beta (Parambath,
Usunier, Grandvalet 2014), since one minus F-beta is a quotient of linear functions of
the numbers of false negatives and false positives.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .._checks.callers import user_level
from .._core.arrays import Array, Floats, Indices, Mask
from .._core.losses import BINARY_LOSSES, read_only
from .._core.objectives.objective import Objective
from .._core.rounding import ROUNDED
from .._core.rows.design import Design
from .._solving.callbacks import FitTask
from .._solving.solution import Solution
from . import LinearModel, LinearProblems, of_classes, signs
from .maps import Pair

#: Attributes of a fitted model, one value for each class: see ``BMRMClassifier``.
F_BETA_ATTRIBUTES = ("positive_weight_", "threshold_", "f_beta_")

# Weights of the positive class, in the order in which they are tried. Each fit starts
# at the previous solution, and the first of equally good weights is chosen. Small
# weights are best for rcv1 topics with less than 1 % of the rows, and large weights for
# class 5 of covtype.
_WEIGHTS = (1.0, 0.5, 2.0, 5.0, 10.0, 20.0)


def best_threshold(
    scores: Floats, positive: Mask, weights: Floats, beta: float
) -> tuple[float, float]:
    """Return the threshold with the largest F-beta, and this F-beta.

    Scores above the threshold predict the class. The threshold is midway between two
    scores; of equally good thresholds the largest is returned.

    Parameters
    ----------
    scores : ndarray of shape (n,)
    positive : ndarray of bool, shape (n,)
        Rows of the class; at least one is true.
    weights : ndarray of shape (n,)
        Positive weights.
    beta : float
    """
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    above = np.cumsum(weights[order])
    hits = np.cumsum((weights * positive)[order])
    values = (1.0 + beta**2) * hits / (above + beta**2 * hits[-1])
    # Rows with equal scores are on the same side of a threshold.
    ends = np.flatnonzero(np.append(ranked[1:] < ranked[:-1], True))
    best = ends[np.argmax(values[ends] >= values[ends].max() * (1.0 - ROUNDED))]
    if best + 1 == len(ranked):
        # The threshold that accepts all rows is a little below the smallest score.
        return float(ranked[-1] - (np.ptp(ranked) or 1.0)), float(values[best])
    return float(0.5 * (ranked[best] + ranked[best + 1])), float(values[best])


def folds_of_rows(design: Design, positive: Mask, n_folds: int) -> Indices:
    """Return a fold for each row; all folds have about equal shares of both classes.

    Folds are assigned by the position of rows along a random direction, which depends
    on the features alone: equal rows of a class are in the same fold, whatever the
    order of rows. If a class has fewer distinct rows than folds, there are fewer folds.
    """
    direction = np.random.default_rng(0).standard_normal(design.n_params)
    places = design.forward(direction)
    apart = ROUNDED * float(np.abs(places).max(initial=0.0))
    numbers = np.empty(len(places), dtype=np.intp)
    for rows in (np.flatnonzero(positive), np.flatnonzero(~positive)):
        order = rows[np.argsort(places[rows])]
        numbers[order] = np.cumsum(np.diff(places[order], prepend=-np.inf) > apart)
        n_folds = min(n_folds, int(numbers[order[-1]]))
    return numbers % n_folds


class FBetaProblems(LinearProblems):
    """Problems of the squared hinge, with class weights and thresholds for F-beta.

    Parameters
    ----------
    model : LinearModel
    X : {ndarray, CSR matrix} of shape (n, d)
    y : ndarray of shape (n,)
    weights : ndarray of shape (n,)
        Positive weights that sum to one; F-beta counts rows by their weights.
    classes : ndarray
    positive : int or None
        The number of the positive class of two.
    beta : float
    """

    def __init__(
        self,
        model: LinearModel,
        X: Any,
        y: Array,
        weights: Floats,
        classes: Array,
        positive: int | None,
        beta: float,
    ) -> None:
        targets = signs(y, classes, positive)
        data = model, X, targets, BINARY_LOSSES["squared_hinge"], weights
        known = of_classes(classes, positive)
        super().__init__(*data, outputs=classes, known=known, opposite=positive == 0)
        self._beta = beta
        # A relative gap of 1 % is small enough to compare the class weights.
        tol = max(self.settings.tol, 1e-2)
        self._quiet = self.settings._replace(tol=tol, callback=None, verbose=0)
        self._positive_weights = np.ones(len(self))
        self._thresholds = np.zeros(len(self))
        self._f_betas = np.zeros(len(self))
        self._first_start = self.starts[0]

    def objective(self, index: int, alpha: float) -> Objective:
        """Return the objective for the present weight of the positive class."""
        return self._weighted(index, alpha, self.weights)

    def _weighted(self, index: int, alpha: float, weights: Floats) -> Objective:
        """Return the objective for row weights times the positive class's weight."""
        positive = self.targets[index] > 0.0
        weights = weights * np.where(positive, self._positive_weights[index], 1.0)
        objective = super().objective(index, alpha)
        weights = read_only(weights / weights.sum())
        return objective.with_risk(objective.risk.with_weights(weights))

    def solve(self, alpha: Any, task: FitTask, **_: Any) -> list[Solution]:
        """Choose a weight for each class, solve its problem, and choose a threshold."""
        solutions = []
        for index, own in enumerate(np.broadcast_to(alpha, len(self)).tolist()):
            self._choose_weight(index, own)
            objective = self.objective(index, own)
            solution = self._solve(index, objective, self.settings, task)
            scores = self._held_out_scores(index, own, solution)
            best = self._best_threshold(index, scores)
            self._thresholds[index], self._f_betas[index] = best
            solutions.append(solution)
        return solutions

    def _choose_weight(self, index: int, alpha: float) -> None:
        """Choose the weight with the largest F-beta, and start at its solution."""
        found = []
        for weight in _WEIGHTS:
            self._positive_weights[index] = weight
            solution = self._solve_quietly(index, self.objective(index, alpha))
            _, value = self._best_threshold(index, solution.scores)
            found.append((value, weight, self.starts[index]))
        largest = max(value for value, *_ in found) * (1.0 - ROUNDED)
        best = next(each for each in found if each[0] >= largest)
        _, self._positive_weights[index], self.starts[index] = best

    def _held_out_scores(self, index: int, alpha: float, solution: Solution) -> Floats:
        """Return cross-validated scores; with one fold, the scores of the solution."""
        positive = self.targets[index] > 0.0
        folds = folds_of_rows(self.design, positive, n_folds=5)
        if not folds.any():
            warnings.warn(
                f"{self._labels[index]} has fewer than two distinct samples: its "
                "threshold is chosen by scores of the samples that it was fitted to.",
                UserWarning,
                stacklevel=user_level(),
            )
            return solution.scores
        scores = np.empty_like(solution.scores)
        # Starting at the solution for all rows would leak information on held-out rows.
        for fold in range(folds.max() + 1):
            self.starts[index] = self._first_start
            objective = self._weighted(index, alpha, self.weights * (folds != fold))
            fit = self._solve_quietly(index, objective)
            scores[folds == fold] = fit.scores[folds == fold]
        self.starts[index] = solution.start
        return scores

    def _solve_quietly(self, index: int, objective: Objective) -> Solution:
        """Solve a problem less accurately, without reports to the user."""
        # A dual point for other weights is a poor start.
        self.starts[index] = self.starts[index]._replace(dual=None)
        return self._solve(index, objective, self._quiet, FitTask.silent())

    def _best_threshold(self, index: int, scores: Floats) -> tuple[float, float]:
        """Return the best threshold of a problem, and its F-beta."""
        positive = self.targets[index] > 0.0
        return best_threshold(scores, positive, self.weights, self._beta)

    def _found(self, index: int) -> Pair:
        """Return coefficients, and an intercept that moves the threshold to zero."""
        coef, intercept = super()._found(index)
        return coef, intercept - self._thresholds[index]

    def attributes(self) -> dict[str, Any]:
        attributes = super().attributes()
        # The stored, rounded intercepts plus these thresholds equal the intercepts of
        # the problems.
        _, intercepts = self._reported(self._rows(start.w) for start in self.starts)
        thresholds = intercepts.astype(np.float64) - attributes["intercept_"]
        values = self._positive_weights, thresholds, self._f_betas
        chosen = {
            name: found.copy() if len(self) > 1 else float(found[0])
            for name, found in zip(F_BETA_ATTRIBUTES, values, strict=True)
        }
        return {**attributes, **chosen}

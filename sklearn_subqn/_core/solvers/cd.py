"""Coordinate descent on quadratic models for L1-penalized smooth losses.

Newton's method on the loss, with the penalty left as it is: the model of each iteration
is minimized by coordinate descent (Aggarwal, section 5.8.1.2; Yuan, Ho and Lin 2012),
over a working set of features.
"""

from __future__ import annotations

import numpy as np

from ..driver import Iterate, Solver, Start, Status, Stopping, size_of
from ..losses._base import Floats, Rows
from ..memory import COPY_SIZE
from ..objectives.objective import Dual, Line, Objective, Point
from ..objectives.risk import Risk
from ..rounding import ROUNDED
from ..rows.sampling import fractions
from ..steps.intercepts import minimize_intercept
from ..steps.line_search import backtrack, lengthen, rounding_of
from ..steps.quadratic import (
    QuadraticModel,
    by_columns_at_last,
)

#: At first the model is minimized until its violations are a tenth of those before.
ROUGH = 0.1

# A model whose matrix comes from a sample is minimized a little better, since sweeps
# over it are cheap: to this fraction of the violations before.
_SAMPLED = 0.03

# Once predictions are good, a dual point needs every last violation removed: the model
# is minimized to a thousandth of the violations before.
_FINE = 1e-3

# With several scores per row, an inexact minimizer of the model may cost 5 % of the
# gap. docs/constants.md has the figures.
_SHARE_OF_GAP = 0.05

# An inexact minimizer may also cost four fifths of the gap at which the run ends.
_SHARE_OF_TOL = 0.8

# A model is minimized by at most 20 sweeps over the working set before predictions are
# good.
_MAX_ROUGH = 20

# A model is minimized by at most 2000 sweeps once predictions are good.
_MAX_FINE = 2000

# A model is taken to be the last one if its prediction should be off by at most 0.3
# times the gap at which the run ends. Last models save an iteration on sparse data such
# as 600 x 1,100, alpha 3e-4.
_LAST_ERROR = 0.3

# No model is taken to be the last one if a score moved by more than three units of the
# loss in the step before: models that reach farther predict probabilities beyond 0 and
# 1, and dual points without these violate constraints.
_LAST_MOVE = 3.0

# A prediction is good if its error is at most 0.3 times the gap.
_GOOD = 0.3

# A good prediction is also off by at most 3e-4 times the objective.
_SMALL = 3e-4

#: Scores move by at most about six units of the loss on account of their own row at
#: first, unless the loss says otherwise.
LONGEST = 6.0

# Scores may move four times as far each time that violations do not fall to ``_SLOW``
# of the least ones for the second time, nor J by ``_STEEP`` of itself.
_LONGER = 4.0

# Rows with a hundredth of all second derivatives may be left out of models by columns,
# and with a tenth of that each time that a step is shortened, or J does not fall any
# more. docs/constants.md has the figures.
_NEGLIGIBLE = 0.01

# A working set holds at least 200 coordinates.
_SMALL_SET = 200

# A working set grows from one iteration to the next by at most twice the number of
# coordinates that are used. docs/constants.md has the figures.
_GROWTH = 2

# With several scores per row matrices of the working set are expensive, and it grows by
# at most half of the coordinates that are used. docs/constants.md has the figures.
_GROWTH_SEVERAL = 0.5

# A sample has at least one row in 25, and more where a model by columns does not hold
# all entries of X. docs/constants.md has the figures.
_MOST_STRIDE = 25.0

# Models by columns with less than a third of the entries of X take less time than the
# further iterations after samples. docs/constants.md has the figures.
_LEAST_ENTRIES = 1.0 / 3.0

# A sample for the Hessian has at least 20 rows for each parameter in use, and twice as
# many once violations do not fall to ``_SLOW`` of those before.
_ROWS_PER_USED = 20

# Violations fall slowly if more than half of them is left after an iteration.
_SLOW = 0.5

# The objective falls steeply if it loses at least a tenth of itself in an iteration.
_STEEP = 0.1

# The chance of a row to be in the sample for the Hessian follows its second
# derivatives, of whose sum a fifth is added evenly.
_LEAST_SHARE = 0.2

# The method ends after five iterations in which violations have not been halved, if the
# objective does not fall any more either.
_MAX_STUCK = 5


def cd(objective: Objective, start: Start, stopping: Stopping) -> Solver:
    """Yield the iterates of the proximal Newton method.

    Parameters
    ----------
    objective : Objective
        Its loss is smooth and has second derivatives, its regularizer is an
        ``ElasticNet`` or a ``GroupPenalty``.
    start : Start
        Starting point.
    stopping : Stopping
        What gap ends the run; dual points more accurate than that are of no use.

    Returns
    -------
    status : str
        "stationary": the conditions of optimality hold exactly. "no_step": no step
        lowers the objective, or "no_progress": violations no longer fall. Both happen
        where rounding is all that is left.

    Notes
    -----
    Lower bounds come from two dual points: the gradient of the loss at an iterate, and
    its prediction by the quadratic model. The latter satisfies the dual constraints up
    to the accuracy to which the model was minimized, and is off by the square of the
    step only.

    A matrix from a sample of the rows serves several iterations, as long as violations
    fall by half in each and the coordinates with the larger ones take part.
    """
    if not objective.risk.in_one_place:
        raise TypeError("Coordinate descent needs all rows in one place.")
    regularizer = objective.groups or objective.elastic_net
    alpha = objective.alpha
    point = start.or_origin(objective)
    unit = objective.risk.score_scale(point.scores)
    trust, models = _Trust(unit), _Models(objective)
    predictions = _Predictions(objective, stopping, unit)
    bound, stated, step = -np.inf, False, 1.0
    while True:
        bound = max(bound, point.lower_bound)
        if not stated:
            yield Iterate(point, None, bound, "cd")
        w, gradient = point.w, point.risk_gradient
        residual = regularizer.smallest_subgradient(w, gradient, alpha)
        worst = float(np.abs(residual).max())
        if worst == 0.0:
            return Status.STATIONARY
        if not trust.adapts(point.value, worst, step):
            return Status.NO_PROGRESS
        predictions.look_ahead(point.value)
        model = models.at(point, residual, worst, trust, predictions)
        accuracy = predictions.accuracy(point, bound, worst, models.sampled, model)
        p = model.minimize(w, gradient, accuracy, models.max_sweeps)
        line = model.along(point, p)
        penalties = regularizer.value(w + p) - regularizer.value(w)
        decrease = float(gradient @ p) + alpha * penalties
        step, new = backtrack(line, decrease)
        if step == 1.0:
            step, new = lengthen(line, new)
        if step == 0.0:
            if not models.sampled:
                return Status.NO_STEP
            models.refuse()
            stated = True
            continue
        new = minimize_intercept(new)
        if abs(decrease) <= rounding_of(point):
            # The new point is no worse: a larger value would be a rounding error.
            new.value = min(new.value, point.value)
        whole = step == 1.0
        predicted = -np.inf
        if whole and not models.sampled:
            predicted = predictions.lower_bound(line, new, model, bound)
        else:
            predictions.forget(good=predictions.good and whole)
        stated = predicted > bound
        bound = max(bound, predicted)
        trust.follow(line)
        point = new
        if stated:
            yield Iterate(point, None, bound, "cd")


class _Trust:
    """The trust in models: how far they reach, and which rows they may leave out.

    Both change with what comes of the steps.

    Parameters
    ----------
    unit : float
        A length of scores, of the loss.

    Attributes
    ----------
    longest : float
        As of ``damping``.
    negligible : float
        As of ``ColumnStep``.
    """

    def __init__(self, unit: float) -> None:
        self._first = self._reach = self.longest = LONGEST * unit
        self.negligible = _NEGLIGIBLE
        self._least = self._value = np.inf
        self._n_stuck = 0

    def adapts(self, value: float, worst: float, step: float) -> bool:
        """Adapt to J and the largest violation after a step; return False if stuck."""
        slow = worst > _SLOW * self._least
        slow = slow and value > self._value - _STEEP * abs(self._value)
        self._n_stuck = self._n_stuck + 1 if slow else 0
        falls = value < self._value
        if step < 1.0 or (self._n_stuck > 1 and not falls):
            self.negligible *= 0.1
        if step == 1.0 and self._n_stuck > 1:
            self._reach *= _LONGER
        self._least = min(self._least, worst)
        self._value = min(self._value, value)
        return falls or self._n_stuck <= _MAX_STUCK

    def follow(self, line: Line) -> None:
        """Adapt to how far scores were to move."""
        moved = float(np.abs(line.dscores).max())
        # Damping vanishes with the steps, so that convergence stays quadratic.
        factor = max(1.0, self._first / moved) if moved > 0.0 else np.inf
        self.longest = self._reach * factor


class _Models:
    """The models of the iterates, of all rows or of samples of them.

    Attributes
    ----------
    sampled : bool
        Whether the last model is of a sample.
    max_sweeps : int
        How many sweeps are worth while to minimize it.
    """

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        self._model: QuadraticModel | None = None
        self._stride, self._largest = 1, objective.design.n_rows
        self._worst = np.inf

    @property
    def sampled(self) -> bool:
        return self._stride > 1

    def at(
        self,
        point: Point,
        residual: Floats,
        worst: float,
        trust: _Trust,
        predictions: _Predictions,
    ) -> QuadraticModel:
        """Return the model of a point, of a sample perhaps that of an earlier one.

        ``residual`` is the smallest subgradient of J there, ``worst`` its largest
        entry.
        """
        w = point.w
        active = working_set(self._objective, point, worst)
        large = (w != 0.0) | (np.abs(residual) > ROUGH * worst)
        needed = np.flatnonzero(large[: self._objective.regularizer.n_penalized])
        self._choose_stride(w, active, worst)
        fine = predictions.good or self.sampled
        self.max_sweeps = _MAX_FINE if fine else _MAX_ROUGH
        if self.sampled and self._model is not None and self._model.covers(needed):
            return self._model
        # The new one may have the room of the old one.
        self._model = None
        self._model = QuadraticModel(
            at_sample(point, self._stride) if self.sampled else point,
            active,
            needed,
            self.max_sweeps,
            trust.longest,
            trust.negligible,
        )
        return self._model

    def refuse(self) -> None:
        """Take a larger sample next, since the last one led nowhere."""
        self._worst = 0.0

    def _choose_stride(self, w: Floats, active: Rows, worst: float) -> None:
        stride = min(columns_stride(self._objective, w, active), self._largest)
        if stride > 1 and worst > _SLOW * self._worst:
            stride = self._largest = max(1, min(stride, self._stride // 2))
        if stride != self._stride:
            self._model, self._stride = None, stride
        self._worst = worst


class _Predictions:
    """Dual points that models predict, and how accurate they are worth to be.

    Attributes
    ----------
    good : bool
        Whether predictions are good, so that models are worth accuracy.
    last : bool
        Whether the next one should be good enough to end the run.
    """

    def __init__(self, objective: Objective, stopping: Stopping, unit: float) -> None:
        self._objective = objective
        self._several = (objective.design.n_outputs or 1) > 1
        self._stopping, self._unit = stopping, unit
        self.good = self.last = False
        self._error, self._ahead = 0.0, np.inf

    def look_ahead(self, value: float) -> None:
        """Estimate whether the next model is the last one, where J is ``value``."""
        self.last = self._ahead <= _LAST_ERROR * self._stopping.allowed_gap(value)
        self.good = self.good or self.last

    def accuracy(
        self,
        point: Point,
        bound: float,
        worst: float,
        sampled: bool,
        model: QuadraticModel,
    ) -> float:
        """Return the largest violation that a minimizer of the model may leave."""
        share = _FINE if self.good else _SAMPLED if sampled else ROUGH
        accuracy = share * worst
        if not self.good or model.accurate:
            return accuracy
        # A dual point off the constraints by so much costs as much as the last
        # prediction was off, which is more than the next one will be. With several
        # scores per row, where sweeps are expensive, a share of the gap is enough, and
        # so is most of what the tolerance leaves.
        n_penalized = self._objective.regularizer.n_penalized
        size = float(np.abs(point.w[:n_penalized]).sum())
        left = _SHARE_OF_TOL * self._stopping.allowed_gap(point.value)
        cost = self._error
        if self._several:
            cost = _SHARE_OF_GAP * (point.value - bound)
        cost = left if self.last else max(cost, left)
        return min(max(cost / max(size, 1.0), accuracy), ROUGH * worst)

    def lower_bound(
        self, line: Line, new: Point, model: QuadraticModel, bound: float
    ) -> float:
        """Return what the dual point predicted for a whole step proves.

        That is -inf if it is not worth the product with X.
        """
        o, before = self._objective, self._error
        dual, self._error = predicted_dual(line, new, model)
        self._ahead = np.inf
        if before and np.abs(line.dscores).max() <= _LAST_MOVE * self._unit:
            # Factors from one to the next are squared where convergence is quadratic.
            self._ahead = self._error * min(1.0, self._error / before) ** 2
        small = _SMALL * size_of(new.value, self._stopping.infimum)
        if self._error > min(_GOOD * (new.value - bound), small):
            return -np.inf
        self.good = True
        if self._error <= ROUNDED * abs(new.value):
            # The prediction is the gradient at the new point, which will be looked at.
            return -np.inf
        return o.dual_bound(Dual(dual))

    def forget(self, *, good: bool) -> None:
        """Expect no last model; none is worth accuracy either unless ``good``."""
        # A model that reaches too far is not worth accuracy, whatever it predicted.
        self.good, self._ahead = good, np.inf


def predicted_dual(
    line: Line, new: Point, model: QuadraticModel
) -> tuple[Floats, float]:
    """Return the dual point that the quadratic model predicts for the step 1.

    Rows whose prediction is infeasible have the gradient of the loss at ``new``.

    Returns
    -------
    dual : ndarray of the shape of the scores
    error : float
        Its share of the gap at ``new`` that is due to the loss, by the inequality of
        Fenchel and Young.
    """
    o, point = line.start.objective, line.start
    dual = point.dual + model.change_of_dual(line.dscores)
    beyond = ~o.risk.oracle.feasible(dual, o.targets, o.weights)
    if beyond.any():
        dual[beyond] = new.dual[beyond]
    if o.n_free:
        dual = o.risk.balance(dual)
    error = new.risk + o.risk.oracle.conjugate(dual, o.targets, o.weights)
    return dual, error - float(np.vdot(dual, new.scores))


def at_sample(point: Point, stride: int) -> Point:
    """Return the point with a sample of the rows, whose Hessian is about the same.

    Rows are taken in proportion to their second derivatives, so that nearly linear ones
    are few, or to their weights where all are linear, and weighted with the inverse.
    """
    o = point.objective
    n = len(point.scores) // stride
    share = point.curvature.diagonal().copy()
    share += (_LEAST_SHARE * share.sum() or 1.0) * o.weights
    share /= share.sum()
    rows, counts = np.unique(
        np.searchsorted(np.cumsum(share[:-1]), fractions(n), side="right"),
        return_counts=True,
    )
    weights = o.weights[rows] * counts / (n * share[rows])
    design = o.design.rows(rows, copy=o.design.row_size * len(rows) <= COPY_SIZE)
    sample = Objective(
        Risk(design, o.loss.of_rows(rows), o.targets[rows], weights),
        o.regularizer,
        o.alpha,
    )
    return Point(sample, point.w, point.scores[rows])


def columns_stride(objective: Objective, w: Floats, active: Rows) -> int:
    """Return the stride of the rows of which the Hessian is to be estimated.

    The estimate is off by about the square root of the number of parameters in use over
    that of rows. It pays where models by columns of one score per row hold many of the
    entries of X. Those of text hold few.
    """
    design = objective.design
    if design.several_scores or not by_columns_at_last(objective):
        return 1
    share = design.share_of(active)
    if share <= _LEAST_ENTRIES:
        return 1
    n_used = max(int(np.count_nonzero(w)), _SMALL_SET // 4)
    affordable = design.n_rows / (_ROWS_PER_USED * n_used)
    wanted = min(_MOST_STRIDE * share, affordable)
    return 2 ** int(np.log2(wanted)) if wanted >= 2.0 else 1


def working_set(objective: Objective, point: Point, worst: float) -> Rows:
    """Return the coordinates that the next model may change, in ascending order.

    Those in use, and others whose gradient is within ``worst`` of the threshold, or
    beyond it; of these the nearest where they are many.
    """
    n, groups = objective.regularizer.n_penalized, objective.groups
    used = point.w[:n] != 0.0
    if groups is None:
        excess = np.abs(point.risk_gradient[:n]) - objective.penalties[0]
    else:
        # The working set has all coordinates of a group, or none.
        used = groups.used(point.w)[groups.labels]
        excess = groups.nearness(point.risk_gradient, objective.alpha)[groups.labels]
    candidates = np.flatnonzero(~used & (excess > -worst))
    dense = objective.design.n_outputs and not objective.design.is_text_like
    growth = _GROWTH_SEVERAL if dense else _GROWTH
    # A model needs hardly more nonzero coordinates than there are scores.
    n_used = min(int(np.count_nonzero(used)), point.scores.size)
    limit = max(_SMALL_SET, int(growth * n_used))
    if len(candidates) > limit:
        largest = candidates[np.argpartition(-excess[candidates], limit)[:limit]]
        if groups is not None:
            same = np.isin(groups.labels[candidates], groups.labels[largest])
            largest = candidates[same]
        candidates = largest
    return np.sort(np.concatenate([np.flatnonzero(used), candidates]))

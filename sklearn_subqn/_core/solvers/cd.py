"""Coordinate descent on quadratic models for L1-penalized smooth losses.

A proximal Newton method: each iteration minimizes a quadratic model of the loss plus
the penalty by coordinate descent (Aggarwal, section 5.8.1.2; Yuan, Ho and Lin 2012),
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

#: The first models are minimized until violations decrease to a tenth.
ROUGH = 0.1

# A model whose matrix is estimated from a sample is minimized until violations decrease
# to 3 %, since its sweeps are cheap.
_SAMPLED = 0.03

# Once the dual points predicted by models are accurate, models are minimized until
# violations decrease to a thousandth, so that the next predicted dual point is nearly
# feasible.
_FINE = 1e-3

# With several scores per row, inexact minimization of a model may cost 5 % of the gap.
# docs/constants.md has the figures.
_SHARE_OF_GAP = 0.05

# Inexact minimization may also cost four fifths of the gap at which the run stops.
_SHARE_OF_TOL = 0.8

# Limit on the sweeps over the working set before predicted dual points are accurate.
_MAX_ROUGH = 20

# Limit on the sweeps over the working set once predicted dual points are accurate.
_MAX_FINE = 2000

# A model is expected to be the last one if the predicted error of its dual point is at
# most 0.3 times the gap at which the run stops. Accurate minimization of the last model
# saves an iteration on sparse data, for example 600 x 1,100 with alpha 3e-4.
_LAST_ERROR = 0.3

# A model is not expected to be the last one if a score changed by more than three units
# of the loss in the previous step. After such a step, the model predicts probabilities
# outside of [0, 1], and dual points without these rows are infeasible.
_LAST_MOVE = 3.0

# A predicted dual point is accurate if its error is at most 0.3 times the gap.
_GOOD = 0.3

# Its error must also be at most 3e-4 times the objective.
_SMALL = 3e-4

#: Initial limit on the change of a score caused by its own row, in units of the loss,
#: unless the loss has a ``curvature_radius``.
LONGEST = 6.0

# The limit is multiplied by this factor after a full step from the second successive
# iteration on in which neither violations decrease to ``_SLOW`` of their minimum nor J
# decreases by ``_STEEP``.
_LONGER = 4.0

# Models by columns may leave out rows with a hundredth of the sum of second
# derivatives. This fraction is divided by ten whenever a step is shortened or J no
# longer decreases. docs/constants.md has the figures.
_NEGLIGIBLE = 0.01

# Smallest limit on the coordinates that are added to a working set.
_SMALL_SET = 200

# A working set grows in one iteration by at most this multiple of the nonzero
# coordinates. docs/constants.md has the figures.
_GROWTH = 2

# With several scores per row the matrix of a working set is expensive, so the working
# set grows more slowly. docs/constants.md has the figures.
_GROWTH_SEVERAL = 0.5

# A sample has at least one row in 25, and more if a model by columns does not contain
# all entries of X. docs/constants.md has the figures.
_MOST_STRIDE = 25.0

# Without a sample, models by columns with less than a third of the entries of X take
# less time than the additional iterations that samples cause. docs/constants.md has the
# figures.
_LEAST_ENTRIES = 1.0 / 3.0

# A sample for the Hessian has at least 20 rows for each nonzero parameter. The sample
# is doubled if violations do not decrease to ``_SLOW`` times the previous violations.
_ROWS_PER_USED = 20

# Violations decrease slowly if more than half of the largest violation remains after an
# iteration.
_SLOW = 0.5

# The objective decreases steeply if an iteration reduces it by at least a tenth.
_STEEP = 0.1

# The probability of a row in the sample for the Hessian is proportional to its second
# derivative plus its share, by weight, of a fifth of the sum of second derivatives.
_LEAST_SHARE = 0.2

# The method stops after more than five iterations in which violations were not halved,
# if the objective does not decrease either.
_MAX_STUCK = 5


def cd(objective: Objective, start: Start, stopping: Stopping) -> Solver:
    """Yield the iterates of the proximal Newton method.

    Parameters
    ----------
    objective : Objective
        Objective with a smooth loss that has second derivatives, and an ``ElasticNet``
        or a ``GroupPenalty``.
    start : Start
        Starting point.
    stopping : Stopping
        Defines the gap at which the run stops; dual points need not be more accurate.

    Returns
    -------
    status : str
        "stationary": the conditions of optimality hold exactly. "no_step": no step
        decreases the objective. "no_progress": violations no longer decrease. The last
        two occur when only rounding errors remain.

    Notes
    -----
    Lower bounds come from two dual points: the gradient of the loss at an iterate, and
    its prediction by the quadratic model. The prediction satisfies the dual constraints
    up to the accuracy of the model's minimizer, and its error is of the order of the
    squared step.

    A matrix from a sample of the rows is used for several iterations, as long as
    violations are halved in each and the model contains the coordinates with large
    violations.
    """
    if not objective.design.in_one_place:
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
        del residual
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
            # The new point is not worse, since a larger value can only be a rounding
            # error.
            new.value = min(new.value, point.value)
        whole = step == 1.0
        dual = None
        if whole and not models.sampled:
            dual = predictions.dual(line, new, model, bound)
        else:
            predictions.forget(good=predictions.good and whole)
        trust.follow(line)
        point = new
        # Bounds can use the memory of these arrays of all parameters. Once the drift is
        # computed, the point before is released.
        del w, gradient, p, line, new
        _ = point.drift
        predicted = -np.inf if dual is None else objective.dual_bound(dual)
        stated = predicted > bound
        bound = max(bound, predicted)
        if stated:
            yield Iterate(point, None, bound, "cd")


class _Trust:
    """Limits of models: the longest steps, and the share of rows that are left out.

    Both adapt to the success of steps.

    Parameters
    ----------
    unit : float
        Unit of scores for the loss.

    Attributes
    ----------
    longest : float
        Longest step of a score, as in ``damping``.
    negligible : float
        Share of rows that may be left out, as in ``ColumnStep``.
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
        """Adapt to the largest change of a score in the model's step."""
        moved = float(np.abs(line.dscores).max())
        # Damping vanishes as steps become short, so that convergence stays quadratic.
        factor = max(1.0, self._first / moved) if moved > 0.0 else np.inf
        self.longest = self._reach * factor


class _Models:
    """The models at the iterates, of all rows or of samples.

    Attributes
    ----------
    sampled : bool
        Whether the last model is of a sample.
    max_sweeps : int
        Limit on the sweeps that minimize the model.
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
        """Return the model at a point, perhaps one of a sample at an earlier point.

        ``residual`` is the subgradient of J of least norm, ``worst`` its largest
        absolute entry.
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
        # The old model is released first, so that the new one can use its memory.
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
        """Take a larger sample next, since the last gave no descent direction."""
        self._worst = 0.0

    def _choose_stride(self, w: Floats, active: Rows, worst: float) -> None:
        stride = min(columns_stride(self._objective, w, active), self._largest)
        if stride > 1 and worst > _SLOW * self._worst:
            stride = self._largest = max(1, min(stride, self._stride // 2))
        if stride != self._stride:
            self._model, self._stride = None, stride
        self._worst = worst


class _Predictions:
    """Dual points predicted by models, and the accuracy that models need for them.

    Attributes
    ----------
    good : bool
        Whether predicted dual points are accurate, so that models should be accurate as
        well.
    last : bool
        Whether the next predicted dual point is expected to end the run.
    """

    def __init__(self, objective: Objective, stopping: Stopping, unit: float) -> None:
        self._objective = objective
        self._several = (objective.design.n_outputs or 1) > 1
        self._stopping, self._unit = stopping, unit
        self.good = self.last = False
        self._error, self._ahead = 0.0, np.inf

    def look_ahead(self, value: float) -> None:
        """Estimate whether the next model is the last one, given the value of J."""
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
        """Return the largest violation that a minimizer of the model may have."""
        share = _FINE if self.good else _SAMPLED if sampled else ROUGH
        accuracy = share * worst
        if not self.good or model.accurate:
            return accuracy
        # Violations of the dual constraints reduce the lower bound. The reduction may
        # be as large as the error of the last predicted dual point, since the next
        # error is smaller. With several scores per row sweeps are expensive, so the
        # reduction may be a fraction of the gap or most of the tolerance.
        n_penalized = self._objective.regularizer.n_penalized
        size = float(np.abs(point.w[:n_penalized]).sum())
        left = _SHARE_OF_TOL * self._stopping.allowed_gap(point.value)
        cost = self._error
        if self._several:
            cost = _SHARE_OF_GAP * (point.value - bound)
        cost = left if self.last else max(cost, left)
        return min(max(cost / max(size, 1.0), accuracy), ROUGH * worst)

    def dual(
        self, line: Line, new: Point, model: QuadraticModel, bound: float
    ) -> Dual | None:
        """Return the dual point predicted for a full step.

        None if the product with X for its lower bound is not justified.
        """
        before = self._error
        dual, self._error = predicted_dual(line, new, model)
        self._ahead = np.inf
        if before and np.abs(line.dscores).max() <= _LAST_MOVE * self._unit:
            # The ratio of successive errors is squared under quadratic convergence.
            self._ahead = self._error * min(1.0, self._error / before) ** 2
        small = _SMALL * size_of(new.value, self._stopping.infimum)
        if self._error > min(_GOOD * (new.value - bound), small):
            return None
        self.good = True
        if self._error <= ROUNDED * abs(new.value):
            # The prediction equals the gradient at the new point, whose lower bound is
            # computed in any case.
            return None
        return Dual(dual)

    def forget(self, *, good: bool) -> None:
        """Reset the expected error, and set whether dual points are accurate."""
        # After steps that are too long, accurate models are not needed.
        self.good, self._ahead = good, np.inf


def predicted_dual(
    line: Line, new: Point, model: QuadraticModel
) -> tuple[Floats, float]:
    """Return the dual point that the quadratic model predicts for the step 1.

    Infeasible entries of the prediction are replaced by the gradient of the loss at
    ``new``.

    Returns
    -------
    dual : ndarray of the shape of the scores
    error : float
        The part of the gap at ``new`` that is due to the loss, by the Fenchel-Young
        inequality.
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
    """Return the point for a sample of the rows with approximately the same Hessian.

    The probability of a row is proportional to its second derivative plus a multiple of
    its weight, so that the loss is nearly linear in few of the drawn rows. Rows are
    weighted by the inverse probabilities.
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
    """Return the stride of the rows that estimate the Hessian.

    The relative error of the estimate is about the square root of the ratio of nonzero
    parameters to rows. A sample saves time if models by columns of one score per row
    contain many of the entries of X. For text they contain few.
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


def working_set(
    objective: Objective, point: Point, worst: float, most: int | None = None
) -> Rows:
    """Return the coordinates that the next model may change, in ascending order.

    These are the nonzero coordinates, and others whose gradient exceeds the threshold
    minus ``worst``. If there are many, those with the largest gradients are taken, and
    fewer of them if a model has at most ``most`` coordinates.
    """
    n, groups = objective.regularizer.n_penalized, objective.groups
    used = point.w[:n] != 0.0
    if groups is None:
        excess = np.abs(point.risk_gradient[:n]) - objective.penalties[0]
    else:
        # The working set contains either all coordinates of a group or none.
        used = groups.used(point.w)[groups.labels]
        excess = groups.nearness(point.risk_gradient, objective.alpha)[groups.labels]
    candidates = np.flatnonzero(~used & (excess > -worst))
    dense = objective.design.n_outputs and not objective.design.is_text_like
    growth = _GROWTH_SEVERAL if dense else _GROWTH
    # A model rarely needs more nonzero coordinates than there are scores.
    n_scores = objective.design.n_rows * (objective.design.n_outputs or 1)
    n_used = min(int(np.count_nonzero(used)), n_scores)
    limit = max(_SMALL_SET, int(growth * n_used))
    if most is not None:
        limit = max(_SMALL_SET // 2, min(n_used, most - n_used - _SMALL_SET))
    if len(candidates) > limit:
        largest = candidates[np.argpartition(-excess[candidates], limit)[:limit]]
        if groups is not None:
            same = np.isin(groups.labels[candidates], groups.labels[largest])
            largest = candidates[same]
        candidates = largest
    return np.sort(np.concatenate([np.flatnonzero(used), candidates]))

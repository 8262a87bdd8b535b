"""Coordinate descent on quadratic models for L1-penalized smooth losses.

Newton's method on the loss, with the penalty left as it is: the model of each iteration
is minimized by coordinate descent (Aggarwal, section 5.8.1.2; Yuan, Ho and Lin 2012),
over a working set of features.
"""

from __future__ import annotations

import numpy as np

from ..line_search import backtrack, lengthen, rounding_of, settle
from ..losses._base import Floats, Rows
from ..objective import Line, Objective, Point
from ..quadratic import QuadraticModel, by_columns_at_last, forms_matrix
from .run import Iterate, Solver, Start
from .sample import fractions, spread

# The model is minimized until its violations are this share of those before: roughly
# at first; a little better with a matrix from a sample, on which sweeps are cheap; and
# down to the last one for a dual point, once predictions are good. That may cost these
# shares of the gap, with several scores per row, and of the gap at which the run ends.
_ROUGH, _SAMPLED, _FINE = 0.1, 0.03, 1e-3
_SHARE_OF_GAP = 0.05
_SHARE_OF_TOL = 0.8
_MAX_ROUGH, _MAX_ROUGH_SEVERAL, _MAX_FINE = 20, 10, 2000

# A model is the last one if its prediction should be off by at most this share of the
# gap at which the run ends, and no score moved by more units in the step before:
# models that reach farther predict probabilities beyond 0 and 1, and dual points
# without these violate constraints.
_LAST_ERROR, _LAST_MOVE = 0.3, 3.0

# So many sweeps over columns do for the last model, as a rule.
_LAST = 120

# The error of the prediction as a share of the gap, and of the objective, below which
# it is good.
_GOOD, _SMALL = 0.3, 3e-4

# Scores move by about so many units of the loss at most on account of their own row, at
# first, unless the loss says more; and by more each time that violations do not fall to
# ``_SLOW`` of the least ones for the second time, nor J by ``_STEEP`` of itself.
_LONGEST, _LONGER = 6.0, 4.0

# Rows with this share of all second derivatives may be left out of models by columns,
# with a tenth of it each time that a step is shortened, or J does not fall any more.
_NEGLIGIBLE = 0.01

# A working set holds at least so many coordinates, and grows from one iteration to the
# next by at most this factor of those that are used: by less with several scores per
# row, where matrices of them are dear. Of so few it holds those whose gradient is
# within ``_FAR`` times the largest violation of the threshold.
_SMALL_SET, _FAR = 200, 2.0
_GROWTH, _GROWTH_SEVERAL = 2, 0.5

# Hessians that cost less than so many products with X are not estimated from a sample,
# nor from less than so many rows for each parameter in use; and from twice as many once
# violations fall to more than this share of those before. With several scores per row
# and no matrix, minimizing a model takes about so many products.
_CHEAP = 4.0
_COST_OF_SWEEPS = 20.0
_ROWS_PER_USED = 20
_SLOW, _STEEP = 0.5, 0.1

# This share of such a sample is spread evenly, as it were.
_LEAST_SHARE = 0.2

# The method ends after so many iterations in which violations have not been halved, if
# the objective does not fall any more either.
_MAX_STUCK = 5

# Samples hold an eighth of the rows each of the next larger one, or a quarter with
# several scores per row, as long as these are at least so many, altogether and per
# feature.
_STRIDE, _STRIDE_SEVERAL = 8, 4
_MIN_ROWS = 1000
_ROWS_PER_FEATURE = 4


def cd(objective: Objective, start: Start, tol: float = 0.0) -> Solver:
    """Yield the iterates of the proximal Newton method.

    Parameters
    ----------
    objective : Objective
        Its loss is smooth and has second derivatives, its regularizer is an
        ``ElasticNet``.
    start : Start
        Starting point.
    tol : float
        Relative gap at which the run is to end; dual points more accurate than that are
        in vain.

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
    regularizer, alpha = objective.elastic_net, objective.alpha
    k = objective.design.n_outputs or 1
    point = settle(start.at(objective))
    if start.w.any():
        # Such as the solution of other data, or of other units.
        origin = settle(objective.origin())
        point = origin if origin.value < point.value else point
    bound, stated = -np.inf, False
    good, error, ahead, step = False, 0.0, np.inf, 1.0
    model_stride = 1
    model: QuadraticModel | None = None
    before, largest_stride = np.inf, len(point.scores)
    unit = objective.loss.unit(point.scores, objective.targets, objective.weights)
    longest = reach = _LONGEST * unit
    negligible = _NEGLIGIBLE
    least, value, n_stuck = np.inf, np.inf, 0
    while True:
        bound = max(bound, point.lower_bound)
        if not stated:
            yield Iterate(point, None, bound, "cd")
        w, gradient = point.w, point.risk_gradient
        residual = regularizer.smallest_subgradient(w, gradient, alpha)
        worst = float(np.abs(residual).max())
        if worst == 0.0:
            return "stationary"
        active = working_set(objective, point, worst)
        large = (w != 0.0) | (np.abs(residual) > _ROUGH * worst)
        needed = np.flatnonzero(large[: regularizer.n_penalized])
        stride = min(hessian_stride(objective, w, active), largest_stride)
        if stride > 1 and worst > _SLOW * before:
            stride = largest_stride = max(1, stride // 2)
        slow = worst > _SLOW * least and point.value > value - _STEEP * abs(value)
        n_stuck = n_stuck + 1 if slow else 0
        least = min(least, worst)
        falls = point.value < value
        if step < 1.0 or (n_stuck > 1 and not falls):
            negligible *= 0.1
        if step == 1.0 and n_stuck > 1:
            reach *= _LONGER
        if n_stuck > _MAX_STUCK and not falls:
            return "no_progress"
        value = min(value, point.value)
        before = worst
        last = ahead <= _LAST_ERROR * tol * point.value
        good = good or last
        rough = _MAX_ROUGH if k == 1 else _MAX_ROUGH_SEVERAL
        max_sweeps = _MAX_FINE if good or stride > 1 else rough
        if stride != model_stride:
            model, model_stride = None, stride
        if stride == 1 or model is None or not model.covers(needed):
            basis = thinned(point, stride) if stride > 1 else point
            # The new one may have the room of the old one.
            model = None
            model = QuadraticModel(
                basis,
                active,
                needed,
                min(_LAST, max_sweeps) if last else max_sweeps,
                longest,
                negligible,
            )
        cheap = stride > 1 and not (k > 1 and model.by_columns)
        share = _FINE if good else _SAMPLED if cheap else _ROUGH
        accuracy = share * worst
        if good and not model.accurate:
            # A dual point off the constraints by so much costs as much as the last
            # prediction was off, which is more than the next one will be. With several
            # scores per row, where sweeps are dear, a share of the gap will do; and so
            # will most of what the tolerance leaves.
            size = float(np.abs(w[: regularizer.n_penalized]).sum())
            cost = error if k == 1 else _SHARE_OF_GAP * (point.value - bound)
            left = _SHARE_OF_TOL * tol * point.value
            cost = left if last else max(cost, left)
            accuracy = min(max(cost / max(size, 1.0), accuracy), _ROUGH * worst)
        p = model.minimize(w, gradient, accuracy, max_sweeps)
        line = model.along(point, p)
        penalties = regularizer.value(w + p) - regularizer.value(w)
        decrease = float(gradient @ p) + alpha * penalties
        step, new = backtrack(line, decrease)
        if step == 1.0:
            step, new = lengthen(line, new)
        if step == 0.0:
            if stride == 1:
                return "no_step"
            before, stated = 0.0, True
            continue
        new = settle(new)
        if abs(decrease) <= rounding_of(point):
            # It is the better one all the same, so its value is not taken for larger.
            new.value = min(new.value, point.value)
        stated = False
        # A model that reaches too far is not worth accuracy, whatever it predicted.
        good, ahead = good and step == 1.0, np.inf
        if step == 1.0 and stride == 1:
            last_error = error
            dual, error = predicted_dual(line, new, model)
            if last_error and np.abs(line.dscores).max() <= _LAST_MOVE * unit:
                # Factors from one to the next are squared where convergence is
                # quadratic.
                ahead = error * min(1.0, error / last_error) ** 2
            if error <= min(_GOOD * (new.value - bound), _SMALL * new.value):
                good = True
                predicted = objective.dual_bound(dual, objective.design.adjoint(dual))
                stated = predicted > bound
                bound = max(bound, predicted)
        # Damping vanishes with the steps, so that convergence stays quadratic.
        moved = float(np.abs(line.dscores).max())
        longest = reach * max(1.0, _LONGEST * unit / moved) if moved > 0.0 else np.inf
        point = new
        if stated:
            yield Iterate(point, None, bound, "cd")


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
    beyond = ~o.loss.feasible(dual, o.targets, o.weights)
    if beyond.any():
        dual[beyond] = new.dual[beyond]
    if o.n_free:
        dual = o.loss.level(dual, o.targets, o.weights)
    error = new.risk + o.loss.conjugate(dual, o.targets, o.weights)
    return dual, error - float(np.vdot(dual, new.scores))


def thinned(point: Point, stride: int) -> Point:
    """Return the point with a sample of the rows, whose Hessian is about the same.

    Rows are taken in proportion to their second derivatives, so that nearly linear ones
    are few, or to their weights where all are linear, and weighted with the inverse.
    """
    o = point.objective
    n = len(point.scores) // stride
    share = point.curvature.diagonal().reshape(len(point.scores), -1).sum(axis=1)
    share += (_LEAST_SHARE * share.sum() or 1.0) * o.weights
    share /= share.sum()
    rows, counts = np.unique(
        np.searchsorted(np.cumsum(share[:-1]), fractions(n), side="right"),
        return_counts=True,
    )
    weights = o.weights[rows] * counts / (n * share[rows])
    sample = Objective(
        o.design.rows(rows),
        o.targets[rows],
        o.loss.of_rows(rows),
        o.regularizer,
        o.alpha,
        weights,
    )
    return Point(sample, point.w, point.scores[rows])


def hessian_stride(objective: Objective, w: Floats, active: Rows) -> int:
    """Return the stride of the rows of which the Hessian is to be estimated.

    The estimate is off by about the square root of the number of parameters in use over
    that of rows; a row with several scores counts for some more. It pays where models
    take the time of many products with X. Models by columns of one score per row leave
    out the rows that matter least anyway, and text has features of a few rows each.
    """
    k = objective.design.n_outputs or 1
    if k == 1:
        if by_columns_at_last(objective):
            return 1
        cost = objective.design.gram_cost(active)
    elif objective.design.is_text_like:
        return 1
    elif forms_matrix(objective, len(active)):
        cost = objective.design.joint_gram_cost(len(active))
    else:
        cost = _COST_OF_SWEEPS
    n_used = max(int(np.count_nonzero(w)) / k**0.5, _SMALL_SET // 4)
    affordable = objective.design.n_rows / (_ROWS_PER_USED * n_used)
    wanted = min(cost / _CHEAP, affordable)
    return 2 ** int(np.log2(wanted)) if wanted >= 2.0 else 1


def working_set(objective: Objective, point: Point, worst: float) -> Rows:
    """Return the coordinates that the next model may change, in ascending order.

    Those in use, and others whose gradient is within ``worst`` of the threshold, or
    beyond it, or a little farther off where there are few; of these the nearest where
    they are many.
    """
    n = objective.regularizer.n_penalized
    l1, _ = objective.penalties
    used = point.w[:n] != 0.0
    size = np.abs(point.risk_gradient[:n])
    distance = worst if n > _SMALL_SET else _FAR * worst
    candidates = np.flatnonzero(~used & (size > l1 - distance))
    dense = objective.design.n_outputs and not objective.design.is_text_like
    growth = _GROWTH_SEVERAL if dense else _GROWTH
    # A model needs hardly more nonzero coordinates than there are scores.
    n_used = min(int(np.count_nonzero(used)), point.scores.size)
    limit = max(_SMALL_SET, int(growth * n_used))
    if len(candidates) > limit:
        largest = np.argpartition(-size[candidates], limit)[:limit]
        candidates = candidates[largest]
    return np.sort(np.concatenate([np.flatnonzero(used), candidates]))


def auto(objective: Objective, start: Start, tol: float = 0.0) -> Solver:
    """Yield the iterates of ``cd`` from the solution on a sample of the rows.

    With many more rows than features the optimum on an eighth of the rows is close to
    that on all, and found in an eighth of the time, itself from that on a smaller one.
    Before, w = 0 is tried, which is optimal for large ``alpha``.

    Returns
    -------
    status : str
        As of ``cd``.
    """
    if not _has_sample(objective, start.w):
        return (yield from cd(objective, start, tol))
    origin = settle(objective.origin())
    yield Iterate(origin, None, origin.lower_bound, "cd")
    start = Start(_sample_solution(objective, start.w))
    return (yield from cd(objective, start, tol))


def _has_sample(objective: Objective, w: Floats) -> bool:
    """Whether a sample of the rows is to be solved for first: not for w != 0."""
    n, d = objective.design.n_rows, objective.design.n_features
    return not w.any() and n >= _sample_stride(objective) * max(
        _MIN_ROWS, _ROWS_PER_FEATURE * d
    )


def _sample_stride(objective: Objective) -> int:
    return _STRIDE if objective.design.n_outputs is None else _STRIDE_SEVERAL


def _sample_solution(objective: Objective, w: Floats) -> Floats:
    """Return w, or the minimizer on a sample, as accurate as makes sense, for w = 0.

    Its expected excess over the optimum on all rows is about half the number of
    parameters over that of rows: steps that gain less are in vain.
    """
    if not _has_sample(objective, w):
        return w
    n = objective.design.n_rows
    rows = spread(n, n // _sample_stride(objective))
    if not objective.weights[rows].any():
        return w
    sample = objective.sample(rows)
    before = np.inf
    for iterate in cd(sample, Start(_sample_solution(sample, w))):
        w, value = iterate.point.w, iterate.point.value
        excess = 0.5 * np.count_nonzero(w) / sample.design.n_rows
        if min(before - value, value - iterate.lower_bound) <= excess:
            break
        before = value
    objective.design.count(sample.design, sample.passes)
    return w

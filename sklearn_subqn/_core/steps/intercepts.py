"""Minimization over intercepts, which needs no product with X."""

from __future__ import annotations

import numpy as np

from ..losses._base import Floats
from ..objectives.objective import Dual, Objective, Point
from ..objectives.risk import Risk
from ..regularizers import L2
from ..rounding import EPS
from .line_search import exact
from .one_dimension import NEAR, Trial, bracket_by_cuts, middle_of_flat, minimize_smooth

# Intercepts are optimal if sums of dual variables are below 1e-13 of their scale.
_SETTLED = 1e-13

# Sums below 1e-10 of their scale count as rounding errors if a full step does not halve
# them.
_ROUGHLY_MINIMAL = 1e-10

# Sums below 1e-5 of their scale are accepted after several line searches that do not
# reduce them.
_NEARLY_MINIMAL = 1e-5

# Limit on the Newton steps of intercepts.
_MAX_SETTLE = 30

# Limit on the centers of envelopes, for several free parameters of losses with kinks.
_MAX_CENTERS = 60

#: Minimization over several free parameters of losses with kinks stops at this gap,
#: relative to the risk.
SETTLED_GAP = 1e-10

# Factor of the width of each envelope relative to the previous one.
_NARROWER = 0.5

# Smallest width of an envelope in units of the loss. Updates of the center, not
# narrower envelopes, give the accuracy.
_NARROWEST = 1e-3

# Newton steps stop after three line searches that do not reduce the sums.
_MAX_IDLE = 3

# Limit on the step of an intercept, relative to the larger of one and the largest
# score.
_LONGEST_SETTLE = 10.0


def minimize_intercept(point: Point) -> Point:
    """Return the point after exact minimization over its free parameters.

    No product with X is needed. The subgradient of the result vanishes in the free
    parameters, so that its dual value is a lower bound and its cut is balanced. Solvers
    thereby minimize the reduced function min_b J(w, b), whose cuts are bounded. Several
    free parameters are left unchanged if the loss is not smooth.
    """
    o = point.objective
    if not o.n_free:
        return point
    if not o.loss.has_lines and o.n_free == 1:
        return _settle_by_cuts(point)
    if o.loss.smooth and (o.n_free > 1 or o.loss.analytic):
        return _settle_by_newton(point)
    if o.n_free > 1:
        return point
    signs = [1.0, -1.0]
    if o.loss.smooth:
        signs = [-1.0 if o.risk.column_sums(point.dual)[0] > 0.0 else 1.0]
    for sign in signs:
        line = point.along_free(np.array([sign]))
        if o.loss.smooth:
            # Balanced dual variables need a higher accuracy than values of J provide.
            least = EPS * o.risk.size(point.dual)
            step = minimize_smooth(line.derivatives, least=least)
        else:
            step = exact(line)
        if 0.0 < step < np.inf:
            break
    else:
        step = 0.0
    if line.smooth:
        # The slope may be large even at the floating-point number nearest to the
        # minimizer.
        new = line.point(middle_of_flat(line.derivatives, step))
        new.dual = o.risk.balance(new.dual)
        return new
    return line.point(step, balanced=True)


def minimize_intercepts(point: Point) -> Point:
    """Return the point after minimization over one or several free parameters.

    Most problems are solved by ``minimize_intercept``. Several free parameters of
    losses with kinks are found by the proximal method of multipliers, up to a gap of
    1e-10 of the risk. The dual variables of the result are balanced, and its cut is
    tight up to this gap.
    """
    o = point.objective
    if o.n_free < 2 or o.loss.smooth or not o.loss.has_envelope:
        return minimize_intercept(point)
    risk, best, dual = o.risk, point, point.dual
    width = unit = risk.score_scale(point.scores)
    least = np.inf
    for _ in range(_MAX_CENTERS):
        smooth = o.with_envelope(risk.center(dual), width)
        found = _settle_by_newton(best.under(smooth))
        new = found.under(o)
        height = risk.inner(found.dual, new.scores)
        height -= risk.conjugate_and_size(found.dual)[0]
        # The lower bound of balanced dual variables does not depend on the free
        # parameters.
        gap = min(new.risk, best.risk) - height
        if new.value <= best.value:
            best = new
        if gap < least:
            least, dual = gap, found.dual
            if gap <= SETTLED_GAP * abs(best.risk):
                break
        width = max(_NARROWER * width, _NARROWEST * unit)
    # The dual point is a subgradient at a nearby point.
    best = o.at(best.w, best.scores, best.drift)
    best.dual = dual
    return best


def best_intercept(risk: Risk, coef: Floats) -> float:
    """Return the intercept that minimizes the risk for given coefficients.

    Parameters
    ----------
    risk : Risk
        Risk of one score per row, with an intercept.
    coef : ndarray of shape (n_features,)
    """
    objective = Objective(risk, L2(risk.design.n_coef), 1.0)
    return float(minimize_intercept(objective.at(np.append(coef, 0.0))).w[-1])


def _settle_by_cuts(point: Point) -> Point:
    """Minimize over one free parameter of a loss with subgradients only.

    The balanced convex combination of the dual points at both ends of the bracket
    proves a bound. The minimum exceeds this bound by rounding errors only.
    """
    o = point.objective
    args = o.targets, o.weights
    shifted = o.risk.oracle.shifted(point.scores, *args)
    penalty = o.alpha * o.regularizer.value(point.w)
    start = shifted(0.0)
    sign = -1.0 if start[1].sum() > 0.0 else 1.0

    def trial(step: float) -> Trial:
        risk, dual = shifted(sign * step) if step else start
        return Trial(step, penalty + risk, sign * float(dual.sum()), dual)

    first, other = bracket_by_cuts(trial)
    if first is other or first.step == np.inf:
        return point
    line = point.along_free(np.array([sign]))
    ends = [line.point(end.step) for end in (first, other)]
    minimal = ends[0]
    a, b = float(first.dual.sum()), float(other.dual.sum())
    if a * b > 0.0 or a == b:
        minimal.dual = first.dual
        return minimal
    share = a / (a - b)
    duals = [
        Dual(end.dual, offset=-o.risk.conjugate_at(end.dual, at.scores))
        for end, at in zip((first, other), ends, strict=True)
    ]
    minimal.mixture = mixture = Dual.mixed(o.risk, share, *duals)
    minimal.dual = mixture.u
    if not o.loss.ranks:
        # The weight of the opposite end of the bracket is increased slightly, to
        # compensate the rounding error of the sum.
        left = float(mixture.u.sum(dtype=np.longdouble))
        slope = a if a * left < 0.0 else b
        points = mixture, *duals
        sizes = (
            [o.risk.dual_norm(dual.u) for dual in points],
            [abs(dual.offset or 0.0) for dual in points],
        )
        larger = max(max(size) / (size[0] or 1.0) for size in sizes)
        share = abs(left) / max(abs(slope) - abs(left), 1e-300) * (1.0 + larger)
        share = min(o.imbalance(mixture.u), share)
        minimal.mixture = mixture._replace(imbalance=share)
    return minimal


def _settle_by_newton(point: Point) -> Point:
    """Minimize over the free parameters of a smooth loss by Newton's method.

    Full steps usually halve the slopes and need no line search. At the end the dual
    variables are corrected for rounding errors of their sums.
    """
    o, risk = point.objective, point.objective.risk
    farthest = _LONGEST_SETTLE * max(1.0, point.largest_score)
    if o.n_free == 1:
        point = _moved_by_newton(point)
    n_idle, shift = 0, np.zeros(o.n_free)
    sums, *hessian = risk.derivatives_of_shift(point.scores, shift)
    for _ in range(_MAX_SETTLE):
        size = float(np.abs(sums).max())
        if size <= _SETTLED * risk.dual_scale:
            break
        direction = _newton_direction(sums, np.array(hessian))
        reach = max(float(np.abs(direction).max()), 1e-300)
        if reach > farthest:
            farthest = _farthest(point)
        if reach > farthest:
            direction *= farthest / reach
            reach = farthest
        new, *curvature = risk.derivatives_of_shift(point.scores, shift + direction)
        if not np.abs(new).max() <= 0.5 * size:
            if size <= _ROUGHLY_MINIMAL * risk.dual_scale:
                break
            point = point.shifted(shift) if shift.any() else point
            shift = np.zeros(o.n_free)
            line = point.along_free(direction)
            step = minimize_smooth(line.derivatives, accuracy=NEAR)
            if not 0.0 < step < np.inf:
                break
            direction *= min(step, farthest / reach)
            new, *curvature = risk.derivatives_of_shift(point.scores, direction)
            n_idle += not np.abs(new).max() < size
            if n_idle >= _MAX_IDLE and size <= _NEARLY_MINIMAL * risk.dual_scale:
                break
        shift, sums, hessian = shift + direction, new, curvature
    point = point.shifted(shift) if shift.any() else point
    point.dual = risk.balance(point.dual)
    return point


def _farthest(point: Point) -> float:
    """Return the longest step of the intercepts.

    If a label has no relevant rows, its slope tends to zero and its intercept to
    infinity, so that steps need a limit. Steps of squared errors are exact and have
    none.
    """
    exact_within = point.objective.risk.curvature_radius(point.scores)
    return max(_LONGEST_SETTLE * max(1.0, point.largest_score), exact_within)


def _newton_direction(sums: Floats, hessian: Floats) -> Floats:
    if len(sums) > 1 and not hessian.sum(axis=0).max() > 1e-10 * hessian.max():
        # Adding a constant to all intercepts has no effect, so the Hessian is singular.
        hessian += float(np.trace(hessian)) / len(sums)
    largest = float(hessian.diagonal().max())
    # Curvatures of exponentials that nearly underflow count as zero.
    more = 1e-10 * largest if largest > 1e-290 else 1.0
    hessian[np.diag_indices_from(hessian)] += more
    # Steps are clipped, since a tiny curvature gives an infinite step.
    direction: Floats = -np.linalg.solve(hessian, sums).clip(-1e300, 1e300)
    return direction


def _moved_by_newton(point: Point) -> Point:
    """Return the point after Newton steps in one free parameter.

    Steps continue as long as they halve the slope. Slopes along the line need no dual
    variables.
    """
    line, step, farthest = point.along_free(np.ones(1)), 0.0, _farthest(point)
    slope, curvature = line.derivatives(step)
    for _ in range(_MAX_SETTLE):
        if abs(slope) <= _SETTLED * point.objective.risk.dual_scale:
            break
        move = -slope / curvature if curvature > 0.0 else np.inf
        if abs(move) > farthest:
            break
        last, (slope, curvature) = abs(slope), line.derivatives(step + move)
        if not abs(slope) <= 0.5 * last:
            break
        step += move
    return line.point(step) if step else point

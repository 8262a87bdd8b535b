"""Methods in the table of plans: functions that return iterates for a problem."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Any

import numpy as np

from ..driver import Options, Solver, Start, Status, Stopping
from ..losses._base import Floats, LabelSets
from ..objectives.objective import Objective
from ..rounding import CLOSE
from ..steps.quasi_newton import LimitedMemoryInverseHessian
from .alm import alm, narrowing
from .bundle import ls_bmrm
from .cd import cd
from .dual_ascent import SHRINKING, dual_ascent
from .faces import face_alm, face_newton
from .facts import Facts
from .fista import fista
from .newton import newton
from .owlqn import owlqn
from .plan_conditions import forms_models, is_wide
from .proximal_newton import proximal_newton
from .rental import rental
from .sparse_alm import sparse_alm
from .subbfgs import subbfgs

# Estimated error of the scores at the solution of a sample, in units of the loss.
_SAMPLE_WIDTH = 0.3

# Number of rounds in which dual ascent must decrease the gap. docs/constants.md has the
# figures.
_PATIENCE = 2

# On text-like data and for sets of labels, dual ascent may take 20 rounds to decrease
# the gap, because the linear systems of ``alm`` are large and ill-conditioned there.
_LONG_PATIENCE = 20

# On text, the proximal term of dual ascent is divided by 1, 5 and 25 in turn. After
# that, another method continues. docs/constants.md has the figures.
_WEAKER = 1.0, 5.0, 25.0

# While a weaker proximal term remains to be tried, these rounds must reduce the gap to
# less than a tenth. docs/constants.md has the figures.
_MUCH = 0.1

# With several scores per row, dual ascent on text starts without the proximal term. It
# continues without the term while each round reduces the gap to less than 0.4 times the
# previous gap. docs/constants.md has the figures.
_FAST = 0.4

# If the optimum of a convex bound of a performance measure is much better than w = 0,
# the bundle method finds a point better than w = 0 within 180 iterations.
# docs/constants.md has the figures.
_LONGEST_AT_ZERO = 200

# SubLBFGS stops when the objective decreases by less than a tenth over ``_WINDOW``
# iterations.
_FADING = 0.1

# The decrease of the objective in subLBFGS is measured over three iterations.
_WINDOW = 3

# On wide data the first envelope is as wide as one unit of the loss or a hundredth of
# the mean curvature of the dual, whichever is larger. With narrower envelopes, the
# quadratic model of a Newton step is valid for few rows only. docs/constants.md has the
# figures.
_SOFTNESS = 1e-2


def by_alm(f: Facts) -> Solver:
    return alm(f.objective, f.start)


def by_alm_for_penalty(f: Facts) -> Solver:
    """Return the iterates of a method with Moreau envelopes that suits the problem."""
    if f.box:
        return face_alm(f.objective, f.start)
    if not f.l2:
        return sparse_alm(f.objective, f.start, _of_envelope)
    if f.warm:
        return by_alm(f)
    if is_wide(f):
        return _by_soft_alm(f)
    return by_alm(f) if f.several else _by_quasi_newton(f)


def _of_envelope(objective: Objective, start: Start, stopping: Stopping) -> Solver:
    """Minimize the envelope of a loss, with the steps for its data and penalty."""
    f = Facts(objective, start, Options(stopping=stopping))
    if f.columnwise:
        return by_cd(f)
    return by_proximal_newton(f) if f.l1 or forms_models(f) else by_fista(f)


def by_newton(f: Facts) -> Solver:
    """Newton's method, or limited-memory steps first if the Hessian is expensive."""
    dear = f.l2 and f.dense and f.objective.design.holds_rows
    dear = dear and not (f.several or f.pairs or f.wide)
    dear = (dear and not f.objective.loss.quadratic) or f.objective.loss.sharpens
    rents = dear and f.forms_hessian and f.n_params < f.n_rows
    method = rental if rents else newton
    return method(f.objective, f.start.w, f.options.stopping)


def by_cd(f: Facts) -> Solver:
    return cd(f.objective, f.start, f.options.stopping)


def by_fista(f: Facts) -> Solver:
    return fista(f.objective, f.start.w)


def by_narrowing(f: Facts) -> Solver:
    return narrowing(f.objective, f.start)


def by_proximal_newton(f: Facts) -> Solver:
    """Return the iterates of the proximal Newton method."""
    if f.in_one_place and f.forms_hessian:
        return proximal_newton(f.objective, f.start)
    otherwise = partial(fista, f.objective) if f.groups else partial(_owlqn_from, f)
    return proximal_newton(f.objective, f.start, otherwise=otherwise)


def by_owlqn(f: Facts) -> Solver:
    return _owlqn_from(f, f.start.w)


def _owlqn_from(f: Facts, w: Floats) -> Solver:
    """OWL-QN until decreases are below the rounding error, then Newton's method."""
    o, memory = f.objective, f.options.memory
    hessian = LimitedMemoryInverseHessian(o.n_params, memory)
    for iterate in owlqn(o, w, hessian):
        yield iterate
    return face_newton(o, iterate.start)


def by_faces(f: Facts) -> Solver:
    """Newton's method on faces of the bounds, then the bundle method."""
    for iterate in face_newton(f.objective, f.start):
        yield iterate
    size = f.options.bundle_size
    return ls_bmrm(f.objective, iterate.start.w, size=size)


def by_bundle(f: Facts) -> Solver:
    """Yield the iterates of the bundle method.

    For bounds of performance measures it stops early if no point is better than w = 0,
    since a proof that zero is optimal may take long and has no use.
    """
    o, size = f.objective, f.options.bundle_size
    iterates = ls_bmrm(o, f.start.w, size=size)
    if not (f.from_zero and o.loss.counts_rows):
        return iterates
    best, origin = np.inf, o.origin().value
    for _ in range(_LONGEST_AT_ZERO):
        try:
            iterate = next(iterates)
        except StopIteration as end:
            return end.value
        yield iterate
        best = min(best, iterate.point.value)
        if best < origin - CLOSE * abs(origin):
            return iterates
    return Status.AT_ZERO


def by_ascent(f: Facts) -> Solver:
    """Dual ascent, followed by a method with fast local convergence."""
    return _ascent_from(f, f.start)


def _ascent_from(f: Facts, start: Start) -> Solver:
    of_sets = isinstance(f.rowwise, LabelSets)
    patience = _LONG_PATIENCE if of_sets or f.text else _PATIENCE
    terms = _WEAKER if f.text and not of_sets else (1.0,)
    stages = [(weaker, patience, _MUCH) for weaker in terms[:-1]]
    stages.append((terms[-1], patience, SHRINKING))
    if f.text and f.several:
        stages.insert(0, (np.inf, 1, _FAST))
    for weaker, patience, shrinking in stages:
        for iterate in dual_ascent(
            f.objective, start, patience=patience, shrinking=shrinking, weaker=weaker
        ):
            yield iterate
        start = iterate.start
    if f.smooth:
        return newton(f.objective, start.w, f.options.stopping)
    return alm(f.objective, start)


def _by_quasi_newton(f: Facts) -> Solver:
    """SubLBFGS until its progress slows down, then a method with Moreau envelopes.

    SubLBFGS is fast while its steps are long relative to the distances between kinks.
    Then ``alm`` continues from the last point, with the mean of the last subgradients
    as the first dual center; on text, dual ascent continues.
    """
    o = f.objective
    hessian = LimitedMemoryInverseHessian(o.n_params, f.options.memory)
    values: deque[float] = deque(maxlen=_WINDOW + 1)
    duals: deque[Any] = deque(maxlen=_WINDOW)
    iterates = subbfgs(o, f.start.w, hessian)
    for iterate in iterates:
        yield iterate
        point = iterate.point
        values.append(point.value)
        duals.append(point.dual)
        if len(values) > _WINDOW and values[0] - values[-1] < _FADING * values[-1]:
            break
    iterates.close()
    if f.text:
        return _ascent_from(f, Start.from_point(point, point.dual))
    start = Start.from_point(point, o.risk.mean(*duals))
    return alm(o, start)


def _by_soft_alm(f: Facts) -> Solver:
    """Start with a wide Moreau envelope, then continue with the usual width.

    The second envelope is needed if some features have a much smaller scale than
    others, since a wide envelope hardly depends on the coefficients of these features.
    """
    o = f.objective
    point = o.at(f.start.w)
    unit = o.risk.score_scale(point.scores)
    width = max(unit, _SOFTNESS * f.curvature)
    # The dual point is scaled down, so that dual variables are far from the ends of
    # their intervals and remain in the interior for several steps.
    share = min(0.5, unit / width)
    start = Start.from_point(point, o.risk.scaled(share, point.dual))
    for iterate in alm(o, start, width=width):
        yield iterate
        point = min(point, iterate.point, key=lambda point: point.value)
    return alm(o, Start.from_point(point))


def by_alm_of_sample(f: Facts) -> Solver:
    """Continue from the solution of a sample.

    The initial dual point is the gradient of a Moreau envelope. For rows near a kink,
    its entries are between the slopes on both sides of the kink.
    """
    o = f.objective
    point = f.start.at(o)
    width = _SAMPLE_WIDTH * o.risk.score_scale(point.scores)
    smooth = o.with_envelope(o.risk.neutral_center(), width)
    start = Start.from_point(point, point.under(smooth).dual)
    return alm(o, start, width=width)

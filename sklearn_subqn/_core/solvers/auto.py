"""The fastest way to a proven optimum: a start by the shape of the data, then ``alm``.

Yu (2009, sections 4.2 and 7.2) leaves open a hybrid that is fast early and late, and a
stopping criterion based on duality. ``alm`` is fast late and has the criterion. Before
it comes what is fastest early:

- Text-like data, sparse with nearly orthogonal rows: dual coordinate ascent, as long as
  it shrinks the gap fast; not where alpha is so large that one step nearly does.
- Data so tall that a sample of the rows has nearly the same solution: that solution.
  With one score per row, ``alm`` then takes the rows near a kink only.
- Wide data, with at most a few rows for each feature, unless alpha is so large that
  rows hardly depend on each other: nothing. ``alm`` begins with an envelope so wide
  that rows hold each other little; with several scores per row only where a small alpha
  would have them hold each other tightly.
- Hinges where alpha is so small that classes are mostly apart, or that the penalty is
  negligible: solutions for larger alphas, which may prove as much for all smaller ones.
  The squared hinge too, on text-like data with at most a few rows for each feature. On
  data so tall that a sample tells enough, with one score per row, for the sample only.
- Else subLBFGS. It falls fastest as long as the many kinks of the objective look smooth
  from afar; once its progress fades it hands over its point, scores included, and the
  mean of its recent dual variables as the first dual center.
- Several scores per row: dual ascent where rows have their dual variables apart (the
  multiclass hinge with margin rescaling, the multilabel hinge with costs of labels),
  unless a sample tells enough and alpha is so small that rows depend on each other;
  for other losses ``alm`` at once, or from the solution of a sample. SubLBFGS is slow
  where kinks have many sides.

Smooth losses are left to Newton's method, on text-like data after dual ascent, on wide
data after solutions for larger alphas where a small one holds rows tightly.
"""

from __future__ import annotations

from collections import deque
from functools import partial

import numpy as np

from ..losses._base import Floats, LabelSets
from ..newton import is_wide
from ..objective import Objective, Point
from ..quasi_newton import LimitedMemoryInverseHessian
from .alm import alm
from .dual_ascent import dual_ascent
from .from_afar import from_afar, is_linear
from .larger_alphas import from_larger_alphas, relaxed_start
from .near_rows import near_rows
from .newton import newton
from .row_space import has_short_rows, in_row_space
from .run import Iterate, Solver, Start
from .sample import is_tall, sample_solution
from .subbfgs import subbfgs

# Hand over when the objective fell by less than this share of itself over so many
# iterations.
_FADING = 0.1
_WINDOW = 3

# Dual ascent may take so many rounds to shrink the gap, many on text-like data or for
# sets of labels: there the systems of ``alm`` are large and badly conditioned.
_PATIENCE, _LONG_PATIENCE = 2, 20

# Where the dual bends so little along the variables of one row, the rows hardly depend
# on each other, and dual ascent needs a few sweeps only: fewer than a sample would.
_LOW_CURVATURE = 5.0

# With one score per row, a wide first envelope is in vain below this curvature. Below
# the second one hardly any dual variable of a loss with kinks leaves the end of its
# interval at which it is with w = 0, which subLBFGS finds out in its first step.
_LOOSE, _LOOSEST = 1.0, 1e-2

# On wide data, first envelopes have a width of at least so many units of the loss, and
# of this share of the mean curvature of the dual: rows are not held so tightly that
# Newton's method could follow but a few of them in each step.
_LEAST_WIDTH, _SOFTNESS = 3.0, 1e-2

# Where this share of the objective is left of the gap, rounding has ended a method.
_EXACT = 1e-9

# With a larger curvature than this, problems of smooth losses with kinks in their
# slopes are solved for larger alphas first. Those of several scores per row begin with
# such an envelope from the second number on.
_TIGHT, _TIGHT_SEVERAL = 1e3, 1e2

# With a larger curvature than this, hinges are minimized for larger alphas first, from
# about the second number on: for one score per row, for several, and on text, where it
# makes squared hinges of 8000 x 12000 at alpha = 1e-7 some 100 times faster. Of one
# score with at least so many rows for each parameter, classes are hardly ever apart.
_TIGHTEST, _TIGHTEST_SEVERAL, _TIGHTEST_TEXT = (1e6, 1e4), (2e4, 1e4), (1e3, 1e2)
_TALL, _TIGHTEST_TALL = 100, (1e10, 1e4)

# There data of so many entries are solved on a sample of the rows first, where that is
# worth while: a third of the time for 494,020 x 41 unscaled bytes, counts and rates at
# alpha = 1e-5. ``alm`` on all rows then may go on for so many iterations without
# progress.
_LARGE, _PATIENT = 1_000_000, 20

# Where the loss is less than this share of the objective, dual points of other alphas
# may be too long: if by more than the second number, they are no good start.
_LITTLE_LOSS = 0.5
_SHORTER, _FAR = 0.9, 1e-2

# After dual ascent for sets of labels a wide envelope is best: the center is far off.
_LABELS_WIDTH = 10.0

# Scores of the solution of a sample are about so uncertain.
_SAMPLE_WIDTH, _SAMPLE_WIDTH_SEVERAL = 0.1, 0.3


def auto(
    objective: Objective,
    start: Start,
    *,
    memory: int = 10,
    tol: float = 0.0,
    following: bool = False,
) -> Solver:
    """Yield the iterates of the methods that are fastest for the problem.

    A start with a dual point is close to the end already: ``alm`` goes on from there.

    Parameters
    ----------
    objective : Objective
        Its loss is smooth, or piecewise linear with an envelope.
    start : Start
        Starting point.
    memory : int
        Number of pairs that subLBFGS keeps.
    tol : float
        Relative gap at which the run is to end.
    following : bool
        Whether the start comes from the next larger of a sequence of alphas.

    Returns
    -------
    status : str
        That of the method at work at the end.
    """
    design, smooth = objective.design, objective.loss.smooth
    several = design.n_outputs is not None
    if several and not smooth and has_short_rows(objective):
        solver = partial(auto, memory=memory, tol=tol)
        return (yield from in_row_space(objective, start, solver, tol))
    by_rows = objective.loss.rowwise_dual(objective.targets) is not None
    text = by_rows and design.is_text_like
    larger_alphas = None
    if objective.loss.has_margin and (not smooth or (text and is_wide(objective))):
        far = not start.w.any()
        if start.dual is not None:
            start, share = _with_shorter_dual(objective, start, start.dual)
            far = share < _FAR
        tightest, first = _limits(objective, text)
        curvature = _curvature_of_rows(objective)
        if far and not following and curvature > tightest:
            solver = partial(auto, memory=memory, tol=tol, following=True)
            larger_alphas = from_larger_alphas(
                objective, solver, curvature / first, tol
            )
            # Of a sample they cost a small share of what they do of all rows.
            large = design.row_size * design.n_rows >= _LARGE and is_tall(objective)
            if several or text or start.w.any() or not large:
                return (yield from larger_alphas)
    if text:
        loosest = _curvature_of_rows(objective) <= _LOOSEST
        if smooth or several or start.w.any() or not loosest:
            return (yield from _ascent(objective, start))
    if smooth:
        w = start.w
        kinks = not several and not objective.loss.analytic
        wide = is_wide(objective) and not w.any()
        if kinks and not w.any() and is_linear(objective):
            w = yield from from_afar(objective, partial(auto, memory=memory), tol)
        elif wide and kinks and _curvature_of_rows(objective) > _TIGHT:
            excess = _curvature_of_rows(objective) / _TIGHT
            w = (yield from relaxed_start(objective, _newton, excess)).w
        return (yield from newton(objective, w))
    if start.dual is not None:
        return (yield from alm(objective, start.at(objective), dual=start.dual))
    sampled = None
    apart = several and by_rows and _curvature_of_rows(objective) <= _LOW_CURVATURE
    if not start.w.any() and not apart:
        sampled = sample_solution(objective, partial(auto, memory=memory))
    if sampled is not None:
        yield Iterate(objective.origin(), phase="sample")
        point = objective.at(sampled)
        width = _SAMPLE_WIDTH_SEVERAL if several else _SAMPLE_WIDTH
        width *= objective.loss.unit(point.scores, objective.targets, objective.weights)
        dual = _soft_dual(point, width)
        if several:
            return (yield from alm(objective, point, dual=dual, width=width))
        near = near_rows(objective, point, dual=dual, tol=tol)
        return (yield from _in_turn(near, larger_alphas, tol))
    tight = _TIGHT_SEVERAL if several else _LOOSE
    if is_wide(objective) and _curvature_of_rows(objective) > tight:
        return (yield from _from_soft_start(objective, start.w))
    if several:
        if by_rows:
            return (yield from _ascent(objective, start))
        return (yield from alm(objective, start.at(objective)))
    hessian = LimitedMemoryInverseHessian(objective.n_params, memory)
    values: deque[float] = deque(maxlen=_WINDOW + 1)
    duals: deque[Floats] = deque(maxlen=_WINDOW)
    quasi_newton = subbfgs(objective, start.w, hessian)
    for iterate in quasi_newton:
        yield iterate
        point = iterate.point
        values.append(point.value)
        duals.append(point.dual)
        if len(values) > _WINDOW and values[0] - values[-1] < _FADING * values[-1]:
            break
    quasi_newton.close()
    if text:
        end = Start(point.w, point.dual, point.scores, point.drift)
        return (yield from _ascent(objective, end))
    return (yield from alm(objective, point, dual=np.mean(duals, axis=0)))


def _newton(objective: Objective, start: Start) -> Solver:
    return newton(objective, start.w)


def _limits(objective: Objective, text: bool) -> tuple[float, float]:
    """Return the curvature up to which alpha is not small, and that to begin with."""
    if text:
        return _TIGHTEST_TEXT
    if objective.design.n_outputs is not None:
        return _TIGHTEST_SEVERAL
    tall = objective.design.n_rows >= _TALL * objective.n_params
    return _TIGHTEST_TALL if tall else _TIGHTEST


def _with_shorter_dual(
    objective: Objective, start: Start, dual: Floats
) -> tuple[Start, float]:
    """Return the start with the best multiple of its dual point, and which it is.

    At most one. The dual point may be that of a larger alpha. Where there is little
    loss, optimal ones shrink with alpha: otherwise much of the work would be to take
    them back.
    """
    point = start.at(objective)
    start = start._replace(scores=point.scores, drift=point.drift)
    if point.risk > _LITTLE_LOSS * point.value:
        return start, 1.0
    normal, offset, *_ = objective.cut(dual)
    square = objective.regularizer.conjugate(normal / -objective.alpha)
    # The bound of a multiple c is offset * c - alpha * square * c².
    c = offset / max(2.0 * objective.alpha * square, 1e-300)
    if not 0.0 < c < _SHORTER:
        return start, 1.0
    return start._replace(dual=c * dual), c


def _from_soft_start(objective: Objective, w: Floats) -> Solver:
    """Yield the iterates of ``alm`` from w and an envelope as soft as the penalty.

    Such an envelope hides features of a much smaller scale than the others. What the
    method does not find it goes on for with an envelope of the usual width.
    """
    point = objective.at(w)
    unit = objective.loss.unit(point.scores, objective.targets, objective.weights)
    width = max(_LEAST_WIDTH * unit, _SOFTNESS * _curvature_of_rows(objective))
    # So far from its ends, the dual point of a row stays between them for a while.
    share = min(0.5, unit / width)
    bound = -np.inf
    for iterate in alm(objective, point, dual=share * point.dual, width=width):
        yield iterate
        bound = max(bound, iterate.lower_bound)
        if iterate.point.value < point.value:
            point = iterate.point
    if point.value - bound <= _EXACT * point.value:
        return "no_progress"
    return (yield from alm(objective, point))


def _in_turn(first: Solver, second: Solver | None, tol: float) -> Solver:
    """Yield the iterates of the first solver, then of the second if a gap is left.

    Also if it did not fall by a tenth of ``tol`` within ``_PATIENT`` iterations.
    """
    if second is None:
        return (yield from first)
    best, bound = np.inf, -np.inf
    gaps = deque([np.inf], maxlen=_PATIENT)
    while gaps[-1] <= _EXACT * best or not gaps[0] - gaps[-1] <= 0.1 * tol * best:
        try:
            iterate = next(first)
        except StopIteration as stop:
            if gaps[-1] <= _EXACT * best:
                return str(stop.value)
            break
        yield iterate
        best, bound = min(best, iterate.point.value), max(bound, iterate.lower_bound)
        if not iterate.preparing:
            gaps.append(best - bound)
    first.close()
    return (yield from second)


def _curvature_of_rows(objective: Objective) -> float:
    """Return the mean curvature weight * ||x||² / alpha of the dual along a row's."""
    design = objective.design
    return design.mean_square / max(design.n_rows, 1) / objective.alpha


def _ascent(objective: Objective, start: Start) -> Solver:
    """Yield the iterates of dual ascent and then of what is fast near the end."""
    design = objective.design
    form = objective.loss.rowwise_dual(objective.targets)
    sets = isinstance(form, LabelSets)
    patience = _LONG_PATIENCE if sets or design.is_text_like else _PATIENCE
    for iterate in dual_ascent(objective, start, patience=patience):
        yield iterate
    if objective.loss.smooth:
        return (yield from newton(objective, iterate.point.w))
    width = _LABELS_WIDTH if sets else None
    return (yield from alm(objective, iterate.point, dual=iterate.dual, width=width))


def _soft_dual(point: Point, width: float) -> Floats:
    """Return a dual point in which rows near a kink are between its sides."""
    objective = point.objective
    neutral = objective.loss.neutral_variables(objective.targets)
    envelope = objective.loss.envelope(neutral, width)
    dual: Floats = point.under(objective.with_loss(envelope)).dual
    return dual

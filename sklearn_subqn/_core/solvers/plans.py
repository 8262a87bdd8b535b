"""How each problem is solved: a table from facts to related problems and a method.

Yu (2009, sections 4.2 and 7.2) leaves open a hybrid that is fast early and late, and a
stopping criterion based on duality. ``alm`` is fast late and has the criterion; rows of
the table say what comes before it, and what is better where it does not apply. The
first row that fits is taken. benchmarks/plans.py has for each one a class of data on
which fits without it take at least 1.3 times as long.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from ..facts import Facts
from ..losses._base import Floats
from ..objective import Objective, Point
from ..quasi_newton import LimitedMemoryInverseHessian
from .alm import alm
from .bundle import ls_bmrm
from .cd import cd
from .dual_ascent import dual_ascent
from .near_rows import near_rows
from .newton import newton
from .related import Related, solve, within
from .related.larger_alphas import larger_alphas, roughly
from .related.relaxed import relaxed
from .related.row_space import row_space
from .related.sample import is_as_accurate_as_rows, sample
from .run import Options, Solver, Start
from .sparse_alm import sparse_alm
from .subbfgs import subbfgs

# Samples hold such a share of the rows, at least so many for each parameter of a score,
# and are solved to such a relative gap: the second numbers are for several scores per
# row, which take many costly steps, and the third is the number of rows for each
# parameter unless dual ascent is another good start.
_SHARE, _SHARE_SEVERAL = 1.0 / 16.0, 1.0 / 8.0
_ROWS_PER_PARAMETER, _ROWS_PER_PARAMETER_SEVERAL = 64, 8
_TOL_OF_SAMPLE, _TOL_OF_SAMPLE_SEVERAL = 3e-2, 1e-1

# With an L1 penalty they hold an eighth of the rows, or a quarter with several scores
# per row, and at least so many rows, altogether and for each feature.
_SHARE_L1, _SHARE_L1_SEVERAL = 1.0 / 8.0, 1.0 / 4.0
_LEAST_ROWS_L1, _ROWS_PER_FEATURE_L1 = 1000, 4

# Scores of the solution of a sample are about so uncertain, in units of the loss.
_SAMPLE_WIDTH, _SAMPLE_WIDTH_SEVERAL = 0.1, 0.3

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

# With a larger curvature than this, problems of smooth losses with kinks in their
# slopes are solved for larger alphas first; those of losses with kinks and several
# scores per row begin with an envelope as soft as the penalty from the second number
# on, those of one score from the third on.
_TIGHT, _TIGHT_SEVERAL, _LOOSE = 1e3, 1e2, 1.0

# With an L1 penalty larger alphas begin at about this share of the least one with
# w = 0, and are so many: after them rows are apart, or the penalty is negligible.
_OF_ALPHA_MAX, _MOST_LARGER = 0.03, 6

# Below this curvature hardly any dual variable of a loss with kinks leaves the end of
# its interval at which it is with w = 0, which subLBFGS finds out in its first step.
_LOOSEST = 1e-2

# Where the dual bends so little along the variables of one row, the rows hardly depend
# on each other, and dual ascent needs a few sweeps only: fewer than a sample would.
_LOW_CURVATURE = 5.0

# Dual ascent may take so many rounds to shrink the gap, many on text-like data or for
# sets of labels: there the systems of ``alm`` are large and badly conditioned. After
# dual ascent for sets of labels a wide envelope is best: the center is far off.
_PATIENCE, _LONG_PATIENCE = 2, 20
_LABELS_WIDTH = 10.0

# SubLBFGS hands over when the objective fell by less than this share of itself over so
# many iterations.
_FADING, _WINDOW = 0.1, 3

# Pairs that it keeps at most.
_MEMORY = 10

# On wide data, first envelopes have a width of at least so many units of the loss, and
# of this share of the mean curvature of the dual: rows are not held so tightly that
# Newton's method could follow but a few of them in each step.
_LEAST_WIDTH, _SOFTNESS = 3.0, 1e-2

# Where this share of the objective is left of the gap, rounding has ended a method.
_EXACT = 1e-9

# Where the loss is less than this share of the objective, dual points of other alphas
# may be too long: if by more than the second number, they are no good start.
_LITTLE_LOSS = 0.5
_SHORTER, _FAR = 0.9, 1e-2


class Problem(NamedTuple):
    """What rows of the table look at.

    Attributes
    ----------
    objective : Objective
    start : Start
    facts : Facts
    options : Options
    cold : bool
        Whether the start is zero.
    far : bool
        Whether it is, or its dual point is too long by far.
    """

    objective: Objective
    start: Start
    facts: Facts
    options: Options
    cold: bool
    far: bool


class Plan(NamedTuple):
    """A row of the table.

    Attributes
    ----------
    name : str
        What a fitted estimator tells.
    when : callable
        From facts and the kind of start to whether the row fits.
    method : callable
        From a problem to iterates.
    related : callable, optional
        From a problem to related ones, solved one after the other before, by what is
        left of the table without this row.
    """

    name: str
    when: Callable[[Problem], bool]
    method: Callable[[Problem], Solver]
    related: Callable[[Problem], Iterable[Related]] | None = None


def choose(problem: Problem, rows: Iterable[Plan]) -> Plan:
    """Return the first row that fits."""
    return next(plan for plan in rows if plan.when(problem))


def auto(
    objective: Objective,
    start: Start,
    options: Options,
    rows: tuple[Plan, ...] | None = None,
) -> Solver:
    """Yield the iterates of the methods that are fastest for the problem.

    Parameters
    ----------
    objective : Objective
    start : Start
        Starting point. With a dual point it is close to the end already.
    options : Options
    rows : tuple of Plan
        The table, ``PLANS`` by default.

    Returns
    -------
    status : str
        That of the method at work at the end.
    """
    rows = PLANS if rows is None else rows
    facts = Facts(objective)
    far = cold = not start.w.any()
    if facts.hinge and facts.l2 and start.dual is not None:
        start, share = _with_shorter_dual(objective, start, start.dual)
        far = share < _FAR
    problem = Problem(objective, start, facts, options, cold, far)
    plan = choose(problem, rows)
    rest = tuple(row for row in rows if row.related != plan.related)
    if plan.related is _larger_alphas:
        rest = _without_alphas()
    iterates = _carry_out(plan, problem, rest)
    yield next(iterates)._replace(plan=plan.name)
    return (yield from iterates)


def _carry_out(plan: Plan, problem: Problem, rest: tuple[Plan, ...]) -> Solver:
    """Yield the iterates of related problems and then those of the method."""
    objective = problem.objective
    others = partial(auto, options=problem.options, rows=rest)
    for related in plan.related(problem) if plan.related else ():
        found = yield from solve(related, others, problem.start)
        if found is None:
            start = Start(np.zeros(objective.n_params))
            problem = problem._replace(start=start)
            break
        start = Start.from_point(found.point, found.dual)
        problem = problem._replace(start=start, cold=False)
    return (yield from plan.method(problem))


# Methods.


def _rest(problem: Problem) -> Solver:
    """Go on from where larger alphas have led, with the rest of the table."""
    return auto(problem.objective, problem.start, problem.options, _without_alphas())


def _alm(problem: Problem) -> Solver:
    start = problem.start
    return alm(problem.objective, start.at(problem.objective), dual=start.dual)


def _newton(problem: Problem) -> Solver:
    return newton(problem.objective, problem.start.w)


def _cd(problem: Problem) -> Solver:
    return cd(problem.objective, problem.start, problem.options.tol)


def _alm_by_cd(problem: Problem) -> Solver:
    return sparse_alm(problem.objective, problem.start)


def _bundle(problem: Problem) -> Solver:
    size = problem.options.bundle_size
    return ls_bmrm(problem.objective, problem.start.w, size=size)


def _ascent(problem: Problem) -> Solver:
    """Dual ascent and then what is fast near the end."""
    objective, facts = problem.objective, problem.facts
    patience = _LONG_PATIENCE if facts.label_sets or facts.text else _PATIENCE
    for iterate in dual_ascent(objective, problem.start, patience=patience):
        yield iterate
    if facts.smooth:
        return (yield from newton(objective, iterate.point.w))
    width = _LABELS_WIDTH if facts.label_sets else None
    return (yield from alm(objective, iterate.point, dual=iterate.dual, width=width))


def _quasi_newton(problem: Problem) -> Solver:
    """SubLBFGS as long as the many kinks of the objective look smooth from afar.

    Once its progress fades it hands over its point, scores included, and the mean of
    its recent dual variables as the first dual center.
    """
    objective = problem.objective
    memory = min(problem.options.memory, _MEMORY)
    hessian = LimitedMemoryInverseHessian(objective.n_params, memory)
    values: deque[float] = deque(maxlen=_WINDOW + 1)
    duals: deque[Floats] = deque(maxlen=_WINDOW)
    iterates = subbfgs(objective, problem.start.w, hessian)
    for iterate in iterates:
        yield iterate
        point = iterate.point
        values.append(point.value)
        duals.append(point.dual)
        if len(values) > _WINDOW and values[0] - values[-1] < _FADING * values[-1]:
            break
    iterates.close()
    if problem.facts.separable and problem.facts.text:
        start = Start.from_point(point, point.dual)
        return (yield from _ascent(problem._replace(start=start)))
    return (yield from alm(objective, point, dual=np.mean(duals, axis=0)))


def _soft_alm(problem: Problem) -> Solver:
    """``alm`` from an envelope as soft as the penalty.

    Such an envelope hides features of a much smaller scale than the others. What the
    method does not find it goes on for with an envelope of the usual width.
    """
    objective = problem.objective
    point = objective.at(problem.start.w)
    unit = objective.loss.unit(point.scores, objective.targets, objective.weights)
    width = max(_LEAST_WIDTH * unit, _SOFTNESS * problem.facts.curvature)
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


def _alm_of_sample(problem: Problem) -> Solver:
    """``alm`` from the solution of a sample, of which scores are about so uncertain."""
    point, dual, width = _softened(problem, _SAMPLE_WIDTH_SEVERAL)
    return alm(problem.objective, point, dual=dual, width=width)


def _near_rows(problem: Problem) -> Solver:
    """Go on from there on rows near a kink, where one score per row tells which."""
    point, dual, _ = _softened(problem, _SAMPLE_WIDTH)
    return near_rows(problem.objective, point, dual=dual, tol=problem.options.tol)


def _near_rows_or_larger_alphas(problem: Problem) -> Solver:
    """Go on the same way, and with larger alphas if a gap is left.

    Also if it did not fall by a tenth of ``tol`` within ``_PATIENT`` iterations.
    """
    first, tol = _near_rows(problem), problem.options.tol
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
    start = Start(np.zeros(problem.objective.n_params))
    (plan,) = (plan for plan in PLANS if plan.related is _larger_alphas)
    problem = problem._replace(start=start, cold=True, far=True)
    return (yield from _carry_out(plan, problem, _without_alphas()))


def _softened(problem: Problem, width: float) -> tuple[Point, Floats, float]:
    """Return the start and a dual point between the sides of rows near a kink."""
    o = problem.objective
    point = problem.start.at(o)
    width *= o.loss.unit(point.scores, o.targets, o.weights)
    envelope = o.loss.envelope(o.loss.neutral_variables(o.targets), width)
    return point, point.under(o.with_loss(envelope)).dual, width


# Related problems.


def _row_space(problem: Problem) -> Iterable[Related]:
    yield row_space(problem.objective, problem.options.tol)


def _larger_alphas(problem: Problem) -> Iterable[Related]:
    _, first = _limits(problem.facts)
    excess = problem.facts.curvature / first
    return larger_alphas(problem.objective, excess, problem.options.tol)


def _larger_alphas_of_smooth(problem: Problem) -> Iterable[Related]:
    return roughly(problem.objective, problem.facts.curvature / _TIGHT)


def _larger_alphas_of_l1(problem: Problem) -> Iterable[Related]:
    excess = _OF_ALPHA_MAX / problem.facts.alpha_share
    return islice(roughly(problem.objective, excess), _MOST_LARGER)


def _relaxed(problem: Problem) -> Iterable[Related]:
    yield relaxed(problem.objective, problem.options.tol)


def _sample(problem: Problem) -> Iterable[Related]:
    tol = _TOL_OF_SAMPLE_SEVERAL if problem.facts.several else _TOL_OF_SAMPLE
    n_sampled = _n_sampled(problem.facts)
    return filter(None, [sample(problem.objective, n_sampled, within(tol))])


def _sample_of_l1(problem: Problem) -> Iterable[Related]:
    n_sampled = _n_sampled_of_l1(problem.facts)
    part = sample(problem.objective, n_sampled, is_as_accurate_as_rows)
    return filter(None, [part])


# Facts of the table.


def _n_sampled(facts: Facts) -> int:
    """Return how many rows a sample has, zero where that is not worth while."""
    share, needed = _SHARE, _ROWS_PER_PARAMETER
    if facts.several:
        share = _SHARE_SEVERAL
        if not facts.separable:
            needed = _ROWS_PER_PARAMETER_SEVERAL
    n_sampled = int(share * facts.n_rows)
    return n_sampled if n_sampled >= needed * facts.n_params else 0


def _n_sampled_of_l1(facts: Facts) -> int:
    share = _SHARE_L1_SEVERAL if facts.several else _SHARE_L1
    least = max(_LEAST_ROWS_L1, _ROWS_PER_FEATURE_L1 * facts.n_features)
    n_sampled = int(share * facts.n_rows)
    return n_sampled if n_sampled >= least else 0


def _limits(facts: Facts) -> tuple[float, float]:
    """Return the curvature up to which alpha is not small, and that to begin with."""
    if facts.separable and facts.text:
        return _TIGHTEST_TEXT
    if facts.several:
        return _TIGHTEST_SEVERAL
    tall = facts.n_rows >= _TALL * facts.n_params
    return _TIGHTEST_TALL if tall else _TIGHTEST


def _without_alphas() -> tuple[Plan, ...]:
    """Return the table for starts from a larger alpha, and for larger ones."""
    hinges = _larger_alphas, _near_rows_or_larger_alphas
    return tuple(p for p in PLANS if p.related not in hinges and p.method not in hinges)


def _is_tight(p: Problem) -> bool:
    """Whether hinges hold rows so tightly that larger alphas come first."""
    f = p.facts
    fits = f.l2 and f.hinge and (not f.smooth or (_is_text(p) and f.wide))
    return fits and p.far and f.curvature > _limits(f)[0]


def _is_text(p: Problem) -> bool:
    return p.facts.l2 and p.facts.separable and p.facts.text


def _is_tight_l1(p: Problem) -> bool:
    f = p.facts
    fits = p.cold and f.elastic_net and not f.several and f.wide
    fits = fits and (f.kinked_slope or f.envelope)
    return fits and f.alpha_share < _OF_ALPHA_MAX


def _has_kinks(p: Problem) -> bool:
    return p.facts.l2 and p.facts.envelope


def _is_smooth(p: Problem) -> bool:
    return p.facts.l2 and p.facts.smooth


def _fits_cd(p: Problem) -> bool:
    return p.facts.elastic_net and not p.facts.l2 and p.facts.columnwise


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


#: The first row that fits is taken.
PLANS = (
    # Losses with kinks and squared norms.
    Plan(
        "span of the rows",
        lambda p: _has_kinks(p) and p.facts.several and p.facts.short_rows,
        _alm,
        _row_space,
    ),
    Plan(
        "sample, rows near kinks, larger alphas",
        lambda p: (
            _is_tight(p)
            and not (p.facts.several or _is_text(p))
            and p.cold
            and p.facts.n_entries >= _LARGE
            and _n_sampled(p.facts) > 0
        ),
        _near_rows_or_larger_alphas,
        _sample,
    ),
    Plan("larger alphas", _is_tight, _rest, _larger_alphas),
    Plan(
        "dual ascent",
        lambda p: (
            _is_text(p)
            and (p.facts.smooth or p.facts.envelope)
            and (
                p.facts.smooth
                or p.facts.several
                or not p.cold
                or p.facts.curvature > _LOOSEST
            )
        ),
        _ascent,
    ),
    Plan(
        "proximal method of multipliers",
        lambda p: _has_kinks(p) and p.start.dual is not None,
        _alm,
    ),
    Plan(
        "sample, proximal method of multipliers",
        lambda p: (
            _has_kinks(p)
            and p.facts.several
            and p.cold
            and not (p.facts.separable and p.facts.curvature <= _LOW_CURVATURE)
            and _n_sampled(p.facts) > 0
        ),
        _alm_of_sample,
        _sample,
    ),
    Plan(
        "sample, rows near kinks",
        lambda p: (
            _has_kinks(p) and not p.facts.several and p.cold and _n_sampled(p.facts) > 0
        ),
        _near_rows,
        _sample,
    ),
    Plan(
        "soft proximal method of multipliers",
        lambda p: (
            _has_kinks(p)
            and p.facts.wide
            and p.facts.curvature > (_TIGHT_SEVERAL if p.facts.several else _LOOSE)
        ),
        _soft_alm,
    ),
    Plan(
        "dual ascent, proximal method of multipliers",
        lambda p: _has_kinks(p) and p.facts.several and p.facts.separable,
        _ascent,
    ),
    Plan(
        "proximal method of multipliers",
        lambda p: _has_kinks(p) and p.facts.several,
        _alm,
    ),
    Plan(
        "subLBFGS, proximal method of multipliers",
        lambda p: _has_kinks(p),
        _quasi_newton,
    ),
    # Smooth losses and squared norms.
    Plan(
        "loss that is linear from afar, Newton's method",
        lambda p: _is_smooth(p) and p.facts.kinked_slope and p.cold and p.facts.linear,
        _newton,
        _relaxed,
    ),
    Plan(
        "larger alphas, Newton's method",
        lambda p: (
            _is_smooth(p)
            and p.cold
            and p.facts.wide
            and p.facts.kinked_slope
            and p.facts.curvature > _TIGHT
        ),
        _newton,
        _larger_alphas_of_smooth,
    ),
    Plan("Newton's method", _is_smooth, _newton),
    # An L1 penalty.
    Plan(
        "loss that is linear from afar, coordinate descent",
        lambda p: _fits_cd(p) and p.cold and p.facts.linear,
        _cd,
        _relaxed,
    ),
    Plan(
        "larger alphas, coordinate descent",
        lambda p: _fits_cd(p) and _is_tight_l1(p),
        _cd,
        _larger_alphas_of_l1,
    ),
    Plan(
        "sample, coordinate descent",
        lambda p: _fits_cd(p) and p.cold and _n_sampled_of_l1(p.facts) > 0,
        _cd,
        _sample_of_l1,
    ),
    Plan("coordinate descent", _fits_cd, _cd),
    Plan(
        "larger alphas, proximal method of multipliers",
        _is_tight_l1,
        _alm_by_cd,
        _larger_alphas_of_l1,
    ),
    Plan(
        "proximal method of multipliers",
        lambda p: p.facts.elastic_net and p.facts.envelope and not p.facts.several,
        _alm_by_cd,
    ),
    # Anything else.
    Plan("BMRM", lambda p: True, _bundle),
)

"""How each problem is solved: a table from facts to related problems and a method.

Yu (2009, sections 4.2 and 7.2) leaves open a hybrid that is fast early and late, and a
stopping criterion based on duality. ``alm`` is fast late and has the criterion; rows of
the table say what comes before it, and what is better where it does not apply.
benchmarks/plans.py has for each row a class of data on which fits without it take at
least 1.3 times as long.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from ..line_search import exact
from ..newton_direction import is_factorized
from ..objective import Objective
from ..quasi_newton import LimitedMemoryInverseHessian
from .alm import alm
from .bfgs import bfgs
from .bundle import ls_bmrm
from .cd import cd
from .dual_ascent import SHRINKING, dual_ascent
from .facts import Facts
from .narrowing import CG_ACCURACY as NARROWING_ACCURACY
from .narrowing import narrowing
from .near_rows import near_rows
from .newton import newton
from .owlqn import owlqn
from .proximal_newton import proximal_newton
from .related import Related, solve, within
from .related.larger_alphas import larger_alphas, roughly
from .related.relaxed import relaxed
from .related.row_space import row_space
from .related.sample import as_accurate_as_rows, sample
from .run import Options, Solver, Start
from .sparse_alm import sparse_alm
from .subbfgs import subbfgs

# Bases of the span of rows take the time of about a sixth of the rows in products for
# each score, and the room of X: so many rows at most, and so many features for each.
_MAX_ROWS, _FEATURES_PER_ROW = 2000, 2

# Samples hold such a share of the rows, at least so many for each parameter of a score,
# and are solved to such a relative gap: the second numbers are for several scores per
# row, which take many costly steps, and the last is the number of rows for each
# parameter unless dual ascent is another good start.
_SHARE, _SHARE_SEVERAL = 1.0 / 16.0, 1.0 / 8.0
_TOL_OF_SAMPLE = 3e-2
_ROWS_PER_PARAMETER, _ROWS_PER_PARAMETER_SEVERAL = 64, 8

# Rows in several places come to one in samples of about so many bytes at most.
_MOVED_BYTES, _BYTES_AN_ENTRY = 2**22, 12

# With an L1 penalty they hold an eighth of the rows, or a quarter with several scores
# per row, and at least so many rows, altogether and for each feature.
_SHARE_L1, _SHARE_L1_SEVERAL = 1.0 / 8.0, 1.0 / 4.0
_LEAST_ROWS_L1, _ROWS_PER_FEATURE_L1 = 1000, 4

# Scores of the solution of a sample are about so uncertain, in units of the loss.
_SAMPLE_WIDTH = 0.3

# With a larger curvature than this, hinges are minimized for larger alphas first, from
# about the second number on: in general, and on text, where it makes squared hinges of
# 8000 x 12000 at alpha = 1e-7 some 100 times faster. With one score per row and at
# least so many rows for each parameter, classes are hardly ever apart.
_TIGHTEST, _TIGHTEST_TEXT = (2e4, 1e4), (1e3, 1e2)
_TALL, _TIGHTEST_TALL = 100, (1e10, 1e4)

# With a larger curvature than this, problems of smooth losses with kinks in their
# slopes are solved for larger alphas first; on wide data, those of losses with kinks
# begin with an envelope as soft as the penalty from the second number on.
_TIGHT, _LOOSE = 1e3, 1.0

# With an L1 penalty larger alphas begin at about this share of the least one with
# w = 0, and are so many: after them rows are apart, or the penalty is negligible.
_OF_ALPHA_MAX, _MOST_LARGER = 0.03, 6

# Below this curvature hardly any dual variable of a loss with kinks leaves the end of
# its interval at which it is with w = 0, which subLBFGS finds out in its first step.
_LOOSEST = 1e-2

# Where the dual bends so little along the variables of one row, the rows hardly depend
# on each other, and dual ascent needs a few sweeps only: fewer than a sample would.
_LOW_CURVATURE = 5.0

# With so few entries in sparse rows a Hessian costs few passes. Squared hinges of
# categories as indicators, with columns that sum to others, take 5 to 20 times as long
# by coordinate descent at small alpha: 20,000 rows of 10 to 80 entries.
_SHORT_ROWS = 100

# With less rows with curvature than so many for each parameter, losses are linear.
_FEW_CURVED = 4.0

# Dual ascent may take so many rounds to shrink the gap, many on text-like data or for
# sets of labels: there the systems of ``alm`` are large and badly conditioned. On text
# its proximal term is divided by these numbers in turn before that: counts of words
# (4000 rows of news20, alpha 3e-4) take 3 seconds in place of 172.
_PATIENCE, _LONG_PATIENCE = 2, 20
_WEAKER = 1.0, 5.0, 25.0

# With several scores a row, ascent on text begins without the term, as long as rounds
# shrink the gap to less than this share: 105 classes of text (6400 x 55000, alpha 1e-5,
# topics with words of their own) take 1.4 seconds in place of 4.6.
_FAST = 0.4

# SubLBFGS hands over when the objective fell by less than this share of itself over so
# many iterations.
_FADING, _WINDOW = 0.1, 3

# Narrow kinks are found to such a relative gap at least. Small problems, solved to more
# digits than that, are left to the bundle method.
_DIGITS_OF_NARROWING = 1e-9

# On wide data, first envelopes have a width of one unit of the loss or this share of
# the mean curvature of the dual: rows are not held so tightly that Newton's method
# could follow but a few of them in each step. Twice the speed for 300 x 400, 4 classes.
_SOFTNESS = 1e-2


class Plan(NamedTuple):
    """A row of the table.

    Attributes
    ----------
    name : str
        What ``plan_`` of a fitted estimator is.
    when : callable
        From facts to whether the row fits.
    related : callable or None
        From facts to related problems, solved one after the other before, by what is
        left of the table without the rows that have the same ones.
    method : callable or None
        From facts, with the start that these have led to, to iterates; None for what is
        left of the table.
    """

    name: str
    when: Callable[[Facts], bool]
    related: Callable[[Facts], Iterable[Related]] | None
    method: Callable[[Facts], Solver] | None


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
    facts = Facts(objective, start, options)
    plan = choose(facts, rows)
    iterates = _carry_out(plan, facts, rows)
    yield next(iterates)._replace(plan=plan.name)
    return (yield from iterates)


def choose(facts: Facts, rows: tuple[Plan, ...]) -> Plan:
    """Return the first row that fits."""
    return next(plan for plan in rows if plan.when(facts))


def _carry_out(plan: Plan, facts: Facts, rows: tuple[Plan, ...]) -> Solver:
    """Yield the iterates of related problems and then those of the method."""
    if plan.related:
        o, options, start = facts.objective, facts.options, facts.start
        others = tuple(row for row in rows if row.related is not plan.related)
        method = partial(auto, options=options, rows=others)
        for related in plan.related(facts):
            found = yield from solve(related, method, start)
            if found is None:
                start = Start(np.zeros(o.n_params))
                break
            start = found.start
        facts, rows = Facts(o, start, options), others
    if plan.method is None:
        return (yield from _carry_out(choose(facts, rows), facts, rows))
    return (yield from plan.method(facts))


# Methods.


def _alm(f: Facts) -> Solver:
    return alm(f.objective, f.start)


def _newton(f: Facts) -> Solver:
    return newton(f.objective, f.start.w)


def _cd(f: Facts) -> Solver:
    return cd(f.objective, f.start, f.options.tol)


def _sparse_alm(f: Facts) -> Solver:
    return sparse_alm(f.objective, f.start)


def _narrowing(f: Facts) -> Solver:
    return narrowing(f.objective, f.start)


def _proximal_newton(f: Facts) -> Solver:
    return proximal_newton(f.objective, f.start)


def _lbfgs(f: Facts) -> Solver:
    o, memory = f.objective, f.options.memory
    hessian = LimitedMemoryInverseHessian(o.n_params, memory)
    return bfgs(o, f.start.w, hessian, search=exact)


def _owlqn(f: Facts) -> Solver:
    o, memory = f.objective, f.options.memory
    return owlqn(o, f.start.w, LimitedMemoryInverseHessian(o.n_params, memory))


def _bundle(f: Facts) -> Solver:
    return ls_bmrm(f.objective, f.start.w, size=f.options.bundle_size)


def _ascent(f: Facts) -> Solver:
    """Dual ascent and then what is fast near the end."""
    return _ascent_from(f, f.start)


def _ascent_from(f: Facts, start: Start) -> Solver:
    patience = _LONG_PATIENCE if f.label_sets or f.text else _PATIENCE
    terms = _WEAKER if f.text and not f.label_sets else (1.0,)
    stages = [(weaker, patience, SHRINKING) for weaker in terms]
    if f.text and f.several:
        stages.insert(0, (np.inf, 1, _FAST))
    for weaker, patience, shrinking in stages:
        for iterate in dual_ascent(
            f.objective, start, patience=patience, shrinking=shrinking, weaker=weaker
        ):
            yield iterate
        start = iterate.start
    if f.smooth:
        return (yield from newton(f.objective, start.w))
    return (yield from alm(f.objective, start))


def _quasi_newton(f: Facts) -> Solver:
    """SubLBFGS as long as the many kinks of the objective look smooth in long steps.

    Once its progress fades it hands over its point, scores included, and the mean of
    its recent dual variables as the first dual center.
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
        return (yield from _ascent_from(f, Start.from_point(point, point.dual)))
    start = Start.from_point(point, o.risk.mean(*duals))
    return (yield from alm(o, start))


def _soft_alm(f: Facts) -> Solver:
    """Begin with an envelope as soft as the penalty.

    Such an envelope hides features of a much smaller scale than the others. What the
    method does not find it goes on for with an envelope of the usual width.
    """
    o = f.objective
    point = o.at(f.start.w)
    unit = o.risk.score_scale(point.scores)
    width = max(unit, _SOFTNESS * f.curvature)
    # So far from its ends, the dual point of a row stays between them for a while.
    share = min(0.5, unit / width)
    start = Start.from_point(point, o.risk.scaled(share, point.dual))
    for iterate in alm(o, start, width=width):
        yield iterate
        point = min(point, iterate.point, key=lambda point: point.value)
    return (yield from alm(o, Start.from_point(point)))


def _alm_of_sample(f: Facts) -> Solver:
    """Go on from the solution of a sample."""
    start, width = _softened(f)
    return alm(f.objective, start, width=width)


def _near_rows(f: Facts) -> Solver:
    """Go on from there on rows near a kink, where one score per row shows which."""
    start, _ = _softened(f)
    return near_rows(f.objective, start, tol=f.options.tol)


def _softened(f: Facts) -> tuple[Start, float]:
    """Return the start with a dual point between the sides of rows near a kink."""
    o = f.objective
    point = f.start.at(o)
    width = _SAMPLE_WIDTH * o.risk.score_scale(point.scores)
    smooth = o.with_envelope(o.risk.neutral_center(), width)
    return Start.from_point(point, point.under(smooth).dual), width


# Related problems.


def _row_space(f: Facts) -> Iterable[Related]:
    return [row_space(f.objective, f.options.tol)]


def _larger_alphas(f: Facts) -> Iterable[Related]:
    _, first = _limits(f)
    return larger_alphas(f.objective, f.curvature / first, f.options.tol)


def _larger_alphas_of_smooth(f: Facts) -> Iterable[Related]:
    return roughly(f.objective, f.curvature / _TIGHT)


def _larger_alphas_of_l1(f: Facts) -> Iterable[Related]:
    return islice(roughly(f.objective, _OF_ALPHA_MAX / f.alpha_share), _MOST_LARGER)


def _relaxed(f: Facts) -> Iterable[Related]:
    return [relaxed(f.objective, f.options.tol)]


def _sample(f: Facts) -> Iterable[Related]:
    part = sample(f.objective, _n_sampled(f), within(_TOL_OF_SAMPLE))
    return filter(None, [part])


def _sample_of_l1(f: Facts) -> Iterable[Related]:
    n_sampled = _n_sampled_of_l1(f)
    return filter(None, [sample(f.objective, n_sampled, as_accurate_as_rows())])


# Conditions.


def _n_sampled(f: Facts) -> int:
    """Return how many rows a sample has, zero where that is not worth while."""
    share, needed = _SHARE, _ROWS_PER_PARAMETER
    if f.several:
        share = _SHARE_SEVERAL
        if not f.separable:
            needed = _ROWS_PER_PARAMETER_SEVERAL
    n_sampled = min(int(share * f.n_rows), _most_moved(f))
    # Systems of all parameters cost what more rows than these would.
    least = max(needed * f.n_params, f.objective.n_params)
    return n_sampled if n_sampled >= least else 0


def _n_sampled_of_l1(f: Facts) -> int:
    share = _SHARE_L1_SEVERAL if f.several else _SHARE_L1
    n_sampled = min(int(share * f.n_rows), _most_moved(f))
    least = max(_LEAST_ROWS_L1, _ROWS_PER_FEATURE_L1 * f.n_features)
    return n_sampled if n_sampled >= least else 0


def _most_moved(f: Facts) -> int:
    """Return how many rows a sample has at most, where its rows come to one place."""
    if f.in_one_place:
        return f.n_rows
    return int(_MOVED_BYTES / (_BYTES_AN_ENTRY * max(f.row_size, 1.0)))


def _limits(f: Facts) -> tuple[float, float]:
    """Return the curvature up to which alpha is not small, and that to begin with."""
    if f.text:
        return _TIGHTEST_TEXT
    tall = not f.several and f.n_rows >= _TALL * f.n_params
    return _TIGHTEST_TALL if tall else _TIGHTEST


def _is_tight(f: Facts) -> bool:
    """Whether hinges hold rows so tightly that larger alphas come first."""
    fits = f.l2 and f.hinge and (f.kinks or (f.text and f.wide))
    return fits and f.far and f.curvature > _limits(f)[0]


def _is_tight_l1(f: Facts) -> bool:
    fits = f.l1 and f.cold and f.wide and not f.several and (f.kinked_slope or f.kinks)
    return fits and f.alpha_share < _OF_ALPHA_MAX


def _is_linear(f: Facts) -> bool:
    """Whether too few rows have curvature at first, of a loss asymptotically linear."""
    fits = f.cold and f.kinked_slope and f.objective.loss.asymptote() is not None
    return fits and f.curved_rows < _FEW_CURVED


def _is_wide(f: Facts) -> bool:
    return f.wide and f.curvature > _LOOSE


def _has_short_rows(f: Facts) -> bool:
    short = f.n_features >= _FEATURES_PER_ROW * f.n_rows
    kept = f.in_one_place and f.dense and f.n_rows <= _MAX_ROWS
    return f.several and kept and short


def _is_tall(f: Facts) -> bool:
    return f.cold and _n_sampled(f) > 0


def _suits_ascent(f: Facts) -> bool:
    return f.smooth or f.several or not f.cold or f.curvature > _LOOSEST


#: The first row that fits is taken.
PLANS = (
    # Losses with kinks, and squared norms.
    Plan(
        "span of the rows",
        lambda f: f.l2 and f.kinks and _has_short_rows(f),
        _row_space,
        _alm,
    ),
    Plan(
        "sample, rows near kinks",
        lambda f: (
            (f.l2 and f.kinks and f.in_one_place)
            and not (f.several or f.text)
            and _is_tall(f)
        ),
        _sample,
        _near_rows,
    ),
    Plan("larger alphas", _is_tight, _larger_alphas, None),
    Plan(
        "dual ascent",
        lambda f: f.l2 and f.text and (f.smooth or f.kinks) and _suits_ascent(f),
        None,
        _ascent,
    ),
    Plan(
        "proximal method of multipliers from a dual point",
        lambda f: f.l2 and f.kinks and f.warm,
        None,
        _alm,
    ),
    Plan(
        "sample, proximal method of multipliers",
        lambda f: (
            (f.l2 and f.kinks and _is_tall(f))
            and (f.several or not f.in_one_place)
            and not (f.separable and f.curvature <= _LOW_CURVATURE)
        ),
        _sample,
        _alm_of_sample,
    ),
    Plan(
        "proximal method of multipliers with soft envelopes",
        lambda f: f.l2 and f.kinks and _is_wide(f),
        None,
        _soft_alm,
    ),
    Plan(
        "dual ascent, proximal method of multipliers",
        lambda f: f.l2 and f.kinks and f.several and f.separable,
        None,
        _ascent,
    ),
    Plan(
        "subLBFGS, proximal method of multipliers",
        lambda f: f.l2 and f.kinks and not f.several,
        None,
        _quasi_newton,
    ),
    Plan("proximal method of multipliers", lambda f: f.l2 and f.kinks, None, _alm),
    # Smooth losses, and squared norms.
    Plan(
        "loss that is asymptotically linear, Newton's method",
        lambda f: f.l2 and _is_linear(f),
        _relaxed,
        _newton,
    ),
    Plan(
        "larger alphas, Newton's method",
        lambda f: (
            f.l2 and f.cold and f.wide and f.kinked_slope and f.curvature > _TIGHT
        ),
        _larger_alphas_of_smooth,
        _newton,
    ),
    Plan(
        "L-BFGS",
        lambda f: f.l2 and f.several and f.text_like and f.columnwise,
        None,
        _lbfgs,
    ),
    Plan("Newton's method", lambda f: f.l2 and f.smooth, None, _newton),
    # An L1 penalty.
    Plan(
        "loss that is asymptotically linear, coordinate descent",
        lambda f: f.l1 and f.columnwise and _is_linear(f),
        _relaxed,
        _cd,
    ),
    Plan(
        "larger alphas, coordinate descent",
        lambda f: f.columnwise and _is_tight_l1(f),
        _larger_alphas_of_l1,
        _cd,
    ),
    Plan(
        "sample, proximal Newton method",
        lambda f: (
            (f.l1 and f.kinked_slope and f.cold and _n_sampled_of_l1(f) > 0)
            and (f.in_one_place and not f.dense and f.row_size <= _SHORT_ROWS)
            and f.forms_hessian
        ),
        _sample_of_l1,
        _proximal_newton,
    ),
    Plan(
        "sample, coordinate descent",
        lambda f: f.l1 and f.columnwise and f.cold and _n_sampled_of_l1(f) > 0,
        _sample_of_l1,
        _cd,
    ),
    Plan("coordinate descent", lambda f: f.l1 and f.columnwise, None, _cd),
    Plan(
        "proximal Newton method",
        lambda f: f.l1 and f.forms_hessian,
        None,
        _proximal_newton,
    ),
    Plan("OWL-QN", lambda f: f.l1 and f.smooth, None, _owlqn),
    Plan(
        "larger alphas, proximal method of multipliers by coordinate descent",
        lambda f: f.kinks and f.in_one_place and _is_tight_l1(f),
        _larger_alphas_of_l1,
        _sparse_alm,
    ),
    Plan(
        "proximal method of multipliers by coordinate descent",
        lambda f: f.l1 and f.kinks and f.in_one_place and not f.several,
        None,
        _sparse_alm,
    ),
    # Pairs of rows.
    Plan(
        "Newton's method on smooth losses that approach the hinge",
        lambda f: (
            (f.l2 and f.narrows and f.options.tol >= _DIGITS_OF_NARROWING)
            and is_factorized(f.objective, NARROWING_ACCURACY)
        ),
        None,
        _narrowing,
    ),
    # Anything else.
    Plan("bundle method", lambda f: True, None, _bundle),
)

"""How each problem is solved: a table from facts to related problems and a method.

Yu (2009, sections 4.2 and 7.2) leaves open a hybrid that is fast early and late, and a
stopping criterion based on duality. ``alm`` is fast late and has the criterion; rows of
the table say what comes before it, and what is better where it does not apply.
benchmarks/plans.py has for each row a class of data on which fits without it take at
least 1.3 times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from ..driver import Options, Solver, Start
from ..objectives.objective import Objective
from ..steps.newton_direction import CG_ACCURACY, is_factorized
from .facts import Facts
from .plan_conditions import (
    LARGE_CURVATURE,
    MOST_LARGER,
    OF_ALPHA_MAX,
    has_short_rows,
    has_small_alpha,
    has_small_l1,
    is_linear,
    is_small,
    is_tall,
    is_wide,
    limits,
    n_sampled,
    n_sampled_of_l1,
    suits_ascent,
)
from .plan_methods import (
    by_alm,
    by_alm_of_sample,
    by_ascent,
    by_bundle,
    by_cd,
    by_lbfgs,
    by_loop,
    by_narrowing,
    by_near_rows,
    by_newton,
    by_owlqn,
    by_proximal_newton,
    by_quasi_newton,
    by_soft_alm,
    by_sparse_alm,
)
from .related import Related, solve, within
from .related.larger_alphas import larger_alphas, roughly
from .related.relaxed import relaxed
from .related.row_space import row_space
from .related.sample import as_accurate_as_rows, sample

# Samples are solved to such a relative gap.
_TOL_OF_SAMPLE = 3e-2

# Where the dual bends so little along the variables of one row, the rows hardly depend
# on each other, and dual ascent needs a few sweeps only: fewer than a sample would.
# Seven classes of covtype, 100,000 rows, alpha 0.01, take 3.4 times as long from one.
_LOW_CURVATURE = 5.0

# With so few entries in sparse rows a Hessian costs few passes. Squared hinges of
# categories as indicators, with columns that sum to others, take 5 to 20 times as long
# by coordinate descent at small alpha: 20,000 rows of 10 to 80 entries.
_SHORT_ROWS = 100

# Narrow kinks are found to such a relative gap at least. Small problems, solved to more
# digits than that, are left to the bundle method.
_DIGITS_OF_NARROWING = 1e-9


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


# Related problems.


def _row_space(f: Facts) -> Iterable[Related]:
    return [row_space(f.objective, f.options.stopping)]


def _larger_alphas(f: Facts) -> Iterable[Related]:
    _, first = limits(f)
    return larger_alphas(f.objective, f.curvature / first, f.options.stopping)


def _larger_alphas_of_smooth(f: Facts) -> Iterable[Related]:
    return roughly(f.objective, f.curvature / LARGE_CURVATURE)


def _larger_alphas_of_l1(f: Facts) -> Iterable[Related]:
    return islice(roughly(f.objective, OF_ALPHA_MAX / f.alpha_share), MOST_LARGER)


def _relaxed(f: Facts) -> Iterable[Related]:
    return [relaxed(f.objective, f.options.stopping)]


def _sample(f: Facts) -> Iterable[Related]:
    part = sample(f.objective, n_sampled(f), within(_TOL_OF_SAMPLE))
    return filter(None, [part])


def _sample_of_l1(f: Facts) -> Iterable[Related]:
    n_sampled = n_sampled_of_l1(f)
    return filter(None, [sample(f.objective, n_sampled, as_accurate_as_rows())])


def _is_of_categories(f: Facts) -> bool:
    return f.kinked_slope and not f.dense and f.row_size <= _SHORT_ROWS


#: The first row that fits is taken.
PLANS = (
    Plan(
        "one compiled loop",
        lambda f: is_small(f) and not has_small_alpha(f),
        None,
        by_loop,
    ),
    # Losses with kinks, and squared norms.
    Plan(
        "span of the rows",
        lambda f: f.l2 and f.kinks and has_short_rows(f),
        _row_space,
        by_alm,
    ),
    Plan(
        "sample, near kinks",
        lambda f: (
            (f.l2 and f.kinks and f.in_one_place)
            and not (f.several or f.text)
            and is_tall(f)
        ),
        _sample,
        by_near_rows,
    ),
    Plan("larger alphas", has_small_alpha, _larger_alphas, None),
    Plan(
        "dual ascent",
        lambda f: f.l2 and f.text and (f.smooth or f.kinks) and suits_ascent(f),
        None,
        by_ascent,
    ),
    Plan(
        "proximal method of multipliers from a dual point",
        lambda f: f.l2 and f.kinks and f.warm,
        None,
        by_alm,
    ),
    Plan(
        "sample, proximal method of multipliers",
        lambda f: (
            (f.l2 and f.kinks and is_tall(f))
            and (f.several or not f.in_one_place)
            and not (f.separable and f.curvature <= _LOW_CURVATURE)
        ),
        _sample,
        by_alm_of_sample,
    ),
    Plan(
        "proximal method of multipliers with soft envelopes",
        lambda f: f.l2 and f.kinks and is_wide(f),
        None,
        by_soft_alm,
    ),
    Plan(
        "dual ascent, proximal method of multipliers",
        lambda f: f.l2 and f.kinks and f.several and f.separable,
        None,
        by_ascent,
    ),
    Plan(
        "subLBFGS, proximal method of multipliers",
        lambda f: f.l2 and f.kinks and not f.several,
        None,
        by_quasi_newton,
    ),
    Plan("proximal method of multipliers", lambda f: f.l2 and f.kinks, None, by_alm),
    # Smooth losses, and squared norms.
    Plan(
        "loss that is asymptotically linear, Newton's method",
        lambda f: f.l2 and is_linear(f),
        _relaxed,
        by_newton,
    ),
    Plan(
        "larger alphas, Newton's method",
        lambda f: (
            f.l2
            and f.from_zero
            and f.wide
            and f.kinked_slope
            and f.curvature > LARGE_CURVATURE
        ),
        _larger_alphas_of_smooth,
        by_newton,
    ),
    Plan(
        "L-BFGS",
        lambda f: f.l2 and f.several and f.text_like and f.columnwise,
        None,
        by_lbfgs,
    ),
    Plan("Newton's method", lambda f: f.l2 and f.smooth, None, by_newton),
    # An L1 penalty.
    Plan(
        "loss that is asymptotically linear, coordinate descent",
        lambda f: f.l1 and f.columnwise and is_linear(f),
        _relaxed,
        by_cd,
    ),
    Plan(
        "larger alphas, coordinate descent",
        lambda f: f.columnwise and has_small_l1(f),
        _larger_alphas_of_l1,
        by_cd,
    ),
    Plan(
        "sample, proximal Newton method",
        lambda f: (
            (f.l1 and f.from_zero and n_sampled_of_l1(f) > 0)
            and (not f.in_one_place or _is_of_categories(f))
            and f.forms_hessian
        ),
        _sample_of_l1,
        by_proximal_newton,
    ),
    Plan(
        "sample, coordinate descent",
        lambda f: f.l1 and f.columnwise and f.from_zero and n_sampled_of_l1(f) > 0,
        _sample_of_l1,
        by_cd,
    ),
    Plan("coordinate descent", lambda f: f.l1 and f.columnwise, None, by_cd),
    Plan(
        "proximal Newton method",
        lambda f: f.l1 and f.forms_hessian,
        None,
        by_proximal_newton,
    ),
    Plan("OWL-QN", lambda f: f.l1 and f.smooth, None, by_owlqn),
    Plan(
        "larger alphas, proximal method of multipliers by coordinate descent",
        lambda f: f.kinks and f.in_one_place and has_small_l1(f),
        _larger_alphas_of_l1,
        by_sparse_alm,
    ),
    Plan(
        "proximal method of multipliers by coordinate descent",
        lambda f: f.l1 and f.kinks and f.in_one_place and not f.several,
        None,
        by_sparse_alm,
    ),
    # Pairs of rows.
    Plan(
        "Newton's method on smooth losses that approach the hinge",
        lambda f: (
            (f.l2 and f.narrows and f.options.stopping.tol >= _DIGITS_OF_NARROWING)
            and is_factorized(f.objective, CG_ACCURACY)
        ),
        None,
        by_narrowing,
    ),
    # Anything else.
    Plan("bundle method", lambda f: True, None, by_bundle),
)

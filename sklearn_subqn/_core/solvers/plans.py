"""The table that selects a method, and problems to solve first, for a problem.

Yu (2009, sections 4.2 and 7.2) leaves open a hybrid method that is fast both far from
the optimum and near it, and a stopping criterion based on duality. ``alm`` is fast near
the optimum and stops by the duality gap. Rows of the table select a method that runs
before ``alm``, or replaces it where it does not apply. benchmarks/plans.py has for each
row a class of data on which fits without it take at least 1.5 times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, cast

import numpy as np

from ..driver import Chosen, Options, Solver, Start, Status, to_the_end
from ..kernels import small as kernel
from ..objectives.objective import Objective
from . import plan_conditions
from .alm import alm
from .facts import WORDS, Facts
from .plan_conditions import (
    LARGE_CURVATURE,
    MOST_LARGER,
    OF_ALPHA_MAX,
    Condition,
    forms_models,
    goes_by_blocks,
    goes_by_columns,
    has_bounds,
    has_envelopes,
    has_groups,
    has_kinks,
    has_l1,
    has_large_units,
    has_no_small_alpha,
    has_norms,
    has_quadratic_form,
    has_sample,
    has_short_rows,
    has_small_alpha,
    has_squares,
    holds_rows_tightly,
    is_factorized_at_once,
    is_linear,
    is_small,
    is_smooth,
    limits,
    n_sampled,
    narrows,
    needs_few_digits,
    needs_hessian,
    suits_ascent,
)
from .plan_methods import (
    by_alm,
    by_alm_for_penalty,
    by_alm_of_sample,
    by_ascent,
    by_bundle,
    by_cd,
    by_faces,
    by_fista,
    by_narrowing,
    by_newton,
    by_owlqn,
    by_proximal_newton,
)
from .related import Related, solve_related
from .related.kinked import kinked
from .related.larger_alphas import larger_alphas, roughly
from .related.relaxed import relaxed
from .related.row_space import row_space
from .related.sample import sample
from .related.smaller_units import smaller_units
from .small import small
from .widths import first_width


class Plan(NamedTuple):
    """A row of the table.

    Attributes
    ----------
    name : str
        The value of ``plan_`` of fitted estimators.
    when : tuple of callables
        Conditions, functions of ``Facts``; the row applies if all of them hold.
    related : callable or None
        Returns related problems for the facts. They are solved first, in turn, by the
        rest of the table without rows with the same related problems.
    method : callable or None
        Returns iterates for the facts, with the start from the related problems; None
        for the rest of the table.
    """

    name: str
    when: tuple[Condition, ...]
    related: Callable[[Facts], Iterable[Related]] | None
    method: Callable[[Facts], Solver] | None


def auto(
    objective: Objective,
    start: Start,
    options: Options,
    rows: tuple[Plan, ...] | None = None,
) -> Solver:
    """Choose the fastest methods for the problem, and return their iterates.

    Parameters
    ----------
    objective : Objective
    start : Start
        Starting point. With a dual point it is assumed to be close to the solution.
    options : Options
    rows : tuple of Plan
        The table, ``PLANS`` by default.

    Returns
    -------
    chosen : Chosen
        The iterates of the methods.
    """
    rows = PLANS if rows is None else rows
    facts = Facts(objective, start, options)
    plan = choose(facts, rows)
    why = partial(explain, facts, rows)
    yield from ()
    return Chosen(_iterates(plan, facts, rows), plan.name, why)


def choose(facts: Facts, rows: tuple[Plan, ...]) -> Plan:
    """Return the first row that applies."""
    for plan in rows:
        for condition in plan.when:
            if not condition(facts):
                break
        else:
            return plan
    raise AssertionError("the last row fits always")


class _Compared(float):
    """A number that records each comparison with a limit, with its result."""

    name: str
    lines: list[str]

    def _record(self, sign: str, limit: float) -> None:
        self.lines.append(f"{self.name} = {self:.5g} {sign} {limit:.5g}")

    def __lt__(self, other: float) -> bool:
        less = float(self) < other
        self._record("<" if less else ">=", other)
        return less

    def __gt__(self, other: float) -> bool:
        more = float(self) > other
        self._record(">" if more else "<=", other)
        return more

    def __le__(self, other: float) -> bool:
        return not self > other

    def __ge__(self, other: float) -> bool:
        return not self < other


class _Watched:
    """A proxy of ``Facts`` that records what a condition reads.

    Attributes
    ----------
    lines : list of str
        The false properties, and the comparisons of numbers with limits.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts, self.lines = facts, list[str]()

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._facts, name)
        if value is False:
            self.lines.append(WORDS[name])
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = _Compared(value)
            value.name, value.lines = WORDS[name], self.lines
        return value


def explain(facts: Facts, rows: tuple[Plan, ...]) -> list[str]:
    """Return a line for each row up to the first that applies, with the reason.

    The reasons are false properties and compared numbers, such as "X is not like text"
    and "curvature = 0.25 <= 1000".
    """
    lines: list[str] = []
    for plan in rows:
        false = next((each for each in plan.when if not each(facts)), None)
        if false is None:
            reasons = " ".join(_with_numbers(each, facts) for each in plan.when)
            return [*lines, f"taken: {plan.name}. {reasons or 'No other row fits.'}"]
        reason = _inside(_with_numbers(false, facts))
        lines.append(f"not {plan.name}: it is false that {reason}")
    raise AssertionError("the last row fits always")


def _with_numbers(condition: Condition, facts: Facts) -> str:
    """Return the sentence of a condition, with the facts and limits it compares."""
    text, watched = sentence(condition), _Watched(facts)
    if condition(cast(Facts, watched)):
        said = WORDS.values()
        watched.lines = [line for line in watched.lines if line not in said]
    if condition in plan_conditions.SENTENCES or not watched.lines:
        return text
    return f"{text.removesuffix('.')} ({', '.join(dict.fromkeys(watched.lines))})."


def sentence(condition: Condition) -> str:
    """Return the sentence of a condition: its own, or the first of its docstring.

    Names of the module's constants in braces are replaced by their values.
    """
    own = plan_conditions.SENTENCES.get(condition)
    first = own or (condition.__doc__ or "").partition("\n")[0]
    return first.format_map(vars(plan_conditions))


def _inside(text: str) -> str:
    """Return a sentence in the form it has inside another sentence."""
    return text[0].lower() + text[1:]


def _iterates(plan: Plan, facts: Facts, rows: tuple[Plan, ...]) -> Solver:
    """Return the iterates of related problems, followed by the method's."""
    if plan.related is not None:
        return _after_related(plan, facts, rows)
    if plan.method is None:
        return _iterates(choose(facts, rows), facts, rows)
    return plan.method(facts)


def _after_related(plan: Plan, facts: Facts, rows: tuple[Plan, ...]) -> Solver:
    """Yield the iterates of related problems, and of the methods that follow."""
    assert plan.related is not None, "asked for"
    o, options, start = facts.objective, facts.options, facts.start
    others = tuple(row for row in rows if row.related is not plan.related)
    method = partial(auto, options=options, rows=others)
    for related in plan.related(facts):
        found = yield from solve_related(related, method, start)
        if found is None:
            start = Start(np.zeros(o.n_params))
            break
        start = found.start
    facts = Facts(o, start, options)
    return _iterates(plan._replace(related=None), facts, others)


def _by_loop(f: Facts) -> Solver:
    return _and_at_kinks(f, small(f.objective, f.start, f.options.stopping))


def _by_newton(f: Facts) -> Solver:
    return _and_at_kinks(f, by_newton(f))


def _and_at_kinks(f: Facts, iterates: Solver) -> Solver:
    """Return iterates, continued by a method for kinks if the loss develops kinks."""
    return _until_kinks(f, iterates) if f.objective.loss.sharpens else iterates


def _until_kinks(f: Facts, iterates: Solver) -> Solver:
    """Yield iterates, followed by a method for kinks if the loss develops kinks.

    The loss has developed kinks if at most as many rows as parameters have nonzero
    second derivatives. A method with Moreau envelopes follows if the curved parts of
    the loss vanish in all rows, as for exact targets, or are so narrow that gradients
    give no useful lower bound.
    """
    o, stopping = f.objective, f.options.stopping
    width, is_kinked = 0.0, False
    iterates = to_the_end(iterates)
    for iterate in iterates:
        yield iterate
        point = iterate.point
        now = o.risk.score_scale(point.scores)
        width = max(width, now)
        is_kinked = o.risk.n_curved(point.curvature) <= o.n_params
        if is_kinked or now < kernel.SHARP * width:
            break
    else:
        if stopping.is_what_was_asked(iterate.gap, point.value):
            return Status.NO_PROGRESS
    iterates.close()
    start = Start.from_point(point)
    if is_kinked:
        method = partial(auto, options=f.options)
        found = yield from solve_related(kinked(o, stopping), method, start)
        start = start if found is None else found.start
    # The value of the loss is of the size of the residuals.
    width = first_width(o) * start.at(o).risk
    return alm(o, start, width=width)


# Related problems.


def _smaller_units(f: Facts) -> Iterable[Related]:
    return [smaller_units(f.objective, f.options.stopping)]


def _row_space(f: Facts) -> Iterable[Related]:
    return [row_space(f.objective, f.options.stopping)]


def _larger_alphas(f: Facts) -> Iterable[Related]:
    o = f.objective
    if f.l1:
        larger = roughly(o, OF_ALPHA_MAX / f.alpha_share)
        return islice(larger, MOST_LARGER if f.wide else None)
    if has_small_alpha(f):
        return larger_alphas(o, f.curvature / limits(f)[1], f.options.stopping)
    return roughly(o, f.curvature / LARGE_CURVATURE)


def _relaxed(f: Facts) -> Iterable[Related]:
    return [relaxed(f.objective, f.options.stopping)] if is_linear(f) else []


def _sample(f: Facts) -> Iterable[Related]:
    return sample(f.objective, n_sampled(f))


#: The first row that applies is taken.
PLANS = (
    Plan("smaller units", (has_large_units,), _smaller_units, None),
    Plan("one compiled loop", (is_small, has_no_small_alpha), None, _by_loop),
    Plan(
        "span of the rows",
        (has_squares, has_kinks, has_short_rows),
        _row_space,
        by_alm,
    ),
    Plan(
        "sample, proximal method of multipliers",
        (has_squares, has_kinks, has_sample),
        _sample,
        by_alm_of_sample,
    ),
    Plan("larger alphas", (holds_rows_tightly,), _larger_alphas, None),
    Plan("dual ascent", (has_squares, suits_ascent), None, by_ascent),
    Plan(
        "proximal method of multipliers",
        (has_kinks, has_envelopes),
        None,
        by_alm_for_penalty,
    ),
    Plan("Newton's method", (has_quadratic_form, is_smooth), None, _by_newton),
    Plan(
        "proximal Newton method",
        (has_norms, forms_models, needs_hessian),
        None,
        by_proximal_newton,
    ),
    Plan("coordinate descent", (has_l1, goes_by_columns), _relaxed, by_cd),
    Plan("OWL-QN", (has_l1, is_smooth), None, by_owlqn),
    Plan("block coordinate descent", (has_groups, goes_by_blocks), None, by_cd),
    Plan("accelerated proximal gradient", (has_groups, is_smooth), None, by_fista),
    # Losses of pairs of rows.
    Plan(
        "Newton's method on smooth losses that approach the hinge",
        (has_squares, narrows, needs_few_digits, is_factorized_at_once),
        None,
        by_narrowing,
    ),
    Plan("Newton's method on faces", (has_bounds, is_smooth), None, by_faces),
    # All other problems.
    Plan("bundle method", (), None, by_bundle),
)

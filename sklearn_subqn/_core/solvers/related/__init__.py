"""Related problems: easier ones, whose solutions help to solve the original.

Each file has functions from an objective to a ``Related``: another objective, and how
what is found for it, point, bound and dual point, is carried over.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import NamedTuple

from ...driver import Iterate, Solver, Start, Stopping
from ...objectives.objective import Objective

#: A method takes an objective and a start, and yields iterates.
Method = Callable[[Objective, Start], Solver]


def as_it_is(start: Start) -> Start:
    """Return the start itself."""
    return start


class Related(NamedTuple):
    """An easier problem.

    Attributes
    ----------
    objective : Objective
        Of the easier problem.
    lift : callable
        From an iterate of it, and whether it is the best one in the end, to what that
        says of the original: an iterate, or None for nothing. A product with X is
        worth while in the end only.
    is_solved : callable
        From its best point, bound and dual point so far to whether they are enough.
    max_iter : int or inf
        Limit on its iterations.
    lower : callable
        From a start of the original problem to one of it.
    """

    objective: Objective
    lift: Callable[[Iterate, bool], Iterate | None]
    is_solved: Callable[[Iterate], bool]
    max_iter: float
    lower: Callable[[Start], Start] = as_it_is


def solve_related(
    related: Related, method: Method, start: Start
) -> Generator[Iterate, None, Iterate | None]:
    """Yield what iterates of a related problem become; return the last one.

    That is the best point, bound and dual point of the original problem, or None if it
    is better to begin anew.
    """
    iterates = method(related.objective, related.lower(start))
    best = None
    for n_iter, iterate in enumerate(iterates):
        lifted = related.lift(iterate, False)
        if lifted is not None:
            yield lifted._replace(preparing=True)
        best = iterate if best is None else best.or_better(iterate)
        if related.is_solved(best) or n_iter >= related.max_iter:
            break
    iterates.close()
    assert best is not None, "a solver yields its starting point"
    lifted = related.lift(best, True)
    if lifted is not None:
        yield lifted
    return lifted


def on_the_way(stopping: Stopping) -> Callable[[Iterate], bool]:
    """Return whether gaps may end a problem on the way, as a function of iterates."""
    return lambda best: best.gap <= stopping.allowed_on_the_way(best.point.value)


def within(tol: float) -> Callable[[Iterate], bool]:
    """Return whether relative gaps are at most ``tol``, as a function of iterates."""
    rule = Stopping(tol)
    return lambda best: rule.is_reached(best.gap, best.point.value)

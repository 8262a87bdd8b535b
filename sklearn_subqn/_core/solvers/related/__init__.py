"""Related problems that are easier to solve than the original one, and give its start.

Each file has functions from an objective to a ``Related``: another objective, and a map
of its points, bounds and dual points to the original one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import NamedTuple

from ...driver import Iterate, Solver, Start, Stopping, to_the_end
from ...objectives.objective import Objective

#: A method takes an objective and a start, and yields iterates.
Method = Callable[[Objective, Start], Solver]


def as_it_is(start: Start) -> Start:
    """Return the start unchanged."""
    return start


class Related(NamedTuple):
    """An easier problem.

    Attributes
    ----------
    objective : Objective
        The objective of the easier problem.
    lift : callable
        Maps an iterate of the easier problem to one of the original problem, or to None
        if it has no use. The second argument is True for the final best iterate, for
        which alone a product with X is justified.
    is_solved : callable
        Whether the best iterate so far is accurate enough.
    max_iter : int or inf
        Limit on the iterations.
    lower : callable
        Maps a start of the original problem to one of the easier problem.
    """

    objective: Objective
    lift: Callable[[Iterate, bool], Iterate | None]
    is_solved: Callable[[Iterate], bool]
    max_iter: float
    lower: Callable[[Start], Start] = as_it_is


def solve_related(
    related: Related, method: Method, start: Start
) -> Generator[Iterate, None, Iterate | None]:
    """Yield the lifted iterates of a related problem; return the last one.

    It has the best point, bound and dual point of the original problem. None means that
    the solution gives no useful start.
    """
    iterates = to_the_end(method(related.objective, related.lower(start)))
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
    """Return a rule whether the gap of an intermediate problem is small enough."""
    return lambda best: best.gap <= stopping.allowed_on_the_way(best.point.value)


def within(tol: float) -> Callable[[Iterate], bool]:
    """Return a rule whether relative gaps are at most ``tol``."""
    rule = Stopping(tol)
    return lambda best: rule.is_reached(best.gap, best.point.value)

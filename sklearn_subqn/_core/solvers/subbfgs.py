"""Subgradient BFGS for nonsmooth convex objectives (Yu 2009, Alg. 3.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..driver import Iterate, Solver, Status
from ..losses._base import Floats
from ..objectives.objective import Dual
from ..steps.direction import descent_direction
from ..steps.intercepts import minimize_intercept
from ..steps.line_search import exact
from ..steps.quasi_newton import InverseHessian, has_curvature


def subbfgs(
    objective: Any,
    w: Floats,
    hessian: InverseHessian,
    *,
    direction_tol: float = 1e-5,
    direction_max_iter: int = 100,
    epsilon: float | None = None,
    epsilon_0: float | None = None,
    search: Callable[[Any], float] = exact,
    h: float = 1e-8,
    random: np.random.Generator | None = None,
) -> Solver:
    """Yield the iterates of subBFGS or, with a limited-memory B, of subLBFGS (3.2.5).

    Parameters
    ----------
    objective : Objective
        Offers ``at(w)``.
    w : ndarray of shape (q,)
        Starting point.
    hessian : InverseHessian
        The estimate B of the inverse Hessian, full or of limited memory.
    direction_tol, direction_max_iter : float, int
        Tolerance epsilon and limit k_max of the search for a descent direction.
        The tolerance is relative to the objective, which the source takes to be of
        size one.
    epsilon : float, optional
        An absolute tolerance in place of ``direction_tol``.
    epsilon_0 : float, optional
        That of the first search, in place of ``epsilon``.
    search : callable
        Line search, from a line to a step size.
    h : float
        What the ratio <dw, dg> / <dg, dg> has to exceed, positive (line 14).
    random : Generator, optional
        Draw the subgradient of line 12 at random where rows lie on kinks, as in section
        4.1, in place of the steepest one along the step.

    Returns
    -------
    status : str
        "no_descent": the direction search failed even with B = I, as it does at an
        optimum. "unbounded": the objective falls for ever along a line. "no_step": the
        line search could not move.

    Notes
    -----
    Line 12 of the algorithm asks for a subgradient g' at the new point with
    <s, g' - g> > 0. The steepest one along p has <p, g'> >= 0 > <p, g>.

    Where the source returns at a failed direction search (line 7), B is first set back
    to the identity: near kinks B can be so ill-conditioned that k_max is the reason.

    A free intercept is a coordinate like any other. Iterates are the points with it
    minimized over, whose cuts are balanced; the method goes on from the point that its
    line search found, since moving the intercept would leave the kink that lies there.

    Steps of subLBFGS can become ever shorter before the optimum is reached: where more
    rows lie on kinks there than B has pairs, B does not know them all, and the run
    stalls. Where it does depends on rounding. With the full matrix B it is rarer.

    The phase of an iterate contains the number of iterations of the direction search,
    if there are any, whose sum is k of Yu's Tables 4.2 and 4.3, and whether B was set
    back.
    """
    point = objective.at(w)
    yield Iterate(point, point.cut, phase="subbfgs", proof=Dual(point.dual))
    first = point
    n_iter, note = 0, ""
    while True:
        tol = direction_tol * abs(point.value) if epsilon is None else epsilon
        if point is first and epsilon_0 is not None:
            tol = epsilon_0
        direction = descent_direction(point, hessian, tol, direction_max_iter)
        n_iter += direction.n_iter
        if not direction.descends:
            if hessian.pristine:
                # At an optimum the aggregate is about zero and proves it.
                cut = point.cut_of(direction.aggregate)
                yield Iterate(point, cut, phase="subbfgs", proof=Dual(point.dual))
                return Status.NO_DESCENT
            hessian.reset()
            note = ", reset"
            continue
        line = point.along(direction.p)
        step = search(line)
        if step == float("inf"):
            return Status.UNBOUNDED
        if not step > 0.0:
            if hessian.pristine:
                return Status.NO_STEP
            hessian.reset()
            note = ", reset"
            continue
        # What many updates leave in the scores would lower the cuts.
        new = line.point(step).refreshed(at_kinks=False)
        if random is not None:
            new = new.with_random_dual(random)
        best = minimize_intercept(new)
        if best is not new:
            new.compute_gradients(best)
        dw, dg = new.w - point.w, new.gradient - point.gradient
        square = float(dg @ dg)
        if square > 0.0:
            shift = max(0.0, h - float(dw @ dg) / square)
            if shift > 0.0:
                dw += shift * dg
        if has_curvature(dw, dg):
            hessian.update(dw, dg)
        point = new
        phase = f"subbfgs: {n_iter}{note}" if n_iter or note else "subbfgs"
        n_iter, note = 0, ""
        yield Iterate(best, best.cut, phase=phase, proof=Dual(best.dual))

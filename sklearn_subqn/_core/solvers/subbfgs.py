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
        Objective with ``at(w)``.
    w : ndarray of shape (q,)
        Starting point.
    hessian : InverseHessian
        The estimate B of the inverse Hessian, full or of limited memory.
    direction_tol, direction_max_iter : float, int
        Tolerance epsilon and limit k_max of the search for a descent direction.
        The tolerance is relative to the objective; the source assumes an objective of
        about one.
    epsilon : float, optional
        An absolute tolerance in place of ``direction_tol``.
    epsilon_0 : float, optional
        Tolerance of the first search, in place of ``epsilon``.
    search : callable
        Line search, from a line to a step size.
    h : float
        Positive lower bound of the ratio <dw, dg> / <dg, dg> (line 14).
    random : Generator, optional
        Draws the subgradient of line 12 at random if rows lie on kinks, as in section
        4.1, instead of the steepest subgradient along the step.

    Returns
    -------
    status : str
        "no_descent": the direction search failed even with B = I, as it does at an
        optimum. "unbounded": the objective is unbounded below along a line. "no_step":
        the line search found no step.

    Notes
    -----
    Line 12 of the algorithm requires a subgradient g' at the new point with <s, g' - g>
    > 0. The steepest subgradient along p satisfies <p, g'> >= 0 > <p, g>.

    The source stops after a failed direction search (line 7). Here B is first reset to
    the identity, because near kinks an ill-conditioned B can make the search exceed
    k_max.

    A free intercept is a coordinate like any other. Iterates are points after
    minimization over the intercept, so their cuts are balanced. The method continues
    from the result of the line search before this minimization, since a change of the
    intercept leaves the kink at that point.

    Steps of subLBFGS can tend to zero before the optimum: if more rows lie on kinks
    than B has pairs, B cannot represent all of these kinks, and the run stalls. The
    point at which it stalls depends on rounding. With the full matrix B, stalls are
    rarer.

    The phase of an iterate contains the number of iterations of the direction search,
    if there are any, and whether B was reset. The sum of these numbers is k in Yu's
    Tables 4.2 and 4.3.
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
                # At an optimum the aggregate subgradient is about zero, and its cut
                # proves optimality.
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
        # Scores are computed anew, since accumulated rounding errors weaken the cuts.
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

"""Proximal method of multipliers on the dual: a smooth path to a certified optimum.

The nonsmooth loss is replaced by its smooth envelope around a dual center. A semismooth
Newton method minimizes the regularized envelope until the gradient is small relative to
the gap. The dual variables of the gradient then become the center, and the width
decreases. At every iterate these variables are feasible for the dual of the original
problem, and their dual value is computed with the gradient, so the gap is certified at
no additional cost.
"""

from __future__ import annotations

from ..driver import Solver, Start
from ..objectives.objective import Objective
from ..rounding import CLOSE
from .newton import NewtonSteps
from .widths import newton_in_turn

# Relative residual of conjugate gradients for Newton directions. docs/constants.md has
# the figures.
CG_ACCURACY = 0.3

# Factor of each width relative to the previous width, for losses of pairs.
_NARROWER = 0.1


def alm(
    objective: Objective,
    start: Start,
    *,
    width: float | None = None,
) -> Solver:
    """Yield the iterates of the proximal method of multipliers.

    Parameters
    ----------
    objective : Objective
        Objective whose loss has ``envelope`` and ``dual_variables``.
    start : Start
        Starting point. Its dual point is the first center; default the subgradient of
        the loss there.
    width : float, optional
        Width of the first envelope in units of scores.

    Returns
    -------
    status : str
        "no_progress": the gap no longer decreases; it is a rounding error.
    """
    # Several intercepts are part of the directions instead of being minimized over. For
    # separable classes this minimization does not converge, and balanced dual variables
    # are not a gradient of the loss.
    follows = objective.n_free <= 1
    steps = NewtonSteps(exact=False, rtol=CG_ACCURACY, follows_intercept=follows)
    return newton_in_turn(objective, start, steps, width, "alm")


def narrowing(objective: Objective, start: Start) -> Solver:
    """Yield the iterates for smooth losses of pairs with decreasing widths.

    Pairs have too many dual variables to store a center of an envelope. The center
    remains zero, and the width decreases until the gap is small enough. The slopes of
    the smooth losses are feasible dual variables.

    Parameters
    ----------
    objective : Objective
        L2-regularized objective whose loss has ``narrowed``.
    start : Start
        Starting point.

    Returns
    -------
    status : str
        "no_progress": the gap is a rounding error.
    """
    factors, steps = 5 * (_NARROWER,), NewtonSteps()
    return newton_in_turn(
        objective, start, steps, 1.0, "narrowing", factors=factors, least=CLOSE
    )

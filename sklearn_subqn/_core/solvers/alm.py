"""Proximal method of multipliers on the dual: a smooth path to a certified optimum.

The nonsmooth loss is replaced by its smooth envelope around a dual center. A semismooth
Newton method minimizes the regularized envelope until the gradient is small against the
gap; the gradient's dual variables then become the center, and the envelope narrows. At
every iterate these variables are feasible for the dual of the original problem, and
their dual value comes with the gradient, so that the gap is certified at no cost.
"""

from __future__ import annotations

from ..driver import Solver, Start
from ..objectives.objective import Objective
from ..rounding import CLOSE
from .newton import NewtonSteps
from .widths import newton_in_turn

# Newton directions by conjugate gradients leave 0.3 times the gradient.
# docs/constants.md has the figures.
CG_ACCURACY = 0.3

# The factor by which the widths of losses of pairs fall.
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
        Its loss offers ``envelope`` and ``dual_variables``.
    start : Start
        Starting point. Its dual point is the first center; default the subgradient of
        the loss there.
    width : float, optional
        Width of the first envelope in units of scores.

    Returns
    -------
    status : str
        "no_progress": the gap no longer shrinks; it is a rounding error.
    """
    # Several intercepts are left to directions: where classes are separable they do not
    # converge, and balanced dual variables are not those of a gradient.
    follows = objective.n_free <= 1
    steps = NewtonSteps(exact=False, rtol=CG_ACCURACY, follows_intercept=follows)
    return newton_in_turn(objective, start, steps, width, "alm")


def narrowing(objective: Objective, start: Start) -> Solver:
    """Yield the iterates for smooth losses of pairs of rows, of falling width.

    Their dual variables are far too many to be the center of an envelope. The center
    stays at zero instead, and the width falls until the gap is small enough; the slopes
    of the smooth loss are feasible dual variables all along.

    Parameters
    ----------
    objective : Objective
        L2-regularized; its loss offers ``narrowed``.
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

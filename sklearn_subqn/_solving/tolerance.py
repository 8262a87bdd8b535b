"""The meaning of a fit's tolerance: relative gaps, and when they are useful."""

from __future__ import annotations

import numpy as np

from .._core.arrays import Floats
from .._core.objectives.objective import Objective
from .._core.rounding import CLOSE
from .._core.solvers import Result, Stopping, size_of
from .._core.steps.line_search import rounding_of

# With solver="auto", problems of at most 20,000 entries are solved exactly, whatever
# tol is: they take milliseconds, and the result then does not depend on the order or
# repetition of rows. Losses that count rows are excluded, since they take longer and
# ignore weights. With an L1 penalty, coefficients are less accurate than the objective:
# no gap is small enough, and the solver continues until it stops changing them, or its
# gap decreases slowly. Losses with kinks are an exception, since bundle methods cannot
# end by these criteria.
SMALL = 20_000

# A small problem is solved to a relative gap of 1e-13.
_EXACT = 1e-13

# A small problem may end at a relative gap of 1e-10 if a gap of _EXACT would take many
# times longer.
NEARLY_EXACT = 1e-10

# Objectives with a relative difference below 1e-6 are treated as equal.
_SAME_OBJECTIVE = 1e-6


def stopping_of(
    objective: Objective, tol: float, infimum: float, automatic: bool
) -> Stopping:
    """Return the stopping rule for ``tol``, stricter for small problems.

    Parameters
    ----------
    objective : Objective
    tol : float
        The relative gap that the user asked for.
    infimum : float
        Lower bound of the mean loss.
    automatic : bool
        Whether the solver is chosen by the package.
    """
    loss = objective.loss
    n_rows = loss.rows_each * objective.design.n_rows
    small = n_rows * objective.n_params <= SMALL
    if not (automatic and small) or loss.counts_rows:
        return Stopping(tol, infimum=infimum)
    by_cuts = loss.joint or not loss.analytic
    exact = _EXACT if by_cuts or objective.regularizer.smooth else -1.0
    if tol <= exact:
        return Stopping(tol, infimum=infimum)
    # The bounds subtract rounding errors, which may prevent a smaller gap.
    enough = min(tol, NEARLY_EXACT) if exact > 0.0 else tol
    return Stopping(exact, enough, tol, infimum)


class Scale:
    """The denominators of gaps of an objective, and whether its features are useful.

    Parameters
    ----------
    objective : Objective

    Attributes
    ----------
    infimum : float
        The infimum of the risk if it is known, else zero. It is zero except for Poisson
        losses, for which half of the deviance remains.
    """

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        with np.errstate(all="ignore"):
            infimum = objective.risk.infimum
        self.infimum = float(infimum) if np.isfinite(infimum) else 0.0
        # The last unpenalized parameters for which J was evaluated, and J. The point
        # itself is not stored, since its scores take memory.
        self._constant: tuple[Floats, float] | None = None

    def _without_features(self, w: Floats) -> float:
        """Return J at w with zeros in place of the penalized parameters."""
        free = w[self._objective.regularizer.n_penalized :]
        if self._constant is None or not np.array_equal(self._constant[0], free):
            o, point = self._objective, self._objective.origin()
            if free.any():
                constant = np.zeros(len(w))
                constant[o.regularizer.n_penalized :] = free
                point = o.at(constant, o.risk.shifted(point.scores, free))
            self._constant = free, point.value
        return self._constant[1]

    def is_useful(self, result: Result) -> bool:
        """Whether features reduce J by at least its gap, or are proven useless.

        A weak signal reduces J by less than the tolerance, and zeros would satisfy it.
        """
        point, value = result.point, result.point.value
        least = max(_SAME_OBJECTIVE * size_of(value, self.infimum), rounding_of(point))
        if (
            result.gap <= least
            or self._objective.regularizer.center(len(point.w)).any()
        ):
            return True
        return bool(result.gap <= self._without_features(point.w) - value)

    def is_constant(self, w: Floats, value: float, gap: float) -> bool:
        """Whether J hardly changes with zeros in place of the penalized parameters."""
        objective = self._objective
        if objective.regularizer.center(len(w)).any():
            return False
        constant = self._without_features(w)
        # If all targets are equal, features cannot reduce J, and no warning is needed.
        vanishes = constant - objective.risk.infimum <= CLOSE * abs(constant)
        if vanishes and objective.risk.has_equal_targets():
            return False
        size = size_of(constant, self.infimum)
        # Features are useless if they reduce the objective by at most the gap plus
        # _SAME_OBJECTIVE times the size. A decrease of more than 0.1 % of the size is
        # useful.
        least = min(gap + _SAME_OBJECTIVE * size, 1e-3 * size)
        return constant - value <= least


def relative(gap: float, size: float) -> float:
    return gap / size if size else (0.0 if gap == 0.0 else np.inf)


def gap_between(value: float, bound: float) -> float:
    """Return value - bound, rounded up so that value - gap is at most the bound."""
    gap = max(value - bound, 0.0)
    while value - gap > bound:
        # The gap grows by the rounding error of the difference.
        gap = float(np.nextafter(gap, np.inf))
    return gap

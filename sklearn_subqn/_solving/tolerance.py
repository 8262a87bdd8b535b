"""What the tolerance of a fit means: gaps relative to what, and of what use."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .._core.objectives.objective import Objective
from .._core.rounding import CLOSE
from .._core.solvers import Result, Stopping, size_of
from .._core.steps.line_search import rounding_of

Floats = npt.NDArray[np.float64]

# With solver="auto", problems of at most 20,000 entries are solved exactly whatever tol
# is: they take milliseconds, and the result does not depend on the order or repetition
# of rows. Losses that count rows take longer and know no weights, so that they are left
# out. With an L1 penalty, coefficients are less certain than the objective: no gap is
# small enough, and the solver goes on until nothing moves any more, or its gap falls
# slowly. Losses with kinks are an exception, since solvers of cuts know no such end.
SMALL = 20_000

# A small problem is solved to a relative gap of 1e-13.
_EXACT = 1e-13

# A small problem may end at a relative gap of 1e-10 where _EXACT takes many times
# longer.
NEARLY_EXACT = 1e-10

# Two objectives are the same where they differ by less than 1e-6 of themselves.
_SAME_OBJECTIVE = 1e-6


def stopping_of(
    objective: Objective, tol: float, infimum: float, automatic: bool
) -> Stopping:
    """Return what ``tol`` means: small problems are solved as exactly as can be.

    Parameters
    ----------
    objective : Objective
    tol : float
        The relative gap that the user asks for.
    infimum : float
        What the mean loss cannot fall below.
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
    # Rounding, which bounds account for, may keep them from more than that.
    enough = min(tol, NEARLY_EXACT) if exact > 0.0 else tol
    return Stopping(exact, enough, tol, infimum)


class Scale:
    """What gaps of an objective are relative to, and what its features are for.

    Parameters
    ----------
    objective : Objective

    Attributes
    ----------
    infimum : float
        The infimum of the risk if it is known, else zero.
    """

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        infimum = objective.risk_infimum
        self.infimum = float(infimum) if np.isfinite(infimum) else 0.0
        # The last free parameters that were asked for, with their value. Scores of the
        # point would take memory.
        self._constant: tuple[Floats, float] | None = None

    def size(self, value: float) -> float:
        """Return the absolute value of J, less the infimum of the risk if known.

        That is zero except for Poisson losses: of these half the deviance is left. What
        is negligible beside J is a rounding error.
        """
        return size_of(value, self.infimum)

    def _without_features(self, w: Floats) -> float:
        """Return the value where all parameters but the free ones of w are zero."""
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
        """Whether features do most of what they can, or are proven to do nothing.

        A weak signal lowers J by less than the tolerance: zeros would be near enough.
        """
        point, value = result.point, result.point.value
        least = max(_SAME_OBJECTIVE * self.size(value), rounding_of(point))
        if (
            result.gap <= least
            or self._objective.regularizer.center(len(point.w)).any()
        ):
            return True
        return bool(result.gap <= self._without_features(point.w) - value)

    def is_constant(self, w: Floats, value: float, gap: float) -> bool:
        """Whether parameters, all but the free ones zero, would do as well as w."""
        objective = self._objective
        if objective.regularizer.center(len(w)).any():
            return False
        constant = self._without_features(w)
        # Features have nothing to do: no surprise where all targets are equal.
        vanishes = constant - objective.risk_infimum <= CLOSE * abs(constant)
        if vanishes and objective.risk.has_equal_targets():
            return False
        size = self.size(constant)
        # Features are of no use if they lower the objective by no more than its gap and
        # _SAME_OBJECTIVE of its size. A fall by over 0.1 % of the size is useful.
        least = min(gap + _SAME_OBJECTIVE * size, 1e-3 * size)
        return constant - value <= least


def relative(gap: float, size: float) -> float:
    return gap / size if size else (0.0 if gap == 0.0 else np.inf)


def gap_between(value: float, bound: float) -> float:
    """Return value - bound, or a little more: value less it is not above the bound."""
    gap = max(value - bound, 0.0)
    while value - gap > bound:
        # The gap grows by the rounding of the difference.
        gap = float(np.nextafter(gap, np.inf))
    return gap

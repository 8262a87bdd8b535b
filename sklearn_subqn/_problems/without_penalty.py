"""Features without a penalty: a tiny penalty in fits, lower bounds without it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._core.arrays import Floats, Mask
from .._core.losses._loss import offers
from .._core.objectives.free_columns import is_close, lower_bound
from .._core.objectives.objective import Objective, Point
from .._core.regularizers import PartlyFree
from .._core.solvers import Stopping
from .._solving.callbacks import FitTask
from .._solving.process import with_one_blas_thread
from .._solving.solution import Settings, Solution
from .._solving.tolerance import Scale
from .._solving.warnings import warn_of_gap
from .reading import NO_PENALTY, Reading, Run


class FreeFeatures(Reading):
    """Conversion to objectives without a penalty on some features.

    Problems are solved with a tiny penalty on these features. Lower bounds are for the
    objective without this penalty.

    Parameters
    ----------
    features : ndarray of bool, of shape (d,)
        Mask of the features without a penalty.
    n_coef : int
        Number of coefficients of all features.
    curvature : callable
        Returns the approximate second derivative of the loss of a problem, given its
        index.
    labels : list of str
        Names of the problems, for warnings.
    unit : float
        The smallest unit of the features, if none has a penalty.

    Attributes
    ----------
    coef : ndarray of bool, of shape (n_coef,)
        Mask of the coefficients without a penalty.
    """

    has_free = True

    def __init__(
        self,
        features: Mask,
        n_coef: int,
        curvature: Callable[[int], float],
        labels: list[str],
        unit: float = 1.0,
    ) -> None:
        self.coef = np.repeat(features, n_coef // len(features))
        self._curvature, self._labels = curvature, labels
        self._unit = unit

    def strength(self, index: int, alpha: float) -> float:
        if not self.coef.all():
            return alpha
        strength = NO_PENALTY * self._unit * self._unit * self._curvature(index)
        if strength == 0.0:
            raise ValueError(
                f"Fitting {self._labels[index]} broke down numerically: squares of "
                f"features of size {self._unit:.2g} vanish. Scale the features, for "
                "example by sklearn.preprocessing.MaxAbsScaler."
            )
        return strength

    def as_read(self, index: int, point: Point, bound: float) -> tuple[float, float]:
        # Subtracting the tiny penalty would suffer from cancellation.
        return point.under(self._without_free(point.objective)).value, -np.inf

    def solve(
        self, index: int, objective: Objective, settings: Settings, run: Run
    ) -> Solution:
        real = self._without_free(objective)
        rule = Stopping(
            settings.tol,
            infimum=Scale(objective).infimum,
            # The gap is relative to at least this size.
            least_size=1e-6 * abs(real.origin().value),
        )
        proofs = _Proofs(rule, real.least)
        prove = proofs.bound

        def prove_during(point: Point) -> float:
            # A lower bound without the tiny penalty is also one with it.
            return prove(point.under(real), point.dual)

        # Near the optimum, subgradients of smooth losses are good dual points.
        during = prove_during if objective.loss.smooth else None
        # If the bound without the penalty is too low, the problem is solved more
        # accurately.
        advice = "Decrease tol, or"
        for more in (1.0, 1e-2, 1e-4):
            closer = settings._replace(tol=more * settings.tol)
            # Only the first run warns if it misses its tolerance.
            others = {} if more == 1.0 else {"task": FitTask.silent()}
            solution = run(closer, prove=during, **others)
            start = solution.start
            point = start._replace(w=real.regularizer.nearest(start.w)).at(real)
            last = [] if solution.dual is None else [solution.dual]
            bound = with_one_blas_thread(prove)(point, point.dual, *last)
            proven = solution.with_proof(point.value, bound, 1.0)
            if rule.is_reached(proven.dual_gap, proven.objective):
                return proven
            # If a run missed its tolerance, it would miss a smaller one as well.
            if more == 1.0 and not solution.proven:
                return proven
            # Most losses of several scores have no lower bound but their infimum.
            loss, design = objective.loss, objective.design
            steps = design.in_one_place and offers(loss.oracle, "conjugate_near")
            if not steps and (design.several_scores or not loss.has_leeway):
                advice = "Nothing else is known of this loss without a penalty:"
                break
            if proofs.rounded:
                advice = "Rounding allows for no better proof: increase tol, or"
            if proofs.rounded or not solution.proven:
                break
        if run.warns:
            warn_of_gap(self._labels[index], proven, settings.tol, advice)
        return proven

    def _without_free(self, objective: Objective) -> Objective:
        """Return the objective without the tiny penalty on unpenalized features."""
        return objective.with_regularizer(PartlyFree(objective.regularizer, self.coef))


class _Proofs:
    """Successive lower bounds without the tiny penalty.

    Parameters
    ----------
    rule : Stopping
        The rule for the allowed gap.
    least : float
        A known lower bound.

    Attributes
    ----------
    rounded : bool
        Whether further bounds would be no better: since the last point, the objective
        changed by less than a tenth of the gap, and the gap, at most a millionth of the
        objective, did not halve. Bounds found before remain valid.
    """

    def __init__(self, rule: Stopping, least: float) -> None:
        self._rule, self._best = rule, least
        self._last = np.inf, np.inf
        self.rounded = False

    def bound(self, point: Point, *duals: Floats) -> float:
        """Return the best bound so far, including dual points near this point."""
        value = point.value
        enough = value - self._rule.allowed_gap(value)
        if self._best < enough and not self.rounded:
            found = lower_bound(point, [*duals], enough)
            self._best = max(self._best, found)
            gap, (before, at) = value - found, self._last
            moved = abs(at - value)
            stays = is_close(point, found) and 0.5 * before < gap > 10.0 * moved
            self.rounded = stays and self._best < enough
            self._last = gap, value
        return self._best

"""Features without a penalty: fits with a small one, proofs without it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from .._core.objectives.free_columns import is_close, lower_bound
from .._core.objectives.objective import Objective, Point
from .._core.regularizers import PartlyFree
from .._core.solvers import Stopping
from .._solving.callbacks import FitTask
from .._solving.process import with_one_blas_thread
from .._solving.solution import Floats, Settings, Solution, changed
from .._solving.tolerance import Scale
from .._solving.warnings import warn_of_gap
from .reading import NO_PENALTY, Reading, Run


class FreeFeatures(Reading):
    """Problems of features of which some have no penalty.

    They are solved with a small one, and their proofs are without it.

    Parameters
    ----------
    features : ndarray of bool, of shape (d,)
        Which features have no penalty.
    n_coef : int
        How many coefficients all features have.
    curvature : callable
        From the index of a problem to about the second derivative of its loss.
    labels : list of str
        Names of the problems, for warnings.
    unit : float
        The least unit of features, where none has a penalty.

    Attributes
    ----------
    coef : ndarray of bool, of shape (n_coef,)
        Which coefficients have no penalty.
    """

    has_free = True

    def __init__(
        self,
        features: npt.NDArray[np.bool_],
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
        # A difference of objectives with and without the small penalty would cancel.
        return point.under(self._without_free(point.objective)).value, -np.inf

    def solve(
        self, index: int, objective: Objective, settings: Settings, run: Run
    ) -> Solution:
        real = self._without_free(objective)
        rule = Stopping(
            settings.tol,
            infimum=Scale(objective).infimum,
            # Smaller objectives need no proof.
            least_size=1e-6 * abs(real.origin().value),
        )
        proofs = _Proofs(rule, real.least)
        prove = proofs.bound

        def prove_during(point: Point) -> float:
            # Bounds without the small penalty are bounds with it.
            return prove(point.under(real), point.dual)

        # Subgradients of smooth losses are dual points near the optimum.
        during = prove_during if objective.loss.smooth else None
        # Where the bound without the penalty is no good, the problem is solved anew.
        advice = "Decrease tol, or"
        for more in (1.0, 1e-2, 1e-4):
            closer = changed(settings, tol=more * settings.tol)
            # What a closer run misses is no concern of the user's.
            others = {} if more == 1.0 else {"task": FitTask.silent()}
            solution = run(closer, prove=during, **others)
            start = solution.start
            point = start._replace(w=real.regularizer.nearest(start.w)).at(real)
            last = [] if solution.dual is None else [solution.dual]
            bound = with_one_blas_thread(prove)(point, point.dual, *last)
            proven = solution.with_proof(point.value, bound, 1.0)
            if rule.is_reached(proven.dual_gap, proven.objective):
                return proven
            # A run that missed its tolerance misses smaller ones, too.
            if more == 1.0 and not solution.proven:
                return proven
            # Losses of several scores are known by their infimum only.
            if point.dual.ndim > 1 or not objective.loss.has_leeway:
                advice = "Nothing else is known of this loss without a penalty:"
                break
            if proofs.rounded:
                advice = "Rounding allows for no better proof: increase tol, or"
            if proofs.rounded or not solution.proven:
                break
        warn_of_gap(self._labels[index], proven, settings.tol, advice)
        return proven

    def _without_free(self, objective: Objective) -> Objective:
        """Return the objective without the small penalty of free features."""
        return objective.with_regularizer(PartlyFree(objective.regularizer, self.coef))


class _Proofs:
    """Lower bounds without the small penalty, one after the other.

    Parameters
    ----------
    rule : Stopping
        What gap is enough.
    least : float
        A lower bound that is known.

    Attributes
    ----------
    rounded : bool
        Whether further bounds would gain nothing: from the last point to this
        one, the objective changed by less than a tenth of the gap, and the gap, at most
        a millionth of the objective, did not halve. Bounds found before remain valid.
    """

    def __init__(self, rule: Stopping, least: float) -> None:
        self._rule, self._best = rule, least
        self._last = np.inf, np.inf
        self.rounded = False

    def bound(self, point: Point, *duals: Floats) -> float:
        """Return the best bound so far, of dual points near this point too."""
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

"""Features without a penalty: fits with a small one, proofs without it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from .._core.objectives.free_columns import lower_bound
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
        bounds = [real.least]

        def prove(point: Point, *duals: Floats) -> float:
            enough = point.value - rule.allowed_gap(point.value)
            if bounds[-1] < enough:
                bounds.append(max(bounds[-1], lower_bound(point, [*duals], enough)))
            return bounds[-1]

        def prove_during(point: Point) -> float:
            # Bounds without the small penalty are bounds with it.
            return prove(point.under(real), point.dual)

        # Subgradients of smooth losses are dual points near the optimum.
        during = prove_during if objective.loss.smooth else None
        # Where the bound without the penalty is no good, the problem is solved anew.
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
            if not solution.proven:
                if more == 1.0:
                    return proven
                break
            # Losses of several scores are known by their infimum only.
            if point.dual.ndim > 1 or not objective.loss.has_leeway:
                return proven
        warn_of_gap(self._labels[index], proven, settings.tol)
        return proven

    def _without_free(self, objective: Objective) -> Objective:
        """Return the objective without the small penalty of free features."""
        return objective.with_regularizer(PartlyFree(objective.regularizer, self.coef))

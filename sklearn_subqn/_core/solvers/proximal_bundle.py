"""Classical bundle methods, which stabilize by the distance from the best point.

Baselines for BMRM (Teo et al. 2010, sections 2.1 and 5.2): cuts of the whole objective
instead of the risk, and a parameter to tune.
"""

from __future__ import annotations

import numpy as np

from ..driver import Iterate, Solver, Status
from ..losses._base import Floats
from ..objectives.objective import Cut, Dual, Line, Objective, Point
from ..rounding import rounding
from ..steps.intercepts import SETTLED_GAP, minimize_intercepts
from ..steps.kept_cuts import Cuts
from ..steps.line_search import exact
from ..steps.simplex_qp import minimize_by_rows, minimize_on_simplex
from .bundle import following

# After a step that gains half of what the model promises, the next one may be longer.
_EXCELLENT = 0.5

# Steps get shorter after three null steps in a row at the earliest.
_MIN_NULL = 3

# The radius gets shorter after ten losses at the latest, whatever the cuts.
_MAX_LOSSES = 10

# With at most 100 parameters the program is solved by the rows of its cuts: in products
# of cuts, columns of small size are lost beside large ones, by which the method may end
# several percent above the optimum. The factors of a few hundred would take longer.
_FEW = 100

# The radius is met to this relative accuracy, or the model's minimum within it.
_RADIUS_TOLERANCE = 0.1


class CenteredModel:
    """The maximum of cuts of J near a center, with a quadratic penalty on the distance.

    Parameters
    ----------
    center : Point
        The best point, with its free parameters minimized over.
    """

    def __init__(self, center: Point) -> None:
        o = center.objective
        self._n = o.regularizer.n_penalized
        self._cuts = Cuts(self._n)
        self.center = center
        self.add(center)

    def add(self, point: Point) -> None:
        """Store the cut of J at a point."""
        normal = point.gradient[: self._n]
        offset = point.value - float(normal @ point.w[: self._n])
        self._cuts.add(Cut(normal, offset), normal)

    def count_idle(self) -> None:
        """Take note of the cuts that had no part in the last step, one an iteration."""
        self._cuts.count_idle()

    def error(self, point: Point) -> float:
        """Return how far below the center's value the cut of J at a point passes."""
        n = self._n
        at_center = point.value + float(
            point.gradient[:n] @ (self.center.w - point.w)[:n]
        )
        return self.center.value - at_center

    def step(self, zeta: float) -> tuple[Floats, float]:
        """Minimize the model plus zeta / 2 times the squared distance (eq. 5).

        Returns the step from the center, of shape (n_penalized,), and how far the
        minimum lies below the value at the center.
        """
        cuts = self._cuts
        heights = cuts.offsets + cuts.normals @ self.center.w[: self._n]
        heights -= self.center.value
        if self._n <= max(cuts.n_cuts, _FEW):
            rows = cuts.normals / np.sqrt(zeta)
            x = minimize_by_rows(rows, heights, cuts.multipliers)
        else:
            x = minimize_on_simplex(cuts.gram / zeta, heights, cuts.multipliers)
        cuts.multipliers = x
        normal = x @ cuts.normals
        square = float(normal @ normal)
        promise = 0.5 * square / zeta - float(x @ heights)
        return normal / -zeta, promise


def proximal_bundle(
    objective: Objective, w: Floats, *, rho: float = 0.1, zeta: float | None = None
) -> Solver:
    """Yield the iterates of the proximal bundle method with line search (Alg. 1).

    Parameters
    ----------
    objective : Objective
        With any loss, and L2.
    w : ndarray of shape (q,)
        Starting point.
    rho : float
        A step is serious if it gains this share of what the model promises.
    zeta : float, optional
        Weight of half the squared distance, constant; by default it is adapted.

    Returns
    -------
    status : str
        "no_progress": the model promises no more than rounding.

    Notes
    -----
    A given zeta makes the method that of Alg. 1, with a cut where the line search ends,
    and no other. Else zeta is halved after steps of more than one or an excellent gain,
    and doubled after three null steps, the cut of the last one passing further below
    the center than the model promised, as by Kiwiel (1990). Cuts that pass closer
    improve the model enough.
    """
    center = minimize_intercepts(objective.at(w))
    yield Iterate(center, center.cut, phase="proximal-bundle", proof=Dual(center.dual))
    model, fixed = CenteredModel(center), zeta is not None
    zeta = _first_zeta(center) if zeta is None else zeta
    n_null = 0
    while True:
        step, promise = model.step(zeta)
        model.count_idle()
        if promise <= _accuracy(center):
            return Status.NO_PROGRESS
        line = _line(center, step)
        length = exact(line)
        point = minimize_intercepts(
            line.point(length if 0.0 < length < np.inf else 1.0)
        )
        gain = center.value - point.value
        model.add(point)
        serious = gain >= rho * promise
        if serious:
            model.center = center = point
            n_null = 0
        if not fixed and serious and (length > 1.0 or gain >= _EXCELLENT * promise):
            zeta *= 0.5
        elif not (fixed or serious):
            # A cut where the search ended helps less than one at the model's minimizer.
            point = minimize_intercepts(line.point(1.0))
            n_null += 1
            if n_null >= _MIN_NULL and model.error(point) > promise:
                zeta *= 2.0
                n_null = 0
            model.add(point)
        yield Iterate(
            center, point.cut, phase="proximal-bundle", proof=Dual(center.dual)
        )


def trust_region_bundle(
    objective: Objective, w: Floats, *, rho: float = 0.1, kappa: float | None = None
) -> Solver:
    """Yield the iterates of a bundle method with a trust region (eq. 6).

    The radius follows the ratio of the gain to what the model promises, in the manner
    of Schramm and Zowe (1992): it is halved after a loss if the new cut passes further
    below the center than the model promised, and after ten losses anyway. The
    multiplier zeta of its constraint is found by bisection.

    Parameters
    ----------
    objective : Objective
        With any loss, and L2.
    w : ndarray of shape (q,)
        Starting point.
    rho : float
        As of ``proximal_bundle``.
    kappa : float, optional
        Half the squared radius, constant, which the steps meet exactly; by default it
        is adapted.

    Returns
    -------
    status : str
        "no_progress": the model promises no more than rounding.
    """
    center = minimize_intercepts(objective.at(w))
    yield Iterate(
        center, center.cut, phase="trust-region-bundle", proof=Dual(center.dual)
    )
    model = CenteredModel(center)
    zeta = _first_zeta(center)
    step, _ = model.step(zeta)
    radius = float(np.linalg.norm(step) if kappa is None else np.sqrt(2.0 * kappa))
    accuracy = _RADIUS_TOLERANCE if kappa is None else rounding(1.0)
    n_losses = 0
    while True:
        step, zeta = _step_within(model, radius, zeta, accuracy)
        # What the model itself promises, without the term of the distance.
        promise = model.step(zeta)[1] + 0.5 * zeta * float(step @ step)
        model.count_idle()
        if promise <= _accuracy(center):
            return Status.NO_PROGRESS
        point = minimize_intercepts(_line(center, step).point(1.0))
        error = model.error(point)
        model.add(point)
        gain = center.value - point.value
        n_losses = n_losses + 1 if gain < 0.0 else 0
        if kappa is not None:
            pass
        elif gain >= _EXCELLENT * promise:
            radius *= 2.0
        elif n_losses >= _MAX_LOSSES or (gain < 0.0 and error > promise):
            radius = 0.5 * min(radius, float(np.linalg.norm(step)))
            n_losses = 0
        if gain >= rho * promise:
            model.center = center = point
        yield Iterate(
            center, point.cut, phase="trust-region-bundle", proof=Dual(center.dual)
        )


def _step_within(
    model: CenteredModel, radius: float, zeta: float, accuracy: float
) -> tuple[Floats, float]:
    """Return the step to the model's minimizer within a radius, and its multiplier.

    A shorter step is enough where the radius holds back little: none within it lowers
    the model by more than zeta / 2 times its square beyond the step's own.
    """
    low, high = 0.0, np.inf
    for _ in range(60):
        step, promise = model.step(zeta)
        length = float(np.linalg.norm(step))
        if length > radius:
            low = zeta
        elif length < (1.0 - accuracy) * radius:
            high = zeta
            if 0.5 * zeta * radius**2 <= accuracy * promise:
                break
        else:
            break
        if high == np.inf:
            zeta *= 2.0
        elif low == 0.0:
            zeta *= 0.25
        else:
            zeta = float(np.sqrt(low * high))
    return step, zeta


def _accuracy(center: Point) -> float:
    """Return by how much values at points and cuts there may differ."""
    o = center.objective
    several = o.n_free > 1 and not o.loss.smooth
    return (2.0 * SETTLED_GAP if several else rounding(1.0)) * abs(center.value)


def _first_zeta(center: Point) -> float:
    """Return the zeta for which the first step promises about all of the objective."""
    g = center.gradient
    square = float(g @ g)
    return 0.5 * square / abs(center.value) if square > 0.0 and center.value else 1.0


def _line(center: Point, step: Floats) -> Line:
    """Return the line from the center along a step, free parameters following."""
    return following(center.along(np.append(step, np.zeros(center.objective.n_free))))

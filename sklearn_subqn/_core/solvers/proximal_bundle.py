"""Classical bundle methods, stabilized by the distance from the best point.

Baselines for BMRM (Teo et al. 2010, sections 2.1 and 5.2): they use cuts of the whole
objective instead of the risk, and have a parameter to tune.
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

# Steps become longer if the decrease is at least half of the predicted decrease.
_EXCELLENT = 0.5

# Steps become shorter after at least three successive null steps.
_MIN_NULL = 3

# The radius is halved after ten successive increases of the objective, for any cuts.
_MAX_LOSSES = 10

# With at most 100 parameters the quadratic program is solved from the normals of its
# cuts. In inner products of normals, large columns hide small columns, and the method
# may stop several percent above the optimum. For more parameters, QR factors are
# slower.
_FEW = 100

# Relative accuracy of the length of a step, or of the model's minimum within the
# radius.
_RADIUS_TOLERANCE = 0.1


class CenteredModel:
    """The maximum of cuts of J near a center, with a quadratic penalty on the distance.

    Parameters
    ----------
    center : Point
        The best point, after minimization over its free parameters.
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
        """Update the number of iterations since each cut was last active."""
        self._cuts.count_idle()

    def error(self, point: Point) -> float:
        """Return the linearization error at the center of the cut at ``point``."""
        n = self._n
        at_center = point.value + float(
            point.gradient[:n] @ (self.center.w - point.w)[:n]
        )
        return self.center.value - at_center

    def step(self, zeta: float) -> tuple[Floats, float]:
        """Minimize the model plus zeta / 2 times the squared distance (eq. 5).

        Returns the step from the center, of shape (n_penalized,), and the decrease from
        the value at the center to the minimum.
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
        L2-regularized objective with any loss.
    w : ndarray of shape (q,)
        Starting point.
    rho : float
        A step is serious if its decrease is at least this share of the predicted
        decrease.
    zeta : float, optional
        Constant weight of half the squared distance; by default it is adapted.

    Returns
    -------
    status : str
        "no_progress": the predicted decrease is within rounding errors.

    Notes
    -----
    With a given zeta the method is Alg. 1, with a cut at the result of the line search
    only. Otherwise zeta is halved after steps longer than one or large decreases. It is
    doubled after three null steps if the linearization error of the last cut exceeds
    the predicted decrease (Kiwiel 1990); smaller errors improve the model enough.
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
            # A cut at the model's minimizer improves the model more than a cut at the
            # result of the line search.
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

    The radius adapts to the ratio of actual and predicted decrease, similar to Schramm
    and Zowe (1992). After an increase of the objective it is halved if the
    linearization error of the new cut exceeds the predicted decrease, and after ten
    increases in any case. Bisection finds the multiplier zeta of the constraint.

    Parameters
    ----------
    objective : Objective
        L2-regularized objective with any loss.
    w : ndarray of shape (q,)
        Starting point.
    rho : float
        As in ``proximal_bundle``.
    kappa : float, optional
        Half the squared radius, constant and met exactly by steps; by default it is
        adapted.

    Returns
    -------
    status : str
        "no_progress": the predicted decrease is within rounding errors.
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
        # The predicted decrease of the model without the proximal term.
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

    A shorter step is accepted if the model at the step is close to its minimum: within
    the radius r, the model is at most zeta / 2 * r² below its value at the step.
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
    """Return the rounding error of values of points and cuts."""
    o = center.objective
    several = o.n_free > 1 and not o.loss.smooth
    return (2.0 * SETTLED_GAP if several else rounding(1.0)) * abs(center.value)


def _first_zeta(center: Point) -> float:
    """Return the zeta whose first predicted decrease is the objective."""
    g = center.gradient
    square = float(g @ g)
    return 0.5 * square / abs(center.value) if square > 0.0 and center.value else 1.0


def _line(center: Point, step: Floats) -> Line:
    """Return the line along a step, minimized over free parameters at its end."""
    return following(center.along(np.append(step, np.zeros(center.objective.n_free))))

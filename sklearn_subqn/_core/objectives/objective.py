"""The objective J(w) = alpha * Omega(w) + R(Xw), and its points and lines for solvers.

``Objective.at(w)`` gives a ``Point`` (value, subgradient, oracle, lower bound).
``Point.along(p)`` gives a ``Line`` through it at the cost of one product with X;
slopes, kinks and further points on the line need no product, except for the
subgradients of these points.
"""

from __future__ import annotations

import numpy as np

from ..lazy import cached_property
from ..losses._base import Derivatives, Floats, PiecewiseQuadratic, Rows
from ..losses._dual_loss import DualLoss
from ..regularizers import L2, ElasticNet, GroupPenalty, Regularizer
from .bounds import Bounds, Cut, Dual
from .evaluation import Evaluation
from .hessian import Hessian
from .risk import Risk

__all__ = ["Cut", "Dual", "Hessian", "Line", "Objective", "Point"]

# Scores are computed anew if their rounding errors change the objective by more than
# 1000 of its own rounding errors, which is 2e-13 of its value.
_FEW_OF_VALUE = 1e3


class Objective(Bounds):
    """J(w) = alpha * Omega(w) + R(w).

    See ``Bounds`` for the parameters.
    """

    def with_risk(self, risk: Risk) -> Objective:
        """Return the objective of another risk on the same data."""
        return Objective(risk, self.regularizer, self.alpha)

    def with_loss(self, loss: DualLoss) -> Objective:
        """Return the objective of another loss on the same data."""
        return self.with_risk(self.risk.with_loss(loss))

    def with_envelope(self, center: Floats, width: float) -> Objective:
        """Return the objective of the loss' Moreau envelope around a center."""
        return self.with_risk(self.risk.envelope(center, width))

    def narrowed(self, width: float) -> Objective:
        """Return the objective with a smooth loss near a loss of pairs with kinks."""
        return self.with_risk(self.risk.narrowed(width))

    def with_regularizer(self, regularizer: Regularizer) -> Objective:
        """Return the objective with another penalty on the same parameters."""
        return Objective(self.risk, regularizer, self.alpha)

    def with_alpha(self, alpha: float) -> Objective:
        """Return the objective with another strength of the penalty."""
        return Objective(self.risk, self.regularizer, alpha)

    @property
    def elastic_net(self) -> ElasticNet:
        """The regularizer as an ``ElasticNet``, to which L2 is converted."""
        if isinstance(self.regularizer, L2):
            return ElasticNet(self.regularizer.n_penalized, 0.0)
        if not isinstance(self.regularizer, ElasticNet):
            name = type(self.regularizer).__name__
            raise TypeError(f"The method needs an ElasticNet penalty, not {name}.")
        return self.regularizer

    @property
    def groups(self) -> GroupPenalty | None:
        """The regularizer if it has norms of groups."""
        return self.regularizer if isinstance(self.regularizer, GroupPenalty) else None

    @property
    def penalties(self) -> tuple[float, float]:
        """Factors of |w| and of w² / 2 in J, for an ``ElasticNet``."""
        ratio = self.elastic_net.l1_ratio
        return self.alpha * ratio, self.alpha * (1.0 - ratio)

    def sample(self, rows: Rows) -> Objective | None:
        """Return the objective of a subset of the rows, ascending, in this process.

        None if the subset has no weight.
        """
        part = self.risk.gathered(rows)
        total = float(part.weights.sum())
        if not total:
            return None
        return self.with_risk(part.with_weights(part.weights / total))

    def origin(self) -> Point:
        """Return the point w = 0, without a product."""
        return Point(self, np.zeros(self.n_params), self.risk.zero_scores())

    def at(
        self,
        w: Floats,
        scores: Floats | None = None,
        drift: float = 0.0,
        origin: Point | None = None,
    ) -> Point:
        """Return the point w, with one product unless w = 0 or the scores are given.

        The gradient may be an update of the gradient at ``origin``, a point on the same
        data.
        """
        if scores is None:
            scores = self.risk.forward(w) if w.any() else self.risk.zero_scores()
            drift = 0.0
        if origin is not None and origin.objective.design is not self.design:
            origin = None
        return Point(self, w, scores, origin=origin, drift=drift)


class Point(Evaluation):
    """A point w with its scores, from which lines lead to other points.

    See ``Evaluation`` for the parameters.
    """

    objective: Objective
    _origin: Point | None

    def under(self, objective: Objective) -> Point:
        """Return the same w as a point of an objective with the same data."""
        origin, drift = self.evaluated(), self.drift
        return Point(objective, self.w, self.scores, origin=origin, drift=drift)

    def refreshed(
        self, roundings: float = _FEW_OF_VALUE, *, at_kinks: bool = True
    ) -> Point:
        """Return the same w with its scores computed anew, at the cost of one product.

        The point itself is returned where the rounding errors of updated scores change
        the value by at most ``roundings`` times the value's own rounding error. If rows
        may lie on kinks or in strongly curved parts, the error bound contains the
        largest dual variables of the loss, otherwise the dual variables of the point.
        """
        if not self.drift:
            return self
        o = self.objective
        size = o.risk.size(self.dual)
        if at_kinks:
            size = max(size, o.risk.dual_scale)
        if self.drift * size <= roundings * abs(self.value):
            return self
        scores = o.risk.forward(self.w)
        return Point(o, self.w, scores, origin=self.evaluated())

    def with_random_dual(self, random: np.random.Generator) -> Point:
        """Return the point with dual variables of rows on kinks drawn at random.

        The drawn dual variable of a row is the steepest one along a random change of
        its scores, up or down: for a hinge one of the ends of its interval (Yu 2009,
        section 4.1).
        """
        if not self.n_kinks:
            return self
        o = self.objective
        if not o.design.in_one_place:
            raise TypeError("Random subgradients need all rows in one place.")
        changes = random.choice([-1.0, 1.0], size=self._kink_scores.shape)
        chosen = o.risk.argsup(self._kink_scores, changes, self.kinks)
        dual = o.risk.replaced(o.risk.subgradient(self.scores), self.kinks, chosen)
        origin = self.evaluated()
        return Point(o, self.w, self.scores, dual, origin=origin, drift=self.drift)

    def centered(self) -> Point:
        """Return the point with outputs that sum to zero, if the loss is invariant.

        The squared norm of the coefficients does not increase.
        """
        o = self.objective
        if not o.loss.invariant or not isinstance(o.regularizer, L2):
            return self
        W = self.w.reshape(-1, o.design.n_outputs or 1)
        w = (W - W.mean(axis=1, keepdims=True)).ravel()
        return Point(o, w, o.risk.centered(self.scores), drift=self.drift, before=self)

    def evaluated(self) -> Point | None:
        """Return the nearest point whose risk gradient has been computed."""
        return self if "risk_gradient" in vars(self) else self._origin

    def along(self, p: Floats) -> Line:
        """Return the line w + eta * p, at the cost of one product with X."""
        return Line(self, p, self.objective.risk.forward(p))

    def towards(self, other: Point) -> Line:
        """Return the line through another point at 1, without a product with X."""
        drift = other.drift + self.score_size + other.score_size
        dscores = self.objective.risk.difference(other.scores, self.scores)
        return Line(self, other.w - self.w, dscores, drift, -1.0)

    def shifted(self, change: Floats) -> Point:
        """Return the point after a change of the free parameters, without a product."""
        o, w = self.objective, self.w.copy()
        w[o.regularizer.n_penalized :] += change
        scores, origin = o.risk.shifted(self.scores, change), self.evaluated()
        return Point(o, w, scores, origin=origin, drift=self.drift, before=self)

    def along_free(self, direction: Floats) -> Line:
        """Return the line that changes free parameters, without a product with X."""
        o = self.objective
        p = np.zeros(o.n_params)
        p[o.regularizer.n_penalized :] = direction
        return Line(self, p, o.risk.shifted(o.risk.zero_scores(), direction))


class Line:
    """The half-line point + eta * p, eta >= 0.

    Parameters
    ----------
    point : Point
    p : ndarray of shape (q,)
    dscores : ndarray of the shape of the scores
        Xp.
    drift : float
        Accumulated size of updates in dscores, as in ``Point``.
    share : float
        Additional error of dscores, as a multiple of the drift of the point's scores.

    Attributes
    ----------
    smooth : bool
        Whether the loss is differentiable, so that J has directional derivatives only
        at kinks of the penalty.
    """

    def __init__(
        self,
        point: Point,
        p: Floats,
        dscores: Floats,
        drift: float = 0.0,
        share: float = 0.0,
    ) -> None:
        self.start = point
        self.p = p
        self.dscores = dscores
        self.smooth = point.objective.loss.smooth
        self._drift, self._share = drift, share
        self._last: tuple[float, Point] | None = None

    @property
    def is_accurate(self) -> bool:
        """Whether dscores is Xp up to a small relative error."""
        # Directions with larger rounding errors give no useful steps.
        drift = self._drift + abs(self._share) * self.start.drift
        return drift <= 1e6 * self.largest_change

    @cached_property
    def largest_change(self) -> float:
        """The largest absolute change of a score for the step 1."""
        return self.start.objective.risk.largest(self.dscores)

    @cached_property
    def restriction(self) -> PiecewiseQuadratic:
        """J(w + eta * p) as a function of eta, up to a constant."""
        o = self.start.objective
        return o.risk.restriction(self.start.scores, self.dscores, self._penalty)

    @cached_property
    def derivatives(self) -> Derivatives:
        """The function eta -> (slope, curvature) of J(w + eta * p), for a smooth J."""
        o = self.start.objective
        return self._penalty.plus(o.risk.derivatives(self.start.scores, self.dscores))

    @property
    def _penalty(self) -> PiecewiseQuadratic:
        o = self.start.objective
        if not self._is_penalized:
            return PiecewiseQuadratic.smooth(0.0, 0.0)
        return o.regularizer.restrict(self.start.w, self.p).scaled(o.alpha)

    @property
    def is_known(self) -> bool:
        """Whether slopes along the line can be computed without a new ``Point``."""
        o = self.start.objective
        return o.loss.has_lines and (o.regularizer.has_lines or not self._is_penalized)

    @property
    def _is_penalized(self) -> bool:
        """Whether any penalized parameter changes along the line."""
        return bool(self.p[: self.start.objective.regularizer.n_penalized].any())

    def value(self, step: float) -> float:
        """Return J(w + step * p)."""
        return self._at(step).value

    def slope(self, step: float) -> float:
        """Return the directional derivative at ``step``: the sup of <g, p>.

        If the loss has no function on lines, <g, p> is computed from its subgradient at
        the point.
        """
        if not self.is_known:
            return self.slope_of(self._at(step))
        return (
            self.derivatives(step)[0]
            if self.smooth
            else self.restriction.slope_at(step)
        )

    def slope_of(self, point: Point) -> float:
        """Return the slope along p of the subgradient at a point of the line."""
        o = self.start.objective
        penalty = o.alpha * float(o.regularizer.gradient(point.w) @ self.p)
        return penalty + o.risk.inner(point.dual, self.dscores)

    def point(self, step: float, *, balanced: bool = False) -> Point:
        """Return the point at ``step``.

        If rows lie on a kink, the dual is the steepest one along p (the argsup), so
        that <g, p> is the right-hand slope. With ``balanced``, at a minimizer along p,
        the dual is the convex combination of the steepest duals along p and -p for
        which <g, p> = 0.
        """
        o = self.start.objective
        point, risk = self._at(step), o.risk
        if point.n_kinks:
            rows, scores = point.kinks, point._kink_scores
            dscores = risk.take(self.dscores, rows)
            right = risk.argsup(scores, dscores, rows)
            dual = risk.subgradient(point.scores)
            if balanced:
                left = risk.argsup(scores, risk.scaled(-1.0, dscores), rows)
                jump = risk.inner(risk.difference(right, left), dscores)
                rest = risk.replaced(dual, rows, 0.0)
                penalty = o.alpha * float(o.regularizer.gradient(point.w) @ self.p)
                slope = penalty + risk.inner(rest, self.dscores)
                slope += risk.inner(right, dscores)
                share = min(max(slope / jump, 0.0), 1.0) if jump > 0.0 else 0.0
                right = risk.moved(right, share, risk.difference(left, right))
            point.dual = risk.replaced(dual, rows, right)
        return point

    def _at(self, step: float) -> Point:
        start = self.start
        if self._last is not None and self._last[0] == step:
            return self._last[1]
        drift = abs(1.0 + step * self._share) * start.drift + step * self._drift
        point = Point(
            start.objective,
            start.w + step * self.p,
            start.objective.risk.moved(start.scores, step, self.dscores),
            origin=start.evaluated(),
            drift=drift,
            before=start,
        )
        if self.smooth or not start.objective.loss.has_lines:
            # Value and slope at a trial step and the next point share one evaluation.
            self._last = step, point
        return point

"""The objective J(w) = alpha * Omega(w) + R(Xw), and its door for solvers.

``Objective.at(w)`` gives a ``Point`` (value, subgradient, oracle, lower bound),
``Point.along(p)`` a ``Line`` through it: one product with X, after which slopes, kinks
and further points at any step size touch X no more, but for the subgradient there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .design import Design
from .lazy import cached_property
from .losses._base import (
    EPS,
    Curvature,
    Derivatives,
    Floats,
    PiecewiseQuadratic,
    Rows,
    rounding,
)
from .losses._loss import Loss
from .regularizers import L2, ElasticNet, Regularizer
from .risk import Risk
from .sampling import thinned

# Gradients of the risk are updated by the rows whose dual variable changed; every so
# often they are computed anew, so that rounding errors do not add up.
_MAX_UPDATES = 30

# Gradients with so many rounding errors are not worth a product: it has some itself.
# They have more where dual variables were much larger.
_FEW_ROUNDINGS = 100.0

# Nor are scores whose rounding errors change the objective by so many of its own at
# most, 2e-13 of itself.
_FEW_OF_VALUE = 1e3

# Directions whose scores have more rounding errors than that lead nowhere.
_MANY_ROUNDINGS = 1e6

# A minimizer over a free parameter leaves it this much of the slopes on either side.
_BALANCE_TOLERANCE = 1e-15

# A dual point that would have to change by more than this share of itself for its free
# parameters to vanish proves nothing.
_MOST_IMBALANCED = 1e-3

# One that would have to change by less is as good as balanced.
_NEARLY_BALANCED = 1e-12

# What rounding costs matters where it is more than this share of a bound.
_LITTLE = 1e-10

# Sums over parameters are made of so many at a time, which stay in a core's cache.
_BLOCK = 1 << 14


class Cut(NamedTuple):
    """A linear lower bound of the risk: R(w) >= <a, w> + offset for every w.

    The exact normal a is known up to rounding: each |a_j - normal_j| is at most
    ``error``, and |a_j| at most ``norm``, times the root mean square of the column
    (``Objective.column_sizes``). Where the normal is zero in free parameters, a is so
    exactly.
    """

    normal: Floats
    offset: float
    error: float = 0.0
    norm: float = 0.0

    def is_balanced(self, n_penalized: int) -> bool:
        """Whether the bound does not depend on the free parameters."""
        return not self.normal[n_penalized:].any()

    @classmethod
    def mixed(cls, shares: Floats, normals: Floats, others: Floats) -> Cut:
        """Return the combination of cuts whose shares sum to one, up to rounding.

        Parameters
        ----------
        shares : ndarray of shape (m,)
        normals : ndarray of shape (m, q)
        others : ndarray of shape (m, 3)
            Offsets, errors and norms.
        """
        offset, error, norm = (float(x) for x in shares @ others)
        share = rounding(len(shares))
        offset -= share * float(shares @ np.abs(others[:, 0]))
        return cls(shares @ normals, offset, error + share * norm, norm)


class Dual(NamedTuple):
    """A dual point u of the risk, and what is known of it.

    Mixtures of dual points are dual points, of no larger R* than the mixture of theirs.

    Attributes
    ----------
    u : ndarray of the shape of the scores, or what the risk has for it
        In the domain of R* up to rounding.
    normal : ndarray of shape (q,), optional
        Xᵀu.
    offset : float, optional
        -R*(u) where the loss knows it at the scores of u only, less its rounding
        errors; or that of a mixture.
    error : float
        Further errors of ``normal``, in units of ``column_sizes``.
    norm : float, optional
        The root of sum_i u_i² / s_i.
    imbalance : float, optional
        The share by which u has to change for its columns to sum to zero, as free
        intercepts ask for.
    """

    u: Any
    normal: Floats | None = None
    offset: float | None = None
    error: float = 0.0
    norm: float | None = None
    imbalance: float | None = None

    @classmethod
    def mixed(cls, risk: Risk, share: float, one: Dual, other: Dual) -> Dual:
        """Return (1 - share) * one + share * other, of known offsets."""
        assert one.offset is not None, "known"
        assert other.offset is not None, "known"
        offsets = np.array([one.offset, other.offset])
        shares = np.array([1.0 - share, share])
        offset = float(shares @ offsets)
        offset -= rounding(2.0) * float(shares @ np.abs(offsets))
        u = risk.moved(risk.scaled(1.0 - share, one.u), share, other.u)
        return cls(u, offset=offset)


class Objective:
    """J(w) = alpha * Omega(w) + R(w).

    Parameters
    ----------
    risk : Risk
        The convex function R of scores Xw.
    regularizer : Regularizer
        The convex function Omega of parameters.
    alpha : float
        Strength of the regularizer, positive.

    Attributes
    ----------
    design, loss, targets, weights
        Those of the risk.
    """

    def __init__(self, risk: Risk, regularizer: Regularizer, alpha: float) -> None:
        self.risk = risk
        self.regularizer = regularizer
        self.alpha = alpha

    @property
    def design(self) -> Design:
        return self.risk.design

    @property
    def loss(self) -> Loss:
        return self.risk.loss

    @property
    def targets(self) -> Any:
        return self.risk.targets

    @property
    def weights(self) -> Floats:
        return self.risk.weights

    @property
    def n_params(self) -> int:
        """Number q of parameters."""
        return self.design.n_params

    @property
    def n_free(self) -> int:
        """Number of parameters that the regularizer leaves free, the last ones."""
        return self.n_params - self.regularizer.n_penalized

    @property
    def passes(self) -> float:
        """Products with X or its transpose so far."""
        return self.design.passes

    @property
    def risk_infimum(self) -> float:
        """The infimum of the risk over all scores, -R*(0), or a little less."""
        return self.risk.infimum

    @property
    def least(self) -> float:
        """A lower bound of J that costs nothing: by the infima of risk and penalty."""
        return self.dual_value(Cut(np.zeros(self.n_params), self.risk_infimum))

    def with_risk(self, risk: Risk) -> Objective:
        """Return the objective of another risk on the same data."""
        return Objective(risk, self.regularizer, self.alpha)

    def with_loss(self, loss: Loss) -> Objective:
        """Return the objective of another loss on the same data."""
        return self.with_risk(self.risk.with_loss(loss))

    def with_envelope(self, center: Floats, width: float) -> Objective:
        """Return the objective of the loss' Moreau envelope around a center."""
        return self.with_risk(self.risk.envelope(center, width))

    def with_regularizer(self, regularizer: Regularizer) -> Objective:
        """Return the objective with another penalty of the same parameters."""
        return Objective(self.risk, regularizer, self.alpha)

    def with_alpha(self, alpha: float) -> Objective:
        """Return the objective of another penalty on the same data."""
        return Objective(self.risk, self.regularizer, alpha)

    @property
    def elastic_net(self) -> ElasticNet:
        """The regularizer, for methods that need an ``ElasticNet``."""
        if not isinstance(self.regularizer, ElasticNet):
            name = type(self.regularizer).__name__
            raise TypeError(f"The method needs an ElasticNet penalty, not {name}.")
        return self.regularizer

    @property
    def penalties(self) -> tuple[float, float]:
        """Factors of |w| and of w² / 2 in J, for an ``ElasticNet``."""
        ratio = self.elastic_net.l1_ratio
        return self.alpha * ratio, self.alpha * (1.0 - ratio)

    def sample(self, rows: Rows) -> Objective | None:
        """Return the objective of some of the rows, in ascending order, in one place.

        None if they have no weight.
        """
        part = self.risk.gathered(rows)
        total = float(part.weights.sum())
        if not total:
            return None
        return self.with_risk(part.with_weights(part.weights / total))

    def origin(self) -> Point:
        """Return the point w = 0, at no cost."""
        return Point(self, np.zeros(self.n_params), self.risk.zero_scores())

    def at(
        self,
        w: Floats,
        scores: Floats | None = None,
        drift: float = 0.0,
        origin: Point | None = None,
    ) -> Point:
        """Return the point w, for a product with X unless w = 0 or scores are known.

        Of points near by on the same data the gradient may be updated.
        """
        if scores is None:
            scores = self.risk.forward(w) if w.any() else self.risk.zero_scores()
            drift = 0.0
        if origin is not None and origin.objective.design is not self.design:
            origin = None
        point = Point(self, w, scores, origin=origin)
        point.drift = drift
        return point

    @property
    def column_sizes(self) -> Floats:
        """Weighted root mean squares of the columns, of shape (n_penalized,)."""
        return self.risk.column_sizes[: self.regularizer.n_penalized]

    @property
    def row_size(self) -> float:
        """Root of the sum of the squares of all ``column_sizes``."""
        return self.risk.row_size

    def imbalance(self, dual: Floats) -> float:
        """Return the share by which u has to change for its columns to sum to zero.

        So that u proves a bound where intercepts are free.
        """
        if not self.n_free:
            return 0.0
        # Rounding of these sums is accounted for with that of all others.
        return self.risk.imbalance(dual, self.risk.column_sums(dual))

    def cut(self, dual: Dual) -> Cut:
        """Return the cut of a dual point u, less all that it lacks of being one.

        All bounds are made of such cuts. What rounding has done to u, to its product
        with X and to its conjugate is accounted for by the size of what was summed. And
        so is how far u is from being balanced in free parameters: a balanced point of
        the domain lies within a share of it, of no larger conjugate but for that share.
        """
        risk, (u, normal, offset, error, norm, share) = self.risk, dual
        share = self.imbalance(u) if share is None else share
        is_balanced = share <= _MOST_IMBALANCED
        share = (share if is_balanced else 0.0) + rounding(risk.n_scored)
        if offset is None:
            height, size = risk.conjugate_and_size(u)
        else:
            height, size = -offset, abs(offset) + risk.conjugate_rest(u)
        offset = -height - share * size
        if normal is None:
            normal = risk.adjoint(u)
        if self.n_free and is_balanced:
            normal = normal.copy()
            normal[self.regularizer.n_penalized :] = 0.0
        norm = risk.dual_norm(u) if norm is None else norm
        return Cut(normal, offset, error + share * norm + risk.distance(u), norm)

    def dual_value(self, cut: Cut) -> float:
        """Return min_w alpha * Omega(w) + <a, w> + offset, a lower bound of J.

        It is -inf unless the cut is balanced in the free parameters. With an L1 penalty
        the cut is mixed with the trivial one R >= inf R as far as the conjugate asks
        for. Rounding errors are accounted for: the bound is one as computed.
        """
        if not cut.is_balanced(self.regularizer.n_penalized):
            return -np.inf
        if isinstance(self.regularizer, L2):
            return self._less(cut.offset, self._half_square(cut))
        v, radius = self._conjugate_point(cut)
        bound = self._less(cut.offset, self.regularizer.conjugate_within(v, radius))
        scale = self.regularizer.scaling(np.abs(v) + radius)
        if scale < 1.0:
            rest = (1.0 - scale) * self.risk_infimum
            bound = max(bound, self._less(scale * cut.offset + rest, 0.0))
        return bound

    def dual_bound(self, dual: Dual) -> float:
        """Return a dual value of u: no J is smaller.

        It is the better one of u itself and of u scaled down as the conjugate of the
        regularizer asks for.
        """
        # The L1 norm has a conjugate, zero, of small enough normals only.
        is_norm = isinstance(self.regularizer, ElasticNet) and (
            self.regularizer.l1_ratio == 1.0
        )
        offset = self.risk.at_zero if is_norm else None
        cut = self.cut(dual._replace(offset=offset))
        bound = -np.inf if is_norm else self.dual_value(cut)
        if isinstance(self.regularizer, L2):
            return bound
        v, radius = self._conjugate_point(cut)
        scale = self.regularizer.scaling(np.abs(v) + radius)
        if 0.0 < scale < 1.0 or is_norm:
            u, normal = self.risk.scaled(scale, dual.u), scale * cut.normal
            error, norm = scale * dual.error, scale * cut.norm
            cut = self.cut(Dual(u, normal, None, error, norm, dual.imbalance))
            bound = max(bound, self.dual_value(cut))
        return bound

    def _half_square(self, cut: Cut) -> float:
        """Return the largest ||a||² / (2 alpha²) of penalized entries, or more.

        By the length of their errors, or where that is no small matter by the columns:
        those of different scale may have less.
        """
        normal = cut.normal[: self.regularizer.n_penalized]
        length = float(np.sqrt(normal @ normal)) * (1.0 + rounding(len(normal)))
        error = cut.error * self.row_size if cut.error else 0.0
        value = abs(cut.offset) + 0.5 * length * length / self.alpha
        more = error * (2.0 * length + error) if error else 0.0
        if more > _LITTLE * value * self.alpha:
            sizes, product = self.column_sizes, 0.0
            # Without temporary arrays of all parameters, which take most of the time.
            for a in range(0, len(normal), _BLOCK):
                part = np.abs(normal[a : a + _BLOCK]) @ sizes[a : a + _BLOCK]
                product += float(part)
            product *= 2.0 * cut.error * (1.0 + rounding(len(normal)))
            more = min(more, product + error * error)
        return 0.5 * (length * length + more) / self.alpha / self.alpha

    def _conjugate_point(self, cut: Cut) -> tuple[Floats, Floats]:
        """Return -a / alpha of shape (n_penalized,), and how far off each entry is."""
        normal, offset, error, _ = cut
        v = normal[: self.regularizer.n_penalized] / -self.alpha
        size = np.abs(v)
        radius = 4.0 * EPS * size
        if error:
            # Bounds far below zero need no accuracy.
            value = abs(offset) + self.alpha * float(size @ size)
            sizes = self.sizes_for(size + radius, error, value)
            radius += error / self.alpha * sizes
        return v, radius

    def sizes_for(self, w: Floats, factor: float, value: float) -> Floats | float:
        """Return sizes of columns, of which ``factor`` times |w| bounds the error.

        The size of the rows will do, at less cost, where that is next to nothing
        against a value.
        """
        if factor * self.row_size * float(np.abs(w).sum()) <= _LITTLE * abs(value):
            return self.row_size
        return self.column_sizes

    def _less(self, offset: float, conjugate: float) -> float:
        """Return offset - alpha * conjugate, or a little less for rounding."""
        penalty = self.alpha * conjugate
        return offset - penalty - rounding(self.n_params) * (abs(offset) + abs(penalty))


class Point:
    """A point w with its scores; everything else is computed when first asked for.

    Parameters
    ----------
    objective : Objective
    w : ndarray of shape (q,)
    scores : ndarray of shape (n,) or (n, k)
        Xw.
    dual : ndarray of the shape of scores, optional
        The subgradient of the risk at ``scores`` to use; default the loss' own choice.
    origin : Point, optional
        A point near by, whose risk gradient may be updated to that of this one.
    drifted : float, optional
        Drift of the scores that these are an update of, and the largest one; default a
        product.

    Attributes
    ----------
    value, risk : float
        J(w) and R(Xw).
    kinks : ndarray of int
        Rows in which the loss is not differentiable.
    risk_gradient : ndarray of shape (q,)
        Xᵀu for the dual u, a subgradient of w -> R(Xw).
    gradient : ndarray of shape (q,)
        The subgradient of J that belongs to u.
    cut : Cut
        The lower bound of the risk that touches it here; with several free parameters
        one near it that is balanced in them.
    lower_bound : float
        The dual value of u: no J is smaller.
    mixture : Dual or None
        The dual u, where it is no subgradient but a mixture of some near by.
    gradient_error : float
        What updates have left in ``risk_gradient``, in units of the column sizes.
    """

    def __init__(
        self,
        objective: Objective,
        w: Floats,
        scores: Floats,
        dual: Floats | None = None,
        origin: Point | None = None,
        drifted: float | None = None,
    ) -> None:
        self.objective = objective
        self.w = w
        self.scores = scores
        self._drifted = drifted
        if dual is not None:
            self.dual = dual
        self._origin = origin
        self._n_updates = 0
        self.gradient_error = 0.0
        self._slack = self._norm = 0.0
        self.mixture: Dual | None = None

    @cached_property
    def value(self) -> float:
        o = self.objective
        return o.alpha * o.regularizer.value(self.w) + self.risk

    @cached_property
    def risk(self) -> float:
        o = self.objective
        if o.loss.has_lines or "dual" in vars(self):
            return o.risk.value(self.scores)
        risk, self.dual = o.risk.evaluate(self.scores)
        return risk

    @cached_property
    def kinks(self) -> Rows:
        return self.objective.risk.kinks(self.scores)

    @property
    def n_kinks(self) -> int:
        """Number of rows in which the loss is not differentiable."""
        risk = self.objective.risk
        return 0 if risk.loss.smooth else risk.length(self.kinks)

    @cached_property
    def dual(self) -> Floats:
        o = self.objective
        if o.loss.has_lines or "risk" in vars(self):
            return o.risk.subgradient(self.scores)
        self.risk, dual = o.risk.evaluate(self.scores)
        return dual

    @cached_property
    def risk_gradient(self) -> Floats:
        origin, self._origin = self._origin, None
        risk = self.objective.risk
        if origin is not None and origin._n_updates < _MAX_UPDATES:
            change = risk.difference(self.dual, origin.dual)
            share = rounding(risk.n_scored)
            # The change is no longer than both together.
            error = origin.gradient_error + share * (2.0 * origin.norm + self.norm)
            most = _FEW_ROUNDINGS * share * self.norm
            if error <= most and risk.has_fewer(change, self.dual):
                self._n_updates = origin._n_updates + 1
                self.gradient_error = error
                return origin.risk_gradient + risk.adjoint(change)
        return risk.adjoint(self.dual)

    @cached_property
    def norm(self) -> float:
        """The root of sum_i u_i² / s_i of the dual u."""
        return self.objective.risk.dual_norm(self.dual)

    @cached_property
    def gradient(self) -> Floats:
        o = self.objective
        gradient = o.regularizer.gradient(self.w)
        gradient *= o.alpha
        gradient += self.risk_gradient
        return gradient

    @cached_property
    def dual_point(self) -> Dual:
        """The dual u, and what is known of it."""
        known = self.mixture or Dual(self.dual)
        share = known.imbalance
        return known._replace(
            normal=self.risk_gradient,
            error=self.gradient_error,
            norm=self.norm,
            imbalance=self.objective.imbalance(self.dual) if share is None else share,
        )

    @cached_property
    def cut(self) -> Cut:
        o, dual = self.objective, self.dual_point
        assert dual.imbalance is not None, "known"
        if o.n_free > 1 and dual.imbalance > _NEARLY_BALANCED:
            balanced = o.risk.balance(dual.u)
            if balanced is not dual.u:
                return o.cut(Dual(balanced))
        if dual.offset is None and o.risk.knows_subgradients_only:
            error = dual.error + o.risk.distance_at(dual.u, self.scores)
            dual = dual._replace(offset=self._offset, error=error)
        return o.cut(dual)

    @property
    def _offset(self) -> float:
        """The risk's height -R*(u) at the origin along the subgradient u."""
        o = self.objective
        if o.loss.tells_rounding:
            # By the equality of Fenchel and Young, and no higher than rounding allows.
            height = self.risk - o.risk.inner(self.dual, self.scores)
            return height - o.risk.rounding(self.scores)
        return -o.risk.conjugate_at(self.dual, self.scores)

    def cut_of(self, gradient: Floats) -> Cut:
        """Return the cut of a combination of ``gradient`` and what ``steepest`` gave.

        It touches the risk here if rows lie on kinks exactly, and is lower by what they
        lack of that: they only have to lie near them.
        """
        o = self.objective
        penalty = o.alpha * o.regularizer.gradient(self.w)
        normal = gradient - penalty
        own = self._slack_of(o.risk.take(self.dual, self.kinks))
        slack = max(self._slack, own)
        n = o.regularizer.n_penalized
        share, norm = 0.0, max(self._norm, self.norm)
        if o.n_free:
            # A little of u itself, changed much, makes up for what is left.
            share = o.risk.imbalance(self.dual, normal[n:])
            if share <= _MOST_IMBALANCED:
                normal[n:] = 0.0
        length = o.risk.n_scored
        share = min(share, 1.0) + rounding(length)
        # Scores are off by rounding, and so are the risk and products with w.
        sizes = np.abs(normal)
        sizes[:n] += norm * o.sizes_for(
            self.w[:n], rounding(o.n_params) * norm, self.risk
        )
        terms = float(np.abs(self.w) @ sizes) + self.risk
        terms += o.risk.inner_size(self.dual, self.scores)
        slack += rounding(o.n_params + length) * terms + share * terms
        slack += rounding(o.n_params) * self.drift * o.risk.size(self.dual)
        # The difference of gradients is off by rounding of either. Times another w that
        # is at most that of both penalties, of which one is rounded anyway.
        slack += 2.0 * EPS * float(np.abs(penalty) @ np.abs(self.w))
        offset = self.risk - float(normal @ self.w) - slack
        return Cut(normal, offset, share * 2.0 * norm, norm)

    def _slack_of(self, dual: Floats) -> float:
        """Return R(z) + R*(u) - <u, z> for rows on kinks, zero for a subgradient u."""
        if not self.n_kinks:
            return 0.0
        return self.objective.risk.slack(dual, self._kink_scores, self.kinks)

    @cached_property
    def _kink_scores(self) -> Floats:
        return self.objective.risk.take(self.scores, self.kinks)

    @cached_property
    def lower_bound(self) -> float:
        o = self.objective
        if o.regularizer.smooth or o.risk.knows_subgradients_only:
            return o.dual_value(self.cut)
        return o.dual_bound(self.dual_point)

    def steepest(self, p: Floats) -> Floats:
        """Return argsup <g, p> over the subdifferential of J, of shape (q,).

        Only rows on a kink have a choice (Yu 2009, section 3.3.1), so that the cost is
        two products with those.
        """
        if not self.n_kinks:
            return self.gradient
        risk, some, rows = self.objective.risk, self._kink_risk, self.kinks
        chosen = risk.argsup(self._kink_scores, some.forward(p), rows)
        self._slack = max(self._slack, self._slack_of(chosen))
        norms = self.norm, risk.dual_norm(chosen, rows)
        self._norm = max(self._norm, float(np.hypot(*norms)))
        change = some.adjoint(some.difference(chosen, risk.take(self.dual, rows)))
        risk.count(some, 2.0)
        return self.gradient + change

    def under(self, objective: Objective) -> Point:
        """Return the same w as a point of an objective with the same data."""
        point = Point(objective, self.w, self.scores, origin=self.evaluated())
        point.drift = self.drift
        return point

    @cached_property
    def drift(self) -> float:
        """Sum of the sizes of all updates since the scores were a product with X.

        That of an update is the largest score before and that after it: the change is
        no larger than both. Updates leave so many roundings of the number one, times
        few, and with features that are summed as many as a product has.
        """
        return 0.0 if self._drifted is None else self._drifted + self.largest_score

    @cached_property
    def largest_score(self) -> float:
        """The largest magnitude of a score."""
        return self.objective.risk.largest(self.scores)

    def refreshed(
        self, roundings: float = _FEW_OF_VALUE, *, at_kinks: bool = True
    ) -> Point:
        """Return the same w with its scores computed anew, at the cost of a product.

        It returns itself where what updates have left in the scores changes the value
        by so many of its rounding errors at most. Where rows may lie on kinks, or bend,
        dual variables are as large as those of the loss, and else those here.
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

    def centered(self) -> Point:
        """Return the point whose outputs sum to zero, if the loss stays the same.

        The squares of the coefficients can but become less.
        """
        o = self.objective
        if not o.loss.invariant or not isinstance(o.regularizer, L2):
            return self
        W = self.w.reshape(-1, o.design.n_outputs or 1)
        w = (W - W.mean(axis=1, keepdims=True)).ravel()
        drifted = self.drift + self.largest_score
        return Point(o, w, o.risk.centered(self.scores), drifted=drifted)

    def evaluated(self) -> Point | None:
        """Return the nearest point whose risk gradient has been computed."""
        return self if "risk_gradient" in vars(self) else self._origin

    @cached_property
    def curvature(self) -> Curvature:
        """Second derivatives of the loss, for losses that have them."""
        return self.objective.risk.curvature(self.scores)

    @property
    def hessian(self) -> Hessian:
        """The generalized Hessian of J here, for losses that have one."""
        return Hessian(self, self.curvature)

    def sampled_hessian(self, stride: int) -> Hessian:
        """Return an estimate of it by every so many rows, for one score per row."""
        if stride == 1:
            return self.hessian
        return Hessian(self, thinned(self.curvature, stride))

    @cached_property
    def _kink_risk(self) -> Risk:
        return self.objective.risk.of_rows(self.kinks)

    def along(self, p: Floats) -> Line:
        """Return the line w + eta * p, at the cost of one product with X."""
        return Line(self, p, self.objective.risk.forward(p))

    def towards(self, other: Point) -> Line:
        """Return the line through another point at 1; X takes no part."""
        drift = other.drift + self.largest_score + other.largest_score
        dscores = self.objective.risk.difference(other.scores, self.scores)
        return Line(self, other.w - self.w, dscores, drift, -1.0)

    def along_free(self, direction: Floats) -> Line:
        """Return the line that moves the free parameters only; X takes no part."""
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
        As of ``Point``, of dscores.
    share : float
        Further errors of dscores, as a multiple of those of the point's scores.
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
        self._drift, self._share = drift, share
        self._last: tuple[float, Point] | None = None

    @property
    def is_accurate(self) -> bool:
        """Whether dscores are Xp, up to a small share: not only rounding errors."""
        drift = self._drift + abs(self._share) * self.start.drift
        return drift <= _MANY_ROUNDINGS * self.largest_change

    @cached_property
    def largest_change(self) -> float:
        """The largest magnitude of a change of a score, for the step 1."""
        return self.start.objective.risk.largest(self.dscores)

    @cached_property
    def restriction(self) -> PiecewiseQuadratic:
        """J(w + eta * p) as a function of eta, up to a constant."""
        o = self.start.objective
        penalty = self._penalty
        return penalty + o.risk.restrict(self.start.scores, self.dscores)

    @cached_property
    def derivatives(self) -> Derivatives:
        """The function eta -> (slope, curvature) of J(w + eta * p), for smooth J."""
        o = self.start.objective
        penalty = self._penalty
        risk = o.risk.derivatives(self.start.scores, self.dscores)

        def at(step: float) -> tuple[float, float]:
            slope, curvature = risk(step)
            return (
                penalty.slope_at(step) + slope,
                penalty.curvature + curvature,
            )

        return at

    @property
    def _penalty(self) -> PiecewiseQuadratic:
        o = self.start.objective
        if not self._is_penalized:
            return PiecewiseQuadratic.smooth(0.0, 0.0)
        return o.regularizer.restrict(self.start.w, self.p).scaled(o.alpha)

    @property
    def smooth(self) -> bool:
        """Whether the loss is differentiable, so that J has one-sided derivatives."""
        return self.start.objective.loss.smooth

    @property
    def is_known(self) -> bool:
        """Whether the slopes along the line are known without a ``Point`` at each."""
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
        """Return the directional derivative at ``step``, sup of the subdifferential.

        Where slopes are not known, that of the loss' own subgradient there.
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

        Where rows lie on a kink its dual is the steepest along p (the argsup), so that
        its gradient g has <g, p> equal to the slope to the right. With ``balanced``, at
        a minimizer along p, it is the combination of both extremes with <g, p> = 0.
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
            dual = risk.replaced(dual, rows, right)
            point.dual = dual
        elif balanced and self.smooth:
            self._level_rounding(point)
        return point

    def _level_rounding(self, point: Point) -> None:
        """Remove what rounding has left of the slope at a minimizer along p.

        Where a smooth loss bends sharply, the nearest numbers to the minimizing step
        leave much. Dual variables of the heavier side shrink a little, which keeps them
        feasible; those of rows with curvature, if possible, as a step would move them.
        """
        o, risk = self.start.objective, self.start.objective.risk
        products = risk.products(point.dual, self.dscores)
        penalty = o.alpha * float(o.regularizer.gradient(point.w) @ self.p)
        total, size = risk.total_and_size(products)
        excess = penalty + float(total)
        if abs(excess) <= _BALANCE_TOLERANCE * size:
            return
        for curvature in (point.curvature, None):
            side = risk.side(products, excess, curvature)
            total = risk.total(products, side)
            if abs(total) >= abs(excess) * (1.0 - _BALANCE_TOLERANCE):
                left = 1.0 - excess / total
                # Of all there is on one side, nothing is left, not even its rounding.
                left = left if left > _BALANCE_TOLERANCE else 0.0
                point.dual = risk.shrunk(point.dual, side, left)
                return

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
            drifted=drift + start.largest_score,
        )
        if not start.objective.loss.has_lines:
            # Value and slope of a trial, and the next point, are of one evaluation.
            self._last = step, point
        return point


class Hessian:
    """alpha * Omega'' + R'' at a point.

    Parameters
    ----------
    point : Point
    curvature : Curvature
        Second derivatives of the loss there.

    Attributes
    ----------
    risk : RiskHessian
        R''.
    n_free : int
        Number of intercepts.
    """

    def __init__(self, point: Point, curvature: Curvature) -> None:
        o = point.objective
        self.risk = o.risk.hessian(curvature)
        self.n_free = o.n_free
        self._design = o.design
        self._penalty = o.alpha * o.regularizer.curvature(point.w)

    @property
    def n_rows(self) -> int:
        """Number of rows with curvature."""
        return self.risk.n_rows

    def apply(self, v: Floats) -> Floats:
        """Return the product with v of shape (q,)."""
        return self._penalty * v + self.risk.apply(v)

    def diagonal(self) -> Floats:
        """Return the diagonal, of shape (q,)."""
        return self._penalty + self.risk.diagonal()

    def spectral_solve(self) -> Callable[[Floats], Floats]:
        """Return the solution operator of an approximation, for several scores per row.

        It takes every class' rows of curvature to have the features of all rows: with
        the mean C of x xᵀ and the sum h_j of the second derivatives of class j, the
        block of the class is alpha I + h_j C and others vanish.
        """
        values, vectors = self._design.spectrum
        h = self.risk.class_sums()
        scale = np.multiply.outer(values, h) + float(self._penalty.max())

        def solve(v: Floats) -> Floats:
            rotated = vectors.T @ v.reshape(scale.shape)
            rotated /= scale
            solution: Floats = (vectors @ rotated).ravel()
            return solution

        return solve

    def matrix(self) -> Floats:
        """Return the whole matrix, of shape (q, q)."""
        matrix = self.risk.matrix()
        matrix[np.diag_indices_from(matrix)] += self._penalty
        return matrix

    @property
    def penalty(self) -> float:
        """The one of all entries of w but intercepts, not a number if they differ."""
        penalty = self._penalty[: self._design.n_coef]
        alike = penalty.size and penalty.min() == penalty.max()
        return float(penalty[0]) if alike else np.nan

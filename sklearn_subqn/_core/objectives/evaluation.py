"""An objective at a point: value, subgradients, bounds and second derivatives."""

from __future__ import annotations

import numpy as np

from ..lazy import cached_property
from ..losses._base import Floats, Rows
from ..losses._curvature import Curvature
from ..memory import BLOCK_SIZE
from ..rounding import EPS, ROUNDED, rounding
from .bounds import MOST_IMBALANCED, Bounds, Cut, Dual
from .hessian import Hessian
from .risk import Risk

# The risk gradient is updated by the rows whose dual variable changed. After 30 updates
# it is computed anew, so that rounding errors do not accumulate.
_MAX_UPDATES = 30

# A gradient with an error of at most 100 rounding errors is not computed anew, since a
# new product with X has rounding errors too. The error is larger if dual variables were
# much larger at an earlier point.
_FEW_ROUNDINGS = 100.0


class Evaluation:
    """An objective at a point w; each quantity is computed on first use.

    Parameters
    ----------
    objective : Bounds
    w : ndarray of shape (q,)
    scores : ndarray of shape (n,) or (n, k)
        Xw.
    dual : ndarray of the shape of scores, optional
        The subgradient of the risk at ``scores`` to use; default the loss' own choice.
    origin : Evaluation, optional
        A nearby point, whose risk gradient may be updated to the gradient at w.
    drift : float
        The attribute ``drift``, without the update from ``before``.
    before : Evaluation, optional
        The point from which the scores were computed by adding a change.

    Attributes
    ----------
    value, risk : float
        J(w) and R(Xw).
    kinks : ndarray of int
        Rows in which the loss is not differentiable.
    risk_gradient : ndarray of shape (q,)
        Xᵀu for the dual u, a subgradient of w -> R(Xw).
    gradient : ndarray of shape (q,)
        The subgradient of J with the dual u.
    cut : Cut
        The lower bound of the risk that is tight at w; with several free parameters, a
        nearby cut whose normal is zero in them.
    lower_bound : float
        The dual value of u, a lower bound of J.
    mixture : Dual or None
        The dual u, where it is a convex combination of nearby subgradients.
    gradient_error : float
        Error of ``risk_gradient`` from updates, in units of the column sizes.
    """

    def __init__(
        self,
        objective: Bounds,
        w: Floats,
        scores: Floats,
        dual: Floats | None = None,
        origin: Evaluation | None = None,
        drift: float = 0.0,
        before: Evaluation | None = None,
    ) -> None:
        self.objective = objective
        self.w = w
        self.scores = scores
        self._drift, self._before = drift, before
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
        origin, dual = self._updated()
        product = self.objective.risk.adjoint(dual)
        return product if origin is None else origin.risk_gradient + product

    def compute_gradients(self, later: Evaluation) -> None:
        """Compute the risk gradients at this and another point of the same data.

        The second gradient is an update of the first one; both take one pass over X.
        """
        if "risk_gradient" in {**vars(self), **vars(later)}:
            return
        later._origin = self
        (origin, dual), (known, change) = self._updated(), later._updated()
        first, second = self.objective.risk.adjoints(dual, change)
        self.risk_gradient = first if origin is None else origin.risk_gradient + first
        later.risk_gradient = second if known is None else self.risk_gradient + second

    def _updated(self) -> tuple[Evaluation | None, Floats]:
        """Return the point whose risk gradient is updated, if any, and a dual.

        The product of X with that dual, u or the change of u, is added to the gradient.
        """
        origin, self._origin = self._origin, None
        risk = self.objective.risk
        if origin is not None and origin._n_updates < _MAX_UPDATES:
            change = risk.difference(self.dual, origin.dual)
            share = rounding(risk.n_scored)
            # The norm of the change is at most the sum of both norms.
            error = origin.gradient_error + share * (2.0 * origin.norm + self.norm)
            most = _FEW_ROUNDINGS * share * self.norm
            if error <= most and risk.has_fewer(change, self.dual):
                self._n_updates = origin._n_updates + 1
                self.gradient_error = error
                return origin, change
        return None, self.dual

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
        """The dual point u, with the quantities computed for it."""
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
        knows_others = o.loss.has_conjugate
        if knows_others and o.n_free > 1 and dual.imbalance > ROUNDED:
            balanced = o.risk.balance(dual.u)
            if balanced is not dual.u:
                return o.cut(Dual(balanced))
        if dual.offset is None and not knows_others:
            error = dual.error + o.risk.distance_at(dual.u, self.scores)
            dual = dual._replace(offset=self._offset, error=error)
        return o.cut(dual)

    @property
    def _offset(self) -> float:
        """-R*(u), the value at w = 0 of the tangent of the risk with slope u."""
        o = self.objective
        if o.loss.has_rounding:
            # The value follows from the Fenchel-Young equality. A bound on its rounding
            # error is subtracted.
            height = self.risk - o.risk.inner(self.dual, self.scores)
            return height - o.risk.rounding(self.scores)
        return -o.risk.conjugate_at(self.dual, self.scores)

    def cut_of(self, gradient: Floats) -> Cut:
        """Return the cut of a combination of ``gradient`` and results of ``steepest``.

        The cut is tight at w if the rows are exactly on kinks. For rows only near
        kinks, the cut is lowered by the resulting slack.
        """
        o = self.objective
        if not (o.loss.has_conjugate or self.n_kinks):
            # Rounding errors may be large relative to the value of such a loss.
            return self.cut
        penalty = o.alpha * o.regularizer.gradient(self.w)
        normal = gradient - penalty
        own = self._slack_of(o.risk.take(self.dual, self.kinks))
        slack = max(self._slack, own)
        n = o.regularizer.n_penalized
        share, norm = 0.0, max(self._norm, self.norm)
        if o.n_free:
            # A small change of u makes its products with the unpenalized columns zero;
            # ``share`` is the fraction of u that has to change.
            share = o.risk.imbalance(self.dual, normal[n:])
            if share <= MOST_IMBALANCED:
                normal[n:] = 0.0
        length = o.risk.n_scored
        share = min(share, 1.0) + rounding(length)
        # Scores, the risk and products with w have rounding errors.
        sizes = np.abs(normal)
        total = float(np.abs(self.w[:n]).sum())
        factor = rounding(o.n_params) * norm
        sizes[:n] += norm * o.sizes_for(total, factor, self.risk)
        terms = float(np.abs(self.w) @ sizes) + self.risk
        terms += o.risk.inner_size(self.dual, self.scores)
        slack += rounding(o.n_params + length) * terms + share * terms
        slack += rounding(o.n_params) * self.drift * o.risk.size(self.dual)
        # The difference of two gradients has the rounding errors of both. The inner
        # product of this error with another w is at most the sum of the rounding errors
        # of two penalties. The error bound already contains one of them.
        slack += 2.0 * EPS * float(np.abs(penalty) @ np.abs(self.w))
        offset = self.risk - float(normal @ self.w) - slack
        return Cut(normal, offset, share * 2.0 * norm, norm)

    def _slack_of(self, dual: Floats) -> float:
        """Return R(z) + R*(u) - <u, z> over rows on kinks: zero for a subgradient u."""
        if not self.n_kinks:
            return 0.0
        return self.objective.risk.slack(dual, self._kink_scores, self.kinks)

    @cached_property
    def _kink_scores(self) -> Floats:
        return self.objective.risk.take(self.scores, self.kinks)

    @cached_property
    def lower_bound(self) -> float:
        o = self.objective
        if o.regularizer.smooth or not o.loss.has_conjugate:
            return o.dual_value(self.cut)
        return o.dual_bound(self.dual_point)

    @property
    def gap(self) -> float:
        """An upper bound of the difference between J and its minimum."""
        return self.value - self.lower_bound

    def steepest(self, p: Floats) -> Floats:
        """Return argsup <g, p> over the subdifferential of J, of shape (q,).

        Only rows on a kink have several subgradients (Yu 2009, section 3.3.1), so the
        cost is two products with these rows.
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

    @cached_property
    def _kink_risk(self) -> Risk:
        return self.objective.risk.of_rows(self.kinks)

    @cached_property
    def curvature(self) -> Curvature:
        """Second derivatives of the loss, for losses that have them."""
        return self.objective.risk.curvature(self.scores)

    @property
    def hessian(self) -> Hessian:
        """The generalized Hessian of J at w, for losses that have one."""
        return Hessian(self.objective, self.w, self.curvature)

    def sampled_hessian(self, stride: int) -> Hessian:
        """Return the Hessian estimated from a sample of rows, for one score per row."""
        if stride == 1:
            return self.hessian
        some = self.objective.risk.thinned(self.curvature, stride)
        return Hessian(self.objective, self.w, some)

    @property
    def drift(self) -> float:
        """Sum of the sizes of all updates since the scores were a product with X.

        The size of an update is the sum of the sizes of the scores before and after it,
        an upper bound of the change. The error of a score is about the machine epsilon
        times the drift, times a factor for the rounding of sums over features.
        Computing the sizes may take a pass over X, so they are computed on first use.
        """
        if self._before is not None:
            self._drift += self._before.score_size + self.score_size
            self._before = None
        return self._drift

    @cached_property
    def score_size(self) -> float:
        """Approximately the largest norm of the terms of a score, whose sum may cancel.

        The maximum of the largest score and the root mean square of the norm of the
        terms. The root mean square is computed only if it may be larger than the
        largest score.
        """
        risk, largest = self.objective.risk, self.largest_score
        coef = self.w[: self.objective.regularizer.n_penalized]
        largest_coef = max(coef.max(initial=0.0), -coef.min(initial=0.0))
        if risk.row_size * float(largest_coef) <= largest:
            return largest
        sizes, square = self.objective.column_sizes, 0.0
        for a in range(0, len(coef), BLOCK_SIZE):
            terms = sizes[a : a + BLOCK_SIZE] * coef[a : a + BLOCK_SIZE]
            square += float(terms @ terms)
        return max(largest, float(np.sqrt(square)))

    @cached_property
    def largest_score(self) -> float:
        """The largest magnitude of a score."""
        return self.objective.risk.largest(self.scores)

"""The two terms of an objective, and its lower bounds by cuts and dual points."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..lazy import cached_property
from ..losses._base import Floats
from ..losses._dual_loss import DualLoss
from ..memory import BLOCK_SIZE
from ..regularizers import L2, ElasticNet, Regularizer
from ..rounding import EPS, rounding
from ..rows.design import Design
from .risk import Risk

# A dual point gives no lower bound if more than a thousandth of it has to change to
# make its products with the unpenalized columns zero.
MOST_IMBALANCED = 1e-3

# A rounding error below 1e-10 of a bound is negligible: it does not justify the pass
# over X that column sizes need.
_LITTLE = 1e-10


class Cut(NamedTuple):
    """A linear lower bound of the risk: R(w) >= <a, w> + offset for every w.

    The normal a is known up to rounding: each |a_j - normal_j| is at most ``error``,
    and |a_j| at most ``norm``, times the root mean square of the column
    (``Objective.column_sizes``). Where ``normal`` is zero in free parameters, a is
    exactly zero there.
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
        """Return the convex combination of cuts; its weights sum to one up to rounding.

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
    """A dual point u of the risk, with the known quantities of u.

    A convex combination of dual points is a dual point, and its R* is at most the
    combination of their values of R*.

    Attributes
    ----------
    u : ndarray of the shape of the scores, or what the risk has for it
        In the domain of R* up to rounding.
    normal : ndarray of shape (q,), optional
        Xᵀu.
    offset : float, optional
        -R*(u) minus its rounding error, for losses that compute R* only at a
        subgradient and its scores; or a lower bound of -R*(u) for a combination of dual
        points.
    error : float
        Additional errors of ``normal``, in units of ``column_sizes``.
    norm : float, optional
        The root of sum_i u_i² / s_i.
    imbalance : float, optional
        The fraction of u that has to change for the columns of u to sum to zero, which
        free intercepts require.
    """

    u: Any
    normal: Floats | None = None
    offset: float | None = None
    error: float = 0.0
    norm: float | None = None
    imbalance: float | None = None

    @classmethod
    def mixed(cls, risk: Risk, share: float, one: Dual, other: Dual) -> Dual:
        """Return (1 - share) * one + share * other, for duals with a known offset."""
        assert one.offset is not None, "known"
        assert other.offset is not None, "known"
        offsets = np.array([one.offset, other.offset])
        shares = np.array([1.0 - share, share])
        offset = float(shares @ offsets)
        offset -= rounding(2.0) * float(shares @ np.abs(offsets))
        u = risk.moved(risk.scaled(1.0 - share, one.u), share, other.u)
        return cls(u, offset=offset)


class Bounds:
    """A sum J(w) = alpha * Omega(w) + R(w), and its lower bounds by dual points.

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
        The attributes of the risk.
    n_params : int
        Number q of parameters.
    n_free : int
        Number of unpenalized parameters, which come last.
    """

    def __init__(self, risk: Risk, regularizer: Regularizer, alpha: float) -> None:
        self.risk = risk
        self.regularizer = regularizer
        self.alpha = alpha
        self.design: Design = risk.design
        self.loss: DualLoss = risk.loss
        self.targets: Any = risk.targets
        self.weights: Floats = risk.weights
        self.n_params: int = self.design.n_params
        self.n_free = self.n_params - regularizer.n_penalized

    @property
    def passes(self) -> float:
        """Products with X or its transpose so far."""
        return self.design.passes

    @cached_property
    def least(self) -> float:
        """A lower bound of J without a product: the sum of the infima of both terms."""
        zero = np.zeros(self.regularizer.n_penalized)
        return self._less(self.risk.infimum, self.regularizer.conjugate(zero))

    @property
    def column_sizes(self) -> Floats:
        """Weighted root mean squares of the columns, of shape (n_penalized,)."""
        return self.risk.column_sizes[: self.regularizer.n_penalized]

    def imbalance(self, dual: Floats) -> float:
        """Return the fraction of u that has to change for its columns to sum to zero.

        Only a u with zero column sums proves a bound where intercepts are free.
        """
        if not self.n_free:
            return 0.0
        # The rounding error of the column sums is covered by the error of the cut.
        return self.risk.imbalance(dual, self.risk.column_sums(dual))

    def cut(self, dual: Dual) -> Cut:
        """Return the cut of a dual point u, lowered by the error of u.

        All lower bounds are derived from such cuts. Sums of absolute terms give error
        bounds for the rounding of u, its product with X and its conjugate. They also
        give an error bound for the imbalance of u in the free parameters: a balanced
        point of the domain differs from u by a fraction of u, and its conjugate is
        larger by at most this fraction of the terms.
        """
        risk, (u, normal, offset, error, norm, share) = self.risk, dual
        share = self.imbalance(u) if share is None else share
        is_balanced = share <= MOST_IMBALANCED
        share = (share if is_balanced else 0.0) + rounding(risk.n_scored)
        if offset is None:
            height, size = risk.conjugate_and_size(u)
        else:
            height, size = -offset, abs(offset) + risk.conjugate_rest(u)
        offset = -height - share * size
        is_own = normal is None
        normal = risk.adjoint(u) if normal is None else normal
        if is_balanced and normal[self.regularizer.n_penalized :].any():
            normal = normal if is_own else normal.copy()
            normal[self.regularizer.n_penalized :] = 0.0
        norm = risk.dual_norm(u) if norm is None else norm
        return Cut(normal, offset, error + share * norm + risk.distance(u), norm)

    def dual_value(self, cut: Cut) -> float:
        """Return min_w alpha * Omega(w) + <a, w> + offset, a lower bound of J.

        The bound is -inf unless the cut is balanced in the free parameters. With an L1
        penalty the cut is mixed with the trivial cut R >= inf R until its normal lies
        in the domain of the conjugate. Rounding errors are subtracted, so the computed
        number is a valid bound.
        """
        if not cut.is_balanced(self.regularizer.n_penalized):
            return -np.inf
        if isinstance(self.regularizer, L2):
            return self._less(cut.offset, self._half_square(cut))
        v, radius = self.conjugate_point(cut)
        bound = self._less(cut.offset, self.regularizer.conjugate_within(v, radius))
        scale = self.regularizer.scaling_within(v, radius)
        if scale < 1.0:
            rest = (1.0 - scale) * self.risk.infimum
            bound = max(bound, self._less(scale * cut.offset + rest, 0.0))
        return bound

    def dual_bound(self, dual: Dual) -> float:
        """Return a lower bound of J from a dual point u.

        The bound is the larger one of the bounds from u and from u scaled into the
        domain of the regularizer's conjugate.
        """
        # The conjugate of the L1 norm is zero on the unit ball of the maximum norm, and
        # infinite outside.
        is_norm = isinstance(self.regularizer, ElasticNet) and (
            self.regularizer.l1_ratio == 1.0
        )
        offset = self.risk.at_zero if is_norm else None
        if dual.imbalance is None:
            dual = dual._replace(imbalance=self.imbalance(dual.u))
        cut = self.cut(dual._replace(offset=offset))
        bound = -np.inf if is_norm else self.dual_value(cut)
        if isinstance(self.regularizer, L2):
            return bound
        scale = self.regularizer.scaling_within(*self.conjugate_point(cut))
        if 0.0 < scale < 1.0 or is_norm:
            u, normal = self.risk.scaled(scale, dual.u), scale * cut.normal
            error, norm = scale * dual.error, scale * cut.norm
            cut = self.cut(Dual(u, normal, None, error, norm, dual.imbalance))
            bound = max(bound, self.dual_value(cut))
        return bound

    def _half_square(self, cut: Cut) -> float:
        """Return an upper bound of ||a||² / (2 alpha²) for the penalized entries of a.

        The norm of a gives an upper bound of its error. If this bound is not
        negligible, the error is also bounded column by column, which is tighter for
        columns of different scales.
        """
        normal = cut.normal[: self.regularizer.n_penalized]
        length = float(np.sqrt(normal @ normal)) * (1.0 + rounding(len(normal)))
        error = cut.error * self.risk.row_size if cut.error else 0.0
        value = abs(cut.offset) + 0.5 * length * length / self.alpha
        more = error * (2.0 * length + error) if error else 0.0
        if more > _LITTLE * value * self.alpha:
            sizes, product = self.column_sizes, 0.0
            # Blocks avoid temporary arrays of all parameters, which take most of the
            # time.
            for a in range(0, len(normal), BLOCK_SIZE):
                part = np.abs(normal[a : a + BLOCK_SIZE]) @ sizes[a : a + BLOCK_SIZE]
                product += float(part)
            product *= 2.0 * cut.error * (1.0 + rounding(len(normal)))
            more = min(more, product + error * error)
        return 0.5 * (length * length + more) / self.alpha / self.alpha

    def conjugate_point(self, cut: Cut) -> tuple[Floats, Floats]:
        """Return -a / alpha of shape (n_penalized,), and its entrywise error bound."""
        normal, offset, error, _ = cut
        v = normal[: self.regularizer.n_penalized] / -self.alpha
        radius = np.abs(v)
        size = float(radius.sum())
        radius *= 4.0 * EPS
        if error:
            # A lower bound far below zero needs no accuracy.
            value = abs(offset) + self.alpha * float(v @ v)
            radius += error / self.alpha * self.sizes_for(size, error, value)
        return v, radius

    def sizes_for(self, size: float, factor: float, value: float) -> Floats | float:
        """Return column sizes s such that ``factor`` times <s, |w|> bounds an error.

        The row size is an upper bound of all column sizes and cheaper. It is used if
        the error is negligible relative to ``value``, for the sum ``size`` of |w|.
        """
        if factor * self.risk.row_size * size <= _LITTLE * abs(value):
            return self.risk.row_size
        return self.column_sizes

    def _less(self, offset: float, conjugate: float) -> float:
        """Return offset - alpha * conjugate, minus a bound of the rounding error."""
        penalty = self.alpha * conjugate
        return offset - penalty - rounding(self.n_params) * (abs(offset) + abs(penalty))

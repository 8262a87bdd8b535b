"""Joint multiclass hinge with label costs, and its smooth envelope.

Targets y are labels 0, ..., k - 1, scores have shape (n, k). The loss of a row is the
maximum over labels j of m_j = offsets[y, j] + rates[y, j] (z_j - z_y), with m_y = 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..kernels import multiclass as kernel
from ._base import (
    TIE_TOLERANCE,
    Curvature,
    Derivatives,
    Floats,
    PiecewiseQuadratic,
    Rows,
    Simplices,
)
from ._leveling import FlowLoss, leveled, tilted

# Labels this near to the edge of the support, in units of dual variables, lie on it.
_EDGE = 1e-9

# Kinks on a line are collected in pieces of so many.
_N_KINKS = 1 << 16

# A violation that is never the largest.
_NEVER = -1e100


class MulticlassHinge(FlowLoss):
    """Multiclass hinge with label costs (Yu 2009, eq. 3.40).

    With ``rescaling="margin"`` (Taskar et al. 2004) the loss of a row is the maximum
    over labels j of costs[y, j] + z_j - z_y, with "slack" (Tsochantaridis et al. 2005)
    of costs[y, j] (1 + z_j - z_y). A label counts as attaining the maximum within
    ``TIE_TOLERANCE``, relative to the largest score of the row if that exceeds one.

    Parameters
    ----------
    costs : ndarray of shape (k, k)
        Cost of predicting the second label in place of the first, non-negative, zero
        on the diagonal.
    rescaling : {"margin", "slack"}
    """

    smooth = False
    has_envelope = True
    has_margin = True

    def __init__(self, costs: Floats, rescaling: str = "margin") -> None:
        k = len(costs)
        self.offsets = np.array(costs, dtype=np.float64, order="C")
        self.rates = np.ones((k, k))
        self._has_unit_rates = rescaling == "margin"
        if rescaling == "slack":
            self.rates = self.offsets.copy()
            # Labels of no cost never count: a dual point does not show their part.
            self.offsets[(self.rates == 0.0) & ~np.eye(k, dtype=bool)] = _NEVER
        # Costs per unit of a dual variable.
        self._ratios = np.zeros((k, k))
        np.divide(self.offsets, self.rates, out=self._ratios, where=self.rates > 0.0)

    def value(self, scores: Floats, targets: Any, weights: Floats) -> float:
        return kernel.value(scores, targets, self.offsets, self.rates, weights)

    def subgradient(self, scores: Floats, targets: Any, weights: Floats) -> Floats:
        """Return u_i = s_i (e_j - e_y), times the rate, with j in (3.42).

        At ties (3.44) leaves a choice: j = y, that is zero, is our convention where
        possible, and otherwise the first label.
        """
        u = np.empty_like(scores)
        kernel.subgradient(
            scores, targets, self.offsets, self.rates, weights, TIE_TOLERANCE, u
        )
        return u

    def conjugate(self, dual: Floats, targets: Any, weights: Floats) -> float:
        """Return R*(u) = -sum_ij u_ij costs[y_i, j] / rates[y_i, j].

        It is finite where u_i = s_i sum_j b_j rates[y_i, j] (e_j - e_y) for b in the
        unit simplex. The duals that this class returns are of that form; the caller
        answers for others.
        """
        return kernel.conjugate(dual, targets, self._ratios)

    def kink_rows(self, scores: Floats, targets: Any) -> Rows:
        count = np.empty(len(scores), dtype=np.intp)
        kernel.count_ties(
            scores, targets, self.offsets, self.rates, TIE_TOLERANCE, count
        )
        return np.flatnonzero(count > 1)

    def argsup(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> Floats:
        """Return the oracle's choice below (3.45): the steepest of the maxima."""
        u = np.empty_like(scores)
        kernel.steepest(
            scores,
            dscores,
            targets,
            self.offsets,
            self.rates,
            weights,
            TIE_TOLERANCE,
            u,
        )
        return u

    def restrict(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> PiecewiseQuadratic:
        """Return the slope with its jumps at the kinks of (3.48), by Alg. 3.4."""
        n, k = scores.shape
        kinks, jumps = np.empty((2, max(_N_KINKS, k)))
        parts, slope, row = [], 0.0, 0
        while row < n:
            row, count, part = kernel.restrict(
                scores,
                dscores,
                targets,
                self.offsets,
                self.rates,
                weights,
                TIE_TOLERANCE,
                row,
                kinks,
                jumps,
            )
            parts.append((kinks[:count].copy(), jumps[:count].copy()))
            slope += part
        all_kinks, all_jumps = map(np.concatenate, zip(*parts, strict=True))
        return PiecewiseQuadratic(
            slope, 0.0, all_kinks, all_jumps, np.zeros(len(all_kinks))
        )

    def dual_variables(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        """Return b in the unit simplex of shape (n, k), u = s b rates (e_j - e_y).

        Rows of no weight have b = e_y.
        """
        b = np.zeros_like(dual)
        scale = self.rates[targets] * weights[:, np.newaxis]
        np.divide(dual, scale, out=b, where=scale > 0.0)
        rows = np.arange(len(b))
        b[rows, targets] = 0.0
        np.clip(b, 0.0, 1.0, out=b)
        total = b.sum(axis=1)
        large = total > 1.0
        b[large] /= total[large, np.newaxis]
        b[rows, targets] = np.maximum(1.0 - total, 0.0)
        return b

    def rowwise_dual(self, targets: Any) -> Simplices | None:
        """Return the maximum over the simplex, if all rates are one."""
        return Simplices(targets, self.offsets) if self._has_unit_rates else None

    def neutral_variables(self, targets: Any) -> Floats:
        """Return b = 1 / k."""
        k = len(self.offsets)
        return np.full((len(targets), k), 1.0 / k)

    def envelope(self, center: Floats, width: float) -> MulticlassEnvelope:
        """Return the smooth envelope around dual variables of shape (n, k)."""
        return MulticlassEnvelope(self, center, width)

    def level_near_optimum(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        if not self._has_unit_rates:
            return leveled(dual)
        neutral = self.neutral_variables(targets)
        neutral[np.arange(len(targets)), targets] -= 1.0
        return leveled(tilted(dual, weights, neutral))


class MulticlassEnvelope(FlowLoss):
    """Envelope of the multiclass hinge around dual variables.

    The loss of a row is the maximum of <b, m> over b in the unit simplex. The envelope
    subtracts ``width / 2 * ||b - center||²`` inside the maximum, which then is attained
    at the projection of center + m / width onto the simplex: a continuously
    differentiable, piecewise quadratic function of m, whose gradient is a feasible dual
    point of the hinge itself.

    Parameters
    ----------
    loss : MulticlassHinge
    center : ndarray of shape (n, k)
        Rows in the unit simplex.
    width : float
        Positive.
    """

    smooth = True

    def __init__(self, loss: MulticlassHinge, center: Floats, width: float) -> None:
        self._loss = loss
        self.center = center
        self.width = width

    def value(self, scores: Floats, targets: Any, weights: Floats) -> float:
        loss = self._loss
        return kernel.envelope_value(
            scores,
            self.center,
            targets,
            loss.offsets,
            loss.rates,
            weights,
            self.width,
        )

    def subgradient(self, scores: Floats, targets: Any, weights: Floats) -> Floats:
        """Return the gradient, of the shape of the scores."""
        loss, u = self._loss, np.empty_like(scores)
        kernel.envelope_gradient(
            scores,
            self.center,
            targets,
            loss.offsets,
            loss.rates,
            weights,
            self.width,
            u,
        )
        return u

    def conjugate(self, dual: Floats, targets: Any, weights: Floats) -> float:
        """Return R*(u) of the hinge + width / 2 * sum_i s_i ||b_i - center_i||²."""
        shift = self._loss.dual_variables(dual, targets, weights)
        shift -= self.center
        penalty = (
            0.5 * self.width * float(weights @ np.einsum("ij,ij->i", shift, shift))
        )
        return self._loss.conjugate(dual, targets, weights) + penalty

    def curvature(
        self, scores: Floats, targets: Any, weights: Floats
    ) -> SimplexCurvature:
        """Return generalized second derivatives.

        Labels at the edge of the support count as inside, as for ``HingeEnvelope``.
        """
        loss = self._loss
        active = np.empty(scores.shape, dtype=np.uint8)
        kernel.support(
            scores,
            self.center,
            targets,
            loss.offsets,
            loss.rates,
            weights,
            self.width,
            _EDGE,
            active,
        )
        return SimplexCurvature(active, targets, loss.rates, weights / self.width)

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> Derivatives:
        loss = self._loss

        def at(step: float) -> tuple[float, float]:
            return kernel.envelope_slope(
                scores,
                dscores,
                self.center,
                targets,
                loss.offsets,
                loss.rates,
                weights,
                self.width,
                step,
            )

        return at


class SimplexCurvature(Curvature):
    """Second derivatives, a k x k matrix a row: factor Dᵀ (I - 11ᵀ / size) D.

    I and 1 are those of the active labels, of which there are ``size``, and D maps a
    row of scores to rates[y] (z_j - z_y).

    Parameters
    ----------
    active : ndarray of uint8 of shape (n, k)
    targets : ndarray of shape (n,)
    rates : ndarray of shape (k, k)
    factors : ndarray of shape (n,)
    """

    def __init__(
        self,
        active: npt.NDArray[np.uint8],
        targets: Any,
        rates: Floats,
        factors: Floats,
    ) -> None:
        self._active = active
        self._targets = targets
        self._rates = rates
        self._factors = factors

    def rows(self) -> Rows:
        return np.flatnonzero(self._active.any(axis=1))

    def take(self, rows: Rows) -> SimplexCurvature:
        return SimplexCurvature(
            self._active[rows], self._targets[rows], self._rates, self._factors[rows]
        )

    def apply(self, dscores: Floats) -> Floats:
        kernel.apply_curvature(
            self._active, self._targets, self._rates, self._factors, dscores
        )
        return dscores

    def diagonal(self) -> Floats:
        diagonal = np.empty(self._active.shape)
        kernel.curvature_diagonal(
            self._active, self._targets, self._rates, self._factors, diagonal
        )
        return diagonal

    def total(self) -> Floats:
        n, k = self._active.shape
        blocks = np.zeros((k, k, 1, 1))
        self.add_gram(np.ones((n, 1)), slice(None), blocks)
        upper = blocks[:, :, 0, 0]
        return upper + np.triu(upper, 1).T

    def add_gram(self, X: Floats, rows: slice, out: Floats) -> None:
        kernel.gram(
            X,
            self._active[rows],
            self._targets[rows],
            self._rates,
            self._factors[rows],
            out,
        )

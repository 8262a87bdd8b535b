"""Binary hinge and squared hinge.

Targets y are -1 or +1. With the margin violation m = 1 - y z, the rows fall into three
sets (Yu 2009, section 3.3): in error, m > 0; on the margin, m = 0; well classified,
m < 0. One tolerance decides which rows count as lying on the margin.
"""

from __future__ import annotations

import numpy as np

from ..kernels import hinge
from ._base import (
    TIE_TOLERANCE,
    Derivatives,
    DiagonalCurvature,
    Floats,
    Intervals,
    Loss,
    Mask,
    PiecewiseQuadratic,
    Rows,
)
from ._envelope import HingeEnvelope


def _violations(scores: Floats, targets: Floats) -> Floats:
    """Return m = 1 - y z, exactly zero for rows on the margin."""
    m = scores * targets
    np.subtract(1.0, m, out=m)
    # Near m = 0 the score is close to y, so that max(1, |score|) = 1.
    m[np.abs(m) <= TIE_TOLERANCE] = 0.0
    return m


class Hinge(Loss):
    """Binary hinge loss max(0, 1 - y z) (Yu 2009, eq. 1.2 and 3.27)."""

    smooth = False
    has_envelope = True
    has_margin = True

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        return hinge.value(scores, targets, weights)

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return u_i = -beta_i s_i y_i, with beta = 1 in error and 0 elsewhere.

        On the margin any beta in [0, 1] is a subgradient (3.27); zero is our
        convention.
        """
        u = np.empty_like(scores)
        hinge.subgradient(scores, targets, weights, TIE_TOLERANCE, u)
        return u

    def conjugate(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return R*(u) = <u, y>, finite where -y_i u_i lies in [0, s_i].

        The duals that this class returns do; the caller answers for others.
        """
        return float(dual @ targets)

    def feasible(self, dual: Floats, targets: Floats, weights: Floats) -> Mask:
        return np.asarray((-dual * targets >= 0.0) & (-dual * targets <= weights))

    def kink_rows(self, scores: Floats, targets: Floats) -> Rows:
        return np.flatnonzero(_violations(scores, targets) == 0.0)

    def argsup(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Floats:
        """Return the oracle's choice (3.28): beta = 1 where y dz < 0, on the margin."""
        beta = targets * dscores < 0.0
        return np.where(beta, -weights * targets, 0.0)

    def dual_variables(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return beta in [0, 1], u_i = -beta_i s_i y_i; zero for rows of no weight."""
        beta = np.zeros_like(dual)
        np.divide(-targets * dual, weights, out=beta, where=weights > 0.0)
        return np.clip(beta, 0.0, 1.0, out=beta)

    def rowwise_dual(self, targets: Floats) -> Intervals:
        """Return max(0, 1 - y z) as the maximum over v in [0, y] of v (y - z)."""
        return Intervals(
            targets, np.minimum(targets, 0.0), np.maximum(targets, 0.0), 0.0
        )

    def neutral_variables(self, targets: Floats) -> Floats:
        """Return beta = 1/2."""
        return np.full(targets.shape, 0.5)

    def envelope(self, center: Floats, width: float) -> HingeEnvelope:
        """Return the smooth envelope around dual variables of shape (n,)."""
        return HingeEnvelope(self, center, width)

    def restrict(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> PiecewiseQuadratic:
        """Return the slope (3.31) with its jumps at the kinks (3.33).

        A row on the margin at eta = 0 has left it at once: it is in error if its
        violation grows, and has no kink ahead.
        """
        kinks, jumps = np.empty_like(scores), np.empty_like(scores)
        slope, n_kinks = hinge.kinks_ahead(
            scores, dscores, targets, weights, TIE_TOLERANCE, kinks, jumps
        )
        return PiecewiseQuadratic(
            slope=slope,
            curvature=0.0,
            kinks=kinks[:n_kinks],
            slope_jumps=jumps[:n_kinks],
            curvature_jumps=np.zeros(n_kinks),
        )


class SquaredHinge(Loss):
    """Binary squared hinge loss max(0, 1 - y z)^2: once differentiable."""

    smooth = True
    has_margin = True

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        m = np.maximum(1.0 - scores * targets, 0.0)
        return float(weights @ (m * m))

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return the gradient u_i = -2 s_i y_i max(0, m_i)."""
        m = np.maximum(1.0 - scores * targets, 0.0)
        return -2.0 * weights * targets * m

    def conjugate(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return R*(u) = sum_i u_i y_i + u_i^2 / (4 s_i), finite where y_i u_i <= 0."""
        positive = weights > 0.0
        u = dual[positive]
        return float(u @ targets[positive] + 0.25 * (u @ (u / weights[positive])))

    def feasible(self, dual: Floats, targets: Floats, weights: Floats) -> Mask:
        return np.asarray(dual * targets <= 0.0)

    def reach(self, scores: Floats, targets: Floats) -> Floats:
        """Return the violations: there the parabolas end."""
        return np.maximum(1.0 - scores * targets, 0.0)

    def rowwise_dual(self, targets: Floats) -> Intervals:
        """Return max(0, 1 - y z)² as the maximum of v (y - z) - v²/4 over v y >= 0."""
        return Intervals(
            targets,
            np.where(targets < 0.0, -np.inf, 0.0),
            np.where(targets > 0.0, np.inf, 0.0),
            0.5,
        )

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> DiagonalCurvature:
        """Return 2 s_i for rows in error, else zero.

        Rows on the margin, where both are generalized second derivatives, count as in
        error: a step that put them there would otherwise be followed by one that they
        stop at once.
        """
        in_error = _violations(scores, targets) >= 0.0
        return DiagonalCurvature(np.where(in_error, 2.0 * weights, 0.0))

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        m, dm = np.empty_like(scores), np.empty_like(scores)
        hinge.squared_line(scores, dscores, targets, m, dm)
        return lambda step: hinge.squared_slope(m, dm, weights, step)

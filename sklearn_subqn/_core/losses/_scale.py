"""Huber's loss minimized over a scale common to all rows.

With H(t) = t² for |t| <= epsilon and else 2 epsilon |t| - epsilon², the risk is

    R(z) = min over sigma >= least of sigma + sum_i s_i sigma H((y_i - z_i) / sigma)

(Huber 1981, section 7.8; Owen 2007), a convex function. Since sigma H(r / sigma) is the
maximum of v r - sigma v² / 4 over |v| <= 2 epsilon, it is the maximum of

    sum_i s_i v_i (y_i - z_i) + least (1 - sum_i s_i v_i² / 4)

over all such v with sum_i s_i v_i² <= 4, and u = -s v is the gradient for the maximizer
v.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..kernels import scale as kernel
from ..rounding import rounding
from ._base import Derivatives, Floats, RowForm
from ._box import Box
from ._curvature import Curvature
from ._dual_loss import DualLoss
from ._maps import Residual
from ._row_loss import RowLoss, SmoothRowLoss

# Codes of ``RowForm.kind`` for a box, and for a box whose ridge is half a scale.
_BOX, _SCALED = 0, 4


class ScaledHuber(RowLoss):
    """Huber's loss minimized over its scale, or its envelope around a center.

    With an envelope, width / 2 * sum_i s_i (v_i - c_i)² is subtracted.

    Parameters
    ----------
    epsilon : float
        Multiple of the scale beyond which the loss is linear in the residual.
    least : float
        The smallest scale, positive. With a scale of zero the loss would have kinks.
    negligible : float
        Values of the loss below this number are rounding errors.
    center : ndarray of shape (n,), optional
        Dual variables c.
    width : float
    """

    _memos: ClassVar[tuple[str, ...]] = ("_last",)

    def __init__(
        self,
        epsilon: float,
        least: float,
        negligible: float = 0.0,
        center: Floats | None = None,
        width: float = 0.0,
    ) -> None:
        form = RowForm(_BOX, False, -2.0 * epsilon, 2.0 * epsilon)
        super().__init__(Residual(), form)
        self.epsilon, self._least, self._negligible = epsilon, least, negligible
        self._center, self._width = center, width
        self._unit = 0.0
        self._last: tuple[tuple[Any, ...], float, SmoothRowLoss] | None = None

    @property
    def looped(self) -> RowForm | None:
        """The form of compiled loops: a box whose ridge is half of the least scale."""
        if self._center is not None:
            return None
        return self._form._replace(kind=_SCALED, ridge=0.5 * self._least)

    def score_scale(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        """Return the scale that minimizes the loss."""
        return self._at(scores, targets, weights)[0]

    def _at(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> tuple[float, SmoothRowLoss]:
        """Return the minimizing scale, and the loss as a function at this scale."""
        args, last = (scores, targets, weights), self._last
        if last is not None and all(a is b for a, b in zip(last[0], args, strict=True)):
            return last[1:]
        scale = self._scale_of(self._shifted(scores, targets), weights)
        form = self._form._replace(ridge=0.5 * scale, width=self._width)
        box = SmoothRowLoss(self.map, form, self._center)
        self._last = args, scale, box
        return scale, box

    def _scale_of(self, shifted: Floats, weights: Floats) -> float:
        """Return the minimizing scale; the search starts at the last scale."""
        self._unit = kernel.scale_of(shifted, weights, self.epsilon, self._unit)
        return max(self._unit - 2.0 * self._width, self._least)

    def _shifted(self, scores: Floats, targets: Floats) -> Floats:
        """Return the residuals, shifted by the center of an envelope."""
        r = self.map.argument(scores, targets)
        if self._center is not None:
            r += self._width * self._center
        return r

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        scale, box = self._at(scores, targets, weights)
        return scale + box.value(scores, targets, weights)

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return the gradient, moved into the ball by its rounding error."""
        scale, box = self._at(scores, targets, weights)
        u = box.subgradient(scores, targets, weights)
        if scale > self._least:
            u *= 1.0 - 2.0 * rounding(len(u))
        return u

    def curvature(self, scores: Floats, targets: Floats, weights: Floats) -> Curvature:
        """Return second derivatives at a fixed scale, upper bounds of the exact ones.

        The difference from R'' is a matrix of rank one, along the residuals.
        """
        _, box = self._at(scores, targets, weights)
        return box.curvature(scores, targets, weights)

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        r, dr, epsilon = self._shifted(scores, targets), -dscores, self.epsilon

        def at(step: float) -> tuple[float, float]:
            scale = self._scale_of(r + step * dr, weights)
            # Twice the ridge of the smooth loss. Residuals of at most epsilon times
            # this unit are in the quadratic part.
            unit = scale + 2.0 * self._width
            line = r, dr, weights, step, epsilon, unit
            slope, curvature, cross, size = kernel.on_line(*line)
            if scale > self._least and size > 0.0:
                curvature = max(curvature - cross * cross / size, 0.0)
            return 2.0 * slope / unit, 2.0 * curvature / unit

        return at

    def conjugate_and_rest(
        self, dual: Floats, targets: Floats, weights: Floats
    ) -> tuple[float, float]:
        """Return R* at the longest feasible multiple of u, and the rest of its size."""
        v = self._variables(dual, targets, weights)
        square = float(weights @ (v * v))
        share = min(1.0, 2.0 / np.sqrt(square)) if square else 1.0
        total, rest = super().conjugate_and_rest(dual, targets, weights)
        total *= share
        total -= self._least * (1.0 - 0.25 * share * share * square)
        rest += 2.0 * self._least
        if self._center is not None:
            distances = np.square(share * v - self._center)
            total += 0.5 * self._width * float(weights @ distances)
            rest += self._width * float(weights @ np.square(self._center))
        return total, rest

    def distance(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return an upper bound of the distance of u from the box and the ball."""
        v = self._variables(dual, targets, weights)
        length = float(np.sqrt(weights @ (v * v))) * (1.0 + rounding(len(v)))
        outside = max(length - 2.0, 0.0)
        return float(super().distance(dual, targets, weights)) + outside

    def projected(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return the longest multiple of u, with v in the box, that is feasible."""
        v = self._variables(dual, targets, weights)
        length = float(np.sqrt(weights @ (v * v))) * (1.0 + 2.0 * rounding(len(v)))
        return dual if length <= 2.0 else dual * (2.0 / length)

    def balance(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        balanced = super().balance(dual, targets, weights)
        return self.projected(balanced, targets, weights)

    def kinked(self) -> DualLoss:
        """Return the limit of the loss for a scale of zero, which has kinks."""
        return DualLoss(Box(self.map, self._form.low, self._form.high))

    def rounding(self, scores: Floats, weights: Floats) -> float:
        return self._negligible

    def envelope(self, center: Floats, width: float) -> ScaledHuber:
        """Return the envelope, which is smooth even if the scale is zero."""
        args = self.epsilon, self._least, self._negligible
        return ScaledHuber(*args, center, width)

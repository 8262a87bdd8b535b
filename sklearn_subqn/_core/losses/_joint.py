"""Oracles of losses of several scores per row: a set, smoothed or not.

The loss of a row is the maximum of <b, m> over b in a set (``_sets.py``), with
violations m that are affine in the scores of labels.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from ..memory import BLOCK_SIZE
from ..rounding import CLOSE
from ._balance import FlowOracle, balanced
from ._base import (
    TIE_TOLERANCE,
    Derivatives,
    Floats,
    PiecewiseQuadratic,
    Rows,
    RowwiseDual,
)
from ._composition import DualSet, Smoothing
from ._joint_curvature import Codes, JointCurvature
from ._loss import Loss, WholeLoss
from ._smoothings import Quadratic


class JointSet(DualSet):
    """A set of dual variables for oracles of several scores per row.

    Attributes
    ----------
    kernel : module
        Compiled loops over rows.
    is_determined : bool
        Whether a dual point u of scores determines b. Otherwise envelopes have no
        conjugate.
    is_simplex : bool
        Whether b is in the unit simplex of the labels and u = s (b - e_y).
    """

    kernel: Any
    is_determined = True
    is_simplex = False

    @abstractmethod
    def rows(self, targets: Any, k: int) -> Any:
        """Return targets as rows of the kernel, with k scores each."""

    @abstractmethod
    def variables(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        """Return the variables b for u = ``dual``; zero for rows without weight."""

    @abstractmethod
    def neutral(self, targets: Any) -> Floats:
        """Return dual variables in the interior of their set."""

    @abstractmethod
    def conjugate(self, dual: Floats, targets: Any, weights: Floats) -> float:
        """Return R*(u), the minimum of -<b, costs> over all b that correspond to u."""

    def oracle(self, smoothing: Smoothing | None) -> Loss:
        if smoothing is None:
            return JointHinge(self)
        if not isinstance(smoothing, Quadratic):
            name = type(smoothing).__name__
            raise TypeError(f"{name} is no entropy of {type(self).__name__}.")
        return JointEnvelope(self, smoothing)

    def envelope(self, center: Floats, width: float) -> Quadratic:
        return Quadratic(width, center)

    def rowwise(self, targets: Any, smoothing: Smoothing | None) -> RowwiseDual | None:
        return None if smoothing else self._rowwise(targets)

    def _rowwise(self, targets: Any) -> RowwiseDual | None:
        """Return the set as a type of ``RowwiseDual``, None if it has none."""
        return None

    def projected(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        """Project a dual point that is outside of the set by rounding onto the set."""
        return dual

    def balance_near_optimum(
        self, dual: Floats, targets: Any, weights: Floats
    ) -> Floats:
        """Return a dual point near a nearly optimal one whose columns sum to zero."""
        return balanced(dual)

    def take(self, codes: Codes, targets: Any, rows: Rows | slice) -> Codes:
        """Return the codes of the given rows, one code for each dual variable."""
        return codes[rows]

    def positive_rows(self, codes: Codes, targets: Any) -> Rows:
        """Return the rows that have positive codes."""
        return np.flatnonzero(codes.any(axis=1))


class JointHinge(FlowOracle):
    """The maximum over a set, without smoothing.

    Violations within ``TIE_TOLERANCE`` of the largest violation are ties. The tolerance
    is relative to the largest absolute score of the row if that exceeds one.

    Parameters
    ----------
    dual_set : JointSet
    """

    has_margin = True

    def __init__(self, dual_set: JointSet) -> None:
        self.set = dual_set

    def value(self, scores: Floats, targets: Any, weights: Floats) -> float:
        rows = self.set.rows(targets, scores.shape[1])
        return float(self.set.kernel.value(rows, scores, weights))

    def subgradient(self, scores: Floats, targets: Any, weights: Floats) -> Floats:
        """Return the subgradient of the first most violated label or pair."""
        return self._subgradient(scores, None, targets, weights)

    def argsup(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> Floats:
        """Return the subgradient chosen below (3.45) and (3.57) of Yu (2009)."""
        return self._subgradient(scores, dscores, targets, weights)

    def _subgradient(
        self, scores: Floats, dscores: Floats | None, targets: Any, weights: Floats
    ) -> Floats:
        rows, u = self.set.rows(targets, scores.shape[1]), np.empty_like(scores)
        self.set.kernel.subgradient(rows, scores, dscores, weights, TIE_TOLERANCE, u)
        return u

    def kink_rows(self, scores: Floats, targets: Any) -> Rows:
        flags = np.empty(len(scores), dtype=np.uint8)
        rows = self.set.rows(targets, scores.shape[1])
        self.set.kernel.kinks(rows, scores, TIE_TOLERANCE, flags)
        return np.flatnonzero(flags)

    def restrict(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> PiecewiseQuadratic:
        """Return the slope with its jumps at the kinks, by Alg. 3.4 of Yu (2009)."""
        rows = self.set.rows(targets, scores.shape[1])
        kinks, jumps = np.empty((2, BLOCK_SIZE + scores.shape[1] ** 2 + 2))
        parts, slope, row = [], 0.0, 0
        while row < len(scores):
            row, count, part = self.set.kernel.restrict(
                rows, scores, dscores, weights, TIE_TOLERANCE, row, kinks, jumps
            )
            parts.append((kinks[:count].copy(), jumps[:count].copy()))
            slope += part
        all_kinks, all_jumps = map(np.concatenate, zip(*parts, strict=True))
        return PiecewiseQuadratic(
            slope, 0.0, all_kinks, all_jumps, np.zeros(len(all_kinks))
        )

    def conjugate(self, dual: Floats, targets: Any, weights: Floats) -> float:
        """Return R*(u), assuming that dual variables of u are in the set.

        Dual points that this class returns are feasible; the caller must check others.
        """
        return self.set.conjugate(dual, targets, weights)

    def projected(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        return self.set.projected(dual, targets, weights)

    def dual_variables(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        return self.set.variables(dual, targets, weights)

    def neutral_variables(self, targets: Any) -> Floats:
        return self.set.neutral(targets)

    def balance_near_optimum(
        self, dual: Floats, targets: Any, weights: Floats
    ) -> Floats:
        return self.set.balance_near_optimum(dual, targets, weights)


class JointEnvelope(FlowOracle, WholeLoss):
    """Moreau envelope of a joint hinge around dual variables.

    It subtracts ``width / 2 * ||b - center||²`` inside the maximum. The maximizer is
    the projection of center + m / width onto the set. The envelope is a continuously
    differentiable, piecewise quadratic function of m, and its gradient is a feasible
    dual point of the hinge.

    Parameters
    ----------
    dual_set : JointSet
    smoothing : Quadratic
        The width, and a center in the set.
    """

    def __init__(self, dual_set: JointSet, smoothing: Quadratic) -> None:
        if smoothing.center is None:
            raise TypeError(f"Quadratics over {type(dual_set).__name__} need a center.")
        self.set, self._kernel = dual_set, dual_set.kernel
        self.center, self.width = smoothing.center, smoothing.ridge

    def evaluate(
        self, scores: Floats, targets: Any, weights: Floats
    ) -> tuple[float, Floats]:
        rows, u = self.set.rows(targets, scores.shape[1]), np.empty_like(scores)
        center = self.center.ravel()
        value = self._kernel.envelope(rows, scores, center, weights, self.width, u)
        return value, u

    def conjugate(self, dual: Floats, targets: Any, weights: Floats) -> float:
        """Return R*(u) of the hinge + width / 2 * sum_i s_i ||b_i - center_i||²."""
        if not self.set.is_determined:
            name = type(self.set).__name__
            raise TypeError(f"The envelope over {name} has no conjugate of scores.")
        shift = self.set.variables(dual, targets, weights)
        shift -= self.center
        square = float(weights @ np.einsum("ij,ij->i", shift, shift))
        return self.set.conjugate(dual, targets, weights) + 0.5 * self.width * square

    def projected(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        return self.set.projected(dual, targets, weights)

    def curvature(
        self, scores: Floats, targets: Any, weights: Floats
    ) -> JointCurvature:
        """Return generalized second derivatives (Clarke).

        Variables on the boundary of the support count as positive.
        """
        rows = self.set.rows(targets, scores.shape[1])
        codes = np.empty(self.center.shape, dtype=np.uint8)
        self._kernel.support(
            rows, scores, self.center.ravel(), weights, self.width, CLOSE, codes.ravel()
        )
        factors = weights / self.width
        return JointCurvature(self.set, targets, codes, factors, scores.shape[1])

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> Derivatives:
        rows, center = self.set.rows(targets, scores.shape[1]), self.center.ravel()

        def at(step: float) -> tuple[float, float]:
            slope, curvature = self._kernel.envelope_slope(
                rows, scores, dscores, center, weights, self.width, step
            )
            return slope, curvature

        return at

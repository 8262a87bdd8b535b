"""What losses are composed of: sets of dual variables, smoothings, linear maps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ._base import Floats, Rows, RowwiseDual
from ._curvature import Curvature
from ._loss import Loss


class Smoothing:
    """What a loss subtracts inside its maximum over dual variables."""

    def of_rows(self, rows: Rows) -> Smoothing:
        """Return the smoothing of some of the rows."""
        return self


class DualSet(ABC):
    """A convex set of dual variables b, and what the maximum over it is of."""

    @abstractmethod
    def oracle(self, smoothing: Smoothing | None) -> Loss:
        """Return the oracle of the maximum over b of <b, m> less the smoothing."""

    def envelope(self, center: Floats, width: float) -> Smoothing:
        """Return the smoothing of the Moreau envelope around dual variables."""
        raise TypeError(f"{type(self).__name__} has no smooth envelope.")

    def largest_penalty(self, smoothing: Smoothing) -> float | None:
        """Return the largest smoothing, by which the maximum without it is larger.

        None where the maximum approaches no such maximum.
        """
        return None

    def rowwise(self, targets: Any, smoothing: Smoothing | None) -> RowwiseDual | None:
        """Return the maximum as one over variables that are separable by rows.

        Of intervals, which hold zero, the dual variables v stand for u = -weights * v;
        of simplices, b for weights * (b - e_y); of sets of labels, b for weights * b
        with the signs of relevant labels changed. None where it has no such form.
        """
        return None


class ScoreMap:
    """A linear map in front of a set: from scores of rows to scores of the set.

    This one maps scores to themselves.

    Attributes
    ----------
    joint : bool
        Whether the set's rows are not those of the scores, so that a loss of one score
        becomes one of several.
    is_injective : bool
        Whether a dual of scores stands for one dual of the set only.
    is_identity : bool
    """

    joint: bool = False
    is_injective: bool = True
    is_identity: bool = True

    def forward(self, scores: Floats) -> Floats:
        """Return the scores of the set."""
        return scores

    def inputs(self, scores: Floats, targets: Any, weights: Floats) -> Any:
        """Return scores, targets and weights of the set."""
        return scores, targets, weights

    def adjoint(self, dual: Floats, scores: Floats) -> Floats:
        """Return the dual, of the shape of ``scores``, for one of the set's."""
        return dual

    def duals(self, dual: Floats, targets: Any, weights: Floats) -> Any:
        """Return dual, targets and weights of the set for a dual of scores."""
        return dual, targets, weights

    def lifted(self, sums: Floats) -> Floats:
        """Return the column sums of the set's dual for the sums of a dual of scores."""
        return sums

    def least(self, outputs: Floats) -> Floats:
        """Return the smallest scores of one row that ``forward`` maps to given ones."""
        return outputs

    def curvature(self, curvature: Curvature, scores: Floats) -> Curvature:
        """Return second derivatives by scores for second derivatives of the set."""
        return curvature

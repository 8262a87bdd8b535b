"""The parts of a loss: a set of dual variables, a smoothing, a linear map."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ._base import Floats, Rows, RowwiseDual
from ._curvature import Curvature
from ._loss import Loss


class Smoothing:
    """The function h of dual variables that a loss subtracts inside its maximum."""

    def of_rows(self, rows: Rows) -> Smoothing:
        """Return the smoothing of the given rows."""
        return self


class DualSet(ABC):
    """A convex set of dual variables b, over which a loss is a maximum."""

    @abstractmethod
    def oracle(self, smoothing: Smoothing | None) -> Loss:
        """Return the oracle of the maximum over b of <b, m> minus the smoothing."""

    def envelope(self, center: Floats, width: float) -> Smoothing:
        """Return the smoothing of the Moreau envelope around dual variables."""
        raise TypeError(f"{type(self).__name__} has no smooth envelope.")

    def largest_penalty(self, smoothing: Smoothing) -> float | None:
        """Return the maximum of the smoothing over the set, None if there is no bound.

        It is an upper bound of the difference between the losses without and with
        smoothing.
        """
        return None

    def rowwise(self, targets: Any, smoothing: Smoothing | None) -> RowwiseDual | None:
        """Return the maximum in a form whose variables are separable by rows.

        In intervals, which contain zero, variables v correspond to u = -weights * v; in
        simplices b corresponds to weights * (b - e_y); in sets of labels b corresponds
        to weights * b with the signs of relevant labels reversed. None if the maximum
        has no such form.
        """
        return None


class ScoreMap:
    """A linear map from the scores of rows to the scores of the dual set.

    This class is the identity.

    Attributes
    ----------
    joint : bool
        Whether each of the several scores of a row is a separate row of the dual set.
    is_injective : bool
        Whether a dual point of scores has only one preimage among dual points of the
        set.
    is_identity : bool
    """

    joint: bool = False
    is_injective: bool = True
    is_identity: bool = True

    def forward(self, scores: Floats) -> Floats:
        """Return the scores of the set."""
        return scores

    def inputs(self, scores: Floats, targets: Any, weights: Floats) -> Any:
        """Return scores, targets and weights, arranged by the rows of the dual set."""
        return scores, targets, weights

    def adjoint(self, dual: Floats, scores: Floats) -> Floats:
        """Return the adjoint of a dual point of the set, shaped like ``scores``."""
        return dual

    def duals(self, dual: Floats, targets: Any, weights: Floats) -> Any:
        """Return the set's dual point, targets and weights for a dual of scores."""
        return dual, targets, weights

    def lifted(self, sums: Floats) -> Floats:
        """Return column sums of the set's dual point for ``sums`` of a dual point."""
        return sums

    def least(self, outputs: Floats) -> Floats:
        """Return the scores of least norm that ``forward`` maps to ``outputs``."""
        return outputs

    def curvature(self, curvature: Curvature, scores: Floats) -> Curvature:
        """Map second derivatives by the set's scores to second derivatives."""
        return curvature

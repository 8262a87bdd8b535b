"""Convex functions of scores, one file per family."""

from ._base import Loss, PiecewiseQuadratic
from ._hinge import Hinge, SquaredHinge

__all__ = ["Hinge", "Loss", "PiecewiseQuadratic", "SquaredHinge"]

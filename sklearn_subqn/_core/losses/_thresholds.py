"""Logistic losses of ordinal regression: one score per threshold between classes."""

from __future__ import annotations

import numpy as np

from ._base import Derivatives, DiagonalCurvature, Floats, Loss, Mask
from ._box import BINARY_LOSSES

_BINARY = BINARY_LOSSES["log_loss"]


class OrdinalLogistic(Loss):
    """Sum over thresholds of ln(1 + exp(-s_ik z_ik)) (Rennie and Srebro 2005).

    Classes are numbered from zero to K - 1, and the K - 1 scores z_ik of a row are
    those of its class being above k: s_ik is 1 if it is, and else -1. Each score is
    that of a binary problem; what these share is for the design to say.

    Parameters
    ----------
    immediate : bool
        Whether only the thresholds below and above the class of a row count, one or
        two, instead of all. Thresholds that minimize the loss at given differences of
        scores between rows ascend if all count; if not, they may be in any order.
    """

    smooth = True
    analytic = True
    joint = True

    def __init__(self, *, immediate: bool = False) -> None:
        self.immediate = immediate

    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        return _BINARY.value(*self._entries(scores, targets, weights))

    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        entries = self._entries(scores, targets, weights)
        return _BINARY.subgradient(*entries).reshape(scores.shape)

    def conjugate(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        return _BINARY.conjugate(*self._entries(dual, targets, weights))

    def conjugate_size(
        self, dual: Floats, targets: Floats, weights: Floats, conjugate: float
    ) -> float:
        entries = self._entries(dual, targets, weights)
        return _BINARY.conjugate_size(*entries, conjugate)

    def feasible(self, dual: Floats, targets: Floats, weights: Floats) -> Mask:
        feasible = _BINARY.feasible(*self._entries(dual, targets, weights))
        return np.asarray(feasible.reshape(dual.shape).all(axis=1))

    def unlevel(
        self, dual: Floats, sums: Floats, targets: Floats, weights: Floats
    ) -> float:
        """Return the largest share of the columns, which are level each by itself."""
        columns = zip(dual.T, sums, strict=True)
        args = targets, weights
        return max(_BINARY.unlevel(u, np.atleast_1d(s), *args) for u, s in columns)

    def level(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return u with the entries of the heavier sign of each column shrunk."""
        columns = [_BINARY.level(u, targets, weights) for u in dual.T]
        return np.stack(columns, axis=1)

    def curvature(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> DiagonalCurvature:
        entries = self._entries(scores, targets, weights)
        h = _BINARY.curvature(*entries).diagonal()
        return DiagonalCurvature(h.reshape(scores.shape))

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        z, signs, shares = self._entries(scores, targets, weights)
        return _BINARY.derivatives(z, dscores.ravel(), signs, shares)

    def _entries(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Return scores or duals, signs and weights of the binary problems, flat."""
        above = targets[:, np.newaxis] - np.arange(scores.shape[1])
        shares = np.broadcast_to(weights[:, np.newaxis], scores.shape)
        if self.immediate:
            shares = np.where((above == 0.0) | (above == 1.0), shares, 0.0)
        signs = np.where(above > 0.0, 1.0, -1.0)
        return scores.ravel(), signs.ravel(), shares.ravel()

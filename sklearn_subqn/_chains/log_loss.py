"""The negative log-likelihood of chains (Lafferty, McCallum & Pereira 2001)."""

from __future__ import annotations

import numpy as np

from .._core.arrays import Floats, Indices
from .._core.kernels import chain
from .._core.losses._curvature import Curvature
from .loss import ChainLoss, Targets, each_block


class ChainLogLoss(ChainLoss):
    """Negative log-likelihood of linear-chain CRFs, ln Z - score (Yu 2009, 6.3-6.5)."""

    analytic = True

    def value(self, scores: Floats, targets: Targets, weights: Floats) -> float:
        emissions, transitions = self.split(scores)

        def of_block(starts: Indices, block: slice) -> float:
            own = starts, targets, weights[block]
            return chain.log_loss(emissions, transitions, *own, None, None)

        return sum(each_block(of_block, self.starts, self.pool))

    def evaluate(
        self, scores: Floats, targets: Targets, weights: Floats
    ) -> tuple[float, Floats]:
        # The gradient is weighted marginals minus indicators of targets.
        k = scores.shape[1]
        dual = np.empty_like(scores)
        emissions, transitions = self.split(scores)

        def of_block(starts: Indices, block: slice) -> tuple[float, Floats]:
            pairs = np.zeros((k, k))
            own = starts, targets, weights[block]
            value = chain.log_loss(emissions, transitions, *own, dual[:-k], pairs)
            return value, pairs

        values, pairs = zip(*each_block(of_block, self.starts, self.pool), strict=True)
        dual[-k:] = sum(pairs)
        return sum(values), dual

    def curvature(
        self, scores: Floats, targets: Targets, weights: Floats
    ) -> ChainCurvature:
        return ChainCurvature(self, scores, weights)


class ChainCurvature(Curvature):
    """Second derivatives of the negative log-likelihood: covariances of scores.

    The Hessian couples the tokens of a sequence, so only its products with vectors are
    available.
    """

    def __init__(self, loss: ChainLogLoss, scores: Floats, weights: Floats) -> None:
        self._loss = loss
        self._scores = scores
        self._weights = weights

    def apply(self, dscores: Floats) -> Floats:
        k = dscores.shape[1]
        change = np.empty_like(dscores)
        change[-k:] = 0.0
        chain.tangent(
            *self._loss.split(self._scores),
            self._loss.starts,
            dscores[:-k],
            dscores[-k:],
            self._weights,
            change[:-k],
            change[-k:],
        )
        return change

    def take(self, rows: Indices | slice) -> Curvature:
        raise TypeError("Second derivatives of chains do not go by rows.")

    def diagonal(self) -> Floats:
        raise TypeError("Second derivatives of chains do not go by rows.")

    def total(self) -> Floats:
        raise TypeError("Second derivatives of chains do not go by rows.")

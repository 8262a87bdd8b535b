"""The objective of a batch of sequences, for online methods (Yu 2009, chapter 6).

The sequences of a small batch have features for few of the parameters, so scores and
gradients are computed for these parameters only. The penalty covers all parameters (eq.
6.8): the objective and its steps agree with the source.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.arrays import Floats, Indices
from .._core.losses._loss import Loss
from .design import ChainDesign
from .pairs import Pairs
from .sequences import tokens_of


class ChainBatch:
    """J(w, X_t): the penalty plus the mean loss of the sequences of a batch.

    Parameters
    ----------
    design : ChainDesign
        Design of the sequences of the batch, with all q parameters.
    targets : ndarray of shape (T,)
        Labels.
    loss : Loss
        Smooth loss of the sequences of the batch.
    alpha : float
        Strength of the L2 penalty.
    weights : ndarray of shape (b,)
        Weights of the sequences, which sum to one.

    Attributes
    ----------
    rows : ndarray of shape (r,)
        Indices of the parameters that score the batch, ascending.
    """

    def __init__(
        self,
        design: ChainDesign,
        targets: Indices,
        loss: Loss,
        alpha: float,
        weights: Floats,
    ) -> None:
        self.design, self.rows = own_design(design)
        self.alpha = alpha
        self._args: Any = (targets, weights)
        self._loss = loss

    def value_and_gradient(self, w: Floats) -> tuple[float, Floats]:
        """Return J(w, X_t) and its gradient of shape (q,)."""
        risk, dual = self._loss.evaluate(self._scores(w), *self._args)
        return risk + 0.5 * self.alpha * float(w @ w), self._with_penalty(dual, w)

    def gradient(self, w: Floats) -> Floats:
        """Return the gradient at w, of shape (q,)."""
        return self.value_and_gradient(w)[1]

    def hessian_product(self, w: Floats, v: Floats) -> Floats:
        """Return the Hessian at w times v, of shape (q,)."""
        curvature = self._loss.curvature(self._scores(w), *self._args)
        return self._with_penalty(curvature.apply(self._scores(v)), v)

    def _scores(self, w: Floats) -> Floats:
        return self.design.forward(w[self.rows])

    def _with_penalty(self, dual: Floats, v: Floats) -> Floats:
        """Return the gradient for a dual, plus the Hessian of the penalty times v."""
        product = self.alpha * v
        product[self.rows] += self.design.adjoint(dual)
        return product


def own_design(design: ChainDesign) -> tuple[ChainDesign, Indices]:
    """Return the design restricted to the features that occur, and its parameters."""
    X, _, pairs, places = of_own_columns(design.X, design.pairs)
    rest = design.starts, design.n_labels, pairs, design.transitions
    transitions = np.arange(design.n_pairs, design.n_params)
    return ChainDesign(X, *rest), np.concatenate([places, transitions])


def of_own_columns(X: Any, pairs: Pairs) -> tuple[Any, Indices, Pairs, Indices]:
    """Return X and the pairs restricted to the columns with entries.

    The other results are these columns, and the indices of their pairs.
    """
    columns, indices = np.unique(X.indices, return_inverse=True)
    arrays = X.data, indices.astype(X.indices.dtype), X.indptr
    own = type(X)(arrays, shape=(X.shape[0], len(columns)))
    places, ptr = tokens_of(pairs.ptr.astype(np.intp), columns)
    return own, columns, Pairs(ptr.astype(np.intc), pairs.labels[places]), places

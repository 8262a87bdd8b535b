"""Online training of chains (Yu 2009, chapter 6) on the parameters of a batch alone.

A batch of a few sequences has few of the parameters. Methods that step along its
gradient see the objective of the batch (eq. 6.8) restricted to its own parameters; the
others would only shrink by the penalty, which is made up for when their turn comes. So
is every entry of SGD's step; SMD keeps the step sizes of others as they are; the
direction of oLBFGS has its pairs whole, and is cut to the batch's parameters, along
which its own pair is measured: both differ from the source by that only.

The source sums losses over the b sequences of a batch, where these are means. Its
settings (section 6.2) are here ``SGD(0.1 * b)``, ``SMD(0.1 * b, 0.02 * b, lambda_)``
with lambda_ 0.99 for base NP and 0.1 elsewhere, and
``OLBFGS(1.0, 1e4, 5, lambda_=1.0 / b)``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._core.losses._base import Floats, Rows
from .._core.losses._loss import Loss
from .._core.online.curvature_pairs import damped_pair
from .._core.online.method import State, step_size
from .._core.online.olbfgs import OLBFGS, OLBFGSState, mean_scale
from .._core.online.sgd import SGD
from .._core.online.smd import SMD, SMDState
from .._core.online.sparse_columns import Columns
from .._core.steps.quasi_newton import Pair, two_loop
from .design import ChainDesign
from .pairs import Pairs


class ChainBatch:
    """J(w, X_t): the penalty plus the mean loss of the sequences of a batch.

    Restricted to the parameters that the batch has, the others held fixed.

    Parameters
    ----------
    design : ChainDesign
        Of the sequences of the batch, with all q parameters.
    targets : ndarray of shape (T,)
        Labels.
    loss : Loss
        Of these sequences, smooth.
    alpha : float
        Strength of the L2 penalty.
    weights : ndarray of shape (b,)
        They sum to one.

    Attributes
    ----------
    rows : ndarray of shape (r,)
        The parameters of the batch, ascending.
    """

    def __init__(
        self,
        design: ChainDesign,
        targets: Rows,
        loss: Loss,
        alpha: float,
        weights: Floats,
    ) -> None:
        self.design, self.rows = own_design(design)
        self.alpha = alpha
        self._args: Any = (targets, weights)
        self._loss = loss

    def value_and_gradient(self, w: Floats) -> tuple[float, Floats]:
        """Return J(w, X_t) and its gradient of shape (r,)."""
        risk, dual = self._loss.evaluate(self.design.forward(w), *self._args)
        value = risk + 0.5 * self.alpha * float(w @ w)
        return value, self.design.adjoint(dual) + self.alpha * w

    def gradient(self, w: Floats) -> Floats:
        """Return the gradient at w, of shape (r,)."""
        return self.value_and_gradient(w)[1]

    def hessian_product(self, w: Floats, v: Floats) -> Floats:
        """Return the Hessian at w times v, of shape (r,)."""
        curvature = self._loss.curvature(self.design.forward(w), *self._args)
        product = self.design.adjoint(curvature.apply(self.design.forward(v)))
        return product + self.alpha * v


def own_design(design: ChainDesign) -> tuple[ChainDesign, Rows]:
    """Return the design of the features that occur, and the numbers of parameters."""
    X, (ptr, labels) = design.X, design.pairs
    features, indices = np.unique(X.indices, return_inverse=True)
    sizes = ptr[features + 1] - ptr[features]
    own = np.zeros(len(features) + 1, dtype=np.intc)
    np.cumsum(sizes, out=own[1:])
    rows = np.arange(own[-1]) + np.repeat(ptr[features] - own[:-1], sizes)
    arrays = X.data, indices.astype(X.indices.dtype), X.indptr
    smaller = type(X)(arrays, shape=(X.shape[0], len(features)))
    restricted = ChainDesign(
        smaller,
        design.starts,
        design.n_labels,
        Pairs(own, labels[rows]),
        design.transitions,
    )
    transitions = np.arange(design.n_pairs, design.n_params)
    return restricted, np.concatenate([rows, transitions])


@dataclass(frozen=True)
class SparsePair:
    """A pair of displacements of some parameters."""

    rows: Rows
    pair: Pair


@dataclass(frozen=True)
class LazyState:
    """What a method keeps between batches.

    Attributes
    ----------
    table : Columns
        For each parameter: w, the shrinkage when it was last up to date, and for SMD
        its step size and auxiliary v.
    shrinkage : float
        Sum of alpha times the step sizes.
    n_steps : int
    value : float
        Objective of the last batch before its step, its own parameters only.
    pairs : tuple of SparsePair
        Of oLBFGS, oldest first.
    """

    table: Columns
    shrinkage: float
    n_steps: int
    value: float
    pairs: tuple[SparsePair, ...] = ()

    @property
    def w(self) -> Floats:
        """Parameters of shape (q,), up to date."""
        whole = self.table.whole()
        w: Floats = whole[:, 0] * np.exp(whole[:, 1] - self.shrinkage)
        return w


@dataclass(frozen=True)
class LazyMethod:
    """SGD, SMD or oLBFGS on the parameters of each batch.

    Attributes
    ----------
    method : SGD, SMD or OLBFGS
        With its settings.
    """

    method: SGD | SMD | OLBFGS

    def start(self, w0: Floats) -> LazyState:
        """Return the state before the first batch, at w0 of shape (q,)."""
        table = np.zeros((len(w0), 4))
        table[:, 0] = w0
        if isinstance(self.method, SMD):
            table[:, 2] = self.method.eta0
        return LazyState(Columns.of(table), 0.0, 0, np.nan)

    def step(self, batch: ChainBatch, state: LazyState) -> LazyState:
        """Return the state after one batch.

        Raises
        ------
        FloatingPointError
            If anything in it would not be finite.
        """
        rows, method = batch.rows, self.method
        own = state.table.take(rows)
        w = own[:, 0] * np.exp(own[:, 1] - state.shrinkage)
        none = np.zeros_like(w)
        before = w, state.n_steps, state.value, none
        pairs = state.pairs
        if isinstance(method, SMD):
            new: State = method.step(batch, SMDState(*before, own[:, 2], own[:, 3]))
            length = method.eta0
        elif isinstance(method, SGD):
            new = method.step(batch, State(*before))
            length = step_size(method.eta0, method.tau, state.n_steps)
        else:
            new, pair, scale = _olbfgs(method, batch, w, state)
            length = scale * step_size(method.eta0, method.tau, state.n_steps)
            if pair is not None:
                pairs = (*pairs, SparsePair(rows, pair))[-method.memory :]
        shrinkage = state.shrinkage + batch.alpha * length
        changed = own.copy()
        changed[:, 0], changed[:, 1] = new.w, shrinkage
        if isinstance(new, SMDState):
            changed[:, 2], changed[:, 3] = new.eta, new.v
        return replace(
            state,
            table=state.table.put(rows, changed),
            shrinkage=shrinkage,
            n_steps=new.n_steps,
            value=new.value,
            pairs=pairs,
        )


def _olbfgs(
    method: OLBFGS, batch: ChainBatch, w: Floats, state: LazyState
) -> tuple[State, Pair | None, float]:
    """Return what a step makes, its pair, and the scale of B without pairs."""
    value, gradient = batch.value_and_gradient(w)
    # Parameters of the batch and of pairs are numbered by a table of all.
    taken = np.zeros(len(state.table.base), dtype=bool)
    for rows in (batch.rows, *(sparse.rows for sparse in state.pairs)):
        taken[rows] = True
    union = np.flatnonzero(taken)
    numbers = np.empty(len(taken), dtype=np.intp)
    numbers[union] = np.arange(len(union))
    at = numbers[batch.rows]
    whole = np.zeros(len(union))
    whole[at] = -gradient
    pairs = []
    for sparse in state.pairs:
        dw, dg = np.zeros((2, len(union)))
        places = numbers[sparse.rows]
        dw[places], dg[places] = sparse.pair.dw, sparse.pair.dg
        pairs.append(Pair(dw, dg, sparse.pair.curvature))
    scale = mean_scale(tuple(pairs), method.epsilon)
    p = two_loop(whole, pairs, scale)[at]
    length = step_size(method.eta0, method.tau, state.n_steps)
    new = w + length * p
    # Parameters that the batch lacks stay; of B they are left out here.
    rest = method.lambda_, method.damping, length
    pair = damped_pair(batch, w, gradient, new, *rest)
    after = OLBFGSState(new, state.n_steps + 1, value, gradient, ())
    return after, pair, scale

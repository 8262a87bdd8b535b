"""Squared hinge of all pairs of labels of a row, and of labels and a threshold."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..kernels import label_order as kernel
from ..kernels import label_order_curvature as curvature_kernel
from ..rounding import TINY, rounding
from ._balance import FlowOracle, cost_of_labels
from ._base import Derivatives, Floats, Rows
from ._curvature import CurvatureByEntries, Entries

Ints = npt.NDArray[np.intc]


class LabelOrder(FlowOracle):
    """Mean squared hinge of pairs of labels, and of labels and a threshold.

    The loss of a row is half the mean of max(0, costs[1, h] + costs[0, j] + z_j - z_h)²
    over its relevant labels h and irrelevant labels j, and half the mean over its
    labels of max(0, costs[0, j] + z_j - z_0)² and max(0, costs[1, h] + z_0 - z_h)² with
    the threshold z_0, the last score. Without a threshold it is the first mean. A mean
    over no pairs is zero.

    Let m be the violations of these pairs and a max(0, m)² their losses. Then the loss
    is the maximum of <b, m> - sum b² / (4 a) over b >= 0: the score map leads to the
    edges of a graph of labels, the set is an orthant, and the smoothing is quadratic.
    For u = sum of b (e_j - e_h) the linear part of R*(u) is -<costs, |u|> over the
    labels. The quadratic part depends on b, which u does not determine; at the gradient
    it equals R.

    Parameters
    ----------
    costs : ndarray of shape (2, l)
        Non-negative margins of irrelevant and relevant labels.
    """

    def __init__(self, costs: Floats) -> None:
        self.costs = np.ascontiguousarray(costs, dtype=np.float64)
        self._last: tuple[tuple[Any, ...], float, Floats] | None = None

    def value(self, scores: Floats, targets: Any, weights: Floats) -> float:
        return self._evaluate(scores, targets, weights)[0]

    def subgradient(self, scores: Floats, targets: Any, weights: Floats) -> Floats:
        """Return the gradient, of the shape of the scores."""
        return self._evaluate(scores, targets, weights)[1].copy()

    def _evaluate(
        self, scores: Floats, targets: Any, weights: Floats
    ) -> tuple[float, Floats]:
        """Return value and gradient; the last result is remembered."""
        args, last = (scores, targets, weights), self._last
        if last is None or any(a is not b for a, b in zip(last[0], args, strict=True)):
            gradient = np.empty_like(scores)
            value = kernel.evaluate(targets, self.costs, scores, weights, gradient)
            last = self._last = args, value, gradient
        return last[1:]

    def conjugate_at(
        self, dual: Floats, scores: Floats, targets: Any, weights: Floats
    ) -> float:
        """Return R*(u) for the gradient u, or an upper bound for rounding."""
        value = self.value(scores, targets, weights)
        linear = cost_of_labels(self.costs, dual, targets)
        return value - linear + rounding(dual.size) * (value + linear)

    def conjugate_size(
        self, dual: Floats, targets: Any, weights: Floats, conjugate: float
    ) -> float:
        """Return a bound of the increase of R* if u shrinks, divided by the fraction.

        The shrunken u is a convex combination of u and of flows from its negative to
        its positive entries, proportional to both. The sum of squares of flows that sum
        to t is at most t²; the squares are divided by the weights of pairs.
        """
        relevant = targets.sum(axis=1, dtype=np.float64)
        n_labels = float(targets.shape[1])
        pairs = np.maximum(relevant * (n_labels - relevant), n_labels)
        flows = 0.5 * np.abs(dual).sum(axis=1)
        squares = flows * (flows / np.maximum(weights, TINY)) * pairs
        size = abs(conjugate) + cost_of_labels(self.costs, dual, targets)
        return size + 0.5 * float(squares.sum())

    def balance(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        """Return u unchanged: the conjugate is not known at other points."""
        return dual

    def curvature(
        self, scores: Floats, targets: Any, weights: Floats
    ) -> LabelOrderCurvature:
        """Return generalized second derivatives; pairs at the kink count as linear."""
        order = np.zeros(scores.shape, dtype=np.intc)
        sizes = np.empty(len(scores), dtype=np.intc)
        kernel.violated(targets, self.costs, scores, weights, order, sizes)
        return LabelOrderCurvature(targets, order, sizes, weights)

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> Derivatives:
        rows = targets, self.costs, scores, dscores, weights
        return lambda step: kernel.slope(*rows, step)


class LabelOrderCurvature(CurvatureByEntries):
    """Second derivatives, for each row the Laplacian of the graph of violated pairs.

    Parameters
    ----------
    targets : ndarray of shape (n, l)
    order : ndarray of shape (n, k)
        The first entries are the labels in violated pairs, by ascending scores.
    sizes : ndarray of shape (n,)
        The number of these labels.
    weights : ndarray of shape (n,)
    """

    def __init__(self, targets: Any, order: Ints, sizes: Ints, weights: Floats) -> None:
        self._rows = targets, order, sizes, weights

    def rows(self) -> Rows:
        _, _, sizes, weights = self._rows
        return np.flatnonzero((sizes > 0) & (weights > 0.0))

    def take(self, rows: Rows | slice) -> LabelOrderCurvature:
        targets, order, sizes, weights = self._rows
        return LabelOrderCurvature(
            targets[rows], order[rows], sizes[rows], weights[rows]
        )

    def apply(self, dscores: Floats) -> Floats:
        product = np.empty_like(dscores)
        curvature_kernel.apply(*self._rows, dscores, product)
        return product

    def diagonal(self) -> Floats:
        diagonal = np.empty(self._rows[1].shape)
        curvature_kernel.diagonal(*self._rows, diagonal)
        return diagonal

    def entries(self, first: int, out: Entries) -> tuple[int, int]:
        found: tuple[int, int] = curvature_kernel.entries(*self._rows, first, *out)
        return found

"""Losses of several scores per row: a set of dual variables, smoothed or not.

The loss of a row is the maximum of <b, m> over b in a set (``_sets.py``), with
violations m that are affine in the scores of labels. These are the scores z of the row,
or a linear map of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._base import (
    TIE_TOLERANCE,
    Curvature,
    Derivatives,
    Floats,
    PiecewiseQuadratic,
    Rows,
    RowwiseDual,
)
from ._leveling import FlowLoss
from ._sets import Codes, DualSet, KindsOfLabels, LabelPairs, Simplex

# Variables this near to the edge of the support lie on it.
_EDGE = 1e-9

# Kinks on a line are collected in pieces of so many.
_N_KINKS = 1 << 16


class JointHinge(FlowLoss):
    """The maximum over a set, without smoothing.

    Violations count as the largest within ``TIE_TOLERANCE``, relative to the largest
    score of the row if that exceeds one.

    Parameters
    ----------
    dual_set : DualSet
    features : ndarray of shape (l, k), optional
        Labels have the scores <features_l, z>; default z themselves. Of full row rank.
    """

    smooth = False
    has_envelope = True
    has_margin = True

    def __init__(self, dual_set: DualSet, features: Floats | None = None) -> None:
        self.set = dual_set
        self.features = features
        # From duals of scores to those of the scores of labels.
        self._lift = None if features is None else np.linalg.pinv(features)
        self.invariant = features is None

    def label_scores(self, scores: Floats) -> Floats:
        """Return the scores of the labels, of shape (n, l)."""
        if self.features is None:
            return scores
        return np.ascontiguousarray(scores @ self.features.T)

    def from_labels(self, dual: Floats) -> Floats:
        """Return the dual of scores for one of the scores of labels."""
        if self.features is None:
            return dual
        return np.ascontiguousarray(dual @ self.features)

    def value(self, scores: Floats, targets: Any, weights: Floats) -> float:
        z = self.label_scores(scores)
        rows = self.set.rows(targets, z.shape[1])
        return float(self.set.kernel.value(rows, z, weights))

    def subgradient(self, scores: Floats, targets: Any, weights: Floats) -> Floats:
        """Return the subgradient of the first worst label or pair, or zero if it is."""
        return self._subgradient(scores, None, targets, weights)

    def argsup(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> Floats:
        """Return the oracle's choice, below (3.45) and (3.57) of Yu (2009)."""
        dz = self.label_scores(dscores)
        return self._subgradient(scores, dz, targets, weights)

    def _subgradient(
        self, scores: Floats, dz: Floats | None, targets: Any, weights: Floats
    ) -> Floats:
        z = self.label_scores(scores)
        rows, u = self.set.rows(targets, z.shape[1]), np.empty_like(z)
        self.set.kernel.subgradient(rows, z, dz, weights, TIE_TOLERANCE, u)
        return self.from_labels(u)

    def kink_rows(self, scores: Floats, targets: Any) -> Rows:
        z = self.label_scores(scores)
        flags = np.empty(len(z), dtype=np.uint8)
        rows = self.set.rows(targets, z.shape[1])
        self.set.kernel.kinks(rows, z, TIE_TOLERANCE, flags)
        return np.flatnonzero(flags)

    def restrict(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> PiecewiseQuadratic:
        """Return the slope with its jumps at the kinks, by Alg. 3.4 of Yu (2009)."""
        z, dz = self.label_scores(scores), self.label_scores(dscores)
        rows = self.set.rows(targets, z.shape[1])
        kinks, jumps = np.empty((2, _N_KINKS + z.shape[1] ** 2 + 2))
        parts, slope, row = [], 0.0, 0
        while row < len(z):
            row, count, part = self.set.kernel.restrict(
                rows, z, dz, weights, TIE_TOLERANCE, row, kinks, jumps
            )
            parts.append((kinks[:count].copy(), jumps[:count].copy()))
            slope += part
        all_kinks, all_jumps = map(np.concatenate, zip(*parts, strict=True))
        return PiecewiseQuadratic(
            slope, 0.0, all_kinks, all_jumps, np.zeros(len(all_kinks))
        )

    def conjugate(self, dual: Floats, targets: Any, weights: Floats) -> float:
        """Return R*(u), finite where u is made of dual variables in the set.

        The duals that this class returns are; the caller answers for others.
        """
        if self._lift is not None:
            dual = self._feasible(dual, targets, weights)
        return self.set.conjugate(dual, targets, weights)

    def distance(self, dual: Floats, targets: Any, weights: Floats) -> float:
        if self._lift is None:
            return super().distance(dual, targets, weights)
        left = dual - self.from_labels(self._feasible(dual, targets, weights))
        positive = np.maximum(weights, np.finfo(float).tiny)[:, np.newaxis]
        return float(np.sqrt(np.sum(left * (left / positive))))

    def dual_variables(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        if self._lift is not None:
            dual = dual @ self._lift
        return self.set.variables(dual, targets, weights)

    def _feasible(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        """Return the dual of the scores of labels, in simplices again."""
        u = self.dual_variables(dual, targets, weights)
        u *= weights[:, np.newaxis]
        rows = np.arange(len(u))
        u[rows, targets] = 0.0
        u[rows, targets] = -u.sum(axis=1)
        return u

    def neutral_variables(self, targets: Any) -> Floats:
        return self.set.neutral(targets)

    def rowwise_dual(self, targets: Any) -> RowwiseDual | None:
        return self.set.rowwise(targets) if self.features is None else None

    def envelope(self, center: Floats, width: float) -> JointEnvelope:
        """Return the Moreau envelope around dual variables."""
        return JointEnvelope(self, center, width)

    def level_near_optimum(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        return self.set.level_near_optimum(dual, targets, weights)


class MulticlassHinge(JointHinge):
    """Multiclass hinge with label costs: see ``Simplex``."""

    def __init__(self, costs: Floats, rescaling: str = "margin") -> None:
        super().__init__(Simplex(costs, rescaling))


class MultilabelHinge(JointHinge):
    """Multilabel hinge with costs of labels: see ``KindsOfLabels``."""

    def __init__(self, costs: Floats) -> None:
        super().__init__(KindsOfLabels(costs))


class LabelPairHinge(JointHinge):
    """Multilabel hinge with costs of pairs of labels: see ``LabelPairs``."""

    def __init__(self, costs: Floats) -> None:
        super().__init__(LabelPairs(costs))


class JointEnvelope(FlowLoss):
    """Moreau envelope of a joint hinge around dual variables.

    It subtracts ``width / 2 * ||b - center||²`` inside the maximum, which then is
    attained at the projection of center + m / width onto the set: a continuously
    differentiable, piecewise quadratic function of m, whose gradient is a feasible dual
    point of the hinge itself.

    Parameters
    ----------
    loss : JointHinge
    center : ndarray
        Dual variables in their set.
    width : float
        Positive.
    """

    smooth = True

    def __init__(self, loss: JointHinge, center: Floats, width: float) -> None:
        self._loss = loss
        self._kernel = loss.set.kernel
        self.center = center
        self.width = width
        self.invariant = loss.invariant

    def value(self, scores: Floats, targets: Any, weights: Floats) -> float:
        return self.evaluate(scores, targets, weights)[0]

    def subgradient(self, scores: Floats, targets: Any, weights: Floats) -> Floats:
        """Return the gradient, of the shape of the scores."""
        return self.evaluate(scores, targets, weights)[1]

    def evaluate(
        self, scores: Floats, targets: Any, weights: Floats
    ) -> tuple[float, Floats]:
        z = self._loss.label_scores(scores)
        rows, u = self._loss.set.rows(targets, z.shape[1]), np.empty_like(z)
        center = self.center.ravel()
        value = self._kernel.envelope(rows, z, center, weights, self.width, u)
        return value, self._loss.from_labels(u)

    def conjugate(self, dual: Floats, targets: Any, weights: Floats) -> float:
        """Return R*(u) of the hinge + width / 2 * sum_i s_i ||b_i - center_i||²."""
        if not self._loss.set.is_determined:
            name = type(self._loss.set).__name__
            raise TypeError(f"The envelope over {name} has no conjugate of scores.")
        shift = self._loss.dual_variables(dual, targets, weights)
        shift -= self.center
        square = float(weights @ np.einsum("ij,ij->i", shift, shift))
        return self._loss.conjugate(dual, targets, weights) + 0.5 * self.width * square

    def curvature(
        self, scores: Floats, targets: Any, weights: Floats
    ) -> JointCurvature:
        """Return generalized second derivatives.

        Variables at the edge of the support count as inside, as for ``HingeEnvelope``.
        """
        z = self._loss.label_scores(scores)
        codes = np.empty(self.center.shape, dtype=np.uint8)
        self._kernel.support(
            self._loss.set.rows(targets, z.shape[1]),
            z,
            self.center.ravel(),
            weights,
            self.width,
            _EDGE,
            codes.ravel(),
        )
        factors = weights / self.width
        return JointCurvature(self._loss, targets, codes, factors, z.shape[1])

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> Derivatives:
        z, dz = self._loss.label_scores(scores), self._loss.label_scores(dscores)
        rows, center = self._loss.set.rows(targets, z.shape[1]), self.center.ravel()

        def at(step: float) -> tuple[float, float]:
            slope, curvature = self._kernel.envelope_slope(
                rows, z, dz, center, weights, self.width, step
            )
            return slope, curvature

        return at


class JointCurvature(Curvature):
    """Second derivatives, a k x k matrix a row: factor Dᵀ (I - sum_g c_g c_gᵀ) D.

    D maps a row of scores to the rises of its violations, of which those in the support
    of b count, and those of a group g with a fixed sum of b are centered.

    Parameters
    ----------
    loss : JointHinge
    targets : ndarray of shape (n, ...)
    codes : ndarray of uint8
        Groups of variables in the support, 0 for the others (``support`` in
        ``joint.pxi``).
    factors : ndarray of shape (n,)
    n_labels : int
        Number of scores of labels, threshold included.
    """

    def __init__(
        self,
        loss: JointHinge,
        targets: Any,
        codes: Codes,
        factors: Floats,
        n_labels: int,
    ) -> None:
        self._loss = loss
        self._kernel = loss.set.kernel
        self._targets = targets
        self._codes = codes
        self._factors = factors
        self._n_labels = n_labels

    def rows(self) -> Rows:
        return self._loss.set.positive_rows(self._codes, self._targets)

    def take(self, rows: Rows | slice) -> JointCurvature:
        codes = self._loss.set.take(self._codes, self._targets, rows)
        return JointCurvature(
            self._loss, self._targets[rows], codes, self._factors[rows], self._n_labels
        )

    def _arguments(self) -> tuple[Any, Codes, Floats]:
        rows = self._loss.set.rows(self._targets, self._n_labels)
        return rows, self._codes.ravel(), self._factors

    def apply(self, dscores: Floats) -> Floats:
        product = self._loss.label_scores(dscores)
        self._kernel.apply_curvature(*self._arguments(), product)
        return self._loss.from_labels(product)

    def diagonal(self) -> Floats:
        features = self._loss.features
        if features is None:
            diagonal = np.empty((len(self._factors), self._n_labels))
            self._kernel.curvature_diagonal(*self._arguments(), diagonal)
            return diagonal
        arguments, columns = self._arguments(), []
        for column in features.T:
            product = np.tile(column, (len(self._factors), 1))
            self._kernel.apply_curvature(*arguments, product)
            columns.append(product @ column)
        return np.stack(columns, axis=1)

    def total(self) -> Floats:
        k = self._n_labels
        blocks = np.zeros((k, k, 1, 1))
        self._add_gram(np.ones((len(self._factors), 1)), self, blocks)
        upper = blocks[:, :, 0, 0]
        total = upper + np.triu(upper, 1).T
        features = self._loss.features
        return total if features is None else features.T @ total @ features

    def add_gram(self, X: Floats, rows: slice, out: Floats) -> None:
        some = self.take(rows)
        features = self._loss.features
        if features is None:
            self._add_gram(X, some, out)
            return
        k, d = self._n_labels, X.shape[1]
        blocks = np.zeros((k, k, d, d))
        self._add_gram(X, some, blocks)
        for j in range(k):
            blocks[j + 1 :, j] = blocks[j, j + 1 :]
        out += np.einsum("ja,jmfg,mb->abfg", features, blocks, features, optimize=True)

    @staticmethod
    def _add_gram(X: Floats, some: JointCurvature, out: Floats) -> None:
        rows, codes, factors = some._arguments()
        some._kernel.gram(rows, X, codes, factors, out)

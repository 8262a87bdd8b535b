"""Linear maps from scores and targets to the arguments of maxima, and their adjoints.

The loss of one score per row is a maximum over v of v t - h(v); t is an affine function
of z, which ``Margin``, ``Residual`` and ``Counts`` define. ``Features`` and
``Thresholds`` are linear maps that any set can be combined with.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from .. import lapack
from ..rounding import rounding
from ._base import Floats, Rows
from ._composition import ScoreMap
from ._curvature import Curvature, DiagonalCurvature

# Products skip zeros if at most 10 % of the features are nonzero. docs/constants.md has
# the figures.
_SPARSE = 0.1


class Margin:
    """The map t = offset - y z of targets -1 or +1, with u = -weights y v.

    Parameters
    ----------
    offset : float
        Zero or one.

    Attributes
    ----------
    labels : bool
        Whether targets are labels of -1 or +1, which multiply scores.
    """

    labels = True

    def __init__(self, offset: float) -> None:
        self.offset = offset

    def argument(self, scores: Floats, targets: Floats) -> Floats:
        """Return t as a new array."""
        t = self.change(scores, targets)
        if self.offset:
            t += self.offset
        return t

    def change(self, dscores: Floats, targets: Floats) -> Floats:
        """Return the change of t for a change of scores."""
        change = dscores * targets
        return np.negative(change, out=change)

    def dual(self, v: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return the subgradient u that corresponds to dual variables v."""
        u = weights * targets
        u *= v
        return np.negative(u, out=u)

    def weighted(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return weights * v for u = ``dual``."""
        return -(dual * targets)

    def slack(self, targets: Floats) -> Floats | float:
        """Return a bound of the rounding error of v below the box."""
        return 0.0


class Residual(Margin):
    """The map t = y - z, with u = -weights v."""

    labels = False

    def __init__(self) -> None:
        super().__init__(1.0)

    def argument(self, scores: Floats, targets: Floats) -> Floats:
        return targets - scores

    def change(self, dscores: Floats, targets: Floats) -> Floats:
        return -dscores

    def dual(self, v: Floats, targets: Floats, weights: Floats) -> Floats:
        return -(weights * v)

    def weighted(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        return -dual


class Counts(Margin):
    """The map t = z for expected counts v; the loss has the further term -y z."""

    labels = False

    def __init__(self) -> None:
        super().__init__(0.0)

    def argument(self, scores: Floats, targets: Floats) -> Floats:
        return scores.copy()

    def change(self, dscores: Floats, targets: Floats) -> Floats:
        return dscores

    def dual(self, v: Floats, targets: Floats, weights: Floats) -> Floats:
        return weights * (v - targets)

    def weighted(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        return dual + weights * targets

    def slack(self, targets: Floats) -> Floats:
        return rounding(1.0) * targets


class Features(ScoreMap):
    """The map from scores z to scores <phi_l, z> of labels l.

    Parameters
    ----------
    features : ndarray of shape (l, k)
        The matrix phi. If its rows are linearly dependent, a dual point of scores does
        not determine a dual point of the labels.
    """

    is_identity = False

    def __init__(self, features: Floats) -> None:
        self.features = features
        self.is_injective = bool(lapack.matrix_rank(features) == len(features))
        # The pseudoinverse maps dual points of scores to dual points of labels' scores.
        self._lift = lapack.pinv(features)
        self._down, self._up = _Product(features), _Product(features.T)
        self._own = _own_columns(features)

    def forward(self, scores: Floats) -> Floats:
        return self._down(scores)

    def inputs(self, scores: Floats, targets: Any, weights: Floats) -> Any:
        return self.forward(scores), targets, weights

    def adjoint(self, dual: Floats, scores: Floats) -> Floats:
        return self._up(dual)

    def duals(self, dual: Floats, targets: Any, weights: Floats) -> Any:
        if self._own is None:
            return dual @ self._lift, targets, weights
        return np.ascontiguousarray(dual[:, self._own]), targets, weights

    def lifted(self, sums: Floats) -> Floats:
        return sums @ self._lift

    def least(self, outputs: Floats) -> Floats:
        return self._lift @ outputs

    def curvature(self, curvature: Curvature, scores: Floats) -> Curvature:
        return CurvatureOfFeatures(curvature, self.features)


class _Product:
    """The map from rows x of an array to rows A x, for a matrix A.

    Parameters
    ----------
    matrix : ndarray of shape (l, k)
        A.
    """

    def __init__(self, matrix: Floats) -> None:
        few = np.count_nonzero(matrix) <= _SPARSE * matrix.size
        self._matrix: Any = sparse.csr_array(matrix) if few else matrix

    def __call__(self, x: Floats) -> Floats:
        return np.ascontiguousarray(x @ self._matrix.T)


def _own_columns(features: Floats) -> Rows | None:
    """Return for each label a column that is one at this label only, if all exist.

    In a hierarchy, this column is the node of the leaf.
    """
    alone = np.count_nonzero(features, axis=0) == 1
    label, column = np.nonzero((features == 1.0) & alone)
    found, first = np.unique(label, return_index=True)
    return column[first] if len(found) == len(features) else None


class CurvatureOfFeatures(Curvature):
    """Second derivatives Phiᵀ H Phi by scores, for H by the scores of labels.

    Parameters
    ----------
    curvature : Curvature
    features : ndarray of shape (l, k)
    """

    def __init__(self, curvature: Curvature, features: Floats) -> None:
        self._H, self._features = curvature, features
        self._down, self._up = _Product(features), _Product(features.T)

    def rows(self) -> Rows:
        return self._H.rows()

    def take(self, rows: Rows | slice) -> CurvatureOfFeatures:
        return CurvatureOfFeatures(self._H.take(rows), self._features)

    def apply(self, dscores: Floats) -> Floats:
        return self._up(self._H.apply(self._down(dscores)))

    def diagonal(self) -> Floats:
        a = self._H.centered()
        if a is not None:
            total = a.sum(axis=1, keepdims=True)
            sums = self._up(a)
            less = np.divide(sums, total, out=np.zeros_like(sums), where=total > 0.0)
            # For a label without common nodes the difference is zero up to rounding.
            diagonal: Floats = np.maximum(
                _Product(self._features.T**2)(a) - sums * less, 0.0
            )
            return diagonal
        n, columns = len(self._H.diagonal()), []
        for column in self._features.T:
            columns.append(self._H.apply(np.tile(column, (n, 1))) @ column)
        return np.stack(columns, axis=1)

    def total(self) -> Floats:
        return self._features.T @ self._H.total() @ self._features

    def add_gram(self, X: Floats, rows: slice, out: Floats) -> None:
        m, d = len(self._features), X.shape[1]
        blocks = np.zeros((m, m, d, d))
        self._H.add_gram(X, rows, blocks)
        for j in range(m):
            blocks[j + 1 :, j] = blocks[j, j + 1 :]
        phi = self._features
        out += np.einsum("ja,jmfg,mb->abfg", phi, blocks, phi, optimize=True)


class Thresholds(ScoreMap):
    """The scores of a row for its class being above k, as rows of a binary loss.

    Classes are numbered from zero to K - 1, and the targets of the binary loss are 1
    where the class is above k, and else -1.

    Parameters
    ----------
    immediate : bool
        Whether only the one or two thresholds next to the class of a row count, instead
        of all. Optimal thresholds are in ascending order if all count; otherwise they
        may be in any order.
    """

    joint = True
    is_identity = False

    def __init__(self, *, immediate: bool = False) -> None:
        self.immediate = immediate

    def forward(self, scores: Floats) -> Floats:
        return scores.ravel()

    def inputs(self, scores: Floats, targets: Any, weights: Floats) -> Any:
        above = targets[:, np.newaxis] - np.arange(scores.shape[1])
        shares = np.broadcast_to(weights[:, np.newaxis], scores.shape)
        if self.immediate:
            shares = np.where((above == 0.0) | (above == 1.0), shares, 0.0)
        signs = np.where(above > 0.0, 1.0, -1.0)
        return scores.ravel(), signs.ravel(), shares.ravel()

    def adjoint(self, dual: Floats, scores: Floats) -> Floats:
        return dual.reshape(scores.shape)

    def duals(self, dual: Floats, targets: Any, weights: Floats) -> Any:
        return self.inputs(dual, targets, weights)

    def curvature(self, curvature: Curvature, scores: Floats) -> Curvature:
        return DiagonalCurvature(curvature.diagonal().reshape(scores.shape))

"""Block coordinate descent steps that use the matrix of a quadratic model."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from .. import lapack
from ..kernels import coordinate_descent
from ..losses._base import Floats, Rows
from ..regularizers import GroupPenalty
from ..rounding import EPS, ROUNDED

# Matrix products and factorizations do eight times as much work in a time as sweeps.
# docs/constants.md has the figures.
_FASTER = 8

# Shares of a Newton step on the nonzero groups that are tried. docs/constants.md has
# the figures.
_SHARES = (1.0, 0.3, 0.1)


class GroupStep:
    """Block coordinate descent on the matrix H (Yuan and Lin 2006; Simon et al. 2013).

    Proximal steps of a group use the largest eigenvalue of its block of H. Sweeps
    alternate with Newton steps on the nonzero coordinates, where the norms of groups
    are smooth. H is the Kronecker product of a metric of the scores and a matrix of the
    features, and coefficients have a row for each score.

    Parameters
    ----------
    metric : ndarray of shape (k, k)
        The metric, or one number where H is no product.
    rows : ndarray of shape (q, n)
        A, where the matrix of the features is A Aᵀ; or this matrix itself.
    penalty : GroupPenalty
        Penalty of these coordinates, multiplied by alpha. Each column of coefficients
        is in one group.
    is_formed : bool
        Whether ``rows`` is the matrix. Otherwise it is formed once sweeps over A have
        cost as much.
    """

    def __init__(
        self, metric: Floats, rows: Floats, penalty: GroupPenalty, *, is_formed: bool
    ) -> None:
        self._rows = np.ascontiguousarray(rows, dtype=np.float64)
        self._is_formed = is_formed
        self._metric = np.ascontiguousarray(metric)
        self._penalty = penalty
        labels = penalty.labels[: len(rows)]
        self._order = np.argsort(labels, kind="stable")
        sizes = np.bincount(labels, minlength=len(penalty.norm))
        self._starts = np.append(0, np.cumsum(sizes))
        blocks = [self._block(own) for own in np.split(self._order, self._starts[1:-1])]
        # The largest eigenvalue of a number is itself.
        bounds = [lapack.eigvalsh(b)[-1] if len(b) > 1 else b.sum() for b in blocks]
        largest = lapack.eigvalsh(self._metric)[-1]
        # A matrix that vanishes may have a negative eigenvalue by rounding.
        self._bounds = np.maximum(bounds, 0.0) * largest * (1.0 + ROUNDED)
        self._blocks = np.concatenate([block.ravel() for block in blocks])
        own = np.empty(len(rows))
        own[self._order] = np.concatenate([b.diagonal() for b in blocks])
        diagonal = np.outer(self._metric.diagonal(), own)
        self._diagonal = np.maximum(diagonal, 0.0).ravel()

    def _block(self, own: Rows) -> Floats:
        """Return a block of the matrix of the features."""
        if self._is_formed:
            return self._rows[np.ix_(own, own)]
        return self._rows[own] @ self._rows[own].T

    def minimize(
        self, gradient: Floats, start: Floats, tol: float, limit: int
    ) -> Floats:
        """Return the minimizer v, as specified in ``Step``."""
        result = start.T.copy()
        v = result.reshape(len(self._metric), -1)
        slopes = gradient.T.copy().reshape(v.shape)
        patience = 1
        while limit > 0:
            # Systems are solved, and matrices formed, once sweeps have cost as much.
            q, image = len(self._rows), None
            cost = float(np.count_nonzero(v) ** 3 / (3.0 * len(v) * q * q))
            if not self._is_formed:
                cost = 0.5 * q
                image = np.zeros((len(v), self._rows.shape[1]))
            most = patience * (1 + int(cost / _FASTER))
            left, taken = self._sweep(slopes, image, v, tol, min(limit, most))
            limit -= taken
            if taken < most or left <= max(tol, self._rounding(v)):
                break
            if image is None:
                # Steps that do not decrease the model are tried less and less often.
                patience *= 1 if self._newton(slopes, v) else 2
            else:
                slopes += image @ self._rows.T
                self._rows, self._is_formed = self._rows @ self._rows.T, True
        return result.T

    def _sweep(
        self, slopes: Floats, image: Floats | None, v: Floats, tol: float, limit: int
    ) -> tuple[float, int]:
        p = self._penalty
        left, taken = coordinate_descent.sweep_groups(
            *(self._rows, self._blocks, self._metric, slopes, image, v),
            *(self._order, self._starts, self._bounds, p.l1, p.norm, p.square),
            *(p.side.reshape(v.shape), tol, limit),
        )
        return float(left), int(taken)

    def _rounding(self, v: Floats) -> float:
        """Return an estimate of rounding errors of slopes, by the size of H v."""
        roots = np.sqrt(self._diagonal)
        return float(EPS * roots.max(initial=0.0) * (roots @ np.abs(v.ravel())))

    def _newton(self, slopes: Floats, v: Floats) -> bool:
        """Take a Newton step on the nonzero coordinates; update the slopes.

        The step is skipped, and False returned, if the model does not decrease.
        """
        p, x = self._penalty, v.ravel()
        free = (p.l1 + p.norm == 0.0)[p.labels]
        face = np.flatnonzero((free | (x != 0.0)) & (self._diagonal > 0.0))
        w, own = x[face], p.labels[face]
        norms = np.where(p.norm > 0.0, p.norms(x), 1.0)
        bend = p.norm[own] / norms[own]
        right = -slopes.ravel()[face] - p.gradient(x)[face]
        score, place = np.divmod(face, len(self._rows))
        matrix = self._rows[np.ix_(place, place)]
        matrix *= self._metric[np.ix_(score, score)]
        # The Hessian of b ||w|| is b (I - w wᵀ / ||w||²) / ||w||.
        unit = np.sqrt(bend) * w / norms[own]
        order = np.argsort(own, kind="stable")
        ends = np.flatnonzero(np.diff(own[order])) + 1
        for which in np.split(order, ends):
            matrix[np.ix_(which, which)] -= np.outer(unit[which], unit[which])
        matrix[np.diag_indices_from(matrix)] += bend + p.square[own]
        matrix[np.diag_indices_from(matrix)] *= 1.0 + ROUNDED
        try:
            factor = linalg.cho_factor(matrix, check_finite=False)
        except linalg.LinAlgError:
            return False
        step = linalg.cho_solve(factor, right, check_finite=False)
        value = p.value(x)
        signed = (p.l1[own] > 0.0) | (p.side[face] != 0.0)
        for share in _SHARES:
            new = w + share * step
            new[signed & (new * w < 0.0)] = 0.0
            moved = np.zeros_like(v)
            moved.flat[face] = new - w
            change = self._metric @ (moved @ self._rows)
            fall = float(np.vdot(slopes + 0.5 * change, moved))
            if fall + p.value((v + moved).ravel()) - value < 0.0:
                v.flat[face] = new
                slopes += change
                return True
        return False

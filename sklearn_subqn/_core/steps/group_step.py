"""Block coordinate descent steps that use the matrix of a quadratic model."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from .. import lapack
from ..kernels import coordinate_descent
from ..losses._base import Floats, Mask
from ..regularizers import GroupPenalty
from ..rounding import EPS, ROUNDED

# The system of the nonzero groups is solved after 20 sweeps over groups.
# docs/constants.md has the figures.
_SWEEPS = 20

# Shares of a Newton step on the nonzero groups that are tried.
_SHARES = (1.0, 0.3, 0.1)


class GroupStep:
    """Block coordinate descent on the matrix H (Yuan and Lin 2006; Simon et al. 2013).

    Proximal steps of a group use the largest eigenvalue of its block of H. Sweeps
    alternate with Newton steps on the nonzero coordinates, where the norms of groups
    are smooth.

    Parameters
    ----------
    gram : ndarray of shape (q, q)
        H of the coordinates that may change, ordered by scores, then features.
    penalty : GroupPenalty
        Penalty of these coordinates, multiplied by alpha.
    inside : ndarray of bool of shape (m, k)
        Mask of the coordinates that may change.
    """

    def __init__(self, gram: Floats, penalty: GroupPenalty, inside: Mask) -> None:
        self._gram = np.ascontiguousarray(gram, dtype=np.float64)
        self._penalty, self._inside = penalty, inside
        self._order = np.argsort(penalty.labels, kind="stable")
        sizes = np.bincount(penalty.labels, minlength=len(penalty.norm))
        self._starts = np.append(0, np.cumsum(sizes))
        bounds = np.zeros(len(sizes))
        single = sizes == 1
        own = self._order[self._starts[:-1][single]]
        bounds[single] = self._gram[own, own]
        for g in np.flatnonzero(sizes > 1):
            own = self._order[self._starts[g] : self._starts[g + 1]]
            block = self._gram[np.ix_(own, own)]
            bounds[g] = lapack.eigvalsh(block)[-1] * (1.0 + ROUNDED)
        self._bounds = bounds

    def minimize(
        self, gradient: Floats, start: Floats, tol: float, limit: int
    ) -> Floats:
        """Return the minimizer v, as specified in ``Step``."""
        result, inside = start.T.copy(), self._inside.T
        v, slopes = result[inside], gradient.T[inside]
        p = self._penalty
        while limit > 0:
            left, taken = coordinate_descent.sweep_groups(
                *(self._gram, slopes, v, self._order, self._starts, self._bounds),
                *(p.l1, p.norm, p.square, p.side, tol, min(limit, _SWEEPS)),
            )
            limit -= taken
            if left <= max(tol, self._rounding(v)):
                break
            self._newton(slopes, v)
        result[inside] = v
        return result.T

    def _rounding(self, v: Floats) -> float:
        """Return an estimate of rounding errors of slopes, by the size of H v."""
        roots = np.sqrt(np.maximum(self._gram.diagonal(), 0.0))
        return float(EPS * roots.max(initial=0.0) * (roots @ np.abs(v)))

    def _newton(self, slopes: Floats, v: Floats) -> None:
        """Take a Newton step on the nonzero coordinates; update the slopes.

        The step may be shortened, and is skipped if the model does not decrease.
        """
        p = self._penalty
        free = (p.l1 + p.norm == 0.0)[p.labels]
        face = np.flatnonzero(free | (v != 0.0))
        face = face[self._gram[face, face] > 0.0]
        w, own = v[face], p.labels[face]
        norms = np.where(p.norm > 0.0, p.norms(v), 1.0)
        bend = p.norm[own] / norms[own]
        right = -slopes[face] - p.gradient(v)[face]
        matrix = self._gram[np.ix_(face, face)]
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
            return
        step = linalg.cho_solve(factor, right, check_finite=False)
        value = p.value(v)
        signed = (p.l1[own] > 0.0) | (p.side[face] != 0.0)
        for share in _SHARES:
            new = w + share * step
            new[signed & (new * w < 0.0)] = 0.0
            moved = new - w
            change = self._gram[:, face] @ moved
            trial = v.copy()
            trial[face] = new
            fall = float((slopes[face] + 0.5 * change[face]) @ moved)
            if fall + p.value(trial) - value < 0.0:
                v[:] = trial
                slopes += change
                return

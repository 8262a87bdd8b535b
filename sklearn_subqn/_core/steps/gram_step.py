"""Coordinate descent steps that use the matrix of a quadratic model."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy import linalg

from ..kernels import coordinate_descent
from ..losses._base import Floats, Mask
from ..objectives.objective import Point
from ..rounding import EPS, MOST_STEPS, ROUNDED
from .column_descent import SHARES

# If sweeps do not converge, the linear system of the nonzero coordinates is solved, and
# solved again whenever coordinates become zero. With nearly collinear columns they may
# become zero one at a time, so the limit on systems is 10,000 divided by the number of
# coordinates. docs/constants.md has the figures.
_FACES = 10_000

# If there are more nonzero coordinates than the rank of H, their system is solved only
# in the last 10 % of the sweeps. docs/constants.md has the figures.
_PATIENCE = 0.9


class Step(Protocol):
    """A method that minimizes a model."""

    def minimize(
        self, gradient: Floats, start: Floats, tol: float, limit: int
    ) -> Floats:
        """Return the minimizer v, of the shape (m, k) of ``start``.

        ``gradient`` is the gradient of the smooth part of the model at ``start``. The
        last row holds the intercepts of the k scores, if there are any.
        """
        ...


class GramStep:
    """Coordinate descent on the matrix H.

    If sweeps converge slowly, they alternate with solving the linear system of the
    nonzero coordinates.

    Parameters
    ----------
    gram : ndarray of shape (q, q)
        H of the coordinates that may change, ordered by scores, then features.
    l1, l2 : ndarray of shape (q,)
        Factors of the penalties of these coordinates.
    inside : ndarray of bool of shape (m, k)
        Mask of the coordinates that may change.
    rank : int
        Upper bound of the rank of H. If more coordinates are nonzero, their system
        without the penalty ``l2`` is singular, and is solved only in the last sweeps.
    """

    def __init__(
        self, gram: Floats, l1: Floats, l2: Floats, inside: Mask, rank: int
    ) -> None:
        self._gram = np.ascontiguousarray(gram)
        # Rounding may give H negative eigenvalues along changes common to all scores.
        # With features in large units, steps then diverge: without this correction, the
        # objective on the classes of covtype without scaling, alpha 1e-6, ends 10 % too
        # high.
        self._gram[np.diag_indices(len(gram))] *= 1.0 + ROUNDED
        self._l1, self._l2 = l1, l2
        self._inside = inside
        self._most = rank if l2.max(initial=0.0) == 0.0 else len(gram)
        # A common change of all intercepts has no effect, so the last of several
        # intercepts is left out of systems.
        self._solved = np.ones(len(gram), dtype=bool)
        free = np.flatnonzero((l1 == 0.0) & (l2 == 0.0))
        if len(free) > 1:
            self._solved[free[-1]] = False

    def minimize(
        self, gradient: Floats, start: Floats, tol: float, limit: int
    ) -> Floats:
        v, inside = start.T.copy(), self._inside.T
        v[inside] = self._descend(gradient.T[inside], v[inside], tol, limit)
        return v.T

    def _descend(
        self, gradient: Floats, start: Floats, tol: float, limit: int
    ) -> Floats:
        v, slopes = start.copy(), gradient.copy()
        n_rounds = max(1, limit // MOST_STEPS)
        for n in range(n_rounds):
            violation, _ = coordinate_descent.sweep_gram(
                self._gram, slopes, v, self._l1, self._l2, tol, MOST_STEPS
            )
            if violation <= max(tol, self._rounding(v)):
                break
            if n + 1 <= _PATIENCE * n_rounds and np.count_nonzero(v) > self._most:
                continue
            for _ in range(max(1, _FACES // max(len(v), 1))):
                if not self._solve_face(slopes, v):
                    break
        return v

    def _rounding(self, v: Floats) -> float:
        """Return an estimate of the rounding errors of slopes from the size of H v."""
        roots = np.sqrt(np.maximum(self._gram.diagonal(), 0.0))
        return float(EPS * roots.max() * (roots @ np.abs(v)))

    def _solve_face(self, slopes: Floats, v: Floats) -> bool:
        """Move v towards the minimizer with the same zeros and signs; update slopes.

        Returns whether a coordinate became zero.
        """
        face = np.flatnonzero(self._solved & ((v != 0.0) | (self._l1 == 0.0)))
        face = face[self._gram[face, face] > 0.0]
        matrix = self._gram[np.ix_(face, face)]
        diagonal = np.einsum("ii->i", matrix)
        diagonal += self._l2[face]
        right = -slopes[face] - self._l2[face] * v[face]
        right -= self._l1[face] * np.sign(v[face])
        try:
            factor = linalg.cho_factor(matrix, check_finite=False)
        except linalg.LinAlgError:
            return False
        p = linalg.cho_solve(factor, right, check_finite=False)
        w, l1, l2 = v[face], self._l1[face], self._l2[face]
        crossing = (w * p < 0.0) & (l1 > 0.0)
        first = float((-w[crossing] / p[crossing]).min(initial=1.0))
        for length in (*SHARES, first):
            step = length * p
            vanishing = (w * (w + step) <= 4.0 * EPS * w * w) & (w != 0.0) & (l1 > 0.0)
            step = np.where(vanishing, -w, step)
            change = self._gram[:, face] @ step
            slope = float(
                (slopes[face] + l2 * w + 0.5 * (change[face] + l2 * step)) @ step
            )
            if slope + float(l1 @ (np.abs(w + step) - np.abs(w))) < 0.0:
                v[face] = w + step
                slopes += change
                return bool(vanishing.any())
        return False


def damping(point: Point, longest: float) -> Floats:
    """Return the damping that models add to second derivatives, shaped like the scores.

    For badly misclassified rows a loss is nearly linear, with almost no curvature, so
    Newton steps can be arbitrarily long. Damping raises the curvature of a row to at
    least its slope divided by ``longest``, the longest step that the row alone may
    cause, or by the loss's ``curvature_radius``.
    """
    o = point.objective
    limits = np.maximum(
        o.risk.oracle.curvature_radius(point.scores, o.targets), longest
    )
    slopes = np.abs(point.dual).T / limits
    slopes = np.ascontiguousarray(slopes.T)
    return np.maximum(slopes - point.curvature.diagonal(), 0.0)

"""Block coordinate descent steps that use the matrix of a quadratic model."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from .. import lapack
from ..kernels import coordinate_descent
from ..losses._base import Floats, Rows
from ..regularizers import GroupPenalty
from ..rounding import EPS, ROUNDED

# Matrix products and factorizations are eight times as fast as sweeps, per operation.
# docs/constants.md has the figures.
_FASTER = 8

# Factors of a Newton step on the nonzero groups that are tried in turn.
# docs/constants.md has the figures.
_SHARES = (1.0, 0.3, 0.1)

# Larger systems of several scores are solved by conjugate gradients.
# docs/constants.md has the figures.
_MOST_SOLVED = 600

# Conjugate gradients stop at this squared norm of the residual relative to the first
# one, in the norm of the preconditioner. docs/constants.md has the figures.
_ACCURACY = 0.01


class GroupStep:
    """Block coordinate descent on the matrix H (Yuan and Lin 2006; Simon et al. 2013).

    Proximal steps of a group use the largest eigenvalue of its block of H. Sweeps
    alternate with Newton steps on the nonzero coordinates, where the norms of groups
    are smooth. H is the Kronecker product of a metric of the scores and a matrix of the
    features, and coefficients have a row for each score.

    Parameters
    ----------
    metric : ndarray of shape (k, k)
        The metric, or one number if H is not a Kronecker product.
    rows : ndarray of shape (q, n)
        A, where the matrix of the features is A Aᵀ; or this matrix itself.
    penalty : GroupPenalty
        Penalty of these coordinates, multiplied by alpha. Each column of coefficients
        is in one group.
    is_formed : bool
        Whether ``rows`` is the matrix. Otherwise the matrix is formed once sweeps over
        A have cost as much as forming it.
    """

    def __init__(
        self, metric: Floats, rows: Floats, penalty: GroupPenalty, *, is_formed: bool
    ) -> None:
        self._forms = is_formed
        self._metric = np.ascontiguousarray(metric)
        values, self._basis = lapack.eigh(self._metric)
        # Scores of equal eigenvalues have the same systems.
        self._eigenvalues, self._which = np.unique(values, return_inverse=True)
        self._rows, self._is_formed = np.empty((0, 0)), is_formed
        self._bounds = self._blocks = self._squares = np.empty(0)
        self.extend(rows, penalty)

    def extend(self, rows: Floats, penalty: GroupPenalty) -> None:
        """Replace the penalty, perhaps by one with more groups.

        These have the last numbers and the last of ``rows``, which the constructor
        describes. A matrix that was formed from A is kept only for the same groups.
        """
        rows, n = np.ascontiguousarray(rows, dtype=np.float64), len(self._rows)
        if len(rows) > n:
            self._rows, self._is_formed = rows, self._forms
        self._penalty = penalty
        labels = penalty.labels[: len(rows)]
        self._order = np.argsort(labels, kind="stable")
        sizes = np.bincount(labels, minlength=len(penalty.norm))
        self._starts = np.append(0, np.cumsum(sizes))
        groups = np.split(self._order, self._starts[1:-1])[len(self._bounds) :]
        blocks = [self._block(own) for own in groups]
        # A block of size one is its own largest eigenvalue.
        bounds = [lapack.eigvalsh(b)[-1] if len(b) > 1 else b.sum() for b in blocks]
        # The largest eigenvalue of a zero matrix may be negative by rounding.
        largest = np.maximum(bounds, 0.0) * self._eigenvalues[-1] * (1.0 + ROUNDED)
        self._bounds = np.append(self._bounds, largest)
        self._blocks = np.concatenate([self._blocks, *(b.ravel() for b in blocks)])
        squares = np.concatenate([self._squares, *(b.diagonal() for b in blocks)])
        self._squares = squares
        own = np.empty(len(rows))
        own[self._order] = np.maximum(squares, 0.0)
        self._diagonal = np.outer(self._metric.diagonal(), own).ravel()

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
            # A system is solved, or a matrix formed, once sweeps have cost as much.
            q, image = len(self._rows), None
            used = float(np.count_nonzero(v))
            cost = used**3 / (3.0 * len(v) * q * q)
            if self._takes_cg(used):
                # One block is factorized for each distinct eigenvalue of the metric.
                cost *= len(self._eigenvalues) / len(v) ** 3
            if not self._is_formed:
                cost = 0.5 * q
                image = np.zeros((len(v), self._rows.shape[1]))
            most = patience * (1 + int(cost / _FASTER))
            left, taken = self._sweep(slopes, image, v, tol, min(limit, most))
            limit -= taken
            if taken < most or left <= max(tol, self._rounding(v)):
                break
            if image is None:
                # Newton steps that do not decrease the model are tried less and less
                # often.
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
        """Return an estimate of the rounding errors of slopes from the size of H v."""
        roots = np.sqrt(self._diagonal)
        return float(EPS * roots.max(initial=0.0) * (roots @ np.abs(v.ravel())))

    def _takes_cg(self, size: float) -> bool:
        """Whether a system of this size is solved by conjugate gradients."""
        return len(self._metric) > 1 and size > _MOST_SOLVED

    def _newton(self, slopes: Floats, v: Floats) -> bool:
        """Take a Newton step on the nonzero coordinates; update the slopes.

        The step is skipped, and False returned, if the model does not decrease.
        """
        p, x = self._penalty, v.ravel()
        free = (p.l1 + p.norm == 0.0)[p.labels]
        face = np.flatnonzero((free | (x != 0.0)) & (self._diagonal > 0.0))
        w, own = x[face], p.labels[face]
        norms = p.norms(x)
        norms[norms == 0.0] = 1.0
        bend = p.norm / norms
        right = -slopes.ravel()[face] - p.gradient(x)[face]
        # The Hessian of b ||w|| is b (I - w wᵀ / ||w||²) / ||w||.
        unit = np.sqrt(bend)[own] * w / norms[own]
        solve = self._solve_by_cg if self._takes_cg(len(face)) else self._solve
        try:
            step = solve(face, bend + p.square, unit, right)
        except linalg.LinAlgError:
            return False
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

    def _solve(self, face: Rows, bend: Floats, unit: Floats, right: Floats) -> Floats:
        """Return the solution of a Newton system by its Cholesky factor.

        Parameters
        ----------
        face : ndarray of int of shape (m,)
            The nonzero coordinates.
        bend : ndarray of shape (n_groups,)
            Entries of the diagonal that are added to the model's matrix, before the
            products of ``unit`` within groups are subtracted.
        unit, right : ndarray of shape (m,)
        """
        own = self._penalty.labels[face]
        score, place = np.divmod(face, len(self._rows))
        matrix = self._rows[np.ix_(place, place)]
        matrix *= self._metric[np.ix_(score, score)]
        order = np.argsort(own, kind="stable")
        ends = np.flatnonzero(np.diff(own[order])) + 1
        for which in np.split(order, ends):
            matrix[np.ix_(which, which)] -= np.outer(unit[which], unit[which])
        factor = _factor(matrix, bend[own])
        solution: Floats = linalg.cho_solve(factor, right, check_finite=False)
        return solution

    def _solve_by_cg(
        self, face: Rows, bend: Floats, unit: Floats, right: Floats
    ) -> Floats:
        """Return an approximate solution of the system of ``_solve``.

        The preconditioner does not subtract products of ``unit``. In the basis of the
        metric's eigenvectors it has a block for each score, which are equal for equal
        eigenvalues.
        """
        score, place = np.divmod(face, len(self._rows))
        columns, place = np.unique(place, return_inverse=True)
        own = self._penalty.labels[columns]
        matrix = self._rows[np.ix_(columns, columns)]
        values, basis, which = self._eigenvalues, self._basis, self._which
        factors = [_factor(max(value, 0.0) * matrix, bend[own]) for value in values]
        units, inside = np.zeros((len(which), len(columns))), (score, place)
        units[inside] = unit

        def grid(x: Floats) -> Floats:
            full = np.zeros_like(units)
            full[inside] = x
            return full

        def product(x: Floats) -> Floats:
            full = grid(x)
            shares = np.bincount(own, np.sum(units * full, axis=0), len(bend))[own]
            image = self._metric @ (full @ matrix) + bend[own] * full
            return (image - shares * units)[inside]

        def precondition(x: Floats) -> Floats:
            rows = basis.T @ grid(x)
            for i, factor in enumerate(factors):
                same = which == i
                right = rows[same].T
                rows[same] = linalg.cho_solve(factor, right, check_finite=False).T
            return (basis @ rows)[inside]

        solution, rest = np.zeros_like(right), right.copy()
        p = z = precondition(rest)
        square = first = float(rest @ z)
        for _ in range(len(right)):
            image = product(p)
            bent = float(p @ image)
            if square <= _ACCURACY * first or not bent > 0.0:
                break
            step = square / bent
            solution += step * p
            rest -= step * image
            z = precondition(rest)
            square, last = float(rest @ z), square
            p = z + square / last * p
        return solution


def _factor(matrix: Floats, diagonal: Floats) -> tuple[Floats, bool]:
    """Return the Cholesky factor of a matrix, which is overwritten, plus a diagonal."""
    entries = np.diag_indices_from(matrix)
    matrix[entries] = (matrix[entries] + diagonal) * (1.0 + ROUNDED)
    factor: tuple[Floats, bool] = linalg.cho_factor(matrix, check_finite=False)
    return factor

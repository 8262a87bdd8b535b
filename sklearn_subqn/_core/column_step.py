"""Coordinate descent on the columns of an L1-penalized quadratic model."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import linalg

from .kernels import coordinate_descent, products
from .losses._base import Floats, Mask, Rows

# Sweeps over columns, so many altogether, are extrapolated after each of these.
_EXTRAPOLATED, _MAX_SWEEPS = 15, 300

# For a dual point the slopes after every so many sweeps are kept, so many of the last,
# once violations are at most so many times too large.
_INTERVAL, _KEPT, _NEAR = 5, 8, 50.0


class ColumnStep:
    """Coordinate descent on the columns themselves (CSC), for one score per row.

    Sweeps over all coordinates find those that are not zero. Sweeps over these converge
    linearly, and are extrapolated every so often (Bertrand and Massias 2021).

    Where a dual point is wanted, it is extrapolated too (Massias, Vaiter, Gramfort and
    Salmon 2020), from slopes themselves: the affine combination of some last ones that
    violates the conditions of optimality least. It often does so ten times less than
    v does, and then v is good enough.

    With second derivatives h, H = AᵀA for the columns A of diag(√h) X. Rows with the
    smallest ones, which hardly matter, take no part.

    Parameters
    ----------
    columns : Columns
        Of X, of shape (n, m).
    h : ndarray of shape (n,)
    needed : ndarray of bool of shape (m,)
        Columns that are likely to change. These do not lose much by rows that take no
        part.
    negligible : float
        Share of the sum of h that such rows may have.
    wants_dual : bool
        Whether the tolerance is that of a dual point.
    l1, l2 : float
        Factors of the penalties.
    n_free : int
        1 if there are intercepts, else 0.

    Attributes
    ----------
    change_of_dual : ndarray of shape (n,)
        H's part of the dual point: h times the change of the scores, or an
        extrapolation of it.
    """

    _arrays: tuple[Any, Any, Any]

    def __init__(
        self,
        columns: Any,
        h: Floats,
        needed: Mask,
        negligible: float,
        wants_dual: bool,
        l1: float,
        l2: float,
        n_free: int,
    ) -> None:
        self._l1, self._l2 = l1, l2
        self._n_free = n_free
        self._wants_dual = wants_dual
        roots = np.sqrt(h)
        self._kept = without_smallest(h, negligible)
        self._arrays, (self._squares, lost) = columns.scaled(roots, self._kept)
        if np.any(lost[needed] > self._squares[needed]):
            self._kept = np.ones_like(self._kept)
            self._arrays, (self._squares, _) = columns.scaled(roots, self._kept)
        self._roots = roots[self._kept]
        self.change_of_dual = np.zeros_like(h)

    def minimize(
        self, gradient: Floats, start: Floats, tol: float, limit: int
    ) -> Floats:
        v, image = np.array(start, order="C"), np.zeros((len(self._roots), 1))
        m = len(v) - self._n_free
        left = min(limit, _MAX_SWEEPS)
        last: deque[tuple[Floats, Floats]] = deque(maxlen=_KEPT)
        while True:
            violation = self._sweep(np.arange(m), gradient, v, image)
            left -= 1
            if violation <= tol or left <= 0:
                self._keep(image)
                return v
            face = np.flatnonzero(v[:m].any(axis=1))
            both = np.append(face, np.arange(m, len(v)))
            iterates = [v[both]]
            while left > 0 and violation > tol and len(iterates) <= _EXTRAPOLATED:
                violation = self._sweep(face, gradient, v, image)
                left -= 1
                iterates.append(v[both])
                near = self._wants_dual and violation <= _NEAR * tol
                if near and left % _INTERVAL == 0:
                    last.append((self._slopes(gradient, v, image), image.copy()))
                    ahead, off = self._extrapolated(last, v)
                    if off <= tol:
                        self._keep(ahead)
                        return v
            if len(iterates) > _EXTRAPOLATED:
                step = extrapolation(iterates, len(face))
                self._try(step, face, gradient, v, image)
                self._go_on(v[both] - iterates[0], face, gradient, v, image)

    def _keep(self, image: Floats) -> None:
        """Write the change of the dual point that belongs to an image."""
        self.change_of_dual[self._kept] = self._roots * image[:, 0]

    def _slopes(self, gradient: Floats, v: Floats, image: Floats) -> Floats:
        """Return the gradient of the model without the L1 penalty."""
        m = len(v) - self._n_free
        slopes = np.empty(len(v))
        # Columns are the rows of the transpose.
        products.multiply(*self._arrays, np.ascontiguousarray(image[:, 0]), slopes[:m])
        slopes[:m] += self._l2 * v[:m, 0]
        slopes[m:] = self._roots @ image[:, 0]
        slopes += gradient[:, 0]
        return slopes

    def _extrapolated(
        self, last: Iterable[tuple[Floats, Floats]], v: Floats
    ) -> tuple[Floats, float]:
        """Return the best affine combination of images, and how far it is off.

        That is how much the largest slope exceeds ``l1``, or that of an intercept zero.
        """
        slopes, images = map(np.array, zip(*last, strict=True))
        m = len(v) - self._n_free
        used = np.append(v[:m, 0] != 0.0, np.ones(self._n_free, dtype=bool))
        signs = np.append(np.sign(v[:m, 0]), np.zeros(self._n_free))
        shares = affine_shares(slopes[:, used] + self._l1 * signs[used])
        combined = np.abs(shares @ slopes)
        off = max(combined[:m].max() - self._l1, combined[m:].max(initial=0.0))
        return np.tensordot(shares, images, axes=1), float(off)

    def _try(
        self, step: Floats, face: Rows, gradient: Floats, v: Floats, image: Floats
    ) -> None:
        """Take a step of some coordinates and the free ones if the model falls."""
        m = len(face)
        both = np.append(face, np.arange(len(v) - self._n_free, len(v)))
        old, new = v[both], v[both] + step
        change = self._forward(step, face)
        fall = float(np.vdot(gradient[both], step))
        fall += float(np.vdot(change, image) + 0.5 * np.vdot(change, change))
        fall += self._l1 * float((np.abs(new[:m]) - np.abs(old[:m])).sum())
        fall += 0.5 * self._l2 * float(np.vdot(step[:m], new[:m] + old[:m]))
        if fall < 0.0:
            v[both] = new
            image += change

    def _go_on(
        self, change: Floats, face: Rows, gradient: Floats, v: Floats, image: Floats
    ) -> None:
        """Go on along a change to the minimum, or until a coordinate vanishes.

        Where the model is nearly flat, sweeps change v by about the same ever again.
        """
        m = len(face)
        both = np.append(face, np.arange(len(v) - self._n_free, len(v)))
        old, penalized = v[both], slice(m)
        z = self._forward(change, face)
        slopes = gradient[both].copy()
        slopes[penalized] += self._l1 * np.sign(old[penalized])
        slopes[penalized] += self._l2 * old[penalized]
        slope = float(np.vdot(slopes, change) + np.vdot(z, image))
        curvature = float(np.vdot(z, z))
        curvature += self._l2 * float(np.vdot(change[penalized], change[penalized]))
        ahead = old[penalized] * change[penalized] < 0.0
        lengths = -old[penalized][ahead] / change[penalized][ahead]
        length = float(lengths.min(initial=np.inf))
        if slope < 0.0 and length * curvature > -slope:
            length = -slope / curvature
        if slope < 0.0 and np.isfinite(length):
            step = length * change
            vanishing = (old + step)[penalized] * old[penalized] <= 0.0
            step[penalized][vanishing] = -old[penalized][vanishing]
            self._try(step, face, gradient, v, image)

    def _sweep(self, which: Rows, gradient: Floats, v: Floats, image: Floats) -> float:
        """Minimize over the free coordinates, and one after the other of some more.

        Returns the largest violation, and keeps v and the ``image`` of its change, the
        product with A, up to date.
        """
        violation = 0.0
        if self._n_free:
            slope = float(gradient[-1, 0] + self._roots @ image[:, 0])
            total = float(self._roots @ self._roots)
            step = -slope / total if total > 0.0 else 0.0
            v[-1, 0] += step
            image[:, 0] += step * self._roots
            violation = abs(slope)
        coef = v[which, 0]
        worst = coordinate_descent.sweep_columns(
            *self._arrays,
            which,
            image[:, 0],
            gradient[which, 0],
            self._squares[which],
            coef,
            self._l1,
            self._l2,
        )
        v[which, 0] = coef
        return max(violation, worst)

    def _forward(self, step: Floats, face: Rows) -> Floats:
        """Return the product of A with a step of some coordinates and the free ones."""
        z = np.zeros((len(self._roots), 1))
        products.add_columns(
            *self._arrays, face, np.ascontiguousarray(step[: len(face), 0]), z[:, 0]
        )
        if self._n_free:
            z[:, 0] += step[-1, 0] * self._roots
        return z


def extrapolation(iterates: list[Floats], n_penalized: int) -> Floats:
    """Return the step from the last of some iterates to where they lead.

    Of their affine combinations it is the one with the least change (Anderson 1965).
    The first ``n_penalized`` entries do not change their signs, but vanish instead.
    """
    shares = affine_shares(np.diff([v.ravel() for v in iterates], axis=0))
    last, penalized = iterates[-1], slice(n_penalized)
    ahead = np.tensordot(shares, iterates[1:], axes=1)
    ahead[penalized][ahead[penalized] * last[penalized] <= 0.0] = 0.0
    return np.asarray(ahead - last)


def affine_shares(residuals: Floats) -> Floats:
    """Return shares of the rows, of sum one, whose combination is the shortest.

    Where all of them are zero so is any combination.
    """
    ones = np.ones(len(residuals))
    shares = linalg.lstsq(residuals @ residuals.T, ones)[0]
    total = float(shares.sum())
    return np.asarray(shares / total if total else ones / len(ones))


def without_smallest(h: Floats, share: float) -> Mask:
    """Return which entries are left without the smallest, a share of their sum."""
    smallest_first = np.sort(h)
    total = np.cumsum(smallest_first)
    n = int(np.searchsorted(total, share * total[-1]))
    return np.asarray(h >= smallest_first[min(n, len(h) - 1)])

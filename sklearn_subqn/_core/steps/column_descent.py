"""Coordinate descent on columns, with linear systems of nonzero coefficients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from ..losses._base import Floats, Mask, Rows
from ..rounding import ROUNDED
from ..rows.column_maps import ColumnMap

# The constants below were chosen for log loss with an L1 penalty and alpha 1e-5 on
# news20 (two classes) and rcv1.

# The linear system of the nonzero coordinates is solved after five sweeps over them.
# docs/constants.md has the figures.
_ROUND = 5

# If no coordinate changed its sign, the limit on conjugate gradient steps is multiplied
# by three for the next system. docs/constants.md has the figures.
_LONGER = 3

# Conjugate gradients stop if more than 5 % of the coordinates would change signs, since
# the zeros are not identified yet. docs/constants.md has the figures.
_CROSSINGS = 0.05

# Fractions of a step that are tried before the largest fraction that changes no sign.
# docs/constants.md has the figures.
SHARES = (1.0, 0.3)


class Face(NamedTuple):
    """The columns with nonzero coefficients.

    Attributes
    ----------
    used : ndarray of shape (n_used,)
        Indices of these columns.
    places : ndarray
        Indices of the nonzero and the unpenalized coefficients.
    columns : ColumnMap
        The columns.
    """

    used: Rows
    places: Rows
    columns: ColumnMap


class ByColumns(ABC):
    """Coordinate descent on columns, without the matrix H of the model.

    Sweeps over all coordinates identify the nonzero ones. Sweeps over the nonzero
    coordinates converge linearly, and alternate with conjugate gradients on the linear
    system of these coordinates. Coordinates whose signs would change are set to zero.

    Parameters
    ----------
    diagonal : ndarray of the shape of coefficients
        Diagonal of H.
    l1, l2 : float
        Factors of the penalties.
    n_free : int
        1 if there are intercepts, the last row of coefficients, else 0.

    Attributes
    ----------
    image : ndarray of the shape of the scores
        Image of the change of the coefficients by the last ``minimize`` under a linear
        map. The adjoint of the map takes the image to H times the change.
    """

    image: Floats

    # Initial limit on the conjugate gradient steps of a system, and the number of
    # systems solved in succession, each without the coordinates that changed their
    # signs.
    _n_steps, _times = 15, 1

    _arrays: tuple[Any, Any, Any]

    def __init__(self, diagonal: Floats, l1: float, l2: float, n_free: int) -> None:
        self._diagonal = diagonal
        self._l1, self._l2 = l1, l2
        self._n_free = n_free
        self._m = len(diagonal) - n_free

    @abstractmethod
    def change_of_dual(self) -> Floats:
        """Return the change of the dual point by the last ``minimize``."""

    @abstractmethod
    def _sweep(self, which: Rows, gradient: Floats, v: Floats, image: Floats) -> float:
        """Minimize over the free coordinates, and over given columns in turn.

        Returns the largest violation; v and the image of its change are updated in
        place.
        """

    @abstractmethod
    def _no_image(self) -> Floats:
        """Return the image of zero coefficients."""

    @abstractmethod
    def _take(self, which: Rows) -> Any:
        """Return the given columns as a ``ColumnMap``."""

    def _product(self, columns: Any, x: Floats) -> Floats:
        """Return H times coefficients of the columns and unpenalized coefficients."""
        return self._adjoint(columns, self._image(self._scores(columns, x)))

    @abstractmethod
    def _scores(self, columns: ColumnMap, x: Floats) -> Floats:
        """Return the scores for coefficients of the columns and of free columns."""

    @abstractmethod
    def _image(self, scores: Floats) -> Floats:
        """Return the image (see ``image``) of coefficients, given their scores."""

    @abstractmethod
    def _adjoint(self, columns: ColumnMap, image: Floats) -> Floats:
        """Return the adjoint of an image for the columns and the free coefficients."""

    def minimize(
        self, gradient: Floats, start: Floats, tol: float, limit: int
    ) -> Floats:
        v, self.image = np.array(start, order="C"), self._no_image()
        n_steps = self._n_steps
        while True:
            violation = self._sweep(np.arange(self._m), gradient, v, self.image)
            limit -= 1
            if violation <= tol or limit <= 0:
                return v
            used = np.flatnonzero(v[: self._m].any(axis=1))
            for _ in range(min(_ROUND, limit)):
                violation = self._sweep(used, gradient, v, self.image)
                limit -= 1
                if violation <= tol:
                    break
            if violation > tol and limit > 0:
                face = self._face(used)
                n_steps = min(n_steps, limit)
                steps, off, taken = self._solve(face, gradient, v, tol, n_steps)
                limit -= taken
                p = steps[-1]
                change = self._scores(face.columns, p[face.places])
                image = self.image + self._image(change)
                vanishing = self._vanishing(v, p)
                if off <= tol and self._is_dual(gradient, v, p, image, tol):
                    v += p
                    v[vanishing] = 0.0
                    self.image = image
                    return v
                if not vanishing.any():
                    v += p
                    self.image = image
                    n_steps *= _LONGER
                elif not self._try(face, steps, gradient, v):
                    return v

    def _face(self, used: Rows) -> Face:
        """Return the columns with nonzero coefficients."""
        places = np.append(used, np.arange(self._m, self._m + self._n_free))
        return Face(used, places, self._take(used))

    def _solve(
        self, face: Face, gradient: Floats, v: Floats, tol: float, n_steps: int
    ) -> tuple[list[Floats], float, int]:
        """Return approximate steps to the minimizer with the zeros of v.

        Each further step fixes coordinates at zero whose signs changed in the previous
        step. Also returns the largest residual of the last step, and the number of
        products with H.
        """
        w = v[face.places]
        signs = self._penalized(np.sign(w))
        l2 = self._penalized(np.full_like(w, self._l2))
        inside = w != 0.0
        inside[len(face.used) :] = True
        most = _CROSSINGS * np.count_nonzero(signs)

        def times(x: Floats) -> Floats:
            return self._product(face.columns, x) + l2 * x

        slopes = gradient[face.places] + self._adjoint(face.columns, self.image)
        slopes += l2 * w + self._l1 * signs
        x, r, taken = np.zeros_like(w), -slopes * inside, 0
        steps = []
        for again in reversed(range(self._times)):
            scale = (self._diagonal[face.places] + l2) * inside
            inverse = np.divide(1.0, scale, out=np.zeros_like(w), where=scale > 0.0)
            p, before = np.zeros_like(w), np.inf
            n_crossing = 0
            for _ in range(n_steps):
                y = inverse * r
                now = float(np.vdot(r, y))
                p = y + now / before * p
                before = now
                q = times(p) * inside
                taken += 1
                curvature = float(np.vdot(p, q))
                if curvature <= ROUNDED * float(np.vdot(p, scale * p)):
                    break
                x += now / curvature * p
                r -= now / curvature * q
                n_crossing = int(np.sum(inside & (signs * (w + x) < 0.0)))
                if np.abs(r).max() <= tol or n_crossing > most:
                    break
            steps.append(np.zeros_like(v))
            steps[-1][face.places] = x
            if not again or not 0 < n_crossing <= most:
                break
            crossing = inside & (signs * (w + x) < 0.0)
            x[crossing] = -w[crossing]
            inside &= ~crossing
            r = -(slopes + times(x)) * inside
            taken += 1
        return steps, float(np.abs(r).max(initial=0.0)), taken

    def _try(
        self, face: Face, steps: list[Floats], gradient: Floats, v: Floats
    ) -> bool:
        """Take the last step, or a fraction of it that decreases the model.

        The last fraction tried is the largest one that changes no sign. With other
        fractions, coordinates whose signs would change are set to zero, and one sweep
        adapts the other coordinates. Returns whether the model decreased.
        """
        vanishing = self._vanishing(v, steps[0])
        share = float((-v[vanishing] / steps[0][vanishing]).min(initial=1.0))
        for p in (*(one * steps[-1] for one in SHARES), share * steps[0]):
            new = v + p
            new[self._vanishing(v, p)] = 0.0
            change = self._scores(face.columns, (new - v)[face.places])
            image = self.image + self._image(change)
            self._sweep(face.used, gradient, new, image)
            change = (new - v)[face.places]
            fall = float(np.vdot(gradient[face.places], change))
            mean = 0.5 * (self.image + image)
            fall += float(np.vdot(mean, self._scores(face.columns, change)))
            if fall + self._penalty(new) - self._penalty(v) < 0.0:
                v[:], self.image = new, image
                return True
        return False

    def _is_dual(
        self, gradient: Floats, v: Floats, step: Floats, image: Floats, tol: float
    ) -> bool:
        """Whether the image after a step gives a dual point within the tolerance.

        Dual constraints may be violated by ``tol``. Each sign change adds twice the
        penalty of the coordinate to the gap, and the sum may not exceed the tolerance
        either.
        """
        changed = np.abs((v + step)[self._vanishing(v, step)])
        if 2.0 * self._l1 * changed.sum() > tol * np.abs(v[: self._m]).sum():
            return False
        slopes = gradient + self._adjoint(self._take(np.arange(self._m)), image)
        slopes += self._penalized(self._l2 * (v + step))
        beyond = np.abs(slopes) - self._penalized(np.full_like(v, self._l1))
        return float(beyond.max()) <= tol

    def _vanishing(self, v: Floats, step: Floats) -> Mask:
        """Return a mask of penalized coefficients that vanish or change signs."""
        vanishing = (v != 0.0) & (v * (v + step) <= 0.0)
        vanishing[self._m :] = False
        return vanishing

    def _penalized(self, coef: Floats) -> Floats:
        """Return coefficients after setting the free ones, the last row, to zero."""
        coef[len(coef) - self._n_free :] = 0.0
        return coef

    def _penalty(self, v: Floats) -> float:
        penalized = v[: self._m]
        squares = float(np.vdot(penalized, penalized))
        return self._l1 * float(np.abs(penalized).sum()) + 0.5 * self._l2 * squares

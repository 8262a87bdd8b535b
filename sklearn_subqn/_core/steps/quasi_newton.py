"""Estimates B of the inverse Hessian, dense and with limited memory.

Both classes have ``apply(v) = B v`` and ``update(dw, dg)``, where dw is the change of
the parameters and dg the change of the gradient (s and y in the literature).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from ..losses._base import Floats
from ..records import stored
from ..rounding import TINY


@stored
class Pair(NamedTuple):
    """Displacements of shape (q,) and their product <dw, dg>, positive."""

    dw: Floats
    dg: Floats
    curvature: float

    @property
    def scale(self) -> float:
        """The multiple <dw, dg> / <dg, dg> of the identity, fitted to the pair."""
        return self.curvature / float(self.dg @ self.dg)


def has_curvature(dw: Floats, dg: Floats) -> bool:
    """Whether a pair has positive curvature that does not underflow."""
    tiny = TINY
    return float(dw @ dg) > tiny and float(dg @ dg) > tiny


def bfgs_change(B: Floats, pair: Pair, c: float = 1.0) -> Floats:
    """Return the BFGS update of B of shape (q, q), after which B dg = c dw.

    It is the expanded product form (Yu 2009, eq. 2.24; Alg. 5.1, line 15 for c < 1).
    """
    dw, dg, curvature = pair
    rho = 1.0 / curvature
    b_dg = B @ dg
    cross = np.outer(dw, b_dg)
    scale = rho * (c + rho * float(dg @ b_dg))
    change: Floats = scale * np.outer(dw, dw) - rho * (cross + cross.T)
    return change


def two_loop(
    v: Floats, pairs: Sequence[Pair], initial: Callable[[Floats], Floats]
) -> Floats:
    """Return B v, with B updated from an initial matrix by pairs, oldest first.

    The two-loop recursion (Yu 2009, Alg. 2.3); ``initial`` returns a new array.
    """
    p = v.copy()
    coefficients = []
    for dw, dg, curvature in reversed(pairs):
        coefficients.append(float(dw @ p) / curvature)
        p -= coefficients[-1] * dg
    p = initial(p)
    for dw, dg, curvature in pairs:
        p += (coefficients.pop() - float(dg @ p) / curvature) * dw
    return p


class InverseHessian(Protocol):
    """The interface of estimates B of the inverse Hessian."""

    #: Whether B is still the initial multiple of the identity.
    pristine: bool

    def apply(self, v: Floats) -> Floats:
        """Return B v for v of shape (q,)."""
        ...

    def update(self, dw: Floats, dg: Floats) -> None:
        """Make B satisfy the secant equation B dg = dw (Yu 2009, eq. 2.14)."""
        ...

    def reset(self) -> None:
        """Discard all curvature: B becomes the identity."""
        ...


class DenseInverseHessian:
    """Full B of shape (q, q), by the BFGS update (Yu 2009, Alg. 2.1 and eq. 2.24).

    The first update scales the identity by <dw, dg> / <dg, dg> (line 10).
    """

    def __init__(self, n_params: int) -> None:
        self._n_params = n_params
        self.reset()

    def reset(self) -> None:
        self.pristine = True
        self._B = np.eye(self._n_params)

    def apply(self, v: Floats) -> Floats:
        return self._B @ v

    def update(self, dw: Floats, dg: Floats) -> None:
        curvature = float(dw @ dg)
        if self.pristine:
            self._B *= curvature / float(dg @ dg)
            self.pristine = False
        self._B += bfgs_change(self._B, Pair(dw, dg, curvature))


class LimitedMemoryInverseHessian:
    """B from the last ``memory`` pairs, by the two-loop recursion (Yu 2009, Alg. 2.3).

    The pairs are rows of two arrays of shape (memory, q), used as ring buffers. With
    ``memory=0`` B remains the identity.
    """

    def __init__(self, n_params: int, memory: int) -> None:
        self._dw = np.empty((memory, n_params))
        self._dg = np.empty((memory, n_params))
        self._curvature = np.empty(memory)
        self.reset()

    def reset(self) -> None:
        self.pristine = True
        self._n_updates = 0
        self._scale = 1.0

    def apply(self, v: Floats) -> Floats:
        memory = len(self._curvature)
        stored = range(max(0, self._n_updates - memory), self._n_updates)
        pairs = [
            Pair(self._dw[j], self._dg[j], float(self._curvature[j]))
            for j in (i % memory for i in stored)
        ]
        return two_loop(v, pairs, partial(np.multiply, self._scale))

    def update(self, dw: Floats, dg: Floats) -> None:
        if not len(self._curvature):
            return
        j = self._n_updates % len(self._curvature)
        self._dw[j], self._dg[j] = dw, dg
        self._curvature[j] = float(dw @ dg)
        self._scale = self._curvature[j] / float(dg @ dg)
        self._n_updates += 1
        self.pristine = False

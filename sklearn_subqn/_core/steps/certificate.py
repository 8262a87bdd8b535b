"""A lower bound of the optimum from the cuts that a solver computes."""

from __future__ import annotations

import numpy as np

from ..objectives.objective import Cut, Objective
from .simplex_qp import minimize_on_simplex


class CutBundle:
    """Recent cuts of the risk and the best lower bound of J that they prove.

    For cuts <a_j, w> + b_j <= R(w) and the L2 regularizer every point x of the unit
    simplex proves J(w) >= -||A x||² / (2 alpha) + <b, x> (Teo et al. 2010,
    Corollary 3). The best x solves a small quadratic program. Any x proves a valid
    bound, since the bound is evaluated from A x itself.

    The first place holds an aggregate: initially the trivial cut R >= inf R, or the
    first cut if inf R is unknown. A full bundle drops its oldest cut with a multiplier
    of zero. If there is none, the combination A x of the last program first becomes the
    aggregate, so that dropping cuts never lowers the bound.

    Parameters
    ----------
    objective : Objective
        L2-regularized. Cuts that are not balanced in its free parameters give no bound
        and are ignored.
    size : int
        Number of cuts to keep, at least 2.

    Attributes
    ----------
    lower_bound : float
        The best bound so far.
    """

    def __init__(self, objective: Objective, size: int = 40) -> None:
        self._objective = objective
        self.size = size
        # The operating system allocates pages of zeros only when they are written.
        self._normals = np.zeros((size, objective.n_params))
        # The columns hold offsets, errors and norms.
        self._others = np.zeros((size, 3))
        self._gram = np.empty((size, size))
        self._x = np.zeros(size)
        self._x[0] = 1.0
        # The index of each cut, and the first index that the last program did not
        # contain.
        self._born = np.zeros(size, dtype=np.intp)
        self._n_born = self._first_new = 0
        self._n_cuts = 0
        self.lower_bound = objective.risk.infimum
        if np.isfinite(self.lower_bound):
            self._others[0, 0], self._gram[0, 0] = self.lower_bound, 0.0
            self._n_cuts = 1

    def add(self, cut: Cut) -> None:
        """Store a cut, in place of another one if the bundle is full."""
        if not cut.is_balanced(self._objective.regularizer.n_penalized):
            return
        j = self._n_cuts
        if j == self.size:
            j = self._place()
        self._store(j, cut)
        self._born[j] = self._n_born
        self._n_born += 1

    def improve(self) -> float:
        """Solve the program over all stored cuts; return the best bound so far."""
        n = self._n_cuts
        if not n or (n == 1 and not self._normals[0].any()):
            # The trivial cut alone proves this bound.
            return self.lower_bound
        self._x[:n] = minimize_on_simplex(
            self._gram[:n, :n] / self._objective.alpha, self._others[:n, 0], self._x[:n]
        )
        self._first_new = self._n_born
        bound = self._objective.dual_value(self._combination())
        self.lower_bound = max(self.lower_bound, bound)
        return self.lower_bound

    def _place(self) -> int:
        """Return the place of the cut to drop, never the first one."""
        tried = self._born[1:] < self._first_new
        unused = np.flatnonzero(tried & (self._x[1:] == 0.0))
        if not unused.size:
            self._store(0, self._combination())
            self._x[:] = 0.0
            self._x[0] = 1.0
            unused = np.arange(self.size - 1)
        return 1 + int(unused[np.argmin(self._born[1:][unused])])

    def _store(self, j: int, cut: Cut) -> None:
        self._n_cuts = n = max(self._n_cuts, j + 1)
        self._normals[j], self._others[j] = cut.normal, cut[1:]
        self._gram[j, :n] = self._gram[:n, j] = self._normals[:n] @ cut.normal
        self._x[j] = 0.0 if n > 1 else 1.0

    def _combination(self) -> Cut:
        n = self._n_cuts
        x = self._x[:n]
        return Cut.mixed(x, self._normals[:n], self._others[:n])

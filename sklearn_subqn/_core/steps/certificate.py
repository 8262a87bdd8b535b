"""A lower bound of the optimum from the cuts that a solver computes."""

from __future__ import annotations

import numpy as np

from ..objectives.objective import Cut, Objective
from .cut_model import L2CutModel
from .kept_cuts import Cuts


class CutBundle:
    """Recent cuts of the risk and the best lower bound of J that they prove.

    The bound is the minimum of the model of bundle methods, the regularizer plus the
    maximum of the cuts. The first cut is the trivial one R >= inf R if inf R is known.

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
        cuts = Cuts(objective.n_params, size=size, patience=None)
        self._model = L2CutModel(objective, cuts)
        self._n_penalized = objective.regularizer.n_penalized
        self.size = size
        self.lower_bound = objective.risk.infimum
        if np.isfinite(self.lower_bound):
            self.add(Cut(np.zeros(objective.n_params), self.lower_bound))

    def add(self, cut: Cut) -> None:
        """Store a cut, in place of another one if the bundle is full."""
        if cut.is_balanced(self._n_penalized):
            self._model.add(cut)

    def improve(self) -> float:
        """Solve the program over all stored cuts; return the best bound so far."""
        if self._model.cuts.n_cuts:
            self._model.minimize()
            self.lower_bound = max(self.lower_bound, self._model.lower_bound)
        return self.lower_bound

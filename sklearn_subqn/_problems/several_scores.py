"""Joint problems of several scores, of which less is stored than is solved for."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.losses import Features
from .._core.regularizers import L2
from .._solving.solution import Floats
from .linear import LinearProblems


class JointProblem(LinearProblems):
    """One problem, of whose parameters the attributes are not the rounded ones."""

    def _stored(self, w: Floats) -> Floats:
        coef, intercept = self._reported(*self._decoded([w]))
        if self._shift is not None:
            intercept = self._shift.inward(self._shares(coef), intercept)
        return self._encoded(coef, intercept)[0][: self.design.n_params]


class Contrasts(JointProblem):
    """A joint problem of which the scores less one of them are stored.

    Parameters
    ----------
    base : int
        The score that is subtracted from the others, 0 or -1.
    *args, **kwargs
        As for ``LinearProblems``.
    """

    def __init__(self, *args: Any, base: int, **kwargs: Any) -> None:
        self._base = base
        super().__init__(*args, **kwargs)

    def _encoded(self, coef: Any, intercept: Any) -> list[Floats]:
        """Return the parameters with given differences whose scores sum to zero."""
        rows = np.column_stack([coef * self._units(), intercept]).astype(np.float64)
        own = -rows.sum(axis=0) / (len(rows) + 1)
        rows = rows + own
        rows = np.vstack([own, rows] if self._base == 0 else [rows, own])
        return [rows.T.ravel()] if len(rows) == self.design.n_outputs else []

    def _decoded(self, parameters: list[Floats]) -> tuple[Any, Any]:
        coef, intercept = super()._decoded(parameters)
        return tuple(
            np.delete(rows, self._base, axis=0) - rows[self._base]
            for rows in (coef, intercept)
        )


class PathProblem(JointProblem):
    """The joint problem of an ``Ontology``, with coefficients for each node.

    Those of labels are stored; of two labels the difference.
    """

    @property
    def _features(self) -> Floats:
        """What nodes add to what is stored, of independent rows."""
        features = self.loss.map
        assert isinstance(features, Features), "scores of labels from those of nodes"
        shares = features.features
        return shares[1:] - shares[:1] if len(shares) == 2 else shares

    def _encoded(self, coef: Any, intercept: Any) -> list[Floats]:
        # Optimal coefficients of nodes are combinations of the features of labels.
        if len(coef) != len(self._features):
            return []
        labels = np.column_stack([coef * self._units(), intercept])
        labels = labels.astype(np.float64)
        return [(np.linalg.pinv(self._features) @ labels).T.ravel()]

    def _decoded(self, parameters: list[Floats]) -> tuple[Any, Any]:
        nodes = np.column_stack(super()._decoded(parameters))
        labels = self._features @ nodes
        return labels[:, :-1], labels[:, -1]

    def _stored(self, w: Floats) -> Floats:
        if isinstance(self.regularizer, L2):
            return super()._stored(w)
        # Other penalties are not least for combinations of features of labels.
        labels = self._decoded([w])
        reported = self._reported(*labels)
        lost = [a.astype(np.float64) - b for a, b in zip(reported, labels, strict=True)]
        return w + self._encoded(*lost)[0][: self.design.n_params]

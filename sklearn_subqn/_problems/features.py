"""Rows of features: number and names of features, and the scales of columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._core.arrays import Floats, Indices
from .._core.names import Axis
from .._core.rows.columns import own_columns
from .._features.shift import Shift
from .._features.strength import Scales

#: The axis of intercepts, for input from users.
INTERCEPTS = Axis("intercepts", None, how="give no Series")

#: A subset of the columns of X, as an index.
Columns = Indices | slice

ALL_COLUMNS = slice(None)


class Rows:
    """Feature matrix, with rules for the scales of its columns.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, d)
    """

    def __init__(self, X: Any) -> None:
        self.X = X

    def of_own_columns(self) -> tuple[Columns, Rows]:
        """Return the columns with entries, and the rows restricted to these columns.

        If at least half of the columns have entries, all columns and these rows are
        returned.
        """
        if not sparse.issparse(self.X):
            return ALL_COLUMNS, self
        n_columns = self.X.shape[1]
        used = np.zeros(n_columns, dtype=bool)
        # The first eighth of the entries usually suffices to find half of the columns
        # used.
        used[self.X.indices[: self.X.nnz // 8]] = True
        if 2 * np.count_nonzero(used) > n_columns:
            return ALL_COLUMNS, self
        columns, X = own_columns(self.X)
        if not 0 < 2 * len(columns) <= n_columns:
            return ALL_COLUMNS, self
        return columns, Rows(X)

    def shift(self, weights: Floats) -> Shift | None:
        """Return the numbers that are subtracted from columns far from zero."""
        return Shift.of(self.X, weights)

    def scales(self, X: Any, weights: Floats, *, centered: bool) -> Scales:
        """Return the scales of the columns of X, which may have been shifted."""
        return Scales.of(X, weights, centered=centered)


class RowsOfBlock(Rows):
    """Block of the feature matrix, with a shift and sums computed from all rows.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, d)
    shift : Shift or None
    sums : ndarray of shape (4, d) or None
        The ``column_sums`` of the shifted rows; None where no scales are needed.
    """

    def __init__(self, X: Any, shift: Shift | None, sums: Floats | None) -> None:
        super().__init__(X)
        self._shift, self._sums = shift, sums

    def of_own_columns(self) -> tuple[Columns, Rows]:
        # Columns without entries in this block may have entries in other blocks.
        return ALL_COLUMNS, self

    def shift(self, weights: Floats) -> Shift | None:
        return self._shift

    def scales(self, X: Any, weights: Floats, *, centered: bool) -> Scales:
        assert self._sums is not None, "sums are known where scales are needed"
        return Scales.of_sums(*self._sums[:3], centered=centered)


class InputFeatures(NamedTuple):
    """The number of features, and their names if they have any."""

    n_features: int
    names: Any

    @classmethod
    def of(cls, estimator: Any) -> InputFeatures:
        """Return the features of an estimator whose ``fit`` has validated X."""
        names = getattr(estimator, "feature_names_in_", ())
        return cls(estimator.n_features_in_, names)

    @property
    def axis(self) -> Axis:
        """The axis of the features in tables with names."""
        return Axis("features", self.names if len(self.names) else None)

    def are_those_of(self, previous: dict[str, Any]) -> bool:
        """Whether a previous fit, given by its attributes, had the same features."""
        return (
            "coef_" in previous
            and previous["coef_"].shape[-1] == self.n_features
            and np.array_equal(previous.get("feature_names_in_", ()), self.names)
        )

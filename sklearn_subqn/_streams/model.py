"""Model of an online estimator, with coefficients computed on access."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._core.arrays import Array, Floats, Indices
from .._core.losses._base import Rows
from .._core.online import Method, State
from .._core.online.sparse_columns import ColumnState
from .._core.records import stored
from .._core.rows.columns import own_columns
from .._estimators.linear_estimator import LinearEstimator
from .._features.shift import Shift


@stored
class Stream(NamedTuple):
    """Settings of a stream, which all of its batches share.

    Attributes
    ----------
    settings : tuple
        The parameters that determine the method.
    method : Method
    fit_intercept : bool
    n_outputs : int or None
        Scores per row, None for scores of shape (b,).
    """

    settings: tuple[Any, ...]
    method: Method[Any]
    fit_intercept: bool
    n_outputs: int | None


class StreamModel(LinearEstimator):
    """Base class of online estimators: coefficients from the state of the method."""

    fit_intercept: bool
    _coef: Array
    _dtype: Any
    _shift: Shift | None
    _state: State
    _stream: Stream

    # The columns in a fit; None for all columns.
    _columns: Rows | None = None

    def _stored(self) -> dict[str, Any]:
        """Set the coefficients, and return no further attributes for a copy."""
        self._show()
        return {}

    def _show(self) -> None:
        """Set the coefficients from the state, or delay this to their first access.

        After a sparse batch, computing all coefficients would take longer than the
        step.
        """
        state = self._state
        if isinstance(state, ColumnState):
            if hasattr(self, "_coef"):
                del self._coef
            self._check_stored(np.array(state.largest))
            self._set_intercept(state.last.w)
        else:
            self._coef, intercept = self._of_all_columns(state.w)
            self._check_stored(self._coef)
            if self._shift is not None:
                intercept = self._shift.outward(np.atleast_2d(self._coef), intercept)
            self._set_intercept(intercept)

    def _of_all_columns(self, w: Floats) -> tuple[Array, Floats]:
        """Return coefficients, zero for left-out columns, and intercepts."""
        columns, k = self._columns, self._stream.n_outputs or 1
        n_coef = (self.n_features_in_ if columns is None else len(columns)) * k
        coef = self._coefficients(w[:n_coef])
        if columns is not None:
            own, coef = coef, np.zeros((*coef.shape[:-1], self.n_features_in_))
            coef = coef.astype(own.dtype, copy=False)
            coef[..., columns] = own
        return coef, w[n_coef:]

    def _coefficients(self, w: Floats) -> Array:
        """Return parameters without intercepts as an array of coefficients."""
        coef = w.reshape(-1, self._stream.n_outputs or 1).T
        with np.errstate(over="ignore"):
            return np.array(coef, dtype=self._dtype, order="C")

    def _check_stored(self, coef: Array) -> Array:
        """Return coefficients or intercepts in the data type of the model, checked."""
        # The state is finite in float64, but the conversion can overflow.
        with np.errstate(over="ignore"):
            stored = coef.astype(self._dtype, copy=False)
        if self._dtype != np.float64 and not np.isfinite(stored).all():
            raise ValueError(
                f"Coefficients are not finite as {np.dtype(self._dtype).name}. Scale "
                "the features and targets, or increase alpha."
            )
        return stored

    def _set_intercept(self, intercept: Floats) -> None:
        if not self.fit_intercept:
            intercept = np.zeros(self._stream.n_outputs or 1)
        self.intercept_ = np.array(self._check_stored(intercept))

    @property
    def coef_(self) -> Array:
        """Coefficients of the features, with the data type of X."""
        if not hasattr(self, "_state"):
            raise AttributeError(f"This {type(self).__name__} is not fitted yet.")
        # Coefficients of a sparse stream are computed on access, and cached until the
        # next batch.
        if not hasattr(self, "_coef"):
            self._coef, _ = self._of_all_columns(self._state.w)
        return self._coef

    def _scores(self, X: Any) -> Array:
        """Return the scores of checked samples."""
        if hasattr(self, "_coef") or not sparse.issparse(X):
            return super()._scores(X)
        # Only the coefficients of the columns in X are computed from the state.
        columns, X = own_columns(X)
        return self._scores_by(X, self._coef_at(columns), self.intercept_)

    def _coef_at(self, columns: Indices) -> Array:
        state = self._state
        if (
            hasattr(self, "_coef")
            or self._columns is not None
            or not isinstance(state, ColumnState)
        ):
            coef: Array = super()._coef_at(columns)
            return coef
        return self._coefficients(state.coefficients(columns))

    def __getstate__(self) -> dict[str, Any]:
        """Return the pickled attributes, without the ones that can be recomputed."""
        state = super().__getstate__()
        state.pop("_accepted", None)
        of_few = self._columns is not None
        if of_few or isinstance(getattr(self, "_state", None), ColumnState):
            state.pop("_coef", None)
        return state

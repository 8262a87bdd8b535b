"""Coefficients and intercepts, and the parameters of solvers that they stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._core.regularizers import NormalizedEntropy, Regularizer
from .._core.rows.design import Design
from .._features.shift import Shift
from .._solving.solution import Floats
from .features import ALL_COLUMNS, Columns
from .model_parameters import LinearModel
from .without_penalty import PartlyPenalized


class Coefficients(PartlyPenalized):
    """Problems whose parameters are coefficients and intercepts in other units.

    Solvers see features that are shifted and divided by their sizes, without those that
    have no entries; what is stored is for X as it was given, of its type, and within
    the bounds of the user.
    """

    design: Design
    columns: Columns = ALL_COLUMNS
    sizes: Floats | None
    _bounds: Any
    _known: dict[str, Any]
    _model: LinearModel
    _opposite: bool
    regularizer: Regularizer
    _shift: Shift | None
    _single: bool

    def attributes(self) -> dict[str, Any]:
        coef, intercept = self._reported(*self._decoded([s.w for s in self.starts]))
        if self._opposite:
            # Zeros keep their sign.
            coef, intercept = 0.0 - coef, 0.0 - intercept
        coef = self._of_all_features(coef)
        if self._single:
            return {**self._known, "coef_": coef[0], "intercept_": intercept[0]}
        return {**self._known, "coef_": coef, "intercept_": intercept}

    def _of_all_features(self, coef: Any) -> Any:
        """Return coefficients with zeros for features that were left out."""
        if isinstance(self.columns, slice):
            return coef
        every = np.zeros((len(coef), self._model.features.n_features), coef.dtype)
        every[:, self.columns] = coef
        return every

    def _units(self) -> Floats | float:
        """Return what the features are divided by for the solver."""
        return 1.0 if self.sizes is None else self.sizes

    def _reported(self, coef: Any, intercept: Any) -> tuple[Any, Any]:
        """Return coefficients and intercepts for X as they are stored."""
        coef = np.array(coef, dtype=self._dtype, order="C")
        if self._bounds is not None:
            # Rounding may have left them, and does not in the bounds themselves.
            ends = [_towards_zero(bound, self._dtype) for bound in self._bounds]
            low, high = (-ends[1], -ends[0]) if self._opposite else ends
            coef = np.clip(coef, low, high)
        if self._shift is not None:
            intercept = self._shift.outward(self._shares(coef), intercept)
        return coef, np.asarray(intercept).astype(self._dtype)

    def _shares(self, coef: Any) -> Any:
        """Return coefficients (k, d) as objectives take them: shares sum to one."""
        if not isinstance(self.regularizer, NormalizedEntropy):
            return coef
        return coef / self._sums(np.asarray(coef, dtype=np.float64))

    def _sums(self, coef: Floats) -> Floats:
        """Return what the shares sum to that the rows of coefficients are made of."""
        return coef.sum(axis=1, keepdims=True)

    def _stored(self, w: Floats) -> Floats:
        free = len(w) > self.design.n_coef
        plain = self.sizes is None and self._bounds is None
        if plain and (self._shift is None or not free):
            return super()._stored(w)
        coef, intercept = self._reported(*self._rows(w))
        if self._shift is not None:
            intercept = self._shift.inward(self._shares(coef), intercept)
        inward = (coef * self._units()).T.ravel()
        return np.append(inward, intercept) if free else inward

    def _rows(self, w: Floats) -> tuple[Floats, Floats]:
        """Return coefficients (k, d) and intercepts (k,) of one problem."""
        coef, intercept = self.design.split(w)
        coef = np.atleast_2d(np.asarray(coef).T) / self._units()
        return coef, np.atleast_1d(intercept)

    def _encoded(self, coef: Any, intercept: Any) -> list[Floats]:
        """Return the parameters of each problem; none if they are of other rows."""
        n_rows = self.design.n_outputs or len(self)
        if len(coef) != n_rows:
            return []
        rows = np.split(np.arange(n_rows), len(self))
        coef = coef * self._units()
        return [np.concatenate([coef[i].T.ravel(), intercept[i]]) for i in rows]

    def _decoded(self, parameters: list[Floats]) -> tuple[Any, Any]:
        """Return coefficients and intercepts from the parameters of each problem."""
        split = [self._rows(w) for w in parameters]
        coef = np.concatenate([rows for rows, _ in split])
        intercept = np.zeros(len(coef))
        intercept[:] = np.concatenate([free for _, free in split])
        return coef, intercept


def _towards_zero(numbers: Floats, dtype: Any) -> npt.NDArray[Any]:
    """Return numbers of a type that are not larger than some."""
    rounded = numbers.astype(dtype)
    larger = np.abs(rounded) > np.abs(numbers)
    return np.where(larger, np.nextafter(rounded, np.zeros_like(rounded)), rounded)

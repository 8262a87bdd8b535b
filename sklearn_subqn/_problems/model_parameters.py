"""The parameters of an estimator, in the form that its problems use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .._core.arrays import Floats, Mask
from .._core.regularizers import Regularizer
from .._features.strength import Rule
from .._solving.solution import Settings
from .features import Columns, InputFeatures


class LinearModel(NamedTuple):
    """The parameters of a linear model, in the form that its problems use.

    Attributes
    ----------
    name : str
        Name of the estimator, for messages.
    settings : Settings
        Settings for solving the problems.
    n_jobs : int or None
    fit_intercept : bool
    features : InputFeatures
    regularizer : callable
        Returns the penalty for a number of coefficients.
    l1_share : float
        Share of the L1 norm in the penalty.
    has_squares : bool
        Whether the penalty is a sum of squares, possibly with factors of features.
    has_own_scales : bool
        Whether the penalty applies to features divided by their scales.
    sizes : ndarray of shape (d,) or None
        Units of the features that follow from penalty factors.
    free : ndarray of bool, of shape (d,), or None
        Mask of the features without a penalty.
    bounds : tuple or None
        Smallest and largest coefficients, each of shape (d,).
    constraints : tuple or None
        A of shape (m, d) and b of shape (m,) of the inequalities A w <= b. With
        constraints no features are left out.
    rule : callable
        Returns the rule for the automatic alpha, given targets and weights.
    leaves_out : bool
        Whether features without entries are left out of the problems: their optimal
        coefficients are zero and add nothing to the penalty.
    form : callable, optional
        Returns B of a penalty wᵀ B w / 2 of each score, semidefinite, of shape (d, d).
    """

    name: str
    settings: Settings
    n_jobs: int | None
    fit_intercept: bool
    features: InputFeatures
    regularizer: Callable[[int], Regularizer]
    l1_share: float
    has_squares: bool
    has_own_scales: bool
    sizes: Floats | None
    free: Mask | None
    bounds: tuple[Any, Any] | None
    constraints: tuple[Any, Any] | None
    rule: Callable[[Any, Floats], Rule]
    leaves_out: bool
    form: Callable[[], Floats] | None = None

    def of_columns(self, columns: Columns) -> LinearModel:
        """Return the parameters for a subset of the features."""
        sizes, free, bounds = self.sizes, self.free, self.bounds
        some = None if free is None else free[columns]
        return self._replace(
            sizes=None if sizes is None else sizes[columns],
            free=some if some is not None and some.any() else None,
            bounds=None if bounds is None else tuple(each[columns] for each in bounds),
        )

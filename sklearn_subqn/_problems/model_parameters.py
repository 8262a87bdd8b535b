"""What the parameters of an estimator say of its problems."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .._core.regularizers import Regularizer
from .._core.rows.linear_map import PART_SIZE
from .._features.strength import Rule
from .._solving.process import n_threads
from .._solving.solution import Floats, Settings
from .features import Columns, InputFeatures


class LinearModel(NamedTuple):
    """What the parameters of an estimator say of a linear model.

    Attributes
    ----------
    name : str
        For messages.
    settings : Settings
        How to solve its problems.
    n_jobs : int or None
    fit_intercept : bool
    features : InputFeatures
    regularizer : callable
        From a number of coefficients to their penalty.
    l1_share : float
        The share of the L1 norm in the penalty.
    has_squares : bool
        Whether the penalty is one of squares, of which factors are factors.
    has_own_scales : bool
        Whether the penalty measures features by their scales.
    sizes : ndarray of shape (d,) or None
        Units of the features that factors of the penalty ask for.
    free : ndarray of bool, of shape (d,), or None
        Which features have no penalty.
    bounds : tuple or None
        Least and largest coefficients, each of shape (d,).
    constraints : tuple or None
        A of shape (m, d) and b of shape (m,) of inequalities A w <= b. With these no
        features are left out.
    rule : callable
        From targets and weights to the rule of the automatic strength.
    leaves_out : bool
        Whether features without entries are left out of problems: zero is best for
        their coefficients, and does not count in the penalty.
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
    free: npt.NDArray[np.bool_] | None
    bounds: tuple[Any, Any] | None
    constraints: tuple[Any, Any] | None
    rule: Callable[[Any, Floats], Rule]
    leaves_out: bool

    def n_threads(self, X: Any) -> int:
        """Return the number of threads for products with X.

        joblib, which takes a while to say it, is not asked where one is enough.
        """
        few = (X.nnz if sparse.issparse(X) else X.size) < 2 * PART_SIZE
        return 1 if few else n_threads(self.n_jobs)

    def of_columns(self, columns: Columns) -> LinearModel:
        """Return what the parameters say of some of the features."""
        sizes, free, bounds = self.sizes, self.free, self.bounds
        some = None if free is None else free[columns]
        return self._replace(
            sizes=None if sizes is None else sizes[columns],
            free=some if some is not None and some.any() else None,
            bounds=None if bounds is None else tuple(each[columns] for each in bounds),
        )

"""Estimates with their standard errors: tables by name, and tests of hypotheses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, stats

from .._checks import check_matrix, check_number
from .._core import lapack
from .._core.arrays import Array, Floats

# Columns of a table that hold numbers.
_NUMBERS = ("estimate", "std_error", "t", "z", "p_value", "lower", "upper")

#: Name of the intercept among the features of a table.
INTERCEPT = "(intercept)"


class WaldTest(NamedTuple):
    """A test of linear hypotheses about coefficients (Wald 1943).

    Attributes
    ----------
    statistic : float
        Statistic with a chi-square distribution, or F if the dispersion is estimated.
    df : int
        Number of independent hypotheses.
    df_resid : float
        Degrees of freedom of the denominator of F, infinite for chi-square.
    p_value : float
        P-value: probability of a statistic at least as large under the hypotheses.
    """

    statistic: float
    df: int
    df_resid: float
    p_value: float


@dataclass(frozen=True, repr=False)
class CoefficientErrors:
    """Standard errors of the coefficients of a linear model.

    Result of :func:`standard_errors`: the estimates with names of features, their
    covariance, and statistics that are computed from both.

    Parameters
    ----------
    features : ndarray of shape (p,)
        Name of the feature of each estimate, or "(intercept)".
    outputs : ndarray of shape (p,) or None
        Class, quantile or target column of each estimate, if there are several.
    output_name : str or None
        The kind of outputs: "class", "quantile" or "output".
    estimates : ndarray of shape (p,)
        NaN for estimates that are not determined. Estimates differ from the
        coefficients of the model if some features are combinations of other features,
        or if coefficients are differences from a reference class.
    covariance : ndarray of shape (p, p)
        NaN between estimates of separate problems, such as one class against the rest,
        and for estimates that the samples do not bound.
    kind : str
        The kind of covariance.
    dispersion : float or ndarray
        Factor of the variances, one for each of several problems.
    df_resid : float
        Number of rows minus the number of estimates of a problem.
    uses_t : bool
        Whether statistics have Student's distribution rather than the normal one.
    dropped : list of str
        Features that are combinations of earlier features and have no estimates.
    resamples : ndarray of shape (n_resamples, p) or None
        Estimates of the bootstrap.
    factors : dict
        Features that are the dummies of one factor, by the name before the underscore.

    Attributes
    ----------
    std_errors : ndarray of shape (p,)
        Square roots of the variances, NaN where there is no estimate, and where a
        variance of two-way clusters, a difference, is negative.

    See Also
    --------
    standard_errors : Computes standard errors of a model.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn_subqn import BMRMRegressor, standard_errors
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = BMRMRegressor(0, loss="squared_error", tol=1e-9).fit(X, y)
    >>> errors = standard_errors(model, X, y)
    >>> round(errors.wald_test(["s1", "s2"]).p_value, 2)
    0.05
    """

    features: Array
    outputs: Array | None
    output_name: str | None
    estimates: Floats
    covariance: Floats
    kind: str
    dispersion: Any
    df_resid: float
    uses_t: bool
    dropped: list[Any]
    resamples: Floats | None = None
    factors: dict[str, list[Any]] = field(default_factory=dict)

    def __repr__(self) -> str:
        columns = self.columns()
        lines = [
            [
                name,
                *(f"{each:.4g}" if name in _NUMBERS else str(each) for each in column),
            ]
            for name, column in columns.items()
        ]
        widths = [max(map(len, column)) for column in lines]
        rows = (
            "  ".join(
                each.rjust(width) for each, width in zip(row, widths, strict=True)
            )
            for row in zip(*lines, strict=True)
        )
        return "\n".join([*rows, f"Standard errors: {self.kind}"])

    @property
    def std_errors(self) -> Floats:
        """Square roots of the variances."""
        variances = np.diag(self.covariance)
        return np.sqrt(np.where(variances < 0.0, np.nan, variances))

    def _distribution(self) -> Any:
        return stats.t(self.df_resid) if self.uses_t else stats.norm()

    def intervals(self, level: float = 0.95) -> Floats:
        """Return confidence intervals of the estimates, of shape (p, 2).

        Parameters
        ----------
        level : float, default=0.95
            Confidence level: probability that an interval covers the true coefficient.

        Returns
        -------
        intervals : ndarray of shape (p, 2)
            Intervals symmetric around the estimates; NaN where there is no estimate.

        Raises
        ------
        ValueError
            If the level is not between 0 and 1.
        """
        check_number("level", level, low=0.0, high=1.0)
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must be between 0 and 1, got {level!r}.")
        width = self._distribution().ppf(0.5 + 0.5 * level) * self.std_errors
        return np.column_stack([self.estimates - width, self.estimates + width])

    def columns(
        self, level: float = 0.95, exponentiate: bool = False
    ) -> dict[str, Any]:
        """Return the columns of ``table`` as arrays by their names.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level: probability that an interval covers the true coefficient.
        exponentiate : bool, default=False
            Whether to return exponentials of estimates and ends of intervals: odds
            ratios of the log loss, rate ratios of Poisson regression. Standard errors
            are multiplied by them (the delta method); tests remain about coefficients.

        Returns
        -------
        columns : dict of ndarray
            The columns of ``table``, without pandas.

        Raises
        ------
        ValueError
            If the level is not between 0 and 1.
        """
        statistic = self.estimates / self.std_errors
        columns: dict[str, Any] = {"feature": self.features}
        if self.outputs is not None and self.output_name is not None:
            columns[self.output_name] = self.outputs
        shown = [self.estimates, *self.intervals(level).T]
        errors = self.std_errors
        if exponentiate:
            shown = [np.exp(each) for each in shown]
            errors = errors * shown[0]
        estimates, low, high = shown
        return {
            **columns,
            "estimate": estimates,
            "std_error": errors,
            "t" if self.uses_t else "z": statistic,
            "p_value": 2.0 * self._distribution().sf(np.abs(statistic)),
            "lower": low,
            "upper": high,
        }

    def table(self, level: float = 0.95, exponentiate: bool = False) -> Any:
        """Return estimates, errors, tests and intervals as a table.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level: probability that an interval covers the true coefficient.
        exponentiate : bool, default=False
            Whether to return exponentials of estimates and ends of intervals: odds
            ratios of the log loss, rate ratios of Poisson regression. Standard errors
            are multiplied by them (the delta method); tests remain about coefficients.

        Returns
        -------
        table : pandas.DataFrame
            A table with the columns "feature", the kind of outputs if there are
            several, "estimate", "std_error", "t" or "z", "p_value" (two-sided, for a
            true coefficient of zero), "lower" and "upper".

        Raises
        ------
        ImportError
            If pandas is not installed.
        ValueError
            If the level is not between 0 and 1.
        """
        columns = self.columns(level, exponentiate)
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "table needs pandas: pip install pandas. Without it, columns returns "
                "the same as arrays."
            ) from error
        return pd.DataFrame(columns)

    def wald_test(self, hypotheses: Any, values: Any = 0.0) -> WaldTest:
        """Test whether linear functions of the coefficients have given values.

        Parameters
        ----------
        hypotheses : str, tuple, list, dict or ndarray of shape (m, p)
            The functions to test: a coefficient by the name of its feature; a linear
            combination as a dict from names to factors; a list of several of both; or a
            matrix whose rows are multiplied with ``estimates``. With several outputs, a
            name is a tuple (feature, output), and a name alone stands for all outputs.
            A name that ends with a star stands for all features with this prefix,
            except for combinations of other features.
            "region" stands for "region_*" if no feature has this name and all features
            of "region_*" are dummies of one factor, zeros and ones with at most one in
            a row, in a model with an intercept; also for "cat__region_*", as a
            ``ColumnTransformer`` names them.
        values : float or array-like of shape (m,), default=0.0
            The values of the functions under the hypotheses.

        Returns
        -------
        test : WaldTest
            The statistic, its degrees of freedom and the p-value.

        Raises
        ------
        ValueError
            If a name is unknown or belongs to several features, an estimate has no
            standard error, numbers are not finite, or hypotheses are missing, linearly
            dependent, or about several separate problems.
        """
        matrix = self._matrix(hypotheses)
        m = len(matrix)
        values = check_matrix("values", np.atleast_1d(values), np.shape(values) or (1,))
        if values.shape not in ((1,), (m,)):
            raise ValueError(
                f"values must be a number, or one for each of {m} hypotheses; got "
                f"shape {values.shape}."
            )
        used = matrix.any(axis=0)
        unknown = used & np.isnan(self.std_errors)
        if unknown.any():
            raise ValueError(
                f"There are no standard errors of {self.features[unknown].tolist()}, "
                "which depend on other features, are not bounded by the samples, or "
                "have a negative variance by two-way clusters."
            )
        covariance = self.covariance[np.ix_(used, used)]
        if np.isnan(covariance).any():
            raise ValueError(
                "Estimates of separate problems, such as different quantiles, have no "
                "joint covariance: test hypotheses about each by itself, or take "
                "kind='bootstrap'."
            )
        matrix = matrix[:, used]
        joint = matrix @ covariance @ matrix.T
        # Scaling makes the rank independent of the units of features.
        sizes = np.sqrt(np.diag(joint))
        sizes = np.where(sizes > 0.0, sizes, 1.0)
        joint = joint / sizes / sizes[:, None]
        rank = int(lapack.matrix_rank(joint, hermitian=True)) if m else 0
        if rank < max(m, 1):
            raise ValueError(
                f"Of {m} hypotheses {rank} are independent: leave out those that "
                "follow from the others, and give at least one. Coefficients and "
                "effects of all classes sum to zero: leave out one class, or give a "
                "reference to standard_errors."
            )
        differences = (matrix @ self.estimates[used] - values) / sizes
        try:
            solved = linalg.solve(joint, differences, assume_a="pos")
        except linalg.LinAlgError as error:
            raise ValueError(
                "The covariance by two-way clusters is not positive definite: test "
                "fewer hypotheses, or cluster one way."
            ) from error
        statistic = float(differences @ solved)
        if self.uses_t:
            statistic /= rank
            p_value = stats.f.sf(statistic, rank, self.df_resid)
            return WaldTest(statistic, rank, self.df_resid, float(p_value))
        return WaldTest(statistic, rank, np.inf, float(stats.chi2.sf(statistic, rank)))

    def _matrix(self, hypotheses: Any) -> Floats:
        """Return the matrix of hypotheses, of shape (m, p)."""
        p = len(self.estimates)
        rows = hypotheses if isinstance(hypotheses, list) else []
        nested = any(isinstance(each, (list, np.ndarray)) for each in rows)
        if nested or hasattr(hypotheses, "__array__"):
            array = np.atleast_2d(np.asarray(hypotheses))
            if nested or array.dtype.kind in "fiub":
                return check_matrix("hypotheses", array, (len(array), p))
            hypotheses = np.ravel(hypotheses).tolist()
        if not isinstance(hypotheses, list):
            hypotheses = [hypotheses]
        hypotheses = [part for each in hypotheses for part in self._parts(each)]
        matrix = np.zeros((len(hypotheses), p))
        for row, each in zip(matrix, hypotheses, strict=True):
            terms = each if isinstance(each, Mapping) else {each: 1.0}
            for name, factor in terms.items():
                check_number(f"The factor of {name!r}", factor, low=-np.inf)
                row[self._place(name)] += factor
        return matrix

    @property
    def _known(self) -> list[Any]:
        """Names of the coefficients, with outputs if there are several."""
        features = self.features.tolist()
        if self.outputs is None:
            return features
        return list(zip(features, self.outputs.tolist(), strict=True))

    def _parts(self, name: Any) -> list[Any]:
        """Return the coefficients that a starred name matches, or the name itself."""
        known = self._known
        if isinstance(name, Mapping) or name in known:
            return [name]
        start, *output = name if isinstance(name, tuple) else (name,)
        chosen = self.factors.get(start, [start])
        if str(start).endswith("*"):
            names = self.features.tolist()
            chosen = [each for each in names if str(each).startswith(str(start)[:-1])]
        parts = [
            each
            for each in known
            for feature, *its_output in [each if self.outputs is not None else (each,)]
            if output in ([], its_output) and feature in chosen
            if feature == start or feature not in (INTERCEPT, *self.dropped)
        ]
        return parts or [name]

    def _place(self, name: Any) -> int:
        known = self._known
        if known.count(name) != 1:
            shown = ", ".join(map(repr, known[:5])) + (", ..." if known[5:] else "")
            number = "no" if name not in known else "more than one"
            raise ValueError(
                f"There is {number} coefficient {name!r}; there are {shown}. A name "
                "with a star, such as 'region_*', stands for all that begin so."
            )
        return known.index(name)

"""Plots of residuals, which show where a model does not hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from .._checks.plotting import check_matplotlib, panels
from .._estimators.diagnostics import leverages_of, residuals_of
from .._estimators.fit_statistics import rows_of, statistics_of
from .._inference.likelihoods import means
from .reading import read_likelihood

_KINDS = ("fitted", "quantiles", "scale", "leverage")

# If a leverage is one up to rounding, the standardized residual is 0 / 0.
_ROUNDED = 1e-9


@dataclass(eq=False, kw_only=True, repr=False)
class ResidualsDisplay:
    """Residuals against fitted values, normal quantiles and leverages.

    It is recommended to use :meth:`from_estimator` to create a display. All parameters
    are stored as attributes.

    Parameters
    ----------
    fitted : ndarray of shape (n_samples,)
        Expected values of the samples.
    quantile_residuals : ndarray of shape (n_samples,)
        Randomized quantile residuals, which are standard normal if the model holds.
    standardized : ndarray of shape (n_samples,)
        Deviance residuals divided by the square root of the dispersion times 1 - h,
        with the leverages h. NaN for a leverage of one, since the model then fits every
        outcome of the sample. NaNs are not plotted.
    leverages : ndarray of shape (n_samples,)
        How much each sample determines its own fitted value.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
        Axes of the plots, in the order of "fitted", "quantiles", "scale", "leverage".
    figure_ : matplotlib Figure
        Figure that contains them.
    points_ : list of matplotlib PathCollection
        The samples in each plot.

    See Also
    --------
    residuals, leverages : The numbers of the samples.
    LiftDisplay : Observed and predicted means, for predictions of any model.

    References
    ----------
    P. K. Dunn, G. K. Smyth (1996), Randomized Quantile Residuals, Journal of
    Computational and Graphical Statistics 5.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn_subqn import BMRMRegressor, ResidualsDisplay
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BMRMRegressor(0, loss="squared_error", tol=1e-9).fit(X, y)
    >>> display = ResidualsDisplay.from_estimator(model, X, y)
    >>> len(display.axes_)
    4
    >>> plt.show()
    """

    fitted: npt.ArrayLike
    quantile_residuals: npt.ArrayLike
    standardized: npt.ArrayLike
    leverages: npt.ArrayLike

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        offset: Any = None,
        weights: str = "precision",
        random_state: Any = 0,
        kind: str = "all",
        ax: Any = None,
        scatter_kw: dict[str, Any] | None = None,
    ) -> ResidualsDisplay:
        """Plot the residuals of the samples of a fit.

        Parameters
        ----------
        estimator : estimator instance
            Fitted estimator as in :func:`residuals`.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.
        y : array-like of shape (n_samples,)
            Targets of the samples.
        sample_weight : array-like of shape (n_samples,), default=None
            The sample weights of the fit. Samples of weight zero are left out.
        offset : float or array-like of shape (n_samples,), default=None
            The offsets of the fit.
        weights : {"precision", "frequency"}, default="precision"
            Meaning of ``sample_weight``, as in :func:`standard_errors`.
        random_state : int, RandomState instance or None, default=0
            Seed of the quantile residuals of classes, counts and zeros.
        kind : {"all", "fitted", "quantiles", "scale", "leverage"}, default="all"
            The plot, or all four.
        ax : matplotlib Axes or sequence of four, default=None
            Axes to plot on; a new figure if None.
        scatter_kw : dict, default=None
            Keyword arguments for ``Axes.scatter``.

        Returns
        -------
        display : ResidualsDisplay
            The display, plotted.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If the objective of the model is unknown.
        ValueError
            If residuals or leverages are not defined for the model, data are invalid,
            or there are too few axes.
        """
        check_matplotlib(cls.__name__)
        read = read_likelihood(estimator, X, y, sample_weight, offset, weights)
        deviance, quantile = (
            residuals_of(read, each, random_state) for each in ("deviance", "quantile")
        )
        h, dispersion = leverages_of(read), statistics_of(read).dispersion
        free = np.where(h < 1.0 - _ROUNDED, 1.0 - h, np.nan)
        standardized = deviance / np.sqrt(dispersion * free)
        display = cls(
            fitted=means(read.power, rows_of(read)[0][:, 0]),
            quantile_residuals=quantile,
            standardized=standardized,
            leverages=h,
        )
        return display.plot(kind, ax=ax, scatter_kw=scatter_kw)

    def plot(
        self,
        kind: str = "all",
        *,
        ax: Any = None,
        scatter_kw: dict[str, Any] | None = None,
    ) -> ResidualsDisplay:
        """Plot the residuals.

        Parameters
        ----------
        kind : {"all", "fitted", "quantiles", "scale", "leverage"}, default="all"
            "fitted": quantile residuals against fitted values, a horizontal band if
            means are right. "quantiles": their order statistics against normal
            quantiles, a line if the distribution is right. "scale": square roots of
            absolute standardized residuals against fitted values, horizontal if
            variances are right. "leverage": standardized residuals against leverages;
            samples far right and far from zero determine the fit.
        ax : matplotlib Axes or sequence of four, default=None
            Axes to plot on; a new figure if None.
        scatter_kw : dict, default=None
            Keyword arguments for ``Axes.scatter``.

        Returns
        -------
        self : ResidualsDisplay
            The display, plotted.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If ``kind`` is unknown, or there are too few axes.
        """
        normal = np.sort(self.quantile_residuals)
        ranks = (np.arange(len(normal)) + 0.5) / max(len(normal), 1)
        fitted, level = "Fitted values", "Quantile residuals"
        plots = {
            "fitted": (self.fitted, self.quantile_residuals, fitted, level),
            "quantiles": (special.ndtri(ranks), normal, "Normal quantiles", level),
            "scale": (
                self.fitted,
                np.sqrt(np.abs(self.standardized)),
                fitted,
                "Root of standardized residuals",
            ),
            "leverage": (
                self.leverages,
                self.standardized,
                "Leverages",
                "Standardized residuals",
            ),
        }
        style = {"s": 8.0, "alpha": 0.6, **(scatter_kw or {})}
        self.points_ = []
        for each, axis in panels(self, kind, _KINDS, ax):
            x, residual, x_label, y_label = plots[each]
            line = {"color": "0.6", "linewidth": 1.0, "zorder": 0}
            if each == "quantiles":
                axis.axline((0.0, 0.0), slope=1.0, **line)
            elif each != "scale":
                axis.axhline(0.0, **line)
            self.points_.append(axis.scatter(x, residual, **style))
            axis.set(xlabel=x_label, ylabel=y_label)
        return self

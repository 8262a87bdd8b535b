"""Plots of observed against predicted means, and of how well predictions rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from ._checks import check_number, check_sample_weight
from ._checks.plotting import check_matplotlib, panels, styled
from ._core.names import check_same_rows

_KINDS = ("calibration", "lorenz")


@dataclass(eq=False, kw_only=True, repr=False)
class LiftDisplay:
    """Observed means by bins of the predictions, and the Lorenz curve of the outcomes.

    It is recommended to use :meth:`from_estimator` or :meth:`from_predictions` to
    create a display. All parameters are stored as attributes.

    Parameters
    ----------
    observed, predicted, weights : ndarray of shape (n_samples,)
        Outcomes, predicted means, and weights such as exposures.
    n_bins : int, default=10
        Number of bins with equal weights.
    name : str, default=None
        Name for the legend.

    Attributes
    ----------
    observed_means_, predicted_means_ : ndarray of shape (n_bins,) or shorter
        Weighted means of each bin, by ascending predictions. Equal predictions are in
        one bin, so that there may be fewer bins.
    gini_ : float
        One minus twice the area under the Lorenz curve: zero for predictions that do
        not rank the outcomes. NaN if outcomes are negative or all zero.
    axes_ : list of matplotlib Axes
        Axes of the plots, in the order of "calibration", "lorenz".
    figure_ : matplotlib Figure
        Figure that contains them.
    lines_ : list of matplotlib Line2D
        The curve in each plot.

    See Also
    --------
    ResidualsDisplay : Residuals of the samples of a fit.
    sklearn.calibration.CalibrationDisplay : Probabilities of two classes.

    References
    ----------
    M. Denuit, D. Sznajder, J. Trufin (2019), Model Selection Based on Lorenz and
    Concentration Curves, Gini Indices and Convex Order, Insurance: Mathematics and
    Economics 89.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn_subqn import BMRMRegressor, LiftDisplay
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BMRMRegressor(0, loss="gamma", tol=1e-6).fit(X, y)
    >>> display = LiftDisplay.from_estimator(model, X, y)
    >>> round(display.gini_, 2)
    0.21
    >>> plt.show()
    """

    observed: npt.ArrayLike
    predicted: npt.ArrayLike
    weights: npt.ArrayLike
    n_bins: int = 10
    name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        offset: Any = None,
        n_bins: int = 10,
        name: str | None = None,
        kind: str = "all",
        ax: Any = None,
        line_kw: dict[str, Any] | None = None,
    ) -> LiftDisplay:
        """Plot the predictions of a fitted estimator for samples.

        Parameters
        ----------
        estimator : estimator instance
            Fitted regressor, or classifier of two classes with ``predict_proba``.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples, preferably not the training samples.
        y : array-like of shape (n_samples,)
            Targets of the samples.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, such as exposures of frequencies.
        offset : float or array-like of shape (n_samples,), default=None
            Offsets of the samples, for estimators that take them in predictions.
        n_bins : int, default=10
            Number of bins with equal weights, at least 1.
        name : str, default=None
            Name for the legend; the class of the estimator if None.
        kind : {"all", "calibration", "lorenz"}, default="all"
            The plot, or both.
        ax : matplotlib Axes or sequence of two, default=None
            Axes to plot on; a new figure if None.
        line_kw : dict, default=None
            Keyword arguments for ``Axes.plot``.

        Returns
        -------
        display : LiftDisplay
            The display, plotted.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If a classifier has no probabilities.
        ValueError
            If there are more than two classes, data are invalid, or there are too few
            axes.
        """
        check_is_fitted(estimator)
        given = {} if offset is None else {"offset": offset}
        if is_classifier(estimator):
            if len(estimator.classes_) != 2:
                raise ValueError(
                    "Lifts are for two classes: give the labels of one class and its "
                    "probabilities to from_predictions."
                )
            check_same_rows(X, y=y)
            y = np.asarray(y)
            if not np.isin(y, estimator.classes_).all():
                raise ValueError(
                    f"y must have the classes of the model, "
                    f"{estimator.classes_.tolist()}; it has {np.unique(y).tolist()}."
                )
            if not hasattr(estimator, "predict_proba"):
                raise TypeError(
                    f"{type(estimator).__name__} has no predict_proba: calibrate it "
                    "by CalibratedClassifierCV, or give probabilities to "
                    "from_predictions."
                )
            y = y == estimator.classes_[1]
            predicted = estimator.predict_proba(X, **given)[:, 1]
        else:
            predicted = estimator.predict(X, **given)
        return cls.from_predictions(
            y,
            predicted,
            sample_weight,
            n_bins=n_bins,
            name=type(estimator).__name__ if name is None else name,
            kind=kind,
            ax=ax,
            line_kw=line_kw,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        sample_weight: Any = None,
        *,
        n_bins: int = 10,
        name: str | None = None,
        kind: str = "all",
        ax: Any = None,
        line_kw: dict[str, Any] | None = None,
    ) -> LiftDisplay:
        """Plot predictions of any model.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Observed outcomes; booleans or 0 and 1 for two classes.
        y_pred : array-like of shape (n_samples,)
            Predicted means or probabilities.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, such as exposures of frequencies.
        n_bins : int, default=10
            Number of bins with equal weights, at least 1.
        name : str, default=None
            Name for the legend.
        kind : {"all", "calibration", "lorenz"}, default="all"
            The plot, or both.
        ax : matplotlib Axes or sequence of two, default=None
            Axes to plot on; a new figure if None.
        line_kw : dict, default=None
            Keyword arguments for ``Axes.plot``.

        Returns
        -------
        display : LiftDisplay
            The display, plotted.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If data are invalid, or there are too few axes.
        """
        check_matplotlib(cls.__name__)
        check_number("n_bins", n_bins, low=1, integer=True)
        check_same_rows(y_pred, y_true=y_true, sample_weight=sample_weight)
        observed, predicted = (
            np.asarray(each, dtype=np.float64) for each in (y_true, y_pred)
        )
        if observed.ndim != 1 or observed.shape != predicted.shape or not len(observed):
            raise ValueError(
                "y_true and y_pred must have one dimension and the same, positive "
                f"length; got shapes {observed.shape} and {predicted.shape}."
            )
        if not np.isfinite([observed, predicted]).all():
            raise ValueError("y_true and y_pred must be finite.")
        weights = check_sample_weight(sample_weight, len(observed))
        display = cls(
            observed=observed,
            predicted=predicted,
            weights=weights,
            n_bins=n_bins,
            name=name,
        )
        return display.plot(kind, ax=ax, line_kw=line_kw)

    def plot(
        self,
        kind: str = "all",
        *,
        ax: Any = None,
        line_kw: dict[str, Any] | None = None,
    ) -> LiftDisplay:
        """Plot the predictions.

        Parameters
        ----------
        kind : {"all", "calibration", "lorenz"}, default="all"
            "calibration": mean outcomes against mean predictions of bins with equal
            weights, on the diagonal if means are right. "lorenz": shares of the sum of
            outcomes against shares of the weights, by ascending predictions; a lower
            curve means a better ranking.
        ax : matplotlib Axes or sequence of two, default=None
            Axes to plot on; a new figure if None.
        line_kw : dict, default=None
            Keyword arguments for ``Axes.plot``.

        Returns
        -------
        self : LiftDisplay
            The display, plotted.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If ``kind`` is unknown, or there are too few axes.
        """
        weights, observed = np.asarray(self.weights), np.asarray(self.observed)
        levels, codes = np.unique(self.predicted, return_inverse=True)
        sums = np.array(
            [np.bincount(codes, each) for each in (weights, weights * observed)]
        )
        totals = sums.sum(axis=1)
        shares = np.cumsum(sums[0]) / totals[0]
        middles = shares - 0.5 * sums[0] / totals[0]
        bins = np.minimum((middles * self.n_bins).astype(np.intp), self.n_bins - 1)
        of_bins = np.array(
            [np.bincount(bins, each) for each in (*sums, sums[0] * levels)]
        )
        of_bins = of_bins[:, of_bins[0] > 0.0]
        self.observed_means_, self.predicted_means_ = of_bins[1:] / of_bins[0]
        lorenz = np.zeros((2, len(levels) + 1))
        lorenz[0, 1:], lorenz[1, 1:] = shares, np.nan
        if np.all(observed >= 0.0) and totals[1] > 0.0:
            lorenz[1, 1:] = np.cumsum(sums[1]) / totals[1]
        self.gini_ = 1.0 - float(np.diff(lorenz[0]) @ (lorenz[1, 1:] + lorenz[1, :-1]))
        ends = np.array([self.predicted_means_.min(), self.predicted_means_.max()])
        plots = {
            "calibration": (
                (self.predicted_means_, self.observed_means_, self.name, ends),
                ("Mean prediction", "Mean outcome"),
            ),
            "lorenz": (
                (
                    *lorenz,
                    ", ".join([*filter(None, [self.name]), f"Gini {self.gini_:.3f}"]),
                    np.array([0.0, 1.0]),
                ),
                ("Share of weights, lowest predictions first", "Share of outcomes"),
            ),
        }
        self.lines_ = []
        for each, axis in panels(self, kind, _KINDS, ax):
            (x, y, label, diagonal), (x_label, y_label) = plots[each]
            axis.plot(diagonal, diagonal, color="0.6", linewidth=1.0, zorder=0)
            marker = "o" if each == "calibration" else ""
            style = styled({"marker": marker, "label": label}, line_kw)
            self.lines_ += axis.plot(x, y, **style)
            axis.set(xlabel=x_label, ylabel=y_label)
            if label:
                axis.legend()
        return self

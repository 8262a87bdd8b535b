"""Plots of survival functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ._checks.plotting import axes, check_records, styled


@dataclass(eq=False, kw_only=True, repr=False)
class SurvivalCurvesDisplay:
    """Predicted probabilities of having no event, as steps over time.

    It is recommended to use :meth:`from_estimator` to create a display. All parameters
    are stored as attributes.

    Parameters
    ----------
    times : ndarray of shape (n_times,)
        Times of the steps, in ascending order.
    probabilities : ndarray of shape (n_samples, n_times)
        Probabilities of each sample from these times on.
    names : sequence of str of length n_samples, default=None
        Names of the samples for the legend; no legend if None.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the plot.
    figure_ : matplotlib Figure
        Figure that contains it.
    lines_ : list of matplotlib Line2D
        The curve of each sample.

    See Also
    --------
    CoxRegression : Predicts such probabilities.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> from sklearn_subqn import CoxRegression, SurvivalCurvesDisplay
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = rng.exponential(np.exp(-X[:, 0])), rng.random(200) < 0.7
    >>> model = CoxRegression().fit(X, y)
    >>> display = SurvivalCurvesDisplay.from_estimator(model, X[:3])
    >>> len(display.lines_)
    3
    >>> plt.show()
    """

    times: npt.ArrayLike
    probabilities: npt.ArrayLike
    names: Sequence[str] | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        strata: Any = None,
        offset: Any = None,
        names: Sequence[str] | None = None,
        ax: Any = None,
        line_kw: dict[str, Any] | None = None,
    ) -> SurvivalCurvesDisplay:
        """Plot the survival functions of samples.

        Parameters
        ----------
        estimator : estimator instance
            Fitted :class:`CoxRegression` or :class:`CoxRegressionCV`.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        strata : array-like of shape (n_samples,), default=None
            The strata of the samples, required after a fit with strata.
        offset : float or array-like of shape (n_samples,), default=None
            Numbers that are added to the scores.
        names : sequence of str of length n_samples, default=None
            Names of the samples for the legend; no legend if None.
        ax : matplotlib Axes, default=None
            Axes to plot on; a new figure if None.
        line_kw : dict, default=None
            Keyword arguments for ``Axes.plot``.

        Returns
        -------
        display : SurvivalCurvesDisplay
            The display, plotted.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        NotFittedError
            If the estimator is not fitted.
        ValueError
            If the estimator has no baseline hazard, or data or names are invalid.
        """
        check_records(estimator, "baseline_cumulative_hazard_")
        given = {"strata": strata, "offset": offset}
        probabilities = estimator.predict_survival_function(X, **given)
        display = cls(
            times=estimator.event_times_, probabilities=probabilities, names=names
        )
        return display.plot(ax=ax, line_kw=line_kw)

    def plot(
        self, *, ax: Any = None, line_kw: dict[str, Any] | None = None
    ) -> SurvivalCurvesDisplay:
        """Plot the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on; a new figure if None.
        line_kw : dict, default=None
            Keyword arguments for ``Axes.plot``.

        Returns
        -------
        self : SurvivalCurvesDisplay
            The display, plotted.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If there is not one name for each sample.
        """
        curves, names = np.atleast_2d(self.probabilities), self.names
        labels = [None] * len(curves) if names is None else list(map(str, names))
        if len(labels) != len(curves):
            raise ValueError(
                f"names must have one name for each of {len(curves)} samples; "
                f"got {len(labels)}."
            )
        ax = axes(self, ax)
        self.ax_, self.figure_, self.lines_ = ax, ax.figure, []
        times = np.append(0.0, self.times)
        for curve, label in zip(curves, labels, strict=True):
            style = styled({"drawstyle": "steps-post", "label": label}, line_kw)
            self.lines_ += ax.plot(times, np.append(1.0, curve), **style)
        ax.set(xlabel="Time", ylabel="Probability of no event", ylim=(0.0, 1.02))
        if names is not None:
            ax.legend()
        return self

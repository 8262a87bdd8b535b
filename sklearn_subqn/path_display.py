"""Plots of regularization paths."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import clone, is_classifier

from ._checks import check_number
from ._checks.plotting import axes, check_matplotlib, check_records, styled
from ._core.arrays import Floats
from ._search.warm_paths import check_alphas
from .exceptions import ConstantModelWarning


@dataclass(eq=False, kw_only=True, repr=False)
class PathScoreDisplay:
    """Scores on held-out samples along a path of ``alpha``.

    It is recommended to use :meth:`from_estimator` to create a display. All parameters
    are stored as attributes.

    Parameters
    ----------
    alphas : ndarray of shape (n_alphas,)
        The grid.
    scores : ndarray of shape (n_folds, n_alphas)
        Scores of each fold.
    alpha : float, default=None
        The chosen value, which is marked.
    score_name : str, default=None
        Name of the score, for the axis; "Score" if None.
    estimator_name : str, default=None
        Name of the estimator, for the legend.
    bounds : ndarray of shape (n_intervals, 4), default=None
        Ends of intervals, and bounds of the mean score between them, as in
        ``score_bounds_``.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the plot.
    figure_ : matplotlib Figure
        Figure that contains it.
    line_ : matplotlib Line2D
        Means over the folds.
    area_ : matplotlib PolyCollection
        One standard deviation over the folds on both sides, or the area between the
        ``bounds`` if given.
    alpha_line_ : matplotlib Line2D or None
        Vertical line at the chosen value.

    See Also
    --------
    SubLBFGSLinearSVCCV, L1LogisticOWLQNCV, BMRMRegressorCV, BMRMRankerCV : Estimators
        with such scores.
    CoefficientPathDisplay : Coefficients along a path.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_subqn import L1LogisticOWLQNCV, PathScoreDisplay
    >>> X, y = make_classification(random_state=0)
    >>> clf = L1LogisticOWLQNCV(alphas=5, cv=3, scoring="neg_log_loss").fit(X, y)
    >>> display = PathScoreDisplay.from_estimator(clf)
    >>> display.ax_.get_ylabel()
    'neg_log_loss'
    >>> plt.show()
    """

    alphas: npt.ArrayLike
    scores: npt.ArrayLike
    alpha: float | None = None
    score_name: str | None = None
    estimator_name: str | None = None
    bounds: npt.ArrayLike | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        ax: Any = None,
        name: str | None = None,
        score_name: str | None = None,
        line_kw: dict[str, Any] | None = None,
        fill_kw: dict[str, Any] | None = None,
    ) -> PathScoreDisplay:
        """Plot the ``scores_path_`` of a fitted estimator.

        Parameters
        ----------
        estimator : estimator instance
            Fitted estimator with ``alphas_``, ``alpha_`` and ``scores_path_``; the path
            of the chosen ``l1_ratio_`` is shown. For a pipeline pass its last step.
        ax : matplotlib Axes, default=None
            Axes to plot on; a new figure if None.
        name : str, default=None
            Name for the legend; the class of the estimator if None.
        score_name : str, default=None
            Name of the score; by default ``scoring`` of the estimator, if it is a
            string.
        line_kw, fill_kw : dict, default=None
            Keyword arguments for ``Axes.plot`` of the means, and for
            ``Axes.fill_between``.

        Returns
        -------
        display : PathScoreDisplay
            The display, plotted.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        NotFittedError
            If the estimator is not fitted.
        ValueError
            If the estimator has no ``scores_path_``.
        """
        check_records(estimator, "scores_path_")
        if score_name is None:
            # Rankers always use NDCG.
            scoring = getattr(estimator, "scoring", "NDCG")
            if scoring is None and is_classifier(estimator):
                scoring = "accuracy"
            score_name = scoring if isinstance(scoring, str) else None
        alphas, scores = estimator.alphas_, estimator.scores_path_
        if alphas.ndim > 1:
            path = list(estimator.l1_ratio).index(estimator.l1_ratio_)
            alphas, scores = alphas[path], scores[path]
        display = cls(
            alphas=alphas,
            scores=scores,
            alpha=estimator.alpha_,
            score_name=score_name,
            estimator_name=type(estimator).__name__ if name is None else name,
            bounds=getattr(estimator, "score_bounds_", None),
        )
        return display.plot(ax=ax, line_kw=line_kw, fill_kw=fill_kw)

    def plot(
        self,
        *,
        ax: Any = None,
        name: str | None = None,
        line_kw: dict[str, Any] | None = None,
        fill_kw: dict[str, Any] | None = None,
    ) -> PathScoreDisplay:
        """Plot the scores.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to plot on; a new figure if None.
        name : str, default=None
            Name for the legend; ``estimator_name`` if None.
        line_kw, fill_kw : dict, default=None
            Keyword arguments for ``Axes.plot`` of the means, and for
            ``Axes.fill_between``.

        Returns
        -------
        self : PathScoreDisplay
            The display, plotted.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = axes(self, ax)
        self.ax_, self.figure_ = ax, ax.figure
        scores = np.asarray(self.scores)
        scored = np.isfinite(scores).any(axis=1)
        # Folds that could not be scored are excluded, as in the choice of alpha.
        scores = scores[scored] if scored.any() else scores
        mean, deviation = scores.mean(axis=0), scores.std(axis=0)
        label = self.estimator_name if name is None else name
        style = styled({"marker": ".", "label": label}, line_kw)
        (self.line_,) = ax.plot(self.alphas, mean, **style)
        color = self.line_.get_color()
        style = {"alpha": 0.2, "color": color, "linewidth": 0.0}
        style = styled(style, fill_kw, area=True)
        at, low, high = self.alphas, mean - deviation, mean + deviation
        if self.bounds is not None:
            # The bounds are drawn as a step function over the intervals.
            first, last, low, high = np.repeat(np.asarray(self.bounds), 2, axis=0).T
            at = np.where(np.arange(len(first)) % 2, last, first)
        self.area_ = ax.fill_between(at, low, high, **style)
        self.alpha_line_ = None
        if self.alpha is not None:
            style = {"color": color, "linestyle": ":", "linewidth": 1.0}
            self.alpha_line_ = ax.axvline(self.alpha, **style)
        ax.set(xscale="log", xlabel="alpha", ylabel=self.score_name or "Score")
        if ax.get_legend_handles_labels()[0]:
            ax.legend()
        return self


@dataclass(eq=False, kw_only=True, repr=False)
class CoefficientPathDisplay:
    """Coefficients along a path of ``alpha``.

    It is recommended to use :meth:`from_estimator` to create a display. All parameters
    are stored as attributes.

    Parameters
    ----------
    alphas : ndarray of shape (n_alphas,)
        The grid.
    coefs : ndarray of shape (n_alphas, n_features)
        Coefficients for each value of ``alphas``.
    feature_names : sequence of str of length n_features, default=None
        Names for the legend; "x0", "x1", ... if None.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the plot.
    figure_ : matplotlib Figure
        Figure that contains it.
    lines_ : list of matplotlib Line2D
        The named coefficients, the largest first.
    other_lines_ : list of matplotlib Line2D
        The other coefficients that are not always zero.

    See Also
    --------
    PathScoreDisplay : Scores along a path.

    Notes
    -----
    Coefficients of features with different scales are not comparable: standardize
    first.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_subqn import CoefficientPathDisplay, L1LogisticOWLQN
    >>> X, y = make_classification(random_state=0)
    >>> clf = L1LogisticOWLQN()
    >>> alphas = clf.alpha_max(X, y) * np.geomspace(1, 1e-3, 20)
    >>> display = CoefficientPathDisplay.from_estimator(clf, X, y, alphas)
    >>> display.coefs.shape
    (20, 20)
    >>> plt.show()
    """

    alphas: npt.ArrayLike
    coefs: npt.ArrayLike
    feature_names: Sequence[str] | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        alphas: npt.ArrayLike,
        *,
        target: int | None = None,
        n_named: int = 10,
        ax: Any = None,
        line_kw: dict[str, Any] | None = None,
        **fit_params: Any,
    ) -> CoefficientPathDisplay:
        """Fit a path and plot its coefficients.

        A clone of the estimator is fitted for each value, from the largest to the
        smallest, with warm starts.

        Parameters
        ----------
        estimator : estimator instance
            Linear estimator with parameters ``alpha`` and ``warm_start``. It is not
            changed.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Training targets.
        alphas : array-like of shape (n_alphas,)
            The grid.
        target : int, default=None
            The row of ``coef_``, for a class, label or output, if there are several
            rows.
        n_named : int, default=10
            Number of coefficients with colors and names, chosen by the largest value on
            the path; the other coefficients are gray.
        ax : matplotlib Axes, default=None
            Axes to plot on; a new figure if None.
        line_kw : dict, default=None
            Keyword arguments for ``Axes.plot`` of the named coefficients.
        **fit_params
            Arguments of ``fit``, such as ``sample_weight``.

        Returns
        -------
        display : CoefficientPathDisplay
            The display, plotted.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If the estimator does not have the parameters or ``coef_``, a parameter or
            data are invalid, or ``coef_`` has several rows and ``target`` is None.
        """
        parameters = estimator.get_params(deep=False)
        if not {"alpha", "warm_start"} <= parameters.keys():
            raise ValueError(
                "estimator must have parameters alpha and warm_start; "
                f"{type(estimator).__name__} has not."
            )
        check_number("n_named", n_named, low=0, integer=True)
        check_matplotlib(cls.__name__)
        grid = check_alphas(np.atleast_1d(alphas))
        model = clone(estimator).set_params(warm_start=True)
        coefs = []
        for alpha in grid:
            model.set_params(alpha=float(alpha))
            with warnings.catch_warnings():
                # At the start of a path all coefficients may be zero.
                warnings.simplefilter("ignore", ConstantModelWarning)
                model.fit(X, y, **fit_params)
            if not hasattr(model, "coef_"):
                raise ValueError(
                    "estimator must have coefficients coef_ once it is fitted; "
                    f"{type(estimator).__name__} has not."
                )
            coefs.append(_row_of(model.coef_, target))
        display = cls(
            alphas=grid,
            coefs=np.array(coefs),
            feature_names=getattr(model, "feature_names_in_", None),
        )
        return display.plot(n_named=n_named, ax=ax, line_kw=line_kw)

    def plot(
        self,
        *,
        n_named: int = 10,
        ax: Any = None,
        line_kw: dict[str, Any] | None = None,
    ) -> CoefficientPathDisplay:
        """Plot the coefficients.

        Parameters
        ----------
        n_named : int, default=10
            Number of coefficients with colors and names; the other coefficients are
            gray.
        ax : matplotlib Axes, default=None
            Axes to plot on; a new figure if None.
        line_kw : dict, default=None
            Keyword arguments for ``Axes.plot`` of the named coefficients.

        Returns
        -------
        self : CoefficientPathDisplay
            The display, plotted.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        check_number("n_named", n_named, low=0, integer=True)
        ax = axes(self, ax)
        self.ax_, self.figure_ = ax, ax.figure
        coefs = np.asarray(self.coefs)
        largest = np.abs(coefs).max(axis=0)
        used = np.argsort(-largest, kind="stable")[: np.count_nonzero(largest)]
        named, others = used[:n_named], used[n_named:]
        style = {"color": "0.8", "linewidth": 0.8}
        self.other_lines_ = []
        if len(others):
            self.other_lines_ += ax.plot(self.alphas, coefs[:, others], **style)
        self.lines_ = []
        for j in named:
            label = f"x{j}" if self.feature_names is None else self.feature_names[j]
            style = styled({"label": label}, line_kw)
            self.lines_ += ax.plot(self.alphas, coefs[:, j], **style)
        ax.set(xscale="log", xlabel="alpha", ylabel="Coefficients")
        if self.lines_:
            ax.legend(fontsize="small", ncols=2)
        return self


def _row_of(coef: Any, target: Any) -> Floats:
    """Return the coefficients of a target as a new array."""
    if sparse.issparse(coef):
        coef = coef.toarray()
    rows = np.atleast_2d(coef)
    if len(rows) == 1 and target is None:
        target = 0
    is_index = isinstance(target, numbers.Integral) and not isinstance(target, bool)
    if not is_index or target not in range(len(rows)):
        raise ValueError(
            f"target must be one of 0 to {len(rows) - 1}, the rows of coef_; "
            f"got {target!r}."
        )
    return np.array(rows[target], dtype=np.float64)

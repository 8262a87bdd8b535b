"""Plots of the convergence of a fit."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._checks import check_option
from ._checks.plotting import axes, check_records, styled
from ._checks.signatures import parameters_of
from ._core.arrays import Floats
from ._core.solvers import History

_X_LABELS = {
    "passes": "Passes over the data",
    "seconds": "Seconds",
    "iterations": "Iterations",
}
_Y_LABELS = {"gap": "Relative gap", "objective": "Objective"}
_DISTANCE = "Objective less reference"

# Phases are labeled by the name of the corresponding limited-memory solver.
_SOLVERS = {"subbfgs": "sublbfgs", "bfgs": "lbfgs", "newton": "newton-cg"}

# Parameters that the label of a line omits.
_ASIDE = {
    "callback",
    "max_iter",
    "n_jobs",
    "random_state",
    "tol",
    "verbose",
    "warm_start",
}


@dataclass(eq=False, kw_only=True, repr=False)
class ConvergenceDisplay:
    """The proven gap during a fit, or the objective and its lower bound.

    It is recommended to use :meth:`from_estimator` to create a display. All parameters
    are stored as attributes.

    Parameters
    ----------
    histories : list of History
        One record per binary problem, as in ``history_`` of an estimator.
    estimator_name : str, default=None
        Name of the estimator, for the legend.
    problem_names : list of str, default=None
        Names of the problems, for the legend where there are several.
    solver : str, default=None
        The parameter ``solver`` of the estimator, for the labels of phases.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the plot.
    figure_ : matplotlib Figure
        Figure that contains it.
    lines_ : list of matplotlib Line2D
        For each problem the relative gap, the distance from the reference, or the
        objective.
    bound_lines_ : list of matplotlib Line2D
        For each problem the lower bound; empty if the gap is plotted.
    gap_areas_ : list of matplotlib PolyCollection
        For each problem the area between objective and lower bound; empty if the gap is
        plotted.
    phase_lines_ : list of matplotlib Line2D
        Vertical lines where the solver changes its method, labeled if there is a single
        problem. Axes with lines of other fits have none.

    See Also
    --------
    SubLBFGSLinearSVC : Linear support vector classifier with a ``history_``.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_subqn import ConvergenceDisplay, SubLBFGSLinearSVC
    >>> X, y = make_classification(random_state=0)
    >>> clf = SubLBFGSLinearSVC(alpha=1e-2, tol=1e-2).fit(X, y)
    >>> display = ConvergenceDisplay.from_estimator(clf)
    >>> display.ax_.get_yscale()
    'log'
    >>> plt.show()
    """

    histories: Sequence[History]
    estimator_name: str | None = None
    problem_names: Sequence[str] | None = None
    solver: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        x: str = "passes",
        kind: str = "gap",
        reference: Any = None,
        ax: Any = None,
        name: str | None = None,
        line_kw: dict[str, Any] | None = None,
        bound_kw: dict[str, Any] | None = None,
        fill_kw: dict[str, Any] | None = None,
    ) -> ConvergenceDisplay:
        """Plot the ``history_`` of a fitted estimator.

        Parameters
        ----------
        estimator : estimator instance
            Fitted; for a pipeline pass its last step.
        x : {"passes", "seconds", "iterations"}, default="passes"
            Horizontal axis. A pass is one product with all of X or its transpose.
        kind : {"gap", "objective"}, default="gap"
            "gap": the proven relative gap on a logarithmic scale, that is, the best
            objective so far minus the best lower bound so far, divided by the objective
            (for Poisson, gamma and Tweedie losses by half the deviance plus the
            penalty). "objective": the objective, the lower bound and the area between
            both.
        reference : float or array-like of shape (n_problems,), default=None
            A known optimum, such as the objective of a fit with a tiny ``tol``. The gap
            then is the objective minus the reference, as in the literature, instead of
            the lower bound.
        ax : matplotlib Axes, default=None
            Axes to plot on; a new figure if None. Several fits are compared by
            passing the same axes.
        name : str, default=None
            Name for the legend; if None the class of the estimator, with its
            non-default parameters.
        line_kw, bound_kw, fill_kw : dict, default=None
            Keyword arguments for ``Axes.plot`` of the objective or gap, for
            ``Axes.plot`` of the lower bound, and for ``Axes.fill_between``.

        Returns
        -------
        display : ConvergenceDisplay
            The display, plotted.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        NotFittedError
            If the estimator is not fitted.
        ValueError
            If the estimator has no ``history_``, such as a pipeline, ``x`` or ``kind``
            is not one of the accepted strings, or ``reference`` does not have one
            number for each problem.
        """
        check_records(estimator, "history_")
        histories = estimator.history_
        classes = getattr(estimator, "classes_", ())
        names = None
        if len(histories) == len(classes):
            names = [f"class {label}" for label in classes]
        display = cls(
            histories=histories,
            estimator_name=_described(estimator) if name is None else name,
            problem_names=names,
            solver=getattr(estimator, "solver", None),
        )
        return display.plot(
            x,
            kind,
            reference=reference,
            ax=ax,
            line_kw=line_kw,
            bound_kw=bound_kw,
            fill_kw=fill_kw,
        )

    @classmethod
    def from_result(
        cls,
        result: Any,
        *,
        x: str = "iterations",
        kind: str = "gap",
        reference: Any = None,
        ax: Any = None,
        name: str | None = None,
        line_kw: dict[str, Any] | None = None,
        bound_kw: dict[str, Any] | None = None,
        fill_kw: dict[str, Any] | None = None,
    ) -> ConvergenceDisplay:
        """Plot the ``history`` of a result of :func:`minimize`.

        Parameters
        ----------
        result : scipy.optimize.OptimizeResult
            The result of :func:`minimize`.
        x : {"iterations", "seconds"}, default="iterations"
            Horizontal axis.
        kind : {"gap", "objective"}, default="gap"
            Plotted quantity, as in :meth:`from_estimator`.
        reference : float, default=None
            A known optimum, from which the gap is measured.
        ax : matplotlib Axes, default=None
            Axes to plot on; a new figure if None.
        name : str, default=None
            Name for the legend.
        line_kw, bound_kw, fill_kw : dict, default=None
            As in :meth:`from_estimator`.

        Returns
        -------
        display : ConvergenceDisplay
            The display, plotted.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError, ValueError
            If the result has no history, or if ``x`` or ``kind`` is not one of the
            accepted strings.
        """
        history = getattr(result, "history", None)
        if not isinstance(history, History):
            raise TypeError(
                "result must be what minimize returned, with a history; got "
                f"{type(result).__name__}."
            )
        check_option("x", x, ["iterations", "seconds"])
        return cls(histories=[history], estimator_name=name).plot(
            x,
            kind,
            reference=reference,
            ax=ax,
            line_kw=line_kw,
            bound_kw=bound_kw,
            fill_kw=fill_kw,
        )

    def plot(
        self,
        x: str = "passes",
        kind: str = "gap",
        *,
        reference: Any = None,
        ax: Any = None,
        name: str | None = None,
        line_kw: dict[str, Any] | None = None,
        bound_kw: dict[str, Any] | None = None,
        fill_kw: dict[str, Any] | None = None,
    ) -> ConvergenceDisplay:
        """Plot the histories.

        Parameters
        ----------
        x : {"passes", "seconds", "iterations"}, default="passes"
            Horizontal axis.
        kind : {"gap", "objective"}, default="gap"
            Plotted quantity, as in :meth:`from_estimator`.
        reference : float or array-like of shape (n_problems,), default=None
            A known optimum, from which the gap is measured.
        ax : matplotlib Axes, default=None
            Axes to plot on; a new figure if None.
        name : str, default=None
            Name for the legend; ``estimator_name`` if None.
        line_kw, bound_kw, fill_kw : dict, default=None
            Keyword arguments for ``Axes.plot`` of the objective or gap, for
            ``Axes.plot`` of the lower bound, and for ``Axes.fill_between``.

        Returns
        -------
        self : ConvergenceDisplay
            The display, plotted.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If ``x`` or ``kind`` is not one of the accepted strings, or ``reference``
            does not have one number for each problem.
        """
        check_option("x", x, list(_X_LABELS))
        check_option("kind", kind, list(_Y_LABELS))
        references = _references(reference, len(self.histories))
        ax = axes(self, ax)
        shared = bool(ax.lines)
        self.ax_, self.figure_ = ax, ax.figure
        self.lines_, self.gap_areas_ = list[Any](), list[Any]()
        self.bound_lines_, self.phase_lines_ = list[Any](), list[Any]()
        for index, history in enumerate(self.histories):
            positions = _positions(history, x)
            label = self._label(index, name)
            if kind == "gap":
                gap = _gap(history, references[index])
                style = styled({"drawstyle": "steps-post", "label": label}, line_kw)
                self.lines_ += ax.plot(positions, gap, **style)
            else:
                self._plot_objective(
                    positions, history, label, line_kw, bound_kw, fill_kw
                )
            if not shared:
                self._mark_phases(positions, history, self.lines_[-1].get_color())
        y_label = _Y_LABELS[kind]
        if kind == "gap":
            ax.set_yscale("log")
            y_label = y_label if reference is None else _DISTANCE
        ax.set(xlabel=_X_LABELS[x], ylabel=y_label)
        if ax.get_legend_handles_labels()[0]:
            ax.legend()
        return self

    def _label(self, index: int, name: str | None) -> str | None:
        name = self.estimator_name if name is None else name
        if len(self.histories) == 1:
            return name
        names = self.problem_names
        problem = f"problem {index}" if names is None else names[index]
        return f"{name}, {problem}" if name else problem

    def _plot_objective(
        self,
        positions: Floats,
        history: History,
        label: str | None,
        line_kw: dict[str, Any] | None,
        bound_kw: dict[str, Any] | None,
        fill_kw: dict[str, Any] | None,
    ) -> None:
        objective = np.asarray(history.objective)
        bound = np.asarray(history.lower_bound)
        bound = np.where(np.isfinite(bound), bound, np.nan)
        style = styled({"drawstyle": "steps-post", "label": label}, line_kw)
        (line,) = self.ax_.plot(positions, objective, **style)
        color = line.get_color()
        style = {"drawstyle": "steps-post", "linestyle": "--", "color": color}
        if label is not None:
            style["label"] = f"{label}, lower bound"
        self.lines_.append(line)
        style = styled(style, bound_kw)
        self.bound_lines_ += self.ax_.plot(positions, bound, **style)
        style = {"step": "post", "alpha": 0.2, "color": color, "linewidth": 0.0}
        style = styled(style, fill_kw, area=True)
        area = self.ax_.fill_between(positions, bound, objective, **style)
        self.gap_areas_.append(area)

    def _mark_phases(self, positions: Floats, history: History, color: Any) -> None:
        # The name of a method ends at a colon; details follow.
        phases = [self._written(phase.partition(":")[0]) for phase in history.phase]
        changes = [i for i in range(1, len(phases)) if phases[i] != phases[i - 1]]
        if not changes:
            return
        labeled: set[str] = set()
        for i in (0, *changes):
            # The method that produced iterate i started at iterate i - 1.
            start = positions[max(i - 1, 0)]
            if i:
                style = {"color": color, "linestyle": ":", "linewidth": 1.0}
                self.phase_lines_.append(self.ax_.axvline(start, **style))
            # If phases change often, only the first phase of each name is labeled.
            crowded = len(changes) > 8 and phases[i] in labeled
            if crowded or len(self.histories) > 1:
                continue
            labeled.add(phases[i])
            self.ax_.annotate(
                phases[i],
                (start, 0.0),
                xycoords=("data", "axes fraction"),
                xytext=(2, 4),
                textcoords="offset points",
                rotation=90,
                verticalalignment="bottom",
                fontsize="small",
                color=color,
            )

    def _written(self, phase: str) -> str:
        """Return the name of a method among the values of ``solver``."""
        return phase if phase == self.solver else _SOLVERS.get(phase, phase)


def _described(estimator: Any) -> str:
    """Return the class name of an estimator, with its non-default parameters."""
    own: Any = type(estimator)
    parameters = parameters_of(own)
    changed = []
    for name, value in estimator.get_params(deep=False).items():
        plain = value is None or isinstance(value, str | numbers.Number)
        if plain and name not in _ASIDE and value != parameters[name].default:
            shown = f"{value:g}" if isinstance(value, float) else repr(value)
            changed.append(f"{name}={shown}")
    kind = type(estimator).__name__
    return f"{kind}({', '.join(changed)})" if changed else kind


def _references(reference: Any, n_problems: int) -> list[float | None]:
    """Return the known optimum of each problem, or None for each."""
    if reference is None:
        return [None] * n_problems
    values = np.atleast_1d(np.asarray(reference, dtype=np.float64))
    if values.shape != (n_problems,):
        raise ValueError(
            f"reference must be a number for each problem, of shape ({n_problems},); "
            f"got {reference!r}."
        )
    return values.tolist()


def _positions(history: History, x: str) -> Floats:
    if x == "iterations":
        return np.arange(len(history), dtype=np.float64)
    return np.asarray(getattr(history, x), dtype=np.float64)


def _gap(history: History, reference: float | None) -> Floats:
    """Return relative gaps, or distances from a reference; NaN where not positive."""
    objective = np.asarray(history.objective)
    if reference is None:
        gap, size = objective - np.asarray(history.lower_bound), history.size
    else:
        gap, size = objective - reference, np.ones(len(history))
    shown = np.isfinite(gap) & (gap > 0.0) & (size > 0.0)
    relative = np.full(len(history), np.nan)
    relative[shown] = gap[shown] / size[shown]
    return relative

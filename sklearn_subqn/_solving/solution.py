"""One problem, the settings of its solution, and the solution with its certificate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._core.arrays import Floats
from .._core.lazy import cached_property
from .._core.objectives.objective import Objective
from .._core.solvers import History, Start, Status, size_of
from .tolerance import gap_between, relative


class Numbers(NamedTuple):
    """The fields of ``Progress``, which is a tuple."""

    n_iter: int
    objective: float
    dual_gap: float
    passes: float
    seconds: float


class Current:
    """The point of the present iteration, which need not be the best one so far.

    Parameters
    ----------
    objective : float
    fitted : callable
        Returns the fitted attributes for the point.

    Attributes
    ----------
    objective : float
        The objective at the point.
    coef, intercept : ndarray or float
        Arrays of the shape of ``coef_`` and ``intercept_``, computed on first use.
    """

    def __init__(self, objective: float, fitted: Callable[[], dict[str, Any]]) -> None:
        self.objective = objective
        self._fitted = fitted

    @cached_property
    def _attributes(self) -> dict[str, Any]:
        return self._fitted()

    @property
    def coef(self) -> Any:
        """Coefficients."""
        return self._attributes["coef_"]

    @property
    def intercept(self) -> Any:
        """Intercepts."""
        return self._attributes["intercept_"]


class Progress(Numbers):
    """The argument of ``callback`` after each iteration.

    Attributes
    ----------
    n_iter : int
        Number of the iteration; 0 is the starting point.
    objective : float
        The smallest objective so far.
    dual_gap : float
        Proven bound of ``objective`` minus the optimum, ``inf`` before there is one.
    passes : float
        Products with X or its transpose so far.
    seconds : float
        Wall-clock time so far.
    current : Current or None
        The point of this iteration, with its ``objective``, ``coef`` and ``intercept``.
        None where it is not available, as in streams and on workers.
    """

    current: Current | None = None


Callback = Callable[[Progress], Any]


class Settings(NamedTuple):
    """How problems are solved and reported, by the parameters of an estimator.

    Attributes
    ----------
    solvers : mapping
        The registry of solvers, by name.
    solver : str
        Name of the chosen solver.
    tol : float
    max_iter : int
    callback : callable or None
    verbose : int
    options : mapping
        Fields of ``Options``.
    accepted : frozenset of str
        Names of the parameters and options that the user may change.
    """

    solvers: Mapping[str, Any]
    solver: str
    tol: float
    max_iter: int
    callback: Callback | None
    verbose: int
    options: Mapping[str, Any]
    accepted: frozenset[str]


class Watch(Protocol):
    """Inspects a model after each iteration, and may end the fit with an earlier model.

    Attributes
    ----------
    chosen : ndarray of shape (q,) or None
        Parameters to return, if it has ended the fit.
    """

    chosen: Floats | None

    def __call__(self, w: Floats, attributes: dict[str, Any]) -> bool:
        """Inspect parameters and attributes so far; return whether to stop."""


class Problem(NamedTuple):
    """One problem, and how its solution is reported.

    Attributes
    ----------
    label : str
        Name for ``verbose`` output and warnings.
    objective : Objective
    start : Start
    dtype : dtype
        Type in which coefficients are stored.
    fitted : callable
        Returns, for parameters w, the attributes of an estimator fitted so far, which
        scikit-learn's callbacks may use.
    stored : callable, optional
        Maps parameters to the stored parameters, rounded to ``dtype``. By default each
        entry is rounded.
    unit : float
        Factor by which objectives and gaps are multiplied for the user.
    watch : Watch, optional
        Inspects the model after each iteration, but not after the starting point.
    prove : callable, optional
        Returns another lower bound of the objective from a point, see ``run``.
    sums : callable, optional
        Returns the ``sums`` of the solution from its scores.
    """

    label: str
    objective: Objective
    start: Start
    dtype: Any
    fitted: Callable[[Floats], dict[str, Any]]
    stored: Callable[[Floats], Floats] | None = None
    unit: float = 1.0
    watch: Watch | None = None
    prove: Callable[[Any], float] | None = None
    sums: Callable[[Floats], Floats] | None = None


@dataclass
class Solution:
    """Parameters, objective and certificate of one fitted problem.

    ``start`` is the solution as the start of a fit of a similar problem. ``size`` is
    the denominator of ``relative_gap``. ``proven`` is true if the tolerance was
    reached, or if a callback ended the run. ``constant`` is true if zero coefficients
    would have about the same objective. ``plan`` is the choice of solver="auto", or the
    solver. ``status`` is how the run ended, and ``asked`` names the parameter that set
    the tolerance. ``sums`` are sums over the scores of all rows, if the estimator needs
    any.
    """

    start: Start
    objective: float
    dual_gap: float
    n_iter: int
    history: History
    proven: bool
    constant: bool
    size: float
    plan: str = ""
    status: Status = Status.STOPPED
    asked: str = ""
    sums: Floats | None = None

    @property
    def w(self) -> Floats:
        """The parameters."""
        return self.start.w

    @property
    def scores(self) -> Floats:
        """The scores of the rows."""
        scores: Floats = self.start.scores
        return scores

    @property
    def dual(self) -> Floats | None:
        """The dual point with the best bound, if there is one."""
        dual: Floats | None = self.start.dual
        return dual

    @property
    def relative_gap(self) -> float:
        """The gap divided by ``size``."""
        return relative(self.dual_gap, self.size)

    def in_units(self, unit: float) -> Solution:
        """Return the solution with objectives and gaps times a positive number."""
        return replace(
            self,
            objective=unit * self.objective,
            dual_gap=unit * self.dual_gap,
            size=unit * self.size,
            history=self.history.in_units(unit),
        )

    def with_proof(self, value: float, bound: float, unit: float) -> Solution:
        """Return the solution with another objective and lower bound.

        Both are multiplied by ``unit``. Bounds of earlier iterates are removed.
        """
        shift = unit * value - self.objective
        gap = unit * gap_between(value, bound)
        bounds = [-np.inf] * len(self.history)
        history = replace(
            self.history,
            objective=[each + shift for each in self.history.objective],
            lower_bound=[*bounds[1:], unit * bound] if bounds else bounds,
        )
        value *= unit
        size = size_of(value, history.infimum)
        return replace(self, objective=value, dual_gap=gap, history=history, size=size)

"""One problem to be solved, how to, and its solution with what is proven of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from .._core.lazy import cached_property
from .._core.objectives.objective import Objective
from .._core.solvers import History, SolverSpec, Start, Status, size_of
from .tolerance import gap_between, relative

Floats = npt.NDArray[np.float64]


class Numbers(NamedTuple):
    """The numbers of which ``Progress`` is a tuple."""

    n_iter: int
    objective: float
    dual_gap: float
    passes: float
    seconds: float


class Current:
    """The point at which a solver is, which need not be the best one so far.

    Parameters
    ----------
    objective : float
    fitted : callable
        Returns the attributes that a fit that ends at the point would set.

    Attributes
    ----------
    objective : float
        The objective there.
    coef, intercept : ndarray or float
        Of the shape of ``coef_`` and ``intercept_``, computed when asked for.
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
    """What a ``callback`` gets after each iteration.

    Attributes
    ----------
    n_iter : int
        Number of the iteration; 0 is the starting point.
    objective : float
        The smallest objective so far.
    dual_gap : float
        Proven bound on its distance from the optimum, ``inf`` before there is one.
    passes : float
        Products with X or its transpose so far.
    seconds : float
        Wall-clock time so far.
    current : Current or None
        The point of this iteration: its ``objective``, ``coef`` and ``intercept``. None
        where there is none, as in streams, or where it is on a worker.
    """

    current: Current | None = None


class Settings(Protocol):
    """What an estimator's parameters ask of solving, and its registry of solvers.

    ``memory``, ``direction_tol``, ``direction_max_iter``, ``bundle_size`` and
    ``solver_options`` count where there are any. A registry without "auto" means its
    first solver by that.
    """

    _solvers: Mapping[str, SolverSpec]
    solver: str
    tol: float
    max_iter: int
    callback: Callable[[Progress], Any] | None
    verbose: int


def changed(settings: Settings, **values: Any) -> Settings:
    """Return settings with other values."""
    # Copies of estimators are made of what is stored of them, which takes a while.
    other = object.__new__(type(settings))
    vars(other).update(vars(settings), **values)
    return other


class Watch(Protocol):
    """Looks at a model after each iteration, and may end the fit with an earlier one.

    Attributes
    ----------
    chosen : ndarray of shape (q,) or None
        Parameters to return, where it has ended the fit.
    """

    chosen: Floats | None

    def __call__(self, w: Floats, attributes: dict[str, Any]) -> bool:
        """Look at parameters and attributes so far; return whether to stop."""


class Problem(NamedTuple):
    """One problem, and how its solution will be reported.

    Attributes
    ----------
    label : str
        Its name for ``verbose`` output and warnings.
    objective : Objective
    start : Start
    dtype : dtype
        Type in which coefficients will be stored.
    fitted : callable
        From parameters w to what scikit-learn's callbacks may ask for: the attributes
        of an estimator fitted so far.
    stored : callable, optional
        From parameters to those of the attributes, after the rounding to
        ``dtype``. By default they are rounded each.
    unit : float
        Users read objectives and gaps times this.
    watch : Watch, optional
        Looks at the model after each iteration but the starting point.
    prove : callable, optional
        From a point to another lower bound of the objective, as of ``run``.
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


@dataclass
class Solution:
    """Parameters, objective and certificate of one fitted problem.

    ``start`` is where a fit of a similar problem may start: at the solution.
    ``size`` is what ``relative_gap`` is relative to.
    ``proven`` says whether the tolerance was reached, or a callback ended the run,
    ``constant`` whether the coefficients are of no use: zero would do as well,
    ``plan`` what solver="auto" chose, or the solver, and ``status`` how the run ended,
    for which the parameter ``asked`` was given. ``sums`` are numbers that an estimator
    asks for of the scores of all rows.
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
        """The dual point that proves most, if there is one."""
        dual: Floats | None = self.start.dual
        return dual

    @property
    def relative_gap(self) -> float:
        """The gap as a share of what the tolerance is relative to."""
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
        """Return the solution with another objective and bound, in place of its own.

        The user reads them times ``unit``. Those of earlier iterates are not proven.
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

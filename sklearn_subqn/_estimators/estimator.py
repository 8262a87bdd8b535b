"""The base of all estimators: from parameters and data to fitted attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from .._blocks.blocks import Collection
from .._checks import check_option, check_parameters, checked_options
from .._checks.foreign_names import instead_of
from .._checks.signatures import parameters_of, takes_any
from .._checks.state import plain, restored
from .._core.arrays import Array, Floats
from .._core.driver import History
from .._core.names import check_same_rows
from .._core.options import Option
from .._core.solvers import Options, SolverSpec
from .._problems import Problems
from .._solving.callbacks import WITHOUT_CALLBACKS, CallbackSupportMixin, FitTask
from .._solving.solution import Callback, Settings, Solution
from .._solving.warnings import warn_of_constants
from .block_methods import is_collection, refusal
from .doc_link import PAGES, name_of_page
from .offsets import remember_offset

# Parameters that are options of solvers, where an estimator has them.
_OPTIONS = ("memory", "direction_tol", "direction_max_iter", "bundle_size")

#: Attributes that ``store_solutions`` sets besides ``n_iter_``.
FOUND = ("objective_", "dual_gap_", "history_", "plan_")


class Estimator(CallbackSupportMixin, BaseEstimator):
    """Base of all estimators: from parameters and data to fitted attributes."""

    # scikit-learn's HTML of an estimator links to the page of its class.
    _doc_link_module = "sklearn_subqn"
    _doc_link_template = PAGES
    _doc_link_url_param_generator = name_of_page

    #: The solvers, by the values of ``solver``.
    _solvers: ClassVar[Mapping[str, SolverSpec]]

    #: Advice for models that do not use the features.
    _weaker: ClassVar[str] = "decrease alpha or tol"

    #: Advice for unknown parameters that differs from the general rule.
    _instead_of: ClassVar[Mapping[str, str]] = {}

    alpha: Any
    solver: str
    tol: float
    max_iter: int
    warm_start: bool
    n_jobs: int | None
    callback: Callback | None
    verbose: int

    n_features_in_: int
    feature_names_in_: Array
    n_iter_: int
    objective_: float | Floats
    dual_gap_: float | Floats
    history_: list[History]
    plan_: str | list[str]

    #: Each estimator defines its own ``fit``.
    fit: Callable[..., Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse unknown parameters, with advice on the right name."""
        if kwargs and not takes_any(cls.__init__):
            known = parameters_of(cls.__init__)
            for name in kwargs:
                if name not in known:
                    of_fit = parameters_of(cls.fit)
                    raise TypeError(
                        f"{cls.__name__}() got an unexpected keyword argument {name!r}."
                        + cls._instead_of.get(
                            name, instead_of(name, list(known), list(of_fit))
                        )
                    )
        return super().__new__(cls)

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for pickling: parameters as given, others plain."""
        state: dict[str, Any] = super().__getstate__()
        given = self._get_param_names()
        return {k: v if k in given else plain(v) for k, v in state.items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the pickled attributes."""
        self.__dict__.update({k: restored(v) for k, v in state.items()})

    def _check_parameters(self) -> None:
        """Raise for invalid parameters."""
        check_option("solver", self.solver, [*self._solvers])
        check_parameters(self)

    def _known_options(self) -> Mapping[str, Option]:
        """Return the ``solver_options`` that the solver takes."""
        known = self._solvers
        # For structures, "auto" is the first method.
        return known.get(self.solver, next(iter(known.values()))).options

    def _settings_of_solver(self, options: dict[str, Any] | None = None) -> Settings:
        """Return the settings of the solver, with the parameters or other options."""
        given = getattr(self, "solver_options", None) or {}
        known, solver = self._solvers, self.solver
        if options is None:
            options = {}
            for name in _OPTIONS:
                if hasattr(self, name):
                    options[name] = getattr(self, name)
            options |= checked_options(self)
            # The method has at most one curvature pair for each iteration.
            memory = options.get("memory", Options.memory)
            options["memory"] = min(memory, self.max_iter)
        own: Any = type(self)
        return Settings(
            known,
            # Drop-ins accept scikit-learn's names of solvers, and ignore them.
            solver if solver in known else next(iter(known)),
            self.tol,
            self.max_iter,
            self.callback,
            self.verbose,
            options,
            frozenset([*parameters_of(own), *given]),
        )

    def _encode(self, X: Any, y: Any, sample_weight: Any, **others: Any) -> Problems:
        """Validate the data and return their problems."""
        # Every estimator overrides this, except estimators of streams.
        raise NotImplementedError

    def _check_support(self, problems: Any) -> None:
        """Raise ValueError unless the solver supports the loss and the penalty."""

    def _strength(self, problems: Any, y: Any, sample_weight: Any) -> float | Floats:
        """Return the strength of the penalty, for all problems or for each."""
        return float(self.alpha)

    def _instead(self) -> str | None:
        """Return advice, if any, for an optimum that does not use the features."""
        return None

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        coef_init: Any = None,
        intercept_init: Any = None,
        **others: Any,
    ) -> Self:
        """Validate parameters and data, solve, and set the fitted attributes."""
        self._check_parameters()
        previous = vars(self).copy() if self.warm_start else {}
        rows, data = None, (y, sample_weight)
        if not isinstance(X, np.ndarray) and is_collection(X):
            rows = self._opened(X, y, sample_weight, **others)
            problems: Problems = rows.problems
            data = rows.y, rows.weights
            previous.pop("_duals", None)
        else:
            if hasattr(X, "index"):
                names = "offset", "qid", "query_weight"
                by_row = {name: others.get(name) for name in names}
                check_same_rows(X, y=y, sample_weight=sample_weight, **by_row)
            problems = self._encode(X, y, sample_weight, **others)
            if "offset" in others:
                remember_offset(self, others["offset"])
        try:
            self._check_support(problems)
            if previous:
                problems.start_from(previous)
            task = WITHOUT_CALLBACKS
            if getattr(self, "_skl_callbacks", None):
                task = FitTask(self, len(problems), self.max_iter, X, y, sample_weight)
            if coef_init is not None or intercept_init is not None:
                problems.start_at(coef_init, intercept_init)
            strength, final = self._strength(problems, *data), not self.warm_start
            solutions = problems.solve(strength, task, final=final)
            self._store(problems, solutions)
        finally:
            if rows is not None:
                rows.close()
        self._duals = None
        if self.warm_start and rows is None:
            # Dual points take memory, and are kept only for a warm start.
            self._duals = [solution.dual for solution in solutions]
        if task.is_set:
            task.end()
        return self

    def _opened(self, X: Any, y: Any, sample_weight: Any, **others: Any) -> Collection:
        """Return the rows of data in blocks for a fit; the fit closes them."""
        raise refusal(self, X)

    def _store(self, problems: Problems, solutions: list[Solution]) -> None:
        """Set the fitted attributes; warn of models that do not use the features."""
        for name, value in problems.attributes().items():
            setattr(self, name, value)
        used = not any(solution.constant for solution in solutions)
        if not used and (instead := self._instead()) is not None:
            outputs, weaker = problems.outputs, self._weaker
            name = type(self).__name__
            warn_of_constants(name, solutions, instead, outputs, weaker)
        store_solutions(self, solutions, several=problems.several)


def loss_name(loss: Any) -> str:
    """Return the name of a loss, as a user writes it."""
    return repr(loss) if isinstance(loss, str) else type(loss).__name__


def store_solutions(
    estimator: Any, solutions: Sequence[Solution], *, several: bool = False
) -> None:
    """Set the attributes of the solution: objective, gap, iterations and plan.

    Parameters
    ----------
    estimator : estimator instance
        Estimator whose ``objective_``, ``dual_gap_``, ``n_iter_``, ``history_`` and
        ``plan_`` are set.
    solutions : sequence of Solution
        One solution for each problem.
    several : bool
        Whether objectives and gaps are arrays, and plans a list, with an entry for each
        problem.
    """
    found = attrgetter("objective", "dual_gap", "plan", "n_iter", "history")
    objectives, gaps, plans, n_iters, histories = zip(
        *map(found, solutions), strict=True
    )
    estimator.objective_ = np.array(objectives) if several else float(objectives[0])
    estimator.dual_gap_ = np.array(gaps) if several else float(gaps[0])
    estimator.n_iter_ = counted(estimator, n_iters)
    estimator.history_ = list(histories)
    estimator.plan_ = list(plans) if several else plans[0]


def counted(estimator: Any, n_iters: Sequence[int]) -> int:
    """Return ``n_iter_``: the largest number of iterations of the problems.

    As in scikit-learn, the number is at least one unless ``max_iter`` is zero.
    """
    return max(min(1, estimator.max_iter), *n_iters, 0)


def forget(estimator: Any, *names: str) -> None:
    """Remove the given attributes of an earlier fit, if there are any."""
    for name in names:
        if hasattr(estimator, name):
            delattr(estimator, name)

"""From data to objectives, and from their solutions to attributes, for all estimators.

Below n is the number of rows, d of features, k of scores per row. Targets are what
losses want: signs of one class against the rest, numbers of classes, or numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

import joblib
import numpy as np
import numpy.typing as npt
from scipy import sparse

from ._callbacks import FitTask
from ._core.design import Design
from ._core.free_columns import lower_bound
from ._core.losses import (
    BINARY_LOSSES,
    Features,
    Loss,
    PrecisionAtK,
    checked,
    read_only,
)
from ._core.objective import Objective, Point
from ._core.regularizers import L2, Bounded, NormalizedEntropy, PartlyFree, Regularizer
from ._core.risk import Risk
from ._core.solvers import Start, minimize_intercept
from ._core.threshold_design import ThresholdDesign
from ._shift import Shift
from ._solve import (
    Floats,
    Problem,
    Settings,
    Solution,
    Watch,
    changed,
    solve,
    warn_of_gap,
)
from ._strength import Rule, Scales, divided
from ._validation import check_start

# Features without a penalty are measured in units that make them so many times larger
# than others, of unit variance, with squares and with an L1 norm; where there is no
# other, they have this penalty in units of the curvature of the loss. Proofs are
# without it.
_LARGE, _LARGE_IN_NORM, _NO_PENALTY = 1e5, 1e6, 1e-10

# Where the bound without it is no good, problems are solved more accurately by these
# factors; objectives below this share of that of zero need no proof.
_ACCURACIES, _VANISHED = (1.0, 1e-2, 1e-4), 1e-6

# How accurately these are fitted alone, with at most so many alphas, each ten times the
# one before.
_NULL_TOLERANCE, _MOST_NULL_FITS = 1e-8, 4

# More threads than this are surely a mistake, and could exhaust the system.
_MAX_THREADS = 256


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads, from joblib's context where ``n_jobs`` is None."""
    return min(int(joblib.effective_n_jobs(n_jobs)), _MAX_THREADS)


def signs(
    y: npt.NDArray[Any], classes: npt.NDArray[Any], positive: int | None = None
) -> list[Floats]:
    """Return 1 where y is of a class and -1 elsewhere, for each; of two, one only.

    That is the second, or the one with the number ``positive``.
    """
    if len(classes) == 2:
        classes = classes[[1 if positive is None else positive]]
    return [np.where(y == each, 1.0, -1.0) for each in classes]


def codes(y: npt.NDArray[Any], classes: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Return numbers of classes; rows of others, which have no weight, have any."""
    return np.minimum(np.searchsorted(classes, y), len(classes) - 1).astype(np.intp)


class Problems(ABC):
    """Problems whose solutions make one model, solved for one alpha after another.

    Parameters
    ----------
    settings : Settings
        How to solve them: mostly the estimator.
    labels : list of str
        Names of the problems, for messages.
    starts : list of Start
        Where each of them stands.
    dtype : dtype
        Type in which coefficients will be stored.

    Attributes
    ----------
    starts : list of Start
        As above; ``solve`` leaves there where the solutions are.
    parts : sequence or None
        What each of several problems is for, such as its class.
    unit : float
        What the user reads as an objective of one.
    several : bool
        Whether the attributes are arrays, with a number for each problem.
    watch : Watch or None
        Looks at the model after each iteration.
    """

    parts: Any = None
    unit: float = 1.0
    watch: Watch | None = None

    def __init__(
        self, settings: Settings, labels: list[str], starts: list[Start], dtype: Any
    ) -> None:
        self._settings = settings
        self._labels = labels
        self.starts = starts
        self._dtype = dtype

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def several(self) -> bool:
        return len(self) > 1

    @abstractmethod
    def objective(self, index: int, alpha: float) -> Objective:
        """Return the objective of a problem."""

    @abstractmethod
    def attributes(self) -> dict[str, Any]:
        """Return what predictions need of an estimator, where the problems stand."""

    @abstractmethod
    def start_from(self, previous: dict[str, Any]) -> None:
        """Start from the attributes of a previous fit, if that was of such a model."""

    def start_at(self, coef: Any, intercept: Any) -> None:
        """Start from coefficients and intercepts that a user gives."""
        # Estimators whose ``fit`` takes them have problems of linear scores.
        raise NotImplementedError

    def solve(self, alpha: Any, task: FitTask) -> list[Solution]:
        """Solve all problems, each from where it stands, for one alpha or its own."""
        alphas = np.broadcast_to(alpha, len(self)).tolist()
        return [
            self._solve(index, self.objective(index, alpha), self._settings, task)
            for index, alpha in enumerate(alphas)
        ]

    def _solve(
        self, index: int, objective: Objective, settings: Settings, task: FitTask
    ) -> Solution:
        """Solve a problem from where it stands."""
        problem = Problem(
            self._labels[index],
            objective,
            self.starts[index],
            self._dtype,
            partial(self._fitted, index),
            self._stored,
            self._unit(index, objective),
            self.watch,
        )
        solution = solve(problem, settings, task)
        self.starts[index] = solution.start
        return solution

    def _unit(self, index: int, objective: Objective) -> float:
        """Return what the user reads as an objective of one."""
        return self.unit

    def as_read(
        self, index: int, objective: Objective, w: Floats, value: float, bound: float
    ) -> tuple[float, float]:
        """Return an objective at w and a lower bound as the user reads them."""
        unit = self._unit(index, objective)
        return unit * value, unit * bound

    def _fitted(self, index: int, w: Floats) -> dict[str, Any]:
        """Return the attributes of an estimator fitted so far."""
        self.starts[index] = self.starts[index]._replace(w=w, scores=None)
        return self.attributes()

    def _stored(self, w: Floats) -> Floats:
        """Return parameters as they will be in the attributes."""
        rounded: Floats = w.astype(self._dtype)
        return rounded


class Elsewhere(Protocol):
    """Rows that are not in this process, or not all at once."""

    def risk(self, index: int) -> Risk:
        """Return the risk of all rows in a problem."""

    def solve(
        self, problems: LinearProblems, solve: Callable[[], list[Solution]]
    ) -> list[Solution]:
        """Return what ``solve`` returns, called again where rows were lost."""


class Rows:
    """Rows of features, and how their columns are to be measured.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, d)
    """

    def __init__(self, X: Any) -> None:
        self.X = X

    def shift(self, weights: Floats) -> Shift | None:
        """Return what is subtracted from columns far from zero."""
        return Shift.of(self.X, weights)

    def scales(self, X: Any, weights: Floats, *, centered: bool) -> Scales:
        """Return the scales of the columns of X, which may have been shifted."""
        return Scales.of(X, weights, centered=centered)


class SomeRows(Rows):
    """Some of the rows, with a shift and scales of all of them.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, d)
    shift : Shift or None
    scales : Scales or None
        None where they are not needed.
    """

    def __init__(self, X: Any, shift: Shift | None, scales: Scales | None) -> None:
        super().__init__(X)
        self._shift, self._scales = shift, scales

    def shift(self, weights: Floats) -> Shift | None:
        return self._shift

    def scales(self, X: Any, weights: Floats, *, centered: bool) -> Scales:
        assert self._scales is not None, "scales are known where they are needed"
        return self._scales


class InputFeatures(NamedTuple):
    """How many features there are, and their names if they have any."""

    n_features: int
    names: Any

    @classmethod
    def of(cls, estimator: Any) -> InputFeatures:
        """Return those of an estimator that has seen X."""
        names = getattr(estimator, "feature_names_in_", ())
        return cls(estimator.n_features_in_, names)

    def are_those_of(self, previous: dict[str, Any]) -> bool:
        """Whether a previous fit, by its attributes, was of the same features."""
        return (
            "coef_" in previous
            and previous["coef_"].shape[-1] == self.n_features
            and np.array_equal(previous.get("feature_names_in_", ()), self.names)
        )


class LinearModel(NamedTuple):
    """What the parameters of an estimator say of a linear model.

    Attributes
    ----------
    name : str
        For messages.
    settings : Settings
        How to solve its problems.
    n_threads : int
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
    rule : callable
        From targets and weights to the rule of the automatic strength.
    check_support : callable
        Raises unless the solver takes a loss with a penalty.
    """

    name: str
    settings: Settings
    n_threads: int
    fit_intercept: bool
    features: InputFeatures
    regularizer: Callable[[int], Regularizer]
    l1_share: float
    has_squares: bool
    has_own_scales: bool
    sizes: Floats | None
    free: npt.NDArray[np.bool_] | None
    bounds: tuple[Any, Any] | None
    rule: Callable[[Any, Floats], Rule]
    check_support: Callable[[Loss, Regularizer], None]


class LinearProblems(Problems):
    """Problems of one loss on the same data, of linear scores.

    Parameters
    ----------
    model : LinearModel
    X : {ndarray, CSR matrix} of shape (n, d) or Rows
    targets : list of ndarray
        One for each problem.
    loss : Loss
    weights : ndarray of shape (n,)
        Sum to one.
    n_scores : int, optional
        Number k of scores per row of a joint loss.
    parts : sequence, optional
        What each of several problems is for.
    part : str
        How a part is called in messages.
    single : bool
        Whether coefficients are of shape (d,) instead of (k, d).
    known : dict, optional
        Attributes that a model has before it is fitted, such as ``classes_``.
    opposite : bool
        Whether large scores are stored as small ones: they mean the first class.
    dtype : dtype, optional
        Type in which coefficients will be stored, by default that of X.

    Attributes
    ----------
    elsewhere : Elsewhere or None
        All the rows, where those given here only stand for them.
    """

    elsewhere: Elsewhere | None = None

    def __init__(
        self,
        model: LinearModel,
        X: Any,
        targets: list[Any],
        loss: Loss,
        weights: Floats,
        *,
        n_scores: int | None = None,
        parts: Any = None,
        part: str = "class {}",
        single: bool = False,
        known: dict[str, Any] | None = None,
        opposite: bool = False,
        dtype: Any = None,
    ) -> None:
        self._opposite = opposite
        self._model = model
        self._n_threads = model.n_threads
        self._known = known or {}
        self._loss = loss
        intercept = model.fit_intercept
        movable = intercept or loss.ranks
        rows = self._given = X if isinstance(X, Rows) else Rows(X)
        X = rows.X
        shift = rows.shift(weights) if movable else None
        if shift is not None:
            X = shift.subtracted(X)
        # Without intercepts differences of scores count, which are the same.
        self._shift = shift if intercept else None
        self.scales: Scales | None = None
        if model.has_own_scales:
            self.scales = rows.scales(X, weights, centered=movable)
        self.free = model.free
        self.sizes = self._sizes_of_features(model.sizes)
        if self.free is not None:
            own = rows.scales(X, weights, centered=movable).sizes
            others = own if self.sizes is None else self.sizes
            large = _LARGE if model.has_squares else _LARGE_IN_NORM
            large = 1.0 if self.free.all() else large
            self.sizes = np.where(self.free, own / large, others)
        if self.sizes is not None:
            dtype, X = dtype or X.dtype, divided(X, self.sizes)
        self.design = self._map(X, intercept and not loss.ranks, n_scores)
        self.weights = weights
        self._targets = targets
        penalized = self.free is None or not self.free.all()
        n_coef = self.design.n_coef
        self._regularizer = model.regularizer(n_coef) if penalized else L2(n_coef)
        self._bounds = model.bounds
        if self._bounds is not None:
            self._check_bounds(loss, n_scores)
            low, high = (bound * self._units() for bound in self._bounds)
            if opposite:
                low, high = -high, -low
            self._regularizer = Bounded(model.l1_share, low, high)
        model.check_support(loss, self._regularizer)
        self._single = single
        self.parts = parts if len(targets) > 1 else None
        name = model.name
        labels = [name] * len(targets)
        if self.parts is not None:
            labels = [f"{name}, {part.format(each)}" for each in self.parts]
        start = Start(self._regularizer.center(self.design.n_params))
        super().__init__(
            model.settings, labels, [start] * len(targets), dtype or X.dtype
        )

    def _map(self, X: Any, fit_intercept: bool, n_scores: int | None) -> Design:
        """Return the map from parameters to scores."""
        return Design(
            X,
            fit_intercept=fit_intercept,
            n_outputs=n_scores,
            n_threads=self._n_threads,
        )

    def _check_bounds(self, loss: Loss, n_scores: int | None) -> None:
        """Raise where coefficients of features are not those of one score."""
        if loss.joint or n_scores is not None or type(self) is OrdinalProblem:
            raise ValueError(
                "positive and coef_bounds need a loss of one score per sample, whose "
                "coefficients are stored as they are; losses of several scores and "
                "ordinal ones have others."
            )
        if self.free is not None:
            raise ValueError(
                "positive and coef_bounds need a penalty on each feature: alpha and "
                "penalty_factor must be positive."
            )

    def objective(self, index: int, alpha: float) -> Objective:
        if not alpha:
            rule = self._model.rule(self._targets[index], self.weights)
            alpha = _NO_PENALTY * rule.squares
        return Objective(self.risk(index), self._regularizer, alpha)

    def risk(self, index: int) -> Risk:
        """Return the risk of a problem."""
        if self.elsewhere is not None:
            return self.elsewhere.risk(index)
        return Risk(
            self.design,
            checked(self._loss_of(index)),
            read_only(self._targets[index]),
            read_only(self._weights_of(index)),
        )

    def solve(self, alpha: Any, task: FitTask) -> list[Solution]:
        elsewhere = self.elsewhere
        if elsewhere is None:
            return super().solve(alpha, task)

        def solve_there() -> list[Solution]:
            self.design = elsewhere.risk(0).design
            return Problems.solve(self, alpha, task)

        return elsewhere.solve(self, solve_there)

    def as_read(
        self, index: int, objective: Objective, w: Floats, value: float, bound: float
    ) -> tuple[float, float]:
        value, bound = super().as_read(index, objective, w, value, bound)
        if self.free is None:
            return value, bound
        small = objective.regularizer.value(w)
        small -= self._without_free(objective).regularizer.value(w)
        return value - self._unit(index, objective) * objective.alpha * small, -np.inf

    def _solve(
        self, index: int, objective: Objective, settings: Settings, task: FitTask
    ) -> Solution:
        if self.free is None:
            return super()._solve(index, objective, settings, task)
        unit, real = self._unit(index, objective), self._without_free(objective)
        least = _VANISHED * abs(unit * real.origin().value)
        for more in _ACCURACIES:
            closer = changed(settings, tol=more * settings.tol)
            solution = super()._solve(index, objective, closer, task)
            point = solution.start.at(real)
            duals = [point.dual, *([] if solution.dual is None else [solution.dual])]
            proven = solution.with_proof(point.value, lower_bound(real, duals), unit)
            reached = proven.dual_gap <= settings.tol * max(proven.size, least)
            if reached or not objective.loss.tells_leeway:
                return proven
        warn_of_gap(self._labels[index], proven, settings.tol)
        return proven

    def _without_free(self, objective: Objective) -> Objective:
        """Return the objective without the small penalty of free features."""
        assert self.free is not None, "some features are free"
        free = np.repeat(self.free, self.design.n_outputs or 1)
        return objective.with_regularizer(PartlyFree(objective.regularizer, free))

    def null_point(self, index: int) -> Point:
        """Return the best point with coefficients of free features and intercepts only.

        Its slopes along the other coefficients say from which ``alpha`` on an L1 norm
        has them all zero; so large a one is what the free features are fitted with.
        """
        objective = self.objective(index, 1.0)
        point = minimize_intercept(objective.origin())
        if self.free is None:
            return point
        penalized = np.zeros(self.design.n_params, dtype=bool)
        penalized[: self.design.n_coef] = ~np.repeat(
            self.free, self.design.n_outputs or 1
        )
        settings = changed(self._settings, tol=_NULL_TOLERANCE)
        start = self.starts[index]
        alpha = float(np.abs(point.risk_gradient[penalized]).max(initial=0.0)) or 1.0
        w = point.w
        for _ in range(_MOST_NULL_FITS):
            at_alpha = self.objective(index, alpha)
            w = super()._solve(index, at_alpha, settings, FitTask.silent()).w.copy()
            self.starts[index] = start
            if not w[penalized].any():
                break
            alpha *= 10.0
        w[penalized] = 0.0
        return minimize_intercept(objective.at(w))

    def _loss_of(self, index: int) -> Loss:
        """Return the loss of a problem."""
        return self._loss

    def _weights_of(self, index: int) -> Floats:
        """Return the weights of the rows in a problem; they sum to one."""
        return self.weights

    def start_from(self, previous: dict[str, Any]) -> None:
        """Start from a previous solution, and its dual points if rows are as many.

        Only if that has the same features, classes and shape, and coefficients that the
        penalty allows.
        """
        if not self._model.features.are_those_of(previous) or any(
            np.ravel(previous.get(name, ())).tolist() != np.ravel(value).tolist()
            for name, value in self._known.items()
        ):
            return
        coef, intercept = (
            previous["coef_"],
            np.atleast_1d(previous.get("intercept_", 0.0)),
        )
        if (coef.ndim == 1) != self._single:
            return
        coef = coef.toarray() if sparse.issparse(coef) else coef
        duals = previous.get("_duals") or []
        if len(duals) != len(self):
            duals = [None] * len(self)
        self._set_starts(coef, intercept, duals)

    def start_at(self, coef: Any, intercept: Any) -> None:
        """Start from coefficients and intercepts of the shape of the attributes.

        None leaves those of a previous solution, or zero.

        Raises
        ------
        TypeError, ValueError
            If these are not acceptable, or the penalty does not allow them.
        """
        told = self.attributes()
        for name, given in (("coef", coef), ("intercept", intercept)):
            if given is not None:
                shape = np.shape(told[f"{name}_"])
                told[f"{name}_"] = check_start(f"{name}_init", given, shape)
        if intercept is not None and self.design.n_coef == self.design.n_params:
            raise ValueError(
                "intercept_init has no effect here: the problem has no intercept of "
                "its own. Leave it out."
            )
        intercept = np.atleast_1d(told["intercept_"])
        if not self._set_starts(told["coef_"], intercept, [None] * len(self)):
            raise ValueError(
                "coef_init has coefficients that the penalty or the bounds forbid."
            )

    def _set_starts(self, coef: Any, intercept: Any, duals: list[Any]) -> bool:
        """Start from coefficients where the penalty allows them; whether it does."""
        coef = np.atleast_2d(coef)
        if self._opposite:
            coef, intercept = -coef, -intercept
        if self._shift is not None:
            intercept = self._shift.inward(self._shares(coef), intercept)
        allowed = True
        for index, w in enumerate(self._encoded(coef, intercept)):
            w = w[: self.design.n_params].astype(np.float64)
            dual = duals[index]
            if dual is not None and dual.shape != self.design.zero_scores().shape:
                dual = None
            if not self._regularizer.contains(w):
                allowed = False
                continue
            # Of a model in single precision shares sum to one but for its rounding.
            self.starts[index] = Start(self._regularizer.nearest(w), dual)
        return allowed

    def attributes(self) -> dict[str, Any]:
        coef, intercept = self._reported(*self._decoded([s.w for s in self.starts]))
        if self._opposite:
            # Zeros keep their sign.
            coef, intercept = 0.0 - coef, 0.0 - intercept
        if self._single:
            return {**self._known, "coef_": coef[0], "intercept_": intercept[0]}
        return {**self._known, "coef_": coef, "intercept_": intercept}

    def strengths(self, total: float) -> Floats:
        """Return alpha of each problem by rule, for rows of a total weight."""
        model, scales = self._model, self.scales
        if scales is None:
            scales = self._given.scales(self.design.X, self.weights, centered=False)
            scales = scales.plain()
        return np.array(
            [
                scales.strength(model.rule(target, self.weights), model.l1_share, total)
                for target in self._targets
            ]
        )

    def _sizes_of_features(self, given: Floats | None) -> Floats | None:
        """Return units in which the penalty is that of the solver, if not in ones."""
        if self.scales is None or given is None:
            return given if self.scales is None else self.scales.sizes
        return given * self.scales.sizes

    def _units(self) -> Floats | float:
        """Return what the features are divided by for the solver."""
        return 1.0 if self.sizes is None else self.sizes

    def _reported(self, coef: Any, intercept: Any) -> tuple[Any, Any]:
        """Return coefficients and intercepts for X as they are stored."""
        coef = np.array(coef, dtype=self._dtype, order="C")
        if self._bounds is not None:
            # Rounding may have left them, and does not in the bounds themselves.
            ends = [_towards_zero(bound, self._dtype) for bound in self._bounds]
            low, high = (-ends[1], -ends[0]) if self._opposite else ends
            coef = np.clip(coef, low, high)
        if self._shift is not None:
            intercept = self._shift.outward(self._shares(coef), intercept)
        return coef, np.asarray(intercept).astype(self._dtype)

    def _shares(self, coef: Any) -> Any:
        """Return coefficients (k, d) as objectives take them: shares sum to one."""
        if not isinstance(self._regularizer, NormalizedEntropy):
            return coef
        return coef / self._sums(np.asarray(coef, dtype=np.float64))

    def _sums(self, coef: Floats) -> Floats:
        """Return what the shares sum to that the rows of coefficients are made of."""
        return coef.sum(axis=1, keepdims=True)

    def _stored(self, w: Floats) -> Floats:
        free = len(w) > self.design.n_coef
        plain = self.sizes is None and self._bounds is None
        if plain and (self._shift is None or not free):
            return super()._stored(w)
        coef, intercept = self._reported(*self._rows(w))
        if self._shift is not None:
            intercept = self._shift.inward(self._shares(coef), intercept)
        inward = (coef * self._units()).T.ravel()
        return np.append(inward, intercept) if free else inward

    def _rows(self, w: Floats) -> tuple[Floats, Floats]:
        """Return coefficients (k, d) and intercepts (k,) of one problem."""
        coef, intercept = self.design.split(w)
        coef = np.atleast_2d(np.asarray(coef).T) / self._units()
        return coef, np.atleast_1d(intercept)

    def _encoded(self, coef: Any, intercept: Any) -> list[Floats]:
        """Return the parameters of each problem; none if these are of other rows."""
        n_rows = self.design.n_outputs or len(self)
        if len(coef) != n_rows:
            return []
        rows = np.split(np.arange(n_rows), len(self))
        coef = coef * self._units()
        return [np.concatenate([coef[i].T.ravel(), intercept[i]]) for i in rows]

    def _decoded(self, parameters: list[Floats]) -> tuple[Any, Any]:
        """Return coefficients and intercepts from the parameters of each problem."""
        split = [self._rows(w) for w in parameters]
        coef = np.concatenate([rows for rows, _ in split])
        intercept = np.zeros(len(coef))
        intercept[:] = np.concatenate([free for _, free in split])
        return coef, intercept

    def _best_intercept(self, signs: Floats, coef: Floats) -> float:
        """Return the intercept of the smallest mean hinge for given coefficients."""
        design = self._with_intercept
        penalty = L2(design.n_coef)
        hinge = Objective(
            Risk(design, BINARY_LOSSES["hinge"], signs, self.weights), penalty, 1.0
        )
        return float(minimize_intercept(hinge.at(np.append(coef, 0.0))).w[-1])

    @cached_property
    def _with_intercept(self) -> Design:
        return Design(self.design.X, n_threads=self._n_threads)


def class_problems(
    model: LinearModel,
    X: Any,
    y: npt.NDArray[Any],
    loss: Loss,
    weights: Floats,
    classes: npt.NDArray[Any],
    positive: int | None = None,
    offset: Floats | None = None,
) -> LinearProblems:
    """Return one problem for two classes, or one of each against the rest.

    ``positive`` is the number of the positive one of two classes, by default one;
    ``offset`` of shape (n,) is added to the scores.
    """
    kind = RankedClasses if loss.ranks and model.fit_intercept else LinearProblems
    targets, known = signs(y, classes, positive), of_classes(classes, positive)
    if offset is not None:
        loss = loss.with_offsets()
        targets = [np.column_stack([each, offset]) for each in targets]
    data = model, X, targets, loss, weights
    return kind(*data, parts=classes, known=known, opposite=positive == 0)


def of_classes(
    classes: npt.NDArray[Any], positive: int | None = None
) -> dict[str, Any]:
    """Return attributes about classes, one of which may be known as positive."""
    known: dict[str, Any] = {"classes_": classes}
    if positive is not None:
        known["pos_label_"] = classes.tolist()[positive]
    return known


def joint_classes(
    model: LinearModel,
    X: Any,
    y: npt.NDArray[Any],
    loss: Loss,
    weights: Floats,
    classes: npt.NDArray[Any],
    known: dict[str, Any] | None = None,
) -> LinearProblems:
    """Return the joint problem of all classes; of two the difference is stored."""
    data = model, X, [codes(y, classes)], loss, weights
    known = {"classes_": classes, **(known or {})}
    if len(classes) == 2:
        return Contrasts(*data, n_scores=2, base=0, known=known)
    return LinearProblems(*data, n_scores=len(classes), known=known)


def _towards_zero(numbers: Floats, dtype: Any) -> npt.NDArray[Any]:
    """Return numbers of a type that are not larger than some."""
    rounded = numbers.astype(dtype)
    larger = np.abs(rounded) > np.abs(numbers)
    return np.where(larger, np.nextafter(rounded, np.zeros_like(rounded)), rounded)


class JointProblem(LinearProblems):
    """One problem, of whose parameters the attributes are not the rounded ones."""

    def _stored(self, w: Floats) -> Floats:
        coef, intercept = self._reported(*self._decoded([w]))
        if self._shift is not None:
            intercept = self._shift.inward(self._shares(coef), intercept)
        return self._encoded(coef, intercept)[0][: self.design.n_params]


class Contrasts(JointProblem):
    """A joint problem of which the scores less one of them are stored.

    Parameters
    ----------
    base : int
        The score that is subtracted from the others, 0 or -1.
    *args, **kwargs
        As for ``LinearProblems``.
    """

    def __init__(self, *args: Any, base: int, **kwargs: Any) -> None:
        self._base = base
        super().__init__(*args, **kwargs)

    def _encoded(self, coef: Any, intercept: Any) -> list[Floats]:
        """Return the parameters with these differences whose scores sum to zero."""
        rows = np.column_stack([coef * self._units(), intercept]).astype(np.float64)
        own = -rows.sum(axis=0) / (len(rows) + 1)
        rows = rows + own
        rows = np.vstack([own, rows] if self._base == 0 else [rows, own])
        return [rows.T.ravel()] if len(rows) == self.design.n_outputs else []

    def _decoded(self, parameters: list[Floats]) -> tuple[Any, Any]:
        coef, intercept = super()._decoded(parameters)
        return tuple(
            np.delete(rows, self._base, axis=0) - rows[self._base]
            for rows in (coef, intercept)
        )


class RankedClasses(LinearProblems):
    """Problems of losses of rankings, which leave the intercepts open."""

    def _decoded(self, parameters: list[Floats]) -> tuple[Any, Any]:
        coef, _ = super()._decoded(parameters)
        measure = self._loss.set
        if isinstance(measure, PrecisionAtK):
            free = [-measure.threshold(self.design.forward(w)) for w in parameters]
        else:
            free = list(map(self._best_intercept, self._targets, parameters))
        return coef, np.array(free)


class OrdinalProblem(LinearProblems):
    """Ordinal regression: one score, and thresholds between the classes in order.

    A class predicts by its number times the score minus the sum of the thresholds below
    it, so that the largest of these is that of the class between whose thresholds the
    score lies. Each threshold is that of the smallest mean hinge. Of two classes the
    difference is stored.

    Parameters
    ----------
    order : ndarray of shape (k,)
        Numbers of the sorted classes from the lowest one to the highest, in which order
        targets count them. Coefficients are stored by sorted classes.
    *args, **kwargs
        As for ``LinearProblems``.
    """

    def __init__(self, *args: Any, order: npt.NDArray[np.intp], **kwargs: Any) -> None:
        self._order = order
        opposite = len(order) == 2 and order[0] == 1
        super().__init__(*args, opposite=opposite, **kwargs)

    def _ordered(self, coef: Any, intercept: Any) -> tuple[Any, Any]:
        """Return rows of sorted classes in the order of classes."""
        if len(coef) != len(self._order):
            return coef, intercept
        return coef[self._order], intercept[self._order]

    def _encoded(self, coef: Any, intercept: Any) -> list[Floats]:
        coef, _ = self._ordered(coef, intercept)
        return [coef[min(1, len(coef) - 1)].astype(np.float64) * self._units()]

    def _sums(self, coef: Floats) -> Floats:
        (w,) = OrdinalProblem._encoded(self, coef, np.zeros(len(coef)))
        return np.full((len(coef), 1), w.sum())

    def _decoded(self, parameters: list[Floats]) -> tuple[Any, Any]:
        w, thresholds = self._score_and_thresholds(*parameters)
        below = np.cumsum(np.append(0.0, thresholds))
        first = 1 if self._n_thresholds == 1 else 0
        numbers = np.arange(len(below), dtype=self._dtype)
        w = self._divisible(w / self._units())
        coef = np.multiply.outer(numbers, w.astype(self._dtype))
        if first:
            return coef[first:], -below[first:]
        sorted_classes = np.argsort(self._order)
        return coef[sorted_classes], -below[sorted_classes]

    def _stored(self, w: Floats) -> Floats:
        return self._divisible(w / self._units()) * self._units()

    def _divisible(self, w: Floats) -> Floats:
        """Return w with so few digits that its multiples are stored without rounding.

        Differences of classes next to each other then are the same for all of them.
        """
        most = self._n_thresholds
        digits = (
            np.finfo(self._dtype).nmant + 1 - (most.bit_length() if most > 2 else 0)
        )
        fraction, exponent = np.frexp(w)
        rounded: Floats = np.ldexp(
            np.rint(np.ldexp(fraction, digits)), exponent - digits
        )
        return rounded

    @property
    def _n_thresholds(self) -> int:
        return len(self._known["classes_"]) - 1

    def _score_and_thresholds(self, w: Floats) -> tuple[Floats, Floats]:
        """Return the coefficients of the score, and the thresholds."""
        (levels,) = self._targets
        above = [np.where(levels > k, 1.0, -1.0) for k in range(self._n_thresholds)]
        thresholds = [-self._best_intercept(signs, w) for signs in above]
        return w, np.maximum.accumulate(thresholds)


class ThresholdProblem(OrdinalProblem, JointProblem):
    """Ordinal regression with thresholds that are part of the problem."""

    def _map(self, X: Any, fit_intercept: bool, n_scores: int | None) -> Design:
        return ThresholdDesign(X, self._n_thresholds, n_threads=self._n_threads)

    def _encoded(self, coef: Any, intercept: Any) -> list[Floats]:
        (w,) = super()._encoded(coef, intercept)
        _, intercept = self._ordered(coef, intercept)
        free = np.diff(intercept, prepend=0.0)[-self._n_thresholds :]
        return [np.append(w, free)]

    def _stored(self, w: Floats) -> Floats:
        # Sums of thresholds that are rounded may bring these out of order again.
        for _ in range(self._n_thresholds):
            w = JointProblem._stored(self, w)
        return w

    def _score_and_thresholds(self, w: Floats) -> tuple[Floats, Floats]:
        coef, free = np.split(w, [self.design.n_coef])
        return coef, -free


class PathProblem(JointProblem):
    """The joint problem of an ``Ontology``, with coefficients for each node.

    Those of labels are stored; of two labels the difference.
    """

    @property
    def _features(self) -> Floats:
        """What nodes add to what is stored, of independent rows."""
        features = self._loss.map
        assert isinstance(features, Features), "scores of labels from those of nodes"
        shares = features.features
        return shares[1:] - shares[:1] if len(shares) == 2 else shares

    def _encoded(self, coef: Any, intercept: Any) -> list[Floats]:
        # Optimal coefficients of nodes are combinations of the features of labels.
        if len(coef) != len(self._features):
            return []
        labels = np.column_stack([coef * self._units(), intercept])
        labels = labels.astype(np.float64)
        return [(np.linalg.pinv(self._features) @ labels).T.ravel()]

    def _decoded(self, parameters: list[Floats]) -> tuple[Any, Any]:
        nodes = np.column_stack(super()._decoded(parameters))
        labels = self._features @ nodes
        return labels[:, :-1], labels[:, -1]

    def _stored(self, w: Floats) -> Floats:
        if isinstance(self._regularizer, L2):
            return super()._stored(w)
        # Other penalties are not least for combinations of features of labels.
        labels = self._decoded([w])
        reported = self._reported(*labels)
        lost = [a.astype(np.float64) - b for a, b in zip(reported, labels, strict=True)]
        return w + self._encoded(*lost)[0][: self.design.n_params]

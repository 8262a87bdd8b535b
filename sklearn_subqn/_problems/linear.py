"""Problems of linear scores: data as objectives, solutions as coefficients."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
from scipy import sparse

from .._checks import check_start
from .._core.losses import Loss, checked, read_only
from .._core.objectives.objective import Objective
from .._core.objectives.risk import Risk
from .._core.regularizers import L2, Bounded
from .._core.rows.design import Design
from .._core.solvers import Start
from .._features.strength import Scales, divided
from .._solving.callbacks import FitTask
from .._solving.solution import Floats, Solution
from .coefficients import Coefficients
from .features import INTERCEPTS, Rows
from .model_parameters import LinearModel

#: Features without a penalty have this one in units of the curvature of the loss, where
#: there is no other: what others have in units that make them 1e5 times larger. Proofs
#: are without it.
NO_PENALTY = 1e-10


class Elsewhere(Protocol):
    """Rows that are not in this process, or not all at once."""

    def risk(self, index: int) -> Risk:
        """Return the risk of all rows in a problem."""

    def solve(
        self, problems: LinearProblems, alpha: Any, task: FitTask
    ) -> list[Solution]:
        """Solve the problems, and go on where rows were lost."""


class LinearProblems(Coefficients):
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
    loss : Loss
    regularizer : Regularizer
    rows : Rows
        Those that were given.
    columns : ndarray of int or slice
        The features of which the problems are.
    elsewhere : Elsewhere or None
        All the rows, where those given here only stand for them.
    """

    elsewhere: Elsewhere | None = None

    # Whether coefficients of one score are stored as they are.
    _stores_scores: ClassVar[bool] = True

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
        self.loss = loss
        intercept = model.fit_intercept
        movable = intercept or loss.ranks
        self.rows = rows = X if isinstance(X, Rows) else Rows(X)
        if model.leaves_out:
            self.columns, rows = rows.of_own_columns()
        model, self._own_rows, X = model.of_columns(self.columns), rows, rows.X
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
            # Units this large leave next to nothing of the penalty: an L1 norm falls by
            # the unit, squares by its square.
            large = 1e5 if model.has_squares else 1e6
            large = 1.0 if self.free.all() else large
            self.sizes = np.where(self.free, own / large, others)
        if self.sizes is not None:
            dtype, X = dtype or X.dtype, divided(X, self.sizes)
        self.design = self._map(X, intercept and not loss.ranks, n_scores)
        self.weights = weights
        self._targets = targets
        penalized = self.free is None or not self.free.all()
        n_coef = self.design.n_coef
        self.regularizer = model.regularizer(n_coef) if penalized else L2(n_coef)
        self._bounds = model.bounds
        if self._bounds is not None:
            self._check_bounds(loss, n_scores)
            low, high = (bound * self._units() for bound in self._bounds)
            if opposite:
                low, high = -high, -low
            self.regularizer = Bounded(model.l1_share, low, high)
        self._single = single
        self.parts = parts if len(targets) > 1 else None
        name = model.name
        labels = [name] * len(targets)
        if self.parts is not None:
            labels = [f"{name}, {part.format(each)}" for each in self.parts]
        start = Start(self.regularizer.center(self.design.n_params))
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
        if loss.joint or n_scores is not None or not self._stores_scores:
            raise ValueError(
                "positive and coef_bounds need a loss of one score per sample, whose "
                "coefficients are stored as they are; losses of several scores and "
                "ordinal ones have others."
            )
        if self._model.free is not None:
            raise ValueError(
                "positive and coef_bounds need a penalty on each feature: alpha and "
                "penalty_factor must be positive."
            )

    def objective(self, index: int, alpha: float) -> Objective:
        if self.free is not None and self.free.all():
            rule = self._model.rule(self._targets[index], self.weights)
            alpha = NO_PENALTY * rule.squares
        return Objective(self.risk(index), self.regularizer, alpha)

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
        if self.elsewhere is None:
            return super().solve(alpha, task)
        return self.elsewhere.solve(self, alpha, task)

    def _loss_of(self, index: int) -> Loss:
        """Return the loss of a problem."""
        return self.loss

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
        attributes = self.attributes()
        features = self._model.features.axis
        starts = ("coef", coef, features), ("intercept", intercept, INTERCEPTS)
        for name, given, axis in starts:
            if given is not None:
                shape = np.shape(attributes[f"{name}_"])
                start = check_start(f"{name}_init", given, shape, axis)
                attributes[f"{name}_"] = start
        if intercept is not None and self.design.n_coef == self.design.n_params:
            raise ValueError(
                "intercept_init has no effect here: the problem has no intercept of "
                "its own. Leave it out."
            )
        intercept = np.atleast_1d(attributes["intercept_"])
        if not self._set_starts(attributes["coef_"], intercept, [None] * len(self)):
            raise ValueError(
                "coef_init has coefficients that the penalty or the bounds forbid."
            )

    def _set_starts(self, coef: Any, intercept: Any, duals: list[Any]) -> bool:
        """Start from coefficients where the penalty allows them; whether it does."""
        coef = np.atleast_2d(coef)
        allowed = self._allows_left_out(coef)
        coef = coef[:, self.columns]
        if self._opposite:
            coef, intercept = -coef, -intercept
        if self._shift is not None:
            intercept = self._shift.inward(self._shares(coef), intercept)
        for index, w in enumerate(self._encoded(coef, intercept)):
            w = w[: self.design.n_params].astype(np.float64)
            dual = duals[index]
            if dual is not None and dual.shape != self.design.zero_scores().shape:
                dual = None
            if not allowed or not self.regularizer.contains(w):
                allowed = False
                continue
            # Shares in single precision sum to one except for rounding.
            self.starts[index] = Start(self.regularizer.nearest(w), dual)
        return allowed

    def _allows_left_out(self, coef: Any) -> bool:
        """Whether coefficients of features that were left out are within the bounds."""
        if self._model.bounds is None or isinstance(self.columns, slice):
            return True
        low, high = (np.delete(bound, self.columns) for bound in self._model.bounds)
        coef = np.delete(coef, self.columns, axis=1)
        return bool(((low <= coef) & (coef <= high)).all())

    def strengths(self, total: float) -> Floats:
        """Return alpha of each problem by rule, for rows of a total weight."""
        model, scales = self._model, self.scales
        if scales is None:
            scales = self._own_rows.scales(self.design.X, self.weights, centered=False)
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

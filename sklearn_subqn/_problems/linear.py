"""Problems with linear scores: objectives from data, coefficients from solutions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from .._checks import check_start
from .._core import lapack
from .._core.arrays import Floats
from .._core.losses import DualLoss, with_shield
from .._core.memory import BLOCK_SIZE, COPY_SIZE
from .._core.objectives.objective import Objective
from .._core.objectives.risk import Risk
from .._core.regularizers import (
    L2,
    Bounded,
    GroupPenalty,
    NormalizedEntropy,
    Polyhedron,
    Regularizer,
)
from .._core.rounding import ROUNDED
from .._core.rows.design import Design
from .._core.rows.equal_rows import FEW_ROWS, EqualRows
from .._core.rows.linear_map import PART_SIZE
from .._core.rows.row_views import SomeRows, mostly_zeros_as_csr
from .._core.rows.threshold_design import ThresholdDesign
from .._core.solvers import Start
from .._features.strength import Rule, Scales, divided
from .._solving.process import n_threads as threads_of
from .features import ALL_COLUMNS, INTERCEPTS, Columns, Rows
from .maps import (
    Coordinates,
    FewDigits,
    LeftOut,
    Levels,
    Map,
    Moved,
    Nodes,
    Pair,
    Raised,
    RowMap,
    Signs,
    Stored,
    Turned,
    Units,
)
from .model_parameters import LinearModel
from .reading import Reading
from .solving import Problems
from .thresholds import OpenIntercepts
from .without_penalty import FreeFeatures

# If no feature has a penalty, features are rescaled only if their scales differ by more
# than a factor of 16. docs/constants.md has the figures.
_NEAR = 16.0

# For a quadratic penalty, X is replaced by a dense matrix of linear combinations of
# features if this matrix has at most 2^26 entries (half a gigabyte).
_MOST_TURNED = 1 << 26


class LinearProblems(Problems):
    """Problems with one loss and linear scores on the same data.

    Solvers get features that are shifted and divided by their scales, without features
    that have no entries. Stored coefficients apply to X as given, have its dtype, and
    satisfy the user's bounds.

    Parameters
    ----------
    model : LinearModel
    X : {ndarray, CSR matrix} of shape (n, d) or Rows
    targets : list of ndarray
        Targets of each problem.
    loss : DualLoss or list of DualLoss
        One loss for all problems, or a list with one for each.
    weights : ndarray of shape (n,) or list of them
        Weights for all problems, or a list with weights for each; they sum to one.
    n_scores : int, optional
        Number k of scores per row of a joint loss.
    scores : RowMap, optional
        Map from the scores of a single problem to the user's scores.
    reading : Reading, optional
        Conversion to the user's objectives, if the solver's objectives differ.
    outputs : sequence, optional
        The output of each of several problems, such as a class.
    output : str
        Name of an output in messages.
    single : bool
        Whether coefficients are of shape (d,) instead of (k, d).
    keeps_axis : bool
        Whether an intercept of such coefficients is of shape (1,).
    known : dict, optional
        Attributes that are known before the fit, such as ``classes_``.
    opposite : bool
        Whether stored scores have the opposite sign, since the first class is positive.
    dtype : dtype, optional
        Type in which coefficients will be stored, by default the dtype of X.

    Attributes
    ----------
    loss : DualLoss
    regularizer : Regularizer
    rows : Rows
        The given rows, or the distinct ones if most of them are repeated.
    targets : list of ndarray
    columns : ndarray of int or slice
        The features that are part of the problems.
    sizes : ndarray or None
        Divisors of these features for the solver.
    turned : Turned or None
        Combinations of features in which a quadratic penalty is a sum of squares; None
        for other penalties and for several scores per row.
    free : FreeFeatures or None
        The features, or combinations of them, without a penalty, if there are any.
    """

    columns: Columns = ALL_COLUMNS
    regularizer: Regularizer
    turned: Turned | None

    #: Whether equal rows may be replaced by one row with the sum of their weights.
    _merges_rows: ClassVar[bool] = True

    def __init__(
        self,
        model: LinearModel,
        X: Any,
        targets: list[Any],
        loss: DualLoss | list[DualLoss],
        weights: Floats | list[Floats],
        *,
        n_scores: int | None = None,
        scores: RowMap | None = None,
        reading: Reading | None = None,
        outputs: Any = None,
        output: str = "class {}",
        single: bool = False,
        keeps_axis: bool = False,
        known: dict[str, Any] | None = None,
        opposite: bool = False,
        dtype: Any = None,
    ) -> None:
        self._model = model
        self._known = known or {}
        n = len(targets)
        self._losses = loss if isinstance(loss, list) else [loss] * n
        self._weights = weights if isinstance(weights, list) else [weights] * n
        self.loss: DualLoss = self._losses[0]
        self.weights: Floats = self._weights[0]
        self._n_repeated = 0
        if not isinstance(X, Rows):
            X = mostly_zeros_as_csr(X)
            if X.shape[0] > FEW_ROWS:
                X, targets = self._merged(X, targets)
            X = Rows(X)
        loss, weights = self.loss, self.weights
        intercept = model.fit_intercept
        movable = intercept or loss.ranks
        self.rows = rows = X
        if model.leaves_out:
            self.columns, rows = rows.of_own_columns()
        if self.columns is not ALL_COLUMNS:
            model = model.of_columns(self.columns)
        self._own_rows, X = rows, rows.X
        shift = rows.shift(weights) if movable else None
        if shift is not None:
            X = shift.subtracted(X)
        self.scales: Scales | None = None
        if model.has_own_scales:
            self.scales = rows.scales(X, weights, centered=movable)
        self.turned, dtype, unturned = None, dtype or X.dtype, X
        if type(rows) is Rows and not (n_scores or scores):
            X, self.turned = self._combined(model, X, centered=movable)
        self._unturned = None if self.turned is None else unturned
        given = reading or Reading()
        X, unit = self._in_units(model, X, given.units, centered=movable)
        self.targets = targets
        self._risks: dict[int, tuple[tuple[Any, ...], Risk]] = {}
        self._scores, self._level = scores, given.level
        self.design, self._open = self._map(X, intercept, n_scores, scores)
        bounds = model.bounds
        if bounds is not None or model.constraints is not None:
            self._check_bounds(n_scores, scores)
        if bounds is not None and opposite:
            bounds = -bounds[1], -bounds[0]
        self.regularizer = self._penalty(model, bounds)
        if model.constraints is not None:
            self.regularizer = self._polyhedron(*model.constraints, bounds, opposite)
        # Without intercepts, the loss depends on differences of scores only, and a
        # shift of the features does not change them.
        moved = None
        if shift is not None and intercept:
            shares = isinstance(self.regularizer, NormalizedEntropy)
            moved = Moved(shift, self._sums if shares else None)
        stored = Stored(dtype, bounds, moved)
        self._coordinates = self._maps(scores, stored, opposite)
        self._n_rows = scores.n_rows if scores else len(targets) * (n_scores or 1)
        self._single, self._keeps_axis = single, keeps_axis
        self.outputs = outputs if len(targets) > 1 else None
        name = model.name
        labels = [name] * len(targets)
        if self.outputs is not None:
            labels = [f"{name}, {output.format(each)}" for each in self.outputs]
        self.free, free = None, model.free
        if self.turned is not None and self.turned.free.any():
            free = self.turned.free
        if free is not None:
            # A method of this object in one of its attributes would keep it, and the
            # rows, until Python looks for cycles.
            curvature = partial(_curvature, self._model.rule, targets, weights)
            n_coef = self.design.n_coef
            self.free = FreeFeatures(free, n_coef, curvature, labels, unit)
        self.reading = reading or self.free
        start = Start(self.regularizer.center(self.design.n_params))
        super().__init__(model.settings, labels, [start] * len(targets), dtype)

    @property
    def n_samples(self) -> int:
        """Number of the given rows."""
        return self.design.n_rows + self._n_repeated

    @property
    def n_coefs(self) -> int:
        """Number of the stored coefficients of all problems."""
        return self._n_rows * self._model.features.n_features

    def _merged(self, X: Any, targets: list[Any]) -> tuple[Any, list[Any]]:
        """Return X and targets without repeated rows, whose weights are added.

        The objective does not change, except for losses of rankings and losses that
        count rows.
        """
        separable = all(
            each.is_ours and not (each.ranks or each.counts_rows)
            for each in self._losses
        )
        same = None
        if self._merges_rows and separable:
            same = EqualRows.of(X, targets)
        if same is None:
            return X, targets
        self._n_repeated = X.shape[0] - len(same.first)
        sums = {id(each): same.sums(each) for each in self._weights}
        self._weights = [sums[id(each)] for each in self._weights]
        self.weights = self._weights[0]
        return X[same.first], [each[same.first] for each in targets]

    def _combined(
        self, model: LinearModel, X: Any, *, centered: bool
    ) -> tuple[Any, Turned | None]:
        """Return X with features combined so that a quadratic penalty is diagonal.

        If the quadratic form is definite, X is returned unchanged for solvers chosen by
        name, and for smooth losses on sparse rows, which then stay sparse.
        """
        if model.form is None or np.prod(X.shape) > _MOST_TURNED:
            return X, None
        form = model.form()
        as_it_is = model.settings.solver != "auto"
        as_it_is = as_it_is or (sparse.issparse(X) and self.loss.smooth)
        if as_it_is and lapack.is_definite(form, ROUNDED):
            return X, None
        turned = Turned.of(form, X, self.weights, centered=centered)
        return turned.adjoint(X), turned

    def _in_units(
        self, model: LinearModel, X: Any, units: Floats | None, *, centered: bool
    ) -> tuple[Any, float]:
        """Return X in the solver's units, and the common unit of unpenalized features.

        In these units the solver's penalty is the user's penalty.
        """
        free, unit = model.free, 1.0
        self.sizes = model.sizes
        if self.scales is not None:
            own = self.scales.sizes
            self.sizes = own if model.sizes is None else model.sizes * own
        if free is not None:
            own = self._own_rows.scales(X, self.weights, centered=centered).sizes
            others = own if self.sizes is None else self.sizes
            # Features multiplied by a large factor have a negligible penalty: the
            # factor divides an L1 penalty, and its square divides an L2 penalty.
            large = 1e5 if model.has_squares else 1e6
            large = 1.0 if free.all() else large
            self.sizes = np.where(free, own / large, others)
            if free.all() and own.max() <= _NEAR * own.min():
                self.sizes, unit = None, float(own.min())
        if self.sizes is not None:
            X = self._divided(X, self.sizes)
        elif units is not None:
            self.sizes = units[self.columns]
            X = divided(X, self.sizes).astype(X.dtype, copy=False)
        return X, unit

    def _penalty(
        self, model: LinearModel, bounds: tuple[Floats, Floats] | None
    ) -> Regularizer:
        """Return the penalty in the solver's units, with the solver's bounds."""
        n_coef, penalized = self.design.n_coef, model.free is None
        penalized = penalized or not np.all(model.free)
        squares = not penalized or self.turned is not None
        regularizer = L2(n_coef) if squares else model.regularizer(n_coef)
        if bounds is None:
            return regularizer
        sizes = 1.0 if self.sizes is None else self.sizes
        low, high = (bound * sizes for bound in bounds)
        if isinstance(regularizer, GroupPenalty):
            return regularizer.with_side(1.0 * (low == 0.0) - (high == 0.0))
        return Bounded(model.l1_share if penalized else 0.0, low, high)

    def _divided(self, X: Any, sizes: Floats) -> Any:
        """Return X in other units; dense data are not copied if they are large.

        Tall data of squared errors are not copied either, if the solution depends on
        their Gram matrix, which takes one pass and no more numbers than a column.
        """
        model, (n, d) = self._model, X.shape
        by_gram = (
            self.loss.quadratic
            and d * d <= n
            and X.size > BLOCK_SIZE
            and (model.has_squares or model.l1_share > 0.0)
            and model.bounds is None
            and model.settings.solver == "auto"
        )
        if sparse.issparse(X) or (X.size <= COPY_SIZE and not by_gram):
            return divided(X, sizes)
        return SomeRows(X, range(n), sizes=sizes)

    def _map(
        self, X: Any, intercept: bool, n_scores: int | None, scores: RowMap | None
    ) -> tuple[Design, OpenIntercepts | None]:
        """Return the design, and the rule for undetermined intercepts or ``None``."""
        opens = self.loss.ranks
        # joblib takes long to count processors, so it is not called for small data.
        few = (X.nnz if sparse.issparse(X) else X.size) < 2 * PART_SIZE
        n_threads = 1 if few else threads_of(self._model.n_jobs)
        n_thresholds = scores.n_thresholds if isinstance(scores, Levels) else None
        if n_thresholds is not None and not opens:
            return ThresholdDesign(X, n_thresholds, n_threads=n_threads), None
        design = Design(
            X,
            fit_intercept=intercept and not opens,
            n_outputs=n_scores,
            n_threads=n_threads,
        )
        if not (intercept and opens):
            return design, None
        rule = self.loss, self.weights, n_threads, n_thresholds
        return design, OpenIntercepts(design, *rule)

    def _maps(
        self, scores: RowMap | None, stored: Stored, opposite: bool
    ) -> Coordinates:
        """Return the maps from parameters to stored coefficients."""
        inner: list[Map] = [] if self.sizes is None else [Units(self.sizes)]
        if self.turned is not None:
            inner.append(self.turned)
        if self._level:
            inner.append(Raised(self._level))
        if isinstance(scores, Levels):
            inner.append(FewDigits(stored.dtype, scores.n_thresholds))
        if scores is not None:
            inner.append(scores)
        outer: list[Map] = [Signs()] if opposite else []
        if not isinstance(self.columns, slice):
            outer.append(LeftOut(self.columns, self._model.features.n_features))
        # Optimal coefficients of nodes are in the span of the features of labels only
        # for an L2 penalty.
        projects = not isinstance(scores, Nodes) or isinstance(self.regularizer, L2)
        return Coordinates(inner, stored, outer, projects=projects)

    def _sums(self, coef: Any) -> Floats:
        """Return the sum of the solver's coefficients over each coefficient row."""
        coef = np.asarray(coef, dtype=np.float64)
        if self._scores is not None:
            coef, _ = self._scores.inward(coef, np.zeros(len(coef)))
        return coef.reshape(-1, self.design.n_coef).sum(axis=1, keepdims=True)

    def _rows(self, w: Floats) -> Pair:
        """Return coefficients (k, d) and intercepts (k,) of one problem."""
        coef, intercept = self.design.split(w)
        coef = np.atleast_2d(coef.T)
        return coef, intercept if np.ndim(intercept) else np.full(len(coef), intercept)

    def _parameters(self, coef: Any, intercept: Any) -> Floats:
        """Return the parameters of one problem from its coefficient rows."""
        return np.concatenate([coef.T.ravel(), intercept])[: self.design.n_params]

    def stored(self, w: Floats) -> Floats:
        if self._coordinates.is_plain:
            return np.asarray(w.astype(self._dtype))
        # Stored intercepts are rounded sums of thresholds. Recovering the thresholds
        # takes differences of the sums, which are rounded again.
        for _ in range(getattr(self.design, "n_thresholds", 1)):
            w = self._parameters(*self._coordinates.rounded(*self._rows(w)))
        return w

    def _found(self, index: int) -> Pair:
        """Return coefficients and intercepts at the present start of a problem."""
        w = self.starts[index].w
        coef, intercept = self._rows(w)
        if self._open is not None:
            intercept = self._open(self.targets[index], w)
        return coef, intercept

    def _reported(self, found: Iterable[Pair]) -> Pair:
        """Return the stored coefficients and intercepts of all problems."""
        return self._coordinates.outward(*map(np.concatenate, zip(*found, strict=True)))

    def attributes(self) -> dict[str, Any]:
        found = map(self._found, range(len(self.starts)))
        coef, intercept = self._reported(found)
        if self._single:
            coef, intercept = coef[0], intercept if self._keeps_axis else intercept[0]
        return {**self._known, "coef_": coef, "intercept_": intercept}

    def _polyhedron(
        self, A: Floats, b: Floats, bounds: tuple[Floats, Floats] | None, opposite: bool
    ) -> Polyhedron:
        """Return the L2 penalty with the constraints A w <= b and bounds."""
        if self._model.free is not None:
            raise ValueError(
                "coef_constraints need a penalty on each feature: alpha and "
                "penalty_factor must be positive."
            )
        A = -A if opposite else A
        if bounds is not None:
            low, high = bounds
            one = np.eye(A.shape[1])
            some = np.isfinite(low), np.isfinite(high)
            A = np.concatenate([A, -one[some[0]], one[some[1]]])
            b = np.concatenate([b, -low[some[0]], high[some[1]]])
        return Polyhedron(A if self.sizes is None else A / self.sizes, b)

    def _check_bounds(self, n_scores: int | None, scores: RowMap | None) -> None:
        """Raise unless each feature has the coefficient of a single score."""
        if self.loss.joint or n_scores is not None or scores is not None:
            raise ValueError(
                "positive, coef_bounds and coef_constraints need a loss of one score "
                "per sample, whose coefficients are stored as they are; losses of "
                "several scores and ordinal ones have others."
            )

    def objective(self, index: int, alpha: float) -> Objective:
        if self.reading is not None:
            alpha = self.reading.strength(index, alpha)
        return Objective(self.risk(index), self.regularizer, alpha)

    def risk(self, index: int) -> Risk:
        """Return the risk of a problem."""
        if self.elsewhere is not None:
            return self.elsewhere.risk(index)
        # The risk is kept for all alpha, since it caches column sizes.
        given = self._losses[index], self.targets[index], self._weights[index]
        known, risk = self._risks.get(index, ((), None))
        if risk is None or any(a is not b for a, b in zip(known, given, strict=True)):
            data = given if given[0].is_ours else with_shield(*given)
            before = self._risks.get(0)
            if before is not None and before[0][2] is given[2]:
                risk = before[1].with_targets(*data[:2])
            else:
                risk = Risk(self.design, *data)
            self._risks[index] = given, risk
        return risk

    def start_from(self, previous: dict[str, Any]) -> None:
        """Start from a previous solution, and from its dual points of the same shape.

        The solution must have the same features, classes and shape, and be feasible.
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

        None keeps the values of a previous solution, or zero.

        Raises
        ------
        TypeError, ValueError
            If the values are invalid, or infeasible for the penalty.
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
        """Start from coefficients if they are feasible; return whether they are."""
        coef = np.atleast_2d(coef)
        allowed = self._allows_left_out(coef)
        if len(coef) != self._n_rows:
            return allowed
        rows = self._coordinates.inward(coef, intercept)
        problems = zip(*(np.split(each, len(self)) for each in rows), strict=True)
        for index, own in enumerate(problems):
            w = self._parameters(*own)
            dual = duals[index]
            if dual is not None and dual.shape != self.design.zero_scores().shape:
                dual = None
            if not allowed or not self.regularizer.contains(w):
                allowed = False
                continue
            # Weights on the simplex sum to one only up to rounding in single precision.
            self.starts[index] = Start(self.regularizer.nearest(w), dual)
        return allowed

    def _allows_left_out(self, coef: Any) -> bool:
        """Whether the coefficients of left-out features are within the bounds."""
        if self._model.bounds is None or isinstance(self.columns, slice):
            return True
        low, high = (np.delete(bound, self.columns) for bound in self._model.bounds)
        coef = np.delete(coef, self.columns, axis=1)
        return bool(((low <= coef) & (coef <= high)).all())

    def strengths(self, total: float) -> Floats:
        """Return alpha of each problem by the rule, for a total weight of the rows."""
        model, scales = self._model, self.scales
        if scales is None:
            X = self.design.matrix if self.turned is None else self._unturned
            scales = self._own_rows.scales(X, self.weights, centered=False)
            free = None if model.free is None else model.free[self.columns]
            scales = scales.plain(free)
        return np.array(
            [
                scales.strength(model.rule(target, self.weights), model.l1_share, total)
                for target in self.targets
            ]
        )


def _curvature(
    rule: Callable[[Any, Floats], Rule], targets: list[Any], weights: Floats, index: int
) -> float:
    """Return the approximate second derivative of a problem's loss."""
    return rule(targets[index], weights).squares

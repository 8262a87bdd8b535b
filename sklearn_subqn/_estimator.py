"""What all linear estimators share: from data to fitted attributes."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin, is_regressor
from sklearn.metrics import d2_tweedie_score
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from ._blocks import Collection
from ._by_feature import penalty_factors
from ._callbacks import CallbackSupportMixin, FitTask
from ._callers import in_search, user_level
from ._core.columns import own_columns
from ._core.losses import Loss
from ._core.names import features_axis
from ._core.options import Option
from ._core.regularizers import L2, Regularizer
from ._core.solvers import SolverSpec
from ._doc_link import DocumentationLink
from ._names import instead_of
from ._problems import InputFeatures, LinearModel, Problems
from ._process import n_threads
from ._row_blocks import RowBlocks
from ._solve import Solution, spec_of, warn_of_constants
from ._state import PlainState
from ._strength import Rule
from ._text import naming_text
from ._validation import (
    AUTO,
    check_labels,
    check_option,
    check_parameters,
    check_range,
    check_sparse_structure,
    check_unmasked,
    plain_csr,
    total_of,
)

_Method = TypeVar("_Method", bound=Callable[..., Any])

#: Types of X that are kept as they are; everything else becomes float64.
DTYPES = (np.float64, np.float32)

# Scores are kept to this share of the sum of the absolute values that they are sums of,
# which are made of so many entries of X at a time.
_LAST_DIGITS = 1e-12
_ENTRIES_AT_ONCE = 2**18

# Weights of so many rows that sum to no more than this were divided by their sum.
_MANY_ROWS, _ONE_ROW = 10, 1.01

# Scores of sparse rows with so many times more columns than entries look at their own
# columns alone: those of one row in 2^20 columns take a tenth of the time.
_NARROW = 16


def variance_power(estimator: Any) -> float | None:
    """Return the power of the mean to which variances are proportional.

    That of a regressor whose predictions are exp(f(x)); else None.
    """
    powers = {"poisson": 1.0, "gamma": 2.0, "tweedie": getattr(estimator, "power", 1.5)}
    loss = estimator.loss
    return powers.get(loss) if isinstance(loss, str) else None


class ScoringRegressor(RegressorMixin):
    """Base of regressors: scores of predictions."""

    loss: Any
    predict: Callable[[Any], Any]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of what there is to explain that predictions explain.

        That is the coefficient of determination R², as of all regressors of
        scikit-learn; for ``loss="poisson"``, "gamma" and "tweedie" its likeness D² for
        the deviances of these distributions, as of
        :class:`~sklearn.linear_model.PoissonRegressor` and the like. Of several columns
        of y it is the mean.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets of the samples.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, by default equal.

        Returns
        -------
        score : float
            At most 1; 0 for the best constant.
        """
        power = variance_power(self)
        if power is None:
            return float(super().score(X, y, sample_weight))
        # Means are not zero, if they are too small for a number.
        expected = np.maximum(self.predict(X), np.finfo(np.float64).tiny)
        y = np.asarray(y)
        shape = (len(y), -1)
        columns = zip(y.reshape(shape).T, expected.reshape(shape).T, strict=True)
        scores = [
            d2_tweedie_score(column, of, sample_weight=sample_weight, power=power)
            for column, of in columns
        ]
        return float(np.mean(scores))


class Estimator(DocumentationLink, PlainState, CallbackSupportMixin, BaseEstimator):
    """Base of all estimators: from parameters and data to fitted attributes."""

    #: What ``solver`` may be.
    _solvers: ClassVar[Mapping[str, SolverSpec]]

    #: How to make more use of the features.
    _weaker: ClassVar[str] = "decrease alpha or tol"

    #: What to say of parameters that there are not, where it is not the usual.
    _instead_of: ClassVar[Mapping[str, str]] = {}

    alpha: Any
    solver: str
    max_iter: int

    #: Each estimator has its own.
    fit: Callable[..., Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse parameters of other names with a word on what to give instead."""
        known = inspect.signature(cls.__init__).parameters
        if all(known[name].kind != known[name].VAR_KEYWORD for name in known):
            for name in kwargs:
                if name not in known:
                    of_fit = inspect.signature(cls.fit).parameters
                    raise TypeError(
                        f"{cls.__name__}() got an unexpected keyword argument {name!r}."
                        + cls._instead_of.get(
                            name, instead_of(name, list(known), list(of_fit))
                        )
                    )
        return super().__new__(cls)

    def _check_parameters(self) -> None:
        """Raise for parameters that are not acceptable."""
        if not isinstance(self.solver, str) or self.solver not in self._solvers:
            smooth = self._is_smooth()
            kinds = (smooth, None) if smooth is not None else (True, False, None)
            fitting = [k for k, v in self._solvers.items() if v.smooth in kinds]
            check_option("solver", self.solver, fitting)
        check_parameters(self)

    def _known_options(self) -> Mapping[str, Option]:
        """Return what ``solver_options`` may have, by the solver."""
        return spec_of(self).options

    def _is_smooth(self) -> bool | None:
        """Return whether the loss is differentiable, if parameters say so."""
        return None

    def _encode(self, X: Any, y: Any, sample_weight: Any, **others: Any) -> Problems:
        """Return the problems of data that it validates."""
        # Each estimator that is not of streams has its own.
        raise NotImplementedError

    def _strength(
        self, problems: Any, y: Any, sample_weight: Any
    ) -> float | npt.NDArray[np.float64]:
        """Return the strength of the penalty, for all problems or for each."""
        return float(self.alpha)

    def _instead(self) -> str | None:
        """Return what to do where the optimum makes no use of the features, if that."""
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
        """Validate everything, solve for ``alpha`` and set the fitted attributes."""
        self._check_parameters()
        previous = vars(self).copy() if self.warm_start else {}
        if is_collection(X):
            given = coef_init, intercept_init, previous
            return self._fit_to_collection(X, y, sample_weight, *given, **others)
        problems = self._encode(X, y, sample_weight, **others)
        problems.start_from(previous)
        task = FitTask(self, len(problems), self.max_iter, X, y, sample_weight)
        solutions = self._solved(
            problems, y, sample_weight, coef_init, intercept_init, task
        )
        # Dual points are only worth their memory to a fit that starts from them.
        duals = [solution.dual for solution in solutions]
        self._duals = duals if self.warm_start else None
        task.end()
        return self

    def _solved(
        self,
        problems: Problems,
        y: Any,
        sample_weight: Any,
        coef_init: Any,
        intercept_init: Any,
        task: FitTask,
    ) -> list[Solution]:
        """Solve for ``alpha`` and set the fitted attributes."""
        if coef_init is not None or intercept_init is not None:
            problems.start_at(coef_init, intercept_init)
        strength = self._strength(problems, y, sample_weight)
        solutions = problems.solve(strength, task)
        self._store(problems, solutions)
        return solutions

    def _fit_to_collection(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        coef_init: Any,
        intercept_init: Any,
        previous: dict[str, Any],
        **others: Any,
    ) -> Self:
        """Fit to data in blocks."""
        rows = self._opened(X, y, sample_weight, **others)
        try:
            problems = rows.problems
            problems.start_from({**previous, "_duals": None})
            task = FitTask(self, len(problems), self.max_iter, X, y, sample_weight)
            self._solved(
                problems, rows.y, rows.weights, coef_init, intercept_init, task
            )
            self._duals = None
            task.end()
        finally:
            rows.close()
        return self

    def _opened(self, X: Any, y: Any, sample_weight: Any, **others: Any) -> Collection:
        """Return the rows of data in blocks for a fit, to be closed after it."""
        raise TypeError(
            f"{type(self).__name__} does not take Dask collections and RowBlocks; got "
            f"X of type {type(X).__name__}. Give arrays, if the data fit into memory."
        )

    def _store(self, problems: Problems, solutions: list[Solution]) -> None:
        """Set the fitted attributes, and warn of models that are of no use."""
        instead = self._instead()
        if instead is not None:
            warn_of_constants(
                type(self).__name__, solutions, instead, problems.parts, self._weaker
            )
        for name, value in problems.attributes().items():
            setattr(self, name, value)
        objectives = np.array([solution.objective for solution in solutions])
        gaps = np.array([solution.dual_gap for solution in solutions])
        several = problems.several
        self.objective_ = objectives if several else float(objectives[0])
        self.dual_gap_ = gaps if several else float(gaps[0])
        # At least one, as scikit-learn has it, where there may be any.
        n_iters = [solution.n_iter for solution in solutions]
        self.n_iter_ = max(min(1, self.max_iter), *n_iters, 0)
        self.history_ = [solution.history for solution in solutions]
        plans = [solution.plan for solution in solutions]
        self.plan_ = plans if several else plans[0]


class LinearEstimator(Estimator):
    """Base of estimators with ``coef_`` and ``intercept_`` of one row per output."""

    loss: Any
    alpha_: Any

    #: Whether ``alpha`` may be zero.
    _may_have_no_penalty: ClassVar[bool] = False

    # Of estimators without this parameter.
    penalty_factor: Any = None

    #: Whether ``fit`` takes data in blocks, for losses that are sums over samples.
    _takes_collections: ClassVar[bool] = False

    def _opened(self, X: Any, y: Any, sample_weight: Any, **others: Any) -> Collection:
        if not self._takes_collections:
            return super()._opened(X, y, sample_weight, **others)
        self._check_collection()
        for name, value in others.items():
            if value is not None:
                raise ValueError(f"{name} is not supported for data in blocks.")
        if isinstance(X, RowBlocks):
            return X._opened(self, y, sample_weight)
        # Needs Dask.
        from ._dask import opened

        return opened(self, X, y, sample_weight)

    def _check_collection(self) -> None:
        """Raise where the parameters need all samples in one place."""
        free = self.penalty_factor is not None and not np.all(self._factors_given())
        if self.alpha == 0.0 or free:
            raise ValueError(
                "Features without a penalty are not supported for data in blocks: "
                "alpha and penalty_factor must be positive."
            )
        if getattr(self, "positive", False) or (
            getattr(self, "coef_bounds", None) is not None
        ):
            raise ValueError(
                "positive and coef_bounds are not supported for data in blocks."
            )

    def _factors_given(self) -> npt.NDArray[Any]:
        """Return the values of ``penalty_factor``, in any order."""
        given: Any = self.penalty_factor
        return np.array(list(given.values()) if isinstance(given, Mapping) else given)

    def _linear_model(self) -> LinearModel:
        """Return what the parameters say of the model, for checked features."""
        auto = getattr(self, "alpha", None) == AUTO
        # In the order in which parameters are checked.
        free, sizes, bounds = (
            self._free_features(),
            self._penalty_sizes(),
            self._bounds(),
        )
        return LinearModel(
            type(self).__name__,
            self,
            n_threads(self.n_jobs),
            bool(getattr(self, "fit_intercept", False)),
            InputFeatures.of(self),
            self._regularizer,
            self._l1_share(),
            self._has_squares(),
            auto and self._has_scales(),
            sizes,
            free,
            bounds,
            self._rule,
            self._check_support,
        )

    def _regularizer(self, n_coef: int) -> Regularizer:
        """Return the penalty of so many coefficients."""
        return L2(n_coef)

    def _strength(
        self, problems: Any, y: Any, sample_weight: Any
    ) -> float | npt.NDArray[np.float64]:
        """Return ``alpha``, or the strengths by rule, and set ``alpha_``."""
        sizes = problems.sizes
        if sizes is None:
            sizes = np.ones(self.n_features_in_)
        factors = sizes**2 if self._has_squares() else sizes
        if problems.free is not None:
            given = self._penalty_factors()
            others = np.ones_like(factors) if given is None else given
            factors = others if problems.free.all() else factors * ~problems.free
        self.penalty_factor_ = factors
        if not isinstance(self.alpha, str):
            self.alpha_ = float(self.alpha)
            return self.alpha_
        with np.errstate(all="ignore"):
            total = self._total_weight(problems, y, sample_weight)
            strengths: npt.NDArray[np.float64] = problems.strengths(total)
        if not np.all((strengths > 0.0) & np.isfinite(strengths)):
            raise ValueError(
                f"alpha='auto' is out of range, as sample weights sum to {total:g}. "
                "Scale the weights, or y, or give a number as alpha."
            )
        _warn_of_shares(type(self).__name__, total, sample_weight)
        same = bool(np.all(strengths == strengths[0]))
        self.alpha_ = float(strengths[0]) if same else strengths
        used: float | npt.NDArray[np.float64] = self.alpha_
        return used

    def _total_weight(self, problems: Any, y: Any, sample_weight: Any) -> float:
        """Return the sum of the weights of the rows."""
        return total_of(sample_weight, problems.design.n_rows)

    def _has_scales(self) -> bool:
        """Whether the penalty may measure features in other units than their own."""
        return True

    def _has_squares(self) -> bool:
        """Whether the penalty is one of squares, of which factors are factors."""
        return getattr(self, "penalty", "l2") == "l2" and not self._l1_share()

    def _penalty_sizes(self) -> npt.NDArray[np.float64] | None:
        """Return units of the features that ``penalty_factor`` asks for, if any."""
        factors = self._penalty_factors()
        if factors is None:
            return None
        if not factors.all() and getattr(self, "penalty", "l2") == "lp":
            raise ValueError(
                "penalty_factor=0 needs penalty='l2', 'l1' or 'elasticnet'; got 'lp'."
            )
        return np.sqrt(factors) if self._has_squares() else factors

    def _free_features(self) -> npt.NDArray[np.bool_] | None:
        """Return which features have no penalty, of shape (n_features,), if any."""
        if self._may_have_no_penalty and self.alpha == 0.0:
            self._check_no_penalty()
            return np.ones(self.n_features_in_, dtype=bool)
        factors = self._penalty_factors()
        return None if factors is None or factors.all() else factors == 0.0

    def _check_no_penalty(self) -> None:
        """Raise where ``alpha=0`` leaves more than the mean loss."""
        if not self._has_scales():
            raise ValueError(
                "alpha=0 needs penalty='l2', 'l1', 'elasticnet' or 'lp', which then "
                f"all mean no penalty; got {self._combination()}."
            )

    def _penalty_factors(self) -> npt.NDArray[np.float64] | None:
        """Return ``penalty_factor`` in the order of the features, or None."""
        if self.penalty_factor is None:
            return None
        if not self._has_scales():
            raise ValueError(
                "penalty_factor needs penalty='l2', 'l1', 'elasticnet' or 'lp', whose "
                f"features have no other factors; got {self._combination()}."
            )
        given, axis = self.penalty_factor, features_axis(self)
        return penalty_factors(given, self.n_features_in_, axis)

    def _bounds(self) -> tuple[Any, Any] | None:
        """Return bounds of the coefficients, each of shape (n_features,), if any."""
        return None

    def _l1_share(self) -> float:
        """Return the share of the L1 norm in the penalty."""
        return 0.0

    def _rule(self, target: Any, weights: npt.NDArray[np.float64]) -> Rule:
        """Return the rule of the automatic strength, for targets of a problem."""
        return Rule(0.1, 0.1)

    def _combination(self) -> str:
        """Return what solvers have to support, as users write it."""
        return f"loss={loss_name(self.loss)}"

    def _takes(self, solver: str, loss: Loss, regularizer: Regularizer) -> bool:
        """Whether a solver takes the loss with the penalty."""
        return self._solvers[solver].supports(loss, regularizer)

    def _check_support(self, loss: Loss, regularizer: Regularizer) -> None:
        """Raise ValueError unless the solver takes the loss with the penalty."""
        if not self._takes(self.solver, loss, regularizer):
            names = [k for k in self._solvers if self._takes(k, loss, regularizer)]
            raise ValueError(
                f"solver={self.solver!r} does not support {self._combination()}; "
                f"solvers that do are {', '.join(map(repr, names))}."
            )

    def _check_X(
        self,
        X: Any,
        y: Any = "no_validation",
        *,
        reset: bool,
        several: bool = False,
        numeric: bool = False,
    ) -> Any:
        """Return X, or X and y, validated; corrupted sparse input is refused first.

        With ``several`` y may have several columns, and be sparse; with ``numeric`` it
        must be numbers.
        """
        check_sparse_structure(X)
        check_unmasked("X", X)
        check_labels(y)
        with naming_text(X):
            validated = validate_data(
                self,
                X,
                y,
                accept_sparse="csr",
                dtype=DTYPES,
                # Done by ``check_range``, with one reading for both.
                ensure_all_finite=False,
                reset=reset,
                **({"multi_output": True} if several else {}),
                **({"y_numeric": True} if numeric else {}),
            )
        if not isinstance(validated, tuple):
            X = plain_csr(validated)
            check_range(X, type(self).__name__)
            return X
        X = plain_csr(validated[0])
        check_range(X, type(self).__name__)
        return X, *validated[1:]

    def _raw_scores(self, X: Any) -> npt.NDArray[Any]:
        """Return X @ coef_.T + intercept_ of shape (n_samples, n_outputs)."""
        check_is_fitted(self)
        return self._scores(self._check_X(X, reset=False))

    def _scores(self, X: Any) -> npt.NDArray[Any]:
        """Return the scores of checked samples, in float64 without their last digits.

        Exact solutions put samples exactly on the margins of several classes. Rounding
        keeps such ties, which else are broken by how BLAS happens to sum batches of one
        size or another. What is left out is small beside what scores are sums of, for
        any scales of features.
        """
        if is_narrow(X):
            columns, X = own_columns(X)
            coef = self._coef_at(columns)
        else:
            coef = self.coef_
        scores = safe_sparse_dot(X, coef.T, dense_output=True)
        scores += self.intercept_
        if scores.dtype != np.float64:
            return np.asarray(scores)
        sizes = _largest_sums(X, coef)
        sizes += np.max(np.abs(self.intercept_), initial=0.0)
        # Powers of two, so that scaling is exact.
        _, exponents = np.frexp(_LAST_DIGITS * sizes)
        units = np.ldexp(1.0, np.maximum(exponents, -1000))
        rows = scores.T
        rows /= units
        np.round(rows, out=rows)
        rows *= units
        return np.asarray(scores)

    def _coef_at(self, columns: npt.NDArray[np.intp]) -> Any:
        """Return the coefficients of some columns, of shape (k, c), or (c,)."""
        coef: Any = self.coef_
        return coef[:, columns] if coef.ndim == 2 else coef[columns]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _warn_of_shares(name: str, total: float, sample_weight: Any) -> None:
    """Warn where the weights of many rows sum to one or less, as shares do."""
    # Whatever converts to an array may be given, None too.
    weights = np.asarray(sample_weight)
    n = int(np.count_nonzero(weights)) if weights.ndim else 0
    if n < _MANY_ROWS or total > _ONE_ROW or in_search():
        return
    warnings.warn(
        f"{name} has alpha='auto', for which sample weights are numbers of rows: as "
        f"those of {n} rows sum to {total:g}, the penalty is as strong as for that few "
        "rows. If the weights were divided by their sum, multiply them by the number "
        "of rows, or give a number as alpha.",
        UserWarning,
        stacklevel=user_level(),
    )


def is_collection(X: Any) -> bool:
    """Whether X is data in blocks, of our own or of Dask, which need not be there."""
    if isinstance(X, RowBlocks):
        return True
    package = type(X).__module__.partition(".")[0]
    return package in ("dask", "dask_expr") and hasattr(X, "__dask_graph__")


def blockwise(method: _Method) -> _Method:
    """Make a method of rows take data in blocks, lazily those of Dask."""

    @functools.wraps(method)
    def of_any(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_collection(X):
            return method(self, X, *args, **kwargs)
        if any(value is not None for value in [*args, *kwargs.values()]):
            raise ValueError("offset is not supported for data in blocks.")
        check_is_fitted(self)
        if isinstance(X, RowBlocks):
            return X._mapped(functools.partial(method, self))
        # Needs Dask.
        from ._dask import mapped

        return mapped(self, method.__name__, X)

    return cast(_Method, of_any)


def scored(method: _Method) -> _Method:
    """Make a method that scores predictions take data in blocks."""

    @functools.wraps(method)
    def of_any(self: Any, X: Any, y: Any = None, *args: Any, **kwargs: Any) -> Any:
        if not is_collection(X):
            return method(self, X, y, *args, **kwargs)
        given = inspect.signature(method).bind(self, X, y, *args, **kwargs).arguments
        weights = given.get("sample_weight")
        if given.get("offset") is not None:
            raise ValueError("offset is not supported for data in blocks.")
        if isinstance(X, RowBlocks):
            weights = X._all("sample_weight", weights)
            return method(self, X, X._all("y", y), weights)
        # Needs Dask.
        from ._dask import score

        check_is_fitted(self)
        power = variance_power(self) or 0.0 if is_regressor(self) else None
        return score(self, X, y, weights, power)

    return cast(_Method, of_any)


def loss_name(loss: Any) -> str:
    """Return a loss as users write it."""
    return repr(loss) if isinstance(loss, str) else type(loss).__name__


def is_narrow(X: Any) -> bool:
    """Whether X is sparse, with entries in few of its columns."""
    return sparse.issparse(X) and X.shape[1] > _NARROW * max(X.nnz, 1)


def _largest_sums(X: Any, coef: Any) -> npt.NDArray[Any]:
    """Return |X| times the largest of each feature's |coef|, of shape (n_samples,)."""
    if sparse.issparse(coef):
        coef = coef.toarray()
    coef = np.abs(np.atleast_2d(coef)).max(axis=0)
    if sparse.issparse(X):
        absolute = type(X)((np.abs(X.data), X.indices, X.indptr), shape=X.shape)
        return np.asarray(absolute @ coef)
    step = max(1, _ENTRIES_AT_ONCE // X.shape[1])
    parts = [np.abs(X[i : i + step]) @ coef for i in range(0, len(X), step)]
    return np.concatenate(parts)


def forget(estimator: Any, *names: str) -> None:
    """Remove fitted attributes that are not of the last fit, if there are any."""
    for name in names:
        if hasattr(estimator, name):
            delattr(estimator, name)


def log_probabilities(scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return logarithms of the softmax of scores, of shape (n_samples, n_classes).

    One column of scores is that of the second of two classes; scores are overwritten.
    """
    if scores.shape[1] == 1:
        scores = np.hstack([np.zeros_like(scores), scores])
    scores -= scores.max(axis=1, keepdims=True)
    scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return scores

"""The base of estimators with linear scores: penalties, checks of X, scores."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._blocks.blocks import Collection
from .._blocks.row_blocks import RowBlocks
from .._checks import (
    AUTO,
    as_numpy,
    canonical_csr,
    check_labels,
    check_no_file,
    check_no_times,
    check_range,
    check_unmasked,
    exact_labels,
    is_plain,
    total_of,
)
from .._checks.text import check_no_times_in, naming_text, with_sparse_floats
from .._core.arrays import Array, Floats, Indices, Mask
from .._core.names import features_axis
from .._core.regularizers import GroupPenalty, Regularizer, elastic_net
from .._core.rows.columns import own_columns
from .._core.solvers import SOLVERS, SolverSpec
from .._features.by_feature import penalty_factors
from .._features.separation import separating_rows, sides_of_rows
from .._features.strength import Rule
from .._problems import InputFeatures, LinearModel
from .._solving.solution import Solution
from .._solving.warnings import warn_of_separation, warn_of_shares
from .block_methods import refuse_collections
from .estimator import Estimator, forget, loss_name
from .held_out_strength import Choice
from .predictions import is_narrow, rounded_scores, variance_power

#: Dtypes of X that are kept; other dtypes are converted to float64.
DTYPES = (np.float64, np.float32)


class LinearEstimator(Estimator):
    """Base of estimators with a row of ``coef_`` and ``intercept_`` for each output."""

    _solvers: ClassVar[Mapping[str, SolverSpec]] = SOLVERS

    loss: Any
    alpha_: Any

    #: The choice of strength and scales, for ``alpha="auto"``.
    _choice: Choice = Choice()

    #: Mask of the features of zeros and ones, for groups of categories.
    _indicators: Any = None

    # Whether problems include features without entries.
    _keeps_all_features: bool = False

    #: Whether ``alpha`` may be zero.
    _may_have_no_penalty: ClassVar[bool] = False

    # Default for estimators without this parameter.
    penalty_factor: Any = None

    #: Scores of X, coefficients and intercepts.
    _scores_by = staticmethod(rounded_scores)

    #: Whether ``fit`` takes data in blocks, for losses that are sums over samples.
    _takes_collections: ClassVar[bool] = False

    #: Names of the arguments of ``fit`` for queries.
    _by_query: ClassVar[tuple[str, ...]] = ()

    def _opened(self, X: Any, y: Any, sample_weight: Any, **others: Any) -> Collection:
        if not self._takes_collections:
            return super()._opened(X, y, sample_weight, **others)
        forget(self, "auto_scores_")
        self._check_collection()
        names = *self._by_query, "offset"
        known = {name: others.pop(name, None) for name in names}
        for name, value in others.items():
            if value is not None:
                raise ValueError(f"{name} is not supported for data in blocks.")
        if isinstance(X, RowBlocks):
            return X._opened(self, y, sample_weight, **known)
        # Needs Dask.
        from .._blocks.dask_collections import opened

        return opened(self, X, y, sample_weight, **known)

    def _of_chosen(self) -> Any:
        """Return an estimator with the objective that was minimized."""
        return self

    def _checked(self, X: Any, y: Any, *, reset: bool = True) -> tuple[Any, Any]:
        """Return validated X and y; unless reset, X has the features of the fit."""
        checked: tuple[Any, Any] = self._check_X(X, y, reset=reset)
        return checked

    def _labels_in(self, y: Any) -> Array | None:
        """Return the labels that occur in targets, None for numeric targets."""
        return None

    def _checked_offset(self, offset: Any, n: int, classes: Any = None) -> Any:
        """Return the validated offset of n rows, if any; raise if it has no effect."""
        if offset is None:
            return None
        raise ValueError(
            f"The objective of {type(self).__name__} has no offset; leave it out."
        )

    def _less_offset(self, y: Any, offset: Any) -> tuple[Any, Any]:
        """Return targets and offsets, of which losses of residuals need none."""
        return y, offset

    def _check_collection(self) -> None:
        """Raise if the parameters need all samples in one process."""

    def _for_fold(self) -> Self:
        """Return a copy for some of the rows, without reports and with one thread."""
        # ``set_params`` reads signatures, a tenth of the time of a small search.
        model: Any = copy.copy(self)
        model.callback, model.verbose, model.n_jobs = None, 0, 1
        model.penalty_factor = self._penalty_factors()
        if (bounds := self._bounds()) is not None:
            model.set_params(coef_bounds=bounds)
        if (constraints := self._constraints()) is not None:
            model.set_params(coef_constraints=constraints)
        # Folds are plain arrays without column names.
        vars(model).pop("feature_names_in_", None)
        return model

    def _linear_model(self) -> LinearModel:
        """Return the parameters of the model in the form that problems use."""
        # The order of these calls is the order in which their errors are raised.
        free, sizes, bounds, constraints = (
            self._free_features(),
            self._penalty_sizes(),
            self._bounds(),
            self._constraints(),
        )
        return LinearModel(
            type(self).__name__,
            self._settings_of_solver(),
            self.n_jobs,
            bool(getattr(self, "fit_intercept", False)),
            InputFeatures.of(self),
            self._regularizer,
            self._l1_share(),
            self._has_squares(),
            self._is_automatic() and self._choice.scaled and self._has_scales(),
            sizes,
            free,
            bounds,
            constraints,
            self._rule,
            self._has_scales() and not self._keeps_all_features and not constraints,
            self._form(),
        )

    def _form(self) -> Callable[[], Floats] | None:
        """Return a function that returns the matrix of a quadratic penalty, or None."""
        return None

    def _regularizer(self, n_coef: int) -> Regularizer:
        """Return the penalty for a number of coefficients."""
        return elastic_net(n_coef, self._l1_share())

    def _store(self, problems: Any, solutions: list[Solution]) -> None:
        super()._store(problems, solutions)
        reading = problems.reading
        if reading is None or not reading.has_free or problems.elsewhere is not None:
            return
        if self._bounds() is None and problems.turned is None:
            self._warn_of_separation(problems)

    def _warn_of_separation(self, problems: Any) -> None:
        """Warn of unpenalized features along which the loss has no minimum."""
        only = "log_loss" if hasattr(self, "predict_proba") else None
        loss, n_scores = getattr(self, "loss", only), problems.design.n_outputs or 1
        # Offsets are in a second column of the targets.
        given = [each.reshape(len(each), -1)[:, 0] for each in problems.targets]
        targets = np.column_stack(given)
        sides = sides_of_rows(loss, variance_power(self), targets, n_scores)
        if not sides:
            return
        X, used = problems.rows.X, problems.weights > 0.0
        free, centered = self._free_features(), bool(self.fit_intercept)

        def scores_of(rows: Any, i: int) -> Any:
            return self._scores(rows).reshape(rows.shape[0], -1)[:, i]

        found = np.array(
            [
                separating_rows(
                    *(X, partial(scores_of, i=i), np.where(used, each, np.nan)),
                    centered=centered,
                )
                for i, each in enumerate(sides)
            ]
        )
        mask = found[:, :-1].any(axis=0) & (True if free is None else free)
        together = not mask.any()
        if together and (free is None or free.all()):
            mask = np.any((self.coef_ != 0.0) & found[:, -1:], axis=0)
        if mask.any():
            names = getattr(self, "feature_names_in_", None)
            places = np.flatnonzero(mask)
            known = [f"x{j}" if names is None else names[j] for j in places]
            warn_of_separation(type(self).__name__, known, together=together)

    def _is_automatic(self) -> bool:
        """Whether the strength and the scales of features follow from the data."""
        return getattr(self, "alpha", None) == AUTO

    def _choose_scales(self, *, is_sparse: bool) -> None:
        """Choose the strength by rule, and whether features have scales."""
        self._choice = Choice()

    def _set_factors(self, problems: Any) -> None:
        """Set ``penalty_factor_`` to the factors of the features in the penalty."""
        sizes, free = self._penalty_sizes(), self._free_features()
        sizes = np.ones(self.n_features_in_) if sizes is None else sizes
        if problems.sizes is not None:
            sizes[problems.columns] = problems.sizes
        factors = sizes**2 if self._has_squares() else sizes
        if free is not None:
            given = self._penalty_factors()
            others = np.ones_like(factors) if given is None else given
            factors = others if free.all() else factors * ~free
        self.penalty_factor_ = factors

    def _strength(self, problems: Any, y: Any, sample_weight: Any) -> float | Floats:
        """Return ``alpha``, or the automatic strengths, and set ``alpha_``."""
        self._set_factors(problems)
        if not isinstance(self.alpha, str):
            self.alpha_ = float(self.alpha)
            return self.alpha_
        with np.errstate(all="ignore"):
            total = self._total_weight(problems, y, sample_weight)
            strengths: Floats = problems.strengths(total)
            strengths = self._choice.multiple * strengths
        if not np.all((strengths > 0.0) & np.isfinite(strengths)):
            raise ValueError(
                f"alpha='auto' is out of range, as sample weights sum to {total:g}. "
                "Scale the weights, or y, or give a number as alpha."
            )
        warn_of_shares(type(self).__name__, total, sample_weight)
        same = bool(np.all(strengths == strengths[0]))
        self.alpha_ = float(strengths[0]) if same else strengths
        used: float | Floats = self.alpha_
        return used

    def _total_weight(self, problems: Any, y: Any, sample_weight: Any) -> float:
        """Return the sum of the weights of the rows."""
        return total_of(sample_weight, problems.n_samples)

    def _has_scales(self) -> bool:
        """Whether the penalty may apply to scaled features."""
        return True

    def _has_squares(self) -> bool:
        """Whether the penalty is a sum of squares, with factors of the squares."""
        return getattr(self, "penalty", "l2") == "l2" and not self._l1_share()

    def _penalty_sizes(self) -> Floats | None:
        """Return the units of the features from ``penalty_factor``, if any."""
        factors = self._penalty_factors()
        if factors is None:
            return None
        some = factors.any() and not factors.all()
        if some and getattr(self, "penalty", "l2") == "lp":
            raise ValueError(
                "penalty_factor=0 needs penalty='l2', 'l1' or 'elasticnet', unless all "
                "factors are zero; got 'lp'."
            )
        return np.sqrt(factors) if self._has_squares() else factors

    def _free_features(self) -> Mask | None:
        """Return the mask of features without a penalty, if there are any."""
        if self._may_have_no_penalty and self.alpha == 0.0:
            self._check_no_penalty()
            return np.ones(self.n_features_in_, dtype=bool)
        factors = self._penalty_factors()
        return None if factors is None or factors.all() else factors == 0.0

    def _check_no_penalty(self) -> None:
        """Raise if the objective is not the mean loss alone for ``alpha=0``."""
        if not self._has_scales():
            raise ValueError(
                "alpha=0 needs penalty='l2', 'l1', 'elasticnet' or 'lp', which then "
                f"all mean no penalty; got {self._combination()}."
            )

    def _penalty_factors(self) -> Floats | None:
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

    def _constraints(self) -> tuple[Any, Any] | None:
        """Return A and b of inequalities A w <= b of the coefficients, if any."""
        return None

    def _l1_share(self) -> float:
        """Return the share of the L1 norm in the penalty."""
        return 0.0

    def _rule(self, target: Any, weights: Floats) -> Rule:
        """Return the rule of the automatic strength, for the targets of a problem."""
        return Rule(0.1, 0.1)

    def _combination(self) -> str:
        """Return the loss and penalty that solvers have to support, for messages."""
        return f"loss={loss_name(self.loss)}"

    def _check_support(self, problems: Any) -> None:
        both = problems.loss, problems.regularizer
        if not self._solvers[self.solver].supports(*both):
            names = [k for k, v in self._solvers.items() if v.supports(*both)]
            free = self._free_features()
            end = "" if free is None or not free.all() else " where no feature has one"
            others = f"solvers that do are {', '.join(map(repr, names))}"
            none = "no solver does"
            if isinstance(both[1], GroupPenalty) and not both[1].bends:
                none += ", but there is one for penalty='group_elasticnet'"
            raise ValueError(
                f"solver={self.solver!r} does not support {self._combination()}{end}; "
                f"{others if names else none}."
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
        """Return validated X, or X and y; corrupted sparse input is refused first.

        With ``several`` y may have several columns and be sparse; with ``numeric`` it
        must be numbers.
        """
        has_y = not (isinstance(y, str) and y == "no_validation")
        X = canonical_csr(X)
        plain = is_plain(X, y if has_y else None, DTYPES) and y is not None
        if plain:
            # X without names may have the features of the fit.
            if reset:
                self.__dict__.pop("feature_names_in_", None)
                self.n_features_in_ = X.shape[1]
            known = vars(self)
            same = known.get("n_features_in_") == X.shape[1]
            if same and "feature_names_in_" not in known:
                check_range(X, type(self).__name__)
                return (X, y) if has_y else X
        check_no_file("X", X)
        refuse_collections(self, X)
        check_unmasked("X", X)
        X = with_sparse_floats(as_numpy(X))
        check_no_times_in(X)
        if has_y:
            check_no_file("y", y, "an array or a list")
            y = canonical_csr(as_numpy(y), "y")
            check_labels(y)
            if numeric:
                check_no_times(y)
            if isinstance(self, ClassifierMixin):
                y = exact_labels("y", y)
        with naming_text(X):
            validated = validate_data(
                self,
                X,
                y,
                accept_sparse="csr",
                dtype=DTYPES,
                # ``check_range`` checks finiteness and range in one pass.
                ensure_all_finite=False,
                reset=reset,
                **({"multi_output": True} if several else {}),
                **({"y_numeric": True} if numeric else {}),
            )
            X, *rest = validated if isinstance(validated, tuple) else (validated,)
            # Sparse columns of data frames keep their type.
            if X.dtype not in DTYPES:
                X = X.astype(np.float64)
        # Data frames of sparse columns become sparse matrices only in this step.
        X = canonical_csr(X)
        names = getattr(self, "feature_names_in_", None)
        check_range(X, type(self).__name__, names)
        return (X, *rest) if rest else X

    def _raw_scores(self, X: Any) -> Array:
        """Return X @ coef_.T + intercept_ of shape (n_samples, n_outputs)."""
        check_is_fitted(self)
        return self._scores(self._check_X(X, reset=False))

    def _scores(self, X: Any) -> Array:
        """Return the scores of checked samples."""
        if is_narrow(X):
            columns, X = own_columns(X)
            return self._scores_by(X, self._coef_at(columns), self.intercept_)
        return self._scores_by(X, self.coef_, self.intercept_)

    def _coef_at(self, columns: Indices) -> Any:
        """Return the coefficients of some columns, of shape (k, c), or (c,)."""
        coef: Any = self.coef_
        return coef[:, columns] if coef.ndim == 2 else coef[columns]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

"""The base of estimators with losses and penalties of the catalogue."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from .._checks import check_metric, check_option, check_parameters, warn_of_unused
from .._core.arrays import Floats, Mask
from .._core.names import Axis, features_axis
from .._core.regularizers import (
    L2,
    ElasticNet,
    EntropyPenalty,
    GroupPenalty,
    NormalizedEntropy,
    QuadraticForm,
    Regularizer,
    SquaredNorm,
    elastic_net,
)
from .._features.by_feature import coefficient_bounds, coefficient_constraints
from .._features.groups import FeatureGroups, checked_groups
from .estimator import loss_name
from .export import coef_table, to_sklearn
from .linear_estimator import LinearEstimator

#: Penalties Omega of the coefficients (Teo et al. 2010, section 2.3 and appendix C).
PENALTIES = (
    "l2",
    "l1",
    "elasticnet",
    "lp",
    "quadratic",
    "entropy",
    "normalized_entropy",
)

#: Penalties with norms of groups of coefficients.
GROUPS = ("group", "group_elasticnet", "sparse_group")


class BundleEstimator(LinearEstimator):
    """Base of estimators with a loss and a penalty of the catalogue."""

    _penalties: ClassVar[tuple[str, ...]] = (*PENALTIES, *GROUPS)

    to_sklearn = to_sklearn
    coef_table = coef_table

    #: Parameters that an estimator checks by its own rules.
    _checks_itself: tuple[str, ...] = ()

    alpha: Any
    loss: Any
    penalty: str
    l1_ratio: float
    p: float
    penalty_matrix: Any
    groups: Any = None

    # Defaults for estimators without these parameters.
    positive: bool = False
    coef_bounds: Any = None
    coef_constraints: Any = None

    def _check_parameters(self) -> None:
        check_option("penalty", self.penalty, self._penalties)
        users: dict[str, tuple[Any, str, list[str]]] = {
            "l1_ratio": (0.5, "penalty", ["elasticnet", *GROUPS[1:]]),
            "groups": (None, "penalty", [*GROUPS]),
            "p": (1.5, "penalty", ["lp"]),
            "penalty_matrix": (None, "penalty", ["quadratic"]),
        }
        known = {name: users[name] for name in users if hasattr(self, name)}
        unused = warn_of_unused(self, known)
        check_option("solver", self.solver, list(self._solvers))
        check_parameters(self, but=[*unused, *self._checks_itself])

    def _check_X(self, X: Any, *args: Any, reset: bool, **options: Any) -> Any:
        checked = super()._check_X(X, *args, reset=reset, **options)
        if reset and isinstance(self.groups, str):
            rows = checked[0] if isinstance(checked, tuple) else checked
            other = rows.copy() if sparse.issparse(rows) else rows
            if sparse.issparse(rows):
                other.sum_duplicates()
                others = (other.data != 0.0) & (other.data != 1.0)
                other.data = others.astype(np.float64)
                self._indicators = np.ravel(other.sum(axis=0)) == 0.0
            else:
                self._indicators = ((rows == 0.0) | (rows == 1.0)).all(axis=0)
        return checked

    def _groups(self) -> FeatureGroups | None:
        """Return the groups of the features, if the penalty has norms of groups."""
        if self.penalty not in GROUPS:
            return None
        given = self.groups, self.penalty_factor, self.n_features_in_
        return checked_groups(*given, features_axis(self), self._indicators)

    def _group_penalty(self, groups: FeatureGroups, n_coef: int) -> GroupPenalty:
        """Return the group penalty; groups have the coefficients of all scores."""
        labels, factors = groups
        share = float(self.l1_ratio)
        free = (factors == 0.0)[labels]
        # Each feature without a penalty is a group with a tiny penalty in the solver.
        names = np.where(free, len(factors) + np.arange(len(labels)), labels)
        kept, labels = np.unique(names, return_inverse=True)
        f = np.append(factors, np.ones(len(names)))[kept]
        l1, square, norm = np.zeros_like(f), np.zeros_like(f), f
        if self.penalty == "sparse_group":
            single = kept >= len(factors)
            l1, norm = np.full_like(f, share), (1.0 - share) * f
            l1[single], norm[single] = 0.0, 1.0
        elif self.penalty == "group_elasticnet":
            norm, square = share * f, (1.0 - share) * f
        labels = np.repeat(labels, n_coef // self.n_features_in_)
        return GroupPenalty(labels, l1, norm, square)

    def _free_features(self) -> Mask | None:
        if (groups := self._groups()) is None or getattr(self, "alpha", None) == 0.0:
            return super()._free_features()
        free = (groups.factors == 0.0)[groups.labels]
        return free if free.any() else None

    def _penalty_factors(self) -> Floats | None:
        if (groups := self._groups()) is None:
            return super()._penalty_factors()
        return groups.factors[groups.labels]

    def _penalty_sizes(self) -> Floats | None:
        if self.penalty not in GROUPS:
            return super()._penalty_sizes()
        # Features without a penalty get units in which their tiny penalty is
        # negligible.
        return None if self._free_features() is None else np.ones(self.n_features_in_)

    def _set_factors(self, problems: Any) -> None:
        super()._set_factors(problems)
        if (factors := self._penalty_factors()) is not None and self.penalty in GROUPS:
            self.penalty_factor_ = factors

    def _for_fold(self) -> Self:
        if (groups := self._groups()) is None:
            return super()._for_fold()
        bounds = self._bounds()
        model = copy.copy(self).set_params(callback=None, verbose=0, n_jobs=1)
        model.set_params(groups=groups.labels, penalty_factor=groups.factors)
        if bounds is not None:
            model.set_params(positive=False, coef_bounds=bounds)
        vars(model).pop("feature_names_in_", None)
        return model

    def _regularizer(self, n_coef: int) -> Regularizer:
        """Return the penalty for a number of coefficients."""
        if self.penalty == "quadratic":
            axis = features_axis(self)
            if n_coef != self.n_features_in_:
                # A model with several scores has more coefficients than there are
                # feature names.
                axis = axis._replace(what="coefficients of several scores", labels=None)
            matrix = _checked_matrix(self.penalty_matrix, n_coef, axis, definite=True)
            return QuadraticForm(matrix)
        if (groups := self._groups()) is not None:
            return self._group_penalty(groups, n_coef)
        if self.penalty == "lp":
            return SquaredNorm(n_coef, float(self.p))
        if self.penalty == "elasticnet":
            return elastic_net(n_coef, float(self.l1_ratio))
        others: dict[str, type[Regularizer]] = {
            "l1": ElasticNet,
            "entropy": EntropyPenalty,
            "normalized_entropy": NormalizedEntropy,
        }
        return others.get(self.penalty, L2)(n_coef)

    def _form(self) -> Callable[[], Floats] | None:
        if self.penalty != "quadratic":
            return None
        given = self.penalty_matrix, self.n_features_in_, features_axis(self)
        return partial(_checked_matrix, *given, definite=False)

    def _bounds(self) -> tuple[Floats, Floats] | None:
        positive, given = self.positive, self.coef_bounds
        if not positive and given is None:
            return None
        grouped = self.penalty in GROUPS
        if not grouped and (
            self.penalty not in ("l2", "elasticnet") or self._l1_share() == 1.0
        ):
            raise ValueError(
                "positive and coef_bounds need penalty='l2', 'elasticnet' with "
                f"l1_ratio < 1, or norms of groups; got penalty={self.penalty!r}."
            )
        axis = features_axis(self)
        low, high = coefficient_bounds(given, self.n_features_in_, axis)
        low = np.maximum(low, 0.0) if positive else low
        finite = np.concatenate([low[np.isfinite(low)], high[np.isfinite(high)]])
        if grouped and finite.any():
            raise ValueError(
                f"penalty={self.penalty!r} takes signs of coefficients only: bounds in "
                f"coef_bounds must be zero or None, got {finite[finite != 0.0][0]:g}."
            )
        if grouped and np.any(low == high):
            raise ValueError(
                f"penalty={self.penalty!r} takes no bounds that are both zero: leave "
                "these features out of X."
            )
        return low, high

    def _constraints(self) -> tuple[Floats, Floats] | None:
        if self.coef_constraints is None:
            return None
        if self.penalty != "l2":
            raise ValueError(
                f"coef_constraints need penalty='l2'; got penalty={self.penalty!r}."
            )
        axis = features_axis(self)
        return coefficient_constraints(self.coef_constraints, self.n_features_in_, axis)

    def _has_scales(self) -> bool:
        # The units of ``penalty_matrix`` and of the entropies are set by the user.
        return self.penalty in ("l2", "l1", "elasticnet", "lp")

    def _l1_share(self) -> float:
        mixed = self.penalty in ("elasticnet", "group_elasticnet")
        share = float(self.l1_ratio) if mixed else 0.0
        return 1.0 if self.penalty in ("l1", "group", "sparse_group") else share

    def _check_support(self, problems: Any) -> None:
        super()._check_support(problems)
        loss = problems.loss
        intercept = getattr(self, "fit_intercept", False)
        if loss.joint and intercept and not (loss.smooth or loss.has_envelope):
            raise ValueError(
                f"loss={loss_name(self.loss)} of several scores is not smooth and "
                "needs fit_intercept=False."
            )
        penalty = problems.regularizer
        if not isinstance(penalty, GroupPenalty):
            return
        if loss.joint and problems.free is not None:
            raise ValueError(
                "penalty_factor=0 is not supported for groups with losses of several "
                "scores: give a small factor, such as 1e-4."
            )

    def _combination(self) -> str:
        bounded = self.positive or self.coef_bounds is not None
        bounds = " and bounds of coefficients" if bounded else ""
        if self.coef_constraints is not None:
            bounds = " and constraints of coefficients"
        return f"{super()._combination()} with penalty={self.penalty!r}{bounds}"


def _checked_matrix(matrix: Any, n: int, axis: Axis, *, definite: bool) -> Floats:
    """Return ``penalty_matrix``, symmetric and (semi)definite, of shape (n, n)."""
    if matrix is None:
        raise ValueError("penalty='quadratic' needs a penalty_matrix; got None.")
    return check_metric("penalty_matrix", matrix, n, axis, definite=definite)

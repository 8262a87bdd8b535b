"""The base of estimators with losses and penalties of the catalogue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np

from .._checks import check_metric, check_option, check_parameters, warn_of_unused
from .._core.names import Axis, features_axis
from .._core.regularizers import (
    L2,
    ElasticNet,
    EntropyPenalty,
    NormalizedEntropy,
    QuadraticForm,
    Regularizer,
    SquaredNorm,
    elastic_net,
)
from .._core.solvers import SOLVERS, SolverSpec
from .._features.by_feature import coefficient_bounds, coefficient_constraints
from .._solving.solution import Floats, Progress
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


class BundleEstimator(LinearEstimator):
    """Base of estimators with a loss and a penalty of the catalogue."""

    _solvers: ClassVar[Mapping[str, SolverSpec]] = SOLVERS
    _penalties: ClassVar[tuple[str, ...]] = PENALTIES

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
    solver: str

    # Defaults for estimators without these parameters.
    positive: bool = False
    coef_bounds: Any = None
    coef_constraints: Any = None
    fit_intercept: bool
    tol: float
    max_iter: int
    warm_start: bool
    memory: int
    bundle_size: int | None
    n_jobs: int | None
    callback: Callable[[Progress], Any] | None
    verbose: int

    def _check_parameters(self) -> None:
        check_option("penalty", self.penalty, self._penalties)
        users: dict[str, tuple[Any, str, list[str]]] = {
            "l1_ratio": (0.5, "penalty", ["elasticnet"]),
            "p": (1.5, "penalty", ["lp"]),
            "penalty_matrix": (None, "penalty", ["quadratic"]),
        }
        known = {name: users[name] for name in users if hasattr(self, name)}
        unused = warn_of_unused(self, known)
        check_option("solver", self.solver, list(self._solvers))
        check_parameters(self, but=[*unused, *self._checks_itself])

    def _regularizer(self, n_coef: int) -> Regularizer:
        """Return the penalty for a number of coefficients."""
        if self.penalty == "quadratic":
            axis = features_axis(self)
            if n_coef != self.n_features_in_:
                # Models of several scores have more coefficients than feature names.
                axis = axis._replace(what="coefficients of several scores", labels=None)
            matrix = _checked_matrix(self.penalty_matrix, n_coef, axis, definite=True)
            return QuadraticForm(matrix)
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
        if self.penalty not in ("l2", "elasticnet") or self._l1_share() == 1.0:
            raise ValueError(
                "positive and coef_bounds need penalty='l2', or 'elasticnet' with "
                f"l1_ratio < 1; got penalty={self.penalty!r}."
            )
        axis = features_axis(self)
        low, high = coefficient_bounds(given, self.n_features_in_, axis)
        return (np.maximum(low, 0.0) if positive else low), high

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
        share = float(self.l1_ratio) if self.penalty == "elasticnet" else 0.0
        return 1.0 if self.penalty == "l1" else share

    def _check_support(self, problems: Any) -> None:
        super()._check_support(problems)
        loss = problems.loss
        intercept = getattr(self, "fit_intercept", False)
        if loss.joint and intercept and not (loss.smooth or loss.has_envelope):
            raise ValueError(
                f"loss={loss_name(self.loss)} of several scores is not smooth and "
                "needs fit_intercept=False."
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

"""Base class of estimators of user-defined structures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._checks import (
    check_number,
    check_option,
    check_parameters,
    check_sample_weight,
    total_of,
)
from .._checks.signatures import with_parameters
from .._checks.state import unchanged_on_failure
from .._core.arrays import Floats
from .._core.regularizers import ElasticNet, Regularizer, elastic_net
from .._estimators.estimator import Estimator
from .._problems import Problems
from .._solving.callbacks import with_callbacks
from .._solving.solution import Callback
from .calls import in_threads, items_of, read_only, zero_one
from .problem import StructureProblem
from .structure_oracle import StructureOracle

_PENALTIES = ("l2", "l1", "elasticnet")

# Factor of the automatic strength. For ten joint features of size one, the strength
# corresponds to about C = 1.
_K = 0.1


class _OneProblem(Estimator):
    """An estimator that solves one problem."""

    coef_: Floats
    objective_: float
    dual_gap_: float


@with_parameters(kw_only=True)
class StructuredEstimator(_OneProblem):
    """Structures with the largest ``<w, joint_feature(x, y)>``."""

    #: Names of the parameters that are functions. The last one may be None.
    _callables: ClassVar[tuple[str, ...]]

    #: The oracle that calls these functions.
    _oracle: ClassVar[type[StructureOracle]]

    alpha: float | str = "auto"
    penalty: str = "l2"
    l1_ratio: float = 0.5
    solver: str = "auto"
    tol: float = 1e-3
    max_iter: int = 1000
    bundle_size: int | None = None
    n_joint_features: int | None = None
    warm_start: bool = False
    solver_options: Mapping[str, Any] | None = None
    n_jobs: int | None = None
    callback: Callback | None = None
    verbose: int = 0

    @unchanged_on_failure
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : sequence of n objects
            Samples of any type: a list, or the rows of an array, a sparse matrix or a
            DataFrame.
        y : sequence of n objects
            True structures of any type.
        sample_weight : array-like of shape (n,), default=None
            Non-negative weights, by default ones. Samples of weight zero are ignored.

        Returns
        -------
        self : estimator
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            If parameters, data, or results of a callable are invalid, for example a
            structure with a smaller value than the true structure. Errors name the
            sample. A previously fitted estimator stays unchanged.

        Warns
        -----
        ConvergenceWarning
            If ``tol`` was not reached; the message states the gap.
        """
        return self._fit(X, y, sample_weight)

    def predict(self, X: Any) -> list[Any]:
        """Return the structures with the largest ``<w, joint_feature(x, y)>``.

        Parameters
        ----------
        X : sequence of n objects
            Samples, as in ``fit``.

        Returns
        -------
        y : list of n structures
            For each sample its best structure, a result of the estimator's argmax.
        """
        check_is_fitted(self)
        best, w = self._best(), read_only(self.coef_)

        def find(samples: list[Any]) -> list[Any]:
            return [best(x, w) for x in samples]

        return in_threads(find, items_of("X", X), self.n_jobs, np.geterr())

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return one minus the mean loss of the predictions.

        Without a ``loss``, this is the fraction of correctly predicted structures.

        Parameters
        ----------
        X : sequence of n objects
            Samples, as in ``predict``.
        y : sequence of n objects
            True structures.
        sample_weight : array-like of shape (n,), default=None
            Weights of the samples in the mean, by default equal.

        Returns
        -------
        score : float
            Larger is better, at most one.
        """
        predicted, structures = self.predict(X), items_of("y", y)
        if len(predicted) != len(structures):
            raise ValueError(
                "X and y must have as many samples as structures, got "
                f"{len(predicted)} and {len(structures)}."
            )
        weights = check_sample_weight(sample_weight, len(structures))
        loss = getattr(self, "loss", None) or zero_one
        losses = [loss(*pair) for pair in zip(structures, predicted, strict=True)]
        return 1.0 - float(weights @ np.array(losses, dtype=float))

    def _functions(self) -> dict[str, Callable[..., Any]]:
        """Return the functions that the oracle calls."""
        return {name: getattr(self, name) for name in self._callables}

    def _best(self) -> Callable[[Any, Floats], Any]:
        """Return the function of a sample and w that finds its best structure."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        """Raise for invalid parameters."""
        for name in self._callables:
            value = getattr(self, name)
            is_optional = name == self._callables[-1]
            if not callable(value) and not (is_optional and value is None):
                raise TypeError(
                    f"{name} must be callable, got {value!r} of type "
                    f"{type(value).__name__}."
                )
        check_option("penalty", self.penalty, _PENALTIES)
        known = ["auto", *self._solvers]
        check_option("solver", self.solver, known)
        check_parameters(self, but=["l1_ratio"])
        if self.penalty == "elasticnet":
            check_number("l1_ratio", self.l1_ratio, low=0.0)
            if self.l1_ratio > 1.0:
                raise ValueError(f"l1_ratio must be <= 1, got {self.l1_ratio!r}.")
        if self._l1_ratio > 0.0:
            penalty = ElasticNet(0, self._l1_ratio)
            able = [k for k, v in self._solvers.items() if v.takes_penalty(penalty)]
            fitting = ["auto", *able]
            if self.solver not in fitting:
                raise ValueError(
                    f"solver={self.solver!r} does not support penalty="
                    f"{self.penalty!r}; solvers that do are "
                    f"{', '.join(map(repr, fitting))}."
                )

    def _encode(self, X: Any, y: Any, sample_weight: Any, **others: Any) -> Problems:
        samples, structures = items_of("X", X), items_of("y", y)
        if len(samples) != len(structures):
            raise ValueError(
                "X and y must have as many samples as structures, got "
                f"{len(samples)} and {len(structures)}."
            )
        if not samples:
            raise ValueError("X must have at least one sample, got none.")
        weights = check_sample_weight(sample_weight, len(samples))
        used = np.flatnonzero(weights)
        oracle = self._oracle(
            self._functions(),
            samples,
            structures,
            used,
            n_features=self.n_joint_features,
            n_jobs=self.n_jobs,
        )
        penalty = self._regularizer(oracle.n_features)
        return StructureProblem(self, oracle, weights[used], penalty)

    def _strength(self, problems: Any, y: Any, sample_weight: Any) -> float:
        """Return ``alpha``, or a strength from the sizes of joint features."""
        if not isinstance(self.alpha, str):
            self.alpha_ = float(self.alpha)
            return self.alpha_
        size = problems.mean_square / total_of(sample_weight, problems.n_samples)
        share = self._l1_ratio
        self.alpha_ = _K * (share * np.sqrt(size) + (1.0 - share) * size) or _K
        return self.alpha_

    @property
    def _l1_ratio(self) -> float:
        """Share of the L1 norm in the penalty."""
        return {"l2": 0.0, "l1": 1.0}.get(self.penalty, float(self.l1_ratio))

    def _regularizer(self, n: int) -> Regularizer:
        return elastic_net(n, self._l1_ratio)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Samples are objects of any type.
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        tags.no_validation = True
        return tags

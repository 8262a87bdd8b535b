"""Logistic regression with scikit-learn's parameters."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any, ClassVar

import numpy as np

from .._checks import check_sample_weight, check_weights
from .._checks.signatures import with_parameters
from .._core.arrays import Array, Floats
from .._problems import LinearProblems
from .._problems.reading import Reading
from ..logistic import BaseL1Logistic
from ._reading import SumOfLosses, without_penalty
from ._shared import DropIn, warn


class BaseLogistic(DropIn, BaseL1Logistic):  # type: ignore[misc]
    """The base of logistic regression with and without cross-validation."""

    _without_effect: ClassVar[dict[str, str]] = {
        "solver": "one is chosen by the data, and the intercept is not penalized.",
        "dual": "primal and dual have the same solution.",
        "intercept_scaling": "the intercept is not penalized.",
    }
    _weaker = "increase C or decrease tol"

    # ``penalty`` is a parameter in this class, and a property in its base class.
    penalty: Any = None
    class_weight: Any
    random_state: Any
    dual: bool
    intercept_scaling: float

    def _l1_ratio_of(self, l1_ratio: Any) -> float:
        """Return the share of the L1 norm; ``penalty`` takes precedence if given."""
        if self.penalty in ("l1", "l2"):
            return float(self.penalty == "l1")
        if l1_ratio is None and self.penalty == "elasticnet":
            raise ValueError("penalty='elasticnet' needs a number l1_ratio, got None.")
        return float(l1_ratio or 0.0)

    def _problems_of(
        self,
        X: Any,
        y: Array,
        weights: Floats,
        classes: Array,
        *,
        free: bool,
    ) -> LinearProblems:
        """Return the problem of rows whose weights need not be normalized."""
        with np.errstate(over="ignore"):
            total = float(weights.sum())
        weights = check_sample_weight(weights, len(y))
        reading: Reading = SumOfLosses([total])
        if free:
            # The second derivative of ln(1 + exp(-z)) at zero is 1/4.
            given: Any = {"bend": 0.25, "totals": [total]}
            reading = without_penalty(X, weights, self.fit_intercept, **given)
        return self._problems(X, y, weights, classes, reading)


@with_parameters()
class LogisticRegression(BaseLogistic):
    """Logistic regression with scikit-learn's parameters.

    Minimizes ``Omega(w) + C * sum_i s_i loss_i`` with the logistic loss, multinomial
    for more than two classes, and ``Omega(w) = l1_ratio * ||w||_1 + (1 - l1_ratio) / 2
    * ||w||²``, and reports a proven bound on the distance from the optimum. Change
    the import in a script written for :class:`sklearn.linear_model.LogisticRegression`;
    the notes list the differences.

    Parameters
    ----------
    penalty : {"l1", "l2", "elasticnet"} or None, default="deprecated"
        Older form of ``l1_ratio`` and ``C``: "l1" and "l2" mean ``l1_ratio`` 1 and 0,
        and None means ``C=np.inf``.
    C : float, default=1.0
        Factor on the losses, positive. With ``np.inf`` there is no penalty, and the
        objective is ``sum_i s_i loss_i``.
    l1_ratio : float, default=0.0
        Share of the L1 norm in the penalty, in [0, 1].
    dual : bool, default=False
        Without effect, since primal and dual have the same solution.
    tol : float, default=1e-4
        Stop when the proven gap is at most ``tol`` times the objective.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is not penalized.
    intercept_scaling : float, default=1
        Without effect, since the intercept is not penalized.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the samples of each class.
    random_state : int, RandomState instance or None, default=None
        Without effect: nothing is random.
    solver : str, default="lbfgs"
        One of scikit-learn's names, without effect: the method is chosen by the data,
        for any ``l1_ratio``.
    max_iter : int, default=100
        Limit on the number of iterations.
    verbose : int, default=0
        Print progress at some iterations if 1, at every iteration if larger.
    warm_start : bool, default=False
        Whether to start from the previous solution, if there is one for the same
        classes and features.
    n_jobs : int or None, default=None
        Number of threads for products with blocks of rows. ``None`` means 1 unless in
        a :func:`joblib.parallel_config` context; ``-1`` means all processors.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features, with the dtype of X; a CSR matrix after ``sparsify``.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts; zero if ``fit_intercept=False``.
    classes_ : ndarray of shape (n_classes,)
        The classes with positive total weight.
    objective_ : float
        Objective at the coefficients, as above.
    dual_gap_ : float
        ``objective_ - dual_gap_`` is a proven lower bound of the optimum, up to
        rounding in float64; infinite with ``C=np.inf``, where no bound is known.
    n_iter_ : ndarray of shape (1,)
        Number of iterations.
    history_ : list of one History
        Objective, lower bound, passes over the data and seconds of each iteration. See
        :class:`ConvergenceDisplay`.
    plan_ : str
        How the problem was solved.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    L1LogisticOWLQN : The same model by ``alpha = 1 / (C * sum_i s_i)``, with a choice
        of solvers.

    Notes
    -----
    Differences from scikit-learn: ``tol`` is a proven relative gap; the intercept is
    not penalized, where scikit-learn penalizes it with ``solver="liblinear"``; any
    penalty can be combined with any ``solver``; and ``n_jobs`` counts threads.

    Without a penalty, separable classes have no optimum: the coefficients are large,
    and minimize the objective with a tiny penalty.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_subqn.linear_model import LogisticRegression
    >>> X, y = make_classification(random_state=0)
    >>> clf = LogisticRegression(C=0.1).fit(X, y)
    >>> bool(clf.dual_gap_ <= 1e-4 * clf.objective_)
    True
    >>> clf.score(X, y)
    0.92
    """

    _original = "sklearn.linear_model", "LogisticRegression"

    penalty: Any = "deprecated"
    _: KW_ONLY
    C: float = 1.0
    l1_ratio: float | None = 0.0  # type: ignore[assignment]
    dual: bool = False
    tol: float = 1e-4
    fit_intercept: bool = True
    intercept_scaling: float = 1
    class_weight: Any = None
    random_state: Any = None
    solver: str = "lbfgs"
    max_iter: int = 100
    verbose: int = 0
    warm_start: bool = False
    n_jobs: int | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.penalty in ("l1", "l2") and (
            self.l1_ratio not in (0.0, None, self._l1_ratio_of(None))
        ):
            warn(
                f"l1_ratio={self.l1_ratio!r} has no effect with "
                f"penalty={self.penalty!r}."
            )
        if self.penalty is None and self._is_set("C") and np.inf != self.C:
            warn(f"C={self.C!r} has no effect with penalty=None.")

    def _l1_share(self) -> float:
        return 0.0 if self._is_free else self._l1_ratio_of(self.l1_ratio)

    @property
    def _is_free(self) -> bool:
        """Whether there is no penalty."""
        return self.penalty is None or bool(np.isinf(self.C))

    def _encode(self, X: Any, y: Any, sample_weight: Any, **others: Any) -> Any:
        X, y = self._check_X(X, y, reset=True)
        _, classes, weights, _ = check_weights(sample_weight, y, self.class_weight)
        return self._problems_of(X, y, weights, classes, free=self._is_free)

    def _store(self, problems: Any, solutions: Any) -> None:
        super()._store(problems, solutions)
        self.n_iter_: Any = np.array([self.n_iter_], dtype=np.int32)

"""Structured support vector machines with a proven optimality gap."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._checks import (
    check_number,
    check_option,
    check_parameters,
    check_sample_weight,
    total_of,
)
from ._checks.state import unchanged_on_failure
from ._core.regularizers import ElasticNet, Regularizer, elastic_net
from ._core.solvers import STRUCTURED_SOLVERS
from ._estimators.estimator import Estimator
from ._problems import Problems
from ._solving.callbacks import with_callbacks
from ._solving.solution import Floats, Progress
from ._structures.calls import in_threads, items_of, read_only, zero_one
from ._structures.problem import StructureProblem
from ._structures.structure_oracle import StructureOracle

_PENALTIES = ("l2", "l1", "elasticnet")

# Automatic strength in units of the sizes of joint features; it corresponds to about C
# = 1 for ten features of size one.
_K = 0.1


class StructuredSVM(Estimator):
    """Support vector machine for user-defined structures, with a proven gap.

    Structures y, such as sequences, matchings, segmentations or trees, are predicted
    as the maximizers of ``<w, joint_feature(x, y)>``. Minimizes

    ``alpha * Omega(w) + sum_i s_i loss_i / sum_i s_i`` with ``loss_i = max_y
    loss(y_i, y) + <w, joint_feature(x_i, y) - joint_feature(x_i, y_i)>``

    sample weights s, and the maximum over all structures that x_i may have, and reports
    a proven bound on the distance from the optimum.

    Parameters
    ----------
    joint_feature : callable
        ``joint_feature(x, y)`` returns the features of a sample with a structure, d
        numbers: an array of shape (d,), a sparse row of shape (1, d) or (d,), or a
        dict from indices to values, which needs ``n_joint_features``.
    loss_augmented_argmax : callable
        ``loss_augmented_argmax(x, y, w)`` returns the structure ``y_hat`` with the
        largest ``loss(y, y_hat) + <w, joint_feature(x, y_hat)>``, or of the objective
        that ``rescaling`` defines. With ``y=None``, for predictions, the loss is
        omitted. w is a read-only array of shape (d,). The maximum has to be exact,
        since the bounds depend on it. The function may exclude structures that violate
        hard constraints; true structures have to satisfy the constraints.
    loss : callable or None, default=None
        ``loss(y, y_hat)`` returns the non-negative loss of predicting ``y_hat`` for the
        true structure y, zero if both are equal. ``None`` means one unless they are
        equal.
    rescaling : {"margin", "slack"} or callable, default="margin"
        ``rescaling(y, y_hat)`` returns the non-negative factor of a difference of
        scores: ``loss_i = max_y loss(y_i, y) + rescaling(y_i, y) * <w,
        joint_feature(x_i, y) - joint_feature(x_i, y_i)>``. ``loss_augmented_argmax``
        has to find that maximum. With "margin" the factor is 1, with "slack" the loss.
    alpha : float or "auto", default="auto"
        Strength of the penalty relative to the *mean* loss, positive. It corresponds to
        ``C = 1 / (n * alpha)`` with n samples in packages that sum the losses. "auto"
        is ``0.1 m / n`` for squares and ``0.1 sqrt(m / n)`` for the L1 norm, where n is
        the sum of the weights and m the mean of ``||joint_feature(x_i, y_i)||²``.
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        Omega: ``||w||² / 2``, ``||w||_1``, or ``l1_ratio * ||w||_1 + (1 - l1_ratio) / 2
        * ||w||²``.
    l1_ratio : float, default=0.5
        Share of the L1 norm in the elastic net, between 0 and 1.
    solver : {"auto", "n-slack", "bmrm", "ls-bmrm", "bmrm-aggregated", \
            "proximal-bundle", "trust-region-bundle"}, default="auto"
        "n-slack", the default, keeps the structures found for each sample, and
        minimizes the objective over these structures between calls of
        ``loss_augmented_argmax``. It typically needs 20 to 60 calls for each sample.
        The other solvers keep one cut for each iteration, the mean over the samples,
        which takes less memory and at least ten times as many calls; the last three
        need the L2 penalty.
    tol : float, default=1e-3
        Stop when the proven gap is at most ``tol`` times the objective.
    max_iter : int, default=1000
        Limit on the number of iterations, at least 1. Each iteration calls
        ``loss_augmented_argmax`` for every sample, once with "n-slack" and "bmrm", and
        several times with the other solvers.
    bundle_size : int or None, default=None
        Number of cuts that "n-slack", "bmrm" and "ls-bmrm" keep, at least 2; ``None``
        for no limit.
    n_joint_features : int or None, default=None
        Number d of joint features; ``None`` for the length of arrays or sparse rows.
    warm_start : bool, default=False
        Whether to start from the previous solution, if it has the same number of
        features.
    solver_options : dict or None, default=None
        Further options of the solver by name, such as the parameters in its
        publication. The table in `docs/methods.md` lists the options of each solver,
        with ranges and defaults; unknown options raise an error.
    n_jobs : int or None, default=None
        Number of threads that call ``loss_augmented_argmax``; the model does not depend
        on it. Threads help if this function releases the interpreter's lock. ``None``
        means 1 unless in a :func:`joblib.parallel_config` context, which may also ask
        for processes; ``-1`` means all processors.
    callback : callable or None, default=None
        Called after every iteration with a named tuple of ``n_iter``, ``objective``,
        ``dual_gap``, ``passes`` and ``seconds``; fitting stops if it returns True.
    verbose : int, default=0
        Print progress at iterations 0, 1, 2, 4, 8, ... if 1, at every iteration if
        larger.

    Attributes
    ----------
    coef_ : ndarray of shape (n_joint_features,)
        The weights w.
    alpha_ : float
        Strength of the penalty in the fit.
    objective_ : float
        Objective at the weights.
    dual_gap_ : float
        ``objective_ - dual_gap_`` is a proven lower bound of the optimum, up to
        rounding in float64.
    n_iter_ : int
        Number of iterations.
    history_ : list of one History
        Objective, lower bound, passes and seconds after each iteration; a pass finds a
        structure for every sample. See :class:`ConvergenceDisplay`.
    plan_ : str
        The plan that solver="auto" chose, or the solver.

    See Also
    --------
    LinearChainCRF : Sequences of labels, a structured SVM with ``loss="hinge"``.
    MulticlassHingeClassifier, MultilabelHingeClassifier : Where structures are classes
        or sets of labels, much faster.

    Notes
    -----
    There is no intercept: a constant joint feature has no effect. A loss that is a sum
    over the parts of a structure, such as the Hamming loss, is maximized like the
    scores: the loss of each part is added to its score.

    References
    ----------
    I. Tsochantaridis, T. Joachims, T. Hofmann, Y. Altun (2005), Large Margin Methods
    for Structured and Interdependent Output Variables, JMLR 6. T. Joachims, T. Finley,
    C.-N. Yu (2009), Cutting-Plane Training of Structural SVMs, Machine Learning 77.
    C.-H. Teo, S.V.N. Vishwanathan, A. Smola, Q. Le (2010), Bundle Methods for
    Regularized Risk Minimization, JMLR 11: Alg. 3, eq. 18 to 24.

    Examples
    --------
    Three classes as structures: the joint features are x in the block of its class.

    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_subqn import StructuredSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> def joint_feature(x, y):
    ...     return np.outer(np.arange(3) == y, x).ravel()
    >>> def loss_augmented_argmax(x, y, w):
    ...     scores = w.reshape(3, 4) @ x
    ...     if y is not None:
    ...         scores += np.arange(3) != y
    ...     return int(scores.argmax())
    >>> svm = StructuredSVM(joint_feature, loss_augmented_argmax, alpha=1e-2).fit(X, y)
    >>> bool(svm.dual_gap_ <= 1e-3 * svm.objective_)
    True
    >>> round(svm.score(X, y), 2)
    0.95
    """

    _solvers = STRUCTURED_SOLVERS

    coef_: Floats
    objective_: float
    dual_gap_: float

    def __init__(
        self,
        joint_feature: Callable[[Any, Any], Any],
        loss_augmented_argmax: Callable[[Any, Any, Floats], Any],
        loss: Callable[[Any, Any], float] | None = None,
        *,
        rescaling: str | Callable[..., Any] = "margin",
        alpha: float | str = "auto",
        penalty: str = "l2",
        l1_ratio: float = 0.5,
        solver: str = "auto",
        tol: float = 1e-3,
        max_iter: int = 1000,
        bundle_size: int | None = None,
        n_joint_features: int | None = None,
        warm_start: bool = False,
        solver_options: Mapping[str, Any] | None = None,
        n_jobs: int | None = None,
        callback: Callable[[Progress], Any] | None = None,
        verbose: int = 0,
    ) -> None:
        self.joint_feature = joint_feature
        self.loss_augmented_argmax = loss_augmented_argmax
        self.loss = loss
        self.rescaling = rescaling
        self.alpha = alpha
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.bundle_size = bundle_size
        self.n_joint_features = n_joint_features
        self.warm_start = warm_start
        self.solver_options = solver_options
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose

    @unchanged_on_failure
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> StructuredSVM:
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
        self : StructuredSVM
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
            For each sample its best structure, a result of ``loss_augmented_argmax``.
        """
        check_is_fitted(self)
        w = read_only(self.coef_)

        def find(samples: list[Any]) -> list[Any]:
            return [self.loss_augmented_argmax(x, None, w) for x in samples]

        return in_threads(find, items_of("X", X), self.n_jobs, np.geterr())

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return one minus the mean loss of the predictions.

        This is the share of correct structures if ``loss`` is None.

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
        loss = self.loss or zero_one
        losses = [loss(*pair) for pair in zip(structures, predicted, strict=True)]
        return 1.0 - float(weights @ np.array(losses, dtype=float))

    def _check_parameters(self) -> None:
        """Raise for invalid parameters."""
        for name in ("joint_feature", "loss_augmented_argmax", "loss"):
            value = getattr(self, name)
            if not callable(value) and (name != "loss" or value is not None):
                raise TypeError(
                    f"{name} must be callable, got {value!r} of type "
                    f"{type(value).__name__}."
                )
        if not callable(self.rescaling):
            check_option("rescaling", self.rescaling, ["margin", "slack"])
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
        functions: dict[str, Callable[..., Any]] = {
            "joint_feature": self.joint_feature,
            "loss_augmented_argmax": self.loss_augmented_argmax,
            "loss": self.loss or zero_one,
        }
        if callable(self.rescaling):
            functions["rescaling"] = self.rescaling
        oracle = StructureOracle(
            functions,
            samples,
            structures,
            used,
            slack=self.rescaling == "slack",
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

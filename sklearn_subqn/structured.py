"""Support vector machines and random fields of user-defined structures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY
from typing import Any

from ._checks import check_option
from ._checks.signatures import with_parameters
from ._core.arrays import Floats
from ._core.solvers import SMOOTH_STRUCTURED_SOLVERS, STRUCTURED_SOLVERS, SolverSpec
from ._structures.calls import zero_one
from ._structures.estimator import StructuredEstimator
from ._structures.structure_oracle import LogPartitionOracle, StructureOracle


@with_parameters()
class StructuredSVM(StructuredEstimator):
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
    rescaling : {"margin", "slack"} or callable, default="margin"
        ``rescaling(y, y_hat)`` returns the non-negative factor of a difference of
        scores: ``loss_i = max_y loss(y_i, y) + rescaling(y_i, y) * <w,
        joint_feature(x_i, y) - joint_feature(x_i, y_i)>``. ``loss_augmented_argmax``
        has to find that maximum. With "margin" the factor is 1, with "slack" the loss.

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
    _callables = "joint_feature", "loss_augmented_argmax", "loss"
    _oracle = StructureOracle

    joint_feature: Callable[[Any, Any], Any]
    loss_augmented_argmax: Callable[[Any, Any, Floats], Any]
    loss: Callable[[Any, Any], float] | None = None
    _: KW_ONLY
    rescaling: str | Callable[..., Any] = "margin"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not callable(self.rescaling):
            check_option("rescaling", self.rescaling, ["margin", "slack"])

    def _functions(self) -> dict[str, Callable[..., Any]]:
        functions = super()._functions() | {"loss": self.loss or zero_one}
        if self.rescaling != "margin":
            given = self.rescaling
            functions["rescaling"] = given if callable(given) else functions["loss"]
        return functions

    def _best(self) -> Callable[[Any, Floats], Any]:
        return lambda x, w: self.loss_augmented_argmax(x, None, w)


@with_parameters()
class ConditionalRandomField(StructuredEstimator):
    """Conditional random field of user-defined structures, with a proven gap.

    The probability of a structure y of a sample x, such as a matching, a segmentation
    or a tree, is proportional to ``exp(<w, joint_feature(x, y)>)``. Minimizes

    ``alpha * Omega(w) + sum_i s_i loss_i / sum_i s_i`` with ``loss_i =
    log_partition(x_i, w) - <w, joint_feature(x_i, y_i)>``

    and sample weights s, the negative log-likelihood of the true structures, and
    reports a proven bound on the distance from the optimum.

    Parameters
    ----------
    joint_feature : callable
        ``joint_feature(x, y)`` returns the features of a sample with a structure, d
        numbers: an array of shape (d,), a sparse row of shape (1, d) or (d,), or a
        dict from indices to values, which needs ``n_joint_features``.
    log_partition : callable
        ``log_partition(x, w)`` returns the logarithm of the sum of ``exp(<w,
        joint_feature(x, y)>)`` over all structures y that x may have, and its gradient
        by w: the mean of ``joint_feature(x, y)`` by the probabilities of y, in a form
        that ``joint_feature`` may return. w is a read-only array of shape (d,). Both
        have to be exact up to rounding in float64, since the bounds depend on them.
    argmax : callable or None, default=None
        ``argmax(x, w)`` returns the structure with the largest ``<w, joint_feature(x,
        y)>``. Only ``predict`` and ``score`` use it.
    alpha : float or "auto", default="auto"
        Strength of the penalty relative to the *mean* loss, positive, as in
        :class:`StructuredSVM`.
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        Omega: ``||w||² / 2``, ``||w||_1``, or ``l1_ratio * ||w||_1 + (1 - l1_ratio) / 2
        * ||w||²``.
    l1_ratio : float, default=0.5
        Share of the L1 norm in the elastic net, between 0 and 1.
    solver : {"auto", "lbfgs", "owlqn", "n-slack", "bmrm", "ls-bmrm", \
            "bmrm-aggregated", "proximal-bundle", "trust-region-bundle"}, default="auto"
        "auto" is "lbfgs" with the L2 penalty and "owlqn" with an L1 norm, which "lbfgs"
        does not take. The other solvers are as in :class:`StructuredSVM`.
    tol : float, default=1e-3
        Stop when the proven gap is at most ``tol`` times the objective.
    max_iter : int, default=1000
        Limit on the number of iterations, at least 1. Most iterations of "lbfgs" and
        "owlqn" call ``log_partition`` once for every sample.
    bundle_size : int or None, default=None
        Number of cuts that "n-slack", "bmrm" and "ls-bmrm" keep, at least 2; ``None``
        for no limit.
    n_joint_features : int or None, default=None
        Number d of joint features; ``None`` for the length of arrays or sparse rows.
    warm_start : bool, default=False
        Whether to start from the previous solution, if it has the same number of
        features.
    solver_options : dict or None, default=None
        Further options of the solver by name; the table in `docs/methods.md` lists
        them, with ranges and defaults.
    n_jobs : int or None, default=None
        Number of threads that call ``log_partition``, as in :class:`StructuredSVM`.
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
        Objective, lower bound, passes and seconds after each iteration; a pass calls
        ``log_partition`` for every sample. See :class:`ConvergenceDisplay`.
    plan_ : str
        The solver.

    See Also
    --------
    LinearChainCRF : Sequences of labels, much faster.
    StructuredSVM : The hinge loss of structures, which needs a maximizer only.

    Notes
    -----
    Values and gradients are tested: where a value is below the score of the true
    structure, or below what value and gradient at another w prove, the fit ends with an
    error. Bounds follow from the conjugate of the mean loss R at its gradients u,
    ``R*(u) = <u, w> - R(w)``, and from ``R*(0) <= 0``. Losses are differences of
    logarithms and scores, and have rounding errors relative to these.

    References
    ----------
    J. Lafferty, A. McCallum, F. Pereira (2001), Conditional Random Fields, ICML.
    C.-H. Teo, S.V.N. Vishwanathan, A. Smola, Q. Le (2010), Bundle Methods for
    Regularized Risk Minimization, JMLR 11: eq. 22 and 23.

    Examples
    --------
    The structures are two of three items, which are few enough to list:

    >>> import numpy as np
    >>> from scipy.special import logsumexp
    >>> from sklearn_subqn import ConditionalRandomField
    >>> pairs = np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]])
    >>> def joint_feature(x, y):
    ...     return pairs[y] @ x
    >>> def log_partition(x, w):
    ...     scores = pairs @ x @ w
    ...     value = logsumexp(scores)
    ...     return value, np.exp(scores - value) @ pairs @ x
    >>> def argmax(x, w):
    ...     return int((pairs @ x @ w).argmax())
    >>> X = np.random.default_rng(0).normal(size=(50, 3, 2))
    >>> y = [argmax(x, [2.0, -1.0]) for x in X]
    >>> crf = ConditionalRandomField(joint_feature, log_partition, argmax).fit(X, y)
    >>> bool(crf.dual_gap_ <= 1e-3 * crf.objective_)
    True
    >>> crf.score(X, y) > 0.9
    True
    """

    _callables = "joint_feature", "log_partition", "argmax"
    _oracle = LogPartitionOracle

    joint_feature: Callable[[Any, Any], Any]
    log_partition: Callable[[Any, Floats], tuple[float, Any]]
    argmax: Callable[[Any, Floats], Any] | None = None

    @property
    def _solvers(self) -> Mapping[str, SolverSpec]:  # type: ignore[override]
        # The first entry is the method of "auto".
        first = "lbfgs" if self.penalty == "l2" else "owlqn"
        return {first: SMOOTH_STRUCTURED_SOLVERS[first], **SMOOTH_STRUCTURED_SOLVERS}

    def _best(self) -> Callable[[Any, Floats], Any]:
        if self.argmax is None:
            raise TypeError("predict and score need argmax; got None.")
        return self.argmax

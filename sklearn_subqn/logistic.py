"""Logistic regression with a proven optimality gap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from ._checks.signatures import with_parameters
from ._checks.state import unchanged_on_failure
from ._core.arrays import Array, Floats
from ._core.losses import BINARY_LOSSES, MULTINOMIAL_LOSS
from ._estimators.classifier import (
    LinearClassifier,
    predict_log_proba,
    predict_proba,
)
from ._estimators.sparse_coefficients import densify, sparsify
from ._problems import LinearProblems, class_problems, joint_classes
from ._problems.reading import Reading
from ._problems.slopes import largest_slope
from ._solving.solution import Callback


class BaseL1Logistic(LinearClassifier):
    """The base of classifiers with the logistic loss."""

    predict_proba = predict_proba
    predict_log_proba = predict_log_proba
    sparsify = sparsify
    densify = densify

    coef_: Any
    l1_ratio: float

    @property
    def penalty(self) -> str:
        """Name of the penalty; read-only.

        :class:`~sklearn.feature_selection.SelectFromModel` reads it, and selects all
        nonzero coefficients for "l1".
        """
        return self._penalty_of(float(self.l1_ratio))

    def _penalty_of(self, l1_ratio: float) -> str:
        return {0.0: "l2", 1.0: "l1"}.get(l1_ratio, "elasticnet")

    def _instead(self) -> str:
        return "the features do not separate the classes"

    def _l1_share(self) -> float:
        return float(self.l1_ratio)

    def _combination(self) -> str:
        return f"l1_ratio={self.l1_ratio!r}"

    def _problems(
        self,
        X: Any,
        y: Array,
        weights: Floats,
        classes: Array,
        reading: Reading | None = None,
    ) -> LinearProblems:
        model, given = self._linear_model(), dict[str, Any](reading=reading)
        if len(classes) == 2:
            loss = BINARY_LOSSES["log_loss"]
            return class_problems(model, X, y, loss, weights, classes, **given)
        return joint_classes(model, X, y, MULTINOMIAL_LOSS, weights, classes, **given)

    def _alpha_max(self, problems: LinearProblems) -> float:
        """Return the smallest ``alpha`` for which all coefficients are zero.

        Coefficients of unpenalized features are excluded. Without an L1 norm it is
        infinity, or zero if the coefficients are always zero.
        """
        largest = largest_slope(problems, 0)
        if not self.l1_ratio:
            return np.inf if largest else 0.0
        return largest / self.l1_ratio


@with_parameters()
class L1LogisticOWLQN(BaseL1Logistic):
    """Logistic regression with an L1, elastic-net or L2 penalty and a proven gap.

    Minimizes ``alpha * (l1_ratio * ||w||_1 + (1 - l1_ratio) / 2 * ||w||²)`` plus the
    mean logistic loss, multinomial for more than two classes, and reports a proven
    bound on the distance from the optimum. With an L1 norm, the default, many
    coefficients are exactly zero.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the penalty relative to the *mean* loss, or 0 for no penalty. ``C``
        of :class:`~sklearn.linear_model.LogisticRegression` corresponds to ``1 /
        (n_samples * alpha)``. All coefficients are zero if ``alpha`` is at least
        ``alpha_max(X, y)``. With "auto", a rule chooses it from the size and sparsity
        of the data, and each feature is penalized in its own scale, so that units do
        not matter. With 200 samples or more, held-out samples then select a multiple of
        this strength, and whether sparse features keep their units: see ``alpha_``,
        ``penalty_factor_``, ``auto_scores_`` and the notes.
    l1_ratio : float, default=1.0
        Share of the L1 norm in the penalty, in [0, 1]. With 0 the penalty is L2, the
        default of :class:`~sklearn.linear_model.LogisticRegression`.
    penalty_factor : array-like of shape (n_features,), dict or None, default=None
        Factors f >= 0 of the features in the penalty, by default ones: ``f_j w_j``
        replaces ``w_j``, or with ``l1_ratio=0`` ``f_j w_j²`` replaces ``w_j²``. With
        ``alpha="auto"`` the factors multiply the scales of the features. A dict or
        Series is matched by feature names; missing features have the factor 1.
    solver : str, default="auto"
        Optimization method.

        - "auto": "cd", started from the solution on samples of the rows where there
          are many more rows than features; with L2 "newton-cg", after dual coordinate
          ascent for two classes of text. Problems small enough for it to take
          milliseconds are solved to nearly machine precision, whatever ``tol`` is.
        - "cd": Newton's method for the loss; the quadratic model with the penalty is
          minimized by coordinate descent over a working set of features.
        - "owlqn": orthant-wise limited-memory quasi-Newton method.
        - "owlqn*": the same with the direction search of subLBFGS.
        - "fista", "ista": proximal gradient descent, accelerated or not.
        - "ls-bmrm", "bmrm", "bmrm-aggregated", "proximal-bundle",
          "trust-region-bundle": bundle methods.
        - "newton-cg", "trust-region", "lbfgs", "bfgs", "cg", "sublbfgs", "subbfgs":
          Newton's method, by conjugate gradients where the matrix is large, or in a
          trust region, BFGS of limited memory or with a full matrix, conjugate
          gradients, and subgradient BFGS; for ``l1_ratio=0`` only, where "owlqn" and
          "owlqn*" are not available.
        - "subgradient": the subgradient method; the result is its best point.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is not penalized.
    tol : float, default=1e-3
        Stop when the proven gap is at most ``tol`` times the objective.
    max_iter : int, default=1000
        Limit on the number of iterations, at least 1.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the samples of each class.
    warm_start : bool, default=False
        Whether to start from the previous solution, if there is one for the same
        classes and features.
    memory : int, default=15
        Number of displacement pairs from which "owlqn", "owlqn*" and "lbfgs" estimate
        curvature, at least 1.
    solver_options : dict or None, default=None
        Further options of the solver by name, such as the parameters in its
        publication. The table in `docs/methods.md` lists the options of each solver,
        with ranges and defaults; unknown options raise an error.
    n_jobs : int or None, default=None
        Number of threads for products with blocks of rows. ``None`` means 1 unless in
        a :func:`joblib.parallel_config` context; ``-1`` means all processors.
    callback : callable or None, default=None
        Called after every iteration with a named tuple of ``n_iter``, ``objective``,
        ``dual_gap``, ``passes`` and ``seconds``; fitting stops if it returns True.
    verbose : int, default=0
        If 1, print progress at iterations 0, 1, 2, 4, 8, ..., and every five seconds;
        if larger, at every iteration, after lines that explain the choice of ``plan_``.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features, with the dtype of X; a CSR matrix after ``sparsify``.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts; zero if ``fit_intercept=False``.
    classes_ : ndarray of shape (n_classes,)
        The classes with positive total weight.
    alpha_ : float
        Strength of the penalty in the fit.
    penalty_factor_ : ndarray of shape (n_features,)
        Factors f of ``f_j w_j`` in the penalty: ``penalty_factor``, times the scales of
        the features with ``alpha="auto"``. With ``l1_ratio=0`` they are factors of
        ``w_j²``.
    auto_scores_ : list of tuple
        With ``alpha="auto"``, the choices that were tried on held-out samples: the
        multiple of the strength by rule, whether features had their own scales, and the
        mean loss (log loss if the model has probabilities, else the error rate).
    objective_ : float
        Objective at the coefficients.
    dual_gap_ : float
        ``objective_ - dual_gap_`` is a proven lower bound of the optimum, up to
        rounding in float64.
    n_iter_ : int
        Number of iterations.
    history_ : list of History
        One entry: the objective, lower bound, passes over the data and seconds after
        each iteration. See :class:`ConvergenceDisplay`.
    plan_ : str
        The plan that solver="auto" chose, or the solver.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    L1LogisticOWLQNCV : The same model with ``alpha`` chosen by cross-validation.
    sklearn.linear_model.LogisticRegression : The same model without a proven gap.

    Notes
    -----
    A sample of weight 2 is equivalent to two samples, a sample of weight 0 to none.

    The solvers in the name of the class are available for comparison; "auto" reaches a
    proven gap much faster.

    Fitting takes memory beyond X for about 20 vectors of n_samples numbers, for each
    class where there are more than two, and 2 * (memory + 5) vectors as large as the
    coefficients. "cd" also takes a sparse X by columns, as large as X, and for several
    classes a sample of the rows; the user guide has an example.

    With ``alpha="auto"`` the squared scale of a feature is its variance divided by the
    share of nonzero entries. ``alpha_`` is ``k d / n`` for an L2 penalty and ``k
    sqrt(ln(n_features) / n)`` for an L1 penalty, where n is the sum of the sample
    weights, d the mean number of nonzero entries of a sample, and k depends on the
    loss; the user guide lists k. Large dense data are not copied for the scales, but
    the entries of sparse data are.

    References
    ----------
    G. Andrew, J. Gao (2007), Scalable Training of L1-Regularized Log-Linear Models,
    ICML: eq. 4. J. Yu (2009), New Quasi-Newton Optimization Methods for Machine
    Learning, PhD thesis, Australian National University: Alg. 3.2, section 4.1.4.
    G.-X. Yuan, C.-H. Ho, C.-J. Lin (2012), An Improved GLMNET for L1-Regularized
    Logistic Regression, JMLR 13.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_subqn import L1LogisticOWLQN
    >>> X, y = make_classification(random_state=0)
    >>> clf = L1LogisticOWLQN(alpha=5e-2).fit(X, y)
    >>> bool(clf.dual_gap_ <= 1e-3 * clf.objective_)
    True
    >>> int((clf.coef_ != 0).sum())
    3
    """

    _may_have_no_penalty, _takes_collections = True, True

    alpha: float | str = "auto"
    _: KW_ONLY
    l1_ratio: float = 1.0
    penalty_factor: Any = None
    solver: str = "auto"
    fit_intercept: bool = True
    tol: float = 1e-3
    max_iter: int = 1000
    class_weight: Any = None
    warm_start: bool = False
    memory: int = 15
    solver_options: Mapping[str, Any] | None = None
    n_jobs: int | None = None
    callback: Callback | None = None
    verbose: int = 0

    @unchanged_on_failure
    def alpha_max(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the smallest ``alpha`` for which all coefficients are zero.

        Coefficients of unpenalized features are excluded, and only these are fitted.
        The estimator's own ``alpha`` has no effect. With ``l1_ratio=0`` the result is
        infinity.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Classes of the samples.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights of the samples, by default equal.

        Returns
        -------
        alpha : float
            Infinity with ``l1_ratio=0``.

        Raises
        ------
        TypeError, ValueError
            If parameters or data are invalid.
        """
        self._check_parameters()
        model = self.__class__(**{**self.get_params(deep=False), "alpha": 1.0})
        problems: Any = model._encode(X, y, sample_weight)
        return self._alpha_max(problems)

"""Linear support vector machines with a proven optimality gap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any

from ._checks import check_option
from ._checks.signatures import with_parameters
from ._core.arrays import Array, Floats
from ._core.losses import BINARY_LOSSES, DualLoss
from ._dropin.svm import LinearSVC, LinearSVR
from ._estimators.classifier import LinearClassifier
from ._problems import LinearProblems, class_problems
from ._solving.solution import Callback

__all__ = ["LinearSVC", "LinearSVR", "SubLBFGSLinearSVC"]

_LOSSES: dict[str, DualLoss] = {
    name: BINARY_LOSSES[name] for name in ("hinge", "squared_hinge")
}


class BaseLinearSVC(LinearClassifier):
    """The base of linear support vector machines."""

    loss: str

    def _check_parameters(self) -> None:
        check_option("loss", self.loss, list(_LOSSES))
        super()._check_parameters()

    def _problems(
        self,
        X: Any,
        y: Array,
        weights: Floats,
        classes: Array,
    ) -> LinearProblems:
        return class_problems(
            self._linear_model(), X, y, _LOSSES[self.loss], weights, classes
        )


@with_parameters()
class SubLBFGSLinearSVC(BaseLinearSVC):
    """Linear support vector classifier trained by quasi-Newton methods.

    Minimizes ``alpha / 2 * ||w||² + sum_i s_i loss_i / sum_i s_i`` with the hinge or
    squared hinge loss, one class against the rest for more than two classes, and
    reports a proven bound on the distance from the optimum.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the penalty relative to the *mean* loss, or 0 for no penalty. ``C``
        of :class:`~sklearn.svm.LinearSVC` corresponds to ``1 / (n_samples * alpha)``.
        With "auto", a rule chooses it from the size and sparsity of the data, and each
        feature is penalized in its own scale, so that units do not matter. With 200
        samples or more, held-out samples then select a multiple of this strength, and
        whether sparse features keep their units: see ``alpha_``, ``penalty_factor_``,
        ``auto_scores_`` and the notes.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        ``max(0, 1 - y f(x))`` or its square.
    penalty_factor : array-like of shape (n_features,), dict or None, default=None
        Factors f >= 0 of the features in the penalty ``alpha / 2 * sum_j f_j w_j²``, by
        default ones. A dict or Series is matched by feature names; missing features
        have the factor 1.
    solver : str, default="auto"
        Optimization method.

        - "auto": for the hinge a start that depends on the shape of the data (dual
          coordinate ascent where less than 1 % of the entries are stored, else a sample
          of the rows where there are at least 1024 for each feature, else none where
          there are at most 4, else "sublbfgs" while its progress is fast), then "alm",
          on tall data with the rows near the kink; for the squared hinge "newton-cg",
          after dual coordinate ascent on such sparse data. Problems small enough for it
          to take milliseconds are solved to nearly machine precision, whatever ``tol``
          is.
        - "sublbfgs": limited-memory subgradient BFGS.
        - "subbfgs": the same with a full matrix of n_features² entries, for few
          features.
        - "alm", hinge only: proximal method of multipliers on the dual, that is, a
          semismooth Newton method on smooth envelopes of the hinge.
        - "lbfgs", "bfgs", squared hinge only: the classical methods.
        - "newton-cg", squared hinge only: Newton's method, by a factorization where
          there are few features and by conjugate gradients elsewhere.
        - "trust-region", squared hinge only: Newton's method with steps bounded by a
          trust region instead of a line search.
        - "cg", squared hinge only: nonlinear conjugate gradients.
        - "cd", "fista", "ista", squared hinge only: coordinate descent on quadratic
          models, and proximal gradient descent, accelerated or not.
        - "ls-bmrm", "bmrm", "bmrm-aggregated", "proximal-bundle",
          "trust-region-bundle", "subgradient": bundle methods and the subgradient
          method, as in :class:`BMRMClassifier`.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is not penalized.
    tol : float, default=1e-3
        Stop when the proven gap is at most ``tol`` times the objective.
    max_iter : int, default=1000
        Limit on the number of iterations per binary problem, at least 1.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the samples of each class.
    warm_start : bool, default=False
        Whether to start from the previous solution, if there is one for the same
        classes and features.
    memory : int, default=15
        Number of displacement pairs from which limited-memory methods estimate
        curvature, at least 1.
    direction_tol : float, default=1e-5
        Tolerance of the search for a descent direction at kinks in "sublbfgs" and
        "subbfgs", relative to the objective; "auto" ignores it.
    direction_max_iter : int, default=100
        Limit on the number of iterations of the search for a descent direction, at
        least 1.
    solver_options : dict or None, default=None
        Further options of the solver by name, such as the parameters in its
        publication. The table in `docs/methods.md` lists the options of each solver,
        with ranges and defaults; unknown options raise an error.
    n_jobs : int or None, default=None
        Number of threads for products with blocks of rows. ``None`` means 1 unless in
        a :func:`joblib.parallel_config` context; ``-1`` means all processors.
    callback : callable or None, default=None
        Called after every iteration with a named tuple of ``n_iter``, ``objective``,
        ``dual_gap``, ``passes`` and ``seconds``; fitting stops if it returns True. With
        several problems the numbers belong to the problem being solved.
    verbose : int, default=0
        If 1, print progress at iterations 0, 1, 2, 4, 8, ..., and every five seconds;
        if larger, at every iteration, after lines that explain the choice of ``plan_``.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features, with the dtype of X.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts; zero if ``fit_intercept=False``.
    classes_ : ndarray of shape (n_classes,)
        The classes with positive total weight.
    alpha_ : float
        Strength of the penalty in the fit.
    penalty_factor_ : ndarray of shape (n_features,)
        Factors f in the penalty ``sum_j f_j w_j² / 2``: ``penalty_factor``, times the
        squared scales of the features with ``alpha="auto"``.
    auto_scores_ : list of tuple
        With ``alpha="auto"``, the choices that were tried on held-out samples: the
        multiple of the strength by rule, whether features had their own scales, and the
        mean loss (log loss if the model has probabilities, else the error rate).
    objective_ : float or ndarray of shape (n_classes,)
        Objective at the coefficients; one for each class if there are more than two.
    dual_gap_ : float or ndarray of shape (n_classes,)
        ``objective_ - dual_gap_`` is a proven lower bound of the optimum, up to
        rounding in float64.
    n_iter_ : int
        Number of iterations, the largest of all binary problems.
    history_ : list of History
        For each binary problem the objective, lower bound, passes over the data and
        seconds after each iteration. See :class:`ConvergenceDisplay`.
    plan_ : str or list of str
        The plan that solver="auto" chose, or the solver; one for each of several
        problems.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    ConvergenceDisplay : Plot of objective and lower bound during a fit.
    sklearn.svm.LinearSVC : Dual coordinate descent, without a proven gap.

    Notes
    -----
    A sample of weight 2 is equivalent to two samples, a sample of weight 0 to none.

    Fitting takes memory beyond X for about 20 vectors of n_samples and
    2 * (memory + 5) vectors of n_features numbers, for the lower bound up to 40 more
    vectors of n_features numbers, as far as they fit in half the size of X, and with
    "alm" for a copy of the rows near the margin, at most 0.6 times X. With fewer rows
    than features "alm" and "newton-cg" keep the products of rows with each other, where
    they take no more memory than X.

    With ``alpha="auto"`` the squared scale of a feature is its variance divided by the
    share of nonzero entries. ``alpha_`` is ``k d / n`` for an L2 penalty and ``k
    sqrt(ln(n_features) / n)`` for an L1 penalty, where n is the sum of the sample
    weights, d the mean number of nonzero entries of a sample, and k depends on the
    loss; the user guide lists k. Large dense data are not copied for the scales, but
    the entries of sparse data are.

    References
    ----------
    J. Yu (2009), New Quasi-Newton Optimization Methods for Machine Learning, PhD
    thesis, Australian National University: Alg. 3.1-3.3. C.-H. Teo, S.V.N.
    Vishwanathan, A. Smola, Q. Le (2010), Bundle Methods for Regularized Risk
    Minimization, JMLR 11: Corollary 3 for the lower bound. C.-J. Hsieh et al. (2008), A
    Dual Coordinate Descent Method for Large-scale Linear SVM, ICML: Algorithm 1.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_subqn import SubLBFGSLinearSVC
    >>> X, y = make_classification(random_state=0)
    >>> clf = SubLBFGSLinearSVC(alpha=1e-2).fit(X, y)
    >>> bool(clf.dual_gap_ <= 1e-3 * clf.objective_)
    True
    >>> clf.score(X, y)
    0.96
    """

    _may_have_no_penalty, _takes_collections = True, True

    alpha: float | str = "auto"
    _: KW_ONLY
    loss: str = "hinge"
    penalty_factor: Any = None
    solver: str = "auto"
    fit_intercept: bool = True
    tol: float = 1e-3
    max_iter: int = 1000
    class_weight: Any = None
    warm_start: bool = False
    memory: int = 15
    direction_tol: float = 1e-5
    direction_max_iter: int = 100
    solver_options: Mapping[str, Any] | None = None
    n_jobs: int | None = None
    callback: Callback | None = None
    verbose: int = 0


for _name in __all__:
    globals()[_name].__module__ = __name__

"""Joint multiclass support vector machine with label costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any

from ._checks import check_label_cost, check_option, check_rescaling
from ._checks.signatures import with_parameters
from ._core.arrays import Array, Floats
from ._core.losses import DualLoss, Simplex
from ._core.names import classes_axis
from ._estimators.classifier import LinearClassifier
from ._problems import LinearProblems, joint_classes
from ._solving.solution import Callback


@with_parameters()
class MulticlassHingeClassifier(LinearClassifier):
    """Linear classifier with the joint multiclass hinge loss and label costs.

    Minimizes ``alpha * (l1_ratio * ||W||_1 + (1 - l1_ratio) / 2 * ||W||²) + sum_i s_i
    loss_i / sum_i s_i`` jointly over one coefficient vector for each class, where the
    loss of a sample of class y with scores z is ``max_j (cost[y, j] + z_j - z_y)``, and
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
    label_cost : array-like of shape (n_classes, n_classes) or None, default=None
        Cost of predicting the column's class for a sample of the row's class, in the
        order of ``classes_``: non-negative, zero on the diagonal. ``None`` means one
        for every error. A data frame with class names on both axes is matched by name.
    rescaling : {"margin", "slack"} or array-like of shape (n_classes, n_classes), \
            default="margin"
        "margin": the loss above, with margins proportional to the costs. "slack":
        ``max_j cost[y, j] * (1 + z_j - z_y)``, with a margin of one, and violations
        multiplied by the costs. A matrix of rates, in the order of ``classes_``:
        ``max_j (cost[y, j] + rescaling[y, j] * (z_j - z_y))``, which is "margin" for
        rates of one, and "slack" for rates equal to the costs. Rates are non-negative,
        and positive where costs are positive; a rate of zero excludes a pair of
        classes. A data frame is matched by name, like ``label_cost``.
    l1_ratio : float, default=0.0
        Share of the L1 norm in the penalty, from 0 for a pure L2 penalty to 1 for a
        pure L1 penalty.
    penalty_factor : array-like of shape (n_features,), dict or None, default=None
        Factors f >= 0 of the features in the penalty, by default ones: ``f_j w_j``
        replaces ``w_j``, or with ``l1_ratio=0`` ``f_j w_j²`` replaces ``w_j²``. With
        ``alpha="auto"`` the factors multiply the scales of the features. A dict or
        Series is matched by feature names; missing features have the factor 1.
    solver : str, default="auto"
        Optimization method.

        - "auto": "alm", after dual coordinate ascent with margin rescaling, or from the
          solution for a sample of the rows if there are many more rows than features.
          Problems small enough for it to take milliseconds are solved to nearly machine
          precision, whatever ``tol`` is.
        - "alm": proximal method of multipliers on the dual, that is, a semismooth
          Newton method on smooth envelopes of the loss.
        - "sublbfgs", "subbfgs": subgradient BFGS, of limited memory or with a full
          matrix of the squared number of parameters. Their bounds are loose, in
          particular with intercepts.
        - "ls-bmrm", "bmrm", "bmrm-aggregated", "proximal-bundle",
          "trust-region-bundle": bundle methods. With a positive ``l1_ratio`` "auto" is
          "ls-bmrm", and "bmrm-aggregated" is not available; a small ``alpha`` then
          takes hundreds of iterations.
        - "subgradient": the subgradient method; the result is its best point.
    fit_intercept : bool, default=True
        Whether to fit an intercept for each class. They are not penalized.
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
        Number of displacement pairs from which "sublbfgs" estimates curvature.
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
    coef_ : ndarray of shape (n_classes, n_features) or (1, n_features)
        Weights of the features for each class, with the dtype of X. For two classes, as
        in scikit-learn, the second class minus the first.
    intercept_ : ndarray of shape (n_classes,) or (1,)
        Intercepts, determined up to a common constant; zero if ``fit_intercept=False``.
    classes_ : ndarray of shape (n_classes,)
        The classes with positive total weight.
    alpha_ : float
        Strength of the penalty in the fit.
    penalty_factor_ : ndarray of shape (n_features,)
        Factors f of ``f_j w_j`` in the penalty: ``penalty_factor``, times the scales of
        the features with ``alpha="auto"``. With ``l1_ratio=0`` they are factors of
        ``w_j²``, and the scales are squared.
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
    history_ : list of one History
        Objective, lower bound, passes over the data and seconds of each iteration. See
        :class:`ConvergenceDisplay`.
    plan_ : str
        The plan that solver="auto" chose, or the solver.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    SubLBFGSLinearSVC : One class against the rest.
    sklearn.svm.LinearSVC : The same loss with ``multi_class="crammer_singer"``, without
        label costs or free intercepts, and without a proven gap.

    Notes
    -----
    A sample of weight 2 is equivalent to two samples, a sample of weight 0 to none.

    For two classes with equal costs the result equals a binary support vector machine
    with half the ``alpha``, since the vectors of both classes are penalized.

    Fitting takes memory beyond X for about ten arrays of n_samples * n_classes numbers
    and, with "alm", for a copy of the rows with several classes near the maximum, at
    most 0.6 times X.

    With ``alpha="auto"`` the squared scale of a feature is its variance divided by the
    share of nonzero entries. ``alpha_`` is ``k d / n`` for an L2 penalty and ``k
    sqrt(ln(n_features) / n)`` for an L1 penalty, where n is the sum of the sample
    weights, d the mean number of nonzero entries of a sample, and k depends on the
    loss; the user guide lists k. Large dense data are not copied for the scales, but
    the entries of sparse data are.

    References
    ----------
    K. Crammer, Y. Singer (2001), On the Algorithmic Implementation of Multiclass
    Kernel-based Vector Machines, JMLR 2. I. Tsochantaridis, T. Joachims, T. Hofmann,
    Y. Altun (2005), Large Margin Methods for Structured and Interdependent Output
    Variables, JMLR 6. J. Yu (2009), New Quasi-Newton Optimization Methods for Machine
    Learning, PhD thesis, Australian National University: section 3.5. C.-H. Teo,
    S.V.N. Vishwanathan, A. Smola, Q. Le (2010), Bundle Methods for Regularized Risk
    Minimization, JMLR 11: eq. 29, rates.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_subqn import MulticlassHingeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = MulticlassHingeClassifier(alpha=1e-3).fit(X, y)
    >>> bool(clf.dual_gap_ <= 1e-3 * clf.objective_)
    True
    >>> round(clf.score(X, y), 2)
    0.98
    """

    _may_have_no_penalty, _takes_collections = True, True

    alpha: float | str = "auto"
    _: KW_ONLY
    label_cost: Any = None
    rescaling: Any = "margin"
    l1_ratio: float = 0.0
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

    def _check_parameters(self) -> None:
        if isinstance(self.rescaling, str):
            check_option("rescaling", self.rescaling, ["margin", "slack"])
        super()._check_parameters()

    def _combination(self) -> str:
        return (
            f"a joint hinge with l1_ratio={self.l1_ratio!r} and "
            f"fit_intercept={self.fit_intercept}"
        )

    def _l1_share(self) -> float:
        return float(self.l1_ratio)

    def _instead(self) -> str:
        return "take class weights, or a logistic loss"

    def _problems(
        self,
        X: Any,
        y: Array,
        weights: Floats,
        classes: Array,
    ) -> LinearProblems:
        labels = classes_axis(classes)
        costs = check_label_cost(self.label_cost, labels)
        loss = DualLoss(Simplex(costs, check_rescaling(self.rescaling, costs, labels)))
        return joint_classes(self._linear_model(), X, y, loss, weights, classes)

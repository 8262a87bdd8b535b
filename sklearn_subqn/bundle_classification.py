"""Classification with any convex loss and a proven optimality gap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from scipy import special

from ._checks import check_option, check_weights, warn_of_unused
from ._checks.signatures import with_parameters
from ._core.arrays import Array, Floats
from ._core.losses import (
    BINARY_LOSSES,
    MULTINOMIAL_LOSS,
    AnyLoss,
    CumulativeLogit,
    DualLoss,
    Ontology,
    OrderedPairs,
    RocArea,
    Thresholds,
)
from ._core.rounding import CLOSE, ROUNDED
from ._core.solvers import BUNDLE_SOLVERS
from ._estimators.catalogue import BundleEstimator
from ._estimators.classification_losses import (
    CONCERN_ONE_CLASS,
    INSTEAD,
    LOSSES,
    NEED_BETA,
    NEED_K,
)
from ._estimators.estimator import forget, loss_name
from ._estimators.offset_classifier import OffsetClassifier
from ._estimators.predictions import log_of_differences
from ._features.roles import (
    category_order,
    class_order,
    positive_class,
    warn_of_no_effect,
)
from ._problems import (
    Levels,
    LinearProblems,
    Nodes,
    Problems,
    class_problems,
    codes,
    joint_classes,
)
from ._problems.f_beta import F_BETA_ATTRIBUTES, FBetaProblems
from ._solving.solution import Callback, Solution


@with_parameters()
class BMRMClassifier(OffsetClassifier, BundleEstimator):
    """Linear classification with any convex loss and a proven optimality gap.

    Minimizes ``alpha * Omega(w) + sum_i s_i loss_i / sum_i s_i``, one class against the
    rest for more than two classes, and reports a proven bound on the distance from the
    optimum.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the penalty relative to the *mean* loss, positive, or 0 for no
        penalty. With "auto", a rule chooses it from the size and sparsity of the data,
        and each feature is penalized in its own scale, so that units do not matter.
        With 200 samples or more, held-out samples then select a multiple of this
        strength, and whether sparse features keep their units: see ``alpha_``,
        ``penalty_factor_``, ``auto_scores_`` and the notes.
    loss : str or Loss, default="log_loss"
        With labels y of -1 and +1 and the margin ``m = y f(x)``:

        - "hinge": ``max(0, 1 - m)``;
        - "squared_hinge": ``max(0, 1 - m)²``;
        - "modified_huber": ``max(0, 1 - m)²`` for ``m >= -1``, and ``-4 m`` beyond
          (Zhang 2004);
        - "log_loss": ``ln(1 + exp(-m))``;
        - "exponential": ``exp(-m)``;
        - "multinomial": the log loss of the softmax of the scores of all classes at
          once, which is "log_loss" for two classes;
        - "roc_area": the mean of ``max(0, 1 + f(x_i) - f(x_j))`` over pairs of a
          negative and a positive sample; "roc_area_squared" of its square,
          "roc_area_log" of ``ln(1 + exp(f(x_i) - f(x_j)))``;
        - "ordinal": the loss of "roc_area" over pairs of samples of different classes,
          which have an order (see ``classes``), for one score and thresholds between
          the classes, so that the scores of the classes are comparable within a sample,
          and the score of the lowest class is zero; "ordinal_linear" weights pairs by
          the distance of their classes, "ordinal_squared" and "ordinal_linear_squared"
          take squares, "ordinal_log" and "ordinal_linear_log" logarithms, for up to
          1000 classes;
        - "ordinal_all_threshold": the log loss of all comparisons of one score with
          the thresholds between the classes in their order, which are learned with the
          score: the sum over thresholds t of ``ln(1 + exp(-m))`` with ``m = f(x) - t``
          for samples of classes above t, ``m = t - f(x)`` for the other samples;
          "ordinal_immediate_threshold" uses only the thresholds next to the class of a
          sample;
        - "ordinal_logit": minus the logarithm of the probability of the class by the
          same thresholds, where ``1 / (1 + exp(t - f(x)))`` is the probability of
          classes above t: the likelihood of proportional odds (McCullagh 1980);
        - "f_beta": ``r max(0, 1 - m)²``, where r is ``positive_weight_`` for positive
          samples and 1 for negative samples, with a threshold of large F-beta score,
          for rare classes; of two classes, ``pos_label`` is positive;
        - "f_beta_bound": a bound of one minus the F-beta score of the training data,
          for classes that hardly overlap; otherwise all coefficients become zero;
        - "precision_at_k", "recall_at_k": bounds of how far precision and recall among
          the ``k`` samples of largest scores are from the best possible;
        - or a user-defined loss, see the user guide; with ``joint = True`` a loss of
          the scores of all classes at once. With an ``Ontology`` classes are the leaves
          of a graph of categories, by their names or in sorted order.

        Ranking losses ("roc_area", "precision_at_k", "recall_at_k" and the ordinal
        losses of pairs) do not depend on intercepts. The intercept is chosen such that
        ``k`` training samples have positive scores, or otherwise to minimize the mean
        hinge. "f_beta_bound", "precision_at_k" and "recall_at_k" count samples: nonzero
        weights must be equal.
    beta : float, default=1.0
        Weight of recall against precision for "f_beta" and "f_beta_bound", positive.
    k : int or None, default=None
        Number of samples for "precision_at_k" and "recall_at_k", at least 1. If it is
        less than the number of positive samples, these losses also penalize differences
        between the scores of positive samples, and all coefficients may become zero.
    pos_label : int, float, bool, str or None, default=None
        The positive class of two, for "f_beta", "f_beta_bound", "precision_at_k",
        "recall_at_k" and user-defined losses. ``None`` means the second of the sorted
        classes, with a warning for the named losses unless the labels are 0 and 1, -1
        and 1, or booleans. Scores of ``decision_function`` are positive for
        ``classes_[1]``, whatever ``pos_label`` is. Losses of ROC areas do not depend on
        ``pos_label``. With more than two classes, each class is positive against the
        rest.
    classes : array-like of shape (n_classes,) or None, default=None
        For the ordinal losses, all labels from the lowest to the highest; labels that
        do not occur in the data are ignored. ``None`` means the order of numbers or of
        ordered categories: y as a ``Categorical`` of pandas with ``ordered=True``, or
        an ``Enum`` of polars. Unordered labels raise an error.
    penalty : {"l2", "l1", "elasticnet", "lp", "quadratic", "entropy", \
            "normalized_entropy", "group", "group_elasticnet", "sparse_group"}, \
            default="l2"
        Omega: ``||w||² / 2``; ``||w||_1``; ``l1_ratio * ||w||_1 + (1 - l1_ratio) / 2 *
        ||w||²``; ``||w||_p² / 2``; ``wᵀ B w / 2``; ``sum_j w_j ln w_j - w_j`` for
        non-negative w; ``sum_j w_j ln w_j`` for w on the unit simplex. With ``groups``
        g of features and their factors f: ``sum_g f_g ||w_g||``; ``sum_g f_g (l1_ratio
        * ||w_g|| + (1 - l1_ratio) / 2 * ||w_g||²)``; ``l1_ratio * ||w||_1 + (1 -
        l1_ratio) * sum_g f_g ||w_g||``. The coefficients of all scores of a joint loss
        belong to the group of their feature.
    l1_ratio : float, default=0.5
        For the elastic nets and "sparse_group", in [0, 1].
    p : float, default=1.5
        For "lp", in (1, 10].
    penalty_matrix : array-like of shape (n_features, n_features), default=None
        B for "quadratic", symmetric and positive semidefinite, such as DᵀD for
        differences D of neighboring levels; with an ``Ontology`` definite, for the
        coefficients of all nodes, feature by feature. A data frame whose rows and
        columns are named by features is matched by names.
    groups : array-like, list, dict, "categories" or None, default=None
        Groups of the features: a label for each; or lists of names or numbers of
        features, perhaps in a dict by the names of groups, where other features are
        groups of their own; or "categories", for which features of zeros and ones whose
        names agree up to the last "_" are a group, as the dummies of one-hot encoders.
        With None each feature is a group.
    penalty_factor : array-like of shape (n_features,), dict or None, default=None
        Factors f >= 0 of the features in Omega, by default ones: ``f_j w_j²`` replaces
        ``w_j²`` with penalty="l2", and ``f_j w_j`` replaces ``w_j`` with "l1",
        "elasticnet" and "lp". With ``alpha="auto"`` the factors multiply the scales of
        the features. A dict or Series is matched by feature names; missing features
        have the factor 1. With groups: factors of the groups, in ascending order of
        labels or in the order of the lists, or a dict or Series by their names; by
        default the root of the number of features of the group. A group with the factor
        zero has no penalty at all, also no L1 norm.
    positive : bool, default=False
        Whether coefficients are non-negative, for each class against the rest; the
        intercept is unrestricted.
    coef_bounds : pair (low, high) or None, default=None
        Bounds of the coefficients, each a number, None for no bound, or one number for
        each feature: an array, or a dict or Series by feature names, in which missing
        features have no bound. Zero has to be between both bounds. Both parameters are
        for losses of one score per sample with penalty="l2" or an elastic net with
        ``l1_ratio < 1``, or ``alpha=0``, and the solvers "auto", "ls-bmrm" and "bmrm",
        and for smooth losses "fista" and "ista"; with groups bounds are 0 or None.
    coef_constraints : pair (A, b) or None, default=None
        Inequalities ``A w <= b`` of the coefficients w: A is an array of shape
        (n_constraints, n_features), or a data frame whose columns are the names of the
        features, and b has one non-negative number for each row of A. For losses of one
        score per sample with penalty="l2" and ``alpha > 0``.
    solver : str, default="auto"
        Optimization method.

        - "auto": for L2 "newton-cg" for smooth losses, and for piecewise linear losses
          "alm", after a start that depends on the shape of the data; for L1 and elastic
          net coordinate descent on quadratic models, of envelopes around dual variables
          where the loss has kinks, and orthant-wise quasi-Newton steps for the ordinal
          losses of thresholds; for groups block coordinate descent, or "fista";
          "narrowing" for hinges of pairs with L2 where there are few features; else
          "ls-bmrm".
        - "ls-bmrm": the bundle method with line search; takes any loss and penalty.
        - "bmrm", "bmrm-aggregated", "proximal-bundle", "trust-region-bundle": other
          bundle methods.
        - "sublbfgs", "subbfgs"; "lbfgs", "bfgs", "cg" for smooth losses: with
          differentiable penalties, as in :class:`SubLBFGSLinearSVC`.
        - "alm" for piecewise linear losses with L2; "newton-cg" and "trust-region" for
          smooth losses with L2.
        - "cd": coordinate descent on quadratic models of smooth losses; "cyclic-cd":
          of squared errors, one coefficient after the other: with L1, L2 and both.
        - "fista", "ista": proximal gradient descent for smooth losses, accelerated or
          not, with L1, L2, both, and bounds of coefficients.
        - "owlqn", "owlqn*": orthant-wise quasi-Newton methods for smooth losses, with
          an L1 norm.
        - "subgradient": the subgradient method; the result is its best point.
        - "narrowing": Newton's method on smooth losses ever closer to a hinge of pairs
          ("roc_area", "ordinal", "ordinal_linear"), with L2.

        The table in `docs/solvers.md` lists the losses and penalties of each solver; an
        error names the solvers for a loss and a penalty.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is not penalized. The ordinal losses need True
        for their thresholds, which are not penalized either; "f_beta" also needs True.
        With an ``Ontology`` intercepts belong to the classes, and need penalty="l2".
    tol : float, default=1e-3
        Stop when the proven gap is at most ``tol`` times the absolute value of the
        objective.
    max_iter : int, default=1000
        Limit on the number of iterations per problem, at least 1.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the samples of each class.
    warm_start : bool, default=False
        Whether to start from the previous solution, if there is one for the same
        classes and features.
    memory : int, default=15
        Number of displacement pairs of limited-memory methods.
    bundle_size : int or None, default=None
        Number of cuts that "ls-bmrm" and "bmrm" keep, at least 2, including the
        aggregate cut; None for no limit. Cuts inactive for 10 iterations are always
        removed. With penalty="l1" a small bundle may not suffice to reach ``tol``, and
        the method may end early with a warning.
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
        The classes with positive total weight, sorted.
    ordered_classes_ : ndarray of shape (n_classes,)
        For ordinal losses only: the classes from the lowest to the highest.
    pos_label_ : int, float, bool or str
        The positive one of two classes; only for losses that use ``pos_label``.
    alpha_ : float
        Strength of the penalty in the fit.
    penalty_factor_ : ndarray of shape (n_features,)
        Factors f of ``f_j w_j`` in Omega: ``penalty_factor``, times the scales of the
        features with ``alpha="auto"``. With ``penalty="l2"`` they are factors of
        ``w_j²``.
    auto_scores_ : list of tuple
        With ``alpha="auto"``, the choices that were tried on held-out samples: the
        multiple of the strength by rule, whether features had their own scales, and the
        mean loss (log loss if the model has probabilities, else the error rate). Empty
        for losses that are not sums over samples, and with an ``offset``.
    objective_ : float or ndarray of shape (n_classes,)
        Objective at the coefficients; one for each class if there are more than two.
    dual_gap_ : float or ndarray of shape (n_classes,)
        ``objective_ - dual_gap_`` is a proven lower bound of the optimum, up to
        rounding in float64.
    positive_weight_, threshold_, f_beta_ : float or ndarray of shape (n_classes,)
        For ``loss="f_beta"`` only, one for each class if there are more than two: the
        chosen weight of the class; the threshold, which was subtracted from the
        intercept; and the F-beta score on held-out samples at this threshold. The best
        F-beta has no known bound: ``objective_`` and ``dual_gap_`` belong to the
        weighted squared hinge, with the intercept ``intercept_ + threshold_``.
    n_iter_ : int
        Number of iterations, the largest of all problems.
    history_ : list of History
        For each problem the objective, lower bound, passes over the data and seconds
        after each iteration. See :class:`ConvergenceDisplay`.
    plan_ : str or list of str
        The plan that solver="auto" chose, or the solver; one for each of several
        problems.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    BMRMRegressor : The losses of regression.
    SubLBFGSLinearSVC : Hinge losses with L2 and fewer parameters.

    Notes
    -----
    ``predict_proba`` of "ordinal_all_threshold" and "ordinal_logit" uses the cumulative
    logistic model (proportional odds): a class is above the threshold t with
    probability ``1 / (1 + exp(t - f(x)))``. The optimal thresholds ascend. ``predict``
    returns the median of these probabilities, the class at the least expected distance,
    which is not always the most probable one. Optimal thresholds of
    "ordinal_immediate_threshold" may descend, for example around a rare class. This
    loss compares neighboring classes only, and its probabilities follow the
    adjacent-categories logit model, in which f(x) - t is the log odds of the classes
    above and below t. The probabilities are positive for any order of thresholds, and
    the most probable class is predicted.

    With ordinal losses of more than two classes the rows of ``coef_``, in the order of
    ``ordered_classes_``, are 0, 1, 2, ... times the coefficients of the score, and the
    differences of ``intercept_`` in this order are minus the thresholds.

    Meta-estimators that encode labels, such as
    :class:`~sklearn.ensemble.StackingClassifier` or
    :func:`~sklearn.model_selection.cross_val_predict` for probabilities, pass on
    indices of sorted labels: with ``classes`` this raises an error, and without it the
    original labels have to be ordered numbers.

    For "f_beta" each class is fitted with the weights 1, 0.5, 2, 5, 10 and 20, and the
    weight with the largest F-beta on the training samples, at the best threshold, is
    chosen. The threshold is then chosen by five-fold held-out scores. Equal samples are
    in the same fold, and sample weights count in F-beta, so that a weight of 2 is still
    equivalent to two samples. ``callback`` and ``verbose`` report the fit with the
    chosen weight only.

    With ``alpha="auto"`` the squared scale of a feature is its variance divided by the
    share of nonzero entries. ``alpha_`` is ``k d / n`` for an L2 penalty and ``k
    sqrt(ln(n_features) / n)`` for an L1 penalty, where n is the sum of the sample
    weights, d the mean number of nonzero entries of a sample, and k depends on the
    loss; the user guide lists k. Large dense data are not copied for the scales, but
    the entries of sparse data are.

    References
    ----------
    C.-H. Teo, S.V.N. Vishwanathan, A. Smola, Q. Le (2010), Bundle Methods for
    Regularized Risk Minimization, JMLR 11: Alg. 2-4, Table 5, Appendix C.

    S.P. Parambath, N. Usunier, Y. Grandvalet (2014), Optimizing F-Measures by
    Cost-Sensitive Classification, NIPS 27: "f_beta".

    M. Yuan, Y. Lin (2006), Model Selection and Estimation in Regression with Grouped
    Variables, JRSS B 68: "group".

    N. Simon, J. Friedman, T. Hastie, R. Tibshirani (2013), A Sparse-Group Lasso, JCGS
    22: "sparse_group", eq. 3.

    J.D.M. Rennie, N. Srebro (2005), Loss Functions for Preference Levels: Regression
    with Discrete Ordered Labels, IJCAI Workshop on Advances in Preference Handling.

    P. McCullagh (1980), Regression Models for Ordinal Data, JRSS B 42: "ordinal_logit",
    eq. 2.3.

    T. Zhang (2004), Solving Large Scale Linear Prediction Problems Using Stochastic
    Gradient Descent Algorithms, ICML: probabilities of "modified_huber".

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_subqn import BMRMClassifier
    >>> X, y = make_classification(random_state=0)
    >>> clf = BMRMClassifier(loss="hinge", penalty="l1", alpha=0.01).fit(X, y)
    >>> bool(clf.dual_gap_ <= 1e-3 * clf.objective_), bool((clf.coef_ == 0).any())
    (True, True)
    """

    _losses_of_probabilities = (
        "log_loss",
        "multinomial",
        "modified_huber",
        "ordinal_all_threshold",
        "ordinal_immediate_threshold",
        "ordinal_logit",
    )

    _may_have_no_penalty, _takes_collections = True, True

    alpha: float | str = "auto"
    _: KW_ONLY
    loss: str | AnyLoss = "log_loss"
    beta: float = 1.0
    k: int | None = None
    pos_label: Any = None
    classes: Any = None
    penalty: str = "l2"
    l1_ratio: float = 0.5
    p: float = 1.5
    penalty_matrix: Any = None
    groups: Any = None
    penalty_factor: Any = None
    positive: bool = False
    coef_bounds: Any = None
    coef_constraints: Any = None
    solver: str = "auto"
    fit_intercept: bool = True
    tol: float = 1e-3
    max_iter: int = 1000
    class_weight: Any = None
    warm_start: bool = False
    memory: int = 15
    bundle_size: int | None = None
    solver_options: Mapping[str, Any] | None = None
    n_jobs: int | None = None
    callback: Callback | None = None
    verbose: int = 0

    def _check_collection(self) -> None:
        sums = *BINARY_LOSSES, "multinomial"
        if not isinstance(self.loss, str) or self.loss not in sums:
            known = ", ".join(map(repr, sums))
            raise ValueError(
                f"loss={loss_name(self.loss)} is not supported for data in blocks, "
                f"which take losses that are sums over samples: {known}."
            )

    def _is_chosen(self) -> bool:
        known = isinstance(self.loss, str) and self.loss in BINARY_LOSSES
        return known and not self._has_offset

    def _instead(self) -> str:
        known = INSTEAD.get(self.loss) if isinstance(self.loss, str) else None
        return known or "the features do not separate the classes by this loss"

    def _store(self, problems: Problems, solutions: list[Solution]) -> None:
        forget(self, *F_BETA_ATTRIBUTES, "ordered_classes_", "pos_label_")
        super()._store(problems, solutions)

    def _link(self) -> str:
        if isinstance(self.loss, str) and len(self.classes_) > 2:
            if self.loss in ("ordinal_all_threshold", "ordinal_logit"):
                return "differences of cumulative ones"
            if self.loss == "log_loss":
                return "one-against-rest"
        return super()._link()

    def _softmax_scores(self, X: Any) -> Array:
        """Return the scores of each class against the rest, for more than two classes.

        Losses of all thresholds model cumulative probabilities, losses of immediate
        thresholds the odds of neighboring classes.
        """
        scores, link = self._raw_scores(X), self._link()
        if link == "differences of cumulative ones":
            order = np.searchsorted(self.classes_, self.ordered_classes_)
            above = np.diff(scores[:, order], axis=1)
            return log_of_differences(above)[:, np.argsort(order)]
        return special.log_expit(scores) if link == "one-against-rest" else scores

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.loss, AnyLoss):
            check_option("loss", self.loss, list(LOSSES))
            if self.loss in NEED_K and self.k is None:
                raise ValueError(f"loss={self.loss!r} needs a number k, got k=None.")
        warn_of_unused(
            self,
            {"beta": (1.0, "loss", NEED_BETA), "k": (None, "loss", NEED_K)},
        )

    def _encode(
        self, X: Any, y: Any, sample_weight: Any, offset: Any = None, **others: Any
    ) -> Problems:
        categories = category_order(y)
        X, y = self._check_X(X, y, reset=True)
        weighed = check_weights(sample_weight, y, self.class_weight)
        weights, classes, *_ = weighed
        offset = self._checked_offset(offset, len(y), classes)
        # The fits on samples of the rows cannot take offsets.
        self._has_offset = offset is not None
        start = self._choose_strength(X, y, weighed)
        problems = self._problems(X, y, weights, classes, categories, offset)
        if start:
            problems.start_from(start)
        return problems

    def _problems(
        self,
        X: Any,
        y: Array,
        weights: Floats,
        classes: Array,
        categories: list[Any] | None = None,
        offset: Floats | None = None,
    ) -> LinearProblems:
        given = self.loss
        named = LOSSES[given](self) if isinstance(given, str) else given
        multinomial = named is MULTINOMIAL_LOSS and len(classes) > 2
        if named is MULTINOMIAL_LOSS and not multinomial:
            named = BINARY_LOSSES["log_loss"]
        loss = DualLoss.of(named)
        by_f_beta = isinstance(self.loss, str) and self.loss == "f_beta"
        likely = isinstance(named, CumulativeLogit)
        thresholds = isinstance(loss.map, Thresholds) or likely
        pairs = isinstance(named, OrderedPairs) and not isinstance(named, RocArea)
        ordinal = pairs or thresholds
        if self.classes is not None and not ordinal:
            warn_of_no_effect("classes", self.loss, "ordinal losses")
        positive = self._positive(named, classes)
        if loss.counts_rows or by_f_beta:
            used = weights > 0.0
            if not used.all():
                X, y, weights = X[used], y[used], weights[used]
        if by_f_beta:
            if not self.fit_intercept:
                raise ValueError(
                    "loss='f_beta' needs fit_intercept=True, for its threshold."
                )
            model, beta = self._linear_model(), float(self.beta)
            return FBetaProblems(model, X, y, weights, classes, positive, beta)
        if loss.counts_rows and np.ptp(weights) > ROUNDED * weights.max():
            raise ValueError(
                f"loss={loss_name(self.loss)} counts samples: sample_weight must "
                "be equal for all or zero, and class_weight None."
            )
        loss.oracle.check_rows(len(y))
        if multinomial or (loss.joint and not thresholds):
            return self._joint_problem(X, y, loss, weights, classes)
        if isinstance(named, Ontology):
            return self._path_problem(X, y, named, weights, classes)
        if ordinal:
            if not self.fit_intercept:
                raise ValueError(
                    f"loss={loss_name(self.loss)} needs fit_intercept=True: classes "
                    "are separated by thresholds."
                )
            what = f"loss={loss_name(self.loss)}"
            order = class_order(classes, self.classes, categories, what)
            levels = np.argsort(order)[codes(y, classes)].astype(np.float64)
            known = {"classes_": classes, "ordered_classes_": classes[order]}
            base = None
            if likely:
                # The solver starts at the optimal thresholds without features.
                odds = CumulativeLogit.of_classes(levels, weights)
                loss, base = DualLoss(odds), odds.base
                # Newton's method fails for thresholds that are even closer.
                close = np.flatnonzero(-np.diff(base) < 0.1 * CLOSE)
                if len(close):
                    rare = str(classes[order[close[0] + 1]])
                    raise ValueError(
                        f"The samples of class {rare} have so little of the weight "
                        f"that the thresholds of {what} beside it would be equal up "
                        "to rounding: leave them out, give them a weight of zero, or "
                        "a larger one."
                    )
            data = self._linear_model(), X, [levels], loss, weights
            opposite = len(order) == 2 and order[0] == 1
            scores = Levels(order, base)
            return LinearProblems(*data, scores=scores, known=known, opposite=opposite)
        model = self._linear_model()
        return class_problems(model, X, y, loss, weights, classes, positive, offset)

    def _positive(self, loss: AnyLoss, classes: Array) -> int | None:
        """Return the number of the positive class, if the loss needs one."""
        by_name = isinstance(self.loss, str)
        whole = DualLoss.of(loss)
        # Losses that are based on counts of rows need a positive class.
        unequal = whole.counts_rows or (by_name and self.loss == "f_beta")
        joint = isinstance(loss, OrderedPairs | Ontology) or whole.joint
        if not (unequal or isinstance(loss, RocArea) or not (by_name or joint)):
            if self.pos_label is not None:
                names = ", ".join(map(repr, CONCERN_ONE_CLASS))
                warn_of_no_effect("pos_label", self.loss, names)
            return None
        what = f"loss={loss_name(self.loss)}" if unequal else None
        return positive_class(classes, self.pos_label, what)

    def _joint_problem(
        self,
        X: Any,
        y: Array,
        loss: DualLoss,
        weights: Floats,
        classes: Array,
    ) -> LinearProblems:
        """Return the problem for a joint loss of the scores of all classes."""
        if len(classes) == 2 and not (loss.invariant and self.penalty == "l2"):
            raise ValueError(
                f"loss={loss_name(self.loss)} takes a score for each class, but of two "
                "classes only the difference of scores is stored. That needs "
                "penalty='l2' and a loss with invariant = True, which says that adding "
                "a constant to all scores of a row changes nothing."
            )
        return joint_classes(self._linear_model(), X, y, loss, weights, classes)

    def _path_problem(
        self,
        X: Any,
        y: Array,
        loss: Ontology,
        weights: Floats,
        classes: Array,
    ) -> LinearProblems:
        """Return the problem for classes that are the leaves of a graph."""
        n_labels, n_nodes = loss.features.shape
        if len(classes) != n_labels:
            raise ValueError(
                f"The graph of the loss has {n_labels} leaves, but y has "
                f"{len(classes)} classes with positive weight."
            )
        loss = loss.for_classes(classes)
        if self.fit_intercept and not (
            loss.loss.has_conjugate and self.penalty == "l2"
        ):
            raise ValueError(
                "An Ontology with fit_intercept=True needs penalty='l2', and linearly "
                "independent features of labels; else take fit_intercept=False."
            )
        if (
            self.fit_intercept
            and self.solver in BUNDLE_SOLVERS
            and not loss.loss.smooth
        ):
            raise ValueError(
                f"solver={self.solver!r} does not support an Ontology's hinge with "
                "intercepts: take 'auto', or fit_intercept=False."
            )
        data = self._linear_model(), X, [codes(y, classes)], loss.loss, weights
        scores, known = Nodes(loss.features), {"classes_": classes}
        return LinearProblems(*data, n_scores=n_nodes, scores=scores, known=known)

"""Joint multilabel support vector machine with a learned threshold."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from ._checks import (
    check_label_margins,
    check_option,
    check_sample_weight,
    check_weights,
)
from ._checks.callers import user_level
from ._checks.signatures import with_parameters
from ._checks.state import unchanged_on_failure
from ._core.arrays import Array, Floats
from ._core.losses import DualLoss, KindsOfLabels, LabelOrder, LabelPairs, Simplex
from ._core.names import Axis, classes_axis, column_names
from ._core.objectives.objective import Objective
from ._estimators.block_methods import available_if, blockwise
from ._estimators.classifier import LinearClassifier
from ._problems import Contrasts, LinearProblems, Problems, joint_classes
from ._solving.callbacks import with_callbacks
from ._solving.solution import Callback, Problem, Solution


def _has_threshold(estimator: MultilabelHingeClassifier) -> bool:
    if not estimator.threshold:
        raise AttributeError(
            "Labels are predicted with threshold=True only; without, decision_function "
            "ranks them, and scoring may use it: scoring='roc_auc', for example."
        )
    return True


@with_parameters()
class MultilabelHingeClassifier(LinearClassifier):
    """Linear multilabel classifier with a joint hinge loss of label rankings.

    Minimizes ``alpha / 2 * ||W||² + sum_i s_i loss_i / sum_i s_i`` jointly over one
    coefficient vector for each label and one for a threshold, and reports a proven
    bound on the distance from the optimum. The relevant labels of a sample should score
    above the threshold and above all other labels; ``reduction`` determines how
    violations are combined.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the penalty relative to the *mean* loss, positive, or 0 for no
        penalty. With "auto", a rule chooses it from the size and sparsity of the data,
        and each feature is penalized in its own scale, so that units do not matter: see
        ``alpha_``, ``penalty_factor_`` and the notes.
    reduction : {"mean", "max"}, default="mean"
        The loss of a sample, with scores z of its relevant labels h and irrelevant
        labels j and the threshold t.

        - "mean": half the mean over all labels of ``max(0, 1/2 + z_j - t)²`` and
          ``max(0, 1/2 + t - z_h)²``, and half the mean over all pairs of ``max(0, 1 +
          z_j - z_h)²``. It is smooth, and takes O(n_labels log n_labels) for a sample.
        - "max": ``max(0, 1/2 + max z_j - t) + max(0, 1/2 + t - min z_h)``, so that only
          the worst label of either kind counts.

        If y has one class per sample, both reductions have the loss of
        :class:`MulticlassHingeClassifier`.
    label_cost : array-like of shape (2, n_labels) or (n_labels, n_labels), or None, \
            default=None
        Non-negative margins in place of 1/2: ``label_cost[0, j]`` if label j is
        irrelevant (the cost of a false positive), and ``label_cost[1, j]`` if it is
        relevant (the cost of a false negative).

        With more than two labels, ``threshold=False`` and ``reduction="max"``, costs of
        pairs are possible: ``label_cost[h, j]`` is the cost of ranking the irrelevant
        label j above the relevant label h, zero on the diagonal: the loss is ``max(0,
        max(label_cost[h, j] + z_j - z_h))``. If costs are sums of margins, fits with
        margins are faster.

        A data frame with names is matched by name: to the columns of y if they have
        names, otherwise to label numbers, or to classes if y has one class per sample;
        rows of margins are named 0 and 1.
    threshold : bool, default=True
        Whether to learn a threshold. Without a threshold the loss has only the terms of
        pairs, their mean or ``max(0, 1 + max z_j - min z_h)``, and is zero for samples
        without relevant or without irrelevant labels; the model then ranks labels and
        has no ``predict``.
    penalty_factor : array-like of shape (n_features,), dict or None, default=None
        Factors f >= 0 of the features in the penalty ``alpha / 2 * sum_j f_j w_j²``, by
        default ones. A dict or Series is matched by feature names; missing features
        have the factor 1.
    solver : str, default="auto"
        Optimization method. For ``reduction="mean"`` "auto" is "newton-cg", and
        "trust-region", "lbfgs", "bfgs", "cg", "fista" and "ista" are available; for
        "max" "auto" is as in :class:`MulticlassHingeClassifier`, and "alm" is
        available. For both there are "sublbfgs", "subbfgs" and "subgradient", and the
        bundle methods "ls-bmrm", "bmrm", "bmrm-aggregated", "proximal-bundle" and
        "trust-region-bundle".
    fit_intercept : bool, default=True
        Whether to fit an intercept for each label. They are not penalized.
    tol : float, default=1e-3
        Stop when the proven gap is at most ``tol`` times the objective.
    max_iter : int, default=1000
        Limit on the number of iterations, at least 1.
    warm_start : bool, default=False
        Whether to start from the previous solution, if there is one for the same
        labels and features.
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
    coef_ : ndarray of shape (n_labels, n_features)
        Weights of the features for each label minus the weights for the threshold, with
        the dtype of X; one row, the difference, if y has one of two classes per sample.
    intercept_ : ndarray of shape (n_labels,)
        Intercepts minus the intercept of the threshold; zero if
        ``fit_intercept=False``. A single intercept, as for ``coef_``, if y has one of
        two classes per sample.
    classes_ : ndarray of shape (n_labels,)
        Numbers of the labels, or the classes if y has one class per sample.
    multilabel_ : bool
        Whether y was an indicator matrix.
    alpha_ : float
        Strength of the penalty in the fit.
    penalty_factor_ : ndarray of shape (n_features,)
        Factors f in the penalty ``sum_j f_j w_j² / 2``: ``penalty_factor``, times the
        squared scales of the features with ``alpha="auto"``.
    objective_ : float
        Objective at the coefficients. The threshold's coefficients are minus the sum of
        ``coef_`` over labels divided by n_labels + 1, as at every optimum.
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
    MulticlassHingeClassifier : The analogous model for one label per sample.
    sklearn.multiclass.OneVsRestClassifier : Fits one binary classifier for each label.

    Notes
    -----
    If labels are noisy, the worst label of each sample cannot be separated from the
    other labels, and the optimum with ``reduction="max"`` predicts few labels or none
    at any ``alpha``. Fitting warns if the predictions for the training samples miss
    more relevant labels than they find.

    The threshold is an additional label in the sense of Crammer and Singer (2003): it
    has to be ranked below all relevant and above all irrelevant labels. The sum of the
    two hinges is an upper bound of their ranking loss.

    If y has one class per sample instead of an indicator matrix, no threshold is needed
    and :class:`MulticlassHingeClassifier` has the same loss.

    With ``alpha="auto"`` the squared scale of a feature is its variance divided by the
    share of nonzero entries. ``alpha_`` is ``k d / n`` for an L2 penalty and ``k
    sqrt(ln(n_features) / n)`` for an L1 penalty, where n is the sum of the sample
    weights, d the mean number of nonzero entries of a sample, and k depends on the
    loss; the user guide lists k. Large dense data are not copied for the scales, but
    the entries of sparse data are.

    References
    ----------
    K. Crammer, Y. Singer (2003), A Family of Additive Online Algorithms for Category
    Ranking, JMLR 3. J. Yu (2009), New Quasi-Newton Optimization Methods for Machine
    Learning, PhD thesis, Australian National University: section 3.5.4.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn_subqn import MultilabelHingeClassifier
    >>> X, y = make_multilabel_classification(random_state=0)
    >>> clf = MultilabelHingeClassifier(alpha=1e-2).fit(X, y)
    >>> bool(clf.dual_gap_ <= 1e-3 * clf.objective_)
    True
    >>> clf.predict(X[:2])
    array([[0, 0, 1, 1, 1],
           [0, 0, 1, 0, 0]])
    """

    _may_have_no_penalty, _takes_collections = True, True

    alpha: float | str = "auto"
    _: KW_ONLY
    reduction: str = "mean"
    label_cost: Any = None
    threshold: bool = True
    penalty_factor: Any = None
    solver: str = "auto"
    fit_intercept: bool = True
    tol: float = 1e-3
    max_iter: int = 1000
    warm_start: bool = False
    memory: int = 15
    solver_options: Mapping[str, Any] | None = None
    n_jobs: int | None = None
    callback: Callback | None = None
    verbose: int = 0

    @unchanged_on_failure
    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        coef_init: Any = None,
        intercept_init: Any = None,
    ) -> MultilabelHingeClassifier:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data. float64 and float32 arrays and CSR matrices of them are used
            without a copy. Dask arrays and dataframes stay where they are, with ``y``
            and ``sample_weight`` in the same blocks; :class:`RowBlocks` are read in
            blocks.
        y : {array-like, sparse matrix} of shape (n_samples, n_labels) or (n_samples,)
            Indicators of labels, 0 or 1, or one class per sample.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Non-negative weights of the samples.
        coef_init : array-like, default=None
            Initial coefficients, of the shape of ``coef_``, or (n_features,) if it has
            one row. They take precedence over a warm start. They affect the time of the
            fit, not the solution.
        intercept_init : array-like, default=None
            Initial intercepts, of the shape of ``intercept_``.

        Returns
        -------
        self : MultilabelHingeClassifier
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            If parameters or data are invalid, or the fit overflows. A previously fitted
            estimator stays unchanged.

        Warns
        -----
        ConvergenceWarning
            If ``tol`` was not reached; the message states the gap.
        UserWarning
            If the optimum does not use the features, or if with ``reduction="max"`` and
            a threshold the model misses more relevant labels of the training samples
            than it finds; the message says what to change.
        """
        return self._fit(X, y, sample_weight, coef_init, intercept_init)

    def _combination(self) -> str:
        return f"reduction={self.reduction!r} with fit_intercept={self.fit_intercept}"

    def _check_parameters(self) -> None:
        check_option("reduction", self.reduction, ["mean", "max"])
        super()._check_parameters()

    def _store(self, problems: Problems, solutions: list[Solution]) -> None:
        super()._store(problems, solutions)
        (solution,) = solutions
        if solution.sums is not None and not solution.constant:
            self._warn_of_missed(*solution.sums)

    def _warn_of_missed(self, found: float, relevant: float) -> None:
        """Warn if predictions are closer to empty label sets than to the true labels.

        The distance counts differing labels: from no labels it is the number of labels
        found plus false positives, from the true labels the number missed plus false
        positives. The warning therefore means that more relevant labels are missed than
        found.
        """
        if found < 0.5 * relevant:
            share = found / relevant
            warnings.warn(
                f"{type(self).__name__} finds {share:.1%} of the relevant labels of "
                "its training samples, and misses the others: with reduction='max' "
                "only the worst label of each sample counts, which cannot be "
                "distinguished where labels are noisy. Take reduction='mean', in which "
                "all labels count.",
                UserWarning,
                stacklevel=user_level(),
            )

    def _instead(self) -> str:
        if not self.multilabel_:
            return "take class weights, or a logistic loss"
        if self.reduction == "mean":
            return "no linear function of these features separates the labels"
        return (
            "the worst label of each sample, which alone counts, cannot be "
            "distinguished from the others: take reduction='mean', in which all "
            "labels count"
        )

    def _encode(self, X: Any, y: Any, sample_weight: Any, **others: Any) -> Problems:
        if isinstance(y, list) and y and isinstance(y[0], list | tuple | set):
            # For lists of labels, scikit-learn's error names the transformer to use.
            type_of_target(y)
        names = column_names(y)
        X, y = self._checked(X, y)
        if y.ndim == 2:
            weights = check_sample_weight(sample_weight, X.shape[0])
            return self._problems(X, y, weights, names)
        weights, classes, *_ = check_weights(sample_weight, y, None)
        return self._problems(X, y, weights, classes)

    def _checked(self, X: Any, y: Any, *, reset: bool = True) -> tuple[Any, Any]:
        """Return X, and indicators of shape (n, l) or one class per sample."""
        X, y = self._check_X(X, y, reset=reset, several=True)
        kind = type_of_target(y)
        if kind == "multiclass-multioutput":
            dense = y.toarray() if sparse.issparse(y) else np.asarray(y)
            raise ValueError(
                "y must be an indicator matrix of 0 and 1, or one class per sample; "
                f"got an array of shape {dense.shape} with the values "
                f"{np.unique(dense)[:10].tolist()}."
            )
        check_classification_targets(y)
        if kind == "multilabel-indicator":
            return X, _indicators(y)
        return X, column_or_1d(y.toarray() if sparse.issparse(y) else y, warn=True)

    def _labels_in(self, y: Array) -> Array | None:
        return super()._labels_in(y) if y.ndim == 1 else None

    def _problems(
        self, X: Any, y: Array, weights: Floats, names: Any
    ) -> LinearProblems:
        """Return the problem for checked data, with the names of labels or classes."""
        if y.ndim == 2:
            labels = Axis("labels", np.arange(y.shape[1]) if names is None else names)
            return self._label_problem(X, y, weights, labels)
        classes = names
        costs = check_label_margins(self.label_cost, classes_axis(classes))
        if _are_margins(costs):
            costs = costs[1][:, np.newaxis] + costs[0]
            np.fill_diagonal(costs, 0.0)
        known = {"multilabel_": False}
        loss = DualLoss(Simplex(costs))
        return joint_classes(self._linear_model(), X, y, loss, weights, classes, known)

    def _label_problem(
        self, X: Any, targets: Array, weights: Floats, labels: Axis
    ) -> LinearProblems:
        """Return the problem for indicators of shape (n, l)."""
        n_labels = targets.shape[1]
        costs = check_label_margins(self.label_cost, labels)
        known = {"classes_": np.arange(n_labels), "multilabel_": True}
        data = self._linear_model(), X, [targets]
        if not _are_margins(costs):
            if self.threshold:
                raise ValueError(
                    f"label_cost of shape {costs.shape}, of pairs of labels, needs "
                    "threshold=False; with a threshold labels are compared with it "
                    f"only, and label_cost must have shape {(2, n_labels)}."
                )
            if self.reduction != "max":
                raise ValueError(
                    f"label_cost of shape {costs.shape}, of pairs of labels, needs "
                    f"reduction='max'; with reduction={self.reduction!r} it must have "
                    f"shape {(2, n_labels)}."
                )
            loss = DualLoss(LabelPairs(costs))
            return LinearProblems(*data, loss, weights, n_scores=n_labels, known=known)
        is_mean = self.reduction == "mean"
        hinge = DualLoss(LabelOrder(costs) if is_mean else KindsOfLabels(costs))
        if not self.threshold:
            return LinearProblems(*data, hinge, weights, n_scores=n_labels, known=known)
        # The threshold is the last score, which is subtracted.
        given = {"n_scores": n_labels + 1, "scores": Contrasts(n_labels + 1, base=-1)}
        kind = LinearProblems if is_mean else _ProblemsOfWorstLabels
        return kind(*data, hinge, weights, known=known, **given)

    @available_if(_has_threshold)
    @blockwise
    def predict(self, X: Any) -> Array:
        """Return the labels above the threshold, or the class with the largest score.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        y : ndarray of shape (n_samples, n_labels) or (n_samples,)
            Indicators 0 and 1, or classes where y had one per sample.
        """
        if getattr(self, "multilabel_", False):
            return (self._raw_scores(X) > 0.0).astype(np.int_)
        return super().predict(X)

    @blockwise
    def decision_function(self, X: Any) -> Array:
        """Return the scores of labels, from which the threshold is subtracted.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_labels) or (n_samples,)
            For two classes, the difference of the scores of the second and the first.
        """
        if getattr(self, "multilabel_", False):
            return self._raw_scores(X)
        return super().decision_function(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class _ProblemsOfWorstLabels(LinearProblems):
    """Problems with a threshold; solutions have the weights of recovered labels."""

    def problem(self, index: int, objective: Objective) -> Problem:
        sums = partial(objective.risk.sums_of, _labels_found)
        return super().problem(index, objective)._replace(sums=sums)


def _labels_found(scores: Floats, targets: Any, weights: Floats) -> Floats:
    """Return the total weights of relevant labels above the threshold, and of all."""
    relevant = targets > 0
    found = relevant & (scores[:, :-1] > scores[:, -1:])
    return np.array([weights @ each.sum(axis=1) for each in (found, relevant)])


def _are_margins(costs: Floats) -> bool:
    """Whether costs are margins of labels, not costs of pairs."""
    return len(costs) == 2


def _indicators(y: Any) -> npt.NDArray[np.uint8]:
    dense = y.toarray() if sparse.issparse(y) else np.asarray(y)
    relevant = dense != 0
    if np.any(dense[relevant] != 1):
        raise ValueError(
            "y must be an indicator matrix of 0 and 1, or of booleans; got the values "
            f"{np.unique(dense)[:10].tolist()}."
        )
    return np.ascontiguousarray(relevant, dtype=np.uint8)

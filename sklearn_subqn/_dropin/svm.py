"""Linear support vector machines with scikit-learn's parameters."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np

from .._checks import (
    Weighed,
    as_sample_weights,
    check_number,
    check_sample_weight,
    check_weights,
    class_factors,
)
from .._checks.signatures import with_parameters
from .._core.arrays import Array, Floats
from .._core.losses import BINARY_LOSSES, DualLoss, Simplex, regression_losses
from .._core.regularizers import L2, ElasticNet, Regularizer
from .._estimators.classifier import LinearClassifier
from .._estimators.sparse_coefficients import densify, sparsify
from .._problems import LinearProblems, class_problems, joint_classes
from ._reading import SumOfLosses
from ._shared import DropIn, DropInRegressor, warn

_WITHOUT_EFFECT = {
    "dual": "primal and dual have the same solution.",
    "intercept_scaling": "the intercept is not penalized.",
}


@with_parameters()
class LinearSVC(DropIn, LinearClassifier):  # type: ignore[misc]
    """Linear support vector classifier with scikit-learn's parameters.

    Minimizes ``Omega(w) + C * sum_i s_i loss_i`` with ``Omega(w) = ||w||² / 2`` or
    ``||w||_1``, one class against the rest, and reports a proven bound on the distance
    from the optimum. Change the import in a script written for
    :class:`sklearn.svm.LinearSVC`; the notes list the differences.

    Parameters
    ----------
    penalty : {"l1", "l2"}, default="l2"
        Omega.
    loss : {"hinge", "squared_hinge"}, default="squared_hinge"
        ``max(0, 1 - y f(x))`` or its square. All combinations with ``penalty`` are
        supported.
    dual : "auto" or bool, default="auto"
        Without effect, since primal and dual have the same solution.
    tol : float, default=1e-4
        Stop when the proven gap is at most ``tol`` times the objective.
    C : float, default=1.0
        Factor on the losses, positive.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        "crammer_singer": the joint hinge ``max_j (1[j != y] + z_j - z_y)`` of the
        scores z of all classes, with L2, whatever ``penalty`` and ``loss`` are.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is not penalized.
    intercept_scaling : float, default=1
        Without effect, since the intercept is not penalized.
    class_weight : dict, "balanced" or None, default=None
        Factors on ``C`` for the samples of each class. With several classes and "ovr",
        only samples of the positive class get its factor and all other samples the
        factor one, as in scikit-learn.
    verbose : int, default=0
        Print progress at some iterations if 1, at every iteration if larger.
    random_state : int, RandomState instance or None, default=None
        Without effect: nothing is random.
    max_iter : int, default=1000
        Limit on the number of iterations per binary problem.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features, with the dtype of X; a CSR matrix after ``sparsify``.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts; zero if ``fit_intercept=False``.
    classes_ : ndarray of shape (n_classes,)
        The classes with positive total weight.
    objective_ : float or ndarray of shape (n_classes,)
        Objective at the coefficients as above; with "ovr" one for each class if there
        are more than two.
    dual_gap_ : float or ndarray of shape (n_classes,)
        ``objective_ - dual_gap_`` is a proven lower bound of the optimum, up to
        rounding in float64.
    n_iter_ : int
        Number of iterations, the largest of all binary problems.
    history_ : list of History
        For each binary problem the objective, lower bound, passes over the data and
        seconds after each iteration. See :class:`ConvergenceDisplay`.
    plan_ : str or list of str
        How each problem was solved.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    SubLBFGSLinearSVC : The same model by ``alpha = 1 / (C * sum_i s_i)``, with a choice
        of solvers.

    Notes
    -----
    Differences from scikit-learn: the intercept is not penalized, so that with
    ``fit_intercept=True`` coefficients are not exactly the same; ``tol`` is a proven
    relative gap; ``penalty="l1"`` can be combined with ``loss="hinge"``; results do not
    depend on the order of the rows.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_subqn.svm import LinearSVC
    >>> X, y = make_classification(random_state=0)
    >>> clf = LinearSVC(C=0.1).fit(X, y)
    >>> bool(clf.dual_gap_ <= 1e-4 * clf.objective_)
    True
    >>> clf.score(X, y)
    0.95
    """

    _original = "sklearn.svm", "LinearSVC"

    sparsify = sparsify
    densify = densify
    _without_effect = _WITHOUT_EFFECT
    _weaker = "increase C or decrease tol"

    penalty: str = "l2"
    loss: str = "squared_hinge"
    _: KW_ONLY
    dual: Any = "auto"
    tol: float = 1e-4
    C: float = 1.0
    multi_class: str = "ovr"
    fit_intercept: bool = True
    intercept_scaling: float = 1
    class_weight: Any = None
    verbose: int = 0
    random_state: Any = None
    max_iter: int = 1000

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.multi_class == "crammer_singer" and self._is_set("penalty"):
            warn(
                f"penalty={self.penalty!r} has no effect with "
                "multi_class='crammer_singer', whose penalty is L2."
            )

    def _regularizer(self, n_coef: int) -> Regularizer:
        if self.penalty == "l1" and self.multi_class == "ovr":
            return ElasticNet(n_coef)
        return L2(n_coef)

    def _encode(self, X: Any, y: Any, sample_weight: Any, **others: Any) -> Any:
        X, y = self._check_X(X, y, reset=True)
        weighed = check_weights(sample_weight, y, self.class_weight)
        weights, classes, *_ = weighed
        data = self._linear_model(), X, y
        if self.multi_class == "crammer_singer":
            loss = DualLoss(Simplex(1.0 - np.eye(len(classes))))
            reading = SumOfLosses([weighed.total])
            return joint_classes(*data, loss, weights, classes, reading=reading)
        by_class = self._row_weights(y, sample_weight, weighed)
        with np.errstate(over="ignore"):
            totals = [float(each.sum()) for each in by_class]
        # Classes with the same weights share their sizes of columns.
        checked = {id(each): check_sample_weight(each, len(y)) for each in by_class}
        shares = [checked[id(each)] for each in by_class]
        loss, reading = BINARY_LOSSES[self.loss], SumOfLosses(totals)
        return class_problems(*data, loss, shares, classes, reading=reading)

    def _row_weights(
        self, y: Array, sample_weight: Any, weighed: Weighed
    ) -> list[Floats]:
        """Return the row weights for each problem."""
        _, classes, own, _ = weighed
        if len(classes) == 2 or self.class_weight is None:
            return [own] * (1 if len(classes) == 2 else len(classes))
        weights = as_sample_weights(sample_weight, len(y)) * (own > 0.0)
        shares = check_sample_weight(weights, len(y))
        factors = class_factors(self.class_weight, classes, y, shares)
        pairs = zip(classes, factors, strict=True)
        return [weights * np.where(y == label, factor, 1.0) for label, factor in pairs]


@with_parameters(kw_only=True)
class LinearSVR(DropInRegressor):
    """Linear support vector regression with scikit-learn's parameters.

    Minimizes ``||w||² / 2 + C * sum_i s_i loss_i`` and reports a proven bound on the
    distance from the optimum. Change the import in a script written for
    :class:`sklearn.svm.LinearSVR`; the notes list the differences.

    Parameters
    ----------
    epsilon : float, default=0.0
        Half-width of the tube in which residuals have no loss, in units of y,
        non-negative.
    tol : float, default=1e-4
        Stop when the proven gap is at most ``tol`` times the objective.
    C : float, default=1.0
        Factor on the losses, positive.
    loss : {"epsilon_insensitive", "squared_epsilon_insensitive"}, \
            default="epsilon_insensitive"
        ``max(0, |y - f(x)| - epsilon)`` or its square.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is not penalized.
    intercept_scaling : float, default=1.0
        Without effect, since the intercept is not penalized.
    dual : "auto" or bool, default="auto"
        Without effect, since primal and dual have the same solution.
    verbose : int, default=0
        Print progress at some iterations if 1, at every iteration if larger.
    random_state : int, RandomState instance or None, default=None
        Without effect: nothing is random.
    max_iter : int, default=1000
        Limit on the number of iterations.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features, with the dtype of X.
    intercept_ : ndarray of shape (1,)
        Intercept; zero if ``fit_intercept=False``.
    objective_ : float
        Objective at the coefficients, as above.
    dual_gap_ : float
        ``objective_ - dual_gap_`` is a proven lower bound of the optimum, up to
        rounding in float64.
    n_iter_ : int
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
    BMRMRegressor : The same model, other losses and penalties, with a choice of
        solvers.

    Notes
    -----
    Differences from scikit-learn: the intercept is not penalized, ``tol`` is a proven
    relative gap, and results do not depend on the order of the rows.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from sklearn_subqn.svm import LinearSVR
    >>> X, y = make_regression(n_features=4, noise=1.0, random_state=0)
    >>> model = LinearSVR(C=10.0).fit(X, y)
    >>> bool(model.dual_gap_ <= 1e-4 * model.objective_)
    True
    >>> round(model.score(X, y), 3)
    1.0
    """

    _original = "sklearn.svm", "LinearSVR"
    _without_effect = _WITHOUT_EFFECT
    _weaker = "increase C or decrease tol"

    epsilon: float = 0.0
    tol: float = 1e-4
    C: float = 1.0
    loss: str = "epsilon_insensitive"
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    dual: Any = "auto"
    verbose: int = 0
    random_state: Any = None
    max_iter: int = 1000

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_number("epsilon", self.epsilon, low=0.0)

    def _problem(self, X: Any, y: Floats, weights: Floats, total: float) -> Any:
        loss = regression_losses(epsilon=float(self.epsilon))[self.loss]
        data = self._linear_model(), X, [y], loss, weights
        given: Any = {"single": True, "keeps_axis": True}
        return LinearProblems(*data, reading=SumOfLosses([total]), **given)

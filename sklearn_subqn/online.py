"""Linear models for streams and mini-batches, by online quasi-Newton methods."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ._checks import (
    check_classes,
    check_number,
    check_option,
    check_sample_weight,
    check_targets,
    check_weights,
    warn_of_unused,
)
from ._checks.signatures import with_parameters
from ._checks.state import unchanged_on_failure
from ._core.arrays import Array, Floats
from ._core.losses import regression_losses
from ._core.names import check_same_rows
from ._core.online.losses_with_curvature import LARGEST_COUNT, OfScores, OnlineLoss
from ._estimators.block_methods import blockwise
from ._estimators.classifier import (
    ScoringClassifier,
    predict_log_proba,
    predict_proba,
)
from ._estimators.export import coef_table, to_sklearn
from ._estimators.predictions import unrounded_scores
from ._estimators.regressor import ScoringRegressor
from ._solving.callbacks import FitTask, with_callbacks
from ._streams.classes import (
    BINARY,
    class_weighted,
    factors_of_classes,
    targets_of_classes,
)
from ._streams.epochs import OnlineEstimator
from ._streams.weights import stream_weights, unit_of

_OF_NUMBERS = [
    name for name, loss in regression_losses().items() if OfScores.takes(loss)
]


@with_parameters(kw_only=True)
class OnlineLBFGSClassifier(ScoringClassifier, OnlineEstimator):
    """Linear classifier for mini-batches or a stream, without tuning.

    Minimizes ``alpha * (l1_ratio * ||w||_1 + (1 - l1_ratio) / 2 * ||w||²)`` plus the
    mean loss, by one step for each batch. The default method needs no step size: it
    estimates the location and scale of features, the curvature, and the length of each
    step. Features need no scaling.

    Parameters
    ----------
    loss : str, default="log_loss"
        "log_loss", "hinge", "squared_hinge" or "modified_huber", or another loss of
        :class:`BMRMClassifier` with one score per sample and bounded curvature. For
        more than two classes "log_loss" is multinomial (softmax); for the other losses
        the binary losses of each class against the rest are summed. Probabilities are
        available for "log_loss", and for "modified_huber" as ``(1 + clip(score, -1, 1))
        / 2``, normalized over several classes (Zhang 2004).
    alpha : float, default=1e-5
        Strength of the penalty relative to the *mean* loss, non-negative. The penalty
        depends on the units of features: take a smaller value if standard deviations
        are far below one.
    l1_ratio : float, default=0.0
        Share of the L1 norm in the penalty, in [0, 1]. With "auto", coefficients become
        exactly zero; the other solvers use subgradients, with which no coefficient
        becomes exactly zero.
    solver : str, default="auto"
        Method that makes the steps.

        - "auto": online L-BFGS over a diagonal metric of the centered features, with
          measured steps and an average of iterates that restarts when the stream
          changes. Recommended; the other solvers are for comparison.
        - "olbfgs", "obfgs": online (L)BFGS (Schraudolph, Yu and Günter 2007).
        - "res-bfgs", "res-lbfgs": regularized stochastic BFGS (Mokhtari and Ribeiro
          2014).
        - "sgd", "smd", "ng", "momentum", "nesterov", "adagrad", "rmsprop", "adam":
          stochastic gradient descent, stochastic meta-descent, natural gradient, and
          the methods of these names. "obfgs", "res-bfgs" and "ng" keep a matrix of all
          pairs of parameters.
    batch_size : int, default=256
        Largest number of rows in a step: ``fit``, and every call of ``partial_fit``,
        divide their rows into the smallest number of batches of about equal size. A
        call of ``partial_fit`` with fewer rows is a smaller batch; rows are not kept
        for a later call.
    eta0 : float or None, default=None
        Size of the first steps; None for the solver's default, see the notes.
    tau : float or None, default=None
        Number of batches after which step sizes decrease; None for the solver's
        default. Not for "smd", which adapts the step size of each coefficient instead.
    memory : int, default=10
        Number of displacement pairs of "auto", "olbfgs" and "res-lbfgs", at least 1.
        "auto" keeps fewer if there are many features relative to the entries of a
        batch.
    average : bool, default=True
        Whether the model is an average of iterates instead of the last iterate.
    solver_options : dict or None, default=None
        Further options of the solver by name, such as the parameters in its
        publication. The table in `docs/methods.md` lists the options of each solver,
        with ranges and defaults; unknown options raise an error.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is not penalized.
    max_iter : int, default=100
        Limit on the number of passes over the data in ``fit``, at least 1.
    tol : float, default=3e-2
        ``fit`` stops when the norm of a running average of the batches' gradients, over
        about one epoch, has stayed below ``tol`` times the norm of the first gradient
        (of the first fit, for warm starts) for one epoch and at least 30 batches (Yu
        2009, section 5.3.3). "auto" uses the norm of its diagonal metric, which does
        not depend on the features' scales. With ``early_stopping``, ``tol`` is the
        smallest change of the score that counts as an improvement.
    early_stopping : bool, default=False
        Whether to hold out ``validation_fraction`` of the rows, to stop when their
        score has not improved for ``n_iter_no_change`` epochs, and to keep the best
        model; in ``fit`` only. ``partial_fit`` learns from all its rows and never
        stops, since a stream has no epochs; the model can be scored on held-out rows
        between calls.
    validation_fraction : float, default=0.1
        Share of the rows held out, in (0, 1).
    n_iter_no_change : int, default=5
        Number of epochs without improvement, at least 1; more if they have fewer than
        30 batches in total.
    random_state : int, RandomState instance or None, default=0
        Seed of the order of rows in ``fit``. None draws a new seed for each fit.
    warm_start : bool, default=False
        Whether ``fit`` starts from the previous solution, if there is one for the same
        classes and features.
    callback : callable or None, default=None
        Called after every epoch of ``fit`` with a named tuple of ``n_iter`` (the number
        of epochs), ``objective`` (the minimum of ``loss_curve_``), ``dual_gap``
        (infinite), ``passes`` (equal to ``n_iter``) and ``seconds``; fitting stops if
        it returns True.
    verbose : int, default=0
        Print progress of ``fit`` after epochs 1, 2, 4, 8, ... if 1, after each if
        larger.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the samples of each class; "balanced" in ``fit`` only.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features, with the dtype of X.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts; zero if ``fit_intercept=False``.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    n_iter_ : int
        Number of epochs of ``fit``; after ``partial_fit``, 1.
    t_ : int
        Number of batches learned from.
    objective_ : float
        After ``fit``, the objective at the coefficients, over the training rows.
        ``partial_fit`` removes this attribute and the following attributes, which do
        not describe its model.
    dual_gap_ : float
        Infinite, since no lower bound of the optimum is known.
    history_ : list of one History
        The minimum of the initial objective and ``loss_curve_``, passes over the rows
        and seconds of each epoch. See :class:`ConvergenceDisplay`.
    plan_ : str
        The solver.
    loss_curve_ : list of float
        After ``fit``: for each epoch the mean objective of its batches, each before its
        step.
    validation_scores_ : list of float or None
        After ``fit`` with ``early_stopping``: scores after each epoch.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    OnlineLBFGSRegressor : The same method for regression.
    SubLBFGSLinearSVC, L1LogisticOWLQN : Batch estimators with a proven gap.
    sklearn.linear_model.SGDClassifier : Needs scaled features and a step size.

    Notes
    -----
    Steps of "auto" go a fraction ``eta0 / sqrt(1 + t / tau)`` of the way to the
    minimizer of the batch's quadratic model along the direction, by default with eta0 =
    1 and tau = 10. Step sizes of the other solvers are ``eta0 * tau / (tau + t)``, or
    eta0 without tau. Their defaults suit standardized features and targets: eta0 is 1
    for "olbfgs" and "obfgs", 0.3 for RES and "adagrad", 0.1 for all others; tau is 10
    for "ng", none for all others. The papers have smaller defaults, or no defaults.

    Pickling keeps the complete state: a model that is pickled in mid-stream continues
    exactly as without pickling. A call that raises an error changes nothing. Apart from
    X, the model needs memory for about ``2 * memory + 15`` vectors of the size of
    ``coef_``; after sparse batches with very many columns for 6 vectors, of which
    pickles contain only the columns with entries so far.

    References
    ----------
    N. N. Schraudolph, J. Yu, S. Günter (2007), A Stochastic Quasi-Newton Method for
    Online Convex Optimization, AISTATS. J. Yu (2009), New Quasi-Newton Optimization
    Methods for Machine Learning, PhD thesis, Australian National University: chapter
    5. R. H. Byrd, S. L. Hansen, J. Nocedal, Y. Singer (2016), A Stochastic Quasi-Newton
    Method for Large-Scale Optimization, SIAM J. Optim. 26. T. Zhang (2004), Solving
    Large Scale Linear Prediction Problems Using Stochastic Gradient Descent Algorithms,
    ICML: probabilities of "modified_huber".

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_subqn import OnlineLBFGSClassifier
    >>> X, y = make_classification(n_samples=2000, random_state=0)
    >>> clf = OnlineLBFGSClassifier()
    >>> for start in range(0, 2000, 100):
    ...     rows = slice(start, start + 100)
    ...     clf = clf.partial_fit(X[rows] * 1000.0, y[rows], classes=[0, 1])
    >>> clf.score(X * 1000.0, y) > 0.9
    True
    """

    predict_proba = predict_proba
    predict_log_proba = predict_log_proba

    class_weight: Any = None

    @unchanged_on_failure
    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        coef_init: Any = None,
        intercept_init: Any = None,
    ) -> OnlineLBFGSClassifier:
        """Fit the model in epochs, which visit all rows once in a new order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Non-negative weights of the samples. Rows of weight zero are ignored.
        coef_init : array-like, default=None
            Initial coefficients, of the shape of ``coef_``, or (n_features,) if it has
            one row. They take precedence over a warm start.
        intercept_init : array-like, default=None
            Initial intercepts, of the shape of ``intercept_``.

        Returns
        -------
        self : OnlineLBFGSClassifier
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            If parameters or data are invalid, or the method diverges. A previously
            fitted estimator stays unchanged.

        Warns
        -----
        ConvergenceWarning
            If ``max_iter`` was reached before ``tol``.
        """
        self._check_parameters()
        previous = self._previous()
        check_same_rows(X, y=y, sample_weight=sample_weight)
        raw_X, raw_y = X, y
        X, y = self._check_X(X, y, reset=True)
        weights, classes, *_ = check_weights(sample_weight, y, self.class_weight)
        factors = []
        if isinstance(self.class_weight, dict):
            factors = [factors_of_classes(y, self.class_weight)]
        unit = unit_of(sample_weight, *factors)
        self.classes_ = classes
        known = np.isin(y, classes)
        if not known.all():
            X, y, weights = X[known], y[known], weights[known]
        targets, loss, n_outputs = self._encoded(y)
        task = FitTask(self, 1, self.max_iter, raw_X, raw_y, sample_weight)
        init = coef_init, intercept_init
        self._fit_epochs(
            X, targets, weights, loss, n_outputs, previous, y, unit, task, init
        )
        return self

    @unchanged_on_failure
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        coef_init: Any = None,
        intercept_init: Any = None,
    ) -> OnlineLBFGSClassifier:
        """Learn from further rows, once and in their order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows of a stream.
        y : array-like of shape (n_samples,)
            Class labels.
        classes : array-like of shape (n_classes,), default=None
            All classes of the stream; required in the first call.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Non-negative weights of the samples, on the same scale in all calls. Rows of
            weight zero are ignored.
        coef_init : array-like, default=None
            Initial coefficients of the shape of ``coef_``, for example from another
            model; in the first call only.
        intercept_init : array-like, default=None
            Initial intercepts of the shape of ``intercept_``; in the first call only.

        Returns
        -------
        self : OnlineLBFGSClassifier
            The estimator.

        Raises
        ------
        TypeError, ValueError
            If parameters or data are invalid, y has a class that is not in ``classes``,
            or the method diverges. The model stays unchanged.
        """
        self._check_parameters_once()
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        check_same_rows(X, y=y, sample_weight=sample_weight)
        X, y = self._check_X(X, y, reset=first)
        if classes is not None and (first or not self._announced(classes)):
            announced = check_classes(classes)
            if first:
                if len(announced) < 2:
                    raise ValueError(
                        "This classifier needs at least 2 classes, got "
                        f"classes={classes!r}."
                    )
                check_classification_targets(announced)
                self.classes_ = announced
            elif announced.tolist() != self.classes_.tolist():
                raise ValueError(
                    f"`classes={classes!r}` is not the same as on last call to "
                    f"partial_fit, was: {self.classes_!r}."
                )
        targets, loss, n_outputs = self._encoded(y)
        weights = stream_weights(sample_weight, X.shape[0])
        if self.class_weight is not None:
            weights = class_weighted(y, weights, self.class_weight, self.classes_)
        init = coef_init, intercept_init
        self._partial_fit(X, targets, weights, loss, n_outputs, init)
        return self

    def _check_parameters(self) -> None:
        check_option("loss", self.loss, list(BINARY))
        super()._check_parameters()

    def _encoded(self, y: Array) -> tuple[Floats, OnlineLoss, int | None]:
        return targets_of_classes(y, self.classes_, self.loss)

    def _announced(self, classes: Any) -> bool:
        """Whether the classes equal the known classes, in the same order."""
        return bool(np.ravel(classes).tolist() == self.classes_.tolist())


@with_parameters()
class OnlineLBFGSRegressor(ScoringRegressor, OnlineEstimator):
    """Linear regression for mini-batches or a stream, without tuning.

    Minimizes ``alpha * (l1_ratio * ||w||_1 + (1 - l1_ratio) / 2 * ||w||²)`` plus the
    mean loss, by one step for each batch. The default method needs no step size: it
    estimates the location and scale of features, the curvature, and the length of each
    step. Features need no scaling.

    Parameters
    ----------
    loss : str, default="squared_error"
        Loss of a prediction z for the target y.

        - "squared_error": ``(z - y)² / 2``.
        - "huber": the same up to ``|z - y| = epsilon``, linear beyond.
        - "absolute_error": ``|z - y|``.
        - "quantile": ``max(quantile * (y - z), (quantile - 1) * (y - z))``.
        - "poisson": ``exp(z) - y * z`` for y in [0, 1e20]; predictions are ``exp(z)``.
    alpha : float, default=1e-4
        Strength of the penalty relative to the *mean* loss, non-negative. The penalty
        depends on the units of features: take a smaller value if standard deviations
        are far below one.
    l1_ratio : float, default=0.0
        Share of the L1 norm in the penalty, in [0, 1]. With "auto", coefficients become
        exactly zero.
    solver : str, default="auto"
        Method that makes the steps.

        - "auto": online L-BFGS over a diagonal metric of the centered features, with
          measured steps and an average of iterates that restarts when the stream
          changes. Recommended; the other solvers are for comparison.
        - "olbfgs", "obfgs": online (L)BFGS (Schraudolph, Yu and Günter 2007).
        - "res-bfgs", "res-lbfgs": regularized stochastic BFGS (Mokhtari and Ribeiro
          2014).
        - "sgd", "smd", "ng", "momentum", "nesterov", "adagrad", "rmsprop", "adam":
          stochastic gradient descent, stochastic meta-descent, natural gradient, and
          the methods of these names. "obfgs", "res-bfgs" and "ng" keep a matrix of all
          pairs of parameters.
    batch_size : int, default=256
        Largest number of rows in a step: ``fit``, and every call of ``partial_fit``,
        divide their rows into the smallest number of batches of about equal size. A
        call of ``partial_fit`` with fewer rows is a smaller batch; rows are not kept
        for a later call.
    eta0 : float or None, default=None
        Size of the first steps; None for the solver's default, see the notes of
        :class:`OnlineLBFGSClassifier`.
    tau : float or None, default=None
        Number of batches after which step sizes decrease; None for the solver's
        default. Not for "smd", which adapts the step size of each coefficient instead.
    memory : int, default=10
        Number of displacement pairs of "auto", "olbfgs" and "res-lbfgs", at least 1.
        "auto" keeps fewer if there are many features relative to the entries of a
        batch.
    average : bool, default=True
        Whether the model is an average of iterates instead of the last iterate.
    solver_options : dict or None, default=None
        Further options of the solver by name, such as the parameters in its
        publication. The table in `docs/methods.md` lists the options of each solver,
        with ranges and defaults; unknown options raise an error.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is not penalized.
    max_iter : int, default=100
        Limit on the number of passes over the data in ``fit``, at least 1.
    tol : float, default=3e-2
        ``fit`` stops when the norm of a running average of the batches' gradients, over
        about one epoch, has stayed below ``tol`` times the norm of the first gradient
        (of the first fit, for warm starts) for one epoch and at least 30 batches (Yu
        2009, section 5.3.3). "auto" uses the norm of its diagonal metric, which does
        not depend on the features' scales. With ``early_stopping``, ``tol`` is the
        smallest change of the score that counts as an improvement.
    early_stopping : bool, default=False
        Whether to hold out ``validation_fraction`` of the rows, to stop when their
        score has not improved for ``n_iter_no_change`` epochs, and to keep the best
        model; in ``fit`` only. ``partial_fit`` learns from all its rows and never
        stops, since a stream has no epochs; the model can be scored on held-out rows
        between calls.
    validation_fraction : float, default=0.1
        Share of the rows held out, in (0, 1).
    n_iter_no_change : int, default=5
        Number of epochs without improvement, at least 1; more if they have fewer than
        30 batches in total.
    random_state : int, RandomState instance or None, default=0
        Seed of the order of rows in ``fit``. None draws a new seed for each fit.
    warm_start : bool, default=False
        Whether ``fit`` starts from the previous solution, if there is one for the same
        features.
    callback : callable or None, default=None
        Called after every epoch of ``fit`` with a named tuple of ``n_iter`` (the number
        of epochs), ``objective`` (the minimum of ``loss_curve_``), ``dual_gap``
        (infinite), ``passes`` (equal to ``n_iter``) and ``seconds``; fitting stops if
        it returns True.
    verbose : int, default=0
        Print progress of ``fit`` after epochs 1, 2, 4, 8, ... if 1, after each if
        larger.
    epsilon : float, default=1.35
        The residual above which "huber" is linear, in units of the target, positive.
    quantile : float, default=0.5
        Level of the loss "quantile", in (0, 1).

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features, with the dtype of X.
    intercept_ : ndarray of shape (1,)
        Intercept; zero if ``fit_intercept=False``.
    n_iter_ : int
        Number of epochs of ``fit``; after ``partial_fit``, 1.
    t_ : int
        Number of batches learned from.
    objective_ : float
        After ``fit``, the objective at the coefficients, over the training rows.
        ``partial_fit`` removes this attribute and the following attributes, which do
        not describe its model.
    dual_gap_ : float
        Infinite, since no lower bound of the optimum is known.
    history_ : list of one History
        The minimum of the initial objective and ``loss_curve_``, passes over the rows
        and seconds of each epoch. See :class:`ConvergenceDisplay`.
    plan_ : str
        The solver.
    loss_curve_ : list of float
        After ``fit``: for each epoch the mean objective of its batches, each before its
        step.
    validation_scores_ : list of float or None
        After ``fit`` with ``early_stopping``: scores after each epoch.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has names that are all strings.

    See Also
    --------
    OnlineLBFGSClassifier : The same method for classification, with references.
    sklearn.linear_model.SGDRegressor : Needs scaled features and a step size.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from sklearn_subqn import OnlineLBFGSRegressor
    >>> X, y = make_regression(n_samples=2000, noise=1.0, random_state=0)
    >>> reg = OnlineLBFGSRegressor()
    >>> for start in range(0, 2000, 100):
    ...     rows = slice(start, start + 100)
    ...     reg = reg.partial_fit(X[rows] * 1000.0, y[rows])
    >>> reg.score(X * 1000.0, y) > 0.99
    True
    """

    to_sklearn = to_sklearn
    coef_table = coef_table

    # Predictions have no ties of classes that rounding has to keep.
    _scores_by = staticmethod(unrounded_scores)

    loss: str = "squared_error"
    _: KW_ONLY
    alpha: float = 1e-4
    epsilon: float = 1.35
    quantile: float = 0.5

    @unchanged_on_failure
    @with_callbacks
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        coef_init: Any = None,
        intercept_init: Any = None,
    ) -> OnlineLBFGSRegressor:
        """Fit the model in epochs, which visit all rows once in a new order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Non-negative weights of the samples. Rows of weight zero are ignored.
        coef_init : array-like, default=None
            Initial coefficients, of the shape of ``coef_``, or (n_features,) if it has
            one row. They take precedence over a warm start.
        intercept_init : array-like, default=None
            Initial intercepts, of the shape of ``intercept_``.

        Returns
        -------
        self : OnlineLBFGSRegressor
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            If parameters or data are invalid, or the method diverges. A previously
            fitted estimator stays unchanged.

        Warns
        -----
        ConvergenceWarning
            If ``max_iter`` was reached before ``tol``.
        """
        self._check_parameters()
        previous = self._previous()
        check_same_rows(X, y=y, sample_weight=sample_weight)
        raw_X, raw_y = X, y
        X, targets = self._checked_targets(X, y, reset=True)
        weights = check_sample_weight(sample_weight, X.shape[0])
        loss, unit = self._loss(), unit_of(sample_weight)
        task = FitTask(self, 1, self.max_iter, raw_X, raw_y, sample_weight)
        init = coef_init, intercept_init
        self._fit_epochs(
            X, targets, weights, loss, None, previous, None, unit, task, init
        )
        return self

    @unchanged_on_failure
    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        coef_init: Any = None,
        intercept_init: Any = None,
    ) -> OnlineLBFGSRegressor:
        """Learn from further rows, once and in their order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows of a stream.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Non-negative weights of the samples, on the same scale in all calls. Rows of
            weight zero are ignored.
        coef_init : array-like, default=None
            Initial coefficients of the shape of ``coef_``, for example from another
            model; in the first call only.
        intercept_init : array-like, default=None
            Initial intercepts of the shape of ``intercept_``; in the first call only.

        Returns
        -------
        self : OnlineLBFGSRegressor
            The estimator.

        Raises
        ------
        TypeError, ValueError
            If parameters or data are invalid, or the method diverges. The model stays
            unchanged.
        """
        self._check_parameters_once()
        check_same_rows(X, y=y, sample_weight=sample_weight)
        X, targets = self._checked_targets(X, y, reset=not hasattr(self, "_state"))
        weights = stream_weights(sample_weight, X.shape[0])
        init = coef_init, intercept_init
        self._partial_fit(X, targets, weights, self._loss(), None, init)
        return self

    @blockwise
    def predict(self, X: Any) -> Array:
        """Return the predicted target of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Predicted targets; for "poisson" exponentials of the scores.
        """
        check_is_fitted(self)
        scores = self._raw_scores(X)
        return np.exp(scores) if self.loss == "poisson" else scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.loss == "poisson"
        return tags

    def _check_parameters(self) -> None:
        check_option("loss", self.loss, _OF_NUMBERS)
        check_number("epsilon", self.epsilon, low=0.0, low_included=False)
        super()._check_parameters()
        warn_of_unused(
            self,
            {
                "quantile": (0.5, "loss", ["quantile"]),
                "epsilon": (1.35, "loss", ["huber"]),
            },
        )

    def _loss(self) -> OfScores:
        parameters = {"quantile": float(self.quantile), "epsilon": float(self.epsilon)}
        return OfScores(regression_losses(**parameters)[self.loss])

    def _checked_targets(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Floats]:
        X, y = self._check_X(X, y, reset=reset, numeric=True)
        targets = check_targets(y)
        if self.loss == "poisson" and targets.min() < 0.0:
            raise ValueError(
                f"loss='poisson' needs y >= 0, got values down to {targets.min():g}."
            )
        if self.loss == "poisson" and targets.max() > LARGEST_COUNT:
            raise ValueError(
                f"loss='poisson' needs y <= {LARGEST_COUNT:g}, got values up to "
                f"{targets.max():g}. Scale the targets."
            )
        return X, targets

    def _start_intercept(self, targets: Floats, weights: Floats) -> float:
        return self._loss().constant(targets, weights)

    def _coefficients(self, w: Floats) -> Array:
        coef: Array = super()._coefficients(w)[0]
        return coef

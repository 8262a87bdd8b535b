"""Methods of estimators that export fitted models to scikit-learn and to tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier, is_outlier_detector
from sklearn.linear_model import (
    GammaRegressor,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    RidgeClassifier,
    SGDClassifier,
    SGDOneClassSVM,
    TweedieRegressor,
)
from sklearn.multioutput import MultiOutputRegressor
from sklearn.preprocessing import LabelBinarizer
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

from .._core.arrays import Array
from .._core.names import Axis
from .offsets import warn_of_missing_offset
from .predictions import variance_power
from .tables import checked_names, checked_scale, coefficients, data_frame

# Estimators of scikit-learn with the same map from scores to probabilities.
_OF_LINKS = {
    "softmax": LogisticRegression,
    "one-against-rest": lambda: SGDClassifier(loss="log_loss"),
    "clipped": lambda: SGDClassifier(loss="modified_huber"),
}


def to_sklearn(self: Any) -> Any:
    """Return a fitted estimator of scikit-learn that is the same model.

    It has the same coefficients, intercepts, classes and feature names, and the same
    predictions and probabilities up to rounding. It does not need this package: tools
    that export models of scikit-learn, to ONNX, PMML or source code, can export it. Its
    parameters are scikit-learn's defaults, so fitting it again gives another model.

    Returns
    -------
    model : estimator
        - classifiers with probabilities by a softmax, or of two classes by the
          logistic function: :class:`~sklearn.linear_model.LogisticRegression`;
        - classifiers with probabilities of each class against the rest, or with the
          loss "modified_huber": :class:`~sklearn.linear_model.SGDClassifier` with the
          loss "log_loss" or "modified_huber";
        - other classifiers: :class:`~sklearn.svm.LinearSVC`, and classifiers of several
          labels: :class:`~sklearn.linear_model.RidgeClassifier`;
        - regressors, and rankers, whose scores it predicts:
          :class:`~sklearn.linear_model.LinearRegression`;
        - regressors with the loss "poisson", "gamma" or "tweedie":
          :class:`~sklearn.linear_model.PoissonRegressor`,
          :class:`~sklearn.linear_model.GammaRegressor` or
          :class:`~sklearn.linear_model.TweedieRegressor`, for several targets within
          :class:`~sklearn.multioutput.MultiOutputRegressor`;
        - outlier detectors: :class:`~sklearn.linear_model.SGDOneClassSVM`.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    ValueError
        If scikit-learn has no estimator with the same predictions: for probabilities of
        ordered classes by cumulative odds, sorted quantiles, and labels without a
        threshold.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_subqn import MulticlassHingeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = MulticlassHingeClassifier().fit(X, y)
    >>> clf.to_sklearn()
    LinearSVC()
    >>> bool((clf.to_sklearn().predict(X) == clf.predict(X)).all())
    True
    """
    check_is_fitted(self)
    if is_classifier(self):
        model = _classifier(self)
    elif is_outlier_detector(self):
        model = _outlier_detector(self)
    else:
        model = _regressor(self)
    return _of_features(self, model)


def coef_table(
    self: Any,
    X: Any = None,
    y: Any = None,
    sample_weight: Any = None,
    *,
    feature_names: Any = None,
    scale: Any = None,
    level: float = 0.95,
    **errors: Any,
) -> Any:
    """Return the coefficients as a table, the largest first.

    With the training data, the table has standard errors, tests and intervals, in the
    order of the features.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
        The training samples, for standard errors.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
        The training targets.
    sample_weight : array-like of shape (n_samples,), default=None
        The weights of the samples in the fit.
    feature_names : array-like of shape (n_features_in_,), default=None
        Names of the features, such as ``pipeline[:-1].get_feature_names_out()``. By
        default ``feature_names_in_``, or x0, x1, ... if X had no names.
    scale : array-like of shape (n_features_in_,), default=None
        Scales of the features, such as ``X.std(axis=0)``: coefficients times scales are
        effects, which do not depend on units and determine the order of the rows. Not
        allowed with X.
    level : float, default=0.95
        Confidence level of the intervals; only with X.
    **errors : dict
        Options of standard errors: ``kind``, ``groups``, ``offset``, ``dispersion``,
        ``weights``, ``reference``, ``n_resamples``, ``n_jobs`` and ``random_state`` of
        :func:`standard_errors`.

    Returns
    -------
    table : pandas.DataFrame
        A table with the columns "feature", "coefficient" and, with ``scale``, "effect".
        Tables of classifiers have a column "class" or "label"; for two classes it has
        the second class, for which scores are positive. Tables of regressors with
        several targets or quantiles have a column "output" or "quantile". If ``coef_``
        is sparse, only its stored entries have a row. Intercepts are in ``intercept_``.
        With X the columns are as in :meth:`CoefficientErrors.table`.

    Raises
    ------
    ImportError
        If pandas is not installed.
    NotFittedError
        If the estimator is not fitted.
    ValueError
        If the number of names or scales is not the number of features, or scales are
        negative or not finite; with X as in :func:`standard_errors`.

    See Also
    --------
    standard_errors : Covariances, and tests of hypotheses about coefficients.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_subqn import BMRMClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> table = BMRMClassifier().fit(X, y).coef_table(scale=X.std())
    >>> list(table.columns)
    ['feature', 'class', 'coefficient', 'effect']
    >>> table.feature[0]
    'petal width (cm)'
    """
    check_is_fitted(self)
    if X is not None:
        if scale is not None:
            raise ValueError("scale is for tables without X; leave it out.")
        # The import is local because these modules import this one.
        from .error_options import ErrorOptions
        from .fitted_model import fitted_attributes
        from .inferred import coefficient_errors

        options = ErrorOptions(feature_names=feature_names, **errors)
        warn_of_missing_offset(self, options.offset)
        data = X, y, sample_weight, options
        own, given = self._of_chosen(), fitted_attributes(self)
        return coefficient_errors(own, given, *data).table(level)
    if errors or y is not None or sample_weight is not None:
        names = [*errors, *["y"] * (y is not None)]
        raise ValueError(f"{', '.join(names)} need X, the samples of the fit.")
    n_features = self.n_features_in_
    if feature_names is None:
        feature_names = getattr(self, "feature_names_in_", None)
    coef = self.coef_
    columns = coefficients(
        coef if coef.ndim == 2 else np.atleast_2d(coef),
        _outputs(self),
        checked_names(feature_names, n_features),
        checked_scale(scale, n_features, Axis("features", feature_names)),
    )
    return data_frame(columns, "coef_table")


def _outputs(estimator: Any) -> tuple[str, Array] | None:
    """Return the kind of output that rows of coefficients have, and their names."""
    if is_classifier(estimator):
        classes = estimator.classes_
        if getattr(estimator, "multilabel_", False):
            return "label", classes
        return "class", classes[1:] if estimator.coef_.shape[0] == 1 else classes
    if estimator.coef_.ndim == 1 or is_outlier_detector(estimator):
        return None
    if getattr(estimator, "loss", None) == "quantile" and np.ndim(estimator.quantile):
        return "quantile", np.asarray(estimator.quantile)
    return "output", np.arange(len(estimator.coef_))


def _refuse(estimator: Any, reason: str) -> ValueError:
    return ValueError(
        f"scikit-learn has no estimator that is the same as this "
        f"{type(estimator).__name__}: {reason}"
    )


def _of_features(estimator: Any, model: Any) -> Any:
    """Return the model with the number and names of the features."""
    model.n_features_in_ = estimator.n_features_in_
    if hasattr(estimator, "feature_names_in_"):
        model.feature_names_in_ = estimator.feature_names_in_.copy()
    return model


def _copied(coef: Any) -> Any:
    """Return a copy of the coefficients."""
    return coef.copy() if sparse.issparse(coef) else np.array(coef, order="C")


def _intercept(estimator: Any) -> Array:
    return np.array(getattr(estimator, "intercept_", 0.0), dtype=np.float64)


def _classifier(estimator: Any) -> Any:
    if getattr(estimator, "multilabel_", False):
        return _label_classifier(estimator)
    model: Any = LinearSVC()
    if hasattr(estimator, "predict_proba"):
        link = estimator._link()
        if link not in _OF_LINKS:
            raise _refuse(
                estimator,
                f"its probabilities are {link}. Its scores are X @ coef_.T + "
                "intercept_, and it predicts the class of the largest.",
            )
        model = _OF_LINKS[link]()
    model.classes_ = estimator.classes_.copy()
    model.coef_ = _copied(estimator.coef_)
    model.intercept_ = np.atleast_1d(_intercept(estimator))
    several = isinstance(model, LogisticRegression)
    n_iter = int(np.max(estimator.n_iter_))
    model.n_iter_ = np.array([n_iter], dtype=np.int32) if several else n_iter
    return model


def _label_classifier(estimator: Any) -> Any:
    """Return a classifier of labels, each with its own score."""
    if not hasattr(estimator, "predict"):
        raise _refuse(
            estimator, "without a threshold it orders labels and predicts none."
        )
    model = RidgeClassifier()
    model.coef_, model.intercept_ = _copied(estimator.coef_), _intercept(estimator)
    model.n_iter_ = None
    labels = np.eye(2, len(model.coef_), dtype=np.int_)
    model._label_binarizer = LabelBinarizer(neg_label=-1).fit(labels)
    # In older releases ``classes_`` is a property of the model.
    if not hasattr(model, "classes_"):
        model.classes_ = model._label_binarizer.classes_
    return model


def _outlier_detector(estimator: Any) -> Any:
    model = SGDOneClassSVM()
    model.coef_ = np.atleast_2d(_copied(estimator.coef_))
    model.offset_ = np.atleast_1d(estimator.offset_ - _intercept(estimator))
    model.n_iter_ = int(np.max(estimator.n_iter_))
    return model


def _regressor(estimator: Any) -> Any:
    coef, intercept = _copied(estimator.coef_), _intercept(estimator)
    if _sorts(estimator) and len(coef) > 1:
        raise _refuse(
            estimator,
            "it sorts its quantiles. With set_params(crossing='allow') it does not.",
        )
    power = variance_power(estimator) if hasattr(estimator, "loss") else None
    if power is None:
        model: Any = LinearRegression()
        model.coef_, model.intercept_ = coef, intercept[()]
        return model
    if coef.ndim == 1:
        return _mean_regressor(estimator, power, coef, intercept[()])
    model = MultiOutputRegressor(_unfitted_mean_regressor(power))
    model.estimators_ = [
        _of_features(estimator, _mean_regressor(estimator, power, *each))
        for each in zip(coef, intercept, strict=True)
    ]
    return model


def _sorts(estimator: Any) -> bool:
    """Whether predictions are several sorted quantiles."""
    return (
        getattr(estimator, "loss", None) == "quantile"
        and np.ndim(estimator.quantile) > 0
        and estimator.crossing == "sort"
    )


def _unfitted_mean_regressor(power: float) -> Any:
    if power == 1.0:
        return PoissonRegressor()
    return GammaRegressor() if power == 2.0 else TweedieRegressor(power=power)


def _mean_regressor(estimator: Any, power: float, coef: Any, intercept: Any) -> Any:
    model = _unfitted_mean_regressor(power)
    model.coef_, model.intercept_ = coef, intercept
    model.n_iter_ = int(np.max(estimator.n_iter_))
    # ``fit`` of scikit-learn prepares this loss for ``predict``.
    model._base_loss = model._get_loss()
    return model

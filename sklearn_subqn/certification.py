"""Proven optimality gaps of linear models from any source."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_array, check_is_fitted

from ._blocks.row_blocks import RowBlocks
from ._certified.objectives_in_blocks import for_blocks
from ._certified.other_objectives import has_objective, last_step, objective_of
from ._core.arrays import Floats
from ._core.names import check_same_rows, features_axis, in_order
from ._core.solvers import Start, minimize_intercept
from ._estimators.block_methods import is_collection
from ._estimators.offsets import warn_of_missing_offset
from ._problems import LinearProblems
from ._solving.callbacks import FitTask
from ._solving.process import ignoring_errors


def dual_gap(
    model: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    estimator: Any = None,
    offset: Any = None,
    tol: float | None = 1e-3,
    return_objective: bool = False,
) -> Any:
    """Return a proven bound of a linear model's distance from the optimum.

    The model may come from any source: an estimator of this package or of scikit-learn,
    or coefficients and intercepts. The optimal objective is at least the model's
    objective minus the bound. If the bound is small, further training is useless. If
    the bound is large although ``tol`` is small, further training is useful.

    Parameters
    ----------
    model : estimator instance or tuple (coef, intercept)
        A fitted estimator with ``coef_`` and ``intercept_``, a pipeline that ends with
        one, or coefficients and intercepts: arrays of shape (n_features,) or (k,
        n_features), and (k,) or a single number. They are not changed.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The samples of the objective, usually the training samples. A pipeline
        transforms them for its last step. Dask arrays and dataframes, and
        :class:`RowBlocks`, are accepted for objectives of the estimators that can be
        fitted to them, and for the drop-ins ``LinearSVC``, ``LinearSVR``,
        ``LogisticRegression`` and ``QuantileRegressor``.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets of the samples, unless they are part of ``RowBlocks``.
    sample_weight : array-like of shape (n_samples,), default=None
        Their weights.
    estimator : estimator instance, default=None
        An estimator of this package, not necessarily fitted, whose parameters define
        the objective. By default the objective is derived from ``model``. Supported
        estimators of scikit-learn are ``LogisticRegression``, ``LogisticRegressionCV``
        with its chosen parameters, ``LinearSVC``, ``LinearSVR``, ``QuantileRegressor``,
        ``PoissonRegressor``, ``GammaRegressor``, ``TweedieRegressor``,
        ``SGDClassifier``, ``SGDRegressor``, ``LinearRegression``, ``Lasso``,
        ``ElasticNet`` and ``Ridge``. Their intercepts are treated as unpenalized,
        although ``solver="liblinear"`` penalizes them.
    offset : float or array-like of shape (n_samples,), default=None
        Numbers added to the scores of the samples, as in ``fit``.
    tol : float or None, default=1e-3
        The lower bound of the optimum comes from a fit that starts at the model, or at
        zero if that is better, and ends when its own relative gap is at most ``tol``:
        the returned bound exceeds the true distance by at most that gap. With None the
        lower bound comes from the subgradient of the loss at the model alone, at the
        cost of two products with X; far from the optimum, and at kinks of the loss,
        that bound is loose.
    return_objective : bool, default=False
        Whether to return the objective of the model as well.

    Returns
    -------
    gap : float or ndarray of shape (k,)
        The objective of the model minus a lower bound on the optimum, in the units of
        ``objective_`` of ``estimator``; one number for each of several problems, such
        as one class against the rest. It is infinite if no lower bound is known.
    objective : float or ndarray of shape (k,)
        Objective of the model. Only returned if ``return_objective`` is true.

    Raises
    ------
    TypeError
        If the objective of the model is unknown and ``estimator`` is None.
    ValueError
        If the model does not match the data or the objective, its scores make
        exponentials of the loss overflow, or ``offset`` is given for an objective
        without offsets.

    See Also
    --------
    SubLBFGSLinearSVC, L1LogisticOWLQN, BMRMRegressor : Fit the same objectives with
        such a bound, ``dual_gap_``.

    Notes
    -----
    For a dual point u of the mean loss R, no coefficients have an objective below
    ``-alpha * Omega*(-Xᵀu / alpha) - R*(u)`` by Fenchel's duality (Teo et al. 2010,
    Corollary 3). ``SGDClassifier`` and ``SGDRegressor`` divide by the number of
    samples, this package by the sum of their weights: with weights, ``alpha`` is
    converted, and the objective is the mean of these weighted losses.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import SGDClassifier
    >>> from sklearn_subqn import dual_gap
    >>> X, y = make_classification(500, random_state=0)
    >>> sgd = SGDClassifier(alpha=0.01, random_state=0).fit(X, y)
    >>> gap, objective = dual_gap(sgd, X, y, return_objective=True)
    >>> print(f"at most {gap / objective:.0%} above the optimum")
    at most 1% above the optimum
    """
    model, X = last_step(model, X)
    given = _given(model)
    warn_of_missing_offset(model, offset)
    if estimator is None:
        estimator = objective_of(model, *_known_targets(model, X, y, sample_weight))
    if not has_objective(estimator):
        raise TypeError(
            "estimator must be one of this package with coef_ and intercept_, which "
            "says what the objective is: no ranker, none that is trained on batches, "
            f"and none that searches for parameters; got {estimator!r}."
        )
    own: Any = clone(estimator)
    if tol is not None:
        own.tol = tol
    own._check_parameters()
    others = {} if offset is None else {"offset": offset}
    if others and "offset" not in signature(own.fit).parameters:
        raise ValueError(
            f"The objective of {type(own).__name__} has no offset; leave it out."
        )
    unit = 1.0
    if is_collection(X):
        # A model of two classes has one row of coefficients.
        several = np.ndim(given["coef_"]) > 1 and np.shape(given["coef_"])[0] > 1
        own, factor = for_blocks(own, several=several)
        rows = own._opened(X, y, sample_weight, **others)
        try:
            if factor is not None:
                total = own._total_weight(rows.problems, rows.y, rows.weights)
                unit = factor * total
                own.alpha = 1.0 / unit
            ends = _ends(rows.problems, own, given, rows.y, rows.weights, tol)
        finally:
            rows.close()
    else:
        check_same_rows(X, y=y, sample_weight=sample_weight, offset=offset)
        problems = own._encode(X, y, sample_weight, **others)
        if _leaves_out_some(problems, own, given):
            own._keeps_all_features = True
            problems = own._encode(X, y, sample_weight, **others)
        ends = _ends(problems, own, given, y, sample_weight, tol)
    values, bounds, several = ends
    values, bounds = unit * values, unit * bounds
    gaps = np.maximum(values - bounds, 0.0)
    if not several:
        gap, value = float(gaps[0]), float(values[0])
        return (gap, value) if return_objective else gap
    return (gaps, values) if return_objective else gaps


@ignoring_errors
def _ends(
    problems: Any,
    own: Any,
    given: dict[str, Any],
    y: Any,
    sample_weight: Any,
    tol: float | None,
) -> tuple[Any, Any, bool]:
    """Return the objectives of a model, lower bounds, and whether they are arrays."""
    if type(problems).solve is not LinearProblems.solve:
        raise ValueError(
            f"{type(own).__name__} with these parameters chooses more than "
            "coefficients by its objective; dual_gap has no bound for that."
        )
    own._check_support(problems)
    usual = list(problems.starts)
    problems.starts = starts = _starts(problems, own, given)
    strengths = own._strength(problems, y, sample_weight)
    strengths = np.broadcast_to(strengths, len(problems)).tolist()
    ends = []
    for index, (start, alpha) in enumerate(zip(starts, strengths, strict=True)):
        objective = problems.objective(index, alpha)
        point = start.at(objective)
        if objective.risk.overflows(point.scores):
            raise ValueError(
                "The model has scores at which exponentials of the loss overflow, or "
                "nearly, where neither its objective nor a gap is known. Scale the "
                "features or the targets, or choose a model with smaller coefficients."
            )
        # With optimal intercepts, the subgradient yields a better bound.
        bound = minimize_intercept(point).lower_bound if tol is None else -np.inf
        ends.append(problems.as_read(index, point, bound))
        if tol is not None and not point.value <= usual[index].at(objective).value:
            # A fit may overflow if it starts at a model with a larger objective than
            # zero.
            problems.starts[index] = usual[index]
    values, bounds = np.array(ends).T
    if tol is not None:
        solutions = problems.solve(strengths, FitTask.silent())
        bounds = np.array([each.objective - each.dual_gap for each in solutions])
    # NaN is a difference of infinite terms: the objective overflowed, or there is no
    # bound.
    values = np.where(np.isnan(values), np.inf, values)
    bounds = np.where(np.isnan(bounds), -np.inf, bounds)
    return values, bounds, problems.several


def _known_targets(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any]:
    """Return the targets and weights in the objective of a model."""
    if isinstance(X, RowBlocks):
        return X._all("y", y), X._all("sample_weight", sample_weight)
    weighted = sample_weight is not None or (
        getattr(model, "class_weight", None) is not None
    )
    if is_collection(X) and weighted and not has_objective(model):
        raise TypeError(
            "The objective of another package's model is not known for weighted Dask "
            "collections. Give an estimator of this package with the same objective as "
            "estimator."
        )
    return y, sample_weight


def _given(model: Any) -> dict[str, Any]:
    """Return a model's coefficients and intercepts, names of classes and features."""
    if isinstance(model, tuple) and len(model) == 2:
        return {"coef_": model[0], "intercept_": model[1]}
    if not isinstance(model, BaseEstimator):
        raise TypeError(
            "model must be a fitted estimator or a tuple (coef, intercept); got an "
            f"object of type {type(model).__name__}."
        )
    check_is_fitted(model)
    names = ("coef_", "intercept_", "classes_", "feature_names_in_")
    given = {name: getattr(model, name) for name in names if hasattr(model, name)}
    if not {"coef_", "intercept_"} <= set(given):
        raise TypeError(
            "model must be linear, with coef_ and intercept_; "
            f"{type(model).__name__} is not. Of a search give "
            "model.best_estimator_."
        )
    return given


def _leaves_out_some(problems: Any, own: Any, given: dict[str, Any]) -> bool:
    """Whether problems leave out features for which a model has coefficients."""
    if isinstance(problems.columns, slice):
        return False
    coef = _coefficients(own, given)
    if coef.shape[1] != own.n_features_in_:
        return False
    return bool(np.delete(coef, problems.columns, axis=1).any())


def _coefficients(own: Any, given: dict[str, Any]) -> Floats:
    """Return the coefficients of a model in the order of features, of shape (k, d)."""
    coef = in_order("coef_", given["coef_"], features_axis(own))
    coef = np.atleast_2d(coef.toarray() if sparse.issparse(coef) else np.asarray(coef))
    checked: Floats = check_array(coef, dtype=np.float64, input_name="coef")
    return checked


def _starts(problems: LinearProblems, own: Any, given: dict[str, Any]) -> list[Start]:
    """Return the model as starts of its problems; raise if it does not match."""
    expected = problems.attributes()
    names = getattr(own, "feature_names_in_", None)
    known = {**expected, **({} if names is None else {"feature_names_in_": names})}
    coef = _coefficients(own, given)
    intercept = np.atleast_1d(np.asarray(given["intercept_"], dtype=np.float64))
    if not np.isfinite(intercept).all():
        raise ValueError(
            f"The intercepts of the model must be finite, got {intercept}."
        )
    if np.shape(expected["coef_"]) == coef.shape[1:] and len(coef) == 1:
        coef = coef[0]
    if len(intercept) == 1 and coef.ndim == 2:
        intercept = np.repeat(intercept, len(coef))
    if not own.fit_intercept and intercept.any():
        raise ValueError(
            f"The model has intercepts {intercept}, but the objective none: "
            "fit_intercept is False."
        )
    if np.size(intercept) not in {1, np.size(expected["intercept_"])}:
        raise ValueError(
            f"The model has intercepts of shape {intercept.shape}; X and y ask for "
            f"{np.shape(expected['intercept_'])}."
        )
    if coef.shape != np.shape(expected["coef_"]):
        raise ValueError(
            f"The model has coefficients of shape {coef.shape}; X and y ask for "
            f"{np.shape(expected['coef_'])}."
        )
    for name in ("classes_", "feature_names_in_"):
        theirs = given.get(name)
        if (
            theirs is not None
            and name in known
            and (np.ravel(theirs).tolist() != np.ravel(known[name]).tolist())
        ):
            raise ValueError(
                f"The model has {name}={theirs}, X and y have {known[name]}."
            )
    before = list(problems.starts)
    problems.start_from({**known, "coef_": coef, "intercept_": intercept})
    if any(new is old for new, old in zip(problems.starts, before, strict=True)):
        raise ValueError(
            "The coefficients of the model are not among those that the objective "
            f"allows (penalty={getattr(own, 'penalty', 'l2')!r})."
        )
    return list(problems.starts)

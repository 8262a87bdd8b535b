"""Standard errors of fitted linear models: their losses, penalties and options.

Sums over rows and covariances are computed in ``_inference``.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import _num_samples

from .._checks import (
    as_sample_weights,
    check_n_jobs,
    check_number,
    check_option,
    names_of_rows,
)
from .._checks.callers import user_level
from .._core.losses import BINARY_LOSSES, AnyLoss, DualLoss, regression_losses
from .._features.separation import extremes, separating, sides_of_rows
from .._inference import (
    CoefficientErrors,
    Covariance,
    DualTerms,
    Names,
    RowMoments,
    Spec,
    TargetedRows,
    assembled,
    bandwidth,
    between_classes,
    block_moments,
    covariances,
    dual_degrees,
    estimated,
    factors_of,
    resampled,
    row_terms,
    summed,
    theta,
)
from .._inference.estimates import INTERCEPT
from .._solving.solution import Floats
from .block_methods import is_collection
from .catalogue import GROUPS
from .classification_losses import LOSSES
from .inference_data import Blocks, FittedData
from .predictions import variance_power
from .regression_losses import loss_of
from .tables import checked_names

# Names of losses with standard errors.
_ORDINAL = ("ordinal_all_threshold", "ordinal_immediate_threshold")
_OF_LABELS = ("log_loss", "squared_hinge", "modified_huber", "exponential", *_ORDINAL)
_OF_NUMBERS = (
    "squared_error",
    "huber",
    "squared_epsilon_insensitive",
    "poisson",
    "gamma",
    "tweedie",
    "quantile",
    "absolute_error",
)
_LIKELIHOODS = ("squared_error", "log_loss", "poisson", "gamma", "tweedie")
_QUANTILES = ("quantile", "absolute_error")
# Inequalities with a slack below a billionth of their terms count as equalities.
_TOUCHING = 1e-9

_COMMON_DENSITY = ("fisher", "HC0", "HC1", "bootstrap")
_LEVERED = {"HC2": 1.0, "HC3": 2.0}
_KINDS = ("auto", "fisher", "HC0", "HC1", *_LEVERED, "cluster", "powell", "bootstrap")

# Penalties that are not a weighted sum of squares and absolute values of coefficients.
_OTHER_PENALTIES = ("lp", "quadratic", "entropy", "normalized_entropy", *GROUPS)

# With fewer than 50 samples beyond a quantile in the outer fifths, kernel-based
# intervals cover the true coefficients in less than 92 % of samples with normal or
# heavy-tailed noise.
_TAIL, _FEW_BEYOND = 0.2, 50.0

# A model is near its optimum if each coefficient is within a tenth of its standard
# error: intervals of 95 % then cover the true coefficient in 94.9 % of samples.
_NEAR = 0.1

_ATTRIBUTES = (
    "coef_",
    "intercept_",
    "classes_",
    "ordered_classes_",
    "feature_names_in_",
    "alpha_",
    "penalty_factor_",
    "scale_",
)


@dataclass(frozen=True)
class ErrorOptions:
    """The options of ``standard_errors`` besides the model and its data."""

    kind: str = "auto"
    groups: Any = None
    offset: Any = None
    dispersion: float | str | None = None
    weights: str = "precision"
    reference: Any = None
    feature_names: Any = None
    n_resamples: int = 200
    n_jobs: int | None = None
    random_state: Any = None


def fitted_attributes(model: Any) -> dict[str, Any]:
    """Return the attributes of a fitted model that standard errors need."""
    return {name: getattr(model, name) for name in _ATTRIBUTES if hasattr(model, name)}


def coefficient_errors(
    own: Any,
    given: dict[str, Any],
    X: Any,
    y: Any,
    sample_weight: Any,
    options: ErrorOptions,
) -> CoefficientErrors:
    """Return the standard errors of the coefficients of a model.

    Parameters
    ----------
    own : LinearEstimator
        Estimator whose parameters define the objective of the model.
    given : dict
        Result of ``fitted_attributes``.
    X, y, sample_weight
        The training data of the model.
    options : ErrorOptions
    """
    kind = _kind(loss_name(own), options)
    _check_options(options, kind, loss_name(own))
    if kind == "bootstrap" and is_collection(X):
        raise ValueError("kind='bootstrap' is not supported for data in blocks.")
    model = read_model(own, given, X, y, sample_weight, options)
    _check_active(model)
    _check_penalty(model)
    own, name, spec, blocks = model.own, model.name, model.spec, model.blocks
    spec = replace(
        spec,
        common_density=kind in _COMMON_DENSITY and name in _QUANTILES,
        expected=kind == "fisher",
    )
    if spec.levels:
        spec = replace(spec, widths=_widths(blocks, spec, kind))
    by_names = _names(own, spec, given, options)
    if kind in _LEVERED:
        spec = with_leverages(model._replace(spec=spec), options, _LEVERED[kind])
    sums = blocks.each(partial(_sums, name=name, spec=spec))
    moments = summed(each for each, _ in sums)
    alone = not _strengths(own, given, 1.0).any()
    endless = _endless(spec, [each for _, each in sums], alone=alone)
    found = [
        _covariance(own, spec, each, problem, name, kind, options, given, endless)
        for problem, each in enumerate(moments)
    ]
    if not spec.levels:
        _check_fitted(found, own.tol)
    elif any(each.fixed.any() for each in found):
        raise ValueError(
            "Too few samples lie near the quantile to say how dense residuals are "
            "there: take kind='bootstrap', or a quantile nearer to the median."
        )
    factors = factors_of(spec, by_names, moments[0].gram)
    if kind == "bootstrap":
        like = _like_fitted(own, given)
        refit = partial(
            _refit, like, spec, by_names, found, X, y, sample_weight, options
        )
        resamples = _resamples(refit, _num_samples(X), options)
        return assembled(spec, by_names, found, kind, False, resamples, factors)
    estimates = options.dispersion in (None, "X2")
    exact = name == "squared_error" and kind == "fisher" and estimates
    return assembled(spec, by_names, found, kind, exact, factors=factors)


class FittedModel(NamedTuple):
    """A model with its loss and training data.

    Attributes
    ----------
    own : LinearEstimator
        Unfitted estimator whose parameters define the objective.
    given : dict
        Result of ``fitted_attributes``.
    name : str
        Name of the loss, "" for a user's own loss.
    spec : Spec
        The model, with observed second derivatives.
    blocks : Blocks
        The rows of positive weight.
    """

    own: Any
    given: dict[str, Any]
    name: str
    spec: Spec
    blocks: Blocks

    @property
    def is_likelihood(self) -> bool:
        """Whether the loss is a log-likelihood, up to terms without scores."""
        return self.name in _LIKELIHOODS

    @property
    def power(self) -> float | None:
        """The power of the mean in variances, None for classes."""
        return 0.0 if self.name == "squared_error" else self.spec.power

    @property
    def is_penalized(self) -> bool:
        """Whether the objective has a penalty."""
        return bool(_strengths(self.own, self.given, 1.0).any())


def read_model(
    own: Any,
    given: dict[str, Any],
    X: Any,
    y: Any,
    sample_weight: Any,
    options: ErrorOptions,
) -> FittedModel:
    """Return a model with its data; see ``coefficient_errors`` for the parameters."""
    name, counts = loss_name(own), options.weights == "frequency"
    coef, intercept = _parameters(given)
    data = FittedData(own, coef, given, counts)
    own = data.own
    _check_model(own, given)
    blocks = data.blocks(X, y, sample_weight, options.offset, options.groups)
    spec = Spec(
        coef,
        intercept,
        None if data.joint and name not in _ORDINAL else _loss(own, name),
        bool(own.fit_intercept),
        variance_power(own) if name in _OF_NUMBERS else None,
        _levels(own, name, len(coef)),
        (),
        False,
        False,
        counts,
        blocks.shift if own.fit_intercept else np.zeros(coef.shape[1]),
    )
    return FittedModel(own, given, name, spec, blocks)


def _parameters(given: dict[str, Any]) -> tuple[Floats, Floats]:
    """Return coefficients and intercepts of scores; see ``Spec`` for their shapes."""
    coef = given["coef_"]
    coef = np.atleast_2d(coef.toarray() if sparse.issparse(coef) else np.asarray(coef))
    intercept = np.ravel(given["intercept_"]).astype(np.float64)
    if "ordered_classes_" not in given:
        return coef, np.broadcast_to(intercept, len(coef))
    order = np.searchsorted(given["classes_"], given["ordered_classes_"])
    if len(coef) == 1:
        # The single score of two classes is that of the second in sorted order.
        coef, intercept = (
            np.append(0.0 * each, each, axis=0) for each in (coef, intercept)
        )
    return np.diff(coef[order], axis=0)[:1], np.diff(intercept[order])


def with_leverages(model: FittedModel, options: ErrorOptions, power: float) -> Spec:
    """Return a model whose products of first derivatives are divided by leverages."""
    own, given, name, spec, blocks = model
    if spec.joint or spec.ordinal:
        raise ValueError("HC2 and HC3 are for losses of one score per sample.")
    free = np.zeros(spec.coef.shape, dtype=bool)
    found = [
        _covariance(own, spec, each, i, name, "HC0", options, given, free)
        for i, each in enumerate(summed(blocks.each(partial(block_moments, spec=spec))))
    ]
    inverses = tuple(each.inverse for each in found)
    return replace(spec, inverses=inverses, leverage_power=power)


def likelihood_terms(model: FittedModel) -> list[Covariance]:
    """Return covariances by expected derivatives, for degrees of freedom.

    Coefficients that an L1 norm made zero are no parameters. Quantiles have one
    parameter for each independent feature.

    Raises
    ------
    ValueError
        If bounds or constraints are active, or the penalty has other terms than squares
        and absolute values.
    """
    own, given, name, spec, blocks = model
    zeros = _zeros(model)
    quantiles = bool(spec.levels)
    unit = replace(
        spec,
        expected=True,
        common_density=quantiles,
        widths=(1.0,) * len(spec.levels),
    )
    moments = summed(blocks.each(partial(block_moments, spec=unit)))
    # The dispersion of quantiles is not used.
    options = ErrorOptions(dispersion=1.0 if quantiles else None)
    return [
        _covariance(own, spec, each, problem, name, "fisher", options, given, zeros)
        for problem, each in enumerate(moments)
    ]


def dual_terms(model: FittedModel) -> list[DualTerms]:
    """Return the same degrees of freedom, for more features than rows.

    Raises
    ------
    ValueError
        As ``likelihood_terms``; and if the model fits as many samples as it has.
    """
    spec = replace(model.spec, expected=True)
    zeros, found = _zeros(model), []
    parts = model.blocks.each(partial(_whole, spec=spec))
    X, scores, targets, weights = (
        sparse.vstack(each, format="csr")
        if sparse.issparse(each[0])
        else np.concatenate(each)
        for each in zip(*parts, strict=True)
    )
    strengths = _squares(model.own, model.given, float(weights.sum()), spec)
    n = weights.sum() if spec.counts else len(weights)
    for problem in range(spec.n_problems):
        terms = row_terms(spec, problem, scores, targets[:, problem])
        used = np.append(~zeros[problem], [True] * spec.fit_intercept)
        df = dual_degrees(
            X[:, used],
            weights[:, None, None] * terms.curvatures,
            strengths[problem][used],
            between_classes(spec),
        )
        if not df < n - _TOUCHING * n:
            raise ValueError(
                "Statistics need more samples than degrees of freedom: there are "
                f"{n:g} samples with positive weight, and {df:.6g} degrees."
            )
        found.append(DualTerms(df, float(weights @ terms.chi_squares)))
    return found


def _whole(block: TargetedRows, spec: Spec) -> tuple[Any, ...]:
    """Return rows with a column of the intercept, scores, targets and weights."""
    ones, stacks = np.ones((len(block.weights), int(spec.fit_intercept))), np.hstack
    X = block.X
    if sparse.issparse(X):
        ones, stacks = sparse.csr_array(ones), partial(sparse.hstack, format="csr")
    else:
        X = X - spec.shift
    return stacks([X, ones]), block.scores(spec), block.targets, block.weights


def _zeros(model: FittedModel) -> npt.NDArray[np.bool_]:
    """Return the coefficients of each problem that an L1 norm made zero.

    Raises
    ------
    ValueError
        As ``likelihood_terms``.
    """
    _check_active(model)
    own, spec = model.own, model.spec
    if model.is_penalized and getattr(own, "penalty", "l2") in _OTHER_PENALTIES:
        raise ValueError(
            f"The degrees of freedom of penalty={own.penalty!r} are unknown: fit with "
            "squares or an L1 norm."
        )
    zeros = np.asarray(spec.coef == 0.0) & (_l1_share(own) > 0.0)
    return np.all(zeros, axis=0, keepdims=True) if spec.joint else zeros


def loss_name(own: Any) -> str:
    """Return the name of a loss with standard errors, "" for a user's own loss."""
    # Classifiers without ``loss`` have probabilities only if they minimize the log
    # loss.
    only = "log_loss" if hasattr(own, "predict_proba") else None
    loss = getattr(own, "loss", only)
    known = _OF_LABELS if is_classifier(own) else _OF_NUMBERS
    if isinstance(loss, AnyLoss):
        whole = DualLoss.of(loss)
        if whole.smooth and not (whole.joint or whole.ranks or whole.counts_rows):
            return ""
    if isinstance(loss, str) and loss in known and getattr(own, "metric", None) is None:
        return loss
    raise ValueError(
        f"{type(own).__name__}(loss={loss!r}) has no standard errors. Losses that have "
        f"are {', '.join(map(repr, known))}, and smooth ones of one's own of one score "
        "per sample; for others take the spread of refits to resampled rows."
    )


def _loss(own: Any, name: str) -> DualLoss:
    if not name:
        return DualLoss.of(own.loss)
    if name in _QUANTILES:
        # The terms of each level are computed from the absolute error.
        return regression_losses()["absolute_error"]
    if name in _ORDINAL:
        return DualLoss.of(LOSSES[name](own))
    return BINARY_LOSSES[name] if is_classifier(own) else loss_of(own)


def _levels(own: Any, name: str, k: int) -> tuple[float, ...]:
    """Return the levels of a model's quantiles, empty for other losses."""
    if name not in _QUANTILES:
        return ()
    levels = own.quantile if name == "quantile" else 0.5
    return tuple(np.broadcast_to(levels, k).astype(np.float64).tolist())


def _kind(name: str, options: ErrorOptions) -> str:
    """Return the kind of covariance, resolving "auto"."""
    check_option("kind", options.kind, _KINDS)
    kind = options.kind
    if kind == "auto":
        if options.groups is not None:
            return "cluster"
        if name in _QUANTILES:
            return "powell"
        return "fisher" if name in _LIKELIHOODS else "HC0"
    if kind == "powell" and name not in _QUANTILES:
        raise ValueError("kind='powell' is for quantiles; take 'HC0' or 'HC1'.")
    if kind == "fisher" and name not in (*_LIKELIHOODS, *_QUANTILES):
        known = ", ".join(map(repr, _LIKELIHOODS))
        raise ValueError(
            "kind='fisher' needs a loss that is a likelihood, as those of "
            f"{known} are; take 'HC0' or 'HC1'."
        )
    if kind in _LEVERED and name in _QUANTILES:
        raise ValueError(f"kind={kind!r} is not for quantiles; take 'powell' or 'HC1'.")
    if options.groups is not None and kind not in ("cluster", "bootstrap"):
        raise ValueError(f"groups are for kind='cluster' or 'bootstrap'; got {kind!r}.")
    if kind == "cluster" and options.groups is None:
        raise ValueError("kind='cluster' needs groups, one name for each sample.")
    return kind


def _check_options(options: ErrorOptions, kind: str, name: str) -> None:
    """Raise for options that are invalid or have no effect."""
    check_option("weights", options.weights, ("precision", "frequency"))
    check_number("n_resamples", options.n_resamples, low=2, integer=True)
    check_n_jobs("n_jobs", options.n_jobs)
    if options.dispersion is None:
        return
    if kind != "fisher" or name in _QUANTILES:
        raise ValueError(
            "dispersion is for kind='fisher' of losses that are likelihoods; got "
            f"{options.dispersion!r} with kind={kind!r}, loss={name!r}."
        )
    if isinstance(options.dispersion, str):
        check_option("dispersion", options.dispersion, ("X2",))
    else:
        check_number("dispersion", options.dispersion, low=0.0, low_included=False)


def _check_model(own: Any, given: dict[str, Any]) -> None:
    """Raise for models whose rows have no likelihood or derivatives of their own."""
    if "scale_" in given:
        raise ValueError(
            "Standard errors of Huber's loss are those of a given scale: fit "
            f"BMRMRegressor(loss='huber') with epsilon={own.epsilon:g} times scale_."
        )
    several = len(given.get("classes_", ())) > 2
    if several and hasattr(own, "_row_weights") and own.class_weight is not None:
        raise ValueError(
            f"{type(own).__name__} with class_weight and more than two classes weighs "
            "samples otherwise for each class, for which there are no standard errors: "
            "take BMRMClassifier with the same loss."
        )


def _check_active(model: FittedModel) -> None:
    """Raise for coefficients at bounds or constraints."""
    coef = model.spec.coef
    bounds, constraints = model.own._bounds(), model.own._constraints()
    active = bounds is not None and bool(
        np.any((coef <= bounds[0]) | (coef >= bounds[1]))
    )
    if constraints is not None:
        A, b = constraints
        slack = b - coef @ A.T
        active |= bool(np.any(slack <= _TOUCHING * (np.abs(coef) @ np.abs(A).T + 1.0)))
    if active:
        raise ValueError(
            "Models with coefficients at bounds or constraints have no standard "
            "errors, degrees of freedom or leverages: leave out features at a bound."
        )


def _check_penalty(model: FittedModel) -> None:
    """Raise for penalties that make coefficients zero; warn of the others."""
    if not model.is_penalized:
        return
    own = model.own
    if _l1_share(own) or getattr(own, "penalty", "l2") in _OTHER_PENALTIES:
        raise ValueError(
            "Coefficients with this penalty have no standard errors, as some of them "
            "are zero by it: choose features by it, and fit these to other samples "
            "without a penalty."
        )
    warnings.warn(
        "The model has a penalty, which draws coefficients to zero: standard errors "
        "say how much they vary, and intervals hold the true ones less often than they "
        "say. Fit without a penalty for intervals.",
        UserWarning,
        stacklevel=user_level(),
    )


def _l1_share(own: Any) -> float:
    """Return the share of the L1 norm in the penalty."""
    return 1.0 if getattr(own, "penalty", "l2") == "l1" else float(own._l1_share())


def _strengths(own: Any, given: dict[str, Any], total: float) -> Floats:
    """Return the strengths of the penalty, of shape (problems or 1, d or 1).

    Parameters
    ----------
    own : LinearEstimator
    given : dict
    total : float
        Sum of the weights of the rows.
    """
    if hasattr(own, "C"):
        free = np.isinf(own.C) or getattr(own, "penalty", "l2") is None
        return np.atleast_2d(0.0 if free else 1.0 / float(own.C))
    alpha = given.get("alpha_", own.alpha)
    if isinstance(alpha, str):
        raise ValueError(
            f"alpha={alpha!r} says nothing of a model that was fitted elsewhere; give "
            "a number."
        )
    factors = given.get("penalty_factor_")
    if factors is None and own.penalty_factor is not None:
        factors = own._penalty_factors()
    factors = np.ones(1) if factors is None else np.asarray(factors)
    if not own._has_squares():
        # The squares of an elastic net contain the squares of penalty factors.
        factors = factors**2
    return np.asarray(total * np.atleast_1d(alpha)[:, None] * factors)


def _widths(blocks: Blocks, spec: Spec, kind: str) -> tuple[float, ...]:
    """Return the half-widths of the kernels of residuals, for each quantile.

    Raises
    ------
    ValueError
        If residuals have no density, unless ``kind`` is "bootstrap".
    """
    parts = blocks.each(partial(_residuals, spec=spec))
    residuals, targets, weights = map(np.concatenate, zip(*parts, strict=True))
    if spec.counts:
        repeats = weights.astype(np.intp)
        residuals = np.repeat(residuals, repeats, axis=0)
        targets = np.repeat(targets, repeats, axis=0)
    widths = []
    n = len(residuals)
    for i, level in enumerate(spec.levels):
        try:
            widths.append(bandwidth(residuals[:, i], targets[:, i], level))
        except ValueError as error:
            if kind != "bootstrap":
                raise
            widths.append(1.0)
            warnings.warn(str(error), UserWarning, stacklevel=user_level())
        tail = min(level, 1.0 - level)
        if kind != "bootstrap" and tail < _TAIL and n * tail < _FEW_BEYOND:
            warnings.warn(
                f"About {n * tail:.0f} of {n} samples are beyond the quantile "
                f"{level:g}. With so few, densities of residuals are too large there, "
                "and intervals of 95 % hold the true coefficients in 80 to 92 % of "
                "samples: take kind='bootstrap'.",
                UserWarning,
                stacklevel=user_level(),
            )
    return tuple(widths)


def _residuals(block: TargetedRows, spec: Spec) -> tuple[Floats, Floats, Floats]:
    return block.targets - block.scores(spec), block.targets, block.weights


def _names(own: Any, spec: Spec, given: dict[str, Any], options: ErrorOptions) -> Names:
    """Return the names of features and outputs for the estimates."""
    classes: Any = given.get("classes_")
    names = options.feature_names
    names = given.get("feature_names_in_") if names is None else names
    k, reference = len(spec.coef), options.reference
    features = checked_names(names, spec.coef.shape[1]).tolist()
    if spec.ordinal:
        pairs = pairwise(given["ordered_classes_"].tolist())
        features = [*(f"{low}|{high}" for low, high in pairs), *features]
    elif spec.fit_intercept:
        features = [INTERCEPT, *features]
    if reference is not None:
        if not spec.joint:
            raise ValueError(
                "reference is for the multinomial log loss of more than two classes."
            )
        if reference not in classes.tolist():
            raise ValueError(
                f"reference must be one of the classes {classes.tolist()}; got "
                f"{reference!r}."
            )
        place = classes.tolist().index(reference)
        return Names(features, np.delete(classes, place), "class", place)
    if k == 1:
        return Names(features, None, None, None)
    if is_classifier(own):
        return Names(features, classes, "class", None)
    if spec.levels and np.ndim(getattr(own, "quantile", 0.5)):
        return Names(features, np.array(spec.levels), "quantile", None)
    return Names(features, np.arange(k), "output", None)


def _covariance(
    own: Any,
    spec: Spec,
    moments: RowMoments,
    problem: int,
    name: str,
    kind: str,
    options: ErrorOptions,
    given: dict[str, Any],
    endless: npt.NDArray[np.bool_],
) -> Covariance:
    """Return the covariance of the parameters of a problem, for centered features."""
    d = spec.coef.shape[1]
    diagonal = _squares(own, given, moments.total, spec)[problem]
    penalty: Any = np.kron(between_classes(spec), np.diag(diagonal))
    q = len(diagonal)
    gradient = moments.gradient + penalty @ theta(spec, problem)
    first = np.roll(np.arange(q), spec.n_intercepts)
    order = np.concatenate([first + a * q for a in range(len(gradient) // q)])
    dispersion = options.dispersion
    if dispersion is None and name in ("log_loss", "poisson", *_ORDINAL):
        dispersion = 1.0
    if isinstance(dispersion, str):
        if spec.joint:
            raise ValueError(
                f"dispersion={dispersion!r} is for losses of one score per sample."
            )
        dispersion = None
    if kind == "bootstrap":
        # For the bootstrap only the rank of the estimates is needed.
        kind = "HC0" if options.groups is None else "cluster"
    elif spec.common_density:
        density = moments.chi_square / moments.total
        moments = moments._replace(hessian=density * moments.hessian)
        # The mean square of the derivatives of the pinball loss is q (1 - q).
        level = spec.levels[problem]
        dispersion = level * (1.0 - level) / density
    elif kind == "powell":
        kind = "HC0"
    fixed = np.zeros(q, dtype=bool)
    fixed[:d] = endless[problem] & (diagonal[:d] == 0.0)
    fixed = np.tile(fixed, len(gradient) // q)
    return covariances(moments, penalty, gradient, kind, order, dispersion, fixed)


def _squares(own: Any, given: dict[str, Any], total: float, spec: Spec) -> Floats:
    """Return the second derivatives of the penalty by parameters of each problem."""
    strengths = (1.0 - _l1_share(own)) * _strengths(own, given, total)
    d = spec.coef.shape[1]
    found = np.zeros((spec.n_problems, d + spec.n_intercepts))
    found[:, :d] = strengths
    return found


def _endless(spec: Spec, ends: list[Any], *, alone: bool) -> npt.NDArray[np.bool_]:
    """Return the features along which the loss of each problem decreases forever.

    Without a penalty on any feature, these are all features if a combination of them
    separates the rows.
    """
    least = np.minimum.reduce(ends)
    if not len(least):
        return np.zeros((spec.n_problems, spec.coef.shape[1]), dtype=bool)
    masks = np.array([separating(each, centered=spec.fit_intercept) for each in least])
    if spec.joint:
        masks = np.array([masks.any(axis=0)])
    return np.asarray(masks[:, :-1] | (alone & masks[:, -1:]))


def _sums(block: TargetedRows, name: str, spec: Spec) -> tuple[Any, Floats]:
    """Return moments, and extremes of features by sides of rows for each problem."""
    sides = sides_of_rows(name, spec.power, block.targets, len(spec.coef))
    scores = block._replace(offset=None).scores(spec).T
    ends = [extremes(block.X, z, each) for z, each in zip(scores, sides, strict=False)]
    return block_moments(block, spec), np.array(ends)


def _check_fitted(found: list[Covariance], tol: float) -> None:
    """Warn of a model far from its optimum in units of its standard errors."""
    with np.errstate(invalid="ignore", divide="ignore"):
        distances = [
            np.abs(each.newton) / np.sqrt(np.diag(each.covariance)) for each in found
        ]
    largest = max(float(np.nanmax(each, initial=0.0)) for each in distances)
    if largest > _NEAR:
        warnings.warn(
            f"The model is {largest:.2g} standard errors from its optimum in one of "
            "its coefficients, so that intervals around it are off by as much. Fit it "
            f"to the same data, with a smaller tol, such as {min(1e-8, 1e-2 * tol):g}.",
            ConvergenceWarning,
            stacklevel=user_level(),
        )


def _like_fitted(own: Any, given: dict[str, Any]) -> Any:
    """Return an estimator with the penalty strengths of the fitted model."""
    like = clone(own)
    if isinstance(getattr(like, "alpha", None), str):
        alpha = np.unique(given["alpha_"])
        if len(alpha) > 1:
            raise ValueError(
                "kind='bootstrap' needs one alpha for all outputs, such as a number."
            )
        like.set_params(alpha=float(alpha[0]), penalty_factor=given["penalty_factor_"])
    if "warm_start" in like.get_params():
        like.set_params(warm_start=True)
    return like


def _resamples(refit: Any, n_rows: int, options: ErrorOptions) -> Floats:
    groups = options.groups
    if groups is not None:
        _, groups = names_of_rows("groups", groups, n_rows)
    seeds = options.n_jobs, options.random_state
    return resampled(refit, n_rows, groups, options.n_resamples, *seeds)


def _refit(
    like: Any,
    spec: Spec,
    names: Names,
    found: list[Covariance],
    X: Any,
    y: Any,
    sample_weight: Any,
    options: ErrorOptions,
) -> Any:
    """Return a function from row factors to the estimates of a refit."""
    model = clone(like)
    base = as_sample_weights(sample_weight, _num_samples(X))
    others = {} if options.offset is None else {"offset": options.offset}

    def estimates_of(factors: Floats) -> Floats:
        model.fit(X, y, sample_weight=base * factors, **others)
        coef, intercept = _parameters(fitted_attributes(model))
        return estimated(replace(spec, coef=coef, intercept=intercept), names, found)

    return estimates_of

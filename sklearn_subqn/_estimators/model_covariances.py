"""Covariances and degrees of freedom of a model with its penalty."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from .._checks.callers import user_level
from .._core.arrays import Floats, Mask
from .._inference import (
    Covariance,
    DualTerms,
    RowMoments,
    Spec,
    TargetedRows,
    between_classes,
    block_moments,
    covariances,
    dual_leverages,
    row_terms,
    summed,
    theta,
)
from .catalogue import GROUPS
from .error_options import ErrorOptions
from .fitted_model import FittedModel
from .inferred_losses import ORDINAL, WITHOUT_DISPERSION

# An inequality is treated as active if its slack is below a billionth of its terms.
_TOUCHING = 1e-9

# Penalties that are not a weighted sum of squares and absolute values of coefficients.
_OTHER_PENALTIES = ("lp", "quadratic", "entropy", "normalized_entropy", *GROUPS)


def with_leverages(model: FittedModel, options: ErrorOptions, power: float) -> Spec:
    """Return a model whose products of first derivatives are divided by leverages."""
    spec = model.spec
    if spec.joint or spec.ordinal:
        raise ValueError("HC2 and HC3 are for losses of one score per sample.")
    moments = summed(model.blocks.each(partial(block_moments, spec=spec)))
    free = np.zeros(spec.coef.shape, dtype=bool)
    found = covariances_of(model, moments, "HC0", options, free)
    inverses = tuple(each.inverse for each in found)
    return replace(spec, inverses=inverses, leverage_power=power)


def is_penalized(model: FittedModel) -> bool:
    """Whether the objective of a model has a penalty."""
    return bool(strengths_of(model.own, model.given, 1.0).any())


def likelihood_terms(model: FittedModel) -> list[Covariance]:
    """Return covariances with expected second derivatives, for degrees of freedom.

    Coefficients that are zero because of an L1 norm do not count as parameters.
    Quantiles have one parameter for each independent feature.

    Raises
    ------
    ValueError
        If bounds or constraints are active, or the penalty has other terms than squares
        and absolute values.
    """
    spec, zeros = model.spec, _zeros(model)
    quantiles = bool(spec.levels)
    widths = (1.0,) * len(spec.levels)
    unit = replace(spec, expected=True, common_density=quantiles, widths=widths)
    moments = summed(model.blocks.each(partial(block_moments, spec=unit)))
    options = ErrorOptions(dispersion=1.0 if quantiles else None)
    model = model._replace(spec=unit)
    return covariances_of(model, moments, "fisher", options, zeros)


def dual_terms(model: FittedModel) -> list[DualTerms]:
    """Return leverages and degrees of freedom, for more features than rows.

    Raises
    ------
    ValueError
        See ``likelihood_terms``. Also if there are no residual degrees of freedom.
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
    strengths = _squares(model, float(weights.sum()))
    n = weights.sum() if spec.counts else len(weights)
    for problem in range(spec.n_problems):
        terms = row_terms(spec, problem, scores, targets[:, problem])
        used = np.append(~zeros[problem], [True] * spec.fit_intercept)
        leverages, df = dual_leverages(
            X[:, used],
            weights[:, None, None] * terms.curvatures,
            strengths[problem][used],
            between_classes(spec),
        )
        copies = weights if spec.counts else 1.0
        # The multinomial log loss of k classes has k - 1 free scores per row.
        n_scores = terms.curvatures.shape[1]
        if not df < n * n_scores * (1.0 - _TOUCHING):
            times = f" times {n_scores} differences of scores" if n_scores > 1 else ""
            raise ValueError(
                "Statistics need more samples than degrees of freedom: there are "
                f"{n:g} samples with positive weight{times}, and {df:.6g} degrees."
            )
        chi_square = float(weights @ terms.chi_squares)
        found.append(DualTerms(leverages / copies, df, chi_square))
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


def _zeros(model: FittedModel) -> Mask:
    """Return the coefficients of each problem that are zero because of an L1 norm.

    Raises
    ------
    ValueError
        As ``likelihood_terms``.
    """
    check_active(model)
    own, spec = model.own, model.spec
    if is_penalized(model) and getattr(own, "penalty", "l2") in _OTHER_PENALTIES:
        raise ValueError(
            f"The degrees of freedom of penalty={own.penalty!r} are unknown: fit with "
            "squares or an L1 norm."
        )
    zeros = np.asarray(spec.coef == 0.0) & (_l1_share(own) > 0.0)
    return np.all(zeros, axis=0, keepdims=True) if spec.joint else zeros


def check_active(model: FittedModel) -> None:
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


def check_penalty(model: FittedModel) -> None:
    """Raise for penalties that make coefficients zero; warn of the others."""
    if not is_penalized(model):
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


def strengths_of(own: Any, given: dict[str, Any], total: float) -> Floats:
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
        # The quadratic part of an elastic net has the squares of the penalty factors.
        factors = factors**2
    return np.asarray(total * np.atleast_1d(alpha)[:, None] * factors)


def _squares(model: FittedModel, total: float) -> Floats:
    """Return the second derivatives of the penalty by parameters of each problem."""
    own, given, _, spec, _ = model
    strengths = (1.0 - _l1_share(own)) * strengths_of(own, given, total)
    d = spec.coef.shape[1]
    found = np.zeros((spec.n_problems, d + spec.n_intercepts))
    found[:, :d] = strengths
    return found


def covariances_of(
    model: FittedModel,
    moments: list[RowMoments],
    kind: str,
    options: ErrorOptions,
    endless: Mask,
) -> list[Covariance]:
    """Return the covariances of each problem's parameters, for centered features."""
    return [
        _covariance(model, each, problem, kind, options, endless[problem])
        for problem, each in enumerate(moments)
    ]


def _covariance(
    model: FittedModel,
    moments: RowMoments,
    problem: int,
    kind: str,
    options: ErrorOptions,
    endless: Mask,
) -> Covariance:
    spec = model.spec
    d = spec.coef.shape[1]
    diagonal = _squares(model, moments.total)[problem]
    penalty: Any = np.kron(between_classes(spec), np.diag(diagonal))
    q = len(diagonal)
    gradient = moments.gradient + penalty @ theta(spec, problem)
    first = np.roll(np.arange(q), spec.n_intercepts)
    order = np.concatenate([first + a * q for a in range(len(gradient) // q)])
    dispersion = options.dispersion
    if dispersion is None and model.name in (*WITHOUT_DISPERSION, *ORDINAL):
        dispersion = 1.0
    if isinstance(dispersion, str):
        if spec.joint or spec.ordinal:
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
    fixed[:d] = endless & (diagonal[:d] == 0.0)
    fixed = np.tile(fixed, len(gradient) // q)
    return covariances(moments, penalty, gradient, kind, order, dispersion, fixed)

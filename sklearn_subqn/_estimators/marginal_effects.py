"""Effects of features on means and probabilities, with delta-method errors."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .._core.arrays import Floats
from .._core.memory import COPY_SIZE
from .._inference import CoefficientErrors, Spec, TargetedRows
from .._inference.estimates import INTERCEPT
from .._inference.likelihoods import mean_derivatives
from .fitted_model import FittedModel


def effects_of(
    model: FittedModel, errors: CoefficientErrors, at: str
) -> CoefficientErrors:
    """Return the effects of the features on means or probabilities.

    Parameters
    ----------
    model : FittedModel
    errors : CoefficientErrors
        The standard errors of the coefficients, of all classes.
    at : str
        "overall" for averages over the rows, "mean" for a row with the means.
    """
    spec = model.spec
    k, d = spec.coef.shape
    beta = errors.estimates.reshape(k, -1)
    free = beta.shape[1] - d
    # Features that are combinations of other features have estimates of zero.
    spec = replace(
        spec,
        coef=np.nan_to_num(beta[:, free:]),
        intercept=np.nan_to_num(beta[:, 0]) if free else np.zeros(k),
    )
    parts = model.blocks.each(partial(_sums, spec=spec, at=at, power=model.power))
    total = sum(part[0] for part in parts)
    means = [
        sum(each) / total for each in zip(*(part[1:] for part in parts), strict=True)
    ]
    if at == "mean":
        x, score = means
        scores = (spec.coef @ x + spec.intercept + score)[None]
        first, second = (each[0] for each in mean_derivatives(model.power, scores))
        crossed = second[..., None] * np.concatenate([np.ones(free), x])
    else:
        first, crossed = means
    # The effect of feature j on the mean c is sum_l first[c, l] coef[l, j].
    effects = first @ spec.coef
    jacobian = np.einsum("clmq,lj->cjmq", crossed, spec.coef)
    j = np.arange(d)
    jacobian[:, j, :, j + free] += first
    jacobian = jacobian.reshape(k * d, -1)
    covariance = jacobian @ np.nan_to_num(errors.covariance) @ jacobian.T
    unknown = np.isnan(np.diag(errors.covariance)).reshape(k, -1)[:, free:].ravel()
    covariance[unknown], covariance[:, unknown] = np.nan, np.nan
    effects = np.where(unknown, np.nan, effects.ravel())
    features = errors.features != INTERCEPT
    if not free:
        features = np.ones(len(errors.features), dtype=bool)
    return replace(
        errors,
        features=errors.features[features],
        outputs=None if errors.outputs is None else errors.outputs[features],
        estimates=effects,
        covariance=covariance,
        uses_t=False,
        resamples=None,
    )


def _sums(
    block: TargetedRows, spec: Spec, at: str, power: float | None
) -> tuple[Floats, ...]:
    """Return the sum of weights, and weighted sums of rows or of derivatives."""
    n, k = len(block.weights), len(spec.coef)
    size = max(1, COPY_SIZE // k**3)
    parts = []
    for first in range(0, max(n, 1), size):
        rows = slice(first, first + size)
        part: list[Any] = [each if each is None else each[rows] for each in block]
        parts.append(_sums_of_rows(TargetedRows(*part), spec, at, power))
    return tuple(sum(each) for each in zip(*parts, strict=True))


def _sums_of_rows(
    block: TargetedRows, spec: Spec, at: str, power: float | None
) -> tuple[Floats, ...]:
    X, weights = block.X, block.weights
    total = weights.sum()
    if at == "mean":
        offset = np.zeros(len(weights)) if block.offset is None else block.offset
        return total, X.T @ weights, weights @ offset
    first, second = mean_derivatives(power, block.scores(spec))
    shape = second.shape[1:]
    weighted = weights[:, None] * second.reshape(len(weights), -1)
    crossed = np.asarray(X.T @ weighted).T
    if spec.fit_intercept:
        crossed = np.column_stack([weighted.sum(axis=0), crossed])
    return total, np.tensordot(weights, first, 1), crossed.reshape(*shape, -1)

"""Residuals and leverages of the samples of a fit."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import special
from sklearn.utils import check_random_state

from .._core.arrays import Floats
from .._core.losses import DualLoss
from .._core.rows.second_moments import SecondMoments
from .._inference import DualTerms, Spec, TargetedRows
from .._inference.likelihoods import deviances, distribution, means
from .._inference.moments import quadratic_forms
from .._inference.terms import one_score
from .fit_statistics import degrees_of, rows_of, statistics_of
from .fitted_model import FittedModel

# Dividing and multiplying counts by exposures changes them by rounding errors below
# this.
_WHOLE = 1e-9


def residuals_of(model: FittedModel, kind: str, random_state: Any) -> Floats:
    """Return residuals of a likelihood of one score, of shape (n,)."""
    _check_one_score(model)
    scores, targets, weights, _ = (each.T for each in rows_of(model))
    z, y, power = scores[0], targets[0], model.power
    mean = means(power, z)
    differences = (y > 0.0 if power is None else y) - mean
    if kind == "response":
        return np.asarray(differences)
    # With frequencies, a row is repeated, and each copy has the same residual.
    precision = np.ones(len(weights)) if model.spec.counts else weights
    if kind == "pearson":
        variances = mean * (1.0 - mean) if power is None else mean**power
        return np.asarray(differences * np.sqrt(precision / variances))
    if kind == "deviance":
        # Rounding may make zero deviances negative.
        sizes = np.maximum(deviances(power, z, y), 0.0)
        return np.asarray(np.sign(differences) * np.sqrt(precision * sizes))
    dispersion = statistics_of(model, is_training=False).dispersion
    if power == 1.0:
        counts = precision * y
        if np.any(np.abs(counts - np.rint(counts)) > _WHOLE * (counts + 1.0)):
            raise ValueError(
                "Quantile residuals of Poisson regressions need counts: y, multiplied "
                "by the weights unless these are frequencies, must be whole numbers."
            )
    low, high = distribution(power, mean, y, dispersion / precision)
    shares = check_random_state(random_state).uniform(size=len(low))
    tiny = np.finfo(np.float64).tiny
    levels = np.clip(low + shares * (high - low), tiny, np.nextafter(1.0, 0.0))
    return np.asarray(special.ndtri(levels))


def leverages_of(model: FittedModel) -> Floats:
    """Return the leverages of the rows of a likelihood of one score, of shape (n,)."""
    loss, spec = _check_one_score(model), model.spec
    found = degrees_of(model, len(rows_of(model)[2]))[0]
    if isinstance(found, DualTerms):
        return found.leverages
    parts = model.blocks.each(
        partial(_leverages, spec=spec, loss=loss, inverse=found.inverse)
    )
    return np.concatenate(parts)


def _leverages(
    block: TargetedRows, spec: Spec, loss: DualLoss, inverse: Floats
) -> Floats:
    X = block.X - spec.shift if isinstance(block.X, np.ndarray) else block.X
    design = SecondMoments(X, fit_intercept=spec.fit_intercept)
    scores, targets = block.scores(spec)[:, 0].copy(), block.targets[:, 0].copy()
    terms = one_score(loss, spec.power, scores, targets, expected=True)
    precision = np.ones(len(scores)) if spec.counts else block.weights
    curvatures = terms.curvatures[:, 0, 0]
    return np.asarray(precision * curvatures * quadratic_forms(design, inverse))


def _check_one_score(model: FittedModel) -> DualLoss:
    """Return the loss of a likelihood of one score per row; raise for other models."""
    loss = model.spec.loss
    several = model.spec.n_problems > 1 or model.spec.ordinal
    if not model.is_likelihood or loss is None or several:
        raise ValueError(
            "Residuals and leverages need a likelihood with one score per sample: two "
            "classes, or one target."
        )
    return loss

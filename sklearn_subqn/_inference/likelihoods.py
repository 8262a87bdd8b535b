"""Log-likelihoods, deviances and null models of rows.

A power p says that variances are the dispersion times the mean to the power p: 0 for
squared errors, where the mean is the score, and 1 to 2 for Poisson, Tweedie and gamma
regressions, where the mean is exp(z). None stands for classes.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize, special

from .._core.arrays import Floats
from .._solving.deviances import half_deviances

# Bound of the intercept of a null model: exp overflows for scores beyond 700.
_WIDEST = 700.0


def means(power: float | None, scores: Floats) -> Floats:
    """Return the means for scores; for classes, their probabilities."""
    if power is None:
        joint = scores.ndim == 2 and scores.shape[1] > 1
        return special.softmax(scores, axis=1) if joint else special.expit(scores)
    return scores if power == 0.0 else np.exp(scores)


def log_likelihoods(
    power: float | None, scores: Floats, targets: Floats, weights: Floats, scale: float
) -> Floats:
    """Return the log-likelihood of each row, constants included.

    Parameters
    ----------
    power : float or None
    scores : ndarray of shape (n,), or (n, k) for class numbers as targets
    targets : ndarray of shape (n,)
        Signs of two classes, class numbers, or numbers.
    weights : ndarray of shape (n,)
        Each variance is divided by its weight.
    scale : float
        Dispersion.
    """
    if power is None:
        if scores.ndim == 1:
            return np.asarray(weights * special.log_expit(targets * scores))
        rows = np.arange(len(scores))
        logs = special.log_softmax(scores, axis=1)[rows, targets.astype(np.intp)]
        return np.asarray(weights * logs)
    ratio = weights / scale
    if power == 0.0:
        logs = np.log(ratio / (2.0 * np.pi)) - ratio * (targets - scores) ** 2
        return np.asarray(0.5 * logs)
    mu = np.exp(scores)
    if power == 1.0:
        constants = special.gammaln(targets + 1.0)
        return np.asarray(ratio * (targets * scores - mu - constants))
    if power == 2.0:
        logs = ratio * (np.log(ratio * targets) - scores - targets / mu)
        return np.asarray(logs - special.gammaln(ratio) - np.log(targets))
    # Dunn and Smyth (2005): the density of y > 0 has the factor W(x) / y, with Wright's
    # generalized Bessel function W.
    a, b = power - 1.0, 2.0 - power
    logs = -ratio * (targets * mu**-a / a + mu**b / b)
    some = targets > 0.0
    y, ratio = targets[some], ratio[some]
    x = (a / (ratio * y)) ** (-b / a) * ratio / b
    logs[some] += special.log_wright_bessel(b / a, 0.0, x) - np.log(y)
    return np.asarray(logs)


def deviances(power: float | None, scores: Floats, targets: Floats) -> Floats:
    """Return the deviance of each row for weights and a dispersion of one."""
    if power is None:
        return -2.0 * log_likelihoods(None, scores, targets, np.ones(len(scores)), 1.0)
    if power == 0.0:
        return np.asarray((targets - scores) ** 2)
    return 2.0 * half_deviances(targets, np.exp(scores), power)


def null_scores(
    power: float | None,
    scores: Floats,
    targets: Floats,
    weights: Floats,
    offset: Floats,
) -> Floats:
    """Return the scores of a model with only an intercept and the offset.

    Parameters
    ----------
    power, scores, targets, weights
        See ``log_likelihoods``; only the shape of the scores is used.
    offset : ndarray of shape (n,)
    """
    if power is None and scores.ndim == 2:
        shares = np.bincount(targets.astype(np.intp), weights, scores.shape[1])
        logs = np.log(shares / weights.sum())
        return np.asarray(np.broadcast_to(logs, scores.shape))
    if power is None:
        share = np.average(targets > 0.0, weights=weights)
        mean = special.logit(share)
        if offset.any():
            mean = optimize.brentq(
                lambda c: weights @ (special.expit(offset + c) - (targets > 0.0)),
                *(-_WIDEST, _WIDEST),
            )
        return np.asarray(offset + mean)
    if power == 0.0:
        return np.asarray(offset + np.average(targets - offset, weights=weights))
    # Subtracting the largest offset prevents overflow, and cancels in the result.
    centered = offset - offset.max()
    observed = weights @ (targets * np.exp((1.0 - power) * centered))
    expected = weights @ np.exp((2.0 - power) * centered)
    return np.asarray(centered + np.log(observed / expected))


def check_losses(residuals: Floats, level: float, weights: Floats) -> Floats:
    """Return the weighted check losses of residuals (Koenker and Bassett 1978)."""
    return weights * np.where(residuals > 0.0, level, level - 1.0) * residuals


def weighted_quantile(values: Floats, level: float, weights: Floats) -> float:
    """Return the smallest value that minimizes the sum of check losses."""
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    return float(values[order[np.searchsorted(below, level * below[-1])]])


def mean_derivatives(power: float | None, scores: Floats) -> tuple[Floats, Floats]:
    """Return first and second derivatives of the means of each row by its scores.

    Parameters
    ----------
    power : float or None
    scores : ndarray of shape (n, k)

    Returns
    -------
    first : ndarray of shape (n, k, k)
    second : ndarray of shape (n, k, k, k)
    """
    k = scores.shape[1]
    if k > 1:
        p, eye = special.softmax(scores, axis=1), np.eye(k)
        first = np.einsum("ic,cl->icl", p, eye) - p[:, :, None] * p[:, None, :]
        second = np.einsum("icm,cl->iclm", first, eye)
        second -= np.einsum("icm,il->iclm", first, p)
        second -= np.einsum("ic,ilm->iclm", p, first)
        return first, second
    mean = means(power, scores)
    if power is None:
        slope = mean * (1.0 - mean)
        bend = slope * (1.0 - 2.0 * mean)
    else:
        slope = bend = mean
    return slope[:, :, None], bend[:, :, None, None]


def distribution(
    power: float | None, mean: Floats, targets: Floats, scale: Floats
) -> tuple[Floats, Floats]:
    """Return the probabilities of values below and of values up to the targets.

    Parameters
    ----------
    power : float or None
    mean : ndarray of shape (n,)
    targets : ndarray of shape (n,)
        Signs of two classes, or numbers.
    scale : ndarray of shape (n,)
        Dispersion of each row.
    """
    if power is None:
        event = targets > 0.0
        return np.where(event, 1.0 - mean, 0.0), np.where(event, 1.0, 1.0 - mean)
    if power == 0.0:
        below = special.ndtr((targets - mean) / np.sqrt(scale))
        return below, below
    if power == 1.0:
        # The mean of a count per exposure is the total count divided by the exposure.
        counts, rate = np.rint(targets / scale), mean / scale
        below = special.pdtr(np.maximum(counts - 1.0, 0.0), rate)
        return np.where(counts > 0.0, below, 0.0), special.pdtr(counts, rate)
    if power == 2.0:
        below = special.gammainc(1.0 / scale, targets / (mean * scale))
        return below, below
    # Tweedie's distribution: a sum of a Poisson number of gamma variables (Jørgensen
    # 1987).
    a, b = power - 1.0, 2.0 - power
    rate, unit = mean**b / (scale * b), scale * a * mean**a
    up = np.exp(-rate)
    most = rate.max()
    for number in range(1, int(most + 10.0 * np.sqrt(most) + 20.0)):
        share = np.exp(special.xlogy(number, rate) - rate - special.gammaln(number + 1))
        up = up + share * special.gammainc(number * b / a, targets / unit)
    return np.where(targets > 0.0, up, 0.0), up

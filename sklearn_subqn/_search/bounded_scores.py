"""Scores of held-out rows that can be bounded from bounds of the predictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from .._core.arrays import Floats
from .._core.rounding import TINY
from .._problems.quantiles import mean_loss
from .._solving.deviances import half_deviances

# Limits of scores whose exponential is a positive, finite float64. Predicted means are
# clipped to this range, as in ``score`` of the estimators.
_LEAST_LOG, _LARGEST_LOG = np.log([np.finfo(float).tiny, np.finfo(float).max])

#: A function from predictions and targets to the score of each row.
RowScore = Callable[[Floats, Floats], Floats]


def accuracy(scores: Floats, signs: Floats) -> Floats:
    """Return one where the sign of a score is right; a score of zero is negative."""
    return ((scores > 0.0) == (signs > 0.0)).astype(np.float64)


def log_loss(dtype: Any) -> RowScore:
    """Return the log-likelihood score, for probabilities computed in a dtype.

    As in scikit-learn, probabilities are clipped to [eps, 1 - eps] of the dtype.
    """
    eps = float(np.finfo(dtype).eps)
    ends = np.log(eps), np.log1p(-eps)

    def score(scores: Floats, signs: Floats) -> Floats:
        return np.clip(special.log_expit(signs * scores), *ends)

    return score


def hinge(scores: Floats, signs: Floats) -> Floats:
    """Return the negative hinge loss."""
    return -np.maximum(1.0 - signs * scores, 0.0)


def negative_squares(scores: Floats, targets: Floats) -> Floats:
    """Return negative squared errors."""
    return -((scores - targets) ** 2)


def absolute(scores: Floats, targets: Floats) -> Floats:
    """Return negative absolute errors."""
    return -np.abs(scores - targets)


def pinball(level: float) -> RowScore:
    """Return the negative pinball loss of a quantile's level."""

    def score(scores: Floats, targets: Floats) -> Floats:
        residuals = targets - scores
        return -np.maximum(level * residuals, (level - 1.0) * residuals)

    return score


def deviance(power: float) -> RowScore:
    """Return the negative deviance of positive means, for a power of their variance."""

    def score(means: Floats, targets: Floats) -> Floats:
        with np.errstate(over="ignore"):
            return -2.0 * half_deviances(targets, means, power)

    return score


def margins(scores: Floats, classes: Floats) -> Floats:
    """Return the score of each row's class minus the largest of the other scores.

    For equal scores the first class is predicted: a margin is positive if the
    prediction is right, and zero or negative otherwise.

    Parameters
    ----------
    scores : ndarray of shape (m, k)
    classes : ndarray of shape (m,)
        Column of the class of each row.
    """
    own, others = _apart(scores, classes)
    found = own - others.max(axis=1)
    right = np.argmax(scores, axis=1) == classes
    return np.where(right, np.maximum(found, TINY), np.minimum(found, 0.0))


def _apart(scores: Floats, classes: Floats) -> tuple[Floats, Floats]:
    """Return the score of each row's class, and the scores of all other classes."""
    place = np.arange(len(scores)), classes.astype(np.intp)
    others = scores.copy()
    others[place] = -np.inf
    return scores[place], others


class HeldOutScore:
    """The weighted mean of a score of rows.

    Parameters
    ----------
    rows : callable
        A ``RowScore``: for labels an increasing function of the score of the right
        side, for numbers a function of the prediction that increases up to the target
        and decreases from there.
    targets : ndarray of shape (m,)
        Signs of two classes, column numbers of several classes, or numbers.
    weights : ndarray of shape (m,)
        Non-negative weights, which are normalized.
    labels : bool
        Whether targets are classes.
    unit : float, optional
        If given, the score is one plus the mean divided by this unit, such as R².
    exponential : bool
        Whether predictions are the exponentials of the scores.
    """

    def __init__(
        self,
        rows: RowScore,
        targets: Floats,
        weights: Floats,
        labels: bool,
        unit: float | None = None,
        exponential: bool = False,
    ) -> None:
        self._rows, self._targets, self._labels = rows, targets, labels
        self._weights, self._unit = weights / weights.sum(), unit
        self._exponential = exponential

    def __call__(self, scores: Floats) -> float:
        """Return the score of predictions, which are columns for several classes."""
        if scores.ndim == 1:
            return self._mean(self._rows(self._predicted(scores), self._targets))
        found = margins(scores, self._targets)
        return self._mean(self._rows(found, np.ones(len(found))))

    def bounds(self, low: Floats, high: Floats) -> tuple[float, float]:
        """Return bounds of the score for predictions between ``low`` and ``high``."""
        targets, rows = self._targets, self._rows
        if low.ndim == 2:
            (least, below), (most, above) = _apart(low, targets), _apart(high, targets)
            ends = least - above.max(axis=1), most - below.max(axis=1)
            lower, upper = (self._mean(rows(end, np.ones(len(end)))) for end in ends)
            return lower, upper
        if self._labels:
            up = targets > 0.0
            return self(np.where(up, low, high)), self(np.where(up, high, low))
        low, high = self._predicted(low), self._predicted(high)
        worst = np.minimum(rows(low, targets), rows(high, targets))
        best = rows(np.clip(targets, low, high), targets)
        return self._mean(worst), self._mean(best)

    def _predicted(self, scores: Floats) -> Floats:
        if not self._exponential:
            return scores
        return np.asarray(np.exp(np.clip(scores, _LEAST_LOG, _LARGEST_LOG)))

    def _mean(self, scores: Floats) -> float:
        mean = float(self._weights @ scores)
        if self._unit is None:
            return mean
        # If all targets are equal, R² is one or zero, as in scikit-learn.
        return 1.0 + mean / self._unit if self._unit else float(mean == 0.0)


def coded(classes: Any, y: Any) -> Floats:
    """Return labels as signs of two classes, or as columns of several classes."""
    codes = np.searchsorted(classes, y).astype(np.float64)
    return 2.0 * codes - 1.0 if len(classes) == 2 else codes


def with_equal_classes(classes: Floats, weights: Floats) -> Floats:
    """Return weights whose sum is one in each class with positive weight."""
    _, codes = np.unique(classes, return_inverse=True)
    sums = np.bincount(codes, weights)
    return np.asarray(weights / np.where(sums > 0.0, sums, 1.0)[codes])


_HINGE = "neg_hinge_loss"
_PINBALL = "neg_mean_pinball_loss"
_LOG_LOSS = "neg_log_loss"

_OF_LABELS: dict[str, RowScore] = {
    "accuracy": accuracy,
    "balanced_accuracy": accuracy,
    _HINGE: hinge,
}
_OF_NUMBERS: dict[str, RowScore] = {
    "r2": negative_squares,
    "neg_mean_squared_error": negative_squares,
    "neg_mean_absolute_error": absolute,
}
_DEVIANCES = {"neg_mean_poisson_deviance": 1.0, "neg_mean_gamma_deviance": 2.0}


def score_names(
    labels: bool, probabilities: bool, power: float | None
) -> list[str | None]:
    """Return the names of the scores with bounds.

    Parameters
    ----------
    labels : bool
        Whether targets are classes.
    probabilities : bool
        Whether the model has probabilities of classes.
    power : float or None
        The power of the mean in variances, if predictions are exponentials.
    """
    if not labels:
        deviances = [name for name, p in _DEVIANCES.items() if power and p <= power]
        return [*_OF_NUMBERS, _PINBALL, *deviances, *[None] * (power is not None)]
    return [*_OF_LABELS, *[_LOG_LOSS] * probabilities]


def row_score(
    name: str | None, level: float, dtype: Any, power: float | None
) -> RowScore:
    """Return the score of rows with a given name.

    Parameters
    ----------
    name : str or None
        None for the deviance of the loss.
    level : float
        Level of the quantiles.
    dtype : dtype
        Type of the probabilities.
    power : float or None
        The power of the mean in variances, if predictions are exponentials.
    """
    if power is not None and (name is None or name in _DEVIANCES):
        return deviance(power if name is None else _DEVIANCES[name])
    if name == _PINBALL:
        return pinball(level)
    if name == _LOG_LOSS:
        return log_loss(dtype)
    return {**_OF_LABELS, **_OF_NUMBERS}[str(name)]


def neg_hinge_loss(model: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Return the negative mean hinge loss of a classifier."""
    targets = coded(model.classes_, y)
    weights = np.ones(len(targets)) if sample_weight is None else sample_weight
    return HeldOutScore(hinge, targets, weights, True)(model.decision_function(X))


def neg_mean_pinball_loss(
    model: Any, X: Any, y: Any, sample_weight: Any = None
) -> float:
    """Return the negative mean pinball loss of a regressor."""
    return -mean_loss(y, model.predict(X), model.quantile, sample_weight)


def own_scorer(name: Any, labels: bool) -> Any:
    """Return the scorer for a name that scikit-learn does not have, or None."""
    if labels:
        return neg_hinge_loss if name == _HINGE else None
    return neg_mean_pinball_loss if name == _PINBALL else None

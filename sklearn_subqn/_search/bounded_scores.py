"""Scores of held-out rows that have bounds where their predictions have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from .._solving.solution import Floats

#: From predictions and targets to the score of each row.
RowScore = Callable[[Floats, Floats], Floats]


def accuracy(scores: Floats, signs: Floats) -> Floats:
    """Return one where the sign of a score is that of the class; zero is negative."""
    return ((scores > 0.0) == (signs > 0.0)).astype(np.float64)


def log_loss(scores: Floats, signs: Floats) -> Floats:
    """Return logarithms of the probability of the class."""
    return np.asarray(special.log_expit(signs * scores))


def hinge(scores: Floats, signs: Floats) -> Floats:
    """Return the hinge loss with its sign changed."""
    return -np.maximum(1.0 - signs * scores, 0.0)


def squared(scores: Floats, targets: Floats) -> Floats:
    """Return squared errors with their sign changed."""
    return -((scores - targets) ** 2)


def absolute(scores: Floats, targets: Floats) -> Floats:
    """Return absolute errors with their sign changed."""
    return -np.abs(scores - targets)


def pinball(level: float) -> RowScore:
    """Return the score of quantiles of a level."""

    def score(scores: Floats, targets: Floats) -> Floats:
        residuals = targets - scores
        return -np.maximum(level * residuals, (level - 1.0) * residuals)

    return score


class HeldOutScore:
    """The weighted mean of a score of rows.

    Parameters
    ----------
    rows : callable
        As ``RowScore``: largest where scores are at, or beyond, their targets.
    targets : ndarray of shape (m,)
        Signs of classes, or numbers.
    weights : ndarray of shape (m,)
        Any non-negative ones.
    labels : bool
        Whether targets are signs.
    """

    def __init__(
        self, rows: RowScore, targets: Floats, weights: Floats, labels: bool
    ) -> None:
        self._rows, self._targets, self._labels = rows, targets, labels
        self._weights = weights / weights.sum()

    def __call__(self, scores: Floats) -> float:
        """Return the score of predictions."""
        return float(self._weights @ self._rows(scores, self._targets))

    def bounds(self, low: Floats, high: Floats) -> tuple[float, float]:
        """Return bounds of the score of all predictions between two ends."""
        targets = self._targets
        if self._labels:
            up = targets > 0.0
            best, worst = np.where(up, high, low), np.where(up, low, high)
        else:
            best = np.clip(targets, low, high)
            # Concave scores are worst at one of the ends.
            ends = np.minimum(self._rows(low, targets), self._rows(high, targets))
            return float(self._weights @ ends), self(best)
        return self(worst), self(best)


def balanced(signs: Floats, weights: Floats) -> Floats:
    """Return weights with the same sum for each of two classes."""
    up = signs > 0.0
    sums = weights @ up, weights @ ~up
    if not min(sums) > 0.0:
        return weights
    return np.asarray(weights / np.where(up, *sums))


def row_score(name: Any, level: float = 0.5) -> tuple[RowScore, bool] | None:
    """Return the score of a name of scikit-learn, and whether it is one of labels."""
    known: dict[str, tuple[RowScore, bool]] = {
        "accuracy": (accuracy, True),
        "balanced_accuracy": (accuracy, True),
        "neg_log_loss": (log_loss, True),
        "neg_hinge_loss": (hinge, True),
        "neg_mean_squared_error": (squared, False),
        "neg_mean_absolute_error": (absolute, False),
        "neg_mean_pinball_loss": (pinball(level), False),
    }
    return known.get(name)

"""Losses of one score per row: intervals of dual variables.

The loss of a row is the maximum over v in a box [low, high] of v t - h(v). The argument
t is computed from score and target (``_maps.py``), and h is zero (hinge, absolute,
quantile loss), a quadratic (squared hinge, Huber's loss, squares, Moreau envelopes of
the piecewise linear losses around a center) or an entropy (logistic, exponential,
Poisson's loss). The tables at the end name these losses.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ._base import Floats, Intervals, RowForm
from ._composition import DualSet, Smoothing
from ._dual_loss import Composed, DualLoss
from ._loss import Loss
from ._maps import Counts, Margin, Residual, Thresholds
from ._row_loss import Deviance, KinkedRowLoss, SmoothRowLoss, SteepRowLoss
from ._smoothings import BinaryEntropy, Entropy, Quadratic, RowEntropy


class Box(DualSet):
    """The interval [low, high] of one dual variable v for each row.

    Parameters
    ----------
    to_argument : Margin, Residual or Counts
        Computes t from scores and targets.
    low, high : float
        Ends of the interval, with low <= 0 <= high.
    tube : float, default=0
        Half-width of a tube around t = 0 in which the loss is zero; ``tube`` |v| is
        subtracted.
    """

    def __init__(
        self, to_argument: Margin, low: float, high: float, tube: float = 0.0
    ) -> None:
        self.map, self.low, self.high, self.tube = to_argument, low, high, tube
        self.largest = max(-low, high)

    def oracle(self, smoothing: Smoothing | None) -> Loss:
        shape = self.low, self.high, self.tube
        entropic = isinstance(smoothing, RowEntropy)
        counts = isinstance(self.map, Counts)
        if self.map.labels and self.map.offset != (0.0 if entropic else 1.0):
            raise ValueError("t is -y z with an entropy, and 1 - y z without one.")
        if counts != isinstance(smoothing, Entropy) and not self.map.labels:
            raise ValueError("Of numbers only counts have an entropy, v ln v - v.")
        form = RowForm(Quadratic.kind, self.map.labels, *shape)
        if smoothing is None:
            return KinkedRowLoss(self.map, form)
        if isinstance(smoothing, Quadratic):
            ridge, center = smoothing.ridge, smoothing.center
            if center is None:
                return SmoothRowLoss(self.map, form._replace(ridge=ridge))
            return SmoothRowLoss(self.map, form._replace(width=ridge), center)
        assert isinstance(smoothing, RowEntropy), "an entropy of one variable"
        if shape != (*smoothing.interval, 0.0):
            name = type(smoothing).__name__
            raise ValueError(f"{name} is an entropy of {smoothing.interval}.")
        if counts:
            return Deviance(1.0)
        oracle = SteepRowLoss if isinstance(smoothing, Entropy) else SmoothRowLoss
        return oracle(self.map, form._replace(kind=smoothing.kind))

    def envelope(self, center: Floats, width: float) -> Quadratic:
        return Quadratic(width, center)

    def largest_penalty(self, smoothing: Smoothing) -> float | None:
        """Return the largest penalty for residuals, None for margins of labels."""
        if not isinstance(smoothing, Quadratic) or self.map.labels:
            return None
        if smoothing.center is not None or self.largest == np.inf:
            return None
        return 0.5 * smoothing.ridge * self.largest**2

    def rowwise(self, targets: Any, smoothing: Smoothing | None) -> Intervals | None:
        """Return intervals of v, or of y v for labels y; None if there is a tube."""
        ridge = 0.0
        if isinstance(smoothing, Quadratic) and smoothing.center is None:
            ridge = smoothing.ridge
        elif smoothing is not None:
            return None
        if self.tube:
            return None
        low, high = (np.full(targets.shape, end) for end in (self.low, self.high))
        if self.map.labels:
            up = targets > 0.0
            low, high = np.where(up, low, -high), np.where(up, high, -low)
        return Intervals(targets, low, high, ridge)


#: Losses of targets -1 or +1, by name.
BINARY_LOSSES: dict[str, DualLoss] = {
    "hinge": DualLoss(Box(Margin(1.0), 0.0, 1.0)),
    "squared_hinge": DualLoss(Box(Margin(1.0), 0.0, np.inf), Quadratic(0.5)),
    "modified_huber": DualLoss(Box(Margin(1.0), 0.0, 4.0), Quadratic(0.5)),
    "log_loss": DualLoss(Box(Margin(0.0), 0.0, 1.0), BinaryEntropy()),
    "exponential": DualLoss(Box(Margin(0.0), 0.0, np.inf), Entropy()),
}

#: The loss max(0, rho - z) of novelty detection (Schölkopf et al. 2001), for targets
#: rho.
NOVELTY_LOSS = DualLoss(Box(Residual(), 0.0, 1.0))


@functools.lru_cache
def regression_losses(
    *, quantile: float = 0.5, epsilon: float = 1.35, power: float = 1.5
) -> Mapping[str, DualLoss]:
    """Return losses of numeric targets by name; equal parameters give the same objects.

    Parameters
    ----------
    quantile : float, default=0.5
        Level of the quantile loss, in (0, 1) (Koenker 2005).
    epsilon : float, default=1.35
        Half-width of the tube of the epsilon-insensitive loss (Vapnik et al. 1997), or
        the residual beyond which Huber's loss is linear.
    power : float, default=1.5
        Power of the mean to which Tweedie's variances are proportional, in (1, 2).
    """
    residual = Residual()
    losses = {
        "squared_error": DualLoss(Box(residual, -np.inf, np.inf), Quadratic(1.0)),
        "absolute_error": DualLoss(Box(residual, -1.0, 1.0)),
        "quantile": DualLoss(Box(residual, quantile - 1.0, quantile)),
        "epsilon_insensitive": DualLoss(Box(residual, -1.0, 1.0, tube=epsilon)),
        "squared_epsilon_insensitive": DualLoss(
            Box(residual, -np.inf, np.inf, tube=epsilon), Quadratic(0.5)
        ),
        "huber": DualLoss(Box(residual, -epsilon, epsilon), Quadratic(1.0)),
        "poisson": DualLoss(Box(Counts(), 0.0, np.inf), Entropy()),
        "gamma": DualLoss(Deviance(2.0)),
        "tweedie": DualLoss(Deviance(power)),
    }
    return MappingProxyType(losses)


class OrdinalLogistic(Composed):
    """Sum over thresholds of ln(1 + exp(-s_ik z_ik)) (Rennie and Srebro 2005).

    Classes are numbered from zero to K - 1. The score z_ik of a row is the score of a
    binary problem: whether the class of the row is above k. The label s_ik is 1 if it
    is above k, otherwise -1. The design defines the parameters that these binary
    problems share.

    Parameters
    ----------
    immediate : bool, default=False
        Whether only the thresholds next to the class of a row count.

    See Also
    --------
    OrderedPairs, LogisticPairs : Ordered classes by pairs of rows, with one score.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_subqn.losses import OrdinalLogistic
    >>> scores = np.array([[3.0, 1.0], [2.0, -2.0]])
    >>> classes, equal = np.array([2, 1]), np.full(2, 0.5)
    >>> round(OrdinalLogistic().value(scores, classes, equal), 3)
    0.308
    """

    def __init__(self, *, immediate: bool = False) -> None:
        box, entropy = Box(Margin(0.0), 0.0, 1.0), BinaryEntropy()
        self.loss = DualLoss(box, entropy, Thresholds(immediate=immediate))

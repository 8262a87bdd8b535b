"""How scores z and targets y make the argument t of a loss of one score per row.

The loss of a row is a maximum over dual variables v of v t - h(v); t is affine in z.
"""

from __future__ import annotations

import numpy as np

from ._base import Floats

# Means of counts below zero by this share of the targets are so by rounding.
_NEGATIVE = 4.0 * float(np.finfo(float).eps)


class Margin:
    """The map t = offset - y z of targets -1 or +1, with u = -weights y v.

    Parameters
    ----------
    offset : float
        Zero or one.

    Attributes
    ----------
    labels : bool
        Whether targets are labels of -1 or +1, which multiply scores.
    """

    labels = True

    def __init__(self, offset: float) -> None:
        self.offset = offset

    def argument(self, scores: Floats, targets: Floats) -> Floats:
        """Return t, a new array."""
        t = self.change(scores, targets)
        if self.offset:
            t += self.offset
        return t

    def change(self, dscores: Floats, targets: Floats) -> Floats:
        """Return what t changes by with scores."""
        change = dscores * targets
        return np.negative(change, out=change)

    def linear(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        """Return the part of the risk outside of maxima."""
        return 0.0

    def dual(self, v: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return the subgradient u of dual variables."""
        u = weights * targets
        u *= v
        return np.negative(u, out=u)

    def weighted(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return weights * v of u = ``dual``."""
        return -(dual * targets)

    def slack(self, targets: Floats) -> Floats | float:
        """Return by how much v may be below the box by rounding."""
        return 0.0


class Residual(Margin):
    """The map t = y - z, with u = -weights v."""

    labels = False

    def __init__(self) -> None:
        super().__init__(1.0)

    def argument(self, scores: Floats, targets: Floats) -> Floats:
        return targets - scores

    def change(self, dscores: Floats, targets: Floats) -> Floats:
        return -dscores

    def dual(self, v: Floats, targets: Floats, weights: Floats) -> Floats:
        return -(weights * v)

    def weighted(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        return -dual


class Counts(Margin):
    """The map t = z of expected counts v, of a loss of which -y z is another part."""

    labels = False

    def __init__(self) -> None:
        super().__init__(0.0)

    def argument(self, scores: Floats, targets: Floats) -> Floats:
        return scores.copy()

    def change(self, dscores: Floats, targets: Floats) -> Floats:
        return dscores

    def linear(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        return -float(weights @ (targets * scores))

    def dual(self, v: Floats, targets: Floats, weights: Floats) -> Floats:
        return weights * (v - targets)

    def weighted(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        return dual + weights * targets

    def slack(self, targets: Floats) -> Floats:
        return _NEGATIVE * targets

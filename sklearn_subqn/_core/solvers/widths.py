"""What methods share that minimize smooth functions of changing width in turn.

``alm``, ``sparse_alm`` and ``narrowing`` replace a loss with kinks by a smooth one that
has a width and perhaps a center. Each minimizes it by its own inner method until that
is accurate enough for the gap of the original problem, and then changes both.
"""

from __future__ import annotations

# Newton's method minimizes until ||g||² / (2 alpha), which bounds the gap of its own
# problem, is below this share of the outer gap; no method makes more steps than that.
INNER_SHARE, MAX_INNER = 0.6, 20

# So many centers in a row may bring nothing before the gap is taken for rounding.
MAX_STUCK = 5


class Gap:
    """The smallest objective and the largest lower bound so far."""

    def __init__(self, best: float, bound: float = -float("inf")) -> None:
        self.best, self.bound = best, bound

    @property
    def left(self) -> float:
        """The difference of both."""
        return self.best - self.bound

    def take(self, value: float, lower: float) -> None:
        """Take note of an objective and a lower bound."""
        self.best, self.bound = min(self.best, value), max(self.bound, lower)


def change_of_width(n_inner: int, factors: tuple[float, float, float]) -> float:
    """Return the factor for the width after this many steps around one center.

    A narrower one brings the center forward faster but is harder to minimize: the
    factors are for at most one step, three and eight; after more it is twice as wide.
    """
    for most, factor in zip((1, 3, 8), factors, strict=True):
        if n_inner <= most:
            return factor
    return 2.0

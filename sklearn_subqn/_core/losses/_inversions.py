"""Convex bounds of measures of rankings, by inverted pairs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..kernels import ranking as kernel
from ..rounding import rounding
from ._base import Floats, norm_by_weights
from ._groups import Groups
from ._of_rankings import Maximum, OfRankings
from ._ranking import RankingLoss


class _Level(NamedTuple):
    """Rows with gains above a level, compared with the others, and factors of groups.

    ``sizes`` of shape (n,) are upper bounds of the terms of each row's subgradient from
    inverted pairs.
    """

    relevant: npt.NDArray[np.uint8]
    margins: Floats
    gains: Floats
    sizes: Floats


class Inversions(OfRankings):
    """Bound of a measure of rankings in which rows of equal relevance do not compete.

    For binary relevance, let D(pi) = <a_pi, b> be the measure and D* its ideal value.
    The loss of a group is the maximum over permutations pi of

        D* / (P N) * sum over inverted pairs of (z_other - z_relevant) + D* - D(pi),

    where P is the number of relevant rows and N the number of other rows. A pair is
    inverted if pi ranks the other row above the relevant row (Yue et al. 2007;
    Chakrabarti et al. 2008). Sorting by z makes each term of the sum non-negative, so
    the loss is an upper bound of D* - D. Differences of scores between rows of equal
    relevance have no cost. In the linear assignment of ``RankingLoss`` they have a
    cost, and z = 0 often is the minimizer if many rows are equally relevant.

    If a group has gains of several levels, its gains are a sum of binary gains, b = b_0
    + sum_t (b_t - b_t-1) [b >= b_t]. An ideal ranking is ideal for each binary gain,
    and the loss is the sum of the binary losses. The time is O(P N + m log m) for each
    group of m rows and each level, the memory O(P N) for the largest one.

    Parameters
    ----------
    measure : RankingLoss
        Defines groups, gains and discounts. For ``ReciprocalRank``, D is the reciprocal
        rank of the first relevant row.

    See Also
    --------
    Ndcg, ReciprocalRank, PrecisionAtK : Measures, and their bounds by assignment.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_subqn.losses import Inversions, Ndcg
    >>> scores, equal = np.array([2.0, 1.0, 0.5, -1.0]), np.full(4, 0.25)
    >>> loss = Inversions(Ndcg())
    >>> round(loss.value(scores, np.array([2.0, 0.0, 1.0, 0.0]), equal), 3)
    0.112
    """

    _memos = (*OfRankings._memos, "_levels")

    def __init__(self, measure: RankingLoss) -> None:
        self._measure = measure
        self._levels: tuple[Floats, list[_Level]] | None = None

    def distance(self, dual: Floats, targets: Any, weights: Floats) -> float:
        """Return a bound of the rounding errors of sums over levels that may cancel."""
        levels = self._prepare(targets)
        if len(levels) < 2:
            return 0.0
        groups = self._measure.prepare(targets).groups
        active = (groups.sums(np.abs(dual)) > 0.0) * groups.sums(weights)
        sizes = active[groups.codes] * sum(level.sizes for level in levels)
        return rounding(len(dual)) * norm_by_weights(sizes, weights)

    def _maximize(self, scores: Floats, targets: Floats, weights: Floats) -> Maximum:
        ranked = self._measure.prepare(targets)
        groups = ranked.groups
        order = groups.sort(scores)
        u, heights = np.zeros_like(scores), np.zeros((3, len(groups)))
        for level in self._prepare(targets):
            sizes = np.diff(groups.starts)
            hits = groups.sums(level.relevant.astype(np.float64))
            choices = np.empty(int((hits * (sizes - hits + 1.0)).max()), dtype=np.intp)
            kernel.interleave(
                scores,
                order,
                groups.starts,
                level.relevant,
                ranked.discounts,
                self._measure.first_only,
                level.margins,
                level.gains,
                np.empty((2, int(sizes.max()) + 1)),
                choices,
                u,
                heights,
            )
        return Maximum.of_groups(groups, weights, heights[0], u, *heights[1:])

    def _prepare(self, targets: Floats) -> list[_Level]:
        if self._levels is None or self._levels[0] is not targets:
            self._levels = targets, self._make_levels(targets)
        return self._levels[1]

    def _make_levels(self, targets: Floats) -> list[_Level]:
        ranked = self._measure.prepare(targets)
        groups, gains = ranked.groups, self._measure.gains(targets)
        order = groups.sort(gains)
        rises = np.where(groups.places > 0, np.diff(gains[order], prepend=0.0), 0.0)
        # The number of smaller gains in the group, each of which is a level.
        n_rises = np.cumsum(rises > 0.0, dtype=np.intp)
        n_rises -= np.repeat(n_rises[groups.starts[:-1]], np.diff(groups.starts))
        numbers = np.empty_like(n_rises)
        numbers[order] = n_rises
        levels = []
        for number in range(1, int(numbers.max()) + 1):
            at = (rises > 0.0) & (n_rises == number)
            heights = np.zeros(len(groups))
            heights[groups.codes[order[at]]] = rises[at]
            levels.append(
                self._level(groups, numbers >= number, heights * ranked.scale)
            )
        return levels

    def _level(
        self, groups: Groups, relevant: npt.NDArray[np.bool_], gains: Floats
    ) -> _Level:
        sizes, hits = np.diff(groups.starts), groups.sums(relevant.astype(np.float64))
        if self._measure.first_only:
            gains = ideal = (gains > 0.0).astype(np.float64)
        else:
            discounts = self._measure.discounts(groups.places)
            best = relevant[groups.sort(~relevant)]
            ideal = gains * groups.sums_of_sorted(np.where(best, discounts, 0.0))
        pairs = hits * (sizes - hits)
        # Groups without pairs have no loss.
        ideal = np.where(pairs > 0.0, ideal, 0.0)
        margins = np.divide(ideal, pairs, out=np.zeros_like(ideal), where=pairs > 0.0)
        sides = np.where(relevant, (sizes - hits)[groups.codes], hits[groups.codes])
        sides *= margins[groups.codes]
        return _Level(relevant.astype(np.uint8), margins, gains, sides)

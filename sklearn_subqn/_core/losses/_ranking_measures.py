"""Bounds of the usual measures of rankings: gains and discounts."""

from __future__ import annotations

import numpy as np

from ..kernels import ranking as kernel
from ._arguments import check_choice, check_positive
from ._base import Floats, Rows
from ._groups import Groups
from ._ranking import RankedTargets, RankingLoss


class Ndcg(RankingLoss):
    """Bound of one minus the normalized discounted cumulative gain.

    b = 2^y - 1 or y for relevances y, divided by the ideal, and a_r = 1 / log2(1 + r)
    up to rank k (Jarvelin and Kekalainen 2002).

    Parameters
    ----------
    groups : Groups, optional
        Queries; each is ranked separately. Default a single group.
    k : int, optional
        Rank at which the sum ends. Default all ranks.
    gain : {"exponential", "linear"}, default="exponential"
        Whether b = 2^y - 1, or y.
    decay : float, optional
        Exponent of the factors of a linear assignment, as in :class:`RankingLoss`. By
        default the ranking is found by sorting.

    See Also
    --------
    Inversions : Another bound, better where many rows are of equal relevance.
    ReciprocalRank : Where only the first relevant row counts.
    sklearn.metrics.ndcg_score : The measure.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_subqn.losses import Ndcg
    >>> scores, equal = np.array([2.0, 1.0, 0.5, -1.0]), np.full(4, 0.25)
    >>> round(Ndcg().value(scores, np.array([2.0, 0.0, 1.0, 0.0]), equal), 3)
    0.171
    """

    def __init__(
        self,
        groups: Groups | None = None,
        *,
        k: int | None = None,
        gain: str = "exponential",
        decay: float | None = None,
    ) -> None:
        super().__init__(groups, decay=decay)
        if k is not None:
            check_positive("k", k, integer=True)
        check_choice("gain", gain, ("exponential", "linear"))
        self._k = k
        self._gain = gain

    def gains(self, targets: Floats) -> Floats:
        if self._gain == "linear":
            return targets
        # The difference from one is accurate for small relevances, too.
        small = np.expm1(np.log(2.0) * targets)
        return np.where(targets < 1.0, small, np.exp2(targets) - 1.0)

    def discounts(self, places: Rows) -> Floats:
        discounts = 1.0 / np.log2(places + 2.0)
        if self._k is not None:
            discounts[places >= self._k] = 0.0
        return discounts


class PrecisionAtK(RankingLoss):
    """Bound of the best possible precision at rank k minus the precision at rank k.

    b = 1 for positive targets, else 0, and a_r = 1 / k up to rank k. For k positive
    targets this is Alg. 11 restricted to labels with k positives (Joachims 2005).

    Parameters
    ----------
    k : int
        Number of first ranks that count, at least 1.
    groups : Groups, optional
        Queries; each is ranked separately. Default a single group.
    decay : float, optional
        Exponent of the factors of a linear assignment, as in :class:`RankingLoss`. By
        default the ranking is found by sorting.

    See Also
    --------
    RecallAtK : The same with the number of positive rows in the place of k.
    FBeta : Counts precision and recall of positive scores, without a k.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_subqn.losses import PrecisionAtK
    >>> scores, equal = np.array([2.0, 1.0, 0.5, -1.0]), np.full(4, 0.25)
    >>> PrecisionAtK(2).value(scores, np.array([1.0, -1.0, 1.0, -1.0]), equal)
    0.75
    """

    def __init__(
        self, k: int, groups: Groups | None = None, *, decay: float | None = None
    ) -> None:
        super().__init__(groups, decay=decay)
        check_positive("k", k, integer=True)
        self.k = k

    def check_rows(self, n_rows: int) -> None:
        if self.k >= n_rows:
            raise ValueError(
                f"k must be less than the number {n_rows} of samples, got {self.k}."
            )

    def threshold(self, scores: Floats) -> float:
        """Return a threshold that k scores of a single group exceed."""
        around = np.sort(scores)[::-1][self.k - 1 : self.k + 1]
        return float(around.mean())

    def gains(self, targets: Floats) -> Floats:
        return (targets > 0.0).astype(np.float64)

    def discounts(self, places: Rows) -> Floats:
        return np.where(places < self.k, 1.0 / self.k, 0.0)

    def scale(self, ideal: Floats, total: Floats) -> Floats:
        return np.ones_like(ideal)


class RecallAtK(PrecisionAtK):
    """Bound of the best possible recall up to rank k minus the recall up to rank k.

    As the precision, with b = k / P for P positive targets of a group.

    Parameters
    ----------
    k : int
        Number of first ranks that count, at least 1.
    groups : Groups, optional
        Queries; each is ranked separately. Default a single group.
    decay : float, optional
        Exponent of the factors of a linear assignment, as in :class:`RankingLoss`. By
        default the ranking is found by sorting.

    See Also
    --------
    PrecisionAtK : The same with k in the place of the number of positive rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_subqn.losses import RecallAtK
    >>> scores, equal = np.array([2.0, 1.0, 0.5, -1.0]), np.full(4, 0.25)
    >>> RecallAtK(2).value(scores, np.array([1.0, -1.0, 1.0, -1.0]), equal)
    0.75
    """

    def scale(self, ideal: Floats, total: Floats) -> Floats:
        return np.divide(self.k, total, out=np.zeros_like(ideal), where=total > 0.0)


class ExpectedRankUtility(RankingLoss):
    """Bound of one minus the expected rank utility (Breese et al. 1998).

    b = max(y - neutral, 0) for votes y, divided by the ideal, and a_r halves every
    ``half_life`` - 1 ranks.

    Parameters
    ----------
    groups : Groups, optional
        Queries; each is ranked separately. Default a single group.
    half_life : float, default=5.0
        Rank, above 1, at which a row has half of the discount factor of the first rank.
    neutral : float, default=0.0
        Votes up to this value have a gain of zero.
    decay : float, optional
        Exponent of the factors of a linear assignment, as in :class:`RankingLoss`. By
        default the ranking is found by sorting.

    See Also
    --------
    Ndcg : With logarithmic discounts.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_subqn.losses import ExpectedRankUtility
    >>> scores, equal = np.array([2.0, 1.0, 0.5, -1.0]), np.full(4, 0.25)
    >>> votes = np.array([5.0, 3.0, 4.0, 1.0])
    >>> loss = ExpectedRankUtility(half_life=2.0, neutral=3.0)
    >>> round(loss.value(scores, votes, equal), 3)
    0.35
    """

    def __init__(
        self,
        groups: Groups | None = None,
        *,
        half_life: float = 5.0,
        neutral: float = 0.0,
        decay: float | None = None,
    ) -> None:
        super().__init__(groups, decay=decay)
        check_positive("half_life", half_life)
        if half_life <= 1.0:
            raise ValueError(f"half_life must be above 1, got {half_life!r}.")
        self._half_life = half_life
        self._neutral = neutral

    def gains(self, targets: Floats) -> Floats:
        return np.maximum(targets - self._neutral, 0.0)

    def discounts(self, places: Rows) -> Floats:
        return np.exp2(-places / (self._half_life - 1.0))


class ReciprocalRank(RankingLoss):
    """Bound of one minus the reciprocal rank of the first row with a positive target.

    c_r = 1 / r. The measure is not a sum over ranks. The maximum is taken over the
    possible ranks of the first relevant row, in O(m²) for a group of m rows. Groups
    without relevant or without other rows have no loss.

    Parameters
    ----------
    groups : Groups, optional
        Queries; each is ranked separately. Default a single group.

    See Also
    --------
    Ndcg, PrecisionAtK : Where more than the first relevant row counts.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_subqn.losses import ReciprocalRank
    >>> scores, equal = np.array([2.0, 1.0, 0.5, -1.0]), np.full(4, 0.25)
    >>> relevant = np.array([-1.0, 1.0, 1.0, -1.0])
    >>> ReciprocalRank().value(scores, relevant, equal)
    1.5
    """

    first_only = True

    def __init__(self, groups: Groups | None = None) -> None:
        super().__init__(groups)

    def gains(self, targets: Floats) -> Floats:
        return (targets > 0.0).astype(np.float64)

    def discounts(self, places: Rows) -> Floats:
        return np.reciprocal(places + 1.0)

    def _best(
        self, ranked: RankedTargets, scores: Floats
    ) -> tuple[Floats, Floats, Floats]:
        chosen, lost = np.empty_like(scores), np.empty(len(ranked.groups))
        kernel.first_hit(
            scores,
            ranked.groups.sort(scores),
            ranked.groups.starts,
            (ranked.gains > 0.0).astype(np.uint8),
            ranked.factors,
            ranked.ideal_factors,
            chosen,
            lost,
        )
        return chosen, lost, lost

"""Convex bounds of measures of rankings, by linear assignment.

The rows of a group, say the documents of a query, are ranked by their scores z. A
measure sum_r a_r b_(r) sums the gains b of the documents at ranks r with non-increasing
discounts a_r. The factors c_r are non-increasing as well, so that sorting by scores
maximizes sum_r c_r z_(r). The loss of a group is

    max over permutations pi of <c_pi, z> - <a_pi, b> - <c*, z> + <a*, b>,

where c_pi holds the factor of each document's rank, and c* the factor of its rank in an
ideal ranking, by descending gains. The loss is an upper bound of the difference between
the ideal measure <a*, b> and the measure of the ranking by scores (Le and Smola 2007;
Teo et al. 2010, eq. 28 and Alg. 10, where a and b are exchanged in the indices of C:
here document j at rank r has the weight c_r z_j - a_r b_j in the assignment). Documents
with equal gains have several ideal rankings. c* is the mean over all ideal rankings, so
the loss does not depend on the order of the rows.

The maximum is a linear assignment of documents to ranks. For c = a it is solved by
sorting: the matrix a_r (z_j - b_j) is a product, and by the rearrangement inequality
the sum of products of two sequences, one of them non-increasing, is largest if the
other is non-increasing as well.

The loss of the measure by a permutation, <a*, b> - <a_pi, b>, is minus the conjugate at
the subgradient c_pi - c*. It does not depend on the scores; summed over the rows whose
ranks differ, it has no rounding errors of large scores.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from ..rounding import ROUNDED, rounding
from ._arguments import check_positive
from ._base import Floats, Rows, norm_by_weights
from ._groups import Groups
from ._of_rankings import Maximum, OfRankings


@dataclass
class RankedTargets:
    """The arrays of a ranking loss that depend on the targets.

    Attributes
    ----------
    targets : ndarray of shape (n,)
    groups : Groups
    gains : ndarray of shape (n,)
        Gain b of each row.
    discounts, factors : ndarray of shape (n,)
        a and c of the ranks, group after group. They are zero in groups whose rankings
        are all equally good.
    ideal_factors, ideal_discounts : ndarray of shape (n,)
        c* and a* of each row, the factors and discounts of the ideal ranking.
    scale : ndarray of shape (g,)
        Factor by which the gains of each group were multiplied.
    """

    targets: Floats
    groups: Groups
    gains: Floats
    discounts: Floats
    factors: Floats
    ideal_factors: Floats
    ideal_discounts: Floats
    scale: Floats


class RankingLoss(OfRankings):
    """Bound of a measure of rankings, the mean over groups of rows.

    The weight of a group is the sum of the weights of its rows. The subgradient is the
    linear function of one of the maximizing permutations. A subclass defines the
    measure, the sum of the gains of a group's rows times the discounts of their ranks,
    by ``gains`` and ``discounts``.

    Parameters
    ----------
    groups : Groups, optional
        Default one group.
    decay : float, optional
        Factors c_r = (r + 1)^-decay at ranks r = 1, 2, ... (Le and Smola 2007 take
        1/4), and a linear assignment of time O(m³) for a group of m rows. By default
        c = a, and the time is O(m log m).

    Attributes
    ----------
    first_only : bool
        Whether only the first row with a gain counts.

    See Also
    --------
    Ndcg, PrecisionAtK, RecallAtK, ExpectedRankUtility, ReciprocalRank : Measures.
    Inversions : Another bound of the same measures, for many rows of equal relevance.
    sklearn_subqn.BMRMRanker : Takes such losses as functions of the groups.

    Examples
    --------
    The share of the relevance that is among the first three rows:

    >>> import numpy as np
    >>> from sklearn_subqn import BMRMRanker
    >>> from sklearn_subqn.losses import RankingLoss
    >>> class TopThree(RankingLoss):
    ...     def gains(self, targets):
    ...         return targets
    ...     def discounts(self, places):
    ...         return (places < 3).astype(float)
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> y = np.digitize(X[:, 0] + 0.3 * X[:, 1], [0, 1])
    >>> qid = np.repeat(np.arange(6), 10)
    >>> ranker = BMRMRanker(loss=TopThree, alpha=1e-3).fit(X, y, qid=qid)
    >>> bool(ranker.dual_gap_ <= 1e-3 * ranker.objective_)
    True
    """

    first_only = False

    _memos = (*OfRankings._memos, "_ranked")

    def __init__(
        self, groups: Groups | None = None, *, decay: float | None = None
    ) -> None:
        if decay is not None:
            check_positive("decay", decay)
        self._groups = groups
        self._decay = decay
        self._ranked: RankedTargets | None = None

    @abstractmethod
    def gains(self, targets: Floats) -> Floats:
        """Return the gains b.

        Parameters
        ----------
        targets : ndarray of shape (n,)
            Relevances of the rows.

        Returns
        -------
        gains : ndarray of shape (n,)
            The contribution of each row to the measure at a rank of discount one.
        """

    @abstractmethod
    def discounts(self, places: Rows) -> Floats:
        """Return the discounts a.

        Parameters
        ----------
        places : ndarray of int
            Ranks, counted from zero.

        Returns
        -------
        discounts : ndarray of the shape of ``places``
            Non-increasing factors of the gains at these ranks.
        """

    def scale(self, ideal: Floats, total: Floats) -> Floats:
        """Return factors of the gains of each group, by default such that <a*, b> = 1.

        Parameters
        ----------
        ideal : ndarray of shape (n_groups,)
            The measure of ideal rankings, <a*, b>, for unscaled gains.
        total : ndarray of shape (n_groups,)
            Sums of the gains.

        Returns
        -------
        factors : ndarray of shape (n_groups,)
            Positive, or zero for groups that have no loss.
        """
        return np.divide(1.0, ideal, out=np.zeros_like(ideal), where=ideal > 0.0)

    def distance(self, dual: Floats, targets: Any, weights: Floats) -> float:
        """Return a bound on rounding errors of c_pi - c* in rows where both differ."""
        ranked = self.prepare(targets)
        factors = (
            ranked.groups.sums(weights)[ranked.groups.codes] * ranked.ideal_factors
        )
        sizes = np.where(dual != 0.0, np.abs(dual) + 2.0 * factors, 0.0)
        return rounding(len(dual)) * norm_by_weights(sizes, weights)

    def _maximize(self, scores: Floats, targets: Floats, weights: Floats) -> Maximum:
        ranked = self.prepare(targets)
        u, lost, sizes = self._best(ranked, scores)
        u -= ranked.ideal_factors
        losses = ranked.groups.sums(u * scores) + lost
        return Maximum.of_groups(ranked.groups, weights, losses, u, lost, sizes)

    def _best(
        self, ranked: RankedTargets, scores: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Return c_pi of each row, and each group's loss of the measure.

        The third array has the sums of the absolute values of the terms of the losses.
        """
        if self._decay is not None:
            return _lost(ranked, *_assign(ranked, scores))
        chosen = np.empty_like(scores)
        chosen[_order(ranked, scores)] = ranked.factors
        return _lost(ranked, chosen, chosen)

    def prepare(self, targets: Floats) -> RankedTargets:
        """Return the arrays that depend on the targets, which are constant."""
        ranked = self._ranked
        if ranked is None or ranked.targets is not targets:
            ranked = self._ranked = self._rank(targets)
        return ranked

    def _rank(self, targets: Floats) -> RankedTargets:
        groups = self._groups or Groups.one(len(targets))
        gains, discounts = self.gains(targets), self.discounts(groups.places)
        order = groups.sort(-gains)
        ideal = groups.sums_of_sorted(discounts * gains[order])
        worst = groups.sums_of_sorted(discounts * gains[groups.sort(gains)])
        counts = ideal - worst > ROUNDED * np.abs(ideal)
        scale = np.where(counts, self.scale(ideal, groups.sums(gains)), 0.0)
        in_sorted = np.repeat(counts, np.diff(groups.starts))
        factors = discounts = np.where(in_sorted, discounts, 0.0)
        if self._decay is not None:
            factors = np.where(in_sorted, (groups.places + 2.0) ** -self._decay, 0.0)
        ideal_factors = ideal_discounts = np.empty_like(gains)
        ideal_factors[order] = groups.means_of_ties(factors, gains[order])
        if self._decay is not None:
            ideal_discounts = np.empty_like(gains)
            ideal_discounts[order] = groups.means_of_ties(discounts, gains[order])
        return RankedTargets(
            targets,
            groups,
            gains * scale[groups.codes],
            discounts,
            factors,
            ideal_factors,
            ideal_discounts,
            scale,
        )


def _order(ranked: RankedTargets, scores: Floats) -> Rows:
    """Return the rows sorted by groups, and in a group by descending z - b.

    Differences rounded to equal numbers are compared by their exact rounding errors.
    """
    excess = scores - ranked.gains
    order = ranked.groups.sort(-excess)
    some = excess[order]
    if np.any(some[1:] == some[:-1]):
        # The rounding error of z - b, exactly (Knuth's two-sum).
        part = excess - scores
        rest = (scores - (excess - part)) - (ranked.gains + part)
        if rest.any():
            order = ranked.groups.sort(-excess, -rest)
    return order


def _lost(
    ranked: RankedTargets, chosen: Floats, discounts: Floats
) -> tuple[Floats, Floats, Floats]:
    """Return the results of ``RankingLoss._best`` for given discounts of each row."""
    changes = ranked.ideal_discounts - discounts
    lost = ranked.groups.sums(changes * ranked.gains)
    sizes = np.where(changes != 0.0, ranked.ideal_discounts + discounts, 0.0)
    sizes *= np.abs(ranked.gains)
    return chosen, np.maximum(lost, 0.0), ranked.groups.sums(sizes)


def _assign(ranked: RankedTargets, scores: Floats) -> tuple[Floats, Floats]:
    """Return c and a of the ranks of each row for arbitrary c, by linear assignment."""
    groups = ranked.groups
    rows = groups.sort(np.zeros_like(scores))
    factors, discounts = np.empty_like(scores), np.empty_like(scores)
    for a, b in pairwise(groups.starts):
        members, c = rows[a:b], ranked.factors[a:b]
        matrix = np.outer(c, scores[members])
        matrix -= np.outer(ranked.discounts[a:b], ranked.gains[members])
        ranks, documents = linear_sum_assignment(matrix, maximize=True)
        factors[members[documents]] = c[ranks]
        discounts[members[documents]] = ranked.discounts[a:b][ranks]
    return factors, discounts

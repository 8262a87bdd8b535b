"""Groups of rows that are compared with each other, such as the results of a query."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..kernels import ranking as kernel
from ._arguments import checked_rows
from ._base import Floats, Rows


class Groups:
    """A partition of the rows.

    The rows of a group, such as the results of a query, are compared with one another
    only. ``BMRMRanker`` makes a partition from ``qid`` or ``group``, and passes it to
    the function that is its ``loss``.

    Parameters
    ----------
    codes : array-like of shape (n,)
        Group of each row: integers from 0 to g - 1, each of which occurs.

    Attributes
    ----------
    starts : ndarray of shape (g + 1,)
        Start of each group among rows sorted by groups, then n.
    places : ndarray of shape (n,)
        Position of each row within its group, for rows sorted by groups.

    Raises
    ------
    ValueError
        If codes are not integers from 0 to g - 1, or one of these is missing.

    See Also
    --------
    RankingLoss : Losses of the ranking of each group.
    OrderedPairs : Losses of the pairs of each group.

    Examples
    --------
    >>> from sklearn_subqn import BMRMRanker
    >>> from sklearn_subqn.losses import Groups, Ndcg
    >>> Groups([0, 0, 0, 1, 1]).places
    array([0, 1, 2, 0, 1])
    >>> ranker = BMRMRanker(loss=lambda groups: Ndcg(groups, k=5, gain="linear"))
    """

    def __init__(self, codes: Any) -> None:
        self.codes = codes = checked_rows("codes", codes, 1)
        sizes = np.bincount(codes)
        if not sizes.all():
            raise ValueError(
                f"codes must be numbers from 0 that all occur; {sizes.argmin()} does "
                f"not, and the largest is {codes.max()}."
            )
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        self.places = np.arange(len(codes)) - np.repeat(self.starts[:-1], sizes)

    @classmethod
    def one(cls, n: int) -> Groups:
        """Return a single group of n rows."""
        return cls(np.zeros(n, dtype=np.intp))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def sort(self, keys: npt.NDArray[Any], *further: npt.NDArray[Any]) -> Rows:
        """Return the rows sorted by groups, and in a group by ascending keys.

        Rows of equal keys are sorted by further keys.
        """
        order = np.lexsort((*further[::-1], keys)) if further else np.argsort(keys)
        if len(self) > 1:
            order, unsorted = np.empty_like(order), order
            kernel.gather(unsorted, self.codes, self.starts, order)
        return order

    def sums(self, values: Floats) -> Floats:
        """Return the sum over each group of ``values`` of shape (n,), of shape (g,)."""
        return np.bincount(self.codes, values, len(self)).astype(np.float64, copy=False)

    def sums_of_sorted(self, values: Floats) -> Floats:
        """Return sums over groups, of shape (g,), of values given for sorted rows."""
        return np.add.reduceat(values, self.starts[:-1])

    def means_of_ties(self, values: Floats, keys: Floats) -> Floats:
        """Replace values of sorted rows by their means over runs of equal keys.

        Values are non-increasing in each group, and equal values remain unchanged.
        """
        first = (keys != np.roll(keys, 1)) | (self.places == 0)
        starts = np.flatnonzero(first)
        ends = np.append(starts[1:], len(keys))
        means = np.add.reduceat(values, starts) / (ends - starts)
        return np.repeat(
            np.clip(means, values[ends - 1], values[starts]), ends - starts
        )

"""The cuts that bundle methods keep, and products of their normals."""

from __future__ import annotations

import numpy as np

from ..losses._base import Floats
from ..objectives.objective import Cut
from .simplex_qp import with_few_vertices


class Cuts:
    """Cuts <a_j, w> + b_j with multipliers x on the unit simplex.

    Parameters
    ----------
    n_params : int
        Length q of normals.
    size : int or None
        Bundle size k >= 2. If the bundle is full, the oldest cut with a multiplier of
        zero is removed. If there is none, the two oldest cuts are replaced by their
        aggregate, their combination by multipliers (Teo et al. 2010, section 3.1). None
        for no limit.
    patience : int or None
        A cut is removed after its multiplier was zero in this many successive
        iterations (section 5.1.1). None keeps all cuts.

    Attributes
    ----------
    n_cuts : int
    """

    _ARRAYS = ("_normals", "_others", "_x", "_idle", "_born")

    def __init__(
        self, n_params: int, *, size: int | None = None, patience: int | None = 10
    ) -> None:
        self._size = size
        self._patience = patience
        capacity = 16 if size is None else min(size, 16)
        self._normals = np.zeros((capacity, n_params))
        # Columns: offsets, errors and norms.
        self._others = np.zeros((capacity, 3))
        self._x = np.zeros(capacity)
        self._idle = np.zeros(capacity, dtype=np.intp)
        self._born = np.zeros(capacity, dtype=np.intp)
        self._gram = np.zeros((capacity, capacity))
        self.n_cuts = 0
        self._n_born = 0

    @property
    def normals(self) -> Floats:
        """The normals A of shape (n_cuts, q)."""
        return self._normals[: self.n_cuts]

    @property
    def offsets(self) -> Floats:
        """The offsets b of shape (n_cuts,)."""
        return self._others[: self.n_cuts, 0]

    @property
    def multipliers(self) -> Floats:
        """The multipliers x of shape (n_cuts,)."""
        return self._x[: self.n_cuts]

    @multipliers.setter
    def multipliers(self, x: Floats) -> None:
        self._x[: self.n_cuts] = x

    def count_idle(self) -> None:
        """Count the iterations since the multiplier of each cut was positive."""
        idle = self._idle[: self.n_cuts]
        idle += 1
        idle[self.multipliers > 0.0] = 0

    def combine(self, x: Floats) -> None:
        """Set equivalent multipliers with at most q + 1 positive entries.

        The combination of the cuts has the same normal, and an offset at least as
        large.
        """
        self.multipliers = with_few_vertices(self.normals, self.offsets, x)
        self.count_idle()

    @property
    def gram(self) -> Floats:
        """Inner products of normals in the metric of ``add``: (n_cuts, n_cuts)."""
        return self._gram[: self.n_cuts, : self.n_cuts]

    def combination(self) -> Cut:
        """Return the combination of the cuts by their multipliers."""
        return self.mixed(self.multipliers)

    def mixed(self, x: Floats) -> Cut:
        """Return the combination of the cuts by weights of shape (n_cuts,)."""
        return Cut.mixed(x, self.normals, self._others[: self.n_cuts])

    def add(self, cut: Cut, image: Floats | None = None) -> None:
        """Store a cut.

        Parameters
        ----------
        cut : Cut
        image : ndarray of shape (q,), optional
            The normal multiplied by the metric of ``gram``. By default inner products
            are not computed.
        """
        if self._patience is not None:
            for j in np.flatnonzero(self._idle[: self.n_cuts] >= self._patience)[::-1]:
                self._remove(int(j))
        if self.n_cuts == self._size:
            self._make_room()
        if self.n_cuts == len(self._x):
            self._grow()
        j = self.n_cuts
        self.n_cuts = n = j + 1
        self._normals[j], self._others[j] = cut.normal, cut[1:]
        if image is not None:
            self._gram[j, :n] = self._gram[:n, j] = self._normals[:n] @ image
        self._x[j] = 1.0 if n == 1 else 0.0
        self._idle[j] = 0
        self._born[j] = self._n_born
        self._n_born += 1

    def _make_room(self) -> None:
        """Remove the oldest unused cut, or replace the two oldest by their aggregate.

        The aggregate stays the oldest. New cuts count as unused only after the next
        program over the cuts.
        """
        unused = np.flatnonzero(self._idle[: self.n_cuts])
        if unused.size:
            self._remove(int(unused[np.argmin(self._born[unused])]))
            return
        i, j = (int(index) for index in np.argsort(self._born[: self.n_cuts])[:2])
        x = self._x[[i, j]]
        share = x / x.sum() if x.any() else np.array([0.0, 1.0])
        pair = self._gram[np.ix_([i, j], [i, j])]
        square = float(share @ pair @ share)
        both = [i, j]
        cut = Cut.mixed(share, self._normals[both], self._others[both])
        self._normals[i], self._others[i] = cut.normal, cut[1:]
        self._gram[i] = share @ self._gram[both]
        self._gram[:, i] = self._gram[i]
        self._gram[i, i] = square
        self._x[i] = x.sum()
        self._remove(j)

    def _remove(self, j: int) -> None:
        """Move the last cut to the place of the removed one."""
        self.n_cuts -= 1
        n = self.n_cuts
        for name in self._ARRAYS:
            array = getattr(self, name)
            array[j] = array[n]
        self._gram[j] = self._gram[n]
        self._gram[:, j] = self._gram[:, n]

    def _grow(self) -> None:
        n = len(self._x)
        for name in self._ARRAYS:
            old = getattr(self, name)
            new = np.zeros((2 * n, *old.shape[1:]), dtype=old.dtype)
            new[:n] = old
            setattr(self, name, new)
        gram = np.zeros((2 * n, 2 * n))
        gram[:n, :n] = self._gram
        self._gram = gram

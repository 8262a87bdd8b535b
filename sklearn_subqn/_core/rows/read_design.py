"""The linear map of rows that are read for each use and not kept in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..losses._base import Rows
from .design import Design
from .row_views import SomeRows

#: Reads and returns rows of X.
Reader = Callable[[], Any]


# Blocks of at most 1 MiB in total stay in memory until the end of a fit.
# docs/constants.md has the figures.
_MOST_BYTES = 2**20


class Shelf:
    """A cache of the last rows that were read, shared by several designs.

    Small blocks are cached together, large blocks one at a time.
    """

    def __init__(self) -> None:
        self._held: dict[Design, Any] = {}

    def rows(self, design: Design, read: Reader) -> Any:
        """Return the rows of a design, from the cache or read anew."""
        if design not in self._held:
            if design.nbytes + sum(each.nbytes for each in self._held) > _MOST_BYTES:
                # Cached blocks are released first, so that two large blocks are not in
                # memory at the same time.
                self._held = {}
            self._held[design] = read()
        return self._held[design]


class ReadDesign(Design):
    """The linear map of rows that do not stay in memory.

    For dense rows, ``change`` is applied to blocks that fit into the cache, and only to
    the rows in use. Small subsets of the rows stay in memory.

    Parameters
    ----------
    like : Design
        The map of the same rows in memory, which provides all other attributes.
    read : callable
        Reads and returns the rows, an array or ``SomeRows``.
    change : callable or None
        Transformation of rows that have been read, such as scaling; default none.
    shelf : Shelf or None
        The cache of the rows. None for a subset, whose rows come from the cache of
        another design.
    """

    holds_rows = False

    def __init__(
        self,
        like: Design,
        read: Reader,
        change: Callable[[Any], Any] | None,
        shelf: Shelf | None,
    ) -> None:
        known = {
            name: value
            for name, value in vars(like).items()
            if name not in ("X", "matrix", "_blocks_of_threads", "_parent")
        }
        if shelf is not None:
            # The squares are computed while the rows are in memory, since they are
            # needed later.
            known["squares"] = like.squares
        # Products use the read blocks, whose columns are already scaled.
        vars(self).update(known, _parent=None, _column_sizes=None)
        self._read, self._change, self._shelf = read, change, shelf
        self._dtype, self._size = like.dtype, like.nbytes
        # Dense rows are transformed in blocks.
        changed = change is not None and not self.is_sparse
        self._in_blocks = self._in_blocks or changed

    def __getattr__(self, name: str) -> Any:
        # Attributes that store the rows in other designs are computed at each use here.
        if name == "X":
            if self._shelf is None:
                return self._read()
            return self._shelf.rows(self, self._as_needed)
        if name == "_blocks_of_threads":
            bounds = [(rows.start, rows.stop) for rows in self.row_slices]
            return [self._blocks(*pair) for pair in bounds]
        raise AttributeError(name)

    def _as_needed(self) -> Any:
        """Return the rows for the cache; dense rows are transformed later, on use."""
        X, change = self._read(), self._change
        if self.is_sparse:
            return self._like(X if change is None else change(X), None).X
        return X if change is None else SomeRows(X, range(self.n_rows), change)

    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def nbytes(self) -> int:
        return self._size

    def rows(self, rows: Rows, *, copy: bool = True) -> Design:
        subset = super().rows(rows, copy=False)
        # Without a copy, the subset is used immediately and needs no memory of its own.
        if not copy:
            return subset
        # Rows with at most twice as many entries as there are rows stay in memory.
        if subset.n_entries <= 2 * self.n_rows:
            return self._kept(subset)
        return ReadDesign(subset, lambda: self.X[rows], None, None)

    def of_features(self, columns: Rows, fit_intercept: bool) -> Design:
        some = super().of_features(columns, fit_intercept)
        return self._kept(some) if len(columns) < self.n_features else self._again(some)

    def of_outputs(self, n_outputs: int) -> Design:
        return self._again(super().of_outputs(n_outputs))

    def _again(self, like: Design) -> ReadDesign:
        """Return another map of the same rows, which are read for each use."""
        return ReadDesign(like, lambda: self.X, None, None)

    def kept_rows(self, rows: Rows) -> Design:
        return self._kept(super().rows(rows, copy=False))

    def _kept(self, subset: Design) -> Design:
        """Return a design of rows that have been read, with its own memory."""
        return subset if self.is_sparse else subset._like(subset.X.copy(), None)

"""The linear map of rows that are read for each use, and do not stay in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..losses._base import Rows
from .design import Design
from .row_views import SomeRows

#: Returns rows of X.
Reader = Callable[[], Any]


# Blocks that have no more bytes in all stay in memory until the end of a fit.
# docs/constants.md has the figures.
_MOST_BYTES = 2**20


class Shelf:
    """Holds the rows that were read last, of all designs that share it.

    Small blocks are held side by side, large ones one at a time.
    """

    def __init__(self) -> None:
        self._held: dict[Design, Any] = {}

    def rows(self, design: Design, read: Reader) -> Any:
        """Return the rows of a design."""
        if design not in self._held:
            if design.nbytes + sum(each.nbytes for each in self._held) > _MOST_BYTES:
                # Two large blocks are not held at the same time.
                self._held = {}
            self._held[design] = read()
        return self._held[design]


class ReadDesign(Design):
    """The linear map of rows that do not stay in memory.

    Of dense rows ``change`` is applied to pieces that fit into the cache, and only to
    those rows that are asked for. Small subsets of the rows stay in memory.

    Parameters
    ----------
    like : Design
        The map of the same rows in memory. All but the rows is taken from it.
    read : callable
        Returns the rows, or SomeRows.
    change : callable or None
        What is done to rows that have been read, such as scaling; default nothing.
    shelf : Shelf or None
        Holds the rows until those of another design are read. None for a subset, which
        takes its rows from what another design holds.
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
            # The squares will be asked for, and now the rows are in memory.
            known["squares"] = like.squares
        # Products are by the blocks that are read, whose columns are divided already.
        vars(self).update(known, _parent=None, _are_few=False, _column_sizes=None)
        self._read, self._change, self._shelf = read, change, shelf
        self._sparse, self._dtype, self._size = like.is_sparse, like.dtype, like.nbytes
        # Changes of dense rows are made in blocks.
        changed = change is not None and not self._sparse
        self._in_blocks = self._in_blocks or changed

    def __getattr__(self, name: str) -> Any:
        # Attributes of other designs, which here are made at each use.
        if name == "X":
            if self._shelf is None:
                return self._read()
            return self._shelf.rows(self, self._as_needed)
        if name == "_blocks_of_threads":
            bounds = [(rows.start, rows.stop) for rows in self.row_slices]
            return [self._blocks(*pair) for pair in bounds]
        raise AttributeError(name)

    def _as_needed(self) -> Any:
        """Return what the shelf holds: dense rows are changed later, at each use."""
        X, change = self._read(), self._change
        if self._sparse:
            return self._like(X if change is None else change(X), None).X
        return X if change is None else SomeRows(X, range(self.n_rows), change)

    @property
    def is_sparse(self) -> bool:
        return self._sparse

    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def nbytes(self) -> int:
        return self._size

    def rows(self, rows: Rows, *, copy: bool = True) -> Design:
        subset = super().rows(rows, copy=False)
        # Rows that are not to be copied are used at once.
        if not copy:
            return subset
        # Rows with no more entries than two vectors of the rows stay in memory.
        if subset.n_entries <= 2 * self.n_rows:
            return self._kept(subset)
        return ReadDesign(subset, lambda: self.X[rows], None, None)

    def kept_rows(self, rows: Rows) -> Design:
        return self._kept(super().rows(rows, copy=False))

    def _kept(self, subset: Design) -> Design:
        """Return a design of rows that have been read, as one of its own memory."""
        return subset if self._sparse else self._like(subset.X.copy(), None)

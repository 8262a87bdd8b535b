"""The linear map of rows that are read for each use, and do not stay in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .design import Design
from .losses._base import Rows

#: Returns rows of X.
Reader = Callable[[], Any]


class Shelf:
    """Holds the rows that were read last, of all designs that share it."""

    def __init__(self) -> None:
        self._last: tuple[Any, Any] = None, None

    def rows(self, design: Design, read: Reader) -> Any:
        """Return the rows of a design."""
        if self._last[0] is not design:
            # Two blocks are not held at the same time.
            self._last = None, None
            self._last = design, read()
        return self._last[1]


class ReadDesign(Design):
    """The linear map of rows that do not stay in memory.

    Parameters
    ----------
    like : Design
        Of these rows.
    read : callable
        Returns them.
    shelf : Shelf or None
        Where they stay until others are read; with None they are made of such rows.
    """

    def __init__(self, like: Design, read: Reader, shelf: Shelf | None) -> None:
        known = {
            name: value
            for name, value in vars(like).items()
            if name not in ("X", "_parts", "_parent")
        }
        vars(self).update(known, _parent=None)
        self._read, self._shelf = read, shelf
        self._sparse, self._dtype, self._size = like.is_sparse, like.dtype, like.nbytes

    def __getattr__(self, name: str) -> Any:
        # Attributes of designs whose rows are at hand.
        if name == "X":
            if self._shelf is None:
                return self._read()
            return self._shelf.rows(self, lambda: self._like(self._read(), None).X)
        if name == "_parts":
            bounds = [(rows.start, rows.stop) for rows in self.row_slices]
            return [list(self._blocks(*pair)) for pair in bounds]
        raise AttributeError(name)

    @property
    def is_sparse(self) -> bool:
        return self._sparse

    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def nbytes(self) -> int:
        return self._size

    @property
    def matrix(self) -> Any:
        return Design.matrix.func(self)

    def rows(self, rows: Rows, *, copy: bool = True) -> Design:
        subset = super().rows(rows, copy=copy)
        # Those that are not to be copied are used at once.
        return ReadDesign(subset, lambda: self.X[rows], None) if copy else subset

"""Encoding of tokens with named attributes as rows of a sparse matrix."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .._checks import check_unmasked
from .._checks.arrays import LARGEST_VALUE
from .._core.arrays import Floats, Indices
from .._core.memory import BLOCK_SIZE
from .sequences import Sequences
from .tables import is_table, rows_of_table

# Column number for omitted entries: attributes unknown to the model, and zeros.
_LEFT_OUT = -1


class _Values(dict[Any, int]):
    """Columns of one name's values; new values are looked up by the reader."""

    __slots__ = ("_name", "_reader")

    def __init__(self, name: Any, reader: AttributeReader) -> None:
        self._name = name
        self._reader = reader

    def __missing__(self, value: Any) -> int:
        found, lasting = self._reader.look_up(self._name, value)
        if lasting:
            self[value] = found
        return found


class _Names(dict[Any, _Values]):
    """The columns of each name's values; ``prefix`` precedes all names."""

    __slots__ = ("_prefix", "_reader")

    def __init__(self, reader: AttributeReader, prefix: str = "") -> None:
        self._reader = reader
        self._prefix = prefix

    def __missing__(self, name: Any) -> _Values:
        whole = f"{self._prefix}{self._reader.text(name)}" if self._prefix else name
        self[name] = values = _Values(whole, self._reader)
        return values


class AttributeReader:
    """Turns tokens with named attributes into rows of a sparse matrix.

    A token is a mapping from names to values (a dict, or a pandas Series with strings
    as index), or an iterable of names. Values are read as in CRFsuite: a string gives
    the attribute "name:value" of weight 1; a number or truth value is the weight of the
    attribute "name"; a dict, list, tuple or set is read as a token whose attributes
    have the prefix "name:".

    Columns are cached by name and value, because joining the two strings takes most of
    the time otherwise.

    Parameters
    ----------
    columns : dict from str to int
        Columns of the attributes; new attributes are added if ``learns``.
    learns : bool
        Whether unknown attributes become new columns; else they are left out.
    """

    def __init__(self, columns: dict[str, int], learns: bool) -> None:
        self._columns = columns
        self._learns = learns
        self._names = _Names(self)
        # The caches of nested dicts, by the name of the dict.
        self._inner: dict[Any, _Names] = {}
        self._starts = [0]
        self._ends = [0]
        # Columns and weights of the entries with weights other than one. Entry i of
        # this list has the provisional column -2 - i.
        self._others: list[tuple[int, float]] = []

    def read(self, sequences: Iterable[Any]) -> Sequences:
        """Return the sequences of tokens as rows.

        Raises
        ------
        TypeError, ValueError
            If a token is not acceptable, or a training sequence is empty; the message
            names the sequence.
        """
        names, ends, starts = self._names, self._ends, self._starts
        blocks: list[npt.NDArray[np.int32]] = []
        found: list[int] = []
        n_moved = 0
        for sequence in sequences:
            for token in self._tokens(sequence):
                if isinstance(token, dict):
                    try:
                        found += [names[name][value] for name, value in token.items()]
                    except TypeError:
                        # The value is a collection, or its type is not supported.
                        found += self._nested(token)
                else:
                    found += self._alone(token)
                ends.append(n_moved + len(found))
            if self._learns and len(ends) - 1 == starts[-1]:
                raise ValueError(f"Sequence {len(starts) - 1} is empty; leave it out.")
            starts.append(len(ends) - 1)
            # An int32 array takes less memory than a list of integers.
            if len(found) > BLOCK_SIZE:
                blocks.append(np.array(found, dtype=np.int32))
                n_moved += len(found)
                found.clear()
        blocks.append(np.array(found, dtype=np.int32))
        X = self._matrix(np.concatenate(blocks))
        return Sequences(X, np.array(starts, dtype=np.intp), False)

    def look_up(self, name: Any, value: Any) -> tuple[int, bool]:
        """Return the column of a name with a value, and whether to cache the column."""
        if isinstance(value, (str, bytes)):
            return self._column(f"{self.text(name)}:{self.text(value)}"), True
        # timedelta64 is a subclass of NumPy's integers, but not a number.
        real = isinstance(value, (numbers.Real, np.bool_))
        if not real or isinstance(value, np.timedelta64):
            raise TypeError(
                f"{self._where()} has the value {value!r} of type "
                f"{type(value).__name__} for {name!r}; values must be strings, numbers,"
                " truth values, or dicts or lists of attributes."
            )
        weight = float(value)
        if not np.isfinite(weight):
            raise ValueError(
                f"Input X contains NaN or infinity: {self._where()} has the value "
                f"{value!r} for {name!r}."
            )
        column = self._column(self.text(name)) if weight else _LEFT_OUT
        if weight in (0.0, 1.0) or column == _LEFT_OUT:
            return column, weight in (0.0, 1.0)
        self._others.append((column, weight))
        return -1 - len(self._others), False

    def _matrix(self, columns: npt.NDArray[np.int32]) -> Any:
        values = np.ones(len(columns))
        ends = np.array(self._ends, dtype=np.intp)
        for place in np.flatnonzero(columns < _LEFT_OUT).tolist():
            columns[place], values[place] = self._others[-2 - columns[place]]
        kept = columns != _LEFT_OUT
        if not kept.all():
            columns, values = columns[kept], values[kept]
            ends = np.concatenate([[0], np.cumsum(kept)])[ends]
        shape = len(ends) - 1, len(self._columns)
        return sparse.csr_matrix((values, columns, ends), shape=shape)

    def _tokens(self, sequence: Any) -> Iterable[Any]:
        check_unmasked(f"Sequence {len(self._starts) - 1}", sequence)
        if isinstance(sequence, (str, bytes, dict)) or not isinstance(
            sequence, Iterable
        ):
            raise TypeError(
                f"Sequence {len(self._starts) - 1} must be a list of feature dicts or a"
                f" matrix, got {sequence!r} of type {type(sequence).__name__}."
            )
        return rows_of_table(sequence) if is_table(sequence) else sequence

    def _alone(self, token: Any) -> list[int]:
        """Return the columns of a token that is a list or a mapping, but not a dict."""
        if isinstance(token, Mapping) or _is_named_series(token):
            return self._nested(dict(token.items()))
        if isinstance(token, (str, bytes)) or not isinstance(token, Iterable):
            raise TypeError(
                f"{self._where()} must be a dict or a list of attributes, got "
                f"{token!r}."
            )
        return [self._column(self.text(name)) for name in _in_order(token)]

    def _nested(self, token: dict[Any, Any]) -> list[int]:
        """Return the columns of a token with collections among its values."""
        found: list[int] = []
        for name, value in token.items():
            if isinstance(value, dict):
                found += self._of_dict(name, value)
            elif isinstance(value, (list, tuple, set, frozenset)):
                values = self._names[name]
                found += [values[self.text(inner)] for inner in _in_order(value)]
            else:
                try:
                    found.append(self._names[name][value])
                except TypeError:
                    # Raises a message about the value itself, not about its hash.
                    self.look_up(name, value)
                    raise
        return found

    def _of_dict(self, name: Any, value: dict[Any, Any]) -> list[int]:
        """Return the columns of a dict that is the value of a name."""
        try:
            if name not in self._inner:
                self._inner[name] = _Names(self, f"{self.text(name)}:")
            names = self._inner[name]
            return [names[inner][v] for inner, v in value.items()]
        except TypeError:
            # The value is a collection, or its type is not supported.
            whole = {f"{self.text(name)}:{self.text(n)}": value[n] for n in value}
            return self._nested(whole)

    def _column(self, attribute: str) -> int:
        if self._learns:
            return self._columns.setdefault(attribute, len(self._columns))
        return self._columns.get(attribute, _LEFT_OUT)

    def text(self, name: Any) -> str:
        """Return a name as text; raise TypeError for other types."""
        if isinstance(name, str):
            return name
        if isinstance(name, bytes):
            return name.decode()
        raise TypeError(
            f"{self._where()} has the attribute {name!r} of type {type(name).__name__};"
            " names of attributes must be strings."
        )

    def _where(self) -> str:
        n_sequences, n_tokens = len(self._starts) - 1, len(self._ends) - 1
        return f"Token {n_tokens - self._starts[-1]} of sequence {n_sequences}"


def plain_rows(
    sequence: Any, columns: dict[str, int]
) -> tuple[Floats, Indices, Indices] | None:
    """Return the known attributes of one sequence, faster than AttributeReader.

    Parameters
    ----------
    sequence : sequence of tokens
    columns : dict from str to int
        Columns of the attributes.

    Returns
    -------
    data, indices, indptr : ndarray
        Rows in CSR format; ``data`` is empty where all entries are one. None is
        returned for tokens that need AttributeReader, which also raises for invalid
        ones.
    """
    if type(sequence) not in (list, tuple) or not sequence:
        return None
    find = columns.get
    found: list[int] = []
    # Weights other than one, by position in ``found``.
    others: dict[int, float] = {}
    ends, texts = [0], True
    for token in sequence:
        if type(token) is dict:
            attributes = token.items()
            if texts:
                try:
                    known = map(find, map(":".join, attributes))
                    found += [column for column in known if column is not None]
                    ends.append(len(found))
                    continue
                except TypeError:
                    # Where one token has numbers, the later tokens usually have numbers
                    # as well.
                    texts = False
                    del found[ends[-1] :]
            for name, value in attributes:
                kind = type(value)
                if type(name) is not str:
                    return None
                if kind is str:
                    column = find(f"{name}:{value}")
                elif kind is bool:
                    # False is a weight of zero.
                    column = find(name) if value else None
                elif kind is float or kind is int:
                    column = find(name)
                    if value != 1 and column is not None:
                        others[len(found)] = float(value)
                    # Comparisons with nan are false, so nan returns None as well.
                    if not abs(value) <= LARGEST_VALUE:
                        return None
                else:
                    return None
                if column is not None:
                    found.append(column)
        elif type(token) is list and {*map(type, token)} <= {str}:
            found += [column for column in map(find, token) if column is not None]
        else:
            return None
        ends.append(len(found))
    data = np.ones(len(found) if others else 0)
    data[list(others)] = list(others.values())
    return data, np.array(found, dtype=np.int32), np.array(ends, dtype=np.int32)


def _in_order(names: Iterable[Any]) -> Iterable[Any]:
    """Return names in an order that does not depend on the process's hash seed."""
    return sorted(names) if isinstance(names, (set, frozenset)) else names


def _is_named_series(token: Any) -> bool:
    """Whether a token is a pandas Series with strings as index."""
    return hasattr(token, "iloc") and all(isinstance(name, str) for name in token.index)

"""Sequences of tokens: from feature dicts or matrices to one sparse matrix; labels.

And back: the weights of a model by names of attributes and labels.
"""

from __future__ import annotations

import numbers
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ._core.chain_design import Pairs
from ._validation import (
    check_no_nul,
    check_sparse_structure,
    check_unmasked,
    is_missing,
)

Index = npt.NDArray[np.intp]

# Column of what is left out: attributes that training did not see, values of zero.
_LEFT_OUT = -1

# Columns are gathered in a list, and moved to an array of four bytes each in blocks.
_BLOCK = 2**20


class Sequences(NamedTuple):
    """Sequences one below the other.

    Attributes
    ----------
    X : csr_matrix or csr_array of shape (n_tokens, n_attributes)
        Entries of a row are in no order; the same column may occur twice.
    starts : ndarray of shape (n_sequences + 1,)
        Tokens of sequence i are rows ``starts[i]`` to ``starts[i + 1] - 1``.
    stacked : bool
        Whether they were given one below the other.
    """

    X: Any
    starts: Index
    stacked: bool

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> Index:
        """Number of tokens of each sequence."""
        return np.diff(self.starts)

    def split(self, tokens: Any) -> list[Any]:
        """Return what there is for each token by sequences."""
        return [tokens[first:end] for first, end in pairwise(self.starts.tolist())]


class _Values(dict[Any, int]):
    """Where the values of one name are found; asks the reader for new ones."""

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
    """The values of each name, which may have a prefix in names of attributes."""

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

    A token is a dict from names to values, or like one, as a pandas Series is that has
    strings for an index; or it is an iterable of names. As in CRFsuite, a string as the
    value makes the attribute "name:value" of weight 1, a number or truth value is the
    weight of the attribute "name", and of a dict, list, tuple or set the attributes are
    those of a token, each behind "name:".

    What was found once for a name and a value is found again without making the string
    that joins them, which takes most of the time otherwise.

    Parameters
    ----------
    columns : dict from str to int
        Columns of the attributes; new ones are added if ``learns``.
    learns : bool
        Whether attributes that are not known become columns, or are left out.
    """

    def __init__(self, columns: dict[str, int], learns: bool) -> None:
        self._columns = columns
        self._learns = learns
        self._names = _Names(self)
        # Of dicts among the values, by the name of each.
        self._inner: dict[Any, _Names] = {}
        self._starts = [0]
        self._ends = [0]
        # Columns and weights of entries other than one, which are found as -2, -3, ...
        self._others: list[tuple[int, float]] = []

    def read(self, sequences: Iterable[Any]) -> Sequences:
        """Return the sequences of tokens as rows.

        Raises
        ------
        TypeError, ValueError
            If a token is not acceptable, or a sequence is empty from which attributes
            are learned; says which.
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
                        # Collections, or what is not acceptable.
                        found += self._nested(token)
                else:
                    found += self._alone(token)
                ends.append(n_moved + len(found))
            if self._learns and len(ends) - 1 == starts[-1]:
                raise ValueError(f"Sequence {len(starts) - 1} is empty; leave it out.")
            starts.append(len(ends) - 1)
            if len(found) > _BLOCK:
                blocks.append(np.array(found, dtype=np.int32))
                n_moved += len(found)
                found.clear()
        blocks.append(np.array(found, dtype=np.int32))
        X = self._matrix(np.concatenate(blocks))
        return Sequences(X, np.array(starts, dtype=np.intp), False)

    def look_up(self, name: Any, value: Any) -> tuple[int, bool]:
        """Return where a name with a value is found, and whether that stays so."""
        if isinstance(value, (str, bytes)):
            return self._column(f"{self.text(name)}:{self.text(value)}"), True
        if not isinstance(value, (numbers.Real, np.bool_)):
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
        """Return what is found in a token that is no dict, but like one, or names."""
        if isinstance(token, Mapping) or _is_named_series(token):
            return self._nested(dict(token.items()))
        if isinstance(token, (str, bytes)) or not isinstance(token, Iterable):
            raise TypeError(
                f"{self._where()} must be a dict or a list of attributes, got "
                f"{token!r}."
            )
        return [self._column(self.text(name)) for name in _in_order(token)]

    def _nested(self, token: dict[Any, Any]) -> list[int]:
        """Return what is found in a token with collections among its values."""
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
                    # Says what is wrong, where that is not known from the hash.
                    self.look_up(name, value)
                    raise
        return found

    def _of_dict(self, name: Any, value: dict[Any, Any]) -> list[int]:
        """Return what is found in a dict that is the value of a name."""
        try:
            if name not in self._inner:
                self._inner[name] = _Names(self, f"{self.text(name)}:")
            names = self._inner[name]
            return [names[inner][v] for inner, v in value.items()]
        except TypeError:
            # Collections, or what is not acceptable.
            whole = {f"{self.text(name)}:{self.text(n)}": value[n] for n in value}
            return self._nested(whole)

    def _column(self, attribute: str) -> int:
        if self._learns:
            return self._columns.setdefault(attribute, len(self._columns))
        return self._columns.get(attribute, _LEFT_OUT)

    def text(self, name: Any) -> str:
        """Return a name as text; raise TypeError if it is none."""
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


def _in_order(names: Iterable[Any]) -> Iterable[Any]:
    """Return names in an order that is the same in every process."""
    return sorted(names) if isinstance(names, (set, frozenset)) else names


def _is_named_series(token: Any) -> bool:
    """Whether a token is a pandas Series, as a row of a table, with names of values."""
    return hasattr(token, "iloc") and all(isinstance(name, str) for name in token.index)


def is_table(X: Any) -> bool:
    """Whether X is a table of pandas or polars, and not one column of it."""
    of_pandas = hasattr(X, "iloc")
    return (of_pandas and X.ndim == 2) or (
        not of_pandas and hasattr(X, "collect_schema") and hasattr(X, "shape")
    )


def has_words(table: Any) -> bool:
    """Whether a table has a column with strings: its rows are tokens with names."""
    columns = (
        [table.iloc[:, j] for j in range(table.shape[1])]
        if hasattr(table, "iloc")
        else table.iter_columns()
    )
    return any(
        not _is_of_numbers(column.dtype) and any(isinstance(x, str) for x in column)
        for column in columns
    )


def _is_of_numbers(dtype: Any) -> bool:
    """Whether a type of a column of pandas or polars is one of numbers."""
    kind = getattr(dtype, "kind", None)
    return bool(kind in tuple("biuf") if kind else dtype.is_numeric())


def rows_of_table(table: Any) -> list[dict[Any, Any]]:
    """Return the rows of a table as dicts by names of columns.

    Raises
    ------
    ValueError
        If two columns have the same name.
    """
    names = list(table.columns)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"X has two columns of the name {twice!r}.")
    rows: list[dict[Any, Any]]
    rows = table.to_dict("records") if hasattr(table, "iloc") else table.to_dicts()
    return rows


def is_matrix(X: Any) -> bool:
    """Whether X is a matrix of numbers, or a table."""
    return (
        sparse.issparse(X)
        or (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype != object)
        or is_table(X)
    )


def is_empty(sequence: Any) -> bool:
    """Whether a sequence of any kind has no tokens, as far as it has a length."""
    if hasattr(sequence, "shape"):
        return len(sequence.shape) > 0 and sequence.shape[0] == 0
    return hasattr(sequence, "__len__") and len(sequence) == 0


def stack_matrices(sequences: list[Any], may_be_empty: bool) -> tuple[Any, Index]:
    """Return matrices of equally many columns one below the other, and their starts.

    Tables make a table, others an array or a CSR matrix. At least one is not empty.

    Raises
    ------
    TypeError, ValueError
        If one is empty that must not be, has no rows of numbers, or has other columns
        than the first.
    """
    lengths: list[int] = []
    parts: list[Any] = []
    first = 0
    for i, matrix in enumerate(sequences):
        if is_empty(matrix):
            if not may_be_empty:
                raise ValueError(f"Sequence {i} is empty; leave it out.")
            lengths.append(0)
            continue
        first = first if parts else i
        _check_alike(i, matrix, first, sequences[first])
        parts.append(matrix)
        lengths.append(matrix.shape[0])
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.intp)
    if is_table(parts[0]):
        return _joined(parts), starts
    if any(map(sparse.issparse, parts)):
        return sparse.vstack(list(map(sparse.csr_array, parts)), "csr"), starts
    return np.concatenate(parts), starts


def _check_alike(i: int, matrix: Any, first: int, other: Any) -> None:
    """Raise unless sequence i is a matrix with the columns of the first one."""
    kind = "table" if is_table(other) else "matrix"
    if not is_matrix(matrix) or is_table(matrix) != is_table(other):
        raise TypeError(
            f"Sequence {i} must be a {kind} as sequence {first} is, got an object of "
            f"type {type(matrix).__name__}."
        )
    if len(matrix.shape) != 2 or matrix.shape[1] != other.shape[1]:
        raise ValueError(
            f"Sequence {i} must have shape (n_tokens, {other.shape[1]}) as sequence "
            f"{first} has, got {matrix.shape}."
        )
    check_sparse_structure(matrix, f"Sequence {i}")
    check_unmasked(f"Sequence {i}", matrix)
    if kind == "table" and matrix is not other:
        names = zip(matrix.columns, other.columns, strict=True)
        for name, expected in names:
            if name != expected:
                raise ValueError(
                    f"Sequence {i} must have the columns of sequence {first} in the "
                    f"same order, got {name!r} where that has {expected!r}."
                )


def _joined(tables: list[Any]) -> Any:
    """Return tables with the same columns one below the other."""
    for kind in type(tables[0]).__mro__:
        module: Any = sys.modules.get(kind.__module__.partition(".")[0])
        if hasattr(module, "concat"):
            options = {} if hasattr(kind, "iloc") else {"how": "vertical_relaxed"}
            return module.concat(tables, **options)
    raise TypeError(
        f"Tables of type {type(tables[0]).__name__} cannot be joined; give arrays."
    )


def starts_of_lengths(lengths: Any, n_tokens: int, may_be_empty: bool) -> Index:
    """Return where sequences of such lengths start, and the end of the last one.

    Raises
    ------
    TypeError, ValueError
        If ``lengths`` is no list of integers, positive unless sequences may be empty,
        whose sum is ``n_tokens``.
    """
    check_unmasked("lengths", lengths)
    counts = np.asarray(lengths)
    if counts.ndim != 1 or counts.dtype.kind not in "iu":
        raise TypeError(
            "lengths must be a one-dimensional array of integers, got an array of "
            f"shape {counts.shape} and type {counts.dtype}."
        )
    least = 0 if may_be_empty else 1
    if np.any(counts < least):
        i = int(np.flatnonzero(counts < least)[0])
        raise ValueError(
            f"lengths must be {'non-negative' if may_be_empty else 'positive'}, got "
            f"{counts[i]} for sequence {i}."
            + ("" if may_be_empty else " Leave empty sequences out.")
        )
    if counts.sum() != n_tokens:
        raise ValueError(
            f"lengths must add up to the number of rows of X, {n_tokens}, got a sum of "
            f"{counts.sum()}."
        )
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.intp)


def flat_labels(y: Any, lengths: Index) -> list[Any]:
    """Return the labels of all tokens, from a list of labels for each sequence.

    Raises
    ------
    TypeError, ValueError
        If there are more or less labels than tokens; says for which sequence.
    """
    labels: list[Any] = []
    for i, (sequence, length) in enumerate(zip(y, lengths.tolist(), strict=True)):
        if isinstance(sequence, (str, bytes)) or not isinstance(sequence, Iterable):
            raise TypeError(
                f"y must have a list of labels for each sequence; y[{i}] is "
                f"{sequence!r}."
            )
        check_unmasked(f"y[{i}]", sequence)
        before = len(labels)
        labels.extend(sequence.tolist() if hasattr(sequence, "tolist") else sequence)
        if len(labels) - before != length:
            raise ValueError(
                f"Sequence {i} has {length} tokens, but {len(labels) - before} labels."
            )
    return labels


def distinct_labels(labels: list[Any]) -> npt.NDArray[Any]:
    """Return the different labels, sorted.

    Raises
    ------
    TypeError, ValueError
        If labels are missing, cannot be hashed or not be compared, or end with NUL.
    """
    try:
        different = set(labels)
    except TypeError as error:
        raise TypeError(
            f"Labels of tokens must be strings or numbers: {error}."
        ) from error
    if any(map(is_missing, different)):
        raise ValueError(
            "Input y contains NaN, None or NA. Leave sequences with tokens without a "
            "label out."
        )
    check_no_nul(different)
    try:
        ordered = sorted(different)
    except TypeError as error:
        raise TypeError(
            "Labels of tokens must be all strings or all numbers, got types "
            f"{sorted({type(label).__name__ for label in different})}."
        ) from error
    classes = np.array(ordered)
    if classes.ndim != 1 or classes.dtype.kind not in "biuUS":
        if classes.dtype.kind == "f" and np.all(classes == np.rint(classes)):
            return classes
        raise ValueError(
            "Labels of tokens must be strings, integers or truth values, got "
            f"{ordered[0]!r} of type {type(ordered[0]).__name__}."
        )
    return classes


def label_codes(labels: list[Any], classes: npt.NDArray[Any]) -> Index:
    """Return the index of each label among the classes.

    Raises
    ------
    ValueError
        If there are other labels.
    """
    codes = {label: code for code, label in enumerate(classes.tolist())}
    try:
        found = [codes[label] for label in labels]
    except KeyError:
        unknown = sorted(set(labels) - set(codes))
        raise ValueError(
            f"y contains labels that are not among the classes: {unknown}; classes are "
            f"{classes.tolist()}."
        ) from None
    return np.array(found, dtype=np.intp)


class StateFeatures(Mapping[tuple[Any, Any], float]):
    """Weights of pairs of an attribute and a label, those that are not zero.

    Parameters
    ----------
    names : list or range
        Names of the attributes in the order of their columns, or the columns.
    columns : dict or range
        From names to columns.
    labels : list
        Names of the labels.
    pairs : Pairs
    w : ndarray of shape (P,)
    """

    def __init__(
        self, names: Any, columns: Any, labels: list[Any], pairs: Pairs, w: Any
    ) -> None:
        self._names = names
        self._columns = columns
        self._labels = labels
        self._codes = {label: code for code, label in enumerate(labels)}
        self._pairs = pairs
        self._w = w

    def __getitem__(self, pair: tuple[Any, Any]) -> float:
        try:
            attribute, label = pair
            column, code = self._columns[attribute], self._codes[label]
        except (KeyError, IndexError, TypeError, ValueError):
            raise KeyError(pair) from None
        first, end = self._pairs.ptr[column : column + 2]
        place = first + int(np.searchsorted(self._pairs.labels[first:end], code))
        if place == end or self._pairs.labels[place] != code or not self._w[place]:
            raise KeyError(pair)
        return float(self._w[place])

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        used = np.flatnonzero(self._w)
        features = self._pairs.features[used].tolist()
        for column, code in zip(features, self._pairs.labels[used], strict=True):
            yield self._names[column], self._labels[code]

    def __len__(self) -> int:
        return int(np.count_nonzero(self._w))

    def columns(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
        """Return attributes, labels and weights, in the order of iteration."""
        used = np.flatnonzero(self._w)
        names = np.array(self._names, dtype=object)[self._pairs.features[used]]
        labels = np.array(self._labels, dtype=object)[self._pairs.labels[used]]
        return names, labels, np.asarray(self._w)[used]

    def __repr__(self) -> str:
        return f"<weights of {len(self)} pairs of an attribute and a label>"

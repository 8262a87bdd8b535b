"""Data larger than memory: samples that are read in blocks of rows for each use."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from .._checks import check_number, exact_names
from .._core.arrays import Indices
from .._core.places.places import Here, Place, Session
from .._core.rows.read_design import Shelf
from .blocks import Collection, ReadBlock, Source, without_callbacks
from .queries import QueriesInBlocks, sizes_between_queries

WITHOUT_TARGETS = (
    "The blocks have no y: give y to RowBlocks, or to fit after it, or let functions "
    "return (X, y)."
)
# Names of row data, in the order in which functions return them after X.
_NUMBERS = ("y", "sample_weight", "qid")
_WITHOUT_ROWS = "X has no rows: all of its blocks are empty."


class RowBlocks:
    """Samples in blocks of rows, which are read for each use.

    For data that do not fit into memory. Methods ``fit``, ``predict``,
    ``decision_function``, ``predict_proba`` and ``score`` of
    :class:`SubLBFGSLinearSVC`, :class:`L1LogisticOWLQN`,
    :class:`MulticlassHingeClassifier`, :class:`MultilabelHingeClassifier`,
    :class:`BMRMClassifier`, :class:`BMRMRegressor` and :class:`BMRMRanker`, and
    :func:`dual_gap`, take a ``RowBlocks`` in place of X. A few blocks and all targets
    are in memory at a time. The result is the same as in a fit in memory, with a gap
    that is proven for all rows.

    Parameters
    ----------
    X : array, path, callable, or list of them
        Sources of the rows; a list stacks its sources:

        - an array with a shape and slices of rows, which are read on access: a memory
          map, a dataset of h5py, an array of Zarr. NumPy arrays and CSR matrices are
          accepted as well;
        - the path of an ``.npy`` file, which is read in blocks;
        - a function without arguments that returns a block: ``X``, ``(X, y)``,
          ``(X, y, sample_weight)`` or ``(X, y, sample_weight, qid)``, where X is an
          array, a CSR matrix or a dataframe, and missing entries are None. Each call
          must return the same block.
    y : array-like, path, or list of arrays and paths, default=None
        Labels or targets of all rows, or a list with the targets of each source, unless
        functions return them.
    sample_weight : as ``y``, default=None
        Non-negative weights.
    qid : as ``y``, default=None
        Query of each row, for rankers.
    block_size : int, default=20000
        Number of rows that are read from arrays and files at a time. It does not apply
        to functions.
    client : distributed.Client, default=None
        Dask client whose workers read the blocks, each worker a share, for data that
        are larger than the memory of all workers. Paths and functions are sent to the
        workers, so that files must be accessible there. By default the process that
        calls ``fit`` reads all blocks.

    Raises
    ------
    TypeError, ValueError
        If a source is of another type, or numbers of rows differ.

    See Also
    --------
    dual_gap : Bound of a model's distance from the optimum, also over blocks.
    OnlineLBFGSClassifier : Trained on batches that are used once, without a bound.

    Notes
    -----
    A fit reads all blocks four times at the start, and then once for each pass over X,
    which ``history_`` counts; blocks of at most a megabyte in total stay in memory.
    Products with a subset of the rows read only these rows from memory maps and files,
    and whole blocks from other sources. Besides the targets, memory holds about 25
    vectors of n_samples numbers (times the number of scores of a sample for joint
    losses), three blocks, and the solver's vectors of coefficients. With ``client``
    this applies to each worker and its share of the rows, and functions are called once
    more for the targets.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_subqn import RowBlocks, SubLBFGSLinearSVC
    >>> X, y = make_classification(1000, random_state=0)
    >>> rows = RowBlocks(X, y, block_size=300)
    >>> clf = SubLBFGSLinearSVC().fit(rows)
    >>> bool(clf.dual_gap_ <= 1e-3 * clf.objective_)
    True
    >>> clf.predict(rows).shape
    (1000,)
    """

    def __init__(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        qid: Any = None,
        block_size: int = 20_000,
        client: Any = None,
    ) -> None:
        check_number("block_size", block_size, low=1, integer=True)
        if not (client is None or hasattr(client, "submit")):
            raise TypeError(
                "client must be a client of Dask, distributed.Client, or None; got an "
                f"object of type {type(client).__name__}."
            )
        several = isinstance(X, (list, tuple))
        sources = [_source(each) for each in (X if several else [X])]
        for source in sources:
            if client is not None and isinstance(source, np.ndarray | sparse.spmatrix):
                raise TypeError(
                    "Workers of a client read paths of .npy files and what functions "
                    "return; got an array in memory, or a memory map, for which give "
                    "its path."
                )
        self._client = client
        self._names: list[Any] | None = None
        self._readers = [_readers(source, block_size) for source in sources]
        given, n = (y, sample_weight, qid), len(sources) if several else 0
        self._y, self._weights, self._qid = (_numbers(each, n) for each in given)

    @classmethod
    def from_parquet(
        cls,
        paths: Any,
        y: str | list[str] | None = None,
        sample_weight: str | None = None,
        *,
        qid: str | None = None,
        columns: Sequence[str] | None = None,
        client: Any = None,
    ) -> RowBlocks:
        """Return the rows of Parquet files, whose row groups are the blocks.

        Reading Parquet takes many times as long as reading arrays: if a copy is
        possible, convert the files to ``.npy`` once. Needs pyarrow.

        Parameters
        ----------
        paths : path or list of paths
            Paths of files with the same columns.
        y : str or list of str, default=None
            Name of the column with the targets; a list of names selects several
            columns.
        sample_weight, qid : str, default=None
            Names of the columns with the weights and queries.
        columns : list of str, default=None
            The features; by default all other columns.
        client : distributed.Client, default=None
            Workers that read the row groups.

        Returns
        -------
        rows : RowBlocks
        """
        from pyarrow import parquet

        if isinstance(paths, (str, os.PathLike)):
            paths = [paths]
        others = y, sample_weight, qid
        left_out = {*(y if isinstance(y, list) else [y]), sample_weight, qid}
        functions = []
        for path in paths:
            file = parquet.ParquetFile(path)
            names = list(columns or file.schema_arrow.names)
            names = [name for name in names if name not in left_out]
            functions += [
                _RowGroup(path, i, names, others) for i in range(file.num_row_groups)
            ]
            file.close()
        return cls(functions, client=client)

    def _opened(
        self, estimator: Any, y: Any, sample_weight: Any, **others: Any
    ) -> Collection:
        """Return the rows for a fit, with offsets, or queries of a ranker."""
        if self._client is not None:
            # Needs Dask.
            from .dask_readers import opened_by_workers

            return opened_by_workers(estimator, self, y, sample_weight, **others)
        blocks, made = self._made(estimator, y, sample_weight, **others)
        return made(self._source(*blocks))

    def _made(
        self,
        estimator: Any,
        y: Any,
        sample_weight: Any,
        offset: Any = None,
        **queries: Any,
    ) -> tuple[Any, Callable[[Source], Collection]]:
        """Return blocks, and a function from their source to the rows for a fit."""
        if queries:
            blocks, rank = self._with_queries(estimator, y, sample_weight, **queries)
            return blocks, lambda source: QueriesInBlocks(estimator, source, *rank)
        blocks = self._checked(estimator, y, sample_weight)
        blocks += (self._own("offset", offset, "fit"),)
        return blocks, lambda source: Collection(estimator, source, None)

    def _source(self, readers: Any, *others: Any) -> _InThisProcess:
        """Return the non-empty blocks, which this process reads."""
        shelf = Shelf()
        return _InThisProcess(
            [
                ReadBlock(partial(self._read, reader), shelf, *own)
                for reader, *own in zip(readers, *others, strict=True)
                if reader.n_rows
            ]
        )

    def _with_queries(
        self, estimator: Any, y: Any, sample_weight: Any, qid: Any, **others: Any
    ) -> tuple[Any, Any]:
        """Return blocks for a fit of a ranker, and its relevances and queries.

        The targets of the blocks are row numbers, since all scores are compared in one
        place.
        """
        self._checked(estimator, y, sample_weight)
        targets = self._all("y", y)
        if targets is None:
            raise ValueError(WITHOUT_TARGETS)
        weights, qid = self._all("sample_weight", sample_weight), self._all("qid", qid)
        ranking = estimator._ranking_of(targets, weights, qid, **others)
        codes, readers, first = ranking[1].codes, [], 0
        for of_source in self._readers:
            n = sum(reader.n_rows or 0 for reader in of_source)
            readers += _between_queries(of_source, codes[first : first + n])
            first += n
        ends = np.cumsum([reader.n_rows for reader in readers])
        numbers = np.split(np.arange(ends[-1]), ends[:-1])
        blocks = readers, numbers, [None] * len(readers)
        return blocks, ranking

    def _checked(self, estimator: Any, y: Any, sample_weight: Any) -> Any:
        """Return readers, targets and weights for a fit.

        If workers call the functions, their targets and weights are not known here.
        """
        targets = self._own("y", y, "fit")
        weights = self._own("sample_weight", sample_weight, "fit")
        if self._client is None and any(each is None for each in targets):
            raise ValueError(WITHOUT_TARGETS)
        readers = list(self._each())
        if self._client is None:
            first = _first_row(reader for reader in readers if reader.n_rows != 0)
        else:
            first = self._called(_first_row, [readers])[0]
        if first is None:
            raise ValueError(_WITHOUT_ROWS)
        self._names = list(first.columns) if hasattr(first, "columns") else None
        estimator._check_X(first, reset=True)
        return readers, targets, weights

    def _mapped(self, method: Callable[..., Any], estimator: Any, *offset: Any) -> Any:
        """Return the results of an estimator's method for the rows of all blocks."""
        own = (self._own("offset", each) for each in offset)
        blocks = list(zip(self._each(), *own, strict=True))
        if self._client is None:
            read = ((self._read(reader), *own) for reader, *own in blocks)
            results = [method(estimator, X, *own) for X, *own in read if X.shape[0]]
        else:
            call = {"name": method.__name__, "estimator": without_callbacks(estimator)}
            results = self._called(_applied, blocks, **call)
            results = [each for each in results if each is not None]
        if not results:
            raise ValueError(_WITHOUT_ROWS)
        return np.concatenate(results)

    def _of_some(
        self, method: Callable[..., Any], estimator: Any, *rows: list[Any]
    ) -> list[Any]:
        """Return the results of a method for the selected rows of each block."""
        some = [each for each in zip(self._each(), *rows, strict=True) if len(each[1])]
        if self._client is None:
            return [
                method(estimator, rows_at(self._read(reader), numbers), *offset)
                for reader, numbers, *offset in some
            ]
        call = {"name": method.__name__, "estimator": without_callbacks(estimator)}
        return list(self._called(_applied_to_some, some, **call))

    def _with_targets(
        self, y: Any, sample_weight: Any, offset: Any, function: Callable[..., Any]
    ) -> list[Any]:
        """Return the results of a function of X, y and row data for each block."""
        readers = list(self._each())
        targets = self._own("y", y), self._own("sample_weight", sample_weight)
        if any(each is None for each in targets[0]):
            raise ValueError(WITHOUT_TARGETS)
        blocks = list(zip(readers, *targets, self._own("offset", offset), strict=True))
        if self._client is None:
            return [function(self._read(reader), *rest) for reader, *rest in blocks]
        return list(self._called(partial(_called_with, function), blocks))

    def _all(self, name: str, given: Any) -> Any:
        """Return row data of all rows in one array, a number, or None."""
        own = self._own(name, given)
        if any(each is None for each in own):
            return None
        return own[0] if own and not np.ndim(own[0]) else np.concatenate(own)

    def _without_targets(self) -> RowBlocks:
        """Return the same rows without targets and weights."""
        rows = copy(self)
        rows._y = rows._weights = rows._qid = None
        rows._readers = [list(map(_alone, readers)) for readers in self._readers]
        return rows

    def _each(self) -> Iterator[Reader]:
        return (reader for readers in self._readers for reader in readers)

    def _read(self, reader: Reader) -> Any:
        """Return the rows of a block."""
        X = reader.read(self._names)
        if self._names is None and hasattr(X, "columns"):
            self._names = list(X.columns)
        return X

    def _look(self) -> None:
        """Call functions to get their numbers of rows, targets and weights."""
        unknown = [reader for reader in self._each() if reader.n_rows is None]
        if self._client is None:
            for reader in unknown:
                self._read(reader)
            return
        looked = self._called(_looked, unknown)
        for reader, (n_rows, *known) in zip(unknown, looked, strict=True):
            reader.n_rows = n_rows
            for name, numbers in zip(_NUMBERS, known, strict=True):
                setattr(reader, name, numbers)

    def _called(self, function: Callable[..., Any], each: Any, **others: Any) -> Any:
        """Return the results of workers, one for each argument."""
        # Needs Dask.
        from .dask_client import gathered, waiting_for

        with waiting_for(self._client):
            calls = self._client.map(function, each, pure=False, **others)
            return gathered(self._client, calls)

    def _own(self, name: str, given: Any, use: str = "") -> list[Any]:
        """Return row data of each block: an array, the number for all rows, or None."""
        known = {"y": self._y, "sample_weight": self._weights, "qid": self._qid}
        own, readers = known.get(name), list(self._each())
        given = _numbers(given, len(self._readers))
        one = name in ("sample_weight", "offset") and getattr(given, "ndim", 1) == 0
        if use == "fit" and self._client is not None and own is None and given is None:
            return [None] * len(readers)
        if not one:
            self._look()
        returned = [getattr(reader, name, None) for reader in readers]
        has_own = own is not None or any(each is not None for each in returned)
        if has_own and given is not None:
            raise ValueError(f"The blocks have {name} of their own; leave it out.")
        if one:
            return [given.item()] * len(readers)
        if own is None and given is None:
            return returned
        own = given if own is None else own
        parts: list[Any] = []
        if isinstance(own, list):
            for readers, numbers in zip(self._readers, own, strict=True):
                parts += _split(name, numbers, readers)
            return parts
        return _split(name, own, readers)


class Reader:
    """A reader of a block.

    Parameters
    ----------
    source : object
        An object with slices of rows, or a function that returns the block.
    rows : slice or None
        The slice of rows; None for a function.

    Attributes
    ----------
    n_rows : int or None
        Number of rows; None until a function is called.
    y, sample_weight, qid : ndarray or None
        Row data that the function has returned after X.
    """

    def __init__(self, source: Any, rows: slice | None) -> None:
        self._source, self._rows = source, rows
        self.n_rows = None if rows is None else rows.stop - rows.start
        self.y = self.sample_weight = self.qid = None

    @property
    def source_rows(self) -> slice | None:
        """The slice of the source; None for a function."""
        return self._rows

    def of_rows(self, rows: slice) -> Reader:
        """Return a reader of another slice of the source, an array."""
        return Reader(self._source, rows)

    def first_row(self) -> Any:
        """Return a row of X, None if the block is empty."""
        if self._rows is not None:
            return self._taken(slice(self._rows.start, self._rows.start + 1))
        X = self.read()
        head = X.iloc if hasattr(X, "iloc") else X
        return head[:1] if X.shape[0] else None

    def read(self, names: list[Any] | None = None) -> Any:
        """Return the rows of X; raise if the column names differ from ``names``."""
        X = self._any()
        if hasattr(X, "columns") and names not in (None, list(X.columns)):
            raise ValueError(
                "Blocks must have the same columns in the same order; there are "
                f"blocks with {names} and {list(X.columns)}."
            )
        return X

    def _taken(self, rows: slice | None) -> Any:
        """Return rows of an array, or the result of a function."""
        try:
            return self._source() if rows is None else self._source[rows]
        except StopIteration as error:
            # A StopIteration would silently end the generator that reads the blocks.
            raise ValueError(
                "Blocks are read several times, and a source of them raised "
                "StopIteration. Functions must return the same block each time, which "
                "next of an iterator does not."
            ) from error

    def _any(self) -> Any:
        X = self._taken(self._rows)
        if self._rows is not None:
            return X
        others: list[Any] = []
        if isinstance(X, tuple):
            if not 1 <= len(X) <= 1 + len(_NUMBERS):
                raise ValueError(
                    "Functions of blocks must return X, (X, y), (X, y, sample_weight) "
                    f"or (X, y, sample_weight, qid); got a tuple of {len(X)}."
                )
            X, *others = X
        if not hasattr(X, "shape"):
            X = np.asarray(X)
        if len(X.shape) != 2:
            raise ValueError(f"X must have two dimensions, got {len(X.shape)}.")
        if self.n_rows is None:
            self.n_rows = X.shape[0]
            for name, numbers in zip(_NUMBERS, others, strict=False):
                if numbers is not None:
                    setattr(self, name, np.asarray(exact_names(numbers)))
        elif self.n_rows != X.shape[0]:
            raise ValueError(
                "A function of a block must return the same each time; it has returned "
                f"{self.n_rows} rows, and then {X.shape[0]}."
            )
        return X


def _alone(reader: Reader) -> Reader:
    """Return a reader of the same rows without targets and weights."""
    alone = copy(reader)
    alone.y = alone.sample_weight = alone.qid = None
    return alone


def _between_queries(readers: list[Reader], codes: Any) -> list[Reader]:
    """Return readers of a source; blocks of an array end where queries end."""
    if readers[0].source_rows is None:
        return list(map(_alone, readers))
    sizes = sizes_between_queries(codes, [reader.n_rows or 0 for reader in readers])
    ends = np.cumsum([0, *sizes]).tolist()
    return [readers[0].of_rows(slice(a, b)) for a, b in pairwise(ends)]


def _first_row(readers: Iterable[Reader]) -> Any:
    """Return a row of the first non-empty block, None if all are empty."""
    rows = (reader.first_row() for reader in readers)
    row = next((row for row in rows if row is not None), None)
    # The row is copied, since it may be a view of a file.
    return np.array(row) if isinstance(row, np.ndarray) else row


def _looked(reader: Reader) -> tuple[Any, ...]:
    """Return the number of rows and the row data that a function returns."""
    reader.read()
    return reader.n_rows, *(getattr(reader, name) for name in _NUMBERS)


def _called_with(function: Callable[..., Any], block: tuple[Any, ...]) -> Any:
    """Return the result of a function for a block's rows and row data."""
    reader, *targets = block
    return function(reader.read(), *targets)


def _applied(block: tuple[Any, ...], name: str, estimator: Any) -> Any:
    """Return the result of a method for a block, None if the block is empty."""
    reader, *offset = block
    X = reader.read()
    return getattr(estimator, name)(X, *offset) if X.shape[0] else None


def _applied_to_some(block: tuple[Any, ...], name: str, estimator: Any) -> Any:
    """Return the result of a method for the selected rows of a block."""
    reader, rows, *offset = block
    return getattr(estimator, name)(rows_at(reader.read(), rows), *offset)


def rows_at(X: Any, rows: Indices | slice) -> Any:
    """Return a subset of the rows of an array, a sparse matrix or a data frame."""
    return (X.iloc if hasattr(X, "iloc") else X)[rows]


class ChosenRows:
    """A subset of the rows of data in blocks, for predictions.

    Parameters
    ----------
    rows : ndarray of shape (m,)
        Row numbers, in any order.
    n_features : int
    sizes : sequence of int
        Number of rows of each block.
    results : callable
        Returns the results for the non-empty selections, given a method, an estimator,
        the selected rows of each block, and perhaps their offsets.

    Attributes
    ----------
    shape : tuple
    """

    def __init__(
        self,
        rows: Indices,
        n_features: int,
        sizes: Sequence[int],
        results: Callable[..., list[Any]],
    ) -> None:
        self.shape = len(rows), n_features
        self._order = np.argsort(rows, kind="stable")
        ends = np.cumsum([0, *sizes])
        ascending = rows[self._order]
        self._ends = np.searchsorted(ascending, ends[1:-1])
        parts = np.split(ascending, self._ends)
        self._rows = [part - a for part, a in zip(parts, ends[:-1], strict=True)]
        self._results = results

    def _mapped(self, method: Callable[..., Any], estimator: Any, *offset: Any) -> Any:
        """Return the results of an estimator's method for the selected rows."""
        own = [
            np.split(np.broadcast_to(each, len(self._order))[self._order], self._ends)
            for each in offset
        ]
        found = np.concatenate(self._results(method, estimator, self._rows, *own))
        results = np.empty_like(found)
        results[self._order] = found
        return results


class _File:
    """An array in an ``.npy`` file; each slice is a memory map."""

    def __init__(self, path: Any) -> None:
        self._path = path
        self.shape = _array_in(path, mmap_mode="r").shape

    def __getitem__(self, rows: slice) -> Any:
        return np.load(self._path, mmap_mode="r")[rows]


def _array_in(path: Any, mmap_mode: Any = None) -> Any:
    """Return the array in an ``.npy`` file."""
    try:
        array = np.load(path, mmap_mode=mmap_mode)
        if isinstance(array, np.ndarray):
            return array
        error = None
    except (ValueError, EOFError, pickle.UnpicklingError) as raised:
        error = raised
    raise ValueError(
        f"{os.fspath(path)!r} is not an .npy file with an array of numbers or texts. "
        "Rows of other files, such as tables of text, are blocks that functions read "
        "and return, for example by partial(pandas.read_csv, path, skiprows=..., "
        "nrows=...); those of Parquet files are read by RowBlocks.from_parquet."
    ) from error


class _RowGroup:
    """Reads a row group of a Parquet file."""

    def __init__(
        self,
        path: Any,
        number: int,
        columns: list[str],
        others: Sequence[Any],
    ) -> None:
        self._path, self._number, self._columns = path, number, columns
        self._others = others

    def __call__(self) -> Any:
        from pyarrow import parquet

        with parquet.ParquetFile(self._path) as file:
            names = list(self._columns)
            for each in filter(None, self._others):
                names += each if isinstance(each, list) else [each]
            frame = file.read_row_group(self._number, columns=names).to_pandas()
        others = [name and frame[name].to_numpy() for name in self._others]
        return frame[self._columns], *others


class _InThisProcess:
    """The source of a fit whose blocks are all read by this process."""

    holds_rows = False

    def __init__(self, blocks: list[ReadBlock]) -> None:
        self._blocks = blocks

    def open(self) -> Session:
        """Return a session whose parts are the blocks."""
        place = Place(self._blocks)
        return Session([Here(place)], [place.n_parts()])

    def close(self) -> None:
        """Release the blocks."""
        self._blocks = []


def _is_path(source: Any) -> bool:
    return isinstance(source, (str, os.PathLike))


def _source(source: Any) -> Any:
    """Return an object with slices of rows, or a function, from the user's source."""
    if _is_path(source):
        source = _File(source)
    if callable(source):
        return source
    if not hasattr(source, "shape") or not hasattr(source, "__getitem__"):
        raise TypeError(
            "X must be an array with slices of rows, the path of an .npy file, a "
            "function that returns a block, or a list of these; got an object of type "
            f"{type(source).__name__}."
        )
    if len(source.shape) != 2:
        raise ValueError(f"X must have two dimensions, got {len(source.shape)}.")
    return source.tocsr() if sparse.issparse(source) else source


def _readers(source: Any, size: int) -> list[Reader]:
    """Return readers of the blocks of a source."""
    if callable(source):
        return [Reader(source, None)]
    n = source.shape[0]
    return [Reader(source, slice(a, min(a + size, n))) for a in range(0, n, size)]


def _numbers(given: Any, n_sources: int) -> Any:
    """Return targets or weights: one array, or one for each of several sources."""
    if given is None:
        return None
    several = isinstance(given, (list, tuple)) and 0 < n_sources == len(given)
    if several and all(_is_path(each) or np.ndim(each) > 0 for each in given):
        return [_numbers(each, 0) for each in given]
    return _array_in(given) if _is_path(given) else np.asarray(exact_names(given))


def _split(name: str, numbers: Any, readers: list[Reader]) -> list[Any]:
    """Return an array over all rows, split at the ends of the blocks."""
    sizes = [reader.n_rows or 0 for reader in readers]
    if len(numbers) != sum(sizes):
        raise ValueError(
            f"X and {name} must have the same number of rows; X has {sum(sizes)}, and "
            f"{name} {len(numbers)}."
        )
    ends = np.cumsum([0, *sizes])
    return [numbers[a:b] for a, b in pairwise(ends)]

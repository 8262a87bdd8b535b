"""Data sets of the benchmarks: real ones from a folder, and generated ones.

Real data are read from ``<data_dir>/<name>.svm.bz2`` in LIBSVM's format. Nothing is
written unless a cache folder is given. Names with arguments generate other sizes:
``text:100000x47000x75`` (rows, columns, mean words a row), ``dense:20000x54``,
``tall:200000x100``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file, make_classification


class Dataset(NamedTuple):
    """Data matrix (ndarray or CSR with int32 indices) and labels -1.0 or +1.0."""

    name: str
    X: Any
    y: Any

    @property
    def nbytes(self) -> int:
        """Size of the arrays of X."""
        X = self.X
        if sparse.issparse(X):
            return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        return X.nbytes


# name: (number of features, dense, targets to labels, factor on X)
_REAL: dict[str, tuple[int, bool, Callable[[Any], Any], float]] = {
    "a9a": (123, False, lambda y: y > 0, 1.0),
    "covtype": (54, True, lambda y: y == 2, 1.0),
    "rcv1_ccat": (47236, False, lambda y: y > 0, 1.0),
    "mnist": (784, False, lambda y: y % 2 == 0, 1.0 / 255.0),
    "leukemia": (7129, True, lambda y: y > 0, 1.0),
}


def data_dir_default() -> str | None:
    return os.environ.get("SUBQN_DATA_DIR")


def load(
    name: str, data_dir: str | None = None, cache_dir: str | None = None
) -> Dataset:
    """Return a data set by name; read from and kept in ``cache_dir`` if given."""
    folder = Path(cache_dir, name.replace(":", "-")) if cache_dir else None
    if folder and (folder / "y.npy").exists():
        return open_saved(name, folder)
    kind, _, size = name.partition(":")
    if kind in _REAL:
        data = _load_real(name, data_dir)
    elif kind in _GENERATED:
        default, generate = _GENERATED[kind]
        data = Dataset(name, *generate(*map(int, (size or default).split("x"))))
    else:
        known = ", ".join([*_REAL, *_GENERATED])
        raise SystemExit(f"unknown data set {name!r}; there are {known}")
    if folder:
        save(data, folder)
    return data


def load_part(name: str, data_dir: str | None = None) -> tuple[Any, Any]:
    """Return X and labels of a real data set, with the suffix .t of its test part."""
    return _load_real(name, data_dir)[1:]


def save(data: Dataset, folder: Path) -> None:
    """Write the arrays of a data set as .npy files, the labels last."""
    folder.mkdir(parents=True, exist_ok=True)
    X = data.X
    if sparse.issparse(X):
        for part in ("data", "indices", "indptr"):
            np.save(folder / f"{part}.npy", getattr(X, part))
        np.save(folder / "shape.npy", np.array(X.shape))
    else:
        np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", data.y)


def open_saved(name: str, folder: Path) -> Dataset:
    """Read what ``save`` wrote, without any memory beyond the arrays themselves."""
    y = np.load(folder / "y.npy")
    if (folder / "X.npy").exists():
        return Dataset(name, np.load(folder / "X.npy"), y)
    parts = [np.load(folder / f"{part}.npy") for part in ("data", "indices", "indptr")]
    shape = tuple(int(s) for s in np.load(folder / "shape.npy"))
    return Dataset(name, sparse.csr_matrix(tuple(parts), shape=shape), y)


def _read(
    name: str, data_dir: str | None, n_features: int, factor: float, **given: Any
) -> tuple[Any, Any]:
    """Return a CSR matrix and targets."""
    data_dir = data_dir or data_dir_default()
    if not data_dir:
        raise SystemExit(
            f"{name}: give the folder of the data by --data-dir or SUBQN_DATA_DIR; "
            "benchmarks/README.md says where they come from"
        )
    path = Path(data_dir, f"{name}.svm.bz2")
    if not path.exists():
        raise SystemExit(
            f"{name}: there is no {path.name} in {data_dir}; benchmarks/README.md says "
            "where data come from"
        )
    X, y = load_svmlight_file(str(path), n_features=n_features, **given)
    # Some of the peers refuse int64 indices.
    indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return sparse.csr_matrix((X.data * factor, indices, indptr), X.shape), y


def _load_real(name: str, data_dir: str | None) -> Dataset:
    n_features, dense, is_positive, factor = _REAL[name.removesuffix(".t")]
    X, targets = _read(name, data_dir, n_features, factor)
    y = np.where(is_positive(targets), 1.0, -1.0)
    return Dataset(name, X.toarray() if dense else X, y)


# Multiclass and multilabel: name: (number of features, dense, several, factor on X)
_JOINT: dict[str, tuple[int, bool, bool, float]] = {
    "letter": (16, True, False, 1.0),
    "usps": (256, True, False, 1.0),
    "mnist": (784, False, False, 1.0 / 255.0),
    "covtype": (54, True, False, 1.0),
    "news20": (62061, False, False, 1.0),
    "scene": (294, True, True, 1.0),
    "tmc2007": (500, False, True, 1.0),
    "rcv1_topics": (47236, False, True, 1.0),
}


def load_joint(name: str, data_dir: str | None, test: bool = False) -> tuple[Any, Any]:
    """Return X and classes from 0, or indicators of labels (uint8)."""
    n_features, dense, several, factor = _JOINT[name]
    part = f"{name}{'.t' if test else ''}"
    X, y = _read(part, data_dir, n_features, factor, multilabel=several)
    if several:
        rows = np.repeat(np.arange(len(y)), [len(labels) for labels in y])
        labels = np.concatenate([np.asarray(v, dtype=np.intp) for v in y])
        y = np.zeros((len(y), N_LABELS[name]), dtype=np.uint8)
        y[rows, labels] = 1
    else:
        y = y.astype(np.intp) - FIRST_CLASS.get(name, 1)
    return X.toarray() if dense else X, y


FIRST_CLASS = {"mnist": 0, "usps": 0}
N_LABELS = {"scene": 6, "tmc2007": 22, "rcv1_topics": 101}


def _blocks(n_rows: int, rows_per_block: int, seed: int) -> Any:
    """Yield (first row, last row, random generator), one generator per block."""
    starts = range(0, n_rows, rows_per_block)
    seeds = np.random.SeedSequence(seed).spawn(len(starts))
    for start, child in zip(starts, seeds, strict=True):
        stop = min(start + rows_per_block, n_rows)
        yield start, stop, np.random.default_rng(child)


# Means and standard deviations of quantities in raw units, as a land survey has them.
_MEANS = np.array([2960, 156, 14, 269, 46, 2350, 212, 223, 143, 1980], dtype=float)
_SCALES = np.array([280, 112, 7.5, 213, 58, 1560, 27, 20, 38, 1325], dtype=float)


def dense(n_rows: int, n_columns: int, seed: int = 0) -> tuple[Any, Any]:
    """Return ill-conditioned dense data: raw units beside rare indicators.

    Ten correlated quantities of different units, the rest 0/1 columns of frequencies
    from 1/2 down to 7e-5. With 200,000 rows the condition number is about 5e5.
    """
    rng = np.random.default_rng(seed)
    n_numeric = min(10, n_columns)
    frequency = np.geomspace(0.5, 7e-5, n_columns - n_numeric)
    mixing = np.eye(n_numeric) + 0.5 * rng.standard_normal((n_numeric, n_numeric))
    mixing /= np.linalg.norm(mixing, axis=0)
    linear = rng.standard_normal(n_columns)
    squares = 0.7 * rng.standard_normal(n_numeric)
    X = np.empty((n_rows, n_columns))
    y = np.empty(n_rows)
    for start, stop, block_rng in _blocks(n_rows, 20_000, seed + 1):
        rows = stop - start
        z = block_rng.standard_normal((rows, n_numeric)) @ mixing
        flags = block_rng.random((rows, n_columns - n_numeric)) < frequency
        X[start:stop, :n_numeric] = _MEANS[:n_numeric] + _SCALES[:n_numeric] * z
        X[start:stop, n_numeric:] = flags
        score = z @ linear[:n_numeric] + flags @ linear[n_numeric:]
        score += (z * z - 1.0) @ squares
        y[start:stop] = score + 2.0 * block_rng.logistic(size=rows)
    return X, np.where(y > np.median(y), 1.0, -1.0)


def tall(n_rows: int, n_columns: int, seed: int = 0) -> tuple[Any, Any]:
    """Return dense float32 data: correlated columns of scales from 1/2 to 2."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((10, n_columns)).astype(np.float32)
    scales = np.geomspace(0.5, 2.0, n_columns).astype(np.float32)
    rng.shuffle(scales)
    linear = rng.standard_normal(n_columns).astype(np.float32)
    X = np.empty((n_rows, n_columns), dtype=np.float32)
    y = np.empty(n_rows)
    for start, stop, block_rng in _blocks(n_rows, 50_000, seed + 1):
        rows = stop - start
        block = X[start:stop]
        block_rng.standard_normal(dtype=np.float32, out=block)
        block += block_rng.standard_normal((rows, 10), dtype=np.float32) @ factors / 3
        y[start:stop] = block @ linear + 8.0 * block_rng.standard_normal(rows)
        block *= scales
    return X, np.where(y > 0.0, 1.0, -1.0)


def text(n_rows: int, n_columns: int, n_words: int, seed: int = 0) -> tuple[Any, Any]:
    """Return text-like CSR data: Zipf columns, tf-idf, unit rows.

    ``n_words`` is about the mean number of distinct words in a row. Each row is of one
    of 20 topics, half of them positive; 30 % of its words come from a Zipf law of its
    topic, the others from one common to all. 3 % of the labels are flipped.
    """
    rng = np.random.default_rng(seed)
    frequency = 1.0 / (np.arange(1, n_columns + 1) + 20.0)
    frequency /= frequency.sum()
    frequency = frequency[rng.permutation(n_columns)]
    cumulative = np.cumsum(frequency)
    # A topic's law is the common one, shifted along the columns.
    shifts = rng.choice(n_columns, 20)
    overall = 0.7 * frequency
    for shift in shifts:
        overall += 0.015 * np.roll(frequency, shift)
    # Words come in repeats: about this many are drawn for n_words distinct ones.
    mean_length = 1.055 * n_words
    idf = 1.0 - np.log1p(-np.exp(-mean_length * overall))
    spread = 0.5
    capacity = int(n_rows * mean_length * 1.05) + 1000
    data, indices = np.empty(capacity), np.empty(capacity, dtype=np.int32)
    indptr = np.zeros(n_rows + 1, dtype=np.int64)
    y = np.empty(n_rows)
    nnz = 0
    for start, stop, block_rng in _blocks(n_rows, 20_000, seed + 1):
        rows = stop - start
        mean = np.log(mean_length) - 0.5 * spread**2
        lengths = np.exp(mean + spread * block_rng.standard_normal(rows))
        lengths = np.maximum(lengths, 3).astype(np.int64)
        words = np.searchsorted(cumulative, block_rng.random(lengths.sum()))
        topics = block_rng.integers(len(shifts), size=rows)
        of_topic = block_rng.random(words.size) < 0.3
        words += np.where(of_topic, np.repeat(shifts[topics], lengths), 0)
        words %= n_columns
        bounds = np.concatenate([[0], np.cumsum(lengths)])
        block = sparse.csr_matrix(
            (np.ones(words.size), words, bounds), shape=(rows, n_columns)
        )
        block.sum_duplicates()
        block.data = (1.0 + np.log(block.data)) * idf[block.indices]
        norms = np.sqrt(np.add.reduceat(block.data**2, block.indptr[:-1]))
        block.data /= np.repeat(norms, np.diff(block.indptr))
        flipped = block_rng.random(rows) < 0.03
        y[start:stop] = np.where((topics % 2 == 1) != flipped, 1.0, -1.0)
        data[nnz : nnz + block.nnz] = block.data
        indices[nnz : nnz + block.nnz] = block.indices
        indptr[start + 1 : stop + 1] = nnz + block.indptr[1:]
        nnz += block.nnz
    if nnz < np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    else:
        indices = indices.astype(np.int64)
    # The unused ends of the arrays were never touched, so that they take no memory.
    matrix = sparse.csr_matrix((n_rows, n_columns))
    matrix.data, matrix.indices, matrix.indptr = data[:nnz], indices[:nnz], indptr
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    return matrix, y


def independent(n_rows: int, n_columns: int) -> tuple[Any, Any]:
    """Return Gaussian features, fifty of which matter, and labels with errors."""
    X, y = make_classification(
        n_rows, n_columns, n_informative=50, flip_y=0.05, random_state=0, n_redundant=0
    )
    return X, np.where(y, 1.0, -1.0)


def correlated(n_rows: int, n_columns: int) -> tuple[Any, Any]:
    """Return rows of twenty common factors and noise, and noisy labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 20)) @ rng.normal(size=(20, n_columns))
    X += 0.5 * rng.normal(size=(n_rows, n_columns))
    scores = X[:, :10].sum(axis=1) + 3.0 * rng.normal(size=n_rows)
    return X, np.where(scores > 0.0, 1.0, -1.0)


# kind: (default size, function)
_GENERATED: dict[str, tuple[str, Callable[..., tuple[Any, Any]]]] = {
    "dense": ("200000x54", dense),
    "text": ("20000x47000x75", text),
    "tall": ("2000000x100", tall),
    "independent": ("200x20000", independent),
    "correlated": ("400x10000", correlated),
}

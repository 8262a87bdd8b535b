"""Data as tasks of insurance, clicks, genes, topics and classes have them, by seed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.datasets import make_classification


class Policies(NamedTuple):
    """Policies of an insurance: categories of each and two numbers, and their claims.

    ``X`` has the categories as indicators, 75 columns with the numbers.
    """

    X: Any
    categories: list[Any]
    numbers: Any
    exposure: Any
    n_claims: Any
    severity: Any


def insurance(n: int, seed: int) -> Policies:
    """Return policies of which one in twenty has a claim in a year."""
    rng = np.random.default_rng(seed)
    sizes = (10, 11, 2, 21, 7, 12, 10)
    categories = []
    for size in sizes:
        shares = np.cumsum(rng.dirichlet(np.full(size, 2.0)))
        drawn = np.searchsorted(shares[:-1], rng.random(n))
        categories.append(drawn.astype(np.int32))
    bonus = np.minimum(
        np.where(rng.random(n) < 0.5, 50 + rng.exponential(12, n), 50), 230
    )
    numbers = np.column_stack([bonus, rng.normal(6.0, 2.0, n)])
    numbers = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    offsets = np.cumsum([0, *sizes])
    columns = np.column_stack(
        [c + at for c, at in zip(categories, offsets[:-1], strict=True)]
        + [np.full(n, offsets[-1] + j) for j in range(2)]
    )
    values = np.column_stack([np.ones((n, len(sizes))), numbers])
    shape = n, int(offsets[-1]) + 2
    X = csr(values, columns, shape)
    exposure = np.clip(rng.beta(0.7, 0.6, n), 0.003, 1.0)
    rate = np.exp(0.25 * (X @ rng.normal(size=shape[1])))
    rate *= 0.05 / np.mean(exposure * rate)
    n_claims = rng.poisson(exposure * rate * rng.gamma(2.0, 0.5, n)).astype(float)
    mean = 2000.0 * np.exp(0.15 * (X @ rng.normal(size=shape[1])))
    severity = mean * rng.gamma(0.8 * np.maximum(n_claims, 1.0)) / 0.8
    severity /= np.maximum(n_claims, 1.0)
    return Policies(X, categories, numbers, exposure, n_claims, severity)


def clicks(n: int, n_columns: int, seed: int) -> tuple[Any, Any]:
    """Return rows of 39 hashed categories and signs, 3 % of them positive.

    A third of the categories has a few values, a third thousands, a third a million, by
    a law with a long tail.
    """
    rng = np.random.default_rng(seed)
    n_fields = 39
    columns = np.empty((n, n_fields), dtype=np.int32)
    for field in range(n_fields):
        size = int(
            10.0 ** rng.uniform(*[(1.3, 2.5), (2.5, 4.0), (4.0, 6.0)][field % 3])
        )
        rank = np.floor(3.0 * rng.pareto(0.4 if size > 5000 else 0.8, n))
        hashed = rng.integers(0, n_columns, size, dtype=np.int32)
        columns[:, field] = hashed[np.minimum(rank, size - 1).astype(np.intp)]
    X = csr(np.full(columns.shape, n_fields**-0.5), columns, (n, n_columns))
    X.sum_duplicates()
    scores = X @ rng.normal(scale=2.4, size=n_columns)
    return X, drawn_signs(scores, 0.03, rng)


def topics(n: int, n_columns: int, k: int, seed: int) -> tuple[Any, Any]:
    """Return unit rows of about 75 words each, and the topics that they are of.

    Words follow Zipf's law, 30 % of them one that is shifted by the topic.
    """
    rng = np.random.default_rng(seed)
    law = np.cumsum(1.0 / (np.arange(n_columns) + 20.0))
    lengths = np.maximum(rng.lognormal(4.3, 0.5, n), 5).astype(np.intp)
    y = rng.integers(k, size=n)
    words = np.searchsorted(law, law[-1] * rng.random(lengths.sum()))
    shift = np.repeat(rng.integers(n_columns, size=k)[y], lengths)
    words += np.where(rng.random(len(words)) < 0.3, shift, 0)
    words = rng.permutation(n_columns)[words % n_columns].astype(np.int32)
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    X = sparse.csr_matrix((np.ones(len(words)), words, ends), (n, n_columns))
    X.sum_duplicates()
    in_rows = np.bincount(X.indices, minlength=n_columns)
    X.data = (1.0 + np.log(X.data)) * np.log(n / in_rows[X.indices])
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(np.maximum(norms, 1e-300), np.diff(X.indptr))
    y[rng.random(n) < 0.03] = 0
    return X, y


def classes(n: int, d: int, k: int, seed: int) -> tuple[Any, Any]:
    """Return standardized dense features and k classes, a tenth of them wrong."""
    X, y = make_classification(
        n,
        d,
        n_informative=max(2 * d // 5, 4),
        n_redundant=d // 10,
        n_classes=k,
        class_sep=2.0 if k > 3 else 1.0,
        flip_y=0.1,
        random_state=seed,
    )
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def genes(n: int, d: int, seed: int) -> tuple[Any, Any]:
    """Return standardized features of common factors, by columns, and two classes.

    25 of the features make the classes.
    """
    rng = np.random.default_rng(seed)
    loadings = sparse.random_array(
        (60, d), density=0.1, rng=rng, data_sampler=rng.normal
    )
    X = rng.normal(size=(n, 60)) @ loadings + rng.normal(size=(n, d))
    X = np.asfortranarray((X - X.mean(axis=0)) / X.std(axis=0))
    used = rng.choice(d, 25, replace=False)
    scores = X[:, used] @ rng.normal(size=25)
    scores *= 1.5 / scores.std()
    return X, (rng.random(n) < expit(scores)).astype(int)


def csr(values: Any, columns: Any, shape: tuple[int, int]) -> Any:
    """Return the matrix of rows with as many entries each."""
    n, per_row = columns.shape
    starts = np.arange(0, n * per_row + 1, per_row, dtype=np.int32)
    parts = values.ravel(), columns.ravel().astype(np.int32), starts
    return sparse.csr_matrix(parts, shape=shape)


def drawn_signs(scores: Any, share: float, rng: Any) -> Any:
    """Return signs by the logistic model of scores and an intercept for that share."""
    low, high = -50.0, 50.0
    for _ in range(50):
        middle = 0.5 * (low + high)
        few = expit(scores + middle).mean() < share
        low, high = (middle, high) if few else (low, middle)
    return np.where(rng.random(len(scores)) < expit(scores + low), 1.0, -1.0)

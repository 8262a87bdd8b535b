"""Rows on several workers."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from common import markdown_table

from sklearn_subqn import BMRMClassifier

from ._case import Case, Draw, Settings

#: Rows of each block of the data.
BLOCK = 25_000


class Fit(NamedTuple):
    """A fit of BMRM to rows on workers of this machine, in seconds of the clock."""

    workers: int
    iterations: int
    seconds: float
    objective: float


def rows(n_blocks: int, n_features: int, size: int = BLOCK) -> tuple[Any, Any]:
    """Return blocks of rows of noisy classes, as arrays of Dask."""
    import dask.array as da

    def numbers(block: int, of_y: bool) -> Any:
        rng = np.random.default_rng(block)
        X = rng.normal(size=(size, n_features))
        noise = 3.0 * rng.normal(size=size)
        return (X.sum(axis=1) + noise > 0.0).astype(float) if of_y else X

    arrays = []
    for of_y, shape in ((False, (size, n_features)), (True, (size,))):
        blocks = [
            da.from_delayed(_delayed(numbers)(i, of_y), shape, dtype=float)
            for i in range(n_blocks)
        ]
        arrays.append(da.concatenate(blocks))
    return tuple(arrays)


def _delayed(function: Any) -> Any:
    import dask

    return dask.delayed(function, pure=True)


def fit(
    workers: int, n_blocks: int, n_features: int, size: int = BLOCK, max_iter: int = 40
) -> Fit:
    """Fit by BMRM on new workers, each a process of one thread."""
    from dask.distributed import Client, LocalCluster, wait

    options = {"threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(workers, **options) as cluster, Client(cluster) as client:
        X, y = client.persist(list(rows(n_blocks, n_features, size)))
        wait([X, y])
        model = BMRMClassifier(
            1e-4, loss="hinge", solver="bmrm", fit_intercept=False, max_iter=max_iter
        )
        begin = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - begin
    return Fit(workers, model.n_iter_, seconds, model.objective_)


def measure(numbers: tuple[int, ...], settings: Settings) -> tuple[str, Draw]:
    n_blocks = 80 if settings.full else 32
    fits = [fit(number, n_blocks, 200) for number in numbers]
    first = fits[0].seconds / fits[0].iterations
    table = [
        [
            str(each.workers),
            str(each.iterations),
            f"{each.seconds:.1f}",
            f"{1e3 * each.seconds / each.iterations:.0f}",
            f"{first * each.iterations / each.seconds:.2f}",
            f"{each.objective:.6f}",
        ]
        for each in fits
    ]
    header = ["workers", "iterations", "seconds", "ms an iteration", "gain", "J"]
    data = f"{n_blocks * BLOCK} x 200 numbers, α = 1e-4.\n\n"
    return data + markdown_table(header, table), None


CASES = [
    Case(
        "teo-6",
        "Teo et al. 2010, figure 6: BMRM on one and two workers, seconds of the clock",
        partial(measure, (1, 2)),
    )
]

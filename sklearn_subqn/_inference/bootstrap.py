"""The weighted bootstrap: refits with random weights, with warm starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state

from .._core.arrays import Floats

# Each parallel task makes ten refits with warm starts, on one copy of the data.
_REFITS = 10


def resampled(
    refit: Callable[[], Callable[[Floats], Floats]],
    n_rows: int,
    groups: Any,
    n_resamples: int,
    n_jobs: int | None,
    random_state: Any,
) -> Floats:
    """Return the estimates of refits with random row weights.

    The weights are exponential random numbers, one for each row or cluster of rows
    (Rubin 1981). No weight is zero, so that no class and no feature is lost.

    Parameters
    ----------
    refit : callable
        Returns a function from row weights to estimates; each task calls it once.
    n_rows : int
    groups : ndarray of shape (n_rows,) or None
        Numbers of the clusters of rows.
    n_resamples : int
    n_jobs : int or None
    random_state : int, RandomState instance or None

    Returns
    -------
    estimates : ndarray of shape (n_resamples, p)
    """
    rng = check_random_state(random_state)
    seeds = rng.randint(np.iinfo(np.int32).max, size=n_resamples)
    tasks = [seeds[a : a + _REFITS] for a in range(0, n_resamples, _REFITS)]
    codes = None
    if groups is not None:
        codes = np.unique(groups, return_inverse=True)[1]
    found = Parallel(n_jobs=n_jobs)(
        delayed(_refitted)(refit, n_rows, codes, task) for task in tasks
    )
    return np.concatenate(found)


def _refitted(
    refit: Callable[[], Callable[[Floats], Floats]],
    n_rows: int,
    codes: Any,
    seeds: Any,
) -> Floats:
    estimates_of = refit()
    estimates = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        if codes is None:
            factors = rng.standard_exponential(n_rows)
        else:
            factors = rng.standard_exponential(int(codes.max()) + 1)[codes]
        estimates.append(estimates_of(factors))
    return np.array(estimates)

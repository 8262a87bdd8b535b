"""Lists of samples and structures, and calls of user functions in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any

import joblib
import numpy as np
from scipy import sparse

from .._checks import canonical_csr, check_no_file, check_unmasked
from .._core.arrays import Floats
from .._solving.process import n_threads


def in_threads(
    function: Callable[[list[Any]], list[Any]],
    items: list[Any],
    n_jobs: int | None,
    errors: Any,
) -> list[Any]:
    """Return the concatenated results of a function of sublists of the items.

    ``errors`` is NumPy's floating-point error handling in the threads, from
    ``np.geterr``.
    """

    def of_part(part: list[Any]) -> list[Any]:
        with np.errstate(**errors):
            return function(part)

    n = n_threads(n_jobs)
    if n == 1:
        return of_part(items)
    # There are four parts for each thread, because parts take different times.
    n_parts = min(4 * n, len(items))
    bounds = [len(items) * i // n_parts for i in range(n_parts + 1)]
    parts = joblib.Parallel(n, prefer="threads")(
        joblib.delayed(of_part)(items[slice(*pair)]) for pair in pairwise(bounds)
    )
    return [result for part in parts for result in part]


def items_of(name: str, data: Any) -> list[Any]:
    """Return samples or structures as a list."""
    check_no_file(name, data, "a sequence of objects")
    check_unmasked(name, data)
    if hasattr(data, "iloc"):
        return [data.iloc[i] for i in range(len(data))]
    if sparse.issparse(data):
        rows = canonical_csr(data, name)
        return [rows[[i]] for i in range(rows.shape[0])]
    if isinstance(data, Mapping) or not isinstance(data, Iterable):
        raise TypeError(
            f"{name} must be a sequence of objects, got {data!r} of type "
            f"{type(data).__name__}."
        )
    try:
        return list(data)
    except TypeError as error:  # arrays without dimensions
        raise TypeError(f"{name} must be a sequence of objects: {error}.") from error


def read_only(w: Floats) -> Floats:
    view = w.view()
    view.flags.writeable = False
    return view


def zero_one(y: Any, y_hat: Any) -> float:
    """Return the zero-one loss: 1 if the structures differ, else 0."""
    if isinstance(y, np.ndarray) or isinstance(y_hat, np.ndarray):
        return float(not np.array_equal(y, y_hat))
    return float(y != y_hat)

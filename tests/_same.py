"""Predictions that are equal up to the order in which sums are made."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal


def assert_same_predictions(
    actual: Any, expected: Any, name: str = "", tol: float = 1e-12
) -> None:
    """Assert that labels are equal, and numbers up to rounding.

    A product of some rows sums in another order than one of all rows does, in several
    kernels of OpenBLAS.
    """
    expected = np.asarray(expected)
    if expected.dtype.kind != "f":
        assert_array_equal(actual, expected, err_msg=name)
        return
    rounding = tol * np.max(np.abs(expected), initial=0.0)
    assert_allclose(actual, expected, rtol=tol, atol=rounding, err_msg=name)

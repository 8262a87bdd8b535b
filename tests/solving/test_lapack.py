"""LAPACK is given finite numbers only: of others it writes to the terminal."""

import inspect

import numpy as np
import pytest

from sklearn_subqn._core import lapack

ROUTINES = {
    name: routine
    for name, routine in vars(lapack).items()
    if inspect.isroutine(routine) and hasattr(routine, "__wrapped__")
}


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ROUTINES)
def test_routines_refuse_numbers_that_are_not_finite(name, bad, capfd):
    good = np.diag([3.0, 1.0, 2.0])
    more = (np.ones(3),) if name == "lstsq" else ()
    ROUTINES[name](good, *more)
    for place in np.ndindex(3, 3):
        matrix = good.copy()
        matrix[place] = bad
        with pytest.raises(FloatingPointError, match="infinite entry or NaN"):
            ROUTINES[name](matrix, *more)
    if more:
        with pytest.raises(FloatingPointError, match="infinite entry or NaN"):
            ROUTINES[name](good, np.array([1.0, bad, 1.0]))
    assert capfd.readouterr() == ("", "")


def test_a_cholesky_factor_proves_definite_forms_only():
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.standard_normal((6, 6)))
    for least, expected in ((1.0, True), (1e-9, True), (1e-13, False), (-1.0, False)):
        values = np.array([least, 1.0, 2.0, 3.0, 4.0, 5.0])
        for size in (1e-200, 1.0, 1e200):
            form = size * (Q * values) @ Q.T
            form = 0.5 * (form + form.T)
            assert lapack.is_definite(form, 1e-12) == expected
    assert not lapack.is_definite(np.zeros((3, 3)), 1e-12)
    assert lapack.is_definite(np.eye(2))

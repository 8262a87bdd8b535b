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

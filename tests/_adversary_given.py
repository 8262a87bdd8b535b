"""Attacks on ``dual_gap``: coefficients from elsewhere, small or huge, in blocks."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from _adversary import (
    EPS,
    FAMILIES,
    OF_VALUE,
    REGRESSION,
    Case,
    Problem,
    fitted,
    offsets_of,
    problem_of,
)
from _door import BINARY_LOSSES
from _formats import snapshot
from _formulas import LONG, long

from sklearn_subqn import RowBlocks, dual_gap

#: Kinds of one row of coefficients, with offsets and factors of the penalty.
GIVEN = [
    case
    for family in FAMILIES[:3]
    for case in family
    if case.name.split("-")[0] in (*BINARY_LOSSES, *REGRESSION)
    and "entropy" not in case.name
]


def given_case(seed: int) -> tuple[Case, Problem, Any, Any]:
    """A kind of fit, a problem for it, and coefficients that no fit has found."""
    rng = np.random.default_rng([11, seed])
    case = GIVEN[rng.integers(len(GIVEN))]
    p = problem_of(case, seed)._replace(warm=None)
    size = 10.0 ** rng.choice([rng.uniform(-3, 3), rng.uniform(3, 30), 160.0])
    coef = size * rng.normal(size=p.X.shape[1])
    if "_positive" in case.name:
        coef = np.abs(coef)
    return case, p, coef, rng.normal() if p.fit_intercept else 0.0


def check_given(seed: int) -> list[str]:
    """Return what is wrong with the objective and the bound of given coefficients."""
    case, p, coef, intercept = given_case(seed)
    offsets = {"offset": offsets_of(p)} if case.name.endswith("-offset") else {}
    in_blocks = seed % 4 == 0
    name = f"{case.name} dual_gap{' in blocks' if in_blocks else ''}"
    data: Any = (p.stored(p.X), p.y, p.weights)
    given, before = data, snapshot(data)
    if in_blocks:
        data = (RowBlocks(*data, block_size=max(1, len(p.y) // 2)),)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            gap, objective = dual_gap(
                (coef, intercept),
                *data,
                estimator=case.make(p, "auto"),
                tol=None if seed % 3 == 0 else 1e-3,
                return_objective=True,
                **offsets,
            )
        except (ValueError, TypeError) as error:
            known = "too extreme", "overflow", "not finite"
            if any(words in str(error) for words in known):
                return []
            return [f"{name}: {type(error).__name__} {error}"]
        except (ArithmeticError, IndexError) as error:
            return [f"{name}: {type(error).__name__} {error}"]
    if snapshot(given) != before:
        return [f"{name}: changed its input"]
    with np.errstate(all="ignore"):
        terms = case.terms(long(coef), long(intercept), p)
        exact = terms.value(p.alpha)
        if not np.isfinite(exact) or exact > np.finfo(float).max:
            return []
        error = abs(LONG(objective) - exact)
        if not (error <= OF_VALUE * EPS * abs(exact) + terms.rounding(p.alpha)):
            return [f"{name}: objective {objective!r} for {exact!r}"]
        best = exact
        model = fitted(case, p, "auto", tol=1e-6)
        if model is not None:
            of_fit = case.terms_of(model, p)
            best = min(best, of_fit.value(p.alpha) + of_fit.rounding(p.alpha))
    # The bound has the rounding of the difference.
    if LONG(objective) - LONG(gap) > best + np.spacing(abs(objective)) + error:
        return [f"{name}: {objective - gap!r} above {best!r}"]
    return []

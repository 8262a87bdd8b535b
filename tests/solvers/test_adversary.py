"""Lower bounds against the best of all solvers, on problems made to break them.

Small random problems with weights over decades, columns of unequal scale, offsets,
heavy tails, ties, single precision, sparse matrices, tiny optima and warm starts from
other problems. Objectives are the formulas of textbooks, of exact scores, in extended
precision: a bound may exceed the best one by nothing but the rounding of
``objective_ - dual_gap_`` itself, and ``objective_`` is that of the coefficients.

The slow tests take 4000 problems, or as many as an environment variable says::

    SUBQN_ADVERSARY=10000 python -m pytest -m slow tests/solvers/test_adversary.py
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from _adversary import (
    CASES,
    Problem,
    check,
    compare,
    first,
    fitted,
    hard_case,
    problem_of,
)
from _adversary_foreign import check_foreign
from _adversary_given import check_given
from _adversary_units import check_originals, check_units
from _attack import KINDS

N_DEFAULT, N_SLOW = 16, int(os.environ.get("SUBQN_ADVERSARY", "4000"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_formulas_are_those_of_the_estimators(case):
    """On data that lose no digits."""
    rng = np.random.default_rng(0)
    p = problem_of(case, 0)
    X = rng.uniform(0.1, 1.0, size=(9, 3))
    y = np.resize(p.y, (9, *p.y.shape[1:]))
    groups, more, n_weights = None, None, 9
    if case.targets in ("2", "3"):
        y = np.arange(9) % int(case.targets)
    elif case.targets == "real":
        y = rng.normal(size=9)
    elif case.targets == "queries":
        y, groups, more = np.arange(9) % 3, np.arange(9) // 5, np.array([1.0, 2.5])
    elif case.targets == "pairs":
        y = np.column_stack([np.arange(9), np.arange(1, 10) % 9])
    elif case.targets == "chains":
        y, groups, n_weights = np.arange(9) % 4 % 3, np.arange(9) // 3, 3
    elif case.targets == "structures":
        y, costs = np.arange(9) % 4, rng.integers(1, 4, size=(9, 4)) / 2.0
        costs[np.arange(9), y] = 0.0
        more = rng.uniform(0.1, 1.0, size=(9, 4, 3)), costs
    weights = rng.uniform(0.5, 2.0, size=n_weights)
    if case.equal_weights:
        weights = np.ones(n_weights)
    p = Problem(X, y, weights, 0.1, True, rng, groups=groups, more=more)
    model = fitted(case, p, case.solvers[0])
    exact = float(case.terms_of(model, p).value(p.alpha))
    expected = pytest.approx(exact, rel=1e-12, abs=1e-14)
    assert first(model.objective_) == expected
    assert first(model.dual_gap_) <= 1e-3 * abs(first(model.objective_))


def full(shape: tuple[int, int], value: float, **entries: float) -> Any:
    """A matrix of one value but for entries named like "x1_2"."""
    X = np.full(shape, value)
    for name, entry in entries.items():
        i, j = map(int, name[1:].split("_"))
        X[i, j] = entry
    return X


# Problems in which bounds have been above the optimum: the name of a case, data,
# weights, alpha, tol and the limit on iterations.
KNOWN: list[tuple[Any, ...]] = [
    # A score far away, which is subtracted from all.
    (
        "ordinal-l2",
        [[13, 3.1e6], [13, 13], [13, 13], [3.5e6, 13], [5.7e7, -9.8e6], [13, 2.1e7]],
        [1, 0, 2, 0, 0, 0],
        [
            1.6341908919279122e-4,
            2925.3148754485537,
            326.78812638064846,
            90709.63565555525,
            2577.541125959709,
            676.4187656937585,
        ],
        1.742810393209151e-4,
        1e-3,
        1000,
    ),
    # Duals that balancing has changed: no gradients any more.
    (
        "l1-2-1.0",
        [
            [37.9, 37.8, 3210, -2.12e6],
            [38.4, 37.8, 9570, -9.82e6],
            [37.7, 37.8, 341, 1.87e7],
            [37.5, 37.9, 6970, -3.82e7],
            [38.3, 37.8, -17000, 5.17e6],
        ],
        [1, 0, 0, 0, 0],
        [3.2e5, 7.2e-6, 0.54, 2300, 0.0085],
        1.0377547023608492e-06,
        1e-6,
        1000,
    ),
    (
        "l1-3-0.5",
        [
            [-5.9e6, 0, 1.5e6, -93e3, 3.8e-5, 0, 0, 0, 7.3e-6, -0.0026],
            [0, 0, 0, 19e4, 0, 0, 0, -2500, 0, 0],
            [1.4e7, 0, 0, 0, -2.3e-5, 0, 0, 0, 0, -0.0021],
        ],
        [2, 1, 0],
        [0.0091, 16e4, 25],
        4.920897131172378,
        1e-4,
        1000,
    ),
    # Column sums that are rounding, but not of the smallest columns.
    (
        "l1-3-0.01",
        full(
            (9, 3),
            22.389,
            x1_1=379440,
            x7_1=-107530,
            x8_1=-419080,
            x0_2=22.393,
            x4_2=22.387,
            x6_2=22.392,
            x7_2=22.403,
        ),
        [0, 1, 2, 0, 0, 0, 0, 0, 0],
        [57e4, 62, 470, 2.9e-6, 0.064, 3.3e-5, 4.6e-6, 51000, 1.1],
        4e-4,
        1e-12,
        500,
    ),
]


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known[0])
def test_bounds_that_were_above_the_optimum(known):
    name, X, y, weights, alpha, tol, max_iter = known
    case = next(case for case in CASES if case.name == name)
    p = Problem(np.array(X), np.array(y), np.array(weights), alpha, True, None)
    assert not compare(case, p, tol, max_iter)


@pytest.mark.parametrize("is_far", [False, True])
@pytest.mark.parametrize(
    "kind", ["hinge", "log_loss", "absolute_error", "f_beta", "thresholds-True"]
)
def test_objectives_of_rounded_shares_are_those_of_shares(kind, is_far):
    """In float32 they do not sum to one, and scores of less may fall below the optimum.

    The objective is that of the shares as they are proportional, also where columns are
    far from zero, of which the intercept holds multiples.
    """
    case = next(c for c in CASES if c.name == f"{kind}-normalized_entropy")
    rng = np.random.default_rng(6)
    X = rng.normal(size=(40, 7))
    y = X[:, 0] + rng.normal(size=40)
    if case.targets.isdecimal():
        cuts = np.arange(1, int(case.targets)) / int(case.targets)
        y = np.searchsorted(np.quantile(y, cuts), y)
    if is_far:
        X += [0.0, 500.0, 3e3, 0.0, 200.0, 700.0, 0.0]
    X = X.astype(np.float32)
    sums = []
    for alpha in (0.3, 0.25, 0.2):
        p = Problem(X, y, np.ones(40), alpha, True, rng)
        model = fitted(case, p, "auto", tol=1e-4)
        assert model.coef_.dtype == np.float32
        sums.append(np.atleast_2d(model.coef_)[-1].astype(float).sum())
        exact = float(case.terms_of(model, p).value(p.alpha))
        assert first(model.objective_) == pytest.approx(exact, rel=1e-12)
    assert any(total != round(total) for total in sums)


def test_cuts_of_candidates_state_errors_in_units_of_those_of_the_oracle():
    """Joint features up to 1e10: bounds were above the optimum, and no gap was left."""
    assert not check(920409)


@pytest.mark.parametrize("seed", [721247, 731023, 800050, 801087, 50016039])
def test_formulas_are_known_to_the_digits_that_are_asked_for(seed):
    """Bounds that exceed a value by its own rounding, and pairs that round alike.

    Terms of the size of one may cancel to 1e-9, slopes of two pairs at one row, and
    features whose products with the columns of a quadratic penalty are large.
    """
    assert not check(seed)


def test_the_rounding_of_formulas_hides_no_false_bounds():
    case, p = hard_case(721247)
    model = fitted(case, p, "ls-bmrm")
    terms = case.terms_of(model, p)
    assert terms.own_rounding() < 2e-9 * terms.value(p.alpha) < 1e-17


@pytest.mark.parametrize("part", range(4))
def test_no_bound_is_above_the_best_objective(part):
    per_part = N_DEFAULT // 4
    for seed in range(5000 + part * per_part, 5000 + (part + 1) * per_part):
        assert not check(seed), seed


# The last five: norms beyond the largest number, free features with large coefficients,
# L1 norms whose squares overflow, exponentials of large scores.
@pytest.mark.parametrize("seed", [*range(8), 9, 53, 102, 153, 167])
def test_objectives_and_bounds_of_given_coefficients(seed):
    assert not check_given(seed)


@pytest.mark.parametrize("seed", range(8))
def test_objectives_of_foreign_models_are_those_that_they_minimize(seed):
    assert not check_foreign(seed)


@pytest.mark.parametrize("seed", range(16))
def test_bounds_in_the_units_of_scikit_learn(seed):
    assert not check_units(seed)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "kind", ["unpenalized", "starts", "quantiles", "paths", "functions", "losses"]
)
def test_what_is_not_one_plain_fit(kind, seed):
    assert not KINDS[kind](seed)


@pytest.mark.parametrize("seed", range(12))
def test_objectives_of_originals_are_those_that_they_minimize(seed):
    assert not check_originals(seed)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["survival", "likelihood"])
def test_bounds_of_survival_models(kind, seed):
    assert not KINDS[kind](seed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(40))
@pytest.mark.parametrize("kind", ["fit", "given", "groups", "survival", "likelihood"])
def test_bounds_of_many_problems(kind, part):
    per_part = N_SLOW // 40
    for seed in range(10**6 + part * per_part, 10**6 + (part + 1) * per_part):
        assert not KINDS[kind](seed), seed

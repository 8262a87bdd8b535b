"""Features that separate rows: what a sample rules out, no others would bring back."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from sklearn_subqn._features import separation

KINDS = {
    "three sides": [-1.0, 0.0, 1.0],
    "two sides": [-1.0, 1.0],
    "without weight": [-1.0, 0.0, np.nan],
}


def column(kind, sides, rng):
    n = len(sides)
    if kind == "marker":
        return np.nan_to_num(sides)
    if kind == "on one side":
        return (sides == 1.0) * rng.integers(0, 2, n)
    if kind == "constant":
        return np.ones(n)
    if kind == "rare":
        return (np.arange(n) == rng.integers(n)) * 1.0
    return rng.normal(size=n).round(1)


@pytest.mark.parametrize("n_sampled", [1, 3, 100])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("kind", KINDS)
def test_samples_rule_out_what_all_rows_would(kind, container, n_sampled, monkeypatch):
    monkeypatch.setattr(separation, "_SAMPLED", n_sampled)
    rng = np.random.default_rng(0)
    kinds = ["marker", "on one side", "constant", "rare", "numbers"]
    n_found = n_trials = 0
    for n in range(2, 102):
        sides = rng.choice(KINDS[kind], n)
        columns = [column(each, sides, rng) for each in rng.choice(kinds, 4)]
        X, w = np.column_stack(columns), rng.integers(-1, 2, 4)
        rows, centered = container(X), bool(n % 2)
        ends = separation.extremes(rows, X @ w, sides)
        expected = separation.separating(ends, centered=centered)
        found = separation.separating_rows(
            rows, lambda some, w=w: some @ w, sides, centered=centered
        )
        assert_array_equal(found, expected)
        n_found, n_trials = n_found + found.sum(), n_trials + found.size
    assert 0 < n_found < n_trials


def test_usual_rows_are_asked_about_by_samples():
    """What a sample of 200 rows says of columns that separate nothing is enough."""
    rng = np.random.default_rng(0)
    X, sides = rng.normal(size=(5000, 3)), rng.choice([-1.0, 1.0], 5000)
    asked = []

    def scores(rows):
        asked.append(len(rows))
        return rows.sum(axis=1)

    assert not separation.separating_rows(X, scores, sides, centered=True).any()
    assert sum(asked) <= 200

"""Indicators of a category without a penalty: coefficients, proofs, rows of a level."""

import warnings

import numpy as np
import pytest
from _door import Design
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from sklearn_subqn import BMRMClassifier, BMRMRegressor
from sklearn_subqn._core.objectives import free_columns

FIRMS, YEARS = 400, 6


def panel(loss, seed=0):
    """Return two numbers, indicators of firms and of years, and targets."""
    rng = np.random.default_rng(seed)
    n = FIRMS * YEARS
    firm, year = np.repeat(np.arange(FIRMS), YEARS), np.tile(np.arange(YEARS), FIRMS)
    effect = rng.normal(size=FIRMS)
    numbers = rng.normal(size=(n, 2)) + effect[firm, np.newaxis]
    z = 0.3 * numbers @ [1.0, -1.0] + 0.5 * effect[firm] + 0.1 * year
    rows = np.arange(n)
    parts = [
        sparse.csr_array(numbers),
        sparse.csr_array((np.ones(n), (rows, firm))),
        sparse.csr_array((np.ones(n), (rows, year))),
    ]
    X, order = sparse.hstack(parts, format="csr"), rng.permutation(n)
    if loss == "poisson":
        y = rng.poisson(np.exp(z + 1.0)).astype(float)
    else:
        y = z + rng.normal(size=n)
    return X[order], y[order]


def fitted(X, y, loss, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model = BMRMRegressor(alpha=0.0, loss=loss, tol=1e-8)
        return model.fit(X, y, **given)


def test_least_squares_are_those_of_numpy():
    X, y = panel("squared_error")
    ours = fitted(X, y, "squared_error")
    columns = np.column_stack([X.toarray(), np.ones(len(y))])
    best, *_ = np.linalg.lstsq(columns, y, rcond=None)
    least = 0.5 * np.mean((columns @ best - y) ** 2)
    np.testing.assert_allclose(ours.coef_[:2], best[:2], rtol=1e-7)
    np.testing.assert_allclose(ours.predict(X), columns @ best, rtol=1e-6, atol=1e-6)
    slack = 1e-13
    assert ours.objective_ - ours.dual_gap_ <= least + slack
    assert least <= ours.objective_ + slack
    assert ours.dual_gap_ <= 1e-8


def test_poisson_is_that_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    X, y = panel("poisson")
    ours = fitted(X, y, "poisson")
    # Without the first firm and year columns are independent.
    columns = X.toarray()[
        :, [0, 1, *range(3, FIRMS + 2), *range(FIRMS + 3, X.shape[1])]
    ]
    model = sm.GLM(y, sm.add_constant(columns), family=sm.families.Poisson())
    theirs = model.fit(tol=1e-14)
    np.testing.assert_allclose(ours.coef_[:2], theirs.params[1:3], rtol=1e-5)
    np.testing.assert_allclose(ours.predict(X), theirs.fittedvalues, rtol=1e-4)
    least = np.mean(theirs.fittedvalues - y * np.log(theirs.fittedvalues))
    constant = ours.objective_ - np.mean(ours.predict(X) - y * np.log(ours.predict(X)))
    assert ours.objective_ - ours.dual_gap_ <= least + constant + 1e-12


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "huber"])
def test_sparse_and_dense_rows_and_weights_of_repeated_rows(loss):
    X, y = panel(loss)
    weights = np.random.default_rng(1).integers(1, 3, len(y))
    ours = fitted(X, y, loss, sample_weight=weights)
    rows = np.repeat(np.arange(len(y)), weights)
    for other in (
        fitted(X[rows], y[rows], loss),
        fitted(X[rows].toarray(), y[rows], loss),
    ):
        np.testing.assert_allclose(
            other.predict(X), ours.predict(X), rtol=1e-4, atol=1e-5
        )
        assert ours.objective_ - ours.dual_gap_ <= other.objective_ * (1.0 + 1e-12)
        assert other.objective_ - other.dual_gap_ <= ours.objective_ * (1.0 + 1e-12)


@pytest.mark.parametrize("loss", ["log_loss", "squared_hinge"])
def test_bounds_with_and_without_elimination(loss, monkeypatch):
    X, y = panel("squared_error")
    signs = np.where(y > np.median(y), 1, -1)
    # Every firm has both classes, apart from the last, whose rows lose nothing.
    firm = np.argmax(X[:, 2 : FIRMS + 2].toarray(), axis=1)
    for level in range(FIRMS - 1):
        signs[np.flatnonzero(firm == level)[:2]] = [-1, 1]
    signs[firm == FIRMS - 1] = 1
    model = BMRMClassifier(alpha=0.0, loss=loss, tol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ours = model.fit(X, signs)
        found = ours.objective_, ours.dual_gap_
        monkeypatch.setattr(
            Design, "category", property(lambda self: np.arange(0)), raising=True
        )
        other = model.fit(X, signs)
    assert found[1] <= 1e-4 * found[0]
    assert found[0] - found[1] <= other.objective_ * (1.0 + 1e-12)
    assert other.objective_ - other.dual_gap_ <= found[0] * (1.0 + 1e-12)


def test_level_without_leeway_proves_nothing_where_its_sum_is_not_zero():
    X = sparse.csr_array(np.eye(4)[[0, 0, 1, 1, 2, 2, 3, 3]])
    design = Design(X, fit_intercept=False)
    weights = np.array([1.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    inverse = free_columns._Inverse(design, weights)
    lost = np.full(4, 1e-16)
    assert inverse.reaches(np.array([0.5, 0.0, 1.0, 1.0]), lost)
    for rest in (-1e-12, 1e-12):
        assert not inverse.reaches(np.array([0.5, rest, 1.0, 1.0]), lost)
    change, length = inverse.changes(np.array([0.5, 0.0, 1.0, 1.0]))
    np.testing.assert_allclose(design.adjoint(weights * change), [0.5, 0.0, 1.0, 1.0])
    assert length == 0.5


def test_levels_are_not_counted_among_columns_that_are_few(monkeypatch):
    """A matrix of 400 levels would be too large, that of the other columns is not."""
    X, y = panel("poisson")
    monkeypatch.setattr(free_columns, "COPY_SIZE", 1000)
    assert fitted(X, y, "poisson").dual_gap_ <= 1e-7


def test_changes_that_correct_rounding_are_bounded():
    X, _ = panel("squared_error")
    design = Design(X)
    rng = np.random.default_rng(3)
    weights = rng.random(design.n_rows)
    inverse = free_columns._Inverse(design, weights)
    matrix = np.linalg.pinv(design.gram(weights), rcond=1e-12, hermitian=True)
    lost = rng.random(design.n_params)
    for affordable in (0.0, np.inf):
        bound = inverse.largest_changes(lost, affordable)
        for _ in range(20):
            errors = lost * rng.choice([-1.0, 1.0], len(lost))
            # Errors of sums that some change has.
            errors = design.adjoint(weights * design.forward(matrix @ errors))
            errors *= min(1.0, (lost / np.abs(errors)).min())
            assert np.all(np.abs(design.forward(matrix @ errors)) <= bound)

"""Products near a known one have the entries that matter, at a share of the cost."""

import numpy as np
import pytest
from _l1_problems import problem
from numpy.testing import assert_allclose
from scipy import sparse

import sklearn_subqn as subqn
from sklearn_subqn._core.objectives.objective import Dual
from sklearn_subqn._core.rows.design import Design
from sklearn_subqn._core.steps import near_products
from sklearn_subqn._core.steps.intercepts import minimize_intercept
from sklearn_subqn._core.steps.near_products import NearProducts


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(near_products, "_FIRST", 0)


def wide(n=60, d=2000, *, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] + rng.normal(size=n) > 0.0, 1.0, -1.0)


def near_pair(objective, length):
    """Return two points, of which the first one has more weights."""
    w = np.zeros(objective.n_params)
    w[:3] = [0.3, -0.2, 0.1]
    other = w.copy()
    other[:2] += length
    return [minimize_intercept(objective.at(each)) for each in (w, other)]


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("length", [1e-8, 1e-3])
@pytest.mark.usefixtures("at_once")
def test_conditions_and_bounds_are_those_of_the_gradient(l1_ratio, length):
    objective = problem(*wide(), alpha=0.15 / l1_ratio, l1_ratio=l1_ratio)
    products = NearProducts(objective)
    one, two = near_pair(objective, length)
    products.settle(one)
    assert objective.column_sizes.all()
    passes = objective.design.passes
    products.settle(two)
    assert objective.design.passes - passes < 0.125
    exact = minimize_intercept(objective.at(two.w))
    regularizer, alpha = objective.elastic_net, objective.alpha
    residuals = [
        regularizer.smallest_subgradient(p.w, p.risk_gradient, alpha)
        for p in (two, exact)
    ]
    assert_allclose(*residuals, rtol=0.0, atol=1e-14)
    assert not np.array_equal(two.risk_gradient, exact.risk_gradient)
    assert two.lower_bound == pytest.approx(exact.lower_bound, rel=1e-13)
    bound = objective.dual_bound(Dual(two.dual, products.normal(two.dual)))
    assert bound == pytest.approx(exact.lower_bound, rel=1e-13)


@pytest.mark.parametrize("as_container", [np.asarray, sparse.csr_array])
@pytest.mark.usefixtures("at_once")
def test_all_products_are_computed_far_away_or_of_sparse_rows(as_container):
    X, y = wide()
    objective = problem(as_container(X), y, alpha=0.15)
    products = NearProducts(objective)
    length = 1e-8 if sparse.issparse(objective.design.X) else 10.0
    one, two = near_pair(objective, length)
    products.settle(one)
    products.settle(two)
    exact = minimize_intercept(objective.at(two.w))
    assert_allclose(two.risk_gradient, exact.risk_gradient, rtol=0.0, atol=1e-15)


def test_a_path_takes_hardly_more_than_a_product_for_each_alpha(monkeypatch):
    X, y = wide(100, 4000)
    alphas = subqn.L1LogisticOWLQN().alpha_max(X, y) * np.geomspace(0.9, 0.2, 20)
    n_products, adjoint = 0, Design.adjoint

    def counted(self, dual):
        nonlocal n_products
        n_products += 1
        return adjoint(self, dual)

    monkeypatch.setattr(Design, "adjoint", counted)
    search = subqn.L1LogisticOWLQNCV(alphas, cv=2, tol=1e-6, refit=False).fit(X, y)
    assert search.gaps_path_.max() <= 1e-6
    assert n_products < 1.5 * 2 * len(alphas)

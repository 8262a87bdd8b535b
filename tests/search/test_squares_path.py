"""Paths of squared errors by one Gram matrix, beside fits to one alpha."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet

from sklearn_subqn import BMRMRegressor, BMRMRegressorCV

GROUPS = "group", "group_elasticnet", "sparse_group"
# With fewer rows than features columns of X are used, with more rows a Gram matrix.
N_ROWS = 40, 70
RATIOS = {"l1": 1.0, "elasticnet": 0.5, "l2": 0.0}


def data(n=120, d=9, seed=0, correlated=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 3.0
    if correlated:
        X = X @ rng.standard_normal((d, d)) @ np.diag(10.0 ** rng.uniform(-3, 3, d))
    y = X @ (rng.standard_normal(d) / np.linalg.norm(X, axis=0)) + 0.1
    return X, y + 0.3 * y.std() * rng.standard_normal(n)


def test_memory_is_for_the_groups_in_use():
    rng = np.random.default_rng(31)
    X = rng.standard_normal((300, 20_000), dtype=np.float32)
    y = X[:, :5].sum(axis=1)
    search = BMRMRegressorCV(
        alphas=[0.4, 0.35, 0.3],
        penalty="group",
        groups=np.arange(20_000) // 5,
        cv=[(np.arange(300), np.arange(3))],
        refit=False,
    )
    tracemalloc.start()
    try:
        search.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # One copy is of the rows of the fold.
    assert peak < 2 * X.nbytes


@pytest.mark.parametrize("penalty", RATIOS)
@pytest.mark.parametrize("correlated", [False, True])
def test_fits_on_folds_are_those_to_one_alpha(penalty, correlated):
    X, y = data(correlated=correlated)
    alphas = np.geomspace(1.0, 1e-5, 7) * np.abs((X - X.mean(0)).T @ y).max() / len(y)
    weights = np.random.default_rng(1).integers(0, 4, len(y)).astype(float)
    folds = [
        (np.arange(0, 80), np.arange(80, 120)),
        (np.arange(40, 120), np.arange(40)),
    ]
    search = BMRMRegressorCV(
        alphas=alphas, penalty=penalty, cv=folds, tol=1e-7, max_iter=1000
    )
    search.fit(X, y, sample_weight=weights)
    assert search.gaps_path_.shape == (2, 7)
    assert search.gaps_path_.max() <= 1e-7
    for (train, test), scores in zip(folds, search.scores_path_, strict=True):
        for alpha, score in zip(search.alphas_, scores, strict=True):
            one = BMRMRegressor(alpha, penalty=penalty, tol=1e-10, max_iter=5000)
            one.fit(X[train], y[train], sample_weight=weights[train])
            expected = one.score(X[test], y[test], sample_weight=weights[test])
            assert score == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("penalty", RATIOS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_gap_contains_the_optimum_of_another_solver(penalty, dtype):
    X, y = data(seed=3)
    X = X.astype(dtype)
    ratio = RATIOS[penalty]
    for alpha in (1.0, 1e-2, 1e-4):
        folds = [(np.arange(len(y)), np.arange(5))]
        search = BMRMRegressorCV(
            alphas=[alpha], penalty=penalty, cv=folds, refit=False, tol=1e-8
        ).fit(X, y)
        assert search.coef_.dtype == dtype
        coef, intercept = search.coef_.astype(float), float(search.intercept_)
        peer = ElasticNet(alpha=alpha, l1_ratio=ratio, tol=1e-14, max_iter=100_000)
        peer.fit(X.astype(float), y)

        def objective(w, b, alpha=alpha):
            squares = 0.5 * np.mean((y - X @ w - b) ** 2)
            penalty = ratio * np.abs(w).sum() + 0.5 * (1.0 - ratio) * (w @ w)
            return squares + alpha * penalty

        value, best = objective(coef, intercept), objective(peer.coef_, peer.intercept_)
        gap = search.gaps_path_[0, 0] * value
        assert value - gap <= best * (1.0 + 1e-12)
        assert value <= best * (1.0 + 1e-8)


@pytest.mark.parametrize("format", [sparse.csr_array, sparse.csc_array])
def test_sparse_rows_and_units_of_targets_change_nothing(format):
    X, y = data(seed=5)
    X[np.abs(X) < 2.5] = 0.0
    dense = BMRMRegressorCV(alphas=10, penalty="l1", cv=3).fit(X, y)
    by_format = BMRMRegressorCV(alphas=10, penalty="l1", cv=3).fit(format(X), y)
    larger = BMRMRegressorCV(alphas=10, penalty="l1", cv=3).fit(X, 1e6 * y)
    np.testing.assert_allclose(by_format.scores_path_, dense.scores_path_, atol=1e-9)
    np.testing.assert_allclose(larger.scores_path_, dense.scores_path_, atol=1e-9)
    np.testing.assert_allclose(larger.alphas_, 1e6 * dense.alphas_)


def test_several_targets_are_fitted_as_each_alone():
    X, y = data(seed=7)
    several = np.column_stack([y, y**2])
    fit = {"alphas": [1.0, 1e-2], "penalty": "l2", "cv": 3}
    both = BMRMRegressorCV(**fit).fit(X, several).scores_path_
    each = [BMRMRegressorCV(**fit).fit(X, target).scores_path_ for target in several.T]
    np.testing.assert_allclose(both, np.mean(each, axis=0), atol=1e-6)


def test_penalties_that_vanish_are_left_to_other_solvers():
    X, y = data(seed=9)
    several = np.column_stack([y, np.zeros(len(y))])
    search = BMRMRegressorCV(alphas=[1.0, 5e-324], penalty="l2", cv=3)
    with pytest.warns(ConvergenceWarning):
        search.fit(X, several)
    assert not np.isnan(search.gaps_path_).any()
    assert (search.gaps_path_[:, 1] > search.tol).all()


def test_targets_whose_squares_overflow_are_not_proven_by_others():
    X, y = data(seed=17)
    search = BMRMRegressorCV(alphas=[1.0, 1e-2], penalty="l2", cv=3)
    with pytest.raises(ValueError, match="broke down numerically"):
        search.fit(X, np.column_stack([y, 1e170 * y]))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scores_of_all_alphas_together_are_those_of_a_scorer(dtype):
    X, y = data(seed=11)
    X, weights = X.astype(dtype), np.random.default_rng(2).uniform(0.0, 3.0, len(y))
    for given in (None, weights):
        fit = {"alphas": np.geomspace(1.0, 1e-4, 9), "penalty": "l1", "cv": 3}
        together = BMRMRegressorCV(**fit).fit(X, y, given)
        one_by_one = BMRMRegressorCV(scoring="r2", **fit).fit(X, y, given)
        expected = one_by_one.scores_path_
        close = {"rtol": 0.0, "atol": 1e-12 if dtype == np.float64 else 1e-6}
        np.testing.assert_allclose(together.scores_path_, expected, **close)
        assert together.alpha_ == one_by_one.alpha_


@pytest.mark.parametrize(
    ("penalty", "n_targets", "n", "most"),
    [
        *((penalty, k, n, 2**21) for penalty in GROUPS for k in (1, 3) for n in N_ROWS),
        ("group", 1, 70, 70),
        ("group", 3, 40, 20 * 40),
    ],
)
def test_gaps_of_groups_contain_the_optimum(monkeypatch, penalty, n_targets, n, most):
    """With few columns of a sparse X, fits to one alpha continue the path."""
    monkeypatch.setattr("sklearn_subqn._core.solvers.squares_path.COPY_SIZE", most)
    rng = np.random.default_rng(5)
    X = rng.standard_normal((n, 60)) + 2.0
    if most == 20 * 40:
        X[rng.random(X.shape) < 0.7] = 0.0
    Y = X[:, :8] @ rng.standard_normal((8, n_targets))
    Y += 0.1 * rng.standard_normal(Y.shape)
    given = {"penalty": penalty, "groups": np.arange(60) % 15, "tol": 1e-5}
    metric = np.array([2.0, 1.0, 0.5]) if n_targets > 1 else np.ones(1)
    if n_targets > 1:
        given["metric"] = np.diag(metric)
    path = []

    def scoring(model, X, Y):
        path.append((model.coef_.copy(), model.intercept_))
        return 0.0

    folds = [(np.arange(n), np.arange(3))]
    y = Y if n_targets > 1 else Y[:, 0]
    search = BMRMRegressorCV(
        alphas=12, cv=folds, scoring=scoring, refit=False, **given
    ).fit(sparse.csr_array(X) if most == 20 * 40 else X, y)
    assert search.gaps_path_.max() <= 1e-5
    n_used = [np.count_nonzero(coef) for coef, _ in path]
    assert n_used[0] == 0
    assert n_used[-1] > 20 * n_targets
    for i in (0, 4, 11):
        one = BMRMRegressor(search.alphas_[i], **{**given, "tol": 1e-10}).fit(X, y)
        coef, intercept = path[i]
        W = np.reshape(coef, (n_targets, 60))
        rest = Y - X @ W.T - intercept
        value = 0.5 * float(np.sum(rest**2 @ metric)) / n
        norms = np.sqrt(np.sum(W.reshape(n_targets, 4, 15) ** 2, axis=(0, 1)))
        omega = 2.0 * norms.sum()
        if penalty == "group_elasticnet":
            omega = 0.5 * omega + 0.5 * float(norms @ norms)
        elif penalty == "sparse_group":
            omega = 0.5 * omega + 0.5 * np.abs(W).sum()
        value += search.alphas_[i] * omega
        assert one.objective_ - one.dual_gap_ <= value
        lower = value * (1.0 - search.gaps_path_[0, i] - 1e-13)
        assert lower <= one.objective_


def test_groups_of_any_features_may_enter_together():
    rng = np.random.default_rng(19)
    X = rng.standard_normal((20, 30))
    y = X @ rng.standard_normal(30)
    groups = np.arange(30) % 7
    given = {"penalty": "group_elasticnet", "groups": groups, "tol": 1e-7}
    folds = [(np.arange(20), np.arange(3))]
    search = BMRMRegressorCV([0.01], cv=folds, refit=False, **given).fit(X, y)
    one = BMRMRegressor(0.01, **given).fit(X, y)
    assert search.n_iter_ == 1
    assert search.gaps_path_[0, 0] <= 1e-7
    np.testing.assert_allclose(search.coef_, one.coef_, atol=1e-3)


@pytest.mark.parametrize("penalty", RATIOS)
@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("size", [1.0, 1e5])
def test_free_features_are_those_of_a_fit_to_residuals(penalty, centered, size):
    rng = np.random.default_rng(13)
    X, y = data(seed=13)
    Z = size * (rng.standard_normal((len(y), 3)) + X[:, :3])
    y = y + Z @ [1.0, -2.0, 0.0] / size
    weights = rng.integers(1, 4, len(y)).astype(float)
    everything = np.column_stack([X[:, :4], Z, X[:, 4:]])
    free = np.isin(np.arange(12), [4, 5, 6])
    ratio = RATIOS[penalty]
    others = np.column_stack([Z, np.ones((len(y), int(centered)))])
    roots = np.sqrt(weights)[:, np.newaxis]
    basis = np.linalg.qr(roots * others)[0]
    A, b = roots * X, roots[:, 0] * y
    A, b = (each - basis @ (basis.T @ each) for each in (A, b))
    # The mean of squares is over the sum of weights.
    scale = np.sqrt(len(y) / weights.sum())
    for alpha in (1.0, 1e-2, 1e-4):
        search = BMRMRegressorCV(
            alphas=[alpha],
            penalty=penalty,
            cv=[(np.arange(len(y)), np.arange(5))],
            refit=False,
            tol=1e-6,
            penalty_factor=np.where(free, 0.0, 1.0),
            fit_intercept=centered,
        ).fit(everything, y, sample_weight=weights)
        assert search.n_iter_ == 1
        assert search.gaps_path_[0, 0] <= 1e-6
        peer = ElasticNet(
            alpha=alpha, l1_ratio=ratio, tol=1e-14, max_iter=10**5, fit_intercept=False
        ).fit(scale * A, scale * b)
        np.testing.assert_allclose(search.coef_[~free], peer.coef_, atol=1e-5)

        def objective(w, residuals, alpha=alpha):
            squares = 0.5 * weights @ residuals**2 / weights.sum()
            penalty = ratio * np.abs(w).sum() + 0.5 * (1.0 - ratio) * (w @ w)
            return squares + alpha * penalty

        residuals = y - everything @ search.coef_ - search.intercept_
        value = objective(search.coef_[~free], residuals)
        best = objective(peer.coef_, (b - A @ peer.coef_) / roots[:, 0])
        gap = search.gaps_path_[0, 0] * value
        assert value - gap <= best * (1.0 + 1e-12)
        assert value <= best * (1.0 + 1e-8)


def test_dependent_free_features_are_left_to_other_solvers():
    X, y = data(seed=15)
    levels = np.eye(3)[np.arange(len(y)) % 3]
    everything, factors = np.hstack([X, levels]), np.append(np.ones(9), np.zeros(3))
    fit = {"alphas": [1e-2], "penalty": "l1", "cv": 3, "tol": 1e-6}
    all_levels = BMRMRegressorCV(penalty_factor=factors, **fit).fit(everything, y)
    two = BMRMRegressorCV(penalty_factor=factors[:-1], **fit).fit(everything[:, :-1], y)
    assert all_levels.gaps_path_.max() <= 1e-6
    np.testing.assert_allclose(all_levels.scores_path_, two.scores_path_, atol=1e-4)


def test_paths_of_groups_have_the_objectives_of_skglm():
    skglm = pytest.importorskip("skglm")
    rng = np.random.default_rng(17)
    X = rng.standard_normal((50, 80)) + rng.standard_normal((50, 1))
    y = X[:, :12] @ rng.standard_normal(12) + rng.standard_normal(50)
    path = []

    def scoring(model, X, y):
        path.append((model.coef_.copy(), model.intercept_))
        return 0.0

    search = BMRMRegressorCV(
        alphas=[0.5, 0.05, 0.01],
        penalty="group",
        groups=np.arange(80) // 4,
        cv=[(np.arange(50), np.arange(3))],
        scoring=scoring,
        refit=False,
        tol=1e-9,
    ).fit(X, y)
    assert search.gaps_path_.max() <= 1e-9
    for alpha, (coef, intercept) in zip(search.alphas_, path, strict=True):

        def objective(w, b, alpha=alpha):
            norms = np.linalg.norm(w.reshape(-1, 4), axis=1)
            return 0.5 * np.mean((y - X @ w - b) ** 2) + alpha * 2.0 * norms.sum()

        given = {"alpha": alpha, "weights": np.full(20, 2.0), "tol": 1e-10}
        peer = skglm.GroupLasso(4, max_iter=1000, **given).fit(X, y)
        value = objective(peer.coef_, float(peer.intercept_))
        np.testing.assert_allclose(objective(coef, intercept), value, rtol=1e-8)

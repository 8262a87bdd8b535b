"""Hinges with small alphas: what larger alphas prove, and what they lead to."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog
from sklearn.datasets import load_digits, load_wine

from sklearn_subqn import (
    BMRMClassifier,
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
    SubLBFGSLinearSVC,
)


def phases(model):
    return list(dict.fromkeys(model.history_[0].phase))


# With 1e-9 and units of 1e3 the objective is 2e-16, less than the rounding of one loss.
@pytest.mark.parametrize(
    ("alpha", "unit"), [(1e-6, 1.0), (1e-6, 1e3), (1e-9, 1.0), (1e-9, 1e2)]
)
def test_of_classes_that_are_apart_only_alpha_is_left(alpha, unit):
    X, y = load_digits(return_X_y=True)
    X, y = X[::3], y[::3]
    model = MulticlassHingeClassifier(alpha).fit(unit * X, y)
    assert phases(model) == ["larger alphas"]
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert model.score(unit * X, y) == 1.0
    larger = MulticlassHingeClassifier(1e-4, tol=1e-5).fit(X, y)
    expected = larger.objective_ * alpha / 1e-4 / unit**2
    assert model.objective_ == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("target", range(3))
def test_one_score_per_row_in_large_units(target):
    X, y = load_wine(return_X_y=True)
    model = SubLBFGSLinearSVC(1e-6).fit(1e4 * X, y == target)
    assert phases(model)[0] == "larger alphas"
    same = SubLBFGSLinearSVC(1e-6, solver="alm").fit(X, y == target)
    # The optimum is near 1e-13, and violations are rounded to the digits of scores: how
    # far below its tolerance the run ends depends on the kernel of BLAS.
    assert model.history_[0].objective[-1] - model.history_[0].lower_bound[-1] <= (
        1e-3 * model.objective_
    )
    assert model.dual_gap_ <= 1e-15
    np.testing.assert_allclose(model.objective_, 1e-8 * same.objective_, atol=1e-15)
    np.testing.assert_allclose(1e4 * model.coef_, same.coef_, rtol=1e-2, atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_text(n_classes):
    rng = np.random.default_rng(0)
    X = sparse.random_array((400, 2000), density=0.008, format="csr", rng=rng)
    X.data = rng.normal(size=X.nnz)
    y = rng.integers(n_classes, size=400)
    estimator = SubLBFGSLinearSVC if n_classes == 2 else MulticlassHingeClassifier
    model, same = (estimator(alpha).fit(X, y) for alpha in (1e-8, 1e-10))
    larger = estimator(1e-4, tol=1e-4).fit(X, y)
    assert phases(model) == phases(same) == ["larger alphas"]
    assert phases(larger)[0] == "dual ascent"
    assert same.dual_gap_ <= 1e-3 * same.objective_
    assert model.objective_ == pytest.approx(1e2 * same.objective_)
    assert model.objective_ == pytest.approx(1e-4 * larger.objective_, rel=2e-3)


def least_mean_loss(X, y, n_classes):
    """Return the infimum of the joint hinge loss, by linear programming."""
    n, d = X.shape
    rows = []
    for i in range(n):
        for label in np.flatnonzero(np.arange(n_classes) != y[i]):
            # W_j x + b_j - W_y x - b_y - loss_i <= -1
            row = np.zeros((n_classes, d + 1))
            row[label] += np.append(X[i], 1.0)
            row[y[i]] -= np.append(X[i], 1.0)
            rows.append(np.concatenate([row.ravel(), -np.eye(n)[i]]))
    n_params = n_classes * (d + 1)
    solution = linprog(
        np.append(np.zeros(n_params), np.full(n, 1.0 / n)),
        A_ub=sparse.csr_array(rows),
        b_ub=-np.ones(len(rows)),
        bounds=[(None, None)] * n_params + [(0.0, None)] * n,
    )
    return solution.fun


@pytest.mark.parametrize("seed", range(3))
def test_of_classes_that_are_not_only_the_loss_is_left(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(80, 6)), rng.integers(3, size=80)
    least = least_mean_loss(X, y, 3)
    model = MulticlassHingeClassifier(1e-9).fit(X, y)
    assert phases(model)[0] == "larger alphas"
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert model.objective_ >= least
    penalty = 1e-9 * 0.5 * np.sum(model.coef_**2)
    assert model.objective_ - model.dual_gap_ <= least + 2 * penalty
    assert model.objective_ == pytest.approx(least, rel=1e-3)


def test_many_labels_far_from_the_origin():
    """It took fifty times as long as centered features, without a proof."""
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(100, 200)), rng.random((100, 8)) < 0.3
    model = MultilabelHingeClassifier(1e-4, reduction="max").fit(
        X + 100.0, Y.astype(int)
    )
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert model.n_iter_ < 200


def test_progress_is_reported_on_the_way():
    X, y = load_digits(return_X_y=True)
    seen = []

    def stop(progress):
        seen.append(progress.n_iter)
        return progress.n_iter >= 5

    model = MulticlassHingeClassifier(1e-7, callback=stop)
    model.fit(X[::3], y[::3])
    assert seen == list(range(6))
    assert phases(model) == ["larger alphas"]


def test_warm_starts_take_back_what_is_too_long_of_dual_points():
    """It took 97 iterations for the smaller alphas where dual points stayed as long."""
    X, y = load_digits(return_X_y=True)
    X, y = X[::3], y[::3]
    model = MulticlassHingeClassifier(1e-3, warm_start=True).fit(X, y)
    n_iter = 0
    for alpha in (1e-4, 1e-5, 1e-6):
        model.set_params(alpha=alpha).fit(X, y)
        n_iter += model.n_iter_
        assert model.dual_gap_ <= 1e-3 * model.objective_
    assert n_iter < 40
    # Far from there, it is better to begin anew: gaps were 100 %.
    model.set_params(alpha=1e-10).fit(X, y)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    cold = MulticlassHingeClassifier(1e-10).fit(X, y)
    assert model.objective_ >= cold.objective_ - cold.dual_gap_
    assert cold.objective_ >= model.objective_ - model.dual_gap_


def test_warm_starts_of_far_larger_alphas_begin_anew():
    # Hardly any loss is left, but of the objective it is most for so small an alpha.
    X, y = load_digits(return_X_y=True)
    X, y = X[::3], y[::3]
    model = MulticlassHingeClassifier(1e-3, warm_start=True).fit(X, y)
    model.set_params(alpha=1e-9).fit(X, y)
    assert phases(model) == ["larger alphas"]
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert model.n_iter_ <= 40


@pytest.mark.parametrize(("alpha", "digit"), [(1e-7, 7), (1e-8, 1), (1e-9, 1)])
def test_one_digit_against_the_others(alpha, digit):
    """It ended with gaps of 92 % to 100 %, up to nine times the optimum."""
    X, y = load_digits(return_X_y=True)
    model = SubLBFGSLinearSVC(alpha).fit(X, y == digit)
    larger = SubLBFGSLinearSVC(1e-6).fit(X, y == digit)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert model.objective_ == pytest.approx(1e6 * alpha * larger.objective_, rel=1e-3)


def test_where_larger_alphas_lead_nowhere_it_begins_anew():
    """It stalled with a gap of 93 %: many rows are empty, and classes are noise."""
    rng = np.random.default_rng(19)
    n, d, k = (int(rng.integers(*ends)) for ends in ((10, 150), (2, 120), (2, 6)))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-1, 2)
    if rng.random() < 0.3:
        X = X * 10.0 ** rng.uniform(-1, 1, d)
    if rng.random() < 0.3:
        X = X + 3.0 * X.std() * rng.normal(size=d)
    assert rng.random() < 0.3
    X = sparse.csr_array(X * (rng.random((n, d)) < 0.05))
    y = rng.integers(k, size=n)
    y[:k] = np.arange(k)
    model = MulticlassHingeClassifier(1e-3, max_iter=2000)
    model.set_params(fit_intercept=rng.random() < 0.6).fit(X, y)
    assert phases(model)[0] == "larger alphas"
    assert phases(model)[-1] != "larger alphas"
    assert model.dual_gap_ <= 1e-3 * model.objective_


@pytest.mark.parametrize("alpha", [1e-6, 1e-8])
def test_squared_hinge_of_text(alpha):
    rng = np.random.default_rng(0)
    X = sparse.random_array((1500, 4000), density=0.005, format="csr", rng=rng)
    X.data = rng.lognormal(size=X.nnz)
    y = X @ (rng.normal(size=4000) * (rng.random(4000) < 0.05)) > 0.0
    model = SubLBFGSLinearSVC(alpha, loss="squared_hinge", max_iter=100).fit(X, y)
    assert phases(model)[0] == "larger alphas"
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert model.history_[0].passes[-1] <= 350


def tall_data(seed, n_rows=40_000, n_features=28):
    """Repeated rows, perturbed, with columns of heavy tails in large units."""
    rng = np.random.default_rng(seed)
    rows = rng.random((400, n_features))
    rows[:, :6] = 1e3 * rng.lognormal(sigma=4.0, size=(400, 6))
    rows[:, :6][rng.random((400, 6)) < 0.6] = 0.0
    scores = rows @ (rng.normal(size=n_features) / rows.std(axis=0))
    chosen = rng.integers(0, 400, n_rows)
    X = rows[chosen]
    X[::3, :6] *= rng.lognormal(sigma=0.5, size=X[::3, :6].shape)
    # No two rows are equal.
    X *= rng.uniform(1.0 - 1e-9, 1.0, size=(n_rows, 1))
    y = (scores > np.median(scores))[chosen]
    return X, y ^ (rng.random(n_rows) < 5e-4)


def test_tall_data_are_solved_for_larger_alphas_on_a_sample():
    X, y = tall_data(0)
    model = SubLBFGSLinearSVC(1e-5, tol=1e-2).fit(X, y)
    assert phases(model)[0] == "sample"
    assert "larger alphas" not in phases(model)
    assert model.dual_gap_ <= 1e-2 * model.objective_
    assert model.history_[0].passes[-1] <= 120


@pytest.mark.parametrize("alpha", [1e-7, 1e-9, 1e-10])
def test_tiny_l1_on_columns_in_their_own_units(alpha):
    """Classes are apart: the optimum over alpha hardly depends on it."""
    X, y = load_wine(return_X_y=True)
    args = {"loss": "squared_hinge", "penalty": "l1"}
    rough = BMRMClassifier(1e-6, **args).fit(X, y == 0)
    model = BMRMClassifier(alpha, **args).fit(X, y == 0)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert model.objective_ / alpha == pytest.approx(rough.objective_ / 1e-6, rel=1e-3)

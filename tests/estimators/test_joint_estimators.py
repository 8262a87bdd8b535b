"""MulticlassHingeClassifier and MultilabelHingeClassifier against other solvers."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from _door import DualLoss, KindsOfLabels, LabelPairs, Simplex
from numpy.testing import assert_allclose
from scipy import optimize, sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.metrics import (
    accuracy_score,
    classification_report,
    coverage_error,
    f1_score,
    hamming_loss,
    label_ranking_average_precision_score,
    label_ranking_loss,
    roc_auc_score,
)
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from sklearn_subqn import (
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
    SubLBFGSLinearSVC,
)


def blobs(seed=0, n=40, d=3, k=4, spread=1.0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return rng.normal(size=(n, d)) + spread * rng.normal(size=(k, d))[y], y


def lines_of(loss, target, n_scores):
    """Offsets and gradients of the lines of which the loss of a row is the maximum."""
    eye = np.eye(n_scores)
    if isinstance(loss.set, Simplex):
        gradients = loss.set.rates[target][:, np.newaxis] * (eye - eye[target])
        offsets = np.where(loss.set.rates[target] > 0.0, loss.set.offsets[target], 0.0)
        return offsets, gradients
    if isinstance(loss.set, LabelPairs):
        pairs = [(0.0, np.zeros(n_scores))] + [
            (loss.set.costs[h, j], eye[j] - eye[h])
            for h in np.flatnonzero(target)
            for j in np.flatnonzero(target == 0)
        ]
        return np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])
    low, high = loss.set.costs
    a = [(0.0, np.zeros(n_scores))]
    b = list(a)
    bad, good = np.flatnonzero(target == 0), np.flatnonzero(target)
    if n_scores > len(target):
        a += [(low[j], eye[j] - eye[-1]) for j in bad]
        b += [(high[h], eye[-1] - eye[h]) for h in good]
    else:
        a += [(low[j] + high[h], eye[j] - eye[h]) for j in bad for h in good]
    pairs = [(x[0] + y[0], x[1] + y[1]) for x in a for y in b]
    return np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])


def optimum(X, targets, loss, n_scores, alpha, weights, fit_intercept):
    """The optimum from the quadratic program with slacks, by SciPy's SLSQP."""
    n, d = X.shape
    Z = np.column_stack([X, np.ones(n)]) if fit_intercept else X
    p = Z.shape[1]
    weights = weights / weights.sum()
    rows, offsets = [], []
    for i in range(n):
        a, g = lines_of(loss, targets[i], n_scores)
        for offset, gradient in zip(a, g, strict=True):
            row = np.zeros(p * n_scores + n)
            row[: p * n_scores] = -np.outer(Z[i], gradient).ravel()
            row[p * n_scores + i] = 1.0
            rows.append(row)
            offsets.append(offset)
    A, b = np.array(rows), np.array(offsets)
    q = d * n_scores
    cost = np.concatenate([np.zeros(p * n_scores), weights])
    quadratic = np.zeros(len(cost))
    quadratic[:q] = alpha
    start = np.concatenate([np.zeros(p * n_scores), np.full(n, b.max() + 1.0)])
    result = optimize.minimize(
        lambda v: 0.5 * quadratic @ (v * v) + cost @ v,
        start,
        jac=lambda v: quadratic * v + cost,
        constraints={"type": "ineq", "fun": lambda v: A @ v - b, "jac": lambda v: A},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-13},
    )
    # 8 means that rounding hides what else could be gained; a feasible value is then
    # an upper bound of the optimum that callers compare with ours.
    assert result.status in (0, 8)
    assert np.min(A @ result.x - b) > -1e-8
    return result.fun


@pytest.mark.parametrize("rescaling", ["margin", "slack", "rates"])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("alpha", [0.3, 0.01])
@pytest.mark.parametrize("seed", [0, 1])
def test_multiclass_optimum(rescaling, fit_intercept, alpha, seed):
    X, y = blobs(seed, n=16)
    rng = np.random.default_rng(seed)
    costs = rng.random((4, 4)) * 2.0
    costs[0, 1] = 0.0
    np.fill_diagonal(costs, 0.0)
    weights = rng.random(16)
    if rescaling == "rates":
        rescaling = 3.0 * rng.random((4, 4)) * (costs > 0.0)
    model = MulticlassHingeClassifier(
        alpha, label_cost=costs, rescaling=rescaling, fit_intercept=fit_intercept
    ).fit(X, y, sample_weight=weights)
    loss = DualLoss(Simplex(costs, rescaling))
    best = optimum(X, y, loss, 4, alpha, weights, fit_intercept)
    assert model.objective_ == pytest.approx(best, rel=1e-6)
    assert model.objective_ - model.dual_gap_ <= best * (1.0 + 1e-7)
    scores = X @ model.coef_.T + model.intercept_
    value = loss.oracle.value(scores, y.astype(np.intp), weights / weights.sum())
    value += 0.5 * alpha * (model.coef_**2).sum()
    assert model.objective_ == pytest.approx(value, rel=1e-10)


@pytest.mark.parametrize("threshold", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_multilabel_optimum(threshold, fit_intercept, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(14, 3)), rng.integers(0, 2, size=(14, 4))
    y[0], y[1] = 0, 1
    costs, weights = rng.random((2, 4)), rng.random(14)
    model = MultilabelHingeClassifier(
        0.05,
        reduction="max",
        label_cost=costs,
        threshold=threshold,
        fit_intercept=fit_intercept,
    ).fit(X, y, sample_weight=weights)
    loss = DualLoss(KindsOfLabels(costs))
    best = optimum(X, y, loss, 4 + threshold, 0.05, weights, fit_intercept)
    assert model.objective_ == pytest.approx(best, rel=1e-6)
    assert model.objective_ - model.dual_gap_ <= best * (1.0 + 1e-7)


def pair_costs(k=4, seed=0):
    costs = 2.0 * np.random.default_rng(seed).random((k, k))
    np.fill_diagonal(costs, 0.0)
    return costs


@pytest.mark.parametrize("solver", ["auto", "alm"])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
def test_optimum_of_pairs_of_labels(solver, fit_intercept, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(14, 3)), rng.integers(0, 2, size=(14, 4))
    y[0], y[1] = 0, 1
    costs, weights = pair_costs(seed=seed), rng.random(14)
    weights[3] = 0.0
    options = {"threshold": False, "fit_intercept": fit_intercept, "solver": solver}
    model = MultilabelHingeClassifier(
        0.05, reduction="max", label_cost=costs, tol=1e-6, **options
    )
    model.fit(X, y, sample_weight=weights)
    best = optimum(X, y, DualLoss(LabelPairs(costs)), 4, 0.05, weights, fit_intercept)
    assert model.objective_ == pytest.approx(best, rel=2e-6)
    assert model.objective_ - model.dual_gap_ <= best * (1.0 + 1e-7)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_pairs_whose_costs_are_sums_of_margins(fit_intercept):
    X, y = multilabel_data()
    margins = np.random.default_rng(0).random((2, 5))
    costs = margins[1][:, np.newaxis] + margins[0]
    np.fill_diagonal(costs, 0.0)
    options = {"threshold": False, "fit_intercept": fit_intercept, "tol": 1e-6}
    labels = MultilabelHingeClassifier(
        1e-2, reduction="max", label_cost=margins, **options
    ).fit(X, y)
    pairs = MultilabelHingeClassifier(
        1e-2, reduction="max", label_cost=costs, **options
    ).fit(X, y)
    assert pairs.objective_ == pytest.approx(labels.objective_, rel=3e-6)
    np.testing.assert_allclose(pairs.coef_, labels.coef_, atol=2e-2)


@pytest.mark.parametrize("solver", ["sublbfgs", "subbfgs"])
def test_bounds_of_pairs_are_valid(solver):
    X, y = multilabel_data()
    options = {"threshold": False, "label_cost": pair_costs(5), "alpha": 1e-2}
    exact = MultilabelHingeClassifier(reduction="max", **options).fit(X, y)
    assert exact.dual_gap_ <= 1e-3 * exact.objective_
    model = MultilabelHingeClassifier(
        reduction="max", solver=solver, max_iter=60, **options
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert max(model.history_[0].lower_bound) <= exact.objective_
    assert model.objective_ >= exact.objective_ - exact.dual_gap_


def test_costs_of_pairs_of_one_class_per_sample():
    X, y = blobs()
    one = MultilabelHingeClassifier(0.01, reduction="max", label_cost=pair_costs()).fit(
        X, y
    )
    other = MulticlassHingeClassifier(0.01, label_cost=pair_costs()).fit(X, y)
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-12)
    options = {"threshold": False, "label_cost": pair_costs(), "tol": 1e-6}
    ranking = MultilabelHingeClassifier(0.01, reduction="max", **options).fit(
        X, np.eye(4, dtype=int)[y]
    )
    assert ranking.objective_ == pytest.approx(other.objective_, rel=2e-6)


def test_costs_of_pairs_that_are_refused():
    X, y = multilabel_data()
    with pytest.raises(ValueError, match="needs threshold=False"):
        MultilabelHingeClassifier(reduction="max", label_cost=pair_costs(5)).fit(X, y)
    with pytest.raises(ValueError, match=r"shape \(2, 5\) or \(5, 5\)"):
        MultilabelHingeClassifier(reduction="max", label_cost=pair_costs(4)).fit(X, y)
    with pytest.raises(ValueError, match="zero on the diagonal"):
        MultilabelHingeClassifier(
            reduction="max", label_cost=np.ones((5, 5)), threshold=False
        ).fit(X, y)


def test_two_classes_are_the_binary_machine_of_half_the_alpha():
    X, y = blobs(k=2)
    joint = MulticlassHingeClassifier(0.1).fit(X, y)
    binary = SubLBFGSLinearSVC(0.05).fit(X, y)
    assert joint.objective_ == pytest.approx(binary.objective_, rel=1e-9)
    np.testing.assert_allclose(joint.coef_, binary.coef_, atol=1e-6)
    assert joint.decision_function(X).shape == (len(y),)


def test_agrees_with_crammer_singer_of_liblinear():
    X, y = blobs(n=200)
    model = MulticlassHingeClassifier(1e-2, fit_intercept=False, tol=1e-6).fit(X, y)
    peer = LinearSVC(
        multi_class="crammer_singer",
        C=1.0 / (200 * 1e-2),
        fit_intercept=False,
        tol=1e-8,
        max_iter=100000,
        random_state=0,
    ).fit(X, y)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-3)


@pytest.mark.parametrize("solver", ["auto", "alm", "sublbfgs", "subbfgs"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_every_bound_of_every_solver_is_valid(solver, fit_intercept):
    X, y = blobs(3, n=60)
    exact = MulticlassHingeClassifier(0.05, fit_intercept=fit_intercept).fit(X, y)
    model = MulticlassHingeClassifier(
        0.05, solver=solver, fit_intercept=fit_intercept, tol=1e-4
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert max(model.history_[0].lower_bound) <= exact.objective_ * (1.0 + 1e-12)
    assert model.objective_ >= (exact.objective_ - exact.dual_gap_) * (1.0 - 1e-12)
    assert model.objective_ <= 1.02 * exact.objective_


def test_a_start_from_a_sample_is_certified_too():
    X, y = blobs(5, n=4000, d=4, spread=0.7)
    model = MulticlassHingeClassifier(1e-5).fit(X, y)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    tight = MulticlassHingeClassifier(1e-5, solver="alm", tol=1e-6).fit(X, y)
    assert model.objective_ - model.dual_gap_ <= tight.objective_
    assert model.objective_ >= tight.objective_ - tight.dual_gap_


@pytest.mark.parametrize(
    "convert",
    [
        sparse.csr_array,
        sparse.csc_matrix,
        lambda X: X.astype(np.float32),
        lambda X: sparse.csr_array(X.astype(np.float32)),
    ],
)
def test_containers(convert):
    X, y = blobs()
    X = X.astype(np.float32).astype(float)
    model = MulticlassHingeClassifier(0.01).fit(X, y)
    other = MulticlassHingeClassifier(0.01).fit(convert(X), y)
    assert other.coef_.dtype == convert(X).dtype
    np.testing.assert_allclose(other.coef_, model.coef_, atol=1e-5)
    assert other.objective_ == pytest.approx(model.objective_, rel=1e-5)


def test_warm_start_takes_few_iterations():
    X, y = blobs(n=2000, spread=0.5)
    model = MulticlassHingeClassifier(1e-3, warm_start=True, solver="alm").fit(X, y)
    first = model.n_iter_
    assert model.fit(X, y).n_iter_ < first
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert pickle.loads(pickle.dumps(model)).score(X, y) == model.score(X, y)


def test_a_cost_moves_decisions():
    X, y = blobs(7, n=300)
    costs = 1.0 - np.eye(4)
    costs[2] *= 20.0
    plain = MulticlassHingeClassifier(1e-2, rescaling="slack").fit(X, y)
    careful = clone(plain).set_params(label_cost=costs).fit(X, y)
    missed = [np.mean(m.predict(X)[y == 2] != 2) for m in (plain, careful)]
    assert missed[1] < missed[0]


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        (np.ones((3, 3)), "shape"),
        (np.ones((4, 4)), "zero on the diagonal"),
        (np.eye(4) - 1.0, "non-negative"),
        (np.full((4, 4), np.nan), "NaN"),
    ],
)
def test_label_costs_that_are_refused(costs, message):
    X, y = blobs()
    with pytest.raises(ValueError, match=f"label_cost.*{message}|{message}"):
        MulticlassHingeClassifier(label_cost=costs).fit(X, y)


def noisy_labels():
    """Labels of which each row has some wrong."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 8))
    y = X @ rng.normal(size=(8, 10)) / 3.0 > 0.8
    return X, (y ^ (rng.random(y.shape) < 0.25)).astype(int)


@pytest.mark.parametrize("alpha", [1e1, 1e-1, 1e-3, 1e-6])
def test_the_mean_is_proven_at_any_alpha(alpha):
    X, y = noisy_labels()
    y[:, 3], y[:, 4] = 0, 1
    model = MultilabelHingeClassifier(alpha, reduction="mean", tol=1e-6)
    with warnings.catch_warnings():
        # The largest alpha leaves little of the coefficients.
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", ConvergenceWarning)
        model.fit(X, y)
    assert model.dual_gap_ <= 1e-6 * model.objective_
    assert model.n_iter_ <= 20


def test_the_mean_of_one_column_is_one_class_per_sample():
    X, y = multilabel_data()
    models = [
        MultilabelHingeClassifier(1e-2, reduction=reduction).fit(X, y[:, 0])
        for reduction in ("max", "mean")
    ]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


def test_the_mean_starts_warm_and_pickles():
    X, y = multilabel_data()
    options = {"reduction": "mean", "warm_start": True, "tol": 1e-6}
    model = MultilabelHingeClassifier(1e-4, **options).fit(X, y)
    first = model.n_iter_
    assert model.fit(X, y).n_iter_ < first
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(other.predict(X), model.predict(X))


def multilabel_data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    scores = X @ rng.normal(size=(6, 5)) + 0.2 * rng.normal(size=(400, 5))
    return X, (scores > 0.5).astype(int)


def test_multilabel_conventions():
    X, y = multilabel_data()
    model = make_pipeline(
        StandardScaler(), MultilabelHingeClassifier(1e-2, reduction="max")
    ).fit(X, y)
    predicted = model.predict(X)
    assert predicted.shape == y.shape
    assert f1_score(y, predicted, average="micro") > 0.8
    scores = model.decision_function(X)
    assert label_ranking_loss(y, scores) < 0.1
    np.testing.assert_array_equal(predicted, scores > 0.0)
    other = clone(model).fit(X, sparse.csr_array(y))
    np.testing.assert_array_equal(other.predict(X), predicted)


@pytest.mark.parametrize("n_labels", [1, 2, 5])
def test_metrics_of_scikit_learn(n_labels):
    X, y = multilabel_data()
    y = y[:, :n_labels]
    if n_labels == 1:
        # One column of indicators is one class per sample to scikit-learn.
        with pytest.warns(DataConversionWarning):
            model = MultilabelHingeClassifier(1e-2, reduction="max").fit(X, y)
        assert model.predict(X).shape == (len(y),)
        return
    model = MultilabelHingeClassifier(1e-2, reduction="max").fit(X, y)
    predicted, scores = model.predict(X), model.decision_function(X)
    assert model.score(X, y) == accuracy_score(y, predicted)
    assert hamming_loss(y, predicted) < 0.2
    assert label_ranking_average_precision_score(y, scores) > 0.8
    assert coverage_error(y, scores) <= n_labels
    assert roc_auc_score(y, scores, average="micro") > 0.8
    reports = classification_report(y, predicted, output_dict=True, zero_division=0.0)
    assert reports["micro avg"]["f1-score"] > 0.7


def test_meta_estimators_of_scikit_learn():
    X, y = multilabel_data()
    chain = ClassifierChain(MulticlassHingeClassifier(1e-2)).fit(X, y)
    apart = MultiOutputClassifier(MulticlassHingeClassifier(1e-2)).fit(X, y)
    ranked = OneVsRestClassifier(MulticlassHingeClassifier(1e-2)).fit(X, y)
    for model in (chain, apart, ranked):
        assert f1_score(y, model.predict(X), average="micro") > 0.8
    np.testing.assert_array_equal(apart.predict(X), ranked.predict(X))
    pipeline = make_pipeline(
        StandardScaler(), MultilabelHingeClassifier(reduction="max")
    )
    grid = {"multilabelhingeclassifier__alpha": [1e-1, 1e-3]}
    search = GridSearchCV(pipeline, grid, scoring="f1_micro", cv=3).fit(X, y)
    assert search.best_score_ > 0.8
    # Folds of several columns of y have to be dense; fits may be sparse.
    assert cross_val_predict(pipeline, X, y, cv=3).shape == y.shape


def test_one_class_per_sample_is_the_multiclass_loss():
    X, y = blobs()
    one = MultilabelHingeClassifier(0.01, reduction="max").fit(X, y)
    other = MulticlassHingeClassifier(0.01).fit(X, y)
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-12)
    ranking = MultilabelHingeClassifier(0.01, reduction="max", threshold=False).fit(
        X, np.eye(4, dtype=int)[y]
    )
    assert ranking.objective_ == pytest.approx(other.objective_, rel=1e-9)
    assert not hasattr(ranking, "predict")


def test_multilabel_warm_start():
    X, y = multilabel_data()
    model = MultilabelHingeClassifier(
        1e-2, reduction="max", warm_start=True, tol=1e-6
    ).fit(X, y)
    first = model.n_iter_
    assert model.fit(X, y).n_iter_ < first
    assert model.dual_gap_ <= 1e-6 * model.objective_


@pytest.mark.parametrize("values", [(-1, 1), (1, 2), (0, 2)])
def test_indicators_other_than_0_and_1_are_refused(values):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    y = np.where(X[:, :2] > 0.0, values[1], values[0])
    with pytest.raises(ValueError, match="indicator matrix of 0 and 1"):
        MultilabelHingeClassifier(reduction="max").fit(X, y)
    if 0 in values:
        with pytest.raises(ValueError, match=r"got the values \[0, 2\]"):
            MultilabelHingeClassifier(reduction="max").fit(X, sparse.csr_array(y))


def test_labels_in_other_forms_are_refused():
    X = np.random.default_rng(0).normal(size=(20, 3))
    y = np.arange(40).reshape(20, 2) % 3
    with pytest.raises(
        ValueError, match=r"shape \(20, 2\) with the values \[0, 1, 2\]"
    ):
        MultilabelHingeClassifier(reduction="max").fit(X, y)
    with pytest.raises(ValueError, match="MultiLabelBinarizer"):
        MultilabelHingeClassifier(reduction="max").fit(X, [["a"], ["b", "c"]] * 10)


@pytest.mark.parametrize("alpha", [1.0, 1e-1])
def test_large_alphas_take_few_iterations_with_intercepts_too(alpha):
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(8, 10))
    y = rng.integers(0, 8, 2000)
    X = centers[y] + rng.normal(size=(2000, 10)) + 2.0
    assert MulticlassHingeClassifier(alpha).fit(X, y).n_iter_ <= 10
    labels = X[:, :4] > X[:, 4:8]
    for threshold in (False, True):
        model = MultilabelHingeClassifier(alpha, reduction="max", threshold=threshold)
        assert model.fit(X, labels).n_iter_ <= 9


def test_intercepts_of_labels_without_relevant_rows_stay_near_the_scores():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    y = X[:, :4] + 0.5 * rng.normal(size=(120, 4)) > 0.3
    y[:20], y[20:30], y[:, 3] = False, True, False
    proven = {"alm": 0, "auto": 0}
    for seed in range(6):
        weights = rng.integers(0, 2, 120) * rng.random(120)
        costs = np.random.default_rng(seed).random((2, 4)) * 2.0
        objectives, bounds = [], []
        for solver in proven:
            model = MultilabelHingeClassifier(
                0.01, reduction="max", label_cost=costs, threshold=False, solver=solver
            )
            with warnings.catch_warnings():
                # By the rounding of some kernels one of six runs ends early.
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(X, y, sample_weight=weights)
            assert np.abs(model.intercept_).max() < 1e3
            proven[solver] += bool(model.dual_gap_ <= 1e-3 * model.objective_)
            objectives.append(model.objective_)
            bounds.append(model.objective_ - model.dual_gap_)
        assert max(bounds) <= min(objectives) * (1.0 + 1e-12)
    assert min(proven.values()) >= 5


@pytest.mark.parametrize("costs", [[1.0, 2.0, 3.0], "x", {}, np.ones((2, 2, 2))])
def test_costs_that_are_no_matrix_are_named(costs):
    X, y = blobs()
    with pytest.raises((TypeError, ValueError), match="label_cost"):
        MulticlassHingeClassifier(label_cost=costs).fit(X, y)


@pytest.mark.parametrize("alpha", [1e-5, 1e-6])
def test_classes_that_are_apart(alpha):
    """Intercepts do not settle between Newton steps, where no row is at a kink."""
    X, y = load_digits(return_X_y=True)
    X, y = X[::3], y[::3]
    model = MulticlassHingeClassifier(alpha).fit(X, y)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert model.score(X, y) == 1.0
    same = MulticlassHingeClassifier(1e-4, tol=1e-5).fit(X, y)
    assert model.objective_ == pytest.approx(alpha / 1e-4 * same.objective_, rel=1e-3)


def test_sparse_features_of_heavy_tails():
    """Rows with curvature are unlike the others: eigenvectors of all mislead."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((1000, 300), density=0.03, format="csr", rng=rng)
    X.data = rng.lognormal(0.0, 1.5, size=X.nnz)
    y = np.argmax(X @ rng.normal(size=(300, 4)) + rng.gumbel(size=(1000, 4)), axis=1)
    model = MulticlassHingeClassifier(1e-3).fit(X, y)
    assert model.dual_gap_ <= 1e-3 * model.objective_
    # It was 349 with such eigenvectors, and as few conjugate gradients in all steps.
    assert model.n_iter_ < 250


def test_objective_is_that_of_coefficients_in_float32():
    X, y = blobs(1, n=60, spread=8.0)
    X = (X + 50.0).astype(np.float32)
    model = MulticlassHingeClassifier(1e-4).fit(X, y)
    assert model.coef_.dtype == model.intercept_.dtype == np.float32
    W, b = (np.float64(a) for a in (model.coef_, model.intercept_))
    scores = X.astype(float) @ W.T + b
    own = scores[np.arange(len(y)), y]
    margins = 1.0 + scores - own[:, np.newaxis]
    margins[np.arange(len(y)), y] = 0.0
    value = 0.5e-4 * np.sum(W * W) + margins.max(axis=1).mean()
    assert model.objective_ == pytest.approx(value, rel=1e-9)


def test_rates_of_ones_and_of_costs_are_margins_and_slacks():
    X, y = blobs(0)
    costs = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    for name, rates in (("margin", np.ones((4, 4))), ("slack", costs)):
        model = MulticlassHingeClassifier(1e-2, label_cost=costs, tol=1e-8)
        named = clone(model).set_params(rescaling=name).fit(X, y)
        given = clone(model).set_params(rescaling=rates).fit(X, y)
        assert given.objective_ == pytest.approx(named.objective_, rel=1e-7)
        assert_allclose(given.coef_, named.coef_, atol=1e-3)


@pytest.mark.parametrize(
    ("rescaling", "message"),
    [
        ("none", "rescaling must be one of 'margin', 'slack'"),
        (np.ones((3, 3)), r"rescaling must .*\(4, 4\)"),
        (-np.ones((4, 4)), "rescaling must be non-negative"),
        (np.full((4, 4), np.nan), "rescaling contains NaN"),
        (np.zeros((4, 4)), "0 beside a cost of 1 in row 0, column 1"),
    ],
)
def test_rates_that_are_refused(rescaling, message):
    X, y = blobs(0)
    with pytest.raises(ValueError, match=message):
        MulticlassHingeClassifier(rescaling=rescaling).fit(X, y)

"""Groups of features: definitions, equivalent fits, and the results of peers."""

from __future__ import annotations

import ast

import numpy as np
import pandas as pd
import pytest
from _r import run_r
from scipy import sparse
from scipy.special import logsumexp
from sklearn.linear_model import MultiTaskLasso
from sklearn.preprocessing import OneHotEncoder

from sklearn_subqn import (
    BMRMClassifier,
    BMRMRegressor,
    BMRMRegressorCV,
    RowBlocks,
    standard_errors,
)

N, D = 120, 24
LABELS = np.arange(D) // 4
KINDS = ("group", "group_elasticnet", "sparse_group")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    X[:, 1::4] += X[:, ::4]
    w = np.where(LABELS < 2, rng.normal(size=D), 0.0)
    return X, X @ w + rng.normal(size=N)


def fitted(X, y, kind="group", **given):
    given = {"alpha": 0.05, "penalty": kind, "groups": LABELS, "tol": 1e-10, **given}
    return BMRMRegressor(**given).fit(X, y)


@pytest.mark.parametrize("loss", ["squared_error", "huber", "absolute_error"])
@pytest.mark.parametrize("kind", KINDS)
def test_objectives_are_above_bounds_of_other_solvers(data, kind, loss):
    X, y = data
    model = fitted(X, y, kind, loss=loss)
    assert 0.0 <= model.dual_gap_ <= 1e-9 * model.objective_
    if loss != "absolute_error":
        other = fitted(X, y, kind, loss=loss, solver="fista", tol=1e-4)
        lower = other.objective_ - other.dual_gap_
        assert lower <= model.objective_ <= other.objective_ * (1.0 + 1e-12)
    assert np.any(model.coef_ != 0.0)
    assert kind == "group_elasticnet" or np.any(model.coef_ == 0.0)


def test_forms_of_groups_and_of_data_are_equivalent(data):
    X, y = data
    expected = fitted(X, y)
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(D)])
    lists = [list(np.flatnonzero(g == LABELS)) for g in range(6)]
    names = {f"g{g}": [f"f{j}" for j in each] for g, each in enumerate(lists)}
    roots = {f"g{g}": 2.0 for g in range(6)}
    for model in (
        fitted(X, y, groups=[f"group {g}" for g in LABELS]),
        fitted(X, y, groups=lists),
        fitted(frame, y, groups=names, penalty_factor=roots),
        fitted(frame, y, groups=names, penalty_factor={"g3": 2}),
        fitted(frame, y, groups=names, penalty_factor=pd.Series(roots)),
        fitted(X, y, groups=[range(g, g + 4) for g in range(0, D, 4)]),
        fitted(frame, y, groups={g: set(each) for g, each in names.items()}),
        fitted(sparse.csr_matrix(X), y),
        fitted(X, y, penalty_factor=np.full(6, 4.0), alpha=0.025),
        fitted(np.vstack([X, X]), np.append(y, y)),
    ):
        np.testing.assert_allclose(model.objective_, expected.objective_, rtol=1e-10)
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-5)
    weights = np.random.default_rng(0).integers(0, 3, N)
    rows = np.repeat(np.arange(N), weights)
    one = BMRMRegressor(0.05, penalty="group", groups=LABELS, tol=1e-10)
    expected = one.fit(X[rows], y[rows]).objective_
    np.testing.assert_allclose(one.fit(X, y, weights).objective_, expected, rtol=1e-10)


def test_groups_of_one_feature_are_an_l1_norm(data):
    X, y = data
    lasso = BMRMRegressor(0.05, penalty="l1", tol=1e-10).fit(X, y)
    for model in (
        fitted(X, y, groups=None),
        fitted(X, y, "sparse_group", l1_ratio=1.0),
        fitted(X, y, "group_elasticnet", groups=None, l1_ratio=1.0),
    ):
        np.testing.assert_allclose(model.objective_, lasso.objective_, rtol=1e-9)


def test_free_and_signed_groups(data):
    X, y = data
    free = np.array([0.0, 2.0, 2.0, 2.0, 2.0, 2.0])
    model = fitted(X, y, penalty_factor=free, tol=1e-6)
    tiny = fitted(X, y, penalty_factor=np.where(free == 0.0, 1e-4, free), tol=1e-6)
    np.testing.assert_allclose(model.objective_, tiny.objective_, rtol=1e-3)
    assert model.objective_ - model.dual_gap_ <= tiny.objective_
    assert model.dual_gap_ > 0.0
    np.testing.assert_array_equal(model.penalty_factor_, free[LABELS])
    for kind in KINDS:
        signed = fitted(X, y, kind, positive=True)
        assert signed.coef_.min() >= 0.0
        assert signed.objective_ >= fitted(X, y, kind).objective_
        same = fitted(X, y, kind, coef_bounds=(0, None))
        assert signed.objective_ == same.objective_


def test_dummies_of_categories_are_groups():
    rng = np.random.default_rng(3)
    given = pd.DataFrame({"my_color": rng.choice(list("rgb"), N), "size": "m"})
    given.loc[::3, "size"] = "s"
    encoder = OneHotEncoder(sparse_output=False).set_output(transform="pandas")
    X = encoder.fit_transform(given).assign(width_1=rng.random(N), width_2=1.5)
    y = rng.normal(size=N)
    model = fitted(X, y, groups="categories")
    expected = np.sqrt([3, 3, 3, 2, 2, 1, 1])
    np.testing.assert_allclose(model.penalty_factor_, expected)
    with pytest.raises(ValueError, match="needs names of the features"):
        fitted(X.to_numpy(), y, groups="categories")
    # The proposal for a single category is one that is accepted.
    match = "lists of features, or a dict of such lists; got 'my_color'"
    with pytest.raises(ValueError, match=match) as refusal:
        fitted(X, y, groups="my_color")
    proposed = str(refusal.value).partition("groups=")[2].removesuffix("?")
    names = ["my_color_b", "my_color_g", "my_color_r"]
    assert ast.literal_eval(proposed) == {"my_color": names}
    only = fitted(X, y, groups=ast.literal_eval(proposed))
    np.testing.assert_allclose(only.penalty_factor_, np.sqrt([3, 3, 3, 1, 1, 1, 1]))
    with pytest.raises(ValueError, match="mean groups='categories'"):
        fitted(X, y, groups="category")


def test_rows_of_coefficients_of_several_targets_are_groups(data):
    """As in the multi-task lasso of scikit-learn, with a proof at every tolerance."""
    X, y = data
    Y = np.column_stack([y, y[::-1], X[:, 3]])
    peer = MultiTaskLasso(0.05, tol=1e-12, max_iter=10000).fit(X, Y)
    value = 0.5 * np.sum((Y - peer.predict(X)) ** 2) / N
    value += 0.05 * np.linalg.norm(peer.coef_, axis=0).sum()
    for tol in (1e-3, 1e-7, 1e-11):
        model = fitted(X, Y, groups=None, metric=np.eye(3), tol=tol)
        assert model.dual_gap_ <= tol * model.objective_
        lower = model.objective_ - model.dual_gap_
        assert lower <= value <= model.objective_ * (1.0 + 1e-14)
    np.testing.assert_allclose(model.objective_, value, rtol=1e-10)
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_a_metric_of_one_target_is_a_factor(data, kind):
    X, y = data
    model = fitted(X, y[:, np.newaxis], kind, metric=np.array([[2.0]]), alpha=0.1)
    expected = fitted(X, y, kind)
    np.testing.assert_allclose(model.objective_, 2.0 * expected.objective_, rtol=1e-12)
    np.testing.assert_allclose(model.coef_[0], expected.coef_, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_coefficients_of_columns_that_vanish_become_zero(data, kind):
    """A later fit starts at their former values, with no curvature to change them."""
    X, y = data
    empty = np.where(LABELS == 0, 0.0, X)
    model = fitted(X, y, kind, warm_start=True)
    assert model.coef_[0] != 0.0
    model.fit(empty, y)
    assert not model.coef_[LABELS == 0].any()
    assert model.dual_gap_ <= 1e-10 * model.objective_


@pytest.mark.parametrize("kind", KINDS)
def test_several_targets_with_a_metric(data, kind):
    """By the conditions of optimality of coefficients that are not zero."""
    X, y = data
    Y = np.column_stack([y, y[::-1] + X[:, 0]])
    metric = np.array([[2.0, 0.8], [0.8, 0.5]])
    for given in (X, sparse.csr_matrix(X)):
        model = fitted(given, Y, kind, metric=metric)
        assert model.dual_gap_ <= 1e-10 * model.objective_
    rest = Y - model.predict(X)
    slopes = metric @ (rest - rest.mean(axis=0)).T @ X / N
    own = slopes - 0.05 * _gradient(kind, model.coef_)
    used = model.coef_ != 0.0
    assert used.any()
    np.testing.assert_allclose(own[used], 0.0, atol=1e-6)
    np.testing.assert_allclose(rest.mean(axis=0), 0.0, atol=1e-9)


def _gradient(kind, coef):
    """Return the gradient of a penalty where coefficients are not zero."""
    norms = np.zeros_like(coef)
    for g in range(6):
        own = coef[:, g == LABELS]
        norms[:, g == LABELS] = 2.0 * own / (np.linalg.norm(own) or 1.0)
    others = {"group_elasticnet": 2.0 * coef, "sparse_group": np.sign(coef)}
    return 0.5 * (norms + others[kind]) if kind in others else norms


@pytest.mark.parametrize("loss", ["log_loss", "hinge", "squared_hinge"])
def test_classes(data, loss):
    X, y = data
    model = BMRMClassifier(0.02, loss=loss, penalty="group", groups=LABELS, tol=1e-9)
    model.fit(X, y > 0)
    assert model.dual_gap_ <= 1e-9 * model.objective_


@pytest.mark.parametrize("groups", [None, LABELS])
def test_rows_of_coefficients_of_all_classes_are_groups(data, groups):
    """As type.multinomial="grouped" of glmnet, by the conditions of optimality."""
    X, y = data
    classes = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    given = {"loss": "multinomial", "penalty": "group", "groups": groups, "tol": 1e-10}
    model = BMRMClassifier(0.05, **given).fit(X, classes)
    assert model.dual_gap_ <= 1e-10 * model.objective_
    rest = np.eye(3)[classes] - model.predict_proba(X)
    labels = np.arange(D) if groups is None else groups
    factor = 0.05 if groups is None else 0.1
    for g in range(labels[-1] + 1):
        slopes = rest.T @ X[:, labels == g] / N
        own = model.coef_[:, labels == g]
        norm = np.linalg.norm(own)
        if norm == 0.0:
            assert np.linalg.norm(slopes) <= factor * (1.0 + 1e-9)
        else:
            np.testing.assert_allclose(slopes, factor * own / norm, atol=1e-7)
    assert np.any(model.coef_ == 0.0)
    np.testing.assert_allclose(rest.mean(axis=0), 0.0, atol=1e-9)
    value = -np.mean(model.predict_log_proba(X)[np.arange(N), classes])
    norms = [np.linalg.norm(model.coef_[:, labels == g]) for g in set(labels.tolist())]
    np.testing.assert_allclose(model.objective_, value + factor * sum(norms))
    two = BMRMClassifier(0.05, **given).fit(X, classes > 0)
    other = BMRMClassifier(0.05, **given | {"loss": "log_loss"}).fit(X, classes > 0)
    assert two.objective_ == other.objective_


def test_cross_validation_begins_where_all_groups_vanish(data):
    X, y = data
    given = {"alphas": 5, "cv": 3, "groups": LABELS}
    for kind in KINDS:
        model = BMRMRegressorCV(penalty=kind, **given).fit(X, y)
        assert model.gaps_path_.max() <= 1e-3
        largest = model.alphas_[0]
        assert not fitted(X, y, kind, alpha=1.000001 * largest).coef_.any()
        assert fitted(X, y, kind, alpha=0.999 * largest).coef_.any()
    several = BMRMRegressorCV(penalty="sparse_group", l1_ratio=[0.2, 0.9], **given)
    assert several.fit(X, y).l1_ratio_ in (0.2, 0.9)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"groups": "color"}, "must be 'categories'"),
        ({"groups": [1, 2]}, "one label for each"),
        ({"groups": [[0, 0]]}, "more than once"),
        ({"groups": [[0, "a"]]}, "neither a name nor a number"),
        ({"groups": [[0], []]}, "no features"),
        ({"groups": [[[0, 1]]]}, "neither a name nor a number"),
        ({"groups": [*LABELS[1:], None]}, "finite numbers or names"),
        ({"groups": [*LABELS[1:], np.nan]}, "finite numbers or names"),
        ({"groups": [[4, 5]], "penalty_factor": {0: 9.0}}, "the same one"),
        ({"penalty_factor": [1, 1, -1, 1, 1, 1]}, "for the group 2"),
        ({"coef_bounds": (0, [0] + [np.inf] * 23)}, "both zero"),
        ({"penalty_factor": [1.0]}, "one number for each of the 6 groups"),
        ({"penalty_factor": {"9": 1.0}}, "9"),
        ({"coef_bounds": (0, 1)}, "signs of coefficients only"),
        ({"solver": "ls-bmrm"}, "solvers that do are"),
        ({"alpha": 0}, "mean no penalty"),
    ],
)
def test_what_is_refused(data, given, message):
    with pytest.raises(ValueError, match=message):
        fitted(*data, **given)


@pytest.mark.parametrize(
    ("kind", "loss", "size"),
    [
        ("group", "absolute_error", 17),
        ("sparse_group", "quantile", 40),
        ("group_elasticnet", "epsilon_insensitive", 60),
        ("sparse_group", "huber", 23),
    ],
)
def test_blocks_of_any_size_have_the_optimum_of_memory(data, kind, loss, size):
    X, y = data[0][:60, :12], data[1][:60]
    given = {"kind": kind, "loss": loss, "groups": LABELS[:12], "tol": 1e-6}
    weights = np.random.default_rng(1).integers(0, 3, size=60)
    rows = np.repeat(np.arange(60), weights)
    repeated = fitted(X[rows], y[rows], **given).objective_
    some = RowBlocks(sparse.csr_array(X), y, weights, block_size=size)
    in_blocks = fitted(some, None, **given)
    assert in_blocks.objective_ == pytest.approx(repeated, rel=2e-6)
    assert 0.0 <= in_blocks.dual_gap_ <= 1e-6 * repeated


@pytest.mark.parametrize("kind", ["group", "l1"])
def test_more_features_than_rows_in_blocks(kind):
    """Models have the features of a working set."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 300))
    y = np.sign(X[:, :4].sum(axis=1) + rng.normal(size=60))
    given = {"alpha": 0.05, "loss": "hinge", "penalty": kind, "tol": 1e-6}
    given["groups"] = None if kind == "l1" else np.arange(300) // 5
    whole = BMRMClassifier(**given).fit(X, y)
    in_blocks = BMRMClassifier(**given).fit(RowBlocks(X, y, block_size=25))
    assert in_blocks.objective_ == pytest.approx(whole.objective_, rel=2e-6)
    assert in_blocks.dual_gap_ <= 1e-6 * whole.objective_
    assert in_blocks.n_iter_ < 150


@pytest.mark.parametrize("kind", ["l2", "l1", "group"])
def test_multinomial_loss_in_blocks(data, kind):
    X, y = data
    classes = np.digitize(y, [-1.0, 1.0])
    given = {"alpha": 0.02, "loss": "multinomial", "penalty": kind, "tol": 1e-8}
    whole = BMRMClassifier(**given).fit(X, classes)
    in_blocks = BMRMClassifier(**given).fit(RowBlocks(X, classes, block_size=50))
    assert in_blocks.objective_ == pytest.approx(whole.objective_, rel=2e-8)
    assert in_blocks.dual_gap_ <= 1e-8 * whole.objective_
    np.testing.assert_allclose(in_blocks.coef_, whole.coef_, atol=1e-3)


def test_what_is_not_solved_is_refused(data):
    X, y = data
    classifier = BMRMClassifier(0.1, loss="f_beta_bound", penalty="group")
    with pytest.raises(ValueError, match="no solver does, but there is one"):
        classifier.fit(X, y > 0)
    factors = np.arange(6)
    with pytest.raises(ValueError, match="give a small factor"):
        fitted(X, X[:, :2], penalty_factor=factors, metric=np.eye(2))
    squares = fitted(X, y, "group_elasticnet", l1_ratio=0.0)
    with pytest.raises(ValueError, match="no standard errors"):
        standard_errors(squares, X, y)


@pytest.mark.parametrize("kind", ["group", "sparse_group"])
def test_objectives_are_those_of_peers(data, kind):
    """Of celer, and of skglm for sparse groups, within 1e-8."""
    X, y = data
    if kind == "group":
        celer = pytest.importorskip("celer")
        peer = celer.GroupLasso(4, 0.05, weights=np.full(6, 2.0), tol=1e-12)
        peer.fit(X, y)
        coef, intercept = peer.coef_, peer.intercept_
        model = fitted(X, y)
    else:
        pytest.importorskip("skglm")
        from skglm import GeneralizedLinearEstimator
        from skglm.datafits import QuadraticGroup
        from skglm.penalties import WeightedL1GroupL2
        from skglm.solvers import GroupBCD
        from skglm.utils.data import grp_converter

        indices, ptr = grp_converter(4, D)
        penalty = WeightedL1GroupL2(
            0.05, np.full(6, 1.0), np.full(D, 0.5), ptr, indices
        )
        solver = GroupBCD(tol=1e-12, ws_strategy="fixpoint", fit_intercept=False)
        peer = GeneralizedLinearEstimator(QuadraticGroup(ptr, indices), penalty, solver)
        coef, intercept = peer.fit(X, y).coef_, 0.0
        model = fitted(X, y, kind, fit_intercept=False)
    norms = np.linalg.norm(coef.reshape(-1, 4), axis=1).sum()
    value = 0.5 * np.mean((y - X @ coef - intercept) ** 2)
    l1, norm = (0.0, 2.0) if kind == "group" else (0.5, 1.0)
    value += 0.05 * (l1 * np.abs(coef).sum() + norm * norms)
    np.testing.assert_allclose(model.objective_, value, rtol=1e-8)


def test_targets_together_have_the_objectives_of_adelie(data):
    adelie = pytest.importorskip("adelie")
    X, y = data
    Y = np.ascontiguousarray(np.column_stack([y, y[::-1], X[:, 3]]))
    alphas = np.array([0.2, 0.05])
    # Its loss is divided by the number of targets.
    peer = adelie.grpnet(
        X=np.asfortranarray(X),
        glm=adelie.glm.multigaussian(Y),
        penalty=np.ones(D),
        lmda_path=alphas / 3.0,
        tol=1e-14,
        progress_bar=False,
        early_exit=False,
    )
    coefs = peer.betas.toarray().reshape(2, D, 3).transpose(0, 2, 1)
    for alpha, W, intercept in zip(alphas, coefs, peer.intercepts, strict=True):
        value = _value_of_targets(X, Y, W, intercept, alpha)
        model = fitted(X, Y, groups=None, metric=np.eye(3), alpha=alpha)
        np.testing.assert_allclose(model.objective_, value, rtol=1e-8)


def test_targets_together_have_the_objectives_of_glmnet(data):
    X, y = data
    Y = np.column_stack([y, y[::-1], X[:, 3]])
    code = """
        model <- glmnet(X, Y, family = "mgaussian", lambda = c(0.2, 0.05),
                        standardize = FALSE, thresh = 1e-20)
        list(coef = sapply(model$beta, function(each) as.matrix(each)[, 2]),
             intercept = model$a0[, 2])
    """
    peer = run_r(code, ["glmnet"], X=X, Y=Y)
    value = _value_of_targets(X, Y, peer["coef"].T, peer["intercept"], 0.05)
    model = fitted(X, Y, groups=None, metric=np.eye(3))
    np.testing.assert_allclose(model.objective_, value, rtol=1e-8)
    np.testing.assert_allclose(model.coef_, peer["coef"].T, atol=1e-6)


def _value_of_targets(X, Y, W, intercept, alpha):
    rest = Y - X @ W.T - intercept
    return 0.5 * np.sum(rest**2) / N + alpha * np.linalg.norm(W, axis=0).sum()


def test_grouped_multinomial_objectives_are_those_of_glmnet(data):
    X, y = data
    classes = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    code = """
        model <- glmnet(X, factor(classes), family = "multinomial",
                        type.multinomial = "grouped", lambda = c(0.1, 0.05),
                        standardize = FALSE, thresh = 1e-14, maxit = 1e6)
        list(coef = sapply(model$beta, function(each) as.matrix(each)[, 2]),
             intercept = model$a0[, 2])
    """
    peer = run_r(code, ["glmnet"], X=X, classes=classes)
    scores = X @ peer["coef"] + peer["intercept"]
    losses = logsumexp(scores, axis=1) - scores[np.arange(N), classes]
    value = losses.mean() + 0.05 * np.linalg.norm(peer["coef"], axis=1).sum()
    model = BMRMClassifier(0.05, loss="multinomial", penalty="group", tol=1e-10)
    model.fit(X, classes)
    np.testing.assert_allclose(model.objective_, value, rtol=1e-8)
    np.testing.assert_allclose(model.coef_, peer["coef"].T, atol=1e-5)

"""StructuredSVM: optima by enumeration, special cases, what oracles must return."""

from __future__ import annotations

import gzip
import importlib.util
import itertools
import os
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from _door import STRUCTURED_SOLVERS, CandidateHinge, ElasticNet
from _structures import Chains, Classes, Table
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.utils.estimator_checks import (
    check_estimator_repr,
    check_get_params_invariance,
    check_no_attributes_set_in_init,
    check_set_params,
)

from sklearn_subqn import LinearChainCRF, MulticlassHingeClassifier, StructuredSVM

EXAMPLES = Path(__file__).parents[2] / "examples"

# Objectives here are about one.
ROUNDING = 1e-12

WITH_L1 = [
    name
    for name, spec in STRUCTURED_SOLVERS.items()
    if spec.proves and spec.takes_penalty(ElasticNet(1))
]


def example(name):
    """Return an example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fitted(table, weights=None, **parameters):
    parameters = {"alpha": 0.1, "tol": 1e-6} | parameters
    svm = StructuredSVM(*table.arguments(), **parameters)
    return svm.fit(table.X, table.truths, sample_weight=weights)


# --- optima ---------------------------------------------------------------------------


def random_table(seed):
    rng = np.random.default_rng(seed)
    table = Table(
        n=int(rng.integers(1, 9)),
        d=int(rng.integers(1, 6)),
        n_structures=int(rng.integers(1, 9)),
        seed=seed,
        kind=rng.choice(["dense", "sparse", "dict"]),
    )
    weights = rng.integers(0, 4, size=len(table.X)).astype(float)
    weights[rng.integers(len(weights))] = 1.0
    return table, weights, 10.0 ** rng.uniform(-3.0, 1.0)


def check_bounds(seed):
    """Bounds of all solvers are below all objectives, which are J by enumeration."""
    table, weights, alpha = random_table(seed)
    parameters = {
        "alpha": alpha,
        "weights": weights,
        "tol": 1e-3,
        "max_iter": 20,
        "n_joint_features": table.features.shape[2],
    }
    penalties = {
        "l2": (list(STRUCTURED_SOLVERS), lambda w: 0.5 * w @ w),
        "l1": (WITH_L1, lambda w: np.abs(w).sum()),
        "elasticnet": (WITH_L1, lambda w: 0.5 * np.abs(w).sum() + 0.25 * w @ w),
    }
    for penalty, (solvers, omega) in penalties.items():
        objectives, bounds = [], []
        # The default solver, and others in turn.
        for solver in {"auto", solvers[seed % len(solvers)]}:
            svm = fitted(table, penalty=penalty, solver=solver, **parameters)
            w = svm.coef_
            J = alpha * omega(w) + table.risk(w, weights)
            assert svm.objective_ == pytest.approx(J, rel=1e-10, abs=ROUNDING)
            objectives.append(J)
            bounds.append(svm.objective_ - svm.dual_gap_)
        assert max(bounds) <= min(objectives) + ROUNDING
        if penalty == "l1":
            optimum = table.least_l1(alpha, weights)
            assert max(bounds) <= optimum + 1e-9 <= min(objectives) + 2e-9


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("block", range(10))
def test_bounds_of_all_solvers_on_random_tables(block):
    for seed in range(10 * block, 10 * block + 10):
        check_bounds(seed)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("block", range(10))
def test_bounds_of_all_solvers_on_more_random_tables(block):
    for seed in range(100 + 90 * block, 190 + 90 * block):
        check_bounds(seed)


@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet"])
def test_optimum_by_enumeration(penalty):
    table = Table(n=8, d=3, n_structures=9)
    svm = fitted(table, penalty=penalty, tol=1e-8)
    assert svm.dual_gap_ <= 1e-8 * svm.objective_
    J = svm.objective_
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-2, 1e-1, 1.0):
        for _ in range(50):
            w = svm.coef_ + size * rng.normal(size=3)
            omega = {
                "l2": 0.5 * w @ w,
                "l1": np.abs(w).sum(),
                "elasticnet": 0.5 * np.abs(w).sum() + 0.25 * w @ w,
            }[penalty]
            assert 0.1 * omega + table.risk(w) >= J - svm.dual_gap_
    if penalty == "l1":
        assert table.least_l1(0.1) == pytest.approx(J, rel=1e-7)


def test_classes_are_a_special_case():
    X, y = load_iris(return_X_y=True)
    classes = Classes(3)
    svm = StructuredSVM(classes.joint_feature, classes.argmax, alpha=1e-2, tol=1e-5)
    svm.fit(X, y)
    joint = MulticlassHingeClassifier(alpha=1e-2, fit_intercept=False, tol=1e-5)
    joint.fit(X, y)
    assert svm.objective_ == pytest.approx(joint.objective_, rel=2e-5)
    np.testing.assert_allclose(svm.coef_.reshape(3, 4), joint.coef_, atol=0.02)
    assert svm.score(X, y) == pytest.approx(joint.score(X, y), abs=0.02)
    assert np.mean(np.array(svm.predict(X)) == y) == pytest.approx(svm.score(X, y))


def test_chains_by_enumeration():
    rng = np.random.default_rng(0)
    chains = Chains(3)
    X = [rng.normal(size=(n, 2)) for n in (1, 2, 3, 4, 4)]
    y = [rng.integers(3, size=len(x)) for x in X]
    svm = StructuredSVM(
        chains.joint_feature, chains.argmax, chains.loss, alpha=0.05, tol=1e-7
    ).fit(X, y)
    w = svm.coef_
    total = 0.0
    for x, truth in zip(X, y, strict=True):
        at_truth = w @ chains.joint_feature(x, truth)
        total += max(
            chains.loss(truth, other) + w @ chains.joint_feature(x, other) - at_truth
            for other in chains.all_labels(len(x))
        )
    assert 0.025 * w @ w + total / 5 == pytest.approx(svm.objective_, rel=1e-12)
    assert svm.dual_gap_ <= 1e-7 * svm.objective_
    for x, found in zip(X, svm.predict(X), strict=True):
        scores = [w @ chains.joint_feature(x, z) for z in chains.all_labels(len(x))]
        assert w @ chains.joint_feature(x, found) == pytest.approx(max(scores))


def base_np(n_sentences):
    """Return sparse features of tokens and labels B, I, O of noun phrases."""
    path = Path(os.environ.get("SUBQN_DATA_DIR", "")) / "conll2000.train.txt.gz"
    if not path.is_file():
        pytest.skip("conll2000.train.txt.gz is not in SUBQN_DATA_DIR")
    text = gzip.decompress(path.read_bytes()).decode()
    names: dict[tuple, int] = {}
    rows, labels = [], []
    for block in text.split("\n\n")[:n_sentences]:
        tokens = [line.split() for line in block.splitlines()]
        columns, n = [], len(tokens)
        for t in range(n):
            near = [j for j in range(-2, 3) if 0 <= t + j < n]
            found = [(kind, j, tokens[t + j][kind]) for j in near for kind in (0, 1)]
            found += [
                ("pair", j, tokens[t + j][1], tokens[t + j + 1][1])
                for j in near
                if t + j + 1 < n
            ]
            columns.append([names.setdefault(name, len(names)) for name in found])
        rows.append(columns)
        chunks = [token[2] for token in tokens]
        labels.append(
            np.array(["BIO".index(c[0]) if c.endswith("-NP") else 2 for c in chunks])
        )
    X = []
    for columns in rows:
        bounds = np.cumsum([0, *map(len, columns)])
        indices = np.concatenate(columns)
        shape = len(columns), len(names)
        X.append(sparse.csr_matrix((np.ones(len(indices)), indices, bounds), shape))
    return X, labels


def assert_that_of_chains(svm, X, y):
    """A fit to sequences reaches what the hinge of chains reaches, and both prove it.

    Sums of a sequence's features and pairs of labels are the only ones of both.
    """
    crf = LinearChainCRF(
        svm.alpha,
        loss="hinge",
        all_possible_states=True,
        all_possible_transitions=True,
        tol=svm.tol,
    ).fit(X, y)
    for one, other in ((svm, crf), (crf, svm)):
        assert one.dual_gap_ <= one.tol * one.objective_
        assert one.objective_ - one.dual_gap_ <= other.objective_ * (1 + ROUNDING)
    assert svm.objective_ == pytest.approx(crf.objective_, rel=2 * svm.tol)
    return crf


@pytest.mark.parametrize("as_csr", [False, True])
def test_sequences_are_those_of_a_hinge_of_chains(as_csr):
    rng = np.random.default_rng(0)
    chains = Chains(3)
    X, y = [], []
    for n in rng.integers(1, 8, size=25):
        labels = rng.integers(3, size=n)
        labels[1::2] = labels[: n // 2 * 2 : 2]
        x = rng.normal(size=(n, 4))
        x[np.arange(n), labels] += 1.0
        X.append(sparse.csr_matrix(np.where(x > 0.0, x, 0.0)) if as_csr else x)
        y.append(labels)
    svm = StructuredSVM(
        chains.joint_feature, chains.argmax, chains.loss, alpha=1e-2, tol=1e-4
    )
    crf = assert_that_of_chains(svm.fit(X, y), X, y)
    states, adjacent = np.zeros((3, 4)), np.zeros((3, 3))
    for (column, label), w in crf.state_features_.items():
        states[label, column] = w
    for pair, w in crf.transition_features_.items():
        adjacent[pair] = w
    # The optimum is as near to each as strong convexity says.
    w = np.concatenate([states.ravel(), adjacent.ravel()])
    reach = sum(np.sqrt(2.0 * fit.dual_gap_ / fit.alpha) for fit in (svm, crf))
    assert np.linalg.norm(svm.coef_ - w) <= reach < 0.1 * np.linalg.norm(w)


def test_rescaled_slacks_are_those_of_chains():
    rng = np.random.default_rng(0)
    chains = Chains(3)
    y = [rng.integers(3, size=n) for n in rng.integers(1, 5, size=12)]
    X = [rng.normal(size=(len(labels), 4)) + np.eye(3, 4)[labels] for labels in y]

    def argmax(x, labels, w):
        found = list(chains.all_labels(len(x)))
        heights = np.array([chains.joint_feature(x, some) @ w for some in found])
        if labels is not None:
            wrong = np.array([chains.loss(labels, some) for some in found])
            heights = wrong * (1.0 + heights - chains.joint_feature(x, labels) @ w)
        return found[heights.argmax()]

    options = {"alpha": 1e-2, "tol": 1e-3, "rescaling": "slack"}
    crf = LinearChainCRF(
        loss="hinge", all_possible_states=True, all_possible_transitions=True, **options
    ).fit(X, y)
    as_csr = [sparse.csr_matrix(x) for x in X]
    for samples in (X, as_csr):
        svm = StructuredSVM(
            chains.joint_feature,
            argmax if samples is X else lambda x, *args: argmax(x.toarray(), *args),
            chains.loss,
            **options,
        ).fit(samples, y)
        for one, other in ((svm, crf), (crf, svm)):
            assert one.objective_ - one.dual_gap_ <= other.objective_ * (1 + ROUNDING)
            assert one.objective_ <= other.objective_ * (1 + 1e-3)


@pytest.mark.slow
def test_base_np_is_proven():
    X, y = base_np(2000)
    chains = Chains(3)
    svm = StructuredSVM(
        chains.joint_feature, chains.argmax, chains.loss, alpha=1e-2, n_jobs=2
    ).fit(X, y)
    assert_that_of_chains(svm, X, y)


def test_matchings_are_proven_and_found():
    module = example("graph_matching")
    pairs, matchings = module.make_pairs(6, n_points=4, n_features=3, n_useful=2)
    w = np.array([0.3, 0.1, -0.2])
    for pair, truth in zip(pairs, matchings, strict=True):
        for given in (None, truth):

            def value(other, pair=pair, given=given):
                cost = 0.0 if given is None else module.hamming_loss(given, other)
                return cost + w @ module.joint_feature(pair, other)

            found = module.best_matching(pair, given, w)
            every = map(np.array, itertools.permutations(range(4)))
            assert value(found) == pytest.approx(max(map(value, every)))
    train = module.make_pairs(20)
    for penalty, alpha in (("l2", 1.0), ("l1", 0.3)):
        svm = StructuredSVM(
            module.joint_feature,
            module.best_matching,
            module.hamming_loss,
            alpha=alpha,
            penalty=penalty,
        ).fit(*train)
        assert svm.dual_gap_ <= 1e-3 * svm.objective_
        assert svm.score(*module.make_pairs(10, seed=1)) > 0.9


def segmentations(n_frames, module):
    """Yield all segmentations."""
    if not n_frames:
        yield []
    for length in range(1, min(n_frames, module.LONGEST) + 1):
        for rest in segmentations(n_frames - length, module):
            for label in range(module.N_LABELS):
                yield [(length, label), *rest]


def test_segmentations_are_proven_and_found():
    module = example("segmentation")
    rng = np.random.default_rng(0)
    video, truth = rng.normal(size=(5, module.N_FEATURES)), [(2, 0), (3, 1)]
    every = list(segmentations(5, module))
    n = len(module.joint_feature(video, truth))
    for given in (None, truth):
        for _ in range(5):
            w = rng.normal(size=n)

            def value(other, given=given, w=w):
                cost = 0.0 if given is None else module.hamming_loss(given, other)
                return cost + w @ module.joint_feature(video, other)

            found = module.best_segmentation(video, given, w)
            assert value(found) == pytest.approx(max(map(value, every)))
    train = module.make_videos(6, n_segments=4)
    svm = StructuredSVM(
        module.joint_feature, module.best_segmentation, module.hamming_loss, alpha=0.3
    ).fit(*train)
    assert svm.dual_gap_ <= 1e-3 * svm.objective_


# --- kinds of joint features, weights, threads, starts --------------------------------


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_kinds_of_joint_features_give_the_same(penalty):
    results = []
    for kind in ("dense", "sparse", "dict"):
        table = Table(kind=kind)
        svm = fitted(table, penalty=penalty, tol=1e-9, n_joint_features=4)
        results.append(svm.objective_)
    np.testing.assert_allclose(results, results[0], rtol=1e-8)


def test_one_dimensional_sparse_rows_and_mixtures():
    table = Table()
    dense = fitted(table, tol=1e-9).objective_

    def mixed(x, y):
        row = table.joint_feature(x, y)
        return [row, sparse.coo_matrix(row[None]), dict(enumerate(row))][y[1] % 3]

    for function in (mixed, lambda x, y: sparse.coo_array(table.joint_feature(x, y))):
        svm = StructuredSVM(function, table.argmax, table.loss, alpha=0.1, tol=1e-9)
        svm.set_params(n_joint_features=4).fit(table.X, table.truths)
        assert svm.objective_ == pytest.approx(dense, rel=1e-8)


def test_weights_are_repetitions():
    table = Table()
    weights = np.array([2.0, 0.0, 1.0, 3.0, 1.0, 0.0])
    weighted = fitted(table, weights, tol=1e-9)
    rows = np.repeat(table.X, weights.astype(int))
    svm = StructuredSVM(*table.arguments(), alpha=0.1, tol=1e-9)
    repeated = svm.fit(rows, [table.truths[i] for i in rows])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-8)
    score = repeated.score(rows, [table.truths[i] for i in rows])
    assert weighted.score(table.X, table.truths, weights) == pytest.approx(score)


def test_samples_of_weight_zero_are_not_looked_at():
    table = Table()
    weights = np.ones(6)
    weights[2] = 0.0
    table.features[2] = np.nan
    svm = fitted(table, weights)
    assert np.isfinite(svm.objective_)


def test_threads_give_the_same_model():
    one, two = fitted(Table(n=30)), fitted(Table(n=30), n_jobs=2)
    np.testing.assert_array_equal(one.coef_, two.coef_)
    assert one.dual_gap_ == two.dual_gap_
    table = Table(n=30)
    assert one.predict(table.X) == two.predict(table.X)


def test_candidates_take_fewer_calls():
    n_calls = {}
    for solver in ("n-slack", "bmrm"):
        table = Table(n=40, d=6, n_structures=30)
        fitted(table, solver=solver, alpha=1e-2, tol=1e-3)
        n_calls[solver] = table.n_calls
    assert n_calls["n-slack"] <= 0.5 * n_calls["bmrm"]


def test_history_counts_passes_of_the_oracle():
    table = Table()
    svm = fitted(table)
    passes = svm.history_[0].passes
    assert passes[-1] * len(table.X) == table.n_calls
    assert len(passes) == svm.n_iter_ + 1


def test_warm_start_begins_where_the_last_fit_ended():
    table = Table(n=20)
    svm = fitted(table, warm_start=True, tol=1e-3)
    again = svm.objective_
    svm.set_params(tol=1e-8).fit(table.X, table.truths)
    assert svm.history_[0].objective[0] == pytest.approx(again, rel=1e-12)
    assert svm.dual_gap_ <= 1e-8 * svm.objective_
    other = Table(d=5)
    svm.set_params(joint_feature=other.joint_feature, loss=other.loss)
    svm.set_params(loss_augmented_argmax=other.argmax).fit(other.X, other.truths)
    assert svm.coef_.shape == (5,)


def test_callback_verbose_and_limit(capsys):
    seen = []
    svm = fitted(Table(), callback=lambda p: seen.append(p) or p.n_iter == 2, verbose=1)
    assert svm.n_iter_ == 2
    assert [p.n_iter for p in seen] == [0, 1, 2]
    assert seen[-1].objective == svm.history_[0].objective[-1]
    assert "StructuredSVM: iteration" in capsys.readouterr().out
    with pytest.warns(ConvergenceWarning, match="reached max_iter=1"):
        fitted(Table(), max_iter=1)


def test_small_bundles_prove_as_well():
    svm = fitted(Table(), bundle_size=3, tol=1e-3)
    assert svm.dual_gap_ <= 1e-3 * svm.objective_


def test_user_code_sees_its_own_floating_point_state_and_read_only_weights():
    table = Table()

    def argmax(x, y, w):
        assert not w.flags.writeable
        assert np.geterr()["invalid"] == "ignore"
        np.array([-np.inf]) - np.array([-np.inf])
        return table.argmax(x, y, w)

    with np.errstate(all="ignore"):
        for n_jobs in (1, 2):
            svm = StructuredSVM(table.joint_feature, argmax, table.loss, n_jobs=n_jobs)
            svm.fit(table.X, table.truths).predict(table.X)


# --- scikit-learn ---------------------------------------------------------------------


def test_conventions_of_parameters():
    svm = StructuredSVM(*Table().arguments())
    name = "StructuredSVM"
    check_get_params_invariance(name, svm)
    check_set_params(name, svm)
    check_estimator_repr(name, svm)
    check_no_attributes_set_in_init(name, svm)
    assert clone(svm).get_params().keys() == svm.get_params().keys()
    assert not svm.__sklearn_tags__().input_tags.two_d_array
    with pytest.raises(NotFittedError):
        svm.predict([0])


def test_pickles():
    X, y = load_iris(return_X_y=True)
    classes = Classes(3)
    svm = StructuredSVM(classes.joint_feature, classes.argmax, alpha=1e-1).fit(X, y)
    again = pickle.loads(pickle.dumps(svm))
    np.testing.assert_array_equal(again.coef_, svm.coef_)
    assert again.predict(X) == svm.predict(X)
    assert again.fit(X, y).objective_ == svm.objective_


def test_grid_search_over_lists():
    rng = np.random.default_rng(0)
    chains = Chains(2)
    X = [rng.normal(size=(rng.integers(1, 6), 3)) for _ in range(30)]
    y = [(x[:, 0] > 0).astype(int) for x in X]
    svm = StructuredSVM(chains.joint_feature, chains.argmax, chains.loss)
    search = GridSearchCV(svm, {"alpha": [1e-1, 10.0]}, cv=3).fit(X, y)
    assert search.best_estimator_.alpha == search.best_params_["alpha"]
    assert search.best_score_ > 0.5
    assert len(search.predict(X)) == 30


def test_sample_weight_is_routed():
    X, y = load_iris(return_X_y=True)
    classes = Classes(3)
    with config_context(enable_metadata_routing=True):
        svm = StructuredSVM(classes.joint_feature, classes.argmax, alpha=1.0)
        svm.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        weights = np.where(y == 0, 1.0, 1e-9)
        result = cross_validate(
            svm, X, y, cv=3, params={"sample_weight": weights}, error_score="raise"
        )
    assert len(result["test_score"]) == 3


def test_data_frames_and_sparse_rows():
    X, y = load_iris(return_X_y=True)
    classes = Classes(3)
    svm = StructuredSVM(classes.joint_feature, classes.argmax, alpha=1e-1)
    expected = svm.fit(X, y).objective_
    frame = pd.DataFrame(X)
    assert svm.fit(frame, pd.Series(y)).objective_ == pytest.approx(expected)

    def joint_feature(x, y):
        return classes.joint_feature(x.toarray()[0], y)

    def argmax(x, y, w):
        return classes.argmax(x.toarray()[0], y, w)

    svm = StructuredSVM(joint_feature, argmax, alpha=1e-1)
    assert svm.fit(sparse.csr_array(X), y).objective_ == pytest.approx(expected)
    assert cross_val_score(svm, sparse.csr_array(X), y, cv=2).shape == (2,)


# --- errors ---------------------------------------------------------------------------


def joint_feature_that_returns(value, *, sample=3):
    table = Table()

    def joint_feature(x, y):
        return value if x == sample else table.joint_feature(x, y)

    return {"joint_feature": joint_feature}


def loss_that_returns(value):
    return {"loss": lambda y, other: value if y[0] == 3 and y != other else 0.0}


def worst(x, y, w):
    return x, int((Table().features[x] @ w + Table().losses[x]).argmin())


ERRORS = [
    ({"joint_feature": None}, TypeError, "joint_feature must be callable, got None"),
    ({"loss": 3}, TypeError, "loss must be callable, got 3"),
    ({"alpha": 0.0}, ValueError, "alpha must be finite and > 0"),
    ({"penalty": "l3"}, ValueError, "penalty must be one of"),
    ({"penalty": "elasticnet", "l1_ratio": 2.0}, ValueError, "l1_ratio must be <= 1"),
    ({"solver": "lbfgs"}, ValueError, "solver must be one of 'auto', 'n-slack'"),
    (
        {"solver": "bmrm-aggregated", "penalty": "l1"},
        ValueError,
        "does not support penalty='l1'; solvers that do are 'auto', 'n-slack'",
    ),
    ({"tol": -1.0}, ValueError, "tol must be"),
    ({"max_iter": 0}, ValueError, "max_iter must be"),
    ({"bundle_size": 1}, ValueError, "bundle_size must be"),
    ({"n_joint_features": 0}, ValueError, "n_joint_features must be"),
    ({"n_joint_features": 5}, ValueError, r"shape \(5,\).* for sample 0"),
    (
        joint_feature_that_returns(np.ones(3)),
        ValueError,
        r"\(4,\).*\(3,\) for sample 3",
    ),
    (joint_feature_that_returns(np.ones((4, 1))), ValueError, "for sample 3"),
    (joint_feature_that_returns(np.full(4, np.nan)), ValueError, "sample 3 has values"),
    (joint_feature_that_returns(np.full(4, 1e200)), ValueError, "sample 3 has values"),
    (joint_feature_that_returns({4: 1.0}), ValueError, "got 4 for sample 3"),
    (joint_feature_that_returns({"a": 1.0}), ValueError, "got 'a' for sample 3"),
    (
        joint_feature_that_returns({1: 1.0}, sample=0),
        ValueError,
        "n_joint_features must be set",
    ),
    (loss_that_returns(-1.0), ValueError, "got -1.0 for sample 3"),
    (loss_that_returns(np.nan), ValueError, "got nan for sample 3"),
    (loss_that_returns(None), ValueError, "got None for sample 3"),
    ({"loss": lambda y, other: 1.0}, ValueError, r"loss\(y, y\).*got 1 for sample 0"),
    (
        {"loss_augmented_argmax": worst, "loss": lambda y, other: 0.0},
        ValueError,
        "worse than the true structure",
    ),
]


@pytest.mark.parametrize(("parameters", "kind", "message"), ERRORS)
def test_errors_leave_the_estimator_as_it_was(parameters, kind, message):
    table = Table()
    svm = fitted(table)
    before = svm.set_params(**parameters).__dict__.copy()
    if parameters.get("loss_augmented_argmax") is worst:
        # At zero nothing is worse than anything.
        svm.set_params(warm_start=True)
        before["warm_start"] = True
    with pytest.raises(kind, match=message):
        svm.fit(table.X, table.truths)
    assert svm.__dict__ == before


def test_errors_of_the_users_code_name_the_sample():
    table = Table()

    def argmax(x, y, w):
        return table.argmax(x, y, w) if x != 4 else {}[x]

    for n_jobs in (1, 2):
        svm = StructuredSVM(table.joint_feature, argmax, table.loss, n_jobs=n_jobs)
        with pytest.raises(KeyError) as caught:
            svm.fit(table.X, table.truths)
        notes = caught.value.__notes__
        assert "Raised by loss_augmented_argmax for sample 4." in notes


def test_answers_that_are_not_maxima_are_refused():
    """An oracle that forgets two structures, which no weights separate."""
    features, losses = [[0.0], [1.0], [-0.5], [0.0]], [0.0, 1.0, 0.8, 0.2]
    answers = iter([1, 2] + [3] * 100)
    svm = StructuredSVM(
        lambda x, y: np.array(features[y]),
        lambda x, y, w: next(answers),
        lambda y, other: losses[other],
    )
    with pytest.raises(ValueError, match="sample 0 it returned one that is worse than"):
        svm.fit([0], [0])


class Rescaled:
    """Labelings of three tokens, with slack rescaling and an exact maximum."""

    labelings = tuple(itertools.product((0, 1), repeat=3))

    @staticmethod
    def joint_feature(x, y):
        emissions, transitions = np.zeros((2, 2)), np.zeros((2, 2))
        for row, label in zip(x, y, strict=True):
            emissions[label] += row
        for pair in itertools.pairwise(y):
            transitions[pair] += 1.0
        return np.concatenate([emissions.ravel(), transitions.ravel()])

    @staticmethod
    def loss(y, y_hat):
        return sum(a != b for a, b in zip(y, y_hat, strict=True)) / 3

    def argmax(self, x, y, w):
        scores = np.array([self.joint_feature(x, q) @ w for q in self.labelings])
        if y is not None:
            losses = np.array([self.loss(y, q) for q in self.labelings])
            scores = losses * (1.0 + scores - self.joint_feature(x, y) @ w)
        return self.labelings[int(scores.argmax())]


def test_rounding_of_an_earlier_structure_does_not_refuse_an_exact_maximum():
    """The true structure, whose own height is zero without rounding, is found."""
    rng, problem = np.random.default_rng(630), Rescaled()
    n = int(rng.integers(2, 6))
    scale = 10.0 ** rng.integers(-2, 3)
    X = [np.round(rng.normal(size=(3, 2)), 2) * scale for _ in range(n)]
    y = [problem.labelings[i] for i in rng.integers(0, 8, n)]
    svm = StructuredSVM(
        problem.joint_feature,
        problem.argmax,
        problem.loss,
        rescaling="slack",
        alpha=10.0 ** -rng.integers(1, 5),
    )
    assert svm.fit(X, y).dual_gap_ <= 1e-3 * svm.objective_


@pytest.mark.parametrize("change", ["indices", "indptr"])
def test_corrupted_sparse_samples_are_refused(change):
    """SciPy would crash the process where the user's function uses them."""
    X = sparse.csr_matrix(np.eye(3))
    getattr(X, change)[-1] = 10**6
    svm = StructuredSVM(lambda x, y: x @ np.ones(3) * y, lambda x, y, w: 1)
    with pytest.raises(ValueError, match="X is a corrupted sparse matrix"):
        svm.fit(X, [1, 1, 1])


@pytest.mark.parametrize(
    ("X", "y", "kind", "message"),
    [
        ([], [], ValueError, "at least one sample"),
        ([0, 1], [(0, 0)], ValueError, "got 2 and 1"),
        (3, [(0, 0)], TypeError, "X must be a sequence of objects"),
        ("ab", [(0, 0)], TypeError, "X must be a sequence of objects"),
        (np.array(1.0), [(0, 0)], TypeError, "X must be a sequence of objects"),
        ([0], None, TypeError, "y must be a sequence of objects"),
    ],
)
def test_bad_data(X, y, kind, message):
    svm = StructuredSVM(*Table().arguments())
    with pytest.raises(kind, match=message):
        svm.fit(X, y)


@pytest.mark.parametrize("weights", [np.zeros(6), -np.ones(6), np.ones(5)])
def test_bad_weights(weights):
    with pytest.raises(ValueError, match=r"[Ss]ample.weight"):
        fitted(Table(), weights)


# --- the risk of candidates -----------------------------------------------------------


def test_candidate_hinge_is_a_maximum_of_each_sample():
    rng = np.random.default_rng(0)
    samples = np.sort(np.concatenate([np.arange(4), rng.integers(4, size=8)]))
    costs = rng.integers(3, size=12).astype(float)
    weights = rng.dirichlet(np.ones(4))[samples]
    loss = CandidateHinge(samples)

    def value(z):
        return sum(
            weights[samples == i][0] * (z + costs)[samples == i].max() for i in range(4)
        )

    for _ in range(20):
        z, other = rng.integers(-2, 3, size=(2, 12)).astype(float)
        risk, u = loss.evaluate(z, costs, weights)
        assert risk == pytest.approx(value(z))
        assert value(other) >= risk + u @ (other - z) - ROUNDING
        # Fenchel and Young, with equality at a subgradient.
        conjugate = loss.conjugate_at(u, z, costs, weights)
        assert risk + conjugate == pytest.approx(u @ z)


@pytest.mark.parametrize("penalty", ["l1", "elasticnet", "l2"])
def test_no_calls_of_the_oracle_where_the_bundle_can_tell_no_more(penalty):
    """Where what is left of the gap is rounding, further runs would leave it."""
    with pytest.warns(ConvergenceWarning, match="do not fall any more"):
        svm = fitted(Table(), penalty=penalty, alpha=1e-3, tol=1e-16, max_iter=200)
    assert svm.dual_gap_ <= 1e-9 * svm.objective_
    assert svm.n_iter_ < 40

"""Nothing changes what users give, however it is stored, nor depends on that.

Every public estimator and function that takes data is called with matrices of all
formats, whose entries may be in parts, in no order, or zeros: all arrays are byte for
byte as before, and results are those of the canonical matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from _formats import FORMATS, arrays_of, canonical, messy, snapshot
from _public import public_estimators
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.model_selection import GridSearchCV

from sklearn_subqn import (
    BMRMClassifier,
    BMRMRanker,
    BMRMRegressor,
    CoefficientPathDisplay,
    ConditionalRandomField,
    L1LogisticOWLQN,
    LinearChainCRF,
    OnlineLBFGSRegressor,
    RowBlocks,
    StructuredSVM,
    SubLBFGSLinearSVC,
    SubLBFGSLinearSVCCV,
    dual_gap,
    standard_errors,
)
from sklearn_subqn._checks import canonical_csr
from sklearn_subqn._core.rows.row_views import absolute, compact_csr, row_view
from sklearn_subqn.crf import CRF

pytestmark = pytest.mark.filterwarnings("ignore")

N, D = 30, 4
RNG = np.random.default_rng(3)
# One column is far from zero, and one has few entries.
X = RNG.normal(size=(N, D)) * (RNG.random((N, D)) < [1.0, 0.8, 0.5, 0.2])
X[:, 0] += 40.0
SCORE = X @ [0.3, 1.0, -1.0, 0.5] - 12.0 + 0.5 * RNG.normal(size=N)
RANKS = np.argsort(np.argsort(SCORE))
LENGTHS = [10, 12, 8]
ROWS = [slice(*pair) for pair in ((0, 10), (10, 22), (22, 30))]

#: What users give besides X, by the names of parameters.
GIVEN: dict[str, Any] = {
    "signs": (RANKS >= N // 2).astype(int),
    "thirds": RANKS * 3 // N,
    "counts": np.round(np.exp(SCORE / 2.0)) + 1.0,
    "labels": np.column_stack([RANKS % 2, RANKS > 9, RANKS < 20]).astype(int),
    "sample_weight": RNG.integers(1, 4, size=N) / 2.0,
    "offset": 0.1 * RNG.normal(size=N),
    "qid": np.repeat([3, 1, 2], LENGTHS),
    "group": np.array(LENGTHS),
    "query_weight": np.array([1.0, 2.0, 0.5]),
    "groups": np.arange(N) % 5,
    "penalty_factor": np.array([1.0, 0.5, 2.0, 1.5]),
    "coef_bounds": (np.full(D, -3.0), np.full(D, 3.0)),
    "coef_init": np.array([0.1, 0.0, -0.1, 0.2]),
    "tags": [list("abc" * 10)[rows] for rows in ROWS],
}

#: Targets, what else fits are given, and parameters, by names of public estimators.
FITS: dict[str, tuple[str | None, str, dict[str, Any]]] = {
    "SubLBFGSLinearSVC": ("signs", "sample_weight coef_init", {}),
    "SubLBFGSLinearSVCCV": ("thirds", "sample_weight", {"alphas": 2, "cv": 2}),
    "MulticlassHingeClassifier": ("thirds", "sample_weight", {}),
    "MultilabelHingeClassifier": ("labels", "sample_weight", {}),
    "L1LogisticOWLQN": ("thirds", "sample_weight", {}),
    "L1LogisticOWLQNCV": ("signs", "sample_weight", {"alphas": 2, "cv": 2}),
    "BMRMClassifier": ("signs", "sample_weight offset", {"loss": "log_loss"}),
    "BMRMRegressor": ("counts", "offset coef_init", {"loss": "absolute_error"}),
    "BMRMRegressorCV": ("counts", "sample_weight groups", {"alphas": 2, "cv": 2}),
    "BMRMOutlierDetector": (None, "sample_weight", {"nu": 0.2}),
    "CoxRegression": ("counts", "sample_weight offset", {}),
    "CoxRegressionCV": ("counts", "sample_weight groups", {"alphas": 2, "cv": 2}),
    "BMRMRanker": ("thirds", "qid query_weight coef_init", {}),
    "BMRMRankerCV": ("thirds", "qid query_weight", {"alphas": 2, "cv": 2}),
    "OnlineLBFGSClassifier": ("signs", "sample_weight", {}),
    "OnlineLBFGSRegressor": ("counts", "sample_weight", {}),
    "linear_model.GammaRegressor": ("counts", "sample_weight", {}),
    "linear_model.HuberRegressor": ("counts", "sample_weight", {}),
    "linear_model.LogisticRegression": ("thirds", "sample_weight", {}),
    "linear_model.LogisticRegressionCV": ("signs", "", {"Cs": 2, "cv": 2}),
    "linear_model.PoissonRegressor": ("counts", "sample_weight", {}),
    "linear_model.QuantileRegressor": ("counts", "sample_weight", {"alpha": 0.0}),
    "linear_model.TweedieRegressor": ("counts", "sample_weight", {"power": 1.5}),
    "svm.LinearSVC": ("thirds", "sample_weight", {}),
    "svm.LinearSVR": ("counts", "sample_weight", {}),
    "svm.SubLBFGSLinearSVC": ("signs", "", {"loss": "squared_hinge"}),
    "ranking.Ranker": ("thirds", "group", {}),
}
METHODS = "predict", "predict_proba", "decision_function", "score_samples"


@contextmanager
def untouched(*data):
    """Assert that nothing is changed in data, nor in what else is given."""
    before = snapshot([GIVEN, *data])
    yield
    assert snapshot([GIVEN, *data]) == before


def results(model):
    """Return what fits find."""
    names = "coef_", "intercept_", "objective_", "dual_gap_"
    return [np.asarray(getattr(model, name)) for name in names if hasattr(model, name)]


def plain(name):
    """Return what uses an estimator of a name: a fit, predictions, and scores."""
    target, names, parameters = FITS[name]
    y = None if target is None else GIVEN[target]
    given = {key: GIVEN[key] for key in names.split()}

    def use(of):
        A = of(X)
        with untouched(A):
            model = public_estimators()[name](**parameters).fit(A, y, **given)
            found = results(model)
            found += [getattr(model, m)(A) for m in METHODS if hasattr(model, m)]
            if hasattr(model, "score") and "Rank" not in name:
                found.append(model.score(A, y))
            if hasattr(model, "partial_fit"):
                found += results(model.partial_fit(A, y))
        return found

    return use


def with_options(**parameters):
    """Return what uses medians with parameters, and a bound of others'."""

    def use(of):
        A, y = of(X), GIVEN["counts"]
        with untouched(A):
            model = BMRMRegressor(loss="absolute_error", **parameters).fit(A, y)
            return [*results(model), dual_gap(model, A, y)]

    return use


def inference(of):
    A, y, weights = of(X), GIVEN["counts"], GIVEN["sample_weight"]
    found = []
    with untouched(A):
        for loss in ("squared_error", "poisson", "absolute_error"):
            model = BMRMRegressor(0.0, loss=loss, tol=1e-6).fit(A, y)
            kind = "cluster" if loss == "poisson" else "auto"
            groups = GIVEN["groups"] if kind == "cluster" else None
            errors = standard_errors(model, A, y, kind=kind, groups=groups)
            found += [errors.covariance, dual_gap(model, A, y, weights)]
        bootstrap = {"kind": "bootstrap", "n_resamples": 3, "random_state": 0}
        found.append(standard_errors(model, A, y, **bootstrap).covariance)
        pairs = L1LogisticOWLQN(1e-3, l1_ratio=0.0, tol=1e-6).fit(A, GIVEN["signs"])
        found.append(dual_gap(pairs, A, GIVEN["signs"]))
    return found


def searches(of):
    A, y = of(X), GIVEN["signs"]
    with untouched(A):
        proven = SubLBFGSLinearSVCCV((1e-2, 1.0), cv=2, search_tol=0.2).fit(A, y)
        grid = GridSearchCV(SubLBFGSLinearSVC(), {"alpha": [0.1, 1.0]}, cv=2)
        grid.fit(A if not sparse.issparse(A) else A.tocsr(), y)
        path = CoefficientPathDisplay.from_estimator(
            BMRMRegressor(), A, GIVEN["counts"], alphas=[0.1, 1.0]
        )
        path.figure_.clear()
    return [*results(proven), proven.alpha_, grid.best_score_, path.coefs]


def streams(of):
    A, y = of(X), GIVEN["counts"]
    with untouched(A):
        model = OnlineLBFGSRegressor(l1_ratio=0.5)
        for _ in range(3):
            model.partial_fit(A, y, GIVEN["sample_weight"])
        return [*results(model), model.predict(A)]


def blocks(of):
    A, weights = of(X), GIVEN["sample_weight"]
    with untouched(A):
        rows = RowBlocks(A, GIVEN["signs"], weights, block_size=7)
        model = SubLBFGSLinearSVC(0.1).fit(rows)
        other = BMRMRegressor(0.1, loss="huber")
        other.fit(RowBlocks(A, GIVEN["counts"], block_size=20))
    return [*results(model), *results(other)]


def rankings(of):
    A, y = of(X), GIVEN["thirds"]
    pairs = np.array([[0, 3], [9, 2], [11, 15], [29, 22]])
    with untouched(A, pairs):
        some = BMRMRanker(0.1).fit(A, pairs=pairs, pair_weight=np.arange(1.0, 5.0))
        other = BMRMRanker(0.1, loss="ndcg", max_iter=50)
        other.fit(A, y, qid=GIVEN["qid"], eval_set=[(A, y)], eval_qid=[GIVEN["qid"]])
    return [*results(some), *results(other), other.score(A, y, qid=GIVEN["qid"])]


def chains(of):
    A, tags = of(X), GIVEN["tags"]
    parts = [of(X[rows]) for rows in ROWS]
    y = np.concatenate(tags)
    with untouched(A, parts):
        model = LinearChainCRF(0.1, l1_ratio=0.5).fit(A, y, lengths=LENGTHS)
        found = [model.objective_, model.dual_gap_, model.predict(A, lengths=LENGTHS)]
        for other in (CRF(), LinearChainCRF(0.1, loss="hinge")):
            other.fit(parts, tags)
            found += [np.concatenate(other.predict(parts)), other.score(parts, tags)]
        model.partial_fit(A, y, lengths=LENGTHS)
        marginals = np.concatenate(model.predict_marginals(parts))
        found.append([list(token.values()) for token in marginals])
    return found


def joint_feature(x, y):
    row = x.toarray().ravel() if sparse.issparse(x) else x
    return np.outer(np.arange(3) == y, row).ravel()


def loss_augmented_argmax(x, y, w):
    scores = w @ np.stack([joint_feature(x, label) for label in range(3)], axis=1)
    return int((scores if y is None else scores + (np.arange(3) != y)).argmax())


def log_partition(x, w):
    rows = np.stack([joint_feature(x, label) for label in range(3)])
    value = np.logaddexp.reduce(rows @ w)
    return value, np.exp(rows @ w - value) @ rows


def structures(of):
    """Rows of X are samples, and joint features are stored as X is."""
    A = of(X)
    rows = [of(np.outer(np.arange(3) == y, x).reshape(1, -1)) for x in X for y in "012"]
    table = {(i, y): rows[3 * i + y] for i in range(N) for y in range(3)}
    y = GIVEN["thirds"].tolist()
    with untouched(A, rows):
        model = StructuredSVM(joint_feature, loss_augmented_argmax, alpha=0.1)
        model.fit(A, y)
        other = StructuredSVM(
            lambda i, y: table[i, y] if sparse.issparse(A) else table[i, y][0],
            lambda i, y, w: loss_augmented_argmax(X[i], y, w),
            alpha=0.1,
        ).fit(list(range(N)), y)
        field = ConditionalRandomField(joint_feature, log_partition, alpha=0.1)
        field.fit(A, y)
    models = model, other, field
    return [model.predict(A), *(part for each in models for part in results(each))]


USES: dict[str, Callable[..., Any]] = {
    **{name: plain(name) for name in FITS},
    "alpha=0": with_options(alpha=0.0),
    "L1": with_options(alpha=1e-9, penalty="l1", tol=1e-2),
    "factors": with_options(alpha=0.1, penalty_factor=GIVEN["penalty_factor"]),
    "bounds": with_options(alpha=0.1, coef_bounds=GIVEN["coef_bounds"]),
    **{
        use.__name__: use
        for use in (inference, searches, streams, blocks, rankings, chains, structures)
    },
}


def test_all_public_estimators_are_used():
    others = {"LinearChainCRF", "crf.LinearChainCRF", "crf.CRF", "StructuredSVM"}
    others |= {"ConditionalRandomField"}
    assert set(public_estimators()) == set(FITS) | others


@pytest.mark.parametrize("name", USES)
def test_input_is_untouched_and_its_format_makes_no_difference(name):
    expected_of: dict[str, Any] = {}
    for title, make in FORMATS.items():
        found = USES[name](make)
        # Blocks store other zeros, and arrays all of them.
        kind = title[:1] if title[:1] in "bCF" else ""
        if kind not in expected_of:
            expected_of[kind] = USES[name](lambda X, title=title: canonical(X, title))
        expected = expected_of[kind]
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            assert_array_equal(a, b, err_msg=title)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array])
def test_threads_share_a_matrix(kind):
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(400, 30)) * (rng.random((400, 30)) < 0.3)
    y = dense @ rng.normal(size=30) + rng.normal(size=400)
    A = messy(dense, kind)
    models = [
        BMRMRegressor(0.0, loss="absolute_error"),
        SubLBFGSLinearSVC(),
        L1LogisticOWLQN(1e-9),
        BMRMClassifier(loss="exponential"),
    ]
    targets = [y, y > 0.0, y > 0.0, y > 0.0]

    def use(i):
        model = models[i % 4].__class__(**models[i % 4].get_params())
        model.fit(A, targets[i % 4])
        return [*results(model), model.predict(A), dual_gap(model, A, targets[i % 4])]

    with untouched(A):
        alone = [use(i) for i in range(4)]
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(use, range(12)))
    for i, found in enumerate(together):
        for a, b in zip(found, alone[i % 4], strict=True):
            assert_array_equal(a, b)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
def test_views_share_arrays_with_a_matrix_and_canonical_ones_are_not_copied(kind):
    A = kind(X)
    shared = canonical_csr(A)
    for a, b in zip(arrays_of(A), arrays_of(shared), strict=True):
        assert np.shares_memory(a, b)
    compact = compact_csr(shared)
    view = row_view(compact, slice(3, 20))
    sizes = absolute(view)
    assert_array_equal(sizes.toarray(), np.abs(X[3:20]))
    for a in (compact, view):
        assert np.shares_memory(a.data, A.data)
        assert np.shares_memory(a.indices, A.indices)
    assert np.shares_memory(sizes.indices, A.indices)
    assert not np.shares_memory(sizes.data, A.data)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
def test_indices_of_canonical_matrices_have_the_types_of_scipy(kind):
    A = kind(X)
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    made = kind((A.data, A.indices, A.indptr), shape=A.shape)
    for a, b in zip(arrays_of(canonical_csr(A)), arrays_of(made), strict=True):
        assert a.dtype == b.dtype
        assert_array_equal(a, b)


@pytest.mark.parametrize(
    "dtype", [np.bool_, np.int8, np.float16, np.longdouble, complex]
)
def test_canonical_matrices_of_any_numbers(dtype):
    """Sums of parts are of the type of the matrix."""
    arrays = np.array([1, 1, 0], dtype), np.array([2, 2, 1]), np.array([0, 3])
    found = canonical_csr(sparse.csr_array(arrays, shape=(1, 4)))
    assert found.has_sorted_indices
    assert_array_equal(found.indices, [1, 2])
    assert_array_equal(found.toarray(), [[0, 0, dtype(1) + dtype(1), 0]])


@pytest.mark.parametrize("break_it", ["indices", "indptr"])
def test_corrupted_sparse_targets_are_refused(break_it):
    y = sparse.csr_matrix(GIVEN["labels"])
    getattr(y, break_it)[-2] = 10**6
    with pytest.raises(ValueError, match="y is a corrupted sparse matrix"):
        public_estimators()["MultilabelHingeClassifier"]().fit(X, y)

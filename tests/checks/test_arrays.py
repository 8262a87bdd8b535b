"""Masked entries and imaginary parts, which conversions would drop, are refused."""

import numpy as np
import pandas as pd
import pytest
from numpy.ma import MaskedArray
from scipy import sparse
from sklearn.utils import check_X_y

from sklearn_subqn import (
    BMRMClassifier,
    BMRMOutlierDetector,
    BMRMRanker,
    BMRMRankerCV,
    BMRMRegressor,
    L1LogisticOWLQN,
    L1LogisticOWLQNCV,
    LinearChainCRF,
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
    OnlineLBFGSClassifier,
    OnlineLBFGSRegressor,
    StructuredSVM,
    SubLBFGSLinearSVC,
    SubLBFGSLinearSVCCV,
)
from sklearn_subqn._checks import canonical_csr, is_plain
from sklearn_subqn.linear_model import PoissonRegressor

X = np.random.default_rng(0).normal(size=(12, 3))
NUMBERS = np.abs(X[:, 1])
ROWS = np.arange(12)
LABELS = ROWS % 2


def joint_feature(x, y):
    return np.outer(np.arange(2) == y, x).ravel()


def loss_augmented_argmax(x, y, w):
    scores = w.reshape(2, 3) @ np.asarray(x).ravel()
    if y is not None:
        scores = scores + (np.arange(2) != y)
    return int(scores.argmax())


ESTIMATORS = [
    (SubLBFGSLinearSVC(), LABELS),
    (SubLBFGSLinearSVCCV(alphas=[0.1], cv=2), LABELS),
    (MulticlassHingeClassifier(), LABELS),
    (MultilabelHingeClassifier(), np.column_stack([LABELS, 1 - LABELS])),
    (L1LogisticOWLQN(), LABELS),
    (L1LogisticOWLQNCV(alphas=[0.1], cv=2), LABELS),
    (BMRMClassifier(), LABELS),
    (BMRMRegressor(), NUMBERS),
    (BMRMRegressor(loss="squared_error"), np.column_stack([NUMBERS, NUMBERS])),
    (BMRMRanker(), LABELS),
    (BMRMRankerCV(alphas=[0.1], cv=2), LABELS),
    (BMRMOutlierDetector(), None),
    (OnlineLBFGSClassifier(), LABELS),
    (OnlineLBFGSRegressor(), NUMBERS),
    (StructuredSVM(joint_feature, loss_augmented_argmax), LABELS),
]
IDS = [f"{type(estimator).__name__}-{np.ndim(y)}" for estimator, y in ESTIMATORS]


def masked(values, place=3):
    """Return values of which one is masked."""
    values = np.ma.array(values, copy=True)
    values[place] = np.ma.masked
    return values


@pytest.mark.parametrize(("estimator", "y"), ESTIMATORS, ids=IDS)
def test_masked_entries_are_refused(estimator, y):
    options = {}
    if isinstance(estimator, BMRMRankerCV):
        options["qid"] = ROWS // 3
    elif isinstance(estimator, BMRMRanker):
        options["qid"] = ROWS // 6
    fits = [estimator.fit]
    if hasattr(estimator, "partial_fit"):
        fits.append(estimator.partial_fit)
    # Nothing is masked here.
    estimator.fit(np.ma.array(X), y, **options)
    for fit in fits:
        for some in (masked(X), list(masked(X)), tuple(masked(X, (3, 1)))):
            with pytest.raises(ValueError, match="X has masked entries"):
                fit(some, y, **options)
        if y is not None:
            for some in (masked(y), masked(y).reshape(12, -1)):
                with pytest.raises(ValueError, match="y has masked entries"):
                    fit(X, some, **options)
        for some in (masked(np.ones(12)), list(masked(np.ones(12)))):
            with pytest.raises(ValueError, match="sample_weight has masked entries"):
                fit(X, y, sample_weight=some, **options)
    with pytest.raises(ValueError, match="X has masked entries"):
        estimator.predict(masked(X))


@pytest.mark.parametrize(
    "name", ["qid", "group", "query_weight", "pairs", "pair_weight"]
)
def test_masked_queries_and_pairs_are_refused(name):
    pairs, group = ROWS.reshape(6, 2), [4, 4, 4]
    ranker = BMRMRanker(loss="pairwise")
    others = {
        "qid": {"qid": masked(ROWS // 3)},
        "group": {"group": masked(group, 1)},
        "query_weight": {"group": group, "query_weight": masked(np.ones(3), 1)},
        "pairs": {"pairs": masked(pairs)},
        "pair_weight": {"pairs": pairs, "pair_weight": masked(np.ones(6))},
    }[name]
    y = None if "pair" in name else LABELS
    with pytest.raises(ValueError, match="masked entries"):
        ranker.fit(X, y, **others)
    ranker.fit(X, LABELS)
    with pytest.raises(ValueError, match="y has masked entries"):
        ranker.score(X, masked(LABELS))


def test_masked_sequences_are_refused():
    crf = LinearChainCRF(0.1)
    matrices, labels = [X[:5], X[5:]], [LABELS[:5], LABELS[5:]]
    crf.fit(matrices, labels)
    tokens = np.empty((1, 2), dtype=object)
    tokens[:] = [[{"a": 1.0}, {"b": 1.0}]]
    cases = [
        ("Sequence 1 has", [matrices[0], masked(matrices[1])], labels, {}),
        ("Sequence 0 has", [masked(tokens[0], 1)], [[0, 1]], {}),
        ("X has", masked(tokens, 0), [[0, 1]], {}),
        (r"y\[1\] has", matrices, [labels[0], masked(labels[1])], {}),
        (r"y\[1\] has", matrices, [labels[0], list(masked(labels[1]))], {}),
        ("X has", masked(X), LABELS, {"lengths": [5, 7]}),
        ("y has", X, masked(LABELS), {"lengths": [5, 7]}),
        ("lengths has", X, LABELS, {"lengths": masked([5, 7], 1)}),
        ("weight has", matrices, labels, {"sample_weight": masked(np.ones(2), 1)}),
    ]
    for message, sequences, y, options in cases:
        new = LinearChainCRF(0.1)
        with pytest.raises(ValueError, match=f"{message} masked entries"):
            new.fit(sequences, y, **options)
        with pytest.raises(ValueError, match=f"{message} masked entries"):
            new.partial_fit(sequences, y, classes=[0, 1], **options)
    with pytest.raises(ValueError, match="Sequence 0 has masked entries"):
        crf.predict([masked(X)])


def test_masked_costs_are_refused():
    cost = MaskedArray([[0.0, 1.0], [1.0, 0.0]], mask=[[0, 1], [0, 0]])
    with pytest.raises(ValueError, match="label_cost has masked entries"):
        MulticlassHingeClassifier(label_cost=cost).fit(X, LABELS)


def test_masked_joint_features_are_refused():
    def partly(x, y):
        return masked(joint_feature(x, y))

    svm = StructuredSVM(partly, loss_augmented_argmax)
    with pytest.raises(ValueError, match="joint_feature of sample 0 has masked"):
        svm.fit(X, LABELS)


# Imaginary parts

FORMS = {
    "array": np.asarray,
    "list": lambda values: values.tolist(),
    "object": lambda values: values.astype(object),
    "csr": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "table": pd.DataFrame,
}


@pytest.mark.parametrize(("estimator", "y"), ESTIMATORS[:-1], ids=IDS[:-1])
@pytest.mark.parametrize("form", FORMS)
def test_imaginary_parts_are_refused(estimator, y, form):
    complex_X = FORMS[form](X + 1j)
    with pytest.raises((TypeError, ValueError), match=r"[Cc]omplex"):
        estimator.fit(complex_X, y)


@pytest.mark.parametrize("form", FORMS)
def test_imaginary_parts_of_sequences_are_refused(form):
    crf = LinearChainCRF(0.1)
    labels = [LABELS[:5], LABELS[5:]]
    matrices = [FORMS[form](part) for part in (X[:5] + 0j, X[5:] + 1j)]
    with pytest.raises((TypeError, ValueError), match=r"[Cc]omplex"):
        crf.fit(matrices, labels)
    with pytest.raises((TypeError, ValueError), match=r"[Cc]omplex"):
        crf.fit(FORMS[form](X + 1j), LABELS, lengths=[5, 7])


@pytest.mark.parametrize("sequence", [lambda f: f, dict, sparse.csr_array])
def test_imaginary_parts_of_joint_features_are_refused(sequence):
    """Numbers of any size, as an array, a dict or a sparse row."""

    def features(x, y):
        values = joint_feature(x, y) + 1j
        if sequence is dict:
            return dict(enumerate(values))
        return sequence(values[np.newaxis] if sequence is sparse.csr_array else values)

    svm = StructuredSVM(features, loss_augmented_argmax, n_joint_features=6)
    with pytest.raises(ValueError, match="joint_feature of sample 0 has complex"):
        svm.fit(X, LABELS)


def test_validation_returns_plain_arrays_as_they_are():
    dtypes = (np.float64, np.float32)
    matrices = [X.astype(kind) for kind in ("f8", "f4", ">f8", "i8", "O", "c16")]
    matrices += [np.asfortranarray(X), X[::2], X[:, :0], X[0], X.tolist()]
    matrices += [np.ma.masked_array(X), pd.DataFrame(X), sparse.csr_array(X)]
    matrices += [sparse.csr_matrix(X), sparse.csc_array(X), sparse.coo_array(X)]
    uneven = sparse.csr_array(X)
    uneven.indices = uneven.indices.astype(np.int64)
    matrices.append(uneven)
    vectors = [LABELS.astype(kind) for kind in ("f8", "f4", ">f4", "u1", "?", "O", "U")]
    vectors += [LABELS[:, None], LABELS[:-1], LABELS * np.nan, LABELS * 1j, None]
    vectors += [LABELS.tolist(), pd.Series(LABELS)]
    n_plain = 0
    for A in map(canonical_csr, matrices):
        for y in vectors:
            if y is not None and is_plain(A, y, dtypes):
                checked = check_X_y(A, y, dtype=dtypes, accept_sparse="csr")
                assert checked[0] is A
                assert np.shares_memory(checked[1], y)
                assert (checked[1].dtype, checked[1].shape) == (y.dtype, y.shape)
                n_plain += 1
    assert n_plain == 40


def test_predictions_ask_for_the_features_of_the_fit():
    model = PoissonRegressor().fit(pd.DataFrame(X, columns=list("abc")), NUMBERS)
    with pytest.warns(UserWarning, match="valid feature names"):
        model.predict(X)
    model.fit(X, NUMBERS)
    assert not hasattr(model, "feature_names_in_")
    model.predict(X)
    with pytest.raises(ValueError, match=r"2 features, but .* 3 features"):
        model.predict(X[:, :2])

"""Sequences of feature dicts, lists and matrices as rows of one sparse matrix."""

import os
import subprocess
import sys
from collections import UserDict
from itertools import chain, pairwise
from types import MappingProxyType

import numpy as np
import pandas as pd
import polars as pl
import pytest
from _door import AttributeReader
from _sequences import as_matrices, random_sequences
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import sparse

from sklearn_subqn import LinearChainCRF, MulticlassHingeClassifier
from sklearn_subqn._chains.tokens import plain_rows


def read(sequences, columns=None):
    """Return the attributes of each token, and the sequences' starts."""
    known = {} if columns is None else columns
    data = AttributeReader(known, columns is None).read(sequences)
    names = list(known)
    X = data.X.tocoo()
    tokens = [{} for _ in range(X.shape[0])]
    for i, j, value in zip(X.row, X.col, X.data, strict=True):
        tokens[i][names[j]] = tokens[i].get(names[j], 0.0) + float(value)
    return tokens, data.starts.tolist()


names = st.text("ab:", min_size=1, max_size=3)
values = st.one_of(
    names,
    st.booleans(),
    st.integers(-2, 2),
    st.floats(-3.0, 3.0, allow_nan=False, width=32),
    st.lists(names, max_size=3),
    st.dictionaries(names, st.one_of(names, st.floats(0.5, 2.0, width=32)), max_size=2),
)
tokens = st.one_of(st.dictionaries(names, values, max_size=4), st.lists(names))


def expected(token):
    """Return the attributes of a token, by the rules as they are documented."""
    found = {}

    def add(name, weight):
        found[name] = found.get(name, 0.0) + weight

    def descend(prefix, value):
        if isinstance(value, str):
            add(f"{prefix}:{value}", 1.0)
        elif isinstance(value, list):
            for name in value:
                add(f"{prefix}:{name}", 1.0)
        elif isinstance(value, dict):
            for name, inner in value.items():
                descend(f"{prefix}:{name}", inner)
        else:
            add(prefix, float(value))

    if isinstance(token, dict):
        for name, value in token.items():
            descend(name, value)
    else:
        for name in token:
            add(name, 1.0)
    return found


def nonzero(tokens):
    return [{k: v for k, v in token.items() if v} for token in tokens]


@settings(deadline=None)
@given(st.lists(st.lists(tokens, min_size=1, max_size=3), min_size=1, max_size=4))
def test_attributes_are_those_of_the_rules(sequences):
    found, starts = read(sequences)
    flat = [token for sequence in sequences for token in sequence]
    assert starts == np.cumsum([0, *map(len, sequences)]).tolist()
    wanted = nonzero(map(expected, flat))
    for ours, theirs in zip(nonzero(found), wanted, strict=True):
        assert ours == pytest.approx(theirs)
    # Nor do they depend on what was read before.
    known = {name: j for j, name in enumerate({n: 0 for t in wanted for n in t})}
    again, _ = read(sequences[::-1], known)
    flat = [token for sequence in sequences[::-1] for token in sequence]
    for ours, token in zip(again, flat, strict=True):
        assert nonzero([ours])[0] == pytest.approx(nonzero([expected(token)])[0])


@settings(deadline=None)
@given(st.lists(st.lists(tokens, min_size=1, max_size=3), min_size=1, max_size=3))
def test_attributes_are_those_of_crfsuite(sequences):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    found, _ = read(sequences)
    theirs = [
        dict(item)
        for sequence in sequences
        for item in pycrfsuite.ItemSequence(sequence).items()
    ]
    # Of an attribute that is there twice their dicts have the last weight only.
    for ours, item, token in zip(
        found, theirs, (t for s in sequences for t in s), strict=True
    ):
        wanted = expected(token)
        assert set(wanted) == set(item)
        assert nonzero([ours])[0] == pytest.approx(nonzero([wanted])[0])


def test_bytes_and_numpy_values():
    token = {b"a": b"x", "b": np.float32(0.5), "c": np.bool_(True), "d": np.int64(3)}
    assert read([[token]])[0] == [{"a:x": 1.0, "b": 0.5, "c": 1.0, "d": 3.0}]
    token = {"e": {"x", "y"}, "f": ("z",), "g": frozenset(["w"])}
    assert read([[token]])[0] == [{"e:x": 1.0, "e:y": 1.0, "f:z": 1.0, "g:w": 1.0}]


def test_the_same_name_and_value_may_be_joined_in_two_ways():
    assert read([[{"a": "b:c"}, {"a:b": "c"}, ["a:b:c"]]])[0] == 3 * [{"a:b:c": 1.0}]


def test_unknown_attributes_are_left_out():
    token = {"a": "x", "b": 0.5, "c": True, "d": ["u", "v"], "e": {"f": 2.0}}
    found, _ = read([[token, {"b": 0.25}], [["new"]]], {"b": 0, "d:v": 1})
    assert found == [{"b": 0.5, "d:v": 1.0}, {"b": 0.25}, {}]


def test_long_input_is_read_in_blocks(monkeypatch):
    from sklearn_subqn._chains import tokens

    X, _ = random_sequences(np.random.default_rng(0), n=30)
    whole = read(X)
    monkeypatch.setattr(tokens, "BLOCK_SIZE", 7)
    assert read(X) == whole


def test_sets_are_read_in_an_order_of_their_own():
    code = (
        "from sklearn_subqn._chains.tokens import AttributeReader as R; c = {}; "
        "R(c, True).read([[{'a': {'x', 'y', 'z'}}, {'u', 'v', 'w'}]]); print(list(c))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-P", "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "12"
    }
    assert len(printed) == 1


# What is refused


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        ([[{"a": 1}], []], ValueError, "Sequence 1 is empty"),
        ([], ValueError, "no sequences"),
        ([[{"a": 1}], [{"b": 1}, {"a": float("nan")}]], ValueError, "NaN or infinity"),
        ([[{"a": 1}], [{"b": 1}, {"a": np.inf}]], ValueError, "Token 1 of sequence 1"),
        ([[{"a": None}]], TypeError, "Token 0 of sequence 0 has the value None"),
        ([[{"a": [1.5]}]], TypeError, "attribute 1.5"),
        ([[{3: "x"}]], TypeError, "attribute 3"),
        ([[{"a": 1}], ["word"]], TypeError, "must be a dict or a list of attributes"),
        ([[{"a": 1}], [3.0]], TypeError, "Token 0 of sequence 1"),
        ([[{"a": 1}], {"a": 1}], TypeError, "Sequence 1 must be a list"),
        ([[{"a": 1}], 3], TypeError, "Sequence 1 must be a list"),
        (["a sentence"], TypeError, "Sequence 0 must be a list"),
        ("sentences", TypeError, "X must be a list of sequences"),
        (None, TypeError, "X must be a list of sequences"),
        ([[[0.5, 1.5]]], TypeError, "attribute 0.5"),
        ([[{"a": 1e200}]], ValueError, "Scale the features"),
        ([np.ones((2, 3)), np.ones((2, 4))], ValueError, "Sequence 1 must have shape"),
        ([np.ones((2, 3)), np.ones((0, 3))], ValueError, "Sequence 1 is empty"),
        ([np.ones((2, 3)), [{"a": 1}]], TypeError, "Sequence 1 must be a matrix"),
        ([np.full((2, 3), np.nan)], ValueError, "NaN"),
        ([np.ones((2, 3)), []], ValueError, "Sequence 1 is empty"),
        ([[], [{"a": 1}]], ValueError, "Sequence 0 is empty"),
        ([[]], ValueError, "Sequence 0 is empty"),
        ([pd.DataFrame({"a": [1.0]}), np.ones((1, 1))], TypeError, "must be a table"),
        ([np.ones((1, 1)), pd.DataFrame({"a": [1.0]})], TypeError, "must be a matrix"),
        (
            [[{"a": np.ma.masked}]],
            TypeError,
            "Token 0 of sequence 0 has the value mask",
        ),
        ([[{"a": 1j}]], TypeError, "Token 0 of sequence 0 has the value 1j"),
        ([[{"a": {"b": np.complex64(1)}}]], TypeError, "Token 0 of sequence 0"),
        (np.ones((2, 3)), ValueError, "lengths"),
        (sparse.csr_matrix(np.ones((2, 3))), ValueError, "lengths"),
        (pd.DataFrame(np.ones((2, 3))), ValueError, "lengths"),
    ],
)
def test_what_is_no_sequence_of_tokens_is_refused(X, error, message):
    y = [["a", "b"]] * (len(X) if isinstance(X, list) else 1)
    with pytest.raises(error, match=message):
        LinearChainCRF().fit(X, y)


@pytest.mark.parametrize(
    ("lengths", "error", "message"),
    [
        ([2, 2], ValueError, "add up to the number of rows of X, 5"),
        ([5, 0], ValueError, "positive, got 0 for sequence 1"),
        ([2.0, 3.0], TypeError, "integers"),
        (5, TypeError, "one-dimensional"),
    ],
)
def test_lengths_that_do_not_fit_are_refused(lengths, error, message):
    with pytest.raises(error, match=message):
        LinearChainCRF().fit(np.ones((5, 2)), list("ababa"), lengths=lengths)


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        ([["a", "b"]], ValueError, "inconsistent numbers of samples"),
        ([["a", "b"], ["a"], ["a"]], ValueError, "inconsistent numbers of samples"),
        ([["a", "b"], ["a", "b"]], ValueError, "Sequence 1 has 1 tokens, but 2 labels"),
        ([["a", "b"], "a"], TypeError, r"y\[1\] is 'a'"),
        ([["a", "b"], 3], TypeError, r"y\[1\] is 3"),
        ([["a", ["b"]], ["a"]], TypeError, "strings or numbers"),
        ([["a", None], ["a"]], ValueError, "NaN, None or NA"),
        ([["a", "a\0"], ["b"]], ValueError, r"NUL.*; got 'a\\x00'"),
        ([["a", float("nan")], ["a"]], ValueError, "NaN, None or NA"),
        ([["a", 3], ["a"]], TypeError, "all strings or all numbers"),
        ([[0.5, 1.5], [0.5]], ValueError, "strings, integers"),
        ([["a", "a"], ["a"]], ValueError, "at least 2 classes"),
        (None, ValueError, "requires y to be passed"),
        ("ab", TypeError, "list of lists"),
    ],
)
def test_labels_that_do_not_fit_are_refused(y, error, message):
    with pytest.raises(error, match=message):
        LinearChainCRF().fit([[{"a": 1}, {"b": 1}], [{"a": 1}]], y)


# The same data in other forms


@pytest.fixture(scope="module")
def problem():
    X, y = random_sequences(np.random.default_rng(1))
    return X, y, LinearChainCRF(1e-2, tol=1e-9).fit(X, y)


def weights(crf):
    return {**crf.state_features_, **crf.transition_features_}


def by_name(crf, names):
    """Return the weights of a model of columns with the names of these."""
    states = {
        (names[column], label): w for (column, label), w in crf.state_features_.items()
    }
    return {**states, **crf.transition_features_}


def test_generators_and_other_collections(problem):
    X, y, crf = problem
    forms = [
        ((iter(x) for x in X), (np.array(labels) for labels in y)),
        (tuple(map(tuple, X)), tuple(map(tuple, y))),
    ]
    array = np.empty(len(X), dtype=object)
    array[:] = X
    forms.append((array, y))
    for sequences, labels in forms:
        other = LinearChainCRF(1e-2, tol=1e-9).fit(sequences, labels)
        assert weights(other) == weights(crf)
    assert crf.predict(iter(X)) == crf.predict(X)


@pytest.mark.parametrize(
    "form",
    [
        lambda matrices: matrices,
        lambda matrices: [sparse.csr_matrix(m) for m in matrices],
        lambda matrices: [sparse.csc_array(m) for m in matrices],
        lambda matrices: [
            m if i % 2 else sparse.coo_matrix(m) for i, m in enumerate(matrices)
        ],
        lambda matrices: [pd.DataFrame(m) for m in matrices],
    ],
    ids=["dense", "csr", "csc", "mixed", "tables"],
)
def test_matrices_equal_dicts(problem, form):
    X, y, crf = problem
    names = crf.attributes_
    matrices = form(as_matrices(X, names))
    other = LinearChainCRF(1e-2, tol=1e-9).fit(matrices, y)
    assert other.n_features_in_ == len(names)
    assert by_name(other, names) == pytest.approx(weights(crf), abs=1e-6)
    assert other.predict(matrices) == crf.predict(X)
    assert other.score(matrices, y) == crf.score(X, y)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_matrix])
def test_stacked_rows_equal_matrices(problem, form):
    X, y, crf = problem
    names = crf.attributes_
    rows = form(np.vstack(as_matrices(X, names)))
    lengths, labels = list(map(len, X)), np.concatenate(y)
    other = LinearChainCRF(1e-2, tol=1e-9).fit(rows, labels, lengths=lengths)
    assert by_name(other, names) == pytest.approx(weights(crf), abs=1e-6)
    found = other.predict(rows, lengths=lengths)
    assert_array_equal(found, np.concatenate(crf.predict(X)))
    assert other.score(rows, labels, lengths=lengths) == crf.score(X, y)
    probabilities = other.predict_marginals(rows, lengths=lengths)
    theirs = [list(p.values()) for x in crf.predict_marginals(X) for p in x]
    assert probabilities == pytest.approx(np.array(theirs), abs=1e-6)


def test_tables_have_named_columns(problem):
    X, y, crf = problem
    table = pd.DataFrame(np.vstack(as_matrices(X, crf.attributes_)))
    table.columns = crf.attributes_
    lengths = list(map(len, X))
    other = LinearChainCRF(1e-2).fit(table, np.concatenate(y), lengths=lengths)
    assert_array_equal(other.feature_names_in_, crf.attributes_)
    with pytest.raises(ValueError, match="feature names"):
        other.predict(table[table.columns[::-1]], lengths=lengths)


def test_float32_matrices_give_a_float32_model(problem):
    X, y, crf = problem
    names = crf.attributes_
    matrices = [m.astype(np.float32) for m in as_matrices(X, names)]
    other = LinearChainCRF(1e-2, tol=1e-5).fit(matrices, y)
    found = by_name(other, names)
    assert all(np.float32(w) == w for w in found.values())
    assert found == pytest.approx(weights(crf), abs=2e-2)


def test_prediction_wants_what_training_had(problem):
    X, y, crf = problem
    matrices = as_matrices(X, crf.attributes_)
    with pytest.raises(TypeError, match="named attributes as in training"):
        crf.predict(matrices)
    other = LinearChainCRF(1e-2).fit(matrices, y)
    with pytest.raises(TypeError, match="columns as in training"):
        other.predict(X)
    with pytest.raises(ValueError, match="features"):
        other.predict([m[:, 1:] for m in matrices])


def test_input_is_not_changed(problem):
    X, y, _ = problem
    matrices = [sparse.csr_matrix(m) for m in as_matrices(X, problem[2].attributes_)]
    copies = [m.copy() for m in matrices]
    for m in matrices:
        for array in (m.data, m.indices, m.indptr):
            array.setflags(write=False)
    LinearChainCRF().fit(matrices, y).predict(matrices)
    for m, copy in zip(matrices, copies, strict=True):
        assert (m != copy).nnz == 0


# Sequences from pandas and polars


def test_series_of_lists_and_lists_of_series(problem):
    X, y, crf = problem
    index = [f"s{i}" for i in range(len(X))][::-1]
    forms = [
        (pd.Series(X, index=index), pd.Series(y, index=index)),
        ([pd.Series(x) for x in X], [pd.Series(labels) for labels in y]),
        ([[pd.Series(token) for token in x] for x in X], y),
        (pd.Series([pd.Series(x) for x in X]), map(pd.Series, y)),
    ]
    for sequences, labels in forms:
        labels = list(labels)
        other = LinearChainCRF(1e-2, tol=1e-9).fit(sequences, labels)
        assert weights(other) == weights(crf)
        assert other.predict(sequences) == crf.predict(X)
        assert other.score(sequences, labels) == crf.score(X, y)


def test_sentences_of_a_grouped_table():
    words = list("abcabd") * 4
    table = pd.DataFrame({"sent": np.repeat(np.arange(8), 3), "word": words})
    table["tag"] = list("XYZXYX") * 4
    groups = table.groupby("sent")
    X = groups[["word"]].apply(lambda group: group.to_dict("records"))
    y = groups["tag"].apply(list)
    crf = LinearChainCRF(1e-2).fit(X, y)
    assert weights(crf) == weights(LinearChainCRF(1e-2).fit(list(X), list(y)))
    assert crf.score(X, y) == 1.0


def test_tokens_that_are_like_dicts():
    token = {"a": "x", "b": 0.5}
    for like in (pd.Series(token), UserDict(token), MappingProxyType(token)):
        assert read([[like]])[0] == [{"a:x": 1.0, "b": 0.5}]
    # A list of names, which has an index of numbers.
    assert read([[pd.Series(["x", "y"])]])[0] == [{"x": 1.0, "y": 1.0}]
    assert read([[pd.Series(["x", "y"], index=[3, 5])]])[0] == [{"x": 1.0, "y": 1.0}]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_of_sequences_have_named_columns(problem, library):
    X, y, crf = problem
    make = pytest.importorskip(library).DataFrame
    names = list(crf.attributes_)
    tables = [
        make({name: m[:, j] for j, name in enumerate(names)})
        for m in as_matrices(X, names)
    ]
    other = LinearChainCRF(1e-2, tol=1e-9).fit(iter(tables), iter(y))
    assert by_name(other, names) == pytest.approx(weights(crf), abs=1e-6)
    assert_array_equal(other.feature_names_in_, names)
    assert other.predict(iter(tables)) == crf.predict(X)
    turned = [table[names[::-1]] for table in tables]
    for method in (other.predict, lambda t: other.partial_fit(t, y)):
        with pytest.raises(ValueError, match="must be in the same order"):
            method(turned)
    message = f"Sequence 1 must have the columns of sequence 0.*got {names[-1]!r} where"
    for method in (other.predict, lambda t: LinearChainCRF().fit(t, y[:2])):
        with pytest.raises(ValueError, match=message):
            method([tables[0], turned[1]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert other.predict(as_matrices(X, names)) == crf.predict(X)
    other.fit(as_matrices(X, names), y)
    assert not hasattr(other, "feature_names_in_")


def test_warm_starts_match_columns_of_tables_by_name(problem):
    X, y, crf = problem
    names = list(crf.attributes_)
    tables = [pd.DataFrame(m, columns=names) for m in as_matrices(X, names)]
    other = LinearChainCRF(1e-2, tol=1e-9, warm_start=True).fit(tables, y)
    best = other.objective_
    other.set_params(callback=lambda progress: True)
    other.fit([table[names[::-1]] for table in tables], y)
    assert other.history_[0].objective[0] == pytest.approx(best, rel=1e-6)


def test_tables_without_names_keep_their_order():
    tables = [pd.DataFrame(np.eye(3)), pd.DataFrame(np.eye(3))[[1, 0, 2]]]
    with pytest.raises(ValueError, match="got 1 where that has 0"):
        LinearChainCRF().fit(tables, [list("aba")] * 2)


def test_nullable_columns_of_tables():
    tables = [pd.DataFrame({"a": pd.array([0, i], dtype="Int64")}) for i in (1, 2)]
    crf = LinearChainCRF(1e-2).fit(tables, [["x", "y"]] * 2)
    assert crf.predict(tables) == [["x", "y"]] * 2
    tables[1].loc[1, "a"] = pd.NA
    with pytest.raises(ValueError, match="NaN"):
        crf.predict(tables)


# Empty sequences are labeled, but not learned from


def test_empty_sequences_have_no_labels(problem):
    X, y, crf = problem
    some = [[], X[0], (), X[1], iter(()), X[2], np.empty((0, 3))]
    some_labels = [[], y[0], [], y[1], [], y[2], []]
    again = lambda: [iter(()) if i == 4 else x for i, x in enumerate(some)]  # noqa: E731
    full = [1, 3, 5]
    for name in ("predict", "predict_marginals"):
        whole = getattr(crf, name)(X[:3])
        found = getattr(crf, name)(again())
        assert [found[i] for i in full] == whole
        assert [found[i] for i in (0, 2, 4, 6)] == [[]] * 4
    edges = crf.predict_edge_marginals(again())
    assert [len(e) for e in edges] == [max(len(s) - 1, 0) for s in some_labels]
    ranked = crf.predict_n_best(again(), 2)
    assert [ranked[i] for i in full] == crf.predict_n_best(X[:3], 2)
    # There is one labeling of no tokens, which is certain.
    assert [ranked[i] for i in (0, 2, 4, 6)] == [[([], 0.0)]] * 4
    assert crf.score(again(), some_labels) == pytest.approx(crf.score(X[:3], y[:3]))
    with pytest.raises(ValueError, match="no tokens"):
        crf.score([[], []], [[], []])
    assert crf.predict([[], []]) == [[], []]
    assert crf.predict_single([]) == []
    assert crf.predict_n_best([[]], 3) == [[([], 0.0)]]
    assert crf.predict_marginals_single([]) == []


def test_empty_matrices_have_no_labels(problem):
    X, y, crf = problem
    matrices = as_matrices(X, crf.attributes_)
    other = LinearChainCRF(1e-2).fit(matrices, y)
    d = matrices[0].shape[1]
    first, second = other.predict(matrices[:2])
    for nothing in ([], np.empty((0, d)), sparse.csr_array((0, d))):
        found = other.predict([nothing, matrices[0], nothing, matrices[1]])
        assert found == [[], first, [], second]
        assert other.predict([nothing]) == [[]]
    lengths = [0, len(first), 0, len(second)]
    rows = np.vstack(matrices[:2])
    stacked = other.predict(rows, lengths=lengths)
    assert stacked.tolist() == first + second
    assert other.predict_n_best(rows, 1, lengths=lengths)[2] == [([], 0.0)]
    with pytest.raises(ValueError, match="non-negative, got -1"):
        other.predict(rows, lengths=[-1, len(rows) + 1])
    with pytest.raises(ValueError, match="positive, got 0 for sequence 0"):
        other.fit(rows, first + second, lengths=lengths)


@pytest.mark.parametrize("make", [list, tuple])
def test_labels_that_end_with_nul_do_not_collapse(make):
    """Arrays of strings leave the NUL out; the labels would become one."""
    y = make(["x", "x\0", "y", "x"])
    with pytest.raises(ValueError, match="NUL"):
        LinearChainCRF().fit(np.eye(4), y, lengths=[2, 2])
    with pytest.raises(ValueError, match="NUL"):
        LinearChainCRF().partial_fit([[{"a": 1}]], [["x"]], classes=y)
    with pytest.raises(ValueError, match="NUL"):
        MulticlassHingeClassifier().fit(np.eye(4), y)
    y = np.array(y, dtype=object)
    with pytest.raises(ValueError, match="NUL"):
        LinearChainCRF().fit(np.eye(4), y, lengths=[2, 2])


@pytest.mark.parametrize("wide", ["indptr", "indices", "both"])
def test_index_arrays_of_any_integers(wide):
    X = sparse.csr_matrix(np.eye(4))
    for name in ("indptr", "indices") if wide == "both" else (wide,):
        setattr(X, name, getattr(X, name).astype(np.int64))
    lengths, y = [2, 2], np.array(list("abab"))
    crf = LinearChainCRF(1e-2).fit(X, y, lengths=lengths)
    same = LinearChainCRF(1e-2).fit(np.eye(4), y, lengths=lengths)
    assert weights(crf) == weights(same)
    assert_array_equal(crf.partial_fit(X, y, lengths=lengths).predict([X])[0], y)


WORDS = {
    "word": ["the", "dog", "barks", "a", "cat", "the", "cat", "sleeps"],
    "capital": [True, False, False, True, False, False, False, False],
    "length": [3, 3, 5, 1, 3, 3, 3, 6],
}
WORD_TAGS = ["D", "N", "V", "D", "N", "D", "N", "V"]
WORD_LENGTHS = [3, 2, 2, 1]


@pytest.mark.parametrize("kind", ["pandas", "category", "polars"])
def test_rows_of_tables_with_words_are_tokens(kind):
    frame = pd.DataFrame(WORDS)
    starts = np.cumsum([0, *WORD_LENGTHS])
    parts = list(pairwise(starts.tolist()))
    dicts = [frame[a:b].to_dict("records") for a, b in parts]
    tags = [WORD_TAGS[a:b] for a, b in parts]
    expected = LinearChainCRF(alpha=0.1).fit(dicts, tags)
    table = pl.DataFrame(WORDS) if kind == "polars" else frame
    if kind == "category":
        table = table.astype({"word": "category"})
    one = LinearChainCRF(alpha=0.1).fit(table, WORD_TAGS, lengths=WORD_LENGTHS)
    several = [table[a:b] for a, b in parts]
    other = LinearChainCRF(alpha=0.1).fit(several, tags)
    for model in (one, other):
        assert list(model.attributes_) == list(expected.attributes_)
        assert "word:dog" in model.attributes_
        assert not hasattr(model, "feature_names_in_")
        assert dict(model.state_features_) == dict(expected.state_features_)
        assert model.predict(several) == expected.predict(dicts)
        found = model.predict(table, lengths=WORD_LENGTHS)
        assert found.tolist() == [*chain.from_iterable(expected.predict(dicts))]
        # Words may be missing from what is labeled.
        assert model.predict([table[["length"]]]) == expected.predict(
            [[{"length": n} for n in WORDS["length"]]]
        )
    labels = pl.Series(tags) if kind == "polars" else pd.Series(tags)
    other = LinearChainCRF(alpha=0.1).fit(several, labels)
    assert dict(other.state_features_) == dict(one.state_features_)


def test_rows_of_tables_with_words_are_checked():
    frame = pd.DataFrame(WORDS)
    twice = frame[["word", "word"]]
    with pytest.raises(ValueError, match="two columns of the name 'word'"):
        LinearChainCRF().fit(twice, WORD_TAGS, lengths=WORD_LENGTHS)
    missing = frame.assign(word=["the", None, *WORDS["word"][2:]])
    with pytest.raises((TypeError, ValueError), match="Token 1 of sequence 0"):
        LinearChainCRF().fit(missing, WORD_TAGS, lengths=WORD_LENGTHS)
    with pytest.raises(ValueError, match="add up to the number of rows"):
        LinearChainCRF().fit(frame, WORD_TAGS, lengths=[3, 3])
    numbers = LinearChainCRF().fit(frame[["length"]], WORD_TAGS, lengths=WORD_LENGTHS)
    assert_array_equal(numbers.feature_names_in_, ["length"])


def test_single_sequences_of_all_kinds_are_labeled_as_among_others():
    rng = np.random.default_rng(0)
    words = ["a", "b", "c:d", "e"]

    def token(i):
        word = words[rng.integers(4)]
        number = float(rng.normal())
        plain = {"word": word, "c": "d:x"}
        kinds = [
            plain,
            {**plain, "upper": bool(i % 2), "length": i, "size": number, "zero": 0.0},
            {"size": -number, "not known": 2.0, "word": "z", "length": 1},
            [f"word:{word}", "length", "z"],
            {**plain, "near": ["a", "b"], "inner": {"word": word}},
            {"word": np.str_(word), "size": np.float64(number)},
            [],
        ]
        return kinds[rng.integers(len(kinds))]

    X = [[token(i) for i in range(rng.integers(1, 6))] for _ in range(120)]
    y = [[f"{rng.integers(3)}" for _ in x] for x in X]
    crf = LinearChainCRF(1e-3, tol=1e-2).fit(X[:60], y[:60])
    assert [crf.predict_single(x) for x in X] == crf.predict(X)
    assert crf.predict_single(tuple(X[0])) == crf.predict(X)[0]
    read = [plain_rows(x, crf._columns) for x in X]
    assert 20 < sum(rows is not None for rows in read) < 110
    for x, rows in zip(X, read, strict=True):
        if rows is not None:
            matrix = crf._read([x], None).X
            data = rows[0] if len(rows[0]) else np.ones(len(rows[1]))
            plain = sparse.csr_matrix((data, *rows[1:]), shape=matrix.shape)
            np.testing.assert_array_equal(plain.toarray(), matrix.toarray())
    for wrong in ({"size": np.nan}, {"size": 1e200}, {5: "a"}, {"word": object()}, 5):
        with pytest.raises((TypeError, ValueError)):
            crf.predict_single([{"word": "a"}, wrong])

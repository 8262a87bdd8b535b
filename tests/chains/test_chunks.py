"""Scores of labelings of sequences: the rules of conlleval, scorers, errors."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score

from sklearn_subqn import LinearChainCRF
from sklearn_subqn.crf import CRF
from sklearn_subqn.metrics import (
    chunks_of,
    flat_scorer,
    sequence_f1,
    sequence_f1_score,
    sequence_report,
)


def ends(before, kind_before, label, kind):
    """conlleval's endOfChunk, with last labels and single ones of IOBES."""
    pairs = {"BB", "BS", "BO", "IB", "IS", "IO", "EE", "EI", "EO"}
    return (
        before in "ES"
        or before + label in pairs
        or (before != "O" and kind_before != kind)
    )


def starts(before, kind_before, label, kind):
    """conlleval's startOfChunk."""
    pairs = {"EE", "EI", "SE", "SI", "OE", "OI"}
    return (
        label in "BS"
        or before + label in pairs
        or (label != "O" and kind_before != kind)
    )


def chunks_by_conlleval(labels):
    found, first = [], None
    before, kind_before = "O", ""
    for at, label in enumerate([*labels, "O"]):
        prefix, _, kind = label.partition("-")
        prefix = {"L": "E", "U": "S"}.get(prefix, prefix)
        if first is not None and ends(before, kind_before, prefix, kind):
            found.append((kind_before, first, at))
            first = None
        if prefix != "O" and starts(before, kind_before, prefix, kind):
            first = at
        before, kind_before = prefix, kind
    return found


@pytest.mark.parametrize(
    ("labels", "chunks"),
    [
        # IOB2 and IOB1 of two persons side by side, and a place.
        ("B-P I-P B-P O B-L", [("P", 0, 2), ("P", 2, 3), ("L", 4, 5)]),
        ("I-P I-P B-P O I-L", [("P", 0, 2), ("P", 2, 3), ("L", 4, 5)]),
        # BILOU and IOBES.
        ("B-P L-P U-P O U-L", [("P", 0, 2), ("P", 2, 3), ("L", 4, 5)]),
        ("B-P E-P S-P O S-L", [("P", 0, 2), ("P", 2, 3), ("L", 4, 5)]),
        # Without types.
        ("B I O I B", [("", 0, 2), ("", 3, 4), ("", 4, 5)]),
        # Labels that break the schemes: other types, insides without a begin.
        ("B-P I-L I-L", [("P", 0, 1), ("L", 1, 3)]),
        ("O I-P E-P I-P", [("P", 1, 3), ("P", 3, 4)]),
        ("E-P L-P", [("P", 0, 1), ("P", 1, 2)]),
        # Types may have hyphens.
        ("B-a-b I-a-b B-a-c", [("a-b", 0, 2), ("a-c", 2, 3)]),
        ("O O", []),
        ("", []),
    ],
)
def test_chunks_of_known_labels(labels, chunks):
    assert chunks_of(labels.split()) == chunks
    assert chunks_by_conlleval(labels.split()) == chunks


PREFIXES = ["B", "I", "E", "S", "L", "U"]
LABELS = ["O", *(f"{prefix}-{kind}" for prefix in PREFIXES for kind in ("X", "Y"))]


def test_chunks_of_any_labels_are_those_of_conlleval():
    rng = np.random.default_rng(0)
    for _ in range(2000):
        labels = rng.choice(LABELS, size=rng.integers(1, 9)).tolist()
        assert chunks_of(labels) == chunks_by_conlleval(labels), labels


def labelings(seed, labels=LABELS, n=40):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 12, size=n)
    y = [rng.choice(labels, size=m).tolist() for m in lengths]
    z = [[a if rng.random() < 0.8 else rng.choice(labels) for a in s] for s in y]
    return y, [[str(a) for a in s] for s in z]


def test_scores_are_those_of_seqeval():
    metrics = pytest.importorskip("seqeval.metrics")
    # Of IOB2 and IOBES, the schemes that it reads without being given their names.
    for seed, some in enumerate([LABELS[:5], LABELS[:9]]):
        y, z = labelings(seed, some)
        for average in ("micro", "macro", "weighted"):
            score = sequence_f1_score(y, z, average=average)
            assert score == pytest.approx(metrics.f1_score(y, z, average=average))
            assert 0.1 < score < 0.9
        report = sequence_report(y, z)
        assert report["micro"]["precision"] == pytest.approx(
            metrics.precision_score(y, z)
        )
        assert report["micro"]["recall"] == pytest.approx(metrics.recall_score(y, z))


def test_a_case_by_hand():
    # Three of five true chunks are among four predicted ones.
    y = [["B-P", "I-P", "O", "B-L"], ["B-L", "O", "B-P", "B-P"]]
    z = [["B-P", "I-P", "O", "O"], ["B-L", "I-L", "B-P", "B-P"]]
    assert sequence_f1_score(y, z) == pytest.approx(2 * 3 / (5 + 4))
    assert sequence_f1_score(y, z, average=None) == {"L": 0.0, "P": 1.0}
    assert sequence_f1_score(y, z, average="macro") == 0.5
    assert sequence_f1_score(y, z, average="weighted") == pytest.approx(3 / 5)
    assert sequence_report(y, z)["micro"] == {
        "precision": 3 / 4,
        "recall": 3 / 5,
        "f1": pytest.approx(2 / 3),
        "support": 5.0,
    }
    assert list(sequence_report(y, z)) == ["L", "P", "micro"]


def test_nothing_to_find_scores_zero():
    for average in ("micro", "macro", "weighted"):
        assert sequence_f1_score([["O"]], [["O"]], average=average) == 0.0
        assert sequence_f1_score([["O"]], [["B-X"]], average=average) == 0.0
    assert sequence_f1_score([], [], average=None) == {}


def test_weights_repeat_sequences_and_lengths_divide_arrays():
    y, z = labelings(3)
    weights = np.arange(len(y)) % 3
    repeated = [
        [s for s, w in zip(each, weights, strict=True) for _ in range(w)]
        for each in (y, z)
    ]
    expected = sequence_f1_score(*repeated)
    assert sequence_f1_score(y, z, sample_weight=weights) == pytest.approx(expected)
    lengths = list(map(len, y))
    flat = [np.concatenate(each) for each in (y, z)]
    assert sequence_f1_score(*flat, lengths=lengths) == sequence_f1_score(y, z)
    objects = np.empty(len(y), dtype=object)
    objects[:] = [np.array(s) for s in y]
    assert sequence_f1_score(objects, z) == sequence_f1_score(y, z)


@pytest.mark.parametrize("label", ["NOUN", "X-PER", "", 3, "O-PER", None])
def test_other_labels_are_refused(label):
    with pytest.raises(ValueError, match=r"no label of chunks.*take flat_scorer"):
        sequence_f1_score([["O", label]], [["O", "O"]])


def test_what_does_not_match_is_refused():
    with pytest.raises(ValueError, match="Sequence 1 has 2 true labels, but 1"):
        sequence_f1_score([["O"], ["O", "O"]], [["O"], ["O"]])
    with pytest.raises(ValueError, match="inconsistent numbers"):
        sequence_f1_score([["O"]], [])
    with pytest.raises(TypeError, match="a list for each sequence"):
        sequence_f1_score(["O", "B-X"], ["O", "B-X"])
    with pytest.raises(ValueError, match="'weighted' or None; got 'binary'"):
        sequence_f1_score([["O"]], [["O"]], average="binary")


WORDS = ["ann", "bob", "in", "rome", "lives"]
TAGS = {"ann": "B-PER", "bob": "B-PER", "in": "O", "rome": "B-LOC", "lives": "O"}


def sentences(n=24):
    rng = np.random.default_rng(0)
    words = [rng.choice(WORDS, size=rng.integers(1, 5)).tolist() for _ in range(n)]
    noisy = [[TAGS[w] if rng.random() < 0.9 else "O" for w in s] for s in words]
    return [[{"word": w} for w in s] for s in words], noisy


@pytest.mark.parametrize("crf", [LinearChainCRF(), CRF()], ids=["crf", "drop-in"])
def test_scorers_in_searches(crf):
    X, y = sentences()
    name = "alpha" if isinstance(crf, LinearChainCRF) else "c2"
    scoring = {
        "chunks": sequence_f1,
        "types": make_scorer(sequence_f1_score, average="macro"),
        "tokens": flat_scorer("f1_macro"),
        "accuracy": flat_scorer("accuracy"),
    }
    grid = {name: [1e-2, 10.0]}
    search = GridSearchCV(crf, grid, scoring=scoring, refit="chunks", cv=2).fit(X, y)
    scores = cross_val_score(crf.set_params(**search.best_params_), X, y, cv=2)
    results, best = search.cv_results_, search.best_index_
    assert results["mean_test_accuracy"][best] == pytest.approx(scores.mean())
    assert results["mean_test_chunks"][best] > results["mean_test_chunks"][1 - best]
    assert results["mean_test_types"].shape == (2,)
    found = search.predict(X)
    flat = [np.concatenate(list(map(list, each))) for each in (y, found)]
    expected = f1_score(*flat, average="macro")
    scorer = pickle.loads(pickle.dumps(scoring["tokens"]))
    assert scorer(search, X, y) == pytest.approx(expected)
    assert sequence_f1(search, X, y) == sequence_f1_score(y, found)
    assert repr(scorer) == "flat_scorer('f1_macro')"


def test_a_scorer_made_of_the_scorer_is_the_same():
    """scikit-learn makes scorers of anything that can be called."""
    X, y = sentences()
    model = LinearChainCRF(0.1).fit(X, y)
    again = make_scorer(sequence_f1)
    assert again(model, X, y) == sequence_f1(model, X, y)
    assert sequence_f1(model, X, y) == sequence_f1_score(y, model.predict(X))
    copied = pickle.loads(pickle.dumps(sequence_f1))
    assert copied(model, X, y) == sequence_f1(model, X, y)


def test_scores_of_labels_that_are_missing_from_the_truth():
    class Constant:
        def predict(self, X):
            return [["B"] * len(x) for x in X]

    score = flat_scorer("f1_macro")(Constant(), [[0, 0], [0]], [["A", "A"], ["A"]])
    assert score == 0.0

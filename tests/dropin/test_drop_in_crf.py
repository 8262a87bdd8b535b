"""Conditional random fields with sklearn-crfsuite's parameters, against CRFsuite."""

import inspect
import pickle
from itertools import chain

import numpy as np
import pytest
from sklearn.base import clone

from sklearn_subqn import LinearChainCRF
from sklearn_subqn.crf import CRF


def sentences(n=60, seed=0):
    """Return tagged sentences in which both words and neighbors matter."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        labels, tokens = [], []
        label = "O"
        for _ in range(rng.integers(3, 9)):
            label = rng.choice(
                ["O", "B", "I"] if label in ("B", "I") else ["O", "B"],
            )
            noise = rng.integers(12)
            word = f"{label.lower()}{noise % 4}" if noise > 2 else f"x{noise}"
            tokens.append({"bias": 1.0, "word": word, "title": bool(noise % 2)})
            labels.append(str(label))
        X.append(tokens)
        y.append(labels)
    return X, y


def crfsuite():
    return pytest.importorskip("sklearn_crfsuite").CRF


def losses(model, X, y):
    """Return the sum of the negative log probabilities of labelings."""
    # The chain rule, by a model with log probabilities of all labelings.
    found = model.predict_n_best(X, 10**6)
    return -sum(
        next(log for labels, log in ranked if labels == truth)
        for ranked, truth in zip(found, y, strict=True)
    )


@pytest.mark.parametrize(
    "params",
    [
        {"c2": 0.1},
        {"c1": 0.5, "c2": 0.1},
        {"c2": 0.1, "all_possible_states": True, "all_possible_transitions": True},
        {"c2": 0.5, "min_freq": 5},
        {"algorithm": "lbfgs", "c1": 1.0, "c2": 0.0},
    ],
    ids=str,
)
def test_weights_are_those_of_crfsuite(params):
    X, y = sentences()
    ours = CRF(**params, epsilon=1e-8).fit(X, y)
    theirs = crfsuite()(**params, epsilon=1e-9, delta=1e-12, max_iterations=10**4).fit(
        X, y
    )
    for name in ("state_features_", "transition_features_"):
        one, other = dict(getattr(ours, name)), dict(getattr(theirs, name))
        for key in one.keys() | other.keys():
            assert one.get(key, 0.0) == pytest.approx(other.get(key, 0.0), abs=2e-3)
    assert ours.predict(X).tolist() == theirs.predict(X).tolist()
    marginals = ours.predict_marginals(X[:5]), theirs.predict_marginals(X[:5])
    for one, other in zip(*(chain.from_iterable(m) for m in marginals), strict=True):
        assert one == pytest.approx(other, abs=1e-3)
    assert ours.score(X, y) == pytest.approx(
        np.mean(np.concatenate(ours.predict(X)) == np.concatenate(y))
    )
    assert sorted(ours.classes_) == sorted(theirs.classes_)


def test_the_objective_is_that_of_crfsuite():
    X, y = sentences(12)
    crf = CRF(c1=0.3, c2=0.2).fit(X, y)
    weights = [*crf.state_features_.values(), *crf.transition_features_.values()]
    value = losses(crf.model_, X, y)
    value += 0.3 * np.abs(weights).sum() + 0.2 * np.square(weights).sum()
    assert crf.objective_ == pytest.approx(value, rel=1e-9)
    assert 0.0 <= crf.dual_gap_ <= 1e-3 * value
    assert crf.training_log_.last_iteration["loss"] == pytest.approx(value, rel=1e-6)
    exact = CRF(c1=0.3, c2=0.2, epsilon=1e-8).fit(X, y)
    assert crf.objective_ - crf.dual_gap_ <= exact.objective_ * (1 + 1e-12)


def test_the_relation_to_the_estimator_of_this_package():
    X, y = sentences()
    crf = CRF(c2=0.1, epsilon=1e-6).fit(X, y)
    model = LinearChainCRF(2 * 0.1 / len(X), tol=1e-6).fit(X, y)
    assert crf.objective_ == pytest.approx(len(X) * model.objective_)
    assert dict(crf.transition_features_) == model.transition_features_


def test_generators_and_data_to_score():
    X, y = sentences()
    crf = CRF().fit((x for x in X), (labels for labels in y), X[:5], y[:5])
    assert crf.dev_score_ == crf.score(X[:5], y[:5])
    crf.fit(X, y)
    assert not hasattr(crf, "dev_score_")
    with pytest.raises(ValueError, match="X_dev and y_dev belong together"):
        crf.fit(X, y, X[:5])


@pytest.mark.parametrize("algorithm", ["ap", "pa", "arow"])
def test_online_algorithms_become_the_structured_hinge(algorithm):
    X, y = sentences()
    with pytest.warns(UserWarning, match="is replaced by the minimum"):
        crf = CRF(algorithm=algorithm, c=0.5).fit(X, y)
    model = LinearChainCRF(1.0 / (0.5 * len(X)), loss="hinge").fit(X, y)
    assert crf.objective_ == pytest.approx(len(X) * model.objective_)
    assert crf.score(X, y) > 0.85


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"keep_tempfiles": True}, "keep_tempfiles=True has no effect"),
        ({"num_memories": 3}, "num_memories=3 has no effect"),
        ({"gamma": 1.0}, "gamma=1.0 has no effect"),
        ({"model_filename": "m"}, "pickle the estimator"),
        ({"algorithm": "l2sgd", "c1": 0.1}, "c1=0.1 has no effect with algorithm"),
        ({"c": 2.0}, "c=2.0 has no effect with algorithm='lbfgs'"),
    ],
)
def test_what_has_no_effect_is_named(params, message):
    X, y = sentences(10)
    with pytest.warns(UserWarning, match=message) as caught:
        CRF(**params).fit(X, y)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"algorithm": "sgd"}, "Did you mean 'l2sgd'"),
        ({"c2": -1.0}, "c2 must be"),
        ({"c2": 0.0}, "c1 and c2 must not both be zero"),
        ({"max_iterations": 0.5}, "max_iter"),
    ],
)
def test_values_are_checked(params, message):
    X, y = sentences(10)
    with pytest.raises((TypeError, ValueError), match=message):
        CRF(**params).fit(X, y)


def test_no_sequences_and_one_label():
    with pytest.raises(ValueError, match="X has no sequences"):
        CRF().fit([], [])
    with pytest.raises(ValueError, match="only one class: 'O'"):
        CRF().fit([[{"w": "a"}, {"w": "b"}]], [["O", "O"]])


def test_attributes_of_the_files_of_crfsuite():
    X, y = sentences()
    crf = CRF()
    with pytest.raises(AttributeError, match="not fitted yet"):
        _ = crf.size_
    crf.fit(X, y)
    assert crf.size_ == len(pickle.dumps(crf.model_))
    sparse = CRF(c1=1.0, c2=0.1).fit(X, y)
    assert set(sparse.attributes_) == {name for name, _ in sparse.state_features_}
    assert sparse.num_attributes_ < crf.num_attributes_
    with pytest.raises(AttributeError, match="transition_features_"):
        crf.tagger_.info()
    assert crf.training_log_.last_iteration["num"] == crf.n_iter_


def test_parameters_are_those_of_sklearn_crfsuite():
    ours, theirs = (inspect.signature(kind).parameters for kind in (CRF, crfsuite()))
    assert list(ours) == list(theirs)
    assert all(ours[name].default == theirs[name].default for name in ours)
    assert clone(CRF(c1=0.1)).get_params()["c1"] == 0.1


def script(CRF):
    """Do what a script does that was written for sklearn-crfsuite."""
    from collections import Counter

    from sklearn.model_selection import RandomizedSearchCV

    X, y = sentences(80)
    search = RandomizedSearchCV(
        CRF(algorithm="lbfgs", max_iterations=100, all_possible_transitions=True),
        {"c1": [0.01, 0.1], "c2": [0.01, 0.1]},
        cv=3,
        n_iter=2,
        random_state=0,
    ).fit(X[:60], y[:60])
    crf = pickle.loads(pickle.dumps(search.best_estimator_))
    labels = [label for label in crf.classes_ if label != "O"]
    predicted = crf.predict(X[60:])
    right = [
        a == b
        for s, t in zip(predicted, y[60:], strict=True)
        for a, b in zip(s, t, strict=True)
    ]
    best = Counter(crf.transition_features_).most_common(1)[0][0]
    words = [attribute for (attribute, _), w in crf.state_features_.items() if w > 0.1]
    return (
        sorted(labels),
        np.mean(right),
        best,
        set(words) >= {"word:b3"},
        search.best_score_,
    )


def test_a_script_with_one_import_changed():
    ours, theirs = script(CRF), script(crfsuite())
    assert ours[0] == theirs[0]
    assert ours[1] == pytest.approx(theirs[1], abs=0.02)
    assert ours[2:4] == theirs[2:4]
    assert ours[4] == pytest.approx(theirs[4], abs=0.02)

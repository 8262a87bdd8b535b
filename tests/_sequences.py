"""Generated sequences of tokens, and enumeration of their labelings."""

import itertools

import numpy as np


def random_sequences(rng, n=20, labels="abc", n_words=12, longest=6):
    """Return feature dicts and labels that depend on words and on the label before."""
    k = len(labels)
    by_word = rng.normal(size=(n_words, k))
    by_label = rng.normal(size=(k, k))
    X, y = [], []
    for _ in range(n):
        x, tags, before = [], [], None
        for _ in range(rng.integers(1, longest + 1)):
            word = int(rng.integers(n_words))
            scores = by_word[word] + (0.0 if before is None else by_label[before])
            before = int(np.argmax(scores + rng.gumbel(size=k)))
            x.append({"word": f"w{word}", "even": word % 2 == 0, "size": word / 4})
            tags.append(labels[before])
        X.append(x)
        y.append(tags)
    return X, y


def attributes_of(token):
    """Return the attributes of a flat token with their weights."""
    found = {}
    for name, value in token.items():
        if isinstance(value, str):
            found[f"{name}:{value}"] = 1.0
        elif value:
            found[name] = float(value)
    return found


def as_matrices(X, names):
    """Return sequences of tokens as dense matrices with these columns."""
    columns = {name: j for j, name in enumerate(names)}
    out = []
    for x in X:
        matrix = np.zeros((len(x), len(columns)))
        for t, token in enumerate(x):
            for name, weight in attributes_of(token).items():
                matrix[t, columns[name]] = weight
        out.append(matrix)
    return out


def score_of(crf, x, labels):
    """Return the score of a labeling of tokens, from the weights as they are told."""
    states, transitions = crf.state_features_, crf.transition_features_
    total = 0.0
    for token, label in zip(x, labels, strict=True):
        for name, weight in attributes_of(token).items():
            total += weight * states.get((name, label), 0.0)
    for pair in itertools.pairwise(labels):
        total += transitions.get(pair, 0.0)
    return total


def all_labelings(crf, x, allowed=lambda labels: True):
    """Return the allowed labelings of tokens and their scores, the best first."""
    labels = crf.classes_.tolist()
    found = [
        (score_of(crf, x, labeling), list(labeling))
        for labeling in itertools.product(labels, repeat=len(x))
        if allowed(labeling)
    ]
    return sorted(found, key=lambda pair: -pair[0])

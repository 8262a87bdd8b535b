"""Find names in generated sentences with a conditional random field.

Sentences are made of templates with names of people and places, some of which go by the
same words; only those around them show which is which. Prints the proven distance from
the optimum, chunks found, what the model has learned, and how sure it is.
"""

import numpy as np

from sklearn_subqn import LinearChainCRF

PEOPLE = ["Paris Jones", "Jordan", "Ann Lee", "Victoria", "Sidney Brown", "Tom"]
PLACES = ["Paris", "Jordan", "New York", "Victoria", "Sydney", "San Jose Valley"]
TEMPLATES = [
    "{person} lives in {place} .",
    "We met {person} in {place} yesterday .",
    "The train to {place} was late , said {person} .",
    "{person} and {person} moved from {place} to {place} .",
    "Ask {person} about it .",
]


def make_sentence(rng):
    """Return the words of a sentence and their BIO tags."""
    words, tags = [], []
    for part in rng.choice(TEMPLATES).split():
        if part == "{person}":
            name, kind = rng.choice(PEOPLE).split(), "PER"
        elif part == "{place}":
            name, kind = rng.choice(PLACES).split(), "LOC"
        else:
            name, kind = [part], None
        words += name
        tags += (
            ["O"] if kind is None else [f"B-{kind}"] + [f"I-{kind}"] * (len(name) - 1)
        )
    return words, tags


def features(words):
    """Return a dict for each word: itself, its case, and its neighbors."""
    padded = ["START", *words, "END"]
    return [
        {
            "bias": True,
            "word": word.lower(),
            "capital": word.istitle(),
            "before": padded[t].lower(),
            "after": padded[t + 2].lower(),
        }
        for t, word in enumerate(words)
    ]


def chunks(words, tags):
    """Return the names with their types."""
    found = []
    for word, tag in zip(words, tags, strict=True):
        if tag.startswith("B-"):
            found.append([tag[2:], word])
        elif tag.startswith("I-"):
            found[-1].append(word)
    return [f"{' '.join(name)} ({kind})" for kind, *name in found]


def main():
    """Fit, and print what was found."""
    rng = np.random.default_rng(0)
    sentences = [make_sentence(rng) for _ in range(600)]
    X = [features(words) for words, _ in sentences]
    y = [tags for _, tags in sentences]
    crf = LinearChainCRF(alpha=1e-3, transition_constraints="BIO")
    crf.fit(X[:400], y[:400])
    gap = crf.dual_gap_ / crf.objective_
    print(
        f"objective {crf.objective_:.5f}, proven to be within {gap:.1e} of the optimum"
    )
    print(f"tokens right: {crf.score(X[400:], y[400:]):.1%}")

    words = "Victoria and Jordan moved from Victoria to San Jose Valley ."
    words = words.split()
    x = features(words)
    print("found:", ", ".join(chunks(words, crf.predict_single(x))))
    for labels, log_probability in crf.predict_n_best([x], 2)[0]:
        print(f"  {np.exp(log_probability):.3f}  {' '.join(labels)}")

    print("largest weights:")
    weights = crf.state_features_
    for pair in sorted(weights, key=weights.get, reverse=True)[:4]:
        print(f"  {weights[pair]:.2f}  {' -> '.join(pair)}")

    more = [make_sentence(rng) for _ in range(50)]
    crf.partial_fit([features(words) for words, _ in more], [tags for _, tags in more])
    print(f"after 50 more sentences: {crf.score(X[400:], y[400:]):.1%}")


if __name__ == "__main__":
    main()

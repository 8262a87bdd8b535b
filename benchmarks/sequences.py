"""Tagged sentences: readers, feature templates, and F-scores of chunks.

The three tasks of Yu 2009, section 6.2. Files have a token a line with its tag last,
and an empty line after each sentence, compressed by gzip.
"""

from __future__ import annotations

import gzip
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sklearn_subqn._chains.tokens import AttributeReader

Sentence = list[list[str]]
Features = list[dict[str, Any]]
Groups = list[tuple[int, ...]]


class Task(NamedTuple):
    """Sentences as feature dicts and tags, for training and test."""

    X: list[Features]
    y: list[list[str]]
    X_test: list[Features]
    y_test: list[list[str]]


def read(path: Path) -> list[Sentence]:
    """Return the sentences of a file, each a list of tokens with their columns."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        blocks = file.read().split("\n\n")
    sentences = ([line.split() for line in block.splitlines()] for block in blocks)
    return [sentence for sentence in sentences if sentence]


# Templates


def neighbors(values: list[str], name: str, groups: Groups) -> list[Any]:
    """Return for each token the values of groups of neighbors, joined, with names.

    Places before the first and after the last token have values of their own.
    """
    n = len(values)
    names = [f"{name}{','.join(map(str, group))}" for group in groups]

    def value(place: int) -> str:
        if 0 <= place < n:
            return values[place]
        return f"_B{place}" if place < 0 else f"_B+{place - n + 1}"

    return [
        [
            (label, "/".join([value(t + k) for k in group]))
            for label, group in zip(names, groups, strict=True)
        ]
        for t in range(n)
    ]


AROUND: Groups = [(-2,), (-1,), (0,), (1,), (2,)]
PAIRS: Groups = [(-2, -1), (-1, 0), (0, 1), (1, 2)]
TRIPLES: Groups = [(-2, -1, 0), (-1, 0, 1), (0, 1, 2)]


def window(sentence: Sentence) -> Features:
    """Return words and tags at most two tokens away, and pairs of such tags."""
    return _words_and_tags(sentence, AROUND, [*AROUND, *PAIRS])


def chunking(sentence: Sentence) -> Features:
    """Return the features of CRF++'s template for chunking."""
    tags = [*AROUND, *PAIRS, *TRIPLES]
    return _words_and_tags(sentence, [*AROUND, (-1, 0), (0, 1)], tags)


def _words_and_tags(sentence: Sentence, words: Groups, tags: Groups) -> Features:
    rows = zip(
        neighbors([token[0] for token in sentence], "w", words),
        neighbors([token[1] for token in sentence], "t", tags),
        strict=True,
    )
    return [dict(a + b) for a, b in rows]


GREEK = (
    "alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|omicron|"
    "pi|rho|sigma|tau|upsilon|phi|chi|psi|omega"
)

# Settles 2004, Table 1.
ORTHOGRAPHY = {
    name: re.compile(pattern)
    for name, pattern in {
        "initial capital": r"[A-Z].*",
        "initial capital, then letters": r"[A-Z][a-z].*",
        "capitals": r"[A-Z]+",
        "mixed case": r"[A-Za-z]*([a-z][A-Z]|[A-Z][A-Z]+[a-z])[A-Za-z]*",
        "character": r".",
        "digit": r"[0-9]",
        "two digits": r"[0-9][0-9]",
        "digits": r"[0-9]+",
        "has a digit": r".*[0-9].*",
        "real number": r"[-0-9]+[.,]+[0-9.,]+",
        "letters and digits": r"[A-Za-z0-9]*([A-Za-z][0-9]|[0-9][A-Za-z])[A-Za-z0-9]*",
        "has a dash": r".*-.*",
        "begins with a dash": r"-.*",
        "ends with a dash": r".*-",
        "Roman number": r"[IVXDLCM]+",
        "Greek letter": f"({GREEK})",
        "has a Greek letter": f".*({GREEK}).*",
        "punctuation": r"[,.;:?!]",
    }.items()
}


@cache
def _forms(word: str) -> dict[str, Any]:
    """Return the orthographic features of a word."""
    found: dict[str, Any] = {
        name: True for name, form in ORTHOGRAPHY.items() if form.fullmatch(word)
    }
    shape = re.sub("[A-Z]", "A", re.sub("[a-z]", "a", re.sub("[0-9]", "0", word)))
    shape = re.sub("[^Aa0]", "_", shape)
    found["shape"] = shape
    found["brief shape"] = re.sub(r"(.)\1+", r"\1", shape)
    for size in (3, 4):
        if len(word) > size:
            found[f"prefix {size}"] = word[:size]
            found[f"suffix {size}"] = word[-size:]
    return found


def biomedical(sentence: Sentence) -> Features:
    """Return words in lower case and orthography (Settles 2004), at most two away."""
    words = [token[0] for token in sentence]
    lower = [word.lower() for word in words]
    forms = [_forms(word) for word in words]
    return [
        dict(near)
        | {str(k): forms[t + k] for k in range(-2, 3) if 0 <= t + k < len(words)}
        for t, near in enumerate(neighbors(lower, "w", [*AROUND, (0, 1)]))
    ]


# Tasks


def noun_phrases(label: str) -> str:
    """Return the label of base noun phrases."""
    return label if label.endswith("-NP") else "O"


def load(data_dir: str, name: str) -> Task:
    """Return a task with its features: ``base_np``, ``chunking``, and so on."""
    file, template, relabel = TASKS[name]
    parts: list[Any] = []
    for part in ("train", "test"):
        sentences = read(Path(data_dir, f"{file}.{part}.txt.gz"))
        parts.append([template(sentence) for sentence in sentences])
        parts.append([[relabel(token[-1]) for token in s] for s in sentences])
    return Task(*parts)


TASKS: dict[str, tuple[str, Callable[[Sentence], Features], Callable[[str], str]]] = {
    "base_np_window": ("conll2000", window, noun_phrases),
    "base_np": ("conll2000", chunking, noun_phrases),
    "jnlpba": ("jnlpba", biomedical, str),
    "bc2gm": ("bc2gm", biomedical, str),
}


# F-scores


def chunks(labels: Iterable[str]) -> set[tuple[int, int, str]]:
    """Return the chunks of BIO labels as (first token, end, type).

    As conlleval has it: a chunk also begins with "I-X" where "O" or a label of another
    type is before it.
    """
    found = set()
    first, kind = 0, ""
    labels = [*labels, "O"]
    for t, label in enumerate(labels):
        prefix, _, this = label.partition("-")
        if kind and (prefix != "I" or this != kind):
            found.add((first, t, kind))
            kind = ""
        if this and not kind:
            first, kind = t, this
    return found


def f_scores(truth: list[list[str]], found: list[list[str]]) -> dict[str, float]:
    """Return F of chunks by their type in percent, and of all of them as ``""``.

    A chunk is right if its bounds and its type are (Sang and Buchholz 2000).
    """
    n_right: Counter[str] = Counter()
    n_true: Counter[str] = Counter()
    n_found: Counter[str] = Counter()
    for a, b in zip(truth, found, strict=True):
        wanted, given = chunks(a), chunks(b)
        for counter, these in (
            (n_right, wanted & given),
            (n_true, wanted),
            (n_found, given),
        ):
            counter.update(kind for *_, kind in these)
            counter[""] += len(these)
    return {
        kind: 200.0 * n_right[kind] / (n_true[kind] + n_found[kind])
        for kind in sorted(n_true | n_found)
    }


class Rows:
    """Training sentences of a task as a matrix, the first ``n`` or all of them.

    ``seconds`` is the processor time that reading them took.
    """

    def __init__(self, task: Task, n: int | None = None) -> None:
        columns: dict[str, int] = {}
        start = time.process_time()
        data = AttributeReader(columns, True).read(task.X[:n])
        self.seconds = time.process_time() - start
        self.X, self.lengths = data.X, data.lengths
        self.y = np.concatenate(task.y[:n])
        self._test = AttributeReader(columns, False).read(task.X_test)
        self._y_test = task.y_test

    def f_score(self, crf: Any) -> float:
        """Return F of all chunks of the test sentences."""
        found = crf.predict(self._test.X, lengths=self._test.lengths)
        parts = np.split(found, np.cumsum(self._test.lengths)[:-1])
        return f_scores(self._y_test, [part.tolist() for part in parts])[""]

"""Defaults of classifiers beside scikit-learn's: unseen rows, and memory beside X.

python -m benchmarks default_classes --data-dir DIR

Each default of ours is fitted to data as they are, scikit-learn's default of the same
model to data as they are and, if they are dense, standardized: the better one counts.
Scores are the accuracy of hinges and the log loss of others, of rows that no fit has
seen. Memory is how far the peak of a process of its own rises during the fit.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import _generated
import common
import datasets
import numpy as np
from _harness import Benchmark
from scipy import sparse
from sklearn import datasets as generators
from sklearn import linear_model, svm
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

import sklearn_subqn as subqn

NAME = "default_classes"


class Model(NamedTuple):
    """A default of ours, and those of scikit-learn by whether there are two classes."""

    ours: Callable[[], Any]
    theirs: Callable[[bool], list[Any]]
    has_probabilities: bool = True


def _sparse_logistic(two: bool) -> list[Any]:
    solver = "liblinear" if two else "saga"
    return [linear_model.LogisticRegression(l1_ratio=1.0, solver=solver)]


MODELS = {
    "hinge": Model(
        subqn.SubLBFGSLinearSVC,
        lambda two: [svm.LinearSVC(loss="hinge", random_state=0)],
        has_probabilities=False,
    ),
    "joint hinge": Model(
        subqn.MulticlassHingeClassifier,
        lambda two: [svm.LinearSVC(multi_class="crammer_singer", random_state=0)],
        has_probabilities=False,
    ),
    "log loss": Model(
        lambda: subqn.L1LogisticOWLQN(l1_ratio=0.0),
        lambda two: [linear_model.LogisticRegression()],
    ),
    "log loss, L1": Model(subqn.L1LogisticOWLQN, _sparse_logistic),
}

#: Rows to fit and their labels, others to predict and theirs.
Split = tuple[Any, Any, Any, Any]


def _split(X: Any, y: Any, n: int) -> Split:
    rows = np.random.default_rng(0).permutation(len(y))
    fit, test = rows[:n], rows[n : n + 6000]
    return X[fit], y[fit], X[test], y[test]


def _real(name: str, n: int, change: Callable[[Any], Any] | None = None) -> Any:
    def load(data_dir: str) -> Split:
        if name in ("a9a", "covtype", "rcv1_ccat"):
            _, X, y = datasets.load(name, data_dir)
        else:
            X, y = datasets.load_joint(name, data_dir)
        return _split(X if change is None else change(X), y, n)

    return load


def _shipped(load: Callable[..., Any], n: int) -> Any:
    return lambda data_dir: _split(*load(return_X_y=True), n)


def _generated_set(n: int, make: Callable[..., Any], *args: Any) -> Any:
    return lambda data_dir: _split(*make(*args), n)


def _tf_idf(X: Any) -> Any:
    counts = sparse.csr_matrix(X)
    return sparse.csr_matrix(TfidfTransformer(sublinear_tf=True).fit_transform(counts))


def _topics(n: int, n_columns: int, k: int, seed: int) -> tuple[Any, Any]:
    return _generated.topics(n, n_columns, k, seed)


def _categories(n: int, sizes: tuple[int, ...], seed: int) -> tuple[Any, Any]:
    """Return indicators of categories of which few are frequent, and numbers."""
    rng = np.random.default_rng(seed)
    codes = [np.minimum((2 * rng.pareto(0.8, n)).astype(int), k - 1) for k in sizes]
    scores = sum(rng.normal(size=k)[c] for k, c in zip(sizes, codes, strict=True))
    numbers = rng.normal(size=(n, 5))
    scores = 0.6 * scores + numbers @ rng.normal(size=5) * 0.5
    one_hot = [
        sparse.csr_matrix((np.ones(n), (np.arange(n), c)), shape=(n, k))
        for k, c in zip(sizes, codes, strict=True)
    ]
    X = sparse.csr_matrix(sparse.hstack([*one_hot, sparse.csr_matrix(numbers)]))
    return X, (scores + rng.logistic(size=n) > scores.mean()).astype(int)


def _claims(n: int, seed: int) -> tuple[Any, Any]:
    policies = _generated.insurance(n, seed)
    return policies.X, (policies.n_claims > 0).astype(int)


def _table(n: int, d: int, informative: int, flip: float, k: int) -> tuple[Any, Any]:
    X, y = generators.make_classification(
        n,
        d,
        n_informative=informative,
        n_classes=k,
        flip_y=flip,
        n_clusters_per_class=1,
        random_state=0,
    )
    return X * 10.0 ** np.random.default_rng(0).integers(-3, 4, d), y


SETS: dict[str, Callable[[str], Split]] = {
    "news20": _real("news20", 2500),
    "news20, tf-idf": _real("news20", 2500, _tf_idf),
    "rcv1_ccat": _real("rcv1_ccat", 8000),
    "rcv1_ccat, few rows": _real("rcv1_ccat", 1000),
    "topics, 12 classes": _generated_set(2000, _topics, 8000, 20_000, 12, 0),
    "topics, tf-idf": lambda data_dir: _split(
        *(lambda X, y: (_tf_idf(X), y))(*_topics(7000, 20_000, 12, 1)), 1500
    ),
    "clicks": _generated_set(20_000, _generated.clicks, 30_000, 1 << 18, 1),
    "churn, 300 cities": _generated_set(6000, _categories, 12_000, (300, 5, 4), 0),
    "categories, 3,225 levels": _generated_set(
        5000, _categories, 11_000, (2000, 800, 300, 100, 20, 5), 3
    ),
    "insurance": _generated_set(20_000, _claims, 26_000, 0),
    "a9a": _real("a9a", 10_000),
    "covtype": _real("covtype", 4000),
    "letter": _real("letter", 4000),
    "breast_cancer": _shipped(generators.load_breast_cancer, 300),
    "table of own units": _generated_set(1000, _table, 7000, 30, 8, 0.1, 3),
    "noisy table": _generated_set(1500, _table, 7500, 40, 5, 0.4, 2),
    "ten classes": _generated_set(4000, _generated.classes, 10_000, 100, 10, 0),
    "genes": _generated_set(200, _generated.genes, 1200, 3000, 0),
    "usps": _real("usps", 3000),
    "mnist": _real("mnist", 2000),
    "digits": _shipped(generators.load_digits, 900),
}


def run(model: Any, data: Split, has_probabilities: bool) -> dict[str, float]:
    """Return score and memory, of a process of its own."""
    X, y, X_test, y_test = data
    # The peak begins anew, at the size of the process: that of its parent is inherited.
    Path("/proc/self/clear_refs").write_text("5")
    before = _peak()
    model.fit(X, y)
    memory = _peak() - before
    if has_probabilities:
        p = model.predict_proba(X_test).clip(1e-15, 1.0)
        score = log_loss(
            y_test, p / p.sum(axis=1)[:, np.newaxis], labels=model.classes_
        )
    else:
        score = float(np.mean(model.predict(X_test) == y_test))
    return {"score": float(score), "memory": memory / 2**10}


def _peak() -> int:
    """Return the largest size so far of this process in KiB, as Linux tells it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(each.split()[1]) for each in lines if each.startswith("VmHWM"))


def apart(*args: Any) -> dict[str, float]:
    """Return what ``run`` does in a new process."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(run, args)


def measure(name: str, args: Any, results: common.Results) -> None:
    X, y, X_test, y_test = data = SETS[name](args.data_dir)
    forms = [data]
    if not sparse.issparse(X):
        scaler = StandardScaler().fit(X)
        forms.append((scaler.transform(X), y, scaler.transform(X_test), y_test))
    size = X.data.nbytes + X.indices.nbytes if sparse.issparse(X) else X.nbytes
    two = len(np.unique(y)) == 2
    for kind, model in MODELS.items():
        if kind == "joint hinge" and two:
            continue
        ours = apart(model.ours(), data, model.has_probabilities)
        theirs = [
            apart(peer, form, model.has_probabilities)
            for peer in model.theirs(two)
            for form in forms
        ]
        better = min if model.has_probabilities else max
        best = better(theirs, key=lambda each: each["score"])
        results.add(
            f"{name} | {kind}",
            data=name,
            shape=list(X.shape),
            classes=len(np.unique(y)),
            megabytes=size / 2**20,
            model=kind,
            ours=ours,
            theirs=best,
        )
        print(name, kind, ours, best, flush=True)


def render(results: dict[str, Any]) -> str:
    known = {(r["data"], r["model"]): r for r in results["rows"]}
    rows = []
    for name in SETS:
        own = [known[name, kind] for kind in MODELS if (name, kind) in known]
        if own:
            n, d = own[0]["shape"]
            head = f"{name}, {n} x {d}, {own[0]['classes']} classes"
            cells = [_cell(known.get((name, kind)), kind) for kind in MODELS]
            rows.append([head, *cells])
    return common.markdown_table(["data", *MODELS], rows) + "\n"


def _cell(row: dict[str, Any] | None, kind: str) -> str:
    if row is None:
        return "–"
    ours, theirs = row["ours"], row["theirs"]
    behind = theirs["score"] - ours["score"] > 0.01
    if MODELS[kind].has_probabilities:
        behind = ours["score"] > 1.03 * theirs["score"]
    score = f"**{ours['score']:.3f}**" if behind else f"{ours['score']:.3f}"
    memory = f"{ours['memory']:.0f} ({theirs['memory']:.0f}) MB"
    return f"{score} ({theirs['score']:.3f}); {memory}"


BENCHMARK = Benchmark(NAME, __doc__, measure, render, list(SETS), each=True)

if __name__ == "__main__":
    BENCHMARK.run()

"""Processor seconds of the README's sentences, each beside scikit-learn in one process.

python benchmarks/readme.py [--parts probabilities million text] prints the default
LogisticRegression on a9a, its probabilities beside those of the optimum; the hinge on a
million rows beside LinearSVC; and the log loss on sparse rows beside lbfgs.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import datasets
import numpy as np
from _race import timed
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import sklearn_subqn.linear_model
from sklearn_subqn import L1LogisticOWLQN, SubLBFGSLinearSVC, dual_gap


def fitted(model: Any, X: Any, y: Any) -> tuple[Any, float]:
    """Return a fitted model and its processor seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return timed(lambda: model.fit(X, y))


def probabilities(data_dir: str | None) -> None:
    """Print by how much probabilities are off, and the ratio of processor times."""
    X, y = datasets.load("a9a", data_dir)[1:]
    own, peer = sklearn_subqn.linear_model.LogisticRegression, LogisticRegression
    for C in (1.0, 10.0, 100.0):
        exact = peer(C=C, solver="newton-cholesky", tol=1e-12).fit(X, y)
        truth = exact.predict_proba(X)
        seconds: dict[Any, list[float]] = {own: [], peer: []}
        off = {}
        for _ in range(5):
            for kind in (own, peer):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    model, taken = timed(lambda kind=kind, C=C: kind(C=C).fit(X, y))
                    seconds[kind].append(taken)
                error = np.abs(model.predict_proba(X) - truth).max()
                off[kind] = f"off by {error:.2g} with {len(caught)} warnings"
        ratio = np.median(np.divide(seconds[own], seconds[peer]))
        print(f"a9a, C={C:g}: scikit-learn's {off[peer]}")
        print(f"  ours {off[own]}, in {ratio:.2f} of the processor time", flush=True)


def race(X: Any, y: Any, own: Any, peer: Callable[[int], Any], limits: Any) -> None:
    """Print seconds of ours to a proven gap, of a peer and how far it came."""
    model, seconds = fitted(own, X, y)
    print(
        f"  ours {seconds:.2f} s, proven gap {model.dual_gap_ / model.objective_:.1e}"
    )
    for limit in limits:
        other, seconds = fitted(peer(limit), X, y)
        gap, value = dual_gap(other, X, y, tol=1e-4, return_objective=True)
        above = f"{100.0 * gap / (value - gap):.2g} % above the optimum"
        name = f"{type(other).__name__}, at most {limit} iterations"
        print(f"  {name}: {seconds:.2f} s, {above}", flush=True)


def million(data_dir: str | None) -> None:
    """Print the hinge on a million rows of 100 columns."""
    X, y = datasets.load("tall:1000000x100", data_dir)[1:]
    X = np.asarray(X, dtype=np.float64)
    alpha = 1e-6  # C = 1, the default
    print(f"hinge, {X.shape[0]} x {X.shape[1]}, alpha {alpha:g}")
    svc = {"loss": "hinge", "C": 1.0 / (alpha * len(X)), "fit_intercept": False}
    race(
        X,
        y,
        SubLBFGSLinearSVC(alpha, fit_intercept=False),
        lambda n: LinearSVC(**svc, max_iter=n, random_state=0),
        (20, 60),
    )


def text(data_dir: str | None) -> None:
    """Print the log loss on sparse rows."""
    X, y = datasets.load("text:500000x200000x60", data_dir)[1:]
    alpha = 2e-6  # C = 1, the default
    print(f"log loss, {X.shape[0]} x {X.shape[1]}, {X.nnz} entries, alpha {alpha:g}")
    race(
        X,
        y,
        L1LogisticOWLQN(alpha, l1_ratio=0.0),
        lambda n: LogisticRegression(tol=1e-4 if n == 100 else 1e-12, max_iter=n),
        (100, 20, 30, 40, 50),  # the default first
    )


PARTS = {"probabilities": probabilities, "million": million, "text": text}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--data-dir", default=datasets.data_dir_default())
    options = parser.parse_args()
    for part in options.parts:
        PARTS[part](options.data_dir)

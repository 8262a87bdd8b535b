"""Attacks on ``dual_gap`` of scikit-learn's models, by what these minimize."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from _formats import FORMATS, snapshot
from _formulas import ONE_SCORE, PENALTIES, exact_scores, long
from sklearn.linear_model import SGDClassifier

from sklearn_subqn import dual_gap

LOSSES = ("hinge", "squared_hinge", "modified_huber", "log_loss")


def check_foreign(seed: int) -> list[str]:
    """Return what is wrong with the objective of an ``SGDClassifier``.

    It balances classes by their counts, whatever the weights of the rows are.
    """
    rng = np.random.default_rng([13, seed])
    n, d = int(rng.integers(4, 20)), int(rng.integers(1, 5))
    X, y = rng.normal(size=(n, d)), rng.integers(0, 2, size=n)
    stored = list(FORMATS.values())[seed % len(FORMATS)](X)
    before = snapshot(stored)
    y[:2] = 0, 1
    weights = 10.0 ** rng.uniform(-2, 2, size=n)
    name, penalty = str(rng.choice(LOSSES)), str(rng.choice(["l2", "l1"]))
    balanced = None if rng.random() < 0.5 else "balanced"
    model: Any = SGDClassifier(
        name,
        penalty=penalty,
        alpha=10.0 ** rng.uniform(-4, 0),
        class_weight=balanced,
        fit_intercept=bool(rng.random() < 0.7),
        max_iter=20,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, sample_weight=weights)
        _, objective = dual_gap(model, stored, y, weights, return_objective=True)
    if snapshot(stored) != before:
        return [f"SGD {name} {penalty}: dual_gap changed X"]
    s = long(weights)
    if balanced:
        s = s * (n / (2 * long(np.bincount(y))))[y]
    z = exact_scores(X, model.coef_, model.intercept_)[:, 0]
    risk = ONE_SCORE[name](z, long(2 * y - 1), s / s.sum())
    alpha = long(model.alpha) * n / s.sum()
    exact = alpha * PENALTIES[penalty](long(model.coef_[0])) + risk
    if abs(objective - exact) > 1e-12 * exact:
        return [f"SGD {name} {penalty} {balanced}: {objective!r} for {exact!r}"]
    return []

"""L1-regularized logistic problems that several test files share."""

from __future__ import annotations

from functools import partial

import numpy as np
from _door import (
    BINARY_LOSSES,
    L2,
    MULTINOMIAL_LOSS,
    SOLVERS,
    CutBundle,
    Design,
    Objective,
    Options,
    Risk,
    Start,
    Stopping,
    elastic_net,
    run,
)
from sklearn.datasets import make_classification


def data(n=120, d=12, *, n_classes=2, seed=0):
    X, y = make_classification(
        n, d, n_informative=min(d, 6), n_classes=n_classes, random_state=seed
    )
    return X, y


def problem(X, y, *, alpha=0.02, l1_ratio=1.0, weights=None, fit_intercept=True):
    """The objective for labels 0, 1, ..., as the estimator makes it."""
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    k = len(np.unique(y))
    multinomial = k > 2
    design = Design(
        X, fit_intercept=fit_intercept, n_outputs=k if multinomial else None
    )
    targets = y.astype(float) if multinomial else np.where(y > 0, 1.0, -1.0)
    loss = MULTINOMIAL_LOSS if multinomial else BINARY_LOSSES["log_loss"]
    penalty = elastic_net(design.n_coef, l1_ratio)
    return Objective(
        Risk(design, loss, targets, weights / weights.sum()), penalty, alpha
    )


def solve(objective, solver="cd", *, tol=1e-9, max_iter=5000):
    spec, start = SOLVERS[solver], Start(np.zeros(objective.n_params))
    bundle = None
    if isinstance(objective.regularizer, L2) and not spec.proves:
        bundle = partial(CutBundle, objective, 60)
    return run(
        spec.start(objective, start, Options()),
        Stopping(tol),
        max_iter=max_iter,
        bundle=bundle,
        points_prove=bundle is None and not spec.proves,
    )

"""Problems of rows in one place and in three parts that several test files share."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from _door import (
    BINARY_LOSSES,
    L2,
    MULTINOMIAL_LOSS,
    Design,
    DesignOfParts,
    DualLoss,
    ElasticNet,
    KindsOfLabels,
    LabelPairs,
    MultivariateSquared,
    Objective,
    Parts,
    Risk,
    RiskOfParts,
    Simplex,
    ThresholdDesign,
    regression_losses,
)
from scipy import sparse

from sklearn_subqn._core.losses import CumulativeLogit
from sklearn_subqn.losses import (
    FBeta,
    Groups,
    LogisticRocArea,
    Ndcg,
    OrdinalLogistic,
    RocArea,
    SquaredRocArea,
)

N, D, K = 60, 5, 3

POSITIVE = {"poisson": "counts", "gamma": "positive", "tweedie": "counts"}

# name -> loss, targets from a generator, number of scores
LOSSES = {
    **{name: (loss, "signs", None) for name, loss in BINARY_LOSSES.items()},
    **{
        name: (loss, POSITIVE.get(name, "numbers"), None)
        for name, loss in regression_losses().items()
    },
    "multiclass": (DualLoss(Simplex(1.0 - np.eye(K))), "classes", K),
    "softmax": (MULTINOMIAL_LOSS, "class numbers", K),
    "multilabel": (DualLoss(KindsOfLabels(np.ones((2, K)))), "labels", K),
    "label pairs": (DualLoss(LabelPairs(np.ones((K, K)))), "labels", K),
    "multivariate": (
        DualLoss(MultivariateSquared(np.diag([1.0, 2.0, 3.0]))),
        "vectors",
        K,
    ),
    "ordinal": (OrdinalLogistic().loss, "ordered", K),
    "cumulative": (DualLoss(CumulativeLogit(5.0 * np.arange(K)[::-1])), "ordered", K),
}
each_loss = pytest.mark.parametrize("name", LOSSES)
each_format = pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
each_intercept = pytest.mark.parametrize("fit_intercept", [True, False])


def targets_of(kind, rng, n):
    return {
        "signs": lambda: np.where(rng.random(n) < 0.4, 1.0, -1.0),
        "numbers": lambda: 3.0 * rng.standard_t(3, size=n),
        "counts": lambda: rng.poisson(2.0, n).astype(float),
        "positive": lambda: rng.gamma(2.0, size=n),
        "classes": lambda: rng.integers(0, K, n),
        "class numbers": lambda: rng.integers(0, K, n).astype(float),
        "labels": lambda: (rng.random((n, K)) < 0.5).astype(np.uint8),
        "vectors": lambda: rng.normal(size=(n, K)),
        "ordered": lambda: rng.integers(0, K + 1, n).astype(float),
    }[kind]()


def pair(
    name, convert=np.asarray, fit_intercept=True, *, n=N, alpha=0.05, l1_ratio=None
):
    """Return the objective of rows in one place and in three parts."""
    loss, kind, k = LOSSES[name]
    rng = np.random.default_rng(3)
    y = targets_of(kind, rng, n)
    X = rng.normal(size=(n, D)) * (rng.random((n, D)) < 0.7)
    if kind == "signs":
        X += 0.3 * y[:, np.newaxis]
    # No two subsets weigh the same, so that minimizers are unique.
    weights = rng.random(n) * (rng.random(n) < 0.9)
    weights /= weights.sum()

    def risk(rows):
        if name in ("ordinal", "cumulative"):
            design = ThresholdDesign(convert(X[rows]), k)
        else:
            design = Design(convert(X[rows]), fit_intercept=fit_intercept, n_outputs=k)
        return Risk(design, loss, y[rows], weights[rows])

    whole = risk(slice(n))
    q = whole.design.n_coef
    penalty = L2(q) if l1_ratio is None else ElasticNet(q, l1_ratio)
    parts = RiskOfParts([risk(rows) for rows in thirds(n)])
    return [Objective(risk, penalty, alpha) for risk in (whole, parts)]


def thirds(n):
    """Return slices of unequal thirds of n rows, and one of none."""
    bounds = [0, n // 9, 2 * n // 3, 2 * n // 3, n]
    return [slice(a, b) for a, b in pairwise(bounds)]


def pair_that_compares_rows(name, n=N):
    """Return the like for a loss that takes the scores of all rows together."""
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(n, D)), np.where(rng.random(n) < 0.4, 1.0, -1.0)
    X += 0.4 * y[:, np.newaxis]
    groups = Groups(np.arange(n) % 4)
    losses = {
        "roc": RocArea(),
        "squared": SquaredRocArea(groups),
        "logistic": LogisticRocArea(groups),
        "ndcg": Ndcg(groups=groups),
        "f_beta": FBeta(1.0),
    }
    if name == "ndcg":
        y = rng.integers(0, 4, n).astype(float)
    designs = [Design(X[rows], fit_intercept=False) for rows in thirds(n)]
    risks = [
        Risk(design, losses[name], y, np.full(n, 1.0 / n))
        for design in (Design(X, fit_intercept=False), DesignOfParts(Parts(designs)))
    ]
    return [Objective(risk, L2(D), 0.05) for risk in risks]

"""Survival problems made to break proofs: ties, strata, late entries, offsets."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from _adversary import Case, Problem, Terms, _names, compare, problem
from _formulas import LONG, PENALTIES, exact_scores, long, sizes_of_scores

from sklearn_subqn import CoxRegression
from sklearn_subqn._core.losses import Cox, DualLoss


def _risk(z: Any, y: Any, s: Any, strata: Any, offset: Any, ties: str) -> Any:
    """Return the partial likelihood's half mean deviance, event by event."""
    z, total = z + offset, LONG(0)
    entry, time, event = y.T
    event = (event == 1) & (s > 0)
    for g in np.unique(strata):
        for t in np.unique(time[event & np.equal(strata, g)]):
            mine = np.equal(strata, g)
            at_risk = mine & (time >= t) & (entry < t) & (s > 0)
            dead = mine & event & (time == t)
            largest = z[at_risk].max()
            size = np.where(at_risk, s * np.exp(np.where(at_risk, z - largest, 0)), 0)
            d, W = int(dead.sum()), s[dead].sum()
            for k in range(d):
                cut = LONG(k) / d if ties == "efron" else LONG(0)
                # The sum without what is taken off, so that nothing cancels.
                left = size[at_risk & ~dead].sum() + (1 - cut) * size[dead].sum()
                total += W / d * np.log(left / (W * (1 - cut)))
            total += (s[dead] * (largest - z[dead])).sum()
    return total


def _terms(ties: str, penalty: str, coef: Any, intercept: Any, p: Problem) -> Terms:
    strata, offset = p.groups, long(p.more)
    z = exact_scores(p.X, coef, 0)[:, 0]
    sizes = sizes_of_scores(p.X, coef, 0)[:, 0] + np.abs(offset)
    s = p.shares
    risk = partial(_risk, y=p.y, s=s, strata=strata, offset=offset, ties=ties)
    # Logarithms of sums, with those of weights, and scores cancel.
    unit = 20.0 + 4.0 * float(np.abs(z + offset).max() + np.abs(offset).max())
    return Terms(PENALTIES[penalty](coef), z, sizes, risk, unit)


def _make(ties: str, penalty: str, p: Problem, solver: str) -> Any:
    return CoxRegression(p.alpha, ties=ties, penalty=penalty, solver=solver)


def _fit(model: Any, p: Problem, X: Any) -> Any:
    return model.fit(X, p.y, p.weights, strata=p.groups, offset=p.more)


def _case(ties: str, penalty: str) -> Case:
    loss = DualLoss(Cox(np.ones(1), np.ones(1), ties))
    return Case(
        f"cox-{ties}-{penalty}",
        "counts",
        _names(CoxRegression._solvers, loss, penalty),
        partial(_make, ties, penalty),
        partial(_terms, ties, penalty),
        fit=_fit,
        parameters=lambda model: (model.coef_, 0.0),
    )


CASES = [
    _case(ties, penalty)
    for ties in ("efron", "breslow")
    for penalty in ("l2", "l1", "elasticnet")
]


def check_survival(seed: int) -> list[str]:
    """Return what is wrong with the fits of one problem, by three of the solvers."""
    p = problem(seed, "counts")
    rng = p.rng
    case = CASES[rng.integers(len(CASES))]
    n = len(p.X)
    time = rng.integers(1, rng.integers(2, 2 * n + 2), size=n).astype(float)
    event = rng.random(n) < rng.random()
    event[rng.integers(n)] = True
    late = rng.random() < 0.4
    entry = time - rng.integers(1, 6, size=n) if late else np.full(n, -1.0)
    strata = rng.integers(0, 3, size=n) if rng.random() < 0.4 else np.zeros(n, int)
    offset = np.zeros(n)
    if rng.random() < 0.3:
        offset = 10.0 ** rng.uniform(-3, 2) * rng.normal(size=n)
    y = np.column_stack([entry, time, event])
    p = p._replace(y=y, groups=strata, more=offset, fit_intercept=False)
    case = case._replace(solvers=rng.permutation(case.solvers)[:3].tolist())
    tol = float(rng.choice([1e-3, 1e-6, 1e-10]))
    return compare(case, p, tol, int(rng.choice([5, 30, 300])))

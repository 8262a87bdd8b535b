"""Survival problems made to break proofs: ties, strata, late entries, offsets."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from _adversary import (
    Case,
    Problem,
    Terms,
    _names,
    compare,
    first,
    fitted,
    judged,
    problem,
)
from _door import Cox, DualLoss
from _formulas import LONG, PENALTIES, exact_scores, long, sizes_of_scores

from sklearn_subqn import CoxRegression


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
    loss = DualLoss(Cox(ties))
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


def _better(loss: Any, X: Any, y: Any, w: Any, s: Any) -> Any:
    """Return coefficients with a smaller risk, by Newton's steps and by long ones."""

    def risk(w: Any) -> float:
        return float(loss.value(X @ w, y, s))

    for _ in range(40):
        sums = loss.sums_at(X @ w, y, s)
        hessian = X.T @ np.column_stack([sums.apply(x) for x in X.T.copy()])
        gradient = X.T @ loss.subgradient(X @ w, y, s)
        ridges = np.trace(hessian) * np.array([0.0, 1e-12, 1e-6])
        trials = [w * LONG(1 + 10.0**-k) for k in range(4)]
        for ridge in ridges:
            inverse = np.linalg.pinv(hessian + ridge * np.eye(len(w)), rcond=1e-15)
            step = inverse @ gradient
            trials += [w - size * step for size in (1e3, 10.0, 1.0, 0.25, 0.02, 1e-4)]
        best = min(trials, key=lambda trial: risk(trial.astype(float)))
        if not risk(best.astype(float)) < risk(w):
            return w
        w = best.astype(float)
    return w


def check_likelihood(seed: int) -> list[str]:
    """Return what is wrong with the bounds of a partial likelihood without a penalty.

    Features may be far from zero, nearly equal, in unequal units, or huge in one row;
    weights may be tiny, and the order of events nearly that of a feature.
    """
    rng = np.random.default_rng([41, seed])
    n, d = int(rng.integers(4, 25)), int(rng.integers(1, 4))
    X, kind = rng.normal(size=(n, d)), rng.integers(5)
    if kind == 1:
        X += 10.0 ** rng.uniform(0, 6)
    elif kind == 2:
        X[:, -1] = X[:, 0] + 10.0 ** rng.uniform(-12, -3) * rng.normal(size=n)
    elif kind == 3:
        X *= 10.0 ** rng.uniform(-6, 6, size=d)
    elif kind == 4:
        X[rng.integers(n), 0] *= 10.0 ** rng.uniform(1, 8)
    time = rng.integers(1, rng.integers(3, 2 * n + 2), size=n).astype(float)
    if rng.random() < 0.5:
        order = X[:, 0] / max(np.abs(X[:, 0]).max(), 1.0)
        time = np.ceil(10.0 * np.exp(0.3 * rng.normal(size=n) - order))
    event = rng.random(n) < 0.7
    event[0] = True
    weights = np.ones(n)
    if rng.random() < 0.6:
        weights = 10.0 ** rng.uniform(-16.0 * rng.random(), 0, size=n)
    y = np.column_stack([np.full(n, -1.0), time, event])
    none = np.zeros(n)
    p = Problem(X, y, weights, 0.0, False, rng, groups=none, more=none)
    ties = ("efron", "breslow")[rng.integers(2)]
    case, fits = _case(ties, "l2"), []
    for tol in (1e-3, 1e-8):
        fits.append((f"alpha=0 {tol}", fitted(case, p, "auto", tol=tol)))
    wrong = judged(case, p, fits)
    for name, model in fits:
        if model is not None:
            targets = np.column_stack([y, none, none])
            s = weights / weights.sum()
            w = _better(Cox(ties), X, targets, model.coef_, s)
            terms = case.terms(long(w), LONG(0), p)
            best = terms.value(0.0) + terms.own_rounding()
            bound = first(model.objective_) - first(model.dual_gap_)
            if bound > best + np.spacing(abs(first(model.objective_))):
                wrong.append(f"{case.name} {name}: {bound!r} above {best!r}")
    return wrong

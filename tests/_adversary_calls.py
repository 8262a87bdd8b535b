"""Attacks on what is not one plain fit.

No penalty, starts far away, several quantiles, gaps of paths, own functions and losses.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from _adversary import FAMILIES, REGRESSION, Case, fitted, judged, problem, problem_of
from _door import BINARY_LOSSES
from _formulas import LONG, elastic, exact_scores, long, squares

from sklearn_subqn import BMRMRegressor, BMRMRegressorCV, losses, minimize

# Kinds of one row of coefficients, with the penalties that all methods know.
_PLAIN = [
    case
    for case in FAMILIES[0]
    if case.name.split("-")[0] in (*BINARY_LOSSES, *REGRESSION)
    and case.name.endswith(("-l2", "-l1"))
]
_TOO_EXTREME = "too extreme", "overflow", "not finite"


def _drawn(rng: Any, seed: int) -> tuple[Case, Any]:
    case = _PLAIN[rng.integers(len(_PLAIN))]
    return case, problem_of(case, seed)._replace(warm=None)


def check_unpenalized(seed: int) -> list[str]:
    """Return what is wrong without a penalty: alpha or all factors of it are zero."""
    case, p = _drawn(np.random.default_rng([23, seed]), seed)
    free = case._replace(
        make=lambda p, solver: case.make(p, "auto").set_params(
            penalty_factor=np.zeros(p.X.shape[1])
        ),
    )
    without = p._replace(alpha=0.0)
    fits = []
    for tol, max_iter in ((1e-2, 5), (1e-3, 100), (1e-8, 1000)):
        options = {"tol": tol, "max_iter": max_iter}
        fits.append((f"alpha=0 {tol}", fitted(case, without, "auto", **options)))
        fits.append((f"factors=0 {tol}", fitted(free, p, "auto", **options)))
    return judged(case, without, fits)


def check_starts(seed: int) -> list[str]:
    """Return what is wrong with fits that start far from the optimum."""
    rng = np.random.default_rng([29, seed])
    case, p = _drawn(rng, seed)
    start = 10.0 ** rng.uniform(-3, 9) * rng.normal(size=p.X.shape[1])
    if rng.random() < 0.5:
        p = p._replace(X=p.X + 10.0 ** rng.uniform(0, 4) * np.abs(p.X).max())
    if case.name.startswith(("exponential", "poisson", "gamma", "tweedie")):
        start = start / np.abs(start).max() / (np.abs(p.X).max() or 1.0)
    begun = case._replace(
        fit=lambda model, p, X: model.fit(
            X, p.y, sample_weight=p.weights, coef_init=start
        )
    )
    fits = []
    for tol, max_iter in ((1e-2, 5), (1e-6, 300)):
        options = {"tol": tol, "max_iter": max_iter}
        fits.append((f"begun {tol}", fitted(begun, p, "auto", **options)))
        fits.append((f"cold {tol}", fitted(case, p, "auto", **options)))
    return judged(case, p, fits)


def check_quantiles(seed: int) -> list[str]:
    """Return what is wrong with fits of several quantiles at once."""
    p = problem(seed, "real")._replace(warm=None)
    levels = [0.1, 0.5, 0.9]
    penalty = ("l2", "l1")[seed % 2]
    wrong, bounds, best = [], [], np.full(3, np.inf, LONG)
    for tol, max_iter in ((1e-2, 5), (1e-6, 300)):
        model: Any = BMRMRegressor(
            p.alpha,
            loss="quantile",
            quantile=levels,
            penalty=penalty,
            fit_intercept=p.fit_intercept,
            tol=tol,
            max_iter=max_iter,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model.fit(p.stored(p.X), p.y, sample_weight=p.weights)
            except ValueError as error:
                if any(words in str(error) for words in _TOO_EXTREME):
                    return []
                raise
        free = np.broadcast_to(model.intercept_, 3)
        z, y = exact_scores(p.X, model.coef_, free), long(p.y)
        for i, level in enumerate(map(LONG, levels)):
            w, r = long(model.coef_[i]), y - z[:, i]
            omega = squares(w) if penalty == "l2" else elastic(w, 1)
            risk = p.shares @ np.maximum(level * r, (level - 1) * r)
            exact = LONG(p.alpha) * omega + risk
            sizes = np.abs(long(p.X)) @ np.abs(w) + np.abs(y) + abs(free[i])
            rounding = 1e3 * np.finfo(float).eps * (abs(exact) + p.shares @ sizes)
            if abs(exact - model.objective_[i]) > rounding:
                wrong.append(f"{level} objective {model.objective_[i]!r} for {exact!r}")
            best[i] = min(best[i], exact + rounding)
        bounds.append(model.objective_ - model.dual_gap_)
    for bound in bounds:
        if np.any(bound > best):
            wrong.append(f"bounds {bound!r} above {best!r}")
    return [f"quantiles {penalty}: {line}" for line in wrong]


def check_paths(seed: int) -> list[str]:
    """Return what is wrong with gaps of paths: the left-out score shows the model."""
    p = problem(seed, "real")
    if len(p.y) < 4:
        return []
    half = np.arange(len(p.y)) < len(p.y) // 2
    seen: list[Any] = []

    def scoring(model: Any, X: Any, y: Any) -> float:
        seen.append((long(np.ravel(model.coef_)), LONG(np.ravel(model.intercept_)[0])))
        return 0.0

    alphas = sorted(10.0 ** p.rng.uniform(-6, 1, size=3), reverse=True)
    options: Any = {"loss": "absolute_error", "fit_intercept": p.fit_intercept}
    X, y = p.X[half], p.y[half]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search: Any = BMRMRegressorCV(
            alphas=alphas,
            cv=[(np.flatnonzero(half), np.flatnonzero(~half))],
            scoring=scoring,
            refit=False,
            tol=1e-3,
            **options,
        )
        try:
            search.fit(p.stored(p.X), p.y)
            fits = [BMRMRegressor(a, tol=1e-9, **options).fit(X, y) for a in alphas]
        except ValueError as error:
            if any(words in str(error) for words in _TOO_EXTREME):
                return []
            raise
    wrong = []
    for alpha, gap, (w, b), fit in zip(
        alphas, search.gaps_path_[0], seen, fits, strict=True
    ):
        parts = []
        for coef, free in ((w, b), (long(np.ravel(fit.coef_)), LONG(fit.intercept_))):
            r = np.abs(long(y) - exact_scores(X, coef, free)[:, 0])
            parts.append(LONG(alpha) * squares(coef) + r.mean())
        rounding = 1e-10 * (np.abs(long(y)).mean() + (np.abs(long(X)) @ abs(w)).mean())
        if parts[0] * (1 - LONG(gap)) > parts[1] + rounding:
            wrong.append(f"gaps_path_ {gap!r} at {alpha!r}: {parts!r}")
    return wrong


def check_functions(seed: int) -> list[str]:
    """Return what is wrong with ``minimize`` of a maximum of affine functions."""
    rng = np.random.default_rng([31, seed])
    m, d = int(rng.integers(2, 12)), int(rng.integers(1, 6))
    A = rng.normal(size=(m, d)) * 10.0 ** rng.uniform(-3, 3, size=d)
    b, alpha = (
        10.0 ** rng.uniform(-3, 3) * rng.normal(size=m),
        10.0 ** rng.uniform(-4, 2),
    )
    ratio = float(rng.choice([0.0, 0.5]))

    def value(w: Any) -> tuple[float, Any]:
        lines = A @ w + b
        return float(lines.max()), A[lines.argmax()]

    w0 = 10.0 ** rng.uniform(-3, 3) * rng.normal(size=d)
    found: list[Any] = []
    methods = ["ls-bmrm", "bmrm", None, *([] if ratio else ["proximal-bundle"])]
    for method in methods:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = minimize(value, w0, method, alpha=alpha, l1_ratio=ratio)
        w = long(result.x)
        exact = LONG(alpha) * elastic(w, ratio) + (long(A) @ w + b).max()
        sizes = (np.abs(A) @ np.abs(result.x) + np.abs(b)).max() + abs(exact)
        found.append((method, result, exact, 1e3 * np.finfo(float).eps * sizes))
    best = min(exact + rounding for *_, exact, rounding in found)
    wrong = []
    for method, result, exact, rounding in found:
        if abs(exact - result.fun) > rounding:
            wrong.append(f"minimize {method}: {result.fun!r} for {exact!r}")
        if result.lower_bound > best:
            wrong.append(f"minimize {method}: {result.lower_bound!r} above {best!r}")
    return wrong


def check_losses(seed: int) -> list[str]:
    """Return what ``check_loss`` gets wrong about the infimum of a loss."""
    rng = np.random.default_rng([37, seed])
    far = 10.0 ** rng.uniform(-2, 2)
    kind = ("absolute", "log", "square")[rng.integers(3)]
    size = far if kind == "square" else 1.0

    class Own(losses.Loss):
        def value(self, scores: Any, targets: Any, weights: Any) -> float:
            t = scores - far * targets
            if kind == "log":
                return float(weights @ np.logaddexp(0.0, -targets * scores))
            return float(weights @ (np.abs(t) if kind == "absolute" else t * t / 2))

        def subgradient(self, scores: Any, targets: Any, weights: Any) -> Any:
            t = scores - far * targets
            if kind == "log":
                tilt = np.exp(-np.logaddexp(0.0, targets * scores))
                return -weights * targets * tilt
            return weights * (np.sign(t) if kind == "absolute" else t)

    y = np.where(rng.random(6) < 0.5, -1.0, 1.0)
    wrong = []
    for infimum, is_right in ((0.0, True), (-1.0, True), (0.1 * size, False)):
        loss = Own()
        loss.infimum = infimum
        try:
            losses.check_loss(loss, y, scale=far if kind != "log" else 1.0)
        except (TypeError, ValueError, AssertionError) as error:
            if is_right:
                wrong.append(f"check_loss {kind} {infimum}: {error}")
        else:
            if not is_right:
                wrong.append(f"check_loss {kind}: takes an infimum of {infimum}")
    return wrong

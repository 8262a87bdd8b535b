"""Regression and its like beside scikit-learn: seconds, objectives, proven gaps.

python benchmarks/regression.py

Quantile regression on generated data of 50 features: ours to a proven 1e-3 at all
sizes, QuantileRegressor (highs) at those it can do, and from these by a power law the
seconds at the largest. Then quantile regression with an L1 penalty, the same objective
for both, where five features matter. Then each loss with the estimators of scikit-learn
and statsmodels that have it. Each comes with a ladder of settings; what counts is the
quickest one whose mean loss is within 1e-3 of the smallest that any method found, or
the one with the smallest loss. SGDRegressor has no quantile loss but that of the
median: an insensitive one with epsilon = 0. LinearSVR's ladder has stronger penalties,
too, with which it converges sooner.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import common
import numpy as np
from _harness import Benchmark, table
from _race import timed
from sklearn.linear_model import (
    HuberRegressor,
    LogisticRegression,
    PoissonRegressor,
    QuantileRegressor,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.metrics import mean_pinball_loss
from sklearn.svm import LinearSVR

from sklearn_subqn import BMRMClassifier, BMRMRegressor

NAME = "regression"
QUANTILE = 0.8
ALPHA = 1e-6
#: How far above the smallest mean loss of all methods a setting may end.
NEAR = 1e-3
SGD_EPOCHS = (1, 2, 5, 10, 20, 50)
#: Step sizes of SGDClassifier: its default's and SGDRegressor's, for the latter also
#: longer ones.
SGD_RATES: list[dict[str, Any]] = [
    {},
    *({"learning_rate": "invscaling", "eta0": eta} for eta in (0.01, 0.1, 1.0)),
]
#: Rows, features and alphas of the L1 penalty.
SHAPES = ((2000, 50), (10000, 50), (2000, 500), (500, 2000))
L1_ALPHAS = (1e-1, 1e-2, 1e-3)
SVR_ALPHAS = (ALPHA, 1e-4, 1e-3)
SVR_ITERATIONS = (1, 10, 100)


def generated(n: int, d: int = 50) -> tuple[Any, Any]:
    """Return Gaussian features and a response with heavy, uneven tails."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(n, d)), np.random.default_rng(1).normal(size=d)
    noise = rng.standard_t(3, size=n) * (1.0 + 0.5 * np.abs(X[:, 0]))
    return X, X @ w + 3.0 + noise


def fitted(estimator: Any, X: Any, y: Any, repeats: int = 1) -> tuple[float, Any]:
    """Return the least processor seconds of some fits, and the estimator."""
    return min(timed(lambda: estimator.fit(X, y))[1] for _ in range(repeats)), estimator


def quantile(args: Any, results: common.Results) -> None:
    peers: list[tuple[int, float]] = []
    for n in args.sizes:
        X, y = generated(n)
        model = BMRMRegressor(ALPHA, loss="quantile", quantile=QUANTILE)
        seconds, model = fitted(model, X, y, args.repeats)
        row: dict[str, Any] = {
            "n": n,
            "seconds": seconds,
            "passes": model.history_[0].passes[-1],
            "gap": model.dual_gap_ / model.objective_,
            "loss": mean_pinball_loss(y, model.predict(X), alpha=QUANTILE),
        }
        if n <= args.largest_peer:
            peer = QuantileRegressor(quantile=QUANTILE, alpha=0.0, solver="highs")
            row["peer"], peer = fitted(peer, X, y)
            row["peer_loss"] = mean_pinball_loss(y, peer.predict(X), alpha=QUANTILE)
            peers.append((n, row["peer"]))
        elif len(peers) > 1:
            power, constant = np.polyfit(*np.log(peers).T, 1)
            row["power"] = float(power)
            row["extrapolated"] = float(np.exp(constant) * n**power)
        results.add(f"quantile | {n}", **row)
        print(row, flush=True)


def sparse(args: Any, results: common.Results) -> None:
    for n, d in SHAPES:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, d))
        y = X[:, :5].sum(axis=1) + 3.0 + rng.standard_t(3, size=n)
        for alpha in L1_ALPHAS:
            options = {"quantile": QUANTILE, "alpha": alpha}
            model = BMRMRegressor(loss="quantile", penalty="l1", **options)
            seconds, model = fitted(model, X, y, args.repeats)
            peer_seconds, peer = fitted(QuantileRegressor(**options), X, y)
            loss = mean_pinball_loss(y, peer.predict(X), alpha=QUANTILE)
            row = {
                "shape": f"{n} x {d}",
                "alpha": alpha,
                "seconds": seconds,
                "gap": model.dual_gap_ / model.objective_,
                "nonzero": int(np.count_nonzero(model.coef_)),
                "objective": model.objective_,
                "peer": peer_seconds,
                "peer_objective": loss + alpha * float(np.abs(peer.coef_).sum()),
            }
            results.add(f"l1 | {n} x {d} | {alpha:g}", **row)
            print(row, flush=True)


def sgd_ladder(estimator: type, **options: Any) -> list[Any]:
    return [
        estimator(
            alpha=ALPHA, tol=None, max_iter=n, average=mean, random_state=0
        ).set_params(**options)
        for n in SGD_EPOCHS
        for mean in (False, True)
    ]


def quant_reg(quantile: float) -> list[Any]:
    return [StatsmodelsQuantile(quantile)] if find_spec("statsmodels") else []


class StatsmodelsQuantile:
    """QuantReg of statsmodels, with an intercept, as an estimator."""

    def __init__(self, quantile: float) -> None:
        self.quantile = quantile

    def __repr__(self) -> str:
        return f"QuantReg(q={self.quantile:g})"

    def fit(self, X: Any, y: Any) -> StatsmodelsQuantile:
        from statsmodels.regression.quantile_regression import QuantReg

        columns = np.column_stack([X, np.ones(len(y))])
        model = QuantReg(y, columns).fit(q=self.quantile)
        self.coef = np.asarray(model.params)
        return self

    def predict(self, X: Any) -> Any:
        return X @ self.coef[:-1] + self.coef[-1]


class Case(NamedTuple):
    """A loss, its target, its value at predictions, ours, and ladders of the others."""

    loss: str
    target: Any
    value: Callable[[Any], Any]
    ours: Any
    others: dict[str, list[Any]]


def cases(X: Any, y: Any) -> list[Case]:
    counts = np.random.default_rng(2).poisson(np.exp(0.1 * X[:, 0] + 0.2 * X[:, 1]))
    signs = np.where(y > np.median(y), 1.0, -1.0)
    n = len(y)

    def tube(epsilon: float) -> Callable[[Any], Any]:
        return lambda z: np.mean(np.maximum(np.abs(y - z) - epsilon, 0.0))

    def huber(z: Any) -> Any:
        r = np.minimum(np.abs(y - z), 1.35)
        return np.mean(r * (np.abs(y - z) - 0.5 * r))

    def svr(epsilon: float) -> list[Any]:
        return [
            LinearSVR(
                epsilon=epsilon,
                C=1.0 / (n * alpha),
                dual=True,
                max_iter=n_iter,
                random_state=0,
            )
            for alpha in SVR_ALPHAS
            for n_iter in SVR_ITERATIONS
        ]

    insensitive = {"loss": "epsilon_insensitive"}
    return [
        Case(
            f"quantile {QUANTILE:g}",
            y,
            lambda z: mean_pinball_loss(y, z, alpha=QUANTILE),
            BMRMRegressor(ALPHA, loss="quantile", quantile=QUANTILE),
            {"statsmodels QuantReg": quant_reg(QUANTILE)},
        ),
        Case(
            "absolute_error",
            y,
            tube(0.0),
            BMRMRegressor(ALPHA, loss="absolute_error"),
            {
                "statsmodels QuantReg": quant_reg(0.5),
                "LinearSVR": svr(0.0),
                "SGDRegressor": sgd_ladder(SGDRegressor, epsilon=0.0, **insensitive),
            },
        ),
        Case(
            "epsilon_insensitive",
            y,
            tube(0.5),
            BMRMRegressor(ALPHA, loss="epsilon_insensitive", epsilon=0.5),
            {
                "LinearSVR": svr(0.5),
                "SGDRegressor": sgd_ladder(SGDRegressor, epsilon=0.5, **insensitive),
            },
        ),
        Case(
            "huber",
            y,
            huber,
            BMRMRegressor(ALPHA, loss="huber", epsilon=1.35),
            {
                "HuberRegressor (scale estimated)": [
                    HuberRegressor(alpha=ALPHA, max_iter=1000, tol=tol)
                    for tol in (1e-1, 1e-3, 1e-5)
                ],
                "SGDRegressor": sgd_ladder(SGDRegressor, loss="huber", epsilon=1.35),
            },
        ),
        Case(
            "poisson",
            counts,
            lambda z: np.mean(z - counts * np.log(z)),
            BMRMRegressor(ALPHA, loss="poisson"),
            {
                f"PoissonRegressor ({solver})": [
                    PoissonRegressor(alpha=ALPHA, solver=solver, tol=tol)
                    for tol in (1e-1, 1e-2, 1e-4)
                ]
                for solver in ("lbfgs", "newton-cholesky")
            },
        ),
        Case(
            "log_loss",
            signs,
            lambda z: np.mean(np.logaddexp(0.0, -signs * z)),
            BMRMClassifier(ALPHA, loss="log_loss"),
            {
                f"LogisticRegression ({solver})": [
                    LogisticRegression(
                        C=1.0 / (n * ALPHA), solver=solver, tol=tol, max_iter=1000
                    )
                    for tol in (1e-1, 1e-2, 1e-4)
                ]
                for solver in ("lbfgs", "newton-cholesky")
            }
            | {
                "SGDClassifier": [
                    model
                    for rate in SGD_RATES
                    for model in sgd_ladder(SGDClassifier, loss="log_loss", **rate)
                ]
            },
        ),
    ]


def peers(args: Any, results: common.Results) -> None:
    X, y = generated(args.n)
    for case in cases(X, y):
        if args.losses and case.loss not in args.losses:
            continue
        runs: dict[str, list[Any]] = {}
        for method, ladder in {"ours": [case.ours], **case.others}.items():
            for model in ladder:
                seconds = np.inf
                for _ in range(args.repeats):
                    seconds = min(seconds, fitted(model, X, case.target)[0])
                    if seconds > 1.0:
                        break
                score = getattr(model, "decision_function", model.predict)
                run = seconds, float(case.value(score(X))), model
                runs.setdefault(method, []).append(run)
        best = min(loss for found in runs.values() for _, loss, _ in found)
        for method, found in runs.items():
            near = [run for run in found if run[1] <= (1.0 + NEAR) * best]
            seconds, loss, model = (
                min(near, key=lambda run: run[0])
                if near
                else min(found, key=lambda run: run[1])
            )
            mine = method == "ours"
            row = {"loss_name": case.loss, "rows": len(y), "seconds": seconds}
            row["method"] = type(model).__name__ if mine else method
            row |= {"loss": loss, "above": loss / best - 1.0}
            if mine:
                row["gap"] = float(np.max(np.abs(model.dual_gap_ / model.objective_)))
            else:
                row["setting"] = " ".join(repr(model).split())
            results.add(f"{case.loss} | {row['method']}", **row)
            print(row, flush=True)


def render(results: dict[str, Any]) -> str:
    renders = {"n": render_sizes, "shape": render_l1, "method": render_losses}
    found = {
        field: [row for row in results["rows"] if field in row] for field in renders
    }
    parts = [renders[field](rows) for field, rows in found.items() if rows]
    return "\n\n".join(parts) + "\n"


def render_sizes(rows: list[dict[str, Any]]) -> str:
    def peer(row: dict[str, Any]) -> Any:
        return row.get("peer", row.get("extrapolated"))

    columns = {
        "rows": "n",
        "ours, s": "seconds:.3f",
        "passes": "passes:.1f",
        "proven gap": "gap:.1e",
        "mean loss": "loss:.5f",
        "QuantileRegressor, s": lambda row: (
            "–"
            if peer(row) is None
            else f"{peer(row):.3g}{'' if 'peer' in row else ' (extrapolated)'}"
        ),
        "its mean loss": "peer_loss:.5f",
        "ours / its seconds": lambda row: (
            "–" if peer(row) is None else f"{row['seconds'] / peer(row):.1e}"
        ),
    }
    powers = [row["power"] for row in rows if "power" in row]
    grow = (
        f"; its seconds grow like the power {powers[-1]:.2f} of the rows"
        if powers
        else ""
    )
    return (
        f"Quantile {QUANTILE:g}, 50 features, alpha = {ALPHA:g} (QuantileRegressor: 0)"
        f"{grow}.\n\n{table(sorted(rows, key=lambda row: row['n']), **columns)}"
    )


def render_l1(rows: list[dict[str, Any]]) -> str:
    columns = {
        "rows x features": "shape",
        "alpha": "alpha:g",
        "nonzero": "nonzero",
        "ours, s": "seconds:.3f",
        "proven gap": "gap:.1e",
        "objective": "objective:.5f",
        "QuantileRegressor, s": "peer:.3g",
        "its objective": "peer_objective:.5f",
        "ours / its seconds": lambda row: f"{row['seconds'] / row['peer']:.2f}",
    }
    text = f"Quantile {QUANTILE:g} with an L1 penalty, ours to 1e-3:"
    return f"{text}\n\n{table(rows, **columns)}"


def render_losses(rows: list[dict[str, Any]]) -> str:
    columns = {
        "loss": "loss_name",
        "method": "method",
        "seconds": "seconds:.3f",
        "mean loss": "loss:.6f",
        "above best": "above:.1e",
        "proven gap": "gap:.1e",
    }
    return (
        f"Each loss, {rows[0]['rows']} rows of 50 features; the quickest setting "
        "within 1e-3 of the smallest mean loss, or that of the smallest:\n\n"
    ) + table(rows, **columns)


def measure(args: Any, results: common.Results) -> None:
    parts = {"sizes": quantile, "l1": sparse, "losses": peers}
    for part in args.parts:
        parts[part](args, results)


BENCHMARK = Benchmark(
    NAME,
    __doc__,
    measure,
    render,
    sizes=[2000, 5000, 10000, 20000, 500000],
    largest_peer=20000,
    n={"default": 100000, "help": "rows for the other losses"},
    repeats=3,
    parts=("sizes", "l1", "losses"),
    losses={"default": [str], "help": "default: all"},
)

if __name__ == "__main__":
    BENCHMARK.run()

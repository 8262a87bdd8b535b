"""Regression beside scikit-learn: processor seconds, objectives, proven gaps.

python benchmarks/regression.py

Quantile regression on generated data of 50 features: ours to a proven 1e-3 at all
sizes, QuantileRegressor (highs) at those it can do, and from these by a power law the
seconds at the largest. Then each loss with the scikit-learn estimator, or statsmodels',
of the same kind, whose loss is evaluated at its own coefficients.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import common
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import (
    HuberRegressor,
    PoissonRegressor,
    QuantileRegressor,
    SGDRegressor,
)
from sklearn.metrics import mean_pinball_loss
from sklearn.svm import LinearSVR
from threadpoolctl import threadpool_limits

from sklearn_subqn import BMRMRegressor

NAME = "regression"
QUANTILE = 0.8
ALPHA = 1e-6


def generated(n: int, d: int = 50) -> tuple[Any, Any]:
    """Return Gaussian features and a response with heavy, uneven tails."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(n, d)), np.random.default_rng(1).normal(size=d)
    noise = rng.standard_t(3, size=n) * (1.0 + 0.5 * np.abs(X[:, 0]))
    return X, X @ w + 3.0 + noise


def fitted(estimator: Any, X: Any, y: Any) -> tuple[float, Any]:
    begin = time.process_time()
    estimator.fit(X, y)
    return time.process_time() - begin, estimator


def quantile(args: Any, results: common.Results) -> None:
    peers: list[tuple[int, float]] = []
    for n in args.sizes:
        X, y = generated(n)
        model = BMRMRegressor(ALPHA, loss="quantile", quantile=QUANTILE)
        seconds, model = min(
            (fitted(model, X, y) for _ in range(args.repeats)), key=lambda run: run[0]
        )
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


def peers(args: Any, results: common.Results) -> None:
    X, y = generated(args.n)
    counts = np.random.default_rng(2).poisson(np.exp(0.1 * X[:, 0] + 0.2 * X[:, 1]))
    n = len(y)

    def pinball(z: Any) -> float:
        return float(mean_pinball_loss(y, z, alpha=QUANTILE))

    def tube(z: Any) -> float:
        return float(np.mean(np.maximum(np.abs(y - z) - 0.5, 0.0)))

    def huber(z: Any) -> float:
        r = np.minimum(np.abs(y - z), 1.35)
        return float(np.mean(r * (np.abs(y - z) - 0.5 * r)))

    def poisson(z: Any) -> float:
        return float(np.mean(z - counts * np.log(z)))

    sgd = {"alpha": ALPHA, "tol": 1e-4, "random_state": 0}
    cases = [
        ("quantile", {"quantile": QUANTILE}, y, pinball, {}),
        (
            "epsilon_insensitive",
            {"epsilon": 0.5},
            y,
            tube,
            {
                "LinearSVR": LinearSVR(
                    epsilon=0.5,
                    C=1.0 / (n * ALPHA),
                    dual=True,
                    max_iter=1000,
                    random_state=0,
                ),
                "SGDRegressor": SGDRegressor(
                    loss="epsilon_insensitive", epsilon=0.5, **sgd
                ),
            },
        ),
        (
            "huber",
            {"epsilon": 1.35},
            y,
            huber,
            {
                "HuberRegressor (scale estimated)": HuberRegressor(
                    alpha=ALPHA, max_iter=1000
                ),
                "SGDRegressor": SGDRegressor(loss="huber", epsilon=1.35, **sgd),
            },
        ),
        (
            "poisson",
            {},
            counts,
            poisson,
            {
                "PoissonRegressor": PoissonRegressor(alpha=ALPHA, max_iter=1000),
                "PoissonRegressor (newton-cholesky)": PoissonRegressor(
                    alpha=ALPHA, max_iter=1000, solver="newton-cholesky"
                ),
            },
        ),
    ]
    for loss, options, target, value, others in cases:
        ours = BMRMRegressor(ALPHA, loss=loss, **options)
        for name, model in {"BMRMRegressor": ours, **others}.items():
            seconds, model = fitted(model, X, target)
            row = {"loss_name": loss, "method": name, "rows": n, "seconds": seconds}
            row["loss"] = value(model.predict(X))
            if model is ours:
                row["gap"] = abs(model.dual_gap_ / model.objective_)
            results.add(f"{loss} | {name}", **row)
            print(row, flush=True)
    statsmodels_quantile(X, y, pinball, results)


def statsmodels_quantile(X: Any, y: Any, value: Any, results: common.Results) -> None:
    try:
        from statsmodels.regression.quantile_regression import QuantReg
    except ImportError:
        return
    columns = np.column_stack([X, np.ones(len(y))])
    begin = time.process_time()
    model = QuantReg(y, columns).fit(q=QUANTILE)
    row = {"loss_name": "quantile", "method": "statsmodels QuantReg", "rows": len(y)}
    row["seconds"] = time.process_time() - begin
    row["loss"] = value(columns @ np.asarray(model.params))
    results.add("quantile | QuantReg", **row)
    print(row, flush=True)


def render(results: dict[str, Any]) -> str:
    sizes = [row for row in results["rows"] if "n" in row]
    header = ["rows", "ours, s", "passes", "proven gap", "mean loss"]
    header += ["QuantileRegressor, s", "its mean loss", "ours / its seconds"]
    table = []
    for row in sorted(sizes, key=lambda row: row["n"]):
        peer = row.get("peer", row.get("extrapolated"))
        mark = "" if "peer" in row else " (extrapolated)"
        table.append(
            [
                str(row["n"]),
                f"{row['seconds']:.3f}",
                f"{row['passes']:.1f}",
                f"{row['gap']:.1e}",
                f"{row['loss']:.5f}",
                "–" if peer is None else f"{peer:.3g}{mark}",
                f"{row['peer_loss']:.5f}" if "peer_loss" in row else "–",
                "–" if peer is None else f"{row['seconds'] / peer:.1e}",
            ]
        )
    text = (
        f"Quantile {QUANTILE:g}, 50 features, alpha = {ALPHA:g} (QuantileRegressor: 0)"
    )
    powers = [row["power"] for row in sizes if "power" in row]
    if powers:
        text += f"; its seconds grow like the power {powers[-1]:.2f} of the rows"
    text += ".\n\n" + common.markdown_table(header, table)
    others = [row for row in results["rows"] if "method" in row]
    table = [
        [
            row["loss_name"],
            row["method"],
            f"{row['seconds']:.3f}",
            f"{row['loss']:.6f}",
            f"{row['gap']:.1e}" if "gap" in row else "–",
        ]
        for row in others
    ]
    if others:
        text += f"\n\nOther losses, {others[0]['rows']} rows of 50 features:\n\n"
        header = ["loss", "method", "seconds", "mean loss", "proven gap"]
        text += common.markdown_table(header, table)
    return text + "\n"


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument(
        "--sizes", nargs="+", type=int, default=[2000, 5000, 10000, 20000, 500000]
    )
    p.add_argument("--largest-peer", type=int, default=20000)
    p.add_argument("--n", type=int, default=100000, help="rows for the other losses")
    p.add_argument("--repeats", type=int, default=3)
    p.add_argument("--fresh", action="store_true", help="drop all known rows")
    args = p.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    results = common.Results(NAME, fresh=args.fresh)
    with threadpool_limits(1):
        quantile(args, results)
        peers(args, results)
    common.write_markdown(NAME, render)


if __name__ == "__main__":
    main()

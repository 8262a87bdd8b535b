"""Processor seconds to relative gaps of L1-regularized logistic regression.

    python benchmarks/l1_logistic.py --data-dir DIR

Ours is timed to the gap that the fit proves itself; peers to the first setting of a
ladder of tolerances (iterations for saga) whose objective is that close to the best
known one. No intercept, since peers penalize theirs. Compilation of celer and skglm is
left out by a fit on a few rows before. Peers that are not installed are left out, and a
ladder ends after --limit seconds.
"""

from __future__ import annotations

import importlib.util
import time
import warnings
from collections.abc import Callable
from typing import Any

import common
import datasets
import numpy as np
from sklearn.linear_model import LogisticRegression

from sklearn_subqn import L1LogisticOWLQN

NAME = "l1_logistic"
GAPS = (1e-3, 1e-4, 1e-6)
SHARES = (0.001, 0.01, 0.1)
# Values of Yu 2009, Table 4.2.
TABLE = {"covtype": 1e-5, "rcv1_ccat": 1e-6, "mnist": 1e-4, "a9a": 1e-4}
DATA = ["covtype", "a9a", "mnist", "rcv1_ccat", "leukemia", "text"]
TOLERANCES = [1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6, 1e-7]
ITERATIONS = [2, 5, 10, 20, 40, 80, 160, 320, 640, 1280]


def objective(X: Any, y: Any, coef: Any, alpha: float) -> float:
    """Return alpha ||w||_1 plus the mean logistic loss."""
    margins = y * (X @ np.ravel(coef))
    losses = np.maximum(-margins, 0.0) + np.log1p(np.exp(-np.abs(margins)))
    return alpha * float(np.abs(coef).sum()) + float(losses.mean())


def timed(fit: Callable[[], Any]) -> tuple[Any, float]:
    begin = time.process_time()
    model = fit()
    return model, time.process_time() - begin


def ours(X: Any, y: Any, alpha: float, tol: float, solver: str = "auto") -> Any:
    return L1LogisticOWLQN(
        alpha, fit_intercept=False, tol=tol, solver=solver, max_iter=5000
    ).fit(X, y)


def peers(X: Any, y: Any, alpha: float) -> dict[str, tuple[list[Any], Callable]]:
    """Return ladders of settings and the fits that take them."""
    C = 1.0 / (len(y) * alpha)
    options = {"l1_ratio": 1.0, "C": C, "fit_intercept": False, "random_state": 0}

    def liblinear(tol: float) -> Any:
        options.update(solver="liblinear", tol=tol, max_iter=10**5)
        return LogisticRegression(**options).fit(X, y)

    def saga(n_iter: int) -> Any:
        options.update(solver="saga", tol=1e-12, max_iter=n_iter)
        return LogisticRegression(**options).fit(X, y)

    found: dict[str, tuple[list[Any], Callable]] = {
        "liblinear": (TOLERANCES, liblinear),
        "saga": (ITERATIONS, saga),
    }
    if importlib.util.find_spec("celer"):
        from celer import LogisticRegression as Celer

        Celer(C=1.0, fit_intercept=False).fit(X[:200], y[:200])
        found["celer"] = (
            TOLERANCES[2:],
            lambda tol: Celer(C=C, fit_intercept=False, tol=tol).fit(X, y),
        )
    if importlib.util.find_spec("skglm"):
        from skglm import SparseLogisticRegression

        columns = X.tocsc() if hasattr(X, "tocsc") else np.asfortranarray(X)
        few = {"alpha": 0.01, "fit_intercept": False}
        SparseLogisticRegression(**few).fit(columns[:200], y[:200])
        found["skglm"] = (
            [alpha * tol for tol in TOLERANCES],
            lambda tol: SparseLogisticRegression(
                alpha=alpha, fit_intercept=False, tol=tol
            ).fit(columns, y),
        )
    return found


def alpha_for(X: Any, y: Any, share: float) -> float:
    """Return alpha that leaves about this share of the coefficients, by bisection."""
    model = L1LogisticOWLQN(fit_intercept=False)
    high = np.log(model.alpha_max(X, y))
    low = high - np.log(1e5)
    for _ in range(12):
        middle = 0.5 * (low + high)
        used = np.mean(ours(X, y, float(np.exp(middle)), 1e-2).coef_ != 0.0)
        low, high = (middle, high) if used > share else (low, middle)
    return float(f"{np.exp(high):.2g}")


def measure(
    results: common.Results,
    data: Any,
    alpha: float,
    limit: float,
    label: str,
    chosen: list[str] | None,
) -> None:
    X, y = data.X, data.y
    exact = ours(X, y, alpha, 1e-8)
    best = exact.objective_
    if exact.dual_gap_ > 1e-7 * best:
        print(f"{data.name}, alpha={alpha:g}: no optimum to compare with")
        return
    seconds: dict[str, dict[str, float]] = {"ours": {}}
    for gap in GAPS:
        seconds["ours"][f"{gap:g}"] = min(
            timed(lambda gap=gap: ours(X, y, alpha, gap))[1] for _ in range(3)
        )
    for name, (ladder, fit) in peers(X, y, alpha).items():
        if chosen and name not in chosen:
            continue
        reached = seconds[name] = {}
        spent = 0.0
        for setting in ladder:
            model, duration = timed(lambda fit=fit, setting=setting: fit(setting))
            spent += duration
            excess = common.gap(objective(X, y, model.coef_, alpha), best)
            for gap in GAPS:
                known = reached.get(f"{gap:g}", np.inf)
                if excess <= gap and duration < known:
                    reached[f"{gap:g}"] = duration
            if spent > limit or len(reached) == len(GAPS):
                break
    results.add(
        f"{data.name} | {alpha:g}",
        data=data.name,
        alpha=alpha,
        chosen=label,
        n_used=int(np.count_nonzero(exact.coef_)),
        n_features=X.shape[1],
        objective=best,
        proven_gap=exact.dual_gap_ / best,
        seconds=seconds,
    )


def render(results: dict[str, Any]) -> str:
    lines = [
        "# L1-regularized logistic regression",
        "",
        common.describe(results["environment"]),
        "",
        "Processor seconds, one thread, no intercept; ours to the proven gap, peers to",
        "that of their objective to the optimum; – where the ladder did not get there.",
        "",
    ]
    rows = []
    for row in results["rows"]:
        for gap in GAPS:
            cells = [
                f"{row['seconds'][name][f'{gap:g}']:.3g}"
                if f"{gap:g}" in row["seconds"].get(name, {})
                else "–"
                for name in ("ours", "liblinear", "saga", "celer", "skglm")
            ]
            share = f"{row['n_used']} of {row['n_features']}"
            rows.append([row["data"], f"{row['alpha']:g}", share, f"{gap:g}", *cells])
    header = ["data", "alpha", "nonzero", "gap", "ours", "liblinear", "saga"]
    return "\n".join(
        [*lines, common.markdown_table([*header, "celer", "skglm"], rows), ""]
    )


def main() -> None:
    p = common.parser(__doc__, DATA)
    p.add_argument("--alphas", nargs="+", type=float, help="default: see the script")
    p.add_argument("--limit", type=float, default=60.0, help="seconds for a ladder")
    p.add_argument("--peers", nargs="+", help="default: all that are installed")
    p.add_argument("--fresh", action="store_true")
    args = p.parse_args()
    warnings.simplefilter("ignore")
    results = common.Results(NAME, fresh=args.fresh)
    for name in args.data:
        data = datasets.load(name, args.data_dir, args.cache_dir)
        alphas = dict.fromkeys(args.alphas or (), "given")
        if not args.alphas:
            alphas = {alpha_for(data.X, data.y, s): f"{100 * s:g} %" for s in SHARES}
            if name in TABLE:
                alphas[TABLE[name]] = "Yu 2009, Table 4.2"
        for alpha, label in alphas.items():
            measure(results, data, alpha, args.limit, label, args.peers)
            common.write_markdown(NAME, render)


if __name__ == "__main__":
    main()

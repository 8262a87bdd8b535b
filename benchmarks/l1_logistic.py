"""Processor seconds to relative gaps of L1-regularized logistic regression.

    python benchmarks/l1_logistic.py --data-dir DIR

Ours is timed to the gap that the fit proves itself; peers to the first setting of a
ladder of tolerances (iterations for saga) whose objective is that close to the best
known one. No intercept, since peers penalize theirs. Compilation of celer and skglm is
left out by a fit on a few rows before, and given apart. Of fits that take less than a
second the fastest of up to three counts. Peers that are not installed are left out, and
a ladder ends after --limit seconds, a fit after three times that. Data
sets with ":classes" are multinomial problems, for which saga is the peer.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Callable
from typing import Any

import common
import datasets
import numpy as np
from _harness import Benchmark
from _race import climb, in_copy, timed
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from sklearn_subqn import L1LogisticOWLQN

NAME = "l1_logistic"
GAPS = (1e-3, 1e-4, 1e-6)
SHARES = (0.001, 0.01, 0.1)
# Values of Yu 2009, Table 4.2.
TABLE = {"covtype": 1e-5, "rcv1_ccat": 1e-6, "mnist": 1e-4, "a9a": 1e-4}
MULTINOMIAL = {"mnist": (1e-3, 1e-4), "news20": (1e-3, 1e-4)}
DATA = ["covtype", "a9a", "mnist", "rcv1_ccat", "leukemia", "text"]
DATA += [f"{name}:classes" for name in MULTINOMIAL]
PEERS = ("liblinear", "saga", "celer", "skglm", "cyanure", "glum", "pylbfgs")
TOLERANCES = [1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6, 1e-7]
TOLERANCES += [1e-8, 1e-9, 1e-10]
# Of liblinear, with the shortest times, more of those that matter.
FINE = [float(f"{10.0 ** (-i / 6):.3g}") for i in range(24)] + TOLERANCES[8:]
ITERATIONS = [2, 5, 10, 20, 40, 80, 160, 320, 640, 1280]
# A ladder ends once a peer's objective is that close to ours.
AGREEMENT = 1e-9
# Dense matrices of more features take too long.
MOST_FEATURES_GLUM = 2000


def objective(X: Any, y: Any, coef: Any, alpha: float) -> float:
    """Return alpha ||w||_1 plus the mean logistic loss, binary or multinomial."""
    coef = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    penalty = alpha * float(np.abs(coef).sum())
    if len(coef) == 1:
        margins = y * (X @ coef[0])
        return penalty + float(np.logaddexp(0.0, -margins).mean())
    scores = X @ coef.T
    scores -= scores.max(axis=1, keepdims=True)
    own = scores[np.arange(len(y)), y]
    return penalty + float((np.log(np.exp(scores).sum(axis=1)) - own).mean())


def ours(X: Any, y: Any, alpha: float, tol: float, solver: str = "auto") -> Any:
    return L1LogisticOWLQN(
        alpha, fit_intercept=False, tol=tol, solver=solver, max_iter=5000
    ).fit(X, y)


def owlqn_of_pylbfgs(X: Any, y: Any, alpha: float, n_iter: int) -> Any:
    """Return the coefficients after so many iterations of two classes."""
    from lbfgs import LBFGS, LBFGSError

    def function(w: Any, gradient: Any) -> float:
        margins = y * (X @ w)
        gradient[:] = X.T @ (-y * expit(-margins) / len(y))
        return float(np.logaddexp(0.0, -margins).mean())

    method = LBFGS()
    method.orthantwise_c = alpha
    method.linesearch = "wolfe"
    method.max_iterations = n_iter
    method.epsilon = 1e-14
    seen = [np.zeros(X.shape[1])]

    def progress(w: Any, *_: Any) -> int:
        seen[0] = np.array(w)
        return 0

    # It raises at its limit on the iterations.
    with contextlib.suppress(LBFGSError):
        seen[0] = method.minimize(function, seen[0].copy(), progress)
    return seen[0]


def peers(
    X: Any, y: Any, alpha: float, compiling: dict[str, float]
) -> dict[str, tuple[list[Any], Callable]]:
    """Return ladders of settings and the fits that take them.

    Seconds of the first fit of libraries that compile are added to ``compiling``.
    """
    C = 1.0 / (len(y) * alpha)
    options = {"l1_ratio": 1.0, "C": C, "fit_intercept": False, "random_state": 0}

    def liblinear(tol: float) -> Any:
        options.update(solver="liblinear", tol=tol, max_iter=10**5)
        return LogisticRegression(**options).fit(X, y).coef_

    def saga(n_iter: int) -> Any:
        options.update(solver="saga", tol=1e-12, max_iter=n_iter)
        return LogisticRegression(**options).fit(X, y).coef_

    if y.min() >= 0:
        return {"saga": (ITERATIONS, saga)}
    found: dict[str, tuple[list[Any], Callable]] = {
        "liblinear": (FINE, liblinear),
        "saga": (ITERATIONS, saga),
    }
    columns = X.tocsc() if hasattr(X, "tocsc") else np.asfortranarray(X)
    if importlib.util.find_spec("celer"):
        from celer import LogisticRegression as Celer

        def celer(tol: float) -> Any:
            return Celer(C=C, fit_intercept=False, tol=tol).fit(columns, y).coef_

        few = columns[::50], y[::50]
        _, compiling["celer"] = timed(lambda: Celer(0.1).fit(*few))
        found["celer"] = (TOLERANCES[1:], celer)
    if importlib.util.find_spec("skglm"):
        from skglm import SparseLogisticRegression

        def skglm(tol: float) -> Any:
            model = SparseLogisticRegression(
                alpha=alpha, fit_intercept=False, tol=tol * alpha
            )
            return model.fit(columns, y).coef_

        few = columns[::50], y[::50]
        _, compiling["skglm"] = timed(
            lambda: SparseLogisticRegression(alpha=0.1, fit_intercept=False).fit(*few)
        )
        found["skglm"] = (TOLERANCES, skglm)
    if importlib.util.find_spec("cyanure"):
        from cyanure.estimators import Classifier

        def cyanure(tol: float) -> Any:
            model = Classifier(
                loss="logistic",
                penalty="l1",
                lambda_1=alpha,
                fit_intercept=False,
                tol=tol,
                max_iter=5000,
                duality_gap_interval=5,
                n_threads=1,
                verbose=False,
            )
            return model.fit(X, y).coef_

        found["cyanure"] = (TOLERANCES, cyanure)
    if importlib.util.find_spec("glum") and X.shape[1] <= MOST_FEATURES_GLUM:
        from glum import GeneralizedLinearRegressor

        def glum(tol: float) -> Any:
            model = GeneralizedLinearRegressor(
                family="binomial",
                alpha=alpha,
                l1_ratio=1,
                fit_intercept=False,
                gradient_tol=tol * alpha,
                max_iter=300,
            )
            return model.fit(X, (y > 0).astype(float)).coef_

        found["glum"] = (TOLERANCES, glum)
    if importlib.util.find_spec("lbfgs"):

        def pylbfgs(n_iter: int) -> Any:
            return owlqn_of_pylbfgs(X, y, alpha, n_iter)

        found["pylbfgs"] = (ITERATIONS, pylbfgs)
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
    several = y.min() >= 0
    exact = ours(X, y, alpha, 1e-6 if several else 1e-10)
    best = exact.objective_
    seconds: dict[str, dict[str, float]] = {"ours": {}}
    for gap in GAPS:
        fit = in_copy(lambda gap=gap: ours(X, y, alpha, gap).coef_)
        if fit is not None:
            seconds["ours"][f"{gap:g}"] = fit[1]
    compiling: dict[str, float] = {}
    key = f"{data.name} | {alpha:g}"
    closest = tuple(results.get(key, "closest_peer", (np.inf, "")))
    for name, (ladder, fit) in peers(X, y, alpha, compiling).items():
        if not chosen or name in chosen:
            end = climb(
                ladder,
                fit,
                lambda coef: objective(X, y, coef, alpha) / best - 1.0,
                GAPS,
                limit,
                AGREEMENT,
            )
            seconds[name] = end.seconds
            closest = min(closest, (end.closest[0], name))
    results.add(
        key,
        data=data.name,
        alpha=alpha,
        chosen=label,
        n_used=int(np.count_nonzero(exact.coef_)),
        n_features=exact.coef_.size,
        objective=best,
        proven_gap=exact.dual_gap_ / best,
        closest_peer=closest,
        seconds=seconds,
        compiling=compiling,
    )


def render(results: dict[str, Any]) -> str:
    lines = [
        "Processor seconds, one thread, no intercept; ours to the proven gap, peers to",
        "that of their objective to the optimum; – where the ladder did not get there.",
        "`agreement` is the relative excess of the closest peer's objective over ours;",
        "where ours is proven to `proven` only, it may be negative by as much.",
        "",
    ]
    rows = []
    for row in results["rows"]:
        for gap in GAPS:
            cells = [
                f"{row['seconds'][name][f'{gap:g}']:.3g}"
                if f"{gap:g}" in row["seconds"].get(name, {})
                else "–"
                for name in ("ours", *PEERS)
            ]
            share = f"{row['n_used']} of {row['n_features']}"
            proof = [f"{row['proven_gap']:.0e}", f"{row['closest_peer'][0]:.0e}"]
            rows.append(
                [row["data"], f"{row['alpha']:g}", share, f"{gap:g}", *cells, *proof]
            )
    header = ["data", "alpha", "nonzero", "gap", "ours", *PEERS, "proven", "agreement"]
    compiling = [row["compiling"] for row in results["rows"]]
    for name in ("celer", "skglm"):
        spent = max((c.get(name, 0.0) for c in compiling), default=0.0)
        lines.append(f"The first fit of {name} took {spent:.1f} s, for compilation.")
    return "\n".join([*lines, "", common.markdown_table(header, rows), ""])


def measure_all(name: str, args: Any, results: common.Results) -> None:
    kind, _, several = name.partition(":")
    if several == "classes":
        X, y = datasets.load_joint(kind, args.data_dir)
        data = datasets.Dataset(name, X, y)
        alphas = dict.fromkeys(args.alphas or MULTINOMIAL[kind], "given")
    else:
        data = datasets.load(name, args.data_dir, args.cache_dir)
        alphas = dict.fromkeys(args.alphas or (), "given")
    if not alphas:
        alphas = {alpha_for(data.X, data.y, s): f"{100 * s:g} %" for s in SHARES}
        if name in TABLE:
            alphas[TABLE[name]] = "Yu 2009, Table 4.2"
    for alpha, label in alphas.items():
        measure(results, data, alpha, args.limit, label, args.peers)


BENCHMARK = Benchmark(
    NAME,
    __doc__,
    measure_all,
    render,
    DATA,
    each=True,
    alphas=[float],
    limit={"default": 20.0, "help": "seconds for a ladder"},
    peers={"default": [str], "help": "default: all that are installed"},
)

if __name__ == "__main__":
    BENCHMARK.run()

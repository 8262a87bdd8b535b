"""Processor seconds to relative gaps of L1-regularized logistic regression.

    python benchmarks/l1_logistic.py --data-dir DIR

Ours is timed to the gap that the fit proves itself; peers to the first setting of a
ladder of tolerances (iterations for saga) whose objective is that close to the best
known one. No intercept, since peers penalize theirs. Compilation of celer and skglm is
left out by a fit on a few rows before, and given apart. Of fits that take less than a
second the fastest of up to three counts. Peers that are not installed are left out, and
a ladder ends after --limit seconds, a fit after three times that by the clock. Data
sets with ":classes" are multinomial problems, for which saga is the peer.
"""

from __future__ import annotations

import contextlib
import importlib.util
import multiprocessing
import time
from collections.abc import Callable
from typing import Any

import common
import datasets
import numpy as np
from _harness import Benchmark
from scipy.optimize import minimize
from scipy.special import expit, log_softmax
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
# Of peers that run for agreement only; pylbfgs then keeps so many pairs.
AGREEMENT_AT_LAST = 1e-10
PAIRS_OF_PYLBFGS = 20
# Gradients of coefficients that may leave zero, as a share of alpha.
NEAR_ALPHA = 0.998
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


def timed(fit: Callable[[], Any]) -> tuple[Any, float]:
    begin = time.process_time()
    model = fit()
    return model, time.process_time() - begin


def fastest(fit: Callable[[], Any]) -> tuple[Any, float]:
    """Return what ``timed`` does, of the fastest of up to three fits in a second."""
    model, duration = timed(fit)
    durations = [duration]
    while len(durations) < 3 and sum(durations) + duration < 1.0:
        durations.append(timed(fit)[1])
    return model, min(durations)


def limited(fit: Callable[[], Any], limit: float | None) -> tuple[Any, float] | None:
    """Return what ``fastest`` does, of a copy of the process, or None after ``limit``.

    The first fit of a copy pays for its new memory.
    """
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()

    def run() -> None:
        try:
            there.send(fastest(fit))
        except Exception as error:
            print(error)
            there.send(None)

    process = context.Process(target=run)
    process.start()
    answer = here.recv() if here.poll(limit) else None
    process.kill()
    process.join()
    return answer


def ours(X: Any, y: Any, alpha: float, tol: float, solver: str = "auto") -> Any:
    return L1LogisticOWLQN(
        alpha, fit_intercept=False, tol=tol, solver=solver, max_iter=5000
    ).fit(X, y)


def smooth_part(X: Any, y: Any) -> Callable[[Any], tuple[Any, Any]]:
    """Return the function from coefficients to losses of rows and the mean's gradient.

    Coefficients are flat, of a row for each feature where there are several classes.
    """
    n, n_classes = len(y), int(y.max()) + 1

    def binary(w: Any) -> tuple[Any, Any]:
        margins = y * (X @ w)
        return np.logaddexp(0.0, -margins), X.T @ (-y * expit(-margins) / n)

    def multinomial(w: Any) -> tuple[Any, Any]:
        logs = log_softmax(X @ w.reshape(-1, n_classes), axis=1)
        change = np.exp(logs)
        change[np.arange(n), y] -= 1.0
        return -logs[np.arange(n), y], (X.T @ (change / n)).ravel()

    return multinomial if y.min() >= 0 else binary


def owlqn_of_pylbfgs(
    X: Any, y: Any, alpha: float, n_iter: int, start: Any = None, memory: int = 6
) -> Any:
    """Return the coefficients after so many iterations, of rows a class for classes."""
    from lbfgs import LBFGS, LBFGSError

    losses_and_gradient = smooth_part(X, y)

    def function(w: Any, gradient: Any) -> float:
        losses, gradient[:] = losses_and_gradient(w)
        return float(losses.mean())

    n_classes = int(y.max()) + 1 if y.min() >= 0 else 1
    method = LBFGS()
    method.orthantwise_c = alpha
    method.linesearch = "wolfe"
    method.max_iterations = n_iter
    method.epsilon = 1e-14
    method.m = memory
    seen = [np.zeros(X.shape[1] * n_classes) if start is None else start.T.ravel()]

    def progress(w: Any, *_: Any) -> int:
        seen[0] = np.array(w)
        return 0

    # It raises at its limit on the iterations.
    with contextlib.suppress(LBFGSError):
        seen[0] = method.minimize(function, seen[0].copy(), progress)
    return seen[0].reshape(-1, n_classes).T


def best_of_its_signs(X: Any, y: Any, alpha: float, start: Any, n_iter: int) -> Any:
    """Return the best coefficients with the signs of ``start``, by SciPy's L-BFGS-B.

    Those that are zero there get a sign where their gradient is near alpha, others
    stay zero. Losses are less those of the start, so that their last digits count.
    """
    n_classes = len(start)
    w = start.T.ravel()
    gradient = smooth_part(X, y)(w)[1]
    signs = np.where(w != 0.0, np.sign(w), -np.sign(gradient))
    signs[(w == 0.0) & (np.abs(gradient) < NEAR_ALPHA * alpha)] = 0.0
    used = np.flatnonzero(signs.reshape(-1, n_classes).any(axis=1))
    signs = signs.reshape(-1, n_classes)[used].ravel()
    free = signs != 0.0
    signs = signs[free]
    losses_and_gradient = smooth_part(X[:, used], y)

    def inside(sizes: Any) -> Any:
        coef = np.zeros(len(free))
        coef[free] = signs * sizes
        return coef

    first = np.abs(start.T[used].ravel()[free])
    losses_before, _ = losses_and_gradient(inside(first))

    def change(sizes: Any) -> tuple[float, Any]:
        losses, gradient = losses_and_gradient(inside(sizes))
        value = (losses - losses_before).mean() + alpha * (sizes - first).sum()
        return value / alpha, signs * gradient[free] / alpha + 1.0

    options = {"maxcor": 60, "maxiter": n_iter, "maxfun": 2 * n_iter, "gtol": 1e-12}
    sizes = minimize(
        change,
        first,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * len(first),
        options=options | {"ftol": 0.0},
    ).x
    coef = np.zeros((X.shape[1], n_classes))
    coef[used] = inside(sizes).reshape(-1, n_classes)
    return coef.T


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
        fit = limited(lambda gap=gap: ours(X, y, alpha, gap).coef_, None)
        if fit is not None:
            seconds["ours"][f"{gap:g}"] = fit[1]
    compiling: dict[str, float] = {}
    key = f"{data.name} | {alpha:g}"
    closest = tuple(results.get(key, "closest_peer", (np.inf, "")))
    for name, (ladder, fit) in peers(X, y, alpha, compiling).items():
        if chosen and name not in chosen:
            continue
        reached = seconds[name] = {}
        spent = 0.0
        for setting in ladder:
            answer = limited(lambda fit=fit, setting=setting: fit(setting), 3 * limit)
            if answer is None:
                break
            coef, duration = answer
            spent += duration
            excess = objective(X, y, coef, alpha) / best - 1.0
            closest = min(closest, (excess, name))
            for gap in GAPS:
                known = reached.get(f"{gap:g}", np.inf)
                if excess <= gap and duration < known:
                    reached[f"{gap:g}"] = duration
            if spent > limit or excess <= AGREEMENT:
                break
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


def agree(
    results: common.Results, data: Any, row: dict[str, Any], seconds: float
) -> None:
    """Let peers run to 1e-10 until one agrees, or for so many seconds each.

    SciPy's L-BFGS-B, last, begins with what the one before ended at.
    """
    X, y, alpha = data.X, data.y, row["alpha"]
    exact = ours(X, y, alpha, 1e-10)
    C = 1.0 / (len(y) * alpha)
    options = {"l1_ratio": 1.0, "C": C, "fit_intercept": False, "random_state": 0}

    def of_scikit_learn(solver: str, n_iter: int) -> Any:
        model = LogisticRegression(solver=solver, max_iter=n_iter, tol=1e-10, **options)
        return model.fit(X, y).coef_

    # Longer fits of saga begin anew: it forgets the gradients of the rows between fits,
    # and is thrown back by their first approximations.
    ladders = {"liblinear": (1000,), "scipy": (6000,) * 3}
    if y.min() >= 0:
        ladders = {"saga": (400, 3200), "pylbfgs": (3000,) * 5, "scipy": (6000,) * 3}
    closest = tuple(row["closest_peer"])
    coef = None
    for name, ladder in ladders.items():
        begin = time.process_time()
        for number, n_iter in enumerate(ladder):
            if closest[0] <= AGREEMENT_AT_LAST or time.process_time() - begin > seconds:
                break
            if name == "scipy":
                coef = best_of_its_signs(X, y, alpha, coef, n_iter)
            elif name == "pylbfgs":
                # From where it ended, with new pairs.
                start = coef if number else None
                coef = owlqn_of_pylbfgs(X, y, alpha, n_iter, start, PAIRS_OF_PYLBFGS)
            else:
                coef = of_scikit_learn(name, n_iter)
            excess = objective(X, y, coef, alpha) / exact.objective_ - 1.0
            closest = min(closest, (excess, name))
            print(data.name, alpha, name, n_iter, excess, flush=True)
    proven = exact.dual_gap_ / exact.objective_
    row = row | {"proven_gap": proven, "closest_peer": closest}
    results.add(row.pop("key"), **row)


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
    if args.agree:
        for row in results.content["rows"]:
            wanted = row["data"] == name and row["alpha"] in (alphas or [row["alpha"]])
            if wanted and row["closest_peer"][0] > AGREEMENT_AT_LAST:
                agree(results, data, row, args.agree)
        return
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
    agree={"default": float, "help": "seconds of peers to 1e-10; times nothing"},
)

if __name__ == "__main__":
    BENCHMARK.run()

"""Regularized stochastic BFGS: Mokhtari and Ribeiro 2014, figures 1 to 4.

The source leaves open the starting point w0 and B0 = beta I, and states the squared
hinge, whose optimum its figures go below; *half* of it they can reach. An objective F
with half the loss is half of one with the loss and twice the alpha, and steps for the
one are steps for the other with beta and delta twice, and Gamma and SGD's eta0 half.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import common
import numpy as np
from _harness import new_figure

from sklearn_subqn import BMRMClassifier, OnlineLBFGSClassifier

from ._case import Case, Draw, Settings

ALPHA, DELTA, GAMMA = 1e-3, 1e-3, 1e-4
GRID = sorted({5 * round(2 ** (i / 8)) for i in range(76)} | {315, 1740, 2500, 3500})
STYLES = {"RES": "C0", "SGD": "C3", "BFGS": "C7"}
# Of the source, by dimension and data points.
PUBLISHED = {
    4: {("RES", 315): 6.5e-2, ("SGD", 1740): 6.5e-2, ("RES", 2500): 4.14e-2,
        ("SGD", 2500): 6.31e-2},
    40: {("RES", 3500): 5.55e-4, ("SGD", 3500): 1.80e-2},
}  # fmt: skip


def sample(n: int, n_rows: int, rng: Any) -> tuple[Any, Any]:
    """Return rows uniform in [-0.8, 0.2] and in [-0.2, 0.8], half of them each."""
    X = rng.uniform(-0.8, 0.2, size=(n_rows, n))
    y = np.where(np.arange(n_rows) % 2, 1, -1)
    X[y > 0] += 0.6
    return X, y


def model(
    method: str,
    scale: float,
    *,
    beta: float = 1.0,
    eta0: float = 3e-2,
    tau: Any = 100.0,
) -> Any:
    """Return an estimator of scale times the loss plus the penalty, over the scale."""
    options: dict[str, Any] = {"eta0": eta0} | ({"tau": tau} if tau else {})
    if method == "SGD":
        options["eta0"] *= scale
    else:
        regularized = method == "RES"
        options |= {"b0": beta / scale, "delta": DELTA / scale * regularized}
        options["gamma"] = GAMMA * scale * regularized
    return OnlineLBFGSClassifier(
        "squared_hinge",
        alpha=ALPHA / scale,
        solver="sgd" if method == "SGD" else "res-bfgs",
        solver_options=options,
        batch_size=1 if method == "SGD" else 5,
        fit_intercept=False,
        average=False,
        max_iter=1,
    )


def value(w: Any, X: Any, y: Any, scale: float) -> float:
    loss = np.mean(np.maximum(0.0, 1.0 - y * (X @ w)) ** 2)
    return 0.5 * ALPHA * float(w @ w) + scale * float(loss)


def curve(
    estimator: Any, data: Any, w0: Any, scale: float, grid: list[int], rng: Any
) -> list[float]:
    """Return F at numbers of data points, drawn with replacement."""
    X, y = data
    values, points = [], 0
    for until in grid:
        rows = rng.integers(0, len(y), until - points)
        if points == 0:
            # A batch of both classes, from w0.
            first, rows = rows[:5], rows[5:]
            first[:2] = 0, 1
            estimator.fit(X[first], y[first], coef_init=w0[np.newaxis])
        if len(rows):
            try:
                estimator.partial_fit(X[rows], y[rows])
            except FloatingPointError:
                return values
        points = until
        values.append(value(estimator.coef_[0], X, y, scale))
    return values


def optimum(data: Any, scale: float) -> float:
    settings: dict[str, Any] = {"loss": "squared_hinge", "fit_intercept": False}
    fitted = BMRMClassifier(ALPHA / scale, tol=1e-9, **settings).fit(*data)
    return scale * float(fitted.objective_)


def curves(n: int, start: float, settings: Settings) -> tuple[str, Draw]:
    """Objectives by data points (figures 1 and 2)."""
    data = sample(n, 10_000, np.random.default_rng(n))
    columns = [p for p in (315, 1740, 2500, 3500) if n == 40 or p < 3500]
    lines, drawn = [], {}
    for scale in (1.0, 0.5):
        best = optimum(data, scale)
        for method, beta in (("RES", 2e-3), ("RES", 1e-2), ("RES", 1.0), ("SGD", 1.0)):
            runs = [
                curve(
                    model(method, scale, beta=beta),
                    data,
                    np.full(n, start),
                    scale,
                    GRID,
                    np.random.default_rng([seed, n]),
                )
                for seed in range(10 if settings.full else 5)
            ]
            median = np.median(runs, axis=0)
            name = f"RES, β = {beta:g}" if method == "RES" else method
            told = "as stated" if scale == 1.0 else "half"
            cells = [f"{median[GRID.index(p)]:.3g}" for p in columns]
            lines.append([told, f"{best:.3g}", name, *cells])
            if scale == 0.5 and (method == "SGD" or beta == 2e-3):
                drawn[method] = median
    for method in ("RES", "SGD"):
        known = [PUBLISHED[n].get((method, p)) for p in columns]
        cells = [f"{v:.3g}" if v else "" for v in known]
        lines.append(["published", "", method, *cells])
    header = ["loss", "optimum", "method", *(f"F at {p}" for p in columns)]
    text = f"Medians, w0 = ({start:g}, ..., {start:g}):\n\n"
    return text + common.markdown_table(header, lines), partial(draw, n, best, drawn)


def draw(n: int, best: float, drawn: Any) -> Any:
    figure, axes = new_figure(1, 1, (4.2, 3.2))
    ax = axes[0, 0]
    for method, median in drawn.items():
        ax.loglog(GRID, median, STYLES[method], label=method)
    for (method, points), published in PUBLISHED[n].items():
        ax.plot(points, published, "x", color=STYLES[method])
    ax.axhline(best, color="0.8", lw=0.8)
    ax.set(xlabel="feature vectors; crosses: published", ylabel="F, half the loss")
    ax.legend(fontsize=7)
    return figure


def histogram(settings: Settings) -> tuple[str, Draw]:
    """Shares of test rows after one pass over 2500 rows, n = 4 (figure 3)."""
    n_runs = 1000 if settings.full else 60
    lines, shares = [], {}
    for method, beta in (("RES", 2e-3), ("RES", 1.0), ("SGD", 1.0)):
        found = []
        for seed in range(n_runs):
            rng = np.random.default_rng([seed, 3])
            (X, y), test = sample(4, 2500, rng), sample(4, 10_000, rng)
            rows = rng.permutation(2500)
            fitted = model(method, 0.5, beta=beta)
            fitted.partial_fit(X[rows], y[rows], classes=[-1, 1])
            margins = test[1] * (test[0] @ fitted.coef_[0])
            found.append((100 * np.mean(margins > 0), 100 * np.mean(margins >= 1)))
        right, beyond = shares[method, beta] = np.transpose(found)
        name = f"RES, β = {beta:g}" if method == "RES" else method
        bounds = (f(x) for x in (right, beyond) for f in (np.mean, np.min, np.max))
        lines.append([name, *(f"{x:.1f}" for x in bounds)])
    lines += [["published, RES", "82.2", *4 * [""]], ["published, SGD", "", "", "65"]]
    lines[-1] += 3 * [""]
    lines[-2] += [""]
    header = ["method", "accuracy, %: mean", "lowest", "highest"]
    header += ["rows with y w·x ≥ 1, %: mean", "lowest", "highest"]
    text = f"{n_runs} realizations, half the loss, w0 = 0:\n\n"
    return text + common.markdown_table(header, lines), partial(draw_histogram, shares)


def draw_histogram(shares: Any) -> Any:
    figure, axes = new_figure(1, 1, (4.2, 3.2))
    bins = np.linspace(0, 100, 101)
    for (method, beta), (right, beyond) in shares.items():
        if method == "SGD" or beta != 1.0:
            color = STYLES[method]
            axes[0, 0].hist(right, bins, histtype="step", color=color, label=method)
            axes[0, 0].hist(beyond, bins, alpha=0.5, color=color)
    axes[0, 0].set(xlabel="% of test rows: right (lines), y w·x ≥ 1 (areas)")
    axes[0, 0].legend(fontsize=7)
    return figure


def regularization(settings: Settings) -> tuple[str, Draw]:
    """A constant step of 0.1, n = 10, with and without regularization (figure 4)."""
    data = sample(10, 10_000, np.random.default_rng(10))
    best, grid = optimum(data, 0.5), [*range(25, 10_001, 25)]
    lines, drawn = [], {}
    for method in ("RES", "BFGS", "SGD"):
        runs = [
            curve(
                model(method, 0.5, eta0=0.1, tau=None),
                data,
                np.zeros(10),
                0.5,
                grid,
                np.random.default_rng([seed, 10]),
            )
            for seed in range(10 if settings.full else 5)
        ]
        whole = [run for run in runs if len(run) == len(grid)]
        last = f"{np.median([run[-1] for run in whole]):.3g}" if whole else "–"
        largest = np.median([max(run[100:], default=np.inf) for run in runs])
        broken = f"{len(runs) - len(whole)} of {len(runs)}"
        lines.append([method, last, f"{largest:.3g}", broken])
        drawn[method] = runs[0]
    header = ["method", "F after 10000", "largest F from 2500 on", "broke down"]
    text = f"Medians; the optimum is {best:.3g}; half the loss, w0 = 0, B0 = I:\n\n"

    def draw() -> Any:
        figure, axes = new_figure(1, 1, (4.2, 3.2))
        for method, values in drawn.items():
            points = grid[: len(values)]
            axes[0, 0].semilogy(points, values, STYLES[method], lw=1, label=method)
        axes[0, 0].set(xlabel="feature vectors", ylabel="F")
        axes[0, 0].legend(fontsize=7)
        return figure

    return text + common.markdown_table(header, lines), draw


SOURCE = "Mokhtari and Ribeiro 2014, figure"
CASES = [
    Case("mokhtari-1", f"{SOURCE} 1: n = 4", partial(curves, 4, 0.0)),
    Case("mokhtari-2", f"{SOURCE} 2: n = 40", partial(curves, 40, 1.0)),
    Case("mokhtari-3", f"{SOURCE} 3: accuracies, n = 4", histogram),
    Case("mokhtari-4", f"{SOURCE} 4: constant steps, n = 10", regularization),
]

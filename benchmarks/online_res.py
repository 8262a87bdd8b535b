"""Section 4 of Mokhtari and Ribeiro 2014: RES against SGD and unregularized BFGS.

    python benchmarks/online_res.py

Squared hinge on uniform features, n = 4, 10 and 40: the objective against the number of
feature vectors processed (figures 1, 2 and 4) and the histogram of figure 3. Writes
results/online_res.json and .png. No data needed.

The source leaves open the starting point w_0 and B_0 = beta I, so that several are
measured, and states the loss as max(0, 1 - y w.x)². Its figures are only possible with
half of that: they go below the optimum of the stated objective. Both are measured.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import common
import numpy as np
from scipy.optimize import minimize

from sklearn_subqn._core.online import online_method

NAME = "online_res"
N_ROWS = 10_000
ALPHA = 1e-3
BETAS = [2e-3, 3e-3, 1e-2, 3e-2, 1e-1, 1.0]
HISTOGRAM_BETAS = [2e-3, 1e-2, 1.0]
BETA = 2e-3  # of what is drawn
STEPS = {"eta0": 3e-2, "tau": 100.0}
#: Figures of the source: (dimension, method, data points) to objective.
PUBLISHED = {
    (4, "RES", 315): 6.5e-2,
    (4, "SGD", 1740): 6.5e-2,
    (4, "RES", 2500): 4.14e-2,
    (4, "SGD", 2500): 6.31e-2,
    (40, "RES", 3500): 5.55e-4,
    (40, "SGD", 3500): 1.80e-2,
}
GRID = sorted({5 * round(2 ** (i / 8)) for i in range(89)} | {315, 1740, 2500, 3500})
STARTS = {"0": np.zeros, "1": np.ones}


class Batch:
    """ALPHA / 2 ||w||² + scale * mean of max(0, 1 - y w.x)²."""

    def __init__(self, X: np.ndarray, y: np.ndarray, scale: float) -> None:
        self._signed, self._scale = y[:, None] * X, scale

    def take(self, rows: np.ndarray) -> Batch:
        part = Batch.__new__(Batch)
        part._signed, part._scale = self._signed[rows], self._scale
        return part

    def value_and_gradient(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        slack = np.maximum(0.0, 1.0 - self._signed @ w)
        factor = 2.0 * self._scale / len(slack)
        return self._value(w, slack), ALPHA * w - factor * (slack @ self._signed)

    def value(self, w: np.ndarray) -> float:
        return self._value(w, np.maximum(0.0, 1.0 - self._signed @ w))

    def _value(self, w: np.ndarray, slack: np.ndarray) -> float:
        return 0.5 * ALPHA * float(w @ w) + self._scale * float(np.mean(slack**2))

    def gradient(self, w: np.ndarray) -> np.ndarray:
        return self.value_and_gradient(w)[1]

    def correct(self, w: np.ndarray) -> tuple[float, float]:
        """Return the shares of rows with y w.x > 0 and with y w.x >= 1."""
        margins = self._signed @ w
        return float(np.mean(margins > 0.0)), float(np.mean(margins >= 1.0))

    def __len__(self) -> int:
        return len(self._signed)


def sample(n: int, n_rows: int, scale: float, rng: np.random.Generator) -> Batch:
    """Return rows uniform in [-0.8, 0.2] and in [-0.2, 0.8], half of them each."""
    X = rng.uniform(-0.8, 0.2, size=(n_rows, n))
    y = np.where(np.arange(n_rows) % 2, 1.0, -1.0)
    X[y > 0.0] += 0.6
    return Batch(X, y, scale)


def run(
    method: Any, size: int, w0: np.ndarray, data: Batch, rng: np.random.Generator
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield data points and w for ever, batches drawn uniformly from the data."""
    state = method.start(w0)
    while True:
        yield size * state.n_steps, state.w
        batch = data.take(rng.integers(0, len(data), size))
        state = method.step(batch, state)


def methods(beta: float) -> dict[str, tuple[Any, int]]:
    """Return each method with its batch size, as in figures 1 to 3."""
    return {
        "RES": (online_method("res-bfgs", b0=beta, **STEPS), 5),
        "SGD": (online_method("sgd", **STEPS), 1),
    }


def optimum(data: Batch, n: int) -> float:
    found = minimize(
        data.value_and_gradient,
        np.zeros(n),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 5000, "gtol": 1e-10, "ftol": 1e-15},
    )
    return float(found.fun)


def measure_curves(results: common.Results, n_runs: int) -> None:
    """Objectives against data points, n = 4 and 40 (figures 1 and 2)."""
    for n in (4, 40):
        for scale in (1.0, 0.5):
            data = sample(n, N_ROWS, scale, np.random.default_rng(n))
            best = optimum(data, n)
            for start, w0 in STARTS.items():
                for beta in BETAS:
                    for name, (method, size) in methods(beta).items():
                        if name == "SGD" and beta != BETAS[0]:
                            continue
                        curves, reached = [], []
                        for seed in range(n_runs):
                            rng = np.random.default_rng([seed, n])
                            iterates = run(method, size, w0(n), data, rng)
                            curve, first = trace(iterates, data, n == 4)
                            curves.append(curve)
                            reached.append(first)
                        shown = f"RES, β = {beta:g}" if name == "RES" else name
                        problem = f"n = {n} | scale {scale:g} | w0 = {start}"
                        results.add(
                            f"curve | {problem} | {shown}",
                            kind="curve",
                            n=n,
                            scale=scale,
                            start=start,
                            method=name,
                            beta=beta,
                            optimum=best,
                            reached=reached,
                            curve=np.median(curves, axis=0).round(7).tolist(),
                        )
                        print(n, scale, start, shown, flush=True)


def trace(
    iterates: Iterator[Any], data: Batch, watch: bool
) -> tuple[list[float], int | None]:
    """Return the objective at GRID and, if asked, the data points to 6.5e-2."""
    curve: list[float] = []
    first = None
    for points, w in iterates:
        on_grid = GRID[len(curve)] <= points
        if on_grid or (watch and first is None):
            value = data.value(w)
            if first is None and value <= 6.5e-2:
                first = points
            while len(curve) < len(GRID) and GRID[len(curve)] <= points:
                curve.append(value)
        if points >= GRID[-1]:
            return curve, first
    raise AssertionError("iterates end")


def measure_histogram(results: common.Results, n_runs: int) -> None:
    """Shares of test rows, n = 4, after 2500 points; 1000 realizations (figure 3)."""
    for beta in HISTOGRAM_BETAS:
        for name, (method, size) in methods(beta).items():
            if name == "SGD" and beta != HISTOGRAM_BETAS[0]:
                continue
            shares = []
            for seed in range(n_runs):
                rng = np.random.default_rng([seed, 3])
                train, test = (sample(4, n_rows, 0.5, rng) for n_rows in (2500, N_ROWS))
                order = rng.permutation(2500).reshape(-1, size)
                state = method.start(np.zeros(4))
                for rows in order:
                    state = method.step(train.take(rows), state)
                shares.append(test.correct(state.w))
            right, beyond = np.transpose(shares).round(4).tolist()
            shown = f"RES, β = {beta:g}" if name == "RES" else name
            results.add(
                f"histogram | {shown}",
                kind="histogram",
                method=name,
                beta=beta,
                accuracy=right,
                zero_loss=beyond,
            )
            print("histogram", shown, flush=True)


def measure_regularization(results: common.Results, n_runs: int) -> None:
    """Constant step 0.1, n = 10, with and without regularization (figure 4)."""
    data = sample(10, N_ROWS, 0.5, np.random.default_rng(10))
    settings = {
        "RES": (online_method("res-bfgs", eta0=0.1), 5),
        "BFGS": (online_method("res-bfgs", eta0=0.1, delta=0.0, gamma=0.0), 5),
        "SGD": (online_method("sgd", eta0=0.1), 1),
    }
    best = optimum(data, 10)
    for name, (method, size) in settings.items():
        curves = []
        for seed in range(n_runs):
            rng = np.random.default_rng([seed, 10])
            values = []
            try:
                for points, w in run(method, size, np.zeros(10), data, rng):
                    if points % 25 == 0:
                        values.append(data.value(w))
                    if points >= N_ROWS:
                        break
            except FloatingPointError:
                pass
            curves.append(values)
        results.add(
            f"regularization | {name}",
            kind="regularization",
            method=name,
            optimum=best,
            final=[c[-1] if len(c) == 401 else None for c in curves],
            largest=[max(c[100:], default=np.inf) for c in curves],
            curve=[float(f"{v:.4g}") for v in curves[0]],
        )
        print("regularization", name, flush=True)


def at(row: dict[str, Any], points: int) -> float:
    return row["curve"][GRID.index(points)]


def quantiles(values: list[float | None], digits: int = 3) -> str:
    finite = [np.inf if v is None else v for v in values]
    low, middle, high = (
        f"{v:.{digits}g}"
        for v in np.quantile(finite, [0.1, 0.5, 0.9], method="nearest")
    )
    return f"{middle} ({low} to {high})"


def render(results: dict[str, Any]) -> str:
    """Return Markdown tables beside the figures of the source."""
    rows = results["rows"]
    curves = [row for row in rows if row["kind"] == "curve"]
    parts = []
    for n, columns in ((4, (315, 1740, 2500)), (40, (315, 3500))):
        lines = []
        for row in curves:
            if row["n"] != n:
                continue
            name = row["method"]
            name += f", β = {row['beta']:g}" if name == "RES" else ""
            cells = [f"{at(row, points):.3g}" for points in columns]
            if n == 4:
                cells.append(quantiles(row["reached"]))
            stated = "as stated" if row["scale"] == 1.0 else "half"
            lines.append([stated, f"{row['optimum']:.3g}", row["start"], name, *cells])
        for name in ("RES", "SGD"):
            cells = [
                f"{v:.3g}" if (v := PUBLISHED.get((n, name, points))) else ""
                for points in columns
            ]
            if n == 4:
                cells.append("315" if name == "RES" else "1740")
            lines.append(["published", "", "?", name, *cells])
        header = ["loss", "optimum", "w₀", "method", *(f"F at {p}" for p in columns)]
        if n == 4:
            header.append("points to 6.5e-2")
        parts.append(
            f"n = {n}: median objective by number of feature vectors"
            + (" (in brackets 10 % and 90 % of the runs):" if n == 4 else ":")
            + "\n\n"
            + common.markdown_table(header, lines)
        )
    lines = []
    for row in rows:
        if row["kind"] != "histogram":
            continue
        name = row["method"]
        name += f", β = {row['beta']:g}" if name == "RES" else ""
        lines.append([name])
        for column in ("accuracy", "zero_loss"):
            values = 100 * np.array(row[column])
            lines[-1] += [f"{values.mean():.1f}", f"{values.min():.1f}"]
            lines[-1] += [f"{values.max():.1f}"]
    lines.append(["published, RES", "82.2", "", "", "", "", ""])
    lines.append(["published, SGD", "", "", "65", "", "", ""])
    header = ["method", "accuracy, %: mean", "lowest", "highest"]
    header += ["rows with y w·x ≥ 1, %: mean", "lowest", "highest"]
    parts.append(
        "n = 4, after one pass over 2500 rows, half loss, w₀ = 0 (figure 3):\n\n"
        + common.markdown_table(header, lines)
    )
    lines = []
    for row in rows:
        if row["kind"] == "regularization":
            broken = sum(v is None for v in row["final"])
            cells = [quantiles(row["final"]), quantiles(row["largest"])]
            lines.append([row["method"], *cells, f"{broken} of {len(row['final'])}"])
    best = next(row["optimum"] for row in rows if row["kind"] == "regularization")
    header = ["method", "F after 10000 points", "largest F from 2500 points on"]
    header.append("runs that broke down")
    parts.append(
        f"n = 10, constant step 0.1, optimum {best:.3g}, half loss, w₀ = 0, B₀ = I "
        "(figure 4); medians, in brackets 10 % and 90 % of the runs:\n\n"
        + common.markdown_table(header, lines)
    )
    return "\n\n".join(parts)


def plot(results: dict[str, Any]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(10, 8), layout="constrained")
    rows = results["rows"]
    colours = {"RES": "C0", "SGD": "C3", "BFGS": "0.5"}
    for ax, n, start in ((axes[0, 0], 4, "0"), (axes[0, 1], 40, "1")):
        for row in rows:
            if row["kind"] != "curve" or row["scale"] != 0.5 or row["n"] != n:
                continue
            name = row["method"]
            if row["start"] != start or (name == "RES" and row["beta"] != BETA):
                continue
            ax.loglog(GRID, row["curve"], color=colours[name], label=name)
            for (dim, method, points), value in PUBLISHED.items():
                if (dim, method) == (n, name):
                    ax.plot(points, value, "x", color=colours[name])
            ax.axhline(row["optimum"], color="0.8", lw=0.8, zorder=0)
        ax.set(xlabel="feature vectors", ylabel="F")
        ax.set_title(f"n = {n}, w₀ = {start}; crosses: published", fontsize=10)
        ax.legend()
    ax = axes[1, 0]
    for row in rows:
        if row["kind"] == "histogram" and row["beta"] == HISTOGRAM_BETAS[0]:
            name = row["method"]
            for column, style in (("accuracy", "step"), ("zero_loss", "stepfilled")):
                label = "accuracy" if column == "accuracy" else "y w·x ≥ 1"
                values = 100 * np.array(row[column])
                ax.hist(
                    values,
                    bins=np.linspace(0, 100, 101),
                    histtype=style,
                    alpha=0.6,
                    color=colours[name],
                    label=f"{name}, {label}",
                )
    ax.set(xlabel="% of test rows", ylabel="realizations")
    ax.set_title("n = 4, 2500 rows", fontsize=10)
    ax.legend(fontsize=8)
    ax = axes[1, 1]
    for row in rows:
        if row["kind"] == "regularization":
            points = 25 * np.arange(len(row["curve"]))
            name = row["method"]
            ax.semilogy(points, row["curve"], color=colours[name], label=name, lw=1)
    ax.set(xlabel="feature vectors", ylabel="F")
    ax.set_title("n = 10, constant step", fontsize=10)
    ax.legend()
    figure.savefig(common.RESULTS / f"{NAME}.png", dpi=120)


def main() -> None:
    p = argparse.ArgumentParser(description="Mokhtari and Ribeiro 2014, section 4.")
    p.add_argument("--runs", type=int, default=10)
    p.add_argument("--realizations", type=int, default=1000)
    args = p.parse_args()
    results = common.Results(NAME, fresh=True)
    with np.errstate(all="ignore"):
        measure_regularization(results, args.runs)
        measure_curves(results, args.runs)
        measure_histogram(results, args.realizations)
    common.show(NAME, render)
    try:
        plot(common.read_results(NAME))
    except ImportError:
        print("matplotlib is missing: no figure")


if __name__ == "__main__":
    main()

"""L-BFGS against subLBFGS on a nonsmooth objective: Yu 2009, figure 3.2 (left).

    python benchmarks/leukemia.py --data-dir DIR

Objective against iterations on the Leukemia data (38 rows, 7129 columns), binary hinge
without intercept, 15 pairs: classical L-BFGS with an exact line search, which lands on
kinks and fails there; with an inexact one, which avoids them; and subLBFGS, which needs
not. Writes results/leukemia.csv, .png (with matplotlib) and .json. The source does not
state its regularization constant; the default here shows what its figure shows.
"""

from __future__ import annotations

import csv
import itertools
from functools import partial
from typing import Any

import common
import datasets
import numpy as np

from sklearn_subqn import SubLBFGSLinearSVC

NAME = "leukemia"
# name: (whether the line search is exact, colour, line style)
METHODS = {
    "subLBFGS": (True, "k", "-"),
    "L-BFGS, exact line search": (True, "C3", "--"),
    "L-BFGS, inexact line search": (False, "C0", ":"),
}


def minimize(
    method: str, data: datasets.Dataset, alpha: float, n_iter: int
) -> dict[str, Any]:
    """Return the objectives of the iterates of a method, and how it ended."""
    from sklearn_subqn._core.design import Design
    from sklearn_subqn._core.line_search import exact, wolfe
    from sklearn_subqn._core.losses import BINARY_LOSSES
    from sklearn_subqn._core.objective import Objective
    from sklearn_subqn._core.quasi_newton import LimitedMemoryInverseHessian
    from sklearn_subqn._core.regularizers import L2
    from sklearn_subqn._core.risk import Risk
    from sklearn_subqn._core.solvers import bfgs, subbfgs

    n, d = data.X.shape
    design = Design(data.X, fit_intercept=False)
    problem = Objective(
        Risk(design, BINARY_LOSSES["hinge"], data.y, np.full(n, 1.0 / n)), L2(d), alpha
    )
    hessian = LimitedMemoryInverseHessian(d, 15)
    failures: list[int] = []
    objectives: list[float] = []
    # Both methods set B back to the identity where it gives no descent direction; the
    # source's L-BFGS fails there.
    reset = hessian.reset

    def record_reset() -> None:
        failures.append(len(objectives) - 1)
        reset()

    hessian.reset = record_reset
    # The inexact search of section 3.1: c1 = 1e-3, c2 = 0.8.
    search = exact if METHODS[method][0] else partial(wolfe, c1=1e-3, c2=0.8)
    solve = subbfgs if method == "subLBFGS" else bfgs
    solver = solve(problem, np.zeros(d), hessian, search=search)
    status = "limit of iterations"
    iterates = itertools.islice(_until_end(solver), n_iter + 1)
    for outcome in iterates:
        if isinstance(outcome, str):
            status = outcome
        else:
            objectives.append(outcome.point.value)
    return {"objective": objectives, "resets": failures, "status": status}


def _until_end(solver: Any) -> Any:
    status = yield from solver
    yield status


def render(results: dict[str, Any]) -> str:
    """Return a Markdown table of the results."""
    best = results["rows"][0]["optimum"]
    lines = []
    for row in results["rows"]:
        values = row["objective"]
        steps = [
            next((i for i, v in enumerate(values) if v <= (1 + g) * best), None)
            for g in (1e-1, 1e-2, 1e-3)
        ]
        resets = str(row["resets"][0]) if row["resets"] else "–"
        lines.append(
            [
                row["key"],
                *("–" if s is None else str(s) for s in steps),
                resets,
                str(len(values) - 1),
                f"{min(values):.6g}",
                row["status"],
            ]
        )
    header = [
        "method",
        "iterations to 1e-1",
        "1e-2",
        "1e-3",
        "first without descent after",
        "iterations",
        "best objective",
        "ended by",
    ]
    alpha = results["rows"][0]["alpha"]
    return (
        f"Leukemia, hinge, alpha = {alpha:g}, no intercept.\n\n"
        + common.markdown_table(header, lines)
    )


def plot(rows: dict[str, Any], alpha: float, optimum: float) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
    for method, (_, colour, style) in METHODS.items():
        values = rows[method]["objective"]
        axes.plot(values, style, color=colour, label=method, lw=1.5)
        if rows[method]["status"] == "no_descent":
            axes.plot(len(values) - 1, values[-1], "x", color=colour, ms=9)
    axes.axhline(optimum, color="0.8", lw=0.8, zorder=0)
    axes.set(
        xlabel="iterations",
        ylabel="objective",
        yscale="log",
        xscale="symlog",
        xlim=(0, None),
    )
    axes.set_title(f"Leukemia, hinge, alpha = {alpha:g}", fontsize=10)
    axes.legend(fontsize=8)
    figure.savefig(common.RESULTS / f"{NAME}.png", dpi=150)


def main() -> None:
    p = common.parser("Yu 2009, figure 3.2 (left).", ["leukemia"])
    p.add_argument("--alpha", type=float, default=1e-1)
    p.add_argument("--n-iter", type=int, default=500)
    args = p.parse_args()
    data = datasets.load(args.data[0], args.data_dir, args.cache_dir)
    rows = {m: minimize(m, data, args.alpha, args.n_iter) for m in METHODS}
    svm = SubLBFGSLinearSVC(args.alpha, solver="alm", fit_intercept=False, tol=1e-7)
    optimum = svm.fit(data.X, data.y).objective_
    results = common.Results(NAME, fresh=True)
    for method, row in rows.items():
        results.add(method, alpha=args.alpha, optimum=optimum, **row)
    with open(common.RESULTS / f"{NAME}.csv", "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["iteration", *METHODS])
        columns = [rows[method]["objective"] for method in METHODS]
        for i, values in enumerate(itertools.zip_longest(*columns, fillvalue="")):
            writer.writerow([i, *values])
    try:
        plot(rows, args.alpha, optimum)
    except ImportError:
        print("matplotlib is missing: no figure")
    common.show(NAME, render)


if __name__ == "__main__":
    main()

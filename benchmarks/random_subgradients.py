"""Figure 4.5 and Table 4.2 of Yu 2009: random subgradients in OWL-QN and OWL-QN*.

    python benchmarks/random_subgradients.py --data-dir DIR

Excess of J over the optimum by iterations, and the numbers k of direction-finding
iterations, until the averaged relative change of J over five iterations is below 1e-5
(Andrew and Gao 2007), as in the thesis. No intercept. How much there is to see depends
on how many coefficients are zero, that is, on --alpha. With that or with --iterations
the excesses at the end are printed, and results stay as they are.
"""

from __future__ import annotations

from typing import Any

import common
import datasets
import numpy as np

from sklearn_subqn._core.design import Design
from sklearn_subqn._core.losses import BINARY_LOSSES
from sklearn_subqn._core.objective import Objective
from sklearn_subqn._core.quasi_newton import LimitedMemoryInverseHessian
from sklearn_subqn._core.regularizers import ElasticNet
from sklearn_subqn._core.risk import Risk
from sklearn_subqn._core.solvers import L1_SOLVERS, Options, Start, run
from sklearn_subqn._core.solvers.owlqn import owlqn, owlqn_star
from sklearn_subqn._core.solvers.run import Result

NAME = "random_subgradients"
ALPHAS = {"covtype": 1e-5, "rcv1_ccat": 1e-6, "mnist": 1e-4, "a9a": 1e-4}
METHODS = {
    "OWL-QN": (owlqn, False),
    "OWL-QNr": (owlqn, True),
    "OWL-QN*": (owlqn_star, False),
    "OWL-QN*r": (owlqn_star, True),
}
# k of Table 4.2, from the subgradient of OWL-QN and from random ones.
PUBLISHED = {
    "covtype": {"OWL-QN*": 1, "OWL-QN*r": 2},
    "rcv1_ccat": {"OWL-QN*": 284, "OWL-QN*r": 406},
    "mnist": {"OWL-QN*": 55, "OWL-QN*r": 77},
    "a9a": {"OWL-QN*": 2, "OWL-QN*r": 6},
}
# The tolerance of the direction search, absolute in the thesis.
_DIRECTION_TOL = 1e-5
_WINDOW, _CHANGE, _MAX_ITER = 5, 1e-5, 2000


def has_converged(result: Result) -> bool:
    """Whether the criterion of Andrew and Gao holds."""
    values = result.history.objective
    if len(values) <= _WINDOW:
        return False
    fallen = (values[-1 - _WINDOW] - values[-1]) / _WINDOW
    return fallen < _CHANGE * values[-1]


def main() -> None:
    p = common.parser(__doc__, list(ALPHAS))
    p.add_argument("--iterations", type=int, help="so many, whatever J does")
    p.add_argument("--alpha", type=float, help="default: as in Table 4.2")
    args = p.parse_args()
    as_in_thesis = args.iterations is None and args.alpha is None
    results = common.Results(NAME, fresh=True) if as_in_thesis else None
    for name in args.data:
        data = datasets.load(name, args.data_dir, args.cache_dir)
        design = Design(data.X, fit_intercept=False)
        weights = np.full(len(data.y), 1.0 / len(data.y))
        penalty = ElasticNet(design.n_coef)
        alpha = args.alpha or ALPHAS[name]
        objective = Objective(
            Risk(design, BINARY_LOSSES["log_loss"], data.y, weights), penalty, alpha
        )
        start = Start(np.zeros(design.n_params))
        solver = L1_SOLVERS["auto"].start(objective, start, Options())
        best = run(solver, tol=1e-8, max_iter=200).point.value
        for label, (method, is_random) in METHODS.items():
            options: dict[str, Any] = {}
            if method is owlqn_star:
                options["direction_tol"] = _DIRECTION_TOL / best
            if is_random:
                options["random"] = np.random.default_rng(0)
            hessian = LimitedMemoryInverseHessian(design.n_params, 15)
            history = run(
                method(objective, start.w, hessian, **options),
                tol=0.0,
                max_iter=args.iterations or _MAX_ITER,
                report=None if args.iterations else has_converged,
            ).history
            excess = [max(value / best - 1.0, 0.0) for value in history.objective]
            if results is None:
                print(f"{name}, alpha={alpha:g}, {label}: {excess[-1]:.1e}")
                continue
            searches = [phase.partition(" ")[2] for phase in history.phase]
            results.add(
                f"{name} | {label}",
                data=f"{name}, alpha={alpha:g}",
                method=label,
                published=PUBLISHED[name].get(label),
                k=sum(int(s) for s in searches if s),
                excess=excess,
            )
    if results is None:
        return
    common.show(NAME, render)
    _draw(common.read_results(NAME)["rows"])


def render(results: dict[str, Any]) -> str:
    rows = []
    for row in results["rows"]:
        excess = row["excess"]
        star = "*" in row["method"]
        cells = [row["data"], row["method"], str(len(excess) - 1)]
        cells += [str(row["k"]) if star else "–", str(row["published"] or "–")]
        rows.append([*cells, f"{excess[-1]:.1e}"])
    header = ["data", "method (r: random)", "iterations", "k", "k in the thesis"]
    return (
        "Until the averaged relative change of J over five iterations is below 1e-5; "
        "k counts iterations of the direction search (Yu 2009, Alg. 3.2, tolerance "
        "1e-5).\n\n" + common.markdown_table([*header, "J / optimum - 1"], rows) + "\n"
    )


def _draw(rows: list[dict]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = sorted({row["data"] for row in rows})
    _, axes = plt.subplots(1, len(names), figsize=(5 * len(names), 4), squeeze=False)
    for ax, name in zip(axes[0], names, strict=True):
        for row in rows:
            if row["data"] == name:
                style = ":" if row["method"].endswith("r") else "-"
                label = f"{row['method']} (k = {row['k']})"
                ax.semilogy(np.maximum(row["excess"], 1e-12), style, label=label)
        ax.set(title=name, xlabel="iterations", ylabel="relative excess of J")
        ax.legend()
    plt.tight_layout()
    plt.savefig(common.RESULTS / f"{NAME}.png", dpi=100)


if __name__ == "__main__":
    main()

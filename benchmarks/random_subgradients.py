"""Figure 4.5 of Yu 2009: random subgradients break OWL-QN, not OWL-QN*.

    python benchmarks/random_subgradients.py --data-dir DIR

Excess of J over the optimum by iterations, and the numbers k of direction-finding
iterations of Table 4.2, on covtype unless told otherwise. No intercept. How much there
is to see depends on how many coefficients are zero, that is, on --alpha.
"""

from __future__ import annotations

import common
import datasets
import numpy as np

from sklearn_subqn._core.design import Design
from sklearn_subqn._core.losses import Logistic
from sklearn_subqn._core.objective import Objective
from sklearn_subqn._core.quasi_newton import LimitedMemoryInverseHessian
from sklearn_subqn._core.regularizers import ElasticNet
from sklearn_subqn._core.solvers import L1_SOLVERS, Options, Start, run
from sklearn_subqn._core.solvers.owlqn import owlqn, owlqn_star

NAME = "random_subgradients"
ALPHAS = {"covtype": 1e-5, "rcv1_ccat": 1e-6, "mnist": 1e-4, "a9a": 1e-4}
METHODS = {
    "OWL-QN": (owlqn, False),
    "OWL-QNr": (owlqn, True),
    "OWL-QN*": (owlqn_star, False),
    "OWL-QN*r": (owlqn_star, True),
}


def main() -> None:
    p = common.parser(__doc__, ["covtype"])
    p.add_argument("--max-iter", type=int, default=150)
    p.add_argument("--alpha", type=float, help="default: as in Table 4.2")
    args = p.parse_args()
    results = common.Results(NAME, fresh=True)
    for name in args.data:
        data = datasets.load(name, args.data_dir, args.cache_dir)
        design = Design(data.X, fit_intercept=False)
        weights = np.full(len(data.y), 1.0 / len(data.y))
        penalty = ElasticNet(design.n_coef)
        alpha = args.alpha or ALPHAS[name]
        objective = Objective(design, data.y, Logistic(), penalty, alpha, weights)
        start = Start(np.zeros(design.n_params))
        solver = L1_SOLVERS["auto"].start(objective, start, Options())
        best = run(solver, tol=1e-8, max_iter=200).point.value
        for label, (method, is_random) in METHODS.items():
            random = np.random.default_rng(0) if is_random else None
            hessian = LimitedMemoryInverseHessian(design.n_params, 15)
            solver = method(objective, start.w, hessian, random=random)
            history = run(solver, tol=0.0, max_iter=args.max_iter).history
            searches = [phase.partition(" ")[2] for phase in history.phase]
            results.add(
                f"{name} | {label}",
                data=f"{name}, alpha={alpha:g}",
                method=label,
                k=sum(int(s) for s in searches if s),
                excess=[max(value / best - 1.0, 0.0) for value in history.objective],
            )
    _draw(common.read_results(NAME)["rows"])


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

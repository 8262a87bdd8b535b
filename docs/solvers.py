"""Write the page of the table of solvers from the table: ``python docs/solvers.py``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sklearn_subqn._core.losses import MULTINOMIAL_LOSS, DualLoss, regression_losses
from sklearn_subqn._core.losses._label_order import LabelOrder
from sklearn_subqn._core.losses._metric import MultivariateSquared
from sklearn_subqn._core.losses._sets import Simplex
from sklearn_subqn._core.regularizers import (
    L2,
    Bounded,
    ElasticNet,
    EntropyPenalty,
    GroupPenalty,
    QuadraticForm,
    SquaredNorm,
)
from sklearn_subqn._core.solvers import SOLVERS
from sklearn_subqn._estimators.classification_losses import LOSSES
from sklearn_subqn._ranking.base_ranker import _PAIRS

PAGE = Path(__file__).resolve().parent / "solvers.md"

HEAD = """\
# What each solver takes

A solver takes a problem if it takes its loss and its penalty; all estimators of
linear scores go by this table, and the error for anything else lists what is taken.
The page is written from the table in `_core/solvers/table.py` by `python
docs/solvers.py`. Names of estimators that have one loss only, such as
`MulticlassHingeClassifier`, stand for it.

"""

NEEDS = """
*Losses.* Quasi-Newton methods for smooth losses need gradients; Newton's method and
coordinate descent (`cd`) second derivatives, `cd` those of single rows, which losses
of pairs of rows do not have. `cyclic-cd` minimizes over one coefficient exactly,
which has a formula for squared errors only. `alm` needs a smooth envelope,
`narrowing` smooth losses close to one of pairs. Subgradient BFGS needs the loss along
a line and its steepest subgradients, bundle methods values and subgradients. Losses
that grow exponentially have cuts and subgradients that say nothing far from the
minimizer: methods that cannot shorten steps do not take them.

*Penalties.* Quasi-Newton methods need a differentiable one, OWL-QN and OWL-QN\\* are
those for an L1 norm. Proximal methods need its proximity operator in closed form,
coordinate descent one that is a sum over coefficients. Methods that take steps freely
need it to be finite everywhere, which entropies and bounds are not. Newton's method,
its trust region, `alm` and `narrowing` are here for squared norms, whose second
derivatives are the identity; `bmrm-aggregated` has a closed form for these only.
"""


def losses() -> dict[str, DualLoss]:
    """Return the losses of estimators of linear scores by their names."""

    class Given:
        beta, k, loss = 1.0, 2, ""

    found = {}
    for name, make in LOSSES.items():
        Given.loss = name
        found[name] = DualLoss.of(make(Given))
    found |= {name: DualLoss.of(loss) for name, loss in regression_losses().items()}
    groups = np.zeros(2, dtype=int)
    for name, make in _PAIRS.items():
        found[name] = DualLoss.of(make(groups))
    found["squared_error with metric"] = DualLoss.of(MultivariateSquared(np.eye(2)))
    found["L1LogisticOWLQN of several classes"] = DualLoss.of(MULTINOMIAL_LOSS)
    found["MulticlassHingeClassifier, MultilabelHingeClassifier"] = DualLoss(
        Simplex(np.eye(2))
    )
    found['MultilabelHingeClassifier, reduction="mean"'] = DualLoss.of(
        LabelOrder(np.ones((2, 2)))
    )
    return found


PENALTIES = {
    "L2": L2(2),
    "L1, elastic net": ElasticNet(2),
    "Lp": SquaredNorm(2, 1.5),
    "quadratic": QuadraticForm(np.eye(2)),
    "entropies": EntropyPenalty(2),
    "norms of groups": GroupPenalty(
        np.zeros(2, int), np.zeros(1), np.ones(1), np.zeros(1)
    ),
    "bounds": Bounded(0.0, np.zeros(2), np.ones(2)),
}


def page() -> str:
    """Return the page as Markdown."""
    taken: dict[tuple[bool, ...], list[str]] = {}
    for name, loss in losses().items():
        key = tuple(
            any(spec.supports(loss, penalty) for penalty in PENALTIES.values())
            for spec in SOLVERS.values()
        )
        taken.setdefault(key, []).append(name)
    kinds = [f"({'abcdefghijklmnop'[i]})" for i in range(len(taken))]
    lines = ["| solver | " + " | ".join([*kinds, *PENALTIES]) + " |"]
    lines.append("|---" * (1 + len(kinds) + len(PENALTIES)) + "|")
    for place, (name, spec) in enumerate(SOLVERS.items()):
        marks = [key[place] for key in taken]
        marks += [spec.takes_penalty(penalty) for penalty in PENALTIES.values()]
        cells = ["x" if mark else "" for mark in marks]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    lines += ["", "Losses:", ""]
    for kind, names in zip(kinds, taken.values(), strict=True):
        lines.append(f"- {kind} " + ", ".join(map(_shown, names)))
    return HEAD + "\n".join(lines) + "\n" + NEEDS


def _shown(name: str) -> str:
    """Return the name of a loss as code, up to the first word that is not."""
    first, *rest = name.split(" ")
    if first.endswith(","):
        return ", ".join(f"`{each}`" for each in name.split(", "))
    return " ".join([f"`{first}`", *rest])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE.name} is written.")

"""Draw the pictures of the documentation, from generated data.

python examples/pictures.py docs/images
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from quickstart import make_text, make_unscaled
from sklearn.datasets import make_classification

from sklearn_subqn import (
    CoefficientPathDisplay,
    ConvergenceDisplay,
    L1LogisticOWLQN,
    L1LogisticOWLQNCV,
    PathScoreDisplay,
    SubLBFGSLinearSVC,
)


def convergence():
    """Draw a fit with its lower bound, and the gaps of several solvers."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    X, y = make_unscaled()
    clf = SubLBFGSLinearSVC(alpha=1e-4, tol=1e-6).fit(X, y)
    ConvergenceDisplay.from_estimator(clf, ax=left)
    left.set_title("Objective and proven lower bound")
    left.set(xlim=(0.0, 20.0), ylim=(0.0, 1.05))
    X, y = make_text()
    for solver in ("auto", "alm", "sublbfgs"):
        clf = SubLBFGSLinearSVC(alpha=1e-4, tol=1e-4, solver=solver, max_iter=300)
        clf.set_params(callback=lambda progress: progress.passes > 300).fit(X, y)
        ConvergenceDisplay.from_estimator(clf, kind="gap", ax=right, name=solver)
    # Where "auto" changes its method is marked on the left only.
    marks = [line for line in right.lines if line.get_linestyle() == ":"]
    for mark in [*right.texts, *marks]:
        mark.remove()
    right.set_title("Proven gap by solver, text-like data")
    return figure


def paths():
    """Draw coefficients and scores of sparse logistic regression along a path."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    X, y = make_classification(
        2_000, 60, n_informative=8, n_redundant=0, flip_y=0.1, random_state=0
    )
    clf = L1LogisticOWLQN()
    alphas = clf.alpha_max(X, y) * np.geomspace(1.0, 1e-3, 40)
    CoefficientPathDisplay.from_estimator(clf, X, y, alphas, ax=left)
    left.set_title("Coefficients of all samples")
    search = L1LogisticOWLQNCV(alphas=40, scoring="neg_log_loss").fit(X, y)
    PathScoreDisplay.from_estimator(search, ax=right)
    right.set_title("Scores on left-out samples")
    return figure


def main():
    """Write all of them to the folder named on the command line."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    for draw in (convergence, paths):
        draw().savefig(folder / f"{draw.__name__}.png", dpi=100)


if __name__ == "__main__":
    main()

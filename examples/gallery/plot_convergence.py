"""
Watching fits converge
======================

``history_`` has objective, lower bound, passes over the data and seconds of every
iteration, and ``ConvergenceDisplay`` draws them. Here three solvers minimize the same
hinge loss.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from sklearn_subqn import ConvergenceDisplay, SubLBFGSLinearSVC

X, y = make_classification(5_000, 40, n_informative=20, flip_y=0.05, random_state=0)
X *= np.logspace(-1.0, 1.0, 40)

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for solver in ("auto", "alm", "sublbfgs"):
    clf = SubLBFGSLinearSVC(1e-4, solver=solver, tol=1e-6, max_iter=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clf.fit(X, y)
    if solver == "auto":
        ConvergenceDisplay.from_estimator(clf, kind="objective", ax=left)
        best = clf.objective_ - clf.dual_gap_
    ConvergenceDisplay.from_estimator(clf, ax=right, name=solver)
left.set(title="Objective and proven lower bound", ylim=(0.0, 1.05))
right.set_title("Proven relative gap")
plt.show()

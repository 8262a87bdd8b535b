"""
One import changed
==================

``sklearn_subqn.linear_model.LogisticRegression`` has the parameters, defaults and
attributes of scikit-learn's. On features in their own units the two give different
probabilities, since one of them has not arrived at the optimum.
"""

import warnings

import matplotlib.pyplot as plt
import sklearn.linear_model
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning

import sklearn_subqn.linear_model

X, y = load_breast_cancer(return_X_y=True)
ours = sklearn_subqn.linear_model.LogisticRegression(tol=1e-8, max_iter=1000).fit(X, y)
best = ours.predict_proba(X)[:, 1]
print(f"proven relative gap of ours: {ours.dual_gap_ / ours.objective_:.0e}")

# %%
# The same data, the same ``C``, more and more iterations of scikit-learn's solver.

fig, ax = plt.subplots(layout="constrained")
for max_iter in (100, 1_000, 10_000):
    theirs = sklearn.linear_model.LogisticRegression(max_iter=max_iter)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        theirs.fit(X, y)
    word = "with a warning" if caught else "no warning"
    difference = theirs.predict_proba(X)[:, 1] - best
    ax.plot(best, difference, ".", label=f"max_iter={max_iter}, {word}")
ax.axhline(0.0, color="0.4", linewidth=1.0)
ax.set(
    xlabel="Probability at the optimum, proven",
    ylabel="Probability of scikit-learn's fit, less that",
)
ax.legend()
plt.show()

"""
Certifying models of another library
====================================

``dual_gap`` bounds how far the model of any trainer is from the optimum of its
objective. Here models of scikit-learn are certified as they are, on features in their
own units.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from sklearn_subqn import dual_gap

X, y = load_breast_cancer(return_X_y=True)
data = {"in their own units": X, "scaled": StandardScaler().fit_transform(X)}
models = {
    "LogisticRegression": LogisticRegression(),
    "LogisticRegression\nmax_iter=10000": LogisticRegression(max_iter=10_000),
    "LinearSVC": LinearSVC(),
    "SGDClassifier": SGDClassifier(random_state=0),
}

# %%
# Some of these fits end with a warning, some without one. The gap says what that means.
# Intercepts count as free; that of ``LinearSVC`` is penalized, which is in its gap.

gaps = {title: [] for title in data}
for title, features in data.items():
    for name, model in models.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ConvergenceWarning)
            model.fit(features, y)
        gap, objective = dual_gap(model, features, y, tol=1e-5, return_objective=True)
        gaps[title].append(float(gap / objective))
        word = "a warning" if caught else "no warning"
        print(f"{name.split()[0]:20} {title:20} gap {gap / objective:.1e}, {word}")

# %%
fig, ax = plt.subplots(layout="constrained")
for i, (title, values) in enumerate(gaps.items()):
    positions = [j + 0.4 * i for j in range(len(models))]
    ax.barh(positions, values, height=0.4, label=title)
ax.set_yticks([j + 0.2 for j in range(len(models))], list(models))
ax.set(xscale="log", xlabel="Distance from the optimum, relative to the objective")
ax.axvline(1e-3, color="0.4", linestyle=":", label="0.1 %")
fig.legend(loc="outside lower center", ncols=3)
plt.show()

"""
Ordered classes
===============

Grades have an order, and mistaking one for its neighbor costs less than for a distant
one. The ordinal loss learns a single score and the thresholds between the grades; with
few rows it has smaller errors than a multinomial model, which ignores the order.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import mean_absolute_error
from sklearn.model_selection import ShuffleSplit
from sklearn.preprocessing import StandardScaler

from sklearn_subqn import BMRMClassifier

# %%
# The progression of diabetes in five grades of equal size.

X, progression = load_diabetes(return_X_y=True)
X = StandardScaler().fit_transform(X)
grade = np.digitize(progression, np.quantile(progression, [0.2, 0.4, 0.6, 0.8]))

# %%
# Mean absolute error of grades over twenty splits, by the number of training rows.

sizes = [40, 80, 160, 320]
models = {
    "ordinal": BMRMClassifier(loss="ordinal_all_threshold"),
    "multinomial": LogisticRegression(),
}
errors = {name: np.empty((len(sizes), 20)) for name in models}
for i, size in enumerate(sizes):
    splits = ShuffleSplit(20, train_size=size, test_size=100, random_state=0).split(X)
    for j, (train, test) in enumerate(splits):
        for name, model in models.items():
            predicted = model.fit(X[train], grade[train]).predict(X[test])
            errors[name][i, j] = mean_absolute_error(grade[test], predicted)

# %%
ordinal = models["ordinal"].fit(X, grade)
score = X @ ordinal.coef_[1] + ordinal.intercept_[1]
thresholds = ordinal.intercept_[1] - np.diff(ordinal.intercept_)

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for name, error in errors.items():
    spread = error.std(axis=1) / np.sqrt(20)
    left.errorbar(sizes, error.mean(axis=1), spread, marker="o", capsize=3, label=name)
left.set(xscale="log", xlabel="Training rows", ylabel="Mean absolute error of grades")
left.set_xticks(sizes, sizes)
left.minorticks_off()
left.legend()
jitter = np.random.default_rng(0).uniform(-0.3, 0.3, len(grade))
right.scatter(score, grade + jitter, s=6, c=grade, cmap="viridis")
for threshold in thresholds:
    right.axvline(threshold, color="0.4", linestyle=":")
right.set(xlabel="Score, with the thresholds", ylabel="Grade")
plt.show()

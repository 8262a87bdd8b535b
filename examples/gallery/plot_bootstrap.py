"""
Standard errors by formula and by weighted warm refits
======================================================

A bootstrap sample is a weight for every row. Each refit begins at the solution of the
last one, so that two hundred of them take seconds, and each is proven. For the median
there is a formula, too, by a kernel estimate of the density of the residuals at zero.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from sklearn_subqn import BMRMRegressor, standard_errors

data = load_diabetes()
X = StandardScaler().fit_transform(data.data)
median = BMRMRegressor(alpha=0, loss="absolute_error").fit(X, data.target)

# %%
formula = standard_errors(median, X, data.target, feature_names=data.feature_names)
begin = time.perf_counter()
refits = standard_errors(
    median,
    X,
    data.target,
    kind="bootstrap",
    random_state=0,
    feature_names=data.feature_names,
)
print(f"200 refits took {time.perf_counter() - begin:.1f} seconds")

# %%
fig, ax = plt.subplots(layout="constrained")
order = np.argsort(refits.estimates[1:]) + 1
rows = np.arange(len(order))
for shift, name, errors in ((-0.1, "formula", formula), (0.1, "refits", refits)):
    ax.errorbar(
        errors.estimates[order],
        rows + shift,
        xerr=1.96 * errors.std_errors[order],
        fmt="o",
        capsize=3,
        label=name,
    )
ax.set_yticks(rows, refits.features[order])
ax.axvline(0.0, color="0.4", linestyle=":")
ax.legend()
ax.set(xlabel="Change of the median progression by one standard deviation, and 95 %")
plt.show()

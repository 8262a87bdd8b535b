"""
Standard errors by weighted warm refits
=======================================

A bootstrap sample is a weight for every row: how often the row was drawn. With
``warm_start=True`` each refit begins at the solution of the last one, so that a hundred
of them take seconds, and each is proven.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

from sklearn_subqn import BMRMRegressor

data = load_diabetes()
X = StandardScaler().fit_transform(data.data)
median = BMRMRegressor(alpha=1e-4, loss="absolute_error", warm_start=True)
estimate = median.fit(X, data.target).coef_.copy()

# %%
rng = np.random.default_rng(0)
begin = time.perf_counter()
refits = []
for _ in range(100):
    counts = rng.multinomial(len(X), np.full(len(X), 1.0 / len(X)))
    refits.append(median.fit(X, data.target, sample_weight=counts).coef_.copy())
print(f"100 refits took {time.perf_counter() - begin:.1f} seconds")
error = np.std(refits, axis=0)

# %%
fig, ax = plt.subplots(layout="constrained")
order = np.argsort(estimate)
ax.errorbar(
    estimate[order], np.arange(len(order)), xerr=1.96 * error[order], fmt="o", capsize=3
)
ax.set_yticks(np.arange(len(order)), np.array(data.feature_names)[order])
ax.axvline(0.0, color="0.4", linestyle=":")
ax.set(xlabel="Change of the median progression by one standard deviation, and 95 %")
plt.show()

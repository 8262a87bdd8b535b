"""
Prediction intervals by several quantiles
=========================================

One call fits the 5 %, 50 % and 95 % quantiles along a warm path. Each is proven to be
optimal, and the predictions do not cross.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from sklearn_subqn import BMRMRegressor

# %%
# The noise grows with x and is skewed, so that no constant width would do.

rng = np.random.default_rng(0)
x = rng.uniform(0.0, 10.0, 4_000)
y = np.sin(x) * 2.0 + x / 2.0 + (0.2 + 0.15 * x) * rng.gamma(2.0, 1.0, len(x))
X_train, X_test, y_train, y_test = train_test_split(x[:, None], y, random_state=0)

model = make_pipeline(
    SplineTransformer(n_knots=12),
    BMRMRegressor(loss="quantile", quantile=[0.05, 0.5, 0.95], alpha=1e-6),
)
low, middle, high = model.fit(X_train, y_train).predict(X_test).T

# %%
# Nine of ten new points should be in between.

inside = np.mean((low <= y_test) & (y_test <= high))
regressor = model[-1]
gap = np.max(regressor.dual_gap_ / regressor.objective_)
print(f"inside the interval: {inside:.1%}; largest proven relative gap: {gap:.0e}")

# %%
grid = np.linspace(0.0, 10.0, 300)[:, None]
low, middle, high = model.predict(grid).T
fig, ax = plt.subplots(layout="constrained")
ax.plot(X_test, y_test, ".", color="0.6", markersize=3, label="new data")
ax.fill_between(grid[:, 0], low, high, alpha=0.3, label="5 % to 95 %")
ax.plot(grid[:, 0], middle, label="median")
ax.set(xlabel="x", ylabel="y")
ax.legend(loc="upper left")
plt.show()

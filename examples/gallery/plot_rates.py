"""
Claims by exposure: Poisson regression with offsets
===================================================

Policies were observed for different times. The logarithm of the time is an offset of
the score, so that the model is one of yearly rates.
"""

import matplotlib.pyplot as plt
import numpy as np

from sklearn_subqn import BMRMRegressor

rng = np.random.default_rng(0)
age, power = rng.uniform(18.0, 80.0, 20_000), rng.uniform(40.0, 200.0, 20_000)
years = rng.uniform(0.05, 2.0, len(age))
yearly = 0.08 + 0.35 * np.exp(-(age - 18.0) / 8.0) + 0.0004 * (power - 40.0)
claims = rng.poisson(years * yearly)

# %%
# Ages in groups, and the power of the car as a number. The features need no scaling.

groups = np.digitize(age, [20, 23, 26, 30, 40, 50, 60, 70])
X = np.column_stack([np.eye(9)[groups], power])
model = BMRMRegressor(loss="poisson").fit(X, claims, offset=np.log(years))
print(f"explained deviance: {model.score(X, claims, offset=np.log(years)):.1%}")

# %%
# Expected and observed claims per year in each group.

expected = model.predict(X, offset=np.log(years))
exposure = np.bincount(groups, years)
fig, ax = plt.subplots(layout="constrained")
names = ["18", "20", "23", "26", "30", "40", "50", "60", "70"]
ax.bar(names, np.bincount(groups, claims) / exposure, color="0.8", label="observed")
ax.plot(names, np.bincount(groups, expected) / exposure, "o-", label="model")
ax.set(xlabel="Age from", ylabel="Claims per year")
ax.legend()
plt.show()

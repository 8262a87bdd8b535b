"""
A stream whose concept moves
============================

``OnlineLBFGSClassifier`` learns from one batch after the other without a step size to
tune and without scaled features. Halfway the concept changes; each batch is first
predicted, then learned from.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import SGDClassifier

from sklearn_subqn import OnlineLBFGSClassifier

rng = np.random.default_rng(0)
scales = np.logspace(-1.0, 1.0, 20)
concepts = rng.normal(size=(2, 20)) / scales
ours, sgd = OnlineLBFGSClassifier(), SGDClassifier(loss="log_loss")
accuracy = {"OnlineLBFGSClassifier": [], "SGDClassifier": []}
for step in range(200):
    X = rng.normal(size=(100, 20)) * scales
    noise = rng.logistic(size=100)
    y = (X @ concepts[int(step >= 100)] + noise > 0).astype(int)
    for model in (ours, sgd):
        if step:
            accuracy[type(model).__name__].append(model.score(X, y))
        model.partial_fit(X, y, classes=[0, 1])

# %%
fig, ax = plt.subplots(layout="constrained")
for name, values in accuracy.items():
    smooth = np.convolve(values, np.ones(5) / 5.0, mode="valid")
    ax.plot(np.arange(5, 5 + len(smooth)), smooth, label=name)
ax.axvline(100, color="0.4", linestyle=":", label="the concept changes")
ax.set(xlabel="Batches of 100 rows", ylabel="Accuracy on the next batch")
ax.legend(loc="lower left")
plt.show()

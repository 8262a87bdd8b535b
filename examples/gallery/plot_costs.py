"""
Classes with costs of confusions
================================

Some mistakes are worse than others. ``MulticlassHingeClassifier`` takes the cost of
predicting class j for a sample of class i: here reading any digit as an 8 costs five
times as much as other confusions.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import train_test_split

from sklearn_subqn import MulticlassHingeClassifier

X, y = load_digits(return_X_y=True)
X = X + np.random.default_rng(0).normal(scale=6.0, size=X.shape)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
cost = 1.0 - np.eye(10)
cost[:, 8] *= 5.0

fig, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
for ax, label_cost in zip(axes, (None, cost), strict=True):
    model = MulticlassHingeClassifier(label_cost=label_cost).fit(X_train, y_train)
    predicted = model.predict(X_test)
    ConfusionMatrixDisplay.from_predictions(
        y_test, predicted, ax=ax, colorbar=False, cmap="Blues"
    )
    title = "equal costs" if label_cost is None else "8 costs five times as much"
    ax.set_title(f"{title}: total cost {cost[y_test, predicted].sum():.0f}")
plt.show()

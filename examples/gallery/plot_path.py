"""
Sparse logistic regression along a path
=======================================

With an L1 penalty coefficients that do not pay for themselves are exactly zero. A path
of strengths shows which features enter first, and cross-validation along the same path
chooses one.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from sklearn_subqn import (
    CoefficientPathDisplay,
    L1LogisticOWLQN,
    L1LogisticOWLQNCV,
    PathScoreDisplay,
)

data = load_breast_cancer()
X = StandardScaler().fit_transform(data.data)
clf = L1LogisticOWLQN()
alphas = clf.alpha_max(X, data.target) * np.geomspace(1.0, 1e-2, 25)

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
CoefficientPathDisplay.from_estimator(clf, X, data.target, alphas, ax=left)
left.set_title("Coefficients")
search = L1LogisticOWLQNCV(alphas=25, scoring="neg_log_loss").fit(X, data.target)
PathScoreDisplay.from_estimator(search, ax=right)
right.set_title("Scores of left-out samples")
plt.show()

# %%
# The features that are left at the chosen strength.

order = np.argsort(-np.abs(search.coef_[0]))
for j in order[: np.count_nonzero(search.coef_)][:8]:
    print(f"{data.feature_names[j]:25} {search.coef_[0, j]:+.2f}")

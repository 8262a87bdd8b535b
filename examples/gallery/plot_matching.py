"""
Matching the points of two sets
===============================

``StructuredSVM`` learns to predict objects with many parts. Here these are matchings of
points: each point of one set belongs to one of another, moved and disturbed. Which of
its features can be trusted has to be learned (Teo et al. 2010, section 5.3.2).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from sklearn_subqn import StructuredSVM

# %%
# Three functions say what a structure is: its features, its loss, and how to find the
# best one for given weights. A matching of two sets is a linear assignment.


def joint_feature(pair, matching):
    """Return the negative squared differences of matched points, by feature."""
    a, b = pair
    return -np.sum((a - b[matching]) ** 2, axis=0)


def hamming_loss(matching, other):
    """Return the share of points that are matched wrongly."""
    return np.mean(matching != other)


def best_matching(pair, matching, w):
    """Return the matching with the best score, plus the loss while training."""
    a, b = pair
    gains = -((a[:, None] - b) ** 2) @ w
    if matching is not None:
        gains += (matching[:, None] != np.arange(len(b))) / len(b)
    return linear_sum_assignment(gains, maximize=True)[1]


# %%
# Two features are positions; four more describe the surroundings of a point, and some
# of them are mostly noise.

rng = np.random.default_rng(0)
noise = np.array([0.25, 0.25, 0.3, 0.5, 3.0, 5.0])


def pair_of_sets():
    """Return two sets of 15 points, and the true matching."""
    a, matching = rng.normal(size=(15, 6)), rng.permutation(15)
    b = np.empty_like(a)
    b[matching] = a + noise * rng.normal(size=a.shape)
    return (a, b), matching


pairs, matchings = zip(*(pair_of_sets() for _ in range(40)), strict=True)
svm = StructuredSVM(joint_feature, best_matching, hamming_loss, alpha=1e-3)
svm.fit(pairs[:20], matchings[:20])
learned = svm.score(pairs[20:], matchings[20:])
untrained = np.mean(
    [
        np.mean(best_matching(pair, None, np.ones(6)) == matching)
        for pair, matching in zip(pairs[20:], matchings[20:], strict=True)
    ]
)
gap = svm.dual_gap_ / svm.objective_
print(f"proven relative gap {gap:.0e}")
print(f"right pairs: {learned:.0%}, with equal weights {untrained:.0%}")

# %%
fig, axes = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained", sharey=True)
(a, b), truth = pairs[20], matchings[20]
for ax, w, title in zip(
    axes, (np.ones(6), svm.coef_), ("all features alike", "learned"), strict=True
):
    found = best_matching((a, b), None, w)
    for i, j in enumerate(found):
        color = "C2" if j == truth[i] else "C3"
        ax.plot([a[i, 0], b[j, 0] + 5.0], [a[i, 1], b[j, 1]], color=color, alpha=0.7)
    ax.plot(a[:, 0], a[:, 1], "ko", b[:, 0] + 5.0, b[:, 1], "ks", markersize=4)
    ax.set_title(f"{title}: {np.mean(found == truth):.0%} right")
    ax.set_axis_off()
plt.show()

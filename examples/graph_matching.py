"""Learn which features show how the points of two sets are matched.

Two sets of points, the second a noisy and shuffled copy of the first, are matched by
linear assignment (Teo et al. 2010, section 5.3.2, on generated data). The weights of
squared differences of features are learned: some features are noise alone.
"""

import numpy as np
from scipy.optimize import linear_sum_assignment

from sklearn_subqn import StructuredSVM


def make_pairs(n_pairs, n_points=20, n_features=30, n_useful=12, seed=0):
    """Return pairs of sets of points and their matchings: a[i] belongs to b[y[i]]."""
    rng = np.random.default_rng(seed)
    noise = np.where(np.arange(n_features) < n_useful, 0.9, 3.0)
    pairs, matchings = [], []
    for _ in range(n_pairs):
        a = rng.normal(size=(n_points, n_features))
        matching = rng.permutation(n_points)
        b = np.empty_like(a)
        b[matching] = a + noise * rng.normal(size=a.shape)
        pairs.append((a, b))
        matchings.append(matching)
    return pairs, matchings


def joint_feature(pair, matching):
    """Return minus the squared differences of matched points (eq. 19)."""
    a, b = pair
    return -np.sum((a - b[matching]) ** 2, axis=0)


def hamming_loss(matching, other):
    """Return the share of points that are matched with wrong ones (eq. 20)."""
    return np.mean(matching != other)


def best_matching(pair, matching, w):
    """Return the maximizer of (18), or without the loss if ``matching`` is None."""
    a, b = pair
    # (a - b)² = a² - 2 a b + b², weighted, for all pairs of points.
    gains = 2.0 * (a * w) @ b.T - ((a**2) @ w)[:, None] - (b**2) @ w
    if matching is not None:
        points = np.arange(len(a))
        gains += 1.0 / len(a)
        gains[points, matching] -= 1.0 / len(a)
    return linear_sum_assignment(gains, maximize=True)[1]


def main():
    """Learn weights with both penalties, and compare with equal weights."""
    train, test = make_pairs(40, seed=0), make_pairs(100, seed=1)
    print("weights       objective  own gap  passes  nonzero  points matched")
    equal = [best_matching(pair, None, np.ones(30)) for pair in test[0]]
    correct = 1.0 - np.mean(
        [hamming_loss(*two) for two in zip(test[1], equal, strict=True)]
    )
    print(f"{'equal':12} {'-':>10} {'-':>8} {'-':>7} {30:8d} {correct:14.1%}")
    for penalty, alpha in (("l2", 10.0), ("l1", 0.3)):
        svm = StructuredSVM(
            joint_feature, best_matching, hamming_loss, alpha=alpha, penalty=penalty
        ).fit(*train)
        gap = svm.dual_gap_ / svm.objective_
        passes = svm.history_[0].passes[-1]
        print(
            f"{'learned, ' + penalty:12} {svm.objective_:10.4f} {gap:8.0e} "
            f"{passes:7.0f} {np.count_nonzero(svm.coef_):8d} {svm.score(*test):14.1%}"
        )


if __name__ == "__main__":
    main()

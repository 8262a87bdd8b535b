"""
A text SVM beside LinearSVC
===========================

Both minimize the same mean hinge loss with the same penalty on text-like sparse data.
``SubLBFGSLinearSVC`` reports how far it is from the optimum; for ``LinearSVC`` that is
computed afterwards, from the best lower bound of all fits.
"""

import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.svm import LinearSVC

from sklearn_subqn import SubLBFGSLinearSVC

# %%
# Documents of 60 words from a vocabulary of 5,000, whose frequencies follow Zipf's law.

rng = np.random.default_rng(0)
n_documents, n_words = 20_000, 5_000
frequency = 1.0 / np.arange(1, n_words + 1) ** 0.9
words = rng.choice(n_words, n_documents * 60, p=frequency / frequency.sum())
documents = np.repeat(np.arange(n_documents, dtype=np.int32), 60)
counts = sparse.csr_matrix(
    (np.ones(len(words)), (documents, words.astype(np.int32))),
    shape=(n_documents, n_words),
)
X = TfidfTransformer(sublinear_tf=True).fit_transform(counts)
scores = X @ (rng.normal(size=n_words) * (rng.random(n_words) < 0.1))
noise = 0.5 * scores.std() * rng.normal(size=n_documents)
y = np.where(scores + noise > np.median(scores), 1, -1)

# %%
# One fit of ours records the objective and its lower bound against the time.

alpha = 1e-6
ours = SubLBFGSLinearSVC(alpha, tol=1e-4, fit_intercept=False).fit(X, y)
(history,) = ours.history_
bound = max(history.lower_bound)
proven = 1.0 - np.array(history.lower_bound) / np.array(history.objective)

# %%
# ``LinearSVC`` is fitted with several tolerances.


def objective(coef):
    """Return the penalty plus the mean hinge loss."""
    hinge = np.maximum(0.0, 1.0 - y * (X @ coef))
    return alpha / 2.0 * coef @ coef + hinge.mean()


seconds, gaps = [], []
for tol in (1.0, 1e-1, 1e-2):
    svc = LinearSVC(
        C=1.0 / (n_documents * alpha), loss="hinge", tol=tol, fit_intercept=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        begin = time.perf_counter()
        svc.fit(X, y)
    seconds.append(time.perf_counter() - begin)
    gaps.append(1.0 - bound / objective(svc.coef_[0]))

# %%
# The gap of ours is a proof that the fit itself gives; that of ``LinearSVC`` its user
# does not see.

fig, ax = plt.subplots(layout="constrained")
ax.step(history.seconds, proven, where="post", label="SubLBFGSLinearSVC, proven")
ax.plot(seconds, gaps, "o--", label="LinearSVC, true")
ax.set(
    xscale="log",
    yscale="log",
    xlabel="Seconds",
    ylabel="Distance from the optimum",
)
ax.legend()
plt.show()

"""
Ranking the rows of queries
===========================

A search engine answers each query with a list. ``BMRMRanker`` learns scores that put
relevant rows on top, by the pairs of rows of the same query, and ``BMRMRankerCV``
chooses the strength of the penalty by the NDCG of queries left out.
"""

import matplotlib.pyplot as plt
import numpy as np

from sklearn_subqn import BMRMRanker, BMRMRankerCV, BMRMRegressor, PathScoreDisplay

# %%
# 150 queries of 12 rows. Each query has a level of its own, which does not matter for
# its ranking, and which a regression of the grades would try to explain.

rng = np.random.default_rng(0)
n_queries, n_rows = 150, 12
queries = np.repeat(np.arange(n_queries), n_rows)
X = rng.normal(size=(n_queries * n_rows, 30))
utility = X[:, :4] @ [1.0, -0.8, 0.6, 0.4] + rng.normal(size=len(X))
level = 1.5 * rng.normal(size=n_queries)[queries]
X[:, 4] = level + rng.normal(size=len(X))
grades = np.clip(np.round(utility + level + 2.0), 0, 4)
train, test = queries < 100, queries >= 100

# %%
search = BMRMRankerCV(alphas=np.geomspace(10.0, 1e-3, 9), cv=5)
search.fit(X[train], grades[train], qid=queries[train])
regression = BMRMRegressor().fit(X[train], grades[train])


def ndcg(coef):
    """Return the mean NDCG at 5 of the queries left out."""
    ranker = BMRMRanker(k=5).fit(X[train], grades[train], qid=queries[train])
    ranker.coef_ = coef
    return ranker.score(X[test], grades[test], qid=queries[test])


scores = {
    "ranking": ndcg(search.coef_),
    "regression": ndcg(regression.coef_),
    "random": ndcg(rng.normal(size=30)),
}
print({name: round(score, 3) for name, score in scores.items()})

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
PathScoreDisplay.from_estimator(search, ax=left)
left.set_title("NDCG of queries left out")
right.barh(list(scores), list(scores.values()))
right.bar_label(right.containers[0], fmt="%.3f", padding=3)
right.set(xlim=(0.0, 1.1), xlabel="NDCG@5 of new queries")
plt.show()

"""Fit a support vector machine, a quantile, a tagger and a ranking, each beside a peer.

Every fit of this package reports a proven bound on how far it is from the optimum;
``dual_gap`` computes one for linear models of scikit-learn. All data are generated, and
the whole takes about 10 seconds, most of them scikit-learn's.
"""

import time
import warnings

import numpy as np
from sklearn.datasets import make_classification
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression, QuantileRegressor, Ridge
from sklearn.metrics import ndcg_score
from sklearn.svm import LinearSVC

import sklearn_subqn.linear_model
from sklearn_subqn import BMRMRanker, LinearChainCRF, SubLBFGSLinearSVC, dual_gap


def make_unscaled(n_samples=20_000, n_features=40, seed=0):
    """Return dense data whose columns have scales from 0.1 to 10, and labels."""
    X, y = make_classification(
        n_samples, n_features, n_informative=20, flip_y=0.05, random_state=seed
    )
    return X * np.logspace(-1.0, 1.0, n_features), y


def make_skewed(n_samples=5_000, n_features=20, seed=0):
    """Return data with a target whose spread depends on a column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    spread = 1.0 + np.abs(X[:, 0])
    return X, X @ rng.normal(size=n_features) + spread * rng.exponential(size=n_samples)


def make_sentences(n_sentences=1_000, n_labels=5, n_words=300, seed=0):
    """Return sentences as lists of dicts, and their labels, which depend on others."""
    rng = np.random.default_rng(seed)
    follows = rng.dirichlet(np.full(n_labels, 0.3), n_labels)
    uses = rng.dirichlet(np.full(n_words, 0.05), n_labels)
    X, y = [], []
    for _ in range(n_sentences):
        labels = [int(rng.integers(n_labels))]
        for _ in range(14):
            labels.append(int(rng.choice(n_labels, p=follows[labels[-1]])))
        words = [rng.choice(n_words, p=uses[label]) for label in labels]
        X.append([{"word": f"w{word}"} for word in words])
        y.append([f"L{label}" for label in labels])
    return X, y


def make_queries(n_queries=400, n_rows=25, n_features=20, seed=0):
    """Return rows of queries, their relevances from 0 to 3, and their queries."""
    rng = np.random.default_rng(seed)
    shape = n_queries, n_rows
    X = rng.normal(size=(*shape, n_features))
    merit = X @ rng.normal(size=n_features) + 2.0 * rng.normal(size=shape)
    # Relevances compare the rows of a query, which have a level of their own in X.
    y = np.digitize(merit - merit.max(axis=1, keepdims=True), [-12.0, -6.0, -2.0])
    X += 2.0 * rng.normal(size=(n_queries, 1, n_features))
    qid = np.repeat(np.arange(n_queries), n_rows)
    return X.reshape(-1, n_features), y.ravel(), qid


def fitted(model, *data, **more):
    """Return a fitted model, and the seconds of processor time that it took."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LinearSVC ends at its iteration limit.
        model.fit(*data, **more)
    return model, time.process_time() - start


def show(name, result, seconds, gap=None, objective=None):
    """Print a line: a result, seconds, and what is proven of the objective."""
    bound = "?"
    if gap is not None:
        bound = f"<= {100.0 * gap / (objective - gap):.2g} % above the optimum"
    print(f"  {name:24} {result:17} {seconds:6.2f} s   {bound}")


def svm():
    """Compare linear support vector machines."""
    X, y = make_unscaled()
    print(f"Support vector machine, {len(X)} rows x {X.shape[1]} columns, unscaled")
    peer = LinearSVC(loss="hinge", C=0.5, fit_intercept=False, random_state=0)
    own = SubLBFGSLinearSVC(alpha=1.0 / (0.5 * len(X)), fit_intercept=False)
    for model in (peer, own):
        model, seconds = fitted(model, X, y)
        accuracy = f"accuracy {model.score(X, y):.4f}"
        proven = dual_gap(model, X, y, return_objective=True)
        show(type(model).__name__, accuracy, seconds, *proven)


def quantiles():
    """Compare quantile regressions; ours has the parameters of scikit-learn's."""
    X, y = make_skewed()
    print(f"Quantile regression, {len(X)} rows x {X.shape[1]} columns, quantile 0.9")
    for kind in (QuantileRegressor, sklearn_subqn.linear_model.QuantileRegressor):
        model, seconds = fitted(kind(quantile=0.9, alpha=1e-3), X, y)
        below = f"{(y <= model.predict(X)).mean():.1%} below"
        proven = dual_gap(model, X, y, return_objective=True)
        show(f"{kind.__module__.partition('.')[0]}'s", below, seconds, *proven)


def crf():
    """Compare a conditional random field with a classifier of single words."""
    X, y = make_sentences()
    n = len(X) // 2
    labels = np.concatenate(y[n:])
    print(f"Tagging, {n} sentences of {len(X[0])} words, 5 labels, as many held out")
    encoder = DictVectorizer()
    words = encoder.fit_transform([word for sentence in X[:n] for word in sentence])
    peer, seconds = fitted(LogisticRegression(), words, np.concatenate(y[:n]))
    words = encoder.transform([word for sentence in X[n:] for word in sentence])
    show("LogisticRegression", f"accuracy {peer.score(words, labels):.4f}", seconds)
    own, seconds = fitted(LinearChainCRF(alpha=1e-3), X[:n], y[:n])
    accuracy = f"accuracy {own.score(X[n:], y[n:]):.4f}"
    show("LinearChainCRF", accuracy, seconds, own.dual_gap_, own.objective_)


def ranking():
    """Compare a ranking within queries with a regression of relevances."""
    X, y, qid = make_queries()
    half = qid < 200
    print(f"Ranking, {half.sum()} rows of 200 queries, as many held out")
    gains = 2.0 ** y[~half].reshape(200, -1) - 1.0
    peer, seconds = fitted(Ridge(), X[half], y[half])
    ndcg = ndcg_score(gains, peer.predict(X[~half]).reshape(200, -1), k=5)
    show("Ridge", f"NDCG@5 {ndcg:.4f}", seconds)
    own, seconds = fitted(BMRMRanker(), X[half], y[half], qid=qid[half])
    ndcg = ndcg_score(gains, own.predict(X[~half]).reshape(200, -1), k=5)
    show("BMRMRanker", f"NDCG@5 {ndcg:.4f}", seconds, own.dual_gap_, own.objective_)


if __name__ == "__main__":
    for block in (svm, quantiles, crf, ranking):
        block()

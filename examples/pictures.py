"""Draw the pictures of the documentation, from generated data.

python examples/pictures.py docs/images
"""

import sys
import time
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from quickstart import make_unscaled
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from sklearn_subqn import (
    BMRMRegressor,
    CoefficientPathDisplay,
    ConvergenceDisplay,
    CoxRegression,
    L1LogisticOWLQN,
    L1LogisticOWLQNCV,
    LiftDisplay,
    PathScoreDisplay,
    ResidualsDisplay,
    SubLBFGSLinearSVC,
    SurvivalCurvesDisplay,
)


def times_of(model, X, y, limits):
    """Return seconds and coefficients of fits with several limits of iterations."""
    times, coefs = [], []
    for max_iter in limits:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            begin = time.perf_counter()
            model.set_params(max_iter=max_iter).fit(X, y)
        times.append(time.perf_counter() - begin)
        coefs.append(model.coef_[0])
    return times, coefs


def convergence():
    """Draw gaps against time: ours proven, those of scikit-learn true."""
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    X, y = make_unscaled()
    signs, alpha = np.where(y == 1, 1.0, -1.0), 1e-4
    C = 1.0 / (len(y) * alpha)
    hinge, logistic = (
        LinearSVC(C=C, loss="hinge", random_state=0),
        LogisticRegression(C=C),
    )
    problems = [
        ("Linear SVM", SubLBFGSLinearSVC(alpha), hinge, (3, 10, 30, 100)),
        ("Logistic regression", L1LogisticOWLQN(alpha, l1_ratio=0.0), logistic, None),
    ]
    for ax, (title, ours, theirs, limits) in zip(axes, problems, strict=True):
        ours.set_params(tol=1e-7, fit_intercept=False).fit(X, y)
        theirs.set_params(tol=1e-10, fit_intercept=False)
        times, coefs = times_of(theirs, X, y, limits or (10, 30, 100, 300, 1000))
        bound, distances = max(ours.history_[0].lower_bound), []
        for coef in coefs:
            margins = signs * (X @ coef)
            losses = np.maximum(0.0, 1.0 - margins)
            if theirs is logistic:
                losses = np.logaddexp(0.0, -margins)
            value = alpha / 2.0 * (coef @ coef) + losses.mean()
            distances.append(1.0 - bound / value)
        name = f"{type(ours).__name__}, proven"
        ConvergenceDisplay.from_estimator(ours, x="seconds", ax=ax, name=name)
        for mark in [*ax.texts, *ax.lines[1:]]:
            mark.remove()
        ax.plot(times, distances, "o--", label=f"{type(theirs).__name__}, true")
        ax.set(xscale="log", title=f"{title}, {X.shape[0]:,} x {X.shape[1]}, unscaled")
        ax.set(ylabel="Relative distance from the optimum", ylim=(1e-7, 3.0))
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=2)
    return figure


def groups():
    """Draw coefficients along paths of a lasso and of norms of groups."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 18))
    labels = np.repeat(np.arange(6), 3)
    X += 0.7 * rng.normal(size=(200, 6))[:, labels]
    y = X[:, :6] @ [2.0, -1.0, 1.0, 1.5, 1.0, 0.5] + 4.0 * rng.normal(size=200)
    figure, axes = plt.subplots(
        1, 2, figsize=(10, 4.2), layout="constrained", sharey=True
    )
    for ax, (penalty, title, largest) in zip(
        axes, [("l1", "L1 norm", 2.8), ("group", "Norms of groups", 2.1)], strict=True
    ):
        alphas = np.geomspace(largest, 1e-2, 60)
        model = BMRMRegressor(penalty=penalty, warm_start=True, tol=1e-6)
        if penalty == "group":
            model.set_params(groups=labels)
        coefs = [model.set_params(alpha=a).fit(X, y).coef_.copy() for a in alphas]
        for j, path in enumerate(np.transpose(coefs)):
            ax.plot(alphas, path, color=f"C{labels[j]}")
        ax.set(xscale="log", xlabel="alpha", title=title)
        ax.invert_xaxis()
    axes[0].set_ylabel("Coefficients")
    return figure


def paths():
    """Draw coefficients and scores of sparse logistic regression along a path."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    X, y = make_classification(
        2_000, 60, n_informative=8, n_redundant=0, flip_y=0.1, random_state=0
    )
    clf = L1LogisticOWLQN()
    alphas = clf.alpha_max(X, y) * np.geomspace(1.0, 1e-3, 40)
    CoefficientPathDisplay.from_estimator(clf, X, y, alphas, ax=left)
    left.set_title("Coefficients of all samples")
    search = L1LogisticOWLQNCV(alphas=40, scoring="neg_log_loss").fit(X, y)
    PathScoreDisplay.from_estimator(search, ax=right)
    right.set_title("Scores on left-out samples")
    return figure


def proven_search():
    """Return a figure of the bounds of a proven search."""
    X, y = make_classification(600, 8, n_informative=4, flip_y=0.2, random_state=0)
    search = L1LogisticOWLQNCV((1e-4, 1), l1_ratio=0, search_tol=0.01, cv=5).fit(X, y)
    fig, ax = plt.subplots(figsize=(6.0, 3.5), layout="constrained")
    PathScoreDisplay.from_estimator(search, ax=ax)
    return fig


def visits():
    """Return features, counts that vary more than Poisson's, and a model of them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3))
    y = rng.poisson(np.exp(0.5 + 0.5 * X[:, 0]) * rng.gamma(1.5, 1 / 1.5, 1000))
    return X, y, BMRMRegressor(0, loss="poisson", tol=1e-8).fit(X, y)


def residual_plots():
    """Return a figure of the residuals of a model whose variances are too small."""
    X, y, model = visits()
    return ResidualsDisplay.from_estimator(model, X, y).figure_


def lift():
    """Return a figure of observed against predicted counts, and a Lorenz curve."""
    X, y, model = visits()
    return LiftDisplay.from_estimator(model, X, y, name="Poisson").figure_


def survival():
    """Return a figure of survival functions of three samples."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 4))
    until, seen = rng.exponential(np.exp(-X[:, 0])), rng.exponential(2.0, size=1000)
    model = CoxRegression().fit(X, (np.minimum(until, seen), until <= seen))
    fig, ax = plt.subplots(figsize=(6.0, 3.5), layout="constrained")
    names = [f"first feature {x:g}" for x in (-1, 0, 1)]
    samples = np.outer([-1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0])
    SurvivalCurvesDisplay.from_estimator(model, samples, names=names, ax=ax)
    return fig


def main():
    """Write all of them to the folder named on the command line."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    all_of_them = (convergence, groups, paths, proven_search, residual_plots, lift)
    for draw in (*all_of_them, survival):
        draw().savefig(folder / f"{draw.__name__}.png", dpi=100)


if __name__ == "__main__":
    main()

"""Problems of workloads, our fits of them and those of the libraries made for them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import _generated
import datasets
import numpy as np
from scipy.special import logsumexp
from sklearn import linear_model, svm
from sklearn.model_selection import StratifiedKFold

import sklearn_subqn as subqn
import sklearn_subqn.linear_model
import sklearn_subqn.svm

TOLERANCES = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-8]


class Peer(NamedTuple):
    """A fit of another library, and the settings to try, the quickest first."""

    name: str
    settings: Sequence[Any]
    fit: Callable[[Any], Any]


class Row(NamedTuple):
    """A problem: ours by its tolerance, peers, and the objective of what these return.

    ``exact`` returns what peers do, of the optimum.
    """

    name: str
    ours: Callable[[float], Any]
    peers: list[Peer]
    value: Callable[[Any], float]
    exact: Callable[[], Any]


def has(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def row(
    name: str,
    ours: Callable[[float], Any],
    peers: list[Peer],
    value: Callable[[Any], float],
) -> Row:
    """Return a row whose fits are models with coefficients, all of one kind."""
    return Row(name, ours, peers, value, partial(ours, 1e-9))


# Insurance

ALPHA_OF_INSURANCE = 1e-4


def deviance(power: float, X: Any, y: Any, weights: Any, model: Any) -> float:
    """Return half the mean deviance plus alpha/2 ||w||²."""
    w, b = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])
    z = X @ w + b
    if power == 1.0:
        losses = np.exp(z) - y * z - y
        losses += np.where(y > 0.0, y * np.log(np.maximum(y, 1e-300)), 0.0)
    elif power == 2.0:
        losses = y * np.exp(-z) + z - np.log(y) - 1.0
    else:
        a, c = power - 1.0, 2.0 - power
        losses = y * np.exp(-a * z) / a + np.exp(c * z) / c - y**c * (1.0 / a + 1.0 / c)
    return float(weights @ losses / weights.sum() + 0.5 * ALPHA_OF_INSURANCE * w @ w)


def insurance(args: Any) -> Iterator[Row]:
    """Yield claims by exposure, severities and pure premiums, all with weights."""
    data = _generated.insurance(args.policies, args.seed)
    X, claims = data.X, data.n_claims > 0
    premium = data.n_claims * data.severity / data.exposure / 1000.0
    for name, power, rows, y, weights in (
        ("Poisson", 1.0, slice(None), data.n_claims / data.exposure, data.exposure),
        ("gamma", 2.0, claims, data.severity, data.n_claims),
        ("Tweedie", 1.5, slice(None), premium, data.exposure),
    ):
        part = X[rows], y[rows], weights[rows]
        yield row(
            f"insurance, {name}, {part[0].shape[0]} x {X.shape[1]}",
            partial(our_deviance, name.lower(), *part),
            list(glum(power, data, rows, part)),
            partial(deviance, power, *part),
        )


def our_deviance(loss: str, X: Any, y: Any, weights: Any, tol: float) -> Any:
    power = {"power": 1.5} if loss == "tweedie" else {}
    model = subqn.BMRMRegressor(loss=loss, alpha=ALPHA_OF_INSURANCE, tol=tol, **power)
    return model.fit(X, y, sample_weight=weights)


def glum(power: float, data: Any, rows: Any, part: Any) -> Iterator[Peer]:
    """Yield glum on sparse rows, and on columns of categories as tabmat keeps them."""
    if not has("glum"):
        return
    import tabmat
    from glum import GeneralizedLinearRegressor, TweedieDistribution

    X, y, weights = part
    categories = [tabmat.CategoricalMatrix(c[rows]) for c in data.categories]
    numbers = tabmat.DenseMatrix(np.asfortranarray(data.numbers[rows]))
    for name, A in (
        ("glum", X),
        ("glum with categories", tabmat.SplitMatrix([*categories, numbers])),
    ):

        def fit(tol: float, A: Any = A) -> Any:
            return GeneralizedLinearRegressor(
                family=TweedieDistribution(power),
                link="log",
                alpha=ALPHA_OF_INSURANCE,
                l1_ratio=0,
                gradient_tol=tol,
            ).fit(A, y, sample_weight=weights)

        yield Peer(name, TOLERANCES, fit)


# Classes


def softmax_value(X: Any, y: Any, C: float, model: Any) -> float:
    """Return ||w||² / 2 + C times the sum of the losses, divided by C n."""
    W = model.coef_
    z = X @ W.T + model.intercept_
    losses = logsumexp(z, axis=1) - z[np.arange(len(y)), y]
    return float(losses.mean() + (W**2).sum() / (2.0 * C * len(y)))


def classes(args: Any) -> Iterator[Row]:
    """Yield the multinomial log loss on dense data."""
    made = {
        f"{n} x {d}, {k} classes": partial(_generated.classes, n, d, k, args.seed)
        for n, d, k in ((30_000, 100, 10), (5_000, 50, 3))
    }
    if args.data_dir:
        made |= {
            "covtype, 7 classes": partial(
                datasets.load_joint, "covtype", args.data_dir
            ),
            "letter, 26 classes": partial(datasets.load_joint, "letter", args.data_dir),
        }
    for name, make in made.items():
        X, y = make()

        def peer(setting: Any, X: Any = X, y: Any = y, solver: str = "lbfgs") -> Any:
            model = linear_model.LogisticRegression(
                solver=solver, tol=setting, max_iter=5000
            )
            return model.fit(X, y)

        def ours(tol: float, X: Any = X, y: Any = y) -> Any:
            return subqn.linear_model.LogisticRegression(tol=tol).fit(X, y)

        peers = [
            Peer(solver, [1e-2, *TOLERANCES[2:]], partial(peer, solver=solver))
            for solver in ("lbfgs", "newton-cholesky")
        ]
        yield row(f"log loss, {name}", ours, peers, partial(softmax_value, X, y, 1.0))


# Clicks


def log_loss(X: Any, y: Any, alpha: float, l1_ratio: float, model: Any) -> float:
    w = np.ravel(getattr(model, "coef_", model))
    penalty = l1_ratio * np.abs(w).sum() + 0.5 * (1.0 - l1_ratio) * w @ w
    return float(np.logaddexp(0.0, -y * (X @ w)).mean() + alpha * penalty)


def clicks(args: Any) -> Iterator[Row]:
    """Yield hashed clicks with L2 and L1, C = 1."""
    X, y = _generated.clicks(args.clicks, 1 << 20, args.seed)
    alpha = 1.0 / len(y)
    for name, l1_ratio, solver in (("L2", 0.0, 7), ("L1", 1.0, 6)):

        def ours(tol: float, l1_ratio: float = l1_ratio) -> Any:
            return subqn.L1LogisticOWLQN(
                alpha, l1_ratio=l1_ratio, fit_intercept=False, tol=tol
            ).fit(X, y)

        yield row(
            f"clicks, {name}, {X.shape[0]} x {X.shape[1]}",
            ours,
            [*liblinear(X, y, solver), *snapml(X, y, name.lower())],
            partial(log_loss, X, y, alpha, l1_ratio),
        )


def liblinear(X: Any, y: Any, solver: int) -> Iterator[Peer]:
    if not has("liblinear"):
        return
    from liblinear import liblinearutil

    problem = liblinearutil.problem(y, X)

    def fit(tol: float) -> Any:
        options = liblinearutil.parameter(f"-s {solver} -c 1 -e {tol:g} -q")
        model = liblinearutil.train(problem, options)
        w = np.array(model.get_decfun()[0])
        return w if model.get_labels()[0] > 0 else -w

    yield Peer(f"liblinear -s {solver}", TOLERANCES, fit)


def snapml(X: Any, y: Any, penalty: str) -> Iterator[Peer]:
    if not has("snapml"):
        return
    import snapml

    def fit(tol: float) -> Any:
        return snapml.LogisticRegression(
            tol=tol, penalty=penalty, dual=penalty == "l2", random_state=0
        ).fit(X, y)

    yield Peer("snapml", TOLERANCES, fit)


# Genes


def genes(args: Any) -> Iterator[Row]:
    """Yield an L1 path of 30 alphas on five folds, with accuracies on held-out rows."""
    X, y = _generated.genes(200, 20_000, args.seed)
    splits = list(StratifiedKFold(5).split(X, y))
    parts = [(np.asfortranarray(X[train]), y[train]) for train, _ in splits]
    largest = subqn.L1LogisticOWLQN().alpha_max(X, y)
    alphas = np.geomspace(largest, 0.05 * largest, 30)

    def ours(tol: float) -> Any:
        return subqn.L1LogisticOWLQNCV(alphas, cv=splits, tol=tol, refit=False).fit(
            X, y
        )

    def exact() -> Any:
        """Return the paths of coefficients on folds, which the search does not keep."""
        paths = []
        for part in parts:
            model = subqn.L1LogisticOWLQN(tol=1e-8, warm_start=True)
            for alpha in alphas:
                model.set_params(alpha=alpha).fit(*part)
                paths.append((model.coef_.ravel(), model.intercept_[0]))
        return paths

    def value(paths: Any) -> float:
        """Return the sum of all objectives."""
        total = 0.0
        for index, (w, b) in enumerate(paths):
            fold, place = divmod(index, len(alphas))
            A, t = parts[fold]
            margins = np.where(t, 1.0, -1.0) * (A @ w + b)
            total += (
                np.logaddexp(0.0, -margins).mean() + alphas[place] * np.abs(w).sum()
            )
        return total

    peers = list(adelie(X, y, splits, alphas))
    yield Row("genes, 200 x 20000, 30 alphas x 5 folds", ours, peers, value, exact)


def adelie(X: Any, y: Any, splits: Any, alphas: Any) -> Iterator[Peer]:
    if not has("adelie"):
        return
    import adelie as ad

    def fit(tol: float) -> Any:
        paths = []
        for train, test in splits:
            state = ad.grpnet(
                np.asfortranarray(X[train]),
                ad.glm.binomial(y=y[train].astype(float)),
                lmda_path=alphas,
                early_exit=False,
                tol=tol,
                irls_tol=tol,
                progress_bar=False,
            )
            for w, b in zip(state.betas, state.intercepts, strict=True):
                ((X[test] @ w.T).ravel() + b > 0.0).mean()
                paths.append((np.asarray(w.todense()).ravel(), float(b)))
        return paths

    yield Peer("adelie", [1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10, 1e-12], fit)


# Text


def text(args: Any) -> Iterator[Row]:
    """Yield the squared hinge of twenty topics, each against the rest, C = 10."""
    X, y = _generated.topics(20_000, 50_000, 20, args.seed)
    signs = np.where(y[:, np.newaxis] == np.arange(20), 1.0, -1.0)
    options = {"C": 10.0, "fit_intercept": False, "random_state": 0}

    def ours(tol: float) -> Any:
        return subqn.svm.LinearSVC(tol=tol, **options).fit(X, y)

    def peer(dual: bool, tol: float) -> Any:
        model = svm.LinearSVC(dual=dual, tol=tol, max_iter=100_000, **options)
        return model.fit(X, y)

    def value(model: Any) -> float:
        losses = np.maximum(0.0, 1.0 - signs * (X @ model.coef_.T)) ** 2
        return float(0.5 * (model.coef_**2).sum() + 10.0 * losses.sum())

    peers = [
        Peer(
            f"LinearSVC, {'dual' if dual else 'primal'}",
            TOLERANCES,
            partial(peer, dual),
        )
        for dual in (True, False)
    ]
    yield row("text, 20 topics, 20000 x 50000", ours, peers, value)


#: Problems by the name of their part of the benchmark.
PROBLEMS = {
    "insurance": insurance,
    "classes": classes,
    "clicks": clicks,
    "genes": genes,
    "text": text,
}

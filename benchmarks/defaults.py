"""What defaults are worth: cross-validated scores beside scikit-learn's defaults.

python benchmarks/defaults.py --data-dir DIR [model ...]

Each default of ours is fitted to data as they are and standardized, scikit-learn's
default of the same model to standardized data; text has unit rows and stays as it is
for both. Generated data are as they are if each feature has a unit of its own, a power
of ten. Scores are those of five folds, with the standard error of scikit-learn's mean:
D² of the log loss for models with probabilities, else accuracy; R² or D² of the loss
for numbers. With --regret also how much better the best multiple of ``alpha_`` is,
from a hundredth to a hundred, for features in the scales of the rule or as they are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import common
import datasets
import numpy as np
from _harness import Benchmark
from scipy import sparse
from sklearn import datasets as generators
from sklearn import linear_model, svm
from sklearn.metrics import (
    accuracy_score,
    d2_absolute_error_score,
    d2_log_loss_score,
    d2_pinball_score,
    d2_tweedie_score,
    r2_score,
)
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler

import sklearn_subqn as subqn
import sklearn_subqn.linear_model
import sklearn_subqn.svm

NAME = "defaults"
N_FOLDS = 5
MULTIPLES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
QUANTILE = 0.9


class Model(NamedTuple):
    """A default of ours, scikit-learn's of the same model, and what they are worth."""

    kind: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    score: Callable[[Any, Any, Any], float]
    drop_in: Callable[[], Any] | None = None


def _accuracy(model: Any, X: Any, y: Any) -> float:
    return float(accuracy_score(y, model.predict(X)))


def _log_loss(model: Any, X: Any, y: Any) -> float:
    return float(d2_log_loss_score(y, model.predict_proba(X), labels=model.classes_))


def _of_predictions(metric: Callable[..., Any], **options: Any) -> Any:
    return lambda model, X, y: float(metric(y, model.predict(X), **options))


def _regressor(loss: str, **options: Any) -> Callable[[], Any]:
    return lambda: subqn.BMRMRegressor(loss=loss, **options)


def _sparse_logistic() -> Any:
    # The solver for any number of classes.
    return linear_model.LogisticRegression(l1_ratio=1.0, solver="saga")


MODELS = {
    "log loss": Model(
        "classes",
        subqn.BMRMClassifier,
        lambda: OneVsRestClassifier(linear_model.LogisticRegression(max_iter=1000)),
        _log_loss,
    ),
    "multinomial log loss": Model(
        "classes",
        lambda: subqn.L1LogisticOWLQN(l1_ratio=0.0),
        lambda: linear_model.LogisticRegression(max_iter=1000),
        _log_loss,
        lambda: subqn.linear_model.LogisticRegression(max_iter=1000),
    ),
    "log loss, L1": Model(
        "classes", subqn.L1LogisticOWLQN, _sparse_logistic, _log_loss
    ),
    "hinge": Model(
        "classes",
        subqn.SubLBFGSLinearSVC,
        lambda: svm.LinearSVC(loss="hinge", random_state=0),
        _accuracy,
        lambda: subqn.svm.LinearSVC(loss="hinge"),
    ),
    "joint hinge": Model(
        "classes",
        subqn.MulticlassHingeClassifier,
        lambda: svm.LinearSVC(multi_class="crammer_singer", random_state=0),
        _accuracy,
        lambda: subqn.svm.LinearSVC(multi_class="crammer_singer"),
    ),
    "squared error": Model(
        "numbers",
        _regressor("squared_error"),
        linear_model.Ridge,
        _of_predictions(r2_score),
    ),
    "absolute error": Model(
        "numbers",
        _regressor("absolute_error"),
        svm.LinearSVR,
        _of_predictions(d2_absolute_error_score),
        subqn.svm.LinearSVR,
    ),
    "quantile .9": Model(
        "numbers",
        _regressor("quantile", quantile=QUANTILE),
        lambda: linear_model.QuantileRegressor(quantile=QUANTILE),
        _of_predictions(d2_pinball_score, alpha=QUANTILE),
        lambda: subqn.linear_model.QuantileRegressor(quantile=QUANTILE),
    ),
    "epsilon-insensitive": Model(
        "numbers",
        _regressor("epsilon_insensitive"),
        lambda: svm.LinearSVR(epsilon=0.1),
        _of_predictions(d2_absolute_error_score),
        lambda: subqn.svm.LinearSVR(epsilon=0.1),
    ),
    "Huber": Model(
        "numbers",
        _regressor("huber"),
        lambda: linear_model.HuberRegressor(max_iter=1000),
        _of_predictions(d2_absolute_error_score),
        lambda: subqn.linear_model.HuberRegressor(max_iter=1000),
    ),
    "Poisson": Model(
        "numbers",
        _regressor("poisson"),
        lambda: linear_model.PoissonRegressor(max_iter=1000),
        _of_predictions(d2_tweedie_score, power=1),
        lambda: subqn.linear_model.PoissonRegressor(max_iter=1000),
    ),
}


class Data(NamedTuple):
    """Features and targets; of text, features stay as they are."""

    X: Any
    y: Any
    is_text: bool = False


def _in_own_units(X: Any, y: Any) -> Data:
    units = 10.0 ** np.random.default_rng(0).integers(-3, 4, X.shape[1])
    return Data(X * units, y)


def _file(name: str, n_features: int) -> Callable[[str], Data]:
    def load(data_dir: str) -> Data:
        path = Path(data_dir, f"{name}.svm.bz2")
        X, y = generators.load_svmlight_file(str(path), n_features=n_features)
        return Data(X.toarray(), y)

    return load


def _binary(name: str, limit: int = 10_000, is_text: bool = False) -> Any:
    def load(data_dir: str) -> Data:
        _, X, y = datasets.load(name, data_dir)
        rows = np.random.default_rng(0).permutation(len(y))[:limit]
        return Data(X[rows], y[rows], is_text)

    return load


def _joint(name: str, limit: int = 4_000, is_text: bool = False) -> Any:
    def load(data_dir: str) -> Data:
        X, y = datasets.load_joint(name, data_dir)
        rows = np.random.default_rng(0).permutation(len(y))[:limit]
        return Data(X[rows], y[rows], is_text)

    return load


def _shipped(load: Callable[..., Any]) -> Callable[[str], Data]:
    return lambda data_dir: Data(*load(return_X_y=True))


def _generated(make: Callable[..., Any], **options: Any) -> Callable[[str], Data]:
    return lambda data_dir: _in_own_units(*make(random_state=0, **options))


def _amounts(data_dir: str) -> Data:
    """Return targets in currency, as prices are, with heavy tails."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 8))
    noise = 0.5 * rng.standard_t(3, 2000)
    return _in_own_units(X, 2e5 + 5e4 * np.abs(4.0 + X @ rng.normal(size=8) + noise))


def _counts(data_dir: str) -> Data:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 10))
    return _in_own_units(X, rng.poisson(np.exp(1.0 + 0.2 * X @ rng.normal(size=10))))


CLASSES = {
    "breast_cancer, 569 x 30": _shipped(generators.load_breast_cancer),
    "digits, 1797 x 64": _shipped(generators.load_digits),
    "classification, 300 x 20": _generated(
        generators.make_classification, n_samples=300, flip_y=0.1
    ),
    "classification, 500 x 100": _generated(
        generators.make_classification,
        n_samples=500,
        n_features=100,
        n_informative=10,
        n_classes=3,
    ),
    "classification, 4000 x 50": _generated(
        generators.make_classification, n_samples=4000, n_features=50, n_informative=20
    ),
    "hastie_10_2, 2000 x 10": _generated(
        generators.make_hastie_10_2,
        n_samples=2000,
    ),
    "a9a, 32000 x 123": _binary("a9a", 32_000),
    "covtype, 5000 x 54": _binary("covtype", 5_000),
    "usps, 2000 x 256": _joint("usps", 2_000),
    "letter, 4000 x 16": _joint("letter"),
    "rcv1_ccat, 5000 x 47236": _binary("rcv1_ccat", 5_000, is_text=True),
    "news20, 1500 x 62061": _joint("news20", 1_500, is_text=True),
}
NUMBERS = {
    "diabetes, 442 x 10": _shipped(generators.load_diabetes),
    "friedman1, 500 x 10": _generated(
        generators.make_friedman1, n_samples=500, noise=1.0
    ),
    "friedman2, 500 x 4": _generated(
        generators.make_friedman2, n_samples=500, noise=50.0
    ),
    "regression, 200 x 100": _generated(
        generators.make_regression, n_samples=200, noise=50.0
    ),
    "sparse_uncorrelated, 300 x 50": _generated(
        generators.make_sparse_uncorrelated, n_samples=300, n_features=50
    ),
    "amounts, 2000 x 8": _amounts,
    "counts, 1000 x 10": _counts,
    "abalone, 4177 x 8": _file("abalone", 8),
    "cpusmall, 8192 x 12": _file("cpusmall", 12),
    "cadata, 20640 x 8": _file("cadata", 8),
}
SETS = {"classes": CLASSES, "numbers": NUMBERS}


def folds(kind: str, X: Any, y: Any) -> Iterator[Any]:
    split = StratifiedKFold if kind == "classes" else KFold
    yield from split(N_FOLDS, shuffle=True, random_state=0).split(X, y)


def standardized(data: Data, train: Any, test: Any) -> tuple[Any, Any]:
    if data.is_text:
        return data.X[train], data.X[test]
    scaler = StandardScaler(with_mean=not sparse.issparse(data.X))
    return scaler.fit_transform(data.X[train]), scaler.transform(data.X[test])


def measure(name: str, data: Data, regret: bool) -> dict[str, Any] | None:
    """Return scores of all folds by variant, None where the targets do not suit."""
    model = MODELS[name]
    if name == "Poisson" and data.y.min() < 0.0:
        return None
    scores: dict[str, list[float]] = {}
    begin = time.process_time()
    for train, test in folds(model.kind, data.X, data.y):
        X, y = data.X, data.y
        S, T = standardized(data, train, test)

        def worth(estimator: Any, A: Any, B: Any) -> float:
            estimator.fit(A, y[train])  # noqa: B023
            return model.score(estimator, B, y[test])  # noqa: B023

        add = lambda key, value: scores.setdefault(key, []).append(value)  # noqa: E731
        add("raw", worth(model.ours(), X[train], X[test]))
        ours = model.ours()
        add("standardized", worth(ours, S, T))
        add("scikit-learn", worth(model.theirs(), S, T))
        if model.drop_in is not None:
            add("drop-in", worth(model.drop_in(), S, T))
        if regret:
            squares = ours.penalty_factor_
            sizes = squares if "L1" in name else np.sqrt(squares)
            units = {"scaled": 1.0 / sizes}
            if np.ptp(sizes) > 0.01:
                units["plain"] = np.full_like(sizes, np.exp(-np.log(sizes).mean()))
            for unit, factor in units.items():
                A, B = (
                    sparse.csr_matrix(M.multiply(factor))
                    if sparse.issparse(M)
                    else M * factor
                    for M in (S, T)
                )
                for multiple in MULTIPLES:
                    alpha = multiple * float(np.max(ours.alpha_))
                    candidate = model.ours().set_params(alpha=alpha)
                    add(f"{unit} {multiple:g}", worth(candidate, A, B))
    return {"scores": scores, "seconds": time.process_time() - begin}


def render(results: dict[str, Any]) -> str:
    parts = []
    for kind, sets in SETS.items():
        names = [name for name, model in MODELS.items() if model.kind == kind]
        known = {(r["model"], r["data"]): r["scores"] for r in results["rows"]}
        rows = [
            [data, *(_cell(known.get((name, data))) for name in names)] for data in sets
        ]
        parts.append(common.markdown_table(["data", *names], rows))
        regrets = [_mean_regrets(known, name, sets) for name in names]
        if any(regrets):
            row = ["mean regret", *regrets]
            parts.append(common.markdown_table(["", *names], [row]))
    return "\n\n".join(parts) + "\n"


def _cell(scores: dict[str, list[float]] | None) -> str:
    if scores is None:
        return "–"
    peer = np.array(scores["scikit-learn"])
    error = peer.std(ddof=1) / np.sqrt(len(peer))
    cells = []
    for variant in ("raw", "standardized"):
        value = np.mean(scores[variant])
        text = f"{value:.3f}"
        cells.append(f"**{text}**" if value < peer.mean() - error else text)
    return f"{', '.join(cells)} ({peer.mean():.3f} ± {error:.3f})"


def _mean_regrets(known: Any, name: str, sets: Any) -> str:
    regrets = []
    for data in sets:
        scores = known.get((name, data), {})
        tried = [
            np.mean(scores[key])
            for key in scores
            if key.startswith(("scaled", "plain"))
        ]
        if tried:
            regrets.append(max(tried) - np.mean(scores["standardized"]))
    return f"{np.mean(regrets):.4f}" if regrets else ""


def measure_all(args: Any, results: common.Results) -> None:
    loaded: dict[str, Data] = {}
    for name in args.models:
        for data, load in SETS[MODELS[name].kind].items():
            if data not in args.data:
                continue
            if data not in loaded:
                loaded[data] = load(args.data_dir)
            found = measure(name, loaded[data], args.regret)
            if found is not None:
                results.add(f"{name} | {data}", model=name, data=data, **found)
                print(name, data, _cell(found["scores"]), f"{found['seconds']:.1f}")


BENCHMARK = Benchmark(
    NAME,
    __doc__,
    measure_all,
    render,
    [*CLASSES, *NUMBERS],
    models=list(MODELS),
    regret=False,
)

if __name__ == "__main__":
    BENCHMARK.run()

"""Searches, predictions, streams and other fits of every day beside their peers.

python -m benchmarks everyday [--rows ridge stream ...] [--seed 0]

All data are generated. Estimators have their defaults, or where a row says so the same
strength. Ours and the peer's take turns, each in a copy of the process that repeats
short calls, and the least processor seconds of both are compared: a ratio above one
says that ours is faster. Memory is the growth of the resident set during the first call
in such a copy, without the files of libraries, in units of X, where X has four million
bytes or more. Rows with sizes beside them compare ours with itself on less data, whose
seconds it may take five times. Peers that are not installed are named, without figures.
"""

from __future__ import annotations

import ctypes
import gc
import math
import statistics
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import _generated
import common
import middle
import numpy as np
from _harness import Benchmark, table
from _race import in_copy, timed
from _workloads import has
from scipy import sparse
from sklearn import linear_model, svm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier

import sklearn_subqn as subqn
import sklearn_subqn.linear_model
import sklearn_subqn.svm

OURS, OUR_SVM = subqn.linear_model, subqn.svm


class Row(NamedTuple):
    """What is measured: ours and the peer's call, X, and the ratio that is aimed at.

    A peer of None is not installed. With ``growth`` the peer's call is ours on less
    data, whose seconds ours may take that many times.
    """

    name: str
    ours: Callable[[], Any]
    peer_name: str
    peer: Callable[[], Any] | None
    X: Any
    bar: float
    growth: float | None = None


def fits(ours: Any, peer: Any, X: Any, y: Any) -> Any:
    """Return calls that fit copies of both, and the peer's name between them."""
    return (
        lambda: clone(ours).fit(X, y),
        type(peer).__name__,
        lambda: clone(peer).fit(X, y),
        X,
    )


def dense(n: int, d: int, kind: str, seed: int) -> tuple[Any, Any]:
    """Return independent features and targets of a kind, as the other tables have."""
    X, targets = middle.data(n, d, "independent", seed)
    return X, targets(kind)


def ridge(seed: int) -> Iterator[Row]:
    alphas = np.logspace(-6, 2, 20)
    X, y = dense(500, 20, "number", seed)
    for cv, name in ((5, "5 folds"), (None, "leave-one-out")):
        ours = subqn.BMRMRegressorCV(alphas, cv=cv or "loo")
        peer = linear_model.RidgeCV(len(y) * alphas, cv=cv)
        yield Row(f"squares, L2, {name}, 500 x 20", *fits(ours, peer, X, y), 0.5)
    X, y = dense(50_000, 100, "number", seed)
    ours, peer = subqn.BMRMRegressor(alpha=1.0 / len(y)), linear_model.Ridge()
    yield Row("squares, L2, 50000 x 100, one alpha", *fits(ours, peer, X, y), 0.8)


def lasso(seed: int) -> Iterator[Row]:
    for n, d, bar in ((500, 30, 1.0), (10_000, 50, 1.0)):
        X, y = dense(n, d, "number", seed)
        ours = subqn.BMRMRegressorCV(100, penalty="l1")
        yield Row(
            f"squares, L1 path, {n} x {d}",
            *fits(ours, linear_model.LassoCV(), X, y),
            bar,
        )
    X, y = dense(2000, 30, "number", seed)
    ours = subqn.BMRMRegressorCV(100, penalty="elasticnet")
    peer = linear_model.ElasticNetCV()
    yield Row("squares, elastic net, 2000 x 30", *fits(ours, peer, X, y), 1.0)


def covariates(seed: int) -> Iterator[Row]:
    """Yield L1 paths of squares with 7 free features, beside paths without these."""
    X, y = dense(10_000, 50, "number", seed)
    free = np.random.default_rng(seed).normal(size=(len(y), 7))
    both, factors = np.hstack([X, free]), np.append(np.ones(50), np.zeros(7))
    calls = [
        partial(subqn.BMRMRegressorCV(100, **options).fit, features, y)
        for features, options in (
            (both, {"penalty": "l1", "penalty_factor": factors}),
            (X, {"penalty": "l1"}),
        )
    ]
    name = "squares, L1 path, 7 free features, 10000 x 57"
    yield Row(name, calls[0], "without them", calls[1], both, 0.75)


def predict(seed: int) -> Iterator[Row]:
    X, y = dense(200_000, 50, "binary", seed)
    few = X[:5000], y[:5000]
    ours = OURS.LogisticRegression().fit(*few)
    peer = linear_model.LogisticRegression().fit(*few)
    name = type(peer).__name__
    for method, bar in (
        ("decision_function", 0.9),
        ("predict", 0.9),
        ("predict_proba", 0.8),
    ):
        calls = [partial(getattr(model, method), X) for model in (ours, peer)]
        yield Row(f"{method}, 200000 x 50", calls[0], name, calls[1], X, bar)
    rows = [partial(_often, model, X[:1]) for model in (ours, peer)]
    yield Row("predict, one row", rows[0], name, rows[1], None, 2.0)


def _often(model: Any, X: Any) -> None:
    for _ in range(100):
        model.predict(X)


def search(seed: int) -> Iterator[Row]:
    X, y = _generated.classes(20_000, 200, 2, seed)
    Cs = np.logspace(-3, 2, 10)
    peer = GridSearchCV(linear_model.LogisticRegression(max_iter=1000), {"C": Cs}, cv=5)
    ours = subqn.L1LogisticOWLQNCV(
        1.0 / (16_000 * Cs), l1_ratio=0.0, cv=5, scoring="accuracy"
    )
    yield Row("log loss, our CV class, 20000 x 200", *fits(ours, peer, X, y), 2.0)
    grid = GridSearchCV(OURS.LogisticRegression(), {"C": Cs}, cv=5)
    yield Row("log loss, grid search, 20000 x 200", *fits(grid, peer, X, y), 1.0)


def zeros(seed: int) -> Iterator[Row]:
    rng = np.random.default_rng(seed)
    n, sizes = 20_000, [18] * 16 + [17]
    X = np.zeros((n, sum(sizes)))
    for start, size in zip(np.cumsum([0, *sizes[:-1]]), sizes, strict=True):
        X[np.arange(n), start + rng.integers(size, size=n)] = 1.0
    scores = X @ rng.normal(size=X.shape[1]) / 4.0
    y, counts = scores + rng.logistic(size=n) > 0.0, rng.poisson(np.exp(scores / 4.0))
    name = f"mostly zeros, {n} x {X.shape[1]}"
    ours, peer = OUR_SVM.LinearSVC(), svm.LinearSVC()
    yield Row(f"squared hinge, {name}", *fits(ours, peer, X, y), 1.0)
    ours, peer = OURS.PoissonRegressor(), linear_model.PoissonRegressor(max_iter=1000)
    yield Row(f"Poisson, {name}", *fits(ours, peer, X, counts.astype(float)), 1.0)


def genes(seed: int) -> Iterator[Row]:
    X, y = _generated.genes(200, 12_000, seed)
    yield _gene_path("genes, 200 x 12000, 30 alphas", X, y, np.ones(X.shape[1]))
    rng = np.random.default_rng(seed)
    X, y = _generated.genes(300, 8000, seed)
    X = np.asfortranarray(np.hstack([X, rng.normal(size=(len(y), 7))]))
    factors = np.append(np.ones(8000), np.zeros(7))
    yield _gene_path("genes and 7 free covariates, 300 x 8007", X, y, factors)


def groups(seed: int) -> Iterator[Row]:
    """Yield paths of squares with norms of groups of ten correlated features."""
    rng = np.random.default_rng(seed)
    n, d, size = 2000, 5000, 10
    X = rng.normal(size=(n, d // size, size))
    for j in range(1, size):
        X[:, :, j] = 0.5 * (X[:, :, j] + X[:, :, j - 1])
    X = X.reshape(n, d)
    y = X[:, :200] @ rng.normal(size=200) + 5.0 * rng.normal(size=n)
    slopes = np.linalg.norm(((y - y.mean()) @ X / n).reshape(-1, size), axis=1)
    factors, F = np.full(d // size, np.sqrt(size)), np.asfortranarray(X)

    def peer(alphas: Any) -> None:
        from skglm import GroupLasso

        # The first fit of a process compiles; copies of the process have the result.
        model = GroupLasso(size, weights=factors, tol=1e-3, warm_start=True)
        for alpha in alphas:
            model.set_params(alpha=alpha).fit(F, y)

    if has("skglm"):
        peer(slopes.max() / factors[:1])
    for share in (0.1, 0.01):
        alphas = slopes.max() / factors[0] * np.geomspace(1.0, share, 30)
        ours = subqn.BMRMRegressorCV(
            alphas,
            penalty="group",
            groups=np.arange(d) // size,
            cv=[(np.arange(n), np.arange(2))],
            refit=False,
        )
        name = f"squares, path of groups to {share:g}, {n} x {d}"
        its = partial(peer, alphas) if has("skglm") else None
        yield Row(name, partial(ours.fit, X, y), "skglm", its, X, 1.0)


def _gene_path(name: str, X: Any, y: Any, factors: Any) -> Row:
    """Return a row of paths on five folds; a factor of zero leaves a feature free."""
    folds = list(StratifiedKFold(5).split(X, y))
    given = None if factors.all() else factors
    largest = subqn.L1LogisticOWLQN(penalty_factor=given).alpha_max(X, y)
    alphas = np.geomspace(largest, 0.05 * largest, 30)
    ours = subqn.L1LogisticOWLQNCV(alphas, cv=folds, refit=False, penalty_factor=given)

    parts = [
        (np.asfortranarray(X[train]), y[train].astype(float)) for train, _ in folds
    ]

    def peer() -> None:
        import adelie

        for features, labels in parts:
            adelie.grpnet(
                features,
                adelie.glm.binomial(y=labels),
                lmda_path=alphas,
                penalty=factors,
                early_exit=False,
                progress_bar=False,
            )

    fit = partial(ours.fit, X, y)
    return Row(name, fit, "adelie", peer if has("adelie") else None, X, 1.0)


def glum_fit(
    categories: list[Any],
    numbers: Any,
    y: Any,
    sample_weight: Any = None,
    **options: Any,
) -> Callable[[], Any] | None:
    """Return the call of a fit by glum, with its data prepared; None without glum."""
    if not has("glum"):
        return None
    import glum
    import tabmat

    parts = [tabmat.CategoricalMatrix(each) for each in categories]
    A = tabmat.SplitMatrix([*parts, tabmat.DenseMatrix(np.asfortranarray(numbers))])

    def fit() -> None:
        model = glum.GeneralizedLinearRegressor(**options)
        model.fit(A, y, sample_weight=sample_weight)

    return fit


def insurance(seed: int) -> Iterator[Row]:
    data = _generated.insurance(700_000, seed)
    claims = np.flatnonzero(data.n_claims > 0)[:18_000]
    X, y, weights = data.X[claims], data.severity[claims], data.n_claims[claims]
    ours = subqn.BMRMRegressor(loss="gamma", alpha=1e-4)

    options = {"family": "gamma", "alpha": 1e-4, "l1_ratio": 0}
    levels = [c[claims] for c in data.categories]
    peer = glum_fit(levels, data.numbers[claims], y, sample_weight=weights, **options)
    fit = partial(ours.fit, X, y, sample_weight=weights)
    yield Row(f"insurance, gamma, {len(y)} rows", fit, "glum", peer, X, 1.0)


def firms(seed: int) -> Iterator[Row]:
    """Yield fixed effects: one column of each of 1,000 firms, seen in eight years."""
    rng = np.random.default_rng(seed)
    n_firms, n_years = 1000, 8
    n = n_firms * n_years
    firm = np.repeat(np.arange(n_firms), n_years)
    numbers = rng.normal(size=(n, 3))
    dummies = sparse.csr_matrix((np.ones(n), (np.arange(n), firm)))
    X = sparse.hstack([dummies, sparse.csr_matrix(numbers)], format="csr")
    scores = numbers @ rng.normal(size=3) / 2.0 + rng.normal(size=n_firms)[firm] / 2.0
    for loss, family, y in (
        ("squared_error", "normal", scores + rng.normal(size=n)),
        ("poisson", "poisson", rng.poisson(np.exp(scores)).astype(float)),
    ):
        used = np.bincount(firm, y)[firm] > 0.0 if loss == "poisson" else slice(None)
        options = {"family": family, "alpha": 0.0, "fit_intercept": False}
        peer = glum_fit([firm[used]], numbers[used], y[used], **options)
        model = subqn.BMRMRegressor(loss=loss, alpha=0, fit_intercept=False)
        fit = partial(model.fit, X[used], y[used])
        yield Row(f"1000 firms x 8 years, {loss}", fit, "glum", peer, X, 1.0)


def levels(seed: int) -> Iterator[Row]:
    """Yield counts by 200 levels, smoothed by the differences of neighbors."""
    rng = np.random.default_rng(seed)
    n, k = 100_000, 200
    level = rng.integers(k, size=n)
    X = sparse.csr_matrix((np.ones(n), (np.arange(n), level)), (n, k))
    y = rng.poisson(np.exp(np.sin(level / 30.0))).astype(float)
    differences = np.diff(np.eye(k), axis=0)
    penalty = differences.T @ differences + 1e-3 * np.eye(k)
    ours = subqn.BMRMRegressor(
        loss="poisson", alpha=1e-3, penalty="quadratic", penalty_matrix=penalty
    )

    options = {"family": "poisson", "alpha": 1e-3, "l1_ratio": 0, "P2": penalty}
    peer = glum_fit([level], np.empty((n, 0)), y, **options)
    fit = partial(ours.fit, X, y)
    yield Row(f"smoothed levels, Poisson, {n} x {k}", fit, "glum", peer, X, 1.0)


def stream(seed: int) -> Iterator[Row]:
    n = 60_000
    X, y = _generated.clicks(n, 1 << 18, seed)
    calls = [
        (X[start : start + 1000], y[start : start + 1000])
        for start in range(0, n, 1000)
    ]
    makers = (
        partial(subqn.OnlineLBFGSClassifier, random_state=0),
        partial(linear_model.SGDClassifier, loss="log_loss", random_state=0),
    )

    def learn(make: Callable[[], Any]) -> None:
        model = make()
        for rows, labels in calls:
            model.partial_fit(rows, labels, classes=[-1.0, 1.0])

    ours, peer = (partial(learn, make) for make in makers)
    name = "stream of hashed rows, 1000 a call"
    yield Row(name, ours, "SGDClassifier", peer, X, 0.75)
    for k in (10, 60):
        X, y = _generated.topics(10_000, 1 << 16, k, seed)
        models = [make() for make in makers]
        yield Row(
            f"online fit, {k} classes, 10000 x {1 << 16}", *fits(*models, X, y), 0.5
        )


def others(seed: int) -> Iterator[Row]:
    X, y = dense(50_000, 100, "binary", seed)
    ours, peer = OURS.LogisticRegression(), linear_model.LogisticRegression()
    X = X.astype(np.float32)
    yield Row("log loss, float32, 50000 x 100", *fits(ours, peer, X, y), 1.0)
    X, y = _generated.topics(10_000, 50_000, 100, seed)
    ours, peer = OUR_SVM.LinearSVC(loss="hinge"), svm.LinearSVC(loss="hinge")
    yield Row("hinge, text, each of 100 topics", *fits(ours, peer, X, y), 0.8)
    X, y = _generated.topics(10_000, 50_000, 20, seed)
    ours = subqn.MulticlassHingeClassifier(alpha=1.0 / len(y))
    peer = svm.LinearSVC(multi_class="crammer_singer")
    yield Row("joint hinge, text, 20 topics", *fits(ours, peer, X, y), 1.0)
    ours = subqn.L1LogisticOWLQN(alpha=1.0 / len(y))
    peer = linear_model.LogisticRegression(l1_ratio=1.0, solver="liblinear")
    peer = OneVsRestClassifier(peer)
    yield Row("L1 softmax, text, 20 topics", *fits(ours, peer, X, y), 1.0 / 3.0)


def growth(seed: int) -> Iterator[Row]:
    """Yield fits that should not take more than five times as long for more data."""

    def row(name: str, kind: str, model: Any, small: Any, large: Any) -> Row:
        calls = [
            partial(model.fit, *dense(*size, kind, seed)) for size in (small, large)
        ]
        sizes = [f"{n} x {d}" for n, d in (small, large)]
        X = np.empty(large)
        return Row(f"{name}, {sizes[1]}", calls[1], sizes[0], calls[0], X, 1.0, 5.0)

    ours = subqn.BMRMRegressor(loss="quantile", penalty="l1", alpha=0.01)
    yield row("quantile, L1", "number", ours, (3000, 50), (10_000, 50))
    for name, kind, model in (
        ("Huber", "number", OURS.HuberRegressor()),
        ("log loss", "binary", OURS.LogisticRegression()),
        ("hinge", "binary", OUR_SVM.LinearSVC(loss="hinge")),
    ):
        yield row(name, kind, model, (10_000, 30), (10_000, 100))


PARTS = {
    each.__name__: each
    for each in (
        ridge,
        lasso,
        covariates,
        predict,
        search,
        zeros,
        genes,
        groups,
        insurance,
        firms,
        levels,
        stream,
        others,
        growth,
    )
}


def status(key: str) -> int:
    """Return a size of this process in KiB, as Linux tells it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key))


def with_memory(call: Callable[[], Any]) -> tuple[float, float]:
    """Return the least seconds of a call, and the bytes that the first one takes."""
    # Memory that was freed would be taken again without growth, and the peak of the
    # parent process is inherited.
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before, files = status("VmRSS"), status("RssFile")
    first = timed(call)[1]
    # A copied process reads the pages of libraries anew, which takes no memory.
    memory = 1024.0 * (status("VmHWM") - before - (status("RssFile") - files))
    # Clocks of processor time may have steps of several milliseconds.
    often = math.ceil(0.1 / max(first, 2e-3))
    turns = 5 if first < 0.2 else 1 if first < 1.0 else 0
    all_seconds = [
        timed(lambda: [call() for _ in range(often)])[1] / often for _ in range(turns)
    ]
    return min(all_seconds, default=first), memory


def size(X: Any) -> float:
    arrays = (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)
    return float(sum(each.nbytes for each in arrays))


def measure(args: Any, results: common.Results) -> None:
    warnings.simplefilter("ignore", UserWarning)
    warnings.simplefilter("ignore", FutureWarning)
    warnings.simplefilter("ignore", ConvergenceWarning)
    for part in args.rows:
        for row in PARTS[part](args.seed):
            found: list[list[Any]] = [[], []]
            for _ in range(args.turns):
                for call, answers in zip((row.ours, row.peer), found, strict=True):
                    if call is not None:
                        answers.append(in_copy(call, args.limit, run=with_memory))
                if sum(each[0] for each in found[0] if each) > args.patience:
                    break
            store(row, found, results)


def store(row: Row, found: list[list[Any]], results: common.Results) -> None:
    """Store and print a row; a call that failed or took too long has no figures."""
    entry: dict[str, Any] = {"name": row.name, "peer": row.peer_name, "bar": row.bar}
    for who, answers in zip(("ours", "of_peer"), found, strict=True):
        if answers and None not in answers:
            entry[who] = 1e3 * min(seconds for seconds, _ in answers)
            if row.X is not None and size(row.X) >= 4e6:
                entry[f"{who}_memory"] = answers[0][1] / size(row.X)
    if row.peer is None:
        entry["peer"] = f"{row.peer_name}, not installed"
    if "ours" in entry and "of_peer" in entry:
        entry["ratio"] = (row.growth or 1.0) * entry["of_peer"] / entry["ours"]
    results.add(row.name, **entry)
    print(row.name, {k: v for k, v in entry.items() if k != "name"}, flush=True)


def render(results: dict[str, Any]) -> str:
    rows = results["rows"]
    columns = {
        "row": "name",
        "beside": "peer",
        "ours_(ms)": "ours:.1f",
        "its_(ms)": "of_peer:.1f",
        "ratio": "ratio:.2f",
        "bar": "bar:.2f",
        "memory_/_X": "ours_memory:.2f",
        "its_memory": "of_peer_memory:.2f",
    }
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    reached = sum(row.get("ratio", 0.0) >= row["bar"] for row in rows)
    ends = f"Median ratio: {statistics.median(ratios):.2f}; {reached} of {len(rows)} "
    return f"{table(rows, **columns)}\n\n{ends}rows reach their bar."


BENCHMARK = Benchmark(
    "everyday",
    __doc__,
    measure,
    render,
    rows=tuple(PARTS),
    turns={"default": 2, "help": "copies of the process for each of ours and the peer"},
    patience={"default": 3.0, "help": "seconds of ours after which it has no turn"},
    limit={"default": 60.0, "help": "seconds of one copy of the process"},
    seed=0,
)

if __name__ == "__main__":
    BENCHMARK.run()

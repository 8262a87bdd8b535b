"""Online learning without tuning, beside SGDClassifier, Vowpal Wabbit and river.

    python benchmarks/online.py --data-dir DIR

Logistic loss, alpha 1e-4. Every method sees the rows in the same shuffled orders. After
each of five passes: how far the objective is above the optimum, the test accuracy
against that of the optimum, and processor seconds. Then rows per second of
``partial_fit`` at 256 rows a call; test accuracy after one pass by the number of rows a
call; and accuracy on streams whose concept or scales change.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import common
import datasets
import numpy as np
from _harness import Benchmark, new_figure, table
from scipy import sparse
from sklearn.linear_model import (
    LogisticRegression,
    PassiveAggressiveClassifier,
    SGDClassifier,
)
from sklearn.preprocessing import StandardScaler, normalize

from sklearn_subqn import L1LogisticOWLQN, OnlineLBFGSClassifier

NAME = "online"
ALPHA = 1e-4
PASSES = 5
BATCH = 256
ROWS = (1, 3, 10, 30, 60, 256)
# Of single rows and of three, as many as take about as long as all in larger calls.
MOST_CALLS = {1: 6000, 3: 3000}
PARTS = ("passes", "throughput", "rows", "changes")
DATA = ("a9a", "rcv1_ccat", "covtype", "covtype_raw", "mnist")

# Units of the ten quantities in covtype, which its distributed file scales to [0, 1].
COVTYPE_LOW = np.array([1859, 0, 0, 0, -173, 0, 0, 0, 0, 0.0])
COVTYPE_HIGH = np.array([3858, 360, 66, 1397, 601, 7117, 254, 254, 254, 7173.0])

GRID = [
    {"learning_rate": "optimal", "average": average} for average in (False, True)
] + [
    {"learning_rate": rate, "eta0": eta0, "average": average}
    for rate, eta0, average in itertools.product(
        ("constant", "invscaling"),
        [float(f"1e{i}") for i in range(-7, 2)],
        (False, True),
    )
]

Scores = Callable[[Any], np.ndarray]


def load(name: str, args: Any) -> tuple[Any, Any, Any, Any]:
    """Return rows and labels of -1 or +1, of the training and of the test part."""
    base = name.removesuffix("_raw")
    parts = []
    for part in (base, f"{base}.t"):
        X, y = datasets.load_part(part, args.data_dir)
        if name.endswith("_raw"):
            X[:, :10] = COVTYPE_LOW + X[:, :10] * (COVTYPE_HIGH - COVTYPE_LOW)
        parts += [X, y]
    return tuple(parts)  # type: ignore[return-value]


def objective(scores: np.ndarray, y: np.ndarray, coef: np.ndarray) -> float:
    return float(np.logaddexp(0.0, -y * scores).mean() + 0.5 * ALPHA * coef @ coef)


def optimum(X: Any, y: Any, T: Any, t: Any) -> dict[str, float]:
    solver = "lbfgs" if X.shape[1] > 200 else "newton-cholesky"
    rows = X.toarray() if sparse.issparse(X) and X.shape[1] <= 200 else X
    model = LogisticRegression(
        C=1.0 / (len(y) * ALPHA), solver=solver, tol=1e-6, max_iter=2000
    ).fit(rows, y)
    scores = np.asarray(X @ model.coef_[0]) + model.intercept_[0]
    return {
        "objective": objective(scores, y, model.coef_[0]),
        "accuracy": float(model.score(T, t)),
    }


def orders(n: int) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(0)
    for _ in range(PASSES):
        yield rng.permutation(n)


def learn(model: Any, X: Any, y: Any, size: int | None) -> float:
    """Make one pass in calls of so many rows; return processor seconds."""
    n = X.shape[0]
    begin = time.process_time()
    for start in range(0, n, size or n):
        rows = slice(start, start + (size or n))
        model.partial_fit(X[rows], y[rows], classes=[-1.0, 1.0])
    return time.process_time() - begin


def passes(model: Any, data: Any, size: int | None) -> list[tuple[float, float, float]]:
    """Return objective, test accuracy and seconds so far after each pass."""
    X, y, T, t = data
    curve, seconds = [], 0.0
    for order in orders(len(y)):
        seconds += learn(model, X[order], y[order], size)
        scores = model.decision_function(X)
        value = objective(scores, y, model.coef_[0])
        curve.append((value, float(model.score(T, t)), seconds))
    return curve


def tuned(data: Any) -> tuple[list[tuple[float, float, float]], str]:
    """Return the curve of the setting of SGDClassifier with the best last objective."""
    best: tuple[float, Any, str] = (np.inf, None, "")
    for setting in GRID:
        model = SGDClassifier(loss="log_loss", alpha=ALPHA, random_state=0, **setting)
        with np.errstate(all="ignore"):
            try:
                curve = passes(model, data, None)
            except ValueError:  # overflow
                continue
        if curve[-1][0] < best[0]:
            shown = ", ".join(f"{key}={value}" for key, value in setting.items())
            best = curve[-1][0], curve, shown
    return best[1], best[2]


def vowpal_wabbit(data: Any) -> list[tuple[float, float, float]] | None:
    """Return test accuracies of Vowpal Wabbit's defaults for the logistic loss."""
    try:
        from vowpalwabbit import Workspace
    except ImportError:
        return None
    X, y, T, t = (sparse.csr_array(a) if a.ndim == 2 else a for a in data)

    def lines(rows: Any, labels: Any) -> list[str]:
        texts = []
        for i, label in enumerate(labels):
            part = slice(rows.indptr[i], rows.indptr[i + 1])
            pairs = zip(rows.indices[part], rows.data[part], strict=True)
            features = " ".join(f"{j}:{v:.7g}" for j, v in pairs)
            texts.append(f"{int(label)} | {features}")
        return texts

    train, test = lines(X, y), lines(T, t)
    model = Workspace("--loss_function logistic --binary --quiet -b 18")
    curve, seconds = [], 0.0
    for order in orders(len(y)):
        begin = time.process_time()
        for i in order:
            model.learn(train[i])
        seconds += time.process_time() - begin
        right = np.mean(
            [model.predict(text) == s for text, s in zip(test, t, strict=True)]
        )
        curve.append((np.nan, float(right), seconds))
    model.finish()
    return curve


def river_of(data: Any) -> list[tuple[float, float, float]] | None:
    """Return what river's logistic regression after a scaler reaches in one pass."""
    try:
        from river import linear_model, preprocessing
    except ImportError:
        return None
    X, y, T, t = data
    is_sparse = sparse.issparse(X)
    scaler = preprocessing.MaxAbsScaler if is_sparse else preprocessing.StandardScaler
    model = scaler() | linear_model.LogisticRegression()

    def row(rows: Any, i: int) -> dict[int, float]:
        if not is_sparse:
            return dict(enumerate(rows[i].tolist()))
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        return dict(
            zip(rows.indices[part].tolist(), rows.data[part].tolist(), strict=True)
        )

    begin = time.process_time()
    for i in next(orders(len(y))):
        model.learn_one(row(X, i), bool(y[i] > 0.0))
    seconds = time.process_time() - begin
    right = np.mean(
        [model.predict_one(row(T, i)) == (t[i] > 0.0) for i in range(len(t))]
    )
    return [(np.nan, float(right), seconds)]


def measure_passes(results: common.Results, args: Any) -> None:
    for name in args.data:
        data = load(name, args)
        best = optimum(*data)
        curves: dict[str, tuple[Any, str]] = {
            "OnlineLBFGSClassifier()": (
                passes(OnlineLBFGSClassifier(), data, BATCH),
                "",
            ),
            "SGDClassifier(log_loss)": (
                passes(SGDClassifier(loss="log_loss", random_state=0), data, BATCH),
                "",
            ),
            "SGDClassifier, tuned": tuned(data),
            "Vowpal Wabbit": (vowpal_wabbit(data), ""),
            "river": (river_of(data), ""),
        }
        for method, (curve, setting) in curves.items():
            if curve is None:
                continue
            results.add(
                f"passes | {name} | {method}",
                kind="passes",
                data=name,
                method=method,
                setting=setting,
                optimum=best,
                curve=curve,
            )
            print(name, method, curve[0], curve[-1], setting, flush=True)


def measure_throughput(results: common.Results, args: Any) -> None:
    rows = {"dense 200,000 x 54": datasets.dense(200_000, 54)}
    if "rcv1_ccat" in args.data:
        rows["rcv1_ccat"] = load("rcv1_ccat", args)[:2]
    for name, (X, y) in rows.items():
        seconds: dict[str, list[float]] = {}
        for _ in range(5):
            for method, model in (
                ("OnlineLBFGSClassifier()", OnlineLBFGSClassifier()),
                ("SGDClassifier()", SGDClassifier()),
                ("SGDClassifier(log_loss)", SGDClassifier(loss="log_loss")),
            ):
                seconds.setdefault(method, []).append(learn(model, X, y, BATCH))
        for method, values in seconds.items():
            results.add(
                f"throughput | {name} | {method}",
                kind="throughput",
                data=name,
                method=method,
                n_rows=len(y),
                seconds=values,
            )
            print(name, method, len(y) / np.median(values), "rows/s", flush=True)


def texts(n: int, d: int, seed: int, words: int = 200_000) -> tuple[Any, Any]:
    """Return rows of 40 words by Zipf's law, hashed to d columns, of norm one."""
    rng = np.random.default_rng(seed)
    p = np.arange(1, words + 1) ** -1.05
    drawn = rng.choice(words, size=(n, 40), p=p / p.sum())
    places = rng.integers(d, size=words).astype(np.int32)
    coef = rng.standard_normal(words) * rng.lognormal(size=words)
    score = coef[drawn].sum(axis=1) / np.sqrt(10.0)
    y = np.where(score + 0.5 * rng.logistic(size=n) > np.median(score), 1.0, -1.0)
    pointers = np.arange(0, 40 * n + 1, 40, dtype=np.int32)
    X = sparse.csr_matrix((np.ones(40 * n), places[drawn].ravel(), pointers), (n, d))
    X.sum_duplicates()
    return normalize(X), y


def measure_rows(results: common.Results, args: Any) -> None:
    X, y = texts(25_000, 2**20, 0)
    streams = {"2^20 hashed columns": (X[:20_000], y[:20_000], X[20_000:], y[20_000:])}
    if "rcv1_ccat" in args.data:
        streams["rcv1_ccat"] = load("rcv1_ccat", args)
    for name, (X, y, T, t) in streams.items():
        for loss, size in itertools.product(("log_loss", "hinge"), ROWS):
            for Model in (OnlineLBFGSClassifier, SGDClassifier):
                model = Model(loss=loss, random_state=0)
                n = size * MOST_CALLS.get(size, len(y))
                seconds = learn(model, X[:n], y[:n], size)
                method = f"{Model.__name__}({loss})"
                results.add(
                    f"rows | {name} | {method} | {size}",
                    kind="rows",
                    data=name,
                    method=method,
                    size=size,
                    n_rows=min(n, len(y)),
                    accuracy=float(model.score(T, t)),
                    seconds=seconds,
                )
                print(name, method, size, model.score(T, t), seconds, flush=True)


class Standardized:
    """SGDClassifier after StandardScaler, both by ``partial_fit``."""

    def __init__(self, center: bool = True, **options: Any) -> None:
        self.scaler = StandardScaler(with_mean=center)
        self.model = SGDClassifier(**options)

    def partial_fit(self, X: Any, y: Any, classes: Any) -> None:
        self.scaler.partial_fit(X)
        self.model.partial_fit(self.scaler.transform(X), y, classes)

    def predict(self, X: Any) -> Any:
        return self.model.predict(self.scaler.transform(X))


def changing(kind: str, seed: int, d: int = 20) -> tuple[Any, Any, int]:
    """Return rows, labels, and the row at which a stream changes."""
    rng = np.random.default_rng(seed)
    first, second = rng.standard_normal((2, d))
    n, change = {"prefix": (30_000, 20_000), "late": (20_000, 18_000)}.get(
        kind, (20_000, 10_000)
    )
    X = rng.standard_normal((3 * n if kind == "prefix" else n, d))
    scores = X @ first
    if kind == "late":
        scores[change:] = X[change:] @ second
    y = np.where(scores + rng.logistic(size=len(X)) > 0.0, 1.0, -1.0)
    if kind == "prefix":
        rows = np.append(np.flatnonzero(y < 0.0)[:change], np.arange(2 * n, 3 * n))
        X, y = X[rows][:n], y[rows][:n]
    if kind == "scale up":
        X[change:, : d // 2] *= 100.0
    if kind == "scale down":
        X[change:, : d // 2] /= 100.0
    return X, y, change


def measure_changes(results: common.Results) -> None:
    sgd = {"loss": "log_loss", "random_state": 0}
    l1 = {"penalty": "l1", "alpha": 1e-5}
    methods: dict[str, Callable[[bool], Any]] = {
        "OnlineLBFGSClassifier()": lambda text: OnlineLBFGSClassifier(
            **({"alpha": 1e-5, "l1_ratio": 1.0} if text else {})
        ),
        "SGDClassifier(log_loss)": lambda text: SGDClassifier(
            **sgd, **(l1 if text else {})
        ),
        "PassiveAggressiveClassifier()": lambda text: PassiveAggressiveClassifier(
            random_state=0
        ),
        "StandardScaler, SGDClassifier": lambda text: Standardized(
            not text, **sgd, **(l1 if text else {})
        ),
    }
    kinds = ["prefix", "scale up", "scale down", "late", "text, L1"]
    for kind, seed, size in itertools.product(kinds, (0, 1), (10, 100)):
        text = kind == "text, L1"
        if text:
            X, y = texts(20_000, 50_000, seed, words=50_000)
            change, best = 10_000, None
            if size == 100:
                best = L1LogisticOWLQN(1e-5, tol=1e-3).fit(X, y)
        else:
            X, y, change = changing(kind, seed)
        for method, make in methods.items():
            model, right = make(text), []
            for start in range(0, len(y), size):
                rows = slice(start, start + size)
                if start >= change:
                    right.append(float(np.mean(model.predict(X[rows]) == y[rows])))
                model.partial_fit(X[rows], y[rows], classes=[-1.0, 1.0])
            row: dict[str, Any] = {}
            if text and size == 100 and "Scaler" not in method:
                margins = y * model.decision_function(X)
                value = np.logaddexp(0.0, -margins).mean()
                value += 1e-5 * np.abs(model.coef_).sum()
                row["excess"] = float(value / best.objective_ - 1.0)
                row["nonzeros"] = int(np.count_nonzero(model.coef_))
                row["best_nonzeros"] = int(np.count_nonzero(best.coef_))
            results.add(
                f"changes | {kind} | {seed} | {size} | {method}",
                kind="changes",
                stream=kind,
                seed=seed,
                size=size,
                method=method,
                accuracy=float(np.mean(right)),
                **row,
            )
            print(kind, seed, size, method, np.mean(right), row, flush=True)


def of_kind(results: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [row for row in results["rows"] if row["kind"] == kind]


def render(results: dict[str, Any]) -> str:
    """Return Markdown tables."""
    renders = {
        "passes": render_passes,
        "throughput": render_throughput,
        "rows": render_rows,
        "changes": render_changes,
    }
    found = {kind: of_kind(results, kind) for kind in renders}
    return "\n\n".join(renders[kind](rows) for kind, rows in found.items() if rows)


def render_passes(rows: list[dict[str, Any]]) -> str:
    lines, settings = [], []
    for row in rows:
        best, curve = row["optimum"], row["curve"]
        cells = [row["data"], row["method"]]
        for i in (0, PASSES - 1):
            value, accuracy, _ = curve[i] if i < len(curve) else (np.nan,) * 3
            excess = 100.0 * (value / best["objective"] - 1.0)
            loss = 100.0 * (accuracy - best["accuracy"])
            cells += ["" if np.isnan(excess) else f"{excess:.3g}"]
            cells += ["" if np.isnan(loss) else f"{loss:+.2f}"]
        cells.append(f"{curve[0][2]:.2f}")
        lines.append(cells)
        if row["setting"]:
            settings.append(f"{row['data']}: {row['setting']}")
    header = ["data", "method", "after 1 pass: J above optimum, %"]
    header += ["test accuracy against that of the optimum, points"]
    header += ["after 5 passes: J, %", "accuracy, points", "processor s of a pass"]
    return common.markdown_table(header, lines) + (
        "\n\nWhere J is missing the method has no L2 penalty of the same kind. The "
        "tuned SGDClassifier got each pass in one call, the others 256 rows a call or "
        "one (Vowpal Wabbit, river). Its settings, with the best objective after five "
        f"passes among {len(GRID)}: " + "; ".join(settings) + "."
    )


def render_throughput(rows: list[dict[str, Any]]) -> str:
    ours = {
        row["data"]: np.median(row["seconds"])
        for row in rows
        if row["method"].startswith("Online")
    }
    return (
        "`partial_fit` of 256 rows a call, medians of five passes taken in turns:\n\n"
    ) + table(
        rows,
        data="data",
        method="method",
        rows_per_processor_second=lambda r: (
            f"{r['n_rows'] / np.median(r['seconds']):,.0f}"
        ),
        ours_are_times_as_many=lambda r: (
            f"{np.median(r['seconds']) / ours[r['data']]:.2f}"
        ),
    )


def render_rows(rows: list[dict[str, Any]]) -> str:
    found = {(row["data"], row["method"], row["size"]): row["accuracy"] for row in rows}
    lines = [
        [*key, *(f"{found[*key, size]:.4f}" for size in ROWS)]
        for key in dict.fromkeys(key[:2] for key in found)
    ]
    return (
        "Test accuracy after one pass by the number of rows a call (6000 calls of one "
        "row, 3000 of three), all with default alpha:\n\n"
    ) + common.markdown_table(["data", "method", *map(str, ROWS)], lines)


def render_changes(rows: list[dict[str, Any]]) -> str:
    found: dict[Any, list[Any]] = {}
    for row in rows:
        key = row["stream"], str(row["size"]), row["method"]
        found.setdefault(key, []).append(row)
    lines = []
    for key, instances in found.items():
        accuracies = [f"{100.0 * row['accuracy']:.1f}" for row in instances]
        sparse_cells = [
            f"{100.0 * row['excess']:.0f}; {row['nonzeros']} for {row['best_nonzeros']}"
            for row in instances
            if "excess" in row
        ]
        lines.append([*key, ", ".join(accuracies), ", ".join(sparse_cells)])
    header = ["stream", "rows a call", "method", "accuracy from there on, %"]
    header.append("J above optimum, %; nonzeros")
    return (
        "Streams that change, two instances each: 20,000 rows of one class, then "
        "10,000 of both; half of the features times or over 100 after 10,000 of 20,000 "
        "rows; another concept after 18,000 of 20,000. Last 20,000 texts with an L1 "
        "penalty, accuracy of the second half:\n\n"
    ) + common.markdown_table(header, lines)


def plot(results: dict[str, Any]) -> Any:
    rows = of_kind(results, "passes")
    if not rows:
        return None
    names = list(dict.fromkeys(row["data"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    figure, axes = new_figure(3, len(names), (3.2, 2.7))
    for row in rows:
        column = axes[:, names.index(row["data"])]
        best, curve = row["optimum"], np.array(row["curve"], dtype=float)
        number = np.arange(1, len(curve) + 1)
        excess = 100.0 * (curve[:, 0] / best["objective"] - 1.0)
        colour = f"C{methods.index(row['method'])}"
        style = {"color": colour, "marker": "o", "ms": 3, "label": row["method"]}
        if np.isfinite(excess).any():
            column[0].semilogy(number, np.maximum(excess, 1e-4), **style)
            column[1].loglog(curve[:, 2], np.maximum(excess, 1e-4), **style)
        column[2].plot(number, 100.0 * (1.0 - curve[:, 1]), **style)
        error = 100.0 * (1.0 - best["accuracy"])
        column[2].axhline(error, color="0.7", lw=0.8)
        column[2].set_ylim(error - 1.0, error + 8.0)
        column[0].set(title=row["data"], xlabel="passes")
        column[1].set(xlabel="processor seconds")
        column[2].set(xlabel="passes")
    for ax in axes[:2, 0]:
        ax.set_ylabel("objective above optimum, %")
    axes[2, 0].set_ylabel("test error, %")
    axes[2, 0].legend(fontsize=7)
    return figure


def measure_all(args: Any, results: common.Results) -> None:
    parts = {
        "throughput": lambda: measure_throughput(results, args),
        "rows": lambda: measure_rows(results, args),
        "changes": lambda: measure_changes(results),
        "passes": lambda: measure_passes(results, args),
    }
    for part in args.parts:
        parts[part]()


BENCHMARK = Benchmark(NAME, __doc__, measure_all, render, DATA, draw=plot, parts=PARTS)

if __name__ == "__main__":
    BENCHMARK.run()

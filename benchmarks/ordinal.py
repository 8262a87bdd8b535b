"""Ordered classes: errors and seconds of ordinal and multinomial models.

python benchmarks/ordinal.py --data-dir DIR [--rows N]

Features are standardized, alpha is chosen by the mean absolute error on a validation
set; means over eight splits and their standard errors are of the test set. Targets of
regression data are cut at quantiles, and the rings of abalone where classes are not
rare. Models of mord take part if it is installed.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import common
import datasets
import numpy as np
from _harness import Benchmark, table, with_error
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from sklearn_subqn import BMRMClassifier

try:
    import mord
except ImportError:
    mord = None

DATA = ("abalone", "cadata", "cpusmall", "mq2008_S1")
ALPHAS = 10.0 ** np.arange(-5, 0)
N_SPLITS = 8


def load(name: str, data_dir: str | None) -> tuple[Any, Any]:
    """Return dense features and numbers of classes in order."""
    folder = Path(data_dir or datasets.data_dir_default() or ".")
    X, y = load_svmlight_file(str(folder / f"{name}.svm.bz2"))
    cuts = np.quantile(y, [0.1, 0.3, 0.7, 0.9])
    if name.startswith("mq2008"):
        cuts = [0.5, 1.5]
    elif name == "abalone":
        cuts = [6, 8, 10, 12, 15]
    return X.toarray(), np.digitize(y, cuts)


def models(n_rows: int) -> Iterator[tuple[str, Any]]:
    """Yield names and estimators of the same strengths of the penalty."""
    for alpha in ALPHAS:
        for loss in ("ordinal_all_threshold", "ordinal_immediate_threshold"):
            yield loss, BMRMClassifier(alpha, loss=loss)
        yield "LogisticRegression", LogisticRegression(C=1.0 / (alpha * n_rows))
        if mord:
            yield "mord.LogisticAT", mord.LogisticAT(alpha=alpha * n_rows)
            yield "mord.LogisticIT", mord.LogisticIT(alpha=alpha * n_rows)


def measure(name: str, args: Any, results: common.Results) -> None:
    """Add the errors of each model on a data set."""
    rows = int(args.rows) if args.rows > 1.0 else args.rows
    X, y = load(name, args.data_dir)
    errors, seconds = defaultdict(list), defaultdict(list)
    for seed in range(N_SPLITS):
        split = {"random_state": seed, "stratify": y, "train_size": rows}
        parts = train_test_split(X, y, **split)
        train, y_train = parts[0], parts[2]
        split = {"random_state": seed, "stratify": parts[3], "train_size": 0.5}
        valid, test, y_valid, y_test = train_test_split(parts[1], parts[3], **split)
        scaler = StandardScaler().fit(train)
        train, valid, test = map(scaler.transform, (train, valid, test))
        best = {}
        for kind, model in models(len(train)):
            begin = time.process_time()
            model.fit(train, y_train)
            seconds[kind].append(time.process_time() - begin)
            error = np.abs(model.predict(valid) - y_valid).mean()
            if kind not in best or error < best[kind][0]:
                best[kind] = error, model
        for kind, (_, model) in best.items():
            P = np.clip(model.predict_proba(test), 1e-9, 1.0)
            loss = log_loss(y_test, P / P.sum(axis=1, keepdims=True))
            errors[kind].append((np.abs(model.predict(test) - y_test).mean(), loss))
    for kind, found in errors.items():
        mae, loss = map(with_error, np.transpose(found))
        results.add(
            f"{name} | {kind}",
            data=f"{name}, {len(train)} rows, {y.max() + 1} classes",
            model=kind,
            mae=mae,
            loss=loss,
            seconds=float(np.median(seconds[kind])),
        )


def render(results: dict[str, Any]) -> str:
    return table(
        results["rows"],
        data="data",
        model="model",
        absolute_error="mae",
        log_loss="loss",
        seconds="seconds:.3f",
    )


BENCHMARK = Benchmark(
    "ordinal",
    __doc__,
    measure,
    render,
    DATA,
    each=True,
    rows={"default": 0.6, "help": "for training, as a share or a number"},
)

if __name__ == "__main__":
    BENCHMARK.run()

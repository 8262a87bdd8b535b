"""Ranking on LETOR 4.0's MQ2008, and F1 of rare classes.

python benchmarks/ranking.py --data-dir DIR

Ranking: five folds, each trained on three of the parts S1 to S5, the strength chosen on
the fourth by NDCG@10 and tested on the fifth, as LETOR prescribes. NDCG is given in two
definitions: LETOR's, with discount 1 at the first two ranks and 1 / log2(rank) below,
where a query of fewer than k rows has NDCG@k = 0; and the usual one, with discount
1 / log2(1 + rank), where such a query ends at its last row, as in LightGBM and
scikit-learn. Both have gains 2^y - 1, and count queries without relevant rows as 0. The
baseline is LinearSVC on differences of rows of unequal relevance. LightGBM's ranker,
where installed, with early stopping on the fourth part.

F1: one class against the rest, beside LogisticRegression with the best threshold of
cross-validated scores; means over three splits of the rows. Of both the strength is the
one of the best cross-validated F1, on the training rows.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import common
import datasets
import numpy as np
from _harness import Benchmark, with_error
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, precision_recall_curve
from sklearn.model_selection import cross_val_predict, train_test_split
from sklearn.svm import LinearSVC

from sklearn_subqn import BMRMClassifier, BMRMRanker

NAME = "ranking"
ALPHAS = tuple(10.0 ** (-0.5 * i) for i in range(11))
RANKS = 10
# As in the objective of the baseline, all pairs of all queries count alike.
PAIRS_ALIKE = ", all pairs alike"
LOSSES: dict[str, dict[str, Any]] = {
    "pairwise-linear": {},
    f"pairwise-linear{PAIRS_ALIKE}": {"loss": "pairwise-linear"},
    "pairwise": {},
    "pairwise-squared": {},
    "pairwise-log": {},
    f"pairwise{PAIRS_ALIKE}": {"loss": "pairwise"},
    "ndcg": {},
    "ndcg, k=10": {"loss": "ndcg", "k": 10},
    "precision, k=5": {"loss": "precision", "k": 5},
    "recall, k=5": {"loss": "recall", "k": 5},
    "mrr": {},
    "rank-utility": {},
    "ndcg-assignment": {},
}
METHODS = ["LinearSVC on pairs", *LOSSES, "LightGBM"]

# Published figures of linear rankers by LETOR's script: NDCG@1, 3, 5 and 10.
PUBLISHED = {
    "MDPRank": ("0.3827", "0.4420", "0.4881", "0.2327"),
    "PPG": ("0.3877", "0.4511", "0.4910", "0.2455"),
}
F1 = ("a9a:1", "covtype:5", "rcv1_topics:94", "rcv1_topics:16", "rcv1_topics:36")
F1_ALPHAS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
F1_SPLITS = 3


class Queries(NamedTuple):
    """Rows, relevances 0 to 2 and numbers of queries."""

    X: Any
    y: Any
    qid: Any


def load_parts(data_dir: str) -> list[Queries]:
    parts = []
    for i in range(1, 6):
        path = str(Path(data_dir, f"mq2008_S{i}.svm.bz2"))
        X, y, qid = load_svmlight_file(path, n_features=46, query_id=True)
        parts.append(Queries(X.toarray(), y, qid))
    return parts


def joined(parts: list[Queries]) -> Queries:
    return Queries(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def gains_over(gains: Any, discounts: Any) -> Any:
    """Return DCG at each rank."""
    return np.cumsum(gains * discounts[: len(gains)])


def ndcg(data: Queries, scores: Any) -> dict[str, list[float]]:
    """Return the mean NDCG@1, ..., NDCG@10 of the queries in both definitions."""
    ranks = np.arange(1.0, 1.0 + np.bincount(data.qid).max())
    usual = 1.0 / np.log2(1.0 + ranks)
    letor = np.append(1.0, 1.0 / np.log2(np.maximum(ranks[1:], 2.0)))
    total = np.zeros((2, RANKS))
    queries = np.unique(data.qid)
    for query in queries:
        rows = np.flatnonzero(data.qid == query)
        gains = 2.0 ** data.y[rows] - 1.0
        ranked = gains[np.argsort(-scores[rows], kind="stable")]
        best = np.sort(gains)[::-1]
        if not best[0]:
            continue
        m = min(len(rows), RANKS)
        ratio = gains_over(ranked, letor) / gains_over(best, letor)
        total[0, :m] += ratio[:m]
        ratio = gains_over(ranked, usual) / gains_over(best, usual)
        total[1] += ratio[np.minimum(np.arange(RANKS), len(rows) - 1)]
    letor_mean, usual_mean = (total / len(queries)).tolist()
    return {"letor": letor_mean, "usual": usual_mean}


def pairs_of(data: Queries) -> tuple[Any, Any]:
    """Return differences of rows of unequal relevance of a query, and their signs."""
    differences = []
    for query in np.unique(data.qid):
        rows = np.flatnonzero(data.qid == query)
        y = data.y[rows]
        worse, better = np.nonzero(y[:, np.newaxis] < y)
        differences.append(data.X[rows[better]] - data.X[rows[worse]])
    X = np.concatenate(differences)
    signs = np.where(np.arange(len(X)) % 2, 1.0, -1.0)
    return X * signs[:, np.newaxis], signs


#: From a strength and the last coefficients to new ones.
Fit = Callable[[float, Any], Any]


def best_on(valid: Queries, fit: Fit) -> tuple[float, Any]:
    """Return the strength with the largest NDCG@10, and its coefficients."""
    found, coef = [], None
    for alpha in ALPHAS:
        coef = fit(alpha, coef)
        score = ndcg(valid, valid.X @ coef)["usual"][-1]
        found.append((score, alpha, coef))
    _, alpha, coef = max(found, key=lambda each: each[0])
    return alpha, coef


def n_pairs(data: Queries) -> Any:
    """Return the number of pairs of unequal relevance of each query."""
    _, codes = np.unique(data.qid, return_inverse=True)
    counts = np.zeros((codes.max() + 1, 3))
    np.add.at(counts, (codes, data.y.astype(int)), 1.0)
    return 0.5 * (counts.sum(axis=1) ** 2 - (counts**2).sum(axis=1))


def our_fit(train: Queries, method: str) -> Fit:
    options = {"loss": method, **LOSSES[method]}
    weight = n_pairs(train) if method.endswith(PAIRS_ALIKE) else None

    def fit(alpha: float, coef: Any) -> Any:
        model = BMRMRanker(alpha, tol=1e-4, warm_start=coef is not None, **options)
        if coef is not None:
            model.coef_ = coef
        model.fit(train.X, train.y, qid=train.qid, query_weight=weight)
        return model.coef_

    return fit


def baseline_fit(train: Queries) -> Fit:
    X, signs = pairs_of(train)

    def fit(alpha: float, coef: Any) -> Any:
        model = LinearSVC(
            loss="hinge",
            C=1.0 / (len(signs) * alpha),
            fit_intercept=False,
            tol=1e-4,
            max_iter=20000,
            random_state=0,
        )
        return model.fit(X, signs).coef_[0]

    return fit


def lightgbm_scores(train: Queries, valid: Queries, test: Queries) -> Any:
    from lightgbm import LGBMRanker, early_stopping

    parts = []
    for data in (train, valid):
        order = np.argsort(data.qid, kind="stable")
        sizes = np.unique(data.qid, return_counts=True)[1]
        parts.append((data.X[order], data.y[order].astype(int), sizes))
    (X, y, sizes), (X_valid, y_valid, valid_sizes) = parts
    model = LGBMRanker(
        n_estimators=300, num_leaves=15, learning_rate=0.05, n_jobs=1, verbose=-1
    )
    model.fit(
        X,
        y,
        group=sizes,
        eval_set=[(X_valid, y_valid)],
        eval_group=[valid_sizes],
        eval_at=[10],
        callbacks=[early_stopping(30, verbose=False)],
    )
    return model.booster_.predict(test.X)


def rank(args: Any, results: common.Results) -> None:
    parts = load_parts(args.data_dir)
    for method in METHODS:
        if method == "LightGBM" and not importlib.util.find_spec("lightgbm"):
            continue
        folds, alphas, seconds = [], [], 0.0
        for f in range(5):
            train = joined([parts[(f + i) % 5] for i in range(3)])
            valid, test = parts[(f + 3) % 5], parts[(f + 4) % 5]
            begin = time.process_time()
            if method == "LightGBM":
                scores = lightgbm_scores(train, valid, test)
            else:
                ours = method in LOSSES
                fit = our_fit(train, method) if ours else baseline_fit(train)
                alpha, coef = best_on(valid, fit)
                alphas.append(alpha)
                scores = test.X @ coef
            seconds += time.process_time() - begin
            folds.append(ndcg(test, scores))
        means = {
            kind: np.mean([fold[kind] for fold in folds], axis=0).round(5).tolist()
            for kind in ("letor", "usual")
        }
        results.add(
            f"mq2008 | {method}",
            part="ranking",
            method=method,
            alphas=alphas,
            seconds=seconds,
            folds=[fold["usual"][-1] for fold in folds],
            **means,
        )
        print(method, means["letor"][-1], means["usual"][-1], f"{seconds:.1f} s")


def load_rare(name: str, data_dir: str) -> tuple[Any, Any, Any, Any]:
    """Return rows and labels of one class of a data set, of both of its parts."""
    data, _, label = name.partition(":")
    both = []
    for test in (False, True):
        if data in ("a9a", "covtype"):
            path = Path(data_dir, f"{data}{'.t' if test else ''}.svm.bz2")
            n_features = 54 if data == "covtype" else 123
            X, y = load_svmlight_file(str(path), n_features=n_features)
            both += [X.toarray(), y == int(label)]
        else:
            X, y = datasets.load_joint(data, data_dir, test=test)
            both += [X, y[:, int(label)] > 0]
    return tuple(both)


class TunedLogistic:
    """LogisticRegression with the threshold of the best cross-validated F1."""

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha

    def fit(self, X: Any, y: Any) -> TunedLogistic:
        model = LogisticRegression(C=1.0 / (len(y) * self.alpha), max_iter=500)
        scores = cross_val_predict(model, X, y, cv=5, method="decision_function")
        precision, recall, thresholds = precision_recall_curve(y, scores)
        values = 2.0 * precision * recall / np.maximum(precision + recall, 1e-300)
        best = int(np.argmax(values[:-1]))
        self.f_beta_, self._threshold = float(values[best]), thresholds[best]
        self._model = model.fit(X, y)
        return self

    def predict(self, X: Any) -> Any:
        return self._model.decision_function(X) >= self._threshold


#: Models by strength, by a cross-validated F1.
F1_MODELS: dict[str, Callable[[float], Any]] = {
    "f_beta": lambda alpha: BMRMClassifier(alpha, loss="f_beta"),
    "LogisticRegression": TunedLogistic,
}


def f1(args: Any, results: common.Results) -> None:
    for name in args.data:
        X, y, *_ = load_rare(name, args.data_dir)
        for method, make in F1_MODELS.items():
            found, alphas, begin = [], [], time.process_time()
            for split in range(F1_SPLITS):
                rows, test = train_test_split(
                    np.arange(len(y)), test_size=0.3, stratify=y, random_state=split
                )
                fits = [make(alpha).fit(X[rows], y[rows]) for alpha in F1_ALPHAS]
                best = int(np.argmax([fit.f_beta_ for fit in fits]))
                alphas.append(F1_ALPHAS[best])
                found.append(float(f1_score(y[test], fits[best].predict(X[test]))))
            seconds = time.process_time() - begin
            results.add(
                f"{name} | F1 | {method}",
                part="f1",
                data=name,
                positive=float(np.mean(y)),
                method=method,
                alphas=alphas,
                f1=found,
                seconds=seconds,
            )
            print(name, method, alphas, np.round(found, 4), f"{seconds:.1f} s")


def render(results: dict[str, Any]) -> str:
    renders = {"ranking": render_ranking, "f1": render_f1}
    found = {
        part: [row for row in results["rows"] if row["part"] == part]
        for part in renders
    }
    return "\n\n".join(renders[part](rows) for part, rows in found.items() if rows)


def render_ranking(rows: list[dict[str, Any]]) -> str:
    rows = sorted(rows, key=lambda row: METHODS.index(row["method"]))
    ranks = (1, 3, 5, 10)
    header = ["MQ2008, test", *(f"LETOR@{k}" for k in ranks)]
    header += [*(f"NDCG@{k}" for k in ranks), "difference", "alphas", "seconds"]
    peer = np.array(rows[0]["folds"])
    table = [
        [
            row["method"],
            *(f"{row[kind][k - 1]:.4f}" for kind in ("letor", "usual") for k in ranks),
            with_error(np.array(row["folds"]) - peer) if row is not rows[0] else "–",
            ", ".join(f"{alpha:.0e}" for alpha in row["alphas"]) or "–",
            f"{row['seconds']:.1f}",
        ]
        for row in rows
    ]
    table += [
        [f"{method}, published", *values, *("–" for _ in ranks), "–", "–", "–"]
        for method, values in PUBLISHED.items()
    ]
    return common.markdown_table(header, table) + (
        "\n\nMeans over the five folds. LETOR@k is NDCG by LETOR's script, 0 for "
        "queries of fewer than k rows; NDCG@k is the usual one, and the difference "
        "that of NDCG@10 to LinearSVC, paired by folds, with its standard error. "
        "Seconds of one thread for eleven strengths and five folds; LightGBM is a "
        "model of trees. "
        "Published: policies with linear scores on LETOR 4.0, MDPRank (Wei et al. "
        "2017, Reinforcement learning to rank with Markov decision process, SIGIR) and "
        "PPG (Xu et al. 2020, Reinforcement learning to rank with pairwise policy "
        "gradient, SIGIR), as the README files of the reimplementations in "
        "github.com/roshan1999/Information-Retrieval (MDPRank/LiteVersion, "
        "PPGRank/PPGRank_single) give the papers' results; they were not run here."
    )


def render_f1(rows: list[dict[str, Any]]) -> str:
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        found.setdefault(row["data"], {})[row["method"]] = row
    table = []
    for name, of_data in found.items():
        ours, theirs = (np.array(of_data[method]["f1"]) for method in F1_MODELS)
        gain = ours - theirs
        share = next(iter(of_data.values()))["positive"]
        table.append(
            [
                name,
                f"{100 * share:.2f} %",
                *(
                    f"{np.mean(of_data[m]['f1']):.3f} ({of_data[m]['seconds']:.1f} s)"
                    for m in F1_MODELS
                ),
                with_error(gain),
            ]
        )
    header = ["F1, test", "positive", *F1_MODELS, "difference"]
    return common.markdown_table(header, table) + (
        "\n\nMeans over three splits, and the standard error of the paired difference. "
        "Seconds are of one thread, for three splits and five strengths."
    )


def measure(args: Any, results: common.Results) -> None:
    for part in args.parts:
        {"ranking": rank, "f1": f1}[part](args, results)


BENCHMARK = Benchmark(NAME, __doc__, measure, render, F1, parts=("ranking", "f1"))

if __name__ == "__main__":
    BENCHMARK.run()

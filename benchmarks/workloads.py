"""Fits of workloads beside the libraries that are made for them, to the same gaps.

python benchmarks/workloads.py [--parts insurance classes clicks genes text stream
search] [--data-dir DIR] [--seed 0] [--turns 3]

Insurance with categories, classes of dense data, hashed clicks, paths of genes, text
with each topic against the rest, a stream of hashed rows, and searches. Of each peer
the quickest setting of a ladder counts whose objective is within the gap; then all take
turns, each in a copy of the process that fits up to three times in a second, the
fastest of which counts, and medians of processor seconds of one thread are compared: a
ratio above one says that ours is faster. "beyond" is the share of the fit after its
history had proven the tolerance. Without --data-dir real data are left out, and so are
peers that are not installed.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import _generated
import common
import datasets
import numpy as np
from _harness import Benchmark, table
from _race import fastest, in_copy, timed
from _workloads import PROBLEMS, Peer, Row
from sklearn import linear_model, svm
from sklearn.model_selection import GridSearchCV

import sklearn_subqn as subqn
import sklearn_subqn.linear_model
import sklearn_subqn.svm

GAPS = (1e-3, 1e-6)


def proven(model: Any) -> float:
    """Return the largest gap that fits have proven, relative to the objective."""
    if hasattr(model, "gaps_path_"):
        return float(np.max(model.gaps_path_))
    return float(np.max(model.dual_gap_ / model.objective_))


def beyond(model: Any, tol: float, seconds: float) -> float | None:
    """Return the share of the seconds after the tolerance had been proven."""
    if not hasattr(model, "history_"):
        return None
    rest = 0.0
    for history in model.history_:
        value, bound = np.array(history.objective), np.array(history.lower_bound)
        first = np.flatnonzero(value - bound <= tol * np.abs(value))
        if len(first):
            rest += history.seconds[-1] - history.seconds[first[0]]
    return rest / seconds


def our_fit(problem: Row, tol: float) -> tuple[float, float, float | None]:
    """Return seconds, the proven gap, and the share of the seconds beyond ``tol``.

    The first fit in a process also looks for the libraries of BLAS, for 13 ms: of short
    fits the fastest of three counts, as that of peers.
    """
    model, seconds = fastest(partial(problem.ours, tol))
    return seconds, proven(model), beyond(model, tol, seconds)


def quick_enough(
    peer: Peer, problem: Row, best: float, limit: float
) -> dict[float, Any]:
    """Return the first setting of a peer for each gap that it reaches."""
    found: dict[float, Any] = {}

    def run(setting: Any) -> tuple[float, float]:
        result, seconds = timed(partial(peer.fit, setting))
        return problem.value(result) / best - 1.0, seconds

    for setting in peer.settings:
        answer = in_copy(partial(run, setting), 3.0 * limit, run=call)
        if answer is None:
            break
        for gap in GAPS:
            if answer[0] <= gap:
                found.setdefault(gap, setting)
        if len(found) == len(GAPS) or answer[1] > limit:
            break
    return found


def call(fit: Callable[[], Any]) -> Any:
    return fit()


def only_seconds(fit: Callable[[], Any]) -> float:
    return fastest(fit)[1]


def race(problem: Row, args: Any, results: common.Results) -> None:
    """Find the settings of the peers, let all take turns, and store a row for a gap."""
    best = in_copy(lambda: problem.value(problem.exact()), run=call)
    settings = [
        (peer, quick_enough(peer, problem, best, args.limit)) for peer in problem.peers
    ]
    for gap in GAPS:
        fits = {
            peer.name: partial(peer.fit, found[gap])
            for peer, found in settings
            if gap in found
        }
        own, others = [], {name: [] for name in fits}
        for _ in range(args.turns):
            own.append(in_copy(partial(our_fit, problem, gap), run=call))
            for name, fit in fits.items():
                others[name].append(in_copy(fit, run=only_seconds))
        ours, gaps, shares = zip(*own, strict=True)
        more = {"proven": max(gaps), "beyond": shares[0]}
        seconds = {name: statistics.median(taken) for name, taken in others.items()}
        add(results, problem.name, gap, statistics.median(ours), seconds, **more)


def add(
    results: common.Results,
    name: str,
    gap: float | None,
    ours: float,
    peers: dict[str, float],
    **more: Any,
) -> None:
    """Store and print a row: the quickest peer counts."""
    peer = min(peers, key=peers.__getitem__, default=None)
    row = {"name": name, "gap": gap, "ours": ours, "peer": peer}
    if peer is not None:
        row |= {"of_peer": peers[peer], "ratio": peers[peer] / ours}
    results.add(f"{name} | {gap}", **row, peers=peers, **more)
    print(name, gap, f"{ours:.3g} s", peer, row.get("ratio"), flush=True)


# Streams


def stream(args: Any, results: common.Results) -> None:
    """Learn hashed rows in calls of 1000, and predict half as many held-out ones."""
    n = 200_000
    X, y = _generated.clicks(n + n // 2, 1 << 18, args.seed)
    held_out = X[n:], y[n:]

    def learn(model: Any) -> tuple[float, float]:
        begin = time.process_time()
        for start in range(0, n, 1000):
            rows = slice(start, start + 1000)
            model.partial_fit(X[rows], y[rows], classes=[-1.0, 1.0])
            model.predict(X[:1])
        seconds = time.process_time() - begin
        margins = held_out[1] * model.decision_function(held_out[0])
        return seconds, float(np.logaddexp(0.0, -margins).mean())

    makers = {
        "ours": subqn.OnlineLBFGSClassifier,
        "SGDClassifier": partial(linear_model.SGDClassifier, loss="log_loss"),
    }
    runs = [
        {
            name: in_copy(partial(learn, make()), run=call)
            for name, make in makers.items()
        }
        for _ in range(args.turns)
    ]
    seconds = {name: statistics.median(run[name][0] for run in runs) for name in makers}
    losses = {name: runs[0][name][1] for name in makers}
    name = f"stream, {n} hashed rows, 1000 a call"
    add(results, name, None, seconds.pop("ours"), seconds, log_losses=losses)
    print("log losses of held-out rows:", losses)


# Searches


def search(args: Any, results: common.Results) -> None:
    """Choose C of the log loss and of the squared hinge by five folds."""
    Cs = np.logspace(-3, 2, 10)
    made = {
        "20000 x 200": partial(_generated.classes, 20_000, 200, 2, args.seed),
        "text, 20000 x 50000": partial(_generated.topics, 20_000, 50_000, 2, args.seed),
    }
    if args.data_dir:
        made["a9a"] = partial(datasets.load_part, "a9a", args.data_dir)
    own, own_svm = subqn.linear_model, subqn.svm
    alone = linear_model.LogisticRegression(max_iter=1000)
    for data, make in made.items():
        X, y = make()

        def grid(model: Any) -> Any:
            return GridSearchCV(model, {"C": Cs}, cv=5)

        alphas = 1.0 / (0.8 * len(y) * Cs)
        for name, ours, peers in (
            ("log loss", grid(own.LogisticRegression()), [grid(alone)]),
            (
                "squared hinge",
                grid(own_svm.LinearSVC()),
                [grid(svm.LinearSVC(dual="auto", max_iter=10_000))],
            ),
            (
                "log loss, our CV class",
                subqn.L1LogisticOWLQNCV(alphas, l1_ratio=0.0, cv=5),
                [grid(alone), linear_model.LogisticRegressionCV(Cs=Cs, cv=5)],
            ),
        ):
            taken = [
                [
                    in_copy(partial(m.fit, X, y), run=only_seconds)
                    for m in (ours, *peers)
                ]
                for _ in range(min(args.turns, 2))
            ]
            first, *others = map(statistics.median, zip(*taken, strict=True))
            names = [type(model).__name__ for model in peers]
            of_peers = dict(zip(names, others, strict=True))
            add(results, f"search, {name}, {data}", None, first, of_peers)


def measure(args: Any, results: common.Results) -> None:
    warnings.simplefilter("ignore")
    for part in args.parts:
        if part in PROBLEMS:
            for problem in PROBLEMS[part](args):
                race(problem, args, results)
        else:
            {"stream": stream, "search": search}[part](args, results)


def render(results: dict[str, Any]) -> str:
    return table(
        results["rows"],
        problem="name",
        to="gap:g",
        ours_s="ours:.3g",
        best_peer="peer",
        its_s="of_peer:.3g",
        ratio="ratio:.2f",
        proven="proven:.0e",
        beyond="beyond:.0%",
    )


BENCHMARK = Benchmark(
    "workloads",
    __doc__,
    measure,
    render,
    parts=(*PROBLEMS, "stream", "search"),
    turns={"default": 3, "help": "fits of each"},
    limit={"default": 30.0, "help": "seconds of one fit of a peer"},
    policies={"default": 400_000, "help": "rows of insurance"},
    clicks={"default": 500_000, "help": "rows of clicks"},
    seed=0,
)

if __name__ == "__main__":
    BENCHMARK.run()

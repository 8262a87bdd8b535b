"""Linear-chain CRFs: processor seconds to a gap beside CRFsuite.

python benchmarks/crf.py --data-dir DIR

Three parts, each by its name with ``--parts``; ``--data`` restricts the tasks.

race: processor seconds of one thread until the objective is proven to be within 1e-2
and 1e-3 of the optimum, ours, and until CRFsuite's L-BFGS reaches it, which proves
nothing; F of chunks on the test sentences. Reading of feature dicts is measured apart.

l1: the same with a part of the penalty, or all of it, in the L1 norm, beside OWL-QN,
CRFsuite's and ours.

peers: all training algorithms of CRFsuite, from dicts to a model, beside
LinearChainCRF.

The figures of Yu 2009, chapter 6, are among the papers.
"""

from __future__ import annotations

import contextlib
import importlib.util
import tempfile
import time
from pathlib import Path
from typing import Any

import common
import sequences
from _harness import Benchmark, table
from sequences import Task

from sklearn_subqn import LinearChainCRF

NAME = "crf"
TASKS = tuple(sequences.TASKS)
TITLES = {
    "base_np_window": "base NP, words and tags around",
    "base_np": "base NP, CRF++'s template",
    "jnlpba": "JNLPBA",
    "bc2gm": "BC2GM",
}
# Of CRFsuite: n J = loss + c1 |w|_1 + c2 ||w||²; with L1, c1 + 2 c2 is the same.
C2 = {"base_np_window": 1.0, "base_np": 0.5, "jnlpba": 0.5, "bc2gm": 0.5}
L1_TASK, L1_RATIOS = "base_np_window", (0.5, 0.9, 1.0)
GAPS = (1e-2, 1e-3)
PEERS = ("lbfgs", "l2sgd", "ap", "pa", "arow")


def alpha_of(name: str, task: Task) -> float:
    return 2.0 * C2[name] / len(task.X)


# The race


def ours(
    data: sequences.Rows,
    alpha: float,
    solver: str = "auto",
    limit: int = 1000,
    **params: Any,
) -> dict[str, Any]:
    """Return processor seconds, objectives and proven gaps of each iteration."""
    track: list[tuple[float, float, float, float]] = []
    begin = 0.0

    def callback(progress: Any) -> None:
        now = time.process_time() - begin
        track.append((now, progress.passes, progress.objective, progress.dual_gap))

    crf = LinearChainCRF(
        alpha,
        solver=solver,
        tol=GAPS[-1],
        max_iter=limit,
        callback=callback,
        **params,
    )
    begin = time.process_time()
    crf.fit(data.X, data.y, lengths=data.lengths)
    whole = time.process_time() - begin
    return {"track": track, "seconds": whole, "crf": crf, "f": data.f_score(crf)}


def crfsuite_trainer(**params: Any) -> Any:
    """Return a trainer that keeps the processor time and the loss of each iteration."""
    import pycrfsuite

    class Trainer(pycrfsuite.Trainer):  # type: ignore[misc]
        def message(self, message: str) -> None:
            super().message(message)
            iterations = self.logparser.iterations
            if len(iterations) > len(self.times):
                self.times.append(time.process_time())

    trainer = Trainer("lbfgs", verbose=False)
    trainer.times = []
    trainer.set_params(params)
    return trainer


def crfsuite(task: Task, c1: float, c2: float, limit: int) -> dict[str, Any]:
    """Return processor seconds and losses of each iteration of CRFsuite's L-BFGS."""
    trainer = crfsuite_trainer(
        c1=c1, c2=c2, max_iterations=limit, epsilon=1e-9, period=100, delta=1e-9
    )
    start = time.process_time()
    for x, labels in zip(task.X, task.y, strict=True):
        trainer.append(x, labels)
    appended = time.process_time() - start
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "model"))
        begin = time.process_time()
        trainer.train(path)
        n = len(task.X)
        losses = [entry["loss"] / n for entry in trainer.logparser.iterations]
        seconds = [t - begin for t in trainer.times]
        f = crfsuite_f_score(path, task)
    return {"append": appended, "seconds": seconds, "losses": losses, "f": f}


def crfsuite_f_score(path: str, task: Task) -> float:
    import pycrfsuite

    with contextlib.closing(pycrfsuite.Tagger()) as tagger:
        tagger.open(path)
        found = [tagger.tag(x) for x in task.X_test]
    return sequences.f_scores(task.y_test, found)[""]


def race(
    results: common.Results,
    name: str,
    task: Task,
    data: sequences.Rows,
    limit: int,
    l1_ratio: float = 0.0,
) -> None:
    alpha, n = alpha_of(name, task), len(task.X)
    # What a pass of L-BFGS takes is seen after few.
    products, iterations = ("owlqn", limit) if l1_ratio else ("lbfgs", 50)
    runs = {
        "ours": ours(data, alpha, l1_ratio=l1_ratio),
        products: ours(data, alpha, products, iterations, l1_ratio=l1_ratio),
    }
    tracks = {
        label: [(t, v) for t, _, v, _ in run["track"]] for label, run in runs.items()
    }
    theirs: dict[str, Any] = {}
    if importlib.util.find_spec("pycrfsuite"):
        c1, c2 = alpha * n * l1_ratio, 0.5 * alpha * n * (1.0 - l1_ratio)
        theirs = crfsuite(task, c1, c2, limit)
        tracks["crfsuite"] = [*zip(theirs["seconds"], theirs["losses"], strict=True)]
    known = min(v for track in tracks.values() for _, v in track)
    lower = max(run["crf"].objective_ - run["crf"].dual_gap_ for run in runs.values())
    row: dict[str, Any] = {}
    for label, track in tracks.items():
        first = {
            gap: next(
                (i for i, (_, v) in enumerate(track) if v <= (1 + gap) * known), None
            )
            for gap in GAPS
        }
        row[label] = {
            "seconds": track[-1][0],
            "iterations": len(track),
            "gap": track[-1][1] / known - 1.0,
            "f": (runs.get(label) or theirs)["f"],
            "reached": {
                str(gap): None if i is None else [track[i][0], i + 1]
                for gap, i in first.items()
            },
        }
    for label, run in runs.items():
        row[label]["passes"] = run["track"][-1][1]
        row[label]["proven"] = {
            str(gap): next((t for t, _, v, g in run["track"] if g <= gap * v), None)
            for gap in GAPS
        }
    if theirs:
        row["crfsuite"]["append"] = theirs["append"]
    crf = runs["ours"]["crf"]
    key = f"race | {name} | {l1_ratio:g}" if l1_ratio else f"race | {name}"
    results.add(
        key,
        part="l1" if l1_ratio else "race",
        task=name,
        l1_ratio=l1_ratio,
        n_pairs=len(crf._pairs.labels),
        n_used=len(crf.state_features_),
        objective=known * n,
        lower_bound=lower * n,
        encode=data.seconds,
        **row,
    )
    print(results.get(key, "ours", None), flush=True)


# Peers from dicts to a model


def peers(results: common.Results, name: str, task: Task, limit: int | None) -> None:
    crf = LinearChainCRF(alpha_of(name, task))
    start = time.process_time()
    crf.fit(task.X, task.y)
    seconds = time.process_time() - start
    found = sequences.f_scores(task.y_test, crf.predict(task.X_test))[""]
    row = {"ours": {"seconds": seconds, "f": found}}
    if importlib.util.find_spec("sklearn_crfsuite"):
        import sklearn_crfsuite

        for algorithm in PEERS:
            params: dict[str, Any] = {}
            if algorithm in ("lbfgs", "l2sgd"):
                params["c2"] = C2[name]
            if limit:
                params["max_iterations"] = limit
            peer = sklearn_crfsuite.CRF(algorithm=algorithm, **params)
            start = time.process_time()
            peer.fit(task.X, task.y)
            seconds = time.process_time() - start
            found = [list(labels) for labels in peer.predict(task.X_test)]
            f = sequences.f_scores(task.y_test, found)[""]
            row[algorithm] = {"seconds": seconds, "f": f}
            print(name, algorithm, row[algorithm], flush=True)
    results.add(f"peers | {name}", part="peers", task=name, limit=limit, **row)


# Output


def render(results: dict[str, Any]) -> str:
    renders = {"race": _render_race, "l1": _render_l1, "peers": _render_peers}
    found = {
        part: [row for row in results["rows"] if row["part"] == part]
        for part in renders
    }
    return "\n\n".join(renders[part](rows) for part, rows in found.items() if rows)


def _number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _first(row: dict[str, Any], method: str, gap: float) -> list[Any]:
    """Return the seconds and iterations to a gap above the best objective known."""
    return row.get(method, {}).get("reached", {}).get(f"{gap:g}") or [None, None]


def _reached(row: dict[str, Any], gap: float) -> list[str]:
    """Return cells of CRFsuite: seconds, or where it ended; iterations; our share."""
    theirs = row.get("crfsuite")
    if not theirs:
        return ["–", "–", "–"]
    seconds, iterations = _first(row, "crfsuite", gap)
    cell = _number(seconds)
    if seconds is None:
        seconds, iterations = theirs["seconds"], theirs["iterations"]
        cell = f"{seconds:.2f} (at {theirs['gap']:.1e})"
    mine = row["ours"]["proven"][f"{gap:g}"]
    return [cell, str(iterations), _number(mine and mine / seconds, 3)]


def _render_race(rows: list[dict[str, Any]]) -> str:
    header = ["task", "gap", "ours, proven", "CRFsuite, reached", "iterations", "ratio"]
    lines = [
        [
            f"{TITLES[row['task']]}, c2 = {C2[row['task']]:g}",
            f"{gap:g}",
            _number(row["ours"]["proven"][f"{gap:g}"]),
            *_reached(row, gap),
        ]
        for row in rows
        for gap in GAPS
    ]
    text = (
        "Processor seconds of training, one thread, sentences already read: ours until "
        "the gap is *proven*, CRFsuite's L-BFGS until it is within the gap of the best "
        "objective known, or where it stood at its limit of iterations. CRFsuite reads "
        "dicts by `append`.\n\n"
    ) + common.markdown_table(header, lines)

    def by_pass(row: dict[str, Any]) -> str:
        mine, theirs = row["lbfgs"], row.get("crfsuite")
        other = theirs["seconds"] / theirs["iterations"] if theirs else None
        return f"{mine['seconds'] / (0.5 * mine['passes']):.3f} / {_number(other, 3)}"

    def of_crfsuite(row: dict[str, Any], field: str) -> str:
        return _number(row.get("crfsuite", {}).get(field))

    columns = {
        "task": lambda row: TITLES[row["task"]],
        "weights of pairs": "n_pairs",
        "n J, best known": "objective:.4f",
        "proven bound": "lower_bound:.4f",
        "F, ours at 1e-3": lambda row: _number(row["ours"]["f"]),
        "F, CRFsuite's last": lambda row: of_crfsuite(row, "f"),
        "a pass of L-BFGS / iteration": by_pass,
        "reading dicts / append": lambda row: (
            f"{row['encode']:.2f} / {of_crfsuite(row, 'append')}"
        ),
    }
    return f"{text}\n\n{table(rows, **columns)}"


def _render_l1(rows: list[dict[str, Any]]) -> str:
    header = ["l1_ratio", "gap", "ours, proven", "OWL-QN, reached"]
    header += ["CRFsuite, reached", "n J, best known", "weights not zero"]
    lines = [
        [
            f"{row['l1_ratio']:g}",
            f"{gap:g}",
            _number(row["ours"]["proven"][f"{gap:g}"]),
            *(_number(_first(row, other, gap)[0]) for other in ("owlqn", "crfsuite")),
            f"{row['objective']:.1f}",
            f"{row['n_used']} of {row['n_pairs']}",
        ]
        for row in rows
        for gap in GAPS
    ]
    return (
        f"{TITLES[L1_TASK]}, c1 + 2 c2 = {2.0 * C2[L1_TASK]:g}: the same where a share "
        "l1_ratio of the penalty is L1. OWL-QN is ours, whose own bounds prove "
        "neither gap; CRFsuite's is for c1 > 0. A dash: not in 300 iterations.\n\n"
    ) + common.markdown_table(header, lines)


def _render_peers(rows: list[dict[str, Any]]) -> str:
    lines = []
    for row in rows:
        cells = [row.get(name, {}) for name in ("ours", *PEERS)]
        limit = f", {row['limit']} iterations" if row.get("limit") else ""
        for field, digits in (("seconds", 1), ("f", 2)):
            values = [_number(cell.get(field), digits) for cell in cells]
            title = "F" if field == "f" else field
            lines.append([TITLES[row["task"]] + limit, title, *values])
    return (
        "From dicts to a model with default settings (L2 as above where there is a "
        "parameter for it; CRFsuite for so many iterations at most, where a number is "
        "given): processor seconds, and F of the test sentences.\n\n"
    ) + common.markdown_table(["task", "", "LinearChainCRF", *PEERS], lines)


def measure(name: str, args: Any, results: common.Results) -> None:
    task = sequences.load(args.data_dir, name)
    data = sequences.Rows(task)
    if "race" in args.parts and name != "bc2gm":
        race(results, name, task, data, args.iterations)
    if "l1" in args.parts and name == L1_TASK:
        for ratio in L1_RATIOS:
            race(results, name, task, data, args.iterations, ratio)
    if "peers" in args.parts and name != "base_np_window":
        peers(results, name, task, args.peer_iterations)


BENCHMARK = Benchmark(
    NAME,
    __doc__,
    measure,
    render,
    TASKS,
    each=True,
    parts=("race", "l1", "peers"),
    iterations={"default": 300, "help": "of CRFsuite's L-BFGS at most"},
    peer_iterations={"default": int, "help": "of each peer at most"},
)

if __name__ == "__main__":
    BENCHMARK.run()

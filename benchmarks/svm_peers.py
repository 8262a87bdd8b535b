"""Seconds to relative gaps 1e-2, 1e-3, 1e-4: ours beside other libraries.

    python benchmarks/svm_peers.py --data-dir DIR

Peers are judged by the gap of their objective to the best known one
(reference_optima.json); ours both so and by the gap that the fit itself proves, and so
is OCAS, which proves one too. All objectives are J with an unpenalized intercept,
evaluated here from the coefficients. Where a peer penalizes its intercept (LIBLINEAR,
Snap ML, OCAS), the size of its constant feature, 1 or 10, is part of its settings: with
10 the penalty is 1/100 of the usual one and does not matter at these gaps.

First, each peer's quickest setting for each target is searched for on a ladder of
tolerances and iteration limits and kept in peer_settings.json; nobody pays for that.
Then all solvers are timed in rounds of random order, each library in processes of its
own, so that ratios are fair even where the machine is not steady.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import random
import shutil
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import common
import datasets
from _harness import Benchmark
from common import Problem, Shared

GAPS = (1e-2, 1e-3, 1e-4)
NAME = "svm_peers"
SETTINGS = common.HERE / "peer_settings.json"
DEFAULT_DATA = ["a9a", "covtype", "rcv1_ccat", "mnist", "dense", "text"]
# A ladder is left when it is this many times slower than a setting that reached the
# smallest gap.
_DOMINATED = 3.0
GRID = [
    ("hinge", False, (1e-4, 1e-5, 1e-6)),
    ("hinge", True, (1e-5,)),
    ("squared_hinge", False, (1e-5,)),
    ("squared_hinge", True, (1e-5,)),
]

Settings = dict[str, Any]
Ladder = list[Settings]

_ITERATIONS = [1, 2, 3, 5, 8, 12, 18, 27, 40, 60, 100, 150, 250, 400, 700]
_ITERATIONS += [1000, 2000, 4000, 8000, 16000, 32000, 64000, 128000]
_TOLERANCES = [3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6, 1e-7]


def _ladders(
    fixed: Settings, tolerance: str = "tol", limit: str = "max_iter"
) -> list[Ladder]:
    """Return a ladder of iteration limits and one of tolerances."""
    by_tolerance = [{**fixed, tolerance: t, limit: 10**6} for t in _TOLERANCES]
    by_iterations = [{**fixed, tolerance: 1e-12, limit: k} for k in _ITERATIONS]
    return [by_iterations, by_tolerance]


def _scaled(problem: Problem, make: Callable[[float], list[Ladder]]) -> list[Ladder]:
    """Return the ladders for each size of the constant feature."""
    scales = (1.0, 10.0) if problem.intercept else (1.0,)
    return [ladder for scale in scales for ladder in make(scale)]


def _linearsvc(dual: bool) -> Callable[[Problem], list[Ladder]]:
    return lambda problem: _scaled(
        problem, lambda scale: _ladders({"dual": dual, "intercept_scaling": scale})
    )


def _liblinear(s: int) -> Callable[[Problem], list[Ladder]]:
    def ladders(problem: Problem) -> list[Ladder]:
        made = _scaled(
            problem, lambda B: [[{"s": s, "e": e, "B": B} for e in _TOLERANCES]]
        )
        if s == 2 and problem.intercept:
            made.append([{"s": s, "e": e, "B": 1.0, "R": True} for e in _TOLERANCES])
        return made

    return ladders


def _snapml(problem: Problem) -> list[Ladder]:
    return _scaled(problem, lambda scale: _ladders({"intercept_scaling": scale}))


def _cyanure(problem: Problem) -> list[Ladder]:
    return [
        [{"solver": solver, "tol": tol, "max_iter": 10**5} for tol in _TOLERANCES[3:]]
        for solver in ("auto", "qning-ista", "catalyst-miso", "acc-svrg")
    ]


def _sgd(problem: Problem) -> list[Ladder]:
    return [
        [{"average": average, "max_iter": k} for k in _ITERATIONS[:-4]]
        for average in (False, True)
    ]


def _ocas(problem: Problem) -> list[Ladder]:
    # Given where to stop, it needs no ladder; r also sets the accuracy of its
    # inner solver, which is slow for r = 0.
    best = common.reference(problem)
    return _scaled(
        problem,
        lambda B: [
            [{"r": share * gap, "q": (1.0 + gap) * best, "B": B} for gap in GAPS]
            for share in (1.0, 0.1)
        ],
    )


@dataclass(frozen=True)
class Peer:
    """A library's solver: its worker, ladders, losses and numbers of threads."""

    name: str
    kind: str
    ladders: Callable[[Problem], list[Ladder]]
    losses: tuple[str, ...] = common.LOSSES
    threads: tuple[int, ...] = (1,)


_H, _S = ("hinge",), ("squared_hinge",)
PEERS = [
    Peer("LinearSVC dual", "linearsvc", _linearsvc(True)),
    Peer("LinearSVC primal", "linearsvc", _linearsvc(False), _S),
    Peer("liblinear -s 3", "liblinear", _liblinear(3), _H),
    Peer("liblinear -s 1", "liblinear", _liblinear(1), _S),
    Peer("liblinear -s 2", "liblinear", _liblinear(2), _S),
    Peer("Snap ML", "snapml", _snapml, threads=(1, 2)),
    Peer("Cyanure", "cyanure", _cyanure, _S, threads=(1, 2)),
    Peer("OCAS", "ocas", _ocas, _H, threads=(1, 2)),
    Peer("SGDClassifier", "sgd", _sgd),
]


@dataclass(frozen=True, eq=False)
class Entry:
    """One cell of the table: a solver, its threads, and settings for one target."""

    solver: str
    kind: str
    threads: int
    target: float
    proven: bool
    settings: Settings


@dataclass
class Bench:
    """One problem on one data set, and what is needed to fit and judge."""

    shared: Shared
    problem: Problem
    best: float
    limit: float

    def fit(
        self, kind: str, threads: int, settings: Settings
    ) -> tuple[float, float, float]:
        """Return seconds, gap of the objective and proven gap; inf where it failed."""
        try:
            seconds, w, b, facts = self.shared.worker(kind, threads).request(
                "fit",
                self.limit + 5.0,
                problem=self.problem,
                settings=settings,
                limit=self.limit,
            )
        except common.TimeLimitError:
            return float("inf"), float("inf"), float("inf")
        except common.WorkerError as error:
            print(f"  {kind} {settings}: {str(error).splitlines()[-1]}")
            return 0.0, float("inf"), float("inf")
        data = self.shared.data
        value = common.objective(data.X, data.y, w, b, self.problem)
        proven = float("inf")
        if "dual_gap" in facts:
            proven = facts["dual_gap"] / facts["objective"]
        return seconds, common.gap(value, self.best), proven

    def search(self, peer: Peer, threads: int) -> dict[str, Settings | None]:
        """Return the quickest setting of a peer for each target."""
        # With threads, results of Snap ML and Cyanure differ from run to run.
        margin = 1.0 if threads == 1 or peer.kind == "ocas" else 0.8
        found: dict[float, tuple[float, Settings]] = {}
        for ladder in peer.ladders(self.problem):
            expected = 0.0
            for settings, harder in itertools.pairwise([*ladder, {}]):
                if expected > self.limit:
                    break
                seconds, gap, _ = self.fit(peer.kind, threads, settings)
                if seconds > self.limit:
                    break
                for target in GAPS:
                    if gap <= margin * target and seconds < _seconds(found, target):
                        found[target] = seconds, settings
                quickest = _seconds(found, GAPS[-1])
                if gap <= margin * GAPS[-1] or seconds > _DOMINATED * quickest:
                    break
                growth = harder.get("max_iter", 0) / settings.get("max_iter", 1)
                expected = seconds * growth if growth > 1.0 else seconds
        return {f"{t:g}": found[t][1] if t in found else None for t in GAPS}


def _seconds(found: dict[float, tuple[float, Settings]], target: float) -> float:
    return found[target][0] if target in found else float("inf")


def is_installed(kind: str) -> bool:
    if kind == "ocas":
        return shutil.which("svmocas") is not None
    module = kind if kind in ("liblinear", "snapml", "cyanure") else "sklearn"
    return importlib.util.find_spec(module) is not None


def load_settings() -> dict[str, Any]:
    return json.loads(SETTINGS.read_text()) if SETTINGS.exists() else {}


def peer_entries(bench: Bench, peers: list[Peer], search: bool) -> list[Entry]:
    """Return the entries of the peers, with settings from the file or searched for."""
    known = load_settings()
    entries = []
    for peer in peers:
        for threads in peer.threads:
            name = peer.name if threads == 1 else f"{peer.name}, {threads} threads"
            key = f"{bench.problem.key} | {name}"
            # A target that was out of reach may be within a larger limit.
            if search or key not in known or known[key]["limit"] < bench.limit:
                begin = time.perf_counter()
                settings = bench.search(peer, threads)
                known[key] = {"limit": bench.limit, "settings": settings}
                common.write_json(SETTINGS, dict(sorted(known.items())))
                seconds = time.perf_counter() - begin
                reached = [t for t, s in settings.items() if s is not None]
                print(
                    f"  searched {name}: reaches {reached}, {seconds:.0f} s", flush=True
                )
            for target in GAPS:
                chosen = known[key]["settings"][f"{target:g}"]
                if chosen is not None:
                    entries.append(
                        Entry(name, peer.kind, threads, target, False, chosen)
                    )
                # With an intercept it proves a gap of its own objective only.
                if peer.kind == "ocas" and not bench.problem.intercept:
                    stop = {"r": target}
                    entries.append(
                        Entry(f"{name}, proven", "ocas", threads, target, True, stop)
                    )
    return entries


def our_entries(bench: Bench, solvers: list[str], threads: list[int]) -> list[Entry]:
    entries = []
    for solver in solvers:
        # The others show what "auto" chooses from; one thread is enough for that.
        for n in threads if solver == "auto" else threads[:1]:
            name = f"ours {solver}" + (f", {n} threads" if n > 1 else "")
            for target in GAPS:
                prove = {"solver": solver, "tol": target}
                stop = {**prove, "stop_at": (1.0 + target) * bench.best}
                entries.append(Entry(name, "ours", n, target, False, stop))
                entries.append(Entry(f"{name}, proven", "ours", n, target, True, prove))
    return entries


def time_all(bench: Bench, entries: list[Entry], repeats: int) -> dict[str, Any]:
    """Return {solver: {target: {"seconds": [...], "gaps": [...]}}}.

    The first round is not counted: it warms up, and who misses a target by far in it,
    or takes more than the limit, takes no further part.
    """
    order = random.Random(0)
    runs: dict[Entry, list[tuple[float, float]]] = {entry: [] for entry in entries}
    missed: set[tuple[str, bool]] = set()
    for entry in sorted(entries, key=lambda e: -e.target):
        if (entry.solver, entry.proven) in missed:
            del runs[entry]
            continue
        seconds, gap, proven = bench.fit(entry.kind, entry.threads, entry.settings)
        reached = (proven if entry.proven else gap) <= 1.5 * entry.target
        if not reached or seconds > bench.limit:
            # Ours and OCAS will not reach a smaller gap either.
            if entry.kind in ("ours", "ocas"):
                missed.add((entry.solver, entry.proven))
            del runs[entry]
    for _ in range(repeats):
        shuffled = list(runs)
        order.shuffle(shuffled)
        for entry in shuffled:
            seconds, gap, proven = bench.fit(entry.kind, entry.threads, entry.settings)
            runs[entry].append((seconds, proven if entry.proven else gap))
    table: dict[str, Any] = {}
    for entry in entries:
        cells = table.setdefault(entry.solver, {f"{t:g}": None for t in GAPS})
        if entry in runs:
            cells[f"{entry.target:g}"] = {
                "seconds": [seconds for seconds, _ in runs[entry]],
                "gaps": [gap for _, gap in runs[entry]],
                "settings": entry.settings,
            }
    return table


def median(cell: dict[str, Any] | None, target: float) -> float | None:
    """Return the median seconds, or None where most runs missed the target."""
    if cell is None:
        return None
    hits = [gap <= 1.001 * target for gap in cell["gaps"]]
    return statistics.median(cell["seconds"]) if 2 * sum(hits) > len(hits) else None


def render(results: dict[str, Any]) -> str:
    """Return the Markdown tables of the results."""
    rows = results["rows"]
    limits = sorted(row["limit"] for row in rows)
    ends = " to ".join(dict.fromkeys(f"{limit:g}" for limit in (limits[0], limits[-1])))
    parts = [
        "Median seconds to relative gaps 1e-2 / 1e-3 / 1e-4; – not within the limit of "
        f"{ends} s. *proven*: until the fit itself proves the gap."
    ]
    for loss, intercept in sorted({(r["loss"], r["intercept"]) for r in rows}):
        group = [r for r in rows if (r["loss"], r["intercept"]) == (loss, intercept)]
        title = f"{loss.replace('_', ' ')}, {'with' if intercept else 'no'} intercept"
        group.sort(key=lambda r: (r["data"], -r["alpha"]))
        for name in dict.fromkeys(r["data"] for r in group):
            of_data = [r for r in group if r["data"] == name]
            solvers = dict.fromkeys(s for r in of_data for s in r["table"])
            lines = [
                [solver, *(_cell(r["table"].get(solver)) for r in of_data)]
                for solver in solvers
            ]
            header = [f"{title}: {name}", *(f"alpha {r['alpha']:g}" for r in of_data)]
            parts.append(common.markdown_table(header, lines))
    parts.append(_ratios(rows))
    return "\n\n".join(parts)


def _cell(cells: dict[str, Any] | None) -> str:
    if cells is None:
        return ""
    medians = [median(cells[f"{t:g}"], t) for t in GAPS]
    return " / ".join("–" if m is None else f"{m:.3g}" for m in medians)


def _ratios(rows: list[dict[str, Any]]) -> str:
    """Return how many times the best peer takes longer than ours takes to prove."""
    lines = []
    for row in sorted(
        rows, key=lambda r: (r["loss"], r["intercept"], r["data"], -r["alpha"])
    ):
        intercept = "with" if row["intercept"] else "no"
        cells = [_ratio(row["table"], target) for target in GAPS]
        lines.append([row["loss"], intercept, row["data"], f"{row['alpha']:g}", *cells])
    title = (
        "Seconds of the best peer to the gap of its objective, as a multiple of those "
        "of ours (`auto`) to the *proven* gap: ours with one thread against peers with "
        "one / ours with two against peers with one or two; in brackets the peers:"
    )
    header = ["loss", "intercept", "data", "alpha", *(f"{t:g}" for t in GAPS)]
    return f"{title}\n\n{common.markdown_table(header, lines)}"


def _ratio(table: dict[str, Any], target: float) -> str:
    medians = {
        name: median(cells[f"{target:g}"], target) for name, cells in table.items()
    }
    ratios, names = [], []
    for threads in ("", ", 2 threads"):
        ours = medians.get(f"ours auto{threads}, proven")
        peers = {
            name: seconds
            for name, seconds in medians.items()
            if seconds and not name.startswith("ours") and not name.endswith("proven")
            if threads or not name.endswith(", 2 threads")
        }
        best = min(peers, key=lambda name: peers[name]) if peers else "none"
        names.append(best)
        if ours is None:
            ratios.append("–")
        else:
            ratios.append(f"{peers[best] / ours:.2g}" if peers else "ours only")
    return f"{' / '.join(ratios)} ({' / '.join(dict.fromkeys(names))})"


def measure(name: str, args: Any, results: common.Results) -> None:
    peers = [peer for peer in PEERS if args.peers is None or peer.name in args.peers]
    for missing in {peer.kind for peer in peers if not is_installed(peer.kind)}:
        print(f"{missing} is not installed and left out")
        peers = [peer for peer in peers if peer.kind != missing]
    data = datasets.load(name, args.data_dir, args.cache_dir)
    with Shared(data) as shared:
        for problem in common.problems(args, name, GRID):
            print(problem.key, flush=True)
            begin = time.perf_counter()
            bench = Bench(shared, problem, common.reference(problem), args.limit)
            suitable = [peer for peer in peers if problem.loss in peer.losses]
            entries = peer_entries(bench, suitable, args.search)
            if args.search_only:
                continue
            solvers = common.solvers_for(problem.loss, data.X.shape[1], args.solvers)
            entries = our_entries(bench, solvers, args.threads) + entries
            table = time_all(bench, entries, args.repeats)
            facts = {**problem._asdict(), "limit": args.limit}
            results.add(problem.key, **facts, table=table)
            for solver, cells in table.items():
                print(f"  {solver:30s} {_cell(cells)}")
            print(f"  {time.perf_counter() - begin:.0f} s", flush=True)


BENCHMARK = Benchmark(
    NAME,
    __doc__,
    measure,
    render,
    DEFAULT_DATA,
    each=True,
    **common.PROBLEM_OPTIONS,
    solvers={
        "default": ["auto", "alm", "sublbfgs", "lbfgs", "newton-cg"],
        "help": "solvers of ours, as far as they suit the loss",
    },
    peers={"default": [str], "help": "names of peers; default: all"},
    threads={"default": [1, 2], "help": "of ours"},
    repeats=5,
    limit={"default": 20.0, "help": "seconds per fit"},
    search={"default": False, "help": "search anew, and keep the settings"},
    search_only={"default": False, "help": "do not time"},
)

if __name__ == "__main__":
    BENCHMARK.run()

"""What the benchmark scripts share: objective, references, processes, results."""

from __future__ import annotations

import gc
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, NamedTuple

import datasets
import numpy as np

import sklearn_subqn

HERE = Path(__file__).parent
RESULTS = HERE / "results"
LOSSES = ("hinge", "squared_hinge")


class Problem(NamedTuple):
    """alpha/2 ||w||² + mean loss, with or without an unpenalized intercept."""

    data: str
    loss: str
    alpha: float
    intercept: bool

    @property
    def key(self) -> str:
        """Name of the problem in files."""
        intercept = "intercept" if self.intercept else "no intercept"
        return f"{self.data} | {self.loss} | {self.alpha:g} | {intercept}"


def objective(X: Any, y: Any, w: Any, b: float, problem: Problem) -> float:
    """Return J(w, b), in float64 and by blocks whatever the type of X."""
    w = np.asarray(w, dtype=np.float64).ravel()
    step = 100_000
    total = 0.0
    for start in range(0, X.shape[0], step):
        scores = np.asarray(X[start : start + step] @ w, dtype=np.float64) + b
        m = np.maximum(0.0, 1.0 - y[start : start + step] * scores)
        total += float(m.sum() if problem.loss == "hinge" else m @ m)
    return 0.5 * problem.alpha * float(w @ w) + total / X.shape[0]


#: Options of benchmarks of such problems; alphas take the place of the grid's.
PROBLEM_OPTIONS: dict[str, Any] = {
    "alphas": [float],
    "losses": LOSSES,
    "intercepts": ("no", "yes"),
}

#: Problems to solve on each data set: (loss, intercept, alphas).
Grid = Iterable[tuple[str, bool, Iterable[float]]]


def problems(args: Any, data: str, grid: Grid) -> list[Problem]:
    """Return the problems of a grid, restricted to what the options ask for."""
    return [
        Problem(data, loss, alpha, intercept)
        for loss, intercept, alphas in grid
        if loss in args.losses and ("no", "yes")[intercept] in args.intercepts
        for alpha in args.alphas or alphas
    ]


#: Our solvers by loss.
SOLVERS = {
    "hinge": ("auto", "sublbfgs", "subbfgs", "alm"),
    "squared_hinge": (
        *("auto", "sublbfgs", "subbfgs", "lbfgs", "bfgs"),
        *("newton-cg", "trust-region", "cg"),
    ),
}


def solvers_for(loss: str, n_features: int, chosen: Iterable[str] | None) -> list[str]:
    """Return our solvers for a loss, or the chosen ones among them."""
    # Full matrices of n_features² entries only where they are small.
    dense = {"bfgs", "subbfgs"} if n_features > 2000 else set()
    able = [name for name in SOLVERS[loss] if name not in dense]
    return able if chosen is None else [name for name in chosen if name in able]


# Reference optima


def references() -> dict[str, Any]:
    """Return the best known objective of each problem, by key."""
    known = read_results("reference_optima")
    return {row["key"]: row for row in known["rows"]} if known else {}


def reference(problem: Problem) -> float:
    """Return the best known objective of a problem."""
    known = references().get(problem.key)
    if known is None:
        raise SystemExit(
            f"no reference optimum of '{problem.key}'; run: python benchmarks/"
            f"reference_optima.py --data {problem.data} --losses {problem.loss} "
            f"--alphas {problem.alpha:g}"
        )
    return float(known["objective"])


def gap(value: float, best: float) -> float:
    """Return the relative gap of an objective."""
    return max(value - best, 0.0) / abs(best)


# Worker processes


class TimeLimitError(Exception):
    """A worker did not answer in time and was ended."""


class WorkerError(Exception):
    """The method failed in its worker."""


class Worker:
    """A process that holds one data set and fits with one library.

    Libraries get processes of their own because several OpenMP runtimes in one process
    slow each other down. The process starts at the first request, and anew after a
    time limit.
    """

    def __init__(self, kind: str, data: str, folder: Path, threads: int = 1) -> None:
        self._start = (kind, data, str(folder), threads)
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Any = None

    def request(self, command: str, patience: float, **arguments: Any) -> Any:
        """Return the answer to a command, or raise TimeLimitError or WorkerError."""
        if self._process is None:
            self._open()
        self._connection.send((command, arguments))
        return self._answer(patience)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._connection.close()
            self._process = None

    def _answer(self, limit: float) -> Any:
        if not self._connection.poll(limit):
            self.close()
            raise TimeLimitError(f"no answer within {limit:g} s")
        try:
            failed, answer = self._connection.recv()
        except EOFError:
            self.close()
            raise WorkerError("the process ended") from None
        if failed:
            raise WorkerError(answer)
        return answer

    def _open(self) -> None:
        threads = str(self._start[3])
        here, there = Pipe()
        environment = dict(os.environ)
        for name in ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM"):
            environment[f"{name}_NUM_THREADS"] = threads
        # Threads that wait for work must not take the processors from other workers.
        environment.update(OMP_WAIT_POLICY="PASSIVE", OPENBLAS_THREAD_TIMEOUT="4")
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "worker.py"), str(there.fileno())],
            pass_fds=[there.fileno()],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        there.close()
        self._connection = here
        here.send(self._start)
        self._answer(600.0)


class Shared:
    """A data set written to a temporary folder, for workers; a context manager."""

    def __init__(self, data: datasets.Dataset) -> None:
        self.data = data
        self._workers: dict[tuple[str, int], Worker] = {}

    def __enter__(self) -> Shared:
        self._temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self._temporary.name)
        datasets.save(self.data, self.folder)
        return self

    def worker(self, kind: str, threads: int = 1) -> Worker:
        """Return the process of a library, always the same one."""
        key = kind, threads
        if key not in self._workers:
            self._workers[key] = self.fresh_worker(kind, threads)
        return self._workers[key]

    def fresh_worker(self, kind: str, threads: int = 1) -> Worker:
        """Return a new process, to be closed by the caller."""
        return Worker(kind, self.data.name, self.folder, threads)

    def __exit__(self, *exc_info: object) -> None:
        for worker in self._workers.values():
            worker.close()
        self._temporary.cleanup()
        gc.collect()


# Results

_PACKAGES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "liblinear-official",
    "snapml",
    "cyanure",
)


def environment() -> dict[str, Any]:
    """Return processor and versions, which figures depend on."""
    versions = {"sklearn-subqn": sklearn_subqn.__version__}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    versions["sklearn-subqn"] += _revision()
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "versions": versions,
    }


def _revision() -> str:
    """Return the commit of the package, where it runs from a repository."""
    git = ["git", "-C", str(Path(sklearn_subqn.__file__).parent)]
    commands = [*git, "rev-parse", "--short", "HEAD"], [*git, "status", "-s", "--", "."]
    try:
        commit, changes = (
            subprocess.run(command, capture_output=True, text=True, check=True).stdout
            for command in commands
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f" ({commit.strip()}{' with changes' if changes else ''})"


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def describe(environment: dict[str, Any]) -> str:
    versions = ", ".join(f"{k} {v}" for k, v in environment["versions"].items())
    return (
        f"{environment['processor']}, {environment['cores']} cores, "
        f"Python {environment['python']}; {versions}"
    )


class Results:
    """Rows of raw numbers; in folder/<name>.json, written after every row, if given.

    Rows that the file has of problems that are not run again are kept, unless
    ``fresh``.
    """

    def __init__(self, name: str, folder: Path | None = None, *, fresh: bool = False):
        self._path = folder / f"{name}.json" if folder else None
        known = read_results(name, folder) if folder and not fresh else None
        self._rows = {row["key"]: row for row in known["rows"]} if known else {}

    @property
    def content(self) -> dict[str, Any]:
        """What the file has."""
        return {"environment": environment(), "rows": list(self._rows.values())}

    def get(self, key: str, field: str, default: Any) -> Any:
        """Return a field of the row with a key, or ``default`` where there is none."""
        return self._rows.get(key, {}).get(field, default)

    def add(self, key: str, **row: Any) -> None:
        """Store a row in place of the one with the same key, if any."""
        now = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
        self._rows[key] = {"key": key, **row, "measured": now}
        if self._path:
            write_json(self._path, self.content)


def read_results(name: str, folder: Path = RESULTS) -> dict[str, Any] | None:
    path = folder / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def markdown_table(header: list[str], rows: Iterable[list[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a dictionary with one line for each entry, or for each item of a list."""
    parts = []
    for key, value in content.items():
        text = json.dumps(value)
        if isinstance(value, list):
            text = "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n ]"
        parts.append(f" {json.dumps(key)}: {text}")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".part")
    partial.write_text("{\n" + ",\n".join(parts) + "\n}\n")
    partial.replace(path)

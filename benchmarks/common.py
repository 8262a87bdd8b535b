"""What the benchmark scripts share: objectives of linear SVMs, results, tables."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

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


def gap(value: float, best: float) -> float:
    """Return the relative gap of an objective."""
    return max(value - best, 0.0) / abs(best)


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
    """Return the commit of the repository, from which the package is installed."""
    git = ["git", "-C", str(HERE.parent)]
    parts = ["sklearn_subqn", "benchmarks"]
    commands = [*git, "rev-parse", "--short", "HEAD"], [*git, "status", "-s", *parts]
    try:
        commit, changes = (
            subprocess.run(command, capture_output=True, text=True, check=True).stdout
            for command in commands
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return f" (commit {commit.strip()}{' with changes' if changes else ''})"


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

"""Memory of a fit beyond its input, and seconds and memory as the input grows.

    python -m benchmarks svm_memory                  # both parts
    python -m benchmarks svm_memory --parts memory

Memory: each fit runs in a process of its own that has fitted to a few rows before.
Counted are the growth of the resident set (its peak during the fit less what was
resident before; Linux) and, in another process, the arrays and objects that Python and
NumPy allocate. The bound is 1.5 times the arrays of X plus 20 vectors of n and
2 (memory + 5) vectors of d numbers; both the extra memory and X with it are set against
it.

Scaling: generated data of a tenth of the size and of the full one, fitted until a gap
of 1e-2 is proven; LinearSVC beside it, with the fewest iterations of a ladder whose
objective is within 1e-2 of ours.
"""

from __future__ import annotations

import gc
import re
import time
import tracemalloc
from functools import partial
from pathlib import Path
from typing import Any

import common
import datasets
import numpy as np
from _harness import Benchmark, table
from _race import in_copy
from common import Problem
from sklearn.svm import LinearSVC
from svm import ours

NAME = "svm_memory"
DEFAULT_DATA = ["a9a", "rcv1_ccat", "rcv1_ccat+int64", "rcv1_ccat+float32", "mnist"]
DEFAULT_DATA += ["text:100000x47000x100"]
SCALING = {
    "tall": ("tall:200000x100", "tall:2000000x100"),
    "text": ("text:100000x47000x100", "text:1000000x47000x100"),
}
GAP, ALPHA = 1e-2, 1e-5
ITERATIONS = (1, 4, 16, 64, 256, 1024)


def load(name: str, args: Any) -> datasets.Dataset:
    """Return a data set, changed if its name ends in "+int64" or "+float32"."""
    base, _, variant = name.partition("+")
    data = datasets.load(base, args.data_dir, args.cache_dir)
    if variant == "int64":
        data.X.indices = data.X.indices.astype(np.int64)
        data.X.indptr = data.X.indptr.astype(np.int64)
    if variant == "float32":
        data = data._replace(X=data.X.astype(np.float32))
    return data._replace(name=name)


def fit_ours(problem: Problem, tol: float, threads: int, X: Any, y: Any) -> Any:
    return ours(X, y, problem, tol, n_jobs=threads, max_iter=10**7)


def fit_linear_svc(problem: Problem, max_iter: int, X: Any, y: Any) -> Any:
    C = 1.0 / (len(y) * problem.alpha)
    options = {"loss": "hinge", "fit_intercept": False, "random_state": 0}
    return LinearSVC(C=C, tol=1e-12, max_iter=max_iter, **options).fit(X, y)


def measured(
    fit: Any, data: datasets.Dataset, traced: bool = False, limit: float | None = None
) -> tuple[Any, float, float]:
    """Return the model of a process of its own, its seconds, and the bytes it took.

    Bytes are the growth of the resident set, or ``traced`` that of what Python and
    NumPy allocate. Seconds are on the clock.
    """

    def run(_: Any) -> tuple[Any, float, float]:
        X, y = data.X, data.y
        # Imports and buffers of BLAS do not count.
        few = [np.flatnonzero(y > 0)[:20], np.flatnonzero(y < 0)[:20]]
        fit(X[np.concatenate(few)], y[np.concatenate(few)])
        gc.collect()
        if traced:
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
        else:
            # Sets the peak of the resident set back to its present size.
            Path("/proc/self/clear_refs").write_text("5")
            before = status("VmRSS")
        begin = time.perf_counter()
        model = fit(X, y)
        seconds = time.perf_counter() - begin
        peak = tracemalloc.get_traced_memory()[1] if traced else status("VmHWM")
        return model, seconds, float(peak - before)

    answer = in_copy(None, limit, run)
    if answer is None:
        raise SystemExit(f"no fit to {data.name} within {limit} seconds")
    return answer


def status(field: str) -> int:
    text = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(rf"{field}:\s+(\d+)", text)[1])  # type: ignore[index]


def bound(data: datasets.Dataset, memory: int) -> float:
    n, d = data.X.shape
    return 1.5 * data.nbytes + 8.0 * (20 * n + 2 * (memory + 5) * d)


def facts(data: datasets.Dataset, problem: Problem) -> dict[str, Any]:
    n, d = data.X.shape
    nnz = getattr(data.X, "nnz", data.X.size)
    return {"n": n, "d": d, "nnz": nnz, "input": data.nbytes, **problem._asdict()}


def memory_part(args: Any, results: common.Results) -> None:
    for name in args.data:
        data = load(name, args)
        for intercept in (False, True):
            problem = Problem(name, "hinge", ALPHA, intercept)
            extras = {}
            for threads in args.threads:
                fit = partial(fit_ours, problem, 1e-3, threads)
                for traced in (False, True):
                    model, _, extra = measured(fit, data, traced)
                    way = "traced" if traced else "resident"
                    extras[f"{way}, threads {threads}"] = extra
            row = {
                "bound": bound(data, model.memory),
                "extra": extras,
                "gap": model.dual_gap_ / model.objective_,
            }
            key = f"memory | {problem.key} | auto"
            about = {"part": "memory", "solver": "auto", **facts(data, problem)}
            results.add(key, **about, **row)
            print(key, max(extras.values()) / row["bound"], "of the bound", flush=True)


def scaling_part(args: Any, results: common.Results) -> None:
    for kind in args.scaling:
        for name in SCALING[kind]:
            data = load(name, args)
            problem = Problem(name, "hinge", ALPHA, False)
            for solver, row in scaling_rows(data, problem, args):
                key = f"scaling | {problem.key} | {solver}"
                about = {"part": "scaling", "kind": kind, "solver": solver}
                results.add(key, **about, **facts(data, problem), **row)
                print(key, row, flush=True)


def scaling_rows(data: datasets.Dataset, problem: Problem, args: Any) -> Any:
    """Yield (solver, row) for ours and LinearSVC."""
    best = np.inf
    for threads in args.threads:
        fit = partial(fit_ours, problem, GAP, threads)
        model, seconds, extra = measured(fit, data)
        best = min(best, model.objective_)
        row = {"gap": model.dual_gap_ / model.objective_}
        row["passes"] = model.history_[0].passes[-1]
        name = "ours auto" + (f", {threads} threads" if threads > 1 else "")
        yield name, {"seconds": seconds, "extra": extra, **row}
    for max_iter in ITERATIONS:
        fit = partial(fit_linear_svc, problem, max_iter)
        model, seconds, extra = measured(fit, data)
        value = common.objective(data.X, data.y, model.coef_, 0.0, problem)
        # Against the best objective that we found: an advantage for LinearSVC.
        gap = common.gap(value, best)
        if gap <= GAP or seconds > args.limit:
            break
    yield "LinearSVC", {"seconds": seconds, "extra": extra, "gap": gap}


def render(results: dict[str, Any]) -> str:
    """Return the Markdown tables of the results."""
    rows = {
        part: [row for row in results["rows"] if row["part"] == part]
        for part in ("memory", "scaling")
    }
    parts = []
    if rows["memory"]:
        ways = {
            f"extra, {way}": lambda r, way=way: f"{r['extra'][way] * 1e-6:.1f}"
            for way in rows["memory"][0]["extra"]
        }
        text = table(
            rows["memory"],
            data="data",
            size=lambda r: f"{r['n']} x {r['d']}",
            alpha="alpha:g",
            intercept=lambda r: "yes" if r["intercept"] else "no",
            solver="solver",
            **{"X, MB": lambda r: f"{r['input'] * 1e-6:.1f}", **ways},
            bound=lambda r: f"{r['bound'] * 1e-6:.1f}",
            largest_extra_of_the_bound=lambda r: f"{largest(r) / r['bound']:.2f}",
            X_and_extra_of_the_bound=lambda r: (
                f"{(r['input'] + largest(r)) / r['bound']:.2f}"
            ),
        )
        parts.append(text)
    if rows["scaling"]:
        parts.append(f"Hinge, alpha = {ALPHA:g}, no intercept, to a gap of {GAP:g}:")
        text = table(
            rows["scaling"],
            data="kind",
            size=lambda r: f"{r['n']} x {r['d']}",
            entries="nnz:.3g",
            solver="solver",
            seconds="seconds:.1f",
            passes="passes:.0f",
            gap="gap:.1e",
            **{"X, MB": lambda r: f"{r['input'] * 1e-6:.0f}"},
            extra_of_X=lambda r: f"{r['extra'] / r['input']:.2f}",
        )
        parts.append(text + "\n\nGaps of ours are proven, LinearSVC's the objective's.")
    return "\n\n".join(parts)


def largest(row: dict[str, Any]) -> float:
    return max(row["extra"].values())


def measure_all(args: Any, results: common.Results) -> None:
    for part in args.parts:
        {"memory": memory_part, "scaling": scaling_part}[part](args, results)


BENCHMARK = Benchmark(
    NAME,
    __doc__,
    measure_all,
    render,
    DEFAULT_DATA,
    parts=("memory", "scaling"),
    threads=[1, 2],
    scaling=list(SCALING),
    limit={"default": 100.0, "help": "seconds of a LinearSVC, the last"},
)

if __name__ == "__main__":
    BENCHMARK.run()

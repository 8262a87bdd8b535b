"""Memory of a fit beyond its input, and seconds and memory as the input grows.

    python benchmarks/svm_memory.py --data-dir DIR            # both parts
    python benchmarks/svm_memory.py --data-dir DIR --parts memory

Memory: each fit runs in a process of its own that holds the data and has fitted to a
few rows before. Counted are the growth of the resident set (its peak during the fit
less what was resident before; Linux) and, in another process, the arrays and objects
that Python and NumPy allocate. The bound is 1.5 times the arrays of X plus 20 vectors
of n and 2 (memory + 5) vectors of d numbers; both the extra memory and X with it are
set against it.

Scaling: generated data of a tenth of the size and of the full one, fitted until a gap
of 1e-2 is proven; LinearSVC beside it, with the fewest iterations of a ladder whose
objective is within 1e-2 of ours.
"""

from __future__ import annotations

import argparse
from typing import Any

import common
import datasets
import numpy as np
from _harness import Benchmark
from common import Problem, Shared

NAME = "svm_memory"
DEFAULT_DATA = ["a9a", "rcv1_ccat", "rcv1_ccat+int64", "rcv1_ccat+float32", "mnist"]
DEFAULT_DATA += ["text:100000x47000x100"]
GRID = [("hinge", False, (1e-5,)), ("hinge", True, (1e-5,))]
SCALING = {
    "tall": ("tall:200000x100", "tall:2000000x100"),
    "text": ("text:100000x47000x100", "text:1000000x47000x100"),
}
SCALING_GAP = 1e-2


def load(name: str, args: argparse.Namespace) -> datasets.Dataset:
    """Return a data set, changed if its name ends in "+int64" or "+float32"."""
    base, _, variant = name.partition("+")
    data = datasets.load(base, args.data_dir, args.cache_dir)
    if variant == "int64":
        data.X.indices = data.X.indices.astype(np.int64)
        data.X.indptr = data.X.indptr.astype(np.int64)
    if variant == "float32":
        data = data._replace(X=data.X.astype(np.float32))
    return data._replace(name=name)


def measure(
    shared: Shared,
    kind: str,
    problem: Problem,
    settings: dict[str, Any],
    *,
    threads: int = 1,
    traced: bool = False,
    limit: float,
) -> tuple[float, Any, float, dict[str, Any], float]:
    """Return what a fit in a process of its own returns, and the bytes it took."""
    worker = shared.fresh_worker(kind, threads)
    try:
        fit, extra = worker.request(
            "measure",
            1.5 * limit + 60.0,
            problem=problem,
            settings=settings,
            limit=limit,
            traced=traced,
        )
    finally:
        worker.close()
    return (*fit, extra)


def bound(data: datasets.Dataset, memory: int) -> float:
    n, d = data.X.shape
    return 1.5 * data.nbytes + 8.0 * (20 * n + 2 * (memory + 5) * d)


def memory_part(args: argparse.Namespace, results: common.Results) -> None:
    for name in args.data:
        data = load(name, args)
        n, d = data.X.shape
        with Shared(data) as shared:
            for problem in common.problems(args, name, GRID):
                for solver in common.solvers_for(problem.loss, d, args.solvers):
                    settings = {"solver": solver, "tol": args.tol}
                    extras = {}
                    for threads in args.threads:
                        for traced in (False, True):
                            *_, facts, extra = measure(
                                shared,
                                "ours",
                                problem,
                                settings,
                                threads=threads,
                                traced=traced,
                                limit=args.limit,
                            )
                            way = "traced" if traced else "resident"
                            extras[f"{way}, threads {threads}"] = extra
                    total = bound(data, facts["memory"])
                    row = {
                        "n": n,
                        "d": d,
                        "nnz": getattr(data.X, "nnz", data.X.size),
                        "input": data.nbytes,
                        "bound": total,
                        "extra": extras,
                        "gap": facts["dual_gap"] / facts["objective"],
                    }
                    results.add(
                        f"memory | {problem.key} | {solver}",
                        part="memory",
                        solver=solver,
                        **problem._asdict(),
                        **row,
                    )
                    worst = max(extras.values()) / total
                    print(
                        f"{problem.key} | {solver}: {worst:.2f} of the bound",
                        flush=True,
                    )


def scaling_part(args: argparse.Namespace, results: common.Results) -> None:
    for kind in args.scaling:
        for name in SCALING[kind]:
            data = load(name, args)
            problem = Problem(name, "hinge", args.scaling_alpha, False)
            with Shared(data) as shared:
                rows = scaling_rows(shared, problem, args)
            for solver, row in rows:
                results.add(
                    f"scaling | {problem.key} | {solver}",
                    part="scaling",
                    kind=kind,
                    solver=solver,
                    n=data.X.shape[0],
                    d=data.X.shape[1],
                    nnz=getattr(data.X, "nnz", data.X.size),
                    input=data.nbytes,
                    **problem._asdict(),
                    **row,
                )


def scaling_rows(
    shared: Shared, problem: Problem, args: argparse.Namespace
) -> list[tuple[str, dict[str, Any]]]:
    """Return (solver, row) for ours and LinearSVC."""
    data = shared.data
    rows: list[tuple[str, dict[str, Any]]] = []
    best, lower = np.inf, 0.0
    for solver in common.solvers_for("hinge", data.X.shape[1], args.scaling_solvers):
        for threads in args.threads:
            settings = {"solver": solver, "tol": SCALING_GAP}
            seconds, w, b, facts, extra = measure(
                shared, "ours", problem, settings, threads=threads, limit=args.limit
            )
            gap = facts["dual_gap"] / facts["objective"]
            best = min(best, facts["objective"])
            lower = max(lower, facts["objective"] - facts["dual_gap"])
            name = f"ours {solver}" + (f", {threads} threads" if threads > 1 else "")
            row = {
                "seconds": seconds,
                "extra": extra,
                "gap": gap,
                "passes": facts["passes"],
            }
            rows.append((name, row))
            print(
                f"{problem.key} | {name}: {seconds:.1f} s, proven {gap:.1e}", flush=True
            )
    slowest: list[tuple[str, dict[str, Any]]] = []
    for max_iter in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024):
        settings = {"dual": True, "tol": 1e-12, "max_iter": max_iter}
        try:
            seconds, w, b, _, extra = measure(
                shared, "linearsvc", problem, settings, limit=args.limit
            )
        except common.TimeLimitError:
            print(f"{problem.key} | LinearSVC: beyond the limit", flush=True)
            break
        value = common.objective(data.X, data.y, w, b, problem)
        # Against the best objective that we found: an advantage for LinearSVC.
        gap = common.gap(value, best)
        row = {"seconds": seconds, "extra": extra, "gap": gap, "max_iter": max_iter}
        slowest = [("LinearSVC", row)]
        print(
            f"{problem.key} | LinearSVC, {max_iter}: {seconds:.1f} s, {gap:.1e}",
            flush=True,
        )
        if gap <= SCALING_GAP or seconds > args.limit:
            break
    return rows + slowest


def render(results: dict[str, Any]) -> str:
    """Return the Markdown tables of the results."""
    mb = 1e-6
    lines = []
    for row in results["rows"]:
        if row["part"] != "memory":
            continue
        extras = [f"{extra * mb:.1f}" for extra in row["extra"].values()]
        largest = max(row["extra"].values())
        lines.append(
            [
                row["data"],
                f"{row['n']} x {row['d']}",
                f"{row['alpha']:g}",
                "yes" if row["intercept"] else "no",
                row["solver"],
                f"{row['input'] * mb:.1f}",
                *extras,
                f"{row['bound'] * mb:.1f}",
                f"{largest / row['bound']:.2f}",
                f"{(row['input'] + largest) / row['bound']:.2f}",
            ]
        )
    parts = []
    if lines:
        ways = next(r["extra"] for r in results["rows"] if r["part"] == "memory")
        header = ["data", "size", "alpha", "intercept", "solver", "X, MB"]
        header += [f"extra, {way}" for way in ways]
        header += ["bound", "largest extra / bound", "(X + largest extra) / bound"]
        parts.append(common.markdown_table(header, lines))
    lines = [
        [
            row["kind"],
            f"{row['n']} x {row['d']}",
            f"{row['nnz']:.3g}",
            row["solver"],
            f"{row['seconds']:.1f}",
            f"{row['passes']:.0f}" if "passes" in row else "",
            f"{row['gap']:.1e}",
            f"{row['input'] * mb:.0f}",
            f"{row['extra'] / row['input']:.2f}",
        ]
        for row in results["rows"]
        if row["part"] == "scaling"
    ]
    if lines:
        alpha = next(r["alpha"] for r in results["rows"] if r["part"] == "scaling")
        header = ["data", "size", "entries", "solver", "seconds", "passes"]
        header += ["gap: ours proven, LinearSVC objective", "X, MB", "extra / X"]
        parts.append(f"Hinge, alpha = {alpha:g}, no intercept, to a gap of 1e-2:")
        parts.append(common.markdown_table(header, lines))
    return "\n\n".join(parts)


def measure_all(args: Any, results: common.Results) -> None:
    for part in args.parts:
        {"memory": memory_part, "scaling": scaling_part}[part](args, results)


BENCHMARK = Benchmark(
    NAME,
    __doc__,
    measure_all,
    render,
    DEFAULT_DATA,
    **common.PROBLEM_OPTIONS,
    parts=("memory", "scaling"),
    solvers={"default": [str], "help": "for the memory part; default: all"},
    threads=[1, 2],
    tol=1e-3,
    scaling=list(SCALING),
    scaling_solvers=["auto"],
    scaling_alpha=1e-5,
    limit={"default": 300.0, "help": "seconds per fit"},
)

if __name__ == "__main__":
    BENCHMARK.run()

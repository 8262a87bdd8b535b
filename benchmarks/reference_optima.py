"""Best known objectives, against which other scripts judge.

    python benchmarks/reference_optima.py --data-dir DIR --save benchmarks/results

Every solver of ours at a tolerance of 1e-7, LinearSVC at 1e-9 and OCAS at 1e-8, each
with a time limit; the best objective stays, and the best proven lower bound beside it.
A run starts from what the file holds and never makes it worse. It ends early where the
file's own bound proves the optimum to ``--tol``.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from typing import Any

import common
import datasets
from _harness import Benchmark, table
from common import Problem, Shared

ALPHAS = (1e-4, 1e-5, 1e-6)
GRID = [(loss, b, ALPHAS) for loss in common.LOSSES for b in (False, True)]
DEFAULT_DATA = ["a9a", "covtype", "rcv1_ccat", "mnist", "dense", "text"]


def sources(
    problem: Problem, data: datasets.Dataset, solvers: list[str] | None
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (name, kind of worker, settings), the most promising first."""
    ours = common.solvers_for(problem.loss, data.X.shape[1], solvers)
    # "auto" is one of the others; these two are the first choice for high accuracy.
    first = ("alm", "newton-cg")
    for solver in sorted(set(ours) - {"auto"}, key=lambda name: name not in first):
        yield solver, "ours", {"solver": solver, "tol": 1e-7}
    # The intercept of these is penalized, by 1/scaling²; they are judged without that.
    scales = (3.0, 30.0) if problem.intercept else (1.0,)
    for scale in scales:
        common_settings = {"max_iter": 10**7, "intercept_scaling": scale}
        yield (
            "LinearSVC dual",
            "linearsvc",
            {"dual": True, "tol": 1e-9, **common_settings},
        )
        if problem.loss != "hinge":
            settings = {"dual": False, "tol": 1e-9, **common_settings}
            yield "LinearSVC primal", "linearsvc", settings
    if problem.loss == "hinge" and not problem.intercept and shutil.which("svmocas"):
        yield "OCAS", "ocas", {"r": 1e-8}


def measure(name: str, args: Any, results: common.Results) -> None:
    data = datasets.load(name, args.data_dir, args.cache_dir)
    with Shared(data) as shared:
        for problem in common.problems(args, name, GRID):
            known = common.references().get(problem.key, {})
            best = {"objective": math.inf, "lower_bound": 0.0, **known}
            for source, kind, settings in sources(problem, data, args.solvers):
                if is_proven(best, args.tol):
                    break
                given = {"problem": problem, "settings": settings, "limit": args.limit}
                try:
                    fit = shared.worker(kind).request("fit", args.limit + 10.0, **given)
                except (common.TimeLimitError, common.WorkerError) as error:
                    print(f"{problem.key}: {source}: {str(error).splitlines()[-1]}")
                    continue
                seconds, w, b, facts = fit
                value = common.objective(data.X, data.y, w, b, problem)
                if value < best["objective"]:
                    best.update(objective=value, by=source)
                if kind == "ours":
                    lower = facts["objective"] - facts["dual_gap"]
                    best["lower_bound"] = max(best["lower_bound"], lower)
                print(f"{problem.key}: {source} {value:.10g} in {seconds:.1f} s")
            results.add(problem.key, **best)


def is_proven(best: dict[str, Any], tol: float) -> bool:
    return best["objective"] - best["lower_bound"] <= tol * best["objective"] < math.inf


def render(results: dict[str, Any]) -> str:
    def proven(row: Any) -> str:
        return f"{common.gap(row['objective'], row['lower_bound'] or 1e-300):.1e}"

    return table(
        results["rows"],
        problem="key",
        objective="objective:.10g",
        by="by",
        proven=proven,
    )


BENCHMARK = Benchmark(
    "reference_optima",
    __doc__,
    measure,
    render,
    DEFAULT_DATA,
    each=True,
    **common.PROBLEM_OPTIONS,
    solvers={"default": [str], "help": "solvers of ours to use"},
    limit={"default": 60.0, "help": "seconds per fit"},
    tol={"default": 1e-6, "help": "relative gap to prove"},
)

if __name__ == "__main__":
    BENCHMARK.run()

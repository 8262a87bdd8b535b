"""Best known objectives, against which the other scripts judge: reference_optima.json.

    python benchmarks/reference_optima.py --data-dir DIR

Every solver of ours at a tolerance of 1e-7, LinearSVC at 1e-9 and OCAS at 1e-8, each
with a time limit; the best objective stays, and the best proven lower bound beside it.
A run starts from what the file holds and never makes it worse. It ends early where the
file's own bound proves the optimum to ``--tol``.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import common
import datasets
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


def is_proven(problem: Problem, tol: float) -> bool:
    known = common.references().get(problem.key)
    if known is None:
        return False
    return known["objective"] - known["lower_bound"] <= tol * known["objective"]


def main() -> None:
    p = common.parser("Search for the best objectives.", DEFAULT_DATA)
    common.add_problem_options(p)
    p.add_argument("--solvers", nargs="+", help="solvers of ours to use")
    p.add_argument("--limit", type=float, default=60.0, help="seconds per fit")
    p.add_argument("--tol", type=float, default=1e-6, help="relative gap to prove")
    args = p.parse_args()
    for name in args.data:
        data = datasets.load(name, args.data_dir, args.cache_dir)
        with Shared(data) as shared:
            for problem in common.problems(args, name, GRID):
                for source, kind, settings in sources(problem, data, args.solvers):
                    if is_proven(problem, args.tol):
                        break
                    worker = shared.worker(kind)
                    try:
                        fit = worker.request(
                            "fit",
                            args.limit + 10.0,
                            problem=problem,
                            settings=settings,
                            limit=args.limit,
                        )
                    except (common.TimeLimitError, common.WorkerError) as error:
                        print(f"{problem.key}: {source}: {str(error).splitlines()[-1]}")
                        continue
                    seconds, w, b, facts = fit
                    value = common.objective(data.X, data.y, w, b, problem)
                    lower = (
                        facts["objective"] - facts["dual_gap"]
                        if kind == "ours"
                        else 0.0
                    )
                    common.improve_reference(problem, value, lower, source)
                    print(f"{problem.key}: {source} {value:.10g} in {seconds:.1f} s")
                entry = common.references()[problem.key]
                proven = common.gap(entry["objective"], entry["lower_bound"] or 1e-300)
                print(
                    f"{problem.key}: best {entry['objective']:.10g} by {entry['by']}, "
                    f"proven to {proven:.1e}",
                    flush=True,
                )


if __name__ == "__main__":
    main()

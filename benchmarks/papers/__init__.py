"""Figures and tables of the sources, each by one command.

    python -m benchmarks papers                     the list
    python -m benchmarks papers yu-3.3 teo-4        some of them
    python -m benchmarks papers all --save DIR      DIR/NAME.md and DIR/NAME.png
    python -m benchmarks papers yu-4.4 --full       on all rows, with 20 times the time

Methods run as published, by options that estimators have. Data are those of
benchmarks/README.md; where the source's are not public, or take long, others or fewer
rows stand in for them, as titles say. Seconds are processor time of one thread, and of
the clock for teo-6.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import common
from _harness import parser, save_figure
from threadpoolctl import threadpool_limits

from . import accuracy, chains, curves, quadratics, res, trajectories, workers
from ._case import Case, Settings

CASES: dict[str, Case] = {
    case.name: case
    for module in (trajectories, curves, quadratics, chains, accuracy, res, workers)
    for case in module.CASES
}


def main(arguments: list[str] | None = None) -> None:
    p = parser(__doc__ or "")
    p.add_argument("names", nargs="*", metavar="NAME", help="or all")
    p.add_argument("--full", action="store_true", help="all rows, 20 times the time")
    args = p.parse_args(arguments)
    if not args.names:
        for case in CASES.values():
            print(f"{case.name:20}{case.title}")
        return
    unknown = [name for name in args.names if name not in CASES and name != "all"]
    if unknown:
        p.error(f"unknown: {', '.join(unknown)}; there are {', '.join(CASES)}, all")
    for name in CASES if "all" in args.names else args.names:
        run(CASES[name], Settings(args.data_dir, args.cache_dir, args.full), args.save)


def run(case: Case, settings: Settings, folder: Path | None) -> None:
    """Measure a case, print its tables, and write them and its figure if asked to."""
    print(f"# {case.name}: {case.title}", flush=True)
    begin = time.process_time()
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        text, draw = case.run(settings)
    seconds = time.process_time() - begin
    print(text, f"\n{seconds:.0f} seconds\n", flush=True)
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    where = common.describe(common.environment())
    full = " --full" if settings.full else ""
    told = (
        f"{case.title}.\n\n{text}\n\n`python -m benchmarks papers {case.name}{full}`: "
        f"{seconds:.0f} seconds of processor time; {where}.\n"
    )
    (folder / f"{case.name}.md").write_text(told)
    if draw is not None:
        save_figure(draw(), folder / case.name)

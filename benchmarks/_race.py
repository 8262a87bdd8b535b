"""Processor seconds of fits in copies of this process, and ladders of settings."""

from __future__ import annotations

import math
import multiprocessing
import resource
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

Fit = Callable[[], Any]


def timed(fit: Fit) -> tuple[Any, float]:
    """Return what a fit returns, and its processor seconds."""
    begin = time.process_time()
    result = fit()
    return result, time.process_time() - begin


def fastest(fit: Fit) -> tuple[Any, float]:
    """Return what ``timed`` does, of the fastest of up to three fits in a second."""
    result, seconds = timed(fit)
    all_seconds = [seconds]
    while len(all_seconds) < 3 and sum(all_seconds) + seconds < 1.0:
        all_seconds.append(timed(fit)[1])
    return result, min(all_seconds)


def in_copy(fit: Fit, patience: float | None = None, run: Any = fastest) -> Any:
    """Return ``run(fit)`` of a copy of the process; None if it fails or takes longer.

    The patience is processor time. Several OpenMP runtimes in one process would slow
    each other down, and fits have no limits of time. The first fit pays for new memory.
    """
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)

    def answer() -> None:
        if patience is not None:
            seconds = math.ceil(patience)
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        try:
            there.send(run(fit))
        except Exception as error:
            print(error, flush=True)
            there.send(None)

    process = context.Process(target=answer)
    process.start()
    there.close()
    try:
        return here.recv()
    except EOFError:
        return None
    finally:
        process.join()


class Climb(NamedTuple):
    """The least seconds to each gap, and the smallest excess with its seconds."""

    seconds: dict[str, float]
    closest: tuple[float, float]

    def cell(self, gap: float) -> str:
        """Return seconds, or a dash and where the ladder ended."""
        if f"{gap:g}" in self.seconds:
            return f"{self.seconds[f'{gap:g}']:.2g}"
        excess, seconds = self.closest
        if not excess < float("inf"):
            return "–"
        return f"– ({excess:.0e} after {seconds:.1f})"


def climb(
    settings: Iterable[Any],
    fit: Callable[[Any], Any],
    excess: Callable[[Any], float],
    gaps: Sequence[float],
    limit: float,
    enough: float | None = None,
) -> Climb:
    """Fit with one setting after the other, each in a copy of the process.

    Until the excess is ``enough``, the smallest gap by default, or after a limit of
    seconds for all.
    """
    reached: dict[str, float] = {}
    closest, spent = (float("inf"), 0.0), 0.0
    for setting in settings:
        answer = in_copy(lambda setting=setting: fit(setting), 3.0 * limit)
        if answer is None:
            break
        result, seconds = answer
        spent += seconds
        value = excess(result)
        closest = min(closest, (value, seconds))
        for gap in gaps:
            if value <= gap:
                known = reached.get(f"{gap:g}", seconds)
                reached[f"{gap:g}"] = min(known, seconds)
        if value <= (min(gaps) if enough is None else enough) or spent > limit:
            break
    return Climb(reached, closest)

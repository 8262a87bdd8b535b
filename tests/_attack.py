"""The command for all attacks: a kind, a number of problems and a first seed.

It prints what is wrong, problems that take more than two seconds, and a count::

    PYTHONPATH=$PWD:$PWD/tests python -m _attack given 1000 0
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from _adversary import check, check_blocks, check_groups
from _adversary_calls import (
    check_functions,
    check_losses,
    check_paths,
    check_quantiles,
    check_starts,
    check_unpenalized,
)
from _adversary_foreign import check_foreign
from _adversary_given import check_given
from _adversary_survival import check_likelihood, check_survival
from _adversary_units import check_originals, check_units

#: What is wrong with the problem of a seed, by kinds of attacks.
KINDS: dict[str, Callable[[int], list[str]]] = {
    "fit": check,
    "given": check_given,
    "foreign": check_foreign,
    "units": check_units,
    "originals": check_originals,
    "unpenalized": check_unpenalized,
    "starts": check_starts,
    "quantiles": check_quantiles,
    "paths": check_paths,
    "functions": check_functions,
    "losses": check_losses,
    "groups": check_groups,
    "blocks": check_blocks,
    "survival": check_survival,
    "likelihood": check_likelihood,
}

#: Processor time of one problem that is worth a line, in seconds.
SLOW = 2.0


def main(kind: str, n_problems: int, first_seed: int) -> None:
    n_wrong = n_slow = 0
    for seed in range(first_seed, first_seed + n_problems):
        begin = time.process_time()
        try:
            wrong = KINDS[kind](seed)
        except Exception as error:
            wrong = [f"{type(error).__name__}: {error}"]
        seconds = time.process_time() - begin
        for line in wrong:
            print(kind, seed, line, flush=True)
        if seconds > SLOW:
            print(kind, seed, f"{seconds:.1f} seconds", flush=True)
        n_wrong += bool(wrong)
        n_slow += seconds > SLOW
    print(f"{kind}: {n_problems} problems, {n_wrong} with violations, {n_slow} slow")


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in KINDS:
        sys.exit(f"usage: python -m _attack {{{','.join(KINDS)}}} N SEED")
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))

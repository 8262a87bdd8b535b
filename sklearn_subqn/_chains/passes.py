"""SGD, SMD and oLBFGS for linear-chain CRFs, pass by pass (Yu 2009, chapter 6).

The methods are implemented in ``_core/online``. An iteration is a pass over all
sequences in batches, in a new random order. A full gradient after each pass gives a
cut, and with the cut a proven gap.

The source sums the losses of the b sequences of a batch; the objective of a batch is a
mean here. Its settings (section 6.2) are here ``SGD(0.1 * b)``, ``SMD(0.1 * b, 0.02 *
b, lambda_)`` with lambda_ 0.99 for base NP and 0.1 elsewhere, and ``OLBFGS(1.0, 1e4, 5,
lambda_=1.0 / b)``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .._core.driver import Iterate, Options, Solver, Start
from .._core.objectives.objective import Dual, Objective
from .._core.online.olbfgs import OLBFGS
from .._core.online.sgd import SGD
from .._core.online.smd import SMD
from .._core.options import Option, options_of
from .batches import ChainBatch
from .sequences import tokens_of

#: Names of the online methods.
CHAIN_STREAMS = ("sgd", "smd", "olbfgs")

_METHODS: dict[str, type[SGD | SMD | OLBFGS]] = {
    "sgd": SGD,
    "smd": SMD,
    "olbfgs": OLBFGS,
}

_BATCH = {
    "batch_size": Option(
        "number b of sequences of a batch (Yu 2009, section 6.2)",
        8,
        low=1,
        integer=True,
    )
}


def options_of_chains(name: str) -> dict[str, Option]:
    """Return the options of a method, with defaults for the default batch size."""
    own = settings(name, _BATCH["batch_size"].default)
    known = options_of(_METHODS[name])
    return _BATCH | {
        key: replace(known[key], default=own.get(key, known[key].default))
        for key in known
    }


def settings(name: str, batch_size: int) -> dict[str, Any]:
    """Return the settings of section 6.2, converted from sums to means of losses."""
    if name == "olbfgs":
        return {"eta0": 1.0, "tau": 1e4, "memory": 5, "lambda_": 1.0 / batch_size}
    if name == "smd":
        return {"eta0": 0.1 * batch_size, "mu": 0.02 * batch_size, "lambda_": 0.99}
    return {"eta0": 0.1 * batch_size}


def chain_online(
    name: str, objective: Objective, start: Start, options: Options
) -> Solver:
    """Yield the starting point, and an iterate after each pass over the sequences.

    Parameters
    ----------
    name : {"sgd", "smd", "olbfgs"}
    objective : Objective
        Negative log-likelihood of chains with L2.
    start : Start
    options : Options
        ``online`` has the settings of the method and ``batch_size``.

    Notes
    -----
    The loss of a batch B is (n / |B|) sum_i s_i loss_i over its sequences; its
    expectation is the risk.
    """
    given = dict(options.online)
    size = given.pop("batch_size", _BATCH["batch_size"].default)
    n, weights = len(objective.weights), objective.weights
    method: Any = _METHODS[name](**settings(name, min(size, n)) | given)
    design: Any = objective.design
    chains: Any = objective.loss.set
    random = np.random.default_rng(options.seed)
    point = start.at(objective)
    state = method.start(start.w)
    yield Iterate(point, point.cut, phase=name, proof=Dual(point.dual))
    while True:
        order = random.permutation(n)
        for first in range(0, n, size):
            rows = np.sort(order[first : first + size])
            tokens, starts = tokens_of(design.starts, rows)
            batch = ChainBatch(
                design.take(rows),
                objective.targets[tokens],
                chains.of_sequences(starts),
                objective.alpha,
                n / len(rows) * weights[rows],
            )
            state = method.step(batch, state)
        point = objective.at(state.w)
        yield Iterate(point, point.cut, phase=name, proof=Dual(point.dual))

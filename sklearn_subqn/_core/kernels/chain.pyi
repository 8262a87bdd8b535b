import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float64]
_Ints = npt.NDArray[np.intp]

def log_partition(
    emissions: _Floats, transitions: _Floats, starts: _Ints, log_z: _Floats
) -> None: ...
def marginals(
    emissions: _Floats,
    transitions: _Floats,
    starts: _Ints,
    log_z: _Floats,
    nodes: _Floats,
    edges: _Floats | None,
) -> None: ...
def log_loss(
    emissions: _Floats,
    transitions: _Floats,
    starts: _Ints,
    labels: _Ints,
    weights: _Floats,
    nodes: _Floats | None,
    pairs: _Floats | None,
) -> float: ...
def most_violated_margins(
    emissions: _Floats,
    transitions: _Floats,
    starts: _Ints,
    labels: _Ints,
    weights: _Floats,
    slack: bool,
    worst: _Ints,
    losses: _Floats,
) -> None: ...
def viterbi(
    emissions: _Floats,
    transitions: _Floats,
    starts: _Ints,
    labels: _Ints,
    scores: _Floats,
) -> None: ...
def n_best(
    emissions: _Floats,
    transitions: _Floats,
    starts: _Ints,
    labels: _Ints,
    scores: _Floats,
) -> None: ...
def tangent(
    emissions: _Floats,
    transitions: _Floats,
    starts: _Ints,
    demissions: _Floats,
    dtransitions: _Floats,
    weights: _Floats,
    dnodes: _Floats,
    dpairs: _Floats,
) -> None: ...
def entropies(nodes: _Floats, edges: _Floats, starts: _Ints, out: _Floats) -> None: ...

"""Choice of the dual ascent for a loss of chains, with a check of its memory."""

from __future__ import annotations

from .._core.arrays import Floats
from .design import ChainDesign
from .entropy_sweeps import EntropySweeps
from .labeling_sweeps import LabelingSweeps
from .loss import Chains
from .sweeps_base import ChainSweeps, has_room


def _kind(chains: Chains) -> type[ChainSweeps]:
    return EntropySweeps if chains.rescaling is None else LabelingSweeps


def marginals_fit(design: ChainDesign, chains: Chains) -> bool:
    """Whether the marginals of all sequences fit into the limit on memory."""
    return has_room(_kind(chains).n_bytes(design))


def chain_sweeps(
    design: ChainDesign,
    chains: Chains,
    weights: Floats,
    strength: float,
    threshold: float = 0.0,
) -> ChainSweeps:
    """Return the dual ascent for a loss of chains."""
    return _kind(chains)(design, chains, weights, strength, threshold)

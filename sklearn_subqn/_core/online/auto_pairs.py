"""Curvature pairs of "auto": displacements between mean iterates of blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..losses._base import Floats
from ..losses._curvature import Curvature
from ..records import stored
from .auto_settings import SETTINGS
from .batch import LinearBatch


@stored
@dataclass(frozen=True)
class Block:
    """Sums over the current block of batches.

    Attributes
    ----------
    n_batches, n_rows : int
    total : ndarray of shape (q,)
        Sum of the iterates.
    mean : ndarray of shape (q,) or None
        Mean iterate of the previous block.
    dw : ndarray of shape (q,) or None
        Displacement between the mean iterates of the two previous blocks.
    dg : ndarray of shape (q,) or None
        Sum of the products of batch Hessians with ``dw``.
    n_products : int
        Number of these products.
    """

    n_batches: int
    n_rows: int
    total: Floats
    mean: Floats | None = None
    dw: Floats | None = None
    dg: Floats | None = None
    n_products: int = 0


def next_pairs(
    batch: LinearBatch,
    block: Block,
    dw: Floats,
    dg: Floats,
    w: Floats,
    curvature: Curvature | None,
    memory: int,
) -> tuple[Floats, Floats, Block]:
    """Return the pairs and the block after a batch at w.

    A batch without ``curvature`` adds no product with its Hessian.
    """
    n, n_rows = block.n_batches + 1, block.n_rows + batch.n_rows
    full = n >= SETTINGS.block_batches and n_rows >= SETTINGS.block_rows
    if memory == 0:
        total = block.total
        return dw[:0], dg[:0], Block(0, 0, total) if full else Block(n, n_rows, total)
    total = block.total + w
    product, n_products = block.dg, block.n_products
    if block.dw is not None and curvature is not None:
        product = batch.curvature_product(curvature, block.dw)
        if block.dg is not None:
            product += block.dg
        n_products += 1
    if not full:
        block = Block(n, n_rows, total, block.mean, block.dw, product, n_products)
        return dw, dg, block
    if block.dw is not None and product is not None:
        product = product / n_products
        if float(block.dw @ product) > 0.0:
            dw = np.concatenate([dw, block.dw[np.newaxis]])
            dg = np.concatenate([dg, product[np.newaxis]])
    mean = total / n
    step = None if block.mean is None else mean - block.mean
    return dw[-memory:], dg[-memory:], Block(0, 0, np.zeros_like(w), mean, step)

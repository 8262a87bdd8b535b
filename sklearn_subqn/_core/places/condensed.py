"""A few rows that replace many rows when columns of dual points are balanced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..losses._base import Floats

#: Duals, targets and weights of some rows.
OfRows = tuple[Floats, Any, Floats]


def condensed(
    dual: Floats, targets: Any, weights: Floats, *, invariant: bool
) -> OfRows:
    """Return a few rows that replace all rows in ``balance``, or all of them.

    For one score per row, ``balance`` depends only on the sums of positive and of
    negative dual variables, and on the weighted sum of the targets. For losses of
    several scores that depend only on differences of scores (``invariant``), it depends
    only on the flows between pairs of labels and on the weights of classes.
    """
    if dual.ndim == 1:
        # Sums of clipped arrays are several times faster than sums over selected
        # entries.
        up = float(np.maximum(dual, 0.0).sum())
        down = float(np.minimum(dual, 0.0).sum())
        total = weights @ targets
        both = np.stack([total, np.zeros_like(total)])
        return np.array([up, down]), both, np.array([1.0, 0.0])
    if not invariant:
        return dual, targets, weights
    p, q, k = np.maximum(dual, 0.0), np.maximum(-dual, 0.0), dual.shape[1]
    totals = p.sum(axis=1)
    flows = (q.T / np.where(totals > 0.0, totals, 1.0)) @ p
    sources, sinks = np.nonzero(flows)
    rows, n = k + np.arange(len(sources)), k + len(sources)
    few, few_weights = np.zeros((n, k)), np.zeros(n)
    few[rows, sinks] = flows[sources, sinks]
    few[rows, sources] = -flows[sources, sinks]
    few_targets = np.zeros((n, *targets.shape[1:]), targets.dtype)
    if targets.ndim == 1:
        few_targets[:k] = np.arange(k)
        few_weights[:k] = np.bincount(targets.astype(np.intp), weights, k)
    return few, few_targets, few_weights


def joined(rows: Sequence[OfRows]) -> OfRows:
    """Return the concatenated duals, targets and weights of several parts."""
    dual, targets, weights = map(np.concatenate, zip(*rows, strict=True))
    return dual, targets, weights

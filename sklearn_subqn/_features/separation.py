"""Separation: features along which a loss has no minimum, so no optimum exists.

Such a feature separates two classes, or the samples with target zero from all others
(Albert and Anderson 1984, Biometrika 71; Correia, Guimaraes and Zylkin 2019).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from .._core.arrays import Array, Floats, Mask
from .._core.losses import BINARY_LOSSES
from .._core.rows.row_views import columns_of

# Analytic losses of labels have no minimum: they decrease as the margin grows.
_ENDLESS = [name for name, loss in BINARY_LOSSES.items() if loss.analytic]

#: Side of a row: its score may decrease, has to stay, or may increase.
_SIDES = (-1, 0, 1)

# A sample of up to 100 rows of each side is enough to prove for most features that they
# do not separate the sides. docs/constants.md has the figures.
_SAMPLED = 100


def sides_of_rows(
    loss: Any, power: float | None, targets: Floats, n_scores: int
) -> list[Array]:
    """Return each row's side for each problem, or an empty list if optima always exist.

    Parameters
    ----------
    loss : str or object
    power : float or None
        Variances are proportional to this power of the mean exp(z).
    targets : ndarray of shape (n, number of problems)
        Signs of classes, numbers, or one column with the numbers of k > 1 classes.
    n_scores : int
        Number of scores of a row.
    """
    if power is not None and power < 2.0:
        return list(np.where(targets == 0.0, -1, 0).T)
    if loss not in _ENDLESS:
        return []
    if n_scores > 1 and targets.shape[1] == 1:
        # Each of several classes may be separated from the others.
        targets = np.where(targets == np.arange(n_scores), 1.0, -1.0)
    return list(targets.T)


def sides_of_levels(
    levels: Floats, n_thresholds: int, *, neighbors: bool
) -> list[Array]:
    """Return the sides of rows of ordered classes, for each threshold between these.

    Parameters
    ----------
    levels : ndarray of shape (n,)
        Numbers of the classes in their order.
    n_thresholds : int
    neighbors : bool
        Whether a threshold compares only the two neighboring classes.
    """
    above = levels - np.arange(n_thresholds)[:, np.newaxis] - 0.5
    used = (np.abs(above) < 1.0) | (not neighbors)
    return list(np.where(used, np.sign(above), np.nan))


def extremes(X: Any, scores: Floats, sides: Array) -> Floats:
    """Return minima and negative maxima of features, and of scores, on each side.

    The minima of the results for several blocks of rows are the result for all rows.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, d)
    scores : ndarray of shape (n,)
        Scores without offsets, which do not grow with the coefficients.
    sides : ndarray of shape (n,)
        NaN where a row has no weight.

    Returns
    -------
    extremes : ndarray of shape (3, 2, d + 1)
        Infinite where a side has no rows.
    """
    found = np.full((len(_SIDES), 2, X.shape[1] + 1), np.inf)
    for side, ends in zip(_SIDES, found, strict=True):
        rows = sides == side
        if not rows.any():
            continue
        if sparse.issparse(X):
            part = X[rows]
            low, high = (
                each(axis=0).toarray().ravel() for each in (part.min, part.max)
            )
        else:
            low = X.min(axis=0, where=rows[:, np.newaxis], initial=np.inf)
            high = X.max(axis=0, where=rows[:, np.newaxis], initial=-np.inf)
        ends[0] = np.append(low, scores[rows].min())
        ends[1] = -np.append(high, scores[rows].max())
    return found


def separating_rows(
    X: Any, scores: Callable[[Any], Floats], sides: Array, *, centered: bool
) -> Mask:
    """Return which features alone, or scores, separate rows: shape (d + 1,).

    A feature that separates the sides also separates every sample of their rows. All
    rows are therefore checked only for the features that separate a sample.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, d)
    scores : callable
        From rows of X to their scores, without offsets.
    sides : ndarray of shape (n,)
    centered : bool
        As in ``separating``.
    """
    each = [np.flatnonzero(sides == side) for side in _SIDES]
    few = np.concatenate([some[:: len(some) // _SAMPLED + 1] for some in each])
    some = X[few]
    along, against, varies = _apart(extremes(some, scores(some), sides[few]), centered)
    found = along | against
    if len(few) == len(sides):
        return found & varies
    columns = np.flatnonzero(found[:-1])
    if len(columns) or found[-1]:
        some = X if len(columns) == X.shape[1] else columns_of(X, columns)
        z = scores(X) if found[-1] else np.zeros(len(sides))
        ends = extremes(some, z, sides)
        found[np.append(columns, X.shape[1])] = separating(ends, centered=centered)
    return found


def separating(ends: Floats, *, centered: bool) -> Mask:
    """Return which features, or the score, separate the sides: shape (d + 1,).

    Parameters
    ----------
    ends : ndarray of shape (3, 2, d + 1) or (m, 3, 2, d + 1)
        Result of ``extremes``; or m results, which have to be separated in the same
        direction, each with its own threshold.
    centered : bool
        Whether there is an intercept, so that features may be shifted by any number.
    """
    parts = [_apart(each, centered) for each in ends.reshape(-1, *ends.shape[-3:])]
    along, against, varies = np.swapaxes(parts, 0, 1)
    apart = along.all(axis=0) | against.all(axis=0)
    return np.asarray(apart & varies.any(axis=0))


def _apart(ends: Floats, centered: bool) -> tuple[Mask, ...]:
    """Return masks of features that rise with the sides, that fall, and that vary.

    Constant features are in both of the first two masks.
    """
    low, fixed, high = ends
    # Without an intercept, features are compared with zero.
    fixed = fixed if centered else np.minimum(fixed, 0.0)
    # A threshold separates the sides if the feature is at most the threshold on one
    # side, at least the threshold on the other side, and equal to the threshold in rows
    # with fixed scores.
    smallest, largest = fixed[0], -fixed[1]
    along = np.maximum(-low[1], largest) <= np.minimum(high[0], smallest)
    against = np.maximum(-high[1], largest) <= np.minimum(low[0], smallest)
    all_rows = np.minimum(ends.min(axis=0), fixed)
    varies = all_rows[0] < -all_rows[1]
    return along, against, varies

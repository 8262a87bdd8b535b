"""Losses as objects, and the base class of user-defined losses (see the user guide)."""

from typing import Any

import numpy as np

from ._checks import check_number as _check_number
from ._core.losses import AnyLoss as _AnyLoss
from ._core.losses import DualLoss as _DualLoss
from ._core.losses import (
    ExpectedRankUtility,
    FBeta,
    Groups,
    Inversions,
    LogisticPairs,
    LogisticRocArea,
    Loss,
    Ndcg,
    Ontology,
    OrderedPairs,
    OrdinalLogistic,
    PiecewiseQuadratic,
    PrecisionAtK,
    Preferences,
    RankingLoss,
    RecallAtK,
    ReciprocalRank,
    RocArea,
    SquaredPairs,
    SquaredRocArea,
)
from ._core.losses import LossChecks as _LossChecks

#: An alias of ``Loss``, for losses with values and subgradients only.
FirstOrderLoss = Loss

__all__ = [
    "ExpectedRankUtility",
    "FBeta",
    "FirstOrderLoss",
    "Groups",
    "Inversions",
    "LogisticPairs",
    "LogisticRocArea",
    "Loss",
    "Ndcg",
    "Ontology",
    "OrderedPairs",
    "OrdinalLogistic",
    "PiecewiseQuadratic",
    "PrecisionAtK",
    "Preferences",
    "RankingLoss",
    "RecallAtK",
    "ReciprocalRank",
    "RocArea",
    "SquaredPairs",
    "SquaredRocArea",
    "check_loss",
]

# Sizes of random scores, in units of ``scale``.
_SIZES = (0.1, 1.0, 10.0)


def check_loss(
    loss: Any,
    targets: Any,
    *,
    n_scores: int | None = None,
    sample_weight: Any = None,
    scale: float = 1.0,
    n_trials: int = 20,
    random_state: int = 0,
) -> None:
    """Check a user-defined loss at random scores; raise an error if it is wrong.

    The checks cover shapes and types; values and subgradients, by difference quotients
    and by each other; convexity along random segments; ``infimum``, by a heuristic
    search for smaller values along subgradients; the properties ``invariant`` and
    ``ranks``; rows without weight; and, if the loss has them, ``conjugate``,
    ``restrict``, ``kink_rows`` with ``argsup``, ``derivatives``, ``curvature`` and
    ``envelope``.

    Parameters
    ----------
    loss : Loss
        An instance of a subclass of :class:`sklearn_subqn.losses.Loss`.
    targets : array-like of shape (n,) or (n, k)
        Targets for the loss: numbers, -1 and 1 for two classes, class numbers from
        zero, or one column for each score. A few rows are enough.
    n_scores : int, optional
        Number of scores of a row. By default one; with ``joint = True`` the number of
        columns of ``targets``, or of classes.
    sample_weight : array-like of shape (n,), optional
        Row weights; by default random, or equal for losses with ``counts_rows = True``.
    scale : float, default=1.0
        Size of the scores, positive. Scores have sizes of .1, 1 and 10 times ``scale``.
    n_trials : int, default=20
        Number of random points for each check, at least 1.
    random_state : int, default=0
        Seed of the random numbers.

    Raises
    ------
    TypeError
        If ``loss`` is not an instance of ``Loss``, or returns a wrong type.
    ValueError
        If a check fails. The message names the check, the scores and the values.

    See Also
    --------
    sklearn_subqn.losses.Loss : The base class, with all optional methods.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_subqn.losses import Loss, check_loss
    >>> class Squares(Loss):
    ...     def value(self, scores, targets, weights):
    ...         return float(weights @ (scores - targets) ** 2)
    ...     def subgradient(self, scores, targets, weights):
    ...         return weights * (scores - targets)
    >>> check_loss(Squares(), [0.0, 1.0])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: Squares.subgradient is wrong: ...
    """
    if not isinstance(loss, _AnyLoss):
        raise TypeError(
            "loss must be an instance of a subclass of sklearn_subqn.losses.Loss, got "
            f"{loss!r} of type {type(loss).__name__}."
        )
    oracle = _DualLoss.of(loss).oracle
    _check_number("scale", scale, low=0.0, low_included=False)
    _check_number("n_trials", n_trials, low=1, integer=True)
    _check_number("random_state", random_state, low=0, integer=True)
    y = np.asarray(targets)
    several = oracle.joint or n_scores is not None
    if y.dtype.kind in "fb" or (y.dtype.kind in "iu" and not several):
        y = y.astype(np.float64)
    if y.ndim not in (1, 2) or not len(y):
        raise ValueError(
            f"targets must have shape (n,) or (n, k) with n >= 1, got {y.shape}."
        )
    shape: tuple[int, ...] = (len(y),)
    if n_scores is not None:
        _check_number("n_scores", n_scores, low=1, integer=True)
        shape = (len(y), n_scores)
    elif oracle.joint:
        shape = (len(y), y.shape[1] if y.ndim == 2 else int(y.max()) + 1)
    elif y.ndim == 2:
        raise ValueError(
            "targets must have shape (n,) for a loss with joint = False, got "
            f"{y.shape}."
        )
    rng = np.random.default_rng(random_state)
    weights = rng.uniform(0.5, 1.5, len(y))
    if oracle.counts_rows:
        weights[:] = 1.0
    if sample_weight is not None:
        weights = np.array(sample_weight, dtype=np.float64)
        if weights.shape != (len(y),) or not np.all(weights >= 0.0):
            raise ValueError(
                "sample_weight must be non-negative numbers, one for each of the "
                f"{len(y)} rows."
            )
    checks = _LossChecks(oracle, y, weights / weights.sum(), rng)
    for trial in range(n_trials):
        size = scale * _SIZES[trial % len(_SIZES)]
        z, other, p = size * rng.normal(size=(3, *shape))
        checks.at(z, other, p)

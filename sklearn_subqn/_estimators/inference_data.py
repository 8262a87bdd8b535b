"""The training data of a model, read again for its standard errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_classifier

from .._blocks.row_blocks import RowBlocks
from .._checks import names_of_rows, non_negative_weights, row_weights
from .._core.arrays import Floats, Indices, Mask
from .._core.names import check_same_rows
from .._inference import TargetedRows
from .block_methods import is_collection
from .inferred_losses import LOG_LOSSES


class FittedData:
    """Reads data for a model, with the checks of its fit.

    Parameters
    ----------
    own : LinearEstimator
        Estimator whose parameters define the objective of the model.
    coef : ndarray of shape (k, d)
    given : dict
        The attributes of the model: classes, for an ordinal model from the lowest to
        the highest, and names of features.
    counts : bool
        Whether weights are frequencies of equal rows.

    Attributes
    ----------
    own : LinearEstimator
        An unfitted copy with the features of the model.
    joint : bool
        Whether the classes share one problem.
    """

    def __init__(
        self, own: Any, coef: Floats, given: dict[str, Any], counts: bool
    ) -> None:
        self.own = own = unfitted(own, given, coef.shape[1])
        self._n_outputs, self._counts = len(coef), counts
        ordered = given.get("ordered_classes_")
        self._classes: Any = given.get("classes_") if ordered is None else ordered
        self.joint = ordered is not None or (
            is_classifier(own)
            and len(coef) > 1
            and getattr(own, "loss", "log_loss") in LOG_LOSSES
            and own._link() == "softmax"
        )

    def blocks(
        self, X: Any, y: Any, sample_weight: Any, offset: Any, groups: Any
    ) -> Blocks:
        """Return all rows of positive weight in blocks, with targets and weights."""
        by_row = {"sample_weight": sample_weight, "offset": offset, "groups": groups}
        if not is_collection(X):
            check_same_rows(X, y=y, **by_row)
            block = self._block(X, y, **by_row)
            blocks = Blocks(lambda function: [function(block)], lambda block: block)
        else:
            if groups is not None:
                raise ValueError("groups is not supported for data in blocks.")
            blocks = self._of_collection(X, y, sample_weight, offset)
        self._check_whole(blocks)
        return blocks

    def _of_collection(self, X: Any, y: Any, *others: Any) -> Blocks:
        if isinstance(getattr(self.own, "class_weight", None), str):
            raise ValueError(
                "class_weight='balanced' is not supported for data in blocks: give "
                "weights of the classes as a dict."
            )
        if isinstance(X, RowBlocks):
            return Blocks(partial(X._with_targets, y, *others), self._read)
        # Needs Dask.
        from .._blocks.dask_predictions import rows_mapped

        return Blocks(partial(rows_mapped, X, y, *others), self._read)

    def _read(self, X: Any, *others: Any) -> TargetedRows | None:
        """Return a block from a worker or file, None if it has no rows."""
        return self._block(X, *others) if X.shape[0] else None

    def _block(
        self, X: Any, y: Any, sample_weight: Any, offset: Any = None, groups: Any = None
    ) -> TargetedRows:
        """Return the rows of positive weight, with their targets and weights."""
        X, y = self.own._checked(X, y, reset=False)
        n = X.shape[0]
        weights = non_negative_weights(sample_weight, n)
        if is_classifier(self.own):
            targets, weights = self._of_labels(y, weights)
        else:
            targets = self._of_numbers(y)
        if self._counts and np.any(weights % 1.0):
            raise ValueError(
                "weights='frequency' needs whole numbers as weights, which count rows."
            )
        offset = self.own._checked_offset(offset, n, self._classes)
        rows: tuple[Any, ...] = X, targets, weights, offset
        used = weights > 0.0
        if not used.all():
            rows = tuple(each if each is None else each[used] for each in rows)
        block = TargetedRows(*rows)
        return block._replace(groups=clusters_of(groups, used))

    def _check_whole(self, blocks: Blocks) -> None:
        """Raise unless the weights, of each class if there are any, are positive."""
        summaries = blocks.each(self._summary)
        sums = sum(each for each, _ in summaries)
        if not np.any(sums):
            raise ValueError(
                "Sample weights must contain at least one non-zero number; all are "
                "zero."
            )
        if self._classes is not None and not np.all(sums):
            raise ValueError(
                "y must have samples of all classes of the model, "
                f"{self._classes.tolist()}, with positive weight; there are none of "
                f"{self._classes[sums == 0.0].tolist()}."
            )
        blocks.shift = summaries[0][1]

    def _summary(self, block: TargetedRows) -> tuple[Floats, Floats]:
        """Return the total weight of each class, and the means of the features.

        For numbers it is the total weight of all rows. Means of sparse features are
        zeros.
        """
        X, targets, weights = block[:3]
        if self._classes is None:
            sums = weights.sum(keepdims=True)
        elif self.joint:
            codes = targets[:, 0].astype(np.intp)
            sums = np.bincount(codes, weights, len(self._classes))
        else:
            both = np.hstack([-targets, targets]) if self._n_outputs == 1 else targets
            sums = weights @ (both > 0.0)
        if sparse.issparse(X) or not len(weights):
            return sums, np.zeros(X.shape[1])
        return sums, np.asarray(X.mean(axis=0, dtype=np.float64))

    def _of_labels(self, labels: Any, weights: Floats) -> tuple[Floats, Floats]:
        """Return class numbers, or signs for each class, and row weights."""
        self.own._labels_in(labels)
        classes = self._classes
        class_weight = getattr(self.own, "class_weight", None)
        others = np.unique(labels[~np.isin(labels, classes) & (weights > 0.0)]).tolist()
        if isinstance(class_weight, dict):
            others = [each for each in others if class_weight.get(each, 1.0)]
        if others:
            raise ValueError(
                f"y has classes that the model does not know, {others}: it has "
                f"{classes.tolist()}."
            )
        weights = row_weights(class_weight, self.own.classes_, labels, weights)
        order = np.argsort(classes)
        places = np.searchsorted(classes, labels, sorter=order)
        codes = order[np.minimum(places, len(classes) - 1)]
        if self.joint:
            return codes[:, None].astype(np.float64), weights
        numbers = [1] if self._n_outputs == 1 else np.arange(len(classes))
        return np.where(codes[:, None] == numbers, 1.0, -1.0), weights

    def _of_numbers(self, y: Floats) -> Floats:
        """Return targets of shape (n, k)."""
        targets = y.reshape(len(y), -1)
        # Several quantiles have a single column of targets.
        several = np.ndim(getattr(self.own, "quantile", 0.5)) > 0
        if targets.shape[1] != (1 if several else self._n_outputs):
            raise ValueError(
                f"The model has {self._n_outputs} outputs, y {targets.shape[1]}."
            )
        shape = len(y), self._n_outputs
        return np.asarray(np.broadcast_to(targets, shape), dtype=np.float64)


def unfitted(own: Any, given: dict[str, Any], n_features: int) -> Any:
    """Return an estimator that checks data as a fitted model does."""
    own = clone(own)
    own.n_features_in_ = n_features
    for name in ("feature_names_in_", "classes_"):
        if name in given:
            setattr(own, name, given[name])
    return own


def clusters_of(groups: Any, used: Mask) -> Indices | None:
    """Return the numbers of the clusters of used rows, if there are any.

    Two columns are followed by a column for pairs.
    """
    if groups is None:
        return None
    n, given = len(used), np.asarray(groups) if np.ndim(groups) == 2 else groups
    if np.ndim(given) != 2 or given.shape[1] != 2:
        numbers = names_of_rows("groups", given, n)[1][:, None]
    else:
        a, b = (names_of_rows("groups", given[:, way], n)[1] for way in range(2))
        numbers = np.column_stack([a, b, a * (b.max() + 1) + b])
    numbers = numbers[used]
    if len(numbers) and np.any(np.ptp(numbers, axis=0) == 0):
        raise ValueError(
            "groups must name at least two clusters with positive weight; got one."
        )
    return numbers


class Blocks:
    """Rows in blocks, in this process or elsewhere.

    Parameters
    ----------
    mapped : callable
        Returns the results of a function of X, y, sample_weight and offset for each
        block.
    read : callable
        Returns the arguments of a block as ``TargetedRows``, or None.

    Attributes
    ----------
    shift : ndarray of shape (d,)
        Means of the features in the first block; zeros for sparse features.
    """

    shift: Floats

    def __init__(self, mapped: Callable[..., Any], read: Callable[..., Any]) -> None:
        self._mapped, self._read = mapped, read

    def each(self, function: Callable[[TargetedRows], Any]) -> list[Any]:
        """Return the results of a function for each block with rows."""
        results = self._mapped(partial(_applied, read=self._read, function=function))
        return [each for each in results if each is not None]


def _applied(
    *given: Any, read: Callable[..., Any], function: Callable[[TargetedRows], Any]
) -> Any:
    block = read(*given)
    return None if block is None else function(block)

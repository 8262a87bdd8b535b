"""Data that a model was fitted to, read again for its standard errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_classifier

from .._blocks.row_blocks import RowBlocks
from .._checks import (
    as_numpy,
    as_sample_weights,
    check_offset,
    check_targets,
    exact_labels,
    exact_names,
    row_weights,
)
from .._core.names import check_same_rows
from .._inference import TargetedRows
from .._solving.solution import Floats
from .block_methods import is_collection


class FittedData:
    """Reads data for a model as they were read for its fit.

    Parameters
    ----------
    own : LinearEstimator
        Whose parameters say what the model minimizes.
    coef : ndarray of shape (k, d)
    classes : ndarray or None
    names : ndarray of shape (d,) or None
        Names of the features that the model has seen.
    counts : bool
        Whether weights count rows that are the same.

    Attributes
    ----------
    joint : bool
        Whether the classes share one problem.
    """

    def __init__(
        self, own: Any, coef: Floats, classes: Any, names: Any, counts: bool
    ) -> None:
        self._own = own = clone(own)
        own.n_features_in_ = coef.shape[1]
        if names is not None:
            own.feature_names_in_ = names
        self._n_outputs, self._classes, self._counts = len(coef), classes, counts
        self.joint = (
            is_classifier(own)
            and len(coef) > 1
            and getattr(own, "loss", "log_loss") == "log_loss"
            and own._link() == "softmax"
        )

    def blocks(
        self, X: Any, y: Any, sample_weight: Any, offset: Any, groups: Any
    ) -> Blocks:
        """Return all rows in blocks, with targets and weights."""
        if is_collection(X):
            for name, value in (("offset", offset), ("groups", groups)):
                if value is not None:
                    raise ValueError(f"{name} is not supported for data in blocks.")
            return self._of_collection(X, y, sample_weight)
        check_same_rows(X, sample_weight=sample_weight, offset=offset, groups=groups)
        X, y = self._own._check_X(X, y, reset=False, several=True)
        return Blocks.of(self._block(X, y, sample_weight, offset, groups))

    def _of_collection(self, X: Any, y: Any, sample_weight: Any) -> Blocks:
        if isinstance(getattr(self._own, "class_weight", None), str):
            raise ValueError(
                "class_weight='balanced' is not supported for data in blocks: give "
                "weights of the classes as a dict."
            )
        if isinstance(X, RowBlocks):
            return Blocks(partial(X._with_targets, y, sample_weight), self._read)
        # Needs Dask.
        from .._blocks.dask_collections import rows_mapped

        return Blocks(partial(rows_mapped, X, y, sample_weight), self._read)

    def _read(self, X: Any, y: Any, sample_weight: Any) -> TargetedRows | None:
        """Return a block as it comes from elsewhere, None if it has no rows."""
        if not X.shape[0]:
            return None
        X = self._own._check_X(X, reset=False)
        return self._block(X, as_numpy(y), sample_weight)

    def _block(
        self, X: Any, y: Any, sample_weight: Any, offset: Any = None, groups: Any = None
    ) -> TargetedRows:
        """Return checked rows with their targets and weights."""
        n = X.shape[0]
        if is_classifier(self._own):
            targets, weights = self._of_labels(y, sample_weight)
        else:
            targets, weights = (
                self._of_numbers(y, n),
                as_sample_weights(sample_weight, n),
            )
        if self._counts and np.any(weights % 1.0):
            raise ValueError(
                "weights='frequency' needs whole numbers as weights, which count rows."
            )
        if offset is not None:
            offset = check_offset(offset, n)
        if groups is not None:
            groups = np.unique(exact_names(groups), return_inverse=True)[1]
            if groups.shape != (n,):
                raise ValueError(
                    f"groups must have one name for each of {n} samples, got "
                    f"{len(groups)}."
                )
        return TargetedRows(X, targets, weights, offset, groups)

    def _of_labels(self, y: Any, sample_weight: Any) -> tuple[Floats, Floats]:
        """Return numbers of classes, or signs for each, and weights of rows."""
        classes, labels = self._classes, np.ravel(exact_labels("y", y))
        class_weight = getattr(self._own, "class_weight", None)
        known = np.isin(labels, classes)
        weights = row_weights(class_weight, classes, labels, sample_weight)
        if not known[weights > 0.0].all():
            raise ValueError(
                "y has classes that the model does not know: it has "
                f"{classes.tolist()}."
            )
        codes = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
        if self.joint:
            return codes[:, None].astype(np.float64), weights
        numbers = [1] if self._n_outputs == 1 else np.arange(len(classes))
        return np.where(codes[:, None] == numbers, 1.0, -1.0), weights

    def _of_numbers(self, y: Any, n: int) -> Floats:
        """Return targets of shape (n, k)."""
        targets = check_targets(y).reshape(n, -1)
        if targets.shape[1] not in (1, self._n_outputs):
            raise ValueError(
                f"The model has {self._n_outputs} outputs, y {targets.shape[1]}."
            )
        shape = n, self._n_outputs
        return np.asarray(np.broadcast_to(targets, shape), dtype=np.float64)


class Blocks:
    """Rows in blocks, which may be elsewhere.

    Parameters
    ----------
    mapped : callable
        Returns the results of a function of X, y and sample_weight for each block.
    read : callable
        Returns what comes from there as a ``TargetedRows``, or None.
    """

    def __init__(self, mapped: Callable[..., Any], read: Callable[..., Any]) -> None:
        self._mapped, self._read = mapped, read

    @classmethod
    def of(cls, block: TargetedRows) -> Blocks:
        """Return all rows in memory as one block."""
        return cls(lambda function: [function(block)], lambda block: block)

    def each(self, function: Callable[[TargetedRows], Any]) -> list[Any]:
        """Return what a function returns for each block that has rows."""
        results = self._mapped(partial(_applied, read=self._read, function=function))
        return [each for each in results if each is not None]

    def shift(self, d: int) -> Floats:
        """Return the means of the features in a block; zeros of a sparse one."""
        means: Floats = next(iter(self.each(_means)), np.zeros(d))
        return means


def _means(block: TargetedRows) -> Floats:
    if sparse.issparse(block.X):
        return np.zeros(block.X.shape[1])
    return np.asarray(block.X.mean(axis=0, dtype=np.float64))


def _applied(
    *given: Any, read: Callable[..., Any], function: Callable[[TargetedRows], Any]
) -> Any:
    block = read(*given)
    return None if block is None else function(block)

"""The weights of a chain model by names of attributes and labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .._core.arrays import Array
from .._estimators.tables import by_size, data_frame
from .model import ChainModel
from .pairs import Pairs


class StateFeatures(Mapping[tuple[Any, Any], float]):
    """Mapping from pairs (attribute, label) to their non-zero weights.

    Parameters
    ----------
    names : list or range
        Names of the attributes in the order of their columns; the columns themselves
        where attributes have no names.
    columns : dict or range
        Map from names to columns.
    labels : list
        Names of the labels.
    pairs : Pairs
    w : ndarray of shape (P,)
    """

    def __init__(
        self, names: Any, columns: Any, labels: list[Any], pairs: Pairs, w: Any
    ) -> None:
        self._names = names
        self._columns = columns
        self._labels = labels
        self._codes = {label: code for code, label in enumerate(labels)}
        self._pairs = pairs
        self._w = w

    def __getitem__(self, pair: tuple[Any, Any]) -> float:
        try:
            attribute, label = pair
            column, code = self._columns[attribute], self._codes[label]
        except (KeyError, IndexError, TypeError, ValueError):
            raise KeyError(pair) from None
        first, end = self._pairs.ptr[column : column + 2]
        place = first + int(np.searchsorted(self._pairs.labels[first:end], code))
        if place == end or self._pairs.labels[place] != code or not self._w[place]:
            raise KeyError(pair)
        return float(self._w[place])

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        used = np.flatnonzero(self._w)
        features = self._pairs.features[used].tolist()
        for column, code in zip(features, self._pairs.labels[used], strict=True):
            yield self._names[column], self._labels[code]

    def __len__(self) -> int:
        return int(np.count_nonzero(self._w))

    def columns(self) -> tuple[Array, Array, Array]:
        """Return attributes, labels and weights, in the order of iteration."""
        used = np.flatnonzero(self._w)
        names = np.array(self._names, dtype=object)[self._pairs.features[used]]
        labels = np.array(self._labels, dtype=object)[self._pairs.labels[used]]
        return names, labels, np.asarray(self._w)[used]

    def __repr__(self) -> str:
        return f"<weights of {len(self)} pairs of an attribute and a label>"


class WeightsByName(ChainModel):
    """Base class of chain estimators: weights by name."""

    @property
    def state_features_(self) -> StateFeatures:
        """Weights that are not zero, by pairs (attribute, label)."""
        self._check_has_model("state_features_")
        if self._columns is None:
            names: Any = range(self.n_features_in_)
            columns: Any = names
        else:
            names, columns = list(self._columns), self._columns
        w = self._w[: len(self._pairs.labels)]
        return StateFeatures(names, columns, self.classes_.tolist(), self._pairs, w)

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float]:
        """Weights that are not zero, by pairs (label, next label)."""
        self._check_has_model("transition_features_")
        labels = self.classes_.tolist()
        places = np.argwhere(self._transitions).tolist()
        weights = self._w[len(self._pairs.labels) :].tolist()
        return {
            (labels[i], labels[j]): weight
            for (i, j), weight in zip(places, weights, strict=True)
            if weight
        }

    def state_table(self) -> Any:
        """Return the non-zero weights of attribute-label pairs, the largest first.

        Returns
        -------
        table : pandas.DataFrame
            With the columns "attribute", "label" and "weight". Attributes are names, or
            numbers of columns where tokens are rows of matrices without names.

        Raises
        ------
        AttributeError
            If the model is not fitted.
        ImportError
            If pandas is not installed.
        """
        attributes, labels, weights = self.state_features_.columns()
        if self._columns is None and hasattr(self, "feature_names_in_"):
            attributes = self.feature_names_in_[attributes.astype(np.intp)]
        columns = {"attribute": attributes, "label": labels, "weight": weights}
        return data_frame(by_size(columns, weights), "state_table")

    def transition_table(self) -> Any:
        """Return the non-zero weights of transitions, the largest first.

        Returns
        -------
        table : pandas.DataFrame
            With the columns "label", "next_label" and "weight".

        Raises
        ------
        AttributeError
            If the model is not fitted.
        ImportError
            If pandas is not installed.
        """
        pairs = self.transition_features_
        labels = np.array(list(pairs), dtype=object).reshape(-1, 2)
        weights = np.array(list(pairs.values()), dtype=np.float64)
        columns = {"label": labels[:, 0], "next_label": labels[:, 1], "weight": weights}
        return data_frame(by_size(columns, weights), "transition_table")

    @property
    def attributes_(self) -> Array:
        """Names of the attributes."""
        self._check_has_model("attributes_")
        if self._columns is None:
            raise AttributeError("Columns of matrices have numbers, not names.")
        return np.array(list(self._columns), dtype=object)

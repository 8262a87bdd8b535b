"""Classification into the leaves of a directed acyclic graph of categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..names import Axis, by_name, is_default, places
from ._arguments import checked_costs
from ._base import Floats
from ._dual_loss import Composed, DualLoss
from ._maps import Features
from ._sets import Simplex
from ._smoothings import SimplexEntropy


class Ontology(Composed):
    """Hinge or log loss of paths through a hierarchy (Teo et al. 2010, Alg. 12).

    Scores z of shape (n, k) are the scores of the k nodes other than the root. A label
    is a leaf. Its features phi are the shares of paths from the root to the leaf that
    pass each node (Cai and Hofmann 2004). The loss of a row of label y is

        max over labels l of <phi_l - phi_y, z_i> + costs[y, l].

    This loss is the multiclass hinge of the labels' scores <phi_l, z_i>. These scores
    are the sums along paths that the algorithm in the source computes by traversals.
    The log loss has

        ln sum over labels l of exp <phi_l - phi_y, z_i>

    in place of the maximum, and its scores determine probabilities of the labels.

    Parameters
    ----------
    features : ndarray of shape (l, k)
        The matrix phi: entry [label, node] is the share of the paths to the label's
        leaf that pass the node.
    costs : ndarray of shape (l, l), optional
        Cost of predicting the second label in place of the first, required for the
        hinge. The log loss has no costs. A data frame is matched to ``labels`` by
        names.
    loss : {"hinge", "log_loss"}, default="hinge"
        The maximum, or the logarithm of the sum of exponentials.
    labels : sequence of length l, optional
        The classes of the rows of ``features``; by default the sorted classes of the
        data.

    See Also
    --------
    sklearn_subqn.MulticlassHingeClassifier : Costs of confusions without a hierarchy.

    Examples
    --------
    Two of three species lie under one node, so that confusing them costs half:

    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_subqn import BMRMClassifier
    >>> from sklearn_subqn.losses import Ontology
    >>> X, y = load_iris(return_X_y=True)
    >>> features = np.array([[1, 0, 0, 0], [0, 1, 1, 0], [0, 1, 0, 1]])
    >>> costs = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 0.5], [1.0, 0.5, 0.0]])
    >>> clf = BMRMClassifier(loss=Ontology(features, costs), alpha=1e-2).fit(X, y)
    >>> bool(clf.dual_gap_ <= 1e-3 * clf.objective_)
    True
    """

    def __init__(
        self,
        features: Floats,
        costs: Any = None,
        *,
        loss: str = "hinge",
        labels: Sequence[Any] | None = None,
    ) -> None:
        self.features, self.labels = features, labels
        self.costs: Floats | None = None
        self.tells_probabilities = loss == "log_loss"
        if loss == "hinge":
            if costs is None:
                raise ValueError("loss='hinge' needs costs, got None.")
            shape = len(features), len(features)
            smoothing: SimplexEntropy | None = None
            axis = Axis("labels", labels)
            costs = checked_costs("costs", by_name("costs", costs, axis, axis), shape)
            self.costs, simplex = costs, Simplex(costs)
        elif loss == "log_loss":
            if costs is not None:
                raise ValueError("loss='log_loss' has no costs; got some.")
            simplex, smoothing = Simplex(), SimplexEntropy()
        else:
            raise ValueError(f"loss must be 'hinge' or 'log_loss', got {loss!r}.")
        self.loss = DualLoss(simplex, smoothing, Features(features))

    def for_classes(self, classes: Any) -> Ontology:
        """Return the loss with named labels sorted as the classes are.

        Raises
        ------
        ValueError
            If labels and classes differ.
        """
        if self.labels is None:
            return self
        at = places("the loss", list(self.labels), Axis("classes", classes), "leaves")
        costs = None if self.costs is None else self.costs[np.ix_(at, at)]
        kind = "hinge" if self.costs is not None else "log_loss"
        return Ontology(self.features[at], costs, loss=kind, labels=classes)

    @classmethod
    def from_parents(
        cls,
        parents: list[list[int]] | Mapping[Any, Any],
        costs: Any = None,
        *,
        loss: str = "hinge",
    ) -> Ontology:
        """Return the loss of a graph given by the parents of its nodes.

        Parameters
        ----------
        parents : list of lists of int, or mapping of names to names or lists of names
            For each of k nodes the numbers of its parents; -1 is the root. No node is
            its own ancestor. Labels are the nodes without children, by ascending
            numbers, and stand for the sorted classes of the data.

            A dict or a pandas Series indexed by names gives for each node the name of
            its parent, or a list of names; None or an empty list for children of the
            root. Labels then are the classes of the same names.
        costs : ndarray of shape (l, l), optional
            Costs of the hinge. Default half of the sum of absolute differences of phi:
            one for labels without a common node, smaller for neighbors in the graph. A
            data frame is matched to labels by names.
        loss : {"hinge", "log_loss"}

        Raises
        ------
        ValueError
            If the graph has cycles, or parents that are no nodes.
        """
        names, numbers = _numbered(parents)
        features = path_shares(numbers)
        if costs is None and loss == "hinge":
            costs = _half_distances(features)
        inner = {p for above in numbers for p in above}
        leaves = [names[v] for v in range(len(names)) if v not in inner]
        return cls(features, costs, loss=loss, labels=leaves or None)


def _numbered(parents: Any) -> tuple[list[Any], list[list[int]]]:
    """Return the names of nodes, if any, and the numbers of each node's parents."""
    items = getattr(parents, "items", None)
    if items is None or is_default(getattr(parents, "index", None)):
        return [], list(parents)
    nodes = dict(items())
    if len(nodes) < len(parents):
        raise ValueError("parents has the same name for several nodes.")
    numbers = {name: number for number, name in enumerate(nodes)}
    found = []
    for name, given in nodes.items():
        several = isinstance(given, list | tuple | set | np.ndarray)
        # pandas reads missing parents as NaN.
        none = not several and (given is None or given != given)
        above = list(given) if several else [] if none else [given]
        for parent in above:
            if parent not in numbers:
                raise ValueError(
                    f"Node {name!r} has the parent {parent!r}, which is no node; nodes "
                    "are the keys of parents, and those below the root have None."
                )
        found.append([numbers[parent] for parent in above] or [-1])
    return list(nodes), found


def path_shares(parents: list[list[int]]) -> Floats:
    """Return for each leaf the shares of its paths that pass each node.

    Parameters
    ----------
    parents : list of lists of int
        For each of k nodes the numbers of its parents; -1 is the root. No node is its
        own ancestor.

    Returns
    -------
    features : ndarray of shape (l, k)
        One row for each node without children, by ascending numbers.

    Raises
    ------
    ValueError
        If there are cycles, or numbers that are no nodes.
    """
    k = len(parents)
    for node, above in enumerate(parents):
        if not above or not all(-1 <= p < k for p in above):
            raise ValueError(
                f"Node {node} must have parents among -1, ..., {k - 1}, got {above}."
            )
    # Count the paths from the root to each node, and how many of them pass each other
    # node: the number of paths to that node times the number of paths from it.
    counts = np.full(k, -1.0)
    passing = np.zeros((k, k))
    waiting = list(range(k))
    while waiting:
        ready = [
            v for v in waiting if all(p < 0 or counts[p] >= 0.0 for p in parents[v])
        ]
        if not ready:
            raise ValueError(f"Nodes {waiting} are on a cycle or below one.")
        for v in ready:
            counts[v] = sum(1.0 if p < 0 else counts[p] for p in parents[v])
            for p in parents[v]:
                if p >= 0:
                    passing[v] += passing[p]
            passing[v, v] = counts[v]
        waiting = [v for v in waiting if counts[v] < 0.0]
    inner = {p for above in parents for p in above}
    leaves = [v for v in range(k) if v not in inner]
    features: Floats = passing[leaves] / counts[leaves][:, np.newaxis]
    return features


def _half_distances(features: Floats) -> Floats:
    """Return half of the sums of absolute differences of non-negative rows.

    These are the means of both rows' sums minus their overlap. The overlap is summed
    node by node over the rows that pass it, since few rows pass most nodes.
    """
    shared = np.zeros((len(features), len(features)))
    for column in features.T:
        passing = np.flatnonzero(column)
        shares = column[passing]
        shared[np.ix_(passing, passing)] += np.minimum.outer(shares, shares)
    sums = shared.diagonal()
    distances: Floats = 0.5 * np.add.outer(sums, sums) - shared
    return np.maximum(distances, 0.0, out=distances)

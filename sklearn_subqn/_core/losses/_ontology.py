"""Classification into the leaves of a directed acyclic graph of categories."""

from __future__ import annotations

import numpy as np

from ._arguments import checked_costs
from ._base import Floats
from ._loss import Composed, Loss
from ._maps import Features
from ._sets import Simplex
from ._smoothings import SimplexEntropy


class Ontology(Composed):
    """Hinge or log loss of paths through a hierarchy (Teo et al. 2010, Alg. 12).

    Scores z of shape (n, k) belong to the k nodes other than the root. A label stands
    for the features phi of a leaf, the share of paths from the root to the leaf that
    pass each node (Cai and Hofmann 2004), and the loss of a row of label y is

        max over labels l of <phi_l - phi_y, z_i> + costs[y, l].

    That is the multiclass hinge of the labels' scores <phi_l, z_i>, which are the sums
    along the paths that the algorithm finds by traversals. The log loss has

        ln sum over labels l of exp <phi_l - phi_y, z_i>

    in place of the maximum, and its scores tell probabilities of the labels.

    Parameters
    ----------
    features : ndarray of shape (l, k)
        phi.
    costs : ndarray of shape (l, l), optional
        Cost of predicting the second label in place of the first, which the hinge
        needs. The log loss has none.
    loss : {"hinge", "log_loss"}
    """

    def __init__(
        self, features: Floats, costs: Floats | None = None, *, loss: str = "hinge"
    ) -> None:
        self.features = features
        self.tells_probabilities = loss == "log_loss"
        if loss == "hinge":
            if costs is None:
                raise ValueError("loss='hinge' needs costs, got None.")
            shape = len(features), len(features)
            smoothing: SimplexEntropy | None = None
            labels = Simplex(checked_costs("costs", costs, shape))
        elif loss == "log_loss":
            if costs is not None:
                raise ValueError("loss='log_loss' has no costs; got some.")
            labels, smoothing = Simplex(), SimplexEntropy()
        else:
            raise ValueError(f"loss must be 'hinge' or 'log_loss', got {loss!r}.")
        self.loss = Loss(labels, smoothing, Features(features))

    @classmethod
    def from_parents(
        cls,
        parents: list[list[int]],
        costs: Floats | None = None,
        *,
        loss: str = "hinge",
    ) -> Ontology:
        """Return the loss of a graph.

        Parameters
        ----------
        parents : list of lists of int
            For each of k nodes the numbers of its parents; -1 is the root. No node is
            its own ancestor. Labels are the nodes without children, by ascending
            numbers.
        costs : ndarray of shape (l, l), optional
            Of the hinge. Default half of the sum of the differences of phi, in absolute
            value: one for labels without a common node, smaller for neighbors in the
            graph.
        loss : {"hinge", "log_loss"}
        """
        features = path_shares(parents)
        if costs is None and loss == "hinge":
            costs = _half_distances(features)
        return cls(features, costs, loss=loss)


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
    # Paths from the root to each node, and how many of them pass each other node: the
    # latter are the former times the number of paths between.
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
    """Return halves of the sums of absolute differences of non-negative rows.

    These are the means of both rows' sums without what they share, node by node of
    those rows that pass it: most nodes are passed by few.
    """
    shared = np.zeros((len(features), len(features)))
    for column in features.T:
        passing = np.flatnonzero(column)
        shares = column[passing]
        shared[np.ix_(passing, passing)] += np.minimum.outer(shares, shares)
    sums = shared.diagonal()
    distances: Floats = 0.5 * np.add.outer(sums, sums) - shared
    return np.maximum(distances, 0.0, out=distances)

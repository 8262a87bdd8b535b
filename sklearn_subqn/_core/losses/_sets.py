"""Sets of dual variables of losses with several scores per row.

The loss of a row is the maximum of <b, m> over b in a set, where m are the violations
of labels or of pairs of labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..kernels import label_pairs, multiclass, multilabel
from ._balance import balanced, cost_of_labels, tilted
from ._base import Floats, LabelSets, Rows, Simplices
from ._composition import Smoothing
from ._dual_loss import DualLoss
from ._joint import JointSet
from ._joint_curvature import Codes
from ._loss import Loss
from ._smoothings import SimplexEntropy
from ._softmax import Softmax

_NO_COSTS = np.empty((0, 0))


class Simplex(JointSet):
    """The unit simplex of the labels 0, ..., k - 1 of a row (Yu 2009, eq. 3.40).

    With ``rescaling="margin"`` (Taskar et al. 2004) the violations of a row of label y
    are costs[y, j] + z_j - z_y, with "slack" (Tsochantaridis et al. 2005)
    costs[y, j] (1 + z_j - z_y), and with rates given they are
    costs[y, j] + rates[y, j] (z_j - z_y) (Teo et al. 2010, eq. 29; their Table 6
    multiplies the costs by the rates as well).

    Parameters
    ----------
    costs : ndarray of shape (k, k), optional
        Cost of predicting the second label in place of the first, non-negative, zero
        on the diagonal. With an entropy, costs are not allowed.
    rescaling : {"margin", "slack"} or ndarray of shape (k, k)
        Rates are non-negative, and positive where costs are.
    """

    kernel = multiclass

    def __init__(
        self, costs: Floats = _NO_COSTS, rescaling: str | Floats = "margin"
    ) -> None:
        k = len(costs)
        self.offsets = np.array(costs, dtype=np.float64, order="C")
        self.is_simplex = isinstance(rescaling, str) and rescaling == "margin"
        if self.is_simplex:
            self.rates = np.ones((k, k))
        else:
            self.rates = np.array(costs if isinstance(rescaling, str) else rescaling)
            # For labels with a rate of zero, u does not depend on their dual variables,
            # so these cannot be computed from u. A very negative violation keeps such
            # labels from attaining the maximum.
            self.offsets[(self.rates == 0.0) & ~np.eye(k, dtype=bool)] = -1e100
        # Costs per unit of a dual variable.
        self._ratios = np.zeros((k, k))
        np.divide(self.offsets, self.rates, out=self._ratios, where=self.rates > 0.0)

    def oracle(self, smoothing: Smoothing | None) -> Loss:
        if isinstance(smoothing, SimplexEntropy) and not self.offsets.size:
            return Softmax()
        return super().oracle(smoothing)

    def rows(self, targets: Any, k: int) -> multiclass.Rows:
        return multiclass.Rows(targets, self.offsets, self.rates)

    def variables(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        """Return b of shape (n, k), with u = s b rates (e_j - e_y).

        Rows of zero weight have b = e_y.
        """
        b = np.zeros_like(dual)
        scale = self.rates[targets] * weights[:, np.newaxis]
        np.divide(dual, scale, out=b, where=scale > 0.0)
        rows = np.arange(len(b))
        b[rows, targets] = 0.0
        np.clip(b, 0.0, 1.0, out=b)
        total = b.sum(axis=1)
        large = total > 1.0
        b[large] /= total[large, np.newaxis]
        b[rows, targets] = np.maximum(1.0 - total, 0.0)
        return b

    def neutral(self, targets: Any) -> Floats:
        k = len(self.offsets)
        return np.full((len(targets), k), 1.0 / k)

    def conjugate(self, dual: Floats, targets: Any, weights: Floats) -> float:
        """Return R*(u) = -sum_ij u_ij costs[y_i, j] / rates[y_i, j].

        It is finite if u_i = s_i sum_j b_j rates[y_i, j] (e_j - e_y) for some b in the
        unit simplex.
        """
        return multiclass.conjugate(
            self.rows(targets, dual.shape[1]), dual, self._ratios
        )

    def _rowwise(self, targets: Any) -> Simplices | None:
        """Return the dual variables as simplices if all rates are one, else None."""
        return Simplices(targets, self.offsets) if self.is_simplex else None

    def projected(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        """Return u of feasible variables; the true label gets the remaining share."""
        u = self.variables(dual, targets, weights) * self.rates[targets]
        u *= weights[:, np.newaxis]
        own = np.arange(len(u)), targets
        u[own] = 0.0
        u[own] = -u.sum(axis=1)
        return u

    def balance_near_optimum(
        self, dual: Floats, targets: Any, weights: Floats
    ) -> Floats:
        if not self.is_simplex:
            return balanced(dual)
        neutral = self.neutral(targets)
        neutral[np.arange(len(targets)), targets] -= 1.0
        return balanced(tilted(dual, weights, neutral))


class KindsOfLabels(JointSet):
    """Non-negative b with sums of at most one over labels of either kind.

    Without a threshold both sums are equal, and the loss of a row is the maximum of 0
    and of costs[0, j] + z_j + costs[1, h] - z_h over its irrelevant labels j and
    relevant labels h: (3.54) of Yu (2009) if costs are tau / 2, and (3.55) for label
    losses that are sums over labels.

    With a threshold z_0, the last score, it is the sum of
    max(0, costs[0, j] + z_j - z_0) for the worst irrelevant label and
    max(0, costs[1, h] + z_0 - z_h) for the worst relevant label. This sum is (3.55)
    with the threshold as an additional label, which is relevant for the irrelevant
    labels and irrelevant for the relevant labels. It is an upper bound of the loss
    without a threshold.

    Parameters
    ----------
    costs : ndarray of shape (2, l)
        Non-negative margins of irrelevant and relevant labels.
    """

    kernel = multilabel

    def __init__(self, costs: Floats) -> None:
        self.costs = np.ascontiguousarray(costs, dtype=np.float64)

    def rows(self, targets: Any, k: int) -> multilabel.Rows:
        return multilabel.Rows(targets, self.costs, k)

    def variables(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        """Return b of shape (n, l), with |u| = s b."""
        b = np.zeros(targets.shape)
        scale = weights[:, np.newaxis]
        np.divide(dual[:, : targets.shape[1]], scale, out=b, where=scale > 0.0)
        b[targets > 0] *= -1.0
        return np.clip(b, 0.0, 1.0, out=b)

    def neutral(self, targets: Any) -> Floats:
        """Return b that sum to one half over the labels of either kind."""
        relevant = targets.sum(axis=1, dtype=np.float64, keepdims=True)
        sizes = np.where(targets > 0, relevant, targets.shape[1] - relevant)
        return 0.5 / np.maximum(sizes, 1.0)

    def conjugate(self, dual: Floats, targets: Any, weights: Floats) -> float:
        """Return R*(u) = -sum_ij costs_j |u_ij| over the labels.

        It is finite if u_i = s_i (p - q) for p >= 0 on irrelevant and q >= 0 on
        relevant labels with equal sums of at most one; with a threshold the sums may
        differ, and the last entry is their difference.
        """
        return -cost_of_labels(self.costs, dual, targets)

    def _rowwise(self, targets: Any) -> LabelSets:
        return LabelSets(targets, self.costs)

    def balance_near_optimum(
        self, dual: Floats, targets: Any, weights: Floats
    ) -> Floats:
        neutral = self.neutral(targets)
        neutral[targets > 0] *= -1.0
        if dual.shape[1] == targets.shape[1]:
            return balanced(tilted(dual, weights, neutral))
        # The sums over irrelevant and over relevant labels are separate maxima.
        halves: list[Floats] = []
        others: list[Floats] = []
        for labels in (targets == 0, targets > 0):
            for u, parts in ((dual[:, :-1], halves), (neutral, others)):
                part = np.where(labels, u, 0.0)
                parts.append(np.column_stack([part, -part.sum(axis=1)]))
        both = tilted(np.vstack(halves), np.tile(weights, 2), np.vstack(others))
        return np.add(*np.split(balanced(both), 2))


class LabelPairs(JointSet):
    """Non-negative b with a sum of at most one over pairs of labels.

    The loss of a row is the maximum of 0 and of costs[h, j] + z_j - z_h over its
    relevant labels h and irrelevant labels j (Yu 2009, eq. 3.55). Rows without relevant
    or without irrelevant labels have no loss. If costs are sums of a term of h and a
    term of j, the set is ``KindsOfLabels`` without a threshold, which never forms the
    pairs. The variables of all rows are concatenated, of shape (m,).

    Parameters
    ----------
    costs : ndarray of shape (l, l)
        Non-negative; the diagonal is ignored.
    """

    kernel = label_pairs
    is_determined = False

    def __init__(self, costs: Floats) -> None:
        self.costs = np.ascontiguousarray(costs, dtype=np.float64)

    def rows(self, targets: Any, k: int) -> label_pairs.Rows:
        return label_pairs.Rows(targets, self.costs)

    def variables(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        """Return the dual variables of u with the largest cost."""
        _, flows = self._transport(dual, targets)
        scale = np.repeat(weights, np.diff(starts_of_pairs(targets)))
        b = np.zeros_like(flows)
        np.divide(flows, scale, out=b, where=scale > 0.0)
        return np.clip(b, 0.0, 1.0, out=b)

    def neutral(self, targets: Any) -> Floats:
        """Return equal variables in each row, each equal to one minus their sum."""
        sizes = np.diff(starts_of_pairs(targets))
        return np.repeat(1.0 / (sizes + 1.0), sizes)

    def conjugate(self, dual: Floats, targets: Any, weights: Floats) -> float:
        """Return R*(u) = -max <costs, flows> over the flows whose sums are u.

        It is finite if u_i = s_i (p - q) for p >= 0 on irrelevant and q >= 0 on
        relevant labels with equal sums of at most one. The flows from q to p are a
        transport problem for each row.
        """
        return -self._transport(dual, targets)[0]

    def _transport(self, dual: Floats, targets: Any) -> tuple[float, Floats]:
        flows = np.empty(starts_of_pairs(targets)[-1])
        rows = self.rows(targets, dual.shape[1])
        return label_pairs.transport(rows, np.ascontiguousarray(dual), flows), flows

    def take(self, codes: Codes, targets: Any, rows: Rows | slice) -> Codes:
        starts = starts_of_pairs(targets)
        if isinstance(rows, slice):
            first, end, _ = rows.indices(len(targets))
            return codes[starts[first] : starts[end]]
        sizes = np.diff(starts)[rows]
        # Shift of the codes of each row: their old position minus their new one.
        shifts = starts[rows] - (np.cumsum(sizes) - sizes)
        return codes[np.arange(sizes.sum()) + np.repeat(shifts, sizes)]

    def positive_rows(self, codes: Codes, targets: Any) -> Rows:
        places = np.flatnonzero(codes)
        return np.unique(np.searchsorted(starts_of_pairs(targets), places, "right") - 1)


def starts_of_pairs(targets: Any) -> npt.NDArray[np.intp]:
    """Return the start of each row's pairs, and the number of all pairs."""
    relevant = np.count_nonzero(targets, axis=1)
    starts = np.zeros(len(targets) + 1, dtype=np.intp)
    np.cumsum(relevant * (targets.shape[1] - relevant), out=starts[1:])
    return starts


#: The multinomial logistic loss.
MULTINOMIAL_LOSS = DualLoss(Simplex(), SimplexEntropy())

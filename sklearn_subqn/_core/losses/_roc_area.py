"""Losses of pairs of a positive and a negative row, which bound the ROC area."""

from __future__ import annotations

import numpy as np

from ._base import Floats, Rows
from ._groups import Groups
from ._logistic_pairs import LogisticPairs
from ._pairwise import OrderedPairs, SquaredPairs


class RocArea(OrderedPairs):
    """Hinge of all pairs of a negative and a positive row (Teo et al. 2010, Alg. 7).

    With unit weights the loss is an upper bound of one minus the area under the ROC
    curve, (27). Targets are -1 and +1.

    Parameters
    ----------
    groups : Groups, optional
        Only rows of one group form pairs. Default a single group.

    See Also
    --------
    SquaredRocArea, LogisticRocArea : Smooth losses of the same pairs.
    OrderedPairs : For more than two ordered classes.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_subqn import BMRMClassifier
    >>> from sklearn_subqn.losses import RocArea
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> clf = BMRMClassifier(loss=RocArea(), alpha=1e-3).fit(X, y)
    >>> bool(clf.dual_gap_ <= 1e-3 * clf.objective_)
    True
    """

    def __init__(self, groups: Groups | None = None) -> None:
        super().__init__("constant", groups)

    def _levels(self, targets: Floats) -> tuple[Floats, Rows]:
        return np.arange(2.0), (targets > 0.0).astype(np.intp)


class SquaredRocArea(SquaredPairs, RocArea):
    """Squared hinge of all pairs of a negative and a positive row.

    As ``RocArea``, with the loss max(0, 1 + z_i - z_j)² of a pair.

    Parameters
    ----------
    groups : Groups, optional
        Only rows of one group form pairs. Default a single group.

    See Also
    --------
    RocArea, LogisticRocArea : Other losses of the same pairs.
    SquaredPairs : For more than two ordered classes.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_subqn import BMRMClassifier
    >>> from sklearn_subqn.losses import SquaredRocArea
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> clf = BMRMClassifier(loss=SquaredRocArea(), alpha=1e-3).fit(X, y)
    >>> bool(clf.dual_gap_ <= 1e-3 * clf.objective_)
    True
    """


class LogisticRocArea(LogisticPairs, RocArea):
    """Logistic loss of all pairs of a negative and a positive row.

    As ``RocArea``, with the loss ln(1 + exp(z_i - z_j)) of a pair.

    Parameters
    ----------
    groups : Groups, optional
        Only rows of one group form pairs. Default a single group.

    See Also
    --------
    RocArea, SquaredRocArea : Other losses of the same pairs.
    LogisticPairs : For more than two ordered classes.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_subqn import BMRMClassifier
    >>> from sklearn_subqn.losses import LogisticRocArea
    >>> X, y = make_classification(500, weights=[0.9], random_state=0)
    >>> clf = BMRMClassifier(loss=LogisticRocArea(), alpha=1e-3).fit(X, y)
    >>> bool(clf.dual_gap_ <= 1e-3 * clf.objective_)
    True
    """

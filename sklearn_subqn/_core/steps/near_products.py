"""Products with X from that of a dual point near by.

Under an L1 norm features do not matter whose products with the dual u are smaller than
alpha. By the inequality of Cauchy and Schwarz a product moves by no more than the size
of its column times the length of the move of u. So only some columns can reach alpha,
and only their products are computed. (El Ghaoui, Viallon and Rabbani 2012, section 3,
leave out features by such a test.)
"""

from __future__ import annotations

import numpy as np

from ..losses._base import Floats
from ..objectives.objective import Objective, Point
from ..rounding import rounding

# The product with all columns takes as long as a copy of an eighth of them.
_MOST_COLUMNS = 0.125

# The sizes of the columns take as long as about three products.
_FIRST = 4


class NearProducts:
    """Products with a dense X, of which runs on the same data share the last one.

    Entries that cannot matter are those of the dual point near by, which do not either:
    bounds and optimality conditions are the same.

    Parameters
    ----------
    objective : Objective
        Its regularizer is an ``ElasticNet``.
    """

    def __init__(self, objective: Objective) -> None:
        self._objective, self._risk = objective, objective.risk
        self._limit = objective.alpha * objective.elastic_net.l1_ratio
        design = objective.design
        dense = design.holds_rows and not (design.is_sparse or design.several_scores)
        self._can_choose = dense and self._limit > 0.0

    def normal(self, dual: Floats) -> Floats:
        """Return the product with a dual u."""
        product = self._updated(dual, np.zeros(self._objective.n_params))
        if product is None:
            product = self._risk.adjoint(dual)
            self._remember(dual, product)
        return product

    def settle(self, point: Point) -> None:
        """Compute the risk gradient of a point, exactly where w is not zero."""
        if "risk_gradient" in vars(point):
            return
        gradient = self._updated(point.dual, point.w)
        if gradient is None:
            self._remember(point.dual, point.risk_gradient)
        else:
            point.set_gradient(gradient)

    def _remember(self, dual: Floats, product: Floats) -> None:
        known = self._risk.near_by
        n = 1 if known is None else known[2] + 1
        self._risk.near_by = dual, product, n

    def _updated(self, dual: Floats, w: Floats) -> Floats | None:
        """Return the known product with new entries, or None if those are many."""
        o, risk = self._objective, self._risk
        if risk.near_by is None or not self._can_choose:
            return None
        other, known, n_products = risk.near_by
        if n_products < _FIRST:
            return None
        n = o.regularizer.n_penalized
        move = risk.dual_norm(risk.difference(dual, other))
        move += rounding(risk.n_scored) * (risk.dual_norm(dual) + risk.dual_norm(other))
        reach = np.abs(known[:n]) + move * o.column_sizes
        columns = np.flatnonzero((reach >= self._limit) | (w[:n] != 0.0))
        if len(columns) > _MOST_COLUMNS * n:
            return None
        product = known.copy()
        product[columns] = dual @ o.design.dense_columns(columns)
        product[n:] = risk.column_sums(dual)
        o.design.passes += len(columns) / n
        return product

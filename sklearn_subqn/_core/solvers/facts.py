"""Properties of a problem that select its solver, each computed on first use."""

from __future__ import annotations

import numpy as np

from ..driver import Options, Start
from ..lazy import cached_property
from ..losses._base import Floats, RowwiseDual
from ..objectives.objective import Dual, Objective, Point
from ..regularizers import (
    L2,
    Bounded,
    ElasticNet,
    GroupPenalty,
    Polyhedron,
    QuadraticForm,
)
from ..steps.intercepts import minimize_intercept
from ..steps.newton_direction import (
    CG_ACCURACY,
    eliminates_category,
    is_factorized,
    is_wide,
)

# A dual point for another alpha may have too large a norm if the loss is less than half
# of the objective.
_LITTLE_LOSS = 0.5

# Its norm may also be too large if the loss is less than a thousandth of the loss
# without features. With this rule, digits is solved for alpha from 1e-3 to 1e-8 in 18
# iterations; without it, 118 iterations do not suffice.
_NO_LOSS = 1e-3

# A dual point is multiplied by its best factor only if the factor is below this number.
_SHORTER = 0.9

# A dual point whose best factor is below this number is a poor start.
_FAR = 1e-2

#: How a fit says that a fact is false, and what it calls the numbers.
WORDS = {
    "l2": "the penalty is no squared norm",
    "l1": "the penalty has no L1 norm",
    "groups": "the penalty has no norms of groups",
    "norms": "the penalty has no L1 norm and no norms of groups",
    "quadratic": "the penalty is no quadratic form",
    "box": "coefficients have no bounds",
    "several": "rows have one score",
    "smooth": "the loss is not smooth",
    "kinked_slope": "the loss is not one whose slope alone has kinks",
    "kinks": "the loss has no kinks with a smooth envelope",
    "pairs": "the loss does not compare rows",
    "narrows": "no smooth losses of pairs approximate the loss",
    "hinge": "the loss has no margin",
    "from_zero": "the start is not zero",
    "poor_start": "the start is good",
    "in_one_place": "rows are in several places",
    "as_loops_read": "compiled loops would copy X",
    "dense": "X is sparse",
    "wide": "there are many rows for each feature",
    "text": "X is not like text",
    "columnwise": "the loss has no second derivatives for single columns",
    "separable": "rows share constraints of the dual",
    "forms_hessian": "the matrix of second derivatives is not formed",
    "warm": "the start is far from the solution",
    "n_rows": "rows",
    "n_features": "features",
    "n_params": "parameters of a score",
    "row_size": "entries of a row",
    "curvature": "curvature",
    "curved_rows": "rows with curvature for each parameter",
    "alpha_share": "alpha as a share of the smallest that makes coefficients zero",
}


class Facts:
    """A problem with its shape, its scales and the types of loss and penalty.

    Parameters
    ----------
    objective : Objective
    start : Start
    options : Options

    Attributes
    ----------
    l2, l1 : bool
        Whether the penalty is a squared norm, or an elastic net with an L1 norm.
    groups, norms : bool
        Whether the penalty has norms of groups, and whether it has these or an L1 norm.
    quadratic : bool
        Whether the penalty is a quadratic form, for example a squared norm.
    box : bool
        Whether coefficients have bounds, or inequalities and so few parameters that
        systems are factorized.
    several : bool
        Whether rows have several scores.
    smooth, kinked_slope : bool
        Whether the loss is differentiable, and whether it is differentiable with a
        derivative that has kinks, for one score per row.
    kinks : bool
        Whether the loss has kinks, and a Moreau envelope.
    pairs, narrows : bool
        Whether the loss depends on differences of scores of rows, and whether it has
        kinks and smooth approximations.
    hinge : bool
        Whether the loss vanishes beyond a margin, so that zero is a dual point.
    from_zero : bool
        Whether the start is zero.
    poor_start : bool
        Whether the start is zero, or its dual point comes from another alpha and has
        much too large a norm.
    in_one_place : bool
        Whether methods may read all rows in any order, and single columns.
    dense : bool
        Whether zeros of X are stored.
    row_size : float
        The mean number of stored entries of a row.
    wide : bool
        Whether there are at most a few rows for each feature.
    text : bool
        Whether data are text-like, with rows that store less than a hundredth of the
        features on average, and dual ascent by rows is possible.
    columnwise : bool
        Whether the loss has a curvature for coordinate descent on columns.
    warm : bool
        Whether the start has a dual point and is close to the solution.
    n_rows, n_features, n_params : int
        Numbers of rows, of features, and of parameters of one score.
    """

    def __init__(self, objective: Objective, start: Start, options: Options) -> None:
        self.objective, self.options = objective, options
        loss, design = objective.loss, objective.design
        self.l2 = isinstance(objective.regularizer, L2)
        self.l1 = isinstance(objective.regularizer, ElasticNet) and not self.l2
        self.groups = isinstance(objective.regularizer, GroupPenalty)
        self.norms = self.l1 or self.groups
        regularizer = objective.regularizer
        self.quadratic = isinstance(regularizer, L2 | QuadraticForm)
        self.box = isinstance(regularizer, Bounded)
        if isinstance(regularizer, Polyhedron):
            self.box = is_factorized(objective, CG_ACCURACY)
        self.several = design.several_scores
        self.in_one_place = design.in_one_place
        self.dense, self.row_size = not design.is_sparse, design.row_size
        self.wide = is_wide(objective)
        # Eliminating a category makes the Newton systems of a smooth loss small.
        self.text = (
            design.is_text_like
            and self.rowwise is not None
            and not (loss.smooth and eliminates_category(objective))
        )
        by_columns = loss.by_columns and (self.groups or not loss.joint)
        self.columnwise = self.in_one_place and by_columns
        self.smooth = loss.smooth
        self.kinked_slope = loss.smooth and not self.several and not loss.analytic
        self.kinks = loss.has_envelope
        self.pairs = loss.ranks
        self.narrows = loss.narrows
        self.hinge = loss.has_margin
        self.n_rows, self.n_features = design.n_rows, design.n_features
        self.n_params = objective.n_params // (design.n_outputs or 1)
        self.poor_start = self.from_zero = not start.w.any()
        if self.hinge and self.l2 and start.dual is not None:
            start, share = _with_shorter_dual(objective, start, start.dual)
            self.poor_start = share < _FAR
        self.start, self.warm = start, start.dual is not None

    @cached_property
    def rowwise(self) -> RowwiseDual | None:
        """The row-separable dual of the loss, or None without dual ascent by rows."""
        return self.objective.risk.rowwise_dual()

    @property
    def separable(self) -> bool:
        """Whether each row has separate dual constraints, as dual ascent needs."""
        return self.rowwise is not None

    @property
    def as_loops_read(self) -> bool:
        """Whether compiled loops can read X without a copy, and no threads are used."""
        return self.in_one_place and self.objective.design.is_plain

    @cached_property
    def forms_hessian(self) -> bool:
        """Whether the Hessian of the loss can be formed, for few enough parameters."""
        o = self.objective
        if not self.smooth or not is_factorized(o, CG_ACCURACY):
            return False
        return o.risk.makes_matrix(o.origin().curvature)

    @cached_property
    def curvature(self) -> float:
        """The mean curvature weight * ||x||² / alpha of the dual along a row."""
        o = self.objective
        return o.design.mean_square / max(self.n_rows, 1) / o.alpha

    @cached_property
    def curved_rows(self) -> float:
        """Number of rows with nonzero second derivatives at w = 0, per parameter."""
        curvature = self._origin.curvature
        return self.objective.risk.n_curved(curvature) / self.objective.n_params

    @cached_property
    def alpha_share(self) -> float:
        """Alpha divided by the smallest alpha for which an L1 penalty makes w zero."""
        o = self.objective
        gradient = self._origin.risk_gradient[: o.regularizer.n_penalized]
        largest = float(np.abs(gradient).max(initial=0.0))
        return o.alpha / largest if largest else np.inf

    @cached_property
    def _origin(self) -> Point:
        return minimize_intercept(self.objective.origin())


def _with_shorter_dual(
    objective: Objective, start: Start, dual: Floats
) -> tuple[Start, float]:
    """Return the start with the best multiple of its dual point, and this multiple.

    The multiple is at most one. The dual point may come from a larger alpha. If the
    loss is small, optimal dual points are proportional to alpha, and without scaling
    most iterations would only shrink the dual point.
    """
    point = start.at(objective)
    start = Start.from_point(point, dual)
    little = _LITTLE_LOSS * point.value
    if point.risk > little and point.risk > _NO_LOSS * objective.origin().risk:
        return start, 1.0
    normal, offset, *_ = objective.cut(Dual(dual))
    square = objective.regularizer.conjugate(normal / -objective.alpha)
    # The lower bound that the multiple c proves is offset * c - alpha * square * c².
    c = offset / max(2.0 * objective.alpha * square, 1e-300)
    if not 0.0 < c < _SHORTER:
        return start, 1.0
    return start._replace(dual=objective.risk.scaled(c, dual)), c

"""What decides how a problem is best solved."""

from __future__ import annotations

from .lazy import cached_property
from .line_search import settle
from .losses._base import Curvature, LabelSets
from .newton import is_wide
from .objective import Objective, Point
from .regularizers import L2, ElasticNet

# Bases of the span of rows take the time of about a sixth of the rows in products for
# each score, and the room of X: so many rows at most, and so many features for each.
_MAX_ROWS, _FEATURES_PER_ROW = 2000, 2

# Less rows with curvature than so many for each parameter are few.
_FEW_CURVED = 4


class Facts:
    """Shape, scales and kinds of a problem, each computed when first asked for.

    Parameters
    ----------
    objective : Objective

    Attributes
    ----------
    several : bool
        Whether rows have several scores.
    smooth, kinked_slope : bool
        Whether the loss is differentiable, and whether it is but its slope is not.
    hinge : bool
        Whether zero is a dual point, as of losses that vanish beyond a margin.
    envelope : bool
        Whether the loss has kinks and a Moreau envelope.
    l2, elastic_net : bool
        The penalty: squares alone, and with or without an L1 norm.
    n_rows, n_features, n_params : int
        Parameters are those of one score.
    n_entries : float
        Stored entries of X.
    """

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        loss, design = objective.loss, objective.design
        self.several = design.n_outputs is not None
        self.smooth = loss.smooth
        self.kinked_slope = loss.smooth and not self.several and not loss.analytic
        self.hinge = loss.has_margin
        self.envelope = loss.has_envelope and not loss.smooth
        self.l2 = isinstance(objective.regularizer, L2)
        self.elastic_net = isinstance(objective.regularizer, ElasticNet)
        self.n_rows, self.n_features = design.n_rows, design.n_features
        self.n_params = objective.n_params // (design.n_outputs or 1)
        self.n_entries = design.row_size * design.n_rows

    @cached_property
    def separable(self) -> bool:
        """Whether the dual variables of each row have constraints of their own only."""
        return self._form is not None

    @cached_property
    def label_sets(self) -> bool:
        """Whether these are of sets of labels."""
        return isinstance(self._form, LabelSets)

    @cached_property
    def _form(self) -> object:
        return self._objective.loss.rowwise_dual(self._objective.targets)

    @cached_property
    def columnwise(self) -> bool:
        """Whether the loss has a curvature for coordinate descent on columns."""
        if not self.smooth or not self.several:
            return self.smooth
        curvature = self._objective.origin().curvature
        return type(curvature).rank_one is not Curvature.rank_one

    @cached_property
    def text(self) -> bool:
        """Whether rows are so sparse that they are nearly orthogonal."""
        return self._objective.design.is_text_like

    @property
    def wide(self) -> bool:
        """Whether there are at most a few rows for each feature."""
        return is_wide(self._objective)

    @property
    def short_rows(self) -> bool:
        """Whether the span of the rows has far fewer dimensions than rows features."""
        n = self.n_rows
        fits = n <= _MAX_ROWS and self.n_features >= _FEATURES_PER_ROW * n
        return fits and not self._objective.design.is_sparse

    @cached_property
    def curvature(self) -> float:
        """The mean curvature weight * ||x||² / alpha of the dual along a row's."""
        o = self._objective
        return o.design.mean_square / max(self.n_rows, 1) / o.alpha

    @cached_property
    def _origin(self) -> Point:
        return settle(self._objective.origin())

    @property
    def linear(self) -> bool:
        """Whether at w = 0 too few rows have curvature, of a loss linear from afar."""
        o = self._objective
        if self.several or o.loss.from_afar() is None:
            return False
        curvature = self._origin.curvature.diagonal()
        return int((curvature > 0.0).sum()) < _FEW_CURVED * o.n_params

    @property
    def alpha_share(self) -> float:
        """Alpha as a share of the least one for which an L1 penalty makes w zero."""
        o = self._objective
        gradient = self._origin.risk_gradient[: o.regularizer.n_penalized]
        largest = float(abs(gradient).max(initial=0.0))
        return o.alpha / largest if largest else float("inf")

"""Requirements of solvers on losses and penalties: the entries of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..driver import Options, Solver, Start
from ..losses._dual_loss import AnyLoss, DualLoss
from ..objectives.objective import Objective
from ..options import Option
from ..regularizers import (
    L2,
    Bounded,
    ElasticNet,
    GroupPenalty,
    Polyhedron,
    QuadraticForm,
    Regularizer,
    SquaredNorm,
)

#: Types of penalties; the first type that an object is an instance of applies.
Penalties = tuple[type[Regularizer], ...]

#: Squared norms only.
SQUARES: Penalties = (L2,)

#: Squared norms and L1 norms, which are separable by coordinates.
BY_COORDINATES: Penalties = (L2, ElasticNet)

#: Penalties whose models are minimized by coordinates or blocks of coordinates.
BY_BLOCKS: Penalties = (L2, ElasticNet, GroupPenalty)

#: Penalties with an L1 norm.
WITH_L1: Penalties = (ElasticNet,)

#: Penalties whose proximity operator has a closed form.
PROXIMAL: Penalties = (L2, ElasticNet, Bounded, Polyhedron, GroupPenalty)

#: Differentiable penalties of all parameters.
DIFFERENTIABLE: Penalties = (L2, QuadraticForm, SquaredNorm)

#: Penalties that are finite everywhere.
FINITE: Penalties = (L2, ElasticNet, QuadraticForm, SquaredNorm)

#: All penalties.
ANY: Penalties = (Regularizer,)


@dataclass(frozen=True)
class SolverSpec:
    """The entry of a solver: its function, and its requirements.

    Attributes
    ----------
    start : callable
        Returns the generator of iterates for an objective, a start and options.
    smooth : bool or None
        Whether the loss must be differentiable, or must not be; None for any loss.
    proves : bool
        Whether the solver proves lower bounds itself, so that its cuts need not be
        kept.
    penalties : tuple of type
        The types of penalties that the solver supports.
    first_order : bool
        Whether values and subgradients of the loss are enough.
    steep : bool
        Whether the loss may grow exponentially.
    envelope : bool
        Whether a loss with kinks must have an envelope.
    narrows : bool
        Whether the loss must have ``narrowed``.
    by_columns : bool
        Whether the loss must have second derivatives for models along columns.
    quadratic : bool
        Whether the loss must be quadratic.
    options : dict
        Options of the solver besides the parameters of estimators, by name.
    """

    start: Callable[[Objective, Start, Options], Solver]
    smooth: bool | None = None
    proves: bool = False
    penalties: Penalties = SQUARES
    first_order: bool = False
    steep: bool = True
    envelope: bool = False
    narrows: bool = False
    by_columns: bool = False
    quadratic: bool = False
    options: Mapping[str, Option] = field(default_factory=dict)

    def takes_penalty(self, regularizer: Regularizer) -> bool:
        """Return whether the solver supports a penalty."""
        return isinstance(regularizer, self.penalties)

    def supports(self, loss: AnyLoss, regularizer: Regularizer | None = None) -> bool:
        """Return whether the solver can minimize an objective; L2 is the default."""
        if not isinstance(regularizer or L2(0), self.penalties):
            return False
        loss = loss if isinstance(loss, DualLoss) else DualLoss.of(loss)
        if isinstance(regularizer, GroupPenalty) and not regularizer.bends:
            # A model of cuts needs a differentiable conjugate.
            by_envelopes = loss.has_envelope and not loss.ranks
            if self.proves or not (loss.smooth or by_envelopes):
                return False
        if self.narrows and not loss.narrows:
            return False
        if loss.steep and not self.steep:
            return False
        if not (loss.has_lines or self.first_order):
            return False
        if self.envelope and not (loss.smooth or loss.has_envelope):
            return False
        if self.by_columns and not loss.by_columns:
            return False
        if self.by_columns and loss.joint and not isinstance(regularizer, GroupPenalty):
            return False
        if self.quadratic and not loss.quadratic:
            return False
        return self.smooth is None or self.smooth == loss.smooth

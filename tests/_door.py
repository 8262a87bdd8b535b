"""The inner door: what tests import from the core.

Tests build an objective from a design, a loss and a regularizer, and minimize it by a
solver of a table or by a single method. A redesign of the core changes this file only.

- Objectives: designs, ``Risk`` and ``RiskOfParts`` with ``Parts``, ``Objective``,
  ``FunctionObjective``, their ``Point``, ``Line``, ``Cut`` and ``Dual``, and the
  minimization over intercepts.
- Solvers: tables and methods, and ``run`` with ``Start``, ``Options``, ``Stopping``,
  ``Status``, ``Iterate``, ``History`` and ``CutBundle``; online methods with ``State``.
- Losses: sets, smoothings, and losses that are not in ``sklearn_subqn.losses``.
- Regularizers: all of them.

Tests of other private modules are next to the module's own folder and say what only
they can show.
"""

from sklearn_subqn._chains.design import ChainDesign
from sklearn_subqn._chains.hinge import ChainHinge
from sklearn_subqn._chains.log_loss import ChainLogLoss
from sklearn_subqn._chains.solvers import CHAIN_SOLVERS, CHAIN_STREAMS
from sklearn_subqn._core.driver import Iterate, Options, Start, Status, Stopping, run
from sklearn_subqn._core.losses import (
    BINARY_LOSSES,
    MULTINOMIAL_LOSS,
    NOVELTY_LOSS,
    Box,
    Cox,
    DualLoss,
    KindsOfLabels,
    LabelOrder,
    LabelPairs,
    MultivariateSquared,
    Quadratic,
    ScaledHuber,
    Simplex,
    path_shares,
    regression_losses,
)
from sklearn_subqn._core.losses._composition import DualSet
from sklearn_subqn._core.losses._curvature import MatrixCurvature
from sklearn_subqn._core.losses._row_loss import Deviance
from sklearn_subqn._core.losses._smoothings import Entropy
from sklearn_subqn._core.objectives.generic import FunctionObjective
from sklearn_subqn._core.objectives.objective import Cut, Dual, Line, Objective, Point
from sklearn_subqn._core.objectives.risk import Risk
from sklearn_subqn._core.objectives.risk_by_oracle import CandidateHinge
from sklearn_subqn._core.objectives.risk_of_parts import RiskOfParts
from sklearn_subqn._core.online import (
    ONLINE_METHODS,
    Averaged,
    ConvergenceTest,
    State,
    hyperparameters,
    online_method,
)
from sklearn_subqn._core.online.batch import LinearBatch, Penalty
from sklearn_subqn._core.online.obfgs import OBFGS
from sklearn_subqn._core.online.olbfgs import OLBFGS
from sklearn_subqn._core.online.res import RES, LimitedRES
from sklearn_subqn._core.online.sgd import SGD
from sklearn_subqn._core.online.smd import SMD
from sklearn_subqn._core.places.parts import DesignOfParts, Parts
from sklearn_subqn._core.regularizers import (
    L2,
    Bounded,
    ElasticNet,
    EntropyPenalty,
    GroupPenalty,
    NormalizedEntropy,
    PartlyFree,
    Polyhedron,
    QuadraticForm,
    SquaredNorm,
    elastic_net,
    projected,
)
from sklearn_subqn._core.rows.design import Design
from sklearn_subqn._core.rows.threshold_design import ThresholdDesign
from sklearn_subqn._core.solvers import (
    BUNDLE_SOLVERS,
    SMOOTH_STRUCTURED_SOLVERS,
    SOLVERS,
    STRUCTURED_SOLVERS,
    History,
    aggregated_bmrm,
    alm,
    auto,
    bfgs,
    bmrm,
    cg,
    ls_bmrm,
    newton,
    subbfgs,
    trust_region,
)
from sklearn_subqn._core.solvers.alm import narrowing
from sklearn_subqn._core.solvers.dual_ascent import dual_ascent
from sklearn_subqn._core.solvers.faces import face_newton
from sklearn_subqn._core.solvers.owlqn import owlqn, owlqn_star
from sklearn_subqn._core.solvers.proximal_newton import proximal_newton
from sklearn_subqn._core.solvers.rental import rental
from sklearn_subqn._core.steps.certificate import CutBundle
from sklearn_subqn._core.steps.intercepts import minimize_intercept
from sklearn_subqn._core.steps.line_search import exact, wolfe
from sklearn_subqn._core.steps.quasi_newton import (
    DenseInverseHessian,
    LimitedMemoryInverseHessian,
)

__all__ = [
    "BINARY_LOSSES",
    "BUNDLE_SOLVERS",
    "CHAIN_SOLVERS",
    "CHAIN_STREAMS",
    "L2",
    "MULTINOMIAL_LOSS",
    "NOVELTY_LOSS",
    "OBFGS",
    "OLBFGS",
    "ONLINE_METHODS",
    "RES",
    "SGD",
    "SMD",
    "SMOOTH_STRUCTURED_SOLVERS",
    "SOLVERS",
    "STRUCTURED_SOLVERS",
    "Averaged",
    "Bounded",
    "Box",
    "CandidateHinge",
    "ChainDesign",
    "ChainHinge",
    "ChainLogLoss",
    "ConvergenceTest",
    "Cox",
    "Cut",
    "CutBundle",
    "DenseInverseHessian",
    "Design",
    "DesignOfParts",
    "Deviance",
    "Dual",
    "DualLoss",
    "DualSet",
    "ElasticNet",
    "Entropy",
    "EntropyPenalty",
    "FunctionObjective",
    "GroupPenalty",
    "History",
    "Iterate",
    "KindsOfLabels",
    "LabelOrder",
    "LabelPairs",
    "LimitedMemoryInverseHessian",
    "LimitedRES",
    "Line",
    "LinearBatch",
    "MatrixCurvature",
    "MultivariateSquared",
    "NormalizedEntropy",
    "Objective",
    "Options",
    "PartlyFree",
    "Parts",
    "Penalty",
    "Point",
    "Polyhedron",
    "Quadratic",
    "QuadraticForm",
    "Risk",
    "RiskOfParts",
    "ScaledHuber",
    "Simplex",
    "SquaredNorm",
    "Start",
    "State",
    "Status",
    "Stopping",
    "ThresholdDesign",
    "aggregated_bmrm",
    "alm",
    "auto",
    "bfgs",
    "bmrm",
    "cg",
    "dual_ascent",
    "elastic_net",
    "exact",
    "face_newton",
    "hyperparameters",
    "ls_bmrm",
    "minimize_intercept",
    "narrowing",
    "newton",
    "online_method",
    "owlqn",
    "owlqn_star",
    "path_shares",
    "projected",
    "proximal_newton",
    "regression_losses",
    "rental",
    "run",
    "subbfgs",
    "trust_region",
    "wolfe",
]

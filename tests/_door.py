"""The inner door: what tests import from the core.

Tests build an objective from a design, a loss and a regularizer, and minimize it by a
solver of a table or by a single method. A redesign of the core changes this file only.

- Objectives: designs of rows, ``Risk`` and ``RiskOfParts`` with ``Parts``,
  ``Objective``, ``FunctionObjective``, their ``Point``, ``Line``, ``Cut`` and ``Dual``,
  the minimization over intercepts, and ``lower_bound`` of features without a penalty.
- Settings: one function for each number of the package that tests change to reach, with
  few rows, what is chosen for many.
- Solvers: tables and methods, related problems that are solved first, line searches,
  and ``run`` with ``Start``, ``Options``, ``Stopping``, ``Status``, ``Iterate``,
  ``History`` and ``CutBundle``; online methods with ``State``, batches and losses.
- Losses: sets, smoothings, and losses that are not in ``sklearn_subqn.losses``.
- Regularizers: all of them.

Tests of other private modules are next to the module's own folder and say what only
they can show.
"""

import numpy as np

from sklearn_subqn._chains.design import ChainDesign
from sklearn_subqn._chains.hinge import ChainHinge
from sklearn_subqn._chains.log_loss import ChainLogLoss
from sklearn_subqn._chains.solvers import CHAIN_SOLVERS, CHAIN_STREAMS
from sklearn_subqn._chains.tokens import AttributeReader
from sklearn_subqn._core.driver import (
    Chosen,
    Iterate,
    Options,
    Start,
    Status,
    Stopping,
    run,
    to_the_end,
)
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
from sklearn_subqn._core.objectives.free_columns import lower_bound
from sklearn_subqn._core.objectives.generic import FunctionObjective
from sklearn_subqn._core.objectives.objective import Cut, Dual, Line, Objective, Point
from sklearn_subqn._core.objectives.risk import Risk
from sklearn_subqn._core.objectives.risk_by_oracle import (
    Answers,
    CandidateHinge,
    OracleHinge,
    OracleObjective,
)
from sklearn_subqn._core.objectives.risk_of_parts import RiskOfParts
from sklearn_subqn._core.online import (
    ONLINE_METHODS,
    Averaged,
    ConvergenceTest,
    State,
    hyperparameters,
    online_method,
)
from sklearn_subqn._core.online.auto import AdaptiveLBFGS
from sklearn_subqn._core.online.batch import LinearBatch, Penalty
from sklearn_subqn._core.online.losses_with_curvature import (
    DampedSoftmax,
    OfScores,
    OneVsRest,
)
from sklearn_subqn._core.online.obfgs import OBFGS
from sklearn_subqn._core.online.olbfgs import OLBFGS
from sklearn_subqn._core.online.res import RES, LimitedRES
from sklearn_subqn._core.online.sgd import SGD
from sklearn_subqn._core.online.smd import SMD
from sklearn_subqn._core.places.parts import DesignOfParts, OfParts, Parts
from sklearn_subqn._core.places.places import Here, Place, Session
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
from sklearn_subqn._core.rounding import rounding
from sklearn_subqn._core.rows.design import Design
from sklearn_subqn._core.rows.row_views import SomeRows
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
from sklearn_subqn._core.solvers.plans import PLANS
from sklearn_subqn._core.solvers.proximal_newton import proximal_newton
from sklearn_subqn._core.solvers.related import solve_related
from sklearn_subqn._core.solvers.related.row_space import row_space
from sklearn_subqn._core.solvers.related.sample import sample, spread
from sklearn_subqn._core.solvers.rental import rental
from sklearn_subqn._core.steps.cut_model import CutBundle
from sklearn_subqn._core.steps.intercepts import minimize_intercept
from sklearn_subqn._core.steps.line_search import (
    exact,
    minimize_by_cuts,
    minimizer,
    newton_step,
    rounding_of,
    scaled,
    wolfe,
)
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
    "PLANS",
    "RES",
    "SGD",
    "SMD",
    "SMOOTH_STRUCTURED_SOLVERS",
    "SOLVERS",
    "STRUCTURED_SOLVERS",
    "AdaptiveLBFGS",
    "Answers",
    "AttributeReader",
    "Averaged",
    "Bounded",
    "Box",
    "CandidateHinge",
    "ChainDesign",
    "ChainHinge",
    "ChainLogLoss",
    "Chosen",
    "ConvergenceTest",
    "Cox",
    "Cut",
    "CutBundle",
    "DampedSoftmax",
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
    "Here",
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
    "OfParts",
    "OfScores",
    "OneVsRest",
    "Options",
    "OracleHinge",
    "OracleObjective",
    "PartlyFree",
    "Parts",
    "Penalty",
    "Place",
    "Point",
    "Polyhedron",
    "Quadratic",
    "QuadraticForm",
    "Risk",
    "RiskOfParts",
    "ScaledHuber",
    "Session",
    "Simplex",
    "SomeRows",
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
    "copy_no_rows",
    "divide_rows_for_threads",
    "dual_ascent",
    "elastic_net",
    "exact",
    "face_newton",
    "hyperparameters",
    "lower_bound",
    "ls_bmrm",
    "minimize_by_cuts",
    "minimize_intercept",
    "minimizer",
    "narrowing",
    "newton",
    "newton_step",
    "online_method",
    "owlqn",
    "owlqn_star",
    "path_shares",
    "print_at_once",
    "projected",
    "proximal_newton",
    "regression_losses",
    "rental",
    "rounding",
    "rounding_of",
    "row_space",
    "run",
    "sample",
    "scaled",
    "share_among_workers",
    "solve_related",
    "spread",
    "subbfgs",
    "to_the_end",
    "trust_region",
    "without_compiled_loop",
    "wolfe",
]


def without_compiled_loop(monkeypatch):
    """Solve problems of any size by the other plans, as larger problems are."""
    place = "sklearn_subqn._core.solvers.plan_conditions.MOST_ENTRIES"
    monkeypatch.setattr(place, 0)


def divide_rows_for_threads(monkeypatch, size):
    """Let each thread have a part of the rows if parts have ``size`` entries."""
    monkeypatch.setattr("sklearn_subqn._core.rows.linear_map.PART_SIZE", size)


def copy_no_rows(monkeypatch):
    """Divide columns by their sizes in products, as for X too large to be copied."""
    monkeypatch.setattr("sklearn_subqn._problems.linear.COPY_SIZE", 8)
    name = "sklearn_subqn._core.solvers.plan_conditions._MOST_COPIED"
    monkeypatch.setattr(name, 8)


def print_at_once(monkeypatch):
    """Print iterations and fits by their number only, however long they take."""
    for place in ("_solving.report", "_search.search_report"):
        monkeypatch.setattr(f"sklearn_subqn.{place}.QUIET", np.inf)


def share_among_workers(monkeypatch):
    """Let rows stay on the workers that have them, however few they are."""
    monkeypatch.setattr("sklearn_subqn._blocks.dask_blocks._SHARE_OF_MEMORY", 0.0)

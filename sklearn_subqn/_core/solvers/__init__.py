"""Optimization methods, one per file, and the table of them.

``SOLVERS`` of ``table.py`` lists the batch solvers by name.
"""

from __future__ import annotations

from ..driver import (
    History,
    Iterate,
    Options,
    Result,
    Solver,
    Start,
    Status,
    Stopping,
    run,
    size_of,
)
from ..steps.intercepts import minimize_intercept
from .aggregated import aggregated_bmrm
from .alm import alm
from .bfgs import bfgs
from .bundle import bmrm, ls_bmrm
from .cd import cd
from .cg import cg
from .fista import fista
from .n_slack import n_slack
from .newton import newton
from .owlqn import owlqn, owlqn_star
from .plans import auto
from .proximal_bundle import proximal_bundle, trust_region_bundle
from .sparse_alm import sparse_alm
from .spec import SolverSpec
from .subbfgs import subbfgs
from .table import (
    BUNDLE_SOLVERS,
    SMOOTH_STRUCTURED_SOLVERS,
    SOLVERS,
    STRUCTURED_SOLVERS,
)
from .trust_region import trust_region

__all__ = [
    "BUNDLE_SOLVERS",
    "SMOOTH_STRUCTURED_SOLVERS",
    "SOLVERS",
    "STRUCTURED_SOLVERS",
    "History",
    "Iterate",
    "Options",
    "Result",
    "Solver",
    "SolverSpec",
    "Start",
    "Status",
    "Stopping",
    "aggregated_bmrm",
    "alm",
    "auto",
    "bfgs",
    "bmrm",
    "cd",
    "cg",
    "fista",
    "ls_bmrm",
    "minimize_intercept",
    "n_slack",
    "newton",
    "owlqn",
    "owlqn_star",
    "proximal_bundle",
    "run",
    "size_of",
    "sparse_alm",
    "subbfgs",
    "trust_region",
    "trust_region_bundle",
]

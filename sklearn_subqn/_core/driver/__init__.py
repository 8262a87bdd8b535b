"""The one loop that runs all batch solvers, its stopping rule, and what it records.

Limits, history and reports belong to it. This room may import steps and all below.
"""

from .history import History
from .iterate import Iterate, Solver, Start
from .options import Options
from .run import STALL_WINDOW, Result, run
from .stopping import Status, Stopping, size_of

__all__ = [
    "STALL_WINDOW",
    "History",
    "Iterate",
    "Options",
    "Result",
    "Solver",
    "Start",
    "Status",
    "Stopping",
    "run",
    "size_of",
]

"""The loop that runs all batch solvers, its stopping rule, and its records.

The driver also enforces limits, keeps the history and sends the reports. This
subpackage may import steps and all layers below.
"""

from .history import History
from .iterate import Chosen, Iterate, Solver, Start, to_the_end
from .options import Options
from .run import STALL_WINDOW, Result, run
from .stopping import Status, Stopping, size_of

__all__ = [
    "STALL_WINDOW",
    "Chosen",
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
    "to_the_end",
]

"""Settings of solvers, in one record that each reads as far as it is concerned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .stopping import Stopping


@dataclass(frozen=True)
class Options:
    """Settings that solvers read as far as they concern them.

    Attributes
    ----------
    memory : int
        Number of pairs of a limited-memory estimate of the inverse Hessian.
    direction_tol, direction_max_iter : float, int
        Tolerance and limit of the search for a descent direction.
    bundle_size : int or None
        Number of cuts that bundle methods keep, None for no limit.
    stopping : Stopping
        The rule of how small the gap of the run has to be.
    seed : int
        Of the order in which dual ascent goes through sequences.
    epsilon : float or None
        Absolute tolerance of the search for a descent direction, in place of
        ``direction_tol``.
    epsilon_0 : float or None
        That of the first search by subBFGS, in place of ``epsilon``.
    line_search : {"exact", "wolfe"}
        How steps of quasi-Newton methods are found.
    c1, c2 : float
        Constants of the Wolfe conditions.
    random_state : int or None
        Seed of subgradients that are drawn at random.
    h : float
        Least ratio of displacements and changes of subgradients in subBFGS.
    gap : float or None
        Absolute gap at which the run is to end, in place of ``tol``.
    patience : int or None
        Number of iterations after which bundle methods remove inactive cuts.
    theta : float
        Share of the model's minimizer in the point of the next cut.
    cut_at_best : bool
        Whether the best point gives a cut as well.
    gradient : float or None
        Norm of the gradient at which the run is to end, in place of ``tol``.
    delta, low, high : float or None, float, float
        First radius of a trust region, and ratios at which it changes.
    beta : str
        Formula of conjugate gradients.
    rho, zeta, kappa : float, float or None, float or None
        Share of the promise in serious steps of bundle methods, and what holds these
        near the best point.
    eta0, tau : float or None
        First step size of methods along gradients, and how fast steps decrease.
    restart : bool
        Whether accelerated methods begin anew where the objective rises.
    online : dict
        Settings of an online method that runs pass by pass.
    """

    memory: int = 15
    direction_tol: float = 1e-5
    direction_max_iter: int = 100
    bundle_size: int | None = None
    stopping: Stopping = field(default_factory=Stopping)
    seed: int = 0
    epsilon: float | None = None
    epsilon_0: float | None = None
    line_search: str = "exact"
    c1: float = 1e-4
    c2: float = 0.9
    random_state: int | None = None
    h: float = 1e-8
    gap: float | None = None
    patience: int | None = 10
    theta: float = 0.2
    cut_at_best: bool = True
    gradient: float | None = None
    delta: float | None = None
    low: float = 0.25
    high: float = 0.75
    beta: str = "polak-ribiere"
    rho: float = 0.1
    zeta: float | None = None
    kappa: float | None = None
    eta0: float | None = None
    tau: float | None = 10.0
    restart: bool = True
    online: Mapping[str, Any] = field(default_factory=dict)

"""Settings of all solvers, in one record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .stopping import Stopping


@dataclass(frozen=True)
class Options:
    """Settings of all solvers, of which each solver uses some.

    Attributes
    ----------
    memory : int
        Number of pairs of a limited-memory estimate of the inverse Hessian.
    direction_tol, direction_max_iter : float, int
        Tolerance and limit of the search for a descent direction.
    bundle_size : int or None
        Number of cuts that bundle methods keep, None for no limit.
    stopping : Stopping
        The rule for the gap at which the run ends.
    seed : int
        Seed of the order in which dual ascent visits sequences.
    epsilon : float or None
        Absolute tolerance of the search for a descent direction, in place of
        ``direction_tol``.
    epsilon_0 : float or None
        Absolute tolerance of the first search by subBFGS, in place of ``epsilon``.
    line_search : {"exact", "wolfe"}
        How quasi-Newton methods choose the step size.
    c1, c2 : float
        Constants of the Wolfe conditions.
    random_state : int or None
        Seed of subgradients that are drawn at random.
    h : float
        Smallest ratio of the change of the subgradient to the displacement in subBFGS.
    gap : float or None
        Absolute gap at which the run is to end, in place of ``tol``.
    patience : int or None
        Number of successive iterations with a zero multiplier after which bundle
        methods remove a cut.
    theta : float
        Weight of the model's minimizer in the point at which the next cut is taken; the
        best point has the remaining weight.
    cut_at_best : bool
        Whether a cut is taken at the best point as well.
    gradient : float or None
        Norm of the gradient at which the run ends, in place of ``tol``.
    delta, low, high : float or None, float, float
        Initial radius of a trust region, and the ratios of actual to predicted decrease
        at which the radius changes.
    beta : str
        Formula of the conjugate gradient method.
    rho, zeta, kappa : float, float or None, float or None
        Share of the predicted decrease that a serious step of a bundle method has to
        reach, and constants of the proximal term around the best point.
    eta0, tau : float or None
        Initial step size of gradient methods, and the number of steps after which step
        sizes decrease.
    restart : bool
        Whether accelerated methods restart when the objective increases.
    online : dict
        Settings of an online method that runs in passes over the data.
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

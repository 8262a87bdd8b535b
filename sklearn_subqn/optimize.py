"""Minimization of user-defined convex functions by the methods of this package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from ._checks import check_callback, check_number, check_option
from ._core.arrays import Floats
from ._core.driver import History
from ._core.objectives.generic import Function, TwiceDifferentiable, penalized
from ._core.objectives.objective import Objective
from ._core.regularizers import elastic_net
from ._core.solvers import (
    SOLVERS,
    Result,
    Start,
    Status,
    Stopping,
    run,
)
from ._core.steps.cut_model import CutBundle
from ._minimizing.minimizers import (
    MINIMIZERS,
    check_penalty,
    given_options,
    quasi_newton,
)
from ._minimizing.own_function import (
    OwnFunction,
    checked_start,
    reporter,
    shielded,
    with_jac,
    with_squares,
)
from ._minimizing.published import (
    descent_direction,
    exact_line_search,
    exact_line_search_of_maxima,
    maximum_of_lines,
)
from ._minimizing.sampled import minimize_stochastic, stochastic_steps

__all__ = [
    "descent_direction",
    "exact_line_search",
    "exact_line_search_of_maxima",
    "maximum_of_lines",
    "minimize",
    "minimize_stochastic",
    "stochastic_steps",
]


# The full matrix of BFGS takes 8 MB for 1000 parameters. It solves ill-conditioned
# problems that limited memory does not. docs/constants.md has the figures.
_MAX_FULL = 1000

# Exit codes as in SciPy: 1 if a limit was reached, 99 if the callback stopped the run,
# 0 for success, and 2 otherwise.
_CODES = {Status.MAX_ITER: 1, Status.CALLBACK: 99}


def __dir__() -> list[str]:
    """List the public names."""
    return sorted(__all__)


def minimize(
    value_and_subgradient: Callable[..., Any],
    w0: Any,
    method: str | None = None,
    *,
    args: tuple[Any, ...] = (),
    jac: bool | Callable[..., Any] = True,
    hessp: Callable[..., Any] | None = None,
    bounds: None = None,
    alpha: float = 0.0,
    l1_ratio: float = 0.0,
    steepest: Callable[..., Any] | None = None,
    restrict: Callable[..., Any] | None = None,
    infimum: float = -np.inf,
    tol: float = 1e-6,
    max_iter: int = 1000,
    options: Mapping[str, Any] | None = None,
    callback: Callable[..., Any] | None = None,
) -> MinimizeResult:
    """Minimize a convex function, not necessarily differentiable, plus a penalty.

    The objective is ``F(w) = f(w) + alpha * (l1_ratio * ||w||_1 + (1 - l1_ratio) / 2 *
    ||w||²)``, where a function returns the value of f and one subgradient. With ``alpha
    > 0`` the subgradients prove a bound on the distance from the optimum.

    Parameters
    ----------
    value_and_subgradient : callable
        ``value_and_subgradient(w, *args)`` returns f(w), a number, and a vector g of
        float64 with ``f(v) >= f(w) + g @ (v - w)`` for all v. The signature is the same
        as in :func:`scipy.optimize.minimize` with ``jac=True``. With ``alpha=0`` f may
        be infinite, but not at ``w0``.
    w0 : array-like of shape (d,)
        Starting point.
    method : str, optional
        In upper or lower case. The default is "newton-cg" with ``hessp``. Without it,
        and without ``steepest``, it is "ls-bmrm", which proves a gap, with ``alpha >
        0``, and "bfgs" without a penalty for up to 1000 parameters. Elsewhere it is
        "sublbfgs".

        - "sublbfgs", "subbfgs": subgradient BFGS, of limited memory or with a full
          matrix. At iterates on kinks of f they need ``steepest``.
        - "lbfgs", "bfgs": the classical methods, for differentiable functions.
        - "newton-cg", "trust-region": Newton's method with directions by conjugate
          gradients, for differentiable functions with ``hessp`` and ``l1_ratio=0``.
        - "owlqn", "owlqn*": for differentiable f with a positive ``l1_ratio``.
        - "fista", "ista": proximal gradient descent for differentiable f and ``alpha >
          0``, with any ``l1_ratio``.
        - "ls-bmrm", "bmrm": bundle methods, with and without line search, for any f
          and ``alpha > 0``. They take any ``l1_ratio``.
        - "bmrm-aggregated", "proximal-bundle", "trust-region-bundle": other bundle
          methods, for ``alpha > 0``, the first one with ``l1_ratio=0``.
        - "subgradient": the subgradient method, for any f and ``alpha > 0``; the result
          is its best point.
    args : tuple, default=()
        Further arguments of the functions.
    jac : True or callable, default=True
        Whether ``value_and_subgradient`` returns the subgradient beside the value, or
        the function ``jac(w, *args)`` that returns it. Finite differences are not
        supported, because they are not subgradients.
    hessp : callable, optional
        ``hessp(w, v, *args)`` returns the Hessian of f at w times v, as in SciPy. Only
        "newton-cg" and "trust-region" take it.
    bounds : None
        Bounds are not supported; the error names functions that take them.
    alpha : float, default=0.0
        Strength of the penalty, non-negative. For a function that is strongly convex
        with a known constant, pass the constant as ``alpha`` and subtract ``alpha / 2 *
        ||w||²`` from f.
    l1_ratio : float, default=0.0
        Share of the L1 norm in the penalty, from 0 to 1.
    steepest : callable, optional
        ``steepest(w, p, *args)`` returns the subgradient g of f at w with the largest
        ``g @ p``. "sublbfgs" and "subbfgs" use it to find descent directions at kinks.
        Without it, f is assumed to be differentiable at the iterates.
    restrict : callable, optional
        ``restrict(w, p, *args)`` returns f on the line ``w + step * p`` as a function
        of the step: a :class:`~sklearn_subqn.losses.PiecewiseQuadratic`, or for smooth
        f a function from a step to slope and curvature. The option
        ``line_search="exact"`` then calls f only once in each iteration.
    infimum : float, default=-inf
        A known lower bound of f. "ls-bmrm" and "bmrm" need it with ``l1_ratio=1``.
    tol : float, default=1e-6
        Stop when the proven gap is at most ``tol * max(1, abs(F(w)))``. Without a
        proven gap, methods other than bundle methods stop where no entry of the
        subgradient (with an L1 norm, of the smallest subgradient) exceeds this
        tolerance.
    max_iter : int, default=1000
        Limit on the number of iterations, at least 1. SciPy's option ``maxiter``
        replaces it.
    options : dict, optional
        Options of the method, also of the default method. The options are listed under
        the solver of the same name in the table of `docs/methods.md`, for example:

        - ``memory``, 15: pairs of "sublbfgs", "lbfgs", "owlqn" and "owlqn*"; of
          "sublbfgs" also 0, for subgradient descent;
        - ``epsilon``, ``epsilon_0`` and ``k_max``, 100: tolerances and limit of the
          search for a direction of "sublbfgs", "subbfgs" and "owlqn*"; instead of
          ``epsilon`` there is ``direction_tol``, 1e-5, relative to F, and
          ``direction_max_iter`` is another name of ``k_max``;
        - ``line_search`` of "sublbfgs", "subbfgs", "lbfgs" and "bfgs": "wolfe", for
          steps by the Wolfe conditions with ``c1``, 1e-4, and ``c2``, 0.9, or "exact",
          for the minimizer on the line;
        - ``h``, 1e-8: least ratio of a pair of "sublbfgs" and "subbfgs";
        - ``bundle_size``, None, and ``patience``, 10: number of cuts that "ls-bmrm" and
          "bmrm" keep, None for no limit, and number of iterations after which unused
          cuts are removed, None to keep them, in which case the run continues without
          progress, as with ``tol=0``; ``theta``, 0.2, and ``cut_at_best``, True, of
          "ls-bmrm"; ``epsilon``, None, an absolute gap in place of ``tol`` for all
          bundle methods, and of "lbfgs" and "bfgs" the norm of the gradient at which to
          end;
        - ``random_state``, None: seed of subgradients drawn at random where an L1 norm
          has kinks, of "owlqn", "owlqn*" and "subgradient".
    callback : callable, optional
        Called after every iteration as by SciPy. A function whose only parameter is
        called ``intermediate_result`` gets an ``OptimizeResult`` of the best point so
        far, as in the result, and of the present iterate in ``current``, with ``x``,
        ``fun`` and ``jac``. Any other function gets the present iterate as an array.
        The run stops if the callback returns True or raises ``StopIteration``.

    Returns
    -------
    result : scipy.optimize.OptimizeResult
        With

        - ``x``, ``fun``: the best point and F there; ``jac``, a subgradient of F.
        - ``lower_bound``, ``gap``: a proven lower bound of the optimum, and ``fun``
          minus this bound; minus infinity and infinity without a proof.
        - ``success``: whether the gap is within ``tol``; where no gap is known, whether
          the subgradient is small or, of "sublbfgs" and "subbfgs" with ``steepest``, no
          direction of descent was found.
        - ``status``, ``message``: 0 for success, 1 at ``max_iter``, 99 if the callback
          stopped the run, else 2; and the reason in words.
        - ``nit``, ``nfev``: numbers of iterations and of calls of the function.
        - ``history``: objective, bound and seconds after each iteration.

    Raises
    ------
    TypeError, ValueError
        If arguments are invalid or contradict each other, if the function does not
        return a finite number and vector, or, with ``alpha > 0``, if its values
        contradict its subgradients: in this case f is not convex, or the vectors are
        not subgradients. With ``alpha=0`` this is tested where the first line search
        fails.

    See Also
    --------
    scipy.optimize.minimize : For smooth functions.
    sklearn_subqn.losses.Loss : Losses of linear scores, which estimators minimize.

    Notes
    -----
    Bounds hold for convex f, up to rounding: f is assumed to be accurate to double
    precision, relative to the largest terms of ``g @ w``.

    References
    ----------
    J. Yu (2009), New Quasi-Newton Optimization Methods for Machine Learning, PhD
    thesis, Australian National University: Alg. 2.1, 2.2, 3.1, 3.2, eq. 3.17 and 3.18.
    C.-H. Teo, S.V.N. Vishwanathan, A. Smola, Q. Le (2010), Bundle Methods for
    Regularized Risk Minimization, JMLR 11: Alg. 1 to 3. G. Andrew, J. Gao (2007),
    Scalable Training of L1-Regularized Log-Linear Models, ICML.

    Examples
    --------
    The largest distance in a coordinate from several places, with a small penalty:

    >>> import numpy as np
    >>> from sklearn_subqn import minimize
    >>> places = np.array([[0.0, 0.0], [4.0, 0.0], [1.0, 3.0]])
    >>> def largest_distance(w):
    ...     differences = w - places
    ...     i, j = np.unravel_index(np.abs(differences).argmax(), places.shape)
    ...     g = np.zeros(2)
    ...     g[j] = np.sign(differences[i, j])
    ...     return abs(differences[i, j]), g
    >>> result = minimize(largest_distance, np.zeros(2), method="ls-bmrm", alpha=1e-3)
    >>> result.success, round(result.fun, 3)
    (True, 2.003)
    >>> bool(result.gap <= 1e-6 * result.fun)
    True
    """
    w = checked_start(w0)
    check_number("alpha", alpha, low=0.0)
    if bounds is not None:
        raise ValueError(
            "minimize has no bounds. scipy.optimize.minimize(method='L-BFGS-B') takes "
            "them for differentiable functions, and coef_bounds of estimators such as "
            "BMRMRegressor for losses of linear scores."
        )
    if method is None:
        method = _default_method(alpha, hessp, steepest, len(w))
    if isinstance(method, str):
        method = method.lower()
    check_option("method", method, list(MINIMIZERS))
    if isinstance(options, Mapping) and "maxiter" in options:
        options = dict(options)
        max_iter = options.pop("maxiter")
    check_number("l1_ratio", l1_ratio, low=0.0, high=1.0)
    check_number("tol", tol, low=0.0)
    check_number("max_iter", max_iter, low=1, integer=True)
    check_callback("callback", callback)
    infimum = _checked_infimum(infimum)
    check_penalty(method, float(alpha), float(l1_ratio), infimum)
    given = given_options(method, options)
    chosen = MINIMIZERS[method]
    function = with_jac(value_and_subgradient, jac)
    called = OwnFunction(function, steepest, restrict, hessp, args, w.shape)
    if steepest is not None and method not in ("sublbfgs", "subbfgs"):
        raise ValueError(
            f"steepest has no effect with method={method!r}; 'sublbfgs' and 'subbfgs' "
            "take it."
        )
    if chosen.by_products != (hessp is not None):
        raise ValueError(
            f"method={method!r} needs hessp, the products with the Hessian."
            if chosen.by_products
            else f"hessp has no effect with method={method!r}; 'newton-cg' and "
            "'trust-region' take it."
        )
    searches = "line_search" in chosen.options and given.line_search == "exact"
    if restrict is not None and not searches:
        raise ValueError(
            "restrict has no effect without the option line_search='exact' of "
            "'sublbfgs', 'subbfgs', 'lbfgs' and 'bfgs'."
        )
    # The tolerance is absolute for objectives below one, since they may be zero.
    stopping = Stopping(tol, least_size=1.0)
    if given.gap is not None or given.gradient is not None:
        stopping = Stopping(given.gap or 0.0, absolute=True)
    objective = None
    if alpha or chosen.by_products:
        evaluate = shielded(called, infimum, w) if alpha else called.evaluate
        loss = Function(evaluate, infimum)
        if chosen.by_products:
            loss = TwiceDifferentiable(evaluate, infimum, called.hessian_product)
        regularizer = elastic_net(len(w), float(l1_ratio))
        objective = penalized(loss, regularizer, float(alpha))
    proves = not alpha
    if chosen.penalized or chosen.by_products:
        assert objective is not None, "checked"
        spec = SOLVERS[method]
        proves |= spec.proves or l1_ratio > 0.0
        solver = spec.start(objective, Start(w), replace(given, stopping=stopping))
    else:
        whole = with_squares(called, objective, infimum)
        solver = quasi_newton(method, whole, w, given)
    bundle = None if objective is None or proves else partial(CutBundle, objective)
    by_gradient = not chosen.by_cuts and given.gradient is None
    report = _Report(called, callback, stopping, by_gradient)
    try:
        result = run(
            solver,
            stopping,
            max_iter=max_iter,
            bundle=bundle,
            least=infimum if objective is None else objective.least,
            report=report,
        )
    except FloatingPointError as error:
        raise ValueError(
            f"value_and_subgradient must return a finite value at w0, but {error}."
        ) from error
    if result.status in (Status.NO_STEP, Status.NO_DESCENT) and result.n_iter <= 2:
        called.check_sign(result.point.w)
    return report.outcome(result, method)


def _default_method(alpha: float, hessp: Any, steepest: Any, n_params: int) -> str:
    if hessp is not None:
        return "newton-cg"
    if steepest is not None or (not alpha and n_params > _MAX_FULL):
        return "sublbfgs"
    return "ls-bmrm" if alpha else "bfgs"


class MinimizeResult(OptimizeResult):
    """SciPy's result, with types for the attributes that ``minimize`` sets."""

    x: Floats
    fun: float
    jac: Floats
    lower_bound: float
    gap: float
    success: bool
    status: int
    message: str
    nit: int
    nfev: int
    history: History
    current: OptimizeResult


class _Report:
    """Reports the iterations of a run and its end.

    Parameters
    ----------
    called : OwnFunction
    callback : callable or None
    stopping : Stopping
    by_gradient : bool
        Whether to stop at small gradients if no gap is proven.
    """

    def __init__(
        self,
        called: OwnFunction,
        callback: Any,
        stopping: Stopping,
        by_gradient: bool,
    ) -> None:
        self._called, self._callback = called, callback
        self._call = reporter(callback)
        self._stopping, self._by_gradient = stopping, by_gradient
        self._reason: Status | None = None

    def __call__(self, result: Result) -> bool:
        point, values = result.point, result.history.objective
        if result.n_iter == 1 and values[0] <= values[-1]:
            # A step so small that the value stays the same may be accepted.
            self._called.check_sign(point.w)
        asked = self._callback is not None and self._asks_to_stop(result)
        if not asked and self._by_gradient and result.lower_bound == -np.inf:
            largest = np.abs(_smallest_subgradient(point)).max()
            if self._stopping.is_reached(largest, point.value):
                self._reason = Status.SMALL
                return True
        return asked

    def _asks_to_stop(self, result: Result) -> bool:
        """Report an iteration; return whether the callback asks to stop."""
        reported, current = self._reported(result), result.current
        reported.current = OptimizeResult(
            x=current.w.copy(), fun=float(current.value), jac=current.gradient.copy()
        )
        return self._call(reported)

    def _reported(self, result: Result) -> MinimizeResult:
        point = result.point
        return MinimizeResult(
            x=point.w.copy(),
            fun=float(point.value),
            jac=point.gradient.copy(),
            lower_bound=float(result.lower_bound),
            gap=float(result.gap),
            nit=result.n_iter,
            nfev=self._called.n_calls,
        )

    def outcome(self, result: Result, method: str) -> MinimizeResult:
        """Return the result for the user."""
        if not result.point.gradient.any():
            # At a zero gradient, the value of a convex function is its minimum.
            result.raise_bound(result.point.value)
        report = self._reported(result)
        status = self._reason or result.status
        if self._stopping.is_reached(report.gap, report.fun):
            status = Status.CONVERGED
        # Without a descent direction, a kink is optimal if steepest subgradients are
        # known.
        at_end = method.startswith("sub") and self._called.knows_steepest
        ends = [Status.CONVERGED, Status.SMALL, Status.SHORT]
        ends += [Status.NO_DESCENT] * at_end
        report.success = status in ends and (
            status != Status.NO_DESCENT or report.lower_bound == -np.inf
        )
        report.status = 0 if report.success else _CODES.get(status, 2)
        report.message = status.sentence
        if status != Status.CONVERGED and np.isfinite(report.gap):
            report.message += f" A gap of {report.gap:.2g} is proven."
        report.history = result.history
        return report


def _smallest_subgradient(point: Any) -> Floats:
    """Return the gradient, or the smallest subgradient with an L1 norm."""
    if not isinstance(point.objective, Objective):
        gradient: Floats = point.gradient
        return gradient
    o = point.objective
    return o.elastic_net.smallest_subgradient(point.w, point.risk_gradient, o.alpha)


def _checked_infimum(infimum: Any) -> float:
    if isinstance(infimum, float | np.floating) and infimum == -np.inf:
        return -np.inf
    check_number("infimum", infimum, low=-np.inf)
    return float(infimum)

"""User functions with values and subgradients: checks, counts, convexity tests."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from .._core.arrays import Floats
from .._core.losses import OwnLoss, PiecewiseQuadratic
from .._core.objectives.generic import Function, FunctionObjective, OnLine
from .._core.objectives.objective import Objective
from .._core.rounding import CLOSE

# A difference quotient moves by a millionth of the parameters: rounding errors of f are
# then far below its change.
DIFFERENCE = 1e-6


class OwnFunction:
    """The user's functions, with checked results and counted calls.

    Parameters
    ----------
    function : callable
        Maps w to f(w) and a subgradient.
    steepest : callable or None
        Maps w and p to the subgradient g with the largest <g, p>.
    restrict : callable or None
        Maps w and p to f(w + eta * p) as a function of eta.
    hessp : callable or None
        Maps w and v to the product of the Hessian at w with v.
    args : tuple
        Further arguments of all of these functions.
    shape : tuple
        Shape of w.

    Attributes
    ----------
    n_calls : int
        Number of evaluations of ``function``.
    """

    def __init__(
        self,
        function: Any,
        steepest: Any,
        restrict: Any,
        hessp: Any,
        args: Any,
        shape: tuple[int, ...],
    ) -> None:
        for name, given in (
            ("value_and_subgradient", function),
            ("steepest", steepest),
            ("restrict", restrict),
            ("hessp", hessp),
        ):
            if not callable(given) and (given is not None or given is function):
                raise TypeError(
                    f"{name} must be callable, got {given!r} of type "
                    f"{type(given).__name__}."
                )
        if not isinstance(args, tuple):
            raise TypeError(
                f"args must be a tuple, got {args!r} of type {type(args).__name__}."
            )
        self._function, self._steepest = function, steepest
        self._restrict, self._hessp = restrict, hessp
        self._args, self._shape = args, shape
        self.n_calls = 0

    @property
    def knows_steepest(self) -> bool:
        """Whether the user gave an oracle of steepest subgradients."""
        return self._steepest is not None

    def evaluate(self, w: Floats) -> tuple[float, Floats]:
        """Return f(w), which may be infinite, and a subgradient."""
        self.n_calls += 1
        name = "value_and_subgradient"
        returned = self._function(w.copy(), *self._args)
        if not isinstance(returned, tuple | list) or len(returned) != 2:
            raise TypeError(
                f"{name} must return a pair of a value and a subgradient, got "
                f"{type(returned).__name__}."
            )
        value = np.asarray(returned[0])
        if value.size != 1 or value.dtype.kind not in "fiu":
            raise TypeError(
                f"{name} must return a real number as the value, got "
                f"{type(returned[0]).__name__}"
                + (f" of shape {value.shape}." if value.shape else ".")
            )
        f = float(value.reshape(()))
        if np.isnan(f) or f == -np.inf:
            raise ValueError(f"{name} returned the value {f} at w = {shown(w)}.")
        return f, self._vector(f"{name} must return as the subgradient", returned[1], f)

    def check_sign(self, w: Floats) -> None:
        """Raise ValueError if f decreases along a subgradient g.

        The difference quotient of a convex f along g is at least ||g||².
        """
        f, g = self.evaluate(w)
        square = float(g @ g)
        if not square > 0.0:
            return
        t = DIFFERENCE * max(1.0, float(np.linalg.norm(w))) / np.sqrt(square)
        change = self.evaluate(w + t * g)[0] - f
        if change < -0.5 * t * square and change < -CLOSE * abs(f):
            raise ValueError(
                f"The subgradient g at w = {shown(w)} has the wrong sign: the "
                "difference quotient of a convex function along g is at least ||g||² "
                f"= {square:.6g}, but it is {change / t:.6g}."
            )

    def steepest(self, w: Floats, p: Floats) -> Floats:
        """Return the steepest subgradient of f along p."""
        returned = self._steepest(w.copy(), p.copy(), *self._args)
        return self._vector("steepest must return", returned, 0.0)

    def hessian_product(self, w: Floats, v: Floats) -> Floats:
        """Return the Hessian at w times v."""
        returned = self._hessp(w.copy(), v.copy(), *self._args)
        return self._vector("hessp must return", returned, 0.0)

    @property
    def knows_lines(self) -> bool:
        """Whether the user gave restrictions to lines."""
        return self._restrict is not None

    def restrict(self, w: Floats, p: Floats) -> OnLine:
        """Return f on the line w + eta * p, as a function of eta."""
        returned = self._restrict(w.copy(), p.copy(), *self._args)
        if not (isinstance(returned, PiecewiseQuadratic) or callable(returned)):
            raise TypeError(
                "restrict must return a PiecewiseQuadratic, or a function from a step "
                f"to slope and curvature; got {type(returned).__name__}."
            )
        return returned

    def _vector(self, what: str, given: Any, value: float) -> Floats:
        """Return a subgradient as float64, finite unless the value is infinite."""
        g = np.asarray(given)
        if g.shape != self._shape:
            raise ValueError(
                f"{what} an array of shape {self._shape}, as w0 has; got shape "
                f"{g.shape}."
            )
        if g.dtype != np.float64 and g.dtype.kind not in "iu":
            raise TypeError(f"{what} an array of float64, got {g.dtype}.")
        if np.isfinite(value) and not np.isfinite(g).all():
            n = np.count_nonzero(~np.isfinite(g))
            raise ValueError(
                f"{what} finite numbers; {n} of {g.size} are NaN or infinite."
            )
        return np.array(g, dtype=np.float64)


def with_jac(function: Any, jac: Any) -> Any:
    """Return the function of value and subgradient given by SciPy's ``jac``."""
    if jac is True or not callable(function):
        return function
    if not callable(jac):
        raise TypeError(
            "jac must be True, for a function that returns value and subgradient, or a "
            f"function that returns the subgradient, got {jac!r}. Differences of "
            "values are no subgradients."
        )
    return lambda w, *args: (function(w.copy(), *args), jac(w, *args))


def shielded(
    called: OwnFunction, infimum: float, w: Floats
) -> Callable[[Floats], tuple[float, Floats]]:
    """Return the function with an error if its values contradict convexity."""
    shield = OwnLoss(Function(called.evaluate, infimum), "value_and_subgradient")
    targets, weights = np.zeros_like(w), np.ones_like(w)
    return lambda w: shield.evaluate(w, targets, weights)


def with_squares(
    called: OwnFunction, objective: Objective | None, infimum: float
) -> FunctionObjective:
    """Return F = f + alpha / 2 ||w||², or f if ``objective`` is None."""
    alpha = 0.0
    at: Callable[[Floats], tuple[float, Floats]]
    if objective is None:
        at = Function(called.evaluate, infimum).at
    else:
        alpha, at = objective.alpha, objective.risk.evaluate

    def value(w: Floats) -> float:
        return at(w)[0] + 0.5 * alpha * float(w @ w)

    def subgradient(w: Floats) -> Floats:
        return at(w)[1] + alpha * w

    def steepest(w: Floats, p: Floats) -> Floats:
        return called.steepest(w, p) + alpha * w

    def restrict(w: Floats, p: Floats) -> OnLine:
        squares = PiecewiseQuadratic.smooth(alpha * float(w @ p), alpha * float(p @ p))
        f = called.restrict(w, p)
        return f + squares if isinstance(f, PiecewiseQuadratic) else squares.plus(f)

    return FunctionObjective(
        value,
        subgradient,
        steepest if called.knows_steepest else None,
        objective,
        restrict if called.knows_lines else None,
    )


def shown(w: Floats) -> str:
    """Return parameters as text for a message, shortened if there are many."""
    return np.array2string(w, precision=6, threshold=6, edgeitems=3)


def reporter(callback: Callable[..., Any] | None) -> Callable[[OptimizeResult], bool]:
    """Return a function that passes results to a callback in SciPy's way.

    It returns whether the callback asks to stop. A function whose only parameter is
    called ``intermediate_result`` gets the whole result; any other function gets the
    array ``x`` of ``current`` if the result has it, or else of the result itself.
    """
    if callback is None:
        return lambda result: False
    try:
        by_name = set(signature(callback).parameters) == {"intermediate_result"}
    except ValueError:
        # Some compiled functions have no signature.
        by_name = False

    def report(result: OptimizeResult) -> bool:
        try:
            if by_name:
                return bool(callback(intermediate_result=result))
            return callback(result.get("current", result).x) is True
        except StopIteration:
            return True

    return report


def checked_start(w0: Any, name: str = "w0") -> Floats:
    """Return a starting point as an array, or raise unless it is a finite vector."""
    w = np.asarray(w0)
    if w.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be real numbers, got {w.dtype}.")
    w = w.astype(np.float64)
    if w.ndim != 1 or not w.size:
        raise ValueError(f"{name} must have shape (d,) with d >= 1, got {w.shape}.")
    if not np.isfinite(w).all():
        raise ValueError(f"{name} must be finite, got {shown(w)}.")
    return w

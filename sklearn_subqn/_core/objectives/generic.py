"""Objectives given by functions, for methods that minimize any convex function."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..lazy import cached_property
from ..losses._base import Derivatives, Floats, PiecewiseQuadratic
from ..losses._curvature import Curvature, CurvatureByProducts
from ..losses._loss import Loss
from ..regularizers import Regularizer
from ..rows.design import Identity
from .objective import Cut, Dual, Objective
from .risk import Risk

#: A function of a step size: by its kinks, or by slope and curvature at a step.
OnLine = PiecewiseQuadratic | Derivatives


class Function(Loss):
    """A convex function f(w) of parameters as a loss whose scores are the parameters.

    Parameters
    ----------
    evaluate : callable
        ``evaluate(w)`` returns f(w) and one g in the subdifferential at w.
    infimum : float
        A lower bound of f, minus infinity where none is known.
    """

    def __init__(
        self, evaluate: Callable[[Floats], tuple[float, Floats]], infimum: float
    ) -> None:
        self._evaluate = evaluate
        self.infimum = infimum
        # The last two points are stored, since line searches evaluate the function
        # again at both ends of a line.
        self._last: deque[tuple[Floats, float, Floats]] = deque(maxlen=2)

    def at(self, w: Floats) -> tuple[float, Floats]:
        """Return value and subgradient; the last two points are remembered."""
        for known, value, gradient in self._last:
            if np.array_equal(known, w):
                return value, gradient
        w = w.copy()
        value, gradient = self._evaluate(w)
        self._last.append((w, value, gradient))
        return value, gradient

    def value(self, scores: Floats, targets: Any, weights: Floats) -> float:
        return self.at(scores)[0]

    def subgradient(self, scores: Floats, targets: Any, weights: Floats) -> Floats:
        return self.at(scores)[1]


class TwiceDifferentiable(Function):
    """A convex function with the products of its Hessian.

    Parameters
    ----------
    evaluate, infimum
        See ``Function``.
    product : callable
        ``product(w, v)`` returns the Hessian at w times v.
    """

    def __init__(
        self,
        evaluate: Callable[[Floats], tuple[float, Floats]],
        infimum: float,
        product: Callable[[Floats, Floats], Floats],
    ) -> None:
        super().__init__(evaluate, infimum)
        self._product = product

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> Derivatives:
        def at(step: float) -> tuple[float, float]:
            w = scores + step * dscores
            bend = float(dscores @ self._product(w, dscores))
            return float(self.at(w)[1] @ dscores), bend

        return at

    def curvature(self, scores: Floats, targets: Any, weights: Floats) -> Curvature:
        return CurvatureByProducts(partial(self._product, scores), len(scores))


class _Unpenalized(Objective):
    """A function without a penalty, for which cuts give no lower bound."""

    def dual_value(self, cut: Cut) -> float:
        return float(self.risk.oracle.infimum)


def penalized(function: Function, regularizer: Regularizer, alpha: float) -> Objective:
    """Return f(w) + alpha * Omega(w) for a convex f, with bounds from cuts of f.

    With ``alpha = 0`` the only known bound is the infimum of f.
    """
    d = regularizer.n_penalized
    risk = Risk(Identity(d), function, np.zeros(d), np.full(d, 1.0 / d))
    kind = Objective if alpha else _Unpenalized
    return kind(risk, regularizer, alpha)


class FunctionObjective:
    """A convex function given by callables, with the methods of ``Objective``.

    Parameters
    ----------
    value : callable
        ``value(w)`` returns J(w).
    subgradient : callable
        ``subgradient(w)`` returns one g in the subdifferential at w.
    oracle : callable, optional
        ``oracle(w, p)`` returns argsup <g, p> over the subdifferential at w. Default
        for differentiable functions: the gradient.
    risk : Objective, optional
        The same J as a convex risk plus a penalty, for lower bounds.
    restrict : callable, optional
        ``restrict(w, p)`` returns J(w + eta * p) as a function of eta.
    """

    n_free = 0

    def __init__(
        self,
        value: Callable[[Floats], float],
        subgradient: Callable[[Floats], Floats],
        oracle: Callable[[Floats, Floats], Floats] | None = None,
        risk: Objective | None = None,
        restrict: Callable[[Floats, Floats], OnLine] | None = None,
    ) -> None:
        self.restrict = restrict
        self.value = value
        self.subgradient = subgradient
        self.risk = risk
        self.oracle = oracle or (lambda w, p: subgradient(w))

    def at(self, w: Floats) -> FunctionPoint:
        """Return the point w."""
        return FunctionPoint(self, w)


class FunctionPoint:
    """A point w of a ``FunctionObjective``; its cuts yield bounds in the driver."""

    dual = None
    lower_bound = float("-inf")

    def __init__(
        self, objective: FunctionObjective, w: Floats, toward: Floats | None = None
    ) -> None:
        self.objective = objective
        self.w = w
        self._toward = toward

    @cached_property
    def value(self) -> float:
        return float(self.objective.value(self.w))

    @cached_property
    def gradient(self) -> Floats:
        if self._toward is None:
            return self.objective.subgradient(self.w)
        return self.steepest(self._toward)

    def steepest(self, p: Floats) -> Floats:
        """Return argsup <g, p> over the subdifferential."""
        return self.objective.oracle(self.w, p)

    @cached_property
    def cut(self) -> Cut | None:
        return self.cut_of(self.objective.subgradient(self.w))

    def cut_of(self, gradient: Floats) -> Cut | None:
        """Return the cut of the risk by a subgradient of J, None if J has no risk."""
        risk, w = self.objective.risk, self.w
        if risk is None:
            return None
        u = gradient - risk.alpha * risk.regularizer.gradient(w)
        return risk.cut(Dual(u, normal=u, offset=-risk.risk.conjugate_at(u, w)))

    def refreshed(self, *, at_kinks: bool = True) -> FunctionPoint:
        """Return the point itself, since it has no scores computed by updates."""
        return self

    def along(self, p: Floats) -> FunctionLine:
        """Return the half-line w + eta * p."""
        return FunctionLine(self, p)


class FunctionLine:
    """The half-line point + eta * p, eta >= 0."""

    def __init__(self, point: FunctionPoint, p: Floats) -> None:
        self.start = point
        self.p = p

    @cached_property
    def restriction(self) -> OnLine | None:
        """J(w + eta * p) as a function of eta, or None."""
        restrict = self.start.objective.restrict
        return None if restrict is None else restrict(self.start.w, self.p)

    def value(self, step: float) -> float:
        """Return J(w + step * p)."""
        return self.point(step).value

    def slope(self, step: float) -> float:
        """Return the directional derivative at ``step``: the sup of <g, p>."""
        return float(self.point(step).gradient @ self.p)

    def point(self, step: float) -> FunctionPoint:
        """Return the point at ``step``; its gradient is the steepest one along p."""
        w = self.start.w + step * self.p
        return FunctionPoint(self.start.objective, w, toward=self.p)

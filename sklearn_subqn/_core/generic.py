"""Objectives given by functions, for methods and examples beyond losses of scores."""

from __future__ import annotations

from collections.abc import Callable

from .lazy import cached_property
from .losses._base import Floats


class FunctionObjective:
    """A convex function given by callables, behind the door of ``Objective``.

    Parameters
    ----------
    value : callable
        ``value(w)`` returns J(w).
    subgradient : callable
        ``subgradient(w)`` returns one g in the subdifferential at w.
    oracle : callable, optional
        ``oracle(w, p)`` returns argsup <g, p> over the subdifferential at w. Default
        for differentiable functions: the gradient.
    """

    n_free = 0

    def __init__(
        self,
        value: Callable[[Floats], float],
        subgradient: Callable[[Floats], Floats],
        oracle: Callable[[Floats, Floats], Floats] | None = None,
    ) -> None:
        self.value = value
        self.subgradient = subgradient
        self.oracle = oracle or (lambda w, p: subgradient(w))

    def at(self, w: Floats) -> FunctionPoint:
        """Return the point w."""
        return FunctionPoint(self, w)


class FunctionPoint:
    """A point w of a ``FunctionObjective``; no lower bound is known there."""

    cut = None
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

    def cut_of(self, gradient: Floats) -> None:
        """Return None: J is not known to be a regularized risk."""

    def refreshed(self, *, at_kinks: bool = True) -> FunctionPoint:
        """Return itself: nothing here is an update."""
        return self

    def along(self, p: Floats) -> FunctionLine:
        """Return the half-line w + eta * p."""
        return FunctionLine(self, p)


class FunctionLine:
    """The half-line point + eta * p, eta >= 0."""

    def __init__(self, point: FunctionPoint, p: Floats) -> None:
        self.start = point
        self.p = p

    def value(self, step: float) -> float:
        """Return J(w + step * p)."""
        return self.point(step).value

    def slope(self, step: float) -> float:
        """Return the directional derivative at ``step``, sup of the subdifferential."""
        return float(self.point(step).gradient @ self.p)

    def point(self, step: float) -> FunctionPoint:
        """Return the point at ``step``; its gradient is the steepest along p."""
        w = self.start.w + step * self.p
        return FunctionPoint(self.start.objective, w, toward=self.p)

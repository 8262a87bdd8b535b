"""Coefficients and intercepts, and the parameters of solvers that they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .maps import Map, Pair, Stored


class Coordinates:
    """The way from what solvers see of a model to what users read, and back.

    Parameters
    ----------
    inner : sequence of Map
        From the solver to numbers that are stored except for rounding.
    stored : Stored
        What is stored of them.
    outer : sequence of Map
        From there to the user.
    projects : bool
        Whether solutions are in the range of the inverses of the inner maps. Else what
        rounding takes away from the user's numbers is taken from the solver's.

    Attributes
    ----------
    is_plain : bool
        Whether each number is rounded by itself.
    """

    def __init__(
        self,
        inner: Sequence[Map],
        stored: Stored,
        outer: Sequence[Map],
        *,
        projects: bool = True,
    ) -> None:
        self._inner, self._stored, self._projects = inner, stored, projects
        self._maps = *inner, stored, *outer
        self.is_plain = stored.is_plain and not inner

    def inward(self, coef: Any, intercept: Any) -> Pair:
        """Return what the solver sees of what the user reads."""
        return _inward(self._maps, coef, intercept)

    def outward(self, coef: Any, intercept: Any) -> Pair:
        """Return what the user reads of what the solver sees."""
        for each in self._maps:
            coef, intercept = each.outward(coef, intercept)
        return coef, intercept

    def rounded(self, coef: Any, intercept: Any) -> Pair:
        """Return what the solver sees of what is stored of its numbers."""
        read = coef, intercept
        for each in self._inner:
            read = each.outward(*read)
        stored = self._stored.inward(*self._stored.outward(*read))
        if self._projects:
            return _inward(self._inner, *stored)
        lost = (a - b for a, b in zip(stored, read, strict=True))
        less, lower = _inward(self._inner, *lost)
        return coef + less, intercept + lower


def _inward(maps: Sequence[Map], coef: Any, intercept: Any) -> Pair:
    for each in reversed(maps):
        coef, intercept = each.inward(coef, intercept)
    return coef, intercept

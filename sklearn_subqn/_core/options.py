"""Options of solvers, declared where the solver is: name, default, range, meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class Option:
    """An option that a solver takes besides the parameters of estimators.

    Attributes
    ----------
    meaning : str
        What it is, with its symbol and source.
    default : object
        Taken where neither the option nor a parameter gives a value. None, where that
        is accepted, has a meaning of its own.
    low, high : float
        The range of a number.
    low_included, high_included : bool
        Whether these are in the range.
    integer : bool
        Whether it is an integer.
    choices : tuple of str
        What it may be, if it is no number.
    flag : bool
        Whether it is True or False.
    optional : bool
        Whether it may be None.
    below : str
        Name of an option of the same solver that has to be larger.
    needs : tuple of (str, object), optional
        Name and value of an option without which this one has no effect.
    parameter : str
        Name of the estimators' parameter that it takes the place of, where there is
        one.
    setting : str
        Name under which the solver reads it, if that is another one.
    """

    meaning: str
    default: Any
    low: float = float("-inf")
    high: float = float("inf")
    low_included: bool = True
    high_included: bool = True
    integer: bool = False
    choices: tuple[str, ...] = ()
    flag: bool = False
    optional: bool = False
    below: str = ""
    needs: tuple[str, Any] | None = None
    parameter: str = ""
    setting: str = ""

    @property
    def range(self) -> str:
        """What it may be, in words."""
        if self.choices:
            accepted = " or ".join(map(repr, self.choices))
        elif self.flag:
            accepted = "True or False"
        else:
            low = f"{'>=' if self.low_included else '>'} {self.low:g}"
            high = f" and {'<=' if self.high_included else '<'} {self.high:g}"
            accepted = low + (high if self.high < float("inf") else "")
            accepted = f"an integer {accepted}" if self.integer else accepted
            accepted += f" and < {self.below}" if self.below else ""
        return f"{accepted}, or None" if self.optional else accepted


def option(meaning: str, default: Any, **limits: Any) -> Any:
    """Return a field of a dataclass that is an option, with its default."""
    declared = Option(meaning, default, **limits)
    return field(default=default, metadata={"option": declared})


def options_of(method: Any) -> Mapping[str, Option]:
    """Return the options of a dataclass by their names."""
    found = {each.name: each.metadata.get("option") for each in fields(method)}
    return {name: declared for name, declared in found.items() if declared is not None}

"""Options of solvers, declared with the solver: name, default, range, meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any


@dataclass(frozen=True)
class Option:
    """An option of a solver that is not a parameter of the estimators.

    Attributes
    ----------
    meaning : str
        Meaning of the option, with its symbol and source.
    default : object
        Value that is used if neither the option nor a parameter is set. None, where it
        is accepted, has a special meaning.
    low, high : float
        The range of a number.
    low_included, high_included : bool
        Whether the ends of the range are included.
    integer : bool
        Whether the value is an integer.
    choices : tuple of str
        Accepted strings, if the option is not a number.
    flag : bool
        Whether the value is True or False.
    optional : bool
        Whether the value may be None.
    below : str
        Name of an option of the same solver that must have a larger value.
    needs : tuple of (str, object), optional
        Name and value of another option that this option requires.
    parameter : str
        Name of the parameter of estimators that the option replaces, if there is one.
    setting : str
        Name of the solver's setting, if different.
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
        """The accepted values, in words."""
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
    """Return a field of a dataclass that declares an option with its default."""
    declared = Option(meaning, default, **limits)
    return field(default=default, metadata={"option": declared})


def options_of(method: Any) -> Mapping[str, Option]:
    """Return the options of a dataclass by name."""
    found = {each.name: each.metadata.get("option") for each in fields(method)}
    return {name: declared for name, declared in found.items() if declared is not None}

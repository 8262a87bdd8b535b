"""Attributes that are computed when first asked for."""

from __future__ import annotations

import functools
from typing import Any, TypeVar, overload

_T = TypeVar("_T")


class cached_property(functools.cached_property[_T]):
    """``functools.cached_property`` without a lock, which Python 3.11 still has.

    There each property has one lock for all instances in the process: fits in several
    threads would wait for each other, and the child of a fork for threads that it does
    not have. Threads that ask at the same time compute the same value twice at worst.
    """

    @overload
    def __get__(
        self, instance: None, owner: type[Any] | None = None
    ) -> cached_property[_T]: ...

    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> _T: ...

    def __get__(
        self, instance: object | None, owner: type[Any] | None = None
    ) -> cached_property[_T] | _T:
        """Return the value, from now on an attribute of the instance."""
        if instance is None:
            return self
        value = self.func(instance)
        vars(instance)[self.func.__name__] = value
        return value

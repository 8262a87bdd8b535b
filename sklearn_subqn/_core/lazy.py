"""Attributes that are computed on first use."""

from __future__ import annotations

import functools
from typing import Any, TypeVar, overload

_T = TypeVar("_T")


class cached_property(functools.cached_property[_T]):
    """``functools.cached_property`` without the lock that Python 3.11 still has.

    In 3.11 each property has one lock for all instances of the process: fits in several
    threads wait for each other, and a forked child may wait forever for a thread that
    does not exist in it. Without the lock, threads may at worst compute the same value
    twice.
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
        """Return the value, and store it as an attribute of the instance."""
        if instance is None:
            return self
        value = self.func(instance)
        vars(instance)[self.func.__name__] = value
        return value

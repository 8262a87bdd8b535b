"""The state of estimators for files: plain types, which load without private classes.

A skops file contains the name of each class of stored objects, and only trusted classes
are loaded. Records of this package (dataclasses and named tuples, such as histories or
states of streams) are therefore stored as dicts of their fields. Long lists of numbers
or of repeated words, and tables of names, are stored as arrays, which also need less
space.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from itertools import accumulate, chain, groupby, pairwise, repeat
from typing import Any, TypeVar

import numpy as np

from .._core.records import RECORDS
from .foreign_names import check_data

_Method = TypeVar("_Method", bound=Callable[..., Any])

# Key of the type of a replaced value; no dict of an estimator has this key.
_KIND = "sklearn_subqn kind"


def plain(value: Any) -> Any:
    """Return a value with records of this package as dicts, and lists as arrays."""
    kind = type(value)
    if kind is dict:
        if value and _is_enumeration(value):
            return {_KIND: "names", **_packed(value)}
        return {key: plain(each) for key, each in value.items()}
    if kind is list:
        if value and all(isinstance(each, float) for each in value):
            return {_KIND: "floats", "values": np.array(value)}
        if value and all(type(each) is str for each in value):
            runs = [(word, len(list(same))) for word, same in groupby(value)]
            words, counts = zip(*runs, strict=True)
            return {_KIND: "words", "words": list(words), "counts": np.array(counts)}
        return [plain(each) for each in value]
    if isinstance(value, np.dtype):
        return {_KIND: "dtype", "name": value.str}
    if kind in RECORDS.values():
        named = getattr(value, "_asdict", value.__getstate__)
        return {_KIND: kind.__name__, "fields": plain(named())}
    if kind is tuple:
        return tuple(map(plain, value))
    return value


def restored(value: Any) -> Any:
    """Return the value from which ``plain`` made ``value``."""
    kind = type(value)
    if kind is list:
        return [restored(each) for each in value]
    if kind is tuple:
        return tuple(map(restored, value))
    if kind is not dict:
        return value
    name = value.get(_KIND)
    if name is None:
        return {key: restored(each) for key, each in value.items()}
    if name == "names":
        return _unpacked(value["text"], value["ends"])
    if name == "floats":
        return value["values"].tolist()
    if name == "words":
        runs = zip(value["words"], value["counts"].tolist(), strict=True)
        return list(chain.from_iterable(repeat(*run) for run in runs))
    if name == "dtype":
        return np.dtype(value["name"])
    return _record(name, restored(value["fields"]))


def _record(name: str, fields: Any) -> Any:
    """Return the record with the given name and fields.

    Raises
    ------
    ValueError
        If there is no record of that name, as in files of other versions.
    """
    # Earlier versions stored the module of the class before its name.
    kind = RECORDS.get(name.rpartition(".")[2])
    if kind is None:
        raise ValueError(
            f"The stored estimator has a record {name!r}, which this version of "
            "sklearn_subqn does not know. Load it with the version that stored it."
        )
    if issubclass(kind, tuple):
        return kind(**fields)
    # The constructor and its checks are not called, as in Python's ``copy``.
    record = kind.__new__(kind)
    if hasattr(record, "__setstate__"):
        record.__setstate__(fields)
    else:
        vars(record).update(fields)
    return record


def _is_enumeration(value: dict[Any, Any]) -> bool:
    """Whether keys are words, numbered from zero in order."""
    return all(
        type(name) is str and type(at) is int and at == i
        for i, (name, at) in enumerate(value.items())
    )


def _packed(names: dict[str, int]) -> dict[str, Any]:
    """Return the bytes of all names, and the position where each name ends."""
    letters = [name.encode("utf-8", "surrogatepass") for name in names]
    text = np.frombuffer(b"".join(letters), dtype=np.uint8)
    return {"text": text, "ends": np.array([*accumulate(map(len, letters))])}


def _unpacked(text: Any, ends: Any) -> dict[str, int]:
    letters = text.tobytes()
    places = pairwise([0, *ends.tolist()])
    return {
        letters[first:end].decode("utf-8", "surrogatepass"): i
        for i, (first, end) in enumerate(places)
    }


def unchanged_on_failure(method: _Method) -> _Method:
    """Return a method that restores the estimator's attributes if it raises.

    If data are given under another name, the error says so.
    """
    known = frozenset(inspect.signature(method).parameters)

    @functools.wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not known.issuperset(kwargs):
            check_data(f"{type(self).__name__}.{method.__name__}", kwargs, known)
        before = dict(vars(self))
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return guarded  # type: ignore[return-value]

"""Records that fitted estimators are stored with, known by names that stay the same.

A stored estimator names its records by their classes, not by the modules that hold
them: files may be moved, and what was stored before is still read.
"""

from __future__ import annotations

from typing import TypeVar

_Record = TypeVar("_Record", bound=type)

#: The classes of records by their names.
RECORDS: dict[str, type] = {}


def stored(kind: _Record) -> _Record:
    """Make a dataclass or named tuple known as one that estimators are stored with.

    Raises
    ------
    ValueError
        If another record has that name.
    """
    name = kind.__name__
    if name in RECORDS:
        raise ValueError(f"There are two records of the name {name!r}.")
    RECORDS[name] = kind
    return kind

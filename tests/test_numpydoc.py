"""Docstrings of public names have the sections and parameters that readers expect."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

validate = pytest.importorskip("numpydoc.validate").validate

API = Path(__file__).parents[1] / "docs" / "api" / "index.md"
NAMES = [
    f"sklearn_subqn.{name}"
    for name in re.findall(r"(?m)^   (\w.*)$", API.read_text(encoding="utf-8"))
]
#: What scikit-learn leaves out as well, everywhere and of methods: names of returned
#: values, blank lines around sections; longer text, neighbours and examples.
EVERYWHERE = {"RT02", "GL01", "GL02"}
OF_METHODS = {"ES01", "SA01", "EX01"}
#: Of the methods of losses those are described that a loss of one's own may write.
#: Only solvers call them, and the others, of which they know what these return.
OF_METHODS_OF_LOSSES = OF_METHODS | {"PR01", "RT01", "GL08"}
_OF_LOSS = [
    "value",
    "subgradient",
    "evaluate",
    "conjugate",
    "kink_rows",
    "argsup",
    "restrict",
    "derivatives",
    "curvature",
    "dual_variables",
    "neutral_variables",
    "envelope",
]
DESCRIBED = {
    "sklearn_subqn.losses.Loss": _OF_LOSS,
    "sklearn_subqn.losses.FirstOrderLoss": _OF_LOSS,
    "sklearn_subqn.losses.RankingLoss": ["gains", "discounts", "scale"],
}


def found(name):
    """Return the object of a public name."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def methods(kind):
    """Return the names of the public methods and properties of a class."""
    return [
        name
        for name in dir(kind)
        if not name.startswith("_")
        and not hasattr(BaseException, name)
        and (
            isinstance(inspect.getattr_static(kind, name), property)
            or callable(getattr(kind, name))
        )
    ]


def faults(path, ignored):
    return [
        f"{path}: {code} {message}"
        for code, message in validate(path)["errors"]
        if code not in ignored
    ]


@pytest.mark.parametrize("name", NAMES)
def test_docstrings_are_complete(name):
    public = found(name)
    report = faults(name, EVERYWHERE)
    is_loss = name.startswith("sklearn_subqn.losses.")
    for method in methods(public) if inspect.isclass(public) else ():
        brief = is_loss and method not in DESCRIBED.get(name, ())
        ignored = OF_METHODS_OF_LOSSES if brief else OF_METHODS
        report += faults(f"{name}.{method}", EVERYWHERE | ignored)
    assert not report, "\n".join(report)

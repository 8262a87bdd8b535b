"""Links from the HTML of estimators in notebooks to their pages on the site."""

from __future__ import annotations

import sys
from typing import Any

from .._checks.foreign_names import SITE

__all__ = ["PAGES", "name_of_page"]

#: Address of the documentation page of a class, by its name.
PAGES = f"{SITE}api/generated/{{name}}.html"

# Modules with public classes. If several modules have a class, its page is under the
# first one.
_PUBLIC = ("", ".svm", ".linear_model", ".crf", ".ranking")


def name_of_page(estimator: Any) -> dict[str, str]:
    """Return the public name of an estimator's class, which is the name of its page."""
    kind = type(estimator)
    for module in (f"sklearn_subqn{name}" for name in _PUBLIC):
        if getattr(sys.modules.get(module), kind.__name__, None) is kind:
            return {"name": f"{module}.{kind.__name__}"}
    return {"name": f"{kind.__module__}.{kind.__name__}"}

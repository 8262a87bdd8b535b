"""Links from the HTML of estimators, as in notebooks, to their pages on the site."""

from __future__ import annotations

import sys

__all__ = ["SITE", "DocumentationLink"]

#: Where the documentation is.
SITE = "https://sklearn-subqn.github.io/sklearn-subqn/"

# Where public classes are found, those of the package itself first.
_PUBLIC = ("", ".svm", ".linear_model", ".crf", ".ranking")


class DocumentationLink:
    """Says to scikit-learn's HTML where the page of a class is."""

    _doc_link_module = "sklearn_subqn"
    _doc_link_template = f"{SITE}api/generated/{{name}}.html"

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        kind = type(self)
        for module in (f"sklearn_subqn{name}" for name in _PUBLIC):
            if getattr(sys.modules.get(module), kind.__name__, None) is kind:
                return {"name": f"{module}.{kind.__name__}"}
        return {"name": f"{kind.__module__}.{kind.__name__}"}

"""The estimators that users import."""

import inspect
from importlib import import_module

from sklearn.base import BaseEstimator

MODULES = ["", ".linear_model", ".svm", ".crf", ".ranking"]


def public_estimators():
    """Return all classes of estimators that users import, by their names."""
    found = {}
    for name in MODULES:
        module = import_module(f"sklearn_subqn{name}")
        for member in module.__all__:
            kind = getattr(module, member)
            if inspect.isclass(kind) and issubclass(kind, BaseEstimator):
                found[f"{name}.{member}".lstrip(".")] = kind
    return found

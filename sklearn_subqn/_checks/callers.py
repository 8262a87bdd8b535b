"""The call stack: the user's line for warnings, and searches of scikit-learn."""

from __future__ import annotations

import inspect

_FIT_OF_FOLD = ("_validation", "_fit_and_score")


def user_level() -> int:
    """Return the ``stacklevel`` of the first caller outside of the libraries."""
    level, frame = 0, inspect.currentframe()
    ours = (__package__, "sklearn", "joblib")
    while frame is not None and frame.f_globals.get("__name__", "").startswith(ours):
        level, frame = level + 1, frame.f_back
    return level


def in_search() -> bool:
    """Whether this fit is called by a search of scikit-learn.

    The result is false for the final refit with the best parameters, which may warn.
    """
    names = _of_model_selection()
    searching = any(module.startswith("_search") for module, _ in names)
    return searching and _FIT_OF_FOLD in names


def in_cross_validation() -> bool:
    """Whether this fit is called by scikit-learn's cross-validation, for a fold."""
    return _FIT_OF_FOLD in _of_model_selection()


def _of_model_selection() -> set[tuple[str, str]]:
    """Return the functions of scikit-learn's model selection on the call stack."""
    names = set()
    frame = inspect.currentframe()
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("sklearn.model_selection"):
            names.add((module.rsplit(".", 1)[-1], frame.f_code.co_name))
        frame = frame.f_back
    return names

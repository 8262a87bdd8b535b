"""Common parts of the displays."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted


def styled(
    defaults: dict[str, Any], given: dict[str, Any] | None, *, area: bool = False
) -> dict[str, Any]:
    """Return keyword arguments of a line or an area; ``given`` may use short names."""
    from matplotlib import cbook, collections, lines

    kind = collections.PolyCollection if area else lines.Line2D
    return defaults | cbook.normalize_kwargs(given or {}, kind)


def check_matplotlib(name: str) -> Any:
    """Return pyplot; raise ImportError, naming the caller, if it is not installed."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{name} needs matplotlib. Install it with `pip install matplotlib`."
        ) from error
    return plt


def axes(display: object, ax: Any) -> Any:
    """Return the given axes, or new ones; ``display`` is for the error message."""
    plt = check_matplotlib(type(display).__name__)
    return plt.subplots()[1] if ax is None else ax


def check_records(estimator: Any, attribute: str) -> None:
    """Raise unless the estimator is fitted and has the attribute to be plotted."""
    check_is_fitted(estimator)
    if not hasattr(estimator, attribute):
        raise ValueError(
            f"This {type(estimator).__name__} has no {attribute}, which is plotted. Of "
            "a pipeline, give the last step; of a search, the best estimator."
        )

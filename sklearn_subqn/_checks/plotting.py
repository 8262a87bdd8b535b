"""Common parts of the displays."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .parameters import check_option


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


def panels(
    display: Any, kind: Any, known: tuple[str, ...], ax: Any
) -> list[tuple[str, Any]]:
    """Return each kind of plot with its axes, given or new, and store the axes.

    The kind may be "all".
    """
    kinds = known if kind == "all" else (kind,)
    if kind != "all":
        check_option("kind", kind, ["all", *known])
    if ax is None:
        plt = check_matplotlib(type(display).__name__)
        n_rows, n_columns = max(1, len(kinds) // 2), min(2, len(kinds))
        size = {"figsize": (5.0 * n_columns, 3.8 * n_rows), "layout": "constrained"}
        _, ax = plt.subplots(n_rows, n_columns, **size)
    given = np.ravel(np.asarray(ax, dtype=object)).tolist()
    if len(given) != len(kinds):
        raise ValueError(
            f"kind={kind!r} needs {len(kinds)} axes in ax; got {len(given)}."
        )
    display.axes_, display.figure_ = given, given[0].figure
    return list(zip(kinds, given, strict=True))

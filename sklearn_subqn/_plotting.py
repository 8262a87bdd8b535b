"""What the displays share."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted


def check_records(estimator: Any, attribute: str) -> None:
    """Raise an error unless the estimator is fitted and has what is to be plotted."""
    check_is_fitted(estimator)
    if not hasattr(estimator, attribute):
        raise ValueError(
            f"This {type(estimator).__name__} has no {attribute}, which is plotted. Of "
            "a pipeline, give the last step; of a search, the best estimator."
        )


def axes(display: object, ax: Any) -> Any:
    """Return the axes given, or those of a new figure; ``display`` is for the error."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{type(display).__name__} needs matplotlib. Install it with "
            "`pip install matplotlib`."
        ) from error
    return plt.subplots()[1] if ax is None else ax

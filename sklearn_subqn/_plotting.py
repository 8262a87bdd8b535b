"""What the displays share."""

from __future__ import annotations

from typing import Any


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

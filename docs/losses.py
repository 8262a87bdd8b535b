"""Write the page of the losses from their tables: ``python docs/losses.py``."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from pathlib import Path

from sklearn_subqn import BMRMClassifier, BMRMRegressor
from sklearn_subqn._core.losses import BINARY_LOSSES, DualLoss, regression_losses
from sklearn_subqn._estimators.classification_losses import SMOOTH
from sklearn_subqn._streams.classes import BINARY
from sklearn_subqn.online import _OF_NUMBERS
from sklearn_subqn.svm import _LOSSES

PAGE = Path(__file__).resolve().parent / "losses.md"

HEAD = """\
# The losses of one score per sample

Which losses there are, and what follows for each from its definition. Smooth losses
have derivatives everywhere. Streams are `OnlineLBFGSClassifier` and
`OnlineLBFGSRegressor`, and an SVM is `SubLBFGSLinearSVC`. The page is written from the
tables in `_core/losses/_box.py` and the docstrings of `BMRMClassifier` and
`BMRMRegressor` by `python docs/losses.py`.
"""

#: For each kind of estimator, which of its losses have or are what.
MARKS: dict[type, dict[str, Container[str]]] = {
    BMRMClassifier: {
        "probabilities": BMRMClassifier._losses_of_probabilities,
        "offset": SMOOTH,
        "streams": BINARY,
        "SVM": _LOSSES,
    },
    BMRMRegressor: {"streams": _OF_NUMBERS},
}


def definitions(estimator: type) -> dict[str, str]:
    """Return what the docstring of an estimator says of each of its losses."""
    text = " ".join((estimator.__doc__ or "").split())
    found = re.findall(r'"(\w+)": (.*?)(?:; (?=- |")|\. )', text)
    return {name: said.replace("|", r"\|") for name, said in found}


def table(estimator: type, losses: Mapping[str, DualLoss]) -> Iterator[str]:
    """Return the lines of the table of an estimator's losses.

    Raises
    ------
    KeyError
        If its docstring does not define one of them.
    """
    said, marks = definitions(estimator), MARKS[estimator]
    yield f"## Losses of `{estimator.__name__}`\n"
    columns = ["loss", "definition", "smooth", *marks]
    yield f"| {' | '.join(columns)} |"
    yield "|---" * len(columns) + "|"
    for name, loss in losses.items():
        facts = [loss.smooth, *(name in marked for marked in marks.values())]
        cells = ["yes" if fact else "" for fact in facts]
        yield f"| {' | '.join([f'`{name}`', said[name], *cells])} |"


def page() -> str:
    """Return the page as Markdown."""
    classes = table(BMRMClassifier, BINARY_LOSSES)
    numbers = table(BMRMRegressor, regression_losses())
    return "\n".join([HEAD, *classes, "", *numbers, ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE.name} is written.")

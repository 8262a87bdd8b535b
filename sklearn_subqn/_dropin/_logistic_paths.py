"""Warm-started fits of a fold by C, and the choice of C."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import _check_method_params

from .._core.arrays import Array, Floats, Mask
from .._search.scoring import with_classes
from .._search.search_report import FoldReport
from .._solving.callbacks import FitTask


class LogisticPath(NamedTuple):
    """The results of a fold for one ``l1_ratio``, by C in the order of ``Cs_``."""

    coefs: Floats
    scores: Floats
    n_iters: npt.NDArray[np.int32]
    gaps: Floats
    proven: Mask


def fold_path(
    estimator: Any,
    Cs: Floats,
    scorer: Any,
    X: Any,
    y: Array,
    weights: Floats,
    classes: Array,
    scored: Floats | None,
    of_score: dict[str, Any],
    train: Any,
    test: Any,
    l1_ratio: float,
    report: FoldReport,
) -> LogisticPath:
    """Fit all ``Cs`` on one training part, and score the fits on the test part."""
    report.begin()
    if not weights[train].any():
        raise ValueError("A training part of cv has no samples of positive weight.")
    if scored is not None:
        # Samples of weight zero are ignored, and so are classes without other samples.
        test = np.arange(len(y))[test]
        test = test[scored[test] > 0.0]
    keywords = _check_method_params(X, of_score, indices=test)
    scorer = with_classes(scorer, classes)
    model = estimator._with(l1_ratio)
    free = bool(np.isinf(Cs).all())
    data = X[train], y[train], weights[train], classes
    problems = model._problems_of(*data, free=free)
    found: dict[int, Any] = {}
    # The fit for the smallest C is first; each fit starts at the previous solution.
    for place in np.argsort(Cs, kind="stable"):
        solutions = problems.solve(float(Cs[place]), FitTask.silent())
        for name, fitted in problems.attributes().items():
            setattr(model, name, fitted)
        (solution,) = solutions
        coefs = model.coef_
        if estimator.fit_intercept:
            coefs = np.column_stack([coefs, model.intercept_])
        value = float(scorer(model, X[test], y[test], **keywords))
        found[int(place)] = (
            coefs,
            value,
            solution.n_iter,
            solution.relative_gap,
            solution.proven,
        )
        report.fitted(float(Cs[place]), value, solution.relative_gap)
    report.end()
    coefs, scores, n_iters, gaps, proven = zip(
        *(found[place] for place in range(len(Cs))), strict=True
    )
    return LogisticPath(
        np.array(coefs),
        np.array(scores),
        np.array(n_iters, dtype=np.int32),
        np.array(gaps),
        np.array(proven),
    )


def note(l1_ratio: float) -> str:
    """Return the note that precedes the name of a fold for an ``l1_ratio``."""
    return f"l1_ratio {l1_ratio:g}, "


def best_place(scores: Floats, Cs: Floats) -> int:
    """Return the flat index of the largest score, with the smallest C among ties."""
    ranked = np.where(np.isfinite(scores), scores, -np.inf)
    smallest = np.where(ranked == ranked.max(), Cs, np.inf)
    if np.isinf(smallest).all():
        return int(np.argmax(ranked))
    return int(np.argmin(smallest))

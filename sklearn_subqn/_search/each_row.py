"""Leave-one-out: folds of one row each, and the scores of ridge regressions on them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from .._core.arrays import Floats, Indices
from .._core.solvers.leave_one_out import errors_left_out, leaves_rows_out
from .._problems import LinearProblems
from .._solving.process import with_one_blas_thread
from .search_report import SearchReport
from .warm_paths import FoldPath, plain_objectives

Split = tuple[Indices, Indices]

#: Scores of a single row, as functions of its residual.
SCORES_OF_A_ROW = {
    "neg_mean_squared_error": np.square,
    "neg_mean_absolute_error": np.abs,
    "neg_root_mean_squared_error": np.abs,
}


class EachRow(Sequence[Split]):
    """The folds that hold out one row each.

    Each fold is created on access, because the row indices of all folds together take
    memory for n² integers.

    Parameters
    ----------
    rows : ndarray of shape (n,)
        The rows of positive weight, at least two.
    """

    def __init__(self, rows: Indices) -> None:
        if len(rows) < 2:
            raise ValueError(
                "Leave-one-out needs at least two rows of positive weight, got "
                f"{len(rows)}."
            )
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, fold: Any) -> Any:
        fold = range(len(self))[fold]
        return np.delete(self.rows, fold), self.rows[fold : fold + 1]


@partial(with_one_blas_thread, all="ignore")
def ridge_paths(
    problems: LinearProblems,
    alphas: Floats,
    folds: EachRow,
    scoring: str,
    tol: float,
    report: SearchReport,
    note: str,
) -> list[FoldPath]:
    """Return all folds' paths by one factorization, or [] if a gap exceeds ``tol``.

    ``scoring`` is one of ``SCORES_OF_A_ROW``, averaged over several columns of targets.
    """
    objectives = plain_objectives(problems, alphas[0])
    if not objectives or not leaves_rows_out(objectives):
        return []
    errors, gaps = errors_left_out(objectives, alphas, folds.rows)
    if not (gaps <= tol).all():
        return []
    scores = -SCORES_OF_A_ROW[scoring](errors).mean(axis=0)
    proven, n_iters = np.ones(len(alphas), dtype=bool), [1] * len(alphas)
    for i in range(len(folds) if report.listens else 0):
        fold = report.fold(i, len(alphas), note)
        fold.begin()
        for fit in zip(alphas.tolist(), scores[i].tolist(), gaps.tolist(), strict=True):
            fold.fitted(*fit)
        fold.end()
    return [FoldPath(each, gaps, proven, n_iters, []) for each in scores]

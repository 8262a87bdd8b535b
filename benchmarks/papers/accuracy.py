"""Accuracy on test rows against the gap: Teo et al. 2010, figure 7 and Table 2."""

from __future__ import annotations

import time
from functools import partial
from typing import Any, NamedTuple

import common
import datasets
import numpy as np
from _harness import new_figure
from scipy import sparse

from sklearn_subqn import BMRMClassifier, SubLBFGSLinearSVCCV

from ._case import Case, Draw, Settings, Watch

ALPHAS = 2.0 ** np.arange(0, -21, -1)
SHARES = (0.1, 0.3, 0.5, 1.0)
# Rows of all parts, where they are not all taken.
DATA = {"a9a": None, "rcv1_ccat": None, "covtype": 40_000}
METHODS = {"BMRM": "bmrm", "LSBMRM": "ls-bmrm", "default solver": "auto"}
STYLES = {"BMRM": "C0.", "LSBMRM": "C3.", "default solver": "ko"}
LIMIT = 6.0


class Split(NamedTuple):
    """Rows for training (60 %), validation and test (20 % each), in random order."""

    train: Any
    validation: Any
    test: Any


def split(name: str, settings: Settings) -> Split:
    parts = [
        datasets.load_part(f"{name}{end}", settings.data_dir) for end in ("", ".t")
    ]
    stack = sparse.vstack if sparse.issparse(parts[0][0]) else np.concatenate
    X, y = stack([X for X, _ in parts]), np.concatenate([y for _, y in parts])
    rows = np.random.default_rng(0).permutation(len(y))
    rows = rows[: None if settings.full else DATA[name]]
    X = sparse.csr_array(X) if sparse.issparse(X) else X
    bounds = [round(0.6 * len(rows)), round(0.8 * len(rows))]
    return Split(*((X[part], y[part]) for part in np.split(rows, bounds)))


def best_alpha(train: Any, validation: Any) -> float:
    """Return the strength of largest accuracy on validation rows."""
    (X, y), (X_valid, y_valid) = train, validation
    stack = sparse.vstack if sparse.issparse(X) else np.concatenate
    rows = np.arange(len(y) + len(y_valid))
    search = SubLBFGSLinearSVCCV(
        ALPHAS,
        cv=[(rows[: len(y)], rows[len(y) :])],
        fit_intercept=False,
        tol=1e-2,
        refit=False,
    )
    search.fit(
        stack([X, X_valid], format="csr")
        if stack is sparse.vstack
        else stack([X, X_valid]),
        np.concatenate([y, y_valid]),
    )
    return float(search.alpha_)


def watch(solver: str, alpha: float, train: Any, test: Any, limit: float) -> Any:
    """Return accuracies, gaps and relative gaps of the iterations, to a gap of 1e-4."""
    end = time.process_time() + limit
    scores: list[float] = []
    gaps: list[tuple[float, float]] = []

    def note_score(fitted: Any) -> bool:
        scores.append(fitted.score(*test))
        return time.process_time() > end

    def note_gap(progress: Any) -> None:
        gaps.append((progress.dual_gap, progress.dual_gap / progress.objective))

    options = {"epsilon": 1e-4} if solver != "auto" else {}
    model = BMRMClassifier(
        alpha,
        loss="hinge",
        solver=solver,
        fit_intercept=False,
        solver_options=options,
        tol=1e-4 if solver == "auto" else 1e-6,
        max_iter=5000,
        callback=note_gap,
    )
    model.set_callbacks(Watch(note_score)).fit(*train)
    return np.column_stack([scores, gaps])


def effective(found: Any, column: int, change: float = 1e-3) -> float:
    """Return the largest gap such that later accuracies change by less than that."""
    scores = found[::-1, 0]
    spread = np.maximum.accumulate(scores) - np.minimum.accumulate(scores)
    settled = int(np.sum(spread < change))
    return float(found[::-1][settled - 1, column])


def table_2(settings: Settings) -> tuple[str, Draw]:
    lines, limit = [], settings.seconds(4.0)
    for name in ("a9a", "rcv1_ccat"):
        parts = split(name, settings)
        alphas = []
        cells: dict[str, list[list[str]]] = {"BMRM": [], "LSBMRM": []}
        wanted: dict[str, float] = {}
        for share in SHARES:
            X, y = parts.train
            some = X[: round(share * len(y))], y[: round(share * len(y))]
            alpha = best_alpha(some, parts.validation)
            alphas.append(f"{np.log2(alpha):.0f}")
            for method, columns in cells.items():
                found = watch(METHODS[method], alpha, some, parts.test, limit)
                reached = found[:, 0] >= wanted.setdefault(method, found[-1, 0])
                first = found[np.argmax(reached), 1]
                columns.append(
                    [
                        f"{100 * found[-1, 0]:.1f}",
                        f"{np.log10(found[-1, 1]):.2f}",
                        f"{np.log10(effective(found, 1)):.2f}",
                        f"{np.log10(first):.2f}" if reached.any() else "–",
                    ]
                )
        lines.append([name, "", "log2 α", *alphas])
        what = ("accuracy, %", "log10 ε, last", "log10 ε_eff", "log10 ε_10%")
        for method, columns in cells.items():
            by_share = zip(what, *columns, strict=True)
            lines += [[name, method, title, *row] for title, *row in by_share]
    header = ["data", "method", "", *(f"{share:.0%}" for share in SHARES)]
    text = f"By the share of the training rows, to ε = 1e-4 or for {limit:g} seconds:"
    return f"{text}\n\n{common.markdown_table(header, lines)}", None


def figure_7(settings: Settings) -> tuple[str, Draw]:
    lines, runs = [], {}
    for name in DATA:
        parts = split(name, settings)
        alpha = best_alpha(parts.train, parts.validation)
        for method, solver in METHODS.items():
            limit = settings.seconds(LIMIT)
            found = watch(solver, alpha, parts.train, parts.test, limit)
            runs[name, method] = found
            lines.append(
                [name, f"2^{np.log2(alpha):.0f}", method, str(len(found) - 1)]
                + [f"{100 * found[-1, 0]:.2f}", f"{found[-1, 2]:.0e}"]
                + [
                    f"{effective(found, column, change):.1e}"
                    for column in (1, 2)
                    for change in (5e-3, 1e-3)
                ]
            )
    header = ["data", "α", "method", "iterations", "accuracy, %", "last relative gap"]
    header += ["gap: .5 points", "gap: .1 points"]
    header += ["relative: .5 points", "relative: .1 points"]
    text = (
        "The largest proven gap, and relative gap, below which accuracies on test rows "
        "differ by less than .5 and .1 points:\n\n"
    )
    return text + common.markdown_table(header, lines), partial(draw_7, runs)


def draw_7(runs: Any) -> Any:
    figure, axes = new_figure(1, len(DATA), (3.4, 2.9))
    for ax, name in zip(axes[0], DATA, strict=True):
        for method, style in STYLES.items():
            found = runs[name, method]
            ax.plot(
                found[:, 2],
                100 * (found[:, 0] - found[-1, 0]),
                style,
                ms=4,
                label=method,
            )
        ax.set(xscale="log", xlabel="proven relative gap", ylim=(-2.0, 1.0))
        ax.set_title(name, fontsize=9)
        ax.invert_xaxis()
    axes[0, 0].set(ylabel="accuracy - final one, points")
    axes[0, 0].legend(fontsize=7)
    return figure


CASES = [
    Case(
        "teo-7",
        "Teo et al. 2010, figure 7: accuracy on test rows by gap",
        figure_7,
    ),
    Case(
        "teo-table-2",
        "Teo et al. 2010, Table 2: gaps below which accuracy does not change",
        table_2,
    ),
]

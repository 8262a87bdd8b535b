"""Linear-chain CRFs: Yu 2009, figures 6.1 to 6.3; Schraudolph et al. 2007, 3 and 4."""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import Any, NamedTuple

import common
import numpy as np
import sequences
from _harness import new_figure

from sklearn_subqn import LinearChainCRF

from ._case import Case, Draw, Settings, Watch


class Experiment(NamedTuple):
    """A task of section 6.2, on its first sentences if not at full size.

    ``f`` is the F-score by which the source counts passes. ``smd`` has mu, for sums
    over batches, and lambda.
    """

    task: str
    batch_size: int
    smd: tuple[float, float]
    f: float
    methods: tuple[str, ...] = ("L-BFGS", "oLBFGS", "SMD")
    sentences: int | None = None
    passes: int = 10
    batch_passes: int = 60


def options(experiment: Experiment, method: str) -> tuple[str, dict[str, Any]]:
    """Return the solver and its options, for means where the source has sums."""
    b = experiment.batch_size
    if method == "L-BFGS":
        return "lbfgs", {"memory": 5}
    common_ones = {"batch_size": b}
    if method == "oLBFGS":
        own = {"eta0": 1.0, "tau": 1e4, "memory": 5, "lambda_": 1.0 / b}
        return "olbfgs", common_ones | own
    if method == "SGD":
        return "sgd", common_ones | {"eta0": 0.1 * b}
    mu, decay = experiment.smd
    return "smd", common_ones | {"eta0": 0.1 * b, "mu": mu * b, "lambda_": decay}


def scoring(data: sequences.Rows, every: bool, f: dict[int, float]) -> Watch:
    """Return a callback that notes F on the test sentences after iterations."""
    numbers = count()

    def note(fitted: Any) -> None:
        n = next(numbers)
        if n and (every or n < 10 or n % 5 == 0):
            f[n] = data.f_score(fitted)

    return Watch(note)


def measure(experiment: Experiment, settings: Settings) -> tuple[dict[str, Any], int]:
    """Return passes, objectives and F of each method, and the number of sentences."""
    task = sequences.load(settings.data_dir, experiment.task)
    data = sequences.Rows(task, None if settings.full else experiment.sentences)
    n = len(data.lengths)
    curves = {}
    for method in experiment.methods:
        solver, given = options(experiment, method)
        online = method != "L-BFGS"
        limit = experiment.passes if online else experiment.batch_passes
        f: dict[int, float] = {}
        crf = LinearChainCRF(
            1.0 / n,
            solver=solver,
            solver_options=given,
            tol=1e-9,
            max_iter=int(settings.seconds(limit) / (2.0 if settings.full else 1.0)),
        )
        crf.set_callbacks(scoring(data, online, f)).fit(
            data.X, data.y, lengths=data.lengths
        )
        history = crf.history_[0]
        # Of L-BFGS a pass is one for a value and its gradient.
        passes = np.arange(len(history)) if online else 0.5 * np.array(history.passes)
        curves[method] = passes, n * np.array(history.objective), f
    return curves, n


def run(experiment: Experiment, settings: Settings) -> tuple[str, Draw]:
    curves, n = measure(experiment, settings)
    return render(experiment, curves, n), partial(draw, curves)


def render(experiment: Experiment, curves: Any, n: int) -> str:
    marks = (1, 3, 6)
    lines = []
    for method, (passes, values, f) in curves.items():
        at = [int(np.searchsorted(passes, mark)) for mark in marks]
        cells = [f"{values[i]:.0f}" if i < len(values) else "–" for i in at]
        scores = [(passes[i], score) for i, score in f.items()]
        first = next((p for p, score in scores if score >= experiment.f), None)
        cells += [f"{values[-1]:.0f} ({passes[-1]:.0f})", f"{scores[-1][1]:.2f}"]
        cells.append(f"{max(score for _, score in scores):.2f}")
        lines.append([method, *cells, "–" if first is None else f"{first:.0f}"])
    header = ["method", *(f"n J, {mark} passes" for mark in marks)]
    header += ["n J, last (passes)", "last F", "best F", f"passes to F {experiment.f}"]
    return f"{n} sentences:\n\n" + common.markdown_table(header, lines)


STYLES = {"oLBFGS": "k-", "L-BFGS": "C0--", "SMD": "C3:", "SGD": "C2-."}


def draw(curves: Any) -> Any:
    figure, axes = new_figure(1, 3, (3.4, 2.9))
    left, middle, right = axes[0]
    for method, (passes, values, f) in curves.items():
        style = STYLES[method]
        left.plot(passes[1:], values[1:], style, label=method)
        steps = [*f]
        middle.plot(passes[steps], list(f.values()), style)
        right.plot(values[steps], list(f.values()), f"{style}.")
    left.set(xscale="log", yscale="log", xlabel="passes", ylabel="n J")
    best = max(max(f.values()) for _, _, f in curves.values())
    middle.set(
        xscale="log", xlabel="passes", ylabel="F, %", ylim=(best - 8, best + 0.5)
    )
    right.set(xscale="log", xlabel="n J", ylabel="F, %", ylim=(best - 8, best + 0.5))
    left.legend(fontsize=7)
    return figure


ALL = ("L-BFGS", "oLBFGS", "SMD", "SGD")
EXPERIMENTS = {
    "yu-6.1": (
        "Yu 2009, figure 6.1: base noun phrases of CoNLL-2000",
        Experiment("base_np", 8, (0.02, 0.99), 93.3, ALL),
    ),
    "yu-6.2": (
        "Yu 2009, figure 6.2: BioNLP/NLPBA-2004",
        Experiment("jnlpba", 6, (0.02, 0.1), 69.8, sentences=5000),
    ),
    "yu-6.3": (
        "Yu 2009, figure 6.3: BioCreAtIvE, of which BC2GM is the successor",
        Experiment("bc2gm", 6, (0.02, 0.1), 69.6, sentences=5000),
    ),
    # With mu for sums over batches, as it is above, SMD diverges at once.
    "schraudolph-3": (
        "Schraudolph et al. 2007, figures 3 and 4: base noun phrases of CoNLL-2000",
        Experiment("base_np", 8, (0.1 / 8, 1.0), 93.6, ALL, sentences=4000),
    ),
}
CASES = [
    Case(name, title, partial(run, experiment))
    for name, (title, experiment) in EXPERIMENTS.items()
]

"""Figures that show objectives, or gaps, by iterations or seconds, and by alpha."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import common
import numpy as np
from _harness import new_figure
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from ._case import Case, Draw, Method, Problem, Settings, Trace, optimum, trace

# Methods as published.
SEARCH = {"epsilon": 1e-5, "epsilon_0": 1.0}
INEXACT = {"line_search": "wolfe", "c1": 1e-3, "c2": 0.8}
SUBLBFGS = Method("sublbfgs", SEARCH, "k-")
SUBGD = Method("sublbfgs", {**SEARCH, "memory": 0}, "C3--")
GD = Method("sublbfgs", {"k_max": 1, "memory": 0}, "C0:", unit_step=True)
LBFGS = Method("sublbfgs", {"k_max": 1}, "C3--")
LBFGS_INEXACT = Method("sublbfgs", {"k_max": 1, **INEXACT}, "C0:")
BMRM = Method("bmrm", style="C0--")
LS_BMRM = Method("ls-bmrm", {"cut_at_best": False, "theta": 0.1}, "C3:")


def has_converged(values: list[float]) -> bool:
    """The criterion of Andrew and Gao (2007): 1e-5 on average over five iterations."""
    return len(values) > 5 and (values[-6] - values[-1]) / 5.0 < 1e-5 * values[-1]


def stands_still(values: list[float]) -> bool:
    """That of Yu 2009, section 4.1: 1e-8 over five iterations."""
    return len(values) > 5 and values[-6] - values[-1] < 1e-8 * values[-1]


def owlqn(star: bool, random: bool) -> Method:
    options = {"epsilon": 1e-5} if star else {}
    options |= {"random_state": 0} if random else {}
    style = ("C3" if star else "k") + (":" if random else "-")
    return Method("owlqn*" if star else "owlqn", options, style, stop=has_converged)


OWLQN = {"OWL-QN": owlqn(False, False), "OWL-QN*": owlqn(True, False)}
RANDOM = {"OWL-QNr": owlqn(False, True), "OWL-QN*r": owlqn(True, True)}
BUNDLES = {"subLBFGS": SUBLBFGS, "BMRM": BMRM, "ls-BMRM": LS_BMRM}

# Data that stand for the source's, with the strengths of Yu 2009, Tables 4.2 and 4.3.
BINARY = {"covtype": 1e-6, "rcv1_ccat": 1e-6, "mnist": 1e-6, "a9a": 1e-5}
L1 = {"covtype": 1e-5, "rcv1_ccat": 1e-6, "mnist": 1e-4, "a9a": 1e-4}
CLASSES = {"letter": 1e-6, "usps": 1e-3, "mnist": 1e-3, "news20": 1e-2}
LABELS = {"scene": 1e-1, "tmc2007": 1e-5, "rcv1_topics": 1e-5}
# At most so many rows without --full.
ROWS = {"mnist": 10_000, "rcv1_topics": 4000, "tmc2007": 4000, "covtype": 20_000}
# The same for figures by alpha.
FEW: dict[str, int] = {
    **{"a9a": 8000, "rcv1_ccat": 5000, "covtype": 10_000, "mnist": 3000},
    **{"letter": 3000, "usps": 1000, "news20": 1000, "tmc2007": 2000},
}
TENTHS = tuple(10.0**-i for i in range(1, 7))


def problems(loss: str, alphas: Mapping[str, float]) -> list[Problem]:
    return [Problem(name, loss, a, ROWS.get(name)) for name, a in alphas.items()]


SAMPLES = [
    *problems("hinge", {"rcv1_ccat": 1e-6}),
    *problems("multiclass", {"usps": 1e-3}),
    *problems("multilabel", {"scene": 1e-1}),
]


@dataclass(frozen=True)
class Curves:
    """Runs of methods on problems, a panel each.

    ``x`` is iterations or seconds, ``y`` the excess over the optimum, the objective, or
    the gap. ``limit`` and ``max_iter`` end a run, ``tol`` as well. The optimum is that
    of our default solver to ``precision``.
    """

    problems: Sequence[Problem]
    methods: Mapping[str, Method]
    x: str = "seconds"
    y: str = "excess"
    levels: Sequence[float] = (1e-1, 2e-2, 1e-3)
    limit: float = 3.0
    max_iter: int = 10_000
    tol: float = 0.0
    precision: float = 1e-5

    def measure(self, settings: Settings) -> dict[Problem, tuple[float, Any]]:
        """Return the optimum and the run of each method, by problem."""
        runs = {}
        for problem in self.problems:
            found = {
                name: trace(
                    problem,
                    method,
                    settings,
                    limit=self.limit,
                    max_iter=self.max_iter,
                    tol=self.tol,
                )
                for name, method in self.methods.items()
            }
            best = optimum(problem, settings, self.precision, settings.seconds(10.0))
            best = min(best, *(float(run.objective[-1]) for run in found.values()))
            runs[problem] = best, found
        return runs

    def __call__(self, settings: Settings) -> tuple[str, Draw]:
        runs = self.measure(settings)
        header = ["data", "α", "method", *map(_percent, self.levels)]
        header += ["iterations", "k", "excess at the end", "ended by"]
        lines = [
            [
                settings_title(problem, settings),
                f"{problem.alpha:g}",
                name,
                *self.cells(run, best),
            ]
            for problem, (best, found) in runs.items()
            for name, run in found.items()
        ]
        what = "the proven gap" if self.y == "gap" else "the excess over the optimum"
        text = f"Iterations (seconds) until {what} is a share of the objective:\n\n"
        return text + common.markdown_table(header, lines), partial(self.draw, runs)

    def cells(self, run: Trace, best: float) -> list[str]:
        firsts = [self.first(run, level, best) for level in self.levels]
        return [
            *("–" if i is None else f"{i} ({run.seconds[i]:.2f})" for i in firsts),
            str(len(run.objective) - 1),
            "–" if run.k is None else str(run.k),
            f"{run.objective[-1] / best - 1.0:.1e}",
            run.end or "gap",
        ]

    def first(self, run: Trace, level: float, best: float) -> int | None:
        if self.y != "gap":
            return run.first(level, best)
        reached = run.gap <= level * run.objective
        return int(np.argmax(reached)) if reached.any() else None

    def draw(self, runs: Any) -> Any:
        keys = list(runs)
        rows = 1 + (len(keys) - 1) // 4
        columns = -(-len(keys) // rows)
        figure, axes = new_figure(rows, columns, (3.4, 2.9))
        for ax in axes.flat[len(keys) :]:
            ax.set_axis_off()
        for ax, problem in zip(axes.flat, keys, strict=False):
            best, found = runs[problem]
            for name, run in found.items():
                values = {
                    "excess": np.maximum(run.objective / best - 1.0, 1e-12),
                    "gap": run.gap,
                    "objective": run.objective,
                }[self.y]
                steps = np.arange(len(values))
                x = steps if self.x == "iterations" else run.seconds
                keep = np.unique(np.geomspace(1, len(values), 300).astype(int)) - 1
                ax.plot(x[keep], values[keep], self.methods[name].style, label=name)
                if run.end == "no progress":
                    color = ax.lines[-1].get_color()
                    ax.plot(x[-1], values[-1], "x", color=color, markersize=8)
            ax.set(yscale="log", xlabel=self.x)
            if self.y != "excess" and self.x == "iterations":
                ax.set(xscale="symlog", xlim=(0, None))
            ax.set_title(problem.title, fontsize=9)
        ylabel = {"excess": "J / J* - 1", "gap": "ε", "objective": "J"}[self.y]
        axes[0, 0].set(ylabel=ylabel)
        axes[0, 0].legend(fontsize=7)
        return figure


@dataclass(frozen=True)
class Strengths:
    """Seconds or iterations to a share above the optimum, by alpha."""

    data: Sequence[tuple[str, str]]
    alphas: Sequence[float]
    methods: Mapping[str, Method]
    above: float = 0.02
    x: str = "seconds"
    limit: float = 0.8
    max_iter: int = 10_000

    def measure(self, settings: Settings) -> dict[tuple[str, str], list[float | None]]:
        """Return the costs by alpha, of each data set and method."""
        found: dict[tuple[str, str], list[float | None]] = {}
        for data, loss in self.data:
            for alpha in self.alphas:
                problem = Problem(data, loss, alpha, FEW.get(data))
                best = optimum(problem, settings, 1e-3, settings.seconds(10.0))
                for name, method in self.methods.items():
                    run = trace(
                        problem,
                        method,
                        settings,
                        limit=self.limit,
                        max_iter=self.max_iter,
                        goal=(1.0 + self.above) * best,
                    )
                    i = run.first(self.above, best)
                    cost = None if i is None else self.cost(run, i)
                    title = settings_title(problem, settings)
                    found.setdefault((title, name), []).append(cost)
        return found

    def __call__(self, settings: Settings) -> tuple[str, Draw]:
        found = self.measure(settings)
        form = ".0f" if self.x == "iterations" else ".2f"
        lines = [
            [*key, *("–" if cost is None else f"{cost:{form}}" for cost in costs)]
            for key, costs in found.items()
        ]
        header = ["data", "method", *(f"α = {alpha:g}" for alpha in self.alphas)]
        text = (
            f"{self.x.capitalize()} to within {self.above:.0%} of the optimum; a dash: "
            f"not in {settings.seconds(self.limit):g} seconds:\n\n"
        )
        return text + common.markdown_table(header, lines), partial(self.draw, found)

    def cost(self, run: Trace, i: int) -> float:
        return float(i if self.x == "iterations" else run.seconds[i])

    def draw(self, found: Any) -> Any:
        titles = list(dict.fromkeys(title for title, _ in found))
        figure, axes = new_figure(1, len(titles), (3.0, 2.8))
        for ax, title in zip(axes[0], titles, strict=True):
            for name, method in self.methods.items():
                costs = np.array(found[title, name], dtype=float)
                style = f"{method.style}o"
                ax.loglog(self.alphas, costs, style, markersize=4, label=name)
            ax.set(xlabel="α")
            ax.set_title(title, fontsize=9)
        axes[0, 0].set(ylabel=f"{self.x} to {self.above:.0%}")
        axes[0, 0].legend(fontsize=7)
        return figure


def settings_title(problem: Problem, settings: Settings) -> str:
    """Return the name of the data, with the number of rows if not all are taken."""
    few = problem.rows is not None and not settings.full
    return f"{problem.data}, {problem.rows} rows" if few else problem.data


def _percent(level: float) -> str:
    return f"{level * 100:g} %" if level < 1.0 else f"{1.0 + level:g} J*"


def linear_svc(problem: Problem, n: int, steps: int) -> LinearSVC:
    C = 1.0 / (n * problem.alpha)
    peer = LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=1e-12, random_state=0)
    return peer.set_params(max_iter=steps)


def liblinear_log(problem: Problem, n: int, steps: int) -> LogisticRegression:
    C = 1.0 / (n * problem.alpha)
    peer = LogisticRegression(C=C, fit_intercept=False, tol=1e-12, solver="liblinear")
    return peer.set_params(max_iter=steps)


EPSILONS = {
    f"ε = {epsilon:g}": Method(
        "sublbfgs", {"epsilon": epsilon, "epsilon_0": max(epsilon, epsilon_0)}, style
    )
    for epsilon, epsilon_0, style in (
        (1.0, 1.0, "C0:"),
        (1e-2, 1.0, "C2-."),
        (1e-5, 1.0, "k-"),
        (1e-10, 1.0, "C3--"),
    )
}
MEMORIES = {
    f"m = {m}": Method("sublbfgs", {**SEARCH, "memory": m}, style)
    for m, style in ((5, "C0:"), (15, "k-"), (25, "C3--"))
}
SIZES = {
    "BMRM, " + (f"k = {size}" if size else "k unlimited"): Method(
        "bmrm", {"bundle_size": size, "patience": None if size else 10}, style
    )
    for size, style in ((2, "C0:"), (10, "C2-."), (50, "C3--"), (None, "k-"))
}
TRUST = {
    "BT": Method("trust-region-bundle", style="C2-."),
    "proximal": Method("proximal-bundle", style="C4-."),
    "LSBMRM": LS_BMRM,
    "BMRM": BMRM,
}
# The best of 2^-20 to 2^0 on validation rows, as teo-7 finds it.
BEST = {"a9a": 2.0**-17, "rcv1_ccat": 2.0**-14, "covtype": 2.0**-20}
STRENGTHS = [1e-3, 1e-4, 1e-5, 1e-6]
TEO = ["a9a", "rcv1_ccat", "covtype"]
STILL = Method("sublbfgs", SEARCH, stop=stands_still)

YU, TEO_ET_AL = "Yu 2009, figure", "Teo et al. 2010, figure"


def curves(name: str, title: str, *given: Any, **how: Any) -> Case:
    return Case(name, title, Curves(*given, **how))


def strengths(name: str, title: str, *given: Any, **how: Any) -> Case:
    return Case(name, title, Strengths(*given, **how))


def named(loss: str, names: Iterable[str]) -> list[tuple[str, str]]:
    return [(name, loss) for name in names]


STEPS: dict[str, Any] = {"x": "iterations"}
GAPS: dict[str, Any] = {"x": "iterations", "y": "gap", "tol": 1e-4}
STANDING = {"subLBFGS": STILL}
L_BFGS = {
    "subLBFGS": SUBLBFGS,
    "L-BFGS, exact": LBFGS,
    "L-BFGS, inexact": LBFGS_INEXACT,
}
FROM_STEP = {
    name: method._replace(unit_step=method is not SUBLBFGS)
    for name, method in L_BFGS.items()
}
LIBLINEAR = Method("", style="k-", ladder=linear_svc)
CASES = [
    curves(
        "yu-3.2-left",
        f"{YU} 3.2 left: L-BFGS with exact line search fails on Leukemia",
        [Problem("leukemia", "hinge", 1e-1)],
        L_BFGS,
        **STEPS,
        y="objective",
        levels=(99.0, 9.0, 1.0, 0.1),
        limit=10.0,
        max_iter=500,
    ),
    curves(
        "yu-3.2-right",
        f"{YU} 3.2 center and right: L-BFGS on text (rcv1_ccat for Real-sim), and on "
        "Letter from the end of a unit step",
        [Problem("rcv1_ccat", "hinge", 1e-5), Problem("letter", "multiclass", 1e-6)],
        FROM_STEP,
        y="objective",
        limit=5.0,
    ),
    curves(
        "yu-3.3",
        f"{YU} 3.3: subLBFGS, subgradient descent with directions of Alg. 3.2 (subGD) "
        "and without (GD)",
        SAMPLES,
        {"subLBFGS": SUBLBFGS, "subGD": SUBGD, "GD": GD},
    ),
    curves(
        "yu-3.7",
        f"{YU} 3.7: convergence of subLBFGS",
        problems("hinge", {"a9a": 1e-3, "covtype": 1e-3})
        + problems("multiclass", {"usps": 1e-1, "letter": 1e-2}),
        STANDING,
        **STEPS,
        levels=(1e-2, 1e-4, 1e-6, 1e-7),
        limit=8.0,
        max_iter=3000,
        precision=1e-9,
    ),
    curves(
        "yu-4.1",
        f"{YU} 4.1: tolerance ε of the direction search",
        SAMPLES,
        EPSILONS,
        **STEPS,
    ),
    curves("yu-4.2", f"{YU} 4.2: number m of pairs", SAMPLES, MEMORIES, limit=4.0),
    curves(
        "yu-table-4.2",
        "Yu 2009, Table 4.2, L2: iterations k of direction searches, until J falls by "
        "less than 1e-8 in five iterations",
        problems("hinge", BINARY),
        STANDING,
        limit=8.0,
    ),
    curves(
        "yu-4.3",
        f"{YU} 4.3: binary hinge",
        problems("hinge", BINARY),
        BUNDLES,
        limit=4.0,
    ),
    strengths(
        "yu-4.4",
        f"{YU} 4.4: binary hinge by α",
        named("hinge", BINARY),
        TENTHS,
        BUNDLES,
    ),
    curves(
        "yu-4.5",
        f"{YU} 4.5 and Table 4.2, L1: random subgradients in OWL-QN",
        problems("l1", L1),
        OWLQN | RANDOM,
        **STEPS,
        limit=4.0,
    ),
    strengths(
        "yu-4.6",
        f"{YU} 4.6: logistic loss with L1 by α",
        named("l1", L1),
        TENTHS,
        OWLQN,
    ),
    curves(
        "yu-table-4.3",
        "Yu 2009, Table 4.3: iterations k of direction searches, until J falls by less "
        "than 1e-8 in five iterations",
        problems("multiclass", CLASSES) + problems("multilabel", LABELS),
        STANDING,
        limit=6.0,
    ),
    curves(
        "yu-4.7",
        f"{YU} 4.7: multiclass hinge",
        problems("multiclass", CLASSES),
        BUNDLES,
    ),
    strengths(
        "yu-4.8",
        f"{YU} 4.8: multiclass hinge by α",
        named("multiclass", CLASSES),
        TENTHS,
        BUNDLES,
        limit=2.0,
    ),
    curves(
        "yu-4.9", f"{YU} 4.9: multilabel hinge", problems("multilabel", LABELS), BUNDLES
    ),
    strengths(
        "yu-4.10",
        f"{YU} 4.10: multilabel hinge by α",
        named("multilabel", ["scene", "tmc2007"]),
        TENTHS,
        BUNDLES,
    ),
    curves(
        "teo-4",
        f"{TEO_ET_AL} 4: gap of BMRM by α",
        [p for name in TEO for a in STRENGTHS for p in problems("hinge", {name: a})],
        {"BMRM": BMRM._replace(style="k-")},
        **GAPS,
        limit=1.5,
    ),
    curves(
        "teo-5",
        f"{TEO_ET_AL} 5: bundle sizes, α = 1e-4",
        problems("hinge", dict.fromkeys(TEO, 1e-4)),
        SIZES,
        **GAPS,
        limit=2.0,
    ),
    strengths(
        "teo-8",
        f"{TEO_ET_AL} 8: iterations of bundle methods by α",
        named("hinge", TEO) + named("multiclass", ["letter", "usps"]),
        STRENGTHS,
        TRUST,
        **STEPS,
        above=0.01,
        limit=1.5,
        max_iter=6000,
    ),
    curves(
        "teo-9",
        f"{TEO_ET_AL} 9: linear SVMs, α chosen on validation rows",
        problems("hinge", BEST),
        {"BMRM": BMRM, "LSBMRM": LS_BMRM, "LIBLINEAR": LIBLINEAR},
        limit=4.0,
    ),
    curves(
        "teo-10",
        f"{TEO_ET_AL} 10: logistic regression, α of teo-9",
        problems("log_loss", BEST),
        {"BMRM": BMRM, "LIBLINEAR": LIBLINEAR._replace(ladder=liblinear_log)},
        limit=2.5,
    ),
]

"""Bundle methods: iterations to relative gaps, bundle sizes, and beside OCAS.

python benchmarks/bundle.py --data-dir DIR

Hinge loss without intercept. Iterations of our bundle methods to gaps that they prove,
for the regularization constants of Teo et al. (2010, figures 4, 5 and 8), joint hinge
on data of more than two classes, and to an objective within 1 % of the optimum, as in
figure 8 (eq. 17); BMRM with limited bundles. A run ends at a limit of seconds or of
iterations, 6000 as in the source.

LinearSVC on data of two classes: the quickest of its tolerances and limits of
iterations whose objective is within each gap of the best known one.

Processor seconds of ls-BMRM and BMRM beside ``svmocas`` and ``svmocas -m 0`` of
libocas-tools, whose seconds are those of its process without reading files.
"""

from __future__ import annotations

import importlib
import re
import resource
import shutil
import subprocess
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import common
import datasets
import numpy as np
from sklearn.datasets import dump_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from sklearn_subqn._core import cut_model
from sklearn_subqn._core.certificate import CutBundle
from sklearn_subqn._core.design import Design
from sklearn_subqn._core.losses import BINARY_LOSSES, Loss, Simplex
from sklearn_subqn._core.objective import Objective
from sklearn_subqn._core.regularizers import L2
from sklearn_subqn._core.risk import Risk
from sklearn_subqn._core.solvers import (
    BUNDLE_SOLVERS,
    SOLVERS,
    Options,
    SolverSpec,
    Start,
    run,
)

NAME = "bundle"
CENTERED = importlib.import_module("sklearn_subqn._core.solvers.proximal_bundle")
GAPS = (1e-1, 1e-2, 1e-3)
ALPHAS = (1e-3, 1e-4, 1e-5, 1e-6)
SIZES = (2, 10, 50, None)
METHODS = ("ls-bmrm", "bmrm", "proximal-bundle", "trust-region-bundle")
JOINT = ("letter", "usps", "mnist", "news20")
#: Problems to a proven 1e-3 beside OCAS.
PROVEN = {"a9a": 1e-5, "rcv1_ccat": 1e-5, "covtype": 1e-6}
#: What ended a run.
ENDS = {
    "converged": "gap 1e-3",
    "callback": "seconds",
    "max_iter": "iterations",
    "stalled": "stalled",
    "no_progress": "rounding",
}
#: Colors of curves, from the largest alpha or the smallest bundle on.
SHADES = ("#4c1d4b", "#a11a5b", "#e83f3f", "#f69c73")
#: Share of the optimum by which figure 8's runs may be above it (eq. 17).
ABOVE = 0.01
#: LinearSVC's limits of iterations with a tolerance that is never met, and tolerances.
SVC_ITERATIONS = tuple(2**i for i in range(15))
SVC_TOLERANCES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)


def problem(name: str, alpha: float, args: Any) -> Objective:
    if name in JOINT:
        X, y = datasets.load_joint(name, args.data_dir)
        k = int(y.max()) + 1
        design = Design(X, fit_intercept=False, n_outputs=k)
        loss: Any = Loss(Simplex(1.0 - np.eye(k)))
    else:
        data = datasets.load(name, args.data_dir, args.cache_dir)
        X, y, loss = data.X, data.y, BINARY_LOSSES["hinge"]
        design = Design(X, fit_intercept=False)
    weights = np.full(len(y), 1.0 / len(y))
    return Objective(Risk(design, loss, y, weights), L2(design.n_coef), alpha)


class Watch:
    """Processor seconds of a function of a module, while in use as a context."""

    def __init__(self, module: Any, name: str) -> None:
        self.seconds = 0.0
        self._place = module, name
        self._function = getattr(module, name)

    def __enter__(self) -> Watch:
        setattr(*self._place, self._timed)
        return self

    def __exit__(self, *error: object) -> None:
        setattr(*self._place, self._function)

    def _timed(self, *args: Any, **options: Any) -> Any:
        begin = time.process_time()
        result = self._function(*args, **options)
        self.seconds += time.process_time() - begin
        return result


def solved(
    objective: Objective, spec: SolverSpec, size: int | None, tol: float, args: Any
) -> tuple[Any, list[float]]:
    """Run a method from the origin; return its result and seconds by iteration."""
    start = Start(np.zeros(objective.n_params))
    before = objective.passes
    seconds: list[float] = []
    begin = time.process_time()

    def report(_: Any) -> bool:
        seconds.append(time.process_time() - begin)
        return seconds[-1] > args.limit

    result = run(
        spec.start(objective, start, Options(bundle_size=size)),
        tol=tol,
        max_iter=args.max_iter,
        bundle=None if spec.proves else CutBundle(objective),
        passes=lambda: objective.passes - before,
        report=report,
    )
    return result, seconds


def optimum(objective: Objective, args: Any) -> float:
    """Return the objective of our fastest solver at a gap of 1e-4 or at its limit."""
    result, _ = solved(objective, SOLVERS["auto"], None, 1e-4, args)
    return float(result.point.value)


def ours(
    objective: Objective, solver: str, size: int | None, best: float, args: Any
) -> Any:
    """Run a method to the smallest gap; return its row of figures."""
    begin = time.process_time()
    place = cut_model if BUNDLE_SOLVERS[solver].proves else CENTERED
    with Watch(place, "minimize_on_simplex") as qp:
        result, seconds = solved(
            objective, BUNDLE_SOLVERS[solver], size, min(GAPS), args
        )
    total = time.process_time() - begin
    history = result.history
    values, bounds = np.array(history.objective), np.array(history.lower_bound)
    with np.errstate(invalid="ignore"):
        gaps = np.minimum.accumulate((values - bounds) / np.abs(values))
    iterations = {
        f"{gap:g}": int(np.argmax(gaps <= gap)) for gap in GAPS if np.any(gaps <= gap)
    }
    # A curve to draw: the gap at iterations in geometric progression.
    marks = np.unique(np.geomspace(1, len(gaps), 60).astype(int)) - 1
    row = {
        "iterations": iterations,
        "seconds_to": {gap: seconds[i] for gap, i in iterations.items()},
        "n_iter": result.n_iter,
        "gap": float(gaps[-1]),
        "status": result.status,
        "seconds": total,
        "passes": history.passes[-1],
        "qp_share": qp.seconds / total,
        "curve": [[int(i), float(gaps[i])] for i in marks if np.isfinite(gaps[i])],
    }
    near = values <= (1.0 + ABOVE) * best
    if near.any():
        row["near_optimum"] = int(np.argmax(near))
    return row


def linear_svc(objective: Objective, best: float, args: Any) -> Any:
    """Return the fewest seconds of LinearSVC to each gap, and the settings."""
    X, y = objective.design._X, objective.targets
    C = 1.0 / (len(y) * objective.alpha)
    ladders = (
        [{"tol": 1e-12, "max_iter": n} for n in SVC_ITERATIONS],
        [{"tol": tol, "max_iter": 100_000} for tol in SVC_TOLERANCES],
    )
    found: dict[str, Any] = {}
    for ladder in ladders:
        for setting in ladder:
            seconds = np.inf
            for _ in range(args.repeats):
                model = LinearSVC(
                    C=C, loss="hinge", fit_intercept=False, random_state=0, **setting
                )
                begin = time.process_time()
                model.fit(X, y)
                seconds = min(seconds, time.process_time() - begin)
                if seconds > 1.0:
                    break
            value = objective.at(model.coef_.ravel().astype(float)).value
            gap = value / best - 1.0
            for goal in GAPS:
                known = found.get(f"{goal:g}")
                if gap <= goal and (known is None or seconds < known["seconds"]):
                    found[f"{goal:g}"] = {"seconds": seconds, **setting}
            if gap <= min(GAPS) or seconds > args.limit:
                break
    return found


def ocas(objective: Objective, path: Path, plain: bool, limit: float) -> Any:
    """Run svmocas to a relative gap of 1e-3; return its row of figures."""
    C = 1.0 / (len(objective.targets) * objective.alpha)
    command = ["svmocas", "-c", repr(C), "-b", "0", "-r", "1e-3", "-t", f"{limit:g}"]
    command += ["-m", "0"] if plain else []
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    output = subprocess.run(
        [*command, str(path), str(path.with_suffix(".model"))],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    times = {
        name: float(value)
        for name, value in re.findall(r"(\w+)_time\s*: ([\d.]+)", output)
    }
    lines = re.findall(r"^\s*(\d+): tim=.*1-Q_D/Q_P=([\d.e+-]+)", output, re.MULTILINE)
    n_iter, gap = lines[-1]
    return {
        "n_iter": int(n_iter),
        "gap": float(gap),
        "seconds": spent * times["ocas"] / times["total"],
        "qp_share": times["qp_solver"] / times["ocas"],
    }


def measure(name: str, args: Any, results: common.Results) -> None:
    for alpha in args.alphas or ALPHAS:
        objective = problem(name, alpha, args)
        best = optimum(objective, args)
        for solver in [method for method in args.methods if method in METHODS]:
            row = ours(objective, solver, None, best, args)
            row |= {"data": name, "alpha": alpha, "method": solver, "size": None}
            results.add(f"{name} | {alpha:g} | {solver}", **row)
            print(name, alpha, solver, row["iterations"], row["seconds"], flush=True)
        if name not in JOINT and "linear-svc" in args.methods:
            found = linear_svc(objective, best, args)
            row = {"data": name, "alpha": alpha, "linear_svc": found}
            results.add(f"{name} | {alpha:g} | LinearSVC", **row)
            print(name, alpha, "LinearSVC", found, flush=True)
    if name in JOINT or "bmrm" not in args.methods:
        return
    objective = problem(name, 1e-4, args)
    best = optimum(objective, args)
    for size in SIZES[:-1]:
        row = ours(objective, "bmrm", size, best, args)
        row |= {"data": name, "alpha": 1e-4, "method": "bmrm", "size": size}
        results.add(f"{name} | 0.0001 | bmrm | {size}", **row)
        print(name, "size", size, row["iterations"], row["seconds"], flush=True)


def beside_ocas(name: str, args: Any, results: common.Results) -> None:
    objective = problem(name, PROVEN[name], args)
    best = optimum(objective, args)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "data")
        y = objective.targets.astype(int)
        dump_svmlight_file(objective.design._X, y, str(path), zero_based=False)
        for plain in (False, True):
            solver = "bmrm" if plain else "ls-bmrm"
            peer: Any = {}
            mine = ours(objective, solver, None, best, args)
            for _ in range(1 if plain else args.repeats):
                again = ocas(objective, path, plain, args.peer_limit)
                peer = min(peer or again, again, key=lambda row: row["seconds"])
                again = ours(objective, solver, None, best, args)
                mine = min(mine, again, key=lambda row: row["seconds"])
            method = "BMRM" if plain else "ls-BMRM"
            row = {"data": name, "alpha": PROVEN[name], "method": method}
            results.add(f"{name} | ocas | {method}", **row, ours=mine, ocas=peer)
            print(name, method, mine["seconds"], peer, flush=True)


def render(results: dict[str, Any]) -> str:
    rows = results["rows"]
    parts = [
        "To a proven relative gap of 1e-3, beside `svmocas` (`-m 0` for BMRM):",
        _beside_table([row for row in rows if "ours" in row]),
        "Iterations to proven relative gaps, and to an objective within 1 % of the "
        "optimum (figure 8 of the source); none where the run ended before, by a limit "
        "of seconds or of iterations or, *stalled*, for lack of progress in 100 "
        "iterations:",
        _iterations_table([row for row in rows if "iterations" in row]),
        "Processor seconds to relative gaps, proven by ours; LinearSVC's are those of "
        "the quickest setting that arrives, without proof:",
        _seconds_table(rows),
    ]
    return "\n\n".join(parts) + "\n"


def _beside_table(rows: list[Any]) -> str:
    header = ["data", "alpha", "method", "iterations, ours", "OCAS", "passes, ours"]
    header += ["seconds, ours", "OCAS", "ratio", "QP's share, ours", "OCAS"]
    table = [
        [
            row["data"],
            f"{row['alpha']:g}",
            row["method"],
            str(row["ours"]["n_iter"]) + _unfinished(row["ours"]),
            str(row["ocas"]["n_iter"]) + _unfinished(row["ocas"]),
            f"{row['ours']['passes']:.0f}",
            f"{row['ours']['seconds']:.2f}",
            f"{row['ocas']['seconds']:.2f}",
            f"{row['ours']['seconds'] / row['ocas']['seconds']:.2f}",
            f"{row['ours']['qp_share']:.0%}",
            f"{row['ocas']['qp_share']:.0%}",
        ]
        for row in rows
    ]
    return common.markdown_table(header, table)


def _iterations_table(rows: list[Any]) -> str:
    header = ["data", "alpha", "method", "bundle size"]
    header += [f"to {gap:g}" for gap in GAPS]
    header += ["to 1 %", "iterations", "end", "gap proven", "seconds", "QP's share"]
    table = [
        [
            row["data"],
            f"{row['alpha']:g}",
            row["method"],
            str(row["size"] or "–"),
            *(str(row["iterations"].get(f"{gap:g}", "–")) for gap in GAPS),
            str(row.get("near_optimum", "–")),
            str(row["n_iter"]),
            ENDS[row["status"]],
            f"{row['gap']:.1e}",
            f"{row['seconds']:.2f}",
            "–" if row["qp_share"] is None else f"{row['qp_share']:.0%}",
        ]
        for row in _sorted(rows)
    ]
    return common.markdown_table(header, table)


def _seconds_table(rows: list[Any]) -> str:
    found: dict[Any, dict[str, Any]] = {}
    for row in rows:
        key = row["data"], row["alpha"]
        if "linear_svc" in row:
            peer = row["linear_svc"]
            times = {gap: found_at["seconds"] for gap, found_at in peer.items()}
            found.setdefault(key, {})["LinearSVC"] = times
        elif "seconds_to" in row and row["size"] is None:
            found.setdefault(key, {})[row["method"]] = row["seconds_to"]
    columns = ("ls-bmrm", "bmrm", "LinearSVC")
    header = ["data", "alpha"]
    header += [f"{name}, {gap:g}" for gap in GAPS for name in columns]
    table = [
        [name, f"{alpha:g}"]
        + [
            f"{times[column][f'{gap:g}']:.3f}"
            if f"{gap:g}" in times.get(column, {})
            else "–"
            for gap in GAPS
            for column in columns
        ]
        for (name, alpha), times in found.items()
        if "LinearSVC" in times
    ]
    return common.markdown_table(header, table)


def _sorted(rows: list[Any]) -> list[Any]:
    """Return rows by data set, whole bundles first, falling alpha and method."""
    names = (*PROVEN, *JOINT)
    return sorted(
        rows,
        key=lambda row: (
            names.index(row["data"]),
            row["size"] or 0,
            -row["alpha"],
            METHODS.index(row["method"]),
        ),
    )


def _unfinished(row: dict[str, Any]) -> str:
    return "" if row["gap"] <= 1e-3 else f" (stopped at {row['gap']:.1e})"


def plot(results: dict[str, Any]) -> None:
    """Draw figures 4, 5 and 8 of the source, a row of panels for each."""
    import matplotlib.pyplot as plt

    rows = _sorted([row for row in results["rows"] if "iterations" in row])
    names = list(dict.fromkeys(row["data"] for row in rows))
    figure, axes = plt.subplots(
        3, len(names), figsize=(3.1 * len(names), 8.4), squeeze=False, sharey="row"
    )
    for name, (top, middle, bottom) in zip(names, axes.T, strict=True):
        mine = [row for row in rows if row["data"] == name]
        whole = [row for row in mine if row["size"] is None]
        plain = [row for row in whole if row["method"] == "bmrm"]
        for row, color in zip(plain, SHADES, strict=False):
            _draw(top, row, f"{row['alpha']:g}", color)
        top.set(title=name)
        sizes = [row for row in mine if row["size"]]
        sizes += [row for row in plain if row["alpha"] == 1e-4 and sizes]
        for row, color in zip(sizes, SHADES, strict=False):
            _draw(middle, row, str(row["size"] or "no limit"), color)
        for method, marker in zip(METHODS, "os^v", strict=True):
            points = [
                (row["alpha"], row["near_optimum"])
                for row in whole
                if row["method"] == method and "near_optimum" in row
            ]
            x, y = np.array(points).reshape(-1, 2).T
            bottom.loglog(x, y, f"{marker}-", label=method, markersize=4)
        bottom.set(xlabel="alpha", xlim=(2e-3, 5e-7))
        if not sizes:
            middle.set_axis_off()
    for ax in (*axes[0], *axes[1]):
        ax.set(xlabel="iteration", xlim=(1, 1e4), ylim=(5e-4, 30.0))
    axes[0, 0].set(ylabel="BMRM: proven relative gap")
    axes[1, 0].set(ylabel="alpha = 1e-4: proven relative gap")
    axes[2, 0].set(ylabel="iterations to 1 % of the optimum")
    for ax, title in zip(axes[:, 0], ("alpha", "bundle size", None), strict=True):
        if ax.get_legend_handles_labels()[0]:
            ax.legend(title=title, fontsize=7, title_fontsize=8)
    figure.tight_layout()
    figure.savefig(common.RESULTS / f"{NAME}.png", dpi=110)
    plt.close(figure)


def _draw(ax: Any, row: dict[str, Any], label: str, color: str) -> None:
    """Draw gaps by iteration, with a cross at the end of a run that did not arrive."""
    x, y = np.array(row["curve"]).T
    ax.loglog(x, y, color=color, label=label)
    if row["status"] != "converged":
        ax.plot(x[-1], y[-1], "x", color=color)


def main() -> None:
    p = common.parser(__doc__ or "", (*PROVEN, *JOINT))
    p.add_argument("--alphas", nargs="+", type=float, help="default: see the script")
    p.add_argument("--methods", nargs="+", default=[*METHODS, "linear-svc"])
    p.add_argument("--limit", type=float, default=60.0, help="seconds for each run")
    p.add_argument("--max-iter", type=int, default=6000, help="iterations of each run")
    p.add_argument("--peer-limit", type=float, default=120.0, help="of OCAS")
    p.add_argument("--repeats", type=int, default=3)
    p.add_argument(
        "--parts", nargs="+", default=["ocas", "curves"], choices=["ocas", "curves"]
    )
    p.add_argument("--fresh", action="store_true", help="drop rows of other problems")
    args = p.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    results = common.Results(NAME, fresh=args.fresh)
    with threadpool_limits(1):
        for name in args.data:
            if "curves" in args.parts:
                measure(name, args, results)
        for name in args.data:
            if "ocas" in args.parts and name in PROVEN and shutil.which("svmocas"):
                beside_ocas(name, args, results)
    content = common.read_results(NAME)
    common.show(NAME, render)
    if content:
        plot(content)


if __name__ == "__main__":
    main()

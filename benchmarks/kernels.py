"""What compiled kernels are worth: shares of a fit, fits without them, loops in C.

python benchmarks/kernels.py --data-dir DIR

All times are processor time, BLAS on one thread. The shares of an earlier release are
measured by the same script in an environment where that one is installed, with
``--label before --parts shares``; the rows of both are kept side by side.
"""

from __future__ import annotations

import argparse
import ctypes
import pkgutil
import shutil
import statistics
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from unittest import mock

import common
import datasets
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from sklearn_subqn import SubLBFGSLinearSVC
from sklearn_subqn._core import design

NAME = "kernels"
DATA = ("a9a", "covtype", "rcv1_ccat", "mnist", "dense")
LABELS = ("before", "now")
N_ROWS = 80_000

# What the project asks for.
FASTER = 1.3
OF_C = 1.5


class Benchmark(NamedTuple):
    """A fit at alpha = 1e-5 to a proven gap of ``tol``."""

    data: str
    loss: str = "hinge"
    solver: str = "auto"
    tol: float = 1e-3
    intercept: bool = False

    @property
    def name(self) -> str:
        loss = self.loss.replace("_", " ")
        name = f"{self.data}, {loss}, {self.solver}, {self.tol:g}"
        return f"{name}, intercept" if self.intercept else name

    def fit(self, data: datasets.Dataset) -> SubLBFGSLinearSVC:
        model = SubLBFGSLinearSVC(
            1e-5,
            loss=self.loss,
            solver=self.solver,
            tol=self.tol,
            fit_intercept=self.intercept,
        )
        return model.fit(data.X, data.y)


SQUARED = [Benchmark(name, loss="squared_hinge") for name in ("a9a", "rcv1_ccat")]
SUBLBFGS = Benchmark("covtype", solver="sublbfgs", tol=1e-2)
BENCHMARKS = [*map(Benchmark, DATA), *SQUARED, SUBLBFGS]

# Where each kernel matters most, and where it should matter too.
EFFECTS = {
    "hinge": [SUBLBFGS, Benchmark("covtype"), Benchmark("dense")],
    "piecewise": [SUBLBFGS._replace(intercept=True), SUBLBFGS],
    "gram": [SQUARED[0], Benchmark("a9a"), Benchmark("mnist")],
    "ascent": [Benchmark("rcv1_ccat"), SQUARED[1]],
}


def kernel_modules() -> dict[str, ModuleType]:
    """Return the files of kernels by name; none for releases before them."""
    try:
        room = import_module("sklearn_subqn._core.kernels")
    except ModuleNotFoundError:
        return {}
    names = [module.name for module in pkgutil.iter_modules(room.__path__)]
    return {name: import_module(f"{room.__name__}.{name}") for name in names}


def functions(module: ModuleType) -> list[str]:
    """Return the names of a file's kernels."""
    return [
        name
        for name, value in vars(module).items()
        if callable(value) and not name.startswith("_")
    ]


KERNELS = kernel_modules()


# Shares of a fit

PRODUCTS = ("forward", "adjoint", "squared_adjoint", "gram", "rows")


class Timers(AbstractContextManager["Timers"]):
    """Shares the processor time among products, kernels and the rest.

    Each moment belongs to the innermost of the functions at work that is a product or a
    kernel: a kernel called by a product counts as a kernel.
    """

    def __init__(self) -> None:
        self.seconds = {"products": 0.0, "kernels": 0.0, "rest": 0.0}
        self._kinds = ["rest"]
        self._patches = ExitStack()

    def __enter__(self) -> Timers:
        for name in PRODUCTS:
            self._wrap(design.Design, name, "products")
        for module in KERNELS.values():
            for name in functions(module):
                self._wrap(module, name, "kernels")
        self._last = time.process_time()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._charge()
        self._patches.close()

    def _charge(self) -> None:
        now = time.process_time()
        self.seconds[self._kinds[-1]] += now - self._last
        self._last = now

    def _wrap(self, owner: Any, name: str, kind: str) -> None:
        function = getattr(owner, name)

        def timed(*args: Any, **kwargs: Any) -> Any:
            self._charge()
            self._kinds.append(kind)
            try:
                return function(*args, **kwargs)
            finally:
                self._charge()
                self._kinds.pop()

        self._patches.enter_context(mock.patch.object(owner, name, timed))


def shares(
    benchmark: Benchmark, data: datasets.Dataset, repeats: int
) -> dict[str, Any]:
    """Return the seconds of the fit that is the median, in parts, and its gap."""
    runs = []
    for _ in range(repeats):
        with Timers() as timers:
            model = benchmark.fit(data)
        runs.append(timers.seconds)
    median = sorted(runs, key=lambda run: sum(run.values()))[repeats // 2]
    return {**median, "gap": model.dual_gap_ / model.objective_}


# Fits without a kernel


class Hinge:
    """``kernels.hinge`` in NumPy, as the package had it before."""

    @staticmethod
    def violations(scores: Any, targets: Any) -> Any:
        m = scores * targets
        return np.subtract(1.0, m, out=m)

    @staticmethod
    def value(scores: Any, targets: Any, weights: Any) -> float:
        m = Hinge.violations(scores, targets)
        return float(weights @ np.maximum(m, 0.0, out=m))

    @staticmethod
    def subgradient(
        scores: Any, targets: Any, weights: Any, tolerance: float, out: Any
    ) -> None:
        np.multiply(weights, targets, out=out)
        np.negative(out, out=out)
        out[Hinge.violations(scores, targets) <= tolerance] = 0.0

    @staticmethod
    def kinks_ahead(
        scores: Any,
        dscores: Any,
        targets: Any,
        weights: Any,
        tolerance: float,
        kinks: Any,
        jumps: Any,
    ) -> tuple[float, int]:
        m = Hinge.violations(scores, targets)
        m[np.abs(m) <= tolerance] = 0.0
        dm = targets * dscores
        np.negative(dm, out=dm)
        in_error = (m > 0.0) | ((m == 0.0) & (dm > 0.0))
        slopes = weights * dm
        ahead = m * dm < 0.0
        n_kinks = np.count_nonzero(ahead)
        kinks[:n_kinks] = -m[ahead] / dm[ahead]
        jumps[:n_kinks] = np.abs(slopes[ahead])
        return float(slopes[in_error].sum()), n_kinks

    @staticmethod
    def squared_line(scores: Any, dscores: Any, targets: Any, m: Any, dm: Any) -> None:
        m[:] = Hinge.violations(scores, targets)
        np.multiply(targets, dscores, out=dm)
        np.negative(dm, out=dm)

    @staticmethod
    def squared_slope(
        m: Any, dm: Any, weights: Any, step: float
    ) -> tuple[float, float]:
        at = dm * step
        at += m
        in_error = at > 0.0
        np.maximum(at, 0.0, out=at)
        twice = 2.0 * weights * dm
        slope = float(twice @ at)
        return slope, float(twice @ np.multiply(dm, in_error, out=at))

    @staticmethod
    def unclipped(scores: Any, targets: Any, center: Any, width: float) -> Any:
        t = Hinge.violations(scores, targets)
        t /= width
        t += center
        return t

    @staticmethod
    def envelope_dual(
        scores: Any, targets: Any, weights: Any, center: Any, width: float, out: Any
    ) -> None:
        t = Hinge.unclipped(scores, targets, center, width)
        np.clip(t, 0.0, 1.0, out=out)
        np.multiply(out, weights, out=out)
        np.multiply(out, targets, out=out)
        np.negative(out, out=out)

    @staticmethod
    def envelope_curvature(
        scores: Any,
        targets: Any,
        weights: Any,
        center: Any,
        width: float,
        edge: float,
        out: Any,
    ) -> None:
        t = Hinge.unclipped(scores, targets, center, width)
        inside = (t >= -edge) & (t <= 1.0 + edge)
        out[:] = np.where(inside, weights / width, 0.0)

    @staticmethod
    def envelope_line(
        scores: Any,
        dscores: Any,
        targets: Any,
        center: Any,
        width: float,
        t: Any,
        dt: Any,
    ) -> None:
        t[:] = Hinge.unclipped(scores, targets, center, width)
        np.multiply(targets, dscores, out=dt)
        np.divide(dt, -width, out=dt)

    @staticmethod
    def envelope_slope(
        t: Any, dt: Any, weights: Any, width: float, step: float
    ) -> tuple[float, float]:
        at = dt * step
        at += t
        clipped = np.clip(at, 0.0, 1.0)
        inside = at == clipped
        slopes = weights * dt
        slopes *= width
        slope = float(slopes @ clipped)
        return slope, float(slopes @ np.multiply(dt, inside, out=at))


# Below this many kinks, sorting them is faster than halving their number once more.
FEW = 256


def minimize(
    a: float, c: float, kinks: Any, da: Any, dc: Any
) -> tuple[float, float, float]:
    """``piecewise.minimize`` in NumPy, as the package had it before.

    Doubling the step, then halving at the median, leaves few kinks to sort.
    """
    end = 1.0
    while kinks.size:
        passed = kinks <= end
        a_end, c_end = a + da[passed].sum(), c + dc[passed].sum()
        reached = a_end + c_end * end >= 0.0
        keep = passed if reached else ~passed
        kinks, da, dc = kinks[keep], da[keep], dc[keep]
        if reached:
            break
        a, c = a_end, c_end
        end = max(4.0 * end, float(kinks.min())) if kinks.size else end
    while kinks.size > FEW:
        middle = float(np.partition(kinks, kinks.size // 2)[kinks.size // 2])
        passed = kinks <= middle
        a_mid, c_mid = a + da[passed].sum(), c + dc[passed].sum()
        reached = a_mid + c_mid * middle >= 0.0
        if reached and passed.all():
            break
        keep = passed if reached else ~passed
        kinks, da, dc = kinks[keep], da[keep], dc[keep]
        if not reached:
            a, c = a_mid, c_mid
    order = np.argsort(kinks)
    kinks = kinks[order]
    slopes = np.concatenate([[a], a + np.cumsum(da[order])])
    curvatures = np.concatenate([[c], c + np.cumsum(dc[order])])
    sup = slopes[1:] + curvatures[1:] * kinks
    # Of equal kinks, only after the last one the slope is the supremum.
    sup[:-1][kinks[1:] == kinks[:-1]] = -np.inf
    if not np.any(sup >= 0.0):
        return -1.0, float(slopes[-1]), float(curvatures[-1])
    segment = int(np.argmax(sup >= 0.0))
    while segment > 0 and kinks[segment - 1] == kinks[segment]:
        segment -= 1
    a, c, end = (
        float(slopes[segment]),
        float(curvatures[segment]),
        float(kinks[segment]),
    )
    return (min(-a / c, end) if c > 0.0 else end), a, c


def without(kernel: str) -> AbstractContextManager[Any]:
    """Return a context in which the package does without a file of kernels."""
    if kernel == "gram":
        return mock.patch.object(design, "_PAIRS_SHARE", 0.0)
    if kernel == "ascent":
        never = property(lambda self: False)
        return mock.patch.object(design.Design, "is_text_like", never)
    if kernel == "piecewise":
        return mock.patch.object(KERNELS[kernel], "minimize", minimize)
    module = KERNELS[kernel]
    twins = {name: getattr(Hinge, name) for name in functions(module)}
    return mock.patch.multiple(module, **twins)


def effect(
    kernel: str, benchmark: Benchmark, data: datasets.Dataset, repeats: int
) -> dict[str, float]:
    """Return the median seconds of fits with and without a kernel, in turns."""
    seconds: dict[str, list[float]] = {"with": [], "without": []}
    for _ in range(repeats):
        for way, runs in seconds.items():
            with ExitStack() as stack:
                if way == "without":
                    stack.enter_context(without(kernel))
                begin = time.process_time()
                benchmark.fit(data)
                runs.append(time.process_time() - begin)
    return {way: statistics.median(runs) for way, runs in seconds.items()}


# Loops in C

# Those with which the package's kernels are compiled.
C_OPTIONS = ("-O3", "-fno-math-errno", "-fno-trapping-math")


class Case(NamedTuple):
    """One kernel and its arguments; ``changed`` tells those that it changes."""

    kernel: str
    arguments: tuple[Any, ...]
    changed: tuple[int, ...] = ()
    #: What the C function takes after the kernel's arguments.
    more: tuple[int, ...] = ()


def cases() -> Iterator[Case]:
    """Yield each kernel with arguments of N_ROWS rows."""
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], N_ROWS)
    z, dz = y + rng.standard_normal(N_ROWS), rng.standard_normal(N_ROWS)
    s = np.full(N_ROWS, 1.0 / N_ROWS)
    center, width = rng.random(N_ROWS), 2.0
    a, b = np.empty(N_ROWS), np.empty(N_ROWS)
    yield Case("hinge.value", (z, y, s))
    yield Case("hinge.subgradient", (z, y, s, 1e-10, a))
    yield Case("hinge.kinks_ahead", (z, dz, y, s, 1e-10, a, b))
    yield Case("hinge.squared_line", (z, dz, y, a, b))
    yield Case("hinge.squared_slope", (1.0 - y * z, -y * dz, s, 0.5))
    yield Case("hinge.envelope_dual", (z, y, s, center, width, a))
    yield Case("hinge.envelope_curvature", (z, y, s, center, width, 1e-9, a))
    yield Case("hinge.envelope_line", (z, dz, y, center, width, a, b))
    t, dt = center + (1.0 - y * z) / width, -y * dz / width
    yield Case("hinge.envelope_slope", (t, dt, s, width, 0.5))
    kinks = rng.exponential(size=N_ROWS)
    yield Case("piecewise.minimize", (-0.3, 0.0, kinks, s, np.zeros(N_ROWS)), (2, 3, 4))
    # As a9a: one of some categories in each of 14 columns, 11 % of the entries.
    columns = rng.integers(0, 9, (N_ROWS, 14)) + 9 * np.arange(14)
    categories = (
        np.ones(columns.size),
        columns.ravel().astype(np.int32),
        np.arange(0, columns.size + 1, 14, dtype=np.int32),
    )
    out = np.zeros((126, 126))
    position = np.arange(126, dtype=np.int32)
    yield Case("gram.add_half", (*categories, s, position, out), (5,), (126,))
    text = datasets.load(f"text:{N_ROWS}x47000x75")
    X = text.X
    squares = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    low, high = np.minimum(text.y, 0.0), np.maximum(text.y, 0.0)
    numbers = 0.0, 0.0, 1, N_ROWS
    order = np.arange(N_ROWS, dtype=np.int32)
    v, w = np.zeros(N_ROWS), np.zeros(X.shape[1])
    rows = X.data, X.indices, X.indptr, text.y, low, high, 0.0
    arguments = (*rows, 1e5 * s, squares, *numbers, order, v, w)
    yield Case("ascent.sweep", arguments, (13, 14, 15))


def compiled() -> ctypes.CDLL | None:
    """Return the loops of kernels.c, or None where there is no compiler."""
    if shutil.which("cc") is None:
        return None
    source = common.HERE / "kernels.c"
    with tempfile.TemporaryDirectory() as folder:
        library = str(Path(folder, "kernels.so"))
        command = ["cc", *C_OPTIONS, "-shared", "-fPIC", "-o", library, str(source)]
        subprocess.run([*command, "-lm"], check=True)
        return ctypes.CDLL(library)


def compare(case: Case, library: ctypes.CDLL, seconds: float) -> dict[str, float]:
    """Return the shortest times of kernel and C loop, called in turns.

    Before that, what they compute is compared.
    """
    file, name = case.kernel.split(".")
    kernel = getattr(KERNELS[file], name)
    loop = getattr(library, f"{file}_{name}")
    loop.restype = None
    result = np.zeros(2)
    mine, yours = list(case.arguments), list(case.arguments)
    for i, argument in enumerate(case.arguments):
        if isinstance(argument, np.ndarray):
            mine[i], yours[i] = argument.copy(), argument.copy()
    passed = [_for_c(argument) for argument in (*yours, *case.more, result)]
    times: dict[str, list[float]] = {"kernel": [], "c": []}
    end = time.process_time() + seconds
    while not times["c"] or time.process_time() < end:
        for arguments in (mine, yours):
            for i in case.changed:
                arguments[i][...] = case.arguments[i]
        begin = time.process_time()
        returned = kernel(*mine)
        middle = time.process_time()
        loop(ctypes.c_int64(N_ROWS), *passed)
        after = time.process_time()
        if not times["c"]:
            _assert_same(case, mine, yours, returned, result)
        times["kernel"].append(middle - begin)
        times["c"].append(after - middle)
    return {way: min(each) for way, each in times.items()}


def _for_c(argument: Any) -> Any:
    if isinstance(argument, np.ndarray):
        return ctypes.c_void_p(argument.ctypes.data)
    return (ctypes.c_double if isinstance(argument, float) else ctypes.c_int64)(
        argument
    )


def _assert_same(
    case: Case, mine: list[Any], yours: list[Any], returned: Any, result: Any
) -> None:
    if returned is not None:
        n_results = 1 if case.kernel == "piecewise.minimize" else 2
        numbers = np.atleast_1d(returned)[:n_results]
        np.testing.assert_allclose(result[: len(numbers)], numbers, rtol=1e-9)
    if case.kernel == "piecewise.minimize":
        return  # in which order it leaves the kinks is its own affair
    filled = int(result[1]) if case.kernel == "hinge.kinks_ahead" else None
    for a, b in zip(mine, yours, strict=True):
        if isinstance(a, np.ndarray):
            np.testing.assert_allclose(b[:filled], a[:filled], rtol=1e-9, atol=1e-12)


# Results


def render(results: dict[str, Any]) -> str:
    """Return the Markdown tables of the results."""
    rows = {
        part: [row for row in results["rows"] if row["part"] == part]
        for part in ("shares", "effects", "loops")
    }
    parts = []
    if rows["shares"]:
        packages = {row["label"]: row["package"] for row in rows["shares"]}
        parts.append(
            "Processor seconds of a fit (hinge loss or squared, solver and proven gap "
            "as named, alpha = 1e-5, no intercept): the median of five, and the shares "
            "of products with X / kernels / the rest, which is Python and NumPy. "
            + "; ".join(f"{k}: {v}" for k, v in packages.items())
            + "."
        )
        parts.append(_shares_table(rows["shares"]))
    if rows["effects"]:
        parts.append(
            "Fits with and without a file of kernels, in turns in one process: without "
            "`hinge` and `piecewise` the former NumPy, without `gram` BLAS, without "
            "`ascent` another start. Asked of each file: to make some benchmark "
            f"{FASTER} times faster."
        )
        header = ["kernels", "benchmark", "without, s", "with, s", "times faster"]
        lines = [
            [
                row["kernel"],
                row["benchmark"],
                f"{row['without']:.2f}",
                f"{row['with']:.2f}",
                f"{row['without'] / row['with']:.2f}",
            ]
            for row in rows["effects"]
        ]
        parts.append(common.markdown_table(header, lines))
    if rows["loops"]:
        parts.append(
            f"Each kernel on {N_ROWS} rows beside a straightforward loop in C (`cc "
            f"{' '.join(C_OPTIONS)}`, as the kernels), the shortest of many calls in "
            f"turns. Asked for: at most {OF_C} times as long."
        )
        header = ["kernel", "kernel, µs", "C, µs", "ratio"]
        lines = [
            [
                row["kernel"],
                f"{row['kernel_seconds'] * 1e6:.0f}",
                f"{row['c_seconds'] * 1e6:.0f}",
                f"{row['kernel_seconds'] / row['c_seconds']:.2f}",
            ]
            for row in rows["loops"]
        ]
        parts.append(common.markdown_table(header, lines))
    return "\n\n".join(parts)


def _shares_table(rows: list[dict[str, Any]]) -> str:
    by_benchmark: dict[str, dict[str, Any]] = {}
    for row in rows:
        by_benchmark.setdefault(row["benchmark"], {})[row["label"]] = row
    header = ["benchmark"]
    for label in LABELS:
        header += [f"{label}, s", "products / kernels / rest, %"]
    lines = []
    for benchmark, labels in by_benchmark.items():
        line = [benchmark]
        for label in LABELS:
            row = labels.get(label)
            line += _share_cells(row) if row else ["", ""]
        ratio = ""
        if len(labels) == len(LABELS):
            before, now = (_total(labels[label]) for label in LABELS)
            ratio = f"{before / now:.1f}"
        lines.append([*line, ratio])
    return common.markdown_table([*header, "times faster"], lines)


def _share_cells(row: dict[str, Any]) -> list[str]:
    total = _total(row)
    shares = (row[kind] / total for kind in ("products", "kernels", "rest"))
    return [f"{total:.2f}", " / ".join(f"{100 * share:.0f}" for share in shares)]


def _total(row: dict[str, Any]) -> float:
    return row["products"] + row["kernels"] + row["rest"]


def main() -> None:
    p = common.parser("Kernels: shares of fits, effects, loops in C.", DATA)
    p.add_argument("--parts", nargs="+", default=["shares", "effects", "loops"])
    p.add_argument("--label", default="now", choices=LABELS)
    p.add_argument("--repeats", type=int, default=5)
    p.add_argument("--seconds", type=float, default=2.0, help="per kernel and its loop")
    p.add_argument("--fresh", action="store_true", help="forget earlier results")
    args = p.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    results = common.Results(NAME, fresh=args.fresh)
    with threadpool_limits(1):
        for part, measure in PARTS.items():
            if part in args.parts:
                measure(args, results)
    print(common.write_markdown(NAME, render))


def shares_part(args: argparse.Namespace, results: common.Results) -> None:
    package = common.environment()["versions"]["sklearn-subqn"]
    for data, benchmarks in _by_data(BENCHMARKS, args):
        for benchmark in benchmarks:
            row = shares(benchmark, data, args.repeats)
            print(args.label, benchmark.name, row, flush=True)
            key = f"shares | {args.label} | {benchmark.name}"
            results.add(
                key,
                part="shares",
                label=args.label,
                package=package,
                benchmark=benchmark.name,
                **row,
            )


def effects_part(args: argparse.Namespace, results: common.Results) -> None:
    for kernel, chosen in EFFECTS.items():
        for data, benchmarks in _by_data(chosen, args):
            for benchmark in benchmarks:
                row = effect(kernel, benchmark, data, args.repeats)
                print(kernel, benchmark.name, row, flush=True)
                key = f"effects | {kernel} | {benchmark.name}"
                about = {"kernel": kernel, "benchmark": benchmark.name}
                results.add(key, part="effects", **about, **row)


def loops_part(args: argparse.Namespace, results: common.Results) -> None:
    library = compiled()
    if library is None:
        print("no C compiler (cc): the comparison with loops in C is left out")
        return
    for case in cases():
        times = compare(case, library, args.seconds)
        print(case.kernel, times, flush=True)
        row = {f"{way}_seconds": shortest for way, shortest in times.items()}
        results.add(f"loops | {case.kernel}", part="loops", kernel=case.kernel, **row)


PARTS: dict[str, Callable[[argparse.Namespace, common.Results], None]] = {
    "shares": shares_part,
    "effects": effects_part,
    "loops": loops_part,
}


def _by_data(
    benchmarks: list[Benchmark], args: argparse.Namespace
) -> Iterator[tuple[datasets.Dataset, list[Benchmark]]]:
    """Yield each data set asked for with its benchmarks."""
    for name in args.data:
        mine = [benchmark for benchmark in benchmarks if benchmark.data == name]
        if mine:
            yield datasets.load(name, args.data_dir, args.cache_dir), mine


if __name__ == "__main__":
    main()

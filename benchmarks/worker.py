"""The process in which one library fits; started by ``common.Worker`` only.

Every method gets ``fit(problem, settings, limit)`` and returns (seconds, w, b, facts).
What a library needs before its own clock runs (its own copy of the data, an input
file) is made once and not counted.
"""

from __future__ import annotations

import ctypes
import gc
import re
import subprocess
import sys
import time
import traceback
import tracemalloc
import warnings
from abc import ABC, abstractmethod
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import datasets
import numpy as np
from common import Problem
from scipy import sparse

Fit = tuple[float, Any, float, dict[str, Any]]


class Method(ABC):
    """One library, given its data once."""

    def __init__(self, data: datasets.Dataset, folder: Path, threads: int) -> None:
        self.X, self.y, self.folder, self.threads = data.X, data.y, folder, threads

    @abstractmethod
    def fit(self, problem: Problem, settings: dict[str, Any], limit: float) -> Fit:
        """Return the seconds, coefficients, intercept and further facts of a fit."""

    def cost(self, problem: Problem) -> float:
        """Return C of LIBLINEAR's objective, 1/(n alpha)."""
        return 1.0 / (self.X.shape[0] * problem.alpha)

    def timed(self, estimator: Any) -> tuple[float, Any]:
        """Return the seconds of a scikit-learn estimator's fit, and itself."""
        begin = time.perf_counter()
        estimator.fit(self.X, self.y)
        return time.perf_counter() - begin, estimator

    def linear(self, estimator: Any, **facts: Any) -> Fit:
        """Return what ``fit`` returns, for a scikit-learn estimator."""
        seconds, fitted = self.timed(estimator)
        b = getattr(fitted, "intercept_", 0.0)
        return seconds, np.ravel(fitted.coef_), float(np.ravel(b)[0]), facts


class Ours(Method):
    """This package."""

    def fit(self, problem: Problem, settings: dict[str, Any], limit: float) -> Fit:
        """Settings: solver, tol; stop_at, an objective at which to stop; max_passes."""
        from sklearn_subqn import SubLBFGSLinearSVC

        stop_at = settings.get("stop_at", -np.inf)
        max_passes = settings.get("max_passes", np.inf)

        def callback(progress: Any) -> bool:
            return bool(
                progress.objective <= stop_at
                or progress.seconds > limit
                or progress.passes > max_passes
            )

        estimator = SubLBFGSLinearSVC(
            problem.alpha,
            loss=problem.loss,
            solver=settings["solver"],
            fit_intercept=problem.intercept,
            tol=settings.get("tol", 0.0),
            max_iter=10**7,
            n_jobs=self.threads,
            callback=callback,
        )
        seconds, w, b, _ = self.linear(estimator)
        history = estimator.history_[0]
        facts: dict[str, Any] = {
            "n_iter": estimator.n_iter_,
            "objective": estimator.objective_,
            "dual_gap": estimator.dual_gap_,
            "passes": history.passes[-1],
            "memory": estimator.memory,
        }
        if settings.get("history"):
            facts["history"] = {
                "objective": history.objective,
                "lower_bound": history.lower_bound,
                "passes": history.passes,
                "seconds": history.seconds,
            }
        return seconds, w, b, facts


class LinearSVC(Method):
    """scikit-learn on LIBLINEAR."""

    def fit(self, problem: Problem, settings: dict[str, Any], limit: float) -> Fit:
        """Settings: dual, tol, max_iter, intercept_scaling."""
        from sklearn.svm import LinearSVC

        estimator = LinearSVC(
            C=self.cost(problem),
            loss=problem.loss,
            fit_intercept=problem.intercept,
            random_state=0,
            **settings,
        )
        return self.linear(estimator)


class SGD(Method):
    """scikit-learn."""

    def fit(self, problem: Problem, settings: dict[str, Any], limit: float) -> Fit:
        """Settings: max_iter, average."""
        from sklearn.linear_model import SGDClassifier

        estimator = SGDClassifier(
            loss=problem.loss,
            alpha=problem.alpha,
            fit_intercept=problem.intercept,
            tol=None,
            random_state=0,
            **settings,
        )
        return self.linear(estimator)


class Liblinear(Method):
    """The official package."""

    def __init__(self, data: datasets.Dataset, folder: Path, threads: int) -> None:
        super().__init__(data, folder, threads)
        from liblinear import liblinear

        self.module = liblinear
        self._libc = ctypes.CDLL(None)
        self._problems: dict[float, Any] = {}

    def _problem(self, bias: float) -> Any:
        # One for each bias, since ``set_bias`` of 2.50 cannot change a positive one.
        if bias not in self._problems:
            X = sparse.csr_matrix(self.X, dtype=np.float64)
            self._problems = {bias: self.module.problem(self.y, X, bias)}
        return self._problems[bias]

    def fit(self, problem: Problem, settings: dict[str, Any], limit: float) -> Fit:
        """Settings: s, the solver; e, the tolerance; B and R, the intercept."""
        lib = self.module
        options = f"-q -s {settings['s']} -e {settings['e']} -c {self.cost(problem)!r}"
        if problem.intercept:
            options += f" -B {settings['B']}" + (" -R" if settings.get("R") else "")
        parameter = lib.parameter(options)
        prepared = self._problem(parameter.bias)
        lib.liblinear.set_print_string_function(parameter.print_func)
        error = lib.liblinear.check_parameter(prepared, parameter)
        if error:
            raise ValueError(error)
        # Its order of rows comes from rand(), which goes on from fit to fit.
        self._libc.srand(1)
        begin = time.perf_counter()
        model = lib.liblinear.train(prepared, parameter)
        seconds = time.perf_counter() - begin
        content = model.contents
        size = content.nr_feature + problem.intercept
        w = np.ctypeslib.as_array(content.w, (size,)).copy() * content.label[0]
        lib.liblinear.free_and_destroy_model(ctypes.byref(model))
        if problem.intercept:
            return seconds, w[:-1], float(w[-1] * settings["B"]), {}
        return seconds, w, 0.0, {}


class SnapML(Method):
    """IBM Snap ML."""

    def fit(self, problem: Problem, settings: dict[str, Any], limit: float) -> Fit:
        """Settings: tol, max_iter, intercept_scaling."""
        from snapml import SupportVectorMachine

        estimator = SupportVectorMachine(
            loss=problem.loss,
            regularizer=1.0 / self.cost(problem),
            fit_intercept=problem.intercept,
            n_jobs=self.threads,
            random_state=0,
            **settings,
        )
        return self.linear(estimator)


class Cyanure(Method):
    """Cyanure; its squared hinge has a factor 1/2."""

    def fit(self, problem: Problem, settings: dict[str, Any], limit: float) -> Fit:
        """Settings: solver, tol, max_iter."""
        from cyanure.estimators import Classifier

        estimator = Classifier(
            loss="sqhinge",
            penalty="l2",
            lambda_1=0.5 * problem.alpha,
            fit_intercept=problem.intercept,
            verbose=False,
            n_threads=self.threads,
            **settings,
        )
        return self.linear(estimator)


class OCAS(Method):
    """svmocas, as a program; its seconds are its own, without reading its file."""

    def __init__(self, data: datasets.Dataset, folder: Path, threads: int) -> None:
        super().__init__(data, folder, threads)
        self.path = folder / "data.svmlight"
        if not self.path.exists():
            from sklearn.datasets import dump_svmlight_file

            partial = self.path.with_suffix(".part")
            dump_svmlight_file(
                self.X, self.y.astype(int), str(partial), zero_based=False
            )
            partial.replace(self.path)

    def fit(self, problem: Problem, settings: dict[str, Any], limit: float) -> Fit:
        """Settings: r, tolerance of its own gap; q, an objective to stop at; B."""
        model = self.folder / f"model{self.threads}"
        # Its objective is that of LIBLINEAR, J / alpha.
        q = settings.get("q", 0.0) / problem.alpha
        B = settings.get("B", 1.0) if problem.intercept else 0.0
        command = f"svmocas -c {self.cost(problem)!r} -b {B} -p {self.threads}"
        command += f" -r {settings.get('r', 0.0)!r} -q {q!r} -t {limit!r}"
        output = subprocess.run(
            [*command.split(), str(self.path), str(model)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        seconds = re.search(r"ocas_time\s*: ([\d.]+)", output)
        primal, dual = re.findall(r"Q_P=([-\d.]+), Q_D=([-\d.]+)", output)[-1]
        assert seconds is not None
        w = np.zeros(self.X.shape[1])
        *stored, last = np.loadtxt(model)
        w[: len(stored)] = stored
        facts = {
            "objective": float(primal) * problem.alpha,
            "dual_gap": (float(primal) - float(dual)) * problem.alpha,
        }
        return float(seconds[1]), w, float(last * B), facts


METHODS: dict[str, type[Method]] = {
    "ours": Ours,
    "linearsvc": LinearSVC,
    "sgd": SGD,
    "liblinear": Liblinear,
    "snapml": SnapML,
    "cyanure": Cyanure,
    "ocas": OCAS,
}


def measure(method: Method, traced: bool, **arguments: Any) -> tuple[Fit, float]:
    """Return a fit and the bytes that it took beyond what was there before.

    Either the growth of the resident set of the process, or that of the arrays and
    objects which Python and NumPy allocate.
    """
    _warm_up(method, arguments)
    gc.collect()
    if traced:
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        fit = method.fit(**arguments)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return fit, float(peak - before)
    # Sets the peak of the resident set back to its present size (Linux only).
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    fit = method.fit(**arguments)
    return fit, float(_status("VmHWM") - before)


def _status(field: str) -> int:
    text = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(rf"{field}:\s+(\d+)", text)[1])  # type: ignore[index]


def _warm_up(method: Method, arguments: dict[str, Any]) -> None:
    """Fit to a few rows, so that imports and buffers of BLAS do not count."""
    X, y = method.X, method.y
    rows = np.concatenate([np.flatnonzero(y > 0)[:20], np.flatnonzero(y < 0)[:20]])
    method.X, method.y = X[rows], y[rows]
    method.fit(**{**arguments, "limit": 1.0})
    method.X, method.y = X, y


def main(connection: Connection) -> None:
    kind, name, folder, threads = connection.recv()
    warnings.simplefilter("ignore")
    method: Method | None = None
    try:
        data = datasets.open_saved(name, Path(folder))
        method = METHODS[kind](data, Path(folder), threads)
        connection.send((False, None))
    except Exception:
        connection.send((True, traceback.format_exc()))
    while method is not None:
        try:
            command, arguments = connection.recv()
        except EOFError:
            return
        gc.collect()
        try:
            if command == "measure":
                answer: Any = measure(method, **arguments)
            else:
                answer = method.fit(**arguments)
            connection.send((False, answer))
        except Exception:
            connection.send((True, traceback.format_exc()))


if __name__ == "__main__":
    main(Connection(int(sys.argv[1])))

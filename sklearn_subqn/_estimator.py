"""What all linear estimators share: from data to fitted attributes."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import joblib
import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import d2_tweedie_score
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from ._callbacks import CallbackSupportMixin, ProblemTask
from ._core.certificate import CutBundle
from ._core.columns import own_columns
from ._core.line_search import rounding_of, settle
from ._core.losses import Loss
from ._core.objective import Objective, Point
from ._core.regularizers import L2
from ._core.solvers import (
    SOLVERS,
    History,
    Options,
    Result,
    SolverSpec,
    Start,
    run,
)
from ._process import isolated
from ._validation import (
    check_labels,
    check_option,
    check_range,
    check_sparse_structure,
    did_you_mean,
    plain_csr,
    user_level,
)

Floats = npt.NDArray[np.float64]

#: Types of X that are kept as they are; everything else becomes float64.
DTYPES = (np.float64, np.float32)

# Cuts kept for the lower bound, at most; fewer where q-vectors are large against X, and
# all of them large against the second number of entries.
_MAX_CUTS, _FEW_ENTRIES = 40, 2**15
_MIN_CUTS = 6

# With solver="auto", problems of at most this many entries are solved to this gap
# whatever tol is, or nearly if that takes many times longer: they take milliseconds,
# and the result does not depend on the order or repetition of rows. Losses that count
# rows take longer, and know no weights: they are left out. With an L1 penalty,
# coefficients are less certain than the objective: no gap will do, and the solver goes
# on until nothing moves any more, or its gap falls slowly; unless the loss has kinks,
# where solvers of cuts know no such end.
_SMALL = 20_000
_EXACT, _NEARLY_EXACT, _NEVER = 1e-13, 1e-10, -1.0

# Rounding coefficients to float32 goes without a warning if the relative gap stays
# below this or twice the tolerance, or the gap below this share of the objective at
# zero, as where that of the optimum nearly vanishes.
_ROUNDED, _LOST = 1e-4, 4.0 * float(np.finfo(np.float32).eps)

# Coefficients that differ by so much, relative to the largest, are the same.
_SAME = 1e-15

# Scores are kept to this share of the sum of the absolute values that they are sums of,
# which are made of so many entries of X at a time.
_LAST_DIGITS = 1e-12
_ENTRIES_AT_ONCE = 2**18

# With verbose=1, lines are printed at powers of two, and after so many seconds.
_QUIET = 5.0

# A model does not use its features if they lower the objective by no more than is
# proven of it, and by less than this share of it; or, whatever is proven, by rounding
# of the objective. Less than this share of what there is to lower is nothing.
_NO_USE, _SAME_OBJECTIVE, _NOTHING = 1e-3, 1e-6, 1e-9

# Problems that a warning names.
_MOST_NAMED = 5

# Scores of sparse rows with so many times more columns than entries look at their own
# columns alone: those of one row in 2^20 columns take a tenth of the time.
_NARROW = 16

# More threads than this are surely a mistake, and could exhaust the system.
_MAX_THREADS = 256


class Progress(NamedTuple):
    """What a ``callback`` is told after each iteration.

    Attributes
    ----------
    n_iter : int
        Number of the iteration; 0 is the starting point.
    objective : float
        The smallest objective so far.
    dual_gap : float
        Proven bound on its distance from the optimum, ``inf`` before there is one.
    passes : float
        Products with X or its transpose so far.
    seconds : float
        Wall-clock time so far.
    """

    n_iter: int
    objective: float
    dual_gap: float
    passes: float
    seconds: float


@dataclass
class Solution:
    """Parameters, objective and certificate of one fitted problem.

    ``proven`` tells whether the tolerance was reached, or a callback ended the run, and
    ``constant`` whether the coefficients are of no use: zero would do as well.
    """

    w: Floats
    objective: float
    dual_gap: float
    n_iter: int
    history: History
    dual: Floats | None
    scores: Floats
    drift: float
    proven: bool
    constant: bool

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the objective."""
        return _relative(self.dual_gap, self.objective)

    @property
    def start(self) -> Start:
        """Where a fit of a similar problem may start."""
        return Start(self.w, self.dual, self.scores, self.drift)


class ScoringRegressor(RegressorMixin):
    """Base of regressors: scores of predictions."""

    loss: Any
    predict: Callable[[Any], Any]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of what there is to explain that predictions explain.

        That is the coefficient of determination R², as of all regressors of
        scikit-learn; for ``loss="poisson"`` its likeness D² for Poisson deviances, as
        of :class:`~sklearn.linear_model.PoissonRegressor`. Of several columns of y it
        is the mean.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        score : float
            At most 1; 0 for the best constant.
        """
        if isinstance(self.loss, Loss) or self.loss != "poisson":
            return float(super().score(X, y, sample_weight))
        # Counts are not zero, if expected ones are too small for a number.
        expected = np.maximum(self.predict(X), np.finfo(np.float64).tiny)
        y = np.asarray(y)
        shape = (len(y), -1)
        columns = zip(y.reshape(shape).T, expected.reshape(shape).T, strict=True)
        scores = [
            d2_tweedie_score(counts, of, sample_weight=sample_weight, power=1)
            for counts, of in columns
        ]
        return float(np.mean(scores))


class Estimator(CallbackSupportMixin, BaseEstimator):
    """Base of all estimators."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse parameters of other names with a word on what to give instead."""
        known = inspect.signature(cls.__init__).parameters
        if all(known[name].kind != known[name].VAR_KEYWORD for name in known):
            for name in kwargs:
                if name not in known:
                    raise TypeError(_unexpected(cls.__name__, name, list(known)))
        return super().__new__(cls)


class LinearEstimator(Estimator):
    """Base of estimators with ``coef_`` and ``intercept_`` of one row per output."""

    def _check_X(
        self,
        X: Any,
        y: Any = "no_validation",
        *,
        reset: bool,
        several: bool = False,
        numeric: bool = False,
    ) -> Any:
        """Return X, or X and y, validated; corrupted sparse input is refused first.

        With ``several`` y may have several columns, and be sparse; with ``numeric`` it
        must be numbers.
        """
        check_sparse_structure(X)
        check_labels(y)
        validated = validate_data(
            self,
            X,
            y,
            accept_sparse="csr",
            dtype=DTYPES,
            # Done by ``check_range``, with one reading for both.
            ensure_all_finite=False,
            reset=reset,
            **({"multi_output": True} if several else {}),
            **({"y_numeric": True} if numeric else {}),
        )
        if not isinstance(validated, tuple):
            X = plain_csr(validated)
            check_range(X, type(self).__name__)
            return X
        X = plain_csr(validated[0])
        check_range(X, type(self).__name__)
        return X, *validated[1:]

    def _same_features(self, previous: dict[str, Any]) -> bool:
        """Whether a previous fit, by its attributes, was of the same features."""
        return (
            "coef_" in previous
            and previous["coef_"].shape[-1] == self.n_features_in_
            and np.array_equal(
                previous.get("feature_names_in_", ()),
                getattr(self, "feature_names_in_", ()),
            )
        )

    def _raw_scores(self, X: Any) -> npt.NDArray[Any]:
        """Return X @ coef_.T + intercept_ of shape (n_samples, n_outputs)."""
        check_is_fitted(self)
        return self._scores(self._check_X(X, reset=False))

    def _scores(self, X: Any) -> npt.NDArray[Any]:
        """Return the scores of checked samples, in float64 without their last digits.

        Exact solutions put samples exactly on the margins of several classes. Rounding
        keeps such ties, which else are broken by how BLAS happens to sum batches of one
        size or another. What is left out is small beside what scores are sums of, for
        any scales of features.
        """
        if is_narrow(X):
            columns, X = own_columns(X)
            coef = self._coef_at(columns)
        else:
            coef = self.coef_
        scores = safe_sparse_dot(X, coef.T, dense_output=True)
        scores += self.intercept_
        if scores.dtype != np.float64:
            return np.asarray(scores)
        sizes = _largest_sums(X, coef)
        sizes += np.max(np.abs(self.intercept_), initial=0.0)
        # Powers of two, so that scaling is exact.
        _, exponents = np.frexp(_LAST_DIGITS * sizes)
        units = np.ldexp(1.0, np.maximum(exponents, -1000))
        rows = scores.T
        rows /= units
        np.round(rows, out=rows)
        rows *= units
        return np.asarray(scores)

    def _coef_at(self, columns: npt.NDArray[np.intp]) -> Any:
        """Return the coefficients of some columns, of shape (k, c), or (c,)."""
        coef: Any = self.coef_
        return coef[:, columns] if coef.ndim == 2 else coef[columns]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _unexpected(class_name: str, name: str, known: list[str]) -> str:
    """Return what to say of a parameter that there is not."""
    message = f"{class_name}() got an unexpected keyword argument {name!r}."
    if name == "C" and "alpha" in known:
        return (
            f"{message} Its strength of regularization is alpha, against the mean of "
            "the loss instead of the sum: alpha = 1 / (C * n_samples)."
        )
    return message + did_you_mean(name, known)


def is_narrow(X: Any) -> bool:
    """Whether X is sparse, with entries in few of its columns."""
    return sparse.issparse(X) and X.shape[1] > _NARROW * max(X.nnz, 1)


def _largest_sums(X: Any, coef: Any) -> npt.NDArray[Any]:
    """Return |X| times the largest of each feature's |coef|, of shape (n_samples,)."""
    if sparse.issparse(coef):
        coef = coef.toarray()
    coef = np.abs(np.atleast_2d(coef)).max(axis=0)
    if sparse.issparse(X):
        absolute = type(X)((np.abs(X.data), X.indices, X.indptr), shape=X.shape)
        return np.asarray(absolute @ coef)
    step = max(1, _ENTRIES_AT_ONCE // X.shape[1])
    parts = [np.abs(X[i : i + step]) @ coef for i in range(0, len(X), step)]
    return np.concatenate(parts)


def check_solver(solver: str, name: str, loss: Loss) -> None:
    """Raise ValueError unless the solver is known and can minimize the named loss."""
    check_option("solver", solver, list(SOLVERS))
    if not SOLVERS[solver].supports(loss):
        options = ", ".join(repr(k) for k, v in SOLVERS.items() if v.supports(loss))
        raise ValueError(
            f"solver={solver!r} does not support loss={name!r}; solvers that do are "
            f"{options}."
        )


def forget(estimator: Any, *names: str) -> None:
    """Remove fitted attributes that are not of the last fit, if there are any."""
    for name in names:
        if hasattr(estimator, name):
            delattr(estimator, name)


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads, from joblib's context where ``n_jobs`` is None."""
    return min(int(joblib.effective_n_jobs(n_jobs)), _MAX_THREADS)


def solve(
    objective: Objective,
    start: Start,
    solver: str,
    options: Options,
    *,
    tol: float,
    max_iter: int,
    dtype: npt.DTypeLike,
    label: str,
    verbose: int,
    callback: Callable[[Progress], Any] | None,
    task: ProblemTask,
    fitted: Callable[[Floats], dict[str, Any]],
    solvers: Mapping[str, SolverSpec] = SOLVERS,
    stored: Callable[[Floats], Floats] | None = None,
) -> Solution:
    """Minimize the objective and evaluate it at the parameters as they are returned.

    Parameters
    ----------
    objective, start, solver, options
        The problem, its starting point, and a name from ``SOLVERS`` with settings.
    tol, max_iter
        As in ``run``.
    dtype : dtype
        Type in which coefficients will be stored.
    label : str
        Name of the problem, for ``verbose`` output and warnings.
    verbose : int
        Print a line at iterations 0, 1, 2, 4, ..., and after every five seconds, if
        positive; at all if above 1.
    callback, task, fitted
        The user's progress hook; scikit-learn's callback task; what the latter may ask
        for at a point w.
    solvers : dict
        The registry that has the solver.
    stored : callable, optional
        From parameters to those that the attributes will tell, after the rounding to
        ``dtype``. By default they are rounded each.

    Raises
    ------
    ValueError
        If the objective overflows.
    """
    printed = 0.0

    def report(result: Result) -> bool:
        nonlocal printed
        history = result.history
        progress = Progress(
            result.n_iter,
            result.point.value,
            result.gap,
            history.passes[-1],
            history.seconds[-1],
        )
        due = progress.n_iter.bit_count() <= 1 or progress.seconds - printed >= _QUIET
        if verbose > 1 or (verbose and due):
            printed = progress.seconds
            print(_describe(label, progress))
        gap = _relative(progress.dual_gap, progress.objective)
        stop = task.iteration(lambda: fitted(result.point.w), gap)
        if callback is not None:
            stop = bool(callback(progress)) or stop
        return stop

    small = objective.design.n_rows * objective.n_params <= _SMALL
    small = small and not objective.loss.counts_rows
    by_cuts = objective.loss.joint or not objective.loss.analytic
    exact = _EXACT if by_cuts or objective.regularizer.smooth else _NEVER
    # Bundles turn cuts into bounds for L2 only; other solvers bring their own.
    bundle = None
    if isinstance(objective.regularizer, L2) and not solvers[solver].proves:
        bundle = CutBundle(objective, _bundle_size(objective))
    passes = objective.passes
    aim = min(tol, exact) if small and solver == "auto" else tol
    # Rounding, which bounds are charged for, may keep them from more than that.
    enough = tol if aim == _NEVER else 0.0 if aim == tol else min(tol, _NEARLY_EXACT)

    @isolated
    def minimized() -> tuple[Result, Floats, Point, float]:
        """Return the result, and parameters as they are stored with their value."""
        steep = objective.loss.steep
        result = run(
            solvers[solver].start(
                objective,
                _better_start(objective, start) if steep else start,
                replace(options, tol=aim),
            ),
            tol=aim,
            max_iter=max_iter,
            enough=enough,
            asked=tol if aim < tol else 0.0,
            bundle=bundle,
            passes=lambda: objective.passes - passes,
            report=report,
        )
        point = result.point.centered()
        w = stored(point.w) if stored else point.w.astype(dtype)
        w = w.astype(np.float64)
        # Shares in float32 do not sum to one; the objective is that of shares.
        inside = objective.regularizer.nearest(w)
        change = float(np.abs(inside - point.w).max(initial=0.0))
        same = change <= _SAME * float(np.abs(w).max(initial=0.0))
        point = point.refreshed() if same else objective.at(inside)
        return result, w, point, point.value

    try:
        result, w, point, value = minimized()
    except (FloatingPointError, OverflowError, np.linalg.LinAlgError) as error:
        raise ValueError(
            f"Fitting {label} broke down numerically ({error}). Values of X, y, "
            "alpha or costs are too extreme; scale the features, for example by "
            "sklearn.preprocessing.MaxAbsScaler, or numbers y."
        ) from error
    if not np.isfinite(value) or not np.all(np.isfinite(w)):
        raise ValueError(
            f"Fitting {label} gave coefficients that are not finite as "
            f"{np.dtype(dtype).name}. Scale the features or increase alpha."
        )
    targets, weights = objective.targets, objective.weights
    if objective.loss.overflows(point.scores, targets, weights):
        raise ValueError(
            f"Fitting {label} ended where exponentials of scores overflow. Scale the "
            "features or the targets, or choose another alpha."
        )
    gap = max(value - result.lower_bound, 0.0)
    while value - gap > result.lower_bound:
        # By the rounding of the difference.
        gap = float(np.nextafter(gap, np.inf))
    if verbose:
        print(f"{label}: {result.status}, relative gap {_relative(gap, value):.1e}")
    reached = result.gap <= tol * abs(result.point.value)
    # As of targets that are all the same, with an optimum of zero.
    proven, status = reached or result.status == "callback", result.status
    proven = proven or result.gap <= rounding_of(result.point)
    raised = reached and gap > max(2.0 * tol, _ROUNDED) * abs(value)
    if raised and dtype == np.float32 and gap > _LOST * abs(objective.origin().value):
        proven, status = False, "rounded"
    if task.warns and not proven:
        faster = solver != "auto" and "auto" in solvers
        _warn(label, status, result.n_iter, gap, value, tol, max_iter, faster)
    return Solution(
        w,
        value,
        gap,
        result.n_iter,
        result.history,
        result.dual,
        point.scores,
        point.drift,
        proven,
        reached and _is_constant(objective, w, value, gap),
    )


def _is_constant(objective: Objective, w: Floats, value: float, gap: float) -> bool:
    """Whether parameters, all but the free ones zero, would do as well as w."""
    free = w[objective.regularizer.n_penalized :]
    if objective.regularizer.center(len(w)).any():
        return False
    origin = objective.origin()
    constant = origin.along_free(free).value(1.0) if free.any() else origin.value
    if constant - objective.risk_infimum <= _NOTHING * abs(constant):
        # Features have nothing to do: no surprise where all targets are equal.
        targets = objective.targets[objective.weights > 0.0]
        if np.all(targets == targets[0]):
            return False
    size = abs(constant)
    least = min(gap + _SAME_OBJECTIVE * size, _NO_USE * size)
    return constant - value <= least


def warn_of_constants(
    name: str, solutions: list[Solution], instead: str, parts: Any = None
) -> None:
    """Warn once if fitted problems have solutions that do not use the features.

    Parameters
    ----------
    name : str
        Of the estimator.
    solutions : list of Solution
    instead : str
        What to do where a smaller ``alpha`` does not help.
    parts : sequence, optional
        What each of several problems is for, such as its class.
    """
    found = [index for index, solution in enumerate(solutions) if solution.constant]
    if not found:
        return
    of = ""
    if len(solutions) > 1:
        names = [str(parts[i] if parts is not None else i) for i in found]
        shown = ", ".join(names[:_MOST_NAMED])
        shown += ", ..." if len(names) > _MOST_NAMED else ""
        of = f" for {len(found)} of {len(solutions)} problems ({shown})"
    warnings.warn(
        f"{name} makes no use of the features{of}: its objective is proven to be "
        "about as small with all coefficients zero. Scale features that are tiny, and "
        f"decrease alpha or tol. Where that changes nothing, {instead}.",
        UserWarning,
        stacklevel=user_level(),
    )


def _better_start(objective: Objective, start: Start) -> Start:
    """Return the start, or the usual one if that is better.

    Solutions of other data may lie where exponentials overflow, far from any other.
    """
    center = objective.regularizer.center(objective.n_params)
    if np.array_equal(start.w, center):
        return start
    with np.errstate(all="ignore"):
        value = settle(start.at(objective)).value
    usual = Start(center)
    return start if value <= settle(usual.at(objective)).value else usual


def log_probabilities(scores: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return logarithms of the softmax of scores, of shape (n_samples, n_classes).

    One column of scores is that of the second of two classes; scores are overwritten.
    """
    if scores.shape[1] == 1:
        scores = np.hstack([np.zeros_like(scores), scores])
    scores -= scores.max(axis=1, keepdims=True)
    scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return scores


def _bundle_size(objective: Objective) -> int:
    affordable = max(objective.design.nbytes // 16, _FEW_ENTRIES) // objective.n_params
    return int(np.clip(affordable, _MIN_CUTS, _MAX_CUTS))


def _relative(gap: float, value: float) -> float:
    return gap / abs(value) if value else (0.0 if gap == 0.0 else np.inf)


def _describe(label: str, progress: Progress) -> str:
    return (
        f"{label}: iteration {progress.n_iter:4d}  objective {progress.objective:.8g}  "
        f"relative gap {_relative(progress.dual_gap, progress.objective):.1e}  "
        f"passes {progress.passes:.1f}  {progress.seconds:.2f} s"
    )


def _warn(
    label: str,
    status: str,
    n_iter: int,
    gap: float,
    value: float,
    tol: float,
    max_iter: int,
    faster: bool,
) -> None:
    other = "solver='auto'" if faster else "another solver"
    or_other = f", or choose {other}" if faster else ""
    reasons = {
        "max_iter": (
            f"reached max_iter={max_iter}",
            f"Increase max_iter or tol{or_other}",
        ),
        "stalled": (
            "stopped because it no longer made progress",
            f"Increase tol, choose {other}, scale the features, or increase alpha",
        ),
        "rounded": (
            "lost precision as its coefficients were rounded to float32,",
            "Convert X to float64, or scale the features",
        ),
    }
    plural = "" if n_iter == 1 else "s"
    reason, advice = reasons.get(
        status,
        (
            f"stopped where it found no better point ({status})",
            f"Increase tol, choose {other}, or scale the features",
        ),
    )
    warnings.warn(
        f"Fitting {label} {reason} after {n_iter} iteration{plural}. Its objective "
        f"{value:.6g} is proven to be within {gap:.2g} of the optimum, a relative gap "
        f"of {_relative(gap, value):.1e}; tol={tol:g} was asked for. {advice}.",
        ConvergenceWarning,
        stacklevel=user_level(),
    )

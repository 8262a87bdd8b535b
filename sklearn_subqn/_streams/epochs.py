"""Fits of online estimators by epochs, with early stopping or a convergence test."""

from __future__ import annotations

import copy
import time
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from .._core.arrays import Array, Floats, Indices
from .._core.losses._base import Rows
from .._core.online import ConvergenceTest, State
from .._core.online.auto import AdaptiveLBFGS, AutoState
from .._core.online.losses_with_curvature import OnlineLoss
from .._core.online.sparse_columns import ColumnState, ColumnwiseLBFGS
from .._core.rows.columns import own_columns
from .._core.solvers import History, Start, Status, size_of
from .._estimators.estimator import store_solutions
from .._problems import InputFeatures
from .._solving.callbacks import FitTask
from .._solving.report import Report
from .._solving.solution import Progress, Solution
from .stream import StreamEstimator, equal_parts, is_given

# Minimum number of batches in the convergence test. The average over fewer batches
# would mostly be noise.
_MIN_PATIENCE = 30

# A fit leaves out the columns without entries if at most one column in four has
# entries. docs/constants.md has the figures.
_MANY = 4


class OnlineEstimator(StreamEstimator):
    """Base class of estimators with ``partial_fit`` that also fit data by epochs."""

    def _fit_epochs(
        self,
        X: Any,
        targets: Floats,
        weights: Floats,
        loss: OnlineLoss,
        n_outputs: int | None,
        previous: dict[str, Any],
        labels: Array | None,
        unit: float,
        task: FitTask,
        init: tuple[Any, Any],
    ) -> None:
        """Fit validated data by epochs, from the previous parameters if they match.

        Parameters
        ----------
        X, targets, weights, loss, n_outputs
            As in ``_partial_fit``; the weights in any unit.
        previous : dict
            The attributes of the previous fit.
        labels : ndarray of shape (n,) or None
            Classes of the rows, for classifiers.
        unit : float
            The mean of the positive weights as given; weights of later batches are
            relative to this mean.
        task : FitTask
        init : tuple
            Initial coefficients and intercepts, or None.
        """
        used = weights > 0.0
        if not used.all():
            X, targets, weights = X[used], targets[used], weights[used]
            labels = labels if labels is None else labels[used]
        rng = _generator(self.random_state)
        held_out = None
        if self.early_stopping:
            rows, out = self._held_out(len(targets), labels, rng)
            y = targets if labels is None else labels
            held_out = X[out], y[out], weights[out]
            X, targets, weights = X[rows], targets[rows], weights[rows]
        # Rescale the weights to the mean one, so that the loss is a weighted mean over
        # rows.
        weights = weights * (len(weights) / weights.sum())
        # The gradient at a warm start is mostly noise, and gives no scale for later
        # gradients. The scale of the previous fit is used.
        w0 = self._known_parameters(previous)
        self._unit = 0.0 if w0 is None else previous.get("_unit", 0.0)
        if is_given(init):
            if w0 is None:
                w0 = self._start_parameters(X, targets, weights, n_outputs)
            w0 = self._started(w0, n_outputs, *init)
        columns = None
        if isinstance(self._method(), ColumnwiseLBFGS):
            columns, X, w0 = _with_entries(X, w0, n_outputs or 1)
        if w0 is None:
            w0 = self._start_parameters(X, targets, weights, n_outputs)
        self._begin(X, n_outputs, w0)
        stream = self._stream
        if isinstance(stream.method, ColumnwiseLBFGS):
            k, n_batches = n_outputs or 1, -(-X.shape[0] // self.batch_size)
            n_entries = X.nnz / n_batches if sparse.issparse(X) else np.inf
            l1 = self._penalty().l1
            method: Any = stream.method.in_fit(X.shape[1] * k, n_entries, l1)
            self._stream = stream._replace(method=method)
        self._columns = columns
        name = type(self).__name__
        settings = self._settings_of_solver()
        report = Report(
            name, lambda w: self._stored(), None, settings, task, by_gap=False
        )
        status, history = self._epochs(X, targets, weights, loss, rng, held_out, report)
        self._stream = stream
        self._weight *= unit
        whole = self._batch(X, targets, weights / len(weights), loss)
        w = self._state.w.astype(self._dtype, copy=False)
        w = w.astype(np.float64, copy=False)
        if self._shift is not None:
            coef = np.atleast_2d(self.coef_).astype(np.float64)
            w = np.append(coef.T, self._shift.inward(coef, self.intercept_))
        value = whole.value(w)
        asked = (
            f"tol={self.tol:g}, a norm of averaged gradients relative to the first one,"
            if held_out is None
            else f"tol={self.tol:g}, the least rise of the score of the rows held out,"
        )
        solution = Solution(
            Start(w),
            value,
            np.inf,
            len(self.loss_curve_),
            history,
            proven=status is not Status.MAX_ITER,
            constant=False,
            size=size_of(value, 0.0),
            plan=self.solver,
            status=status,
            asked=asked,
        )
        store_solutions(self, [solution])
        report.end(solution)
        task.end()

    def _known_parameters(self, previous: dict[str, Any]) -> Floats | None:
        """Return the parameters of a previous fit of the same classes and features."""
        if not InputFeatures.of(self).are_those_of(previous):
            return None
        # Lists are compared, since old NumPy warns about comparing numbers with
        # strings.
        before, now = (
            np.asarray(model.get("classes_", ())).tolist()
            for model in (previous, vars(self))
        )
        if before != now:
            return None
        w = previous["coef_"].T.ravel()
        if self.fit_intercept:
            w = np.append(w, previous["intercept_"])
        return np.asarray(w, dtype=np.float64)

    def _held_out(
        self, n: int, labels: Array | None, rng: np.random.RandomState
    ) -> tuple[Indices, Indices]:
        """Return the training rows and the held-out rows."""
        hint = (
            f"early_stopping holds out validation_fraction={self.validation_fraction!r}"
            f" of {n} rows, which is too few to score by. Choose another "
            "validation_fraction, or early_stopping=False."
        )
        try:
            rows, out = train_test_split(
                np.arange(n),
                test_size=self.validation_fraction,
                random_state=rng,
                stratify=labels,
            )
        except ValueError as error:
            raise ValueError(f"{hint} ({error})") from error
        if len(out) < 2:
            raise ValueError(hint)
        return rows, out

    def _score_of_arrays(self, X: Any, y: Any, weights: Floats) -> float:
        """Return ``score`` on validated arrays, which have no column names."""
        nameless: Any = copy.copy(self)
        vars(nameless).pop("feature_names_in_", None)
        return float(nameless.score(X, y, weights))

    def _residual(self, state: State) -> Floats:
        """Return the residual whose running average the convergence test measures."""
        method = self._stream.method
        if isinstance(state, ColumnState):
            return state.residual
        if isinstance(method, AdaptiveLBFGS) and isinstance(state, AutoState):
            return method.residual(state, float(self.alpha) * float(self.l1_ratio))
        return state.gradient

    def _epochs(
        self,
        X: Any,
        targets: Floats,
        weights: Floats,
        loss: OnlineLoss,
        rng: np.random.RandomState,
        held_out: tuple[Any, Any, Floats] | None,
        report: Report,
    ) -> tuple[Status, History]:
        """Run epochs over all rows, each in a new random order.

        Returns the reason for the end, and the history of the epochs.
        """
        n = X.shape[0]
        batches = equal_parts(n, -(-n // self.batch_size))
        patience = max(len(batches), _MIN_PATIENCE)
        test = ConvergenceTest(float(self.tol), patience, float(patience))
        average = test.start()
        status = Status.MAX_ITER
        best, n_worse = (-np.inf, self._state), 0
        most_worse = max(self.n_iter_no_change, -(-_MIN_PATIENCE // len(batches)))
        self.loss_curve_: list[float] = []
        scores: list[float] = []
        self.validation_scores_ = None if held_out is None else scores
        history, begin = History(), time.perf_counter()
        whole = self._batch(X, targets, weights / n, loss)
        started = bool(np.any(self._state.w[: whole.n_coef]))
        n_params = len(self._state.w)
        # Scores may overflow at a start from the solution of another problem.
        with np.errstate(all="ignore"):
            self._record(history, whole.value(self._state.w), 0.0)
        for epoch in range(1, self.max_iter + 1):
            order = rng.permutation(n)
            total = 0.0
            for batch in batches:
                rows = order[batch]
                state = self._learn(X[rows], targets[rows], weights[rows], loss)
                total += len(rows) * state.value
                residual = self._residual(state)
                if started and not self._unit:
                    # The residual is divided by the norm of the gradient at zero, since
                    # near the optimum the first residual is mostly sampling noise.
                    own = self._batch(X[rows], targets[rows], weights[rows], loss)
                    at_zero = own.value_and_gradient(np.zeros(n_params))[1]
                    self._unit = float(np.linalg.norm(at_zero))
                self._unit = self._unit or float(np.linalg.norm(residual))
                average = test.step(average, residual / (self._unit or 1.0))
            self.loss_curve_.append(total / n)
            converged = held_out is None and test.passed(average)
            if held_out is not None:
                self._show()
                score = self._score_of_arrays(*held_out)
                scores.append(score)
                n_worse = 0 if score > best[0] + self.tol else n_worse + 1
                if score > best[0]:
                    best = score, self._state
                converged = n_worse >= most_worse
            lowest, seconds = min(self.loss_curve_), time.perf_counter() - begin
            self._record(history, min(lowest, history.objective[-1]), seconds)
            progress = Progress(epoch, lowest, np.inf, float(epoch), seconds)
            # The parameters are not needed, since the report reads them from the
            # estimator.
            if report.iteration(progress, np.empty(0)):
                status = Status.CALLBACK
                break
            if converged:
                status = Status.CONVERGED
                break
        if held_out is not None:
            self._state = best[1]
        self._show()
        return status, history

    def _record(self, history: History, value: float, seconds: float) -> None:
        """Append the start or an epoch to the history."""
        history.passes.append(float(len(history)))
        history.objective.append(value)
        history.lower_bound.append(-np.inf)
        history.seconds.append(seconds)
        history.phase.append(self.solver)


def _with_entries(
    X: Any, w0: Floats | None, k: int
) -> tuple[Rows | None, Any, Floats | None]:
    """Return the columns of X with entries, and X and w0 restricted to them.

    A column without entries and with zero coefficients in w0 keeps zero coefficients.
    The columns are None, for no restriction, where more than one column in four has
    entries.
    """
    d = X.shape[1]
    if not sparse.issparse(X):
        return None, X, w0
    if w0 is None:
        columns, own = own_columns(X)
    else:
        coef = w0[: d * k].reshape(d, k)
        columns, own = own_columns(X, np.flatnonzero(coef.any(axis=1)))
    if _MANY * len(columns) > d:
        return None, X, w0
    if w0 is not None:
        w0 = np.append(coef[columns], w0[d * k :])
    return columns, own, w0


def _generator(random_state: Any) -> np.random.RandomState:
    if random_state is None:
        return np.random.RandomState()
    return check_random_state(random_state)

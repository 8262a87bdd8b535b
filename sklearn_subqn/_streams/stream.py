"""Base class of online estimators: parameters, steps and ``partial_fit``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from .._checks import (
    check_number,
    check_option,
    check_parameters,
    check_start,
    checked_options,
)
from .._checks.signatures import with_parameters
from .._core.arrays import Floats
from .._core.names import features_axis
from .._core.online import (
    ONLINE_METHODS,
    Averaged,
    Method,
    State,
    hyperparameters,
    known_options,
    online_method,
)
from .._core.online.auto import AutoState
from .._core.online.batch import LinearBatch, Penalty, SparseRows
from .._core.online.losses_with_curvature import OnlineLoss
from .._core.online.sparse_columns import ColumnState
from .._core.options import Option
from .._estimators.estimator import FOUND, forget
from .._features.shift import Shift
from .._problems import INTERCEPTS
from .._solving.process import ignoring_errors
from .._solving.solution import Callback
from .model import Stream, StreamModel


@with_parameters()
class StreamEstimator(StreamModel):
    """Base class of estimators that learn from one batch after the other."""

    _solvers: ClassVar[Mapping[str, Any]] = ONLINE_METHODS

    loss: str = "log_loss"
    _: KW_ONLY
    alpha: float = 1e-5
    l1_ratio: float = 0.0
    solver: str = "auto"
    batch_size: int = 256
    eta0: float | None = None
    tau: float | None = None
    memory: int = 10
    average: bool = True
    solver_options: Mapping[str, Any] | None = None
    fit_intercept: bool = True
    max_iter: int = 100
    tol: float = 3e-2
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    random_state: Any = 0
    warm_start: bool = False
    callback: Callback | None = None
    verbose: int = 0

    def _check_parameters_once(self) -> None:
        """Validate the parameters, if any has changed since the last call."""
        # Parameters are the attributes whose names neither begin nor end with an
        # underscore; inspecting the signature would take longer than a step.
        values = {
            name: value
            for name, value in vars(self).items()
            if name[0] != "_" and name[-1] != "_"
        }
        known = getattr(self, "_accepted", {})
        if any(value is not known.get(name, self) for name, value in values.items()):
            self._check_parameters()
            self._accepted = values

    def _check_parameters(self) -> None:
        check_option("solver", self.solver, list(self._solvers))
        check_number("alpha", self.alpha, low=0.0)
        check_parameters(self, but=["alpha"])

    def _known_options(self) -> Mapping[str, Option]:
        return known_options(self.solver)

    def _method(self) -> Method[Any]:
        """Return the online method that the parameters select."""
        known = hyperparameters(self.solver)
        wanted = {
            "eta0": self.eta0,
            "tau": self.tau,
            "memory": self.memory,
            "average": bool(self.average),
        }
        options = {
            name: value
            for name, value in wanted.items()
            if name in known and value is not None
        } | checked_options(self)
        method = online_method(self.solver, **options)
        if self.average and "average" not in known:
            return Averaged(method)
        return method

    def _begin(self, X: Any, n_outputs: int | None, w0: Floats) -> None:
        """Initialize the stream at w0, before its first batch X.

        Columns whose mean in X is far from zero are centered in X and in all later
        batches.
        """
        self._shift = None
        if self.fit_intercept and not sparse.issparse(X) and X.shape[0] > 1:
            self._shift = Shift.of(X, np.full(X.shape[0], 1.0 / X.shape[0]))
        if self._shift is not None:
            coef, intercept = self._split(w0, n_outputs)
            w0 = np.append(coef.T, self._shift.inward(coef, intercept))
        self._stream = Stream(
            self._settings(), self._method(), bool(self.fit_intercept), n_outputs
        )
        try:
            self._state: State = self._stream.method.start(w0)
        except FloatingPointError as error:
            raise ValueError(
                f"{type(self).__name__} cannot begin: {error}. Scale the targets."
            ) from error
        self._dtype = X.dtype
        self._n_rows, self._weight = 0.0, 0.0
        self.t_ = 0

    def _split(self, w: Floats, n_outputs: int | None) -> tuple[Floats, Floats]:
        """Split parameters into coefficients of shape (k, d) and intercepts (k,)."""
        k = n_outputs or 1
        n_coef = self.n_features_in_ * k
        return w[:n_coef].reshape(-1, k).T, w[n_coef:]

    def _settings(self) -> tuple[Any, ...]:
        """Return the parameters that determine the online method."""
        options = tuple(sorted((getattr(self, "solver_options", None) or {}).items()))
        return self.solver, self.average, self.eta0, self.tau, self.memory, options

    def _previous(self) -> dict[str, Any]:
        """Return the attributes of the previous fit for a warm start, or none."""
        if not (self.warm_start and hasattr(self, "_state")):
            return {}
        return {**vars(self), "coef_": self.coef_}

    def _go_on(self) -> None:
        """Apply changed parameters; a changed solver restarts at the current w."""
        stream, columns = self._stream, self._columns
        if columns is not None:
            # A later batch may have entries in columns that ``fit`` has left out.
            penalty = self._penalty()
            state: Any = self._state
            k, d = stream.n_outputs or 1, self.n_features_in_
            of_all: Any = ColumnState.among(state, columns, d, penalty, k)
            self._state = of_all
            self._columns = None
        if bool(self.fit_intercept) != stream.fit_intercept:
            raise ValueError(
                "fit_intercept cannot change between calls of partial_fit; it was "
                f"{stream.fit_intercept}."
            )
        settings = self._settings()
        if settings != stream.settings:
            self._stream = stream._replace(settings=settings, method=self._method())
            if settings[:2] != stream.settings[:2]:
                self._state = self._stream.method.start(self._state.w)

    def _learn(
        self, X: Any, targets: Floats, weights: Floats | None, loss: OnlineLoss
    ) -> State:
        """Take one step on a batch.

        The positive weights are divided by their mean over all rows so far.
        """
        n = X.shape[0]
        self._n_rows += n
        if weights is None:
            self._weight += n
            weights = np.full(n, self._n_rows / (n * self._weight))
        else:
            self._weight += float(weights.sum())
            weights = weights * (self._n_rows / (n * self._weight))
        batch = self._batch(X, targets, weights, loss)
        try:
            self._state = one_step(self._stream.method, batch, self._state)
        except FloatingPointError as error:
            others = "Choose solver='auto' or a smaller eta0, or scale the features."
            advice = "Scale the features." if self.solver == "auto" else others
            raise ValueError(
                f"{type(self).__name__} with solver={self.solver!r} diverged at batch "
                f"{self.t_ + 1}: {error}. {advice} The model is as it was before."
            ) from error
        self.t_ += 1
        return self._state

    def _batch(
        self, X: Any, targets: Floats, weights: Floats, loss: OnlineLoss
    ) -> LinearBatch:
        if self._shift is not None:
            X = self._shift.subtracted(X.toarray() if sparse.issparse(X) else X)
        return LinearBatch(
            X,
            targets,
            weights,
            loss,
            self._penalty(),
            bool(self.fit_intercept),
            self._stream.n_outputs,
        )

    def _penalty(self) -> Penalty:
        return Penalty(float(self.alpha), float(self.l1_ratio))

    def _partial_fit(
        self,
        X: Any,
        targets: Floats,
        weights: Floats | None,
        loss: OnlineLoss,
        n_outputs: int | None,
        init: tuple[Any, Any],
    ) -> None:
        """Take steps on rows in order, in equal batches of at most ``batch_size``.

        Rows of weight zero are left out. A changed solver restarts at the current
        parameters. ``init`` has the initial coefficients and intercepts of a stream, or
        None.
        """
        if weights is not None and not weights.all():
            used = weights > 0.0
            X, targets, weights = X[used], targets[used], weights[used]
        if hasattr(self, "_state") and self._n_rows > 0.0:
            if is_given(init):
                raise ValueError(
                    "coef_init and intercept_init are for the first call of "
                    f"partial_fit, but this {type(self).__name__} has learned already. "
                    "Leave them out, or begin with a clone of it."
                )
            self._go_on()
        else:
            w0 = self._start_parameters(X, targets, weights, n_outputs)
            if is_given(init):
                w0 = self._started(w0, n_outputs, *init)
            self._begin(X, n_outputs, w0)
            if init[0] is not None and isinstance(self._state, AutoState):
                self._state = self._state.known()
        n = X.shape[0]
        n_batches = -(-n // self.batch_size)
        if n_batches == 1:
            self._learn(X, targets, weights, loss)
        elif n_batches:
            if sparse.issparse(X) and self._shift is None:
                X = SparseRows.of(X)
            for rows in equal_parts(n, n_batches):
                part = None if weights is None else weights[rows]
                self._learn(X[rows], targets[rows], part, loss)
        self.n_iter_ = 1
        # The attributes of an earlier fit do not describe the new model.
        forget(self, *FOUND, "loss_curve_", "validation_scores_")
        self._show()

    def _start_parameters(
        self,
        X: Any,
        targets: Floats,
        weights: Floats | None,
        n_outputs: int | None,
    ) -> Floats:
        """Return initial parameters, zero except the intercept of regression."""
        n_free = (n_outputs or 1) if self.fit_intercept else 0
        w0 = np.zeros(X.shape[1] * (n_outputs or 1) + n_free)
        if n_free and len(targets):
            if weights is None:
                weights = np.ones(len(targets))
            weights = weights * (len(weights) / weights.sum())
            with np.errstate(over="ignore"):
                w0[-n_free:] = self._start_intercept(targets, weights)
        return w0

    def _started(
        self, w0: Floats, n_outputs: int | None, coef: Any, intercept: Any
    ) -> Floats:
        """Return w0 with the user's coefficients and intercepts, where given."""
        start, free = self._split(w0, n_outputs)
        if coef is not None:
            start = check_start("coef_init", coef, start.shape, features_axis(self))
        if intercept is not None:
            if not self.fit_intercept:
                raise ValueError(
                    "intercept_init has no effect with fit_intercept=False. Leave it "
                    "out."
                )
            free = check_start("intercept_init", intercept, free.shape, INTERCEPTS)
        return np.append(start.T, free)

    def _start_intercept(self, targets: Floats, weights: Floats) -> float:
        """Return the initial intercept."""
        return 0.0


def is_given(init: tuple[Any, Any]) -> bool:
    """Whether the user gave initial coefficients or intercepts."""
    return any(given is not None for given in init)


def equal_parts(n: int, n_parts: int) -> list[slice]:
    """Return ``n_parts`` slices of n rows, whose lengths differ by at most one."""
    bounds = [n * i // n_parts for i in range(n_parts + 1)]
    return [slice(a, b) for a, b in pairwise(bounds)]


@ignoring_errors
def one_step(method: Method[State], batch: LinearBatch, state: State) -> State:
    """Return the state after a step; raise FloatingPointError if it is not finite."""
    return method.step(batch, state)

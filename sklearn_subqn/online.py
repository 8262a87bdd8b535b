"""Linear models trained on streams and mini-batches by online quasi-Newton methods."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ._classifier import ScoringClassifier
from ._core.online import (
    ONLINE_METHODS,
    Averaged,
    ConvergenceTest,
    Method,
    State,
    hyperparameters,
    online_method,
)
from ._core.online.auto import AdaptiveLBFGS, AutoState
from ._core.online.batch import LinearBatch, Penalty
from ._core.online.columns import ColumnState, ColumnwiseLBFGS
from ._core.online.losses import (
    Counts,
    Logistic,
    MajorizedHinge,
    MajorizedHuber,
    MajorizedQuantile,
    ModifiedHuber,
    OneVsRest,
    OnlineLoss,
    RegressionLoss,
    Softmax,
    SquaredError,
    SquaredHinge,
)
from ._estimator import LinearEstimator, Progress, log_probabilities, user_level
from ._validation import (
    check_callback,
    check_flag,
    check_number,
    check_option,
    check_sample_weight,
    check_verbose,
    check_weights,
    unchanged_on_failure,
)

Floats = npt.NDArray[np.float64]

_BINARY: dict[str, OnlineLoss] = {
    "log_loss": Logistic(),
    "hinge": MajorizedHinge(),
    "squared_hinge": SquaredHinge(),
    "modified_huber": ModifiedHuber(),
}

# Few batches are not enough to tell convergence from chance.
_MIN_PATIENCE = 30

_REGRESSION = ("squared_error", "huber", "quantile", "poisson")


class Stream(NamedTuple):
    """What a sequence of batches goes by.

    Attributes
    ----------
    settings : tuple
        The parameters that the method was made from.
    method : Method
    fit_intercept : bool
    n_outputs : int or None
        Scores per row, None for scores of shape (b,).
    """

    settings: tuple[Any, ...]
    method: Method[Any]
    fit_intercept: bool
    n_outputs: int | None


class OnlineEstimator(LinearEstimator):
    """Base of estimators that learn from one batch after the other."""

    loss: str
    alpha: float
    l1_ratio: float
    solver: str
    batch_size: int
    eta0: float | None
    tau: float | None
    memory: int
    average: bool
    fit_intercept: bool
    max_iter: int
    tol: float
    random_state: Any
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    warm_start: bool
    callback: Callable[[Progress], Any] | None
    verbose: int
    _coef: npt.NDArray[Any]

    def _check_parameters_once(self) -> None:
        """Raise for parameters that are not acceptable, if any has been changed."""
        # All but fitted and private attributes; inspecting the signature takes longer
        # than a step.
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
        """Raise for parameters that are not acceptable."""
        check_option("solver", self.solver, list(ONLINE_METHODS))
        check_number("alpha", self.alpha, low=0.0)
        check_number("l1_ratio", self.l1_ratio, low=0.0)
        if self.l1_ratio > 1.0:
            raise ValueError(f"l1_ratio must be <= 1, got {self.l1_ratio!r}.")
        check_number("batch_size", self.batch_size, low=1, integer=True)
        for name in ("eta0", "tau"):
            if getattr(self, name) is not None:
                value = getattr(self, name)
                check_number(name, value, low=0.0, low_included=False)
        check_number("memory", self.memory, low=1, integer=True)
        for name in ("average", "fit_intercept", "early_stopping", "warm_start"):
            check_flag(name, getattr(self, name))
        check_number("max_iter", self.max_iter, low=1, integer=True)
        check_number("tol", self.tol, low=0.0)
        fraction = self.validation_fraction
        check_number("validation_fraction", fraction, low=0.0, low_included=False)
        if fraction >= 1.0:
            raise ValueError(f"validation_fraction must be < 1, got {fraction!r}.")
        check_number("n_iter_no_change", self.n_iter_no_change, low=1, integer=True)
        check_callback(self.callback)
        check_verbose(self.verbose)

    def _method(self) -> Method[Any]:
        """Return the method that the parameters ask for."""
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
        }
        method = online_method(self.solver, **options)
        if self.average and "average" not in known:
            return Averaged(method)
        return method

    def _begin(self, X: Any, n_outputs: int | None, w0: Floats) -> None:
        """Begin before the first batch, at w0."""
        self._stream = Stream(
            self._settings(), self._method(), bool(self.fit_intercept), n_outputs
        )
        self._state: State = self._stream.method.start(w0)
        self._dtype = X.dtype
        self._n_rows, self._weight = 0.0, 0.0
        self.t_ = 0

    def _settings(self) -> tuple[Any, ...]:
        """Return the parameters that the method is made from."""
        return self.solver, self.average, self.eta0, self.tau, self.memory

    def _previous(self) -> dict[str, Any]:
        """Return the attributes of the fit that a warm start starts from, if any."""
        if not (self.warm_start and hasattr(self, "_state")):
            return {}
        return {**vars(self), "coef_": self.coef_}

    def _go_on(self) -> None:
        """Let a stream follow changed parameters; another method begins anew."""
        stream = self._stream
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
        """Make the step of one batch.

        Weights are taken relative to their mean over all rows so far. Rows of weight
        zero count as missing.
        """
        if weights is not None:
            used = weights > 0.0
            if not used.all():
                X, targets, weights = X[used], targets[used], weights[used]
        n = X.shape[0]
        if n == 0:
            return self._state
        self._n_rows += n
        if weights is None:
            self._weight += n
            weights = np.full(n, self._n_rows / (n * self._weight))
        else:
            self._weight += float(weights.sum())
            weights = weights * (self._n_rows / (n * self._weight))
        batch = self._batch(X, targets, weights, loss)
        try:
            with np.errstate(all="ignore"):
                self._state = self._stream.method.step(batch, self._state)
        except FloatingPointError as error:
            raise ValueError(
                f"{type(self).__name__} with solver={self.solver!r} diverged at batch "
                f"{self.t_ + 1}: {error}. Choose solver='auto' or a smaller eta0, or "
                "scale the features. The model is as it was before."
            ) from error
        self.t_ += 1
        return self._state

    def _batch(
        self, X: Any, targets: Floats, weights: Floats, loss: OnlineLoss
    ) -> LinearBatch:
        return LinearBatch(
            X,
            targets,
            weights,
            loss,
            Penalty(float(self.alpha), float(self.l1_ratio)),
            bool(self.fit_intercept),
            self._stream.n_outputs,
        )

    def _partial_fit(
        self,
        X: Any,
        targets: Floats,
        weights: Floats | None,
        loss: OnlineLoss,
        n_outputs: int | None,
    ) -> None:
        """Learn from rows in their order, in equal batches of at most ``batch_size``.

        If the method has been changed, it begins anew where the last one ended.
        """
        if hasattr(self, "_state"):
            self._go_on()
        else:
            w0 = self._start_parameters(X, targets, weights, n_outputs)
            self._begin(X, n_outputs, w0)
        n = X.shape[0]
        n_batches = -(-n // self.batch_size)
        if n_batches == 1:
            self._learn(X, targets, weights, loss)
        else:
            for rows in _equal_parts(n, n_batches):
                part = None if weights is None else weights[rows]
                self._learn(X[rows], targets[rows], part, loss)
        self.n_iter_ = 1
        self._store()

    def _store(self) -> None:
        """Set the coefficients to those of the state, or let them be asked for.

        To make all of them after each sparse batch would take longer than to learn.
        """
        state = self._state
        if isinstance(state, ColumnState):
            if hasattr(self, "_coef"):
                del self._coef
            last, n_coef = state.last.w, len(state.rows)
            self._check_stored(last[:n_coef])
            self._set_intercept(last[n_coef:])
        else:
            self._coef = self._coefficients(state.w)
            self._check_stored(self._coef)
            n_coef = self.n_features_in_ * (self._stream.n_outputs or 1)
            self._set_intercept(state.w[n_coef:])

    def _coefficients(self, w: Floats) -> npt.NDArray[Any]:
        n_outputs = self._stream.n_outputs or 1
        coef = w[: self.n_features_in_ * n_outputs].reshape(-1, n_outputs).T
        return np.array(coef, dtype=self._dtype, order="C")

    def _check_stored(self, coef: npt.NDArray[Any]) -> None:
        # The state is finite in float64.
        with np.errstate(over="ignore"):
            stored = coef.astype(self._dtype, copy=False)
        if self._dtype != np.float64 and not np.isfinite(stored).all():
            raise ValueError(
                f"Coefficients are not finite as {np.dtype(self._dtype).name}. Scale "
                "the features or increase alpha."
            )

    def _set_intercept(self, intercept: Floats) -> None:
        if not self.fit_intercept:
            intercept = np.zeros(self._stream.n_outputs or 1)
        self.intercept_ = intercept.astype(self._dtype)

    @property
    def coef_(self) -> npt.NDArray[Any]:
        """Weights of the features, of the type of X."""
        if not hasattr(self, "_state"):
            raise AttributeError(f"This {type(self).__name__} is not fitted yet.")
        if hasattr(self, "_coef"):
            return self._coef
        return self._coefficients(self._state.w)

    def _fit_epochs(
        self,
        X: Any,
        targets: Floats,
        weights: Floats,
        loss: OnlineLoss,
        n_outputs: int | None,
        w0: Floats | None,
        previous: dict[str, Any],
        labels: npt.NDArray[Any] | None,
    ) -> None:
        """Fit validated data, from where the previous fit ended if w0 is given.

        ``labels`` are the classes of rows, if there are any.
        """
        used = weights > 0.0
        if not used.all():
            X, targets, weights = X[used], targets[used], weights[used]
            labels = labels if labels is None else labels[used]
        rng = _generator(self.random_state)
        held_out = None
        if self.early_stopping:
            rows, out = train_test_split(
                np.arange(len(targets)),
                test_size=self.validation_fraction,
                random_state=rng,
                stratify=labels,
            )
            y = targets if labels is None else labels
            held_out = X[out], y[out], weights[out]
            X, targets, weights = X[rows], targets[rows], weights[rows]
        # The loss is a mean over rows whatever the unit of the weights is.
        weights = weights * (len(weights) / weights.sum())
        # At a solution the first gradient is but noise: no unit to compare others with.
        self._unit = 0.0 if w0 is None else previous.get("_unit", 0.0)
        if w0 is None:
            w0 = self._start_parameters(X, targets, weights, n_outputs)
        self._begin(X, n_outputs, w0)
        stream = self._stream
        if isinstance(stream.method, ColumnwiseLBFGS):
            # The test of convergence looks at all columns in any case.
            everywhere: Any = stream.method.on_all_columns()
            self._stream = stream._replace(method=everywhere)
        self._epochs(X, targets, weights, loss, rng, held_out)
        self._stream = stream
        whole = self._batch(X, targets, weights / len(weights), loss)
        w = self._state.w.astype(self._dtype).astype(np.float64)
        self.objective_ = whole.value_and_gradient(w)[0]

    def _residual(self, state: State) -> Floats:
        """Return the vector whose running average the test of convergence looks at."""
        method = self._stream.method
        if isinstance(method, AdaptiveLBFGS) and isinstance(state, AutoState):
            return method.residual(state, float(self.alpha) * float(self.l1_ratio))
        return state.gradient

    def _start_parameters(
        self,
        X: Any,
        targets: Floats,
        weights: Floats | None,
        n_outputs: int | None,
    ) -> Floats:
        """Return where to begin: at zero, but for the intercept of regression."""
        n_free = (n_outputs or 1) if self.fit_intercept else 0
        w0 = np.zeros(X.shape[1] * (n_outputs or 1) + n_free)
        if n_free:
            if weights is None or not weights.any():
                weights = np.ones(len(targets))
            weights = weights * (len(weights) / weights.sum())
            w0[-n_free:] = self._start_intercept(targets, weights)
        return w0

    def _start_intercept(self, targets: Floats, weights: Floats) -> float:
        return 0.0

    def _epochs(
        self,
        X: Any,
        targets: Floats,
        weights: Floats,
        loss: OnlineLoss,
        rng: np.random.RandomState,
        held_out: tuple[Any, Any, Floats] | None,
    ) -> None:
        """Learn from all rows again and again, in an order drawn for each epoch."""
        n = X.shape[0]
        parts = _equal_parts(n, -(-n // self.batch_size))
        patience = max(len(parts), _MIN_PATIENCE)
        test = ConvergenceTest(float(self.tol), patience, float(patience))
        average = test.start(len(self._state.w))
        best, n_worse = (-np.inf, self._state), 0
        self.loss_curve_: list[float] = []
        scores: list[float] = []
        self.validation_scores_ = None if held_out is None else scores
        converged, begin = False, time.perf_counter()
        for epoch in range(1, self.max_iter + 1):
            order = rng.permutation(n)
            total = 0.0
            for part in parts:
                rows = order[part]
                state = self._learn(X[rows], targets[rows], weights[rows], loss)
                total += len(rows) * state.value
                residual = self._residual(state)
                self._unit = self._unit or float(np.linalg.norm(residual))
                average = test.step(average, residual / (self._unit or 1.0))
            self.n_iter_ = epoch
            self.loss_curve_.append(total / n)
            converged = held_out is None and test.passed(average)
            if self.verbose:
                print(
                    f"{type(self).__name__}: epoch {epoch:4d}  "
                    f"objective {self.loss_curve_[-1]:.8g}"
                )
            if held_out is not None:
                self._store()
                score = self.score(*held_out)
                scores.append(score)
                n_worse = 0 if score > best[0] + self.tol else n_worse + 1
                if score > best[0]:
                    best = score, self._state
                converged = n_worse >= self.n_iter_no_change
            stop = converged
            if self.callback is not None:
                least, seconds = min(self.loss_curve_), time.perf_counter() - begin
                progress = Progress(epoch, least, np.inf, float(epoch), seconds)
                stop = bool(self.callback(progress)) or stop
            if stop:
                break
        if held_out is not None:
            self._state = best[1]
        elif not stop:
            warnings.warn(
                f"{type(self).__name__} reached max_iter={self.max_iter} before the "
                f"average of gradients stayed below tol={self.tol:g} times the first "
                "one. Increase max_iter or tol.",
                ConvergenceWarning,
                stacklevel=user_level(),
            )
        self._store()


def _equal_parts(n: int, n_parts: int) -> list[slice]:
    bounds = [n * i // n_parts for i in range(n_parts + 1)]
    return [slice(a, b) for a, b in pairwise(bounds)]


def _generator(random_state: Any) -> np.random.RandomState:
    if random_state is None:
        return np.random.RandomState()
    return check_random_state(random_state)


def _stream_weights(sample_weight: Any, n: int) -> Floats | None:
    """Return checked weights in their own unit, or None for equal ones."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 1 and weights.shape == (n,) and not weights.any():
        return weights
    shares = check_sample_weight(sample_weight, n)
    return np.broadcast_to(weights, shares.shape)


def _has_probabilities(estimator: Any) -> bool:
    if estimator.loss != "log_loss":
        raise AttributeError(
            f"Probabilities need loss='log_loss', got loss={estimator.loss!r}."
        )
    return True


class OnlineLBFGSClassifier(ScoringClassifier, OnlineEstimator):
    """Linear classifier trained on mini-batches or a stream, without tuning.

    Minimizes ``alpha * (l1_ratio * ||w||_1 + (1 - l1_ratio) / 2 * ||w||²)`` plus the
    mean loss, by steps on one batch after the other. The default method needs no step
    size: it measures scales and offsets of features, curvature, and the length of each
    step. Features need no scaling.

    Parameters
    ----------
    loss : {"log_loss", "hinge", "squared_hinge", "modified_huber"}, default="log_loss"
        Loss. For more than two classes "log_loss" is multinomial (softmax); of the
        others one binary loss for each class against the rest is summed.
    alpha : float, default=1e-4
        Strength of the regularization against the *mean* loss, not negative.
    l1_ratio : float, default=0.0
        Share of the L1 norm in the penalty, in [0, 1]. With "auto", coefficients become
        exactly zero; the other solvers take subgradients, and none of theirs does.
    solver : str, default="auto"
        Method that makes the steps.

        - "auto": online L-BFGS over a diagonal metric of the centered features, with
          measured steps and an average of iterates that is begun anew when the stream
          changes. For all but comparisons.
        - "olbfgs", "obfgs": online (L)BFGS (Schraudolph, Yu and Günter 2007).
        - "res-bfgs", "res-lbfgs": regularized stochastic BFGS (Mokhtari and Ribeiro
          2014).
        - "sgd", "smd", "ng", "momentum", "nesterov", "adagrad", "rmsprop", "adam":
          stochastic gradient descent, stochastic meta-descent, natural gradient, and
          what their names say. "obfgs", "res-bfgs" and "ng" keep a matrix of all pairs
          of parameters.
    batch_size : int, default=256
        Rows of a step, at most: ``fit``, and every call of ``partial_fit``, divide
        their rows into the fewest batches of about equal size that keep to it. A call
        of ``partial_fit`` with fewer rows is a smaller batch; none waits for another.
    eta0 : float or None, default=None
        Size of the first steps; None for that of the solver, see Notes.
    tau : float or None, default=None
        Number of batches after which steps fall; None for that of the solver.
    memory : int, default=10
        Number of displacement pairs of "auto", "olbfgs" and "res-lbfgs", at least 1.
        "auto" keeps fewer where vectors are long against the entries of a batch.
    average : bool, default=True
        Whether the model is an average of iterates, or else the last one.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is not penalized.
    max_iter : int, default=100
        Limit on the number of passes over the data in ``fit``, at least 1.
    tol : float, default=3e-2
        ``fit`` stops when the norm of a running average of the batches' gradients, over
        about one epoch, has stayed below ``tol`` times that of the first gradient (of
        the first fit, if this is a warm start) for as many batches as an epoch has, at
        least 30 (Yu 2009, section 5.3.3). Norms of "auto" are those of its diagonal
        metric, free of the features' scales. With ``early_stopping``, the improvement
        of the score that counts.
    early_stopping : bool, default=False
        Whether to hold ``validation_fraction`` of the rows out, to stop when their
        score has not improved for ``n_iter_no_change`` epochs, and to keep the best;
        in ``fit`` only. ``partial_fit`` learns from all its rows and never stops: a
        stream has no epochs, and whoever holds rows out can score the model meanwhile.
    validation_fraction : float, default=0.1
        Share of the rows held out, in (0, 1).
    n_iter_no_change : int, default=5
        Number of epochs without improvement, at least 1.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the samples of each class; "balanced" in ``fit`` only.
    random_state : int, RandomState instance or None, default=0
        Seed of the order of rows in ``fit``. None draws another one each time.
    warm_start : bool, default=False
        Whether ``fit`` starts from the previous solution, if there is one for the same
        classes and features.
    callback : callable or None, default=None
        Called after every epoch of ``fit`` with a named tuple of ``n_iter``, the number
        of epochs, ``objective``, the least of ``loss_curve_``, ``dual_gap``, infinite
        here, ``passes``, equal to ``n_iter``, and ``seconds``; fitting stops if it
        returns True.
    verbose : int, default=0
        Print a line for each epoch of ``fit``.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features, of the type of X.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts; zero if ``fit_intercept=False``.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    n_iter_ : int
        Number of epochs of ``fit``; after ``partial_fit``, 1.
    t_ : int
        Number of batches learned from.
    objective_ : float
        After ``fit``, the objective at the coefficients, over the rows learned from.
        There is no bound on its distance from the optimum.
    loss_curve_ : list of float
        Of ``fit``: for each epoch the mean objective of its batches, each before its
        step.
    validation_scores_ : list of float or None
        Of ``fit``: scores after each epoch with ``early_stopping``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where X has names that are all strings.

    See Also
    --------
    OnlineLBFGSRegressor : The same for numbers.
    SubLBFGSLinearSVC, L1LogisticOWLQN : Exact up to a proven gap.
    sklearn.linear_model.SGDClassifier : Needs scaled features and a step size.

    Notes
    -----
    Steps of "auto" are a share ``eta0 / sqrt(1 + t / tau)`` of the way to the minimizer
    of the batch's quadratic model along the direction, by default with eta0 = 1 and
    tau = 10; those of other solvers are ``eta0 * tau / (tau + t)``, eta0 alone where
    there is no tau. Their defaults are made for standardized features and targets: eta0
    is 1 for "olbfgs" and "obfgs", 0.3 for RES and "adagrad", 0.1 for all others; tau is
    10 for "ng", none for all others. The papers have smaller ones, or none.

    Pickling keeps everything: a model pickled in mid-stream goes on exactly as if it
    had not been. A call that raises an error changes nothing. Apart from X itself, the
    model needs memory for about ``2 * memory + 15`` vectors of the size of ``coef_``.

    References
    ----------
    N. N. Schraudolph, J. Yu, S. Günter (2007), A Stochastic Quasi-Newton Method for
    Online Convex Optimization, AISTATS. J. Yu (2009), New Quasi-Newton Optimization
    Methods for Machine Learning, PhD thesis, Australian National University: chapter
    5. R. H. Byrd, S. L. Hansen, J. Nocedal, Y. Singer (2016), A Stochastic Quasi-Newton
    Method for Large-Scale Optimization, SIAM J. Optim. 26.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_subqn import OnlineLBFGSClassifier
    >>> X, y = make_classification(n_samples=2000, random_state=0)
    >>> clf = OnlineLBFGSClassifier()
    >>> for start in range(0, 2000, 100):
    ...     rows = slice(start, start + 100)
    ...     clf = clf.partial_fit(X[rows] * 1000.0, y[rows], classes=[0, 1])
    >>> clf.score(X * 1000.0, y) > 0.9
    True
    """

    def __init__(
        self,
        loss: str = "log_loss",
        *,
        alpha: float = 1e-4,
        l1_ratio: float = 0.0,
        solver: str = "auto",
        batch_size: int = 256,
        eta0: float | None = None,
        tau: float | None = None,
        memory: int = 10,
        average: bool = True,
        fit_intercept: bool = True,
        max_iter: int = 100,
        tol: float = 3e-2,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        class_weight: Any = None,
        random_state: Any = 0,
        warm_start: bool = False,
        callback: Callable[[Progress], Any] | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.solver = solver
        self.batch_size = batch_size
        self.eta0 = eta0
        self.tau = tau
        self.memory = memory
        self.average = average
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.random_state = random_state
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose

    @unchanged_on_failure
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OnlineLBFGSClassifier:
        """Fit the model in epochs, each with all rows once in a new order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Non-negative weights of the samples. Rows of weight zero count as missing.

        Returns
        -------
        self : OnlineLBFGSClassifier
            The fitted estimator.

        Raises
        ------
        ValueError
            If parameters or data are not acceptable, or the method diverges. A
            previously fitted estimator stays as it was.

        Warns
        -----
        ConvergenceWarning
            If ``max_iter`` was reached before ``tol``.
        """
        self._check_parameters()
        previous = self._previous()
        X, y = self._check_X(X, y, reset=True)
        check_classification_targets(y)
        weights, classes = check_weights(sample_weight, X, y, self.class_weight)
        w0 = self._previous_parameters(previous, classes)
        self.classes_ = classes
        known = np.isin(y, classes)
        if not known.all():
            X, y, weights = X[known], y[known], weights[known]
        targets, loss, n_outputs = self._encoded(y)
        self._fit_epochs(X, targets, weights, loss, n_outputs, w0, previous, y)
        return self

    @unchanged_on_failure
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> OnlineLBFGSClassifier:
        """Learn from some more rows, once and in their order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows of a stream.
        y : array-like of shape (n_samples,)
            Class labels.
        classes : array-like of shape (n_classes,), default=None
            All classes that there will be; needed in the first call.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Non-negative weights of the samples, relative to those of other calls. Rows
            of weight zero count as missing.

        Returns
        -------
        self : OnlineLBFGSClassifier
            The estimator.

        Raises
        ------
        ValueError
            If parameters or data are not acceptable, y has a class that was not
            announced, or the method diverges. The model stays as it was.
        """
        self._check_parameters_once()
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        X, y = self._check_X(X, y, reset=first)
        if classes is not None and (first or not self._announced(classes)):
            announced = np.unique(classes)
            if first:
                if len(announced) < 2:
                    raise ValueError(
                        "This classifier needs at least 2 classes, got "
                        f"classes={classes!r}."
                    )
                check_classification_targets(announced)
                self.classes_ = announced
            elif announced.tolist() != self.classes_.tolist():
                raise ValueError(
                    f"`classes={classes!r}` is not the same as on last call to "
                    f"partial_fit, was: {self.classes_!r}."
                )
        targets, loss, n_outputs = self._encoded(y)
        weights = _stream_weights(sample_weight, X.shape[0])
        if self.class_weight is not None:
            weights = self._class_weighted(y, weights)
        self._partial_fit(X, targets, weights, loss, n_outputs)
        return self

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes; only for ``loss="log_loss"``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return np.exp(self.predict_log_proba(X))

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities; only for ``loss="log_loss"``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return log_probabilities(self._raw_scores(X))

    def _check_parameters(self) -> None:
        check_option("loss", self.loss, list(_BINARY))
        super()._check_parameters()

    def _previous_parameters(
        self, previous: dict[str, Any], classes: npt.NDArray[Any]
    ) -> Floats | None:
        """Return where a previous fit of the same classes and features ended."""
        if not self._continues(previous, classes):
            return None
        w = previous["coef_"].T.ravel()
        if self.fit_intercept:
            w = np.concatenate([w, previous["intercept_"]])
        return np.asarray(w, dtype=np.float64)

    def _encoded(self, y: npt.NDArray[Any]) -> tuple[Floats, OnlineLoss, int | None]:
        """Return targets, the loss for them, and the number of scores per row."""
        classes = self.classes_
        if len(classes) == 2:
            positive = y == classes[1]
            if np.all(positive | (y == classes[0])):
                return np.where(positive, 1.0, -1.0), _BINARY[self.loss], None
        codes = np.searchsorted(classes, y).clip(0, len(classes) - 1)
        if np.any(classes[codes] != y):
            new = np.setdiff1d(y, classes)
            raise ValueError(
                f"y has classes {new.tolist()} that are not among those of the first "
                f"call, {classes.tolist()}."
            )
        if self.loss == "log_loss":
            return codes.astype(np.float64), Softmax(), len(classes)
        targets = np.full((len(codes), len(classes)), -1.0)
        targets[np.arange(len(codes)), codes] = 1.0
        return targets, OneVsRest(_BINARY[self.loss]), len(classes)

    def _announced(self, classes: Any) -> bool:
        """Whether these are plainly the known classes, in their order."""
        return list(classes) == self.classes_.tolist()

    def _class_weighted(self, y: npt.NDArray[Any], weights: Floats | None) -> Floats:
        if not isinstance(self.class_weight, dict):
            raise ValueError(
                f"class_weight {self.class_weight!r} is not supported for partial_fit, "
                "which sees no more than a part of the rows. Compute the weights over "
                "all classes, for example by "
                "sklearn.utils.class_weight.compute_class_weight, and give them as a "
                "dict from labels to weights."
            )
        factors = np.array([self.class_weight.get(label, 1.0) for label in y.tolist()])
        check_sample_weight(factors, len(factors))
        return factors if weights is None else factors * weights


class OnlineLBFGSRegressor(RegressorMixin, OnlineEstimator):
    """Linear regression trained on mini-batches or a stream, without tuning.

    Minimizes ``alpha * (l1_ratio * ||w||_1 + (1 - l1_ratio) / 2 * ||w||²)`` plus the
    mean loss, by steps on one batch after the other. The default method needs no step
    size: it measures scales and offsets of features, curvature, and the length of each
    step. Features need no scaling.

    Parameters
    ----------
    loss : {"squared_error", "huber", "quantile", "poisson"}, default="squared_error"
        Loss of a prediction z for the target y.

        - "squared_error": ``(z - y)² / 2``.
        - "huber": the same up to ``|z - y| = epsilon``, linear beyond.
        - "quantile": ``max(quantile * (y - z), (quantile - 1) * (y - z))``.
        - "poisson": ``exp(z) - y * z`` for y >= 0; predictions are ``exp(z)``.
    alpha : float, default=1e-4
        Strength of the regularization against the *mean* loss, not negative.
    l1_ratio : float, default=0.0
        Share of the L1 norm in the penalty, in [0, 1]. With "auto", coefficients become
        exactly zero.
    epsilon : float, default=1.35
        Of "huber", in units of the target, positive.
    quantile : float, default=0.5
        Of "quantile", in (0, 1).
    solver, batch_size, eta0, tau, memory, average, fit_intercept, max_iter, tol, \
early_stopping, validation_fraction, n_iter_no_change, random_state, warm_start, \
callback, verbose
        As for :class:`OnlineLBFGSClassifier`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Weights of the features, of the type of X.
    intercept_ : ndarray of shape (1,)
        Intercept; zero if ``fit_intercept=False``.
    n_iter_, t_, objective_, loss_curve_, validation_scores_
        As for :class:`OnlineLBFGSClassifier`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, where X has names that are all strings.

    See Also
    --------
    OnlineLBFGSClassifier : The same for classes, with references.
    sklearn.linear_model.SGDRegressor : Needs scaled features and a step size.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from sklearn_subqn import OnlineLBFGSRegressor
    >>> X, y = make_regression(n_samples=2000, noise=1.0, random_state=0)
    >>> reg = OnlineLBFGSRegressor()
    >>> for start in range(0, 2000, 100):
    ...     rows = slice(start, start + 100)
    ...     reg = reg.partial_fit(X[rows] * 1000.0, y[rows])
    >>> reg.score(X * 1000.0, y) > 0.99
    True
    """

    def __init__(
        self,
        loss: str = "squared_error",
        *,
        alpha: float = 1e-4,
        l1_ratio: float = 0.0,
        epsilon: float = 1.35,
        quantile: float = 0.5,
        solver: str = "auto",
        batch_size: int = 256,
        eta0: float | None = None,
        tau: float | None = None,
        memory: int = 10,
        average: bool = True,
        fit_intercept: bool = True,
        max_iter: int = 100,
        tol: float = 3e-2,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        random_state: Any = 0,
        warm_start: bool = False,
        callback: Callable[[Progress], Any] | None = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.epsilon = epsilon
        self.quantile = quantile
        self.solver = solver
        self.batch_size = batch_size
        self.eta0 = eta0
        self.tau = tau
        self.memory = memory
        self.average = average
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose

    @unchanged_on_failure
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OnlineLBFGSRegressor:
        """Fit the model in epochs, each with all rows once in a new order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Non-negative weights of the samples. Rows of weight zero count as missing.

        Returns
        -------
        self : OnlineLBFGSRegressor
            The fitted estimator.

        Raises
        ------
        ValueError
            If parameters or data are not acceptable, or the method diverges. A
            previously fitted estimator stays as it was.

        Warns
        -----
        ConvergenceWarning
            If ``max_iter`` was reached before ``tol``.
        """
        self._check_parameters()
        previous = self._previous()
        X, targets = self._checked_targets(X, y, reset=True)
        weights = check_sample_weight(sample_weight, X.shape[0])
        w0 = None
        if "coef_" in previous and len(previous["coef_"]) == X.shape[1]:
            w0 = previous["coef_"].astype(np.float64)
            if self.fit_intercept:
                w0 = np.append(w0, previous["intercept_"])
        self._fit_epochs(X, targets, weights, self._loss(), None, w0, previous, None)
        return self

    @unchanged_on_failure
    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None
    ) -> OnlineLBFGSRegressor:
        """Learn from some more rows, once and in their order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows of a stream.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Non-negative weights of the samples, relative to those of other calls. Rows
            of weight zero count as missing.

        Returns
        -------
        self : OnlineLBFGSRegressor
            The estimator.

        Raises
        ------
        ValueError
            If parameters or data are not acceptable, or the method diverges. The model
            stays as it was.
        """
        self._check_parameters_once()
        X, targets = self._checked_targets(X, y, reset=not hasattr(self, "_state"))
        weights = _stream_weights(sample_weight, X.shape[0])
        self._partial_fit(X, targets, weights, self._loss(), None)
        return self

    def predict(self, X: Any) -> Any:
        """Return the predicted target of each sample.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
            For "poisson" the exponentials of the scores.
        """
        check_is_fitted(self)
        scores = self._raw_scores(X)
        return np.exp(scores) if self.loss == "poisson" else scores

    def _check_parameters(self) -> None:
        check_option("loss", self.loss, list(_REGRESSION))
        check_number("epsilon", self.epsilon, low=0.0, low_included=False)
        check_number("quantile", self.quantile, low=0.0, low_included=False)
        if self.quantile >= 1.0:
            raise ValueError(f"quantile must be < 1, got {self.quantile!r}.")
        super()._check_parameters()

    def _loss(self) -> RegressionLoss:
        losses: dict[str, RegressionLoss] = {
            "squared_error": SquaredError(),
            "huber": MajorizedHuber(float(self.epsilon)),
            "quantile": MajorizedQuantile(float(self.quantile)),
            "poisson": Counts(),
        }
        return losses[self.loss]

    def _checked_targets(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Floats]:
        X, y = self._check_X(X, y, reset=reset, numeric=True)
        targets = np.asarray(y, dtype=np.float64)
        if self.loss == "poisson" and targets.min() < 0.0:
            raise ValueError(
                f"loss='poisson' needs y >= 0, got values down to {targets.min():g}."
            )
        return X, targets

    def _start_intercept(self, targets: Floats, weights: Floats) -> float:
        return self._loss().constant(targets, weights)

    def _coefficients(self, w: Floats) -> npt.NDArray[Any]:
        coef: npt.NDArray[Any] = super()._coefficients(w)[0]
        return coef

"""Minimization of an expectation that a user gives by noisy gradients of samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import count, islice
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from .._checks import check_callback, check_number, check_option
from .._core.arrays import Floats
from .._core.losses._curvature import CurvatureByProducts
from .._core.online import ONLINE_METHODS, known_options, online_method
from .._core.online.batch import Penalty
from .minimizers import check_options
from .own_function import DIFFERENCE, checked_start, reporter

# One sample of the user counts as five rows, so the blocks of "auto" have ten samples.
# docs/constants.md has the figures.
_ROWS = 5


class OwnBatch:
    """One sample of a user's function, with the interface of a batch of a linear model.

    The scores are the parameters. Products with the Hessian are differences of
    gradients on the same sample.

    Parameters
    ----------
    function : callable
        ``function(w, sample)`` returns a gradient, or a pair of value and gradient.
    sample : object
    method : str
        Name of the method, for messages.
    """

    fit_intercept = is_sparse = False
    n_rows, n_scores = _ROWS, 1
    penalty = Penalty(0.0)

    def __init__(
        self, function: Callable[..., Any], sample: Any, method: str, n_params: int
    ) -> None:
        self._function, self._sample, self._method = function, sample, method
        self.n_coef = self.n_entries = n_params

    def value_and_gradient(self, w: Floats) -> tuple[float, Floats]:
        """Return value and gradient; the value is zero if the function returns none."""
        returned = self._function(w.copy(), self._sample)
        value = 0.0
        if isinstance(returned, tuple):
            value, returned = float(returned[0]), returned[1]
        elif self._method == "auto":
            raise TypeError(
                "method='auto' compares values on the same sample: sample_gradient "
                "must return a pair of value and gradient. Other methods, such as "
                "'olbfgs', need the gradient only."
            )
        g = np.array(returned, dtype=np.float64)
        if g.shape != w.shape:
            raise ValueError(
                f"sample_gradient must return a gradient of shape {w.shape}, as x0 "
                f"has; got shape {g.shape}."
            )
        return value, g

    def gradient(self, w: Floats) -> Floats:
        """Return the gradient of the sample at w."""
        return self.value_and_gradient(w)[1]

    def hessian_product(self, w: Floats, v: Floats) -> Floats:
        """Return approximately the Hessian of the sample at w times v."""
        length = float(np.linalg.norm(v))
        if not length > 0.0:
            return np.zeros_like(v)
        # Both gradients have the same noise, so only rounding errors limit the accuracy
        # of their difference.
        t = DIFFERENCE * max(1.0, float(np.linalg.norm(w))) / length
        product: Floats = (self.gradient(w + t * v) - self.gradient(w)) / t
        return product

    # Methods of batches of linear models that "auto" needs.

    def scores(self, w: Floats) -> Floats:
        """Return the parameters."""
        return w

    def risk(self, scores: Floats) -> float:
        """Return the value of the sample."""
        return self.value_and_gradient(scores)[0]

    def dual(self, scores: Floats) -> Floats:
        """Return the gradient of the sample."""
        return self.gradient(scores)

    def curvature(self, scores: Floats) -> CurvatureByProducts:
        """Return the Hessian of the sample."""
        return CurvatureByProducts(partial(self.hessian_product, scores), self.n_coef)

    def curvature_product(self, curvature: CurvatureByProducts, v: Floats) -> Floats:
        """Return the Hessian times v."""
        return curvature.apply(v)

    def adjoint(self, u: Floats, total: Floats, power: int = 1) -> Floats:
        """Add u to ``total`` and return it."""
        total += u
        return total


def stochastic_steps(
    sample_gradient: Callable[..., Any],
    x0: Any,
    samples: Iterable[Any] | None = None,
    method: str = "auto",
    *,
    options: Mapping[str, Any] | None = None,
) -> Iterator[OptimizeResult]:
    """Iterate a stochastic method on a function known by its samples.

    Each iteration takes the next sample and makes one step.

    Parameters
    ----------
    sample_gradient : callable
        See :func:`minimize_stochastic`; this applies to all parameters.
    x0 : array-like of shape (d,)
        Starting point.
    samples : iterable, optional
        Samples; by default the integers from 0 on.
    method : str, default="auto"
        Name of the method.
    options : dict, optional
        Options of the method.

    Returns
    -------
    results : iterator of scipy.optimize.OptimizeResult
        One after each sample, with ``x``, ``fun``, ``jac`` and ``nit`` as in
        :func:`minimize_stochastic`.

    Raises
    ------
    TypeError, ValueError
        If arguments, or values that the function returns, are invalid.
    FloatingPointError
        If the iterates diverge.

    See Also
    --------
    minimize_stochastic : Goes through the samples and returns the result.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_subqn.optimize import stochastic_steps
    >>> def sample_gradient(x, seed):
    ...     return x - np.random.default_rng(seed).normal(1.0, 0.1, 2)
    >>> steps = stochastic_steps(sample_gradient, [0.0, 9.0], method="sgd")
    >>> next(steps).nit, next(steps).nit
    (1, 2)
    """
    w = checked_start(x0, "x0")
    if not callable(sample_gradient):
        raise TypeError(f"sample_gradient must be callable, got {sample_gradient!r}.")
    if isinstance(method, str):
        method = method.lower()
    check_option("method", method, list(ONLINE_METHODS))
    known = {name: known_options(name) for name in ONLINE_METHODS}
    options = check_options(method, options, known)
    solver = online_method(method, **options)
    return _steps(
        sample_gradient, w, count() if samples is None else samples, method, solver
    )


def _steps(
    function: Callable[..., Any],
    w: Floats,
    samples: Iterable[Any],
    name: str,
    method: Any,
) -> Iterator[OptimizeResult]:
    state = method.start(w)
    for sample in samples:
        state = method.step(OwnBatch(function, sample, name, len(w)), state)
        yield OptimizeResult(
            x=state.w.copy(),
            fun=state.value,
            jac=state.gradient.copy(),
            nit=state.n_steps,
        )


def minimize_stochastic(
    sample_gradient: Callable[..., Any],
    x0: Any,
    samples: Iterable[Any] | None = None,
    method: str = "auto",
    *,
    max_iter: int = 1000,
    options: Mapping[str, Any] | None = None,
    callback: Callable[..., Any] | None = None,
) -> OptimizeResult:
    """Minimize the expectation of a function from noisy gradients of its samples.

    Quasi-Newton methods evaluate the gradient on the same sample before and after a
    step, so that their difference has the curvature of the sample without its noise.

    Parameters
    ----------
    sample_gradient : callable
        ``sample_gradient(x, sample)`` returns the gradient of the function of this
        sample at x, or a pair of value and gradient, which "auto" needs. Called twice
        with the same sample, it has to use the same random numbers.
    x0 : array-like of shape (d,)
        Starting point.
    samples : iterable, optional
        Samples, such as batches of rows, each used for one step. By default the
        integers from 0 on, to be used as seeds.
    method : str, default="auto"
        - "auto": limited-memory BFGS with averages, whose steps need no tuning.
        - "sgd": stochastic gradient descent.
        - "obfgs", "olbfgs": online BFGS, with a full matrix or of limited memory.
        - "res-bfgs", "res-lbfgs": regularized stochastic BFGS.
        - "smd", "ng", "momentum", "nesterov", "adagrad", "rmsprop", "adam": the other
          online methods of the estimators.
    max_iter : int, default=1000
        Limit on the number of samples, at least 1.
    options : dict, optional
        Options of the method, listed in `docs/methods.md`, such as ``eta0`` and ``tau``
        of step sizes ``eta0 * tau / (tau + t)``, or ``memory``.
    callback : callable, optional
        Called after every sample as in :func:`~sklearn_subqn.minimize`.

    Returns
    -------
    result : scipy.optimize.OptimizeResult
        With

        - ``x``: the last parameters, of "auto" an average of iterates;
        - ``fun``, ``jac``: value and gradient of the last sample before its step; the
          value is zero if the function returns none;
        - ``nit``: number of samples;
        - ``success``, ``status``, ``message``: 0 after all samples or ``max_iter`` of
          them, 99 if the callback stopped the run, 2 if it diverged; ``x`` is the last
          finite point then.

    Raises
    ------
    TypeError, ValueError
        If arguments, or values that the function returns, are invalid.

    See Also
    --------
    stochastic_steps : The same as an iterator.
    minimize : For functions without noise.

    References
    ----------
    N.N. Schraudolph, J. Yu, S. Günter (2007), A Stochastic Quasi-Newton Method for
    Online Convex Optimization, AISTATS: section 3. A. Mokhtari, A. Ribeiro (2014), A
    Quasi-Newton Method for Large Scale Support Vector Machines, ICASSP: Alg. 1.

    Examples
    --------
    A quadratic function whose samples have different minimizers:

    >>> import numpy as np
    >>> from sklearn_subqn.optimize import minimize_stochastic
    >>> scales = np.array([1.0, 100.0])
    >>> def sample_gradient(x, seed):
    ...     r = x - np.random.default_rng(seed).normal(1.0, 0.1, 2)
    ...     return 0.5 * r @ (scales * r), scales * r
    >>> result = minimize_stochastic(sample_gradient, [0.0, 9.0], max_iter=400)
    >>> bool(np.abs(result.x - 1.0).max() < 0.05)
    True
    """
    check_number("max_iter", max_iter, low=1, integer=True)
    check_callback("callback", callback)
    steps = stochastic_steps(sample_gradient, x0, samples, method, options=options)
    w = checked_start(x0, "x0")
    last = OptimizeResult(x=w, fun=np.nan, jac=np.zeros_like(w), nit=0)
    call = reporter(callback)
    last.status, last.message = 0, "All samples were used."
    try:
        for result in islice(steps, max_iter):
            last.update(result)
            if call(result):
                last.status, last.message = 99, "The callback asked to stop."
                break
        else:
            if last.nit == max_iter:
                last.message = "The limit of samples, max_iter, was reached."
    except FloatingPointError as error:
        last.status, last.message = 2, f"The run diverged: {error}. Try a smaller eta0."
    last.success = last.status == 0
    return last

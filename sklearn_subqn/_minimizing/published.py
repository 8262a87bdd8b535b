"""Algorithms of Yu (2009, chapter 3) for user functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult

from .._checks import check_number
from .._core.arrays import Floats, Indices
from .._core.losses import PiecewiseQuadratic
from .._core.steps.direction import descent_direction as _descent_direction
from .._core.steps.one_dimension import minimize_piecewise


class _Given(NamedTuple):
    """A subgradient and the oracle of steepest subgradients, as a point of the core."""

    gradient: Floats
    steepest: Callable[[Floats], Floats]


class _ProductWithB:
    """An inverse Hessian of the core, given by its product with vectors."""

    def __init__(self, times: Callable[[Floats], Floats]) -> None:
        self.apply = times


def descent_direction(
    subgradient: Any,
    steepest: Callable[[Floats], Any],
    inverse_hessian: Any = None,
    *,
    epsilon: float = 1e-5,
    k_max: int = 100,
) -> OptimizeResult:
    """Find a quasi-Newton descent direction at a kink, given a subgradient oracle.

    Alg. 3.2 of Yu (2009) approximately minimizes ``p @ inv(B) @ p / 2 + sup(g @ p)``
    over p, with the supremum over all subgradients g at a point.

    Parameters
    ----------
    subgradient : array-like of shape (d,)
        Any subgradient at the point.
    steepest : callable
        ``steepest(p)`` returns the subgradient g with the largest ``g @ p``.
    inverse_hessian : array-like of shape (d, d) or callable, optional
        B, symmetric and positive definite, or a function from v to its product with v;
        the identity by default.
    epsilon : float, default=1e-5
        Tolerance of the gap (3.15), not negative.
    k_max : int, default=100
        Limit on the number of directions, at least 1.

    Returns
    -------
    result : scipy.optimize.OptimizeResult
        With ``x``, the best direction p; ``slope``, the largest ``g @ p``; ``success``,
        whether the slope is negative, so that p is a descent direction; ``aggregate``,
        a subgradient such that ``-B @ aggregate`` is the last direction; ``gap``; and
        ``nit``, the number of subgradients combined into the aggregate.

    Raises
    ------
    TypeError, ValueError
        If arguments are not acceptable.

    See Also
    --------
    minimize : Its methods "subbfgs" and "sublbfgs" use these directions.

    Examples
    --------
    Steepest descent at a kink of ``10 |x| + |y|``, where ``-(10, 1)`` leads upwards:

    >>> import numpy as np
    >>> from sklearn_subqn.optimize import descent_direction
    >>> def steepest(p):
    ...     return np.array([10.0 * np.sign(p[0]), 1.0])
    >>> result = descent_direction([10.0, 1.0], steepest, epsilon=1e-9)
    >>> bool(result.success), result.x.round(6).tolist()
    (True, [0.0, -1.0])
    """
    g = _vector("subgradient", subgradient)
    if not callable(steepest):
        raise TypeError(f"steepest must be callable, got {steepest!r}.")
    check_number("epsilon", epsilon, low=0.0)
    check_number("k_max", k_max, low=1, integer=True)
    times = inverse_hessian
    if inverse_hessian is None:
        times = np.copy
    elif not callable(inverse_hessian):
        B = np.asarray(inverse_hessian, dtype=np.float64)
        if B.shape != (len(g), len(g)):
            raise ValueError(
                f"inverse_hessian must have shape {(len(g), len(g))}, got {B.shape}."
            )
        times = B.__matmul__
    point = _Given(g, lambda p: _vector("steepest(p)", steepest(p), len(g)))
    found = _descent_direction(point, _ProductWithB(times), float(epsilon), k_max)
    return OptimizeResult(
        x=found.p,
        slope=found.slope,
        success=found.descends,
        aggregate=found.aggregate,
        gap=found.gap,
        nit=found.n_iter,
    )


def exact_line_search(function: PiecewiseQuadratic) -> float:
    """Minimize a convex piecewise quadratic function of a step size exactly.

    Alg. 3.3 of Yu (2009), in linear time: selection of the segment with the minimizer
    replaces the source's sorting.

    Parameters
    ----------
    function : PiecewiseQuadratic
        A convex function, such as the restriction of a hinge objective to a line.

    Returns
    -------
    step : float
        The smallest non-negative minimizer; ``inf`` if there is none.

    Raises
    ------
    TypeError
        If the function is not a :class:`sklearn_subqn.losses.PiecewiseQuadratic`.

    See Also
    --------
    exact_line_search_of_maxima : Exact line search for means of maxima of lines.

    Examples
    --------
    The absolute value of ``1 - step`` plus half the square of the step:

    >>> import numpy as np
    >>> from sklearn_subqn.losses import PiecewiseQuadratic
    >>> from sklearn_subqn.optimize import exact_line_search
    >>> at, by, zero = np.array([1.0]), np.array([2.0]), np.array([0.0])
    >>> exact_line_search(PiecewiseQuadratic(-1.0, 1.0, at, by, zero))
    1.0
    """
    if not isinstance(function, PiecewiseQuadratic):
        raise TypeError(
            "function must be a PiecewiseQuadratic, got "
            f"{type(function).__name__}: see sklearn_subqn.losses."
        )
    return float(minimize_piecewise(function))


def maximum_of_lines(
    slopes: Any, offsets: Any, low: float = 0.0, high: float = np.inf
) -> tuple[Floats, Indices]:
    """Find the segments of the maximum of linear functions ``offsets + step * slopes``.

    Alg. 3.4 of Yu (2009), in O(r log r) for r lines. Parallel lines, for which the
    source would divide by zero, are compared by their offsets.

    Parameters
    ----------
    slopes, offsets : array-like of shape (r,)
        Slopes and offsets of the lines.
    low, high : float, default=0 and inf
        First and last step.

    Returns
    -------
    steps : ndarray of shape (m,)
        Start of each segment, ascending from ``low``.
    lines : ndarray of shape (m,)
        Index of the largest line in each segment.

    Raises
    ------
    TypeError, ValueError
        If arguments are not acceptable.

    See Also
    --------
    exact_line_search_of_maxima : Minimizes the mean of several maxima of lines.

    Examples
    --------
    >>> from sklearn_subqn.optimize import maximum_of_lines
    >>> steps, lines = maximum_of_lines([-1.0, 0.0, 2.0], [1.0, 0.5, -2.5])
    >>> steps.tolist(), lines.tolist()
    ([0.0, 0.5, 1.5], [0, 1, 2])
    """
    a = _vector("slopes", slopes)
    b = _vector("offsets", offsets, len(a))
    check_number("low", low, low=-np.inf)
    if not high > low:
        raise ValueError(f"high must be larger than low, got {high!r} and {low!r}.")
    y = b + low * a
    # Among lines that are equal at ``low``, the steepest is the maximum.
    order = np.lexsort((-a, -y))
    stack = [(float(low), int(order[0]))]
    for line in order[1:]:
        meeting = np.inf
        while stack:
            start, top = stack[-1]
            if a[line] <= a[top]:
                meeting = np.inf
                break
            meeting = float((b[top] - b[line]) / (a[line] - a[top]))
            if meeting > start or len(stack) == 1:
                break
            stack.pop()
        if meeting < high:
            stack.append((max(meeting, float(low)), int(line)))
    steps, lines = zip(*stack, strict=True)
    return np.array(steps), np.array(lines, dtype=np.intp)


def exact_line_search_of_maxima(
    slopes: Any,
    offsets: Any,
    *,
    weights: Any = None,
    slope: float = 0.0,
    curvature: float = 0.0,
) -> float:
    """Minimize a mean of maxima of lines, plus a parabola, exactly over the step size.

    Alg. 3.5 of Yu (2009). The restriction of the multiclass hinge to a line has this
    form, with one line for each class of a row; an L2 penalty is the parabola.

    Parameters
    ----------
    slopes, offsets : array-like of shape (n, k)
        The k lines of each of n rows.
    weights : array-like of shape (n,), optional
        Non-negative weights of the rows; by default 1 / n.
    slope, curvature : float, default=0
        First and second derivative of the parabola at step zero; the second one must
        not be negative.

    Returns
    -------
    step : float
        The smallest non-negative minimizer; ``inf`` if there is none.

    Raises
    ------
    TypeError, ValueError
        If arguments are not acceptable.

    See Also
    --------
    maximum_of_lines : The segments of one maximum of lines.

    Examples
    --------
    The mean of ``max(0, 1 - step)`` and ``max(0, step - 3)``, and a parabola:

    >>> from sklearn_subqn.optimize import exact_line_search_of_maxima
    >>> exact_line_search_of_maxima(
    ...     [[0.0, -1.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, -3.0]], curvature=0.25
    ... )
    1.0
    """
    a = np.asarray(slopes, dtype=np.float64)
    b = np.asarray(offsets, dtype=np.float64)
    if a.ndim != 2 or a.shape != b.shape or not a.size:
        raise ValueError(
            f"slopes and offsets must have one shape (n, k), got {a.shape} and "
            f"{b.shape}."
        )
    s = np.full(len(a), 1.0 / len(a))
    if weights is not None:
        s = _vector("weights", weights, len(a))
        if np.any(s < 0.0):
            raise ValueError("weights must not be negative.")
    check_number("slope", slope, low=-np.inf)
    check_number("curvature", curvature, low=0.0)
    first, kinks, jumps = float(slope), [], []
    for weight, row_a, row_b in zip(s, a, b, strict=True):
        steps, lines = maximum_of_lines(row_a, row_b)
        first += weight * row_a[lines[0]]
        kinks.append(steps[1:])
        jumps.append(weight * np.diff(row_a[lines]))
    at, by = np.concatenate(kinks), np.concatenate(jumps)
    return exact_line_search(
        PiecewiseQuadratic(first, float(curvature), at, by, np.zeros(len(at)))
    )


def _vector(name: str, given: Any, length: int | None = None) -> Floats:
    """Return a vector of finite numbers."""
    vector = np.asarray(given, dtype=np.float64)
    if vector.ndim != 1 or not vector.size or length not in (None, len(vector)):
        wanted = "(d,)" if length is None else f"({length},)"
        raise ValueError(f"{name} must have shape {wanted}, got {vector.shape}.")
    if not np.isfinite(vector).all():
        raise ValueError(f"{name} must be finite numbers.")
    return vector

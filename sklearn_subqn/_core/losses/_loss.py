"""The interface of losses: values and subgradients, and members for faster solvers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from ._base import (
    Derivatives,
    Floats,
    PiecewiseQuadratic,
    RowForm,
    Rows,
    total_of_rows,
)
from ._curvature import as_curvature
from ._of_duals import OfDuals

_NO_ROWS = np.empty(0, dtype=np.intp)


class Loss(OfDuals):
    """Base class of convex functions R(z) = sum_i weights_i * loss_i(z_i) of scores.

    A subclass has to define values and subgradients, which are enough for bundle
    methods. All other members are optional and allow faster solvers; a member that a
    subclass does not define is never called. They are

    - ``conjugate``, for lower bounds from any dual point, and not from subgradients
      only;
    - ``restrict``, ``kink_rows`` and ``argsup``, for piecewise linear functions;
    - ``derivatives`` and ``curvature``, for differentiable functions;
    - ``dual_variables``, ``neutral_variables`` and ``envelope``, for functions with
      kinks that have a Moreau envelope.

    Attributes
    ----------
    infimum : float
        A lower bound of R over all scores, for losses without ``conjugate``; minus
        infinity if none is known. Models with an L1 penalty need it.
    slope_size : float
        An upper bound of the sum of the absolute entries of subgradients. It estimates
        the rounding error of values for losses without ``conjugate_at``.
    analytic : bool
        Whether R has derivatives of all orders, so that Newton's method finds
        minimizers over free parameters. Piecewise quadratic functions need exact line
        searches.
    curvature_error : float
        Upper bound of the relative error of second derivatives.
    invariant : bool
        Whether adding a constant to all scores of a row has no effect.
    ranks : bool
        Whether R depends only on differences between scores of different rows, so that
        an intercept has no effect.
    counts_rows : bool
        Whether rows must have equal weights.
    steep : bool
        Whether subgradients grow exponentially with the scores, so that cuts far from
        the minimizer give no useful bound.
    joint : bool
        Whether the loss uses all columns of y jointly; otherwise regressors fit each
        column separately.
    has_margin : bool
        Whether the loss is zero for scores far enough on the correct side.
    quadratic : bool
        Whether R is a quadratic function.
    by_columns : bool
        Whether second derivatives, if any, give models along single columns of X.
        Second derivatives of several scores per row have to define ``rank_one``.
    rows_each : float
        The number of samples in a row, for accuracies that depend on the size of a
        problem. It is more than one if a row is a sequence of tokens.

    See Also
    --------
    sklearn_subqn.losses.check_loss : Checks all members at random scores.
    sklearn_subqn.BMRMRegressor, sklearn_subqn.BMRMClassifier : Take such losses.
    sklearn_subqn.minimize : For functions that are no losses of linear scores.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_subqn import BMRMRegressor
    >>> from sklearn_subqn.losses import Loss, check_loss
    >>> class Asymmetric(Loss):
    ...     def value(self, scores, targets, weights):
    ...         r = targets - scores
    ...         return float(weights @ np.where(r > 0.0, r * r, -r))
    ...     def subgradient(self, scores, targets, weights):
    ...         r = targets - scores
    ...         return weights * np.where(r > 0.0, -2.0 * r, 1.0)
    >>> check_loss(Asymmetric(), [0.0, 1.0, 2.0])
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y = X @ [1.0, 2.0, 3.0]
    >>> reg = BMRMRegressor(loss=Asymmetric(), alpha=1e-2, tol=1e-2).fit(X, y)
    >>> bool(reg.dual_gap_ <= 1e-2 * reg.objective_)
    True
    """

    infimum: float = 0.0
    slope_size: float = 0.0
    analytic: bool = False
    curvature_error: float = 0.0
    invariant: bool = False
    ranks: bool = False
    counts_rows: bool = False
    steep: bool = False
    joint: bool = False
    has_margin: bool = False
    quadratic: bool = False
    by_columns: bool = True
    rows_each: float = 1.0

    # Names of attributes that cache the last computation, None at first. They refer to
    # the targets of a fit; copies and pickles start without them.
    _memos: ClassVar[tuple[str, ...]] = ()

    def __getstate__(self) -> Any:
        """Return the state to copy and pickle, without cached results."""
        state = super().__getstate__()
        if not self._memos or not isinstance(state, dict):
            return state
        return {k: None if k in self._memos else v for k, v in state.items()}

    @abstractmethod
    def value(self, scores: Floats, targets: Any, weights: Floats) -> float:
        """Return R(scores).

        Parameters
        ----------
        scores : ndarray of shape (n,) or (n, k)
            Scores of the rows: one per row or, with ``joint``, k.
        targets : ndarray of shape (n,) or (n, k)
            Targets, as passed by ``fit``.
        weights : ndarray of shape (n,)
            Non-negative weights of the rows, which sum to one.

        Returns
        -------
        value : float
            The weighted sum of the rows' losses.
        """

    @abstractmethod
    def subgradient(self, scores: Floats, targets: Any, weights: Floats) -> Floats:
        """Return one u in the subdifferential of R at ``scores``.

        Parameters
        ----------
        scores : ndarray of shape (n,) or (n, k)
            Scores of the rows: one per row or, with ``joint``, k.
        targets : ndarray of shape (n,) or (n, k)
            Targets, as passed by ``fit``.
        weights : ndarray of shape (n,)
            Non-negative weights of the rows, which sum to one.

        Returns
        -------
        u : ndarray of the shape of ``scores``
            With ``R(z) >= R(scores) + <u, z - scores>`` for all z.
        """

    def evaluate(
        self, scores: Floats, targets: Any, weights: Floats
    ) -> tuple[float, Floats]:
        """Return value and subgradient; subclasses may compute both at once.

        Parameters
        ----------
        scores : ndarray of shape (n,) or (n, k)
            Scores of the rows: one per row or, with ``joint``, k.
        targets : ndarray of shape (n,) or (n, k)
            Targets, as passed by ``fit``.
        weights : ndarray of shape (n,)
            Non-negative weights of the rows, which sum to one.

        Returns
        -------
        value : float
            The value, as returned by ``value``.
        u : ndarray of the shape of ``scores``
            The subgradient, as returned by ``subgradient``.
        """
        args = scores, targets, weights
        return self.value(*args), self.subgradient(*args)

    def shifted(
        self, scores: Floats, targets: Any, weights: Floats
    ) -> Callable[[float], tuple[float, Floats]]:
        """Return value and subgradient as functions of a number added to all scores.

        Scores have shape (n,). The functions are used to minimize over an intercept.
        """
        return lambda shift: self.evaluate(scores + shift, targets, weights)

    @property
    def looped(self) -> RowForm | None:
        """The loss in the form for compiled loops over few rows, or None."""
        return None

    def check_rows(self, n_rows: int) -> None:
        """Raise ValueError if a single group of ``n_rows`` rows is too small."""

    def threshold(self, scores: Floats) -> float | None:
        """Return the score above which rows are predicted positive, or None."""
        return None

    def overflows(self, scores: Floats, targets: Any, weights: Floats) -> bool:
        """Whether scores are so large that ``value`` deviates from the loss."""
        return False

    def curvature_radius(self, scores: Floats, targets: Any) -> Floats:
        """Return the radius within which second derivatives model each row's loss.

        The radii have shape (n,), in units of scores. A radius is zero where it is
        unknown.
        """
        return np.zeros(len(scores))

    def score_scale(self, scores: Floats, targets: Any, weights: Floats) -> float:
        """Return a unit of scores, to which widths of envelopes are relative."""
        return 1.0

    def kink_rows(self, scores: Floats, targets: Any) -> Rows:
        """Return the indices of rows on a kink, within 1e-10 of their scores.

        Parameters
        ----------
        scores : ndarray of shape (n,) or (n, k)
            Scores of the rows: one per row or, with ``joint``, k.
        targets : ndarray of shape (n,) or (n, k)
            Targets, as passed by ``fit``.

        Returns
        -------
        rows : ndarray of int
            Rows whose loss has several subgradients.
        """
        return _NO_ROWS

    def argsup(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> Floats:
        """Return the subgradient u at ``scores`` that maximizes <u, dscores>.

        Only ever called with rows from ``kink_rows``.

        Parameters
        ----------
        scores : ndarray of shape (n,) or (n, k)
            Scores of the rows: one per row or, with ``joint``, k.
        dscores : ndarray of the shape of ``scores``
            A direction.
        targets : ndarray of shape (n,) or (n, k)
            Targets, as passed by ``fit``.
        weights : ndarray of shape (n,)
            Non-negative weights of the rows, which sum to one.

        Returns
        -------
        u : ndarray of the shape of ``scores``
            One subgradient.
        """
        return self.subgradient(scores, targets, weights)

    def restrict(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> PiecewiseQuadratic:
        """Return R(scores + eta * dscores) as a function of the step size eta.

        Parameters
        ----------
        scores : ndarray of shape (n,) or (n, k)
            Scores of the rows: one per row or, with ``joint``, k.
        dscores : ndarray of the shape of ``scores``
            A direction.
        targets : ndarray of shape (n,) or (n, k)
            Targets, as passed by ``fit``.
        weights : ndarray of shape (n,)
            Non-negative weights of the rows, which sum to one.

        Returns
        -------
        function : PiecewiseQuadratic
            Its slope and curvature at zero, and their changes at its kinks.
        """
        raise self._lacks("restriction to a line")

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Any, weights: Floats
    ) -> Derivatives:
        """Return eta -> (slope, curvature) of R(scores + eta * dscores).

        At a kink of the slope, the curvature is the value on either side.

        Parameters
        ----------
        scores : ndarray of shape (n,) or (n, k)
            Scores of the rows: one per row or, with ``joint``, k.
        dscores : ndarray of the shape of ``scores``
            A direction.
        targets : ndarray of shape (n,) or (n, k)
            Targets, as passed by ``fit``.
        weights : ndarray of shape (n,)
            Non-negative weights of the rows, which sum to one.

        Returns
        -------
        derivatives : callable
            Returns two floats for a step size.
        """
        raise self._lacks("derivatives on a line")

    def derivatives_of_shift(
        self, scores: Floats, shift: Floats, targets: Any, weights: Floats
    ) -> tuple[Floats, Floats]:
        """Return the derivatives of R by a shift of all scores, at ``shift``.

        First derivatives have shape (k,), and second derivatives shape (k, k).
        """
        scores = scores + shift
        slopes = total_of_rows(self.subgradient(scores, targets, weights))
        curvature = as_curvature(
            self.curvature(scores, targets, weights), scores, type(self).__name__
        )
        return np.atleast_1d(slopes), curvature.total()

    def curvature(self, scores: Floats, targets: Any, weights: Floats) -> Any:
        """Return generalized second derivatives of R, weights included.

        Parameters
        ----------
        scores : ndarray of shape (n,) or (n, k)
            Scores of the rows: one per row or, with ``joint``, k.
        targets : ndarray of shape (n,) or (n, k)
            Targets, as passed by ``fit``.
        weights : ndarray of shape (n,)
            Non-negative weights of the rows, which sum to one.

        Returns
        -------
        curvature : ndarray of shape (n,), (n, k) or (n, k, k)
            The diagonal, of the shape of the scores, or a k x k matrix for each row.
        """
        raise self._lacks("second derivatives")

    def conjugate_near(
        self,
        dual: Floats,
        scores: Floats,
        dscores: Floats,
        targets: Any,
        weights: Floats,
    ) -> float:
        """Return an upper bound of R*(u - R''(z) dz) for the gradient u at z.

        It is infinite if no bound is known. Losses that are sums of log-sum-exp
        functions have this method.

        Parameters
        ----------
        dual : ndarray of shape (n,)
            The gradient u.
        scores : ndarray of shape (n,)
            Scores z of the rows.
        dscores : ndarray of shape (n,)
            The direction dz.
        targets : ndarray of shape (n,)
            Targets, as passed by ``fit``.
        weights : ndarray of shape (n,)
            Non-negative weights of the rows, which sum to one.

        Returns
        -------
        conjugate : float
            An upper bound of R*.
        """
        raise self._lacks("conjugate near a gradient")

    def dual_variables(self, dual: Floats, targets: Any, weights: Floats) -> Floats:
        """Return the dual variables of a dual point u, without weights and signs.

        Parameters
        ----------
        dual : ndarray of the shape of scores
            The dual u, in the units of subgradients, weights included.
        targets : ndarray of shape (n,) or (n, k)
            Targets, as passed by ``fit``.
        weights : ndarray of shape (n,)
            Non-negative weights of the rows, which sum to one.

        Returns
        -------
        variables : ndarray
            One or several numbers of each row.
        """
        raise self._lacks("dual variables")

    def neutral_variables(self, targets: Any) -> Floats:
        """Return dual variables in the middle of their set, equal in all rows.

        Parameters
        ----------
        targets : ndarray of shape (n,) or (n, k)
            Targets, as passed by ``fit``.

        Returns
        -------
        variables : ndarray
            Of the shape that ``dual_variables`` returns.
        """
        raise self._lacks("dual variables")

    def envelope(self, center: Floats, width: float) -> Loss:
        """Return the Moreau envelope around dual variables.

        It subtracts ``width / 2 * ||b - center||²`` inside the maximum over the dual
        variables b.

        Parameters
        ----------
        center : ndarray
            Dual variables, of the shape that ``dual_variables`` returns.
        width : float
            Positive.

        Returns
        -------
        loss : Loss
            A differentiable lower bound of this loss.
        """
        raise self._lacks("smooth envelope")

    def kinked(self) -> Any:
        """Return the limit of this loss as the widths of curved parts tend to zero."""
        raise self._lacks("bends of any width")

    def narrowed(self, width: float) -> Loss:
        """Return a smooth lower bound of this loss, close to it for small widths.

        Its gradients are in the domain of R*.
        """
        raise self._lacks("smooth functions close to it")


class WholeLoss(Loss):
    """Base of losses whose value and subgradient are computed by ``evaluate``."""

    def value(self, scores: Floats, targets: Any, weights: Floats) -> float:
        return self.evaluate(scores, targets, weights)[0]

    def subgradient(self, scores: Floats, targets: Any, weights: Floats) -> Floats:
        return self.evaluate(scores, targets, weights)[1]


def offers(oracle: Loss, *names: str) -> bool:
    """Whether the class of an oracle defines all of the named members."""
    kind = type(oracle)
    return all(getattr(kind, name) is not getattr(Loss, name) for name in names)

"""Newton's method on faces of boxes and orthants (Bertsekas 1982, Byrd et al. 2016).

Coordinates at a bound stay at it if J decreases only beyond the bound. With an L1 norm,
zero is a bound as well. The penalty is linear in the orthant of the signs of w, or of
-g where w is zero and the subgradient g of least norm is not; there J is as smooth as
the risk. The other coordinates span a face F, on which a Newton step

    H_FF p_F = -g_F,    w <- the projection of w + t p onto box and orthant,

is taken with the first t = 1, 1/2, ... that decreases J enough. Coordinates that reach
their bounds stay there. On the face of the optimum, steps are unconstrained Newton
steps with quadratic convergence. The method continues after OWL-QN when decreases are
below the rounding error of J. At that point, the gradient and the dual point of OWL-QN
have only half of the digits.

With linear inequalities A w <= b a step minimizes the quadratic model under all
inequalities, which is a projection in the metric of H.

Losses with kinks are replaced by the smooth envelopes of the proximal method of
multipliers, as in ``alm``.

- D. P. Bertsekas (1982), Projected Newton Methods for Optimization Problems with Simple
  Constraints, SIAM J. Control Optim. 20.
- R. H. Byrd, G. M. Chin, J. Nocedal, F. Oztoprak (2016), A Family of Second-Order
  Methods for Convex l1-Regularized Optimization, Math. Program. 159.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy import linalg

from ..driver import Iterate, Solver, Start, Status
from ..losses._base import Floats
from ..objectives.hessian import Hessian
from ..objectives.objective import Objective, Point
from ..regularizers import Bounded, ElasticNet, Polyhedron, projected
from ..rounding import MOST_STEPS, ROUNDED
from ..steps.intercepts import minimize_intercept
from ..steps.line_search import SUFFICIENT, rounding_of
from ..steps.newton_direction import CG_ACCURACY, conjugate_gradients, is_factorized
from .widths import newton_in_turn


def face_newton(objective: Objective, start: Start) -> Solver:
    """Yield the iterates of Newton's method on faces of a domain, or of orthants.

    Parameters
    ----------
    objective : Objective
        Objective with a smooth loss that has second derivatives, and an ``ElasticNet``,
        ``Bounded`` or a ``Polyhedron``.
    start : Start
        Starting point.

    Returns
    -------
    status : str
        "stationary": the conditions of optimality hold exactly. "no_step": no step
        decreases the objective. "no_progress": the largest violation does not decrease
        either. The last two occur when only rounding errors remain.
    """
    point = minimize_intercept(start.or_origin(objective))
    value, worst = np.inf, np.inf
    while True:
        yield Iterate(point, None, point.lower_bound, "newton on a face")
        face = _face(point)
        last, worst = worst, float(np.abs(face.gradient).max())
        if not worst:
            return Status.STATIONARY
        if point.value >= value and worst >= last:
            return Status.NO_PROGRESS
        value = point.value
        new = face.next()
        if new is None:
            return Status.NO_STEP
        point = minimize_intercept(new)


def face_alm(objective: Objective, start: Start) -> Solver:
    """Yield the iterates of the proximal method of multipliers by steps on faces.

    Parameters
    ----------
    objective : Objective
        Objective whose loss has ``envelope`` and ``dual_variables``, with an
        ``ElasticNet``, ``Bounded`` or a ``Polyhedron``.
    start : Start
        Starting point. Its dual point is the first center; default the subgradient of
        the loss there.

    Returns
    -------
    status : str
        "no_progress": the gap no longer decreases; it is a rounding error.
    """
    start = Start.from_point(start.or_origin(objective), start.dual)
    return newton_in_turn(objective, start, _steps, None, "alm on a face")


def _steps(point: Point) -> Iterator[tuple[Point, Point]]:
    """Yield the start and the point after each step, all minimized over intercepts."""
    new: Point | None = point
    while new is not None:
        point = minimize_intercept(new)
        yield point, point
        new = _face(point).next()


def _face(point: Point) -> _Face:
    """Return the face at a point, of a polyhedron or of a box and orthant."""
    kind = isinstance(point.objective.regularizer, Polyhedron)
    return _OfPolyhedron(point) if kind else _OfBox(point)


class _Face(Hessian):
    """The face at a point, and the Hessian of J there.

    Attributes
    ----------
    gradient : ndarray of shape (q,)
        Subgradient of least norm, zero in coordinates that stay at their bounds.
    """

    gradient: Floats

    def __init__(self, point: Point) -> None:
        super().__init__(point.objective, point.w, point.curvature)
        self._point = point

    def next(self) -> Point | None:
        """Return the first of the steps 1, 1/2, ... that decreases J enough, or None.

        Near the optimum the decrease of a good step may be below the rounding error, so
        J may increase by the rounding error.
        """
        point, p = self._point, self._direction()
        allowed = point.value + rounding_of(point)
        for n_halvings in range(MOST_STEPS):
            w = self._projected(point.w + 0.5**n_halvings * p)
            new = point.objective.at(w)
            promised = float(self.gradient @ (w - point.w))
            if new.value <= allowed + SUFFICIENT * promised:
                return new
        return None

    def _matrix(self) -> Floats:
        """Return the Hessian with a slightly increased diagonal.

        Piecewise losses may have no curvature.
        """
        matrix = self.matrix()
        matrix[np.diag_indices_from(matrix)] += ROUNDED * matrix.diagonal().max()
        return matrix

    @abstractmethod
    def _direction(self) -> Floats:
        """Return the Newton step on the face."""

    @abstractmethod
    def _projected(self, w: Floats) -> Floats:
        """Return the projection of w onto the domain."""


class _OfBox(_Face):
    """The face of a box, and with an L1 norm of an orthant."""

    def __init__(self, point: Point) -> None:
        super().__init__(point)
        penalty = point.objective.regularizer
        if not isinstance(penalty, Bounded):
            penalty = point.objective.elastic_net
        self._penalized: Bounded | ElasticNet = penalty
        alpha = point.objective.alpha
        g = penalty.smallest_subgradient(point.w, point.risk_gradient, alpha)
        self._free = ~penalty.is_held(point.w, g)
        self.gradient = np.where(self._free, g, 0.0)
        self._signs = np.where(point.w == 0.0, -np.sign(g), np.sign(point.w))

    def apply(self, v: Floats) -> Floats:
        """Return the product with v, which is zero outside of the face."""
        return np.where(self._free, super().apply(v), 0.0)

    def _direction(self) -> Floats:
        o = self._point.objective
        if o.risk.makes_matrix(self._point.curvature) and is_factorized(o, CG_ACCURACY):
            inside = np.flatnonzero(self._free)
            matrix = self._matrix()[np.ix_(inside, inside)]
            p = np.zeros_like(self.gradient)
            p[inside] = np.linalg.solve(matrix, -self.gradient[inside])
            return p
        return conjugate_gradients(self, -self.gradient)[0]

    def _projected(self, w: Floats) -> Floats:
        penalty = self._penalized
        w, n = penalty.nearest(w), penalty.n_penalized
        if penalty.l1_ratio:
            w[:n][w[:n] * self._signs[:n] < 0.0] = 0.0
        return w


class _OfPolyhedron(_Face):
    """The face of a polyhedron that contains the end of a Newton step.

    The step p minimizes <g, p> + <p, H p> / 2 for A (w + p) <= b. With the Cholesky
    factor of H = L Lᵀ and y = Lᵀ p, this is the projection of -L⁻¹ g onto the
    inequalities for y.
    """

    def __init__(self, point: Point) -> None:
        super().__init__(point)
        within = point.objective.regularizer
        assert isinstance(within, Polyhedron)
        A = np.zeros((len(within.b), len(point.w)))
        A[:, : within.n_penalized] = within.A
        L = np.linalg.cholesky(self._matrix())
        solve = partial(linalg.solve_triangular, L, lower=True)
        left = np.maximum(within.b - A @ point.w, 0.0)
        y, multipliers = projected(solve(A.T).T, left, -solve(point.gradient))
        self._step = solve(y, trans="T")
        self.gradient = point.gradient + multipliers @ A

    def _direction(self) -> Floats:
        return self._step

    def _projected(self, w: Floats) -> Floats:
        return self._point.objective.regularizer.nearest(w)

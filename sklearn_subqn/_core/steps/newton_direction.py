"""Newton directions, by factorization or by conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import linalg

from .. import lapack
from ..losses._base import Floats
from ..objectives.objective import Hessian, Objective, Point
from ..rounding import ROUNDED

# The matrix is factorized unless it is much larger than a row. Conjugate gradients read
# the rows repeatedly, and more often for higher accuracy. Products of matrices run at
# the speed of BLAS, products with sparse rows at the speed of memory. docs/constants.md
# has the figures.
_MATRIX_SHARE = 450.0
_MAX_DENSE = 2000

# Data with at most four rows for each feature are wide: rows are nearly separable.
# docs/constants.md has the figures.
_WIDE = 4

# After a step shorter than this on wide data, the intercept is part of the direction
# instead of being minimized over. Minimizing over the intercept changes all scores, so
# rows may get curvature that the Hessian of the direction lacks. docs/constants.md has
# the figures.
_SHORT = 0.05

# A linear system in at most 200 parameters costs no more than the system in dual
# variables of the rows. On wide data whose features have very different scales, the
# system in dual variables does not reach the required gap.
_FEW_PARAMS = 200

# Maximum number of features for which the eigenvectors of their moment matrix
# precondition systems of several scores. docs/constants.md has the figures.
_MAX_SPECTRUM = 1000

# If the penalty is below 1e-8 of the squared norms of rows, systems are ill-conditioned
# and always factorized. docs/constants.md has the figures.
_FREE = 1e8

# Relative residual at which conjugate gradients stop.
CG_ACCURACY = 0.1

# Limit on the conjugate gradient iterations of a direction.
_CG_LIMIT = 100

# Conjugate gradients stop once the predicted gradient proves a third of the gap at
# which the run stops. docs/constants.md has the figures.
_SHARE_OF_ALLOWED = 1.0 / 3.0

# Conjugate gradients take one row in four while such a sample suffices.
# docs/constants.md has the figures.
_STRIDE = 4

# Each direction of a sample has to reduce the predicted gap to a quarter.
# docs/constants.md has the figures.
_SUFFICES = 0.25


def is_wide(objective: Objective) -> bool:
    """Whether there are at most ``_WIDE`` rows for each feature."""
    design = objective.design
    return design.n_rows <= _WIDE * design.n_features


def is_short(step: float) -> bool:
    """Whether a step shows that its direction's Hessian contained too few rows."""
    return step <= _SHORT


def is_factorized(
    objective: Objective, rtol: float, n_unknowns: int | None = None
) -> bool:
    """Whether directions of accuracy ``rtol`` are found by factorizing a matrix.

    By default the matrix has all parameters. With several scores per row, products are
    usually faster. Factorization is faster for few parameters if there are no more rows
    than features, or if all rows have second derivatives for all scores: log loss takes
    0.44 s instead of 0.82 s on letter, and 3.0 s instead of 3.9 s on covtype (7
    classes).
    """
    design = objective.design
    risk = objective.risk
    has_pairs_at_hand = risk.design.in_one_place or (
        risk.parts is not None and design.holds_rows
    )
    if objective.loss.ranks and not has_pairs_at_hand:
        # If R'' is not block diagonal by rows, every pair of rows contributes to the
        # matrix.
        return False
    q = objective.n_params if n_unknowns is None else n_unknowns
    full = objective.loss.analytic and not design.shares_coef
    short = full or design.n_rows <= design.n_features
    if n_unknowns is None and design.several_scores and short and q > _FEW_PARAMS:
        return False
    row_size = design.row_size * (design.n_outputs or 1)
    # A penalty that couples coefficients needs a matrix of this size in any case.
    small = q * q <= _MATRIX_SHARE / rtol * row_size or objective.regularizer.coupled
    return q <= _MAX_DENSE and small


def eliminates_category(objective: Objective) -> bool:
    """Whether systems are factorized after eliminating a categorical feature."""
    design = objective.design
    if not objective.design.in_one_place or objective.loss.ranks:
        return False
    n_own = len(design.category)
    p = objective.n_params - n_own
    if not n_own or is_factorized(objective, CG_ACCURACY, p):
        return n_own > 0
    return p <= _MAX_DENSE and design.mean_square > _FREE * objective.alpha


class NewtonDirections:
    """Solutions p of H p = -g at successive points of a smooth objective.

    If conjugate gradients reach their limit with several scores per row, and second
    derivatives have low rank, a system by rows is solved instead; after two successive
    failures, later systems are solved by rows at once. With this rule a fit of 6,000
    images with pixels from 0 to 255 in ten classes reaches a gap of 1e-4 in 18 s;
    without it the gap is above 1 after 270 s. Otherwise conjugate gradients are faster:
    usps at 1e-3 takes 0.71 s, and 0.84 s with systems by rows after the first failure.
    """

    def __init__(self) -> None:
        self._n_slow = 0
        self._samples, self._last = True, np.inf

    def at(
        self,
        point: Point,
        hessian: Hessian | None = None,
        *,
        rtol: float = CG_ACCURACY,
        max_iter: int = _CG_LIMIT,
        allowed: float = 0.0,
    ) -> Floats:
        """Return an approximate solution.

        Components of the intercepts that have no effect, such as a common constant, are
        removed, because rounding errors may make them large.

        Parameters
        ----------
        point : Point
            A point with ``gradient`` and ``hessian``.
        hessian : Hessian, optional
            Default the Hessian at the point.
        rtol, max_iter : float, int
            Tolerance on the residual and limit on the iterations of conjugate
            gradients, if no system is solved.
        allowed : float
            The gap at which the run stops. Conjugate gradients stop when the predicted
            gradient proves a smaller gap.
        """
        hessian = hessian or point.hessian
        p = self._solution(point, hessian, rtol, max_iter, allowed)
        objective = point.objective
        if objective.n_free:
            first = len(p) - objective.n_free
            p[first:] = objective.risk.oracle.determined(p[first:])
        return p

    def _solution(
        self,
        point: Point,
        hessian: Hessian,
        rtol: float,
        max_iter: int,
        allowed: float,
    ) -> Floats:
        objective, rhs = point.objective, -point.gradient
        design = objective.design
        few = _has_few_rows(objective, hessian, rtol)
        if few and (self._n_slow > 1 or not design.several_scores):
            return _by_rows(hessian, rhs)
        matrix = objective.risk.makes_matrix(point.curvature)
        if matrix and is_factorized(objective, rtol):
            return solution_operator(hessian.matrix())(rhs)
        if matrix and eliminates_category(objective):
            return hessian.bordered().solution(solution_operator, rhs)
        solve = None
        several = design.several_scores and not design.shares_coef
        if several and design.n_features <= _MAX_SPECTRUM:
            solve = hessian.spectral_solve()
        p, is_solved = conjugate_gradients(
            self._sampled(point, hessian, allowed),
            rhs,
            rtol=rtol,
            max_iter=max_iter,
            solve=solve,
            least_gap=_SHARE_OF_ALLOWED * allowed,
        )
        if few and not is_solved:
            self._n_slow += 1
            return _by_rows(hessian, rhs)
        self._n_slow = 0
        return p

    def _sampled(self, point: Point, hessian: Hessian, allowed: float) -> Hessian:
        """Return the Hessian of a sample of the rows while it suffices.

        A sample estimates the Hessian well if its rows have less curvature than the
        penalty, so that their leverages are small (Alaoui and Mahoney 2015). The mean
        curvature is weighted by the curvature, since a few rows with large norms may
        have most of it.
        """
        design, curvature = point.objective.design, point.curvature
        gap, last = hessian.gap(point.gradient), self._last
        self._last = gap
        self._samples &= allowed > 0.0 and gap < _SUFFICES * last
        self._samples &= design.in_one_place and curvature.by_rows
        if not self._samples or design.several_scores:
            return hessian
        rows = curvature.diagonal() * design.squares
        limit = hessian.penalty * float(rows.sum())
        self._samples = 2.0 * _STRIDE * float(rows @ rows) <= limit
        return point.sampled_hessian(_STRIDE) if self._samples else hessian


def _has_few_rows(objective: Objective, hessian: Hessian, rtol: float) -> bool:
    """Whether the rank of second derivatives is below the number of parameters."""
    if objective.design.shares_coef or not hessian.risk.has_rows:
        return False
    rank = hessian.risk.rank
    return (
        max(rank, _FEW_PARAMS) < objective.n_params
        and is_factorized(objective, rtol, rank)
        and hessian.penalty > 0.0
    )


def _by_rows(hessian: Hessian, rhs: Floats) -> Floats:
    """Solve H p = rhs by a system whose size is the rank of second derivatives.

    The second derivatives are Uᵀ U, and Vᵀ V for intercepts. For p = (w, b) and t = U w
    + V b, H p = (alpha w + Uᵀ t, Vᵀ t). Eliminating w leaves a system of t and b
    (Woodbury's identity, 1950) whose eigenvalues are at least one.
    """
    alpha, n_free = hessian.penalty, hessian.n_free
    n_coef = len(rhs) - n_free
    p = rhs / alpha
    p[n_coef:] = 0.0
    if not hessian.n_rows:
        p[n_coef:] = rhs[n_coef:]
        return p
    roots, system = hessian.risk.row_system()
    system /= alpha
    system[np.diag_indices_from(system)] += 1.0
    free = roots[:, :n_free]
    right = np.column_stack([hessian.risk.forward(p), free])
    t, *columns = solution_operator(system)(right).T
    if n_free:
        # A constant added to all intercepts may have no effect, so the matrix may be
        # singular.
        inverse = np.stack(columns, axis=1)
        right = rhs[n_coef:] - free.T @ t
        p[n_coef:] = lapack.lstsq(free.T @ inverse, right, rcond=ROUNDED)[0]
        t += inverse @ p[n_coef:]
    p[:n_coef] -= hessian.risk.adjoint(t)[:n_coef] / alpha
    return p


def solution_operator(matrix: Floats) -> Callable[[Floats], Floats]:
    """Return a function that solves systems with a positive definite matrix.

    The matrix may be overwritten.
    """
    # A free parameter without rows of positive curvature has a zero row. Rounding may
    # make the matrix indefinite. Scaling makes parameters of different units
    # comparable.
    diagonal = np.einsum("ii->i", matrix)
    diagonal[diagonal == 0.0] = 1.0
    share = 1e-15
    for _ in range(8):
        try:
            factor = linalg.cho_factor(matrix, check_finite=False)
            return partial(linalg.cho_solve, factor, check_finite=False)
        except linalg.LinAlgError:
            diagonal *= 1.0 + share
            share *= 10.0
    return lambda rhs: (rhs.T / diagonal).T


def conjugate_gradients(
    hessian: Hessian,
    rhs: Floats,
    *,
    rtol: float = CG_ACCURACY,
    max_iter: int = _CG_LIMIT,
    diagonal: Floats | None = None,
    radius: float = np.inf,
    solve: Callable[[Floats], Floats] | None = None,
    least_gap: float = 0.0,
) -> tuple[Floats, bool]:
    """Solve H p = rhs by preconditioned conjugate gradients.

    The preconditioner is ``solve`` or, by default, the diagonal of H.

    Iterations stop when the residual has decreased by ``rtol`` in the norm of the
    preconditioner, or when it is a gradient that proves a gap of ``least_gap``. They
    also stop on the boundary of the trust region ||p||² = <p, diagonal * p> <= radius²
    (Steihaug 1983). Every iterate is a descent direction of the quadratic model, and
    its norm is larger than the norm of the previous iterate. Returns p, and whether the
    limit on iterations was not reached.
    """
    if solve is None:
        if diagonal is None:
            diagonal = preconditioner(hessian)
        solve = partial(np.multiply, 1.0 / diagonal)
    p = np.zeros_like(rhs)
    residual = rhs.copy()
    scaled = solve(residual)
    search = scaled.copy()
    square = first = norm = float(residual @ scaled)
    for _ in range(max_iter):
        if not square > rtol * rtol * first:
            return p, True
        product = hessian.apply(search)
        curvature = float(search @ product)
        if not curvature > ROUNDED * norm:
            return p, True
        step = square / curvature
        if radius < np.inf:
            assert diagonal is not None
            to_boundary = _step_to_boundary(p, search, diagonal, radius)
            if to_boundary <= step:
                return p + to_boundary * search, True
        p += step * search
        residual -= step * product
        # Minimization over the intercept changes the other entries of the residual.
        if (
            least_gap
            and hessian.gap(residual) <= least_gap
            and hessian.gap(hessian.without_intercept(residual)) <= least_gap
        ):
            return p, True
        scaled = solve(residual)
        previous, square = square, float(residual @ scaled)
        norm = square + (square / previous) ** 2 * norm
        search *= square / previous
        search += scaled
    return p, not square > rtol * rtol * first


def preconditioner(hessian: Hessian) -> Floats:
    """Return the diagonal of H, with ones for parameters without curvature."""
    diagonal = hessian.diagonal()
    diagonal[diagonal == 0.0] = 1.0
    return diagonal


def _step_to_boundary(p: Floats, search: Floats, diagonal: Floats, r: float) -> float:
    """Return t > 0 with ||p + t * search|| = r in the norm of the diagonal."""
    a = float(search @ (diagonal * search))
    b = float(search @ (diagonal * p))
    c = float(p @ (diagonal * p)) - r * r
    return float((np.sqrt(max(b * b - a * c, 0.0)) - b) / a)

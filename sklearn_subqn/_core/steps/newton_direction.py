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

# The matrix is factorized where it is not much larger than what conjugate gradients
# would have to read of a row again and again, more often for more accuracy: products of
# matrices run at the speed of BLAS, products with sparse rows at that of memory.
# docs/constants.md has the figures.
_MATRIX_SHARE = 450.0
_MAX_DENSE = 2000

# Data with up to four rows for each feature are wide: rows can nearly be separated.
# docs/constants.md has the figures.
_WIDE = 4

# After a step shorter than this, on wide data, the intercept is left to directions:
# minimized over after each step it moves all rows a little, and where these are held
# tightly, others than those of which the direction knew get a curvature.
# docs/constants.md has the figures.
_SHORT = 0.05

# A system of at most 200 parameters takes no longer than one of rows, by which wide
# data with features of very different scales end unproven.
_FEW_PARAMS = 200

# Eigenvectors of at most 1000 features precondition problems of several scores.
# docs/constants.md has the figures.
_MAX_SPECTRUM = 1000

# A penalty of less than 1e-8 of the squares of rows hardly conditions systems, which
# are then factorized whatever products take. docs/constants.md has the figures.
_FREE = 1e8

# Directions by conjugate gradients leave a tenth of the gradient.
CG_ACCURACY = 0.1

# Directions by conjugate gradients take at most 100 iterations.
_CG_LIMIT = 100

# Conjugate gradients end where the gradient that they predict proves a third of the gap
# at which the run ends. docs/constants.md has the figures.
_SHARE_OF_ALLOWED = 1.0 / 3.0


def is_wide(objective: Objective) -> bool:
    """Whether there are at most a few rows for each feature."""
    design = objective.design
    return design.n_rows <= _WIDE * design.n_features


def is_short(step: float) -> bool:
    """Whether a step in a Newton direction shows that it knew of too few rows."""
    return step <= _SHORT


def is_factorized(
    objective: Objective, rtol: float, n_unknowns: int | None = None
) -> bool:
    """Whether directions of accuracy ``rtol`` are found by factorizing a matrix.

    That of all parameters is the default. With several scores per row, products take
    less time except for few parameters where there are no more rows than features, or
    where all rows have second derivatives for all scores: .44 s for .82 of log loss on
    letter, 3.0 for 3.9 on covtype (7 classes).
    """
    design = objective.design
    risk = objective.risk
    has_pairs_at_hand = risk.in_one_place or (
        risk.parts is not None and design.holds_rows
    )
    if objective.loss.ranks and not has_pairs_at_hand:
        # Rows of different parts, or of different readings, would have to be
        # multiplied with each other.
        return False
    q = objective.n_params if n_unknowns is None else n_unknowns
    full = objective.loss.analytic and not design.shares_coef
    short = full or design.n_rows <= design.n_features
    if n_unknowns is None and design.several_scores and short and q > _FEW_PARAMS:
        return False
    row_size = design.row_size * (design.n_outputs or 1)
    # The matrix of a penalty that couples coefficients is as large.
    small = q * q <= _MATRIX_SHARE / rtol * row_size or objective.regularizer.coupled
    return q <= _MAX_DENSE and small


def eliminates_category(objective: Objective) -> bool:
    """Whether systems are factorized once a category is eliminated from them."""
    design = objective.design
    if not objective.risk.in_one_place or objective.loss.ranks:
        return False
    n_own = len(design.category)
    p = objective.n_params - n_own
    if not n_own or is_factorized(objective, CG_ACCURACY, p):
        return n_own > 0
    return p <= _MAX_DENSE and design.mean_square > _FREE * objective.alpha


class NewtonDirections:
    """Solutions p of H p = -g at one point after the other of a smooth objective.

    Where conjugate gradients reach their limit for several scores per row, and second
    derivatives have little rank, these are solved for by rows, from the second time in
    succession on at once: 6,000 images with pixels from 0 to 255, ten classes, are
    proven to 1e-4 in 18 s and were not to 1 in 270 s. Elsewhere conjugate gradients
    take less time than systems do: usps at 1e-3 .71 s for .84 by systems after the
    first time.
    """

    def __init__(self) -> None:
        self._n_slow = 0

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

        Its intercepts lack what changes nothing, such as a constant added to all of
        them: rounding may make that large.

        Parameters
        ----------
        point : Point
            Offers ``gradient`` and ``hessian``.
        hessian : Hessian, optional
            Default that of the point.
        rtol, max_iter : float, int
            Tolerance on the residual and limit on the iterations of conjugate
            gradients, where no system is solved.
        allowed : float
            The gap at which the run ends: conjugate gradients need not predict a
            gradient that proves much less.
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
            hessian,
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


def _has_few_rows(objective: Objective, hessian: Hessian, rtol: float) -> bool:
    """Whether second derivatives have less rank than there are parameters."""
    if objective.design.shares_coef or not hessian.risk.has_rows:
        return False
    rank = hessian.risk.rank
    return (
        max(rank, _FEW_PARAMS) < objective.n_params
        and is_factorized(objective, rtol, rank)
        and hessian.penalty > 0.0
    )


def _by_rows(hessian: Hessian, rhs: Floats) -> Floats:
    """Solve H p = rhs with as many unknowns as second derivatives have rank.

    These are Uᵀ U, for intercepts Vᵀ V. With t = U w + V b for p = (w, b),
    H p = (alpha w + Uᵀ t, Vᵀ t). Eliminating w leaves a system of t and b (the
    identity of Woodbury 1950) without eigenvalues below one.
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
        # Adding a constant to all intercepts may change nothing.
        inverse = np.stack(columns, axis=1)
        right = rhs[n_coef:] - free.T @ t
        p[n_coef:] = lapack.lstsq(free.T @ inverse, right, rcond=ROUNDED)[0]
        t += inverse @ p[n_coef:]
    p[:n_coef] -= hessian.risk.adjoint(t)[:n_coef] / alpha
    return p


def solution_operator(matrix: Floats) -> Callable[[Floats], Floats]:
    """Return what solves systems with a positive definite matrix, up to rounding.

    The matrix may be overwritten.
    """
    # Without rows of curvature a free parameter has a zero row; and rounding may make
    # the matrix indefinite. Parameters may be of very different units.
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

    The preconditioner is ``solve`` if given, else the diagonal of H.

    Stops when the residual has fallen by ``rtol`` in the norm of the preconditioner,
    after the first step where it is a gradient that proves a gap of ``least_gap``, or
    where p would leave the trust region ||p||² = <p, diagonal * p> <= radius² (Steihaug
    1983): then p lies on its boundary. Every iterate is a descent direction of the
    quadratic model, and longer than the one before. Returns p, and whether it did not
    take more iterations than the limit.
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
            room = _step_to_boundary(p, search, diagonal, radius)
            if room <= step:
                return p + room * search, True
        p += step * search
        residual -= step * product
        if least_gap and hessian.gap(residual) <= least_gap:
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

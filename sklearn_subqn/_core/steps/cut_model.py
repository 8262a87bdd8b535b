"""The model of bundle methods: a regularizer plus the maximum of cuts of the risk."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy import optimize

from ..losses._base import Floats
from ..objectives.objective import Cut, Objective
from ..regularizers import L2, ElasticNet, QuadraticForm
from ..rounding import CLOSE, MOST_STEPS, ROUNDED
from .kept_cuts import Cuts
from .line_search import SUFFICIENT
from .simplex_qp import minimize_on_simplex

# Limit on the Newton steps that maximize the dual of a model. docs/constants.md has the
# figures.
_NEWTON_STEPS = 20

# The next program starts with the columns that reach 0.95 of their bound.
# docs/constants.md has the figures.
_NEAR = 0.95


class Unsolved(Exception):
    """A program over cuts of extreme sizes could not be solved."""


class CutModel(ABC):
    """J_t(w) = alpha * Omega(w) + max_j <a_j, w> + b_j (Teo et al. 2010, eq. 7).

    Parameters
    ----------
    objective : Objective
        Objective whose cuts are balanced in its free parameters.
    cuts : Cuts
        The cuts of the model.

    Attributes
    ----------
    w : ndarray of shape (q,)
        The minimizer of the model, zero in free parameters.
    lower_bound : float
        The minimum of the model, a lower bound of J. It is evaluated from the
        multipliers, so that it is valid for multipliers of any accuracy.
    combination : Cut or None
        The cut of the risk that proves the bound, if a single cut does.
    """

    def __init__(self, objective: Objective, cuts: Cuts) -> None:
        self._objective = objective
        self.cuts = cuts
        self.w = np.zeros(objective.n_params)
        self.lower_bound = -np.inf
        self.combination: Cut | None = None

    def add(self, cut: Cut) -> None:
        """Store a cut."""
        self.cuts.add(cut)

    @abstractmethod
    def minimize(self) -> None:
        """Update ``w`` and ``lower_bound``; raise ``Unsolved`` on failure."""

    def _combine(self, multipliers: Floats) -> None:
        """Update them from optimal multipliers and the gradient of the conjugate."""
        o = self._objective
        self.cuts.combine(multipliers)
        self.combination = combination = self.cuts.combination()
        self.w = o.regularizer.conjugate_gradient(combination.normal / -o.alpha)
        self.lower_bound = o.dual_value(combination)


class L2CutModel(CutModel):
    """A model with a quadratic conjugate: a quadratic program (Corollary 3)."""

    def add(self, cut: Cut) -> None:
        self.cuts.add(cut, self._objective.regularizer.conjugate_gradient(cut.normal))

    def minimize(self) -> None:
        o, cuts = self._objective, self.cuts
        gram = cuts.gram / o.alpha
        self._combine(minimize_on_simplex(gram, cuts.offsets, cuts.multipliers))


class SmoothCutModel(CutModel):
    """A model with a differentiable conjugate: Newton's method on the dual (10).

    Each step maximizes the quadratic model of the dual on the simplex by an active-set
    method. If the dual does not increase enough, a line search follows.

    The first cut is the infimum of the risk. Without this cut, exponentials overflow at
    the first minimizers for entropies with a small ``alpha``.
    """

    def __init__(self, objective: Objective, cuts: Cuts) -> None:
        super().__init__(objective, cuts)
        if not cuts.n_cuts and np.isfinite(objective.risk.infimum):
            self.add(Cut(np.zeros(objective.n_params), objective.risk.infimum))

    def minimize(self) -> None:
        o, cuts = self._objective, self.cuts
        A, b = cuts.normals, cuts.offsets
        x = cuts.multipliers
        # If the curvature of the conjugate changes quickly, Newton steps from x are too
        # short to give the last cut a positive multiplier.
        last = np.zeros(len(x))
        last[-1] = 1.0
        x = x + self._share(x, last - x) * (last - x)
        v = x @ A / -o.alpha
        value = self._dual(v, x)
        # The conjugate may be flat, for example for squared Lp norms in large units.
        # Then gains per step hardly decrease. After two gains of more than half of the
        # previous gain, the maximization ends, and the next model continues from this
        # point.
        n_slow, before = 0, 0.0
        for _ in range(_NEWTON_STEPS):
            gradient = A @ o.regularizer.conjugate_gradient(v) + b
            hessian = o.regularizer.conjugate_gram(v, A) / o.alpha
            target = minimize_on_simplex(hessian, gradient + hessian @ x, x)
            rise = float(gradient @ (target - x))
            v = target @ A / -o.alpha
            risen = self._dual(v, target) - value
            if not rise > ROUNDED * abs(value):
                # Convergence is quadratic, so the last step doubles the number of
                # correct digits of w.
                if risen >= 0.0:
                    x = target
                break
            if not risen >= SUFFICIENT * rise:
                target = x + self._share(x, target - x) * (target - x)
                v = target @ A / -o.alpha
                risen = self._dual(v, target) - value
                if not risen > 0.0:
                    break
            x, value = target, value + risen
            n_slow = n_slow + 1 if 0.0 < before < 2.0 * risen else 0
            before = risen
            if n_slow == 2:
                break
        x = np.maximum(x, 0.0)
        self._combine(x / x.sum())

    def _share(self, x: Floats, step: Floats) -> float:
        """Return the factor of a step, at most 1, that nearly maximizes the dual.

        The dual increases up to that point.
        """
        o, cuts = self._objective, self.cuts
        v, change = x @ cuts.normals / -o.alpha, step @ cuts.normals / -o.alpha
        rate = float(step @ cuts.offsets)

        def slope(share: float) -> float:
            with np.errstate(over="ignore", invalid="ignore"):
                w = o.regularizer.conjugate_gradient(v + share * change)
                slope = rate - o.alpha * float(change @ w)
            return slope if np.isfinite(slope) else -np.inf

        # The search stops when the factor is within a tenth of the best one, or the
        # slope is below a tenth of the first slope.
        low, high = 0.0, 1.0
        trial, small = 1.0, 0.1 * slope(0.0)
        for _ in range(MOST_STEPS):
            at_trial = slope(trial)
            if at_trial > 0.0:
                low = trial
                if at_trial <= small:
                    break
            else:
                high = trial
            if high <= 1.1 * low:
                break
            # The conjugate may be flat at first, for example for the elastic net. With
            # features in large units steps then have to be very short.
            trial = np.sqrt(low * high) if low else 0.1 * high
        return low

    def _dual(self, v: Floats, x: Floats) -> float:
        o = self._objective
        with np.errstate(over="ignore"):
            conjugate = o.regularizer.conjugate(v)
        return float(x @ self.cuts.offsets) - o.alpha * conjugate


class L1CutModel(CutModel):
    """A model with the L1 norm: a linear program (Teo et al. 2010, appendix C).

    Column generation starts with features whose bound was active or nearly active in
    the last program, and adds features with negative reduced costs.
    """

    def __init__(self, objective: Objective, cuts: Cuts) -> None:
        super().__init__(objective, cuts)
        self._likely = np.zeros(objective.regularizer.n_penalized, dtype=bool)

    def minimize(self) -> None:
        o, cuts = self._objective, self.cuts
        d = o.regularizer.n_penalized
        A = cuts.normals[:, :d] / o.alpha
        # The trivial cut is included, because the program may be unbounded without it.
        b = np.append(cuts.offsets, o.risk.infimum) / o.alpha
        active = self._likely
        while True:
            columns = np.flatnonzero(active)
            w, x = _solve_linear(A[:, columns], b)
            prices = np.abs(x[:-1] @ A)
            violated = np.flatnonzero(~active & (prices > 1.0 + CLOSE))
            if not violated.size:
                break
            n_new = min(violated.size, max(1, columns.size))
            worst = np.argpartition(prices[violated], -n_new)[-n_new:]
            active[violated[worst]] = True
        self.w[:] = 0.0
        self.w[columns] = w
        self._likely = (self.w[:d] != 0.0) | (prices > _NEAR)
        if x[:-1].any():
            cuts.combine(x[:-1])
        self.lower_bound = self._bound(x)

    def _bound(self, x: Floats) -> float:
        """Return the bound of multipliers, the last one for the trivial cut."""
        o, cuts = self._objective, self.cuts
        mixed = cuts.mixed(x[:-1])
        rest = max(1.0 - float(x[:-1].sum()), 0.0)
        trivial = rest * o.risk.infimum if rest else 0.0
        return o.dual_value(mixed._replace(offset=mixed.offset + trivial))


def _solve_linear(A: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Minimize ||w||_1 + max(max_j <A_j, w> + b_j, b_last); return w and multipliers.

    The multipliers, one for each entry of b, lie on the unit simplex. The solver has
    absolute tolerances and rejects numbers beyond 1e15. So w is scaled by the sizes of
    the columns, and offsets are scaled by their largest difference from the last
    offset.
    """
    t, d = A.shape
    # Columns whose entries are at most one have zero coefficients and need no scaling.
    sizes = np.maximum(np.abs(A).max(axis=0), 1.0)
    columns = A / sizes
    floor = b[-1] if np.isfinite(b[-1]) else 0.0
    heights = b[:-1] - floor
    unit = float(np.abs(heights).max()) or 1.0
    least = float(sizes.min()) if d else 1.0
    # The simplex method may report steep cuts as unbounded problems; interior points
    # are the fallback. Presolving does not simplify dense programs and takes a quarter
    # of the time.
    for method, presolve in (("highs", False), ("highs-ipm", True)):
        program = optimize.linprog(
            least * np.append(1.0 / np.tile(sizes, 2), 1.0),
            A_ub=np.hstack([columns, -columns, -np.ones((t, 1))]),
            b_ub=heights / -unit,
            bounds=[(0.0, None)] * (2 * d) + [(b[-1] - floor, None)],
            method=method,
            options={"presolve": presolve},
        )
        if program.x is not None:
            break
    else:
        raise Unsolved(f"linear program: {program.message}")
    x = np.maximum(-program.ineqlin.marginals, 0.0) / least
    x = np.append(x, max(1.0 - float(x.sum()), 0.0))
    u = program.x[:-1] * unit
    return (u[:d] - u[d:]) / sizes, x / x.sum()


def cut_model(
    objective: Objective, *, size: int | None = None, patience: int | None = 10
) -> CutModel:
    """Return a model without cuts for the regularizer of an objective."""
    cuts = Cuts(objective.n_params, size=size, patience=patience)
    regularizer = objective.regularizer
    if isinstance(regularizer, (L2, QuadraticForm)):
        return L2CutModel(objective, cuts)
    if isinstance(regularizer, ElasticNet) and regularizer.l1_ratio == 1.0:
        return L1CutModel(objective, cuts)
    return SmoothCutModel(objective, cuts)


class CutBundle:
    """Recent cuts of the risk and the best lower bound of J that they prove.

    The bound is the minimum of the model of bundle methods, the regularizer plus the
    maximum of the cuts. The first cut is the trivial one R >= inf R if inf R is known.

    Parameters
    ----------
    objective : Objective
        L2-regularized. Cuts that are not balanced in its free parameters, or of dual
        points outside of the domain of R*, give no bound and are ignored.
    size : int
        Number of cuts to keep, at least 2.

    Attributes
    ----------
    lower_bound : float
        The best bound so far.
    """

    def __init__(self, objective: Objective, size: int = 40) -> None:
        cuts = Cuts(objective.n_params, size=size, patience=None)
        self._model = L2CutModel(objective, cuts)
        self._n_penalized = objective.regularizer.n_penalized
        self.size = size
        self.lower_bound = objective.risk.infimum
        if np.isfinite(self.lower_bound):
            self.add(Cut(np.zeros(objective.n_params), self.lower_bound))

    def add(self, cut: Cut) -> None:
        """Store a cut, in place of another one if the bundle is full."""
        if cut.is_balanced(self._n_penalized) and np.isfinite(cut.offset):
            self._model.add(cut)

    def improve(self) -> float:
        """Solve the program over all stored cuts; return the best bound so far."""
        if self._model.cuts.n_cuts:
            self._model.minimize()
            self.lower_bound = max(self.lower_bound, self._model.lower_bound)
        return self.lower_bound

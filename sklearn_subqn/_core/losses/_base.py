"""What every loss offers, and the piecewise quadratic functions of a step size.

A loss R is a convex function of scores z and targets; it never sees the parameters w
or the data X. Scores have shape (r,) for losses of one score per row and (r, k) for
losses of k scores per row. Weights are normalized by the caller: they are non-negative
and sum to one, so that R is a weighted mean.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]

#: Slope and curvature of a function of a step size.
Derivatives = Callable[[float], tuple[float, float]]

#: Half-width, relative to max(1, |score|), of the band around a kink in which a row
#: counts as lying on it. Oracle, line search and subgradient all use this one number.
#: It must exceed the rounding error of scores that are updated along steps.
TIE_TOLERANCE = 1e-10

# Values may be below their infimum by this share of scores, for rounding.
_BELOW = 1e-9

# Each number is rounded by this share of itself. Sums that are zero but for that share
# of their terms are zero, of subgradients that are known by computing them only.
_EPS, _ROUNDING_OF_SUMS = float(np.finfo(float).eps), 16.0

# Threads share sequences by blocks of so many tokens. With 3 labels, which take the
# least time, a block is 300 microseconds of forward and backward sums, ten times what
# handing it to a thread takes.
_BLOCK = 4096

Result = TypeVar("Result")


def rounding(n_terms: float) -> float:
    """Return by what share of its terms' absolute sum a computed sum is off.

    Rounding errors of n terms add up to about the root of n of them (Higham and Mary
    2019), to n at most; up to 16 terms this is the worst case.
    """
    return 2.0 * _EPS * (1.0 + float(np.sqrt(n_terms)))


_NO_KINKS = np.empty(0)
_NO_ROWS = np.empty(0, dtype=np.intp)


@dataclass(frozen=True)
class PiecewiseQuadratic:
    """A convex piecewise quadratic function f of a step size eta >= 0, by its slope.

    Between kinks the slope is affine: f'(eta) = a + c * eta. Passing ``kinks[i]`` adds
    ``slope_jumps[i]`` to a and ``curvature_jumps[i]`` to c. Piecewise linear functions
    (hinge) have jumps of a only; differentiable ones (squared hinge) have jumps that
    cancel at the kink, slope_jumps + curvature_jumps * kinks = 0.

    Attributes
    ----------
    slope, curvature : float
        a and c immediately to the right of eta = 0, so that ``slope`` is the
        directional derivative at the starting point, sup of the subdifferential.
    kinks : ndarray of shape (m,)
        Positive step sizes at which a or c change, in no particular order.
    slope_jumps, curvature_jumps : ndarray of shape (m,)
        Changes of a and c there.
    """

    slope: float
    curvature: float
    kinks: Floats
    slope_jumps: Floats
    curvature_jumps: Floats

    @classmethod
    def smooth(cls, slope: float, curvature: float) -> PiecewiseQuadratic:
        """Return a quadratic function: no kinks."""
        return cls(slope, curvature, _NO_KINKS, _NO_KINKS, _NO_KINKS)

    def __add__(self, other: PiecewiseQuadratic) -> PiecewiseQuadratic:
        if not other.kinks.size:
            mine = self
        elif not self.kinks.size:
            mine = other
        else:
            mine = PiecewiseQuadratic(
                0.0,
                0.0,
                np.concatenate([self.kinks, other.kinks]),
                np.concatenate([self.slope_jumps, other.slope_jumps]),
                np.concatenate([self.curvature_jumps, other.curvature_jumps]),
            )
        return PiecewiseQuadratic(
            self.slope + other.slope,
            self.curvature + other.curvature,
            mine.kinks,
            mine.slope_jumps,
            mine.curvature_jumps,
        )

    def scaled(self, factor: float) -> PiecewiseQuadratic:
        """Return factor * f for a non-negative factor."""
        return PiecewiseQuadratic(
            factor * self.slope,
            factor * self.curvature,
            self.kinks,
            factor * self.slope_jumps,
            factor * self.curvature_jumps,
        )

    def slope_at(self, step: float) -> float:
        """Return sup of the subdifferential at ``step`` (the right-hand slope)."""
        passed = self.kinks <= step
        return float(
            self.slope
            + self.slope_jumps[passed].sum()
            + (self.curvature + self.curvature_jumps[passed].sum()) * step
        )


class Curvature(ABC):
    """Second derivatives R''(z): for each row a symmetric k x k matrix over its scores.

    Their shape is that of the scores, (n,) for one score per row. All offer ``take``,
    ``apply``, ``diagonal`` and ``total``. Those of several scores per row may offer
    more: ``add_gram`` for Newton directions by factorization, ``rank_one`` for
    quadratic models.

    Attributes
    ----------
    by_rows : bool
        Whether rows have their matrices apart. Elsewhere R'' is diag(a) - C - Cᵀ for
        its ``diagonal`` a, and ``crossed`` tells C.
    """

    by_rows: bool = True

    def rows(self) -> Rows:
        """Return the rows whose matrix is not zero."""
        nonzero = self.diagonal() != 0.0
        return np.flatnonzero(nonzero.any(axis=1) if nonzero.ndim == 2 else nonzero)

    @abstractmethod
    def take(self, rows: Rows) -> Curvature:
        """Return the matrices of some of the rows."""

    @abstractmethod
    def apply(self, dscores: Floats) -> Floats:
        """Return R''(z) dz for dz = ``dscores``, which may be overwritten."""

    @abstractmethod
    def diagonal(self) -> Floats:
        """Return the diagonals, of the shape of the scores."""

    @abstractmethod
    def total(self) -> Floats:
        """Return the sum of the matrices, of shape (k, k)."""

    def add_gram(self, X: Floats, rows: slice, out: Floats) -> None:
        """Add the Kronecker products M_i (x) x_i x_iᵀ over a slice of the rows.

        X of shape (m, d) holds these rows only; ``out`` has shape (k, k, d, d), of
        which the blocks j <= l are added to.
        """
        raise TypeError(f"{type(self).__name__} makes no Gram matrices.")

    def crossed(self, design: Any) -> Floats:
        """Return Xᵀ C X for the X of a design."""
        raise TypeError(f"{type(self).__name__} couples no rows.")

    def rank_one(self) -> tuple[Floats, Floats, Floats]:
        """Return a, s and p of matrices diag(a_i) - s_i p_i p_iᵀ.

        Their shapes are (n, k), (n,) and (n, k); the rows of p sum to one, and
        a = s p.
        """
        raise TypeError(f"{type(self).__name__} is not of this form.")


class DiagonalCurvature(Curvature):
    """Second derivatives h of the shape of the scores, which count each by itself."""

    def __init__(self, h: Floats) -> None:
        self._h = h

    def take(self, rows: Rows) -> DiagonalCurvature:
        return DiagonalCurvature(self._h[rows])

    def apply(self, dscores: Floats) -> Floats:
        return self._h * dscores

    def diagonal(self) -> Floats:
        return self._h

    def total(self) -> Floats:
        return np.diag(np.atleast_1d(self._h.sum(axis=0)))


class Intervals(NamedTuple):
    """loss_i(z) = max over v in [low_i, high_i] of v (targets_i - z) - ridge / 2 v²."""

    targets: Floats
    low: Floats
    high: Floats
    ridge: float


class Simplices(NamedTuple):
    """loss_i(z) = max over b in the unit simplex of <b, offsets[targets_i] + z - z_y>.

    z_y is the score of the label y = targets_i.
    """

    targets: npt.NDArray[np.intp]
    offsets: Floats


class LabelSets(NamedTuple):
    """loss_i(z) = max over b >= 0 of <b, m>, with sums over both kinds of labels <= 1.

    The violations m are costs[0, j] + z_j of irrelevant and costs[1, j] - z_j of
    relevant labels. Without a threshold, the last score, the sums have to be equal.
    """

    targets: npt.NDArray[np.uint8]
    costs: Floats


class Chains(NamedTuple):
    """loss_i(z) = max over mixtures b of labelings of <b, z> - z(targets_i) - h(b).

    Of sequences, with h minus the entropy of the chain that has the marginals of b or,
    unless ``rescaling`` is None, minus the mean number of wrong labels. The latter is
    also a factor on each labeling's z where ``rescaling`` is "slack". Transitions that
    are not ``allowed`` are forbidden, and first and last labels that are not in
    ``ends``, where these are given.
    """

    targets: npt.NDArray[np.intp]
    allowed: Mask | None
    ends: Mask | None
    rescaling: str | None


def chain_scores(
    scores: Floats, starts: Rows, allowed: Mask | None, ends: Mask | None
) -> tuple[Floats, Floats]:
    """Return emissions of shape (T, k) and transitions, (k, k), of scores of chains.

    Minus infinity are those of transitions that are not allowed, and of first and last
    tokens with labels that are not in ``ends``.
    """
    k = scores.shape[1]
    emissions, transitions = scores[:-k], scores[-k:]
    if allowed is not None:
        transitions = np.where(allowed, transitions, -np.inf)
    if ends is not None:
        emissions = emissions.copy()
        for tokens, possible in zip((starts[:-1], starts[1:] - 1), ends, strict=True):
            emissions[np.ix_(tokens, ~possible)] = -np.inf
    return emissions, transitions


def each_block(
    function: Callable[[Rows, slice], Result], starts: Rows, pool: Executor | None
) -> list[Result]:
    """Return results of a function of the starts of a block's sequences, and which.

    Blocks are in order, and the same whatever threads there are, so that sums are.
    """
    marks = np.searchsorted(starts[:-1], np.arange(0, starts[-1], _BLOCK))
    bounds = np.unique(np.append(marks, len(starts) - 1)).tolist()
    blocks = [slice(*pair) for pair in pairwise(bounds)]
    starts_of = [starts[block.start : block.stop + 1] for block in blocks]
    if pool is None or len(blocks) == 1:
        return list(map(function, starts_of, blocks))
    return list(pool.map(function, starts_of, blocks))


#: The forms of a loss whose dual variables rows have apart.
RowwiseDual = Intervals | Simplices | LabelSets


class Loss(ABC):
    """A convex function R(z) = sum_i weights_i * loss_i(z_i) of scores z.

    Attributes
    ----------
    smooth : bool
        Whether R is differentiable everywhere. Smooth losses offer ``curvature`` and
        ``derivatives``, piecewise linear ones ``restrict``.
    analytic : bool
        Whether R has all derivatives, so that Newton's method finds minimizers over
        free parameters; piecewise quadratic losses ask for exact steps.
    has_lines : bool
        Whether it offers ``restrict`` or ``derivatives``. The minimizer on a line is
        found by values and subgradients elsewhere.
    tells_conjugate : bool
        Whether ``conjugate`` knows more duals than zero. Elsewhere it is known at
        subgradients, and by convexity between these and zero.
    has_envelope : bool
        Whether it offers ``envelope``, ``dual_variables`` and ``neutral_variables``.
    has_margin : bool
        Whether scores have no loss that are far enough on their right side.
    invariant : bool
        Whether adding a constant to all scores of a row changes nothing.
    ranks : bool
        Whether only differences of scores count: a free intercept changes nothing.
    counts_rows : bool
        Whether rows must have equal weights.
    steep : bool
        Whether subgradients grow exponentially with the scores, so that cuts far from
        the minimizer tell nothing.
    joint : bool
        Whether it takes all columns of y at once, where regressors fit each by itself.
    """

    smooth: bool
    analytic: bool = False
    has_lines: bool = True
    tells_conjugate: bool = True
    has_envelope: bool = False
    has_margin: bool = False
    invariant: bool = False
    ranks: bool = False
    counts_rows: bool = False
    steep: bool = False
    joint: bool = False

    @abstractmethod
    def value(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        """Return R(scores)."""

    @abstractmethod
    def subgradient(self, scores: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return one u in the subdifferential of R at ``scores``, of their shape."""

    @abstractmethod
    def conjugate(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return R*(u) = sup_z <u, z> - R(z) for u = ``dual`` of the shape of scores.

        Any u for which R*(u) is finite gives the cut R(z) >= <u, z> - R*(u).
        """

    def conjugate_size(
        self, dual: Floats, targets: Floats, weights: Floats, conjugate: float
    ) -> float:
        """Return about what the absolute values of the terms of R*(u) sum to.

        Rounding errors of R*(u) are in proportion to that, and so is what R* gains at
        most where entries of u shrink by some share; ``conjugate`` is R*(u). The
        default suits sums of <u, y> and of terms of one sign.
        """
        size = abs(conjugate)
        if targets.shape == dual.shape:
            size += 2.0 * float(np.vdot(np.abs(dual), np.abs(targets)))
        return size

    def distance(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return the norm of what u lacks of the point at which R* is evaluated.

        By rounding; the root of sum_i d_i² / s_i of differences d.
        """
        return 0.0

    def unlevel(
        self, dual: Floats, sums: Floats, targets: Floats, weights: Floats
    ) -> float:
        """Return a share of u, changed by which it makes up for column sums.

        There is a point of the domain that differs from another one of these column
        sums by no more than this share of u, and whose columns sum to zero. Of losses
        of one score per row the entries of one sign shrink.
        """
        if not sums.any():
            return 0.0
        if dual.ndim > 1:
            return np.inf
        total, own = float(np.abs(dual).sum()), abs(float(dual.sum()))
        lighter = 0.5 * (total - own)
        return abs(float(sums[0])) / lighter if lighter > 0.0 else np.inf

    def overflows(self, scores: Floats, targets: Floats, weights: Floats) -> bool:
        """Whether scores are beyond those up to which ``value`` is that of the loss."""
        return False

    def reach(self, scores: Floats, targets: Floats) -> Floats:
        """Return how far second derivatives tell each row's loss at least, shape (n,).

        In units of scores; zero where the loss says nothing about that.
        """
        return np.zeros(len(scores))

    def evaluate(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> tuple[float, Floats]:
        """Return value and subgradient, for losses that compute them together."""
        args = scores, targets, weights
        return self.value(*args), self.subgradient(*args)

    def shifted(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> Callable[[float], tuple[float, Floats]]:
        """Return value and subgradient as a function of a number added to all scores.

        Of scores of shape (n,): what minimizing over an intercept asks for.
        """
        return lambda shift: self.evaluate(scores + shift, targets, weights)

    def conjugate_at(
        self, dual: Floats, scores: Floats, targets: Floats, weights: Floats
    ) -> float:
        """Return R*(u) for a subgradient u = ``dual`` at ``scores``."""
        return self.conjugate(dual, targets, weights)

    def rounding(self, scores: Floats, weights: Floats) -> float:
        """Return by how much the value and products with a dual may be off.

        For losses that do not tell their conjugate.
        """
        raise TypeError(f"{type(self).__name__} tells its conjugate.")

    def kink_rows(self, scores: Floats, targets: Floats) -> Rows:
        """Return the indices of rows on a kink, within ``TIE_TOLERANCE``."""
        return _NO_ROWS

    def argsup(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Floats:
        """Return the subgradient u at ``scores`` that maximizes <u, dscores>.

        Only ever called with rows from ``kink_rows``.
        """
        return self.subgradient(scores, targets, weights)

    def feasible(self, dual: Floats, targets: Floats, weights: Floats) -> Mask:
        """Return for each row, of shape (n,), whether its part of R*(u) is finite.

        Exact but for rounding, and False where the loss does not know.
        """
        return np.zeros(len(weights), dtype=bool)

    def dual_variables(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return the variables, free of weights and signs, that stand for a dual u."""
        raise TypeError(f"{type(self).__name__} has no smooth envelope.")

    def from_afar(self) -> tuple[Loss, float] | None:
        """Return a loss with an envelope that this one resembles in large units.

        And by how much it is larger, at most, of rows whose weights sum to one.
        """
        return None

    def rowwise_dual(self, targets: Floats) -> RowwiseDual | None:
        """Return the loss as a maximum over dual variables, which rows have apart.

        Of intervals, which hold zero, the dual variables v stand for u = -weights * v;
        of simplices, b for weights * (b - e_y); of sets of labels, b for weights * b
        with the signs of relevant labels changed. None where it has no such form.
        """
        return None

    def chains(self, targets: Floats) -> Chains | None:
        """Return the loss as a maximum over mixtures of labelings of sequences."""
        return None

    def neutral_variables(self, targets: Floats) -> Floats:
        """Return such variables in the middle of their set, one row like another."""
        raise TypeError(f"{type(self).__name__} has no smooth envelope.")

    def unit(self, scores: Floats, targets: Floats, weights: Floats) -> float:
        """Return a length of scores to which widths of envelopes are relative."""
        return 1.0

    def of_rows(self, rows: Rows) -> Loss:
        """Return the loss of some of the rows, for one that knows more of each."""
        return self

    def envelope(self, center: Floats, width: float) -> Loss:
        """Return the smooth envelope around such variables (see ``_envelope.py``)."""
        raise TypeError(f"{type(self).__name__} has no smooth envelope.")

    def level(self, dual: Floats, targets: Floats, weights: Floats) -> Floats:
        """Return u changed, within the domain of R*, so that its columns sum to zero.

        Lower bounds of objectives with free intercepts need such duals. Of losses of
        one score per row the entries of the heavier sign shrink: zero is in the domain.
        """
        if dual.ndim > 1:
            raise TypeError(f"{type(self).__name__} does not level its duals.")
        up = float(dual[dual > 0.0].sum(dtype=np.longdouble))
        down = float(-dual[dual < 0.0].sum(dtype=np.longdouble))
        if up == down:
            return dual
        heavier = dual > 0.0 if up > down else dual < 0.0
        return np.where(heavier, dual * (min(up, down) / max(up, down)), dual)

    def level_near_optimum(
        self, dual: Floats, targets: Floats, weights: Floats
    ) -> Floats:
        """Return the same at the least cost where u is nearly optimal."""
        return self.level(dual, targets, weights)

    def dual_scale(self, targets: Floats, weights: Floats) -> float:
        """Return about what the absolute values of u sum to at most.

        At scores that are all the same, the best one.
        """
        return 1.0

    def curvature(self, scores: Floats, targets: Floats, weights: Floats) -> Curvature:
        """Return generalized second derivatives."""
        raise TypeError(f"{type(self).__name__} has no second derivatives.")

    def restrict(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> PiecewiseQuadratic:
        """Return R(scores + eta * dscores) as a function of the step size eta."""
        raise TypeError(f"{type(self).__name__} is not piecewise linear.")

    def derivatives(
        self, scores: Floats, dscores: Floats, targets: Floats, weights: Floats
    ) -> Derivatives:
        """Return eta -> (slope, curvature) of R(scores + eta * dscores).

        Where the slope has a kink, the curvature is that of either side.
        """
        raise TypeError(f"{type(self).__name__} is not differentiable.")


class FirstOrderLoss(Loss):
    """A loss of which only values and subgradients are known, as bundle methods need.

    A subclass implements ``value`` and ``subgradient``. What is known of the conjugate
    is its value at a subgradient, by the equation of Fenchel and Young, and at zero.

    Attributes
    ----------
    infimum : float
        A lower bound of R over all scores, which models with an L1 penalty need; minus
        infinity where none is known.
    narrows : bool
        Whether it offers ``narrowed``.
    """

    smooth = False
    has_lines = False
    infimum: float = 0.0
    narrows: bool = False

    def narrowed(self, width: float) -> NarrowLoss:
        """Return a smooth loss below this one that is close to it for a small width."""
        raise TypeError(f"{type(self).__name__} has no smooth losses close to it.")

    def conjugate(self, dual: Floats, targets: Floats, weights: Floats) -> float:
        """Return R*(0) <= -inf R; other duals need the scores they belong to."""
        if dual.any():
            raise TypeError(f"{type(self).__name__} knows no conjugate but at zero.")
        return -self.infimum

    def conjugate_at(
        self, dual: Floats, scores: Floats, targets: Floats, weights: Floats
    ) -> float:
        """Return <u, z> - R(z), and what rounding may have left out.

        Both may be much larger than the bounds that are made of it.
        """
        value = self.value(scores, targets, weights)
        terms = float(np.vdot(np.abs(dual), np.abs(scores))) + abs(value)
        scale = float(np.abs(scores).max(initial=0.0)) + abs(self.infimum)
        if value < self.infimum - _BELOW * scale:
            raise ValueError(
                f"The value {value:g} of {type(self).__name__} is below its infimum "
                f"{self.infimum:g}; set infimum to a lower bound of all values."
            )
        # The loss may have subtracted any score from the others.
        terms += float(np.abs(dual).sum()) * float(np.abs(scores).max(initial=0.0))
        return float(np.vdot(dual, scores)) - value + rounding(dual.size) * terms

    def unlevel(
        self, dual: Floats, sums: Floats, targets: Floats, weights: Floats
    ) -> float:
        """Return the share of u that its column sums are, if these are rounding.

        They are where only differences of scores count. Entries of other subgradients
        do not shrink alone.
        """
        if self.ranks:
            return 0.0
        total = float(np.abs(dual).sum())
        share = float(np.abs(sums).sum()) / (total or 1.0)
        return share if share <= _ROUNDING_OF_SUMS * _EPS else np.inf


class NarrowLoss(FirstOrderLoss):
    """A smooth loss whose gradients are in the domain of the conjugate of another."""

    smooth = True
    has_lines = True

    @abstractmethod
    def proof(
        self, scores: Floats, targets: Floats, weights: Floats
    ) -> tuple[float, float]:
        """Return -R*(u) of the other loss R at the gradient u, or less, and an error.

        The root of sum_i d_i² / s_i of what rounding leaves out of u.
        """

"""The untuned method: online L-BFGS in a metric that knows the features' scales.

Four things take the place of a tuned step size.

- A diagonal metric in centered coordinates. Running means of h, h x and h x², with h
  the curvature of the loss in its scores, give for every feature the curvature of the
  objective after the intercept has adapted: the h-weighted variance of the feature. The
  intercept follows the means, so that neither scale nor offset of a feature matters.
- Pairs of displacements over it, as in online L-BFGS (Yu 2009, section 5.4; scaled by
  the mean of 5.18), but of means of iterates over blocks of batches, with the products
  of the Hessian averaged over the batches of the next block (Byrd et al. 2016, Alg. 1):
  noise averages out of both, and the pairs change rarely.
- Steps measured on the batch: the minimizer of the batch's quadratic model along the
  direction times a factor that falls like t^(-1/2); halved while the objective of the
  same batch does not fall.
- A weighted average of iterates, which is the model (Shamir and Zhang 2013). When the
  iterate predicts the next batches better than the average, again and again, then the
  average lags behind: it begins anew, and the steps grow again.

Where the model predicts the next rows much worse than rows before, the stream has
changed: all but the last iterate begins anew. The test is the cumulative sum of Page
(1954) over blocks of rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy import linalg

from ..losses._base import Curvature, Floats
from ..options import option
from .batch import LinearBatch
from .method import State, check_finite, number_of_pairs

# Exponent of the falling step and of the weights of iterates in the average.
_STEP_EXPONENT = 0.5
_AVERAGE_EXPONENT = 3.0

# Batches of a block, and rows: noise has to average out of its pair. The metric is made
# anew for each block, and whenever it rests on so many times more rows.
_BLOCK = 10
_BLOCK_ROWS = 50
_GROWTH = 1.25

# After the first block, curvature is measured on one batch of so many.
_MEASURED = 2

# Numbers in the pairs' vectors are at most this multiple of the entries of a batch, or
# this many: vector work stays in proportion to products with the batch.
_VECTOR_WORK = 2
_SMALL_WORK = 20_000

# The lead of the iterate over the average is a mean over about ten batches; it counts
# where its square is above half the mean square, about three standard errors.
_FORGET = 0.9
_LEAD = 0.5
_REGROWTH = 0.25

# The stream has changed where the sum of standardized losses of blocks of rows, each
# less a standard error and no more than so many, exceeds a limit: two blocks at least.
# Means and variances are over about so many blocks, no fewer than the least; standard
# errors are no less than this share of the mean loss.
_SLACK, _MOST_ERRORS, _ALARM = 1.0, 6.0, 10.0
_LEVEL_BLOCKS, _LEAST_BLOCKS = 50, 10
_LEAST_ERROR, _USUAL_ERRORS = 0.05, 3.0

# Where the average leads by more than this share of its objective, steps are too long
# for the noise of the batches: the clock runs faster, up to so many times the batches.
_NOISE = 0.1
_BRAKE = 1.25
_FASTEST = 10

_TINY = 1e-300

# Steps are halved until they give this share of the fall that the slope promises, up to
# rounding of the objective.
_DESCENT = 1e-4
_ROUNDING = 1e-12
_MAX_HALVINGS = 40


@dataclass(frozen=True)
class Moments:
    """Sums over rows seen of the curvature h, of h x and of h x².

    Attributes
    ----------
    n_rows : float
    h : ndarray of shape (k,)
    hx, hxx : ndarray of shape (c,)
    present : ndarray of shape (c,) or None
        With an L1 penalty, the sum of h over rows in which x is not zero.
    n_batches : int
        The number of batches of these rows.
    """

    n_rows: float
    h: Floats
    hx: Floats
    hxx: Floats
    present: Floats | None = None
    n_batches: int = 1


@dataclass(frozen=True)
class Metric:
    """The inverse of a diagonal matrix in centered coordinates, plus low rank.

    Attributes
    ----------
    center : ndarray of shape (c,)
        Means of the features, weighted by curvature; zero without intercepts.
    scale : ndarray of shape (c,)
        Inverse curvature of coefficients; zero for features not seen so far.
    free : ndarray of shape (k,)
        Inverse curvature of the intercepts.
    n_rows : float
        Number of rows that it rests on.
    factor : float
        Multiplies the diagonal matrix (5.18).
    rows, middle : ndarray of shape (2 m, q), (2 m, 2 m)
        U and N of the low rank part Uᵀ N U (Byrd, Nocedal and Schnabel 1994, eq. 2.6).
    """

    center: Floats
    scale: Floats
    free: Floats
    n_rows: float = 0.0
    factor: float = 1.0
    rows: Floats | None = None
    middle: Floats | None = None

    def apply(self, g: Floats) -> Floats:
        """Return the product with g of shape (q,)."""
        p = self.diagonal(g)
        if self.rows is not None and self.middle is not None:
            p *= self.factor
            p += (self.middle @ (self.rows @ g)) @ self.rows
        return p

    def diagonal(self, g: Floats) -> Floats:
        """Return the product of the part without pairs."""
        c = len(self.scale)
        p = np.empty_like(g)
        if len(g) == c:
            return np.multiply(g, self.scale, out=p)
        shape = (-1, len(g) - c)
        coef, center = p[:c], self.center
        if shape[1] == 1:
            np.multiply(center, -g[c], out=coef)
            coef += g[:c]
            coef *= self.scale
            p[c] = g[c] * self.free[0] - float(center @ coef)
            return p
        coef[:] = (g[:c].reshape(shape) - center.reshape(shape) * g[c:]).ravel()
        coef *= self.scale
        p[c:] = g[c:] * self.free - (center * coef).reshape(shape).sum(axis=0)
        return p

    def root(self, p: Floats) -> Floats:
        """Return v, with <v, v> = <g, diagonal(g)> for p = diagonal(g)."""
        c = len(self.scale)
        v = p.copy()
        seen = self.scale > 0.0
        np.divide(p[:c], np.sqrt(self.scale), out=v[:c], where=seen)
        if len(p) > c:
            v[c:] += (self.center * p[:c]).reshape(-1, len(p) - c).sum(axis=0)
            v[c:] /= np.sqrt(self.free)
        return v

    def times(self, factor: float) -> Metric:
        """Return a multiple of the diagonal part."""
        return replace(
            self, scale=factor * self.scale, free=factor * self.free, rows=None
        )

    def proximal(self, w: Floats, g: Floats, l1: float) -> Floats:
        """Return the step to the minimizer of <g, p> + l1 ||w + p||_1 + p's square / 2.

        That is one of the diagonal metric, in whose coordinates, with the intercept at
        the center of the features, coefficients are apart from each other.
        """
        c = len(self.scale)
        p = self.diagonal(-g)
        target = w[:c] + p[:c]
        target -= np.clip(target, -l1 * self.scale, l1 * self.scale)
        p[:c] = target - w[:c]
        if len(g) > c:
            shape = (-1, len(g) - c)
            p[c:] = -g[c:] * self.free
            p[c:] -= (self.center * p[:c]).reshape(shape).sum(axis=0)
        return p

    def without(self, w: Floats, gone: npt.NDArray[np.bool_]) -> Floats:
        """Return w with some coefficients zero, the same at the center of features."""
        c = len(self.scale)
        v = w.copy()
        v[:c][gone] = 0.0
        if len(w) > c:
            lost = np.where(gone, self.center * w[:c], 0.0)
            v[c:] += lost.reshape(-1, len(w) - c).sum(axis=0)
        return v

    def with_pairs(self, dw: Floats, dg: Floats) -> Metric:
        """Return the metric updated by pairs, rows of (m, q), oldest first."""
        h_dg = np.array([self.diagonal(row) for row in dg])
        products = dw @ dg.T
        curvature = products.diagonal()
        squares = dg @ h_dg.T
        factor = float(np.mean(curvature / squares.diagonal()))
        m = len(dw)
        inverse = linalg.solve_triangular(
            np.triu(products), np.eye(m), check_finite=False
        )
        middle = np.zeros((2 * m, 2 * m))
        middle[:m, :m] = inverse.T @ (np.diag(curvature) + factor * squares) @ inverse
        middle[:m, m:], middle[m:, :m] = -inverse.T, -inverse
        rows = np.concatenate([dw, factor * h_dg])
        return replace(self, factor=factor, rows=rows, middle=middle)


@dataclass(frozen=True)
class Block:
    """What is summed over a block of batches.

    Attributes
    ----------
    n_batches, n_rows : int
    total : ndarray of shape (q,)
        Sum of the iterates.
    mean : ndarray of shape (q,) or None
        Mean of the iterates of the block before.
    dw : ndarray of shape (q,) or None
        Displacement between the means of the two blocks before.
    dg : ndarray of shape (q,) or None
        Sum of the products of the Hessians of some of the batches with it.
    n_products : int
        Their number.
    """

    n_batches: int
    n_rows: int
    total: Floats
    mean: Floats | None = None
    dw: Floats | None = None
    dg: Floats | None = None
    n_products: int = 0


@dataclass(frozen=True)
class Level:
    """The losses of the model on rows that it has not learned from, in blocks.

    Attributes
    ----------
    n : int
        Number of blocks.
    mean, variance : float
        Of the mean losses of blocks.
    excess : float
        Sum of standardized losses, less the slack, since it was last zero.
    n_rows : int
        Number of rows of the next block so far.
    total : float
        Their loss.
    """

    n: int = 0
    mean: float = 0.0
    variance: float = 0.0
    excess: float = 0.0
    n_rows: int = 0
    total: float = 0.0

    @property
    def alarms(self) -> bool:
        """Whether the losses have risen for good."""
        return self.excess >= _ALARM

    def then(self, loss: float, n_rows: int) -> Level:
        """Return the level after the mean loss of some more rows."""
        rows, total = self.n_rows + n_rows, self.total + n_rows * loss
        if rows < _BLOCK_ROWS:
            return replace(self, n_rows=rows, total=total)
        value = total / rows
        change, excess = value - self.mean, 0.0
        if self.n >= _LEAST_BLOCKS:
            # Of the next value, by as few.
            error = np.sqrt(self.variance * (1.0 + 1.0 / self.n))
            error = float(max(error, _LEAST_ERROR * abs(self.mean)))
            errors = min(max(change, 0.0) / (error or 1.0), _MOST_ERRORS)
            excess = max(self.excess + errors - _SLACK, 0.0)
            # Outliers change little of what is usual.
            change = min(change, _USUAL_ERRORS * error)
        n = min(self.n + 1, _LEVEL_BLOCKS)
        mean = self.mean + change / n
        variance = (1.0 - 1.0 / n) * (self.variance + change * change / n)
        return Level(n, mean, variance, excess)


@dataclass(frozen=True)
class Average:
    """The average of iterates, and what it says about their steps.

    Attributes
    ----------
    mean : ndarray of shape (q,)
        The average, or the last iterate.
    n : int
        Number of iterates in it.
    n_steps : int
        Number of batches.
    clock : float
        Number of batches that the fall of the steps counts.
    lead, lead_square : float
        Running means of how much better the iterate predicted than the average, and
        of its square.
    level : Level
        Of the losses of the model.
    """

    mean: Floats
    n: int = 0
    n_steps: int = 0
    clock: float = 0.0
    lead: float = 0.0
    lead_square: float = 0.0
    level: Level = Level()

    @property
    def share(self) -> float:
        """The weight of the last iterate in the average."""
        return (_AVERAGE_EXPONENT + 1.0) / (_AVERAGE_EXPONENT + max(self.n, 1))

    def then(self, iterate: Floats, lead: float, value: float) -> Average:
        """Return the average with one more iterate.

        Parameters
        ----------
        iterate : ndarray of shape (q,)
        lead : float
            How much better the iterate before predicted the batch than the average.
        value : float
            The objective of the batch at the average.
        """
        square = _FORGET * self.lead_square + (1.0 - _FORGET) * lead * lead
        lead = _FORGET * self.lead + (1.0 - _FORGET) * lead
        n, n_steps, clock = self.n + 1, self.n_steps + 1, self.clock + 1.0
        if n * (1.0 - _FORGET) > 1.0 and lead > 0.0 and lead * lead > _LEAD * square:
            clock *= _REGROWTH
            return Average(iterate, 1, n_steps, clock, level=self.level)
        if -lead > _NOISE * abs(value):
            clock = max(clock, min(_BRAKE * clock, _FASTEST * n_steps))
        new = Average(self.mean, n, n_steps, clock, lead, square, self.level)
        return replace(new, mean=self.mean + new.share * (iterate - self.mean))


@dataclass(frozen=True)
class AutoState(State):
    """The model ``w``, the iterate that leads it, and what the steps are made from.

    Attributes
    ----------
    w : ndarray of shape (q,)
        The model: the average, with an L1 penalty without the coefficients that the
        optimality conditions at averaged gradients say are zero.
    iterate : ndarray of shape (q,)
    average : Average
        Of the iterates.
    stiffness : float
        Running mean of the inverse of the step to the minimizer of a batch.
    moments, metric, block
        See there.
    dw, dg : ndarray of shape (m, q)
        Pairs of displacements, oldest first.
    smooth_gradient : ndarray of shape (q,) or None
        With an L1 penalty, the average of gradients without it.
    length : float
        Of the last step, against its direction.
    began : int
        The number of batches before the stream last changed.
    """

    iterate: Floats
    average: Average
    stiffness: float
    moments: Moments | None
    metric: Metric | None
    block: Block
    dw: Floats
    dg: Floats
    smooth_gradient: Floats | None
    length: float = 0.0
    began: int = 0

    def __post_init__(self) -> None:
        # All else is finite where these are, since they are made from it.
        check_finite("the objective of the batch", self.value if self.n_steps else 0.0)
        check_finite("the iterate", self.iterate)
        check_finite("the gradient", self.gradient)


@dataclass(frozen=True)
class AdaptiveLBFGS:
    """Online L-BFGS that needs no tuning.

    Attributes
    ----------
    eta0 : float
        Share of the way to the batch's minimizer of the first steps.
    tau : float
        Number of batches after which steps begin to fall; inf keeps them constant.
    memory : int
        Number of pairs at most.
    average : bool
        Whether the model is the average of iterates.
    """

    eta0: float = option(
        "share of the way of the first steps",
        1.0,
        low=0.0,
        low_included=False,
        parameter="eta0",
    )
    tau: float = option(
        "τ of these shares, η₀ / √(1 + t / τ)",
        10.0,
        low=0.0,
        low_included=False,
        parameter="tau",
    )
    memory: int = number_of_pairs(10)
    average: bool = True

    # Features are centered where their squared mean is more than this share of their
    # mean square.
    least_share: ClassVar[float] = 0.0

    def start(self, w0: Floats) -> AutoState:
        """Return the state before the first batch, at w0 of shape (q,)."""
        q = len(w0)
        nothing = np.empty((0, q))
        return AutoState(
            w=w0,
            n_steps=0,
            value=np.nan,
            gradient=np.zeros(q),
            iterate=w0,
            average=Average(w0),
            stiffness=0.0,
            moments=None,
            metric=None,
            block=Block(0, 0, np.zeros(q)),
            dw=nothing,
            dg=nothing,
            smooth_gradient=None,
        )

    def step(self, batch: LinearBatch, state: AutoState) -> AutoState:
        """Return the state after one batch.

        Raises
        ------
        FloatingPointError
            If the objective or its gradient is not finite.
        """
        w, penalty = state.iterate, batch.penalty
        z = batch.scores(w)
        risk = batch.risk(z)
        value = risk + penalty.value(w[: batch.n_coef])
        check_finite("the objective of the batch", value)
        curvature = batch.curvature(z)
        gradient = batch.adjoint(batch.dual(z))
        gradient[: batch.n_coef] += penalty.l2 * w[: batch.n_coef]

        moments = state.moments
        since = state.n_steps - state.began
        measured = since < _BLOCK or since % _MEASURED == 0
        if moments is None or measured:
            moments = _add_moments(batch, curvature.diagonal(), moments)
        metric = state.metric
        if (
            metric is None
            or state.block.n_batches == 0
            or moments.n_rows > _GROWTH * metric.n_rows
        ):
            metric = make_metric(
                moments, batch.fit_intercept, penalty.l2, self.least_share
            )
            if len(state.dw):
                metric = metric.with_pairs(state.dw, state.dg)

        p, slope = _direction(batch, metric, w, gradient)
        eta, stiffness = self._length(batch, state, z, risk, curvature, p, slope)
        if penalty.l1:
            new = w + metric.times(eta).proximal(w, gradient, penalty.l1)
        else:
            new = w + eta * p

        average = self._averaged(batch, state.average, new, value, risk)
        if average.level.alarms:
            return self._anew(state, new, value, gradient, eta)

        work = max(_VECTOR_WORK * batch.n_entries, _SMALL_WORK)
        memory = min(self.memory, work // max(len(w), 1))
        model, smooth = average.mean, state.smooth_gradient
        if penalty.l1:
            # Pairs say nothing about steps that end at zeros.
            memory = 0
            if smooth is None:
                smooth = gradient
            smooth = smooth + average.share * (gradient - smooth)
            p = metric.proximal(model, smooth, penalty.l1)
            model = metric.without(model, (model + p)[: batch.n_coef] == 0.0)
        pair_source = curvature if measured else None
        dw, dg, block = _go_on(batch, state, w, pair_source, memory)
        return AutoState(
            w=model,
            n_steps=state.n_steps + 1,
            value=value,
            gradient=gradient,
            iterate=new,
            average=average,
            stiffness=stiffness,
            moments=moments,
            metric=metric,
            block=block,
            dw=dw,
            dg=dg,
            smooth_gradient=smooth,
            length=eta,
            began=state.began,
        )

    def _anew(
        self,
        state: AutoState,
        iterate: Floats,
        value: float,
        gradient: Floats,
        length: float,
    ) -> AutoState:
        """Return a state that keeps nothing but the iterate."""
        n_steps = state.n_steps + 1
        return replace(
            self.start(iterate),
            n_steps=n_steps,
            value=value,
            gradient=gradient,
            average=Average(iterate, n_steps=n_steps),
            length=length,
            began=n_steps,
        )

    def _averaged(
        self,
        batch: LinearBatch,
        average: Average,
        new: Floats,
        value: float,
        risk: float,
    ) -> Average:
        """Return the average after a step to ``new`` from where J was ``value``."""
        mean, there = average.mean, value
        if average.n:
            risk = batch.risk(batch.scores(mean))
            there = risk + batch.penalty.value(mean[: batch.n_coef])
        level = average.level.then(risk, batch.n_rows)
        if not self.average:
            n_steps = average.n_steps + 1
            return Average(new, 0, n_steps, average.clock + 1.0, level=level)
        return replace(average, level=level).then(new, there - value, there)

    def residual(self, state: AutoState, l1: float) -> Floats:
        """Return what the optimality conditions lack, as far as the last batch shows.

        It is the step of the diagonal metric, in coordinates in which that metric is
        the identity: its norm does not depend on the scales of features. With an L1
        penalty of strength ``l1`` it is the one at averaged gradients.
        """
        metric = state.metric
        if metric is None:
            return state.gradient
        if state.smooth_gradient is None:
            return metric.root(metric.diagonal(state.gradient))
        p = metric.proximal(state.w, state.smooth_gradient, l1)
        return metric.root(p)

    def _length(
        self,
        batch: LinearBatch,
        state: AutoState,
        scores: Floats,
        risk: float,
        curvature: Curvature,
        p: Floats,
        slope: float,
    ) -> tuple[float, float]:
        """Return the length of the step along p, and the stiffness from now on.

        The length is zero if no step helps the batch.
        """
        if not slope < 0.0:
            return 0.0, state.stiffness
        penalty = batch.penalty
        coef, step = state.iterate[: batch.n_coef], p[: batch.n_coef]
        dscores = batch.scores(p)
        square = penalty.l2 * float(step @ step)
        bend = float(np.vdot(curvature.apply(dscores.copy()), dscores)) + square
        own = bend / -slope
        stiffness = own
        if state.n_steps > state.began:
            stiffness = _FORGET * state.stiffness + (1.0 - _FORGET) * own
        eta = self.eta0 / (1.0 + state.average.clock / self.tau) ** _STEP_EXPONENT
        if stiffness > 0.0:
            eta /= stiffness
        if own > 0.0:
            eta = min(eta, 1.0 / own)
        linear = penalty.l2 * float(coef @ step)
        for _ in range(_MAX_HALVINGS):
            rise = batch.risk(scores + eta * dscores) - risk
            rise += eta * (linear + 0.5 * eta * square)
            if rise <= _DESCENT * eta * slope + _ROUNDING * abs(risk):
                return eta, stiffness
            eta *= 0.5
        return 0.0, stiffness


def _direction(
    batch: LinearBatch, metric: Metric, w: Floats, gradient: Floats
) -> tuple[Floats, float]:
    """Return the direction of a step, and the slope along it, without an L1 penalty."""
    p = metric.apply(-gradient)
    slope = float(gradient @ p)
    if not slope < 0.0:
        # Rounding, where pairs are nearly dependent.
        p = metric.diagonal(-gradient)
        slope = float(gradient @ p)
    return p, slope


def _add_moments(batch: LinearBatch, h: Floats, old: Moments | None) -> Moments:
    sums = batch.adjoint(h)
    c, n = batch.n_coef, float(batch.n_rows)
    sums *= n
    total = n * np.atleast_1d(h.sum(axis=0))
    squares = n * batch.squared_adjoint(h)
    present = n * batch.present_adjoint(h) if batch.penalty.l1 else None
    if old is None:
        return Moments(n, total, sums[:c], squares, present)
    if present is not None:
        # Rows of a time without the penalty may all have had entries.
        present += np.resize(old.h, c) if old.present is None else old.present
    return Moments(
        old.n_rows + n,
        old.h + total,
        old.hx + sums[:c],
        old.hxx + squares,
        present,
        old.n_batches + 1,
    )


def centers(moments: Moments, least_share: float) -> Floats:
    """Return the means of features, weighted by curvature, of shape (c,).

    They are zero where the squared mean is no more than ``least_share`` of the mean
    square.
    """
    h = np.where(moments.h > 0.0, moments.h, 1.0)
    center = (moments.hx.reshape(-1, len(h)) / h).ravel()
    if least_share:
        center[center * moments.hx <= least_share * moments.hxx] = 0.0
    return center


def make_metric(
    moments: Moments, centered: bool, l2: float, least_share: float = 0.0
) -> Metric:
    """Return the metric without pairs, of features centered as ``centers`` does.

    Where ``present`` is known, features with entries in less than one row of a batch
    have the curvature of a batch with one.
    """
    h = np.where(moments.h > 0.0, moments.h, 1.0)
    c = len(moments.hx)
    variance = moments.hxx.copy()
    center = np.zeros(c)
    if centered:
        center = centers(moments, least_share)
        variance -= center * moments.hx
    # Rounding leaves little of a constant feature, which needs no second intercept.
    variance[variance <= 1e-12 * moments.hxx] = 0.0
    variance /= moments.n_rows
    if moments.present is not None:
        n_present = moments.present.reshape(-1, len(h)) / h
        n_present *= moments.n_rows / moments.n_batches
        n_present = n_present.ravel().clip(_TINY, 1.0)
        variance /= n_present
    seen = variance > 0.0
    variance += l2
    scale = np.zeros(c)
    np.divide(1.0, variance, out=scale, where=seen)
    return Metric(center, scale, moments.n_rows / h, moments.n_rows)


def _go_on(
    batch: LinearBatch,
    state: AutoState,
    w: Floats,
    curvature: Curvature | None,
    memory: int,
) -> tuple[Floats, Floats, Block]:
    """Return the pairs and the block after a batch at w, where it had the curvature.

    Without a curvature the batch does not count for the product of the Hessian.
    """
    block, dw, dg = state.block, state.dw, state.dg
    n, n_rows = block.n_batches + 1, block.n_rows + batch.n_rows
    full = n >= _BLOCK and n_rows >= _BLOCK_ROWS
    if memory == 0:
        total = block.total
        return dw[:0], dg[:0], Block(0, 0, total) if full else Block(n, n_rows, total)
    total = block.total + w
    product, n_products = block.dg, block.n_products
    if block.dw is not None and curvature is not None:
        product = batch.curvature_product(curvature, block.dw)
        if block.dg is not None:
            product += block.dg
        n_products += 1
    if not full:
        block = Block(n, n_rows, total, block.mean, block.dw, product, n_products)
        return dw, dg, block
    if block.dw is not None and product is not None:
        product = product / n_products
        if float(block.dw @ product) > 0.0:
            dw = np.concatenate([dw, block.dw[np.newaxis]])
            dg = np.concatenate([dg, product[np.newaxis]])
    mean = total / n
    step = None if block.mean is None else mean - block.mean
    return dw[-memory:], dg[-memory:], Block(0, 0, np.zeros_like(w), mean, step)

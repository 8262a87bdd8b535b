"""The solver "auto": online L-BFGS with adaptive scaling and step sizes.

Four mechanisms replace a tuned step size.

- A diagonal preconditioner ("metric") in centered coordinates. With h the second
  derivative of the loss with respect to the scores, running means of h, h x and h x²
  give the h-weighted variance of each feature. This variance is the curvature of the
  objective along the feature when the intercept adapts. The intercept moves with the
  weighted means, so neither the scale nor the offset of a feature matters.
- Curvature pairs on top of the metric, as in online L-BFGS (Yu 2009, section 5.4;
  scaled by the mean of 5.18). The displacements are differences between mean iterates
  of blocks of batches, and the products with the Hessian are averaged over the next
  block (Byrd et al. 2016, Alg. 1). Both averages reduce noise, and the pairs change
  rarely.
- A step size from the batch: the minimizer of the batch's quadratic model along the
  direction, times a factor that decreases like t^(-1/2). The step is halved until the
  objective of the same batch decreases.
- A weighted average of iterates, which is the model (Shamir and Zhang 2013). If the
  iterate repeatedly predicts the next batches better than the average, the average lags
  behind. The average then restarts, and the steps grow again.

If the model predicts new rows much worse than earlier rows, the distribution of the
stream has changed, and the method restarts at the last iterate. The test for this
change is the cumulative sum test of Page (1954) over blocks of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..losses._base import Floats
from ..losses._curvature import Curvature
from ..options import option
from ..records import changed, stored
from ..rounding import MOST_STEPS, ROUNDED
from .auto_average import Average, share_of_last
from .auto_metric import Metric, Moments, add_moments, make_metric
from .auto_pairs import Block, next_pairs
from .auto_settings import SETTINGS
from .batch import LinearBatch
from .method import State, check_finite, number_of_pairs


@stored
@dataclass(frozen=True)
class AutoState(State):
    """State of "auto": the model w, the iterate, and the statistics for the next step.

    Attributes
    ----------
    w : ndarray of shape (q,)
        The model, which is the average of iterates. With an L1 penalty, coefficients
        are set to zero where the optimality conditions at the averaged gradient imply
        zero.
    iterate : ndarray of shape (q,)
    average : Average
        Average of the iterates.
    stiffness : float
        Running mean of the inverse step size to the minimizer of a batch's quadratic
        model.
    moments, metric, block
        See ``Moments``, ``Metric`` and ``Block``.
    dw, dg : ndarray of shape (m, q)
        Curvature pairs, oldest first.
    smooth_gradient : ndarray of shape (q,) or None
        With an L1 penalty, the average of the gradients of the smooth part.
    length : float
        Last step size, as a multiple of the direction.
    size : float
        The largest batch objective so far, including the first batch's at zero scores.
        Rounding errors are relative to this size.
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
    size: float = 0.0
    began: int = 0

    @property
    def measures(self) -> bool:
        """Whether the curvature is measured on the next batch."""
        since = self.n_steps - self.began
        return since < SETTINGS.block_batches or since % SETTINGS.measured_every == 0

    def known(self) -> AutoState:
        """Return the initial state of a stream that starts from a good model.

        The first steps are short, because scales and curvature are not yet estimated.
        """
        n = SETTINGS.known_batches
        average = changed(self.average, n=n, clock=float(n))
        return changed(self, average=average)

    def __post_init__(self) -> None:
        # The iterate depends on all other arrays, so they are finite if the iterate is.
        check_finite("the iterate", self.iterate)


@stored
@dataclass(frozen=True)
class AdaptiveLBFGS:
    """Online L-BFGS without tuning parameters, on all columns.

    Attributes
    ----------
    eta0 : float
        First step size, as a fraction of the step to the minimizer of the batch's
        quadratic model.
    tau : float
        Number of batches after which the steps begin to decrease; inf keeps the steps
        constant.
    memory : int
        Maximum number of curvature pairs.
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
    memory: int = number_of_pairs()
    average: bool = True

    # A feature is centered if the ratio of its squared mean to its mean square exceeds
    # this threshold.
    least_share: ClassVar[float] = 0.0

    # Whether a step may overwrite the moments of the state.
    overwrites: ClassVar[bool] = False

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
        gradient = penalty.l2 * w
        gradient[batch.n_coef :] = 0.0
        batch.adjoint(batch.dual(z), gradient)

        moments = state.moments
        measured = state.measures
        if moments is None or measured:
            h = curvature.diagonal()
            moments = add_moments(batch, h, moments, self.overwrites)
        metric = state.metric
        if (
            metric is None
            or state.block.n_batches == 0
            or moments.n_rows > SETTINGS.metric_growth * metric.n_rows
        ):
            metric = make_metric(
                moments, batch.fit_intercept, penalty.l2, self.least_share
            )
            if len(state.dw):
                metric = metric.with_pairs(state.dw, state.dg)

        size = max(state.size, value, 0.0 if state.size else batch.risk(0.0 * z))
        p, slope = _direction(metric, gradient)
        coef, step = w[: batch.n_coef], p[: batch.n_coef]
        sums = slope, float(step @ step), float(coef @ step)
        line = batch.scores(p), *sums
        eta, stiffness = self._length(batch, state, z, risk, curvature, line, size)
        if penalty.l1:
            new = w + metric.times(eta).proximal(w, gradient, penalty.l1)
        else:
            new = np.multiply(p, eta, out=p)
            new += w

        mean, of_model = state.average.mean, (risk, value)
        if state.average.n:
            risk = batch.risk(batch.scores(mean))
            of_model = risk, risk + penalty.value(mean[: batch.n_coef])
        average = self._averaged(state.average, new, batch.n_rows, value, *of_model)
        if average.level.alarms:
            return self._anew(state, new, value, gradient, eta, metric)

        work = max(SETTINGS.work_per_entry * batch.n_entries, SETTINGS.least_work)
        memory = min(self.memory, work // max(len(w), 1))
        model, smooth = average.mean, state.smooth_gradient
        if penalty.l1:
            # Proximal steps, which set coefficients to zero, use no curvature pairs.
            memory = 0
            if smooth is None:
                smooth = gradient
            smooth = smooth + share_of_last(average.n) * (gradient - smooth)
            model = metric.model(model, smooth, penalty.l1)
        pair_source = curvature if measured else None
        dw, dg, block = next_pairs(
            batch, state.block, state.dw, state.dg, w, pair_source, memory
        )
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
            size=size,
            began=state.began,
        )

    def _anew(
        self,
        state: AutoState,
        iterate: Floats,
        value: float,
        gradient: Floats,
        length: float,
        metric: Metric,
    ) -> AutoState:
        """Return a state restarted at the iterate, after a step with the metric."""
        n_steps = state.n_steps + 1
        return changed(
            self.start(iterate),
            n_steps=n_steps,
            value=value,
            gradient=gradient,
            average=Average(iterate, n_steps=n_steps),
            metric=metric,
            length=length,
            began=n_steps,
        )

    def _averaged(
        self,
        average: Average,
        new: Floats,
        n_rows: int,
        value: float,
        risk: float,
        there: float,
    ) -> Average:
        """Return the average after a step to ``new``, from an objective ``value``.

        ``risk`` and ``there`` are the loss and the objective of the batch at the model.
        """
        level = average.level.then(risk, n_rows)
        if not self.average:
            n_steps = average.n_steps + 1
            return Average(new, 0, n_steps, average.clock + 1.0, level=level)
        return changed(average, level=level).then(new, there - value, there)

    def residual(self, state: AutoState, l1: float) -> Floats:
        """Return the residual of the optimality conditions on the last batch.

        The residual is the step of the diagonal metric, in coordinates in which the
        metric is the identity, so its norm does not depend on the scales of features.
        With an L1 penalty of strength ``l1`` the step is proximal, at the averaged
        gradient.
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
        line: tuple[Floats, float, float, float],
        size: float,
    ) -> tuple[float, float]:
        """Return the step size along a direction, and the updated stiffness.

        ``line`` has the scores of the direction, the slope of the objective, the
        squared norm of its coefficients, and their product with the iterate.

        The step size is zero if no step decreases the batch objective. The slope is of
        second order in the gradient. A slope below the squared rounding error of the
        gradient counts as zero, as at the optimum of batches of one class.
        """
        dscores, slope, square, product = line
        if not slope < -(ROUNDED**2) * size:
            return 0.0, state.stiffness
        square *= batch.penalty.l2
        bend = float(np.vdot(curvature.apply(dscores.copy()), dscores)) + square
        own = bend / -slope
        stiffness = own
        if state.stiffness > 0.0:
            stiffness = (
                SETTINGS.forgetting * state.stiffness
                + (1.0 - SETTINGS.forgetting) * own
            )
        eta = (
            self.eta0 / (1.0 + state.average.clock / self.tau) ** SETTINGS.step_exponent
        )
        if stiffness > 0.0:
            eta /= stiffness
        if own > 0.0:
            eta = min(eta, 1.0 / own)
        linear = batch.penalty.l2 * product
        for _ in range(MOST_STEPS):
            rise = batch.risk(scores + eta * dscores) - risk
            rise += eta * (linear + 0.5 * eta * square)
            if rise <= ROUNDED * abs(risk):
                return eta, stiffness
            eta *= 0.5
        return 0.0, stiffness


def _direction(metric: Metric, gradient: Floats) -> tuple[Floats, float]:
    """Return the direction of a step without L1 penalty, and its slope."""
    p = metric.apply(gradient)
    square = float(gradient @ p)
    if not square > 0.0:
        # With nearly dependent pairs, rounding errors can make p an ascent direction.
        p = metric.diagonal(gradient)
        square = float(gradient @ p)
    return np.negative(p, out=p), -square

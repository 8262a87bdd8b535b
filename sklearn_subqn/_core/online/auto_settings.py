"""The numbers of the untuned online method, each with what it is for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AutoSettings:
    """What the untuned method is made with.

    Attributes
    ----------
    step_exponent, average_exponent : float
        Exponent of the falling step, and of the weights of iterates in the average.
    descent, rounding, most_halvings : float, float, int
        Steps are halved until they give this share of the fall that the slope promises,
        up to rounding of the objective.
    block_batches, block_rows : int
        Batches of a block, and rows: noise has to average out of its pair.
    metric_growth : float
        The metric is made anew for each block, and whenever it rests on this many times
        more rows.
    measured_every : int
        After the first block, curvature is measured on one batch of this many.
    work_per_entry, least_work : int
        Numbers in the pairs' vectors are at most this multiple of the entries of a
        batch, or this many: vector work stays in proportion to products with the batch.
    forgetting, lead, regrowth : float
        The lead of the iterate over the average is a mean over about ten batches; it
        counts where its square is above half the mean square, about three standard
        errors. Then the clock of the steps goes back to this share.
    noise, brake, fastest : float, float, int
        Where the average leads by more than this share of its objective, steps are too
        long for the noise of the batches: the clock runs faster by this factor, up to
        this many times the batches.
    slack, most_errors, alarm : float
        The stream has changed where the sum of standardized losses of blocks of rows,
        each less this many standard errors and no more than so many, exceeds a limit:
        two blocks at least.
    level_blocks, least_blocks, least_error, usual_errors : int, int, float, float
        Means and variances of these losses are over about this many blocks, no fewer
        than the least; standard errors are no less than this share of the mean loss,
        and losses beyond this many of them count as that many.
    tiny : float
        Below it, curvature counts as this much.
    """

    step_exponent: float = 0.5
    average_exponent: float = 3.0
    descent: float = 1e-4
    rounding: float = 1e-12
    most_halvings: int = 40
    block_batches: int = 10
    block_rows: int = 50
    metric_growth: float = 1.25
    measured_every: int = 2
    work_per_entry: int = 2
    least_work: int = 20_000
    forgetting: float = 0.9
    lead: float = 0.5
    regrowth: float = 0.25
    noise: float = 0.1
    brake: float = 1.25
    fastest: int = 10
    slack: float = 1.0
    most_errors: float = 6.0
    alarm: float = 10.0
    level_blocks: int = 50
    least_blocks: int = 10
    least_error: float = 0.05
    usual_errors: float = 3.0
    tiny: float = 1e-300


SETTINGS = AutoSettings()

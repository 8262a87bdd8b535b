"""The numbers of the untuned online method, each with what it is for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AutoSettings:
    """The constants of the method that needs no tuning.

    A figure is the factor by which the excess over the optimum of log loss grows with
    another value, after an epoch or four in batches of 256.

    Attributes
    ----------
    step_exponent : float
        Exponent of the falling step: with 0 the factor is 4.1 on covtype and 6.0 on
        a9a, with 1 it is 2.9 on rcv1.
    average_exponent : float
        Exponent of the weights of iterates in the average: with 0 the factor is 1.7 on
        rcv1 and 1.6 on covtype.
    block_batches : int
        Number of batches of a block, whose pair noise has to average out of: with 5 the
        factor is 1.5 on letter, with 20 it is 1.8 on letter and on covtype.
    block_rows : int
        Least number of rows of a block.
    metric_growth : float
        The metric is made anew for each block, and whenever the number of rows that it
        rests on has grown by this factor.
    measured_every : int
        Curvature is measured on every second batch after the first block. With every
        tenth the factor is 1.7 on rcv1; with each batch fits take up to 1.3 times as
        long.
    work_per_entry : int
        The pairs' vectors hold at most two numbers for each entry of a batch, so that
        vector work stays in proportion to products with the batch. Without pairs the
        factor is 3.2 on letter; without the limit rcv1 takes 1.9 times as long.
    least_work : int
        The pairs' vectors may hold 20,000 numbers in any case.
    forgetting : float
        Weight of the past in means over batches, which are means over about ten.
    lead : float
        The lead of the iterate over the average counts where the square of its mean is
        above this multiple of its mean square, which is about three standard errors.
    regrowth : float
        Where the lead counts, the clock of the steps is multiplied by this factor.
    noise : float
        Steps are too long for the noise of the batches where the average leads by more
        than a tenth of its objective.
    brake : float
        Where steps are too long, the clock of the steps is multiplied by this factor.
    fastest : int
        The clock runs at most to ten times the number of batches.
    slack : float
        Number of standard errors that is taken off the standardized loss of each block.
    most_errors : float
        A block counts for at most six standard errors in the sum of its losses.
    alarm : float
        The stream has changed where the sum of standardized losses, each less
        ``slack``, reaches this limit, which takes two blocks at least.
    level_blocks : int
        Means and variances of the losses are over about 50 blocks.
    least_blocks : int
        Number of blocks from which on losses are compared with their mean.
    least_error : float
        A standard error is at least this multiple of the mean loss.
    usual_errors : float
        A loss more than three standard errors above the mean changes mean and variance
        like one that is three above.
    known_batches : int
        Coefficients that a stream begins at count as the average of 100 batches. With
        10 the log loss of a good start rises by .02 in batches of 64 rows; with 300 a
        start of wrong signs is left in 60 batches instead of 20.
    """

    step_exponent: float = 0.5
    average_exponent: float = 3.0
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
    known_batches: int = 100


SETTINGS = AutoSettings()

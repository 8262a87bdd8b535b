"""The constants of the online solver "auto"."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AutoSettings:
    """The constants of the online solver "auto".

    A "factor" below is the excess of the log loss over its optimum with another value
    of the constant, relative to the excess with the value here, after one or four
    epochs in batches of 256.

    Attributes
    ----------
    step_exponent : float
        Exponent of the decrease of the step size: with 0 the factor is 4.1 on covtype
        and 6.0 on a9a, with 1 it is 2.9 on rcv1.
    average_exponent : float
        Exponent of the weights of iterates in the average: with 0 the factor is 1.7 on
        rcv1 and 1.6 on covtype.
    block_batches : int
        Number of batches of a block; means over a block reduce the noise of pairs. With
        5 the factor is 1.5 on letter, with 20 it is 1.8 on letter and on covtype.
    block_rows : int
        Minimum number of rows of a block.
    metric_growth : float
        The metric is recomputed for each block, and whenever the number of rows has
        grown by this factor.
    measured_every : int
        Curvature is measured on every second batch after the first block. With every
        tenth the factor is 1.7 on rcv1; with each batch fits take up to 1.3 times as
        long.
    work_per_entry : int
        The curvature pairs have at most two numbers for each entry of a batch, so that
        their cost is proportional to the cost of products with the batch. Without pairs
        the factor is 3.2 on letter; without the limit rcv1 takes 1.9 times as long.
    least_work : int
        The curvature pairs may have 20,000 numbers even for smaller batches.
    forgetting : float
        Weight of the past in running means, which average about ten batches.
    lead : float
        The lead of the iterate over the average is significant if its squared mean
        exceeds this multiple of its mean square, about three standard errors.
    regrowth : float
        A significant lead multiplies ``Average.clock``, from which step sizes decrease,
        by this factor.
    noise : float
        Steps are too long for the sampling noise of batches if the objective at the
        average is lower than at the iterate by more than this fraction of the
        objective.
    brake : float
        If steps are too long, ``Average.clock`` is multiplied by this factor.
    fastest : int
        ``Average.clock`` is at most this multiple of the number of batches.
    slack : float
        Number of standard errors subtracted from the standardized loss of each block.
    most_errors : float
        A block adds at most this many standard errors to the cumulative sum.
    alarm : float
        The stream has changed if the cumulative sum of standardized losses, each minus
        ``slack``, reaches this limit, which takes at least two blocks.
    level_blocks : int
        Mean and variance of the losses average about this many blocks.
    least_blocks : int
        Minimum number of blocks before losses are compared with their mean.
    least_error : float
        The standard error is at least this multiple of the mean loss.
    usual_errors : float
        Losses are clipped at this many standard errors above the mean in the updates of
        mean and variance.
    known_batches : int
        Initial coefficients count as the average of this many batches. With 10 the log
        loss of a good start rises by .02 in batches of 64 rows; with 300 a start with
        wrong signs takes 60 batches to recover instead of 20.
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

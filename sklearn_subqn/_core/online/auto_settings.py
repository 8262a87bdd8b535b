"""The numbers of the untuned online method, each with what it is for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AutoSettings:
    """The constants of the method that needs no tuning.

    Figures are excesses over the optimum of log loss after an epoch or four in batches
    of 256, with another number against this one.

    Attributes
    ----------
    step_exponent, average_exponent : float
        Exponent of the falling step, and of the weights of iterates in the average.
        With 0 for the first 4.1 times on covtype and 6.0 on a9a, with 1 2.9 times on
        rcv1; with 0 for the second 1.7 times on rcv1 and 1.6 on covtype.
    block_batches, block_rows : int
        Batches of a block, and rows: noise has to average out of its pair. With 5
        batches 1.5 times on letter, with 20 1.8 times there and on covtype.
    metric_growth : float
        The metric is made anew for each block, and whenever it rests on this many times
        more rows.
    measured_every : int
        After the first block, curvature is measured on one batch of this many. With 10
        1.7 times on rcv1, with 1 fits take up to 1.3 times as long.
    work_per_entry, least_work : int
        Numbers in the pairs' vectors are at most this multiple of the entries of a
        batch, or this many: vector work stays in proportion to products with the batch.
        Without pairs 3.2 times on letter, without the limit rcv1 takes 1.9 times as
        long.
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


SETTINGS = AutoSettings()

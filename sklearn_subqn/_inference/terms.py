"""Derivatives of the loss of each row, from which moments are computed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from .._core.arrays import Floats
from .._core.losses import DualLoss

# Residuals below a millionth of the kernel's width are treated as zero: such residuals
# are due to rounding, or to a fit with a relative gap of 1e-8.
TIES = 1e-6


class RowTerms(NamedTuple):
    """First and second derivatives of the loss of each row with respect to its scores.

    Attributes
    ----------
    slopes : ndarray of shape (n, m)
        One column for each of the m scores of a row.
    curvatures : ndarray of shape (n, m, m)
        Second derivatives, or their expectations under the model.
    chi_squares : ndarray of shape (n,)
        Squared Pearson residuals, in units of the dispersion.
    """

    slopes: Floats
    curvatures: Floats
    chi_squares: Floats


def one_score(
    loss: DualLoss, power: float | None, scores: Floats, targets: Floats, expected: bool
) -> RowTerms:
    """Return the terms of a smooth loss of one score per row.

    Parameters
    ----------
    loss : DualLoss
    power : float or None
        Variances are proportional to this power of the mean exp(z), if the loss is a
        deviance: the expected curvature is then exp((2 - power) z).
    scores, targets : ndarray of shape (n,)
    expected : bool
        Whether curvatures are expected ones.
    """
    ones = np.ones(len(scores))
    slopes = loss.oracle.subgradient(scores, targets, ones)
    observed = loss.oracle.curvature(scores, targets, ones).diagonal()
    information = observed if power is None else np.exp((2.0 - power) * scores)
    chi_squares = np.zeros(len(scores))
    np.divide(slopes**2, information, out=chi_squares, where=information > 0.0)
    curvatures = information if expected else observed
    return RowTerms(slopes[:, None], curvatures[:, None, None], chi_squares)


def softmax(scores: Floats, classes: Floats) -> RowTerms:
    """Return the terms of the multinomial log loss, without the first score.

    Parameters
    ----------
    scores : ndarray of shape (n, k)
    classes : ndarray of shape (n,)
        Class numbers of the rows.
    """
    p = special.softmax(scores, axis=1)[:, 1:]
    slopes = p - (classes[:, None] == np.arange(1, scores.shape[1]))
    curvatures = -p[:, :, None] * p[:, None, :]
    diagonal = np.arange(p.shape[1])
    curvatures[:, diagonal, diagonal] += p
    return RowTerms(slopes, curvatures, np.ones(len(p)))


def thresholds(loss: DualLoss, scores: Floats, levels: Floats) -> RowTerms:
    """Return the terms of a smooth loss of one score minus each of several thresholds.

    Parameters
    ----------
    loss : DualLoss
    scores : ndarray of shape (n, m)
    levels : ndarray of shape (n,)
        Numbers of the classes in their order.
    """
    ones = np.ones(len(scores))
    slopes = loss.oracle.subgradient(scores, levels, ones)
    curvature = loss.oracle.curvature(scores, levels, ones)
    units = (np.tile(each, (len(scores), 1)) for each in np.eye(scores.shape[1]))
    return RowTerms(slopes, np.stack([*map(curvature.apply, units)], axis=2), ones)


def quantile(residuals: Floats, level: float, width: float) -> RowTerms:
    """Return the terms of the pinball loss, with densities of residuals by a kernel.

    The expected curvature of the loss is the density of the residual at zero. Powell
    (1991) estimates it for each row by a kernel of the residuals, here Epanechnikov's.

    Parameters
    ----------
    residuals : ndarray of shape (n,)
        Targets less scores.
    level : float
        Level of the quantile, in (0, 1).
    width : float
        Half-width of the kernel in units of the targets, positive.
    """
    slopes = np.where(residuals > 0.0, -level, 1.0 - level)
    # A residual that is zero up to rounding has an arbitrary sign. Its slope is set to
    # the root mean square of the slopes.
    slopes[np.abs(residuals) <= TIES * width] = np.sqrt(level * (1.0 - level))
    u = residuals / width
    densities = 0.75 * np.maximum(1.0 - u * u, 0.0) / width
    return RowTerms(slopes[:, None], densities[:, None, None], np.ones(len(u)))


def bandwidth(residuals: Floats, targets: Floats, level: float) -> float:
    """Return the half-width of the kernel by Hall and Sheather (1988) at 95 %.

    Quantiles around the level define the width, in units of the smaller of the standard
    deviation of the targets and the spread of the residuals.

    Raises
    ------
    ValueError
        If most residuals are zero, or no sample lies beyond the quantile.
    """
    n, z = len(residuals), special.ndtri(level)
    deviation = float(np.std(targets))
    if np.mean(np.abs(residuals) <= TIES * deviation) > 0.5:
        raise ValueError(
            f"Most residuals of the quantile {level:g} are zero. Where it runs through "
            "equal targets, residuals have no density, and quantiles no standard "
            "errors by it."
        )
    if n * min(level, 1.0 - level) < 1.0:
        raise ValueError(
            f"The quantile {level:g} of {n} samples is beyond all of them: it needs "
            f"{int(np.ceil(1.0 / min(level, 1.0 - level)))} samples or more."
        )
    density = np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi)
    share = (1.5 * density**2 / (2.0 * z * z + 1.0)) ** (1.0 / 3.0)
    share *= n ** (-1.0 / 3.0) * special.ndtri(0.975) ** (2.0 / 3.0)
    low, high = np.quantile(residuals, [0.25, 0.75])
    spread = min(deviation, float(high - low) / 1.34)
    if spread <= TIES * deviation:
        # Half of the residuals are equal, so their spread is zero, but not at this
        # quantile.
        spread = deviation
    # In small samples, the interval of levels may exceed (0, 1).
    edge = 0.5 / n
    ends = special.ndtri(np.clip([level + share, level - share], edge, 1.0 - edge))
    return spread * float(ends[0] - ends[1])

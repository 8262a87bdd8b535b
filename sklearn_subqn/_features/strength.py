"""The strength of the penalty for ``alpha="auto"``: a rule that ignores units.

Each feature is measured in a scale s_j, so that J does not depend on units of features,

    s_j² = variance of feature j / share of its entries that are not zero.

For features without zeros the scale is the standard deviation. For a word that is in
few texts, the scale is about the size of the nonzero entries. With standard deviations
as scales, rare words would have almost no penalty. With d the mean number of nonzero
entries of a row and n the sum of the weights,

    alpha = k u d / n for squares,    alpha = k u sqrt(ln d' / n) for the L1 norm,

where d' is the number of features that vary, and the factor u removes the unit of the
targets. The strength of an elastic net is the harmonic mean of both, weighted by the
shares of its two parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._core.arrays import Floats, Mask
from .._core.memory import BLOCK_SIZE
from .._core.rounding import ROUNDED

# Factors k for the L2 and the L1 penalty. Losses of classifiers have factors by name,
# losses of regressors by their slopes: unbounded, bounded, or with jumps at kinks. Each
# factor is the value on the grid .01, .02, .05, ..., 5 with the smallest mean regret of
# the cross-validated score (D² or accuracy) against the best value of the grid, on 20
# data sets with classes (72 to 10,000 rows, some of them text) and 15 with numbers.
# Regrets: log loss .036, with L1 .032, hinge .007, squared hinge .005, squares .003,
# absolute .003, quantile .9 .012.
_K = {
    "log_loss": (0.03, 0.04),
    "hinge": (0.2, 0.05),
    "squared_hinge": (1.0, 0.1),
    "unbounded": (0.2, 0.2),
    "bounded": (0.2, 0.1),
    "kinks": (0.5, 0.1),
    "means": (0.2, 0.1),
}


class Rule(NamedTuple):
    """Factors of the rule for the strength, besides the numbers of rows and features.

    Attributes
    ----------
    squares, norm : float
        The product k u for an L2 penalty, and for an L1 penalty.
    """

    squares: float
    norm: float


class Scales(NamedTuple):
    """Scales of the features in the penalty.

    Attributes
    ----------
    sizes : ndarray of shape (d,)
        Positive scales; one for features that are zero.
    shares : ndarray of shape (d,)
        Weighted share of nonzero entries of features that vary; else zero.
    n_entries : float
        Mean number of nonzero entries of a row, in features that vary.
    n_features : int
        Number of features that vary.
    unit : float
        Root mean square of the entries, if all scales are one.
    """

    sizes: Floats
    shares: Floats
    n_entries: float
    n_features: int
    unit: float = 1.0

    @classmethod
    def of(cls, X: Any, weights: Floats, *, centered: bool) -> Scales:
        """Return the scales of the features.

        Parameters
        ----------
        X : {ndarray, CSR matrix} of shape (n, d)
        weights : ndarray of shape (n,)
            Weights that sum to one.
        centered : bool
            Whether variances are about the means, which an intercept allows.
        """
        share, mean, square, _ = column_sums(X, weights)
        return cls.of_sums(share, mean, square, centered=centered)

    @classmethod
    def of_sums(
        cls, share: Floats, mean: Floats, square: Floats, *, centered: bool
    ) -> Scales:
        """Return the scales of features from ``column_sums`` over all rows."""
        variance = square - mean**2 if centered else square
        # A smaller variance is the rounding error of a constant feature.
        varies = variance > ROUNDED * square
        variance = np.where(varies, variance, square)
        sizes = np.ones(len(square))
        used = square > 0.0
        sizes[used] = np.sqrt(variance[used] / share[used])
        shares = share * varies
        return cls(sizes, shares, float(shares.sum()), int(varies.sum()))

    def plain(self, free: Mask | None = None) -> Scales:
        """Return scales of one, with the root mean square of the entries as the unit.

        Features without a penalty are excluded.
        """
        shares = self.shares if free is None else self.shares * ~free
        total = float(self.sizes**2 @ shares)
        unit = np.sqrt(total / shares.sum()) if total else 1.0
        return self._replace(sizes=np.ones_like(self.sizes), unit=float(unit))

    def strength(self, rule: Rule, l1_share: float, total: float) -> float:
        """Return alpha for an elastic net, given the rule for each of its two parts.

        The L1 norm and squares have different units: where alpha is right for one part,
        the other part may be far too strong. The strength of a part relative to the
        strength it would have alone is a fraction, and both fractions sum to one.

        Parameters
        ----------
        rule : Rule
        l1_share : float
            The share of the L1 norm in the penalty; the rest is squares.
        total : float
            n, the sum of the weights of the rows.
        """
        squares = np.float64(rule.squares) * self.unit**2 / total
        squares *= max(self.n_entries, 1.0)
        norm = rule.norm * self.unit * np.sqrt(np.log(max(self.n_features, 2)) / total)
        return float(1.0 / (l1_share / norm + (1.0 - l1_share) / squares))


def column_sums(X: Any, weights: Floats) -> Floats:
    """Return the sums over rows from which scales follow, of shape (4, d).

    The sums are over the weights of nonzero entries, the weighted entries, the weighted
    squares, and the stored entries (a count).

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n, d)
    weights : ndarray of shape (n,)
    """
    share, mean, square, stored = sums = np.zeros((4, X.shape[1]))
    for block, row_weights in _blocks(X, weights):
        if sparse.issparse(block):
            values = block.data.astype(np.float64)
            places = block.indices, block.indptr
            kept = (values != 0.0).astype(np.float64)
            for sums_of, data in (share, kept), (mean, values), (square, values**2):
                rows = sparse.csr_array((data, *places), shape=block.shape)
                sums_of += rows.T @ row_weights
            stored += np.bincount(block.indices, minlength=X.shape[1])
        else:
            values = block.astype(np.float64, copy=False)
            # The comparison is skipped in the usual case that all entries are nonzero.
            full = np.count_nonzero(values) == values.size
            share += row_weights.sum() if full else row_weights @ (values != 0.0)
            mean += row_weights @ values
            square += row_weights @ np.square(values)
            stored += len(values)
    return sums


def divided(X: Any, sizes: Floats) -> Any:
    """Return a copy of X with columns divided by their sizes, in float64."""
    if not sparse.issparse(X):
        return X / sizes
    data = X.data / sizes[X.indices]
    return type(X)((data, X.indices, X.indptr), shape=X.shape)


def _blocks(X: Any, weights: Floats) -> Iterator[tuple[Any, Floats]]:
    if sparse.issparse(X):
        yield X, weights
        return
    step = max(1, BLOCK_SIZE // max(X.shape[1], 1))
    for start in range(0, len(X), step):
        yield X[start : start + step], weights[start : start + step]


def target_deviation(y: Floats, weights: Floats) -> float:
    """Return the standard deviation of targets of shape (n,); one where it is zero."""
    # One target is subtracted from all, so that equal targets give exactly zero.
    deviation = y - y[np.argmax(weights)]
    deviation -= weights @ deviation
    return float(np.sqrt(weights @ (deviation * deviation))) or 1.0


def rule_of_labels(loss: Any) -> Rule:
    """Return the rule for a loss of labels, by the name of the loss."""
    return Rule(*_K.get(loss if isinstance(loss, str) else "", _K["hinge"]))


def rule_of_means(power: float, y: Floats, weights: Floats) -> Rule:
    """Return the rule for a deviance of positive means, whose scores are logarithms.

    Second derivatives are about mean(y)^(2 - power). Slopes are about mean(y)^(1 -
    power) times the deviation of the targets: the root of the mean for counts, which
    have no unit, and the standard deviation otherwise.

    Parameters
    ----------
    power : float
        Variances are proportional to this power of the means; 1 for counts.
    y : ndarray of shape (n,)
    weights : ndarray of shape (n,)
        Weights that sum to one.
    """
    squares, norm = _K["means"]
    mean = float(weights @ y) or 1.0
    far = np.sqrt(mean) if power == 1.0 else target_deviation(y, weights)
    return Rule(squares * mean ** (2.0 - power), norm * far * mean ** (1.0 - power))


def rule_of_numbers(
    loss: Any, y: Floats, weights: Floats, *, has_name: bool = False
) -> Rule:
    """Return the rule for a loss of numbers, in the unit of the numbers.

    The rule depends on whether slopes are bounded, and whether they jump at kinks.

    Parameters
    ----------
    loss : Loss or DualLoss
    y : ndarray of shape (n,) or (n, m)
    weights : ndarray of shape (n,)
        Weights that sum to one.
    has_name : bool, default=False
        Whether the user gives the loss by name. The factors k fit the slopes of named
        losses, and bounds on these slopes hold for each of several targets.
    """
    steepest = getattr(getattr(loss, "set", None), "largest", np.inf)
    unit = target_deviation(y, weights) if y.ndim == 1 else 1.0
    if steepest == np.inf or not (has_name or y.ndim == 1):
        squares, norm = _K["unbounded"]
        return Rule(squares, norm * unit)
    if loss.smooth:
        squares, norm = _K["bounded"]
        # The loss is approximately the absolute error times the largest slope.
        return Rule(squares * min(1.0, steepest / unit), norm * min(unit, steepest))
    squares, norm = _K["kinks"]
    steepest = 1.0 if has_name else steepest
    return Rule(squares * steepest / unit, norm * steepest)

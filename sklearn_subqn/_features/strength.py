"""The strength of the penalty where ``alpha="auto"``: a rule without units.

Features are measured in scales s_j, so that J is the same for features of other units,

    s_j² = variance of feature j / share of its entries that are not zero.

For features without zeros that is the standard deviation. Of a word that is in few
texts it is about the size of the entries that it has: measured in standard deviations
rare words would be almost free of a penalty. With d the mean number of entries of a row
that are not zero and n the weight of the rows,

    alpha = k u d / n for squares,    alpha = k u sqrt(ln d' / n) for the L1 norm,

where d' counts the features that vary, and u makes up for the unit of the targets. An
elastic net has their harmonic mean, weighted by the shares of its two parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from .._core.memory import BLOCK_SIZE
from .._core.rounding import ROUNDED

Floats = npt.NDArray[np.float64]


# k of squares and of the L1 norm, by loss, of the grid .01, .02, .05, ..., 5 that with
# the least mean regret of cross-validated scores (D² or accuracy) against the best of
# the grid, on 20 data sets of classes (72 to 10,000 rows, text among them) and 15 of
# numbers: log loss .036, its L1 .032, hinge .007, squared hinge .005, squares .003,
# absolute .003, quantile .9 .012.
_K = {
    "log_loss": (0.03, 0.04),
    "hinge": (0.2, 0.05),
    "squared_hinge": (1.0, 0.1),
    "squared_error": (0.2, 0.2),
    "absolute_error": (0.5, 0.1),
    "quantile": (0.5, 0.1),
    "epsilon_insensitive": (0.5, 0.1),
    "huber": (0.2, 0.1),
    "poisson": (0.2, 0.1),
}
_OTHER_K = _K["hinge"]


class Rule(NamedTuple):
    """Numbers that make a strength from the counts of rows and features.

    Attributes
    ----------
    squares, norm : float
        k u for a penalty of squares and for the L1 norm.
    """

    squares: float
    norm: float


class Scales(NamedTuple):
    """Units in which the penalty measures the features.

    Attributes
    ----------
    sizes : ndarray of shape (d,)
        Positive; one for features that are zero.
    shares : ndarray of shape (d,)
        Of the entries that are not zero, of features that vary; else zero.
    n_entries : float
        Mean number of entries of a row that are not zero, of features that vary.
    n_features : int
        Number of features that vary.
    unit : float
        The mean size of entries where units are ones.
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
            Sum to one.
        centered : bool
            Whether variances are about the means: an intercept makes up for these.
        """
        share, mean, square, _ = column_sums(X, weights)
        return cls.of_sums(share, mean, square, centered=centered)

    @classmethod
    def of_sums(
        cls, share: Floats, mean: Floats, square: Floats, *, centered: bool
    ) -> Scales:
        """Return the scales of features from ``column_sums`` of all rows."""
        variance = square - mean**2 if centered else square
        # Less is what rounding leaves of a constant.
        varies = variance > ROUNDED * square
        variance = np.where(varies, variance, square)
        sizes = np.ones(len(square))
        used = square > 0.0
        sizes[used] = np.sqrt(variance[used] / share[used])
        shares = share * varies
        return cls(sizes, shares, float(shares.sum()), int(varies.sum()))

    def plain(self, free: npt.NDArray[np.bool_] | None = None) -> Scales:
        """Return units of one, for entries of the same root mean square.

        That leaves out features that are free of a penalty, if there are any.
        """
        shares = self.shares if free is None else self.shares * ~free
        total = float(self.sizes**2 @ shares)
        unit = np.sqrt(total / shares.sum()) if total else 1.0
        return self._replace(sizes=np.ones_like(self.sizes), unit=float(unit))

    def strength(self, rule: Rule, l1_share: float, total: float) -> float:
        """Return alpha, of whose parts none is stronger than it would be by itself.

        The L1 norm and squares have different units: where one is right, the other may
        be any number of times too strong. As shares of what they would be alone they
        add up to one.

        Parameters
        ----------
        rule : Rule
        l1_share : float
            The share of the L1 norm in the penalty, the rest being squares.
        total : float
            n, the sum of the weights of the rows.
        """
        squares = np.float64(rule.squares) * self.unit**2 / total
        squares *= max(self.n_entries, 1.0)
        norm = rule.norm * self.unit * np.sqrt(np.log(max(self.n_features, 2)) / total)
        return float(1.0 / (l1_share / norm + (1.0 - l1_share) / squares))


def column_sums(X: Any, weights: Floats) -> Floats:
    """Return sums over the rows, of shape (4, d), of what scales are made of.

    Those of the weights of entries that are not zero, weighted entries, their weighted
    squares, and the number of stored entries.

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
            # Mostly all entries count.
            full = np.count_nonzero(values) == values.size
            share += row_weights.sum() if full else row_weights @ (values != 0.0)
            mean += row_weights @ values
            square += row_weights @ np.square(values)
            stored += len(values)
    return sums


def divided(X: Any, sizes: Floats) -> Any:
    """Return a copy of X in units of its columns, in double precision."""
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
    # Equal targets have deviations of exactly zero from one of them.
    deviation = y - y[np.argmax(weights)]
    deviation -= weights @ deviation
    return float(np.sqrt(weights @ (deviation * deviation))) or 1.0


def rule_of_labels(loss: Any) -> Rule:
    """Return the rule of a loss of labels, by its name."""
    return Rule(*_K.get(loss if isinstance(loss, str) else "", _OTHER_K))


def rule_of_means(power: float, y: Floats, weights: Floats) -> Rule:
    """Return the rule of a deviance of positive means, scores of which are logarithms.

    Second derivatives are about mean(y)^(2 - power), and slopes about mean(y)^(1 -
    power) times how far the targets are from their means: the root of these for counts,
    which have no unit, and the standard deviation for others.

    Parameters
    ----------
    power : float
        Variances are proportional to this power of the means; 1 for counts.
    y : ndarray of shape (n,)
    weights : ndarray of shape (n,)
        Sum to one.
    """
    squares, norm = _K["poisson"]
    mean = float(weights @ y) or 1.0
    far = np.sqrt(mean) if power == 1.0 else target_deviation(y, weights)
    return Rule(squares * mean ** (2.0 - power), norm * far * mean ** (1.0 - power))


def rule_of_numbers(loss: Any, y: Floats, weights: Floats, epsilon: float) -> Rule:
    """Return the rule of a loss of numbers, in units of the numbers.

    Parameters
    ----------
    loss : str or Loss
    y : ndarray of shape (n,) or (n, m)
    weights : ndarray of shape (n,)
        Sum to one.
    epsilon : float
        The residual from which on "huber" is linear.
    """
    squares, norm = _K.get(loss if isinstance(loss, str) else "", _K["squared_error"])
    if loss in ("absolute_error", "quantile", "epsilon_insensitive"):
        return Rule(squares / target_deviation(y, weights), norm)
    unit = target_deviation(y, weights) if y.ndim == 1 else 1.0
    if loss == "huber":
        # Slopes are epsilon at most: it is like epsilon times the absolute error.
        return Rule(squares * min(1.0, epsilon / unit), norm * min(unit, epsilon))
    return Rule(squares, norm * unit)

"""Maps between the coefficients of the user and the parameters of the solver.

All maps act on coefficients (k, d) and intercepts (k,). ``inward`` returns the solver's
representation, ``outward`` the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._core import lapack
from .._core.arrays import Array, Floats, Indices, Mask
from .._core.rounding import ROUNDED
from .._features.shift import Shift

#: Coefficients (k, d) and intercepts (k,).
Pair = tuple[Any, Any]


class Map(Protocol):
    """A map between two representations of coefficients and intercepts."""

    def inward(self, coef: Any, intercept: Any) -> Pair:
        """Return the solver's representation."""

    def outward(self, coef: Any, intercept: Any) -> Pair:
        """Return the user's representation."""


class RowMap(Map, Protocol):
    """A map of rows: the user's scores are linear combinations of the solver's scores.

    Attributes
    ----------
    n_rows : int
        Number of rows of the user's coefficients.
    """

    @property
    def n_rows(self) -> int:
        """Number of rows of the user's coefficients."""


class LeftOut(NamedTuple):
    """A subset of the features; coefficients of the other features are zero."""

    columns: Indices
    n_features: int

    def inward(self, coef: Any, intercept: Any) -> Pair:
        return coef[:, self.columns], intercept

    def outward(self, coef: Any, intercept: Any) -> Pair:
        every = np.zeros((len(coef), self.n_features), coef.dtype)
        every[:, self.columns] = coef
        return every, intercept


class Units(NamedTuple):
    """Features divided by their units."""

    sizes: Floats

    def inward(self, coef: Any, intercept: Any) -> Pair:
        return coef * self.sizes, intercept

    def outward(self, coef: Any, intercept: Any) -> Pair:
        return coef / self.sizes, intercept


class Turned(NamedTuple):
    """Combinations of features in which a quadratic penalty is a sum of squares.

    If the penalty has the matrix B = V Λ Vᵀ, the coefficients of the combinations in
    the columns of V Λ^(-1/2) have the squared norm as penalty. Combinations whose
    eigenvalue is zero have no penalty.

    Attributes
    ----------
    columns, inverse : ndarray of shape (d, d)
        The combinations, and the inverse of this matrix.
    free : ndarray of bool, of shape (d,)
        Mask of the combinations without a penalty.
    """

    columns: Floats
    inverse: Floats
    free: Mask

    @classmethod
    def of(cls, matrix: Floats, X: Any, weights: Floats, *, centered: bool) -> Turned:
        """Return the combinations for a semidefinite matrix.

        Combinations without a penalty are chosen to be uncorrelated in X, after
        centering if ``centered``. Those that are zero in X are then left out: with
        centering they are constant, and intercepts replace them.
        """
        values, vectors = lapack.eigh(matrix)
        free = values <= ROUNDED * values.max()
        sizes = np.sqrt(np.where(free, 1.0, values))
        columns = vectors / sizes
        if free.any():
            Z = X @ vectors[:, free]
            squares = weights @ np.square(Z)
            if centered:
                Z -= weights @ Z
            variances, own = lapack.eigh(Z.T @ (Z * weights[:, np.newaxis]))
            # The factor of 1e5 makes the tiny penalty on these combinations negligible.
            scales = np.sqrt(np.maximum(variances, 0.0)) / 1e5
            vectors[:, free] = vectors[:, free] @ own
            constant = variances <= ROUNDED * squares.sum()
            scales[constant] = 1.0
            sizes[free] = scales
            columns[:, free] = vectors[:, free] * (~constant / scales)
            free[free] = ~constant
        return cls(columns, (vectors * sizes).T, free)

    def inward(self, coef: Any, intercept: Any) -> Pair:
        return coef @ self.inverse.T, intercept

    def outward(self, coef: Any, intercept: Any) -> Pair:
        return coef @ self.columns.T, intercept

    def adjoint(self, X: Any) -> Any:
        return np.ascontiguousarray(X @ self.columns)


class Moved(NamedTuple):
    """Shifted features; the intercepts compensate for the shift.

    Parameters
    ----------
    shift : Shift
    sums : callable, optional
        Returns the sums of coefficients (k, d), where scores are weighted means.
    """

    shift: Shift
    sums: Callable[[Floats], Floats] | None = None

    def _shares(self, coef: Any) -> Any:
        return coef if self.sums is None else coef / self.sums(coef)

    def inward(self, coef: Any, intercept: Any) -> Pair:
        return coef, self.shift.inward(self._shares(coef), intercept)

    def outward(self, coef: Any, intercept: Any) -> Pair:
        return coef, self.shift.outward(self._shares(coef), intercept)


class Raised(NamedTuple):
    """Targets minus a constant, which is added to the intercepts."""

    level: float

    def inward(self, coef: Any, intercept: Any) -> Pair:
        # The difference would be rounded in single precision.
        return coef, np.asarray(intercept, dtype=np.float64) - self.level

    def outward(self, coef: Any, intercept: Any) -> Pair:
        return coef, np.asarray(intercept, dtype=np.float64) + self.level


class Signs:
    """Scores with the opposite sign, where large scores mean the first class."""

    def inward(self, coef: Any, intercept: Any) -> Pair:
        return -coef, -intercept

    def outward(self, coef: Any, intercept: Any) -> Pair:
        # Subtraction from 0.0 keeps zeros positive.
        return 0.0 - coef, 0.0 - intercept


class Contrasts:
    """Differences from one of the scores, for a solver with scores that sum to zero.

    Parameters
    ----------
    n_scores : int
        Number of the solver's scores.
    base : int
        Index of the score that is subtracted from all others, 0 or -1.
    """

    def __init__(self, n_scores: int, base: int) -> None:
        self.n_rows, self._base = n_scores - 1, base

    def inward(self, coef: Any, intercept: Any) -> Pair:
        rows = np.column_stack([coef, intercept])
        own = -rows.sum(axis=0) / (len(rows) + 1)
        rows = rows + own
        rows = np.vstack([own, rows] if self._base == 0 else [rows, own])
        return rows[:, :-1], rows[:, -1]

    def outward(self, coef: Any, intercept: Any) -> Pair:
        return self._less_base(coef), self._less_base(intercept)

    def _less_base(self, rows: Any) -> Any:
        return np.delete(rows, self._base, axis=0) - rows[self._base]


class Nodes:
    """Scores of labels, which are sums of the solver's scores of nodes.

    For two labels the user has one score, their difference.

    Parameters
    ----------
    features : ndarray of shape (n_labels, n_nodes)
        The contribution of each node to each label.
    """

    def __init__(self, features: Floats) -> None:
        two = len(features) == 2
        self._features = features[1:] - features[:1] if two else features
        self.n_rows = len(self._features)

    def inward(self, coef: Any, intercept: Any) -> Pair:
        # Optimal coefficients of nodes are in the span of the features of labels.
        labels = np.column_stack([coef, intercept])
        nodes = lapack.pinv(self._features) @ labels
        return nodes[:, :-1], nodes[:, -1]

    def outward(self, coef: Any, intercept: Any) -> Pair:
        labels = self._features @ np.column_stack([coef, intercept])
        return labels[:, :-1], labels[:, -1]


class Levels:
    """Scores of ordered classes, for a solver with one score and thresholds.

    The user's score of a class is its number times the solver's score minus the sum of
    the thresholds below the class. The largest of these is the score of the class whose
    thresholds enclose the solver's score. Intercepts (k - 1,) of the solver are the
    negative thresholds. For two classes the user has one score, their difference.

    Parameters
    ----------
    order : ndarray of shape (k,)
        Numbers of the sorted classes, from the lowest class to the highest.
    base : ndarray of shape (k - 1,), optional
        Numbers that the loss adds to the intercepts. Their sums have to descend.
    """

    def __init__(self, order: Indices, base: Floats | None = None) -> None:
        self._base = base
        two = len(order) == 2
        self.n_thresholds = len(order) - 1
        self.n_rows = 1 if two else len(order)
        self._numbers = np.arange(len(order) - self.n_rows, len(order))
        # For each sorted class, its position in the order from lowest to highest.
        self._numbers = self._numbers[[0] if two else np.argsort(order)]
        self._places = np.argsort(self._numbers)

    def inward(self, coef: Any, intercept: Any) -> Pair:
        coef, intercept = coef[self._places], intercept[self._places]
        thresholds = np.diff(intercept, prepend=0.0)[-self.n_thresholds :]
        if self._base is not None:
            descend = np.all(np.diff(thresholds) < 0.0)
            thresholds = thresholds - self._base if descend else 0.0 * thresholds
        return coef[-self.n_thresholds :][:1], thresholds

    def outward(self, coef: Any, intercept: Any) -> Pair:
        thresholds = np.broadcast_to(intercept, self.n_thresholds)
        thresholds = thresholds if self._base is None else thresholds + self._base
        sums = np.cumsum(np.append(0.0, thresholds))[self._numbers]
        return np.multiply.outer(self._numbers, coef[0]), sums


class FewDigits:
    """Coefficients rounded to so few digits that their multiples are stored exactly.

    Differences between neighboring classes are then all equal.

    Parameters
    ----------
    dtype : dtype
        Type in which the multiples are stored.
    most : int
        The largest multiple.
    """

    def __init__(self, dtype: Any, most: int) -> None:
        fewer = most.bit_length() if most > 2 else 0
        self._digits = np.finfo(dtype).nmant + 1 - fewer

    def inward(self, coef: Any, intercept: Any) -> Pair:
        return coef, intercept

    def outward(self, coef: Any, intercept: Any) -> Pair:
        fraction, exponent = np.frexp(coef)
        whole = np.rint(np.ldexp(fraction, self._digits))
        return np.ldexp(whole, exponent - self._digits), intercept


class Stored:
    """Coefficients in the dtype and bounds of the user, with matching intercepts.

    Intercepts are computed for unshifted features, from the rounded coefficients.

    Parameters
    ----------
    dtype : dtype
    bounds : tuple of ndarray, optional
        Smallest and largest coefficients, each of shape (d,).
    moved : Moved, optional

    Attributes
    ----------
    dtype : dtype
    is_plain : bool
        Whether each number is rounded separately.
    """

    def __init__(
        self,
        dtype: Any,
        bounds: tuple[Floats, Floats] | None = None,
        moved: Moved | None = None,
    ) -> None:
        self.dtype, self._moved = dtype, moved
        self.is_plain = bounds is None and moved is None
        # The bounds are rounded inward, so that rounded coefficients cannot violate
        # them.
        self._ends = bounds and [_towards_zero(bound, dtype) for bound in bounds]

    def inward(self, coef: Any, intercept: Any) -> Pair:
        if self._moved is not None:
            coef, intercept = self._moved.inward(coef, intercept)
        return coef.astype(np.float64), intercept.astype(np.float64)

    def outward(self, coef: Any, intercept: Any) -> Pair:
        coef = np.asarray(coef, dtype=self.dtype, order="C")
        if self._ends is not None:
            coef = np.clip(coef, *self._ends)
        if self._moved is not None:
            coef, intercept = self._moved.outward(coef, intercept)
        return coef, intercept.astype(self.dtype)


def _towards_zero(numbers: Floats, dtype: Any) -> Array:
    """Return numbers rounded toward zero."""
    rounded = numbers.astype(dtype)
    larger = np.abs(rounded) > np.abs(numbers)
    return np.where(larger, np.nextafter(rounded, np.zeros_like(rounded)), rounded)


class Coordinates:
    """The maps from a solver's parameters to a user's coefficients, and back.

    Parameters
    ----------
    inner : sequence of Map
        From the solver to the numbers that will be rounded.
    stored : Stored
        The rounding to the stored numbers.
    outer : sequence of Map
        From the stored numbers to the user.
    projects : bool
        Whether inverses of the inner maps recover the solution. Otherwise only the
        rounding error is mapped back to the solver's parameters.

    Attributes
    ----------
    is_plain : bool
        Whether each number is rounded separately.
    """

    def __init__(
        self,
        inner: Sequence[Map],
        stored: Stored,
        outer: Sequence[Map],
        *,
        projects: bool = True,
    ) -> None:
        self._inner, self._stored, self._projects = inner, stored, projects
        self._maps = *inner, stored, *outer
        self.is_plain = stored.is_plain and not inner

    def inward(self, coef: Any, intercept: Any) -> Pair:
        """Return the solver's representation."""
        return _inward(self._maps, coef, intercept)

    def outward(self, coef: Any, intercept: Any) -> Pair:
        """Return the user's representation."""
        for each in self._maps:
            coef, intercept = each.outward(coef, intercept)
        return coef, intercept

    def rounded(self, coef: Any, intercept: Any) -> Pair:
        """Return the solver's representation of the rounded coefficients."""
        read = coef, intercept
        for each in self._inner:
            read = each.outward(*read)
        stored = self._stored.inward(*self._stored.outward(*read))
        if self._projects:
            return _inward(self._inner, *stored)
        lost = (a - b for a, b in zip(stored, read, strict=True))
        less, lower = _inward(self._inner, *lost)
        return coef + less, intercept + lower


def _inward(maps: Sequence[Map], coef: Any, intercept: Any) -> Pair:
    for each in reversed(maps):
        coef, intercept = each.inward(coef, intercept)
    return coef, intercept

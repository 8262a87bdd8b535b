"""Sums over pairs of rows that violate a margin, and their second derivatives."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..lazy import cached_property
from ..memory import COPY_SIZE
from ..rounding import running_rounding
from ._base import Derivatives, Floats, Rows
from ._curvature import CoupledCurvature, crossed_by_columns
from ._pairs import RowPairs, Sorted, Window


class PairSums:
    """Sums over pairs of a function of their violations, at some scores.

    Parameters
    ----------
    pairs : RowPairs
    scores : ndarray of shape (n,)
    window : Window
    """

    def __init__(self, pairs: RowPairs, scores: Floats, window: Window) -> None:
        self._pairs, self._window = pairs, window
        self._sorted = pairs.sort(scores)
        self.rounding = running_rounding(len(scores))

    @cached_property
    def _moments(self) -> list[tuple[Floats, Floats]]:
        """Sums of 1, m and m² over the partners of each row, by parts of the window."""
        margins = [margin for margin, _ in self._window.squares]
        return [self._sorted.moments(margin) for margin in margins]

    def totals(self, power: int) -> Floats:
        """Return sums of a power of m over all pairs, for each part of the window."""
        factors = self._pairs.factors
        return np.array([lower[power] @ factors for lower, _ in self._moments])

    def differences(self, power: int) -> Floats:
        """Return each row's difference of sums of a power of m, for the first part.

        It is the sum over pairs with the row as the lower one, minus the sum over pairs
        with the row as the higher one.
        """
        lower, higher = self._moments[0]
        return self._pairs.factors * (lower[power] - higher[power])

    def sizes(self, power: int) -> Floats:
        """Return the sums of the absolute terms of ``differences``."""
        lower, higher = self._moments[0]
        return self._pairs.factors * (lower[power] + higher[power])

    @property
    def value(self) -> float:
        """The sum of the function over all pairs."""
        return float(self._coefs @ self.totals(2))

    @property
    def _coefs(self) -> Floats:
        return np.array([coef for _, coef in self._window.squares])

    @property
    def conjugate(self) -> tuple[float, float]:
        """R*(u) for the gradient u, and the sum of the absolute values of its terms."""
        margins = np.array([margin for margin, _ in self._window.squares])
        m1, m2 = self.totals(1), self.totals(2)
        size = np.abs(self._coefs) @ (m2 + 2.0 * np.abs(margins) * m1)
        return float(self._coefs @ (m2 - 2.0 * margins * m1)), float(size)

    @cached_property
    def gradient(self) -> Floats:
        u = np.zeros(len(self._pairs))
        for coef, (lower, higher) in zip(self._coefs, self._moments, strict=True):
            u += 2.0 * coef * (lower[1] - higher[1])
        u *= self._pairs.factors
        return u

    @property
    def slopes(self) -> tuple[float, float]:
        """The sum of the function's slopes, and the sum of the absolute terms."""
        slopes = 2.0 * self._coefs * self.totals(1)
        return float(slopes.sum()), float(np.abs(slopes).sum())

    @property
    def slope_sizes(self) -> Floats:
        """Sums of the absolute terms of the gradient, of shape (n,).

        In m = margin + z_i - z_j the difference of scores is at most m plus the margin.
        """
        sizes = np.zeros(len(self._pairs))
        terms = zip(self._window.squares, self._moments, strict=True)
        for (margin, coef), (lower, higher) in terms:
            both = lower + higher
            sizes += 2.0 * abs(coef) * (both[1] + abs(margin) * both[0])
        sizes *= self._pairs.factors
        return sizes

    @property
    def curvature(self) -> PairCurvature:
        """Generalized second derivatives, zero for pairs exactly on a margin."""
        both = np.zeros(len(self._pairs)), np.zeros(len(self._pairs))
        for coef, moments in zip(self._coefs, self._moments, strict=True):
            for total, sums in zip(both, moments, strict=True):
                total += 2.0 * coef * sums[0]
        for total in both:
            # Differences of sums are non-negative up to rounding.
            np.maximum(total, 0.0, out=total)
            total *= self._pairs.factors
        return PairCurvature(self._sorted, self._window, both)


def derivatives(
    pairs: RowPairs, scores: Floats, dscores: Floats, window: Window
) -> Derivatives:
    """Return slope and curvature of the sum over all pairs along a line."""

    def at(step: float) -> tuple[float, float]:
        there = pairs.sort(scores + step * dscores)
        total = np.zeros(2)
        for margin, coef in window.squares:
            total += 2.0 * coef * np.array(there.slope(dscores, margin))
        return float(total[0]), max(float(total[1]), 0.0)

    return at


class PairCurvature(CoupledCurvature):
    """Second derivatives of a sum over pairs: a Laplacian of the graph of the pairs.

    The product with v is a_i v_i - sum_j P_ij v_j for the weights P_ij of pairs and
    their sums a_i.

    Parameters
    ----------
    rows : Sorted
    window : Window
    sums : pair of ndarrays of shape (n,)
        Sums of the weights of a row's pairs, as the lower and as the higher one.
    """

    def __init__(
        self, rows: Sorted, window: Window, sums: tuple[Floats, Floats]
    ) -> None:
        self._rows, self._window, self._sums = rows, window, sums

    def diagonal(self) -> Floats:
        lower, higher = self._sums
        return lower + higher

    def apply(self, dscores: Floats) -> Floats:
        product = self.diagonal() * dscores
        places = np.arange(len(dscores))
        for higher in (False, True):
            product -= self._partners(dscores[:, np.newaxis], higher, places)[:, 0]
        return product

    def _partners(self, V: Floats, higher: bool, rows: Rows) -> Floats:
        """Return the sums of P_ij v_j for the given rows i, of shape (p, w)."""
        out = np.zeros((len(rows), V.shape[1]))
        places = np.full(len(V), -1, dtype=np.intp)
        places[rows] = np.arange(len(rows))
        self._rows.products(V, self._window, higher, places, out)
        out *= self._rows.pairs.factors[rows, np.newaxis]
        return out

    def crossed(self, design: Any) -> Floats:
        """Return the sum of P_ij x_i x_jᵀ over all pairs, each counted once."""
        X = design.X
        # The sums run over the side of the pairs with fewer rows.
        used = [sums > 0.0 for sums in self._sums]
        higher = bool(np.count_nonzero(used[1]) < np.count_nonzero(used[0]))
        d = X.shape[1]
        if design.is_sparse and X.indptr.dtype == np.int32:
            matrix = np.zeros((d, d))
            factors = np.where(used[higher], self._rows.pairs.factors, 0.0)
            self._rows.crossed(X, factors, self._window, higher, matrix)
            return matrix
        rows = np.flatnonzero(used[higher])
        # Rows of partners are copied too, unless all columns are in one block.
        size = d * max(len(rows), len(self._sums[0]) // 2)
        width = max(1, -(-d // max(1, round(size / COPY_SIZE))))
        partners = partial(self._partners, higher=higher, rows=rows)
        return crossed_by_columns(design, rows, width, partners)

"""The metric of "auto": inverse curvature of centered features, plus pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from ..kernels import own_columns
from ..lazy import cached_property
from ..losses._base import Floats
from ..records import stored
from .batch import LinearBatch


@stored
@dataclass(frozen=True)
class Moments:
    """Sums of h, h x and h x² over all rows so far; h is the curvature of the loss.

    Attributes
    ----------
    n_rows : float
    h : ndarray of shape (k,)
    hx, hxx : ndarray of shape (c,)
    present : ndarray of shape (c,) or None
        With an L1 penalty, the sum of h over the rows with non-zero x.
    n_batches : int
        Number of batches so far.
    """

    n_rows: float
    h: Floats
    hx: Floats
    hxx: Floats
    present: Floats | None = None
    n_batches: int = 1

    @property
    def curvature(self) -> Floats:
        """The sum of h for each score, one where this sum is zero."""
        return self.h if self.h.all() else np.where(self.h > 0.0, self.h, 1.0)


@stored
@dataclass(frozen=True)
class Metric:
    """A preconditioner: an inverse diagonal in centered coordinates, plus low rank.

    Attributes
    ----------
    center : ndarray of shape (c,)
        Means of the features, weighted by curvature; zero without intercepts.
    scale : ndarray of shape (c,)
        Inverse curvature of coefficients; zero for features without entries so far.
    free : ndarray of shape (k,)
        Inverse curvature of the intercepts.
    n_rows : float
        Number of rows in the moments of the metric.
    factor : float
        Multiple of the diagonal matrix (5.18).
    rows, middle : ndarray of shape (2 m, q), (2 m, 2 m)
        Factors U and N of the low rank part Uᵀ N U (Byrd, Nocedal and Schnabel 1994,
        eq. 2.6).
    """

    center: Floats
    scale: Floats
    free: Floats
    n_rows: float = 0.0
    factor: float = 1.0
    rows: Floats | None = None
    middle: Floats | None = None

    def apply(self, g: Floats) -> Floats:
        """Return the product with g of shape (q,)."""
        p = self.diagonal(g)
        if self.rows is not None and self.middle is not None:
            p *= self.factor
            p += (self.middle @ (self.rows @ g)) @ self.rows
        return p

    def diagonal(self, g: Floats) -> Floats:
        """Return the product of the diagonal part with g."""
        p = np.empty_like(g)
        own_columns.precondition(self.center, self.scale, self.free, g, p)
        return p

    def root(self, p: Floats) -> Floats:
        """Return v with <v, v> = <g, p> for p = diagonal(g)."""
        c = len(self.scale)
        v = p.copy()
        v[:c] /= self._roots
        if len(p) > c:
            v[c:] += self._at_center(p[:c])
            v[c:] /= np.sqrt(self.free)
        return v

    def _at_center(self, coef: Floats) -> Floats:
        """Return the scores of a row at the center, without intercepts."""
        return (self.center * coef).reshape(-1, len(self.free)).sum(axis=0)

    @cached_property
    def _roots(self) -> Floats:
        return np.sqrt(np.where(self.scale > 0.0, self.scale, 1.0))

    def times(self, factor: float) -> Metric:
        """Return the diagonal part multiplied by ``factor``."""
        return replace(
            self, scale=factor * self.scale, free=factor * self.free, rows=None
        )

    def proximal(self, w: Floats, g: Floats, l1: float) -> Floats:
        """Return the proximal step argmin_p <g, p> + l1 ||w + p||_1 + |p|² / 2.

        |p| is the norm of the diagonal metric. With the intercept at the center of the
        features, the problem separates into one for each coefficient.
        """
        c = len(self.scale)
        p = self.diagonal(-g)
        target = w[:c] + p[:c]
        target -= np.clip(target, -l1 * self.scale, l1 * self.scale)
        p[:c] = target - w[:c]
        if len(g) > c:
            p[c:] = -g[c:] * self.free - self._at_center(p[:c])
        return p

    def model(self, mean: Floats, smooth: Floats, l1: float) -> Floats:
        """Return the mean iterate, with coefficients set to zero where zero is optimal.

        The optimality conditions are at the averaged gradient ``smooth``. Scores at the
        center do not change.
        """
        c = len(self.scale)
        v = mean.copy()
        v[:c][(mean + self.proximal(mean, smooth, l1))[:c] == 0.0] = 0.0
        if len(v) > c:
            v[c:] += self._at_center(mean[:c] - v[:c])
        return v

    def with_pairs(self, dw: Floats, dg: Floats) -> Metric:
        """Return the metric updated by m curvature pairs, oldest first."""
        h_dg = np.array([self.diagonal(row) for row in dg])
        products = dw @ dg.T
        curvature = products.diagonal()
        squares = dg @ h_dg.T
        factor = float(np.mean(curvature / squares.diagonal()))
        m = len(dw)
        inverse = linalg.solve_triangular(
            np.triu(products), np.eye(m), check_finite=False
        )
        middle = np.zeros((2 * m, 2 * m))
        middle[:m, :m] = inverse.T @ (np.diag(curvature) + factor * squares) @ inverse
        middle[:m, m:], middle[m:, :m] = -inverse.T, -inverse
        rows = np.concatenate([dw, factor * h_dg])
        return replace(self, factor=factor, rows=rows, middle=middle)


def add_moments(
    batch: LinearBatch, h: Floats, old: Moments | None, overwrites: bool = False
) -> Moments:
    """Add a batch of curvature h to moments; ``overwrites`` reuses their arrays.

    Entries are counted only with an L1 penalty. All features of earlier rows count as
    nonzero.
    """
    n, c = float(batch.n_rows), batch.n_coef
    h = n * h
    total = np.atleast_1d(h.sum(axis=0))
    if old is None:
        old = Moments(0.0, 0.0 * total, np.zeros(c), np.zeros(c), n_batches=0)
    elif not overwrites:
        present = None if old.present is None else old.present.copy()
        old = replace(old, hx=old.hx.copy(), hxx=old.hxx.copy(), present=present)
    present = None
    if batch.penalty.l1:
        present = np.resize(old.h, c) if old.present is None else old.present
        batch.adjoint(h, present, 0)
    return Moments(
        old.n_rows + n,
        old.h + total,
        batch.adjoint(h, old.hx),
        batch.adjoint(h, old.hxx, 2),
        present,
        old.n_batches + 1,
    )


def make_metric(
    moments: Moments, centered: bool, l2: float, least_share: float = 0.0
) -> Metric:
    """Return the metric for given moments, without curvature pairs.

    Centers are the curvature-weighted means of features. They are zero where the
    squared mean is at most ``least_share`` of the mean square. If ``present`` is given,
    the curvature of a feature with less than one entry per batch on average is raised
    to one entry per batch.
    """
    h = moments.curvature
    center, scale = np.empty_like(moments.hx), np.empty_like(moments.hx)
    own_columns.metric(
        h,
        moments.hx,
        moments.hxx,
        moments.present,
        moments.n_rows,
        moments.n_batches,
        l2,
        least_share,
        centered,
        center,
        scale,
    )
    return Metric(center, scale, moments.n_rows / h, moments.n_rows)

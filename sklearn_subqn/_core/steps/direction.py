"""Quasi-Newton descent directions at kinks (Yu 2009, Alg. 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ..losses._base import Floats


class Multiplies(Protocol):
    """A positive definite matrix B that is given by products."""

    def apply(self, v: Floats) -> Floats: ...


class HasOracle(Protocol):
    """A point with a subgradient and the oracle argsup <g, p>."""

    @property
    def gradient(self) -> Floats: ...

    def steepest(self, p: Floats) -> Floats: ...


@dataclass(frozen=True)
class Direction:
    """Result of the search for a descent direction.

    Attributes
    ----------
    p : ndarray of shape (q,)
        The direction with the smallest model value M(p) found.
    slope : float
        sup <g, p> over the subdifferential, the directional derivative along p.
    aggregate : ndarray of shape (q,)
        The last convex combination of subgradients (A.13), itself a subgradient.
    n_iter : int
        Number of iterations, zero if the first direction is a descent direction.
    gap : float
        The bound (3.15) on the gap of the direction-finding problem. It gives no bound
        on the gap of w.
    """

    p: Floats
    slope: float
    aggregate: Floats
    n_iter: int
    gap: float

    @property
    def descends(self) -> bool:
        """Whether p is a descent direction (3.10); otherwise the search failed."""
        return self.slope < 0.0


def descent_direction(
    point: HasOracle, hessian: Multiplies, tol: float, max_iter: int
) -> Direction:
    """Minimize M(p) = <p, B⁻¹ p> / 2 + sup <g, p> approximately (Yu 2009, Alg. 3.2).

    Starting from the subgradient ``point.gradient``, violating subgradients from the
    oracle are mixed into an aggregate ḡ with the weight that maximizes the dual (A.15),
    and p = -B ḡ follows (A.18).

    Parameters
    ----------
    point : Point
        Offers ``gradient`` and ``steepest``.
    hessian : Multiplies
        B.
    tol : float
        Tolerance epsilon >= 0 on the gap (3.15).
    max_iter : int
        Limit k_max on the number of iterations, positive.

    Returns
    -------
    Direction

    Notes
    -----
    The condition in the source stops the loop at a gap of zero for any slope. A
    negative gap, which is a rounding error, is treated as zero. The gap of line 11
    pairs the best model value so far, M(p) = <p, g> - <p, ḡ> / 2 (A.33), with the
    newest dual value <p, ḡ> / 2 (A.34).
    """
    aggregate = point.gradient
    p = -hessian.apply(aggregate)
    violating = point.steepest(p)
    slope, dual = float(violating @ p), 0.5 * float(aggregate @ p)
    best_p, best_slope, best_model = p, slope, slope - dual
    gap = best_model - dual
    n_iter = 0
    while (slope > 0.0 or gap > tol) and gap > 0.0 and n_iter < max_iter - 1:
        b_violating = hessian.apply(violating)
        # (A.43), with numerator and denominator from inner products with p = -B ḡ.
        numerator = slope - 2.0 * dual
        denominator = float(violating @ b_violating) + 2.0 * slope - 2.0 * dual
        if not denominator > 0.0:
            break
        mu = min(1.0, max(0.0, numerator / denominator))
        aggregate = (1.0 - mu) * aggregate + mu * violating
        p = (1.0 - mu) * p - mu * b_violating
        violating = point.steepest(p)
        slope, dual = float(violating @ p), 0.5 * float(aggregate @ p)
        if slope - dual < best_model:
            best_p, best_slope, best_model = p, slope, slope - dual
        gap = best_model - dual
        n_iter += 1
    return Direction(best_p, best_slope, aggregate, n_iter, gap)

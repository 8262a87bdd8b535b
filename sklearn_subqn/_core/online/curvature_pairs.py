"""Consistent measurements of curvature, which the quasi-Newton methods share."""

from __future__ import annotations

from ..losses._base import Floats
from ..steps.quasi_newton import Pair, has_curvature
from .method import Batch, check_finite


def consistent_pair(
    batch: Batch, w: Floats, gradient: Floats, new_w: Floats, lambda_: float
) -> Pair | None:
    """Return dw and the change of the batch's gradient along it plus lambda_ * dw.

    Yu 2009, Alg. 5.1, line 10; ``gradient`` is that of the same batch at w. ``None``
    stands for no curvature to learn from: where that algorithm would divide by zero,
    since (5.12) is no strict inequality, the methods keep the curvature they have.

    Raises
    ------
    FloatingPointError
        If the gradient at ``new_w`` is not finite.
    """
    dw = new_w - w
    dg = batch.gradient(new_w) - gradient
    dg += lambda_ * dw
    check_finite("the gradient of the batch", dg)
    return pair_of(dw, dg)


def pair_of(dw: Floats, dg: Floats) -> Pair | None:
    """Return the pair, or None if its curvature is not positive or underflows."""
    return Pair(dw, dg, float(dw @ dg)) if has_curvature(dw, dg) else None

"""Consistent measurements of curvature, which the quasi-Newton methods share."""

from __future__ import annotations

from typing import Any

from ..losses._base import Floats
from ..options import option
from ..steps.quasi_newton import Pair, has_curvature
from .method import Batch, check_finite


def damping_of_pairs() -> Any:
    """Return the field of the share of gradients in pairs."""
    return option(
        "share α of the change of gradients in a damped pair (Yu 2009, eq. 5.15)",
        1.0,
        low=0.0,
        low_included=False,
        high=1.0,
    )


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


def damped_pair(
    batch: Batch,
    w: Floats,
    gradient: Floats,
    new_w: Floats,
    lambda_: float,
    damping: float,
    length: float,
) -> Pair | None:
    """Return ``consistent_pair`` with a share of B⁻¹ dw in the change (Yu 2009, 5.15).

    The step dw was ``length`` times -B g, so that B⁻¹ dw is -``length`` * g. The change
    of gradients has the share ``damping``, in (0, 1].
    """
    if damping == 1.0:
        return consistent_pair(batch, w, gradient, new_w, lambda_)
    dg = batch.gradient(new_w) - gradient
    check_finite("the gradient of the batch", dg)
    dw = new_w - w
    dg = damping * dg - (1.0 - damping) * length * gradient
    return pair_of(dw, dg + lambda_ * dw)


def pair_of(dw: Floats, dg: Floats) -> Pair | None:
    """Return the pair, or None if its curvature is not positive or underflows."""
    return Pair(dw, dg, float(dw @ dg)) if has_curvature(dw, dg) else None

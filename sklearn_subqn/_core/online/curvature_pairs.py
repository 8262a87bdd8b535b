"""Curvature pairs of online quasi-Newton methods, from gradients on the same batch."""

from __future__ import annotations

from typing import Any

from ..losses._base import Floats
from ..options import option
from ..steps.quasi_newton import Pair, has_curvature
from .method import Batch, check_finite


def damping_of_pairs() -> Any:
    """Return the dataclass field of the damping of pairs."""
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
    """Return dw with the change of the batch's gradient plus lambda_ * dw.

    Yu 2009, Alg. 5.1, line 10; ``gradient`` is the gradient of the same batch at w. The
    result is ``None`` if <dw, dg> is not positive, which (5.12) does not exclude and
    for which the algorithm divides by zero. Methods then keep their previous curvature.

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
    """Return ``consistent_pair`` damped by a multiple of B⁻¹ dw (Yu 2009, eq. 5.15).

    The step is dw = -``length`` * B g, so B⁻¹ dw = -``length`` * g. The change of the
    gradient has the weight ``damping``, in (0, 1].
    """
    if damping == 1.0:
        return consistent_pair(batch, w, gradient, new_w, lambda_)
    dg = batch.gradient(new_w) - gradient
    check_finite("the gradient of the batch", dg)
    dw = new_w - w
    dg = damping * dg - (1.0 - damping) * length * gradient
    return pair_of(dw, dg + lambda_ * dw)


def pair_of(dw: Floats, dg: Floats) -> Pair | None:
    """Return the pair, or None if <dw, dg> is not positive or underflows."""
    return Pair(dw, dg, float(dw @ dg)) if has_curvature(dw, dg) else None

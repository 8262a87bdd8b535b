"""Linear lower bounds of a risk, and the dual points that they are made of."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..losses._base import Floats
from ..rounding import rounding
from .risk import Risk


class Cut(NamedTuple):
    """A linear lower bound of the risk: R(w) >= <a, w> + offset for every w.

    The exact normal a is known up to rounding: each |a_j - normal_j| is at most
    ``error``, and |a_j| at most ``norm``, times the root mean square of the column
    (``Objective.column_sizes``). Where the normal is zero in free parameters, a is so
    exactly.
    """

    normal: Floats
    offset: float
    error: float = 0.0
    norm: float = 0.0

    def is_balanced(self, n_penalized: int) -> bool:
        """Whether the bound does not depend on the free parameters."""
        return not self.normal[n_penalized:].any()

    @classmethod
    def mixed(cls, shares: Floats, normals: Floats, others: Floats) -> Cut:
        """Return the combination of cuts whose shares sum to one, up to rounding.

        Parameters
        ----------
        shares : ndarray of shape (m,)
        normals : ndarray of shape (m, q)
        others : ndarray of shape (m, 3)
            Offsets, errors and norms.
        """
        offset, error, norm = (float(x) for x in shares @ others)
        share = rounding(len(shares))
        offset -= share * float(shares @ np.abs(others[:, 0]))
        return cls(shares @ normals, offset, error + share * norm, norm)


class Dual(NamedTuple):
    """A dual point u of the risk, and what is known of it.

    Mixtures of dual points are dual points, of no larger R* than the mixture of theirs.

    Attributes
    ----------
    u : ndarray of the shape of the scores, or what the risk has for it
        In the domain of R* up to rounding.
    normal : ndarray of shape (q,), optional
        Xᵀu.
    offset : float, optional
        -R*(u) where the loss knows it at the scores of u only, less its rounding
        errors; or that of a mixture.
    error : float
        Further errors of ``normal``, in units of ``column_sizes``.
    norm : float, optional
        The root of sum_i u_i² / s_i.
    imbalance : float, optional
        The share by which u has to change for its columns to sum to zero, as free
        intercepts ask for.
    """

    u: Any
    normal: Floats | None = None
    offset: float | None = None
    error: float = 0.0
    norm: float | None = None
    imbalance: float | None = None

    @classmethod
    def mixed(cls, risk: Risk, share: float, one: Dual, other: Dual) -> Dual:
        """Return (1 - share) * one + share * other, of known offsets."""
        assert one.offset is not None, "known"
        assert other.offset is not None, "known"
        offsets = np.array([one.offset, other.offset])
        shares = np.array([1.0 - share, share])
        offset = float(shares @ offsets)
        offset -= rounding(2.0) * float(shares @ np.abs(offsets))
        u = risk.moved(risk.scaled(1.0 - share, one.u), share, other.u)
        return cls(u, offset=offset)

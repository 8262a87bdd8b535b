"""Entropy penalties on non-negative parameters."""

from __future__ import annotations

import numpy as np

from ..losses._base import Floats
from ..rounding import ROUNDED_32, TINY, rounding
from ._regularizer import Regularizer


class EntropyPenalty(Regularizer):
    """Omega(w) = sum_i w_i ln w_i - w_i for w >= 0, unnormalized negative entropy.

    The source (section 2.3) omits the linear term, but gives the conjugate sum_i
    exp(v_i), which requires this term.
    """

    smooth = True
    has_lines = False

    def value(self, w: Floats) -> float:
        w = w[: self.n_penalized]
        return float(np.sum(_times_log(w) - w)) if np.all(w >= 0.0) else np.inf

    def gradient(self, w: Floats) -> Floats:
        return self._padded(_log(w[: self.n_penalized]), len(w))

    def conjugate(self, v: Floats) -> float:
        with np.errstate(over="ignore"):
            return float(np.exp(v[: self.n_penalized]).sum())

    def conjugate_within(self, v: Floats, radius: Floats) -> float:
        return self.conjugate(v + radius)

    def conjugate_gradient(self, v: Floats) -> Floats:
        return self._padded(np.exp(v[: self.n_penalized]), len(v))

    def conjugate_gram(self, v: Floats, normals: Floats) -> Floats:
        A = normals[:, : self.n_penalized]
        return (A * np.exp(v[: self.n_penalized])) @ A.T

    def center(self, n_params: int) -> Floats:
        """Return the minimizer of Omega."""
        return self.conjugate_gradient(np.zeros(n_params))

    def contains(self, w: Floats) -> bool:
        return bool(np.all(w[: self.n_penalized] >= 0.0))

    def longest_step(self, w: Floats, p: Floats) -> float:
        w, p = w[: self.n_penalized], p[: self.n_penalized]
        falling = p < 0.0
        return float(np.min(w[falling] / -p[falling], initial=np.inf))


class NormalizedEntropy(EntropyPenalty):
    """Omega(w) = sum_i w_i ln w_i for w on the unit simplex (section 2.3)."""

    def value(self, w: Floats) -> float:
        w = w[: self.n_penalized]
        return float(np.sum(_times_log(w))) if np.all(w >= 0.0) else np.inf

    def contains(self, w: Floats) -> bool:
        off = abs(float(w[: self.n_penalized].sum()) - 1.0)
        return super().contains(w) and off <= ROUNDED_32

    def nearest(self, w: Floats) -> Floats:
        """Return w rescaled to the sum one."""
        inside = w.copy()
        inside[: self.n_penalized] /= w[: self.n_penalized].sum()
        return inside

    def longest_step(self, w: Floats, p: Floats) -> float:
        # The sum of p is zero up to rounding errors. For steps longer than one, the
        # limit keeps the drift of the sum of w within its rounding error.
        drift = abs(float(p[: self.n_penalized].sum()))
        longest = super().longest_step(w, p)
        return (
            min(longest, max(rounding(self.n_penalized) / drift, 1.0))
            if drift
            else longest
        )

    def conjugate(self, v: Floats) -> float:
        """Return ln sum_i exp(v_i)."""
        u = v[: self.n_penalized]
        largest = float(u.max())
        return largest + float(np.log(np.sum(np.exp(u - largest))))

    def conjugate_gradient(self, v: Floats) -> Floats:
        w = np.exp(v[: self.n_penalized] - v[: self.n_penalized].max())
        return self._padded(w / w.sum(), len(v))

    def conjugate_gram(self, v: Floats, normals: Floats) -> Floats:
        A, w = normals[:, : self.n_penalized], self.conjugate_gradient(v)
        w = w[: self.n_penalized]
        mean = A @ w
        return (A * w) @ A.T - np.multiply.outer(mean, mean)


def _log(w: Floats) -> Floats:
    """Return ln w, with a finite value at w = 0."""
    return np.log(np.maximum(w, TINY))


def _times_log(w: Floats) -> Floats:
    return w * _log(w)

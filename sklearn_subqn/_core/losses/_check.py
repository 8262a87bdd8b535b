"""Checks of a user's loss against the properties that solvers rely on."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..rounding import CLOSE
from ._base import Floats
from ._curvature import as_curvature
from ._dual_loss import DualLoss
from ._loss import Loss, offers
from ._own import OwnLoss

# Step size of difference quotients, relative to max(1, |score|).
_STEP = 1e-5

# Largest relative difference of derivatives and difference quotients.
_NEAR = 1e-3

# Largest number of descent steps that search for a value below the infimum.
_N_DESCENTS = 100

# Second derivatives are checked if one-sided difference quotients agree to 10 %.
_NO_KINK = 0.1


class LossChecks:
    """Checks of one loss, each of which raises a ``ValueError``.

    Parameters
    ----------
    oracle : Loss
    targets : ndarray
    weights : ndarray of shape (n,)
    rng : Generator
    """

    def __init__(
        self, oracle: Loss, targets: Any, weights: Floats, rng: np.random.Generator
    ) -> None:
        self._loss, self._name = oracle, type(oracle).__name__
        self._targets, self._weights, self._rng = targets, weights, rng

    def at(self, z: Floats, other: Floats, p: Floats) -> None:
        """Check all members at two vectors of scores and along a direction."""
        self._values(z)
        self._least(z)
        self._pair(z, other)
        self._slopes(z)
        self._promises(z)
        loss = self._loss
        if offers(loss, "conjugate"):
            self._conjugate(z, other)
        if offers(loss, "restrict"):
            self._restriction(z, p)
        if offers(loss, "derivatives"):
            self._derivatives(z, p)
        if offers(loss, "curvature"):
            self._curvature(z, p)
        if offers(loss, "dual_variables", "neutral_variables", "envelope"):
            self._envelope(z, other)

    def _value(self, z: Floats) -> float:
        return float(self._loss.value(z, self._targets, self._weights))

    def _dual(self, z: Floats) -> Floats:
        return np.asarray(self._loss.subgradient(z, self._targets, self._weights))

    def _fail(self, what: str, z: Floats, values: str) -> None:
        raise ValueError(
            f"{self._name}.{what}: {values}, at the scores {_shown(z)} with the "
            f"targets {_shown(self._targets)} and weights {_shown(self._weights)}."
        )

    def _values(self, z: Floats) -> None:
        """Check types, shapes, finiteness, and that arguments are unchanged."""
        shield = OwnLoss(self._loss)
        shield.invariant = False
        args = self._targets, self._weights
        value, dual = shield.value(z, *args), self._dual(z)
        pair = shield.evaluate(z, *args)
        if not _same(pair[0], value) or not np.allclose(pair[1], dual, rtol=CLOSE):
            self._fail(
                "evaluate is wrong",
                z,
                f"it returns the value {pair[0]:.9g} where value returns {value:.9g}, "
                "or another subgradient than subgradient does",
            )

    def _least(self, z: Floats) -> None:
        """Check that subgradient descent finds no value below the stated infimum.

        Polyak's (1969) steps towards the infimum, lengthened by one half, reach any
        level set with an interior point after finitely many steps.
        """
        infimum = self._loss.infimum
        if infimum == -np.inf or offers(self._loss, "conjugate"):
            return
        for _ in range(_N_DESCENTS):
            value = self._value(z)
            size = abs(infimum) + float(np.abs(z).max())
            if value < infimum - CLOSE * size:
                self._fail(
                    "infimum is wrong",
                    z,
                    f"the value {value:.9g} is below {infimum:.9g}",
                )
            u = self._dual(z)
            squares = float(np.vdot(u, u))
            if value <= infimum or squares <= CLOSE**2:
                return
            z = z - 1.5 * (value - infimum) / squares * u

    def _pair(self, z: Floats, other: Floats) -> None:
        """Check the subgradient inequality, and convexity between two points."""
        for a, b in ((z, other), (other, z), (z, z + 1e-3 * other)):
            fa, fb, u = self._value(a), self._value(b), self._dual(a)
            bound = fa + float(np.vdot(u, b - a))
            size = abs(fa) + abs(fb) + float(np.vdot(np.abs(u), np.abs(a) + np.abs(b)))
            share = float(self._rng.uniform())
            between = self._value(a + share * (b - a))
            chord = fa + share * (fb - fa)
            if between > chord + CLOSE * size:
                self._fail(
                    "value is not convex",
                    a,
                    f"on the way to {_shown(b)}, after the share {share:.6g} of it, "
                    f"the value {between:.9g} exceeds {chord:.9g} of the chord",
                )
            if fb < bound - CLOSE * size:
                self._fail(
                    "subgradient is wrong",
                    a,
                    f"by the value {fa:.9g} and the subgradient {_shown(u)} no value "
                    f"at {_shown(b)} is below {bound:.9g}, but that is {fb:.9g}",
                )

    def _slopes(self, z: Floats) -> None:
        """Check that entries of u lie between one-sided difference quotients."""
        u, f = self._dual(z), self._value(z)
        flat = int(self._rng.integers(z.size))
        place = np.unravel_index(flat, z.shape)
        e = np.zeros_like(z)
        e[place] = h = _STEP * max(1.0, abs(float(z[place])))
        low, high = (f - self._value(z - e)) / h, (self._value(z + e) - f) / h
        slack = _NEAR * max(abs(low), abs(high)) + CLOSE * (1.0 + abs(f)) / h
        if not low - slack <= u[place] <= high + slack:
            where = place[0] if z.ndim == 1 else tuple(int(i) for i in place)
            self._fail(
                "subgradient is wrong",
                z,
                f"its entry {where} is {u[place]:.9g}, but difference quotients of the "
                f"value are {low:.9g} and {high:.9g}",
            )

    def _promises(self, z: Floats) -> None:
        """Check stated attributes, and that rows of zero weight do not matter."""
        loss, value = self._loss, self._value(z)
        shift = self._rng.normal(size=(len(z), *[1] * (z.ndim - 1)))
        for name, moved in (
            ("invariant", z + shift),
            ("ranks", z + float(shift.ravel()[0])),
        ):
            promised = getattr(loss, name) and (name == "ranks" or z.ndim == 2)
            if promised and not _same(self._value(moved), value, np.abs(z).max()):
                self._fail(
                    f"{name} = True is wrong",
                    z,
                    f"the value {value:.9g} becomes {self._value(moved):.9g} at "
                    f"{_shown(moved)}",
                )
        if len(z) > 1 and not loss.counts_rows:
            weights = self._weights.copy()
            weights[0] = 0.0
            weights /= weights.sum()
            moved = z.copy()
            moved[0] += 1.0
            values = [
                float(loss.value(each, self._targets, weights)) for each in (z, moved)
            ]
            if not _same(*values):
                self._fail(
                    "value is wrong",
                    z,
                    "without weight of the first row it depends on the score of that: "
                    f"{values[0]:.9g} becomes {values[1]:.9g} if it rises by one",
                )

    def _conjugate(self, z: Floats, other: Floats) -> None:
        """Check Fenchel-Young equality at a subgradient, inequality elsewhere."""
        args = self._targets, self._weights
        u, f = self._dual(z), self._value(z)
        got = float(self._loss.conjugate(u.copy(), *args))
        product = float(np.vdot(u, z))
        size = abs(f) + float(np.vdot(np.abs(u), np.abs(z)))
        if not _same(got, product - f, size):
            self._fail(
                "conjugate is wrong",
                z,
                f"at the subgradient u there it is {got:.9g}, but <u, scores> less "
                f"the value is {product - f:.9g}",
            )
        for share in (0.0, 0.5):
            got = float(self._loss.conjugate(share * u, *args))
            for each in (z, other):
                least = share * float(np.vdot(u, each)) - self._value(each)
                size = abs(least) + abs(self._value(each))
                if got < least - CLOSE * size:
                    self._fail(
                        "conjugate is wrong",
                        each,
                        f"of {share} times the subgradient at {_shown(z)} it is "
                        f"{got:.9g}, below <u, scores> less the value, {least:.9g}",
                    )

    def _slope(self, what: str, z: Floats, p: Floats, step: float, got: float) -> None:
        """Check that a slope along a line is between difference quotients."""
        h = _STEP * max(1.0, abs(step))
        f = self._value(z + step * p)
        low = (f - self._value(z + (step - h) * p)) / h
        high = (self._value(z + (step + h) * p) - f) / h
        slack = _NEAR * max(abs(low), abs(high)) + CLOSE * (1.0 + abs(f)) / h
        if not low - slack <= got <= high + slack:
            self._fail(
                f"{what} is wrong",
                z,
                f"along {_shown(p)} the slope at the step {step:.6g} is {got:.9g}, "
                f"but difference quotients are {low:.9g} and {high:.9g}",
            )

    def _restriction(self, z: Floats, p: Floats) -> None:
        """Check slopes of piecewise quadratics, and the steepest duals at kinks."""
        loss, args = self._loss, (self._targets, self._weights)
        line = loss.restrict(z, p, *args)
        for step in (0.0, 0.3, 2.0):
            self._slope("restrict", z, p, step, line.slope_at(step))
        if not len(line.kinks):
            return
        at = z + float(line.kinks.min()) * p
        rows = np.asarray(loss.kink_rows(at, self._targets))
        u = self._dual(at).copy()
        if len(rows):
            few = self._targets[rows], self._weights[rows]
            u[rows] = loss.argsup(at[rows], p[rows], *few)
        got, h = float(np.vdot(u, p)), _STEP
        f = self._value(at)
        high = (self._value(at + h * p) - f) / h
        slack = _NEAR * (1.0 + abs(high)) + CLOSE * (1.0 + abs(f)) / h
        if abs(got - high) > slack:
            self._fail(
                "argsup or kink_rows is wrong",
                at,
                f"on a kink the steepest subgradient along {_shown(p)} has the slope "
                f"{got:.9g}, but the difference quotient is {high:.9g}",
            )

    def _derivatives(self, z: Floats, p: Floats) -> None:
        """Check slopes along a line, and their derivative."""
        line = self._loss.derivatives(z, p, self._targets, self._weights)
        for step in (0.0, 0.3, 2.0):
            slope, got = line(step)
            self._slope("derivatives", z, p, step, slope)
            h = _STEP * max(1.0, step)
            self._second(
                "derivatives",
                z,
                float(got),
                (slope - line(step - h)[0]) / h,
                (line(step + h)[0] - slope) / h,
            )

    def _curvature(self, z: Floats, p: Floats) -> None:
        """Check second derivatives along a direction."""
        found = self._loss.curvature(z, self._targets, self._weights)
        curvature = as_curvature(found, z, self._name)
        got = float(np.vdot(p, curvature.apply(p.copy())))
        h, u = _STEP, self._dual(z)
        low, high = (
            float(np.vdot(self._dual(z + sign * h * p) - u, p)) / (sign * h)
            for sign in (-1.0, 1.0)
        )
        self._second("curvature", z, got, low, high)

    def _second(
        self, what: str, z: Floats, got: float, low: float, high: float
    ) -> None:
        size = max(abs(low), abs(high))
        if abs(high - low) > _NO_KINK * size + _NEAR * _STEP:
            return
        share = max(_NO_KINK, self._loss.curvature_error)
        if abs(got - 0.5 * (low + high)) > share * size + _NEAR:
            self._fail(
                f"{what} is wrong",
                z,
                f"a second derivative along a line is {got:.9g}, but difference "
                f"quotients of slopes are {low:.9g} and {high:.9g}",
            )

    def _envelope(self, z: Floats, other: Floats) -> None:
        """Check that an envelope is below the loss, and convex by its gradients."""
        args = self._targets, self._weights
        center = self._loss.neutral_variables(self._targets)
        width = 0.1
        envelope = DualLoss.of(self._loss).envelope(center, width).oracle
        low, f = float(envelope.value(z, *args)), self._value(z)
        if low > f + CLOSE * (abs(f) + abs(low)):
            self._fail(
                "envelope is wrong",
                z,
                f"of the width {width} it has the value {low:.9g} above {f:.9g}, that "
                "of the loss",
            )
        u = envelope.subgradient(z, *args)
        bound = low + float(np.vdot(u, other - z))
        there = float(envelope.value(other, *args))
        if there < bound - CLOSE * (abs(low) + abs(there) + np.abs(other).max()):
            self._fail(
                "envelope is wrong",
                z,
                f"by its gradient no value at {_shown(other)} is below {bound:.9g}, "
                f"but that is {there:.9g}",
            )


def _same(a: float, b: float, size: float = 0.0) -> bool:
    return bool(abs(a - b) <= CLOSE * (abs(a) + abs(b) + size))


def _shown(array: Any) -> str:
    text = np.array2string(np.asarray(array), precision=6, threshold=12, edgeitems=3)
    return " ".join(text.split())

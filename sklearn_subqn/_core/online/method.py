"""The protocols of online methods: batch, state and step.

A method is an immutable set of hyperparameters. All mutable data are in its state,
which can be pickled. ``step(batch, state)`` returns a new state and never changes the
old one: a failed step leaves the model unchanged, and a stream that continues from a
pickled state gives identical results.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from ..losses._base import Floats
from ..options import option
from ..records import stored


class Batch(Protocol):
    """The objective J(w, X_t) of one batch, regularizer included (Yu 2009, eq. 5.1).

    All calls evaluate the same rows, so differences of gradients have no sampling
    noise: consistent measurements in the sense of section 5.3.3.
    """

    def value_and_gradient(self, w: Floats) -> tuple[float, Floats]:
        """Return J(w, X_t) and its gradient of shape (q,)."""
        ...

    def gradient(self, w: Floats) -> Floats:
        """Return the gradient at w, of shape (q,)."""
        ...

    def hessian_product(self, w: Floats, v: Floats) -> Floats:
        """Return the Hessian at w times v, of shape (q,)."""
        ...


@stored
@dataclass(frozen=True)
class State:
    """State of a method between batches; subclasses add fields.

    Attributes
    ----------
    w : ndarray of shape (q,)
        Parameters.
    n_steps : int
        Number t of batches so far.
    value : float
        Objective of the last batch before its step; nan before the first batch.
    gradient : ndarray of shape (q,)
        Gradient of the last batch, before its step; zero before the first batch.

    Raises
    ------
    FloatingPointError
        If an array or the value is not finite.
    """

    w: Floats
    n_steps: int
    value: float
    gradient: Floats

    def __post_init__(self) -> None:
        if self.n_steps:
            check_finite("the objective of the batch", self.value)
        for name, content in vars(self).items():
            if isinstance(content, np.ndarray):
                check_finite(name, content)


S = TypeVar("S", bound=State)


class Method(Protocol[S]):
    """A method: a frozen dataclass of its hyperparameters."""

    def start(self, w0: Floats) -> S:
        """Return the state before the first batch, at w0 of shape (q,)."""
        ...

    def step(self, batch: Batch, state: S) -> S:
        """Return the state after one batch.

        Raises
        ------
        FloatingPointError
            If a value or array of the new state is not finite.
        """
        ...


def check_finite(name: str, value: float | Floats) -> None:
    """Raise FloatingPointError if ``value`` has an infinity or nan."""
    # The sum of squares is finite only if all numbers are, and takes a fifth of the
    # time.
    if not math.isfinite(np.vdot(value, value)) and not np.isfinite(value).all():
        raise FloatingPointError(f"{name} became infinite or not a number")


def step_size(eta0: float, tau: float, t: int) -> float:
    """Return eta_t = eta0 tau / (tau + t) (5.4); tau = inf makes it constant."""
    return eta0 / (1.0 + t / tau)


def first_step(default: float) -> Any:
    """Return the dataclass field of the first step size."""
    return option(
        "first step size η₀ (Yu 2009, eq. 5.4)",
        default,
        low=0.0,
        low_included=False,
        parameter="eta0",
    )


def steps_fall_after(default: float) -> Any:
    """Return the dataclass field of tau, after which the step sizes decrease."""
    return option(
        "τ of the step sizes η₀ τ / (τ + t) (eq. 5.4)",
        default,
        low=0.0,
        low_included=False,
        parameter="tau",
    )


def number_of_pairs() -> Any:
    """Return the dataclass field of the memory of a quasi-Newton method."""
    return option("number m of pairs", 10, low=1, integer=True, parameter="memory")

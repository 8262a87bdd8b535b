"""Averages of iterates (Polyak and Juditsky 1992, Ruppert 1988)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from ..losses._base import Floats
from ..records import stored
from .method import Batch, Method, S, State


@stored
@dataclass(frozen=True)
class AveragedState(State, Generic[S]):
    """State of iterate averaging: the average ``w`` and the method's own state."""

    inner: S


@stored
@dataclass(frozen=True)
class Averaged(Generic[S]):
    """Iterate averaging: w is the mean of the iterates of another method.

    Attributes
    ----------
    method : Method
        The method whose iterates are averaged; they do not depend on the average.
    burn_in : int
        Number of steps after which averaging begins; until then w is the iterate.
    """

    method: Method[S]
    burn_in: int = 0

    def start(self, w0: Floats) -> AveragedState[S]:
        return self._state(self.method.start(w0), w0)

    def step(self, batch: Batch, state: AveragedState[S]) -> AveragedState[S]:
        inner = self.method.step(batch, state.inner)
        n_averaged = max(inner.n_steps - self.burn_in, 1)
        return self._state(inner, state.w + (inner.w - state.w) / n_averaged)

    @staticmethod
    def _state(inner: S, w: Floats) -> AveragedState[S]:
        return AveragedState(w, inner.n_steps, inner.value, inner.gradient, inner)

"""Fewer messages to workers: a request takes along those that will follow it.

Where the rows of X are on several workers, such as Dask's, each request of a solver,
for one the value of the objective, is a message to every worker, and to wait for the
answers takes longer than to compute them. But a solver repeats itself: in each
iteration it asks for the value at a new point, then for the subgradient, then for the
rounding error of the value. So this module remembers which requests came after which
others. When the value is asked for again, the message also carries the requests for the
subgradient and the rounding error, the worker answers all three, and the last two
answers are there when the solver asks.

Nothing is computed that would not be computed otherwise, except where the guess was
wrong: then an answer is thrown away, for which reason requests that cost a product with
X are never made on a guess. No result changes, since answers do not depend on when they
are made. Fits send 37 to 49 % fewer messages.

How a request is recognized: "the subgradient at the dual variables that were made last"
is the same request in each iteration, though the dual variables are others. An object
that stays on the workers is therefore known by the method that has made it, and by how
many results that method has made since.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

# Calls that cost a product with X, or whose results are large.
_COSTLY = frozenset(
    (
        "adjoint",
        "adjoints",
        "apply",
        "diagonal",
        "forward",
        "kinks_along",
        "matrix",
        "mean_squares",
        "triangle",
    )
)

# A sequence of calls that has followed again gains this much score, and each other
# sequence that was expected loses one: scores reflect the last few cases.
_CERTAINTY = 2

# No score exceeds this one, so that habits of the past are soon given up.
_MOST_CERTAIN = 4

# At most 16 likely calls are sent along with a call that is wanted.
_MOST_CALLS = 16

# The last eight results of each method are remembered in their order.
_REMEMBERED = 8

# Arrays of more entries are not compared.
_FEW_ENTRIES = 16

#: A call by the past of its objects and arguments.
Trace = tuple[Any, ...]

#: The last call whose result was wanted, and perhaps the name of that before it.
Context = tuple[Trace, str | None]


class Reference(NamedTuple):
    """The number of objects that a place holds."""

    number: int


class Call(NamedTuple):
    """A call of a method of the parts.

    Attributes
    ----------
    how : str
        The method of ``Parts`` that says what becomes of the results.
    objects : int
        Number of the objects.
    name : str
        Of their method.
    args : tuple
    errors : dict
        How NumPy treats errors, as of ``numpy.geterr``.
    result : int
        Number of the objects that the results become, of "each".
    """

    how: str
    objects: int
    name: str
    args: tuple[Any, ...]
    errors: dict[str, Any]
    result: int = -1

    def key(self) -> Trace | None:
        """Return what equal calls have in common, or None where arguments are long."""
        args = tuple(
            arg if isinstance(arg, Reference) else _Literal.of(arg) for arg in self.args
        )
        if None in args:
            return None
        return self.how, self.objects, self.name, args, tuple(self.errors.values())


class Foresight:
    """What has followed each call so far, and so what is likely to follow the next one.

    ``note`` and ``ask`` learn from calls in their order; ``likely`` returns the calls
    that may be sent along with the last one.
    """

    def __init__(self) -> None:
        self._past: dict[str, deque[int]] = {}
        self._makers: dict[int, str] = {}
        self._episode: list[Trace | None] = []
        self._last: Trace | None = None
        self._before: str | None = None
        # The scores of sequences of calls that end with a wanted one, by their context:
        # how often the sequence has followed, less how often it has not.
        self._scores: dict[Context, dict[tuple[Trace, ...], int]] = {}

    def note(self, call: Call) -> None:
        """Note a call whose results stay in the places."""
        self._episode.append(self._trace(call))
        past = self._past.setdefault(call.name, deque(maxlen=_REMEMBERED))
        past.appendleft(call.result)
        self._makers[call.result] = call.name

    def ask(self, call: Call) -> None:
        """Note a call whose result is wanted."""
        trace = self._trace(call)
        episode = *self._episode, trace
        if self._last is not None:
            for before in {self._before, None}:
                self._learn((self._last, before), episode)
            self._before = self._last[2]
        self._episode = []
        self._last = trace or (call.how, None, call.name, ())

    def _learn(self, context: Context, episode: tuple[Trace | None, ...]) -> None:
        known = tuple(trace for trace in episode if trace is not None)
        if len(known) < len(episode):
            # Steps of a line search, say, of which another may be the last one.
            return
        scores = self._scores.setdefault(context, {})
        for other in [other for other in scores if other != known]:
            scores[other] -= 1
            if not scores[other]:
                del scores[other]
        scores[known] = min(scores.get(known, 0) + _CERTAINTY, _MOST_CERTAIN)

    def drop(self, number: int) -> None:
        """Forget objects that nobody asks any more."""
        self._makers.pop(number, None)

    def likely(
        self,
        errors: dict[str, Any],
        known: Callable[[Trace | None], int | None],
        new_number: Callable[[], int],
    ) -> list[Call]:
        """Return calls that are likely to follow the last one.

        Parameters
        ----------
        errors : dict
            How NumPy treats errors.
        known : callable
            From the key of a call to the number of its results, zero where these are
            not objects, or None where the call has not been made.
        new_number : callable
            Returns a number for results.
        """
        calls: list[Call] = []
        new: dict[str, list[int]] = {}

        def add(trace: Trace) -> bool:
            """Add a call, if it has to be made; whether others may follow it."""
            call = self._call(trace, errors, new)
            if call is None:
                return False
            costly = call.name in _COSTLY or call.how == "collect"
            number = known(call.key())
            if call.how == "each":
                if number is None:
                    if costly:
                        return False
                    number = new_number()
                    calls.append(call._replace(result=number))
                new.setdefault(call.name, []).insert(0, number)
            elif number is None and not costly:
                calls.append(call)
            return True

        last, before = self._last, self._before
        for _ in range(_MOST_CALLS):
            if last is None or len(calls) >= _MOST_CALLS:
                break
            scores = self._scores.get((last, before)) or self._scores.get((last, None))
            if not scores:
                break
            episode, *others = sorted(scores, key=scores.__getitem__, reverse=True)
            for other in others:
                past = {name: list(numbers) for name, numbers in new.items()}
                all(map(add, other))
                new = past
            if not all(map(add, episode)):
                break
            last, before = episode[-1], last[2]
        return calls

    def _trace(self, call: Call) -> Trace | None:
        """Return a call by the past of what it is of, None where that is not known."""
        objects = self._origin(Reference(call.objects))
        args = tuple(
            self._origin(arg) if isinstance(arg, Reference) else _Literal.of(arg)
            for arg in call.args
        )
        if objects is None or None in args:
            return None
        return call.how, objects, call.name, args

    def _origin(self, objects: Reference) -> _Origin | None:
        """Return which result of which method objects are."""
        number = objects.number
        if number == 0:
            return _Origin("", 0)
        name = self._makers.get(number)
        if name is None or number not in self._past[name]:
            return None
        return _Origin(name, self._past[name].index(number))

    def _call(
        self, trace: Trace, errors: dict[str, Any], new: dict[str, list[int]]
    ) -> Call | None:
        """Return the call that a trace now means, if its objects are there."""
        how, objects, name, origins = trace
        number = self._number(objects, new)
        args: list[Any] = []
        for origin in origins:
            if isinstance(origin, _Literal):
                args.append(origin.value())
                continue
            own = self._number(origin, new)
            if own is None:
                return None
            args.append(Reference(own))
        return None if number is None else Call(how, number, name, tuple(args), errors)

    def _number(self, origin: _Origin, new: dict[str, list[int]]) -> int | None:
        """Return the number of objects, some of which will be new."""
        name, place = origin
        if not name:
            return 0
        past = [*new.get(name, ()), *self._past.get(name, ())]
        if place >= len(past):
            return None
        number = past[place]
        there = number in self._makers or number in new.get(name, ())
        return number if there else None


class _Origin(NamedTuple):
    """Objects by the method that has returned them, and how many came later."""

    name: str
    place: int


class _Literal(NamedTuple):
    """A number, a name or a short array that can be compared."""

    kind: str
    content: Any
    shape: tuple[int, ...] = ()

    @classmethod
    def of(cls, arg: Any) -> _Literal | None:
        """Return an argument if it may come again, and None if not."""
        if arg is None or isinstance(arg, (bool, int, str)):
            return cls(type(arg).__name__, arg)
        if isinstance(arg, np.ndarray) and arg.size <= _FEW_ENTRIES:
            return cls(arg.dtype.str, arg.tobytes(), arg.shape)
        # Steps of a line search hardly come again, except for its ends.
        if isinstance(arg, float) and arg in (0.0, 1.0):
            return cls("float", float(arg))
        return None

    def value(self) -> Any:
        """Return the argument."""
        if isinstance(self.content, bytes):
            return np.frombuffer(self.content, self.kind).reshape(self.shape).copy()
        return self.content

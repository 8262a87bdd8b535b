"""Places: processes that hold parts of the rows, and receive calls as messages.

A place identifies its objects by numbers. Results of ``each`` stay in the place. This
process only gets a ``Handle``, and the call is queued. Queued calls are sent together
with the next call whose result is needed, so that many row-wise calls need one message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..losses._base import Floats
from .parts import OfParts, Parts, passed_on


class PlaceLost(RuntimeError):
    """A process with rows, such as a worker, cannot be reached any more."""


class Reference(NamedTuple):
    """A number that refers to objects in a process with rows."""

    number: int


class Call(NamedTuple):
    """A call of a method of the parts.

    Attributes
    ----------
    how : str
        The method of ``Parts`` that combines the results.
    objects : int
        Number of the objects.
    name : str
        Name of the method of these objects.
    args : tuple
    errors : dict
        NumPy's treatment of floating-point errors, as returned by ``numpy.geterr``.
    result : int
        Number under which the results of "each" are stored as objects.
    """

    how: str
    objects: int
    name: str
    args: tuple[Any, ...]
    errors: dict[str, Any]
    result: int = -1


class Message(NamedTuple):
    """Calls that are sent together.

    Attributes
    ----------
    calls : list of Call
        Calls in order; the answer is the result of the last call.
    dropped : list of int
        Numbers of objects that are not needed afterwards.
    counted : int
        Number of the designs whose product counts are returned, or -1 for none.
    """

    calls: list[Call]
    dropped: list[int]
    counted: int


class Answer(NamedTuple):
    """The answer of a process to a message.

    Attributes
    ----------
    result : object
    products : list of float
        Numbers of products with the designs so far.
    """

    result: Any
    products: list[float]


class Place:
    """Objects of some of the parts, with a method that answers messages.

    All calls of a message are made for one part before the next part, so that the rows
    of a part are read only once.

    Parameters
    ----------
    objects : sequence
        One object for each part; these objects have the number zero.
    """

    def __init__(self, objects: Iterable[Any]) -> None:
        self._held: dict[int, list[Any]] = {0: list(objects)}

    def n_parts(self) -> int:
        """Return the number of parts."""
        return len(self._held[0])

    def answer(self, message: Message) -> Answer:
        """Make the calls of a message and return the answer."""
        *noted, wanted = message.calls
        results: list[list[Any]] = [[] for _ in message.calls]
        for call, own in zip(noted, results, strict=False):
            self._held[call.result] = own
        # With "passed_on", each part's changes are the input of the next part.
        goes_on = wanted.how == "passed_on"
        for i in range(self.n_parts()):
            for call, own in zip(
                noted if goes_on else message.calls, results, strict=False
            ):
                self._add(call, i, own)
        if goes_on:
            results[-1].append(self._passed_on(wanted))
        for number in message.dropped:
            self._held.pop(number, None)
        counted = self._held.get(message.counted, ())
        products = [design.products_so_far() for design in counted]
        return Answer(_WHOLE[wanted.how](results[-1]), products)

    def _add(self, call: Call, i: int, results: list[Any]) -> None:
        """Make a call of one part, and combine its result with earlier parts."""
        args = [self._own(arg, i) for arg in call.args]
        with np.errstate(**call.errors):
            result = getattr(self._held[call.objects][i], call.name)(*args)
        if call.how == "total" and results:
            results[0] = results[0] + result
        else:
            results.append(result)

    def _passed_on(self, call: Call) -> Any:
        with np.errstate(**call.errors):
            return passed_on(self._held[call.objects], call.name, *call.args)

    def _own(self, arg: Any, i: int) -> Any:
        if isinstance(arg, Reference):
            return self._held[arg.number][i]
        return arg[i] if isinstance(arg, OfParts) else arg


# Combinations of the results of all parts, by methods of ``Parts``.
_WHOLE: dict[str, Callable[[list[Any]], Any]] = {
    "results": list,
    "total": lambda results: results[0],
    "passed_on": lambda results: results[0],
    "norm": lambda results: float(np.linalg.norm(results)),
    "largest": lambda results: float(max(results)),
    "collect": np.concatenate,
}


class Connection(Protocol):
    """The connection to a process with rows."""

    def send(self, message: Message) -> Callable[[], Answer]:
        """Send a message, and return a function that waits for the answer."""


class Here:
    """The connection to parts in this process itself.

    Parameters
    ----------
    place : Place
    """

    def __init__(self, place: Place) -> None:
        self._place = place

    def send(self, message: Message) -> Callable[[], Answer]:
        """Get the answer at once."""
        answer = self._place.answer(message)
        return lambda: answer


class Handle:
    """A reference to a result that stays in all processes while it is needed."""

    __slots__ = ("_session", "number")

    def __init__(self, session: Session, number: int) -> None:
        self._session, self.number = session, number

    def __del__(self) -> None:
        self._session.drop(self.number)


class Session:
    """The connections to several processes with rows.

    Parameters
    ----------
    connections : sequence of Connection
    n_parts : sequence of int
        Number of parts in each process.

    Attributes
    ----------
    parts : Parts
        The parts of the first objects in the processes.
    n_parts : int
        Number of parts.
    n_places : int
        Number of processes.
    n_messages : int
        Number of messages so far.
    """

    def __init__(
        self, connections: Sequence[Connection], n_parts: Sequence[int]
    ) -> None:
        self._connections, self.n_places = connections, len(connections)
        self._ends = np.cumsum([0, *n_parts]).tolist()
        self.n_parts = self._ends[-1]
        self._noted: list[Call] = []
        self._dropped: list[int] = []
        self._next = 1
        self._counted: Handle | None = None
        self._products: list[float] = []
        self.n_messages = 0
        self.parts = PartsElsewhere(self, Handle(self, 0))

    def drop(self, number: int) -> None:
        """Remove objects in the processes, with the next message."""
        self._dropped.append(number)

    def note(self, objects: Handle, name: str, args: Sequence[Any]) -> Handle:
        """Queue a call of a method for the next message."""
        # Arrays may change before they are sent.
        args = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
        call = self._call("each", objects.number, name, args)
        self._noted.append(call._replace(result=self._next))
        self._next += 1
        return Handle(self, self._next - 1)

    def ask(
        self, how: str, objects: Handle, name: str, args: Sequence[Any]
    ) -> list[Any]:
        """Return the results of a method of the parts, one for each process."""
        dropped, self._dropped = self._dropped, []
        calls = [*self._noted, self._call(how, objects.number, name, args)]
        self._noted = []
        counted = -1 if self._counted is None else self._counted.number
        self.n_messages += 1
        waiting = [
            connection.send(
                Message([self._own(call, i) for call in calls], dropped, counted)
            )
            for i, connection in enumerate(self._connections)
        ]
        answers = [wait() for wait in waiting]
        self._products = [n for answer in answers for n in answer.products]
        return [answer.result for answer in answers]

    def count(self, designs: Handle) -> None:
        """Include the product counts of the given designs in answers."""
        self._counted, self._products = designs, []

    def products(self, designs: Handle) -> list[float] | None:
        """Return the last product counts of the designs, None if not counted."""
        counts = self._counted is not None and self._counted.number == designs.number
        return self._products if counts and self._products else None

    def _call(self, how: str, objects: int, name: str, args: Sequence[Any]) -> Call:
        sent = [Reference(a.number) if isinstance(a, Handle) else a for a in args]
        return Call(how, objects, name, tuple(sent), {**np.geterr()})

    def _own(self, call: Call, i: int) -> Call:
        """Return a call with the arguments for the parts in one process."""
        parts = slice(*self._ends[i : i + 2])
        own = [OfParts(a[parts]) if isinstance(a, OfParts) else a for a in call.args]
        return call._replace(args=tuple(own))


class PartsElsewhere(Parts):
    """Remote objects with common methods, in the processes of a session.

    Parameters
    ----------
    session : Session
    objects : Handle
    """

    def __init__(self, session: Session, objects: Handle) -> None:
        self._session, self.objects = session, objects

    def of(self, objects: Handle) -> PartsElsewhere:
        return PartsElsewhere(self._session, objects)

    def each(self, name: str, *args: Any) -> Handle:
        return self._session.note(self.objects, name, args)

    def results(self, name: str, *args: Any) -> list[Any]:
        results = self._session.ask("results", self.objects, name, args)
        return [each for of_place in results for each in of_place]

    def total(self, name: str, *args: Any) -> Any:
        totals = self._session.ask("total", self.objects, name, args)
        return sum(totals[1:], start=totals[0])

    @property
    def n_places(self) -> int:
        return self._session.n_places

    def passed_on(self, name: str, x: Floats, *args: Any) -> list[Floats]:
        results = self._session.ask("passed_on", self.objects, name, [x, *args])
        return [result - x for result in results]

    def norm(self, name: str, *args: Any) -> float:
        norms = self._session.ask("norm", self.objects, name, args)
        return float(np.linalg.norm(norms))

    def largest(self, name: str, *args: Any) -> float:
        return max(self._session.ask("largest", self.objects, name, args))

    def collect(self, name: str, *args: Any) -> Any:
        collected = self._session.ask("collect", self.objects, name, args)
        return np.concatenate(collected)

    def products(self) -> Floats:
        counted = self._session.products(self.objects)
        return super().products() if counted is None else np.array(counted)

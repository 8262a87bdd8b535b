"""Parts that are elsewhere: places that hold them, and calls that travel there.

A place holds objects of its parts by numbers. What ``each`` returns stays there: here
it is a ``Handle``, and the call is only noted. Noted calls travel with the next one
whose result is wanted here, so that many calls of row-wise methods cost one message.
With it travel calls that are likely to follow, as of the norm and the conjugate of a
dual point after its gradient: solvers ask for the same of one point after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from .losses._base import Floats
from .parts import OfParts, Parts

# Methods that cost a product with X, or whose results are large.
_COSTLY = {"adjoint", "apply", "diagonal", "matrix", "mean_squares", "restrict"}

# Calls are as likely as the last few cases say.
_MOST_CERTAIN = 2


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


class Message(NamedTuple):
    """Calls that travel together.

    Attributes
    ----------
    calls : list of Call
        In their order; the answer is the result of the last one.
    likely : list of Call
        Those that may be wanted later.
    dropped : list of int
        Numbers of objects that are not needed afterwards.
    counted : int
        Number of designs whose products so far come with the answer, or -1.
    """

    calls: list[Call]
    likely: list[Call]
    dropped: list[int]
    counted: int


class Answer(NamedTuple):
    """What comes back.

    Attributes
    ----------
    result : object
    likely : list
        Results of the calls that may be wanted later; fewer where one failed.
    products : list of float
        Those that designs have made so far.
    """

    result: Any
    likely: list[Any]
    products: list[float]


class Place:
    """Objects of some of the parts, and the end of the way of calls to them.

    All calls of a message are made for one part before those for the next, so that
    what is read of its rows serves them all.

    Parameters
    ----------
    objects : sequence
        Of each part; their number is zero.
    """

    def __init__(self, objects: Iterable[Any]) -> None:
        self._held: dict[int, list[Any]] = {0: list(objects)}

    def n_parts(self) -> int:
        """Return the number of parts."""
        return len(self._held[0])

    def answer(self, message: Message) -> Answer:
        """Make the calls of a message."""
        calls = [*message.calls, *message.likely]
        results: list[list[Any]] = [[] for _ in calls]
        n_wanted, n_made = len(message.calls), len(calls)
        for call, own in zip(calls, results, strict=True):
            if call.how == "each":
                self._held[call.result] = own
        for i in range(self.n_parts()):
            for number in range(n_made):
                try:
                    self._add(calls[number], i, results[number])
                except Exception:
                    if number < n_wanted:
                        raise
                    # Errors of calls that may be wanted later count then.
                    n_made = number
                    break
        whole = [_WHOLE[calls[i].how](results[i]) for i in range(n_made)]
        for number in message.dropped:
            self._held.pop(number, None)
        counted = self._held.get(message.counted, ())
        products = [design.products_so_far() for design in counted]
        return Answer(whole[n_wanted - 1], whole[n_wanted:], products)

    def _add(self, call: Call, i: int, results: list[Any]) -> None:
        """Make a call of a part, and add the result to those of others."""
        args = [self._own(arg, i) for arg in call.args]
        with np.errstate(**call.errors):
            result = getattr(self._held[call.objects][i], call.name)(*args)
        if call.how == "total" and results:
            results[0] = results[0] + result
        else:
            results.append(result)

    def _own(self, arg: Any, i: int) -> Any:
        if isinstance(arg, Reference):
            return self._held[arg.number][i]
        return arg[i] if isinstance(arg, OfParts) else arg


# What results of all parts make, by methods of ``Parts``.
_WHOLE: dict[str, Callable[[list[Any]], Any]] = {
    "each": lambda results: None,
    "results": list,
    "total": lambda results: results[0],
    "norm": lambda results: float(np.linalg.norm(results)),
    "largest": lambda results: float(max(results)),
    "collect": np.concatenate,
}


class Connection(Protocol):
    """The way to a place."""

    def send(self, message: Message) -> Callable[[], Answer]:
        """Send a message; return what waits for the answer and returns it."""


class Here:
    """The way to a place in this process.

    Parameters
    ----------
    place : Place
    """

    def __init__(self, place: Place) -> None:
        self._place = place

    def send(self, message: Message) -> Callable[[], Answer]:
        """Let the place answer at once."""
        answer = self._place.answer(message)
        return lambda: answer


class Handle:
    """What stays in all places under a number, until it is not needed any more."""

    __slots__ = ("_session", "number")

    def __init__(self, session: Session, number: int) -> None:
        self._session, self.number = session, number

    def __del__(self) -> None:
        self._session.drop(self.number)


#: The number of objects, a method of ``Parts`` and that of the objects.
Kind = tuple[int, str, str]

#: Numbers of the handles that are arguments of a call, or of its objects.
Subject = tuple[int, ...]


class _Course:
    """Which calls of a subject there were, and results of calls to come."""

    def __init__(self) -> None:
        self.asked: list[Kind] = []
        self.early: dict[Kind, list[Any]] = {}


class Foresight:
    """Which calls are likely to follow others of the same subject, as they did before.

    A subject is what calls are of, such as a dual point.
    """

    def __init__(self) -> None:
        self._courses: dict[Subject, _Course] = {}
        self._subjects: dict[int, list[Subject]] = {}
        # How often one has followed another, less how often it was made in vain.
        self._scores: dict[tuple[Kind, Kind], int] = {}

    def note(self, subject: Subject, kind: Kind) -> list[Any] | None:
        """Note that a call is made; return its results where these are known."""
        course = self._courses.get(subject)
        if course is None:
            course = self._courses[subject] = _Course()
            self._subjects.setdefault(subject[-1], []).append(subject)
        for earlier in course.asked:
            self._add(earlier, kind, 1)
        course.asked.append(kind)
        return course.early.pop(kind, None)

    def likely(self, subject: Subject, kind: Kind) -> list[Kind]:
        """Return cheap calls of the subject that are likely to follow one."""
        course = self._courses[subject]
        known = {*course.asked, *course.early}
        return [
            then
            for (first, then), score in self._scores.items()
            if first == kind and score > 0 and then not in known
        ]

    def keep(self, subject: Subject, kinds: list[Kind], results: list[Any]) -> None:
        """Keep results, a list for each place, of calls that may follow."""
        for i, kind in enumerate(kinds):
            if all(len(of_place) > i for of_place in results):
                early = [of_place[i] for of_place in results]
                self._courses[subject].early[kind] = early

    def drop(self, number: int) -> None:
        """Forget what is known of objects that nobody asks any more."""
        for pair in [
            pair for pair in self._scores if number in (pair[0][0], pair[1][0])
        ]:
            del self._scores[pair]
        for subject in self._subjects.pop(number, ()):
            course = self._courses.pop(subject)
            for kind in course.early:
                for first in course.asked:
                    self._add(first, kind, -1)

    def _add(self, first: Kind, then: Kind, change: int) -> None:
        if then[2] not in _COSTLY and first != then:
            score = self._scores.get((first, then), 0) + change
            self._scores[first, then] = min(max(score, -_MOST_CERTAIN), _MOST_CERTAIN)


class Session:
    """Places that are asked together.

    Parameters
    ----------
    connections : sequence of Connection
    n_parts : sequence of int
        Number of parts of each place.

    Attributes
    ----------
    parts : Parts
        Of the first objects of the places.
    n_messages : int
        How often the places have been asked so far.
    """

    def __init__(
        self, connections: Sequence[Connection], n_parts: Sequence[int]
    ) -> None:
        self._connections = connections
        self._ends = np.cumsum([0, *n_parts]).tolist()
        self._noted: list[Call] = []
        self._dropped: list[int] = []
        self._next = 1
        self._foresight = Foresight()
        self._counted: Handle | None = None
        self._products: list[float] = []
        self.n_messages = 0
        self.parts = PartsElsewhere(self, Handle(self, 0))

    def drop(self, number: int) -> None:
        """Let the places forget objects, with the next message."""
        self._dropped.append(number)

    def note(self, objects: Handle, name: str, args: Sequence[Any]) -> Handle:
        """Let a call of a method travel with the next message."""
        result = Handle(self, self._next)
        self._next += 1
        # Arrays may change before they travel.
        args = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
        call = self._call("each", objects.number, name, args)
        self._noted.append(call._replace(result=result.number))
        return result

    def ask(
        self, how: str, objects: Handle, name: str, args: Sequence[Any]
    ) -> list[Any]:
        """Return the result of each place for a method of its parts."""
        dropped, self._dropped = self._dropped, []
        for number in dropped:
            self._foresight.drop(number)
        subject: Subject | None = None
        likely: list[Kind] = []
        if all(isinstance(arg, Handle) for arg in args):
            subject = tuple(each.number for each in args or [objects])
            kind = objects.number, how, name
            known = self._foresight.note(subject, kind)
            if known is not None:
                self._dropped = dropped + self._dropped
                return known
            likely = self._foresight.likely(subject, kind)
        calls = [*self._noted, self._call(how, objects.number, name, args)]
        self._noted = []
        later = [self._call(how, number, name, args) for number, how, name in likely]
        counted = -1 if self._counted is None else self._counted.number
        self.n_messages += 1
        waiting = [
            connection.send(
                Message([self._own(call, i) for call in calls], later, dropped, counted)
            )
            for i, connection in enumerate(self._connections)
        ]
        answers = [wait() for wait in waiting]
        self._products = [n for answer in answers for n in answer.products]
        if subject is not None:
            early = [answer.likely for answer in answers]
            self._foresight.keep(subject, likely, early)
        return [answer.result for answer in answers]

    def count(self, designs: Handle) -> None:
        """Let answers say how many products these designs have made."""
        self._counted, self._products = designs, []

    def products(self, designs: Handle) -> list[float] | None:
        """Return these products as of the last answer, if it had them."""
        counts = self._counted is not None and self._counted.number == designs.number
        return self._products if counts and self._products else None

    def _call(self, how: str, objects: int, name: str, args: Sequence[Any]) -> Call:
        sent = [Reference(a.number) if isinstance(a, Handle) else a for a in args]
        return Call(how, objects, name, tuple(sent), {**np.geterr()})

    def _own(self, call: Call, i: int) -> Call:
        """Return a call for the parts of one place."""
        parts = slice(*self._ends[i : i + 2])
        own = [OfParts(a[parts]) if isinstance(a, OfParts) else a for a in call.args]
        return call._replace(args=tuple(own))


class PartsElsewhere(Parts):
    """Objects of the same methods in the places of a session.

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

    def norm(self, name: str, *args: Any) -> float:
        norms = self._session.ask("norm", self.objects, name, args)
        return float(np.linalg.norm(norms))

    def largest(self, name: str, *args: Any) -> float:
        return max(self._session.ask("largest", self.objects, name, args))

    def collect(self, name: str, *args: Any) -> Any:
        collected = self._session.ask("collect", self.objects, name, args)
        return np.concatenate(collected)

    def products(self) -> Floats:
        told = self._session.products(self.objects)
        return super().products() if told is None else np.array(told)

"""Rows in several parts: calls of a method for all parts, and combined results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from operator import add
from typing import Any, TypeVar

import numpy as np

from ..losses._base import Floats, Rows
from ..rows.design import Design, Shape
from ..rows.linear_map import LinearMap

_Method = TypeVar("_Method", bound=Callable[..., Any])
_Class = TypeVar("_Class", bound=type)


class OfParts(tuple[Any, ...]):
    """A tuple with one entry for each part, such as row-wise arrays."""

    __slots__ = ()


class Parts:
    """Several objects with common methods, each of which holds some of the rows.

    Arguments that are ``OfParts``, or results of ``each``, are split among the parts;
    other arguments are passed to all parts. In this class all objects are in this
    process and are called one after the other; a subclass may call remote objects.

    Parameters
    ----------
    objects : iterable
        Objects in the order of the rows.
    """

    objects: Any

    def __init__(self, objects: Iterable[Any]) -> None:
        self.objects = OfParts(objects)

    def of(self, objects: Any) -> Parts:
        """Return the parts with other objects, which are a result of ``each``."""
        return Parts(objects)

    def each(self, name: str, *args: Any) -> Any:
        """Return row-wise results, which stay in the processes of the rows."""
        return OfParts(self.results(name, *args))

    def results(self, name: str, *args: Any) -> list[Any]:
        """Return the results of a method of all parts."""
        calls = zip(self.objects, self._arguments(args), strict=True)
        return [getattr(part, name)(*own) for part, own in calls]

    def total(self, name: str, *args: Any) -> Any:
        """Return the sum of the results."""
        return reduce(add, self.results(name, *args))

    def norm(self, name: str, *args: Any) -> float:
        """Return the root of the sum of the squares of the results."""
        return float(np.linalg.norm(self.results(name, *args)))

    def largest(self, name: str, *args: Any) -> float:
        """Return the largest result."""
        return float(max(self.results(name, *args)))

    def function(self, name: str, *args: Any) -> Callable[[float], tuple[float, ...]]:
        """Return the sum of functions of a number that return several values."""
        functions = self.of(self.each(name, *args))
        known: dict[float, tuple[float, ...]] = {}

        def total(step: float) -> tuple[float, ...]:
            if step not in known:
                values = functions.results("__call__", step)
                known[step] = tuple(map(sum, zip(*values, strict=True)))
            return known[step]

        return total

    @property
    def n_places(self) -> int:
        """Number of processes that hold parts."""
        return 1

    def passed_on(self, name: str, x: Floats, *args: Any) -> list[Floats]:
        """Return the changes of x by a method of the parts, called one after the other.

        Each process starts with the same x.
        """
        return [passed_on(self.objects, name, x, *args) - x]

    def collect(self, name: str, *args: Any) -> Any:
        """Return row-wise results of all parts in one array."""
        return np.concatenate(self.results(name, *args))

    def products(self) -> Floats:
        """Return the number of products that each design has made so far."""
        return np.array(self.results("products_so_far"))

    def _arguments(self, args: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
        for i in range(len(self.objects)):
            yield tuple(arg[i] if isinstance(arg, OfParts) else arg for arg in args)


def passed_on(objects: Iterable[Any], name: str, x: Floats, *args: Any) -> Floats:
    """Return x after successive changes by the objects of one process."""
    x = x.copy()
    for part in objects:
        getattr(part, name)(x, *args)
    return x


# Name of the attribute with which a method is marked. Its value names the method of
# ``Parts`` that combines the results.
_MARK = "_of_parts"


def _marked(how: str) -> Callable[[_Method], _Method]:
    """Return a decorator that marks methods, and does not change them otherwise."""

    def mark(method: _Method) -> _Method:
        setattr(method, _MARK, how)
        return method

    return mark


#: Decorators of methods, which define how results of the parts are combined. Row-wise
#: results stay in the processes of the rows. Other results are summed, as numbers or as
#: functions, or combined by a norm or a maximum.
rowwise, summed, summed_function = map(_marked, ("each", "total", "function"))
root_of_squares, maximal = map(_marked, ("norm", "largest"))


def by_parts(kind: _Class) -> _Class:
    """Replace marked methods of the base class by calls of the object's ``parts``."""
    for name in dir(kind.__base__):
        method = getattr(kind.__base__, name)
        how = getattr(method, _MARK, None)
        if how is not None and name not in vars(kind):
            setattr(kind, name, _asking(how, name, method.__doc__))
    return kind


def _asking(how: str, name: str, doc: str | None) -> Callable[..., Any]:
    def whole(self: Any, *args: Any) -> Any:
        return getattr(self.parts, how)(name, *args)

    whole.__name__, whole.__doc__ = name, doc
    return whole


class DesignOfParts(Design):
    """The linear map of several designs, stacked.

    Its scores are arrays over all rows, for losses that compare rows of different
    parts. For other losses it only provides shape and density, and scores stay in the
    processes of their rows.

    Parameters
    ----------
    parts : Parts
        Designs with the same parameters.
    """

    in_one_place = False

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        shapes: list[Shape] = parts.results("as_shape")
        first = shapes[0]
        self.n_features, self.n_outputs = first.n_features, first.n_outputs
        self.fit_intercept = first.fit_intercept
        self.n_coef, self.n_params = first.n_coef, first.n_params
        self.shares_coef = first.shares_coef
        self._numbers = [shape.n_rows for shape in shapes]
        self._sizes = [shape.n_entries if shape.n_rows else 0 for shape in shapes]
        self._nbytes = sum(shape.nbytes for shape in shapes)
        self.n_rows, self.n_entries = sum(self._numbers), max(sum(self._sizes), 1)
        self.row_size = self.n_entries / max(self.n_rows, 1)
        self.is_sparse, self.holds_rows = first.is_sparse, first.holds_rows
        self._counted, self._parent = 0.0, None

    @property
    def passes(self) -> float:
        """Number of products with X so far; subsets of rows count as fractions."""
        return self._counted + float(self.parts.products() @ self._sizes) / (
            self.n_entries
        )

    @passes.setter
    def passes(self, passes: float) -> None:
        self._counted += passes - self.passes

    @property
    def nbytes(self) -> int:
        return self._nbytes

    @property
    def n_parts(self) -> int:
        """Number of parts."""
        return len(self._numbers)

    def split_rows(self, x: Any) -> OfParts:
        """Return row-wise data split into an entry for each part."""
        return OfParts(np.split(x, np.cumsum(self._numbers)[:-1]))

    def forward(self, w: Floats) -> Floats:
        scores: Floats = self.parts.collect("forward", w)
        return scores

    def adjoint(self, dual: Floats) -> Floats:
        product: Floats = self.parts.total("adjoint", self.split_rows(dual))
        return product

    def rows(self, rows: Rows, *, copy: bool = True) -> DesignOfParts:
        """Return the design of a subset of the rows, in ascending order."""
        return DesignOfParts(
            self.parts.of(self.parts.each("rows", self.own_rows(rows)))
        )

    def of_features(self, columns: Rows, fit_intercept: bool) -> DesignOfParts:
        args = columns, fit_intercept
        return DesignOfParts(self.parts.of(self.parts.each("of_features", *args)))

    def of_outputs(self, n_outputs: int) -> DesignOfParts:
        return DesignOfParts(self.parts.of(self.parts.each("of_outputs", n_outputs)))

    def own_rows(self, rows: Rows) -> OfParts:
        """Return ascending row numbers as numbers within each part."""
        firsts = np.cumsum([0, *self._numbers])
        bounds = np.searchsorted(rows, firsts)
        pairs = zip(bounds[:-1], bounds[1:], firsts[:-1], strict=True)
        return OfParts(rows[a:b] - first for a, b, first in pairs)

    def count(self, subset: LinearMap, products: float = 1.0) -> None:
        if isinstance(subset, DesignOfParts):
            self.parts.each("count", subset.parts.objects, products)
        else:
            super().count(subset, products)

    def gram(self, weights: Floats) -> Floats:
        matrix: Floats = self.parts.total("gram", self.split_rows(weights))
        return matrix

    def sizes_of_sums(self, dual: Floats) -> Floats:
        sizes: Floats = self.parts.total("sizes_of_sums", self.split_rows(dual))
        return sizes

    def gram_cost(self, columns: Rows) -> float:
        share = len(columns) / self.n_features
        if self.is_sparse:
            return 0.5 * share**2 * self.row_size
        return share * len(columns) / 12.0

    def sums_of_rows(self, codes: Rows, n: int, weights: Floats) -> Floats:
        args = self.split_rows(codes), n, self.split_rows(weights)
        sums: Floats = self.parts.total("sums_of_rows", *args)
        return sums

    def squared_adjoint(self, weights: Floats) -> Floats:
        diagonal: Floats = self.parts.total("squared_adjoint", self.split_rows(weights))
        return diagonal

    def mean_squares(self, weights: Floats) -> Floats:
        squares: Floats = self.parts.total("mean_squares", self.split_rows(weights))
        return squares

    def squared_size(self, weights: Floats) -> float:
        return float(self.parts.total("squared_size", self.split_rows(weights)))

    @property
    def _column_shares(self) -> Floats:
        # Each column is assumed to have the same number of entries.
        return np.full(self.n_features, 1.0 / max(self.n_features, 1))

    @property
    def mean_square(self) -> float:
        return float(self.parts.total("sum_of_squares")) / max(self.n_rows, 1)

    def n_sampled(self, step: int) -> int:
        return int(self.parts.total("n_sampled", step))

    def sampled_gram(self, step: int) -> Floats:
        gram: Floats = self.parts.total("sampled_gram", step)
        return gram

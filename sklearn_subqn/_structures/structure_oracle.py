"""Calls of the user's functions, with checked results as matrices."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._checks import check_unmasked
from .._checks.arrays import LARGEST_VALUE
from .._core.arrays import Array, Floats, Indices
from .._core.objectives.risk_by_oracle import Answers
from .._core.rounding import CLOSE, rounding
from .._core.rows.design import Design
from .calls import in_threads, read_only


class FoundStructure(NamedTuple):
    """Joint features and cost of a structure.

    Attributes
    ----------
    columns : ndarray of int or None
        Indices of the values; None where all d values are stored.
    values : ndarray of float64
    cost : float
    rate : float
        Factor on the score difference to the true structure.
    size : float
        Sum of the absolute values of the terms of a computed cost.
    """

    columns: Array | None
    values: Floats
    cost: float
    rate: float
    size: float = 0.0


class Summands(NamedTuple):
    """Absolute values of the terms of each cut's height, to bound rounding errors.

    Attributes
    ----------
    terms : array or sparse array of shape (n, d)
        Absolute values of the joint features of structures and true structures.
    costs : ndarray of shape (n,)
    """

    terms: Any
    costs: Floats

    def sizes(self, w: Floats) -> Floats:
        """Return the sum of the absolute terms of each height at w, of shape (n,)."""
        return np.asarray(self.terms @ abs(w) + self.costs)


class StructureOracle:
    """Loss-augmented argmax of all samples: joint features and costs as arrays.

    Parameters
    ----------
    functions : dict of callables
        The user's "joint_feature", "loss_augmented_argmax" and "loss", and optionally
        "rescaling", the factor on score differences.
    samples, structures : list of objects
    used : ndarray of int
        Indices of the samples in the fit.
    n_features : int or None
        Number of joint features; None takes the length of the first array or sparse
        row.
    n_jobs : int or None
        Number of threads.

    Attributes
    ----------
    name : str
        The function that is called for each w.
    n_features : int
        Number d of joint features.
    sizes : ndarray of shape (n,)
        Scale of each height of the last call; rounding errors are relative to it.
    """

    name = "loss_augmented_argmax"
    sizes: Floats

    def __init__(
        self,
        functions: Mapping[str, Callable[..., Any]],
        samples: list[Any],
        structures: list[Any],
        used: Indices,
        *,
        n_features: int | None,
        n_jobs: int | None,
    ) -> None:
        self._functions = functions
        self._n_jobs = n_jobs
        self._samples = [(int(i), samples[i], structures[i]) for i in used]
        self._last: tuple[Answers, Summands] | None = None
        # The user's functions run with the caller's floating-point error handling,
        # since a fit raises on floating-point errors.
        self._errors: Any = np.geterr()
        first = self._call("joint_feature", *self._samples[0])
        self._is_sparse = sparse.issparse(first) or isinstance(first, Mapping)
        self.n_features = self._number(
            "joint_feature", self._samples[0][0], first, n_features
        )
        self._truths = self._matrix(self._of_samples(self._true))

    def squares(self) -> Floats:
        """Return the squared norms of the true structures' joint features, (n,)."""
        truths = sparse.csr_array(self._truths)
        return np.asarray(truths.multiply(truths).sum(axis=1)).ravel()

    def __call__(self, w: Floats) -> Answers:
        w = read_only(w)
        found = self._of_samples(self._find, w)
        features = self._matrix(found)
        costs = np.array([each.cost for each in found])
        normals = features - self._truths
        terms = abs(features) + abs(self._truths)
        rates = np.array([each.rate for each in found])
        if np.any(rates != 1.0):
            scale = sparse.diags_array(rates)
            normals, terms = scale @ normals, scale @ terms
        sizes = np.array([each.size for each in found])
        errors = rounding(self.n_features) * sizes
        answers = Answers(Design(normals, fit_intercept=False), costs, errors)
        heights, summands = answers.heights(w), Summands(terms, costs + sizes)
        self.sizes = summands.sizes(w)
        self._check(heights, np.zeros(len(heights)), "the true structure")
        if self._last is not None:
            last, earlier = self._last
            self.sizes += earlier.sizes(w)
            self._check(heights, last.heights(w), "what it returned before")
        self._last = answers, summands
        return answers

    def _check(self, heights: Floats, others: Floats, name: str) -> None:
        """Raise ValueError where a known structure is better than the oracle's."""
        worse = np.flatnonzero(others - heights > CLOSE * self.sizes)
        if worse.size:
            i = worse[0]
            excess = f"{others[i] - heights[i]:.3g}"
            raise ValueError(self._inexact(self._samples[i][0], name, excess))

    def _inexact(self, index: int, name: str, excess: str) -> str:
        return (
            "loss_augmented_argmax must return the structure with the largest loss "
            f"plus score; for sample {index} it returned one that is worse than {name} "
            f"by {excess}."
        )

    def _true(self, index: int, x: Any, y: Any) -> FoundStructure:
        found = self._found(index, x, y, y)
        if found.cost != 0.0:
            raise ValueError(
                "loss(y, y) of a true structure must be zero, got "
                f"{found.cost:g} for sample {index}."
            )
        return found

    def _find(self, index: int, x: Any, y: Any, w: Floats) -> FoundStructure:
        return self._found(
            index, x, y, self._call("loss_augmented_argmax", index, x, y, w)
        )

    def _found(self, index: int, x: Any, y: Any, y_hat: Any) -> FoundStructure:
        """Return joint features and cost of ``y_hat`` where y is true."""
        cost, rate = self._number_of("loss", index, y, y_hat), 1.0
        if "rescaling" in self._functions:
            rate = self._number_of("rescaling", index, y, y_hat)
        features = self._call("joint_feature", index, x, y_hat)
        entries = self._entries("joint_feature", index, features)
        return FoundStructure(*entries, cost, rate)

    def _entries(
        self, name: str, index: int, features: Any
    ) -> tuple[Array | None, Floats]:
        """Return columns and values of features that a function returned."""
        self._number(name, index, features, self.n_features)
        columns = None
        if sparse.issparse(features):
            row = features.reshape((1, self.n_features)).tocoo()
            columns, values = row.col, row.data
        elif isinstance(features, Mapping):
            columns, values = np.array([*features]), np.array([*features.values()])
        else:
            values = np.asanyarray(features)
        check_unmasked(f"{name} of sample {index}", values)
        if np.iscomplexobj(values):
            raise ValueError(
                f"{name} of sample {index} has complex values; features must be "
                "real numbers."
            )
        values = values.astype(np.float64)
        if not np.all(np.abs(values) <= LARGEST_VALUE):
            raise ValueError(
                f"{name} of sample {index} has values that are not finite, or "
                f"beyond {LARGEST_VALUE:g} in magnitude."
            )
        return columns, values

    def _number_of(self, name: str, index: int, y: Any, y_hat: Any) -> float:
        """Return the loss of a structure, or its factor."""
        number = self._call(name, index, y, y_hat)
        if not isinstance(number, (numbers.Real, np.bool_)) or not (
            0.0 <= float(number) <= LARGEST_VALUE
        ):
            raise ValueError(
                f"{name} must return a finite number >= 0, got {number!r} for sample "
                f"{index}."
            )
        return float(number)

    def _number(
        self, name: str, index: int, features: Any, expected: int | None
    ) -> int:
        """Return the number of features; raise ValueError if it is not as expected."""
        if isinstance(features, Mapping):
            if expected is None:
                raise ValueError(
                    "n_joint_features must be set where joint_feature returns a dict."
                )
            for column in features:
                if (
                    not isinstance(column, numbers.Integral)
                    or not 0 <= int(column) < expected
                ):
                    raise ValueError(
                        f"{name} must have keys from 0 to n_joint_features - 1 = "
                        f"{expected - 1}, got {column!r} for sample {index}."
                    )
            return expected
        shape = np.shape(features)
        row = len(shape) == 1 or (sparse.issparse(features) and shape[0] == 1)
        if not row or shape[-1] != (expected or shape[-1]) or not shape[-1]:
            size = "d" if expected is None else str(expected)
            raise ValueError(
                f"{name} must return an array of shape ({size},) or a sparse "
                f"row of that many columns, got shape {shape} for sample {index}."
            )
        return int(shape[-1])

    def _call(self, name: str, index: int, *args: Any) -> Any:
        """Call a user's function; a note in its errors names the sample."""
        try:
            return self._functions[name](*args)
        except Exception as error:
            error.add_note(f"Raised by {name} for sample {index}.")
            raise

    def _of_samples(
        self, function: Callable[..., FoundStructure], *args: Any
    ) -> list[FoundStructure]:
        def of_part(part: list[Any]) -> list[FoundStructure]:
            return [function(*sample, *args) for sample in part]

        return in_threads(of_part, self._samples, self._n_jobs, self._errors)

    def _matrix(self, found: list[FoundStructure]) -> Any:
        """Return the joint features as a matrix, one row for each structure."""
        shape = len(found), self.n_features
        if not self._is_sparse and all(item.columns is None for item in found):
            return np.stack([item.values for item in found])
        columns = [
            np.arange(self.n_features) if item.columns is None else item.columns
            for item in found
        ]
        bounds = np.cumsum([0, *map(len, columns)])
        data = np.concatenate([item.values for item in found])
        matrix = sparse.csr_array((data, np.concatenate(columns), bounds), shape=shape)
        matrix.sum_duplicates()
        return matrix if self._is_sparse else matrix.toarray()


class LogPartitionOracle(StructureOracle):
    """Log-partition functions of all samples, given by their supporting planes.

    Where p are the probabilities of the structures at w, the cut of a sample has the
    mean joint features as its normal, and the entropy of p as its cost.
    """

    name = "log_partition"

    def _true(self, index: int, x: Any, y: Any) -> FoundStructure:
        features = self._call("joint_feature", index, x, y)
        return FoundStructure(
            *self._entries("joint_feature", index, features), 0.0, 1.0
        )

    def _find(self, index: int, x: Any, y: Any, w: Floats) -> FoundStructure:
        name = self.name
        found = self._call(name, index, x, w)
        if not isinstance(found, tuple) or len(found) != 2:
            raise TypeError(
                f"{name} must return a tuple of value and gradient, got {found!r} for "
                f"sample {index}."
            )
        # Libraries for automatic differentiation return 0-d arrays.
        number = np.asarray(found[0])
        is_real = number.ndim == 0 and number.dtype.kind in "iuf"
        if not is_real or not abs(float(number)) <= LARGEST_VALUE:
            raise ValueError(
                f"{name} must return a finite number and its gradient, got "
                f"{found[0]!r} for sample {index}."
            )
        columns, values = self._entries(name, index, found[1])
        v = w if columns is None else w[columns]
        value = float(number)
        size = abs(value) + float(np.abs(values) @ np.abs(v))
        return FoundStructure(columns, values, value - float(values @ v), 1.0, size)

    def _inexact(self, index: int, name: str, excess: str) -> str:
        return (
            "log_partition must return the logarithm of the sum of exp(<w, "
            "joint_feature(x, y)>) over all structures y of x, and its gradient by w; "
            f"for sample {index} the logarithm is less than {name} proves, by {excess}."
        )

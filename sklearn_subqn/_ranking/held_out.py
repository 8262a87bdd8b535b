"""NDCG of held-out queries after each iteration, and early stopping."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .._checks import check_unmasked
from .._core.arrays import Floats
from .queries import Queries

# Attributes of a model that determine its scores.
_OF_SCORES = ("coef_", "intercept_")


class HeldOut(NamedTuple):
    """An evaluation set of queries that are not in the training data.

    Attributes
    ----------
    name : str
    X : {ndarray, CSR matrix} of shape (n, d)
        Features, as returned by ``_check_X``.
    y : ndarray of shape (n,)
    queries : Queries
    """

    name: str
    X: Any
    y: Floats
    queries: Queries


def held_out(
    sets: Any,
    names: Any,
    check_X: Callable[[Any], Any],
    check_y: Callable[[Any], Floats],
    **queries: Any,
) -> list[HeldOut]:
    """Return the checked data of ``eval_set``.

    Parameters
    ----------
    sets : list of tuples (X, y), or one tuple
    names : list of str or None
        Names of the sets; "valid_0", "valid_1", and so on by default.
    check_X, check_y : callable
    **queries : list or None
        Query assignments by keyword, such as ``eval_group``: one entry for each of
        ``sets``.

    Raises
    ------
    ValueError
        If the numbers of sets and entries differ, or not exactly one keyword is given.
    """
    if isinstance(sets, tuple):
        sets = [sets]
        queries = {key: _in_list(value) for key, value in queries.items()}
    given = {key: value for key, value in queries.items() if value is not None}
    allowed = " or ".join(queries)
    if len(given) != 1 or len(next(iter(given.values()))) != len(sets):
        raise ValueError(
            f"eval_set needs {allowed}, with one entry for each of {len(sets)} data "
            "sets."
        )
    (key, entries), found = next(iter(given.items())), []
    if names is None:
        names = [f"valid_{i}" for i in range(len(sets))]
    for name, pair, entry in zip(names, sets, entries, strict=True):
        if len(pair) != 2:
            raise ValueError(f"eval_set holds tuples (X, y), got one of {len(pair)}.")
        X, y = check_X(pair[0]), pair[1]
        check_unmasked("y", y)
        y = check_y(y)
        n = X.shape[0]
        if n != len(y):
            raise ValueError(
                f"eval_set holds X and y of as many rows, got {n} and {len(y)}."
            )
        kind = key.removeprefix("eval_")
        found.append(HeldOut(name, X, y, Queries.of(n, **{kind: entry})))
    return found


def _in_list(entry: Any) -> Any:
    """Return the entry of a single data set in a list of length one."""
    if entry is None:
        return None
    one = len(entry) == 1 and hasattr(entry[0], "__len__")
    return entry if one and not isinstance(entry[0], str) else [entry]


class Patience(NamedTuple):
    """Rule of early stopping: a measure has not risen for a number of iterations.

    Attributes
    ----------
    n_iter : int or None
        A fit stops if one of the measures has not increased for this number of
        iterations. None disables early stopping.
    least_rise : float
        Smallest increase that counts as a rise.
    first_only : bool
        Whether only the measure at the first rank can stop the fit.
    """

    n_iter: int | None = None
    least_rise: float = 0.0
    first_only: bool = False

    def best(self, values: list[float]) -> int | None:
        """Return the index of the best value if the fit should stop, else None."""
        if self.n_iter is None:
            return None
        best = 0
        for index, value in enumerate(values):
            if value > values[best] + self.least_rise:
                best = index
        return best if len(values) - 1 - best >= self.n_iter else None


class HeldOutMeasures:
    """NDCG of held-out queries after each iteration; a ``Watch`` of a fit.

    Parameters
    ----------
    ranker : BaseRanker
    sets : list of HeldOut
    ranks : sequence of int or None
        Cutoffs k of NDCG; None counts all ranks.
    patience : Patience

    Attributes
    ----------
    results : dict of dict of list of float
        NDCG after each iteration, by names of sets and measures.
    chosen : ndarray of shape (q,) or None
        The parameters of the best iteration, once early stopping ended the fit.
    best : int
        The number of the iteration whose parameters are returned.
    """

    def __init__(
        self,
        ranker: Any,
        sets: list[HeldOut],
        ranks: Sequence[int | None],
        patience: Patience,
    ) -> None:
        self._ranker = copy.copy(ranker)
        self._sets = sets
        self._ranks = {"ndcg" if k is None else f"ndcg@{k}": k for k in ranks}
        self._patience = patience
        self._seen: list[Floats] = []
        self.chosen: Floats | None = None
        self.best = 0
        self.results: dict[str, dict[str, list[float]]] = {
            data.name: {name: [] for name in self._ranks} for data in sets
        }

    def __call__(self, w: Floats, attributes: dict[str, Any]) -> bool:
        """Score the model of an iteration; return whether to stop."""
        self._score(attributes)
        self.best += 1
        if self._patience.n_iter is None:
            return False
        self._seen.append(w.copy())
        counting = list(self._ranks)[: 1 if self._patience.first_only else None]
        for data in self._sets:
            for name in counting:
                best = self._patience.best(self.results[data.name][name])
                if best is not None:
                    self.best, self.chosen = best + 1, self._seen[best]
                    return True
        return False

    def _score(self, attributes: dict[str, Any]) -> None:
        vars(self._ranker).update(attributes)
        empty = self._ranker.empty_queries
        for data in self._sets:
            scores = self._ranker._scores(data.X)
            for name, k in self._ranks.items():
                value = data.queries.ndcg(scores, data.y, k, empty)
                self.results[data.name][name].append(value)

    def end(self, fitted: Any) -> tuple[dict[str, dict[str, list[float]]], int]:
        """Return the results, and the number of the returned iteration.

        For a fit without iterations, the results have one entry, for the fitted model.
        """
        found = next(iter(self.results.values()), {})
        if not any(found.values()):
            self._score({name: getattr(fitted, name) for name in _OF_SCORES})
        return self.results, self.best

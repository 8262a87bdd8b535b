"""What a ranker is worth on other queries after each iteration, and when to stop."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .._checks import check_unmasked
from .._solving.solution import Floats
from .queries import Queries

# Attributes of a model from which its scores are.
_OF_SCORES = ("coef_", "intercept_")


class HeldOut(NamedTuple):
    """Queries that a model does not learn from.

    Attributes
    ----------
    name : str
    X : {ndarray, CSR matrix} of shape (n, d)
        As of ``_check_X``.
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
    """Return the data of ``eval_set``, checked.

    Parameters
    ----------
    sets : list of tuples (X, y), or one tuple
    names : list of str or None
        "valid_0" and so on where there are none.
    check_X, check_y : callable
    **queries : list or None
        For each name, such as ``eval_group``, what says which queries rows belong to,
        one for each of ``sets``.

    Raises
    ------
    ValueError
        If these are not as many, or nothing says what the queries are.
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
    """Return what belongs to one data set as what belongs to a list of one.

    It may be such a list already.
    """
    if entry is None:
        return None
    one = len(entry) == 1 and hasattr(entry[0], "__len__")
    return entry if one and not isinstance(entry[0], str) else [entry]


class Patience(NamedTuple):
    """When measures have not risen for long enough.

    Attributes
    ----------
    n_iter : int or None
        A fit ends where one of the measures has not risen for this many iterations;
        None for no end.
    least_rise : float
        Rises count where they are larger.
    first_only : bool
        Whether only measures at the first rank count.
    """

    n_iter: int | None = None
    least_rise: float = 0.0
    first_only: bool = False

    def best(self, values: list[float]) -> int | None:
        """Return the index of the best value, if it is time to end."""
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
        At which NDCG ends; None for all ranks.
    patience : Patience

    Attributes
    ----------
    results : dict of dict of list of float
        NDCG after each iteration, by names of data and measures.
    chosen : ndarray of shape (q,) or None
        The parameters of the best iteration, if the fit is to end there.
    best : int
        The number of the iteration that is kept.
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
            each.name: {name: [] for name in self._ranks} for each in sets
        }

    def __call__(self, w: Floats, attributes: dict[str, Any]) -> bool:
        """Score the model of an iteration; return whether to stop."""
        self._score(attributes)
        self.best += 1
        if self._patience.n_iter is None:
            return False
        self._seen.append(w.copy())
        counting = list(self._ranks)[: 1 if self._patience.first_only else None]
        for each in self._sets:
            for name in counting:
                best = self._patience.best(self.results[each.name][name])
                if best is not None:
                    self.best, self.chosen = best + 1, self._seen[best]
                    return True
        return False

    def _score(self, attributes: dict[str, Any]) -> None:
        vars(self._ranker).update(attributes)
        empty = self._ranker.empty_queries
        for each in self._sets:
            scores = self._ranker._scores(each.X)
            for name, k in self._ranks.items():
                value = each.queries.ndcg(scores, each.y, k, empty)
                self.results[each.name][name].append(value)

    def end(self, fitted: Any) -> tuple[dict[str, dict[str, list[float]]], int]:
        """Return the results and the iteration that was kept, of a fit that has ended.

        A fit without iterations has one entry, of the fitted model.
        """
        found = next(iter(self.results.values()), {})
        if not any(found.values()):
            self._score({name: getattr(fitted, name) for name in _OF_SCORES})
        return self.results, self.best

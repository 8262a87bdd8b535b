"""Arguments of LightGBM's ranker other than data: parameter names and callbacks."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .._checks import check_number
from .._checks.foreign_names import instead_of
from .._ranking.held_out import HeldOutMeasures, Patience

# Parameters that apply to trees only, with their defaults.
OF_TREES: dict[str, Any] = {
    "boosting_type": "gbdt",
    "num_leaves": 31,
    "max_depth": -1,
    "learning_rate": 0.1,
    "n_estimators": 100,
    "subsample_for_bin": 200000,
    "class_weight": None,
    "min_split_gain": 0.0,
    "min_child_weight": 1e-3,
    "min_child_samples": 20,
    "subsample": 1.0,
    "subsample_freq": 0,
    "colsample_bytree": 1.0,
    "importance_type": "split",
}

# Aliases in LightGBM for strengths of penalties and ranks of NDCG.
OTHER_NAMES = {
    "reg_alpha": ("lambda_l1", "l1_regularization"),
    "reg_lambda": ("lambda_l2", "lambda", "l2_regularization"),
    "eval_at": ("eval_at", "ndcg_eval_at", "ndcg_at"),
}

# Names of measures in LightGBM that are always computed.
_MEASURES = ("ndcg", "lambdarank", "rank_xendcg")

# Parameters that are ignored without a warning, since results do not depend on them.
_OF_RUNNING = frozenset(
    (
        "seed",
        "random_seed",
        "deterministic",
        "force_row_wise",
        "force_col_wise",
        "num_threads",
        "nthread",
        "verbosity",
        "device",
        "device_type",
    )
)


def first_of(name: str, others: Mapping[str, Any], default: Any) -> Any:
    """Return the value of a parameter given by one of its aliases, or the default."""
    for other in OTHER_NAMES[name]:
        if other in others:
            return others[other]
    return default


def without_effect(
    others: Mapping[str, Any], known: list[str], of_fit: list[str]
) -> str | None:
    """Return a message on parameters that a linear ranker does not have, if any.

    Parameters
    ----------
    others : dict
        Parameters that the constructor does not have.
    known, of_fit : list of str
        Names of the parameters of the constructor, and of ``fit``.
    """
    named = {name for names in OTHER_NAMES.values() for name in names}
    found, advice = [], ""
    for name, value in others.items():
        if name in named or name in _OF_RUNNING or _is_usual(name, value):
            continue
        found.append(f"{name}={value!r}")
        advice += instead_of(name, known, of_fit)
    if not found:
        return None
    return f"{', '.join(found)} without effect: not parameters of this ranker.{advice}"


def _is_usual(name: str, value: Any) -> bool:
    """Whether a value selects the only available measure: NDCG with gains 2^y - 1."""
    if name in ("metric", "metrics", "metric_types"):
        names = [value] if isinstance(value, str) or value is None else list(value)
        return all(each in (None, "", "None", *_MEASURES) for each in names)
    if name == "label_gain":
        gains = np.asarray(value, dtype=np.float64)
        return np.array_equal(gains, np.exp2(np.arange(len(gains))) - 1.0)
    return False


def patience_of(callbacks: Any) -> tuple[Patience, list[Any]]:
    """Return the stopping rule of LightGBM's callbacks, and all other callbacks.

    Raises
    ------
    ValueError
        If a callback has a separate stopping rule for each measure.
    """
    others, patience = [], Patience()
    for callback in callbacks or ():
        if not hasattr(callback, "stopping_rounds"):
            others.append(callback)
            continue
        check_number("stopping_rounds", callback.stopping_rounds, low=1, integer=True)
        least = getattr(callback, "min_delta", 0.0)
        check_number("min_delta", least, low=0.0)
        first_only = bool(getattr(callback, "first_metric_only", False))
        patience = Patience(int(callback.stopping_rounds), float(least), first_only)
    return patience, others


def is_of_results(callback: Any) -> bool:
    """Whether a callback reads results, as ``log_evaluation`` does.

    All other callbacks change parameters before an iteration.
    """
    return callable(callback) and not getattr(callback, "before_iteration", False)


class EvalResult(NamedTuple):
    """One result for LightGBM's callbacks, which read it by index or by name.

    Attributes
    ----------
    dataset_name, metric_name : str
    metric_value : float
    maximize : bool
        Whether larger values are better.
    """

    dataset_name: str
    metric_name: str
    metric_value: float
    maximize: bool

    @property
    def metric_std_dev(self) -> None:
        """None, since the value is not a mean over folds."""
        return

    def is_cv_result(self) -> bool:
        """Whether the value is a mean over folds."""
        return False


class CallbackEnv(NamedTuple):
    """The argument of LightGBM's callbacks.

    Attributes
    ----------
    model : Ranker
        The ranker with the coefficients of this iteration.
    params : dict
        Parameters of the ranker.
    iteration, begin_iteration, end_iteration : int
        Counted from zero.
    evaluation_result_list : list of EvalResult
    """

    model: Any
    params: dict[str, Any]
    iteration: int
    begin_iteration: int
    end_iteration: int
    evaluation_result_list: list[EvalResult]


class ReportedMeasures(HeldOutMeasures):
    """An evaluation that calls LightGBM's callbacks after each iteration.

    Parameters
    ----------
    ranker, sets, ranks, patience
        See ``HeldOutMeasures``.
    callbacks : list of callable
    """

    def __init__(self, *args: Any, callbacks: list[Callable[[Any], Any]]) -> None:
        super().__init__(*args)
        self._callbacks = sorted(callbacks, key=lambda each: getattr(each, "order", 0))

    def _score(self, attributes: dict[str, Any]) -> None:
        super()._score(attributes)
        results = [
            EvalResult(data, measure, values[-1], True)
            for data, found in self.results.items()
            for measure, values in found.items()
        ]
        if not results:
            return
        n_before = len(next(iter(self.results[results[0][0]].values()))) - 1
        ranker = self._ranker
        env = CallbackEnv(
            ranker, ranker.get_params(), n_before, 0, ranker.max_iter, results
        )
        for callback in self._callbacks:
            callback(env)


def checked_eval_set(eval_set: Any, eval_X: Any, eval_y: Any) -> Any:
    """Return the evaluation data in the form of ``eval_set``.

    Raises
    ------
    ValueError
        If data are given in both forms, or X without y, or numbers of X and y differ.
    """
    if eval_X is None and eval_y is None:
        return eval_set
    if eval_set is not None or eval_X is None or eval_y is None:
        raise ValueError(
            "Data to evaluate on are eval_set, a list of tuples (X, y), or eval_X and "
            "eval_y: give either the one or both of the others."
        )
    if not (isinstance(eval_X, tuple) or isinstance(eval_y, tuple)):
        return [(eval_X, eval_y)]
    if not (isinstance(eval_X, tuple) and isinstance(eval_y, tuple)) or (
        len(eval_X) != len(eval_y)
    ):
        raise ValueError(
            "eval_X and eval_y must both be tuples of as many data sets, or both be "
            "data of one."
        )
    return list(zip(eval_X, eval_y, strict=True))


def names_of(method: Callable[..., Any]) -> list[str]:
    """Return the names of the parameters of a class or method, not of ``**kwargs``."""
    found = inspect.signature(method).parameters.values()
    return [each.name for each in found if each.kind != each.VAR_KEYWORD]

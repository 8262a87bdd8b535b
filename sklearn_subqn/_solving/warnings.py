"""Warnings about solutions: missing proofs, and models that do not use the features."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._checks.callers import in_search, user_level
from .._core.names import listed
from .._core.solvers import Status
from ..exceptions import ConstantModelWarning
from .solution import Settings, Solution


def warn_of_gap(label: str, solution: Solution, tol: float, advice: str) -> None:
    """Warn that a problem without a penalty is solved only with a tiny penalty.

    ``advice`` is the beginning of the last sentence, which advises a small penalty.
    """
    warnings.warn(
        f"Fitting {label} did not prove tol={tol:g} where features have no penalty, "
        f"and solved it with a tiny one: the objective {solution.objective:.6g} is "
        f"proven to be within {solution.dual_gap:.2g} of the optimum without it, a "
        f"relative gap of {solution.relative_gap:.1e}. {advice} give these features a "
        "small penalty.",
        ConvergenceWarning,
        stacklevel=user_level(),
    )


def warn_of_separation(name: str, features: list[Any], *, together: bool) -> None:
    """Warn of features whose coefficients have no optimum without a penalty.

    ``together`` is true if only a combination of the features separates the samples.
    """
    each = "a combination" if together else "each"
    warnings.warn(
        f"{name} has no optimal coefficients of {listed(features)}: {each} of "
        "these features separates the samples of a class, or those with y = 0, from "
        "all others, so that the loss keeps falling as coefficients grow. Give these "
        "features a penalty, leave some of them out, or merge such categories with "
        "others.",
        ConvergenceWarning,
        stacklevel=user_level(),
    )


def warn_of_constants(
    name: str,
    solutions: list[Solution],
    instead: str,
    outputs: Any = None,
    weaker: str = "decrease alpha or tol",
) -> None:
    """Warn once if solutions of fitted problems do not use the features.

    Parameters
    ----------
    name : str
        Name of the estimator.
    solutions : list of Solution
    instead : str
        Advice where a smaller ``alpha`` does not help.
    outputs : sequence, optional
        The output of each of several problems, such as its class.
    weaker : str
        Advice to make more use of the features.
    """
    found = [index for index, solution in enumerate(solutions) if solution.constant]
    if not found or in_search():
        return
    of = ""
    if len(solutions) > 1:
        names = [str(i if outputs is None else outputs[i]) for i in found]
        of = f" for {len(found)} of {len(solutions)} problems ({listed(names)})"
    reason = "its objective is proven to be about as small with all coefficients zero"
    left = [solutions[i] for i in found if solutions[i].status is Status.AT_ZERO]
    if left:
        n_iter = max(solution.n_iter for solution in left)
        reason = f"no coefficients better than zero were found in {n_iter} iterations"
    warnings.warn(
        f"{name} makes no use of the features{of}: {reason}. Scale features that are "
        "tiny, and "
        f"{weaker}. Where that changes nothing, {instead}.",
        ConstantModelWarning,
        stacklevel=user_level(),
    )


def warn_of_tolerance(label: str, solution: Solution, settings: Settings) -> None:
    """Warn that the run of a problem ended before the tolerance was reached."""
    status, asked = solution.status, solution.asked
    # The advice names only parameters and options that the estimator has.
    solvers, accepted = settings.solvers, settings.accepted
    faster = settings.solver != "auto" and "auto" in solvers
    tolerance = asked.partition("=")[0]
    larger = [name for name in ("max_iter", tolerance) if name in accepted]
    looser = [f"increase {tolerance}"] if tolerance in accepted else []
    others = ["choose another solver"] if len(solvers) > 1 else []
    others = ["choose solver='auto'"] if faster else others
    weaker = {"alpha": "increase alpha", "C": "decrease C"}
    weaker_options = [way for name, way in weaker.items() if name in accepted]
    scaled = ["scale the features"]
    more = [f"increase {' or '.join(larger)}"] if larger else scaled
    reasons = {
        Status.MAX_ITER: (
            f"reached max_iter={settings.max_iter}",
            [*more, *others * faster],
        ),
        Status.STALLED: (
            "stopped because it no longer made progress",
            [*looser, *others, *scaled, *weaker_options],
        ),
        Status.ROUNDED: (
            "lost precision as its coefficients were rounded to float32,",
            ["convert X to float64", *scaled],
        ),
    }
    otherwise = (
        f"stopped: {status.sentence[0].lower()}{status.sentence[1:-1]},",
        [*looser, *others, *scaled],
    )
    reason, ways = reasons.get(status, otherwise)
    advice = _listed(ways)
    plural = "" if solution.n_iter == 1 else "s"
    proof = (
        f"proven to be within {solution.dual_gap:.2g} of the optimum, a relative gap "
        f"of {solution.relative_gap:.1e}"
        if np.isfinite(solution.dual_gap)
        else "not proven to be near the optimum"
    )
    warnings.warn(
        f"Fitting {label} {reason} after {solution.n_iter} iteration{plural}. Its "
        f"objective {solution.objective:.6g} is {proof}; {asked} was asked for. "
        f"{advice}.",
        ConvergenceWarning,
        stacklevel=user_level(),
    )


def _listed(ways: list[str]) -> str:
    """Return a sentence that lists alternatives, with a capital first letter."""
    *first, last = ways
    commas = ", ".join(first)
    text = f"{commas}, or {last}" if first else last
    return text[0].upper() + text[1:]


def warn_of_shares(name: str, total: float, sample_weight: Any) -> None:
    """Warn if the weights of many rows sum to one or less, like normalized weights."""
    # Any input that converts to an array is allowed, including None.
    weights = np.asarray(sample_weight)
    n = int(np.count_nonzero(weights)) if weights.ndim else 0
    # If ten or more weights have a sum near one, they were probably normalized.
    if n < 10 or total > 1.01 or in_search():
        return
    warnings.warn(
        f"{name} has alpha='auto', for which sample weights are numbers of rows: as "
        f"those of {n} rows sum to {total:g}, the penalty is as strong as for that few "
        "rows. If the weights were divided by their sum, multiply them by the number "
        "of rows, or give a number as alpha.",
        UserWarning,
        stacklevel=user_level(),
    )

"""The strength of ``alpha="auto"`` for classifiers, chosen on held-out rows.

The best strength depends on how well the features predict, and cannot be computed from
the shape of the data. Models with multiples of the strength by rule are therefore
fitted to two thirds of a sample of the rows, and evaluated on the last third. Each fit
starts at the previous solution. Sparse features keep their own units, unless the best
strength has a smaller mean loss with scales. A strength is preferred to another
strength if its mean loss is smaller by a hundredth, and by a standard error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from .._core.arrays import Array, Floats
from .._core.records import stored
from .._solving.callbacks import FitTask
from .._solving.process import ignoring_errors

# With fewer rows and entries, only the strength by rule is used, so that small fits are
# fast.
_LEAST_ROWS, _LEAST_ENTRIES = 200, 100_000

# The sample has 3000 rows, or a tenth of all rows if that is more. docs/constants.md
# has the figures.
_SAMPLE = 3000
_SHARE = 10

# Neighboring multiples differ by half a power of ten.
_STEP = 10.0**0.5
_MOST_STEPS = 4

# The search begins at this multiple for losses with kinks and features in their own
# units, whose best multiples are larger. docs/constants.md has the figures.
_OWN_UNITS = 10.0**0.5

# A step is accepted if it reduces the mean loss by a hundredth, and by a standard error
# of the difference. docs/constants.md has the figures.
_GAIN = 0.01

# This relative gap is small compared with the differences of held-out losses between
# neighboring strengths.
_TOL = 1e-2


@stored
class Choice(NamedTuple):
    """The strength in units of the rule, and whether features have scales.

    Attributes
    ----------
    multiple : float
        Factor of the strength by rule.
    scaled : bool
        Whether the penalty applies to features divided by their scales.
    """

    multiple: float = 1.0
    scaled: bool = True


class Tried(NamedTuple):
    """A choice, the loss of each held-out row, and the fitted attributes."""

    choice: Choice
    losses: Floats
    solution: dict[str, Any]


@ignoring_errors
def choose(
    estimator: Any,
    X: Any,
    y: Array,
    weights: Floats,
    classes: Array,
    total: float,
) -> tuple[Choice, list[tuple[float, bool, float]], dict[str, Any]]:
    """Return the best choice, all choices tried with their mean loss, and a start.

    The start has the attributes of the best model, if it is near the optimum for all
    rows: the loss is smooth, and the sample has more rows than features. It is empty
    otherwise.

    Parameters
    ----------
    estimator : LinearClassifier
        An estimator with valid parameters.
    X : {ndarray, CSR matrix} of shape (n, d)
    y : ndarray of shape (n,)
        Labels.
    weights : ndarray of shape (n,)
        Weights that sum to one.
    classes : ndarray
        Sorted labels of the rows with positive weight.
    total : float
        The sum of the weights before they were normalized.
    """
    used = np.flatnonzero(weights)
    n = len(used)
    # Rows with weight zero have no effect, as if they were removed.
    entries = np.diff(X.indptr)[used].sum() if sparse.issparse(X) else n * X.shape[1]
    # The rule has no strength if the sum of the weights is out of range.
    if (n < _LEAST_ROWS and entries < _LEAST_ENTRIES) or not 1.0 <= total <= 1e100:
        return Choice(), [], {}
    size = min(n, max(_SAMPLE, n // _SHARE))
    order = np.random.default_rng(0).permutation(used)
    held, train = np.sort(order[: size // 3]), np.sort(order[size // 3 : size])
    missing = np.setdiff1d(classes, y[train])
    if len(missing):
        # Every class needs a training row.
        others = order[np.isin(y[order], missing)]
        others = others[np.unique(y[others], return_index=True)[1]]
        train, held = np.union1d(train, others), np.setdiff1d(held, others)
    if not len(held):
        return Choice(), [], {}
    of_held = weights[held] / weights[held].sum()
    share = float(weights[train].sum())
    rows = X[train], y[train], weights[train] / share, classes
    data = X[held], y[held]
    tried: list[tuple[float, bool, float]] = []

    def better(new: Tried, old: Tried) -> bool:
        gain = old.losses - new.losses
        mean = float(of_held @ gain)
        error = float(np.linalg.norm(of_held * (gain - mean)))
        # The mean gain has to exceed the largest term, so that no single row decides.
        # ``least`` is positive, because differences of losses are random if all rows
        # are predicted well.
        least = _GAIN * float(of_held @ old.losses) + 0.2 / len(held)
        return bool(mean > max(error, least, float((of_held * gain).max())))

    model = estimator._for_fold()
    # Every ``solver`` gives the same choice.
    model.set_params(solver="auto", solver_options=None)
    model.tol = max(float(model.tol), _TOL)
    previous: dict[str, Any] = {}

    def fits(*, scaled: bool) -> tuple[Callable[[float], Tried], bool]:
        """Return a function that fits a multiple, and whether the loss is smooth.

        Fits start at the previous solution.
        """
        model._choice = Choice(scaled=scaled)
        problems = model._problems(*rows)
        problems.start_from(previous)
        rule, silent = problems.strengths(total * share), FitTask.silent()

        def fitted(multiple: float) -> Tried:
            for index, alpha in enumerate(multiple * rule):
                # Unpenalized features need no proof in this search.
                objective = problems.objective(index, float(alpha))
                problems.run_once(index, objective, problems.settings, silent)
            solution = problems.attributes()
            vars(model).update(solution)
            previous.update(solution, _duals=[each.dual for each in problems.starts])
            losses = _losses(model, *data)
            found = Tried(Choice(multiple, scaled), losses, solution)
            tried.append((*found.choice, float(of_held @ found.losses)))
            return found

        return fitted, problems.objective(0, float(rule[0])).loss.smooth

    def best(found: Tried, fitted: Callable[[float], Tried]) -> Tried:
        """Return the best multiple, in a search that starts at a choice."""
        for step in (1.0 / _STEP, _STEP):
            before = found
            for _ in range(_MOST_STEPS):
                new = fitted(found.choice.multiple * step)
                if not better(new, found):
                    break
                found = new
            if found is not before:
                break
        return found

    in_own_units = sparse.issparse(X) and estimator._has_scales()
    fitted, smooth = fits(scaled=not in_own_units)
    stronger = in_own_units and not smooth
    found = best(fitted(_OWN_UNITS if stronger else 1.0), fitted)
    if in_own_units:
        fitted, _ = fits(scaled=True)
        new = fitted(found.choice.multiple)
        if of_held @ (found.losses - new.losses) > 0.0:
            found = best(new, fitted)
    # The best L1 strength is proportional to 1 / n, the rule's to 1 / sqrt(n).
    multiple, scaled = found.choice
    choice = Choice(multiple * share ** (0.5 * estimator._l1_share()), scaled)
    if not smooth or len(train) <= X.shape[1]:
        return choice, tried, {}
    # The sample is a plain array, but a start needs the names of the columns.
    names = getattr(estimator, "feature_names_in_", ())
    return choice, tried, {**found.solution, "feature_names_in_": names}


def _losses(model: Any, X: Any, y: Array) -> Floats:
    """Return log losses of rows if there are probabilities, else zero-one losses."""
    if not hasattr(model, "predict_log_proba") or model._link() == "clipped":
        return (model.predict(X) != y).astype(np.float64)
    logarithms = model.predict_log_proba(X)
    places = np.searchsorted(model.classes_, y)
    return -logarithms[np.arange(len(places)), places].astype(np.float64)

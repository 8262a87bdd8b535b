"""Standard errors of fitted linear models: what parameters say of losses and penalties.

The sums over rows and the covariances are those of ``_inference``.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning

from .._blocks.row_blocks import RowBlocks
from .._checks import (
    as_numpy,
    as_sample_weights,
    check_number,
    check_offset,
    check_option,
    check_targets,
    exact_labels,
    exact_names,
    row_weights,
)
from .._checks.callers import user_level
from .._core.losses import BINARY_LOSSES, AnyLoss, Loss
from .._core.names import check_same_rows
from .._inference import (
    Block,
    CoefficientErrors,
    Covariance,
    Moments,
    Spec,
    bandwidth,
    block_moments,
    covariances,
    resampled,
    summed,
)
from .._inference.estimates import INTERCEPT
from .._solving.solution import Floats
from .block_methods import is_collection
from .predictions import variance_power
from .regression_losses import loss_of
from .tables import checked_names

# Losses of which inference knows more than that they are smooth.
_OF_LABELS = ("log_loss", "squared_hinge", "modified_huber", "exponential")
_OF_NUMBERS = (
    "squared_error",
    "huber",
    "squared_epsilon_insensitive",
    "poisson",
    "gamma",
    "tweedie",
    "quantile",
    "absolute_error",
)
_LIKELIHOODS = ("squared_error", "log_loss", "poisson", "gamma", "tweedie")
_QUANTILES = ("quantile", "absolute_error")
_KINDS = ("auto", "fisher", "HC0", "HC1", "cluster", "powell", "bootstrap")

# A model counts as fitted where it is within a tenth of each standard error of the
# optimum: intervals then keep their level but for half a percent.
_NEAR = 0.1


@dataclass(frozen=True)
class Options:
    """What ``standard_errors`` takes besides the model and data."""

    kind: str = "auto"
    groups: Any = None
    offset: Any = None
    dispersion: float | None = None
    weights: str = "precision"
    reference: Any = None
    feature_names: Any = None
    n_resamples: int = 200
    n_jobs: int | None = None
    random_state: Any = None


def coefficient_errors(
    own: Any,
    given: dict[str, Any],
    X: Any,
    y: Any,
    sample_weight: Any,
    options: Options,
) -> CoefficientErrors:
    """Return the standard errors of the coefficients of a model.

    Parameters
    ----------
    own : LinearEstimator
        Whose parameters say what the model minimizes.
    given : dict
        ``coef_`` and ``intercept_`` of the model, and its ``classes_``, ``alpha_`` and
        ``penalty_factor_`` as far as there are any.
    X, y, sample_weight
        The data that the model was fitted to.
    options : Options
    """
    coef = given["coef_"]
    coef = np.atleast_2d(coef.toarray() if sparse.issparse(coef) else np.asarray(coef))
    data = _Data(own, given, coef, options)
    name = _loss_name(own)
    kind = _kind(name, options)
    check_option("weights", options.weights, ("precision", "frequency"))
    blocks = data.blocks(X, y, sample_weight)
    spec = _spec(own, name, coef, given, kind, options, data)
    if spec.levels:
        spec = replace(spec, widths=_widths(blocks, spec))
    if kind == "bootstrap":
        return _by_bootstrap(own, data, spec, X, y, sample_weight, options)
    moments = summed(blocks.each(partial(block_moments, spec=spec)))
    found = [
        _covariance(own, spec, each, problem, name, kind, options, given)
        for problem, each in enumerate(moments)
    ]
    _check_fitted(found)
    return _assembled(spec, data, found, kind, name == "squared_error", options)


def _loss_name(own: Any) -> str:
    """Return the name of a loss that has standard errors, "" of one without a name."""
    loss = getattr(own, "loss", "log_loss")
    known = _OF_LABELS if is_classifier(own) else _OF_NUMBERS
    if isinstance(loss, AnyLoss) and Loss.of(loss).smooth and _has_one_score(loss):
        return ""
    if not isinstance(loss, str) or loss not in known or hasattr(own, "metric_"):
        raise ValueError(
            f"{type(own).__name__} with loss={loss!r} has no standard errors by "
            f"formulas. Losses that have are {', '.join(map(repr, known))}; for others "
            "take the spread of refits to resampled rows."
        )
    return loss


def _has_one_score(loss: Any) -> bool:
    whole = Loss.of(loss)
    return not (whole.joint or whole.ranks or whole.counts_rows)


def _kind(name: str, options: Options) -> str:
    """Return how covariances are found."""
    check_option("kind", options.kind, _KINDS)
    kind = options.kind
    if kind == "auto":
        if options.groups is not None:
            return "cluster"
        if name in _QUANTILES:
            return "powell"
        return "fisher" if name in _LIKELIHOODS else "HC0"
    if kind == "powell" and name not in _QUANTILES:
        raise ValueError(f"kind='powell' is for quantiles; got loss={name!r}.")
    if kind == "fisher" and name not in _LIKELIHOODS + _QUANTILES:
        raise ValueError(
            f"kind='fisher' needs a loss that is a likelihood, as those of "
            f"{', '.join(map(repr, _LIKELIHOODS))} are; got loss={name!r}. Take 'HC0' "
            "or 'HC1'."
        )
    if options.groups is not None and kind not in ("cluster", "bootstrap"):
        raise ValueError(f"groups are for kind='cluster' or 'bootstrap'; got {kind!r}.")
    if kind == "cluster" and options.groups is None:
        raise ValueError("kind='cluster' needs groups, one name for each sample.")
    return kind


def _spec(
    own: Any,
    name: str,
    coef: Floats,
    given: dict[str, Any],
    kind: str,
    options: Options,
    data: _Data,
) -> Spec:
    loss: Loss | None
    power, levels = None, np.empty(0)
    if is_classifier(own):
        loss = Loss.of(BINARY_LOSSES[name] if name else own.loss)
        if data.is_joint:
            loss = None
    else:
        loss = Loss.of(loss_of(own) if name else own.loss)
        power = variance_power(own) if name else None
        if name in _QUANTILES:
            own_levels = own.quantile if name == "quantile" else 0.5
            levels = np.broadcast_to(own_levels, len(coef)).astype(np.float64)
    fit_intercept = bool(own.fit_intercept)
    return Spec(
        coef,
        np.broadcast_to(np.ravel(given["intercept_"]), len(coef)).astype(np.float64),
        loss,
        fit_intercept,
        power,
        tuple(levels.tolist()),
        (),
        kind in ("fisher", "HC0", "HC1") and levels.size > 0,
        kind == "fisher",
        options.weights == "frequency",
        data.shift if fit_intercept else np.zeros(coef.shape[1]),
    )


def _widths(blocks: Any, spec: Spec) -> tuple[float, ...]:
    """Return the half-widths of the kernels of residuals, for each quantile."""
    parts = list(blocks.each(partial(_residuals, spec=spec)))
    residuals, targets, weights = (
        np.concatenate(each) for each in zip(*parts, strict=True)
    )
    repeats = weights.astype(np.intp) if spec.counts else (weights > 0.0).astype(int)
    return tuple(
        bandwidth(
            np.repeat(residuals[:, i], repeats), np.repeat(targets[:, i], repeats), q
        )
        for i, q in enumerate(spec.levels)
    )


def _residuals(block: Block, spec: Spec) -> tuple[Floats, Floats, Floats]:
    return block.targets - block.scores(spec), block.targets, block.weights


def _covariance(
    own: Any,
    spec: Spec,
    moments: Moments,
    problem: int,
    name: str,
    kind: str,
    options: Options,
    given: dict[str, Any],
) -> Covariance:
    """Return the covariance of the estimates of a problem, in shifted features."""
    q = spec.coef.shape[1] + spec.fit_intercept
    diagonal = np.zeros(q)
    strengths = _strengths(own, given, moments.total)
    diagonal[: spec.coef.shape[1]] = strengths[min(problem, len(strengths) - 1)]
    k = len(spec.coef)
    if spec.joint:
        # Coefficients that sum to zero over classes are M times their differences from
        # those of the first class.
        M = np.vstack([np.zeros(k - 1), np.eye(k - 1)]) - 1.0 / k
        penalty = np.kron(M.T @ M, np.diag(diagonal))
        coef = spec.coef[1:] - spec.coef[0]
        theta = np.column_stack([coef, np.zeros(k - 1)])[:, :q].ravel()
    else:
        penalty = np.diag(diagonal)
        theta = np.append(spec.coef[problem], 0.0)[:q]
    gradient = moments.gradient + penalty @ theta
    n_blocks = len(moments.gradient) // q
    first = [q - 1, *range(q - 1)] if spec.fit_intercept else list(range(q))
    order = np.concatenate([np.array(first) + a * q for a in range(n_blocks)])
    if spec.common_density:
        density = moments.chi_square / moments.total
        moments = moments._replace(hessian=density * moments.hessian)
        level = spec.levels[problem]
        if kind == "fisher":
            # The covariance of first derivatives is q (1 - q) times products of rows.
            factor = level * (1.0 - level) / density
            return covariances(moments, penalty, gradient, kind, order, factor)
    if kind == "powell":
        kind = "HC0"
    dispersion = options.dispersion
    if dispersion is None and name in ("log_loss", "poisson"):
        dispersion = 1.0
    return covariances(moments, penalty, gradient, kind, order, dispersion)


def _strengths(own: Any, given: dict[str, Any], total: float) -> Floats:
    """Return the second derivatives of the penalty, of shape (problems or 1, d)."""
    if hasattr(own, "C"):
        return np.atleast_2d(0.0 if np.isinf(own.C) else 1.0 / float(own.C))
    alpha = given.get("alpha_", own.alpha)
    if isinstance(alpha, str):
        raise ValueError(
            f"alpha={alpha!r} says nothing of a model that is not fitted; give a number."
        )
    factors = given.get("penalty_factor_")
    if factors is None and own.penalty_factor is not None:
        factors = own._penalty_factors()
    factors = np.ones(1) if factors is None else np.asarray(factors)
    strengths: Floats = total * np.atleast_1d(alpha)[:, None] * factors
    return strengths


def _check_fitted(found: list[Covariance]) -> None:
    """Warn of a model that is far from its optimum beside its standard errors."""
    with np.errstate(invalid="ignore", divide="ignore"):
        distances = [
            np.abs(each.newton) / np.sqrt(np.diag(each.covariance)) for each in found
        ]
    largest = max(float(np.nanmax(each, initial=0.0)) for each in distances)
    if largest > _NEAR:
        warnings.warn(
            f"The model is {largest:.2g} standard errors from its optimum in one of its "
            "coefficients, so that intervals around it are off by as much. Fit it with "
            "a smaller tol, such as 1e-8, to the same data.",
            ConvergenceWarning,
            stacklevel=user_level(),
        )


class _Data:
    """Reads data for a model as it was read for its fit."""

    def __init__(
        self, own: Any, given: dict[str, Any], coef: Floats, options: Options
    ) -> None:
        self.own = own = clone(own)
        self.options, self.coef, self.given = options, coef, given
        own.n_features_in_ = coef.shape[1]
        self.names: Any = given.get("feature_names_in_")
        if self.names is not None:
            own.feature_names_in_ = self.names
        self.classes: Any = given.get("classes_")
        self.is_joint = (
            is_classifier(own)
            and len(coef) > 1
            and getattr(own, "loss", "log_loss") == "log_loss"
            and own._link() == "softmax"
        )
        self.shift = np.zeros(coef.shape[1])

    def like_fitted(self) -> Any:
        """Return an estimator with the strengths that the model was fitted with."""
        own = clone(self.own)
        if isinstance(getattr(own, "alpha", None), str):
            own.alpha = float(np.max(self.given["alpha_"]))
            own.penalty_factor = np.asarray(self.given["penalty_factor_"])
        own.warm_start = True
        return own

    def blocks(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Return the blocks of rows of any data, and set the shift of the features."""
        if is_collection(X):
            return self._of_collection(X, y, sample_weight)
        options = self.options
        check_same_rows(
            X, sample_weight=sample_weight, offset=options.offset, groups=options.groups
        )
        X, y = self.own._check_X(X, y, reset=False, several=True)
        block = self.block(X, y, sample_weight, options.offset, options.groups)
        if not sparse.issparse(X):
            self.shift = np.asarray(X.mean(axis=0, dtype=np.float64))
        return _InMemory(block)

    def block(
        self, X: Any, y: Any, sample_weight: Any, offset: Any = None, groups: Any = None
    ) -> Block:
        """Return checked rows with their targets and weights."""
        n = X.shape[0]
        if is_classifier(self.own):
            y = np.ravel(exact_labels("y", y))
            class_weight = getattr(self.own, "class_weight", None)
            weights = row_weights(class_weight, self.classes, y, sample_weight)
            known = np.isin(y, self.classes)
            if not known[weights > 0.0].all():
                raise ValueError(
                    f"y has classes that the model does not know: it has "
                    f"{self.classes.tolist()}."
                )
            codes = np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)
            if self.is_joint:
                targets = codes[:, None].astype(np.float64)
            elif len(self.coef) == 1:
                targets = np.where(codes == 1, 1.0, -1.0)[:, None]
            else:
                each = codes[:, None] == np.arange(len(self.classes))
                targets = np.where(each, 1.0, -1.0)
        else:
            weights = as_sample_weights(sample_weight, n)
            targets = check_targets(y).reshape(n, -1)
            if targets.shape[1] == 1:
                targets = np.broadcast_to(targets, (n, len(self.coef)))
            if targets.shape[1] != len(self.coef):
                raise ValueError(
                    f"The model has {len(self.coef)} outputs, y {targets.shape[1]}."
                )
        if self.options.weights == "frequency" and np.any(weights % 1.0):
            raise ValueError(
                "weights='frequency' needs whole numbers as weights, which count rows."
            )
        if offset is not None:
            offset = check_offset(offset, n)
        if groups is not None:
            groups = np.unique(exact_names(groups), return_inverse=True)[1]
            if len(groups) != n:
                raise ValueError(
                    f"groups must have one name for each of {n} samples, got "
                    f"{len(groups)}."
                )
        return Block(X, targets, weights, offset, groups)

    def _of_collection(self, X: Any, y: Any, sample_weight: Any) -> Any:
        options = self.options
        for name in ("offset", "groups"):
            if getattr(options, name) is not None:
                raise ValueError(f"{name} is not supported for data in blocks.")
        if options.kind == "bootstrap":
            raise ValueError("kind='bootstrap' is not supported for data in blocks.")
        if isinstance(getattr(self.own, "class_weight", None), str):
            raise ValueError(
                "class_weight='balanced' is not supported for data in blocks: give "
                "weights of the classes as a dict."
            )
        read = partial(_read, data=self)
        if isinstance(X, RowBlocks):
            return _Mapped(partial(X._with_targets, y, sample_weight), read)
        # Needs Dask.
        from .._blocks.dask_collections import rows_mapped

        return _Mapped(partial(rows_mapped, X, y, sample_weight), read)


class _InMemory:
    """All rows in one block."""

    def __init__(self, block: Block) -> None:
        self._block = block

    def each(self, function: Any) -> list[Any]:
        """Return what a function returns for each block, in a list."""
        return [function(self._block)]


class _Mapped:
    """Blocks of rows that are elsewhere."""

    def __init__(self, mapped: Any, read: Any) -> None:
        self._mapped, self._read = mapped, read

    def each(self, function: Any) -> list[Any]:
        """Return what a function returns for each block that has rows."""
        results = self._mapped(partial(self._read, function=function))
        return [each for each in results if each is not None]


def _read(X: Any, y: Any, sample_weight: Any, data: _Data, function: Any) -> Any:
    """Return what a function returns for a block, None for one without rows."""
    if not X.shape[0]:
        return None
    X = data.own._check_X(X, reset=False)
    return function(data.block(X, as_numpy(y), sample_weight))


def _assembled(
    spec: Spec,
    data: _Data,
    found: list[Covariance],
    kind: str,
    squares: bool,
    options: Options,
    resamples: Floats | None = None,
) -> CoefficientErrors:
    """Return estimates and covariances by name, intercepts first."""
    names, outputs, output_name = _names(spec, data, options)
    estimates, covariance = [], []
    for problem, each in enumerate(found):
        values, matrix = _in_features(spec, each, problem)
        if spec.joint:
            M = _of_classes(data.classes, options.reference, spec)
            values, matrix = M @ values, M @ matrix @ M.T
        estimates.append(values)
        covariance.append(matrix)
    p = len(names)
    whole = np.full((p, p), np.nan)
    first = 0
    for matrix in covariance:
        places = slice(first, first + len(matrix))
        whole[places, places] = matrix
        first += len(matrix)
    theta = np.concatenate(estimates)
    undetermined = _left_out(spec, found, len(theta))
    theta[undetermined] = np.nan
    whole[undetermined], whole[:, undetermined] = np.nan, np.nan
    dropped = sorted({names[j] for j in np.flatnonzero(undetermined)}, key=str)
    if dropped:
        warnings.warn(
            f"{len(dropped)} features are combinations of those before them, or "
            f"constant, and have no estimates: {', '.join(map(str, dropped[:5]))}"
            f"{', ...' if dropped[5:] else ''}. The others have those of the model "
            "without these.",
            UserWarning,
            stacklevel=user_level(),
        )
    dispersions = np.array([each.dispersion for each in found])
    return CoefficientErrors(
        np.array(names, dtype=object),
        outputs,
        output_name,
        theta,
        whole,
        kind,
        dispersions if len(found) > 1 else float(dispersions[0]),
        found[0].df_resid,
        squares and kind == "fisher" and options.dispersion is None,
        dropped,
        resamples,
    )


def _to_features(spec: Spec) -> Floats:
    """Return the matrix from parameters of shifted features to those of features.

    Parameters of a score come with the intercept last, and go with it first.
    """
    d, q = spec.coef.shape[1], spec.coef.shape[1] + spec.fit_intercept
    matrix = np.eye(q)
    if spec.fit_intercept:
        matrix[d, :d] = -spec.shift
        matrix = np.roll(matrix, 1, axis=0)
    return np.kron(np.eye(len(spec.coef) - 1 if spec.joint else 1), matrix)


def _theta(spec: Spec, problem: int) -> Floats:
    """Return the parameters of a problem for shifted features."""
    coef, intercept = spec.coef, spec.intercept
    if spec.joint:
        coef, intercept = coef[1:] - coef[0], intercept[1:] - intercept[0]
    else:
        coef, intercept = coef[[problem]], intercept[[problem]]
    if not spec.fit_intercept:
        return coef.ravel()
    return np.column_stack([coef, intercept + coef @ spec.shift]).ravel()


def _in_features(
    spec: Spec, each: Covariance, problem: int
) -> tuple[Floats, Floats]:
    """Return estimates and covariance of a problem, zero where not determined."""
    matrix = _to_features(spec)
    covariance = matrix @ np.nan_to_num(each.covariance) @ matrix.T
    return matrix @ each.recombine @ _theta(spec, problem), covariance


def _of_classes(classes: Any, reference: Any, spec: Spec) -> Floats:
    """Return the matrix from differences from the first class to what is asked for."""
    k = len(classes)
    whole = np.vstack([np.zeros(k - 1), np.eye(k - 1)])
    if reference is None:
        whole = whole - 1.0 / k
    else:
        place = classes.tolist().index(reference)
        whole = np.delete(whole - whole[place], place, axis=0)
    return np.kron(whole, np.eye(spec.coef.shape[1] + spec.fit_intercept))


def _names(
    spec: Spec, data: _Data, options: Options
) -> tuple[list[Any], npt.NDArray[Any] | None, str | None]:
    """Return the features and outputs of all estimates, and what outputs are."""
    given = options.feature_names
    d = spec.coef.shape[1]
    if given is None:
        given = data.names
    names = checked_names(given, d).tolist()
    names = [INTERCEPT, *names] if spec.fit_intercept else names
    outputs: Any = None
    what = None
    if is_classifier(data.own):
        what, outputs = "class", data.classes
        if len(spec.coef) == 1:
            outputs = None
        elif options.reference is not None:
            if not spec.joint:
                raise ValueError(
                    "reference is for the multinomial log loss, whose classes are "
                    "compared; here each class has a problem of its own."
                )
            if options.reference not in data.classes.tolist():
                raise ValueError(
                    f"reference must be one of the classes {data.classes.tolist()}; "
                    f"got {options.reference!r}."
                )
            outputs = outputs[outputs != options.reference]
    elif len(spec.coef) > 1:
        quantiles = np.ndim(getattr(data.own, "quantile", 0.5)) > 0 and spec.levels
        what = "quantile" if quantiles else "output"
        outputs = np.array(spec.levels) if quantiles else np.arange(len(spec.coef))
    if outputs is None:
        return names, None, None
    return names * len(outputs), np.repeat(outputs, len(names)), what


def _left_out(spec: Spec, found: list[Covariance], p: int) -> npt.NDArray[np.bool_]:
    """Return which estimates are not determined, of shape (p,)."""
    q = spec.coef.shape[1] + spec.fit_intercept
    left_out = []
    for each in found:
        some = ~each.determined.reshape(-1, q)
        some = np.roll(some, 1, axis=1) if spec.fit_intercept else some
        if spec.joint:
            some = np.tile(some.any(axis=0), p // q)
        left_out.append(some.ravel())
    return np.concatenate(left_out)


def _by_bootstrap(
    own: Any,
    data: _Data,
    spec: Spec,
    X: Any,
    y: Any,
    sample_weight: Any,
    options: Options,
) -> CoefficientErrors:
    """Return standard errors by refits to reweighted rows."""
    check_number("n_resamples", options.n_resamples, low=2, integer=True)
    blocks = data.blocks(X, y, sample_weight)
    kind = "powell" if spec.levels else "HC0"
    given = data.given
    moments = summed(blocks.each(partial(block_moments, spec=spec)))
    found = [
        _covariance(own, spec, each, problem, "", kind, options, given)
        for problem, each in enumerate(moments)
    ]
    _check_fitted(found)
    refit = partial(
        _refit, data.like_fitted(), spec, found, data.classes, X, y, sample_weight, options
    )
    n_rows = X.shape[0]
    resamples = resampled(
        refit,
        n_rows,
        options.groups,
        options.n_resamples,
        options.n_jobs,
        options.random_state,
    )
    result = _assembled(spec, data, found, "bootstrap", False, options, resamples)
    covariance = np.cov(resamples.T)
    covariance[np.isnan(result.covariance) & np.eye(len(covariance), dtype=bool)] = np.nan
    return replace(result, covariance=np.atleast_2d(covariance))


def _refit(
    own: Any,
    spec: Spec,
    found: list[Covariance],
    classes: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    options: Options,
) -> Any:
    """Return a function from factors of rows to the estimates of a refit."""
    model = clone(own)
    base = as_sample_weights(sample_weight, X.shape[0])
    others = {} if options.offset is None else {"offset": options.offset}

    def estimates_of(factors: Floats) -> Floats:
        model.fit(X, y, sample_weight=base * factors, **others)
        changed = replace(
            spec,
            coef=np.atleast_2d(model.coef_),
            intercept=np.broadcast_to(np.ravel(model.intercept_), len(spec.coef)),
        )
        estimates = []
        for problem, each in enumerate(found):
            values = _in_features(changed, each, problem)[0]
            if spec.joint:
                values = _of_classes(classes, options.reference, spec) @ values
            estimates.append(values)
        return np.concatenate(estimates)

    return estimates_of

"""Small problems made to break proofs: data, all kinds of fits, and what may be wrong.

A ``Case`` is a kind of fit: an estimator with a loss and a penalty, the solvers that
take them, and its objective by the formulas of ``_formulas``. ``check`` fits one random
problem by all solvers and returns what is wrong with their proofs and objectives.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from _door import (
    BINARY_LOSSES,
    BUNDLE_SOLVERS,
    L2,
    MULTINOMIAL_LOSS,
    NOVELTY_LOSS,
    DualLoss,
    ElasticNet,
    EntropyPenalty,
    GroupPenalty,
    LabelOrder,
    NormalizedEntropy,
    QuadraticForm,
    Simplex,
    SquaredNorm,
    elastic_net,
    regression_losses,
)
from _formats import FORMATS, snapshot
from _formulas import (
    GROUP_NORMS,
    LONG,
    ONE_SCORE,
    PENALTIES,
    POWER,
    by_assignment,
    by_inversions,
    chain_loss,
    each_pair,
    elastic,
    exact_scores,
    given_pairs,
    long,
    matrix,
    multiclass_hinge,
    multilabel_hinge,
    multilabel_mean,
    multilabel_pairs,
    of_queries,
    ordinal_logistic,
    path_shares,
    positive,
    sizes_of_scores,
    softmax_loss,
    squares,
)
from scipy import sparse

from sklearn_subqn import (
    BMRMClassifier,
    BMRMOutlierDetector,
    BMRMRanker,
    BMRMRegressor,
    ConditionalRandomField,
    L1LogisticOWLQN,
    LinearChainCRF,
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
    RowBlocks,
    StructuredSVM,
    SubLBFGSLinearSVC,
    losses,
)

#: Processor time that a fit may take, in seconds, on machines of any kind.
MOST_SECONDS = 20.0

# Rounding that an objective may have: a multiple of the unit of the terms that it sums
# and of the scores that it is of, and the share of itself that updates may leave.
_OF_TERMS, OF_VALUE = 100.0, 1e3

# And those that the formulas have, of extended precision.
_OF_FEW = 4.0
EPS = float(np.finfo(float).eps)

# Double precision knows no smaller numbers.
_TINY = float(np.finfo(float).tiny)


class Problem(NamedTuple):
    """Data, weights, a strength and whether intercepts are fitted.

    ``form`` says how X is stored, one of ``FORMATS``, None for as it is; ``groups`` are
    the queries of rows, or numbers of sequences; ``warm`` what another fit begins with,
    None for none, and ``more`` what only some kinds have.
    """

    X: Any
    y: Any
    weights: Any
    alpha: float
    fit_intercept: bool
    rng: Any
    form: str | None = None
    groups: Any = None
    warm: str | None = None
    more: Any = None

    def stored(self, X: Any) -> Any:
        """Return X as it is stored."""
        return X if self.form is None else FORMATS[self.form](X)

    @property
    def shares(self) -> Any:
        """The weights, of sum one."""
        s = long(self.weights)
        return s / s.sum()


class Terms(NamedTuple):
    """An objective in extended precision: a penalty, and a risk of scores.

    ``sizes`` are those of the terms that the scores sum, and what is added to them. The
    risk is of numbers of size ``unit`` that cancel, such as sums with logarithms near
    zero.
    """

    penalty: Any
    scores: Any
    sizes: Any
    risk: Callable[[Any], Any]
    unit: float = 0.0

    def value(self, alpha: float) -> Any:
        return LONG(alpha) * self.penalty + self.risk(self.scores)

    def rounding(self, alpha: float) -> float:
        """How far off the value may be: by rounding of its scores and of its terms."""
        risk = self.risk(self.scores)
        charge = OF_VALUE * EPS * (abs(risk) + LONG(alpha) * abs(self.penalty))
        charge += 4.0 * EPS * self.unit + _TINY
        of_scores = self._of_scores
        return float(charge + of_scores) + self._own_rounding(of_scores)

    @property
    def _of_scores(self) -> Any:
        """What the rounding of scores may change the risk by, times a multiple."""
        risk, total = self.risk(self.scores), LONG(0)
        shifts = LONG(_OF_TERMS * EPS) * (self.sizes + 1)
        for place in np.ndindex(self.scores.shape):
            changes = []
            for sign in (-1, 1):
                moved = self.scores.copy()
                moved[place] += sign * shifts[place]
                changes.append(abs(self.risk(moved) - risk))
            total += max(changes)
        return total

    def own_rounding(self) -> float:
        """How far off the value is that ``value`` returns, of extended precision.

        The terms of a risk near zero may be of the size of one, as costs and margins
        are, and cancel.
        """
        return self._own_rounding(self._of_scores)

    def _own_rounding(self, of_scores: Any) -> float:
        unit = of_scores / LONG(_OF_TERMS * EPS) + self.unit + 1
        return float(_OF_FEW * np.finfo(LONG).eps * unit)


class Case(NamedTuple):
    """A kind of fit: solvers, an estimator of one, and its objective.

    ``terms(coef, intercept, p)`` are those of an objective at parameters in extended
    precision, ``parameters(model)`` those of a fitted model; models with other ``key``
    have other objectives.
    """

    name: str
    targets: str
    solvers: list[str]
    make: Callable[[Problem, str], Any]
    terms: Callable[[Any, Any, Problem], Terms]
    equal_weights: bool = False
    fit: Callable[[Any, Problem, Any], Any] = lambda model, p, X: model.fit(
        X, p.y, sample_weight=p.weights
    )
    parameters: Callable[[Any], tuple[Any, Any]] = lambda model: (
        model.coef_,
        model.intercept_,
    )
    key: Callable[[Any], Any] = lambda model: None

    def terms_of(self, model: Any, p: Problem) -> Terms:
        if self.key(model) is not None:
            p = p._replace(more=self.key(model))
        coef, intercept = self.parameters(model)
        return self.terms(long(coef), long(intercept), p)


# Data.


def hard_data(rng: np.random.Generator) -> Any:
    """Features with some of the troubles at once."""
    n, d = int(rng.integers(2, 12)), int(rng.integers(1, 6))
    if rng.random() < 0.1:
        n, d = 4 * n, 4 * d
    X = rng.normal(size=(n, d))
    if rng.random() < 0.3:
        X *= np.exp(rng.normal(scale=3.0, size=X.shape))
    if rng.random() < 0.3:
        X[rng.random(X.shape) < 0.5] = 0.0
    if rng.random() < 0.4:
        X *= 10.0 ** rng.uniform(-6, 7, size=d)
    if rng.random() < 0.3:
        X += 10.0 ** rng.uniform(-2, 3, size=d)
    if rng.random() < 0.3:
        X[rng.integers(n, size=n // 2)] *= 10.0 ** rng.uniform(0, 6)
    if rng.random() < 0.3:
        X = X[rng.integers(n, size=n)]
    if rng.random() < 0.2:
        X = np.round(X)
    if rng.random() < 0.1:
        X *= 10.0 ** rng.uniform(-8, 8)
    if rng.random() < 0.25:
        X = X.astype(np.float32)
    return X


def _classes(X: Any, k: int, rng: Any) -> Any:
    """Classes, all of them where there are as many rows; some apart, or nearly."""
    if rng.random() < 0.4:
        s = X.astype(float) @ rng.normal(size=X.shape[1])
        y = np.searchsorted(np.quantile(s, np.arange(1, k) / k), s)
    else:
        y = rng.integers(0, k, size=len(X))
    k = min(k, len(X))
    y[rng.permutation(len(X))[:k]] = np.arange(k)
    return y


def problem(seed: int, targets: str) -> Problem:
    """A random problem with targets of a kind.

    "2", "3" for classes, "real", "counts", "positive", "amounts", which may be zero,
    "labels", "queries" for relevances, "pairs" for preferences of rows, "chains" for
    sequences of labels, "structures".
    """
    rng = np.random.default_rng(seed)
    X = hard_data(rng)
    if targets.isdecimal() and len(X) < int(targets):
        X = np.concatenate([X, X])
    n = len(X)
    groups = more = None
    if targets == "labels":
        y = rng.integers(0, 2, size=(n, 3))
        y[0], y[-1] = [1, 0, 0], [0, 1, 1]
    elif targets == "real":
        y = X.astype(float) @ rng.normal(size=X.shape[1])
        y = y / (np.abs(y).max() or 1.0) + 10.0 ** rng.uniform(-6, 1) * rng.normal(
            size=n
        )
        if rng.random() < 0.3:
            y = np.round(y, 1)
        y = y * 10.0 ** rng.uniform(-4, 4) + rng.choice([0.0, 1e3])
    elif targets == "counts":
        y = rng.poisson(2.0, size=n).astype(float)
        y[0] += 1.0
    elif targets == "positive":
        y = np.exp(rng.normal(scale=10.0 ** rng.uniform(-2, 1), size=n))
        y = y * 10.0 ** rng.uniform(-4, 4)
    elif targets == "amounts":
        y = rng.gamma(10.0 ** rng.uniform(-1, 2), size=n) * rng.integers(0, 2, size=n)
        y = y * 10.0 ** rng.uniform(-4, 4)
        y[0] += y.max() or 1.0
    elif targets == "queries":
        y = rng.integers(0, rng.integers(2, 5), size=n)
        y[0], y[-1] = 0, 1
        groups = np.sort(rng.integers(0, 3, size=n))
        groups[-1] = groups[0] if rng.random() < 0.3 else groups[-1]
        groups = np.sort(groups)
        more = 10.0 ** rng.uniform(-3, 3, size=len(np.unique(groups)))
    elif targets == "pairs":
        m = int(rng.integers(1, 2 * n))
        better = rng.integers(0, n, size=m)
        y = np.column_stack([better, (better + rng.integers(1, n, size=m)) % n])
    elif targets == "chains":
        groups = np.sort(rng.integers(0, 4, size=n))
        groups = np.unique(groups + 4 * (np.arange(n) // 4), return_inverse=True)[1]
        y = _classes(X, min(3, n), rng)
    elif targets == "structures":
        y = rng.integers(0, 4, size=n)
        features = rng.normal(size=(n, 4, X.shape[1])) * np.abs(X[:, np.newaxis])
        costs = rng.integers(0, 4, size=(n, 4)) / 2.0
        costs[np.arange(n), y] = 0.0
        more = features, costs
    else:
        y = _classes(X, int(targets), rng)
    n_weights = len(y) if targets == "pairs" else n
    if targets == "chains":
        n_weights = int(groups[-1]) + 1
    weights = np.ones(n_weights)
    if rng.random() < 0.6:
        weights = 10.0 ** rng.uniform(-6, 6, size=n_weights)
    alpha = 10.0 ** rng.uniform(-8, 2)
    intercept, is_sparse = bool(rng.random() < 0.7), bool(rng.random() < 0.3)
    warm = None
    if rng.random() < 0.3:
        warm = str(rng.choice(["alpha", "units", "float32"]))
    form = list(FORMATS)[seed % len(FORMATS)] if is_sparse else None
    return Problem(X, y, weights, alpha, intercept, rng, form, groups, warm, more)


# Kinds of fits.


def _names(registry: Any, loss: Any, penalty: str = "l2") -> list[str]:
    """Names of the solvers that take a loss with a penalty."""
    kind: dict[str, Any] = {
        "l2": L2(1),
        "l1": ElasticNet(1),
        "elasticnet": ElasticNet(1, 0.5),
    }
    kind |= {"entropy": EntropyPenalty(2), "quadratic": QuadraticForm(np.eye(2))}
    kind["normalized_entropy"] = NormalizedEntropy(2)
    if penalty in GROUP_NORMS:
        square = 1.0 * penalty.startswith("group_elasticnet")
        norms = np.zeros(1), np.ones(1), np.full(1, square)
        kind[penalty] = GroupPenalty(np.zeros(2, dtype=int), *norms)
    regularizer = kind.get(penalty, SquaredNorm(1, 1.5))
    return [k for k, v in registry.items() if v.supports(loss, regularizer)]


def _with_penalty(p: Problem, penalty: str) -> dict[str, Any]:
    options: dict[str, Any] = {"penalty": penalty}
    if penalty in GROUP_NORMS:
        options["penalty"] = penalty.removesuffix("_positive")
        options["groups"] = np.arange(p.X.shape[1]) // 2
        options["positive"] = penalty.endswith("_positive")
    if penalty == "quadratic":
        options["penalty_matrix"] = matrix(p.X.shape[1])
    return options


RANKS = ("roc_area", "ordinal", "precision", "recall")
ORDINAL = tuple(name for name in ONE_SCORE if name.startswith("ordinal"))
REGRESSION = tuple(regression_losses(quantile=0.3, epsilon=0.1))
#: Those of positive means.
TARGETS = {"poisson": "counts", "gamma": "positive", "tweedie": "amounts"}
BINARY = tuple(name for name in ONE_SCORE if name not in (*ORDINAL, *REGRESSION))


def _of_one_score(
    name: str, penalty: str, coef: Any, intercept: Any, p: Problem
) -> Terms:
    # The scores of ordinal classes are multiples of those of the second.
    w = np.atleast_2d(coef)[1 if name.startswith("ordinal") else 0]
    free = LONG(0) if name.startswith(RANKS) else np.ravel(intercept)[0]
    z = exact_scores(p.X, w, free)[:, 0]
    sizes = sizes_of_scores(p.X, w, free)[:, 0]
    if penalty == "quadratic":
        # Fits know the products of X with the columns C in which the penalty is a sum
        # of squares, and sum these by C^-1 w.
        values, vectors = np.linalg.eigh(matrix(len(w)))
        columns = long(vectors / np.sqrt(values))
        turned = np.abs(long((vectors * np.sqrt(values)).T) @ w)
        sizes = np.abs(long(p.X)) @ (np.abs(columns) @ turned) + abs(free)
    if penalty == "normalized_entropy":
        # Shares as rounded do not sum to one.
        z, w = (z - free) / w.sum() + free, w / w.sum()
    y, s = long(p.y), p.shares
    if name in BINARY:
        y = np.where(p.y == 1, LONG(1), LONG(-1))
    elif name in ("gamma", "tweedie"):
        sizes = sizes + np.abs(np.log(np.where(y > 0, y, LONG(1))))
    elif name in REGRESSION:
        sizes = sizes + np.abs(y)
    omega = (PENALTIES | GROUP_NORMS)[penalty](w)
    return Terms(omega, z, sizes, lambda z: ONE_SCORE[name](z, y, s))


def _svc(name: str, p: Problem, solver: str) -> Any:
    return SubLBFGSLinearSVC(
        p.alpha, loss=name, solver=solver, fit_intercept=p.fit_intercept
    )


def _catalogue(name: str, penalty: str, p: Problem, solver: str) -> Any:
    options = {"loss": name, "solver": solver, **_with_penalty(p, penalty)}
    if name == "quantile":
        options["quantile"] = 0.3
    if name in ("precision_at_k", "recall_at_k"):
        options["k"] = 2
    free = p.fit_intercept or name.startswith("ordinal")
    if name in REGRESSION:
        if name.endswith("epsilon_insensitive") or name == "huber":
            options["epsilon"] = 0.1
        if name == "tweedie":
            options["power"] = float(POWER)
        return BMRMRegressor(p.alpha, fit_intercept=free, **options)
    return BMRMClassifier(p.alpha, fit_intercept=free, **options)


LOSSES = {
    **BINARY_LOSSES,
    "roc_area": losses.RocArea(),
    "roc_area_squared": losses.SquaredRocArea(),
    "roc_area_log": losses.LogisticRocArea(),
    "f_beta_bound": losses.FBeta(1.0),
    "precision_at_k": losses.PrecisionAtK(2),
    "recall_at_k": losses.RecallAtK(2),
    "ordinal": losses.OrderedPairs(),
    "ordinal_squared": losses.SquaredPairs(),
    "ordinal_log": losses.LogisticPairs(),
    "ordinal_linear": losses.OrderedPairs("linear"),
    "ordinal_linear_squared": losses.SquaredPairs("linear"),
    "ordinal_linear_log": losses.LogisticPairs("linear"),
    **regression_losses(quantile=0.3, epsilon=0.1, power=float(POWER)),
}
#: Losses that count rows.
COUNTS = ("f_beta_bound", "precision_at_k", "recall_at_k")


def _one_score_cases() -> Iterator[Case]:
    registry = SubLBFGSLinearSVC._solvers
    for name in ("hinge", "squared_hinge"):
        solvers = _names(registry, LOSSES[name])
        terms = partial(_of_one_score, name, "l2")
        yield Case(f"svc-{name}", "2", solvers, partial(_svc, name), terms)
    for name in (*BINARY, *ORDINAL, *REGRESSION):
        targets = "3" if name in ORDINAL else "2"
        if name in REGRESSION:
            targets = TARGETS.get(name, "real")
        for penalty in (*PENALTIES, *GROUP_NORMS):
            solvers = _names(BMRMClassifier._solvers, LOSSES[name], penalty)
            if not solvers or (name in ORDINAL and penalty.endswith("_positive")):
                continue
            yield Case(
                f"{name}-{penalty}",
                targets,
                solvers,
                partial(_catalogue, name, penalty),
                partial(_of_one_score, name, penalty),
                name in COUNTS,
            )


def offsets_of(p: Problem) -> Any:
    """Numbers to be added to the scores, in their units."""
    rng = np.random.default_rng(len(p.y))
    size = np.abs(p.y).max() if p.y.min() < 0.0 else 1.0
    return size * 10.0 ** rng.uniform(-3, 1) * rng.normal(size=len(p.y))


def _with_offsets(name: str, penalty: str, coef: Any, intercept: Any, p: Any) -> Terms:
    terms, added = _of_one_score(name, penalty, coef, intercept, p), long(offsets_of(p))
    return terms._replace(
        sizes=terms.sizes + np.abs(added), risk=lambda z: terms.risk(z + added)
    )


def _offset_cases() -> Iterator[Case]:
    for name in REGRESSION:
        for penalty in ("l2", "l1", *GROUP_NORMS):
            yield Case(
                f"{name}-{penalty}-offset",
                TARGETS.get(name, "real"),
                _names(BMRMClassifier._solvers, LOSSES[name], penalty),
                partial(_catalogue, name, penalty),
                partial(_with_offsets, name, penalty),
                fit=lambda model, p, X: model.fit(
                    X, p.y, sample_weight=p.weights, offset=offsets_of(p)
                ),
            )


def _factors(p: Problem) -> Any:
    """Factors of the penalty of each feature, of which some may be zero."""
    rng = np.random.default_rng(len(p.y))
    factors = 10.0 ** rng.uniform(-3, 3, size=p.X.shape[1])
    return np.where(rng.random(len(factors)) < 0.3, 0.0, factors)


def _with_factors(
    name: str, penalty: str, coef: Any, intercept: Any, p: Problem
) -> Terms:
    terms = _of_one_score(name, penalty, coef, intercept, p)
    w, factors = np.ravel(coef), long(_factors(p))
    if penalty in GROUP_NORMS:
        omega = GROUP_NORMS[penalty](w, factors[: (len(w) + 1) // 2])
    elif penalty == "l2":
        omega = factors @ (w * w) / 2
    else:
        omega = PENALTIES[penalty](factors * w)
    return terms._replace(penalty=omega)


def _factor_cases() -> Iterator[Case]:
    for name in (*BINARY_LOSSES, *REGRESSION):
        for penalty in ("l2", "l1", "elasticnet"):
            yield Case(
                f"{name}-{penalty}-factor",
                TARGETS.get(name, "real" if name in REGRESSION else "2"),
                _names(BMRMClassifier._solvers, LOSSES[name], penalty),
                lambda p, solver, name=name, penalty=penalty: _catalogue(
                    name, penalty, p, solver
                ).set_params(penalty_factor=_factors(p)),
                partial(_with_factors, name, penalty),
            )


def _group_cases() -> Iterator[Case]:
    """Kinds with factors of groups, some of them zero, and offsets."""
    for name in (*BINARY_LOSSES, *REGRESSION):
        for penalty in GROUP_NORMS:
            yield Case(
                f"{name}-{penalty}-factor",
                TARGETS.get(name, "real" if name in REGRESSION else "2"),
                ["auto"],
                lambda p, solver, name=name, penalty=penalty: _catalogue(
                    name, penalty, p, solver
                ).set_params(penalty_factor=_factors(p)[: (p.X.shape[1] + 1) // 2]),
                partial(_with_factors, name, penalty),
            )


def _bounds(p: Problem) -> Any:
    """Bounds of coefficients, some of them zero or infinite."""
    rng = np.random.default_rng(len(p.y))
    sizes = 10.0 ** rng.uniform(-4, 2, size=(2, p.X.shape[1]))
    kinds = rng.random(sizes.shape)
    sizes = np.where(kinds < 0.3, 0.0, np.where(kinds < 0.5, np.inf, sizes))
    return -sizes[0], sizes[1]


def _with_bounds(
    name: str, penalty: str, coef: Any, intercept: Any, p: Problem
) -> Terms:
    terms = _of_one_score(name, penalty, coef, intercept, p)
    (low, high), w = _bounds(p), np.ravel(coef)
    inside = np.all((w >= low) & (w <= high))
    return terms if inside else terms._replace(penalty=LONG(np.inf))


def _bound_cases() -> Iterator[Case]:
    for name in (*BINARY_LOSSES, *REGRESSION):
        for penalty in ("l2", "elasticnet"):
            yield Case(
                f"{name}-{penalty}-bounds",
                TARGETS.get(name, "real" if name in REGRESSION else "2"),
                ["auto", "ls-bmrm", "bmrm"],
                lambda p, solver, name=name, penalty=penalty: _catalogue(
                    name, penalty, p, solver
                ).set_params(coef_bounds=_bounds(p)),
                partial(_with_bounds, name, penalty),
            )


class OwnHinge(losses.Loss):
    """One's own, of which values and subgradients are known only."""

    def value(self, scores: Any, targets: Any, weights: Any) -> float:
        return float(weights @ np.maximum(1.0 - targets * scores, 0.0))

    def subgradient(self, scores: Any, targets: Any, weights: Any) -> Any:
        return np.where(targets * scores < 1.0, -weights * targets, 0.0)


def _own(penalty: str, p: Problem, solver: str) -> Any:
    free = p.fit_intercept
    return BMRMClassifier(
        p.alpha,
        loss=OwnHinge(),
        solver=solver,
        fit_intercept=free,
        **_with_penalty(p, penalty),
    )


def _f_beta(penalty: str, p: Problem, solver: str) -> Any:
    options = _with_penalty(p, penalty)
    return BMRMClassifier(p.alpha, loss="f_beta", solver=solver, **options)


def _of_f_beta(penalty: str, coef: Any, intercept: Any, p: Problem) -> Terms:
    terms = _of_one_score("squared_hinge", penalty, coef, intercept, p)
    y = np.where(p.y == 1, LONG(1), LONG(-1))
    s = p.shares * np.where(p.y == 1, LONG(p.more), LONG(1))
    s = s / s.sum()
    return terms._replace(risk=lambda z: ONE_SCORE["squared_hinge"](z, y, s))


def _detector(penalty: str, p: Problem, solver: str) -> Any:
    return BMRMOutlierDetector(p.alpha, solver=solver, **_with_penalty(p, penalty))


def _of_novelty(penalty: str, coef: Any, intercept: Any, p: Problem) -> Terms:
    terms = _of_one_score("hinge", penalty, coef, 0, p)
    return terms._replace(risk=lambda z: p.shares @ positive(1 - z))


def _more_classifiers() -> Iterator[Case]:
    registry = BMRMClassifier._solvers
    for penalty in PENALTIES:
        terms = partial(_of_one_score, "hinge", penalty)
        solvers = _names(registry, DualLoss.of(OwnHinge()), penalty)
        make = partial(_own, penalty)
        yield Case(f"own-{penalty}", "2", solvers, make, terms)
        yield Case(
            f"f_beta-{penalty}",
            "2",
            _names(registry, LOSSES["squared_hinge"], penalty),
            partial(_f_beta, penalty),
            partial(_of_f_beta, penalty),
            parameters=lambda model: (
                model.coef_,
                long(model.intercept_) + long(model.threshold_),
            ),
            key=lambda model: float(model.positive_weight_),
        )
        yield Case(
            f"novelty-{penalty}",
            "2",
            _names(registry, NOVELTY_LOSS, penalty),
            partial(_detector, penalty),
            partial(_of_novelty, penalty),
            fit=lambda model, p, X: model.fit(X, sample_weight=p.weights),
            parameters=lambda model: (model.coef_, 0.0),
        )


def _thresholds(immediate: bool, penalty: str, p: Problem, solver: str) -> Any:
    loss = losses.OrdinalLogistic(immediate=immediate)
    return BMRMClassifier(
        p.alpha, loss=loss, solver=solver, **_with_penalty(p, penalty)
    )


def _of_thresholds(
    immediate: bool, penalty: str, coef: Any, intercept: Any, p: Problem
) -> Terms:
    # Scores of thresholds are of the coefficients of the second class.
    w, free = coef[1], np.diff(intercept)
    rows = np.repeat(w[np.newaxis], len(free), axis=0)
    z, sizes = exact_scores(p.X, rows, free), sizes_of_scores(p.X, rows, free)
    sizes = sizes + np.abs(intercept).max()
    if penalty == "normalized_entropy":
        z, w = (z - free) / w.sum() + free, w / w.sum()
    return Terms(
        PENALTIES[penalty](w),
        z,
        sizes,
        lambda z: ordinal_logistic(z, p.y, p.shares, immediate),
    )


GRAPHS = {
    "tree": [[-1], [-1], [0], [0], [1]],
    "graph": [[-1], [-1], [0, 1], [0], [1, -1]],
}


def _ontology(graph: str, loss: str, p: Problem, solver: str) -> Any:
    free = p.fit_intercept and loss == "log_loss"
    of_paths = losses.Ontology.from_parents(GRAPHS[graph], loss=loss)
    return BMRMClassifier(p.alpha, loss=of_paths, solver=solver, fit_intercept=free)


def _of_ontology(graph: str, loss: str, coef: Any, intercept: Any, p: Problem) -> Terms:
    shares = path_shares(GRAPHS[graph])
    # The nodes' coefficients are those of least norm: none is known by rounding alone.
    inverse = long(np.linalg.pinv(shares))
    inverse = inverse @ (2 * np.eye(len(shares)) - long(shares) @ inverse)
    costs = np.abs(shares[:, np.newaxis] - shares).sum(axis=2) / 2
    if loss == "hinge":
        risk = partial(multiclass_hinge, y=p.y, s=p.shares, costs=costs)
    else:
        risk = partial(softmax_loss, y=p.y, s=p.shares)
    scores = exact_scores(p.X, coef, intercept)
    sizes = sizes_of_scores(p.X, coef, intercept)
    return Terms(squares(inverse @ coef), scores, sizes, risk, loss == "log_loss")


def _joint_classifiers() -> Iterator[Case]:
    for immediate in (False, True):
        for penalty in PENALTIES:
            loss = losses.OrdinalLogistic(immediate=immediate)
            yield Case(
                f"thresholds-{immediate}-{penalty}",
                "3",
                _names(BMRMClassifier._solvers, loss, penalty),
                partial(_thresholds, immediate, penalty),
                partial(_of_thresholds, immediate, penalty),
            )
    for graph, parents in GRAPHS.items():
        for name in ("hinge", "log_loss"):
            of_paths = losses.Ontology.from_parents(parents, loss=name)
            yield Case(
                f"ontology-{graph}-{name}",
                "3",
                _names(BMRMClassifier._solvers, of_paths),
                partial(_ontology, graph, name),
                partial(_of_ontology, graph, name),
            )


def _logistic(ratio: float, p: Problem, solver: str) -> Any:
    free = p.fit_intercept
    return L1LogisticOWLQN(p.alpha, l1_ratio=ratio, solver=solver, fit_intercept=free)


def _of_logistic(ratio: float, coef: Any, intercept: Any, p: Problem) -> Terms:
    z = exact_scores(p.X, coef, intercept)
    sizes = sizes_of_scores(p.X, coef, intercept)
    if z.shape[1] == 1:
        y = np.where(p.y == p.y.max(), LONG(1), LONG(-1))
        risk = lambda z: ONE_SCORE["log_loss"](z[:, 0], y, p.shares)  # noqa: E731
    else:
        risk = partial(softmax_loss, y=p.y, s=p.shares)
    return Terms(elastic(coef, ratio), z, sizes, risk, 1.0)


def label_costs(k: int) -> Any:
    """1 for neighbors, more for others."""
    labels = np.arange(float(k))
    return np.abs(labels[:, np.newaxis] - labels)


RATES = {"margin": 1, "slack": label_costs(3), "rates": 1 + label_costs(3).T}


def _multiclass(rescaling: str, p: Problem, solver: str, free: bool = True) -> Any:
    return MulticlassHingeClassifier(
        p.alpha,
        label_cost=label_costs(3),
        rescaling=RATES["rates"] if rescaling == "rates" else rescaling,
        solver=solver,
        fit_intercept=free and p.fit_intercept,
    )


def _of_multiclass(rescaling: str, coef: Any, intercept: Any, p: Problem) -> Terms:
    risk = partial(
        multiclass_hinge,
        y=p.y,
        s=p.shares,
        costs=label_costs(3),
        rates=RATES[rescaling],
    )
    scores = exact_scores(p.X, coef, intercept)
    sizes = sizes_of_scores(p.X, coef, intercept)
    return Terms(squares(coef), scores, sizes, risk)


#: Costs of labels, of three or of their pairs.
MARGINS = {
    "halves": np.full((2, 3), 0.5),
    "margins": np.array([[1.0, 0.0, 0.5], [2.0, 1.0, 0.25]]),
    "pairs": np.array([[0.0, 2.0, 1.0], [0.5, 0.0, 1.0], [1.0, 3.0, 0.0]]),
}


def _multilabel(
    reduction: str,
    threshold: bool,
    margins: str,
    p: Problem,
    solver: str,
    free: bool = True,
) -> Any:
    return MultilabelHingeClassifier(
        p.alpha,
        reduction=reduction,
        label_cost=None if margins == "halves" else MARGINS[margins],
        solver=solver,
        threshold=threshold,
        fit_intercept=free and p.fit_intercept,
    )


def _of_multilabel(
    reduction: str,
    threshold: bool,
    margins: str,
    coef: Any,
    intercept: Any,
    p: Problem,
) -> Terms:
    penalty = squares(coef)
    sizes = sizes_of_scores(p.X, coef, intercept)
    if threshold:
        # Parameters of the threshold are subtracted from the others, and are minus the
        # mean of what remains, their own zeros included. Scores of both are rounded
        # before they are subtracted.
        t, free = (-x.sum(axis=0) / (len(coef) + 1) for x in (coef, intercept))
        penalty = squares(coef + t) + squares(t)
        sizes = sizes_of_scores(p.X, coef + t, intercept + free)
        sizes = sizes + sizes_of_scores(p.X, t[np.newaxis], free[np.newaxis])
    of_labels = multilabel_hinge if reduction == "max" else multilabel_mean
    risk = partial(
        of_labels, y=p.y, s=p.shares, margins=MARGINS[margins], threshold=threshold
    )
    if margins == "pairs":
        risk = partial(multilabel_pairs, y=p.y, s=p.shares, costs=MARGINS[margins])
    scores = exact_scores(p.X, coef, intercept)
    return Terms(penalty, scores, sizes, risk)


def _joint_cases() -> Iterator[Case]:
    registry = L1LogisticOWLQN._solvers
    for k in (2, 3):
        for ratio in (1.0, 0.5, 0.01, 0.0):
            penalty = elastic_net(1, ratio)
            yield Case(
                f"l1-{k}-{ratio}",
                str(k),
                [
                    n
                    for n, v in registry.items()
                    if v.supports(MULTINOMIAL_LOSS, penalty)
                ],
                partial(_logistic, ratio),
                partial(_of_logistic, ratio),
            )
    registry = MulticlassHingeClassifier._solvers
    kinked = _names(registry, DualLoss(Simplex(np.eye(2))))
    # Bundle methods minimize over several intercepts of smooth losses only.
    cuts = ["auto", *(name for name in kinked if name in BUNDLE_SOLVERS)]
    kinked = [name for name in kinked if name not in BUNDLE_SOLVERS]
    smooth = _names(registry, DualLoss(LabelOrder(np.ones((2, 3)))))
    for rescaling in RATES:
        make, terms = (
            partial(_multiclass, rescaling),
            partial(_of_multiclass, rescaling),
        )
        yield Case(f"joint-{rescaling}", "3", kinked, make, terms)
        make = partial(_multiclass, rescaling, free=False)
        yield Case(f"joint-{rescaling}-cuts", "3", cuts, make, terms)
    kinds = [
        (reduction, threshold, margins)
        for reduction in ("max", "mean")
        for threshold in (True, False)
        for margins in ("halves", "margins")
    ]
    for kind in [*kinds, ("max", False, "pairs")]:
        yield Case(
            "multilabel-" + "-".join(map(str, kind)),
            "labels",
            kinked if kind[0] == "max" else smooth,
            partial(_multilabel, *kind),
            partial(_of_multilabel, *kind),
        )
        if kind[0] == "max":
            yield Case(
                "multilabel-" + "-".join(map(str, kind)) + "-cuts",
                "labels",
                cuts,
                partial(_multilabel, *kind, free=False),
                partial(_of_multilabel, *kind),
            )


def _ranker(loss: str, penalty: str, p: Problem, solver: str) -> Any:
    k = 2 if loss.startswith(("precision", "recall")) else None
    return BMRMRanker(p.alpha, loss=loss, k=k, penalty=penalty, solver=solver)


def _fit_queries(model: Any, p: Problem, X: Any) -> Any:
    weights = None if (p.weights == 1.0).all() else p.weights
    return model.fit(X, p.y, weights, qid=p.groups, query_weight=p.more)


def _of_ranker(loss: str, penalty: str, coef: Any, intercept: Any, p: Problem) -> Terms:
    z = exact_scores(p.X, coef, 0)[:, 0]
    sizes = sizes_of_scores(p.X, coef, 0)[:, 0]
    if loss.startswith("pairwise"):
        names, codes = np.unique(p.groups, return_inverse=True)
        rows, v = long(p.weights), long(p.more)
        totals = np.array([rows[codes == q].sum() for q in range(len(names))])
        s = rows * (v / v.sum() / totals)[codes]
        form = {"squared": "squared", "log": "log"}.get(loss.split("-")[-1], "")
        risk = partial(
            each_pair, y=p.y, s=s, form=form, linear="linear" in loss, queries=p.groups
        )
    else:
        measure = loss.removesuffix("-assignment")
        of_one = by_assignment if loss.endswith("-assignment") else by_inversions
        k = 2 if measure in ("precision", "recall") else None
        risk = lambda z: of_queries(  # noqa: E731
            lambda z, y: of_one(z, y, measure, k), z, p.y, p.groups, p.more
        )
    return Terms(PENALTIES[penalty](coef), z, sizes, risk)


def _of_preferences(
    loss: str, penalty: str, coef: Any, intercept: Any, p: Problem
) -> Terms:
    form = {"squared": "squared", "log": "log"}.get(loss.split("-")[-1], "")
    better, worse = np.transpose(p.y)
    # Each pair is a row by itself, whose score is rounded by itself.
    rows = [long(p.X[i]) - long(p.X[j]) for i, j in p.y]
    z = exact_scores(rows, coef, 0)[:, 0]
    sizes = sizes_of_scores(p.X, coef, 0)[:, 0]
    risk = partial(given_pairs, weights=p.weights, form=form)
    return Terms(PENALTIES[penalty](coef), z, sizes[better] + sizes[worse], risk)


RANKINGS = (
    *(
        f"pairwise{cost}{form}"
        for cost in ("-linear", "")
        for form in ("", "-squared", "-log")
    ),
    *(
        f"{measure}{kind}"
        for measure in ("ndcg", "mrr", "precision", "recall", "rank-utility")
        for kind in ("", "-assignment")
    ),
)


def _ranking_cases() -> Iterator[Case]:
    coef_only: Any = lambda model: (model.coef_, 0.0)  # noqa: E731
    for loss in RANKINGS:
        of_groups = BMRMRanker(loss=loss, k=2)._loss(losses.Groups(np.zeros(2, int)))
        for penalty in ("l2", "l1", "elasticnet"):
            solvers = _names(BMRMRanker._solvers, of_groups, penalty)
            make = partial(_ranker, loss, penalty)
            yield Case(
                f"rank-{loss}-{penalty}",
                "queries",
                solvers,
                make,
                partial(_of_ranker, loss, penalty),
                equal_weights=not loss.startswith("pairwise"),
                fit=_fit_queries,
                parameters=coef_only,
            )
            if loss.startswith("pairwise") and "linear" not in loss:
                name = {"": "hinge", "squared": "squared_hinge", "log": "log_loss"}
                form = loss.removeprefix("pairwise").removeprefix("-")
                yield Case(
                    f"preferences-{loss}-{penalty}",
                    "pairs",
                    _names(BMRMRanker._solvers, LOSSES[name[form]], penalty),
                    make,
                    partial(_of_preferences, loss, penalty),
                    fit=lambda model, p, X: model.fit(
                        X, pairs=p.y, pair_weight=p.weights
                    ),
                    parameters=coef_only,
                )


def _crf(kind: str, ratio: float, every: bool, p: Problem, solver: str) -> Any:
    return LinearChainCRF(
        p.alpha,
        loss="log_loss" if kind == "log_loss" else "hinge",
        rescaling="margin" if kind == "log_loss" else kind,
        l1_ratio=ratio,
        solver=solver,
        all_possible_states=every,
        all_possible_transitions=every,
    )


def _fit_chains(model: Any, p: Problem, X: Any) -> Any:
    lengths = np.bincount(p.groups)
    return model.fit(X, p.y, sample_weight=p.weights, lengths=lengths)


def _weights_of_chains(model: Any) -> tuple[Any, Any]:
    """States (k, d) and transitions (k, k)."""
    codes = {label: i for i, label in enumerate(model.classes_)}
    states = np.zeros((len(codes), model.n_features_in_))
    transitions = np.zeros((len(codes), len(codes)))
    for (column, label), weight in model.state_features_.items():
        states[codes[label], int(column)] = weight
    for (label, following), weight in model.transition_features_.items():
        transitions[codes[label], codes[following]] = weight
    return states, transitions


def _of_chains(kind: str, ratio: float, W: Any, T: Any, p: Problem) -> Terms:
    k, n = len(W), len(p.X)
    emissions = exact_scores(p.X, W, np.zeros(k))
    sizes = sizes_of_scores(p.X, W, np.zeros(k))

    def risk(scores: Any) -> Any:
        z, transitions = scores[: n * k].reshape(n, k), scores[n * k :].reshape(k, k)
        return sum(
            (
                share * chain_loss(z[rows], transitions, p.y[rows], kind)
                for share, rows in (
                    (share, np.flatnonzero(p.groups == i))
                    for i, share in enumerate(p.shares)
                )
            ),
            LONG(0),
        )

    # Sums along a sequence have the rounding of all its scores.
    unit = float(kind == "log_loss")
    for i, share in enumerate(p.shares):
        rows = p.groups == i
        sizes[rows] = sizes[rows].max(axis=1).sum()
        unit += float(share * (sizes[rows].max() + np.abs(T).max() * rows.sum()))
    return Terms(
        elastic(W, ratio) + elastic(T, ratio),
        np.concatenate([emissions.ravel(), T.ravel()]),
        np.concatenate([sizes.ravel(), np.abs(T).ravel()]),
        risk,
        unit,
    )


def _chain_cases() -> Iterator[Case]:
    able = {
        ("log_loss", 0.0): ["auto", "dual-ascent", "lbfgs", "ls-bmrm"],
        ("log_loss", 0.5): ["auto", "owlqn", "ls-bmrm"],
        ("log_loss", 1.0): ["auto", "owlqn", "ls-bmrm"],
        **{
            (kind, ratio): ["auto", "ls-bmrm", *(["dual-ascent"] if not ratio else [])]
            for kind in ("margin", "slack")
            for ratio in (0.0, 0.5, 1.0)
        },
    }
    for (kind, ratio), solvers in able.items():
        for every in (False, True):
            yield Case(
                f"chain-{kind}-{ratio}-{every}",
                "chains",
                solvers,
                partial(_crf, kind, ratio, every),
                partial(_of_chains, kind, ratio),
                fit=_fit_chains,
                parameters=_weights_of_chains,
            )


def _structured(rescaling: str, penalty: str, p: Problem, solver: str) -> Any:
    features, costs = p.more

    def joint_feature(x: int, y: int) -> Any:
        row = p.stored(features[x, y][np.newaxis])
        return row if sparse.issparse(row) else row[0]

    def loss(y: Any, other: Any) -> float:
        return float(costs[y[0], other[1]])

    def argmax(x: int, y: Any, w: Any) -> Any:
        scores = features[x] @ w
        if y is not None:
            ahead = scores - scores[y[1]]
            scores = (
                costs[x] + ahead if rescaling == "margin" else costs[x] * (1 + ahead)
            )
        return x, int(scores.argmax())

    def log_partition(x: int, w: Any) -> Any:
        scores = features[x] @ w
        e = np.exp(scores - scores.max())
        return scores.max() + np.log(e.sum()), e @ features[x] / e.sum()

    shared = {"alpha": p.alpha, "penalty": penalty, "solver": solver}
    if rescaling == "log":
        return ConditionalRandomField(
            lambda x, y: joint_feature(x, y[1]), log_partition, **shared
        )
    return StructuredSVM(
        lambda x, y: joint_feature(x, y[1]),
        argmax,
        loss,
        rescaling=rescaling,
        **shared,
    )


def _fit_structures(model: Any, p: Problem, X: Any) -> Any:
    rows = list(range(len(p.y)))
    truths = list(zip(rows, p.y.tolist(), strict=True))
    return model.fit(rows, truths, sample_weight=p.weights)


def _of_structures(
    rescaling: str, penalty: str, coef: Any, intercept: Any, p: Problem
) -> Terms:
    features, costs = p.more
    n, m, d = features.shape
    flat = features.reshape(n * m, d)
    scores = exact_scores(flat, coef, 0).reshape(n, m)
    sizes = sizes_of_scores(flat, coef, 0).reshape(n, m)

    def risk(z: Any) -> Any:
        ahead = z - z[np.arange(n), p.y][:, np.newaxis]
        if rescaling == "log":
            return p.shares @ np.logaddexp.reduce(ahead, axis=1)
        each = costs + ahead if rescaling == "margin" else costs * (1 + ahead)
        return p.shares @ each.max(axis=1)

    # Logarithms of sums are returned, from which true scores are subtracted.
    unit = float(p.shares @ sizes.max(axis=1)) if rescaling == "log" else 0.0
    return Terms(PENALTIES[penalty](coef), scores, sizes, risk, unit)


def _structured_cases() -> Iterator[Case]:
    any_penalty = ["n-slack", "ls-bmrm", "bmrm"]
    of_l2 = ["bmrm-aggregated", "proximal-bundle", "trust-region-bundle"]
    for rescaling in ("margin", "slack", "log"):
        for penalty in ("l2", "l1", "elasticnet"):
            able = any_penalty + (of_l2 if penalty == "l2" else [])
            if rescaling == "log":
                able.append("lbfgs" if penalty == "l2" else "owlqn")
            yield Case(
                f"structured-{rescaling}-{penalty}",
                "structures",
                able,
                partial(_structured, rescaling, penalty),
                partial(_of_structures, rescaling, penalty),
                fit=_fit_structures,
                parameters=lambda model: (model.coef_, 0.0),
            )


#: Kinds by families, which random problems are of equally often.
FAMILIES: list[list[Case]] = [
    list(cases())
    for cases in (
        _one_score_cases,
        _offset_cases,
        _factor_cases,
        _bound_cases,
        _more_classifiers,
        _joint_classifiers,
        _joint_cases,
        _ranking_cases,
        _chain_cases,
        _structured_cases,
    )
]
CASES = [case for family in FAMILIES for case in family]
#: Kinds that data in blocks take.
BLOCKWISE = [
    case
    for cases in (*FAMILIES[:4], _group_cases())
    for case in cases
    if case.name.split("-", 1)[0] in (*BINARY_LOSSES, *REGRESSION)
]
GROUPED = [case for case in CASES if case.name.split("-", 1)[-1] in GROUP_NORMS]


# Fits, and what is wrong with them.


def hard_case(seed: int) -> tuple[Case, Problem]:
    """A kind of fit, and a problem for it."""
    rng = np.random.default_rng([7, seed])
    # The first one has half of the kinds.
    index = int(rng.integers(len(FAMILIES))) if rng.random() < 0.7 else 0
    family = FAMILIES[index]
    case = family[rng.integers(len(family))]
    return case, problem_of(case, seed)


def problem_of(case: Case, seed: int) -> Problem:
    p = problem(seed, case.targets)
    if case.equal_weights:
        p = p._replace(weights=np.ones(len(p.weights)))
    if case.name.startswith(("exponential", *TARGETS)):
        # Exponentials of other scores overflow.
        p = p._replace(X=p.X / (np.abs(p.X).max() or 1.0))
    if case.targets in ("structures", "chains") and p.warm != "alpha":
        p = p._replace(warm=None)
    return p


def fitted(case: Case, p: Problem, solver: str, **options: Any) -> Any:
    """Return the fitted estimator, or None where numbers are too extreme for it."""
    model = case.make(p, solver).set_params(**options)
    rng = np.random.default_rng(0)
    X, data = p.X, p.stored(p.X)
    before = snapshot(data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if p.warm is not None:
                units = 10.0 ** rng.uniform(-10, 10) if p.warm == "units" else 1.0
                earlier = X.astype(np.float32) if p.warm == "float32" else X * units
                factor = 10.0 ** rng.uniform(-10, 10) if p.warm == "alpha" else 1.0
                model.set_params(warm_start=True, alpha=p.alpha * factor)
                try:
                    case.fit(model, p, p.stored(earlier))
                except ValueError:
                    model = case.make(p, solver).set_params(**options)
                model.set_params(alpha=p.alpha)
            return case.fit(model, p, data)
        except ValueError as error:
            # Nothing to learn from, numbers beyond those of double precision, or a
            # solver for an L1 norm and factors that are all zero.
            known = "too extreme", "overflow", "not finite", "k must be less"
            known += ("where no feature has one",)
            if any(words in str(error) for words in known):
                return None
            raise
        finally:
            assert snapshot(data) == before, f"{case.name} {solver} changed X"


def first(values: Any) -> float:
    return float(np.ravel(values)[0])


def compare(
    case: Case,
    p: Problem,
    tol: float,
    max_iter: int,
    most_seconds: float = MOST_SECONDS,
) -> list[str]:
    """Fit by all solvers; return what is wrong.

    Bounds that exceed the best objective, objectives of other coefficients than those
    returned, and fits that take long.
    """
    wrong, fits = [], []
    for solver in case.solvers:
        begin = time.process_time()
        model = fitted(case, p, solver, tol=tol, max_iter=max_iter)
        seconds = time.process_time() - begin
        if seconds > most_seconds:
            wrong.append(f"{case.name} {solver}: {seconds:.1f} seconds")
        fits.append((solver, model))
    return wrong + judged(case, p, fits)


def judged(case: Case, p: Problem, fits: list[tuple[str, Any]]) -> list[str]:
    """Return what is wrong with fits, None where there is none, of one problem."""
    wrong = []
    models: dict[Any, list[tuple[str, Any, Terms, Any]]] = {}
    for solver, model in fits:
        if model is None:
            continue
        name = f"{case.name} {solver}"
        assert first(model.dual_gap_) >= 0.0
        with np.errstate(all="ignore"):
            terms = case.terms_of(model, p)
            exact = terms.value(p.alpha)
            if not np.isfinite(exact):
                continue
            error = abs(exact - LONG(first(model.objective_)))
            if error > OF_VALUE * EPS * abs(exact) and error > terms.rounding(p.alpha):
                objective = first(model.objective_)
                wrong.append(f"{name}: objective {objective!r} for {exact!r}")
        models.setdefault(case.key(model), []).append((solver, model, terms, exact))
    for found in models.values():
        best = min(exact for *_, exact in found)
        bounds = [first(m.objective_) - first(m.dual_gap_) for _, m, *_ in found]
        if max(bounds) > best * (1 - 1e-9):
            # A false bound may be within what all solvers leave of the gap.
            _, model, terms, _ = min(found, key=lambda each: each[3])
            best = min(best, polished(case, model, p)) + terms.own_rounding()
        for (solver, model, *_), bound in zip(found, bounds, strict=True):
            if bound > best + np.spacing(abs(first(model.objective_))):
                wrong.append(
                    f"{case.name} {solver}: {bound!r} above {best!r} by "
                    f"{float(bound - best):.3g}"
                )
    return wrong


def polished(case: Case, model: Any, p: Problem, n_rounds: int = 2) -> Any:
    """Return an objective that is smaller, perhaps, by changes of single parameters.

    In extended precision: those that are not zero, by shares of themselves, and free
    ones. A multiple of the whole comes first.
    """
    if case.key(model) is not None:
        p = p._replace(more=case.key(model))
    w, b = (np.array(long(x)) for x in case.parameters(model))

    def value(w: Any, b: Any) -> Any:
        with np.errstate(all="ignore"):
            found = case.terms(w, b, p).value(p.alpha)
        return found if np.isfinite(found) else LONG(np.inf)

    best = value(w, b)
    free = p.fit_intercept and b.any()
    for share in (LONG(10.0) ** -k for k in range(6, 6 + 3 * n_rounds, 3)):
        changes: list[Any] = [(w * (1 + sign * share), b) for sign in (-1, 1)]
        for x, is_free in ((w, False), (b, True)):
            if is_free and not free:
                continue
            for place in np.ndindex(x.shape):
                for sign in (-1, 1):
                    if x[place]:
                        moved = x.copy()
                        moved[place] *= 1 + sign * share
                        changes.append((w, moved) if is_free else (moved, b))
        for change in changes:
            found = value(*change)
            if found < best:
                best, (w, b) = found, change
    return best


def check(seed: int, most_seconds: float = MOST_SECONDS) -> list[str]:
    """Return what is wrong with the fits of one problem, by three of the solvers."""
    return _check(*hard_case(seed), most_seconds)


def check_groups(seed: int) -> list[str]:
    """Return the same for one of the kinds whose coefficients are in groups.

    A third of the problems are given in blocks, where these take the case.
    """
    rng = np.random.default_rng([43, seed])
    case = GROUPED[rng.integers(len(GROUPED))]
    p = problem_of(case, seed)
    loss = case.name.split("-", 1)[0]
    in_blocks = loss in (*BINARY_LOSSES, *REGRESSION)
    if in_blocks and seed % 3 == 0:
        case, p = case._replace(solvers=["auto"], fit=_in_blocks), p._replace(warm=None)
    return _check(case, p, MOST_SECONDS)


def check_blocks(seed: int) -> list[str]:
    """Return what is wrong with a fit in memory and the same fit to data in blocks.

    Half of the problems have factors of the penalty, some of them zero, offsets, or
    bounds.
    """
    rng = np.random.default_rng([47, seed])
    case = BLOCKWISE[rng.integers(len(BLOCKWISE))]
    p = problem_of(case, seed)._replace(warm=None)
    given = case.name.endswith("-offset") and {"offset": offsets_of(p)}
    blocks = case._replace(fit=partial(_in_blocks, **(given or {})))
    tol = float(p.rng.choice([1e-3, 1e-6, 1e-10]))
    options: dict[str, Any] = {"tol": tol, "max_iter": int(p.rng.choice([5, 30, 300]))}
    ways = {"auto": case, "auto in blocks": blocks}
    fits = [(way, fitted(each, p, "auto", **options)) for way, each in ways.items()]
    return judged(case, p, fits)


def _in_blocks(model: Any, p: Problem, X: Any, **given: Any) -> Any:
    size = max(1, len(p.y) // 3)
    return model.fit(RowBlocks(X, p.y, p.weights, block_size=size), **given)


def _check(case: Case, p: Problem, most_seconds: float) -> list[str]:
    solvers = p.rng.permutation(case.solvers)[:3].tolist()
    case = case._replace(solvers=solvers)
    tol = float(p.rng.choice([1e-3, 1e-6, 1e-10]))
    max_iter = int(p.rng.choice([5, 30, 300]))
    return compare(case, p, tol, max_iter, most_seconds)

"""Lower bounds against the best of all solvers, on problems made to break them.

Small random problems with weights over decades, columns of unequal scale, offsets,
heavy tails, ties, single precision and tiny optima. Objectives are the formulas of
textbooks, of exact scores, in extended precision: a bound may exceed the best one by
nothing but the rounding of ``objective_ - dual_gap_`` itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest

from sklearn_subqn import (
    BMRMClassifier,
    BMRMOutlierDetector,
    BMRMRanker,
    BMRMRegressor,
    L1LogisticOWLQN,
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
    SubLBFGSLinearSVC,
)
from sklearn_subqn._core import losses
from sklearn_subqn._core.regularizers import L2, ElasticNet, SquaredNorm, elastic_net
from sklearn_subqn._core.solvers import (
    BUNDLE_SOLVERS,
    CATALOGUE_SOLVERS,
    L1_SOLVERS,
    SOLVERS,
)

LONG = np.longdouble
N_DEFAULT, N_SLOW = 100, 4000


class Problem(NamedTuple):
    """Data, weights, a strength and whether intercepts are fitted."""

    X: Any
    y: Any
    weights: Any
    alpha: float
    fit_intercept: bool
    rng: Any


def hard_data(rng: np.random.Generator) -> Any:
    """Features with some of the troubles at once."""
    n, d = int(rng.integers(2, 12)), int(rng.integers(1, 6))
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
    if rng.random() < 0.25:
        X = X.astype(np.float32)
    return X


def problem(seed: int, targets: str) -> Problem:
    """A random problem with targets of a kind: 2, 3, "real", "counts" or "labels"."""
    rng = np.random.default_rng(seed)
    X = hard_data(rng)
    n = len(X)
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
    else:
        k = int(targets)
        if rng.random() < 0.4:
            # Apart, or nearly.
            s = X.astype(float) @ rng.normal(size=X.shape[1])
            y = np.searchsorted(np.quantile(s, np.arange(1, k) / k), s)
        else:
            y = rng.integers(0, k, size=n)
        k = min(k, n)
        y[rng.permutation(n)[:k]] = np.arange(k)
    weights = np.ones(n)
    if rng.random() < 0.6:
        weights = 10.0 ** rng.uniform(-6, 6, size=n)
    alpha = 10.0 ** rng.uniform(-8, 2)
    return Problem(X, y, weights, alpha, bool(rng.random() < 0.7), rng)


# Formulas in extended precision.


def extended(x: Fraction) -> Any:
    high = float(x)
    return LONG(high) + LONG(float(x - Fraction(high)))


def exact_scores(X: Any, coef: Any, intercept: Any) -> Any:
    """X @ coef + intercept of shape (n, k), rounded once."""
    rows = [[Fraction(float(v)) for v in row] for row in X]
    columns = [[Fraction(float(v)) for v in column] for column in np.atleast_2d(coef)]
    free = [Fraction(float(b)) for b in np.atleast_1d(intercept)]
    return np.array(
        [
            [
                extended(sum((a * b for a, b in zip(row, c, strict=True)), f))
                for c, f in zip(columns, free, strict=True)
            ]
            for row in rows
        ]
    )


def log1p_exp(t: Any) -> Any:
    return np.maximum(t, 0) + np.log1p(np.exp(-np.abs(t)))


def hinge_of(m: Any) -> Any:
    return np.maximum(m, LONG(0))


def each_pair(
    z: Any,
    y: Any,
    s: Any,
    cost: Callable[[Any, Any], Any] = lambda a, b: LONG(1),
    phi: Callable[[Any], Any] = hinge_of,
) -> Any:
    """Mean over pairs y_i < y_j of cost * phi(1 + z_i - z_j)."""
    less = y[:, np.newaxis] < y
    weights = np.where(less, s[:, np.newaxis] * s, LONG(0))
    costs = cost(y[:, np.newaxis], y)
    each = phi(LONG(1) + z[:, np.newaxis] - z)
    return s.sum() * (weights * costs * each).sum() / weights.sum()


#: Functions of the violation 1 + z_i - z_j, by the endings of names of losses.
PAIRWISE: dict[str, Callable[[Any], Any]] = {
    "": hinge_of,
    "_squared": lambda m: hinge_of(m) ** 2,
    "_log": lambda m: log1p_exp(m - LONG(1)),
}
PAIRS = {
    f"{name}{ending}": partial(each_pair, cost=cost, phi=phi)
    for name, cost in {
        "roc_area": lambda a, b: LONG(1),
        "ordinal": lambda a, b: LONG(1),
        "ordinal_linear": lambda a, b: b - a,
    }.items()
    for ending, phi in PAIRWISE.items()
}


def f_beta(z: Any, y: Any, s: Any) -> Any:
    """By enumeration of the tables, for equal weights."""
    positive, negative = np.sort(z[y > 0]), -np.sort(-z[y <= 0])
    best = LONG(-np.inf)
    for f in range(len(positive) + 1):
        for p in range(len(negative) + 1):
            hits = 2 * (len(positive) - f)
            cost = (
                LONG(1) - LONG(hits) / LONG(hits + f + p) if hits + f + p else LONG(0)
            )
            gain = negative[:p].sum() - positive[:f].sum()
            best = max(best, s[0] * gain + cost)
    return best


# Binary losses take y of -1 or 1.
ONE_SCORE: dict[str, Callable[..., Any]] = {
    "hinge": lambda z, y, s: s @ np.maximum(1 - y * z, 0),
    "squared_hinge": lambda z, y, s: s @ np.maximum(1 - y * z, 0) ** 2,
    "modified_huber": lambda z, y, s: (
        s @ np.where(y * z >= -1, np.maximum(1 - y * z, 0) ** 2, -4 * y * z)
    ),
    "log_loss": lambda z, y, s: s @ log1p_exp(-y * z),
    "exponential": lambda z, y, s: s @ np.exp(-y * z),
    "f_beta_bound": f_beta,
    "pairs": each_pair,
    **PAIRS,
    "squared_error": lambda z, y, s: s @ (y - z) ** 2 / 2,
    "absolute_error": lambda z, y, s: s @ np.abs(y - z),
    "quantile": lambda z, y, s: (
        s @ np.maximum(LONG(0.3) * (y - z), (LONG(0.3) - 1) * (y - z))
    ),
    "epsilon_insensitive": lambda z, y, s: s @ np.maximum(np.abs(y - z) - LONG(0.1), 0),
    "huber": lambda z, y, s: (
        s
        @ np.where(
            np.abs(y - z) <= LONG(0.1),
            (y - z) ** 2 / 2,
            LONG(0.1) * np.abs(y - z) - LONG(0.1) ** 2 / 2,
        )
    ),
    "poisson": lambda z, y, s: s @ (np.exp(z) - y * z),
}


def softmax_loss(z: Any, y: Any, s: Any) -> Any:
    z = z - z[np.arange(len(y)), y][:, np.newaxis]
    top = z.max(axis=1)
    own = np.exp(z - top[:, np.newaxis])
    # Accurate where the own class is all but certain.
    at_top = np.arange(z.shape[1]) == z.argmax(axis=1)[:, np.newaxis]
    return s @ (top + np.log1p(np.where(at_top, 0, own).sum(axis=1)))


def multiclass_hinge(z: Any, y: Any, s: Any, rates: Any = 1) -> Any:
    z = z - z[np.arange(len(y)), y][:, np.newaxis]
    costs = label_costs(z.shape[1])[y].astype(LONG)
    violations = costs + (rates if np.isscalar(rates) else rates[y].astype(LONG)) * z
    violations[np.arange(len(y)), y] = 0
    return s @ violations.max(axis=1)


def ordinal_logistic(z: Any, y: Any, s: Any, immediate: bool) -> Any:
    """Of scores above each threshold, all or those next to the class."""
    above = y[:, np.newaxis] - np.arange(z.shape[1])
    counts = (above == 0) | (above == 1) if immediate else above == above
    costs = log1p_exp(np.where(above > 0, -z, z))
    return s @ np.where(counts, costs, 0).sum(axis=1)


def label_costs(k: int) -> Any:
    """1 for neighbors, more for others."""
    labels = np.arange(float(k))
    return np.abs(labels[:, np.newaxis] - labels)


def multilabel_hinge(z: Any, y: Any, s: Any, threshold: Any) -> Any:
    """The worst irrelevant and the worst relevant label, or none."""
    total = LONG(0)
    for i, (row, labels, weight) in enumerate(zip(z, y, s, strict=True)):
        wrong, right = row[labels == 0], row[labels == 1]
        if threshold is not None:
            t, half = threshold[i], LONG(0.5)
            total += weight * max((half + wrong - t).max(initial=0), LONG(0))
            total += weight * max((half + t - right).max(initial=0), LONG(0))
        elif wrong.size and right.size:
            total += weight * max(1 + wrong.max() - right.min(), LONG(0))
    return total


def multilabel_mean(z: Any, y: Any, s: Any, threshold: Any) -> Any:
    """Means of squares over pairs of labels, and over labels beside the threshold."""
    total, half = LONG(0), LONG(0.5)
    for i, (row, labels, weight) in enumerate(zip(z, y, s, strict=True)):
        wrong, right = row[labels == 0], row[labels == 1]
        pairs = np.maximum(1 + wrong[:, np.newaxis] - right, 0) ** 2
        mean = pairs.mean() if pairs.size else LONG(0)
        if threshold is not None:
            t = threshold[i]
            below = (np.maximum(half + wrong - t, 0) ** 2).sum()
            above = (np.maximum(half + t - right, 0) ** 2).sum()
            mean = half * mean + half * (below + above) / len(row)
        total += weight * mean
    return total


def entropy(w: Any) -> Any:
    return np.where(w > 0, w * np.log(np.where(w > 0, w, 1)), 0).sum()


def matrix(d: int) -> Any:
    """A positive definite one for the quadratic penalty."""
    return np.diag(np.arange(1.0, d + 1)) + 0.5


PENALTIES: dict[str, Callable[[Any], Any]] = {
    "l2": lambda w: (w * w).sum() / 2,
    "l1": lambda w: np.abs(w).sum(),
    "elasticnet": lambda w: np.abs(w).sum() / 2 + (w * w).sum() / 4,
    "lp": lambda w: (np.abs(w) ** LONG(1.5)).sum() ** (LONG(4) / 3) / 2,
    "quadratic": lambda w: w @ matrix(len(w)).astype(LONG) @ w / 2,
    "entropy": lambda w: entropy(w) - w.sum(),
    "normalized_entropy": entropy,
}


class Case(NamedTuple):
    """A kind of fit: solvers, an estimator of one, and its objective."""

    name: str
    targets: str
    solvers: list[str]
    make: Callable[..., Any]
    objective: Callable[[Any, Problem], Any]
    equal_weights: bool = False


def normalized(p: Problem) -> Any:
    s = p.weights.astype(LONG)
    return s / s.sum()


def of_one_score(name: str, penalty: str) -> Callable[[Any, Problem], Any]:
    def objective(model: Any, p: Problem) -> Any:
        coef = np.atleast_2d(model.coef_)
        # The scores of ordinal classes are multiples of those of the second.
        coef = coef[1] if name.startswith("ordinal") else coef[0]
        w = coef.astype(LONG)
        free = np.atleast_1d(getattr(model, "intercept_", 0.0))[0]
        z = exact_scores(p.X, coef, 0.0 if name in RANKS else free)[:, 0]
        if penalty == "normalized_entropy":
            # Shares as rounded do not sum to one.
            z, w = (z - LONG(free)) / w.sum() + LONG(free), w / w.sum()
        y = p.y.astype(LONG)
        if name in BINARY:
            y = np.where(p.y == 1, LONG(1), LONG(-1))
        risk = ONE_SCORE[name](z, y, normalized(p))
        return LONG(p.alpha) * PENALTIES[penalty](w) + risk

    return objective


RANKS = ("pairs", *PAIRS)
BINARY = (
    *losses.BINARY_LOSSES,
    "f_beta_bound",
    *(name for name in PAIRS if name.startswith("roc_area")),
)
ORDINAL = tuple(name for name in PAIRS if name.startswith("ordinal"))
REGRESSION = (
    "squared_error",
    "absolute_error",
    "quantile",
    "epsilon_insensitive",
    "huber",
    "poisson",
)
LOSSES = {
    **losses.BINARY_LOSSES,
    "roc_area": losses.RocArea(),
    "roc_area_squared": losses.SquaredRocArea(),
    "roc_area_log": losses.LogisticRocArea(),
    "f_beta_bound": losses.FBeta(1.0),
    "ordinal": losses.OrderedPairs(),
    "ordinal_squared": losses.SquaredPairs(),
    "ordinal_log": losses.LogisticPairs(),
    "ordinal_linear": losses.OrderedPairs("linear"),
    "ordinal_linear_squared": losses.SquaredPairs("linear"),
    "ordinal_linear_log": losses.LogisticPairs("linear"),
    **losses.regression_losses(quantile=0.3, epsilon=0.1),
}


def catalogue(loss: Any, penalty: str) -> list[str]:
    """Names of the solvers that take a loss with a penalty."""
    kind = {"l2": L2(1), "l1": ElasticNet(1), "elasticnet": ElasticNet(1, 0.5)}
    regularizer = kind.get(penalty, SquaredNorm(1, 1.5))
    return [k for k, v in CATALOGUE_SOLVERS.items() if v.supports(loss, regularizer)]


def cases() -> list[Case]:
    """All estimators, losses, penalties and their solvers."""
    found = []
    for name in ("hinge", "squared_hinge"):
        solvers = [k for k, v in SOLVERS.items() if v.supports(LOSSES[name])]
        found.append(
            Case(
                f"svc-{name}",
                "2",
                solvers,
                lambda p, solver, loss=name: SubLBFGSLinearSVC(
                    p.alpha, loss=loss, solver=solver, fit_intercept=p.fit_intercept
                ),
                of_one_score(name, "l2"),
            )
        )
    for name in (*BINARY, *ORDINAL, *REGRESSION):
        for penalty in PENALTIES:
            regresses, ordinal = name in REGRESSION, name.startswith("ordinal")
            model = BMRMRegressor if regresses else BMRMClassifier
            targets = "3" if ordinal else "2"
            if regresses:
                targets = "counts" if name == "poisson" else "real"

            def make(p: Any, solver: str, a: Any = (model, name, penalty)) -> Any:
                model, name, penalty = a
                options: dict[str, Any] = {"penalty": penalty, "solver": solver}
                if penalty == "quadratic":
                    options["penalty_matrix"] = matrix(p.X.shape[1])
                if name == "quantile":
                    options["quantile"] = 0.3
                if model is BMRMRegressor:
                    options["epsilon"] = 0.1
                free = p.fit_intercept or name.startswith("ordinal")
                return model(p.alpha, loss=name, fit_intercept=free, **options)

            found.append(
                Case(
                    f"{name}-{penalty}",
                    targets,
                    catalogue(LOSSES[name], penalty),
                    make,
                    of_one_score(name, penalty),
                    name == "f_beta_bound",
                )
            )
    for penalty in PENALTIES:

        def detector(p: Any, solver: str, penalty: str = penalty) -> Any:
            options = {"penalty": penalty, "solver": solver}
            if penalty == "quadratic":
                options["penalty_matrix"] = matrix(p.X.shape[1])
            return BMRMOutlierDetector(p.alpha, **options)

        def novelty(model: Any, p: Problem, penalty: str = penalty) -> Any:
            return of_one_score("hinge", penalty)(
                model, p._replace(y=np.ones(len(p.y)))
            )

        solvers = catalogue(losses.NOVELTY_LOSS, penalty)
        found.append(Case(f"novelty-{penalty}", "2", solvers, detector, novelty))
    for k in (2, 3):
        for ratio in (1.0, 0.5, 0.01, 0.0):

            def logistic(p: Any, solver: str, ratio: float = ratio) -> Any:
                return L1LogisticOWLQN(
                    p.alpha,
                    l1_ratio=ratio,
                    solver=solver,
                    fit_intercept=p.fit_intercept,
                )

            def l1_objective(model: Any, p: Problem, share: float = ratio) -> Any:
                ratio = LONG(share)
                z = exact_scores(p.X, model.coef_, model.intercept_)
                if model.coef_.shape[0] == 1:
                    y = np.where(p.y == p.y.max(), LONG(1), LONG(-1))
                    risk = ONE_SCORE["log_loss"](z[:, 0], y, normalized(p))
                else:
                    risk = softmax_loss(z, p.y, normalized(p))
                w = model.coef_.astype(LONG)
                penalty = ratio * np.abs(w).sum() + (1 - ratio) / 2 * (w * w).sum()
                return LONG(p.alpha) * penalty + risk

            loss, penalty = losses.MULTINOMIAL_LOSS, elastic_net(1, ratio)
            solvers = [k for k, v in L1_SOLVERS.items() if v.supports(loss, penalty)]
            found.append(
                Case(f"l1-{k}-{ratio}", str(k), solvers, logistic, l1_objective)
            )

    def squares(model: Any) -> Any:
        w = model.coef_.astype(LONG)
        return (w * w).sum() / 2

    kinked = [
        k
        for k, v in SOLVERS.items()
        if v.supports(losses.Loss(losses.Simplex(np.eye(2))))
    ]
    smooth = [
        k
        for k, v in SOLVERS.items()
        if v.supports(losses.Loss(losses.LabelOrder(np.ones((2, 3)))))
    ]
    all_rates = {"margin": 1, "slack": label_costs(3), "rates": 1 + label_costs(3).T}
    for rescaling, rates in all_rates.items():

        def joint(p: Any, solver: str, a: Any = (rescaling, rates)) -> Any:
            rescaling, rates = a
            return MulticlassHingeClassifier(
                p.alpha,
                label_cost=label_costs(3),
                rescaling=rates if rescaling == "rates" else rescaling,
                solver=solver,
                fit_intercept=p.fit_intercept,
            )

        def joint_objective(model: Any, p: Problem, rates: Any = rates) -> Any:
            z = exact_scores(p.X, model.coef_, model.intercept_)
            risk = multiclass_hinge(z, p.y, normalized(p), rates)
            return LONG(p.alpha) * squares(model) + risk

        found.append(Case(f"joint-{rescaling}", "3", kinked, joint, joint_objective))
    for reduction, threshold in product(("max", "mean"), (True, False)):
        of_labels = multilabel_hinge if reduction == "max" else multilabel_mean

        def labels(p: Any, solver: str, a: Any = (reduction, threshold)) -> Any:
            reduction, threshold = a
            return MultilabelHingeClassifier(
                p.alpha,
                reduction=reduction,
                solver=solver,
                threshold=threshold,
                fit_intercept=p.fit_intercept,
            )

        def labels_objective(
            model: Any, p: Problem, a: Any = (of_labels, threshold)
        ) -> Any:
            of_labels, threshold = a
            z = exact_scores(p.X, model.coef_, model.intercept_)
            penalty, zero = squares(model), None
            if threshold:
                # Parameters of the threshold are subtracted from the others, and are
                # minus the mean of what remains, their own zeros included.
                W = model.coef_.astype(LONG)
                t = -W.sum(axis=0) / (len(W) + 1)
                penalty = (((W + t) ** 2).sum() + (t**2).sum()) / 2
                zero = np.zeros(len(z), dtype=LONG)
            risk = of_labels(z, p.y, normalized(p), zero)
            return LONG(p.alpha) * penalty + risk

        name = f"multilabel-{reduction}-{threshold}"
        able = kinked if reduction == "max" else smooth
        found.append(Case(name, "labels", able, labels, labels_objective))

    def ranker(p: Any, solver: str) -> Any:
        return BMRMRanker(p.alpha, loss="pairwise", solver=solver)

    found.append(
        Case(
            "ranker",
            "3",
            [k for k, v in BUNDLE_SOLVERS.items() if v.supports(losses.OrderedPairs())],
            ranker,
            of_one_score("pairs", "l2"),
            True,
        )
    )
    for immediate in (False, True):
        for penalty in PENALTIES:

            def thresholds(p: Any, solver: str, a: Any = (immediate, penalty)) -> Any:
                immediate, penalty = a
                options: dict[str, Any] = {"penalty": penalty, "solver": solver}
                if penalty == "quadratic":
                    options["penalty_matrix"] = matrix(p.X.shape[1])
                loss = losses.OrdinalLogistic(immediate=immediate)
                return BMRMClassifier(p.alpha, loss=loss, **options)

            def thresholds_objective(
                model: Any, p: Problem, a: Any = (immediate, penalty)
            ) -> Any:
                immediate, penalty = a
                w = model.coef_[1].astype(LONG)
                z = np.diff(exact_scores(p.X, model.coef_, model.intercept_), axis=1)
                if penalty == "normalized_entropy":
                    # Shares as rounded do not sum to one.
                    free = np.diff(model.intercept_).astype(LONG)
                    z, w = (z - free) / w.sum() + free, w / w.sum()
                risk = ordinal_logistic(z, p.y, normalized(p), immediate)
                return LONG(p.alpha) * PENALTIES[penalty](w) + risk

            name = f"thresholds-{immediate}-{penalty}"
            solvers = catalogue(losses.OrdinalLogistic(), penalty)
            found.append(Case(name, "3", solvers, thresholds, thresholds_objective))
    return found


CASES = cases()


def hard_case(seed: int) -> tuple[Case, Problem]:
    """A kind of fit, and a problem for it."""
    case = CASES[int(np.random.default_rng([7, seed]).integers(len(CASES)))]
    return case, problem_of(case, seed)


def problem_of(case: Case, seed: int) -> Problem:
    p = problem(seed, case.targets)
    if case.equal_weights:
        p = p._replace(weights=np.ones(len(p.y)))
    if case.name.startswith(("exponential", "poisson")):
        # Exponentials of other scores overflow.
        p = p._replace(X=p.X / (np.abs(p.X).max() or 1.0))
    return p


def check(seed: int) -> list[str]:
    """Return what is wrong with the fits of one problem."""
    case, p = hard_case(seed)
    if case.targets == "3" and len(p.y) < 3:
        return []
    tol = float(p.rng.choice([1e-3, 1e-6, 1e-10]))
    max_iter = int(p.rng.choice([5, 30, 300]))
    return compare(case, p, tol, max_iter)


def fitted(case: Case, p: Problem, solver: str, **options: Any) -> Any:
    """Return the fitted estimator, or None where numbers are too extreme for it."""
    model = case.make(p, solver).set_params(**options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if isinstance(model, BMRMRanker):
                return model.fit(p.X, p.y)
            if isinstance(model, BMRMOutlierDetector):
                return model.fit(p.X, sample_weight=p.weights)
            return model.fit(p.X, p.y, sample_weight=p.weights)
        except ValueError as error:
            if "too extreme" in str(error) or "overflow" in str(error):
                return None
            raise


def first(values: Any) -> float:
    return float(np.ravel(values)[0])


def compare(case: Case, p: Problem, tol: float, max_iter: int) -> list[str]:
    """Fit by all solvers; return those whose bounds exceed the best objective."""
    bounds, best = {}, LONG(np.inf)
    for solver in case.solvers:
        model = fitted(case, p, solver, tol=tol, max_iter=max_iter)
        if model is None:
            continue
        value, gap = first(model.objective_), first(model.dual_gap_)
        assert gap >= 0.0
        bounds[solver] = value - gap, np.spacing(abs(value))
        with np.errstate(all="ignore"):
            mine = case.objective(model, p)
        best = min(best, mine) if np.isfinite(mine) else best
    return [
        f"{case.name} {solver}: {bound!r} above {best!r} by {float(bound - best):.3g}"
        for solver, (bound, rounding) in bounds.items()
        if bound > best + rounding
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_formulas_are_those_of_the_estimators(case):
    """On data that lose no digits."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.1, 1.0, size=(9, 3))
    p = problem(0, case.targets)
    y = np.resize(p.y, (9, *p.y.shape[1:]))
    if case.targets in ("2", "3"):
        y = np.arange(9) % int(case.targets)
    elif case.targets == "real":
        y = rng.normal(size=9)
    weights = np.ones(9) if case.equal_weights else rng.uniform(0.5, 2.0, size=9)
    p = Problem(X, y, weights, 0.1, True, rng)
    model = fitted(case, p, case.solvers[0])
    expected = pytest.approx(float(case.objective(model, p)), rel=1e-12, abs=1e-14)
    assert first(model.objective_) == expected
    assert first(model.dual_gap_) <= 1e-3 * abs(first(model.objective_))


def full(shape: tuple[int, int], value: float, **entries: float) -> Any:
    """A matrix of one value but for entries named like "x1_2"."""
    X = np.full(shape, value)
    for name, entry in entries.items():
        i, j = map(int, name[1:].split("_"))
        X[i, j] = entry
    return X


# Problems in which bounds have been above the optimum: the name of a case, data,
# weights, alpha, tol and the limit on iterations.
KNOWN: list[tuple[Any, ...]] = [
    # A score far away, which is subtracted from all.
    (
        "ordinal-l2",
        [[13, 3.1e6], [13, 13], [13, 13], [3.5e6, 13], [5.7e7, -9.8e6], [13, 2.1e7]],
        [1, 0, 2, 0, 0, 0],
        [
            1.6341908919279122e-4,
            2925.3148754485537,
            326.78812638064846,
            90709.63565555525,
            2577.541125959709,
            676.4187656937585,
        ],
        1.742810393209151e-4,
        1e-3,
        1000,
    ),
    # Duals that balancing has changed: no gradients any more.
    (
        "l1-2-1.0",
        [
            [37.9, 37.8, 3210, -2.12e6],
            [38.4, 37.8, 9570, -9.82e6],
            [37.7, 37.8, 341, 1.87e7],
            [37.5, 37.9, 6970, -3.82e7],
            [38.3, 37.8, -17000, 5.17e6],
        ],
        [1, 0, 0, 0, 0],
        [3.2e5, 7.2e-6, 0.54, 2300, 0.0085],
        1.0377547023608492e-06,
        1e-6,
        1000,
    ),
    (
        "l1-3-0.5",
        [
            [-5.9e6, 0, 1.5e6, -93e3, 3.8e-5, 0, 0, 0, 7.3e-6, -0.0026],
            [0, 0, 0, 19e4, 0, 0, 0, -2500, 0, 0],
            [1.4e7, 0, 0, 0, -2.3e-5, 0, 0, 0, 0, -0.0021],
        ],
        [2, 1, 0],
        [0.0091, 16e4, 25],
        4.920897131172378,
        1e-4,
        1000,
    ),
    # Column sums that are rounding, but not of the smallest columns.
    (
        "l1-3-0.01",
        full(
            (9, 3),
            22.389,
            x1_1=379440,
            x7_1=-107530,
            x8_1=-419080,
            x0_2=22.393,
            x4_2=22.387,
            x6_2=22.392,
            x7_2=22.403,
        ),
        [0, 1, 2, 0, 0, 0, 0, 0, 0],
        [57e4, 62, 470, 2.9e-6, 0.064, 3.3e-5, 4.6e-6, 51000, 1.1],
        4e-4,
        1e-12,
        500,
    ),
]


@pytest.mark.parametrize("known", KNOWN, ids=lambda known: known[0])
def test_bounds_that_were_above_the_optimum(known):
    name, X, y, weights, alpha, tol, max_iter = known
    case = next(case for case in CASES if case.name == name)
    p = Problem(np.array(X), np.array(y), np.array(weights), alpha, True, None)
    assert not compare(case, p, tol, max_iter)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "log_loss"])
def test_objectives_of_rounded_shares_are_those_of_shares(loss):
    """In float32 they do not sum to one, and scores of less may fall below the optimum.

    The objective is that of the shares as they are proportional.
    """
    case = next(c for c in CASES if c.name == f"{loss}-normalized_entropy")
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 7)).astype(np.float32)
    y = (X[:, 0] > 0.2 * rng.normal(size=40)).astype(int)
    p = Problem(X, y, np.ones(40), 0.3, True, rng)
    model = fitted(case, p, "auto", tol=1e-9)
    assert model.coef_.dtype == np.float32
    assert float(model.coef_.astype(float).sum()) != 1.0
    exact = float(case.objective(model, p))
    assert first(model.objective_) == pytest.approx(exact, rel=1e-14)


@pytest.mark.parametrize("part", range(4))
def test_no_bound_is_above_the_best_objective(part):
    per_part = N_DEFAULT // 4
    for seed in range(part * per_part, (part + 1) * per_part):
        assert not check(seed), seed


@pytest.mark.slow
@pytest.mark.parametrize("part", range(40))
def test_no_bound_is_above_the_best_objective_of_many(part):
    per_part = N_SLOW // 40
    for seed in range(10**6 + part * per_part, 10**6 + (part + 1) * per_part):
        assert not check(seed), seed

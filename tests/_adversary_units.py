"""Attacks on models in the units of scikit-learn: drop-ins, and the originals."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from _adversary import EPS, OF_VALUE, Case, Problem, Terms, judged, problem
from _formulas import LONG, ONE_SCORE, elastic, exact_scores, long, sizes_of_scores
from sklearn import linear_model as originals
from sklearn import svm as original_svm

from sklearn_subqn import dual_gap, linear_model, svm


class Unit(NamedTuple):
    """A model of scikit-learn: its loss, share of L1 norms, options and strengths.

    ``by_sum`` says that the loss is a sum, with a factor C; else it is a mean, and the
    penalty has the factor alpha.
    """

    name: str
    targets: str
    loss: str
    l1_ratio: float
    options: dict[str, Any]
    by_sum: bool = False

    @property
    def strict(self) -> dict[str, Any]:
        """Options by which the original reaches its optimum."""
        if self.name == "LogisticRegression":
            solvers = {0.0: "lbfgs", 0.5: "saga", 1.0: "liblinear"}
            solver = solvers[self.l1_ratio]
            return {"tol": 1e-10, "max_iter": 5000, "solver": solver, "random_state": 0}
        if self.name == "QuantileRegressor":
            return {}
        return {"tol": 1e-10, "max_iter": 20000}

    def make(self, module: Any, alpha: float, fit_intercept: bool) -> Any:
        strength = {"C": 1.0 / alpha} if self.by_sum else {"alpha": alpha}
        kind = getattr(module, self.name)
        return kind(fit_intercept=fit_intercept, **strength, **self.options)

    def terms(self, coef: Any, intercept: Any, p: Problem) -> Terms:
        w, free = np.ravel(coef), np.ravel(intercept)[0]
        y = long(p.y)
        s = long(p.weights) if self.by_sum else p.shares
        constant, size = LONG(0), LONG(0)
        if self.targets == "2":
            y = np.where(p.y == 1, LONG(1), LONG(-1))
        elif self.loss == "poisson":
            logs = y * np.log(np.where(y > 0, y, LONG(1)))
            constant, size = s @ (logs - y), s @ (np.abs(logs) + y)
        # A mean counts as it is, a sum by C.
        unit = 1 / LONG(p.alpha) if self.by_sum else LONG(1)
        return Terms(
            elastic(w, self.l1_ratio) * unit,
            exact_scores(p.X, w, free)[:, 0],
            sizes_of_scores(p.X, w, free)[:, 0] + np.abs(y),
            lambda z: unit * ONE_SCORE[self.loss](z, y, s) + constant,
            float(size),
        )


UNITS = [
    *(
        Unit("LinearSVC", "2", loss, float(penalty == "l1"), options, True)
        for loss in ("hinge", "squared_hinge")
        for penalty in ("l2", "l1")
        for options in [{"loss": loss, "penalty": penalty}]
    ),
    *(
        Unit("LogisticRegression", "2", "log_loss", ratio, {"l1_ratio": ratio}, True)
        for ratio in (0.0, 0.5, 1.0)
    ),
    *(
        Unit("LinearSVR", "real", loss, 0.0, {"loss": loss, "epsilon": 0.1}, True)
        for loss in ("epsilon_insensitive", "squared_epsilon_insensitive")
    ),
    Unit("PoissonRegressor", "counts", "poisson", 0.0, {}),
    Unit("TweedieRegressor", "counts", "poisson", 0.0, {"power": 1}),
    Unit("QuantileRegressor", "real", "quantile", 1.0, {"quantile": 0.3}),
]
#: Those that are known, but have no drop-in.
MEANS = [
    Unit("Lasso", "real", "squared_error", 1.0, {}),
    Unit("ElasticNet", "real", "squared_error", 0.5, {"l1_ratio": 0.5}),
    Unit("Ridge", "real", "squared_error", 0.0, {}),
]


def _scale_terms(coef: Any, intercept: Any, p: Problem) -> Terms:
    """Those of ``HuberRegressor``, whose scale comes after the intercept."""
    w, (free, scale) = np.ravel(coef), intercept
    y, s, bend = long(p.y), long(p.weights), LONG(1.35)

    def risk(z: Any) -> Any:
        r = np.abs(y - z)
        inner = r <= bend * scale
        squares = r * r / (scale or LONG(1))
        return s @ (scale + np.where(inner, squares, 2 * bend * r - bend**2 * scale))

    sizes = sizes_of_scores(p.X, w, free)[:, 0] + np.abs(y)
    return Terms(w @ w, exact_scores(p.X, w, free)[:, 0], sizes, risk)


def _module(unit: Unit) -> tuple[Any, Any]:
    if unit.name in ("LinearSVC", "LinearSVR"):
        return svm, original_svm
    return linear_model, originals


def _of_case(name: str, targets: str, terms: Callable[..., Terms]) -> Case:
    make: Any = partial(ValueError, name)
    return Case(name, targets, ["auto"], make, terms)


def _fit(model: Any, p: Problem, **options: Any) -> Any:
    known = model.get_params()
    model.set_params(**{k: v for k, v in options.items() if k in known})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return model.fit(p.X, p.y, sample_weight=p.weights)
        except ValueError as error:
            if any(x in str(error) for x in ("too extreme", "overflow", "not finite")):
                return None
            raise


def check_units(seed: int) -> list[str]:
    """Return what is wrong with the proofs of a drop-in for scikit-learn."""
    rng = np.random.default_rng([17, seed])
    if rng.random() < 0.15:
        return _check_scale(seed, rng)
    unit = UNITS[rng.integers(len(UNITS))]
    p = problem(seed, unit.targets)._replace(warm=None)
    if unit.loss == "poisson":
        p = p._replace(X=p.X / (np.abs(p.X).max() or 1.0))
    fits = [
        (f"tol={tol}", _fit(_unit_model(unit, p), p, tol=tol, max_iter=max_iter))
        for tol, max_iter in ((1e-2, 5), (1e-4, 100), (1e-9, 1000))
    ]
    return judged(_of_case(unit.name, unit.targets, unit.terms), p, fits)


def _unit_model(unit: Unit, p: Problem) -> Any:
    return unit.make(_module(unit)[0], p.alpha, p.fit_intercept)


def _check_scale(seed: int, rng: Any) -> list[str]:
    p = problem(seed, "real")._replace(warm=None)
    if rng.random() < 0.4:
        # Residuals that are equal, or zero.
        p = p._replace(y=np.full(len(p.y), rng.choice([0.0, 1.0, 1e3])))
    case = _of_case("HuberRegressor", "real", _scale_terms)._replace(
        parameters=lambda model: (model.coef_, [model.intercept_, model.scale_])
    )
    fits = []
    for tol, max_iter in ((1e-2, 5), (1e-5, 100), (1e-9, 1000)):
        model = linear_model.HuberRegressor(
            alpha=p.alpha, fit_intercept=p.fit_intercept
        )
        fits.append((f"tol={tol}", _fit(model, p, tol=tol, max_iter=max_iter)))
    return judged(case, p, fits)


def check_originals(seed: int) -> list[str]:
    """Return what is wrong with objective and bound of a model of scikit-learn.

    Its gap is small unless LIBLINEAR has penalized its intercept, or has made all of
    the iterations it may. SAGA may stop at zeros that are not optimal.
    """
    rng = np.random.default_rng([19, seed])
    unit = [*UNITS, *MEANS][rng.integers(len(UNITS) + len(MEANS))]
    n, d = int(rng.integers(6, 30)), int(rng.integers(1, 5))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-0.5, 0.5, size=d)
    score = X @ rng.normal(size=d)
    if unit.targets == "2":
        y: Any = (score + rng.normal(size=n) > np.median(score)).astype(int)
        y[:2] = 0, 1
    elif unit.targets == "counts":
        y = rng.poisson(2.0, size=n).astype(float)
    else:
        y = score + rng.normal(size=n)
    free = bool(rng.random() < 0.5)
    alpha = 10.0 ** rng.uniform(-2, 1)
    weights = np.ones(n)
    if unit.name != "QuantileRegressor" or rng.random() < 0.5:
        weights = 10.0 ** rng.uniform(-1, 1, size=n)
    p = Problem(X, y, weights, alpha, free, rng)
    options = dict(unit.strict)
    solver = options.get("solver")
    by_liblinear = unit.name in ("LinearSVC", "LinearSVR") or solver == "liblinear"
    if unit.name == "LinearSVC":
        if unit.loss == "hinge" and unit.l1_ratio:
            return []
        options["dual"] = not unit.l1_ratio
    model = unit.make(_module(unit)[1], alpha, free).set_params(**options)
    model = _fit(model, p)
    # Ridge minimizes a sum of squares.
    if unit.name == "Ridge":
        p = p._replace(alpha=alpha / float(weights.sum()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gap, value = dual_gap(model, X, y, weights, tol=1e-6, return_objective=True)
    terms = unit.terms(long(model.coef_), long(model.intercept_), p)
    exact = terms.value(p.alpha)
    name = f"sklearn's {unit.name} {unit.loss} {unit.l1_ratio}"
    allowed = OF_VALUE * EPS * abs(exact) + terms.rounding(p.alpha)
    if abs(LONG(value) - exact) > allowed:
        return [f"{name}: objective {value!r} for {exact!r}"]
    ended = not by_liblinear or np.max(model.n_iter_) < model.max_iter
    reached = ended and solver != "saga" and not (by_liblinear and free)
    if reached and gap > 1e-3 * abs(value):
        return [f"{name}: {gap!r} above the optimum at its own, of {value!r}"]
    return []

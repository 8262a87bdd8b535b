"""Coefficients, errors and statistics that R's own models have, by one run of R."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from _r import run_r
from numpy.testing import assert_allclose
from scipy import special
from sklearn.exceptions import ConvergenceWarning

from sklearn_subqn import (
    BMRMClassifier,
    BMRMRegressor,
    fit_statistics,
    leverages,
    likelihood_ratio_test,
    residuals,
    standard_errors,
)
from sklearn_subqn.linear_model import LogisticRegression

RNG = np.random.default_rng(0)
N = 200
X = RNG.normal(size=(N, 3))
FRAME = pd.DataFrame(X, columns=["x1", "x2", "x3"])
SCORES = X @ [0.5, -0.3, 0.0] + 0.2
WEIGHTS = RNG.integers(1, 4, N).astype(float)
OFFSET = 0.3 * RNG.normal(size=N)
GROUPS = RNG.integers(0, [12, 15], (N, 2))
EVENTS = RNG.uniform(size=N) < special.expit(SCORES)
TARGETS = {
    "squared_error": SCORES + RNG.normal(size=N),
    "log_loss": EVENTS.astype(float),
    "poisson": RNG.poisson(np.exp(SCORES)).astype(float),
    "gamma": RNG.gamma(2.0, np.exp(SCORES) / 2.0),
}
TARGETS["tweedie"] = TARGETS["gamma"] * (RNG.uniform(size=N) < 0.7)
CLASSES = np.where(EVENTS, RNG.integers(0, 3, N), 2)
LEVELS = np.digitize(SCORES + RNG.logistic(size=N), [-1.0, 0.0, 1.0])
GIVEN = {
    "plain": {},
    "weights": {"sample_weight": WEIGHTS},
    "offset": {"offset": OFFSET},
}
WIDE = RNG.normal(size=(N, 12)) * np.linspace(0.5, 2.0, 12)
# glmnet's squares have L2 penalties in units of the standard deviation of y.
MEAN = np.average(TARGETS["squared_error"], weights=WEIGHTS)
SPREAD = np.average((TARGETS["squared_error"] - MEAN) ** 2, weights=WEIGHTS)
UNIT = TARGETS["squared_error"] / np.sqrt(SPREAD)
STRENGTHS = np.array([0.05, 0.01, 0.002])
MIXTURES = [0.0, 0.3, 1.0]

SCRIPT = """
out <- list()
frame <- data.frame(x1 = X[, 1], x2 = X[, 2], x3 = X[, 3])
families <- list(squared_error = gaussian(), log_loss = binomial(),
    poisson = poisson(), gamma = Gamma("log"), tweedie = tweedie(1.5, 0))
# All iterations are made: those of gamma and Tweedie regressions converge slowly.
for (loss in names(families)) for (given in c("plain", "weights", "offset")) {
    frame$y <- get(loss)
    frame$w <- if (given == "weights") weights else 1
    frame$o <- if (given == "offset") offset else 0
    fit <- suppressWarnings(glm(y ~ x1 + x2 + x3, families[[loss]], frame,
        weights = w, offset = o, epsilon = 1e-300, maxit = 60))
    small <- suppressWarnings(update(fit, . ~ x1))
    found <- list(coef = coef(fit), deviance = deviance(fit), null = fit$null.deviance,
        dispersion = summary(fit)$dispersion, log_likelihood = as.numeric(logLik(fit)),
        aic = AIC(fit), bic = BIC(fit), leverages = hatvalues(fit), vcov = vcov(fit),
        intervals = confint.default(fit),
        lrt = if (loss == "squared_error") lrtest(small, fit)[2, 5] else
            anova(small, fit, test = "LRT")[2, 5],
        wald = unlist(waldtest(small, fit,
            test = if (loss == "squared_error") "F" else "Chisq")[2, 3:4]))
    for (kind in c("response", "pearson", "deviance"))
        found[[paste(kind, "residuals")]] <- residuals(fit, kind)
    if (loss == "squared_error") found[["quantile residuals"]] <- qresiduals(fit)
    if (loss == "gamma") found[["quantile residuals"]] <- qres.gamma(fit)
    for (kind in c("HC0", "HC1", "HC2", "HC3")) found[[kind]] <- vcovHC(fit, kind)
    found$one_way <- vcovCL(fit, groups[, 1], type = "HC1")
    found$two_way <- vcovCL(fit, data.frame(groups), type = "HC1")
    for (name in names(found)) out[[paste(loss, given, name)]] <- found[[name]]
}
dependent <- lm(squared_error ~ X[, 1] + X[, 2] + I(X[, 1] - 2 * X[, 2]) + X[, 3])
out$dependent <- coef(dependent)
out$dependent_errors <- summary(dependent)$coefficients[, 2]
for (level in c(0.5, 0.3)) for (given in c("plain", "weights")) {
    w <- if (given == "weights") weights else rep(1, length(squared_error))
    both <- list(rq(squared_error ~ X, level, weights = w),
        rq(squared_error ~ 1, level, weights = w))
    losses <- sapply(both, function(fit)
        sum(w * residuals(fit) * (level - (residuals(fit) < 0))))
    out[[paste("quantile", level, given)]] <- c(coef(both[[1]]), losses)
}
rows <- rep(seq_along(levels), each = 3)
thresholds <- rep(0:2, length(levels))
stacked <- cbind(-diag(3)[thresholds + 1, ], X[rows, ])
above <- as.numeric(levels[rows] > thresholds)
fit <- glm(above ~ stacked - 1, binomial(), epsilon = 1e-14)
out$ordinal <- coef(fit)
out$ordinal_vcov <- vcovCL(fit, rows, type = "HC0", cadjust = FALSE)
fit <- clm(factor(levels) ~ X, control = clm.control(gradTol = 1e-12))
small <- clm(factor(levels) ~ X[, 1], control = clm.control(gradTol = 1e-12))
out$odds <- coef(fit)
out$odds_vcov <- vcov(fit)
out$odds_statistics <- c(logLik(fit), logLik(update(fit, . ~ 1)), AIC(fit), BIC(fit),
    anova(small, fit)[2, 6])
fit <- multinom(factor(classes) ~ X, trace = FALSE, reltol = 1e-16, abstol = 1e-12,
    maxit = 1000)
out$multinomial <- t(coef(fit))
out$multinomial_vcov <- vcov(fit)
out$multinomial_statistics <- c(logLik(fit), AIC(fit))
path <- function(y, family, mixture) glmnet(wide, y, family = family, alpha = mixture,
    lambda = strengths, weights = weights, standardize = FALSE, thresh = 1e-16,
    maxit = 1e6)
for (mixture in mixtures) {
    out[[paste("path squared_error", mixture)]] <-
        as.matrix(coef(path(unit, "gaussian", mixture)))
    out[[paste("path log_loss", mixture)]] <-
        as.matrix(coef(path(log_loss, "binomial", mixture)))
    out[[paste("path poisson", mixture)]] <-
        as.matrix(coef(path(poisson, "poisson", mixture)))
    joint <- path(factor(classes), "multinomial", mixture)
    out[[paste("path classes", mixture)]] <-
        do.call(rbind, lapply(coef(joint), function(each) as.matrix(each)[-1, ]))
}
out
"""


@pytest.fixture(scope="module")
def theirs():
    """The results of R by their names."""
    return run_r(
        SCRIPT,
        ["glmnet", "lmtest", "nnet", "ordinal", "quantreg", "sandwich", "statmod"],
        X=X,
        weights=WEIGHTS,
        offset=OFFSET,
        groups=GROUPS,
        classes=CLASSES,
        levels=LEVELS,
        wide=WIDE,
        unit=UNIT,
        strengths=STRENGTHS,
        mixtures=MIXTURES,
        **TARGETS,
    )


def fitted(loss, rows, y, alpha=0.0, data=None, **options):
    """A model of a loss, to rounding."""
    of_classes = loss == "log_loss" or loss.startswith("ordinal")
    kind = BMRMClassifier if of_classes else BMRMRegressor
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return kind(alpha, loss=loss, tol=1e-13, **options).fit(rows, y, **(data or {}))


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("loss", TARGETS)
def test_generalized_linear_models(theirs, loss, given):
    """R's gamma likelihood has another dispersion, and its criteria count it."""
    y, data = TARGETS[loss], GIVEN[given]
    model, small = (fitted(loss, each, y, data=data) for each in (FRAME, FRAME[["x1"]]))

    def expect(actual, name, rtol=1e-7):
        expected = theirs[f"{loss} {given} {name}"]
        size = np.max(np.abs(expected))
        assert_allclose(
            np.ravel(actual),
            expected.ravel(),
            rtol=rtol,
            atol=rtol * size,
            err_msg=name,
        )

    expect(np.append(model.intercept_, model.coef_), "coef")
    found = fit_statistics(model, FRAME, y, **data)
    expect([found.deviance], "deviance")
    expect([found.null_deviance], "null")
    expect([found.dispersion], "dispersion")
    if loss not in ("gamma", "tweedie"):
        extra = float(loss == "squared_error")
        expect([found.log_likelihood], "log_likelihood")
        expect([found.aic + 2.0 * extra], "aic")
        expect([found.bic + np.log(N) * extra], "bic")
    for kind in ("response", "pearson", "deviance", "quantile"):
        if f"{loss} {given} {kind} residuals" in theirs:
            found = residuals(model, FRAME, y, kind=kind, **data)
            expect(found, f"{kind} residuals")
    expect(leverages(model, FRAME, y, **data), "leverages", rtol=1e-6)
    errors = standard_errors(model, FRAME, y, **data)
    expect(errors.covariance, "vcov")
    if loss != "squared_error":
        expect(errors.intervals(), "intervals")
    test = likelihood_ratio_test(small, model, FRAME, y, **data)
    expect([test.p_value], "lrt")
    test = errors.wald_test(["x2", "x3"])
    expect([test.statistic, test.p_value], "wald")


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("loss", ["squared_error", "log_loss", "poisson"])
def test_sandwiches(theirs, loss, given):
    y, data = TARGETS[loss], GIVEN[given]
    model = fitted(loss, X, y, data=data)
    kinds = {kind: {"kind": kind} for kind in ("HC0", "HC1", "HC2", "HC3")}
    kinds |= {"one_way": {"groups": GROUPS[:, 0]}, "two_way": {"groups": GROUPS}}
    for name, options in kinds.items():
        found = standard_errors(model, X, y, **data, **options).covariance
        expected = theirs[f"{loss} {given} {name}"]
        atol = 1e-8 * np.max(expected)
        assert_allclose(found, expected, rtol=1e-7, atol=atol, err_msg=name)


def test_dependent_features(theirs):
    rows = np.column_stack([X[:, :2], X[:, 0] - 2.0 * X[:, 1], X[:, 2]])
    model = fitted("squared_error", rows, TARGETS["squared_error"])
    with pytest.warns(UserWarning, match="x2"):
        found = standard_errors(model, rows, TARGETS["squared_error"])
    expected, known = theirs["dependent"], ~np.isnan(theirs["dependent"])
    assert known.tolist() == [True, True, True, False, True]
    assert_allclose(found.estimates, expected, rtol=1e-8, atol=1e-9)
    assert_allclose(found.std_errors[known], theirs["dependent_errors"], rtol=1e-8)


@pytest.mark.parametrize("given", ["plain", "weights"])
@pytest.mark.parametrize("level", [0.5, 0.3])
def test_quantiles(theirs, level, given):
    y = TARGETS["squared_error"]
    model = fitted("quantile", X, y, data=GIVEN[given], quantile=level)
    found = fit_statistics(model, X, y, **GIVEN[given])
    *coef, loss, null = theirs[f"quantile {level} {given}"]
    assert_allclose(
        np.append(model.intercept_, model.coef_), coef, rtol=1e-9, atol=1e-10
    )
    assert_allclose([found.deviance, found.null_deviance], [loss, null], rtol=1e-9)
    assert_allclose(found.d2, 1.0 - loss / null, rtol=1e-7)


def test_ordered_classes(theirs):
    """They are a logistic regression of all comparisons, in clusters of one sample."""
    model = fitted("ordinal_all_threshold", X, LEVELS)
    found = standard_errors(model, X, LEVELS)
    assert_allclose(found.estimates, theirs["ordinal"], rtol=1e-8)
    assert_allclose(found.covariance, theirs["ordinal_vcov"], rtol=1e-7, atol=1e-10)


def test_proportional_odds(theirs):
    model, small = (fitted("ordinal_logit", X[:, :m], LEVELS) for m in (3, 1))
    errors = standard_errors(model, X, LEVELS)
    assert_allclose(errors.estimates, theirs["odds"], rtol=1e-7)
    assert_allclose(errors.covariance, theirs["odds_vcov"], rtol=1e-6, atol=1e-9)
    found = fit_statistics(model, X, LEVELS)
    test = likelihood_ratio_test(small, model, X, LEVELS, X_small=X[:, :1])
    mine = found.log_likelihood, found.null_log_likelihood, found.aic, found.bic
    assert_allclose([*mine, test.p_value], theirs["odds_statistics"], rtol=1e-8)


def test_multinomial(theirs):
    """R's optimizer stops at relative errors of 1e-8."""
    model = LogisticRegression(C=np.inf, tol=1e-12).fit(X, CLASSES)
    found = standard_errors(model, X, CLASSES, reference=0)
    expected = theirs["multinomial"].ravel(order="F")
    assert_allclose(found.estimates, expected, rtol=1e-6, atol=1e-7)
    assert_allclose(found.covariance, theirs["multinomial_vcov"], rtol=1e-6, atol=1e-9)
    found = fit_statistics(model, X, CLASSES)
    statistics = [found.log_likelihood, found.aic]
    assert_allclose(statistics, theirs["multinomial_statistics"], rtol=1e-10)


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize("loss", ["squared_error", "log_loss", "poisson", "classes"])
def test_penalized_paths(theirs, loss, mixture):
    """The strengths ``alpha`` and ``l1_ratio`` are glmnet's lambda and alpha."""
    paths = []
    for alpha in STRENGTHS:
        if loss == "classes":
            model = LogisticRegression(
                C=1.0 / (WEIGHTS.sum() * alpha), l1_ratio=mixture, tol=1e-12
            ).fit(WIDE, CLASSES, sample_weight=WEIGHTS)
            paths.append(model.coef_.ravel())
            continue
        y = UNIT if loss == "squared_error" else TARGETS[loss]
        options = {"penalty": "elasticnet", "l1_ratio": mixture}
        model = fitted(loss, WIDE, y, alpha, GIVEN["weights"], **options)
        paths.append(np.append(model.intercept_, model.coef_))
    expected = theirs[f"path {loss} {mixture:g}"]
    assert_allclose(np.transpose(paths), expected, rtol=1e-5, atol=1e-6)

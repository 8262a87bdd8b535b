"""CoxRegression: against statsmodels, by definition, and by equal problems."""

import pickle
import tracemalloc
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from _r import run_r
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from sklearn_subqn import CoxRegression, CoxRegressionCV, standard_errors


def survival_data(n=200, d=3, seed=0):
    """Return X with tied times, events, entries and strata."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    time = np.ceil(8.0 * rng.exponential(np.exp(-X @ np.linspace(1.0, -0.5, d))))
    end = np.ceil(rng.exponential(16.0, n))
    time, event = np.minimum(time, end), time <= end
    # No entry is at an event, where statsmodels counts it and R does not.
    entry = np.maximum(time - rng.integers(1, 10, n) + 0.5, 0.0)
    return X, time, event, entry, rng.integers(0, 3, n), 0.3 * rng.normal(size=n)


X, TIME, EVENT, ENTRY, STRATA, OFFSET = survival_data()
SEVERAL = {
    "plain": {},
    "entry": {"entry": ENTRY},
    "strata": {"strata": STRATA},
    "offset": {"offset": OFFSET},
    "entry, strata": {"entry": ENTRY, "strata": STRATA},
}
KNOWN = {
    "efron": [0.9901291, 0.2088396, -0.5035698],
    "breslow": [0.8634587, 0.1678421, -0.4330233],
}


def targets(data):
    entry = data.get("entry")
    return (TIME, EVENT) if entry is None else (entry, TIME, EVENT)


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("data", SEVERAL.values(), ids=SEVERAL)
def test_coefficients_are_those_of_statsmodels(ties, data):
    models = pytest.importorskip("statsmodels.api")
    peer = models.PHReg(TIME, X, status=EVENT.astype(int), ties=ties, **data)
    peer = peer.fit(disp=0)
    given = {k: v for k, v in data.items() if k != "entry"}
    model = CoxRegression(0, ties=ties, tol=1e-10).fit(X, targets(data), **given)
    np.testing.assert_allclose(model.coef_, peer.params, atol=1e-7)
    assert model.dual_gap_ <= 1e-10 * model.objective_


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_results_are_those_of_scikit_survival(ties):
    models = pytest.importorskip("sksurv.linear_model")
    metrics = pytest.importorskip("sksurv.metrics")
    y = np.array(list(zip(EVENT, TIME, strict=True)), dtype=[("e", "?"), ("t", "f8")])
    for strength in (0.0, 3.0):
        peer = models.CoxPHSurvivalAnalysis(strength, ties=ties, n_iter=99, tol=1e-12)
        peer.fit(X, y)
        model = CoxRegression(strength / len(X), ties=ties, tol=1e-11).fit(X, y)
        np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-7)
        curves = peer.predict_survival_function(X[:5])
        known = [curve(model.event_times_) for curve in curves]
        np.testing.assert_allclose(
            model.predict_survival_function(X[:5]), known, atol=1e-7
        )
        scores = model.predict(X)
        share = metrics.concordance_index_censored(EVENT, TIME, scores)[0]
        assert model.score(X, y) == pytest.approx(share, abs=1e-12)
    if ties == "breslow":
        for share in (1.0, 0.5):
            options = {"l1_ratio": share, "tol": 1e-16, "max_iter": 10**6}
            peer = models.CoxnetSurvivalAnalysis(alphas=[0.1], **options)
            options |= {"tol": 1e-11, "max_iter": 1000}
            net = CoxRegression(0.1, ties=ties, penalty="elasticnet", **options)
            expected = peer.fit(X, y).coef_[:, 0]
            np.testing.assert_allclose(net.fit(X, y).coef_, expected, atol=1e-6)


@pytest.mark.parametrize("data", ["plain", "entry", "strata", "entry, strata"])
def test_coefficients_are_those_of_lifelines(data):
    fitter = pytest.importorskip("lifelines").CoxPHFitter()
    frame = pd.DataFrame(X, columns=list("abc")).assign(time=TIME, event=EVENT)
    given = SEVERAL[data]
    options = {}
    if "entry" in given:
        frame["entry"], options["entry_col"] = ENTRY, "entry"
    if "strata" in given:
        frame["strata"], options["strata"] = STRATA, "strata"
    options["fit_options"] = {"precision": 1e-12}
    peer = fitter.fit(frame, "time", "event", **options)
    y, strata = targets(given), given.get("strata")
    model = CoxRegression(0, tol=1e-11).fit(X, y, strata=strata)
    np.testing.assert_allclose(model.coef_, peer.params_, atol=1e-7)
    errors = standard_errors(model, X, y, strata=strata)
    np.testing.assert_allclose(errors.std_errors[:3], peer.standard_errors_, rtol=1e-6)


WITH_R = """
y <- Surv(time, event)
late <- Surv(entry, time, event)
tight <- coxph.control(eps = 1e-13, toler.chol = 1e-14, iter.max = 100)
found <- list(harrell = concordance(y ~ z, reverse = TRUE)$concordance,
    uno = concordance(y ~ z, reverse = TRUE, timewt = "n/G2")$concordance)
for (ties in c("efron", "breslow")) {
    fit <- function(formula, s = rep(1, length(time))) {
        environment(formula) <- environment()
        coxph(formula, weights = s, ties = ties, control = tight)
    }
    fits <- list(plain = fit(y ~ X), entry = fit(late ~ X),
        strata = fit(y ~ X + strata(g)), weights = fit(y ~ X, s),
        all = fit(late ~ X + strata(g) + offset(o), s))
    for (name in names(fits)) {
        one <- paste(name, ties, sep = "_")
        found[[paste("coef", one, sep = "_")]] <- coef(fits[[name]])
        found[[paste("robust", one, sep = "_")]] <- sqrt(diag(vcov(fits[[name]])))
        own <- fits[[name]]$naive.var
        own <- if (is.null(own)) vcov(fits[[name]]) else own
        found[[paste("errors", one, sep = "_")]] <- sqrt(diag(own))
        found[[paste("share", one, sep = "_")]] <- concordance(fits[[name]])$concordance
        hazard <- basehaz(fits[[name]], centered = FALSE)
        found[[paste("hazard", one, sep = "_")]] <- cbind(hazard$time, hazard$hazard)
    }
}
net <- glmnet(X, y, family = "cox", alpha = 0.5, weights = s,
    lambda = c(0.2, 0.05, 0.02), standardize = FALSE, thresh = 1e-22, maxit = 1e7)
c(found, list(net = as.matrix(net$beta)))
"""
GIVEN_R = {
    "plain": (False, False, {}),
    "entry": (True, False, {}),
    "strata": (False, False, {"strata": STRATA}),
    "weights": (False, True, {}),
    "all": (True, True, {"strata": STRATA, "offset": OFFSET}),
}


def test_results_are_those_of_r():
    s = np.random.default_rng(8).uniform(0.5, 3.0, len(X))
    coef = np.array([0.5, 0.2, -0.3])
    data = {"time": TIME, "event": EVENT, "entry": ENTRY, "g": STRATA, "o": OFFSET}
    known = run_r(WITH_R, ["survival", "glmnet"], X=X, s=s, z=X @ coef, **data)
    for ties in ("efron", "breslow"):
        for name, (late, weighted, given) in GIVEN_R.items():
            y = (ENTRY, TIME, EVENT) if late else (TIME, EVENT)
            of, weights = f"{name}_{ties}", s if weighted else None
            model = CoxRegression(0, ties=ties, tol=1e-11)
            model.fit(X, y, weights, **given)
            np.testing.assert_allclose(model.coef_, known[f"coef_{of}"], atol=1e-7)
            options = {"weights": "frequency"} if weighted else {}
            errors = standard_errors(model, X, y, weights, **given, **options)
            np.testing.assert_allclose(
                errors.std_errors[:3], known[f"errors_{of}"], rtol=1e-6
            )
            if weighted:
                # R takes such weights as sampling weights, and its errors are robust.
                errors = standard_errors(model, X, y, weights, kind="HC0", **given)
                expected = known[f"robust_{of}"]
                np.testing.assert_allclose(errors.std_errors[:3], expected, rtol=1e-6)
            share = model.score(X, y, weights, **given)
            assert share == pytest.approx(known[f"share_{of}"].item(), abs=1e-12)
            # For Efron's likelihood R has another estimate of the hazard, and with an
            # offset another baseline.
            if ties == "breslow" and not given:
                times, hazards = known[f"hazard_{of}"].T
                found = model.predict_cumulative_hazard(np.zeros((1, 3)), times)
                np.testing.assert_allclose(found[0], hazards, rtol=1e-6)
    model.strata_, model.coef_ = None, coef
    for kind in ("harrell", "uno"):
        share = model.score(X, (TIME, EVENT), offset=0, weights=kind)
        assert share == pytest.approx(known[kind].item(), abs=1e-12)
    for i, alpha in enumerate((0.2, 0.05, 0.02)):
        net = CoxRegression(alpha, ties="breslow", penalty="elasticnet", tol=1e-11)
        net.fit(X, (TIME, EVENT), s)
        np.testing.assert_allclose(net.coef_, known["net"][:, i], atol=1e-6)


def test_numbers_of_another_package():
    # coef_ by statsmodels 0.15, PHReg(ties="efron") and "breslow", of the data above.
    known = {ties: CoxRegression(0, ties=ties, tol=1e-11) for ties in KNOWN}
    for ties, model in known.items():
        coef = model.fit(X, (TIME, EVENT)).coef_
        np.testing.assert_allclose(coef, KNOWN[ties], atol=1e-6)


def test_forms_of_targets():
    structured = np.array(
        list(zip(EVENT, TIME, strict=True)), dtype=[("event", bool), ("time", float)]
    )
    frame = pd.DataFrame({"time": TIME, "event": EVENT})
    signed = np.where(EVENT, TIME, -TIME)
    coef = CoxRegression(1e-2).fit(X, (TIME, EVENT)).coef_
    for y in (structured, frame, np.column_stack([TIME, EVENT]), signed):
        np.testing.assert_array_equal(CoxRegression(1e-2).fit(X, y).coef_, coef)
    late = CoxRegression(1e-2).fit(X, (ENTRY, TIME, EVENT)).coef_
    y = np.column_stack([ENTRY, TIME, EVENT])
    np.testing.assert_array_equal(CoxRegression(1e-2).fit(X, y).coef_, late)
    assert not np.allclose(coef, late)


@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet"])
def test_weights_are_repetitions_and_sparse_is_dense(penalty):
    weights = np.random.default_rng(1).integers(0, 3, len(X))
    rows = np.repeat(np.arange(len(X)), weights)
    params = {"penalty": penalty, "ties": "breslow", "tol": 1e-9}
    model = CoxRegression(1e-2, **params)
    weighted = model.fit(X, (TIME, EVENT), weights, strata=STRATA)
    y = TIME[rows], EVENT[rows]
    repeated = CoxRegression(1e-2, **params).fit(X[rows], y, strata=STRATA[rows])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)
    np.testing.assert_allclose(weighted.objective_, repeated.objective_, rtol=1e-8)
    np.testing.assert_allclose(
        weighted.baseline_cumulative_hazard_,
        repeated.baseline_cumulative_hazard_,
        rtol=1e-5,
    )
    assert weighted.baseline_score_ == pytest.approx(repeated.baseline_score_)
    of_sparse = CoxRegression(1e-2, **params)
    of_sparse.fit(sparse.csr_array(X), (TIME, EVENT), weights, strata=STRATA)
    np.testing.assert_allclose(of_sparse.coef_, weighted.coef_, atol=1e-6)


def test_wide_data_with_an_l1_norm_are_proven():
    rng = np.random.default_rng(2)
    wide = rng.normal(size=(80, 1200))
    time = rng.exponential(np.exp(-wide[:, 0]))
    model = CoxRegression(0.05, penalty="l1").fit(wide, (time, rng.random(80) < 0.7))
    assert model.dual_gap_ <= 1e-3 * model.objective_
    assert 0 < np.count_nonzero(model.coef_) < 80


def test_models_of_wide_data_take_no_more_memory_than_the_data():
    """An elastic net with little L1 norm has far more coefficients than rows."""
    rng = np.random.default_rng(2)
    wide, params = rng.normal(size=(30, 4000)), {"penalty": "elasticnet"}
    y = rng.permutation(30) + 1.0, rng.random(30) < 0.8
    tracemalloc.start()
    model = CoxRegression(0.3, l1_ratio=0.02, **params).fit(wide, y)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.count_nonzero(model.coef_) > 1000
    assert most < 10 * wide.nbytes
    assert model.dual_gap_ <= 1e-3 * model.objective_
    # The proofs of two methods agree.
    other = CoxRegression(0.3, l1_ratio=0.5, solver="owlqn", **params).fit(wide, y)
    model = CoxRegression(0.3, l1_ratio=0.5, **params).fit(wide, y)
    assert model.objective_ >= other.objective_ - other.dual_gap_
    assert other.objective_ >= model.objective_ - model.dual_gap_


def test_baseline_and_survival_functions():
    model = CoxRegression(1e-2, ties="breslow").fit(
        X, (TIME, EVENT), strata=STRATA, offset=OFFSET
    )
    scores = X @ model.coef_ + OFFSET
    at_risk = [TIME[EVENT & np.equal(STRATA, g)].min() for g in STRATA] <= TIME
    assert model.baseline_score_ == pytest.approx(scores[at_risk].mean())
    risk = np.exp(scores - model.baseline_score_)
    for g in range(3):
        at = np.equal(STRATA, g)
        for i, t in enumerate(model.event_times_):
            steps = [
                np.sum(at & EVENT & np.equal(TIME, s))
                / risk[at & np.greater_equal(TIME, s)].sum()
                for s in np.unique(TIME[at & EVENT & np.less_equal(TIME, t)])
            ]
            found = model.baseline_cumulative_hazard_[g, i]
            assert found == pytest.approx(sum(steps))
    times = [0.0, model.event_times_[0], 1e9]
    of = {"strata": STRATA[:5], "offset": 0}
    hazards = model.predict_cumulative_hazard(X[:5], times, **of)
    assert not hazards[:, 0].any()
    everywhere = model.predict_cumulative_hazard(X[:5], **of)
    np.testing.assert_allclose(hazards[:, 1:], everywhere[:, [0, -1]])
    survival = model.predict_survival_function(X[:5], **of)
    np.testing.assert_allclose(survival, np.exp(-everywhere))
    with pytest.raises(ValueError, match="strata"):
        model.predict_survival_function(X[:5], offset=0)
    far = CoxRegression(1e-2, tol=1e-9).fit(X + 5000.0, (TIME, EVENT))
    near = CoxRegression(1e-2, tol=1e-9).fit(X, (TIME, EVENT))
    curves = [m.predict_survival_function(x) for m, x in ((far, X + 5000.0), (near, X))]
    np.testing.assert_allclose(*curves, atol=1e-5)


@pytest.mark.parametrize("late", [False, True])
def test_concordance_by_all_pairs(late):
    rng = np.random.default_rng(3)
    n = 60
    x = rng.integers(0, 8, n).astype(float)
    weights = rng.integers(0, 3, n).astype(float)
    y = (ENTRY[:n], TIME[:n], EVENT[:n]) if late else (TIME[:n], EVENT[:n])
    model = CoxRegression(1.0).fit(x[:, np.newaxis], y)
    model.coef_ = np.ones(1)
    right = pairs = 0.0
    for i in np.flatnonzero(EVENT[:n]):
        for j in range(n):
            later = TIME[j] > TIME[i] or (TIME[j] == TIME[i] and not EVENT[j])
            seen = not late or ENTRY[j] < TIME[i]
            if later and seen and STRATA[i] == STRATA[j]:
                pairs += weights[i] * weights[j]
                half = 0.5 * (x[i] == x[j])
                right += weights[i] * weights[j] * ((x[i] > x[j]) + half)
    score = model.score(x[:, np.newaxis], y, weights, strata=STRATA[:n])
    assert score == pytest.approx(right / pairs)


def exact_concordance(scores, y, weights, strata, offset):
    """Return the concordance in exact arithmetic."""
    entry, time, event = y
    z = [Fraction(a) + Fraction(b) for a, b in zip(scores, offset, strict=True)]
    s = [Fraction(weight) for weight in weights]
    right, pairs = Fraction(0), Fraction(0)
    for i in np.flatnonzero(event):
        later = (time > time[i]) | ((time == time[i]) & ~event)
        for j in np.flatnonzero(later & (entry < time[i]) & (strata == strata[i])):
            pairs += s[i] * s[j]
            right += s[i] * s[j] * Fraction(int(z[i] > z[j]) + int(z[i] >= z[j]), 2)
    return right / pairs


@pytest.mark.parametrize("seed", range(6))
def test_concordance_of_extreme_weights_is_nearly_exact(seed):
    rng = np.random.default_rng([11, seed])
    n, none = 40, np.zeros(40)
    weights = 10.0 ** rng.uniform(-12.0, 12.0, size=n)
    rows = rng.permutation(len(X))[:n]
    # The sample of the largest weight enters after the first event.
    late = np.argsort(TIME[rows])[-1]
    weights[late] = 1e14
    y = ENTRY[rows], TIME[rows], EVENT[rows]
    x = rng.integers(0, 6, n) / 4.0
    model = CoxRegression(1.0).fit(x[:, np.newaxis], y)
    model.coef_ = np.ones(1)
    score = model.score(x[:, np.newaxis], y, weights, strata=STRATA[rows])
    exact = exact_concordance(x, y, weights, STRATA[rows], none)
    assert abs(Fraction(score) / exact - 1) < 40 * np.finfo(float).eps


def exact_uno(scores, y, weights):
    """Return the concordance with Uno's weights in exact arithmetic."""
    entry, time, event = y
    s = np.array([Fraction(weight) for weight in weights])
    right, pairs = Fraction(0), Fraction(0)
    for i in np.flatnonzero(event):
        kept = Fraction(1)
        for c in np.unique(time[~event & (time < time[i])]):
            stay, leave = (
                s[(entry < c) & rows].sum() for rows in (time > c, (time == c) & ~event)
            )
            kept *= stay / (stay + leave)
        later = (time > time[i]) | ((time == time[i]) & ~event)
        for j in np.flatnonzero(later & (entry < time[i])):
            pair = s[i] * s[j] / kept**2
            pairs += pair
            more, as_much = int(scores[i] > scores[j]), int(scores[i] >= scores[j])
            right += pair * Fraction(more + as_much, 2)
    return right / pairs


@pytest.mark.parametrize("late", [False, True])
def test_uno_weights_of_extreme_weights_are_nearly_exact(late):
    rng = np.random.default_rng(13)
    n = 12
    for _ in range(20):
        time, event = rng.integers(1, 9, n).astype(float), rng.random(n) < 0.5
        # The last one is under observation all the time.
        time[-1], event[:2] = 9.0, [True, False]
        weights = 10.0 ** rng.uniform(-15.0, 15.0, size=n)
        entry = time - rng.integers(1, 9, n) if late else np.full(n, -1.0)
        entry[-1] = -1.0
        x, y = rng.integers(0, 4, n).astype(float), (entry, time, event)
        model = CoxRegression(1.0).fit(x[:, np.newaxis], y)
        model.coef_ = np.ones(1)
        score = model.score(x[:, np.newaxis], y, weights, weights="uno")
        assert score == pytest.approx(float(exact_uno(x, y, weights)), rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_bounds_of_concordance_hold_in_exact_arithmetic(seed):
    # One feature gives the same order of scores for each alpha, and solutions of so
    # small an interval are so close that bounds differ by charges of rounding only.
    rng = np.random.default_rng([12, seed])
    n = 60
    rows, weights = rng.permutation(len(X))[:n], 10.0 ** rng.uniform(-12, 12, size=n)
    x, y = rng.permutation(n) / n, (ENTRY[rows], TIME[rows], EVENT[rows])
    folds = [(np.arange(n), np.flatnonzero(np.arange(n) % 3 == k)) for k in range(3)]
    search = CoxRegressionCV((1.0, 1.0001), cv=folds, search_tol=1e-9)
    search.set_params(scoring="concordance", ties="breslow")
    search.fit(x[:, np.newaxis], y, weights, strata=STRATA[rows])
    exact = Fraction(0)
    for _, test in folds:
        given = tuple(each[test] for each in y), weights[test], STRATA[rows][test]
        sign = np.sign(search.coef_[0])
        exact += exact_concordance(sign * x[test], *given, np.zeros(len(test))) / 3
    for lower, upper in search.score_bounds_[:, 2:]:
        assert Fraction(lower) <= exact <= Fraction(upper)
        assert upper - lower < 1e-12


def test_concordance_by_weights_of_uno():
    # Four events; one of four samples is censored at 1.5, before the events at 2 and 3.
    x, y = np.array([[1.0], [4.0], [2.0], [3.0]]), ([1, 1.5, 2, 3], [1, 0, 1, 1])
    model = CoxRegression(1.0).fit(x, y)
    model.coef_ = np.ones(1)
    # Pairs: (1, 2), (1, 3), (1, 4) of weight 1, and (3, 4) of weight (3 / 2)².
    assert model.score(x, y) == 0.0
    model.coef_ = -np.ones(1)
    assert model.score(x, y, weights="uno") == 1.0
    swapped = x[[0, 1, 3, 2]]
    assert model.score(swapped, y) == pytest.approx(3.0 / 4.0)
    assert model.score(swapped, y, weights="uno") == pytest.approx(3.0 / 5.25)
    # Nobody under observation stays uncensored until the next sample enters.
    late = [0, 1.5, 1.5], [1, 2, 3], [0, 1, 0]
    with pytest.raises(ValueError, match="infinite"):
        model.score(x[:3], late, weights="uno")


def test_what_is_refused():
    for y, message in (
        ((TIME, np.zeros(len(X))), "no events"),
        ((TIME, TIME), "booleans"),
        ((-TIME, EVENT), "negative"),
        ((TIME, TIME, EVENT), "before time"),
        ((TIME[:-1], EVENT[:-1]), "inconsistent"),
        ((np.ma.masked_equal(TIME, TIME[0]), EVENT), "masked"),
    ):
        with pytest.raises(ValueError, match=message):
            CoxRegression().fit(X, y)


def test_pickles_give_the_same_predictions():
    model = CoxRegression().fit(X, (TIME, EVENT))
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_monotone_likelihoods_are_not_called_proven():
    x = -TIME[:, np.newaxis]
    with pytest.warns(ConvergenceWarning):
        CoxRegression(0, tol=1e-6).fit(x, (TIME, np.ones(len(x))))


def test_features_that_are_nearly_the_same():
    # A long step along their difference is a step along the noise.
    noise = np.random.default_rng(7).normal(size=len(X))
    near = np.column_stack([X[:, 0], X[:, 0] + 1e-11 * noise])
    y = TIME, EVENT
    with pytest.warns(ConvergenceWarning):
        model = CoxRegression(0).fit(near, y)
    apart = np.column_stack([X[:, 0], noise])
    least = CoxRegression(0, tol=1e-9).fit(apart, y).objective_
    assert model.objective_ - model.dual_gap_ <= least
    same = CoxRegression(0, tol=1e-9).fit(X[:, [0, 0, 1]], y)
    assert same.dual_gap_ <= 1e-9 * same.objective_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", [38, 43, 302])
def test_features_that_nearly_agree_where_few_rows_have_weight(seed):
    # Second derivatives along their difference are below the rounding of the matrix.
    rng = np.random.default_rng(seed)
    x, noise, errors = rng.normal(size=(3, 14))
    y = np.ceil(10.0 * np.exp(0.3 * errors - x)), np.ones(14, dtype=bool)
    weights = 10.0 ** rng.uniform(-13, 0, size=14)
    near = np.column_stack([x, x + 1e-9 * noise])
    model = CoxRegression(0, ties="breslow").fit(near, y, weights)
    apart = np.column_stack([x, noise])
    least = CoxRegression(0, ties="breslow", tol=1e-6).fit(apart, y, weights)
    assert model.objective_ - model.dual_gap_ <= least.objective_


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("data", SEVERAL.values(), ids=SEVERAL)
def test_standard_errors_are_those_of_statsmodels(ties, data):
    models = pytest.importorskip("statsmodels.api")
    peer = models.PHReg(TIME, X, status=EVENT.astype(int), ties=ties, **data)
    given = {k: v for k, v in data.items() if k != "entry"}
    model = CoxRegression(0, ties=ties, tol=1e-10).fit(X, targets(data), **given)
    errors = standard_errors(model, X, targets(data), **given)
    np.testing.assert_allclose(errors.std_errors, peer.fit(disp=0).bse, rtol=1e-7)
    if ties == "breslow" and "entry" not in data:
        groups = np.arange(len(X)) // 4
        robust = standard_errors(model, X, targets(data), groups=groups, **given)
        # Here with a factor for few clusters, of which there are 50.
        factor = np.sqrt(50 / 49 * (len(X) - 1) / (len(X) - 3))
        others = peer.fit(disp=0, groups=groups).bse
        np.testing.assert_allclose(robust.std_errors, factor * others, rtol=1e-7)


def test_weights_as_frequencies_have_the_errors_of_repeated_rows():
    weights = np.random.default_rng(4).integers(0, 3, len(X))
    rows = np.repeat(np.arange(len(X)), weights)
    model = CoxRegression(0, ties="breslow", tol=1e-10).fit(X, (TIME, EVENT), weights)
    for kind in ("fisher", "HC0", "HC1"):
        found = standard_errors(
            model, X, (TIME, EVENT), weights, kind=kind, weights="frequency"
        )
        repeated = standard_errors(model, X[rows], (TIME[rows], EVENT[rows]), kind=kind)
        np.testing.assert_allclose(found.std_errors, repeated.std_errors, rtol=1e-9)


def test_standard_errors_by_clusters_ignore_rows_of_weight_zero():
    weights = np.ones(len(X))
    weights[:8] = 0.0
    y, groups = (TIME, EVENT), np.arange(len(X)) // 8
    model = CoxRegression(0, tol=1e-10).fit(X, y, weights)
    found = standard_errors(model, X, y, weights, groups=groups)
    rest = X[8:], (TIME[8:], EVENT[8:])
    known = standard_errors(model, *rest, groups=groups[8:])
    np.testing.assert_allclose(found.covariance, known.covariance, rtol=1e-9)
    # Two ways add up, less their pairs (Cameron, Gelbach and Miller 2011).
    others = np.arange(len(X)) % 9
    both = np.column_stack([groups, others])
    pairs = 9 * groups + others
    ways = [
        standard_errors(model, *rest, groups=g[8:]) for g in (groups, others, pairs)
    ]
    a, b, c = (each.covariance for each in ways)
    twice = standard_errors(model, X, y, weights, groups=both)
    np.testing.assert_allclose(twice.covariance, a + b - c, rtol=1e-9)
    with pytest.raises(ValueError, match="at least two clusters"):
        standard_errors(model, X, y, weights, groups=np.arange(len(X)) < 8)


def test_standard_errors_of_models_with_a_penalty():
    y = TIME, EVENT
    ridge = CoxRegression(1e-2, tol=1e-9).fit(X, y)
    with pytest.warns(UserWarning, match="has a penalty"):
        standard_errors(ridge, X, y)
    lasso = CoxRegression(1e-2, penalty="l1").fit(X, y)
    with pytest.raises(ValueError, match="no standard errors"):
        standard_errors(lasso, X, y)


def test_proportionality_by_its_definition():
    model = CoxRegression(0, ties="breslow", tol=1e-10).fit(X, (TIME, EVENT))
    test = model.proportionality_test(X, (TIME, EVENT), transform="identity")
    risk = np.exp(X @ model.coef_)
    order = np.flatnonzero(EVENT)[np.argsort(TIME[EVENT], kind="stable")]
    np.testing.assert_array_equal(test.times, TIME[order])
    expected = []
    for i in order:
        share = risk * (TIME[i] <= TIME)
        expected.append(X[i] - share @ X / share.sum())
    summed = {t: np.sum(np.array(expected)[TIME[order] == t], 0) for t in TIME[order]}
    for t, total in summed.items():
        np.testing.assert_allclose(
            test.residuals[test.times == t].sum(0), total, atol=1e-12
        )
    g = TIME[order] - TIME[order].mean()
    total, d = g @ np.array(expected), len(order)
    covariance = standard_errors(model, X, (TIME, EVENT)).covariance
    whole = d * total @ covariance @ total / (g @ g)
    assert test.statistic == pytest.approx(whole)
    each = d * (covariance @ total) ** 2 / np.diag(covariance) / (g @ g)
    np.testing.assert_allclose(test.statistics, each)


def test_effects_that_fade_are_found():
    rng = np.random.default_rng(5)
    x = rng.integers(0, 2, (2000, 2)).astype(float)
    # The hazard ratio of the first feature is e before the time 0.5, and 1 thereafter.
    early = rng.exponential(np.exp(-x[:, 0]))
    time = np.where(early < 0.5, early, 0.5 + rng.exponential(size=len(x)))
    y = time, np.ones(len(x))
    model = CoxRegression(0, tol=1e-9).fit(x, y)
    test = model.proportionality_test(x, y)
    assert test.p_values[0] < 1e-6 < 1e-2 < test.p_values[1]
    time[0] = 0.0
    with pytest.raises(ValueError, match="positive times"):
        model.proportionality_test(x, y, transform="log")
    with pytest.raises(ValueError, match="two times"):
        model.proportionality_test(x, (np.ones(len(x)), y[1]))


def log_likelihood(coef, rows, **given):
    """Return the partial likelihood's logarithm by Breslow, without ties."""
    scores = X[rows] @ coef
    time, event = given["time"][rows], EVENT[rows]
    return sum(
        scores[i] - np.log(np.exp(scores[time >= time[i]]).sum())
        for i in np.flatnonzero(event)
    )


def test_search_scores_are_those_of_separate_fits():
    rng = np.random.default_rng(6)
    time = TIME + 1e-3 * rng.random(len(X))
    y, n = (time, EVENT), len(X)
    folds = [(np.arange(n) % 3 != k, np.arange(n) % 3 == k) for k in range(3)]
    folds = [tuple(map(np.flatnonzero, fold)) for fold in folds]
    alphas = [1.0, 1e-2]
    options = {"cv": folds, "tol": 1e-10}
    search = CoxRegressionCV(alphas, **options).fit(X, y)
    by_order = CoxRegressionCV(alphas, scoring="concordance", **options).fit(X, y)
    for k, (train, test) in enumerate(folds):
        of_fold = []
        for j, alpha in enumerate(alphas):
            fit = CoxRegression(alpha, tol=1e-10).fit(
                X[train], (time[train], EVENT[train])
            )
            score = fit.score(X[test], (time[test], EVENT[test]))
            assert by_order.scores_path_[k, j] == pytest.approx(score)
            of_fold.append(
                log_likelihood(fit.coef_, np.arange(n), time=time)
                - log_likelihood(fit.coef_, train, time=time)
            )
        # Up to a constant of the fold.
        found = n * np.diff(search.scores_path_[k])
        np.testing.assert_allclose(found, np.diff(of_fold), rtol=1e-6)
    assert (search.gaps_path_ <= 1e-10).all()
    best = CoxRegression(search.alpha_, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(search.coef_, best.coef_, atol=1e-8)
    hazards = [m.baseline_cumulative_hazard_ for m in (search, best)]
    np.testing.assert_allclose(*hazards, rtol=1e-7)


@pytest.mark.parametrize("late", [False, True])
def test_proven_searches_of_concordance(late):
    y = (ENTRY, TIME, EVENT) if late else (TIME, EVENT)
    given = {"strata": STRATA % 2, "offset": OFFSET}
    params = {"scoring": "concordance", "cv": 2, "ties": "breslow"}
    search = CoxRegressionCV((1e-2, 1.0), search_tol=0.05, **params)
    search.fit(X, y, **given)
    assert search.search_gap_ <= 0.05
    grid = CoxRegressionCV(np.geomspace(1.01e-2, 0.99, 40), tol=1e-9, **params)
    grid.fit(X, y, **given)
    assert grid.best_score_ <= search.best_score_ + search.search_gap_
    low, high, least, most = search.score_bounds_.T
    for alpha, score in zip(grid.alphas_, grid.scores_path_.mean(axis=0), strict=True):
        i = np.flatnonzero((low <= alpha) & (alpha <= high))[0]
        assert least[i] - 1e-12 <= score <= most[i] + 1e-12
    with pytest.raises(ValueError, match="scoring='concordance'"):
        search.set_params(scoring="likelihood").fit(X, y)
    with pytest.raises(ValueError, match="gives no folds"):
        search.set_params(scoring="concordance", cv=[]).fit(X, y)


def test_proven_searches_in_single_precision_tell_near_rows_apart():
    # Rows near one differ by less than the rounding of their distances from the mean.
    rng = np.random.default_rng(0)
    x = (1.0 + rng.permutation(60) * 2.0**-23)[:, np.newaxis]
    x[:20] = -3000.0
    y, rows = (rng.permutation(60) + 1.0, np.ones(60)), np.arange(60)
    params = {"scoring": "concordance", "search_tol": 1.0}
    params["cv"] = [(rows, rows[k::2]) for k in range(2)]
    search = CoxRegressionCV((1.0, 1.01), **params)
    scores = [search.fit(x.astype(t), y).best_score_ for t in (np.float32, float)]
    assert scores[0] == scores[1]

"""Gamma and Tweedie losses against scikit-learn, grids of scores and mixed duals."""

import numpy as np
import pytest
from _door import Deviance, Entropy, regression_losses
from numpy.testing import assert_allclose
from scipy import special
from sklearn.linear_model import GammaRegressor, TweedieRegressor
from sklearn.metrics import d2_tweedie_score, mean_tweedie_deviance

from sklearn_subqn import BMRMRegressor

POWERS = [1.001, 1.1, 1.5, 1.9, 1.999, 2.0]
each_power = pytest.mark.parametrize("power", POWERS)
N = 60


def rows(power, seed=0, zeros=True):
    rng = np.random.default_rng(seed)
    targets = np.exp(2.0 * rng.normal(size=N))
    if power < 2.0 and zeros:
        targets[:12] = 0.0
    return 2.0 * rng.normal(size=N), targets, rng.dirichlet(np.ones(N))


def each_loss(scores, y, power):
    """The loss of one target, as documented."""
    if power == 2.0:
        return y * np.exp(-scores) + scores
    falling = y * np.exp((1.0 - power) * scores) / (power - 1.0)
    return falling + np.exp((2.0 - power) * scores) / (2.0 - power)


@each_power
def test_differences_are_half_those_of_deviances(power):
    loss = Deviance(power)
    scores, targets, weights = rows(power)
    others = rows(power, seed=1)[0]
    values, deviances = [], []
    for z in (scores, others):
        values.append(loss.value(z, targets, weights))
        deviances.append(
            mean_tweedie_deviance(
                targets, np.exp(z), sample_weight=weights, power=power
            )
        )
        terms = [each_loss(z[i], targets[i], power) for i in range(N)]
        assert values[-1] == pytest.approx(weights @ terms, rel=1e-13)
    half = 0.5 * (deviances[0] - deviances[1])
    assert values[0] - values[1] == pytest.approx(half, rel=1e-9)


@each_power
def test_derivatives_are_differences(power):
    loss, h = Deviance(power), 1e-6
    scores, targets, weights = rows(power)
    dscores = np.random.default_rng(2).normal(size=N)
    u = loss.subgradient(scores, targets, weights)
    for i in range(0, N, 5):
        e = h * (np.arange(N) == i)
        change = loss.value(scores + e, targets, weights)
        change -= loss.value(scores - e, targets, weights)
        assert u[i] == pytest.approx(change / (2.0 * h), rel=1e-5, abs=1e-6)
    change = loss.subgradient(scores + h, targets, weights)
    change -= loss.subgradient(scores - h, targets, weights)
    curvature = loss.curvature(scores, targets, weights).diagonal()
    assert_allclose(curvature, change / (2.0 * h), rtol=1e-6, atol=1e-8)
    at = loss.derivatives(scores, dscores, targets, weights)
    for step in (0.0, 0.3, 2.0):
        there = scores + step * dscores
        gradient = loss.subgradient(there, targets, weights)
        curvature = loss.curvature(there, targets, weights).diagonal()
        slope, second = at(step)
        assert slope == pytest.approx(gradient @ dscores, rel=1e-12)
        assert second == pytest.approx(curvature @ dscores**2, rel=1e-12)


@each_power
def test_conjugates_are_suprema_over_scores(power):
    """By a grid around the maximizer, which Fenchel and Young's equality knows."""
    loss, one = Deviance(power), np.ones(1)
    scores, targets, _ = rows(power)
    for i in range(0, N, 4):
        z, y = scores[i], targets[i : i + 1]
        u = loss.subgradient(scores[i : i + 1], y, one)
        grid = z + np.linspace(-20.0, 20.0, 400_001)
        supremum = np.max(u * grid - each_loss(grid, y, power))
        conjugate = loss.conjugate(u, y, one)
        size = loss.conjugate_size(u, y, one, conjugate)
        assert conjugate == pytest.approx(supremum, rel=1e-8, abs=1e-13 * size)
        equal = u @ [z] - loss.value(np.array([z]), y, one)
        assert conjugate == pytest.approx(equal, abs=1e-14 * size)


@pytest.mark.parametrize("power", [1.0, *POWERS])
def test_sizes_are_sums_of_all_terms_at_a_dual_point_and_at_zero(power):
    """At v = exp(b z) and w = y exp(-a z), and at v = w = y^b."""
    loss, a, b = Deviance(power), power - 1.0, 2.0 - power
    scores, targets, weights = rows(power)
    scores /= 4.0
    terms = np.zeros(N)
    at_zero = targets**b
    pairs = [(np.exp(b * scores), targets * np.exp(-a * scores)), (at_zero, at_zero)]
    for v, w in pairs:
        if b:
            terms += (np.abs(special.xlogy(v, v)) + v) / b
        if a:
            logs = np.abs(special.xlogy(w, w)) + np.abs(special.xlogy(w, targets))
            terms += (logs + w) / a
    u = loss.subgradient(scores, targets, weights)
    assert loss.conjugate_size(u, targets, weights, 0.0) == pytest.approx(
        weights @ terms, rel=1e-10
    )


@each_power
def test_mixed_duals_give_cuts(power):
    """Of both ends of the domain, too, and where a score is far away."""
    loss = Deviance(power)
    scores, targets, weights = rows(power)
    rng = np.random.default_rng(3)
    far = 20.0 * rng.normal(size=N)
    duals = [loss.subgradient(z, targets, weights) for z in (scores, far)]
    for share in (0.0, 1e-9, 0.3, 1.0):
        u = (1.0 - share) * duals[0] + share * duals[1]
        assert loss.feasible(u, targets, weights).all()
        conjugate = loss.conjugate(u, targets, weights)
        size = loss.conjugate_size(u, targets, weights, conjugate)
        for z in (scores, far, 0.0 * scores, rng.normal(size=N)):
            value = loss.value(z, targets, weights)
            rest = 1e-14 * (size + value + np.abs(u) @ np.abs(z))
            assert value >= u @ z - conjugate - rest


@each_power
def test_domains_of_conjugates(power):
    loss, weights = Deviance(power), np.array([0.5, 0.5])
    y = np.array([2.0, 3.0 if power == 2.0 else 0.0])
    outside = np.array([0.6, -0.1]) if power == 2.0 else np.array([-5.0, -0.1])
    assert loss.feasible(outside, y, weights).tolist() == [power < 2.0, power == 2.0]
    assert loss.conjugate(outside, y, weights) == np.inf
    # The infimum is at ln y, and none for y = 0 and powers below 2.
    terms = [float(each_loss(np.log(t), t, power)) if t else 0.0 for t in y]
    infimum = -loss.conjugate(np.zeros(2), y, weights)
    assert infimum == pytest.approx(0.5 * sum(terms), rel=1e-14)


@each_power
def test_losses_go_on_as_their_tangents_where_they_would_overflow(power):
    loss, one = Deviance(power), np.ones(1)
    for far in (-1e6, 1e6):
        z = np.array([far])
        value, u = loss.value(z, one, one), loss.subgradient(z, one, one)
        assert np.isfinite(value)
        assert np.isfinite(u).all()
        assert loss.overflows(z, one, one) == (power < 2.0 or far < 0.0)
        conjugate = loss.conjugate(u, one, one)
        for other in (0.5 * z, 0.0 * z, 2.0 * z):
            bound = u @ other - conjugate
            assert loss.value(other, one, one) >= bound - 1e-10 * abs(bound)


@pytest.mark.parametrize("power", [1.0, *POWERS])
@pytest.mark.parametrize("target", [0.25, 1.0, 30.0])
def test_scores_overflow_where_an_exponential_function_does(power, target):
    """Arguments are b z, and those of ln(y) - a z unless the power is one."""
    loss, one, y = Deviance(power), np.ones(1), np.array([target])
    a, b, most = power - 1.0, 2.0 - power, Entropy.largest_argument
    ends = [most / b] if b else []
    ends += [(np.log(target) - most) / a] if a else []
    for end in ends:
        for side in (-1e-6, 1e-6):
            z = end + side * abs(end)
            assert loss.overflows(np.array([z]), y, one) == (abs(z) > abs(end))
            assert not loss.overflows(np.array([z]), y, 0.0 * one)


def test_powers_beyond_the_family_are_refused():
    with pytest.raises(ValueError, match=r"power must be in \[1, 2\]; got 3"):
        Deviance(3.0)


def test_rows_without_weight_have_no_part():
    for power in (1.5, 2.0):
        loss, (scores, targets, weights) = Deviance(power), rows(power)
        weights[::2] = 0.0
        u = loss.subgradient(scores, targets, weights)
        few = (each[1::2].copy() for each in (u, targets, weights))
        expected = loss.conjugate(*few)
        assert loss.conjugate(u, targets, weights) == pytest.approx(expected)


# --- estimators ----------------------------------------------------------------------


def data(loss, seed=0, n=200, d=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = rng.gamma(2.0, np.exp(1.0 + X @ np.linspace(0.5, -0.5, d)))
    if loss == "tweedie":
        y *= rng.random(n) < 0.7
    return X, y, rng.random(n)


def peer_of(loss, power, alpha):
    options = {"alpha": alpha, "tol": 1e-11, "max_iter": 1000}
    if loss == "gamma":
        return GammaRegressor(solver="newton-cholesky", **options)
    return TweedieRegressor(
        power=power, link="log", solver="newton-cholesky", **options
    )


@pytest.mark.parametrize(
    ("loss", "power"), [("gamma", 2.0), *(("tweedie", p) for p in (1.05, 1.5, 1.95))]
)
@pytest.mark.parametrize("alpha", [1e-3, 1.0])
def test_fits_are_those_of_scikit_learn(loss, power, alpha):
    X, y, weights = data(loss)
    options = {"power": power} if loss == "tweedie" else {}
    model = BMRMRegressor(alpha, loss=loss, **options).fit(X, y, weights)
    peer = peer_of(loss, power, alpha).fit(X, y, sample_weight=weights)
    assert_allclose(model.coef_, peer.coef_, atol=1e-5)
    assert_allclose(model.predict(X), peer.predict(X), rtol=1e-4)
    for sample_weight in (None, weights):
        expected = d2_tweedie_score(
            y, model.predict(X), sample_weight=sample_weight, power=power
        )
        assert model.score(X, y, sample_weight) == pytest.approx(expected, rel=1e-14)
    shares = weights / weights.sum()
    penalty = 0.5 * alpha * model.coef_ @ model.coef_
    z = X @ model.coef_ + model.intercept_
    risk = sum(s * each_loss(a, b, power) for s, a, b in zip(shares, z, y, strict=True))
    assert model.objective_ == pytest.approx(penalty + risk, rel=1e-12)
    assert model.dual_gap_ <= 1e-12 * abs(model.objective_)


@pytest.mark.parametrize("loss", ["gamma", "tweedie"])
@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet", "lp"])
def test_solvers_agree_and_prove_it(loss, penalty):
    X, y, _ = data(loss)
    options = {"alpha": 0.02, "loss": loss, "penalty": penalty}
    best = BMRMRegressor(**options, tol=1e-9, max_iter=5000).fit(X, y)
    others = ["ls-bmrm"]
    if penalty == "l2":
        others += ["lbfgs", "bfgs", "newton-cg", "trust-region", "cg"]
    for solver in others:
        model = BMRMRegressor(**options, solver=solver, tol=1e-4).fit(X, y)
        slack = 1e-9 * abs(best.objective_)
        assert model.objective_ >= best.objective_ - best.dual_gap_ - slack
        assert model.objective_ - model.dual_gap_ <= best.objective_ + slack
        assert model.objective_ - best.objective_ <= 1.1e-4 * abs(model.objective_)


@pytest.mark.parametrize("loss", ["gamma", "tweedie"])
def test_tolerances_are_relative_to_deviances(loss):
    """Units of y change neither them nor anything but the intercept."""
    X, y, _ = data(loss, n=3000, d=8)
    power = 2.0 if loss == "gamma" else 1.5
    coefs = []
    for unit in (1.0, 1e-6, 1e6):
        # The penalty is in units of the loss, y to the power of 2 - power.
        alpha = 1e-3 * unit ** (2.0 - power)
        model = BMRMRegressor(alpha, loss=loss, tol=1e-2).fit(X, unit * y)
        half = 0.5 * mean_tweedie_deviance(unit * y, model.predict(X), power=power)
        half += 0.5 * alpha * model.coef_ @ model.coef_
        assert model.dual_gap_ <= 1e-2 * half
        coefs.append(model.coef_)
    assert_allclose(coefs[1], coefs[0], atol=1e-2)
    assert_allclose(coefs[2], coefs[0], atol=1e-2)


def test_targets_and_powers_are_checked():
    X, y, _ = data("tweedie")
    with pytest.raises(ValueError, match="loss='gamma' needs y > 0; its least value i"):
        BMRMRegressor(loss="gamma").fit(X, y)
    with pytest.raises(ValueError, match="loss='tweedie' needs y >= 0; its least val"):
        BMRMRegressor(loss="tweedie").fit(X, y - 1.0)
    for power in (1.0, 2, 2.5, 0.0):
        with pytest.raises(ValueError, match="power must be between 1 and 2; got"):
            BMRMRegressor(loss="tweedie", power=power).fit(X, y)
    with pytest.raises(TypeError, match="power must be a number, got"):
        BMRMRegressor(loss="tweedie", power="1.5").fit(X, y)
    with pytest.warns(UserWarning, match="power=1.2 has no effect with loss='gamma'"):
        BMRMRegressor(loss="gamma", power=1.2).fit(X, y + 1.0)
    with pytest.raises(ValueError, match="Did you mean 'tweedie'"):
        BMRMRegressor(loss="reg:tweedie").fit(X, y)


def test_the_table_has_both():
    table = regression_losses(power=1.25)
    powers = [table[name].oracle.power for name in ("gamma", "tweedie")]
    assert powers == [2.0, 1.25]
    assert all(
        table[name].steep and table[name].analytic
        for name in table
        if name in ("gamma", "tweedie")
    )


@pytest.mark.parametrize("power", [1.0, *POWERS])
def test_dual_points_within_their_leeway_are_in_the_domain(power):
    """The conjugate is finite there, and infinite beyond where there is an end."""
    loss = Deviance(power)
    scores, targets, weights = rows(power)
    u = loss.subgradient(scores, targets, weights)
    leeway = loss.leeway(u, targets, weights)
    assert leeway.max() > 0.0
    for sign in (-1.0, 1.0):
        inside = u + sign * (1.0 - 1e-9) * leeway
        assert np.isfinite(loss.conjugate(inside, targets, weights))
        assert loss.feasible(inside, targets, weights).all()
    if power == 1.0:
        # Means s y + u are not negative.
        assert np.all(leeway <= (1.0 + 1e-9) * (u + weights * targets))


@pytest.mark.parametrize("power", [1.0, *POWERS])
def test_rounding_of_duals_of_repeated_rows_is_that_of_their_weight(power):
    loss = Deviance(power)
    scores, targets, weights = rows(power)
    u = loss.subgradient(scores, targets, weights)
    once = loss.distance(u, targets, weights)
    twice = loss.distance(*(np.tile(x, 2) for x in (0.5 * u, targets, 0.5 * weights)))
    assert twice == pytest.approx(once, rel=1e-13)


@each_power
def test_derivatives_by_an_intercept_where_exponentials_end(power):
    """A shift of all scores brings some to the tangents of their exponentials."""
    loss, weights = Deviance(power), np.full(3, 1.0 / 3.0)
    ones = np.ones(3)
    for targets in (np.exp([0.0, 30.0, 49.0]), np.exp([-40.0, -2.0, 0.0])):
        for far in (-45.0, 0.0, 45.0):
            at = loss.derivatives(np.full(3, far), ones, targets, weights)
            for step in (-60.0, -1.0, 1.0, 60.0):
                there = np.full(3, far + step)
                slope = loss.subgradient(there, targets, weights).sum()
                curvature = loss.curvature(there, targets, weights).diagonal().sum()
                assert_allclose(at(step), (slope, curvature), rtol=1e-9)


@each_power
def test_duals_may_move_within_the_domain_only(power):
    """Either way by the leeway, which is zero at ends of the domain only."""
    loss = Deviance(power)
    scores, targets, weights = rows(power)
    u = loss.subgradient(scores, targets, weights)
    leeway = loss.leeway(u, targets, weights)
    assert np.all(leeway > 0.0)
    for share in (-1.0, 1.0):
        moved = u + share * leeway
        assert loss.feasible(moved, targets, weights).all()
        assert np.isfinite(loss.conjugate(moved, targets, weights))
    if power < 2.0:
        # Duals of positive targets have no ends.
        inner = targets > 0.0
        usual = np.abs(u).sum() * weights[inner]
        assert_allclose(leeway[inner], usual, rtol=1e-12)

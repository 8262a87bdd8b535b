"""Cox's partial likelihood against its definition, term by term."""

import numpy as np
import pytest
from _door import L2, Cox, Design, DualLoss, Objective, PartlyFree, Risk, lower_bound

KINDS = [
    (ties, late, strata)
    for ties in ("breslow", "efron")
    for late in (False, True)
    for strata in (False, True)
]


def problem(rng, n, late, strata, levels=5):
    """Return times, events, weights, entries, strata and offsets with many ties."""
    time = rng.integers(1, levels + 1, n).astype(float)
    event = rng.random(n) < 0.6
    weights = rng.integers(0, 4, n).astype(float)
    weights[0] = 1.0
    entry = time - rng.integers(1, levels, n) + 0.5 * (rng.random(n) < 0.5)
    return (
        time,
        event,
        weights / weights.sum(),
        entry if late else None,
        rng.integers(0, 3, n) if strata else None,
        rng.normal(size=n),
    )


def columns(time, event, entry=None, strata=None, offset=None):
    """Return the targets of the loss."""
    entry = np.full(len(time), -np.inf) if entry is None else entry
    none = np.zeros(len(time))
    others = (none if each is None else each for each in (strata, offset))
    return np.column_stack([entry, time, event, *others])


def by_definition(z, time, event, s, entry, strata, offset, ties):
    """Return R(z) as a sum over events, each with the rows at risk."""
    z = z + offset
    strata = np.zeros(len(z)) if strata is None else strata
    entry = np.full(len(z), -np.inf) if entry is None else entry
    total = 0.0
    for g in np.unique(strata):
        for t in np.unique(time[(strata == g) & event & (s > 0)]):
            at_risk = (strata == g) & (time >= t) & (entry < t)
            dead = (strata == g) & (time == t) & event & (s > 0)
            A, B = (float(s[rows] @ np.exp(z[rows])) for rows in (at_risk, dead))
            d, W = dead.sum(), s[dead].sum()
            for k in range(d):
                cut = k / d if ties == "efron" else 0.0
                total += W / d * np.log((A - cut * B) / (W * (1 - cut)))
            total -= float(s[dead] @ z[dead])
    return total


@pytest.mark.parametrize(("ties", "late", "strata"), KINDS)
def test_value_and_derivatives(ties, late, strata):
    rng = np.random.default_rng(0)
    for _ in range(20):
        n = rng.integers(1, 15)
        *data, offset = problem(rng, n, late, strata)
        time, event, s, entry, groups = data
        loss, y = Cox(ties), columns(time, event, entry, groups, offset)
        args = *data, offset, ties
        z, p = rng.normal(size=n), rng.normal(size=n)
        value = loss.value(z, y, s)
        assert value == pytest.approx(by_definition(z, *args), rel=1e-12, abs=1e-14)
        assert value >= 0.0
        u, step = loss.subgradient(z, y, s), 1e-5
        up, down = (by_definition(z + e * p, *args) for e in (step, -step))
        assert u @ p == pytest.approx((up - down) / (2 * step), abs=1e-8)
        assert abs(u.sum()) < 1e-14
        slope, bend = loss.derivatives(z, p, y, s)(0.5)
        assert slope == pytest.approx(loss.subgradient(z + 0.5 * p, y, s) @ p)
        ends = [loss.subgradient(z + (0.5 + e) * p, y, s) for e in (step, -step)]
        product = (ends[0] - ends[1]) / (2 * step)
        assert bend == pytest.approx(product @ p, abs=1e-8)
        there = loss.curvature(z + 0.5 * p, y, s)
        np.testing.assert_allclose(there.apply(p), product, atol=1e-8)
        X = rng.normal(size=(n, 3))
        matrix = Design(X, fit_intercept=False).coupled_gram(there)
        direct = X.T @ np.column_stack([there.apply(x.copy()) for x in X.T])
        np.testing.assert_allclose(matrix, direct, atol=1e-13)


@pytest.mark.parametrize(("ties", "late", "strata"), KINDS)
def test_bounds(ties, late, strata):
    """The conjugate at a gradient is no less than <u, z> - R(z) anywhere."""
    rng = np.random.default_rng(1)
    for size in (1.0, 30.0, 3000.0):
        *data, offset = problem(rng, 12, late, strata)
        time, event, s, entry, groups = data
        loss, y = Cox(ties), columns(time, event, entry, groups, offset)
        z = size * rng.normal(size=12)
        u = loss.subgradient(z, y, s)
        height = loss.conjugate_at(u, z, y, s)
        # Exponentials of large scores are off by their size.
        charge = 1e-13 * (1.0 + size * size)
        exact = float(u @ z) - loss.value(z, y, s)
        assert exact - charge <= height <= exact + charge
        for _ in range(50):
            other = size * rng.normal(size=12) * rng.random()
            for share in (1.0, 0.5):
                below = share * (u @ other - height)
                assert below <= loss.value(other, y, s) + 1e-12 * size


@pytest.mark.parametrize(("ties", "late", "strata"), KINDS)
def test_conjugate_near_a_gradient(ties, late, strata):
    """No scores prove the conjugate there to be larger, and a maximizer comes close."""
    rng = np.random.default_rng(4)
    for size, step in ((1.0, 0.5), (1.0, 1e-3), (30.0, 0.1), (30.0, 1e-6)):
        *data, offset = problem(rng, 12, late, strata)
        time, event, s, entry, groups = data
        loss, y = Cox(ties), columns(time, event, entry, groups, offset)
        z, p = size * rng.normal(size=12), 7.0 + step * rng.random(12)
        u = loss.subgradient(z, y, s)
        height = loss.conjugate_near(u, z, p, y, s)
        there = u - loss.curvature(z, y, s).apply(p)
        # The maximizer is one step back, up to terms of higher order.
        others = [z - share * p for share in np.linspace(0.0, 2.0, 9)]
        others += [z + size * rng.normal(size=12) for _ in range(20)]
        below = max(there @ x - loss.value(x, y, s) for x in others)
        assert below <= height + 1e-12 * size
        bend = p @ loss.curvature(z, y, s).apply(p)
        assert height - below <= bend + 1e-11 * (1.0 + size * size)
        assert loss.conjugate_near(u, z, 3.0 * p / step, y, s) == np.inf


def test_infimum_is_zero_for_scores_that_fall_with_time():
    rng = np.random.default_rng(2)
    for ties in ("breslow", "efron"):
        time, event, s, *_ = problem(rng, 30, False, False)
        s = np.full(30, 1 / 30)
        z = -80.0 * time - 40.0 * ~event
        assert Cox(ties).value(z, columns(time, event), s) < 1e-12


def test_scores_of_any_size():
    time, event = np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4, dtype=bool)
    s = np.full(4, 0.25)
    loss, y = Cox(), columns(time, event)
    for z in (np.array([0.0, 1e4, -1e4, 5.0]), np.array([1e8, 0.0, 1.0, -1e8])):
        logs = np.logaddexp.accumulate(z[::-1])[::-1]
        value = loss.value(z, y, s)
        exact, charge = 0.25 * float((logs - z).sum()), 1e-15 * np.abs(z).max()
        assert value == pytest.approx(exact, rel=1e-12, abs=charge)
        assert np.isfinite(loss.subgradient(z, y, s)).all()


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_newton_reaches_a_proven_optimum(ties):
    rng = np.random.default_rng(3)
    *data, offset = problem(rng, 60, True, True)
    time, event, s, entry, groups = data
    X = rng.normal(size=(60, 4))
    loss, y = DualLoss(Cox(ties)), columns(time, event, entry, groups, offset)
    objective = Objective(Risk(Design(X, fit_intercept=False), loss, y, s), L2(4), 0.01)
    w = np.zeros(4)
    for _ in range(10):
        point = objective.at(w)
        w = w - np.linalg.solve(point.hessian.matrix(), point.gradient)
    point = objective.at(w)
    bound = objective.dual_value(point.cut)
    assert 0.0 <= point.value - bound < 1e-10


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_bounds_without_a_penalty_near_the_optimum(ties):
    """The gap at a point falls with the square of its distance."""
    rng = np.random.default_rng(8)
    time, event, s, *_ = problem(rng, 60, False, False)
    X = rng.normal(size=(60, 3))
    y = columns(time, event)
    risk = Risk(Design(X, fit_intercept=False), DualLoss(Cox(ties)), y, s)
    free = Objective(risk, PartlyFree(L2(3), np.ones(3, dtype=bool)), 1.0)
    w = np.zeros(3)
    for _ in range(20):
        point = free.at(w)
        hessian = risk.hessian(point.curvature).matrix()
        w = w - np.linalg.solve(hessian, risk.adjoint(point.dual))
    least = free.at(w).value
    for distance in (1e-3, 1e-5):
        point = free.at(w + distance)
        bound = lower_bound(point, [point.dual], np.inf)
        assert bound <= least
        assert point.value - bound <= 10.0 * distance**2


def test_cuts_of_values_near_zero_are_below_them():
    """Of rows that are equal: the value is -s ln s, of one minus a rounded number."""
    for share in np.logspace(-9, -3, 200):
        s = np.array([share, 1.0 - share])
        loss, y = DualLoss(Cox("efron")), columns(np.array([2.0, 1.0]), np.ones(2))
        design = Design(np.zeros((2, 1)), fit_intercept=False)
        objective = Objective(Risk(design, loss, y, s), L2(1), 1.0)
        point = objective.at(np.zeros(1))
        exact = s.astype(np.longdouble)
        exact /= exact.sum()
        value = -exact[1] * np.log1p(-exact[0])
        for cut in (point.cut, point.cut_of(point.gradient)):
            assert cut.offset <= value
            assert value - cut.offset <= 1e-12

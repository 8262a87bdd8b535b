"""Line searches over functions in several places, of whose kinks few travel."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sklearn_subqn._core.places import places
from sklearn_subqn._core.places.kinks import Kinks, SumOfParts
from sklearn_subqn._core.steps.line_search import minimize_piecewise
from sklearn_subqn.losses import PiecewiseQuadratic


def function(rng, n, kind):
    """Return a convex piecewise quadratic function with n kinks."""
    kinks = rng.exponential(size=n)
    if kind == "equal":
        kinks = rng.choice([0.5, 1.5, 2.0], size=n)
    if kind == "one":
        kinks[:] = 0.75
    jumps = rng.random(n) / max(n, 1)
    changes = np.zeros(n)
    if kind == "squares":
        # Slopes that are continuous: they end, or begin, to grow.
        changes = rng.random(n) / max(n, 1)
        jumps = -changes * kinks
    slope = -rng.uniform(0.0, 0.9) * max(jumps.sum(), 0.3)
    return PiecewiseQuadratic(slope, 0.01 * rng.random(), kinks, jumps, changes)


class Counted:
    """The way to a place, which counts messages and the bytes of a line search."""

    def __init__(self, functions):
        self._here = places.Here(places.Place(map(Kinks, functions)))
        self.n_messages = self.n_bytes = 0

    def send(self, message):
        answer = self._here.send(message)
        self.n_messages += 1
        self.n_bytes += len(pickle.dumps(message)) + len(pickle.dumps(answer()))
        return answer


@pytest.mark.parametrize("kind", ["any", "equal", "one", "squares"])
@pytest.mark.parametrize("sizes", [(3,), (0, 5, 2), (9000, 10, 0, 2000, 12_000)])
def test_sums_of_parts_have_the_minimizer_of_the_whole(kind, sizes):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        functions = [function(rng, n, kind) for n in sizes]
        other = function(rng, 4, "any") if seed % 2 else PiecewiseQuadratic.smooth(0, 0)
        if seed == 3:
            # Without a minimizer, but at infinity.
            other = PiecewiseQuadratic.smooth(-10.0, 0.0)
        whole = sum(functions, start=other)
        ways = [Counted(functions[:2]), Counted(functions[2:])]
        ways = [way for way, n in zip(ways, [2, len(sizes) - 2], strict=True) if n > 0]
        numbers = [len(functions[:2]), len(functions[2:])][: len(ways)]
        session = places.Session(ways, numbers)
        total = SumOfParts(session.parts, len(sizes), other)
        assert session.n_messages <= 3
        assert sum(way.n_bytes for way in ways) <= 100_000
        expected = minimize_piecewise(whole)
        assert_allclose(minimize_piecewise(total), expected, rtol=1e-9)
        for step in [0.0, 0.5, 0.75, 3.0, 20.0, *rng.exponential(size=5)]:
            scale = np.abs(whole.slope_jumps).sum() + abs(whole.slope) + step
            value = total.slope_at(step)
            assert_allclose(value, whole.slope_at(step), atol=1e-9 * scale)


def test_of_very_many_kinks_few_travel():
    rng = np.random.default_rng(0)
    n = 2_000_000
    kinks, jumps = rng.random(n) ** 3, np.full(n, 1.0 / n)
    parts = [
        PiecewiseQuadratic(-0.3, 0.0, kinks[i::2], jumps[i::2], 0.0 * jumps[i::2])
        for i in range(2)
    ]
    way = Counted(parts)
    session = places.Session([way], [2])
    total = SumOfParts(session.parts, 2, PiecewiseQuadratic.smooth(0.0, 0.0))
    near = np.sort(kinks)[int(0.6 * n) - 2 : int(0.6 * n) + 1]
    assert near[0] <= minimize_piecewise(total) <= near[-1]
    assert way.n_messages <= 5
    assert way.n_bytes <= 150_000

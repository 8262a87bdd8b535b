"""``check_loss``: right losses pass, and each kind of mistake has its message."""

import numpy as np
import pytest
from _door import (
    BINARY_LOSSES,
    MULTINOMIAL_LOSS,
    DualLoss,
    KindsOfLabels,
    Simplex,
    regression_losses,
)
from scipy import special
from test_own_losses import Enveloped, Plain

from sklearn_subqn.losses import (
    FBeta,
    LogisticRocArea,
    Loss,
    PrecisionAtK,
    RocArea,
    SquaredRocArea,
    check_loss,
)

NUMBERS = np.array([0.3, -1.0, 2.0, 0.7, -0.2])
SIGNS = np.array([-1.0, 1.0, 1.0, -1.0, 1.0])
POSITIVE = ("poisson", "gamma", "tweedie")


@pytest.mark.parametrize("name", sorted(regression_losses()))
def test_losses_of_numbers(name):
    targets = np.abs(NUMBERS) if name in POSITIVE else NUMBERS
    check_loss(regression_losses()[name], targets, scale=0.3, n_trials=30)


@pytest.mark.parametrize("name", sorted(BINARY_LOSSES))
def test_losses_of_two_classes(name):
    check_loss(BINARY_LOSSES[name], SIGNS, n_trials=30)


@pytest.mark.parametrize(
    "loss",
    [RocArea(), SquaredRocArea(), LogisticRocArea(), FBeta(), PrecisionAtK(2)],
)
def test_losses_that_compare_rows(loss):
    for seed in range(4):
        check_loss(loss, SIGNS, n_trials=30, random_state=seed)


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_second_derivatives_of_logistic_pairs_are_as_near_as_they_say(scale):
    loss, rng = LogisticRocArea(), np.random.default_rng(0)
    for _ in range(50):
        z, p = scale * rng.normal(size=5), rng.normal(size=5)
        s = rng.dirichlet(np.ones(5))
        i, j = np.nonzero((SIGNS[:, None] < 0.0) & (SIGNS > 0.0))
        difference, pairs = z[i] - z[j], s[i] * s[j] / np.sum(s[i] * s[j])
        exact = pairs * special.expit(difference) * special.expit(-difference)
        exact = float(exact @ (p[i] - p[j]) ** 2)
        found = float(p @ loss.curvature(z, SIGNS, s).apply(p))
        assert abs(found - exact) <= loss.curvature_error * exact + 1e-15


@pytest.mark.parametrize("loss", [DualLoss(Simplex(1.0 - np.eye(3))), MULTINOMIAL_LOSS])
def test_losses_of_several_scores(loss):
    check_loss(loss, [0, 1, 2, 1], n_scores=3, n_trials=30)
    margins = np.full((2, 3), 0.5)
    labels = np.array([[1, 0, 1], [0, 0, 1], [1, 1, 0]], dtype=np.uint8)
    check_loss(DualLoss(KindsOfLabels(margins)), labels, n_scores=4, n_trials=30)


class Kinked(Enveloped):
    """The absolute error, with all that piecewise linear losses may have."""

    _loss = regression_losses()["absolute_error"]
    _same = _loss.oracle


class Smooth(Plain):
    """Log losses, with what Newton's method needs."""

    _loss = BINARY_LOSSES["log_loss"]
    _same = _loss.oracle


class Shifts(Loss):
    """Logarithms of sums of exponentials, less the first score."""

    joint = invariant = True

    def value(self, scores, targets, weights):
        return float(weights @ (special.logsumexp(scores, axis=1) - scores[:, 0]))

    def subgradient(self, scores, targets, weights):
        u = special.softmax(scores, axis=1)
        u[:, 0] -= 1.0
        return u * weights[:, np.newaxis]


@pytest.mark.parametrize(
    ("loss", "targets"), [(Kinked(), NUMBERS), (Smooth(), SIGNS), (Shifts(), [0, 2])]
)
def test_own_losses_that_are_right(loss, targets):
    check_loss(loss, targets, n_trials=60)


def replaced(base, **members):
    """A loss with some members replaced; they get the right result, and arguments."""

    def member(name, change):
        def changed(self, *args):
            return change(getattr(super(Wrong, self), name)(*args), *args)

        return changed if callable(change) else change

    Wrong = type(
        "Wrong", (base,), {name: member(name, m) for name, m in members.items()}
    )
    return Wrong()


def steps(factor):
    return lambda line, *args: lambda step: tuple(np.multiply(line(step), factor))


@pytest.mark.parametrize(
    ("base", "members", "error", "message"),
    [
        (
            Smooth,
            {"subgradient": lambda u, *args: 0.5 * u},
            ValueError,
            "subgradient is wrong: .*at the scores .* with the targets .* and weights",
        ),
        (
            Smooth,
            {"subgradient": lambda u, z, y, s: u / s},
            ValueError,
            "subgradient is wrong: (by the value|its entry)",
        ),
        (
            Smooth,
            {"subgradient": lambda u, *args: u.astype(np.float32)},
            TypeError,
            "array of float64, got float32",
        ),
        (
            Smooth,
            {"subgradient": lambda u, *args: u[:-1]},
            ValueError,
            r"of shape \(5,\), got shape \(4,\)",
        ),
        (Smooth, {"value": lambda v, *args: np.nan}, ValueError, "finite number"),
        (Smooth, {"value": lambda v, *args: "a"}, TypeError, "real number"),
        (
            Smooth,
            {
                "value": lambda v, z, y, s: -v,
                "subgradient": lambda u, *args: -u,
            },
            ValueError,
            "value is not convex: on the way to .* exceeds .* of the chord",
        ),
        (
            Shifts,
            {"infimum": 0.7},
            ValueError,
            "infimum is wrong: the value .* is below 0.7",
        ),
        (
            Shifts,
            {
                "value": lambda v, z, y, s: v + float(s @ z[:, 1] ** 2),
                "subgradient": lambda u, z, y, s: u + np.outer(s, [0.0, 2.0, 0.0]) * z,
            },
            ValueError,
            "invariant = True is wrong: the value .* becomes",
        ),
        (
            Smooth,
            {"ranks": True},
            ValueError,
            "ranks = True is wrong: the value .* becomes",
        ),
        (
            Smooth,
            {
                "value": lambda v, z, y, s: v + float(z @ z),
                "subgradient": lambda u, z, y, s: u + 2.0 * z,
            },
            ValueError,
            "without weight of the first row it depends on the score of that",
        ),
        (
            Smooth,
            {"conjugate": lambda c, *args: c + 0.1},
            ValueError,
            "conjugate is wrong: at the subgradient u there it is",
        ),
        (
            Smooth,
            {"conjugate": lambda c, u, y, s: c if np.abs(u / s).max() > 0.6 else -1.0},
            ValueError,
            "conjugate is wrong",
        ),
        (
            Smooth,
            {"evaluate": lambda pair, *args: (pair[0] + 1.0, pair[1])},
            ValueError,
            "evaluate is wrong",
        ),
        (
            Smooth,
            {"derivatives": steps((1.1, 1.0))},
            ValueError,
            "derivatives is wrong: along .* the slope at the step",
        ),
        (
            Smooth,
            {"derivatives": steps((1.0, 2.0))},
            ValueError,
            "derivatives is wrong: a second derivative",
        ),
        (
            Smooth,
            {"curvature": lambda h, *args: 2.0 * h},
            ValueError,
            "curvature is wrong: a second derivative along a line is",
        ),
        (
            Smooth,
            {"curvature": lambda h, *args: h[:-1]},
            ValueError,
            r"of shape \(5,\), got shape \(4,\)",
        ),
        (
            Kinked,
            {"restrict": lambda line, *args: line.scaled(2.0)},
            ValueError,
            "restrict is wrong: along .* difference quotients are",
        ),
        (
            Kinked,
            {"argsup": lambda u, *args: -u},
            ValueError,
            "argsup or kink_rows is wrong: on a kink the steepest subgradient",
        ),
        (
            Kinked,
            {"kink_rows": lambda rows, *args: rows[:0]},
            ValueError,
            "argsup or kink_rows is wrong",
        ),
        (
            Kinked,
            {"envelope": lambda e, *args: regression_losses()["squared_error"]},
            ValueError,
            "envelope is wrong: of the width 0.1 it has the value",
        ),
    ],
)
def test_mistakes_are_found(base, members, error, message):
    targets = {Kinked: NUMBERS, Smooth: SIGNS, Shifts: [0, 2, 1]}[base]
    with pytest.raises(error, match=message):
        check_loss(replaced(base, **members), targets, n_trials=60)


def test_arguments_are_not_written_to():
    class Writes(Smooth):
        def value(self, scores, targets, weights):
            scores *= targets
            return float(weights @ np.logaddexp(0.0, -scores))

    with pytest.raises(ValueError, match="Writes writes into scores"):
        check_loss(Writes(), SIGNS)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"loss": Smooth}, TypeError, "must be an instance of a subclass"),
        ({"loss": "hinge"}, TypeError, "must be an instance of a subclass"),
        ({"targets": 1.0}, ValueError, r"shape \(n,\) or \(n, k\)"),
        ({"targets": np.eye(3)}, ValueError, "with joint = False"),
        ({"sample_weight": [1.0]}, ValueError, "one for each of the 5 rows"),
        ({"scale": 0.0}, ValueError, "scale must be .*> 0"),
        ({"n_trials": 0}, ValueError, "n_trials must be"),
        ({"n_scores": 0}, ValueError, "n_scores must be"),
        ({"random_state": -1}, ValueError, "random_state must be"),
    ],
    ids=str,
)
def test_arguments_are_checked(options, error, message):
    with pytest.raises(error, match=message):
        check_loss(**{"loss": Smooth(), "targets": SIGNS, **options})


@pytest.mark.parametrize("infimum", [1e-3, 0.1])
def test_an_infimum_below_every_sample_but_too_high(infimum):
    """The log loss falls below any positive number, far along rays only."""

    class TooHigh(Loss):
        def value(self, scores, targets, weights):
            return float(weights @ np.logaddexp(0.0, -targets * scores))

        def subgradient(self, scores, targets, weights):
            return -weights * targets * np.exp(-np.logaddexp(0.0, targets * scores))

    loss = TooHigh()
    check_loss(loss, [1.0, -1.0] * 5)
    loss.infimum = infimum
    with pytest.raises(ValueError, match=r"infimum is wrong: the value .* is below"):
        check_loss(loss, [1.0, -1.0] * 5)


@pytest.mark.parametrize(
    ("f", "slope", "infimum"),
    [
        (lambda r: np.hypot(1.0, r), lambda r: r / np.hypot(1.0, r), 1.0),
        (np.abs, np.sign, 0.0),
        (lambda r: r**4, lambda r: 4.0 * r**3, 0.0),
    ],
    ids=["hypotenuse", "absolute", "quartic"],
)
def test_an_infimum_that_is_reached_is_right_and_no_higher_one(f, slope, infimum):
    class Own(Loss):
        def value(self, scores, targets, weights):
            return float(weights @ f(scores - targets))

        def subgradient(self, scores, targets, weights):
            return weights * slope(scores - targets)

    loss, targets = Own(), np.random.default_rng(0).normal(size=10)
    loss.infimum = infimum
    check_loss(loss, targets)
    loss.infimum += 1e-3
    with pytest.raises(ValueError, match="infimum is wrong"):
        check_loss(loss, targets)

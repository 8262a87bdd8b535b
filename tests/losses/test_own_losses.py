"""Losses of one's own, with the methods that the user guide asks for."""

from __future__ import annotations

import numpy as np
import pytest
from _door import SOLVERS, ElasticNet, regression_losses
from scipy import special

from sklearn_subqn import BMRMClassifier, BMRMRegressor, L1LogisticOWLQN
from sklearn_subqn.losses import FirstOrderLoss, Groups, Loss, Ontology, Preferences


def regression(n=300):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, X @ [1.0, 2.0, 3.0] + rng.normal(size=n)


class Kinked(Loss):
    """With what subLBFGS needs, and no envelope."""

    smooth = False
    _loss = regression_losses()["quantile"]
    _same = _loss.oracle

    def value(self, *args):
        return self._same.value(*args)

    def subgradient(self, *args):
        return self._same.subgradient(*args)

    def conjugate(self, *args):
        return self._same.conjugate(*args)

    def kink_rows(self, *args):
        return self._same.kink_rows(*args)

    def argsup(self, *args):
        return self._same.argsup(*args)

    def restrict(self, *args):
        return self._same.restrict(*args)


class Enveloped(Kinked):
    """With what ``alm`` needs besides."""

    has_envelope = True

    def dual_variables(self, *args):
        return self._same.dual_variables(*args)

    def neutral_variables(self, *args):
        return self._same.neutral_variables(*args)

    def envelope(self, *args):
        return self._loss.envelope(*args)


class Smooth(Loss):
    """With what Newton's method needs."""

    smooth = True
    _loss = regression_losses(epsilon=1.0)["huber"]
    _same = _loss.oracle

    def value(self, *args):
        return self._same.value(*args)

    def subgradient(self, *args):
        return self._same.subgradient(*args)

    def conjugate(self, *args):
        return self._same.conjugate(*args)

    def derivatives(self, *args):
        return self._same.derivatives(*args)

    def curvature(self, *args):
        return self._same.curvature(*args)


class Plain(Smooth):
    """With second derivatives as an array."""

    def curvature(self, *args):
        return self._same.curvature(*args).diagonal()


class Softmax(Loss):
    """The multinomial log loss, from the textbook."""

    analytic = joint = invariant = True

    def value(self, scores, targets, weights):
        own = scores[np.arange(len(scores)), targets]
        return float(weights @ (special.logsumexp(scores, axis=1) - own))

    def subgradient(self, scores, targets, weights):
        u = special.softmax(scores, axis=1)
        u[np.arange(len(u)), targets] -= 1.0
        return u * weights[:, np.newaxis]

    def conjugate(self, dual, targets, weights):
        b = dual / np.maximum(weights, 1e-300)[:, np.newaxis]
        b[np.arange(len(b)), targets] += 1.0
        inside = b.min() >= -1e-12 and np.abs(b.sum(axis=1) - 1.0).max() <= 1e-12
        return float(weights @ special.xlogy(b, b).sum(axis=1)) if inside else np.inf

    def derivatives(self, scores, dscores, targets, weights):
        def at(step):
            z = scores + step * dscores
            slope = np.vdot(self.subgradient(z, targets, weights), dscores)
            M = self.curvature(z, targets, weights)
            return float(slope), float(np.einsum("ij,ijk,ik->", dscores, M, dscores))

        return at

    def curvature(self, scores, targets, weights):
        p = special.softmax(scores, axis=1)
        M = np.einsum("ij,jk->ijk", p, np.eye(p.shape[1])) - np.einsum(
            "ij,ik->ijk", p, p
        )
        return M * weights[:, np.newaxis, np.newaxis]


class Shifted(FirstOrderLoss):
    """Absolute values less five, whatever the infimum is said to be."""

    def value(self, scores, targets, weights):
        return float(weights @ np.abs(targets - scores)) - 5.0

    def subgradient(self, scores, targets, weights):
        return weights * np.sign(scores - targets)


@pytest.mark.parametrize("penalty", ["l2", "l1", "elasticnet"])
@pytest.mark.parametrize("kind", [Kinked, Enveloped, Smooth, Plain])
def test_methods_of_the_guide_are_enough(kind, penalty):
    X, y = regression()
    own = BMRMRegressor(1e-2, loss=kind(), penalty=penalty, tol=1e-6).fit(X, y)
    same = BMRMRegressor(1e-2, loss=kind._loss, penalty=penalty, tol=1e-6).fit(X, y)
    assert own.dual_gap_ <= 1e-6 * own.objective_
    assert own.objective_ == pytest.approx(same.objective_, rel=2e-6)


@pytest.mark.parametrize("solver", ["auto", "newton-cg", "trust-region", "lbfgs"])
@pytest.mark.parametrize("n_features", [3, 40])
def test_second_derivatives_as_matrices(solver, n_features):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, n_features)), rng.integers(3, size=50)
    options = {"fit_intercept": False, "solver": solver, "tol": 1e-6}
    own = BMRMClassifier(1e-2, loss=Softmax(), **options).fit(X, y)
    same = L1LogisticOWLQN(1e-2, l1_ratio=0.0, fit_intercept=False, tol=1e-8).fit(X, y)
    assert own.dual_gap_ <= 1e-6 * own.objective_
    assert own.objective_ == pytest.approx(same.objective_, rel=2e-6)
    assert own.objective_ - own.dual_gap_ <= same.objective_ * (1.0 + 1e-9)


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        (lambda h: h[:-1], ValueError, r"of shape \(300,\), got shape \(299,\)"),
        (lambda h: np.diag(h), ValueError, r"got shape \(300, 300\)"),
        (lambda h: -1.0 - h, ValueError, "not negative, got -1"),
        (lambda h: h + np.inf, ValueError, "some that are not finite"),
        (lambda h: h.astype(str), TypeError, "array of real numbers"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_second_derivatives_are_checked(returned, error, message):
    class Wrong(Plain):
        def curvature(self, *args):
            return returned(super().curvature(*args))

    X, y = regression()
    with pytest.raises(error, match=message):
        BMRMRegressor(1e-2, loss=Wrong(), solver="newton-cg").fit(X, y)


def test_methods_are_enough_for_tall_data():
    X, y = regression(30_000)
    model = BMRMRegressor(1e-4, loss=Enveloped()).fit(X, y)
    assert model.dual_gap_ <= 1e-3 * model.objective_


@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_an_infimum_that_is_none(penalty):
    X, y = regression()
    with pytest.raises(ValueError, match="below its infimum 0"):
        BMRMRegressor(1e-3, loss=Shifted(), penalty=penalty).fit(X, y)
    loss = Shifted()
    loss.infimum = -5.0
    model = BMRMRegressor(1e-3, loss=loss, penalty=penalty, tol=1e-6).fit(X, y)
    plain = BMRMRegressor(1e-3, loss="absolute_error", penalty=penalty, tol=1e-6)
    assert model.objective_ + 5.0 == pytest.approx(plain.fit(X, y).objective_, rel=1e-5)


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([0, 2, 2, 0], "1 does not, and the largest is 2"),
        ([0.5, 1.0], "non-negative integers"),
        ([-1, 0], "non-negative integers"),
        ([[0, 1]], "1 dimensions"),
    ],
)
def test_codes_of_groups(codes, message):
    with pytest.raises(ValueError, match=message):
        Groups(codes)


def test_pairs_of_preferences():
    for pairs, message in (
        ([[0, 1, 2]], "2 columns"),
        ([[0, -1]], "non-negative integers"),
        ([0, 1], "2 dimensions"),
    ):
        with pytest.raises(ValueError, match=message):
            Preferences(pairs)
    X, y = regression()
    with pytest.raises(ValueError, match="row 999, but there are 300 rows"):
        BMRMRegressor(loss=Preferences([(0, 999)])).fit(X, y)
    assert BMRMRegressor(loss=Preferences([(0, 1), (2, 3)])).fit(X, y).dual_gap_ >= 0.0


@pytest.mark.parametrize("loss", ["ordinal", "paths"])
def test_starts_where_the_penalty_is_infinite(loss):
    X, y = regression()
    y = np.digitize(y, [-2.0, 0.0, 2.0])
    options = {"loss": "ordinal"}
    if loss == "paths":
        paths = Ontology.from_parents([[-1], [-1], [0], [0], [1], [1]])
        options = {"loss": paths, "fit_intercept": False}
    model = BMRMClassifier(0.1, warm_start=True, **options).fit(X, y)
    model.set_params(penalty="entropy").fit(X, y)
    cold = BMRMClassifier(0.1, penalty="entropy", **options).fit(X, y)
    assert model.fit(X, y).objective_ == pytest.approx(cold.objective_, rel=2e-3)


def test_solvers_of_l1_problems_say_so():
    huber = regression_losses(epsilon=1.0)["huber"]
    by_l1 = {
        name for name, spec in SOLVERS.items() if spec.supports(huber, ElasticNet(3))
    }
    assert {"auto", "cd", "fista", "ista", "owlqn", "owlqn*"} <= by_l1
    assert not by_l1 & {"newton-cg", "lbfgs", "sublbfgs", "alm"}


class Hinge(FirstOrderLoss):
    """Right, and what the wrong ones below derive from."""

    def value(self, scores, targets, weights):
        return weights @ np.maximum(1.0 - targets * scores, 0.0)

    def subgradient(self, scores, targets, weights):
        return np.where(targets * scores < 1.0, -weights * targets, 0.0)


class Writes(Hinge):
    def subgradient(self, scores, targets, weights):
        weights *= 0.5
        return super().subgradient(scores, targets, weights)


class Single(Hinge):
    def subgradient(self, *args):
        return super().subgradient(*args).astype(np.float32)


class NotANumber(Hinge):
    def subgradient(self, *args):
        u = super().subgradient(*args)
        u[0] = np.nan
        return u


class Infinite(Hinge):
    def value(self, *args):
        return np.inf


class Text(Hinge):
    def value(self, *args):
        return "0.5"


class PerRow(Hinge):
    def value(self, scores, targets, weights):
        return np.maximum(1.0 - targets * scores, 0.0)


class Short(Hinge):
    def subgradient(self, *args):
        return super().subgradient(*args)[:-1]


class Unweighted(Hinge):
    """A frequent mistake: the subgradient of the sum, not of the mean."""

    def subgradient(self, scores, targets, weights):
        return super().subgradient(scores, targets, np.ones_like(weights))


class NotConvex(Hinge):
    def value(self, scores, targets, weights):
        return weights @ np.sqrt(1.0 + np.maximum(1.0 - targets * scores, 0.0))

    def subgradient(self, scores, targets, weights):
        m = np.maximum(1.0 - targets * scores, 0.0)
        return np.where(m > 0.0, -0.5 * weights * targets / np.sqrt(1.0 + m), 0.0)


@pytest.mark.parametrize(
    ("loss", "error", "words"),
    [
        (Writes(), ValueError, "writes into scores, targets or weights"),
        (Single(), TypeError, "array of float64, got float32"),
        (NotANumber(), ValueError, "1 of 60 are NaN or infinite"),
        (Infinite(), ValueError, "finite number, got inf"),
        (Text(), TypeError, "real number, got str"),
        (PerRow(), TypeError, r"real number, got ndarray of shape \(60,\)"),
        (Short(), ValueError, r"shape \(60,\), got shape \(59,\)"),
        (Unweighted(), ValueError, "contradicts itself"),
        (NotConvex(), ValueError, "contradicts itself"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("solver", ["auto", "bmrm", "proximal-bundle"])
def test_wrong_losses_are_refused(loss, error, words, solver):
    rng = np.random.default_rng(3)
    X = 3.0 * rng.normal(size=(60, 3))
    y = np.where(X[:, 0] + rng.normal(size=60) > 0.0, 1, 0)
    model = BMRMClassifier(1e-3, loss=loss, solver=solver)
    with pytest.raises(error, match=words):
        model.fit(X, y)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("solver", ["auto", "bmrm", "proximal-bundle"])
def test_right_ones_are_not(solver):
    """Also where buffers are used again, and where scores are large."""
    rng = np.random.default_rng(3)
    X = 1e4 * rng.normal(size=(60, 3))
    y = np.where(X[:, 0] + 1e4 * rng.normal(size=60) > 0.0, 1, 0)
    buffer = np.empty(60)

    class Buffered(Hinge):
        def subgradient(self, *args):
            buffer[:] = super().subgradient(*args)
            return buffer

    mine = BMRMClassifier(1e-3, loss=Buffered(), solver=solver, max_iter=200).fit(X, y)
    known = BMRMClassifier(1e-3, loss="hinge", tol=1e-6).fit(X, y)
    assert (
        mine.objective_ - mine.dual_gap_ <= known.objective_ <= 1.01 * mine.objective_
    )

"""A set of dual variables as docs/architecture.md says how to add one: the ball."""

import numpy as np
import pytest
from _door import DualLoss, DualSet, MatrixCurvature, Quadratic
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from sklearn_subqn import BMRMRegressor
from sklearn_subqn.losses import Loss


class Ball(DualSet):
    """Vectors b of ||b|| <= 1 for each row: the loss is ||z - y||."""

    def oracle(self, smoothing):
        return Norm() if smoothing is None else SmoothNorm(smoothing)

    def envelope(self, center, width):
        return Quadratic(width, center)


class Norm(Loss):
    joint = True

    def value(self, scores, targets, weights):
        return float(weights @ np.linalg.norm(scores - targets, axis=1))

    def subgradient(self, scores, targets, weights):
        residuals = scores - targets
        sizes = np.linalg.norm(residuals, axis=1)
        shares = np.divide(weights, sizes, out=np.zeros(len(sizes)), where=sizes > 0.0)
        return shares[:, np.newaxis] * residuals

    def conjugate(self, dual, targets, weights):
        return float(np.vdot(dual, targets))

    def dual_variables(self, dual, targets, weights):
        return dual / weights[:, np.newaxis]

    def neutral_variables(self, targets):
        return np.zeros(targets.shape)


class SmoothNorm(Loss):
    """The maximum over b of <b, z - y> - width / 2 ||b - center||²."""

    joint = True

    def __init__(self, smoothing):
        self.width, self.center = smoothing.ridge, smoothing.center

    def _b(self, scores, targets):
        t = self.center + (scores - targets) / self.width
        sizes = np.maximum(np.linalg.norm(t, axis=1, keepdims=True), 1.0)
        return t / sizes, sizes

    def _squares(self, b):
        return 0.5 * self.width * np.square(b - self.center).sum(axis=1)

    def value(self, scores, targets, weights):
        b, _ = self._b(scores, targets)
        heights = np.einsum("ij,ij->i", b, scores - targets) - self._squares(b)
        return float(weights @ heights)

    def subgradient(self, scores, targets, weights):
        return weights[:, np.newaxis] * self._b(scores, targets)[0]

    def conjugate(self, dual, targets, weights):
        b = dual / weights[:, np.newaxis]
        return float(np.vdot(dual, targets) + weights @ self._squares(b))

    def curvature(self, scores, targets, weights):
        b, sizes = self._b(scores, targets)
        factors = (weights / self.width)[:, np.newaxis] / sizes
        outside = np.where(sizes > 1.0, b, 0.0)
        matrices = np.eye(b.shape[1]) - np.einsum("ij,ik->ijk", outside, outside)
        return MatrixCurvature(factors[:, :, np.newaxis] * matrices)

    def derivatives(self, scores, dscores, targets, weights):
        def at(step):
            args = scores + step * dscores, targets, weights
            bend = self.curvature(*args).apply(dscores.copy())
            slope = np.vdot(self.subgradient(*args), dscores)
            return float(slope), float(np.vdot(bend, dscores))

        return at


class OnlyVariables(Norm):
    """With what stands for duals, but no envelope: for methods that take any loss."""


def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 4))
    return X, X @ rng.normal(size=(4, 3)) + rng.standard_t(2, size=(100, 3))


def smallest_objective(alpha):
    X, Y = problem()

    def objective(w):
        residuals = X @ w.reshape(4, 3) - Y
        sizes = np.linalg.norm(residuals, axis=1)
        gradient = X.T @ (residuals / sizes[:, np.newaxis]) / len(X)
        return 0.5 * alpha * w @ w + sizes.mean(), alpha * w + gradient.ravel()

    options = {"gtol": 1e-9}
    return minimize(objective, np.zeros(12), jac=True, options=options)


@pytest.mark.parametrize("loss", [DualLoss(Ball()), OnlyVariables()])
def test_fit_is_proven_and_that_of_bfgs(loss):
    model = BMRMRegressor(loss=loss, alpha=1e-2, tol=1e-6, fit_intercept=False)
    model.fit(*problem())
    peer = smallest_objective(1e-2)
    assert model.objective_ <= peer.fun * (1.0 + 1e-6)
    assert model.objective_ - model.dual_gap_ <= peer.fun * (1.0 + 1e-12)
    assert model.dual_gap_ <= 1e-6 * model.objective_
    assert_allclose(model.coef_.T.ravel(), peer.x, atol=1e-2)

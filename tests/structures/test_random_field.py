"""ConditionalRandomField: optima by enumeration, and what functions must return."""

import numpy as np
import pytest
from _door import SMOOTH_STRUCTURED_SOLVERS
from _structures import Table
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from sklearn_subqn import ConditionalRandomField, L1LogisticOWLQN


class Logs(Table):
    """Tables whose structures are summed over, in the form of the joint features."""

    def log_partition(self, x, w):
        rows = self.features[x]
        mean = softmax(rows @ w) @ rows
        if self.kind == "dict":
            mean = dict(enumerate(mean))
        return logsumexp(rows @ w), mean

    def best(self, x, w):
        return x, int((self.features[x] @ w).argmax())

    def mean_loss(self, w, weights=None):
        scores = self.features @ w
        losses = logsumexp(scores, axis=1) - scores[self.X, self.y]
        return np.average(losses, weights=weights)


def fitted(table, weights=None, **parameters):
    given = {"alpha": 0.05, "tol": 1e-6, "n_joint_features": 4} | parameters
    crf = ConditionalRandomField(
        table.joint_feature, table.log_partition, table.best, **given
    )
    return crf.fit(table.X, table.truths, sample_weight=weights)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("solver", "kind"),
    [
        ("auto", "sparse"),
        ("auto", "dict"),
        *((solver, "dense") for solver in SMOOTH_STRUCTURED_SOLVERS),
    ],
)
def test_optimum_by_enumeration(solver, kind):
    table, weights = Logs(n=5, kind=kind, seed=3), np.arange(5) % 3
    penalties = {"l2": 0.0, "l1": 1.0, "elasticnet": 0.5}
    for penalty, rho in penalties.items():
        if solver in (("lbfgs", "bmrm-aggregated") if rho else ("owlqn",)):
            continue

        # With the two signs of coefficients apart.
        def J(x, rho=rho):
            w, size = x[:4] - x[4:], x.sum()
            square = 0.5 * (1.0 - rho) * w @ w
            return table.mean_loss(w, weights) + 0.05 * (rho * size + square)

        bounds = [(0.0, None)] * 8
        best = minimize(J, np.full(8, 0.1), bounds=bounds, options={"ftol": 1e-15}).fun
        arrives = solver in ("auto", "lbfgs", "owlqn", "n-slack", "bmrm", "ls-bmrm")
        given = {"penalty": penalty, "solver": solver}
        crf = fitted(table, weights, max_iter=300 if arrives else 30, **given)
        w = crf.coef_
        x = np.append(np.maximum(w, 0.0), np.maximum(-w, 0.0))
        assert crf.objective_ == pytest.approx(J(x), rel=1e-12)
        assert crf.objective_ - crf.dual_gap_ <= best + 1e-9
        assert best <= crf.objective_ + 1e-9
        if arrives:
            assert crf.dual_gap_ <= 1e-6 * crf.objective_


def test_classes_as_structures_are_logistic_regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = [int(i) for i in (X + rng.gumbel(size=(30, 3))).argmax(axis=1)]

    def joint_feature(x, label):
        return np.outer(np.arange(3) == label, x).ravel()

    def log_partition(x, w):
        scores = w.reshape(3, 3) @ x
        return logsumexp(scores), np.outer(softmax(scores), x).ravel()

    crf = ConditionalRandomField(joint_feature, log_partition, alpha=0.05, tol=1e-9)
    crf.fit(X, y)
    other = L1LogisticOWLQN(0.05, l1_ratio=0.0, tol=1e-9, fit_intercept=False)
    assert crf.objective_ == pytest.approx(other.fit(X, y).objective_, rel=2e-9)
    assert_allclose(crf.coef_.reshape(3, 3), other.coef_, atol=1e-3)
    # Most iterations call the function once for each sample.
    assert crf.history_[0].passes[-1] <= 1.5 * crf.n_iter_ + 3
    with pytest.raises(TypeError, match="predict and score need argmax"):
        crf.predict(X)


def test_weights_are_repetitions_and_predictions_are_the_best():
    table, weights = Logs(n=6), np.array([0, 1, 2, 0, 1, 3])
    crf = fitted(table, weights)
    rows = np.repeat(np.arange(6), weights)
    other = ConditionalRandomField(
        table.joint_feature, table.log_partition, alpha=0.05, tol=1e-6
    ).fit(list(rows), [table.truths[i] for i in rows])
    assert_allclose(crf.coef_, other.coef_, rtol=1e-2, atol=1e-3)
    assert crf.predict(table.X) == [table.best(x, crf.coef_) for x in table.X]
    equal = [a == b for a, b in zip(crf.predict(table.X), table.truths, strict=True)]
    assert crf.score(table.X, table.truths) == pytest.approx(np.mean(equal))


def test_values_may_be_arrays_without_dimensions():
    table, other = Logs(), Logs()
    right = other.log_partition

    def log_partition(x, w):
        value, mean = right(x, w)
        return np.asarray(value), mean

    other.log_partition = log_partition
    assert np.array_equal(fitted(table).coef_, fitted(other).coef_)


WRONG = {
    "value below the truth": (
        lambda value, mean: (value - 5.0, mean),
        "for sample 0 the logarithm is less than the true structure proves",
    ),
    "gradient": (lambda value, mean: (value, -3.0 * mean), "returned before proves"),
    "no tuple": (lambda value, mean: [value, mean], "must return a tuple"),
    "no gradient": (lambda value, mean: (mean, value), "must return a finite number"),
    "text": (lambda value, mean: (str(value), mean), "must return a finite number"),
    "nan": (lambda value, mean: (np.nan, mean), "must return a finite number"),
    "shape": (lambda value, mean: (value, mean[:3]), r"log_partition.*\(3,\)"),
    "mean": (lambda value, mean: (value, mean * np.inf), "log_partition of sample 0"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_functions_are_told(name):
    change, message = WRONG[name]
    table = Logs()
    right = table.log_partition
    table.log_partition = lambda x, w: change(*right(x, w))
    with (
        pytest.raises((TypeError, ValueError), match=message),
        np.errstate(all="ignore"),
    ):
        fitted(table)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"penalty": "l1", "solver": "lbfgs"}, "'lbfgs' does not support penalty='l1'"),
        ({"solver_options": {"line_search": "exact"}}, "'line_search'"),
    ],
)
def test_what_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        fitted(Logs(), **given)

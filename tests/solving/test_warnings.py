"""What users are told: models of no use, parameters without effect, wrong names."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import HuberRegressor, PoissonRegressor, QuantileRegressor
from sklearn.metrics import d2_tweedie_score, r2_score
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.svm import LinearSVR

import sklearn_subqn
from sklearn_subqn import (
    BMRMClassifier,
    BMRMOutlierDetector,
    BMRMRanker,
    BMRMRegressor,
    L1LogisticOWLQN,
    L1LogisticOWLQNCV,
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
    OnlineLBFGSRegressor,
    SubLBFGSLinearSVC,
    SubLBFGSLinearSVCCV,
    crf,
    linear_model,
    ranking,
    svm,
)
from sklearn_subqn._solving import report as _report
from sklearn_subqn.exceptions import ConstantModelWarning

NO_USE = "makes no use of the features"

pytestmark = pytest.mark.filterwarnings(f"error:.* {NO_USE}:UserWarning")


def skewed(n=1500):
    """Few positive samples, amid the others but for a shift."""
    return make_classification(
        n, 10, weights=[0.97], class_sep=0.5, flip_y=0.01, random_state=0
    )


def noise(n=300, d=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng


# --- models of no use ----------------------------------------------------------------


def of_no_use():
    """Estimators and data whose optimum is at zero, and what else they should take."""
    X, rng = noise()
    X -= X.mean(axis=0)
    few = np.arange(300) < 9
    grades = rng.integers(3, size=300)
    labels = rng.random((300, 6)) < 0.4
    qid = np.repeat(np.arange(30), 10)
    numbers = rng.normal(size=300)
    return [
        (BMRMClassifier(loss="f_beta_bound"), skewed(), {}, "loss='f_beta'"),
        (BMRMClassifier(loss="precision_at_k", k=20), skewed(), {}, "'log_loss'"),
        (BMRMClassifier(loss="hinge"), (X, few), {}, "class_weight='balanced'"),
        (BMRMClassifier(1e-1, penalty="l1"), (X, few), {}, "decrease alpha"),
        (SubLBFGSLinearSVC(), (X, few), {}, "class_weight='balanced'"),
        (L1LogisticOWLQN(1.0), (X, few), {}, "decrease alpha"),
        (MulticlassHingeClassifier(10.0), (X, grades), {}, "decrease alpha"),
        (
            MultilabelHingeClassifier(0.1, reduction="max"),
            (X, labels),
            {},
            "reduction='mean'",
        ),
        (BMRMRanker(loss="ndcg-assignment"), (X, grades), {"qid": qid}, "loss='ndcg'"),
        (BMRMOutlierDetector(1e-2), (X, None), {}, "do not center"),
        (BMRMRegressor(1.0, penalty="l1"), (X, numbers), {}, "decrease alpha"),
        (
            BMRMRegressor(loss="epsilon_insensitive", epsilon=9.0),
            (X, numbers),
            {},
            "ep",
        ),
    ]


@pytest.mark.parametrize(
    ("model", "data", "keywords", "instead"),
    of_no_use(),
    ids=lambda value: repr(value)[:40] if hasattr(value, "fit") else "",
)
def test_an_optimum_that_makes_no_use_of_the_features_is_told(
    model, data, keywords, instead
):
    with pytest.warns(UserWarning, match=NO_USE) as caught:
        model.fit(*data, **keywords)
    (warning,) = caught
    assert instead in str(warning.message)
    assert not issubclass(warning.category, ConvergenceWarning)
    assert warning.filename == __file__
    assert np.all(np.abs(model.coef_) < 1e-2)
    assert model.dual_gap_ <= 1e-3 * abs(model.objective_)


def test_bounds_of_measures_that_stay_at_zero_end_before_that_is_proven():
    """And say how long they have tried; those that leave zero late go on."""
    X, rng = noise(5000, 50)
    z = X @ rng.normal(size=50)
    z = 2.5 * z / z.std() + rng.logistic(size=5000)
    model = BMRMClassifier(loss="precision_at_k", k=100)
    with pytest.warns(ConstantModelWarning, match="in 199 iterations.*'log_loss'"):
        model.fit(X, z > np.quantile(z, 0.98))
    assert not model.coef_.any()
    assert model.objective_ - model.dual_gap_ < 0.99 * model.objective_
    X, rng = noise(5000, 20, seed=1)
    z = X @ rng.normal(size=20)
    z = 3.25 * z / z.std() + rng.logistic(size=5000)
    late = clone(model).fit(X, z > np.quantile(z, 0.98))
    assert late.objective_ < 0.99
    assert late.dual_gap_ <= 1e-3


def test_of_several_problems_those_are_named_of_which_it_holds():
    X, rng = noise()
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    y[rng.permutation(300)[:6]] = 7
    with pytest.warns(UserWarning, match=NO_USE) as caught:
        SubLBFGSLinearSVC(1e-2).fit(X, y)
    (warning,) = caught
    # The class in the middle is on both sides of the others, and the last is noise.
    assert "for 2 of 4 problems (1, 7)" in str(warning.message)


@pytest.mark.parametrize(
    "model",
    [
        BMRMClassifier(1e-3),
        SubLBFGSLinearSVC(1e-3, loss="squared_hinge"),
        L1LogisticOWLQN(1e-3),
        MulticlassHingeClassifier(1e-3),
        BMRMRegressor(loss="absolute_error"),
        BMRMRegressor(1e-2, penalty="l1"),
        BMRMRegressor(loss="poisson"),
    ],
    ids=repr,
)
def test_nothing_is_told_of_models_that_are_of_use(model):
    X, rng = noise()
    model.fit(X, (X[:, 0] + 0.5 * rng.normal(size=300) > 0.0).astype(int))
    assert np.abs(model.coef_).max() > 1e-2


def test_nothing_is_told_where_there_is_nothing_to_learn():
    X, _ = noise()
    for loss in ("squared_error", "absolute_error", "poisson", "huber"):
        BMRMRegressor(loss=loss).fit(X, np.full(300, 2.0))


def test_weak_but_proven_use_is_no_reason_to_tell():
    X, rng = noise(5000)
    y = 0.03 * X[:, 0] + rng.normal(size=5000)
    model = BMRMRegressor(1e-6).fit(X, y)
    assert 0.0 < model.score(X, y) < 2e-3


def test_paths_and_folds_do_not_tell_of_each_alpha():
    X, y = skewed(400)
    alphas = [1e3, 1e2, 1e-3]
    L1LogisticOWLQNCV(alphas=alphas, scoring="neg_log_loss").fit(X, y)
    with pytest.warns(UserWarning, match=NO_USE) as caught:
        SubLBFGSLinearSVCCV(alphas=[1e6], cv=3).fit(X, y)
    assert len(caught) == 1


# --- scores of rankings --------------------------------------------------------------


def rankings():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4))
    qid = np.repeat(np.arange(10), 20)
    y = np.digitize(X[:, 0] + rng.normal(size=200) + 3.0 * (qid % 3), [0, 1, 3, 6])
    return X, y, qid


def test_scores_of_rankings_need_the_queries_that_fit_had():
    X, y, qid = rankings()
    model = BMRMRanker().fit(X, y, qid=qid)
    assert model.n_queries_ == 10
    with pytest.raises(ValueError, match=r"fitted to 10 queries.*set_score_request"):
        model.score(X, y)
    one = model.score(X, y, qid=np.zeros(len(y)))
    assert 0.0 < one < 1.0
    assert model.score(X, y, qid=qid) != one
    of_one = BMRMRanker().fit(X, y)
    assert of_one.score(X, y) == of_one.score(X, y, qid=np.zeros(len(y)))


def test_cross_validated_scores_of_rankings_are_those_by_hand_or_an_error():
    X, y, qid = rankings()
    options = {"cv": GroupKFold(3), "groups": qid, "error_score": "raise"}
    with pytest.raises(ValueError, match="enable_metadata_routing"):
        cross_val_score(BMRMRanker(), X, y, params={"qid": qid}, **options)
    by_hand = []
    for train, test in GroupKFold(3).split(X, y, qid):
        model = BMRMRanker().fit(X[train], y[train], qid=qid[train])
        by_hand.append(model.score(X[test], y[test], qid=qid[test]))
    del options["groups"]
    with config_context(enable_metadata_routing=True):
        model = BMRMRanker().set_fit_request(qid=True).set_score_request(qid=True)
        params = {"qid": qid, "groups": qid}
        scores = cross_val_score(model, X, y, params=params, **options)
    np.testing.assert_allclose(scores, by_hand)


# --- selection of features -----------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        L1LogisticOWLQN(1e-2),
        L1LogisticOWLQNCV(alphas=[1e-2], cv=2),
        BMRMClassifier(1e-2, penalty="l1"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_selection_keeps_every_coefficient_that_is_not_zero(model, n_classes):
    X, y = make_classification(
        500, 60, n_informative=5, n_classes=n_classes, random_state=0
    )
    selector = SelectFromModel(model).fit(X, y)
    used = np.any(selector.estimator_.coef_ != 0.0, axis=0)
    np.testing.assert_array_equal(selector.get_support(), used)
    assert 5 <= used.sum() < 60


def test_selection_keeps_what_a_regression_with_l1_uses():
    X, rng = noise(d=30)
    y = X[:, 0] + 0.2 * X[:, 1] + rng.normal(size=300)
    selector = SelectFromModel(BMRMRegressor(5e-2, penalty="l1")).fit(X, y)
    np.testing.assert_array_equal(
        selector.get_support(), selector.estimator_.coef_ != 0
    )


def test_the_penalty_of_logistic_models_is_read_only_and_no_parameter():
    model = L1LogisticOWLQN(l1_ratio=0.5)
    assert model.penalty == "elasticnet"
    assert model.set_params(l1_ratio=1.0).penalty == "l1"
    assert "penalty" not in model.get_params()
    with pytest.raises(AttributeError):
        model.penalty = "l2"


# --- scores and parameters of losses -------------------------------------------------


def counts():
    X, rng = noise()
    return X, rng.poisson(np.exp(0.5 * X[:, 0] + 0.3)).astype(float), rng


def test_counts_are_scored_as_by_the_poisson_regression_of_scikit_learn():
    X, y, rng = counts()
    weights = rng.random(300)
    theirs = PoissonRegressor(alpha=1e-2, tol=1e-8).fit(X, y, weights)
    ours = BMRMRegressor(1e-2, loss="poisson", tol=1e-10).fit(X, y, weights)
    for sample_weight in (None, weights):
        expected = theirs.score(X, y, sample_weight)
        assert ours.score(X, y, sample_weight) == pytest.approx(expected, abs=1e-6)
        assert expected != pytest.approx(r2_score(y, theirs.predict(X)), abs=1e-2)
    online = OnlineLBFGSRegressor(loss="poisson").fit(X, y)
    d2 = d2_tweedie_score(y, online.predict(X), power=1)
    assert online.score(X, y) == pytest.approx(d2)


def test_counts_of_several_columns_and_tiny_expectations_are_scored():
    X, y, _ = counts()
    both = BMRMRegressor(loss="poisson").fit(X, np.column_stack([y, y[::-1]]))
    each = [BMRMRegressor(loss="poisson").fit(X, t).score(X, t) for t in (y, y[::-1])]
    found = both.score(X, np.column_stack([y, y[::-1]]))
    assert found == pytest.approx(np.mean(each), abs=1e-4)
    far = np.zeros((9, 4))
    far[:, 0] = -1e5
    model = BMRMRegressor(loss="poisson").fit(X, y)
    assert not model.predict(far).any()
    assert -np.inf < model.score(far, y[:9]) < 0.0


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (BMRMRegressor(loss="quantile"), QuantileRegressor(alpha=0.0)),
        (BMRMRegressor(loss="huber"), HuberRegressor()),
        (BMRMRegressor(loss="epsilon_insensitive"), LinearSVR()),
    ],
)
def test_other_losses_are_scored_by_r2_as_those_of_scikit_learn(ours, theirs):
    X, y, _ = counts()
    for model in (ours.fit(X, y), theirs.fit(X, y)):
        expected = r2_score(y, model.predict(X))
        assert model.score(X, y) == pytest.approx(expected, rel=1e-12)


def test_epsilon_has_one_default_for_each_of_its_meanings():
    X, y, _ = counts()
    y *= 3.0
    for loss, epsilon in (("huber", 1.35), ("epsilon_insensitive", 0.1)):
        default = BMRMRegressor(loss=loss).fit(X, y)
        given = BMRMRegressor(loss=loss, epsilon=epsilon).fit(X, y)
        np.testing.assert_array_equal(default.coef_, given.coef_)
        other = BMRMRegressor(loss=loss, epsilon=0.5).fit(X, y)
        assert not np.array_equal(default.coef_, other.coef_)
    assert OnlineLBFGSRegressor().epsilon == HuberRegressor().epsilon == 1.35


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (BMRMRegressor(quantile=0.9), r"quantile=0.9 .* to loss='quantile'\."),
        (BMRMRegressor(epsilon=0.1), "squared_epsilon_insensitive' or loss='huber'"),
        (BMRMRegressor(l1_ratio=0.9), "penalty='l2': .* penalty='elasticnet'"),
        (BMRMRegressor(p=1.2), "p=1.2 has no effect with penalty='l2'"),
        (BMRMRegressor(penalty_matrix=np.eye(4)), "^penalty_matrix has no effect"),
        (BMRMClassifier(beta=2.0), "beta=2.0 has no effect with loss='log_loss'"),
        (BMRMClassifier(k=5), "'precision_at_k' or loss='recall_at_k'"),
        (OnlineLBFGSRegressor(quantile=0.9), "has no effect with loss='squared_error'"),
        (OnlineLBFGSRegressor(loss="quantile", epsilon=1.0), "to loss='huber'"),
    ],
    ids=repr,
)
def test_parameters_of_other_losses_and_penalties_are_not_ignored_silently(
    model, message
):
    X, _ = noise()
    with pytest.warns(UserWarning, match=message) as caught:
        model.fit(X, (X[:, 0] > 0.0).astype(int))
    (warning,) = caught
    assert warning.filename == __file__


# --- messages ------------------------------------------------------------------------


ESTIMATORS = {
    getattr(module, name)
    for module in (sklearn_subqn, crf, linear_model, ranking, svm)
    for name in module.__all__
    if hasattr(getattr(module, name), "fit")
}
# Ranker takes any parameters, as LightGBM's does, and says in fit which have no effect.
STRICT = ESTIMATORS - {ranking.Ranker}


@pytest.mark.parametrize("Estimator", sorted(STRICT, key=lambda e: e.__name__))
def test_names_of_parameters_that_there_are_not(Estimator):
    name = Estimator._get_param_names()[0]
    with pytest.raises(TypeError, match=f"argument '{name}z'. Did you mean '{name}'"):
        Estimator(**{f"{name}z": 1.0})
    if "alpha" in Estimator._get_param_names():
        huber = Estimator is linear_model.HuberRegressor
        message = "sum of the losses" if huber else r"alpha = 1 / \(C \* n_samples\)"
        with pytest.raises(TypeError, match=message):
            Estimator(C=1.0)
    with pytest.raises(TypeError, match=r"argument 'zzz'\.$"):
        Estimator(zzz=1.0)


def test_classes_of_ones_own_may_take_any_parameters():
    class Balanced(SubLBFGSLinearSVC):
        def __init__(self, **parameters):
            super().__init__(class_weight="balanced", **parameters)

    assert Balanced(alpha=1.0).alpha == 1.0


def test_options_that_there_are_not_get_a_proposal():
    X, _ = noise()
    y = (X[:, 0] > 0.0).astype(int)
    for model, proposal in [
        (BMRMClassifier(loss="log_los"), "'log_loss'"),
        (BMRMRegressor(loss="squared_eror"), "'squared_error'"),
        (BMRMClassifier(penalty="L1"), "'l1'"),
        (SubLBFGSLinearSVC(loss="squared_hinge", solver="newton"), "'newton-cg'"),
        (BMRMRanker(loss="pairwise_linear"), "'pairwise-linear'"),
    ]:
        with pytest.raises(ValueError, match=rf"Did you mean {proposal}\?$"):
            model.fit(X, y)
    with pytest.raises(ValueError, match=r"got 'simplex'\.$"):
        SubLBFGSLinearSVC(solver="simplex").fit(X, y)


def test_bounds_on_both_sides_are_named():
    X, _ = noise()
    for value in (95, 0.0, 1.0):
        message = f"quantile must be > 0 and < 1, got {value}."
        with pytest.raises(ValueError, match=message):
            BMRMRegressor(loss="quantile", quantile=value).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="alpha must be finite and >= 0, got inf"):
        BMRMRegressor(np.inf).fit(X, X[:, 0])


def test_one_iteration_is_singular():
    X, y = skewed(300)
    for n, message in ((1, "after 1 iteration. "), (2, "after 2 iterations. ")):
        with pytest.warns(ConvergenceWarning, match=message):
            SubLBFGSLinearSVC(1e-6, solver="sublbfgs", max_iter=n).fit(X, y)


@pytest.mark.parametrize("quiet", [np.inf, 0.0])
def test_long_fits_print_by_time(quiet, monkeypatch, capsys):
    monkeypatch.setattr(_report, "QUIET", quiet)
    X, y = make_classification(300, random_state=0)
    smooth = {"loss": "squared_hinge", "solver": "lbfgs"}
    model = SubLBFGSLinearSVC(1e-2, **smooth, verbose=1).fit(X, y)
    lines = [
        line for line in capsys.readouterr().out.splitlines() if "objective" in line
    ]
    numbers = range(model.n_iter_ + 1)
    by_powers = [n for n in numbers if n.bit_count() <= 1]
    assert len(lines) == len(numbers if quiet == 0.0 else by_powers)
    assert len(numbers) > len(by_powers)


def test_the_plan_is_told():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X.argmax(axis=1)
    named = SubLBFGSLinearSVC(1e-3, solver="alm")
    assert named.fit(X, y > 0).plan_ == "alm"
    assert named.fit(X, y).plan_ == ["alm"] * 3
    assert isinstance(SubLBFGSLinearSVC(1e-3).fit(X, y > 0).plan_, str)


def test_advice_is_of_parameters_that_the_estimator_has():
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(60, 4)), rng.normal(size=60)

    class Short(linear_model.QuantileRegressor):
        max_iter = 1

    many = np.tile(X, (1800, 1)).astype(np.float32)
    # No two rows are equal.
    many *= rng.uniform(0.999, 1.0, size=(len(many), 1)).astype(np.float32)
    with pytest.warns(ConvergenceWarning, match="asked for") as caught:
        Short(alpha=1e-4).fit(many, np.tile(X[:, 0] + noise, 1800))
    assert str(caught[0].message).endswith("was asked for. Scale the features.")
    with pytest.warns(ConvergenceWarning, match="asked for") as caught:
        svm.LinearSVC(tol=1e-17).fit(X, X[:, 0] > noise)
    assert "another solver" not in str(caught[0].message)
    assert "ncrease tol" in str(caught[0].message)


def test_epsilon_of_another_loss_is_not_looked_at():
    X = np.arange(12.0).reshape(6, 2)
    with pytest.warns(UserWarning, match="epsilon='x' has no effect"):
        other = BMRMRegressor(epsilon="x").fit(X, X[:, 0])
    assert np.array_equal(other.coef_, BMRMRegressor().fit(X, X[:, 0]).coef_)


@pytest.mark.parametrize(
    ("group", "got"),
    [
        ([2] * 49, r"got 49 with the sum 98\."),
        ([-1, 101], r"got -1\."),
        ([[100]], "1, 1"),
    ],
)
def test_wrong_groups_are_stated_in_short(group, got):
    X = np.arange(200.0).reshape(100, 2)
    with pytest.raises(ValueError, match=got):
        BMRMRanker().fit(X, X[:, 0], group=group)

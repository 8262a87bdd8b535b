"""Fitted models as estimators of scikit-learn, and as tables of coefficients."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import (
    GammaRegressor,
    LinearRegression,
    RidgeClassifier,
    SGDClassifier,
    SGDOneClassSVM,
    TweedieRegressor,
)
from sklearn.linear_model import LogisticRegression as SkLogisticRegression
from sklearn.linear_model import PoissonRegressor as SkPoissonRegressor
from sklearn.multioutput import MultiOutputRegressor
from sklearn.svm import LinearSVC as SkLinearSVC

from sklearn_subqn import (
    BMRMClassifier,
    BMRMOutlierDetector,
    BMRMRanker,
    BMRMRegressor,
    BMRMRegressorCV,
    L1LogisticOWLQN,
    L1LogisticOWLQNCV,
    LinearChainCRF,
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
    OnlineLBFGSClassifier,
    OnlineLBFGSRegressor,
    SubLBFGSLinearSVC,
    SubLBFGSLinearSVCCV,
    linear_model,
    losses,
)
from sklearn_subqn.linear_model import (
    HuberRegressor,
    LogisticRegression,
    LogisticRegressionCV,
    PoissonRegressor,
    QuantileRegressor,
)
from sklearn_subqn.ranking import Ranker
from sklearn_subqn.svm import LinearSVC, LinearSVR

pytestmark = pytest.mark.filterwarnings("ignore:.*reached max_iter")

RNG = np.random.default_rng(0)
NAMES = ["age", "income", "height", "weight"]
X = pd.DataFrame(RNG.normal(size=(120, 4)), columns=NAMES)
NEW = pd.DataFrame(3.0 * RNG.normal(size=(300, 4)), columns=NAMES)
SCORES = X.to_numpy() @ [1.0, -1.0, 2.0, 0.0] + RNG.normal(size=120)
TWO = np.where(SCORES > 0.0, "yes", "no")
NUMBERS = np.where(SCORES > 0.0, 3, -1)
THREE = np.digitize(SCORES, [-1.0, 1.0]) + 5
LABELS = (np.column_stack([SCORES, -SCORES, X.age + X.height]) > 0.5).astype(int)
AMOUNTS = np.exp(0.3 * SCORES)
BOTH = np.column_stack([AMOUNTS, 2.0 + X.age**2])
GROUP = np.full(12, 10)

QUANTILES = BMRMRegressor(loss="quantile", quantile=[0.2, 0.7], crossing="allow")

CLASSIFIERS = [
    (SubLBFGSLinearSVC(), SkLinearSVC),
    (SubLBFGSLinearSVC(fit_intercept=False), SkLinearSVC),
    (SubLBFGSLinearSVCCV(alphas=2, cv=2), SkLinearSVC),
    (LinearSVC(), SkLinearSVC),
    (MulticlassHingeClassifier(), SkLinearSVC),
    (MultilabelHingeClassifier(), SkLinearSVC),
    (L1LogisticOWLQN(), SkLogisticRegression),
    (L1LogisticOWLQNCV(alphas=2, cv=2), SkLogisticRegression),
    (LogisticRegression(), SkLogisticRegression),
    (LogisticRegressionCV(Cs=2, cv=2), SkLogisticRegression),
    (BMRMClassifier(loss="hinge"), SkLinearSVC),
    (BMRMClassifier(loss="modified_huber", alpha=1e-2), SGDClassifier),
    (BMRMClassifier(loss="ordinal"), SkLinearSVC),
    (BMRMClassifier(loss="ordinal_immediate_threshold"), SkLogisticRegression),
    (OnlineLBFGSClassifier(max_iter=3), SkLogisticRegression),
    (OnlineLBFGSClassifier(loss="hinge", max_iter=3), SkLinearSVC),
    (OnlineLBFGSClassifier(loss="modified_huber", max_iter=3), SGDClassifier),
]
REGRESSORS = [
    (BMRMRegressor(loss="squared_error"), SCORES, LinearRegression),
    (BMRMRegressor(loss="squared_error"), BOTH, LinearRegression),
    (QUANTILES, SCORES, LinearRegression),
    (BMRMRegressor(loss="quantile", quantile=[0.3]), SCORES, LinearRegression),
    (BMRMRegressor(loss="poisson"), AMOUNTS, SkPoissonRegressor),
    (BMRMRegressor(loss="poisson"), BOTH, MultiOutputRegressor),
    (BMRMRegressor(loss="gamma"), AMOUNTS, GammaRegressor),
    (BMRMRegressor(loss="tweedie", power=1.3), AMOUNTS, TweedieRegressor),
    (BMRMRegressorCV(alphas=2, cv=2), SCORES, LinearRegression),
    (OnlineLBFGSRegressor(max_iter=3), SCORES, LinearRegression),
    (OnlineLBFGSRegressor(loss="poisson", max_iter=3), AMOUNTS, SkPoissonRegressor),
    (LinearSVR(), SCORES, LinearRegression),
    (QuantileRegressor(alpha=0.01), SCORES, LinearRegression),
    (HuberRegressor(), SCORES, LinearRegression),
    (PoissonRegressor(), AMOUNTS, SkPoissonRegressor),
    (linear_model.TweedieRegressor(power=1.5), AMOUNTS, TweedieRegressor),
]


def check_features(model, twin):
    assert twin.n_features_in_ == 4
    assert_array_equal(twin.feature_names_in_, NAMES)
    with pytest.raises(ValueError, match="feature names"):
        twin.predict(NEW[NAMES[::-1]])


@pytest.mark.parametrize(("estimator", "kind"), CLASSIFIERS, ids=repr)
@pytest.mark.parametrize("y", [NUMBERS, THREE], ids=["two", "three"])
def test_classifiers_are_those_of_scikit_learn(estimator, kind, y):
    model = estimator.fit(X, y)
    twin = model.to_sklearn()
    assert type(twin) is kind
    check_features(model, twin)
    assert_array_equal(twin.classes_, model.classes_)
    assert_array_equal(twin.coef_, model.coef_)
    assert not np.shares_memory(twin.coef_, model.coef_)
    assert_array_equal(twin.predict(NEW), model.predict(NEW))
    scores = model.decision_function(NEW)
    assert_allclose(twin.decision_function(NEW), scores, rtol=1e-10, atol=1e-10)
    assert hasattr(twin, "predict_proba") == hasattr(model, "predict_proba")
    if hasattr(model, "predict_proba"):
        p, q = twin.predict_proba(NEW), model.predict_proba(NEW)
        assert_allclose(p, q, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize(
    ("y", "kind"), [(TWO, SkLogisticRegression), (THREE, SGDClassifier)]
)
def test_log_losses_against_the_rest_keep_their_probabilities(y, kind):
    model = BMRMClassifier(loss="log_loss").fit(X, y)
    twin = model.to_sklearn()
    assert type(twin) is kind
    p = twin.predict_proba(NEW)
    assert_allclose(p, model.predict_proba(NEW), rtol=1e-9, atol=1e-14)
    assert_array_equal(twin.predict(NEW), model.predict(NEW))


@pytest.mark.parametrize(("estimator", "y", "kind"), REGRESSORS, ids=repr)
def test_regressors_are_those_of_scikit_learn(estimator, y, kind):
    model = estimator.fit(X, y)
    twin = model.to_sklearn()
    assert type(twin) is kind
    check_features(model, twin)
    assert_allclose(twin.predict(NEW), model.predict(NEW), rtol=1e-9, atol=1e-10)
    assert twin.predict(NEW).shape == model.predict(NEW).shape
    if kind not in (LinearRegression, MultiOutputRegressor):
        score = model.score(NEW, np.arange(1.0, 301.0))
        assert twin.score(NEW, np.arange(1.0, 301.0)) == pytest.approx(score)


@pytest.mark.parametrize("estimator", [BMRMRanker(), Ranker()], ids=repr)
def test_rankers_are_regressors_of_their_scores(estimator):
    model = estimator.fit(X, THREE - 5, group=GROUP)
    twin = model.to_sklearn()
    assert type(twin) is LinearRegression
    check_features(model, twin)
    assert_allclose(twin.predict(NEW), model.predict(NEW), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("params", [{"nu": 0.2}, {"alpha": 1e-2}])
def test_outlier_detectors_are_those_of_scikit_learn(params):
    data = X + 3.0
    model = BMRMOutlierDetector(**params).fit(data)
    twin = model.to_sklearn()
    assert type(twin) is SGDOneClassSVM
    check_features(model, twin)
    assert_array_equal(twin.predict(NEW), model.predict(NEW))
    for name in ("decision_function", "score_samples"):
        ours, theirs = getattr(model, name)(NEW), getattr(twin, name)(NEW)
        assert_allclose(theirs, ours, rtol=1e-9, atol=1e-10)


def test_labels_are_one_problem_each():
    model = MultilabelHingeClassifier().fit(X, LABELS)
    twin = model.to_sklearn()
    assert type(twin) is RidgeClassifier
    check_features(model, twin)
    assert_array_equal(twin.classes_, [0, 1, 2])
    assert_array_equal(twin.predict(NEW), model.predict(NEW))
    scores = model.decision_function(NEW)
    assert_allclose(twin.decision_function(NEW), scores, rtol=1e-9, atol=1e-10)


def test_sparse_coefficients_and_single_precision_stay():
    model = L1LogisticOWLQN(alpha=0.1).fit(X.astype(np.float32), THREE).sparsify()
    twin = model.to_sklearn()
    assert sparse.issparse(twin.coef_)
    assert twin.coef_.dtype == np.float32
    assert_array_equal(twin.predict(NEW), model.predict(NEW))
    assert isinstance(twin.densify().coef_, np.ndarray)
    assert sparse.issparse(model.coef_)


def test_losses_of_classes_in_a_hierarchy_keep_their_probabilities():
    paths = np.array([[1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    tree = losses.Ontology(paths, loss="log_loss")
    model = BMRMClassifier(loss=tree).fit(X, THREE)
    p = model.to_sklearn().predict_proba(NEW)
    assert_allclose(p, model.predict_proba(NEW), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize(
    ("estimator", "y", "reason"),
    [
        (BMRMClassifier(loss="ordinal_all_threshold"), THREE, "cumulative"),
        (BMRMRegressor(loss="quantile", quantile=[0.2, 0.7]), SCORES, "crossing"),
        (MultilabelHingeClassifier(threshold=False), LABELS, "predicts none"),
    ],
)
def test_models_that_scikit_learn_does_not_have_are_refused(estimator, y, reason):
    model = estimator.fit(X, y)
    with pytest.raises(ValueError, match=f"no estimator that is the same.*{reason}"):
        model.to_sklearn()


def test_unfitted_models_and_those_of_sequences_have_none():
    with pytest.raises(NotFittedError):
        SubLBFGSLinearSVC().to_sklearn()
    assert not hasattr(LinearChainCRF(), "to_sklearn")


def test_tables_of_coefficients_are_in_the_order_of_their_effects():
    scale = np.array([100.0, 1.0, 1.0, 0.0])
    for y in (NUMBERS, THREE):
        model = BMRMClassifier().fit(X, y)
        table = model.coef_table(scale=scale)
        assert list(table.columns) == ["feature", "class", "coefficient", "effect"]
        assert set(table["class"]) == ({3} if y is NUMBERS else {5, 6, 7})
        wide = table.pivot(index="class", columns="feature", values="coefficient")
        assert_array_equal(wide[NAMES], model.coef_)
        effects = table.effect.abs()
        assert effects.is_monotonic_decreasing
        assert_array_equal(
            table.effect,
            table.coefficient * table.feature.map(dict(zip(NAMES, scale, strict=True))),
        )
        plain = model.coef_table()
        assert list(plain.columns) == ["feature", "class", "coefficient"]
        assert plain.coefficient.abs().is_monotonic_decreasing


def test_tables_name_outputs():
    one = BMRMRegressor().fit(X, SCORES).coef_table(feature_names=list("abcd"))
    assert list(one.columns) == ["feature", "coefficient"]
    assert sorted(one.feature) == list("abcd")
    two = BMRMRegressor().fit(X.to_numpy(), BOTH)
    wide = two.coef_table().pivot(
        index="output", columns="feature", values="coefficient"
    )
    assert_array_equal(wide[["x0", "x1", "x2", "x3"]], two.coef_)
    levels = QUANTILES.fit(X, SCORES).coef_table()
    assert set(levels["quantile"]) == {0.2, 0.7}
    labels = MultilabelHingeClassifier().fit(X, LABELS).coef_table()
    assert set(labels.label) == {0, 1, 2}
    ranker = BMRMRanker().fit(X, THREE - 5, group=GROUP)
    assert list(ranker.coef_table().columns) == ["feature", "coefficient"]
    detector = BMRMOutlierDetector(nu=0.2).fit(X + 3.0)
    assert_array_equal(
        detector.coef_table().set_index("feature").coefficient[NAMES],
        np.ravel(detector.coef_),
    )


def test_tables_of_sparse_coefficients_have_their_entries():
    model = L1LogisticOWLQN(alpha=0.1).fit(X, THREE)
    n_used = np.count_nonzero(model.coef_)
    assert 0 < n_used < model.coef_.size
    whole = model.coef_table()
    table = model.sparsify().coef_table()
    assert len(table) == n_used
    pd.testing.assert_frame_equal(table, whole[:n_used])


def test_tables_say_what_they_need(monkeypatch):
    model = BMRMRegressor().fit(X, SCORES)
    with pytest.raises(ValueError, match=r"one name for each of 4 .* \(2,\)"):
        model.coef_table(feature_names=["a", "b"])
    with pytest.raises(ValueError, match=r"one number for each of 4 .* \(1,\)"):
        model.coef_table(scale=[1.0])
    with pytest.raises(ValueError, match="not negative"):
        model.coef_table(scale=[1.0, -1.0, 1.0, 1.0])
    with pytest.raises(NotFittedError):
        BMRMRegressor().coef_table()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="coef_table needs pandas"):
        BMRMRegressor().fit(X.to_numpy(), SCORES).coef_table()


def test_tables_of_weights_of_sequences():
    tokens = [[{"word": "a"}, {"word": "b"}], [{"word": "b"}, {"word": "a"}] * 2]
    tags = [["A", "B"], ["B", "A"] * 2]
    crf = LinearChainCRF(alpha=0.1).fit(tokens, tags)
    state, transition = crf.state_table(), crf.transition_table()
    assert list(state.columns) == ["attribute", "label", "weight"]
    assert list(transition.columns) == ["label", "next_label", "weight"]
    for table, weights in [
        (state, crf.state_features_),
        (transition, crf.transition_features_),
    ]:
        assert {(a, b): w for a, b, w in table.itertuples(index=False)} == dict(weights)
        assert len(table) == len(weights) > 0
        assert table.weight.abs().is_monotonic_decreasing
    rows = LinearChainCRF(alpha=0.1).fit(X, TWO, lengths=[60, 60]).state_table()
    assert set(rows.attribute) == set(NAMES)
    with pytest.raises(AttributeError, match="not fitted"):
        LinearChainCRF().state_table()

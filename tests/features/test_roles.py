"""The order of classes and the positive class: whatever the alphabet makes of names."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_subqn import (
    BMRMClassifier,
    L1LogisticOWLQN,
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
    OnlineLBFGSClassifier,
    SubLBFGSLinearSVC,
)
from sklearn_subqn.losses import (
    FBeta,
    LogisticPairs,
    Loss,
    OrdinalLogistic,
    RecallAtK,
    ReciprocalRank,
)

ORDINAL = [
    "ordinal",
    "ordinal_squared",
    "ordinal_log",
    "ordinal_linear",
    "ordinal_linear_squared",
    "ordinal_linear_log",
    "ordinal_all_threshold",
    "ordinal_immediate_threshold",
    "ordinal_logit",
    OrdinalLogistic(),
    LogisticPairs("constant"),
]
each_ordinal = pytest.mark.parametrize(
    "loss",
    ORDINAL,
    ids=lambda loss: loss if isinstance(loss, str) else type(loss).__name__,
)
NAMES = ["low", "medium", "high", "top"]


def grades(n=150, n_classes=4):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    z = X @ [2.0, -1.0, 0.5] + rng.logistic(size=n)
    return X, np.digitize(z, np.linspace(-1.5, 2.0, n_classes - 1))


def rare(n=400):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    s = X @ [2.0, -1.0, 0.5] + rng.logistic(size=n)
    return X, (s > np.quantile(s, 0.9)).astype(int)


def compare_ordinal(named, plain, names, X, *, exact=True):
    """Models of named classes and of their numbers: the same but for the names."""
    same = assert_array_equal if exact else assert_allclose
    same(named.objective_, plain.objective_)
    assert_array_equal(named.classes_, np.unique(names))
    assert_array_equal(named.ordered_classes_, names)
    assert_array_equal(named.predict(X), np.array(names)[plain.predict(X)])
    at = np.searchsorted(named.classes_, names)
    if len(names) > 2:
        same(named.coef_[at], plain.coef_)
        same(named.decision_function(X)[:, at], plain.decision_function(X))
    if hasattr(plain, "predict_proba"):
        assert_allclose(named.predict_proba(X)[:, at], plain.predict_proba(X))


# --- order ---------------------------------------------------------------------------


@each_ordinal
def test_the_order_of_categories_and_of_classes(loss):
    pd = pytest.importorskip("pandas")
    X, codes = grades()
    model = BMRMClassifier(1e-2, loss=loss)
    plain = clone(model).fit(X, codes)
    categories = pd.Categorical.from_codes(codes, NAMES, ordered=True)
    for y in (categories, pd.Series(categories), pd.DataFrame({"y": categories})):
        with warnings.catch_warnings():
            # scikit-learn's: a column was passed.
            warnings.simplefilter("ignore")
            named = clone(model).fit(X, y)
        compare_ordinal(named, plain, NAMES, X)
    names = np.array(NAMES)[codes]
    model.set_params(classes=NAMES)
    compare_ordinal(clone(model).fit(X, names), plain, NAMES, X)
    # A parameter goes before what labels bring along.
    backward = pd.Categorical(names, NAMES[::-1], ordered=True)
    compare_ordinal(clone(model).fit(X, backward), plain, NAMES, X)


@each_ordinal
def test_two_classes_in_reverse(loss):
    X, codes = grades(n_classes=2)
    model = BMRMClassifier(1e-2, loss=loss)
    plain = clone(model).fit(X, codes)
    model.set_params(classes=["worse", "better"])
    named = model.fit(X, np.array(["worse", "better"])[codes])
    compare_ordinal(named, plain, ["worse", "better"], X)
    # Scores are positive for the second class in sorted order, as in scikit-learn.
    assert_array_equal(named.classes_, ["better", "worse"])
    assert_array_equal(named.coef_, -plain.coef_)
    assert_array_equal(named.decision_function(X) > 0, named.predict(X) == "worse")


@pytest.mark.parametrize("loss", ["ordinal", "ordinal_all_threshold"])
def test_enums_of_polars(loss):
    pl = pytest.importorskip("polars")
    X, codes = grades()
    names = [NAMES[code] for code in codes]
    plain = BMRMClassifier(1e-2, loss=loss).fit(X, codes)
    named = BMRMClassifier(1e-2, loss=loss).fit(
        X, pl.Series(names, dtype=pl.Enum(NAMES))
    )
    compare_ordinal(named, plain, NAMES, X)


@each_ordinal
def test_labels_without_an_order_are_refused(loss):
    pd = pytest.importorskip("pandas")
    X, codes = grades()
    model = BMRMClassifier(loss=loss)
    names = np.array(NAMES)[codes]
    for y in (
        names,
        names.tolist(),
        pd.Categorical(names),
        np.array(list("1234"))[codes],
    ):
        with pytest.raises(ValueError, match="needs the order of classes"):
            model.fit(X, y)
    assert not hasattr(model, "classes_")


def test_strings_of_numbers():
    X, codes = grades(n=400, n_classes=10)
    strings = [str(i) for i in range(1, 11)]
    y = np.array(strings)[codes]
    model = BMRMClassifier(1e-2, loss="ordinal_all_threshold")
    with pytest.raises(ValueError, match="or as y numbers"):
        model.fit(X, y)
    plain = clone(model).fit(X, codes)
    compare_ordinal(model.set_params(classes=strings).fit(X, y), plain, strings, X)


def test_numbers_of_any_kind_are_ordered_as_numbers():
    X, codes = grades()
    plain = BMRMClassifier(1e-2, loss="ordinal").fit(X, codes)
    for values in ([1, 2, 10, 20], [-1.0, 0.0, 3.0, 30.0]):
        model = BMRMClassifier(1e-2, loss="ordinal")
        model.fit(X, np.array(values)[codes])
        assert_array_equal(model.ordered_classes_, values)
        assert model.objective_ == plain.objective_
        model.fit(X, np.array(values, dtype=object)[codes].astype(type(values[0])))
        assert model.objective_ == plain.objective_


def test_classes_that_are_no_order():
    X, codes = grades()
    y = np.array(NAMES)[codes]
    model = BMRMClassifier(loss="ordinal")
    for classes, message in [
        (NAMES[:3], r"not among classes=.*\['top'\]"),
        ("high", "must be a list of labels"),
        (set(NAMES), "must be a list of labels"),
        ([NAMES], "must be a list of labels"),
        ([*NAMES, "low"], "must be different labels"),
        ([*NAMES, None], "must be different labels"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.set_params(classes=classes).fit(X, y)
    with pytest.warns(UserWarning, match="classes has no effect with loss='log_loss'"):
        BMRMClassifier(classes=NAMES).fit(X, y)
    model = BMRMClassifier(loss="ordinal", classes=NAMES).fit(X, y)
    assert not hasattr(
        model.set_params(loss="hinge", classes=None).fit(X, y), "ordered_classes_"
    )


@pytest.mark.parametrize("loss", ["ordinal", "ordinal_all_threshold"])
def test_warm_starts_in_the_order_of_classes(loss):
    X, codes = grades()
    for names in (NAMES, ["worse", "better"]):
        y = np.array(names)[np.minimum(codes, len(names) - 1)]
        model = BMRMClassifier(
            1e-2, loss=loss, classes=names, warm_start=True, tol=1e-7
        ).fit(X, y)
        best = model.objective_
        again = model.fit(X, y)
        assert again.history_[0].objective[0] == pytest.approx(best, rel=1e-6)


def test_searches_pipelines_and_folds_without_a_class():
    pd = pytest.importorskip("pandas")
    X, codes = grades()
    y = pd.Series(pd.Categorical.from_codes(codes, NAMES, ordered=True))
    model = make_pipeline(
        StandardScaler(), BMRMClassifier(loss="ordinal_all_threshold")
    )
    grid = {"bmrmclassifier__alpha": [1e-1, 1e-3]}
    named, plain = (
        GridSearchCV(model, grid, scoring="neg_log_loss", cv=3).fit(X, labels)
        for labels in (y, codes)
    )
    assert_allclose(
        named.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"]
    )
    # The only sample of the highest class is in the last fold.
    lone = np.where(codes == 3, 2, codes)
    lone[-1] = 3
    y = pd.Series(pd.Categorical.from_codes(lone, NAMES, ordered=True))
    scores = cross_val_score(model, X, y, cv=[(range(100), range(100, 150))])
    expected = cross_val_score(model, X, lone, cv=[(range(100), range(100, 150))])
    assert_array_equal(scores, expected)
    model.set_params(bmrmclassifier__classes=NAMES)
    y = np.array(NAMES)[lone]
    scores = cross_val_score(model, X, y, cv=[(range(100), range(100, 150))])
    assert_array_equal(scores, expected)


# --- the positive class --------------------------------------------------------------

ONE_CLASS = {
    "f_beta": {"loss": "f_beta"},
    "f_beta, weighted": {"loss": "f_beta", "beta": 2.0, "class_weight": "balanced"},
    "f_beta_bound": {"loss": "f_beta_bound"},
    "precision_at_k": {"loss": "precision_at_k", "k": 50},
    "recall_at_k": {"loss": "recall_at_k", "k": 50},
    # Of a constant model, whose scores are all zero.
    "precision_at_k, constant": {"loss": "precision_at_k", "k": 2, "alpha": 1e3},
    "FBeta": {"loss": FBeta(1.0)},
    "RecallAtK": {"loss": RecallAtK(50)},
    "ReciprocalRank": {"loss": ReciprocalRank(), "alpha": 1e-1},
}
NEUTRAL = ["roc_area", "roc_area_squared", "roc_area_log"]


class Unequal(Loss):
    """A hinge that counts three times for the positive class."""

    def value(self, scores, targets, weights):
        factors = np.where(targets > 0.0, 3.0, 1.0) * weights
        return float(factors @ np.maximum(1.0 - targets * scores, 0.0))

    def subgradient(self, scores, targets, weights):
        factors = np.where(targets > 0.0, 3.0, 1.0) * weights
        return -factors * targets * (targets * scores < 1.0)


@pytest.mark.parametrize("case", [*ONE_CLASS, *NEUTRAL, "own"])
def test_the_positive_class_by_its_name(case):
    X, y = rare()
    names = np.array(["legit", "fraud"])[y]
    params = ONE_CLASS.get(case, {"loss": Unequal() if case == "own" else case})
    model = BMRMClassifier(**{"alpha": 1e-3, **params})
    plain = clone(model).fit(X, y)
    named = clone(model).set_params(pos_label="fraud").fit(X, names)
    assert_array_equal(named.classes_, ["fraud", "legit"])
    assert (named.pos_label_, plain.pos_label_) == ("fraud", 1)
    assert named.objective_ == plain.objective_
    assert_array_equal(named.coef_, -plain.coef_)
    assert_array_equal(named.intercept_, -plain.intercept_)
    assert_array_equal(named.predict(X) == "fraud", plain.predict(X) == 1)
    assert_array_equal(named.decision_function(X), -plain.decision_function(X))
    if hasattr(plain, "f_beta_"):
        assert named.f_beta_ == plain.f_beta_
        assert named.threshold_ == -plain.threshold_
    # It is the other class that the last name of the alphabet is.
    if case.startswith("f_beta, "):
        other = clone(model).set_params(pos_label="legit").fit(X, names)
        assert other.objective_ != named.objective_


def test_f_beta_finds_the_rare_class():
    X, y = rare()
    names = np.array(["legit", "fraud"])[y]
    model = BMRMClassifier(1e-3, loss="f_beta", pos_label="fraud").fit(X, names)
    assert f1_score(names, model.predict(X), pos_label="fraud") > 0.5


@pytest.mark.parametrize("case", ONE_CLASS)
def test_a_warning_names_the_class_taken(case):
    X, y = rare()
    model = BMRMClassifier(**{"alpha": 1e-3, **ONE_CLASS[case]})
    for names in (["legit", "fraud"], [2, 1], ["0", "1"]):
        last = max(names)
        with pytest.warns(UserWarning, match=f"for which {last!r} is taken"):
            model.fit(X, np.array(names)[y])
        assert model.pos_label_ == last


def test_no_warning_where_labels_tell_or_classes_are_alike():
    X, y = rare()
    model = BMRMClassifier(1e-3, loss="precision_at_k", k=50)
    for labels in (y, 2 * y - 1, y == 1, y.astype(float)):
        model.fit(X, labels)
    model.set_params(pos_label=2).fit(X, y + 1)
    names = np.array(["legit", "fraud"])[y]
    for loss in (*NEUTRAL, "hinge", "log_loss"):
        BMRMClassifier(1e-3, loss=loss).fit(X, names)
    three = np.array(["a", "b", "c"])[np.arange(len(y)) % 3]
    model.set_params(pos_label=None).fit(X, three)
    assert not hasattr(model, "pos_label_")


def test_positive_classes_that_are_none():
    X, y = rare()
    model = BMRMClassifier(1e-3, loss="f_beta", pos_label="fraud")
    with pytest.raises(ValueError, match="must be one of two classes, got 'fraud'"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="must be one of two classes"):
        model.set_params(pos_label=1).fit(X, np.arange(len(y)) % 3)
    message = "pos_label has no effect with loss='log_loss'"
    with pytest.warns(UserWarning, match=message):
        BMRMClassifier(pos_label=1).fit(X, y)


def test_warm_starts_with_a_first_positive_class():
    X, y = rare()
    model = BMRMClassifier(
        1e-3, loss="recall_at_k", k=50, pos_label=0, warm_start=True, tol=1e-5
    ).fit(X, y)
    best = model.objective_
    assert model.fit(X, y).history_[0].objective[0] == pytest.approx(best, rel=1e-5)


# --- all classifiers -----------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        SubLBFGSLinearSVC(1e-2, tol=1e-10),
        L1LogisticOWLQN(1e-3, tol=1e-10),
        MulticlassHingeClassifier(1e-2, tol=1e-10),
        MultilabelHingeClassifier(1e-2, tol=1e-10),
        BMRMClassifier(1e-2, tol=1e-10),
        BMRMClassifier(1e-2, loss="log_loss", tol=1e-10),
        BMRMClassifier(1e-2, loss="roc_area_log", tol=1e-10),
        OnlineLBFGSClassifier(random_state=0),
    ],
    ids=str,
)
@pytest.mark.parametrize("names", [["d", "c", "b", "a"], ["b", "a"]])
def test_names_that_the_alphabet_reverses(model, names):
    X, codes = grades(n_classes=len(names))
    plain = clone(model).fit(X, codes)
    named = clone(model).fit(X, np.array(names)[codes])
    one, other = plain.decision_function(X), named.decision_function(X)
    if len(names) == 2:
        other = -other
    else:
        # Softmax scores have a common constant, which the penalty may leave open.
        one, other = (z - z.mean(axis=1, keepdims=True) for z in (one, other[:, ::-1]))
    share = 0.3 if isinstance(model, OnlineLBFGSClassifier) else 2e-3
    assert_allclose(one, other, atol=share * np.abs(one).max())
    # Hinges leave exact ties between classes.
    gaps = np.abs(one) if len(names) == 2 else np.diff(np.sort(one, axis=1))[:, -1]
    clear = gaps > 2.0 * share * np.abs(one).max()
    assert_array_equal(
        np.array(names)[plain.predict(X)][clear], named.predict(X)[clear]
    )

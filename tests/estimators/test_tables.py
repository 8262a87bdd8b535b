"""Tables as users have them: types of columns, names of rows, other libraries.

What is read is what the table says, or an error; never numbers of another meaning.
"""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import is_classifier, is_outlier_detector, is_regressor
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.model_selection import GroupKFold

import sklearn_subqn
from sklearn_subqn import (
    BMRMClassifier,
    BMRMRegressor,
    BMRMRegressorCV,
    LinearChainCRF,
    MulticlassHingeClassifier,
    OnlineLBFGSClassifier,
    OnlineLBFGSRegressor,
    RowBlocks,
    SubLBFGSLinearSVC,
    SubLBFGSLinearSVCCV,
    dual_gap,
    linear_model,
    ranking,
    svm,
)

# Without rows of numbers, one to each sample.
OTHERS = ("StructuredSVM", "ConditionalRandomField", "LinearChainCRF")

RNG = np.random.default_rng(0)
CITIES, PLANS = RNG.choice([*"pqr"], 60), RNG.choice([*"xy"], 60)
SPARSE = pd.get_dummies(pd.DataFrame({"city": CITIES, "plan": PLANS}), sparse=True)
DENSE = SPARSE.astype(float).to_numpy()
COUNTS = 1.0 + RNG.poisson(np.exp(DENSE[:, 0]))
LABELS = (COUNTS > 2.0).astype(int)


def kinds():
    """Every public kind of estimator of rows of numbers."""
    for module in (sklearn_subqn, linear_model, ranking, svm):
        for name in module.__all__:
            kind = getattr(module, name)
            if inspect.isclass(kind) and hasattr(kind, "fit") and name not in OTHERS:
                yield pytest.param(kind, id=f"{module.__name__}.{name}")


each_kind = pytest.mark.parametrize("Kind", list(kinds()))


def fitted(Kind, X, y=None, labels=LABELS, **others):
    """Fit with targets of the kind; of rankers all rows are one query, or a pair."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Searches of classifiers over default grids keep the units of sparse features.
        model = Kind(alphas=[1e-2, 1e-3]) if hasattr(Kind, "alphas") else Kind()
        if "group" in inspect.signature(model.fit).parameters:
            several = "qid" in inspect.signature(model.fit).parameters
            others["group"] = np.full(6, 10) if several else [len(DENSE)]
        if y is None and not is_outlier_detector(model):
            y = labels if is_classifier(model) or "group" in others else COUNTS
        return model.fit(X, y, **others)


@each_kind
def test_sparse_booleans_are_numbers(Kind):
    model, expected = fitted(Kind, SPARSE), fitted(Kind, DENSE)
    assert_allclose(model.coef_, expected.coef_, rtol=1e-2, atol=2e-3)
    found = model.predict(SPARSE)
    assert_allclose(found, expected.predict(DENSE), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.float32, np.float64])
def test_sparse_columns_of_each_type(dtype):
    X = pd.DataFrame(DENSE).astype(pd.SparseDtype(dtype, dtype(0)))
    model = BMRMRegressor(tol=1e-8).fit(X, COUNTS)
    expected = BMRMRegressor(tol=1e-8).fit(DENSE, COUNTS)
    assert_allclose(model.coef_, expected.coef_, rtol=1e-3)


@each_kind
def test_sparse_columns_of_several_types(Kind):
    types = {"city_p": np.int8, "plan_x": np.float32, "plan_y": np.float64}
    X = SPARSE.astype({k: pd.SparseDtype(of, of(0)) for k, of in types.items()})
    model, expected = fitted(Kind, X), fitted(Kind, DENSE)
    assert_allclose(model.coef_, expected.coef_, rtol=1e-2, atol=2e-3)
    found = model.predict(X)
    assert_allclose(found, expected.predict(DENSE), rtol=1e-2, atol=1e-2)


def test_sparse_booleans_in_streams_blocks_and_chains():
    stream = OnlineLBFGSRegressor().partial_fit(SPARSE, COUNTS)
    assert_allclose(
        stream.coef_, OnlineLBFGSRegressor().partial_fit(DENSE, COUNTS).coef_, rtol=1e-6
    )
    tight = SubLBFGSLinearSVC(tol=1e-6, loss="squared_hinge")
    whole = sklearn.clone(tight).fit(DENSE, LABELS)
    halves = [slice(0, 30), slice(30, 60)]
    blocks = RowBlocks([lambda s=s: (SPARSE.iloc[s], LABELS[s]) for s in halves])
    found = sklearn.clone(tight).fit(blocks)
    assert found.objective_ == pytest.approx(whole.objective_, rel=1e-5)
    lengths, tags = [20, 40], LABELS.astype(str)
    chain = LinearChainCRF().fit(SPARSE, tags, lengths=lengths)
    same = LinearChainCRF().fit(DENSE, tags, lengths=lengths)
    assert chain.objective_ == pytest.approx(same.objective_, rel=1e-2)


def test_other_fill_values_are_refused_with_what_to_do():
    X = SPARSE.astype(pd.SparseDtype(float, 1.0))
    with pytest.raises(ValueError, match=r"fill value 0.*'city_p'.*sparse.to_dense"):
        SubLBFGSLinearSVC().fit(X, LABELS)
    SubLBFGSLinearSVC().fit(X.sparse.to_dense(), LABELS)


DAYS = RNG.integers(1, 2000, 60)
SPANS = DAYS.astype("timedelta64[D]").astype("timedelta64[ns]")
TIMES = np.datetime64("2020-01-01", "ns") + SPANS
TABLES_OF_TIMES = {
    "durations": pd.DataFrame({"since": SPANS}),
    "dates": pd.DataFrame({"when": TIMES}),
    "zone": pd.DataFrame({"when": pd.DatetimeIndex(TIMES, tz="UTC")}),
    "periods": pd.DataFrame({"when": pd.DatetimeIndex(TIMES).to_period("D")}),
    "categories": pd.DataFrame({"when": pd.Categorical(TIMES)}),
    "some": pd.DataFrame({"x": COUNTS, "since": SPANS}),
    "polars": pl.DataFrame({"since": SPANS}),
    "array": SPANS[:, np.newaxis],
    "array of objects": np.array([[each] for each in SPANS], dtype=object),
    "lists": [[each] for each in SPANS],
    "lists of Python's": [[each] for each in SPANS.astype("timedelta64[us]").tolist()],
    "frame of objects": pd.DataFrame({"since": pd.Series([*SPANS], dtype=object)}),
    "frame of Python's": pd.DataFrame(
        {"when": TIMES.astype("datetime64[D]").tolist()}, dtype=object
    ),
}


@pytest.mark.parametrize("form", TABLES_OF_TIMES)
def test_times_are_no_numbers(form):
    X = TABLES_OF_TIMES[form]
    with pytest.raises(TypeError, match=r"^X must be numbers.*dates or times"):
        BMRMRegressor().fit(X, COUNTS)
    model = BMRMRegressor().fit(DAYS[:, np.newaxis], COUNTS)
    if np.shape(X)[1] == 1 and not hasattr(X, "columns"):
        with pytest.raises(TypeError, match=r"^X must be numbers.*dates or times"):
            model.predict(X)


@each_kind
def test_times_are_no_numbers_of_any_estimator(Kind):
    with pytest.raises(TypeError, match="There are dates or times in 'since'"):
        fitted(Kind, TABLES_OF_TIMES["durations"])


def test_times_of_arrow_are_no_numbers():
    pytest.importorskip("pyarrow")
    X = TABLES_OF_TIMES["dates"].astype("timestamp[us][pyarrow]")
    with pytest.raises(TypeError, match="There are dates or times in 'when'"):
        BMRMRegressor().fit(X, COUNTS)


def test_times_in_streams_and_blocks():
    X = TABLES_OF_TIMES["durations"]
    with pytest.raises(TypeError, match="dates or times in 'since'"):
        OnlineLBFGSClassifier().partial_fit(X, LABELS, classes=[0, 1])
    with pytest.raises(TypeError, match="dates or times in 'since'"):
        BMRMClassifier().fit(RowBlocks([lambda: (X, LABELS)]))


def test_objects_that_are_no_numbers():
    X = pd.DataFrame({"x": COUNTS, "bins": pd.cut(DAYS, 5)})
    with pytest.raises(TypeError, match=r"^X must be numbers.*Interval'. See 'bins'"):
        BMRMRegressor().fit(X, COUNTS)
    with pytest.raises(TypeError, match=r"^y must be numbers.*Interval'.$"):
        BMRMRegressor().fit(DENSE, list(X["bins"]))


def test_times_in_targets_that_are_predicted():
    for model in (
        BMRMRegressor(),
        BMRMRegressor(loss="poisson"),
        BMRMRegressor(loss="quantile", quantile=[0.2, 0.8]),
        OnlineLBFGSRegressor(),
    ):
        model.fit(DENSE, COUNTS)
        for times in (SPANS, pd.Series(SPANS), [*SPANS]):
            with pytest.raises(TypeError, match=r"^y must be numbers, got .*a time"):
                model.score(DENSE, times)


def test_durations_are_no_values_of_attributes():
    X = [[{"since": np.timedelta64(1, "ns")}, {"since": 1.0}]] * 3
    with pytest.raises(TypeError, match="values must be strings, numbers"):
        LinearChainCRF().fit(X, [["A", "B"]] * 3)


def test_times_in_targets_and_weights():
    objects = np.empty(60, dtype=object)
    objects[:] = list(SPANS)
    for times in (SPANS, pd.Series(SPANS), objects):
        for Kind in (BMRMRegressor, OnlineLBFGSRegressor, BMRMRegressorCV):
            with pytest.raises(TypeError, match=r"^y must be numbers, got .*a time"):
                Kind().fit(DENSE, times)
    for times in (SPANS, pd.Series(SPANS)):
        with pytest.raises(TypeError, match=r"^sample_weight must be numbers"):
            SubLBFGSLinearSVC().fit(DENSE, LABELS, times)


IDS = np.array([2**53, 2**53 + 1, 2**53 + 4])
CODES = np.arange(60) % 3
FAR = RNG.normal(size=(60, 2)) + 3.0 * np.eye(3)[CODES, :2]
FORMS = {
    "Int64": lambda y: pd.Series(y, dtype="Int64"),
    "array": lambda y: pd.array(y, dtype="Int64"),
    "UInt64": lambda y: pd.Series(y, dtype="UInt64"),
    "arrow": lambda y: pd.Series(y, dtype="int64[pyarrow]"),
    "frame": lambda y: pd.Series(y, dtype="Int64").to_frame(),
    "category": lambda y: pd.Categorical(pd.array(y, dtype="Int64")),
    "polars": pl.Series,
    "list": lambda y: y.tolist(),
}


@pytest.mark.filterwarnings("ignore:A column-vector")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "model",
    [
        SubLBFGSLinearSVC(),
        MulticlassHingeClassifier(),
        OnlineLBFGSClassifier(),
        SubLBFGSLinearSVCCV(alphas=[1e-2], cv=3),
        BMRMClassifier(),
        linear_model.LogisticRegression(),
        linear_model.LogisticRegressionCV(Cs=[1.0], cv=3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_large_numbers_are_different_classes(model, form):
    if form == "arrow":
        pytest.importorskip("pyarrow")
    y = IDS[CODES]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", FutureWarning)
        found = sklearn.clone(model).fit(FAR, FORMS[form](y))
    assert_array_equal(found.classes_, IDS)
    assert found.classes_.dtype.kind in "iu"
    # Neighbors among the labels are not taken for one another in scores, either.
    right = np.mean(found.predict(FAR) == y)
    assert found.score(FAR, FORMS[form](y)) == pytest.approx(right)
    assert found.score(FAR, FORMS[form](IDS[[1, 0, 2]][CODES])) < right / 2.0


def test_labels_that_no_array_holds_are_refused():
    labels = [2**63 + 5, 2**63 + 6, -1]
    y = [labels[code] for code in CODES]
    with pytest.raises(ValueError, match=r"9223372036854775813 would become 9\.22"):
        MulticlassHingeClassifier().fit(FAR, y)
    with pytest.raises(ValueError, match="classes has labels of types"):
        OnlineLBFGSClassifier().partial_fit(FAR, CODES, classes=labels)
    with pytest.raises(ValueError, match="1 would become '1'"):
        MulticlassHingeClassifier().fit(FAR, [[1, "1", "a"][code] for code in CODES])
    with pytest.raises(ValueError, match="y has labels of types"):
        LinearChainCRF().fit(FAR, y, lengths=[60])
    # Texts beside numbers are texts, where that keeps them apart.
    mixed = MulticlassHingeClassifier().fit(FAR, [[1, 2, "a"][code] for code in CODES])
    assert mixed.classes_.tolist() == ["1", "2", "a"]


def test_labels_of_blocks_are_not_confused():
    signed, unsigned = np.array([-1, 7]), np.array([2**63 + 5, 2**63 + 6], np.uint64)

    def blocks(*labels):
        X = [FAR[:30], FAR[30:]]
        y = [np.resize(each, 30) for each in labels]
        return RowBlocks([lambda i=i: (X[i], y[i]) for i in (0, 1)])

    with pytest.raises(ValueError, match="y has labels of types"):
        BMRMClassifier().fit(blocks(signed, unsigned))
    with pytest.raises(ValueError, match="1 would become '1'"):
        BMRMClassifier().fit(blocks(np.array([1, 2]), np.array(["1", "2"])))
    near = np.array([2**53, 2**53 + 1], np.uint64)
    model = BMRMClassifier().fit(blocks(near.astype(np.int64), near))
    assert model.classes_.tolist() == near.tolist()


NAMED = pd.DataFrame(DENSE, columns=SPARSE.columns, index=[f"r{i}" for i in range(60)])
WEIGHTS = pd.Series(RNG.random(60) + 0.1, index=NAMED.index)


@each_kind
def test_weights_of_other_rows_are_refused(Kind):
    if "sample_weight" not in inspect.signature(Kind.fit).parameters:
        pytest.skip("takes no weights")
    weights = pd.Series(np.ones(60), index=NAMED.index)
    fitted(Kind, NAMED, sample_weight=weights)
    for other in (weights[::-1], weights.set_axis(range(60, 120))):
        with pytest.raises(ValueError, match="sample_weight has another index than X"):
            fitted(Kind, NAMED, sample_weight=other)


def test_rows_without_names_are_taken_in_their_order():
    model = BMRMRegressor(tol=1e-6)
    right = model.fit(NAMED, COUNTS, WEIGHTS).objective_
    plain = WEIGHTS.to_numpy()
    for X, weights in [
        (DENSE, WEIGHTS),
        (DENSE, WEIGHTS[::-1].to_numpy()[::-1]),
        (NAMED, pd.Series(plain)),
        (NAMED.reset_index(drop=True), WEIGHTS),
        # Drawn with replacement, and not numbered anew.
        (pd.DataFrame(DENSE), pd.Series(plain, index=np.arange(60) // 2)),
    ]:
        assert model.fit(X, COUNTS, weights).objective_ == pytest.approx(right)
    # The numbers of rows in another order are names.
    with pytest.raises(ValueError, match="another index than X"):
        model.fit(pd.DataFrame(DENSE), COUNTS, pd.Series(plain)[::-1])


def test_what_else_is_given_by_rows_has_their_names():
    offset = pd.Series(np.zeros(60), index=NAMED.index)
    other = offset[::-1]
    counts = pd.Series(COUNTS, index=NAMED.index)[::-1]
    match = "has another index than X"
    model = BMRMRegressor().fit(NAMED, COUNTS, offset=offset)
    classifier = BMRMClassifier().fit(NAMED, LABELS, offset=offset)
    cv = GroupKFold(2)
    stream = OnlineLBFGSRegressor()
    calls = [
        lambda: BMRMRegressor().fit(NAMED, COUNTS, offset=other),
        lambda: BMRMRegressor().fit(NAMED, counts),
        lambda: BMRMRegressorCV([0.1]).fit(NAMED, counts),
        lambda: model.score(NAMED, counts),
        lambda: dual_gap(model, NAMED, counts),
        lambda: classifier.fit(NAMED, counts > 0),
        lambda: classifier.score(NAMED, counts > 0),
        lambda: stream.partial_fit(NAMED, counts),
        lambda: model.predict(NAMED, offset=other),
        lambda: model.score(NAMED, COUNTS, offset=other),
        lambda: model.score(NAMED, COUNTS, other),
        lambda: BMRMRegressorCV([0.1], cv=2).fit(NAMED, COUNTS, offset=other),
        lambda: BMRMRegressorCV([0.1], cv=cv).fit(NAMED, COUNTS, groups=other),
        lambda: SubLBFGSLinearSVCCV([0.1], cv=cv).fit(NAMED, LABELS, groups=other),
        lambda: linear_model.LogisticRegressionCV(cv=cv).fit(
            NAMED, LABELS, groups=other
        ),
        lambda: BMRMClassifier().fit(NAMED, LABELS, offset=other),
        lambda: classifier.predict_proba(NAMED, offset=other),
        lambda: classifier.score(NAMED, LABELS, other),
        lambda: classifier.score(NAMED, LABELS, offset=other),
        lambda: SubLBFGSLinearSVC().fit(NAMED, LABELS).score(NAMED, LABELS, other),
        lambda: stream.partial_fit(NAMED, COUNTS, sample_weight=other),
        lambda: dual_gap(model, NAMED, COUNTS, other, estimator=BMRMRegressor()),
        lambda: dual_gap(model, NAMED, COUNTS, offset=other, estimator=BMRMRegressor()),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=match):
            call()


@pytest.mark.parametrize("Kind", [BMRMRegressor, OnlineLBFGSRegressor])
def test_columns_with_missing_values_are_named(Kind):
    table = NAMED.copy()
    table.iloc[3, 1] = np.nan
    table.iloc[4, 2] = np.inf
    names = f"{NAMED.columns[1]}, {NAMED.columns[2]}"
    for X, columns in (
        (table, names),
        (table.to_numpy(), "1, 2"),
        (sparse.csr_array(table.to_numpy()), "1, 2"),
    ):
        with pytest.raises(ValueError, match=rf"Columns: {columns}\.$"):
            Kind().fit(X, COUNTS)


@pytest.mark.parametrize("Kind", [BMRMRegressor, OnlineLBFGSRegressor])
def test_starts_and_scales_by_names(Kind):
    ours = NAMED.iloc[:, :3]
    coef = pd.Series([1.0, 2.0, 3.0], index=ours.columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # A stream remembers where it began; a batch fit says so in its history.
        right = Kind(max_iter=1).fit(ours, COUNTS, coef_init=coef.to_numpy())
        found = Kind(max_iter=1).fit(ours, COUNTS, coef_init=coef[::-1])
    assert_array_equal(found.coef_, right.coef_)
    if Kind is BMRMRegressor:
        first = found.history_[0].objective[0]
        assert first == right.history_[0].objective[0] > found.objective_ + 1.0
    with pytest.raises(ValueError, match="names on the index of coef_init do not"):
        Kind().fit(ours, COUNTS, coef_init=coef.set_axis([*"abc"]))
    with pytest.raises(ValueError, match="intercept_init has names on its index"):
        Kind().fit(ours, COUNTS, intercept_init=pd.Series({"a": 1.0}))
    scale = ours.std() * [1.0, 5.0, 25.0]
    expected = found.coef_table(scale=scale.to_numpy())
    pd.testing.assert_frame_equal(found.coef_table(scale=scale[::-1]), expected)
    with pytest.raises(ValueError, match="names on the index of scale do not match"):
        found.coef_table(scale=NAMED.std())


def test_columns_of_starts_are_features():
    start = pd.DataFrame(np.arange(15.0).reshape(3, 5), columns=NAMED.columns)
    model = BMRMClassifier()
    right = model.fit(NAMED, CODES, coef_init=start.to_numpy()).history_
    found = model.fit(NAMED, CODES, coef_init=start.iloc[:, ::-1]).history_
    other = model.fit(NAMED, CODES, coef_init=start.to_numpy()[:, ::-1]).history_
    for ours, theirs, others in zip(found, right, other, strict=True):
        assert ours.objective[0] == theirs.objective[0] != others.objective[0]
    with pytest.raises(ValueError, match="coef_init has names on its rows"):
        model.fit(NAMED, CODES, coef_init=start.set_axis([*"abc"]))


def test_coefficients_of_other_trainers_by_names():
    class Trained(sklearn.base.BaseEstimator):
        def fit(self, X, y):
            self.coef_, self.intercept_ = None, 0.0
            return self

    trained = Trained().fit(NAMED, COUNTS)
    trained.coef_ = pd.Series(np.arange(5.0), index=NAMED.columns)
    right = dual_gap(trained, NAMED, COUNTS, estimator=BMRMRegressor())
    trained.coef_ = trained.coef_[::-1]
    found = dual_gap(trained, NAMED, COUNTS, estimator=BMRMRegressor())
    assert found == pytest.approx(right, rel=1e-12)


EQUAL = [
    ("poisson", 0.0, "nan"),
    ("poisson", 2.0, "-inf"),
    ("gamma", 0.1, "-inf"),
    ("tweedie", 0.0, "nan"),
    ("tweedie", 0.3, "-inf"),
]


@pytest.mark.parametrize(("loss", "value", "expected"), EQUAL)
def test_deviance_of_equal_targets(loss, value, expected):
    """As of scikit-learn's generalized linear models."""
    model = BMRMRegressor(loss=loss).fit(DENSE, COUNTS)
    y = np.full(50, value)
    for weights in (None, np.arange(50.0)):
        with pytest.warns(UndefinedMetricWarning, match=f"D² is {expected}"):
            score = model.score(DENSE[:50], y, weights)
        assert str(score) == expected
    y = np.append(y, 5.0)
    with pytest.warns(UndefinedMetricWarning):
        assert str(model.score(DENSE[:51], y, np.arange(51) < 50)) == expected
    assert np.isfinite(model.score(DENSE[:51], y))


def test_deviance_of_equal_targets_in_other_scores():
    models = OnlineLBFGSRegressor(loss="poisson"), linear_model.PoissonRegressor()
    for model in models:
        model.fit(DENSE, COUNTS)
        with pytest.warns(UndefinedMetricWarning):
            assert np.isnan(model.score(DENSE, np.zeros(60)))
    blocks = RowBlocks([lambda: (DENSE, np.zeros(60))])
    with pytest.warns(UndefinedMetricWarning):
        assert np.isnan(BMRMRegressor(loss="poisson").fit(DENSE, COUNTS).score(blocks))


@each_kind
def test_arrays_of_other_libraries(Kind):
    strict = pytest.importorskip("array_api_strict")
    X, ones = strict.asarray(DENSE), strict.ones(60)
    expected = fitted(Kind, DENSE)
    takes_weights = "sample_weight" in inspect.signature(Kind.fit).parameters
    given = {"sample_weight": ones} if takes_weights else {}
    of_times = "strata" in inspect.signature(Kind.fit).parameters
    y = COUNTS if is_regressor(expected) or of_times else LABELS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fitted(Kind, X, strict.asarray(y), **given)
    assert isinstance(model.coef_, np.ndarray)
    assert_allclose(model.coef_, expected.coef_, rtol=1e-9, atol=1e-12)
    assert_array_equal(model.predict(X), expected.predict(DENSE))
    if hasattr(model, "score") and not is_outlier_detector(model):
        queries = {"group": [60]} if hasattr(model, "n_queries_") else {}
        score = expected.score(DENSE, y, np.ones(60), **queries)
        y = strict.asarray(y)
        assert model.score(X, y, ones, **queries) == pytest.approx(score)


def test_arrays_where_scikit_learn_dispatches():
    """SciPy's switch has to be set before the first import."""
    done = subprocess.run(
        [
            sys.executable,
            "-P",
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            f"{__file__}::test_arrays_of_other_libraries",
        ],
        env={**os.environ, "SCIPY_ARRAY_API": "1", "SUBQN_TEST_DISPATCH": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.fixture(autouse=True)
def dispatch():
    """Dispatch by scikit-learn in the process that the test above starts."""
    on = "SUBQN_TEST_DISPATCH" in os.environ
    with sklearn.config_context(array_api_dispatch=on):
        yield

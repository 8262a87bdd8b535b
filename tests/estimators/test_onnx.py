"""Conversion to ONNX: what runs is the same model."""

from __future__ import annotations

import ast
import copy
import doctest
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_diabetes, load_iris
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_subqn import (
    BMRMClassifier,
    BMRMOutlierDetector,
    BMRMRanker,
    BMRMRegressor,
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
    OnlineLBFGSClassifier,
    SubLBFGSLinearSVC,
)
from sklearn_subqn.linear_model import LogisticRegression, PoissonRegressor
from sklearn_subqn.svm import LinearSVC

X, THREE = load_iris(return_X_y=True)
X = X + 0.01 * np.random.default_rng(0).normal(size=X.shape)
TWO = np.where(THREE == 1, "versicolor", "other")
AMOUNTS = np.exp(X[:, 0] - X[:, 3])

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*reached max_iter"),
    # Of the converters.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


def test_what_to_install_is_said_where_it_is_missing():
    code = (
        "import sys; sys.modules['skl2onnx'] = None\n"
        "try: import sklearn_subqn.onnx\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert 'pip install "sklearn-subqn[onnx]"' in done.stdout


@pytest.fixture
def run():
    """From models and rows to the outputs of the converted model."""
    skl2onnx = pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("sklearn_subqn.onnx")

    def outputs(model, rows=X, **options):
        graph = skl2onnx.to_onnx(
            model, rows[:1], options={id(model): options} if options else None
        )
        session = runtime.InferenceSession(
            graph.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        return session.run(None, {session.get_inputs()[0].name: rows})

    return outputs


CLASSIFIERS = [
    SubLBFGSLinearSVC(),
    LinearSVC(),
    MulticlassHingeClassifier(),
    LogisticRegression(),
    BMRMClassifier(),
    BMRMClassifier(loss="modified_huber", alpha=1e-2),
    OnlineLBFGSClassifier(max_iter=3),
]


@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=repr)
def test_classifiers(run, estimator, y):
    model = estimator.fit(X, y)
    scores = hasattr(model, "predict_proba")
    rows = X if scores else X.astype(np.float32)
    labels, outputs = run(model, rows, **({"zipmap": False} if scores else {}))
    assert_array_equal(labels, model.predict(rows))
    if scores:
        assert_allclose(outputs, model.predict_proba(rows), rtol=1e-6, atol=1e-9)
    else:
        expected = model.decision_function(rows)
        assert_allclose(outputs.reshape(expected.shape), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (BMRMRegressor(loss="squared_error"), AMOUNTS),
        (BMRMRegressor(loss="absolute_error"), np.column_stack([AMOUNTS, X[:, 1]])),
        (BMRMRegressor(loss="gamma"), AMOUNTS),
        (BMRMRegressor(loss="poisson"), np.column_stack([AMOUNTS, X[:, 1]])),
        (PoissonRegressor(), AMOUNTS),
    ],
    ids=["squares", "absolute", "gamma", "poisson", "drop-in"],
)
def test_regressors(run, estimator, y):
    model = estimator.fit(X, y)
    (outputs,) = run(model)
    expected = model.predict(X)
    assert_allclose(outputs.reshape(expected.shape), expected, rtol=1e-9)


def test_rankers_outlier_detectors_and_labels(run):
    ranker = BMRMRanker().fit(X, np.arange(150) % 3, group=np.full(3, 50))
    assert_allclose(run(ranker)[0].ravel(), ranker.predict(X), rtol=1e-9, atol=1e-12)
    detector = BMRMOutlierDetector(nu=0.1).fit(X)
    labels, scores = run(detector, X.astype(np.float32))
    expected = detector.decision_function(X)
    assert_allclose(scores.ravel(), expected, rtol=1e-4, atol=1e-4)
    inside = np.abs(expected) > 1e-4
    assert_array_equal(labels.ravel()[inside], detector.predict(X)[inside])
    indicators = np.column_stack([THREE == 0, THREE != 1, X[:, 0] > 6.0]).astype(int)
    model = MultilabelHingeClassifier().fit(X, indicators)
    labels = run(model, X.astype(np.float32))[0]
    assert_array_equal(labels, model.predict(X.astype(np.float32)))
    with pytest.raises(ValueError, match="has 2 labels"):
        run(model.fit(X, indicators[:, :2]))


def test_parts_of_other_estimators(run):
    pipeline = make_pipeline(StandardScaler(), BMRMClassifier()).fit(X, THREE)
    labels, outputs = run(pipeline, zipmap=False)
    assert_array_equal(labels, pipeline.predict(X))
    assert_allclose(outputs, pipeline.predict_proba(X), rtol=1e-6)
    rows = X.astype(np.float32)
    _, named = run(pipeline, rows)
    assert sorted(named[0]) == [0, 1, 2]
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2).fit(X, TWO)
    assert_array_equal(run(search, zipmap=False)[0], search.predict(X))
    calibrated = CalibratedClassifierCV(SubLBFGSLinearSVC(), cv=2).fit(X, THREE)
    labels, outputs = run(calibrated, rows, zipmap=False)
    assert_allclose(outputs, calibrated.predict_proba(rows), rtol=1e-4, atol=1e-5)
    rest = OneVsRestClassifier(BMRMClassifier()).fit(X, THREE)
    labels, outputs = run(rest, rows, zipmap=False)
    assert_allclose(outputs, rest.predict_proba(rows), rtol=1e-4, atol=1e-5)


def test_models_without_an_equivalent_say_so(run):
    data = load_diabetes(return_X_y=True)
    model = BMRMRegressor(loss="quantile", quantile=[0.1, 0.9]).fit(*data)
    with pytest.raises(ValueError, match="sorts its quantiles"):
        run(model, data[0])


@pytest.mark.parametrize("by", [id, type])
def test_options_of_users_stay_as_they_are(by):
    """The keys of options say what they are for, and are used for other models."""
    skl2onnx = pytest.importorskip("skl2onnx")
    pytest.importorskip("sklearn_subqn.onnx")
    model = LogisticRegression().fit(X, TWO)
    for each in (model, make_pipeline(StandardScaler(), model).fit(X, TWO)):
        options = {by(model): {"zipmap": False}}
        given = copy.deepcopy(options)
        graphs = [
            skl2onnx.to_onnx(each, X[:1], options=options).SerializeToString()
            for _ in range(2)
        ]
        assert options == given
        assert b"ZipMap" not in graphs[0]
        assert graphs[0].count(b"Normalizer") == graphs[1].count(b"Normalizer")


def test_the_recipe_for_tables_in_the_guide(tmp_path, monkeypatch):
    """Both blocks of the page, on the small file of the page of recipes."""
    for package in ("pandas", "skl2onnx", "onnxruntime"):
        pytest.importorskip(package)
    guide = Path(__file__).parents[2] / "docs" / "guide"
    text = re.search(
        r'"customers.csv"\)\.write_text\("""\\\n(.*?)"""\)',
        _page(guide / "files.md"),
        re.S,
    )
    rows = text.group(1).replace("... ", "")
    monkeypatch.chdir(tmp_path)
    Path("customers.csv").write_text(rows, encoding="utf-8")
    blocks = re.findall(r"```python\n((?!>>>).*?)```", _page(guide / "models.md"), re.S)
    assert len(blocks) == 2
    names = {}
    for block in blocks:
        exec(block, names)
    model, table = names["model"], names["rows"]
    assert_array_equal(names["labels"], model.predict(table))
    assert_allclose(names["probabilities"], model.predict_proba(table), atol=1e-6)


def test_skops_trusts_the_types_that_the_guide_names(tmp_path, monkeypatch):
    skops_io = pytest.importorskip("skops.io")
    pytest.importorskip("pandas")
    guide = Path(__file__).parents[2] / "docs" / "guide"
    monkeypatch.chdir(tmp_path)
    recipe = doctest.DocTestParser().get_examples(_page(guide / "files.md"))
    names = {}
    for example in recipe:
        exec(example.source, names)
        if "model = model.fit" in example.source:
            break
    listed = re.search(r"trusted = (\[.*?\])\n", _page(guide / "models.md"), re.S)
    needed = skops_io.get_untrusted_types(data=skops_io.dumps(names["model"]))
    assert sorted(needed) == sorted(ast.literal_eval(listed.group(1)))


def _page(path):
    return path.read_text(encoding="utf-8")

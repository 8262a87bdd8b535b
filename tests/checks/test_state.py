"""What fitted estimators are stored as: plain types, the same models afterwards."""

from __future__ import annotations

import lzma
import pickle
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from _door import ONLINE_METHODS
from _same import assert_same_predictions
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import InconsistentVersionWarning

from sklearn_subqn import (
    BMRMClassifier,
    BMRMOutlierDetector,
    BMRMRanker,
    BMRMRankerCV,
    BMRMRegressor,
    BMRMRegressorCV,
    CoxRegression,
    CoxRegressionCV,
    L1LogisticOWLQN,
    L1LogisticOWLQNCV,
    LinearChainCRF,
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
    OnlineLBFGSClassifier,
    OnlineLBFGSRegressor,
    SubLBFGSLinearSVC,
    SubLBFGSLinearSVCCV,
    losses,
)
from sklearn_subqn._core.records import stored
from sklearn_subqn.crf import CRF
from sklearn_subqn.linear_model import (
    GammaRegressor,
    HuberRegressor,
    LogisticRegression,
    LogisticRegressionCV,
    PoissonRegressor,
    QuantileRegressor,
    TweedieRegressor,
)
from sklearn_subqn.ranking import Ranker
from sklearn_subqn.svm import LinearSVC, LinearSVR

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*reached max_iter", "ignore:.* fewer than two distinct samples"
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 5))
SCORES = X @ RNG.normal(size=5) + RNG.normal(size=120)
SIGNS = np.where(SCORES > 0.0, "yes", "no")
THIRDS = np.digitize(SCORES, [-1.0, 1.0])
COUNTS = np.abs(SCORES)
GROUP = np.full(12, 10)
TOKENS = [
    [{"word": "the"}, {"word": "dog", "length": 0.3}, {"word": "barks"}],
    [{"word": "a"}, {"word": "cat"}, {"word": "sleeps\n"}],
]
TAGS = [["D", "N", "V"], ["D", "N", "V"]]


def online(solver, **params):
    return OnlineLBFGSClassifier(solver=solver, eta0=1e-3, **params)


FITS = {
    "svm": lambda: SubLBFGSLinearSVC(warm_start=True).fit(X, THIRDS),
    "svm_cv": lambda: SubLBFGSLinearSVCCV(alphas=3, cv=2).fit(X, SIGNS),
    "multiclass": lambda: MulticlassHingeClassifier().fit(X, THIRDS),
    "multilabel": lambda: MultilabelHingeClassifier().fit(X, np.eye(3)[THIRDS]),
    "logistic": lambda: L1LogisticOWLQN().fit(X, SIGNS),
    "logistic_cv": lambda: L1LogisticOWLQNCV(alphas=3, cv=2).fit(X, SIGNS),
    "sparse": lambda: LinearSVC().fit(X, SIGNS).sparsify(),
    "classifier": lambda: BMRMClassifier(loss="ordinal").fit(X, THIRDS),
    "regressor": lambda: BMRMRegressor(loss="quantile", quantile=[0.1, 0.5]).fit(
        X, SCORES
    ),
    "regressor_cv": lambda: BMRMRegressorCV(alphas=3, cv=2).fit(X, SCORES),
    "outliers": lambda: BMRMOutlierDetector(nu=0.2).fit(X),
    "cox": lambda: CoxRegression().fit(X, (COUNTS, SCORES > 0), strata=THIRDS),
    "cox_cv": lambda: CoxRegressionCV(alphas=3, cv=2).fit(X, COUNTS),
    "ranker": lambda: BMRMRanker().fit(X, THIRDS, group=GROUP),
    "ranker_cv": lambda: BMRMRankerCV(alphas=3, cv=2).fit(X, THIRDS, group=GROUP),
    "LinearSVC": lambda: LinearSVC().fit(X, SIGNS),
    "LinearSVR": lambda: LinearSVR().fit(X, SCORES),
    "LogisticRegression": lambda: LogisticRegression().fit(X, SIGNS),
    "LogisticRegressionCV": lambda: LogisticRegressionCV(Cs=3, cv=2).fit(X, SIGNS),
    "QuantileRegressor": lambda: QuantileRegressor(alpha=0.1).fit(X, SCORES),
    "PoissonRegressor": lambda: PoissonRegressor().fit(X, COUNTS),
    "GammaRegressor": lambda: GammaRegressor().fit(X, COUNTS + 0.1),
    "TweedieRegressor": lambda: TweedieRegressor(power=1.5).fit(X, COUNTS),
    "HuberRegressor": lambda: HuberRegressor().fit(X, SCORES),
    "Ranker": lambda: Ranker().fit(X, THIRDS, group=GROUP),
    "crf": lambda: LinearChainCRF(transition_constraints=[("D", "V")]).fit(
        TOKENS, TAGS
    ),
    "crf_stream": lambda: LinearChainCRF(l1_ratio=0.1).partial_fit(
        TOKENS, TAGS, classes=["D", "N", "V"]
    ),
    "CRF": lambda: CRF().fit(TOKENS, TAGS),
    "online_regressor": lambda: OnlineLBFGSRegressor(max_iter=3).fit(X, SCORES),
    "online_sparse": lambda: OnlineLBFGSClassifier().partial_fit(
        sparse.csr_array(X), SIGNS, classes=["no", "yes"]
    ),
    **{
        f"online_{solver}": lambda solver=solver: online(solver).partial_fit(
            X, SIGNS, classes=["no", "yes"]
        )
        for solver in ONLINE_METHODS
    },
    "online_average": lambda: online("sgd", average=True).partial_fit(
        X, SIGNS, classes=["no", "yes"]
    ),
}


@pytest.fixture(scope="module", params=FITS)
def model(request):
    return FITS[request.param]()


def is_plain(value):
    """Whether a value is made of Python's and NumPy's types, and sparse matrices."""
    if isinstance(value, dict):
        return all(map(is_plain, value)) and all(map(is_plain, value.values()))
    if type(value) in (list, tuple):
        return all(map(is_plain, value))
    return value is None or type(value).__module__.split(".")[0] in (
        "builtins",
        "numpy",
        "scipy",
    )


def same(a, b):
    return pickle.dumps(a) == pickle.dumps(b)


def predictions(model):
    if isinstance(model, (CRF, LinearChainCRF)):
        return model.predict(TOKENS), model.predict_marginals(TOKENS)
    return model.predict(X)


def test_attributes_are_stored_as_plain_types(model):
    state = model.__getstate__()
    own = {k: v for k, v in state.items() if not isinstance(v, LinearChainCRF)}
    assert [k for k, v in own.items() if not is_plain(v)] == []


def test_pickles_are_the_same_models(model):
    copy = pickle.loads(pickle.dumps(model))
    assert same(predictions(copy), predictions(model))
    # Stored again, nothing is lost.
    assert same(copy.__getstate__(), pickle.loads(pickle.dumps(copy)).__getstate__())
    for name, value in vars(model).items():
        if name != "_accepted":
            assert type(vars(copy)[name]) is type(value), name
    for ours, theirs in zip(
        getattr(copy, "history_", ()), getattr(model, "history_", ()), strict=True
    ):
        assert ours == theirs
        assert repr(ours) == repr(theirs)


def test_files_of_skops_need_trust_in_public_classes_alone(model):
    skops_io = pytest.importorskip("skops.io")
    data = skops_io.dumps(model)
    needed = skops_io.get_untrusted_types(data=data)
    kind = type(model)
    own = f"{kind.__module__}.{kind.__name__}"
    expected = {own, "sklearn_subqn.crf.LinearChainCRF"} if kind is CRF else {own}
    # Sparse matrices are SciPy's.
    assert {name for name in needed if not name.startswith("scipy.")} == expected
    assert not any(part.startswith("_") for part in own.split("."))
    copy = skops_io.loads(data, trusted=needed)
    assert same(predictions(copy), predictions(model))


def test_files_are_small():
    data = load_breast_cancer(return_X_y=True)
    model = SubLBFGSLinearSVC(solver="alm").fit(*data)
    n_steps = len(model.history_[0])
    assert n_steps > 10
    assert len(pickle.dumps(model)) < 20_000
    # Four numbers of each iteration, and no object for any of them.
    skops_io = pytest.importorskip("skops.io")
    assert len(skops_io.dumps(model)) < 32 * n_steps + 30_000


def test_histories_are_data_frames():
    model = pickle.loads(pickle.dumps(SubLBFGSLinearSVC().fit(X, THIRDS)))
    frame = pd.concat(
        {
            label: pd.DataFrame(vars(h))
            for label, h in zip([0, 1, 2], model.history_, strict=True)
        }
    )
    columns = ["objective", "lower_bound", "passes", "seconds", "phase", "infimum"]
    assert list(frame.columns) == columns
    assert len(frame) == sum(map(len, model.history_))
    assert frame.loc[1].objective.iloc[-1] == model.history_[1].objective[-1]


@pytest.mark.parametrize("l1_ratio", [0.0, 0.3])
def test_pickling_a_stream_of_sequences_changes_nothing(l1_ratio):
    rng = np.random.default_rng(1)
    one = LinearChainCRF(l1_ratio=l1_ratio)
    other = LinearChainCRF(l1_ratio=l1_ratio)
    for t in range(5):
        # Attributes of odd letters, and new ones in each batch.
        words = [f"w{w}\n\udc80é{t * (w > 5)}" for w in rng.integers(0, 10, size=40)]
        batch = [[{"word": w} for w in words[i : i + 4]] for i in range(0, 40, 4)]
        tags = [["A" if "w1" in d["word"] else "B" for d in s] for s in batch]
        one.partial_fit(batch, tags, classes=["A", "B"])
        other.partial_fit(batch, tags, classes=["A", "B"])
        other = pickle.loads(pickle.dumps(other))
    assert dict(one.state_features_) == dict(other.state_features_)
    assert one.transition_features_ == other.transition_features_


def test_numbers_and_names_of_classes_stay_what_they_were():
    copy = pickle.loads(pickle.dumps(SubLBFGSLinearSVC(alpha=0.1).fit(X, SIGNS)))
    assert copy.get_params() == SubLBFGSLinearSVC(alpha=0.1).get_params()
    assert_array_equal(copy.classes_, ["no", "yes"])
    for history in copy.history_:
        assert {type(v) for v in history.lower_bound} == {float}


@pytest.mark.parametrize(
    "name", ["_core.solvers.run.run", "_state.plain", "Solution", "Histories", ""]
)
def test_records_that_are_none_are_refused(name):
    state = SubLBFGSLinearSVC().fit(X, SIGNS).__getstate__()
    (history,) = state["history_"]
    history["sklearn_subqn kind"] = name
    with pytest.raises(ValueError, match="Load it with the version that stored it"):
        SubLBFGSLinearSVC().__setstate__(state)


def test_models_stored_before_files_were_moved_are_read():
    pytest.importorskip("numpy._core", reason="the models were stored by NumPy 2")
    # What each of FITS was on the 27th of November 2026, and what it predicted.
    path = Path(__file__).parents[1] / "data" / "models_of_2026_11.pickle.xz"
    kept = pickle.loads(lzma.decompress(path.read_bytes()))
    assert len(kept) == 40
    for name, (data, expected) in kept.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InconsistentVersionWarning)
            model = pickle.loads(data)
        for ours, theirs in zip(predictions(model), expected, strict=True):
            # Labelings of sequences are lists, which may be of one length.
            ours, theirs = (np.asarray(np.asarray(v).tolist()) for v in (ours, theirs))
            # Numbers of streams were rounded to 2e-12 of their terms at that time.
            assert_same_predictions(ours, theirs, name, tol=1e-10)


def test_records_have_names_of_their_own():
    with pytest.raises(ValueError, match="two records of the name 'History'"):
        stored(type("History", (), {}))


LOSSES = [
    losses.RocArea(),
    losses.SquaredRocArea(),
    losses.LogisticRocArea(),
    losses.PrecisionAtK(50),
    losses.OrderedPairs(),
    losses.Ndcg(k=5),
    losses.Inversions(losses.Ndcg(k=5)),
]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_losses_do_not_keep_the_data_of_fits(loss):
    rows = RNG.normal(size=(2000, 3))
    y = (rows[:, 0] > RNG.normal(size=2000)).astype(int)
    if isinstance(loss, (losses.Ndcg, losses.Inversions)):
        model = BMRMRegressor(loss=loss, max_iter=20).fit(rows, y)
    else:
        model = BMRMClassifier(loss=loss, max_iter=20).fit(rows, y)
    data = pickle.dumps(model)
    assert len(data) < 2000 * 8
    copy = pickle.loads(data)
    assert_array_equal(copy.predict(rows), model.predict(rows))
    args = rows[:, 0].copy(), np.where(y > 0, 1.0, -1.0), np.full(2000, 1 / 2000)
    assert copy.loss.value(*args) == pickle.loads(data).loss.value(*args)

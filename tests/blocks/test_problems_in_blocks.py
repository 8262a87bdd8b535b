"""Bounds, free features, offsets and categories in blocks: the optimum of memory."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone

from sklearn_subqn import (
    BMRMClassifier,
    BMRMRegressor,
    BMRMRegressorCV,
    RowBlocks,
    dual_gap,
)
from sklearn_subqn.exceptions import MissingOffsetWarning
from sklearn_subqn.inference import fit_statistics

N, D, TOL = 180, 8, 1e-6
PAIRS = np.arange(D) // 2
LOSSES = {
    "squared_error": BMRMRegressor,
    "poisson": BMRMRegressor,
    "absolute_error": BMRMRegressor,
    "log_loss": BMRMClassifier,
    "hinge": BMRMClassifier,
}
FREE = np.array([0.0, 1.0, 2.0, 0.0, 1.0, 1.0, 0.5, 1.0])
KINDS = {
    "group, positive": {"penalty": "group", "groups": PAIRS, "positive": True},
    "sparse group, signs": {
        "penalty": "sparse_group",
        "groups": PAIRS,
        "coef_bounds": (None, np.where(np.arange(D) < 3, 0.0, np.inf)),
    },
    "group, free": {"penalty": "group", "groups": PAIRS, "penalty_factor": FREE[:4]},
    "group, free and positive": {
        "penalty": "group_elasticnet",
        "groups": PAIRS,
        "penalty_factor": FREE[:4],
        "positive": True,
    },
    "L2, free": {"penalty_factor": FREE},
    "L1, free": {"penalty": "l1", "penalty_factor": FREE},
    "L2, bounds": {"coef_bounds": (-0.1, 0.2)},
    "L2, constraints": {"coef_constraints": (np.tri(3, D), np.full(3, 0.1))},
    "no penalty": {"alpha": 0.0},
    "no penalty, positive": {"alpha": 0.0, "positive": True},
    "L2, automatic": {"alpha": "auto", "penalty_factor": FREE},
}
OFFSETS = {"offset, L2": {}, "offset, group": {"penalty": "group", "groups": PAIRS}}


def data(loss):
    """Return sparse X with a constant shift in a column, y, weights and offsets."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.6)
    X[:, 4] = 30.0 + X[:, 4]
    z = X[:, 0] - X[:, 1] + 0.5 * X[:, 2] + rng.normal(size=N)
    y = {"poisson": rng.poisson(np.exp(np.clip(z, -2, 2)))}.get(loss, z)
    y = (y > 0).astype(int) if LOSSES[loss] is BMRMClassifier else y
    return X, y, rng.integers(0, 3, size=N), rng.normal(size=N) / 2


def assert_same_optimum(model, whole):
    assert model.objective_ - model.dual_gap_ <= whole.objective_ * (1 + 1e-13)
    assert whole.objective_ - whole.dual_gap_ <= model.objective_ * (1 + 1e-13)
    assert_allclose(model.objective_, whole.objective_, rtol=1e-7)
    allowed = max(1.01 * whole.dual_gap_, TOL * abs(model.objective_))
    assert model.dual_gap_ <= allowed


# Absolute errors and hinges have loose bounds for free features beside an L1 norm.
@pytest.mark.filterwarnings("ignore:Fitting:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", [*KINDS, *OFFSETS])
def test_blocks_have_the_optimum_of_memory(kind, loss):
    """Also for sparse blocks in another order, with weights in place of equal rows."""
    if kind in OFFSETS and loss == "hinge":
        pytest.skip("the hinge takes no offsets")
    if (kind, loss) == ("no penalty, positive", "absolute_error"):
        pytest.skip("fits in memory do not reach the tolerance")
    X, y, weights, offset = data(loss)
    given = {"alpha": 0.03, "loss": loss, "tol": TOL, **(KINDS | OFFSETS)[kind]}
    rows = np.repeat(np.arange(N), weights)
    added = {"offset": offset[rows]} if kind in OFFSETS else {}
    whole = LOSSES[loss](**given).fit(X[rows], y[rows], **added)
    if kind == "L2, automatic":
        # Classifiers of data in memory choose a multiple of this strength.
        given["alpha"] = whole.alpha_
        given["penalty_factor"] = whole.penalty_factor_
    order = np.random.default_rng(0).permutation(N)
    added = {"offset": offset[order]} if kind in OFFSETS else {}
    blocks = RowBlocks(
        [sparse.csr_array(X[order][a : a + 50]) for a in range(0, N, 50)],
        y[order],
        weights[order],
    )
    model = LOSSES[loss](**given).fit(blocks, **added)
    assert_same_optimum(model, whole)
    if given.get("positive"):
        assert model.coef_.min() >= 0.0
    again = clone(model).fit(
        RowBlocks(X[rows], y[rows], block_size=70),
        **({"offset": offset[rows]} if added else {}),
    )
    assert_same_optimum(again, whole)


def test_automatic_strengths_with_free_features():
    X, y, weights, offset = data("poisson")
    for given in ({"penalty_factor": FREE}, KINDS["group, free"]):
        model = BMRMRegressor(loss="poisson", tol=TOL, **given)
        whole = clone(model).fit(X, y, weights, offset=offset)
        model.fit(RowBlocks(X, y, weights, block_size=50), offset=offset)
        assert_allclose(model.alpha_, whole.alpha_, rtol=1e-10)
        assert_allclose(model.penalty_factor_, whole.penalty_factor_, rtol=1e-10)
        assert_same_optimum(model, whole)


def frames():
    """Return a frame of dummies and numbers; the first rows of numbers are 0 or 1."""
    rng = np.random.default_rng(1)
    city = pd.get_dummies(pd.Series(rng.choice(list("abcd"), N)), prefix="city")
    numbers = rng.normal(size=(N, 3))
    numbers[:60] = numbers[:60] > 0.0
    frame = city.astype(float).assign(
        **{f"age_{j}": column for j, column in enumerate(numbers.T)}
    )
    z = frame.to_numpy() @ [1.0, -1.0, 0.5, 0.0, 0.3, 0.0, -0.4]
    return frame, z + rng.normal(size=N)


def test_categories_are_found_in_all_blocks():
    frame, y = frames()
    model = BMRMRegressor(0.05, penalty="group", groups="categories", tol=TOL)
    whole = clone(model).fit(frame, y)
    blocks = [
        partial(frame.iloc.__getitem__, slice(a, a + 30)) for a in range(0, N, 30)
    ]
    assert_same_optimum(model.fit(RowBlocks(blocks, y)), whole)
    assert_allclose(model.coef_, whole.coef_, atol=1e-3)
    dd = pytest.importorskip("dask.dataframe")
    given = dd.from_pandas(frame, npartitions=4), dd.from_pandas(pd.Series(y), 4)
    assert_same_optimum(model.fit(*given), whole)


def test_predictions_and_scores_with_offsets():
    X, y, weights, offset = data("poisson")
    labels = (y > 0).astype(int)
    da = pytest.importorskip("dask.array")
    ends = 70, 0, 110
    dX = da.from_array(X, chunks=(ends, D))
    offsets = da.from_array(offset, chunks=(ends,))
    for model, targets in (
        (BMRMRegressor(0.1, loss="poisson"), y),
        (BMRMRegressor(0.1), y),
        (BMRMClassifier(0.1), labels),
    ):
        whole = clone(model).fit(X, targets, weights, offset=offset)
        score = whole.score(X, targets, weights, offset)
        rows = RowBlocks(X, targets, weights, block_size=50)
        model.fit(rows, offset=offset)
        assert_allclose(model.coef_, whole.coef_, atol=1e-3)
        for other in (rows, RowBlocks(X, targets, weights, block_size=1000)):
            assert whole.score(other, offset=offset) == pytest.approx(score)
        assert whole.score(dX, targets, weights, offset) == pytest.approx(score)
        names = ("predict",)
        if targets is labels:
            names = "predict", "decision_function", "predict_proba"
        for name in names:
            method = getattr(whole, name)
            for added in (offset, 0.5):
                expected = method(X, added)
                assert_allclose(method(rows, added), expected, rtol=1e-12)
                assert_allclose(method(dX, added).compute(), expected, rtol=1e-12)
            assert_allclose(method(dX, offsets).compute(), method(X, offset))
        with pytest.warns(UserWarning, match="was fitted with an offset"):
            model.predict(rows)
        model.fit(dX, da.from_array(targets, chunks=(ends,)), offset=offsets)
        assert_allclose(
            model.objective_,
            clone(model).fit(X, targets, offset=offset).objective_,
            rtol=1e-3,
        )
    found = fit_statistics(model, rows, offset=offset)
    expected = fit_statistics(model, X, labels, weights, offset=offset)
    assert found.log_likelihood == pytest.approx(expected.log_likelihood)
    gap = dual_gap(whole, rows, offset=offset)
    assert gap == pytest.approx(dual_gap(whole, X, labels, weights, offset=offset))


def test_offsets_that_are_refused():
    X, y, _, offset = data("log_loss")
    rows = RowBlocks(X, block_size=50)
    with pytest.raises(ValueError, match="offset needs loss="):
        BMRMClassifier(0.1, loss="hinge").fit(rows, y, offset=offset)
    with pytest.raises(ValueError, match="offset needs two classes; got 3"):
        BMRMClassifier(0.1).fit(rows, np.arange(N) % 3, offset=offset)
    with pytest.raises(ValueError, match="X has 180, and offset 179"):
        BMRMClassifier(0.1).fit(rows, y, offset=offset[1:])
    with pytest.raises(ValueError, match="offset must be finite"):
        BMRMRegressor(0.1).fit(rows, y, offset=np.where(offset > 1.0, np.inf, offset))


def test_frames_of_dask_with_offsets_in_series():
    X, y, weights, offset = data("poisson")
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    model = BMRMRegressor(0.1, loss="poisson").fit(frame, y, weights, offset=offset)
    dd = pytest.importorskip("dask.dataframe")
    *given, offsets = (
        dd.from_pandas(each, npartitions=3)
        for each in (frame, *map(pd.Series, (y, weights, offset)))
    )
    expected = model.score(frame, y, weights, offset)
    assert model.score(*given, offsets) == pytest.approx(expected)
    expected = model.predict(frame, offset)
    assert_allclose(model.predict(given[0], offsets).compute(), expected)
    dX, model = given[0].to_dask_array(), model.fit(X, y, weights, offset=offset)
    assert_allclose(model.predict(dX, offsets).compute(), model.predict(X, offset))
    with pytest.raises(
        ValueError, match="same blocks of rows; X has 3 blocks, and off"
    ):
        model.predict(dX, offsets.repartition(npartitions=2))
    with pytest.raises(ValueError, match="offset must be an array of numbers"):
        model.score(dX, *given[1:], "offset")


def test_missing_offsets_are_warned_of_once():
    X, y, _, offset = data("poisson")
    da = pytest.importorskip("dask.array")
    model = BMRMRegressor(0.1, loss="poisson").fit(X, y, offset=offset)
    rows, dX = RowBlocks(X, y, block_size=50), da.from_array(X, chunks=(50, D))
    for use in (
        lambda: model.predict(rows),
        lambda: model.score(rows),
        lambda: model.predict(dX).compute(),
        lambda: model.score(dX, y),
    ):
        with pytest.warns(MissingOffsetWarning) as found:
            use()
        assert [each.filename for each in found] == [__file__]


def test_forms_of_row_data(tmp_path):
    """Numbers, files and lists with an array for each source, as y may be."""
    X, y, weights, offset = data("poisson")
    np.save(tmp_path / "offset.npy", offset)
    parts = slice(0, 60), slice(60, N)
    of_sources = ([each[part] for part in parts] for each in (X, y, weights, offset))
    sources, *others, offsets = of_sources
    model = BMRMRegressor(0.1, loss="poisson")
    whole = clone(model).fit(X, y, weights, offset=offset)
    for given in (tmp_path / "offset.npy", offsets):
        model.fit(RowBlocks(sources), *others, offset=given)
        assert_allclose(model.objective_, whole.objective_, rtol=1e-12)
        rows = RowBlocks(sources, *others)
        assert_allclose(model.predict(rows, given), model.predict(X, offset))
        expected = pytest.approx(model.score(X, y, weights, offset))
        assert model.score(rows, offset=given) == expected
    da = pytest.importorskip("dask.array")
    dX = da.from_array(X, chunks=(50, D))
    for rows in (RowBlocks(sources), dX):
        model.fit(rows, y, 2.0, offset=0.5)
        assert_allclose(model.objective_, whole.fit(X, y, offset=0.5).objective_)
        expected = pytest.approx(model.score(X, y, offset=0.5))
        assert model.score(rows, y, 2.0, 0.5) == expected
        search = BMRMRegressorCV([0.1, 0.2], cv=3, loss="poisson")
        assert search.fit(rows, y, 2.0, offset=0.5).alpha_ in (0.1, 0.2)
    with pytest.raises(ValueError, match="blocks have sample_weight of their own"):
        model.fit(RowBlocks(X, y, weights), sample_weight=2.0)


def test_names_of_arguments_are_checked():
    X, y, _, offset = data("poisson")
    model = BMRMRegressor(0.1, loss="poisson").fit(X, y)
    with pytest.raises(TypeError, match="exposure"):
        model.predict(RowBlocks(X), exposure=offset)


@pytest.mark.parametrize("kind", ["group, positive", "group, free", "L2, free"])
def test_searches_have_the_choice_of_memory(kind):
    X, y, weights, offset = data("poisson")
    search = BMRMRegressorCV(4, cv=3, loss="poisson", tol=1e-5, **KINDS[kind])
    whole = clone(search).fit(X, y, weights, offset=offset)
    given = [(RowBlocks(X, y, weights, block_size=50),)]
    if (da := pytest.importorskip("dask.array")) is not None:
        given.append((da.from_array(X, chunks=(50, D)), y, weights))
    for rows in given:
        search.fit(*rows, offset=offset)
        assert_allclose(search.alphas_, whole.alphas_, rtol=1e-6)
        assert search.alpha_ == pytest.approx(whole.alpha_)
        assert_allclose(search.scores_path_, whole.scores_path_, atol=1e-4)
        assert search.gaps_path_.max() <= 5e-5

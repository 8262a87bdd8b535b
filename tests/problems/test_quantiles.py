"""Several quantiles: one path of problems, and predictions that do not cross."""

import pickle
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import d2_pinball_score, mean_pinball_loss
from sklearn.model_selection import GridSearchCV, train_test_split

from sklearn_subqn import BMRMRegressor
from sklearn_subqn.linear_model import QuantileRegressor

QUANTILES = [0.9, 0.1, 0.75, 0.25, 0.5]


def _data(n=400, d=6, seed=0):
    """Return features and targets whose spread depends on the features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X @ rng.normal(size=d) + rng.standard_t(3, n) * (1.0 + np.abs(X[:, 0]))
    return X, y


def _model(**parameters):
    return BMRMRegressor(1e-3, loss="quantile", **{"quantile": QUANTILES, **parameters})


@pytest.mark.parametrize("penalty", ["l2", "l1", "lp"])
def test_each_quantile_is_that_of_a_fit_of_its_own(penalty):
    X, y = _data()
    tol = 1e-2 if penalty == "lp" else 1e-6
    model = _model(penalty=penalty, tol=tol).fit(X, y)
    assert model.coef_.shape == (5, X.shape[1])
    assert model.intercept_.shape == model.objective_.shape == (5,)
    assert model.dual_gap_.shape == (5,)
    assert len(model.history_) == 5
    for row, quantile in enumerate(QUANTILES):
        own = _model(penalty=penalty, quantile=quantile, tol=tol).fit(X, y)
        assert model.dual_gap_[row] <= tol * model.objective_[row]
        lower = model.objective_ - model.dual_gap_
        assert lower[row] <= own.objective_
        assert own.objective_ - own.dual_gap_ <= model.objective_[row]
        scores = X @ model.coef_[row] + model.intercept_[row]
        loss = mean_pinball_loss(y, scores, alpha=quantile)
        penalties = {"l2": lambda w: w @ w / 2.0, "l1": lambda w: np.abs(w).sum()}
        if penalty in penalties:
            objective = loss + 1e-3 * penalties[penalty](model.coef_[row])
            assert objective == pytest.approx(model.objective_[row], rel=1e-12)


@pytest.mark.parametrize("shape", [(60, 10), (300, 6)])
def test_predictions_in_the_given_order_do_not_cross(shape):
    X, y = _data(*shape)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    model = _model().fit(X, y)
    order = np.argsort(QUANTILES)
    predicted = model.predict(X_test)
    crossing = model.set_params(crossing="allow").predict(X_test)
    assert np.any(np.diff(crossing[:, order], axis=1) < 0.0)
    assert np.all(np.diff(predicted[:, order], axis=1) >= 0.0)
    np.testing.assert_array_equal(np.sort(predicted), np.sort(crossing))
    np.testing.assert_allclose(crossing, X_test @ model.coef_.T + model.intercept_)

    def loss(predictions):
        pairs = zip(predictions.T, QUANTILES, strict=True)
        return sum(mean_pinball_loss(y_test, z, alpha=q) for z, q in pairs)

    assert loss(predicted) < loss(crossing)


def test_score_is_the_mean_share_of_pinball_losses():
    X, y = _data()
    weights = np.random.default_rng(1).integers(1, 4, len(y))
    model = _model().fit(X, y)
    scores = [
        d2_pinball_score(y, z, alpha=q, sample_weight=weights)
        for z, q in zip(model.predict(X).T, QUANTILES, strict=True)
    ]
    assert model.score(X, y, weights) == pytest.approx(np.mean(scores))
    search = GridSearchCV(_model(), {"alpha": [1e-4, 10.0]}, cv=3).fit(X, y)
    assert search.best_params_["alpha"] == 1e-4


def test_one_path_takes_fewer_passes_than_fits_of_their_own():
    X, y = _data(4000, 20)
    model = _model(solver="alm").fit(X, y)
    path = sum(history.passes[-1] for history in model.history_)
    each = [_model(solver="alm", quantile=q).fit(X, y) for q in QUANTILES]
    own = sum(model.history_[0].passes[-1] for model in each)
    assert path < 0.7 * own


def test_warm_starts_copies_and_names(capsys):
    X, y = _data()
    model = _model(warm_start=True, tol=1e-8, solver="alm").fit(X, y)
    again = model.history_
    model.fit(X, y)
    passes = [sum(h.passes[-1] for h in each) for each in (again, model.history_)]
    assert passes[1] < 0.5 * passes[0]
    same = pickle.loads(pickle.dumps(clone(model).fit(X, y)))
    np.testing.assert_allclose(same.predict(X), model.predict(X), atol=0.05)
    capsys.readouterr()
    model.set_params(verbose=1).fit(X, y)
    said = capsys.readouterr().out
    places = [said.index(f"quantile {q:g}:") for q in sorted(QUANTILES)]
    assert places == sorted(places)


def test_a_list_of_one_quantile_keeps_its_axis():
    X, y = _data()
    model = _model(quantile=(0.3,)).fit(X, y[:, None])
    assert model.predict(X).shape == (len(y), 1)
    assert model.coef_.shape == (1, X.shape[1])
    assert model.objective_.shape == (1,)
    own = _model(quantile=0.3).fit(X, y)
    np.testing.assert_array_equal(model.predict(X)[:, 0], own.predict(X))


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ({"quantile": []}, "non-empty list of numbers between 0 and 1"),
        ({"quantile": [[0.1, 0.9]]}, "non-empty list"),
        ({"quantile": [0.1, 1.0]}, "quantile must be > 0 and < 1, got 1.0"),
        ({"crossing": "never"}, "crossing must be one of 'sort', 'allow'"),
    ],
)
def test_wrong_parameters_are_refused(parameters, error):
    X, y = _data(50)
    model = _model().fit(X, y)
    before = model.coef_
    with pytest.raises(ValueError, match=error):
        model.set_params(**parameters).fit(X, y)
    assert model.coef_ is before


def test_several_columns_of_y_are_refused():
    X, y = _data(50)
    with pytest.raises(ValueError, match="list of quantiles needs y of one column"):
        _model().fit(X, np.column_stack([y, y]))
    with pytest.warns(UserWarning, match="quantile has no effect"):
        BMRMRegressor(quantile=[0.1, 0.9]).fit(X, y)


@pytest.mark.parametrize("known", [True, False])
def test_mapie_calibrates_intervals(known):
    regression = pytest.importorskip("mapie.regression")
    X, y = _data(1200)
    X, X_rest, y, y_rest = train_test_split(X, y, test_size=0.5, random_state=0)
    conformalized = partial(
        regression.ConformalizedQuantileRegressor, confidence_level=0.8
    )
    if known:
        mapie = conformalized(QuantileRegressor(alpha=1e-3)).fit(X, y)
    else:
        model = _model()
        quantiles = (0.1, 0.9, 0.5)
        fits = [clone(model).set_params(quantile=q).fit(X, y) for q in quantiles]
        mapie = conformalized(fits, prefit=True)
    mapie.conformalize(X_rest[:300], y_rest[:300])
    _, intervals = mapie.predict_interval(X_rest[300:])
    low, high = intervals[:, 0, 0], intervals[:, 1, 0]
    covered = np.mean((low <= y_rest[300:]) & (y_rest[300:] <= high))
    assert 0.7 < covered < 0.9


def test_skpro_fits_a_model_for_each_quantile():
    module = pytest.importorskip("skpro.regression.multiquantile")
    pd = pytest.importorskip("pandas")
    X, y = _data()
    X, y = pd.DataFrame(X).add_prefix("x"), pd.DataFrame({"y": y})
    model = BMRMRegressor(1e-3, loss="quantile")
    alpha = sorted(QUANTILES)
    many = module.MultipleQuantileRegressor(
        model, alpha_name="quantile", alpha=alpha, sort_quantiles=True
    )
    predicted = many.fit(X, y).predict_quantiles(X, alpha)
    expected = _model(quantile=alpha).fit(X, y["y"]).predict(X)
    np.testing.assert_allclose(predicted, expected, atol=0.05)

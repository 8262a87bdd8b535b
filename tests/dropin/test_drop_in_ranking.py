"""Ranking with LightGBM's parameters."""

import inspect

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.metrics import ndcg_score

from sklearn_subqn import BMRMRanker
from sklearn_subqn.ranking import Ranker


def queries(n=20, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(4, 12, n)
    X = rng.normal(size=(group.sum(), 4))
    y = np.digitize(X @ [1.0, -0.5, 0.0, 0.2] + rng.normal(size=len(X)), [0.0, 1.5])
    return X, y, group


def value(w, X, y, group, reg_lambda):
    """Return the objective as it is documented."""
    total, scores = 0.5 * reg_lambda * w @ w, X @ w
    for rows in np.split(np.arange(len(y)), np.cumsum(group)[:-1]):
        z, r = scores[rows], y[rows]
        gaps = r[None, :] - r[:, None]
        pairs = gaps > 0
        if pairs.any():
            costs = gaps * np.logaddexp(0.0, z[:, None] - z[None, :])
            total += costs[pairs].mean()
    return total


def test_the_objective_is_the_documented_one():
    X, y, group = queries()
    ranker = Ranker(reg_lambda=0.5).fit(X, y, group=group)
    best = minimize(value, np.zeros(4), (X, y, group, 0.5), options={"gtol": 1e-8})
    assert_allclose(ranker.coef_, best.x, atol=1e-4)
    expected = value(ranker.coef_, X, y, group, 0.5)
    assert ranker.objective_ == pytest.approx(expected, rel=1e-9)
    assert ranker.objective_ - ranker.dual_gap_ <= best.fun * (1 + 1e-12)
    assert ranker.dual_gap_ <= 1e-3 * expected
    assert ranker.history_[0].objective[-1] == pytest.approx(expected, rel=1e-3)
    assert_allclose(ranker.feature_importances_, np.abs(ranker.coef_))


@pytest.mark.parametrize(
    ("params", "same"),
    [
        ({}, {"alpha": 1e-3}),
        ({"reg_lambda": 0.2}, {"alpha": 0.01}),
        ({"reg_alpha": 0.2}, {"alpha": 0.01, "penalty": "l1"}),
        (
            {"reg_alpha": 0.1, "reg_lambda": 0.3},
            {"alpha": 0.02, "penalty": "elasticnet", "l1_ratio": 0.25},
        ),
    ],
    ids=str,
)
def test_penalties(params, same):
    X, y, group = queries()
    ranker = Ranker(**params).fit(X, y, group=group)
    model = BMRMRanker(loss="pairwise-linear-log", **same).fit(X, y, group=group)
    assert_allclose(ranker.coef_, model.coef_, rtol=1e-9, atol=1e-12)
    assert ranker.objective_ == pytest.approx(len(group) * model.objective_)


def test_data_to_evaluate():
    X, y, group = queries()
    other = queries(seed=1)
    ranker = Ranker().fit(
        X,
        y,
        group=group,
        eval_set=[other[:2]],
        eval_group=[other[2]],
        eval_at=[3, 5],
    )
    rows = np.split(np.arange(len(other[1])), np.cumsum(other[2])[:-1])
    scores = ranker.predict(other[0])
    for k in (3, 5):
        # Queries without relevant rows count one.
        expected = np.mean(
            [
                ndcg_score([2.0 ** other[1][r] - 1.0], [scores[r]], k=k)
                if other[1][r].any()
                else 1.0
                for r in rows
            ]
        )
        assert ranker.best_score_["valid_0"][f"ndcg@{k}"] == pytest.approx(expected)
        values = ranker.evals_result_["valid_0"][f"ndcg@{k}"]
        assert len(values) == ranker.best_iteration_ == ranker.n_iter_
        assert values[-1] == ranker.best_score_["valid_0"][f"ndcg@{k}"]
    assert not all(other[1][r].any() for r in rows)
    with pytest.raises(ValueError, match="eval_set needs eval_group"):
        ranker.fit(X, y, group=group, eval_set=[other[:2]])
    ranker.fit(X, y, group=group)
    assert not hasattr(ranker, "best_score_")


@pytest.mark.parametrize("first_metric_only", [False, True])
def test_early_stopping_of_lightgbm(first_metric_only):
    lightgbm = pytest.importorskip("lightgbm")
    (X, y, group), (Z, t, sizes) = queries(8), queries(seed=1)
    given = {"eval_set": [(Z, t)], "eval_group": [sizes], "eval_at": [10, 2]}
    stop = lightgbm.early_stopping(
        2, first_metric_only=first_metric_only, verbose=False
    )
    rng = np.random.default_rng(0)
    # Features of no use, to which later iterations fit.
    X, Z = (np.hstack([A, rng.normal(size=(len(A), 40))]) for A in (X, Z))
    given["eval_set"] = [(Z, t)]
    ranker = Ranker(reg_lambda=1e-3)
    whole = ranker.fit(X, y, group=group, **given).evals_result_["valid_0"]
    ranker.fit(X, y, group=group, callbacks=[stop], **given)
    found = ranker.evals_result_["valid_0"]
    n = len(found["ndcg@10"])
    assert n == ranker.n_iter_ < len(whole["ndcg@10"])
    assert found == {name: values[:n] for name, values in whole.items()}
    counting = ["ndcg@10"] if first_metric_only else ["ndcg@10", "ndcg@2"]
    assert ranker.best_iteration_ == n - 2
    assert any(np.argmax(found[name]) == n - 3 for name in counting)
    assert ranker.best_score_["valid_0"]["ndcg@2"] == found["ndcg@2"][n - 3]
    with pytest.raises(ValueError, match="early_stopping needs an eval_set"):
        ranker.fit(X, y, group=group, callbacks=[stop])
    assert ranker.best_iteration_ == n - 2


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_queries_without_relevant_rows_count_as_in_lightgbm():
    X, y, group = queries()
    for Model in (Ranker, lightgbm_ranker()):
        ranker = Model(verbose=-1).fit(
            X, y, group=group, eval_set=[(X, 0 * y)], eval_group=[group]
        )
        assert set(ranker.best_score_["valid_0"].values()) == {1.0}


def test_what_has_no_effect_is_named():
    X, y, group = queries()
    with pytest.warns(
        UserWarning, match="num_leaves=7, n_estimators=5 without"
    ) as found:
        Ranker(num_leaves=7, n_estimators=5).fit(X, y, group=group)
    assert found[0].filename == __file__
    with pytest.warns(UserWarning, match="init_score, callbacks given to fit"):
        Ranker().fit(X, y, group=group, init_score=y, callbacks=[print])


def test_parameters_beyond_those_of_the_constructor():
    X, y, group = queries()
    usual = {"metric": "ndcg", "label_gain": [0, 1, 3], "seed": 0, "verbosity": -1}
    ranker = Ranker(**usual)  # Warnings are errors.
    plain = Ranker().fit(X, y, group=group).coef_
    assert_allclose(clone(ranker).fit(X, y, group=group).coef_, plain)
    assert clone(ranker).get_params() == Ranker().get_params() | usual
    assert repr(Ranker(metric="ndcg")) == "Ranker(metric='ndcg')"
    weaker = Ranker(lambda_l1=0.1, lambda_l2=0.3).fit(X, y, group=group)
    same = Ranker(reg_alpha=0.1, reg_lambda=0.3).fit(X, y, group=group)
    assert_allclose(weaker.coef_, same.coef_)
    assert weaker.objective_ == pytest.approx(same.objective_)
    ranker = Ranker().set_params(eval_at=[2], reg_lambda=0.1)
    ranker.fit(X, y, group=group, eval_set=[(X, y)], eval_group=[group])
    assert list(ranker.best_score_["valid_0"]) == ["ndcg@2"]
    for params, message in (
        ({"metric": ["ndcg", "map"]}, r"metric=\['ndcg', 'map'\] without effect"),
        ({"label_gain": [0, 1, 2]}, "label_gain"),
        ({"reg_lamda": 0.1}, "reg_lamda=0.1 without .* Did you mean 'reg_lambda'"),
        ({"C": 2.0}, "C=2.0 without"),
    ):
        with pytest.warns(UserWarning, match=message):
            Ranker(**params).fit(X, y, group=group)
    with pytest.raises(ValueError, match="reg_alpha must be"):
        Ranker(lambda_l1=-1.0).fit(X, y, group=group)


def test_callbacks_of_lightgbm_get_the_results(capsys):
    lightgbm = pytest.importorskip("lightgbm")
    (X, y, group), (Z, t, sizes) = queries(), queries(seed=1)
    found, seen = {}, []
    callbacks = [
        lightgbm.record_evaluation(found),
        lightgbm.log_evaluation(period=1),
        seen.append,
    ]
    ranker = Ranker().fit(
        X, y, group=group, eval_X=(X, Z), eval_y=(y, t), eval_group=[group, sizes],
        eval_names=["train", "valid"], eval_at=[3], callbacks=callbacks,
    )  # fmt: skip
    assert found == ranker.evals_result_
    assert len(found["valid"]["ndcg@3"]) == ranker.n_iter_
    assert "[1]\ttrain's ndcg@3: " in capsys.readouterr().out
    assert [env.iteration for env in seen] == list(range(ranker.n_iter_))
    reset = lightgbm.reset_parameter(learning_rate=lambda i: 0.1)
    with pytest.warns(UserWarning, match="callbacks given to fit: without effect"):
        ranker.fit(
            X, y, group=group, eval_X=Z, eval_y=t, eval_group=[sizes], callbacks=[reset]
        )
    assert list(ranker.best_score_) == ["valid_0"]
    for given in ({"eval_X": Z}, {"eval_X": (Z, Z), "eval_y": t}):
        with pytest.raises(ValueError, match="eval_X"):
            ranker.fit(X, y, group=group, eval_group=[sizes], **given)


def test_predictions_and_names_as_scripts_ask_for_them():
    X, y, group = queries()
    ranker = Ranker().fit(X, y, group=group, eval_set=[(X, y)], eval_group=[group])
    scores = ranker.predict(X, num_iteration=ranker.best_iteration_, raw_score=True)
    assert_allclose(scores, X @ ranker.coef_)
    assert ranker.feature_name_ == [f"Column_{i}" for i in range(4)]
    assert ranker.n_features_ == 4
    with pytest.raises(AttributeError, match="coef_ is the model"):
        ranker.booster_.save_model("model.txt")
    with pytest.raises(ValueError, match="there are not"):
        ranker.predict(X, pred_contrib=True)


def test_values_are_checked():
    X, y, group = queries()
    for params, message in (
        ({"objective": "ndcg"}, "objective must be one of 'lambdarank'"),
        ({"reg_lambda": -1.0}, "reg_lambda must be"),
    ):
        with pytest.raises(ValueError, match=message):
            Ranker(**params).fit(X, y, group=group)
    with pytest.raises(ValueError, match="group"):
        Ranker().fit(X, y, group=group[1:])
    with pytest.raises(ValueError, match=r"entry for each row.* give the sizes"):
        Ranker().fit(X, y, group=np.repeat(np.arange(len(group)), group))
    with pytest.warns(UserWarning, match=r"Give group, the numbers of rows .* \[len"):
        Ranker().fit(X, y)


def test_verbose_as_in_lightgbm_is_silent(capsys):
    X, y, group = queries()
    Ranker(verbose=-1).fit(X, y, group=group)
    assert capsys.readouterr().out == ""
    Ranker(verbose=1).fit(X, y, group=group)
    assert "Ranker: iteration" in capsys.readouterr().out


def lightgbm_ranker():
    return pytest.importorskip("lightgbm").LGBMRanker


def test_parameters_are_those_of_lightgbm():
    ours = inspect.signature(Ranker).parameters
    theirs = inspect.signature(lightgbm_ranker()).parameters
    assert {*theirs} == {*ours} - {"verbose"}
    assert all(ours[n].default == theirs[n].default for n in theirs if n != "kwargs")
    for method in ("fit", "predict"):
        names = list(inspect.signature(getattr(Ranker, method)).parameters)
        whole = list(inspect.signature(getattr(lightgbm_ranker(), method)).parameters)
        # Older versions of LightGBM have no eval_X and eval_y.
        assert [name for name in names if name in whole] == whole
    assert clone(Ranker(reg_alpha=0.1)).get_params()["reg_alpha"] == 0.1


def script(LGBMRanker):
    """Do what a script does that was written for LightGBM."""
    (X, y, group), (X_test, y_test, group_test) = queries(80), queries(20, seed=1)
    ranker = LGBMRanker(
        objective="lambdarank",
        n_estimators=20,
        learning_rate=0.1,
        min_child_samples=5,
        random_state=0,
        n_jobs=1,
        verbose=-1,
        metric="ndcg",
        force_row_wise=True,
    )
    ranker.fit(
        X,
        y,
        group=group,
        eval_set=[(X_test, y_test)],
        eval_group=[group_test],
        eval_metric="ndcg",
        eval_at=[5],
    )
    order = np.argsort(-ranker.predict(X_test[: group_test[0]]))
    best = int(np.argmax(ranker.feature_importances_))
    return order.shape, best, ranker.best_score_["valid_0"]["ndcg@5"]


@pytest.mark.filterwarnings("ignore:.*without effect:UserWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_script_with_one_import_changed():
    ours, theirs = script(Ranker), script(lightgbm_ranker())
    assert ours[:2] == theirs[:2]
    assert ours[2] == pytest.approx(theirs[2], abs=0.15)
    assert ours[2] > 0.5

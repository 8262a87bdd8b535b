"""The rule of how small gaps have to be, and the words for how runs end."""

import importlib

import numpy as np
import pytest
from _door import Status, Stopping

from sklearn_subqn import BMRMRegressor
from sklearn_subqn._core.driver.stopping import size_of, sizes_of

cd_module = importlib.import_module("sklearn_subqn._core.solvers.cd")


def test_gaps_are_relative_to_the_distance_from_the_infimum():
    stopping = Stopping(1e-2, infimum=-3.0)
    assert stopping.allowed_gap(-1.0) == pytest.approx(2e-2)
    assert stopping.is_reached(0.02, -1.0)
    assert not stopping.is_reached(0.021, -1.0)
    # Values near the infimum: what is negligible beside the objective is rounding.
    assert stopping.allowed_gap(-3.0) == pytest.approx(3e-8)


@pytest.mark.parametrize("infimum", [-3.0, 0.0, 2.0])
def test_sizes_of_several_values_are_those_of_each(infimum):
    values = np.array([-4.0, -3.0, -1e-9, 0.0, 2.0, 5.0])
    sizes = [size_of(value, infimum) for value in values]
    np.testing.assert_array_equal(sizes_of(values, infimum), sizes)
    distances = np.abs(values - infimum)
    assert np.all(sizes >= distances)
    assert np.all(np.less(sizes, 1e-5) <= np.less(distances, 1e-5))


def test_gaps_may_be_absolute_or_relative_to_a_least_size():
    assert Stopping(0.5, absolute=True).allowed_gap(1e9) == 0.5
    assert Stopping(1e-3, least_size=1.0).allowed_gap(0.0) == 1e-3


def test_no_gap_is_small_enough_unless_one_is_given():
    for gap, value in ((1e-300, 1.0), (1e-9, 1e9)):
        assert not Stopping().is_reached(gap, value)
        assert not Stopping().is_nearly_reached(gap, value)
        assert not Stopping().is_what_was_asked(gap, value)


def test_problems_on_the_way_are_solved_more_exactly():
    stopping = Stopping(1e-3)
    assert 0.0 < stopping.allowed_on_the_way(4.0) < stopping.allowed_gap(4.0)


def test_statuses_are_words_with_a_sentence_each():
    assert Status.NO_STEP == "no_step"
    assert f"{Status.NO_STEP}" == "no_step"
    sentences = [status.sentence for status in Status]
    assert len(set(sentences)) == len(Status)
    assert all(s[0].isupper() and s.endswith(".") for s in sentences)


def test_coordinate_descent_expects_its_last_model_where_objectives_are_negative(
    monkeypatch,
):
    # Poisson losses lack a constant: predicted bounds used to be compared with a
    # negative number, and none was ever good enough.
    rng = np.random.default_rng(0)
    # One compiled loop would have to convert so many numbers.
    X = rng.normal(size=(40_000, 12)).astype(np.float32)
    y = rng.poisson(np.exp(2.5 + X @ rng.normal(size=12) / 8.0))
    used = []
    predictions = cd_module._Predictions
    original = predictions.dual

    def noted(self, *args):
        dual = original(self, *args)
        used.append(dual is not None)
        return dual

    monkeypatch.setattr(predictions, "dual", noted)
    model = BMRMRegressor(
        loss="poisson", penalty="l1", alpha=1e-2, solver="auto", tol=1e-4
    ).fit(X, y)
    assert model.objective_ < 0.0
    assert any(used)

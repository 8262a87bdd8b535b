"""Names on the axes of matrices: whatever order they are in, the model is the same."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sklearn_subqn import (
    BMRMClassifier,
    BMRMOutlierDetector,
    BMRMRegressor,
    LinearChainCRF,
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
)
from sklearn_subqn.losses import Ontology

pd = pytest.importorskip("pandas")

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(120, 3)), columns=["x", "y", "z"])
GRADES = np.digitize(X.to_numpy() @ [2.0, -1.0, 0.5], [-1.0, 1.0])
NAMES = ["low", "medium", "high"]
NAMED = np.array(NAMES)[GRADES]
LABELS = pd.DataFrame(
    (X.to_numpy() + rng.normal(size=(120, 3)) > 0.3).astype(int), columns=list("pqr")
)
TARGETS = pd.DataFrame(X.to_numpy() @ rng.normal(size=(3, 3)), columns=list("pqr"))

COSTS = np.array([[0.0, 1.0, 9.0], [2.0, 0.0, 1.0], [4.0, 3.0, 0.0]])
METRIC = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 4.0]])
MARGINS = np.array([[0.1, 0.5, 0.9], [0.7, 0.2, 0.4]])
# Sorted classes are high, low, medium.
SORTED = [2, 0, 1]


def classes_first(matrix):
    """A matrix of the grades in the order of sorted classes."""
    return matrix[np.ix_(SORTED, SORTED)]


def weights_of(model):
    if isinstance(model, LinearChainCRF):
        return list(model.transition_features_.values())
    return model.coef_


# What is fitted, with a matrix whose axes have names, and with the right plain one.
CASES = {
    "label_cost": (
        lambda m: MulticlassHingeClassifier(1e-2, label_cost=m).fit(X, NAMED),
        (COSTS, NAMES, NAMES),
        classes_first(COSTS),
    ),
    "rescaling": (
        lambda m: MulticlassHingeClassifier(1e-2, rescaling=m).fit(X, NAMED),
        (COSTS + np.eye(3), NAMES, NAMES),
        classes_first(COSTS + np.eye(3)),
    ),
    "margins of classes": (
        lambda m: MultilabelHingeClassifier(1e-2, label_cost=m).fit(X, NAMED),
        (MARGINS, [0, 1], NAMES),
        MARGINS[:, SORTED],
    ),
    "margins of labels": (
        lambda m: MultilabelHingeClassifier(1e-2, label_cost=m).fit(X, LABELS),
        (MARGINS, [0, 1], list("pqr")),
        MARGINS,
    ),
    "costs of pairs": (
        lambda m: MultilabelHingeClassifier(
            1e-2, label_cost=m, reduction="max", threshold=False
        ).fit(X, LABELS),
        (COSTS, list("pqr"), list("pqr")),
        COSTS,
    ),
    "penalty_matrix, classifier": (
        lambda m: BMRMClassifier(0.1, penalty="quadratic", penalty_matrix=m).fit(
            X, NAMED
        ),
        (METRIC, list("xyz"), list("xyz")),
        METRIC,
    ),
    "penalty_matrix, regressor": (
        lambda m: BMRMRegressor(0.1, penalty="quadratic", penalty_matrix=m).fit(
            X, GRADES
        ),
        (METRIC, list("xyz"), list("xyz")),
        METRIC,
    ),
    "penalty_matrix, outliers": (
        lambda m: BMRMOutlierDetector(0.1, penalty="quadratic", penalty_matrix=m).fit(
            X
        ),
        (METRIC, list("xyz"), list("xyz")),
        METRIC,
    ),
    "metric": (
        lambda m: BMRMRegressor(0.1, metric=m).fit(X, TARGETS),
        (METRIC, list("pqr"), list("pqr")),
        METRIC,
    ),
    "transition_constraints": (
        lambda m: LinearChainCRF(0.1, transition_constraints=m).fit(
            [[{"a": 1}, {"b": 1}, {"a": 1}, {"c": 1}]] * 3,
            [["low", "medium", "high", "low"]] * 3,
        ),
        (np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], dtype=bool), NAMES, NAMES),
        classes_first(np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], dtype=bool)),
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("order", [[2, 0, 1], [1, 0, 2]])
def test_permuted_names_are_the_same_model(case, order):
    fit, (values, rows, columns), plain = CASES[case]
    frame = pd.DataFrame(values, rows, columns)
    moved = [rows[i] for i in order if i < len(rows)]
    frame = frame.loc[moved, [columns[i] for i in order]]
    expected, found = fit(plain), fit(frame)
    assert_array_equal(found.objective_, expected.objective_)
    assert_array_equal(weights_of(found), weights_of(expected))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("axis", ["index", "columns"])
def test_names_that_do_not_match_are_refused(case, axis):
    fit, (values, rows, columns), _ = CASES[case]
    frame = pd.DataFrame(values, rows, columns)
    first = getattr(frame, axis)[0]
    with pytest.raises(ValueError, match=rf"missing: {first!r}; unknown: 'none'|kinds"):
        fit(frame.rename(**{axis: {first: "none"}}))
    doubled = frame.rename(**{axis: {first: getattr(frame, axis)[1]}})
    with pytest.raises(ValueError, match="twice on its"):
        fit(doubled)


@pytest.mark.parametrize("case", CASES)
def test_frames_without_names_are_in_order(case):
    fit, _, plain = CASES[case]
    found = weights_of(fit(pd.DataFrame(plain)))
    assert_array_equal(found, weights_of(fit(plain)))


def test_one_named_axis_of_two_that_are_the_same():
    fit, _, plain = CASES["label_cost"]
    in_order = pd.DataFrame(plain, columns=["high", "low", "medium"])
    assert fit(in_order).objective_ == fit(plain).objective_
    with pytest.raises(ValueError, match="name its rows as well"):
        fit(pd.DataFrame(COSTS, columns=NAMES))
    with pytest.raises(ValueError, match="name its columns as well"):
        fit(pd.DataFrame(COSTS, index=NAMES))


def test_numbers_as_strings_and_classes_that_do_not_occur():
    costs = pd.DataFrame(COSTS, [2, 10, 1], ["2", "10", "1"])
    grades = np.array([2, 10, 1])[GRADES]
    found = MulticlassHingeClassifier(1e-2, label_cost=costs).fit(X, grades)
    expected = MulticlassHingeClassifier(1e-2, label_cost=classes_first(COSTS))
    assert found.objective_ == expected.fit(X, grades).objective_
    # A part of the data, such as a fold, may lack a class.
    some = GRADES < 2
    found = MulticlassHingeClassifier(1e-2, label_cost=costs).fit(X[some], grades[some])
    expected = MulticlassHingeClassifier(1e-2, label_cost=COSTS[:2, :2])
    assert found.objective_ == expected.fit(X[some], grades[some]).objective_


def test_features_and_targets_without_names():
    model = BMRMClassifier(penalty="quadratic")
    frame = pd.DataFrame(METRIC, list("xyz"), list("xyz"))
    with pytest.raises(ValueError, match="the features have none"):
        model.set_params(penalty_matrix=frame).fit(X.to_numpy(), NAMED)
    with pytest.raises(ValueError, match="the columns of y have none"):
        BMRMRegressor(metric=frame).fit(X, TARGETS.to_numpy())
    ontology = Ontology.from_parents([[-1]] * 3)
    model.set_params(loss=ontology, fit_intercept=False)
    with pytest.raises(ValueError, match="coefficients of several scores have none"):
        model.fit(X, NAMED)


def test_polars():
    pl = pytest.importorskip("polars")
    fit, _, plain = CASES["label_cost"]
    expected = fit(plain).objective_
    assert fit(pl.DataFrame(plain)).objective_ == expected
    names = ["high", "low", "medium"]
    assert fit(pl.DataFrame(plain, schema=names)).objective_ == expected
    with pytest.raises(ValueError, match="name its rows as well"):
        fit(pl.DataFrame(COSTS, schema=NAMES))


PARENTS = {"bee": "insect", "insect": None, "owl": "bird", "bird": [], "ant": "insect"}


@pytest.mark.parametrize("loss", ["hinge", "log_loss"])
def test_ontologies_of_names(loss):
    animals = np.array(["bee", "owl", "ant"])[GRADES]
    # Leaves ant, bee, owl.
    plain = [[-1], [-1], [0], [0], [1]]
    ontology = Ontology.from_parents(plain, loss=loss)
    expected = BMRMClassifier(1e-2, loss=ontology, tol=1e-9).fit(X, animals)
    for parents in (PARENTS, dict(reversed(PARENTS.items())), pd.Series(PARENTS)):
        ontology = Ontology.from_parents(parents, loss=loss)
        found = BMRMClassifier(1e-2, loss=ontology, tol=1e-9).fit(X, animals)
        assert found.objective_ == pytest.approx(expected.objective_, rel=1e-8)
        assert_allclose(found.coef_, expected.coef_, atol=1e-4)
    with pytest.raises(ValueError, match="leaves of the loss do not match the classes"):
        BMRMClassifier(loss=ontology).fit(X, NAMED)


def test_costs_of_ontologies_by_name():
    animals = np.array(["bee", "owl", "ant"])[GRADES]
    costs = pd.DataFrame(COSTS, ["bee", "owl", "ant"], ["bee", "owl", "ant"])
    at = [2, 0, 1]
    plain = Ontology.from_parents([[-1], [-1], [0], [0], [1]], COSTS[np.ix_(at, at)])
    named = Ontology.from_parents(PARENTS, costs)
    one, other = (
        BMRMClassifier(1e-2, loss=loss, tol=1e-9).fit(X, animals)
        for loss in (plain, named)
    )
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-8)
    with pytest.raises(ValueError, match="the parent 'fish', which is no node"):
        Ontology.from_parents({"shark": "fish"})
    numbered = pd.Series([[-1], [-1], [0], [0], [1]])
    assert Ontology.from_parents(numbered).labels is None

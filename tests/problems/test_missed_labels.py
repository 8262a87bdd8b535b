"""Models that predict hardly any labels, and names of solvers that there are not."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

from sklearn_subqn import (
    MulticlassHingeClassifier,
    MultilabelHingeClassifier,
    RowBlocks,
    SubLBFGSLinearSVC,
)


def labels(noise, n_labels):
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(500, 10)), rng.normal(size=(10, n_labels))
    scores = X @ W / 3.0 + noise * rng.logistic(size=(500, n_labels))
    return X, (scores > 0.4).astype(int)


@pytest.mark.parametrize(("noise", "warns"), [(0.2, False), (1.0, True)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("in_blocks", [False, True])
def test_more_labels_missed_than_found(noise, warns, weighted, in_blocks):
    X, Y = labels(noise, 3)
    weights = np.random.default_rng(1).integers(0, 3, 500) if weighted else None
    s = np.ones(500) if weights is None else weights
    model = MultilabelHingeClassifier(1e-3, reduction="max")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rows = RowBlocks(X, Y, weights, block_size=150)
        P = model.fit(*((rows,) if in_blocks else (X, Y, weights))).predict(X)
    found, missed = (s @ (P * Y)).sum(), (s @ ((1 - P) * Y)).sum()
    assert (missed > found) == warns
    # The criterion: predictions are nearer to no labels than to the true ones.
    assert ((s @ (P != Y)).sum() > (s @ P).sum()) == warns
    messages = [str(warning.message) for warning in caught]
    assert len(messages) == warns
    if warns:
        share = f"finds {found / (found + missed):.1%} of the relevant labels"
        assert share in messages[0]
        assert "reduction='mean'" in messages[0]


@pytest.mark.parametrize("options", [{"reduction": "mean"}, {"threshold": False}])
def test_no_warning_where_all_labels_count_or_none_is_predicted(options):
    X, Y = labels(1.0, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MultilabelHingeClassifier(1e-3, **{"reduction": "max", **options}).fit(X, Y)


def test_constant_models_warn_once():
    X, Y = labels(4.0, 5)
    with pytest.warns(UserWarning, match="makes no use of the features") as caught:
        MultilabelHingeClassifier(1e-3, reduction="max").fit(X, Y)
    assert len(caught) == 1


@pytest.mark.parametrize(
    "model",
    [
        MulticlassHingeClassifier(),
        MultilabelHingeClassifier(reduction="max"),
        SubLBFGSLinearSVC(),
        SubLBFGSLinearSVC(loss="squared_hinge"),
    ],
    ids=repr,
)
def test_solvers_that_an_error_names_are_accepted(model):
    X, Y = labels(0.2, 3)
    y = Y if isinstance(model, MultilabelHingeClassifier) else Y[:, 0] + Y[:, 1]
    with pytest.raises(ValueError, match=r"(one of|do are) '") as caught:
        model.set_params(solver="owlqn").fit(X, y)
    listed = re.split("one of |do are ", str(caught.value))[1]
    named = listed.split(";")[0].rstrip(".").split(", ")
    assert "'auto'" in named
    assert len(named) >= 4
    for name in named:
        model.set_params(solver=name.strip("'"), tol=0.5).fit(X, y)

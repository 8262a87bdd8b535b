"""Files and texts in place of data are refused, whatever else is given."""

import inspect
import io
from pathlib import Path

import numpy as np
import pytest

import sklearn_subqn
from sklearn_subqn import SubLBFGSLinearSVC, crf, linear_model, ranking, svm

FILES = ["data.csv", b"data.csv", Path("data.csv"), io.StringIO("1,2"), "a b\n" * 999]


def kinds():
    """Every public kind of estimator, with a function that makes one."""
    for module in (sklearn_subqn, crf, linear_model, ranking, svm):
        for name in module.__all__:
            kind = getattr(module, name)
            if name in ("StructuredSVM", "ConditionalRandomField"):
                yield name, lambda kind=kind: kind(len, len, len)
            elif inspect.isclass(kind) and hasattr(kind, "fit"):
                yield name, kind


KINDS = dict(kinds())


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("y", [[0, 1], None, "y.csv"])
def test_files_in_place_of_X_are_refused(name, y):
    model = KINDS[name]()
    for method in ("fit", "partial_fit"):
        if not hasattr(model, method):
            continue
        function = getattr(model, method)
        known = "classes" in inspect.signature(function).parameters
        for given in FILES:
            with pytest.raises(TypeError) as caught:
                function(given, y, **({"classes": [0, 1]} if known else {}))
            message = str(caught.value)
            assert message.startswith("X must be a")
            assert f"of type {type(given).__name__}." in message
            for reader in ("read_csv", "load_svmlight_file", "RowBlocks"):
                assert reader in message
            assert len(message) < 500
            assert not hasattr(model, "n_features_in_")


def test_files_in_place_of_y_and_in_prediction_are_refused():
    X, y = np.eye(4), [0, 1, 0, 1]
    model = SubLBFGSLinearSVC().fit(X, y)
    for given in FILES:
        with pytest.raises(TypeError, match=r"^y must be an array or a list, got "):
            SubLBFGSLinearSVC().fit(X, given)
        with pytest.raises(TypeError, match=r"^X must be an array, a sparse matrix or"):
            model.predict(given)

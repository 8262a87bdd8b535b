"""Conversion to ONNX: importing this module registers the estimators with skl2onnx.

Then ``skl2onnx.to_onnx`` converts fitted linear estimators of this package, alone or in
pipelines, searches and other estimators of scikit-learn. Each estimator is converted
like the result of its ``to_sklearn``, with the same options, such as ``zipmap``. It
needs skl2onnx, which ``pip install "sklearn-subqn[onnx]"`` installs:

    import sklearn_subqn.onnx
    from skl2onnx import to_onnx

    model = to_onnx(clf, X[:1].astype("float32"))
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sklearn_subqn

from . import linear_model, ranking, svm

try:
    from skl2onnx import get_model_alias, update_registered_converter
    from skl2onnx._parse import _parse_sklearn
    from skl2onnx.common._registration import get_converter, get_shape_calculator
except ImportError as error:
    raise ImportError(
        "sklearn_subqn.onnx needs skl2onnx, and onnxruntime to run models: "
        'pip install "sklearn-subqn[onnx]".'
    ) from error

__all__: list[str] = []


def _parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Return the outputs of a model, as for the equivalent scikit-learn estimator."""
    twin = model.to_sklearn()
    if getattr(model, "multilabel_", False) and len(model.classes_) == 2:
        raise ValueError(
            f"{type(model).__name__} has 2 labels; skl2onnx converts scikit-learn's "
            "classifiers of more labels only."
        )
    with _passed_options(scope, model, twin):
        outputs = _parse_sklearn(scope, twin, inputs, custom_parsers=custom_parsers)
    # The model itself is registered, so that its options apply at conversion as well.
    for operator in scope.operators.values():
        if operator.raw_operator is twin:
            operator.raw_operator, operator.type = model, get_model_alias(type(model))
    return outputs


def _set_shapes(operator: Any) -> None:
    """Set the shapes of the outputs of a model."""
    with _converted(operator):
        get_shape_calculator(operator.type)(operator)


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Convert a model by way of the equivalent scikit-learn estimator."""
    model = operator.raw_operator
    with (
        _converted(operator),
        _passed_options(container, model, operator.raw_operator),
    ):
        get_converter(operator.type)(scope, operator, container)


@contextmanager
def _converted(operator: Any) -> Iterator[None]:
    """Replace an operator's model by its scikit-learn equivalent within a context."""
    own = operator.raw_operator, operator.type
    twin = own[0].to_sklearn()
    operator.raw_operator, operator.type = twin, get_model_alias(type(twin))
    try:
        yield
    finally:
        operator.raw_operator, operator.type = own


@contextmanager
def _passed_options(holder: Any, model: Any, twin: Any) -> Iterator[None]:
    """Apply a model's and its class's options to the equivalent within a context.

    The holder's options are the user's dict, which must not be changed.
    """
    given = holder.options
    holder.options = dict(given or {})
    for key in (type(model), id(model)):
        holder.add_options(id(twin), (given or {}).get(key))
    try:
        yield
    finally:
        holder.options = given


for _module in (sklearn_subqn, linear_model, ranking, svm):
    for _name in _module.__all__:
        _kind = getattr(_module, _name)
        if hasattr(_kind, "to_sklearn"):
            update_registered_converter(
                _kind,
                f"SklearnSubqn{_name}",
                _set_shapes,
                _convert,
                parser=_parse,
                # The options of the scikit-learn estimators.
                options={
                    "zipmap": [True, False, "columns"],
                    "nocl": [True, False],
                    "output_class_labels": [False, True],
                    "raw_scores": [True, False],
                },
            )

"""Classes that public estimators derive from: few enough to be read at once."""

import pytest
from _public import public_estimators

from sklearn_subqn._solving.callbacks import CallbackSupportMixin

MOST = 8


@pytest.mark.parametrize(("name", "kind"), public_estimators().items())
def test_estimators_derive_from_few_classes(name, kind):
    own = [
        base.__qualname__
        for base in kind.__mro__
        # Earlier versions of scikit-learn have a stand-in of the package here.
        if base.__module__.startswith("sklearn_subqn") and base != CallbackSupportMixin
    ]
    assert name.endswith(own[0])
    assert len(own) <= MOST, f"{name} derives from {', '.join(own[1:])}"

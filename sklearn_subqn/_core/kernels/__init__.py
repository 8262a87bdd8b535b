"""Compiled loops over plain arrays that are slow in NumPy.

A kernel takes and returns plain arrays and uses no classes of this package. It checks
the lengths of its arrays once, then runs without the interpreter's lock. Tests compare
each kernel with a NumPy implementation, in ``tests/kernels/test_kernels.py`` or in the
tests of its callers.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Return a kernel; its types are declared in Cython."""


try:
    from . import products as _products  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"The compiled part of sklearn_subqn is missing in {__path__[0]}. If that is a "
        "checkout, Python found its sources before the installed package: start it in "
        "another folder or with -P, or install with `pip install --editable .`."
    ) from error

"""Checks of parameters and data, and the errors that name what is accepted."""

from __future__ import annotations

import functools
import inspect
import numbers
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ._core.names import Axis, by_name
from ._core.options import Option
from ._names import did_you_mean

#: What ``alpha`` may be besides numbers.
AUTO = "auto"

_Method = TypeVar("_Method", bound=Callable[..., Any])

# Squared sums over a row of this size still are finite.
_LARGEST_VALUE = 1e140

# Kinds of dtypes that count as numbers: bool, integers, floats, complex. The last are
# refused by scikit-learn's check.
_NUMERIC = "biufc"

# So few classes are not many for any number of labels.
_FEW = 20


def check_number(
    name: str,
    value: Any,
    *,
    low: float,
    low_included: bool = True,
    high: float = np.inf,
    high_included: bool = True,
    integer: bool = False,
) -> None:
    """Raise unless ``value`` is a finite number from ``low`` to ``high``.

    Raises
    ------
    TypeError
        If it is no number, or no integer where one is needed.
    ValueError
        If it is too small or too large, infinite or NaN.
    """
    kind = numbers.Integral if integer else numbers.Real
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, kind):
        expected = "an integer" if integer else "a number"
        raise TypeError(
            f"{name} must be {expected}, got {value!r} of type {type(value).__name__}."
        )
    try:
        number = float(value)
    except OverflowError:
        # Integers may exceed every float.
        number = float(np.iinfo(np.int64).max) if integer else np.inf
    above = number >= low if low_included else number > low
    below = number <= high if high_included else number < high
    if not (above and below) or number == np.inf:
        bounds = f"{'>=' if low_included else '>'} {low:g}"
        if high == np.inf:
            bounds = f"finite and {bounds}"
        else:
            bounds += f" and {'<=' if high_included else '<'} {high:g}"
        raise ValueError(f"{name} must be {bounds}, got {value!r}.")


def check_strength(name: str, value: Any, *, may_be_zero: bool = False) -> None:
    """Raise unless ``value`` is a positive number, perhaps zero, or "auto"."""
    if isinstance(value, str):
        if value != AUTO:
            raise TypeError(
                f"{name} must be a number or 'auto', got {value!r} of type str."
            )
        return
    if isinstance(value, (list, tuple, np.ndarray)):
        raise TypeError(
            f"{name} must be a number or 'auto', got {value!r} of type "
            f"{type(value).__name__}. GridSearchCV and the estimators whose names end "
            "in CV choose among several values."
        )
    check_number(name, value, low=0.0, low_included=may_be_zero)


def check_fraction(name: str, value: Any) -> None:
    """Raise unless ``value`` is a number between 0 and 1."""
    check_number(
        name, value, low=0.0, low_included=False, high=1.0, high_included=False
    )


def check_flag(name: str, value: Any) -> None:
    """Raise TypeError unless ``value`` is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(
            f"{name} must be True or False, got {value!r} of type "
            f"{type(value).__name__}."
        )


def check_verbose(value: Any) -> None:
    """Raise unless ``value`` is an integer >= 0, or True or False."""
    if not isinstance(value, (bool, np.bool_)):
        check_number("verbose", value, low=0, integer=True)


def check_n_jobs(value: Any) -> None:
    """Raise unless ``value`` is None or an integer other than 0."""
    if value is None:
        return
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise TypeError(
            f"n_jobs must be None or an integer, got {value!r} of type "
            f"{type(value).__name__}."
        )
    if value == 0:
        raise ValueError(
            "n_jobs must be None, a positive number of threads, or negative to count "
            "from the number of processors; got 0."
        )


def check_callback(value: Any) -> None:
    """Raise TypeError unless ``value`` is None or can be called."""
    if value is not None and not callable(value):
        raise TypeError(
            f"callback must be callable or None, got {value!r} of type "
            f"{type(value).__name__}."
        )


def _from(low: float, **limits: Any) -> Callable[[str, Any], None]:
    """Return the check of a number from ``low`` on, as by ``check_number``."""
    return functools.partial(check_number, low=low, **limits)


def _optional(check: Callable[[str, Any], None]) -> Callable[[str, Any], None]:
    """Return the check of what may be None as well."""
    return lambda name, value: None if value is None else check(name, value)


_POSITIVE = _from(0.0, low_included=False)
_SHARE = _from(0.0, high=1.0)
_COUNT = _from(1, integer=True)

#: What parameters may be, by their names, which mean the same everywhere.
_PARAMETERS: dict[str, Callable[[str, Any], None]] = {
    "alpha": lambda name, value: check_strength(name, value),
    "tol": _from(0.0),
    "max_iter": _COUNT,
    "memory": _COUNT,
    "bundle_size": _optional(_from(2, integer=True)),
    "direction_tol": _from(0.0),
    "direction_max_iter": _COUNT,
    "l1_ratio": _SHARE,
    "min_freq": _from(0.0),
    "p": _from(1.0, low_included=False, high=2.0),
    "beta": _POSITIVE,
    "k": _optional(_COUNT),
    "quantile": check_fraction,
    "epsilon": _optional(_POSITIVE),
    "n_joint_features": _optional(_COUNT),
    "batch_size": _COUNT,
    "eta0": _optional(_POSITIVE),
    "tau": _optional(_POSITIVE),
    "validation_fraction": check_fraction,
    "n_iter_no_change": _COUNT,
    "average": check_flag,
    "early_stopping": check_flag,
    "fit_intercept": check_flag,
    "positive": check_flag,
    "refit": check_flag,
    "threshold": check_flag,
    "all_possible_states": check_flag,
    "all_possible_transitions": check_flag,
    "warm_start": check_flag,
    "n_jobs": lambda name, value: check_n_jobs(value),
    "callback": lambda name, value: check_callback(value),
    "verbose": lambda name, value: check_verbose(value),
}


def check_parameters(estimator: Any, but: Collection[str] = ()) -> None:
    """Raise for the first parameter that is not acceptable, of those with a rule.

    Parameters
    ----------
    estimator : estimator instance
    but : collection of str
        Names of parameters without effect, or with rules of their own.
    """
    for name, value in vars(estimator).items():
        if name == "alpha" and getattr(estimator, "_may_have_no_penalty", False):
            check_strength(name, value, may_be_zero=True)
        elif name in _PARAMETERS and name not in but:
            _PARAMETERS[name](name, value)
    if hasattr(estimator, "solver_options"):
        checked_options(estimator)


def checked_options(estimator: Any) -> dict[str, Any]:
    """Return what ``solver_options`` says, by the names that solvers read.

    Raises
    ------
    TypeError
        If it is no dict, or a value of another type than it must be.
    ValueError
        If the solver does not take an option, a value is out of range or has no effect,
        or a parameter says something else.
    """
    given = getattr(estimator, "solver_options", None)
    if given is None or "solver_options" in getattr(estimator, "_without_effect", ()):
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(
            "solver_options must be a dict from names of options to values, or None; "
            f"got {given!r} of type {type(given).__name__}."
        )
    solver, known = estimator.solver, estimator._known_options()
    for name in given:
        if name not in known:
            accepted = ", ".join(f"{each} ({known[each].range})" for each in known)
            raise ValueError(
                f"solver_options has {name!r}, which solver={solver!r} does not take. "
                + (f"Its options are {accepted}." if known else "It has no options.")
                + did_you_mean(name, known)
            )
    values = {name: option.default for name, option in known.items()} | dict(given)
    defaults = inspect.signature(type(estimator)).parameters
    for name, value in given.items():
        option = known[name]
        _check_option_of_solver(f"solver_options[{name!r}]", value, option)
        if option.needs is not None and values[option.needs[0]] != option.needs[1]:
            raise ValueError(
                f"solver_options[{name!r}] has no effect without "
                f"{option.needs[0]}={option.needs[1]!r}."
            )
        parameter = option.parameter
        if parameter in defaults:
            other = getattr(estimator, parameter)
            if other != defaults[parameter].default and other != value:
                raise ValueError(
                    f"{parameter}={other!r} and solver_options[{name!r}]={value!r} "
                    "contradict each other. Give one of them."
                )
    for name, option in known.items():
        limit = values.get(option.below)
        if limit is not None and not values[name] < limit:
            raise ValueError(
                f"The option {name} of solver={solver!r} must be less than "
                f"{option.below}, got {name}={values[name]!r} and "
                f"{option.below}={limit!r}."
            )
    return {known[name].setting or name: value for name, value in given.items()}


def _check_option_of_solver(name: str, value: Any, option: Option) -> None:
    """Raise unless a value is in the range of an option."""
    if option.optional and value is None:
        return
    if option.choices:
        check_option(name, value, option.choices)
    elif option.flag:
        check_flag(name, value)
    else:
        check_number(
            name,
            value,
            low=option.low,
            low_included=option.low_included,
            high=option.high,
            high_included=option.high_included,
            integer=option.integer,
        )


def check_option(name: str, value: Any, accepted: Sequence[str]) -> None:
    """Raise ValueError unless ``value`` is one of the accepted strings."""
    if not isinstance(value, str) or value not in accepted:
        options = ", ".join(repr(option) for option in accepted)
        raise ValueError(
            f"{name} must be one of {options}; got {value!r}."
            + did_you_mean(value, accepted, of_losses=name == "loss")
        )


def warn_of_unused(
    estimator: Any, defaults: Mapping[str, tuple[Any, str, Collection[str]]]
) -> list[str]:
    """Warn of parameters that were set, but belong to another choice than was made.

    Returns all that do.

    Parameters
    ----------
    estimator : estimator instance
    defaults : dict
        For each such parameter its default, the parameter that it depends on, and the
        values of that which use it.
    """
    unused = []
    for name, (default, depends_on, users) in defaults.items():
        value, choice = getattr(estimator, name), getattr(estimator, depends_on)
        if isinstance(choice, str) and choice in users:
            continue
        unused.append(name)
        if value is None if default is None else _equal(value, default):
            continue
        options = " or ".join(f"{depends_on}={user!r}" for user in users)
        got = repr(choice) if isinstance(choice, str) else type(choice).__name__
        shown = f"{name}={value!r}" if np.ndim(value) == 0 else name
        warnings.warn(
            f"{shown} has no effect with {depends_on}={got}: it belongs to {options}.",
            UserWarning,
            stacklevel=user_level(),
        )
    return unused


def _equal(value: Any, default: Any) -> bool:
    """Whether a parameter, of any type, has its default."""
    return isinstance(value, type(default) | numbers.Number) and value == default


def user_level() -> int:
    """Return the ``stacklevel`` of the first caller outside of libraries' ``fit``."""
    level, frame = 0, inspect.currentframe()
    ours = (__package__, "sklearn", "joblib")
    while frame is not None and frame.f_globals.get("__name__", "").startswith(ours):
        level, frame = level + 1, frame.f_back
    return level


def in_search() -> bool:
    """Whether this is a fit by which a search of scikit-learn tries parameters.

    Others are to follow: the best ones are fitted again.
    """
    names = set()
    frame = inspect.currentframe()
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith("sklearn.model_selection"):
            names.add((module.rsplit(".", 1)[-1], frame.f_code.co_name))
        frame = frame.f_back
    searching = any(module.startswith("_search") for module, _ in names)
    return searching and ("_validation", "_fit_and_score") in names


def check_records(estimator: Any, attribute: str) -> None:
    """Raise an error unless the estimator is fitted and has what is to be plotted."""
    check_is_fitted(estimator)
    if not hasattr(estimator, attribute):
        raise ValueError(
            f"This {type(estimator).__name__} has no {attribute}, which is plotted. Of "
            "a pipeline, give the last step; of a search, the best estimator."
        )


def check_sparse_structure(X: Any, name: str = "X") -> None:
    """Raise ValueError if a sparse X is not two-dimensional or inconsistent in itself.

    SciPy's compiled routines trust index arrays: converting or multiplying a corrupted
    matrix can crash the interpreter, so this comes before anything else. X is not
    changed, unlike by SciPy's own ``check_format``, which also lets pass what crashes
    later.
    """
    if not sparse.issparse(X):
        return
    if X.ndim != 2:
        raise ValueError(f"Expected 2D input, got a sparse array of shape {X.shape}.")
    try:
        fault = _FAULTS[X.format](X) if X.format in _FAULTS else None
    except Exception as error:  # a corrupted attribute can be anything
        fault = f"{type(error).__name__}: {error}"
    if fault:
        raise ValueError(
            f"{name} is a corrupted sparse matrix of format {X.format!r}: {fault}. "
            "Build it anew from valid values and index arrays."
        )


def check_unmasked(name: str, data: Any) -> None:
    """Raise ValueError if an array, or one of a list of arrays, has masked entries.

    NumPy's conversions drop the mask, and bring back the numbers that it hides.
    """
    if sparse.issparse(data):
        data = getattr(data, "data", None)
    for part in data if isinstance(data, (list, tuple)) else [data]:
        if isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part):
            raise ValueError(
                f"{name} has masked entries, which are missing values. Fill them, for "
                "example by sklearn.impute.SimpleImputer of X.filled(numpy.nan), or "
                "leave them out."
            )


def plain_csr(X: Any) -> Any:
    """Return a checked CSR matrix as compiled loops take it; others as they are.

    Its arrays are contiguous, its indices of one type, and its class is SciPy's own:
    others may have any shape, and methods of their own.
    """
    if not sparse.issparse(X) or X.format != "csr":
        return X
    arrays = X.data, X.indices, X.indptr
    plain = sparse.csr_array if isinstance(X, sparse.sparray) else sparse.csr_matrix
    same = X.indices.dtype == X.indptr.dtype and type(X) is plain
    if same and all(array.flags.c_contiguous for array in arrays):
        return X
    return plain(tuple(map(np.ascontiguousarray, arrays)), shape=X.shape)


def _fault_of_indices(name: str, indices: Any, length: int, bound: int) -> str | None:
    """Return what is wrong with index arrays that must lie in [0, bound)."""
    if fault := _fault_of_integers(name, indices):
        return fault
    if len(indices) != length:
        return f"{name} has {len(indices)} entries where {length} are needed"
    if length and not 0 <= indices.min() <= indices.max() < bound:
        return (
            f"{name} must lie between 0 and {bound - 1}, got values from "
            f"{indices.min()} to {indices.max()}"
        )
    return None


def _fault_of_integers(name: str, array: Any) -> str | None:
    if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind != "i":
        return f"{name} must be a one-dimensional array of signed integers"
    return None


def _fault_of_values(values: Any, ndim: int) -> str | None:
    if not isinstance(values, np.ndarray) or values.ndim != ndim:
        return f"data must be an array of {ndim} dimension{'s' if ndim > 1 else ''}"
    if values.dtype.kind not in _NUMERIC:
        return f"data must be numeric, got values of type {values.dtype}"
    return None


def _fault_of_compressed(X: Any, n_major: int, n_minor: int) -> str | None:
    """Return what is wrong with the index arrays of CSR, CSC and BSR."""
    indices, indptr = X.indices, X.indptr
    fault = _fault_of_indices("indices", indices, len(X.data), n_minor)
    fault = fault or _fault_of_integers("indptr", indptr)
    if fault:
        return fault
    if len(indptr) != n_major + 1:
        return f"indptr has {len(indptr)} entries where {n_major + 1} are needed"
    if indptr[0] != 0 or indptr[-1] > len(indices) or np.any(indptr[1:] < indptr[:-1]):
        return f"indptr must rise from 0 to at most the number {len(indices)} of values"
    return None


def _fault_of_csr(X: Any) -> str | None:
    return _fault_of_values(X.data, 1) or _fault_of_compressed(X, *X.shape)


def _fault_of_csc(X: Any) -> str | None:
    return _fault_of_values(X.data, 1) or _fault_of_compressed(X, *X.shape[::-1])


def _fault_of_bsr(X: Any) -> str | None:
    if fault := _fault_of_values(X.data, 3):
        return fault
    n_blocks = []
    for size, block in zip(X.shape, X.data.shape[1:], strict=True):
        if block == 0 or size % block:
            return f"blocks of shape {X.data.shape[1:]} do not tile shape {X.shape}"
        n_blocks.append(size // block)
    return _fault_of_compressed(X, *n_blocks)


def _fault_of_coo(X: Any) -> str | None:
    if fault := _fault_of_values(X.data, 1):
        return fault
    coords = X.coords if hasattr(X, "coords") else (X.row, X.col)
    if len(coords) != 2:
        return f"there must be coordinates of 2 axes, got {len(coords)}"
    for axis, (name, indices) in enumerate(zip(("row", "col"), coords, strict=True)):
        if fault := _fault_of_indices(name, indices, len(X.data), X.shape[axis]):
            return fault
    return None


def _fault_of_dia(X: Any) -> str | None:
    offsets = X.offsets
    if fault := _fault_of_values(X.data, 2) or _fault_of_integers("offsets", offsets):
        return fault
    if len(offsets) != len(X.data):
        return f"there are {len(X.data)} diagonals, but {len(offsets)} offsets"
    n, d = X.shape
    if len(offsets) and not -n < offsets.min() <= offsets.max() < d:
        return f"offsets must lie between {1 - n} and {d - 1}"
    if len(np.unique(offsets)) < len(offsets):
        return "offsets must differ"
    return None


def _fault_of_lil(X: Any) -> str | None:
    n, d = X.shape
    for name, lists in (("rows", X.rows), ("data", X.data)):
        if not isinstance(lists, np.ndarray) or lists.shape != (n,):
            return f"{name} must be an array of {n} lists"
    for row, (columns, values) in enumerate(zip(X.rows, X.data, strict=True)):
        if not isinstance(columns, list) or not isinstance(values, list):
            return f"rows[{row}] and data[{row}] must be lists"
        # An empty list would become an array of floats.
        indices = np.array(columns) if columns else np.empty(0, dtype=int)
        if fault := _fault_of_indices(f"rows[{row}]", indices, len(values), d):
            return fault
        if values and not _can_hold(X, np.array(values)):
            return f"data[{row}] must be numeric"
    return None


def _fault_of_dok(X: Any) -> str | None:
    stored = list(X.keys())
    if not stored:
        return None
    pairs = all(isinstance(key, tuple) and len(key) == 2 for key in stored)
    keys = np.array(stored if pairs else [])
    if keys.ndim != 2 or keys.dtype.kind != "i":
        return "keys must be pairs of integers"
    if np.any(keys < 0) or np.any(keys >= np.array(X.shape)):
        return f"keys must lie within shape {X.shape}"
    if not _can_hold(X, np.array(list(X.values()))):
        return "values must be numeric"
    return None


def _can_hold(X: Any, values: npt.NDArray[Any]) -> bool:
    """Return whether X of its dtype can hold the values."""
    kind = values.dtype.kind
    return kind in _NUMERIC and (kind != "c" or X.dtype.kind == "c")


_FAULTS: dict[str, Callable[[Any], str | None]] = {
    "csr": _fault_of_csr,
    "csc": _fault_of_csc,
    "bsr": _fault_of_bsr,
    "coo": _fault_of_coo,
    "dia": _fault_of_dia,
    "lil": _fault_of_lil,
    "dok": _fault_of_dok,
}


def check_range(X: Any, estimator_name: str) -> None:
    """Raise ValueError if X is not finite, or if products of its values can overflow.

    Parameters
    ----------
    X : array or sparse matrix of floats
    estimator_name : str
        For scikit-learn's advice on missing values.
    """
    values = (X.data if sparse.issparse(X) else X).ravel(order="K")
    # The sum of squares takes one reading, and is enough unless it is large itself.
    with np.errstate(over="ignore", invalid="ignore"):
        if float(values @ values) <= _LARGEST_VALUE:
            return
    assert_all_finite(X, estimator_name=estimator_name, input_name="X")
    if max(float(values.max()), -float(values.min())) > _LARGEST_VALUE:
        raise ValueError(
            f"X contains values beyond {_LARGEST_VALUE:g} in magnitude, whose products "
            "overflow. Scale the features, for example by "
            "sklearn.preprocessing.MaxAbsScaler."
        )


def check_targets(y: Any) -> npt.NDArray[np.float64]:
    """Return numbers to be predicted as a new array of finite float64.

    Numbers among objects are converted only here.

    Raises
    ------
    TypeError
        If they are times: their numbers depend on the unit that they are stored in.
    ValueError
        If they are no numbers, or not finite.
    """
    check_no_times(y)
    try:
        targets = np.array(y, dtype=np.float64, order="F")
    except ValueError as error:
        raise ValueError(f"y must be numbers: {error}.") from error
    assert_all_finite(targets, input_name="y")
    return targets


def check_no_times(y: Any) -> None:
    """Raise TypeError if y is of dates, times or durations, which NumPy can convert.

    These depend on the unit that they happen to be stored in.
    """
    dtype = np.asarray(y).dtype
    if dtype.kind in "mM":
        raise TypeError(
            f"y must be numbers, got values of type {dtype}. Convert times to numbers "
            "of a unit, for example by (y - y[0]) / np.timedelta64(1, 'D')."
        )


def check_labels(y: Any) -> None:
    """Raise ValueError if y has missing entries that are not numbers, or lists NUL.

    scikit-learn finds NaN among numbers, but turns it into the label "nan" among
    strings, fails with other errors at None and at NA of pandas, and drops masks.
    """
    check_unmasked("y", y)
    if hasattr(y, "isna"):  # pandas
        missing = bool(np.any(y.isna()))
    elif hasattr(y, "is_null"):  # polars, pyarrow
        missing = bool(np.any(np.asarray(y.is_null())))
    else:
        is_object = getattr(y, "dtype", None) == np.dtype(object)
        missing = (is_object or isinstance(y, (list, tuple))) and any(
            map(is_missing, np.ravel(y) if is_object else y)
        )
    if missing:
        raise ValueError(
            "Input y contains NaN, None or NA. Leave samples without a label out."
        )
    if isinstance(y, (list, tuple)):
        check_no_nul(y)


def check_classes(classes: Any) -> npt.NDArray[Any]:
    """Return the sorted labels that a stream is going to have.

    Raises
    ------
    ValueError
        If ``classes`` is not one-dimensional or has missing entries.
    """
    labels = list(classes) if isinstance(classes, (set, frozenset)) else classes
    if np.ndim(labels) != 1:
        raise ValueError(
            f"classes must be a sequence of labels such as [0, 1], got {classes!r}."
        )
    check_no_nul(labels)
    if any(map(is_missing, labels)):
        raise ValueError(f"classes must not contain NaN, None or NA, got {classes!r}.")
    return np.unique(labels)


def check_no_nul(labels: Iterable[Any]) -> None:
    """Raise ValueError if a label ends with NUL, which arrays of strings leave out."""
    for label in labels:
        if isinstance(label, (str, bytes)) and label[-1:] in ("\0", b"\0"):
            raise ValueError(
                "Labels must not end with the character NUL, which arrays of strings "
                f"of NumPy leave out; got {label!r}."
            )


def is_missing(label: Any) -> bool:
    return (
        label is None
        or (isinstance(label, (float, np.floating)) and bool(label != label))
        or type(label).__name__ in ("NAType", "NaTType")
    )


def check_weights(
    sample_weight: Any,
    X: Any,
    y: npt.NDArray[Any],
    class_weight: Any,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[Any]]:
    """Return normalized row weights and the classes that have any; checks labels too.

    Parameters and errors are those of ``weights_of_classes``, with a matrix X of
    n_samples rows.
    """
    classes = distinct_classes(y)
    return weights_of_classes(sample_weight, X.shape[0], y, classes, class_weight)


def weights_of_classes(
    sample_weight: Any,
    n: int,
    y: npt.NDArray[Any],
    classes: npt.NDArray[Any],
    class_weight: Any,
) -> tuple[npt.NDArray[np.float64], npt.NDArray[Any]]:
    """Return normalized row weights and the classes that have any.

    Parameters
    ----------
    sample_weight : None, number or array-like of shape (n_samples,)
    n : int
        n_samples.
    y : ndarray of shape (n_samples,)
    classes : ndarray
        The sorted distinct labels.
    class_weight : None, "balanced" or dict
        As in scikit-learn; multiplies ``sample_weight``. A row of weight 2 counts as
        two rows when classes are balanced.

    Returns
    -------
    weights : ndarray of shape (n_samples,)
        Sum to one. A row of weight zero has no influence.
    classes : ndarray
        Sorted classes of the rows with positive weight.

    Raises
    ------
    ValueError
        If labels are no classes, or weights are negative, not finite, all zero, of the
        wrong shape, or leave fewer than two classes.
    """
    weights = check_sample_weight(sample_weight, n)
    used = weights > 0.0
    if not used.all():
        classes = _distinct(y[used])
    if len(classes) < 2:
        raise ValueError(
            "This classifier needs samples of at least 2 classes in the data, but the "
            f"data contains only one class with positive weight: {classes[0]}."
        )
    if class_weight is not None:
        check_class_weight(class_weight)
        per_class = compute_class_weight(
            class_weight, classes=classes, y=y[used], sample_weight=weights[used]
        )
        if np.count_nonzero(per_class) < 2:
            raise ValueError(
                "class_weight leaves fewer than 2 classes with positive weight: "
                f"{class_weight!r}."
            )
        per_class = per_class / per_class.max()
        weights[used] *= per_class[np.searchsorted(classes, y[used])]
        weights /= weights.sum()
        classes = classes[per_class > 0.0]
    return weights, classes


def distinct_classes(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the sorted classes of labels; raise ValueError if these are continuous."""
    if y.dtype.kind not in _NUMERIC:
        check_classification_targets(y)
        return _distinct(y)
    classes = _distinct(y)
    # scikit-learn's check takes longer, and refuses what is not whole; it warns if
    # there are many classes for the number of labels.
    if len(classes) > _FEW or np.any(classes != np.rint(classes)):
        check_classification_targets(y)
    return classes


def _distinct(y: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the sorted distinct entries, without sorting all where two are numbers."""
    if y.dtype.kind in _NUMERIC:
        low, high = y.min(), y.max()
        if np.count_nonzero(y == low) + np.count_nonzero(y == high) >= len(y):
            return np.unique(np.array([low, high]))
    return np.unique(y)


def check_sample_weight(sample_weight: Any, n: int) -> npt.NDArray[np.float64]:
    """Return row weights of shape (n,), normalized to sum to one.

    Raises
    ------
    ValueError
        If weights are negative, not finite, all zero, or of the wrong shape.
    """
    if sample_weight is None:
        return np.full(n, 1.0 / n)
    weights = non_negative_weights(sample_weight, n)
    if not np.any(weights > 0.0):
        raise ValueError(
            "Sample weights must contain at least one non-zero number; all are zero."
        )
    # Dividing by the largest one first keeps the sum from overflow or underflow.
    weights = weights / weights.max()
    weights /= weights.sum()
    return weights


def non_negative_weights(sample_weight: Any, n: int) -> npt.NDArray[np.float64]:
    """Return ``sample_weight`` as a new array of shape (n,); any sum will do.

    Raises
    ------
    ValueError
        If weights are negative, not finite, or of the wrong shape.
    """
    weights = as_sample_weights(sample_weight, n)
    if not np.all(np.isfinite(weights)):
        raise ValueError("sample_weight must be finite.")
    if np.any(weights < 0.0):
        raise ValueError("Negative values in data passed to `sample_weight`.")
    return weights


def total_of(sample_weight: Any, n: int) -> float:
    """Return the sum of checked weights of n rows."""
    if sample_weight is None or isinstance(sample_weight, numbers.Real):
        return n * float(1.0 if sample_weight is None else sample_weight)
    return float(np.sum(np.asarray(sample_weight, dtype=np.float64)))


def as_sample_weights(sample_weight: Any, n: int) -> npt.NDArray[np.float64]:
    """Return ``sample_weight`` as a new array of shape (n,)."""
    if sample_weight is None or isinstance(sample_weight, numbers.Real):
        return np.full(n, 1.0 if sample_weight is None else sample_weight, float)
    check_unmasked("sample_weight", sample_weight)
    try:
        weights = check_array(
            sample_weight,
            ensure_2d=False,
            dtype=np.float64,
            input_name="sample_weight",
        )
    except (TypeError, ValueError) as error:
        if "sample_weight" in str(error):
            raise
        raise type(error)(f"sample_weight is not acceptable: {error}") from error
    if weights.ndim != 1:
        raise ValueError(
            f"Sample weights must be 1D array or scalar, got {weights.ndim}D array."
        )
    if len(weights) != n:
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n,)}.")
    return np.array(weights, dtype=float)


def check_offset(offset: Any, n: int) -> npt.NDArray[np.float64]:
    """Return numbers to be added to scores as a new array of shape (n,).

    Raises
    ------
    TypeError, ValueError
        If they are not numbers, not finite, or of another shape.
    """
    offsets = _real_numbers("offset", offset)
    if offsets.shape != (n,):
        raise ValueError(
            f"offset must have one number for each of the {n} samples, shape {(n,)}; "
            f"got shape {offsets.shape}."
        )
    if not np.all(np.isfinite(offsets)):
        raise ValueError(
            "offset must be finite. Logarithms of exposures are so of positive ones; "
            "leave out samples without exposure."
        )
    return offsets


def check_class_weight(class_weight: Any) -> None:
    """Raise ValueError unless it is "balanced" or a dict to non-negative numbers."""
    if not isinstance(class_weight, dict):
        if not isinstance(class_weight, str) or class_weight != "balanced":
            raise ValueError(
                "class_weight must be a dict from labels to weights, 'balanced' or "
                f"None, got {class_weight!r}."
            )
        return
    for weight in class_weight.values():
        if not isinstance(weight, numbers.Real) or not 0.0 <= float(weight) < np.inf:
            raise ValueError(
                "class_weight must map labels to non-negative finite numbers, got "
                f"{class_weight!r}."
            )


def class_factors(
    class_weight: Any,
    classes: npt.NDArray[Any],
    y: npt.NDArray[Any],
    sample_weight: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Return the factor of each class on the weights of its rows, of shape (k,).

    Parameters
    ----------
    class_weight : None, "balanced" or dict
        Checked.
    classes : ndarray of shape (k,)
        With positive weight.
    y, sample_weight : ndarray of shape (n,)
    """
    if class_weight is None:
        return np.ones(len(classes))
    used = sample_weight > 0.0
    factors: npt.NDArray[np.float64] = compute_class_weight(
        class_weight,
        classes=np.unique(y[used]),
        y=y[used],
        sample_weight=sample_weight[used],
    )
    return factors[np.isin(np.unique(y[used]), classes)]


def row_weights(
    class_weight: Any,
    classes: npt.NDArray[Any],
    y: npt.NDArray[Any],
    sample_weight: Any,
) -> npt.NDArray[np.float64]:
    """Return the weights of rows, with factors of their classes, of any sum.

    Parameters
    ----------
    class_weight, classes, y
        As of ``class_factors``.
    sample_weight : None, number or array-like of shape (n,)
    """
    weights = as_sample_weights(sample_weight, len(y))
    if class_weight is None:
        return weights
    factors = class_factors(class_weight, classes, y, weights)
    return np.asarray(
        weights
        * factors[np.minimum(np.searchsorted(classes, y), len(classes) - 1)]
        * np.isin(y, classes)
    )


def unchanged_on_failure(method: _Method) -> _Method:
    """Make a method that raises leave the estimator's attributes as they were."""

    @functools.wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return guarded  # type: ignore[return-value]


def check_label_cost(label_cost: Any, labels: Axis) -> npt.NDArray[np.float64]:
    """Return the cost of the second label in place of the first, for all pairs.

    ``None`` means one off the diagonal.

    Raises
    ------
    ValueError
        If costs are of the wrong shape, not finite, negative, or not zero on the
        diagonal, or have names of other labels.
    """
    if label_cost is None:
        return 1.0 - np.eye(len(labels.labels))
    costs = _checked_costs("label_cost", label_cost, labels, labels)
    if np.any(costs.diagonal()):
        raise ValueError("label_cost must be zero on the diagonal.")
    return costs


def check_rescaling(
    rescaling: Any, costs: npt.NDArray[np.float64], labels: Axis
) -> str | npt.NDArray[np.float64]:
    """Return the way to scale margins of labels that have such costs.

    Raises
    ------
    ValueError
        If rates are of the wrong shape, not finite, negative, or zero beside a cost, or
        have names of other labels.
    """
    if isinstance(rescaling, str):
        return rescaling
    rates = _checked_costs("rescaling", rescaling, labels, labels)
    lost = np.argwhere((rates == 0.0) & (costs > 0.0))
    if lost.size:
        y, j = lost[0]
        raise ValueError(
            f"rescaling must be positive where label_cost is, got 0 beside a cost of "
            f"{costs[y, j]:g} in row {y}, column {j}: no scores could avoid that cost."
        )
    return rates


def _checked_costs(
    name: str, values: Any, rows: Axis, columns: Axis
) -> npt.NDArray[np.float64]:
    shape = len(rows.labels), len(columns.labels)
    costs = check_matrix(name, by_name(name, values, rows, columns), shape)
    if np.any(costs < 0.0):
        raise ValueError(f"{name} must be non-negative, got {costs.min():g}.")
    if costs.max(initial=0.0) > _LARGEST_VALUE:
        raise ValueError(f"{name} must not exceed {_LARGEST_VALUE:g}.")
    return costs


def check_matrix(
    name: str, values: Any, shape: tuple[int, int]
) -> npt.NDArray[np.float64]:
    """Return a parameter of finite numbers as a new array of a shape.

    Raises
    ------
    TypeError, ValueError
        If it is not acceptable; names the parameter.
    """
    check_unmasked(name, values)
    try:
        matrix = check_array(values, dtype=np.float64, ensure_2d=False, input_name=name)
    except (TypeError, ValueError) as error:
        if name in str(error):
            raise
        raise type(error)(f"{name} is not acceptable: {error}") from error
    if matrix.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {matrix.shape}.")
    return np.array(matrix, order="C")


def _real_numbers(name: str, values: Any) -> npt.NDArray[np.float64]:
    """Return an array-like as a new array in float64.

    Raises
    ------
    TypeError, ValueError
        If these are no real numbers: texts that look like numbers are none.
    """
    check_unmasked(name, values)
    try:
        given = np.asarray(values)
        if given.dtype.kind not in "buifO":
            raise ValueError(f"got an array of type {given.dtype}")
        return given.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name} must be an array of numbers: {error}") from error


def check_start(
    name: str, values: Any, shape: tuple[int, ...]
) -> npt.NDArray[np.float64]:
    """Return coefficients or intercepts to start from, of the shape of the attribute.

    Where that has one row, the row will do, and a number for an array of one.

    Raises
    ------
    TypeError, ValueError
        If they are no finite numbers, or of another shape.
    """
    if sparse.issparse(values):
        values = values.toarray()
    array = _real_numbers(name, values)
    accepted = [shape]
    if shape[:1] == (1,):
        accepted.append(shape[1:])
    if not shape:
        accepted.append((1,))
    if array.shape not in accepted:
        shapes = " or ".join(map(str, accepted))
        raise ValueError(f"{name} must have shape {shapes}, got {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity.")
    return array.reshape(shape)


def check_label_margins(label_cost: Any, labels: Axis) -> npt.NDArray[np.float64]:
    """Return margins of irrelevant and of relevant labels, or costs of their pairs.

    Of shape (2, n_labels), or (n_labels, n_labels) where that is another one. ``None``
    means margins of one half.

    Raises
    ------
    ValueError
        If they are of the wrong shape, not finite, negative or too large, or have names
        of other labels.
    """
    n_labels = len(labels.labels)
    if label_cost is None:
        return np.full((2, n_labels), 0.5)
    kinds = Axis("kinds of labels, irrelevant and relevant,", [0, 1])
    rows = kinds if np.shape(label_cost)[:1] == (2,) else labels
    label_cost = by_name("label_cost", label_cost, rows, labels)
    shape = np.shape(label_cost)
    if shape == (n_labels, n_labels) != (2, n_labels):
        return check_label_cost(label_cost, labels)
    if len(shape) == 2 and shape != (2, n_labels):
        raise ValueError(
            f"label_cost must have shape {(2, n_labels)} or {(n_labels, n_labels)}, "
            f"got {shape}."
        )
    return _checked_costs("label_cost", label_cost, kinds, labels)

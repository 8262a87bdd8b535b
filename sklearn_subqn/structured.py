"""Structured support vector machines with a proven distance from the optimum."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import joblib
import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ._callbacks import FitTask, with_callbacks
from ._core.design import Design
from ._core.regularizers import Regularizer, elastic_net
from ._core.risk_by_oracle import Answers, OracleHinge, OracleObjective
from ._core.solvers import STRUCTURED_SOLVERS, History, Start
from ._estimator import Estimator
from ._problems import Problems
from ._process import n_threads
from ._solution import Floats, Progress, Solution
from ._state import unchanged_on_failure
from ._validation import (
    check_number,
    check_option,
    check_parameters,
    check_sample_weight,
    check_sparse_structure,
    check_unmasked,
    total_of,
)

_PENALTIES = ("l2", "l1", "elasticnet")

# The automatic strength in units of the sizes of joint features: about that of C = 1
# for ten features of size one.
_K = 0.1

# Values may be too small by this share of their parts, for rounding.
_ROUNDING = 1e-9

# Products of larger entries overflow.
_LARGEST = 1e140

# Each thread gets so many parts of the samples, as some take longer than others.
_PARTS = 4


class StructuredSVM(Estimator):
    """Support vector machine for structures of one's own, with a proven gap.

    Structures y, such as sequences, matchings, segmentations or trees, are predicted
    as the maximizers of ``<w, joint_feature(x, y)>``. Minimizes

    ``alpha * Omega(w) + sum_i s_i loss_i / sum_i s_i`` with ``loss_i = max_y
    loss(y_i, y) + <w, joint_feature(x_i, y) - joint_feature(x_i, y_i)>``

    sample weights s, and the maximum over all structures that x_i may have, and reports
    how far the result is from the optimum at most.

    Parameters
    ----------
    joint_feature : callable
        ``joint_feature(x, y)`` returns the features of a sample with a structure, d
        numbers: an array of shape (d,), a sparse row of shape (1, d) or (d,), or a
        dict from indices to values, which needs ``n_joint_features``.
    loss_augmented_argmax : callable
        ``loss_augmented_argmax(x, y, w)`` returns the structure ``y_hat`` with the
        largest ``loss(y, y_hat) + <w, joint_feature(x, y_hat)>``, or as ``rescaling``
        says. With ``y=None``, as for predictions, the loss is left out. w is a
        read-only array of shape (d,). The maximum has to be exact, as the proofs rest
        on it. Structures that break hard constraints are simply not considered; true
        ones have to obey these.
    loss : callable or None, default=None
        ``loss(y, y_hat)`` returns what ``y_hat`` costs in place of the true structure
        y, zero for the latter itself and never negative. ``None`` means one unless
        they are equal.
    rescaling : {"margin", "slack"}, default="margin"
        With "slack" the loss is a factor: ``loss_i = max_y loss(y_i, y) * (1 + <w,
        joint_feature(x_i, y) - joint_feature(x_i, y_i)>)``. ``loss_augmented_argmax``
        has to find that maximum.
    alpha : float or "auto", default="auto"
        Strength of the penalty against the *mean* loss, positive. ``C = 1 / (n *
        alpha)`` for n samples, where other packages sum the losses. "auto" is ``0.1 m /
        n`` for squares and ``0.1 sqrt(m / n)`` for the L1 norm, where n is the sum of
        the weights and m the mean of ``||joint_feature(x_i, y_i)||²``.
    penalty : {"l2", "l1", "elasticnet"}, default="l2"
        Omega: ``||w||² / 2``, ``||w||_1``, or ``l1_ratio`` times the latter plus ``1 -
        l1_ratio`` times the former.
    l1_ratio : float, default=0.5
        Share of the L1 norm in the elastic net, between 0 and 1.
    solver : {"auto", "n-slack", "bmrm", "ls-bmrm", "bmrm-aggregated", \
            "proximal-bundle", "trust-region-bundle"}, default="auto"
        "n-slack", which "auto" is, remembers the structures found for each sample, and
        minimizes the risk of these between calls of ``loss_augmented_argmax``. It
        needs 20 to 60 calls for each sample, mostly. The others remember a mean over
        the samples each time, which takes less memory and ten times the calls, or more;
        the last three are for the L2 penalty.
    tol : float, default=1e-3
        Stop when the objective is proven to be within ``tol`` times itself of the
        optimum.
    max_iter : int, default=1000
        Limit on the number of iterations, at least 1. Each calls
        ``loss_augmented_argmax`` once for every sample with "n-slack" and "bmrm", and
        several times with the others.
    bundle_size : int or None, default=None
        Number of cuts that "n-slack", "bmrm" and "ls-bmrm" keep, at least 2; ``None``
        for no limit.
    n_joint_features : int or None, default=None
        Number d of joint features; ``None`` for that of arrays or sparse rows.
    warm_start : bool, default=False
        Whether to start from the previous solution, if it has as many features.
    solver_options : dict or None, default=None
        Further options of the solver, such as those of its publication, by name. Which
        ones each solver takes, with their ranges and defaults, is in the table of
        `docs/methods.md`; others are refused.
    n_jobs : int or None, default=None
        Number of threads in which structures are found; the model does not depend on
        it. They help where ``loss_augmented_argmax`` releases the interpreter's lock.
        ``None`` means 1 unless in a :func:`joblib.parallel_config` context, which may
        also ask for processes; ``-1`` means all processors.
    callback : callable or None, default=None
        Called after every iteration with a named tuple of ``n_iter``, ``objective``,
        ``dual_gap``, ``passes`` and ``seconds``; fitting stops if it returns True.
    verbose : int, default=0
        Print progress at iterations 0, 1, 2, 4, 8, ... if 1, at each if larger.

    Attributes
    ----------
    coef_ : ndarray of shape (n_joint_features,)
        The weights w.
    alpha_ : float
        The strength of the penalty that was used.
    objective_ : float
        Objective at the weights.
    dual_gap_ : float
        ``objective_ - dual_gap_`` is a lower bound on the optimum, proven up to
        rounding in float64.
    n_iter_ : int
        Number of iterations.
    history_ : list of one History
        Objective, lower bound, passes and seconds after each iteration; a pass finds a
        structure for every sample. See :class:`ConvergenceDisplay`.
    plan_ : str
        How "auto" chose to solve the problem, or the solver.

    See Also
    --------
    LinearChainCRF : Sequences of labels, with ``loss="hinge"`` as such a machine.
    MulticlassHingeClassifier, MultilabelHingeClassifier : Where structures are classes
        or sets of labels, much faster.

    Notes
    -----
    There is no intercept: a joint feature that is always the same has no effect.
    Hamming losses, and others that add up over the parts of a structure, are maximized
    like the scores: cost and score of each part are added.

    References
    ----------
    I. Tsochantaridis, T. Joachims, T. Hofmann, Y. Altun (2005), Large Margin Methods
    for Structured and Interdependent Output Variables, JMLR 6. T. Joachims, T. Finley,
    C.-N. Yu (2009), Cutting-Plane Training of Structural SVMs, Machine Learning 77.
    C.-H. Teo, S.V.N. Vishwanathan, A. Smola, Q. Le (2010), Bundle Methods for
    Regularized Risk Minimization, JMLR 11: Alg. 3, eq. 18 to 24.

    Examples
    --------
    Three classes as structures: the joint features are x in the place of its class.

    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn_subqn import StructuredSVM
    >>> X, y = load_iris(return_X_y=True)
    >>> def joint_feature(x, y):
    ...     return np.outer(np.arange(3) == y, x).ravel()
    >>> def loss_augmented_argmax(x, y, w):
    ...     scores = w.reshape(3, 4) @ x
    ...     if y is not None:
    ...         scores += np.arange(3) != y
    ...     return int(scores.argmax())
    >>> svm = StructuredSVM(joint_feature, loss_augmented_argmax, alpha=1e-2).fit(X, y)
    >>> bool(svm.dual_gap_ <= 1e-3 * svm.objective_)
    True
    >>> round(svm.score(X, y), 2)
    0.95
    """

    _solvers = STRUCTURED_SOLVERS

    coef_: Floats
    objective_: float
    dual_gap_: float
    n_iter_: int
    history_: list[History]

    def __init__(
        self,
        joint_feature: Callable[[Any, Any], Any],
        loss_augmented_argmax: Callable[[Any, Any, Floats], Any],
        loss: Callable[[Any, Any], float] | None = None,
        *,
        rescaling: str = "margin",
        alpha: float | str = "auto",
        penalty: str = "l2",
        l1_ratio: float = 0.5,
        solver: str = "auto",
        tol: float = 1e-3,
        max_iter: int = 1000,
        bundle_size: int | None = None,
        n_joint_features: int | None = None,
        warm_start: bool = False,
        solver_options: Mapping[str, Any] | None = None,
        n_jobs: int | None = None,
        callback: Callable[[Progress], Any] | None = None,
        verbose: int = 0,
    ) -> None:
        self.joint_feature = joint_feature
        self.loss_augmented_argmax = loss_augmented_argmax
        self.loss = loss
        self.rescaling = rescaling
        self.alpha = alpha
        self.penalty = penalty
        self.l1_ratio = l1_ratio
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.bundle_size = bundle_size
        self.n_joint_features = n_joint_features
        self.warm_start = warm_start
        self.solver_options = solver_options
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose

    @unchanged_on_failure
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> StructuredSVM:
        """Fit the model.

        Parameters
        ----------
        X : sequence of n objects
            Samples of any kind: a list, an array or a sparse matrix by its rows, or a
            DataFrame by its rows.
        y : sequence of n objects
            True structures of any kind.
        sample_weight : array-like of shape (n,), default=None
            Non-negative weights; default one. Samples of weight zero are left out.

        Returns
        -------
        self : StructuredSVM
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            If parameters or data are not acceptable, or what a callable returns, for
            one, a structure that is worse than the true one. Errors name the sample. A
            previously fitted estimator stays as it was.

        Warns
        -----
        ConvergenceWarning
            If ``tol`` was not reached; states the gap that was.
        """
        return self._fit(X, y, sample_weight)

    def predict(self, X: Any) -> list[Any]:
        """Return the structures with the largest ``<w, joint_feature(x, y)>``.

        Parameters
        ----------
        X : sequence of n objects
            Inputs, of which the functions of the constructor know what to make.

        Returns
        -------
        y : list of n structures
            For each input its best structure, as ``inference`` returns it.
        """
        check_is_fitted(self)
        w = _read_only(self.coef_)

        def find(samples: list[Any]) -> list[Any]:
            return [self.loss_augmented_argmax(x, None, w) for x in samples]

        return _in_threads(find, _items("X", X), self.n_jobs, np.geterr())

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return one minus the mean loss of the predictions.

        That is the share of correct structures where ``loss`` is None.

        Parameters
        ----------
        X : sequence of n objects
            Inputs, as in ``predict``.
        y : sequence of n objects
            True structures.
        sample_weight : array-like of shape (n,), default=None
            Weights of the samples in the mean, by default equal.

        Returns
        -------
        score : float
            Larger is better, at most one.
        """
        predicted, structures = self.predict(X), _items("y", y)
        if len(predicted) != len(structures):
            raise ValueError(
                "X and y must have as many samples as structures, got "
                f"{len(predicted)} and {len(structures)}."
            )
        weights = check_sample_weight(sample_weight, len(structures))
        loss = self.loss or _zero_one
        losses = [loss(*pair) for pair in zip(structures, predicted, strict=True)]
        return 1.0 - float(weights @ np.array(losses, dtype=float))

    def _check_parameters(self) -> None:
        """Raise for parameters that are not acceptable."""
        for name in ("joint_feature", "loss_augmented_argmax", "loss"):
            value = getattr(self, name)
            if not callable(value) and (name != "loss" or value is not None):
                raise TypeError(
                    f"{name} must be callable, got {value!r} of type "
                    f"{type(value).__name__}."
                )
        check_option("rescaling", self.rescaling, ["margin", "slack"])
        check_option("penalty", self.penalty, _PENALTIES)
        known = ["auto", *self._solvers]
        check_option("solver", self.solver, known)
        check_parameters(self, but=["l1_ratio"])
        if self.penalty == "elasticnet":
            check_number("l1_ratio", self.l1_ratio, low=0.0)
            if self.l1_ratio > 1.0:
                raise ValueError(f"l1_ratio must be <= 1, got {self.l1_ratio!r}.")
        if self._l1_ratio > 0.0:
            fitting = [k for k in known if k == "auto" or not self._solvers[k].l2_only]
            if self.solver not in fitting:
                raise ValueError(
                    f"solver={self.solver!r} does not support penalty="
                    f"{self.penalty!r}; solvers that do are "
                    f"{', '.join(map(repr, fitting))}."
                )

    def _encode(self, X: Any, y: Any, sample_weight: Any, **others: Any) -> Problems:
        samples, structures = _items("X", X), _items("y", y)
        if len(samples) != len(structures):
            raise ValueError(
                "X and y must have as many samples as structures, got "
                f"{len(samples)} and {len(structures)}."
            )
        if not samples:
            raise ValueError("X must have at least one sample, got none.")
        weights = check_sample_weight(sample_weight, len(samples))
        used = np.flatnonzero(weights)
        oracle = _Oracle(self, samples, structures, used)
        return _StructureProblem(self, oracle, weights[used])

    def _strength(self, problems: Any, y: Any, sample_weight: Any) -> float:
        """Return ``alpha``, or a strength by the sizes of joint features."""
        if not isinstance(self.alpha, str):
            self.alpha_ = float(self.alpha)
            return self.alpha_
        size = problems.mean_square / total_of(sample_weight, problems.n_samples)
        share = self._l1_ratio
        self.alpha_ = _K * (share * np.sqrt(size) + (1.0 - share) * size) or _K
        return self.alpha_

    @property
    def _l1_ratio(self) -> float:
        """The share of the L1 norm in the penalty."""
        return {"l2": 0.0, "l1": 1.0}.get(self.penalty, float(self.l1_ratio))

    def _regularizer(self, n: int) -> Regularizer:
        return elastic_net(n, self._l1_ratio)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Samples are objects of the user's own.
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        tags.no_validation = True
        return tags


class _StructureProblem(Problems):
    """The problem of structures, of which only an oracle is known.

    Parameters
    ----------
    estimator : StructuredSVM
        Gives the parameters.
    oracle : callable
    weights : ndarray of shape (n,)
        Of the samples; sum to one.
    """

    def __init__(
        self, estimator: StructuredSVM, oracle: _Oracle, weights: Floats
    ) -> None:
        self._oracle, self._weights = oracle, weights
        self._loss = OracleHinge(oracle, weights)
        self._regularizer = estimator._regularizer(oracle.n_features)
        start = Start(np.zeros(oracle.n_features))
        super().__init__(estimator, [type(estimator).__name__], [start], np.float64)

    @property
    def n_samples(self) -> int:
        """The number of samples with positive weights."""
        return len(self._weights)

    @property
    def mean_square(self) -> float:
        """The mean of the squared norms of the true structures' joint features."""
        return float(self._weights @ self._oracle.squares())

    def objective(self, index: int, alpha: float) -> OracleObjective:
        return OracleObjective(self._loss, self._regularizer, alpha)

    def start_from(self, previous: dict[str, Any]) -> None:
        if np.shape(previous.get("coef_", ())) == self.starts[0].w.shape:
            self.starts = [Start(previous["coef_"])]

    def attributes(self) -> dict[str, Any]:
        return {"coef_": self.starts[0].w}

    def solve(self, alpha: float | Floats, task: FitTask) -> list[Solution]:
        """Solve the problem, and check that its bound is one."""
        (solution,) = super().solve(alpha, task)
        bound = solution.history.lower_bound[-1]
        size = max(abs(bound), float(self._weights @ self._oracle.sizes))
        if bound - solution.objective > _ROUNDING * size:
            raise ValueError(
                "loss_augmented_argmax is not exact: structures that it found before "
                f"prove that the objective is at least {bound:.8g}; those that it "
                f"found in the end make it {solution.objective:.8g}."
            )
        return [solution]


class _Found(NamedTuple):
    """Joint features and cost of a structure.

    Attributes
    ----------
    columns : ndarray of int or None
        Indices of the values; None where there are all d.
    values : ndarray of float64
    cost : float
    """

    columns: npt.NDArray[Any] | None
    values: Floats
    cost: float


class _Summands(NamedTuple):
    """What the heights of structures are sums of; rounding is a share of that.

    Attributes
    ----------
    terms : array or sparse array of shape (n, d)
        Absolute values of the joint features of structures and true structures.
    costs : ndarray of shape (n,)
    """

    terms: Any
    costs: Floats

    def sizes(self, w: Floats) -> Floats:
        """Return the sums of absolute values at w, of shape (n,)."""
        return np.asarray(self.terms @ abs(w) + self.costs)


class _Oracle:
    """What ``loss_augmented_argmax`` finds for all samples, checked and in numbers.

    Parameters
    ----------
    estimator : StructuredSVM
        Has the callables.
    samples, structures : list of objects
    used : ndarray of int
        Which of them to ask for.

    Attributes
    ----------
    n_features : int
        Number d of joint features.
    sizes : ndarray of shape (n,)
        What rounding of the last answers' heights is a share of.
    """

    sizes: Floats

    def __init__(
        self,
        estimator: StructuredSVM,
        samples: list[Any],
        structures: list[Any],
        used: npt.NDArray[np.intp],
    ) -> None:
        self._functions: dict[str, Callable[..., Any]] = {
            "joint_feature": estimator.joint_feature,
            "loss_augmented_argmax": estimator.loss_augmented_argmax,
            "loss": estimator.loss or _zero_one,
        }
        self._slack = estimator.rescaling == "slack"
        self._n_jobs = estimator.n_jobs
        self._samples = [(int(i), samples[i], structures[i]) for i in used]
        self._last: tuple[Answers, _Summands] | None = None
        # Inside of fits floating-point errors are raised; not so in the user's code.
        self._errors: Any = np.geterr()
        first = self._call("joint_feature", *self._samples[0])
        self._is_sparse = sparse.issparse(first) or isinstance(first, Mapping)
        self.n_features = self._number(
            self._samples[0][0], first, estimator.n_joint_features
        )
        self._truths = self._matrix(self._of_samples(self._true))

    def squares(self) -> Floats:
        """Return the squared norms of the true structures' joint features, (n,)."""
        truths = sparse.csr_array(self._truths)
        return np.asarray(truths.multiply(truths).sum(axis=1)).ravel()

    def __call__(self, w: Floats) -> Answers:
        w = _read_only(w)
        found = self._of_samples(self._find, w)
        features = self._matrix(found)
        costs = np.array([each.cost for each in found])
        normals = features - self._truths
        terms = abs(features) + abs(self._truths)
        if self._slack:
            scale = sparse.diags_array(costs)
            normals, terms = scale @ normals, scale @ terms
        answers = Answers(Design(normals, fit_intercept=False), costs)
        heights, summands = answers.heights(w), _Summands(terms, costs)
        self.sizes = summands.sizes(w)
        self._check(heights, np.zeros(len(heights)), "the true structure")
        if self._last is not None:
            last, earlier = self._last
            self.sizes += earlier.sizes(w)
            self._check(heights, last.heights(w), "one that it found before")
        self._last = answers, summands
        return answers

    def _check(self, heights: Floats, others: Floats, name: str) -> None:
        """Raise ValueError where other structures are better than what was found."""
        worse = np.flatnonzero(others - heights > _ROUNDING * self.sizes)
        if worse.size:
            i = worse[0]
            raise ValueError(
                "loss_augmented_argmax must return the structure with the largest loss "
                f"plus score; for sample {self._samples[i][0]} it returned one that is "
                f"worse than {name} by {others[i] - heights[i]:.3g}."
            )

    def _true(self, index: int, x: Any, y: Any) -> _Found:
        found = self._found(index, x, y, y)
        if found.cost != 0.0:
            raise ValueError(
                "loss(y, y) of a true structure must be zero, got "
                f"{found.cost:g} for sample {index}."
            )
        return found

    def _find(self, index: int, x: Any, y: Any, w: Floats) -> _Found:
        return self._found(
            index, x, y, self._call("loss_augmented_argmax", index, x, y, w)
        )

    def _found(self, index: int, x: Any, y: Any, y_hat: Any) -> _Found:
        """Return joint features and cost of ``y_hat`` where y is true."""
        cost = self._call("loss", index, y, y_hat)
        if not isinstance(cost, (numbers.Real, np.bool_)) or not (
            0.0 <= float(cost) <= _LARGEST
        ):
            raise ValueError(
                f"loss must return a finite number >= 0, got {cost!r} for sample "
                f"{index}."
            )
        features = self._call("joint_feature", index, x, y_hat)
        self._number(index, features, self.n_features)
        columns = None
        if sparse.issparse(features):
            row = features.reshape((1, self.n_features)).tocoo()
            columns, values = row.col, row.data
        elif isinstance(features, Mapping):
            columns, values = np.array([*features]), np.array([*features.values()])
        else:
            values = np.asanyarray(features)
        check_unmasked(f"joint_feature of sample {index}", values)
        if np.iscomplexobj(values):
            raise ValueError(
                f"joint_feature of sample {index} has complex values; features must be "
                "real numbers."
            )
        values = values.astype(np.float64)
        if not np.all(np.abs(values) <= _LARGEST):
            raise ValueError(
                f"joint_feature of sample {index} has values that are not finite, or "
                f"beyond {_LARGEST:g} in magnitude."
            )
        return _Found(columns, values, float(cost))

    def _number(self, index: int, features: Any, expected: int | None) -> int:
        """Return the number of features; raise ValueError if it is not as expected."""
        if isinstance(features, Mapping):
            if expected is None:
                raise ValueError(
                    "n_joint_features must be set where joint_feature returns a dict."
                )
            for column in features:
                if (
                    not isinstance(column, numbers.Integral)
                    or not 0 <= int(column) < expected
                ):
                    raise ValueError(
                        "joint_feature must have keys from 0 to n_joint_features - 1 = "
                        f"{expected - 1}, got {column!r} for sample {index}."
                    )
            return expected
        shape = np.shape(features)
        row = len(shape) == 1 or (sparse.issparse(features) and shape[0] == 1)
        if not row or shape[-1] != (expected or shape[-1]) or not shape[-1]:
            size = "d" if expected is None else str(expected)
            raise ValueError(
                f"joint_feature must return an array of shape ({size},) or a sparse "
                f"row of that many columns, got shape {shape} for sample {index}."
            )
        return int(shape[-1])

    def _call(self, name: str, index: int, *args: Any) -> Any:
        """Return what a function of the user returns; errors get to name the sample."""
        try:
            return self._functions[name](*args)
        except Exception as error:
            error.add_note(f"Raised by {name} for sample {index}.")
            raise

    def _of_samples(self, function: Callable[..., _Found], *args: Any) -> list[_Found]:
        def of_part(part: list[Any]) -> list[_Found]:
            return [function(*sample, *args) for sample in part]

        return _in_threads(of_part, self._samples, self._n_jobs, self._errors)

    def _matrix(self, found: list[_Found]) -> Any:
        """Return the joint features, one row for each."""
        shape = len(found), self.n_features
        if not self._is_sparse and all(each.columns is None for each in found):
            return np.stack([each.values for each in found])
        columns = [
            np.arange(self.n_features) if each.columns is None else each.columns
            for each in found
        ]
        bounds = np.cumsum([0, *map(len, columns)])
        data = np.concatenate([each.values for each in found])
        matrix = sparse.csr_array((data, np.concatenate(columns), bounds), shape=shape)
        matrix.sum_duplicates()
        return matrix if self._is_sparse else matrix.toarray()


def _in_threads(
    function: Callable[[list[Any]], list[Any]],
    items: list[Any],
    n_jobs: int | None,
    errors: Any,
) -> list[Any]:
    """Return the results of a function of parts of the items, joined in order.

    ``errors`` is how NumPy treats floating-point errors there, as by ``np.geterr``.
    """

    def of_part(part: list[Any]) -> list[Any]:
        with np.errstate(**errors):
            return function(part)

    n = n_threads(n_jobs)
    if n == 1:
        return of_part(items)
    n_parts = min(_PARTS * n, len(items))
    bounds = [len(items) * i // n_parts for i in range(n_parts + 1)]
    parts = joblib.Parallel(n, prefer="threads")(
        joblib.delayed(of_part)(items[slice(*pair)]) for pair in pairwise(bounds)
    )
    return [result for part in parts for result in part]


def _items(name: str, data: Any) -> list[Any]:
    """Return samples or structures as a list."""
    check_sparse_structure(data, name)
    check_unmasked(name, data)
    if hasattr(data, "iloc"):
        return [data.iloc[i] for i in range(len(data))]
    if sparse.issparse(data):
        rows = data.tocsr()
        return [rows[[i]] for i in range(rows.shape[0])]
    if isinstance(data, (str, Mapping)) or not isinstance(data, Iterable):
        raise TypeError(
            f"{name} must be a sequence of objects, got {data!r} of type "
            f"{type(data).__name__}."
        )
    try:
        return list(data)
    except TypeError as error:  # arrays without dimensions
        raise TypeError(f"{name} must be a sequence of objects: {error}.") from error


def _read_only(w: Floats) -> Floats:
    view = w.view()
    view.flags.writeable = False
    return view


def _zero_one(y: Any, y_hat: Any) -> float:
    """Return whether structures differ."""
    if isinstance(y, np.ndarray) or isinstance(y_hat, np.ndarray):
        return float(not np.array_equal(y, y_hat))
    return float(y != y_hat)

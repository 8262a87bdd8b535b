"""Conditional random fields with sklearn-crfsuite's parameters."""

from __future__ import annotations

import pickle
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._chains.estimator import LinearChainCRF
from .._chains.reading import of_sequences
from .._checks import check_no_file, check_number, check_option
from .._checks.signatures import with_parameters
from .._checks.state import unchanged_on_failure
from .._core.arrays import Array
from .._core.solvers import History
from .._estimators.block_methods import refuse_collections
from .._estimators.estimator import Estimator, forget
from ._shared import warn

_LOG_LOSS = ("lbfgs", "l2sgd")
_PERCEPTRONS = ("ap", "pa", "arow")

# Parameters of the original's optimization methods and files.
_WITHOUT_EFFECT = {
    **dict.fromkeys(
        (
            "num_memories",
            "period",
            "delta",
            "linesearch",
            "max_linesearch",
            "calibration_eta",
            "calibration_rate",
            "calibration_samples",
            "calibration_candidates",
            "calibration_max_trials",
            "pa_type",
            "error_sensitive",
            "averaging",
            "variance",
            "gamma",
        ),
        "the method is chosen by the data.",
    ),
    "model_filename": "models are not kept in files; pickle the estimator.",
    "keep_tempfiles": "there are no temporary files.",
    "trainer_cls": "there is no trainer.",
}


class TrainingLog(NamedTuple):
    """The record of the training.

    Attributes
    ----------
    iterations : list of dict
        For each iteration "num", "loss" and "time".
    """

    iterations: list[dict[str, float]]

    @property
    def last_iteration(self) -> dict[str, float]:
        """The record of the last iteration."""
        return self.iterations[-1]


@with_parameters()
class CRF(Estimator):
    """Linear-chain conditional random field with sklearn-crfsuite's parameters.

    Minimizes ``sum_i loss_i + c1 * ||w||_1 + c2 * ||w||²`` over sequences, with the
    negative logarithm of the probability of the labels, and reports a proven bound on
    the distance from the optimum. Change the import in a script written for
    ``sklearn_crfsuite.CRF``; the notes list the differences.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"} or None, default=None
        "lbfgs", which None means: the objective above. "l2sgd": the same without
        ``c1``. "ap", "pa", "arow": ``sum_i loss_i + ||w||² / (2 * c)`` with the
        structured hinge, which these online methods approximate, with a warning.
    min_freq : float or None, default=None
        Pairs of an attribute and a label that occur less often have no weight.
    all_possible_states, all_possible_transitions : bool or None, default=None
        Whether all pairs of attributes and labels, and of labels, have a weight, or
        only the pairs in the training data.
    c1, c2 : float or None, default=None
        Strengths of the L1 and squared L2 penalties, non-negative and not both zero;
        None means 0 and 1.
    max_iterations : int or None, default=None
        Limit on the number of iterations; None for no limit.
    num_memories : int or None, default=None
        Without effect, like all parameters below with this note: the method is chosen
        from the data. A warning is raised if such a parameter is given.
    epsilon : float or None, default=None
        Stop when the proven gap is at most ``epsilon`` times the objective; None means
        1e-3.
    period, delta, linesearch, max_linesearch : default=None
        Without effect.
    calibration_eta, calibration_rate, calibration_samples : default=None
        Without effect.
    calibration_candidates, calibration_max_trials, pa_type : default=None
        Without effect.
    c : float or None, default=None
        Factor on the hinge for "ap", "pa" and "arow", positive; None means 1.
    error_sensitive, averaging, variance, gamma : default=None
        Without effect.
    verbose : bool, default=False
        Whether to print progress.
    model_filename : str or None, default=None
        Without effect: pickle the estimator.
    keep_tempfiles : bool, default=False
        Without effect: there are no temporary files.
    trainer_cls : default=None
        Without effect.

    Attributes
    ----------
    classes_ : list
        The labels.
    attributes_ : list of str
        Names of the attributes with a weight; as in CRFsuite's files, attributes
        without a weight are removed.
    num_attributes_ : int
        Their number.
    size_ : int
        Number of bytes of the pickled model.
    state_features_ : mapping
        Weights that are not zero, by pairs (attribute, label).
    transition_features_ : dict
        Weights that are not zero, by pairs (label, next label).
    objective_ : float
        Objective at the weights, as above.
    dual_gap_ : float
        ``objective_ - dual_gap_`` is a proven lower bound of the optimum, up to
        rounding in float64.
    n_iter_ : int
        Number of iterations.
    history_ : list of one History
        Objective, lower bound, passes over the data and seconds of each iteration. See
        :class:`ConvergenceDisplay`.
    training_log_ : TrainingLog
        ``iterations`` and ``last_iteration``, with "num", "loss" and "time".
    dev_score_ : float
        Share of the tokens of ``X_dev`` with correctly predicted labels, if given.
    model_ : LinearChainCRF
        The fitted model, which has n-best labelings and more.

    See Also
    --------
    LinearChainCRF : The same model by ``alpha = 2 * c2 / n_sequences``, with weights of
        sequences, constraints on transitions, and ``partial_fit``.

    Notes
    -----
    Differences from sklearn-crfsuite: the end of training is a proven relative gap; the
    online methods "ap", "pa" and "arow" are replaced by the optimum that they
    approximate; labels are in sorted order, and may be of any type; models are not read
    from or written to files of CRFsuite.

    Examples
    --------
    >>> from sklearn_subqn.crf import CRF
    >>> X = [[{"word": "the"}, {"word": "dog"}], [{"word": "a"}, {"word": "cat"}]]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN"]]
    >>> crf = CRF(c1=0.0, c2=0.1, max_iterations=100).fit(X, y)
    >>> crf.predict_single([{"word": "the"}, {"word": "cat"}])
    ['DET', 'NOUN']
    >>> bool(crf.dual_gap_ <= 1e-3 * crf.objective_)
    True
    """

    _without_effect: ClassVar[dict[str, str]] = _WITHOUT_EFFECT

    algorithm: str | None = None
    min_freq: float | None = None
    all_possible_states: bool | None = None
    all_possible_transitions: bool | None = None
    c1: float | None = None
    c2: float | None = None
    max_iterations: int | None = None
    num_memories: int | None = None
    epsilon: float | None = None
    period: int | None = None
    delta: float | None = None
    linesearch: str | None = None
    max_linesearch: int | None = None
    calibration_eta: float | None = None
    calibration_rate: float | None = None
    calibration_samples: int | None = None
    calibration_candidates: int | None = None
    calibration_max_trials: int | None = None
    pa_type: int | None = None
    c: float | None = None
    error_sensitive: bool | None = None
    averaging: bool | None = None
    variance: float | None = None
    gamma: float | None = None
    verbose: bool = False
    model_filename: str | None = None
    keep_tempfiles: bool = False
    trainer_cls: Any = None

    @unchanged_on_failure
    def fit(self, X: Any, y: Any, X_dev: Any = None, y_dev: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : iterable of sequences
            Training data: sequences of dicts from names to values, or of lists of
            names.
        y : iterable of label sequences
            The label of each token.
        X_dev, y_dev : as X and y, default=None
            Data to score the model on, see ``dev_score_``; the data do not affect the
            fit.

        Returns
        -------
        self : CRF
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            If parameters or data are invalid, or the fit overflows. A previously fitted
            estimator stays unchanged.

        Warns
        -----
        ConvergenceWarning
            If ``epsilon`` was not reached; the message states the gap.
        UserWarning
            If a parameter was set that has no effect, or an algorithm is replaced.
        """
        if (X_dev is None) != (y_dev is None):
            raise ValueError("X_dev and y_dev belong together: give both or neither.")
        refuse_collections(self, X)
        check_no_file("X", X, "a list of sequences")
        X = X if hasattr(X, "__len__") else list(X)
        n = len(X)
        # If there are no sequences, the model's ``fit`` raises an error.
        model = self._model(max(n, 1)).fit(X, y).sparsify()
        self.model_ = model
        self.classes_ = model.classes_.tolist()
        self.objective_ = n * model.objective_
        self.dual_gap_ = n * model.dual_gap_
        self.n_iter_ = model.n_iter_
        self.history_ = [history.in_units(n) for history in model.history_]
        forget(self, "dev_score_")
        if X_dev is not None:
            self.dev_score_ = model.score(X_dev, y_dev)
            if self.verbose:
                print(f"CRF: accuracy {self.dev_score_:.4f} on X_dev")
        return self

    def predict(self, X: Any) -> Array:
        """Return the most probable labeling of each sequence.

        Parameters
        ----------
        X : iterable of sequences
            As in ``fit``.

        Returns
        -------
        y : ndarray of lists of labels, of shape (n_sequences,)
            The labels of each sequence.
        """
        return np.asarray(self._fitted().predict(X))

    def predict_single(self, xseq: Any) -> list[Any]:
        """Return the most probable labels of one sequence.

        Parameters
        ----------
        xseq : sequence of tokens
            One sequence, in the form of the sequences in ``fit``.

        Returns
        -------
        labels : list
            The label of each token.
        """
        return self._fitted().predict_single(xseq)

    def predict_marginals(self, X: Any) -> Array:
        """Return the probabilities of the labels of each token.

        Parameters
        ----------
        X : iterable of sequences
            As in ``fit``.

        Returns
        -------
        marginals : ndarray of lists of dicts, of shape (n_sequences,)
            For each token a dict from labels to probabilities.
        """
        return np.asarray(self._fitted().predict_marginals(X))

    def predict_marginals_single(self, xseq: Any) -> list[dict[Any, float]]:
        """Return the probabilities of the labels of each token of one sequence.

        Parameters
        ----------
        xseq : sequence of tokens
            One sequence, in the form of the sequences in ``fit``.

        Returns
        -------
        marginals : list of dicts
            From labels to probabilities.
        """
        found: list[dict[Any, float]] = self._fitted().predict_marginals_single(xseq)
        return found

    def score(self, X: Any, y: Any) -> float:
        """Return the share of tokens whose label is predicted right.

        Parameters
        ----------
        X : iterable of sequences
            As in ``fit``.
        y : iterable of label sequences
            The label of each token.

        Returns
        -------
        accuracy : float
            Between 0 and 1.
        """
        return self._fitted().score(X, y)

    @property
    def state_features_(self) -> Any:
        """Weights that are not zero, by pairs (attribute, label)."""
        return self._of_model("state_features_")

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float]:
        """Weights that are not zero, by pairs (label, next label)."""
        found: dict[tuple[Any, Any], float] = self._of_model("transition_features_")
        return found

    @property
    def attributes_(self) -> list[Any]:
        """Names of the attributes."""
        return list(self._of_model("attributes_").tolist())

    @property
    def training_log_(self) -> TrainingLog:
        """Number, objective and time of each iteration."""
        if not hasattr(self, "history_"):
            raise AttributeError(
                "This CRF is not fitted yet, and has no training_log_."
            )
        return _log(self.history_[0])

    @property
    def num_attributes_(self) -> int:
        """Number of the attributes."""
        return len(self.attributes_)

    @property
    def tagger_(self) -> Any:
        """Raise an error with an alternative, since this attribute does not exist."""
        raise AttributeError(
            "CRF has no tagger_, since it does not run CRFsuite: predict, "
            "predict_marginals, state_features_ and transition_features_ have what "
            "it has, and model_ has n-best labelings."
        )

    @property
    def size_(self) -> int:
        """Number of bytes of the pickled model."""
        if not hasattr(self, "model_"):
            raise AttributeError("This CRF is not fitted yet, and has no size_.")
        return len(pickle.dumps(self.model_))

    def __sklearn_tags__(self) -> Any:
        return of_sequences(super().__sklearn_tags__())

    def _fitted(self) -> LinearChainCRF:
        # scikit-learn's check reads all attributes, which is slow for single sequences.
        if not hasattr(self, "model_"):
            check_is_fitted(self)
        return self.model_

    def _of_model(self, name: str) -> Any:
        if not hasattr(self, "model_"):
            raise AttributeError(f"This CRF is not fitted yet, and has no {name}.")
        return getattr(self.model_, name)

    def _model(self, n: int) -> LinearChainCRF:
        """Return the equivalent model for n sequences."""
        algorithm = "lbfgs" if self.algorithm is None else self.algorithm
        check_option("algorithm", algorithm, [*_LOG_LOSS, *_PERCEPTRONS])
        for name, reason in self._without_effect.items():
            value = getattr(self, name)
            if value is not None and value is not False:
                warn(f"{name}={value!r} has no effect: {reason}")
        given: dict[str, Any] = {
            "min_freq": self.min_freq or 0,
            "all_possible_states": bool(self.all_possible_states),
            "all_possible_transitions": bool(self.all_possible_transitions),
            "tol": 1e-3 if self.epsilon is None else self.epsilon,
            # Without a limit from the user, a fit takes as many iterations as it needs.
            "max_iter": self.max_iterations or 10**6,
            "verbose": int(self.verbose),
        }
        for name in ("c1", "c2", "c", "epsilon", "max_iterations"):
            value = getattr(self, name)
            if value is not None:
                check_number(name, value, low=0.0, low_included=name != "c")
        c1, c2 = (
            default if c is None else c
            for c, default in ((self.c1, 0.0), (self.c2, 1.0))
        )
        if algorithm in _LOG_LOSS:
            self._warn_of("c", algorithm)
            if algorithm == "l2sgd":
                self._warn_of("c1", algorithm)
                c1 = 0.0
            return LinearChainCRF.from_crfsuite(c1, c2, n_sequences=n, **given)
        c = 1.0 if self.c is None else self.c
        for name in ("c1", "c2"):
            self._warn_of(name, algorithm)
        warn(
            f"algorithm={algorithm!r} is replaced by the minimum of the structured "
            f"hinge: sum of losses + ||w||² / (2 * c), c={c:g}."
        )
        return LinearChainCRF(1.0 / (c * n), loss="hinge", **given)

    def _warn_of(self, name: str, algorithm: str) -> None:
        """Warn if a parameter is given that has no effect on the algorithm."""
        if getattr(self, name):
            warn(
                f"{name}={getattr(self, name)!r} has no effect with "
                f"algorithm={algorithm!r}."
            )


def _log(history: History) -> TrainingLog:
    """Return the record of a fit in the form of sklearn-crfsuite."""
    return TrainingLog(
        [
            {"num": k, "loss": value, "time": seconds}
            for k, (value, seconds) in enumerate(
                zip(history.objective, history.seconds, strict=True)
            )
        ][1:]
    )

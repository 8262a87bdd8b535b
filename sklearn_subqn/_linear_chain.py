"""Linear-chain conditional random fields with a proven distance from the optimum."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ._callbacks import FitTask, with_callbacks
from ._core import chain_design
from ._core.chain_design import ChainDesign, Pairs
from ._core.chain_inference import Lattice
from ._core.chain_stream import Seen, learn, merged
from ._core.losses import ChainHinge, ChainLogLoss, Loss
from ._core.objective import Objective
from ._core.regularizers import Regularizer, elastic_net
from ._core.risk import Risk
from ._core.solvers import CHAIN_SOLVERS, CHAIN_STREAMS, Options, Start
from ._estimator import forget
from ._linear_estimator import LinearEstimator
from ._process import n_threads
from ._sequences import (
    AttributeReader,
    Index,
    Sequences,
    StateFeatures,
    distinct_labels,
    flat_labels,
    has_words,
    is_empty,
    is_matrix,
    is_table,
    label_codes,
    rows_of_table,
    stack_matrices,
    starts_of_lengths,
)
from ._solution import Floats, Problem, Progress
from ._solve import solve
from ._state import unchanged_on_failure
from ._tables import by_size, data_frame
from ._transitions import TransitionRules
from ._validation import (
    as_sample_weights,
    check_class_weight,
    check_classes,
    check_labels,
    check_number,
    check_option,
    check_parameters,
    check_range,
    check_sample_weight,
    check_unmasked,
    checked_options,
)

Mask = npt.NDArray[np.bool_]

_LOSSES = ("log_loss", "hinge")

# The strength of streams, whose number of sequences is not known.
_STREAM_ALPHA = 1e-4

# Sums of weights may be off by this share.
_ROUNDING = 1e-9

_NO_STARTS: Index = np.zeros(1, dtype=np.intp)


def _is_log_loss(estimator: Any) -> bool:
    if estimator.loss != "log_loss":
        raise AttributeError(
            f"Probabilities need loss='log_loss', got loss={estimator.loss!r}."
        )
    return True


def _names_of_columns(model: Mapping[str, Any]) -> dict[Any, int]:
    """Return the columns by the names of attributes, or of those of tables."""
    names = model.get("feature_names_in_", ())
    return model["_columns"] or {name: j for j, name in enumerate(names)}


class Labeled(NamedTuple):
    """Training data.

    Attributes
    ----------
    data : Sequences
        Of T tokens and n sequences of positive weight.
    targets : ndarray of shape (T,)
        Codes of labels.
    weights, counts : ndarray of shape (n,)
        With and without class weights.
    """

    data: Sequences
    targets: Any
    weights: Floats
    counts: Floats


class LinearChainCRF(LinearEstimator):
    """Linear-chain conditional random field.

    Labels the tokens of sequences. Minimizes ``alpha * penalty(w) + sum_i s_i loss_i /
    sum_i s_i``, a mean over sequences of weights s_i, and reports how far the result is
    from the optimum at most.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the penalty against the *mean* loss of a sequence, positive. ``c2``
        of CRFsuite corresponds to ``alpha = 2 * c2 / n_sequences``, see
        :meth:`from_crfsuite`. "auto" is one divided by the sum of the weights of the
        sequences, as ``c2=0.5``; for ``partial_fit``, which does not know how many are
        to come, it is 1e-4.
    l1_ratio : float, default=0.0
        Share of L1 in the penalty ``l1_ratio * |w|_1 + (1 - l1_ratio) / 2 * ||w||²``,
        in [0, 1].
    loss : {"log_loss", "hinge"}, default="log_loss"
        The negative logarithm of the probability of a sequence's labels, or the
        structured hinge: the most by which other labelings violate their margins, see
        ``rescaling``.
    rescaling : {"margin", "slack"}, default="margin"
        What the number of wrong labels D of a labeling is in the hinge. "margin": ``max
        D + score - score of the right labels``, a margin that grows with D. "slack":
        ``max D * (1 + score - score of the right labels)``, which asks for a margin of
        one and charges violations by D; the time it takes grows with the square of the
        length of a sequence.
    solver : str, default="auto"
        Optimization method.

        - "auto": dual coordinate ascent over the sequences, and where that would take
          too much memory or becomes slow "lbfgs", with L1 "owlqn", or with the hinge
          "ls-bmrm".
        - "dual-ascent": dual coordinate ascent over the sequences.
        - "lbfgs": the limited-memory quasi-Newton method, log loss with L2 only.
        - "owlqn": OWL-QN, its variant for L1, log loss only.
        - "ls-bmrm": bundle method with line searches.
        - "sgd", "smd", "olbfgs": stochastic gradient descent, stochastic meta-descent
          and online L-BFGS on batches of sequences, log loss with L2 only; there to be
          compared. An iteration is a pass over the sequences in random order, and its
          end gives a bound. ``partial_fit`` learns by dual ascent whatever the solver.
    all_possible_states : bool, default=False
        Whether all pairs of an attribute and a label have a weight, or those only that
        training data have.
    all_possible_transitions : bool, default=False
        Whether all pairs of labels have a weight, or those only that training data
        have. Those without a weight are possible and score zero.
    min_freq : float, default=0
        Pairs of an attribute and a label, or of labels, have no weight if they are in
        fewer places of the training data, which count by ``sample_weight``.
    transition_constraints : {"BIO", "IOB1", "IOB2", "BIOES", "BILOU"}, \
            list of pairs, array or None, default=None
        Which labels may follow which, in training and prediction. Schemes also say
        which labels a sequence may begin and end with.

        - "BIO" or "IOB2": labels are "O", "B-X" and "I-X", of types X of chunks, or "B"
          and "I" where there are no types; only "B-X" and "I-X" go before "I-X", with
          which no sequence begins.
        - "IOB1": "I-X" may begin a chunk, too, and "B-X" only a chunk that follows one
          of the same type: "B-X" and "I-X" go before "B-X", with which no sequence
          begins.
        - "BIOES": as "BIO", and as well "E-X", the last of a chunk, and "S-X", one
          token. "B-X" and "I-X" go before "I-X" and "E-X", and nothing else; no
          sequence begins with the latter or ends with the former.
        - "BILOU": "BIOES" with "L-X" in place of "E-X", and "U-X" in place of "S-X".
        - pairs of labels of which the second must not follow the first;
        - boolean array of shape (n_classes, n_classes): whether the second may follow
          the first, in the order of ``classes_``; a data frame whose rows and columns
          are named by classes is matched by these names.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of sequences, whose losses do not divide into those of
        tokens: a sequence counts by the mean of the factors of its tokens' labels.
    tol : float, default=1e-3
        Stop when the objective is proven to be within ``tol`` times itself of the
        optimum.
    max_iter : int, default=1000
        Limit on the number of iterations, at least 1.
    warm_start : bool, default=False
        Whether ``fit`` starts from the weights of the previous model, as far as it had
        the same attributes and labels. They may be of other data.
    solver_options : dict or None, default=None
        Further options of the solver of ``fit``, such as those of its publication, by
        name. Which ones each solver takes, with their ranges and defaults, is in the
        table of `docs/methods.md`; others are refused. Of "sgd", "smd" and "olbfgs":
        ``batch_size``, 8, and

        - "sgd": ``eta0``, .1 times the batch size, as losses are means here where the
          source has sums, and ``tau``, infinite: steps are ``eta0 * tau / (tau + t)``;
        - "smd": ``eta0`` as well, ``mu``, .02 times the batch size, and ``lambda_``,
          .99;
        - "olbfgs": ``eta0``, 1, ``tau``, 1e4, ``memory``, 5, ``epsilon``, 1e-10, and
          ``lambda_``, one divided by the batch size.

    n_jobs : int or None, default=None
        Number of threads that share the tokens where many sequences are looked at at
        once: all but the steps of dual ascent. Results do not depend on it. ``None``
        means 1 unless in a :func:`joblib.parallel_config` context; ``-1`` means all
        processors.
    random_state : int, RandomState instance or None, default=0
        Seed of the order in which dual ascent and online methods go through the
        sequences. None draws another one each time.
    callback : callable or None, default=None
        Called after every iteration with a named tuple of ``n_iter``, ``objective``,
        ``dual_gap``, ``passes`` and ``seconds``; fitting stops if it returns True.
    verbose : int, default=0
        Print progress at iterations 0, 1, 2, 4, 8, ... if 1, at each if larger.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    attributes_ : ndarray of shape (n_features_in_,)
        Names of the attributes, where tokens are dicts or lists of them.
    state_features_ : mapping
        Weights that are not zero, by pairs (attribute, label); attributes are column
        numbers where tokens are rows of matrices.
    transition_features_ : dict
        Weights that are not zero, by pairs (label, next label).
    alpha_ : float
        The strength of the penalty that was used.
    objective_ : float
        Objective at the weights.
    dual_gap_ : float
        ``objective_ - dual_gap_`` is a lower bound on the optimum, proven up to
        rounding in float64.
    n_iter_ : int
        Number of iterations.
    history_ : list of History
        Objective, lower bound, passes over the data and seconds after each iteration.
        See :class:`ConvergenceDisplay`.
    plan_ : str
        How "auto" chose to solve the problem, or the solver.
    n_features_in_ : int
        Number of attributes.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where X is a table or has one for each sequence, with
        names that are all strings. Tables of predictions must have the same columns in
        the same order.

    See Also
    --------
    ConvergenceDisplay : Plot of objective and lower bound during a fit.
    MulticlassHingeClassifier : Labels of rows that do not depend on each other.

    Notes
    -----
    A sequence of tokens is a list of dicts, a list of lists of names, or a matrix,
    dense or sparse, or a table of pandas or polars, with a row for each token. All
    tables need the same columns in the same order; where a column has strings, rows are
    tokens as dicts are, with the names of the columns. In place of lists there may be a
    pandas Series, of tokens or of sequences. Of a dict, ``"name": "value"`` makes the
    attribute "name:value" of weight 1, ``"name": 0.5`` the attribute "name" of weight
    0.5, True and False are 1 and 0, and of lists, sets and dicts as values the
    attributes are put behind "name:", as python-crfsuite has it. X may be a generator
    of sequences. All sequences may also be one matrix, dense, sparse or a table, whose
    rows ``lengths`` divides; labels then are one array.

    A sequence of weight 2 equals a repeated one, a sequence of weight 0 a missing one.
    Attributes that training did not see are left out in prediction, where sequences may
    also be empty: they have no labels.

    There is no intercept: an attribute that every token has makes one.

    References
    ----------
    J. Lafferty, A. McCallum, F. Pereira (2001), Conditional Random Fields, ICML. J. Yu
    (2009), New Quasi-Newton Optimization Methods for Machine Learning, PhD thesis,
    Australian National University: chapter 6. C.-H. Teo, S.V.N. Vishwanathan, A. Smola,
    Q. Le (2010), Bundle Methods for Regularized Risk Minimization, JMLR 11: section
    A.2. I. Tsochantaridis, T. Joachims, T. Hofmann, Y. Altun (2005), Large Margin
    Methods for Structured and Interdependent Output Variables, JMLR 6.

    Examples
    --------
    >>> from sklearn_subqn import LinearChainCRF
    >>> X = [[{"word": "the"}, {"word": "dog"}, {"word": "barks"}],
    ...      [{"word": "a"}, {"word": "cat"}, {"word": "sleeps"}]]
    >>> y = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"]]
    >>> crf = LinearChainCRF(alpha=1e-2).fit(X, y)
    >>> crf.predict([[{"word": "the"}, {"word": "cat"}]])
    [['DET', 'NOUN']]
    >>> bool(crf.dual_gap_ <= 1e-3 * crf.objective_)
    True
    """

    __module__ = "sklearn_subqn.crf"

    _solvers = CHAIN_SOLVERS

    classes_: npt.NDArray[Any]
    n_features_in_: int
    _sums: Floats | None

    def __init__(
        self,
        alpha: float | str = "auto",
        *,
        l1_ratio: float = 0.0,
        loss: str = "log_loss",
        rescaling: str = "margin",
        solver: str = "auto",
        all_possible_states: bool = False,
        all_possible_transitions: bool = False,
        min_freq: float = 0,
        transition_constraints: Any = None,
        class_weight: Any = None,
        tol: float = 1e-3,
        max_iter: int = 1000,
        warm_start: bool = False,
        solver_options: Mapping[str, Any] | None = None,
        n_jobs: int | None = None,
        random_state: Any = 0,
        callback: Callable[[Progress], Any] | None = None,
        verbose: int = 0,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.loss = loss
        self.rescaling = rescaling
        self.solver = solver
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.min_freq = min_freq
        self.transition_constraints = transition_constraints
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.solver_options = solver_options
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.callback = callback
        self.verbose = verbose

    @classmethod
    def from_crfsuite(
        cls, c1: float = 0.0, c2: float = 1.0, *, n_sequences: int, **params: Any
    ) -> LinearChainCRF:
        """Return an estimator with the objective of CRFsuite's L-BFGS.

        CRFsuite minimizes the *sum* of the losses plus ``c1 |w|_1 + c2 ||w||²``:
        ``alpha = (c1 + 2 c2) / n_sequences`` and ``l1_ratio = c1 / (c1 + 2 c2)``.

        Parameters
        ----------
        c1, c2 : float, default=0.0, 1.0
            Coefficients of the penalties, not negative, not both zero.
        n_sequences : int
            Number of training sequences, or the sum of their weights.
        **params
            Other parameters of the estimator; ``min_freq``, ``all_possible_states`` and
            ``all_possible_transitions`` mean the same in sklearn-crfsuite.

        Returns
        -------
        crf : LinearChainCRF
            The estimator, not yet fitted.

        Raises
        ------
        TypeError, ValueError
            If a number is not acceptable.

        Examples
        --------
        >>> from sklearn_subqn import LinearChainCRF
        >>> LinearChainCRF.from_crfsuite(c1=1.0, c2=0.5, n_sequences=1000)
        LinearChainCRF(alpha=0.002, l1_ratio=0.5)
        """
        check_number("c1", c1, low=0.0)
        check_number("c2", c2, low=0.0)
        check_number("n_sequences", n_sequences, low=0.0, low_included=False)
        total = c1 + 2.0 * c2
        if not total:
            raise ValueError("c1 and c2 must not both be zero.")
        if c1:
            params["l1_ratio"] = c1 / total
        return cls(total / n_sequences, **params)

    @unchanged_on_failure
    @with_callbacks
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, lengths: Any = None
    ) -> LinearChainCRF:
        """Fit the model.

        Parameters
        ----------
        X : iterable of sequences, or matrix of shape (n_tokens, n_features)
            Training data, see Notes; a matrix needs ``lengths``.
        y : iterable of label sequences, or array-like of shape (n_tokens,)
            The label of each token.
        sample_weight : float or array-like of shape (n_sequences,), default=None
            Non-negative weights of the sequences.
        lengths : array-like of int of shape (n_sequences,), default=None
            Numbers of rows of X and y that make a sequence.

        Returns
        -------
        self : LinearChainCRF
            The fitted estimator.

        Raises
        ------
        TypeError, ValueError
            If parameters or data are not acceptable, or the fit overflows. A previously
            fitted estimator stays as it was.

        Warns
        -----
        ConvergenceWarning
            If ``tol`` was not reached; states the gap that was.
        """
        self._check_parameters()
        previous = vars(self).copy() if self.warm_start else {}
        objective, seen = self._problem(X, y, sample_weight, lengths)
        start = Start(self._started_from(previous))
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        task = FitTask(self, 1, self.max_iter, X, y, sample_weight)
        problem = Problem(
            type(self).__name__,
            objective,
            start,
            objective.design.X.dtype,
            lambda w: {**self._model(), "_w": w},
        )
        given = checked_options(self)
        if self.solver in CHAIN_STREAMS:
            given = {"online": given}
        solution = solve(problem, self, task, Options(**{**given, "seed": seed}))
        self._w = solution.w
        self._seen = seen
        self._sums = None
        self.objective_ = solution.objective
        self.dual_gap_ = solution.dual_gap
        self.n_iter_ = max(1, solution.n_iter)
        self.history_ = [solution.history]
        self.plan_ = solution.plan
        task.end()
        return self

    @unchanged_on_failure
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        lengths: Any = None,
    ) -> LinearChainCRF:
        """Learn from further sequences, without those of before.

        The model is one of all sequences so far, of this method's calls and of the last
        ``fit``. They may have attributes that are new. Dual ascent on the sequences of
        the call needs no step size; large batches learn more than small ones. With L1
        weights become zero, and others that were, once more sequences ask for them.
        Steps are in units of the attributes' sizes, of which the stream keeps root mean
        squares, and so is its L1 penalty, whatever the attributes' own units.
        ``min_freq`` counts within each call: a pair gets its weight from the first call
        that has it often enough.

        Parameters
        ----------
        X : iterable of sequences, or matrix of shape (n_tokens, n_features)
            As in ``fit``.
        y : iterable of label sequences, or array-like of shape (n_tokens,)
            The label of each token.
        classes : array-like of shape (n_classes,), default=None
            All labels that may come; needed at the first call, unless after ``fit``.
        sample_weight : float or array-like of shape (n_sequences,), default=None
            Non-negative weights of the sequences.
        lengths : array-like of int of shape (n_sequences,), default=None
            As in ``fit``.

        Returns
        -------
        self : LinearChainCRF
            The estimator.

        Raises
        ------
        TypeError, ValueError
            If parameters or data are not acceptable. The model stays as it was.
        """
        self._check_parameters()
        if isinstance(self.class_weight, str):
            raise ValueError(
                "partial_fit cannot balance classes that it has not seen; give "
                "class_weight as a dict."
            )
        known = getattr(self, "_columns", None)
        n_known = 0 if known is None else len(known)
        try:
            return self._learn(X, y, self._classes(classes), sample_weight, lengths)
        except BaseException:
            while known is not None and len(known) > n_known:
                known.popitem()
            raise

    def predict(self, X: Any, *, lengths: Any = None) -> Any:
        """Return the most probable labeling of each sequence.

        Parameters
        ----------
        X : iterable of sequences, or matrix of shape (n_tokens, n_features)
            As in ``fit``.
        lengths : array-like of int of shape (n_sequences,), default=None
            As in ``fit``.

        Returns
        -------
        y : list of lists of labels, or ndarray of shape (n_tokens,) with ``lengths``
            The labels of each sequence, or of each token.
        """
        data = self._read(X, lengths)
        found = self.classes_[self._lattice(data).best()]
        return found if data.stacked else [part.tolist() for part in data.split(found)]

    def predict_single(self, x: Any) -> list[Any]:
        """Return the most probable labels of one sequence.

        Parameters
        ----------
        x : sequence of tokens
            As one of ``fit``.

        Returns
        -------
        labels : list
            The label of each token.
        """
        return list(self.predict([x])[0])

    @available_if(_is_log_loss)
    def predict_marginals(self, X: Any, *, lengths: Any = None) -> Any:
        """Return the probabilities of the labels of each token; only for the log loss.

        Parameters
        ----------
        X : iterable of sequences, or matrix of shape (n_tokens, n_features)
            As in ``fit``.
        lengths : array-like of int of shape (n_sequences,), default=None
            As in ``fit``.

        Returns
        -------
        marginals : list of lists of dicts, or ndarray of shape (n_tokens, n_classes)
            For each token a dict from labels to probabilities; with ``lengths`` an
            array with columns in the order of ``classes_``.
        """
        data = self._read(X, lengths)
        nodes = self._lattice(data).marginals()
        if data.stacked:
            return nodes
        labels = self.classes_.tolist()
        rows = [dict(zip(labels, row, strict=True)) for row in nodes.tolist()]
        return data.split(rows)

    @available_if(_is_log_loss)
    def predict_marginals_single(self, x: Any) -> list[dict[Any, float]]:
        """Return the probabilities of the labels of each token of one sequence.

        Parameters
        ----------
        x : sequence of tokens
            As one of ``fit``.

        Returns
        -------
        marginals : list of dicts
            From labels to probabilities.
        """
        return list(self.predict_marginals([x])[0])

    @available_if(_is_log_loss)
    def predict_edge_marginals(self, X: Any, *, lengths: Any = None) -> list[Floats]:
        """Return the probabilities of pairs of adjacent labels; only for the log loss.

        Parameters
        ----------
        X : iterable of sequences, or matrix of shape (n_tokens, n_features)
            As in ``fit``.
        lengths : array-like of int of shape (n_sequences,), default=None
            As in ``fit``.

        Returns
        -------
        marginals : list of ndarray of shape (length - 1, n_classes, n_classes)
            Entry [t, i, j] of a sequence is the probability that token t has label i
            and token t + 1 label j, in the order of ``classes_``.
        """
        data = self._read(X, lengths)
        edges = self._lattice(data).edge_marginals()
        return [part[1:] for part in data.split(edges)]

    def predict_n_best(
        self, X: Any, n: int, *, lengths: Any = None
    ) -> list[list[tuple[list[Any], float]]]:
        """Return the n best labelings of each sequence.

        Parameters
        ----------
        X : iterable of sequences, or matrix of shape (n_tokens, n_features)
            As in ``fit``.
        n : int
            Number of labelings, at least 1.
        lengths : array-like of int of shape (n_sequences,), default=None
            As in ``fit``.

        Returns
        -------
        labelings : list of lists of tuples
            For each sequence, from the best on, labels and the natural logarithm of
            their probability, or with the hinge their score. Less than n where a
            sequence has no more labelings.
        """
        check_number("n", n, low=1, integer=True)
        data = self._read(X, lengths)
        lattice = self._lattice(data)
        found, scores = lattice.n_best(n)
        if self.loss == "log_loss":
            scores = scores - lattice.log_partition()[:, None]
        labels = self.classes_.tolist()
        out: list[list[tuple[list[Any], float]]] = []
        bounds = data.starts.tolist()
        numbers = itertools.count()
        for first, end in pairwise(bounds):
            if first == end:
                out.append([([], 0.0)])
                continue
            i = next(numbers)
            n_found = np.count_nonzero(scores[i] > -np.inf)
            out.append(
                [
                    (
                        [labels[code] for code in found[r, first:end]],
                        float(scores[i, r]),
                    )
                    for r in range(n_found)
                ]
            )
        return out

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, lengths: Any = None
    ) -> float:
        """Return the share of tokens whose label is predicted right.

        Parameters
        ----------
        X : iterable of sequences, or matrix of shape (n_tokens, n_features)
            As in ``fit``.
        y : iterable of label sequences, or array-like of shape (n_tokens,)
            The label of each token.
        sample_weight : float or array-like of shape (n_sequences,), default=None
            Weights of the sequences, whose tokens count by them.
        lengths : array-like of int of shape (n_sequences,), default=None
            As in ``fit``.

        Returns
        -------
        accuracy : float
            Between 0 and 1.
        """
        data = self._read(X, lengths)
        labels = self._labels(y, data)
        if not labels:
            raise ValueError("X has no tokens whose labels could be right.")
        weights = check_sample_weight(sample_weight, len(data))
        found = self.classes_[self._lattice(data).best()].tolist()
        right = [a == b for a, b in zip(found, labels, strict=True)]
        return float(np.average(right, weights=np.repeat(weights, data.lengths)))

    @property
    def state_features_(self) -> StateFeatures:
        """Weights that are not zero, by pairs (attribute, label)."""
        self._check_has_model("state_features_")
        if self._columns is None:
            names: Any = range(self.n_features_in_)
            columns: Any = names
        else:
            names, columns = list(self._columns), self._columns
        w = self._w[: len(self._pairs.labels)]
        return StateFeatures(names, columns, self.classes_.tolist(), self._pairs, w)

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float]:
        """Weights that are not zero, by pairs (label, next label)."""
        self._check_has_model("transition_features_")
        labels = self.classes_.tolist()
        places = np.argwhere(self._transitions).tolist()
        weights = self._w[len(self._pairs.labels) :].tolist()
        return {
            (labels[i], labels[j]): weight
            for (i, j), weight in zip(places, weights, strict=True)
            if weight
        }

    def state_table(self) -> Any:
        """Return the weights of attributes that are not zero, the largest first.

        Returns
        -------
        table : pandas.DataFrame
            With the columns "attribute", "label" and "weight". Attributes are names, or
            numbers of columns where tokens are rows of matrices without names.

        Raises
        ------
        AttributeError
            If the model is not fitted.
        ImportError
            If pandas is not installed.
        """
        attributes, labels, weights = self.state_features_.columns()
        if self._columns is None and hasattr(self, "feature_names_in_"):
            attributes = self.feature_names_in_[attributes.astype(np.intp)]
        columns = {"attribute": attributes, "label": labels, "weight": weights}
        return data_frame(by_size(columns, weights), "state_table")

    def transition_table(self) -> Any:
        """Return the weights of pairs of labels that are not zero, the largest first.

        Returns
        -------
        table : pandas.DataFrame
            With the columns "label", "next_label" and "weight".

        Raises
        ------
        AttributeError
            If the model is not fitted.
        ImportError
            If pandas is not installed.
        """
        pairs = self.transition_features_
        labels = np.array(list(pairs), dtype=object).reshape(-1, 2)
        weights = np.array(list(pairs.values()), dtype=np.float64)
        columns = {"label": labels[:, 0], "next_label": labels[:, 1], "weight": weights}
        return data_frame(by_size(columns, weights), "transition_table")

    @property
    def attributes_(self) -> npt.NDArray[Any]:
        """Names of the attributes."""
        self._check_has_model("attributes_")
        if self._columns is None:
            raise AttributeError("Columns of matrices have numbers, not names.")
        return np.array(list(self._columns), dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        tags.target_tags.one_d_labels = False
        return tags

    def _check_parameters(self) -> None:
        """Raise for parameters that are not acceptable."""
        check_option("loss", self.loss, _LOSSES)
        check_option("rescaling", self.rescaling, ["margin", "slack"])
        if self.rescaling == "slack" and self.loss != "hinge":
            raise ValueError(
                f"rescaling='slack' needs loss='hinge', got loss={self.loss!r}."
            )
        check_option("solver", self.solver, list(CHAIN_SOLVERS))
        check_parameters(self)
        check_random_state(self.random_state)
        loss, penalty = self._loss_of(_NO_STARTS), self._penalty(0)
        if not CHAIN_SOLVERS[self.solver].supports(loss, penalty):
            able = [
                repr(name)
                for name, solver in CHAIN_SOLVERS.items()
                if solver.supports(loss, penalty)
            ]
            raise ValueError(
                f"solver={self.solver!r} does not support loss={self.loss!r} with "
                f"l1_ratio={self.l1_ratio!r}; solvers that do are {', '.join(able)}."
            )

    def _penalty(self, n_params: int) -> Regularizer:
        return elastic_net(n_params, float(self.l1_ratio))

    def _loss_of(self, starts: Index, pool: Executor | None = None) -> Loss:
        """Return the loss of sequences that start there."""
        rules = getattr(self, "_rules", None)
        allowed, ends = (None, None) if rules is None else (rules.allowed, rules.ends)
        if self.loss == "hinge":
            return Loss(ChainHinge(starts, allowed, ends, self.rescaling, pool=pool))
        return Loss(ChainLogLoss(starts, allowed, ends, pool=pool))

    # Reading

    def _read(self, X: Any, lengths: Any) -> Sequences:
        """Return sequences to predict, with the columns of training."""
        check_is_fitted(self)
        return self._read_sequences(X, lengths)

    def _read_sequences(
        self, X: Any, lengths: Any, *, reset: bool = False, learns: bool = False
    ) -> Sequences:
        """Return checked sequences.

        With ``learns`` unknown attributes become columns, with ``reset`` all are, and
        no sequence may be empty.

        Raises
        ------
        TypeError, ValueError
            If there are none, or they are not acceptable.
        """
        name = type(self).__name__
        if lengths is not None and self._has_named_tokens(X, reset=reset):
            starts = starts_of_lengths(lengths, X.shape[0], not learns)
            rows = rows_of_table(X)
            parts = (rows[first:end] for first, end in pairwise(starts.tolist()))
            data = self._read_tokens(parts, reset=reset, learns=learns)
            return Sequences(data.X, data.starts, True)
        if lengths is not None:
            stacked = self._rows(X, reset=reset)
            starts = starts_of_lengths(lengths, stacked.shape[0], not learns)
            return Sequences(stacked, starts, True)
        if is_matrix(X):
            raise ValueError(
                f"{name} needs sequences: give lengths, the numbers of rows of X that "
                "make a sequence, or a list with a matrix for each sequence."
            )
        if isinstance(X, (str, bytes, dict)) or not isinstance(X, Iterable):
            raise TypeError(
                f"X must be a list of sequences, got {X!r} of type {type(X).__name__}."
            )
        if isinstance(X, np.ndarray):
            check_unmasked("X", X)
        sequences = iter(X)
        # What sequences are is seen by the first one that is not empty.
        first: list[Any] = []
        for sequence in sequences:
            first.append(sequence)
            if not is_empty(sequence):
                break
        if not first:
            raise ValueError(
                f"Found array with 0 sample(s): X has no sequences, while a minimum of "
                f"1 is required by {name}."
            )
        if is_empty(first[-1]) and not learns:
            nothing = sparse.csr_matrix((0, self.n_features_in_))
            return Sequences(nothing, np.zeros(len(first) + 1, dtype=np.intp), False)
        sequences = itertools.chain(first, sequences)
        named = self._has_named_tokens(first[-1], reset=reset)
        if is_matrix(first[-1]) and not named:
            stacked, starts = stack_matrices(list(sequences), not learns)
            return Sequences(self._rows(stacked, reset=reset), starts, False)
        return self._read_tokens(sequences, reset=reset, learns=learns)

    def _has_named_tokens(self, X: Any, *, reset: bool) -> bool:
        """Whether X is a table whose rows are tokens, and not rows of a matrix."""
        if not is_table(X):
            return False
        return has_words(X) if reset else self._columns is not None

    def _read_tokens(
        self, sequences: Iterable[Any], *, reset: bool, learns: bool
    ) -> Sequences:
        """Return sequences of tokens with named attributes."""
        if reset:
            self._columns: dict[str, int] | None = {}
            forget(self, "feature_names_in_")
        if self._columns is None:
            raise TypeError(
                f"X must be matrices of {self.n_features_in_} columns as in training, "
                "got lists of tokens."
            )
        data = AttributeReader(self._columns, learns).read(sequences)
        check_range(data.X, type(self).__name__)
        self.n_features_in_ = len(self._columns)
        return data

    def _rows(self, X: Any, *, reset: bool) -> Any:
        """Return a checked matrix of tokens in CSR format."""
        if reset:
            self._columns = None
        elif self._columns is not None:
            raise TypeError(
                "X must be lists of tokens with named attributes as in training, got "
                "matrices."
            )
        X = self._check_X(X, reset=reset)
        return X if sparse.issparse(X) else sparse.csr_matrix(X)

    def _labels(self, y: Any, data: Sequences) -> list[Any]:
        """Return the labels of all tokens.

        Raises
        ------
        TypeError, ValueError
            If there are not as many as tokens.
        """
        if not data.stacked:
            y = list(y)
            check_consistent_length(range(len(data)), y)
            return flat_labels(y, data.lengths)
        check_labels(y)
        labels = column_or_1d(y)
        check_consistent_length(range(data.X.shape[0]), labels)
        return list(labels.tolist())

    def _read_labeled(
        self, X: Any, y: Any, sample_weight: Any, lengths: Any, classes: Any = None
    ) -> Labeled:
        """Return training data, and set what they say about the model.

        That is the attributes, and unless ``classes`` are given, the classes and the
        rules of transitions. Sequences of weight zero are left out.
        """
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is "
                "None."
            )
        if not isinstance(y, Iterable) or isinstance(y, (str, bytes)):
            raise TypeError(f"y must be a list of lists of labels, got {y!r}.")
        more = classes is not None and hasattr(self, "_w")
        data = self._read_sequences(X, lengths, reset=not more, learns=True)
        labels = self._labels(y, data)
        check_sample_weight(sample_weight, len(data))
        counts = as_sample_weights(sample_weight, len(data))
        numbers = np.flatnonzero(counts)
        if len(numbers) < len(counts):
            tokens, starts = chain_design.tokens_of(data.starts, numbers)
            data = Sequences(data.X[tokens], starts, data.stacked)
            labels = [labels[t] for t in tokens.tolist()]
            counts = counts[numbers]
        if classes is None:
            classes = distinct_labels(labels)
            if len(classes) < 2:
                raise ValueError(
                    "This classifier needs tokens of at least 2 classes in the data, "
                    f"but the data contains only one class: {classes.tolist()[0]!r}."
                )
        self.classes_ = classes
        targets = label_codes(labels, classes)
        self._rules = TransitionRules.of(self.transition_constraints, classes)
        self._rules.check(targets, data.starts, classes, numbers)
        weights = counts
        if self.class_weight is not None:
            check_class_weight(self.class_weight)
            per_class = compute_class_weight(
                self.class_weight,
                classes=classes,
                y=np.array(labels),
                sample_weight=np.repeat(counts, data.lengths),
            )
            sums = np.add.reduceat(per_class[targets], data.starts[:-1])
            weights = counts * sums / data.lengths
            if not weights.any():
                raise ValueError(
                    f"class_weight={self.class_weight!r} leaves no sequence with a "
                    "positive weight."
                )
        return Labeled(data, targets, weights, counts)

    # Parameters of the model

    def _problem(
        self, X: Any, y: Any, sample_weight: Any, lengths: Any
    ) -> tuple[Objective, Seen]:
        """Return the objective of training data, and how many there are."""
        labeled = self._read_labeled(X, y, sample_weight, lengths)
        data = labeled.data
        self._pairs, self._transitions = self._observed(labeled)
        # The door for solvers is the same, whatever the map from w to scores.
        design: Any = ChainDesign(
            data.X,
            data.starts,
            len(self.classes_),
            self._pairs,
            self._transitions,
            n_threads=n_threads(self.n_jobs),
        )
        objective = Objective(
            Risk(
                design,
                self._loss_of(data.starts, design.pool),
                labeled.targets,
                check_sample_weight(labeled.weights, len(data)),
            ),
            self._penalty(design.n_params),
            self._chosen_alpha(1.0 / float(labeled.weights.sum())),
        )
        columns = np.arange(data.X.shape[1])
        seen = Seen().and_of(data.X, data.starts, labeled.weights, columns)
        return objective, seen

    def _chosen_alpha(self, automatic: float) -> float:
        """Return ``alpha``, or the number given for "auto"; keep it for users."""
        self.alpha_ = automatic if isinstance(self.alpha, str) else float(self.alpha)
        return self.alpha_

    def _observed(self, labeled: Labeled) -> tuple[Pairs, Mask]:
        """Return which pairs of attributes and labels, and of labels, have a weight."""
        data, targets = labeled.data, labeled.targets
        k, X = len(self.classes_), data.X
        if self.all_possible_states:
            pairs = chain_design.all_pairs(X.shape[1], k)
        else:
            pairs = chain_design.observed_pairs(X, targets, k)
        if self.all_possible_transitions:
            transitions = np.ones((k, k), dtype=bool)
        else:
            transitions = chain_design.observed_transitions(targets, data.starts, k)
        if self.min_freq > 0.0:
            # Sums of weights, up to rounding.
            least = float(self.min_freq) * (1.0 - _ROUNDING)
            by_token = np.repeat(labeled.counts, data.lengths)
            pairs = chain_design.frequent_pairs(pairs, X, targets, by_token, least)
            transitions &= chain_design.observed_transitions(
                targets, data.starts, k, by_token, least
            )
        return pairs, transitions & self._rules.allowed

    def _classes(self, classes: Any) -> npt.NDArray[Any]:
        """Return the labels of a stream, checked."""
        begun = hasattr(self, "_w")
        if classes is None:
            if not begun:
                raise ValueError(
                    "classes must be given at the first call of partial_fit."
                )
            return self.classes_
        labels = check_classes(classes)
        if len(labels) < 2:
            raise ValueError(
                f"classes must have at least 2 labels, got {labels.tolist()}."
            )
        if begun and labels.tolist() != self.classes_.tolist():
            raise ValueError(
                f"classes={labels.tolist()} differ from those of the model: "
                f"{self.classes_.tolist()}."
            )
        return labels

    def _learn(
        self,
        X: Any,
        y: Any,
        classes: npt.NDArray[Any],
        sample_weight: Any,
        lengths: Any,
    ) -> LinearChainCRF:
        """Learn from a batch, and set the attributes of the model."""
        begun = hasattr(self, "_w")
        data, targets, weights, counts = self._read_labeled(
            X, y, sample_weight, lengths, classes
        )
        pairs, transitions = self._observed(Labeled(data, targets, weights, counts))
        if begun:
            self._grow(pairs, transitions)
        else:
            self._pairs, self._transitions = pairs, transitions
            self._w = np.zeros(len(pairs.labels) + int(transitions.sum()))
            self._seen = Seen()
        n_params = len(self._w)
        alpha = self._chosen_alpha(_STREAM_ALPHA)
        penalty = alpha, float(self.l1_ratio), self._pairs, n_params
        sums = getattr(self, "_sums", None)
        if sums is None:
            w = self._w.astype(np.float64, copy=False)
            sums = self._seen.strengths(*penalty).sums(w)
        # Of the attributes that the batch has.
        columns, indices = np.unique(data.X.indices, return_inverse=True)
        own = sparse.csr_matrix(
            (data.X.data, indices.astype(np.int32), data.X.indptr),
            shape=(data.X.shape[0], len(columns)),
        )
        ptr: Any = self._pairs.ptr.astype(np.intp)
        places, ptr = chain_design.tokens_of(ptr, columns)
        own_pairs = Pairs(ptr.astype(np.intc), self._pairs.labels[places])
        n = len(self._pairs.labels)
        design = ChainDesign(
            own, data.starts, len(classes), own_pairs, self._transitions
        )
        places = np.append(places, np.arange(n, n_params))
        seen = self._seen.and_of(own, data.starts, weights, columns)
        strengths = seen.strengths(*penalty)
        loss = self._loss_of(data.starts)
        own_sums = learn(
            design,
            loss.oracle,
            targets,
            weights,
            strengths.of(places),
            sums[places],
        )
        if not np.all(np.isfinite(own_sums)):
            raise ValueError(
                f"{type(self).__name__} became infinite or not a number. Scale the "
                "features. The model is as it was before."
            )
        sums = sums.copy()
        sums[places] = own_sums
        self._w = strengths.parameters(sums)
        self._seen = seen
        # Sums are not known from parameters that are zero.
        self._sums = sums if self.l1_ratio else None
        self.n_iter_ = 1
        # Of the model as ``fit`` left it.
        forget(self, "objective_", "dual_gap_", "history_", "plan_")
        return self

    def _grow(self, pairs: Pairs, transitions: Mask) -> None:
        """Add weights of zero for pairs that the model did not have."""
        old = self._transitions
        self._transitions = old | transitions
        self._pairs, places = merged(self._pairs, pairs)
        numbers = np.cumsum(self._transitions.ravel()) - 1 + len(self._pairs.labels)
        places = np.append(places, numbers[old.ravel()])
        n = len(self._pairs.labels) + int(self._transitions.sum())
        for name in ("_w", "_sums"):
            if getattr(self, name, None) is not None:
                grown = np.zeros(n)
                grown[places] = getattr(self, name)
                setattr(self, name, grown)

    def _check_has_model(self, name: str) -> None:
        if not hasattr(self, "_w"):
            raise AttributeError(
                f"This {type(self).__name__} is not fitted yet, and has no {name}."
            )

    def _model(self) -> dict[str, Any]:
        """Return the attributes that prediction needs, but for the weights."""
        names = ("classes_", "n_features_in_", "feature_names_in_")
        private = ("_columns", "_pairs", "_transitions", "_rules")
        known = vars(self)
        return {name: known[name] for name in names + private if name in known}

    def _lattice(self, data: Sequences) -> Lattice:
        """Return all labelings of the sequences, as scored by the model.

        Empty sequences are left out.
        """
        design = ChainDesign(
            data.X,
            np.unique(data.starts),
            len(self.classes_),
            self._pairs,
            self._transitions,
            n_threads=n_threads(self.n_jobs),
            padded=False,
        )
        rules = self._rules
        w = self._w.astype(np.float64, copy=False)
        return Lattice(design, w, rules.allowed, rules.ends)

    def _started_from(self, previous: dict[str, Any]) -> Floats:
        """Return the weights of a previous model for the pairs of this one.

        Those that it did not have are zero.
        """
        w = np.zeros(len(self._pairs.labels) + int(self._transitions.sum()))
        if "_w" not in previous or (previous["_columns"] is None) != (
            self._columns is None
        ):
            return w
        old: Pairs = previous["_pairs"]
        known = {c: i for i, c in enumerate(previous["classes_"].tolist())}
        labels = np.array([known.get(c, -1) for c in self.classes_.tolist()])
        names, old_names = _names_of_columns(vars(self)), _names_of_columns(previous)
        if names and old_names:
            columns = np.array([old_names.get(name, -1) for name in names])
        else:
            columns = np.arange(self.n_features_in_)
            columns[columns >= previous["n_features_in_"]] = -1
        places = chain_design.places_of(
            old, columns[self._pairs.features], labels[self._pairs.labels]
        )
        n, found = len(places), places >= 0
        w[:n][found] = previous["_w"][places[found]]
        k = len(known)
        table = np.zeros((k + 1, k + 1))
        table[:-1, :-1][previous["_transitions"]] = previous["_w"][len(old.labels) :]
        w[n:] = table[np.ix_(labels, labels)][self._transitions]
        return w

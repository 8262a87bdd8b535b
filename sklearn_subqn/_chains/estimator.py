"""Linear-chain conditional random fields with a proven distance from the optimum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._blocks.blocks import KeepsBest
from .._checks import check_number, check_option, check_parameters, checked_options
from .._checks.signatures import with_parameters
from .._checks.state import unchanged_on_failure
from .._core.arrays import Floats, Indices
from .._core.objectives.objective import Objective
from .._core.solvers import Start
from .._estimators.block_methods import is_collection, refusal
from .._estimators.estimator import store_solutions
from .._solving.callbacks import FitTask, with_callbacks
from .._solving.solution import Callback, Problem, Solution
from .._solving.solve import solve
from .learning import LearnsFromStreams
from .parts import PlaceOfSequences, SequencesElsewhere
from .prediction import PredictsLabels
from .reading import of_sequences
from .solvers import CHAIN_SOLVERS, CHAIN_STREAMS
from .weights import WeightsByName

_LOSSES = ("log_loss", "hinge")

_NO_STARTS: Indices = np.zeros(1, dtype=np.intp)


@with_parameters()
class LinearChainCRF(PredictsLabels, WeightsByName, LearnsFromStreams):
    """Linear-chain conditional random field.

    Labels the tokens of sequences. Minimizes ``alpha * penalty(w) + sum_i s_i loss_i /
    sum_i s_i``, a mean over sequences of weights s_i, and reports a bound on how far
    the result is from the optimum.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the penalty against the *mean* loss of a sequence, positive. ``c2``
        of CRFsuite corresponds to ``alpha = 2 * c2 / n_sequences``, see
        :meth:`from_crfsuite`. "auto" is one divided by the sum of the weights of the
        sequences, which is ``c2=0.5``; for ``partial_fit``, where this sum is unknown,
        "auto" is 1e-4.
    l1_ratio : float, default=0.0
        Share of L1 in the penalty ``l1_ratio * |w|_1 + (1 - l1_ratio) / 2 * ||w||²``,
        in [0, 1].
    loss : {"log_loss", "hinge"}, default="log_loss"
        The negative logarithm of the probability of a sequence's labels, or the
        structured hinge: the largest margin violation among all other labelings, see
        ``rescaling``.
    rescaling : {"margin", "slack"}, default="margin"
        How the number D of wrong labels of a labeling enters the hinge. "margin": the
        loss is ``max D + score - score of the right labels``, with a margin that grows
        with D. "slack": the loss is ``max D * (1 + score - score of the right
        labels)``, with a margin of one and violations multiplied by D; its time grows
        with the square of the length of a sequence.
    solver : str, default="auto"
        Optimization method.

        - "auto": dual coordinate ascent over the sequences. Where the ascent needs too
          much memory or becomes slow, "lbfgs" continues; with L1 "owlqn", and with the
          hinge "ls-bmrm".
        - "dual-ascent": dual coordinate ascent over the sequences.
        - "lbfgs": the limited-memory quasi-Newton method, log loss with L2 only.
        - "owlqn": OWL-QN, its variant for L1, log loss only.
        - "ls-bmrm", "bmrm": bundle methods with and without line searches (Teo et al.
          2010, Alg. 3 and 2).
        - "sgd", "smd", "olbfgs": stochastic gradient descent, stochastic meta-descent
          and online L-BFGS on batches of sequences, log loss with L2 only; for
          comparisons. An iteration is a pass over the sequences in random order,
          followed by a lower bound. ``partial_fit`` uses dual ascent for every
          ``solver``.
    all_possible_states : bool, default=False
        Whether all pairs of an attribute and a label have a weight, or only the pairs
        that occur in training data.
    all_possible_transitions : bool, default=False
        Whether all transitions between labels have a weight, or only the transitions
        that occur in training data. A transition without a weight remains possible and
        scores zero.
    min_freq : float, default=0
        Minimum number of occurrences, weighted by ``sample_weight``, in training data.
        Rarer pairs of an attribute and a label, and rarer transitions, have no weight.
    transition_constraints : {"BIO", "IOB1", "IOB2", "BIOES", "BILOU"}, \
            list of pairs, array or None, default=None
        Which labels may follow which, in training and prediction. A scheme also
        restricts the first and the last label of a sequence.

        - "BIO" or "IOB2": labels are "O", "B-X" and "I-X" for chunks of type X, or "B"
          and "I" without types. "I-X" must follow "B-X" or "I-X", and no sequence
          begins with "I-X".
        - "IOB1": "I-X" may begin a chunk, and "B-X" begins a chunk only after a chunk
          of the same type. "B-X" must follow "B-X" or "I-X", and no sequence begins
          with "B-X".
        - "BIOES": as "BIO", with "E-X" for the last token of a chunk and "S-X" for a
          chunk of one token. "B-X" and "I-X" must precede "I-X" or "E-X", and "I-X" and
          "E-X" must follow "B-X" or "I-X". No sequence begins with "I-X" or "E-X", or
          ends with "B-X" or "I-X".
        - "BILOU": "BIOES" with "L-X" in place of "E-X", and "U-X" in place of "S-X".
        - list of forbidden pairs: the second label must not follow the first.
        - boolean array of shape (n_classes, n_classes): entry [i, j] allows class j
          after class i, in the order of ``classes_``; a data frame is matched by the
          classes that name its rows and columns.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of sequences. The loss of a sequence is not a sum over
        tokens, so the weight of the sequence is multiplied by the mean factor of its
        tokens' labels.
    tol : float, default=1e-3
        Stop when the objective is proven to be within ``tol`` times itself of the
        optimum.
    max_iter : int, default=1000
        Limit on the number of iterations, at least 1.
    warm_start : bool, default=False
        Whether ``fit`` starts from the weights of the previous model for all attributes
        and labels that both models have. The previous model may be fitted to different
        data.
    solver_options : dict or None, default=None
        Further options of the solver of ``fit`` by name, such as the parameters in its
        publication. The table in `docs/methods.md` lists the options of each solver,
        with ranges and defaults; other names are refused. "sgd", "smd" and "olbfgs"
        have ``batch_size``, 8, and

        - "sgd": ``eta0``, .1 times the batch size, because batch losses are means here
          and sums in the source, and ``tau``, infinite: steps are ``eta0 * tau / (tau +
          t)``;
        - "smd": ``eta0`` as in "sgd", ``mu``, .02 times the batch size, and
          ``lambda_``, .99;
        - "olbfgs": ``eta0``, 1, ``tau``, 1e4, ``memory``, 5, ``epsilon``, 1e-10, and
          ``lambda_``, one divided by the batch size.

    n_jobs : int or None, default=None
        Number of threads for all computations except the steps of dual ascent, which
        take one sequence at a time. Results do not depend on the number. ``None`` means
        1 unless in a :func:`joblib.parallel_config` context; ``-1`` means all
        processors.
    random_state : int, RandomState instance or None, default=0
        Seed of the order in which dual ascent and online methods visit the sequences.
        None draws a new seed for each fit.
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
        Names of the attributes, where tokens are dicts or lists of names.
    state_features_ : mapping
        Non-zero weights, by pairs (attribute, label); attributes are column numbers
        where tokens are rows of matrices.
    transition_features_ : dict
        Non-zero weights, by pairs (label, next label).
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
        The methods that solver="auto" chose, or the solver.
    n_features_in_ : int
        Number of attributes.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where sequences are tables whose column names are all
        strings. ``predict`` requires the same columns in the same order.

    See Also
    --------
    ConvergenceDisplay : Plot of objective and lower bound during a fit.
    MulticlassHingeClassifier : Classifier of independent rows.

    Notes
    -----
    A sequence of tokens is a list of dicts, a list of lists of attribute names, a
    matrix (dense or sparse), or a table of pandas or polars; matrices and tables have
    one row for each token. All tables need the same columns in the same order. If a
    column has strings, each row is read as a dict from column names to values. A pandas
    Series of tokens or of sequences can replace a list. In a dict, ``"name": "value"``
    gives the attribute "name:value" of weight 1, and ``"name": 0.5`` the attribute
    "name" of weight 0.5; True and False are 1 and 0. The attributes of a list, set or
    dict as value get the prefix "name:", as in python-crfsuite. X may be a generator of
    sequences. X may also be one matrix or table of all tokens, with the number of rows
    of each sequence in ``lengths``; then y is one array.

    Weight 2 is equivalent to repeating a sequence, and weight 0 to removing it.
    Prediction ignores attributes that are not in the training data. Sequences may be
    empty in prediction, and then have no labels.

    There is no intercept. An attribute that occurs in every token has the effect of an
    intercept.

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

    _solvers = CHAIN_SOLVERS

    alpha: float | str = "auto"
    _: KW_ONLY
    l1_ratio: float = 0.0
    loss: str = "log_loss"
    rescaling: str = "margin"
    solver: str = "auto"
    all_possible_states: bool = False
    all_possible_transitions: bool = False
    min_freq: float = 0
    transition_constraints: Any = None
    class_weight: Any = None
    tol: float = 1e-3
    max_iter: int = 1000
    warm_start: bool = False
    solver_options: Mapping[str, Any] | None = None
    n_jobs: int | None = None
    random_state: Any = 0
    callback: Callback | None = None
    verbose: int = 0

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
            Training data, see Notes; a matrix needs ``lengths``. A Dask bag of
            sequences, or a list of delayed lists of sequences, is fitted by L-BFGS on
            the workers that have its parts; this needs the log loss with L2, without
            ``min_freq`` and ``class_weight``.
        y : iterable of label sequences, or array-like of shape (n_tokens,)
            The label of each token; partitioned like X.
        sample_weight : float or array-like of shape (n_sequences,), default=None
            Non-negative weights of the sequences.
        lengths : array-like of int of shape (n_sequences,), default=None
            Number of rows of X and y in each sequence.

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
            If ``tol`` was not reached; the message states the gap.
        """
        self._check_parameters()
        previous = vars(self).copy() if self.warm_start else {}
        task = FitTask(self, 1, self.max_iter, X, y, sample_weight)
        if is_collection(X):
            self._fit_elsewhere(X, y, sample_weight, lengths, previous, task)
        else:
            self._fit_here(X, y, sample_weight, lengths, previous, task)
        task.end()
        return self

    def _fit_here(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        lengths: Any,
        previous: dict[str, Any],
        task: FitTask,
    ) -> None:
        """Fit the model to sequences in memory."""
        objective, seen = self._problem(X, y, sample_weight, lengths)
        start = Start(self._started_from(previous))
        design: Any = objective.design
        solution = self._minimized(objective, start, design.X.dtype, task)
        self._w = solution.w
        marginals = self._lattice_of(design, solution.w).marginals()
        columns = np.arange(design.n_features)
        data = design.X, design.starts, objective.weights * len(objective.weights)
        self._seen = seen.learned(*data, columns, marginals)
        self._sums = None
        if self.l1_ratio:
            slopes = self._seen.weight * objective.at(solution.w).risk_gradient
            self._sums = self._strengths(self._seen).sums(solution.w, -slopes)
        store_solutions(self, [solution])

    def _fit_elsewhere(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        lengths: Any,
        previous: dict[str, Any],
        task: FitTask,
    ) -> None:
        """Fit the model to blocks of sequences on their workers."""
        self._check_for_blocks(X, lengths)
        # The import needs Dask.
        from .._blocks.dask_collections import sequences_opened

        source = sequences_opened(X, y, sample_weight, PlaceOfSequences)
        found: list[Solution] = []

        def run(objective: Objective, start: Start, watch: KeepsBest) -> Floats:
            found[:] = [self._minimized(objective, start, rows.dtype, task, watch)]
            return found[0].w

        try:
            rows = SequencesElsewhere(self, source)
            self._pairs, self._transitions = rows.pairs, rows.transitions
            start = Start(self._started_from(previous))
            self._seen = rows.solve(self, start, run)
        finally:
            source.close()
        self._w, self._sums = found[0].w, None
        store_solutions(self, found)

    def _minimized(
        self,
        objective: Objective,
        start: Start,
        dtype: Any,
        task: FitTask,
        watch: KeepsBest | None = None,
    ) -> Solution:
        """Run the solver, and return the solution."""
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        problem = Problem(
            type(self).__name__,
            objective,
            start,
            dtype,
            lambda w: {**self._model(), "_w": w},
            watch=watch,
        )
        given = checked_options(self)
        if self.solver in CHAIN_STREAMS:
            given = {"online": given}
        options = {**given, "seed": seed}
        return solve(problem, self._settings_of_solver(options), task)

    def _check_for_blocks(self, X: Any, lengths: Any) -> None:
        """Raise TypeError or ValueError for options that blocks do not support."""
        if hasattr(X, "shape"):
            raise refusal(self, X)
        limits = {
            "solver": self.solver in ("auto", "lbfgs"),
            "loss": self.loss == "log_loss",
            "l1_ratio": not self.l1_ratio,
            "min_freq": not self.min_freq,
            "class_weight": self.class_weight is None,
        }
        for name, possible in limits.items():
            if not possible:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} is not supported for sequences in "
                    "blocks, which are fitted by solver='lbfgs' with loss='log_loss', "
                    "l1_ratio=0, min_freq=0 and class_weight=None."
                )
        if lengths is not None:
            raise ValueError("lengths is not supported for sequences in blocks.")

    def __sklearn_tags__(self) -> Any:
        return of_sequences(super().__sklearn_tags__())

    def _check_parameters(self) -> None:
        """Raise for invalid parameters."""
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

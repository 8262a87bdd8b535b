"""Cross-validated choice of the penalty of sparse logistic models on warm paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ._search.cv import SearchCV, fit
from ._solving.solution import Progress
from .logistic import BaseL1Logistic, L1LogisticOWLQN


class L1LogisticOWLQNCV(SearchCV, BaseL1Logistic):
    """Regularized logistic regression with cross-validation over a path.

    On each fold the problems are solved from the largest ``alpha`` to the smallest,
    each starting from the solution of the one before. The best ``alpha`` is then
    refitted on all samples.

    Parameters
    ----------
    alphas : int or array-like of shape (n_alphas,), default=20
        The grid, or its size: then the values fall from the smallest one for which all
        coefficients are zero to a thousandth of it in geometric progression, or, with
        ``l1_ratio=0``, from 1e-2 to 1e-6 divided by the median of the positive factors
        of ``penalty_factor``.
    cv : int, cross-validation generator, iterable or None, default=None
        How to split, as in scikit-learn; ``None`` means 5 stratified folds.
    scoring : str, callable or None, default=None
        What to maximize, as in scikit-learn; ``None`` means accuracy. Sample weights
        are passed to the scorer if there are any, and all classes as ``labels`` to
        metrics of probabilities that take them: a fold may lack some.
    error_score : "raise" or float, default=nan
        Score of a fold on which the scorer raises an error, such as one without a
        class. Folds without any finite score are left out of the means, with a warning.
    search_tol : float, default=None
        Search an interval, ``alphas=(low, high)``, in place of a grid, and prove that
        no ``alpha`` in it has a mean score better than the best one found by more than
        this. For two classes, ``l1_ratio=0``, and the scores "accuracy",
        "balanced_accuracy", "neg_hinge_loss" and "neg_log_loss".
    search_max_fits : int, default=1000
        Limit on the work of a search with ``search_tol``, at least 1: each ``alpha``
        that is solved on the folds counts as one, and a bounded interval as a share of
        one, from a sixth for small data to less than a hundredth for large. The
        default is the number of fits of 50 grids of 20 values. A search that reaches
        it ends with what is proven so far, and a warning. The first 13 values are
        always solved.
    refit : bool, default=True
        Whether to fit all samples with the best ``alpha``. Otherwise coefficients are
        means over the folds, for which there is no objective or gap.
    l1_ratio : float or list of float, default=1.0
        Share of the L1 norm in the penalty, in [0, 1]. Of a list that is chosen which
        has the best mean score with its best ``alpha``, the first if there are several.
    penalty_factor : array-like of shape (n_features,), dict or None, default=None
        As in :class:`L1LogisticOWLQN`.
    solver : str, default="auto"
        As in :class:`L1LogisticOWLQN`.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is not penalized.
    tol : float, default=1e-3
        Relative gap to which each problem is solved.
    max_iter : int, default=1000
        Limit on the number of iterations per problem, at least 1.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the samples of each class, taken from all samples.
    memory : int, default=15
        Number of displacement pairs of quasi-Newton methods, at least 1.
    solver_options : dict or None, default=None
        Further options of the solver, such as those of its publication, by name. Which
        ones each solver takes, with their ranges and defaults, is in the table of
        `docs/methods.md`; others are refused.
    n_jobs : int or None, default=None
        Number of threads: over folds, and over blocks of rows in the refit. ``None``
        means 1 unless in a :func:`joblib.parallel_config` context.
    callback : callable or None, default=None
        Called after every iteration of the refit, as in :class:`L1LogisticOWLQN`. A
        method ``fold``, if it has one, is called after each fit on a fold with a named
        tuple of ``n_done``, ``n_fits``, ``fold``, ``alpha``, ``score``,
        ``relative_gap`` and ``seconds``.
    verbose : int, default=0
        Print the progress of the fits on folds and of the refit, at some of them and of
        its iterations if 1, at each if larger.

    Attributes
    ----------
    alphas_ : ndarray of shape (n_alphas,) or (n_l1_ratios, n_alphas)
        The grid, from the largest value to the smallest; with a list of values of
        ``l1_ratio`` one for each.
    alpha_ : float
        The value with the best mean score; the largest of them if there are several.
    best_score_ : float
        The mean score of that value over the folds.
    l1_ratio_ : float
        The value of ``l1_ratio`` that was chosen.
    scores_path_ : ndarray of shape ([n_l1_ratios,] n_folds, n_alphas)
        Scores on the left-out samples, ``error_score`` where there are none.
    search_gap_ : float
        With ``search_tol``: no ``alpha`` of the interval has a mean score better than
        ``best_score_`` by more, up to rounding.
    score_bounds_ : ndarray of shape (n_intervals, 4)
        With ``search_tol``: the ends of intervals of ``alpha``, and bounds of the mean
        score for all values between them.
    gaps_path_ : ndarray of shape ([n_l1_ratios,] n_folds, n_alphas)
        Proven relative gaps.
    coef_, intercept_, classes_, n_features_in_, feature_names_in_
        As in :class:`L1LogisticOWLQN`, of the final model.
    objective_, dual_gap_, n_iter_, history_, plan_
        As in :class:`L1LogisticOWLQN`; all but ``n_iter_`` with ``refit=True`` only.

    See Also
    --------
    L1LogisticOWLQN : The same model for one ``alpha``.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_subqn import L1LogisticOWLQNCV
    >>> X, y = make_classification(n_samples=300, random_state=0)
    >>> clf = L1LogisticOWLQNCV(alphas=5, cv=3).fit(X, y)
    >>> clf.scores_path_.shape
    (3, 5)
    >>> bool(clf.gaps_path_.max() <= 1e-3)
    True
    """

    fit = fit  # type: ignore[assignment]

    _one_alpha = L1LogisticOWLQN

    def __init__(
        self,
        alphas: Any = 20,
        *,
        cv: Any = None,
        scoring: Any = None,
        error_score: Any = np.nan,
        search_tol: float | None = None,
        search_max_fits: int = 1000,
        refit: bool = True,
        l1_ratio: Any = 1.0,
        penalty_factor: Any = None,
        solver: str = "auto",
        fit_intercept: bool = True,
        tol: float = 1e-3,
        max_iter: int = 1000,
        class_weight: Any = None,
        memory: int = 15,
        solver_options: Mapping[str, Any] | None = None,
        n_jobs: int | None = None,
        callback: Callable[[Progress], Any] | None = None,
        verbose: int = 0,
    ) -> None:
        self.alphas = alphas
        self.cv = cv
        self.scoring = scoring
        self.error_score = error_score
        self.search_tol = search_tol
        self.search_max_fits = search_max_fits
        self.refit = refit
        self.l1_ratio = l1_ratio
        self.penalty_factor = penalty_factor
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.memory = memory
        self.solver_options = solver_options
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose

    @property
    def penalty(self) -> str:
        """Name of the penalty, with a list of ``l1_ratio`` that which was chosen."""
        if self._tries_several():
            return self._penalty_of(getattr(self, "l1_ratio_", 0.5))
        return super().penalty

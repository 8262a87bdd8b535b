"""Cross-validated choice of the penalty of logistic models, with warm starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._checks.signatures import with_parameters
from ._search.cv import SearchCV, fit
from ._solving.solution import Callback
from .logistic import BaseL1Logistic, L1LogisticOWLQN


@with_parameters(kw_only=True)
class L1LogisticOWLQNCV(SearchCV, BaseL1Logistic):
    """Regularized logistic regression with cross-validation over a path.

    On each fold the problems are solved from the largest ``alpha`` to the smallest,
    each starting at the previous solution. The best ``alpha`` is then refitted on all
    samples.

    Parameters
    ----------
    alphas : int or array-like of shape (n_alphas,), default=20
        The grid, or its size. A grid of a given size is geometric, from the smallest
        value with all coefficients zero to a thousandth of it, or, with ``l1_ratio=0``,
        from 1e-2 to 1e-6 divided by the median of the positive penalty factors. It
        applies to features divided by their scales, and for ``l1_ratio=0`` it is
        multiplied by the mean number of nonzero entries of a row; sparse features keep
        their units.
    cv : int, cross-validation generator, iterable or None, default=None
        Cross-validation splits, as in scikit-learn; ``None`` means 5 stratified folds.
    scoring : str, callable or None, default=None
        Score to maximize, as in scikit-learn; ``None`` means accuracy. Sample weights
        are passed to the scorer if given. Metrics of probabilities get all classes as
        ``labels`` if possible, since a fold may lack some classes.
    error_score : "raise" or float, default=nan
        Score of a fold on which the scorer raises an error, for example if a class is
        missing. Folds without any finite score are excluded from the means, with a
        warning.
    search_tol : float, default=None
        Search an interval, ``alphas=(low, high)``, instead of a grid, and prove that no
        ``alpha`` in it has a mean score that exceeds the best one by more than
        ``search_tol``. For two classes, ``l1_ratio=0``, and the scores "accuracy",
        "balanced_accuracy", "neg_hinge_loss" and "neg_log_loss".
    search_max_fits : int, default=1000
        Limit on the work of a search with ``search_tol``, at least 1: each ``alpha``
        that is solved on the folds counts as one, and a bounded interval as a share of
        one, from a sixth for small data to less than a hundredth for large. The
        default is the number of fits of 50 grids of 20 values. A search that reaches
        it ends with what is proven so far, and a warning. The first 13 values are
        always solved.
    refit : bool, default=True
        Whether to fit all samples with the best ``alpha``. Otherwise the coefficients
        are averaged over the folds, without an objective or a gap.
    one_standard_error : bool, default=False
        Whether to choose the largest ``alpha`` whose mean score is within one standard
        error of the best one, for a simpler model (Breiman et al. 1984; Hastie et al.
        2009, section 7.10). Not with ``search_tol``, which proves the best mean only.
    l1_ratio : float or list of float, default=1.0
        Share of the L1 norm in the penalty, in [0, 1]. From a list, the value with the
        best mean score at its best ``alpha`` is chosen, the first one if several are
        equal.
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
        Further options of the solver by name, such as the parameters in its
        publication. The table in `docs/methods.md` lists the options of each solver,
        with ranges and defaults; unknown options raise an error.
    n_jobs : int or None, default=None
        Number of threads: over folds, and over blocks of rows in the refit. ``None``
        means 1 unless in a :func:`joblib.parallel_config` context.
    callback : callable or None, default=None
        Called after every iteration of the refit, as in :class:`L1LogisticOWLQN`. A
        method ``fold``, if it has one, is called after each fit on a fold with a named
        tuple of ``n_done``, ``n_fits``, ``fold``, ``alpha``, ``score``,
        ``relative_gap`` and ``seconds``.
    verbose : int, default=0
        Print progress at some fits on folds and some iterations of the refit if 1, at
        all of them if larger.

    Attributes
    ----------
    alphas_ : ndarray of shape (n_alphas,) or (n_l1_ratios, n_alphas)
        The grid in descending order; with a list of ``l1_ratio`` one grid for each.
    alpha_ : float
        The value with the best mean score, the largest one if several are equal; with
        ``one_standard_error`` the largest one within a standard error of the best.
    penalty_factor_ : ndarray of shape (n_features,)
        The factors of the features in the penalty; with a default grid and dense X they
        include scales.
    best_score_ : float
        The best mean score over the folds.
    l1_ratio_ : float
        The chosen value of ``l1_ratio``.
    scores_path_ : ndarray of shape ([n_l1_ratios,] n_folds, n_alphas)
        Scores on the held-out samples, ``error_score`` where scoring failed.
    search_gap_ : float
        With ``search_tol``: proven bound of how much the mean score of any ``alpha`` of
        the interval exceeds ``best_score_``, up to rounding.
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

    l1_ratio: Any = 1.0
    penalty_factor: Any = None
    solver: str = "auto"
    fit_intercept: bool = True
    tol: float = 1e-3
    max_iter: int = 1000
    class_weight: Any = None
    memory: int = 15
    solver_options: Mapping[str, Any] | None = None
    n_jobs: int | None = None
    callback: Callback | None = None
    verbose: int = 0

    @property
    def penalty(self) -> str:
        """Name of the penalty, for the chosen value in a list of ``l1_ratio``."""
        if self._tries_several():
            return self._penalty_of(getattr(self, "l1_ratio_", 0.5))
        return super().penalty

"""Cross-validated choice of the regularization of a linear SVM, with warm starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._checks.signatures import with_parameters
from ._search.cv import SearchCV, fit
from ._solving.solution import Callback
from .svm import BaseLinearSVC, SubLBFGSLinearSVC


@with_parameters(kw_only=True)
class SubLBFGSLinearSVCCV(SearchCV, BaseLinearSVC):
    """Linear SVM with cross-validation over a path of regularization strengths.

    On each fold the problems are solved from the largest ``alpha`` to the smallest,
    each starting at the previous solution and its dual point; this takes a fraction of
    the time of a grid search. The best ``alpha`` is then refitted on all samples.

    Parameters
    ----------
    alphas : int or array-like of shape (n_alphas,), default=20
        The grid, or its size. A grid of a given size is geometric between 1e-2 and
        1e-6, divided by the median of the positive penalty factors. It applies to
        features divided by their scales, and is multiplied by the mean number of
        nonzero entries of a row; sparse features keep their units.
    cv : int, cross-validation generator, iterable or None, default=None
        Cross-validation splits, as in scikit-learn; ``None`` means 5 stratified folds.
    scoring : str, callable or None, default=None
        Score to maximize, as in scikit-learn; ``None`` means accuracy. Sample weights
        are passed to the scorer if given.
    error_score : "raise" or float, default=nan
        Score of a fold on which the scorer raises an error, for example if a class is
        missing. Folds without any finite score are excluded from the means, with a
        warning.
    search_tol : float, default=None
        Search an interval, ``alphas=(low, high)``, instead of a grid, and prove that no
        ``alpha`` in it has a mean score that exceeds the best one by more than
        ``search_tol``. For both losses, and the scores "accuracy", "balanced_accuracy"
        and "neg_hinge_loss".
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
    loss : {"hinge", "squared_hinge"}, default="hinge"
        ``max(0, 1 - y f(x))`` or its square.
    penalty_factor : array-like of shape (n_features,), dict or None, default=None
        Factors f >= 0 of the features in the penalty ``alpha / 2 * sum_j f_j w_j²``, by
        default ones. A dict or Series is matched by feature names; missing features
        have the factor 1.
    solver : str, default="auto"
        As in :class:`SubLBFGSLinearSVC`.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is not penalized.
    tol : float, default=1e-3
        Relative gap to which each problem is solved.
    max_iter : int, default=1000
        Limit on the number of iterations per binary problem, at least 1.
    class_weight : dict, "balanced" or None, default=None
        Factors on the weights of the samples of each class, taken from all samples.
    memory : int, default=15
        Number of displacement pairs of limited-memory methods, at least 1.
    direction_tol : float, default=1e-5
        Tolerance of the search for a descent direction at kinks, of "sublbfgs" and
        "subbfgs".
    direction_max_iter : int, default=100
        Limit on the number of iterations of the search for a descent direction, at
        least 1.
    solver_options : dict or None, default=None
        Further options of the solver by name, such as the parameters in its
        publication. The table in `docs/methods.md` lists the options of each solver,
        with ranges and defaults; unknown options raise an error.
    n_jobs : int or None, default=None
        Number of threads: over folds, and over blocks of rows in the refit. ``None``
        means 1 unless in a :func:`joblib.parallel_config` context.
    callback : callable or None, default=None
        Called after every iteration of the refit, as in :class:`SubLBFGSLinearSVC`. A
        method ``fold``, if it has one, is called after each fit on a fold with a named
        tuple of ``n_done``, ``n_fits``, ``fold``, ``alpha``, ``score``,
        ``relative_gap`` and ``seconds``.
    verbose : int, default=0
        Print progress at some fits on folds and some iterations of the refit if 1, at
        all of them if larger.

    Attributes
    ----------
    alphas_ : ndarray of shape (n_alphas,)
        The grid in descending order.
    alpha_ : float
        The value with the best mean score, the largest one if several are equal; with
        ``one_standard_error`` the largest one within a standard error of the best.
    penalty_factor_ : ndarray of shape (n_features,)
        The factors of the features in the penalty; with a default grid and dense X they
        include scales.
    best_score_ : float
        The best mean score over the folds.
    scores_path_ : ndarray of shape (n_folds, n_alphas)
        Scores on the held-out samples, ``error_score`` where scoring failed.
    search_gap_ : float
        With ``search_tol``: proven bound of how much the mean score of any ``alpha`` of
        the interval exceeds ``best_score_``, up to rounding.
    score_bounds_ : ndarray of shape (n_intervals, 4)
        With ``search_tol``: the ends of intervals of ``alpha``, and bounds of the mean
        score for all values between them.
    gaps_path_ : ndarray of shape (n_folds, n_alphas)
        Proven relative gaps, the largest of all binary problems.
    coef_, intercept_, classes_, n_features_in_, feature_names_in_
        As in :class:`SubLBFGSLinearSVC`, of the final model.
    objective_, dual_gap_, n_iter_, history_, plan_
        As in :class:`SubLBFGSLinearSVC`; all but ``n_iter_`` with ``refit=True`` only.

    See Also
    --------
    SubLBFGSLinearSVC : The same model for one ``alpha``.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn_subqn import SubLBFGSLinearSVCCV
    >>> X, y = make_classification(n_samples=300, random_state=0)
    >>> clf = SubLBFGSLinearSVCCV(alphas=[1, 1e-1, 1e-2, 1e-3], cv=3).fit(X, y)
    >>> clf.scores_path_.shape
    (3, 4)
    >>> bool(clf.gaps_path_.max() <= 1e-3)
    True
    """

    fit = fit  # type: ignore[assignment]

    _one_alpha = SubLBFGSLinearSVC

    loss: str = "hinge"
    penalty_factor: Any = None
    solver: str = "auto"
    fit_intercept: bool = True
    tol: float = 1e-3
    max_iter: int = 1000
    class_weight: Any = None
    memory: int = 15
    direction_tol: float = 1e-5
    direction_max_iter: int = 100
    solver_options: Mapping[str, Any] | None = None
    n_jobs: int | None = None
    callback: Callback | None = None
    verbose: int = 0

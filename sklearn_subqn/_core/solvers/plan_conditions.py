"""Conditions in the table of plans, as functions of the properties of a problem.

The first line of the docstring of a condition is the sentence that ``verbose=2`` and
the page of the documentation show.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

import numpy as np

from ..steps.newton_direction import CG_ACCURACY, is_factorized
from ..steps.quadratic import forms_matrix
from .facts import Facts
from .related.smaller_units import LARGEST, excess

#: A condition is a function that returns whether a property holds, given ``Facts``.
Condition = Callable[[Facts], bool]

# Conditions that are attributes of ``Facts``.
has_squares: Condition = attrgetter("l2")
has_bounds: Condition = attrgetter("box")
has_l1: Condition = attrgetter("l1")
has_groups: Condition = attrgetter("groups")
has_norms: Condition = attrgetter("norms")
has_kinks: Condition = attrgetter("kinks")
is_smooth: Condition = attrgetter("smooth")
goes_by_columns: Condition = attrgetter("columnwise")
narrows: Condition = attrgetter("narrows")

#: The sentences of these conditions.
SENTENCES = {
    has_squares: "The penalty is a squared norm.",
    has_bounds: "Coefficients have bounds, or satisfy inequalities and are few.",
    has_l1: "The penalty has an L1 norm.",
    has_groups: "The penalty has norms of groups.",
    has_norms: "The penalty has an L1 norm, or norms of groups.",
    has_kinks: "The loss has kinks, and a smooth envelope.",
    is_smooth: "The loss is smooth.",
    goes_by_columns: "The loss has second derivatives for coordinate descent on "
    "columns.",
    narrows: "Smooth losses of pairs of rows approximate the loss.",
}

# Losses of one score per row are solved reliably with columns of up to 1e10.
# docs/constants.md has the figures.
_LARGEST_OF_ONE_SCORE = 1e10

# With an L1 norm, gradients of up to ten times the gradient in smaller units cause no
# difficulties.
_TOO_STEEP = 10.0

# An orthogonal basis of n rows takes, for each score, the time of about n / 6 products
# with X, and as much memory as X. It is limited to 2000 rows.
_MAX_ROWS = 2000

# With at least two features for each row, an orthogonal basis of the rows saves more
# time than its computation takes.
_FEATURES_PER_ROW = 2

# A sample has a sixteenth of the rows. docs/constants.md has the figures.
_SHARE = 1.0 / 16.0

# With several scores per row, there are more iterations and each is expensive, so a
# sample has an eighth of the rows.
_SHARE_SEVERAL = 1.0 / 8.0

# A sample has at least 64 rows for each parameter of a score.
_ROWS_PER_PARAMETER = 64

# With several scores per row a sample has at least eight rows for each parameter of a
# score, unless dual ascent is a good alternative.
_ROWS_PER_PARAMETER_SEVERAL = 8

# If no process has all rows in memory, a sample is sent to one process. It then has at
# most 350,000 entries, about 4 MB.
_MOST_MOVED = 350_000

# If the curvature of the dual exceeds 2e4, problems with hinges are first solved for
# larger alphas, beginning with an alpha at which the curvature is about 1e4.
_LARGEST_CURVATURE = (2e4, 1e4)

# On text, larger alphas come first if the curvature exceeds 1e3, beginning with an
# alpha at which the curvature is about 100. docs/constants.md has the figures.
_LARGEST_CURVATURE_TEXT = (1e3, 1e2)

# Data are tall if they have at least 100 rows for each parameter: with one score per
# row, their classes are rarely separable.
_TALL = 100

# On tall data with one score per row, larger alphas come first only if the curvature
# exceeds 1e10, beginning with an alpha at which the curvature is about 1e4.
_LARGEST_CURVATURE_TALL = (1e10, 1e4)

# If the curvature of the dual exceeds 1e3, problems with a differentiable loss whose
# derivative has kinks are first solved for larger alphas. docs/constants.md has the
# figures.
LARGE_CURVATURE = 1e3

# If the curvature of the dual exceeds 1 on wide data, losses with kinks are first
# replaced by a wide Moreau envelope.
_LOOSE = 1.0

# With an L1 penalty, the first of the larger alphas is about 3 % of the smallest alpha
# for which w is zero.
OF_ALPHA_MAX = 0.03

# On data that are not wide, problems of the squared hinge with an L1 penalty are first
# solved for larger alphas if alpha is below 1e-8 of the smallest one for which w is
# zero. Otherwise the method stops far from the optimum if columns have very different
# units: on wine with C = 1e7 at an objective of 8.2 instead of 6.15.
_TINY_OF_ALPHA_MAX = 1e-8

# With an L1 penalty at most six larger alphas are solved first. Below the sixth, rows
# are separated or the penalty is negligible.
MOST_LARGER = 6

# Below this curvature of the dual, most dual variables of a loss with kinks are at the
# same ends of their intervals as at w = 0, and subLBFGS finds the dual variables in its
# first step. docs/constants.md has the figures.
_LOOSEST = 1e-2

# A loss is replaced by its linear asymptote if fewer than four rows for each parameter
# have nonzero second derivatives.
_FEW_CURVED = 4.0


# Problems of at most 2^26 entries, zeros included, are solved in one compiled loop. The
# loop reports no progress and is single-threaded except for BLAS, which is acceptable
# for the ten seconds it takes at most. docs/constants.md has the figures.
MOST_ENTRIES = 1 << 26

# Rows are copied or converted for the loop if they have at most 400,000 entries.
# docs/constants.md has the figures.
_MOST_COPIED = 400_000

# With an L1 norm the loop is limited to 400 columns. docs/constants.md has the figures.
_MOST_COLUMNS_L1 = 400

# With an L1 norm and a loss with kinks the loop is limited to 100 columns.
# docs/constants.md has the figures.
_MOST_COLUMNS_KINKS_L1 = 100

# For a loss with kinks the loop is limited to 300 columns. docs/constants.md has the
# figures.
_MOST_COLUMNS = 300

# With several scores per row, the loop approximates the covariance of text-like data by
# its diagonal. If the curvature of the dual exceeds 20, it needs many more passes than
# Newton's method. docs/constants.md has the figures.
_LARGEST_CURVATURE_LOOP = 20.0

# With at least four rows for each column, the matrices of the loop take at most about
# half of the memory of X.
_ROWS_PER_COLUMN = 4


def is_small(f: Facts) -> bool:
    """The compiled loop suits loss and curvature, and copies few entries of X."""
    o = f.objective
    size = f.n_rows * f.n_params
    if not f.in_one_place or o.loss.oracle.looped is None:
        return False
    few = size <= _MOST_COPIED
    if f.several:
        fits = few or o.design.rows_in_memory() is not None
        fits = fits and f.l2 and o.targets.ndim == 1
        if o.design.is_text_like and f.curvature > _LARGEST_CURVATURE_LOOP:
            return False
        # In large units the lower bound of the loop does not hold for the original
        # penalty.
        return fits and not has_large_units(f)
    if size > MOST_ENTRIES:
        return False
    fits = few or (f.as_loops_read and not (f.kinks and is_tall(f)))
    if f.l2:
        most = _MOST_COLUMNS if f.kinks else f.n_rows // _ROWS_PER_COLUMN
        return fits and f.n_params <= (max(most, 101) if few else most)
    # With an L1 norm, problems of losses without initial curvature start at the
    # solution for their asymptote, and tiny alphas at the solution for larger alphas.
    most = _MOST_COLUMNS_KINKS_L1 if f.kinks else _MOST_COLUMNS_L1
    fits = fits and f.l1 and f.n_params <= most + 1
    return fits and not (is_linear(f) or has_small_l1(f))


# With such a small curvature of the dual along the variables of one row, rows are
# nearly orthogonal, and dual ascent needs only a few sweeps, which cost less than
# solving a sample. docs/constants.md has the figures.
_LOW_CURVATURE = 5.0

# If sparse rows have at most 100 entries, a Hessian costs few passes. docs/constants.md
# has the figures.
_SHORT_ROWS = 100

# Smooth approximations of kinks are accurate to a relative gap of 1e-9. Small problems
# with a smaller tolerance are solved by the bundle method.
_DIGITS_OF_NARROWING = 1e-9


def n_sampled(f: Facts) -> int:
    """Return the number of rows in a sample, zero if none saves time."""
    share, needed = _SHARE, _ROWS_PER_PARAMETER
    if f.several:
        share = _SHARE_SEVERAL
        if not f.separable:
            needed = _ROWS_PER_PARAMETER_SEVERAL
    # In smaller samples, the cost of linear systems in all parameters exceeds the
    # savings.
    least = max(needed * f.n_params, f.objective.n_params)
    if f.n_rows < least / share:
        return 0
    size = int(share * f.n_rows)
    if not f.in_one_place:
        size = min(size, int(_MOST_MOVED / max(f.row_size, 1.0)))
    return size if size >= least else 0


def limits(f: Facts) -> tuple[float, float]:
    """Return the curvature above which alpha is small, and the first curvature."""
    if f.text:
        return _LARGEST_CURVATURE_TEXT
    tall = not f.several and f.n_rows >= _TALL * f.n_params
    return _LARGEST_CURVATURE_TALL if tall else _LARGEST_CURVATURE


def has_small_alpha(f: Facts) -> bool:
    """The curvature is so large that hinges are solved for larger alphas first."""
    fits = f.l2 and f.hinge and (f.kinks or (f.text and f.wide))
    return fits and f.poor_start and f.curvature > limits(f)[0]


def has_no_small_alpha(f: Facts) -> bool:
    """The curvature is not so large that larger alphas come first."""
    return not has_small_alpha(f)


def has_small_smooth_alpha(f: Facts) -> bool:
    """Whether larger alphas come first for a smooth loss with kinks in its slope."""
    fits = f.l2 and f.kinked_slope and not f.text and f.from_zero and f.wide
    return fits and f.curvature > LARGE_CURVATURE


def has_small_l1(f: Facts) -> bool:
    """Whether alpha is so small that larger ones come first, with an L1 norm."""
    kinked, pairs = f.kinked_slope or f.kinks, f.pairs and f.smooth
    fits = f.l1 and f.from_zero and not f.several and (kinked or pairs)
    if not fits or not (f.wide or f.kinked_slope):
        return False
    return f.alpha_share < (OF_ALPHA_MAX if f.wide else _TINY_OF_ALPHA_MAX)


def holds_rows_tightly(f: Facts) -> bool:
    """Alpha is so small for the loss and the data that larger alphas come first."""
    if f.l2:
        return has_small_alpha(f) or has_small_smooth_alpha(f)
    by_columns = f.columnwise and not is_linear(f)
    together = (f.kinks or f.pairs) and f.in_one_place
    return (by_columns or together) and has_small_l1(f)


def has_large_units(f: Facts) -> bool:
    """All rows are in memory, and the penalty is negligible in units of features."""
    if not f.l2:
        return _has_large_units_for_l1(f) and not is_small(f)
    design, risk = f.objective.design, f.objective.risk
    by_rows = not f.several and (f.smooth or f.kinks)
    least = _LARGEST_OF_ONE_SCORE if by_rows else LARGEST
    # The row size is an upper bound of all column sizes.
    if not (f.in_one_place and design.holds_rows and risk.row_size > least):
        return False
    return float(risk.column_sizes[: design.n_coef].max(initial=0.0)) > least


def _has_large_units_for_l1(f: Facts) -> bool:
    """Whether an L1 norm hardly penalizes features, and rows are not separable."""
    if not (f.l1 and f.kinks and f.in_one_place) or f.several or f.wide:
        return False
    if f.hinge and f.n_rows < _TALL * f.n_params:
        return False
    is_norm = bool(np.all(f.objective.regularizer.limits() == 1.0))
    kept = is_norm and f.objective.design.holds_rows
    return kept and float(excess(f.objective).max(initial=0.0)) > _TOO_STEEP


def is_linear(f: Facts) -> bool:
    """Whether a loss with an asymptote has so few curved rows that it is linear."""
    fits = f.from_zero and f.kinked_slope and f.objective.loss.asymptote() is not None
    return fits and f.curved_rows < _FEW_CURVED


def is_wide(f: Facts) -> bool:
    """Whether there are few rows for each feature, and the dual is curved."""
    return f.wide and f.curvature > _LOOSE


def has_short_rows(f: Facts) -> bool:
    """Rows with several scores are few and dense, with more features than rows."""
    short = f.n_features >= _FEATURES_PER_ROW * f.n_rows
    kept = f.in_one_place and f.dense and f.n_rows <= _MAX_ROWS
    return f.several and kept and short


def is_tall(f: Facts) -> bool:
    """Whether the fit starts at zero, with enough rows to begin with a sample."""
    return f.from_zero and n_sampled(f) > 0


def has_sample(f: Facts) -> bool:
    """The fit starts at zero, and the solution of a sample is close to the optimum."""
    if not is_tall(f) or f.text:
        return False
    if f.in_one_place and not f.several:
        return True
    # If rows are nearly orthogonal, dual ascent is faster than a sample.
    return not (has_small_alpha(f) or (f.separable and f.curvature <= _LOW_CURVATURE))


def suits_ascent(f: Facts) -> bool:
    """Rows are separate in the dual, and have under 1 % entries or several scores."""
    if f.text:
        return f.smooth or (
            f.kinks and (f.several or not f.from_zero or f.curvature > _LOOSEST)
        )
    apart = f.kinks and f.several and f.separable
    return apart and not (f.warm or is_wide(f))


def has_quadratic_form(f: Facts) -> bool:
    """The penalty is a squared norm, or a quadratic form of few parameters."""
    return f.l2 or (f.quadratic and f.forms_hessian and not f.several)


def has_envelopes(f: Facts) -> bool:
    """Methods for smooth envelopes support the penalty."""
    return f.l2 or f.box or f.groups or (f.l1 and not f.several)


def goes_by_blocks(f: Facts) -> bool:
    """The loss has a curvature by columns, and of several scores one to be formed."""
    several = f.several and not f.objective.loss.joint
    n_used = min(f.n_rows, f.n_params) * (f.objective.design.n_outputs or 1)
    return f.columnwise and not (several and not forms_matrix(f.objective, n_used))


def needs_hessian(f: Facts) -> bool:
    """Rows are indicators of categories, or coordinate descent is impossible."""
    return not f.columnwise or (_is_of_categories(f) and not is_linear(f))


def forms_models(f: Facts) -> bool:
    """The matrix of second derivatives can be formed, of all or some of the columns.

    Models of some columns are for pairs of few rows, and for groups in blocks. With L1
    norms alone OWL-QN takes less time on sparse rows.
    """
    if f.forms_hessian:
        return True
    o, n_columns = f.objective, min(2 * f.n_rows, f.n_params)
    pairs = f.pairs and not f.several and is_factorized(o, CG_ACCURACY, n_columns)
    able = f.smooth and (pairs if f.in_one_place else f.groups and not f.pairs)
    return able and o.risk.makes_matrix(o.origin().curvature)


def needs_few_digits(f: Facts) -> bool:
    """The tolerance is at least {_DIGITS_OF_NARROWING}."""
    return f.options.stopping.tol >= _DIGITS_OF_NARROWING


def is_factorized_at_once(f: Facts) -> bool:
    """Newton systems are small enough to be factorized."""
    return is_factorized(f.objective, CG_ACCURACY)


def _is_of_categories(f: Facts) -> bool:
    """Whether rows are sparse and short, as indicators of categories are."""
    return f.kinked_slope and not f.dense and f.row_size <= _SHORT_ROWS

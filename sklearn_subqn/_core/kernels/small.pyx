"""Minimization of J(w) = l1 ||w||₁ + l2 / 2 ||w||² + sum_i s_i loss_i(z_i).

Rows are dense, with z = X w + o. Products divide columns by their sizes, so that X is
not copied. The losses are defined in ``row_losses.pxd``.

The proximal method of multipliers on the dual (Rockafellar 1976, Algorithm A, eq. 1.7)
replaces a loss with kinks by its envelope, from which width / 2 (v - center)² is
subtracted inside the maximum. It minimizes the envelope, moves the center to v and
reduces the width. Smooth losses are their own envelopes. The minimizer is found by
L-BFGS steps with the generalized Hessian l2 I + Xᵀ diag(s v'(t)) X (Qi and Sun 1993,
eq. 2.1) as metric, and before the first Hessian with its diagonal. The first Hessian is
estimated from a sample of the rows. A Hessian is formed if past and future steps
without it cost more than two Hessians and the steps with it. With an L1 norm a step
minimizes the quadratic model plus the norm over a working set of columns (Lee, Sun and
Saunders 2014, eq. 2.6). A line search by bracketed Newton steps follows.

Every v proves a bound: the gap between J(w) and the dual value of u is the sum of the
Fenchel-Young gaps of rows and of coefficients,

    J(w) - D(u) = sum_i s_i (loss_i(t_i) - (v_i t_i - h(v_i)))
                  + sum_j l2 / 2 (w_j - e_j)² + l1 (|w_j| - κ_j w_j),               (1)

where r = -Xᵀu is l2 e_j + l1 κ_j with κ_j a subgradient of |e_j|, if u sums to zero or
there is no free intercept. With l2 = 0 the dual point is c u with the largest c in [0,
1] for which c |r| <= l1, and R*(c u) <= c R*(u) - (1 - c) inf R. With free intercepts
the gap is an estimate. It is only the stopping criterion: callers balance u and compute
J and the bound with its rounding errors themselves.
"""

from .dense_rows cimport (
    GRAM_ROWS, dense_add_adjoint, dense_factor, dense_forward, dense_gram,
    dense_substitute,
)
from .limited_memory cimport (
    MEMORY, Pairs, add_multiple, begin_step, end_step, first_loop, inner, second_loop,
    take_back,
)
from .quadratic_models cimport descend, sign_of
from .row_losses cimport (
    BOX, NO_CENTER, SCALED, RowLoss, conjugates, formulas, loss_of, slopes_on_line,
)
from .rows cimport allocate
from .scales cimport scale_of
from .standard cimport INFINITY, fabs, free, log, memcpy, memset, sqrt
from .sums cimport Sum, add_all, result

cdef enum:
    # Limits on the centers, and on the trials of a line search.
    MOST_CENTERS = 60
    MOST_TRIALS = 60
    # Limit on the steps for each center. docs/constants.md has the figures.
    MOST_STEPS = 100
    # Limit on the columns of the first working set.
    MOST_FIRST = 200
    # Limit on the steps with a Hessian at a given scale that do not halve the gap.
    MOST_IDLE = 10
    # A sampled Hessian uses at least eight rows for each parameter. docs/constants.md
    # has the figures.
    SAMPLED = 8
    # Entries of X in a block of rows that stays in the cache between two products.
    CACHED = 32768

# Relative slope at which a line search stops, for losses with kinks and for smooth
# losses.
cdef double LEFT = 1e-2, LEFT_SMOOTH = 0.3

# The slope at a unit step of a smooth loss, relative to the slope at its start, is at
# most this (Nocedal and Wright 2006, eq. 3.7b). docs/constants.md has the figures.
cdef double LEFT_UNIT = 0.5

# Inner problems are solved to a twentieth of the outer gap.
cdef double SHARE = 0.05

# A Hessian of m parameters costs 1.8 √m products with X, by BLAS. docs/constants.md has
# the figures.
cdef double PRICE = 1.8

# Columns join the working set if their violation exceeds a tenth of the largest.
cdef double OUTSIDE = 0.1

# Cost of the first Hessian in products with X. docs/constants.md has the figures.
cdef double FIRST = 2.0

# Steps stop if a step with a Hessian leaves more than a quarter of a gap that may be a
# rounding error.
cdef double SLOW = 0.25

# Factor of each width relative to the one before, and the smallest width relative to
# the first one: small widths magnify the rounding errors of t in v. The loop stops
# after twenty centers in succession without progress, which happen without a squared
# penalty on the way to a vertex, and after three if gaps are nearly rounding errors.
cdef double FACTOR = 0.25, NARROWEST = 1e-2
cdef int MOST_STUCK = 20, MOST_STUCK_AT_END = 3

# Gaps below 1e-15 of J count as rounding errors, and gaps below 1e-10 may be rounding
# errors.
cdef double ROUNDED = 1e-15, NEARLY_ROUNDED = 1e-10

# The curvature of parameters is at least 1e-6 of its value with all rows curved, and
# 1e-12 of it for smooth losses. Without a squared penalty this bound is added to the
# curvature: with fewer curved rows than parameters steps would be unbounded.
cdef double LEAST = 1e-6, LEAST_SMOOTH = 1e-12


# Bends narrower than a thousandth of their first width count as kinks, which are left
# to other solvers.
cdef double sharp = 1e-3
SHARP = sharp


cdef struct FewRows:
    const double* X
    const double* y
    const double* s
    # There is an intercept if there are q = d + 1 parameters.
    Py_ssize_t n, d, q
    # Factors of the columns, one for the intercept, and a workspace for products with
    # them.
    double* factors
    double* scaled
    RowLoss loss
    double* center
    # Scores, first derivatives, second derivatives times s, and subgradients.
    double* z
    double* slope
    double* bend
    double* u


cdef struct Problem:
    FewRows rows
    # Whether the ridge is half of a scale, its lower bound, and the largest ridge so
    # far.
    bint is_scaled
    double least_ridge, largest_ridge
    double l1, l2, tol, infimum
    Py_ssize_t q, n_penalized, stride
    # Products with X since the last Hessian, whether there is a Hessian, and the pairs
    # of L-BFGS.
    double spent
    bint has_factor
    Pairs pairs
    # Means and mean squares of the columns, for the metric before the first Hessian.
    double* mean
    double* square
    # Parameters, gradient without the L1 norm, direction and its scores.
    double* w
    double* g
    double* p
    double* dz
    double* H
    double* least
    double* workspace
    # Workspace of ``dense_gram``.
    double* block
    # The m columns of H, which are a working set with an L1 norm; whether each column
    # is one of them; their gradient and parameters.
    Py_ssize_t m
    Py_ssize_t* columns
    bint* chosen
    double* part
    # Residuals, for Huber's loss with a scale.
    double* residuals
    # Results of ``evaluate``: J and both terms of (1).
    double value, excess, left


def minimize(
    const double[:, ::1] X,
    const double[::1] sizes,
    const double[::1] targets,
    const double[::1] offsets,
    const double[::1] weights,
    form,
    double l1,
    double l2,
    Py_ssize_t n_penalized,
    double tol,
    double infimum,
    double width,
    double[::1] w,
    double[::1] center,
    double[::1] dual,
):
    """Minimize until the gap (1) is at most tol |J - infimum|, or no longer decreases.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    sizes : ndarray of shape (d,)
        Positive divisors of the columns.
    targets, offsets, weights : ndarray of shape (n,)
        Targets y, offsets o and weights s.
    form : RowForm
        The loss. For the kind SCALED the given ridge is the lower bound of the ridge.
    l1, l2 : float
        Strengths of the penalty.
    n_penalized : int
        Parameters from ``n_penalized`` on are free.
    tol, infimum : float
    width : float
        The first width; zero for losses that are their own envelopes.
    w : ndarray of shape (q,)
        The starting point, replaced by the minimizer. With q = d + 1 the last entry is
        an intercept.
    center : ndarray of shape (n,)
        The first center, replaced by the last one.
    dual : ndarray of shape (n,)
        Receives u.

    Returns
    -------
    reached : bool
        Whether the gap is small enough.
    width : float
        The width for the next call.
    """
    cdef Py_ssize_t i, n = X.shape[0], d = X.shape[1], q = w.shape[0]
    cdef double last, gap = INFINITY, narrowest = NARROWEST * width
    cdef int stuck = 0, k
    cdef bint done = False, at_end
    cdef Problem o
    if q < max(d, 1) or q > d + 1 or n_penalized > q or not n:
        raise ValueError(f"{q} parameters for {n} rows of {d} features")
    if sizes.shape[0] != d:
        raise ValueError(f"{len(sizes)} sizes of {d} features")
    for length in map(len, (targets, offsets, weights, center, dual)):
        if length != n:
            raise ValueError(f"{length} numbers for {n} rows")
    cdef FewRows* rows = &o.rows
    rows.loss = loss_of(form)
    rows.loss.width, o.least_ridge = width, rows.loss.ridge
    o.is_scaled, o.largest_ridge = rows.loss.kind == SCALED, 0.0
    if o.is_scaled:
        rows.loss.kind = BOX
    if rows.loss.kind == BOX and o.least_ridge + width <= 0.0:
        raise ValueError("losses with kinks need a width")
    # Steps with an L1 norm need a copy of the Hessian.
    cdef Py_ssize_t room = q * (q + 3 if l1 > 0.0 else 1)
    cdef Py_ssize_t size = 5 * n + room + q * (q + 12 + GRAM_ROWS + 2 * MEMORY)
    cdef double* workspace = <double*> allocate(size * sizeof(double))
    rows.X = &X[0, 0] if d else NULL
    rows.y, rows.s = &targets[0], &weights[0]
    rows.n, rows.d, rows.q, rows.center = n, d, q, &center[0]
    rows.z, rows.slope = workspace, workspace + n
    rows.bend, rows.u = workspace + 2 * n, &dual[0]
    o.dz, o.residuals, o.g = workspace + 3 * n, workspace + 4 * n, workspace + 5 * n
    o.p, o.least = o.g + q, o.g + 2 * q
    o.H, o.workspace = o.g + 3 * q, o.g + (3 + q) * q
    o.block = o.workspace + room
    o.mean = o.block + q * GRAM_ROWS
    o.square, o.pairs.dw = o.mean + q, o.mean + 2 * q
    o.pairs.m, o.pairs.n, o.pairs.dg = q, 0, o.pairs.dw + MEMORY * q
    o.part = o.pairs.dg + MEMORY * q
    rows.factors, rows.scaled = o.part + 3 * q, o.part + 4 * q
    o.columns = <Py_ssize_t*> (rows.scaled + q)
    o.chosen, o.m = <bint*> (o.columns + q), q
    for i in range(q):
        o.columns[i], o.chosen[i] = i, l1 == 0.0
        rows.factors[i] = 1.0 / sizes[i] if i < d else 1.0
    o.l1, o.l2, o.tol, o.infimum = l1, l2, tol, infimum
    o.q, o.n_penalized, o.w = q, n_penalized, &w[0]
    o.stride = first_stride(&o) if width == 0.0 else 1
    o.spent, o.has_factor = FIRST, False
    try:
        with nogil:
            scale(rows, o.w)
            forward(&o)
            for i in range(n):
                rows.z[i] = offsets[i] + o.dz[i]
            find_least(&o)
            find_moments(&o)
            for k in range(MOST_CENTERS):
                last = gap
                done = minimize_envelope(&o, &gap)
                if done or rows.loss.width == 0.0:
                    break
                stuck = stuck + 1 if gap > 0.5 * last else 0
                at_end = gap <= NEARLY_ROUNDED * fabs(o.value)
                if stuck == (MOST_STUCK_AT_END if at_end else MOST_STUCK):
                    break
                for i in range(n):
                    rows.center[i] = variable(rows, i)
                rows.loss.width = max(FACTOR * rows.loss.width, narrowest)
    finally:
        free(workspace)
    return bool(done), rows.loss.width


cdef void scale(const FewRows* o, const double* w) noexcept nogil:
    """Set ``scaled`` to the coefficients w of columns without their factors."""
    cdef Py_ssize_t j
    for j in range(o.q):
        o.scaled[j] = o.factors[j] * w[j]


cdef void forward(Problem* o) noexcept nogil:
    """Compute dz = X ``scaled``, without reading X if the coefficients are zero."""
    cdef FewRows* rows = &o.rows
    cdef Py_ssize_t i, j, used = 0
    for j in range(rows.d):
        used += rows.scaled[j] != 0.0
    if used:
        dense_forward(rows.X, rows.n, rows.d, rows.q, rows.scaled, o.dz, 1)
        return
    for i in range(rows.n):
        o.dz[i] = rows.scaled[rows.d] if rows.q > rows.d else 0.0


cdef double variable(const FewRows* o, Py_ssize_t i) noexcept nogil:
    """Return the dual variable v of a row in a box."""
    return -o.slope[i] * (o.y[i] if o.loss.labels > 0.0 else 1.0)


cdef void find_scale(Problem* o, double step) noexcept nogil:
    """Set the ridge to half of the best scale at a step along the direction."""
    cdef FewRows* rows = &o.rows
    cdef Py_ssize_t i
    for i in range(rows.n):
        o.residuals[i] = rows.y[i] - rows.z[i] - step * o.dz[i]
    rows.loss.ridge = max(o.least_ridge, 0.5 * scale_of(
        o.residuals, rows.s, rows.n, 0.5 * rows.loss.high, 2.0 * rows.loss.ridge
    ))


cdef bint is_sharp(Problem* o) noexcept nogil:
    """Whether bends are as narrow as kinks, or contain at most as many rows as
    parameters.
    """
    cdef Py_ssize_t i, bent = 0
    o.largest_ridge = max(o.largest_ridge, o.rows.loss.ridge)
    for i in range(o.rows.n):
        bent += o.rows.bend[i] > 0.0
    return o.rows.loss.ridge < sharp * o.largest_ridge or bent <= o.q


cdef void find_least(Problem* o) noexcept nogil:
    """Compute lower bounds of the curvature without squares, for a width of one."""
    cdef Py_ssize_t i, j
    cdef const double* x = o.rows.X
    cdef const double* factors = o.rows.factors
    cdef Py_ssize_t first = 0 if o.l2 == 0.0 else o.n_penalized
    for j in range(o.q):
        o.least[j] = 0.0
    for i in range(o.rows.n):
        for j in range(first, o.rows.d):
            o.least[j] += o.rows.s[i] * (factors[j] * x[j]) * (factors[j] * x[j])
        x += o.rows.d
    # Columns of zeros may have any positive curvature; the first bound is one.
    for j in range(first, o.q):
        if o.least[j] == 0.0:
            o.least[j] = 1.0


cdef void find_moments(Problem* o) noexcept nogil:
    """Compute means and mean squares of the columns from a few hundred rows."""
    cdef Py_ssize_t i = 0, j, d = o.rows.d, m = 0
    cdef const double* x
    memset(o.mean, 0, 2 * o.q * sizeof(double))
    while i < o.rows.n:
        x = o.rows.X + i * d
        for j in range(d):
            o.mean[j] += x[j]
            o.square[j] += x[j] * x[j]
        m += 1
        i += max(o.rows.n // 512, 1)
    for j in range(d):
        o.mean[j] *= o.rows.factors[j] / m
        o.square[j] *= o.rows.factors[j] * o.rows.factors[j] / m


cdef bint minimize_envelope(Problem* o, double* gap) noexcept nogil:
    """Take steps for one center; return whether the gap is small enough."""
    cdef FewRows* rows = &o.rows
    cdef double last = gap[0], slope, ignored, before = INFINITY, least = INFINITY
    cdef double allowed, enough, first = INFINITY
    cdef int k, steps = 0, idle = 0
    cdef bint changed, exact, ends
    o.pairs.n = 0
    evaluate(o, False)
    for k in range(MOST_STEPS):
        gap[0] = min(gap[0], o.left + o.excess)
        if o.is_scaled and is_sharp(o):
            return False
        allowed = o.tol * fabs(o.value - o.infimum)
        if o.left + o.excess <= allowed:
            return True
        if k > 0 and o.left <= max(
            SHARE * min(o.excess, last), ROUNDED * fabs(o.value)
        ):
            return False
        idle = 0 if o.left < 0.5 * least or not o.has_factor else idle + 1
        least = o.left if idle == 0 else least
        ends = o.is_scaled or o.left <= NEARLY_ROUNDED * fabs(o.value)
        if ends and idle == MOST_IDLE:
            return False
        changed = o.l1 > 0.0 and change_columns(o)
        enough = max(allowed, SHARE * min(o.excess, last))
        if changed or is_time_to_buy(o, first, steps, enough):
            # Second derivatives at a given scale are upper bounds.
            exact = o.stride == 1 and not o.is_scaled
            if rows.loss.width == 0.0 and o.left > SLOW * before and exact:
                if o.left <= NEARLY_ROUNDED * fabs(o.value):
                    return False
            if not buy(o):
                return False
            before, steps = o.left, 0
        if steps == 0:
            first = o.left
        steps += 1
        if not find_direction(o):
            return False
        slope_along(o, 0.0, &ignored, &slope)
        if not slope < 0.0:
            return False
        begin_step(&o.pairs, o.w, o.g)
        advance(o, slope)
        end_step(&o.pairs, o.w, o.g)
        o.spent += 2.0
    return False


cdef Py_ssize_t first_stride(const Problem* o) noexcept nogil:
    """Return the stride of the sample for the first Hessian."""
    cdef double whole = PRICE * sqrt(o.m) * (1.0 + o.m / <double> o.rows.n)
    cdef Py_ssize_t most = 1 + <Py_ssize_t> (whole / FIRST)
    return max(min(o.rows.n // (SAMPLED * o.m), most), 1)


cdef double price(const Problem* o) noexcept nogil:
    """Return the cost of the next Hessian in products with X."""
    cdef Py_ssize_t i = 0, used = 0
    while i < o.rows.n:
        used += o.rows.bend[i] > 0.0
        i += o.stride
    return PRICE * sqrt(o.m) * (o.m / <double> o.q) * (used + o.m) / o.rows.n


cdef double products_ahead(double shrinking, double each) noexcept nogil:
    """Return the cost of steps that divide the gap by exp(each) until it is reduced."""
    return 2.0 * log(shrinking) / each if each > 0.0 else INFINITY


cdef bint is_time_to_buy(
    const Problem* o, double first, int steps, double allowed
) noexcept nogil:
    """Whether forming another Hessian takes less time than continuing without it.

    The gap was ``first`` before the last ``steps`` steps. Without another Hessian,
    future steps are assumed to reduce the gap by the average factor of these steps;
    with it, by the number of its rows for each parameter. It is formed if past steps
    have cost half of it, and if past steps plus the savings in future steps cost twice
    as much.
    """
    cdef double each = price(o), left = o.left / allowed
    cdef double rows = o.rows.n / <double> (o.stride * o.m)
    if steps == 0:
        return o.spent >= each
    cdef double ahead = products_ahead(left, log(first / o.left) / steps)
    ahead -= products_ahead(left, log(max(rows, SAMPLED)))
    return o.spent >= 0.5 * each and o.spent + ahead >= 2.0 * each


cdef double violation(const Problem* o, Py_ssize_t j) noexcept nogil:
    """Return the distance from zero of a coordinate's subgradients."""
    if j >= o.n_penalized:
        return fabs(o.g[j])
    if o.w[j] != 0.0:
        return fabs(o.g[j] + o.l1 * sign_of(o.w[j]))
    return max(fabs(o.g[j]) - o.l1, 0.0)


cdef bint change_columns(Problem* o) noexcept nogil:
    """Choose a new working set if columns outside of it violate most; return whether.

    It has the columns with nonzero coefficients, and as many others with the largest
    violations, or MOST_FIRST.
    """
    cdef Py_ssize_t j, used = 0, beyond = 0
    cdef double worst = 0.0, threshold
    for j in range(o.q):
        worst = max(worst, violation(o, j))
        used += o.w[j] != 0.0
    threshold = OUTSIDE * worst
    for j in range(o.q):
        beyond += not o.chosen[j] and violation(o, j) > threshold
    if o.has_factor and beyond == 0:
        return False
    threshold = 0.0
    while True:
        beyond = 0
        for j in range(o.q):
            beyond += o.w[j] == 0.0 and violation(o, j) > threshold
        if beyond <= max(used, MOST_FIRST):
            break
        threshold = max(1.3 * threshold, OUTSIDE * worst)
    o.m = 0
    for j in range(o.q):
        o.chosen[j] = (
            j >= o.n_penalized or o.w[j] != 0.0 or violation(o, j) > threshold
        )
        if o.chosen[j]:
            o.columns[o.m] = j
            o.m += 1
    if o.m == 0:
        # No column decreases J; a Hessian needs at least one column.
        o.chosen[0], o.columns[0], o.m = True, 0, 1
    if o.rows.loss.width == 0.0:
        o.stride = first_stride(o)
    return True


cdef double least_bend(const Problem* o) noexcept nogil:
    if o.rows.loss.kind == BOX:
        return LEAST / (o.rows.loss.ridge + o.rows.loss.width)
    return LEAST_SMOOTH


cdef bint buy(Problem* o) noexcept nogil:
    """Compute the Hessian, and factorize it if there is no L1 norm."""
    cdef Py_ssize_t i, j
    cdef double* h
    cdef double least = least_bend(o)
    dense_gram(
        o.rows.X, o.rows.n, o.rows.d, o.m, o.rows.bend, o.stride, o.H, o.block,
        o.columns if o.l1 > 0.0 else NULL, o.rows.factors,
    )
    for i in range(o.m):
        j, h = o.columns[i], o.H + i * (o.m + 1)
        if j < o.n_penalized:
            h[0] += o.l2
        if o.l2 > 0.0:
            h[0] = max(h[0], least * o.least[j])
        else:
            h[0] += least * o.least[j]
    o.spent, o.stride, o.pairs.n = 0.0, 1, 0
    o.has_factor = o.l1 > 0.0 or dense_factor(o.H, o.q)
    return o.has_factor


cdef void move(Problem* o, double step) noexcept nogil:
    """Move along the direction."""
    add_multiple(o.w, step, o.p, o.q)
    add_multiple(o.rows.z, step, o.dz, o.rows.n)


cdef void advance(Problem* o, double slope) noexcept nogil:
    """Take a step along the direction, and evaluate.

    For a smooth loss the unit step comes first: one pass over X computes its scores and
    its gradient.
    """
    cdef double left, right
    scale(&o.rows, o.p)
    if o.rows.loss.width == 0.0 and not o.is_scaled:
        add_multiple(o.w, 1.0, o.p, o.q)
        evaluate(o, True)
        slope_along(o, 0.0, &left, &right)
        if is_level(left, right, LEFT_UNIT * -slope):
            add_multiple(o.rows.z, 1.0, o.dz, o.rows.n)
            return
        take_back(&o.pairs, o.w)
    else:
        forward(o)
    move(o, line_search(o, slope))
    evaluate(o, False)


cdef void evaluate_rows(Problem* o, double* reach, bint ahead) noexcept nogil:
    """Compute derivatives, Xᵀu, the sum of the losses, and the first term of (1).

    ``reach`` is the weighted sum of |t|, or of |z|. With ``ahead`` all are computed at
    the end of the unit step, and dz as well: both products read a block of rows while
    it is in the cache.
    """
    cdef FewRows* rows = &o.rows
    cdef Py_ssize_t i, start = 0, m, d = rows.d
    cdef Py_ssize_t most = max(min(256, CACHED // max(d, 1)), 8)
    cdef double width = rows.loss.width, bound, shift
    cdef double[256] f, own, rest, moved
    cdef double* z
    cdef RowLoss kinked = rows.loss
    cdef Sum total = Sum(0.0, 0.0), left = Sum(0.0, 0.0), size = Sum(0.0, 0.0)
    kinked.width = 0.0
    memset(o.g, 0, o.q * sizeof(double))
    while start < rows.n:
        m, z = min(most, rows.n - start), rows.z + start
        if ahead:
            dense_forward(
                rows.X + start * d, m, d, o.q, rows.scaled, o.dz + start, 1
            )
            for i in range(m):
                moved[i] = z[i] + o.dz[start + i]
            z = moved
        formulas(
            &rows.loss, z, rows.y + start, rows.center + start, m,
            f, rows.slope + start, rows.bend + start,
        )
        if width > 0.0:
            formulas(&kinked, z, rows.y + start, NULL, m, own, NULL, NULL)
            for i in range(m):
                shift = variable(rows, start + i) - rows.center[start + i]
                bound = f[i] + 0.5 * width * shift * shift
                rest[i] = rows.s[start + i] * max(own[i] - bound, 0.0)
                f[i] = own[i]
            add_all(&left, rest, m)
        for i in range(m):
            f[i] *= rows.s[start + i]
            shift = rows.y[start + i] if rows.loss.kind == BOX else 0.0
            rest[i] = rows.s[start + i] * fabs(z[i] - shift)
            rows.u[start + i] = rows.s[start + i] * rows.slope[start + i]
            rows.bend[start + i] *= rows.s[start + i]
        add_all(&total, f, m)
        add_all(&size, rest, m)
        dense_add_adjoint(rows.X + start * d, m, d, o.q, rows.u + start, o.g)
        start += m
    o.value, o.excess, reach[0] = result(&total), result(&left), result(&size)


cdef void evaluate(Problem* o, bint ahead) noexcept nogil:
    """Compute v, u, the gradient, J and both terms of the duality gap (1).

    With ``ahead``, w is the end of the unit step, and z is still its start.
    """
    cdef FewRows* rows = &o.rows
    cdef Py_ssize_t i, j
    cdef double reach, steepest = o.l1, c = 1.0, r, w, inside, over
    cdef double bend = 0.0, risk, change, exact
    if o.is_scaled:
        find_scale(o, 0.0)
    evaluate_rows(o, &reach, ahead)
    risk = o.value
    o.left = 0.0
    if o.is_scaled:
        o.value += 2.0 * rows.loss.ridge
    for i in range(rows.n):
        bend += rows.bend[i]
    for j in range(o.q):
        o.g[j] *= rows.factors[j]
    for j in range(o.n_penalized):
        w, r = o.w[j], -o.g[j]
        o.value += o.l1 * fabs(w) + 0.5 * o.l2 * w * w
        o.g[j] += o.l2 * w
        if o.l2 > 0.0:
            # Subtracting the rest from r would round to a number above l1.
            inside = min(max(r, -o.l1), o.l1)
            over = r - inside
            o.left += 0.5 * (o.l2 * w - over) * (w - over / o.l2)
            r = inside
        steepest = max(steepest, fabs(r))
        o.left += o.l1 * fabs(w) - r * w
    # Intercepts need dual variables that sum to zero. For a loss with kinks the dual
    # variables are scaled down. For a smooth loss all of them are shifted, which lowers
    # the bound by the intercept times their sum, and by the squared shift times the
    # curvature of the conjugate.
    for j in range(o.n_penalized, o.q):
        if rows.loss.width > 0.0 or not bend > 0.0:
            o.left += fabs(o.g[j]) * reach
        else:
            o.left += fabs(o.g[j] * o.w[j]) + o.g[j] * o.g[j] / bend
    if steepest > o.l1:
        c = o.l1 / steepest
        change = (c - 1.0) * o.infimum
        if not o.is_scaled:
            # R*(u) is <u, z> - R + excess.
            exact = scaled_conjugate(o, c, ahead) + c * (risk - o.excess)
            change = min(change, exact)
        o.left = max(c * o.left + (1.0 - c) * (o.value - o.excess) + change, 0.0)


cdef double scaled_conjugate(const Problem* o, double c, bint ahead) noexcept nogil:
    """Return R*(c u) - c <u, z>, or infinity if rounding puts c u outside."""
    cdef const FewRows* rows = &o.rows
    cdef Py_ssize_t i, j, start, m
    cdef double[256] u, h, size
    cdef RowLoss kinked = rows.loss
    cdef Sum total = Sum(0.0, 0.0)
    kinked.width = 0.0
    for start in range(0, rows.n, 256):
        m = min(256, rows.n - start)
        for i in range(m):
            u[i] = c * rows.u[start + i]
        if conjugates(
            &kinked, u, rows.y + start, rows.s + start, NO_CENTER, m, h, size
        ):
            return INFINITY
        for i in range(m):
            j = start + i
            h[i] -= u[i] * (rows.z[j] + (o.dz[j] if ahead else 0.0))
        add_all(&total, h, m)
    return result(&total)


cdef bint find_direction(Problem* o) noexcept nogil:
    """Compute the step to the minimizer of the quadratic model."""
    cdef Py_ssize_t j
    cdef int last = (o.pairs.n - 1) % MEMORY
    cdef double scale = ROUNDED * ROUNDED * fabs(o.value)
    cdef double* dg = o.pairs.dg + last * o.q
    if o.l1 > 0.0:
        return descend_on_columns(o, scale)
    for j in range(o.q):
        o.p[j] = -o.g[j]
    first_loop(&o.pairs, o.p)
    if o.has_factor:
        dense_substitute(o.H, o.p, o.q)
    else:
        by_columns(o, o.p)
        if o.pairs.n > 0:
            # The last pair determines the scale of the estimate.
            memcpy(o.workspace, dg, o.q * sizeof(double))
            by_columns(o, o.workspace)
            scale = o.pairs.curvature[last] / inner(dg, o.workspace, o.q)
            for j in range(o.q):
                o.p[j] *= scale
    second_loop(&o.pairs, o.p)
    return True


cdef bint descend_on_columns(Problem* o, double nothing) noexcept nogil:
    """Compute the step to the minimizer of the quadratic model plus the L1 norm."""
    cdef Py_ssize_t i, enough, n_penalized = 0
    cdef double* g = o.part
    cdef double* w = g + o.m
    cdef double* p = w + o.m
    for i in range(o.m):
        g[i], w[i] = o.g[o.columns[i]], o.w[o.columns[i]]
        n_penalized += o.columns[i] < o.n_penalized
    # As many sweeps as take the time of the products of a step.
    enough = <Py_ssize_t> (2.0 * o.rows.n * o.q / o.m / o.m)
    if not descend(o.H, g, w, o.l1, n_penalized, o.m, nothing, enough, p, o.workspace):
        return False
    memset(o.p, 0, o.q * sizeof(double))
    for i in range(o.m):
        o.p[o.columns[i]] = p[i]
    return True


cdef void by_columns(Problem* o, double* p) noexcept nogil:
    """Multiply by the inverse of the diagonal of the Hessian, with the intercept
    eliminated.
    """
    cdef Py_ssize_t i, j, d = o.rows.d
    cdef double bend = 0.0, intercept = 0.0, h, least = least_bend(o)
    for i in range(o.rows.n):
        bend += o.rows.bend[i]
    if o.q > d:
        bend = max(bend, least)
        intercept = p[d]
    for j in range(d):
        h = bend * max(o.square[j] - o.mean[j] * o.mean[j], 0.0)
        if j < o.n_penalized:
            h += o.l2
        p[j] = (p[j] - o.mean[j] * intercept) / max(h, least * o.least[j])
    if o.q > d:
        p[d] = intercept / bend - inner(o.mean, p, d)


cdef void slope_along(
    Problem* o, double step, double* left, double* right
) noexcept nogil:
    """Compute left and right slopes along p: of the penalty at a step, of J at 0."""
    cdef Py_ssize_t j
    cdef double w, total = 0.0, jump = 0.0
    for j in range(o.n_penalized):
        w = o.w[j] + step * o.p[j]
        if step != 0.0:
            total += o.l2 * w * o.p[j]
        if w == 0.0:
            jump += o.l1 * fabs(o.p[j])
        else:
            total += o.l1 * sign_of(w) * o.p[j]
    if step == 0.0:
        for j in range(o.q):
            total += o.g[j] * o.p[j]
    left[0], right[0] = total - jump, total + jump


cdef bint is_level(double left, double right, double allowed) noexcept nogil:
    """Whether the slopes on both sides of a point are small enough."""
    return left <= allowed and right >= -allowed


cdef double line_search(Problem* o, double slope) noexcept nogil:
    """Return a step where the slope is small enough, by bracketed Newton steps."""
    cdef FewRows* rows = &o.rows
    cdef Py_ssize_t j
    cdef double low = 0.0, high = INFINITY, step = 1.0, following, most
    cdef double left, right, change, bend, squares = 0.0
    cdef int k
    cdef double accuracy = LEFT if rows.loss.width > 0.0 else LEFT_SMOOTH
    for j in range(o.n_penalized):
        squares += o.l2 * o.p[j] * o.p[j]
    for k in range(MOST_TRIALS):
        if o.is_scaled:
            find_scale(o, step)
        slopes_on_line(
            &rows.loss, rows.z, o.dz, rows.y, rows.s, rows.center, rows.n, step,
            &change, &bend,
        )
        slope_along(o, step, &left, &right)
        left += change
        right += change
        bend += squares
        if is_level(left, right, accuracy * -slope):
            break
        if right < 0.0:
            low, change = step, right
        else:
            high, change = step, left
        following = step - change / bend if bend > 0.0 else INFINITY
        # Newton steps from the far end of an exponential function are short.
        most = 0.1 * low + 0.9 * high
        if not low < following <= most or following > 10.0 * step:
            following = 0.5 * (low + high) if high < INFINITY else 4.0 * step
        if following == step:
            break
        step = following
    return step

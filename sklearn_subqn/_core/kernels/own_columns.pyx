"""Columns of sparse batches: distinct columns, their metric, and lazy updates."""

from .compressed cimport check_all
from .exponentials cimport exponentials
from .rows cimport allocate, index, AHEAD, prefetch, real
from .standard cimport fabs, free, memset, sqrt

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define count_bits(word) __builtin_popcountll(word)
    #define lowest_bit(word) __builtin_ctzll(word)
    #else
    static int count_bits(unsigned long long word) {
        int n = 0;
        for (; word; word &= word - 1) n++;
        return n;
    }
    #define lowest_bit(word) count_bits(((word) & -(word)) - 1)
    #endif
    """
    int count_bits(unsigned long long word) noexcept nogil
    int lowest_bit(unsigned long long word) noexcept nogil

ctypedef unsigned long long word


def distinct(
    const index[::1] numbers,
    Py_ssize_t n,
    Py_ssize_t[::1] columns,
    int[::1] places,
):
    """Write the distinct numbers below n, ascending, and each number's index there.

    The numbers are marked in an array of n bits, which is fast to scan.

    Parameters
    ----------
    numbers : ndarray of shape (m,)
    columns : ndarray of shape (at least the number of distinct numbers,)
    places : ndarray of shape (m,)

    Returns
    -------
    int
        Number of distinct numbers.
    """
    cdef Py_ssize_t m = numbers.shape[0], n_words = n // 64 + 1, i, count = 0
    cdef word bits, one = 1
    if places.shape[0] != m or columns.shape[0] < min(m, n):
        raise ValueError("numbers and their places differ in length.")
    for i in range(m):
        if not 0 <= numbers[i] < n:
            raise ValueError(f"column {numbers[i]} is none of {n}.")
    cdef word* marks = <word*> allocate(n_words * sizeof(word))
    cdef int* before = NULL
    try:
        before = <int*> allocate(n_words * sizeof(int))
        with nogil:
            memset(marks, 0, n_words * sizeof(word))
            for i in range(m):
                marks[numbers[i] >> 6] |= one << (numbers[i] & 63)
            for i in range(n_words):
                before[i] = <int> count
                bits = marks[i]
                while bits:
                    columns[count] = 64 * i + lowest_bit(bits)
                    bits &= bits - 1
                    count += 1
            for i in range(m):
                bits = marks[numbers[i] >> 6] & ((one << (numbers[i] & 63)) - 1)
                places[i] = before[numbers[i] >> 6] + count_bits(bits)
    finally:
        free(before)
        free(marks)
    return count


cdef extern from *:
    """
    #include <math.h>
    #include <stddef.h>
    #include "widest.h"

    /* Settings that the metric of all features shares. */
    typedef struct {
        double n_rows, n_batches, l1, l2, least_share;
        int centered, has_present;
    } Sums;

    /* Write centers and inverse curvatures of m coefficients. */
    WIDEST static void metric_of(
        Sums o, ptrdiff_t m, const double *h, const double *hx, const double *hxx,
        const double *present, double *restrict center, double *restrict scale)
    {
        for (ptrdiff_t i = 0; i < m; i++) {
            const int far = o.centered && hx[i] * hx[i] > o.least_share * hxx[i] * h[i];
            center[i] = far ? hx[i] / h[i] : 0.0;
            double variance = hxx[i] - center[i] * hx[i];
            /* A variance at the level of rounding errors is a constant feature, which
               the intercept already represents. */
            const int varies = variance > 1e-12 * hxx[i];
            if (o.has_present) {
                double share = present[i] / h[i] * (o.n_rows / o.n_batches);
                share = share < 1e-300 ? 1e-300 : share;
                variance /= share > 1.0 ? 1.0 : share;
            }
            scale[i] = varies ? o.n_rows / (variance + o.n_rows * o.l2) : 0.0;
        }
    }

    /* Apply the penalty of earlier steps to iterates w and their averages. */
    WIDEST static void pending(
        Sums o, ptrdiff_t m, const double *scale, double passed, double lag,
        double *restrict decay, double *restrict w, double *restrict mean)
    {
        for (ptrdiff_t i = 0; i < m; i++)
            decay[i] = -o.l2 * scale[i] * passed;
        exponentials(decay, m);
        for (ptrdiff_t i = 0; i < m; i++) {
            double size = fabs(w[i]) * decay[i];
            if (o.l1 > 0.0) {
                /* The solution of dw/dt = -l2 w - l1 sign(w), until w is zero. */
                const double eta = scale[i] * passed, y = o.l2 * eta;
                const double mean_decay = y < 1e-5
                    ? 1.0 - y * (0.5 - y / 6.0) : (1.0 - decay[i]) / y;
                size -= o.l1 * eta * mean_decay;
                size = size > 0.0 ? size : 0.0;
            }
            w[i] = w[i] < 0.0 ? -size : size;
            mean[i] = w[i] + lag * (mean[i] - w[i]);
        }
    }
    """
    ctypedef struct Sums:
        double n_rows
        double n_batches
        double l1
        double l2
        double least_share
        bint centered
        bint has_present
    void metric_of(
        Sums o, Py_ssize_t m, const double* h, const double* hx, const double* hxx,
        const double* present, double* center, double* scale,
    ) noexcept nogil
    void pending(
        Sums o, Py_ssize_t m, const double* scale, double passed, double lag,
        double* decay, double* w, double* mean,
    ) noexcept nogil


def metric(
    const double[::1] h,
    const double[::1] hx,
    const double[::1] hxx,
    present,
    double n_rows,
    double n_batches,
    double l2,
    double least_share,
    bint centered,
    double[::1] center,
    double[::1] scale,
):
    """Write centers and inverse curvatures of features.

    Parameters
    ----------
    h : ndarray of shape (k,)
        Sums of the curvature of each score, positive.
    hx, hxx : ndarray of shape (c,)
        Sums of the curvature times features, and times squared features, with the k
        scores of a feature side by side.
    present : ndarray of shape (c,) or None
        Sums of the curvature over the rows with an entry.
    n_rows, n_batches : float
        Numbers of rows and of batches in the sums.
    l2, least_share : float
        ``l2`` is added to curvatures. A feature is centered if its squared mean exceeds
        ``least_share`` of its mean square.
    centered : bool
        Whether there are intercepts.
    center, scale : ndarray of shape (c,)
    """
    cdef Py_ssize_t c = hx.shape[0], k = h.shape[0], m, i, j
    cdef bint knows = present is not None
    cdef Sums sums = Sums(n_rows, n_batches, 0.0, l2, least_share, centered, knows)
    cdef const double[::1] known = present if knows else hx
    if k < 1 or hxx.shape[0] != c or known.shape[0] != c or c % k != 0:
        raise ValueError("moments differ in length.")
    if center.shape[0] != c or scale.shape[0] != c:
        raise ValueError("moments and the metric differ in length.")
    # Many coefficients at once: h over and over.
    m = k * max(256 // k, 1)
    cdef double* all_h = <double*> allocate(m * sizeof(double))
    with nogil:
        for i in range(m):
            all_h[i] = h[i % k]
        for i in range((c + m - 1) // m):
            j = i * m
            metric_of(
                sums, min(m, c - j), all_h, &hx[j], &hxx[j], &known[j], &center[j],
                &scale[j],
            )
    free(all_h)


def precondition(
    const double[::1] center,
    const double[::1] scale,
    const double[::1] free_scale,
    const double[::1] g,
    double[::1] out,
):
    """Write the product of a diagonal matrix in centered coordinates with g.

    Parameters
    ----------
    center, scale : ndarray of shape (c,)
        As in ``metric``; the matrix is diag(scale) for coefficients.
    free_scale : ndarray of shape (k,)
        The matrix is diag(free_scale) for intercepts.
    g, out : ndarray of shape (c + k,), or (c,) without intercepts
    """
    cdef Py_ssize_t c = scale.shape[0], k = g.shape[0] - c, j, l = 0
    if center.shape[0] != c or k not in (0, free_scale.shape[0]):
        raise ValueError("a metric and a vector differ in length.")
    if out.shape[0] != c + k:
        raise ValueError("a vector and the product differ in length.")
    with nogil:
        for j in range(k):
            out[c + j] = g[c + j] * free_scale[j]
        for j in range(c):
            out[j] = g[j] * scale[j]
            if k > 0:
                out[j] = (g[j] - center[j] * g[c + l]) * scale[j]
                out[c + l] -= center[j] * out[j]
                l = l + 1 if l + 1 < k else 0


cdef inline double _weight(double n) noexcept nogil:
    """Return the sum of the weights of n averaged iterates, up to a factor."""
    return n * (n + 1.0) * (n + 2.0) * (n + 3.0)


def _check(const Py_ssize_t[::1] rows, Py_ssize_t n):
    """Raise ValueError if a row is none of n."""
    cdef Py_ssize_t i
    for i in range(rows.shape[0]):
        if not 0 <= rows[i] < n:
            raise ValueError(f"row {rows[i]} is none of {n}.")


def _check_table(Py_ssize_t width, Py_ssize_t k, bint has_l1):
    """Raise ValueError unless a table has the width of k scores."""
    if k < 1 or width != (6 if has_l1 else 4) * k + 2:
        raise ValueError("a table has other columns.")


cdef inline void _add(
    double x, const double* values, Py_ssize_t k, double* out
) noexcept nogil:
    """Add x times k values to ``out``."""
    cdef Py_ssize_t l
    # The prologue of a vectorized loop takes longer than one number.
    if k == 1:
        out[0] += x * values[0]
        return
    for l in range(k):
        out[l] += x * values[l]


cdef inline unsigned long long _mixed(Py_ssize_t column) noexcept nogil:
    """Return random bits for a column (Steele, Lea and Flood 2014, "splittable")."""
    cdef unsigned long long z = <unsigned long long> column + 0x9e3779b97f4a7c15ULL
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL
    return z ^ (z >> 31)


def catch_up(
    const double[:, ::1] table,
    const Py_ssize_t[::1] columns,
    const double[::1] h,
    double n_rows,
    double n_batches,
    double l1,
    double l2,
    double least_share,
    bint centered,
    const double[::1] free_gradient,
    double length,
    double began,
    double n_steps,
    double n_averaged,
    const index[::1] starts,
    const index[::1] rows,
    const real[::1] values,
    double[:, ::1] own,
    double[:, ::1] model,
    double[:, ::1] scores,
    double[:, ::1] scores_of_mean,
):
    """Apply the pending updates of features that recent batches did not include.

    Products of the features' entries with iterate and average are added to the scores.

    Parameters
    ----------
    table : ndarray of shape (n, 4 k + 2 or 6 k + 2)
        For each feature the iterate, the average, and the sums of h x and of h x² of
        its k scores, with an L1 penalty also the sums of h over entries and the
        averaged gradients; then the sum of step sizes and the number of batches at the
        last update.
    columns : ndarray of shape (c,)
        Rows of the table.
    h : ndarray of shape (k,)
        As in ``metric``; empty without moments.
    n_rows, n_batches, least_share, centered
        As in ``metric``.
    l1, l2 : float
        Strengths of the penalty.
    free_gradient : ndarray of shape (k,) or (0,)
        The averaged gradient of the intercepts.
    length : float
        Sum of all step sizes.
    began : float
        The number of batches before the stream last changed.
    n_steps, n_averaged : float
        Numbers of batches, and of iterates in the average.
    starts, rows, values : ndarray of shape (c + 1,), (m,), (m,)
        Entries of the features: the arrays of a CSC matrix of b rows.
    own : ndarray of shape (c, 4 k + 2 or 6 k + 2)
        The rows of the table with all updates; the last two numbers stay.
    model : ndarray of shape (c, k) or (0, k)
        The coefficients of the model.
    scores, scores_of_mean : ndarray of shape (b, k)

    Returns
    -------
    three tuples of two floats
        Sums of squares and of absolute values: of the iterates in the table, and with
        all updates of iterates and of averages.
    """
    cdef Py_ssize_t n = table.shape[0], c = columns.shape[0], width = table.shape[1]
    cdef Py_ssize_t k = scores.shape[1], b = scores.shape[0], j, l, e, line
    cdef const double* row
    cdef double* to
    cdef bint has_l1 = l1 > 0.0, known = h.shape[0] > 0, writes = model.shape[0] > 0
    cdef Sums sums = Sums(n_rows, n_batches, l1, l2, least_share, centered, has_l1)
    cdef double first = n_steps - n_averaged, passed, lag, target, x
    cdef double whole = max(_weight(n_averaged), 1.0)
    cdef double square = 0.0, absolute = 0.0, own_square = 0.0, own_absolute = 0.0
    cdef double mean_square = 0.0, mean_absolute = 0.0
    _check_table(width, k, has_l1)
    if own.shape[0] != c or own.shape[1] != width or model.shape[0] not in (0, c):
        raise ValueError("there is no room for the coefficients.")
    if model.shape[1] != k or not {h.shape[0], free_gradient.shape[0]} <= {0, k}:
        raise ValueError("scores and intercepts differ in number.")
    if scores_of_mean.shape[0] != b or scores_of_mean.shape[1] != k:
        raise ValueError("scores differ in shape.")
    _check(columns, n)
    check_all(starts, rows, values.shape[0], c, b)
    cdef double* center = <double*> allocate(3 * k * sizeof(double))
    cdef double* scale = center + k
    with nogil:
        memset(center, 0, 3 * k * sizeof(double))
        for j in range(c):
            row = &table[columns[min(j + AHEAD, c - 1)], 0]
            for line in range(0, min(width, 32), 8):
                prefetch(row + line)
            row, to = &table[columns[j], 0], &own[j, 0]
            for l in range(width):
                to[l] = row[l]
            passed = length - row[width - 2]
            lag = _weight(max(row[width - 1] - first, 0.0)) / whole
            if 0.0 < began and row[width - 1] <= began:
                memset(to + 2 * k, 0, (3 if has_l1 else 2) * k * sizeof(double))
            for l in range(k):
                square += to[l] * to[l]
                if has_l1:
                    absolute += fabs(to[l])
            # A feature of the batch before has no pending updates.
            if has_l1 or passed != 0.0 or lag != 1.0:
                if known:
                    metric_of(
                        sums, k, &h[0], to + 2 * k, to + 3 * k, to + 4 * k, center, scale
                    )
                pending(sums, k, scale, passed, lag, scale + k, to, to + k)
            for l in range(k):
                own_square += to[l] * to[l]
                mean_square += to[k + l] * to[k + l]
                if writes:
                    model[j, l] = to[k + l]
                if has_l1:
                    own_absolute += fabs(to[l])
                    mean_absolute += fabs(to[k + l])
                    target = l2 * to[l]
                    target = to[5 * k + l] = target + lag * (to[5 * k + l] - target)
                    if free_gradient.shape[0]:
                        target -= center[l] * free_gradient[l]
                    if writes and fabs(to[k + l] - scale[l] * target) <= l1 * scale[l]:
                        model[j, l] = 0.0
            for e in range(starts[j], starts[j + 1]):
                x = values[e]
                _add(x, to, k, &scores[rows[e], 0])
                _add(x, to + k, k, &scores_of_mean[rows[e], 0])
    free(center)
    updated = own_square, own_absolute
    return (square, absolute), updated, (mean_square, mean_absolute)


def direction(
    double[:, ::1] own,
    const Py_ssize_t[::1] columns,
    const double[::1] h,
    double n_rows,
    double n_batches,
    double l1,
    double l2,
    double least_share,
    bint centered,
    const index[::1] starts,
    const index[::1] rows,
    const real[::1] values,
    const double[:, ::1] u,
    const double[:, ::1] bends,
    const double[::1] free_gradient,
    double n_steps,
    double[:, ::1] gradient,
    double[:, ::1] p,
    double[:, ::1] dscores,
    double[::1] at_center,
    unsigned char[::1] is_centered,
    double[::1] residual,
):
    """Write a step of features, minus the product of the metric with the gradient.

    Parameters
    ----------
    own : ndarray of shape (c, 4 k + 2 or 6 k + 2)
        From ``catch_up``; the curvature of the batch is added to its sums.
    columns, h, n_rows, n_batches, l1, l2, least_share, centered, starts, rows, values
        As in ``catch_up``, but with the batch in the sums.
    u : ndarray of shape (b, k)
        Derivatives of the loss by the scores.
    bends : ndarray of shape (b, k) or (0, k)
        The curvature of the batch; none is added without rows.
    free_gradient : ndarray of shape (k,)
        Gradient of the intercepts.
    n_steps : float
        Number of batches before this one.
    gradient : ndarray of shape (c, k), or (0, k) without an L1 penalty
    p : ndarray of shape (c, k)
        The step.
    dscores : ndarray of shape (b, k)
        The products of the entries with the step are added.
    at_center : ndarray of shape (k,)
        The scores of the step at the centers are added.
    is_centered : ndarray of shape (c,)
        Set to one where the center of a feature is not zero for all scores.
    residual : ndarray of a power of two, or (0,)
        The gradient, in coordinates in which the metric is the identity, is added to
        random elements with random signs, which keeps the expected norm (Charikar, Chen
        and Farach-Colton 2002). The gradients of the penalty in earlier batches without
        the feature are included.

    Returns
    -------
    tuple of float
        Sum of the gradient times the step, of the squared step, of iterates times the
        step, and of the gradient's absolute values.
    """
    cdef Py_ssize_t c = own.shape[0], width = own.shape[1], k = u.shape[1]
    cdef Py_ssize_t b = u.shape[0], m = residual.shape[0], j, l, e
    cdef bint has_l1 = l1 > 0.0, measures = bends.shape[0] > 0
    cdef Sums sums = Sums(n_rows, n_batches, l1, l2, least_share, centered, has_l1)
    cdef double* at
    cdef double* g
    cdef double* step
    cdef double x, v, missed
    cdef double slope = 0.0, square = 0.0, product = 0.0, size = 0.0
    cdef unsigned long long code
    _check_table(width, k, has_l1)
    if {h.shape[0], free_gradient.shape[0], at_center.shape[0]} != {k}:
        raise ValueError("scores and intercepts differ in number.")
    if bends.shape[0] not in (0, b) or dscores.shape[0] != b:
        raise ValueError("scores differ in length.")
    if bends.shape[1] != k or dscores.shape[1] != k:
        raise ValueError("scores differ in number.")
    if columns.shape[0] != c or p.shape[0] != c or is_centered.shape[0] != c:
        raise ValueError("features and their steps differ in number.")
    if gradient.shape[0] != (c if has_l1 else 0) or gradient.shape[1] != k:
        raise ValueError("gradients have another shape.")
    if p.shape[1] != k or m & (m - 1):
        raise ValueError("a step has another shape.")
    check_all(starts, rows, values.shape[0], c, b)
    cdef double* center = <double*> allocate(3 * k * sizeof(double))
    cdef double* scale = center + k
    with nogil:
        for j in range(c):
            at, g, step = &own[j, 0], scale + k, &p[j, 0]
            for l in range(k):
                g[l] = l2 * at[l]
            for e in range(starts[j], starts[j + 1]):
                x = values[e]
                _add(x, &u[rows[e], 0], k, g)
                if measures:
                    _add(x, &bends[rows[e], 0], k, at + 2 * k)
                    _add(x * x, &bends[rows[e], 0], k, at + 3 * k)
                    if has_l1 and x != 0.0:
                        _add(1.0, &bends[rows[e], 0], k, at + 4 * k)
            is_centered[j] = 0
            missed = (n_steps - at[width - 1]) * l2
            code = _mixed(columns[j])
            metric_of(sums, k, &h[0], at + 2 * k, at + 3 * k, at + 4 * k, center, scale)
            for l in range(k):
                if has_l1:
                    gradient[j, l] = g[l]
                is_centered[j] |= center[l] != 0.0
                v = g[l] - center[l] * free_gradient[l]
                step[l] = -scale[l] * v
                at_center[l] += center[l] * step[l]
                slope += g[l] * step[l]
                square += step[l] * step[l]
                product += at[l] * step[l]
                size += fabs(g[l])
                if m:
                    v = (v + missed * at[l]) * sqrt(scale[l])
                    residual[(code + l) & (m - 1)] += -v if code >> 63 else v
            for e in range(starts[j], starts[j + 1]):
                _add(values[e], step, k, &dscores[rows[e], 0])
    free(center)
    return slope, square, product, size


def step(
    double[:, ::1] own,
    const double[::1] h,
    double n_rows,
    double n_batches,
    double l1,
    double l2,
    double least_share,
    bint centered,
    const double[:, ::1] gradient,
    const double[:, ::1] p,
    double eta,
    double share,
    double length,
    double n_steps,
    bint restarts,
    const double[::1] free_gradient,
    double[::1] moved,
    double[::1] zeroed,
):
    """Take a step of length ``eta`` along p, and update averages.

    Parameters
    ----------
    own : ndarray of shape (c, 4 k + 2 or 6 k + 2)
        From ``direction``.
    h, n_rows, n_batches, l1, l2, least_share, centered, gradient, p
        As in ``direction``. With an L1 penalty the step is proximal.
    eta, share : float
        Length of the step, and weight of the new iterate in the average.
    length, n_steps : float
        As in ``catch_up``, with this step.
    restarts : bool
        Whether moments become zero.
    free_gradient : ndarray of shape (k,)
        The averaged gradient of the intercepts, with this batch.
    moved, zeroed : ndarray of shape (k,)
        With an L1 penalty the scores at the centers are added, of the step, and of the
        averages that are zero in the model.

    Returns
    -------
    tuple of two floats, float
        Sums of squares and of absolute values of the iterates, and the largest absolute
        value in the averages.
    """
    cdef Py_ssize_t c = own.shape[0], width = own.shape[1], k = p.shape[1], j, l
    cdef bint has_l1 = l1 > 0.0
    cdef Sums sums = Sums(n_rows, n_batches, l1, l2, least_share, centered, has_l1)
    cdef double* at
    cdef double w, target, center, scale, square = 0.0, absolute = 0.0, largest = 0.0
    _check_table(width, k, has_l1)
    if p.shape[0] != c:
        raise ValueError("features and their steps differ in number.")
    if gradient.shape[0] != (c if has_l1 else 0) or gradient.shape[1] != k:
        raise ValueError("gradients have another shape.")
    if {h.shape[0], free_gradient.shape[0], moved.shape[0], zeroed.shape[0]} != {k}:
        raise ValueError("scores and intercepts differ in number.")
    with nogil:
        for j in range(c):
            at = &own[j, 0]
            for l in range(k):
                w = at[l] + eta * p[j, l]
                if has_l1:
                    metric_of(
                        sums, 1, &h[l], at + 2 * k + l, at + 3 * k + l, at + 4 * k + l,
                        &center, &scale,
                    )
                    w -= min(max(w, -l1 * eta * scale), l1 * eta * scale)
                    moved[l] += center * (w - at[l])
                at[l] = w
                at[k + l] = w if share == 1.0 else at[k + l] + share * (w - at[k + l])
                if has_l1:
                    at[5 * k + l] += share * (gradient[j, l] - at[5 * k + l])
                    target = at[5 * k + l] - center * free_gradient[l]
                    if fabs(at[k + l] - scale * target) <= l1 * scale:
                        zeroed[l] += center * at[k + l]
                    if restarts:
                        at[4 * k + l] = at[5 * k + l] = 0.0
                if restarts:
                    at[2 * k + l] = at[3 * k + l] = 0.0
                square += w * w
                absolute += fabs(w)
                largest = max(largest, fabs(at[k + l]))
            at[width - 2], at[width - 1] = length, n_steps
    return (square, absolute), largest


def exchange(double[:, ::1] table, const Py_ssize_t[::1] rows, double[:, ::1] values):
    """Exchange distinct rows of a table with the rows of ``values``."""
    cdef Py_ssize_t m = rows.shape[0], n = table.shape[0], width = table.shape[1], i, j
    cdef double kept
    cdef double* row
    cdef double* other
    if values.shape[0] != m or values.shape[1] != width:
        raise ValueError("rows and their values differ in shape.")
    _check(rows, n)
    with nogil:
        for i in range(m):
            prefetch(&table[rows[min(i + AHEAD, m - 1)], 0])
            row, other = &table[rows[i], 0], &values[i, 0]
            for j in range(width):
                kept = row[j]
                row[j] = other[j]
                other[j] = kept

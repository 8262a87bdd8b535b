"""Columns of sparse batches: distinct columns, their metric, and lazy updates."""

from .exponentials cimport exponentials
from .rows cimport allocate, index, AHEAD, prefetch
from .standard cimport fabs, free, memcpy, memset, sqrt

ctypedef unsigned long long word
ctypedef double* numbers_of

cdef extern from *:
    """
    #include <stddef.h>
    #include "widest.h"

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

    /* Write the rank of each number among the marked ones. Wide registers come with an
       instruction that counts bits. */
    #define RANKS(name, type) \
    WIDEST static void name( \
        const type *numbers, ptrdiff_t m, const unsigned long long *marks, \
        const int *before, int *restrict ranks) \
    { \
        for (ptrdiff_t i = 0; i < m; i++) { \
            const unsigned long long one = 1, at = (unsigned long long) numbers[i]; \
            ranks[i] = before[at >> 6] \
                + count_bits(marks[at >> 6] & ((one << (at & 63)) - 1)); \
        } \
    }
    RANKS(ranks_of_ints, int)
    RANKS(ranks_of_longs, long long)
    """
    int lowest_bit(unsigned long long word) noexcept nogil
    void ranks_of_ints(
        const int* numbers, Py_ssize_t m, const word* marks, const int* before,
        int* ranks,
    ) noexcept nogil
    void ranks_of_longs(
        const long long* numbers, Py_ssize_t m, const word* marks, const int* before,
        int* ranks,
    ) noexcept nogil


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
            if m > 0:
                if index is int:
                    ranks_of_ints(&numbers[0], m, marks, before, &places[0])
                else:
                    ranks_of_longs(&numbers[0], m, marks, before, &places[0])
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
        Sums o, ptrdiff_t m, const double *scale, const double *passed,
        const double *lag, double *restrict decay, double *restrict w,
        double *restrict mean)
    {
        for (ptrdiff_t i = 0; i < m; i++)
            decay[i] = -o.l2 * scale[i] * passed[i];
        exponentials(decay, m);
        for (ptrdiff_t i = 0; i < m; i++) {
            double size = fabs(w[i]) * decay[i];
            if (o.l1 > 0.0) {
                /* The solution of dw/dt = -l2 w - l1 sign(w), until w is zero. */
                const double eta = scale[i] * passed[i], y = o.l2 * eta;
                const double mean_decay = y < 1e-5
                    ? 1.0 - y * (0.5 - y / 6.0) : (1.0 - decay[i]) / y;
                size -= o.l1 * eta * mean_decay;
                size = size > 0.0 ? size : 0.0;
            }
            w[i] = w[i] < 0.0 ? -size : size;
            /* A mean without pending updates stays exactly the same. */
            mean[i] += (1.0 - lag[i]) * (w[i] - mean[i]);
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
        Sums o, Py_ssize_t m, const double* scale, const double* passed,
        const double* lag, double* decay, double* w, double* mean,
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
                # Each sum waits for the previous one, and most features of sparse data
                # are not centered.
                if center[j] != 0.0:
                    out[j] = (g[j] - center[j] * g[c + l]) * scale[j]
                    out[c + l] -= center[j] * out[j]
                l = l + 1 if l + 1 < k else 0


cdef inline double _weight(double n) noexcept nogil:
    """Return the sum of the weights of n averaged iterates, up to a factor."""
    return n * (n + 1.0) * (n + 2.0) * (n + 3.0)


def _check(const Py_ssize_t[::1] rows, Py_ssize_t n):
    """Raise ValueError if a row is not one of n rows."""
    cdef Py_ssize_t i
    for i in range(rows.shape[0]):
        if not 0 <= rows[i] < n:
            raise ValueError(f"row {rows[i]} is none of {n}.")


cdef inline void _copy(const double* values, Py_ssize_t k, double* out) noexcept nogil:
    """Copy k values."""
    # For one number, a call takes longer than the copy.
    if k == 1:
        out[0] = values[0]
    else:
        memcpy(out, values, k * sizeof(double))


cdef inline void _exchange(double* one, double* other, Py_ssize_t k) noexcept nogil:
    """Exchange k values."""
    cdef Py_ssize_t l
    # For one number, the start of a vectorized loop takes longer than the exchange.
    if k == 1:
        one[0], other[0] = other[0], one[0]
        return
    for l in range(k):
        one[l], other[l] = other[l], one[l]


cdef inline unsigned long long _mixed(Py_ssize_t column) noexcept nogil:
    """Return random bits for a column (Steele, Lea and Flood 2014, "splittable")."""
    cdef unsigned long long z = <unsigned long long> column + 0x9e3779b97f4a7c15ULL
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL
    return z ^ (z >> 31)


def _scores(Py_ssize_t width, Py_ssize_t n_parts):
    """Return the number k of scores of a table, whose rows have ``n_parts`` k + 2."""
    if n_parts < 1 or width < n_parts + 2 or (width - 2) % n_parts != 0:
        raise ValueError("a table has other columns.")
    return (width - 2) // n_parts


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
    double length,
    double began,
    double n_steps,
    double n_averaged,
    double[:, ::1] own,
    double[::1] updated,
):
    """Read features with their pending updates, from batches that did not include them.

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
    length : float
        Sum of all step sizes.
    began : float
        The number of batches before the stream last changed.
    n_steps, n_averaged : float
        Numbers of batches, and of iterates in the average.
    own : ndarray of shape (4 or 6, at least c k)
        Receives the numbers of the features, each kind in a row.
    updated : ndarray of shape (c,)
        Receives the number of batches at the last update.

    Returns
    -------
    tuple of two floats
        Sums of squares and of absolute values of the iterates in the table.
    """
    cdef Py_ssize_t n = table.shape[0], c = columns.shape[0], width = table.shape[1]
    cdef Py_ssize_t n_parts = own.shape[0], k = _scores(width, n_parts), part, first
    cdef Py_ssize_t most = max(256 // k, 1), size = most * k, block
    cdef Py_ssize_t m, i, j, l
    cdef const double* row
    cdef double* to
    cdef bint has_l1 = l1 > 0.0, known = h.shape[0] > 0
    cdef Sums sums = Sums(n_rows, n_batches, l1, l2, least_share, centered, has_l1)
    cdef double whole = max(_weight(n_averaged), 1.0), lag_of_row, target
    cdef double square = 0.0, absolute = 0.0
    if n_parts != (6 if has_l1 else 4) or h.shape[0] not in (0, k):
        raise ValueError("a table has other columns.")
    if own.shape[1] < c * k or updated.shape[0] != c:
        raise ValueError("features and their numbers differ in length.")
    _check(columns, n)
    cdef double* scale = <double*> allocate(6 * size * sizeof(double))
    cdef double* center = scale + size
    cdef double* all_h = center + size
    cdef double* passed = all_h + size
    cdef double* lag = passed + size
    cdef double* decay = lag + size
    with nogil:
        memset(scale, 0, size * sizeof(double))
        for i in range(size if known else 0):
            all_h[i] = h[i % k]
        for block in range((c + most - 1) // most):
            first = block * most
            m = min(most, c - first)
            for i in range(m):
                j = first + i
                row = &table[columns[min(j + AHEAD, c - 1)], 0]
                for l in range(0, min(width, 32), 8):
                    prefetch(row + l)
                prefetch(row + width - 1)
                row = &table[columns[j], 0]
                for part in range(n_parts):
                    to = &own[part, j * k]
                    _copy(row + part * k, k, to)
                    if 0.0 < began and row[width - 1] <= began and 2 <= part < 5:
                        memset(to, 0, k * sizeof(double))
                updated[j] = row[width - 1]
                lag_of_row = _weight(max(updated[j] - n_steps + n_averaged, 0.0)) / whole
                for l in range(k):
                    square += row[l] * row[l]
                    absolute += fabs(row[l])
                    passed[i * k + l] = length - row[width - 2]
                    lag[i * k + l] = lag_of_row
            m, j = m * k, first * k
            if known:
                metric_of(
                    sums, m, all_h, &own[2, j], &own[3, j], &own[n_parts - 2, j],
                    center, scale,
                )
            pending(sums, m, scale, passed, lag, decay, &own[0, j], &own[1, j])
            for i in range(m if has_l1 else 0):
                target = l2 * own[0, j + i]
                own[5, j + i] = target + lag[i] * (own[5, j + i] - target)
    free(scale)
    return square, absolute


def exchange(
    double[:, ::1] table, const Py_ssize_t[::1] rows, parts, double[:, ::1] clocks
):
    """Exchange distinct rows of a table with other numbers.

    Parameters
    ----------
    table : ndarray
        As in ``catch_up``.
    rows : ndarray of shape (m,)
    parts : sequence of ndarray, each of shape (at least m k,)
        The numbers of each kind, in the order of ``table``: one to six kinds.
    clocks : ndarray of shape (m, 2)
        The last two numbers of each row.

    Returns
    -------
    tuple of three floats
        Sums of squares and of absolute values of the first kind in the new rows, and
        the largest absolute value of the second.
    """
    cdef Py_ssize_t m = rows.shape[0], n = table.shape[0], width = table.shape[1], i, l
    cdef Py_ssize_t n_parts = len(parts), k = _scores(width, n_parts), part
    cdef double[::1] numbers
    cdef numbers_of[6] values
    cdef double* row
    cdef double square = 0.0, absolute = 0.0, largest = 0.0
    if n_parts > 6 or clocks.shape[0] != m or clocks.shape[1] != 2:
        raise ValueError("rows and their numbers differ in shape.")
    for part in range(n_parts):
        numbers = parts[part]
        if numbers.shape[0] < m * k:
            raise ValueError("rows and their numbers differ in shape.")
        values[part] = &numbers[0] if m else NULL
    _check(rows, n)
    with nogil:
        for i in range(m):
            row = &table[rows[min(i + AHEAD, m - 1)], 0]
            prefetch(row)
            prefetch(row + width - 1)
            row = &table[rows[i], 0]
            for part in range(n_parts):
                _exchange(row + part * k, values[part] + i * k, k)
            _exchange(row + width - 2, &clocks[i, 0], 1)
            _exchange(row + width - 1, &clocks[i, 1], 1)
            for l in range(k):
                square += row[l] * row[l]
                absolute += fabs(row[l])
                largest = max(largest, fabs(row[k * (n_parts > 1) + l]))
    return square, absolute, largest


def project(
    const Py_ssize_t[::1] columns,
    const double[::1] missed,
    const double[::1] gradient,
    const double[::1] iterate,
    const double[::1] center,
    const double[::1] scale,
    const double[::1] free_gradient,
    double[::1] out,
):
    """Project the gradient at c features, in coordinates with the identity as metric.

    Each number is added to a random element with a random sign, which keeps the
    expected norm (Charikar, Chen and Farach-Colton 2002).

    Parameters
    ----------
    columns : ndarray of shape (c,)
    missed : ndarray of shape (c,)
        This multiple of the iterate is added to the gradient.
    gradient, iterate : ndarray of shape (at least c k,)
    center, scale : ndarray of shape (c k,)
        As in ``metric``.
    free_gradient : ndarray of shape (k,), or (0,) without intercepts
    out : ndarray of a power of two
    """
    cdef Py_ssize_t c = columns.shape[0], size = scale.shape[0], k, m = out.shape[0], i
    cdef Py_ssize_t j, l
    cdef double v
    cdef unsigned long long code
    k = size // max(c, 1)
    if missed.shape[0] != c or size != c * k or center.shape[0] != size:
        raise ValueError("features and their numbers differ in length.")
    if gradient.shape[0] < size or iterate.shape[0] < size or m < 1 or m & (m - 1):
        raise ValueError("features and their numbers differ in length.")
    if c and free_gradient.shape[0] not in (0, k):
        raise ValueError("scores and intercepts differ in number.")
    with nogil:
        for j in range(c):
            code = _mixed(columns[j])
            for l in range(k):
                i = j * k + l
                v = gradient[i] + missed[j] * iterate[i]
                if free_gradient.shape[0]:
                    v -= center[i] * free_gradient[l]
                v *= sqrt(scale[i])
                out[(code + l) & (m - 1)] += -v if code >> 63 else v

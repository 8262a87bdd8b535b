"""Columns of sparse batches: distinct columns, their metric, and lazy updates."""

from .rows cimport allocate, index, AHEAD, prefetch
from .standard cimport exp, fabs, free, memset

cdef extern from "math.h" nogil:
    double expm1(double x)

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


cdef struct Sums:
    # Settings of the metric that are the same for all features.
    double n_rows
    double n_batches
    double l2
    double least_share
    bint centered


cdef inline double scale_of(
    Sums* sums, double h, double hx, double hxx, double present, double* center
) noexcept nogil:
    """Return the inverse curvature of a feature, and write its center.

    A negative ``present`` is unknown.
    """
    cdef double variance = hxx, share
    center[0] = 0.0
    if sums.centered:
        if hx * hx > sums.least_share * hxx * h:
            center[0] = hx / h
            variance -= center[0] * hx
    # A variance at the level of rounding errors is a constant feature, which the
    # intercept already represents.
    if variance <= 1e-12 * hxx:
        return 0.0
    variance /= sums.n_rows
    if present >= 0.0:
        share = present / h * (sums.n_rows / sums.n_batches)
        variance /= min(max(share, 1e-300), 1.0)
    return 1.0 / (variance + sums.l2) if variance > 0.0 else 0.0


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
    cdef Py_ssize_t c = hx.shape[0], k = h.shape[0], j, l = 0
    cdef Sums sums = Sums(n_rows, n_batches, l2, least_share, centered)
    cdef const double[::1] known = hx if present is None else present
    cdef bint knows = present is not None
    if hxx.shape[0] != c or known.shape[0] != c or c % k != 0:
        raise ValueError("moments differ in length.")
    if center.shape[0] != c or scale.shape[0] != c:
        raise ValueError("moments and the metric differ in length.")
    with nogil:
        for j in range(c):
            scale[j] = scale_of(
                &sums, h[l], hx[j], hxx[j], known[j] if knows else -1.0, &center[j]
            )
            l = l + 1 if l + 1 < k else 0


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


def catch_up(
    const double[:, ::1] table,
    const Py_ssize_t[::1] rows,
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
    double[:, ::1] out,
):
    """Apply the pending updates of coefficients that recent batches did not include.

    Parameters
    ----------
    table : ndarray of shape (n, 6 or 8)
        Iterate, average, sums of h x and of h x², and the sum of step sizes and number
        of batches at the last update; with an L1 penalty also the sum of h over
        entries, and the averaged gradient.
    rows : ndarray of shape (c,)
        Coefficients in the table, for each feature the k scores side by side.
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
    out : ndarray of shape (5 or 7, at least c)
        Model, iterate, average, sums of h x and of h x²; with an L1 penalty also sums
        of h over entries, and averaged gradients.
    """
    cdef Py_ssize_t n = table.shape[0], c = rows.shape[0], k = max(h.shape[0], 1), j, l = 0
    cdef const double* row
    cdef bint has_l1 = l1 > 0.0, known = h.shape[0] > 0
    cdef Sums sums = Sums(n_rows, n_batches, l2, least_share, centered)
    cdef double w, mean, hx, hxx, present, smooth, scale, center, eta, drop, lag, target
    cdef double first = n_steps - n_averaged, whole = max(_weight(n_averaged), 1.0)
    if table.shape[1] != 6 + 2 * has_l1 or out.shape[0] != 5 + 2 * has_l1:
        raise ValueError("a table has other columns.")
    if out.shape[1] < c:
        raise ValueError("there is no room for the coefficients.")
    if free_gradient.shape[0] not in (0, k):
        raise ValueError("scores and intercepts differ in number.")
    _check(rows, n)
    with nogil:
        for j in range(c):
            prefetch(&table[rows[min(j + AHEAD, c - 1)], 0])
            row = &table[rows[j], 0]
            w, mean, hx, hxx = row[0], row[1], row[2], row[3]
            present = smooth = 0.0
            if has_l1:
                present, smooth = row[6], row[7]
            if 0.0 < began and row[5] <= began:
                hx = hxx = present = 0.0
            scale = center = 0.0
            if known:
                scale = scale_of(
                    &sums, h[l], hx, hxx, present if has_l1 else -1.0, &center
                )
                eta = scale * (length - row[4])
                if has_l1:
                    # The solution of dw/dt = -l2 w - l1 sign(w), until w is zero.
                    drop = l1 * (-expm1(-l2 * eta) / l2 if l2 > 0.0 else eta)
                    target = max(fabs(w) * exp(-l2 * eta) - drop, 0.0)
                    w = target if w > 0.0 else -target
                elif w != 0.0:
                    w *= exp(-l2 * eta)
            lag = _weight(max(row[5] - first, 0.0)) / whole
            mean = w + lag * (mean - w)
            out[0, j] = mean
            if has_l1:
                smooth = l2 * w + lag * (smooth - l2 * w)
                target = smooth
                if free_gradient.shape[0]:
                    target -= center * free_gradient[l]
                if fabs(mean - scale * target) <= l1 * scale:
                    out[0, j] = 0.0
                out[5, j], out[6, j] = present, smooth
            out[1, j], out[2, j], out[3, j], out[4, j] = w, mean, hx, hxx
            l = l + 1 if l + 1 < k else 0


def exchange(double[:, ::1] table, const Py_ssize_t[::1] rows, double[:, ::1] values):
    """Exchange distinct rows of a table with the columns of ``values``."""
    cdef Py_ssize_t m = rows.shape[0], n = table.shape[0], width = table.shape[1], i, j
    cdef double kept
    if values.shape[0] != width or values.shape[1] != m:
        raise ValueError("rows and their values differ in shape.")
    _check(rows, n)
    with nogil:
        for i in range(m):
            prefetch(&table[rows[min(i + AHEAD, m - 1)], 0])
            for j in range(width):
                kept = table[rows[i], j]
                table[rows[i], j] = values[j, i]
                values[j, i] = kept

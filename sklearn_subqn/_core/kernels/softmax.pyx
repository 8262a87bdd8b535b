"""Probabilities exp(z_k) / sum_l exp(z_l) of rows, and derivatives of their log loss.

All arrays are C-contiguous and float64. NumPy takes several times as long for rows of
few scores, since its inner loops run over single rows.
"""

from scipy.linalg.cython_blas cimport dsyrk

from .dense_rows cimport GRAM_ROWS, dense_gram
from .exponentials cimport probabilities_of_rows
from .logarithms cimport log_of, log_of_one_less
from .rows cimport allocate, same_length
from .standard cimport DBL_EPSILON, DBL_MIN, INFINITY, free, log, sqrt, memset
from .sums cimport Sum, add_to, result

cdef enum:
    # Number of exponentials that are computed at once and stay in the cache.
    AT_ONCE = 1024
    # Second derivatives are summed over 64 or more rows before they are added to the
    # total.
    ROWS_AT_ONCE = 64


def probabilities(const double[:, ::1] scores, double[:, ::1] out):
    """Write the probabilities of scores of shape (n, k) to ``out``."""
    cdef Py_ssize_t n = scores.shape[0], k = scores.shape[1], i = 0, size
    check_shape(scores, out)
    with nogil:
        while i < n and k:
            size = block(n - i, k)
            of_rows(&scores[i, 0], NULL, 0.0, size, k, &out[i, 0], NULL)
            i += size


def subgradient(
    const double[:, ::1] scores,
    const double[::1] targets,
    const double[::1] weights,
    double[:, ::1] out,
):
    """Write weights times probabilities, minus one for the class of the row.

    If the class is nearly certain, one minus its probability would be a rounding error;
    its entry is minus the sum of the others.
    """
    cdef Py_ssize_t n = scores.shape[0], k = scores.shape[1], i, j, own
    cdef double others
    check_shape(scores, out)
    check_rows(n, k, targets, weights)
    probabilities(scores, out)
    with nogil:
        for i in range(n):
            own, others = <Py_ssize_t> targets[i], 0.0
            out[i, own] = 0.0
            for j in range(k):
                others += out[i, j]
                out[i, j] *= weights[i]
            out[i, own] = -others * weights[i]


def value(
    const double[:, ::1] scores,
    const double[::1] targets,
    const double[::1] weights,
):
    """Return the weighted sum of ln sum_k exp(z_k) - z_y, for the class y of each row."""
    cdef Py_ssize_t n = scores.shape[0], k = scores.shape[1], i = 0, j, size
    cdef double own
    cdef Sum total = Sum(0.0, 0.0)
    check_rows(n, k, targets, weights)
    cdef double* p = <double*> allocate((AT_ONCE + k) * 3 * sizeof(double))
    cdef double* parts = p + AT_ONCE + k
    with nogil:
        while i < n:
            size = block(n - i, k)
            of_rows(&scores[i, 0], NULL, 0.0, size, k, p, parts)
            for j in range(size):
                own = scores[i, <Py_ssize_t> targets[i]]
                # Nothing cancels if the score of the row's class is the largest one.
                own = (parts[2 * j] - own) + log(parts[2 * j + 1])
                add_to(&total, weights[i] * own)
                i += 1
        free(p)
    return result(&total)


def on_line(
    const double[:, ::1] scores,
    const double[:, ::1] dscores,
    const double[::1] targets,
    const double[::1] weights,
    double step,
):
    """Return slope and second derivative of the weighted sum at scores + step * dscores."""
    cdef Py_ssize_t n = scores.shape[0], k = scores.shape[1], i = 0, j, l, size
    cdef double mean, square, move
    cdef double* q
    cdef Sum slope = Sum(0.0, 0.0), curvature = Sum(0.0, 0.0)
    check_shape(scores, dscores)
    check_rows(n, k, targets, weights)
    cdef double* p = <double*> allocate((AT_ONCE + k) * sizeof(double))
    with nogil:
        while i < n:
            size = block(n - i, k)
            of_rows(&scores[i, 0], &dscores[i, 0], step, size, k, p, NULL)
            for j in range(size):
                q = p + j * k
                mean = square = 0.0
                for l in range(k):
                    mean += q[l] * dscores[i, l]
                # Sums of squared differences do not cancel.
                for l in range(k):
                    move = dscores[i, l] - mean
                    square += q[l] * move * move
                mean -= dscores[i, <Py_ssize_t> targets[i]]
                add_to(&slope, weights[i] * mean)
                add_to(&curvature, weights[i] * square)
                i += 1
        free(p)
    return result(&slope), result(&curvature)


def derivatives_of_shift(
    const double[:, ::1] scores,
    const double[::1] shift,
    const double[::1] targets,
    const double[::1] weights,
    double[::1] slopes,
    double[:, ::1] curvature,
):
    """Write the derivatives of the weighted sum by a common shift of all rows' scores.

    ``slopes`` of shape (k,) receives the first, ``curvature`` of shape (k, k) the
    second derivatives.
    """
    cdef Py_ssize_t n = scores.shape[0], k = scores.shape[1], i = 0, j, a, b, size, most
    cdef double root, minus = -1.0, one = 1.0
    cdef int width = <int> k, count
    cdef double* p
    check_rows(n, k, targets, weights)
    same_length(k, shift.shape[0], slopes.shape[0])
    same_length(k, curvature.shape[0], curvature.shape[1])
    slopes[:] = 0.0
    curvature[:] = 0.0
    if n == 0:
        return
    most = max(block(n, k), min(n, ROWS_AT_ONCE))
    cdef double* rows = <double*> allocate(most * k * sizeof(double))
    cdef Sum* totals = <Sum*> allocate(k * sizeof(Sum))
    with nogil:
        for a in range(k):
            totals[a] = Sum(0.0, 0.0)
        while i < n:
            size = min(n - i, most)
            for j in range(size):
                for a in range(k):
                    rows[j * k + a] = scores[i + j, a] + shift[a]
            of_rows(rows, NULL, 0.0, size, k, rows, NULL)
            for j in range(size):
                p, root = rows + j * k, sqrt(weights[i])
                for a in range(k):
                    p[a] *= root
                    add_to(&totals[a], root * p[a])
                add_to(&totals[<Py_ssize_t> targets[i]], -weights[i])
                i += 1
            count = <int> size
            dsyrk(
                "L", "N", &width, &count, &minus, rows, &width, &one, &curvature[0, 0],
                &width,
            )
        for a in range(k):
            slopes[a] = result(&totals[a])
            for b in range(a):
                curvature[a, b] = curvature[b, a]
        # The diagonal follows from the other entries, since rows sum to zero. Its own
        # sums would cancel for probabilities near one.
        for a in range(k):
            curvature[a, a] = 0.0
            for b in range(k):
                if b != a:
                    curvature[a, a] -= curvature[a, b]
        free(totals)
        free(rows)


def conjugate(
    const double[:, ::1] dual,
    const double[::1] targets,
    const double[::1] weights,
):
    """Return the weighted sum of q ln q over the probabilities q of rows.

    Probabilities of other classes are dual entries divided by weights, if positive; the
    row's class has the remainder up to one. The sum is infinite if a remainder is
    negative beyond rounding. Also returns the derivative of the sum by the other
    classes' probabilities, over the rows where they have most.
    """
    cdef Py_ssize_t n = dual.shape[0], k = dual.shape[1], i, j, own
    cdef double weight, q, others, rest, most = 0.0
    cdef Sum total = Sum(0.0, 0.0), size = Sum(0.0, 0.0)
    check_rows(n, k, targets, weights)
    with nogil:
        for i in range(n):
            own, others, rest = <Py_ssize_t> targets[i], 0.0, 0.0
            weight = weights[i] if weights[i] > DBL_MIN else DBL_MIN
            for j in range(k):
                q = dual[i, j] / weight
                q = q if j != own and q > 0.0 else 0.0
                others += q
                rest += q * log_of(q if q > DBL_MIN else DBL_MIN)
            most = others if others > most else most
            others = others if others < 1.0 else 1.0
            q = others if others < 1.0 - 0.5 * DBL_EPSILON else 1.0 - 0.5 * DBL_EPSILON
            rest += (1.0 - others) * log_of_one_less(q)
            add_to(&total, weights[i] * rest)
            if others > 0.5:
                q = others if others < 1.0 - DBL_EPSILON else 1.0 - DBL_EPSILON
                add_to(&size, -weights[i] * log_of_one_less(q))
    if most > 1.0 + 4.0 * DBL_EPSILON * k:
        return INFINITY, result(&size)
    return result(&total), result(&size)


def distance(
    const double[:, ::1] dual,
    const double[::1] targets,
    const double[::1] weights,
):
    """Return the norm of the row sums, plus twice the norm of negative probabilities.
    """
    cdef Py_ssize_t n = dual.shape[0], k = dual.shape[1], i, j
    cdef double weight, total, square
    cdef Sum sums = Sum(0.0, 0.0), negative = Sum(0.0, 0.0)
    check_rows(n, k, targets, weights)
    with nogil:
        for i in range(n):
            weight = weights[i] if weights[i] > DBL_MIN else DBL_MIN
            total = square = 0.0
            for j in range(k):
                total += dual[i, j]
                if dual[i, j] < 0.0 and j != <Py_ssize_t> targets[i]:
                    square += dual[i, j] * dual[i, j]
            add_to(&sums, total * (total / weight))
            add_to(&negative, square / weight)
    return sqrt(result(&sums)) + 2.0 * sqrt(result(&negative))


def add_gram(
    const double[:, ::1] X,
    const double[:, ::1] p,
    const double[::1] weights,
    double[:, :, :, ::1] out,
):
    """Add the Hessian by coefficients to ``out`` of shape (k, k, d, d).

    The block of different classes a and b is -Xᵀ diag(s p_a p_b) X (Böhning 1992, eq.
    3.1), and all blocks of one class sum to zero.
    """
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1], k = p.shape[1], i, j, l, a, b
    cdef double entry
    same_length(n, p.shape[0], weights.shape[0])
    same_length(k, out.shape[0], out.shape[1])
    same_length(d, out.shape[2], out.shape[3])
    if n == 0 or d == 0:
        return
    cdef Py_ssize_t room = n + (d + GRAM_ROWS) * d
    cdef double* bend = <double*> allocate(room * sizeof(double))
    cdef double* H = bend + n
    with nogil:
        for a in range(k):
            for b in range(a + 1, k):
                for i in range(n):
                    bend[i] = weights[i] * p[i, a] * p[i, b]
                dense_gram(&X[0, 0], n, d, d, bend, 1, H, H + d * d)
                for j in range(d):
                    for l in range(d):
                        entry = H[min(j, l) * d + max(j, l)]
                        out[a, a, j, l] += entry
                        out[b, b, j, l] += entry
                        out[a, b, j, l] -= entry
                        out[b, a, j, l] -= entry
        free(bend)


cdef inline Py_ssize_t block(Py_ssize_t n, Py_ssize_t k) noexcept nogil:
    """Return the number of rows that are processed at once."""
    return max(1, min(n, AT_ONCE // k))


cdef void of_rows(
    const double* z,
    const double* dz,
    double step,
    Py_ssize_t n,
    Py_ssize_t k,
    double* p,
    double* parts,
) noexcept nogil:
    """Compute the probabilities at z + step * dz.

    Unless ``parts`` is NULL, it receives for each row the largest score, and the sum of
    exp(score - largest score).
    """
    cdef Py_ssize_t j
    for j in range(n * k):
        p[j] = z[j]
    if dz != NULL:
        for j in range(n * k):
            p[j] += step * dz[j]
    probabilities_of_rows(p, n, k, parts)


cdef int check_shape(const double[:, ::1] a, const double[:, ::1] b) except -1:
    same_length(a.shape[0], b.shape[0])
    return same_length(a.shape[1], b.shape[1])


cdef int check_rows(
    Py_ssize_t n, Py_ssize_t k, const double[::1] targets, const double[::1] weights
) except -1:
    cdef Py_ssize_t i
    same_length(n, targets.shape[0], weights.shape[0])
    for i in range(n):
        if not 0.0 <= targets[i] < k:
            raise ValueError(f"class {targets[i]:g} is none of {k}")
    return 0

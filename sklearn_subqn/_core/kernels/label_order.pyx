"""Squared violations of the order of a row's labels.

Scores are contiguous of shape (n, k) and float64; targets of shape (n, l) are 1 for
relevant labels. ``costs`` of shape (2, l) are margins, which give the shifted scores

    v_j = z_j + costs[0, j],    j irrelevant,
    v_h = z_h - costs[1, h],    h relevant,

The loss requires v_h >= v_j for every relevant h and irrelevant j, and with a
threshold, the last score z_l of k = l + 1, that the threshold lies between them. A
violated pair costs its weight times the squared difference. All pairs of labels have
equal weights. With a threshold, the weights of the pairs of labels sum to one half, and
so do the weights of the pairs with the threshold; without a threshold, k = l, the
weights of the pairs of labels sum to one.

Labels in violated pairs are visited in the order of their shifted scores, in O(l log l)
for a row. When the score increases by t, the squared difference m² becomes m² + 2 t m +
t². All terms are positive, so the relative rounding error of a sum is small.
"""

from .ordered_labels cimport Labels, check, kind, open_row
from .rows cimport _sort, allocate, same_length
from .standard cimport fabs, free
from .sums cimport Sum, add_to, result

# Violations count only above this multiple of the largest score plus shift of a row.
# The dual variables of a label that is relevant in no row, or in all rows, are then
# exactly zero at the optimal intercept. The threshold is 450 rounding units; with 90,
# some of these dual variables remain non-zero.
cdef double _ROUNDING = 1e-13


cdef int check_scores(
    const unsigned char[:, ::1] targets,
    const double[:, ::1] costs,
    const double[:, ::1] scores,
    const double[::1] weights,
) except -1:
    check(targets, weights, scores.shape[0], scores.shape[1])
    same_length(2, costs.shape[0])
    same_length(targets.shape[1], costs.shape[1])
    return 0


cdef inline void arrange(
    Labels* row, const double* z, const double* dz, double step, const double* costs
) noexcept nogil:
    """Sort the labels in violated pairs at z + step * dz, by shifted score."""
    cdef Py_ssize_t j, l = row.l, k = l + row.threshold, size = 0
    cdef double low = 1e300, high = -1e300, largest = 0.0, v, shift
    cdef double* all_v = row.v + k
    for j in range(k):
        v = z[j] if dz == NULL else z[j] + step * dz[j]
        shift = 0.0
        if j < l:
            shift = -costs[l + j] if row.relevant[j] else costs[j]
        largest = max(largest, fabs(v) + fabs(shift))
        v += shift
        all_v[j] = v
        if kind(row, j) > 0 and v < low:
            low = v
        if kind(row, j) < 2 and v > high:
            high = v
    row.largest = largest
    low += _ROUNDING * largest
    high -= _ROUNDING * largest
    for j in range(k):
        v = all_v[j]
        if j == l or (v < high if row.relevant[j] else v > low):
            row.v[size] = v
            row.codes[size] = kind(row, j) * k + j
            size += 1
    row.size = size
    _sort(row.v, row.codes, size)


cdef inline Py_ssize_t number(const Labels* row, Py_ssize_t e) noexcept nogil:
    """Return the label at position e of the order; l is the threshold."""
    cdef Py_ssize_t k = row.l + row.threshold
    return (<Py_ssize_t> row.codes[e]) % k


cdef inline void settle(const Labels* row, double* u) noexcept nogil:
    """Set the threshold's dual variable to zero if it is only a rounding error.

    The dual variables of pairs on both sides of the threshold cancel. If they cancel in
    all rows, no other dual variable could balance a remaining rounding error. The
    labels' dual variables of the opposite sign are rescaled to keep the sum.
    """
    cdef Py_ssize_t j, l = row.l
    cdef double rest = u[l], total = 0.0
    if rest == 0.0 or fabs(rest) > row.single * l * _ROUNDING * row.largest:
        return
    for j in range(l):
        if u[j] < 0.0 < rest or u[j] > 0.0 > rest:
            total += u[j]
    for j in range(l):
        if u[j] < 0.0 < rest or u[j] > 0.0 > rest:
            u[j] *= max(1.0 + rest / total, 0.0)
    u[l] = 0.0


cdef double* room(Py_ssize_t k, Labels* row) except NULL:
    cdef double* memory = <double*> allocate((3 * k + 1) * sizeof(double))
    row.v, row.codes = memory, memory + 2 * k
    return memory


def evaluate(
    const unsigned char[:, ::1] targets,
    const double[:, ::1] costs,
    const double[:, ::1] scores,
    const double[::1] weights,
    double[:, ::1] out,
):
    """Return the sum of weights times losses, and write its gradient."""
    cdef Py_ssize_t i, e, j, l = targets.shape[1], k = scores.shape[1]
    cdef double at, step, m, t
    cdef Sum total = Sum(0.0, 0.0)
    cdef double sums[3]
    cdef bint passed
    cdef Labels row
    cdef double* u
    check_scores(targets, costs, scores, weights)
    same_length(scores.shape[0], out.shape[0])
    same_length(k, out.shape[1])
    if l == 0:
        return 0.0
    cdef double* memory = room(k, &row)
    with nogil:
        for i in range(scores.shape[0]):
            u = &out[i, 0]
            for j in range(k):
                u[j] = 0.0
            open_row(&targets[i, 0], l, k, weights[i], &row)
            arrange(&row, &scores[i, 0], NULL, 0.0, &costs[0, 0])
            t = scores[i, k - 1]
            sums[0] = sums[1] = sums[2] = at = 0.0
            passed = False
            for e in range(row.size):
                step = row.v[e] - at if e else 0.0
                at = row.v[e]
                sums[2] += step * (2.0 * sums[1] + step * sums[0])
                sums[1] += step * sums[0]
                j = number(&row, e)
                if kind(&row, j) == 2:
                    sums[0] += 1.0
                elif j == l:
                    passed = True
                else:
                    m = at - t if passed else 0.0
                    add_to(&total, 0.5 * (row.pair * sums[2] + row.single * m * m))
                    u[j] = row.pair * sums[1] + row.single * m
                    if passed:
                        u[l] -= row.single * m
            sums[0] = sums[1] = 0.0
            passed = False
            for e in range(row.size - 1, -1, -1):
                sums[1] += (at - row.v[e]) * sums[0]
                at = row.v[e]
                j = number(&row, e)
                if kind(&row, j) == 0:
                    sums[0] += 1.0
                elif j == l:
                    passed = True
                else:
                    m = t - at if passed else 0.0
                    add_to(&total, 0.5 * row.single * m * m)
                    u[j] = -(row.pair * sums[1] + row.single * m)
                    if passed:
                        u[l] += row.single * m
            if row.threshold:
                settle(&row, u)
        free(memory)
    return result(&total)


def slope(
    const unsigned char[:, ::1] targets,
    const double[:, ::1] costs,
    const double[:, ::1] scores,
    const double[:, ::1] dscores,
    const double[::1] weights,
    double step,
):
    """Return slope and curvature at scores + step * dscores along dscores."""
    cdef Py_ssize_t i, e, j, l = targets.shape[1], k = scores.shape[1]
    cdef double first = 0.0, second = 0.0, at, gap, d, m, t
    cdef double sums[5]
    cdef bint passed
    cdef Labels row
    cdef const double* dz
    check_scores(targets, costs, scores, weights)
    same_length(scores.shape[0], dscores.shape[0])
    same_length(k, dscores.shape[1])
    if l == 0:
        return 0.0, 0.0
    cdef double* memory = room(k, &row)
    with nogil:
        for i in range(scores.shape[0]):
            dz = &dscores[i, 0]
            open_row(&targets[i, 0], l, k, weights[i], &row)
            arrange(&row, &scores[i, 0], dz, step, &costs[0, 0])
            t = scores[i, k - 1] + step * dz[k - 1]
            # Sums of 1, m, d, m d and d² over the relevant labels passed so far.
            sums[0] = sums[1] = sums[2] = sums[3] = sums[4] = at = 0.0
            passed = False
            for e in range(row.size):
                gap = row.v[e] - at if e else 0.0
                at = row.v[e]
                sums[1] += gap * sums[0]
                sums[3] += gap * sums[2]
                j = number(&row, e)
                d = dz[j]
                if kind(&row, j) == 2:
                    sums[0] += 1.0
                    sums[2] += d
                    sums[4] += d * d
                    if not passed and row.threshold:
                        m, d = t - at, dz[l] - d
                        first += row.single * m * d
                        second += row.single * d * d
                elif j == l:
                    passed = True
                else:
                    first += row.pair * (d * sums[1] - sums[3])
                    second += row.pair * (d * (d * sums[0] - 2.0 * sums[2]) + sums[4])
                    if passed:
                        m, d = at - t, d - dz[l]
                        first += row.single * m * d
                        second += row.single * d * d
        free(memory)
    return first, second


def violated(
    const unsigned char[:, ::1] targets,
    const double[:, ::1] costs,
    const double[:, ::1] scores,
    const double[::1] weights,
    int[:, ::1] order,
    int[::1] sizes,
):
    """Write the labels in violated pairs, in ascending order of shifted scores.

    The first ``sizes[i]`` entries of a row of ``order`` are label indices; l is the
    threshold.
    """
    cdef Py_ssize_t i, e, l = targets.shape[1], k = scores.shape[1]
    cdef Labels row
    check_scores(targets, costs, scores, weights)
    same_length(scores.shape[0], order.shape[0])
    same_length(k, order.shape[1])
    same_length(scores.shape[0], sizes.shape[0])
    if l == 0:
        sizes[:] = 0
        return
    cdef double* memory = room(k, &row)
    with nogil:
        for i in range(scores.shape[0]):
            open_row(&targets[i, 0], l, k, weights[i], &row)
            arrange(&row, &scores[i, 0], NULL, 0.0, &costs[0, 0])
            # A single entry is the threshold, which is then in no violated pair.
            sizes[i] = row.size if row.size > 1 else 0
            for e in range(row.size):
                order[i, e] = number(&row, e)
        free(memory)

"""Squared violations of the order of the labels of a row.

Scores are contiguous of shape (n, k) and float64, targets of shape (n, l) are 1 for
relevant labels. With ``costs`` of shape (2, l), which are margins, labels have the shifted
scores

    v_j = z_j + costs[0, j],    j irrelevant,
    v_h = z_h - costs[1, h],    h relevant,

and every v_h should be at least every v_j; a threshold, the last score z_l of k = l + 1,
should lie between them. A pair in the wrong order costs its weight times the square of the
difference. The pairs of labels have the same weight, and sum to one half, as do those of a
label and the threshold; without a threshold, k = l, pairs of labels sum to one.

Labels that take part in such pairs are visited in order of their shifted scores, so that a
row takes O(l log l). Powers of a difference m grow from one to the next by m² + 2 t m + t²:
all terms are positive, and rounding errors are a small share of a sum.
"""

from .joint cimport same_length
from .ordered_labels cimport Labels, check, kind, open_row
from .rows cimport _sort, allocate
from .standard cimport fabs, free
from .sums cimport Sum, add_to, result

# Violations count only above 1e-13 times the largest score and shift of a row. Duals of
# a label that is relevant nowhere, or everywhere, are then zero at the best intercept.
# The bound is 450 rounding errors: 90 leave duals that nothing balances.
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
    """Sort the labels that are in the wrong order with others, at z + step * dz."""
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
    """Return which label, or l for the threshold, is at a place in the order."""
    cdef Py_ssize_t k = row.l + row.threshold
    return (<Py_ssize_t> row.codes[e]) % k


cdef inline void settle(const Labels* row, double* u) noexcept nogil:
    """Drop what rounding of scores has left of the threshold's dual variable.

    Pairs on both sides of the threshold cancel there. Where they do in all rows, nothing
    could balance their rounding. Those of the labels on the other side shrink by it.
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
            # The five sums of 1, m, d, m d and d² go over the relevant labels passed.
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
    """Write which labels are in the wrong order with others, by ascending scores.

    The first ``sizes[i]`` entries of a row of ``order`` are their numbers; the threshold
    has l.
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
            # The threshold alone is in no pair.
            sizes[i] = row.size if row.size > 1 else 0
            for e in range(row.size):
                order[i, e] = number(&row, e)
        free(memory)

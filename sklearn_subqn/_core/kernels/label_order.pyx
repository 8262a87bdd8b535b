"""Squared violations of the order of the labels of a row, and second derivatives.

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

from .joint cimport check_indicators, same_length
from .rows cimport _sort, allocate
from .standard cimport fabs, free
from .sums cimport Sum, add_to, result

# Violations below this share of the largest score and shift of a row do not count: duals
# of a label that is relevant nowhere, or everywhere, then are zero at the best intercept.
# They are 450 rounding errors: 90 leave duals that nothing balances.
cdef double _ROUNDING = 1e-13


cdef struct Labels:
    # Number of labels, and whether there is a threshold.
    Py_ssize_t l
    bint threshold
    const unsigned char* relevant
    # Twice the weights of a pair of labels, and of a label and the threshold.
    double pair
    double single
    # Of those that take part, ascending: their number, shifted scores, and kinds (0 for
    # irrelevant, 1 for the threshold, 2 for relevant) times k plus their numbers.
    Py_ssize_t size
    # The largest size of a score and its shift.
    double largest
    double* v
    double* codes


cdef int check(
    const unsigned char[:, ::1] targets,
    const double[::1] weights,
    Py_ssize_t n,
    Py_ssize_t k,
) except -1:
    same_length(targets.shape[0], n)
    same_length(targets.shape[0], weights.shape[0])
    if not targets.shape[1] <= k <= targets.shape[1] + 1:
        raise ValueError(f"{k} scores a row for {targets.shape[1]} labels.")
    check_indicators(targets)
    return 0


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


cdef int check_order(
    const unsigned char[:, ::1] targets,
    const int[:, ::1] order,
    const int[::1] sizes,
    const double[::1] weights,
) except -1:
    cdef Py_ssize_t i, e, k = order.shape[1]
    check(targets, weights, order.shape[0], k)
    same_length(targets.shape[0], sizes.shape[0])
    for i in range(order.shape[0]):
        if not 0 <= sizes[i] <= k:
            raise ValueError(f"sizes must lie in [0, {k}].")
        for e in range(sizes[i]):
            if not 0 <= order[i, e] < k:
                raise ValueError(f"order must have numbers below {k}.")
    return 0


cdef inline void open_row(
    const unsigned char* relevant, Py_ssize_t l, Py_ssize_t k, double weight, Labels* row
) noexcept nogil:
    """Set what does not depend on scores."""
    cdef Py_ssize_t j, n_relevant = 0
    cdef double share = 0.5 if k > l else 1.0
    for j in range(l):
        n_relevant += relevant[j]
    row.l, row.threshold, row.relevant = l, k > l, relevant
    row.pair = row.single = 0.0
    if 0 < n_relevant < l:
        row.pair = 2.0 * weight * share / (<double> n_relevant * (l - n_relevant))
    if k > l:
        row.single = 2.0 * weight * share / l


cdef inline int kind(const Labels* row, Py_ssize_t j) noexcept nogil:
    """Return the place of kinds at equal scores: those in order are not violated."""
    return 1 if j == row.l else 2 * row.relevant[j]


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
            # Of (1, m, d, m d, d²) over the relevant labels passed.
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


def apply(
    const unsigned char[:, ::1] targets,
    const int[:, ::1] order,
    const int[::1] sizes,
    const double[::1] weights,
    const double[:, ::1] vectors,
    double[:, ::1] out,
):
    """Write products of the rows' matrices of second derivatives with vectors."""
    cdef Py_ssize_t i, e, j, l = targets.shape[1], k = order.shape[1]
    cdef int side
    cdef double count, total, single
    cdef bint passed
    cdef Labels row
    cdef const double* d
    cdef double* u
    check_order(targets, order, sizes, weights)
    same_length(order.shape[0], vectors.shape[0])
    same_length(k, vectors.shape[1])
    same_length(order.shape[0], out.shape[0])
    same_length(k, out.shape[1])
    with nogil:
        for i in range(order.shape[0]):
            for j in range(k):
                out[i, j] = 0.0
            if sizes[i] == 0:
                continue
            d, u = &vectors[i, 0], &out[i, 0]
            open_row(&targets[i, 0], l, k, weights[i], &row)
            # Upwards the irrelevant labels, against the relevant ones passed; downwards
            # the relevant labels.
            for side in range(2):
                count = total = 0.0
                passed = False
                for e in range(sizes[i]):
                    j = order[i, sizes[i] - 1 - e if side else e]
                    if j == l:
                        passed = True
                    elif row.relevant[j] != side:
                        count += 1.0
                        total += d[j]
                    else:
                        single = row.single * (d[j] - d[l]) if passed else 0.0
                        u[j] = row.pair * (count * d[j] - total) + single
                        if passed:
                            u[l] -= single


def diagonal(
    const unsigned char[:, ::1] targets,
    const int[:, ::1] order,
    const int[::1] sizes,
    const double[::1] weights,
    double[:, ::1] out,
):
    """Write the diagonals of the matrices of second derivatives."""
    cdef Py_ssize_t i, e, j, l = targets.shape[1], k = order.shape[1], a, b
    cdef int side
    cdef double count
    cdef bint passed
    cdef Labels row
    check_order(targets, order, sizes, weights)
    same_length(order.shape[0], out.shape[0])
    same_length(k, out.shape[1])
    with nogil:
        for i in range(order.shape[0]):
            for j in range(k):
                out[i, j] = 0.0
            if sizes[i] == 0:
                continue
            open_row(&targets[i, 0], l, k, weights[i], &row)
            for side in range(2):
                count, passed = 0.0, False
                for a in range(sizes[i]):
                    j = order[i, sizes[i] - 1 - a if side else a]
                    if j == l:
                        passed = True
                    elif row.relevant[j] == side:
                        out[i, j] = row.pair * count
                        if passed:
                            out[i, j] += row.single
                            out[i, l] += row.single
                    else:
                        count += 1.0


def entries(
    const unsigned char[:, ::1] targets,
    const int[:, ::1] order,
    const int[::1] sizes,
    const double[::1] weights,
    Py_ssize_t first,
    Py_ssize_t[::1] row_of,
    Py_ssize_t[::1] pairs,
    double[::1] values,
):
    """Write the entries j * k + h, j <= h, of the matrices of second derivatives.

    Stops at the row whose entries might not fit. Returns the first row left, and the
    number of entries written.
    """
    cdef Py_ssize_t i = first, a, b, j, h, n = order.shape[0], l = targets.shape[1]
    cdef Py_ssize_t k = order.shape[1], count = 0, most = k * (k + 1) // 2
    cdef Py_ssize_t size = values.shape[0]
    cdef double c
    cdef double* diagonals
    cdef Labels row
    check_order(targets, order, sizes, weights)
    same_length(size, row_of.shape[0])
    same_length(size, pairs.shape[0])
    if size < most:
        raise ValueError(f"room for {size} entries where {most} may come.")
    diagonals = <double*> allocate(k * sizeof(double))
    with nogil:
        while i < n and count + most <= size:
            open_row(&targets[i, 0], l, k, weights[i], &row)
            for a in range(sizes[i]):
                diagonals[order[i, a]] = 0.0
            for b in range(1, sizes[i]):
                for a in range(b):
                    j, h = order[i, a], order[i, b]
                    if kind(&row, j) <= kind(&row, h):
                        continue
                    c = row.single if j == l or h == l else row.pair
                    diagonals[j] += c
                    diagonals[h] += c
                    row_of[count], pairs[count] = i, min(j, h) * k + max(j, h)
                    values[count] = -c
                    count += 1
            for a in range(sizes[i]):
                j = order[i, a]
                row_of[count], pairs[count] = i, j * k + j
                values[count] = diagonals[j]
                count += 1
            i += 1
        free(diagonals)
    return i, count

"""Multilabel hinge with costs of pairs of labels, and its smooth envelope.

Scores z are contiguous of shape (n, l) and float64, targets of shape (n, l) are 1 for
relevant labels. With ``costs`` of shape (l, l) the pairs of a relevant label h and an
irrelevant label j of a row have the violations

    m_hj = costs[h, j] + z_j - z_h,

and the loss is the largest of them and zero. Dual variables b are non-negative, one for
each pair, and sum to at most one. Those of row i are at starts[i] to starts[i + 1] of one
array, by relevant labels and then by irrelevant ones.

The envelope around a center c of width s is the maximum of <b, m> - s / 2 ||b - c||²,
with the rest 1 - sum b and that of c as one more entry of each.
"""

from .rows cimport allocate, simplex_shift, upper_envelope
from .standard cimport fabs, free


def value(
    const double[:, ::1] scores,
    const unsigned char[:, ::1] targets,
    const double[:, ::1] costs,
    const double[::1] weights,
):
    """Return the sum of weights times losses."""
    cdef Py_ssize_t i, p, size, n = scores.shape[0], l = targets.shape[1]
    cdef double top, total = 0.0
    cdef double* m
    cdef Py_ssize_t* pairs
    _check(scores, targets, costs)
    _same_length(n, weights.shape[0])
    m = _room(l, 1, &pairs)
    with nogil:
        for i in range(n):
            size = _violations(&scores[i, 0], &targets[i, 0], costs, l, m, pairs)
            top = 0.0
            for p in range(size):
                top = max(top, m[p])
            total += weights[i] * top
        free(m)
    return total


def subgradient(
    const double[:, ::1] scores,
    const double[:, ::1] dscores,
    const unsigned char[:, ::1] targets,
    const double[:, ::1] costs,
    const double[::1] weights,
    double tolerance,
    double[:, ::1] out,
):
    """Write the subgradient of the violations that grow fastest among the largest.

    At ties of growth it is zero where that is one, and otherwise that of the first.
    """
    cdef Py_ssize_t i, p, best, size, n = scores.shape[0], l = targets.shape[1]
    cdef double top, tie, rise, fastest
    cdef double* m
    cdef Py_ssize_t* pairs
    _check(scores, targets, costs)
    _check(dscores, targets, costs)
    _check(out, targets, costs)
    _same_length(n, weights.shape[0])
    m = _room(l, 1, &pairs)
    with nogil:
        for i in range(n):
            size = _violations(&scores[i, 0], &targets[i, 0], costs, l, m, pairs)
            top = 0.0
            for p in range(size):
                top = max(top, m[p])
            tie = tolerance * _size(&scores[i, 0], l)
            best = -1
            fastest = 0.0
            for p in range(size):
                if m[p] >= top - tie:
                    rise = dscores[i, pairs[2 * p + 1]] - dscores[i, pairs[2 * p]]
                    if rise > fastest or (best < 0 and top > tie):
                        best, fastest = p, rise
            for p in range(l):
                out[i, p] = 0.0
            if best >= 0:
                out[i, pairs[2 * best]] = -weights[i]
                out[i, pairs[2 * best + 1]] = weights[i]
        free(m)


def kinks(
    const double[:, ::1] scores,
    const unsigned char[:, ::1] targets,
    const double[:, ::1] costs,
    double tolerance,
    unsigned char[::1] out,
):
    """Write 1 for rows in which several violations, or one and zero, are the largest."""
    cdef Py_ssize_t i, p, size, n_ties, n = scores.shape[0], l = targets.shape[1]
    cdef double top, tie
    cdef double* m
    cdef Py_ssize_t* pairs
    _check(scores, targets, costs)
    _same_length(n, out.shape[0])
    m = _room(l, 1, &pairs)
    with nogil:
        for i in range(n):
            size = _violations(&scores[i, 0], &targets[i, 0], costs, l, m, pairs)
            top = 0.0
            for p in range(size):
                top = max(top, m[p])
            tie = tolerance * _size(&scores[i, 0], l)
            n_ties = top <= tie
            for p in range(size):
                n_ties += m[p] >= top - tie
            out[i] = n_ties > 1
        free(m)


def restrict(
    const double[:, ::1] scores,
    const double[:, ::1] dscores,
    const unsigned char[:, ::1] targets,
    const double[:, ::1] costs,
    const double[::1] weights,
    double tolerance,
    Py_ssize_t first,
    double[::1] kinks,
    double[::1] jumps,
):
    """Write kinks and slope jumps along scores + eta * dscores, from row ``first`` on.

    Stops at the row whose kinks might not fit, of which there are at most one for each
    pair. The costs of pairs are arbitrary, so that all lines of (3.58) are formed; those
    that rise no faster than the largest at eta = 0 are dropped before they are sorted.

    Returns
    -------
    row : int
        The first row left.
    count : int
        Number of kinks written.
    slope : float
        Sum of the slopes at eta = 0 of the rows done.
    """
    cdef Py_ssize_t i = first, n = scores.shape[0], l = targets.shape[1], count = 0
    cdef Py_ssize_t p, size, n_lines, most = _most_pairs(l)
    cdef double top, tie, d, slope = 0.0
    cdef double* m
    cdef double* rise
    cdef double* height
    cdef double* at
    cdef Py_ssize_t* pairs
    _check(scores, targets, costs)
    _check(dscores, targets, costs)
    _same_length(n, weights.shape[0])
    _same_length(kinks.shape[0], jumps.shape[0])
    if kinks.shape[0] < most:
        raise ValueError(f"room for {kinks.shape[0]} kinks where {most} may come.")
    m = _room(l, 4, &pairs)
    rise = m + (most + 1)
    height = rise + (most + 1)
    at = height + (most + 1)
    with nogil:
        while i < n and count + most <= kinks.shape[0]:
            size = _violations(&scores[i, 0], &targets[i, 0], costs, l, m, pairs)
            top = 0.0
            for p in range(size):
                top = max(top, m[p])
            tie = tolerance * _size(&scores[i, 0], l)
            rise[0] = 0.0 if top <= tie else -1e300
            for p in range(size):
                if m[p] >= top - tie:
                    d = dscores[i, pairs[2 * p + 1]] - dscores[i, pairs[2 * p]]
                    rise[0] = max(rise[0], d)
            height[0] = top
            n_lines = 1
            if top > tie and rise[0] < 0.0:
                rise[1] = height[1] = 0.0
                n_lines = 2
            for p in range(size):
                if m[p] < top - tie:
                    d = dscores[i, pairs[2 * p + 1]] - dscores[i, pairs[2 * p]]
                    if d > rise[0]:
                        rise[n_lines], height[n_lines] = d, m[p]
                        n_lines += 1
            slope += weights[i] * rise[0]
            for p in range(1, upper_envelope(rise, height, at, n_lines)):
                kinks[count] = at[p]
                jumps[count] = weights[i] * (rise[p] - rise[p - 1])
                count += 1
            i += 1
        free(m)
    return i, count, slope


def transport(
    const double[:, ::1] dual,
    const unsigned char[:, ::1] targets,
    const double[:, ::1] costs,
    const Py_ssize_t[::1] starts,
    double[::1] out,
):
    """Write flows of the largest cost from relevant to irrelevant labels.

    Row i of ``dual`` says what leaves its relevant labels (negative entries) and arrives
    at the irrelevant ones, equal in sum. By augmenting along shortest paths (Ahuja,
    Magnanti, Orlin 1993, section 9.7).

    Returns
    -------
    total : float
        Sum of flows times costs.
    """
    cdef Py_ssize_t i, n = dual.shape[0], l = targets.shape[1]
    cdef double total = 0.0
    cdef double* room
    cdef Py_ssize_t* labels
    _check(dual, targets, costs)
    _check_starts(starts, targets, out.shape[0])
    room = <double*> allocate(2 * l * (sizeof(double) + sizeof(Py_ssize_t)) + 8)
    labels = <Py_ssize_t*> (room + 2 * l)
    with nogil:
        for i in range(n):
            if starts[i + 1] > starts[i]:
                total += _transport(
                    &dual[i, 0], &targets[i, 0], costs, l, room, labels,
                    &out[starts[i]],
                )
        free(room)
    return total


def envelope_gradient(
    const double[:, ::1] scores,
    const double[::1] center,
    const Py_ssize_t[::1] starts,
    const unsigned char[:, ::1] targets,
    const double[:, ::1] costs,
    const double[::1] weights,
    double width,
    double[:, ::1] out,
):
    """Write the gradient of the envelope; return its value."""
    cdef Py_ssize_t i, p, size, n = scores.shape[0], l = targets.shape[1]
    cdef double shift, rest, b, row, mass, total = 0.0
    cdef double* t
    cdef Py_ssize_t* pairs
    cdef const double* c
    _check(scores, targets, costs)
    _check(out, targets, costs)
    _check_starts(starts, targets, center.shape[0])
    _same_length(n, weights.shape[0])
    t = _room(l, 2, &pairs)
    with nogil:
        for i in range(n):
            for p in range(l):
                out[i, p] = 0.0
            size = _violations(&scores[i, 0], &targets[i, 0], costs, l, t, pairs)
            if size == 0:
                continue
            c = &center[starts[i]]
            rest = _project(t, c, size, width, t + _most_pairs(l) + 1, &shift)
            row = -0.5 * (max(0.0, rest - shift) - rest) ** 2
            # Large scores have rounding errors: b must not sum to more than one.
            mass = 0.0
            for p in range(size):
                mass += max(0.0, t[p] - shift)
            mass = max(mass, 1.0)
            for p in range(size):
                b = max(0.0, t[p] - shift) / mass
                row += b * (t[p] - c[p]) - 0.5 * (b - c[p]) * (b - c[p])
                out[i, pairs[2 * p]] -= weights[i] * b
                out[i, pairs[2 * p + 1]] += weights[i] * b
            total += weights[i] * width * row
        free(t)
    return total


def envelope_slope(
    const double[:, ::1] scores,
    const double[:, ::1] dscores,
    const double[::1] center,
    const Py_ssize_t[::1] starts,
    const unsigned char[:, ::1] targets,
    const double[:, ::1] costs,
    const double[::1] weights,
    double width,
    double step,
):
    """Return slope and curvature of the envelope along dscores at ``step``."""
    cdef Py_ssize_t i, j, p, size, active, n = scores.shape[0], l = targets.shape[1]
    cdef double shift, rest, d, sums, square, slope = 0.0, curvature = 0.0
    cdef double* t
    cdef double* z
    cdef Py_ssize_t* pairs
    _check(scores, targets, costs)
    _check(dscores, targets, costs)
    _check_starts(starts, targets, center.shape[0])
    _same_length(n, weights.shape[0])
    t = _room(l, 3, &pairs)
    z = t + 2 * (_most_pairs(l) + 1)
    with nogil:
        for i in range(n):
            for j in range(l):
                z[j] = scores[i, j] + step * dscores[i, j]
            size = _violations(z, &targets[i, 0], costs, l, t, pairs)
            if size == 0:
                continue
            rest = _project(
                t, &center[starts[i]], size, width, t + _most_pairs(l) + 1, &shift
            )
            active = rest > shift
            sums = square = 0.0
            for p in range(size):
                if t[p] > shift:
                    d = dscores[i, pairs[2 * p + 1]] - dscores[i, pairs[2 * p]]
                    slope += weights[i] * (t[p] - shift) * d
                    sums += d
                    square += d * d
                    active += 1
            curvature += weights[i] * (square - sums * sums / active)
        free(t)
    return slope, curvature / width


def support(
    const double[:, ::1] scores,
    const double[::1] center,
    const Py_ssize_t[::1] starts,
    const unsigned char[:, ::1] targets,
    const double[:, ::1] costs,
    double width,
    double edge,
    int[:, ::1] out,
    Py_ssize_t[:, ::1] sizes,
):
    """Write labels (relevant, irrelevant) of the pairs with positive b, up to ``edge``.

    ``out`` has room for all pairs, row after row; ``sizes`` gets how many there are in
    each row, and that number plus one where b may sum to less than one, the rest.

    Returns
    -------
    count : int
        Number of pairs written.
    """
    cdef Py_ssize_t i, p, size, count = 0, n = scores.shape[0], l = targets.shape[1]
    cdef double shift, rest
    cdef double* t
    cdef Py_ssize_t* pairs
    _check(scores, targets, costs)
    _check_starts(starts, targets, center.shape[0])
    _same_length(starts[n], out.shape[0])
    _same_length(2, out.shape[1])
    _same_length(n, sizes.shape[0])
    _same_length(2, sizes.shape[1])
    t = _room(l, 2, &pairs)
    with nogil:
        for i in range(n):
            sizes[i, 0] = sizes[i, 1] = 0
            size = _violations(&scores[i, 0], &targets[i, 0], costs, l, t, pairs)
            if size == 0:
                continue
            rest = _project(
                t, &center[starts[i]], size, width, t + _most_pairs(l) + 1, &shift
            )
            for p in range(size):
                if t[p] >= shift - edge:
                    out[count, 0] = <int> pairs[2 * p]
                    out[count, 1] = <int> pairs[2 * p + 1]
                    count += 1
                    sizes[i, 0] += 1
            sizes[i, 1] = sizes[i, 0] + (rest >= shift - edge)
        free(t)
    return count


cdef inline Py_ssize_t _most_pairs(Py_ssize_t l) noexcept nogil:
    return (l * l) // 4


cdef double* _room(Py_ssize_t l, Py_ssize_t n_numbers, Py_ssize_t** pairs) except NULL:
    """Return room for so many numbers, and two labels, for each pair, and some more."""
    cdef Py_ssize_t size = _most_pairs(l) + 1 + l
    cdef double* room = <double*> allocate(
        size * (n_numbers * sizeof(double) + 2 * sizeof(Py_ssize_t))
    )
    pairs[0] = <Py_ssize_t*> (room + n_numbers * size)
    return room


cdef inline Py_ssize_t _violations(
    const double* z,
    const unsigned char* relevant,
    const double[:, ::1] costs,
    Py_ssize_t l,
    double* m,
    Py_ssize_t* pairs,
) noexcept nogil:
    """Write the violations and labels of all pairs; return their number."""
    cdef Py_ssize_t h, j, size = 0
    for h in range(l):
        if relevant[h]:
            for j in range(l):
                if not relevant[j]:
                    m[size] = costs[h, j] + z[j] - z[h]
                    pairs[2 * size] = h
                    pairs[2 * size + 1] = j
                    size += 1
    return size


cdef inline double _project(
    double* t,
    const double* center,
    Py_ssize_t size,
    double width,
    double* few,
    double* shift,
) noexcept nogil:
    """Turn m to t = center + m / width, write their shift; return t of the rest."""
    cdef Py_ssize_t p
    cdef double rest = 1.0
    for p in range(size):
        rest -= center[p]
        t[p] = center[p] + t[p] / width
    t[size] = rest
    shift[0] = simplex_shift(t, size + 1, few)
    return rest


cdef inline double _transport(
    const double* u,
    const unsigned char* relevant,
    const double[:, ::1] costs,
    Py_ssize_t l,
    double* left,
    Py_ssize_t* parent,
    double* flow,
) noexcept nogil:
    """Write the flows of one row, by relevant and then by irrelevant label.

    ``left`` has room for 2 l numbers: what is left to leave or arrive at each label, and
    its distance, minus the cost of the best path to it. ``parent`` has room for 2 l:
    the label before it, and the number of labels of its kind before it.
    """
    cdef Py_ssize_t h, j, end, step, n_irrelevant = 0, n_relevant = 0
    cdef double total = 0.0, largest = 0.0, least, amount, further
    cdef double* distance = left + l
    cdef Py_ssize_t* place = parent + l
    cdef bint changed
    for j in range(l):
        left[j] = max(0.0, -u[j] if relevant[j] else u[j])
        largest = max(largest, left[j])
        if relevant[j]:
            place[j] = n_relevant
            n_relevant += 1
        else:
            place[j] = n_irrelevant
            n_irrelevant += 1
    for j in range(n_relevant * n_irrelevant):
        flow[j] = 0.0
    least = 1e-15 * largest
    while True:
        for j in range(l):
            distance[j] = 0.0 if relevant[j] and left[j] > least else 1e300
            parent[j] = -1
        changed = True
        step = 0
        while changed and step < l:
            changed = False
            step += 1
            for h in range(l):
                if not relevant[h] or distance[h] >= 1e300:
                    continue
                for j in range(l):
                    if relevant[j] or u[j] <= 0.0:
                        continue
                    further = distance[h] - costs[h, j]
                    if further < distance[j] - 1e-12 * (1.0 + fabs(further)):
                        distance[j], parent[j], changed = further, h, True
            for j in range(l):
                if relevant[j] or distance[j] >= 1e300:
                    continue
                for h in range(l):
                    if not relevant[h]:
                        continue
                    if flow[place[h] * n_irrelevant + place[j]] <= least:
                        continue
                    further = distance[j] + costs[h, j]
                    if further < distance[h] - 1e-12 * (1.0 + fabs(further)):
                        distance[h], parent[h], changed = further, j, True
        end = -1
        for j in range(l):
            if not relevant[j] and left[j] > least and distance[j] < 1e300:
                if end < 0 or distance[j] < distance[end]:
                    end = j
        if end < 0:
            break
        amount = left[end]
        j = end
        step = 0
        while parent[j] >= 0 and step <= 2 * l:
            if relevant[j]:
                amount = min(amount, flow[place[j] * n_irrelevant + place[parent[j]]])
            j = parent[j]
            step += 1
        if step > 2 * l:
            break
        amount = min(amount, left[j])
        left[j] -= amount
        left[end] -= amount
        j = end
        while parent[j] >= 0:
            h = parent[j]
            if relevant[j]:
                flow[place[j] * n_irrelevant + place[h]] -= amount
            else:
                flow[place[h] * n_irrelevant + place[j]] += amount
            j = h
    # What rounding has left goes anywhere: every flow proves a bound.
    for h in range(l):
        for j in range(l):
            if relevant[h] and not relevant[j]:
                amount = min(left[h], left[j])
                left[h] -= amount
                left[j] -= amount
                step = place[h] * n_irrelevant + place[j]
                flow[step] += amount
                total += flow[step] * costs[h, j]
    return total


cdef inline double _size(const double* z, Py_ssize_t l) noexcept nogil:
    """Return max(1, |z|)."""
    cdef Py_ssize_t j
    cdef double largest = 1.0
    for j in range(l):
        largest = max(largest, fabs(z[j]))
    return largest


cdef int _check(
    const double[:, ::1] scores,
    const unsigned char[:, ::1] targets,
    const double[:, ::1] costs,
) except -1:
    cdef Py_ssize_t i, j
    _same_length(scores.shape[0], targets.shape[0])
    for length in (scores.shape[1], costs.shape[0], costs.shape[1]):
        _same_length(length, targets.shape[1])
    for i in range(targets.shape[0]):
        for j in range(targets.shape[1]):
            if targets[i, j] > 1:
                raise ValueError(f"targets must be 0 or 1, got {targets[i, j]}.")
    return 0


cdef int _check_starts(
    const Py_ssize_t[::1] starts, const unsigned char[:, ::1] targets, Py_ssize_t size
) except -1:
    cdef Py_ssize_t i, j, relevant, n = targets.shape[0], l = targets.shape[1]
    _same_length(n + 1, starts.shape[0])
    if starts[0] != 0 or starts[n] != size:
        raise ValueError(f"pairs of rows end at {starts[n]} instead of {size}.")
    for i in range(n):
        relevant = 0
        for j in range(l):
            relevant += targets[i, j]
        if starts[i + 1] - starts[i] != relevant * (l - relevant):
            raise ValueError(f"row {i} has another number of pairs.")
    return 0


cdef int _same_length(Py_ssize_t a, Py_ssize_t b) except -1:
    if a != b:
        raise ValueError(f"arrays have lengths {a} and {b}.")
    return 0

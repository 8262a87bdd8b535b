"""Multilabel hinge and its smooth envelope: each function is one trip over rows.

Scores z and duals are contiguous of shape (n, k) and float64, targets of shape (n, l) are
1 for relevant labels. With ``costs`` of shape (2, l) the labels of a row have the
violations

    m_j = costs[0, j] + z_j,    j irrelevant,
    m_j = costs[1, j] - z_j,    j relevant.

Without a threshold, k = l, the loss is max(0, max irrelevant m + max relevant m), and zero
in rows without either kind. With one, the last score z_l of k = l + 1 is subtracted from
the scores of all labels, and the loss is the sum of both maxima with zero.

The envelope around a center c of width s is the maximum of <b, m> - s / 2 ||b - c||² over
b >= 0 whose sums over both kinds are equal and at most 1; with a threshold they need not
be equal. It is attained at b = max(0, c + m / s - shift), with a shift for each kind.
"""

from .labels cimport coupled_shifts, kind_shift
from .rows cimport allocate, upper_envelope
from .standard cimport fabs, free


def value(
    const double[:, ::1] scores,
    const unsigned char[:, ::1] targets,
    const double[:, ::1] costs,
    const double[::1] weights,
):
    """Return the sum of weights times losses."""
    cdef Py_ssize_t i, n = scores.shape[0], l = targets.shape[1]
    cdef bint threshold = _check(scores, targets, costs, weights)
    cdef double top[2]
    cdef double total = 0.0
    cdef double* m = <double*> allocate(l * sizeof(double))
    with nogil:
        for i in range(n):
            _violations(&scores[i, 0], &targets[i, 0], costs, l, threshold, m, top)
            total += weights[i] * _loss(top, threshold)
        free(m)
    return total


def subgradient(
    const double[:, ::1] scores,
    const unsigned char[:, ::1] targets,
    const double[:, ::1] costs,
    const double[::1] weights,
    double tolerance,
    double[:, ::1] out,
):
    """Write the subgradient of the first maxima; zero where that is one."""
    cdef Py_ssize_t i, j, n = scores.shape[0], l = targets.shape[1]
    cdef bint threshold = _check(scores, targets, costs, weights)
    cdef double top[2]
    cdef double tie
    cdef bint active[2]
    cdef double* m
    _same_shape(scores, out)
    m = <double*> allocate(l * sizeof(double))
    with nogil:
        for i in range(n):
            _violations(&scores[i, 0], &targets[i, 0], costs, l, threshold, m, top)
            tie = tolerance * _size(&scores[i, 0], scores.shape[1])
            _clear(&out[i, 0], out.shape[1])
            if threshold:
                active[0], active[1] = top[0] > tie, top[1] > tie
            else:
                active[0] = active[1] = top[0] + top[1] > tie
            for j in range(l):
                if active[targets[i, j]] and m[j] >= top[targets[i, j]] - tie:
                    active[targets[i, j]] = False
                    _add(&out[i, 0], targets[i, j], j, l, threshold, weights[i])
        free(m)


def kinks(
    const double[:, ::1] scores,
    const unsigned char[:, ::1] targets,
    const double[:, ::1] costs,
    double tolerance,
    unsigned char[::1] out,
):
    """Write 1 for rows in which the loss is not differentiable."""
    cdef Py_ssize_t i, j, n = scores.shape[0], l = targets.shape[1]
    cdef Py_ssize_t ties[2]
    cdef bint threshold = _check_labels(scores, targets, costs)
    cdef double top[2]
    cdef double tie, total
    cdef double* m
    _same_length(n, out.shape[0])
    m = <double*> allocate(l * sizeof(double))
    with nogil:
        for i in range(n):
            _violations(&scores[i, 0], &targets[i, 0], costs, l, threshold, m, top)
            tie = tolerance * _size(&scores[i, 0], scores.shape[1])
            ties[0] = ties[1] = 0
            for j in range(l):
                ties[targets[i, j]] += m[j] >= top[targets[i, j]] - tie
            if threshold:
                out[i] = fabs(top[0]) <= tie or fabs(top[1]) <= tie
                out[i] |= (top[0] > tie and ties[0] > 1)
                out[i] |= (top[1] > tie and ties[1] > 1)
            else:
                total = top[0] + top[1]
                out[i] = fabs(total) <= tie
                out[i] |= total > tie and (ties[0] > 1 or ties[1] > 1)
        free(m)


def steepest(
    const double[:, ::1] scores,
    const double[:, ::1] dscores,
    const unsigned char[:, ::1] targets,
    const double[:, ::1] costs,
    const double[::1] weights,
    double tolerance,
    double[:, ::1] out,
):
    """Write the subgradient of those maxima which grow fastest along dscores."""
    cdef Py_ssize_t i, j, n = scores.shape[0], l = targets.shape[1]
    cdef bint threshold = _check(scores, targets, costs, weights)
    cdef Py_ssize_t best[2]
    cdef double top[2]
    cdef double rise[2]
    cdef bint active[2]
    cdef double tie, slope
    cdef double* m
    cdef unsigned char side
    _same_shape(scores, dscores)
    _same_shape(scores, out)
    m = <double*> allocate(l * sizeof(double))
    with nogil:
        for i in range(n):
            _violations(&scores[i, 0], &targets[i, 0], costs, l, threshold, m, top)
            tie = tolerance * _size(&scores[i, 0], scores.shape[1])
            best[0] = best[1] = -1
            rise[0] = rise[1] = 0.0
            for j in range(l):
                side = targets[i, j]
                if m[j] >= top[side] - tie:
                    slope = _rise(&dscores[i, 0], side, j, l, threshold)
                    if best[side] < 0 or slope > rise[side]:
                        best[side], rise[side] = j, slope
            if threshold:
                for side in range(2):
                    active[side] = top[side] > tie or (
                        top[side] >= -tie and rise[side] > 0.0
                    )
            else:
                active[0] = active[1] = top[0] + top[1] > tie or (
                    top[0] + top[1] >= -tie and rise[0] + rise[1] > 0.0
                )
            _clear(&out[i, 0], out.shape[1])
            for side in range(2):
                if active[side]:
                    _add(&out[i, 0], side, best[side], l, threshold, weights[i])
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

    Stops at the row whose kinks might not fit, of which there are at most l + 2. The
    maxima over both kinds are segmented by themselves, and then added: pairs of labels
    are never formed.

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
    cdef bint threshold = _check(scores, targets, costs, weights)
    cdef Py_ssize_t size[2]
    cdef double top[2]
    cdef double tie, slope = 0.0
    cdef unsigned char side
    cdef double* m
    cdef double* lines
    cdef double* none
    _same_shape(scores, dscores)
    _same_length(kinks.shape[0], jumps.shape[0])
    if kinks.shape[0] < l + 2:
        raise ValueError(f"room for {kinks.shape[0]} kinks where {l + 2} may come.")
    # Rises, heights and intersections of the lines of both kinds.
    m = <double*> allocate((7 * l + 6) * sizeof(double))
    lines = m + l
    none = lines + 3 * (l + 1)
    with nogil:
        while i < n and count + l + 2 <= kinks.shape[0]:
            _violations(&scores[i, 0], &targets[i, 0], costs, l, threshold, m, top)
            tie = tolerance * _size(&scores[i, 0], scores.shape[1])
            for side in range(2):
                size[side] = _segment(
                    &dscores[i, 0], &targets[i, 0], side, l, threshold, m, top[side],
                    tie, lines + side * 3 * (l + 1),
                )
            if threshold:
                for side in range(2):
                    if size[side]:
                        slope += weights[i] * _positive_part(
                            lines + side * 3 * (l + 1), size[side], lines, 0, l + 1,
                            top[side], tie, weights[i], &kinks[0], &jumps[0], &count,
                        )
            elif size[0] and size[1]:
                slope += weights[i] * _positive_part(
                    lines, size[0], none, size[1], l + 1, top[0] + top[1], tie,
                    weights[i], &kinks[0], &jumps[0], &count,
                )
            i += 1
        free(m)
    return i, count, slope


def envelope_gradient(
    const double[:, ::1] scores,
    const double[:, ::1] center,
    const unsigned char[:, ::1] targets,
    const double[:, ::1] costs,
    const double[::1] weights,
    double width,
    double[:, ::1] out,
):
    """Write the gradient of the envelope; return its value.

    The value is the sum of weights_i (<b_i, m_i> - width / 2 ||b_i - center_i||²).
    """
    cdef Py_ssize_t i, j, n = scores.shape[0], l = targets.shape[1]
    cdef bint threshold = _check(scores, targets, costs, weights)
    cdef double shifts[2]
    cdef double factors[2]
    cdef double b, row, total = 0.0
    cdef double* t
    _check_center(center, targets)
    _same_shape(scores, out)
    t = <double*> allocate(2 * l * sizeof(double))
    with nogil:
        for i in range(n):
            _project(
                &scores[i, 0], &center[i, 0], &targets[i, 0], costs, l, threshold,
                width, t, shifts,
            )
            _feasible(t, shifts, &targets[i, 0], l, threshold, factors)
            _clear(&out[i, 0], out.shape[1])
            row = 0.0
            for j in range(l):
                b = (t[j] - shifts[targets[i, j]]) * factors[targets[i, j]]
                if b > 0.0:
                    _add(&out[i, 0], targets[i, j], j, l, threshold, weights[i] * b)
                else:
                    b = 0.0
                row += b * (t[j] - center[i, j])
                row -= 0.5 * (b - center[i, j]) * (b - center[i, j])
            total += weights[i] * width * row
        free(t)
    return total


def envelope_slope(
    const double[:, ::1] scores,
    const double[:, ::1] dscores,
    const double[:, ::1] center,
    const unsigned char[:, ::1] targets,
    const double[:, ::1] costs,
    const double[::1] weights,
    double width,
    double step,
):
    """Return slope and curvature of the envelope along dscores at ``step``."""
    cdef Py_ssize_t i, j, g, n = scores.shape[0], k = scores.shape[1]
    cdef Py_ssize_t l = targets.shape[1]
    cdef bint threshold = _check(scores, targets, costs, weights)
    cdef Py_ssize_t size[4]
    cdef double total[4]
    cdef double shifts[2]
    cdef int codes[2]
    cdef double b, d, square, slope = 0.0, curvature = 0.0
    cdef double* t
    cdef double* z
    _check_center(center, targets)
    _same_shape(scores, dscores)
    t = <double*> allocate((2 * l + k) * sizeof(double))
    z = t + 2 * l
    with nogil:
        for i in range(n):
            for j in range(k):
                z[j] = scores[i, j] + step * dscores[i, j]
            _project(
                z, &center[i, 0], &targets[i, 0], costs, l, threshold, width, t, shifts
            )
            _groups(shifts, threshold, codes)
            for g in range(4):
                size[g] = 0
                total[g] = 0.0
            square = 0.0
            for j in range(l):
                b = t[j] - shifts[targets[i, j]]
                if b > 0.0:
                    d = _rise(&dscores[i, 0], targets[i, j], j, l, threshold)
                    slope += weights[i] * b * d
                    square += d * d
                    g = codes[targets[i, j]]
                    # Groups are of scores, rises of relevant labels are of -z.
                    total[g] += -d if targets[i, j] else d
                    size[g] += 1
            for g in range(1, 3):
                if size[g]:
                    square -= total[g] * total[g] / size[g]
            curvature += weights[i] * square
        free(t)
    return slope, curvature / width


def support(
    const double[:, ::1] scores,
    const double[:, ::1] center,
    const unsigned char[:, ::1] targets,
    const double[:, ::1] costs,
    const double[::1] weights,
    double width,
    double edge,
    unsigned char[:, ::1] out,
):
    """Write the groups of labels with positive b, up to ``edge``: 0 for none.

    The second derivatives center the scores of group 1 and those of group 2, and subtract
    the threshold from those of group 3.
    """
    cdef Py_ssize_t i, j, n = scores.shape[0], l = targets.shape[1]
    cdef bint threshold = _check(scores, targets, costs, weights)
    cdef Py_ssize_t size[4]
    cdef double shifts[2]
    cdef int codes[2]
    cdef double* t
    _check_center(center, targets)
    if out.shape[0] != n or out.shape[1] != l:
        raise ValueError("output has another shape than the targets.")
    t = <double*> allocate(2 * l * sizeof(double))
    with nogil:
        for i in range(n):
            _project(
                &scores[i, 0], &center[i, 0], &targets[i, 0], costs, l, threshold,
                width, t, shifts,
            )
            _groups(shifts, threshold, codes)
            size[0] = size[1] = size[2] = size[3] = 0
            for j in range(l):
                out[i, j] = 0
                if weights[i] > 0.0 and t[j] >= shifts[targets[i, j]] - edge:
                    out[i, j] = codes[targets[i, j]]
                size[out[i, j]] += 1
            for j in range(l):
                if out[i, j] < 3 and size[out[i, j]] < 2:
                    out[i, j] = 0
        free(t)


def apply_curvature(
    const unsigned char[:, ::1] groups,
    const double[::1] factors,
    double[:, ::1] v,
):
    """Replace the rows of v by their products with the second derivatives."""
    cdef Py_ssize_t i, j, n = groups.shape[0], l = groups.shape[1], k = v.shape[1]
    cdef Py_ssize_t size[4]
    cdef double reference[4]
    cdef double total
    cdef unsigned char g
    _check_groups(groups, factors, v)
    with nogil:
        for i in range(n):
            for g in range(4):
                size[g] = 0
                reference[g] = 0.0
            for j in range(l):
                size[groups[i, j]] += 1
                reference[groups[i, j]] += v[i, j]
            for g in range(1, 3):
                if size[g]:
                    reference[g] /= size[g]
            if k > l:
                reference[3] = v[i, l]
            total = 0.0
            for j in range(l):
                g = groups[i, j]
                v[i, j] = factors[i] * (v[i, j] - reference[g]) if g else 0.0
                if g == 3:
                    total += v[i, j]
            if k > l:
                v[i, l] = -total


def curvature_diagonal(
    const unsigned char[:, ::1] groups,
    const double[::1] factors,
    double[:, ::1] out,
):
    """Write the diagonals of the matrices of second derivatives."""
    cdef Py_ssize_t i, j, n = groups.shape[0], l = groups.shape[1]
    cdef Py_ssize_t size[4]
    cdef unsigned char g
    _check_groups(groups, factors, out)
    with nogil:
        for i in range(n):
            size[0] = size[1] = size[2] = size[3] = 0
            for j in range(l):
                size[groups[i, j]] += 1
            for j in range(l):
                g = groups[i, j]
                out[i, j] = 0.0
                if g == 3:
                    out[i, j] = factors[i]
                elif g:
                    out[i, j] = factors[i] * (1.0 - 1.0 / size[g])
            if out.shape[1] > l:
                out[i, l] = factors[i] * size[3]


def gram(
    const double[:, ::1] X,
    const unsigned char[:, ::1] groups,
    const double[::1] factors,
    double[:, :, :, ::1] out,
):
    """Add sum_i M_i (x) x_i x_iᵀ to ``out`` of shape (k, k, d, d), for blocks j <= l.

    M_i is the k x k matrix of second derivatives of row i.
    """
    cdef Py_ssize_t i, j, h, f, n = X.shape[0], d = X.shape[1]
    cdef Py_ssize_t l = groups.shape[1], k = out.shape[0], used
    cdef Py_ssize_t size[4]
    cdef unsigned char a, b
    cdef double c
    cdef double* outer
    cdef double* block
    cdef Py_ssize_t* labels
    _same_length(n, groups.shape[0])
    _same_length(n, factors.shape[0])
    if not l <= k <= l + 1 or out.shape[1] != k:
        raise ValueError("output has the wrong shape.")
    if out.shape[2] != d or out.shape[3] != d:
        raise ValueError("output has the wrong shape.")
    outer = <double*> allocate(d * d * sizeof(double) + k * sizeof(Py_ssize_t))
    labels = <Py_ssize_t*> (outer + d * d)
    with nogil:
        for i in range(n):
            size[0] = size[1] = size[2] = size[3] = 0
            used = 0
            for j in range(l):
                if groups[i, j]:
                    labels[used] = j
                    used += 1
                size[groups[i, j]] += 1
            if used == 0:
                continue
            if size[3] and k > l:
                labels[used] = l
                used += 1
            for j in range(d):
                for h in range(d):
                    outer[j * d + h] = X[i, j] * X[i, h]
            for j in range(used):
                for h in range(j, used):
                    a = groups[i, labels[j]] if labels[j] < l else 4
                    b = groups[i, labels[h]] if labels[h] < l else 4
                    if a == 4:
                        c = size[3]
                    elif b == 4:
                        c = -1.0 if a == 3 else 0.0
                    elif a != b:
                        c = 0.0
                    else:
                        c = 1.0 if j == h else 0.0
                        if a < 3:
                            c -= 1.0 / size[a]
                    if c != 0.0:
                        c *= factors[i]
                        block = &out[labels[j], labels[h], 0, 0]
                        for f in range(d * d):
                            block[f] += c * outer[f]
        free(outer)


cdef inline void _violations(
    const double* z,
    const unsigned char* relevant,
    const double[:, ::1] costs,
    Py_ssize_t l,
    bint threshold,
    double* m,
    double* top,
) noexcept nogil:
    """Write m, and to ``top`` its maxima over irrelevant and relevant labels."""
    cdef Py_ssize_t j
    cdef double reference = z[l] if threshold else 0.0
    top[0] = top[1] = -1e300
    for j in range(l):
        m[j] = z[j] - reference
        m[j] = costs[1, j] - m[j] if relevant[j] else costs[0, j] + m[j]
        if m[j] > top[relevant[j]]:
            top[relevant[j]] = m[j]


cdef inline double _loss(const double* top, bint threshold) noexcept nogil:
    cdef double loss = 0.0
    if not threshold:
        loss = top[0] + top[1]
        return loss if loss > 0.0 else 0.0
    if top[0] > 0.0:
        loss += top[0]
    if top[1] > 0.0:
        loss += top[1]
    return loss


cdef inline void _clear(double* u, Py_ssize_t k) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(k):
        u[j] = 0.0


cdef inline void _add(
    double* u,
    unsigned char relevant,
    Py_ssize_t j,
    Py_ssize_t l,
    bint threshold,
    double amount,
) noexcept nogil:
    """Add ``amount`` times the derivative of m_j."""
    if relevant:
        amount = -amount
    u[j] += amount
    if threshold:
        u[l] -= amount


cdef inline double _rise(
    const double* dz, unsigned char relevant, Py_ssize_t j, Py_ssize_t l, bint threshold
) noexcept nogil:
    """Return the change of m_j along dz."""
    cdef double d = dz[j] - dz[l] if threshold else dz[j]
    return -d if relevant else d


cdef inline Py_ssize_t _segment(
    const double* dz,
    const unsigned char* targets,
    unsigned char side,
    Py_ssize_t l,
    bint threshold,
    const double* m,
    double top,
    double tie,
    double* lines,
) noexcept nogil:
    """Segment the maximum of the lines of one kind of labels; return their number."""
    cdef Py_ssize_t j, size = 0
    cdef double* rise = lines
    cdef double* height = lines + (l + 1)
    cdef double d
    for j in range(l):
        if targets[j] == side and m[j] >= top - tie:
            d = _rise(dz, side, j, l, threshold)
            if size == 0 or d > rise[0]:
                rise[0] = d
                size = 1
    if size == 0:
        return 0
    height[0] = top
    for j in range(l):
        if targets[j] == side and m[j] < top - tie:
            d = _rise(dz, side, j, l, threshold)
            if d > rise[0]:
                rise[size], height[size] = d, m[j]
                size += 1
    return upper_envelope(rise, height, lines + 2 * (l + 1), size)


cdef inline double _positive_part(
    const double* first,
    Py_ssize_t n_first,
    const double* second,
    Py_ssize_t n_second,
    Py_ssize_t stride,
    double height,
    double tie,
    double weight,
    double* kinks,
    double* jumps,
    Py_ssize_t* count,
) noexcept nogil:
    """Add the kinks of max(0, f) for the sum f of one or two segmented maxima.

    Returns its slope at 0, where f is ``height``.
    """
    cdef Py_ssize_t a = 0, b = 0
    cdef double slope = first[0] + (second[0] if n_second else 0.0)
    cdef double at = 0.0, next_at, next_slope, zero, start
    cdef bint positive = height > tie or (height >= -tie and slope > 0.0)
    start = slope if positive else 0.0
    if fabs(height) <= tie:
        height = 0.0
    while True:
        # The end of this piece, and the slope after it.
        next_at = -1.0
        next_slope = slope
        if a + 1 < n_first:
            next_at = first[2 * stride + a + 1]
        if b + 1 < n_second and (
            next_at < 0.0 or second[2 * stride + b + 1] < next_at
        ):
            next_at = second[2 * stride + b + 1]
            b += 1
            next_slope += second[b] - second[b - 1]
        elif next_at >= 0.0:
            a += 1
            next_slope += first[a] - first[a - 1]
        # A zero of f within the piece.
        if (positive and slope < 0.0) or (not positive and slope > 0.0):
            zero = at - height / slope
            if next_at < 0.0 or zero < next_at:
                kinks[count[0]] = zero if zero > at else at
                jumps[count[0]] = weight * fabs(slope)
                count[0] += 1
                positive = not positive
        if next_at < 0.0:
            return start
        height += slope * (next_at - at)
        if positive:
            kinks[count[0]] = next_at
            jumps[count[0]] = weight * (next_slope - slope)
            count[0] += 1
        at, slope = next_at, next_slope


cdef inline void _groups(
    const double* shifts, bint threshold, int* codes
) noexcept nogil:
    """Write the groups of irrelevant and relevant labels."""
    if threshold:
        codes[0] = 1 if shifts[0] > 0.0 else 3
        codes[1] = 2 if shifts[1] > 0.0 else 3
    else:
        codes[0] = 1
        codes[1] = 1 if shifts[0] == -shifts[1] else 2


cdef inline void _project(
    const double* z,
    const double* center,
    const unsigned char* targets,
    const double[:, ::1] costs,
    Py_ssize_t l,
    bint threshold,
    double width,
    double* t,
    double* shifts,
) noexcept nogil:
    """Write t = center + m / width, and the shifts of both kinds.

    ``t`` has room for 2 l numbers. Rows whose b vanishes have shifts above all t.
    """
    cdef Py_ssize_t j
    cdef double scale = 1.0 / width, d
    cdef double reference = z[l] if threshold else 0.0
    cdef double top[2]
    cdef double lift[2]
    cdef unsigned char side
    top[0] = top[1] = -1e300
    lift[0] = lift[1] = 0.0
    for j in range(l):
        d = z[j] - reference
        d = costs[1, j] - d if targets[j] else costs[0, j] + d
        t[j] = center[j] + scale * d
        if t[j] > top[targets[j]]:
            top[targets[j]] = t[j]
    if not threshold:
        coupled_shifts(t, targets, l, top, lift, False, 0.0, t + l, shifts)
        return
    for side in range(2):
        shifts[side] = kind_shift(t, targets, side, l, top[side], t + l)
        if shifts[side] < 0.0:
            shifts[side] = 0.0


cdef inline void _feasible(
    const double* t,
    const double* shifts,
    const unsigned char* targets,
    Py_ssize_t l,
    bint threshold,
    double* factors,
) noexcept nogil:
    """Write factors of b that repair the rounding errors of large scores.

    With them the sums over both kinds are at most one, and equal without a threshold.
    """
    cdef Py_ssize_t j
    cdef double b
    cdef double sums[2]
    cdef double most[2]
    sums[0] = sums[1] = 0.0
    for j in range(l):
        b = t[j] - shifts[targets[j]]
        if b > 0.0:
            sums[targets[j]] += b
    most[0], most[1] = min(sums[0], 1.0), min(sums[1], 1.0)
    if not threshold:
        most[0] = most[1] = min(most[0], most[1])
    for j in range(2):
        factors[j] = most[j] / sums[j] if sums[j] > 0.0 else 1.0


cdef inline double _size(const double* z, Py_ssize_t k) noexcept nogil:
    """Return max(1, |z|)."""
    cdef Py_ssize_t j
    cdef double largest = 1.0
    for j in range(k):
        largest = fabs(z[j]) if fabs(z[j]) > largest else largest
    return largest


cdef bint _check(
    const double[:, ::1] scores,
    const unsigned char[:, ::1] targets,
    const double[:, ::1] costs,
    const double[::1] weights,
) except -1:
    _same_length(scores.shape[0], weights.shape[0])
    return _check_labels(scores, targets, costs)


cdef bint _check_labels(
    const double[:, ::1] scores,
    const unsigned char[:, ::1] targets,
    const double[:, ::1] costs,
) except -1:
    """Return whether there is a threshold."""
    cdef Py_ssize_t i, j
    _same_length(scores.shape[0], targets.shape[0])
    _same_length(2, costs.shape[0])
    _same_length(targets.shape[1], costs.shape[1])
    if not 0 <= scores.shape[1] - targets.shape[1] <= 1:
        raise ValueError(
            f"{scores.shape[1]} scores a row for {targets.shape[1]} labels."
        )
    for i in range(targets.shape[0]):
        for j in range(targets.shape[1]):
            if targets[i, j] > 1:
                raise ValueError(f"targets must be 0 or 1, got {targets[i, j]}.")
    return scores.shape[1] > targets.shape[1]


cdef int _check_center(
    const double[:, ::1] center, const unsigned char[:, ::1] targets
) except -1:
    _same_length(center.shape[0], targets.shape[0])
    _same_length(center.shape[1], targets.shape[1])
    return 0


cdef int _check_groups(
    const unsigned char[:, ::1] groups, const double[::1] factors, double[:, ::1] v
) except -1:
    _same_length(groups.shape[0], factors.shape[0])
    _same_length(groups.shape[0], v.shape[0])
    if not 0 <= v.shape[1] - groups.shape[1] <= 1:
        raise ValueError(f"{v.shape[1]} scores a row for {groups.shape[1]} labels.")
    return 0


cdef int _same_shape(const double[:, ::1] a, const double[:, ::1] b) except -1:
    if a.shape[0] != b.shape[0] or a.shape[1] != b.shape[1]:
        raise ValueError("arrays have different shapes.")
    return 0


cdef int _same_length(Py_ssize_t a, Py_ssize_t b) except -1:
    if a != b:
        raise ValueError(f"arrays have lengths {a} and {b}.")
    return 0

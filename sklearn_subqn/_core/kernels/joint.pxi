# Loops over rows of losses with several scores per row: included by kernels that define
#
#   Rows                   arrays of a set of rows, checked, with a ``Set``
#   SIDES, ZERO_IS_LEFT    number of sides, and whether zero is one more piece
#   open_row               the row i of a set
#   separable              whether both sides are maxima of their own
#   side, sign, plus, rate of a piece; sign is that of the sum of b it counts in
#   lines                  violations of all pieces, or how they rise along scores
#   worst                  the largest violations of both sides, with room for all
#   project                from m to t = center + m / width, and to the shifts of both
#                          sides for which b = max(0, t - shift) maximizes
#                          <b, m> - width / 2 * ||b - center||² in the set
#   groups                 codes of the groups that pieces of positive b belong to
#
# Each function here is compiled for each of these sets.


cdef inline double rise(const Row* row, const double* dz, Py_ssize_t p) noexcept nogil:
    """Return the change of m_p along dz."""
    cdef double subtracted = dz[minus(row, p)] if minus(row, p) >= 0 else 0.0
    return rate(row, p) * (dz[plus(row, p)] - subtracted)


cdef inline void add(
    const Row* row, double* u, Py_ssize_t p, double amount
) noexcept nogil:
    """Add ``amount`` times the derivative of m_p."""
    cdef Py_ssize_t j = plus(row, p), h = minus(row, p)
    amount *= rate(row, p)
    if j != h:
        u[j] += amount
        if h >= 0:
            u[h] -= amount


cdef inline void clear(double* u, Py_ssize_t k) noexcept nogil:
    cdef Py_ssize_t j
    for j in range(k):
        u[j] = 0.0


cdef inline void largest(const Row* row, const double* m, double* top) noexcept nogil:
    """Write the largest m of each side."""
    cdef Py_ssize_t p
    cdef double first = -1e300
    if SIDES == 1:
        for p in range(row.size):
            first = m[p] if m[p] > first else first
        top[0] = first
    else:
        top[0] = top[1] = first
        for p in range(row.size):
            if m[p] > top[side(row, p)]:
                top[side(row, p)] = m[p]


cdef inline double loss(const Row* row, const double* top) noexcept nogil:
    if SIDES == 1:
        return max(top[0], 0.0)
    if separable(row):
        return max(top[0], 0.0) + max(top[1], 0.0)
    return max(top[0] + top[1], 0.0)


def value(Rows rows, const double[:, ::1] scores, const double[::1] weights):
    """Return the sum of weights times losses."""
    cdef const Set* of = &rows.set
    cdef Row row
    cdef double top[2]
    cdef Sum total = Sum(0.0, 0.0)
    cdef double* m
    cdef Py_ssize_t i
    check_scores(of, scores, None)
    same_length(of.n, weights.shape[0])
    m = room(of, 1, &row)
    with nogil:
        for i in range(of.n):
            open_row(of, i, &row)
            worst(&row, &scores[i, 0], m, top)
            add_to(&total, weights[i] * loss(&row, top))
        free(m)
    return result(&total)


def subgradient(
    Rows rows,
    const double[:, ::1] scores,
    const double[:, ::1] dscores,
    const double[::1] weights,
    double tolerance,
    double[:, ::1] out,
):
    """Write the subgradient of those largest violations which rise fastest.

    Without ``dscores`` they rise all alike. Of several that of the first is taken, zero
    where that is one.
    """
    cdef const Set* of = &rows.set
    cdef Row row
    cdef Py_ssize_t best[2]
    cdef double top[2]
    cdef double fastest[2]
    cdef double tie, total, slope
    cdef double* m
    cdef bint counts[2]
    cdef bint directed = dscores is not None
    cdef Py_ssize_t i, p
    cdef int s
    check_scores(of, scores, dscores)
    check_scores(of, out, None)
    same_length(of.n, weights.shape[0])
    m = room(of, 1, &row)
    with nogil:
        for i in range(of.n):
            open_row(of, i, &row)
            lines(&row, &scores[i, 0], False, m)
            largest(&row, m, top)
            tie = tie_of(&scores[i, 0], of.k, tolerance)
            clear(&out[i, 0], of.k)
            for s in range(SIDES):
                total = top[s] if separable(&row) else top[0] + top[1]
                # Where zero is as large, only what rises is larger than it.
                counts[s] = total > tie or (directed and total >= -tie)
                best[s], fastest[s] = -1, 0.0
            if not counts[0] and (SIDES == 1 or not counts[1]):
                continue
            for p in range(row.size):
                s = side(&row, p)
                if not counts[s] or m[p] < top[s] - tie:
                    continue
                slope = rise(&row, &dscores[i, 0], p) if directed else 0.0
                if best[s] < 0 or slope > fastest[s]:
                    best[s], fastest[s] = p, slope
                if SIDES == 1 and not directed:
                    break
            for s in range(SIDES):
                if not counts[s]:
                    continue
                total, slope = top[s], fastest[s]
                if SIDES == 2 and not separable(&row):
                    total, slope = top[0] + top[1], fastest[0] + fastest[1]
                if total > tie or slope > 0.0:
                    add(&row, &out[i, 0], best[s], weights[i])
        free(m)


cdef inline bint loss_ties(const Row* row, const double* top, double tie) noexcept nogil:
    """Whether a part of the loss is zero within ``tie``."""
    if SIDES == 1:
        return fabs(top[0]) <= tie
    if separable(row):
        return fabs(top[0]) <= tie or fabs(top[1]) <= tie
    return fabs(top[0] + top[1]) <= tie


def kinks(
    Rows rows,
    const double[:, ::1] scores,
    double tolerance,
    unsigned char[::1] out,
):
    """Write 1 for rows in which the loss is not differentiable."""
    cdef const Set* of = &rows.set
    cdef Row row
    cdef Py_ssize_t ties[2]
    cdef double top[2]
    cdef double tie
    cdef double* m
    cdef Py_ssize_t i, p
    cdef int s
    check_scores(of, scores, None)
    same_length(of.n, out.shape[0])
    m = room(of, 1, &row)
    with nogil:
        for i in range(of.n):
            open_row(of, i, &row)
            lines(&row, &scores[i, 0], False, m)
            largest(&row, m, top)
            tie = tie_of(&scores[i, 0], of.k, tolerance)
            ties[0] = ties[1] = 0
            if SIDES == 1:
                for p in range(row.size):
                    ties[0] += m[p] >= top[0] - tie
            else:
                for p in range(row.size):
                    ties[side(&row, p)] += m[p] >= top[side(&row, p)] - tie
            out[i] = ZERO_IS_LEFT and loss_ties(&row, top, tie)
            for s in range(SIDES):
                if (top[s] if separable(&row) else top[0] + top[1]) >= -tie:
                    out[i] |= ties[s] > 1
        free(m)


def restrict(
    Rows rows,
    const double[:, ::1] scores,
    const double[:, ::1] dscores,
    const double[::1] weights,
    double tolerance,
    Py_ssize_t first,
    double[::1] kinks,
    double[::1] jumps,
):
    """Write kinks and slope jumps along scores + eta * dscores, from row ``first`` on.

    Stops at the row whose kinks might not fit, of which there are at most two more than
    it has pieces. Maxima of inseparable sides are segmented by themselves, and then
    added.

    Returns
    -------
    row : int
        The first row left.
    count : int
        Number of kinks written.
    slope : float
        Sum of the slopes at eta = 0 of the rows done.
    """
    cdef const Set* of = &rows.set
    cdef Row row
    cdef Py_ssize_t size[2]
    cdef double top[2]
    cdef double tie, slope = 0.0
    cdef Py_ssize_t i = first, most = of.most + 2, count = 0, p
    cdef double* m
    cdef double* d
    cdef double* line
    cdef int s
    check_scores(of, scores, dscores)
    same_length(of.n, weights.shape[0])
    same_length(kinks.shape[0], jumps.shape[0])
    if kinks.shape[0] < most:
        raise ValueError(f"room for {kinks.shape[0]} kinks where {most} may come.")
    # Rises, heights and intersections of the lines of both sides.
    m = room(of, 2 + 3 * SIDES, &row)
    d = m + most
    with nogil:
        while i < of.n and count + most <= kinks.shape[0]:
            open_row(of, i, &row)
            lines(&row, &scores[i, 0], False, m)
            lines(&row, &dscores[i, 0], True, d)
            largest(&row, m, top)
            tie = tie_of(&scores[i, 0], of.k, tolerance)
            for s in range(SIDES):
                line = m + (2 + 3 * s) * most
                size[s] = segment(&row, s, m, d, top[s], tie, most, line)
                if separable(&row):
                    slope += weights[i] * line[0]
                    for p in range(1, size[s]):
                        kinks[count] = line[2 * most + p]
                        jumps[count] = weights[i] * (line[p] - line[p - 1])
                        count += 1
            if not separable(&row) and size[0] and size[1]:
                slope += weights[i] * positive_part(
                    m + 2 * most, size[0], m + 5 * most, size[1], most,
                    top[0] + top[1], tie, weights[i], &kinks[0], &jumps[0], &count,
                )
            i += 1
        free(m)
    return i, count, slope


cdef inline Py_ssize_t segment(
    const Row* row,
    int s,
    const double* m,
    const double* d,
    double top,
    double tie,
    Py_ssize_t stride,
    double* line,
) noexcept nogil:
    """Segment the maximum of the lines of one side; return their number.

    Zero is one more line where sides are separable. Lines that rise no faster than the
    largest at eta = 0 are dropped before they are sorted.
    """
    cdef Py_ssize_t p, size = 0
    cdef double fastest = 0.0
    cdef double* height = line + stride
    if separable(row):
        size = top <= tie
        top = max(top, 0.0)
    for p in range(row.size):
        if side(row, p) == s and m[p] >= top - tie:
            if size == 0 or d[p] > fastest:
                fastest, size = d[p], 1
    if size == 0:
        return 0
    line[0], height[0] = fastest, top
    if separable(row) and fastest < 0.0:
        line[1] = height[1] = 0.0
        size = 2
    for p in range(row.size):
        if side(row, p) == s and m[p] < top - tie and d[p] > fastest:
            line[size], height[size] = d[p], m[p]
            size += 1
    return upper_envelope(line, height, line + 2 * stride, size)


cdef inline void feasible(
    const Row* row, const double* t, const double* shift, double* factors
) noexcept nogil:
    """Write factors of b that repair the rounding errors of large scores.

    With them the sums over both sides are at most one, and equal where sides are not
    separable.
    """
    cdef Py_ssize_t p
    cdef double sums[2]
    cdef int s
    sums[0] = sums[1] = 0.0
    for p in range(row.size):
        s = side(row, p)
        if t[p] > shift[s]:
            sums[s] += t[p] - shift[s]
    for s in range(SIDES):
        factors[s] = min(sums[s], 1.0)
        if not separable(row):
            factors[s] = min(factors[s], sums[1 - s])
        factors[s] = factors[s] / sums[s] if sums[s] > 0.0 else 1.0


def envelope(
    Rows rows,
    const double[:, ::1] scores,
    const double[::1] center,
    const double[::1] weights,
    double width,
    double[:, ::1] out,
):
    """Return the value of the Moreau envelope, and write its gradient.

    The value is the sum of weights_i (<b_i, m_i> - width / 2 ||b_i - center_i||²).
    """
    cdef const Set* of = &rows.set
    cdef Row row
    cdef double shift[2]
    cdef double factors[2]
    cdef double b, part
    cdef Sum total = Sum(0.0, 0.0)
    cdef double* t
    cdef const double* c
    cdef Py_ssize_t i, p
    cdef int s
    check_scores(of, scores, out)
    same_length(of.n, weights.shape[0])
    same_length(of.n_pieces, center.shape[0])
    cdef const double* centers = &center[0] if of.n_pieces else NULL
    t = room(of, 2, &row)
    with nogil:
        for i in range(of.n):
            open_row(of, i, &row)
            c = centers + row.start
            lines(&row, &scores[i, 0], False, t)
            part = project(&row, c, width, t, t + of.most + 1, shift)
            part = -0.5 * (max(0.0, part - shift[0]) - part) ** 2 if part >= 0.0 else 0.0
            feasible(&row, t, shift, factors)
            clear(&out[i, 0], of.k)
            for p in range(row.size):
                s = side(&row, p)
                b = 0.0
                if t[p] > shift[s]:
                    b = (t[p] - shift[s]) * factors[s]
                    part += b * (t[p] - c[p])
                    add(&row, &out[i, 0], p, weights[i] * b)
                part -= 0.5 * (b - c[p]) * (b - c[p])
            add_to(&total, weights[i] * width * part)
        free(t)
    return result(&total)


def envelope_slope(
    Rows rows,
    const double[:, ::1] scores,
    const double[:, ::1] dscores,
    const double[::1] center,
    const double[::1] weights,
    double width,
    double step,
):
    """Return slope and curvature of the envelope along dscores at ``step``."""
    cdef const Set* of = &rows.set
    cdef Row row
    cdef Py_ssize_t size[3]
    cdef double sums[3]
    cdef double shift[2]
    cdef unsigned char codes[2]
    cdef double rest, d, square, slope = 0.0, curvature = 0.0
    cdef double* t
    cdef double* z
    cdef Py_ssize_t i, j, p
    cdef int s, g
    check_scores(of, scores, dscores)
    same_length(of.n, weights.shape[0])
    same_length(of.n_pieces, center.shape[0])
    cdef const double* centers = &center[0] if of.n_pieces else NULL
    t = room(of, 3, &row)
    z = t + 2 * of.most + 2
    with nogil:
        for i in range(of.n):
            for j in range(of.k):
                z[j] = scores[i, j] + step * dscores[i, j]
            open_row(of, i, &row)
            lines(&row, z, False, t)
            rest = project(&row, centers + row.start, width, t, t + of.most + 1, shift)
            groups(&row, shift, rest, codes)
            for g in range(SIDES):
                size[g] = 0
                sums[g] = 0.0
            square = 0.0
            for p in range(row.size):
                s = side(&row, p)
                if t[p] > shift[s]:
                    d = rise(&row, &dscores[i, 0], p)
                    slope += weights[i] * (t[p] - shift[s]) * d
                    square += d * d
                    g = slot(codes[s])
                    sums[g] += sign(&row, p) * d
                    size[g] += 1
            for g in range(SIDES):
                if size[g]:
                    square -= sums[g] * sums[g] / (size[g] + (codes[0] == 4))
            curvature += weights[i] * square
        free(t)
    return slope, curvature / width


def support(
    Rows rows,
    const double[:, ::1] scores,
    const double[::1] center,
    const double[::1] weights,
    double width,
    double edge,
    unsigned char[::1] out,
):
    """Write the groups of pieces with positive b, up to ``edge``: 0 for none.

    The second derivatives Dᵀ (I - sum_g c_g c_gᵀ) D, D the derivatives of m, center the
    rises of group 1 and those of group 2, times their signs; those of group 3 they leave
    as they are, and group 4 has one more entry of rise zero.
    """
    cdef const Set* of = &rows.set
    cdef Row row
    cdef Py_ssize_t size[2]
    cdef double shift[2]
    cdef unsigned char codes[2]
    cdef unsigned char inside
    cdef unsigned char* mine
    cdef double rest
    cdef double* t
    cdef Py_ssize_t i, p
    cdef int s
    check_scores(of, scores, None)
    same_length(of.n, weights.shape[0])
    same_length(of.n_pieces, center.shape[0])
    cdef const double* centers = &center[0] if of.n_pieces else NULL
    same_length(of.n_pieces, out.shape[0])
    cdef unsigned char* codes_of_all = &out[0] if of.n_pieces else NULL
    t = room(of, 2, &row)
    with nogil:
        for i in range(of.n):
            open_row(of, i, &row)
            lines(&row, &scores[i, 0], False, t)
            rest = project(&row, centers + row.start, width, t, t + of.most + 1, shift)
            groups(&row, shift, rest + edge, codes)
            if weights[i] == 0.0:
                codes[0] = codes[1] = 0
            size[0] = size[1] = 0
            mine = codes_of_all + row.start
            for p in range(row.size):
                s = side(&row, p)
                inside = t[p] >= shift[s] - edge
                mine[p] = codes[s] * inside
                size[s] += inside
            if SIDES == 2 and codes[0] == codes[1]:
                size[0] = size[1] = size[0] + size[1]
            # Alone with a sum that is fixed, b cannot move.
            for s in range(SIDES):
                if size[s] == 1 and codes[s] < 3:
                    for p in range(row.size):
                        if side(&row, p) == s:
                            mine[p] = 0
        free(t)


cdef inline int slot(unsigned char code) noexcept nogil:
    """Return the place of a group among those of a row."""
    return 0 if SIDES == 1 else code - 1


cdef inline Py_ssize_t pieces(
    const Row* row, const unsigned char* codes, Py_ssize_t* active
) noexcept nogil:
    """Write which pieces of a row have a group; return their number."""
    cdef Py_ssize_t p = 0, n_active = 0
    cdef unsigned long long eight
    while p + 8 <= row.size:
        memcpy(&eight, codes + p, 8)
        if eight:
            for p in range(p, p + 8):
                active[n_active] = p
                n_active += codes[p] > 0
            p += 1
        else:
            p += 8
    while p < row.size:
        active[n_active] = p
        n_active += codes[p] > 0
        p += 1
    return n_active


def apply_curvature(
    Rows rows,
    const unsigned char[::1] support,
    const double[::1] factors,
    double[:, ::1] v,
):
    """Replace the rows of v by their products with the second derivatives."""
    cdef const Set* of = &rows.set
    cdef Row row
    cdef Py_ssize_t size[3]
    cdef double mean[3]
    cdef const unsigned char* mine
    cdef double* d
    cdef Py_ssize_t i, a, p, n_active
    cdef int g
    check_scores(of, v, None)
    same_length(of.n, factors.shape[0])
    same_length(of.n_pieces, support.shape[0])
    cdef const unsigned char* codes_of_all = &support[0] if of.n_pieces else NULL
    d = room(of, 1, &row)
    with nogil:
        for i in range(of.n):
            open_row(of, i, &row)
            mine = codes_of_all + row.start
            n_active = pieces(&row, mine, row.active)
            size[0] = size[1] = size[2] = 0
            mean[0] = mean[1] = mean[2] = 0.0
            for a in range(n_active):
                p = row.active[a]
                d[a] = rise(&row, &v[i, 0], p)
                g = slot(mine[p])
                mean[g] += sign(&row, p) * d[a]
                size[g] += 1
            for g in range(SIDES):
                if size[g]:
                    mean[g] /= size[g] + (mine[row.active[0]] == 4)
            # Nothing is subtracted in the group that is not centered.
            mean[2] = 0.0
            clear(&v[i, 0], of.k)
            for a in range(n_active):
                p = row.active[a]
                d[a] -= sign(&row, p) * mean[slot(mine[p])]
                add(&row, &v[i, 0], p, factors[i] * d[a])
        free(d)


def gram(
    Rows rows,
    const double[:, ::1] X,
    const unsigned char[::1] support,
    const double[::1] factors,
    double[:, :, :, ::1] out,
):
    """Add sum_i M_i (x) x_i x_iᵀ to ``out`` of shape (k, k, d, d), for blocks j <= l.

    M_i is the k x k matrix of second derivatives of row i.
    """
    cdef const Set* of = &rows.set
    cdef Row row
    cdef Py_ssize_t i, j, h, f, used, n = of.n, k = of.k, d = X.shape[1]
    cdef double c
    cdef double* matrix
    cdef double* outer
    cdef double* block
    cdef Py_ssize_t* labels
    same_length(n, X.shape[0])
    same_length(n, factors.shape[0])
    same_length(of.n_pieces, support.shape[0])
    cdef const unsigned char* codes_of_all = &support[0] if of.n_pieces else NULL
    if out.shape[0] != k or out.shape[1] != k or out.shape[2] != d or out.shape[3] != d:
        raise ValueError("output has the wrong shape.")
    matrix = room(of, k + 4, &row)
    try:
        outer = <double*> allocate(d * d * sizeof(double) + k * sizeof(Py_ssize_t))
    except MemoryError:
        free(matrix)
        raise
    labels = <Py_ssize_t*> (outer + d * d)
    with nogil:
        clear(matrix + k * k, 3 * k)
        for i in range(n):
            open_row(of, i, &row)
            used = second_derivatives(
                &row, codes_of_all + row.start, k, True, matrix + k * k, labels, matrix
            )
            if used == 0:
                continue
            for j in range(d):
                for h in range(d):
                    outer[j * d + h] = X[i, j] * X[i, h]
            for j in range(used):
                for h in range(j, used):
                    c = factors[i] * matrix[labels[j] * k + labels[h]]
                    if c != 0.0:
                        block = &out[labels[j], labels[h], 0, 0]
                        for f in range(d * d):
                            block[f] += c * outer[f]
        free(outer)
        free(matrix)


def curvature_diagonal(
    Rows rows,
    const unsigned char[::1] support,
    const double[::1] factors,
    double[:, ::1] out,
):
    """Write the diagonals of the matrices of second derivatives."""
    cdef const Set* of = &rows.set
    cdef Row row
    cdef double* sums
    cdef Py_ssize_t* labels
    cdef Py_ssize_t i, j
    check_scores(of, out, None)
    same_length(of.n, factors.shape[0])
    same_length(of.n_pieces, support.shape[0])
    cdef const unsigned char* codes_of_all = &support[0] if of.n_pieces else NULL
    sums = room(of, 4, &row)
    labels = <Py_ssize_t*> (sums + 3 * of.k)
    with nogil:
        clear(sums, 3 * of.k)
        for i in range(of.n):
            clear(&out[i, 0], of.k)
            open_row(of, i, &row)
            second_derivatives(
                &row, codes_of_all + row.start, of.k, False, sums, labels, &out[i, 0]
            )
            for j in range(of.k):
                out[i, j] *= factors[i]
        free(sums)


cdef inline Py_ssize_t second_derivatives(
    const Row* row,
    const unsigned char* support,
    Py_ssize_t k,
    bint full,
    double* sums,
    Py_ssize_t* labels,
    double* out,
) noexcept nogil:
    """Write the matrix of second derivatives of a row, or add up its diagonal.

    That is without the row's factor. ``sums`` has 3 k numbers, zero before and after. Of
    a full matrix, of shape (k, k), only the entries of the labels are written that it is
    not zero for: returns their number, and writes which, by ascending numbers.
    """
    cdef Py_ssize_t size[3]
    cdef Py_ssize_t n_active, p, j, h, a, b, used = 0, stride = k if full else 0
    cdef double r, c
    cdef double* mark = sums + 2 * k
    cdef double* mine
    cdef int g, end
    n_active = pieces(row, support, row.active)
    size[0] = size[1] = size[2] = 0
    for a in range(n_active):
        p = row.active[a]
        size[slot(support[p])] += 1
        for end in range(2):
            j = minus(row, p) if end else plus(row, p)
            if j < 0 or mark[j] != 0.0:
                continue
            mark[j] = 1.0
            b = used
            while b > 0 and labels[b - 1] > j:
                labels[b] = labels[b - 1]
                b -= 1
            labels[b] = j
            used += 1
    for a in range(used if full else 0):
        for b in range(used):
            out[labels[a] * k + labels[b]] = 0.0
    for a in range(n_active):
        p = row.active[a]
        j, h = plus(row, p), minus(row, p)
        if j == h:
            continue
        r = rate(row, p)
        g = slot(support[p])
        c = sign(row, p) * r if g < SIDES else 0.0
        mine = sums + (g if g < SIDES else 0) * k
        mine[j] += c
        out[j * stride + j] += r * r
        if h >= 0:
            mine[h] -= c
            out[h * stride + h] += r * r
            if full:
                out[j * k + h] -= r * r
                out[h * k + j] -= r * r
    for g in range(SIDES):
        if size[g] == 0:
            continue
        c = 1.0 / (size[g] + (support[row.active[0]] == 4))
        mine = sums + g * k
        for a in range(used):
            j = labels[a]
            if full:
                for b in range(used):
                    h = labels[b]
                    out[j * k + h] -= c * mine[j] * mine[h]
            else:
                out[j] -= c * mine[j] * mine[j]
    for a in range(used):
        j = labels[a]
        sums[j] = sums[k + j] = mark[j] = 0.0
    return used

# Losses with several scores per row, their subgradients and restrictions to lines.
# Kernels that include this file define
#
#   Rows                   checked arrays of a set of rows, as a ``Set``
#   SIDES, ZERO_IS_LEFT    number of sides, and whether zero is an additional piece
#   open_row               access to row i of a set
#   separable              whether the loss is a sum of one maximum for each side
#   side, sign, plus, minus, rate
#                          properties of a piece; sign is its sign in the sum of b
#   lines                  violations of all pieces, or their changes along scores
#   worst                  the largest violation of each side, with a workspace
#
# The functions here are compiled for each set of rows.


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
    """Write the subgradient of the largest violations that rise fastest.

    Without ``dscores`` all violations rise equally. Among several, the first one is
    used, or zero where zero is among them.
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
                # If the largest piece is zero, the loss increases only if this piece
                # increases.
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
    """Whether a maximum of the loss equals zero up to ``tie``."""
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
    """Write 1 for rows where the loss is not differentiable."""
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
    """Write kinks and slope jumps along scores + eta * dscores, from row ``first``.

    Stops at the first row whose kinks might not fit; a row has at most two more kinks
    than pieces. The maxima of inseparable sides are segmented separately, and then
    added.

    Returns
    -------
    row : int
        The first row not processed.
    count : int
        Number of kinks written.
    slope : float
        Sum of the slopes at eta = 0 of the processed rows.
    """
    cdef const Set* of = &rows.set
    cdef Row row
    cdef Py_ssize_t size[2]
    cdef double top[2]
    cdef double tie, slope = 0.0
    cdef Py_ssize_t i = first, max_kinks = of.most + 2, count = 0, p
    cdef double* m
    cdef double* d
    cdef double* line
    cdef int s
    check_scores(of, scores, dscores)
    same_length(of.n, weights.shape[0])
    same_length(kinks.shape[0], jumps.shape[0])
    if kinks.shape[0] < max_kinks:
        raise ValueError(f"room for {kinks.shape[0]} of up to {max_kinks} kinks.")
    # Workspace: violations and their changes of all pieces, then slopes, heights and
    # intersections of the lines of each side.
    m = room(of, 2 + 3 * SIDES, &row)
    d = m + max_kinks
    with nogil:
        while i < of.n and count + max_kinks <= kinks.shape[0]:
            open_row(of, i, &row)
            lines(&row, &scores[i, 0], False, m)
            lines(&row, &dscores[i, 0], True, d)
            largest(&row, m, top)
            tie = tie_of(&scores[i, 0], of.k, tolerance)
            for s in range(SIDES):
                line = m + (2 + 3 * s) * max_kinks
                size[s] = segment(&row, s, m, d, top[s], tie, max_kinks, line)
                if separable(&row):
                    slope += weights[i] * line[0]
                    for p in range(1, size[s]):
                        kinks[count] = line[2 * max_kinks + p]
                        jumps[count] = weights[i] * (line[p] - line[p - 1])
                        count += 1
            if not separable(&row) and size[0] and size[1]:
                slope += weights[i] * positive_part(
                    m + 2 * max_kinks, size[0], m + 5 * max_kinks, size[1],
                    max_kinks,
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
    """Find the segments of the maximum of one side's lines; return their number.

    Zero is an additional line where sides are separable. Two kinds of lines are dropped
    before sorting: lines that rise no faster than the maximum at eta = 0, and lines
    that are below the point where this line meets the fastest line. The latter are
    below one of the two lines everywhere.
    """
    cdef Py_ssize_t p, kept = 0, last = 0, size = 0
    cdef double at, fastest = 0.0
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
        last, size = 1, 2
    for p in range(row.size):
        if side(row, p) == s and m[p] < top - tie and d[p] > fastest:
            line[size], height[size] = d[p], m[p]
            if line[size] > line[last] or (
                line[size] == line[last] and height[size] > height[last]
            ):
                last = size
            size += 1
    if last:
        at = (height[0] - height[last]) / (line[last] - line[0])
        top = height[0] + at * line[0]
        for p in range(size):
            if p == 0 or p == last or height[p] + at * line[p] > top:
                line[kept], height[kept] = line[p], height[p]
                kept += 1
        size = kept
    return upper_envelope(line, height, line + 2 * stride, size)

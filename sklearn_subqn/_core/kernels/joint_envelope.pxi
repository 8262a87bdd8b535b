# Moreau envelopes of losses with several scores per row. Kernels include this file
# after ``joint.pxi``, and also define
#
#   project                computes t = center + m / width from m, and the shift of each
#                          side for which b = max(0, t - shift) maximizes
#                          <b, m> - width / 2 * ||b - center||² over the dual set
#   groups                 group codes of pieces with positive b, see ``support``


cdef inline void feasible(
    const Row* row, const double* t, const double* shift, double* factors
) noexcept nogil:
    """Write factors that make b feasible in spite of rounding errors of large scores.

    After multiplication by the factors, the sum of b over each side is at most one, and
    both sums are equal where sides are not separable.
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
    """Return first and second derivative of the envelope along dscores at ``step``."""
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


cdef inline int slot(unsigned char code) noexcept nogil:
    """Return the index of a group among the groups of a row."""
    return 0 if SIDES == 1 else code - 1

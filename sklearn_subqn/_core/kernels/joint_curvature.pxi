# Hessians of the Moreau envelopes of losses with several scores per row; included after
# ``joint_envelope.pxi``.


def support(
    Rows rows,
    const double[:, ::1] scores,
    const double[::1] center,
    const double[::1] weights,
    double width,
    double edge,
    unsigned char[::1] out,
):
    """Write the group of each piece with positive b, up to ``edge``; 0 for all others.

    The Hessian is Dᵀ (I - sum_g c_g c_gᵀ) D, where D are the derivatives of m. It
    subtracts the mean of the signed rises within group 1 and within group 2, but not
    within group 3. Group 4 is centered with one additional entry of rise zero.
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
            # A single b with a fixed sum cannot change.
            for s in range(SIDES):
                if size[s] == 1 and codes[s] < 3:
                    for p in range(row.size):
                        if side(&row, p) == s:
                            mine[p] = 0
        free(t)


cdef inline Py_ssize_t pieces(
    const Row* row, const unsigned char* codes, Py_ssize_t* active
) noexcept nogil:
    """Write the pieces of a row that have a group; return their number."""
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
    """Replace each row of v by its product with the row's Hessian."""
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
            # Group 3 is not centered.
            mean[2] = 0.0
            clear(&v[i, 0], of.k)
            for a in range(n_active):
                p = row.active[a]
                d[a] -= sign(&row, p) * mean[slot(mine[p])]
                add(&row, &v[i, 0], p, factors[i] * d[a])
        free(d)


def entries(
    Rows rows,
    const unsigned char[::1] support,
    const double[::1] factors,
    Py_ssize_t first,
    Py_ssize_t[::1] row_of,
    Py_ssize_t[::1] pairs,
    double[::1] values,
):
    """Write the entries (j, h), j <= h, of the rows' Hessians, as j * k + h.

    Stops at the first row whose entries might not fit. Returns the first row not
    processed, and the number of entries written.
    """
    cdef const Set* of = &rows.set
    cdef Row row
    cdef Py_ssize_t i = first, a, b, place, used, n = of.n, k = of.k
    cdef Py_ssize_t count = 0, max_entries = k * (k + 1) // 2, size = values.shape[0]
    cdef double* matrix
    cdef double* sums
    cdef Py_ssize_t* labels
    same_length(n, factors.shape[0])
    same_length(of.n_pieces, support.shape[0])
    same_length(size, row_of.shape[0], pairs.shape[0])
    if size < max_entries:
        raise ValueError(f"room for {size} entries where {max_entries} may come.")
    cdef const unsigned char* codes_of_all = &support[0] if of.n_pieces else NULL
    matrix = room(of, k + 4, &row)
    sums = matrix + k * k
    labels = <Py_ssize_t*> (sums + 3 * k)
    with nogil:
        clear(sums, 3 * k)
        while i < n and count + max_entries <= size:
            open_row(of, i, &row)
            used = second_derivatives(
                &row, codes_of_all + row.start, k, True, sums, labels, matrix
            )
            for a in range(used):
                for b in range(a, used):
                    place = labels[a] * k + labels[b]
                    if matrix[place] != 0.0:
                        row_of[count], pairs[count] = i, place
                        values[count] = factors[i] * matrix[place]
                        count += 1
            i += 1
        free(matrix)
    return i, count


def curvature_diagonal(
    Rows rows,
    const unsigned char[::1] support,
    const double[::1] factors,
    double[:, ::1] out,
):
    """Write the diagonals of the rows' Hessians."""
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
    """Write the Hessian of a row, or add its diagonal to ``out``.

    The row's factor is left out. ``sums`` is a workspace of 3 k zeros, which are zero
    again afterwards. Of a full Hessian of shape (k, k), only rows and columns that may
    be non-zero are written: their indices are written to ``labels``, ascending, and
    their number is returned.
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

"""Joint multiclass hinge and its smooth envelope: each function is one trip over rows.

Scores z and duals are contiguous of shape (n, k) and float64, targets y of shape (n,)
are labels 0, ..., k - 1. The loss of a row is the maximum over labels j of

    m_j = offsets[y, j] + rates[y, j] * (z_j - z_y),

where offsets[y, y] = 0. The envelope around a center c of width s is the maximum over b
in the unit simplex of <b, m> - s / 2 ||b - c||², attained at the projection of c + m / s
onto the simplex.
"""

from .rows cimport allocate, simplex_shift, upper_envelope
from .standard cimport fabs, free


def value(
    const double[:, ::1] scores,
    const Py_ssize_t[::1] targets,
    const double[:, ::1] offsets,
    const double[:, ::1] rates,
    const double[::1] weights,
):
    """Return sum_i weights_i max_j m_ij."""
    cdef Py_ssize_t i, j, y, n = scores.shape[0], k = scores.shape[1]
    cdef double m, largest, total = 0.0
    _check(scores, targets, offsets, rates, weights)
    with nogil:
        for i in range(n):
            y = targets[i]
            largest = 0.0
            for j in range(k):
                m = offsets[y, j] + rates[y, j] * (scores[i, j] - scores[i, y])
                largest = m if m > largest else largest
            total += weights[i] * largest
    return total


def subgradient(
    const double[:, ::1] scores,
    const Py_ssize_t[::1] targets,
    const double[:, ::1] offsets,
    const double[:, ::1] rates,
    const double[::1] weights,
    double tolerance,
    double[:, ::1] out,
):
    """Write the subgradient of the first maximum, of y where that is one."""
    cdef Py_ssize_t i, j, y, n = scores.shape[0], k = scores.shape[1]
    cdef double largest, tie
    cdef double* m
    _check(scores, targets, offsets, rates, weights)
    _same_shape(scores, out)
    m = <double*> allocate(k * sizeof(double))
    with nogil:
        for i in range(n):
            y = targets[i]
            largest = _violations(
                &scores[i, 0], &offsets[y, 0], &rates[y, 0], k, y, m
            )
            tie = largest - tolerance * _size(&scores[i, 0], k)
            for j in range(k):
                out[i, j] = 0.0
            if m[y] >= tie:
                continue
            for j in range(k):
                if m[j] >= tie:
                    out[i, j] = weights[i] * rates[y, j]
                    out[i, y] = -out[i, j]
                    break
        free(m)


def count_ties(
    const double[:, ::1] scores,
    const Py_ssize_t[::1] targets,
    const double[:, ::1] offsets,
    const double[:, ::1] rates,
    double tolerance,
    Py_ssize_t[::1] out,
):
    """Write the number of labels that attain the maximum of each row."""
    cdef Py_ssize_t i, j, y, n = scores.shape[0], k = scores.shape[1]
    cdef double tie
    cdef double* m
    _check_labels(scores, targets, offsets, rates)
    _same_length(targets.shape[0], out.shape[0])
    m = <double*> allocate(k * sizeof(double))
    with nogil:
        for i in range(n):
            y = targets[i]
            tie = _violations(&scores[i, 0], &offsets[y, 0], &rates[y, 0], k, y, m)
            tie -= tolerance * _size(&scores[i, 0], k)
            out[i] = 0
            for j in range(k):
                out[i] += m[j] >= tie
        free(m)


def steepest(
    const double[:, ::1] scores,
    const double[:, ::1] dscores,
    const Py_ssize_t[::1] targets,
    const double[:, ::1] offsets,
    const double[:, ::1] rates,
    const double[::1] weights,
    double tolerance,
    double[:, ::1] out,
):
    """Write the subgradient of that maximum which grows fastest along dscores."""
    cdef Py_ssize_t i, j, y, best, n = scores.shape[0], k = scores.shape[1]
    cdef double tie, slope, largest
    cdef double* m
    _check(scores, targets, offsets, rates, weights)
    _same_shape(scores, dscores)
    _same_shape(scores, out)
    m = <double*> allocate(k * sizeof(double))
    with nogil:
        for i in range(n):
            y = targets[i]
            tie = _violations(&scores[i, 0], &offsets[y, 0], &rates[y, 0], k, y, m)
            tie -= tolerance * _size(&scores[i, 0], k)
            best = -1
            largest = 0.0
            for j in range(k):
                out[i, j] = 0.0
                if m[j] >= tie:
                    slope = rates[y, j] * (dscores[i, j] - dscores[i, y])
                    if best < 0 or slope > largest or (slope == largest and j == y):
                        best = j
                        largest = slope
            if best != y:
                out[i, best] = weights[i] * rates[y, best]
                out[i, y] = -out[i, best]
        free(m)


def restrict(
    const double[:, ::1] scores,
    const double[:, ::1] dscores,
    const Py_ssize_t[::1] targets,
    const double[:, ::1] offsets,
    const double[:, ::1] rates,
    const double[::1] weights,
    double tolerance,
    Py_ssize_t first,
    double[::1] kinks,
    double[::1] jumps,
):
    """Write kinks and slope jumps along scores + eta * dscores, from row ``first`` on.

    Stops at the row whose kinks might not fit, of which there are less than k.

    Returns
    -------
    row : int
        The first row left.
    count : int
        Number of kinks written.
    slope : float
        Sum of the slopes at eta = 0 of the rows done.
    """
    cdef Py_ssize_t i = first, j, y, active, size, n = scores.shape[0]
    cdef Py_ssize_t k = scores.shape[1], count = 0, new
    cdef double tie, a, slope = 0.0
    cdef double* m
    cdef double* rise
    cdef double* height
    cdef double* at
    _check(scores, targets, offsets, rates, weights)
    _same_shape(scores, dscores)
    _same_length(kinks.shape[0], jumps.shape[0])
    if kinks.shape[0] < k:
        raise ValueError(f"room for {kinks.shape[0]} kinks where {k} may come.")
    m = <double*> allocate(4 * k * sizeof(double))
    rise, height, at = m + k, m + 2 * k, m + 3 * k
    with nogil:
        while i < n and count + k <= kinks.shape[0]:
            y = targets[i]
            tie = _violations(&scores[i, 0], &offsets[y, 0], &rates[y, 0], k, y, m)
            height[0] = tie
            tie -= tolerance * _size(&scores[i, 0], k)
            active = -1
            for j in range(k):
                if m[j] >= tie:
                    a = rates[y, j] * (dscores[i, j] - dscores[i, y])
                    if active < 0 or a > rise[0]:
                        active = j
                        rise[0] = a
            size = 1
            for j in range(k):
                a = rates[y, j] * (dscores[i, j] - dscores[i, y])
                if a > rise[0] and m[j] < tie:
                    rise[size] = a
                    height[size] = m[j]
                    size += 1
            slope += weights[i] * rise[0]
            new = upper_envelope(rise, height, at, size)
            for j in range(1, new):
                kinks[count] = at[j]
                jumps[count] = weights[i] * (rise[j] - rise[j - 1])
                count += 1
            i += 1
        free(m)
    return i, count, slope


def conjugate(
    const double[:, ::1] dual,
    const Py_ssize_t[::1] targets,
    const double[:, ::1] ratios,
):
    """Return -sum_ij dual_ij ratios[y_i, j] for ratios = offsets / rates."""
    cdef Py_ssize_t i, j, y, n = dual.shape[0], k = dual.shape[1]
    cdef double total = 0.0, row
    _check_labels(dual, targets, ratios, ratios)
    with nogil:
        for i in range(n):
            y = targets[i]
            row = 0.0
            for j in range(k):
                row += dual[i, j] * ratios[y, j]
            total -= row
    return total


def envelope_value(
    const double[:, ::1] scores,
    const double[:, ::1] center,
    const Py_ssize_t[::1] targets,
    const double[:, ::1] offsets,
    const double[:, ::1] rates,
    const double[::1] weights,
    double width,
):
    """Return sum_i weights_i (<b_i, m_i> - width / 2 ||b_i - center_i||²)."""
    cdef Py_ssize_t i, j, y, n = scores.shape[0], k = scores.shape[1]
    cdef double b, row, total = 0.0, shift
    cdef double* t
    _check(scores, targets, offsets, rates, weights)
    _same_shape(scores, center)
    t = <double*> allocate(2 * k * sizeof(double))
    with nogil:
        for i in range(n):
            y = targets[i]
            shift = _shifted(
                &scores[i, 0], &center[i, 0], &offsets[y, 0], &rates[y, 0],
                k, y, width, t,
            )
            row = 0.0
            for j in range(k):
                b = t[j] - shift if t[j] > shift else 0.0
                # <b, m> with m = width * (t - center).
                row += b * (t[j] - center[i, j])
                row -= 0.5 * (b - center[i, j]) * (b - center[i, j])
            total += weights[i] * width * row
        free(t)
    return total


def envelope_gradient(
    const double[:, ::1] scores,
    const double[:, ::1] center,
    const Py_ssize_t[::1] targets,
    const double[:, ::1] offsets,
    const double[:, ::1] rates,
    const double[::1] weights,
    double width,
    double[:, ::1] out,
):
    """Write the gradient of the envelope with respect to the scores."""
    cdef Py_ssize_t i, j, y, n = scores.shape[0], k = scores.shape[1]
    cdef double shift, total, u, mass, scale
    cdef double* t
    _check(scores, targets, offsets, rates, weights)
    _same_shape(scores, center)
    _same_shape(scores, out)
    t = <double*> allocate(2 * k * sizeof(double))
    with nogil:
        for i in range(n):
            y = targets[i]
            shift = _shifted(
                &scores[i, 0], &center[i, 0], &offsets[y, 0], &rates[y, 0],
                k, y, width, t,
            )
            mass = 0.0
            for j in range(k):
                if t[j] > shift and j != y:
                    mass += t[j] - shift
            # Large scores have rounding errors.
            scale = weights[i] / max(mass, 1.0)
            total = 0.0
            for j in range(k):
                u = 0.0
                if t[j] > shift and j != y:
                    u = scale * rates[y, j] * (t[j] - shift)
                    total += u
                out[i, j] = u
            out[i, y] = -total
        free(t)


def envelope_slope(
    const double[:, ::1] scores,
    const double[:, ::1] dscores,
    const double[:, ::1] center,
    const Py_ssize_t[::1] targets,
    const double[:, ::1] offsets,
    const double[:, ::1] rates,
    const double[::1] weights,
    double width,
    double step,
):
    """Return slope and curvature of the envelope along dscores at ``step``."""
    cdef Py_ssize_t i, j, y, n = scores.shape[0], k = scores.shape[1], size
    cdef double shift, d, mean, square, row, slope = 0.0, curvature = 0.0
    cdef double* t
    cdef double* z
    _check(scores, targets, offsets, rates, weights)
    _same_shape(scores, center)
    _same_shape(scores, dscores)
    t = <double*> allocate(3 * k * sizeof(double))
    z = t + 2 * k
    with nogil:
        for i in range(n):
            y = targets[i]
            for j in range(k):
                z[j] = scores[i, j] + step * dscores[i, j]
            shift = _shifted(
                z, &center[i, 0], &offsets[y, 0], &rates[y, 0], k, y, width, t
            )
            row = mean = square = 0.0
            size = 0
            for j in range(k):
                if t[j] > shift:
                    d = rates[y, j] * (dscores[i, j] - dscores[i, y])
                    row += d * (t[j] - shift)
                    mean += d
                    square += d * d
                    size += 1
            slope += weights[i] * row
            if size > 1:
                curvature += weights[i] * (square - mean * mean / size)
        free(t)
    return slope, curvature / width


def support(
    const double[:, ::1] scores,
    const double[:, ::1] center,
    const Py_ssize_t[::1] targets,
    const double[:, ::1] offsets,
    const double[:, ::1] rates,
    const double[::1] weights,
    double width,
    double edge,
    unsigned char[:, ::1] out,
):
    """Write 1 for the labels of positive b, up to ``edge``, in rows of more than one."""
    cdef Py_ssize_t i, j, y, n = scores.shape[0], k = scores.shape[1], size
    cdef double shift
    cdef double* t
    _check(scores, targets, offsets, rates, weights)
    _same_shape(scores, center)
    if out.shape[0] != n or out.shape[1] != k:
        raise ValueError("output has another shape than the scores.")
    t = <double*> allocate(2 * k * sizeof(double))
    with nogil:
        for i in range(n):
            y = targets[i]
            shift = _shifted(
                &scores[i, 0], &center[i, 0], &offsets[y, 0], &rates[y, 0],
                k, y, width, t,
            )
            size = 0
            for j in range(k):
                out[i, j] = t[j] >= shift - edge
                size += out[i, j]
            if size < 2 or weights[i] == 0.0:
                for j in range(k):
                    out[i, j] = 0
        free(t)


def apply_curvature(
    const unsigned char[:, ::1] active,
    const Py_ssize_t[::1] targets,
    const double[:, ::1] rates,
    const double[::1] factors,
    double[:, ::1] v,
):
    """Replace the rows of v by their products with the second derivatives.

    On the active labels that is rates * (I - 11ᵀ / size) * rates in terms of the
    differences v_j - v_y.
    """
    cdef Py_ssize_t i, j, y, n = active.shape[0], k = active.shape[1], size
    cdef double mean, d, total, reference
    _check_labels(v, targets, rates, rates)
    _same_length(n, v.shape[0])
    _same_length(k, v.shape[1])
    _same_length(n, factors.shape[0])
    with nogil:
        for i in range(n):
            y = targets[i]
            size = 0
            mean = 0.0
            reference = v[i, y]
            for j in range(k):
                if active[i, j]:
                    mean += rates[y, j] * (v[i, j] - reference)
                    size += 1
            if size:
                mean /= size
            total = 0.0
            for j in range(k):
                if active[i, j] and j != y:
                    d = rates[y, j] * (v[i, j] - reference) - mean
                    d *= rates[y, j] * factors[i]
                    v[i, j] = d
                    total += d
                else:
                    v[i, j] = 0.0
            v[i, y] = -total


def curvature_diagonal(
    const unsigned char[:, ::1] active,
    const Py_ssize_t[::1] targets,
    const double[:, ::1] rates,
    const double[::1] factors,
    double[:, ::1] out,
):
    """Write the diagonals of the matrices of second derivatives."""
    cdef Py_ssize_t i, j, y, n = active.shape[0], k = active.shape[1], size
    cdef double total, square, r
    _check_labels(out, targets, rates, rates)
    _same_length(n, out.shape[0])
    _same_length(k, out.shape[1])
    _same_length(n, factors.shape[0])
    with nogil:
        for i in range(n):
            y = targets[i]
            size = 0
            for j in range(k):
                size += active[i, j]
            total = square = 0.0
            for j in range(k):
                out[i, j] = 0.0
                if active[i, j] and j != y:
                    r = rates[y, j]
                    out[i, j] = factors[i] * r * r * (1.0 - 1.0 / size)
                    total += r
                    square += r * r
            if size:
                out[i, y] = factors[i] * (square - total * total / size)


def gram(
    const double[:, ::1] X,
    const unsigned char[:, ::1] active,
    const Py_ssize_t[::1] targets,
    const double[:, ::1] rates,
    const double[::1] factors,
    double[:, :, :, ::1] out,
):
    """Add sum_i M_i (x) x_i x_iᵀ to ``out`` of shape (k, k, d, d), for labels j <= l.

    M_i is the k x k matrix of second derivatives of row i, of which only the labels
    that are active or y have entries.
    """
    cdef Py_ssize_t i, j, l, f, y, size, n_labels
    cdef Py_ssize_t n = X.shape[0], d = X.shape[1], k = active.shape[1]
    cdef double c, total, square
    cdef double* outer
    cdef double* block
    cdef Py_ssize_t* labels
    _check_square(rates, k)
    _check_targets(targets, k)
    _same_length(n, active.shape[0])
    _same_length(n, targets.shape[0])
    _same_length(n, factors.shape[0])
    if out.shape[0] != k or out.shape[1] != k or out.shape[2] != d or out.shape[3] != d:
        raise ValueError("output has the wrong shape.")
    outer = <double*> allocate(d * d * sizeof(double) + k * sizeof(Py_ssize_t))
    labels = <Py_ssize_t*> (outer + d * d)
    with nogil:
        for i in range(n):
            y = targets[i]
            size = n_labels = 0
            total = square = 0.0
            for j in range(k):
                if active[i, j] or j == y:
                    labels[n_labels] = j
                    n_labels += 1
                size += active[i, j]
                if active[i, j] and j != y:
                    total += rates[y, j]
                    square += rates[y, j] * rates[y, j]
            if size < 2:
                continue
            for j in range(d):
                for l in range(d):
                    outer[j * d + l] = X[i, j] * X[i, l]
            for j in range(n_labels):
                for l in range(j, n_labels):
                    c = factors[i] * _second_derivative(
                        &rates[y, 0], labels[j], labels[l], y, size, total, square
                    )
                    if c != 0.0:
                        block = &out[labels[j], labels[l], 0, 0]
                        for f in range(d * d):
                            block[f] += c * outer[f]
        free(outer)


cdef inline double _second_derivative(
    const double* rates,
    Py_ssize_t j,
    Py_ssize_t l,
    Py_ssize_t y,
    Py_ssize_t size,
    double total,
    double square,
) noexcept nogil:
    """Return an entry of Dᵀ (I - 11ᵀ / size) D for the differences D z = r (z_j - z_y).

    ``total`` and ``square`` are the sums of the rates r and of their squares over the
    active labels other than y.
    """
    cdef double r
    if j != y and l != y:
        return rates[j] * rates[l] * ((1.0 if j == l else 0.0) - 1.0 / size)
    if j == l:
        return square - total * total / size
    r = rates[l] if j == y else rates[j]
    return r * (total / size - r)


cdef inline double _violations(
    const double* z,
    const double* offsets,
    const double* rates,
    Py_ssize_t k,
    Py_ssize_t y,
    double* m,
) noexcept nogil:
    """Write m and return its maximum."""
    cdef Py_ssize_t j
    cdef double largest = 0.0, reference = z[y]
    for j in range(k):
        m[j] = offsets[j] + rates[j] * (z[j] - reference)
    for j in range(k):
        largest = m[j] if m[j] > largest else largest
    return largest


cdef inline double _shifted(
    const double* z,
    const double* center,
    const double* offsets,
    const double* rates,
    Py_ssize_t k,
    Py_ssize_t y,
    double width,
    double* t,
) noexcept nogil:
    """Write t = center + m / width; return the shift with sum max(0, t - shift) = 1.

    ``t`` has room for 2 k numbers.
    """
    cdef Py_ssize_t j
    cdef double reference = z[y], scale = 1.0 / width
    for j in range(k):
        t[j] = center[j] + scale * (offsets[j] + rates[j] * (z[j] - reference))
    return simplex_shift(t, k, t + k)


cdef inline double _size(const double* z, Py_ssize_t k) noexcept nogil:
    """Return max(1, |z|)."""
    cdef Py_ssize_t j
    cdef double largest = 1.0
    for j in range(k):
        largest = fabs(z[j]) if fabs(z[j]) > largest else largest
    return largest


cdef int _check(
    const double[:, ::1] scores,
    const Py_ssize_t[::1] targets,
    const double[:, ::1] offsets,
    const double[:, ::1] rates,
    const double[::1] weights,
) except -1:
    _check_labels(scores, targets, offsets, rates)
    _same_length(scores.shape[0], weights.shape[0])
    return 0


cdef int _check_labels(
    const double[:, ::1] scores,
    const Py_ssize_t[::1] targets,
    const double[:, ::1] offsets,
    const double[:, ::1] rates,
) except -1:
    _same_length(scores.shape[0], targets.shape[0])
    _check_square(offsets, scores.shape[1])
    _check_square(rates, scores.shape[1])
    _check_targets(targets, scores.shape[1])
    return 0


cdef int _check_targets(const Py_ssize_t[::1] targets, Py_ssize_t k) except -1:
    cdef Py_ssize_t i
    for i in range(targets.shape[0]):
        if not 0 <= targets[i] < k:
            raise ValueError(f"label {targets[i]} is none of {k}.")
    return 0


cdef int _check_square(const double[:, ::1] a, Py_ssize_t k) except -1:
    if a.shape[0] != k or a.shape[1] != k:
        raise ValueError(f"expected shape {(k, k)}, got {(a.shape[0], a.shape[1])}.")
    return 0


cdef int _same_shape(const double[:, ::1] a, const double[:, ::1] b) except -1:
    if a.shape[0] != b.shape[0] or a.shape[1] != b.shape[1]:
        raise ValueError("arrays have different shapes.")
    return 0


cdef int _same_length(Py_ssize_t a, Py_ssize_t b) except -1:
    if a != b:
        raise ValueError(f"arrays have lengths {a} and {b}.")
    return 0

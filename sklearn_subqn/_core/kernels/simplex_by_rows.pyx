"""Active-set method for least squares problems on the unit simplex.

The method of ``simplex.pyx`` with QR factors of the support's rows instead of Cholesky
factors. No Gram matrix is formed, which would square the condition number.
"""

from .active_set cimport MAX_IDLE, first_to_leave, longest_step, mean_by
from .qr_factors cimport append_row, leave, lower, upper
from .rows cimport same_length
from .standard cimport fabs, sqrt

# A row is linearly dependent on the support if its residual is below this fraction of
# its norm.
cdef double DEPENDENT = 1e-15

def minimize(
    const double[:, ::1] E,
    const double[::1] c,
    double[::1] x,
    double tolerance,
    Py_ssize_t max_iter,
    double[:, ::1] Q,
    double[:, ::1] R,
    double[:, ::1] work,
    double[::1] costs,
    Py_ssize_t[::1] support,
):
    """Minimize ||E'x||² / 2 - c'x over the simplex, in place; return iterations.

    The first column of E of shape (m, r) is constant, so rows are affinely independent
    if and only if they are linearly independent. The rows of the support are linearly
    independent; their QR factors are updated by reflections and rotations. When a row
    enters, the multipliers of the support move to compensate.

    Parameters are as in ``simplex.pyx``. ``Q`` and ``R`` of shape (r, r), ``work`` of
    shape (8, r), ``costs`` of shape (m,) and ``support`` of shape (r,) are overwritten.
    """
    cdef Py_ssize_t i, j, k, n = 0, it = 0, idle = 0, refined = 0, entering, first
    cdef Py_ssize_t m = E.shape[0], r = E.shape[1]
    cdef double limit, ratio, size, cost, price, nu, total, best, slope, bend, dot
    same_length(m, c.shape[0], x.shape[0], costs.shape[0])
    same_length(r, Q.shape[0], Q.shape[1], R.shape[0], R.shape[1])
    same_length(r, work.shape[1], support.shape[0])
    same_length(8, work.shape[0])
    with nogil:
        for i in range(r):
            for j in range(r):
                Q[i, j] = 1.0 if i == j else 0.0
                R[i, j] = 0.0
        for i in range(m):
            if x[i] > 0.0:
                n = enter(E, c, x, i, 0.0, True, Q, R, work, support, n)
        while it < max_iter:
            it += 1
            # work[0] = E'x, and work[1] = Q'E'x.
            combine(E, x, support, n, work[0])
            by_columns(Q, work[0], n, work[1])
            for i in range(n):
                work[2, i] = c[support[i]]
                work[3, i] = 1.0
            lower(R, work[2], n)
            lower(R, work[3], n)
            for i in range(n):
                work[2, i] -= work[1, i]
                work[4, i] = work[2, i]
                work[5, i] = work[3, i]
            upper(R, work[4], n)
            upper(R, work[5], n)
            nu = mean_by(work[4], work[5], n)
            for i in range(n):
                work[4, i] -= nu * work[5, i]
            limit = 1.0
            first = first_to_leave(x, support, work[4], n, &limit)
            for i in range(n):
                x[support[i]] += limit * work[4, i]
            if first >= 0:
                x[support[first]] = 0.0
                n = leave(Q, R, support, n, first)
                continue
            if refined < 1:
                refined += 1
                continue
            # E'x at the exact minimizer on the support, without the rounding error of
            # x.
            combine(E, x, support, n, work[0])
            by_columns(Q, work[0], n, work[4])
            for i in range(n):
                work[1, i] = c[support[i]]
            lower(R, work[1], n)
            for i in range(n):
                work[1, i] -= work[4, i]
                work[4, i] = work[1, i]
            upper(R, work[4], n)
            nu = mean_by(work[4], work[5], n)
            for i in range(n):
                work[1, i] -= nu * work[3, i]
            for k in range(r):
                dot = work[0, k]
                for i in range(n):
                    dot += Q[k, i] * work[1, i]
                work[0, k] = dot
            price = best = 0.0
            for i in range(m):
                cost = -c[i]
                size = fabs(c[i])
                for k in range(1, r):
                    ratio = E[i, k] * work[0, k]
                    cost += ratio
                    size += fabs(ratio)
                costs[i] = cost
                if x[i] > 0.0:
                    price += cost * x[i]
                    best += size * x[i]
            total = best
            for i in range(n):
                costs[support[i]] = price
            entering = -1
            best = 0.0
            for i in range(m):
                size = fabs(c[i])
                for k in range(1, r):
                    size += fabs(E[i, k] * work[0, k])
                cost = costs[i] - price
                if cost < best and cost < -tolerance * (size + total):
                    best = cost
                    entering = i
            if entering < 0:
                break
            n = enter(E, c, x, entering, best, False, Q, R, work, support, n)
            refined = 0
            idle = idle + 1 if x[entering] <= 0.0 else 0
            if idle > MAX_IDLE + n:
                break
    return it


cdef Py_ssize_t enter(
    const double[:, ::1] E,
    const double[::1] c,
    double[::1] x,
    Py_ssize_t new,
    double slope,
    bint start,
    double[:, ::1] Q,
    double[:, ::1] R,
    double[:, ::1] work,
    Py_ssize_t[::1] support,
    Py_ssize_t n,
) noexcept nogil:
    """Let a row enter the support; return the new size of the support.

    The multipliers move along the direction that keeps the costs on the support equal,
    up to the minimum; a row whose multiplier becomes zero leaves. At the ``start`` a
    row enters without a move, unless it depends linearly on the support; then the
    multipliers move in the descent direction.
    """
    cdef Py_ssize_t i, first, r = E.shape[1]
    cdef double square = 0.0, size = 0.0, limit, ratio, sign = 1.0
    by_columns(Q, E[new], r, work[6])
    for i in range(r):
        size += work[6, i] * work[6, i]
        if i >= n:
            square += work[6, i] * work[6, i]
        else:
            work[7, i] = -work[6, i]
    if start and n < r and square > DEPENDENT * DEPENDENT * size:
        return append_row(Q, R, work, support, n, new, DEPENDENT * sqrt(size))
    upper(R, work[7], n)
    # Multipliers sum to one.
    ratio = 1.0
    limit = 0.0
    for i in range(n):
        work[5, i] = 1.0
    lower(R, work[5], n)
    upper(R, work[5], n)
    for i in range(n):
        ratio += work[7, i]
        limit += work[5, i]
    ratio /= limit
    square += ratio * ratio * limit
    for i in range(n):
        work[7, i] -= ratio * work[5, i]
    if start:
        slope = -c[new]
        for i in range(n):
            slope -= c[support[i]] * work[7, i]
        if slope > 0.0:
            sign = -1.0
    limit = longest_step()
    if not start and slope > -limit * square:
        limit = -slope / square
    if sign < 0.0:
        limit = x[new]
    for i in range(n):
        work[7, i] *= sign
    first = first_to_leave(x, support, work[7], n, &limit)
    if limit >= longest_step():
        return n
    for i in range(n):
        x[support[i]] += limit * work[7, i]
    x[new] += sign * limit
    if first >= 0:
        x[support[first]] = 0.0
        n = leave(Q, R, support, n, first)
        by_columns(Q, E[new], r, work[6])
        size = 0.0
        for i in range(r):
            size += work[6, i] * work[6, i]
    elif sign < 0.0:
        x[new] = 0.0
        return n
    if n == r:
        x[new] = 0.0
        return n
    return append_row(Q, R, work, support, n, new, DEPENDENT * sqrt(size))


cdef void by_columns(
    const double[:, ::1] Q, const double[::1] x, Py_ssize_t n, double[::1] out
) noexcept nogil:
    """Write the products of the first n columns of Q with x."""
    cdef Py_ssize_t i, k
    for i in range(n):
        out[i] = 0.0
    for k in range(Q.shape[0]):
        for i in range(n):
            out[i] += Q[k, i] * x[k]


cdef void combine(
    const double[:, ::1] E,
    const double[::1] x,
    const Py_ssize_t[::1] support,
    Py_ssize_t n,
    double[::1] out,
) noexcept nogil:
    """Overwrite ``out`` with E'x."""
    cdef Py_ssize_t i, k, r = E.shape[1]
    for k in range(r):
        out[k] = 0.0
    for i in range(n):
        for k in range(r):
            out[k] += x[support[i]] * E[support[i], k]

"""Minimize g p + ½ pᵀHp + l1 ||w + p||₁ for few parameters, some unpenalized."""

from .dense_rows cimport dense_solve
from .standard cimport INFINITY, fabs, memcpy

cdef enum:
    MOST_SWEEPS = 200
    # Solving a system of m parameters takes as long as m / SYSTEM sweeps.
    SYSTEM = 12


cdef inline double soft(double x, double threshold) noexcept nogil:
    return x - min(max(x, -threshold), threshold)


cdef inline int sign_of(double x) noexcept nogil:
    return (x > 0.0) - (x < 0.0)


cdef inline bint descend(
    double* H,
    const double* g,
    const double* w,
    double l1,
    Py_ssize_t n_penalized,
    Py_ssize_t q,
    double nothing,
    Py_ssize_t enough,
    double* p,
    double* room,
) noexcept nogil:
    """Fill p by coordinate descent, and by linear solves on the active set.

    A sweep gives the signs of the parameters. For fixed signs the minimizer solves a
    linear system. If the solution has these signs, it is taken; else the step towards
    it ends where the first sign changes. Descent ends where a sweep's coordinates lower
    the function by less than ``nothing``, or after ``enough`` sweeps by less than 1e-4
    of the first decrease. ``room`` is a workspace of q (q + 2) numbers and q indices.
    The upper triangle of H is copied to the lower one.
    """
    cdef Py_ssize_t i, j, k, m
    cdef Py_ssize_t* active = <Py_ssize_t*> (room + q * (q + 2))
    cdef double* r = room + q * q
    cdef double* x = room + q * q + q
    cdef double h, new, change, largest, first = 0.0, part
    cdef bint same
    cdef int sweep, unsolved = 0
    for i in range(q):
        for j in range(i):
            H[i * q + j] = H[j * q + i]
    memcpy(r, g, q * sizeof(double))
    memcpy(x, w, q * sizeof(double))
    for sweep in range(MOST_SWEEPS):
        largest, same = 0.0, True
        for j in range(q):
            h = H[j * q + j]
            if not 0.0 < h < INFINITY:
                return False
            new = soft(x[j] - r[j] / h, l1 / h if j < n_penalized else 0.0)
            change = new - x[j]
            if change != 0.0:
                same = same and sign_of(new) == sign_of(x[j])
                x[j] = new
                largest = max(largest, h * change * change)
                for k in range(q):
                    r[k] += change * H[j * q + k]
        first = max(first, largest)
        # Changes below 1e-13 of the first ones are rounding errors.
        if largest <= max(1e-26 * first, nothing):
            break
        if sweep >= enough and largest <= 1e-4 * first:
            break
        m = 0
        for j in range(q):
            if x[j] != 0.0 or j >= n_penalized:
                active[m] = j
                m += 1
        # Sweeps continue until they have taken as long as one solve.
        unsolved += 1
        if not same or unsolved * SYSTEM < m:
            continue
        unsolved = 0
        for i in range(m):
            j = active[i]
            p[i] = -r[j] - (l1 * sign_of(x[j]) if j < n_penalized else 0.0)
            for k in range(i, m):
                room[i * m + k] = H[j * q + active[k]]
        if not dense_solve(room, p, m):
            continue
        part = 1.0
        for i in range(m):
            j = active[i]
            if j < n_penalized and x[j] * (x[j] + p[i]) < 0.0:
                part = min(part, -x[j] / p[i])
        for i in range(m):
            j = active[i]
            change = part * p[i]
            new = x[j] + change
            if part < 1.0 and j < n_penalized and x[j] * (x[j] + p[i]) < 0.0:
                if -x[j] / p[i] <= part:
                    new, change = 0.0, -x[j]
            x[j] = new
            for k in range(q):
                r[k] += change * H[j * q + k]
    for j in range(q):
        p[j] = x[j] - w[j]
    return True

"""QR factors of the support's rows, updated by reflections and rotations."""

from .standard cimport fabs, sqrt


cdef inline Py_ssize_t append_row(
    double[:, ::1] Q,
    double[:, ::1] R,
    double[:, ::1] work,
    Py_ssize_t[::1] support,
    Py_ssize_t n,
    Py_ssize_t new,
    double least,
) noexcept nogil:
    """Append a row to the support: a Householder reflection adds a column to R.

    ``work[6]`` is Q' times the row. The diagonal of R is kept at least ``least`` in
    magnitude, so R stays nonsingular for a row that depends on the support up to
    rounding errors.
    """
    cdef Py_ssize_t i, k, r = Q.shape[0]
    cdef double norm = 0.0, head, square, dot
    for i in range(n, r):
        norm += work[6, i] * work[6, i]
    norm = sqrt(norm)
    for i in range(n):
        R[i, n] = work[6, i]
    support[n] = new
    if norm > 0.0 and n + 1 < r:
        head = work[6, n] + (norm if work[6, n] >= 0.0 else -norm)
        square = norm * norm + norm * fabs(work[6, n])
        R[n, n] = -norm if work[6, n] >= 0.0 else norm
        work[6, n] = head
        for k in range(r):
            dot = 0.0
            for i in range(n, r):
                dot += Q[k, i] * work[6, i]
            dot /= square
            for i in range(n, r):
                Q[k, i] -= dot * work[6, i]
    else:
        R[n, n] = work[6, n]
    if fabs(R[n, n]) < least:
        R[n, n] = least if R[n, n] >= 0.0 else -least
    return n + 1


cdef inline Py_ssize_t leave(
    double[:, ::1] Q,
    double[:, ::1] R,
    Py_ssize_t[::1] support,
    Py_ssize_t n,
    Py_ssize_t first,
) noexcept nogil:
    """Remove a row from the support by Givens rotations; return the new size."""
    cdef Py_ssize_t i, k, r = Q.shape[0]
    cdef double a, b, length, cosine, sine
    for k in range(first, n - 1):
        support[k] = support[k + 1]
        for i in range(k + 2):
            R[i, k] = R[i, k + 1]
    for k in range(first, n - 1):
        a, b = R[k, k], R[k + 1, k]
        length = sqrt(a * a + b * b)
        if length > 0.0:
            cosine, sine = a / length, b / length
            for i in range(k, n - 1):
                a, b = R[k, i], R[k + 1, i]
                R[k, i] = cosine * a + sine * b
                R[k + 1, i] = cosine * b - sine * a
            for i in range(r):
                a, b = Q[i, k], Q[i, k + 1]
                Q[i, k] = cosine * a + sine * b
                Q[i, k + 1] = cosine * b - sine * a
        R[k + 1, k] = 0.0
    return n - 1


cdef inline void lower(const double[:, ::1] R, double[::1] y, Py_ssize_t n) noexcept nogil:
    """Overwrite y with the solution of R'z = y."""
    cdef Py_ssize_t i, k
    for i in range(n):
        for k in range(i):
            y[i] -= R[k, i] * y[k]
        y[i] /= R[i, i]


cdef inline void upper(const double[:, ::1] R, double[::1] y, Py_ssize_t n) noexcept nogil:
    """Overwrite y with the solution of R z = y."""
    cdef Py_ssize_t i, k
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            y[i] -= R[i, k] * y[k]
        y[i] /= R[i, i]

"""Active-set method for small quadratic programs on the unit simplex.

The Cholesky factor of the matrix on the support is updated when indices enter and
leave, so an iteration costs O(n²) for a support of n indices.
"""

from .active_set cimport MAX_IDLE, first_to_leave, longest_step, mean_by
from .rows cimport same_length
from .standard cimport INFINITY, fabs, sqrt

# Relative decrease of the value that an entering index must achieve, beyond rounding
# errors. Without this limit, indices enter and leave by steps that the ridge shortens,
# until max_iter. With it, hinges of small chains (six sequences of Cauchy features,
# alpha 1e-8) take a fifth of the iterations.
cdef double LITTLE = 1e-8


def minimize(
    const double[:, ::1] Q,
    const double[::1] c,
    double[::1] x,
    double border,
    double ridge,
    double tolerance,
    Py_ssize_t max_iter,
    double[:, ::1] factor,
    double[:, ::1] work,
    Py_ssize_t[::1] support,
):
    """Minimize x'Qx / 2 - c'x over the simplex, in place; return the iterations.

    ``x`` is the starting point, and is overwritten. ``border`` is a number of the
    magnitude of Q. ``ridge``, larger than the rounding error of ``border``, is added to
    the diagonal of the systems. An index enters if its reduced cost is below minus
    ``tolerance`` times the sum of its absolute terms. ``factor`` of shape (m, m),
    ``work`` of shape (4, m) and ``support`` of shape (m,) are overwritten.
    """
    cdef Py_ssize_t i, j, n, first, entering, it, m = c.shape[0], refined = 0
    cdef Py_ssize_t idle = 0
    cdef double mean, limit, ratio, size, cost, best, price, nu, largest
    cdef double value, terms, lowest = INFINITY
    cdef bint done
    same_length(m, Q.shape[0], Q.shape[1], x.shape[0], support.shape[0])
    same_length(m, factor.shape[0], factor.shape[1], work.shape[1])
    same_length(4, work.shape[0])
    with nogil:
        n = 0
        for i in range(m):
            if x[i] > 0.0:
                append(Q, i, border, ridge, factor, support, n)
                n += 1
        it = 0
        while it < max_iter:
            it += 1
            mean = 0.0
            for i in range(n):
                cost = -c[support[i]]
                for j in range(n):
                    cost += Q[support[i], support[j]] * x[support[j]]
                work[0, i] = cost
                mean += cost / n
            largest = 0.0
            for i in range(n):
                work[0, i] = mean - work[0, i]
                largest = max(largest, fabs(work[0, i]))
                work[1, i] = 1.0
                work[2, i] = work[0, i]
            solve(factor, work[0], n)
            solve(factor, work[1], n)
            nu = mean_by(work[0], work[1], n)
            for i in range(n):
                work[0, i] -= nu * work[1, i]
            limit = 1.0
            if largest > tolerance:
                limit = longest(Q, support, work, n)
            first = first_to_leave(x, support, work[0], n, &limit)
            for i in range(n):
                x[support[i]] += limit * work[0, i]
            if first >= 0:
                x[support[first]] = 0.0
                remove(factor, support, n, first)
                n -= 1
                continue
            # Reduced costs of all indices, raised by bounds on their rounding errors.
            price = value = terms = 0.0
            for i in range(m):
                cost = -c[i]
                size = fabs(c[i])
                for j in range(n):
                    ratio = Q[i, support[j]] * x[support[j]]
                    cost += ratio
                    size += fabs(ratio)
                work[2, i] = cost + tolerance * size
                work[3, i] = size
                price += cost * x[i]
                value += 0.5 * (cost - c[i]) * x[i]
                terms += size * x[i]
            if value < lowest - tolerance * terms - LITTLE * fabs(value):
                lowest = value
                idle = 0
            else:
                idle += 1
                if idle > MAX_IDLE + n:
                    break
            for i in range(n):
                work[2, support[i]] = price
            entering = -1
            best = price
            for i in range(m):
                if work[2, i] < best:
                    best = work[2, i]
                    entering = i
            if entering >= 0:
                append(Q, entering, border, ridge, factor, support, n)
                n += 1
                refined = 0
                continue
            # Repeat a step that the ridge has damped, as iterative refinement.
            done = largest <= tolerance or refined >= 3
            if done:
                break
            refined += 1
    return it


cdef double longest(
    const double[:, ::1] Q,
    const Py_ssize_t[::1] support,
    const double[:, ::1] work,
    Py_ssize_t n,
) noexcept nogil:
    """Return the exact step on a line, or 1 where the ridge hardly damps the step.

    The direction is work[0], and the negative gradient work[2].
    """
    cdef Py_ssize_t i, j
    cdef double fall = 0.0, bend = 0.0, product
    for i in range(n):
        fall += work[2, i] * work[0, i]
        product = 0.0
        for j in range(n):
            product += Q[support[i], support[j]] * work[0, j]
        bend += product * work[0, i]
    if not fall > 2.0 * bend:
        return 1.0
    if bend > 0.0 and fall < longest_step() * bend:
        return fall / bend
    return longest_step()


cdef void append(
    const double[:, ::1] Q,
    Py_ssize_t new,
    double border,
    double ridge,
    double[:, ::1] L,
    Py_ssize_t[::1] support,
    Py_ssize_t n,
) noexcept nogil:
    """Append the index ``new`` to the support, and a row to the factor of Q + border.

    Adding a constant to all entries of Q changes the objective on the simplex by a
    constant. The matrix becomes nonsingular where only the constant vector had no
    curvature.
    """
    cdef Py_ssize_t i, k
    cdef double value, square = Q[new, new] + border + ridge
    support[n] = new
    for i in range(n):
        value = Q[new, support[i]] + border
        for k in range(i):
            value -= L[n, k] * L[i, k]
        value /= L[i, i]
        L[n, i] = value
        square -= value * value
    L[n, n] = sqrt(max(square, ridge))


cdef void remove(
    double[:, ::1] L, Py_ssize_t[::1] support, Py_ssize_t n, Py_ssize_t first
) noexcept nogil:
    """Remove an index from the support, and its row from the factor."""
    cdef Py_ssize_t i, k
    cdef double a, b, r, cosine, sine
    for i in range(first, n - 1):
        support[i] = support[i + 1]
        for k in range(i + 2):
            L[i, k] = L[i + 1, k]
    # Row i now has an entry in column i + 1; Givens rotations of adjacent columns
    # remove it.
    for k in range(first, n - 1):
        a, b = L[k, k], L[k, k + 1]
        r = sqrt(a * a + b * b)
        cosine, sine = a / r, b / r
        L[k, k] = r
        for i in range(k + 1, n - 1):
            a, b = L[i, k], L[i, k + 1]
            L[i, k] = cosine * a + sine * b
            L[i, k + 1] = cosine * b - sine * a


cdef void solve(
    const double[:, ::1] L, double[::1] y, Py_ssize_t n
) noexcept nogil:
    """Overwrite y with the solution of L L' z = y."""
    cdef Py_ssize_t i, k
    for i in range(n):
        for k in range(i):
            y[i] -= L[i, k] * y[k]
        y[i] /= L[i, i]
    for i in range(n - 1, -1, -1):
        y[i] /= L[i, i]
        for k in range(i):
            y[k] -= L[i, k] * y[i]

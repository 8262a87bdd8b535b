"""An active-set method for small quadratic programs on the unit simplex.

The Cholesky factor of the matrix on the support is kept up to date as indices enter and
leave, so that a step takes about as many operations as the support has pairs.
"""

from .standard cimport INFINITY, fabs, sqrt

# No step is longer than this; one without an end on the simplex changes nothing.
cdef double LONGEST = 1e30

# Where so many indices in a row, and one for each of the support, have entered without
# lowering the value by more than its rounding and this share of it, it ends: they would
# come and go until the limit, by steps that the ridge shortens. Hinges of small chains,
# six sequences of Cauchy features with alpha 1e-8, take a fifth of the iterations.
cdef Py_ssize_t MAX_IDLE = 10
cdef double LITTLE = 1e-8

# Rows that are combinations of others but for this share of their length are taken as
# such.
cdef double DEPENDENT = 1e-15


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
    """Minimize x'Qx / 2 - c'x over the simplex, from x to x; return the iterations.

    ``border`` is a number of the size of Q; ``ridge``, above the rounding of that, comes
    to its diagonal in the systems. An index enters if its reduced cost is negative
    beyond ``tolerance`` times the sum of the sizes of its terms. ``factor`` of shape
    (m, m), ``work`` of shape (4, m) and ``support`` of shape (m,) are overwritten.
    """
    cdef Py_ssize_t i, j, n, first, entering, it, m = c.shape[0], refined = 0
    cdef Py_ssize_t idle = 0
    cdef double total, mean, limit, ratio, size, cost, best, price, nu, largest
    cdef double value, terms, lowest = INFINITY
    cdef bint done
    if (
        Q.shape[0] != m or Q.shape[1] != m or x.shape[0] != m
        or factor.shape[0] != m or factor.shape[1] != m
        or work.shape[0] != 4 or work.shape[1] != m or support.shape[0] != m
    ):
        raise ValueError(f"arrays do not have the size {m} of the program")
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
            nu = 0.0
            total = 0.0
            for i in range(n):
                nu += work[0, i]
                total += work[1, i]
            nu /= total
            for i in range(n):
                work[0, i] -= nu * work[1, i]
            limit = 1.0
            if largest > tolerance:
                limit = longest(Q, support, work, n)
            first = -1
            for i in range(n):
                if work[0, i] < 0.0:
                    ratio = -x[support[i]] / work[0, i]
                    if ratio < limit:
                        limit = ratio
                        first = i
            for i in range(n):
                x[support[i]] += limit * work[0, i]
            if first >= 0:
                x[support[first]] = 0.0
                remove(factor, support, n, first)
                n -= 1
                continue
            # Reduced costs of all, and what is left of them by rounding.
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
            # A step that the ridge has damped is followed by others.
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
    """Return the step to the minimum on a line, or 1 where the ridge hardly damps it.

    The line is along work[0], with the negative slopes work[2].
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
    return fall / bend if bend > 0.0 and fall < LONGEST * bend else LONGEST


cdef void append(
    const double[:, ::1] Q,
    Py_ssize_t new,
    double border,
    double ridge,
    double[:, ::1] L,
    Py_ssize_t[::1] support,
    Py_ssize_t n,
) noexcept nogil:
    """Add the last row of the factor of Q + border on the support, where ``new`` comes.

    Adding a constant to Q changes nothing on the simplex, and makes the matrix regular
    where it only lacks curvature along the constant vector.
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
    """Take an index out of the support, and its row out of the factor."""
    cdef Py_ssize_t i, k
    cdef double a, b, r, cosine, sine
    for i in range(first, n - 1):
        support[i] = support[i + 1]
        for k in range(i + 2):
            L[i, k] = L[i + 1, k]
    # Row i now reaches to column i + 1; rotations of neighboring columns undo that.
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


def minimize_by_rows(
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
    """Minimize ||E'x||² / 2 - c'x over the simplex, from x to x; return iterations.

    E of shape (m, r) has a first column of the same number, so that rows are affinely
    independent if they are linearly so: supports are of such rows. Their QR factors are
    kept up to date by reflections and rotations. Nothing is squared, and a row that
    enters goes along the direction in which those of the support make up for it.

    Parameters are as in ``minimize``. ``Q`` and ``R`` of shape (r, r), ``work`` of
    shape (8, r), ``costs`` of shape (m,) and ``support`` of shape (r,) are overwritten.
    """
    cdef Py_ssize_t i, j, k, n = 0, it = 0, idle = 0, refined = 0, entering, first
    cdef Py_ssize_t m = E.shape[0], r = E.shape[1]
    cdef double limit, ratio, size, cost, price, nu, total, best, slope, bend, dot
    if (
        c.shape[0] != m or x.shape[0] != m or costs.shape[0] != m
        or Q.shape[0] != r or Q.shape[1] != r or R.shape[0] != r or R.shape[1] != r
        or work.shape[0] != 8 or work.shape[1] != r or support.shape[0] != r
    ):
        raise ValueError(f"arrays do not have the sizes {m} and {r} of the program")
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
            for i in range(n):
                dot = 0.0
                for k in range(r):
                    dot += Q[k, i] * work[0, k]
                work[1, i] = dot
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
            nu = total = 0.0
            for i in range(n):
                nu += work[4, i]
                total += work[5, i]
            nu /= total
            limit = 1.0
            first = -1
            for i in range(n):
                work[4, i] -= nu * work[5, i]
                if work[4, i] < 0.0:
                    ratio = -x[support[i]] / work[4, i]
                    if ratio < limit:
                        limit = ratio
                        first = i
            for i in range(n):
                x[support[i]] += limit * work[4, i]
            if first >= 0:
                x[support[first]] = 0.0
                n = leave(Q, R, support, n, first)
                continue
            if refined < 1:
                refined += 1
                continue
            # E'x as it would be without rounding of x.
            combine(E, x, support, n, work[0])
            for i in range(n):
                dot = 0.0
                for k in range(r):
                    dot += Q[k, i] * work[0, k]
                work[1, i] = c[support[i]]
                work[4, i] = dot
            lower(R, work[1], n)
            for i in range(n):
                work[1, i] -= work[4, i]
                work[4, i] = work[1, i]
            upper(R, work[4], n)
            nu = total = 0.0
            for i in range(n):
                nu += work[4, i]
                total += work[5, i]
            nu /= total
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
    """Let a row enter; return the length of the support.

    It goes along the direction in which costs on the support stay equal, as far as this
    pays; a row whose multiplier vanishes there leaves.
    At the ``start`` it does so only if it depends on these rows, the way that pays.
    """
    cdef Py_ssize_t i, k, first = -1, r = E.shape[1]
    cdef double dot, square = 0.0, size = 0.0, limit, ratio, sign = 1.0
    for i in range(r):
        dot = 0.0
        for k in range(r):
            dot += Q[k, i] * E[new, k]
        work[6, i] = dot
        size += dot * dot
        if i >= n:
            square += dot * dot
        else:
            work[7, i] = -dot
    if start and n < r and square > DEPENDENT * DEPENDENT * size:
        return append_row(Q, R, work, support, n, new, size)
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
    limit = LONGEST
    if not start and slope > -LONGEST * square:
        limit = -slope / square
    if sign < 0.0:
        limit = x[new]
    for i in range(n):
        if sign * work[7, i] < 0.0:
            ratio = -x[support[i]] / (sign * work[7, i])
            if ratio < limit:
                limit = ratio
                first = i
    if limit >= LONGEST:
        return n
    for i in range(n):
        x[support[i]] += sign * limit * work[7, i]
    x[new] += sign * limit
    if first >= 0:
        x[support[first]] = 0.0
        n = leave(Q, R, support, n, first)
        size = 0.0
        for i in range(r):
            dot = 0.0
            for k in range(r):
                dot += Q[k, i] * E[new, k]
            work[6, i] = dot
            size += dot * dot
    elif sign < 0.0:
        x[new] = 0.0
        return n
    if n == r:
        x[new] = 0.0
        return n
    return append_row(Q, R, work, support, n, new, size)


cdef Py_ssize_t append_row(
    double[:, ::1] Q,
    double[:, ::1] R,
    double[:, ::1] work,
    Py_ssize_t[::1] support,
    Py_ssize_t n,
    Py_ssize_t new,
    double size,
) noexcept nogil:
    """Add a column to R by a reflection of Q, where work[6] is Q'E of the row."""
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
    # What depends on the others but for rounding stays regular.
    size = DEPENDENT * sqrt(size)
    if fabs(R[n, n]) < size:
        R[n, n] = size if R[n, n] >= 0.0 else -size
    return n + 1


cdef Py_ssize_t leave(
    double[:, ::1] Q,
    double[:, ::1] R,
    Py_ssize_t[::1] support,
    Py_ssize_t n,
    Py_ssize_t first,
) noexcept nogil:
    """Take a row out of the support, a column out of R; return what is left."""
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


cdef void lower(const double[:, ::1] R, double[::1] y, Py_ssize_t n) noexcept nogil:
    """Overwrite y with the solution of R'z = y."""
    cdef Py_ssize_t i, k
    for i in range(n):
        for k in range(i):
            y[i] -= R[k, i] * y[k]
        y[i] /= R[i, i]


cdef void upper(const double[:, ::1] R, double[::1] y, Py_ssize_t n) noexcept nogil:
    """Overwrite y with the solution of R z = y."""
    cdef Py_ssize_t i, k
    for i in range(n - 1, -1, -1):
        for k in range(i + 1, n):
            y[i] -= R[i, k] * y[k]
        y[i] /= R[i, i]

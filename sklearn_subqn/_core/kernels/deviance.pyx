"""Losses y exp(-a z) / a + exp(b z) / b of targets y >= 0, with a + b = 1.

For a = 0 the first part is -y z, which makes Poisson's loss, and for b = 0 the second is
z. Derivatives are v - w with v = exp(b z) and w = y exp(-a z); beyond 50 both
exponential functions go on as their tangents. All arrays are contiguous, of shape (n,)
and float64. Rows with y = 0 have no w, and cost nothing of it. Numbers of 256 rows at a
time stay in the cache, and loops over them vectorize.
"""

from .exponentials cimport exponentials
from .logarithms cimport logarithms
from .standard cimport DBL_EPSILON, DBL_MIN, INFINITY, fabs
from .sums cimport Sum, add_all, result

cdef enum:
    STEEPEST = 50
    MOST_STEPS = 60


cdef struct Block:
    # Numbers of some rows: v and w, and of those with y > 0, which ``rows`` are.
    double[256] v
    double[256] w
    double[256] t
    Py_ssize_t[256] rows
    Py_ssize_t size, n_positive


def value(
    const double[::1] scores,
    const double[::1] targets,
    const double[::1] weights,
    double a,
    double b,
):
    """Return the weighted sum of the losses."""
    cdef Py_ssize_t i, j, start, n = scores.shape[0]
    cdef double t, y
    cdef Block block
    cdef Sum total = Sum(0.0, 0.0)
    check_length(n, targets, weights)
    with nogil:
        for start in range(0, n, 256):
            block.size = min(256, n - start)
            variables(&block, &scores[start], &targets[start], a, b)
            for i in range(block.size):
                t = b * scores[start + i]
                block.v[i] *= (1.0 + (t - STEEPEST if t > STEEPEST else 0.0)) / (
                    b if b > 0.0 else 1.0
                )
            if b == 0.0:
                for i in range(block.size):
                    block.v[i] = scores[start + i]
            if a == 0.0:
                for i in range(block.size):
                    block.v[i] -= targets[start + i] * scores[start + i]
            else:
                for j in range(block.n_positive):
                    i, t = block.rows[j], block.t[j]
                    y = block.w[i] / a
                    block.v[i] += y * (1.0 + (t - STEEPEST if t > STEEPEST else 0.0))
            for i in range(block.size):
                block.v[i] *= weights[start + i]
            add_all(&total, block.v, block.size)
    return result(&total)


def subgradient(
    const double[::1] scores,
    const double[::1] targets,
    const double[::1] weights,
    double a,
    double b,
    double[::1] out,
):
    """Fill ``out`` with the derivatives by the scores."""
    cdef Py_ssize_t i, start, n = scores.shape[0]
    cdef Block block
    check_length(n, targets, weights)
    check_length(n, out, out)
    with nogil:
        for start in range(0, n, 256):
            block.size = min(256, n - start)
            variables(&block, &scores[start], &targets[start], a, b)
            for i in range(block.size):
                out[start + i] = weights[start + i] * (block.v[i] - block.w[i])


def curvature(
    const double[::1] scores,
    const double[::1] targets,
    const double[::1] weights,
    double a,
    double b,
    double[::1] out,
):
    """Fill ``out`` with the second derivatives by the scores."""
    cdef Py_ssize_t i, start, n = scores.shape[0]
    cdef Block block
    check_length(n, targets, weights)
    check_length(n, out, out)
    with nogil:
        for start in range(0, n, 256):
            block.size = min(256, n - start)
            variables(&block, &scores[start], &targets[start], a, b)
            for i in range(block.size):
                out[start + i] = weights[start + i] * (b * block.v[i] + a * block.w[i])


def on_line(
    const double[::1] scores,
    const double[::1] dscores,
    const double[::1] targets,
    const double[::1] weights,
    double a,
    double b,
    double step,
):
    """Return slope and second derivative of the weighted sum at scores + step * dscores.
    """
    cdef Py_ssize_t i, start, n = scores.shape[0]
    cdef double move, second
    cdef double[256] z
    cdef Block block
    cdef Sum slope = Sum(0.0, 0.0), curvature = Sum(0.0, 0.0)
    check_length(n, dscores, targets)
    check_length(n, weights, weights)
    with nogil:
        for start in range(0, n, 256):
            block.size = min(256, n - start)
            for i in range(block.size):
                z[i] = scores[start + i] + step * dscores[start + i]
            variables(&block, z, &targets[start], a, b)
            for i in range(block.size):
                move = weights[start + i] * dscores[start + i]
                second = b * block.v[i] + a * block.w[i]
                block.v[i] = move * (block.v[i] - block.w[i])
                block.w[i] = move * dscores[start + i] * second
            add_all(&slope, block.v, block.size)
            add_all(&curvature, block.w, block.size)
    return result(&slope), result(&curvature)


def sums(
    const double[::1] scores,
    const double[::1] targets,
    const double[::1] weights,
    double a,
    double b,
):
    """Return the weighted sums of v and of w, and the largest argument of either."""
    cdef Py_ssize_t i, start, n = scores.shape[0]
    cdef double t, largest = -INFINITY
    cdef Block block
    cdef Sum rising = Sum(0.0, 0.0), falling = Sum(0.0, 0.0)
    check_length(n, targets, weights)
    with nogil:
        for start in range(0, n, 256):
            block.size = min(256, n - start)
            variables(&block, &scores[start], &targets[start], a, b)
            for i in range(block.size):
                t = b * scores[start + i]
                largest = t if t > largest else largest
                block.v[i] *= weights[start + i]
                block.w[i] *= weights[start + i]
            for i in range(block.n_positive):
                largest = block.t[i] if block.t[i] > largest else largest
            add_all(&rising, block.v, block.size)
            add_all(&falling, block.w, block.size)
    return result(&rising), result(&falling), largest


def conjugate(
    const double[::1] dual,
    const double[::1] targets,
    const double[::1] weights,
    double a,
    double b,
):
    """Return the conjugate at u, about what its terms sum to, and their roundings.

    For a dual u = weights * (v - w) it is the weighted sum of (v ln v - v) / b and
    (w ln(w / y) - w) / a, of which w = y leaves nothing for a = 0, and v = 1 nothing for
    b = 0; infinite where u is outside of the domain. The second number has the sizes of
    its terms, and of those at u = 0. The third is the weighted sum of (v + w)².
    """
    cdef Py_ssize_t i, start, n = dual.shape[0]
    cdef double v, w, y, first = 1.0 / b if b > 0.0 else 0.0
    cdef double second = 1.0 / a if a > 0.0 else 0.0
    cdef bint outside = False
    cdef double[256] unit, ln_v, ln_w, ln_y, sizes
    cdef Block block
    cdef Sum total = Sum(0.0, 0.0), size = Sum(0.0, 0.0), square = Sum(0.0, 0.0)
    check_length(n, targets, weights)
    with nogil:
        for start in range(0, n, 256):
            block.size = min(256, n - start)
            outside |= split(
                &block, &dual[start], &targets[start], &weights[start], a, b, unit
            )
            logarithms(block.v, block.size, ln_v)
            if a > 0.0:
                logarithms(block.w, block.size, ln_w)
            logarithms(&targets[start], block.size, ln_y)
            for i in range(block.size):
                v, w, y = block.v[i], block.w[i], fabs(ln_y[i])
                block.t[i] = weights[start + i] * ((v + w) * (v + w))
                sizes[i] = first * (fabs(v * ln_v[i]) + v + unit[i] * (b * y + 1.0))
                block.v[i] = first * (v * ln_v[i] - v)
            if a > 0.0:
                for i in range(block.size):
                    w, y = block.w[i], fabs(ln_y[i])
                    sizes[i] += second * (fabs(w * ln_w[i]) + w + w * y)
                    sizes[i] += second * unit[i] * ((1.0 + b) * y + 1.0)
                    block.v[i] += second * (w * ln_w[i] - w - w * ln_y[i])
            for i in range(block.size):
                sizes[i] *= weights[start + i]
                block.v[i] *= weights[start + i]
            add_all(&total, block.v, block.size)
            add_all(&size, sizes, block.size)
            add_all(&square, block.t, block.size)
    if outside:
        return INFINITY, result(&size), result(&square)
    return result(&total), result(&size), result(&square)


cdef void variables(
    Block* block, const double* z, const double* y, double a, double b
) noexcept nogil:
    """Set v and w of a block, and of its rows with y > 0 the arguments t of w."""
    cdef Py_ssize_t i, j, n = 0
    cdef double[256] e
    if b > 0.0:
        for i in range(block.size):
            block.v[i] = b * z[i]
            block.v[i] = STEEPEST if block.v[i] > STEEPEST else block.v[i]
        exponentials(block.v, block.size)
    else:
        for i in range(block.size):
            block.v[i] = 1.0
    block.n_positive = 0
    if a == 0.0:
        for i in range(block.size):
            block.w[i] = y[i]
        return
    n = positive(block, y)
    for j in range(n):
        e[j] = y[block.rows[j]]
    logarithms(e, n, block.t)
    for j in range(n):
        block.t[j] -= a * z[block.rows[j]]
        e[j] = STEEPEST if block.t[j] > STEEPEST else block.t[j]
    exponentials(e, n)
    for j in range(n):
        block.w[block.rows[j]] = e[j]


cdef Py_ssize_t positive(Block* block, const double* y) noexcept nogil:
    """Find the rows with y > 0, set w of all to zero, and return how many they are."""
    cdef Py_ssize_t i, n = 0
    for i in range(block.size):
        block.w[i] = 0.0
        block.rows[n] = i
        n += y[i] >= DBL_MIN
    block.n_positive = n
    return n


cdef bint split(
    Block* block,
    const double* dual,
    const double* y,
    const double* weights,
    double a,
    double b,
    double* unit,
) noexcept nogil:
    """Set v and w whose difference is u / s, of the least conjugate, and y^b.

    Returns whether there are none. In units of y^b and with x >= 1 for the larger of the
    two, the smaller one is x^-p, and x - x^-p = |u| / s. That function of x is concave
    and increases: Newton's method goes up to the solution. Powers next to 1 or 2 take up
    to ten steps, others four to six.
    """
    cdef Py_ssize_t i, j, k, n
    cdef double c, move, slack = 4.0 * DBL_EPSILON
    cdef double[256] difference, power, x, less
    cdef bint outside = False, moves
    for i in range(block.size):
        c = dual[i] / (weights[i] if weights[i] > 0.0 else 1.0)
        block.t[i] = c if weights[i] > 0.0 else 0.0
    if a == 0.0:
        for i in range(block.size):
            c = block.t[i] + y[i]
            outside |= c < -slack * y[i]
            block.v[i] = c if c > 0.0 else 0.0
            block.w[i] = unit[i] = y[i]
        return outside
    if b == 0.0:
        for i in range(block.size):
            c = 1.0 - block.t[i]
            outside |= c < -slack
            block.v[i] = unit[i] = 1.0
            block.w[i] = c if c > 0.0 else 0.0
        return outside
    n = positive(block, y)
    for j in range(n):
        difference[j] = y[block.rows[j]]
    logarithms(difference, n, difference)
    for j in range(n):
        difference[j] *= b
    exponentials(difference, n)
    for i in range(block.size):
        unit[i] = 0.0
    for j in range(n):
        i, c = block.rows[j], block.t[block.rows[j]]
        unit[i] = difference[j]
        # The smaller part of larger differences in units of y^b vanishes.
        move = 1e-300 * fabs(c)
        move = move if move > DBL_MIN else DBL_MIN
        difference[j] = fabs(c) / (unit[i] if unit[i] > move else move)
        power[j] = a / b if c > 0.0 else b / a
        x[j] = 1.0 + difference[j] / (1.0 + power[j])
        x[j] = x[j] if x[j] > difference[j] else difference[j]
    for k in range(MOST_STEPS):
        logarithms(x, n, less)
        for j in range(n):
            less[j] *= -power[j]
        exponentials(less, n)
        moves = False
        for j in range(n):
            move = difference[j] + less[j] - x[j]
            move /= 1.0 + power[j] * less[j] / x[j]
            x[j] += move
            moves |= move > slack * x[j]
        if not moves:
            break
    for j in range(n):
        block.w[block.rows[j]] = unit[block.rows[j]] * less[j]
    for i in range(block.size):
        c = block.t[i]
        outside |= c < 0.0 and y[i] < DBL_MIN
        block.v[i] = block.w[i] + (c if c > 0.0 else 0.0)
        block.w[i] = block.w[i] - (c if c < 0.0 else 0.0)
    return outside


cdef int check_length(
    Py_ssize_t n, const double[::1] a, const double[::1] b
) except -1:
    if a.shape[0] != n or b.shape[0] != n:
        raise ValueError(f"arrays of {a.shape[0]} and {b.shape[0]} instead of {n} rows")
    return 0

"""Losses of one score per row, as branches of ``formulas`` and ``conjugates``.

A loss is the maximum over a dual variable v of v t - h(v), where t depends on a score z
and a target y. Its derivative by z is g = v dt/dz. The kinds of losses are

- BOX: v in [low, high] with low <= 0 <= high, and t = sign (y - z), where sign is y for
  labels y = -1 or +1, and one for other targets;

      h(v) = tube |v| + ridge / 2 v² + width / 2 (v - center)²,

  The loss has kinks if ridge and width are zero. A positive width makes it the Moreau
  envelope of the loss with width zero.
- LOGISTIC: h(v) = v ln v + (1 - v) ln(1 - v) and t = -y z for labels y.
- EXPONENTIALS: y exp(-a z) / a + exp(b z) / b with a + b = 1 (Jørgensen 1987). For a = 0
  the first term is -y z, which gives Poisson's loss; for b = 0 the second term is z, as
  for the gamma distribution. Beyond 50 both exponential functions are continued by their
  tangents. For labels the loss is exp(-y z), the case y = 0 and a = 0 at -y z.

Two further kinds have loops of their own: MULTINOMIAL, several scores per row
(multinomial.pyx), and SCALED, a BOX whose ridge is half of a scale over which the loss is
minimized (small.pyx).

Rows are processed in blocks of 256, which stay in the cache and vectorize.
"""

from .exponentials cimport exponentials
from .logarithms cimport log_of, log_of_one_less, log_of_one_more, logarithms
from .standard cimport DBL_EPSILON, DBL_MIN, fabs
from .sums cimport Sum, add_all, result

cdef enum:
    STEEPEST = 50
    MOST_STEPS = 60

cdef enum:
    BOX
    LOGISTIC
    EXPONENTIALS
    MULTINOMIAL
    SCALED

cdef extern from *:
    """
    #include <float.h>
    #include <math.h>
    #include <stddef.h>
    #include "widest.h"

    typedef struct {
        int kind;
        double labels, low, high, tube, ridge, width, a;
        /* Rows lie on a kink within tie * max(least, |z|) of it, or v within tie. */
        double tie, least;
    } RowLoss;

    static inline double smaller_of(double a, double b) { return a < b ? a : b; }
    static inline double larger_of(double a, double b) { return a > b ? a : b; }
    static inline double sign_of_row(const RowLoss *o, double y)
    {
        return o->labels > 0.0 ? y : 1.0;
    }

    /* Fill in derivatives of a BOX with kinks: v = 0 at these. */
    WIDEST static void kinked_slopes(
        RowLoss o, const double *z, const double *y, ptrdiff_t m, double *restrict g)
    {
        for (ptrdiff_t i = 0; i < m; i++) {
            const double sign = sign_of_row(&o, y[i]), t = sign * (y[i] - z[i]);
            const double edge = o.tube + o.tie * larger_of(o.least, fabs(z[i]));
            g[i] = -sign * ((t > edge ? o.high : 0.0) + (t < -edge ? o.low : 0.0));
        }
    }

    WIDEST static void kinked_values(
        RowLoss o, const double *z, const double *y, ptrdiff_t m, double *restrict f)
    {
        for (ptrdiff_t i = 0; i < m; i++) {
            const double t = sign_of_row(&o, y[i]) * (y[i] - z[i]);
            f[i] = larger_of(t - o.tube, 0.0) * o.high
                + smaller_of(t + o.tube, 0.0) * o.low;
        }
    }

    static inline double clipped(const RowLoss *o, double q, double edge)
    {
        q -= smaller_of(larger_of(q, -edge), edge);
        return smaller_of(larger_of(q, o->low), o->high);
    }

    /* Fill in first and second derivatives of a BOX with a ridge or a width. */
    WIDEST static void bent_slopes(
        RowLoss o, const double *z, const double *y, const double *center, ptrdiff_t m,
        double *restrict g, double *restrict b)
    {
        const double r = 1.0 / (o.ridge + o.width), edge = o.tube * r;
        const double first = (o.low < 0.0 ? o.low - edge : edge) - o.tie;
        const double last = (o.high > 0.0 ? o.high + edge : -edge) + o.tie;
        for (ptrdiff_t i = 0; i < m; i++) {
            const double sign = sign_of_row(&o, y[i]), t = sign * (y[i] - z[i]);
            const double q = (t + o.width * center[i]) * r;
            g[i] = -sign * clipped(&o, q, edge);
            b[i] = (first <= q) & (q <= last) & (fabs(q) >= edge - o.tie) ? r : 0.0;
        }
    }

    WIDEST static void bent_values(
        RowLoss o, const double *z, const double *y, const double *center, ptrdiff_t m,
        double *restrict f)
    {
        const double r = 1.0 / (o.ridge + o.width), edge = o.tube * r;
        for (ptrdiff_t i = 0; i < m; i++) {
            const double t = sign_of_row(&o, y[i]) * (y[i] - z[i]);
            const double v = clipped(&o, (t + o.width * center[i]) * r, edge);
            const double shift = v - center[i];
            /* Squares may overflow where this product does not. */
            f[i] = v * (t - 0.5 * o.ridge * v) - o.tube * fabs(v)
                - 0.5 * o.width * shift * shift;
        }
    }

    /* Fill in conjugates and sizes of their terms; return whether some v is not in the
       box, which it may leave by rounding. */
    WIDEST static int box_conjugates(
        RowLoss o, const double *u, const double *y, const double *s,
        const double *center, ptrdiff_t m, double *restrict h, double *restrict size)
    {
        const double slack = 1.0 + 4.0 * DBL_EPSILON;
        const double low = o.low * slack, high = o.high * slack;
        int outside = 0;
        for (ptrdiff_t i = 0; i < m; i++) {
            const double weighted = -sign_of_row(&o, y[i]) * u[i];
            const double v = weighted / (s[i] > 0.0 ? s[i] : 1.0), shift = v - center[i];
            outside |= (weighted < s[i] * low) | (weighted > s[i] * high);
            h[i] = u[i] * y[i] + o.tube * fabs(u[i])
                + 0.5 * s[i] * (o.ridge * v * v + o.width * shift * shift);
            size[i] = 2.0 * fabs(u[i] * y[i]) + s[i] * o.width * center[i] * center[i];
        }
        return outside;
    }

    /* The same of the logistic loss, where e is exp(-|t|). */
    WIDEST static void logistic_slopes(
        const double *t, const double *e, const double *y, ptrdiff_t m,
        double *restrict g, double *restrict b)
    {
        for (ptrdiff_t i = 0; i < m; i++) {
            const double r = 1.0 / (1.0 + e[i]);
            g[i] = -y[i] * ((t[i] > 0.0 ? 1.0 : e[i]) * r);
            b[i] = e[i] * r * r;
        }
    }

    WIDEST static void logistic_values(
        const double *t, const double *e, ptrdiff_t m, double *restrict f)
    {
        for (ptrdiff_t i = 0; i < m; i++)
            f[i] = log_of_one_more(e[i]) + larger_of(t[i], 0.0);
    }

    /* The same of both exponential functions, v = exp(b z) and w = y exp(-a z). */
    WIDEST static void exponential_slopes(
        const double *v, const double *w, double a, ptrdiff_t m,
        double *restrict g, double *restrict b)
    {
        for (ptrdiff_t i = 0; i < m; i++) {
            g[i] = v[i] - w[i];
            b[i] = (1.0 - a) * v[i] + a * w[i];
        }
    }

    static const double NO_CENTER[256] = {0.0};
    """
    ctypedef struct RowLoss:
        int kind
        double labels, low, high, tube, ridge, width, a, tie, least

    const double* NO_CENTER
    void kinked_slopes(
        RowLoss o, const double* z, const double* y, Py_ssize_t m, double* g
    ) noexcept nogil
    void kinked_values(
        RowLoss o, const double* z, const double* y, Py_ssize_t m, double* f
    ) noexcept nogil
    void bent_slopes(
        RowLoss o, const double* z, const double* y, const double* center, Py_ssize_t m,
        double* g, double* b,
    ) noexcept nogil
    void bent_values(
        RowLoss o, const double* z, const double* y, const double* center, Py_ssize_t m,
        double* f,
    ) noexcept nogil
    void logistic_slopes(
        const double* t, const double* e, const double* y, Py_ssize_t m,
        double* g, double* b,
    ) noexcept nogil
    void logistic_values(
        const double* t, const double* e, Py_ssize_t m, double* f
    ) noexcept nogil
    void exponential_slopes(
        const double* v, const double* w, double a, Py_ssize_t m, double* g, double* b
    ) noexcept nogil
    int box_conjugates(
        RowLoss o, const double* u, const double* y, const double* s,
        const double* center, Py_ssize_t m, double* h, double* size,
    ) noexcept nogil


cdef struct Powers:
    # v = exp(b z) and w = y exp(-a z), and for rows with y > 0 the arguments of w.
    double[256] v
    double[256] w
    double[256] t
    Py_ssize_t[256] positive
    Py_ssize_t n_positive


cdef inline RowLoss loss_of(form) except *:
    """Return the loss given in Python by eight numbers."""
    cdef RowLoss o
    o.kind, o.labels, o.low, o.high, o.tube, o.ridge, o.width, o.a = (
        tuple(form)
    )
    o.tie = o.least = 0.0
    return o


cdef inline void formulas(
    const RowLoss* o,
    const double* z,
    const double* y,
    const double* center,
    Py_ssize_t m,
    double* f,
    double* g,
    double* b,
) noexcept nogil:
    """Write losses and their first and second derivatives by z for m <= 256 rows.

    Each of f, g and b may be NULL. Centers are needed if there is a width.
    """
    cdef Py_ssize_t i
    cdef double[256] x, e, room
    cdef Powers powers
    if o.kind == BOX and o.ridge + o.width == 0.0:
        if f != NULL:
            kinked_values(o[0], z, y, m, f)
        if g != NULL:
            kinked_slopes(o[0], z, y, m, g)
    elif o.kind == BOX:
        center = center if o.width > 0.0 else NO_CENTER
        if f != NULL:
            bent_values(o[0], z, y, center, m, f)
        if g != NULL or b != NULL:
            g, b = g if g != NULL else room, b if b != NULL else room
            bent_slopes(o[0], z, y, center, m, g, b)
    elif o.kind == LOGISTIC:
        # Exponentials are computed of -|t|, so that nothing overflows.
        for i in range(m):
            x[i] = -y[i] * z[i]
            e[i] = -fabs(x[i])
        exponentials(e, m)
        if g != NULL or b != NULL:
            g, b = g if g != NULL else room, b if b != NULL else room
            logistic_slopes(x, e, y, m, g, b)
        if f != NULL:
            logistic_values(x, e, m, f)
    elif o.labels > 0.0:
        for i in range(m):
            x[i], e[i] = -y[i] * z[i], 0.0
        exponential_rows(o.a, x, e, m, f, g, b, &powers)
        if g != NULL:
            for i in range(m):
                g[i] *= -y[i]
    else:
        exponential_rows(o.a, z, y, m, f, g, b, &powers)


cdef inline void slopes_on_line(
    const RowLoss* o,
    const double* z,
    const double* dz,
    const double* y,
    const double* s,
    const double* center,
    Py_ssize_t n,
    double step,
    double* slope,
    double* curvature,
) noexcept nogil:
    """Compute slope and curvature of the weighted sum of losses at z + step dz."""
    cdef Py_ssize_t i, start, m
    cdef double change
    cdef double[256] x, g, b
    cdef Sum first = Sum(0.0, 0.0), second = Sum(0.0, 0.0)
    for start in range(0, n, 256):
        m = min(256, n - start)
        for i in range(m):
            x[i] = z[start + i] + step * dz[start + i]
        formulas(o, x, y + start, center + start, m, NULL, g, b)
        for i in range(m):
            change = s[start + i] * dz[start + i]
            g[i] *= change
            b[i] *= change * dz[start + i]
        add_all(&first, g, m)
        add_all(&second, b, m)
    slope[0], curvature[0] = result(&first), result(&second)


cdef inline void exponential_rows(
    double a,
    const double* z,
    const double* y,
    Py_ssize_t m,
    double* f,
    double* g,
    double* b,
    Powers* p,
) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef double[256] room
    cdef double rising = 1.0 - a, inverse = 1.0 / rising if rising > 0.0 else 0.0
    find_powers(p, z, y, m, a)
    if g != NULL or b != NULL:
        g, b = g if g != NULL else room, b if b != NULL else room
        exponential_slopes(p.v, p.w, a, m, g, b)
    if f == NULL:
        return
    for i in range(m):
        f[i] = p.v[i] * (1.0 + max(rising * z[i] - STEEPEST, 0.0)) * inverse
    if rising == 0.0:
        for i in range(m):
            f[i] = z[i]
    if a == 0.0:
        for i in range(m):
            f[i] -= y[i] * z[i]
        return
    for j in range(p.n_positive):
        i = p.positive[j]
        f[i] += p.w[i] / a * (1.0 + max(p.t[j] - STEEPEST, 0.0))


cdef inline void find_powers(
    Powers* p, const double* z, const double* y, Py_ssize_t m, double a
) noexcept nogil:
    """Compute v and w; rows with y = 0 need no w, and most insurance claims are zero.
    """
    cdef Py_ssize_t i, j
    cdef double[256] e
    if a < 1.0:
        for i in range(m):
            p.v[i] = min((1.0 - a) * z[i], STEEPEST)
        exponentials(p.v, m)
    else:
        for i in range(m):
            p.v[i] = 1.0
    if a == 0.0:
        for i in range(m):
            p.w[i] = y[i]
        return
    find_positive(p, y, m)
    for j in range(p.n_positive):
        e[j] = y[p.positive[j]]
    logarithms(e, p.n_positive, p.t)
    for j in range(p.n_positive):
        p.t[j] -= a * z[p.positive[j]]
        e[j] = min(p.t[j], STEEPEST)
    exponentials(e, p.n_positive)
    for j in range(p.n_positive):
        p.w[p.positive[j]] = e[j]


cdef inline void find_positive(Powers* p, const double* y, Py_ssize_t m) noexcept nogil:
    """Find the rows with y > 0, and set w to zero for all rows."""
    cdef Py_ssize_t i
    p.n_positive = 0
    for i in range(m):
        p.w[i] = 0.0
        p.positive[p.n_positive] = i
        p.n_positive += y[i] >= DBL_MIN


cdef inline bint conjugates(
    const RowLoss* o,
    const double* u,
    const double* y,
    const double* s,
    const double* center,
    Py_ssize_t m,
    double* h,
    double* size,
) noexcept nogil:
    """Write conjugates s h(v) of m <= 256 rows for dual points u = s g.

    Rounding errors are proportional to ``size``, the sum of the absolute terms of h at
    u and at u = 0. Returns whether a row is outside of the domain.
    """
    cdef Py_ssize_t i
    cdef double[256] v, zeros
    cdef Powers powers
    cdef double p, c
    cdef bint outside = False
    if o.kind == BOX:
        center = center if o.width > 0.0 else NO_CENTER
        return box_conjugates(o[0], u, y, s, center, m, h, size)
    for i in range(m):
        v[i] = (-y[i] if o.labels > 0.0 else 1.0) * u[i]
        v[i] /= s[i] if s[i] > 0.0 else 1.0
    if o.kind == LOGISTIC:
        for i in range(m):
            # Rounding errors may put v slightly outside of the interval.
            outside |= (v[i] < 0.0) | (v[i] > 1.0 + 4.0 * DBL_EPSILON)
            p = min(v[i], 1.0)
            c = log_of_one_less(min(p, 1.0 - 0.5 * DBL_EPSILON))
            h[i] = s[i] * (p * log_of(max(p, DBL_MIN)) + (1.0 - p) * c)
            # The change of h with v near one.
            size[i] = -s[i] * c if p > 0.5 else 0.0
    else:
        if o.labels > 0.0:
            for i in range(m):
                zeros[i] = 0.0
            y = zeros
        for i in range(m):
            v[i] = v[i] if s[i] > 0.0 else 0.0
        outside = exponential_conjugates(o.a, v, y, m, h, size, &powers)
        for i in range(m):
            h[i] *= s[i]
            size[i] *= s[i]
    return outside


cdef inline bint exponential_conjugates(
    double a,
    const double* u,
    const double* y,
    Py_ssize_t m,
    double* h,
    double* size,
    Powers* p,
) noexcept nogil:
    """Write (v ln v - v) / b + (w ln(w / y) - w) / a with v - w = u, and sizes.

    Any split of u into v and w gives an upper bound, and the minimum has v = exp(b z),
    w = y exp(-a z). For a = 0 there is no second term, and for b = 0 no first one.
    Returns whether some u have no such split.
    """
    cdef Py_ssize_t i
    cdef double v, w, ln, b = 1.0 - a, first = 1.0 / b if b > 0.0 else 0.0
    cdef double[256] unit, ln_v, ln_w, ln_y
    cdef bint outside = split(p, u, y, m, a, unit)
    logarithms(p.v, m, ln_v)
    logarithms(y, m, ln_y)
    for i in range(m):
        v, ln = p.v[i], fabs(ln_y[i])
        h[i] = first * (v * ln_v[i] - v)
        size[i] = first * (fabs(v * ln_v[i]) + v + unit[i] * (b * ln + 1.0))
    if a > 0.0:
        logarithms(p.w, m, ln_w)
        for i in range(m):
            w, ln = p.w[i], fabs(ln_y[i])
            h[i] += (w * ln_w[i] - w - w * ln_y[i]) / a
            size[i] += (fabs(w * ln_w[i]) + w + w * ln) / a
            size[i] += unit[i] * ((1.0 + b) * ln + 1.0) / a
    return outside


cdef inline bint split(
    Powers* p, const double* u, const double* y, Py_ssize_t m, double a, double* unit
) noexcept nogil:
    """Compute v and w with v - w = u and the least conjugate, and y^b.

    Returns whether there are none. In units of y^b let x >= 1 be the larger of the two;
    the smaller one is x^-q, and x - x^-q = |u|. The left side is concave and increasing
    in x, so Newton's method converges from below. Powers near 1 or 2 need up to ten
    steps, others four to six.
    """
    cdef Py_ssize_t i, j, k, n
    cdef double c, move, b = 1.0 - a, slack = 4.0 * DBL_EPSILON
    cdef double[256] difference, power, x, less
    cdef bint outside = False, moves
    if a == 0.0 or b == 0.0:
        for i in range(m):
            unit[i] = y[i] if a == 0.0 else 1.0
            c = unit[i] + u[i] if a == 0.0 else 1.0 - u[i]
            outside |= c < -slack * unit[i]
            p.v[i] = p.w[i] = max(c, 0.0)
        return outside
    find_positive(p, y, m)
    n = p.n_positive
    for j in range(n):
        difference[j] = y[p.positive[j]]
    logarithms(difference, n, difference)
    for j in range(n):
        difference[j] *= b
    exponentials(difference, n)
    for i in range(m):
        unit[i] = 0.0
    for j in range(n):
        i, c = p.positive[j], u[p.positive[j]]
        unit[i] = difference[j]
        # For larger differences in units of y^b the smaller part is negligible.
        move = max(1e-300 * fabs(c), DBL_MIN)
        difference[j] = fabs(c) / max(unit[i], move)
        power[j] = a / b if c > 0.0 else b / a
        x[j] = max(1.0 + difference[j] / (1.0 + power[j]), difference[j])
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
        p.w[p.positive[j]] = unit[p.positive[j]] * less[j]
    for i in range(m):
        outside |= u[i] < 0.0 and y[i] < DBL_MIN
        p.v[i] = p.w[i] + max(u[i], 0.0)
        p.w[i] -= min(u[i], 0.0)
    return outside

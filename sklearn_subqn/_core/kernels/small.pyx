"""Minimizing J(w) = alpha / 2 ||w||² + sum_i s_i loss_i(z_i), z = X w + o, in one loop.

For few dense rows: calls from elsewhere would take longer than the computation. The loss
of a row is the maximum over its dual variable v in [low, high] of

    v t - tube |v| - h(v),                                                          (1)

where h is ridge / 2 v² and t = sign (y - z), as in ``box.pyx``; or the entropy of v in
[0, 1] and t = -y z; or v ln v - v and t = -y z of labels, t = z of counts y, from which
y z is subtracted. Subgradients by z are u = s (v dt/dz - c), where c is y of counts and
else zero.

The proximal method of multipliers on the dual (Rockafellar 1976, Algorithm A, eq. 1.7)
subtracts width / 2 (v - center)² from a loss with kinks, which makes it smooth with

    v(t) = clip(soft(center + t / width, tube / width)),   u(t) its gradient,       (2)

minimizes that, moves the center to v and shrinks the width. The minimum is found by
semismooth Newton steps (Qi and Sun 1993, eq. 2.1; the generalized Hessian is
alpha I + Xᵀ diag(s v'(t)) X) with an exact line search by bracketed Newton steps. Other
losses are their own envelopes.

Every v proves a bound: the sum of what Fenchel-Young's inequality leaves in each row,
and ||alpha w + Xᵀu||² / (2 alpha), is the gap between J(w) and the dual value of u,

    J(w) - D(u) = sum_i s_i (loss_i(t_i) - (v_i t_i - tube |v_i| - h(v_i)))
                  + ||alpha w + Xᵀu||² / (2 alpha),                                 (3)

if u sums to zero where there is a free intercept. Callers balance it and compute J and
the bound with its rounding errors themselves: this gap only says when to stop.
"""

from .rows cimport allocate
from .standard cimport INFINITY, exp, fabs, free, log, memset, sqrt

cdef enum:
    BOX
    LOGISTIC
    EXPONENTIAL
    # Centers, Newton steps for each, and trials of a line search, at most.
    MOST_CENTERS = 60
    MOST_STEPS = 50
    MOST_TRIALS = 60

# A line search may leave 1 % of the slope, and Newton steps may leave 5 % of the gap.
cdef double LEFT = 1e-2, SHARE = 0.05

# Each width is a quarter of the one before, down to 1 % of the first: narrow ones magnify
# the rounding errors of t in v. Three centers in a row may bring nothing.
cdef double FACTOR = 0.25, NARROWEST = 1e-2
cdef int MOST_STUCK = 3

# Gaps below 1e-15 of J are taken for rounding errors.
cdef double ROUNDED = 1e-15

# The curvature of free parameters is at least 1e-6 of what it is with all rows bent.
cdef double LEAST = 1e-6

# Exponential functions go on as their tangents from here on.
cdef double STEEPEST = 50.0


cdef struct Problem:
    const double* X
    const double* y
    const double* s
    Py_ssize_t n, d, q, n_penalized
    int kind
    double labels, linear, low, high, tube, ridge, alpha, width
    double* w
    double* z
    double* center
    double* v
    double* bend
    double* g
    double* p
    double* dz
    double* H


def minimize(
    const double[:, ::1] X,
    const double[::1] targets,
    const double[::1] offsets,
    const double[::1] weights,
    int kind,
    double labels,
    double low,
    double high,
    double tube,
    double ridge,
    double alpha,
    Py_ssize_t n_penalized,
    double tol,
    double infimum,
    double width,
    double[::1] w,
    double[::1] center,
    double[::1] dual,
):
    """Minimize until the gap (3) is at most tol |J - infimum|, or shrinks no more.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    targets, offsets, weights : ndarray of shape (n,)
        y, o and s.
    kind, labels, low, high, tube, ridge
        The loss: 0 for a box, 1 for the logistic loss, 2 for exponential functions.
    alpha, n_penalized
        Parameters from ``n_penalized`` on are free.
    tol, infimum : float
    width : float
        The first width; zero for losses that are their own envelopes.
    w : ndarray of shape (q,)
        The start; on return the minimizer. With q = d + 1 the last is an intercept.
    center : ndarray of shape (n,)
        The first center; on return the last one.
    dual : ndarray of shape (n,)
        On return u.

    Returns
    -------
    reached : bool
        Whether the gap is so small.
    width : float
        The width to go on with.
    """
    cdef Py_ssize_t i, n = X.shape[0], d = X.shape[1], q = w.shape[0]
    cdef double gap = INFINITY, last
    cdef int stuck = 0, k
    cdef bint done = False
    cdef double narrowest = NARROWEST * width
    cdef Problem o
    if q < d or q > d + 1 or n_penalized > q or not n:
        raise ValueError(f"{q} parameters for {n} rows of {d} features")
    for length in map(len, (targets, offsets, weights, center, dual)):
        if length != n:
            raise ValueError(f"{length} numbers for {n} rows")
    if kind == BOX and ridge + width <= 0.0:
        raise ValueError("losses with kinks need a width")
    cdef double* room = <double*> allocate((4 * n + q * (q + 2)) * sizeof(double))
    o.X, o.y, o.s = &X[0, 0], &targets[0], &weights[0]
    o.n, o.d, o.q, o.n_penalized = n, d, q, n_penalized
    o.kind, o.labels, o.low, o.high = kind, labels, low, high
    o.linear = 1.0 if kind == EXPONENTIAL and labels == 0.0 else 0.0
    o.tube, o.ridge, o.alpha, o.width = tube, ridge, alpha, width
    o.w, o.center = &w[0], &center[0]
    o.z, o.dz, o.v, o.bend = room, room + n, room + 2 * n, room + 3 * n
    o.g, o.p, o.H = room + 4 * n, room + 4 * n + q, room + 4 * n + 2 * q
    try:
        with nogil:
            forward(&o, o.w, o.z)
            for i in range(n):
                o.z[i] += offsets[i]
            for k in range(MOST_CENTERS):
                last = gap
                done = minimize_envelope(&o, tol, infimum, &gap)
                if done or o.width == 0.0:
                    break
                stuck = stuck + 1 if gap > 0.5 * last else 0
                if stuck == MOST_STUCK:
                    break
                for i in range(n):
                    o.center[i] = o.v[i]
                o.width = max(FACTOR * o.width, narrowest)
            for i in range(n):
                dual[i] = slope_of(&o, i)
    finally:
        free(room)
    return bool(done), o.width


cdef bint minimize_envelope(
    Problem* o, double tol, double infimum, double* gap
) noexcept nogil:
    """Take Newton steps for one center; return whether the gap is small enough."""
    cdef Py_ssize_t i, j
    cdef double value, excess, left, reach, slope, step, last = gap[0]
    cdef double least = LEAST / (o.ridge + o.width) if o.kind == BOX else 1e-12
    cdef int k
    for k in range(MOST_STEPS):
        value = excess = left = reach = 0.0
        for i in range(o.n):
            respond(o, i, &value, &excess, &reach)
        gradient(o)
        for j in range(o.n_penalized):
            value += 0.5 * o.alpha * o.w[j] * o.w[j]
            left += o.g[j] * o.g[j]
        left /= 2.0 * o.alpha
        # What balancing u may take: variables shrink by as much as these sum to.
        for j in range(o.n_penalized, o.q):
            left += fabs(o.g[j]) * reach
        gap[0] = min(gap[0], left + excess)
        if left + excess <= tol * fabs(value - infimum):
            return True
        if k > 0 and left <= max(SHARE * min(excess, last), ROUNDED * fabs(value)):
            return False
        hessian(o)
        for j in range(o.n_penalized, o.q):
            o.H[j * o.q + j] = max(o.H[j * o.q + j], least)
        if not solve(o.H, o.g, o.p, o.q):
            return False
        slope = 0.0
        for j in range(o.q):
            slope += o.p[j] * o.g[j]
        forward(o, o.p, o.dz)
        step = line_search(o, slope)
        if not 0.0 < step < INFINITY:
            return False
        for j in range(o.q):
            o.w[j] += step * o.p[j]
        for i in range(o.n):
            o.z[i] += step * o.dz[i]
    return False


# The loss of a row.


cdef inline double change(Problem* o, Py_ssize_t i) noexcept nogil:
    """Return dt/dz."""
    if o.labels > 0.0:
        return -o.y[i]
    return 1.0 if o.kind == EXPONENTIAL else -1.0


cdef inline double variable(
    Problem* o, double t, double center, double width, double* bend
) noexcept nogil:
    """Return v of eq. 2 and its derivative by t."""
    cdef double e, r, q, edge
    if o.kind == LOGISTIC:
        e = exp(-fabs(t))
        bend[0] = e / ((1.0 + e) * (1.0 + e))
        return (1.0 if t > 0.0 else e) / (1.0 + e)
    if o.kind == EXPONENTIAL:
        bend[0] = exp(min(t, STEEPEST))
        return bend[0]
    r = 1.0 / (o.ridge + width)
    q = (width * center + t) * r
    edge = o.tube * r
    q -= min(max(q, -edge), edge)
    bend[0] = r if o.low < q < o.high and (q != 0.0 or edge == 0.0) else 0.0
    return min(max(q, o.low), o.high)


cdef inline double argument(Problem* o, Py_ssize_t i, double z) noexcept nogil:
    """Return t."""
    if o.kind == BOX:
        return change(o, i) * (z - o.y[i])
    return change(o, i) * z


cdef inline void respond(
    Problem* o, Py_ssize_t i, double* value, double* excess, double* reach
) noexcept nogil:
    """Fill v and its bend; add the loss, what v leaves of it (3), and s |t|."""
    cdef double t = argument(o, i, o.z[i]), loss, bound, v, ignored
    o.v[i] = v = variable(o, t, o.center[i], o.width, &o.bend[i])
    o.bend[i] *= o.s[i]
    reach[0] += o.s[i] * fabs(t)
    if o.kind == LOGISTIC:
        value[0] += o.s[i] * (max(t, 0.0) + log(1.0 + exp(-fabs(t))))
        return
    if o.kind == EXPONENTIAL:
        value[0] += o.s[i] * (v * (1.0 + max(t - STEEPEST, 0.0)) - o.linear * o.y[i] * t)
        return
    bound = v * (t - 0.5 * o.ridge * v) - o.tube * fabs(v)
    if o.ridge > 0.0:
        v = variable(o, t, 0.0, 0.0, &ignored)
        loss = v * (t - 0.5 * o.ridge * v) - o.tube * fabs(v)
    else:
        loss = max(t - o.tube, 0.0) * o.high + min(t + o.tube, 0.0) * o.low
    value[0] += o.s[i] * loss
    excess[0] += o.s[i] * max(loss - bound, 0.0)


cdef inline double slope_of(Problem* o, Py_ssize_t i) noexcept nogil:
    """Return u."""
    return o.s[i] * (change(o, i) * o.v[i] - o.linear * o.y[i])


# Sums over rows.


cdef void forward(Problem* o, const double* w, double* z) noexcept nogil:
    """Fill z = X w."""
    cdef Py_ssize_t i, j
    cdef const double* x = o.X
    cdef double a, b, first = w[o.d] if o.q > o.d else 0.0
    for i in range(o.n):
        a, b = first, 0.0
        for j in range(0, o.d - 1, 2):
            a += x[j] * w[j]
            b += x[j + 1] * w[j + 1]
        if o.d % 2:
            a += x[o.d - 1] * w[o.d - 1]
        z[i] = a + b
        x += o.d


cdef void gradient(Problem* o) noexcept nogil:
    """Fill g = alpha w + Xᵀu."""
    cdef Py_ssize_t i, j
    cdef const double* x = o.X
    cdef double u
    for j in range(o.q):
        o.g[j] = o.alpha * o.w[j] if j < o.n_penalized else 0.0
    for i in range(o.n):
        u = slope_of(o, i)
        if u != 0.0:
            for j in range(o.d):
                o.g[j] += u * x[j]
            if o.q > o.d:
                o.g[o.d] += u
        x += o.d


cdef void hessian(Problem* o) noexcept nogil:
    """Fill the upper half of H = alpha I + Xᵀ diag(bend) X, four rows at once."""
    cdef Py_ssize_t i = 0, j, k, m, size, q = o.q, d = o.d
    cdef const double* x[4]
    cdef double[4] c
    cdef double[4] a
    cdef double* H
    memset(o.H, 0, q * q * sizeof(double))
    for j in range(o.n_penalized):
        o.H[j * q + j] = o.alpha
    while i < o.n:
        size = 0
        while i < o.n and size < 4:
            if o.bend[i] > 0.0:
                x[size], c[size] = o.X + i * d, o.bend[i]
                size += 1
            i += 1
        if not size:
            return
        for m in range(size, 4):
            x[m], c[m] = x[0], 0.0
        for j in range(d):
            H = o.H + j * q
            for m in range(4):
                a[m] = c[m] * x[m][j]
            for k in range(j, d):
                H[k] += (a[0] * x[0][k] + a[1] * x[1][k]) + (a[2] * x[2][k] + a[3] * x[3][k])
            if q > d:
                H[d] += (a[0] + a[1]) + (a[2] + a[3])
        if q > d:
            o.H[d * q + d] += (c[0] + c[1]) + (c[2] + c[3])


cdef bint solve(double* H, const double* g, double* p, Py_ssize_t q) noexcept nogil:
    """Fill p with -H⁻¹ g by H = RᵀR, the upper half of H becoming R."""
    cdef Py_ssize_t i, j, k
    cdef double a
    for i in range(q):
        a = H[i * q + i]
        if not 0.0 < a < INFINITY:
            return False
        a = 1.0 / sqrt(a)
        for j in range(i, q):
            H[i * q + j] *= a
        for k in range(i + 1, q):
            a = H[i * q + k]
            for j in range(k, q):
                H[k * q + j] -= a * H[i * q + j]
    for i in range(q):
        p[i] = -g[i]
    for i in range(q):
        p[i] /= H[i * q + i]
        for j in range(i + 1, q):
            p[j] -= H[i * q + j] * p[i]
    for i in range(q - 1, -1, -1):
        for j in range(i + 1, q):
            p[i] -= H[i * q + j] * p[j]
        p[i] /= H[i * q + i]
    return True


cdef double line_search(Problem* o, double slope) noexcept nogil:
    """Return a step to where little of the slope is left, by bracketed Newton steps."""
    cdef Py_ssize_t i, j
    cdef double low = 0.0, high = INFINITY, step = 1.0, wp = 0.0, pp = 0.0
    cdef double first, second, bend, dt, v, t, following, linear = 0.0
    cdef int k
    if not slope < 0.0:
        return 0.0
    for j in range(o.n_penalized):
        wp += o.w[j] * o.p[j]
        pp += o.p[j] * o.p[j]
    for i in range(o.n):
        linear -= o.s[i] * o.linear * o.y[i] * o.dz[i]
    for k in range(MOST_TRIALS):
        first, second = linear + o.alpha * (wp + step * pp), o.alpha * pp
        for i in range(o.n):
            dt = change(o, i) * o.dz[i]
            t = argument(o, i, o.z[i]) + step * dt
            v = variable(o, t, o.center[i], o.width, &bend)
            first += o.s[i] * dt * v
            second += o.s[i] * dt * dt * bend
        if fabs(first) <= LEFT * -slope:
            break
        if first < 0.0:
            low = step
        else:
            high = step
        following = step - first / second if second > 0.0 else INFINITY
        if not low < following < high or following > 10.0 * step:
            following = 0.5 * (low + high) if high < INFINITY else 4.0 * step
        step = following
    return step

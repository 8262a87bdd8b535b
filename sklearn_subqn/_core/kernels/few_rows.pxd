"""Dense rows of one score each: their losses, and sums over them.

The loss of a row is the maximum over its dual variable v in [low, high] of

    v t - tube |v| - h(v),                                                          (1)

where h is ridge / 2 v² and t = sign (y - z), as in ``box.pyx``; or the entropy of v in
[0, 1] and t = -y z; or v ln v - v and t = -y z of labels, t = z of counts y, from which
y t is subtracted. Subgradients by z are u = s (v - c) dt/dz, where c is y of counts and
else zero. The loss y exp(-z) + z of the gamma distribution is that of counts y = 1 with
t = ln y - z, except for ln y.
"""

from .dense_rows cimport dense_adjoint, dense_forward
from .exponentials cimport exponentials
from .standard cimport fabs, log

cdef enum:
    BOX
    LOGISTIC
    EXPONENTIAL
    GAMMA = 4
    # Exponential functions go on as their tangents from here on.
    STEEPEST = 50


cdef struct FewRows:
    const double* X
    const double* y
    const double* s
    # There is an intercept if q parameters are one more than d features.
    Py_ssize_t n, d, q
    # What multiplies columns, of an intercept one, and room for such products.
    double* factors
    double* scaled
    int kind
    double labels, linear, low, high, tube, ridge
    # The center and the width of envelopes, which are smooth losses.
    double* center
    double width
    # Scores, dual variables with their derivatives by t times s, exponentials, and
    # subgradients.
    double* z
    double* v
    double* bend
    double* e
    double* u


cdef inline double change(const FewRows* o, Py_ssize_t i) noexcept nogil:
    """Return dt/dz."""
    if o.labels > 0.0:
        return -o.y[i]
    return 1.0 if o.kind == EXPONENTIAL else -1.0


cdef inline double argument(const FewRows* o, Py_ssize_t i, double z) noexcept nogil:
    """Return t, of losses that are not of boxes."""
    return change(o, i) * z


cdef inline double variable(
    const FewRows* o, Py_ssize_t i, double t, double* bend
) noexcept nogil:
    """Return v and dv/dt, after ``exponentials_at`` the same t."""
    cdef double e = o.e[i]
    if o.kind == EXPONENTIAL:
        bend[0] = e
        return e
    bend[0] = e / ((1.0 + e) * (1.0 + e))
    return (1.0 if t > 0.0 else e) / (1.0 + e)


cdef inline void exponentials_at(
    const FewRows* o, double step, const double* dz
) noexcept nogil:
    """Fill in what losses at z + step dz need of exponential functions."""
    cdef Py_ssize_t i
    cdef double t
    for i in range(o.n):
        t = argument(o, i, o.z[i] + step * dz[i])
        o.e[i] = -fabs(t) if o.kind == LOGISTIC else min(t, STEEPEST)
    exponentials(o.e, o.n)


cdef inline double loss_at(const FewRows* o, Py_ssize_t i, double t) noexcept nogil:
    """Return the loss."""
    if o.kind == LOGISTIC:
        return max(t, 0.0) + log(1.0 + o.e[i])
    return o.v[i] * (1.0 + max(t - STEEPEST, 0.0)) - o.linear * o.y[i] * t


cdef inline double subgradient(const FewRows* o, Py_ssize_t i) noexcept nogil:
    """Return u."""
    return o.s[i] * change(o, i) * (o.v[i] - o.linear * o.y[i])


cdef inline void forward(const FewRows* o, const double* w, double* z) noexcept nogil:
    """Fill z = X w, of columns times their factors."""
    cdef Py_ssize_t j
    for j in range(o.q):
        o.scaled[j] = o.factors[j] * w[j]
    dense_forward(o.X, o.n, o.d, o.q, o.scaled, z, 1)


cdef inline void adjoint(const FewRows* o, double* g) noexcept nogil:
    """Fill g = Xᵀu, of columns times their factors, and u."""
    cdef Py_ssize_t i, j
    for i in range(o.n):
        o.u[i] = subgradient(o, i)
    dense_adjoint(o.X, o.n, o.d, o.q, o.u, g)
    for j in range(o.q):
        g[j] *= o.factors[j]

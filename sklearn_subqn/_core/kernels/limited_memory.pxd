"""The inverse Hessian of L-BFGS for few parameters, with any initial estimate.

The two loops of Nocedal (1980, p. 779); callers apply the initial estimate in between.
"""

from scipy.linalg.cython_blas cimport daxpy, ddot

from .standard cimport memcpy

cdef enum:
    # Capacity of the ring buffers: ten pairs, and the pair of the current step.
    MEMORY = 11


cdef struct Pairs:
    # Ring buffers of displacements dw of parameters and dg of gradients, m numbers
    # each.
    Py_ssize_t m
    int n
    double* dw
    double* dg
    double[MEMORY] curvature
    double[MEMORY] share


cdef inline double inner(const double* a, const double* b, Py_ssize_t m) noexcept nogil:
    cdef int size = <int> m, one = 1
    return ddot(&size, <double*> a, &one, <double*> b, &one)


cdef inline void add_multiple(
    double* a, double factor, const double* b, Py_ssize_t m
) noexcept nogil:
    cdef int size = <int> m, one = 1
    daxpy(&size, &factor, <double*> b, &one, a, &one)


cdef inline void begin_step(
    Pairs* o, const double* w, const double* g
) noexcept nogil:
    """Store the parameters and their gradient before a step."""
    cdef int j = o.n % MEMORY
    memcpy(o.dw + j * o.m, w, o.m * sizeof(double))
    memcpy(o.dg + j * o.m, g, o.m * sizeof(double))


cdef inline void take_back(const Pairs* o, double* w) noexcept nogil:
    """Restore the parameters before the step."""
    memcpy(w, o.dw + (o.n % MEMORY) * o.m, o.m * sizeof(double))


cdef inline void end_step(Pairs* o, const double* w, const double* g) noexcept nogil:
    """Store the pair of the step if its curvature is positive."""
    cdef int j = o.n % MEMORY
    cdef double* dw = o.dw + j * o.m
    cdef double* dg = o.dg + j * o.m
    cdef Py_ssize_t i
    for i in range(o.m):
        dw[i] = w[i] - dw[i]
        dg[i] = g[i] - dg[i]
    o.curvature[j] = inner(dw, dg, o.m)
    if o.curvature[j] > 0.0:
        o.n += 1


cdef inline void first_loop(Pairs* o, double* p) noexcept nogil:
    cdef int i, j
    for i in range(o.n - 1, max(o.n - MEMORY, -1), -1):
        j = i % MEMORY
        o.share[j] = inner(o.dw + j * o.m, p, o.m) / o.curvature[j]
        add_multiple(p, -o.share[j], o.dg + j * o.m, o.m)


cdef inline void second_loop(Pairs* o, double* p) noexcept nogil:
    cdef int i, j
    cdef double share
    for i in range(max(o.n - MEMORY + 1, 0), o.n):
        j = i % MEMORY
        share = o.share[j] - inner(o.dg + j * o.m, p, o.m) / o.curvature[j]
        add_multiple(p, share, o.dw + j * o.m, o.m)

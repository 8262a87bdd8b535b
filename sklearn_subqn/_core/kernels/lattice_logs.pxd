"""Sums over the labelings of a chain in the log domain; see ``lattice_sums.pxd``."""

from .lattice cimport Lattice
from .standard cimport INFINITY, exp, log, memset


cdef inline double forward_in_logs(
    Lattice* lattice, const double* z, Py_ssize_t stride, Py_ssize_t length
) noexcept nogil:
    """Return ln of the sum over labelings of exp(score), and write ``prefix``.

    Entry j of row t of ``prefix`` is ln of the probability of label j at token t in the
    chain that ends at token t.
    """
    cdef Py_ssize_t k = lattice.k, width = lattice.width, t, i, j
    cdef double total = 0.0, high, scale, sum
    cdef double* prefix = lattice.prefix
    cdef const double* before
    for t in range(length):
        before = prefix - width
        lattice.highs[t] = 0.0
        for j in range(k):
            if t == 0:
                prefix[j] = z[j]
                continue
            high = -INFINITY
            for i in range(k):
                sum = before[i] + lattice.transitions[i * width + j]
                high = sum if sum > high else high
            if high == -INFINITY:
                prefix[j] = -INFINITY
                continue
            scale = 0.0
            for i in range(k):
                scale += exp(before[i] + lattice.transitions[i * width + j] - high)
            prefix[j] = z[j] + high + log(scale)
        scale = log_sum(prefix, k)
        if scale == -INFINITY:
            return -INFINITY
        total += scale
        for j in range(k):
            prefix[j] -= scale
        z += stride
        prefix += width
    lattice.rest = total
    return total


cdef inline double log_sum(const double* x, Py_ssize_t k) noexcept nogil:
    """Return ln sum exp(x_j)."""
    cdef Py_ssize_t j
    cdef double high = x[0], total = 0.0
    for j in range(1, k):
        high = x[j] if x[j] > high else high
    if high == -INFINITY:
        return high
    for j in range(k):
        total += exp(x[j] - high)
    return high + log(total)


cdef inline void backward_in_logs(
    Lattice* lattice,
    const double* z,
    Py_ssize_t stride,
    Py_ssize_t length,
    double* edges,
) noexcept nogil:
    """Compute the marginals after ``forward_in_logs``, like ``backward``.

    Marginals are computed forwards, from the distribution of the first label and the
    conditional distributions of each label given the previous one. Large scores can
    make the marginals inaccurate, but never inconsistent.
    """
    cdef Py_ssize_t k = lattice.k, width = lattice.width, t, i, j
    cdef double* suffix = lattice.coming + (length - 1) * width
    cdef double* shares = lattice.suffix
    cdef double* nodes = lattice.nodes
    cdef const double* row
    cdef double total, p, share
    # Row t of ``coming`` has normalized log sums over the labelings after each label of
    # token t, including the emission of token t for t > 0.
    memset(lattice.pairs, 0, width * width * sizeof(double))
    for j in range(k):
        suffix[j] = 0.0
    for t in range(length - 1, 0, -1):
        for j in range(k):
            suffix[j] += z[t * stride + j]
        for i in range(k):
            shares[i] = _log_sum_of(lattice.transitions + i * width, suffix, k)
        total = log_sum(shares, k)
        suffix -= width
        for i in range(k):
            suffix[i] = shares[i] - total
    total = _log_sum_of(lattice.prefix, suffix, k)
    p = 0.0
    for j in range(k):
        nodes[j] = exp(lattice.prefix[j] + suffix[j] - total)
        p += nodes[j]
    for j in range(k):
        nodes[j] /= p
    for t in range(1, length):
        suffix += width
        for j in range(k):
            nodes[width + j] = 0.0
        for i in range(k):
            row = lattice.transitions + i * width
            total = _log_sum_of(row, suffix, k)
            p = 0.0
            for j in range(k):
                shares[j] = 0.0
                if nodes[i] > 0.0:
                    shares[j] = exp(row[j] + suffix[j] - total)
                p += shares[j]
            for j in range(k):
                share = nodes[i] * shares[j] / p if p > 0.0 else 0.0
                nodes[width + j] += share
                lattice.pairs[i * width + j] += share
                if edges != NULL:
                    edges[i * k + j] = share
        nodes += width
        if edges != NULL:
            edges += k * k


cdef inline double _log_sum_of(
    const double* x, const double* y, Py_ssize_t k
) noexcept nogil:
    """Return ln sum exp(x_j + y_j)."""
    cdef Py_ssize_t j
    cdef double high = x[0] + y[0], total = 0.0
    for j in range(1, k):
        high = x[j] + y[j] if x[j] + y[j] > high else high
    if high == -INFINITY:
        return high
    for j in range(k):
        total += exp(x[j] + y[j] - high)
    return high + log(total)

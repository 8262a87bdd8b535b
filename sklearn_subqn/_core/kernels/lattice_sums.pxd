"""Forward-backward sums over the labelings of a chain, and marginals.

Sums use exponentials scaled token by token (Rabiner 1989) where underflow is harmless,
and logarithms elsewhere. Underflow is harmless if any label can follow any other within
few tokens: a term that underflows is then negligible beside the term that reaches the
same label from the most probable label.
"""

from .exponentials cimport exponentials
from .lattice cimport Lattice
from .lattice_logs cimport backward_in_logs, forward_in_logs
from .padded_rows cimport (
    add_four_rows,
    add_scaled_row,
    largest_of_row,
    multiply_row,
    multiply_rows,
    row_times,
    scale_row,
)
from .standard cimport INFINITY, log, memcpy, memset

# Largest exponent of a product of factors whose square does not underflow.
cdef enum:
    SAFE_EXPONENT = 250


cdef inline bint _needs_logs(
    const Lattice* lattice, const double* z, Py_ssize_t stride, Py_ssize_t length
) noexcept nogil:
    cdef Py_ssize_t k = lattice.k, steps = length - 1, t, j
    cdef double low, high, widest = 0.0
    if lattice.steps and lattice.steps < steps:
        steps = lattice.steps
    if steps * lattice.spread > SAFE_EXPONENT:
        return True
    if lattice.steps == 1:
        return False
    for t in range(length):
        # Forbidden labels have probability zero anyway.
        low, high = INFINITY, -INFINITY
        for j in range(k):
            low = z[j] if -INFINITY < z[j] < low else low
            high = z[j] if z[j] > high else high
        widest = high - low if high - low > widest else widest
        z += stride
    return steps * (lattice.spread + widest) > SAFE_EXPONENT


cdef inline double forward(
    Lattice* lattice, const double* z, Py_ssize_t stride, Py_ssize_t length
) noexcept nogil:
    """Return ln of the sum over labelings of exp(score), and store its partial sums.

    Rows of emissions are ``stride`` numbers apart.
    """
    lattice.in_logs = _needs_logs(lattice, z, stride, length)
    if lattice.in_logs:
        return forward_in_logs(lattice, z, stride, length)
    return _forward_scaled(lattice, z, stride, length)


cdef inline double _forward_scaled(
    Lattice* lattice, const double* z, Py_ssize_t stride, Py_ssize_t length
) noexcept nogil:
    cdef Py_ssize_t k = lattice.k, width = lattice.width, t, j
    cdef double total = 0.0, product = 1.0, high, scale
    cdef double* factors = lattice.factors
    cdef double* prefix = lattice.prefix
    cdef double* suffix = lattice.suffix
    for t in range(length):
        high = largest_of_row(z, k)
        for j in range(k):
            factors[j] = z[j] - high
        for j in range(k, width):
            factors[j] = -INFINITY
        lattice.highs[t] = high
        total += high
        z += stride
        factors += width
    exponentials(lattice.factors, length * width)
    factors = lattice.factors
    lattice.rest = (length - 1) * lattice.top
    for t in range(length):
        if t == 0:
            memcpy(suffix, lattice.ones, width * sizeof(double))
        else:
            row_times(prefix - width, lattice.into, width, suffix)
        scale = multiply_rows(prefix, suffix, factors, width)
        if not scale > 0.0:
            # No labeling is allowed.
            return -INFINITY
        # Take one logarithm for several tokens.
        product *= scale
        if not 1e-150 < product < 1e150:
            lattice.rest += log(product)
            product = 1.0
        scale_row(prefix, 1.0 / scale, width)
        factors += width
        prefix += width
    lattice.rest += log(product)
    return total + lattice.rest


cdef inline void _products(
    const double* x, const double* y, Py_ssize_t n, Py_ssize_t width, double* out
) noexcept nogil:
    """Write the product xᵀ y of two arrays of shape (n, width)."""
    cdef Py_ssize_t i, t, c
    cdef double shares[4]
    memset(out, 0, width * width * sizeof(double))
    for t in range(0, n - 3, 4):
        for i in range(width):
            for c in range(4):
                shares[c] = x[c * width + i]
            add_four_rows(out + i * width, shares, y, width, width)
        x += 4 * width
        y += 4 * width
    for t in range(n & 3):
        for i in range(width):
            add_scaled_row(out + i * width, x[i], y, width)
        x += width
        y += width


cdef inline void backward(
    Lattice* lattice,
    const double* z,
    Py_ssize_t stride,
    Py_ssize_t length,
    double* edges,
) noexcept nogil:
    """Write the marginals to the lattice, after ``forward``.

    The marginals are the probabilities of labels, and the summed probabilities of pairs
    of adjacent labels. The probabilities of single pairs are written to ``edges`` of
    shape (L - 1, k, k), unless it is NULL.
    """
    cdef Py_ssize_t k = lattice.k, width = lattice.width, t, i, j
    cdef double share, scale
    cdef double* coming
    cdef double* suffix = lattice.suffix
    cdef double* nodes
    cdef const double* before
    cdef const double* row
    if lattice.in_logs:
        backward_in_logs(lattice, z, stride, length, edges)
        return
    # Label j at token t has the probability prefix[t, j] suffix[j], and label i before j
    # has prefix[t - 1, i] exp(T[i, j] - top) coming[t, j].
    before = lattice.prefix + (length - 1) * width
    nodes = lattice.nodes + (length - 1) * width
    memcpy(suffix, lattice.ones, width * sizeof(double))
    memcpy(nodes, before, width * sizeof(double))
    for t in range(length - 1, 0, -1):
        before = lattice.prefix + (t - 1) * width
        coming = lattice.coming + t * width
        nodes -= width
        multiply_rows(coming, lattice.factors + t * width, suffix, width)
        row_times(coming, lattice.out_of, width, suffix)
        # Normalization keeps rounding errors from accumulating along the sequence.
        scale = 1.0 / multiply_rows(nodes, before, suffix, width)
        scale_row(nodes, scale, width)
        scale_row(suffix, scale, width)
        scale_row(coming, scale, width)
    _products(
        lattice.prefix, lattice.coming + width, length - 1, width, lattice.pairs
    )
    multiply_row(lattice.pairs, lattice.into, k * width)
    if edges == NULL:
        return
    for t in range(1, length):
        before = lattice.prefix + (t - 1) * width
        coming = lattice.coming + t * width
        for i in range(k):
            share = before[i]
            row = lattice.into + i * width
            for j in range(k):
                edges[i * k + j] = share * row[j] * coming[j]
        edges += k * k

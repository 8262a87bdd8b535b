"""Features of one sequence and their parameters, for dual ascent over sequences.

The gradient of a sequence is summed by distinct features, because its squared norm
needs the sum over all tokens with a feature. Parameters are padded or packed as in
``pairs.pxd``; padding stays zero.
"""

from .padded_rows cimport add_scaled_row, copy_row, restrict_row
from .pairs cimport add_padded_row, padded_scores
from .rows cimport AHEAD, prefetch
from .standard cimport memset


cdef struct Parameters:
    Py_ssize_t k
    Py_ssize_t width  # k padded
    Py_ssize_t stride  # width, 0 if packed
    const int* ptr
    const unsigned short* labels
    const unsigned char* mask  # a bit of each padded parameter, four to a byte
    double* w
    double threshold
    double ones[64]  # 0/1 values of four mask bits, for each of 16 patterns


cdef struct Features:
    # The sequence has ``size`` distinct features, listed in ``own``.
    Py_ssize_t size
    const int* own
    double* params  # (size, width)
    double* gradient  # (size, width)
    # The sequence has ``length`` tokens with the stored entries ``data``; NULL for all
    # ones.
    Py_ssize_t length
    const double* data
    const int* local
    const Py_ssize_t* indptr


cdef inline double soft(double x, double threshold) noexcept nogil:
    if x > threshold:
        return x - threshold
    return x + threshold if x < -threshold else 0.0


cdef inline void set_patterns(Parameters* p) noexcept nogil:
    cdef Py_ssize_t bits, c
    for bits in range(16):
        for c in range(4):
            p.ones[4 * bits + c] = (bits >> c) & 1


cdef inline void gather(Features* f, const Parameters* p) noexcept nogil:
    """Copy the soft-thresholded parameters of the features of a sequence."""
    cdef Py_ssize_t u, b, width = p.width
    cdef const int* own = f.own
    cdef const double* w
    cdef double* params = f.params
    if p.stride:
        for u in range(f.size):
            w = p.w + width * own[u]
            if u + AHEAD < f.size:
                for b in range(0, width, 8):
                    prefetch(p.w + width * own[u + AHEAD] + b)
                prefetch(p.mask + (width >> 2) * own[u + AHEAD])
            copy_row(params, w, width)
            params += width
    else:
        _gather_packed(f, p)
    if p.threshold > 0.0:
        for u in range(f.size * width):
            f.params[u] = soft(f.params[u], p.threshold)


cdef inline void _gather_packed(Features* f, const Parameters* p) noexcept nogil:
    cdef Py_ssize_t u, q, width = p.width
    cdef const int* own = f.own
    memset(f.params, 0, f.size * width * sizeof(double))
    for u in range(f.size):
        for q in range(p.ptr[own[u]], p.ptr[own[u] + 1]):
            f.params[u * width + p.labels[q]] = p.w[q]


cdef inline void write_scores(
    const Features* f, const Parameters* p, double* z
) noexcept nogil:
    """Write the emissions of shape (L, width) for the gathered parameters."""
    cdef Py_ssize_t t, first
    for t in range(f.length):
        first = f.indptr[t]
        padded_scores(
            f.data + first if f.data != NULL else NULL, f.local + first,
            f.indptr[t + 1] - first, p.width, f.params, z + t * p.width,
        )


cdef inline double squared_gradient(
    Features* f, const Parameters* p, const double* d
) noexcept nogil:
    """Write the gradient for d of shape (L, width); return its squared norm."""
    cdef Py_ssize_t t, first, width = p.width
    memset(f.gradient, 0, f.size * width * sizeof(double))
    for t in range(f.length):
        first = f.indptr[t]
        add_padded_row(
            f.data + first if f.data != NULL else NULL, f.local + first,
            f.indptr[t + 1] - first, width, d + t * width, f.gradient,
        )
    return _restricted(f, p)


cdef inline double _restricted(Features* f, const Parameters* p) noexcept nogil:
    """Set the gradient of padding to zero; return the squared norm."""
    cdef Py_ssize_t u, q, c, width = p.width
    cdef double total = 0.0
    cdef double sums[4]
    cdef double* row
    cdef const unsigned char* mask
    if not p.stride:
        for u in range(f.size):
            row = f.gradient + u * width
            for q in range(p.ptr[f.own[u]], p.ptr[f.own[u] + 1]):
                total += row[p.labels[q]] * row[p.labels[q]]
        return total
    for c in range(4):
        sums[c] = 0.0
    for u in range(f.size):
        row = f.gradient + u * width
        mask = p.mask + (width >> 2) * f.own[u]
        restrict_row(row, p.ones, mask, width, sums)
    return (sums[0] + sums[1]) + (sums[2] + sums[3])


cdef inline void move(const Features* f, const Parameters* p, double step) noexcept nogil:
    """Subtract ``step`` times the gradient from the parameters."""
    cdef Py_ssize_t u, q, width = p.width
    cdef const double* row
    for u in range(f.size):
        row = f.gradient + u * width
        if p.stride:
            add_scaled_row(p.w + width * f.own[u], -step, row, width)
        else:
            for q in range(p.ptr[f.own[u]], p.ptr[f.own[u] + 1]):
                p.w[q] -= step * row[p.labels[q]]


cdef inline int check_features(
    const int[::1] local,
    const Py_ssize_t[::1] indptr,
    const Py_ssize_t[::1] starts,
    const int[::1] own,
    const Py_ssize_t[::1] own_ptr,
    const int[::1] ptr,
    const unsigned short[::1] labels,
    const unsigned char[::1] mask,
    const double[::1] w,
    Py_ssize_t stride,
    Py_ssize_t k,
    const Py_ssize_t[::1] order,
) except -1:
    cdef Py_ssize_t n = starts.shape[0] - 1, d = ptr.shape[0] - 1, o
    cdef Py_ssize_t n_tokens = indptr.shape[0] - 1
    if own_ptr.shape[0] != n + 1:
        raise ValueError("arrays of sequences differ in length.")
    if own_ptr[n] > own.shape[0]:
        raise ValueError("sequences and their features differ in number.")
    if starts[n] != n_tokens:
        raise ValueError("arrays of tokens differ in length.")
    if indptr[n_tokens] != local.shape[0]:
        raise ValueError("tokens and their features differ in number.")
    if stride and (stride != (k + 3) // 4 * 4 or w.shape[0] < d * stride):
        raise ValueError(f"parameters of {k} labels are not padded to {stride}.")
    if stride and mask.shape[0] != d * (stride // 4):
        raise ValueError("parameters and their mask differ in length.")
    if not stride and (ptr[d] > labels.shape[0] or w.shape[0] < labels.shape[0]):
        raise ValueError("pairs and parameters differ in length.")
    for o in range(order.shape[0]):
        if not 0 <= order[o] < n:
            raise ValueError(f"sequence {order[o]} is none of {n}.")
    return 0

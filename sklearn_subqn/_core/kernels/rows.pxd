"""Helpers of kernels: memory, products with rows, projections, upper envelopes."""

from .standard cimport free, malloc

ctypedef fused real:
    float
    double

ctypedef fused index:
    int
    long long

# Row indices may have a smaller type, because there are fewer rows than entries.
ctypedef fused row_index:
    unsigned short
    int
    long long

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define prefetch(address) __builtin_prefetch(address)
    #else
    #define prefetch(address) ((void) (address))
    #endif
    """
    void prefetch(const void*) noexcept nogil

# Number of steps by which loops prefetch ahead.
cdef enum:
    AHEAD = 16


cdef inline int same_length(
    Py_ssize_t n, Py_ssize_t a, Py_ssize_t b=-1, Py_ssize_t c=-1, Py_ssize_t d=-1
) except -1:
    """Raise ValueError unless all given lengths are n."""
    for length in (a, b, c, d):
        if length not in (n, -1):
            raise ValueError(f"arrays differ in length: {n} and {length}.")
    return 0


cdef inline void* allocate(size_t n_bytes) except NULL:
    cdef void* memory = malloc(n_bytes)
    if memory == NULL:
        raise MemoryError(f"no room for {n_bytes} bytes.")
    return memory


cdef inline void _sort(double* rise, double* height, Py_ssize_t size) noexcept nogil:
    """Sort by rise, then by height, with heap sort."""
    cdef Py_ssize_t start = size // 2, end = size, root, child
    cdef double r, h
    while end > 1:
        if start > 0:
            start -= 1
            r, h = rise[start], height[start]
        else:
            end -= 1
            r, h = rise[end], height[end]
            rise[end], height[end] = rise[0], height[0]
        root = start
        child = 2 * root + 1
        while child < end:
            if child + 1 < end and (
                rise[child] < rise[child + 1]
                or (
                    rise[child] == rise[child + 1]
                    and height[child] < height[child + 1]
                )
            ):
                child += 1
            if rise[child] < r or (rise[child] == r and height[child] <= h):
                break
            rise[root], height[root] = rise[child], height[child]
            root = child
            child = 2 * root + 1
        rise[root], height[root] = r, h


cdef inline Py_ssize_t upper_envelope(
    double* rise, double* height, double* at, Py_ssize_t size
) noexcept nogil:
    """Find the upper envelope of lines height + eta * rise (Yu 2009, Alg. 3.4).

    The envelope is for eta > 0. Line 0 is the maximum at eta = 0; all other lines are
    lower there and rise faster. On return, the first lines are the lines of the
    envelope, in order, and ``at[j]`` is the intersection of lines j - 1 and j. Returns
    their number, in O(size log size).
    """
    cdef Py_ssize_t i, top = 0
    cdef double where
    _sort(rise + 1, height + 1, size - 1)
    at[0] = 0.0
    for i in range(1, size):
        if i + 1 < size and rise[i + 1] == rise[i]:
            continue
        while True:
            where = (height[top] - height[i]) / (rise[i] - rise[top])
            if top == 0 or where > at[top]:
                break
            top -= 1
        top += 1
        rise[top], height[top], at[top] = rise[i], height[i], where
    return top + 1


cdef inline double shift_of_few(
    double* few, Py_ssize_t size, double total
) noexcept nogil:
    """Return the shift with sum max(0, few - shift) = 1, given the total of ``few``.

    Numbers below the current shift are removed, in place, until none is left (Michelot
    1986).
    """
    cdef Py_ssize_t j, kept
    cdef double shift
    while True:
        shift = (total - 1.0) / size
        kept = 0
        total = 0.0
        for j in range(size):
            if few[j] > shift:
                few[kept] = few[j]
                total += few[j]
                kept += 1
        if kept == size:
            return shift
        size = kept


cdef inline double simplex_shift(
    const double* t, Py_ssize_t k, double* few
) noexcept nogil:
    """Return the shift with sum max(0, t - shift) = 1.

    ``few`` is a workspace of k numbers. Entries more than 1 below the largest are not
    in the support.
    """
    cdef Py_ssize_t j, size = 0
    cdef double largest, total = 0.0
    largest = t[0]
    for j in range(k):
        largest = t[j] if t[j] > largest else largest
    for j in range(k):
        if t[j] > largest - 1.0:
            few[size] = t[j] - largest
            total += few[size]
            size += 1
    return largest + shift_of_few(few, size, total)


cdef inline void shuffle(Py_ssize_t[::1] order, unsigned long long seed) noexcept nogil:
    """Shuffle in place; the permutation depends only on the non-zero seed."""
    cdef Py_ssize_t p, other, swapped
    for p in range(order.shape[0] - 1, 0, -1):
        seed ^= seed << 13
        seed ^= seed >> 7
        seed ^= seed << 17
        other = <Py_ssize_t>(seed % <unsigned long long>(p + 1))
        swapped = order[p]
        order[p] = order[other]
        order[other] = swapped


cdef inline double sparse_product(
    const real* values, const row_index* indices, Py_ssize_t size, const double* x
) noexcept nogil:
    """Return the product of a sparse vector with x, from four partial sums."""
    cdef double a = 0.0, b = 0.0, c = 0.0, d = 0.0
    cdef Py_ssize_t i = 0
    while i + 4 <= size:
        a += values[i] * x[indices[i]]
        b += values[i + 1] * x[indices[i + 1]]
        c += values[i + 2] * x[indices[i + 2]]
        d += values[i + 3] * x[indices[i + 3]]
        i += 4
    while i < size:
        a += values[i] * x[indices[i]]
        i += 1
    return (a + b) + (c + d)


cdef inline void add_sparse_row(
    const real* data,
    const index* indices,
    Py_ssize_t size,
    const double* w,
    Py_ssize_t k,
    double* z,
) noexcept nogil:
    """Add the product of a sparse row with w of shape (d, k) to z.

    Four features are added at once, while later ones are prefetched.
    """
    cdef Py_ssize_t j = 0, ahead, line, c
    cdef const double* w0
    cdef const double* w1
    cdef const double* w2
    cdef const double* w3
    cdef double x0, x1, x2, x3
    while j + 4 <= size:
        for ahead in range(j + 8, min(j + 12, size)):
            for line in range(0, k, 8):
                prefetch(w + k * indices[ahead] + line)
        w0, w1 = w + k * indices[j], w + k * indices[j + 1]
        w2, w3 = w + k * indices[j + 2], w + k * indices[j + 3]
        x0, x1, x2, x3 = data[j], data[j + 1], data[j + 2], data[j + 3]
        for c in range(k):
            z[c] += (x0 * w0[c] + x1 * w1[c]) + (x2 * w2[c] + x3 * w3[c])
        j += 4
    while j < size:
        w0, x0 = w + k * indices[j], data[j]
        for c in range(k):
            z[c] += x0 * w0[c]
        j += 1


cdef inline void add_dense_row(
    const real* x,
    Py_ssize_t stride,
    Py_ssize_t d,
    const double* w,
    Py_ssize_t k,
    double* z,
) noexcept nogil:
    """Add the product of a dense row with w of shape (d, k) to z.

    The entries of the row are ``stride`` bytes apart.
    """
    cdef Py_ssize_t j = 0, c
    cdef double x0, x1, x2, x3
    while j + 4 <= d:
        x0, x1 = entry(x, j, stride), entry(x, j + 1, stride)
        x2, x3 = entry(x, j + 2, stride), entry(x, j + 3, stride)
        for c in range(k):
            z[c] += (x0 * w[c] + x1 * w[k + c]) + (x2 * w[2 * k + c] + x3 * w[3 * k + c])
        w += 4 * k
        j += 4
    while j < d:
        x0 = entry(x, j, stride)
        for c in range(k):
            z[c] += x0 * w[c]
        w += k
        j += 1


cdef inline double entry(const real* x, Py_ssize_t j, Py_ssize_t stride) noexcept nogil:
    return (<const real*> (<const char*> x + j * stride))[0]


cdef inline void move_along_sparse_row(
    const real* data,
    const index* indices,
    Py_ssize_t size,
    const double* change,
    const Py_ssize_t* labels,
    Py_ssize_t n_labels,
    Py_ssize_t k,
    double* w,
) noexcept nogil:
    """Subtract the row times ``change`` from the columns ``labels`` of w."""
    cdef Py_ssize_t j, c
    cdef double* moved
    cdef double x
    for j in range(size):
        moved = w + k * indices[j]
        x = data[j]
        for c in range(n_labels):
            moved[labels[c]] -= x * change[c]


cdef inline void move_along_dense_row(
    const real* x,
    Py_ssize_t stride,
    Py_ssize_t d,
    const double* change,
    const Py_ssize_t* labels,
    Py_ssize_t n_labels,
    Py_ssize_t k,
    double* w,
) noexcept nogil:
    """Subtract the row times ``change`` from the columns ``labels`` of w."""
    cdef Py_ssize_t j, c
    cdef double factor
    for j in range(d):
        factor = entry(x, j, stride)
        for c in range(n_labels):
            w[labels[c]] -= factor * change[c]
        w += k
